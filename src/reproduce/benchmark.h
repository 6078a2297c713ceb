// The benchmark systems of Rodriguez (2021), section 5.4, cut in two units that exchange a force
// and a motion, with explicit co-simulation in one or two rates and the energy correction of 5.6.
#pragma once
#include "cardan/quality.h"

typedef struct crdi_benchmark crdi_benchmark;

/// What crosses the cut.
typedef enum crdi_benchmark_cut {
    CRDI_CUT_FORCE_MOTION,  ///< unit 1 has the coupling element: motion in, force out
    CRDI_CUT_MOTION_MOTION, ///< both units have it; linear oscillator only
    CRDI_CUT_FORCE_FORCE,   ///< a third unit has it; linear oscillator only
} crdi_benchmark_cut;

typedef struct crdi_benchmark_options {
    const crdi_benchmark* system;
    crdi_benchmark_cut cut;
    double step1, step2; ///< of the units, the larger one is the communication step
    bool linear;         ///< the faster unit extrapolates its inputs; else it holds them
    crd_bond bond;       ///< correction of the force
    bool fresh;          ///< the force is evaluated again with the motion that just came
    /// Not in the thesis: units are solved accurately, and held inputs are the means of a
    /// prediction. Single rate.
    bool accurate;
    crd_predictor predictor;
    double until;
    /// Unless NULL: called at each communication point.
    void (*see)(void* user, double t, const double position[2], const double exact[2],
                double energy, double exact_energy, double residual_power);
    void* user;
} crdi_benchmark_options;

crdi_benchmark_options crdi_benchmark_defaults(const char* system, double step);

typedef struct crdi_benchmark_result {
    int64_t steps;
    double error[2];             ///< largest errors of both positions (of s twice: crane)
    double rms[2];               ///< root mean squares of them
    double energy, exact;        ///< at the end
    double start;                ///< energy at the beginning
    double gain;                 ///< energy / exact - 1
    double worst_energy;         ///< largest |energy - exact| / start
    double residual;             ///< residual energy: sum of the residual power times the step
    double power_max, power_min; ///< residual power
} crdi_benchmark_result;

/// CRD_E_RANGE: steps that are no multiples of each other, a cut the system does not have.
crd_status crdi_benchmark_run(crd_context* ctx, const crdi_benchmark_options* opt,
                              crdi_benchmark_result* out);
