// What the parts of cardan coupling analyze share.
#pragma once
#include "cli/analyze/signals.h"

typedef struct crdi_analyze_options {
    crdi_common common;
    const char *latency, *omega, *csv, *plot, *signal;
    double step, magnitude, phase, at, from, to, part;
    double min_phase, min_gain, min_delay, min_distance;
    double jitter;
    const char* loss;
    bool require_stable, decibel;
    crdi_list elements;
    int points, modes, length, losses; // -1: not given
} crdi_analyze_options;

crd_status crdi_analyze_elements(crdi_cli* cli, const crdi_analyze_options* o,
                                 const crdi_list* arguments, crdi_result* out);
crd_status crdi_analyze_loop(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                             crdi_result* out);
// analyze_varied.c: where latencies vary, samples are lost or elements adapt; nothing else. Fails
// with CRD_E_LIMIT if `require` and it is not shown to be stable.
crd_status crdi_analyze_varied(crdi_cli* cli, crd_loop_model* m, bool require, crdi_result* out);
bool crdi_analyze_varies(const crd_loop_model* m);
crd_status crdi_analyze_recording(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                                  crdi_result* out);
