// An FMU for Model Exchange as a unit: a solver of ours integrates it from event to event.
#include "unit/me/me_unit.h"
#include "shared/unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    MOST_UPDATES = 1000,   // of discrete states in one event
    MOST_EVENTS = 100000,  // in one communication step
    MOST_CROWD = 1000,     // events that follow each other almost at once
    MOST_STEPS = 10000000, // of the solver in one communication step
};

// Of a communication step: a time event that close behind its end belongs to it.
static const double SLACK = 1e-9;
// Of a communication step: events closer than that do not let time go on.
static const double CROWD = 1e-9;

// ---- events ------------------------------------------------------------------------------------

static crd_status me_fail_at(crdi_me_unit* u, crd_status st)
{
    return st < 0 ? crdi_fail_in(u->base.base.ctx, st, "at t = %.9g", u->t) : st;
}

// Indicators begin a new stretch of time: on which side of zero are they?
static crd_status note_domains(crdi_me_unit* u)
{
    bool discarded = false;
    if (!u->nz) { return CRD_OK; }
    const crd_status st = crd_fmi_get_indicators(u->base.fmi, u->z, (size_t)u->nz, &discarded);
    if (st < 0 || discarded) {
        u->failed = st;
        u->bad = -1;
        return crdi_me_fail_point(u, u->t, "its event indicators are needed here");
    }
    for (int32_t k = 0; k < u->nz; k++) {
        u->domain[k] = u->z[k] > 0 ? 1 : -1;
    }
    return CRD_OK;
}

static crd_status get_nominals(crdi_me_unit* u)
{
    if (!u->nx) { return CRD_OK; }
    const crd_status st = crd_fmi_get_nominals(u->base.fmi, u->nominal, (size_t)u->nx);
    for (int32_t k = 0; k < u->nx && st == CRD_OK; k++) {
        // 0 and less make no sense as a size, and some FMUs have them
        if (!(u->nominal[k] > 0) || !isfinite(u->nominal[k])) { u->nominal[k] = 1; }
    }
    return st;
}

static crd_status me_settle(crdi_fmi_unit* base)
{
    crd_status st = CRD_OK;
    crdi_me_unit* u = (crdi_me_unit*)base;
    crd_fmi_update update = {.again = true};
    bool nominals = false;
    for (int k = 0; update.again; k++) {
        if (k == MOST_UPDATES) {
            return crdi_fail(base->base.ctx, CRD_E_UNIT,
                             "the event at t = %.9g does not end: its discrete states still change "
                             "after %d updates; the model's conditions contradict each other there",
                             u->t, MOST_UPDATES);
        }
        CRD_TRY(crd_fmi_update_discrete(base->fmi, &update));
        nominals = nominals || update.nominals_changed;
        if (update.terminate) {
            crdi_unit_wish_stop(&base->base);
            break;
        }
    }
    base->next_event = update.has_next_event ? update.next_event : INFINITY;
    base->now = u->t;
    crdi_fmi_unit_tell_event(base);
    if (update.terminate) { return CRD_OK; } // what is left to it is to be read and terminated
    CRD_TRY(crd_fmi_enter_continuous_time(base->fmi));
    if (u->nx) { CRD_TRY(crd_fmi_get_states(base->fmi, u->x, (size_t)u->nx)); }
    u->new_nominals = nominals;
    if (nominals) { CRD_TRY(get_nominals(u)); }
    CRD_TRY(note_domains(u));
    u->restart = true;
    return CRD_OK;
fail:
    return me_fail_at(u, st);
}

static crd_status count_event(crdi_me_unit* u)
{
    const bool close = u->t - u->last_event <= CROWD * u->h;
    u->crowd = close ? u->crowd + 1 : 0;
    u->events++;
    u->base.base.events++;
    u->last_event = u->t;
    if (u->crowd < MOST_CROWD && u->events < MOST_EVENTS) { return CRD_OK; }
    return crdi_fail(u->base.base.ctx, CRD_E_UNIT,
                     "%d events between t = %.9g and t = %.9g%s: the model switches faster and "
                     "faster or to and fro; give it a state of rest, a hysteresis or a shortest "
                     "time between events",
                     (int)u->events, u->begin, u->t,
                     u->crowd >= MOST_CROWD ? ", and time does not go on" : "");
}

