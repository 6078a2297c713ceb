// What was planned with derivatives of inputs that units then do not take is planned again.
#include "master/master.h"

crd_status crdi_start_orders(crd_master* m)
{
    crd_status st = CRD_OK;
    crdi_plan* plan = (crdi_plan*)m->plan; // the last thing that it learns
    crdi_connections* c = &m->connections;
    bool lowered = false;
    CRD_TRY(crdi_plan_lower_orders(plan, &lowered));
    if (!lowered) { return CRD_OK; }
    for (int i = 0; i < c->prediction_count; i++) {
        crdi_prediction* f = &c->predictions[i];
        crdi_prediction_use_orders(plan, f);
        if (f->network) { crdi_network_use_orders(f); }
    }
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        if (k->coupled) { crdi_coupled_bind(plan, k, k->coupled); }
    }
    if (c->prediction_count) { CRD_TRY(crdi_refresh_find_stale(plan, c)); }
    for (int i = 0; i < m->energy.bond_count; i++) {
        crdi_bond_find_mu(plan, &m->energy.bonds[i]);
    }
fail:
    return st;
}
