// coupling: what a signal costs per macro step, one push and one evaluation, against a plain ring
// buffer with the same multiply-adds at a latency that is fixed beforehand. All in one thread, the
// least of many repetitions.
#include "benchmark.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 4096, STEPS = 10000, REPEATS = 150, LATENCY = 3, TAPS_MAX = 64, SIGNALS = 10000 };

static const double step = 0.01, theta = 0.25;
static double samples[SAMPLES];
static volatile double sink; // results are used

static void make_samples(void)
{
    uint32_t seed = 1;
    for (int n = 0; n < SAMPLES; n++) { // a full number of periods: no jump where it begins anew
        const double x = 2 * M_PI * n / SAMPLES;
        seed = 1664525u * seed + 1013904223u;
        samples[n] = 100 + 20 * sin(64 * x) + 3 * (1 + 0.8 * sin(8 * x)) * sin(512 * x + 1) +
                     0.1 * seed / 4294967296.0;
    }
}

// ---- the floor ---------------------------------------------------------------------------------

/// Each sample is written twice, so that the newest m stand in a row.
typedef struct plain_ring {
    int m, head;
    const double *a, *A; // A NULL: hold
    double y[2 * TAPS_MAX];
} plain_ring;

// As in a library: not inlined into the loop that measures.
#ifdef __clang__
#define ALONE noinline
#else
#define ALONE noipa
#endif
__attribute__((ALONE, aligned(64))) static void ring_push(plain_ring* r, double value)
{
    r->head = r->head > 0 ? r->head - 1 : r->m - 1;
    r->y[r->head] = value;
    r->y[r->head + r->m] = value;
}

__attribute__((ALONE, aligned(64))) static double ring_eval(const plain_ring* r, double at)
{
    const double* y = &r->y[r->head];
    double value = 0, slope = 0;
    if (!r->A) {
        for (int i = 0; i < r->m; i++) {
            value += r->a[i] * y[i];
        }
        return value;
    }
    for (int i = 0; i < r->m; i++) {
        value += r->a[i] * y[i];
        slope += r->A[i] * y[i];
    }
    return value + at * slope;
}

/// m-4-2-1.
typedef struct plain_network {
    plain_ring ring;
    double W1[4][TAPS_MAX], b1[4], W2[2][4], b2[2], W3[2], b3, alpha;
} plain_network;

__attribute__((ALONE, aligned(64))) static double network_eval(const plain_network* n)
{
    const double* y = &n->ring.y[n->ring.head];
    double u[4], value = n->b3;
    for (int i = 0; i < 4; i++) {
        u[i] = n->b1[i];
        for (int j = 0; j < n->ring.m; j++) {
            u[i] += n->W1[i][j] * y[j];
        }
    }
    for (int i = 0; i < 2; i++) {
        double x = n->b2[i];
        for (int j = 0; j < 4; j++) {
            x += n->W2[i][j] * u[j];
        }
        value += n->W3[i] * (x > 0 ? x : n->alpha * x);
    }
    return value;
}

// ---- measuring ---------------------------------------------------------------------------------

// ns per step
static double time_ring(plain_ring* r)
{
    double sum = 0;
    const int64_t begin = crdi_now_ns();
    for (int n = 0; n < STEPS; n++) {
        ring_push(r, samples[n & (SAMPLES - 1)]);
        sum += ring_eval(r, theta);
    }
    sink = sum;
    return (double)(crdi_now_ns() - begin) / STEPS;
}

static double time_network(plain_network* r)
{
    double sum = 0;
    const int64_t begin = crdi_now_ns();
    for (int n = 0; n < STEPS; n++) {
        ring_push(&r->ring, samples[n & (SAMPLES - 1)]);
        sum += network_eval(r);
    }
    sink = sum;
    return (double)(crdi_now_ns() - begin) / STEPS;
}

