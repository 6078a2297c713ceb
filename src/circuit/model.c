// A circuit as a model: the rows of its table, made from the netlist.
#include "circuit/model.h"
#include "circuit/netlist.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 1000 }; // bytes of a text in the description
static const char* const own_step = "step";
// What the sources of an FMU are linked with beside libc and libm.
static const char* const libraries = "klu btf amd colamd suitesparseconfig";

crdi_circuit_model_options crdi_circuit_model_defaults(void)
{
    return (crdi_circuit_model_options){
        .name = "circuit", .method = crd_circuit_defaults().method, .step = (double)NAN};
}

const char* const* crdi_circuit_method_names(void)
{
    static const char* const names[] = {
        [CRD_METHOD_BDF1] = "bdf1",     [CRD_METHOD_BDF2] = "bdf2",
        [CRD_METHOD_BDF3] = "bdf3",     [CRD_METHOD_TR] = "tr",
        [CRD_METHOD_TRBDF2] = "trbdf2", [CRD_METHOD_TR_CARRIED] = "tr-carried",
        [CRD_METHOD_GAUSS2] = "gauss2", [CRD_METHOD_GAUSS4] = "gauss4",
        [CRD_METHOD_GAUSS4 + 1] = NULL};
    return names;
}

// ---- texts -------------------------------------------------------------------------------------

// Length of the UTF-8 sequence at p, 0: none begins here.
static size_t sequence(const unsigned char* p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*p < 0x80) { return 1; }
    const size_t n = *p >= 0xf0 && *p < 0xf8 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;
    if (!n || *p >= 0xf8) { return 0; }
    uint32_t code = *p & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) { return 0; }
        code = code << 6 | (p[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[n] || code > 0x10ffff || surrogate || code == 0xfffe || code == 0xffff ? 0
                                                                                               : n;
}

// A copy that XML has room for: valid UTF-8 without control characters.
static const char* printable(crd_arena* arena, const char* text)
{
    char* copy = crdi_arena_text(arena, text, strnlen(text, LONGEST));
    for (unsigned char* p = (unsigned char*)copy; p && *p;) {
        const size_t n = sequence(p);
        if (n == 0) {
            *p = '?';
        } else if (*p < ' ' || *p == 0x7f) {
            *p = ' ';
        }
        p += n ? n : 1;
    }
    return copy;
}

// ---- rows --------------------------------------------------------------------------------------

typedef struct table {
    crdi_model_table t;
    crdi_circuit_model* m;
} table;

static crd_status circuit_model_add_variable(table* t, crd_model_variable row)
{
    row.name = printable(t->t.arena, row.name);
    crdi_model_add(&t->t, row);
    return row.name ? CRD_OK : CRD_E_MEMORY;
}

static bool is_taken(const table* t, const char* name)
{
    for (int i = 0; i < t->t.count; i++) {
        if (strcmp(t->t.rows[i].name, name) == 0) { return true; }
    }
    return false;
}

static crd_status circuit_model_add_inputs(table* t)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = t->m->netlist;
    t->m->inputs = crdi_model_take(&t->t, (size_t)n->input_count * CRDI_MODEL_STRIDE);
    for (int i = 0; i < n->input_count; i++) {
        const crd_circuit_input* in = &n->inputs[i];
        const size_t at = t->m->inputs + (size_t)i * CRDI_MODEL_STRIDE * sizeof(double);
        CRD_TRY(circuit_model_add_variable(
            t, crdi_model_input(in->name, in->unit, in->start, at, NULL)));
    }
fail:
    return st;
}

// Inputs that stand in the expression itself: all others are seen by the next step only.
static crd_status direct_inputs(table* t, const crd_expression* e, const char** out)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    crd_text words;
    crd_text_init(&words, t->m->ctx);
    *out = "";
    for (int i = 0; i < count; i++) {
        if (uses[i].kind != CRD_USE_INPUT) { continue; }
        const char* name = t->t.rows[uses[i].a].name; // inputs are the first rows
        if (strchr(name, ' ')) {                      // not a word of a list: all
            *out = NULL;
            break;
        }
        crdi_text_add(&words, "%s%s", words.length ? " " : "", name);
    }
    if (*out && words.length) { *out = crdi_arena_text(&t->m->arena, words.data, words.length); }
    const bool lost = words.failed;
    crd_text_clear(&words);
    return lost ? CRD_E_MEMORY : CRD_OK;
}

