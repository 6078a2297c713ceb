// What many runs say together: means, quantiles, sensitivities, each with how sure it is.
#include "shared/base_system.h"
#include "study/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Student's t: the normal quantile with the expansion of Cornish and Fisher (Abramowitz 26.7.5),
// exact for 1 and 2 degrees of freedom.
double crdi_student_quantile(double p, double n)
{
    if (n == 1) { return tan(M_PI * (p - 0.5)); }
    if (n == 2) { return (2 * p - 1) / sqrt(2 * p * (1 - p)); }
    const double z = crdi_normal_quantile(p), z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n) +
           (79 * z7 * z * z + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * n * n * n * n);
}

// Between the two nearest: x(1 + (n - 1) p), as most programs do (type 7).
static double quantile(const double* sorted, int64_t n, double p)
{
    const double at = (double)(n - 1) * p;
    const int64_t i = (int64_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

crd_status crdi_study_summarise(crd_context* ctx, const double* x, int64_t count,
                                crdi_study_summary* s)
{
    static const double parts[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    double* y = crdi_new_array(ctx, (size_t)count, sizeof *y);
    if (!y) { return CRD_E_MEMORY; }
    int64_t n = 0;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) { continue; }
        y[n++] = x[i];
        const double d = x[i] - mean; // Welford
        mean += d / (double)n;
        square += d * (x[i] - mean);
    }
    *s = (crdi_study_summary){.count = n,
                              .mean = NAN,
                              .deviation = NAN,
                              .mean_low = NAN,
                              .mean_high = NAN,
                              .min = NAN,
                              .max = NAN,
                              .median_low = NAN,
                              .median_high = NAN};
    for (int i = 0; i < 5; i++) {
        s->quantiles[i] = NAN;
    }
    if (n > 0) {
        qsort(y, (size_t)n, sizeof *y, crdi_by_value);
        s->mean = mean;
        s->min = y[0];
        s->max = y[n - 1];
        for (int i = 0; i < 5; i++) {
            s->quantiles[i] = quantile(y, n, parts[i]);
        }
    }
    if (n > 1) {
        s->deviation = sqrt(square / (double)(n - 1));
        const double half =
            crdi_student_quantile(0.975, (double)(n - 1)) * s->deviation / sqrt((double)n);
        s->mean_low = mean - half;
        s->mean_high = mean + half;
    }
    // Order statistics l and n + 1 - l around the median, by the binomial's normal approximation.
    const int64_t l = (int64_t)floor(0.5 * ((double)n - 1.959963984540054 * sqrt((double)n)));
    if (l >= 1) {
        s->median_low = y[l - 1];
        s->median_high = y[n - l];
    }
    crd_free(ctx, y);
    return CRD_OK;
}

// ---- Sobol's indices ---------------------------------------------------------------------------
//
// With f(A), f(B) and f(A with column j of B), Saltelli (2010), table 2 (b) and (f):
//   S_j  = mean(f(B) (f(AB_j) - f(A))) / V,   T_j = mean((f(A) - f(AB_j))^2) / (2 V)
// V over f(A) and f(B) together. y is centred first, which changes nothing but the noise.

typedef struct rows {
    const double* y;
    const int64_t* use; // rows of the design
    int64_t count;
    int factors;
} rows;

static void indices(const rows* r, const int64_t* draw, double* first, double* total)
{
    const int k = r->factors, width = k + 2;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const double* y = r->y + r->use[draw ? draw[i] : i] * width;
        mean += y[0] + y[1];
    }
    mean /= 2 * (double)r->count;
    for (int j = 0; j < k; j++) {
        first[j] = total[j] = 0;
    }
    for (int64_t i = 0; i < r->count; i++) {
        const double* y = r->y + r->use[draw ? draw[i] : i] * width;
        const double a = y[0] - mean, b = y[1] - mean;
        square += a * a + b * b;
        for (int j = 0; j < k; j++) {
            const double d = y[2 + j] - y[0];
            first[j] += b * d;
            total[j] += d * d;
        }
    }
    const double variance = square / (2 * (double)r->count - 1);
    for (int j = 0; j < k; j++) {
        first[j] /= (double)r->count * variance;
        total[j] /= 2 * (double)r->count * variance;
    }
}

enum { RESAMPLES = 1000 };

