// An FMU that brings its own solver (Co-Simulation) as a unit.
#include <math.h>
#include <string.h>

#include "shared/unit.h"
#include "unit/fmi/fmi_unit.h"

// A step that is discarded is made in so many parts at most.
enum { MOST_EVENTS = 100000, MOST_UPDATES = 1000, MOST_PARTS = 1024 };

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
    crdi_fmi_unit_tell_event(u);
    return crd_fmi_enter_step_mode(u->fmi);
}

static crd_status go_through_event(crdi_fmi_unit* u, double t)
{
    crd_status st = CRD_OK;
    u->now = t;
    CRD_TRY(crd_fmi_enter_event_mode(u->fmi));
    if (u->curved) { CRD_TRY(crdi_fmi_unit_move_inputs(u, t)); }
    CRD_TRY(crdi_fmi_unit_settle(u));
fail:
    return st;
}

// A step, and the part of it that the FMU was asked for last.
typedef struct {
    double t, end, from, to;
} attempt;

// Why what the FMU discarded cannot be tried again in less, NULL: it can.
static const char* why_not_shorter(const crdi_fmi_unit* u, const attempt* a)
{
    const crd_fmu_description* d = u->d;
    if (!d->can_handle_variable_step) {
        return "it says that its step cannot vary: give another 'step'";
    }
    if (d->version == CRD_FMI_1 || (d->version == CRD_FMI_2 && !d->can_get_set_state)) {
        return "it cannot go back to try a shorter one: give another 'step'";
    }
    if (d->version == CRD_FMI_2 && !u->retries) {
        return "with 'retry: true' the unit goes back and tries shorter ones";
    }
    return a->to - a->from > (a->end - a->t) / MOST_PARTS ? NULL : "and so were shorter ones";
}

// Discard: the step is made in shorter ones. The first goes to where the FMU says that it came,
// else half as far. An FMU of FMI 3 is as it was before the call (FMI 3.0.2, 4.2.1), one of FMI 2
// is once its state of then is restored (FMI 2.0.4, 4.2.4).
static crd_status go_back(crdi_fmi_unit* u, attempt* a, const crd_fmi_step* s)
{
    const bool part = s->reached > a->from && s->reached < a->to;
    const char* why = why_not_shorter(u, a);
    if (why) {
        return crdi_fail(u->base.ctx, CRD_E_UNIT,
                         "the step from %g to %g was discarded, it came to %g; %s", a->t, a->end,
                         part ? s->reached : a->from, why);
    }
    const double to = part ? s->reached : a->from + (a->to - a->from) / 2;
    crdi_log(u->base.ctx, u->discards++ ? CRD_LOG_DEBUG : CRD_LOG_WARNING,
             "unit '%s': the step from %g to %g was discarded: shorter ones, first to %g, with its "
             "inputs as they were",
             u->base.name, a->from, a->to, to);
    a->to = to;
    return u->before ? crd_fmi_restore(u->fmi, u->before) : CRD_OK;
}

// To the end of the step, or twice as far as the last part.
static crd_status do_part(crdi_fmi_unit* u, attempt* a, double now, crd_fmi_step* s)
{
    const double next = now + 2 * (a->to - a->from);
    a->to = a->to < a->end && next < a->end - SLACK * (a->end - a->t) ? next : a->end;
    a->from = now;
    const crd_status st = u->retries ? crd_fmi_save(u->fmi, &u->before) : CRD_OK;
    return st < 0 ? st : crd_fmi_do_step(u->fmi, a->from, a->to - a->from, u->no_rollback, s);
}

// A step that did not simply reach its end: events, early return, a wish to stop, Discard. What an
// FMU says about the time that it reached counts only when it returned early: one with steps of its
// own may end a little before or after, and goes on from there by itself.
CRDI_COLD static crd_status finish_step(crdi_fmi_unit* u, double t, double h, crd_fmi_step* s)
{
    crd_status st = CRD_OK;
    const double end = t + h, slack = SLACK * h;
    attempt a = {t, end, t, end};
    for (int events = 0;; events++) {
        if (u->intermediate_status < 0) { return u->intermediate_status; }
        if (s->terminate) { crdi_unit_wish_stop(&u->base); }
        if (s->discarded && !s->terminate) {
            CRD_TRY(go_back(u, &a, s));
            CRD_TRY(crd_fmi_do_step(u->fmi, a.from, a.to - a.from, u->no_rollback, s));
            continue;
        }
        const double now = s->early || s->discarded ? s->reached : a.to;
        const bool due = u->event_mode && (s->event_needed || now >= u->next_event - slack);
        u->base.events += due || s->early;
        if (due) { CRD_TRY(go_through_event(u, now)); }
        const bool done = s->early ? now >= end - slack : a.to >= end;
        if (u->base.wants_stop || done) {
            u->now = u->base.wants_stop ? now : end;
            crdi_fmi_unit_tell_event(u);
            return CRD_OK;
        }
        if (events == MOST_EVENTS || now < a.from - slack) {
            return crdi_fail(u->base.ctx, CRD_E_UNIT, "the step from %g to %g does not get past %g",
                             t, end, now);
        }
        CRD_TRY(do_part(u, &a, now, s));
    }
fail:
    return st;
}