static crd_status circuit_model_add_outputs(table* t)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = t->m->netlist;
    t->m->outputs = crdi_model_take(&t->t, (size_t)n->output_count * CRDI_MODEL_STRIDE);
    for (int i = 0; i < n->output_count; i++) {
        const size_t at = t->m->outputs + (size_t)i * CRDI_MODEL_STRIDE * sizeof(double);
        crd_model_variable row = {.name = n->outputs[i].name,
                                  .causality = CRD_OUTPUT,
                                  .offset = at,
                                  .derivatives = at + sizeof(double),
                                  .unit = n->outputs[i].unit,
                                  .starts_with_all = true};
        CRD_TRY(direct_inputs(t, n->outputs[i].what, &row.depends));
        CRD_TRY(circuit_model_add_variable(t, row));
    }
fail:
    return st;
}

static crd_status add_parameters(table* t)
{
    crd_status st = CRD_OK;
    crdi_circuit_model* m = t->m;
    const crd_netlist* n = m->netlist;
    m->names = crdi_arena_new(&m->arena, (size_t)n->parameter_count + 1, sizeof *m->names);
    m->starts = crdi_arena_new(&m->arena, (size_t)n->parameter_count + 1, sizeof *m->starts);
    if (!m->names || !m->starts) { return CRD_E_MEMORY; }
    m->parameters = t->t.used;
    for (int i = 0; i < n->parameter_count; i++) {
        const crd_circuit_parameter* p = &n->parameters[i];
        if (!p->plain) { continue; }
        m->names[m->parameter_count] = p->name;
        m->starts[m->parameter_count++] = p->value;
        CRD_TRY(circuit_model_add_variable(
            t, (crd_model_variable){.name = p->written,
                                    .causality = CRD_PARAMETER,
                                    .variability = CRD_FIXED,
                                    .offset = crdi_model_take(&t->t, 1),
                                    .start = p->value,
                                    .description = "of the netlist (.param)"}));
    }
    CRD_TRY(circuit_model_add_variable(
        t, (crd_model_variable){.name = is_taken(t, own_step) ? "circuit.step" : own_step,
                                .causality = CRD_PARAMETER,
                                .variability = CRD_FIXED,
                                .offset = offsetof(crdi_circuit_self, step),
                                .start = m->base.default_step,
                                .unit = "s",
                                .min = 0,
                                .max = INFINITY,
                                .description =
                                    "largest step inside: a communication step is done in the "
                                    "fewest equal steps that are not longer"}));
fail:
    return st;
}

// ---- what does not make a model ----------------------------------------------------------------

static crd_status circuit_model_check(crdi_circuit_model* m, const crdi_circuit_model_options* opt)
{
    const crd_netlist* n = m->netlist;
    if (n->output_count == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s has no outputs, and an FMU without is of no use: add a line such as "
                         ".output v(%s)",
                         m->file, n->node_count > 1 ? crdi_clip(n->nodes[1]).text : "node");
    }
    const double step = isnan(opt->step) ? n->tran_step : opt->step;
    if (!(step > 0 && isfinite(step))) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: step = %g s, expected > 0%s", m->file, step,
                         isnan(step) ? ", or a line .tran that says it" : "");
    }
    if ((int)opt->method < 0 || opt->method > CRD_METHOD_GAUSS4) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "method %d does not exist", (int)opt->method);
    }
    m->method = opt->method;
    m->base.default_step = step;
    m->base.default_stop = isnan(n->tran_stop) ? 1000 * step : n->tran_stop;
    return CRD_OK;
}

// ---- create and destroy ------------------------------------------------------------------------

