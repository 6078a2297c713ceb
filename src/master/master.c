#include "master/master.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

crd_master_options crd_master_defaults(void)
{
    return (crd_master_options){0};
}

static crd_status open_units(crd_master* m)
{
    m->members = crdi_arena_new(&m->arena, (size_t)m->sys->unit_count, sizeof *m->members);
    m->unit_names = crdi_arena_new(&m->arena, (size_t)m->sys->unit_count, sizeof *m->unit_names);
    if (!m->members || !m->unit_names) { return CRD_E_MEMORY; }
    const crd_status stored = crd_unit_store_create(m->log, &m->store);
    if (stored < 0) { return crdi_fail(m->ctx, stored, "%s", crd_error_text(m->log)); }
    if (m->sys->unit_count == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: the system has no units", m->sys->file);
    }
    for (int i = 0; i < m->sys->unit_count; i++) {
        crdi_member* p = &m->members[i];
        const crd_status st = crd_unit_create_shared(m->log, m->store, &m->sys->units[i], &p->unit);
        if (st < 0) { return crdi_fail(m->ctx, st, "%s", crd_error_text(m->log)); }
        p->pinned = m->sys->units[i].pinned;
        m->unit_names[i] = p->unit->name;
        p->unit->wish = &m->wish;
        m->member_count++;
    }
    return CRD_OK;
}

crd_status crd_master_create(crd_context* ctx, const crd_system* sys, const crd_master_options* opt,
                             crd_master** out)
{
    crd_status st = CRD_OK;
    crd_master* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    m->ctx = ctx;
    m->sys = sys;
    m->opt = opt ? *opt : crd_master_defaults();
    m->running = m->end_member = -1;
    m->threads = 1;
    m->controlled = sys->run.control.on;
    m->iterated = sys->run.iterate.on;
    crd_arena_init(&m->arena, ctx);
    crd_text_init(&m->verdict, ctx);
    crdi_map_init(&m->hashes, ctx);
    pthread_mutex_init(&m->ear, NULL);
    m->log = crdi_context_tap(ctx, crdi_master_hear, m);
    if (!m->log) {
        st = crdi_fail(ctx, CRD_E_MEMORY, "out of memory");
        goto fail;
    }
    CRD_TRY(open_units(m));
    CRD_TRY(crdi_async_check(m));
    CRD_TRY(crdi_master_connect(m));
    CRD_TRY(crdi_master_plan_grid(m));
    CRD_TRY(crdi_master_plan_couples(m));
    CRD_TRY(crdi_master_resolve_bonds(m));
    CRD_TRY(crdi_master_bind(m));
    CRD_TRY(crdi_master_plan_phases(m));
    CRD_TRY(crdi_master_plan_lists(m));
    CRD_TRY(crdi_master_plan_refresh(m));
    CRD_TRY(crdi_master_bind_bonds(m));
    CRD_TRY(crdi_master_plan_iteration(m));
    CRD_TRY(crdi_master_plan_keep(m));
    CRD_TRY(crdi_cycle_plan(m));
    CRD_TRY(crdi_master_select_signals(m));
    CRD_TRY(crdi_master_plan_session(m));
    *out = m;
    return CRD_OK;
fail:
    crd_master_destroy(m);
    return st;
}

// Each unit with what belongs to it, from the last to the first. Takes off those that are done.
static void destroy_members(crd_master* m)
{
    while (m->member_count > 0) {
        const int i = --m->member_count;
        crdi_member* p = &m->members[i];
        if (p->left) { continue; }
        crdi_values_clear(p->unit->ctx, p->in, &p->inputs);
        crdi_values_clear(p->unit->ctx, p->out, &p->outputs);
        crdi_values_clear(p->unit->ctx, p->extra, &p->extras);
        crd_binding_destroy(p->in);
        crd_binding_destroy(p->out);
        crd_binding_destroy(p->extra);
        m->running = i;
        crd_unit_destroy(p->unit);
        m->running = -1;
    }
}

