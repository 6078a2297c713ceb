// The error-space procedure with its variation points, Baumann 2024, sec. 2.2: the curve
// f_p(tau) = polynomial of degree curve - 1 through the newest samples + p tau^curve, whose
// continued error vanishes.
#include "coupling/algorithm.h"

#include <math.h>

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

// w_j, so that sum_j w_j e_{-j} continues the polynomial of degree `order` that fits the newest n
// errors best, `ahead` steps after the newest. Orders above 1 differ from a Taylor series with
// backward differences (Baumann 2024, eq. 14) and are exact for polynomials, which that is not.
static void continue_errors(int n, int order, double ahead, double* w)
{
    const double moments[5] = {1, 0, 0, 0, 0};
    crdi_least_norm(n, ahead, order, moments, w);
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
static crd_status error_space_weigh(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                                    double* A)
{
    (void)ctx;
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
    const double p0 = pow(k, d->curve), p1 = pow(k + 1, d->curve);
    for (int i = 0; i < m; i++) {
        a[i] = p0 * p[i] + (i < d->curve ? start[i] : 0);
        A[i] = (p1 - p0) * p[i] + (i < d->curve ? end[i] - start[i] : 0);
    }
    return CRD_OK;
}

static crd_status error_space_check(crd_context* ctx, const crd_design* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_int(ctx, "curve", d->curve, 1, 3));
    CRD_TRY(crdi_coupling_check_int(ctx, "order", d->order, 0, 3));
    CRD_TRY(crdi_coupling_check_int(ctx, "errors", d->errors, d->order + 1, 32));
    CRD_TRY(crdi_coupling_check_int(ctx, "distance", (int)d->distance, 0, CRD_DISTANCE_MEAN));
fail:
    return st;
}

static int error_space_count_taps(const crd_design* d, int k)
{
    return d->errors + k + d->curve;
}

crd_status crdi_element_check_errors(crdi_element_reader* r, const crdi_json* n)
{
    const crd_design* d = &r->e->options.design;
    if (d->errors >= d->order + 1) { return CRD_OK; }
    return crdi_element_fail(r, n, CRD_E_RANGE,
                             "errors = %d for order = %d, expected more errors than the order",
                             d->errors, d->order);
}

static const char* const distances[] = {"end", "mean", NULL};

static const crdi_element_option keys[] = {
    {"curve", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.curve), .min = 1, .max = 3},
    {"errors", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.errors), .min = 1, .max = 32},
    {"order", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.order), .min = 0, .max = 3},
    {"distance", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(design.distance), .choices = distances},
    {0},
};

const crdi_algorithm crdi_algorithm_error_space = {
    .name = "error-space",
    CRDI_DESCRIBED(.keys = keys, .check_keys = crdi_element_check_errors),
    .has_design = true,
    .check = error_space_check,
    .taps = error_space_count_taps,
    .weigh = error_space_weigh};
