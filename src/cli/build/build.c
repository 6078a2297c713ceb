// cardan build: the sources of an FMU as a binary for this machine.
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/build/build.h"
#include "cli/cli.h"
#include "shared/archive.h"
#include "shared/base_system.h"
#include "shared/fmi_build.h"

enum { DEEPEST = 32 };

typedef struct build_options {
    crdi_common common;
    const char *output, *platforms;
    bool clean_cache;
} build_options;

// ---- the FMU with its new binaries -------------------------------------------------------------

// One binary: of an interface and a platform.
typedef struct binary {
    const char* interface;
    crdi_fmu_build build;
} binary;

enum { MOST_BINARIES = 16 };

typedef struct binaries {
    binary items[MOST_BINARIES];
    int count;
} binaries;

typedef struct package {
    crd_context* ctx;
    crdi_archive_writer* to;
    const char* folder;
    const binaries* made;
} package;

static bool is_replaced(const package* p, const char* name, int before)
{
    for (int i = 0; i < before; i++) {
        if (strcmp(p->made->items[i].build.name, name) == 0) { return true; }
    }
    return false;
}

// Everything below `name` ("": the whole FMU), in an order that is always the same.
static crd_status add_folder(package* p, const char* name, int depth)
{
    char path[PATH_MAX], inner[PATH_MAX], file[PATH_MAX];
    struct dirent** list = NULL;
    if (depth == DEEPEST || snprintf(path, sizeof path, "%s/%s", p->folder, name) >= PATH_MAX) {
        return crdi_fail(p->ctx, CRD_E_UNSUPPORTED, "%s/%s: nested too deep", p->folder, name);
    }
    const int n = scandir(path, &list, NULL, crdi_by_entry);
    crd_status st = n < 0 ? crdi_fail(p->ctx, CRD_E_IO, "%s: cannot be read", path) : CRD_OK;
    for (int i = 0; i < n; i++) {
        const char* own = list[i]->d_name;
        struct stat s;
        if (st == CRD_OK && strcmp(own, ".") != 0 && strcmp(own, "..") != 0 &&
            snprintf(inner, sizeof inner, "%s%s%s", name, *name ? "/" : "", own) < PATH_MAX &&
            snprintf(file, sizeof file, "%s/%s", path, own) < PATH_MAX && lstat(file, &s) == 0) {
            if (S_ISDIR(s.st_mode)) {
                st = add_folder(p, inner, depth + 1);
            } else if (S_ISREG(s.st_mode) && !is_replaced(p, inner, p->made->count)) {
                st = crdi_archive_add_file(p->to, inner, file);
            }
        }
        free(list[i]);
    }
    free(list);
    return st;
}

static crd_status write_fmu(crd_context* ctx, const crd_fmu* f, const binaries* made,
                            const char* path)
{
    crd_status st = CRD_OK;
    package p = {.ctx = ctx, .folder = crd_fmu_folder(f), .made = made};
    CRD_TRY(crdi_archive_create(ctx, path, &p.to));
    CRD_TRY(add_folder(&p, "", 0));
    for (int i = 0; i < made->count; i++) {
        const crdi_fmu_build* b = &made->items[i].build;
        if (is_replaced(&p, b->name, i)) { continue; } // one library for both interfaces
        CRD_TRY(crdi_archive_add_file(p.to, b->name, b->library));
    }
    CRD_TRY(crdi_archive_finish(p.to));
fail:
    crdi_archive_discard(p.to);
    return st;
}

// ---- platforms ---------------------------------------------------------------------------------

static crd_status build_platform(crd_context* ctx, crd_fmu* f, const crdi_platform* platform,
                                 binaries* made)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    const bool has[2] = {d->has_cosimulation, d->has_model_exchange};
    crd_status st = CRD_OK;
    for (int i = 0; i < 2 && st == CRD_OK; i++) {
        if (!has[i]) { continue; }
        binary* b = &made->items[made->count];
        b->interface = i ? "Model Exchange" : "Co-Simulation";
        st = crdi_fmu_build_library(f, i, platform, ctx, &b->build);
        made->count += st == CRD_OK;
    }
    return st;
}

static crd_status unknown_platform(crd_context* ctx, const char* word, size_t n)
{
    crd_text known;
    crd_text_init(&known, ctx);
    const crdi_platform* p;
    for (int i = 0; (p = crdi_platform_at(i)); i++) {
        crdi_text_add(&known, "%s%s", i ? ", " : "", p->fmi3);
    }
    const crd_status st = crdi_fail(
        ctx, CRD_E_RANGE, "--platforms: '%.*s' is none of those that can be built for: %s",
        (int)(n < 80 ? n : 80), word, known.data ? known.data : "");
    crd_text_clear(&known);
    return st;
}

// "aarch64-linux,linux64": each once, whatever it is called. `others`: not for this machine.
static crd_status build_platforms(crd_context* ctx, crd_fmu* f, const char* list, bool others,
                                  binaries* made)
{
    const crdi_platform* seen[MOST_BINARIES / 2];
    int count = 0;
    for (const char* p = list;; p++) {
        const size_t n = strcspn(p, ",");
        const crdi_platform* found = crdi_platform_find(p, n);
        if (!found) { return unknown_platform(ctx, p, n); }
        bool again = others && found == crdi_platform_own();
        for (int i = 0; i < count; i++) {
            again = again || seen[i] == found;
        }
        if (!again) {
            seen[count++] = found;
            const crd_status st = build_platform(ctx, f, found, made);
            if (st < 0) { return st; }
        }
        p += n;
        if (!*p) { return CRD_OK; }
    }
}

