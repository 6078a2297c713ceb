// cardan guard show, stop: the guards of runs with test benches on this machine.
#include "cli/cli.h"
#include "shared/base_interrupt.h"
#include "shared/unit_ward.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_GUARDS = 64 };
static const double PATIENCE = 70; // s: a guard says after 60 s which bench does not come to rest

typedef struct guard_options {
    crdi_common common;
    bool all;
} guard_options;

typedef struct found {
    pid_t pid;
    crdi_ward_page* page;
} found;

// ---- which ones --------------------------------------------------------------------------------

static void let_go(found* g, int count)
{
    for (int i = 0; i < count; i++) {
        munmap(g[i].page, sizeof *g[i].page);
    }
}

// The number of a guard or of the run that it guards; NULL: all that belong to this user.
static int find_guards(const char* which, found out[MOST_GUARDS])
{
    pid_t pids[MOST_GUARDS];
    const int wanted = which ? atoi(which) : 0;
    int there = crdi_ward_find(pids, MOST_GUARDS), n = 0;
    there = there < MOST_GUARDS ? there : MOST_GUARDS;
    for (int i = 0; i < there; i++) {
        crdi_ward_page* p = crdi_ward_open(pids[i]);
        if (!p) { continue; }
        if (!which || wanted == pids[i] || wanted == p->master) {
            out[n++] = (found){pids[i], p};
        } else {
            munmap(p, sizeof *p);
        }
    }
    return n;
}

static crd_status check_number(crd_context* ctx, const char* text)
{
    const bool good = !text || (text[0] && text[strspn(text, "0123456789")] == 0);
    return good ? CRD_OK
                : crdi_fail(ctx, CRD_E_RANGE,
                            "'%s' is no process, expected the number of a guard or of its run",
                            crdi_clip(text).text);
}

// ---- show --------------------------------------------------------------------------------------

static const char* bench_state(const crdi_ward_slave* s)
{
    const char* name = crd_dcp_state_name((int)atomic_load(&s->state));
    return !atomic_load(&s->held) ? "released" : name ? name : "?";
}

static void put_guard(crdi_result* list, crdi_result* benches, const found* g)
{
    static const char* const phases[] = {"starting", "running", "ending", "over"};
    const crdi_ward_page* p = g->page;
    crdi_result* row = crdi_row(list);
    const double ms = 1e-6 * (double)(crdi_now_ns() - atomic_load(&p->beat));
    crdi_put(row, INT("guard", g->pid), INT("run", p->master),
             TEXT("phase", atomic_load(&p->fence) ? "fenced" : phases[atomic_load(&p->phase) & 3]),
             REAL("watchdog", 1e-9 * (double)p->watchdog_ns), REAL("beat", 1e-3 * ms),
             TEXT("estop", p->url));
    crdi_result* own = crdi_array(row, "benches");
    for (int i = 0; i < atomic_load(&p->slave_count); i++) {
        const crdi_ward_slave* s = &p->slaves[i];
        crdi_put(crdi_row(own), TEXT("name", s->name), TEXT("state", bench_state(s)));
        crdi_put(crdi_row(benches), INT("guard", g->pid), TEXT("name", s->name),
                 TEXT("state", bench_state(s)));
    }
}

static crd_status run_show(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    static const crdi_column guards[] = {{">guard", "guard", NULL},
                                         {">run", "run", NULL},
                                         {"phase", "phase", NULL},
                                         {">watchdog", "watchdog", "s"},
                                         {">last beat", "beat", "s"},
                                         {"emergency stop", "estop", NULL},
                                         {0}};
    static const crdi_column rows[] = {
        {">guard", "guard", NULL}, {"bench", "name", NULL}, {"state", "state", NULL}, {0}};
    found g[MOST_GUARDS];
    const char* which = arguments->count ? arguments->items[0] : NULL;
    (void)options;
    const crd_status st = check_number(cli->ctx, which);
    if (st < 0) { return st; }
    const int n = find_guards(which, g);
    crdi_result *list = crdi_array(out, "guards"), *benches = crdi_array(out, NULL);
    for (int i = 0; i < n; i++) {
        put_guard(list, benches, &g[i]);
    }
    let_go(g, n);
    if (n == 0 && which) {
        return crdi_fail(cli->ctx, CRD_E_NOT_FOUND,
                         "no guard of yours is process %s or guards it; 'cardan guard show' lists "
                         "them",
                         which);
    }
    if (n == 0) {
        crdi_say(out, "no guard of yours runs on this machine\n");
        return CRD_OK;
    }
    crdi_show_table(out, list, guards, "");
    crdi_say(out, "\n");
    crdi_show_table(out, benches, rows, "");
    return CRD_OK;
}

