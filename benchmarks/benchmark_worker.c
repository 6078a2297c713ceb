// worker/...: steps of FMUs in worker processes, against a bare ping-pong through shared memory and
// against the same units in this process. By turns, and the median counts.
#include "benchmark.h"

#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VALUES = 8, STEPS = 2000, TURNS = 25, TICKS = 4000 };

static int compare_numbers(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double quantile(double* x, int n, double q)
{
    qsort(x, (size_t)n, sizeof *x, compare_numbers);
    return x[(int)(q * (n - 1))];
}

// ---- the floor: eight values there, eight back, both sides look all the time
// ---------------------

typedef struct side {
    _Alignas(64) _Atomic uint32_t number;
    _Alignas(64) double values[VALUES];
} side;

typedef struct table {
    side there, back;
} table;

static void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static pid_t start_pong(table* t)
{
    const pid_t child = fork();
    if (child) { return child; }
    for (uint32_t n = 1;; n++) {
        while (atomic_load_explicit(&t->there.number, memory_order_acquire) != n) {
            pause_a_little();
        }
        memcpy(t->back.values, t->there.values, sizeof t->back.values);
        atomic_store_explicit(&t->back.number, n, memory_order_release);
    }
}

static void ping(table* t, uint32_t* n, double* times)
{
    double values[VALUES] = {0};
    for (int i = 0; i < STEPS; i++) {
        const int64_t begin = crdi_now_ns();
        memcpy(t->there.values, values, sizeof values);
        atomic_store_explicit(&t->there.number, ++*n, memory_order_release);
        while (atomic_load_explicit(&t->back.number, memory_order_acquire) != *n) {
            pause_a_little();
        }
        memcpy(values, t->back.values, sizeof values);
        times[i] = (double)(crdi_now_ns() - begin);
    }
}

// ns there and back
static double bare_way(table* t)
{
    static double times[STEPS];
    uint32_t n = 0;
    memset(t, 0, sizeof *t);
    const pid_t pong = start_pong(t);
    ping(t, &n, times);
    kill(pong, SIGKILL);
    waitpid(pong, NULL, 0);
    return quantile(times, STEPS, 0.5);
}

// ---- one unit ----------------------------------------------------------------------------------

typedef struct driven {
    crd_unit* unit;
    crd_binding *in, *out;
    double inputs[VALUES], outputs[VALUES];
    crd_values in_values, out_values;
    _Alignas(64) crd_lane lane;
    crd_advance* advance;
    double t;
} driven;

static crd_unit_spec spec_of(const char* isolate)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "f";
    spec.source = CRD_UNIT_FMU;
    spec.path = BENCHMARK_FMUS "/fmi2/feedthrough.fmu";
    spec.isolate = isolate;
    return spec;
}

static void make_driven(crd_context* ctx, const crd_unit_spec* spec, driven* d)
{
    int32_t in[VALUES], out[VALUES];
    const crd_experiment e = {.start = 0};
    benchmark_must(ctx, crd_unit_create(ctx, spec, &d->unit));
    for (int i = 0; i < VALUES; i++) { // its one input and its one output, eight times
        in[i] = d->unit->ops->find(d->unit, "u");
        out[i] = d->unit->ops->find(d->unit, "y");
    }
    benchmark_must(d->unit->ctx, crd_binding_create(d->unit, in, VALUES, &d->in));
    benchmark_must(d->unit->ctx, crd_binding_create(d->unit, out, VALUES, &d->out));
    benchmark_must(d->unit->ctx, crd_unit_instantiate(d->unit));
    benchmark_must(d->unit->ctx, d->unit->ops->enter_initialization(d->unit, &e));
    benchmark_must(d->unit->ctx, d->unit->ops->exit_initialization(d->unit));
    d->in_values.real = d->inputs;
    d->out_values.real = d->outputs;
    d->advance = d->unit->ops->lane->join(d->unit, 0, d->in, &d->in_values, d->out, &d->out_values,
                                          &d->lane);
    if (!d->advance) { abort(); }
}

