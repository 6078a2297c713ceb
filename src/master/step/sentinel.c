// A thread beside a run whose process may end: it tells what a unit has done when no other thread
// can, finishes the record, and ends the process. It also sees units that do not come back when the
// run is to stop, and puts back what units change in the process.
#include "master/master.h"
#include "shared/archive.h"
#include "shared/master_process.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NS = 100 * 1000 * 1000,
    STOP_S = 3,  // a unit's share of a stop that was asked for
    LOAD_S = 30, // the constructors and destructors of a library
};
#define SECOND INT64_C(1000000000)

struct crdi_sentinel {
    crd_master* m;
    pthread_t thread, cycle;
    bool quit; // atomic
    crdi_process process;
    // what the cycle thread is at, and since when
    int member;
    int64_t tick, since;
    bool stops, reminded, warned_handlers;
};

// One per process: signal handlers have no other way to it.
static struct crdi_sentinel* only;
static char sentence[1024];
static char fence_cause[512]; // before it is posted
static volatile sig_atomic_t said;

// ---- the sentence ------------------------------------------------------------------------------

static const char* place(const crd_master* m, char* out, size_t size)
{
    if (!m->life.started) {
        snprintf(out, size, "at the start");
    } else {
        snprintf(out, size, "%sat t = %.10g", m->life.finished ? "at the end, " : "",
                 crdi_time_seen(m));
    }
    return out;
}

// Units whose code is in this process and that are still there: "'a', 'b', ...", and how many.
static int name_suspects(const crd_master* m, char* out, size_t size)
{
    enum { SHOWN = 4 };
    int count = 0;
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < m->plan->member_count && n < size; i++) {
        const bool gone = i >= m->plan->member_count - m->life.destroyed && i != m->running;
        if (gone || m->plan->members[i].unit->ops->remote) { continue; }
        if (count <= SHOWN) {
            n += (size_t)snprintf(out + n, size - n, count < SHOWN ? "%s'%s'" : "%s...",
                                  count ? ", " : "", m->plan->sys->units[i].name);
        }
        count++;
    }
    return count;
}

// On a thread that a unit made. Of several units nobody can say whose it is.
static void word_foreign(const crd_master* m, const char* what, const char* when)
{
    char names[256], during[256] = "no unit was in a call";
    const int count = name_suspects(m, names, sizeof names);
    if (m->running >= 0) {
        const crd_unit* u = m->plan->members[m->running].unit;
        snprintf(during, sizeof during, "unit '%s' was in %s", u->name, crdi_unit_last_call(u));
    }
    snprintf(sentence, sizeof sentence, "a thread that %s%s%s %s %s, while %s%s",
             count ? "unit " : "a unit left behind", names, count ? " made" : "", what, when,
             during, count > 1 ? "; which of them made it is not known" : "");
}

static void word(const crd_master* m, const crdi_crash_news* n)
{
    char when[64], signal_name[128];
    place(m, when, sizeof when);
    snprintf(signal_name, sizeof signal_name, "crashed (%s)", crdi_signal_text(n->what));
    const char* what = n->what == CRDI_CRASH_EXIT ? "tried to end the process with exit()"
                       : n->what == CRDI_CRASH_THREAD
                           ? "ended a thread of Cardan with pthread_exit()"
                           : NULL;
    if (n->what == CRDI_CRASH_FENCE) {
        snprintf(sentence, sizeof sentence, "the guard has taken the benches %s: %s", when,
                 fence_cause);
        return;
    }
    if (n->foreign) {
        word_foreign(m, what ? what : signal_name, when);
        return;
    }
    if (n->member < 0) {
        snprintf(sentence, sizeof sentence,
                 "Cardan itself crashed %s (%s), in none of its units: either a unit wrote into "
                 "memory that is not its own (isolate: process keeps it from that), or this is a "
                 "mistake of Cardan",
                 when, what ? "exit()" : crdi_signal_text(n->what));
        return;
    }
    const crd_unit* u = m->plan->members[n->member].unit;
    const char* call = crdi_unit_last_call(u);
    if (n->what == CRDI_CRASH_HANGS) {
        snprintf(sentence, sizeof sentence, "unit '%s' %s: did not come back from %s within %d s%s",
                 u->name, when, call, n->seconds,
                 n->seconds == STOP_S ? " after the run was to stop" : "");
    } else if (what) {
        snprintf(sentence, sizeof sentence, "unit '%s' %s: %s in %s", u->name, when, what, call);
    } else {
        snprintf(sentence, sizeof sentence, "unit '%s' %s: crashed in %s (%s)", u->name, when, call,
                 crdi_signal_text(n->what));
    }
}

