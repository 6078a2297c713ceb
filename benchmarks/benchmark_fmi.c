// fmi/import: an FMU with 100 000 variables, against expat alone over the same file.
#include "benchmark.h"

#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 5 };

static char* read_file(const char* path, size_t* length)
{
    FILE* f = fopen(path, "rb");
    if (!f) { return NULL; }
    fseek(f, 0, SEEK_END);
    *length = (size_t)ftell(f);
    rewind(f);
    char* text = malloc(*length);
    if (text && fread(text, 1, *length, f) != *length) { *length = 0; }
    fclose(f);
    return text;
}

static double run_expat(const char* xml, size_t length)
{
    const int64_t begin = crdi_now_ns();
    XML_Parser p = XML_ParserCreate(NULL);
    if (XML_Parse(p, xml, (int)length, XML_TRUE) != XML_STATUS_OK) { abort(); }
    XML_ParserFree(p);
    return 1e-9 * (double)(crdi_now_ns() - begin);
}

static double run_import(const char* path, int32_t* variables)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu_options opt = crd_fmu_defaults();
    crd_fmu* fmu = NULL;
    const int64_t begin = crdi_now_ns();
    benchmark_must(ctx, crd_fmu_open(ctx, path, &opt, &fmu));
    const double s = 1e-9 * (double)(crdi_now_ns() - begin);
    *variables = crd_fmu_describe(fmu)->variable_count;
    crd_fmu_close(fmu);
    crd_context_destroy(ctx);
    return s;
}

// Largest resident size of a process that does nothing but the import, in MB.
static double import_memory(const char* path)
{
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) { _exit(127); }
        execl(BENCHMARK_COMMAND, "cardan", "info", path, (char*)NULL);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child || status != 0) { return NAN; } // over the limit
    return (double)usage.ru_maxrss / 1024;
}

static void import_case(benchmark* b)
{
    for (int version = 2; version <= 3; version++) {
        char fmu[512], xml[512], command[2048];
        snprintf(fmu, sizeof fmu, "%s/large%d.fmu", BENCHMARK_SCRATCH, version);
        snprintf(xml, sizeof xml, "%s/modelDescription.xml", BENCHMARK_SCRATCH);
        snprintf(command, sizeof command,
                 "python3 %s/make_large_fmu.py --version %d --variables 100000 %s && "
                 "python3 -m zipfile -e %s %s",
                 BENCHMARK_TOOLS, version, fmu, fmu, BENCHMARK_SCRATCH);
        size_t length = 0;
        char* text = system(command) == 0 ? read_file(xml, &length) : NULL;
        if (!text) {
            fprintf(stderr, "cardan-bench: '%s' failed\n", command);
            exit(1);
        }
        double expat = INFINITY, import = INFINITY;
        int32_t variables = 0;
        for (int i = 0; i < REPEATS; i++) {
            expat = fmin(expat, run_expat(text, length));
            import = fmin(import, run_import(fmu, &variables));
        }
        char name[64];
        snprintf(name, sizeof name, "fmi/import/fmi%d", version);
        benchmark_report(b, name, import * 1e3, "ms", expat * 1e3, 3,
                         "%d variables, %.1f MB of XML: %.0f ms, expat alone %.0f ms", variables,
                         (double)length / 1e6, import * 1e3, expat * 1e3);
        snprintf(name, sizeof name, "fmi/import-memory/fmi%d", version);
        const double mb = import_memory(fmu);
        benchmark_report(b, name, mb, "MB", 100, 1, "%.0f MB of 100 MB", mb);
        free(text);
        remove(fmu);
        remove(xml);
    }
}

const benchmark_case benchmark_fmi_cases[] = {{"fmi/import", import_case}, {NULL, NULL}};
