// Which file is what, and systems out of files.
#include "cardan/results.h"
#include "cardan/system.h"
#include "cli/cli.h"
#include "shared/archive.h"
#include "shared/base_path.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The beginning of a file, zero-terminated.
static crd_status read_head(crd_context* ctx, const char* path, char* head, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, size - 1);
    const int error = errno;
    if (fd >= 0) { close(fd); }
    if (n < 0) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(error)); }
    head[n] = 0;
    return CRD_OK;
}

static bool has_file(const char* folder, const char* name)
{
    struct stat st;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) == 0;
}

static crd_status detect_folder(crd_context* ctx, const char* path, crdi_file_kind* out)
{
    if (has_file(path, "modelDescription.xml")) {
        *out = CRDI_FILE_FMU;
    } else if (has_file(path, "SystemStructure.ssd")) {
        *out = CRDI_FILE_SSP;
    } else if (has_file(path, "OspSystemStructure.xml")) {
        *out = CRDI_FILE_OSP;
    } else {
        return crdi_fail(
            ctx, CRD_E_FORMAT,
            "%s: a folder without modelDescription.xml and without "
            "SystemStructure.ssd or OspSystemStructure.xml, so neither an unpacked FMU nor an "
            "unpacked SSP",
            path);
    }
    return CRD_OK;
}

// An archive without a telling name: an SSP has its structure at the root, a DCP slave one folder.
static crdi_file_kind detect_archive(crd_context* ctx, const char* path)
{
    crdi_archive* a = NULL;
    const crdi_archive_limits limits = {.max_unpacked = UINT64_MAX, .max_entries = 100000};
    if (crdi_archive_open(ctx, path, &limits, &a) < 0) { return CRDI_FILE_FMU; } // who says why
    const bool ssp = crdi_archive_find(a, "SystemStructure.ssd") >= 0;
    const bool dcp = crdi_archive_find(a, "v1.0/dcpSlaveDescription.dcpx") >= 0;
    crdi_archive_close(a);
    return ssp ? CRDI_FILE_SSP : dcp ? CRDI_FILE_DCP : CRDI_FILE_FMU;
}

// By the first bytes. false: they do not tell.
static bool detect_content(crd_context* ctx, const char* path, const char* head,
                           crdi_file_kind* out)
{
    if (strncmp(head, "MDF ", 4) == 0 || strncmp(head, "UnFinMF ", 8) == 0 ||
        strncmp(head, "MATLAB 5", 8) == 0 || strncmp(head, "MATLAB 7", 8) == 0 ||
        strncmp(head, "\x89HDF\r\n", 6) == 0) {
        *out = CRDI_FILE_RECORDING;
    } else if (strncmp(head, "PK\3\4", 4) == 0) {
        *out = detect_archive(ctx, path);
    } else if (strstr(head, "<fmiModelDescription")) {
        *out = CRDI_FILE_FMU;
    } else if (strstr(head, "SystemStructureDescription")) {
        *out = CRDI_FILE_SSP;
    } else if (strstr(head, "<OspSystemStructure")) {
        *out = CRDI_FILE_OSP;
    } else if (strstr(head, "dcpSlaveDescription")) {
        *out = CRDI_FILE_DCP;
    } else {
        return false;
    }
    return true;
}

