// An FMU out of a template: binaries and sources that are the same for all, a description, and
// files that say what it is.
#include "cardan/fmi.h"
#include "cli/export.h"
#include "shared/archive.h"

#include <ctype.h>
#include <string.h>

enum { LARGEST = 64 << 20, MOST_FILES = 256 };

typedef struct package {
    crd_context* ctx;
    crdi_archive* from;
    crdi_archive_writer* to;
    int version; // 2 or 3
    const char* name;
} package;

static bool starts_with(const char* text, const char* with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// The name in the FMU of a file of the template; NULL: it is of the other version. `buffer` serves.
static const char* name_in_fmu(const package* p, const char* name, char buffer[256])
{
    const char* const other = p->version == 2 ? "sources/fmi3" : "sources/fmi2";
    const char* const own = p->version == 2 ? "fmi2/" : "fmi3/";
    if (starts_with(name, "sources/")) { return starts_with(name, other) ? NULL : name; }
    if (strcmp(name, "LICENSE") == 0) { return "documentation/licenses/license.txt"; }
    if (starts_with(name, "licenses/")) {
        snprintf(buffer, 256, "documentation/%.200s", name);
        return buffer;
    }
    if (!starts_with(name, own)) { return NULL; }
    const char* file = strrchr(name, '/') + 1; // fmi2/binaries/linux64/coupling.so
    const char* ending = strrchr(file, '.');
    snprintf(buffer, 256, "%.*s%s%s", (int)(file - name - 5), name + 5, p->name,
             ending ? ending : "");
    return buffer;
}

// What has to be compiled, as named below sources/.
static int list_sources(const package* p, const char** sources)
{
    int count = 0;
    char buffer[256];
    for (int32_t i = 0; i < crdi_archive_count(p->from) && count < MOST_FILES; i++) {
        const crdi_archive_entry* e = crdi_archive_at(p->from, i);
        const size_t n = strlen(e->name);
        if (!e->folder && starts_with(e->name, "sources/") && n > 2 &&
            strcmp(e->name + n - 2, ".c") == 0 && name_in_fmu(p, e->name, buffer)) {
            sources[count++] = e->name + strlen("sources/");
        }
    }
    return count;
}

static crd_status copy_files(package* p)
{
    crd_status st = CRD_OK;
    char* bytes = NULL;
    size_t length = 0;
    char buffer[256];
    for (int32_t i = 0; i < crdi_archive_count(p->from); i++) {
        const crdi_archive_entry* e = crdi_archive_at(p->from, i);
        const char* name = e->folder ? NULL : name_in_fmu(p, e->name, buffer);
        if (!name) { continue; }
        CRD_TRY(crdi_archive_read(p->from, i, LARGEST, &bytes, &length));
        CRD_TRY(crdi_archive_add(p->to, name, bytes, length));
        crd_free(p->ctx, bytes);
        bytes = NULL;
    }
fail:
    crd_free(p->ctx, bytes);
    return st;
}

crd_status crdi_write_fmu(crd_context* ctx, const crdi_asset* template, int version,
                          const crd_model* model, const crdi_resource* resources,
                          int resource_count, const char* path)
{
    crd_status st = CRD_OK;
    package p = {.ctx = ctx, .version = version, .name = model->name};
    const crdi_archive_limits limits = {.max_unpacked = LARGEST, .max_entries = MOST_FILES};
    const char* sources[MOST_FILES];
    crd_text description, build;
    crd_text_init(&description, ctx);
    crd_text_init(&build, ctx);
    CRD_TRY(crdi_archive_open_memory(ctx, template->data, template->length, "FMU template", &limits,
                                     &p.from));
    const int count = list_sources(&p, sources);
    CRD_TRY(crd_fmu_describe_model(ctx, model, version, sources, count, &description, &build));
    CRD_TRY(crdi_archive_create(ctx, path, &p.to));
    CRD_TRY(crdi_archive_add(p.to, "modelDescription.xml", description.data, description.length));
    for (int i = 0; i < resource_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "resources/%s", resources[i].name);
        CRD_TRY(crdi_archive_add(p.to, name, resources[i].data, resources[i].length));
    }
    if (version == 3) {
        CRD_TRY(crdi_archive_add(p.to, "sources/buildDescription.xml", build.data, build.length));
    }
    CRD_TRY(copy_files(&p));
    CRD_TRY(crdi_archive_finish(p.to));
fail:
    crdi_archive_discard(p.to);
    crdi_archive_close(p.from);
    crd_text_clear(&description);
    crd_text_clear(&build);
    return st;
}

// A name of C out of any text.
const char* crdi_identifier(crd_arena* arena, const char* text)
{
    char* name = crdi_arena_format(arena, "%s%.99s", isdigit((unsigned char)text[0]) ? "_" : "",
                                   text[0] ? text : "model");
    for (char* p = name; p && *p; p++) {
        if (!isalnum((unsigned char)*p) || (unsigned char)*p > 127) { *p = '_'; }
    }
    return name;
}
