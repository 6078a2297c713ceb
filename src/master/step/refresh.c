// Fresh outputs. At a communication point all units have computed their outputs with predicted
// inputs. Where outputs depend on inputs without delay, or give derivatives, which do so too, they
// are evaluated again with the inputs that the others have given since: in the order of the
// feedthrough, once. Without this, higher orders are lost or unstable on force-displacement pairs.
//
// A unit that answers between steps is asked again (CRD_UNIT_CAN_REFRESH). Of one that does not,
// but gives directional derivatives, y + D (u_fresh - u_used) is taken.
#include "master/master.h"

#include <stdlib.h>

static bool predicts_any(const crdi_plan* plan, const crdi_connections* c, const crdi_member* p)
{
    bool any = plan->controlled || plan->iterated;
    for (int i = 0; i < p->flow_count; i++) {
        any = any || !c->predictions[p->flows[i]].textbook;
    }
    return any && p->flow_count > 0;
}

static bool find_feedthrough(const crdi_connections* c, const crdi_member* p)
{
    for (int i = 0; p->out && i < p->out->count; i++) {
        for (int k = 0; k < p->flow_count; k++) {
            const int32_t input = c->predictions[p->flows[k]].of->to.variable;
            if (crd_unit_depends(p->unit, p->out->variables[i], input, false)) { return true; }
        }
    }
    return false;
}

static bool has_gain(const crd_unit* u)
{
    return (u->info.flags & CRD_UNIT_HAS_DIRECTIONAL) && u->spec->refresh != CRD_REFRESH_NO;
}

static bool is_refreshed(const crdi_plan* plan, const crdi_connections* c, const crdi_member* p)
{
    if (!p->out || !p->feeds_flow || !predicts_any(plan, c, p)) { return false; }
    if (p->unit->info.flags & CRD_UNIT_CAN_REFRESH) { return p->rates[0] || p->through; }
    return has_gain(p->unit) && p->through && !p->async;
}

typedef struct place {
    int member, component;
} place;

// An edge of the graph never goes to a higher number: the highest come first.
static int by_component(const void* a, const void* b)
{
    const place *x = a, *y = b;
    if (x->component != y->component) { return x->component > y->component ? -1 : 1; }
    return x->member < y->member ? -1 : x->member > y->member;
}

// Predicted connections, all or only those that come out again without delay.
static bool is_predicted(const crdi_plan* plan, const crdi_connection* k, const void* through)
{
    return k->prediction && (!through || plan->members[k->to.member].through);
}

static crd_status order_members(crdi_plan* plan, const crdi_connections* c, int* component,
                                place* places)
{
    if (crdi_plan_components(plan, is_predicted, plan, component) < 0) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->member_count; i++) {
        places[i] = (place){i, component[i]};
    }
    qsort(places, (size_t)plan->member_count, sizeof *places, by_component);
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[places[i].member];
        if (!is_refreshed(plan, c, p)) { continue; }
        p->shown = (p->unit->info.flags & CRD_UNIT_CAN_REFRESH) != 0;
        plan->refreshed[plan->refresh_count++] = places[i].member;
    }
    return CRD_OK;
}

// A unit with feedthrough whose outputs are not made fresh: predictions that go in come out a step
// later and are predicted again.
static bool is_stale(const crdi_plan* plan, const crdi_connections* c, const crdi_member* p)
{
    const bool fresh =
        crd_defect_scheme_refreshes(plan->sys->run.feedthrough) && is_refreshed(plan, c, p);
    return p->out && p->feeds_flow && !fresh && p->through;
}

// In a loop such predictions may be unstable where hold is not, and no defect tells it in time.
crd_status crdi_refresh_find_stale(crdi_plan* plan, const crdi_connections* c)
{
    int* component = crdi_new_array(plan->ctx, (size_t)plan->member_count + 1, sizeof *component);
    if (!component || crdi_plan_components(plan, is_predicted, NULL, component) < 0) {
        crd_free(plan->ctx, component);
        return CRD_E_MEMORY;
    }
    for (int i = 0; i < c->prediction_count; i++) {
        crdi_prediction* f = &c->predictions[i];
        if (component[f->of->from.member] == component[f->of->to.member] &&
            (is_stale(plan, c, f->source) || is_stale(plan, c, f->target))) {
            crdi_prediction_be_careful(plan, f);
        }
        // In Gauss-Seidel order what a unit holds is the newest value: a mean instead would come
        // out half a step later.
        if (f->network && plan->phase_count > 1 && !f->slope[0] && is_stale(plan, c, f->target)) {
            f->network->level.fixed = true;
        }
    }
    crd_free(plan->ctx, component);
    return CRD_OK;
}