// Many time and step events change nothing that the solver sees: states, their derivatives and the
// sides of the indicators are the same. Then it need not begin anew, which is most of an event's
// cost.
static bool same_as_before(crdi_me_unit* u)
{
    const size_t bytes = (size_t)u->n * sizeof *u->x;
    double* after = u->slope + 2 * u->n;
    return memcmp(u->slope + u->n, u->x, bytes) == 0 &&
           memcmp(u->domain + u->nz, u->domain, (size_t)u->nz) == 0 &&
           crdi_me_derivatives(u, u->t, u->x, after) == CRDI_ME_DONE &&
           memcmp(u->slope, after, bytes) == 0;
}

// `located`: the event is where an indicator left its domain, where no step of the solver ends.
static crd_status go_through_event(crdi_me_unit* u, bool located)
{
    const bool compare = u->cvode && !located && !u->restart &&
                         crdi_me_derivatives(u, u->t, u->x, u->slope) == CRDI_ME_DONE;
    crd_status st = count_event(u);
    if (st < 0) { return st; }
    memcpy(u->slope + u->n, u->x, (size_t)u->n * sizeof *u->x);
    memcpy(u->domain + u->nz, u->domain, (size_t)u->nz);
    st = crd_fmi_enter_event_mode(u->base.fmi);
    if (st < 0) { return me_fail_at(u, st); }
    st = me_settle(&u->base);
    if (st == CRD_OK && compare && !u->base.base.wants_stop && !u->new_nominals &&
        same_as_before(u)) {
        u->restart = false;
    }
    return st;
}

// Inputs were set to other values: the solver's past may not fit any more, and an indicator may
// have changed its side.
static crd_status take_inputs(crdi_me_unit* u)
{
    bool discarded = false;
    for (const crdi_fmi_prepared* p = u->base.curved; p; p = p->next) {
        crdi_fmi_unit_compare_inputs(&u->base, p);
    }
    if (u->base.jumped) { u->restart = true; }
    u->bridge = u->base.changed && u->cvode && u->nx;
    const bool look = u->base.changed && u->nz;
    u->base.changed = u->base.jumped = false;
    if (!look) { return CRD_OK; }
    const crd_status st = crd_fmi_get_indicators(u->base.fmi, u->z, (size_t)u->nz, &discarded);
    if (st < 0) { return me_fail_at(u, st); }
    return !discarded && crdi_me_left_domain(u) ? go_through_event(u, true) : CRD_OK;
}

// ---- steps -------------------------------------------------------------------------------------

// An inner step and what the FMU says to its end.
static crd_status me_advance(crdi_me_unit* u, double target, bool* event, bool* located)
{
    bool step_event = false, terminate = false, bridged = false;
    crd_status st = CRD_OK;
    if (u->bridge) { st = crdi_me_bridge(u, target, &bridged); }
    u->bridge = false;
    if (st == CRD_OK && !bridged) {
        st = u->cvode ? crdi_me_cvode_advance(u, target, located)
                      : crdi_me_fixed_advance(u, target, located);
    }
    *event = *located;
    if (st < 0) { return st; }
    if (crdi_me_place(u, u->t, u->x) != CRDI_ME_DONE) {
        return crdi_me_fail_point(u, u->t, "a shorter step may help");
    }
    if (!u->base.d->exchange.needs_completed_step) { return CRD_OK; }
    st = crd_fmi_completed_step(u->base.fmi, u->base.no_rollback, &step_event, &terminate);
    if (st < 0) { return me_fail_at(u, st); }
    if (terminate) { crdi_unit_wish_stop(&u->base.base); }
    *event = *event || step_event;
    return CRD_OK;
}

