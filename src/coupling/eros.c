// Error-space extrapolation, Baumann 2024, eq. 19, with g = (k + 2) / (k + 1):
//     A = g e_0 - e_1 - g e_{k+1} + e_{k+2},   a = e_0 + k A
// Eq. 20 prints a = e_0 + A, which is eq. 19 for k = 1 only.
#include "coupling/algorithm.h"

static int eros_count_taps(const crd_design* d, int k)
{
    (void)d;
    return k + 3;
}

static crd_status eros_weigh(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                             double* A)
{
    (void)ctx, (void)d;
    const double g = (k + 2.0) / (k + 1.0);
    A[0] += g;
    A[1] -= 1;
    A[k + 1] -= g; // accumulated: for k = 0 this is A[1]
    A[k + 2] += 1;
    for (int i = 0; i < m; i++) {
        a[i] = (i == 0) + k * A[i];
    }
    return CRD_OK;
}

const crdi_algorithm crdi_algorithm_eros = {
    .name = "eros", .has_design = true, .taps = eros_count_taps, .weigh = eros_weigh};
