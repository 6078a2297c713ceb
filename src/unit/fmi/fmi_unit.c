// An FMU as a unit.
#include <math.h>
#include <string.h>

#include "unit/fmi/fmi_unit.h"

enum { MOST_EVENTS = 100000, MOST_UPDATES = 1000, MOST_ELEMENTS = 100000000 };

// Of a step: a time event that close to its end belongs to it.
static const double SLACK = 1e-9;

// ---- steps and events --------------------------------------------------------------------------

crd_status crdi_fmi_unit_settle(crdi_fmi_unit* u)
{
    crd_fmi_update update = {.again = true};
    for (int k = 0; update.again; k++) {
        if (k == MOST_UPDATES) {
            return crdi_fail(u->base.ctx, CRD_E_UNIT,
                             "its discrete states still change after %d updates of one event",
                             MOST_UPDATES);
        }
        const crd_status st = crd_fmi_update_discrete(u->fmi, &update);
        if (st < 0) { return st; }
        if (update.terminate) { crdi_unit_wish_stop(&u->base); }
    }
    u->next_event = update.has_next_event ? update.next_event : INFINITY;
    return crd_fmi_enter_step_mode(u->fmi);
}

static crd_status discarded(crdi_fmi_unit* u, double t, double h, const crd_fmi_step* s)
{
    return crdi_fail(u->base.ctx, CRD_E_UNIT,
                     "the step from %g to %g was discarded, it came to %g; a shorter step may help",
                     t, t + h, s->reached);
}

static crd_status go_through_event(crdi_fmi_unit* u, double t)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_fmi_enter_event_mode(u->fmi));
    if (u->curved) { CRD_TRY(crdi_fmi_unit_move_inputs(u, t)); }
    CRD_TRY(crdi_fmi_unit_settle(u));
fail:
    return st;
}

// A step that did not simply reach its end: events, early return, a wish to stop. What an FMU says
// about the time that it reached counts only when it returned early: one with steps of its own may
// end a little before or after, and goes on from there by itself.
CRDI_COLD static crd_status finish_step(crdi_fmi_unit* u, double t, double h, crd_fmi_step* s)
{
    crd_status st = CRD_OK;
    const double end = t + h, slack = SLACK * h;
    double from = t;
    for (int events = 0;; events++) {
        if (u->intermediate_status < 0) { return u->intermediate_status; }
        if (s->terminate) { crdi_unit_wish_stop(&u->base); }
        if (s->discarded && !s->terminate) { return discarded(u, from, end - from, s); }
        const double now = s->early ? s->reached : end;
        if (u->event_mode && (s->event_needed || now >= u->next_event - slack)) {
            CRD_TRY(go_through_event(u, now));
        }
        if (u->base.wants_stop || !s->early || now >= end - slack) { return CRD_OK; }
        if (events == MOST_EVENTS || now < from - slack) {
            return crdi_fail(u->base.ctx, CRD_E_UNIT, "the step from %g to %g does not get past %g",
                             t, end, now);
        }
        from = now;
        CRD_TRY(crd_fmi_do_step(u->fmi, from, end - from, u->no_rollback, s));
    }
fail:
    return st;
}

static crd_status step(crd_unit* unit, double t, double h)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crd_fmi_step s;
    u->step_begin = t;
    const crd_status st = crd_fmi_do_step(u->fmi, t, h, u->no_rollback, &s);
    if (__builtin_expect(st < 0, 0)) { return st; }
    const bool odd = s.event_needed | s.terminate | s.early | s.discarded |
                     (t + h >= u->next_event - SLACK * h) | (u->intermediate_status < 0);
    return __builtin_expect(odd, 0) ? finish_step(u, t, h, &s) : CRD_OK;
}

// ---- set, step and get at once -----------------------------------------------------------------

// What stands in the room of a lane. Few references move in as well.
typedef struct {
    crd_fmi_exchange exchange;
    uint32_t refs[4];
} lane_data;
_Static_assert(sizeof(lane_data) <= sizeof(crd_lane), "a lane is too small");

static crd_status odd_step(void* unit, double t, double h, crd_fmi_step* s)
{
    return finish_step(unit, t, h, s);
}

static const uint32_t* move_in(uint32_t* room, const uint32_t* refs, size_t n)
{
    if (n > 2) { return refs; }
    memcpy(room, refs, n * sizeof *refs);
    return room;
}

