// cardan example: systems to begin with, copied with all that they need.
//
// They lie in share/cardan/examples, beside share/cardan/fmus; in a build tree these are links to
// the sources and to the FMUs of the build. Descriptions name files of other folders by their place
// in the source tree ("../../build/fmus/fmi2/x.fmu", "../circuits/x.cir"); in a copy all files lie
// beside each other, and the names say so.
#include "cli/cli.h"
#include "shared/base_system.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_COPIED = 256 };

typedef struct copied {
    char* from; // path of the file
    const char* name;
} copied;

typedef struct example {
    crd_context* ctx;
    crd_arena arena;
    char root[PATH_MAX]; // share/cardan
    copied files[MAX_COPIED];
    int count;
    bool looking; // which files are needed; nothing is written yet
} example;

static bool is_folder(const char* path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char* path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static crd_status find_root(example* e)
{
    static const char* const places[] = {"/../share/cardan", "/share/cardan"};
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        *strrchr(self, '/') = 0;
    }
    for (size_t i = 0; n > 0 && i < sizeof places / sizeof *places; i++) {
        char folder[PATH_MAX];
        snprintf(e->root, sizeof e->root, "%.2000s%s", self, places[i]);
        snprintf(folder, sizeof folder, "%.3000s/examples", e->root);
        if (is_folder(folder)) { return CRD_OK; }
    }
    return crdi_fail(e->ctx, CRD_E_NOT_FOUND,
                     "the examples were not found beside the command, in ../share/cardan/examples");
}

#define worded(e, ...) crdi_arena_format(&(e)->arena, __VA_ARGS__) // as long as the example

// ---- list --------------------------------------------------------------------------------------

static int visible(const struct dirent* d)
{
    return d->d_name[0] != '.' && strcmp(d->d_name, "CMakeLists.txt") != 0;
}

// The heading of its README; "" if it has none, which is no example then.
static const char* heading(example* e, const char* folder)
{
    char head[256];
    const size_t n =
        crdi_file_head(worded(e, "%s/examples/%s/README.md", e->root, folder), head, sizeof head);
    if (n < 3 || strncmp(head, "# ", 2) != 0 || strcmp(folder, "models") == 0) { return ""; }
    return worded(e, "%.*s", (int)strcspn(head + 2, "\r\n"), head + 2);
}

static crd_status list(example* e, crdi_result* out)
{
    static const crdi_column columns[] = {{"", "name", NULL}, {"", "about", NULL}, {0}};
    struct dirent** found = NULL;
    const char* folder = worded(e, "%s/examples", e->root);
    const int n = scandir(folder, &found, visible, crdi_by_entry);
    if (n < 0) { return crdi_file_fail(e->ctx, folder, errno); }
    crdi_result* rows = crdi_array(out, "examples");
    for (int i = 0; i < n; i++) {
        const char* about = heading(e, found[i]->d_name);
        if (*about) {
            crdi_put(crdi_row(rows), TEXT("name", crdi_result_copy(out, found[i]->d_name)),
                     TEXT("about", crdi_result_copy(out, about)));
        }
        free(found[i]);
    }
    free((void*)found);
    crdi_show_table(out, rows, columns, "");
    crdi_say(out, "\n'cardan example copy NAME DIR' copies one with its FMUs.\n");
    return CRD_OK;
}

// ---- copy --------------------------------------------------------------------------------------

// Once; the order is that of finding.
static crd_status add_file(example* e, const char* path)
{
    const char* slash = strrchr(path, '/');
    for (int i = 0; i < e->count; i++) {
        if (strcmp(e->files[i].name, slash + 1) == 0) { return CRD_OK; }
    }
    if (e->count == MAX_COPIED) {
        return crdi_fail(e->ctx, CRD_E_RANGE, "more than %d files", MAX_COPIED);
    }
    char* own = worded(e, "%s", path);
    if (!own) { return CRD_E_MEMORY; }
    e->files[e->count++] = (copied){own, strrchr(own, '/') + 1};
    return CRD_OK;
}

static const char path_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_-./";

