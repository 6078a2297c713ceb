#include "check.h"
#include "shared/base.h"
#include "shared/base_interrupt.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static void a_signal_sets_the_flag_and_is_counted(void** state)
{
    const volatile bool* asked = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    check(!*asked);
    check_int(crdi_interrupt_count(), 0);
    raise(SIGTERM);
    check(*asked);
    raise(SIGINT); // at once: the same wish told twice
    check_int(crdi_interrupt_count(), 2);
    asked = crdi_interrupt_catch(&(crdi_interrupt_options){0});
    check(!*asked);
    check_int(crdi_interrupt_count(), 0);
    crdi_interrupt_restore();
}

static void what_was_before_comes_back(void** state)
{
    struct sigaction before, after;
    signal(SIGINT, SIG_IGN);
    sigaction(SIGINT, NULL, &before);
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true}); // once more
    crdi_interrupt_restore();
    crdi_interrupt_restore();
    sigaction(SIGINT, NULL, &after);
    check(after.sa_handler == SIG_IGN && before.sa_handler == SIG_IGN);
    sigaction(SIGTERM, NULL, &after);
    check(after.sa_handler == SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

// How a child ends that is signalled twice with a rest between.
static int twice(const crdi_interrupt_options* opt)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)crdi_interrupt_catch(opt);
        raise(SIGINT);
        nap(300);
        raise(SIGINT);
        _exit(7);
    }
    int status = 0;
    check_int(waitpid(child, &status, 0), child);
    return status;
}

static void whoever_insists_ends_the_process(void** state)
{
    int status = twice(&(crdi_interrupt_options){0});
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    status = twice(&(crdi_interrupt_options){.only_count = true});
    check(WIFEXITED(status));
    check_int(WEXITSTATUS(status), 7);
}

static void blocked_signals_come_while_waiting(void** state)
{
    sigset_t waiting;
    const volatile bool* asked = crdi_interrupt_catch(&(crdi_interrupt_options){0});
    crdi_interrupt_block(&waiting);
    raise(SIGTERM);
    check(!*asked);
    const struct timespec t = {.tv_sec = 5};
    check_int(ppoll(NULL, 0, &t, &waiting), -1);
    check_int(errno, EINTR);
    check(*asked);
    sigprocmask(SIG_SETMASK, &waiting, NULL);
    crdi_interrupt_restore();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_sets_the_flag_and_is_counted),
        cmocka_unit_test(what_was_before_comes_back),
        cmocka_unit_test(whoever_insists_ends_the_process),
        cmocka_unit_test(blocked_signals_come_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
