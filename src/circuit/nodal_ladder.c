// Where the whole network is a ladder (chain.h) its steps are those of one fused pass. Ladder and
// arrays of the fast form hold the same state; each may be ahead of the other.
#include "circuit/chain.h"
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

enum { LEAST = 18 }; // unknowns: below, the explicit inverse does as well

struct crdi_nodal_ladder {
    crd_arena arena; // of all below
    crdi_ladder* ladder;
    double w;   // it is factored for; 0: for nothing
    int order;  // 0: TR
    bool ready; // it holds the present state
    bool ahead; // only it does
    // by place in the chain; a state is the number of a branch among those that have one
    int32_t *order_of, *place; // unknown at a place; place of an unknown
    int32_t* branch;           // (n) state, -1: none
    double* sign;              // (n) 1 if the branch begins at the node
    double *shunt, *r, *l, *s; // (n)
    bool* has;                 // (n)
    // links, from the left of a place
    bool linked;                    // they have inductors
    double *link, *link_r, *link_l; // (n + 1)
    int32_t* link_branch;           // (n + 1) state, -1: none
    int32_t* link_of;               // (states) link, -1: none
    double* link_sign;              // (n + 1) 1 if it leads to the right
    int32_t outer[2];               // potentials beyond the ends
    // sources
    int32_t* driven; // (driven_count) places
    int32_t* driver; // potential at the other end of the branch there; ground: none
    int32_t driven_count;
    // branches from one known potential to another or to itself: states that are not in the ladder
    int32_t* held;
    int32_t held_count;
    double *level[6], *link_level[3], *v; // to load and store
};

// ---- is it one? --------------------------------------------------------------------------------

static bool nodal_ladder_is_known(const crdi_network* net, int32_t potential)
{
    return net->root[potential] < 0;
}

// A branch with state at a node, to something known; beginning at the node: sign 1
static void put_branch(const crdi_network* net, struct crdi_nodal_ladder* q, int32_t b, int32_t at)
{
    q->has[at] = true;
    q->branch[at] = b - net->resistive;
    q->sign[at] = nodal_ladder_is_known(net, net->from[b]) ? -1 : 1;
    q->r[at] = net->r[b];
    q->l[at] = net->l[b];
    q->s[at] = net->s[b];
}

// An inductor in a link; sign 1: it leads from the left to the right
static bool put_link(const crdi_network* net, struct crdi_nodal_ladder* q, int32_t b, int32_t link,
                     bool forward)
{
    if (net->s[b] > 0 || q->link[link] > 0 || q->link_l[link] > 0) { return false; }
    q->linked = true;
    q->link_r[link] = net->r[b];
    q->link_l[link] = net->l[b];
    q->link_branch[link] = b - net->resistive;
    q->link_of[b - net->resistive] = link;
    q->link_sign[link] = forward ? 1 : -1;
    return true;
}

// A node that has a branch already may lead to something known by a link, if it is at an end.
static bool put_outer(const crdi_network* net, struct crdi_nodal_ladder* q, int32_t b, int32_t at)
{
    const int32_t link = at == 0 ? 0 : at + 1 == net->unknowns ? net->unknowns : -1;
    int32_t other = q->branch[at] + net->resistive; // of both, the one without capacitor
    if (link < 0) { return false; }
    if (net->s[b] > 0) {
        put_branch(net, q, b, at);
    } else {
        other = b;
    }
    const bool begins = nodal_ladder_is_known(net, net->from[other]);
    q->outer[link > 0] = begins ? net->from[other] : net->to[other];
    return put_link(net, q, other, link, begins == (link == 0));
}

// Links join neighbours; branches with state lie between a node and something known, or are links.
static bool place_branches(const crdi_network* net, struct crdi_nodal_ladder* q)
{
    for (int32_t b = 0; b < net->branches; b++) {
        const int32_t from = net->from[b], to = net->to[b];
        const bool a = nodal_ladder_is_known(net, from), z = nodal_ladder_is_known(net, to);
        if (net->r[b] < 0 || net->l[b] < 0 || net->s[b] < 0) { return false; }
        const int32_t at = (a && z) || from == to ? -1 : q->place[a ? to : from];
        const int32_t link = a || z || at < 0 ? -1 : q->place[to] > at ? q->place[to] : at;
        if (b < net->resistive) {
            if (link >= 0) {
                q->link[link] += 1 / net->r[b];
            } else if (at >= 0) {
                q->shunt[at] += 1 / net->r[b];
            }
        } else if (at < 0) {
            q->held[q->held_count++] = b - net->resistive;
        } else if (link >= 0) {
            if (!put_link(net, q, b, link, at < link)) { return false; }
        } else if (q->has[at]) {
            if (!put_outer(net, q, b, at)) { return false; }
        } else {
            put_branch(net, q, b, at);
        }
    }
    return true;
}