// A table starts with a line of names, or a line of numbers after its comments; a description has
// keys with colons.
static bool looks_like_table(char* head)
{
    char* line = head;
    while (*line == '#' || *line == '\r' || *line == '\n') {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    line[strcspn(line, "\r\n")] = 0;
    if (strchr(line, ':')) { return false; }
    line += strspn(line, " ");
    return strpbrk(line, ",;\t") || crdi_number_prefix(line) > 0;
}

crd_status crdi_file_detect(crd_context* ctx, const char* path, crdi_file_kind* out)
{
    static const struct {
        const char* ending;
        crdi_file_kind kind;
    } endings[] = {
        {".csv", CRDI_FILE_RECORDING}, {".tsv", CRDI_FILE_RECORDING}, {".mf4", CRDI_FILE_RECORDING},
        {".mat", CRDI_FILE_RECORDING}, {".yaml", CRDI_FILE_SYSTEM},   {".yml", CRDI_FILE_SYSTEM},
        {".fmu", CRDI_FILE_FMU},       {".ssp", CRDI_FILE_SSP},       {".ssd", CRDI_FILE_SSP},
        {".ssv", CRDI_FILE_SSV},       {".ssm", CRDI_FILE_SSM},       {".dcpx", CRDI_FILE_DCP},
        {".dcp", CRDI_FILE_DCP},       {".mdf", CRDI_FILE_RECORDING}};
    struct stat info;
    if (stat(path, &info) != 0) {
        const crd_status st = errno == ENOENT || errno == ENOTDIR ? CRD_E_NOT_FOUND : CRD_E_IO;
        return crdi_fail(ctx, st, "%s: %s", path,
                         st == CRD_E_NOT_FOUND ? "no such file" : strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) { return detect_folder(ctx, path, out); }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (crdi_ends_with(path, endings[i].ending)) {
            *out = endings[i].kind;
            return CRD_OK;
        }
    }
    if (crdi_is_circuit(path)) {
        *out = CRDI_FILE_CIRCUIT;
        return CRD_OK;
    }
    if (!S_ISREG(info.st_mode)) { // what is read from a pipe is gone
        *out = CRDI_FILE_PIPE;
        return CRD_OK;
    }
    char head[4096];
    const crd_status st = read_head(ctx, path, head, sizeof head);
    if (st < 0 || detect_content(ctx, path, head, out)) { return st; }
    if (crdi_ends_with(path, ".xml")) {
        *out = CRDI_FILE_FMU;
        return CRD_OK;
    }
    *out = looks_like_table(head) ? CRDI_FILE_RECORDING : CRDI_FILE_SYSTEM;
    return CRD_OK;
}

bool crdi_same_file(const char* a, const char* b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

crd_status crdi_refuse_overwriting(crd_context* ctx, const char* output, const char* input,
                                   const char* what, const char* of)
{
    if (!input || !crdi_same_file(output, input)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: %s would overwrite %s; choose another file with --output", output, what,
                     of);
}

// "." and ".." have no name of their own: the folder's. NULL: the path is good as it is.
static char* real_folder(const char* path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] == '.') {
        begin--;
    }
    const bool dots = end > begin && end - begin <= 2 && (begin == 0 || path[begin - 1] == '/');
    return dots ? realpath(path, NULL) : NULL;
}

const char* crdi_file_stem(crd_arena* a, const char* path)
{
    if (strcmp(path, "-") == 0) { return crdi_arena_text(a, "system", 6); }
    char* folder = real_folder(path);
    if (folder) {
        const char* name = strrchr(folder, '/') + 1;
        const char* copy = crdi_arena_text(a, name, strlen(name));
        free(folder);
        return copy;
    }
    size_t length;
    const char* stem = crdi_path_stem(path, &length);
    return crdi_arena_text(a, stem, length);
}

static crd_status load_fmu(crd_context* ctx, const char* path, crd_system** out)
{
    if (crdi_ends_with(path, ".xml")) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: a description alone cannot be run; expected an .fmu or the folder of "
                         "an unpacked one",
                         path);
    }
    char* folder = real_folder(path);
    const crd_status st = crd_system_of_fmu(ctx, folder ? folder : path, out);
    free(folder);
    return st;
}

// A description out of a pipe; its paths are relative to the current folder.
static crd_status load_stdin(crd_context* ctx, crd_system** out)
{
    static const crdi_file_need need = {.what = "a description", .most = 256 << 20, .pipes = true};
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = crdi_file_read_from(ctx, STDIN_FILENO, "standard input", &need, &text);
    if (st >= 0) {
        st = crd_system_load_on(ctx, text.data, text.length, "standard input", crd_ssp_read, out);
    }
    crd_text_clear(&text);
    return st;
}

static crd_status load_any(crd_context* ctx, const char* path, const char* variant,
                           crd_system** out)
{
    crdi_file_kind kind = CRDI_FILE_SYSTEM;
    const char* what = "a recording";
    if (strcmp(path, "-") != 0) {
        const crd_status st = crdi_file_detect(ctx, path, &kind);
        if (st < 0) { return st; }
    }
    if (variant && kind != CRDI_FILE_SSP) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--variant %s: %s is not an SSP; only packages have variants (in YAML the "
                         "key 'variant' stands beside 'system')",
                         variant, path);
    }
    switch (kind) {
    case CRDI_FILE_FMU:
        return load_fmu(ctx, path, out);
    case CRDI_FILE_SSP:
    case CRDI_FILE_OSP:
        return crd_ssp_load(ctx, path, variant, out);
    case CRDI_FILE_SYSTEM:
    case CRDI_FILE_PIPE:
        return strcmp(path, "-") == 0 ? load_stdin(ctx, out)
                                      : crd_system_load_on(ctx, NULL, 0, path, crd_ssp_read, out);
    case CRDI_FILE_SSV:
    case CRDI_FILE_SSM:
        what = "parameters alone";
        break;
    case CRDI_FILE_DCP:
        what = "the description of a DCP slave";
        break;
    case CRDI_FILE_CIRCUIT:
        return crd_system_of_circuit(ctx, path, out);
    case CRDI_FILE_RECORDING:
        break;
    }
    return crdi_fail(
        ctx, CRD_E_FORMAT,
        "%s: %s cannot be run; expected a system description (.yaml), an SSP, an FMU or a netlist",
        path, what);
}