static crd_status circuit_model_build(crdi_circuit_model* m, const crdi_circuit_model_options* opt)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = m->netlist;
    const size_t most =
        (size_t)n->input_count + (size_t)n->output_count + (size_t)n->parameter_count + 1;
    table t = {.m = m,
               .t = {.ctx = m->ctx,
                     .arena = &m->arena,
                     .file = m->file,
                     .used = (sizeof(crdi_circuit_self) + 15) / 16 * 16}};
    t.t.rows = crdi_arena_new(&m->arena, most, sizeof *t.t.rows);
    if (!t.t.rows) { return CRD_E_MEMORY; }
    CRD_TRY(circuit_model_add_inputs(&t));
    CRD_TRY(circuit_model_add_outputs(&t));
    CRD_TRY(add_parameters(&t));
    CRD_TRY(crdi_model_check_names(&t.t, "which is what FMI calls the time",
                                   ", and an FMU would not know which is meant; inputs, outputs "
                                   "and parameters need names of their own"));
    CRD_TRY(crdi_model_units(&t.t, false, &m->base)); // as the netlist's reader knows them
    m->base.name = crdi_arena_text(&m->arena, opt->name, strlen(opt->name));
    m->base.description = *n->title ? printable(&m->arena, n->title) : "a circuit";
    if (!m->base.name || !m->base.description) { return CRD_E_MEMORY; }
    m->base.size = t.t.used;
    m->base.variables = t.t.rows;
    m->base.variable_count = t.t.count;
    if (n->input_count) { m->base.max_input_derivative = CRD_MODEL_MAX_ORDER; }
fail:
    return st;
}

crd_status crdi_circuit_model_create(crd_context* ctx, const char* text, size_t length,
                                     const char* file, const crdi_circuit_model_options* opt,
                                     const crd_model** out)
{
    crd_status st = CRD_OK;
    crdi_circuit_model* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    *m = (crdi_circuit_model){.base = {.initialize = crdi_circuit_model_initialize,
                                       .outputs = crdi_circuit_model_outputs,
                                       .step = crdi_circuit_model_step,
                                       .clear = crdi_circuit_model_clear,
                                       .outside = crdi_circuit_model_outside,
                                       .save = crdi_circuit_model_save,
                                       .restore = crdi_circuit_model_restore,
                                       .max_output_derivative = 1,
                                       .libraries = libraries,
                                       .user = m,
                                       .kept = offsetof(crdi_circuit_self, step)},
                              .ctx = ctx,
                              .length = length};
    crd_arena_init(&m->arena, ctx);
    m->text = crdi_arena_text(&m->arena, text, length);
    m->file = crdi_arena_text(&m->arena, file, strlen(file));
    CRD_TRY(m->text && m->file ? CRD_OK : CRD_E_MEMORY);
    const crd_netlist_options n = {.defines = opt->defines, .define_count = opt->define_count};
    CRD_TRY(crd_netlist_parse(ctx, text, length, file, &n, &m->netlist));
    CRD_TRY(circuit_model_check(m, opt));
    CRD_TRY(circuit_model_build(m, opt));
    *out = &m->base;
    return CRD_OK;
fail:
    crdi_circuit_model_destroy(&m->base);
    return st;
}

void crdi_circuit_model_destroy(const crd_model* model)
{
    if (!model) { return; }
    crdi_circuit_model* m = (crdi_circuit_model*)model->user; // made by us
    crd_context* ctx = m->ctx;
    const bool owns = m->owns_context;
    crd_netlist_destroy(m->netlist);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
    if (owns) { crd_context_destroy(ctx); }
}

const crd_model* crdi_circuit_model_load(const char* folder, char* message, size_t room)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crd_text netlist = {0}, settings = {0};
    crd_arena arena = {0};
    crdi_circuit_model_options opt;
    snprintf(message, room, "out of memory");
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return NULL; }
    crd_text_init(&netlist, ctx);
    crd_text_init(&settings, ctx);
    crd_arena_init(&arena, ctx);
    const char* settings_path = crdi_arena_format(&arena, "%s/circuit.settings", folder);
    const char* path = crdi_arena_format(&arena, "%s/circuit.cir", folder);
    CRD_TRY(path && settings_path ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_netlist_read_file(ctx, settings_path, &settings));
    CRD_TRY(crdi_circuit_settings(ctx, settings.data ? settings.data : "", settings.length,
                                  "resources/circuit.settings", &arena, &opt));
    CRD_TRY(crdi_netlist_read_file(ctx, path, &netlist));
    CRD_TRY(crdi_circuit_model_create(ctx, netlist.data ? netlist.data : "", netlist.length,
                                      "resources/circuit.cir", &opt, &model));
    ((crdi_circuit_model*)model->user)->owns_context = true;
fail:
    if (st < 0) { snprintf(message, room, "%s", crd_error_text(ctx)); }
    crd_text_clear(&netlist);
    crd_text_clear(&settings);
    crd_arena_clear(&arena);
    if (st < 0) { crd_context_destroy(ctx); }
    return model;
}