static bool may_be(const crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const crd_circuit_method m = d->c->opt.method;
    if (d->c->opt.no_chains || !d->symmetric || net->unknowns < LEAST || net->devices > 0 ||
        net->rows > 0 || net->gains > 0 || (m != CRD_METHOD_TR && m > CRD_METHOD_BDF3)) {
        return false;
    }
    for (int32_t k = 0; k < net->ties; k++) {
        if (!nodal_ladder_is_known(net, crdi_network_ground(net) + 1 + k)) { return false; }
    }
    return true;
}

// Nodes that sources drive, ascending by place.
static void find_driven(const crdi_nodal* d, struct crdi_nodal_ladder* q)
{
    const crdi_network* net = &d->net;
    const int32_t n = net->unknowns;
    uint8_t* mark = (uint8_t*)q->v; // not in use yet
    for (size_t k = 0; k < d->all.driven; k++) {
        mark[q->place[d->all.driven_row[k]]] = 1;
    }
    for (int32_t k = 0; k < net->flows; k++) {
        if (net->flow[k].from < n) { mark[q->place[net->flow[k].from]] = 1; }
        if (net->flow[k].to < n) { mark[q->place[net->flow[k].to]] = 1; }
    }
    for (int32_t at = 0; at < n; at++) {
        if (!mark[at]) { continue; }
        const int32_t b = q->branch[at] + net->resistive;
        q->driver[q->driven_count] = !q->has[at]       ? crdi_network_ground(net)
                                     : q->sign[at] > 0 ? net->to[b]
                                                       : net->from[b];
        q->driven[q->driven_count++] = at;
    }
    memset(q->v, 0, (size_t)n * sizeof *q->v);
}

static int32_t* make_places(crd_arena* a, size_t count) // -1
{
    int32_t* to = crdi_arena_new(a, count, sizeof *to);
    if (to) { memset(to, 0xff, count * sizeof *to); }
    return to;
}

static crd_status make_arrays(struct crdi_nodal_ladder* q, size_t n, size_t states)
{
    crd_arena* a = &q->arena;
    q->order_of = make_places(a, n);
    q->place = make_places(a, n);
    q->branch = make_places(a, n);
    q->driven = make_places(a, n);
    q->driver = make_places(a, n);
    q->link_branch = make_places(a, n + 1);
    q->link_of = make_places(a, states);
    q->held = make_places(a, states);
    q->sign = crdi_arena_new(a, n, sizeof *q->sign);
    q->shunt = crdi_arena_new(a, n, sizeof *q->shunt);
    q->r = crdi_arena_new(a, n, sizeof *q->r);
    q->l = crdi_arena_new(a, n, sizeof *q->l);
    q->s = crdi_arena_new(a, n, sizeof *q->s);
    q->v = crdi_arena_new(a, n, sizeof *q->v);
    q->has = crdi_arena_new(a, n, sizeof *q->has);
    q->link = crdi_arena_new(a, n + 1, sizeof *q->link);
    q->link_r = crdi_arena_new(a, n + 1, sizeof *q->link_r);
    q->link_l = crdi_arena_new(a, n + 1, sizeof *q->link_l);
    q->link_sign = crdi_arena_new(a, n + 1, sizeof *q->link_sign);
    return crdi_arena_status(a);
}

static crd_status make_levels(struct crdi_nodal_ladder* q, size_t n)
{
    for (int k = 0; k < crdi_ladder_levels(q->ladder); k++) {
        q->level[k] = crdi_arena_new(&q->arena, n, sizeof(double));
        q->level[3 + k] = crdi_arena_new(&q->arena, n, sizeof(double));
        q->link_level[k] = crdi_arena_new(&q->arena, q->linked ? n + 1 : 0, sizeof(double));
    }
    return crdi_arena_status(&q->arena);
}

void crdi_nodal_ladder_clear(crdi_nodal* d)
{
    if (!d->ladder) { return; }
    crdi_ladder_destroy(d->ladder->ladder);
    crd_arena_clear(&d->ladder->arena);
    crd_free(d->c->ctx, d->ladder);
    d->ladder = NULL;
}

static int order_of(const crd_circuit_options* o)
{
    return o->method == CRD_METHOD_TR ? 0 : (int)o->method - (int)CRD_METHOD_BDF1 + 1;
}

