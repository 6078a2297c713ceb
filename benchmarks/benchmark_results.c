// results/record: 200 signals at 1 kHz as MF4 against CSV, time and size, and what recording costs
// the step. BENCH_SECONDS in the environment is how much to record, 60 s unless told; 600 is full
// size and needs 1 GB of memory and 4 GB of disk.
//
// Continuous signals are sums of two sines, with frequencies spread evenly in the logarithm from
// 0.001 to 10 Hz (temperatures to shafts), every other one with an offset of three amplitudes: all
// digits of the mantissa are in use.
#include "benchmark.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SIGNALS = 200, WORDS = SIGNALS + 1, RATE = 1000, REPEATS = 5 };

typedef struct mix {
    const char* name;
    int noise, continuous, seldom, integers; // the rest is Boolean
    double time_limit, size_limit;           // of MF4 against CSV, 0: for information
} mix;

static const mix mixes[] = {
    {"mix", 0, 140, 30, 20, 1.0 / 3, 0.25},
    {"continuous", 0, 200, 0, 0, 0, 0},
    {"seldom", 0, 0, 150, 30, 0, 0},
    {"noise", 200, 0, 0, 0, 0, 0},
};

static uint64_t next_random(uint64_t* s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *s ^ *s >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
}

static double uniform(uint64_t* s)
{
    return (double)(next_random(s) >> 11) * 0x1p-53;
}

static void fill_continuous(crd_word* at, int64_t rows, int i, int count, uint64_t* seed)
{
    const double f = 0.001 * pow(1e4, (double)i / count);
    const double amplitude = pow(10, floor(6 * uniform(seed)) - 2);
    const double offset = i % 2 ? 3 * amplitude : 0;
    const double phase = 6 * uniform(seed);
    for (int64_t k = 0; k < rows; k++, at += WORDS) {
        const double t = (double)k / RATE;
        at->real = offset +
                   amplitude * (sin(2 * M_PI * f * t + phase) + 0.3 * sin(2 * M_PI * 2.7 * f * t));
    }
}

// A set point with few digits, changed every some seconds.
static void fill_seldom(crd_word* at, int64_t rows, uint64_t* seed)
{
    double value = floor(1000 * uniform(seed)) / 10;
    for (int64_t k = 0; k < rows; k++, at += WORDS) {
        if (next_random(seed) % (5 * RATE) == 0) { value = floor(1000 * uniform(seed)) / 10; }
        at->real = value;
    }
}

// Counters, states and raw values of sensors.
static void fill_integer(crd_word* at, int64_t rows, int i, uint64_t* seed)
{
    int64_t value = 0;
    for (int64_t k = 0; k < rows; k++, at += WORDS) {
        if (i % 3 == 0) {
            value = k / 10;
        } else if (i % 3 == 1) {
            if (next_random(seed) % RATE == 0) { value = (int64_t)(next_random(seed) % 6); }
        } else {
            value =
                2048 + (int64_t)(1000 * sin((double)k / 300)) + (int64_t)(next_random(seed) % 4);
        }
        at->integer = value;
    }
}

static void fill_boolean(crd_word* at, int64_t rows, uint64_t* seed)
{
    int64_t value = 0;
    for (int64_t k = 0; k < rows; k++, at += WORDS) {
        if (next_random(seed) % RATE == 0) { value = !value; }
        at->integer = value;
    }
}

static crd_type type_of(const mix* m, int i)
{
    return i < m->noise + m->continuous + m->seldom                 ? CRD_FLOAT64
           : i < m->noise + m->continuous + m->seldom + m->integers ? CRD_INT32
                                                                    : CRD_BOOLEAN;
}

static void fill(const mix* m, crd_word* words, int64_t rows)
{
    uint64_t seed = 1;
    for (int64_t k = 0; k < rows; k++) {
        words[k * WORDS].real = (double)k / RATE;
    }
    for (int i = 0; i < SIGNALS; i++) {
        crd_word* at = words + 1 + i;
        const int after_noise = i - m->noise;
        if (after_noise < 0) {
            for (int64_t k = 0; k < rows; k++) {
                at[k * WORDS].real = uniform(&seed) - 0.5;
            }
        } else if (after_noise < m->continuous) {
            fill_continuous(at, rows, after_noise, m->continuous, &seed);
        } else if (type_of(m, i) == CRD_FLOAT64) {
            fill_seldom(at, rows, &seed);
        } else if (type_of(m, i) == CRD_INT32) {
            fill_integer(at, rows, i, &seed);
        } else {
            fill_boolean(at, rows, &seed);
        }
    }
}

static crd_recorder* open_recorder(crd_context* ctx, const mix* m, const char* path)
{
    static char names[SIGNALS][16];
    crd_column columns[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        snprintf(names[i], sizeof names[i], "unit%d.y[%d]", i / 10, i % 10);
        columns[i] =
            (crd_column){.name = names[i], .unit = "", .description = "", .type = type_of(m, i)};
    }
    crd_recorder* r = NULL;
    benchmark_must(
        ctx,
        crd_recorder_create(
            ctx, &(crd_recorder_options){.path = path, .columns = columns, .column_count = SIGNALS},
            &r));
    return r;
}

