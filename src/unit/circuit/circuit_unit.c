// A netlist as a unit: its communication step is divided into inner steps of one length.
#include "unit/circuit/circuit_unit.h"
#include "shared/circuit_part.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

_Static_assert((int)CRD_NETLIST_BDF1 == (int)CRD_METHOD_BDF1 &&
                   (int)CRD_NETLIST_TR == (int)CRD_METHOD_TR &&
                   (int)CRD_NETLIST_TRBDF2 == (int)CRD_METHOD_TRBDF2 &&
                   (int)CRD_NETLIST_GAUSS4 == (int)CRD_METHOD_GAUSS4,
               "methods in the same order");
_Static_assert((int)CRD_NETLIST_DAE == (int)CRD_FORM_DAE &&
                   (int)CRD_NETLIST_NODAL == (int)CRD_FORM_NODAL,
               "forms in the same order");

enum { MOST_INNER = 1000000000 }; // steps in one communication step

// ---- reading the netlist -----------------------------------------------------------------------

static void forget_circuit(crdi_circuit_unit* u)
{
    crd_circuit_destroy(u->circuit);
    crd_netlist_destroy(u->netlist);
    u->circuit = NULL;
    u->netlist = NULL;
}

// "name=value" for each parameter that is not what the netlist says by itself.
static crd_status make_defines(const crdi_circuit_unit* u, crd_arena* a, const char*** out,
                               int* count)
{
    const char** list = crdi_arena_new(a, (size_t)u->parameters, sizeof *list);
    *count = 0;
    *out = list;
    if (!list) { return CRD_E_MEMORY; }
    for (int i = 0; i < u->parameters; i++) {
        const crd_variable* v = &u->base.info.variables[i];
        char value[40];
        (void)crdi_format_double(value, u->values[i]);
        if (strcmp(value, v->start) == 0) { continue; }
        list[*count] = crdi_arena_format(a, "%s=%s", v->name, value);
        if (!list[(*count)++]) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static crd_status load(crdi_circuit_unit* u, crd_netlist** out)
{
    crd_status st = CRD_OK;
    crd_arena scratch;
    crd_netlist_options opt = {0};
    const char** defines = NULL;
    crd_arena_init(&scratch, u->base.ctx);
    CRD_TRY(make_defines(u, &scratch, &defines, &opt.define_count));
    opt.defines = defines;
    u->call = "crd_netlist_load";
    CRD_TRY(crd_netlist_load(u->base.ctx, u->base.spec->path, &opt, out));
fail:
    crd_arena_clear(&scratch);
    return st;
}

// The part of an inner step that the input of the one before decides.
static double past_weight(crd_netlist_method method)
{
    switch (method) {
    case CRD_NETLIST_TR:
    case CRD_NETLIST_TR_CARRIED:
        return 0.5;
    case CRD_NETLIST_TRBDF2:
        return sqrt(2) / 4;
    default:
        return 0;
    }
}

// How many inner steps a communication step has, and how long one is.
static crd_status circuit_plan(crdi_circuit_unit* u, double macro)
{
    const double n = u->longest > 0 ? ceil(macro / u->longest * (1 - 1e-9)) : 1;
    if (!(n <= MOST_INNER)) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "its step of %g s would have %g inner steps of %g s: give solver.step",
                         macro, n, u->longest);
    }
    u->inner = n > 1 ? (int64_t)n : 1;
    u->macro = macro;
    u->opt.step = macro / (double)u->inner;
    u->base.input_lag = u->past * u->opt.step;
    return u->circuit ? crd_circuit_set_step(u->circuit, u->opt.step) : CRD_OK;
}

// The inner step: what is asked for, else that of .tran, else the communication step.
static void choose_longest(crdi_circuit_unit* u)
{
    const double asked = u->base.spec->netlist.step, tran = u->netlist->tran_step;
    u->longest = asked > 0 ? asked : tran > 0 ? tran : 0;
}

static bool is_stale(const crdi_circuit_unit* u)
{
    for (int i = 0; i < u->parameters; i++) {
        if (u->values[i] != u->loaded[i]) { return true; }
    }
    return false;
}

// The circuit for the parameters as they are wanted, from the file if they have changed.
static crd_status circuit_build(crdi_circuit_unit* u)
{
    crd_status st = CRD_OK;
    crd_netlist* netlist = NULL;
    if (is_stale(u)) {
        CRD_TRY(load(u, &netlist));
        if (netlist->input_count != u->inputs || netlist->output_count != u->outputs) {
            crd_netlist_destroy(netlist); // somebody wrote into the file
            return crdi_fail(u->base.ctx, CRD_E_STATE,
                             "%s: it has other inputs or outputs than when it was read first",
                             u->base.spec->path);
        }
        forget_circuit(u);
        u->netlist = netlist;
        memcpy(u->loaded, u->values, (size_t)u->parameters * sizeof *u->values);
        choose_longest(u);
        CRD_TRY(circuit_plan(u, u->macro));
    }
    if (!u->circuit) {
        u->call = "crd_circuit_create";
        CRD_TRY(crd_circuit_create(u->base.ctx, u->netlist, &u->opt, &u->circuit));
    }
fail:
    return st;
}

