// twin: the estimations of Rodriguez 2021, ch. 4, that run beside a component: 5 s at 1 ms with the
// published filter and with the recommended one, which take turns. CPU time of one thread; of each
// the least counts.
#include "benchmark.h"
#include "cardan/twin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 5000, REPEATS = 15, MOST_SENSORS = 3 };

typedef struct estimation {
    crd_context* ctx;
    crd_netlist* n;
    crd_twin_sensor sensors[MOST_SENSORS];
    crd_twin_source source;
    int32_t parts[6];
    crd_twin_spec spec;
    double y[ROWS * MOST_SENSORS];
} estimation;

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double disturbance(uint64_t* state) // sd 0.5, as wide as three of it
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return 0.5 * sum;
}

// ---- the two components ------------------------------------------------------------------------

// %s: the source
static const char rc[] = "rc\n.thermal\nheat q0 1 %s\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
                         "resistance r3 3 0 3\ncapacity c1 2 0.1 start=-1\n"
                         "capacity c2 3 0.2 start=1\n.endthermal\n.output T2=t(2) T3=t(3)\n"
                         ".tran 1m 5 uic\n.end\n";
static const char inverter[] =
    "inverter\n.subckt phase up low copper paste\n.thermal start=343.15\nheat qu up %s\n"
    "heat ql low %s\nresistance du up copper 7.516m\nresistance dl low copper 7.516m\n"
    "resistance dbc copper paste 30.47m\ncapacity c copper 1.27\n.endthermal\n.ends\n"
    "X1 1 2 7 10 phase\nX2 3 4 8 10 phase\nX3 5 6 9 10 phase\n.thermal start=343.15\n"
    "resistance sp 10 11 3.771m\nresistance hs 11 12 12.78m\nresistance w 12 13 1.837m\n"
    "capacity chs 11 30.79\ncapacity cw 12 114.42\ntemperature water 13 343.15\n.endthermal\n"
    ".output T7=t(7) T8=t(8) T9=t(9) T1=t(1)\n.tran 1m 5 uic\n.end\n";

static crd_netlist* netlist(crd_context* ctx, const char* format, const char* source)
{
    char text[1200];
    crd_netlist* n = NULL;
    snprintf(text, sizeof text, format, source, source);
    benchmark_must(ctx, crd_netlist_parse(ctx, text, strlen(text), "twin.cir", NULL, &n));
    return n;
}

