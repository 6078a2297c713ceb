// One tick after the other: the main loop.
#include "master/master.h"

#include <stdio.h>

void crdi_tick_plan(crd_master* m)
{
    const crdi_plan* p = m->plan;
    m->duties.cycle = m->live || p->paced;
    m->duties.step =
        p->rolls_back || p->iterated || m->solvers || m->connections.prediction_count > 0;
    m->duties.after = m->connections.accepts || p->estimated || p->has_remarks || p->paced ||
                      p->rule->next || m->exchange || m->energy.bond_count > 0 ||
                      crdi_guard_is_on(m) || crdi_record_has_rows(m);
}

// One step; where it may be taken back, as often as it has to be.
static crd_status tick_step(crd_master* m)
{
    crd_status st = CRD_OK;
    for (bool again = true; again;) {
        again = false;
        if (m->plan->rolls_back) { CRD_TRY(crdi_rollback_save(m)); }
        if (m->solvers) { CRD_TRY(crdi_solvers_begin(m)); }
        CRD_TRY(m->plan->iterated ? crdi_iteration_step(m) : crdi_step_sweep(m));
        if (m->solvers) { CRD_TRY(crdi_solvers_look(m)); }
        if (m->connections.prediction_count) {
            const double t = crdi_time_of(m, m->clock.n + 1);
            crdi_connections_sample(m);
            crdi_bonds_probe(m, t);
            CRD_TRY(crdi_refresh_step(m, t));
            CRD_TRY(m->plan->rule->judge(m, crdi_connections_judge(m, t), &again));
        }
        if (again) { CRD_TRY(crdi_rollback_restore(m)); }
    }
fail:
    return st;
}

// Foreign threads may log and ask for the time.
static void tick_reach(crd_master* m, int64_t n, double time)
{
    __atomic_store(&m->clock.time, &time, __ATOMIC_RELAXED);
    __atomic_store_n(&m->clock.n, n, __ATOMIC_RELAXED);
}

// The step counts, and ends `now`.
static crd_status tick_after(crd_master* m, double now)
{
    crd_status st = CRD_OK;
    if (m->connections.accepts) { crdi_connections_accept(m, m->clock.n + 1, now); }
    if (m->plan->estimated) { crdi_estimate_step(m, m->clock.h); }
    tick_reach(m, m->clock.n + 1, now);
    if (m->plan->has_remarks) { crdi_events_note_remarks(m); }
    if (m->plan->rule->next) { CRD_TRY(m->plan->rule->next(m)); }
    if (m->energy.bond_count) { crdi_bonds_balance(m); }
    crdi_guard_step(m);
    if (m->exchange) { crdi_exchange_record(m); }
    if (m->plan->paced) { crdi_pacing_note_busy(m); }
    CRD_TRY(crdi_record_rows(m));
fail:
    return st;
}

// One tick:
//   outputs(n) -> connections -> inputs -> units -> outputs(n+1) -> fresh outputs -> defects
//     -> estimated errors -> energy and its corrections -> guard -> record
static inline __attribute__((always_inline)) crd_status tick(crd_master* m)
{
    const crdi_plan* p = m->plan;
    const int64_t n = m->clock.n;
    m->clock.h = p->rule->begin ? p->rule->begin(m) : crdi_grid_step(&p->times, n);
    const crd_status st = m->duties.step ? tick_step(m) : crdi_step_sweep(m);
    if (st < 0) { return st; }
    const double now = p->rule->end ? p->rule->end(m) : crdi_grid_time(&p->times, n + 1);
    if (m->duties.after) { return tick_after(m, now); }
    tick_reach(m, n + 1, now);
    return CRD_OK;
}

bool crdi_life_is_last(const crd_master* m)
{
    const crdi_times* t = &m->plan->times;
    return m->clock.n >= t->tick_count || (m->plan->controlled && m->clock.time >= t->stop);
}

