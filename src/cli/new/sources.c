// What the arguments of `cardan new` are: files by their kind, folders by what is in them.
#include "cli/new/new.h"
#include "shared/base_path.h"
#include "shared/base_system.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct collector {
    crd_context* ctx;
    crdi_sources* s;
    bool here;   // the description will be in the current folder
    int pending; // index of a DCP slave that has an address and no description, or the other way
} collector;

static crdi_source* add_source(collector* c, const char* path)
{
    crdi_sources* s = c->s;
    crdi_source* grown =
        crdi_grow(c->ctx, s->items, &s->capacity, (size_t)s->count + 1, sizeof *grown);
    const char* copy = crdi_arena_text(s->arena, path, strlen(path));
    if (!grown || !copy) { return NULL; }
    s->items = grown;
    s->items[s->count] = (crdi_source){.path = copy, .name = ""};
    return &s->items[s->count++];
}

static bool is_taken(const crdi_sources* s, const char* name)
{
    for (int i = 0; i + 1 < s->count; i++) {
        if (s->items[i].flow && strcmp(s->items[i].name, name) == 0) { return true; }
    }
    return false;
}

// Letters, digits and _ of the stem; a number behind it if somebody has it already.
static const char* name_of(collector* c, const char* stem)
{
    char base[48], name[64];
    size_t n = 0;
    for (; *stem && n + 1 < sizeof base; stem++) {
        const unsigned char x = (unsigned char)*stem;
        if (n == 0 && isdigit(x)) { base[n++] = '_'; }
        base[n++] = isalnum(x) && x < 0x80 ? (char)x : '_';
    }
    base[n] = 0;
    snprintf(name, sizeof name, "%s", n ? base : "unit");
    for (int k = 2; is_taken(c->s, name); k++) {
        snprintf(name, sizeof name, "%.48s_%d", n ? base : "unit", k);
    }
    return crdi_arena_text(c->s->arena, name, strlen(name));
}

// As the description will say it.
static const char* written_path(collector* c, const char* path)
{
    char* real = c->here || path[0] == '/' ? NULL : realpath(path, NULL);
    const char* p = crdi_arena_text(c->s->arena, real ? real : path, strlen(real ? real : path));
    free(real);
    return p;
}

static crd_status make_unit(collector* c, crdi_source* x, const char* stem, const char* key,
                            const char* value, const char* key2, const char* value2)
{
    x->name = name_of(c, stem);
    crd_text t;
    crd_text_init(&t, c->ctx);
    crdi_flow f = {.t = &t};
    crdi_flow_text(&f, key, value);
    if (key2) { crdi_flow_text(&f, key2, value2); }
    crdi_flow_end(&f);
    x->flow = t.failed ? NULL : crdi_arena_text(c->s->arena, t.data, t.length);
    crd_text_clear(&t);
    return x->name && x->flow ? CRD_OK : CRD_E_MEMORY;
}

static crd_status refuse(collector* c, crdi_source* x, const char* why)
{
    x->failure = crdi_arena_text(c->s->arena, why, strlen(why));
    return x->failure ? CRD_OK : CRD_E_MEMORY;
}

// An address and the description that comes before or behind it are one slave.
static crd_status add_slave(collector* c, crdi_source* x, bool address)
{
    crdi_source* other = c->pending >= 0 ? &c->s->items[c->pending] : NULL;
    const bool pair = other && (strstr(other->path, "://") != NULL) != address;
    if (!pair) {
        c->pending = (int)(x - c->s->items);
        return refuse(c, x,
                      address ? "an address needs the description of its slave beside it: "
                                "cardan new udp://HOST:PORT slave.dcpx"
                              : "the description of a slave needs its address beside it: "
                                "cardan new udp://HOST:PORT slave.dcpx");
    }
    const char* file = address ? other->path : x->path;
    const char* where = address ? x->path : other->path;
    c->pending = -1;
    other->failure = NULL; // this one stands for both
    const char* stem = crdi_file_stem(c->s->arena, file);
    const char* path = written_path(c, file);
    if (!stem || !path) { return CRD_E_MEMORY; }
    return make_unit(c, x, stem, "dcp", where, "description", path);
}

static crd_status add_file(collector* c, const char* path, bool from_folder);

