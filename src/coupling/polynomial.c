// Weights that are exact for polynomials up to `degree`, and of least norm among those: a filter
// that is noisy as little as possible. Moment: exact for the mean over the step that is held,
//     sum_i a_i (i + k + 1/2)^r = coefficients of (x/2) / sin(x/2), the inverse of the hold.
// Savitzky-Golay: exact at the macro step itself, sum_i a_i (i + k)^r = [r = 0].
#include "coupling/algorithm.h"

#include <math.h>
#include <string.h>

// The a of least norm with sum_i a_i (i + shift)^r = moments[r], r = 0 .. degree: each condition is
// made orthonormal to those before it, its right side going along.
void crdi_least_norm(int m, double shift, int degree, const double* moments, double* a)
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

static crd_status weigh_moment(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                               double* A)
{
    static const double hold[5] = {1, 0, -1.0 / 12, 0, 7.0 / 240};
    (void)ctx, (void)A;
    crdi_least_norm(m, k + 0.5, d->degree, hold, a);
    return CRD_OK;
}

static crd_status weigh_point(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                              double* A)
{
    static const double point[5] = {1, 0, 0, 0, 0};
    (void)ctx, (void)A;
    crdi_least_norm(m, k, d->degree, point, a);
    return CRD_OK;
}

static crd_status polynomial_check(crd_context* ctx, const crd_design* d)
{
    const crd_status st = crdi_coupling_check_int(ctx, "degree", d->degree, 0, 4);
    return st < 0 ? st : crdi_coupling_check_int(ctx, "taps", d->taps, d->degree + 1, CRD_TAPS_MAX);
}

static crd_status polynomial_check_keys(crdi_element_reader* r, const crdi_json* n)
{
    const crd_design* d = &r->e->options.design;
    if (d->taps >= d->degree + 1) { return CRD_OK; }
    return crdi_element_fail(r, n, CRD_E_RANGE,
                             "taps = %d for degree = %d, expected more taps than the degree",
                             d->taps, d->degree);
}

static const crdi_element_option keys[] = {
    CRDI_ELEMENT_TAPS,
    {"degree", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.degree), .min = 0, .max = 4},
    {0},
};

const crdi_algorithm crdi_algorithm_moment = {
    .name = "moment",
    CRDI_DESCRIBED(.keys = keys, .check_keys = polynomial_check_keys),
    .has_design = true,
    .check = polynomial_check,
    .weigh = weigh_moment};
const crdi_algorithm crdi_algorithm_savitzky_golay = {
    .name = "savitzky-golay",
    CRDI_DESCRIBED(.keys = keys, .check_keys = polynomial_check_keys),
    .has_design = true,
    .check = polynomial_check,
    .weigh = weigh_point};
