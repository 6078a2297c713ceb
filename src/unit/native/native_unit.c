// A model in C, in this process: the same life that an exported FMU gives it.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shared/unit.h"
#include "unit/native/native.h"

enum { MOST_EVENTS = 100000, MOST_ITERATIONS = 1000 };

// ---- messages ----------------------------------------------------------------------------------

static void host_log(void* user, crd_model_status status, const char* text)
{
    crdi_native* u = user;
    static const crd_level levels[] = {
        [CRD_MODEL_OK] = CRD_LOG_DEBUG,     [CRD_MODEL_WARNING] = CRD_LOG_WARNING,
        [CRD_MODEL_EVENT] = CRD_LOG_DEBUG,  [CRD_MODEL_TERMINATE] = CRD_LOG_INFO,
        [CRD_MODEL_DISCARD] = CRD_LOG_INFO, [CRD_MODEL_ERROR] = CRD_LOG_INFO,
        [CRD_MODEL_FATAL] = CRD_LOG_INFO,
    };
    if (status >= CRD_MODEL_DISCARD) { snprintf(u->text, sizeof u->text, ": %s", text); }
    crdi_log(u->base.ctx, levels[status], "unit '%s': %s", u->base.name, text);
}

static crd_status failed(crdi_native* u, crd_model_status status, const char* function, double t)
{
    static const char* const words[] = {
        [CRD_MODEL_EVENT] = "ended at an event, of which the model has none",
        [CRD_MODEL_DISCARD] = "was discarded",
        [CRD_MODEL_ERROR] = "failed",
        [CRD_MODEL_FATAL] = "failed for good",
    };
    return crdi_fail(u->base.ctx, CRD_E_UNIT, "%s at %g %s%s", function, t,
                     status <= CRD_MODEL_FATAL ? words[status] : "said no status that there is",
                     u->text);
}

// ---- life --------------------------------------------------------------------------------------

static crd_status native_instantiate(crd_unit* unit)
{
    crdi_native* u = (crdi_native*)unit;
    if (u->model->clear) { u->model->clear(u->self); }
    memset(u->self, 0, u->model->size);
    crd_model_reset(u->model, u->self);
    u->phase = CRDI_NATIVE_INSTANTIATED;
    u->moving = false;
    u->dirty = true;
    u->next_event = INFINITY;
    unit->wants_stop = false;
    return CRD_OK;
}

static crd_status native_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_native* u = (crdi_native*)unit;
    u->time = e->start;
    u->phase = CRDI_NATIVE_INITIALIZATION;
    u->dirty = true;
    return CRD_OK;
}

// Derivatives, if the model has some, and outputs at the present time.
static crd_status native_evaluate(crdi_native* u)
{
    if (u->model->derivatives) {
        u->call = "derivatives";
        const crd_model_status st = u->model->derivatives(u->self, u->time);
        if (st >= CRD_MODEL_DISCARD) { return failed(u, st, "derivatives", u->time); }
    }
    u->call = "outputs";
    u->model->outputs(u->self, u->time);
    return CRD_OK;
}

crd_status crdi_native_refresh(crdi_native* u)
{
    if (!u->dirty) { return CRD_OK; }
    u->dirty = false;
    if (u->phase == CRDI_NATIVE_INITIALIZATION) {
        u->call = "initialize";
        const crd_model_status st = u->model->initialize(u->self, &u->host, u->time);
        if (st >= CRD_MODEL_DISCARD) { return failed(u, st, "initialize", u->time); }
    }
    return u->phase == CRDI_NATIVE_INSTANTIATED ? CRD_OK : native_evaluate(u);
}

static void tell_next_event(crdi_native* u)
{
    u->base.next_event = u->next_event > u->time ? u->next_event : INFINITY;
}

static crd_status handle_event(crdi_native* u)
{
    crd_model_status st = CRD_MODEL_EVENT;
    u->call = "event";
    for (int i = 0; i < MOST_ITERATIONS && st == CRD_MODEL_EVENT; i++) {
        u->next_event = INFINITY;
        st = u->model->event(u->self, &u->host, u->time, &u->next_event);
    }
    if (st == CRD_MODEL_EVENT) {
        return crdi_fail(u->base.ctx, CRD_E_UNIT, "the event iteration at %g does not end",
                         u->time);
    }
    if (st >= CRD_MODEL_DISCARD) { return failed(u, st, "event", u->time); }
    if (st == CRD_MODEL_TERMINATE) { crdi_unit_wish_stop(&u->base); }
    u->dirty = true;
    return CRD_OK;
}

