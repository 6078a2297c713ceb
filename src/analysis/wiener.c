// Weighted least squares: one linear system.
#include "analysis/analysis.h"

#include "cardan/num.h"

// Mean of cos(d x) over [lo, hi]
static double mean_cos(double d, double lo, double hi)
{
    const double half = 0.5 * d * (hi - lo);
    return cos(0.5 * d * (lo + hi)) * (fabs(half) < 1e-8 ? 1 : sin(half) / half);
}

static double correlation(const crd_weighted_band* bands, int n, double dT, double d)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += bands[i].power * mean_cos(d, bands[i].lo * dT, bands[i].hi * dT);
    }
    return sum;
}

static crd_status check(crd_context* ctx, double dT, int k, int m, const crd_weighted_band* bands,
                        int n, double lambda)
{
    const crd_status st = crdi_check_step(ctx, dT);
    if (st < 0) { return st; }
    if (k < 0 || k > 10000) {
        return crdi_fail(ctx, CRD_E_RANGE, "the latency is %d macro steps, expected 0 to 10000", k);
    }
    if (m < 1 || m > CRD_TAPS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "a design with %d taps, expected 1 to %d", m,
                         CRD_TAPS_MAX);
    }
    if (n < 1) { return crdi_fail(ctx, CRD_E_RANGE, "no band is given, expected at least one"); }
    for (int i = 0; i < n; i++) {
        const crd_weighted_band* b = &bands[i];
        if (!(b->lo >= 0 && b->lo < b->hi && b->hi * dT <= M_PI)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "band %d is [%g, %g] rad/s, expected 0 <= lower end < upper end <= %g",
                             i + 1, b->lo, b->hi, M_PI / dT);
        }
        if (!(b->power >= 0 && isfinite(b->power))) {
            return crdi_fail(ctx, CRD_E_RANGE, "the power of band %d is %g, expected >= 0", i + 1,
                             b->power);
        }
    }
    if (!(lambda >= 0 && isfinite(lambda))) {
        return crdi_fail(ctx, CRD_E_RANGE, "lambda is %g, expected >= 0", lambda);
    }
    return CRD_OK;
}

crd_status crd_analysis_wiener(crd_context* ctx, double dT, int k, int m,
                               const crd_weighted_band* bands, int n, double lambda, double* a)
{
    crd_status st = check(ctx, dT, k, m, bands, n, lambda);
    if (st < 0) { return st; }
    crdi_arena arena;
    crdi_arena_init(&arena, ctx);
    const size_t size = (size_t)m + 1;
    double* matrix = crdi_arena_new(&arena, size * size, sizeof *matrix);
    double* right = crdi_arena_new(&arena, size, sizeof *right);
    int32_t* pivots = crdi_arena_new(&arena, size, sizeof *pivots);
    if (!matrix || !right || !pivots) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    // [R + lambda I, 1; 1', 0] [a; multiplier] = [r; 1]
    for (int i = 0; i < m; i++) {
        double* row = &matrix[(size_t)i * size];
        for (int j = 0; j < m; j++) {
            row[j] = correlation(bands, n, dT, i - j) + (i == j ? lambda : 0);
        }
        row[m] = matrix[(size_t)m * size + (size_t)i] = 1;
        right[i] = correlation(bands, n, dT, (double)k + i);
    }
    right[m] = 1;
    if (crd_num_solve(m + 1, matrix, right, pivots) < 0) {
        st = crdi_fail(ctx, CRD_E_CONVERGENCE,
                       "%d taps are not determined by these bands; expected lambda > 0", m);
        goto fail;
    }
    for (int i = 0; i < m; i++) {
        a[i] = right[i];
    }
fail:
    crdi_arena_clear(&arena);
    return st;
}
