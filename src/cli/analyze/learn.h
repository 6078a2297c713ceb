// cardan coupling learn in parts: networks (learn.c) and cycles (learn_cycle.c).
#pragma once
#include "cli/cli.h"

typedef struct crdi_learn_cycle_options {
    const char *output, *pace;
    double runs, gain, band, disturbance, stop_time; // NaN: the default
    const crdi_list* set;
} crdi_learn_cycle_options;

crd_status crdi_learn_cycle(crdi_cli* cli, const crdi_learn_cycle_options* o, const char* subject,
                            crdi_result* out);