// From the first row until the file is complete, in s.
static double record(const mix* m, const crd_word* words, int64_t rows, const char* path,
                     double* bytes)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_recorder* r = open_recorder(ctx, m, path);
    const int64_t begin = crdi_now_ns();
    for (int64_t k = 0; k < rows; k++) {
        crd_word* row = crd_recorder_begin(r);
        if (!row) { break; }
        memcpy(row, words + k * WORDS, WORDS * sizeof *row);
        crd_recorder_end(r);
    }
    benchmark_must(ctx, crd_recorder_finish(r));
    const double s = 1e-9 * (double)(crdi_now_ns() - begin);
    crd_recorder_destroy(r);
    crd_context_destroy(ctx);
    struct stat info;
    *bytes = stat(path, &info) == 0 ? (double)info.st_size : NAN;
    remove(path);
    return s;
}

// What begin, copying a row and end take, in ns per value: in bursts that the ring has room for.
static double step_cost(const mix* m, const crd_word* words, int64_t rows, const char* path)
{
    enum { BURST = 1000 };
    crd_context* ctx = crd_context_create(NULL);
    crd_recorder* r = open_recorder(ctx, m, path);
    double best = INFINITY;
    for (int64_t first = 0; first + BURST <= rows && first < 20 * BURST; first += BURST) {
        const int64_t begin = crdi_now_ns();
        for (int64_t k = first; k < first + BURST; k++) {
            crd_word* row = crd_recorder_begin(r);
            if (!row) { break; }
            memcpy(row, words + k * WORDS, WORDS * sizeof *row);
            crd_recorder_end(r);
        }
        best = fmin(best, (double)(crdi_now_ns() - begin) / BURST / WORDS);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    benchmark_must(ctx, crd_recorder_finish(r));
    crd_recorder_destroy(r);
    crd_context_destroy(ctx);
    remove(path);
    return best;
}

static double copy_cost(const crd_word* words, int64_t rows)
{
    enum { RING = 4096, BURST = 1000 }; // as large as the recorder's
    crd_word* ring = calloc(RING * WORDS, sizeof *ring);
    if (!ring) { abort(); }
    double best = INFINITY;
    for (int64_t first = 0; first + BURST <= rows && first < 20 * BURST; first += BURST) {
        const int64_t begin = crdi_now_ns();
        for (int64_t k = first; k < first + BURST; k++) {
            memcpy(ring + k % RING * WORDS, words + k * WORDS, WORDS * sizeof *ring);
            __asm__ volatile("" ::: "memory");
        }
        best = fmin(best, (double)(crdi_now_ns() - begin) / BURST / WORDS);
    }
    free(ring);
    return best;
}

static void run_mix(benchmark* b, const mix* m, crd_word* words, int64_t rows)
{
    const char* csv = BENCHMARK_SCRATCH "/results.csv";
    const char* mf4 = BENCHMARK_SCRATCH "/results.mf4";
    const double values = (double)rows * SIGNALS;
    double csv_time = INFINITY, mf4_time = INFINITY, csv_bytes = 0, mf4_bytes = 0;
    fill(m, words, rows);
    for (int i = 0; i < (rows > 100 * RATE ? 2 : REPEATS); i++) {
        csv_time = fmin(csv_time, record(m, words, rows, csv, &csv_bytes));
        mf4_time = fmin(mf4_time, record(m, words, rows, mf4, &mf4_bytes));
    }
    char name[64];
    snprintf(name, sizeof name, "results/mf4-time/%s", m->name);
    benchmark_report(b, name, mf4_time, "s", csv_time, m->time_limit,
                     "%.0f M values: MF4 %.2f s, CSV %.2f s (%.1f and %.1f ns a value)",
                     values / 1e6, mf4_time, csv_time, 1e9 * mf4_time / values,
                     1e9 * csv_time / values);
    snprintf(name, sizeof name, "results/mf4-size/%s", m->name);
    benchmark_report(b, name, mf4_bytes / 1e6, "MB", csv_bytes / 1e6, m->size_limit,
                     "MF4 %.0f MB, CSV %.0f MB (%.2f and %.2f bytes a value)", mf4_bytes / 1e6,
                     csv_bytes / 1e6, mf4_bytes / values, csv_bytes / values);
    if (m != &mixes[0]) { return; }
    const double step = step_cost(m, words, rows, mf4), copy = copy_cost(words, rows);
    benchmark_report(b, "results/step", step, "ns", 20, 1,
                     "%.2f ns a value of 20 ns; copying the rows alone %.2f ns", step, copy);
}

static void record_case(benchmark* b)
{
    const char* text = getenv("BENCH_SECONDS");
    const int64_t rows = RATE * (text && atoi(text) > 0 ? atoi(text) : 60);
    crd_word* words = malloc((size_t)rows * WORDS * sizeof *words);
    if (!words) { abort(); }
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        run_mix(b, &mixes[i], words, rows);
    }
    free(words);
}

const benchmark_case benchmark_results_cases[] = {{"results/record", record_case}, {NULL, NULL}};