static double weight(int order, double h)
{
    return (order == 0 ? 2 : crdi_bdf_lead[order]) / h;
}

static crd_status factor(crdi_nodal* d, double h)
{
    struct crdi_nodal_ladder* q = d->ladder;
    const crdi_ladder_parts parts = {q->link, q->shunt, q->r,      q->l,
                                     q->s,    q->has,   q->link_r, q->link_l};
    q->w = 0;
    q->ready = false;
    q->order = order_of(&d->c->opt);
    const crd_status st = crdi_ladder_factor(q->ladder, &parts, (crdi_ladder_method)q->order, h);
    if (st == CRD_OK) { q->w = weight(q->order, h); }
    return st;
}

crd_status crdi_nodal_ladder_init(crdi_nodal* d)
{
    crd_status st = CRD_OK;
    const crdi_network* net = &d->net;
    if (!may_be(d)) { return CRD_OK; }
    struct crdi_nodal_ladder* q = d->ladder = crdi_new(d->c->ctx, sizeof *q);
    if (!q) { return CRD_E_MEMORY; }
    crd_arena_init(&q->arena, d->c->ctx);
    CRD_TRY(make_arrays(q, (size_t)net->unknowns, (size_t)net->states));
    bool is = false;
    CRD_TRY(crdi_chain_order(d->c->ctx, net->unknowns, d->all.entries, d->all.row, d->all.column,
                             q->order_of, &is));
    for (int32_t k = 0; k < net->unknowns && is; k++) {
        q->place[q->order_of[k]] = k;
    }
    q->outer[0] = q->outer[1] = crdi_network_ground(net);
    if (!is || !place_branches(net, q)) {
        crdi_nodal_ladder_clear(d);
        return CRD_OK;
    }
    find_driven(d, q);
    CRD_TRY(crdi_ladder_create(d->c->ctx, net->unknowns, q->driven, q->driven_count, &q->ladder));
    st = factor(d, d->c->opt.step);
    if (st == CRD_E_RANGE) { // the others say what is wrong with it
        crdi_nodal_ladder_clear(d);
        return CRD_OK;
    }
    CRD_TRY(st);
    CRD_TRY(make_levels(q, (size_t)net->unknowns));
    return CRD_OK;
fail:
    crdi_nodal_ladder_clear(d);
    return st;
}

// ---- between ladder and arrays -----------------------------------------------------------------

static void nodal_ladder_load(crdi_nodal* d)
{
    struct crdi_nodal_ladder* q = d->ladder;
    const int levels = crdi_ladder_levels(q->ladder);
    for (int32_t k = 0; k < d->net.unknowns; k++) {
        const int32_t b = q->branch[k];
        q->v[k] = d->pot[q->order_of[k]];
        for (int j = 0; j < levels; j++) {
            q->level[j][k] = b >= 0 ? q->sign[k] * d->i[j][b] : 0;
            q->level[3 + j][k] = b >= 0 ? q->sign[k] * d->vc[j][b] : 0;
        }
    }
    for (int32_t k = 0; k < q->driven_count; k++) {
        crdi_ladder_drive(q->ladder, k, 0, d->pot[q->driver[k]]);
    }
    for (int32_t k = 0; k <= d->net.unknowns && q->linked; k++) {
        const int32_t b = q->link_branch[k];
        for (int j = 0; j < levels && b >= 0; j++) {
            q->link_level[j][k] = q->link_sign[k] * d->i[j][b];
        }
    }
    crdi_ladder_outer(q->ladder, d->pot[q->outer[0]], d->pot[q->outer[1]]);
    crdi_ladder_load(q->ladder, (const double* const*)q->level,
                     (const double* const*)(q->level + 3), q->v,
                     (const double* const*)q->link_level);
    q->ready = true;
    q->ahead = false;
}

static double nodal_ladder_across(const crdi_nodal* d, int32_t state) // a branch
{
    const int32_t branch = state + d->net.resistive;
    return d->pot[d->net.from[branch]] - d->pot[d->net.to[branch]];
}

// The newest of one branch and its node into the arrays
static void fetch(crdi_nodal* d, int32_t place)
{
    const struct crdi_nodal_ladder* q = d->ladder;
    const int32_t b = q->branch[place];
    const double v = crdi_ladder_voltage(q->ladder, place);
    d->pot[q->order_of[place]] = v;
    if (b < 0) { return; }
    const double i = q->sign[place] * crdi_ladder_current(q->ladder, place);
    const double vc = q->sign[place] * crdi_ladder_capacitor(q->ladder, place);
    d->i[0][b] = i;
    d->vc[0][b] = vc;
    d->vl[b] = q->l[place] > 0 ? nodal_ladder_across(d, b) - q->r[place] * i - vc : 0;
}