crd_status crdi_refresh_plan(crdi_plan* plan, crdi_connections* c)
{
    crd_status st = CRD_E_MEMORY;
    if (!c->prediction_count) { return CRD_OK; }
    const size_t n = (size_t)plan->member_count;
    int* component = crdi_new_array(plan->ctx, n + 1, sizeof *component);
    place* places = crdi_new_array(plan->ctx, n, sizeof *places);
    plan->refreshed = crdi_arena_new(plan->arena, n, sizeof *plan->refreshed);
    if (!component || !places || !plan->refreshed) { goto fail; }
    for (int i = 0; i < plan->member_count; i++) {
        plan->members[i].through = find_feedthrough(c, &plan->members[i]);
    }
    CRD_TRY(crdi_refresh_find_stale(plan, c));
    CRD_TRY(order_members(plan, c, component, places));
fail:
    crd_free(plan->ctx, component);
    crd_free(plan->ctx, places);
    return st;
}

bool crdi_refresh_has(const crdi_plan* plan, int member)
{
    for (int i = 0; i < plan->refresh_count; i++) {
        if (plan->refreshed[i] == member) { return true; }
    }
    return false;
}

// ---- the run -----------------------------------------------------------------------------------

static crd_sample sample_of(const crd_poly* p, double s)
{
    crd_sample r = {.order = 2};
    for (int d = 0; d < 3; d++) {
        r.y[d] = crd_poly_derivative(p, d, s);
    }
    return r;
}

// The newest sample with derivatives that its source does not give. Where the source has not come
// to t yet it is the prediction.
static crd_sample newest(const crdi_prediction* f, double t, int order)
{
    const double h = t - f->time;
    if (h > 0 && f->source->run->stamp == f->stamp) {
        const bool older = f->origin < f->time; // a sample has come since it was made
        const crd_poly u = older ? crd_predict(f->used, &f->past, h) : f->u;
        return sample_of(&u, h);
    }
    if (f->end.order >= order || h <= 0) { return f->end; }
    crd_history longer = f->past;
    crd_history_push(&longer, h, &f->end);
    return crd_history_estimate(&longer, order);
}

static void show_newest(crd_master* m, const crdi_member* p, double t)
{
    for (int i = 0; i < p->flow_count; i++) {
        const crdi_prediction* f = &m->connections.predictions[p->flows[i]];
        const crd_sample s = newest(f, t, f->slope[1] ? 2 : f->slope[0] ? 1 : 0);
        *f->to = s.y[0] + f->correction;
        for (int d = 0; d < 2 && f->slope[d]; d++) {
            *f->slope[d] = s.y[d + 1];
        }
    }
}

static crd_status ask_again(crdi_member* p)
{
    crd_status st = crdi_member_set(p);
    if (st >= 0) { st = p->unit->ops->get(p->unit, p->out, &p->outputs); }
    return st >= 0 && p->rates[0] ? crdi_member_get_rates(p) : st;
}

// What the unit had as input at the end of its step, with derivatives: what it was told last, for
// the whole step or for its last part.
static crd_sample used_at(const crdi_prediction* f, double t)
{
    const crd_poly p = {.degree = 2,
                        .c = {*f->to - f->correction, f->slope[0] ? *f->slope[0] : 0,
                              f->slope[1] ? 0.5 * *f->slope[1] : 0}};
    return sample_of(&p, t - f->applied);
}