// Where a file that a description names by its place in the source tree is here; false: nowhere.
static bool locate(const example* e, const char* word, size_t length, char out[PATH_MAX])
{
    static const char build[] = "../../build/";
    const bool built = length > sizeof build && strncmp(word, build, sizeof build - 1) == 0;
    const size_t skip = built ? sizeof build - 1 : 3;
    snprintf(out, PATH_MAX, "%.3000s/%s%.*s", e->root, built ? "" : "examples/",
             (int)(length - skip), word + skip);
    return is_file(out);
}

// The text with the names that its files have in the copy. `e` learns which files are needed.
static crd_status translate(example* e, const char* name, const char* text, crd_text* out)
{
    crd_status st = CRD_OK;
    while (*text) {
        const size_t n = strspn(text, path_letters);
        char path[PATH_MAX];
        if (n > 3 && strncmp(text, "../", 3) == 0) {
            if (locate(e, text, n, path)) {
                CRD_TRY(add_file(e, path));
                crdi_text_add(out, "%s", strrchr(path, '/') + 1);
            } else {
                if (e->looking) {
                    crdi_log(e->ctx, CRD_LOG_WARNING,
                             "%s needs %.*s, which is not among the examples", name, (int)n, text);
                }
                crdi_text_put(out, text, n);
            }
            text += n;
        } else {
            const size_t step = n ? n : 1;
            crdi_text_put(out, text, step);
            text += step;
        }
    }
fail:
    return st;
}

static bool is_translated(const char* name)
{
    return crdi_ends_with(name, ".yaml") || crdi_ends_with(name, ".cir");
}

// One file to DIR, or (NULL) only to see what it needs.
static crd_status copy_file(example* e, const copied* c, const char* folder)
{
    crd_status st = CRD_OK;
    const crdi_file_need need = {.what = "a file of an example", .most = (size_t)1 << 30};
    crd_text bytes, translated;
    crd_text_init(&bytes, e->ctx);
    crd_text_init(&translated, e->ctx);
    if (!folder && !is_translated(c->name)) { return CRD_OK; }
    CRD_TRY(crdi_file_read(e->ctx, c->from, &need, &bytes));
    if (is_translated(c->name)) { CRD_TRY(translate(e, c->name, bytes.data, &translated)); }
    if (folder) {
        CRD_TRY(crdi_file_write(e->ctx, worded(e, "%s/%s", folder, c->name),
                                is_translated(c->name) ? &translated : &bytes));
    }
fail:
    crd_text_clear(&bytes);
    crd_text_clear(&translated);
    return st;
}

// All files of the example, or of one of its descriptions ("systems/pendula").
static crd_status choose_files(example* e, const char* name)
{
    crd_status st = CRD_OK;
    const char* slash = strchr(name, '/');
    const char* folder = worded(e, "%s/examples/%.*s", e->root,
                                (int)(slash ? (size_t)(slash - name) : strlen(name)), name);
    const char* one = slash ? worded(e, "%s/%s.yaml", folder, slash + 1) : NULL;
    struct dirent** found = NULL;
    const bool odd =
        !name[0] || name[0] == '.' || name[0] == '/' || (slash && strchr(slash + 1, '/'));
    const int n = odd ? -1 : scandir(folder, &found, visible, crdi_by_entry);
    if (n <= 0 || (one && !is_file(one))) {
        st = crdi_fail(e->ctx, CRD_E_NOT_FOUND, "no example '%s'; 'cardan example list' shows them",
                       name);
    } else if (one) {
        st = add_file(e, one);
    }
    for (int i = 0; i < n; i++) {
        const char* path = worded(e, "%s/%s", folder, found[i]->d_name);
        if (st >= 0 && !one && is_file(path) && !crdi_ends_with(path, ".sh")) {
            st = add_file(e, path);
        }
        free(found[i]);
    }
    free((void*)found);
    return st;
}