static crd_status native_exit_initialization(crd_unit* unit)
{
    crdi_native* u = (crdi_native*)unit;
    const crd_status st = crdi_native_refresh(u);
    if (st < 0) { return st; }
    u->phase = CRDI_NATIVE_STEP;
    const crd_status ev = u->model->has_events ? handle_event(u) : CRD_OK;
    tell_next_event(u);
    return ev;
}

static void advance_inputs(crdi_native* u, double h)
{
    u->moving = false;
    for (int i = 0; i < u->model->variable_count; i++) {
        const crd_model_variable* row = &u->model->variables[i];
        if (row->causality != CRD_INPUT || !row->derivatives) { continue; }
        crd_model_advance(row, u->self, h);
        const double* d = (const double*)(u->self + row->derivatives);
        u->moving = u->moving || d[0] != 0 || d[1] != 0;
    }
}

static crd_status native_step(crd_unit* unit, double t, double h)
{
    crdi_native* u = (crdi_native*)unit;
    const crd_model* m = u->model;
    const double end = t + h;
    double now = t, left = h;
    if (m->fixed_step && fabs(h - m->default_step) > 1e-9 * h) {
        return crdi_fail(unit->ctx, CRD_E_RANGE, "step size %g, only %g is possible", h,
                         m->default_step);
    }
    for (int events = 0;; events++) {
        double reached = end;
        u->call = "step";
        const crd_model_status st = m->step ? m->step(u->self, &u->host, now, left, &reached)
                                            : crd_model_solve(&u->ode, u->self, &u->host, now, left,
                                                              u->next_event, &reached);
        if (st >= CRD_MODEL_DISCARD || (st == CRD_MODEL_EVENT && !m->has_events)) {
            return failed(u, st, "step", now);
        }
        if (u->moving) { advance_inputs(u, reached - now); }
        if (st == CRD_MODEL_TERMINATE) { crdi_unit_wish_stop(unit); }
        u->time = now = reached;
        if (st != CRD_MODEL_EVENT) { break; }
        const crd_status ev = handle_event(u);
        if (ev < 0) { return ev; }
        unit->events++;
        if (unit->wants_stop) { break; }
        left = end - reached;
        if (!(left > 0)) { break; }
        if (events >= MOST_EVENTS) {
            return crdi_fail(unit->ctx, CRD_E_UNIT, "events without end at %g", reached);
        }
    }
    u->dirty = false;
    tell_next_event(u);
    return native_evaluate(u);
}

static crd_status native_terminate(crd_unit* unit)
{
    crdi_native* u = (crdi_native*)unit;
    if (!u->model->terminate) { return CRD_OK; }
    u->call = "terminate";
    const crd_model_status st = u->model->terminate(u->self, &u->host);
    return st >= CRD_MODEL_DISCARD ? failed(u, st, "terminate", u->time) : CRD_OK;
}

static void native_abandon(crd_unit* unit)
{
    ((crdi_native*)unit)->abandoned = true;
}

static void native_destroy(crd_unit* unit)
{
    crdi_native* u = (crdi_native*)unit;
    if (u->self && u->model->clear && !u->abandoned) { u->model->clear(u->self); }
    if (u->release) { u->release(u->model); }
    crdi_map_clear(&u->names);
    crd_arena_clear(&u->arena);
    crd_free(unit->ctx, u->self);
    crd_free(unit->ctx, u);
}

// ---- derivatives and states --------------------------------------------------------------------