// The files of a folder that a system can be made of, by name.
static crd_status add_folder(collector* c, const char* path)
{
    static const char* const endings[] = {".fmu", ".csv", ".tsv", ".mf4", ".mat",
                                          ".ssp", ".cir", ".ckt", ".net", ".spice"};
    crd_status st = CRD_OK;
    crdi_list names = {0};
    const int before = c->s->count;
    DIR* folder = opendir(path);
    if (!folder) { return CRD_OK; } // who looked at it says why
    for (const struct dirent* e = readdir(folder); e && st >= 0; e = readdir(folder)) {
        bool ours = false;
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            ours = ours || (e->d_name[0] != '.' && crdi_ends_with(e->d_name, endings[i]));
        }
        const char* file = ours ? crdi_arena_format(c->s->arena, "%s%s%s", path,
                                                    crdi_ends_with(path, "/") ? "" : "/", e->d_name)
                                : NULL;
        if (ours) { st = file ? crdi_list_add(c->ctx, &names, file) : CRD_E_MEMORY; }
    }
    closedir(folder);
    if (names.count > 1) {
        qsort(names.items, (size_t)names.count, sizeof *names.items, crdi_by_text);
    }
    for (int i = 0; i < names.count && st >= 0; i++) {
        st = add_file(c, names.items[i], true);
    }
    crd_free(c->ctx, names.items);
    if (st >= 0 && c->s->count == before) {
        crdi_source* x = add_source(c, path);
        st = x ? refuse(c, x, "a folder without FMUs, recordings, netlists or an SSP")
               : CRD_E_MEMORY;
    }
    return st;
}

static crd_status add_package(collector* c, crdi_source* x)
{
    for (int i = 0; i + 1 < c->s->count; i++) {
        if (c->s->items[i].system) {
            return refuse(c, x, "a description has one SSP below it, and there is one already");
        }
    }
    x->system = true;
    x->name = written_path(c, x->path);
    return x->name ? CRD_OK : CRD_E_MEMORY;
}

static crd_status add_file(collector* c, const char* path, bool from_folder)
{
    struct stat info;
    crdi_file_kind kind = CRDI_FILE_FMU;
    const crd_status found = crdi_file_detect(c->ctx, path, &kind);
    if (found == CRD_E_FORMAT && !from_folder && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return add_folder(c, path);
    }
    crdi_source* x = add_source(c, path);
    if (!x) { return CRD_E_MEMORY; }
    if (found < 0) { return refuse(c, x, crd_error_text(c->ctx)); }
    const char* stem = crdi_file_stem(c->s->arena, path);
    const char* written = written_path(c, path);
    if (!stem || !written) { return CRD_E_MEMORY; }
    switch (kind) {
    case CRDI_FILE_FMU:
        return make_unit(c, x, stem, "fmu", written, NULL, NULL);
    case CRDI_FILE_RECORDING:
        return make_unit(c, x, stem, "replay", written, NULL, NULL);
    case CRDI_FILE_CIRCUIT:
        return make_unit(c, x, stem, "circuit", written, NULL, NULL);
    case CRDI_FILE_DCP:
        return add_slave(c, x, false);
    case CRDI_FILE_SSP:
    case CRDI_FILE_OSP:
        return add_package(c, x);
    case CRDI_FILE_SYSTEM:
        return refuse(c, x,
                      "a description already, or nothing that a system is made of; 'cardan "
                      "connect' adds connections to a description");
    case CRDI_FILE_SSV:
    case CRDI_FILE_SSM:
        return refuse(c, x, "parameters are for 'cardan run --parameters'");
    case CRDI_FILE_PIPE:
        break;
    }
    return refuse(c, x, "no file that can be read twice");
}

crd_status crdi_sources_collect(crd_context* ctx, const crdi_list* arguments, const char* output,
                                crdi_sources* out)
{
    crd_status st = CRD_OK;
    collector c = {ctx, out, crdi_folder_length(output) == 0, -1};
    for (int i = 0; i < arguments->count && st >= 0; i++) {
        const char* argument = arguments->items[i];
        if (strstr(argument, "://")) {
            crdi_source* x = add_source(&c, argument);
            st = x ? add_slave(&c, x, true) : CRD_E_MEMORY;
        } else {
            st = add_file(&c, argument, false);
        }
    }
    return st;
}
