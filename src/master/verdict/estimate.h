// What defects do to outputs: coupled units near the run, as linear ones.
//
// In the run an input is u = G y + d, with y the run's own outputs, G the gains of the connections
// and d the connection defect (Glumac 2023 (17)); in the true solution d is 0. The difference e of
// the two follows, to first order and with e_y of the outputs,
//   e' = A e + B (G e_y + d),   e_y = C e + D (G e_y + s)
// with A, B, C, D of all units. s differs from d because outputs are samples, and what goes on
// between two of them. A sample is taken at the end of a step with the input of that step; at the
// beginning of the next one the input jumps, and the sample stays. So s is u - y as samples see it,
// a line from one to the next.
//
//   e_y = Cc e + Dc s               Cc = (I - D G)^-1 C,  Dc = (I - D G)^-1 D
//   e'  = Ac e + B d + F s          Ac = A + B G Cc,      F = B G Dc
#pragma once
#include "shared/base.h"

typedef struct crdi_errors {
    int states, inputs, outputs;
    const int* source;  // (inputs) output that feeds it, -1: one that has no error
    const double* gain; // (inputs)
    const int* degree;  // (inputs) of the polynomial that its unit takes, NULL: shapes do not count
    // All units, block by block. By the caller, who then calls crdi_errors_close. Matrices lie
    // column by column, which makes steps fast
    double *A, *B, *C, *D;    // (states x states), (states x inputs), (outputs x states), ...
    double *Ac, *Cc, *Dc, *F; // closed loop, by crdi_errors_close

    double h;                // length of the step that the next three are for, 0: none
    double *phi, *psi, *chi; // (states x states) each: e(h) = phi e + psi mean + chi change of
                             // what forces it
    double* shapes[2];       // likewise of what has neither mean nor change, of degree 2 and 3;
                             // NULL: no unit takes inputs of degree 1, or 2
    double* work;

    double* e;            // run: (states)
    double* missed;       // run: (states) what solvers missed in the step; added at its end
    double* own;          // run: (states) the part of e that comes of that alone
    double* own_square;   // run: (outputs) likewise of square
    double* s;            // run: (inputs) at the end of the last step
    double* y;            // run: (outputs) likewise
    double *square, *max; // run: (outputs) integral of the square, largest magnitude
    double time;          // run: of all steps
} crdi_errors;

/// What drives the errors over one step, per input.
typedef struct crdi_drive {
    double mean, change; // of d = u - y: over the step; from its beginning to its end
    double end;          // s = u - y of the sample at its end
    double shape;        // of d: its Legendre coefficient of the unit's degree + 1
    double most;         // largest |d| on the step
} crdi_drive;

/// Room for everything, zeroed; the three sizes, source and gain are set. CRD_E_MEMORY.
crd_status crdi_errors_init(crd_arena* arena, crdi_errors* s);
/// Closes the loop after A, B, C or D have changed; e goes on as it was. CRD_E_CONVERGENCE: the
/// connections make an algebraic loop without a unique solution.
crd_status crdi_errors_close(crdi_errors* s);
/// What solvers missed was none of it.
void crdi_errors_forget_own(crdi_errors* s);
/// One step of length h. CRD_E_RANGE: the errors are no longer finite.
crd_status crdi_errors_step(crdi_errors* s, double h, const crdi_drive* drive);

/// A bound of the errors of linear units, in one norm; bound.c.
typedef struct crdi_bound {
    double growth;  // 1/s, L; NaN: this norm is none
    double* into;   // (inputs) |B_j|
    double* back;   // (inputs) |F_j|
    double* out;    // (outputs) that times |e| is no less than an error
    double size;    // run: bound of |e|
    double* square; // run: (outputs) integral of the square of the bound
} crdi_bound;

/// States scaled so that rows and columns are of one size, or the modes of the coupled system.
typedef enum crdi_norm { CRDI_NORM_BALANCED, CRDI_NORM_MODES, CRDI_NORMS } crdi_norm;

/// For the closed loop of `e`. CRD_E_MEMORY.
crd_status crdi_bound_init(crd_arena* arena, const crdi_errors* e, crdi_norm norm, crdi_bound* b);
/// One step, before crdi_errors_step.
void crdi_bound_step(crdi_bound* b, const crdi_errors* e, double h, const crdi_drive* drive);
