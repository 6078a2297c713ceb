// Units with a budget, which step on threads of their own: the cycle thread hands such a unit its
// inputs, goes on with the others, and waits for it no longer than the budget allows, counted from
// the beginning of the phase. What then happens:
//
//   done      the outputs are taken over, as if the unit had stepped on the cycle thread
//   not done  its last outputs are held, the cycle counts as late for it, and the unit is behind
//
// A unit that is behind is not waited for any more. Its outputs are taken over in the first cycle
// that finds them; when it is due again it makes up for what it missed, with the inputs of now: in
// one longer step, or, where its step is fixed, in so many steps in a row.
//
// To predictions a held output is a sample like any other, one that rests: its derivatives are 0,
// and where holding begins and where it ends there is an event, so that nothing is extrapolated
// across. Defects are then those against the held signal; what the unit would have given is not
// known.
//
// Everything that a job reads and writes is the runner's own, and has one owner at a time: `go`
// hands it over, `back` and `done` hand it back. So nobody ever sees half of a step.
#include "master/step/async.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static const int64_t SECOND = 1000000000;
static const double MOST_SECONDS = 1e9; // longer budgets are no different

int64_t crdi_async_patience = 5 * (int64_t)1000000000;
int64_t crdi_async_grace = (int64_t)1000000000;

// What threads that did not come back hold on to stays reachable, for those who look for leaks.
static struct crdi_async* left_behind;

// ---- what cannot be ----------------------------------------------------------------------------

static crd_status async_refuse(crdi_plan* plan, const crdi_member* p, const char* why)
{
    char at[512];
    return crdi_fail(plan->ctx, CRD_E_UNSUPPORTED, "%sunit '%s' has a budget, %s",
                     crdi_where(p->unit->spec->place, at, sizeof at), p->unit->name, why);
}

crd_status crdi_async_check(crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        if (!p->unit) { continue; } // it could not be read
        const double budget = p->unit->spec ? p->unit->spec->budget : (double)NAN;
        if (isnan(budget)) { continue; }
        if (budget < 0) {
            char at[512];
            return crdi_fail(plan->ctx, CRD_E_RANGE, "%sunit '%s': budget is %g s, expected >= 0",
                             crdi_where(p->unit->spec->place, at, sizeof at), p->unit->name,
                             budget);
        }
        if (p->pinned) {
            return async_refuse(plan, p,
                                "for which it steps on a thread of its own, and is 'pinned' to the "
                                "run's: leave out one of them");
        }
        if (plan->iterated) {
            return async_refuse(
                plan, p,
                "so that the run may go on without it, but run.iterate repeats steps "
                "until all units fit: leave out one of them");
        }
        if (plan->controlled) {
            return async_refuse(
                plan, p,
                "so that the run may go on without it, but run.control needs the end of "
                "every step to choose the next: leave out one of them");
        }
        if (p->unit->info.flags & CRD_UNIT_IN_REAL_TIME) {
            return async_refuse(plan, p,
                                "but runs in real time by itself, and its steps end with the run's "
                                "whether data came or not: leave out 'budget'");
        }
        p->async = true;
    }
    return CRD_OK;
}

// ---- the unit's thread -------------------------------------------------------------------------

static crd_status async_put(const crdi_runner* r, const crd_values* v, double* const given[2])
{
    const crdi_member* p = &r->m->plan->members[r->member];
    crd_unit* u = p->unit;
    if (!p->in) { return CRD_OK; }
    const crd_status st = u->ops->set(u, p->in, v);
    if (st < 0 || !p->slope_order) { return st; }
    const double* const slopes[] = {given[0], given[1]};
    return u->ops->derivatives->set(u, p->in, slopes, p->slope_order);
}

// Of a step of the unit's own to the last bit what it would be on the cycle thread.
static double length_of(const crd_master* m, const crdi_member* p, int64_t from, int64_t to)
{
    if (to - from != p->ticks) { return crdi_time_of(m, to) - crdi_time_of(m, from); }
    return to == m->plan->times.tick_count && !m->plan->times.multirate ? m->plan->times.last_tick
                                                                        : p->step;
}