// `recorded`: the file holds all rows.
static void say(const crd_master* m, int member, bool recorded)
{
    const crd_last_words words = {
        .sentence = sentence,
        .unit = member >= 0 ? m->plan->members[member].unit->name : "",
        .time = crdi_time_seen(m),
        .results = recorded ? m->plan->sys->results.path : "",
        .rows = crdi_record_row_count(m),
    };
    m->plan->opt.last_words(m->plan->opt.last_words_user, &words);
}

_Noreturn void crdi_sentinel_give_up(void)
{
    if (!said && only) {
        said = 1; // whatever happens now
        if (!sentence[0]) { snprintf(sentence, sizeof sentence, "a unit crashed"); }
        say(only->m, -1, false);
    }
    _exit(crd_status_exit_code(CRD_E_CRASH));
}

_Noreturn void crdi_sentinel_end_late(int number)
{
    char line[256];
    const int n = snprintf(line, sizeof line,
                           "cardan: a thread that a unit left behind crashed at the end, when the "
                           "unit was gone (%s)\n",
                           crdi_signal_text(number));
    const ssize_t written = write(STDERR_FILENO, line, (size_t)n);
    crdi_scratch_abandon();
    _exit(crd_status_exit_code(written == n ? CRD_E_CRASH : CRD_E_IO));
}

// ---- the end -----------------------------------------------------------------------------------

// A thread that still runs comes to its end in the signal handler, wherever it is.
static void hold_cycle(const struct crdi_sentinel* s)
{
    pthread_kill(s->cycle, SIGXCPU);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

// Whatever turns is to come to rest; when the sentence is out, as this may take memory.
static void rest_benches(crd_master* m, bool fenced)
{
    for (int i = 0; i < m->plan->member_count && !fenced; i++) {
        crd_unit* u = m->plan->members[i].unit;
        if (m->plan->members[i].run->alive && CRDI_UNIT_HAS(u, remote, halt)) {
            u->ops->remote->halt(u);
            (void)u->ops->terminate(u);
        }
    }
    if (m->live) {
        crdi_live_end(m);
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); // pages look for it
    }
}

static _Noreturn void end_process(const struct crdi_sentinel* s, const crdi_crash_news* news)
{
    crd_master* m = s->m;
    hold_cycle(s);
    word(m, news);
    m->life.end = CRD_END_FAILED;
    if (news->member >= 0) {
        m->life.end_member = news->member;
        m->plan->members[news->member].run->alive = false;
    }
    if (!m->life.message[0] ||
        news->what == CRDI_CRASH_FENCE) { // what fails behind that is a result
        snprintf(m->life.message, sizeof m->life.message, "%s", sentence);
    }
    const bool recorded = crdi_record_rescue(m, sentence);
    (void)crdi_session_write(m);
    say(m, news->member, recorded);
    said = 1;
    rest_benches(m, news->what == CRDI_CRASH_FENCE);
    _exit(crd_status_exit_code(CRD_E_CRASH));
}

bool crdi_master_has_machines(const crd_master* m, double* period)
{
    unsigned flags = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crd_unit* u = m->plan->members[i].unit;
        if (crdi_unit_board(u)) { flags |= u->info.flags; }
    }
    const double factor = m->plan->paced ? m->plan->sys->run.pace.factor : 1;
    const bool on_clock = m->plan->paced || (flags & CRD_UNIT_IN_REAL_TIME);
    *period = on_clock ? (double)m->plan->times.longest_ticks * m->plan->times.tick / factor : 0;
    return (flags & (CRD_UNIT_IN_REAL_TIME | CRD_UNIT_DATES_OUTPUTS)) != 0;
}

int crdi_master_pulse(const crd_master* m, int64_t* steps)
{
    *steps = __atomic_load_n(&m->clock.n, __ATOMIC_RELAXED);
    if (__atomic_load_n(&m->life.finished, __ATOMIC_RELAXED)) { return 1; }
    if (__atomic_load_n(&m->life.stands, __ATOMIC_RELAXED)) { return -1; }
    return __atomic_load_n(&m->life.started, __ATOMIC_RELAXED) ? 0 : -1;
}

void crdi_master_fence(const char* cause)
{
    snprintf(fence_cause, sizeof fence_cause, "%s", cause);
    crdi_crash_post(&(crdi_crash_news){.what = CRDI_CRASH_FENCE, .member = -1});
    crdi_crash_wake();
}

// ---- watching ----------------------------------------------------------------------------------