// ---- life --------------------------------------------------------------------------------------

static crd_status instantiate(crd_unit* unit)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    for (int i = 0; i < u->parameters; i++) { // the settings follow
        double x = 0;
        (void)crdi_parse_double(unit->info.variables[i].start,
                                strlen(unit->info.variables[i].start), &x);
        u->values[i] = x;
    }
    for (int i = 0; i < u->inputs; i++) {
        u->curves[i] = (crdi_circuit_curve){.u = u->netlist->inputs[i].start};
    }
    u->phase = CRDI_CIRCUIT_INSTANTIATED;
    u->dirty = true;
    unit->wants_stop = false;
    return CRD_OK;
}

static crd_status enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const crd_status st =
        unit->step > 0 && unit->step != u->macro ? circuit_plan(u, unit->step) : CRD_OK;
    u->time = e->start;
    u->phase = CRDI_CIRCUIT_INITIALIZATION;
    u->dirty = true;
    return st;
}

static double curve_at(const crdi_circuit_curve* c, double tau)
{
    return c->u + tau * (c->d[0] + 0.5 * tau * c->d[1]);
}

// From one moment to another of the communication step.
static crd_status circuit_set_inputs(crdi_circuit_unit* u, double from, double to)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < u->inputs && st == CRD_OK; i++) {
        const crdi_circuit_curve* c = &u->curves[i];
        st = crdi_circuit_set_ramp(u->circuit, i, curve_at(c, from), curve_at(c, to));
    }
    return st;
}

// During the initialisation: a consistent beginning for the inputs as they are now.
static crd_status circuit_refresh(crdi_circuit_unit* u)
{
    crd_status st = CRD_OK;
    if (!u->dirty || u->phase != CRDI_CIRCUIT_INITIALIZATION) { return CRD_OK; }
    CRD_TRY(circuit_build(u));
    CRD_TRY(circuit_set_inputs(u, 0, 0));
    u->call = "crd_circuit_begin";
    CRD_TRY(crd_circuit_begin(u->circuit, u->time));
    u->dirty = false;
fail:
    return st;
}

static crd_status exit_initialization(crd_unit* unit)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const crd_status st = circuit_refresh(u);
    if (st == CRD_OK) { u->phase = CRDI_CIRCUIT_STEP; }
    return st;
}

static void move_inputs(crdi_circuit_unit* u, double h)
{
    for (int i = 0; i < u->inputs; i++) {
        crdi_circuit_curve* c = &u->curves[i];
        c->u += h * (c->d[0] + 0.5 * h * c->d[1]);
        c->d[0] += h * c->d[1];
    }
}

static crd_status circuit_step(crd_unit* unit, double t, double h)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    crd_status st = CRD_OK;
    if (!(h > 0)) { return crdi_fail(unit->ctx, CRD_E_RANGE, "step size %g s, expected > 0", h); }
    if (h != u->macro) { CRD_TRY(circuit_plan(u, h)); }
    u->call = "crd_circuit_step";
    for (int64_t k = 1; k <= u->inner; k++) {
        CRD_TRY(circuit_set_inputs(u, (double)(k - 1) * u->opt.step, (double)k * u->opt.step));
        CRD_TRY(crd_circuit_step(u->circuit));
    }
    move_inputs(u, h);
    u->time = t + h;
fail:
    return st;
}

static crd_status terminate(crd_unit* unit)
{
    (void)unit;
    return CRD_OK;
}

static void circuit_destroy(crd_unit* unit)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    forget_circuit(u);
    crdi_map_clear(&u->names);
    crd_arena_clear(&u->arena);
    crd_free(unit->ctx, u);
}

// ---- values ------------------------------------------------------------------------------------

static crd_status set_parameter(crdi_circuit_unit* u, int32_t i, double x)
{
    if (u->values[i] == x) { return CRD_OK; }
    if (u->phase == CRDI_CIRCUIT_STEP) {
        return crdi_fail(u->base.ctx, CRD_E_STATE,
                         "the parameter '%s' of a circuit can be set before it starts only",
                         u->base.info.variables[i].name);
    }
    u->values[i] = x;
    u->dirty = true;
    return CRD_OK;
}

