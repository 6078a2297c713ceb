// Where things are: packages, variants, sources, documents.
#include "shared/base_path.h"
#include "ssp/read.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_PACKAGES = 256, MAX_DOCUMENTS = 4096, MAX_DOCUMENT_BYTES = 64 << 20 };

const crdi_archive_limits crdi_ssp_limits = {.max_entries = 100000};

crd_status crdi_ssp_bad(crdi_ssp_reader* r, crd_status st, const crdi_document* d,
                        const crdi_xml_element* e, const char* format, ...)
{
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(r->ctx, st, "%s:%d: %s", d->shown, e->line, text);
}

crd_status crdi_ssp_spend(crdi_ssp_reader* r, size_t bytes)
{
    enum { MOST = 256 << 20 };
    if (bytes <= MOST && (r->spent += bytes) <= MOST) { return CRD_OK; }
    return crdi_fail(r->ctx, CRD_E_FORMAT,
                     "%s: the values of the system with all its parts take more than %d MB",
                     r->s->base, MOST >> 20);
}

bool crdi_ssp_is_folder(const char* path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// ---- variants ----------------------------------------------------------------------------------

crd_status crdi_ssp_add_name(crd_arena* a, crdi_names* names, const char* name)
{
    if ((size_t)names->count == names->capacity) {
        const size_t capacity = names->capacity ? 2 * names->capacity : 8;
        const char** grown = crdi_arena_new(a, capacity, sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        if (names->count) { memcpy(grown, names->items, (size_t)names->count * sizeof *grown); }
        names->items = grown;
        names->capacity = capacity;
    }
    const char* kept = crdi_arena_text(a, name, strlen(name));
    if (!kept) { return CRD_E_MEMORY; }
    names->items[names->count++] = kept;
    return CRD_OK;
}

static bool is_default(const char* name)
{
    return strcmp(name, "SystemStructure.ssd") == 0;
}

static int package_by_name(const void* a, const void* b)
{
    const char *x = *(const char*const*)a, *y = *(const char*const*)b;
    if (is_default(x) != is_default(y)) { return is_default(x) ? -1 : 1; }
    return strcmp(x, y);
}

void crdi_ssp_sort(crdi_names* names)
{
    if (names->count) {
        qsort(names->items, (size_t)names->count, sizeof *names->items, package_by_name);
    }
}

typedef struct name_list {
    const crdi_names* names;
    int at;
} name_list;

static const char* package_next_name(void* user)
{
    name_list* l = user;
    return l->at < l->names->count ? l->names->items[l->at++] : NULL;
}

crd_status crdi_ssp_choose(crd_context* ctx, const char* package, const crdi_names* names,
                           const char* variant, const char** out)
{
    const char* wanted = variant ? variant : "SystemStructure.ssd";
    const size_t n = strlen(wanted);
    for (int i = 0; i < names->count; i++) {
        const char* name = names->items[i];
        if (strcmp(name, wanted) == 0 ||
            (strncmp(name, wanted, n) == 0 && strcasecmp(name + n, ".ssd") == 0)) {
            *out = name;
            return CRD_OK;
        }
    }
    if (names->count == 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: there is no SystemStructure.ssd in it",
                         package);
    }
    char list[400] = "";
    size_t used = 0;
    int shown = 0;
    for (; shown < names->count && used + 100 < sizeof list; shown++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", shown ? ", " : "",
                                 crdi_show(names->items[shown]).text);
    }
    const char* near =
        variant ? crdi_nearest(variant, package_next_name, &(name_list){names, 0}) : NULL;
    return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: there is no %s%s in it%s%s%s; there are %s%s",
                     package, variant ? "variant " : "", crdi_show(wanted).text,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "", list,
                     shown < names->count ? ", ..." : "");
}

