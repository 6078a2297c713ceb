// master/chain: N trivial FMUs in a chain, fixed-step Jacobi, one real signal per connection that
// is held. The floor is a plain loop in this process that calls the same FMI functions of the same
// FMUs. master/chain-monitors, master/bonds-monitors: what watching costs; the floor is the same
// run without it. master/loops-guard: what the guard costs. master/chain-auto: what finding the
// best prediction costs; the floor is hold. master/chain-default, master/loops-default: all of it
// together; the floor is hold with everything off. master/scale: N units from their description to
// the end of their first step, with all that is the default; the floor is the FMU's own part of it.
#include "benchmark.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7 };

// What is run.
typedef struct setting {
    int version, n;
    int64_t steps;
    const char* results;
    bool bonds; // not a chain but pairs of FMUs, linear oscillators with a power bond each
    unsigned monitor;
    bool guard;
    crd_prediction predict;
} setting;

typedef struct chain {
    crd_context* ctx;
    crd_system* sys;
    crd_master* m;
} chain;

static char (*unit_names(int n))[16]
{
    char(*names)[16] = calloc((size_t)n, sizeof *names);
    for (int i = 0; names && i < n; i++) {
        snprintf(names[i], sizeof names[i], "u%d", i);
    }
    return names;
}

static void add_unit(chain* c, const setting* s, const char* name, const char* fmu)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fmi%d/%s.fmu", BENCHMARK_FMUS, s->version, fmu);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.path = path;
    benchmark_must(c->ctx, crd_system_add_unit(c->sys, &u, NULL));
}

static void add_connection(chain* c, const setting* s, int from_unit, const char* from, int to_unit,
                           const char* to)
{
    crd_connection_spec k = crd_connection_spec_defaults();
    k.from_unit = from_unit;
    k.from = from;
    k.to_unit = to_unit;
    k.to = to;
    k.predict = s->predict;
    benchmark_must(c->ctx, crd_system_add_connection(c->sys, &k));
}

static void add_oscillator(chain* c, const setting* s, int first)
{
    add_connection(c, s, first + 1, "x2", first, "x2");
    add_connection(c, s, first + 1, "v2", first, "v2");
    add_connection(c, s, first, "f", first + 1, "f");
    crd_bond_spec b = crd_bond_spec_defaults();
    b.action_unit = first;
    b.action = "f";
    b.flow_unit = first + 1;
    b.flow = "v2";
    benchmark_must(c->ctx, crd_system_add_bond(c->sys, &b));
}

static void open_chain(chain* c, const setting* s)
{
    c->ctx = crd_context_create(NULL);
    benchmark_must(c->ctx, crd_system_create(c->ctx, &c->sys));
    char(*names)[16] = unit_names(s->n);
    for (int i = 0; i < s->n; i++) {
        add_unit(c, s, names[i], !s->bonds ? "chain" : i % 2 ? "lo_fd2" : "lo_fd1");
    }
    free(names);
    for (int i = 1; i < s->n && !s->bonds; i++) {
        add_connection(c, s, i - 1, "y", i, "u");
    }
    for (int i = 0; i + 1 < s->n && s->bonds; i += 2) {
        add_oscillator(c, s, i);
    }
    // Oscillators gain energy by hold: short steps, so that it does not pile up.
    const double step = s->bonds ? 1e-5 : 1e-3;
    c->sys->run.start = 0;
    c->sys->run.step = step;
    c->sys->run.stop = step * (double)s->steps;
    c->sys->run.threads = 1;
    c->sys->run.isolate = CRD_ISOLATE_NONE;
    c->sys->run.monitor = s->monitor;
    c->sys->run.guard.action = s->guard ? CRD_GUARD_AUTO : CRD_GUARD_NONE;
    c->sys->results.path = s->results;
    benchmark_must(c->ctx, crd_master_create(c->ctx, c->sys, NULL, &c->m));
}

static void close_chain(chain* c)
{
    crd_master_destroy(c->m);
    crd_system_destroy(c->sys);
    crd_context_destroy(c->ctx);
}