// Goes on where it ended the last time.
static double time_steps(crd_coupling* c, int64_t* at, int steps)
{
    double sum = 0;
    const int64_t first = *at, begin = crdi_now_ns();
    for (int64_t n = first; n < first + steps; n++) {
        const double stamp = (double)n * step;
        crd_coupling_push(c, samples[n & (SAMPLES - 1)], stamp, n);
        sum += crd_coupling_eval(c, stamp + (LATENCY + theta) * step);
    }
    *at = first + steps;
    sink = sum;
    return (double)(crdi_now_ns() - begin) / steps;
}

static double time_element(crd_coupling* c, int64_t* at)
{
    return time_steps(c, at, STEPS);
}

static crd_coupling_options options(crd_method method, int taps)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = step;
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.design = crd_design_defaults(method);
    if (taps > 0) { o.design.taps = taps; }
    o.detection = CRD_DETECT_NONE;
    return o;
}

// ---- linear ------------------------------------------------------------------------------------

static void linear(benchmark* b, const char* name, crd_method method, int taps, double limit)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_options o = options(method, taps);
    crd_linear l;
    crd_coupling *bare = NULL, *guarded = NULL;
    benchmark_must(ctx, crd_linear_make(ctx, &o.design, LATENCY, &l));
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &bare));
    o.detection = CRD_DETECT_GUARDED;
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &guarded));
    plain_ring r = {.m = l.m, .a = l.a};
    for (int i = 0; i < l.m; i++) { // what only holds has no second sum
        if (l.A[i] != 0) { r.A = l.A; }
    }
    int64_t at = 0, guarded_at = 0;
    double floor = INFINITY, with = INFINITY, without = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, time_ring(&r));
        without = fmin(without, time_element(bare, &at));
        with = fmin(with, time_element(guarded, &guarded_at));
    }
    char text[64];
    snprintf(text, sizeof text, "coupling/%s", name);
    benchmark_report(b, text, without, "ns", floor, limit,
                     "%.1f ns, ring buffer of %d taps %.1f ns", without, l.m, floor);
    snprintf(text, sizeof text, "coupling/%s/detect", name);
    benchmark_report(b, text, with, "ns", floor, 0, "%.1f ns with guarded detection", with);
    crd_linear_clear(ctx, &l);
    crd_coupling_destroy(bare);
    crd_coupling_destroy(guarded);
    crd_context_destroy(ctx);
}

static void linear_case(benchmark* b)
{
    make_samples();
    linear(b, "zoh", CRD_METHOD_ZOH, 0, 2);
    linear(b, "foh", CRD_METHOD_FOH, 0, 2);
    linear(b, "eros", CRD_METHOD_EROS, 0, 2);
    linear(b, "wiener9", CRD_METHOD_WIENER, 9, 2);
    linear(b, "wiener25", CRD_METHOD_WIENER, 25, 2);
    linear(b, "moment25", CRD_METHOD_MOMENT, 25, 2);
}

// ---- network and mixture -----------------------------------------------------------------------

static void network(benchmark* b, int taps)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_options o = options(CRD_METHOD_WIENER, taps);
    crd_linear l;
    crd_network n;
    crd_coupling* c = NULL;
    benchmark_must(ctx, crd_linear_make(ctx, &o.design, LATENCY, &l));
    benchmark_must(ctx, crd_network_morph(ctx, &l, 0.01, &n));
    o.algorithm = CRD_ALGORITHM_NETWORK;
    o.network = &n;
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &c));
    plain_network p = {.ring = {.m = taps}, .b3 = n.b3, .alpha = n.alpha};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < taps; j++) {
            p.W1[i][j] = n.W1[i * taps + j];
        }
        p.b1[i] = n.b1[i];
        p.W2[0][i] = n.W2[i];
        p.W2[1][i] = n.W2[4 + i];
    }
    for (int i = 0; i < 2; i++) {
        p.b2[i] = n.b2[i];
        p.W3[i] = n.W3[i];
    }
    int64_t at = 0;
    double floor = INFINITY, value = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, time_network(&p));
        value = fmin(value, time_element(c, &at));
    }
    char text[64];
    snprintf(text, sizeof text, "coupling/network%d", taps);
    benchmark_report(b, text, value, "ns", floor, 2, "%d-4-2-1: %.1f ns, bare %.1f ns", taps, value,
                     floor);
    crd_linear_clear(ctx, &l);
    crd_network_clear(ctx, &n);
    crd_coupling_destroy(c);
    crd_context_destroy(ctx);
}

