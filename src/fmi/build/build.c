// From sources to a binary: what to compile, what was compiled before, the compiler, the store.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmi/build/build.h"
#include "fmi/python.h"
#include "shared/archive.h"

enum { DEEPEST = 32 }; // folders in folders

bool crdi_fmu_has_sources(const crd_fmu* f)
{
    return f->has_sources;
}

// ---- names with a prefix -----------------------------------------------------------------------

// A name in the table of names of a library: between two zeros. Its place, or NULL.
static const char* find_name(const crd_text* t, const char* prefix, size_t length, const char* name)
{
    char text[300];
    const int n = snprintf(text + 1, sizeof text - 1, "%.*s%s", (int)length, prefix, name);
    text[0] = 0;
    return n > 0 && (size_t)n + 2 < sizeof text ? memmem(t->data, t->length, text, (size_t)n + 2)
                                                : NULL;
}

// Sources for static linking call their functions ball_fmi2DoStep, by headers older than the macro
// that would turn it off. Options for the linker that give them their names; NULL: nothing to do.
static const char* const* find_aliases(crd_arena* arena, crd_fmi_version version,
                                       const crd_text* made)
{
    const char* first = version == CRD_FMI_3 ? "fmi3GetVersion" : "fmi2GetVersion";
    if (version < CRD_FMI_2 || find_name(made, "", 0, first)) { return NULL; }
    const char* at = memmem(made->data, made->length, first, strlen(first) + 1);
    const char* begin = at;
    while (begin && begin > made->data && begin[-1]) {
        begin--;
    }
    if (!at || at - begin > 200) { return NULL; }
    int count = 0;
    while (crdi_header_function(version, count)) {
        count++;
    }
    const char** list = crdi_arena_new(arena, (size_t)count + 1, sizeof *list);
    for (int i = 0, k = 0; list && i < count; i++) {
        char name[100];
        snprintf(name, sizeof name, "fmi%d%s", (int)version, crdi_header_function(version, i));
        if (!find_name(made, begin, (size_t)(at - begin), name)) { continue; }
        list[k] = crdi_arena_format(arena, "-Wl,--defsym=%s=%.*s%s", name, (int)(at - begin), begin,
                                    name);
        if (!list[k++]) { return NULL; }
    }
    return list;
}

// ---- the steps ---------------------------------------------------------------------------------

static crd_status choose_compilers(crd_context* ctx, crd_arena* arena, crdi_compile* c)
{
    crd_status st = CRD_OK;
    bool cpp = false;
    for (size_t i = 0; i < c->recipe->count; i++) {
        cpp = cpp || c->recipe->sources[i].cpp;
    }
    CRD_TRY(crdi_compiler_find(ctx, arena, false, c->platform, &c->c));
    if (cpp) { CRD_TRY(crdi_compiler_find(ctx, arena, true, c->platform, &c->cpp)); }
fail:
    return st < 0 ? crdi_fail_in(ctx, st, "%s: it has to be compiled from its sources", c->shown)
                  : CRD_OK;
}

static crd_status compile_afresh(crd_context* ctx, crd_arena* arena, crd_fmi_version version,
                                 crdi_compile* c, crd_text* made)
{
    crd_status st = CRD_OK;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/headers", c->scratch);
    if (mkdir(path, 0700) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    CRD_TRY(crdi_headers_write(ctx, path));
    CRD_TRY(crdi_compile_run(ctx, c));
    CRD_TRY(crdi_compile_result(ctx, c, made));
    c->aliases = find_aliases(arena, version, made);
    if (c->aliases) {
        snprintf(path, sizeof path, "%s/log", c->scratch);
        (void)remove(path);
        made->length = 0;
        CRD_TRY(crdi_compile_run(ctx, c));
        CRD_TRY(crdi_compile_result(ctx, c, made));
    }
fail:
    return st;
}

// Where the binary belongs, in the private folder.
static crd_status put_beside(crd_context* ctx, crd_fmu* f, const char* name, const crd_text* bytes)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", f->folder, name) >= sizeof path) {
        return crdi_fail(ctx, CRD_E_IO, "%s: the path is too long", f->path);
    }
    for (char* p = path + strlen(f->folder) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
    return crdi_file_write(ctx, path, bytes);
}

// In the store, or in the FMU's folder if there is no store.
static crd_status store_build(crd_context* ctx, crd_fmu* f, const char* key, const crd_text* made,
                              crdi_fmu_build* out)
{
    out->library = crdi_store_add(ctx, &f->arena, key, made);
    if (out->library) { return CRD_OK; }
    if (!f->private_folder) {
        return crdi_fail(ctx, CRD_E_IO,
                         "%s: the binary that was compiled cannot be stored: say in "
                         "$XDG_CACHE_HOME where it can be written",
                         f->path);
    }
    out->library = crdi_arena_format(&f->arena, "%s/%s", f->folder, out->name);
    return out->library ? put_beside(ctx, f, out->name, made) : CRD_E_MEMORY;
}

static crd_status copy_file(crd_context* ctx, const char* from, const char* to)
{
    const crdi_file_need need = {.what = "a file", .most = SIZE_MAX / 2};
    crd_text bytes;
    crd_text_init(&bytes, ctx);
    crd_status st = crdi_file_read(ctx, from, &need, &bytes);
    if (st == CRD_OK) { st = crdi_file_write(ctx, to, &bytes); }
    crd_text_clear(&bytes);
    return st;
}

