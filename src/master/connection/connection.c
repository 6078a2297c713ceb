// All kinds of connections together: what the loop calls.
#include "master/master.h"

#include <math.h>

static const crdi_connection_kind* const kinds[CRDI_KINDS] = {
    [CRDI_COPY] = &crdi_kind_copy,       [CRDI_SCALE] = &crdi_kind_scale,
    [CRDI_PREDICT] = &crdi_kind_predict, [CRDI_CONVERT] = &crdi_kind_convert,
    [CRDI_COUPLED] = &crdi_kind_coupled,
};

const void* crdi_connection_from(const crdi_plan* plan, const crdi_connection* k)
{
    return crdi_slot(&plan->members[k->from.member].outputs,
                     crd_type_kind(crdi_variable_at(plan, &k->from)->type), k->from.slot);
}

void* crdi_connection_to(const crdi_plan* plan, const crdi_connection* k)
{
    return crdi_slot(&plan->members[k->to.member].inputs,
                     crd_type_kind(crdi_variable_at(plan, &k->to)->type), k->to.slot);
}

crd_status crdi_connections_begin(crd_master* m, const crdi_feed* f, double t)
{
    for (int i = 0; i < CRDI_KINDS; i++) {
        if (f->rows[i].count == 0) { continue; }
        const crd_status st = kinds[i]->begin(m, f->rows[i], t);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

void crdi_connections_sample(crd_master* m)
{
    for (int i = 0; i < CRDI_KINDS; i++) {
        if (kinds[i]->sample) { kinds[i]->sample(m); }
    }
}

double crdi_connections_judge(crd_master* m, double t)
{
    double worst = 0;
    for (int i = 0; i < CRDI_KINDS; i++) {
        if (kinds[i]->judge) { worst = crd_defect_larger(worst, kinds[i]->judge(m, t)); }
    }
    return worst;
}

void crdi_connections_accept(crd_master* m, int64_t n, double t)
{
    for (int i = 0; i < CRDI_KINDS; i++) {
        if (kinds[i]->accept) { kinds[i]->accept(m, n, t); }
    }
}

void crdi_connections_start(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        m->plan->members[i].run->events = m->plan->members[i].unit->events;
    }
    crdi_observed_start(m);
}

void crdi_connections_own(crd_master* m, crd_context* ctx)
{
    m->connections.exchange_ctx = ctx;
}

void crdi_connections_free(crd_master* m)
{
    crdi_connections* c = &m->connections;
    for (int i = 0; c->coupled && i < c->coupled_count; i++) {
        crdi_coupled_clear(&c->coupled[i]);
    }
    crd_context_destroy(c->exchange_ctx);
}
