// A unit is foreign native code. When it crashes, the run ends, its record does not. A process that
// wants to live on jumps out of the unit's code to the last frame of its thread that catches it;
// one that may end (sentinel.c) leaves the thread where it is, as the heap may be locked or
// damaged, and lets another one tell what has happened. The unit is not called again.
#include "master/master.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// The first ones are always caught, those behind them where the process is to end: others may be
// used by whoever has the process.
static const int signals[] = {SIGSEGV, SIGBUS,  SIGFPE,    SIGILL,  SIGABRT,
                              SIGTRAP, SIGSYS,  SIGPIPE,   SIGXCPU, SIGXFSZ,
                              SIGALRM, SIGPROF, SIGVTALRM, SIGUSR1, SIGUSR2};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals, ALWAYS = 10, STACK_BYTES = 64 * 1024 };

static _Thread_local crdi_crash_frame* current;
static _Thread_local bool known; // a thread that runs units for a master
// For the handler when the thread's own overflowed. Not here itself: a program that loads the
// library while it runs has no room for it among the variables of its threads.
static _Thread_local void* stack;

// Handlers belong to the process, so they are counted: several masters may run.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users, installed;
static struct sigaction before[SIGNAL_COUNT];
static pthread_key_t thread_end;

// What is to be told, by the first who has something.
static struct {
    atomic_bool open;  // somebody waits for it
    atomic_bool late;  // nobody does any more, but units may have left threads behind
    atomic_int posted; // 1: it is being written, 2: it is there
    crdi_crash_news news;
    sem_t wake;
} desk;
static _Thread_local bool reads_desk;

volatile bool crdi_crash_child;
int crdi_crash_parent;

static bool in_unit(void)
{
    return current && *current->running >= 0;
}

// ---- the end of the process --------------------------------------------------------------------

// The thread stays where it is. Should nobody end the process, it does so itself.
static _Noreturn void park(void)
{
    enum { PATIENCE_S = 6 };
    struct timespec left = {.tv_sec = PATIENCE_S};
    while (nanosleep(&left, &left) != 0) {}
    crdi_sentinel_give_up();
}

static _Noreturn void post(int what)
{
    int none = 0;
    if (reads_desk) { crdi_sentinel_give_up(); }
    if (atomic_compare_exchange_strong(&desk.posted, &none, 1)) {
        desk.news = (crdi_crash_news){
            .what = what, .member = in_unit() ? *current->running : -1, .foreign = !known};
        atomic_store(&desk.posted, 2);
        sem_post(&desk.wake);
    }
    park();
}

void crdi_crash_post(const crdi_crash_news* news)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&desk.posted, &none, 1)) { return; }
    desk.news = *news;
    atomic_store(&desk.posted, 2);
}

const crdi_crash_news* crdi_crash_wait(int64_t until)
{
    const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    (void)sem_clockwait(&desk.wake, CLOCK_MONOTONIC, &at);
    return atomic_load(&desk.posted) == 2 ? &desk.news : NULL;
}

void crdi_crash_wake(void)
{
    sem_post(&desk.wake);
}

// ---- what happens to a thread ------------------------------------------------------------------

static void as_before(int number, const siginfo_t* info)
{
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i] == number) { sigaction(number, &before[i], NULL); }
    }
    // A fault happens again on return; what was sent does not.
    const bool fault =
        number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
    if (!fault || info->si_code <= 0) { raise(number); }
}

// A unit may have switched on the check of alignment, which signals leave as it is.
static inline void allow_any_address(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andl $~0x40000, (%%rsp); popfq; "
                     "lea 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
#endif
}

static void handler(int number, siginfo_t* info, void* context)
{
    (void)context;
    allow_any_address();
    if (crdi_crash_child) {
        as_before(number, info);
    } else if (atomic_load(&desk.open)) {
        // Whoever reads what we print may have gone: that ends us as it ends others.
        if (number == SIGPIPE && known && !in_unit() && !atomic_load(&desk.posted)) {
            as_before(number, info);
        } else {
            post(number);
        }
    } else if (atomic_load(&desk.late) && !known) {
        crdi_sentinel_end_late(number);
    } else if (in_unit()) {
        // A sanitizer's own handler around this one may have blocked signals; the next crash must
        // not find them so.
        sigset_t fatal;
        sigemptyset(&fatal);
        for (int i = 0; i < SIGNAL_COUNT; i++) {
            sigaddset(&fatal, signals[i]);
        }
        pthread_sigmask(SIG_UNBLOCK, &fatal, NULL);
        siglongjmp(current->env, number);
    } else { // not in a unit: as if this handler had never been there
        as_before(number, info);
    }
}