// ---- stop --------------------------------------------------------------------------------------

static int held(const crdi_ward_page* p)
{
    int n = 0;
    for (int i = 0; i < atomic_load(&p->slave_count); i++) {
        n += atomic_load(&p->slaves[i].held) != 0;
    }
    return n;
}

// Whoever guards the run reads it, also a guard that takes the place of this one.
static void ask_for_stop(crdi_ward_page* p)
{
    const struct passwd* user = getpwuid(getuid());
    snprintf(p->asker, sizeof p->asker, "'cardan guard stop' of %.60s, process %d",
             user ? user->pw_name : "this user", (int)getpid());
    atomic_store(&p->asked, 1);
}

static crd_status await_rest(crdi_cli* cli, const found* g, crdi_result* list)
{
    const int64_t until = crdi_now_ns() + (int64_t)(1e9 * PATIENCE);
    while ((!atomic_load(&g->page->fence) || held(g->page) > 0) && crdi_now_ns() < until &&
           atomic_load(&g->page->phase) != CRDI_WARD_OVER && !crdi_interrupted()) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    const int left = held(g->page);
    for (int i = 0; i < atomic_load(&g->page->slave_count); i++) {
        const crdi_ward_slave* s = &g->page->slaves[i];
        const bool rests = !atomic_load(&s->held);
        crdi_put(crdi_row(list), INT("guard", g->pid), TEXT("name", s->name),
                 AS(BOOL("rest", rests), rests ? "at rest" : "NOT AT REST"));
    }
    if (left == 0) { return CRD_OK; }
    return crdi_fail(cli->ctx, CRD_E_UNIT,
                     "%d bench%s of guard %d not at rest: use the red buttons", left,
                     left == 1 ? " is" : "es are", (int)g->pid);
}

static crd_status run_stop(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    static const crdi_column rows[] = {
        {">guard", "guard", NULL}, {"bench", "name", NULL}, {"", "rest", NULL}, {0}};
    const guard_options* o = options;
    found g[MOST_GUARDS];
    const char* which = arguments->count ? arguments->items[0] : NULL;
    crd_status st = check_number(cli->ctx, which);
    if (st < 0) { return st; }
    const int n = find_guards(which, g);
    if (n == 0 || (n > 1 && !o->all)) {
        let_go(g, n);
        return crdi_fail(cli->ctx, CRD_E_NOT_FOUND,
                         n ? "%d guards of yours run: say which one ('cardan guard show' lists "
                             "them), or --all"
                           : "no guard of yours is there to stop anything",
                         n);
    }
    for (int i = 0; i < n; i++) { // all before one of them is waited for
        ask_for_stop(g[i].page);
    }
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){.only_count = true});
    crdi_result* list = crdi_array(out, "benches");
    for (int i = 0; i < n; i++) {
        const crd_status one = await_rest(cli, &g[i], list);
        if (one < 0) { st = one; }
    }
    crdi_show_table(out, list, rows, "");
    let_go(g, n);
    return st;
}

// ---- the commands ------------------------------------------------------------------------------

static const crdi_option show_rows[] = {
    CRDI_JSON_OPTION("print the guards as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const crdi_option stop_rows[] = {
    OPT_FLAG(guard_options, all, "all", "the benches of all runs of this user"),
    CRDI_JSON_OPTION("print what became of the benches as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_guard_show = {
    .name = "guard show",
    .arguments = "[PROCESS]",
    .summary = "the guards of runs with test benches on this machine",
    .description =
        "Lists the guards of this user: which run each of them watches, where the run is, after "
        "which silence it acts, when it last heard the heart beat, where its emergency stop is, "
        "and "
        "the states of the benches. PROCESS is the number of one guard, or of the run that it "
        "guards.",
    .examples = {{"cardan guard show", "all of them"}, {"cardan guard show --json", "for scripts"}},
    OPTIONS(show_rows, guard_options),
    .max_arguments = 1,
    .run = run_show,
};

const crdi_command crdi_command_guard_stop = {
    .name = "guard stop",
    .arguments = "[PROCESS]",
    .summary = "bring the benches of a run down, as the emergency stop does",
    .description =
        "The guard of the run takes its benches: the master sends nothing to them any more, they "
        "are stopped in their order, and the run ends with exit code 1. Waits until all are at "
        "rest; exit code 1 if one of them is not. PROCESS is the number of the guard, or of the "
        "run; it is needed where several guards of this user run. It reaches guards of this user "
        "on this machine and no others.",
    .examples = {{"cardan guard stop", "the only one that runs"},
                 {"cardan guard stop --all", "everything"}},
    OPTIONS(stop_rows, guard_options),
    .max_arguments = 1,
    .run = run_stop,
};
