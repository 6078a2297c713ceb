// The filter of least mean square error over frequency bands (Wiener): the a that minimise
//     sum_b P_b mean_b |1 - e^{-jkx} sum_i a_i e^{-jix}|^2 + noise |a|^2   with sum a = 1,
// or with any sum and b = mean (1 - sum a).
#include "coupling/algorithm.h"

#include <math.h>
#include <string.h>

// Mean of cos(n x) over a band.
static double mean_cos(const crd_band* b, double n)
{
    return n == 0 ? 1 : (sin(n * b->high) - sin(n * b->low)) / (n * (b->high - b->low));
}

// Minimise sum_b P_b mean_b |1 - sum_i a_i e^{-j(i+k)x}|^2 + noise |a|^2 subject to sum a = 1,
// unless it is `free`.
// Both sides are made of the bands' autocorrelation, a function of the distance of two taps.
static crd_status wiener_solve(crd_context* ctx, const crd_band* bands, int n, double noise, int k,
                               int m, bool free, double* a)
{
    double* r = crdi_new_array(ctx, (size_t)m * (size_t)(m + 2), sizeof *r); // stacks may be short
    if (!r) { return CRD_E_MEMORY; }
    double *one = r + m * m, *lag = one + m;
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
    if (ok) { crdi_cholesky_solve(m, r, a); }
    if (ok && !free) {
        double sum_a = 0, sum_one = 0;
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

static crd_status check_wiener(crd_context* ctx, int m, const crd_band* bands, int n, double noise)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_int(ctx, "taps", m, 1, CRD_TAPS_MAX));
    CRD_TRY(crdi_coupling_check_int(ctx, "number of bands", n, 1, 100000));
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

static crd_status make_wiener(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                              double noise, bool free, double mean, crd_linear* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_int(ctx, "k", k, 0, CRD_LATENCY_MAX));
    CRD_TRY(check_wiener(ctx, m, bands, n, noise));
    crd_linear l;
    double* w;
    st = crdi_linear_begin(ctx, m, k, &l, &w);
    if (st == CRD_OK) { st = wiener_solve(ctx, bands, n, noise, k, m, free, w); }
    l.b = mean;
    for (int i = 0; i < m && st == CRD_OK; i++) {
        l.b -= mean * w[i];
    }
    crdi_linear_end(ctx, st, &l, w);
    if (st == CRD_OK) { *out = l; }
fail:
    return st;
}

crd_status crd_linear_wiener(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                             double noise, crd_linear* out)
{
    return make_wiener(ctx, k, m, bands, n, noise, false, 0, out);
}

crd_status crd_linear_affine(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                             double noise, double mean, crd_linear* out)
{
    if (!isfinite(mean)) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: mean = %g, expected a finite number", mean);
    }
    return make_wiener(ctx, k, m, bands, n, noise, true, mean, out);
}

static crd_status wiener_check(crd_context* ctx, const crd_design* d)
{
    const crd_status st =
        crdi_coupling_check_int(ctx, "band_count", d->band_count, 1, CRD_BANDS_MAX);
    return st < 0 ? st : check_wiener(ctx, d->taps, d->bands, d->band_count, d->noise);
}

static crd_status wiener_weigh(crd_context* ctx, const crd_design* d, int k, int m, double* a,
                               double* A)
{
    (void)A;
    return wiener_solve(ctx, d->bands, d->band_count, d->noise, k, m, false, a);
}

// ---- in descriptions ---------------------------------------------------------------------------

static crd_status read_band(crdi_element_reader* r, int index, const crdi_json* n, crd_band* out)
{
    const char* what = "[low, high, power] such as [0, 10, 1] or [\"5 Hz\", \"9 Hz\", 0.03]";
    if (n->kind != CRDI_JSON_LIST || n->count != 3) {
        return crdi_json_fail(
            r->ctx, r->file, n->line, CRD_E_FORMAT, "bands: band %d is %s, expected %s", index + 1,
            n->kind == CRDI_JSON_LIST ? "a list of another length" : crdi_element_shown(n).text,
            what);
    }
    crd_status st = CRD_OK;
    CRD_TRY(crdi_element_read_frequency(r, n->first, &out->low));
    CRD_TRY(crdi_element_read_frequency(r, n->first->next, &out->high));
    CRD_TRY(crdi_element_read_number(r, n->last, CRDI_ANY, &out->power));
    if (!(out->low >= 0 && out->low < out->high && isfinite(out->high))) {
        return crdi_json_fail(r->ctx, r->file, n->line, CRD_E_RANGE,
                              "bands: band %d = [%g, %g] rad/s, expected 0 <= low < high",
                              index + 1, out->low, out->high);
    }
    if (!(out->power > 0)) {
        return crdi_json_fail(r->ctx, r->file, n->line, CRD_E_RANGE,
                              "bands: the power of band %d = %g, expected more than 0", index + 1,
                              out->power);
    }
    if (index > 0 && out->low < out[-1].high) {
        return crdi_json_fail(
            r->ctx, r->file, n->line, CRD_E_RANGE,
            "bands: band %d begins at %g rad/s, below %g where band %d ends, expected "
            "ascending bands that do not overlap",
            index + 1, out->low, out[-1].high, index);
    }
fail:
    return st;
}

static crd_status read_bands(crdi_element_reader* r, const crdi_json* n)
{
    crd_design* d = &r->e->options.design;
    if (n->kind != CRDI_JSON_LIST || n->count == 0) {
        return crdi_element_expected(r, n, "a list such as [[0, 10, 1], [30, 55, 0.03]]");
    }
    if (n->count > CRD_BANDS_MAX) {
        return crdi_element_fail(r, n, CRD_E_RANGE, "%d bands, expected at most %d", n->count,
                                 CRD_BANDS_MAX);
    }
    memset(d->bands, 0, sizeof d->bands);
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        const crd_status st = read_band(r, i, m, &d->bands[i]);
        if (st < 0) { return st; }
    }
    d->band_count = i;
    r->e->bands_given = true;
    return CRD_OK;
}

static void write_bands(crdi_element_writer* w, const crd_element* e)
{
    double rows[3 * CRD_BANDS_MAX];
    const crd_design* d = &e->options.design;
    if (!e->bands_given) { return; }
    for (int i = 0; i < d->band_count; i++) {
        const crd_band* b = &d->bands[i];
        memcpy(&rows[3 * i], (double[3]){b->low, b->high, b->power}, 3 * sizeof *rows);
    }
    crdi_element_put_rows(w, "bands", rows, d->band_count, 3);
}

static const crdi_element_option keys[] = {
    CRDI_ELEMENT_TAPS,
    {"bands", .read = read_bands, .write = write_bands},
    {"noise", CRDI_ELEMENT_NUMBER, CRDI_ELEMENT_FIELD(design.noise), .range = CRDI_POSITIVE},
    {0},
};

const crdi_algorithm crdi_algorithm_wiener = {.name = "wiener",
                                              CRDI_DESCRIBED(.keys = keys),
                                              .has_design = true,
                                              .check = wiener_check,
                                              .weigh = wiener_weigh};
