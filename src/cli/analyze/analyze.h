// What the parts of cardan analyze share.
#pragma once
#include "cli/analyze/signals.h"

typedef struct crdi_analyze_options {
    crdi_common common;
    const char *latency, *omega, *csv, *plot, *signal;
    double step, magnitude, phase, at, from, to, part;
    double min_phase, min_gain, min_delay, min_distance;
    bool require_stable, decibel;
    crdi_list elements;
    int points, modes, length; // -1: not given
} crdi_analyze_options;

crd_status crdi_analyze_elements(crdi_cli* cli, const crdi_analyze_options* o,
                                 const crdi_list* arguments, crdi_result* out);
crd_status crdi_analyze_loop(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                             crdi_result* out);
crd_status crdi_analyze_recording(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                                  crdi_result* out);
