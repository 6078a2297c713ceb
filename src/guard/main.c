// cardan-guard: started by cardan run for runs with test benches. See guard.h.
#include "guard/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PRIORITY = 80 };

static crdi_ward_page* map_page(void)
{
    struct stat s;
    if (fstat(CRDI_WARD_PAGE_FD, &s) != 0 || s.st_size != (off_t)sizeof(crdi_ward_page)) {
        return NULL;
    }
    void* p = mmap(NULL, sizeof(crdi_ward_page), PROT_READ | PROT_WRITE, MAP_SHARED,
                   CRDI_WARD_PAGE_FD, 0);
    crdi_ward_page* page = p == MAP_FAILED ? NULL : p;
    return page && page->layout == sizeof *page ? page : NULL;
}

// As far as the system allows it.
static void harden(guard* g)
{
    g->locked = mlockall(MCL_CURRENT) == 0;
    g->fifo =
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = PRIORITY}) == 0;
}

bool guard_master_is_stopped(const guard* g)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", g->page->master);
    const size_t n = crdi_file_head(path, text, sizeof text);
    const char* name_end = n ? strrchr(text, ')') : NULL; // "123 (name) T ..."
    return name_end && name_end[1] == ' ' && name_end[2] == 'T';
}

bool guard_master_is_gone(const guard* g)
{
    struct pollfd p = {.fd = g->master, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

// What is wrong with the master, "" if nothing. `awake`: since when this process has not slept
// itself for long; before that the beat proves nothing.
static void judge(const guard* g, int64_t now, int64_t awake, char cause[GUARD_TEXT])
{
    const crdi_ward_page* p = g->page;
    const int64_t beat = atomic_load(&p->beat), cycle = atomic_load(&p->cycle_beat);
    const int64_t silent = now - (beat > awake ? beat : awake);
    const int64_t still = now - (cycle > awake ? cycle : awake);
    cause[0] = 0;
    if (guard_master_is_gone(g)) {
        snprintf(cause, GUARD_TEXT, "the master (process %d) is gone: it was killed or has crashed",
                 p->master);
    } else if (silent > p->watchdog_ns) {
        snprintf(cause, GUARD_TEXT, "the master (process %d) has had no heart beat for %.1f s%s",
                 p->master, 1e-9 * (double)silent,
                 guard_master_is_stopped(g) ? ": it is stopped (SIGSTOP)" : "");
    } else if (p->cycle_ns > 0 && atomic_load(&p->phase) == CRDI_WARD_RUNNING &&
               still > p->cycle_ns) {
        snprintf(cause, GUARD_TEXT,
                 "the run stands still: no step for %.1f s (process %d lives, its cycle does not "
                 "go on)",
                 1e-9 * (double)still, p->master);
    }
}

static int watch(guard* g)
{
    char cause[GUARD_TEXT];
    const crdi_ward_page* p = g->page;
    int64_t last = crdi_now_ns(), awake = last;
    for (;;) {
        const bool pressed = guard_stop_look(g, GUARD_LOOK_MS, cause);
        while (g->ward >= 0 && guard_take_message(g)) {}
        if (pressed) { return guard_act(g, cause); }
        const int64_t now = crdi_now_ns();
        if (now - last > p->watchdog_ns / 2) { awake = now; } // we have slept, perhaps all of us
        last = now;
        if (atomic_load(&p->phase) == CRDI_WARD_OVER) { return 0; }
        if (atomic_load(&p->fence)) { return guard_act(g, p->cause); } // a guard died
        judge(g, now, awake, cause);
        if (cause[0] && guard_has_benches(g)) { return guard_act(g, cause); }
        if (guard_master_is_gone(g)) { return 0; } // nothing of it turns
    }
}

static void say(void* user, crd_level level, const char* text)
{
    (void)user;
    if (level <= CRD_LOG_WARNING) { fprintf(stderr, "cardan guard: %s\n", text); }
}

int main(void)
{
    static guard g;
    g.page = map_page();
    if (!g.page) {
        fprintf(stderr, "cardan-guard is started by Cardan itself, for runs with test benches\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    g.ward = CRDI_WARD_SOCKET_FD;
    (void)fcntl(g.ward, F_SETFD, FD_CLOEXEC);
    g.master = (int)syscall(SYS_pidfd_open, g.page->master, 0);
    g.ctx = crd_context_create(&(crd_context_options){.log = say, .level = CRD_LOG_WARNING});
    if (g.master < 0 || !g.ctx) { return 2; }
    if (guard_stop_open(&g) < 0) {
        snprintf(g.page->cause, sizeof g.page->cause, "%s", crd_error_text(g.ctx));
        atomic_store(&g.page->ready, -1);
        return 2;
    }
    harden(&g);
    atomic_store(&g.page->guard_beat, crdi_now_ns());
    atomic_store(&g.page->ready, 1);
    return watch(&g);
}
