// A run on the clock: the cycle thread's way into real time, its deadlines, its account.
#include "master/master.h"

#include <stdio.h>

static const crdi_offer signals[] = {
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
static crd_status cycle_check_units(crdi_plan* plan)
{
    char at[256];
    const crd_pace_spec* p = &plan->sys->run.pace;
    const char* where = crdi_where(p->place, at, sizeof at);
    for (int i = 0; i < plan->member_count; i++) {
        const crd_unit* u = plan->members[i].unit;
        if (!(u->info.flags & CRD_UNIT_IN_REAL_TIME)) { continue; }
        if (p->factor != 1) {
            return crdi_fail(plan->ctx, CRD_E_RANGE,
                             "%sunit '%s' runs in real time, the system at a pace of %.10gx; "
                             "expected 'pace: realtime'",
                             where, u->name, p->factor);
        }
        if (p->overrun == CRD_OVERRUN_STRETCH || p->overrun == CRD_OVERRUN_SKIP) {
            return crdi_fail(plan->ctx, CRD_E_RANGE,
                             "%sunit '%s' runs in real time by a grid of its own, which 'overrun: "
                             "%s' would leave; expected 'record' or 'stop'",
                             where, u->name, p->overrun == CRD_OVERRUN_SKIP ? "skip" : "stretch");
        }
    }
    return CRD_OK;
}

// A human being lives by the clock, and notices are given by it: signs of life are counted in the
// time of the run.
static crd_status check_drivers(const crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        const crd_unit_spec* u = plan->members[i].unit->spec;
        if (u->source != CRD_UNIT_DRIVER || (plan->paced && plan->sys->run.pace.factor == 1)) {
            continue;
        }
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "unit '%s' is driven by hand, which needs a run that keeps the clock; "
                         "expected 'pace: realtime' in 'run', or --pace realtime",
                         u->name);
    }
    return CRD_OK;
}