// What is measured has happened: everything is watched that can be, or nothing.
static void check_monitors(const chain* c, const setting* s)
{
    const crd_master_report* r = crd_master_get_report(c->m);
    const int flows = s->monitor ? c->sys->connection_count : 0;
    const int bonds = s->monitor ? c->sys->bond_count : 0;
    if (r->flow_count == flows && r->bond_count == bonds && (!flows || isfinite(r->worst_defect)) &&
        (!bonds || isfinite(r->worst_energy))) {
        return;
    }
    fprintf(stderr,
            "cardan-bench: %d connections and %d bonds were watched, expected %d and %d; largest "
            "defect %g, energy %g\n",
            r->flow_count, r->bond_count, flows, bonds, r->worst_defect, r->worst_energy);
    exit(1);
}

// Seconds of the steps alone, or of the run with its record closed.
static double run_cardan(const setting* s)
{
    chain c = {0};
    open_chain(&c, s);
    benchmark_must(c.ctx, crd_master_initialize(c.m));
    const int64_t begin = crdi_now_ns();
    while (crd_master_ended(c.m) == CRD_END_NONE) {
        benchmark_must(c.ctx, crd_master_advance(c.m, s->steps));
    }
    if (s->results) { benchmark_must(c.ctx, crd_master_finish(c.m)); }
    const double seconds = 1e-9 * (double)(crdi_now_ns() - begin);
    check_monitors(&c, s);
    close_chain(&c);
    return seconds;
}

// ---- the floor ---------------------------------------------------------------------------------

// The FMI functions that a step needs, as C sees them.
typedef void* component;
typedef struct {
    void* library;
    int (*set2)(component, const uint32_t*, size_t, const double*);
    int (*get2)(component, const uint32_t*, size_t, double*);
    int (*step2)(component, double, double, int);
    int (*set3)(component, const uint32_t*, size_t, const double*, size_t);
    int (*get3)(component, const uint32_t*, size_t, double*, size_t);
    int (*step3)(component, double, double, bool, bool*, bool*, bool*, double*);
} functions;

static void* symbol(void* library, const char* name)
{
    void* p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "cardan-bench: %s\n", dlerror());
        exit(1);
    }
    return p;
}

// dlsym gives an object pointer where a function pointer is wanted; POSIX allows the way through
// memory.
#define FIND(f, field, name)                                                                       \
    do {                                                                                           \
        void* found = symbol((f)->library, name);                                                  \
        memcpy(&(f)->field, &found, sizeof found);                                                 \
    } while (0)

static void find_functions(functions* f, const crd_fmu* fmu, int version)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/binaries/%s/%s.so", crd_fmu_folder(fmu),
             version == 2 ? "linux64" : "x86_64-linux", crd_fmu_describe(fmu)->model_identifier);
    f->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!f->library) {
        fprintf(stderr, "cardan-bench: %s\n", dlerror());
        exit(1);
    }
    if (version == 2) {
        FIND(f, set2, "fmi2SetReal");
        FIND(f, get2, "fmi2GetReal");
        FIND(f, step2, "fmi2DoStep");
    } else {
        FIND(f, set3, "fmi3SetFloat64");
        FIND(f, get3, "fmi3GetFloat64");
        FIND(f, step3, "fmi3DoStep");
    }
}

// Set, step and get of one FMU after the other, then the values move on: the order that is kindest
// to the caches.
static void loop2(const functions* f, component* c, int n, int64_t steps, uint32_t u, uint32_t y,
                  double* in, double* out)
{
    for (int64_t k = 0; k < steps; k++) {
        const double t = (double)k * 1e-3;
        for (int i = 1; i < n; i++) {
            in[i] = out[i - 1];
        }
        for (int i = 0; i < n; i++) {
            if (i && f->set2(c[i], &u, 1, &in[i]) > 1) { abort(); }
            if (f->step2(c[i], t, 1e-3, 1) > 1) { abort(); }
            if (i + 1 < n && f->get2(c[i], &y, 1, &out[i]) > 1) { abort(); }
        }
    }
}