static crd_status advance(crd_lane* first, int count, double t, double h, volatile int* at)
{
    lane_data* d = (void*)first;
    return crd_fmi_advance(&d->exchange, sizeof *first, count, t, h, at);
}

static crd_advance* join(crd_unit* unit, int id, const crd_binding* in, const crd_values* inputs,
                         const crd_binding* out, crd_values* outputs, crd_lane* lane)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const crdi_fmi_prepared* i = in ? in->prepared : NULL;
    const crdi_fmi_prepared* o = out ? out->prepared : NULL;
    if (u->event_mode || u->curved || (i && !i->plain_set) || (o && !o->plain_get)) { return NULL; }
    lane_data* d = (void*)lane;
    d->exchange =
        (crd_fmi_exchange){.no_rollback = u->no_rollback, .odd = odd_step, .user = u, .id = id};
    if (i) {
        d->exchange.set_refs = move_in(d->refs, i->refs, i->ref_count);
        d->exchange.set_values = inputs->real;
        d->exchange.set_count = (uint32_t)i->ref_count;
        d->exchange.set_value_count = (uint32_t)i->value_count;
    }
    if (o) {
        d->exchange.get_refs = move_in(d->refs + 2, o->refs, o->ref_count);
        d->exchange.get_values = outputs->real;
        d->exchange.get_count = (uint32_t)o->ref_count;
        d->exchange.get_value_count = (uint32_t)o->value_count;
    }
    crd_fmi_join(u->fmi, &d->exchange);
    return advance;
}

// Inside fmi3DoStep.
static bool intermediate(void* user, double time, bool inputs_wanted, bool outputs_there,
                         bool step_finished, bool can_return_early)
{
    (void)outputs_there;
    (void)step_finished;
    (void)can_return_early;
    crdi_fmi_unit* u = user;
    if (inputs_wanted && u->curved && u->intermediate_status == CRD_OK) {
        u->intermediate_status = crdi_fmi_unit_move_inputs(u, time);
    }
    return false;
}

// ---- life --------------------------------------------------------------------------------------

// Nobody will set derivatives: bindings that were prepared for them need not remember values.
static void forget_curves(crdi_fmi_unit* u)
{
    while (u->curved) {
        crdi_fmi_prepared* p = u->curved;
        u->curved = p->next;
        p->next = NULL;
        p->curves.count = 0;
        p->plain_set = p->plain_get && !p->has_discrete;
    }
}

static crd_status instantiate(crd_unit* unit)
{
    crd_status st = CRD_OK;
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const bool curves = u->intermediate_count > 0 && unit->input_order > 0;
    if (!curves) { forget_curves(u); }
    const crd_fmi_options opt = {
        .instance_name = unit->name,
        .logging_on = unit->spec->logging,
        .event_mode = u->event_mode,
        .early_return = u->event_mode,
        .intermediate = curves ? intermediate : NULL,
        .intermediate_user = u,
        .intermediate_inputs = u->intermediate,
        .intermediate_input_count = curves ? u->intermediate_count : 0,
    };
    crd_fmi_destroy(u->fmi);
    u->fmi = NULL;
    unit->wants_stop = false;
    u->epoch++;
    u->next_event = INFINITY;
    u->intermediate_status = CRD_OK;
    u->last_call = u->d->version == CRD_FMI_2 ? "fmi2Instantiate" : "fmi3InstantiateCoSimulation";
    CRD_TRY(crd_fmi_instantiate(unit->ctx, u->fmu, &opt, &u->fmi));
    CRD_TRY(crd_fmi_reserve(u->fmi, u->reserve));
    if (u->variables) { // there are structural settings
        CRD_TRY(crd_fmi_enter_configuration(u->fmi));
        CRD_TRY(crdi_unit_send(unit, true));
        CRD_TRY(crd_fmi_exit_configuration(u->fmi));
    }
fail:
    return st;
}

static crd_status enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    u->no_rollback = !e->may_roll_back;
    u->step_begin = e->start;
    return crd_fmi_enter_initialization(u->fmi, e->has_tolerance, e->tolerance, e->start,
                                        e->has_stop, e->stop);
}

