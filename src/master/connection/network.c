// One level for all predictions of a loop (shared/quality_level.h). Steps that are controlled or
// iterated do without: there a defect makes the step shorter, or the iteration ends at the same
// inputs whatever it began with.
#include "master/master.h"
#include "shared/quality_shadow.h"

#include <math.h>

static bool is_any(const crdi_plan* plan, const crdi_connection* k, const void* with)
{
    (void)plan;
    (void)k;
    (void)with;
    return true;
}

static bool is_in_loop(const crdi_prediction* f, const int* component)
{
    return f->predict == CRD_PREDICTION_AUTO &&
           component[f->of->from.member] == component[f->of->to.member];
}

void crdi_network_use_orders(crdi_prediction* f)
{
    f->means = !f->rates[0] && !f->slope[0] && f->source->ticks == f->target->ticks;
}

// Networks of the components, in the order of their first prediction, and room for their flows.
static crd_status make_networks(crdi_plan* plan, crdi_connections* c, const int* component, int* of)
{
    for (int i = 0; i < c->prediction_count; i++) {
        const crdi_prediction* f = &c->predictions[i];
        if (!is_in_loop(f, component)) { continue; }
        int* which = &of[component[f->of->to.member]];
        if (*which == 0) { *which = ++c->network_count; }
    }
    c->networks = crdi_arena_new(plan->arena, (size_t)c->network_count, sizeof *c->networks);
    int* flows = crdi_arena_new(plan->arena, (size_t)c->prediction_count, sizeof *flows);
    if (!c->networks || !flows) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->prediction_count; i++) {
        crdi_prediction* f = &c->predictions[i];
        if (!is_in_loop(f, component)) { continue; }
        f->network = &c->networks[of[component[f->of->to.member]] - 1];
        crdi_network_use_orders(f);
        f->network->looks = true;
        f->network->flow_count++;
    }
    for (int i = 0; i < c->network_count; i++) {
        crdi_network* n = &c->networks[i];
        n->flows = flows;
        flows += n->flow_count;
        n->flow_count = 0;
        n->level.sequential = plan->sys->run.scheme == CRD_SCHEME_GAUSS_SEIDEL;
    }
    for (int i = 0; i < c->prediction_count; i++) {
        crdi_network* n = c->predictions[i].network;
        if (n) { n->flows[n->flow_count++] = i; }
    }
    for (int i = 0; i < plan->member_count; i++) {
        const int which = of[component[i]];
        if (which) { plan->members[i].network = &c->networks[which - 1]; }
    }
    return CRD_OK;
}

static void find_rates_shown(crdi_plan* plan, const crdi_connections* c)
{
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        for (int k = 0; k < p->fed_count; k++) {
            p->shows_rates = p->shows_rates || !c->predictions[p->fed[k]].network;
        }
    }
}

crd_status crdi_networks_plan(crdi_plan* plan, crdi_connections* c)
{
    crd_status st = CRD_OK;
    if (!c->prediction_count || plan->controlled || plan->iterated) { return CRD_OK; }
    const size_t n = (size_t)plan->member_count;
    int* component = crdi_new_array(plan->ctx, n + 1, sizeof *component);
    int* of = crdi_new_array(plan->ctx, n + 1, sizeof *of); // component -> network + 1
    const int count = component && of ? crdi_plan_components(plan, is_any, NULL, component) : -1;
    if (count < 0) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(make_networks(plan, c, component, of));
    find_rates_shown(plan, c);
fail:
    crd_free(plan->ctx, component);
    crd_free(plan->ctx, of);
    return st;
}

// ---- the run -----------------------------------------------------------------------------------

crd_predictor crdi_network_predictor(const crdi_prediction* f, int level)
{
    static const crd_predictor means[] = {CRD_PREDICT_HOLD, CRD_PREDICT_AB2, CRD_PREDICT_AB3};
    static const crd_predictor taylor[] = {CRD_PREDICT_HOLD, CRD_PREDICT_TAYLOR1,
                                           CRD_PREDICT_TAYLOR2};
    return f->means ? means[level] : taylor[level];
}

