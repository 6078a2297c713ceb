// Weights of the linear algorithms: yhat = b + sum a_i y_{n-k-i} + theta sum A_i y_{n-k-i}.
#include "coupling/algorithm.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

crd_design crd_design_defaults(crd_method method)
{
    const crdi_algorithm* row = crdi_design_at((int)method);
    crd_design d = {.method = method,
                    .taps = 9,
                    .degree = 2,
                    .curve = 1,
                    .errors = 2,
                    .order = 1,
                    .distance = CRD_DISTANCE_END,
                    .bands = {{0, 0.1, 1}, {0.3, 0.55, 0.03}},
                    .band_count = 2,
                    .noise = 1e-4};
    if (row) { memcpy(d.own, row->own, sizeof d.own); }
    return d;
}

double crd_linear_eval(const crd_linear* l, const crd_real* y, double theta)
{
    const crd_real value = crdi_dot(l->m, l->a, y) + l->b;
    return l->A ? value + theta * crdi_dot(l->m, l->A, y) : value;
}

void crd_linear_clear(crd_context* ctx, crd_linear* l)
{
    crd_free(ctx, (void*)l->a); // A lies in the same block
    *l = (crd_linear){0};
}

crd_status crdi_linear_begin(crd_context* ctx, int m, int k, crd_linear* out, double** w)
{
    crd_real* a = crdi_new_array(ctx, 2 * (size_t)m, sizeof *a);
    *out = (crd_linear){.m = m, .k = k, .a = a, .A = a ? a + m : NULL};
    *w = a ? crdi_new_array(ctx, 2 * (size_t)m, sizeof **w) : NULL;
    return *w ? CRD_OK : CRD_E_MEMORY;
}

void crdi_linear_end(crd_context* ctx, crd_status st, crd_linear* out, double* w)
{
    crd_real* a = (crd_real*)out->a;
    for (int i = 0; i < 2 * out->m && st == CRD_OK; i++) {
        a[i] = (crd_real)w[i];
    }
    crd_free(ctx, w);
    if (st < 0) { crd_linear_clear(ctx, out); }
}

crd_status crdi_coupling_check_int(crd_context* ctx, const char* what, int x, int low, int high)
{
    return x >= low && x <= high
               ? CRD_OK
               : crdi_fail(ctx, CRD_E_RANGE, "coupling: %s = %d, expected %d .. %d", what, x, low,
                           high);
}

crd_status crd_linear_make(crd_context* ctx, const crd_design* design, int k, crd_linear* out)
{
    crd_status st = CRD_OK;
    const crdi_algorithm* row = crdi_design_at((int)design->method);
    CRD_TRY(crdi_coupling_check_int(ctx, "k", k, 0, CRD_LATENCY_MAX));
    CRD_TRY(
        crdi_coupling_check_int(ctx, "method", (int)design->method, 0, crdi_design_count() - 1));
    if (row->check) { CRD_TRY(row->check(ctx, design)); }
    const int m = row->taps ? row->taps(design, k) : design->taps;
    crd_linear l;
    double* w;
    st = crdi_linear_begin(ctx, m, k, &l, &w);
    if (st == CRD_OK) { st = row->weigh(ctx, design, k, m, w, w + m); }
    crdi_linear_end(ctx, st, &l, w);
    if (st == CRD_OK) { *out = l; }
fail:
    return st;
}

static crd_status check_sum(crd_context* ctx, const char* name, const crd_real* w, int m,
                            double want, bool any_gain)
{
    double sum = 0;
    for (int i = 0; i < m; i++) {
        if (!isfinite(w[i])) {
            return crdi_fail(ctx, CRD_E_RANGE, "coupling: %s[%d] = %g, expected a finite number",
                             name, i, w[i]);
        }
        sum += w[i];
    }
    if (!any_gain && !(fabs(sum - want) <= CRDI_OF(1e-6, 1e-5))) {
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
    CRD_TRY(crdi_coupling_check_int(ctx, "m", from->m, 1, CRD_TAPS_MAX));
    CRD_TRY(crdi_coupling_check_int(ctx, "k", from->k, 0, CRD_LATENCY_MAX));
    CRD_TRY(check_sum(ctx, "a", from->a, from->m, 1, any_gain));
    if (from->A) { CRD_TRY(check_sum(ctx, "A", from->A, from->m, 0, any_gain)); }
    if (!isfinite(from->b) || (from->b != 0 && !any_gain)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         isfinite(from->b)
                             ? "coupling: b = %g, expected 0: constants would be distorted "
                               "(any-gain allows it)"
                             : "coupling: b = %g, expected a finite number",
                         from->b);
    }
    const size_t bytes = (size_t)from->m * sizeof(crd_real);
    crd_real* a = crdi_new_array(ctx, 2 * (size_t)from->m, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    memcpy(a, from->a, bytes);
    if (from->A) { memcpy(a + from->m, from->A, bytes); }
    *out = (crd_linear){.m = from->m, .k = from->k, .a = a, .A = a + from->m, .b = from->b};
fail:
    return st;
}
