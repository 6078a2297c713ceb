// How well a run did: defects, estimated errors, energy, and what would help.
#pragma once
#include "master/plan/plan.h"

enum { CRDI_ISOLATION_TEXT = 640 };

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
    crd_pair_report* pairs;
    crd_master_report report;
    char isolation[CRDI_ISOLATION_TEXT]; // of the report
} crdi_verdict;

// report.c
/// Room for the reports of loops that are solved at the start, and the next of them.
crd_status crdi_verdict_open_loops(crd_master* m, int most);
crd_loop_report* crdi_verdict_add_loop(crd_master* m);
const crd_master_report* crdi_verdict_last(const crd_master* m); ///< as it was asked for last
bool crdi_verdict_is_complete(const crd_master* m);              ///< there was memory for all of it
// estimate.c: what defects do to the outputs, linearised
crd_status crdi_estimate_start(crd_master* m);
void crdi_estimate_step(crd_master* m, double h); ///< after each accepted step
void crdi_estimate_close(crd_master* m);          ///< before the units go
bool crdi_estimate_is_on(const crd_master* m);    ///< errors are followed in every step
/// RMS and maximum of the estimated error of an output so far, NaN: not known.
void crdi_estimate_of(const crd_master* m, int member, int slot, double* rms, double* max);
/// What that RMS cannot exceed where all units are linear; NaN: they are not, or it is not known.
double crdi_estimate_bound(const crd_master* m, int member, int slot);
/// Most of that comes of units' own solvers; and of that of this unit, of those that show.
bool crdi_estimate_blames_solvers(const crd_master* m, int member, int slot);
const char* crdi_estimate_worst_solver(const crd_master* m);
/// How fast the units coupled exactly grow by themselves, 1/s, as they were last; NaN: not known.
/// Takes memory.
double crdi_estimate_growth(crd_master* m);
/// Why there are no estimates, a sentence; "" if there are.
const char* crdi_estimate_note(const crd_master* m);
/// advice.c: the worst error of the last report is mostly that of units' own solvers.
bool crdi_verdict_blames_solvers(const crd_master* m);
// judge.c: the verdict
void crdi_judge_coupled(const crd_master* m, const crdi_coupled* c, crd_coupling_report* r);
void crdi_verdict_report(crd_master* m);
void crdi_verdict_advise(crd_master* m, crd_master_report* r); // advice.c
