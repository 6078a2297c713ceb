#include <math.h>
#include <string.h>

#include "coupling/algorithm.h"
#include "shared/base.h"

enum {
    IN_USE = 256, // samples since a filter was asked for which it goes on learning
    SETTLED = 2,  // samples per tap until it is better than the hold
};
static const crd_real largest = CRDI_OF(1e280, 1e35);

// Recursive least squares over the samples themselves, as usually published:
//     y_s = sum_i a_i y_{s-k-i}
// with exponential forgetting, one filter for each latency that is in use.
typedef struct rls {
    int m, k_max;
    crd_real forget, ridge; // ridge: weight of the start, the hold, in mean squares of the signal
    crd_real *a, *P;        // (k_max + 1 x m), (k_max + 1 x m x m) by latency
    int64_t* learned;       // (k_max + 1) samples that the filter has learned from, -1: none
    int64_t* used;          // (k_max + 1) count of samples when the filter was last asked
    crd_real* g;            // (m) gain, workspace of an update
    crd_real power;         // mean square of the first samples
    int64_t count;
} rls;

static void rls_forget(void* self);

static crd_status rls_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    rls* r = self;
    const size_t n = (size_t)o->learning_taps, ks = (size_t)o->k_max + 1;
    *r = (rls){.m = o->learning_taps,
               .k_max = o->k_max,
               .forget = 1 - 1 / o->learning_window,
               .ridge = o->learning_ridge};
    r->a = crdi_new_array(ctx, ks * n, sizeof *r->a);
    r->P = crdi_new_array(ctx, ks * n * n, sizeof *r->P);
    r->learned = crdi_new_array(ctx, ks, sizeof *r->learned);
    r->used = crdi_new_array(ctx, ks, sizeof *r->used);
    r->g = crdi_new_array(ctx, n, sizeof *r->g);
    if (!r->a || !r->P || !r->learned || !r->used || !r->g) { return CRD_E_MEMORY; }
    rls_forget(r);
    return CRD_OK;
}

static void rls_clear(void* self, crd_context* ctx)
{
    rls* r = self;
    crd_free(ctx, r->a);
    crd_free(ctx, r->P);
    crd_free(ctx, r->learned);
    crd_free(ctx, r->used);
    crd_free(ctx, r->g);
}

static void rls_forget(void* self)
{
    rls* r = self;
    r->power = 0;
    r->count = 0;
    for (int k = 0; k <= r->k_max; k++) {
        r->learned[k] = -1;
        r->used[k] = -IN_USE;
    }
}

// P at the start: 1 / (ridge times the mean square of the signal), so that scales do not matter.
static crd_real first_P(const rls* r)
{
    const crd_real p = 1 / (r->ridge * r->power);
    return p < largest ? p : 0; // 0: the signal is zero so far
}

static void rls_start(rls* r, int k)
{
    crd_real *a = &r->a[k * r->m], *P = &r->P[(size_t)k * (size_t)(r->m * r->m)];
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
static void rls_learn(rls* r, int k, const crd_real* y)
{
    const int m = r->m;
    const crd_real *x = y + k, forget = r->forget;
    crd_real *a = &r->a[k * m], *P = &r->P[(size_t)k * (size_t)(m * m)], *g = r->g;
    crd_real xPx = 0, trace = 0;
    for (int i = 0; i < m; i++) {
        g[i] = crdi_dot(m, &P[i * m], x);
        xPx += g[i] * x[i];
        trace += P[i * m + i];
    }
    const crd_real e = y[0] - crdi_dot(m, a, x);
    if (!(xPx >= 0 && xPx < largest && fabs(e) < largest)) { // rounding has won
        rls_start(r, k);
        return;
    }
    crd_real gain = 1 / (forget + xPx), down = gain, grow = 1 / forget;
    if (!(trace < m * first_P(r))) {
        gain = 1 / (1 + xPx);
        down = xPx > CRDI_OF(1e-280, 1e-35) ? (forget - (1 - forget) / xPx) / forget * gain : 0;
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

static void rls_push(void* self, const crd_real* y, crd_real lift)
{
    (void)lift;
    rls* r = self;
    if (!(y[0] * y[0] < largest)) {
        rls_forget(r);
        return;
    }
    r->count++;
    if (r->count <= SETTLED * r->m || r->power == 0) {
        r->power += (y[0] * y[0] - r->power) / (crd_real)r->count;
    }
    for (int k = 1; k <= r->k_max && first_P(r) > 0; k++) {
        if (r->count - r->used[k] >= IN_USE) { continue; }
        if (r->learned[k] < 0) { rls_start(r, k); }
        rls_learn(r, k, y);
    }
}

static crd_real rls_predict(void* self, const crd_real* y, int k)
{
    rls* r = self;
    r->used[k] = r->count;
    return r->learned[k] < SETTLED * r->m ? y[0] : crdi_dot(r->m, &r->a[k * r->m], y);
}

static int rls_reach(const void* self)
{
    const rls* r = self;
    return r->m + r->k_max;
}

static int rls_count_taps(const void* self)
{
    return ((const rls*)self)->m;
}

static const crdi_element_option keys[] = {CRDI_ELEMENT_LEARNING, CRDI_ELEMENT_GAIN_LIMIT, {0}};

const crdi_algorithm crdi_algorithm_rls = {.name = "rls",
                                           CRDI_DESCRIBED(.keys = keys),
                                           .learns = true,
                                           .check_options = crdi_coupling_check_learning,
                                           .size = sizeof(rls),
                                           .init = rls_init,
                                           .clear = rls_clear,
                                           .forget = rls_forget,
                                           .push = rls_push,
                                           .predict = rls_predict,
                                           .reach = rls_reach,
                                           .memory = rls_count_taps};
