// Feedforward networks: forward pass, and the morphism from a linear algorithm.
#include "coupling/coupling.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum { N1_MAX = 64, N2_MAX = 64 };

// u = b + W y. Four sums at a time do not wait for each other; each runs over y in order.
static void layer(int rows, int columns, const double* restrict W, const double* restrict b,
                  const double* restrict y, double* restrict u)
{
    int i = 0;
    for (; i + 4 <= rows; i += 4, W += 4 * columns) {
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int j = 0; j < columns; j++) {
            s0 += W[j] * y[j];
            s1 += W[columns + j] * y[j];
            s2 += W[2 * columns + j] * y[j];
            s3 += W[3 * columns + j] * y[j];
        }
        u[i] = b[i] + s0;
        u[i + 1] = b[i + 1] + s1;
        u[i + 2] = b[i + 2] + s2;
        u[i + 3] = b[i + 3] + s3;
    }
    for (; i < rows; i++, W += columns) {
        u[i] = b[i] + crdi_dot(columns, W, y);
    }
}

double crd_network_eval(const crd_network* n, const double* y)
{
    double u[N1_MAX], x[N2_MAX];
    layer(n->n1, n->m, n->W1, n->b1, y, u);
    layer(n->n2, n->n1, n->W2, n->b2, u, x);
    double out = n->b3;
    for (int j = 0; j < n->n2; j++) {
        out += n->W3[j] * (x[j] >= 0 ? x[j] : n->alpha * x[j]);
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

static bool is_alpha(double alpha)
{
    return alpha > -1 && alpha <= 1;
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
    if (!is_alpha(n->alpha)) {
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

typedef struct part {
    const char* name;
    const double* w;
    int count;
} part;

enum { PARTS = 6, IN_BLOCK = 5 }; // b3 stands in the struct

static void list_parts(const crd_network* n, part parts[PARTS])
{
    parts[0] = (part){"W1", n->W1, n->n1 * n->m};
    parts[1] = (part){"b1", n->b1, n->n1};
    parts[2] = (part){"W2", n->W2, n->n2 * n->n1};
    parts[3] = (part){"b2", n->b2, n->n2};
    parts[4] = (part){"W3", n->W3, n->n2};
    parts[5] = (part){"b3", &n->b3, 1};
}

bool crdi_network_is_sane(const crd_network* n)
{
    part parts[PARTS];
    list_parts(n, parts);
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < parts[i].count; j++) {
            if (!parts[i].w || !isfinite(parts[i].w[j])) { return false; }
        }
    }
    return is_alpha(n->alpha);
}

void crdi_network_set(crd_network* to, const crd_network* from)
{
    part parts[PARTS];
    list_parts(from, parts);
    double* w = (double*)to->W1; // one block
    for (int i = 0; i < IN_BLOCK; i++) {
        memcpy(w, parts[i].w, (size_t)parts[i].count * sizeof *w);
        w += parts[i].count;
    }
    to->b3 = from->b3;
    to->alpha = from->alpha;
}

crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, crd_network* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_shape(ctx, from));
    part parts[PARTS];
    list_parts(from, parts);
    for (int i = 0; i < PARTS; i++) {
        CRD_TRY(check_finite(ctx, parts[i].name, parts[i].w, parts[i].count));
    }
    crd_network n = *from;
    if (!allocate(ctx, &n)) { return CRD_E_MEMORY; }
    crdi_network_set(&n, from);
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
    crd_free(ctx, (void*)n->W1); // one block
    *n = (crd_network){0};
}