static crd_status cs_step(crd_unit* unit, double t, double h)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crd_fmi_step s;
    u->step_begin = t;
    crd_status st = u->retries ? crd_fmi_save(u->fmi, &u->before) : CRD_OK;
    if (st >= 0) { st = crd_fmi_do_step(u->fmi, t, h, u->no_rollback, &s); }
    if (__builtin_expect(st < 0, 0)) { return st; }
    u->now = t + h;
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

static crd_status fmi_advance(crd_lane* first, int count, double t, double h, volatile int* at)
{
    lane_data* d = (void*)first;
    return crd_fmi_advance(&d->exchange, sizeof *first, count, t, h, at);
}

static crd_advance* cs_join(crd_unit* unit, int id, const crd_binding* in, const crd_values* inputs,
                            const crd_binding* out, crd_values* outputs, crd_lane* lane)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const crdi_fmi_prepared* i = in ? in->prepared : NULL;
    const crdi_fmi_prepared* o = out ? out->prepared : NULL;
    if (u->event_mode || u->curved || u->retries || (i && !i->plain_set) || (o && !o->plain_get)) {
        return NULL;
    }
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
    return fmi_advance;
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

// An abandoned FMU keeps what it has: its code is not called again.
static void forget_before(crdi_fmi_unit* u)
{
    if (u->fmi && u->before) { (void)crd_fmi_free_state(u->fmi, &u->before); }
    u->before = NULL;
}

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

// Some FMUs say hasEventMode and refuse to be instantiated with it: they may do without.
static crd_status instantiate_somehow(crdi_fmi_unit* u, crd_fmi_options* opt)
{
    crd_unit* unit = &u->base;
    crd_status st = crd_fmi_instantiate(unit->ctx, u->fmu, opt, &u->fmi);
    if (st != CRD_E_UNIT || !u->event_mode) { return st; }
    char* why = crdi_strdup(unit->ctx, crd_error_text(unit->ctx));
    if (!why) { return CRD_E_MEMORY; }
    opt->event_mode = opt->early_return = false;
    if (crd_fmi_instantiate(unit->ctx, u->fmu, opt, &u->fmi) == CRD_OK) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "%s; it says hasEventMode, but without event mode it works: its events are seen "
                 "at the end of steps only",
                 why);
        u->event_mode = false;
        unit->info.flags &= ~(uint32_t)CRD_UNIT_HAS_EVENTS;
        st = CRD_OK;
    } else {
        st = crdi_fail(unit->ctx, st, "%s", why);
    }
    crd_free(unit->ctx, why);
    return st;
}

static crd_status cs_instantiate(crd_unit* unit)
{
    crd_status st = CRD_OK;
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const bool curves = u->intermediate_count > 0 && unit->input_order > 0;
    if (!curves) { forget_curves(u); }
    crd_fmi_options opt = {
        .instance_name = unit->name,
        .logging_on = unit->spec->logging,
        .event_mode = u->event_mode,
        .early_return = u->event_mode,
        .intermediate = curves ? intermediate : NULL,
        .intermediate_user = u,
        .intermediate_inputs = u->intermediate,
        .intermediate_input_count = curves ? u->intermediate_count : 0,
        .call = &u->last_call,
    };
    forget_before(u);
    crd_fmi_destroy(u->fmi);
    u->fmi = NULL;
    unit->wants_stop = false;
    u->epoch++;
    u->next_event = INFINITY;
    u->intermediate_status = CRD_OK;
    CRD_TRY(instantiate_somehow(u, &opt));
    CRD_TRY(crd_fmi_reserve(u->fmi, u->reserve));
    if (u->variables) { // there are structural settings
        CRD_TRY(crd_fmi_enter_configuration(u->fmi));
        CRD_TRY(crdi_unit_send(unit, true));
        CRD_TRY(crd_fmi_exit_configuration(u->fmi));
    }
fail:
    return st;
}

static crd_status cs_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    u->no_rollback = !e->may_roll_back && !u->retries;
    u->was_set = false;
    u->now = u->step_begin = e->start;
    return crd_fmi_enter_initialization(u->fmi, e->has_tolerance, e->tolerance, e->start,
                                        e->has_stop, e->stop);
}

