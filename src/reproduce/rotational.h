// The two-mass rotational oscillator of Glumac and Kovacic (2023), equations (40) to (44), cut in
// two and coupled by the non-iterative Jacobi scheme of Algorithm 1, with its defects.
//
// Unit 1 takes the speed omega2 and gives the torque tau, with feedthrough; unit 2 takes the torque
// and gives the speed. Of pairs the first is of tau, the second of omega2.
#pragma once
#include "cardan/quality.h"

typedef struct crdi_rotational_options {
    crd_defect_scheme scheme;
    bool euler;       ///< one explicit Euler step (45) per step, instead of the exact solution
    int m, n;         ///< degrees of the input and output polynomials, 0 to 2
    double step;      ///< fixed, or the first one
    double tolerance; ///< of the PI controller (39), 0: fixed steps
    /// Not in the paper: two-point Hermite predictor, two-point defects, and H211b for the steps. m
    /// and n do not matter then.
    bool two_point;
    double until;
    /// Unless NULL: called after each step with its end, its length, the outputs, the exact ones.
    void (*see)(void* user, double t, double step, const double y[2], const double exact[2]);
    void* user;
} crdi_rotational_options;

typedef struct crdi_rotational_result {
    int64_t steps;
    double end, mean_step, max_step;
    double worst; ///< largest defect (38) of a step over the tolerance, 0: fixed steps
    // root mean squares over the run
    double output[2];     ///< defects of the outputs, estimated from the mid-point sample (32)
    double connection[2]; ///< defects (17) of the inputs that the signals go to
    double error[2];      ///< of the output polynomials, against the exact solution
    double relative;      ///< of the outputs themselves, both together, relative to the exact ones
} crdi_rotational_result;

void crdi_rotational_run(const crdi_rotational_options* opt, crdi_rotational_result* out);