static crd_status add_gain(crdi_member* p, const crdi_prediction* f, double t)
{
    const double seed = 1;
    const crd_unit* u = p->unit;
    const crd_sample used = used_at(f, t);
    const crd_sample fresh = newest(f, t, 2);
    if (u->info.variables[f->of->to.variable].size != 1) { return CRD_OK; }
    for (int i = 0; i < p->out->count; i++) {
        const int32_t y = p->out->variables[i];
        if (crd_type_kind(u->info.variables[y].type) != CRD_REAL ||
            u->info.variables[y].size != 1 || !crd_unit_depends(u, y, f->of->to.variable, false)) {
            continue;
        }
        double gain = 0;
        const crd_status st =
            u->ops->derivatives->directional(p->unit, &y, 1, &f->of->to.variable, 1, &seed, &gain);
        if (st < 0) { return st; }
        const int slot = p->out->offsets[i];
        p->outputs.real[slot] += gain * (fresh.y[0] - used.y[0]);
        for (int d = 0; d < 2 && p->rates[d]; d++) {
            p->rates[d][slot] += gain * (fresh.y[d + 1] - used.y[d + 1]);
        }
    }
    return CRD_OK;
}

// On its own thread, unless it is late: then its outputs are held.
static crd_status refresh_async(crd_master* m, int member, double t)
{
    crdi_member* p = &m->plan->members[member];
    if (crdi_async_busy(m, member)) { return CRD_OK; }
    show_newest(m, p, t);
    const crd_status st = crdi_async_ask(m, member);
    return st == CRD_E_CRASH ? crdi_member_crashed(m, member, p->run->crash_signal)
           : st < 0          ? crdi_member_failed(m, member, st)
                             : CRD_OK;
}

static crd_status refresh_member(crd_master* m, int member, double t)
{
    crdi_member* p = &m->plan->members[member];
    crd_status st = CRD_OK;
    if (p->async && m->async) { return refresh_async(m, member, t); }
    m->running = member;
    if (p->unit->info.flags & CRD_UNIT_CAN_REFRESH) {
        show_newest(m, p, t);
        st = ask_again(p);
    } else {
        for (int i = 0; i < p->flow_count && st >= 0; i++) {
            st = add_gain(p, &m->connections.predictions[p->flows[i]], t);
        }
    }
    return crdi_member_left(m, member, st);
}

static void sample_again(crd_master* m, int member)
{
    const crdi_member* p = &m->plan->members[member];
    for (int i = 0; i < p->fed_count; i++) {
        crdi_prediction* f = &m->connections.predictions[p->fed[i]];
        const bool strict = f->textbook && f->predict == CRD_PREDICTION_HOLD;
        if (!strict) { crdi_prediction_resample(f); }
    }
}

crd_status crdi_refresh_step(crd_master* m, double t)
{
    if (!crd_defect_scheme_refreshes(m->plan->sys->run.feedthrough)) { return CRD_OK; }
    for (int i = 0; i < m->plan->refresh_count; i++) {
        const int member = m->plan->refreshed[i];
        if (m->plan->times.multirate && !crdi_member_is_due(m, member)) { continue; }
        if (crdi_network_holds(m->plan->members[member].network)) { continue; }
        const crd_status st = refresh_member(m, member, t);
        if (st < 0) { return st; }
        sample_again(m, member);
    }
    return CRD_OK;
}

// At the start a derivative follows from those of one order less of other units, so three passes
// make all of them right.
crd_status crdi_refresh_start(crd_master* m)
{
    enum { PASSES = 3 };
    if (m->plan->sys->run.feedthrough == CRD_DEFECT_PROGRAM || !m->plan->refresh_count) {
        return CRD_OK;
    }
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction_resume(&m->connections.predictions[i]);
    }
    for (int i = 0; i < PASSES * m->plan->refresh_count; i++) {
        const int member = m->plan->refreshed[i % m->plan->refresh_count];
        if (!(m->plan->members[member].unit->info.flags & CRD_UNIT_CAN_REFRESH)) { continue; }
        const crd_status st = refresh_member(m, member, m->plan->times.start);
        if (st < 0) { return st; }
        sample_again(m, member);
    }
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction_start(m, &m->connections.predictions[i],
                              &m->connections.predictions[i].end);
    }
    return CRD_OK;
}