static crd_status cs_exit_initialization(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const bool asks = !u->own_curves && unit->input_order > 0;
    const crd_status st = asks ? crdi_fmi_unit_exit_asking(u) : crd_fmi_exit_initialization(u->fmi);
    return st == CRD_OK && u->event_mode ? crdi_fmi_unit_settle(u) : st;
}

static void cs_destroy(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    forget_before(u);
    crdi_fmi_unit_clear(u);
    crd_free(unit->ctx, u->intermediate);
    crd_free(unit->ctx, u);
}

// ---- states ------------------------------------------------------------------------------------

typedef struct fmi_state {
    void* fmu_state;
    double next_event, now;
    uint64_t sent;
    bool wants_stop;
} fmi_state;

static crd_status cs_save(crd_unit* unit, void** state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!*state) { *state = crdi_new(unit->ctx, sizeof(fmi_state)); }
    fmi_state* s = *state;
    if (!s) { return CRD_E_MEMORY; }
    s->next_event = u->next_event;
    s->now = u->now;
    s->sent = u->sent;
    s->wants_stop = unit->wants_stop;
    return crd_fmi_save(u->fmi, &s->fmu_state);
}

static crd_status cs_restore(crd_unit* unit, void* state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const fmi_state* s = state;
    const crd_status st = crd_fmi_restore(u->fmi, s->fmu_state);
    if (st < 0) { return st; }
    u->next_event = s->next_event;
    u->now = s->now;
    u->intermediate_status = CRD_OK;
    unit->wants_stop = s->wants_stop;
    if (u->sent != s->sent) { u->epoch++; } // else it still has the discrete inputs as they were
    crdi_fmi_unit_tell_event(u);
    return CRD_OK;
}

static void cs_free_state(crd_unit* unit, void** state)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    fmi_state* s = *state;
    if (!s) { return; }
    // An abandoned FMU keeps what it has: its code is not called again.
    if (u->fmi && s->fmu_state) { (void)crd_fmi_free_state(u->fmi, &s->fmu_state); }
    crd_free(unit->ctx, s);
    *state = NULL;
}

// ---- a state that outlives the process ---------------------------------------------------------

bool crdi_fmi_unit_can_keep(const crd_unit* unit)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    return !u->exchange && u->d->can_get_set_state && u->d->can_serialize_state;
}

crd_status crdi_fmi_unit_keep(crd_unit* unit, void** state, uint8_t* bytes, size_t room,
                              size_t* size)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crd_status st = CRD_OK;
    const double times[] = {u->next_event, u->now};
    CRD_TRY(cs_save(unit, state));
    const fmi_state* s = *state;
    CRD_TRY(crd_fmi_serialized_size(u->fmi, s->fmu_state, size));
    if (room < sizeof times || *size > room - sizeof times) {
        return crdi_fail(unit->ctx, CRD_E_RANGE, "its state has more than %zu bytes", room);
    }
    memcpy(bytes, times, sizeof times);
    CRD_TRY(crd_fmi_serialize(u->fmi, s->fmu_state, bytes + sizeof times, *size));
    *size += sizeof times;
fail:
    return st;
}

crd_status crdi_fmi_unit_resume(crd_unit* unit, const uint8_t* bytes, size_t size)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crd_status st = CRD_OK;
    double times[2];
    fmi_state s = {0};
    if (size < sizeof times) { return crdi_fail(unit->ctx, CRD_E_FORMAT, "its state is cut off"); }
    memcpy(times, bytes, sizeof times);
    CRD_TRY(crd_fmi_deserialize(u->fmi, bytes + sizeof times, size - sizeof times, &s.fmu_state));
    s.next_event = times[0];
    s.now = times[1];
    s.sent = u->sent + 1; // what it was sent before does not count
    CRD_TRY(cs_restore(unit, &s));
fail:
    if (s.fmu_state) { (void)crd_fmi_free_state(u->fmi, &s.fmu_state); }
    return st;
}

static crd_status cs_read(crd_unit* unit, const void* bytes, size_t size)
{
    return crdi_fmi_unit_resume(unit, bytes, size);
}

static crd_status cs_write(crd_unit* unit, crd_text* out)
{
    void* state = NULL;
    size_t size = 0;
    crd_status st = CRD_OK;
    if (!crdi_fmi_unit_can_keep(unit)) { return CRD_E_UNSUPPORTED; }
    CRD_TRY(cs_save(unit, &state));
    CRD_TRY(crd_fmi_serialized_size(((crdi_fmi_unit*)unit)->fmi, ((fmi_state*)state)->fmu_state,
                                    &size));
    const size_t room = size + 2 * sizeof(double);
    char* to = crdi_text_room(out, room);
    if (!to) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_fmi_unit_keep(unit, &state, (uint8_t*)to, room, &size));
    out->length += size;