static crd_status begin_step(crdi_me_unit* u, double t, double h)
{
    // the step before, which may have been longer, may have had an event behind its end
    if (fabs(t - u->t) > 1e3 * SLACK * h + 16 * DBL_EPSILON * fabs(t)) {
        return crdi_fail(u->base.base.ctx, CRD_E_STATE,
                         "a step from t = %.17g was asked for, but the unit is at %.17g", t, u->t);
    }
    const double longest = u->base.base.spec->solver.step;
    const double inner = longest > 0 ? ceil(h / longest - 1e-9) : 1;
    if (!u->cvode && inner > MOST_STEPS) {
        return crdi_fail(u->base.base.ctx, CRD_E_RANGE,
                         "the solver's step of %g s would be made %.0f times in each step of %g s, "
                         "expected at most %d times",
                         longest, inner, h, MOST_STEPS);
    }
    u->base.step_begin = u->begin = t;
    u->h = h;
    u->grid = inner > 1 && !u->cvode ? (int32_t)inner : 1;
    u->grid_at = 0;
    u->events = u->crowd = 0;
    u->last_event = -INFINITY;
    u->failed = CRD_OK;
    u->bad = -1;
    return take_inputs(u);
}

static crd_status me_step(crd_unit* unit, double t, double h)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    crd_status st = CRD_OK;
    const double end = t + h, slack = SLACK * h;
    if (unit->wants_stop) { return CRD_OK; }
    CRD_TRY(begin_step(u, t, h));
    for (int steps = 0; !unit->wants_stop; steps++) {
        const bool timed = u->base.next_event <= end + slack;
        const double target = timed ? u->base.next_event : end;
        bool event = false, located = false;
        if (target - u->t > 8 * DBL_EPSILON * fmax(fabs(u->t), fabs(target))) {
            CRD_TRY(me_advance(u, target, &event, &located));
        } else if (u->t < target) {
            u->t = target;
            if (crdi_me_place(u, u->t, u->x) != CRDI_ME_DONE) {
                return crdi_me_fail_point(u, u->t, "a shorter step may help");
            }
        }
        event = event || (timed && u->t >= target);
        if (event && !unit->wants_stop) { CRD_TRY(go_through_event(u, located)); }
        if (!event && u->t >= end) { break; }
        if (steps == MOST_STEPS) {
            return crdi_fail(unit->ctx, CRD_E_UNIT,
                             "the solver made %d steps from t = %.9g and came to %.9g only; larger "
                             "tolerances or another solver may help",
                             MOST_STEPS, t, u->t);
        }
    }
    u->base.now = u->t;
    crdi_fmi_unit_tell_event(&u->base);
    crdi_fmi_unit_keep_inputs(&u->base);
fail:
    return st;
}

// ---- life --------------------------------------------------------------------------------------

static crd_status count_states(crdi_me_unit* u)
{
    crd_unit* unit = &u->base.base;
    const crd_fmu_model_exchange* x = &u->base.d->exchange;
    size_t described = 0, states = 0, indicators = 0;
    for (int32_t r = 0; r < x->derivatives.count; r++) {
        described += unit->info.variables[x->derivatives.unknown[r]].size;
    }
    const crd_status st = crd_fmi_get_counts(u->base.fmi, &states, &indicators);
    if (st < 0) { return st; }
    if (u->base.d->version == CRD_FMI_1) { described = states; }
    if (u->base.d->version == CRD_FMI_3 && states != described) {
        return crdi_fail(unit->ctx, CRD_E_UNIT,
                         "the FMU says that it has %zu continuous states, its modelDescription "
                         "has %zu",
                         states, described);
    }
    if (described > 10000000 || indicators > 10000000) {
        return crdi_fail(unit->ctx, CRD_E_UNSUPPORTED,
                         "%zu states and %zu event indicators are more than the limit of 10000000",
                         described, indicators);
    }
    u->nx = (int32_t)described;
    u->nz = (int32_t)indicators;
    u->n = u->nx ? u->nx : 1;
    return CRD_OK;
}

