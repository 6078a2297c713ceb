// The rows of the algorithms that know commands, and how descriptions say them.
#include "coupling/algorithm.h"

#include <stdio.h>
#include <string.h>

extern const crdi_algorithm crdi_algorithm_auto;

#ifndef CRDI_SMALL
// ---- in descriptions ---------------------------------------------------------------------------

static crd_status commands_read_names(crdi_element_reader* r, const crdi_json* n)
{
    r->e->command_line = n->line;
    if (n->kind == CRDI_JSON_TEXT && strcmp(n->text, "none") == 0 &&
        r->algorithm == &crdi_algorithm_auto) {
        r->e->no_commands = true;
        return CRD_OK;
    }
    return crdi_element_read_names(r, n, "a list of the names of commands, or their number",
                                   CRD_COMMANDS_MAX, &r->e->options.commands, &r->e->command_names);
}

static void commands_write_names(crdi_element_writer* w, const crd_element* e)
{
    if (e->no_commands) {
        crdi_element_put_text(w, "commands", "none");
    } else if (e->command_names) {
        crdi_element_put_names(w, "commands", e->command_names, e->options.commands);
    } else if (e->options.commands > 0) {
        crdi_element_put_int(w, "commands", e->options.commands);
    }
}

static crd_status commands_read_mixture(crdi_element_reader* r, const crdi_json* n)
{
    if (n->kind != CRDI_JSON_BOOL) { return crdi_element_expected(r, n, "true or false"); }
    r->e->options.command_mixture = n->truth;
    return CRD_OK;
}

static void commands_write_mixture(crdi_element_writer* w, const crd_element* e)
{
    if (e->options.command_mixture) { return; }
    crdi_element_put_key(w, "mixture");
    crdi_text_add(w->out, "false");
}

// {basis: 2, step: 0.01, w: [...], range: [-20, 150]}
static crd_status commands_read_mapping(crdi_element_reader* r, const crdi_json* n)
{
    static const char* const names[] = {"basis", "step", "w", "range", NULL};
    enum { NEEDED = 3 };
    crd_status st = CRD_OK;
    const int commands = r->e->options.commands, count = crd_command_weights_count(commands);
    CRD_TRY(crdi_element_check_members(
        r, n, "a file, or a mapping such as {basis: 2, step: 0.01, w: [...]}", names));
    for (int i = 0; i < NEEDED; i++) {
        if (crdi_element_member(n, names[i])) { continue; }
        return crdi_element_fail(r, n, CRD_E_FORMAT, "the key '%s' is missing in the weights",
                                 names[i]);
    }
    double* w = crdi_arena_new(r->arena, (size_t)count + 1, sizeof *w);
    crd_command_weights* out = w ? crdi_arena_new(r->arena, 1, sizeof *out) : NULL;
    if (!out) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_element_read_int(r, crdi_element_member(n, "basis"), CRD_COMMAND_BASIS,
                                  CRD_COMMAND_BASIS, &out->basis));
    CRD_TRY(crdi_element_read_time(r, crdi_element_member(n, "step"), "a time", CRDI_POSITIVE,
                                   &out->step));
    CRD_TRY(crdi_element_read_numbers(r, crdi_element_member(n, "w"), count, count, w));
    const crdi_json* given = crdi_element_member(n, "range");
    double range[2] = {0};
    if (given) { CRD_TRY(crdi_element_read_numbers(r, given, 2, 2, range)); }
    if (given && !(range[0] < range[1])) {
        return crdi_element_fail(r, given, CRD_E_RANGE,
                                 "range: [%g, %g], expected the smaller value of the signal first",
                                 range[0], range[1]);
    }
    out->low = range[0];
    out->high = range[1];
    out->commands = commands;
    out->count = count;
    out->w = w;
    r->e->options.command_weights = out;
fail:
    return st;
}

// Those of a file are for the same commands, in this order.
static crd_status commands_compare_names(crdi_element_reader* r, const crdi_json* names)
{
    crd_element* e = r->e;
    crdi_element_reader inner = *r;
    crd_element other = {0};
    inner.e = &other;
    const crd_status st = commands_read_names(&inner, names);
    if (st < 0) { return st; }
    if (e->options.commands == 0) { // the file says which
        e->options.commands = other.options.commands;
        e->command_names = other.command_names;
    }
    for (int i = 0; i < other.options.commands || i < e->options.commands; i++) {
        const char* mine =
            e->command_names && i < e->options.commands ? e->command_names[i] : "none";
        const char* its =
            other.command_names && i < other.options.commands ? other.command_names[i] : "none";
        if (i < other.options.commands && i < e->options.commands &&
            (!e->command_names || !other.command_names || strcmp(mine, its) == 0)) {
            continue;
        }
        return crdi_element_fail(&inner, names, CRD_E_RANGE,
                                 "command %d of the weights is '%s', expected '%s' as in the "
                                 "element: weights belong to the commands that they were learned "
                                 "with",
                                 i + 1, crdi_clip(its).text, crdi_clip(mine).text);
    }
    return CRD_OK;
}