static crd_status make_steps(crdi_runner* r)
{
    const crd_master* m = r->m;
    const crdi_member* p = &m->plan->members[r->member];
    crd_unit* u = p->unit;
    const int64_t span = (r->job.to - r->job.from) / r->job.steps;
    for (int64_t i = 0; i < r->job.steps && !atomic_load(&r->quit); i++) {
        const int64_t from = r->job.from + i * span, to = from + span;
        const double t = crdi_time_of(m, from), h = length_of(m, p, from, to);
        const int64_t t0 = crdi_now_ns();
        atomic_store_explicit(&r->since, t0, memory_order_relaxed);
        crd_status st = async_put(r, &r->inputs, r->slopes);
        const int64_t t1 = crdi_now_ns();
        if (st >= 0) { st = u->ops->step(u, t, h); }
        if (st < 0) { return st; }
        const int64_t spent = crdi_now_ns() - t1;
        r->ns_set += t1 - t0;
        r->ns_step += spent;
        if (spent > r->ns_worst) { r->ns_worst = spent; }
    }
    return CRD_OK;
}

static crd_status do_job(crdi_runner* r)
{
    const crdi_member* p = &r->m->plan->members[r->member];
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    r->ns_set = r->ns_step = r->ns_worst = 0;
    if (r->job.kind == CRDI_JOB_STEP) { CRD_TRY(make_steps(r)); }
    const int64_t begin = crdi_now_ns();
    atomic_store_explicit(&r->since, begin, memory_order_relaxed);
    if (r->job.kind == CRDI_JOB_ASK || p->shown) {
        CRD_TRY(async_put(r, &r->shown, r->shown_slopes));
    }
    if (p->out) { CRD_TRY(u->ops->get(u, p->out, &r->outputs)); }
    for (int d = 0; d < 2 && r->rates[d]; d++) {
        CRD_TRY(u->ops->derivatives->get(u, p->out, d + 1, r->rates[d]));
    }
    if (r->job.extras) { CRD_TRY(u->ops->get(u, r->extra, &r->extras)); }
    r->ns_get = crdi_now_ns() - begin;
fail:
    return st;
}

// A crash of the unit ends the unit, and the run when the cycle thread looks.
static void do_caught(crdi_runner* r)
{
    if (!r->m->plan->opt.guard_crashes) {
        r->status = do_job(r);
        return;
    }
    crdi_crash_frame frame;
    crdi_crash_enter(&frame, &r->running);
    const int crash = sigsetjmp(frame.env, 0);
    if (crash) {
        r->crash_signal = crash;
        r->status = CRD_E_CRASH;
    } else {
        r->running = r->member;
        r->status = do_job(r);
    }
    r->running = -1;
    crdi_crash_leave(&frame);
}

static void* async_work(void* arg)
{
    crdi_runner* r = arg;
    for (;;) {
        while (sem_wait(&r->go) != 0) {}
        if (atomic_load(&r->quit)) { return NULL; }
        do_caught(r);
        atomic_store_explicit(&r->since, 0, memory_order_relaxed);
        atomic_store_explicit(&r->back, true, memory_order_release);
        sem_post(&r->done);
    }
}

// ---- sleeping ----------------------------------------------------------------------------------

// Whether it came before `until` on the monotonic clock. A run that is to stop does not wait.
static bool wait_for(sem_t* sem, int64_t until, const crd_master* m)
{
    static const int64_t look = 100 * 1000 * 1000;
    for (;;) {
        if (sem_trywait(sem) == 0) { return true; }
        const int64_t now = crdi_now_ns();
        if (now >= until || (m && crdi_life_stops(m))) { return false; }
        const int64_t next = until - now > look ? now + look : until;
        const struct timespec at = {.tv_sec = next / SECOND, .tv_nsec = next % SECOND};
        if (sem_clockwait(sem, CLOCK_MONOTONIC, &at) == 0) { return true; }
    }
}

static bool comes_back(crdi_runner* r, int64_t until, const crd_master* m)
{
    return wait_for(&r->done, until, m) && atomic_load_explicit(&r->back, memory_order_acquire);
}

// ---- the watcher -------------------------------------------------------------------------------

void crdi_async_look(crd_master* m, int64_t now)
{
    struct crdi_async* a = m->async;
    for (int i = 0; i < a->count; i++) {
        crdi_runner* r = &a->runners[i];
        const int64_t since = atomic_load_explicit(&r->since, memory_order_relaxed);
        if (since == 0 || now - since <= SECOND || atomic_exchange(&r->warned, true)) { continue; }
        crdi_log(m->log, CRD_LOG_WARNING,
                 "unit '%s' is in one step for more than 1 s, with a budget of %g s: its last "
                 "outputs are held until it comes back",
                 m->plan->sys->units[r->member].name, 1e-9 * (double)r->budget);
    }
}

