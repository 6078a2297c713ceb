// cardan-bench [--json FILE] [--python INTERPRETER] [--long SECONDS] [PREFIX ...]: runs the
// benchmarks whose names start with a prefix, prints a table, writes JSON. Exit code 1 if a limit
// is not kept.
#include "benchmark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct benchmark {
    benchmark_result* results;
    size_t count, capacity;
    const char* python;
    double seconds;
};

void benchmark_must(crd_context* ctx, crd_status st)
{
    if (st < 0) {
        fprintf(stderr, "cardan-bench: %s\n", crd_error_text(ctx));
        exit(1);
    }
}

const char* benchmark_python(const benchmark* b)
{
    return b->python;
}

double benchmark_seconds(const benchmark* b)
{
    return b->seconds;
}

void benchmark_report(benchmark* b, const char* name, double value, const char* unit, double floor,
                      double limit, const char* format, ...)
{
    if (b->count == b->capacity) {
        b->capacity = 2 * b->capacity + 16;
        b->results = realloc(b->results, b->capacity * sizeof *b->results);
        if (!b->results) { abort(); }
    }
    benchmark_result* r = &b->results[b->count++];
    *r = (benchmark_result){
        .value = value, .unit = unit, .floor = floor, .ratio = value / floor, .limit = limit};
    snprintf(r->name, sizeof r->name, "%s", name);
    va_list args;
    va_start(args, format);
    vsnprintf(r->note, sizeof r->note, format, args);
    va_end(args);
    const bool ok = limit == 0 || r->ratio <= limit;
    char bound[32] = "";
    if (limit > 0) { snprintf(bound, sizeof bound, "<= %g", limit); }
    printf("%-34s %8.3f  %-8s %-4s  %s\n", r->name, r->ratio, bound,
           limit == 0 ? ""
           : ok       ? "ok"
                      : "OVER",
           r->note);
    fflush(stdout);
}

static int write_json(const benchmark* b, const char* path)
{
    FILE* f = fopen(path, "w");
    if (!f) {
        perror(path);
        return 1;
    }
    fputs("[", f);
    for (size_t i = 0; i < b->count; i++) {
        const benchmark_result* r = &b->results[i];
        fprintf(f,
                "%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"floor\": %.6g, "
                "\"ratio\": %.4f, \"limit\": ",
                i ? "," : "", r->name, r->value, r->unit, r->floor, r->ratio);
        if (r->limit > 0) {
            fprintf(f, "%g", r->limit);
        } else {
            fputs("null", f);
        }
        fprintf(f, ", \"ok\": %s}", r->limit == 0 || r->ratio <= r->limit ? "true" : "false");
    }
    fputs("\n]\n", f);
    return fclose(f) == 0 ? 0 : 1;
}

static bool is_wanted(const char* name, int count, char** prefixes)
{
    for (int i = 0; i < count; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) { return true; }
    }
    return count == 0;
}

int main(int argc, char** argv)
{
    static const benchmark_case* const groups[] = {
        benchmark_master_cases, benchmark_fmi_cases,      benchmark_results_cases,
        benchmark_read_cases,   benchmark_coupling_cases, benchmark_learn_cases,
        benchmark_dcp_cases,    benchmark_dcp_net_cases,  benchmark_circuit_cases,
        benchmark_twin_cases,   benchmark_live_cases,     benchmark_testbench_cases,
        benchmark_worker_cases, benchmark_wire_cases,     benchmark_study_cases,
        benchmark_peer_cases};
    setenv("CARDAN_ISOLATE", "none", 1); // rows of worker/ say it themselves
    benchmark b = {.python = "", .seconds = 10};
    const char* json = NULL;
    int first = 1, met = 0;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        const char* value = first + 1 < argc ? argv[first + 1] : NULL;
        if (value && strcmp(argv[first], "--json") == 0) {
            json = value;
        } else if (value && strcmp(argv[first], "--python") == 0) {
            b.python = value;
        } else if (value && strcmp(argv[first], "--long") == 0 && atof(value) > 0) {
            b.seconds = atof(value);
        } else {
            fprintf(stderr, "usage: cardan-bench [--json FILE] [--python FILE] [--long SECONDS] "
                            "[PREFIX ...]\n");
            return 2;
        }
    }
    printf("%-34s %8s  %-8s\n", "benchmark", "ratio", "limit");
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (const benchmark_case* c = groups[g]; c->name; c++) {
            if (!is_wanted(c->name, argc - first, argv + first)) { continue; }
            c->run(&b);
            met++;
        }
    }
    if (!met) { fprintf(stderr, "cardan-bench: no benchmark has such a name\n"); }
    bool ok = met > 0;
    for (size_t i = 0; i < b.count; i++) {
        ok = ok && (b.results[i].limit == 0 || b.results[i].ratio <= b.results[i].limit);
    }
    const int written = json ? write_json(&b, json) : 0;
    free(b.results);
    return ok ? written : 1;
}