// Bootstrap over the rows of the design: 1.96 standard deviations of what resamples say.
static void spread(const double* x, double at, double* low, double* high)
{
    double mean = 0, square = 0;
    for (int i = 0; i < RESAMPLES; i++) {
        mean += x[i] / RESAMPLES;
    }
    for (int i = 0; i < RESAMPLES; i++) {
        square += (x[i] - mean) * (x[i] - mean);
    }
    const double half = 1.959963984540054 * sqrt(square / (RESAMPLES - 1));
    *low = at - half;
    *high = at + half;
}

crd_status crdi_study_sobol(crd_context* ctx, const double* y, int64_t samples, int k,
                            uint64_t seed, crdi_study_effect* out)
{
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    int64_t* use = crdi_arena_new(&arena, (size_t)samples, sizeof *use);
    int64_t* draw = crdi_arena_new(&arena, (size_t)samples, sizeof *draw);
    double* first = crdi_arena_new(&arena, (size_t)k, sizeof *first);
    double* total = crdi_arena_new(&arena, (size_t)k, sizeof *total);
    double* firsts = crdi_arena_new(&arena, (size_t)k * RESAMPLES, sizeof *firsts);
    double* totals = crdi_arena_new(&arena, (size_t)k * RESAMPLES, sizeof *totals);
    crd_status st = crdi_arena_status(&arena);
    if (st < 0) { goto fail; }
    rows r = {y, use, 0, k};
    for (int64_t i = 0; i < samples; i++) {
        bool whole = true;
        for (int j = 0; j < k + 2; j++) {
            whole = whole && isfinite(y[i * (k + 2) + j]);
        }
        if (whole) { use[r.count++] = i; }
    }
    for (int j = 0; j < k; j++) {
        out[j] = (crdi_study_effect){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    if (r.count < 32) { goto fail; } // resamples of fewer say too little of what may be
    indices(&r, NULL, first, total);
    for (int b = 0; b < RESAMPLES; b++) {
        double f[64], t[64];
        for (int64_t i = 0; i < r.count; i++) {
            seed = study_mix(seed);
            draw[i] = (int64_t)((double)r.count * study_unit(seed));
        }
        if (k > 64) { break; }
        indices(&r, draw, f, t);
        for (int j = 0; j < k; j++) {
            firsts[j * RESAMPLES + b] = f[j];
            totals[j * RESAMPLES + b] = t[j];
        }
    }
    for (int j = 0; j < k; j++) {
        out[j].first = first[j];
        out[j].total = total[j];
        spread(firsts + (size_t)j * RESAMPLES, first[j], &out[j].first_low, &out[j].first_high);
        spread(totals + (size_t)j * RESAMPLES, total[j], &out[j].total_low, &out[j].total_high);
    }
fail:
    crd_arena_clear(&arena);
    return st;
}

// ---- Morris ------------------------------------------------------------------------------------
//
// Elementary effects (f(x + step in u_j) - f(x)) / step; mu their mean, mu* that of their sizes
// (Campolongo 2007), sigma their standard deviation.

crd_status crdi_study_morris(crd_context* ctx, const double* y, const double* const* u,
                             int64_t trajectories, int k, crdi_study_effect* out)
{
    crd_status st = CRD_OK;
    double* effects = crdi_new_array(ctx, (size_t)trajectories, sizeof *effects);
    double* sizes = crdi_new_array(ctx, (size_t)trajectories, sizeof *sizes);
    if (!effects || !sizes) { CRD_TRY(CRD_E_MEMORY); }
    for (int j = 0; j < k; j++) {
        int64_t n = 0;
        crdi_study_summary s, of_sizes;
        for (int64_t t = 0; t < trajectories; t++) {
            const int64_t base = t * (k + 1);
            for (int i = 0; i < k; i++) {
                const double step = u[j][base + i + 1] - u[j][base + i];
                const double d = y[base + i + 1] - y[base + i];
                if (step == 0 || !isfinite(d)) { continue; }
                effects[n] = d / step;
                sizes[n] = fabs(effects[n]);
                n++;
                break;
            }
        }
        CRD_TRY(crdi_study_summarise(ctx, effects, n, &s));
        CRD_TRY(crdi_study_summarise(ctx, sizes, n, &of_sizes));
        out[j] = (crdi_study_effect){.first = s.mean,
                                     .first_low = s.mean_low,
                                     .first_high = s.mean_high,
                                     .total = of_sizes.mean,
                                     .total_low = of_sizes.mean_low,
                                     .total_high = of_sizes.mean_high,
                                     .sigma = s.deviation};
    }
fail:
    crd_free(ctx, effects);
    crd_free(ctx, sizes);
    return st;
}
