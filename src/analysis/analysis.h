// Shared by the files of analysis.
#pragma once
#include <complex.h>
#include <math.h>

#include "cardan/analysis.h"

typedef double complex crdi_complex;

// G_p and dG_p/dz (may be NULL) at z = s dT.
crdi_complex crdi_response(const crd_linear* e, crdi_complex z, crdi_complex* derivative);

// phi0 at z = jx
crdi_complex crdi_hold(double x);

// A zero of f between lo and hi, where its signs differ, to the last bits.
double crdi_bisect(double (*f)(const void* user, double x), const void* user, double lo, double hi);

// "the macro step is -1, expected > 0" and its like
crd_status crdi_check_step(crd_context* ctx, double dT);

// The description of an element up to `"algorithm": `.
void crdi_element_begin(const char* name, double step, crd_text* out);

// exp([A B 0; 0 0 1; 0 0 0] dT) of a network's units into the first third of the zeroed `phi`
// (3 x (states + 2 inputs)^2): x(dT) over x, and over inputs u0 + theta u1.
crd_status crdi_plant_transition(crd_context* ctx, const crd_plant* w, double dT, double* phi);
