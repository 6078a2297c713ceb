// Instead of start.c on a controller, which has no simulator: the exported netlist (emit.c) was
// looked at by cardan, and its capacitors and inductors have the start as their ic.
#include "twin/twin.h"

crd_status crdi_twin_start_create(crd_twin* w)
{
    (void)w;
    return CRD_OK;
}

void crdi_twin_start_destroy(crd_twin* w)
{
    (void)w;
}

crd_status crdi_twin_start_begin(crd_twin* w, double t)
{
    (void)w;
    (void)t;
    return CRD_OK;
}

double crdi_twin_start_value(const crd_twin* w, int state)
{
    return w->net->parts[w->m->state_part[state]].ic;
}

crd_status crdi_twin_start_check(crd_context* ctx, const crd_netlist* n)
{
    (void)ctx;
    (void)n;
    return CRD_OK;
}
