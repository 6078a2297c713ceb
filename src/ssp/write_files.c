// FMUs and recordings under resources/, each file once.
#include "shared/base_path.h"
#include "ssp/write.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Letters, digits, '.', '_' and '-' stay: no archive, file system or URI has trouble with them.
char* crdi_pack_plain_name(crdi_pack_writer* w, const char* text, size_t length)
{
    char* name = crdi_arena_text(&w->arena, text, length);
    for (char* c = name; c && *c; c++) {
        if (!isalnum((unsigned char)*c) && !(strchr("._-", *c) && (c != name || *c == '_'))) {
            *c = '_';
        }
    }
    return name;
}

// "resources/name.ending", free in the package. Names that differ in capitals alone would become
// one file on some systems.
crd_status crdi_pack_resource_name(crdi_pack_writer* w, const char* stem, const char* ending,
                                   const char** out)
{
    for (int i = 1;; i++) {
        char number[16] = "";
        if (i > 1) { snprintf(number, sizeof number, "_%d", i); }
        char* name = crdi_arena_format(&w->arena, "resources/%s%s%s", stem, number, ending);
        char* lower = name ? crdi_arena_text(&w->arena, name, strlen(name)) : NULL;
        if (!lower) { return CRD_E_MEMORY; }
        for (char* c = lower; *c; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        bool fresh = false;
        const crd_status st = crdi_map_add(&w->files, lower, 0, &fresh);
        if (st < 0) { return st; }
        if (!fresh) { continue; }
        *out = name;
        return CRD_OK;
    }
}

static crd_status zip_folder(crdi_pack_writer* w, crdi_archive_writer* zip, const char* folder,
                             const char* inside, int depth);

static crd_status zip_entry(crdi_pack_writer* w, crdi_archive_writer* zip, const char* folder,
                            const char* inside, const char* name, int depth)
{
    struct stat info;
    const char* path = crdi_arena_format(&w->arena, "%s/%s", folder, name);
    const char* entry = crdi_arena_format(&w->arena, "%s%s%s", inside, inside[0] ? "/" : "", name);
    if (!path || !entry) { return CRD_E_MEMORY; }
    if (stat(path, &info) != 0) {
        return crdi_fail(w->ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) { return zip_folder(w, zip, path, entry, depth + 1); }
    return S_ISREG(info.st_mode) ? crdi_archive_add_file(zip, entry, path) : CRD_OK;
}

static int write_files_by_name(const struct dirent** a, const struct dirent** b)
{
    return strcmp((*a)->d_name, (*b)->d_name); // whatever the locale
}

// In the order of names, so that equal folders give equal archives.
static crd_status zip_folder(crdi_pack_writer* w, crdi_archive_writer* zip, const char* folder,
                             const char* inside, int depth)
{
    enum { DEEPEST = 40 };
    crd_status st = CRD_OK;
    struct dirent** entries = NULL;
    const int count = depth > DEEPEST ? -1 : scandir(folder, &entries, NULL, write_files_by_name);
    if (count < 0) {
        return crdi_fail(w->ctx, CRD_E_IO, "%s: cannot be packed: %s", folder,
                         depth > DEEPEST ? "too many folders inside each other" : strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        const char* name = entries[i]->d_name;
        if (st >= 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            st = zip_entry(w, zip, folder, inside, name, depth);
        }
        free(entries[i]);
    }
    free(entries);
    return st;
}

// An unpacked FMU becomes an archive, on the disk until the package is finished.
static crd_status pack_folder(crdi_pack_writer* w, const char* folder, int number, const char** out)
{
    crd_status st = CRD_OK;
    crdi_archive_writer* zip = NULL;
    if (!w->scratch) { CRD_TRY(crdi_scratch_make(&w->arena, w->ctx, NULL, &w->scratch)); }
    *out = crdi_arena_format(&w->arena, "%s/%d.fmu", w->scratch, number);
    if (!*out) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_archive_create(w->ctx, *out, &zip));
    CRD_TRY(zip_folder(w, zip, folder, "", 0));
    CRD_TRY(crdi_archive_finish(zip));
fail:
    crdi_archive_discard(zip);
    return st;
}

static crd_status pack_file(crdi_pack_writer* w, int unit)
{
    crd_status st = CRD_OK;
    const crd_unit_spec* u = &w->s->units[unit];
    const char* path = u->path;
    struct stat info;
    if (stat(path, &info) != 0) {
        return crdi_fail(w->ctx, errno == ENOENT ? CRD_E_NOT_FOUND : CRD_E_IO, "unit '%s': %s: %s",
                         u->name, path, strerror(errno));
    }
    size_t length;
    const char* name = crdi_path_stem(path, &length);
    const bool folder = S_ISDIR(info.st_mode);
    const char* stem = crdi_pack_plain_name(w, name, length);
    const char* ending = ".fmu";
    if (u->source != CRD_UNIT_FMU) {
        ending = crdi_pack_plain_name(w, name + length, strcspn(name + length, "/"));
        if (ending && ending[0] == '_') { // the dot in front
            ending = crdi_arena_format(&w->arena, ".%s", ending + 1);
        }
    }
    if (!stem || !ending) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_pack_resource_name(w, stem[0] ? stem : "unit", ending, &w->parts[unit].source));
    if (folder && u->source == CRD_UNIT_FMU) { CRD_TRY(pack_folder(w, path, unit, &path)); }
    CRD_TRY(crdi_archive_add_file(w->zip, w->parts[unit].source, path));
fail:
    return st;
}

// Each file once, however many units it serves.
crd_status crdi_pack_files(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    crd_map known; // "device inode" -> unit
    crdi_map_init(&known, w->ctx);
    for (int i = 0; i < w->s->unit_count; i++) {
        const crd_unit_spec* u = &w->s->units[i];
        w->parts[i].source = "";
        if (u->source != CRD_UNIT_FMU && u->source != CRD_UNIT_REPLAY) { continue; }
        struct stat info = {0};
        if (stat(u->path, &info) == 0) {
            const char* key =
                crdi_arena_format(&w->arena, "%llu %llu", (unsigned long long)info.st_dev,
                                  (unsigned long long)info.st_ino);
            bool fresh = false;
            CRD_TRY(key ? crdi_map_add(&known, key, i, &fresh) : CRD_E_MEMORY);
            if (!fresh) {
                w->parts[i].source = w->parts[crdi_map_find(&known, key)].source;
                continue;
            }
        }
        CRD_TRY(pack_file(w, i));
    }
fail:
    crdi_map_clear(&known);
    return st;
}