// What each level would have missed over the finished step, as the target feels it. At level 0
// samples have no derivatives, or wrong ones where outputs follow inputs at once.
static void find_errors(const crdi_prediction* f, double h, double* error)
{
    if (f->means || f->network->level.now == 0) {
        crdi_level_errors(&f->watch, f->end.y[0], error);
        return;
    }
    const crd_poly truth = crd_history_reconstruct(&f->past, h, &f->end);
    for (int l = 0; l < CRDI_LEVELS; l++) {
        const crd_poly u = crd_predict(crdi_network_predictor(f, l), &f->past, h);
        const crd_poly d = crd_poly_minus(&u, &truth);
        error[l] = f->slope[0] ? sqrt(crd_poly_mean_square(&d, 0, h)) : crd_poly_mean(&d, 0, h);
    }
}

// A loop without news for LONG steps is looked at in one of NOW_AND_THEN, and at once when a
// connection is wrong by four times what it usually is; after that, for a while in every step.
enum { LONG = 256, A_WHILE = 32, NOW_AND_THEN = 16 };

static bool stands_out(const crdi_prediction* f)
{
    const crdi_level_signal* s = &f->watch;
    const double rounding = 1e-16 * s->size * s->size;
    const double change = f->end.y[0] - f->past.sample[0].y[0];
    return f->known ? change * change * s->weight > 16 * s->change + rounding
                    : f->rms * f->rms > 16 * s->score[f->network->level.now] + rounding;
}

static void step_passes(crdi_network* n, bool news)
{
    if (news) { n->same = n->same < LONG - A_WHILE ? 0 : LONG - A_WHILE; }
    n->same++;
    n->news = false;
    n->looks = n->same < LONG || n->same % NOW_AND_THEN == 0;
}

bool crdi_network_sample(crdi_prediction* f, double h, bool event)
{
    double error[CRDI_LEVELS];
    crdi_network* n = f->network;
    if (!n->looks && !event && !stands_out(f)) { return false; }
    n->news = !n->looks;
    if (n->same >= LONG - A_WHILE && f->past.count > 2) {
        const crd_sample* y = f->past.sample;
        crdi_level_resume(&f->watch, (double[]){y[0].y[0], y[1].y[0], y[2].y[0]});
    }
    find_errors(f, h, error);
    const bool jumped = crdi_level_push(&f->watch, f->end.y[0], error);
    f->jumps += jumped || event;
    f->disturbed = jumped || event;
    if (event || f->network->level.changed) { crdi_level_restart(&f->watch); }
    return jumped || event || f->network->level.changed;
}

// ---- where units are known as linear ones ------------------------------------------------------

// All connections of the loop have to be those of the network.
static bool is_covered(const crd_master* m, const crdi_network* n, const crdi_macro** map)
{
    int link = 0;
    *map = NULL;
    for (int k = 0; k < n->flow_count; k++) {
        const crdi_prediction* f = &m->connections.predictions[n->flows[k]];
        *map = crdi_guard_map_of(m, f->of, &link);
        if (!*map) { return false; }
        n->links[k] = link;
    }
    return *map && (*map)->link_count == n->flow_count;
}

static crd_status start_shadow(crd_master* m, crdi_network* n)
{
    const size_t count = (size_t)n->flow_count;
    const crdi_macro* map = NULL;
    n->links = crdi_arena_new(&m->arena, count, sizeof *n->links);
    n->delta = crdi_arena_new(&m->arena, count, sizeof *n->delta);
    n->scale = crdi_arena_new(&m->arena, count, sizeof *n->scale);
    crdi_shadow* s = crdi_arena_new(&m->arena, 1, sizeof *s);
    if (!n->links || !n->delta || !n->scale || !s) { return CRD_E_MEMORY; }
    if (!is_covered(m, n, &map)) { return CRD_OK; }
    const crd_status st = crdi_shadow_init(&m->arena, map, s);
    if (st < 0) { return st == CRD_E_MEMORY ? st : CRD_OK; }
    n->level.fixed = !s->allowed[1] && !s->allowed[2]; // hold is all that is stable
    if (m->plan->times.multirate) { return CRD_OK; }   // errors are not followed there
    for (int k = 0; k < n->flow_count; k++) {
        crdi_prediction* f = &m->connections.predictions[n->flows[k]];
        f->before = crdi_arena_new(&m->arena, 1, sizeof *f->before);
        if (!f->before) { return CRD_E_MEMORY; }
    }
    n->shadow = s;
    crdi_level_begin(&n->level, s->first);
    return CRD_OK;
}

