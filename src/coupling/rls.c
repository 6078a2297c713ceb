#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"
#include "shared/base.h"

enum {
    IN_USE = 256, // samples since a filter was asked for which it goes on learning
    SETTLED = 2,  // samples per tap until it is better than the hold
};
static const double largest = 1e280;

crd_status crdi_rls_init(crdi_rls* r, crd_context* ctx, int m, int k_max, double window,
                         double ridge)
{
    const size_t n = (size_t)m, ks = (size_t)k_max + 1;
    *r = (crdi_rls){.m = m, .k_max = k_max, .forget = 1 - 1 / window, .ridge = ridge};
    r->a = crdi_new_array(ctx, ks * n, sizeof *r->a);
    r->P = crdi_new_array(ctx, ks * n * n, sizeof *r->P);
    r->learned = crdi_new_array(ctx, ks, sizeof *r->learned);
    r->used = crdi_new_array(ctx, ks, sizeof *r->used);
    r->g = crdi_new_array(ctx, n, sizeof *r->g);
    if (!r->a || !r->P || !r->learned || !r->used || !r->g) { return CRD_E_MEMORY; }
    crdi_rls_reset(r);
    return CRD_OK;
}

void crdi_rls_clear(crdi_rls* r, crd_context* ctx)
{
    crd_free(ctx, r->a);
    crd_free(ctx, r->P);
    crd_free(ctx, r->learned);
    crd_free(ctx, r->used);
    crd_free(ctx, r->g);
}

void crdi_rls_reset(crdi_rls* r)
{
    r->power = 0;
    r->count = 0;
    for (int k = 0; k <= r->k_max; k++) {
        r->learned[k] = -1;
        r->used[k] = -IN_USE;
    }
}

// P at the start: 1 / (ridge times the mean square of the signal), so that scales do not matter.
static double first_P(const crdi_rls* r)
{
    const double p = 1 / (r->ridge * r->power);
    return p < largest ? p : 0; // 0: the signal is zero so far
}

static void start(crdi_rls* r, int k)
{
    double *a = &r->a[k * r->m], *P = &r->P[(size_t)k * (size_t)(r->m * r->m)];
    memset(a, 0, (size_t)r->m * sizeof *a);
    memset(P, 0, (size_t)(r->m * r->m) * sizeof *P);
    a[0] = 1;
    r->learned[k] = 0;
    for (int i = 0; i < r->m; i++) {
        P[i * r->m + i] = first_P(r);
    }
}

// a += P x e / (forget + r), P = (P - P x x^T P / (forget + r)) / forget with r = x^T P x.
// Directions in which the signal does not move are forgotten until nothing is left: P would grow
// without bound. So while its trace is above that of the start, only the direction of x is
// forgotten (Kulhavy 1987): a += P x e / (1 + r), P -= P x x^T P (forget - (1 - forget) / r) /
// (forget (1 + r)).
static void learn(crdi_rls* r, int k, const double* y)
{
    const int m = r->m;
    const double *x = y + k, forget = r->forget;
    double *a = &r->a[k * m], *P = &r->P[(size_t)k * (size_t)(m * m)], *g = r->g;
    double xPx = 0, trace = 0;
    for (int i = 0; i < m; i++) {
        g[i] = crdi_dot(m, &P[i * m], x);
        xPx += g[i] * x[i];
        trace += P[i * m + i];
    }
    const double e = y[0] - crdi_dot(m, a, x);
    if (!(xPx >= 0 && xPx < largest && fabs(e) < largest)) { // rounding has won
        start(r, k);
        return;
    }
    double gain = 1 / (forget + xPx), down = gain, grow = 1 / forget;
    if (!(trace < m * first_P(r))) {
        gain = 1 / (1 + xPx);
        down = xPx > 1e-280 ? (forget - (1 - forget) / xPx) / forget * gain : 0;
        grow = 1;
    }
    for (int i = 0; i < m; i++) {
        a[i] += gain * g[i] * e;
        for (int j = i; j < m; j++) {
            P[i * m + j] = P[j * m + i] = (P[i * m + j] - down * g[i] * g[j]) * grow;
        }
    }
    r->learned[k]++;
}

void crdi_rls_push(crdi_rls* r, const double* y)
{
    if (!(y[0] * y[0] < largest)) {
        crdi_rls_reset(r);
        return;
    }
    r->count++;
    if (r->count <= SETTLED * r->m || r->power == 0) {
        r->power += (y[0] * y[0] - r->power) / (double)r->count;
    }
    for (int k = 1; k <= r->k_max && first_P(r) > 0; k++) {
        if (r->count - r->used[k] >= IN_USE) { continue; }
        if (r->learned[k] < 0) { start(r, k); }
        learn(r, k, y);
    }
}

double crdi_rls_predict(crdi_rls* r, const double* y, int k)
{
    r->used[k] = r->count;
    return r->learned[k] < SETTLED * r->m ? y[0] : crdi_dot(r->m, &r->a[k * r->m], y);
}