static crd_status native_set_derivatives(crd_unit* unit, const crd_binding* b,
                                         const double* const* d, int order)
{
    crdi_native* u = (crdi_native*)unit;
    assert(order <= u->model->max_input_derivative);
    for (int32_t j = 0; j < b->count; j++) {
        const crd_model_variable* row = &u->model->variables[b->variables[j]];
        if (row->causality != CRD_INPUT || !row->derivatives) { continue; }
        double* own = (double*)(u->self + row->derivatives);
        for (int k = 0; k < CRD_MODEL_MAX_ORDER; k++) {
            own[k] = k < order ? d[k][b->offsets[j]] : 0;
            u->moving = u->moving || own[k] != 0;
        }
    }
    u->dirty = true;
    return CRD_OK;
}

static crd_status native_get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    crdi_native* u = (crdi_native*)unit;
    const crd_status st = crdi_native_refresh(u);
    if (st < 0) { return st; }
    for (int32_t j = 0; j < b->count; j++) {
        const crd_model_variable* row = &u->model->variables[b->variables[j]];
        if (crd_type_kind(row->type) != CRD_REAL) { continue; }
        const size_t n = row->size ? row->size : 1;
        for (size_t k = 0; k < n; k++) {
            d[(size_t)b->offsets[j] + k] = 0;
        }
        if (row->causality == CRD_OUTPUT && row->derivatives &&
            order <= u->model->max_output_derivative) {
            d[b->offsets[j]] = ((const double*)(u->self + row->derivatives))[order - 1];
        }
    }
    return CRD_OK;
}

static crd_status native_directional(crd_unit* unit, const int32_t* unknowns, int nu,
                                     const int32_t* knowns, int nk, const double* seed,
                                     double* result)
{
    crdi_native* u = (crdi_native*)unit;
    const crd_status st = crdi_native_refresh(u);
    if (st < 0) { return st; }
    u->call = "partial";
    for (int i = 0; i < nu; i++) {
        result[i] = 0;
        for (int k = 0; k < nk; k++) {
            result[i] += u->model->partial(u->self, unknowns[i], knowns[k]) * seed[k];
        }
    }
    return CRD_OK;
}

typedef struct native_state {
    double time, next_event;
    size_t outside;
    uint8_t phase;
    bool dirty, moving, wants_stop;
} native_state; // the model's bytes follow, and those from outside of it

static crd_status native_save(crd_unit* unit, void** state)
{
    crdi_native* u = (crdi_native*)unit;
    const crd_model* m = u->model;
    native_state* s = *state;
    const size_t outside = m->outside ? m->outside(u->self) : 0;
    if (!s || s->outside != outside) {
        native_state* fresh = crdi_new(unit->ctx, sizeof *s + m->size + outside);
        if (!fresh) { return CRD_E_MEMORY; }
        crd_free(unit->ctx, s);
        *state = s = fresh;
    }
    *s = (native_state){u->time,  u->next_event, outside,         u->phase,
                        u->dirty, u->moving,     unit->wants_stop};
    memcpy(s + 1, u->self, m->size);
    if (outside) { m->save(u->self, (char*)(s + 1) + m->size); }
    return CRD_OK;
}

static crd_status native_restore(crd_unit* unit, void* state)
{
    crdi_native* u = (crdi_native*)unit;
    const native_state* s = state;
    u->time = s->time;
    u->next_event = s->next_event;
    u->phase = s->phase;
    u->dirty = s->dirty;
    u->moving = s->moving;
    unit->wants_stop = s->wants_stop;
    tell_next_event(u);
    const size_t kept = u->model->kept;
    memcpy(u->self + kept, (const char*)(s + 1) + kept, u->model->size - kept);
    if (!u->model->outside) { return CRD_OK; }
    u->call = "restore";
    const crd_model_status st =
        u->model->restore(u->self, &u->host, (const char*)(s + 1) + u->model->size, s->outside);
    return st >= CRD_MODEL_DISCARD ? failed(u, st, "restore", s->time) : CRD_OK;
}

static void native_free_state(crd_unit* unit, void** state)
{
    crd_free(unit->ctx, *state);
    *state = NULL;
}

static crd_status native_write(crd_unit* unit, crd_text* out)
{
    void* state = NULL;
    if (((crdi_native*)unit)->model->pinned) { return CRD_E_UNSUPPORTED; }
    const crd_status st = native_save(unit, &state);
    if (st < 0) { return st; }
    const native_state* s = state;
    crdi_text_put(out, s, sizeof *s + ((crdi_native*)unit)->model->size + s->outside);
    native_free_state(unit, &state);
    return CRD_OK;
}

