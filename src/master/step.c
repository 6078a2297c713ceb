// One tick after the other: the main loop.
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t clock_now(const crd_master* m)
{
    return m->clock.now(m->clock.user);
}

// "at t = 0.5", or where the run was before its first step
static const char* moment(const crd_master* m, char* buffer, size_t size)
{
    if (m->started) {
        snprintf(buffer, size, "at t = %.10g", crd_master_time(m));
    } else {
        snprintf(buffer, size, "at the start");
    }
    return buffer;
}

crd_status crdi_member_failed(crd_master* m, int member, crd_status st)
{
    char when[64];
    const crd_unit* u = m->members[member].unit;
    m->end = CRD_END_FAILED;
    m->end_member = member;
    return crdi_fail(m->ctx, st, "unit '%s' %s: %s", u->name, moment(m, when, sizeof when),
                     crd_error_text(u->ctx));
}

crd_status crdi_member_crashed(crd_master* m, int member, int signal_number)
{
    char when[64];
    crdi_member* p = &m->members[member];
    m->end = CRD_END_FAILED;
    m->end_member = member;
    m->running = -1;
    p->alive = false;
    p->crashed = true;
    const char* call = crdi_unit_last_call(p->unit);
    crd_status st = CRD_E_CRASH;
    if (signal_number == CRDI_GUARD_EXIT) {
        st = crdi_fail(m->ctx, st, "unit '%s' %s: tried to end the process with exit() in %s",
                       p->unit->name, moment(m, when, sizeof when), call);
    } else {
        st = crdi_fail(m->ctx, st, "unit '%s' %s: crashed in %s (%s)", p->unit->name,
                       moment(m, when, sizeof when), call, strsignal(signal_number));
    }
    crdi_unit_abandon(p->unit);
    return st;
}

crd_status crdi_member_get_rates(crdi_member* p)
{
    crd_status st = CRD_OK;
    for (int d = 0; st >= 0 && d < 2 && p->rates[d]; d++) {
        st = p->unit->ops->derivatives->get(p->unit, p->out, d + 1, p->rates[d]);
    }
    return st;
}

crd_status crdi_member_set(crdi_member* p)
{
    crd_unit* u = p->unit;
    if (!p->in) { return CRD_OK; }
    if (p->faults) { crdi_live_disturb(p); }
    crd_status st = u->ops->set(u, p->in, &p->inputs);
    if (st >= 0 && p->slope_order) {
        const double* const slopes[] = {p->slopes[0], p->slopes[1]};
        st = u->ops->derivatives->set(u, p->in, slopes, p->slope_order);
    }
    if (p->faults) { crdi_live_calm(p); }
    return st;
}

// A unit has got what is nearest to the prediction among the polynomials that it takes. Its outputs
// and their derivatives at a point are those of the prediction itself, where it can be told.
void crdi_member_show(crd_master* m, crdi_member* p, double t)
{
    for (int k = 0; k < p->flow_count; k++) {
        crdi_flow* f = &m->flows[p->flows[k]];
        const double s = t - f->origin;
        *f->to = crd_poly_eval(&f->u, s) + f->correction;
        for (int d = 0; d < 2 && f->slope[d]; d++) {
            *f->slope[d] = crd_poly_derivative(&f->u, d + 1, s);
        }
    }
}

static crd_status show_prediction(crd_master* m, crdi_member* p, double t)
{
    crdi_member_show(m, p, t);
    return crdi_member_set(p);
}

// Set inputs, advance, get outputs; `measure` is a constant in both places of use.
static inline __attribute__((always_inline)) crd_status
run_member(crd_master* m, crdi_member* p, double t, double h, const bool measure)
{
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    const int64_t t0 = measure ? clock_now(m) : 0;
    st = crdi_member_set(p);
    if (st < 0) { return st; }
    const int64_t t1 = measure ? clock_now(m) : 0;
    st = u->ops->step(u, t, h);
    if (st < 0) { return st; }
    const int64_t t2 = measure ? clock_now(m) : 0;
    if (p->shown) { st = show_prediction(m, p, t + h); }
    if (p->out && st >= 0) { st = u->ops->get(u, p->out, &p->outputs); }
    if (p->rates[0] && st >= 0) { st = crdi_member_get_rates(p); }
    if (measure) {
        const int64_t t3 = clock_now(m);
        p->ns_set += t1 - t0;
        p->ns_step += t2 - t1;
        p->ns_get += t3 - t2;
        p->ns_last = t3 - t0;
        if (t2 - t1 > p->ns_worst) { p->ns_worst = t2 - t1; }
        p->measured++;
    }
    return st;
}

