// A unit is foreign native code. When it crashes, the run ends, its record does not: the handler
// jumps out of the unit's code to the last frame of its thread that catches it. The unit is not
// called again.
#include "master/master.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals, STACK_BYTES = 64 * 1024 };

static _Thread_local crdi_crash_frame* current;
static _Thread_local bool has_stack;
static _Thread_local char stack[STACK_BYTES]; // for the handler when the thread's own overflowed

// Handlers belong to the process, so they are counted: several masters may run.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static struct sigaction before[SIGNAL_COUNT];

static void handler(int number, siginfo_t* info, void* context)
{
    (void)info;
    (void)context;
    if (current && *current->running >= 0) {
        // A sanitizer's own handler around this one may have blocked signals; the next crash must
        // not find them so.
        sigset_t fatal;
        sigemptyset(&fatal);
        for (int i = 0; i < SIGNAL_COUNT; i++) {
            sigaddset(&fatal, signals[i]);
        }
        pthread_sigmask(SIG_UNBLOCK, &fatal, NULL);
        siglongjmp(current->env, number);
    }
    // Not in a unit: as if this handler had never been there. The fault happens again on return.
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i] == number) { sigaction(number, &before[i], NULL); }
    }
    if (number == SIGABRT) { raise(number); }
}

// A unit that calls exit() would end the process and lose the record.
static void leave_exit(void)
{
    if (current && *current->running >= 0) {
        (void)atexit(leave_exit); // it was taken off the list to be called
        siglongjmp(current->env, CRDI_CRASH_EXIT);
    }
}

void crdi_crash_install(void)
{
    static bool registered;
    pthread_mutex_lock(&lock);
    if (!registered) { registered = atexit(leave_exit) == 0; }
    if (users++ == 0) {
        struct sigaction action = {.sa_sigaction = handler,
                                   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigemptyset(&action.sa_mask);
        for (int i = 0; i < SIGNAL_COUNT; i++) {
            sigaction(signals[i], &action, &before[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

void crdi_crash_remove(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        for (int i = 0; i < SIGNAL_COUNT; i++) {
            sigaction(signals[i], &before[i], NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}

void crdi_crash_enter(crdi_crash_frame* g, volatile int* running)
{
    if (!has_stack) { // asked once per thread: workers come here in every tick
        stack_t now;
        if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
            stack_t s = {.ss_sp = stack, .ss_size = STACK_BYTES};
            sigaltstack(&s, NULL);
        }
        has_stack = true;
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