static void* async_watch(void* arg)
{
    crd_master* m = arg;
    while (!wait_for(&m->async->quit, crdi_now_ns() + SECOND / 4, NULL)) {
        crdi_async_look(m, crdi_now_ns());
    }
    return NULL;
}

// ---- the beginning -----------------------------------------------------------------------------

static crd_status new_slopes(crd_master* m, double* const like[2], const crd_binding* b,
                             double* out[2])
{
    for (int d = 0; d < 2 && like[d]; d++) {
        out[d] = crdi_arena_new(&m->arena, (size_t)b->real_count, sizeof(double));
        if (!out[d]) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static crd_status async_make_room(crd_master* m, crdi_runner* r)
{
    const crdi_member* p = &m->plan->members[r->member];
    crd_status st = CRD_OK;
    if (p->in) {
        CRD_TRY(crdi_values_create(&m->arena, p->in, &r->inputs));
        CRD_TRY(crdi_values_create(&m->arena, p->in, &r->shown));
        CRD_TRY(new_slopes(m, p->slopes, p->in, r->slopes));
        CRD_TRY(new_slopes(m, p->slopes, p->in, r->shown_slopes));
    }
    if (p->out) {
        CRD_TRY(crdi_values_create(&m->arena, p->out, &r->outputs));
        CRD_TRY(new_slopes(m, p->rates, p->out, r->rates));
    }
    r->extra = crdi_record_extras(m, r->member)->binding;
    if (r->extra) { CRD_TRY(crdi_values_create(&m->arena, r->extra, &r->extras)); }
fail:
    return st;
}

static crd_status start_runner(crd_master* m, int member)
{
    struct crdi_async* a = m->async;
    const crd_unit* u = m->plan->members[member].unit;
    crdi_runner* r = &a->runners[a->count++];
    *r = (crdi_runner){.m = m, .member = member, .running = -1};
    r->budget = (int64_t)(fmin(u->spec->budget, MOST_SECONDS) * 1e9);
    r->known = (crd_link_stats){.age = NAN,
                                .age_mean = NAN,
                                .age_max = NAN,
                                .round_trip = NAN,
                                .round_trip_max = NAN,
                                .state = -1,
                                .state_name = ""};
    sem_init(&r->go, 0, 0);
    sem_init(&r->done, 0, 0);
    a->of[member] = r;
    m->plan->members[member].run->jumps = u->events;
    const crd_status st = async_make_room(m, r);
    if (st < 0) { return crdi_member_refused(m->ctx, &m->plan->members[member], st); }
    r->has_thread = pthread_create(&r->thread, NULL, async_work, r) == 0;
    if (r->has_thread) { return CRD_OK; }
    return crdi_fail(m->ctx, CRD_E_STATE,
                     "unit '%s' has a budget, but there is no thread for it: too many of them",
                     u->name);
}

static crd_status start_all(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        if (!m->plan->members[i].async) { continue; }
        const crd_status st = start_runner(m, i);
        if (st < 0) { return st; }
    }
    m->async->watched = pthread_create(&m->async->watcher, NULL, async_watch, m) == 0;
    return CRD_OK; // without it steps that last are not told, and no more
}

crd_status crdi_async_plan(crd_master* m)
{
    int count = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        count += m->plan->members[i].async;
    }
    if (count == 0) { return CRD_OK; }
    struct crdi_async* a = crdi_arena_new(&m->arena, 1, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    a->runners = crdi_arena_new(&m->arena, (size_t)count, sizeof *a->runners);
    a->of = crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *a->of);
    if (!a->runners || !a->of) { return CRD_E_MEMORY; }
    sem_init(&a->quit, 0, 0);
    m->async = a;
    // Signals that end the run are for the cycle thread.
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    const crd_status st = start_all(m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

// Below the cycle thread: whoever computes for too long must not keep it from its deadline.
void crdi_async_set_priority(crd_master* m, int priority)
{
    const struct sched_param param = {.sched_priority = priority > 1 ? priority - 1 : 1};
    for (int i = 0; m->async && i < m->async->count; i++) {
        (void)pthread_setschedparam(m->async->runners[i].thread, SCHED_FIFO, &param);
    }
}

// ---- to and fro --------------------------------------------------------------------------------

static crd_status copy_values(crd_context* ctx, const crd_binding* b, const crd_values* from,
                              crd_values* to)
{
    if (!b) { return CRD_OK; }
    memcpy(to->real, from->real, (size_t)b->real_count * sizeof *to->real);
    memcpy(to->integer, from->integer, (size_t)b->integer_count * sizeof *to->integer);
    for (int i = 0; i < b->bytes_count; i++) { // allocates only when a text outgrows its room
        const crd_bytes* x = &from->bytes[i];
        const crd_status st = crd_bytes_set(ctx, &to->bytes[i], x->data, x->length);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What is got anew every time need not be kept: texts change places.
static void take_values(const crd_binding* b, crd_values* from, crd_values* to)
{
    if (!b) { return; }
    memcpy(to->real, from->real, (size_t)b->real_count * sizeof *to->real);
    memcpy(to->integer, from->integer, (size_t)b->integer_count * sizeof *to->integer);
    for (int i = 0; i < b->bytes_count; i++) {
        const crd_bytes x = from->bytes[i];
        from->bytes[i] = to->bytes[i];
        to->bytes[i] = x;
    }
}

static void copy_slopes(const crd_binding* b, double* const from[2], double* const to[2], bool rest)
{
    for (int d = 0; d < 2 && to[d]; d++) {
        const size_t size = (size_t)b->real_count * sizeof(double);
        if (rest) {
            memset(to[d], 0, size);
        } else {
            memcpy(to[d], from[d], size);
        }
    }
}

static void hand_over(crdi_runner* r, crd_status st)
{
    crdi_member* p = &r->m->plan->members[r->member];
    if (st < 0) {
        p->run->status = crdi_fail(p->unit->ctx, st, "out of memory");
        return;
    }
    r->job.measure = r->m->tuning.measure;
    r->handed = true;
    atomic_store_explicit(&r->back, false, memory_order_relaxed);
    sem_post(&r->go);
}

static void hand_step(crd_master* m, crdi_runner* r)
{
    crdi_member* p = &m->plan->members[r->member];
    const crd_unit_info* info = &p->unit->info;
    const int64_t to = m->clock.n + 1;
    const bool behind = to - r->at > p->ticks;
    const bool varies = (info->flags & CRD_UNIT_CAN_VARY_STEP) && !(info->fixed_step > 0);
    r->job = (crdi_job){.kind = CRDI_JOB_STEP,
                        .from = r->at,
                        .to = to,
                        .steps = varies ? 1 : (to - r->at) / p->ticks,
                        .extras = crdi_record_needs(m, r->member, to)};
    if (p->run->faults) { crdi_faults_apply(p); }
    crd_status st = copy_values(m->ctx, p->in, &p->inputs, &r->inputs);
    // Slopes are those at the beginning of the newest step: not for an older one.
    copy_slopes(p->in, p->slopes, r->slopes, behind);
    if (p->run->faults) { crdi_faults_undo(p); }
    if (p->shown && st >= 0) {
        const int64_t from = to - p->ticks;
        crdi_member_show_prediction(m, p, crdi_time_of(m, from) + length_of(m, p, from, to));
        if (p->run->faults) { crdi_faults_apply(p); }
        st = copy_values(m->ctx, p->in, &p->inputs, &r->shown);
        copy_slopes(p->in, p->slopes, r->shown_slopes, false);
        if (p->run->faults) { crdi_faults_undo(p); }
    }
    r->awaited = true;
    hand_over(r, st);
}

static void take_over(crdi_runner* r)
{
    crdi_member* p = &r->m->plan->members[r->member];
    r->handed = r->awaited = false;
    p->run->status = r->status;
    p->run->crash_signal = r->crash_signal;
    if (r->status < 0) { return; }
    take_values(p->out, &r->outputs, &p->outputs);
    copy_slopes(p->out, r->rates, p->rates, false);
    if (r->job.extras) {
        take_values(r->extra, &r->extras, &crdi_record_extras(r->m, r->member)->values);
    }
    r->at = r->job.to;
    if (r->job.kind == CRDI_JOB_STEP) { r->steps += r->job.steps; }
    p->run->jumps = p->unit->events + r->gaps;
    p->run->wants_stop = p->unit->wants_stop;
    if (!r->job.measure) { return; }
    p->run->ns_set += r->ns_set;
    p->run->ns_step += r->ns_step;
    p->run->ns_get += r->ns_get;
    if (r->ns_worst > p->run->ns_worst) { p->run->ns_worst = r->ns_worst; }
    if (r->job.kind == CRDI_JOB_STEP) { p->run->measured += r->job.steps; }
}

static crdi_runner* runner_at(const crd_master* m, const crdi_phase* phase, int i)
{
    return m->async->of[m->plan->batch[phase->batch_first + phase->batch_count + i]];
}

// ---- in a cycle --------------------------------------------------------------------------------

void crdi_async_begin(crd_master* m, const crdi_phase* phase)
{
    const int64_t now = crdi_now_ns();
    for (int i = 0; i < phase->async_count; i++) {
        crdi_runner* r = runner_at(m, phase, i);
        if (r->handed && comes_back(r, 0, NULL)) { take_over(r); }
        const bool due = crdi_member_is_due(m, r->member);
        if (r->handed || !due || m->plan->members[r->member].run->status < 0) { continue; }
        r->begin = now;
        hand_step(m, r);
    }
}

// The outputs of a unit that is due are those of this tick, or held.
static void async_settle(crd_master* m, crdi_runner* r)
{
    crdi_member* p = &m->plan->members[r->member];
    const bool late = r->at != m->clock.n + 1;
    p->run->stamp = m->clock.n + 1;
    r->late_count += late;
    if (late == r->late) { return; }
    r->late = late;
    r->gaps++;
    p->run->jumps++;
    if (late) { copy_slopes(p->out, NULL, p->rates, true); }
}

// By their budgets, the shortest first: each is given up when its own is over.
crd_status crdi_async_end(crd_master* m, const crdi_phase* phase)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < phase->async_count; i++) {
        crdi_runner* r = runner_at(m, phase, i);
        crdi_member* p = &m->plan->members[r->member];
        p->run->ns_last = 0; // what the cycle thread spends on it is what it waits
        if (r->awaited) {
            const int64_t before = m->tuning.measure ? crdi_now_ns() : 0;
            if (comes_back(r, r->begin + r->budget, m)) { take_over(r); }
            r->awaited = false;
            if (m->tuning.measure) { p->run->ns_last = crdi_now_ns() - before; }
        }
        if (p->run->status < 0) {
            st = p->run->status;
        } else if (crdi_member_is_due(m, r->member)) {
            async_settle(m, r);
        }
    }
    return st;
}

// What is left of the budget is for it. If that is not enough, the outputs stay as the step has
// left them, and what comes is taken over in the next cycle.
crd_status crdi_async_ask(crd_master* m, int member)
{
    crdi_runner* r = m->async->of[member];
    crdi_member* p = &m->plan->members[member];
    r->job = (crdi_job){.kind = CRDI_JOB_ASK,
                        .from = r->at,
                        .to = r->at,
                        .extras = crdi_record_needs(m, member, r->at)};
    if (p->run->faults) { crdi_faults_apply(p); }
    const crd_status st = copy_values(m->ctx, p->in, &p->inputs, &r->shown);
    copy_slopes(p->in, p->slopes, r->shown_slopes, false);
    if (p->run->faults) { crdi_faults_undo(p); }
    hand_over(r, st);
    if (r->handed && comes_back(r, r->begin + r->budget, m)) { take_over(r); }
    return p->run->status;
}

bool crdi_async_busy(crd_master* m, int member)
{
    crdi_runner* r = m->async ? m->async->of[member] : NULL;
    if (r && r->handed && comes_back(r, 0, NULL)) { take_over(r); }
    return r && (r->handed || m->plan->members[member].run->status == CRD_E_CRASH);
}

int64_t crdi_async_late(const crd_master* m, int member, bool* now)
{
    const crdi_runner* r = m->async ? m->async->of[member] : NULL;
    *now = r && r->late;
    return r ? r->late_count : 0;
}

int64_t crdi_async_steps(const crd_master* m, int member, int64_t* lasts_ns)
{
    crdi_runner* r = m->async ? m->async->of[member] : NULL;
    const int64_t since = r ? atomic_load(&r->since) : 0;
    *lasts_ns = since > 0 ? crdi_now_ns() - since : 0;
    return r ? r->steps : m->clock.n / m->plan->members[member].ticks;
}

bool crdi_async_left(const crd_master* m)
{
    return m->async && m->async->left;
}

bool crdi_member_link(crd_master* m, int member, crd_link_stats* out)
{
    crd_unit* u = m->plan->members[member].unit;
    crdi_runner* r = m->async ? m->async->of[member] : NULL;
    if (!CRDI_UNIT_HAS(u, remote, link) || !m->life.started ||
        m->plan->members[member].run->crashed) {
        return false;
    }
    if (!r) { return u->ops->remote->link(u, out); }
    if (!crdi_async_busy(m, member)) { r->no_link = !u->ops->remote->link(u, &r->known); }
    *out = r->known;
    return !r->no_link;
}

// ---- the end -----------------------------------------------------------------------------------

// What has become of a step that the run did not wait for.
static void tell_end(crd_master* m, crdi_runner* r)
{
    crdi_member* p = &m->plan->members[r->member];
    if (r->status == CRD_E_CRASH) {
        p->run->alive = false;
        p->run->crashed = true;
        crdi_log(m->log, CRD_LOG_WARNING,
                 "unit '%s' crashed in a step that was late when the run ended", p->unit->name);
        crdi_unit_abandon(p->unit);
    } else if (r->status < 0) {
        crdi_log(m->log, CRD_LOG_WARNING,
                 "unit '%s' failed in a step that was late when the run ended: %s", p->unit->name,
                 crd_error_text(p->unit->ctx));
    }
    r->handed = false;
}

static bool gives_up(crd_master* m, crdi_runner* r, int64_t until)
{
    crd_unit* u = m->plan->members[r->member].unit;
    if (comes_back(r, until, NULL)) { return true; }
    if (!CRDI_UNIT_HAS(u, remote, interrupt)) { return false; }
    u->ops->remote->interrupt(u);
    return comes_back(r, crdi_now_ns() + crdi_async_grace, NULL);
}

// A thread that does not come back is left alone with its unit, which nobody may touch any more.
static void end_runner(crd_master* m, crdi_runner* r, int64_t until)
{
    crdi_member* p = &m->plan->members[r->member];
    if (r->handed && !gives_up(m, r, until)) {
        if (!p->run->left) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "unit '%s' does not come back from the step that begins at t = %.10g s: its "
                     "thread is left alone, and the unit is not terminated or freed",
                     p->unit->name, crdi_time_of(m, r->job.from));
        }
        p->run->left = m->async->left = true;
        p->run->alive = false;
        return;
    }
    if (r->handed) { tell_end(m, r); }
    p->run->left = false;
    sem_post(&r->go);
    pthread_join(r->thread, NULL);
    r->has_thread = false;
}

