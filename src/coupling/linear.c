// Weights of the linear algorithms: yhat = sum a_i y_{n-k-i} + theta sum A_i y_{n-k-i}.
#include "coupling/coupling.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

crd_design crd_design_defaults(crd_method method)
{
    return (crd_design){.method = method,
                        .taps = 9,
                        .degree = 2,
                        .curve = 1,
                        .errors = 2,
                        .order = 1,
                        .distance = CRD_DISTANCE_END,
                        .bands = {{0, 0.1, 1}, {0.3, 0.55, 0.03}},
                        .band_count = 2,
                        .noise = 1e-4};
}

double crd_linear_eval(const crd_linear* l, const double* y, double theta)
{
    const double value = crdi_dot(l->m, l->a, y);
    return l->A ? value + theta * crdi_dot(l->m, l->A, y) : value;
}

void crd_linear_clear(crd_context* ctx, crd_linear* l)
{
    crd_free(ctx, (void*)l->a); // A lies in the same block
    *l = (crd_linear){0};
}

// Zeroed a and, behind it, A.
static double* new_weights(crd_context* ctx, int m)
{
    return crdi_new_array(ctx, 2 * (size_t)m, sizeof(double));
}

static void foh(int k, double* a, double* A)
{
    a[0] = k + 1;
    a[1] = -k;
    A[0] = 1;
    A[1] = -1;
}

// Baumann 2024, eq. 19. Eq. 20 prints a = e_0 + A, which is eq. 19 for k = 1 only.
static void eros(int k, double* a, double* A)
{
    const double g = (k + 2.0) / (k + 1.0);
    A[0] += g;
    A[1] -= 1;
    A[k + 1] -= g; // accumulated: for k = 0 this is A[1]
    A[k + 2] += 1;
    for (int i = 0; i < k + 3; i++) {
        a[i] = (i == 0) + k * A[i];
    }
}

// w_i, so that sum_i w_i y_{-i} is the polynomial through y_0, y_{-1} ... y_{-n+1} at time tau.
static void lagrange(int n, double tau, double* w)
{
    for (int i = 0; i < n; i++) {
        w[i] = 1;
        for (int j = 0; j < n; j++) {
            if (j != i) { w[i] *= (tau + j) / (j - i); }
        }
    }
}

// The a of least norm with sum_i a_i (i + shift)^r = moments[r], r = 0 .. degree: each condition is
// made orthonormal to those before it, its right side going along.
static void least_norm(int m, double shift, int degree, const double* moments, double* a)
{
    double q[5][CRD_TAPS_MAX], d[5];
    memset(a, 0, (size_t)m * sizeof *a);
    for (int r = 0; r <= degree; r++) {
        for (int i = 0; i < m; i++) {
            q[r][i] = pow(i + shift, r);
        }
        d[r] = moments[r];
        for (int pass = 0; pass < 2; pass++) { // twice is enough for full precision
            for (int l = 0; l < r; l++) {
                const double c = crdi_dot(m, q[r], q[l]);
                for (int i = 0; i < m; i++) {
                    q[r][i] -= c * q[l][i];
                }
                d[r] -= c * d[l];
            }
        }
        const double norm = sqrt(crdi_dot(m, q[r], q[r]));
        d[r] /= norm;
        for (int i = 0; i < m; i++) {
            q[r][i] /= norm;
            a[i] += d[r] * q[r][i];
        }
    }
}

// w_j, so that sum_j w_j e_{-j} continues the polynomial of degree `order` that fits the newest n
// errors best, `ahead` steps after the newest. Orders above 1 differ from a Taylor series with
// backward differences (Baumann 2024, eq. 14) and are exact for polynomials, which that is not.
static void continue_errors(int n, int order, double ahead, double* w)
{
    const double moments[5] = {1, 0, 0, 0, 0};
    least_norm(n, ahead, order, moments, w);
}

static double mean_power(double from, int power) // of tau^power over [from, from + 1]
{
    return (pow(from + 1, power + 1) - pow(from, power + 1)) / (power + 1);
}

// Weights of the curve's fixed part, of degree `curve` - 1, as the distance sees it at the end of
// its step: at tau = k + 1, or as its mean over [k, k + 1].
static void fixed_part(const crd_design* d, int k, double* w)
{
    if (d->distance == CRD_DISTANCE_END) {
        lagrange(d->curve, k + 1, w);
        return;
    }
    // Simpson's rule is exact up to degree 3
    double end[3], middle[3];
    lagrange(d->curve, k, w);
    lagrange(d->curve, k + 0.5, middle);
    lagrange(d->curve, k + 1, end);
    for (int i = 0; i < d->curve; i++) {
        w[i] = (w[i] + 4 * middle[i] + end[i]) / 6;
    }
}