static void loop3(const functions* f, component* c, int n, int64_t steps, uint32_t u, uint32_t y,
                  double* in, double* out)
{
    bool event, terminate, early;
    double reached;
    for (int64_t k = 0; k < steps; k++) {
        const double t = (double)k * 1e-3;
        for (int i = 1; i < n; i++) {
            in[i] = out[i - 1];
        }
        for (int i = 0; i < n; i++) {
            if (i && f->set3(c[i], &u, 1, &in[i], 1) > 1) { abort(); }
            if (f->step3(c[i], t, 1e-3, true, &event, &terminate, &early, &reached) > 1) {
                abort();
            }
            if (i + 1 < n && f->get3(c[i], &y, 1, &out[i], 1) > 1) { abort(); }
        }
    }
}

// The instances are made with Cardan's import; the loop then goes past it.
static double run_floor(int version, int n, int64_t steps)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fmi%d/chain.fmu", BENCHMARK_FMUS, version);
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* fmu = NULL;
    crd_fmu_options opt = crd_fmu_defaults();
    benchmark_must(ctx, crd_fmu_open(ctx, path, &opt, &fmu));
    functions f = {0};
    find_functions(&f, fmu, version);
    crd_fmi** instance = calloc((size_t)n, sizeof(crd_fmi*));
    component* c = calloc((size_t)n, sizeof *c);
    double* values = calloc(2 * (size_t)n, sizeof *values);
    if (!instance || !c || !values) { abort(); }
    for (int i = 0; i < n; i++) {
        crd_fmi_options o = {.instance_name = "floor"};
        benchmark_must(ctx, crd_fmi_instantiate(ctx, fmu, &o, &instance[i]));
        benchmark_must(ctx, crd_fmi_enter_initialization(instance[i], false, 0, 0, false, 0));
        benchmark_must(ctx, crd_fmi_exit_initialization(instance[i]));
        c[i] = crd_fmi_component(instance[i]);
    }
    const crd_variable* v = crd_fmu_describe(fmu)->variables;
    const uint32_t u = v[crd_fmu_find(fmu, "u")].reference, y = v[crd_fmu_find(fmu, "y")].reference;
    const int64_t begin = crdi_now_ns();
    (version == 2 ? loop2 : loop3)(&f, c, n, steps, u, y, values, values + n);
    const double s = 1e-9 * (double)(crdi_now_ns() - begin);
    for (int i = 0; i < n; i++) {
        crd_fmi_destroy(instance[i]);
    }
    free(instance);
    free(c);
    free(values);
    dlclose(f.library);
    crd_fmu_close(fmu);
    crd_context_destroy(ctx);
    return s;
}

// ---- cases -------------------------------------------------------------------------------------

// Best of several runs of each, taken in turn so that a noisy moment meets both.
static void compare(benchmark* b, int version, int n, const char* results, double limit)
{
    const setting s = {.version = version,
                       .n = n,
                       .steps = (results ? 1000000 : 4000000) / n,
                       .results = results,
                       .predict = CRD_PREDICTION_HOLD};
    double cardan = INFINITY, floor = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, run_floor(version, n, s.steps));
        cardan = fmin(cardan, run_cardan(&s));
    }
    const double each = 1e6 / ((double)n * (double)s.steps); // us per FMU and step
    char name[64];
    snprintf(name, sizeof name, "master/chain%s/fmi%d/N=%d", results ? "-csv" : "", version, n);
    benchmark_report(b, name, cardan * each, "us", floor * each, limit,
                     "%.4f us per FMU and step, plain loop %.4f us", cardan * each, floor * each);
}

// A run with something against the same run without it.
static void compare_with(benchmark* b, const char* group, const setting* with,
                         const setting* without, double limit, const char* what)
{
    double more = INFINITY, less = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        less = fmin(less, run_cardan(without));
        more = fmin(more, run_cardan(with));
    }
    const double each = 1e6 / ((double)with->n * (double)with->steps); // us per FMU and step
    char name[64];
    snprintf(name, sizeof name, "%s/fmi%d/N=%d", group, with->version, with->n);
    benchmark_report(b, name, more * each, "us", less * each, limit,
                     "%.4f us per FMU and step, %s %.4f us", more * each, what, less * each);
}

static void chain_cases(benchmark* b)
{
    static const struct {
        int n;
        double limit;
    } rows[] = {{2, 2.0}, {10, 0}, {100, 1.5}, {1000, 1.5}};
    for (int version = 2; version <= 3; version++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            compare(b, version, rows[i].n, NULL, rows[i].limit);
        }
    }
}

