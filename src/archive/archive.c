#include "shared/archive.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zip.h>

enum {
    MAX_DEPTH = 32,                      // folders in an entry's name
    RATIO_LIMIT = 1000,                  // deflate reaches 1032 : 1 on zeros and never more
    RATIO_FREE_BYTES = 10 * 1024 * 1024, // up to here any ratio will do
    BLOCK = 64 * 1024,
    USUAL_BYTES = 1 << 30, // an archive may grow to so much, or so many times its size
    USUAL_RATIO = 20,
};

struct crdi_archive {
    crd_context* ctx;
    crd_arena arena;
    const char* name; // in messages
    zip_t* zip;
    zip_file_t* file; // the entry that is being read
    int32_t file_index;
    uint64_t file_done; // bytes of it so far
    crdi_archive_entry* entries;
    int32_t count;
    crd_map names;            // cleaned name -> index
    uint64_t unpacked, limit; // bytes of all entries, as declared; what was allowed
};

// ---- opening -----------------------------------------------------------------------------------

static crd_status fail_start(crd_context* ctx, const char* name, const unsigned char* head,
                             size_t length)
{
    if (length == 0) { return crdi_fail(ctx, CRD_E_FORMAT, "%s: the file is empty", name); }
    if (length >= 4 && memcmp(head, "PK\3\4", 4) == 0) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: the zip archive has no directory at its end; the file is cut off",
                         name);
    }
    char shown[5] = {0};
    for (size_t i = 0; i < length && i < 4; i++) {
        shown[i] = head[i] < 0x20 || head[i] >= 0x7f ? '.' : (char)head[i];
    }
    return crdi_fail(ctx, CRD_E_FORMAT, "%s: not a zip archive (starts with '%s')", name, shown);
}

static crd_status fail_zip(crd_context* ctx, const char* name, zip_error_t* e)
{
    const int code = zip_error_code_zip(e);
    crd_status st = CRD_E_FORMAT;
    if (code == ZIP_ER_MEMORY) { st = CRD_E_MEMORY; }
    if (code == ZIP_ER_NOENT) { st = CRD_E_NOT_FOUND; }
    if (code == ZIP_ER_OPEN || code == ZIP_ER_READ || code == ZIP_ER_SEEK) { st = CRD_E_IO; }
    crdi_fail(ctx, st, "%s: %s%s", name, st == CRD_E_FORMAT ? "damaged zip archive: " : "",
              zip_error_strerror(e));
    return st;
}

static bool has_control(const char* text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) { return true; }
    }
    return false;
}

// Cleans `raw` into `out` (as long as raw at least). NULL, or why the name is refused.
static const char* clean_name(const char* raw, char* out)
{
    const char drive = (char)(raw[0] | 0x20);
    if (raw[0] == '/' || raw[0] == '\\') { return "has an absolute name"; }
    if (drive >= 'a' && drive <= 'z' && raw[1] == ':') { return "has a name with a drive letter"; }
    if (strlen(raw) >= PATH_MAX / 2) { return "has a name that is too long"; }
    size_t n = 0;
    int depth = 0;
    for (const char* p = raw; *p;) {
        const size_t length = strcspn(p, "/\\");
        if (length == 2 && p[0] == '.' && p[1] == '.') { return "leaves the archive's folder"; }
        if (length > NAME_MAX) { return "has a name that is too long"; }
        if (length > 0 && !(length == 1 && p[0] == '.')) {
            if (++depth > MAX_DEPTH) { return "lies more than 32 folders deep"; }
            if (n > 0) { out[n++] = '/'; }
            memcpy(out + n, p, length);
            n += length;
        }
        p += length;
        if (*p) { p++; }
    }
    out[n] = 0;
    return NULL;
}

