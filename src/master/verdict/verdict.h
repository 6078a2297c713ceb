// How well a run did: defects, estimated errors, energy, and what would help.
#pragma once
#include "master/plan/plan.h"

typedef struct crdi_verdict {
    struct crdi_estimate* estimate; // estimate.c, NULL: none
    struct crdi_judge* judge;       // judge.c
    crd_loop_report* loops;
    int loop_count;
    crd_unit_report* units;
    crd_link_stats* link_stats;
    crd_standby_stats* standby_stats;
    crd_flow_report* flows;
    crd_bond_report* bonds;
    crd_master_report report;
} crdi_verdict;

// report.c
/// Loops that are solved at the start report here.
// estimate.c: what defects do to the outputs, linearised
crd_status crdi_estimate_start(crd_master* m);
void crdi_estimate_step(crd_master* m, double h); ///< after each accepted step
/// RMS and maximum of the estimated error of an output so far, NaN: not known.
void crdi_estimate_of(const crd_master* m, int member, int slot, double* rms, double* max);
/// Why there are no estimates, a sentence; "" if there are.
const char* crdi_estimate_note(const crd_master* m);
// judge.c: the verdict
void crdi_verdict_report(crd_master* m);