// Baumann 2024, sec. 2.2. The error of the curve at the past step i is b_i + c p with b_i linear in
// the samples; the continued error sum_j w_j (b_j + c p) with sum w = 1 is zero for
// p = -sum_j w_j b_j / c.
static void error_space(const crd_design* d, int k, double* a, double* A)
{
    double w[32], base[3], start[3], end[3], p[CRD_TAPS_MAX] = {0};
    const bool mean = d->distance == CRD_DISTANCE_MEAN;
    const double c = mean ? mean_power(k, d->curve) : pow(k + 1, d->curve);
    continue_errors(d->errors, d->order, k + 1, w);
    fixed_part(d, k, base);
    for (int j = 0; j < d->errors; j++) {
        p[j] += mean ? w[j] / (2 * c) : w[j] / c; // the signal itself
        if (mean) { p[j + 1] += w[j] / (2 * c); }
        for (int i = 0; i < d->curve; i++) {
            p[j + k + 1 + i] -= w[j] * base[i] / c; // what would have been said of it
        }
    }
    // f(theta) at both ends of the macro step; between them goes a line
    lagrange(d->curve, k, start);
    lagrange(d->curve, k + 1, end);
    const int m = d->errors + k + d->curve;
    const double p0 = pow(k, d->curve), p1 = pow(k + 1, d->curve);
    for (int i = 0; i < m; i++) {
        a[i] = p0 * p[i] + (i < d->curve ? start[i] : 0);
        A[i] = (p1 - p0) * p[i] + (i < d->curve ? end[i] - start[i] : 0);
    }
}

// Mean of cos(n x) over a band.
static double mean_cos(const crd_band* b, double n)
{
    return n == 0 ? 1 : (sin(n * b->high) - sin(n * b->low)) / (n * (b->high - b->low));
}

// Minimise sum_b P_b mean_b |1 - sum_i a_i e^{-j(i+k)x}|^2 + noise |a|^2 subject to sum a = 1.
// Both sides are made of the bands' autocorrelation, a function of the distance of two taps.
static crd_status wiener(crd_context* ctx, const crd_band* bands, int n, double noise, int k, int m,
                         double* a)
{
    double one[CRD_TAPS_MAX], lag[CRD_TAPS_MAX] = {0};
    double* r = crdi_new_array(ctx, (size_t)m * (size_t)m, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    for (int b = 0; b < n; b++) {
        for (int i = 0; i < m; i++) {
            lag[i] += bands[b].power * mean_cos(&bands[b], i);
            a[i] += bands[b].power * mean_cos(&bands[b], i + k);
        }
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j <= i; j++) {
            r[j * m + i] = lag[i - j];
        }
        r[i * m + i] += noise;
        one[i] = 1;
    }
    const bool ok = crdi_cholesky(m, r);
    if (ok) {
        double sum_a = 0, sum_one = 0;
        crdi_cholesky_solve(m, r, a);
        crdi_cholesky_solve(m, r, one);
        for (int i = 0; i < m; i++) {
            sum_a += a[i];
            sum_one += one[i];
        }
        for (int i = 0; i < m; i++) {
            a[i] += (1 - sum_a) / sum_one * one[i];
        }
    }
    crd_free(ctx, r);
    return ok ? CRD_OK
              : crdi_fail(ctx, CRD_E_RANGE,
                          "coupling: noise = %g is too small for %d taps, expected more", noise, m);
}

static crd_status check_int_range(crd_context* ctx, const char* what, int x, int low, int high)
{
    return x >= low && x <= high
               ? CRD_OK
               : crdi_fail(ctx, CRD_E_RANGE, "coupling: %s = %d, expected %d .. %d", what, x, low,
                           high);
}

static crd_status check_wiener(crd_context* ctx, int m, const crd_band* bands, int n, double noise)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_int_range(ctx, "taps", m, 1, CRD_TAPS_MAX));
    CRD_TRY(check_int_range(ctx, "number of bands", n, 1, 100000));
    for (int b = 0; b < n; b++) {
        const crd_band* band = &bands[b];
        if (!(band->low >= 0 && band->low < band->high && band->high <= 3.1415926535897936)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "coupling: band %d = [%g, %g], expected 0 <= low < high <= pi", b + 1,
                             band->low, band->high);
        }
        if (!(band->power > 0 && band->power < HUGE_VAL)) {
            return crdi_fail(ctx, CRD_E_RANGE, "coupling: power of band %d = %g, expected > 0",
                             b + 1, band->power);
        }
    }
    if (!(noise > 0 && noise < HUGE_VAL)) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: noise = %g, expected > 0", noise);
    }
fail:
    return st;
}