crd_status crdi_add_platforms(crd_context* ctx, const char* fmu, const char* platforms,
                              const char* output)
{
    crd_status st = CRD_OK;
    crd_fmu* f = NULL;
    binaries made = {.count = 0};
    CRD_TRY(crd_fmu_open(ctx, fmu, NULL, &f));
    CRD_TRY(build_platforms(ctx, f, platforms, true, &made));
    CRD_TRY(write_fmu(ctx, f, &made, output));
fail:
    crd_fmu_close(f);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status build_fmu(crdi_cli* cli, const build_options* o, const char* path,
                            crdi_result* out)
{
    static const crdi_column columns[] = {{"interface", "interface", ""},
                                          {"binary", "library", ""},
                                          {"made before", "cached", ""},
                                          {"stored as", "stored", ""},
                                          {0}};
    crd_status st = CRD_OK;
    crd_fmu* f = NULL;
    binaries made = {.count = 0};
    CRD_TRY(crd_fmu_open(cli->ctx, path, NULL, &f));
    if (!crdi_fmu_has_sources(f)) {
        CRD_TRY(
            crdi_fail(cli->ctx, CRD_E_UNSUPPORTED, "%s: the FMU has no sources to compile", path));
    }
    CRD_TRY(o->platforms ? build_platforms(cli->ctx, f, o->platforms, false, &made)
                         : build_platform(cli->ctx, f, NULL, &made));
    if (o->output) { CRD_TRY(write_fmu(cli->ctx, f, &made, o->output)); }
    crdi_result* list = crdi_array(out, "binaries");
    for (int i = 0; i < made.count; i++) {
        const binary* b = &made.items[i];
        crdi_put(crdi_row(list), TEXT("interface", b->interface), TEXT("library", b->build.name),
                 TEXT("stored", b->build.library), BOOL("cached", b->build.cached));
    }
    crdi_show_table(out, list, columns, "");
    crdi_put(out, TEXT("fmu", path), TEXT("output", o->output));
    if (o->output) { crdi_say(out, "written: %s\n", o->output); }
fail:
    crd_fmu_close(f);
    return st;
}

static crd_status run_build(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const build_options* o = options;
    if (!o->clean_cache && arguments->count == 0) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "build wants an FMU, or --clean-cache");
    }
    if (o->clean_cache) {
        int64_t files = 0, bytes = 0;
        const crd_status st = crdi_fmu_forget_builds(cli->ctx, &files, &bytes);
        crdi_put(out, INT("removed", files), INT("removed_bytes", bytes));
        crdi_say(out, "removed: %lld file%s, %.1f MB\n", (long long)files, crdi_plural(files),
                 1e-6 * (double)bytes);
        if (st < 0 || arguments->count == 0) { return st; }
    }
    return build_fmu(cli, o, arguments->items[0], out);
}

static const crdi_option rows[] = {
    OPT_FILE(build_options, output, "output", "fmu",
             "write the FMU with its new binaries to this file", .short_name = 'o'),
    OPT_TEXT(
        build_options, platforms, "platforms", "NAMES",
        "compile for these, names between commas as in aarch64-linux,aarch32-linux, instead of "
        "this machine; each needs a compiler ($CC_aarch64_linux, or Debian's "
        "aarch64-linux-gnu-gcc)"),
    OPT_FLAG(build_options, clean_cache, "clean-cache",
             "forget what was compiled before, for all FMUs"),
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("what was made, as JSON"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_build = {
    .name = "build",
    .arguments = "FMU",
    .summary = "compile the sources of an FMU for this machine",
    .description =
        "Compiles what an FMU lists in sources/buildDescription.xml (FMI 3.0), in <SourceFiles> "
        "(FMI 2.0), or has in sources/ (all.c, or else every file), with $CC, cc, gcc or clang and "
        "for C++ $CXX, c++, g++ or clang++. A run does the same by itself when it meets an FMU "
        "that has sources and no binary for this machine.\n"
        "The compiler runs in a sandbox: it reads the sources and the system's files, writes a "
        "folder that goes away, has no network, and is ended after 300 s for a file, 600 s "
        "altogether or beyond 4 GB of memory. Headers of the standard that the FMU does not "
        "bring are there. The binary is stored in $XDG_CACHE_HOME/cardan/fmus (~/.cache unless "
        "set) and found again as long as sources, compiler and options are the same.",
    .examples = {{"cardan build pump.fmu", "see whether it compiles, for runs that follow"},
                 {"cardan build pump.fmu -o linux/pump.fmu", "an FMU with a binary for Linux"},
                 {"cardan build pump.fmu --platforms aarch64-linux -o pump-arm.fmu",
                  "an FMU with a binary for 64-bit ARM beside those that it has"},
                 {"cardan build --clean-cache", "forget all that was compiled"}},
    OPTIONS(rows, build_options),
    .min_arguments = 0,
    .max_arguments = 1,
    .extensions = "fmu",
    .run = run_build,
};