// Measurements of a component whose source is not the one that its twin knows
static void measure(estimation* e, const char* format, const char* source)
{
    crd_netlist* n = netlist(e->ctx, format, source);
    crd_circuit_options o = crd_circuit_defaults();
    crd_circuit* c = NULL;
    uint64_t state = 20210401;
    o.step = 1e-3;
    benchmark_must(e->ctx, crd_circuit_create(e->ctx, n, &o, &c));
    benchmark_must(e->ctx, crd_circuit_begin(c, 0));
    for (int i = 0; i < ROWS; i++) {
        benchmark_must(e->ctx, crd_circuit_step(c));
        for (int j = 0; j < e->spec.sensor_count; j++) {
            e->y[i * e->spec.sensor_count + j] = crd_circuit_get_output(c, j) + disturbance(&state);
        }
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static estimation* prepare(crd_context* ctx, bool three_phases)
{
    static const char* const losses[] = {"x1.qu", "x1.ql", "x2.qu", "x2.ql", "x3.qu", "x3.ql"};
    estimation* e = calloc(1, sizeof *e);
    if (!e) { abort(); }
    e->ctx = ctx;
    e->n = netlist(ctx, three_phases ? inverter : rc, three_phases ? "208" : "10");
    for (int i = 0; i < MOST_SENSORS; i++) {
        static const char* const at[2][MOST_SENSORS] = {{"t(2)", "t(3)"}, {"t(7)", "t(8)", "t(9)"}};
        const char* what = at[three_phases][i];
        e->sensors[i] = (crd_twin_sensor){what, what, "K", 0.5};
    }
    const int parts = three_phases ? 6 : 1;
    for (int i = 0; i < parts; i++) {
        e->parts[i] = crd_netlist_part(e->n, three_phases ? losses[i] : "q0");
    }
    e->source = (crd_twin_source){.group = {.name = "loss", .parts = e->parts, .count = parts},
                                  .model = CRD_SOURCE_WALK,
                                  .noise = three_phases ? 0.01 : 1,
                                  .start = three_phases ? 208 : 10,
                                  .sd = three_phases ? 300 : 3};
    e->spec = crd_twin_defaults();
    e->spec.step = 1e-3;
    e->spec.sensors = e->sensors;
    e->spec.sensor_count = three_phases ? 3 : 2;
    e->spec.sources = &e->source;
    e->spec.source_count = 1;
    e->spec.thesis_q = 1e6;
    measure(e, three_phases ? inverter : rc,
            three_phases ? "pwl(0 0 0.1 208 1 325)" : "sin(10 10 5)");
    return e;
}

static void release(estimation* e)
{
    crd_netlist_destroy(e->n);
    free(e);
}

// ---- speed -------------------------------------------------------------------------------------

static crd_twin* make(estimation* e, crd_twin_filter filter, int frozen_after)
{
    crd_twin* w = NULL;
    e->spec.filter = filter;
    if (frozen_after >= 0) { e->spec.frozen_after = frozen_after; }
    benchmark_must(e->ctx, crd_twin_create(e->ctx, e->n, &e->spec, &w));
    return w;
}

// Seconds of 5000 steps
static double run(estimation* e, crd_twin* w)
{
    const int sensors = e->spec.sensor_count;
    benchmark_must(e->ctx, crd_twin_begin(w, 0));
    const double begin = cpu();
    for (int i = 0; i < ROWS; i++) {
        benchmark_must(e->ctx, crd_twin_step(w, e->y + (ptrdiff_t)i * sensors));
    }
    return cpu() - begin;
}

static void compare(benchmark* b, bool three_phases)
{
    crd_context* ctx = crd_context_create(NULL);
    estimation* e = prepare(ctx, three_phases);
    const int usual = e->spec.frozen_after;
    crd_twin* w[3] = {make(e, CRD_TWIN_THESIS, usual), make(e, CRD_TWIN_AUTO, usual),
                      make(e, CRD_TWIN_AUTO, 0)};
    double best[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < REPEATS; i++) {
        for (int k = 0; k < 3; k++) {
            best[k] = fmin(best[k], run(e, w[k]));
        }
    }
    benchmark_report(b, three_phases ? "twin/inverter" : "twin/rc", best[1], "s", best[0],
                     three_phases ? 1 / 40.0 : 1 / 20.0,
                     "5000 steps: published %.1f ms, ours %.2f ms: %.0f times as fast",
                     1e3 * best[0], 1e3 * best[1], best[0] / best[1]);
    benchmark_report(b, three_phases ? "twin/inverter never frozen" : "twin/rc never frozen",
                     best[2], "s", best[0], 0, "%.2f ms: %.0f times as fast", 1e3 * best[2],
                     best[0] / best[2]);
    for (int k = 0; k < 3; k++) {
        crd_twin_destroy(w[k]);
    }
    release(e);
    crd_context_destroy(ctx);
}

static void run_rc(benchmark* b)
{
    compare(b, false);
}

static void run_inverter(benchmark* b)
{
    compare(b, true);
}

// ---- allocations -------------------------------------------------------------------------------

static void* count_allocations(void* user, void* old, size_t size)
{
    if (size == 0) {
        free(old);
        return NULL;
    }
    ++*(int64_t*)user;
    return realloc(old, size);
}

static void run_allocations(benchmark* b)
{
    int64_t count = 0, in_steps = 0;
    crd_context_options co = crd_context_defaults();
    co.realloc = count_allocations;
    co.realloc_user = &count;
    crd_context* ctx = crd_context_create(&co);
    for (int i = 0; i < 4; i++) {
        estimation* e = prepare(ctx, i % 2);
        crd_twin* w = make(e, i < 2 ? CRD_TWIN_THESIS : CRD_TWIN_AUTO, -1);
        benchmark_must(ctx, crd_twin_begin(w, 0));
        const int64_t before = count;
        for (int row = 0; row < ROWS; row++) {
            benchmark_must(ctx, crd_twin_step(w, e->y + (ptrdiff_t)row * e->spec.sensor_count));
            crd_twin_output(w, 0);
        }
        in_steps += count - before;
        crd_twin_destroy(w);
        release(e);
    }
    crd_context_destroy(ctx);
    benchmark_report(b, "twin/allocations", (double)in_steps, "", 1, 0.5,
                     "%lld in 20000 steps and estimates, both filters", (long long)in_steps);
}

const benchmark_case benchmark_twin_cases[] = {{"twin/rc", run_rc},
                                               {"twin/inverter", run_inverter},
                                               {"twin/allocations", run_allocations},
                                               {0}};