void crdi_nodal_ladder_look(crdi_nodal* d, int32_t potential)
{
    if (!d->ladder || !d->ladder->ahead || potential >= d->net.unknowns) { return; }
    fetch(d, d->ladder->place[potential]);
}

void crdi_nodal_ladder_look_branch(crdi_nodal* d, int32_t branch)
{
    crdi_nodal_ladder_look(d, d->net.from[branch]);
    crdi_nodal_ladder_look(d, d->net.to[branch]);
    const int32_t b = branch - d->net.resistive;
    if (b < 0 || !d->ladder || !d->ladder->ahead || d->ladder->link_of[b] < 0) { return; }
    const struct crdi_nodal_ladder* q = d->ladder;
    const int32_t link = q->link_of[b];
    d->i[0][b] = q->link_sign[link] * crdi_ladder_link(q->ladder, link);
    d->vl[b] = nodal_ladder_across(d, b) - q->link_r[link] * d->i[0][b];
}

void crdi_nodal_ladder_look_part(crdi_nodal* d, int32_t part)
{
    const crdi_network* net = &d->net;
    if (!d->ladder || !d->ladder->ahead) { return; }
    if (net->home[part] == CRDI_HOME_BRANCH) {
        crdi_nodal_ladder_look_branch(d, net->home_index[part]);
    } else if (net->home[part] == CRDI_HOME_TIE && !d->ties_known) {
        for (int32_t k = 0; k < net->touch_first[net->ties]; k++) {
            const int32_t other = net->touch[k] < 0 ? ~net->touch[k] : net->touch[k];
            if (net->home[other] == CRDI_HOME_BRANCH) {
                crdi_nodal_ladder_look_branch(d, net->home_index[other]);
            }
        }
    }
}

void crdi_nodal_ladder_sync(crdi_nodal* d)
{
    struct crdi_nodal_ladder* q = d->ladder;
    if (!q || !q->ahead) { return; }
    const int levels = crdi_ladder_levels(q->ladder);
    crdi_ladder_store(q->ladder, q->level, q->level + 3, q->v, q->link_level);
    for (int32_t k = 0; k < d->net.unknowns; k++) {
        const int32_t b = q->branch[k];
        d->pot[q->order_of[k]] = q->v[k];
        if (b < 0) { continue; }
        for (int j = 0; j < levels; j++) {
            d->i[j][b] = q->sign[k] * q->level[j][k];
            d->vc[j][b] = q->sign[k] * q->level[3 + j][k];
        }
        d->vl[b] = q->l[k] > 0 ? nodal_ladder_across(d, b) - q->r[k] * d->i[0][b] - d->vc[0][b] : 0;
    }
    for (int32_t k = 0; k <= d->net.unknowns && q->linked; k++) {
        const int32_t b = q->link_branch[k];
        if (b < 0) { continue; }
        for (int j = 0; j < levels; j++) {
            d->i[j][b] = q->link_sign[k] * q->link_level[j][k];
            d->vc[j][b] = 0;
        }
        d->vl[b] = nodal_ladder_across(d, b) - q->link_r[k] * d->i[0][b];
    }
    q->ahead = false;
}

void crdi_nodal_ladder_leave(crdi_nodal* d)
{
    if (!d->ladder) { return; }
    crdi_nodal_ladder_sync(d);
    d->ladder->ready = false;
}

void crdi_nodal_ladder_forget(crdi_nodal* d)
{
    if (d->ladder) { d->ladder->ready = d->ladder->ahead = false; }
}

// ---- steps -------------------------------------------------------------------------------------

bool crdi_nodal_ladder_can(const crdi_nodal* d)
{
    const crd_circuit* c = d->c;
    if (!d->ladder || c->control) { return false; } // who varies the step wants more history
    const int order = order_of(&c->opt);
    const double h = c->opt.step;
    return (order < 2 || fabs(d->age[0] - h) <= 1e-9 * h) &&
           (order < 3 || fabs(d->age[1] - 2 * h) <= 1e-9 * h);
}

