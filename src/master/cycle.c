// A run on the clock: the cycle thread's way into real time, its deadlines, its account.
#include "master/master.h"

#include <stdio.h>

static const crdi_coupled signals[] = {
    {.name = "cardan.lateness",
     .type = CRD_FLOAT64,
     .unit = "s",
     .description = "from the deadline to the beginning of the cycle that ended here"},
    {.name = "cardan.busy",
     .type = CRD_FLOAT64,
     .unit = "s",
     .description = "work of the cycle that ended here, up to its record"},
};
enum { SIGNALS = sizeof signals / sizeof *signals };

// Slaves with a clock of their own fit to one pace only.
static crd_status check_units(crd_master* m)
{
    char at[256];
    const crd_pace_spec* p = &m->sys->run.pace;
    const char* where = crdi_where(p->place, at, sizeof at);
    for (int i = 0; i < m->member_count; i++) {
        const crd_unit* u = m->members[i].unit;
        if (!(u->info.flags & CRD_UNIT_IN_REAL_TIME)) { continue; }
        if (p->factor != 1) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%sunit '%s' runs in real time, the system at a pace of %.10gx; "
                             "expected 'pace: realtime'",
                             where, u->name, p->factor);
        }
        if (p->overrun == CRD_OVERRUN_STRETCH || p->overrun == CRD_OVERRUN_SKIP) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%sunit '%s' runs in real time by a grid of its own, which 'overrun: "
                             "%s' would leave; expected 'record' or 'stop'",
                             where, u->name, p->overrun == CRD_OVERRUN_SKIP ? "skip" : "stretch");
        }
    }
    return CRD_OK;
}

crd_status crdi_cycle_plan(crd_master* m)
{
    m->clock = m->opt.clock ? *m->opt.clock : crd_clock_system();
    m->paced = m->sys->run.pace.factor > 0 && !m->opt.open_end;
    const char* path = m->sys->results.path;
    const crd_status st = m->paced ? check_units(m) : CRD_OK;
    if (st < 0) { return st; }
    if (!m->paced || !path || !crd_recorder_has_rasters(path)) { return CRD_OK; }
    crdi_coupled* x = crdi_arena_new(&m->arena, SIGNALS, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    const double* const from[SIGNALS] = {&m->lateness, &m->busy};
    for (int i = 0; i < SIGNALS; i++) {
        x[i] = signals[i];
        x[i].from = from[i];
    }
    m->pace_signals = x;
    m->pace_signal_count = SIGNALS;
    return CRD_OK;
}

void crdi_cycle_start(crd_master* m)
{
    if (!m->paced) { return; }
    crdi_pacer_init(&m->pacer, &m->sys->run.pace, m->start, m->controlled ? 0 : m->tick, m->clock);
    m->pacer.stop = m->opt.stop;
    m->pacer.emergency = &m->emergency;
}

crd_status crdi_cycle_enter(crd_master* m)
{
    if (m->entered) { return CRD_OK; }
    m->entered = true;
    if (!m->opt.clock) { // a clock of the caller's is no real one
        const crd_status st = crdi_realtime_enter(m->ctx, &m->sys->run.pace, &m->pacer.report);
        if (st < 0) { return st; }
        for (int i = 0; i < m->pacer.report.note_count; i++) {
            crdi_log(m->log, CRD_LOG_WARNING, "%s", m->pacer.report.notes[i]);
        }
        if (m->pool && m->pacer.report.fifo) {
            crdi_pool_set_priority(m->pool, m->pacer.report.priority);
        }
        if (m->pacer.report.fifo) { crdi_async_set_priority(m, m->pacer.report.priority); }
    }
    return CRD_OK;
}

// Overruns become events of the record once there is time for it.
static void note_overruns(crd_master* m)
{
    const crd_pace_report* r = &m->pacer.report;
    for (int i = 0; i < r->kept_count && m->recorder; i++) {
        char text[CRDI_HEARD];
        const crd_overrun_info* o = &r->kept[i];
        const char* unit = o->unit >= 0 ? m->members[o->unit].unit->name : "";
        snprintf(text, sizeof text, "overrun: cycle %lld was done %.6g ms late%s%s%s",
                 (long long)o->cycle, 1e-6 * (double)o->late_ns, *unit ? ", longest in unit '" : "",
                 unit, *unit ? "'" : "");
        crd_recorder_event(m->recorder, CRD_EVENT_OVERRUN, o->time, text);
    }
}

void crdi_cycle_leave(crd_master* m)
{
    if (!m->entered) { return; }
    if (m->pacer.started) { crdi_pacer_account(&m->pacer); }
    if (!m->opt.clock) { crdi_realtime_leave(&m->pacer.report); }
    note_overruns(m);
}

crd_status crdi_cycle_begin(crd_master* m)
{
    if (!m->pacer.started) {
        const crd_status st = crdi_cycle_enter(m);
        if (st < 0) { return st; }
        crdi_pacer_start(&m->pacer, 0);
    }
    crdi_pacer_wait(&m->pacer, crd_master_time(m));
    m->lateness = 1e-9 * (double)(m->pacer.begin - m->pacer.deadline);
    return CRD_OK;
}

// Units that run in real time by themselves have a grid, which is then ours. It is known with their
// first step.
static void adopt_grid(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        const int64_t origin = m->members[i].unit->origin;
        if (origin == 0) { continue; }
        crdi_pacer_start(&m->pacer, origin);
        m->adopted = true;
        return;
    }
}

void crdi_cycle_end(crd_master* m)
{
    // Below a quarter of the period it was not a unit that made the cycle late.
    int64_t waited = 0, most = (int64_t)(0.25e9 * m->h / m->sys->run.pace.factor);
    int slowest = -1;
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        const int64_t here = p->unit->waited - p->waited;
        p->waited = p->unit->waited;
        waited += here;
        if (m->n % p->ticks != 0 && !m->controlled) { continue; }
        if (p->ns_last - here > most) {
            most = p->ns_last - here;
            slowest = i;
        }
    }
    if (!m->adopted && m->n <= m->longest_ticks) { adopt_grid(m); }
    const bool good = crdi_pacer_done(&m->pacer, crd_master_time(m), waited, slowest);
    __atomic_store_n(&m->overruns_seen, m->pacer.report.overruns, __ATOMIC_RELAXED);
    __atomic_store_n(&m->lateness_seen, m->pacer.report.lateness.max, __ATOMIC_RELAXED);
    if (!good && m->end == CRD_END_NONE) {
        m->end = CRD_END_OVERRUN;
        m->end_member = slowest;
    }
}

bool crd_master_glance(const crd_master* m, int64_t* overruns, double* lateness)
{
    *overruns = __atomic_load_n(&m->overruns_seen, __ATOMIC_RELAXED);
    *lateness = 1e-9 * (double)__atomic_load_n(&m->lateness_seen, __ATOMIC_RELAXED);
    return m->paced;
}
