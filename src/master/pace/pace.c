// Deadlines on an absolute grid, the wait for them, and the account of every cycle. Nothing here
// allocates, locks or formats, but for crdi_pacer_usage, which is for another thread. Of the
// system: a sleep, and getrusage at the start and in the account.
#include "shared/pace.h"
#include "shared/base_system.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NS = 50000000, // how often a wait looks at `stop` and at the wall clock
    STEP_NS = 1000000,  // a wall clock that moved so far was set
    STILL = 1000,       // so many equal readings: a clock to sleep on, not to spin on
    FIRST = CRD_PACE_KEPT / 2,
};

// ---- the system's clock ------------------------------------------------------------------------

static int64_t system_now(void* user)
{
    (void)user;
    return crdi_now_ns();
}

static int64_t system_wall(void* user)
{
    (void)user;
    return crdi_clock_ns(CLOCK_REALTIME);
}

static void system_sleep(void* user, int64_t ns)
{
    (void)user;
    if (ns <= 0) { return; }
    const struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

crd_clock crd_clock_system(void)
{
    return (crd_clock){.now = system_now, .sleep_until = system_sleep, .wall = system_wall};
}

// ---- the grid ----------------------------------------------------------------------------------

static int64_t now(const crdi_pacer* p)
{
    return p->clock.now(p->clock.user);
}

static int64_t pace_to_ns(double s) // 2^61 ns, 73 years, at most: sums of two fit
{
    return llround(fmin(fmax(1e9 * s, -0x1p61), 0x1p61));
}

// From the beginning of the grid to simulated time t on the clock.
static int64_t offset(const crdi_pacer* p, double t)
{
    return pace_to_ns((t - p->start) / p->spec.factor);
}

static bool pace_stopped(const crdi_pacer* p)
{
    return (p->stop && *p->stop) ||
           (p->emergency && __atomic_load_n(p->emergency, __ATOMIC_RELAXED));
}

// ---- what the system tells ---------------------------------------------------------------------

// minor faults, major faults, voluntary and involuntary context switches of the calling thread
static void read_usage(int64_t* u)
{
    struct rusage r = {0};
    getrusage(RUSAGE_THREAD, &r);
    u[0] = r.ru_minflt;
    u[1] = r.ru_majflt;
    u[2] = r.ru_nvcsw;
    u[3] = r.ru_nivcsw;
}

// Slewing moves both clocks of Linux alike, so that their difference tells a clock that was set, or
// a machine that slept. false: interrupted between the readings, which then tell nothing.
static bool wall_offset(const crdi_pacer* p, int64_t* out)
{
    if (!p->clock.wall) { return false; }
    const int64_t before = now(p);
    const int64_t wall = p->clock.wall(p->clock.user);
    const int64_t width = now(p) - before;
    *out = wall - (before + width / 2);
    return width < STEP_NS / 2;
}

static void look_at_wall(crdi_pacer* p, int64_t t)
{
    int64_t found;
    p->looked = t;
    if (!wall_offset(p, &found)) { return; }
    const int64_t change = found - p->wall_offset;
    if (p->wall_known && (change >= STEP_NS || change <= -STEP_NS)) {
        p->report.clock_steps++;
        p->report.clock_step_ns += change;
    }
    p->wall_known = true;
    p->wall_offset = found;
}

void crdi_pacer_account(crdi_pacer* p)
{
    if (!p->started) { return; }
    int64_t u[4];
    read_usage(u);
    p->report.minor_faults = u[0] - p->usage[0];
    p->report.major_faults = u[1] - p->usage[1];
    p->report.voluntary = u[2] - p->usage[2];
    p->report.involuntary = u[3] - p->usage[3];
    look_at_wall(p, now(p));
}

// ---- cycles ------------------------------------------------------------------------------------

void crdi_pacer_init(crdi_pacer* p, const crd_pace_spec* spec, double start, double step,
                     crd_clock clock)
{
    assert(spec->factor > 0);
    memset(p, 0, sizeof *p);
    p->spec = *spec;
    p->clock = clock;
    p->start = p->time = start;
    p->period = step > 0 ? step / spec->factor : 0;
    p->report.on = true;
    p->report.factor = spec->factor;
    p->report.period = p->period;
    p->report.priority = p->report.cpu = -1;
}

void crdi_pacer_start(crdi_pacer* p, int64_t origin)
{
    const int64_t t = now(p);
    p->origin = origin != 0 ? origin : t;
    p->first = p->origin - p->report.moved_ns - p->report.paused_ns;
    p->deadline = p->begin = p->origin;
    if (p->started) { return; }
    p->started = true;
    look_at_wall(p, t);
    read_usage(p->usage);
    p->thread = (int)syscall(SYS_gettid);
}

// Reads a file of /proc/self/task/<thread>/ into `room`; false: there is none.
static bool read_task(int thread, const char* name, char* room, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
    FILE* f = fopen(path, "re");
    if (!f) { return false; }
    const size_t n = fread(room, 1, size - 1, f);
    room[n] = 0;
    fclose(f);
    return n > 0;
}

static bool find_count(const char* text, const char* name, int64_t* out)
{
    const char* at = strstr(text, name);
    if (!at) { return false; }
    *out = strtoll(at + strlen(name), NULL, 10);
    return true;
}

void crdi_pacer_usage(const crdi_pacer* p, crd_pace_report* report)
{
    char room[4096];
    long long minor = 0, major = 0;
    int64_t u[4] = {0};
    if (!p->thread || !read_task(p->thread, "stat", room, sizeof room)) { return; }
    const char* behind = strrchr(room, ')'); // the name of a program may have anything in it
    if (!behind ||
        sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %lld %*d %lld", &minor, &major) != 2) {
        return;
    }
    if (!read_task(p->thread, "status", room, sizeof room) ||
        !find_count(room, "\nvoluntary_ctxt_switches:", &u[2]) ||
        !find_count(room, "\nnonvoluntary_ctxt_switches:", &u[3])) {
        return;
    }
    u[0] = minor;
    u[1] = major;
    report->minor_faults = u[0] - p->usage[0];
    report->major_faults = u[1] - p->usage[1];
    report->voluntary = u[2] - p->usage[2];
    report->involuntary = u[3] - p->usage[3];
}

// Sleeps until `until` at the earliest, unless the run is to end. Signals wake it in between. With
// time to sleep there is time to look at the wall clock.
static int64_t sleep_until(crdi_pacer* p, int64_t until)
{
    int64_t t = now(p);
    while (t < until && !pace_stopped(p)) {
        if (t - p->looked >= LOOK_NS) { look_at_wall(p, t); }
        const int64_t next = until - t > LOOK_NS ? t + LOOK_NS : until;
        p->clock.sleep_until(p->clock.user, next);
        t = now(p);
    }
    return t;
}

static int64_t spin_until(crdi_pacer* p, int64_t t, int64_t until)
{
    int still = 0;
    while (t < until && !pace_stopped(p)) {
        const int64_t before = t;
        t = now(p);
        still = t == before ? still + 1 : 0;
        if (still == STILL) { return sleep_until(p, until); }
    }
    return t;
}

void crdi_pacer_wait(crdi_pacer* p, double t)
{
    crd_pace_report* r = &p->report;
    p->time = t;
    p->deadline = p->origin + offset(p, t);
    r->drift_ns = p->deadline - (p->first + r->moved_ns + r->paused_ns + offset(p, t));
    const int64_t spin = p->spec.spin > 0 ? pace_to_ns(p->spec.spin) : 0;
    p->begin = spin_until(p, sleep_until(p, p->deadline - spin), p->deadline);
    if (p->begin < p->deadline) { return; } // stopped: this cycle does not begin
    crd_histogram_add(&r->lateness, p->begin - p->deadline);
}

// The first FIRST overruns stay; of the others those that were latest, the earlier one of two that
// were equally late. By cycle.
static void pace_keep(crd_pace_report* r, const crd_overrun_info* o)
{
    if (r->kept_count < CRD_PACE_KEPT) {
        r->kept[r->kept_count++] = *o;
        return;
    }
    int least = FIRST;
    for (int i = FIRST + 1; i < CRD_PACE_KEPT; i++) {
        if (r->kept[i].late_ns <= r->kept[least].late_ns) { least = i; }
    }
    if (o->late_ns <= r->kept[least].late_ns) { return; }
    memmove(&r->kept[least], &r->kept[least + 1],
            (size_t)(CRD_PACE_KEPT - 1 - least) * sizeof *r->kept);
    r->kept[CRD_PACE_KEPT - 1] = *o;
}

static void count_overrun(crdi_pacer* p, const crd_overrun_info* o)
{
    crd_pace_report* r = &p->report;
    if (r->overruns == 0 || o->late_ns > r->worst.late_ns) { r->worst = *o; }
    r->overruns++;
    pace_keep(r, o);
    if (p->row == 0) { p->row_time = o->time; }
    p->row++;
    if (p->row > r->burst) {
        r->burst = p->row;
        r->burst_time = p->row_time;
    }
}

static void move_grid(crdi_pacer* p, int64_t late)
{
    crd_pace_report* r = &p->report;
    int64_t by = late;
    if (p->spec.overrun == CRD_OVERRUN_SKIP && p->period > 0) {
        const double period_ns = 1e9 * p->period;
        const int64_t before = r->skipped;
        r->skipped += (int64_t)ceil((double)late / period_ns);
        // Of all that was skipped, so that periods of a broken number of ns stay in phase.
        by = pace_to_ns((double)r->skipped * p->period) - pace_to_ns((double)before * p->period);
    }
    p->origin += by;
    r->moved_ns += by;
}

bool crdi_pacer_done(crdi_pacer* p, double next, int64_t waited_ns, int unit)
{
    crd_pace_report* r = &p->report;
    int64_t busy = now(p) - p->begin - (waited_ns > 0 ? waited_ns : 0);
    if (busy < 0) { busy = 0; }
    crd_histogram_add(&r->busy, busy);
    const int64_t cycle = r->cycles++;
    const int64_t late = p->begin + busy - (p->origin + offset(p, next));
    if (late <= pace_to_ns(p->spec.slack)) {
        p->row = 0;
        return true;
    }
    const bool stays = p->spec.overrun == CRD_OVERRUN_RECORD; // else the grid has forgiven
    const crd_overrun_info o = {.cycle = cycle,
                                .time = p->time,
                                .late_ns = late,
                                .busy_ns = busy,
                                .unit = unit,
                                .behind = stays ? (int)fmin((double)p->row, INT32_MAX) : 0};
    count_overrun(p, &o);
    const crd_overrun policy = p->spec.overrun;
    if (policy == CRD_OVERRUN_STRETCH || policy == CRD_OVERRUN_SKIP) { move_grid(p, late); }
    return policy != CRD_OVERRUN_STOP;
}

void crdi_pacer_pause(crdi_pacer* p)
{
    if (p->paused || !p->started) { return; }
    p->paused = true;
    p->paused_at = now(p);
}

void crdi_pacer_resume(crdi_pacer* p, double t)
{
    if (!p->paused) { return; }
    p->paused = false;
    const int64_t here = now(p);
    const int64_t late = here - (p->origin + offset(p, t));
    int64_t by = here - p->paused_at;
    if (late > by) { by = late; } // what was late before does not come back after a pause
    p->origin += by;
    p->report.paused_ns += by;
}