// A unit may crash when it is freed, too. What it had is lost; the others go their way.
static void destroy_members_guarded(crd_master* m)
{
    crdi_guard guard;
    crdi_guard_install();
    crdi_guard_enter(&guard, &m->running);
    const int crash = sigsetjmp(guard.env, 0);
    if (crash) {
        crdi_log(m->log, CRD_LOG_WARNING, "unit '%s' crashed after the run, when it was freed",
                 m->sys->units[m->running].name);
        m->running = -1;
    }
    destroy_members(m);
    crdi_guard_leave(&guard);
    crdi_guard_remove();
}

void crd_master_destroy(crd_master* m)
{
    if (!m) { return; }
    (void)crd_master_finish(m);
    crd_recorder_destroy(m->recorder);
    crdi_exchange_free(m);
    crdi_master_free_session(m);
    crdi_master_close_spare(m);
    crdi_pool_destroy(m->pool);
    crdi_master_free_estimate(m);
    crdi_master_free_iteration(m);
    crdi_master_free_kept(m);
    const bool alone = crdi_async_clear(m);
    if (m->opt.guard_crashes && m->initialized) {
        destroy_members_guarded(m);
    } else {
        destroy_members(m);
    }
    if (!alone) { return; } // a thread of a unit is still at it: what it may touch stays
    crd_unit_store_destroy(m->store);
    crdi_master_free_couples(m);
    crd_context_destroy(m->log);
    pthread_mutex_destroy(&m->ear);
    crd_context* ctx = m->ctx;
    crd_text_clear(&m->verdict);
    crdi_map_clear(&m->hashes);
    crd_free(ctx, (void*)m->hash_texts);
    crd_free(ctx, m->links);
    crd_free(ctx, m->signals);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
}

// ---- initialisation ----------------------------------------------------------------------------

static crd_status instantiate_all(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        m->running = i;
        m->members[i].unit->step = m->controlled ? 0 : m->members[i].step;
        const crd_status st = crd_unit_instantiate(m->members[i].unit);
        m->running = -1;
        if (st < 0) { return crdi_member_failed(m, i, st); }
        m->members[i].alive = true;
        m->has_remote = m->has_remote || CRDI_UNIT_HAS(m->members[i].unit, remote, begin);
    }
    return CRD_OK;
}

// Connections on which nothing is done to the values may go from unit to unit.
static void route_all(crd_master* m)
{
    for (int i = 0; i < m->link_count; i++) {
        crdi_link* l = &m->links[i];
        crd_unit *from = m->members[l->from_member].unit, *to = m->members[l->to_member].unit;
        const bool whole = l->from_element < 0 && l->to_element < 0;
        const bool single = from->info.variables[l->from_variable].size == 1 &&
                            to->info.variables[l->to_variable].size == 1;
        if (!CRDI_UNIT_HAS(from, remote, route) || from->ops->remote != to->ops->remote ||
            !(whole || single) || l->transform || l->chain || l->couple >= 0 || l->corrected ||
            l->probed || l->spec->predict > CRD_PREDICTION_HOLD) {
            continue;
        }
        l->routed = from->ops->remote->route(from, l->from_variable, to, l->to_variable);
    }
}

// Inputs start from what the unit has in them, so that a loop begins at the start values.
static crd_status enter(crd_master* m, int member, const crd_experiment* e)
{
    crdi_member* p = &m->members[member];
    m->running = member;
    crd_status st = p->unit->ops->enter_initialization(p->unit, e);
    if (st >= 0 && p->in) { st = p->unit->ops->get(p->unit, p->in, &p->inputs); }
    m->running = -1;
    return st;
}

