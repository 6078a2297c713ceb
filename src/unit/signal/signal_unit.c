// Signal generators as a unit: one output per generator, a function of time alone.
#include <math.h>
#include <string.h>

#include "shared/base.h"
#include "unit/signal/shapes.h"
#include "unit/unit.h"

typedef struct signal_unit {
    crdi_source source;
    crd_variable* variables;
    crdi_shape* shapes;
    double next_jump; // as next_event, but without kinks of tables
} signal_unit;

static void move_to(signal_unit* u, double t)
{
    crd_unit* unit = &u->source.base;
    u->source.time = t;
    u->next_jump = unit->next_event = INFINITY;
    for (int32_t i = 0; i < unit->info.variable_count; i++) {
        unit->next_event = fmin(unit->next_event, crdi_shape_next(&u->shapes[i], t, true));
        u->next_jump = fmin(u->next_jump, crdi_shape_next(&u->shapes[i], t, false));
    }
}

static crd_status signal_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    move_to((signal_unit*)unit, e->start);
    return CRD_OK;
}

static crd_status signal_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    signal_unit* u = (signal_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        v->real[j] = crdi_shape_eval(&u->shapes[b->variables[j]], u->source.time, 0);
    }
    return CRD_OK;
}

static crd_status signal_get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    signal_unit* u = (signal_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        d[j] = order <= 2 ? crdi_shape_eval(&u->shapes[b->variables[j]], u->source.time, order) : 0;
    }
    return CRD_OK;
}

static crd_status signal_step(crd_unit* unit, double t, double h)
{
    signal_unit* u = (signal_unit*)unit;
    const double jump = u->next_jump;
    move_to(u, t + h);
    unit->events += u->next_jump != jump; // the next is another one: this is behind us
    return CRD_OK;
}

static crd_status signal_restore(crd_unit* unit, void* state)
{
    move_to((signal_unit*)unit, *(const double*)state);
    return CRD_OK;
}

static void signal_destroy(crd_unit* unit)
{
    signal_unit* u = (signal_unit*)unit;
    for (int i = 0; u->shapes && i < unit->info.variable_count; i++) {
        crdi_shape_clear(unit->ctx, &u->shapes[i]);
    }
    crd_free(unit->ctx, u->shapes);
    crd_free(unit->ctx, u->variables);
    crd_free(unit->ctx, u);
}

static const crd_unit_state_ops state_ops = {
    crdi_source_save, signal_restore, crdi_source_free_state, crdi_source_write, crdi_source_read};
static const crd_unit_derivative_ops derivative_ops = {.get = signal_get_derivatives};

static const crd_unit_ops ops = {
    CRDI_SOURCE_OPS,           .enter_initialization = signal_enter_initialization,
    .get = signal_get,         .step = signal_step,
    .destroy = signal_destroy, .find = crdi_source_find,
    .state = &state_ops,       .derivatives = &derivative_ops,
};

static crd_status signal_describe(signal_unit* u, crd_place* place)
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
    const crd_unit_spec* spec = u->source.base.spec;
    for (int i = 0; i < spec->signal_count; i++) {
        const crd_signal_spec* s = &spec->signals[i];
        if (s->place.file && s->place.file[0]) { *place = s->place; }
        if (crdi_source_find(&u->source.base, s->name) >= 0) {
            return crdi_fail(u->source.base.ctx, CRD_E_RANGE, "two signals are called '%s'",
                             s->name);
        }
        const crd_status st = crdi_shape_init(u->source.base.ctx, s, &u->shapes[i]);
        u->source.base.info.variable_count = i + 1; // also how many shapes destroy has to clear
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

static crd_status signal_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                crd_place* place, crd_unit** out)
{
    (void)store;
    crd_status st = CRD_E_MEMORY;
    signal_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    const size_t n = (size_t)spec->signal_count;
    u->source.base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->variables = crdi_new_array(ctx, n, sizeof *u->variables);
    u->shapes = crdi_new_array(ctx, n, sizeof *u->shapes);
    u->source.base.info = (crd_unit_info){
        .variables = u->variables,
        .flags =
            CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_IS_SOURCE | CRD_UNIT_CAN_REFRESH,
        .max_output_order = 2,
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .kind = "signal",
    };
    if (!u->variables || !u->shapes) { goto fail; }
    CRD_TRY(signal_describe(u, place));
    *out = &u->source.base;
    return CRD_OK;
fail:
    signal_destroy(&u->source.base);
    return st;
}

const crdi_adapter crdi_adapter_signal = {.create = signal_create};