static crd_status native_read(crd_unit* unit, const void* bytes, size_t size)
{
    const crd_model* m = ((crdi_native*)unit)->model;
    native_state head = {0};
    if (size >= sizeof head) { memcpy(&head, bytes, sizeof head); }
    const size_t least = sizeof head + m->size;
    if (size < least || size - least != head.outside || (head.outside && !m->outside)) {
        return crdi_unit_fail_size(unit, size, least);
    }
    void* state = crdi_new(unit->ctx, size); // aligned
    if (!state) { return CRD_E_MEMORY; }
    memcpy(state, bytes, size);
    const crd_status st = native_restore(unit, state);
    crd_free(unit->ctx, state);
    return st;
}

// ---- description -------------------------------------------------------------------------------

static int32_t native_find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const crdi_native*)unit)->names, name);
}

static const char* native_item_at(const crd_unit* unit, int32_t variable, int32_t k, int64_t* value)
{
    const char* const* items = ((const crdi_native*)unit)->model->variables[variable].items;
    *value = k + 1;
    return items ? items[k] : NULL;
}

static const char* native_last_call(const crd_unit* unit)
{
    return ((const crdi_native*)unit)->call;
}

static const crd_unit_state_ops state_ops = {native_save, native_restore, native_free_state,
                                             native_write, native_read};
static const crd_unit_derivative_ops derivative_ops = {native_set_derivatives,
                                                       native_get_derivatives, native_directional};
static const crd_unit_name_ops name_ops = {.item_at = native_item_at};

static const crd_unit_ops ops = {
    .instantiate = native_instantiate,
    .enter_initialization = native_enter_initialization,
    .exit_initialization = native_exit_initialization,
    .set = crdi_native_set,
    .get = crdi_native_get,
    .step = native_step,
    .terminate = native_terminate,
    .destroy = native_destroy,
    .find = native_find,
    .state = &state_ops,
    .derivatives = &derivative_ops,
    .names = &name_ops,
    .abandon = native_abandon,
    .last_call = native_last_call,
};

crd_status crdi_native_create(crd_context* ctx, const crd_unit_spec* spec, const crd_model* model,
                              const char* kind, void (*release)(const crd_model* model),
                              crd_unit** out)
{
    crd_status st = CRD_OK;
    crdi_native* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->model = model;
    u->host = (crd_model_host){.user = u, .log = host_log, .resources = "", .model = model};
    u->call = "";
    crd_arena_init(&u->arena, ctx);
    crdi_map_init(&u->names, ctx);
    u->self = crdi_new(ctx, model->size);
    void* room = crdi_arena_new(&u->arena, 1, crd_model_ode_bytes(model));
    if (!u->self || !room) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    crd_model_ode_init(&u->ode, model, room);
    u->base.info = (crd_unit_info){
        .flags = CRD_UNIT_CAN_REFRESH | (model->stateless ? 0u : CRD_UNIT_CAN_SAVE) |
                 (model->fixed_step ? 0u : CRD_UNIT_CAN_VARY_STEP) |
                 (model->partial ? CRD_UNIT_HAS_DIRECTIONAL : 0u) |
                 (model->has_events ? CRD_UNIT_HAS_EVENTS : 0u),
        .max_input_order = model->max_input_derivative,
        .max_output_order = model->max_output_derivative,
        .start = 0,
        .stop = model->default_stop > 0 ? model->default_stop : NAN,
        .step = model->default_step > 0 ? model->default_step : NAN,
        .tolerance = NAN,
        .fixed_step = model->fixed_step ? model->default_step : 0,
        .kind = kind,
    };
    CRD_TRY(crdi_native_describe(u));
    (void)native_instantiate(&u->base);
    u->release = release;
    *out = &u->base;
    return CRD_OK;
fail:
    native_destroy(&u->base);
    return st;
}

static crd_status native_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    return spec->model ? crdi_native_create(ctx, spec, spec->model, "native", NULL, out)
                       : crdi_fail(ctx, CRD_E_RANGE, "the spec of a native unit has no model");
}

const crdi_adapter crdi_adapter_native = {.create = native_create};