crd_status crdi_pacing_plan(crdi_plan* plan, crdi_pacing* p)
{
    p->clock = plan->opt.clock ? *plan->opt.clock : crd_clock_system();
    plan->paced = plan->sys->run.pace.factor > 0 && !plan->opt.open_end;
    const char* path = plan->sys->results.path;
    crd_status st = plan->paced ? cycle_check_units(plan) : CRD_OK;
    if (st == CRD_OK) { st = check_drivers(plan); }
    if (st < 0) { return st; }
    if (!plan->paced || !path || !crd_recorder_has_rasters(path)) { return CRD_OK; }
    crdi_offer* x = crdi_arena_new(plan->arena, SIGNALS, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    const double* const from[SIGNALS] = {&p->lateness, &p->busy};
    for (int i = 0; i < SIGNALS; i++) {
        x[i] = signals[i];
        x[i].from = from[i];
    }
    p->signals = x;
    p->signal_count = SIGNALS;
    return CRD_OK;
}

void crdi_pacing_start(crd_master* m)
{
    if (!m->plan->paced) { return; }
    crdi_pacer_init(&m->pace.pacer, &m->plan->sys->run.pace, m->plan->times.start,
                    m->plan->controlled ? 0 : m->plan->times.tick, m->pace.clock);
    m->pace.pacer.stop = m->plan->opt.stop;
    m->pace.pacer.emergency = &m->life.emergency;
}

crd_status crdi_pacing_enter(crd_master* m)
{
    if (m->pace.entered) { return CRD_OK; }
    m->pace.entered = true;
    if (!m->plan->opt.clock) { // a clock of the caller's is no real one
        const crd_status st =
            crdi_realtime_enter(m->ctx, &m->plan->sys->run.pace, &m->pace.pacer.report);
        if (st < 0) { return st; }
        for (int i = 0; i < m->pace.pacer.report.note_count; i++) {
            crdi_log(m->log, CRD_LOG_WARNING, "%s", m->pace.pacer.report.notes[i]);
        }
        if (m->pace.pacer.report.fifo) {
            crdi_tuning_set_priority(m, m->pace.pacer.report.priority);
            crdi_async_set_priority(m, m->pace.pacer.report.priority);
        }
    }
    return CRD_OK;
}

void crdi_pacing_word_overrun(const crd_overrun_info* o, const crdi_plan* plan, char* text,
                              size_t size)
{
    const bool known = o->unit >= 0 && o->unit < plan->member_count;
    const char* unit = known ? plan->members[o->unit].unit->name : "";
    snprintf(text, size, "overrun: cycle %lld was done %.6g ms late%s%s%s", (long long)o->cycle,
             1e-6 * (double)o->late_ns, known ? ", longest in unit '" : "", unit, known ? "'" : "");
}

// Overruns become events of the record once there is time for it.
static void note_overruns(crd_master* m)
{
    const crd_pace_report* r = &m->pace.pacer.report;
    for (int i = 0; i < r->kept_count; i++) {
        char text[CRDI_TEXT];
        crdi_pacing_word_overrun(&r->kept[i], m->plan, text, sizeof text);
        crdi_record_event(m, CRD_EVENT_OVERRUN, r->kept[i].time, text);
    }
}

void crdi_pacing_leave(crd_master* m)
{
    if (!m->pace.entered) { return; }
    if (m->pace.pacer.started) { crdi_pacer_account(&m->pace.pacer); }
    if (!m->plan->opt.clock) { crdi_realtime_leave(&m->pace.pacer.report); }
    note_overruns(m);
}

crd_status crdi_pacing_begin(crd_master* m)
{
    if (!m->pace.pacer.started) {
        const crd_status st = crdi_pacing_enter(m);
        if (st < 0) { return st; }
        crdi_pacer_start(&m->pace.pacer, 0);
    }
    crdi_pacer_wait(&m->pace.pacer, crd_master_time(m));
    m->pace.lateness = 1e-9 * (double)(m->pace.pacer.begin - m->pace.pacer.deadline);
    if (m->pace.pacer.begin < m->pace.pacer.deadline) { crdi_life_end(m, CRD_END_INTERRUPTED, -1); }
    return CRD_OK;
}

const crdi_offer* crdi_pacing_signals(const crd_master* m, int* count)
{
    *count = m->pace.signal_count;
    return m->pace.signals;
}

const crd_pace_report* crdi_pacing_report(const crd_master* m)
{
    return &m->pace.pacer.report;
}

void crdi_pacing_usage(const crd_master* m, crd_pace_report* report)
{
    crdi_pacer_usage(&m->pace.pacer, report);
}

void crdi_pacing_pause(crd_master* m)
{
    if (m->plan->paced && m->pace.pacer.started) { crdi_pacer_pause(&m->pace.pacer); }
}

void crdi_pacing_resume(crd_master* m)
{
    if (m->plan->paced && m->pace.pacer.started) {
        crdi_pacer_resume(&m->pace.pacer, m->clock.time);
    }
}

double crdi_pacing_since_start(const crd_master* m)
{
    if (!m->pace.pacer.started) { return 0; }
    return 1e-9 * (double)(crdi_pacing_now(m) - m->pace.pacer.first);
}

void crdi_pacing_sleep(const crd_master* m, int64_t ns)
{
    m->pace.clock.sleep_until(m->pace.clock.user, crdi_pacing_now(m) + ns);
}

int64_t crdi_pacing_now(const crd_master* m)
{
    return m->pace.clock.now(m->pace.clock.user);
}

void crdi_pacing_note_busy(crd_master* m)
{
    m->pace.busy = 1e-9 * (double)(crdi_pacing_now(m) - m->pace.pacer.begin);
}

// Units that run in real time by themselves have a grid, which is then ours. It is known with their
// first step.
static void adopt_grid(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        const int64_t origin = m->plan->members[i].unit->origin;
        if (origin == 0) { continue; }
        crdi_pacer_start(&m->pace.pacer, origin);
        m->pace.adopted = true;
        return;
    }
}

void crdi_pacing_end(crd_master* m)
{
    // Below a quarter of the period it was not a unit that made the cycle late.
    int64_t waited = 0, most = (int64_t)(0.25e9 * m->clock.h / m->plan->sys->run.pace.factor);
    int slowest = -1;
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        const int64_t here = p->unit->waited - p->run->waited;
        p->run->waited = p->unit->waited;
        waited += here;
        if (m->clock.n % p->ticks != 0) { continue; }
        if (p->run->ns_last - here > most) {
            most = p->run->ns_last - here;
            slowest = i;
        }
    }
    if (!m->pace.adopted && m->clock.n <= m->plan->times.longest_ticks) { adopt_grid(m); }
    const bool good = crdi_pacer_done(&m->pace.pacer, crd_master_time(m), waited, slowest);
    __atomic_store_n(&m->pace.overruns_seen, m->pace.pacer.report.overruns, __ATOMIC_RELAXED);
    __atomic_store_n(&m->pace.lateness_seen, m->pace.pacer.report.lateness.max, __ATOMIC_RELAXED);
    if (!good && m->life.end == CRD_END_NONE) { crdi_life_end(m, CRD_END_OVERRUN, slowest); }
}

bool crd_master_glance(const crd_master* m, int64_t* overruns, double* lateness)
{
    *overruns = __atomic_load_n(&m->pace.overruns_seen, __ATOMIC_RELAXED);
    *lateness = 1e-9 * (double)__atomic_load_n(&m->pace.lateness_seen, __ATOMIC_RELAXED);
    return m->plan->paced;
}
