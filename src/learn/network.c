// Networks that are written, not trained.
#include "learn/train.h"
#include "shared/base.h"
#include "shared/coupling.h"

int crdi_network_size(const crd_network* n)
{
    return (int)crdi_network_weights(n) - 1;
}

crd_status crdi_network_like(crd_context* ctx, const crd_network* from, crd_network* out)
{
    double* w = crdi_new_array(ctx, crdi_network_weights(from), sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    crdi_network_flatten(from, w);
    *out = *from;
    crdi_network_place(out, w);
    return CRD_OK;
}

crd_status crdi_network_write_linear(crd_context* ctx, crd_network* n, const double* a)
{
    char shape[80];
    double* w = (double*)n->W1; // of crdi_network_like: one block of ours
    return crdi_network_make_linear(n, a, 0, w)
               ? CRD_OK
               : crdi_fail(ctx, CRD_E_UNSUPPORTED,
                           "learn: a network of %s with alpha = %g cannot be linear; it takes 2 "
                           "leaky ReLUs in each layer",
                           crd_network_shape(n, shape, sizeof shape), n->alpha);
}
