// How a run begins, goes on and ends: initialisation, the loop from chunk to chunk, the end.
#include "master/master.h"
#include "shared/base_progress.h"
#include "shared/base_system.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// ---- initialisation ----------------------------------------------------------------------------

static crd_status instantiate_all(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        m->running = i;
        m->plan->members[i].unit->step = m->plan->controlled ? 0 : m->plan->members[i].step;
        const crd_status st =
            crdi_member_left(m, i, crd_unit_instantiate(m->plan->members[i].unit));
        crdi_sentinel_check(m, i);
        if (st < 0) { return st; }
        m->plan->members[i].run->alive = true;
    }
    return CRD_OK;
}

// Connections on which nothing is done to the values may go from unit to unit.
static void route_all(crd_master* m)
{
    for (int i = 0; i < m->plan->connection_count; i++) {
        crdi_connection* l = &m->plan->connections[i];
        crd_unit *from = m->plan->members[l->from.member].unit,
                 *to = m->plan->members[l->to.member].unit;
        const bool whole = l->from.element < 0 && l->to.element < 0;
        const bool single = from->info.variables[l->from.variable].size == 1 &&
                            to->info.variables[l->to.variable].size == 1;
        if (!CRDI_UNIT_HAS(from, remote, route) || from->ops->remote != to->ops->remote ||
            !(whole || single) || l->transform || l->mapping || l->couple >= 0 || l->paired ||
            l->corrected || l->probed || l->spec->predict > CRD_PREDICTION_HOLD) {
            continue;
        }
        l->routed = from->ops->remote->route(from, l->from.variable, to, l->to.variable);
    }
}

// Inputs start from what the unit has in them, so that a loop begins at the start values.
static crd_status life_enter(crd_master* m, int member, const crd_experiment* e)
{
    crdi_member* p = &m->plan->members[member];
    m->running = member;
    crd_status st = p->unit->ops->enter_initialization(p->unit, e);
    if (st >= 0 && p->in) { st = p->unit->ops->get(p->unit, p->in, &p->inputs); }
    m->running = -1;
    crdi_crash_check_child(m);
    return st;
}

// The last step of some unit may end some roundings behind the stop: there are FMUs that compare.
static double stop_of_units(const crdi_times* t)
{
    const double size = fmax(fabs(t->start), fabs(t->stop));
    // A stop of few digits is no end of a step.
    const double last = t->start + (double)(t->tick_count - 1) * t->tick + t->last_tick;
    return fmax(t->stop, last) + 4 * DBL_EPSILON * size;
}

static crd_experiment experiment_of(crd_master* m)
{
    return (crd_experiment){
        .start = m->plan->times.start,
        .has_stop = !m->plan->opt.open_end,
        .stop = stop_of_units(&m->plan->times),
        .has_tolerance = !isnan(m->plan->times.tolerance),
        .tolerance = isnan(m->plan->times.tolerance) ? 0 : m->plan->times.tolerance,
        .may_roll_back = m->plan->rolls_back || m->plan->halves || m->plan->opt.snapshots,
        .interrupted = m->plan->opt.stop,
        .emergency = &m->life.emergency};
}

static crd_status enter_all(crd_master* m)
{
    const crd_experiment e = experiment_of(m);
    for (int i = 0; i < m->plan->member_count; i++) {
        crd_unit* u = m->plan->members[i].unit;
        const crd_status st =
            CRDI_UNIT_HAS(u, remote, approach) ? u->ops->remote->approach(u, &e) : CRD_OK;
        if (st < 0) { return crdi_member_failed(m, i, st); }
    }
    // What is wrong with a model is known before a bench is waited for.
    for (int i = 0; i < 2 * m->plan->member_count; i++) {
        const int k = i % m->plan->member_count;
        if (CRDI_UNIT_HAS(m->plan->members[k].unit, remote, approach) !=
            (i >= m->plan->member_count)) {
            continue;
        }
        const crd_status st = life_enter(m, k, &e);
        if (st < 0) { return crdi_member_failed(m, k, st); }
    }
    return CRD_OK;
}