void crdi_async_free(crd_master* m)
{
    struct crdi_async* a = m->async;
    if (!a) { return; }
    if (a->watched) {
        sem_post(&a->quit);
        pthread_join(a->watcher, NULL);
        a->watched = false;
    }
    for (int i = 0; i < a->count; i++) {
        atomic_store(&a->runners[i].quit, true);
    }
    const int64_t until = a->left ? 0 : crdi_now_ns() + crdi_async_patience;
    a->left = false;
    for (int i = 0; i < a->count; i++) {
        if (a->runners[i].has_thread) { end_runner(m, &a->runners[i], until); }
    }
}

// The last look at those who were left alone: whoever has come back meanwhile is freed as others.
bool crdi_async_clear(crd_master* m)
{
    struct crdi_async* a = m->async;
    if (!a) { return true; }
    crdi_async_free(m);
    for (int i = 0; i < a->count; i++) {
        crdi_runner* r = &a->runners[i];
        const crdi_member* p = &m->plan->members[r->member];
        if (p->run->left) {
            pthread_detach(r->thread);
            continue;
        }
        crdi_values_clear(p->unit->ctx, p->in, &r->inputs);
        crdi_values_clear(p->unit->ctx, p->in, &r->shown);
        crdi_values_clear(p->unit->ctx, p->out, &r->outputs);
        crdi_values_clear(p->unit->ctx, r->extra, &r->extras);
        sem_destroy(&r->go);
        sem_destroy(&r->done);
    }
    if (a->left) {
        do {
            a->next = __atomic_load_n(&left_behind, __ATOMIC_ACQUIRE);
        } while (!__atomic_compare_exchange_n(&left_behind, &a->next, a, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE));
        crdi_events_mute(m);
    } else {
        sem_destroy(&a->quit);
    }
    return !a->left;
}