// An element that `cardan coupling learn` or a run has written; beside the description that names
// it.
static crd_status commands_read_file(crdi_element_reader* r, const crdi_json* n)
{
    static const crdi_file_need need = {.what = "weights of commands", .most = 1 << 20};
    const char* slash = n->text[0] == '/' ? NULL : strrchr(r->file, '/');
    const char* path = crdi_arena_format(r->arena, "%.*s%s", slash ? (int)(slash - r->file + 1) : 0,
                                         r->file, n->text);
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    crd_text text;
    crd_text_init(&text, r->ctx);
    crdi_element_reader inner = *r;
    if (!path) { CRD_TRY(CRD_E_MEMORY); }
    inner.file = path;
    st = crdi_file_read(r->ctx, path, &need, &text);
    if (st < 0) {
        char why[400];
        snprintf(why, sizeof why, "%s", crd_error_text(r->ctx));
        CRD_TRY(crdi_element_fail(r, n, st, "%s", why));
    }
    CRD_TRY(crdi_json_parse(r->arena, text.data, text.length, (crdi_json_source){path, 1}, &root));
    const bool object = root->kind == CRDI_JSON_OBJECT;
    const crdi_json* weights = object ? crdi_element_member(root, "weights") : NULL;
    const crdi_json* names = object ? crdi_element_member(root, "commands") : NULL;
    if (!weights || !names) {
        CRD_TRY(crdi_element_fail(&inner, root, CRD_E_FORMAT,
                                  "expected an element with the keys 'commands' and 'weights', as "
                                  "cardan coupling learn train --command writes it"));
    }
    CRD_TRY(commands_compare_names(&inner, names));
    CRD_TRY(commands_read_mapping(&inner, weights));
fail:
    crd_text_clear(&text);
    return st;
}

crd_status crdi_commands_check_keys(crdi_element_reader* r, const crdi_json* n)
{
    const crdi_json* w = n->kind == CRDI_JSON_OBJECT ? crdi_element_member(n, "weights") : NULL;
    if (!w) { return CRD_OK; }
    if (w->kind == CRDI_JSON_TEXT) { return commands_read_file(r, w); }
    if (r->e->options.commands == 0) {
        return crdi_element_fail(r, w, CRD_E_FORMAT,
                                 "expected the key 'commands' too, which says of what");
    }
    return commands_read_mapping(r, w);
}

static void commands_write_weights(crdi_element_writer* w, const crd_element* e)
{
    const crd_command_weights* c = e->options.command_weights;
    if (!c) { return; }
    crdi_element_put_key(w, "weights");
    crdi_text_put(w->out, "{", 1);
    crdi_element_writer inner = {w->out, false};
    crdi_element_put_int(&inner, "basis", c->basis);
    crdi_element_put_number(&inner, "step", c->step);
    crdi_element_put_list(&inner, "w", c->w, c->count);
    if (c->low < c->high) {
        crdi_element_put_list(&inner, "range", (double[]){c->low, c->high}, 2);
    }
    crdi_text_put(w->out, "}", 1);
}

const crdi_element_option crdi_commands_keys[] = {
    {"commands", .read = commands_read_names, .write = commands_write_names},
    {.name = "compact", .type = CRDI_ELEMENT_BOOL, CRDI_ELEMENT_FIELD(compact)},
    {"mixture", .read = commands_read_mixture, .write = commands_write_mixture},
    {"weights", .write = commands_write_weights}, // by check_keys: they need the names
    CRDI_ELEMENT_GAIN_LIMIT,
    {0}};
#endif

const crdi_algorithm crdi_algorithm_commands = {
    .name = "commands",
    CRDI_DESCRIBED(.keys = crdi_commands_keys, .check_keys = crdi_commands_check_keys),
    .learns = true,
    .needs_keys = true,
    .alone = &crdi_algorithm_auto};

// ---- Smith's predictor -------------------------------------------------------------------------

// The signal alone: hold. What the model adds comes from its one command (commands.c).
typedef struct smith {
    char none;
} smith;

static crd_status smith_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    (void)self;
    (void)o;
    (void)ctx;
    return CRD_OK;
}
static void smith_clear(void* self, crd_context* ctx)
{
    (void)self;
    (void)ctx;
}
static void smith_forget(void* self)
{
    (void)self;
}
static void smith_push(void* self, const crd_real* y, crd_real lift)
{
    (void)self;
    (void)y;
    (void)lift;
}
static crd_real smith_predict(void* self, const crd_real* y, int k)
{
    (void)self;
    (void)k;
    return y[0];
}
static int smith_reach(const void* self)
{
    (void)self;
    return 1;
}

#ifndef CRDI_SMALL
static crd_status smith_check_keys(crdi_element_reader* r, const crdi_json* n)
{
    int* commands = &r->e->options.commands;
    if (*commands > 1) {
        return crdi_element_fail(r, n, CRD_E_RANGE,
                                 "smith with %d commands, expected one: the output of the model",
                                 *commands);
    }
    *commands = 1;
    return CRD_OK;
}

static const crdi_element_option smith_keys[] = {
    {"commands", .read = commands_read_names, .write = commands_write_names}, {0}};
#endif

const crdi_algorithm crdi_algorithm_smith = {
    .name = "smith",
    CRDI_DESCRIBED(.keys = smith_keys, .check_keys = smith_check_keys),
    .learns = true,
    .needs_keys = true,
    .size = sizeof(smith),
    .init = smith_init,
    .clear = smith_clear,
    .forget = smith_forget,
    .push = smith_push,
    .predict = smith_predict,
    .reach = smith_reach,
    .memory = smith_reach};