// A unit that had to find out what it can take, and needs a new instance now. Its inputs are those
// that fit together already.
static crd_status life_exit(crd_master* m, const crdi_member* p)
{
    crd_unit* u = p->unit;
    crd_status st = u->ops->exit_initialization(u);
    while (st >= 0 && u->begin_again) { // each time with a lower order
        const crd_experiment e = experiment_of(m);
        CRD_TRY(crd_unit_instantiate(u));
        CRD_TRY(u->ops->enter_initialization(u, &e));
        if (p->in) { CRD_TRY(u->ops->set(u, p->in, &p->inputs)); }
        st = u->ops->exit_initialization(u);
    }
fail:
    return st;
}

static crd_status exit_all(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        m->running = i;
        crd_status st = life_exit(m, p);
        if (st >= 0 && p->out) { st = p->unit->ops->get(p->unit, p->out, &p->outputs); }
        st = crdi_member_left(m, i, st);
        crdi_sentinel_check(m, i);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// On to a stage; those that are behind stay so, but values can be made consistent again.
static crd_status life_reach(crd_master* m, crd_stage stage)
{
    crd_status st = CRD_OK;
    if (m->life.stage < CRD_STAGE_INSTANTIATED && stage >= CRD_STAGE_INSTANTIATED) {
        CRD_TRY(instantiate_all(m));
        route_all(m);
        m->life.stage = CRD_STAGE_INSTANTIATED;
    }
    if (m->life.stage < CRD_STAGE_INITIALIZING && stage >= CRD_STAGE_INITIALIZING) {
        CRD_TRY(enter_all(m));
        m->life.stage = CRD_STAGE_INITIALIZING;
    }
    if (stage == CRD_STAGE_CONSISTENT) {
        CRD_TRY(crdi_start_solve(m));
        m->life.stage = CRD_STAGE_CONSISTENT;
    }
fail:
    return st;
}

static crd_status initialize(crd_master* m)
{
    crd_status st = CRD_OK;
    CRD_TRY(life_reach(m, CRD_STAGE_CONSISTENT));
    CRD_TRY(exit_all(m));
    CRD_TRY(crdi_start_orders(m));
    CRD_TRY(crdi_start_predictions(m));
    CRD_TRY(crdi_refresh_start(m));
    crdi_script_start(m);
    crdi_connections_start(m);
    crdi_bonds_start(m);
    if (m->plan->controlled) { CRD_TRY(crdi_control_start(m)); }
    CRD_TRY(crdi_estimate_start(m));
    CRD_TRY(crdi_guard_start(m));
    CRD_TRY(crdi_networks_start(m));
    CRD_TRY(crdi_lanes_plan(m));
    CRD_TRY(crdi_record_open(m));
    crdi_pacing_start(m);
    CRD_TRY(crdi_exchange_open(m));
    CRD_TRY(crdi_async_plan(m));
    CRD_TRY(crdi_tuning_start(m));
    crdi_tick_plan(m);
    CRD_TRY(crdi_steady_start(m));
    m->life.started = true;
    if (m->live) { CRD_TRY(crdi_live_prepare(m)); }
    crdi_coupled_start(m);
    crdi_paired_start(m);
    if (m->exchange) { crdi_exchange_record(m); }
    const char* from = m->plan->opt.resume;
    if (!from) { CRD_TRY(crdi_record_rows(m)); }
    crdi_life_look_for_end(m);
    CRD_TRY(crdi_snapshot_start(m));
    if (from) {
        CRD_TRY(crdi_state_resume(m, from));
        crdi_life_look_for_end(m);
    }
fail:
    return st;
}

// A part of the initialisation, up to `stage`, or all of it.
typedef struct {
    crd_master* m;
    crd_stage stage;
    bool all;
    crd_status st;
} beginning;

static void begin_run(void* with)
{
    beginning* b = with;
    b->st = b->all ? initialize(b->m) : life_reach(b->m, b->stage);
}

static crd_status life_start(crd_master* m, crd_stage stage, bool all)
{
    const int64_t begin = crdi_now_ns();
    if (!m->life.initialized) {
        m->life.initialized = true;
        m->life.wall_start = crdi_clock_ns(CLOCK_REALTIME);
        crdi_tuning_measure_clock(m);
        if (m->plan->opt.guard_crashes) { crdi_crash_install(); }
    }
    beginning b = {m, stage, all, crdi_sentinel_start(m)};
    if (b.st < 0) { return b.st; }
    const int crash = crdi_life_catch(m, begin_run, &b);
    crd_status st = crash ? crdi_member_crashed(m, m->running, crash) : b.st;
    if (m->live) { st = crdi_live_alarm(m, st); }
    if (st < 0) { m->life.end = CRD_END_FAILED; }
    m->life.ns_initialization += crdi_now_ns() - begin;
    return crdi_events_note_failure(m, st);
}

crd_status crd_master_reach(crd_master* m, crd_stage stage)
{
    if (m->life.asked || m->life.finished || m->life.end != CRD_END_NONE) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "crd_master_reach comes before crd_master_initialize");
    }
    return life_start(m, stage, false);
}