static crd_status exit_initialization(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const crd_status st = crd_fmi_exit_initialization(u->fmi);
    return st == CRD_OK && u->event_mode ? crdi_fmi_unit_settle(u) : st;
}

static crd_status terminate(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!u->fmi) { return CRD_OK; }
    const crd_fmi_state s = crd_fmi_get_state(u->fmi);
    const bool running = s == CRD_FMI_STEP || s == CRD_FMI_EVENT || s == CRD_FMI_STEP_FAILED;
    return running ? crd_fmi_terminate(u->fmi) : CRD_OK;
}

static void abandon(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!u->fmi) { return; }
    u->last_call = crd_fmi_last_call(u->fmi);
    crd_fmi_abandon(u->fmi);
    u->fmi = NULL;
}

static void destroy(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crd_fmi_destroy(u->fmi);
    if (!u->shares_fmu) { crd_fmu_close(u->fmu); }
    crdi_free(unit->ctx, u->variables);
    crdi_free(unit->ctx, u->intermediate);
    crdi_free(unit->ctx, u->refs);
    crdi_free(unit->ctx, u);
}

// ---- derivatives and states --------------------------------------------------------------------

static crd_status directional(crd_unit* unit, const int32_t* unknowns, int nu,
                              const int32_t* knowns, int nk, const double* seed, double* result)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    uint32_t* refs =
        crdi_grow(unit->ctx, u->refs, &u->ref_capacity, (size_t)nu + (size_t)nk, sizeof *refs);
    if (!refs) { return CRD_E_MEMORY; }
    u->refs = refs;
    for (int i = 0; i < nu; i++) {
        refs[i] = crdi_fmi_unit_reference(unit, unknowns[i]);
    }
    for (int k = 0; k < nk; k++) {
        refs[nu + k] = crdi_fmi_unit_reference(unit, knowns[k]);
    }
    return crd_fmi_directional_derivative(u->fmi, refs, (size_t)nu, refs + nu, (size_t)nk, seed,
                                          result);
}

typedef struct fmi_state {
    void* fmu_state;
    double next_event;
    bool wants_stop;
} fmi_state;

static crd_status save(crd_unit* unit, void** state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!*state) { *state = crdi_new(unit->ctx, sizeof(fmi_state)); }
    fmi_state* s = *state;
    if (!s) { return CRD_E_MEMORY; }
    s->next_event = u->next_event;
    s->wants_stop = unit->wants_stop;
    return crd_fmi_save(u->fmi, &s->fmu_state);
}

static crd_status restore(crd_unit* unit, void* state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const fmi_state* s = state;
    const crd_status st = crd_fmi_restore(u->fmi, s->fmu_state);
    if (st < 0) { return st; }
    u->next_event = s->next_event;
    unit->wants_stop = s->wants_stop;
    u->epoch++;
    return CRD_OK;
}

static void free_state(crd_unit* unit, void** state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    fmi_state* s = *state;
    if (!s) { return; }
    // An abandoned FMU keeps what it has: its code is not called again.
    if (u->fmi && s->fmu_state) { (void)crd_fmi_free_state(u->fmi, &s->fmu_state); }
    crdi_free(unit->ctx, s);
    *state = NULL;
}

// ---- description -------------------------------------------------------------------------------

static int32_t find(const crd_unit* unit, const char* name)
{
    return crd_fmu_find(((const crdi_fmi_unit*)unit)->fmu, name);
}

static bool dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const crd_variable* v = &unit->info.variables[variable];
    if (v->unit_index >= 0 && u->d->units[v->unit_index].has_base) {
        *out = u->d->units[v->unit_index].base;
    } else if (!v->unit[0] || !crd_dimension_parse(v->unit, out)) {
        return false;
    }
    if (v->relative_quantity) { out->offset = 0; }
    return true;
}

static const char* item_at(const crd_unit* unit, int32_t variable, int32_t k, int64_t* value)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const int32_t type = unit->info.variables[variable].type_index;
    if (type < 0 || k >= u->d->enumerations[type].item_count) { return NULL; }
    *value = u->d->enumerations[type].items[k].value;
    return u->d->enumerations[type].items[k].name;
}

static bool item(const crd_unit* unit, int32_t variable, const char* name, int64_t* value)
{
    const char* text = NULL;
    for (int32_t k = 0; (text = item_at(unit, variable, k, value)) != NULL; k++) {
        if (strcmp(text, name) == 0) { return true; }
    }
    return false;
}

