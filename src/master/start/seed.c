// The first samples of flows. There is no past at the start: where the source gives derivatives,
// they replace it.
//
// A unit works its derivatives out as if its inputs rested. An output that depends on inputs
// without delay moves with them, too:
//   y' = y'(held inputs) + sum of dy/du_j u_j',   u_j' = gain_j y_source'
// solved by substitution along the feedthrough. Without this the first step would have an error of
// second order in the step, whatever the order of the extrapolation. What is not known in this way
// (no derivatives, a loop) is held in the first step.
#include "master/master.h"

#include <math.h>

typedef struct term { // rate[to] += factor * rate[from]
    int to, from;
    double factor;
} term;

typedef struct seeds {
    crd_master* m;
    int* first; // of a member's real outputs in the vectors below
    double* own;
    double* rate;
    double* next;
    double* bend; // second derivatives
    bool* known;
    term* terms;
    int term_count;
    size_t term_capacity;
} seeds;

static crd_status get_derivatives(crd_master* m, int member, int order, double* d)
{
    crdi_member* p = &m->plan->members[member];
    m->running = member;
    const crd_status st = p->unit->ops->derivatives->get(p->unit, p->out, order, d);
    return crdi_member_left(m, member, st);
}

static crd_status seed_allocate(seeds* s)
{
    crd_master* m = s->m;
    s->first = crdi_new_array(m->ctx, (size_t)m->plan->member_count + 1, sizeof *s->first);
    if (!s->first) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->plan->member_count; i++) {
        const crd_binding* out = m->plan->members[i].out;
        s->first[i + 1] = s->first[i] + (out ? out->real_count : 0);
    }
    const size_t n = (size_t)s->first[m->plan->member_count] + 1;
    s->own = crdi_new_array(m->ctx, n, sizeof *s->own);
    s->rate = crdi_new_array(m->ctx, n, sizeof *s->rate);
    s->next = crdi_new_array(m->ctx, n, sizeof *s->next);
    s->bend = crdi_new_array(m->ctx, n, sizeof *s->bend);
    s->known = crdi_new_array(m->ctx, n, sizeof *s->known);
    return s->own && s->rate && s->next && s->bend && s->known ? CRD_OK : CRD_E_MEMORY;
}

static bool partial(crd_master* m, const crdi_connection* in, int32_t unknown, double* d)
{
    crd_unit* u = m->plan->members[in->to.member].unit;
    const int32_t known = in->to.variable;
    const double seed = 1;
    if (!(u->info.flags & CRD_UNIT_HAS_DIRECTIONAL)) { return false; }
    if (u->info.variables[known].size != 1 || u->info.variables[unknown].size != 1) {
        return false;
    }
    m->running = in->to.member;
    const crd_status st = u->ops->derivatives->directional(u, &unknown, 1, &known, 1, &seed, d);
    m->running = -1;
    return st >= 0;
}

// What one input does to the outputs of its unit.
static crd_status add_terms(seeds* s, const crdi_connection* in)
{
    crd_master* m = s->m;
    const crdi_member *a = &m->plan->members[in->from.member],
                      *b = &m->plan->members[in->to.member];
    if (!b->out || crd_type_kind(a->unit->info.variables[in->from.variable].type) != CRD_REAL ||
        crd_type_kind(b->unit->info.variables[in->to.variable].type) != CRD_REAL) {
        return CRD_OK;
    }
    for (int i = 0; i < b->out->count; i++) {
        const int32_t variable = b->out->variables[i];
        const crd_variable* v = &b->unit->info.variables[variable];
        if (crd_type_kind(v->type) != CRD_REAL ||
            !crd_unit_depends(b->unit, variable, in->to.variable, false)) {
            continue;
        }
        const int to = s->first[in->to.member] + b->out->offsets[i];
        double d = 0;
        if (!partial(m, in, variable, &d)) {
            for (uint32_t e = 0; e < v->size; e++) {
                s->known[to + (int)e] = false;
            }
            continue;
        }
        term* t =
            crdi_grow(m->ctx, s->terms, &s->term_capacity, (size_t)s->term_count + 1, sizeof *t);
        if (!t) { return CRD_E_MEMORY; }
        s->terms = t;
        t[s->term_count++] = (term){
            .to = to, .from = s->first[in->from.member] + in->from.slot, .factor = d * in->gain};
    }
    return CRD_OK;
}

