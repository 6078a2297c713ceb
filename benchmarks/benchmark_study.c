// study/...: many runs of the oscillator of two FMUs, 1,000 steps and three numbers kept of each.
// Time is that of the processor, of all processes, so that the number of cores and their load do
// not count; by turns, and the median counts.
#include "benchmark.h"
#include "cardan/system.h"
#include "shared/study.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 5, RUNS = 1500, BARE_RUNS = 300, STEPS = 1000, KEPT = 3, MILLION = 1000000 };

static const char folder[] = BENCHMARK_SCRATCH "/study";
static const char system_text[] =
    "cardan: 1\nunits:\n  first: { fmu: " BENCHMARK_FMUS "/fmi2/lo_fd1.fmu }\n"
    "  second: { fmu: " BENCHMARK_FMUS "/fmi2/lo_fd2.fmu }\n"
    "connections: [second.x2 -> first.x2, second.v2 -> first.v2, first.f -> second.f]\n"
    "run: { step: 1 ms, stop: 1 s, scheme: jacobi, predict: hold }\n";
static const char study_text[] =
    "study: 1\nsystem: oscillator.yaml\nvary: { second.k2: { uniform: [500, 1500] } }\n"
    "sample: { method: random, count: %d }\n"
    "keep: { x2: second.x2, peak: max second.x2, v: rms second.v2 }\n";

static void write_text(const char* name, const char* format, int number)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    fprintf(f, format, number); // NOLINT: one of the texts above
    fclose(f);
}

static void make_folder(int runs)
{
    static const char* const old[] = {"s.study", "s.study-wal", "s.study-shm"};
    char path[512];
    mkdir(folder, 0777);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, old[i]);
        unlink(path);
    }
    write_text("oscillator.yaml", system_text, 0);
    write_text("s.yaml", study_text, runs);
}

// Seconds of the processor that a command of the study takes, with all its processes.
static double command_time(const char* const* words)
{
    const char* line[16] = {BENCHMARK_COMMAND, "study"};
    struct rusage used = {0};
    int code = 0, n = 2;
    while (*words) {
        line[n++] = *words++;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere < 0 || dup2(nowhere, 1) < 0 || chdir(folder) != 0) { _exit(1); }
        execv(line[0], (char* const*)line);
        _exit(1);
    }
    if (pid < 0 || wait4(pid, &code, 0, &used) != pid || code != 0) {
        fprintf(stderr, "cardan-bench: study/...: cardan study %s has failed\n", line[2]);
        exit(1);
    }
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Steps alone, of a run that is made anew each time: seconds of one run.
static double bare_steps(crd_context* ctx)
{
    double sum = 0;
    crd_system* s = NULL;
    crd_master_options o = crd_master_defaults();
    char path[512];
    o.no_statistics = true;
    snprintf(path, sizeof path, "%s/oscillator.yaml", folder);
    benchmark_must(ctx, crd_unit_store_create(ctx, &o.store));
    benchmark_must(
        ctx, crd_system_load_on(ctx, system_text, strlen(system_text), path, crd_ssp_read, &s));
    for (int i = 0; i < BARE_RUNS; i++) {
        crd_master* m = NULL;
        benchmark_must(ctx, crd_master_create(ctx, s, &o, &m));
        benchmark_must(ctx, crd_master_initialize(m));
        const double begin = processor_time();
        benchmark_must(ctx, crd_master_advance(m, STEPS));
        sum += processor_time() - begin;
        crd_master_destroy(m);
    }
    crd_system_destroy(s);
    crd_unit_store_destroy(o.store);
    return sum / BARE_RUNS;
}

static int compare_numbers(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void local_case(benchmark* b)
{
    static const char* const words[] = {"run", "s.yaml", "--quiet", NULL};
    double ratios[TURNS], bare[TURNS];
    crd_context* ctx = crd_context_create(NULL);
    for (int i = 0; i < TURNS; i++) {
        make_folder(RUNS);
        bare[i] = bare_steps(ctx);
        const double all = command_time(words);
        const double start = command_time(words); // where nothing is left to do
        ratios[i] = (all - start) / RUNS / bare[i];
    }
    qsort(ratios, TURNS, sizeof *ratios, compare_numbers);
    qsort(bare, TURNS, sizeof *bare, compare_numbers);
    const double floor = bare[TURNS / 2], each = ratios[TURNS / 2] * floor;
    benchmark_report(b, "study/local", 1e3 * each, "ms", 1e3 * floor, 1.3,
                     "a run of 1,000 steps: %.2f ms of a core, its steps alone %.2f", 1e3 * each,
                     1e3 * floor);
    benchmark_report(b, "study/hour", 1e3 * each, "ms", 7.2, 1,
                     "%.2g runs an hour on two cores, %.2g wanted", 7200 / each, 1e6);
    crd_context_destroy(ctx);
}

// ---- a million rows ----------------------------------------------------------------------------

// The study with all its points, and numbers as if they had been run.
static void make_million(crd_context* ctx)
{
    static const char sql[] =
        "UPDATE runs SET state = 2, seconds = 1e-3, x2 = 1e-3*id, "
        "peak = \"second.k2\"*0.01 + id*104729%1000*0.01, v = id*1299709%1000*0.1;"
        "PRAGMA wal_checkpoint(TRUNCATE)";
    char yaml[512], path[512], database[512];
    const char* about = "{\"cardan\": \"0\", \"units\": [], \"system\": {}}";
    crd_arena arena;
    crdi_study_file f;
    crdi_study* s = NULL;
    sqlite3* db = NULL;
    int64_t added = 0;
    make_folder(MILLION);
    crd_arena_init(&arena, ctx);
    snprintf(yaml, sizeof yaml, "%s/s.yaml", folder);
    snprintf(path, sizeof path, "%s/s.study", folder);
    snprintf(database, sizeof database, "%s", path);
    benchmark_must(ctx, crdi_study_file_read(ctx, NULL, 0, yaml, &arena, &f));
    benchmark_must(ctx, crdi_study_sync(ctx, database, &f, about, &s, &added));
    crdi_study_close(s);
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "cardan-bench: %s: %s\n", path, sqlite3_errmsg(db));
        exit(1);
    }
    sqlite3_close(db);
    crd_arena_clear(&arena);
}

static void million_case(benchmark* b)
{
    static const struct {
        const char *name, *words[8];
    } commands[] = {
        {"study/million/show", {"show", "s.study"}},
        {"study/million/filter",
         {"show", "s.study", "--where", "peak < 10 AND v > 50", "--sort", "peak"}},
        {"study/million/plot", {"plot", "s.study", "--scatter", "second.k2,peak", "-o", "s.svg"}},
    };
    char path[512];
    struct stat info = {0};
    crd_context* ctx = crd_context_create(NULL);
    make_million(ctx);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        double best = 1e9;
        for (int k = 0; k < 3; k++) {
            const double t = command_time(commands[i].words);
            best = t < best ? t : best;
        }
        benchmark_report(b, commands[i].name, best, "s", 1, 1, "1,000,000 rows: %.2f s", best);
    }
    snprintf(path, sizeof path, "%s/s.study", folder);
    const double each = stat(path, &info) == 0 ? (double)info.st_size / MILLION : 1e9;
    benchmark_report(b, "study/size", each / KEPT, "bytes", 200, 1,
                     "%.0f bytes a run, %.0f for each number that is kept", each, each / KEPT);
    make_folder(1);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_study_cases[] = {
    {"study/local", local_case}, {"study/million", million_case}, {NULL, NULL}};