// The sources as currents into the nodes that they drive, and potentials at the end of branches
static void drive(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const struct crdi_nodal_ladder* q = d->ladder;
    for (int32_t k = 0; k < q->driven_count; k++) {
        d->r[q->order_of[q->driven[k]]] = 0;
    }
    crdi_network_drive(net, &d->all, d->now->driven_value, d->source, d->off, d->r);
    for (int32_t k = 0; k < q->driven_count; k++) {
        const int32_t at = q->driven[k], b = q->branch[at];
        const double e = d->pot[q->driver[k]];
        const double branch = b >= 0 ? d->now->g[b] * e : 0; // is in r already
        crdi_ladder_drive(q->ladder, k, d->r[q->order_of[at]] - branch, e);
    }
    crdi_ladder_outer(q->ladder, d->pot[q->outer[0]], d->pot[q->outer[1]]);
}

// Branches whose voltage is known, one by one, on the arrays: i1 = g (v - ec + ic), vC1 = ec + S/w
// i1, vL1 = v - R i1 - vC1, with TR: ec = vC0 + S/w i0, ic = vL0 + L w i0; with BDF, sums over the
// past: ec = sum c_j vC_j, ic = L w sum c_j i_j.
static void step_held(crdi_nodal* d)
{
    static const double past[4][3] = {
        {0}, {1}, {4. / 3, -1. / 3}, {18. / 11, -9. / 11, 2. / 11}}; // divided by the first weight
    const struct crdi_nodal_ladder* q = d->ladder;
    const crdi_nodal_set* set = d->now;
    for (int32_t k = 0; k < q->held_count; k++) {
        const int32_t b = q->held[k], branch = b + d->net.resistive;
        const double v = nodal_ladder_across(d, b), g = set->g[b], sw = set->sw[b], lw = set->lw[b];
        double ic = 0, ec = 0, vc;
        if (q->order == 0) {
            ec = d->vc[0][b] + sw * d->i[0][b];
            ic = d->vl[b] + lw * d->i[0][b];
        }
        for (int j = 0; j < q->order; j++) {
            ec += past[q->order][j] * d->vc[j][b];
            ic += lw * past[q->order][j] * d->i[j][b];
        }
        const double i = g * (v - ec + ic);
        vc = ec + sw * i;
        for (int j = q->order - 1; j > 0; j--) {
            d->i[j][b] = d->i[j - 1][b];
            d->vc[j][b] = d->vc[j - 1][b];
        }
        d->i[0][b] = i;
        d->vc[0][b] = vc;
        d->vl[b] = lw > 0 ? v - d->net.r[branch] * i - vc : 0;
    }
}

crd_status crdi_nodal_ladder_step(crdi_nodal* d, double t)
{
    struct crdi_nodal_ladder* q = d->ladder;
    const double h = d->c->opt.step, w = weight(order_of(&d->c->opt), h);
    crd_status st = crdi_nodal_choose(d, w);
    if (st < 0) { return st; }
    if (q->w != w || q->order != order_of(&d->c->opt)) {
        crdi_nodal_ladder_leave(d);
        st = factor(d, h);
        if (st < 0) { return st; }
    }
    if (!q->ready) { nodal_ladder_load(d); }
    crdi_nodal_sources(d, t, false);
    crdi_network_spread(&d->net, d->off, d->pot);
    drive(d);
    crdi_ladder_step(q->ladder);
    step_held(d);
    q->ahead = true;
    d->ties_known = false;
    d->c->iterations++;
    return CRD_OK;
}

// ---- state -------------------------------------------------------------------------------------

// What the arrays hold, to the last bit: w and order of the ladder if it is ready, then its state.
size_t crdi_nodal_ladder_numbers(const crdi_nodal* d)
{
    return d->ladder ? 2 + crdi_ladder_state_size(d->ladder->ladder) / sizeof(double) : 0;
}

void crdi_nodal_ladder_save(const crdi_nodal* d, double* to)
{
    const struct crdi_nodal_ladder* q = d->ladder;
    if (!q) { return; }
    to[0] = q->ready ? q->w : 0;
    to[1] = q->order;
    if (q->ready) {
        crdi_ladder_save(q->ladder, to + 2);
    } else {
        memset(to + 2, 0, crdi_ladder_state_size(q->ladder));
    }
}

void crdi_nodal_ladder_restore(crdi_nodal* d, const double* from)
{
    struct crdi_nodal_ladder* q = d->ladder;
    crdi_nodal_ladder_forget(d);
    if (!q || from[0] == 0 || from[0] != q->w || (int)from[1] != q->order) { return; }
    crdi_ladder_restore(q->ladder, from + 2);
    q->ready = true;
}

bool crdi_circuit_use(crd_circuit* c, int set)
{
    const crdi_nodal* d = c->form == &crdi_form_nodal ? c->self : NULL;
    if (!d || !d->ladder) { return false; }
    crdi_ladder_use(d->ladder->ladder, set);
    return true;
}
