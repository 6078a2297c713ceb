// One sweep over all units: in every phase values move, then the units that are due advance.
#include "master/master.h"

#include <math.h>

static crd_status first_failure(crd_master* m, const crdi_phase* phase)
{
    crd_status first = CRD_OK;
    for (int i = phase->batch_count + phase->async_count - 1; i >= 0; i--) {
        const int member = m->plan->batch[phase->batch_first + i];
        const crdi_member* p = &m->plan->members[member];
        if (p->run->status == CRD_E_CRASH) {
            first = crdi_member_crashed(m, member, p->run->crash_signal);
        } else if (p->run->status < 0) {
            first = crdi_member_failed(m, member, p->run->status);
        }
    }
    return first;
}

// The members of a phase that are due, one after the other.
static bool run_serial(crd_master* m, const int* batch, int count)
{
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (!crdi_member_is_due(m, batch[i])) { continue; }
        m->running = batch[i];
        crdi_member_run(m, &m->plan->members[batch[i]]);
        good = good && m->plan->members[batch[i]].run->status >= 0;
    }
    m->running = -1;
    return good;
}

// Outputs of the row belong to the end of this tick; only predictions ask.
static void stamp_row(crd_master* m, const int* batch, int count)
{
    for (int i = 0; i < count; i++) {
        m->plan->members[batch[i]].run->stamp = m->clock.n + 1;
    }
}

// The way of almost every step: all members are due, nothing is measured, and the units take their
// values, advance and give their values in one call for many. Others go the long way.
static inline bool run_lanes(crd_master* m, const crdi_phase* phase)
{
    const int end = phase->batch_first + phase->batch_count;
    crd_status st = CRD_OK;
    for (int i = phase->batch_first, row; i < end && st >= 0; i += row) {
        row = m->lanes.rows[i];
        crd_advance* advance = m->lanes.advance[i];
        if (!advance) {
            if (!run_serial(m, m->plan->batch + i, row)) { return false; }
            continue;
        }
        st = advance(&m->lanes.lanes[i], row, m->clock.time, m->clock.h, &m->running);
        if (__builtin_expect(st < 0, 0)) { m->plan->members[m->running].run->status = st; }
        if (m->connections.prediction_count) { stamp_row(m, m->plan->batch + i, row); }
        crdi_crash_check_child(m);
    }
    m->running = -1;
    return st >= 0;
}

// A connected output that is not a number poisons everything behind it: the run ends where it
// came from, the first in the order of the schedule.
static crd_status __attribute__((cold, noinline)) fail_nan(crd_master* m)
{
    const double t = m->clock.time + m->clock.h;
    for (int k = 0; k < m->plan->member_count; k++) {
        const crdi_member* p = &m->plan->members[m->plan->batch[k]];
        const crd_unit* u = p->unit;
        for (int i = 0; p->out && i < p->out->count; i++) {
            const crd_variable* v = &u->info.variables[p->out->variables[i]];
            for (uint32_t e = 0; crd_type_kind(v->type) == CRD_REAL && e < v->size; e++) {
                const double y = p->outputs.real[p->out->offsets[i] + (int)e];
                if (isfinite(y) || crdi_member_lets_pass(m, m->plan->batch[k], v->name, t, y)) {
                    continue;
                }
                (void)crdi_fail(u->ctx, CRD_E_UNIT,
                                "output '%s' is not a number (NaN) after the step", v->name);
                return crdi_member_failed(m, m->plan->batch[k], CRD_E_UNIT);
            }
        }
    }
    return CRD_OK;
}