static crd_status package_list_folder(crdi_ssp_reader* r, const char* folder, crdi_names* out)
{
    crd_status st = CRD_OK;
    DIR* dir = opendir(folder);
    if (!dir) {
        return crdi_fail(r->ctx, CRD_E_IO, "%s: cannot be read: %s", folder, strerror(errno));
    }
    for (struct dirent* e = readdir(dir); e && st >= 0; e = readdir(dir)) {
        if (crdi_ends_with(e->d_name, ".ssd")) {
            st = crdi_ssp_add_name(&r->arena, out, e->d_name);
        }
    }
    closedir(dir);
    crdi_ssp_sort(out);
    return st;
}

// ---- packages ----------------------------------------------------------------------------------

// The archive in a folder of its own below the system's scratch folder; each archive once.
static crd_status unpack(crdi_ssp_reader* r, const char* path, const char* shown,
                         const char** folder)
{
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    for (const crdi_package* p = r->packages; p; p = p->next) {
        if (strcmp(p->archive, path) == 0) {
            *folder = p->folder;
            return CRD_OK;
        }
    }
    if (r->package_count == MAX_PACKAGES) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s: more than %d packages inside of each other",
                         shown, MAX_PACKAGES);
    }
    crdi_archive_limits limits = crdi_ssp_limits;
    if (r->package_count) { // packages in packages share what the outermost may grow to
        limits.can_be_raised = true;
        limits.max_unpacked = r->unpacked_limit - r->unpacked + 1; // 0 has a meaning
    }
    if (!r->s->scratch) { CRD_TRY(crdi_scratch_make(&r->s->arena, r->ctx, NULL, &r->s->scratch)); }
    CRD_TRY(crdi_archive_open(r->ctx, path, &limits, &a));
    if (!r->package_count) { r->unpacked_limit = crdi_archive_limit(a); }
    r->unpacked += crdi_archive_unpacked(a);
    crdi_package* p = crdi_arena_new(&r->arena, 1, sizeof *p);
    char* to = p ? crdi_arena_format(&r->arena, "%s/p%d", r->s->scratch, r->package_count) : NULL;
    const char* archive = to ? crdi_arena_text(&r->arena, path, strlen(path)) : NULL;
    if (!archive) { CRD_TRY(CRD_E_MEMORY); }
    if (mkdir(to, 0700) != 0) {
        CRD_TRY(crdi_fail(r->ctx, CRD_E_IO, "%s: cannot be made: %s", to, strerror(errno)));
    }
    CRD_TRY(crdi_archive_unpack(a, to));
    *p = (crdi_package){.archive = archive, .folder = to, .next = r->packages};
    r->packages = p;
    r->package_count++;
    *folder = to;
fail:
    crdi_archive_close(a);
    return st;
}

static crd_status in_folder(crdi_ssp_reader* r, const char* folder, const char* shown,
                            const char* variant, crdi_ssp_place* out)
{
    crdi_names names = {0};
    const char* name = NULL;
    crd_status st = package_list_folder(r, folder, &names);
    if (st >= 0) { st = crdi_ssp_choose(r->ctx, shown, &names, variant, &name); }
    if (st < 0) { return st; }
    out->path = crdi_arena_format(&r->arena, "%s/%s", folder, name);
    out->shown = crdi_arena_format(&r->arena, "%s/%s", shown, name);
    out->root = crdi_arena_text(&r->arena, folder, strlen(folder));
    return out->path && out->shown && out->root ? CRD_OK : CRD_E_MEMORY;
}