static void chain_csv_cases(benchmark* b)
{
    for (int version = 2; version <= 3; version++) {
        compare(b, version, 100, BENCHMARK_SCRATCH "/chain.csv", 4);
    }
    remove(BENCHMARK_SCRATCH "/chain.csv");
}

enum { ALL_MONITORS = CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY };

static const int lengths[] = {2, 100, 1000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

// Nothing in the chain is a power: its connections have defects only.
static void chain_monitor_cases(benchmark* b)
{
    for (int i = 0; i < 2 * LENGTHS; i++) {
        const int n = lengths[i % LENGTHS];
        setting s = {.version = 2 + i / LENGTHS,
                     .n = n,
                     .steps = 4000000 / n,
                     .predict = CRD_PREDICTION_HOLD};
        const setting without = s;
        s.monitor = ALL_MONITORS;
        compare_with(b, "master/chain-monitors", &s, &without, 2.5, "not monitored");
    }
}

static void bond_monitor_cases(benchmark* b)
{
    for (int i = 0; i < 2 * LENGTHS; i++) {
        const int n = lengths[i % LENGTHS];
        setting s = {.version = 2 + i / LENGTHS,
                     .n = n,
                     .steps = 1000000 / n,
                     .bonds = true,
                     .predict = CRD_PREDICTION_HOLD};
        const setting without = s;
        s.monitor = ALL_MONITORS;
        compare_with(b, "master/bonds-monitors", &s, &without, 2.5, "not monitored");
    }
}

// Pairs are loops, whose connections the guard watches; a chain has none.
static void guard_cases(benchmark* b)
{
    for (int i = 0; i < 2 * LENGTHS; i++) {
        const int n = lengths[i % LENGTHS];
        setting s = {.version = 2 + i / LENGTHS,
                     .n = n,
                     .steps = 1000000 / n,
                     .bonds = true,
                     .predict = CRD_PREDICTION_HOLD};
        const setting without = s;
        s.guard = true;
        compare_with(b, "master/loops-guard", &s, &without, 2, "not guarded");
    }
}

static void chain_auto_cases(benchmark* b)
{
    for (int i = 0; i < 2 * LENGTHS; i++) {
        const int n = lengths[i % LENGTHS];
        setting s = {.version = 2 + i / LENGTHS,
                     .n = n,
                     .steps = 1000000 / n,
                     .monitor = ALL_MONITORS,
                     .predict = CRD_PREDICTION_HOLD};
        const setting hold = s;
        s.predict = CRD_PREDICTION_AUTO;
        compare_with(b, "master/chain-auto", &s, &hold, n >= 100 ? 2 : 0, "hold");
    }
}

// Everything that is on unless somebody switches it off, against hold and nothing else.
static void chain_default_cases(benchmark* b)
{
    for (int version = 2; version <= 3; version++) {
        for (int pairs = 0; pairs < 2; pairs++) {
            setting s = {.version = version,
                         .n = 100,
                         .steps = 20000,
                         .bonds = pairs,
                         .predict = CRD_PREDICTION_HOLD};
            const setting bare = s;
            s.predict = CRD_PREDICTION_AUTO;
            s.monitor = ALL_MONITORS;
            s.guard = true;
            compare_with(b, pairs ? "master/loops-default" : "master/chain-default", &s, &bare,
                         pairs ? 0 : 2, "hold and all off");
        }
    }
}

// ---- many units --------------------------------------------------------------------------------

// A system in memory, created, initialised and one step on; seconds.
static double scale_cardan(int n)
{
    const setting s = {.version = 2,
                       .n = n,
                       .steps = 1,
                       .predict = CRD_PREDICTION_AUTO,
                       .monitor = ALL_MONITORS,
                       .guard = true};
    chain c = {0};
    const int64_t begin = crdi_now_ns();
    open_chain(&c, &s);
    benchmark_must(c.ctx, crd_master_initialize(c.m));
    benchmark_must(c.ctx, crd_master_advance(c.m, 1));
    const double seconds = 1e-9 * (double)(crdi_now_ns() - begin);
    close_chain(&c);
    return seconds;
}

typedef struct {
    void (*logger)(void*, const char*, int, const char*, const char*, ...);
    void* (*allocate)(size_t, size_t);
    void (*release)(void*);
    void* rest[2];
} callbacks2;

static void no_log(void* environment, const char* instance, int status, const char* category,
                   const char* message, ...)
{
    (void)environment, (void)instance, (void)status, (void)category, (void)message;
}

// The calls that the FMU gets for that, one instance after the other; opened and loaded before.
static double scale_floor(int n)
{
    component (*instantiate)(const char*, int, const char*, const char*, const callbacks2*, int,
                             int) = NULL;
    int (*setup)(component, int, double, double, int, double) = NULL;
    int (*enter)(component) = NULL, (*leave)(component) = NULL;
    void (*release)(component) = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/fmi2/chain.fmu", BENCHMARK_FMUS);
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* fmu = NULL;
    crd_fmu_options opt = crd_fmu_defaults();
    benchmark_must(ctx, crd_fmu_open(ctx, path, &opt, &fmu));
    functions f = {0};
    find_functions(&f, fmu, 2);
    void* const found[] = {
        symbol(f.library, "fmi2Instantiate"), symbol(f.library, "fmi2SetupExperiment"),
        symbol(f.library, "fmi2EnterInitializationMode"),
        symbol(f.library, "fmi2ExitInitializationMode"), symbol(f.library, "fmi2FreeInstance")};
    memcpy(&instantiate, &found[0], sizeof(void*));
    memcpy(&setup, &found[1], sizeof(void*));
    memcpy(&enter, &found[2], sizeof(void*));
    memcpy(&leave, &found[3], sizeof(void*));
    memcpy(&release, &found[4], sizeof(void*));
    const crd_variable* v = crd_fmu_describe(fmu)->variables;
    const uint32_t u = v[crd_fmu_find(fmu, "u")].reference, y = v[crd_fmu_find(fmu, "y")].reference;
    const char* guid = crd_fmu_describe(fmu)->token;
    const callbacks2 callbacks = {no_log, calloc, free, {NULL, NULL}};
    component* c = calloc((size_t)n, sizeof *c);
    double value = 0;
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < n; i++) {
        c[i] = instantiate("floor", 1, guid, "", &callbacks, 0, 0);
        if (!c[i] || setup(c[i], 0, 0, 0, 1, 1e-3) > 1 || enter(c[i]) > 1 || leave(c[i]) > 1) {
            abort();
        }
    }
    for (int i = 0; i < n; i++) {
        if (f.set2(c[i], &u, 1, &value) > 1 || f.step2(c[i], 0, 1e-3, 1) > 1 ||
            f.get2(c[i], &y, 1, &value) > 1) {
            abort();
        }
    }
    const double s = 1e-9 * (double)(crdi_now_ns() - begin);
    for (int i = 0; i < n; i++) {
        release(c[i]);
    }
    free(c);
    dlclose(f.library);
    crd_fmu_close(fmu);
    crd_context_destroy(ctx);
    return s;
}

// Units that are trivial: theirs is the smallest part. What is not linear shows between the rows.
static void scale_cases(benchmark* b)
{
    static const int sizes[] = {1000, 10000};
    for (int k = 0; k < 2; k++) {
        const int n = sizes[k];
        double cardan = INFINITY, floor = INFINITY;
        for (int i = 0; i < REPEATS; i++) {
            floor = fmin(floor, scale_floor(n));
            cardan = fmin(cardan, scale_cardan(n));
        }
        const double each = 1e6 / n;
        char name[64];
        snprintf(name, sizeof name, "master/scale/fmi2/N=%d", n);
        benchmark_report(b, name, cardan * each, "us", floor * each, 20,
                         "%.2f us per unit, the FMU's own part %.2f us", cardan * each,
                         floor * each);
    }
}

const benchmark_case benchmark_master_cases[] = {
    {"master/chain", chain_cases},
    {"master/chain-csv", chain_csv_cases},
    {"master/chain-monitors", chain_monitor_cases},
    {"master/bonds-monitors", bond_monitor_cases},
    {"master/loops-guard", guard_cases},
    {"master/chain-auto", chain_auto_cases},
    {"master/chain-default", chain_default_cases},
    {"master/scale", scale_cases},
    {NULL, NULL},
};