static const char* last_call(const crd_unit* unit)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    return u->fmi ? crd_fmi_last_call(u->fmi) : u->last_call;
}

// Length of a dimension with the structural parameters that are set.
static uint64_t axis_length(const crd_unit* unit, const crd_fmu_axis* axis)
{
    if (axis->variable < 0) { return axis->start; }
    const crdi_setting* s = crdi_unit_setting(unit, crdi_unit_canonical(unit, axis->variable));
    if (s) { return (uint64_t)s->values.integer[0]; }
    const char* start = unit->info.variables[axis->variable].start;
    uint64_t length = 0;
    return start && crdi_parse_uint64(start, strlen(start), &length) ? length : 0;
}

static uint32_t extent(const crd_unit* unit, int32_t variable, int axis)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const int32_t v = crdi_unit_canonical(unit, variable);
    const int32_t first = u->d->axis_first[v];
    return first < 0 ? 1 : (uint32_t)axis_length(unit, &u->d->axes[first + axis]);
}

// Structural settings change the sizes of arrays: the unit gets variables of its own.
static crd_status resize(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const size_t n = (size_t)unit->info.variable_count;
    crd_variable* own = crdi_new_array(unit->ctx, n, sizeof *own);
    if (!own) { return CRD_E_MEMORY; }
    memcpy(own, u->d->variables, n * sizeof *own);
    u->variables = own;
    unit->info.variables = own;
    for (size_t i = 0; i < n; i++) {
        crd_variable* v = &own[i];
        const int32_t first = u->d->axis_first[v->alias_of >= 0 ? v->alias_of : (int32_t)i];
        if (!v->rank || first < 0) { continue; }
        uint64_t size = 1;
        for (int axis = 0; axis < v->rank; axis++) {
            const uint64_t length = axis_length(unit, &u->d->axes[first + axis]);
            if (length > MOST_ELEMENTS || (size *= length) > MOST_ELEMENTS) {
                return crdi_fail(unit->ctx, CRD_E_RANGE,
                                 "array '%s' would have more than %d elements", v->name,
                                 MOST_ELEMENTS);
            }
        }
        v->size = (uint32_t)size;
    }
    return CRD_OK;
}

// One table for each set of things that an FMU may offer: units share them, which keeps the tables
// in the cache when there are a thousand units.
enum { CURVES = 1, DERIVATIVES = 2, DIRECTIONAL = 4, STATES = 8 };
#define OPS(offers)                                                                                \
    {                                                                                              \
        .instantiate = instantiate, .enter_initialization = enter_initialization,                  \
        .exit_initialization = exit_initialization, .set = crdi_fmi_unit_set,                      \
        .get = crdi_fmi_unit_get, .step = step, .join = join,                                      \
        .set_derivatives = (offers)&CURVES ? crdi_fmi_unit_set_derivatives : NULL,                 \
        .get_derivatives = (offers)&DERIVATIVES ? crdi_fmi_unit_get_derivatives : NULL,            \
        .directional = (offers)&DIRECTIONAL ? directional : NULL,                                  \
        .save = (offers)&STATES ? save : NULL, .restore = (offers)&STATES ? restore : NULL,        \
        .free_state = (offers)&STATES ? free_state : NULL, .terminate = terminate,                 \
        .abandon = abandon, .destroy = destroy, .prepare = crdi_fmi_unit_prepare,                  \
        .unprepare = crdi_fmi_unit_unprepare, .find = find, .dimension = dimension, .item = item,  \
        .last_call = last_call, .item_at = item_at, .extent = extent,                              \
    }
static const crd_unit_ops ops[] = {OPS(0),  OPS(1),  OPS(2),  OPS(3), OPS(4),  OPS(5),
                                   OPS(6),  OPS(7),  OPS(8),  OPS(9), OPS(10), OPS(11),
                                   OPS(12), OPS(13), OPS(14), OPS(15)};