static crd_status run_measured(crd_master* m, crdi_member* p, double t, double h)
{
    return run_member(m, p, t, h, true);
}

// A step in several: of a unit with a step of its own in a controlled run, and with a sample in the
// middle. The inputs are set anew in each, at their time. Measured as one.
static crd_status run_parts(crd_master* m, crdi_member* p, double t, double h)
{
    crd_unit* u = p->unit;
    const double part = h / p->parts;
    crd_status st = CRD_OK;
    const int64_t t0 = m->measure ? clock_now(m) : 0;
    for (int i = 0; i < p->parts; i++) {
        const double at = t + i * part;
        for (int k = 0; k < p->flow_count; k++) {
            crdi_flow* f = &m->flows[p->flows[k]];
            // The step began with what is nearest over all of it.
            if (i > 0 || crdi_flow_predicts(f)) { crdi_flow_at(f, at - f->origin, part); }
        }
        CRD_TRY(crdi_member_set(p));
        CRD_TRY(u->ops->step(u, at, part));
        if (p->middles && 2 * (i + 1) == p->parts) {
            if (p->shown) { CRD_TRY(show_prediction(m, p, at + part)); }
            CRD_TRY(u->ops->get(u, p->out, &p->outputs));
            memcpy(p->middles, p->outputs.real, (size_t)p->out->real_count * sizeof(double));
        }
    }
    if (p->shown) { CRD_TRY(show_prediction(m, p, t + h)); }
    if (p->out) { CRD_TRY(u->ops->get(u, p->out, &p->outputs)); }
    if (p->rates[0]) { CRD_TRY(crdi_member_get_rates(p)); }
    if (m->measure) {
        const int64_t spent = clock_now(m) - t0;
        p->ns_step += spent;
        p->ns_last = spent;
        if (spent > p->ns_worst) { p->ns_worst = spent; }
        p->measured++;
    }
fail:
    return st;
}

// The step that ends with this tick.
static void step_of(const crd_master* m, const crdi_member* p, double* t, double* h)
{
    const int64_t end = m->n + 1;
    *t = crdi_master_time_of(m, end - p->ticks);
    *h = end == m->tick_count && !m->multirate ? m->last_tick : p->step;
}

void crdi_member_run(crd_master* m, crdi_member* p)
{
    if (m->controlled) {
        p->status = p->parts > 1 ? run_parts(m, p, m->time, m->h)
                    : m->measure ? run_measured(m, p, m->time, m->h)
                                 : run_member(m, p, m->time, m->h, false);
        p->stamp = m->n + 1;
        return;
    }
    double t, h;
    step_of(m, p, &t, &h);
    p->status = m->measure ? run_measured(m, p, t, h) : run_member(m, p, t, h, false);
    p->stamp = m->n + 1;
}

static crd_status first_failure(crd_master* m, const crdi_phase* phase)
{
    crd_status first = CRD_OK;
    for (int i = phase->batch_count + phase->async_count - 1; i >= 0; i--) {
        const int member = m->batch[phase->batch_first + i];
        const crdi_member* p = &m->members[member];
        if (p->status == CRD_E_CRASH) {
            first = crdi_member_crashed(m, member, p->crash_signal);
        } else if (p->status < 0) {
            first = crdi_member_failed(m, member, p->status);
        }
    }
    return first;
}

bool crdi_member_is_due(const crd_master* m, int member)
{
    if (m->iterated && crdi_iteration_skips(m, &m->members[member])) { return false; }
    return !m->multirate || (m->n + 1) % m->members[member].ticks == 0;
}