static void free_driven(driven* d)
{
    crd_binding_destroy(d->in);
    crd_binding_destroy(d->out);
    crd_unit_destroy(d->unit);
}

// As a run does it.
static void step_driven(driven* d, double* times)
{
    const double h = 1e-4;
    volatile int at = 0;
    for (int i = 0; i < STEPS; i++, d->t += h) {
        const int64_t begin = crdi_now_ns();
        benchmark_must(d->unit->ctx, d->advance(&d->lane, 1, d->t, h, &at));
        times[i] = (double)(crdi_now_ns() - begin);
    }
}

static void step_case(benchmark* b)
{
    static double times[STEPS], floors[TURNS], values[TURNS], tails[TURNS], ratios[TURNS];
    crd_context* ctx = crd_context_create(NULL);
    driven apart = {0}, here = {0};
    const crd_unit_spec isolated = spec_of("process"), plain = spec_of("none");
    table* t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double in_process = INFINITY;
    make_driven(ctx, &isolated, &apart);
    make_driven(ctx, &plain, &here);
    for (int i = 0; i < TURNS; i++) {
        floors[i] = bare_way(t);
        step_driven(&apart, times);
        values[i] = quantile(times, STEPS, 0.5);
        tails[i] = quantile(times, STEPS, 0.99);
        ratios[i] = values[i] / floors[i];
        step_driven(&here, times);
        in_process = fmin(in_process, quantile(times, STEPS, 0.5));
    }
    const double tail = quantile(tails, TURNS, 0.5), floor = quantile(floors, TURNS, 0.5);
    const double value = floor * quantile(ratios, TURNS, 0.5);
    benchmark_report(b, "worker/step", value / 1e3, "us", floor / 1e3, 1.3,
                     "8 values each way: p50 %.2f us, p99 %.2f us, in process %.2f us", value / 1e3,
                     tail / 1e3, in_process / 1e3);
    free_driven(&apart);
    free_driven(&here);
    munmap(t, sizeof *t);
    crd_context_destroy(ctx);
}

// ---- whole runs --------------------------------------------------------------------------------

// Two that are coupled, with the defaults: predictions and all.
static void couple(crd_context* ctx, crd_system* s)
{
    static const char* const names[] = {"tau", "omega2"};
    for (int i = 0; i < 2; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.to_unit = !i;
        c.from = c.to = names[i];
        benchmark_must(ctx, crd_system_add_connection(s, &c));
    }
}

// `isolate` of each unit, NULL: as `isolation` says. Two units are coupled if so wanted.
static double run_system(crd_context* ctx, int units, bool coupled, crd_isolation isolation,
                         const char* isolate)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    char name[32];
    benchmark_must(ctx, crd_system_create(ctx, &s));
    for (int i = 0; i < units; i++) {
        crd_unit_spec spec = spec_of(isolate);
        spec.path =
            coupled && i ? BENCHMARK_FMUS "/fmi2/rot_2.fmu" : BENCHMARK_FMUS "/fmi2/rot_1.fmu";
        snprintf(name, sizeof name, "u%d", i);
        spec.name = name;
        benchmark_must(ctx, crd_system_add_unit(s, &spec, NULL));
    }
    if (coupled) { couple(ctx, s); }
    s->run.step = 1e-4;
    s->run.stop = (TICKS + 100) * 1e-4;
    s->run.isolate = isolation;
    s->run.threads = 1;
    crd_master_options opt = crd_master_defaults();
    benchmark_must(ctx, crd_master_create(ctx, s, &opt, &m));
    benchmark_must(ctx, crd_master_initialize(m));
    benchmark_must(ctx, crd_master_advance(m, 10));
    const int64_t begin = crdi_now_ns();
    benchmark_must(ctx, crd_master_advance(m, TICKS));
    const double us = 1e-3 * (double)(crdi_now_ns() - begin) / TICKS;
    crd_master_destroy(m);
    crd_system_destroy(s);
    return us;
}