static crd_status enter_all(crd_master* m)
{
    const crd_experiment e = {.start = m->start,
                              .has_stop = !m->opt.open_end,
                              .stop = m->stop,
                              .has_tolerance = !isnan(m->tolerance),
                              .tolerance = isnan(m->tolerance) ? 0 : m->tolerance,
                              .may_roll_back = m->rolls_back,
                              .interrupted = m->opt.stop,
                              .emergency = &m->emergency};
    for (int i = 0; i < m->member_count; i++) {
        crd_unit* u = m->members[i].unit;
        const crd_status st =
            CRDI_UNIT_HAS(u, remote, approach) ? u->ops->remote->approach(u, &e) : CRD_OK;
        if (st < 0) { return crdi_member_failed(m, i, st); }
    }
    // What is wrong with a model is known before a bench is waited for.
    for (int i = 0; i < 2 * m->member_count; i++) {
        const int k = i % m->member_count;
        if (CRDI_UNIT_HAS(m->members[k].unit, remote, approach) != (i >= m->member_count)) {
            continue;
        }
        const crd_status st = enter(m, k, &e);
        if (st < 0) { return crdi_member_failed(m, k, st); }
    }
    return CRD_OK;
}

static crd_status exit_all(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        m->running = i;
        crd_status st = p->unit->ops->exit_initialization(p->unit);
        if (st >= 0 && p->out) { st = p->unit->ops->get(p->unit, p->out, &p->outputs); }
        m->running = -1;
        if (st < 0) { return crdi_member_failed(m, i, st); }
    }
    return CRD_OK;
}

static crd_status start_threads(crd_master* m)
{
    int wanted = m->sys->run.threads;
    int widest = 0;
    for (int i = 0; i < m->phase_count; i++) {
        const int n = m->phases[i].batch_count - m->phases[i].pinned_count;
        widest = n > widest ? n : widest;
    }
    if (wanted == 0) { wanted = (int)sysconf(_SC_NPROCESSORS_ONLN); }
    if (wanted > widest) { wanted = widest; }
    if (wanted < 2 || (m->sys->run.threads == 0 && m->opt.no_statistics)) { return CRD_OK; }
    const crd_status st = crdi_pool_create(m, wanted - 1, &m->pool);
    if (st < 0) { return st; }
    m->threads_possible = 1 + crdi_pool_workers(m->pool);            // fewer are no failure
    m->threads = m->sys->run.threads == 0 ? 1 : m->threads_possible; // measured first, see tune
    return CRD_OK;
}

// On to a stage; those that are behind stay so, but values can be made consistent again.
static crd_status reach(crd_master* m, crd_stage stage)
{
    crd_status st = CRD_OK;
    if (m->stage < CRD_STAGE_INSTANTIATED && stage >= CRD_STAGE_INSTANTIATED) {
        CRD_TRY(instantiate_all(m));
        route_all(m);
        m->stage = CRD_STAGE_INSTANTIATED;
    }
    if (m->stage < CRD_STAGE_INITIALIZING && stage >= CRD_STAGE_INITIALIZING) {
        CRD_TRY(enter_all(m));
        m->stage = CRD_STAGE_INITIALIZING;
    }
    if (stage == CRD_STAGE_CONSISTENT) {
        CRD_TRY(crdi_master_solve_start(m));
        m->stage = CRD_STAGE_CONSISTENT;
    }
fail:
    return st;
}

static crd_status initialize(crd_master* m)
{
    crd_status st = CRD_OK;
    CRD_TRY(reach(m, CRD_STAGE_CONSISTENT));
    CRD_TRY(exit_all(m));
    CRD_TRY(crdi_master_seed_flows(m));
    CRD_TRY(crdi_master_refresh_start(m));
    crdi_script_seed(m);
    crdi_master_start_watches(m);
    crdi_master_start_bonds(m);
    CRD_TRY(crdi_master_start_control(m));
    CRD_TRY(crdi_master_start_estimate(m));
    CRD_TRY(crdi_master_plan_lanes(m));
    CRD_TRY(crdi_master_open_results(m));
    crdi_cycle_start(m);
    CRD_TRY(crdi_exchange_open(m));
    CRD_TRY(crdi_async_plan(m));
    CRD_TRY(start_threads(m));
    m->started = true;
    if (m->live) { CRD_TRY(crdi_live_prepare(m)); }
    crdi_master_couple(m);
    if (m->exchange) { crdi_exchange_note(m); }
    if (m->recorder) { CRD_TRY(crdi_master_record(m)); }
    crdi_master_look_for_end(m);
fail:
    return st;
}

