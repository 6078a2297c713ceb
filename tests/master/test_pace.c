#include "check.h"
#include "shared/pace.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

// ---- nothing is allocated: the linker sends all allocations of the program through here --------

static int64_t allocations;

void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* p, size_t size);
void* __wrap_malloc(size_t size);
void* __wrap_calloc(size_t n, size_t size);
void* __wrap_realloc(void* p, size_t size);

void* __wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void* __wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void* __wrap_realloc(void* p, size_t size)
{
    allocations++;
    return __real_realloc(p, size);
}

// ---- a clock that does what it is told ---------------------------------------------------------

#define MS ((int64_t)1000000)
#define US ((int64_t)1000)
#define ORIGIN ((int64_t)77 * 1000000000 + 123)

typedef struct script {
    int64_t now, wall;     // wall: what it is ahead by
    int64_t wake;          // how late sleeps end
    int64_t reading;       // what each reading takes
    int64_t gap;           // between a reading of the wall clock and the next one: interrupted
    int64_t interrupt;     // sleeps end after so long at the latest: a signal; 0: they do not
    int64_t sleeps, reads; // counted
    int64_t longest;       // sleep that was asked for
    int64_t slept_at;      // when the last sleep ended
    bool* stop;            // set once `now` has got to stop_at
    int64_t stop_at;
} script;

static int64_t script_now(void* user)
{
    script* s = user;
    s->now += s->reading;
    s->reads++;
    if (s->stop && s->now >= s->stop_at) { *s->stop = true; }
    return s->now;
}

static void script_sleep(void* user, int64_t ns)
{
    script* s = user;
    s->sleeps++;
    if (ns - s->now > s->longest) { s->longest = ns - s->now; }
    if (s->interrupt > 0 && ns - s->now > s->interrupt) {
        s->now += s->interrupt;
        return;
    }
    if (ns > s->now) { s->now = ns; }
    s->now += s->wake;
    s->slept_at = s->now;
}

static int64_t script_wall(void* user)
{
    script* s = user;
    const int64_t x = s->now + s->wall;
    s->now += s->gap;
    return x;
}

static crd_clock clock_of(script* s)
{
    return (crd_clock){
        .now = script_now, .sleep_until = script_sleep, .wall = script_wall, .user = s};
}

static crd_pace_spec realtime(crd_overrun policy)
{
    return (crd_pace_spec){.factor = 1, .overrun = policy, .cpu = -1};
}

// splitmix64 (Steele, Lea, Flood 2014)
static uint64_t draw(uint64_t* seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// A pacer from t = 0 with the step, whose grid begins at ORIGIN.
static void begin(crdi_pacer* p, script* s, const crd_pace_spec* spec, double step)
{
    if (s->now == 0) { s->now = ORIGIN; }
    crdi_pacer_init(p, spec, 0, step, clock_of(s));
    crdi_pacer_start(p, ORIGIN);
}

// One cycle of 1 ms with so much work.
static bool cycle(crdi_pacer* p, script* s, int64_t n, int64_t work)
{
    crdi_pacer_wait(p, 1e-3 * (double)n);
    s->now += work;
    return crdi_pacer_done(p, 1e-3 * (double)(n + 1), 0, -1);
}

// ---- the grid ----------------------------------------------------------------------------------

// Cycles of num/den ns: every deadline is the exact one, to the rounding of simulated time.
static void run_grid(double step, int64_t num, int64_t den, int64_t cycles, int64_t stride)
{
    static crdi_pacer p;
    script s = {.wake = 9 * US};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, step);
    int64_t worst = 0, drift = 0, count = 0;
    for (int64_t n = 0; n < cycles; n += stride, count++) {
        crdi_pacer_wait(&p, (double)n * step);
        const int64_t exact = ORIGIN + (n * num + den / 2) / den; // rounded; 10^7 of them fit
        const int64_t off = llabs(p.deadline - exact);
        if (off > worst) { worst = off; }
        if (p.report.drift_ns != 0) { drift = p.report.drift_ns; }
        s.now += 20 * US;
        crdi_pacer_done(&p, (double)(n + 1) * step, 0, -1);
    }
    check(worst <= 1);
    check_int(drift, 0);
    check_int(p.report.cycles, count);
    check_int(p.report.overruns, 0);
    check_int(p.report.lateness.sum, (count - 1) * 9 * US); // the first one is due at once
    check_int(p.report.lateness.max, 9 * US);
    check_int(p.report.busy.max, 20 * US);
}

static void the_grid_does_not_drift_in_ten_million_cycles(void** state)
{
    (void)state;
    enum { N = 10000000 };
    run_grid(1e-3 / 3, MS, 3, N, 2); // every second: a deadline knows nothing of the one before
    run_grid(1e-3, MS, 1, N, 11);
}