static void network_case(benchmark* b)
{
    make_samples();
    network(b, 4);
    network(b, 9);
}

static void auto_case(benchmark* b)
{
    make_samples();
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_options o = crd_coupling_defaults();
    crd_coupling* c = NULL;
    o.step = step;
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &c));
    int64_t at = 0;
    double value = INFINITY;
    time_steps(c, &at, 2000); // until it has learned
    // 50 refreshes each, and short enough to be left alone by other processes
    for (int i = 0; i < REPEATS; i++) {
        value = fmin(value, time_steps(c, &at, 500));
    }
    benchmark_report(b, "coupling/auto", value, "ns", 2000, 1,
                     "%.0f ns against 2 us, refresh amortised, defaults", value);
    crd_coupling_destroy(c);
    crd_context_destroy(ctx);
}

// Beside the learning of the commands it has two elements of the kind auto in it, for the signal
// and for what the commands leave of it; all solve in parts.
static double time_commands(crd_coupling* c, int64_t* at, double* worst)
{
    enum { STEPS_OF_CASE = 500 };
    const int64_t first = *at, begin = crdi_now_ns();
    int64_t before = begin;
    for (int64_t n = first; n < first + STEPS_OF_CASE; n++) {
        const double stamp = (double)n * step;
        const double u[4] = {samples[(3 * n) & (SAMPLES - 1)], (double)(n / 70 % 2),
                             samples[(n + 5) & (SAMPLES - 1)], samples[(7 * n) & (SAMPLES - 1)]};
        crd_coupling_command(c, u, stamp + LATENCY * step);
        crd_coupling_push(c, samples[n & (SAMPLES - 1)], stamp, n);
        sink = crd_coupling_eval(c, stamp + (LATENCY + theta) * step);
        const int64_t now = crdi_now_ns();
        double* w = &worst[n - first];
        *w = fmin(*w, (double)(now - before));
        before = now;
    }
    *at = first + STEPS_OF_CASE;
    return (double)(before - begin) / STEPS_OF_CASE;
}

// The mean to `value`, the longest step to `worst`, ns.
static void measure_commands(crd_algorithm a, int commands, double* value, double* worst)
{
    make_samples();
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_options o = crd_coupling_defaults();
    crd_coupling* c = NULL;
    double least[500];
    int64_t at = 0;
    *value = INFINITY;
    *worst = 0;
    o.step = step;
    o.algorithm = a;
    o.commands = commands;
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &c));
    for (int i = 0; i < 500; i++) {
        least[i] = INFINITY;
    }
    for (int i = 0; i < REPEATS + 4; i++) {
        const double now = time_commands(c, &at, least);
        if (i >= 4) { *value = fmin(*value, now); } // until it has learned
    }
    for (int i = 0; i < 500; i++) {
        *worst = fmax(*worst, least[i]);
    }
    crd_coupling_destroy(c);
    crd_context_destroy(ctx);
}

// Three commands, 27 features.
static void commands_case(benchmark* b)
{
    double value, worst;
    measure_commands(CRD_ALGORITHM_COMMANDS, 3, &value, &worst);
    benchmark_report(b, "coupling/commands", value, "ns", 3000, 1,
                     "27 features: %.0f ns against 3 us", value);
    benchmark_report(b, "coupling/commands-peak", worst, "ns", 10000, 1,
                     "longest step %.1f us against 10 us", 1e-3 * worst);
}