// The members of a phase that are due, one after the other.
static bool run_serial(crd_master* m, const int* batch, int count)
{
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (!crdi_member_is_due(m, batch[i])) { continue; }
        m->running = batch[i];
        crdi_member_run(m, &m->members[batch[i]]);
        good = good && m->members[batch[i]].status >= 0;
    }
    m->running = -1;
    return good;
}

// The way of almost every step: all members are due, nothing is measured, and the units take their
// values, advance and give their values in one call for many. Others go the long way.
static bool run_lanes(crd_master* m, const crdi_phase* phase)
{
    const double t = crdi_master_time_of(m, m->n);
    const double h = m->h;
    bool good = true;
    int i = phase->batch_first;
    for (const int end = i + phase->batch_count; i < end && good;) {
        const int row = m->lane_rows[i];
        if (!m->advance[i]) {
            good = run_serial(m, m->batch + i, row);
        } else {
            const crd_status st = m->advance[i](&m->lanes[i], row, t, h, &m->running);
            if (st < 0) {
                m->members[m->running].status = st;
                good = false;
            }
        }
        i += row;
    }
    m->running = -1;
    return good;
}

// A connected output that is not a number poisons everything behind it: the run ends where it
// came from, the first in the order of the schedule.
static crd_status __attribute__((cold, noinline)) fail_nan(crd_master* m)
{
    for (int k = 0; k < m->member_count; k++) {
        const crdi_member* p = &m->members[m->batch[k]];
        const crd_unit* u = p->unit;
        for (int i = 0; p->out && i < p->out->count; i++) {
            const crd_variable* v = &u->info.variables[p->out->variables[i]];
            for (uint32_t e = 0; crd_type_kind(v->type) == CRD_REAL && e < v->size; e++) {
                if (!isnan(p->outputs.real[p->out->offsets[i] + (int)e])) { continue; }
                (void)crdi_fail(u->ctx, CRD_E_UNIT,
                                "output '%s' is not a number (NaN) after the step", v->name);
                return crdi_member_failed(m, m->batch[k], CRD_E_UNIT);
            }
        }
    }
    return CRD_OK;
}

static crd_status check_outputs(crd_master* m)
{
    const double* y = m->outputs;
    double sum[4] = {0}; // 0 * y is 0 unless y is NaN or infinite, and four sums run side by side
    size_t i = 0;
    for (; i + 4 <= m->output_count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += 0 * y[i + (size_t)k];
        }
    }
    for (; i < m->output_count; i++) {
        sum[0] += 0 * y[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]) == 0 ? CRD_OK : fail_nan(m);
}

// A derivative that is not a number would become an input, and the target would be blamed.
static crd_status __attribute__((cold, noinline)) fail_rate(crd_master* m)
{
    for (int i = 0; i < m->flow_count; i++) {
        const crdi_flow* f = &m->flows[i];
        for (int d = 1; d <= f->end.order; d++) {
            if (!isnan(f->end.y[d])) { continue; }
            const crd_unit* u = m->members[f->source].unit;
            (void)crdi_fail(u->ctx, CRD_E_UNIT,
                            "derivative %d of output '%s' is not a number (NaN) after the step; it "
                            "is needed to predict the connection %s",
                            d, u->info.variables[f->from_variable].name, f->label);
            return crdi_member_failed(m, f->source, CRD_E_UNIT);
        }
    }
    return CRD_OK;
}

// Units that compute elsewhere begin, before the others take their time.
static void begin_remote(crd_master* m, const crdi_phase* phase)
{
    for (int i = 0; i < phase->batch_count; i++) {
        const int member = m->batch[phase->batch_first + i];
        crdi_member* p = &m->members[member];
        const crd_unit_ops* ops = p->unit->ops;
        const bool remote = CRDI_UNIT_HAS(p->unit, remote, begin);
        if (!remote || p->parts > 1 || !crdi_member_is_due(m, member)) { continue; }
        double t = m->time, h = m->h;
        if (!m->controlled) { step_of(m, p, &t, &h); }
        if (p->faults) { crdi_live_disturb(p); }
        if (!p->in || ops->set(p->unit, p->in, &p->inputs) >= 0) {
            ops->remote->begin(p->unit, t, h);
        }
        if (p->faults) { crdi_live_calm(p); }
    }
}

