#include "check.h"
#include "shared/base_system.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_process_that_lives_is_not_gone(void** state)
{
    const unsigned long long start = crdi_process_start(getpid());
    check(start > 0);
    check(!crdi_process_is_gone(getpid(), start));
    check(crdi_process_is_gone(getpid(), start + 1000)); // the number was somebody else's
}

static void a_process_is_gone_before_anybody_asks_how_it_ended(void** state)
{
    siginfo_t info;
    const pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    const unsigned long long start = crdi_process_start(child);
    check(!crdi_process_is_gone(child, start));
    check_int(kill(child, SIGKILL), 0);
    check_int(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    check(crdi_process_is_gone(child, start));
    check_int(waitpid(child, NULL, 0), child);
    check(crdi_process_is_gone(child, start));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_lives_is_not_gone),
        cmocka_unit_test(a_process_is_gone_before_anybody_asks_how_it_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
