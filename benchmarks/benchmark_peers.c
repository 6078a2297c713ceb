// master/peer: the same chain of FMUs in other masters, where PyPI has them. python: what the
// module costs beside C.
#include "benchmark.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A script in Python that prints lines; false: there is no interpreter.
static bool measure(benchmark* b, const char* script, double number,
                    void (*take)(benchmark* b, const char* line, double* state), double* state)
{
    if (!benchmark_python(b)[0]) {
        printf("%s: no --python, left out\n", script);
        return false;
    }
    char command[1024], line[512];
    snprintf(command, sizeof command, "%s %s/%s %s %s %s %.6g", benchmark_python(b),
             BENCHMARK_SOURCE, script, BENCHMARK_COMMAND, BENCHMARK_FMUS, BENCHMARK_SCRATCH,
             number);
    FILE* f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        take(b, line, state);
    }
    if (!f || pclose(f) != 0) {
        fprintf(stderr, "cardan-bench: '%s' failed\n", command);
        exit(1);
    }
    return true;
}

// peers.py: "name value", us per FMU and step of Cardan's command and of each peer, all measured
// over whole runs in the same way.
static void take_peer(benchmark* b, const char* line, double* own)
{
    char name[64], full[80];
    double value = 0;
    if (sscanf(line, "%63s %lf", name, &value) != 2) { return; }
    if (strcmp(name, "cardan") == 0) {
        *own = value;
    } else if (*own > 0) {
        snprintf(full, sizeof full, "master/peer/%s", name);
        benchmark_report(b, full, *own, "us", value, 1,
                         "cardan %.3f us per FMU and step, %s %.3f us", *own, name, value);
    }
}

static void peer_case(benchmark* b)
{
    double own = 0;
    if (measure(b, "peers.py", 0, take_peer, &own) && own <= 0) {
        fprintf(stderr, "cardan-bench: peers.py measured nothing\n");
        exit(1);
    }
}

// us of advance(1) and get of README's oscillator in process
static double step_and_get(void)
{
    enum { STEPS = 100000, REPEATS = 5 };
    static const char text[] =
        "{\"units\": {\"first\": {\"fmu\": \"" BENCHMARK_FMUS
        "/fmi2/lo_fd1.fmu\", \"isolate\": \"none\"}, \"second\": {\"fmu\": \"" BENCHMARK_FMUS
        "/fmi2/lo_fd2.fmu\", \"isolate\": \"none\"}}, \"connections\": ["
        "{\"from\": \"first.f\", \"to\": \"second.f\"}, {\"from\": \"second.x2\", \"to\": "
        "\"first.x2\"}, "
        "{\"from\": \"second.v2\", \"to\": \"first.v2\"}], "
        "\"run\": {\"step\": 0.001, \"stop\": 1e9, \"monitor\": \"none\", \"guard\": \"off\"}}";
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    crd_master* m = NULL;
    int handle = 0;
    double best = INFINITY, sum = 0, x = 0;
    crd_master_options o = crd_master_defaults();
    o.columns = true;
    benchmark_must(ctx, crd_system_create(ctx, &s));
    benchmark_must(ctx, crd_system_amend(s, text, sizeof text - 1, "oscillator", 1));
    benchmark_must(ctx, crd_master_create(ctx, s, &o, &m));
    benchmark_must(ctx, crd_master_initialize(m));
    benchmark_must(ctx, crd_master_find(m, "second.x2", &handle));
    for (int k = 0; k < REPEATS; k++) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (int i = 0; i < STEPS; i++) {
            benchmark_must(ctx, crd_master_advance(m, 1));
            benchmark_must(ctx, crd_master_get(m, handle, &x));
            sum += x;
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        best = fmin(best, 1e6 * (double)(to.tv_sec - from.tv_sec) +
                              1e-3 * (double)(to.tv_nsec - from.tv_nsec));
    }
    crd_master_cancel(m);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return isfinite(sum) ? best / STEPS : NAN;
}

// python.py: "name value unit floor limit note"
static void take_row(benchmark* b, const char* line, double* rows)
{
    char name[64], unit[16];
    double value = 0, floor = 0, limit = 0;
    int at = 0;
    if (sscanf(line, "%63s %lf %15s %lf %lf %n", name, &value, unit, &floor, &limit, &at) < 5) {
        return;
    }
    const char* kind = strcmp(unit, "ms") == 0 ? "ms" : strcmp(unit, "us") == 0 ? "us" : "s";
    benchmark_report(b, name, value, kind, floor, limit, "%.*s", (int)strcspn(line + at, "\n"),
                     line + at);
    *rows += 1;
}

static void python_case(benchmark* b)
{
    double rows = 0;
    if (measure(b, "python.py", step_and_get(), take_row, &rows) && rows < 6) {
        fprintf(stderr, "cardan-bench: python.py printed %g rows\n", rows);
        exit(1);
    }
}

const benchmark_case benchmark_peer_cases[] = {
    {"master/peer", peer_case}, {"python", python_case}, {NULL, NULL}};