static crd_status me_allocate(crdi_me_unit* u)
{
    const size_t n = (size_t)u->n, nz = (size_t)u->nz;
    crdi_me_cvode_destroy(u->cvode);
    u->cvode = NULL;
    crd_arena_clear(&u->memory);
    crd_arena_init(&u->memory, u->base.base.ctx);
    u->x = crdi_arena_new(&u->memory, n, sizeof *u->x);
    u->nominal = crdi_arena_new(&u->memory, n, sizeof *u->nominal);
    u->z = crdi_arena_new(&u->memory, nz, sizeof *u->z);
    u->domain = crdi_arena_new(&u->memory, 2 * nz, sizeof *u->domain);
    u->slope = crdi_arena_new(&u->memory, 3 * n, sizeof *u->slope);
    if (!u->x || !u->nominal || !u->z || !u->domain || !u->slope) { return CRD_E_MEMORY; }
    const bool fixed = u->method == CRD_SOLVER_EULER || u->method == CRD_SOLVER_RK4;
    if (fixed) { return crdi_me_fixed_create(u); }
    const crd_status st = crdi_me_bridge_create(u);
    return st < 0 ? st : crdi_me_cvode_create(u);
}

static crd_status me_instantiate(crd_unit* unit)
{
    crd_status st = CRD_OK;
    crdi_me_unit* u = (crdi_me_unit*)unit;
    crdi_fmi_unit* b = &u->base;
    const crd_fmi_options opt = {.instance_name = unit->name,
                                 .logging_on = unit->spec->logging,
                                 .model_exchange = true,
                                 .call = &b->last_call};
    crd_fmi_destroy(b->fmi);
    b->fmi = NULL;
    unit->wants_stop = false;
    b->epoch++;
    b->next_event = INFINITY;
    CRD_TRY(crd_fmi_instantiate(unit->ctx, b->fmu, &opt, &b->fmi));
    CRD_TRY(crd_fmi_reserve(b->fmi, b->reserve));
    if (b->variables) { // there are structural settings
        CRD_TRY(crd_fmi_enter_configuration(b->fmi));
        CRD_TRY(crdi_unit_send(unit, true));
        CRD_TRY(crd_fmi_exit_configuration(b->fmi));
    }
    CRD_TRY(count_states(u));
    CRD_TRY(me_allocate(u));
fail:
    return st;
}

static double me_choose(double given, double other)
{
    return isnan(given) ? other : given;
}

static crd_status me_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    const crd_solver_spec* s = &unit->spec->solver;
    const double usual = isnan(unit->info.tolerance) ? 1e-6 : unit->info.tolerance;
    u->relative = me_choose(s->relative, e->has_tolerance ? e->tolerance : usual);
    u->absolute = me_choose(s->absolute, u->relative / 100);
    if (!(u->relative >= 0) || !(u->absolute > 0) || u->relative > 1) {
        return crdi_fail(unit->ctx, CRD_E_RANGE,
                         "the solver's tolerances are %g (relative) and %g (absolute), expected "
                         "numbers above 0, the relative one at most 1",
                         u->relative, u->absolute);
    }
    // Located events get better with the tolerance.
    u->band = u->cvode ? fmax(1e-4 * u->relative, 1e-14) : 1e-10;
    u->base.jump = u->relative;
    u->base.no_rollback = !e->may_roll_back;
    u->base.was_set = false;
    u->base.now = u->base.step_begin = u->begin = u->t = e->start;
    u->stop = e->has_stop ? e->stop : INFINITY;
    u->h = unit->spec->step > 0       ? unit->spec->step
           : unit->info.step > 0      ? unit->info.step
           : isfinite(u->stop - u->t) ? 1e-3 * (u->stop - u->t)
                                      : 1e-3;
    const bool tolerance = u->cvode || e->has_tolerance;
    return crd_fmi_enter_initialization(u->base.fmi, tolerance,
                                        u->cvode ? u->relative : e->tolerance, e->start,
                                        e->has_stop, e->stop);
}

