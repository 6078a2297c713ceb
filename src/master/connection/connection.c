// All kinds of connections together: what the loop calls.
#include "master/master.h"

#include <math.h>

static const crdi_connection_kind* const kinds[CRDI_KINDS] = {
    [CRDI_COPY] = &crdi_kind_copy,       [CRDI_SCALE] = &crdi_kind_scale,
    [CRDI_PREDICT] = &crdi_kind_predict, [CRDI_CONVERT] = &crdi_kind_convert,
    [CRDI_COUPLED] = &crdi_kind_coupled, [CRDI_PAIRED] = &crdi_kind_paired,
};

double crdi_connection_correction(const crdi_connection* k)
{
    return k->prediction ? k->prediction->correction : k->coupled ? k->coupled->correction : 0;
}

double* crdi_connection_corrects(crdi_connection* k)
{
    return k->prediction ? &k->prediction->correction : k->coupled ? &k->coupled->correction : NULL;
}

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

void crdi_connections_use(crdi_connections* c, crdi_kind kind)
{
    for (int i = 0; i < c->used_count; i++) {
        if (c->used[i] == kind) { return; }
    }
    int at = c->used_count++; // in the order in which inputs are written
    for (; at > 0 && c->used[at - 1] > kind; at--) {
        c->used[at] = c->used[at - 1];
    }
    c->used[at] = kind;
    const crdi_connection_kind* k = kinds[kind];
    c->accepts = c->accepts || (k->accept && (kind > CRDI_SCALE || c->observed_count));
}

static crd_status __attribute__((noinline))
begin_others(crd_master* m, const crdi_feed* f, double t)
{
    const crdi_connections* c = &m->connections;
    for (int i = c->used[0] == CRDI_COPY; i < c->used_count; i++) {
        const crdi_kind kind = c->used[i];
        if (f->rows[kind].count == 0) { continue; }
        const crd_status st = kinds[kind]->begin(m, f->rows[kind], t);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_connections_begin(crd_master* m, const crdi_feed* f, double t)
{
    const crdi_connections* c = &m->connections;
    const crdi_copy* copy = c->copies + f->rows[CRDI_COPY].first;
    for (int i = 0; i < f->rows[CRDI_COPY].count; i++) {
        *copy[i].to = *copy[i].from;
    }
    const bool only_copies = c->used_count == 1 && c->used[0] == CRDI_COPY;
    return only_copies ? CRD_OK : begin_others(m, f, t);
}

void crdi_connections_sample(crd_master* m)
{
    for (int i = 0; i < m->connections.used_count; i++) {
        const crdi_connection_kind* k = kinds[m->connections.used[i]];
        if (k->sample) { k->sample(m); }
    }
}

double crdi_connections_judge(crd_master* m, double t)
{
    double worst = 0;
    for (int i = 0; i < m->connections.used_count; i++) {
        const crdi_connection_kind* k = kinds[m->connections.used[i]];
        if (k->judge) { worst = crd_defect_larger(worst, k->judge(m, t)); }
    }
    return worst;
}

void crdi_connections_accept(crd_master* m, int64_t n, double t)
{
    for (int i = 0; i < m->connections.used_count; i++) {
        const crdi_connection_kind* k = kinds[m->connections.used[i]];
        if (k->accept) { k->accept(m, n, t); }
    }
}

void crdi_connections_start(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        p->run->events = p->unit->events;
        m->connections.has_sources |= (p->unit->info.flags & CRD_UNIT_IS_SOURCE) != 0;
    }
    crdi_observed_start(m);
    crdi_predictions_start(m);
}

// A signal that has only been rounding so far has no size by which it could be judged later.
static const double at_rest = 1e-12;

void crdi_connections_freeze_scale(crd_master* m, const crdi_connection* k, double scale)
{
    (void)m;
    if (!(scale > at_rest)) { return; }
    if (k->prediction && !(k->prediction->scale_given > 0)) { k->prediction->scale_given = scale; }
    if (k->observed && !(k->observed->frozen > 0)) { k->observed->frozen = scale; }
}

void crdi_connections_own(crd_master* m, crd_context* ctx)
{
    m->connections.swap_ctx = ctx;
}

void crdi_connections_moving(crd_master* m, crdi_note_moving* note, void* user)
{
    crdi_connections* c = &m->connections;
    note(user, (const void*)&c->worst);
    for (int i = 0; i < c->coupled_count; i++) {
        for (int k = 0; k < c->coupled[i].estimator_count; k++) {
            crdi_coupling_moving(c->coupled[i].estimators[k].element, note, user);
        }
    }
    for (int i = 0; i < c->pair_count; i++) {
        crdi_paired_moving(&c->pairs[i], note, user);
    }
}

void crdi_connections_free(crd_master* m)
{
    crdi_connections* c = &m->connections;
    for (int i = 0; c->coupled && i < c->coupled_count; i++) {
        crdi_coupled_clear(&c->coupled[i]);
    }
    for (int i = 0; i < c->pair_count; i++) {
        crdi_paired_clear(&c->pairs[i]);
    }
    crd_context_destroy(c->swap_ctx);
}
