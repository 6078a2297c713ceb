// Shared by the files of the experiment.
#pragma once
#include "shared/testbench_experiment.h"

enum { CRDI_EXPERIMENT_TAPS = 9 };
#define CRDI_EXPERIMENT_SHIFT 3.2 // s, when the gearbox shifts

// The weights of the optimal algorithm, and the elements of all runs but the ideal one and those
// that are trained.
crd_status crdi_experiment_design(crdi_bench_experiment* e);
// Elements of the trained networks, from the torque that a previous run has brought (count).
crd_status crdi_experiment_train(crdi_bench_experiment* e, const double* samples);
// The text, which is cleared, as an element for `out`.
crd_status crdi_experiment_keep(crdi_bench_experiment* e, crd_text* t, const char** out);
// Changes against ZOH, goals and remarks, once all runs are there.
crd_status crdi_experiment_judge(crdi_bench_experiment* e);
