// What the own solver of a unit misses in a step.
//
// Of a unit that is x' = A x + B u + d with constant A, B and d the step is known exactly, from the
// states that it has at its beginning and the polynomials that it was given:
//   x(h) = exp(A h) x + sum_k Gamma_k u_k + Psi d
// The rest is the error of its solver, the defect of integration of Glumac 2023 (2a), in each step
// and with its sign, so that it drives the errors of all units as defects of connections do.
// Whether d is constant shows in x' - A x - B u. A unit of which it is not, and one whose states
// jump, is left alone from there on.
#pragma once
#include "cardan/unit.h"
#include "shared/base.h"
#include "shared/quality_macro.h"

typedef struct crdi_solving {
    crd_unit* unit;
    const crd_linearised* linear;
    crd_binding* binding; // states, derivatives, inputs
    crd_values values;
    crdi_macro_unit exact;    // with the inputs u and d
    double *x, *d;            // run: (states) at the end of the last step; as it was at the start
    double* missed;           // run: (states) in the last step
    double *widest, *largest; // run: (states) largest change over a step; of what was missed
    double most;              // run: the largest of their quotients
    int64_t count;            // run: steps that were looked at
    int64_t events;           // run: of the unit until the end of the last step
    int rest;                 // run: steps that one is left alone which misses nothing
    bool known, begun, fresh; // run: the unit is like that; d is there; x is of the last step
} crdi_solving;

/// Room; `known` is false where nobody tells states, or the unit is not linear with numbers that
/// are exact. CRD_E_MEMORY.
crd_status crdi_solving_init(crd_arena* arena, crd_unit* u, const crd_unit_port* inputs,
                             const crd_linearised* l, double h, crdi_solving* s);
void crdi_solving_clear(crdi_solving* s);
/// Where the unit is now; `given` (inputs x 3): coefficients of the polynomials that it was given
/// for the step that ends here, NULL: they are not known. `missed` is 0 where nothing can be said.
void crdi_solving_step(crdi_solving* s, const double* given);
double crdi_solving_input(const crdi_solving* s, int input); ///< as the unit has it now
bool crdi_solving_rests(const crdi_solving* s);              ///< nobody has looked at it
