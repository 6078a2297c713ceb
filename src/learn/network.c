// Networks that are written, not trained.
#include <math.h>
#include <string.h>

#include "learn/train.h"
#include "shared/base.h"

int crdi_network_size(const crd_network* n)
{
    return n->n1 * n->m + n->n1 + n->n2 * n->n1 + n->n2 + n->n2;
}

crd_status crdi_network_like(crd_context* ctx, const crd_network* from, crd_network* out)
{
    crd_network n = *from;
    double* w = crdi_new_array(ctx, (size_t)crdi_network_size(&n), sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    n.W1 = w;
    n.b1 = n.W1 + n.n1 * n.m;
    n.W2 = n.b1 + n.n1;
    n.b2 = n.W2 + n.n2 * n.n1;
    n.W3 = n.b2 + n.n2;
    memcpy((double*)n.W1, from->W1, (size_t)(n.n1 * n.m) * sizeof *w);
    memcpy((double*)n.b1, from->b1, (size_t)n.n1 * sizeof *w);
    memcpy((double*)n.W2, from->W2, (size_t)(n.n2 * n.n1) * sizeof *w);
    memcpy((double*)n.b2, from->b2, (size_t)n.n2 * sizeof *w);
    memcpy((double*)n.W3, from->W3, (size_t)n.n2 * sizeof *w);
    *out = n;
    return CRD_OK;
}

// Copies of `a` in the first layer, mixed by different weights that are 1 in sum, so that neurons
// do not train alike; leaky ReLUs s in pairs, x = (s(x) - s(-x)) / (1 + alpha), as many as there
// are. For m-4-2-1 it is the network of crd_network_morph.
crd_status crdi_network_make_linear(crd_context* ctx, crd_network* n, const double* a)
{
    const bool straight = n->alpha == 1; // its neurons are linear by themselves
    const int pairs = n->n2 / 2;
    if (pairs == 0 && !straight) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "learn: a network of %d-%d-1-1 with alpha = %g cannot be linear; it takes "
                         "2 leaky ReLUs",
                         n->m, n->n1, n->alpha);
    }
    double* w = (double*)n->W1; // of crdi_network_like: one block of ours
    memset(w, 0, (size_t)crdi_network_size(n) * sizeof *w);
    n->b3 = 0;
    double* W2 = (double*)n->W2;
    double* W3 = (double*)n->W3;
    const double total = 0.5 * n->n1 * (n->n1 + 1);
    for (int h = 0; h < n->n1; h++) {
        memcpy(&w[h * n->m], a, (size_t)n->m * sizeof *w);
        for (int j = 0; j < n->n2; j++) {
            const int place = j % 2 ? n->n1 - h : h + 1;
            W2[j * n->n1 + h] = (j % 2 ? -1 : 1) * (place / total);
        }
    }
    for (int j = 0; j < 2 * pairs; j++) {
        W3[j] = (j % 2 ? -1 : 1) / ((1 + n->alpha) * pairs);
    }
    if (pairs == 0) { W3[0] = 1; }
    return CRD_OK;
}