// A private copy of a folder that is a user's: that stays as it is. Links and devices are left out.
static crd_status copy_folder(crd_context* ctx, const char* from, const char* to, int depth)
{
    crd_status st = CRD_OK;
    DIR* dir = opendir(from);
    for (struct dirent* e = dir ? readdir(dir) : NULL; e && st == CRD_OK; e = readdir(dir)) {
        char source[PATH_MAX], target[PATH_MAX];
        struct stat s;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            (size_t)snprintf(source, sizeof source, "%s/%s", from, e->d_name) >= sizeof source ||
            (size_t)snprintf(target, sizeof target, "%s/%s", to, e->d_name) >= sizeof target ||
            lstat(source, &s) != 0) {
            continue;
        }
        if (S_ISDIR(s.st_mode) && depth < DEEPEST && mkdir(target, 0700) == 0) {
            st = copy_folder(ctx, source, target, depth + 1);
        } else if (S_ISREG(s.st_mode)) {
            st = copy_file(ctx, source, target);
        }
    }
    if (dir) { closedir(dir); }
    return st;
}

crd_status crdi_fmu_build_library(crd_fmu* f, bool model_exchange, const crdi_platform* platform,
                                  crd_context* ctx, crdi_fmu_build* out)
{
    crd_status st = CRD_OK;
    crdi_recipe recipe = {.arena = &f->arena};
    const crd_fmu_description* d = &f->description;
    const crdi_platform* target = platform ? platform : crdi_platform_own();
    const char* place = crdi_platform_folder(target, d->version);
    crdi_compile c = {.folder = f->folder,
                      .recipe = &recipe,
                      .platform = target == crdi_platform_own() ? NULL : target,
                      .shown = f->path,
                      .scratch = NULL};
    char key[65], binaries[PATH_MAX];
    crd_text made;
    crd_text_init(&made, ctx);
    *out = (crdi_fmu_build){.name = crdi_arena_format(&f->arena, "binaries/%s/%s.so", place,
                                                      model_exchange ? d->exchange.model_identifier
                                                                     : d->model_identifier)};
    if (!out->name) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(
        crdi_recipe_find(ctx, f, model_exchange, crdi_platform_folder(target, CRD_FMI_3), &recipe));
    struct stat s;
    if ((size_t)snprintf(binaries, sizeof binaries, "%s/binaries/%s", f->folder, place) <
            sizeof binaries &&
        stat(binaries, &s) == 0 && S_ISDIR(s.st_mode)) {
        c.binaries = binaries;
    }
    CRD_TRY(choose_compilers(ctx, &f->arena, &c));
    CRD_TRY(crdi_store_key(ctx, &c, key));
    out->library = crdi_store_find(&f->arena, key);
    out->cached = out->library != NULL;
    if (!out->cached) {
        CRD_TRY(crdi_scratch_make(&f->arena, ctx, NULL, &c.scratch));
        CRD_TRY(compile_afresh(ctx, &f->arena, d->version, &c, &made));
        CRD_TRY(store_build(ctx, f, key, &made, out));
    }
fail:
    if (c.scratch) { (void)crdi_scratch_remove(c.scratch); }
    crd_text_clear(&made);
    crdi_recipe_clear(ctx, &recipe);
    return st;
}

static crd_status make_private(crd_context* ctx, crd_fmu* f)
{
    const char* folder = NULL;
    crd_status st = crdi_scratch_make(&f->arena, ctx, NULL, &folder);
    if (st < 0) { return st; }
    st = copy_folder(ctx, f->folder, folder, 0);
    if (st < 0) {
        (void)crdi_scratch_remove(folder);
        return st;
    }
    f->folder = folder;
    f->private_folder = true;
    f->owner = getpid();
    return CRD_OK;
}

// The binary beside its resources, as if it had been there.
static crd_status provide_build(crd_fmu* f, bool model_exchange, crd_context* ctx)
{
    crd_status st = CRD_OK;
    crdi_fmu_build b;
    const crd_fmu_description* d = &f->description;
    const crdi_file_need need = {.what = "a library", .most = SIZE_MAX / 2};
    crd_text bytes;
    crd_text_init(&bytes, ctx);
    CRD_TRY(crdi_fmu_build_library(f, model_exchange, NULL, ctx, &b));
    if (!f->private_folder) { CRD_TRY(make_private(ctx, f)); }
    CRD_TRY(crdi_file_read(ctx, b.library, &need, &bytes));
    CRD_TRY(put_beside(ctx, f, b.name, &bytes));
    const bool both = strcmp(d->model_identifier, d->exchange.model_identifier) == 0;
    if (!model_exchange || both) { f->library = b.name; }
    if (model_exchange || both) { f->exchange_library = b.name; }
    crdi_log(ctx, CRD_LOG_WARNING, "%s: compiled from its sources for %s%s", f->path,
             crdi_fmu_platform(CRD_FMI_3), b.cached ? " (cached)" : "");
fail:
    crd_text_clear(&bytes);
    return st;
}

crd_status crdi_fmu_provide(crd_fmu* f, bool model_exchange, crd_context* ctx)
{
    const crd_fmu_description* d = &f->description;
    const bool has = model_exchange ? d->has_model_exchange : d->has_cosimulation;
    const char* library = model_exchange ? f->exchange_library : f->library;
    if (has && !library[0] && f->has_sources && f->folder[0]) {
        return provide_build(f, model_exchange, ctx);
    }
    char path[PATH_MAX];
    if (!f->looked_for_python && library[0] &&
        (size_t)snprintf(path, sizeof path, "%s/%s", f->folder, library) < sizeof path &&
        crdi_python_needed(path)) {
        (void)crdi_python_library(); // without it, loading will tell
    }
    f->looked_for_python = true;
    return CRD_OK;
}