static crd_status seed_gather(seeds* s)
{
    crd_master* m = s->m;
    crd_status st = CRD_OK;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        if (s->first[i + 1] == s->first[i] || p->unit->info.max_output_order < 1) { continue; }
        CRD_TRY(get_derivatives(m, i, 1, s->own + s->first[i]));
        if (p->feeds_flow && p->unit->info.max_output_order > 1) {
            CRD_TRY(get_derivatives(m, i, 2, s->bend + s->first[i]));
        }
        for (int k = s->first[i]; k < s->first[i + 1]; k++) {
            s->known[k] = true;
        }
    }
    for (int i = 0; i < m->plan->connection_count; i++) {
        // What comes through a coupling or a pair was always there: it rests.
        if (!m->plan->connections[i].spec->coupling && !m->plan->connections[i].paired) {
            CRD_TRY(add_terms(s, &m->plan->connections[i]));
        }
    }
fail:
    return st;
}

// What depends on something unknown is unknown.
static void spread_unknown(seeds* s)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < s->term_count; i++) {
            const term* t = &s->terms[i];
            if (s->known[t->to] && !s->known[t->from]) {
                s->known[t->to] = false;
                changed = true;
            }
        }
    }
}

// rate = own + terms: a chain of n units is through after n passes; what still moves then is in a
// loop.
static void substitute(seeds* s)
{
    const int n = s->first[s->m->plan->member_count];
    bool changed = true;
    for (int pass = 0; pass <= s->m->plan->member_count + 1 && changed; pass++) {
        changed = false;
        for (int k = 0; k < n; k++) {
            s->next[k] = s->own[k];
        }
        for (int i = 0; i < s->term_count; i++) {
            s->next[s->terms[i].to] += s->terms[i].factor * s->rate[s->terms[i].from];
        }
        for (int k = 0; k < n; k++) {
            const bool moved = s->next[k] != s->rate[k];
            if (moved && pass > s->m->plan->member_count) { s->known[k] = false; }
            changed = changed || moved;
            s->rate[k] = s->next[k];
        }
    }
    spread_unknown(s);
}

// Linear and quadratic go through samples: those that the Taylor polynomial had before the start.
static void make_past(crdi_prediction* f, const crd_sample* first, double h)
{
    const crd_poly y = crd_poly_taylor(first, 2);
    f->past = (crd_history){0};
    for (int i = f->predict == CRD_PREDICTION_QUADRATIC ? first->order : 1; i >= 0; i--) {
        crd_history_push(&f->past, h, &(crd_sample){.y = {crd_poly_eval(&y, -i * h)}});
    }
}

static void seed(const seeds* s, crdi_prediction* f)
{
    const crdi_member* p = f->source;
    const int k = s->first[f->of->from.member] + (int)(f->from - p->outputs.real);
    crd_sample first = {.y = {f->gain * *f->from + f->offset}};
    if (s->known[k] && isfinite(s->rate[k])) {
        first.order = p->unit->info.max_output_order > 1 && isfinite(s->bend[k]) ? 2 : 1;
        first.y[1] = f->gain * s->rate[k];
        first.y[2] = first.order > 1 ? f->gain * s->bend[k] : 0;
    }
    crdi_prediction_start(s->m, f, &first);
    // A step that is controlled has no length yet: it begins with the derivatives.
    if (f->textbook && first.order > 0 && p->step > 0) { make_past(f, &first, p->step); }
}

crd_status crdi_start_predictions(crd_master* m)
{
    if (!m->connections.prediction_count) { return CRD_OK; }
    crd_status st = CRD_OK;
    seeds s = {.m = m};
    CRD_TRY(seed_allocate(&s));
    CRD_TRY(seed_gather(&s));
    substitute(&s);
    for (int i = 0; i < m->connections.prediction_count; i++) {
        seed(&s, &m->connections.predictions[i]);
    }
fail:
    crd_free(m->ctx, s.first);
    crd_free(m->ctx, s.own);
    crd_free(m->ctx, s.rate);
    crd_free(m->ctx, s.next);
    crd_free(m->ctx, s.bend);
    crd_free(m->ctx, s.known);
    crd_free(m->ctx, s.terms);
    return st;
}