static crd_status me_exit_initialization(crd_unit* unit)
{
    crd_status st = CRD_OK;
    crdi_me_unit* u = (crdi_me_unit*)unit;
    CRD_TRY(crd_fmi_exit_initialization(u->base.fmi));
    CRD_TRY(get_nominals(u));
    CRD_TRY(me_settle(&u->base));
    crdi_fmi_unit_keep_inputs(&u->base);
    u->base.changed = u->base.jumped = false;
fail:
    return st;
}

static void me_destroy(crd_unit* unit)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    crdi_fmi_unit_clear(&u->base);
    crdi_me_cvode_destroy(u->cvode);
    crd_arena_clear(&u->memory);
    crd_free(unit->ctx, u);
}

// ---- output derivatives ------------------------------------------------------------------------

// `inputs`: the time on the curves of the inputs.
static crd_status outputs_at(crdi_me_unit* u, const crdi_fmi_prepared* p, double t, double inputs,
                             const double* x, double* y)
{
    if (crdi_me_place_inputs(u, t, inputs, x) != CRDI_ME_DONE) {
        return crdi_me_fail_point(u, t, "the derivatives of outputs are looked for here");
    }
    return crd_fmi_get_real(u->base.fmi, p->derivative_refs, (size_t)p->derivative_count, y,
                            (size_t)p->derivative_count);
}

// y' along the tangent of the states and the curves of the inputs:
//   y' = (-3 y(0) + 4 y(d) - y(2 d)) / (2 d) + O(d^2),   y(s) = y(t + s, x + s f, u(t + s))
// This needs nothing that an FMU may lack, and sees time where directional derivatives do not.
static crd_status me_get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    crd_status st = CRD_OK;
    crdi_me_unit* u = (crdi_me_unit*)unit;
    crdi_fmi_prepared* p = b->prepared;
    const size_t n = (size_t)p->derivative_count;
    memset(d, 0, (size_t)b->real_count * sizeof *d);
    if (!n || order != 1 || crd_fmi_get_state(u->base.fmi) != CRD_FMI_CONTINUOUS) { return CRD_OK; }
    const double s = fmax(cbrt(DBL_EPSILON) * u->h, 64 * DBL_EPSILON * fabs(u->t));
    const double s_time = u->t + 2 * s <= u->stop ? s : 0; // no FMU need go beyond its end
    double* slope = u->slope;
    double* x = u->slope + u->n;
    double* y[3] = {p->derivatives, p->derivatives + n, p->derivatives + 2 * n};
    u->failed = CRD_OK;
    u->bad = -1;
    if (crdi_me_derivatives(u, u->t, u->x, slope) != CRDI_ME_DONE) {
        return crdi_me_fail_point(u, u->t, "the derivatives of outputs are looked for here");
    }
    for (int i = 0; i < 3; i++) {
        for (int32_t k = 0; k < u->nx; k++) {
            x[k] = u->x[k] + i * s * slope[k];
        }
        CRD_TRY(outputs_at(u, p, u->t + i * s_time, u->t + i * s, x, y[i]));
    }
    for (size_t k = 0; k < n; k++) {
        d[p->derivative_at[k]] =
            p->derivative_sign[k] * (4 * (y[1][k] - y[0][k]) - (y[2][k] - y[0][k])) / (2 * s);
    }
    if (crdi_me_place(u, u->t, u->x) != CRDI_ME_DONE) {
        return crdi_me_fail_point(u, u->t, "the derivatives of outputs were looked for here");
    }
fail:
    return st;
}

// ---- saved states ------------------------------------------------------------------------------