// What else may be wrong with an entry, or NULL.
static const char* entry_defect(zip_t* zip, const zip_stat_t* s)
{
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    if (zip_file_get_external_attributes(zip, s->index, 0, &system, &attributes) == 0) {
        // The Unix mode stands in the upper half, whatever system the entry claims to be from.
        const unsigned kind = (attributes >> 16) & S_IFMT;
        if (kind == S_IFLNK) { return "is a link"; }
        if (kind == S_IFIFO || kind == S_IFCHR || kind == S_IFBLK || kind == S_IFSOCK) {
            return "is a device, not a file";
        }
    }
    if ((s->valid & ZIP_STAT_ENCRYPTION_METHOD) && s->encryption_method != ZIP_EM_NONE) {
        return "is encrypted";
    }
    if ((s->valid & ZIP_STAT_COMP_METHOD) && s->comp_method != ZIP_CM_STORE &&
        s->comp_method != ZIP_CM_DEFLATE) {
        return "is compressed by a method other than deflate";
    }
    if (!(s->valid & ZIP_STAT_SIZE) || !(s->valid & ZIP_STAT_COMP_SIZE)) {
        return "does not declare its size";
    }
    if (s->size > RATIO_FREE_BYTES && s->size / RATIO_LIMIT > s->comp_size) {
        return "grows more than 1000 times when unpacked, which only a zip bomb does";
    }
    return NULL;
}

static crd_status fail_entry(const crdi_archive* a, const char* entry, const char* what)
{
    return crdi_fail(a->ctx, CRD_E_FORMAT, "%s: entry '%s' %s", a->name, crdi_show(entry).text,
                     what);
}

static crd_status archive_add_entry(crdi_archive* a, int32_t i)
{
    zip_stat_t s;
    if (zip_stat_index(a->zip, (zip_uint64_t)i, 0, &s) != 0 || !(s.valid & ZIP_STAT_NAME)) {
        return fail_zip(a->ctx, a->name, zip_get_error(a->zip));
    }
    char clean[PATH_MAX];
    const char* raw = zip_get_name(a->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
    const char* why = clean_name(s.name, clean);
    // libzip shows control characters of names that are not UTF-8 as the glyphs of code page 437
    if (!why && (!raw || has_control(raw))) { why = "has a control character in its name"; }
    if (!why) { why = entry_defect(a->zip, &s); }
    if (why) { return fail_entry(a, s.name, why); }

    const size_t raw_length = strlen(s.name);
    const char last = raw_length ? s.name[raw_length - 1] : 0;
    crdi_archive_entry* e = &a->entries[i];
    e->folder = last == '/' || last == '\\' || !clean[0];
    e->size = e->folder ? 0 : s.size;
    e->name = crdi_arena_text(&a->arena, clean, strlen(clean));
    if (!e->name) { return CRD_E_MEMORY; }
    bool fresh = false;
    const crd_status st = crdi_map_add(&a->names, e->name, i, &fresh);
    if (st < 0) { return st; }
    e->crc = s.valid & ZIP_STAT_CRC ? s.crc : 0;
    if (!fresh) {
        // Packers that are given a folder twice write it twice; only a difference is a defect.
        const crdi_archive_entry* first = &a->entries[crdi_map_find(&a->names, e->name)];
        if (e->folder != first->folder || e->size != first->size || e->crc != first->crc) {
            return fail_entry(a, s.name, "is there twice, with different content");
        }
        e->repeated = true;
    }
    return CRD_OK;
}

// "a" as a file and "a/b" cannot both be.
static crd_status check_parents(const crdi_archive* a)
{
    for (int32_t i = 0; i < a->count; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s", a->entries[i].name);
        for (char* slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = 0;
            const int32_t parent = crdi_map_find(&a->names, path);
            if (parent >= 0 && !a->entries[parent].folder) {
                return fail_entry(a, a->entries[i].name, "lies below another entry that is a file");
            }
            *slash = '/';
        }
    }
    return CRD_OK;
}

// CARDAN_MAX_UNPACKED: bytes, or KiB, MiB, GiB with a letter behind them. 0: not given.
static crd_status asked_limit(crd_context* ctx, uint64_t* out)
{
    const char* text = getenv("CARDAN_MAX_UNPACKED");
    *out = 0;
    if (!text || !*text) { return CRD_OK; }
    char* end = NULL;
    const double number = strtod(text, &end);
    const char* letter = *end ? strchr("KMG", toupper((unsigned char)*end)) : NULL;
    const double unit = !*end            ? 1
                        : !letter        ? 0
                        : *letter == 'K' ? 0x1p10
                        : *letter == 'M' ? 0x1p20
                                         : 0x1p30;
    if (!(number * unit >= 1 && number * unit < 0x1p63) || (*end && end[1])) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "CARDAN_MAX_UNPACKED (--max-unpacked) = '%s', expected a number of bytes, such as "
            "500M or 8G",
            crdi_show(text).text);
    }
    *out = (uint64_t)(number * unit);
    return CRD_OK;
}