static void deadlines_follow_the_factor(void** state)
{
    (void)state;
    static crdi_pacer p;
    static const double factors[] = {10, 0.5, 1, 3};
    for (int k = 0; k < 4; k++) {
        script s = {.now = ORIGIN};
        crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
        spec.factor = factors[k];
        crdi_pacer_init(&p, &spec, 5, 0.01, clock_of(&s));
        check_near(p.report.period, 0.01 / factors[k], 1e-18);
        crdi_pacer_start(&p, 0);
        check_int(p.first, ORIGIN);
        for (int n = 0; n < 1000; n++) {
            crdi_pacer_wait(&p, 5 + 0.01 * n);
            check_near((double)(p.deadline - ORIGIN), 1e7 / factors[k] * n, 1);
            check_int(p.begin, s.now);
            check_int(p.begin, p.deadline);
            check(crdi_pacer_done(&p, 5 + 0.01 * (n + 1), 0, -1));
        }
        check_int(p.report.overruns, 0);
    }
}

static void absurd_times_are_far_away_and_nothing_else(void** state)
{
    (void)state;
    static crdi_pacer p;
    bool stop = true;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 0);
    p.stop = &stop;
    crdi_pacer_wait(&p, 1e300);
    check(p.deadline > ORIGIN + ((int64_t)1 << 60));
    check_int(s.sleeps, 0);
    crdi_pacer_wait(&p, -INFINITY);
    check(p.deadline < ORIGIN - ((int64_t)1 << 60));
    check(crdi_pacer_done(&p, INFINITY, INT64_MAX, -1));
}

// ---- policies ----------------------------------------------------------------------------------

typedef struct expected {
    int64_t cycles, overruns, skipped, moved, burst, late_sum, busy_sum;
    double burst_time;
    crd_overrun_info all[4096];
    crd_overrun_info kept[CRD_PACE_KEPT];
    int kept_count;
    crd_overrun_info worst;
    int stopped; // cycle, -1
} expected;

typedef struct step {
    double t, next;
    int64_t wake, work, waited;
} step;

static int by_late(const void* a, const void* b) // the latest first; of equal ones the earlier
{
    const crd_overrun_info *x = a, *y = b;
    if (x->late_ns != y->late_ns) { return x->late_ns < y->late_ns ? 1 : -1; }
    return (x->cycle > y->cycle) - (x->cycle < y->cycle);
}

static int by_cycle(const void* a, const void* b)
{
    const crd_overrun_info *x = a, *y = b;
    return (x->cycle > y->cycle) - (x->cycle < y->cycle);
}

// First half of the kept ones: the first; second: the latest of the rest.
static void choose_kept(expected* e)
{
    const int half = CRD_PACE_KEPT / 2;
    const int n = (int)e->overruns;
    e->kept_count = n < CRD_PACE_KEPT ? n : CRD_PACE_KEPT;
    crd_overrun_info rest[4096];
    memcpy(rest, e->all, sizeof rest);
    if (n > half) { qsort(rest + half, (size_t)(n - half), sizeof *rest, by_late); }
    memcpy(e->kept, rest, sizeof e->kept);
    qsort(e->kept, (size_t)e->kept_count, sizeof *rest, by_cycle);
}

// The same run, worked out step by step with whole ns: period_ns 0: steps vary.
static void work_out(const step* steps, int n, crd_overrun policy, int64_t slack, int64_t period_ns,
                     expected* e)
{
    memset(e, 0, sizeof *e);
    e->stopped = -1;
    int64_t clock = 0, row = 0; // since ORIGIN
    for (int i = 0; i < n && e->stopped < 0; i++) {
        const int64_t due = e->moved + llround(1e9 * steps[i].t);
        const int64_t next = e->moved + llround(1e9 * steps[i].next);
        if (clock < due) { clock = due + steps[i].wake; }
        e->late_sum += clock - due;
        const int64_t over = clock + steps[i].work - next;
        clock += steps[i].work + steps[i].waited;
        e->busy_sum += steps[i].work;
        e->cycles++;
        if (over <= slack) {
            row = 0;
            continue;
        }
        e->all[e->overruns++] =
            (crd_overrun_info){.cycle = i,
                               .time = steps[i].t,
                               .late_ns = over,
                               .busy_ns = steps[i].work,
                               .unit = i % 5,
                               .behind = policy == CRD_OVERRUN_RECORD ? (int)row : 0};
        if (over > e->worst.late_ns) { e->worst = e->all[e->overruns - 1]; }
        if (++row > e->burst) {
            e->burst = row;
            e->burst_time = steps[i + 1 - row].t;
        }
        if (policy == CRD_OVERRUN_STOP) { e->stopped = i; }
        if (policy == CRD_OVERRUN_STRETCH || (policy == CRD_OVERRUN_SKIP && period_ns == 0)) {
            e->moved += over;
        } else if (policy == CRD_OVERRUN_SKIP) {
            for (int64_t missing = over; missing > 0; missing -= period_ns) {
                e->moved += period_ns;
                e->skipped++;
            }
        }
    }
    choose_kept(e);
}

