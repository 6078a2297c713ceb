// master/peer: the same chain of FMUs in other masters, where PyPI has them.
#include "benchmark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// peers.py prints "name value" lines: us per FMU and step of Cardan's command and of each peer, all
// measured over whole runs in the same way.
static void peer_case(benchmark* b)
{
    if (!benchmark_python(b)[0]) {
        printf("master/peer: no --python, left out\n");
        return;
    }
    char command[1024];
    snprintf(command, sizeof command, "%s %s/peers.py %s %s %s", benchmark_python(b),
             BENCHMARK_SOURCE, BENCHMARK_COMMAND, BENCHMARK_FMUS, BENCHMARK_SCRATCH);
    FILE* f = popen(command, "r");
    char line[256], name[64];
    double own = 0, value = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s %lf", name, &value) != 2) { continue; }
        if (strcmp(name, "cardan") == 0) {
            own = value;
        } else if (own > 0) {
            char full[80];
            snprintf(full, sizeof full, "master/peer/%s", name);
            benchmark_report(b, full, own, "us", value, 1,
                             "cardan %.3f us per FMU and step, %s %.3f us", own, name, value);
        }
    }
    if (f) { pclose(f); }
    if (own <= 0) {
        fprintf(stderr, "cardan-bench: '%s' measured nothing\n", command);
        exit(1);
    }
}

const benchmark_case benchmark_peer_cases[] = {{"master/peer", peer_case}, {NULL, NULL}};
