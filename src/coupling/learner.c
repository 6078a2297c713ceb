#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"

enum { SETTLED = 30, POWER_WINDOW = 100 }; // samples
// Differences above this multiple of their usual size are cut: a fast shift of level, which nothing
// in the past could tell, would rule the sums for as long as they remember.
static const double outlier = 2.5;
static const double early = 30;

crd_status crdi_learner_init(crdi_learner* r, crd_context* ctx, int m, int k_max, double window,
                             double ridge, const crd_linear* to)
{
    const size_t n = (size_t)m - 1, ks = (size_t)k_max + 1;
    *r = (crdi_learner){.m = m,
                        .k_max = k_max,
                        .mu = 1 - 1 / window,
                        .ridge = ridge,
                        .to = to,
                        .rows = k_max + m,
                        .lags = k_max + m};
    r->R = crdi_new_array(ctx, (size_t)r->rows * (size_t)r->lags, sizeof *r->R);
    r->a = crdi_new_array(ctx, ks * (size_t)m, sizeof *r->a);
    r->solved = crdi_new_array(ctx, ks, sizeof *r->solved);
    r->matrix = crdi_new_array(ctx, n * n, sizeof *r->matrix);
    r->c = crdi_new_array(ctx, n, sizeof *r->c);
    r->d = crdi_new_array(ctx, (size_t)r->lags, sizeof *r->d);
    if (!r->d || !r->R || !r->a || !r->solved || !r->matrix || !r->c) { return CRD_E_MEMORY; }
    crdi_learner_reset(r);
    return CRD_OK;
}

void crdi_learner_clear(crdi_learner* r, crd_context* ctx)
{
    crdi_free(ctx, r->R);
    crdi_free(ctx, r->a);
    crdi_free(ctx, r->solved);
    crdi_free(ctx, r->matrix);
    crdi_free(ctx, r->c);
    crdi_free(ctx, r->d);
}

void crdi_learner_reset(crdi_learner* r)
{
    memset(r->R, 0, (size_t)r->rows * (size_t)r->lags * sizeof *r->R);
    memset(r->d, 0, (size_t)r->lags * sizeof *r->d);
    r->head = 0;
    r->count = 0;
    r->power = 0;
    for (int k = 0; k <= r->k_max; k++) {
        double* a = &r->a[k * r->m];
        const crd_linear* to = &r->to[k];
        for (int i = 0; i < r->m; i++) {
            a[i] = i < to->m ? to->a[i] : 0;
        }
        r->solved[k] = 0;
    }
}

int crdi_learner_reach(const crdi_learner* r)
{
    return r->m;
}

static const double* row_of(const crdi_learner* r, int age)
{
    const int row = r->head + age;
    return &r->R[(row < r->rows ? row : row - r->rows) * r->lags];
}

void crdi_learner_push(crdi_learner* r, const double* y)
{
    const double* before = row_of(r, 0);
    r->head = r->head > 0 ? r->head - 1 : r->rows - 1;
    double* now = &r->R[r->head * r->lags];
    const double limit = outlier * sqrt(r->power), d = y[0] - y[1];
    memmove(&r->d[1], &r->d[0], (size_t)(r->lags - 1) * sizeof *r->d);
    r->d[0] = r->count < SETTLED || fabs(d) <= limit ? d : copysign(limit, d);
    r->power += (r->d[0] * r->d[0] - r->power) / fmin((double)r->count + 1, POWER_WINDOW);
    for (int l = 0; l < r->lags; l++) {
        now[l] = r->mu * before[l] + r->d[0] * r->d[l];
    }
    r->count++;
}

// The weight of difference i in sum_j a_j y_j = y_0 + sum_i c_i (y_i - y_{i+1}), if sum a = 1.
static void to_differences(const crd_linear* l, int n, double* c)
{
    double rest = 0;
    for (int i = n - 1; i >= 0; i--) {
        rest += i + 1 < l->m ? l->a[i + 1] : 0;
        c[i] = -rest;
    }
}

static void refresh_weights(crdi_learner* r, int k)
{
    const int n = r->m - 1;
    double* a = &r->a[k * r->m];
    double trace = 0;
    for (int i = 0; i < n; i++) {
        const double* row = row_of(r, k + i);
        trace += row[0];
        for (int j = i; j < n; j++) {
            r->matrix[j * n + i] = row[j - i];
        }
    }
    // Few samples say little: in the beginning the pull is strong.
    const double count = (double)r->count;
    const double pull = (r->ridge + early * r->m / (count * count)) * trace / n;
    if (!(pull > 1e-280)) { return; } // nothing has moved yet
    to_differences(&r->to[k], n, r->c);
    for (int i = 0; i < n; i++) {
        r->matrix[i * n + i] += pull;
        r->c[i] *= pull;
        for (int l = 0; l < k; l++) {
            r->c[i] += row_of(r, l)[k + i - l];
        }
    }
    if (!crdi_cholesky(n, r->matrix)) { return; }
    crdi_cholesky_solve(n, r->matrix, r->c);
    a[0] = 1 + r->c[0];
    for (int i = 1; i < n; i++) {
        a[i] = r->c[i] - r->c[i - 1];
    }
    a[n] = -r->c[n - 1];
}

const double* crdi_learner_weights(crdi_learner* r, int k, int refresh)
{
    if (r->count >= r->solved[k] + refresh) {
        refresh_weights(r, k);
        r->solved[k] = r->count;
    }
    return &r->a[k * r->m];
}