// As many as auto finds at most: four commands, 40 features.
static void auto_commands_case(benchmark* b)
{
    double value, worst;
    measure_commands(CRD_ALGORITHM_AUTO, 4, &value, &worst);
    benchmark_report(b, "coupling/auto-commands", value, "ns", 4000, 1,
                     "40 features: %.0f ns against 4 us", value);
    benchmark_report(b, "coupling/auto-commands-peak", worst, "ns", 10000, 1,
                     "longest step %.1f us against 10 us", 1e-3 * worst);
}

// ---- many signals ------------------------------------------------------------------------------

static double time_bank(crd_coupling_bank* bank, const double* values, double* out, int64_t* at)
{
    enum { TIMES = 8 };
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < TIMES; i++) {
        const double stamp = (double)*at * step;
        crd_coupling_bank_push(bank, &values[*at % SAMPLES], stamp, *at);
        crd_coupling_bank_eval(bank, stamp + (LATENCY + theta) * step, out);
        (*at)++;
    }
    return (double)(crdi_now_ns() - begin) / (TIMES * SIGNALS);
}

static double time_many(crd_coupling** c, const double* values, double* out, int64_t* at)
{
    enum { TIMES = 2 };
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < TIMES; i++) {
        const double stamp = (double)*at * step, t = stamp + (LATENCY + theta) * step;
        for (int s = 0; s < SIGNALS; s++) {
            crd_coupling_push(c[s], values[*at % SAMPLES + s], stamp, *at);
            out[s] = crd_coupling_eval(c[s], t);
        }
        (*at)++;
    }
    return (double)(crdi_now_ns() - begin) / (TIMES * SIGNALS);
}

static void bank_of(benchmark* b, const char* name, crd_method method, int taps)
{
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_options o = options(method, taps);
    double* values = calloc(SAMPLES + SIGNALS, sizeof *values);
    double* out = calloc(SIGNALS, sizeof *out);
    crd_coupling** many = calloc(SIGNALS, sizeof *many);
    if (!values || !out || !many) { abort(); }
    crd_coupling_bank* bank = NULL;
    crd_coupling* single = NULL;
    for (int i = 0; i < SAMPLES + SIGNALS; i++) {
        values[i] = samples[i % SAMPLES];
    }
    benchmark_must(ctx, crd_coupling_bank_create(ctx, &o, SIGNALS, &bank));
    benchmark_must(ctx, crd_coupling_create(ctx, &o, &single));
    for (int s = 0; s < SIGNALS; s++) {
        benchmark_must(ctx, crd_coupling_create(ctx, &o, &many[s]));
    }
    int64_t at = 0, many_at = 0, single_at = 0;
    double value = INFINITY, scalar = INFINITY, alone = INFINITY;
    for (int i = 0; i < 60; i++) {
        value = fmin(value, time_bank(bank, values, out, &at));
        scalar = fmin(scalar, time_many(many, values, out, &many_at));
        alone = fmin(alone, time_element(single, &single_at));
    }
    char text[64];
    snprintf(text, sizeof text, "coupling/bank/%s", name);
    benchmark_report(b, text, value, "ns", scalar, 0.5,
                     "%.1f ns per signal of %d; elements %.1f ns, one alone %.1f ns", value,
                     SIGNALS, scalar, alone);
    for (int s = 0; s < SIGNALS; s++) {
        crd_coupling_destroy(many[s]);
    }
    crd_coupling_destroy(single);
    crd_coupling_bank_destroy(bank);
    crd_context_destroy(ctx);
    free(values);
    free(out);
    free(many);
}

static void bank_case(benchmark* b)
{
    make_samples();
    bank_of(b, "zoh", CRD_METHOD_ZOH, 0);
    bank_of(b, "eros", CRD_METHOD_EROS, 0);
    bank_of(b, "wiener9", CRD_METHOD_WIENER, 9);
    bank_of(b, "wiener25", CRD_METHOD_WIENER, 25);
}

// ---- the wave pair -----------------------------------------------------------------------------