static void check_same(const crd_overrun_info* a, const crd_overrun_info* b)
{
    check_int(a->cycle, b->cycle);
    check_near(a->time, b->time, 0);
    check_int(a->late_ns, b->late_ns);
    check_int(a->busy_ns, b->busy_ns);
    check_int(a->unit, b->unit);
    check_int(a->behind, b->behind);
}

static void compare(const crd_pace_report* r, const expected* e)
{
    check_int(r->cycles, e->cycles);
    check_int(r->lateness.count, e->cycles);
    check_int(r->lateness.sum, e->late_sum);
    check_int(r->busy.count, e->cycles);
    check_int(r->busy.sum, e->busy_sum);
    check_int(r->overruns, e->overruns);
    check_int(r->skipped, e->skipped);
    check_int(r->moved_ns, e->moved);
    check_int(r->drift_ns, 0);
    check_int(r->burst, e->burst);
    check_near(r->burst_time, e->burst_time, 0);
    check_int(r->kept_count, e->kept_count);
    for (int i = 0; i < e->kept_count; i++) {
        check_same(&r->kept[i], &e->kept[i]);
    }
    if (e->overruns > 0) { check_same(&r->worst, &e->worst); }
}

static void play(const step* steps, int n, const crd_pace_spec* spec, double period,
                 const expected* e)
{
    static crdi_pacer p;
    script s = {.now = 0};
    begin(&p, &s, spec, period);
    for (int i = 0; i < n; i++) {
        s.wake = steps[i].wake;
        crdi_pacer_wait(&p, steps[i].t);
        s.now += steps[i].work + steps[i].waited;
        const bool good = crdi_pacer_done(&p, steps[i].next, steps[i].waited, i % 5);
        check_int(good, i != e->stopped);
        if (!good) { break; }
    }
    compare(&p.report, e);
}

// Mostly fine, now and then a stall; `stalls` of 1000 cycles.
static void write_steps(step* steps, int n, uint64_t seed, double period, int stalls)
{
    double t = 0;
    for (int i = 0; i < n; i++) {
        const double h = period > 0 ? period : 1e-6 * (double)(100 + draw(&seed) % 2000);
        steps[i].t = period > 0 ? (double)i * period : t;
        steps[i].next = period > 0 ? (double)(i + 1) * period : t + h;
        t = steps[i].next;
        const int64_t ns = llround(1e9 * h);
        const bool stall = (int)(draw(&seed) % 1000) < stalls;
        steps[i].wake = (int64_t)(draw(&seed) % (stall ? 5 * MS : 60 * US));
        steps[i].work = (int64_t)(draw(&seed) % (uint64_t)(ns * 9 / 10));
        if ((int)(draw(&seed) % 1000) < stalls) {
            steps[i].work += (int64_t)(draw(&seed) % (4 * MS));
        }
        steps[i].waited = draw(&seed) % 4 == 0 ? (int64_t)(draw(&seed) % (uint64_t)(ns / 10)) : 0;
    }
}

static void every_policy_counts_what_a_plain_calculation_counts(void** state)
{
    (void)state;
    enum { N = 3000 };
    static step steps[N];
    static expected e;
    static const double periods[] = {1e-3, 250e-6, 0};
    int64_t overruns = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (int k = 0; k < 3; k++) {
            for (int policy = CRD_OVERRUN_RECORD; policy <= CRD_OVERRUN_STOP; policy++) {
                crd_pace_spec spec = realtime((crd_overrun)policy);
                spec.slack = seed % 2 ? 0 : 50e-6;
                write_steps(steps, N, seed, periods[k], (int)seed * 20);
                work_out(steps, N, spec.overrun, llround(1e9 * spec.slack),
                         llround(1e9 * periods[k]), &e);
                play(steps, N, &spec, periods[k], &e);
                overruns += e.overruns;
                if (policy == CRD_OVERRUN_STOP) { check(e.stopped >= 0); }
                if (policy == CRD_OVERRUN_SKIP) { check((e.skipped > 0) == (periods[k] > 0)); }
            }
        }
    }
    check(overruns > 5000); // it was about something
}