crd_status crdi_networks_start(crd_master* m)
{
    crdi_connections* c = &m->connections;
    crd_status st = CRD_OK;
    for (int i = 0; i < c->network_count && st >= 0; i++) {
        if (!c->networks[i].level.fixed) { st = start_shadow(m, &c->networks[i]); }
    }
    return st;
}

// What an input would have been at this level, against the signal. Known ones lie between two
// samples, or are the newest.
static crd_poly missed(const crdi_prediction* f, int level, double h, const crd_poly* truth)
{
    crd_poly u;
    if (!f->known) {
        u = crd_predict(crdi_network_predictor(f, level), f->before, h);
    } else if (level == 0) {
        u = (crd_poly){.c = {f->past.sample[0].y[0]}};
    } else {
        const crd_sample *a = &f->before->sample[0], *b = &f->past.sample[0];
        u = crd_poly_hermite(a, a->order + 1, b, b->order + 1, h);
    }
    return crd_poly_minus(&u, truth);
}

static void shadow_step(crdi_connections* c, crdi_network* n, bool rough, double h)
{
    crdi_shadow* s = n->shadow;
    for (int l = 0; l < CRDI_LEVELS; l++) {
        if (!s->allowed[l]) { continue; }
        for (int k = 0; k < n->flow_count; k++) {
            crdi_prediction* f = &c->predictions[n->flows[k]];
            const crd_poly truth = crd_history_reconstruct(f->before, h, &f->end);
            n->delta[n->links[k]] = missed(f, l, h, &truth);
            n->scale[n->links[k]] = f->size > 0 ? 1 / f->size : 0;
        }
        crdi_shadow_step(s, l, l == n->level.now, n->delta, n->scale);
    }
    const int before = n->level.now;
    crdi_level_follow(&n->level, crdi_shadow_choose(s, before, rough, n->scale));
    s->steps = n->level.now == before ? s->steps + 1 : 0;
}

enum { SETTLED = 200 };

// Once the level has been the same for long, errors are not followed any more until something
// happens that speaks against it. What rings although the map says that it does not, or has much
// noise, is held, and in the end no longer judged by the map.
static void follow_shadow(crdi_connections* c, crdi_network* n, const crdi_level_vote* v, double h)
{
    enum { ALARMS = 4 };
    if (crdi_level_alarms(&n->level, v)) {
        crdi_level_follow(&n->level, 0);
        crdi_shadow_reset(n->shadow);
        if (++n->alarms == ALARMS) { n->shadow = NULL; }
        return;
    }
    if (n->shadow->steps >= SETTLED && crdi_shadow_sure(n->shadow, n->level.now)) {
        if (!crdi_level_doubts(&n->level, v)) {
            crdi_level_follow(&n->level, n->level.now);
            return;
        }
        crdi_shadow_reset(n->shadow);
    }
    if (n->looks) {
        shadow_step(c, n, crdi_level_rough(v), h);
    } else {
        crdi_level_follow(&n->level, n->level.now); // where the others were is not known
    }
}

static bool network_vote(crdi_connections* c, crdi_network* n, crdi_level_vote* v)
{
    for (int k = 0; k < n->flow_count; k++) {
        crdi_prediction* f = &c->predictions[n->flows[k]];
        crdi_level_count(&n->level, &f->watch, v);
        v->disturbed = v->disturbed || f->disturbed;
        f->disturbed = false;
    }
    return v->disturbed;
}

void crdi_networks_accept(crd_master* m)
{
    crdi_connections* c = &m->connections;
    for (int i = 0; i < c->network_count; i++) {
        crdi_network* n = &c->networks[i];
        const int before = n->level.now;
        if (!n->looks && !n->news) {
            crdi_level_pass(&n->level);
            step_passes(n, false);
            continue;
        }
        crdi_level_vote v = {0};
        bool news = network_vote(c, n, &v) || n->news;
        if (n->level.fixed) {
            crdi_level_pass(&n->level);
        } else if (n->shadow) {
            follow_shadow(c, n, &v, m->clock.h);
            news = news || n->shadow == NULL || n->shadow->steps < SETTLED ||
                   !crdi_shadow_sure(n->shadow, n->level.now);
        } else {
            crdi_level_decide(&n->level, &v);
        }
        step_passes(n, news || n->level.now != before);
    }
}