// All members of a phase advance. Failures are reported in the order of the batch.
static crd_status run_batch(crd_master* m, const crdi_phase* phase)
{
    bool good = true;
    if (phase->async_count) { crdi_async_begin(m, phase); }
    if (m->has_remote) { begin_remote(m, phase); }
    if (m->threads > 1 && phase->batch_count - phase->pinned_count > 1) {
        crdi_pool_run(m->pool, phase->batch_first + phase->pinned_count,
                      phase->batch_count - phase->pinned_count);
        (void)run_serial(m, m->batch + phase->batch_first, phase->pinned_count);
        good = false; // look
    } else if (m->multirate || m->measure || m->iterated || m->disturbed) {
        good = run_serial(m, m->batch + phase->batch_first, phase->batch_count);
    } else {
        good = run_lanes(m, phase);
    }
    if (phase->async_count && crdi_async_end(m, phase) < 0) { good = false; }
    if (good) { return CRD_OK; }
    const crd_status st = first_failure(m, phase);
    // A unit that was fed with NaN in this tick may fail for it: then its source is to blame.
    const crd_status cause = st < 0 ? check_outputs(m) : CRD_OK;
    return cause < 0 ? cause : st;
}

// Values move into the units whose step begins (early) or ends (late) with this tick.
static crd_status move_values(crd_master* m, const crdi_phase* phase)
{
    crd_status st = CRD_OK;
    if (!m->multirate) {
        const double t = crdi_master_time_of(m, m->n);
        if (phase->early_count) { CRD_TRY(crdi_master_transfer(m, &phase->early, t)); }
        if (phase->late_count) { CRD_TRY(crdi_master_transfer(m, &phase->late, t)); }
        return CRD_OK;
    }
    for (int k = 0; k < phase->early_count; k++) {
        const crdi_feed* f = &m->feeds[phase->early_first + k];
        if (m->n % m->members[f->member].ticks != 0) { continue; }
        CRD_TRY(crdi_master_transfer(m, f, crdi_master_time_of(m, m->n)));
    }
    for (int k = 0; k < phase->late_count; k++) {
        const crdi_feed* f = &m->feeds[phase->late_first + k];
        if (!crdi_member_is_due(m, f->member)) { continue; }
        const int64_t begin = m->n + 1 - m->members[f->member].ticks;
        CRD_TRY(crdi_master_transfer(m, f, crdi_master_time_of(m, begin)));
    }
fail:
    return st;
}

// In every phase values move, then the units that are due advance.
crd_status crdi_master_sweep(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->phase_count; i++) {
        CRD_TRY(move_values(m, &m->phases[i]));
        CRD_TRY(run_batch(m, &m->phases[i]));
    }
    CRD_TRY(check_outputs(m));
fail:
    return st;
}

// One step over m->h; where it may be taken back, as often as it has to be.
static crd_status step(crd_master* m)
{
    crd_status st = CRD_OK;
    for (double eps = 0;;) {
        if (m->rolls_back) { CRD_TRY(crdi_master_keep(m)); }
        CRD_TRY(m->iterated ? crdi_master_iterate(m) : crdi_master_sweep(m));
        if (m->flow_count) {
            const double t = crdi_master_time_of(m, m->n + 1);
            crdi_master_sample(m);
            crdi_master_probe(m, t);
            CRD_TRY(crdi_master_refresh(m, t));
            eps = crdi_master_judge(m, t);
        }
        if (isnan(eps) && !m->controlled) { CRD_TRY(fail_rate(m)); }
        if (!m->controlled || !crdi_control_rejects(m, eps)) { break; }
        CRD_TRY(crdi_master_bring_back(m));
    }
fail:
    return st;
}