static void a_stall_is_caught_up_with_on_the_old_grid(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    // Cycle 3 takes 4.25 ms, the others 0.5 ms: it ends 3.25 ms late, the next ones 2.75, 2.25 ...
    for (int n = 0; n < 20; n++) {
        check(cycle(&p, &s, n, n == 3 ? 4250 * US : 500 * US));
        check_int(p.deadline, ORIGIN + (int64_t)n * MS);
    }
    check_int(p.report.overruns, 7); // 3.25, 2.75, 2.25, 1.75, 1.25, 0.75, 0.25
    check_int(p.report.burst, 7);
    check_near(p.report.burst_time, 3e-3, 0);
    check_int(p.report.worst.cycle, 3);
    check_int(p.report.worst.late_ns, 3250 * US);
    check_int(p.report.worst.busy_ns, 4250 * US);
    check_int(p.report.moved_ns, 0);
    check_int(p.begin, p.deadline);
    check_int(p.report.lateness.max, 3250 * US);
}

static void stretching_moves_the_grid_by_what_was_late(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STRETCH);
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 10; n++) {
        check(cycle(&p, &s, n, n == 3 ? 4250 * US : 500 * US));
    }
    check_int(p.report.overruns, 1);
    check_int(p.report.burst, 1);
    check_int(p.report.moved_ns, 3250 * US);
    check_int(p.report.lateness.max, 0);
    check_int(p.begin, ORIGIN + 9 * MS + 3250 * US);
    check_int(p.report.drift_ns, 0);
}

static void skipping_goes_on_in_phase(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_SKIP);
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 10; n++) {
        check(cycle(&p, &s, n, n == 3 ? 4250 * US : n == 6 ? 2 * MS : 500 * US));
        check_int((p.deadline - ORIGIN) % MS, 0);
    }
    check_int(p.report.overruns, 2);
    check_int(p.report.skipped, 4 + 1); // a whole number of periods late: the next point is now
    check_int(p.report.moved_ns, 5 * MS);
    check_int(p.report.lateness.max, 0);
}

static void skipping_stays_in_phase_with_periods_that_are_no_whole_ns(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_SKIP);
    const double h = 1e-3 / 3;
    begin(&p, &s, &spec, h);
    for (int n = 0; n < 30000; n++) {
        crdi_pacer_wait(&p, h * n);
        const double points = (double)(p.deadline - ORIGIN) / (1e9 * h);
        check_near(points * 1e9 * h, round(points) * 1e9 * h, 1.01);
        s.now += n % 3 == 0 ? 400 * US : 10 * US;
        crdi_pacer_done(&p, h * (n + 1), 0, -1);
    }
    check_int(p.report.skipped, 10000);
    check_near((double)p.report.moved_ns, 10000 * 1e9 * h, 1);
}

static void stopping_says_so_at_the_first_overrun(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STOP);
    begin(&p, &s, &spec, 1e-3);
    check(cycle(&p, &s, 0, 999 * US));
    check(cycle(&p, &s, 1, 1000 * US)); // done when the next is due: in time
    check(!cycle(&p, &s, 2, 1000 * US + 1));
    check_int(p.report.overruns, 1);
    check_int(p.report.worst.late_ns, 1);
}

static void slack_is_forgiven_to_its_last_ns(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    crd_pace_spec spec = realtime(CRD_OVERRUN_STRETCH);
    spec.slack = 100e-6;
    begin(&p, &s, &spec, 1e-3);
    check(cycle(&p, &s, 0, 1100 * US));
    check_int(p.report.overruns, 0);
    check_int(p.report.moved_ns, 0);
    check(cycle(&p, &s, 1, 1000 * US + 1)); // 100 us late from before
    check_int(p.report.overruns, 1);
    check_int(p.report.worst.late_ns, 100 * US + 1); // all of it
    check_int(p.report.moved_ns, 100 * US + 1);
}

static void waiting_for_the_clock_elsewhere_is_no_work(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STOP);
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 100; n++) { // a remote unit gives its outputs 7 us after the next deadline
        crdi_pacer_wait(&p, 1e-3 * n);
        s.now += 200 * US;
        const int64_t until = ORIGIN + (int64_t)(n + 1) * MS + 7 * US;
        const int64_t waited = until - s.now;
        s.now = until;
        check(crdi_pacer_done(&p, 1e-3 * (n + 1), waited, 0));
    }
    check_int(p.report.overruns, 0);
    check_int(p.report.busy.max, 200 * US);
    check_int(p.report.lateness.max, 7 * US);
    // Work that does not fit is one, however long the rest was waited.
    crdi_pacer_wait(&p, 0.1);
    s.now += 1500 * US;
    check(!crdi_pacer_done(&p, 0.101, 500 * US, 3));
    check_int(p.report.worst.late_ns, 7 * US);
    check_int(p.report.worst.unit, 3);
}