static crd_status check_design(crd_context* ctx, const crd_design* d, int k)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_int_range(ctx, "k", k, 0, CRD_LATENCY_MAX));
    switch (d->method) {
    case CRD_METHOD_ZOH:
    case CRD_METHOD_FOH:
    case CRD_METHOD_EROS:
        break;
    case CRD_METHOD_ERROR_SPACE:
        CRD_TRY(check_int_range(ctx, "curve", d->curve, 1, 3));
        CRD_TRY(check_int_range(ctx, "order", d->order, 0, 3));
        CRD_TRY(check_int_range(ctx, "errors", d->errors, d->order + 1, 32));
        CRD_TRY(check_int_range(ctx, "distance", (int)d->distance, 0, CRD_DISTANCE_MEAN));
        break;
    case CRD_METHOD_MOMENT:
    case CRD_METHOD_SAVITZKY_GOLAY:
        CRD_TRY(check_int_range(ctx, "degree", d->degree, 0, 4));
        CRD_TRY(check_int_range(ctx, "taps", d->taps, d->degree + 1, CRD_TAPS_MAX));
        break;
    case CRD_METHOD_WIENER:
        CRD_TRY(check_int_range(ctx, "band_count", d->band_count, 1, CRD_BANDS_MAX));
        CRD_TRY(check_wiener(ctx, d->taps, d->bands, d->band_count, d->noise));
        break;
    default:
        CRD_TRY(check_int_range(ctx, "method", (int)d->method, 0, CRD_METHOD_WIENER));
    }
fail:
    return st;
}

static int taps_of(const crd_design* d, int k)
{
    switch (d->method) {
    case CRD_METHOD_ZOH:
        return 1;
    case CRD_METHOD_FOH:
        return 2;
    case CRD_METHOD_EROS:
        return k + 3;
    case CRD_METHOD_ERROR_SPACE:
        return d->errors + k + d->curve;
    default:
        return d->taps;
    }
}

crd_status crd_linear_make(crd_context* ctx, const crd_design* design, int k, crd_linear* out)
{
    // sum_i a_i (i + k + 1/2)^r: the coefficients of (x/2) / sin(x/2), the inverse of the hold
    static const double hold[5] = {1, 0, -1.0 / 12, 0, 7.0 / 240}, point[5] = {1, 0, 0, 0, 0};
    crd_status st = check_design(ctx, design, k);
    if (st < 0) { return st; }
    const int m = taps_of(design, k);
    double* a = new_weights(ctx, m);
    if (!a) { return CRD_E_MEMORY; }
    double* A = a + m;
    switch (design->method) {
    case CRD_METHOD_ZOH:
        a[0] = 1;
        break;
    case CRD_METHOD_FOH:
        foh(k, a, A);
        break;
    case CRD_METHOD_EROS:
        eros(k, a, A);
        break;
    case CRD_METHOD_ERROR_SPACE:
        error_space(design, k, a, A);
        break;
    case CRD_METHOD_MOMENT:
        least_norm(m, k + 0.5, design->degree, hold, a);
        break;
    case CRD_METHOD_SAVITZKY_GOLAY:
        least_norm(m, k, design->degree, point, a);
        break;
    case CRD_METHOD_WIENER:
        CRD_TRY(wiener(ctx, design->bands, design->band_count, design->noise, k, m, a));
        break;
    }
    *out = (crd_linear){.m = m, .k = k, .a = a, .A = A};
    return CRD_OK;
fail:
    crd_free(ctx, a);
    return st;
}

crd_status crd_linear_wiener(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                             double noise, crd_linear* out)
{
    crd_status st = CRD_OK;
    double* a = NULL;
    CRD_TRY(check_int_range(ctx, "k", k, 0, CRD_LATENCY_MAX));
    CRD_TRY(check_wiener(ctx, m, bands, n, noise));
    a = new_weights(ctx, m);
    if (!a) { return CRD_E_MEMORY; }
    CRD_TRY(wiener(ctx, bands, n, noise, k, m, a));
    *out = (crd_linear){.m = m, .k = k, .a = a, .A = a + m};
    return CRD_OK;
fail:
    crd_free(ctx, a);
    return st;
}

static crd_status check_sum(crd_context* ctx, const char* name, const double* w, int m, double want,
                            bool any_gain)
{
    double sum = 0;
    for (int i = 0; i < m; i++) {
        if (!isfinite(w[i])) {
            return crdi_fail(ctx, CRD_E_RANGE, "coupling: %s[%d] = %g, expected a finite number",
                             name, i, w[i]);
        }
        sum += w[i];
    }
    if (!any_gain && !(fabs(sum - want) <= 1e-6)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: the weights %s sum to %.9g, expected %g: constants would be "
                         "distorted (any-gain allows it)",
                         name, sum, want);
    }
    return CRD_OK;
}

crd_status crd_linear_copy(crd_context* ctx, const crd_linear* from, bool any_gain, crd_linear* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_int_range(ctx, "m", from->m, 1, CRD_TAPS_MAX));
    CRD_TRY(check_int_range(ctx, "k", from->k, 0, CRD_LATENCY_MAX));
    CRD_TRY(check_sum(ctx, "a", from->a, from->m, 1, any_gain));
    if (from->A) { CRD_TRY(check_sum(ctx, "A", from->A, from->m, 0, any_gain)); }
    const size_t bytes = (size_t)from->m * sizeof(double);
    double* a = new_weights(ctx, from->m);
    if (!a) { return CRD_E_MEMORY; }
    memcpy(a, from->a, bytes);
    if (from->A) { memcpy(a + from->m, from->A, bytes); }
    *out = (crd_linear){.m = from->m, .k = from->k, .a = a, .A = a + from->m};
fail:
    return st;
}