// Both sides of a bond, an inertia J = 0.25 and a spring c = 60 with d = 3, 1 ms inside 10 ms.
// The floor is the same with the bare wave equations: no tank, nothing learned, nothing checked.
enum { INNER = 10, PAIR_STEPS = 2000 };

typedef struct bare_bond {
    double f, x; // speed of the inertia, stretch of the spring
    double q, p, sum[2];
} bare_bond;

__attribute__((ALONE)) static double bare_act(bare_bond* s, double own, int side)
{
    const double action = side ? (s->p - own) / 6 : 6 * own - s->q;
    s->sum[side] += 6 * (side ? action : own) + (side ? -own : action);
    return action;
}

static double time_bare(bare_bond* s)
{
    const int64_t t = crdi_now_ns();
    double f = 0;
    for (int n = 0; n < PAIR_STEPS; n++) {
        const double e = bare_act(s, s->f, 0), last = s->f;
        f = bare_act(s, 60 * s->x + 3 * f, 1);
        s->f -= 0.001 * (e + 0.1 * s->f - sin(0.01 * n)) / 0.25;
        s->x += 0.001 * (f - 0.2 * last);
        if (n % INNER == INNER - 1) {
            s->p = s->sum[0] / INNER;
            s->q = s->sum[1] / INNER;
            s->sum[0] = s->sum[1] = 0;
        }
    }
    sink = f;
    return (double)(crdi_now_ns() - t) / PAIR_STEPS;
}

static double time_pair(crd_pair_port* a, crd_pair_port* b, bare_bond* s, double* now)
{
    const int64_t t = crdi_now_ns();
    double f = 0;
    crd_pair_packet from_a, from_b;
    for (int n = 0; n < PAIR_STEPS; n++) {
        const double e = crd_pair_act(a, s->f, *now), last = s->f;
        const double x = s->x;
        f = crd_pair_act(b, 60 * x + 3 * f, *now);
        s->f -= 0.001 * (e + 0.1 * s->f - sin(0.01 * n)) / 0.25;
        s->x += 0.001 * (f - 0.2 * last);
        crd_pair_done(a, 0.5 * (last + s->f));
        crd_pair_done(b, 30 * (x + s->x) + 3 * f);
        *now += 0.001;
        if (n % INNER == INNER - 1) {
            crd_pair_send(a, *now, &from_a);
            crd_pair_send(b, *now, &from_b);
            crd_pair_receive(a, &from_b, *now);
            crd_pair_receive(b, &from_a, *now);
        }
    }
    sink = f;
    return (double)(crdi_now_ns() - t) / PAIR_STEPS;
}

static void pair_case(benchmark* b)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_pair_port pair[2];
    for (int i = 0; i < 2; i++) {
        crd_pair_options o = crd_pair_defaults(i ? CRD_PAIR_OWNS_EFFORT : CRD_PAIR_OWNS_FLOW);
        o.step = 0.001;
        o.macro = 0.01;
        o.impedance = 6;
        benchmark_must(ctx, crd_pair_init(ctx, &pair[i], &o));
    }
    bare_bond bare = {0}, own = {0};
    double floor = INFINITY, value = INFINITY, now = 0;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, time_bare(&bare));
        bare = (bare_bond){0}; // it may not be stable
        value = fmin(value, time_pair(&pair[0], &pair[1], &own, &now));
    }
    benchmark_report(
        b, "coupling/pair", value, "ns", floor, 10,
        "%.0f ns per inner step for both sides with plants and packets, bare waves %.0f ns", value,
        floor);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_coupling_cases[] = {{"coupling/linear", linear_case},
                                                   {"coupling/network", network_case},
                                                   {"coupling/auto", auto_case},
                                                   {"coupling/commands", commands_case},
                                                   {"coupling/auto-commands", auto_commands_case},
                                                   {"coupling/bank", bank_case},
                                                   {"coupling/pair", pair_case},
                                                   {NULL, NULL}};