// The least time between two readings of the clock.
static int64_t clock_cost(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 32; i++) {
        const int64_t a = crdi_now_ns(), b = crdi_now_ns();
        least = b - a < least ? b - a : least;
    }
    return least;
}

static int64_t wall_clock(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

// A part of the initialisation, up to `stage`, or all of it.
static crd_status start(crd_master* m, crd_stage stage, bool all)
{
    const int64_t begin = crdi_now_ns();
    crd_status st = CRD_OK;
    if (!m->initialized) {
        m->initialized = true;
        m->wall_start = wall_clock();
        m->ns_clock = clock_cost();
        if (m->opt.guard_crashes) { crdi_guard_install(); }
    }
    if (m->opt.guard_crashes) {
        crdi_guard guard;
        crdi_guard_enter(&guard, &m->running);
        const int crash = sigsetjmp(guard.env, 0);
        st = crash ? crdi_member_crashed(m, m->running, crash)
             : all ? initialize(m)
                   : reach(m, stage);
        crdi_guard_leave(&guard);
    } else {
        st = all ? initialize(m) : reach(m, stage);
    }
    if (m->live) { st = crdi_live_alarm(m, st); }
    if (st < 0) { m->end = CRD_END_FAILED; }
    m->ns_initialization += crdi_now_ns() - begin;
    return crdi_master_note_failure(m, st);
}

crd_status crd_master_reach(crd_master* m, crd_stage stage)
{
    if (m->asked || m->finished || m->end != CRD_END_NONE) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "crd_master_reach comes before crd_master_initialize");
    }
    return start(m, stage, false);
}

crd_status crd_master_initialize(crd_master* m)
{
    if (m->asked || m->end != CRD_END_NONE) {
        return crdi_fail(m->ctx, CRD_E_STATE, "crd_master_initialize was called twice");
    }
    m->asked = true;
    return start(m, CRD_STAGE_CONSISTENT, true);
}

// ---- running -----------------------------------------------------------------------------------

// Those that are left: it goes on behind a unit that crashed. The first failure of a run counts.
static void terminate_all(crd_master* m, crd_status* first)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        if (!p->alive) { continue; }
        p->alive = false;
        m->running = i;
        const crd_status st = p->unit->ops->terminate(p->unit);
        m->running = -1;
        if (st < 0 && m->end != CRD_END_FAILED) { *first = crdi_member_failed(m, i, st); }
    }
}

static void terminate_all_guarded(crd_master* m, crd_status* first)
{
    crdi_guard guard;
    crdi_guard_enter(&guard, &m->running);
    const int crash = sigsetjmp(guard.env, 0);
    if (crash) {
        const bool failed = m->end == CRD_END_FAILED;
        const int before = m->end_member;
        const crd_status st = crdi_member_crashed(m, m->running, crash);
        if (failed) {
            m->end_member = before;
        } else {
            *first = st;
        }
    }
    terminate_all(m, first);
    crdi_guard_leave(&guard);
    if (!crdi_async_left(m)) { crdi_guard_remove(); } // else that thread may still need it
}

// Whatever turns comes to rest from now on, all of it together; terminate_all waits for it.
static void halt_all(crd_master* m)
{
    for (; m->halted < m->member_count; m->halted++) {
        crd_unit* u = m->members[m->halted].unit;
        if (!m->members[m->halted].alive || !CRDI_UNIT_HAS(u, remote, halt)) { continue; }
        m->running = m->halted;
        u->ops->remote->halt(u);
        m->running = -1;
    }
}