// What archives may grow to unless somebody says so: real ones of this size hold little but runs.
static uint64_t usual_limit(uint64_t packed)
{
    return packed > USUAL_BYTES / USUAL_RATIO ? USUAL_RATIO * packed : USUAL_BYTES;
}

static crd_status fail_large(const crdi_archive* a, uint64_t limit, const char* entry, bool usual)
{
    return crdi_fail(a->ctx, CRD_E_FORMAT,
                     "%s: unpacks to more than the limit of %llu bytes (at entry '%s')%s", a->name,
                     (unsigned long long)limit, crdi_show(entry).text,
                     usual ? "; to allow more: --max-unpacked 8G, or CARDAN_MAX_UNPACKED=8G in the "
                             "environment"
                           : "");
}

static crd_status read_directory(crdi_archive* a, const crdi_archive_limits* limits,
                                 uint64_t packed)
{
    crd_status st = CRD_OK;
    uint64_t limit = limits->max_unpacked;
    if (limit == 0) { CRD_TRY(asked_limit(a->ctx, &limit)); }
    if (limit == 0) { limit = usual_limit(packed); }
    a->limit = limit;
    const zip_int64_t count = zip_get_num_entries(a->zip, 0);
    if (count > limits->max_entries || count > INT32_MAX) {
        return crdi_fail(a->ctx, CRD_E_FORMAT, "%s: %lld entries, more than the limit of %u",
                         a->name, (long long)count, limits->max_entries);
    }
    a->entries = crdi_arena_new(&a->arena, (size_t)count, sizeof *a->entries);
    if (!a->entries) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_reserve(&a->names, (size_t)count));
    for (; a->count < count; a->count++) {
        CRD_TRY(archive_add_entry(a, a->count));
        const uint64_t size = a->entries[a->count].repeated ? 0 : a->entries[a->count].size;
        if (size > limit - a->unpacked) { // which never exceeds the limit
            return fail_large(a, limit, a->entries[a->count].name,
                              limits->max_unpacked == 0 || limits->can_be_raised);
        }
        a->unpacked += size;
    }
    CRD_TRY(check_parents(a));
fail:
    return st;
}

