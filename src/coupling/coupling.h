// What the files of the coupling module share.
#pragma once
#include <math.h>

#include "cardan/coupling.h"

/// A = L L^T in place, lower triangle, n x n by rows. false if A is not positive definite.
bool crdi_cholesky(int n, double* a);
/// x := A^-1 x with the factor of crdi_cholesky.
void crdi_cholesky_solve(int n, const double* l, double* x);

/// An owned copy of a network, or what is wrong with it.
crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, crd_network* out);

/// `filled` of the newest four samples, this one among them, are interpolated.
crd_detected crdi_detector_push(crd_detector* d, double sample, int filled);

crd_status crdi_options_check(crd_context* ctx, const crd_coupling_options* o);
/// Weights for k = 0 .. k_max.
crd_status crdi_table_make(crd_context* ctx, const crd_coupling_options* o, crd_linear** out);
void crdi_table_free(crd_context* ctx, crd_linear* table, int k_max);
int crdi_table_taps(const crd_linear* table, int k_max); // most of all

/// Larger samples are no measurement; without them sums and differences of samples stay finite.
static inline bool crdi_usable(double sample)
{
    return fabs(sample) <= 1e250; // false for NaN
}

static inline bool crdi_is_prediction(double p0, double p1)
{
    return fabs(p0) + fabs(p1) < 1e300;
}

static inline double crdi_dot(int n, const double* a, const double* y)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += a[i] * y[i];
    }
    return sum;
}