// A saved state, and the run that goes on from it, both begin with a new solver: what comes is the
// same, bit for bit.
typedef struct me_state {
    void* fmu_state;
    double t, next_event, h;
    uint64_t sent;
    bool wants_stop;
    double* x; // (2 n) states and their nominal values
    signed char* domain;
} me_state;

static void begin_anew(crdi_me_unit* u)
{
    u->restart = u->forget = true;
    u->base.changed = true;
    u->skip = u->skipped = 0;
}

static void me_free_state(crd_unit* unit, void** state)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    me_state* s = *state;
    if (!s) { return; }
    // An abandoned FMU keeps what it has: its code is not called again.
    if (u->base.fmi && s->fmu_state) { (void)crd_fmi_free_state(u->base.fmi, &s->fmu_state); }
    crd_free(unit->ctx, s->x);
    crd_free(unit->ctx, s->domain);
    crd_free(unit->ctx, s);
    *state = NULL;
}

static crd_status me_save(crd_unit* unit, void** state)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    me_state* s = *state;
    if (!s) {
        s = crdi_new(unit->ctx, sizeof *s);
        if (!s) { return CRD_E_MEMORY; }
        s->x = crdi_new_array(unit->ctx, 2 * (size_t)u->n, sizeof *s->x);
        s->domain = crdi_new_array(unit->ctx, (size_t)u->nz + 1, sizeof *s->domain);
        *state = s;
    }
    crd_status st = s->x && s->domain ? CRD_OK : CRD_E_MEMORY;
    if (st == CRD_OK) { st = crd_fmi_save(u->base.fmi, &s->fmu_state); }
    if (st < 0) {
        me_free_state(unit, state);
        return st;
    }
    s->t = u->t;
    s->next_event = u->base.next_event;
    s->h = u->h;
    s->sent = u->base.sent;
    s->wants_stop = unit->wants_stop;
    memcpy(s->x, u->x, (size_t)u->n * sizeof *s->x);
    memcpy(s->x + u->n, u->nominal, (size_t)u->n * sizeof *s->x);
    if (u->nz) { memcpy(s->domain, u->domain, (size_t)u->nz); }
    begin_anew(u);
    return CRD_OK;
}

static crd_status me_restore(crd_unit* unit, void* state)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    const me_state* s = state;
    const crd_status st = crd_fmi_restore(u->base.fmi, s->fmu_state);
    if (st < 0) { return st; }
    u->t = u->base.now = s->t;
    u->base.next_event = s->next_event;
    crdi_fmi_unit_tell_event(&u->base);
    u->h = s->h;
    unit->wants_stop = s->wants_stop;
    memcpy(u->x, s->x, (size_t)u->n * sizeof *s->x);
    memcpy(u->nominal, s->x + u->n, (size_t)u->n * sizeof *s->x);
    if (u->nz) { memcpy(u->domain, s->domain, (size_t)u->nz); }
    if (u->base.sent != s->sent) { u->base.epoch++; }
    begin_anew(u);
    return CRD_OK;
}

// t, next event, h, states and their nominal values, domains, what the FMU writes.
static crd_status me_write(crd_unit* unit, crd_text* out)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    void* state = NULL;
    size_t size = 0;
    crd_status st = CRD_OK;
    if (!u->base.d->can_get_set_state || !u->base.d->can_serialize_state) {
        return CRD_E_UNSUPPORTED;
    }
    CRD_TRY(me_save(unit, &state));
    const me_state* s = state;
    CRD_TRY(crd_fmi_serialized_size(u->base.fmi, s->fmu_state, &size));
    const double times[] = {s->t, s->next_event, s->h};
    crdi_text_put(out, times, sizeof times);
    crdi_text_put(out, s->x, 2 * (size_t)u->n * sizeof *s->x);
    crdi_text_put(out, s->domain, (size_t)u->nz);
    char* to = crdi_text_room(out, size);
    if (!to) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crd_fmi_serialize(u->base.fmi, s->fmu_state, (uint8_t*)to, size));
    out->length += size;
