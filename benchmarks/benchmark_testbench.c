// The virtual test field: how much of a processor an emulated bench takes, and how fast the hybrid
// car drives the WLTC with all models local. CPU time of one thread; of several turns the least
// counts.
#include "benchmark.h"
#include "shared/testbench_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 7, MILLISECONDS = 5000 };

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the plants --------------------------------------------------------------------------------

// What a bench cannot do without, at 10 kHz: a speed controller, the lags of two torques, a shaft.
typedef struct bare {
    double omega, integral, load, torque;
} bare;

static double bare_milliseconds(bare* b, int count)
{
    const double dt = 1e-4, inertia = 0.33, gain = 12, reset = 30;
    double sum = 0;
    for (int k = 0; k < 10 * count; k++) {
        const double error = 200 - b->omega, most = fmin(540, 215e3 / fmax(b->omega, 1));
        const double demand = gain * error + b->integral;
        const double used = fmax(-most, fmin(demand, most));
        b->integral += used == demand ? reset * error * dt : 0;
        b->load += (used - b->load) * dt / 3e-3;
        b->torque += (100 - b->torque) * dt / 2e-3;
        b->omega += (b->load + b->torque - 1 - 0.002 * b->omega) * dt / inertia;
        sum += b->omega;
    }
    return sum;
}

static volatile double seen; // so that the work cannot vanish

static double time_floor(void)
{
    double least = INFINITY;
    for (int i = 0; i < TURNS; i++) {
        bare b = {0};
        const double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
        seen = bare_milliseconds(&b, MILLISECONDS);
        least = fmin(least, clock_of(CLOCK_THREAD_CPUTIME_ID) - begin);
    }
    return least / MILLISECONDS;
}

static double time_plant(crd_context* ctx, crdi_testbench_kind kind)
{
    static const struct {
        const char* name;
        double value;
    } sets[] = {{"speed_ref", 2000},
                {"torque_ref", 40},
                {"pedal_ref", 30},
                {"voltage_ref", 350},
                {"oil_ref", 40}};
    const crdi_testbench_options opt = crdi_testbench_defaults(kind);
    crdi_testbench* t = NULL;
    double least = INFINITY;
    benchmark_must(ctx, crdi_testbench_create(ctx, &opt, &t));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const int signal = crdi_testbench_find(kind, sets[i].name);
        const double scale = kind == CRDI_TESTBENCH_BACK_TO_BACK ? 0.01 : 1;
        if (signal >= 0) { crdi_testbench_set(t, signal, scale * sets[i].value); }
    }
    for (int i = 0; i < TURNS; i++) {
        const double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
        for (int k = 0; k < MILLISECONDS; k++) {
            crdi_testbench_step(t, 1e-3);
        }
        least = fmin(least, clock_of(CLOCK_THREAD_CPUTIME_ID) - begin);
    }
    const int speed = crdi_testbench_find(kind, "speed"); // a battery has none
    seen = crdi_testbench_measured(t, speed < 0 ? crdi_testbench_find(kind, "voltage") : speed);
    crdi_testbench_destroy(t);
    return least / MILLISECONDS;
}

static void run_plants(benchmark* b)
{
    crd_context* ctx = crd_context_create(NULL);
    const double least = time_floor();
    for (int i = 0; i < CRDI_TESTBENCH_KIND_COUNT; i++) {
        char name[64];
        const double t = time_plant(ctx, (crdi_testbench_kind)i);
        snprintf(name, sizeof name, "testbench/plant-%s", crdi_testbench_kind_name(i));
        benchmark_report(b, name, 1e9 * t, "ns", 1e9 * least, 5,
                         "per ms of the benchmark; %.0f times as fast as real time", 1e-3 / t);
    }
    crd_context_destroy(ctx);
}

// ---- the cycle ---------------------------------------------------------------------------------

static char* read_text(const char* path)
{
    FILE* f = fopen(path, "rb");
    char* text = calloc(1, 1 << 16);
    if (!f || !text || fread(text, 1, (1 << 16) - 1, f) == 0) {
        fprintf(stderr, "cardan-bench: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    return text;
}

static char* replace(char* text, const char* old, const char* new)
{
    char* out = calloc(1, 1 << 17);
    size_t n = 0;
    if (!out) { abort(); }
    for (const char* at = text; *at;) {
        const bool found = strncmp(at, old, strlen(old)) == 0;
        const size_t length = found ? strlen(new) : 1;
        if (n + length >= (1 << 17)) { abort(); }
        memcpy(out + n, found ? new : at, length);
        n += length;
        at += found ? strlen(old) : 1;
    }
    free(text);
    return out;
}

// Wall time: the run may use what the machine has, and reads its cycle.
static double drive(crd_context* ctx, const char* text)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    benchmark_must(ctx,
                   crd_system_parse(ctx, text, strlen(text), BENCHMARK_SCRATCH "/wltc.yaml", &s));
    benchmark_must(ctx, crd_master_create(ctx, s, NULL, &m));
    const double begin = clock_of(CLOCK_MONOTONIC);
    benchmark_must(ctx, crd_master_run(m));
    const double taken = clock_of(CLOCK_MONOTONIC) - begin;
    crd_master_destroy(m);
    crd_system_destroy(s);
    return taken;
}

// The goal is 500 times real time; without the cycle (cmake/wltc.sh) the NEDC stands in.
static void run_cycle(benchmark* b)
{
    static const char wltc[] = BENCHMARK_SCRATCH "/../cycles/wltc3b.csv";
    static const char nedc[] = BENCHMARK_SOURCE "/../examples/powertrain/nedc.csv";
    const bool there = access(wltc, R_OK) == 0;
    const double length = there ? 1800 : 1180, goal = 500;
    crd_context* ctx = crd_context_create(NULL);
    char stop[32];
    snprintf(stop, sizeof stop, "stop: %g s", length);
    char* text = read_text(BENCHMARK_SOURCE "/../examples/powertrain/hybrid.yaml");
    text = replace(text, "../../build/fmus", BENCHMARK_FMUS);
    text = replace(text, "nedc.csv", there ? wltc : nedc);
    text = replace(text, "stop: 1180 s", stop);
    text = replace(text, "file: hybrid.mf4", "file: " BENCHMARK_SCRATCH "/wltc.mf4");
    double least = INFINITY;
    for (int i = 0; i < 3; i++) {
        least = fmin(least, drive(ctx, text));
    }
    benchmark_report(b, there ? "testbench/wltc" : "testbench/nedc", least, "s", length / goal, 1,
                     "%g s of driving, %.0f times as fast as real time, goal %g", length,
                     length / least, goal);
    free(text);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_testbench_cases[] = {
    {"testbench/plant", run_plants}, {"testbench/wltc", run_cycle}, {0}};