static void more_waiting_than_time_is_no_work_at_all(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    crdi_pacer_wait(&p, 0);
    s.now += 100 * US;
    check(crdi_pacer_done(&p, 1e-3, 300 * US, -1)); // of two units at once
    crdi_pacer_wait(&p, 1e-3);
    s.now += 100 * US;
    check(crdi_pacer_done(&p, 2e-3, -5, -1));
    check_int(p.report.busy.min, 0);
    check_int(p.report.busy.max, 100 * US);
    s.wake = 1100 * US; // nor does it bring time back: it began after the next deadline
    crdi_pacer_wait(&p, 2e-3);
    s.now += 100 * US;
    check(crdi_pacer_done(&p, 3e-3, 300 * US, -1));
    check_int(p.report.overruns, 1);
    check_int(p.report.worst.late_ns, 100 * US);
}

static void of_equally_late_ones_the_earlier_is_kept(void** state)
{
    (void)state;
    enum { N = 2000 };
    static step steps[N];
    static expected e;
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STRETCH);
    for (uint64_t k = 1; k <= 5; k++) {
        uint64_t seed = k;
        for (int i = 0; i < N; i++) {
            steps[i] = (step){.t = 1e-3 * i, .next = 1e-3 * (i + 1), .work = 100 * US};
            if (i % 2) { steps[i].work = MS + (int64_t)(1 + draw(&seed) % (3 * k)) * US; }
        }
        work_out(steps, N, spec.overrun, 0, MS, &e);
        check_int(e.overruns, N / 2);
        play(steps, N, &spec, 1e-3, &e);
    }
}

static void the_longest_row_is_told_with_its_beginning(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STRETCH);
    begin(&p, &s, &spec, 1e-3);
    // rows of 2 from cycle 5, of 4 from 10, of 4 from 20: the first of equal ones stays
    for (int n = 0; n < 30; n++) {
        const bool over = (n >= 5 && n < 7) || (n >= 10 && n < 14) || (n >= 20 && n < 24);
        cycle(&p, &s, n, over ? 1200 * US : 100 * US);
    }
    check_int(p.report.burst, 4);
    check_near(p.report.burst_time, 10e-3, 1e-15);
    check_int(p.report.overruns, 10);
}

static void a_stopped_process_is_one_huge_lateness(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_SKIP);
    begin(&p, &s, &spec, 1e-3);
    const int64_t hour = (int64_t)3600 * 1000 * MS;
    cycle(&p, &s, 0, 100 * US);
    s.wake = hour; // SIGSTOP in the sleep, SIGCONT an hour later
    cycle(&p, &s, 1, 100 * US);
    s.wake = 0;
    for (int n = 2; n < 100; n++) {
        cycle(&p, &s, n, 100 * US);
    }
    check_int(p.report.lateness.max, hour);
    check_int(p.report.overruns, 1);
    check_int(p.report.skipped, 3600000);
    check_int(p.report.drift_ns, 0);
    check_int(p.report.clock_steps, 0);
    check_int(crd_histogram_quantile(&p.report.lateness, 0.98), 0);
}

// ---- waiting -----------------------------------------------------------------------------------

static void signals_do_not_end_a_wait(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.interrupt = 70 * US};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 50; n++) {
        check(cycle(&p, &s, n, 100 * US));
        check_int(p.begin, p.deadline);
    }
    check(s.sleeps > 10 * 49);
    check_int(p.report.lateness.max, 0);
}

static void no_sleep_is_longer_than_50_ms(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 0);
    for (int n = 1; n < 100; n++) {
        crdi_pacer_wait(&p, 1e-3 * n * n);
        check_int(p.begin, p.deadline);
    }
    check_int(s.longest, 50 * MS);
}

static void the_stop_flag_ends_a_wait_within_50_ms(void** state)
{
    (void)state;
    static crdi_pacer p;
    bool stop = false;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 10);
    p.stop = &stop;
    crdi_pacer_wait(&p, 0);
    check(crdi_pacer_done(&p, 10, 0, -1));
    s.stop = &stop;
    s.stop_at = ORIGIN + 3017 * MS;
    crdi_pacer_wait(&p, 10);
    check(s.longest <= 50 * MS);
    check(p.begin >= s.stop_at && p.begin <= s.stop_at + 50 * MS);
    check(p.begin < p.deadline);
    check_int(p.report.lateness.count, 1); // the second cycle did not begin
    check_int(p.report.cycles, 1);
    // And a flag that is up already ends it at once.
    const int64_t sleeps = s.sleeps;
    crdi_pacer_wait(&p, 10);
    check_int(s.sleeps, sleeps);
}