// A unit that calls exit() would end the process and lose the record.
static void leave_exit(void)
{
    if (crdi_crash_child) { return; }
    if (atomic_load(&desk.open)) { post(CRDI_CRASH_EXIT); }
    if (in_unit()) {
        (void)atexit(leave_exit); // they were taken off their lists to be called
        (void)at_quick_exit(leave_exit);
        siglongjmp(current->env, CRDI_CRASH_EXIT);
    }
}

// A thread of ours ends while it is in a unit.
static void leave_thread(void* value)
{
    (void)value;
    if (in_unit() && !crdi_crash_child && atomic_load(&desk.open)) { post(CRDI_CRASH_THREAD); }
    if (in_unit() || !stack) { return; }
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    munmap(stack, STACK_BYTES);
    stack = NULL;
}

// A unit made a second process of this one, which must not become a second run.
static void become_child(void)
{
    if (!in_unit()) { return; }
    crdi_crash_parent = *current->running;
    crdi_crash_child = true;
}

// ---- handlers ----------------------------------------------------------------------------------

static void install(int count)
{
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK}; // a fault in it is the end
    sigemptyset(&action.sa_mask);
    for (; installed < count; installed++) {
        sigaction(signals[installed], NULL, &before[installed]);
        if (before[installed].sa_handler == SIG_IGN) { continue; } // then it harms nobody
        sigaction(signals[installed], &action, NULL);
    }
}

void crdi_crash_install(void)
{
    static bool registered;
    pthread_mutex_lock(&lock);
    if (!registered) {
        registered = atexit(leave_exit) == 0 && at_quick_exit(leave_exit) == 0 &&
                     pthread_atfork(NULL, NULL, become_child) == 0 &&
                     pthread_key_create(&thread_end, leave_thread) == 0;
    }
    users++;
    install(ALWAYS);
    pthread_mutex_unlock(&lock);
}

void crdi_crash_remove(void)
{
    pthread_mutex_lock(&lock);
    for (users--; users == 0 && installed > 0; installed--) {
        sigaction(signals[installed - 1], &before[installed - 1], NULL);
    }
    pthread_mutex_unlock(&lock);
}

bool crdi_crash_open_desk(void)
{
    if (atomic_load(&desk.open)) { return false; }
    sem_init(&desk.wake, 0, 0);
    crdi_crash_install();
    pthread_mutex_lock(&lock);
    install(SIGNAL_COUNT);
    pthread_mutex_unlock(&lock);
    atomic_store(&desk.late, true);
    atomic_store(&desk.open, true);
    return true;
}

void crdi_crash_read_desk(void)
{
    reads_desk = true;
}

// The handlers stay.
void crdi_crash_close_desk(void)
{
    atomic_store(&desk.open, false);
    sem_destroy(&desk.wake);
}

void crdi_crash_leave_process(int code)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which look for leaks in exit
    if (!atomic_load(&desk.late)) { return; }
    fflush(NULL);
    _exit(code);
#else
    (void)code;
#endif
}

// ---- frames ------------------------------------------------------------------------------------

void crdi_crash_enter(crdi_crash_frame* g, volatile int* running)
{
    if (!known) { // asked once per thread: workers come here in every tick
        stack_t now;
        if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
            void* room =
                mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            stack = room == MAP_FAILED ? NULL : room;
            stack_t s = {.ss_sp = stack, .ss_size = STACK_BYTES};
            if (stack) { sigaltstack(&s, NULL); }
        }
        pthread_setspecific(thread_end, &desk); // anything but NULL
        known = true;
    }
    g->running = running;
    g->outer = current;
    current = g;
}

void crdi_crash_leave(crdi_crash_frame* g)
{
    current = g->outer;
}

int crdi_crash_catch(volatile int* running, void (*f)(void* with), void* with)
{
    crdi_crash_frame frame;
    crdi_crash_enter(&frame, running);
    const int crash = sigsetjmp(frame.env, 0);
    if (!crash) { f(with); }
    crdi_crash_leave(&frame);
    return crash;
}

int crdi_life_catch(crd_master* m, void (*f)(void* with), void* with)
{
    if (m->plan->opt.guard_crashes) { return crdi_crash_catch(&m->running, f, with); }
    f(with);
    return 0;
}