// A step is one request: no run of units that take less than the way there and back is as fast as
// in process, whatever is done here. The row says how long the way is.
static void run_case(benchmark* b)
{
    static const int counts[] = {2, 2, 100};
    crd_context* ctx = crd_context_create(NULL);
    table* t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; k < 3; k++) {
        const bool coupled = k == 1;
        double here[7], ratios[7], ways[7];
        for (int i = 0; i < 7; i++) {
            ways[i] = bare_way(t) / 1e3;
            here[i] = run_system(ctx, counts[k], coupled, CRD_ISOLATE_NONE, NULL);
            ratios[i] = run_system(ctx, counts[k], coupled, CRD_ISOLATE_ALL, NULL) / here[i];
        }
        const double floor = quantile(here, 7, 0.5), value = floor * quantile(ratios, 7, 0.5);
        char name[32];
        snprintf(name, sizeof name, "worker/run/%d%s", counts[k], coupled ? "/coupled" : "");
        benchmark_report(b, name, value, "us", floor, 1.5,
                         "%d FMUs, steps of 0.1 ms%s: %.2f us a step, in process %.2f us, the "
                         "bare way there and back %.2f us",
                         counts[k], coupled ? ", default predictions" : ", not coupled", value,
                         floor, quantile(ways, 7, 0.5));
    }
    munmap(t, sizeof *t);
    crd_context_destroy(ctx);
}

// ---- more workers than cores -------------------------------------------------------------------

static void sleep_while(_Atomic uint32_t* word, uint32_t value)
{
    while (atomic_load(word) == value) {
        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
    }
}

static void say(_Atomic uint32_t* word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

// Two processes that sleep and wake each other up, us there and back.
static double futex_ping_pong(void)
{
    static double times[STEPS];
    table* t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = fork();
    if (child == 0) {
        for (uint32_t n = 1;; n++) { // until it is killed
            sleep_while(&t->there.number, n - 1);
            say(&t->back.number, n);
        }
    }
    for (uint32_t n = 0; n < STEPS; n++) {
        const int64_t begin = crdi_now_ns();
        say(&t->there.number, n + 1);
        sleep_while(&t->back.number, n);
        times[n] = 1e-3 * (double)(crdi_now_ns() - begin);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(t, sizeof *t);
    return quantile(times, STEPS, 0.5);
}

static void crowded_case(benchmark* b)
{
    double steps[7], floors[7];
    const int units = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
    crd_context* ctx = crd_context_create(NULL);
    for (int i = 0; i < 7; i++) {
        steps[i] = run_system(ctx, units, false, CRD_ISOLATE_NONE, "process") / units;
        floors[i] = futex_ping_pong();
    }
    const double value = quantile(steps, 7, 0.5), floor = quantile(floors, 7, 0.5);
    benchmark_report(b, "worker/crowded", value, "us", 10, 1,
                     "%d workers: %.2f us a step of each; who sleeps is there and back in %.2f us",
                     units, value, floor);
    crd_context_destroy(ctx);
}

// ---- start -------------------------------------------------------------------------------------

static void start_case(benchmark* b)
{
    double here[TURNS], apart[TURNS];
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec specs[] = {spec_of("none"), spec_of("process")};
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < 2; k++) {
            crd_unit* u = NULL;
            benchmark_must(ctx, crd_unit_create(ctx, &specs[k], &u));
            const int64_t begin = crdi_now_ns();
            benchmark_must(u->ctx, crd_unit_instantiate(u));
            (k ? apart : here)[i] = 1e-6 * (double)(crdi_now_ns() - begin);
            crd_unit_destroy(u);
        }
    }
    const double value = quantile(apart, TURNS, 0.5), floor = quantile(here, TURNS, 0.5);
    benchmark_report(b, "worker/start", value, "ms", 5, 1,
                     "instantiated in a new worker: %.2f ms, in process %.2f ms", value, floor);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_worker_cases[] = {{"worker/step", step_case},
                                                 {"worker/run", run_case},
                                                 {"worker/crowded", crowded_case},
                                                 {"worker/start", start_case},
                                                 {NULL, NULL}};
