// Feedforward networks: forward pass, and the morphism from a linear algorithm.
#include "coupling/coupling.h"

#include <math.h>
#include <string.h>

enum { N1_MAX = 64, N2_MAX = 64 };

double crd_network_eval(const crd_network* n, const double* y)
{
    double u[N1_MAX];
    double out = n->b3;
    for (int i = 0; i < n->n1; i++) {
        u[i] = n->b1[i] + crdi_dot(n->m, &n->W1[i * n->m], y);
    }
    for (int j = 0; j < n->n2; j++) {
        const double x = n->b2[j] + crdi_dot(n->n1, &n->W2[j * n->n1], u);
        out += n->W3[j] * (x >= 0 ? x : n->alpha * x);
    }
    return out;
}

static double* allocate(crd_context* ctx, crd_network* n)
{
    const size_t m = (size_t)n->m, n1 = (size_t)n->n1, n2 = (size_t)n->n2;
    double* w = crdi_new_array(ctx, n1 * m + n1 + n2 * n1 + n2 + n2, sizeof *w);
    if (!w) { return NULL; }
    n->W1 = w;
    n->b1 = n->W1 + n1 * m;
    n->W2 = n->b1 + n1;
    n->b2 = n->W2 + n2 * n1;
    n->W3 = n->b2 + n2;
    return w;
}

static crd_status check_shape(crd_context* ctx, const crd_network* n)
{
    if (n->m < 1 || n->m > CRD_TAPS_MAX || n->n1 < 1 || n->n1 > N1_MAX || n->n2 < 1 ||
        n->n2 > N2_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: a network of %d-%d-%d-1, expected 1 .. %d inputs and layers of "
                         "1 .. %d",
                         n->m, n->n1, n->n2, CRD_TAPS_MAX, N1_MAX);
    }
    if (!(n->alpha > -1 && n->alpha <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: alpha = %g, expected above -1 and up to 1",
                         n->alpha);
    }
    return CRD_OK;
}

static crd_status check_finite(crd_context* ctx, const char* name, const double* w, int n)
{
    for (int i = 0; i < n; i++) {
        if (!isfinite(w[i])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "coupling: %s[%d] of the network = %g, expected a finite number", name,
                             i, w[i]);
        }
    }
    return CRD_OK;
}

crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, crd_network* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_shape(ctx, from));
    const int n1 = from->n1, n2 = from->n2;
    const struct {
        const char* name;
        const double* w;
        int count;
    } parts[] = {{"W1", from->W1, n1 * from->m}, {"b1", from->b1, n1}, {"W2", from->W2, n2 * n1},
                 {"b2", from->b2, n2},           {"W3", from->W3, n2}, {"b3", &from->b3, 1}};
    for (int i = 0; i < 6; i++) {
        CRD_TRY(check_finite(ctx, parts[i].name, parts[i].w, parts[i].count));
    }
    crd_network n = *from;
    double* w = allocate(ctx, &n);
    if (!w) { return CRD_E_MEMORY; }
    for (int i = 0; i < 5; i++) {
        memcpy(w, parts[i].w, (size_t)parts[i].count * sizeof *w);
        w += parts[i].count;
    }
    *out = n;
fail:
    return st;
}

// x = (s(x) - s(-x)) / (1 + alpha) for the leaky ReLU s: two neurons make a linear one. Baumann
// 2024, eq. 24, has a plus there, which gives a multiple of |x|.
crd_status crd_network_morph(crd_context* ctx, const crd_linear* l, double alpha, crd_network* out)
{
    enum { n1 = 4 };
    static const double r[n1] = {0.1, 0.2, 0.3, 0.4};
    crd_network n = {.m = l->m, .n1 = n1, .n2 = 2, .alpha = alpha};
    crd_status st = CRD_OK;
    CRD_TRY(check_shape(ctx, &n));
    CRD_TRY(check_finite(ctx, "a", l->a, l->m));
    double* w = allocate(ctx, &n);
    if (!w) { return CRD_E_MEMORY; }
    double* W2 = w + n1 * l->m + n1;
    double* W3 = W2 + 2 * n1 + 2;
    for (int i = 0; i < n1; i++) {
        memcpy(&w[i * l->m], l->a, (size_t)l->m * sizeof *w);
        W2[i] = r[i];
        W2[n1 + i] = -r[n1 - 1 - i];
    }
    W3[0] = 1 / (1 + alpha);
    W3[1] = -W3[0];
    *out = n;
fail:
    return st;
}

void crd_network_clear(crd_context* ctx, crd_network* n)
{
    crdi_free(ctx, (void*)n->W1); // one block
    *n = (crd_network){0};
}