// One tick:
//   outputs(n) -> links -> inputs -> units -> outputs(n+1) -> defects -> fresh outputs, corrections
//     -> couplings -> record
// Couplings look at the end of a tick, when all outputs belong to the same time, whatever the
// scheme: their estimates are inputs of the steps that begin there.
static crd_status tick(crd_master* m)
{
    crd_status st = CRD_OK;
    m->h = m->controlled               ? crdi_control_step(m)
           : m->n + 1 == m->tick_count ? m->last_tick
                                       : m->tick;
    CRD_TRY(step(m));
    const double now = m->controlled ? crdi_control_end(m) : crdi_master_time_of(m, m->n + 1);
    if (m->flow_count || m->watch_count) { crdi_master_accept(m, now); }
    if (m->estimate) { crdi_master_estimate(m, m->h); }
    if (m->controlled) { __atomic_store(&m->time, &now, __ATOMIC_RELAXED); }
    __atomic_store_n(&m->n, m->n + 1, __ATOMIC_RELAXED); // a unit's own thread may log and ask
    if (m->has_remote) { crdi_master_heed(m); }
    if (m->controlled) { CRD_TRY(crdi_control_next(m)); }
    if (m->power_count) { crdi_master_balance(m, m->controlled ? m->step.h : m->tick); }
    if (m->couple_count) { crdi_master_couple(m); }
    if (m->exchange) { crdi_exchange_note(m); }
    if (m->paced) { m->busy = 1e-9 * (double)(m->clock.now(m->clock.user) - m->pacer.begin); }
    if (m->recorder) { CRD_TRY(crdi_master_record(m)); }
fail:
    return st;
}

void crdi_master_look_for_end(crd_master* m)
{
    if (m->controlled ? m->time >= m->stop : m->n >= m->tick_count) {
        m->end = CRD_END_STOP_TIME;
    } else if (m->opt.stop && *m->opt.stop) {
        m->end = CRD_END_INTERRUPTED;
    }
    if (!__atomic_load_n(&m->wish, __ATOMIC_RELAXED)) { return; }
    for (int i = 0; i < m->member_count; i++) {
        const crdi_member* p = &m->members[i];
        if (p->async ? p->wants_stop : p->unit->wants_stop) {
            m->end = CRD_END_UNIT;
            m->end_member = i;
            return;
        }
    }
}

// One cycle: commands, the clock, a tick, what is seen of it, the account.
static crd_status cycle(crd_master* m)
{
    crd_status st = CRD_OK;
    if (m->live) {
        CRD_TRY(crdi_live_obey(m));
        if (m->end != CRD_END_NONE) { return CRD_OK; }
    }
    if (m->paced) {
        CRD_TRY(crdi_cycle_begin(m));
        if (m->pacer.begin < m->pacer.deadline) { // the stop flag came while we waited
            m->end = CRD_END_INTERRUPTED;
            return CRD_OK;
        }
    }
    if (m->n >= m->tune_at) { crdi_master_tune(m); }
    CRD_TRY(tick(m));
    if (m->live) { crdi_live_show(m); }
    crdi_master_look_for_end(m);
    if (m->paced) { crdi_cycle_end(m); }
fail:
    return st;
}

static crd_status advance(crd_master* m, int64_t ticks)
{
    for (; ticks > 0 && m->end == CRD_END_NONE; ticks--) {
        crd_status st = cycle(m);
        if (m->live) { st = crdi_live_alarm(m, st); }
        if (st < 0) {
            m->end = CRD_END_FAILED;
            return st;
        }
    }
    return CRD_OK;
}

crd_status crd_master_advance(crd_master* m, int64_t ticks)
{
    if (m->end == CRD_END_NONE && (!m->started || m->finished)) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "crd_master_advance comes after crd_master_initialize and before "
                         "crd_master_finish");
    }
    if (!m->opt.guard_crashes) { return crdi_master_note_failure(m, advance(m, ticks)); }
    crdi_guard guard;
    crd_status st = CRD_OK;
    crdi_guard_enter(&guard, &m->running);
    const int crash = sigsetjmp(guard.env, 0);
    if (crash) {
        st = crdi_member_crashed(m, m->running, crash);
    } else {
        st = advance(m, ticks);
    }
    crdi_guard_leave(&guard);
    return crdi_master_note_failure(m, st);
}
