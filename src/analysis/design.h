// Shared by the designs.
#pragma once
#include "analysis/analysis.h"

// Is the problem one? Fills in omega_u.
crd_status crdi_goal_check(crd_context* ctx, crd_goal* d);

// Backward-difference coordinates: a = sum_j c_j x_u^-j nabla^j with c_0 = 1 has sum a = 1 built
// in, and c_j of the same size for few and for many steps in a period (x_u: upper end of the band).
// The j-th basis function at x, with hold and without the latency:
//     B_j = phi0(x) ((1 - e^{-jx}) / x_u)^j
void crdi_differences(int m, double x, double x_u, crdi_complex* basis);
void crdi_from_differences(int m, double x_u, const double* c, double* a);

// Solve (h + damping diag(h)) step = -g after scaling h to a unit diagonal; workspace n (n + 1).
crd_status crdi_damped_step(int n, const double* h, const double* g, double damping, double* step,
                            double* work, int32_t* pivots);