// Another .ssd beside this one.
static crd_status sibling(crdi_ssp_reader* r, const char* path, const char* variant,
                          crdi_ssp_place* out)
{
    const size_t n = crdi_folder_length(path);
    const char* folder = n ? crdi_arena_text(&r->arena, path, n) : "./";
    if (!folder) { return CRD_E_MEMORY; }
    crdi_names names = {0};
    const char* name = NULL;
    crd_status st = package_list_folder(r, folder, &names);
    if (st >= 0) { st = crdi_ssp_choose(r->ctx, folder, &names, variant, &name); }
    if (st < 0) { return st; }
    out->path = out->shown = crdi_arena_format(&r->arena, "%s%s", n ? folder : "", name);
    return out->path ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_ssp_locate(crdi_ssp_reader* r, const char* path, const char* shown,
                           const char* variant, crdi_ssp_place* out)
{
    *out = (crdi_ssp_place){0};
    struct stat info;
    if (stat(path, &info) != 0) { return crdi_file_fail(r->ctx, shown, errno); }
    size_t n = strlen(shown);
    while (n > 1 && shown[n - 1] == '/') {
        n--;
    }
    const char* clean = crdi_arena_text(&r->arena, shown, n);
    if (!clean) { return CRD_E_MEMORY; }
    if (S_ISDIR(info.st_mode)) {
        char real[PATH_MAX];
        if (!realpath(path, real)) {
            return crdi_fail(r->ctx, CRD_E_IO, "%s: %s", shown, strerror(errno));
        }
        return in_folder(r, real, clean, variant, out);
    }
    if (crdi_ends_with(path, ".ssd")) {
        if (variant) { return sibling(r, path, variant, out); }
        out->path = crdi_arena_text(&r->arena, path, strlen(path));
        out->shown = clean;
        return out->path ? CRD_OK : CRD_E_MEMORY;
    }
    const char* folder = NULL;
    const crd_status st = unpack(r, path, shown, &folder);
    return st < 0 ? st : in_folder(r, folder, clean, variant, out);
}

// ---- sources -----------------------------------------------------------------------------------

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// In place. false: a zero byte.
static bool decode(char* text)
{
    char* to = text;
    for (const char* p = text; *p; p++) {
        const int high = *p == '%' ? hex(p[1]) : -1;
        const int low = high >= 0 ? hex(p[2]) : -1;
        if (low < 0) {
            *to++ = *p == '\\' ? '/' : *p; // a '%' that means itself is forgiven, as is a '\'
            continue;
        }
        if (high == 0 && low == 0) { return false; }
        *to++ = (char)(high << 4 | low);
        p += 2;
    }
    *to = 0;
    return true;
}

// Without "." and "..", in place; ".." at the beginning of a relative path stays.
static void normalize(char* path)
{
    const bool absolute = *path == '/';
    const char* p = path;
    char* floor = path + absolute; // what ".." cannot take away
    char* to = floor;
    while (*p) {
        p += strspn(p, "/");
        const size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.' && (to > floor || absolute)) {
            while (to > floor && *--to != '/') {}
        } else if (n > 0 && !(n == 1 && *p == '.')) {
            if (to > path && to[-1] != '/') { *to++ = '/'; }
            memmove(to, p, n);
            to += n;
            if (n == 2 && memcmp(to - 2, "..", 2) == 0) { floor = to; }
        }
        p += n;
    }
    *to = 0;
}

// Length of "scheme:", 0 if there is none.
static size_t scheme_length(const char* text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (n && strchr("+-.", text[n]) && text[n])) {
        n++;
    }
    return n && isalpha((unsigned char)text[0]) && text[n] == ':' ? n + 1 : 0;
}

static bool inside(const char* path, const char* root)
{
    const size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || !path[n]);
}

// A folder of the user's may lead to others beside it, as a lone .ssd may; what came out of an
// archive never does.
static bool is_users_folder(const crdi_ssp_reader* r, const char* root)
{
    return crdi_ssp_is_folder(root) && !(r->s->scratch && inside(root, r->s->scratch));
}