static crd_status new_archive(crd_context* ctx, const char* name, crdi_archive** out)
{
    crdi_archive* a = crdi_new(ctx, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    a->ctx = ctx;
    crd_arena_init(&a->arena, ctx);
    crdi_map_init(&a->names, ctx);
    a->name = crdi_arena_text(&a->arena, name, strlen(name));
    if (!a->name) {
        crdi_archive_close(a);
        return CRD_E_MEMORY;
    }
    *out = a;
    return CRD_OK;
}

crd_status crdi_archive_open(crd_context* ctx, const char* path, const crdi_archive_limits* limits,
                             crdi_archive** out)
{
    crdi_archive* a = NULL;
    crd_status st = new_archive(ctx, path, &a);
    if (st < 0) { return st; }
    int code = 0;
    struct stat info = {0};
    const bool empty = stat(path, &info) == 0 && info.st_size == 0; // an archive for libzip
    if (!empty) { a->zip = zip_open(path, ZIP_RDONLY, &code); }
    if (empty) {
        st = fail_start(ctx, path, NULL, 0);
    } else if (!a->zip && code == ZIP_ER_NOZIP) {
        char head[5];
        const size_t n = crdi_file_head(path, head, sizeof head);
        st = fail_start(ctx, path, (const unsigned char*)head, n);
    } else if (!a->zip) {
        zip_error_t e;
        zip_error_init_with_code(&e, code);
        st = fail_zip(ctx, path, &e);
        zip_error_fini(&e);
    } else {
        st = read_directory(a, limits, (uint64_t)info.st_size);
    }
    if (st < 0) {
        crdi_archive_close(a);
        return st;
    }
    *out = a;
    return CRD_OK;
}

crd_status crdi_archive_open_memory(crd_context* ctx, const void* bytes, size_t length,
                                    const char* name_in_messages, const crdi_archive_limits* limits,
                                    crdi_archive** out)
{
    crdi_archive* a = NULL;
    crd_status st = new_archive(ctx, name_in_messages, &a);
    if (st < 0) { return st; }
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t* source = length ? zip_source_buffer_create(bytes, length, 0, &e) : NULL;
    if (source) {
        a->zip = zip_open_from_source(source, ZIP_RDONLY, &e);
        if (!a->zip) { zip_source_free(source); }
    }
    if (a->zip) {
        st = read_directory(a, limits, length);
    } else if (length == 0 || zip_error_code_zip(&e) == ZIP_ER_NOZIP) {
        st = fail_start(ctx, name_in_messages, bytes, length);
    } else {
        st = fail_zip(ctx, name_in_messages, &e);
    }
    zip_error_fini(&e);
    if (st < 0) {
        crdi_archive_close(a);
        return st;
    }
    *out = a;
    return CRD_OK;
}

void crdi_archive_close(crdi_archive* a)
{
    if (!a) { return; }
    crdi_archive_end(a);
    if (a->zip) { zip_discard(a->zip); }
    crdi_map_clear(&a->names);
    crd_arena_clear(&a->arena);
    crd_free(a->ctx, a);
}

uint64_t crdi_archive_unpacked(const crdi_archive* a)
{
    return a->unpacked;
}

uint64_t crdi_archive_limit(const crdi_archive* a)
{
    return a->limit;
}

int32_t crdi_archive_count(const crdi_archive* a)
{
    return a->count;
}

const crdi_archive_entry* crdi_archive_at(const crdi_archive* a, int32_t index)
{
    return &a->entries[index];
}

int32_t crdi_archive_find(const crdi_archive* a, const char* name)
{
    return crdi_map_find(&a->names, name);
}

// ---- reading -----------------------------------------------------------------------------------

static crd_status fail_read(const crdi_archive* a, int32_t index, zip_error_t* e)
{
    const int code = zip_error_code_zip(e);
    if (code == ZIP_ER_MEMORY) {
        return crdi_fail(a->ctx, CRD_E_MEMORY, "out of memory while unpacking %s", a->name);
    }
    return crdi_fail(a->ctx, code == ZIP_ER_READ ? CRD_E_IO : CRD_E_FORMAT,
                     "%s: entry '%s' is damaged: %s", a->name,
                     crdi_show(a->entries[index].name).text, zip_error_strerror(e));
}

crd_status crdi_archive_begin(crdi_archive* a, int32_t index)
{
    crdi_archive_end(a);
    a->file = zip_fopen_index(a->zip, (zip_uint64_t)index, 0);
    if (!a->file) { return fail_read(a, index, zip_get_error(a->zip)); }
    a->file_index = index;
    a->file_done = 0;
    return CRD_OK;
}

crd_status crdi_archive_pull(void* archive, void* buffer, size_t room, size_t* got)
{
    crdi_archive* a = archive;
    const crdi_archive_entry* e = &a->entries[a->file_index];
    const zip_int64_t n = zip_fread(a->file, buffer, room);
    if (n < 0) { return fail_read(a, a->file_index, zip_file_get_error(a->file)); }
    a->file_done += (uint64_t)n;
    if (a->file_done > e->size || (n == 0 && room > 0 && a->file_done < e->size)) {
        return crdi_fail(a->ctx, CRD_E_FORMAT,
                         "%s: entry '%s' unpacks to %s than the %llu bytes it declares", a->name,
                         crdi_show(e->name).text, a->file_done > e->size ? "more" : "less",
                         (unsigned long long)e->size);
    }
    *got = (size_t)n;
    return CRD_OK;
}

void crdi_archive_end(crdi_archive* a)
{
    if (a->file) { zip_fclose(a->file); }
    a->file = NULL;
}

crd_status crdi_archive_read(crdi_archive* a, int32_t index, size_t max_bytes, char** out,
                             size_t* length)
{
    const crdi_archive_entry* e = &a->entries[index];
    if (e->size > max_bytes) {
        return crdi_fail(a->ctx, CRD_E_FORMAT,
                         "%s: entry '%s' has %llu bytes, more than the limit of %zu", a->name,
                         crdi_show(e->name).text, (unsigned long long)e->size, max_bytes);
    }
    crd_status st = CRD_OK;
    size_t done = 0;
    char* text = crdi_new(a->ctx, (size_t)e->size + 1);
    if (!text) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_archive_begin(a, index));
    for (size_t got = 1; got > 0; done += got) {
        // One byte more than declared, so that an entry that grows is noticed.
        CRD_TRY(crdi_archive_pull(a, text + done, (size_t)e->size + 1 - done, &got));
    }
    crdi_archive_end(a);
    text[done] = 0;
    *out = text;
    *length = done;
    return CRD_OK;
fail:
    crdi_archive_end(a);
    crd_free(a->ctx, text);
    return st;
}