// A description that is copied alone takes along the files of its folder that it names.
static crd_status add_siblings(example* e)
{
    crd_status st = CRD_OK;
    const crdi_file_need need = {.what = "a description", .most = 1 << 20, .text = true};
    const char* path = e->files[0].from;
    const int folder = (int)(strrchr(path, '/') - path);
    crd_text text;
    crd_text_init(&text, e->ctx);
    CRD_TRY(crdi_file_read(e->ctx, path, &need, &text));
    for (const char* p = text.data; *p;) {
        const size_t n = strspn(p, path_letters);
        const char* file = worded(e, "%.*s/%.*s", folder, path, (int)n, p);
        if (n > 0 && strncmp(p, "..", 2) != 0 && is_file(file)) { CRD_TRY(add_file(e, file)); }
        p += n ? n : 1;
    }
fail:
    crd_text_clear(&text);
    return st;
}

static crd_status copy(example* e, const char* name, const char* folder, crdi_result* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(choose_files(e, name));
    if (strchr(name, '/')) { CRD_TRY(add_siblings(e)); }
    e->looking = true;
    for (int i = 0; i < e->count; i++) { // those that are found on the way, too
        CRD_TRY(copy_file(e, &e->files[i], NULL));
    }
    e->looking = false;
    for (int i = 0; i < e->count; i++) { // before anything is written
        const char* path = worded(e, "%s/%s", folder, e->files[i].name);
        if (access(path, F_OK) == 0) {
            return crdi_fail(e->ctx, CRD_E_RANGE, "%s is there already; choose another folder",
                             path);
        }
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return crdi_fail(e->ctx, CRD_E_IO, "%s: %s", folder, strerror(errno));
    }
    crdi_result* files = crdi_array(out, "files");
    for (int i = 0; i < e->count; i++) {
        CRD_TRY(copy_file(e, &e->files[i], folder));
        crdi_add(files, TEXT(NULL, crdi_result_copy(out, e->files[i].name)));
    }
    crdi_say(out, "%s: %d file%s of %s\n", folder, e->count, crdi_plural(e->count), name);
    for (int i = 0; i < e->count; i++) {
        const bool here = strcmp(folder, ".") == 0;
        char head[4096];
        (void)crdi_file_head(e->files[i].from, head, sizeof head);
        if (!crdi_ends_with(e->files[i].name, ".yaml") || !strstr(head, "\nunits:")) { continue; }
        crdi_say(out, "  cardan run %s%s%s\n", here ? "" : folder, here ? "" : "/",
                 e->files[i].name);
    }
fail:
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static const char* const example_words[] = {"list", "copy", NULL};

static crd_status run_example(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    (void)options;
    crd_status st = CRD_OK;
    const char* word = arguments->items[0];
    example* e = crdi_new(cli->ctx, sizeof *e);
    if (!e) { return CRD_E_MEMORY; }
    e->ctx = cli->ctx;
    crd_arena_init(&e->arena, cli->ctx);
    if (strcmp(word, "list") == 0 && arguments->count == 1) {
        CRD_TRY(find_root(e));
        CRD_TRY(list(e, out));
    } else if (strcmp(word, "copy") == 0 && arguments->count == 3) {
        CRD_TRY(find_root(e));
        CRD_TRY(copy(e, arguments->items[1], arguments->items[2], out));
    } else {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "expected 'cardan example list' or 'cardan example copy NAME DIR'");
    }
fail:
    crd_arena_clear(&e->arena);
    crd_free(cli->ctx, e);
    return st;
}

static const crdi_option example_rows[] = {
    CRDI_JSON_OPTION("print the names as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};
const crdi_command crdi_command_example = {
    .name = "example",
    .arguments = "list|copy [NAME DIR]",
    .summary = "list examples, copy one with all its FMUs",
    .description =
        "Lists the examples that come with Cardan, or copies one of them into a folder, which is "
        "made if need be: descriptions, recordings, netlists and the FMUs that they name, side by "
        "side, so that it runs from there. NAME is a folder (systems) or one description "
        "(systems/pendula). Files that are there already are not overwritten.",
    .examples = {{"cardan example list", "what there is"},
                 {"cardan example copy oscillator try", "a small system to change, in try/"},
                 {"cardan example copy systems/crane_fd .", "one system, into this folder"}},
    OPTIONS(example_rows, crdi_common),
    .min_arguments = 1,
    .max_arguments = 3,
    .words = example_words,
    .run = run_example,
};
