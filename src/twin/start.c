// What a twin needs of the simulator: start values of the network, and what is wrong with it.
#include "shared/circuit_part.h"
#include "twin/twin.h"

crd_status crdi_twin_start_create(crd_twin* w)
{
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = w->spec.step;
    return crd_circuit_create(w->ctx, w->net, &opt, &w->start);
}

void crdi_twin_start_destroy(crd_twin* w)
{
    crd_circuit_destroy(w->start);
}

crd_status crdi_twin_start_begin(crd_twin* w, double t)
{
    for (int i = 0; i < w->net->input_count; i++) {
        const crd_status st = crd_circuit_set_input(w->start, i, w->inputs[i]);
        if (st < 0) { return st; }
    }
    return crd_circuit_begin(w->start, t);
}

double crdi_twin_start_value(const crd_twin* w, int state)
{
    const int32_t part = w->m->state_part[state];
    const crd_part* p = &w->net->parts[part];
    const bool inductor = crdi_part_kind_of(p)->stores == CRDI_STORES_CURRENT;
    return inductor ? crd_circuit_current(w->start, part)
                    : crd_circuit_voltage(w->start, p->nodes[0]) -
                          crd_circuit_voltage(w->start, p->nodes[1]);
}

// What crd_circuit_create says about floating nodes, loops and cutsets holds for twins, too.
crd_status crdi_twin_start_check(crd_context* ctx, const crd_netlist* n)
{
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 1;
    crd_circuit* c = NULL;
    const crd_status st = crd_circuit_create(ctx, n, &opt, &c);
    crd_circuit_destroy(c);
    return st;
}