// A member that has been running for long is there: nobody frees it. Others are not looked into.
static void look_for_hang(struct crdi_sentinel* s, int64_t now)
{
    const crd_master* m = s->m;
    int member = m->running;
    if (member < 0 && !m->life.finished) { member = crdi_tuning_running(m); }
    const bool stops = crdi_life_stops(m);
    if (member != s->member || m->clock.n != s->tick || stops != s->stops) {
        s->member = member;
        s->tick = m->clock.n;
        s->stops = stops;
        s->since = now;
    }
    const int limit = stops ? STOP_S : LOAD_S;
    if (member < 0 || now - s->since < limit * SECOND) { return; }
    crd_unit* u = m->plan->members[member].unit;
    if (!stops && !strstr(crdi_unit_last_call(u), " library")) { return; } // no function's name
    if (!u->ops->remote) {
        crdi_crash_post(&(crdi_crash_news){CRDI_CRASH_HANGS, member, .seconds = limit});
    } else if (!CRDI_UNIT_HAS(u, remote, halt) && CRDI_UNIT_HAS(u, remote, interrupt)) {
        u->ops->remote->interrupt(u); // a worker process, which is ended then
    } else if (!s->reminded) {
        s->reminded = true;
        crdi_log(m->ctx, CRD_LOG_WARNING,
                 "unit '%s' has not come to rest yet; Ctrl-C once more ends the run at once",
                 u->name);
    }
}

// In the run the cycle thread does it and knows whose fault it is; here a unit may hang.
static void look_at_handlers(struct crdi_sentinel* s)
{
    if (s->m->running < 0 || !crdi_process_restore_handlers(&s->process) || s->warned_handlers) {
        return;
    }
    s->warned_handlers = true;
    const crd_unit* u = s->m->plan->members[s->m->running].unit;
    crdi_log(s->m->ctx, CRD_LOG_WARNING,
             "unit '%s' changed signal handlers in %s; they are put back", u->name,
             crdi_unit_last_call(u));
}

static void* watch(void* arg)
{
    struct crdi_sentinel* s = arg;
    crdi_crash_read_desk();
    while (!__atomic_load_n(&s->quit, __ATOMIC_ACQUIRE)) {
        const crdi_crash_news* news = crdi_crash_wait(crdi_now_ns() + LOOK_NS);
        if (news) { end_process(s, news); }
        look_for_hang(s, crdi_now_ns());
        look_at_handlers(s);
    }
    return NULL;
}

void crdi_sentinel_check(crd_master* m, int member)
{
    char text[256], names[256];
    if (!m->sentinel || !crdi_process_restore(&m->sentinel->process, text)) { return; }
    if (member >= 0) {
        const crd_unit* u = m->plan->members[member].unit;
        crdi_log(m->log, CRD_LOG_WARNING, "unit '%s' changed %s in %s; put back", u->name, text,
                 crdi_unit_last_call(u));
        return;
    }
    (void)name_suspects(m, names, sizeof names);
    crdi_log(m->log, CRD_LOG_WARNING,
             "%s was changed in a step before t = %.10g by a unit (%s); put back", text,
             crdi_time_seen(m), names);
}

// Signals that ask for the end are for this thread too: a unit may block them on the others.
crd_status crdi_sentinel_start(crd_master* m)
{
    if (!m->plan->opt.last_words || !m->plan->opt.guard_crashes || m->sentinel) { return CRD_OK; }
    struct crdi_sentinel* s = crdi_new(m->ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    if (!crdi_crash_open_desk()) {
        crd_free(m->ctx, s);
        return crdi_fail(m->ctx, CRD_E_STATE, "another run of this process has last words already");
    }
    *s = (struct crdi_sentinel){.m = m, .cycle = pthread_self(), .member = -1};
    crdi_process_save(&s->process);
    only = m->sentinel = s;
    sentence[0] = 0;
    sigset_t asks, mask;
    sigemptyset(&asks);
    sigaddset(&asks, SIGINT);
    sigaddset(&asks, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &asks, &mask);
    const bool made = pthread_create(&s->thread, NULL, watch, s) == 0;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (made) { return CRD_OK; }
    crdi_crash_close_desk();
    crdi_process_clear(&s->process);
    crd_free(m->ctx, s);
    only = m->sentinel = NULL;
    return crdi_fail(m->ctx, CRD_E_STATE, "no thread to watch the units: too many of them");
}

void crdi_sentinel_stop(crd_master* m)
{
    struct crdi_sentinel* s = m->sentinel;
    if (!s) { return; }
    __atomic_store_n(&s->quit, true, __ATOMIC_RELEASE);
    crdi_crash_wake();
    pthread_join(s->thread, NULL);
    crdi_crash_close_desk();
    crdi_process_clear(&s->process);
    only = m->sentinel = NULL;
    crd_free(m->ctx, s);
}

_Noreturn void crdi_crash_leave_child(const crd_master* m)
{
    char line[512];
    const char* call = "its last call";
    if (!m->life.destroyed) { // it is still there
        call = crdi_unit_last_call(m->plan->members[crdi_crash_parent].unit);
    }
    const int n =
        snprintf(line, sizeof line,
                 "cardan: warning: unit '%s' made a copy of the process with fork() in %s "
                 "and let it come back: the copy is ended\n",
                 m->plan->sys->units[crdi_crash_parent].name, call);
    const ssize_t written = write(STDERR_FILENO, line, (size_t)n);
    _exit(written == n ? 0 : 1);
}