static crd_status circuit_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j] - u->parameters;
        const double x = v->real[b->offsets[j]];
        if (i >= u->inputs) {
            return crdi_fail(unit->ctx, CRD_E_RANGE, "'%s' is an output and cannot be set",
                             unit->info.variables[b->variables[j]].name);
        }
        if (i < 0) {
            const crd_status st = set_parameter(u, b->variables[j], x);
            if (st < 0) { return st; }
            continue;
        }
        u->curves[i] = (crdi_circuit_curve){.u = x};
        u->dirty = true;
    }
    return CRD_OK;
}

static crd_status circuit_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const crd_status st = circuit_refresh(u);
    if (st < 0) { return st; }
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j] - u->parameters, k = i - u->inputs;
        v->real[b->offsets[j]] = i < 0   ? u->values[b->variables[j]]
                                 : k < 0 ? u->curves[i].u
                                 : u->phase == CRDI_CIRCUIT_INSTANTIATED
                                     ? 0
                                     : crd_circuit_get_output(u->circuit, k);
    }
    return CRD_OK;
}

static crd_status set_derivatives(crd_unit* unit, const crd_binding* b, const double* const* d,
                                  int order)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    assert(order <= CRDI_CIRCUIT_ORDER);
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j] - u->parameters;
        if (i < 0 || i >= u->inputs) { continue; }
        for (int k = 0; k < CRDI_CIRCUIT_ORDER; k++) {
            u->curves[i].d[k] = k < order ? d[k][b->offsets[j]] : 0;
        }
    }
    return CRD_OK;
}

static crd_status get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const crd_status st = circuit_refresh(u);
    if (st < 0) { return st; }
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j] - u->parameters, k = i - u->inputs;
        const bool output = k >= 0 && order == 1 && u->phase != CRDI_CIRCUIT_INSTANTIATED;
        d[b->offsets[j]] = output ? crd_circuit_get_output_derivative(u->circuit, k)
                           : i >= 0 && k < 0 && order <= CRDI_CIRCUIT_ORDER
                               ? u->curves[i].d[order - 1]
                               : 0;
    }
    return CRD_OK;
}

// ---- states ------------------------------------------------------------------------------------

typedef struct circuit_state {
    size_t size; // of the circuit's own
    double time, macro;
    uint8_t phase;
    bool dirty;
} circuit_state; // the inputs and the circuit follow

static size_t curves_size(const crdi_circuit_unit* u)
{
    return (size_t)u->inputs * sizeof *u->curves;
}

static crd_status save(crd_unit* unit, void** state)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const crd_status st = circuit_build(u);
    if (st < 0) { return st; }
    const size_t size = crd_circuit_state_size(u->circuit);
    circuit_state* s = *state;
    if (!s) {
        s = *state = crdi_new(unit->ctx, sizeof *s + curves_size(u) + size);
        if (!s) { return CRD_E_MEMORY; }
        s->size = size;
    }
    if (s->size != size) {
        return crdi_fail(unit->ctx, CRD_E_STATE, "the saved state is one of another circuit");
    }
    *s = (circuit_state){size, u->time, u->macro, u->phase, u->dirty};
    char* to = (char*)(s + 1);
    if (u->inputs) { memcpy(to, u->curves, curves_size(u)); }
    crd_circuit_save(u->circuit, to + curves_size(u));
    return CRD_OK;
}

static crd_status restore(crd_unit* unit, void* state)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    const circuit_state* s = state;
    crd_status st = circuit_build(u);
    if (st < 0) { return st; }
    if (s->size != crd_circuit_state_size(u->circuit)) {
        return crdi_fail(unit->ctx, CRD_E_STATE, "the saved state is one of another circuit");
    }
    // Under the step with which it was saved it goes on to the last bit as it would have.
    if (s->macro != u->macro) { st = circuit_plan(u, s->macro); }
    if (st < 0) { return st; }
    const char* from = (const char*)(s + 1);
    if (u->inputs) { memcpy(u->curves, from, curves_size(u)); }
    crd_circuit_restore(u->circuit, from + curves_size(u));
    u->time = s->time;
    u->phase = s->phase;
    u->dirty = s->dirty;
    return CRD_OK;
}

static void free_state(crd_unit* unit, void** state)
{
    crd_free(unit->ctx, *state);
    *state = NULL;
}

static crd_status circuit_write(crd_unit* unit, crd_text* out)
{
    void* state = NULL;
    const crd_status st = save(unit, &state);
    if (st >= 0) {
        const circuit_state* s = state;
        crdi_text_put(out, s, sizeof *s + curves_size((crdi_circuit_unit*)unit) + s->size);
    }
    free_state(unit, &state);
    return st;
}