static void the_end_of_a_wait_is_spun_and_no_more(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.wake = 30 * US, .reading = 100};
    crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    spec.spin = 50e-6;
    begin(&p, &s, &spec, 1e-3);
    for (int n = 1; n < 100; n++) {
        const int64_t reads = s.reads;
        check(cycle(&p, &s, n, 100 * US));
        // Woken 20 us before the deadline, which the spinning then meets to one reading.
        check_int(s.slept_at, p.deadline - 20 * US);
        check(p.begin - p.deadline < 100);
        check(s.reads - reads < 20 * US / 100 + 10);
    }
    s.wake = 80 * US; // later than the spinning can mend
    check(cycle(&p, &s, 100, 100 * US));
    check(p.begin >= p.deadline + 30 * US);
    s.wake = 0;
    s.interrupt = 100 * US; // signals do not make it spin earlier
    const int64_t reads = s.reads;
    check(cycle(&p, &s, 101, 100 * US));
    check(s.reads - reads < 50 * US / 100 + 40);
    check(p.begin - p.deadline < 100);
}

static void spinning_ends_with_the_stop_flag(void** state)
{
    (void)state;
    static crdi_pacer p;
    bool stop = false;
    script s = {.reading = 100, .stop = &stop, .stop_at = ORIGIN + 5 * MS};
    crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    spec.spin = 1; // all the time
    begin(&p, &s, &spec, 10e-3);
    p.stop = &stop;
    crdi_pacer_wait(&p, 10e-3);
    check_int(s.sleeps, 0);
    check(p.begin >= s.stop_at && p.begin <= s.stop_at + 100);
}

static void a_clock_that_stands_still_is_slept_on(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    spec.spin = 100e-6;
    begin(&p, &s, &spec, 1e-3);
    check(cycle(&p, &s, 1, 100 * US)); // would spin for ever
    check_int(p.begin, p.deadline);
}

static void a_pause_moves_the_grid_by_its_length(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    s.now = ORIGIN - 3 * MS;
    crdi_pacer_init(&p, &spec, 0, 1e-3, clock_of(&s));
    crdi_pacer_pause(&p); // before the grid begins: nothing to move
    s.now += 3 * MS;
    crdi_pacer_resume(&p, 0);
    crdi_pacer_start(&p, 0);
    check(cycle(&p, &s, 0, 300 * US));
    crdi_pacer_pause(&p);
    s.now += 5000 * MS;
    crdi_pacer_pause(&p); // still the same pause
    s.now += 2 * US;
    crdi_pacer_resume(&p, 1e-3);
    crdi_pacer_resume(&p, 1e-3);
    check(cycle(&p, &s, 1, 300 * US));
    check_int(p.begin, ORIGIN + MS + 5000 * MS + 2 * US); // 700 us after the resume, as before it
    check_int(p.report.paused_ns, 5000 * MS + 2 * US);
    check_int(p.report.moved_ns, 0);
    check_int(p.report.drift_ns, 0);
    check_int(p.report.lateness.max, 0);
    check_int(p.report.overruns, 0);
}

static void what_was_late_before_a_pause_is_not_late_after_it(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    check(cycle(&p, &s, 0, 8 * MS)); // 7 ms late
    crdi_pacer_pause(&p);
    s.now += 3 * MS;
    crdi_pacer_resume(&p, 1e-3);
    check(cycle(&p, &s, 1, 300 * US));
    check_int(p.begin, ORIGIN + 11 * MS);
    check_int(p.deadline, p.begin);
    check_int(p.report.paused_ns, 10 * MS);
    check_int(p.report.drift_ns, 0);
    check_int(p.report.overruns, 1);
}

static void a_grid_of_somebody_else_is_taken_over(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = ORIGIN};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_STRETCH);
    crdi_pacer_init(&p, &spec, 0, 1e-3, clock_of(&s));
    crdi_pacer_start(&p, 0);
    check(cycle(&p, &s, 0, 1500 * US)); // 0.5 ms moved
    crdi_pacer_start(&p, ORIGIN + 5 * MS);
    check(cycle(&p, &s, 1, 100 * US));
    check_int(p.begin, ORIGIN + 6 * MS);
    check_int(p.report.moved_ns, 500 * US);
    check_int(p.report.cycles, 2);
    check_int(p.report.drift_ns, 0);
}

// ---- what the system tells ---------------------------------------------------------------------