// Inputs that will be set inside steps have to be named when an FMU is instantiated.
static crd_status list_intermediate_inputs(crdi_fmi_unit* u)
{
    const crd_fmu_description* d = u->d;
    if (d->version != CRD_FMI_3 || !d->provides_intermediate_update) { return CRD_OK; }
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (int32_t i = 0; i < d->variable_count; i++) {
            const crd_variable* v = &d->variables[i];
            if (v->causality != CRD_INPUT || v->type != CRD_FLOAT64 || !v->intermediate_update ||
                v->variability != CRD_CONTINUOUS || v->alias_of >= 0) {
                continue;
            }
            if (pass == 1) { u->intermediate[n] = v->reference; }
            n++;
        }
        if (n == 0) { return CRD_OK; }
        if (pass == 0) {
            u->intermediate = crdi_new_array(u->base.ctx, n, sizeof *u->intermediate);
            if (!u->intermediate) { return CRD_E_MEMORY; }
        }
    }
    u->intermediate_count = n;
    return CRD_OK;
}

static void describe(crdi_fmi_unit* u)
{
    const crd_fmu_description* d = u->d;
    const bool curves =
        d->version == CRD_FMI_2 ? d->can_interpolate_inputs : u->intermediate_count > 0;
    u->base.info = (crd_unit_info){
        .variables = d->variables,
        .variable_count = d->variable_count,
        .outputs = &d->outputs,
        .initial = &d->initial_unknowns,
        .flags = (d->can_get_set_state ? CRD_UNIT_CAN_SAVE : 0u) |
                 (d->can_handle_variable_step ? CRD_UNIT_CAN_VARY_STEP : 0u) |
                 (d->provides_directional_derivatives ? CRD_UNIT_HAS_DIRECTIONAL : 0u) |
                 (d->has_event_mode ? CRD_UNIT_HAS_EVENTS : 0u),
        .max_input_order = curves ? CRD_MODEL_MAX_ORDER : 0,
        .max_output_order = d->max_output_derivative,
        .start = d->has_start ? d->start : NAN,
        .stop = d->has_stop ? d->stop : NAN,
        .step = d->has_step                  ? d->step
                : d->fixed_internal_step > 0 ? d->fixed_internal_step
                                             : NAN,
        .tolerance = d->has_tolerance ? d->tolerance : NAN,
        .kind = d->version == CRD_FMI_2 ? "FMU 2.0" : "FMU 3.0",
    };
    u->base.ops = &ops[(curves ? CURVES : 0) | (d->max_output_derivative ? DERIVATIVES : 0) |
                       (d->provides_directional_derivatives ? DIRECTIONAL : 0) |
                       (d->can_get_set_state ? STATES : 0)];
    u->event_mode = d->version == CRD_FMI_3 && d->has_event_mode;
}

static void warn(crdi_fmi_unit* u)
{
    const crd_fmu_description* d = u->d;
    for (int32_t i = 0; i < d->variable_count; i++) {
        const crd_variable* v = &d->variables[i];
        if (v->type == CRD_CLOCK && v->causality == CRD_INPUT) {
            crdi_log(u->base.ctx, CRD_LOG_WARNING,
                     "unit '%s': %s has the input clock '%s', which will never tick here",
                     u->base.name, crd_fmu_path(u->fmu), v->name);
            break;
        }
    }
    if (d->fixed_internal_step > 0) {
        crdi_log(u->base.ctx, CRD_LOG_INFO,
                 "unit '%s': %s computes in steps of %g s, communication steps should be "
                 "multiples",
                 u->base.name, crd_fmu_path(u->fmu), d->fixed_internal_step);
    }
}

static crd_status create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                         crd_place* place, crd_unit** out)
{
    (void)place;
    crd_status st = CRD_OK;
    crdi_fmi_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->base = (crd_unit){.ops = &ops[0], .ctx = ctx, .name = spec->name, .spec = spec};
    u->next_event = INFINITY;
    u->last_call = "";
    u->shares_fmu = store != NULL;
    CRD_TRY(store ? crdi_unit_store_fmu(store, ctx, spec->path, &u->fmu)
                  : crd_fmu_open(ctx, spec->path, NULL, &u->fmu));
    u->d = crd_fmu_describe(u->fmu);
    CRD_TRY(crd_fmu_check_runnable(u->fmu, ctx));
    CRD_TRY(list_intermediate_inputs(u));
    describe(u);
    warn(u);
    *out = &u->base;
    return CRD_OK;
fail:
    destroy(&u->base);
    return st;
}

const crdi_adapter crdi_adapter_fmi = {.create = create, .resize = resize};