fail:
    cs_free_state(unit, &state);
    return st;
}

static const crd_unit_state_ops state_ops = {cs_save, cs_restore, cs_free_state, cs_write, cs_read};
static const crd_unit_derivative_ops derivative_ops = {
    crdi_fmi_unit_set_derivatives, crdi_fmi_unit_get_derivatives, crdi_fmi_unit_directional};
static const crd_unit_lane_ops lane_ops = {crdi_fmi_unit_prepare, crdi_fmi_unit_unprepare, cs_join};

// All units share it, which keeps it in the cache when there are a thousand of them.
static const crd_unit_ops ops = {
    CRDI_FMI_UNIT_OPS,
    .instantiate = cs_instantiate,
    .enter_initialization = cs_enter_initialization,
    .exit_initialization = cs_exit_initialization,
    .step = cs_step,
    .destroy = cs_destroy,
    .state = &state_ops,
    .derivatives = &derivative_ops,
    .lane = &lane_ops,
};

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
    u->intermediate_count = (uint32_t)n;
    return CRD_OK;
}

static void cs_describe(crdi_fmi_unit* u)
{
    const crd_fmu_description* d = u->d;
    const bool curves =
        d->version == CRD_FMI_3 ? u->intermediate_count > 0 : d->can_interpolate_inputs;
    crdi_fmi_unit_describe(u, d->version == CRD_FMI_1   ? "FMU 1.0"
                              : d->version == CRD_FMI_2 ? "FMU 2.0"
                                                        : "FMU 3.0");
    crd_unit_info* info = &u->base.info;
    info->flags = (d->can_get_set_state ? CRD_UNIT_CAN_SAVE : 0u) |
                  (d->can_handle_variable_step ? CRD_UNIT_CAN_VARY_STEP : 0u) |
                  (d->provides_directional_derivatives ? CRD_UNIT_HAS_DIRECTIONAL : 0u) |
                  (d->has_event_mode ? CRD_UNIT_HAS_EVENTS : 0u);
    // Both standards forbid to get after a set without a step in between (FMI 2.0.4 4.2.4, FMI
    // 3.0.2 4.2.1), and say that get computes nothing. Who knows his FMU may say that it does.
    if (u->base.spec->refresh == CRD_REFRESH_YES) { info->flags |= CRD_UNIT_CAN_REFRESH; }
    // Derivatives of FMI 2 count from the beginning of the step that they are set for.
    u->retries = u->base.spec->retry && d->version == CRD_FMI_2 && d->can_get_set_state &&
                 d->can_handle_variable_step;
    info->max_input_order = curves && !u->retries ? CRD_MODEL_MAX_ORDER : 0;
    info->max_output_order = d->max_output_derivative;
    if (!d->has_step && d->fixed_internal_step > 0) { info->step = d->fixed_internal_step; }
    u->event_mode = d->version == CRD_FMI_3 && d->has_event_mode;
    u->own_curves = d->version == CRD_FMI_3;
}

crd_status crdi_fmi_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                                bool shares_fmu, crd_unit** out)
{
    crd_status st = CRD_OK;
    crdi_fmi_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) {
        if (!shares_fmu) { crd_fmu_close(fmu); }
        return CRD_E_MEMORY;
    }
    crdi_fmi_unit_init(u, ctx, spec, fmu, shares_fmu);
    u->base.ops = &ops;
    u->settle = crdi_fmi_unit_settle;
    CRD_TRY(crd_fmu_check_interface(fmu, false, ctx));
    CRD_TRY(list_intermediate_inputs(u));
    cs_describe(u);
    if (spec->retry && !u->retries && u->d->version == CRD_FMI_2) {
        crdi_log(ctx, CRD_LOG_WARNING, "unit '%s': %s cannot retry: it does not say %s",
                 u->base.name, crd_fmu_path(u->fmu),
                 u->d->can_get_set_state ? "canHandleVariableCommunicationStepSize"
                                         : "canGetAndSetFMUstate");
    }
    if (u->d->fixed_internal_step > 0) {
        crdi_log(ctx, CRD_LOG_INFO,
                 "unit '%s': %s computes in steps of %g s, communication steps should be "
                 "multiples",
                 u->base.name, crd_fmu_path(u->fmu), u->d->fixed_internal_step);
    }
    *out = &u->base;
    return CRD_OK;
fail:
    cs_destroy(&u->base);
    return st;
}