// 0 * y is 0 unless y is NaN or infinite. Four sums run side by side.
static double times_zero(const double* y, size_t count)
{
    double sum[4] = {0};
    for (size_t i = 0; i < count; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            sum[k] += 0 * y[i + k];
        }
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static inline crd_status sweep_check_outputs(crd_master* m)
{
    const double* y = m->plan->outputs;
    const size_t count = m->plan->output_count, fours = count & ~(size_t)3;
    double sum = fours ? times_zero(y, fours) : 0;
    for (size_t i = fours; i < count; i++) {
        sum += 0 * y[i];
    }
    return __builtin_expect(sum == 0, 1) ? CRD_OK : fail_nan(m);
}

// Units that compute elsewhere begin, before the others take their time. `lanes`: rows of them will
// be advanced in one call, and begin so.
static void begin_remote(crd_master* m, const crdi_phase* phase, bool lanes)
{
    for (int i = phase->batch_first, n = 1; i < phase->batch_first + phase->batch_count; i += n) {
        const int member = m->plan->batch[i];
        crdi_member* p = &m->plan->members[member];
        const crd_unit_ops* ops = p->unit->ops;
        const bool row = lanes && m->lanes.advance[i] && CRDI_UNIT_HAS(p->unit, remote, begin_row);
        n = row ? m->lanes.rows[i] : 1;
        if (row) {
            ops->remote->begin_row(&m->lanes.lanes[i], n, m->clock.time, m->clock.h);
            continue;
        }
        if (!CRDI_UNIT_HAS(p->unit, remote, begin) || p->run->parts > 1 || p->ports ||
            !crdi_member_is_due(m, member)) {
            continue;
        }
        double t, h;
        crdi_member_step(m, p, &t, &h);
        if (crdi_member_set(p) >= 0) { ops->remote->begin(p->unit, t, h); }
    }
}

// Members on other threads, elsewhere, not always due, or looked at.
static bool __attribute__((noinline)) run_others(crd_master* m, const crdi_phase* phase)
{
    bool good = true;
    const bool threads = m->tuning.threads > 1 && phase->batch_count - phase->pinned_count > 1;
    const bool serial = m->plan->times.multirate || m->tuning.measure || m->plan->iterated ||
                        (m->live && crdi_live_disturbs(m));
    if (phase->async_count) { crdi_async_begin(m, phase); }
    if (m->plan->has_remote) { begin_remote(m, phase, !threads && !serial); }
    if (threads) {
        crdi_pool_run(m->tuning.pool, phase->batch_first + phase->pinned_count,
                      phase->batch_count - phase->pinned_count);
        (void)run_serial(m, m->plan->batch + phase->batch_first, phase->pinned_count);
        good = false; // look
    } else if (serial) {
        good = run_serial(m, m->plan->batch + phase->batch_first, phase->batch_count);
    } else {
        good = run_lanes(m, phase);
    }
    if (phase->async_count && crdi_async_end(m, phase) < 0) { good = false; }
    return good;
}

// Failures are reported in the order of the batch.
static crd_status __attribute__((cold, noinline))
batch_failed(crd_master* m, const crdi_phase* phase)
{
    const crd_status st = first_failure(m, phase);
    // A unit that was fed with NaN in this tick may fail for it: then its source is to blame.
    const crd_status cause = st < 0 ? sweep_check_outputs(m) : CRD_OK;
    return cause < 0 ? cause : st;
}

// All members of a phase advance.
static inline crd_status run_batch(crd_master* m, const crdi_phase* phase, bool brief)
{
    const bool good = brief ? run_lanes(m, phase) : run_others(m, phase);
    return __builtin_expect(good, 1) ? CRD_OK : batch_failed(m, phase);
}

// Values move into the units whose step begins (early) or ends (late) with this tick.
static crd_status __attribute__((noinline)) move_some_values(crd_master* m, const crdi_phase* phase)
{
    crd_status st = CRD_OK;
    for (int k = 0; k < phase->early_count; k++) {
        const crdi_feed* f = &m->plan->feeds[phase->early_first + k];
        if (m->clock.n % m->plan->members[f->member].ticks != 0) { continue; }
        CRD_TRY(crdi_connections_begin(m, f, m->clock.time));
    }
    for (int k = 0; k < phase->late_count; k++) {
        const crdi_feed* f = &m->plan->feeds[phase->late_first + k];
        if (!crdi_member_is_due(m, f->member)) { continue; }
        const int64_t begin = m->clock.n + 1 - m->plan->members[f->member].ticks;
        CRD_TRY(crdi_connections_begin(m, f, crdi_time_of(m, begin)));
    }
fail:
    return st;
}

static inline crd_status move_values(crd_master* m, const crdi_phase* phase)
{
    if (m->plan->times.multirate) { return move_some_values(m, phase); }
    const double t = m->clock.time;
    const crd_status st = phase->early_count ? crdi_connections_begin(m, &phase->early, t) : CRD_OK;
    return st >= 0 && phase->late_count ? crdi_connections_begin(m, &phase->late, t) : st;
}

// In every phase values move, then the units that are due advance.
crd_status crdi_step_sweep(crd_master* m)
{
    crd_status st = CRD_OK;
    const crdi_phase *p = m->plan->phases, *const end = p + m->plan->phase_count;
    for (; p < end; p++) {
        CRD_TRY(move_values(m, p));
        CRD_TRY(run_batch(m, p, m->tuning.brief));
    }
    CRD_TRY(sweep_check_outputs(m));
fail:
    return st;
}