crd_status crd_master_initialize(crd_master* m)
{
    if (m->life.asked || m->life.end != CRD_END_NONE) {
        return crdi_fail(m->ctx, CRD_E_STATE, "crd_master_initialize was called twice");
    }
    m->life.asked = true;
    return life_start(m, CRD_STAGE_CONSISTENT, true);
}

void crd_master_cancel(crd_master* m)
{
    __atomic_store_n(&m->cancelled, true, __ATOMIC_RELAXED);
}

// ---- running -----------------------------------------------------------------------------------

typedef struct {
    crd_master* m;
    crd_status first; // failure
} ending;

// Those that are left: it goes on behind a unit that crashed. The first failure of a run counts.
static void terminate_rest(void* with)
{
    ending* e = with;
    crd_master* m = e->m;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        if (!p->run->alive) { continue; }
        p->run->alive = false;
        m->running = i;
        const crd_status st = p->unit->ops->terminate(p->unit);
        m->running = -1;
        crdi_crash_check_child(m);
        if (st < 0 && m->life.end != CRD_END_FAILED) { e->first = crdi_member_failed(m, i, st); }
    }
}

static crd_status terminate_all(crd_master* m)
{
    ending e = {m, CRD_OK};
    for (int crash; (crash = crdi_life_catch(m, terminate_rest, &e)) != 0;) {
        const bool failed = m->life.end == CRD_END_FAILED;
        const int before = m->life.end_member;
        const crd_status st = crdi_member_crashed(m, m->running, crash);
        if (failed) {
            m->life.end_member = before;
        } else {
            e.first = st;
        }
    }
    // A thread that was left alone may still need the guard.
    if (m->plan->opt.guard_crashes && !crdi_async_left(m)) { crdi_crash_remove(); }
    return e.first;
}

// Whatever turns comes to rest from now on, all of it together; terminate_all waits for it.
static void halt_rest(void* with)
{
    crd_master* m = with;
    for (; m->life.halted < m->plan->member_count; m->life.halted++) {
        const crdi_member* p = &m->plan->members[m->life.halted];
        if (!p->run->alive || !CRDI_UNIT_HAS(p->unit, remote, halt)) { continue; }
        m->running = m->life.halted;
        p->unit->ops->remote->halt(p->unit);
        m->running = -1;
    }
}

static void halt_all(crd_master* m)
{
    while (crdi_life_catch(m, halt_rest, m) != 0) {
        const crdi_member* p = &m->plan->members[m->running];
        crdi_log(m->log, CRD_LOG_WARNING, "unit '%s' crashed when it was told to come to rest",
                 p->unit->name);
        p->run->alive = false;
        p->run->crashed = true;
        m->running = -1;
        m->life.halted++;
    }
}