static crd_status circuit_read(crd_unit* unit, const void* bytes, size_t size)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    crd_status st = circuit_build(u);
    if (st < 0) { return st; }
    const size_t need = sizeof(circuit_state) + curves_size(u) + crd_circuit_state_size(u->circuit);
    if (size != need) { return crdi_unit_fail_size(unit, size, need); }
    void* state = crdi_new(unit->ctx, size); // aligned
    if (!state) { return CRD_E_MEMORY; }
    memcpy(state, bytes, size);
    st = restore(unit, state);
    crd_free(unit->ctx, state);
    return st;
}

// ---- description -------------------------------------------------------------------------------

// Names of a netlist have no case.
static int32_t circuit_find(const crd_unit* unit, const char* name)
{
    const int32_t exact = crdi_map_find(&((const crdi_circuit_unit*)unit)->names, name);
    for (int32_t i = 0; exact < 0 && i < unit->info.variable_count; i++) {
        if (strcasecmp(unit->info.variables[i].name, name) == 0) { return i; }
    }
    return exact;
}

static const char* last_call(const crd_unit* unit)
{
    return ((const crdi_circuit_unit*)unit)->call;
}

static const crd_unit_state_ops state_ops = {save, restore, free_state, circuit_write,
                                             circuit_read};
static const crd_unit_derivative_ops derivative_ops = {.set = set_derivatives,
                                                       .get = get_derivatives};

static const crd_unit_ops ops = {
    .instantiate = instantiate,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .set = circuit_set,
    .get = circuit_get,
    .step = circuit_step,
    .terminate = terminate,
    .destroy = circuit_destroy,
    .find = circuit_find,
    .state = &state_ops,
    .derivatives = &derivative_ops,
    .last_call = last_call,
};

static crd_status read_options(crdi_circuit_unit* u)
{
    const crd_netlist_spec* s = &u->base.spec->netlist;
    u->opt = crd_circuit_defaults();
    u->opt.method = (crd_circuit_method)s->method;
    u->opt.form = (crd_circuit_form)s->form;
    u->opt.fixed_iterations = s->fixed_iterations;
    if (s->iterations > 0) { u->opt.max_iterations = s->iterations; }
    if (!isnan(s->tolerance)) { u->opt.tolerance = s->tolerance; }
    if (s->step <= 0) { // not with NaN
        return crdi_fail(u->base.ctx, CRD_E_RANGE, "solver.step = %g s, expected > 0", s->step);
    }
    return CRD_OK;
}

static crd_status circuit_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                 crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    crd_status st = CRD_OK;
    crdi_circuit_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->call = "";
    crd_arena_init(&u->arena, ctx);
    crdi_map_init(&u->names, ctx);
    CRD_TRY(read_options(u));
    u->past = past_weight(spec->netlist.method);
    u->points = crdi_past_points(u->opt.method);
    CRD_TRY(load(u, &u->netlist));
    choose_longest(u);
    CRD_TRY(circuit_plan(u, spec->step > 0 ? spec->step : u->longest > 0 ? u->longest : 1e-3));
    const crd_netlist* n = u->netlist;
    u->base.info = (crd_unit_info){
        .flags = CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_VARY_STEP,
        .max_input_order = CRDI_CIRCUIT_ORDER,
        .max_output_order = 1,
        .start = 0,
        .stop = n->tran_stop > 0 ? n->tran_stop : NAN,
        .step = n->tran_step > 0 ? n->tran_step : NAN,
        .tolerance = NAN,
        .kind = "circuit",
    };
    if (n->title && n->title[0]) {
        u->base.info.model = crdi_arena_text(&u->arena, n->title, strlen(n->title));
        if (!u->base.info.model) { CRD_TRY(CRD_E_MEMORY); }
    }
    CRD_TRY(crdi_circuit_describe(u));
    (void)instantiate(&u->base);
    *out = &u->base;
    return CRD_OK;
fail:
    circuit_destroy(&u->base);
    return st;
}

// With the parameters of the spec, so that a check finds what is wrong with the circuit.
static crd_status circuit_complete(crd_unit* unit)
{
    crdi_circuit_unit* u = (crdi_circuit_unit*)unit;
    for (int32_t i = 0; i < unit->core->setting_count; i++) {
        const crdi_setting* s = &unit->core->settings[i];
        if (s->variable >= u->parameters) { continue; }
        (void)set_parameter(u, s->variable, s->values.real[0]); // it can be set now
    }
    const crd_status st = circuit_build(u);
    if (st < 0) { return st; }
    if (u->inputs == 0 && u->outputs == 0) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s has neither .input nor .output: nothing of it can be connected or "
                 "recorded",
                 unit->name, unit->spec->path);
    }
    return CRD_OK;
}

const crdi_adapter crdi_adapter_circuit = {.create = circuit_create, .complete = circuit_complete};