static void a_wall_clock_that_is_set_is_counted(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.wall = (int64_t)1700000000 * 1000000000, .reading = 50};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 10000; n++) {
        if (n == 3000) { s.wall += 2500 * US; }                 // ntpdate
        if (n == 6000) { s.wall -= (int64_t)3600 * 1000 * MS; } // summer time, the wrong way
        if (n % 10 == 0) { s.wall += 5 * US; }                  // 500 ppm of slewing
        check(cycle(&p, &s, n, 100 * US));
    }
    check_int(p.report.clock_steps, 2);
    check_near((double)p.report.clock_step_ns, 2.5e6 - 3600e9, 1e5);
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 2);
    s.wall += MS; // after the last wait
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 3);
    check_int(p.report.overruns, 0); // the grid does not care
    check_int(p.report.lateness.max < 1000, 1);
}

static void steps_of_less_than_a_millisecond_are_none(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    for (int i = 0; i < 10; i++) {
        s.wall += MS - 1;
        crdi_pacer_account(&p);
        s.wall -= MS - 1;
        crdi_pacer_account(&p);
    }
    check_int(p.report.clock_steps, 0);
    s.wall += MS;
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 1);
    check_int(p.report.clock_step_ns, MS);
    s.wall -= MS;
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 2);
    check_int(p.report.clock_step_ns, 0);
}

static void being_interrupted_between_two_clocks_is_no_step(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.gap = 20 * MS}; // the first look fails as well
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    begin(&p, &s, &spec, 1e-3);
    s.gap = 0;
    crdi_pacer_account(&p);
    s.gap = 30 * MS;
    crdi_pacer_account(&p);
    s.gap = 0;
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 0);
    p.clock.wall = NULL;
    crdi_pacer_account(&p);
    check_int(p.report.clock_steps, 0);
}

static void page_faults_of_the_loop_are_counted(void** state)
{
    (void)state;
    static crdi_pacer p;
    enum { PAGES = 64 };
    const size_t bytes = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    char* fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(fresh != MAP_FAILED);
    madvise(fresh, bytes, MADV_NOHUGEPAGE);
    script s = {.now = 0};
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    crdi_pacer_init(&p, &spec, 0, 1e-3, clock_of(&s));
    crdi_pacer_account(&p); // not started: nothing to tell
    check_int(p.report.minor_faults, 0);
    crdi_pacer_start(&p, 0);
    crdi_pacer_account(&p);
    const int64_t before = p.report.minor_faults;
    for (size_t i = 0; i < bytes; i += bytes / PAGES) {
        ((volatile char*)fresh)[i] = 1;
    }
    crdi_pacer_start(&p, 5); // another grid, the same account
    crdi_pacer_account(&p);
    check(p.report.minor_faults >= before + PAGES);
    check(p.report.major_faults >= 0 && p.report.voluntary >= 0 && p.report.involuntary >= 0);
    munmap(fresh, bytes);
}

static void cycles_allocate_nothing(void** state)
{
    (void)state;
    static crdi_pacer p;
    script s = {.reading = 100, .interrupt = 400 * US};
    crd_pace_spec spec = realtime(CRD_OVERRUN_SKIP);
    spec.spin = 20e-6;
    void* volatile probe = malloc(1);
    check(allocations > 0); // they are seen
    free(probe);
    allocations = 0;
    begin(&p, &s, &spec, 1e-3);
    for (int n = 0; n < 1000; n++) {
        cycle(&p, &s, n, n % 3 ? 100 * US : 1500 * US);
        if (n % 100 == 50) {
            crdi_pacer_pause(&p);
            crdi_pacer_resume(&p, 1e-3 * (n + 1));
        }
    }
    crdi_pacer_account(&p);
    check(p.report.overruns > CRD_PACE_KEPT);
    check_int(allocations, 0);
}

// ---- the system's clock ------------------------------------------------------------------------

static void the_systems_clock_goes_on_and_sleeps_to_the_end(void** state)
{
    (void)state;
    const crd_clock c = crd_clock_system();
    const int64_t a = c.now(c.user);
    c.sleep_until(c.user, a - 1000 * MS); // is over
    c.sleep_until(c.user, -1);
    c.sleep_until(c.user, a + MS);
    check(c.now(c.user) >= a + MS);
    check(c.wall(c.user) > (int64_t)1600000000 * 1000000000);
}

static volatile bool alarmed;

static void on_alarm(int number)
{
    (void)number;
    alarmed = true;
}