// The end as those see it who watch: with the last of the units. `known`: they know already why.
static void end_live(crd_master* m, crd_status st, bool known)
{
    if (st < 0) { m->life.end = CRD_END_FAILED; }
    if (st < 0 && !known) {
        snprintf(m->life.message, sizeof m->life.message, "%s", crd_error_text(m->ctx));
        crdi_live_note_event(m, CRD_EVENT_ERROR, crdi_time_seen(m), m->life.message);
    }
    crdi_live_end(m);
}

// The record of the benches' states; a failure of the run is the one that counts.
static crd_status end_session(crd_master* m, crd_status st)
{
    char text[512];
    snprintf(text, sizeof text, "%s", st < 0 ? crd_error_text(m->ctx) : "");
    if (st < 0 && !m->life.message[0]) {
        snprintf(m->life.message, sizeof m->life.message, "%s", text);
    }
    const crd_status written = crdi_session_write(m);
    if (st < 0 && written < 0) {
        crdi_log_on(m->ctx, CRD_LOG_WARNING, crd_error_text(m->ctx));
        return crdi_fail(m->ctx, st, "%s", text);
    }
    return st < 0 ? st : written;
}

crd_status crd_master_finish(crd_master* m)
{
    if (!m->life.initialized || m->life.finished) { return CRD_OK; }
    m->life.finished = true;
    crdi_guard_finish(m);
    const crd_status alarm = m->live ? crdi_live_close(m) : CRD_OK;
    const bool known = m->life.message[0] != 0;
    crdi_async_free(m);
    halt_all(m); // still in real time: benches that nobody tells to stop end with their watchdog
    crdi_pacing_leave(m);
    crdi_coupled_warn(m);
    crdi_learning_warn(m);
    crdi_paired_warn(m);
    // The record first: a unit may still crash in its terminate.
    crd_status st = crdi_record_close(m);
    char text[512];
    snprintf(text, sizeof text, "%s", st < 0 ? crd_error_text(m->ctx) : "");
    const crd_status exchanged = crdi_exchange_close(m);
    if (st < 0 && exchanged < 0) { // both are told, the results' as the reason
        crdi_log_on(m->ctx, CRD_LOG_WARNING, crd_error_text(m->ctx));
        crdi_fail(m->ctx, st, "%s", text);
    }
    if (st >= 0) { st = exchanged; }
    const crd_status ended = terminate_all(m);
    if (st >= 0) { st = ended; }
    st = end_session(m, st);
    if (m->live) { end_live(m, st, known); }
    return alarm < 0 ? crdi_fail(m->ctx, alarm, "%s", m->life.message) : st;
}

enum { CHUNK_NS = 20 * 1000 * 1000, PROGRESS_NS = 100 * 1000 * 1000 };

// The progress of a run on the clock is shown by a thread of its own: writing may take its time.
typedef struct {
    crd_master* m;
    pthread_t thread;
    bool quit; // atomic
} reporter;

static void show_time(const crd_master* m, double t)
{
    const crd_master_options* o = &m->plan->opt;
    const double start = m->plan->times.start, stop = m->plan->times.stop;
    if (o->progress) {
        o->progress(o->progress_user, t, start, stop);
    } else {
        crdi_progress(m->ctx, "run", t - start, stop - start, "s");
    }
}

static void* report_progress(void* user)
{
    reporter* r = user;
    const crd_master* m = r->m;
    const struct timespec pause = {.tv_nsec = PROGRESS_NS};
    while (!__atomic_load_n(&r->quit, __ATOMIC_RELAXED)) {
        nanosleep(&pause, NULL);
        show_time(m, crdi_time_seen(m));
    }
    return NULL;
}