static void halt_all_guarded(crd_master* m)
{
    crdi_guard guard;
    crdi_guard_enter(&guard, &m->running);
    const int crash = sigsetjmp(guard.env, 0);
    if (crash) {
        crdi_log(m->log, CRD_LOG_WARNING, "unit '%s' crashed when it was told to come to rest",
                 m->members[m->running].unit->name);
        m->members[m->running].alive = false;
        m->members[m->running].crashed = true;
        m->running = -1;
        m->halted++;
    }
    halt_all(m);
    crdi_guard_leave(&guard);
}

// The end as those see it who watch: with the last of the units. `told`: they know already why.
static void end_live(crd_master* m, crd_status st, bool told)
{
    if (st < 0) { m->end = CRD_END_FAILED; }
    if (st < 0 && !told) {
        snprintf(m->message, sizeof m->message, "%s", crd_error_text(m->ctx));
        crdi_live_note_event(m, CRD_EVENT_ERROR, crdi_master_time_seen(m), m->message);
    }
    crdi_live_end(m);
}

// The record of the benches' states; a failure of the run is the one that counts.
static crd_status end_session(crd_master* m, crd_status st)
{
    char text[512];
    snprintf(text, sizeof text, "%s", st < 0 ? crd_error_text(m->ctx) : "");
    if (st < 0 && !m->message[0]) { snprintf(m->message, sizeof m->message, "%s", text); }
    const crd_status written = crdi_master_write_session(m);
    if (st < 0 && written < 0) {
        crdi_log_on(m->ctx, CRD_LOG_WARNING, crd_error_text(m->ctx));
        return crdi_fail(m->ctx, st, "%s", text);
    }
    return st < 0 ? st : written;
}

crd_status crd_master_finish(crd_master* m)
{
    if (!m->initialized || m->finished) { return CRD_OK; }
    m->finished = true;
    crdi_cycle_leave(m);
    const crd_status alarm = m->live ? crdi_live_close(m) : CRD_OK;
    const bool told = m->message[0] != 0;
    crdi_async_free(m);
    if (m->opt.guard_crashes) {
        halt_all_guarded(m);
    } else {
        halt_all(m);
    }
    crdi_master_warn_couples(m);
    // The record first: a unit may still crash in its terminate.
    crd_status st = crdi_master_close_results(m);
    char text[512];
    snprintf(text, sizeof text, "%s", st < 0 ? crd_error_text(m->ctx) : "");
    const crd_status exchanged = crdi_exchange_close(m);
    if (st < 0 && exchanged < 0) { // both are told, the results' as the reason
        crdi_log_on(m->ctx, CRD_LOG_WARNING, crd_error_text(m->ctx));
        crdi_fail(m->ctx, st, "%s", text);
    }
    if (st >= 0) { st = exchanged; }
    crd_status ended = CRD_OK;
    if (m->opt.guard_crashes) {
        terminate_all_guarded(m, &ended);
    } else {
        terminate_all(m, &ended);
    }
    if (st >= 0) { st = ended; }
    st = end_session(m, st);
    if (m->live) { end_live(m, st, told); }
    return alarm < 0 ? crdi_fail(m->ctx, alarm, "%s", m->message) : st;
}

enum { CHUNK_NS = 20 * 1000 * 1000, PROGRESS_NS = 100 * 1000 * 1000 };

// The progress of a run on the clock is shown by a thread of its own: writing may take its time.
typedef struct {
    crd_master* m;
    pthread_t thread;
    bool quit; // atomic
} reporter;