static void a_signal_handler_ends_a_wait_of_an_hour(void** state)
{
    (void)state;
    static crdi_pacer p;
    struct sigaction act = {.sa_handler = on_alarm}, old;
    check_int(sigaction(SIGALRM, &act, &old), 0);
    const crd_pace_spec spec = realtime(CRD_OVERRUN_RECORD);
    crdi_pacer_init(&p, &spec, 0, 3600, crd_clock_system());
    crdi_pacer_start(&p, 0);
    p.stop = &alarmed;
    const struct itimerval in = {.it_value = {.tv_usec = 2000}};
    check_int(setitimer(ITIMER_REAL, &in, NULL), 0);
    crdi_pacer_wait(&p, 3600);
    check(alarmed);
    check(p.begin < p.deadline);
    check_int(sigaction(SIGALRM, &old, NULL), 0);
}

// What another thread reads in /proc is what the thread itself is told.
static void* ask_for_usage(void* user)
{
    crdi_pacer* p = ((void**)user)[0];
    crdi_pacer_usage(p, ((void**)user)[1]);
    return NULL;
}

static void another_thread_sees_the_faults_and_switches_of_the_one_that_paces(void** state)
{
    (void)state;
    static crdi_pacer p;
    static crd_pace_report seen;
    const crd_pace_spec spec = {.factor = 1, .cpu = -1};
    crdi_pacer_init(&p, &spec, 0, 1e-3, crd_clock_system());
    crdi_pacer_start(&p, 0);
    for (int i = 0; i < 20; i++) {
        crdi_pacer_wait(&p, 1e-3 * i);
        (void)crdi_pacer_done(&p, 1e-3 * (i + 1), 0, -1);
    }
    crdi_pacer_account(&p);
    const crd_pace_report before = p.report;
    void* both[2] = {&p, &seen};
    pthread_t t;
    check_int(pthread_create(&t, NULL, ask_for_usage, both), 0);
    pthread_join(t, NULL);
    crdi_pacer_account(&p);
    check(before.voluntary > 0);
    check(seen.voluntary >= before.voluntary && seen.voluntary <= p.report.voluntary + 1);
    check(seen.minor_faults >= before.minor_faults && seen.minor_faults <= p.report.minor_faults);
    check(seen.involuntary >= before.involuntary && seen.involuntary <= p.report.involuntary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_thread_sees_the_faults_and_switches_of_the_one_that_paces),
        cmocka_unit_test(the_grid_does_not_drift_in_ten_million_cycles),
        cmocka_unit_test(deadlines_follow_the_factor),
        cmocka_unit_test(absurd_times_are_far_away_and_nothing_else),
        cmocka_unit_test(every_policy_counts_what_a_plain_calculation_counts),
        cmocka_unit_test(a_stall_is_caught_up_with_on_the_old_grid),
        cmocka_unit_test(stretching_moves_the_grid_by_what_was_late),
        cmocka_unit_test(skipping_goes_on_in_phase),
        cmocka_unit_test(skipping_stays_in_phase_with_periods_that_are_no_whole_ns),
        cmocka_unit_test(stopping_says_so_at_the_first_overrun),
        cmocka_unit_test(slack_is_forgiven_to_its_last_ns),
        cmocka_unit_test(waiting_for_the_clock_elsewhere_is_no_work),
        cmocka_unit_test(more_waiting_than_time_is_no_work_at_all),
        cmocka_unit_test(of_equally_late_ones_the_earlier_is_kept),
        cmocka_unit_test(the_longest_row_is_told_with_its_beginning),
        cmocka_unit_test(a_stopped_process_is_one_huge_lateness),
        cmocka_unit_test(signals_do_not_end_a_wait),
        cmocka_unit_test(no_sleep_is_longer_than_50_ms),
        cmocka_unit_test(the_stop_flag_ends_a_wait_within_50_ms),
        cmocka_unit_test(the_end_of_a_wait_is_spun_and_no_more),
        cmocka_unit_test(spinning_ends_with_the_stop_flag),
        cmocka_unit_test(a_clock_that_stands_still_is_slept_on),
        cmocka_unit_test(a_pause_moves_the_grid_by_its_length),
        cmocka_unit_test(what_was_late_before_a_pause_is_not_late_after_it),
        cmocka_unit_test(a_grid_of_somebody_else_is_taken_over),
        cmocka_unit_test(a_wall_clock_that_is_set_is_counted),
        cmocka_unit_test(steps_of_less_than_a_millisecond_are_none),
        cmocka_unit_test(being_interrupted_between_two_clocks_is_no_step),
        cmocka_unit_test(page_faults_of_the_loop_are_counted),
        cmocka_unit_test(cycles_allocate_nothing),
        cmocka_unit_test(the_systems_clock_goes_on_and_sleeps_to_the_end),
        cmocka_unit_test(a_signal_handler_ends_a_wait_of_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