bool crdi_life_stops(const crd_master* m)
{
    return (m->plan->opt.stop && *m->plan->opt.stop) ||
           __atomic_load_n(&m->life.emergency, __ATOMIC_ACQUIRE);
}

double crdi_time_seen(const crd_master* m)
{
    double t = 0;
    __atomic_load(&m->clock.time, &t, __ATOMIC_RELAXED);
    return t;
}

void crdi_life_end(crd_master* m, crd_end end, int member)
{
    m->life.end = end;
    m->life.end_member = member;
}

void crdi_life_stop_by_command(crd_master* m)
{
    if (m->life.end == CRD_END_NONE) { m->life.end = CRD_END_INTERRUPTED; }
    m->life.stopped_by_page = true;
}

void crdi_life_stood_still(crd_master* m, int64_t ns)
{
    m->life.ns_wall -= ns;
}

void crdi_life_look_for_end(crd_master* m)
{
    if (crdi_life_is_last(m)) {
        m->life.end = CRD_END_STOP_TIME;
    } else if (m->plan->opt.stop && *m->plan->opt.stop) {
        m->life.end = CRD_END_INTERRUPTED;
    }
    if (!__atomic_load_n(&m->life.wish, __ATOMIC_RELAXED)) { return; }
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        if (p->async ? p->run->wants_stop : p->unit->wants_stop) {
            m->life.end = CRD_END_UNIT;
            m->life.end_member = i;
            return;
        }
    }
}

// One cycle: commands, the clock, a tick, what is seen of it, the account.
static crd_status __attribute__((noinline)) cycle(crd_master* m)
{
    crd_status st = CRD_OK;
    if (m->live) {
        CRD_TRY(crdi_live_steer(m));
        if (m->life.end != CRD_END_NONE) { goto fail; }
    }
    if (m->plan->paced) {
        CRD_TRY(crdi_pacing_begin(m));
        if (m->life.end != CRD_END_NONE) { goto fail; } // the stop flag came while we waited
    }
    if (m->clock.n >= m->tuning.at) { crdi_tuning_look(m); }
    CRD_TRY(tick(m));
    if (m->live) { crdi_live_publish(m); }
    crdi_life_look_for_end(m);
    if (m->plan->paced) { crdi_pacing_end(m); }
fail:
    return m->live ? crdi_live_alarm(m, st) : st;
}

// The same of a run that nobody steers and that keeps no clock.
static crd_status free_cycle(crd_master* m)
{
    if (m->clock.n >= m->tuning.at) { crdi_tuning_look(m); }
    const crd_status st = tick(m);
    if (st >= 0) { crdi_life_look_for_end(m); }
    return st;
}

typedef struct {
    crd_master* m;
    int64_t ticks;
    crd_status st;
} advancing;

static void tick_advance(void* with)
{
    advancing* a = with;
    crd_master* m = a->m;
    while (a->ticks > 0 && a->st >= 0 && m->life.end == CRD_END_NONE) {
        int64_t left = crdi_columns_slice(m, a->ticks);
        a->ticks -= left;
        a->st = crdi_columns_reserve(m, left);
        for (; left > 0 && a->st >= 0 && m->life.end == CRD_END_NONE; left--) {
            a->st = m->duties.cycle ? cycle(m) : free_cycle(m);
        }
    }
    if (a->st < 0) { m->life.end = CRD_END_FAILED; }
    crdi_steady_leave_all(m);
}

crd_status crd_master_advance(crd_master* m, int64_t ticks)
{
    if (m->life.end == CRD_END_NONE && (!m->life.started || m->life.finished)) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "crd_master_advance comes after crd_master_initialize and before "
                         "crd_master_finish");
    }
    advancing a = {m, ticks, CRD_OK};
    const int crash = crdi_life_catch(m, tick_advance, &a);
    crdi_sentinel_check(m, -1);
    return crdi_events_note_failure(m, crash ? crdi_member_crashed(m, m->running, crash) : a.st);
}
