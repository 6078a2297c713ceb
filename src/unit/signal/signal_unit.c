// Signal generators as a unit: one output per generator, a function of time alone.
#include <math.h>
#include <string.h>

#include "unit/signal/shapes.h"
#include "unit/unit.h"

typedef struct signal_unit {
    crd_unit base;
    crd_variable* variables;
    crdi_shape* shapes;
    double time;
} signal_unit;

static crd_status instantiate(crd_unit* unit)
{
    (void)unit;
    return CRD_OK;
}

static crd_status enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    ((signal_unit*)unit)->time = e->start;
    return CRD_OK;
}

static crd_status set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    (void)v;
    return b->count ? crdi_fail(unit->ctx, CRD_E_UNSUPPORTED, "a signal has no inputs") : CRD_OK;
}

static crd_status get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    signal_unit* u = (signal_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        v->real[j] = crdi_shape_eval(&u->shapes[b->variables[j]], u->time, 0);
    }
    return CRD_OK;
}

static crd_status get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    signal_unit* u = (signal_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        d[j] = order <= 2 ? crdi_shape_eval(&u->shapes[b->variables[j]], u->time, order) : 0;
    }
    return CRD_OK;
}

static crd_status step(crd_unit* unit, double t, double h)
{
    ((signal_unit*)unit)->time = t + h;
    return CRD_OK;
}

static crd_status save(crd_unit* unit, void** state)
{
    if (!*state) { *state = crdi_new(unit->ctx, sizeof(double)); }
    if (!*state) { return CRD_E_MEMORY; }
    *(double*)*state = ((signal_unit*)unit)->time;
    return CRD_OK;
}

static crd_status restore(crd_unit* unit, void* state)
{
    ((signal_unit*)unit)->time = *(const double*)state;
    return CRD_OK;
}

static void free_state(crd_unit* unit, void** state)
{
    crdi_free(unit->ctx, *state);
    *state = NULL;
}

static void abandon(crd_unit* unit)
{
    (void)unit;
}

static void destroy(crd_unit* unit)
{
    signal_unit* u = (signal_unit*)unit;
    for (int i = 0; u->shapes && i < unit->info.variable_count; i++) {
        crdi_shape_clear(unit->ctx, &u->shapes[i]);
    }
    crdi_free(unit->ctx, u->shapes);
    crdi_free(unit->ctx, u->variables);
    crdi_free(unit->ctx, u);
}

static int32_t find(const crd_unit* unit, const char* name)
{
    for (int32_t i = 0; i < unit->info.variable_count; i++) {
        if (strcmp(unit->info.variables[i].name, name) == 0) { return i; }
    }
    return -1;
}

static bool dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    const char* name = unit->info.variables[variable].unit;
    return name[0] && crd_dimension_parse(name, out);
}

static bool item(const crd_unit* unit, int32_t variable, const char* name, int64_t* value)
{
    (void)unit;
    (void)variable;
    (void)name;
    (void)value;
    return false;
}

static const char* last_call(const crd_unit* unit)
{
    (void)unit;
    return "";
}

static const crd_unit_ops ops = {
    .instantiate = instantiate,
    .enter_initialization = enter_initialization,
    .exit_initialization = instantiate,
    .set = set,
    .get = get,
    .step = step,
    .get_derivatives = get_derivatives,
    .save = save,
    .restore = restore,
    .free_state = free_state,
    .terminate = instantiate,
    .abandon = abandon,
    .destroy = destroy,
    .find = find,
    .dimension = dimension,
    .item = item,
    .last_call = last_call,
};

static crd_status describe(signal_unit* u, crd_place* place)
{
    static const char* const descriptions[CRD_SIGNAL_SHAPE_COUNT] = {
        [CRD_SIGNAL_CONSTANT] = "constant",
        [CRD_SIGNAL_STEP] = "step",
        [CRD_SIGNAL_RAMP] = "ramp",
        [CRD_SIGNAL_SINE] = "sine",
        [CRD_SIGNAL_CHIRP] = "chirp",
        [CRD_SIGNAL_PRBS] = "pseudo-random binary sequence",
        [CRD_SIGNAL_MULTISINE] = "sum of sines",
        [CRD_SIGNAL_TABLE] = "table",
    };
    const crd_unit_spec* spec = u->base.spec;
    for (int i = 0; i < spec->signal_count; i++) {
        const crd_signal_spec* s = &spec->signals[i];
        if (s->place.file && s->place.file[0]) { *place = s->place; }
        if (find(&u->base, s->name) >= 0) {
            return crdi_fail(u->base.ctx, CRD_E_RANGE, "two signals are called '%s'", s->name);
        }
        const crd_status st = crdi_shape_init(u->base.ctx, s, &u->shapes[i]);
        u->base.info.variable_count = i + 1; // also how many shapes destroy has to clear
        const bool jumps =
            s->shape == CRD_SIGNAL_STEP || s->shape == CRD_SIGNAL_PRBS ||
            (s->shape == CRD_SIGNAL_TABLE && s->interpolation == CRD_INTERPOLATE_HOLD);
        u->variables[i] = (crd_variable){.name = s->name,
                                         .description = descriptions[s->shape],
                                         .unit = s->unit ? s->unit : "",
                                         .reference = (uint32_t)i,
                                         .size = 1,
                                         .unit_index = -1,
                                         .type_index = -1,
                                         .alias_of = -1,
                                         .type = CRD_FLOAT64,
                                         .causality = CRD_OUTPUT,
                                         .variability = jumps ? CRD_DISCRETE : CRD_CONTINUOUS,
                                         .initial = CRD_CALCULATED,
                                         .nominal = 1,
                                         .min = -INFINITY,
                                         .max = INFINITY};
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                         crd_place* place, crd_unit** out)
{
    (void)store;
    crd_status st = CRD_E_MEMORY;
    signal_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    const size_t n = (size_t)spec->signal_count;
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->variables = crdi_new_array(ctx, n, sizeof *u->variables);
    u->shapes = crdi_new_array(ctx, n, sizeof *u->shapes);
    u->base.info = (crd_unit_info){
        .variables = u->variables,
        .flags = CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_IS_SOURCE,
        .max_output_order = 2,
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .kind = "signal",
    };
    if (!u->variables || !u->shapes) { goto fail; }
    CRD_TRY(describe(u, place));
    *out = &u->base;
    return CRD_OK;
fail:
    destroy(&u->base);
    return st;
}

const crdi_adapter crdi_adapter_signal = {.create = create};