// ---- unpacking ---------------------------------------------------------------------------------

static crd_status fail_write(const crdi_archive* a, const char* folder, const char* name)
{
    const int code = errno;
    return crdi_fail(a->ctx, CRD_E_IO, "%s: cannot write '%s/%s': %s", a->name, folder,
                     crdi_show(name).text, strerror(code));
}

// Makes the folders in front of the last part of `name`. `done` is the parent made last: entries
// of one folder stand together, so most calls find their work done.
static crd_status make_parents(const crdi_archive* a, int root, const char* folder,
                               const char* name, char* done)
{
    const char* last = strrchr(name, '/');
    const size_t length = last ? (size_t)(last - name) : 0;
    if (length == 0 || (strncmp(done, name, length) == 0 && !done[length])) { return CRD_OK; }
    memcpy(done, name, length);
    done[length] = 0;
    for (char* slash = strchr(done, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) { *slash = 0; }
        if (mkdirat(root, done, 0700) != 0 && errno != EEXIST) {
            return fail_write(a, folder, done);
        }
        if (!slash) { return CRD_OK; }
        *slash = '/';
    }
}

static crd_status write_all(const crdi_archive* a, int fd, const char* folder, const char* name,
                            const char* bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        const ssize_t n = write(fd, bytes + done, length - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno != EINTR) {
            return fail_write(a, folder, name);
        }
    }
    return CRD_OK;
}

static crd_status write_entry(crdi_archive* a, int32_t index, int root, const char* folder,
                              char* block)
{
    crd_status st = CRD_OK;
    const char* name = a->entries[index].name;
    const int fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) { return fail_write(a, folder, name); }
    CRD_TRY(crdi_archive_begin(a, index));
    for (size_t got = 1; got > 0;) {
        CRD_TRY(crdi_archive_pull(a, block, BLOCK, &got));
        CRD_TRY(write_all(a, fd, folder, name, block, got));
    }
    crdi_archive_end(a);
    return close(fd) == 0 ? CRD_OK : fail_write(a, folder, name); // some disks are full only here
fail:
    crdi_archive_end(a);
    close(fd);
    return st;
}

crd_status crdi_archive_unpack(crdi_archive* a, const char* folder)
{
    crd_status st = CRD_OK;
    char parent[PATH_MAX] = "";
    char* block = crdi_new(a->ctx, BLOCK);
    if (!block) { return CRD_E_MEMORY; }
    const int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        st = fail_write(a, folder, ".");
        goto fail;
    }
    struct statvfs disk;
    if (fstatvfs(root, &disk) == 0 && a->unpacked > (uint64_t)disk.f_bavail * disk.f_frsize) {
        st = crdi_fail(a->ctx, CRD_E_IO,
                       "%s: unpacks to %llu bytes, and there are %llu free below '%s'; TMPDIR says "
                       "another place",
                       a->name, (unsigned long long)a->unpacked,
                       (unsigned long long)disk.f_bavail * disk.f_frsize, folder);
        goto fail;
    }
    for (int32_t i = 0; i < a->count; i++) {
        const crdi_archive_entry* e = &a->entries[i];
        if (e->repeated) { continue; }
        CRD_TRY(make_parents(a, root, folder, e->name, parent));
        if (!e->folder) {
            CRD_TRY(write_entry(a, i, root, folder, block));
        } else if (e->name[0] && mkdirat(root, e->name, 0700) != 0 && errno != EEXIST) {
            CRD_TRY(fail_write(a, folder, e->name));
        }
    }
fail:
    if (root >= 0) { close(root); }
    crd_free(a->ctx, block);
    return st;
}