static bool start_reporter(reporter* r)
{
    sigset_t all, before;
    sigfillset(&all); // signals are for the cycle thread
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool good = pthread_create(&r->thread, NULL, report_progress, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static crd_status run_steps(crd_master* m);

static crd_status run_reported(crd_master* m)
{
    reporter r = {.m = m};
    const bool shown = m->plan->opt.progress || crdi_progress_is_shown(m->ctx);
    const bool beside = m->plan->paced && shown && start_reporter(&r);
    const crd_status st = run_steps(m);
    if (beside) {
        __atomic_store_n(&r.quit, true, __ATOMIC_RELAXED);
        pthread_join(r.thread, NULL);
    }
    crdi_progress_end(m->ctx);
    return st;
}

// So that the step behind which the state is saved is the last of its chunk.
static int64_t chunk_until_saved(const crd_master* m, int64_t chunk, const bool* saved)
{
    if (*saved || !(m->plan->opt.save_at > 0)) { return chunk; }
    const double ticks = floor((m->plan->opt.save_at - crd_master_time(m)) / m->plan->times.tick);
    return m->plan->controlled || !(ticks > 1) ? 1 : ticks < (double)chunk ? (int64_t)ticks : chunk;
}

static crd_status save_when_due(crd_master* m, bool* saved)
{
    const crd_master_options* o = &m->plan->opt;
    const double t = crd_master_time(m);
    const double slack = 1e-9 * m->plan->times.tick + 4 * DBL_EPSILON * fabs(t);
    const bool due = o->save_at > 0 ? t >= o->save_at - slack : m->life.end == CRD_END_STOP_TIME;
    if (*saved || !due) {
        if (!*saved && m->life.end != CRD_END_NONE) {
            crdi_log(m->ctx, CRD_LOG_WARNING, "%s is not written: the run ended at t = %.10g s",
                     o->save_file, t);
        }
        return CRD_OK;
    }
    *saved = true;
    return crd_master_save_file(m, o->save_file);
}

// In chunks of about 20 ms, between which the progress is shown.
static crd_status run_steps(crd_master* m)
{
    crd_status st = m->plan->paced ? crdi_events_note_failure(m, crdi_pacing_enter(m)) : CRD_OK;
    if (st < 0) { m->life.end = CRD_END_FAILED; }
    int64_t chunk = 1, now = crdi_now_ns(), shown = now;
    bool saved = !m->plan->opt.save_file;
    const int64_t begin = now;
    while (st >= 0 && m->life.end == CRD_END_NONE) {
        const int64_t before = now;
        st = crd_master_advance(m, chunk_until_saved(m, chunk, &saved));
        if (st >= 0) { st = save_when_due(m, &saved); }
        now = crdi_now_ns();
        if (now - before < CHUNK_NS / 2 && chunk < INT32_MAX) { chunk *= 2; }
        if (now - before > CHUNK_NS && chunk > 1) { chunk /= 2; }
        if (!m->plan->paced && now - shown >= PROGRESS_NS) {
            shown = now;
            show_time(m, crd_master_time(m));
        }
    }
    m->life.ns_wall += now - begin;
    return st;
}

crd_status crd_master_run(crd_master* m)
{
    crd_status st = crd_master_initialize(m);
    if (st >= 0) { st = run_reported(m); }
    if (st < 0) {
        // Its sentence is the one to keep, unless it was the record that failed.
        char text[512];
        strncpy(text, crd_error_text(m->ctx), sizeof text - 1);
        text[sizeof text - 1] = 0;
        const crd_status finished = crd_master_finish(m);
        return st == CRD_E_IO && finished < 0 ? finished : crdi_fail(m->ctx, st, "%s", text);
    }
    return crd_master_finish(m);
}

void crdi_life_end_text(const crd_master* m, char text[CRDI_TEXT])
{
    const char* said = "";
    switch (m->life.end) {
    case CRD_END_STOP_TIME:
        said = "stop time";
        break;
    case CRD_END_UNIT:
        snprintf(text, CRDI_TEXT, "unit '%s' wished the end",
                 m->plan->members[m->life.end_member].unit->name);
        return;
    case CRD_END_FAILED:
        said = "failed";
        break;
    case CRD_END_OVERRUN:
        said = "a cycle was late";
        break;
    case CRD_END_GUARD:
        said = "stopped by the guard";
        break;
    case CRD_END_NONE:
    case CRD_END_INTERRUPTED:
        said = m->life.stopped_by_page ? "stopped by a command" : "interrupted";
        break;
    }
    snprintf(text, CRDI_TEXT, "%s", said);
}
