// Zero-order hold: yhat = y_{n-k}. First-order hold: the line through the newest two samples,
// yhat = y_{n-k} + (k + theta) (y_{n-k} - y_{n-k-1}).
#include "coupling/algorithm.h"

static int one_tap(const crd_design* d, int k)
{
    (void)d, (void)k;
    return 1;
}

static crd_status weigh_zoh(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                            double* A)
{
    (void)ctx, (void)d, (void)k, (void)m, (void)A;
    a[0] = 1;
    return CRD_OK;
}

static int two_taps(const crd_design* d, int k)
{
    (void)d, (void)k;
    return 2;
}

static crd_status weigh_foh(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                            double* A)
{
    (void)ctx, (void)d, (void)m;
    a[0] = k + 1;
    a[1] = -k;
    A[0] = 1;
    A[1] = -1;
    return CRD_OK;
}

const crdi_algorithm crdi_algorithm_zoh = {
    .name = "zoh", .has_design = true, .taps = one_tap, .weigh = weigh_zoh};
const crdi_algorithm crdi_algorithm_foh = {
    .name = "foh", .has_design = true, .taps = two_taps, .weigh = weigh_foh};
