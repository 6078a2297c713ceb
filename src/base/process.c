#include "shared/base.h"
#include "shared/base_system.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct process {
    char state;
    int threads;
    unsigned long long start;
} process;

// Of /proc/PID/stat the fields 3, 20 and 22. The second is a name that may hold anything, hence
// the last parenthesis. Zero if there is no such process.
static process look(long pid)
{
    char path[64], text[1024];
    process p = {0};
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    crdi_file_head(path, text, sizeof text);
    const char* rest = strrchr(text, ')');
    if (rest) {
        (void)sscanf(rest,
                     ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d "
                     "%*s %llu",
                     &p.state, &p.threads, &p.start);
    }
    return p;
}

unsigned long long crdi_process_start(long pid)
{
    return look(pid).start;
}

bool crdi_process_is_gone(long pid, unsigned long long start)
{
    if (kill((pid_t)pid, 0) != 0) { return errno == ESRCH; }
    const process p = look(pid);
    // It has ended and nobody has asked how: the first process of a container may never do so.
    if (p.state == 'Z' && p.threads <= 1) { return true; }
    // The number was given to another process, which began later. An emulator tells its processes
    // that they began a tick beside the truth.
    enum { SECOND = 100 };
    return p.start && (p.start > start + SECOND || p.start + SECOND < start);
}