static void* report_progress(void* user)
{
    reporter* r = user;
    const crd_master* m = r->m;
    const struct timespec pause = {.tv_nsec = PROGRESS_NS};
    while (!__atomic_load_n(&r->quit, __ATOMIC_RELAXED)) {
        nanosleep(&pause, NULL);
        m->opt.progress(m->opt.progress_user, crdi_master_time_seen(m), m->start, m->stop);
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
    if (!m->paced || !m->opt.progress || !start_reporter(&r)) { return run_steps(m); }
    const crd_status st = run_steps(m);
    __atomic_store_n(&r.quit, true, __ATOMIC_RELAXED);
    pthread_join(r.thread, NULL);
    return st;
}

// In chunks of about 20 ms, between which the progress is shown.
static crd_status run_steps(crd_master* m)
{
    crd_status st = m->paced ? crdi_master_note_failure(m, crdi_cycle_enter(m)) : CRD_OK;
    if (st < 0) { m->end = CRD_END_FAILED; }
    int64_t chunk = 1, now = crdi_now_ns(), shown = now;
    const int64_t begin = now;
    while (st >= 0 && m->end == CRD_END_NONE) {
        const int64_t before = now;
        st = crd_master_advance(m, chunk);
        now = crdi_now_ns();
        if (now - before < CHUNK_NS / 2 && chunk < INT32_MAX) { chunk *= 2; }
        if (now - before > CHUNK_NS && chunk > 1) { chunk /= 2; }
        if (m->opt.progress && !m->paced && now - shown >= PROGRESS_NS) {
            shown = now;
            m->opt.progress(m->opt.progress_user, crd_master_time(m), m->start, m->stop);
        }
    }
    m->ns_wall += now - begin;
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

// ---- looking at it -----------------------------------------------------------------------------

double crd_master_time(const crd_master* m)
{
    return crdi_master_time_of(m, m->n);
}

crd_end crd_master_ended(const crd_master* m)
{
    return m->end;
}

int crd_master_signal_count(const crd_master* m)
{
    return m->signal_count;
}

const char* crd_master_signal_name(const crd_master* m, int i)
{
    return m->signals[i].name;
}

static crd_status read_value(crd_unit* u, int32_t variable, int32_t element, double* out)
{
    const crd_type type = u->info.variables[variable].type;
    const crd_kind kind = crd_type_kind(type);
    crd_binding* b = NULL;
    crd_values v = {0};
    crd_status st = CRD_OK;
    if (kind == CRD_BYTES) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' is not a number",
                         u->info.variables[variable].name);
    }
    CRD_TRY(crd_binding_create(u, &variable, 1, &b));
    v.real = crdi_new_array(u->ctx, (size_t)b->real_count, sizeof *v.real);
    v.integer = crdi_new_array(u->ctx, (size_t)b->integer_count, sizeof *v.integer);
    if (!v.real || !v.integer) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    CRD_TRY(u->ops->get(u, b, &v));
    *out = kind == CRD_REAL     ? v.real[element]
           : type == CRD_UINT64 ? (double)(uint64_t)v.integer[element]
                                : (double)v.integer[element];
fail:
    crd_free(u->ctx, v.real);
    crd_free(u->ctx, v.integer);
    crd_binding_destroy(b);
    return st;
}

crd_status crd_master_value(crd_master* m, const char* name, double* out)
{
    int unit = 0;
    const char* text = name;
    crd_status st = CRD_OK;
    if (!m->sys->single) {
        CRD_TRY(crd_system_split(m->sys, name, (crd_place){"", 0}, &unit, &text));
    }
    crd_unit* u = m->members[unit].unit;
    int32_t variable = 0, element = 0;
    CRD_TRY(crd_unit_resolve(u, m->ctx, text, &variable, &element));
    if (!m->started || m->members[unit].crashed) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s has no value: unit '%s' %s", name, u->name,
                         m->started ? "crashed" : "is not initialised");
    }
    if (crdi_async_busy(m, unit)) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "%s has no value now: unit '%s' is late, its step is still under way",
                         name, u->name);
    }
    st = read_value(u, variable, element < 0 ? 0 : element, out);
    if (st < 0) { return crdi_member_refused(m, &m->members[unit], st); }
