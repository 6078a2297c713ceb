// Ctrl-C as a wish: one flag that everybody may look at.
#include "shared/base_interrupt.h"

#include "shared/base.h"

#include <errno.h>

enum { SAME_WISH_NS = 200000000 };

static const int numbers[] = {SIGINT, SIGTERM};
enum { COUNT = 2 };

static struct {
    volatile bool requested; // other threads look at it, too
    volatile sig_atomic_t count;
    volatile int64_t first_ns;
    bool caught, insists;
    struct sigaction before[COUNT];
} wish;

// The first signal asks, a later one ends the process. What follows at once is the same wish told
// twice: timeout(1) signals its child and then the group in which the child is.
static void note_signal(int number)
{
    const int error = errno;
    const int64_t now = crdi_now_ns();
    wish.count++;
    if (!wish.requested) {
        wish.first_ns = now;
        __atomic_store_n(&wish.requested, true, __ATOMIC_RELAXED);
    } else if (wish.insists && now - wish.first_ns > SAME_WISH_NS) {
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = error;
}

const volatile bool* crdi_interrupt_catch(const crdi_interrupt_options* opt)
{
    crdi_interrupt_restore();
    wish.insists = !opt->only_count;
    wish.count = 0;
    wish.requested = false;
    for (int i = COUNT - 1; i >= 0; i--) {
        struct sigaction action = {.sa_handler = note_signal,
                                   .sa_flags = opt->restart ? SA_RESTART : 0};
        sigemptyset(&action.sa_mask);
        sigaction(numbers[i], &action, &wish.before[i]);
    }
    wish.caught = true;
    return &wish.requested;
}

void crdi_interrupt_restore(void)
{
    if (!wish.caught) { return; }
    for (int i = 0; i < COUNT; i++) {
        sigaction(numbers[i], &wish.before[i], NULL);
    }
    wish.caught = false;
}

bool crdi_interrupted(void)
{
    return __atomic_load_n(&wish.requested, __ATOMIC_RELAXED);
}

int crdi_interrupt_count(void)
{
    return (int)wish.count;
}

void crdi_interrupt_block(sigset_t* waiting)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigprocmask(SIG_BLOCK, &ours, waiting);
}