fail:
    me_free_state(unit, &state);
    return st;
}

static crd_status me_read(crd_unit* unit, const void* bytes, size_t size)
{
    crdi_me_unit* u = (crdi_me_unit*)unit;
    const size_t states = 2 * (size_t)u->n * sizeof(double), zeros = (size_t)u->nz;
    const size_t head = 3 * sizeof(double) + states + zeros;
    const uint8_t* from = bytes;
    double times[3];
    void* state = NULL;
    crd_status st = CRD_OK;
    if (size < head) { return crdi_unit_fail_size(unit, size, head); }
    CRD_TRY(me_save(unit, &state)); // room for it
    me_state* s = state;
    CRD_TRY(crd_fmi_free_state(u->base.fmi, &s->fmu_state));
    CRD_TRY(crd_fmi_deserialize(u->base.fmi, from + head, size - head, &s->fmu_state));
    memcpy(times, from, sizeof times);
    memcpy(s->x, from + sizeof times, states);
    memcpy(s->domain, from + sizeof times + states, zeros);
    s->t = times[0];
    s->next_event = times[1];
    s->h = times[2];
    s->sent = u->base.sent + 1; // what it was sent before does not count
    CRD_TRY(me_restore(unit, s));
fail:
    me_free_state(unit, &state);
    return st;
}

// ---- making it ---------------------------------------------------------------------------------

static const crd_unit_state_ops state_ops = {me_save, me_restore, me_free_state, me_write, me_read};
static const crd_unit_derivative_ops derivative_ops = {
    crdi_fmi_unit_set_derivatives, me_get_derivatives, crdi_fmi_unit_directional};
static const crd_unit_lane_ops lane_ops = {crdi_fmi_unit_prepare, crdi_fmi_unit_unprepare, NULL};

static const crd_unit_ops ops = {
    CRDI_FMI_UNIT_OPS,
    .instantiate = me_instantiate,
    .enter_initialization = me_enter_initialization,
    .exit_initialization = me_exit_initialization,
    .step = me_step,
    .destroy = me_destroy,
    .state = &state_ops,
    .derivatives = &derivative_ops,
    .lane = &lane_ops,
};

static void me_describe(crdi_me_unit* u)
{
    const crd_fmu_description* d = u->base.d;
    const crd_fmu_model_exchange* x = &d->exchange;
    crd_unit* unit = &u->base.base;
    crdi_fmi_unit_describe(&u->base, d->version == CRD_FMI_1   ? "FMU 1.0 ME"
                                     : d->version == CRD_FMI_2 ? "FMU 2.0 ME"
                                                               : "FMU 3.0 ME");
    unit->info.flags = CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_HAS_EVENTS | CRD_UNIT_CAN_REFRESH |
                       (x->can_get_set_state ? CRD_UNIT_CAN_SAVE : 0u) |
                       (x->provides_directional_derivatives ? CRD_UNIT_HAS_DIRECTIONAL : 0u);
    unit->info.max_input_order = CRD_MODEL_MAX_ORDER;
    unit->info.max_output_order = 1;
    unit->ops = &ops;
}

crd_status crdi_me_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                               bool shares_fmu, crd_unit** out)
{
    crdi_me_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) {
        if (!shares_fmu) { crd_fmu_close(fmu); }
        return CRD_E_MEMORY;
    }
    crdi_fmi_unit_init(&u->base, ctx, spec, fmu, shares_fmu);
    crd_arena_init(&u->memory, ctx);
    u->base.exchange = u->base.event_mode = u->base.own_curves = true;
    u->base.settle = me_settle;
    u->method = spec->solver.method;
    u->bad = -1;
    me_describe(u);
    const crd_status st = crd_fmu_check_interface(fmu, true, ctx);
    if (st < 0) {
        me_destroy(&u->base.base);
        return st;
    }
    *out = &u->base.base;
    return CRD_OK;
}
