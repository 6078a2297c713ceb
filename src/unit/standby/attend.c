// The threads of a unit with a stand-in: the attendant looks twenty times a second whether the
// primary is to be brought up again, lets another thread do that, which may take minutes, and
// writes the board.
#include "unit/standby/standby.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/dcp/dcp_unit.h"

static const int64_t SECOND = 1000000000;
static const int64_t LOOK = 50 * 1000 * 1000; // ns between two looks of the attendant
static const double MOST_PAUSE = 30;          // s between two attempts

bool crdi_standby_has_threads = true;

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static bool quits(const crdi_standby* u)
{
    return __atomic_load_n(&u->quit, __ATOMIC_ACQUIRE);
}

// Who is told to give up does not sleep to the end of a long step.
static void sleep_until(crdi_standby* u, int64_t until)
{
    const volatile bool* stop = u->experiment.interrupted;
    const bool* emergency = u->experiment.emergency;
    for (int64_t now = crdi_now_ns(); now < until; now = crdi_now_ns()) {
        if ((stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) ||
            (emergency && __atomic_load_n(emergency, __ATOMIC_RELAXED))) {
            return;
        }
        const struct timespec at = to_timespec(until - now > 2 * LOOK ? now + 2 * LOOK : until);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}

void (*crdi_standby_wait)(crdi_standby* u, int64_t until) = sleep_until;

// ---- restarting the primary --------------------------------------------------------------------

// Whose board is shown; the unit of the last one may go afterwards. `hitch` NULL: as it is.
static void put_on_desk(crdi_standby* u, crd_unit* unit, const char* hitch)
{
    pthread_mutex_lock(&u->desk);
    u->boarded = unit;
    if (hitch) { snprintf(u->hitch, sizeof u->hitch, "%s", hitch); }
    pthread_mutex_unlock(&u->desk);
}

// The inputs as they are about now.
static crd_status attend_set_inputs(crdi_standby* u, crdi_standby_seat* s)
{
    if (!s->in.binding) { return CRD_OK; }
    for (int k = 0; k < s->in.count; k++) {
        const crdi_way* w = &s->in.ways[k];
        for (uint32_t e = 0; e < w->size && w->kind != CRD_BYTES; e++) {
            const size_t at = (size_t)w->at + e + (w->kind == CRD_INTEGER ? u->real_count : 0);
            const uint64_t bits = atomic_load_explicit(&u->mirror[at], memory_order_relaxed);
            if (w->kind == CRD_REAL) {
                memcpy(&s->in.values.real[w->slot + (int32_t)e], &bits, sizeof bits);
            } else {
                memcpy(&s->in.values.integer[w->slot + (int32_t)e], &bits, sizeof bits);
            }
        }
    }
    return s->unit->ops->set(s->unit, s->in.binding, &s->in.values);
}

// Texts among the inputs stay at their start values.
static crd_status get_starts(crdi_standby_seat* s)
{
    if (!s->in.binding || s->in.binding->bytes_count == 0) { return CRD_OK; }
    return s->unit->ops->get(s->unit, s->in.binding, &s->in.values);
}

static crd_status initialize(crdi_standby* u, crdi_standby_seat* s)
{
    crd_status st = CRD_OK;
    crd_unit* p = s->unit;
    crd_experiment e = u->experiment;
    e.start = atomic_load_explicit(&u->now, memory_order_relaxed);
    e.interrupted = &u->quit;
    p->step = u->base.step;
    p->input_order = 0;
    CRD_TRY(crdi_seat_bind(u, s));
    CRD_TRY(crd_unit_instantiate(p));
    s->alive = true;
    CRD_TRY(p->ops->enter_initialization(p, &e));
    CRD_TRY(get_starts(s));
    CRD_TRY(attend_set_inputs(u, s));
    CRD_TRY(p->ops->exit_initialization(p));
    CRD_TRY(attend_set_inputs(u, s)); // a bench may have needed minutes
    if (p->spec->source == CRD_UNIT_DCP) {
        CRD_TRY(crdi_session_start_on((crdi_dcp_unit*)p, atomic_load(&u->origin), u->start));
    } else if (u->real_time) { // it goes on with the run's grid, whenever it steps first
        const int64_t origin = atomic_load(&u->origin);
        p->origin = origin ? origin + llround(1e9 * (e.start - u->start)) : 0;
    }
fail:
    return st;
}

// The old one comes to rest as far as it can be reached.
static void retire(crdi_standby* u)
{
    crdi_standby_seat* s = u->passing;
    if (!s) { return; }
    if (s->alive) {
        s->alive = false;
        (void)s->unit->ops->terminate(s->unit); // why it was lost is known
    }
    if (s != &u->first) {
        put_on_desk(u, u->first.unit, "");
        crdi_seat_clear(s);
        crd_free(s->ctx, s);
    }
    u->passing = NULL;
}

crd_status crdi_standby_bring_up(crdi_standby* u)
{
    crd_status st = CRD_OK;
    char why[200] = "";
    const bool was_lost = u->passing != NULL;
    retire(u);
    if (was_lost && !u->base.spec->standby.rejoin) { // at rest, and not asked for
        atomic_store_explicit(&u->post, CRDI_POST_GONE, memory_order_release);
        return CRD_OK;
    }
    crdi_standby_seat* s = crdi_new(u->helper, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = u->helper;
    st = crdi_unit_create_alone(u->helper, NULL, &u->again, &s->unit);
    if (st < 0) {
        snprintf(why, sizeof why, "%.199s", crd_error_text(u->helper));
    } else {
        put_on_desk(u, s->unit, NULL);
        st = initialize(u, s);
        if (st < 0) {
            const char* text = crd_error_text(s->unit->ctx);
            snprintf(why, sizeof why, "%.199s", text[0] ? text : crd_error_text(u->helper));
        }
    }
    if (st >= 0) {
        put_on_desk(u, s->unit, "");
        u->passing = s;
        atomic_store_explicit(&u->post, CRDI_POST_READY, memory_order_release);
        return CRD_OK;
    }
    if (s->alive) { (void)s->unit->ops->terminate(s->unit); }
    put_on_desk(u, u->first.unit, why);
    crdi_seat_clear(s);
    crd_free(u->helper, s);
    return crdi_fail(u->helper, st, "%s", why);
}

// false: nothing more is to be done.
static bool pause_for(crdi_standby* u, double seconds)
{
    const struct timespec at = to_timespec(crdi_now_ns() + llround(1e9 * seconds));
    while (!quits(u)) {
        if (sem_clockwait(&u->enough, CLOCK_MONOTONIC, &at) == 0) { return !quits(u); }
        if (errno == ETIMEDOUT) { return true; }
    }
    return false;
}

static void* restart_primary(void* user)
{
    crdi_standby* u = user;
    double pause = 1;
    while (!quits(u) && crdi_standby_bring_up(u) < 0) {
        if (quits(u)) { break; }
        crdi_log(u->helper, pause > 1 ? CRD_LOG_INFO : CRD_LOG_WARNING,
                 "unit '%s': the bench is not back: %s; next attempt in %g s", u->base.name,
                 crd_error_text(u->helper), pause);
        if (!pause_for(u, pause)) { break; }
        pause = fmin(2 * pause, MOST_PAUSE);
    }
    atomic_store_explicit(&u->restart_done, true, memory_order_release);
    return NULL;
}

// ---- the attendant -----------------------------------------------------------------------------

static void join_restarter(crdi_standby* u)
{
    if (!u->restarting) { return; }
    pthread_join(u->restarter, NULL);
    u->restarting = false;
}

// What is written here is read by the cycle thread or the restarter only once they were told.
static void look_after(crdi_standby* u)
{
    if (u->restarting && atomic_load_explicit(&u->restart_done, memory_order_acquire)) {
        join_restarter(u);
    }
    const int post = atomic_load_explicit(&u->post, memory_order_acquire);
    if (post == CRDI_POST_GONE && !u->lost[0]) {
        snprintf(u->lost, sizeof u->lost, "%s", u->failure);
    }
    if (post != CRDI_POST_WANTED || u->restarting || quits(u)) { return; }
    snprintf(u->lost, sizeof u->lost, "%s", u->failure);
    atomic_store_explicit(&u->restart_done, false, memory_order_relaxed);
    atomic_store_explicit(&u->post, CRDI_POST_COMING, memory_order_release);
    u->restarting = pthread_create(&u->restarter, NULL, restart_primary, u) == 0;
    if (!u->restarting) { // the next look tries again
        atomic_store_explicit(&u->post, CRDI_POST_WANTED, memory_order_release);
    }
}

// Goes on with the board while the bench comes to rest at the end.
static void* attend(void* user)
{
    crdi_standby* u = user;
    bool alone = false; // nobody brings anything up any more
    while (!atomic_load_explicit(&u->done, memory_order_acquire)) {
        if (quits(u) && !alone) {
            join_restarter(u);
            alone = true;
            sem_post(&u->calm);
        }
        look_after(u);
        crdi_standby_show(u);
        const struct timespec at = to_timespec(crdi_now_ns() + LOOK);
        (void)sem_clockwait(&u->wake, CLOCK_MONOTONIC, &at);
    }
    return NULL;
}

crd_status crdi_standby_open(crdi_standby* u)
{
    sem_init(&u->wake, 0, 0);
    sem_init(&u->enough, 0, 0);
    sem_init(&u->calm, 0, 0);
    u->has_sems = true;
    if (!crdi_standby_has_threads) { return CRD_OK; }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // signals are for the cycle thread
    u->has_attendant = pthread_create(&u->attendant, NULL, attend, u) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (u->has_attendant) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_STATE,
                     "there is no thread to look after the bench and its stand-in: too many of "
                     "them");
}

void crdi_standby_give_up(crdi_standby* u)
{
    if (!u->has_sems || __atomic_exchange_n(&u->quit, true, __ATOMIC_ACQ_REL)) { return; }
    sem_post(&u->wake);
    sem_post(&u->enough);
}

void crdi_standby_gather(crdi_standby* u)
{
    crdi_standby_give_up(u);
    while (u->has_attendant && !u->gathered && sem_wait(&u->calm) != 0) {}
    u->gathered = true;
    if (!u->seat && atomic_load(&u->post) == CRDI_POST_READY) { // it came too late
        u->seat = u->passing;
        u->passing = NULL;
        atomic_store(&u->post, CRDI_POST_HERE);
    }
}

void crdi_standby_close(crdi_standby* u)
{
    crdi_standby_gather(u);
    atomic_store_explicit(&u->done, true, memory_order_release);
    if (u->has_attendant) {
        sem_post(&u->wake);
        pthread_join(u->attendant, NULL);
    }
    u->has_attendant = false;
    if (u->has_sems) {
        sem_destroy(&u->wake);
        sem_destroy(&u->enough);
        sem_destroy(&u->calm);
    }
    u->has_sems = false;
}

// ---- the board ---------------------------------------------------------------------------------

// What is known about the primary, with its times as our board has them.
static void copy_board(crdi_standby* u, crdi_board_state* mine)
{
    crdi_board_state* in = u->copy;
    pthread_mutex_lock(&u->desk);
    const crd_unit* p = u->boarded;
    const crdi_board* from = p ? crdi_unit_board(p) : NULL;
    if (from) { crdi_board_read(from, in); }
    pthread_mutex_unlock(&u->desk);
    if (!from) { return; }
    const double shift = 1e-9 * (double)(crdi_now_ns() - u->born) - in->now;
    memcpy(mine, in, offsetof(crdi_board_state, has_standby));
    mine->last_data += shift;
    if (from != u->copied) { // the first one's comes again when bringing it up has failed
        if (u->copied_first) { u->first_moments = u->copied_moments; }
        u->copied = from;
        u->copied_first = p == u->first.unit;
        u->copied_moments = u->copied_first ? u->first_moments : 0;
    }
    const int64_t first = in->moments_left_out; // of the newer half some may be gone
    for (int i = 0; i < in->moment_count; i++) {
        const bool old = i < CRDI_BOARD_MOMENTS / 2;
        const int64_t number = i + (old ? 0 : first);
        if (number < u->copied_moments) { continue; }
        const crdi_board_moment* m = &in->moments[i];
        crdi_board_note_at(u->board, (crdi_board_what)m->what, m->value, m->time + shift);
        u->copied_moments = number + 1;
    }
}

void crdi_standby_show(crdi_standby* u)
{
    crdi_board_state* mine = crdi_board_edit(u->board);
    copy_board(u, mine);
    const int source = atomic_load_explicit(&u->shown_source, memory_order_relaxed);
    const crdi_why why = (crdi_why)atomic_load_explicit(&u->shown_why, memory_order_relaxed);
    if (source != u->shown_on_board) {
        u->shown_on_board = source;
        crdi_board_note(u->board, CRDI_BOARD_SOURCE, source);
    }
    mine->has_standby = true;
    mine->source = source;
    mine->weight = atomic_load_explicit(&u->shown_part, memory_order_relaxed);
    mine->takeovers = atomic_load_explicit(&u->takeovers, memory_order_relaxed);
    mine->returns = atomic_load_explicit(&u->returns, memory_order_relaxed);
    const char* text = why == CRDI_WHY_FAILED && u->lost[0] ? u->lost : crdi_standby_reason(u, why);
    pthread_mutex_lock(&u->desk);
    snprintf(mine->standby, sizeof mine->standby, "%.90s%s%.90s", text,
             text[0] && u->hitch[0] ? "; not back: " : "", text[0] ? u->hitch : "");
    pthread_mutex_unlock(&u->desk);
    crdi_board_show(u->board);
}