crd_status crdi_ssp_resolve(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                            const char* source, crdi_ssp_uri* out)
{
    const crdi_shown shown = crdi_show(source);
    const char* rest = source;
    const size_t scheme = scheme_length(source);
    const char* local = strstr(source, "?file=");
    if (scheme == 9 && strncasecmp(source, "proxyfmu:", 9) == 0 && local &&
        (strncmp(rest + 9, "//localhost", 11) == 0 || strncmp(rest + 9, "//127.0.0.1", 11) == 0)) {
        crdi_log(r->ctx, CRD_LOG_WARNING,
                 "%s:%d: source '%s': the file is run here, not by a proxy", d->shown, e->line,
                 shown.text);
        rest = local + 6;
    } else if (scheme) {
        if (scheme != 5 || strncasecmp(source, "file:", 5) != 0) {
            return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, d, e,
                                "source '%s': only files are read, expected a relative path",
                                shown.text);
        }
        rest += scheme;
        if (strncmp(rest, "//localhost/", 12) == 0) { rest += 11; }
        if (strncmp(rest, "///", 3) == 0) { rest += 2; }
        if (strncmp(rest, "//", 2) == 0) {
            return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, d, e,
                                "source '%s' is on another machine, expected file:///path",
                                shown.text);
        }
    }
    const size_t n = strcspn(rest, "#");
    char* path = crdi_arena_text(&r->arena, rest, n);
    char* fragment =
        crdi_arena_text(&r->arena, rest[n] ? rest + n + 1 : "", rest[n] ? strlen(rest + n + 1) : 0);
    if (!path || !fragment) { return CRD_E_MEMORY; }
    if (!decode(path) || !decode(fragment)) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "source '%s' has a zero byte in it", shown.text);
    }
    *out = (crdi_ssp_uri){.path = "", .shown = d->shown, .fragment = fragment};
    if (!path[0]) { return CRD_OK; }
    const bool absolute = path[0] == '/';
    char* whole = crdi_arena_format(&r->arena, "%s%s", absolute ? "" : d->folder, path);
    char* seen = crdi_arena_format(&r->arena, "%s%s", absolute ? "" : d->shown_folder, path);
    if (!whole || !seen) { return CRD_E_MEMORY; }
    normalize(whole);
    if (d->root && !inside(whole, d->root) && (absolute || !is_users_folder(r, d->root))) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e,
                            "source '%s' leaves the package, expected a path inside of it",
                            shown.text);
    }
    out->path = whole;
    out->shown = seen;
    return CRD_OK;
}

crd_status crdi_ssp_need(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                         const char* what, const crdi_ssp_uri* uri)
{
    struct stat info;
    if (r->no_files || (uri->path[0] && stat(uri->path, &info) == 0)) { return CRD_OK; }
    const bool missing = !uri->path[0] || errno == ENOENT || errno == ENOTDIR;
    return crdi_ssp_bad(r, missing ? CRD_E_NOT_FOUND : CRD_E_IO, d, e, "%s: %s '%s'", what,
                        missing ? "there is no file" : strerror(errno), crdi_show(uri->shown).text);
}

// ---- documents ---------------------------------------------------------------------------------

crd_status crdi_ssp_read_file(crd_context* ctx, const char* path, const char* shown, crd_text* out)
{
    return crdi_file_read(ctx, path,
                          &(crdi_file_need){.what = "a document of an SSP",
                                            .most = MAX_DOCUMENT_BYTES,
                                            .shown = shown},
                          out);
}

crd_status crdi_ssp_parse_xml(crd_context* ctx, const char* text, size_t length, const char* file,
                              crdi_xml** out)
{
    static const crdi_xml_prefix usual[] = {
        {"ssd", CRDI_SSD}, {"ssc", CRDI_SSC}, {"ssv", CRDI_SSV},
        {"ssm", CRDI_SSM}, {"ssb", CRDI_SSB}, {"xsi", "http://www.w3.org/2001/XMLSchema-instance"}};
    return crdi_xml_parse_lenient(ctx, text, length, file, usual, sizeof usual / sizeof *usual,
                                  out);
}