static int isolation = -1; // what --isolate says: one command in a process, and all that it loads

void crdi_choose_isolation(int which)
{
    isolation = which;
}

void crdi_apply_isolation(crd_system* s)
{
    if (isolation >= 0) { s->run.isolate = (crd_isolation)isolation; }
}

crd_status crdi_load_variant(crd_context* ctx, const char* path, const char* variant,
                             crd_system** out)
{
    const crd_status st = load_any(ctx, path, variant, out);
    if (st >= 0) { crdi_apply_isolation(*out); }
    return st;
}

crd_status crdi_load_system(crd_context* ctx, const char* path, crd_system** out)
{
    return crdi_load_variant(ctx, path, NULL, out);
}

crd_status crdi_apply_parameters(crd_system* s, const char* text)
{
    struct stat info;
    const char* colon = strrchr(text, ':');
    if (!colon || stat(text, &info) == 0) { return crd_ssp_apply(s, text, NULL); }
    if (colon == text || !colon[1]) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "--parameters '%s', expected FILE.ssv:FILE.ssm",
                         text);
    }
    const char* ssv = crdi_arena_text(&s->arena, text, (size_t)(colon - text));
    return ssv ? crd_ssp_apply(s, ssv, colon + 1) : CRD_E_MEMORY;
}

crd_status crdi_apply_set(crd_system* s, const char* text)
{
    const crd_place place = {.file = "--set"};
    const char* equals = strchr(text, '=');
    if (!equals || equals == text) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "--set '%s', expected %s=value", text,
                         s->single ? "variable" : "unit.variable");
    }
    const char* name = crdi_arena_text(&s->arena, text, (size_t)(equals - text));
    if (!name) { return CRD_E_MEMORY; }
    int unit = 0;
    const char* variable = name;
    if (!s->single) {
        const crd_status st = crd_system_split(s, name, place, &unit, &variable);
        if (st < 0) { return st; }
    }
    return crd_system_set(s, unit, variable, equals + 1, place);
}

crd_status crdi_check_times(const crd_system* s)
{
    const crd_run_spec* r = &s->run;
    if (r->stop < r->start || (isnan(r->start) && r->stop < 0)) { // false for NaN, see the header
        return crdi_fail(
            s->ctx, CRD_E_RANGE,
            "%s%sthe stop time %g s is before the start time %g s, expected a later one", s->file,
            *s->file ? ": " : "", r->stop, isnan(r->start) ? 0 : r->start);
    }
    return CRD_OK;
}

bool crdi_match_any(const crdi_list* patterns, const char* name)
{
    for (int i = 0; i < patterns->count; i++) {
        if (crdi_glob(patterns->items[i], name)) { return true; }
    }
    return patterns->count == 0;
}

crd_status crdi_check_names(crd_context* ctx, const crdi_list* patterns, const char* path,
                            const char* what, const char* (*name)(const void* user, int i),
                            const void* user, int count)
{
    for (int i = 0; i < patterns->count; i++) {
        int k = 0;
        while (k < count && !crdi_glob(patterns->items[i], name(user, k))) {
            k++;
        }
        if (k == count) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no %s of %s",
                             patterns->items[i], what, path);
        }
    }
    return CRD_OK;
}

typedef struct columns {
    crd_table* const* tables;
    int count, table, column;
} columns;

static const char* cli_files_next_column(void* user)
{
    columns* c = user;
    while (c->table < c->count) {
        const crd_table* t = c->tables[c->table];
        if (c->column < t->column_count) { return t->columns[c->column++].name; }
        c->table++;
        c->column = 0;
    }
    return NULL;
}

crd_status crdi_check_patterns(crd_context* ctx, const crdi_list* patterns,
                               crd_table* const* tables, int count)
{
    for (int i = 0; i < patterns->count; i++) {
        const char* pattern = patterns->items[i];
        columns c = {.tables = tables, .count = count};
        const char* name = cli_files_next_column(&c);
        while (name && !crdi_glob(pattern, name)) {
            name = cli_files_next_column(&c);
        }
        if (name) { continue; }
        c = (columns){.tables = tables, .count = count};
        const char* near = crdi_nearest(pattern, cli_files_next_column, &c);
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no signal%s%s%s", pattern,
                         near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    return CRD_OK;
}