fail:
    return st;
}

static void report_unit(crd_master* m, const crdi_member* p, crd_unit_report* r)
{
    // Extrapolate from the measured steps to all, without what the clock itself took.
    const int at = (int)(p - m->members);
    int64_t lasts;
    const int64_t steps = crdi_async_steps(m, at, &lasts);
    const int64_t worst = lasts > p->ns_worst ? lasts : p->ns_worst;
    const int64_t clock = p->measured * m->ns_clock;
    const double mean = steps ? (crd_master_time(m) - m->start) / (double)steps : 0;
    const double all = p->measured ? 1e-9 * (double)steps / (double)p->measured : 0;
    *r = (crd_unit_report){
        .name = p->unit->name,
        .kind = p->unit->info.kind,
        .steps = steps,
        .step_size = m->controlled && !(p->step > 0) ? mean : p->step,
        .time_step = all * fmax(0, (double)(p->ns_step - clock)),
        .time_get = all * fmax(0, (double)(p->ns_get - clock)),
        .time_set = all * fmax(0, (double)(p->ns_set - clock)),
        .worst_step = 1e-9 * (double)worst,
        .measured = p->measured,
        .budget = p->unit->spec ? p->unit->spec->budget : (double)NAN,
    };
    bool now = false;
    r->late = m->async ? crdi_async_late(m, at, &now) : 0;
    crd_link_stats* link = m->link_stats ? &m->link_stats[at] : NULL;
    if (link && crdi_member_link(m, at, link)) { r->link = link; }
    crd_standby_stats* standby = m->standby_stats ? &m->standby_stats[at] : NULL;
    if (standby && crd_unit_get_standby(p->unit, standby)) { r->standby = standby; }
}

const crd_master_report* crd_master_get_report(crd_master* m)
{
    crd_master_report* r = &m->report;
    if (!m->unit_reports) {
        m->unit_reports =
            crdi_arena_new(&m->arena, (size_t)m->member_count, sizeof *m->unit_reports);
        m->link_stats = crdi_arena_new(&m->arena, (size_t)m->member_count, sizeof *m->link_stats);
        m->standby_stats =
            crdi_arena_new(&m->arena, (size_t)m->member_count, sizeof *m->standby_stats);
    }
    for (int i = 0; m->unit_reports && i < m->member_count; i++) {
        report_unit(m, &m->members[i], &m->unit_reports[i]);
    }
    crdi_master_report_couples(m);
    const bool stepped = m->n > 0;
    *r = (crd_master_report){
        .end = m->end,
        .end_unit = m->end_member >= 0 ? m->members[m->end_member].unit->name : "",
        .start = m->start,
        .stop = m->stop,
        .step = m->controlled && stepped ? (m->time - m->start) / (double)m->n : m->tick,
        .time = crd_master_time(m),
        .steps = m->n,
        .threads = m->threads,
        .wall_time = 1e-9 * (double)m->ns_wall,
        .initialization_time = 1e-9 * (double)m->ns_initialization,
        .units = m->unit_reports,
        .unit_count = m->unit_reports ? m->member_count : 0,
        .loops = m->loops,
        .loop_count = m->loop_count,
        .couplings = m->coupling_reports,
        .coupling_count = m->couple_count,
        .rows = m->recorder ? crd_recorder_rows(m->recorder) : 0,
        .results = m->sys->results.path ? m->sys->results.path : "",
        .control = m->control,
        .worst_defect = NAN,
        .worst_energy = NAN,
        .error_note = "",
        .pace = &m->pacer.report,
        .exchange = m->exchange && m->sys->results.exchange ? m->sys->results.exchange : "",
        .exchanged = crdi_exchange_count(m),
    };
    r->control.mean = r->step;
    crdi_master_report_quality(m);
    return r;
}