crd_status crdi_ssp_add_text(crdi_ssp_reader* r, const char* text, size_t length, const char* path,
                             const char* shown, const char* root, crdi_ssp_root kind,
                             crdi_document** out)
{
    crdi_document* d = crdi_arena_new(&r->arena, 1, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    d->path = crdi_arena_text(&r->arena, path, strlen(path));
    d->folder = crdi_arena_text(&r->arena, path, crdi_folder_length(path));
    d->shown = crdi_ssp_keep(r, shown);
    d->shown_folder = crdi_arena_text(&r->arena, shown, crdi_folder_length(shown));
    d->root = root;
    crdi_map_init(&d->ids, r->ctx);
    if (!d->path || !d->folder || !d->shown || !d->shown_folder) { return CRD_E_MEMORY; }
    crd_status st = crdi_ssp_parse_xml(r->ctx, text, length, shown, &d->xml);
    if (st < 0) { return st; }
    d->next = r->documents;
    r->documents = d;
    st = crdi_ssp_check(r->ctx, d->xml, kind);
    if (st >= 0) { st = crdi_ssp_read_units(r, d->xml->root, &d->units); }
    *out = d;
    return st;
}

static bool find_document(crdi_ssp_reader* r, const char* path, crdi_document** out, int* count)
{
    *count = 0;
    for (crdi_document* d = r->documents; d; d = d->next, ++*count) {
        if (strcmp(d->path, path) == 0) {
            *out = d;
            return true;
        }
    }
    return false;
}

static crd_status package_check_count(crdi_ssp_reader* r, int count, const char* shown)
{
    if (count < MAX_DOCUMENTS) { return CRD_OK; }
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s: more than %d files belong to the system", shown,
                     MAX_DOCUMENTS);
}

// What a file that was read before is may be asked for as something else.
static crd_status check_root(crdi_ssp_reader* r, const crdi_document* d, crdi_ssp_root kind)
{
    static const char* const spaces[] = {CRDI_SSD, CRDI_SSV, CRDI_SSM, CRDI_SSB};
    if (strcmp(d->xml->root->space, spaces[kind]) == 0) { return CRD_OK; }
    return crdi_ssp_check(r->ctx, d->xml, kind);
}

crd_status crdi_ssp_open(crdi_ssp_reader* r, const char* path, const char* shown, const char* root,
                         crdi_ssp_root kind, crdi_document** out)
{
    int count = 0;
    if (find_document(r, path, out, &count)) { return check_root(r, *out, kind); }
    crd_text text;
    crd_text_init(&text, r->ctx);
    crd_status st = package_check_count(r, count, shown);
    if (st >= 0) { st = crdi_ssp_read_file(r->ctx, path, shown, &text); }
    if (st >= 0) {
        st = crdi_ssp_add_text(r, text.data, text.length, path, shown, root, kind, out);
    }
    crd_text_clear(&text);
    return st;
}

crd_status crdi_ssp_open_inside(crdi_ssp_reader* r, const char* archive, const char* entry,
                                const char* shown, crdi_ssp_root kind, crdi_document** out)
{
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    char* text = NULL;
    size_t length = 0;
    int count = 0;
    char* path = crdi_arena_format(&r->arena, "%s/%s", archive, entry);
    if (!path) { return CRD_E_MEMORY; }
    if (find_document(r, path, out, &count)) { return check_root(r, *out, kind); }
    CRD_TRY(package_check_count(r, count, shown));
    CRD_TRY(crdi_archive_open(r->ctx, archive, &crdi_ssp_limits, &a));
    const int32_t index = crdi_archive_find(a, entry);
    if (index < 0) {
        CRD_TRY(
            crdi_fail(r->ctx, CRD_E_NOT_FOUND, "%s: there is no such file in the archive", shown));
    }
    CRD_TRY(crdi_archive_read(a, index, MAX_DOCUMENT_BYTES, &text, &length));
    CRD_TRY(crdi_ssp_add_text(r, text, length, path, shown, archive, kind, out));
fail:
    crd_free(r->ctx, text);
    crdi_archive_close(a);
    return st;
}
