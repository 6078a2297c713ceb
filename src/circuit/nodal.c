// The fast form as a form.
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

// ---- making it ---------------------------------------------------------------------------------

static crd_status check_method(const crd_circuit* c)
{
    const crd_circuit_method m = c->opt.method;
    if (m == CRD_METHOD_TR_CARRIED || m == CRD_METHOD_GAUSS2 || m == CRD_METHOD_GAUSS4) {
        return crdi_fail(
            c->ctx, CRD_E_UNSUPPORTED,
            "circuit: the nodal form has BDF1 to BDF3, TR and TRBDF2; form DAE has the "
            "other methods");
    }
    return CRD_OK;
}

static bool is_symmetric(const crdi_network* net)
{
    for (int32_t b = 0; b < net->branches; b++) {
        if (net->r[b] < 0) { return false; } // then it need not be definite
    }
    return net->gains == 0;
}

static crd_status make_sources(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const crd_netlist* n = net->n;
    d->wave = crdi_arena_new(&d->arena, (size_t)net->sources, sizeof *d->wave);
    d->varying = crdi_arena_new(&d->arena, (size_t)net->sources, sizeof *d->varying);
    if (d->arena.failed) { return CRD_E_MEMORY; }
    for (int32_t k = 0; k < net->sources; k++) {
        const crd_part* p = &n->parts[net->source[k]];
        const bool wave = crdi_part_is_source(p);
        d->wave[k] = wave ? &n->waves[p->index] : NULL;
        if (wave && d->wave[k]->kind != CRD_WAVE_DC) { d->varying[d->varying_count++] = k; }
    }
    crdi_nodal_sources(d, 0, true); // the constant ones are needed from now on
    return crdi_nodal_split(d);
}

static bool has_series_capacitors(const crdi_network* net)
{
    for (int32_t b = net->resistive; b < net->branches; b++) {
        int count = 0;
        for (int32_t k = net->first[b]; k < net->first[b + 1]; k++) {
            const int32_t m = net->member[k];
            const crd_part* p = &net->n->parts[m < 0 ? ~m : m];
            count += crdi_part_kind_of(p)->stores == CRDI_STORES_VOLTAGE;
        }
        if (count > 1) { return true; }
    }
    return false;
}

static crd_status make_state(crdi_nodal* d)
{
    crd_arena* a = &d->arena;
    const crdi_network* net = &d->net;
    const size_t pots = (size_t)crdi_network_potentials(net), states = (size_t)net->states;
    const size_t unknowns = (size_t)net->unknowns, sources = (size_t)net->sources;
    d->pot = crdi_arena_new(a, pots, sizeof *d->pot);
    d->source = crdi_arena_new(a, sources, sizeof *d->source);
    d->vl = crdi_arena_new(a, states, sizeof *d->vl);
    d->r = crdi_arena_new(a, unknowns + 1, sizeof *d->r);
    d->j = crdi_arena_new(a, states, sizeof *d->j);
    d->ec = crdi_arena_new(a, states, sizeof *d->ec);
    d->off = crdi_arena_new(a, pots, sizeof *d->off);
    d->z = crdi_arena_new(a, (size_t)(d->linear + d->active) + 4, sizeof *d->z);
    d->tie_current = crdi_arena_new(a, (size_t)net->ties, sizeof *d->tie_current);
    d->begin_v = crdi_arena_new(a, (size_t)net->n->node_count, sizeof *d->begin_v);
    d->begin_i = crdi_arena_new(a, (size_t)net->n->part_count, sizeof *d->begin_i);
    d->row_from = crdi_arena_new(a, states, sizeof *d->row_from);
    d->row_to = crdi_arena_new(a, states, sizeof *d->row_to);
    for (int k = 0; k <= CRDI_HISTORY; k++) {
        d->i[k] = crdi_arena_new(a, states, sizeof(double));
        d->vc[k] = crdi_arena_new(a, states, sizeof(double));
    }
    if (net->devices > 0) {
        d->pot_saved = crdi_arena_new(a, pots, sizeof *d->pot_saved);
        d->p_before = crdi_arena_new(a, pots, sizeof *d->p_before);
        d->delta = crdi_arena_new(a, pots, sizeof *d->delta);
        d->source_saved = crdi_arena_new(a, sources, sizeof *d->source_saved);
        d->vl_saved = crdi_arena_new(a, states, sizeof *d->vl_saved);
        d->before = crdi_arena_new(a, unknowns, sizeof *d->before);
        d->before_saved = crdi_arena_new(a, unknowns, sizeof *d->before_saved);
        d->state_saved = crdi_arena_new(a, (size_t)net->devices, sizeof *d->state_saved);
    }
    if (has_series_capacitors(net)) {
        d->shift = crdi_arena_new(a, (size_t)net->n->part_count, sizeof *d->shift);
    }
    if (a->failed) { return CRD_E_MEMORY; }
    for (int32_t b = net->resistive; b < net->branches; b++) {
        const int32_t from = net->root[net->from[b]], to = net->root[net->to[b]];
        d->row_from[b - net->resistive] = from >= 0 ? from : net->unknowns;
        d->row_to[b - net->resistive] = to >= 0 ? to : net->unknowns;
    }
    return CRD_OK;
}

// Factors that fixed steps need: nothing is left for the first step to make.
static crd_status make_sets(crdi_nodal* d)
{
    const crd_circuit_options* o = &d->c->opt;
    const bool bdf = o->method <= CRD_METHOD_BDF3;
    if (bdf && o->start != CRD_START_CONSTANT) {
        const crd_status st = crdi_nodal_choose(d, 2 / o->step);
        if (st < 0) { return st; }
    }
    const double w = bdf ? crdi_bdf_lead[o->method - CRD_METHOD_BDF1 + 1] / o->step
                     : o->method == CRD_METHOD_TRBDF2 ? crdi_trbdf2_of(o->step).w
                                                      : 2 / o->step;
    return crdi_nodal_choose(d, w);
}

static void nodal_destroy(crd_circuit* c, void* self)
{
    crdi_nodal* d = self;
    if (!d) { return; }
    crdi_nodal_begin_clear(d);
    crdi_nodal_ladder_clear(d);
    crdi_linear_clear(&d->set[0].linear);
    crdi_linear_clear(&d->set[1].linear);
    crdi_sparse_clear(&d->sparse);
    crd_arena_clear(&d->arena);
    crd_free(c->ctx, d);
}

static crd_status nodal_create(crd_circuit* c, void** self)
{
    crd_status st = check_method(c);
    if (st < 0) { return st; }
    crdi_nodal* d = crdi_new(c->ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    d->c = c;
    crd_arena_init(&d->arena, c->ctx);
    CRD_TRY(crdi_network_init(&d->net, &d->arena, c->n, CRDI_NETWORK_STEPS));
    CRD_TRY(crdi_nodal_partition(d));
    CRD_TRY(crdi_assembly_init(&d->all, &d->arena, &d->net));
    d->symmetric = is_symmetric(&d->net) && (d->net.rows == 0 || d->active > 0);
    d->sets = c->opt.method <= CRD_METHOD_BDF3 ? 2 : 1;
    CRD_TRY(crdi_nodal_devices(d));
    CRD_TRY(make_state(d));
    CRD_TRY(make_sources(d));
    d->few = d->laws && !d->limited && !d->switches && !d->whole && d->net.rows == 0 &&
             d->varying_count == 0 && d->linear > 0 && d->net.unknowns <= CRDI_DENSE_MOST;
    CRD_TRY(crdi_nodal_matrices(d));
    st = make_sets(d);
    if (st == CRD_E_CONVERGENCE) { // the other form may know how to
        st = crdi_fail(c->ctx, CRD_E_UNSUPPORTED,
                       "circuit: the nodal equations are singular; form DAE may do");
    }
    CRD_TRY(st);
    CRD_TRY(crdi_nodal_begin_init(d));
    CRD_TRY(crdi_nodal_ladder_init(d));
    *self = d;
    return CRD_OK;
fail:
    nodal_destroy(c, d);
    return st;
}

// The counts of the reference form, without making it.
static void structure(const crd_circuit* c, crd_circuit_structure* out)
{
    const crdi_nodal* d = c->self;
    const crd_netlist* n = c->n;
    int64_t variables = n->node_count, differential = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_part_kind* k = crdi_part_kind_of(p);
        const unsigned inside = k->inside ? k->inside(n, p) : 0;
        variables += !k->couples;
        differential += k->stores != CRDI_STORES_NOTHING;
        if (inside & CRDI_INSIDE_NODE) { variables += 2; } // and its current
        if (inside & CRDI_INSIDE_CHARGE) {
            variables += 2;
            differential++;
        }
    }
    out->variables = variables;
    out->differential = differential;
    out->constraints = variables - differential;
    out->nodal = d->net.unknowns;
    const klu_numeric* k = d->sparse.numeric;
    out->nonzeros = d->whole
                        ? (k ? (int64_t)k->lnz + k->unz : 0)
                        : crdi_linear_nonzeros(&d->now->linear) + (int64_t)d->active * d->active;
    out->ports = d->active;
    const crdi_paths* paths = d->now ? d->now->linear.paths : NULL;
    out->chain = d->ladder ? d->net.unknowns : paths ? crdi_paths_inside(paths) : 0;
}

// ---- looking at it -----------------------------------------------------------------------------

static double capacitor_voltage(const crdi_nodal* d, int32_t branch, int32_t part) // from -> to
{
    const double vc = d->vc[0][branch - d->net.resistive];
    if (!d->shift) { return vc; }
    return d->shift[part] + vc / (d->net.s[branch] * d->net.n->parts[part].value);
}

// What lies between `from` of a branch and its end
static double nodal_drop(const crdi_nodal* d, int32_t branch, int32_t part)
{
    const crdi_network* net = &d->net;
    const crd_part* p = &net->n->parts[part];
    const int32_t k = branch - net->resistive;
    switch (crdi_part_kind_of(p)->stores) {
    case CRDI_STORES_VOLTAGE:
        return capacitor_voltage(d, branch, part);
    case CRDI_STORES_CURRENT:
        return d->vl[k] * p->value / net->l[branch];
    default: {
        const double v = d->pot[net->from[branch]] - d->pot[net->to[branch]];
        return p->value * (k < 0 ? v / net->r[branch] : d->i[0][k]);
    }
    }
}

static double voltage(const crd_circuit* c, int32_t node)
{
    crdi_nodal* d = c->self;
    const crdi_network* net = &d->net;
    const int32_t at = net->node_at[node];
    if (at >= 0) {
        crdi_nodal_ladder_look(d, at);
        return d->pot[at];
    }
    const int32_t branch = -1 - at;
    crdi_nodal_ladder_look_branch(d, branch);
    double v = d->pot[net->from[branch]];
    for (int32_t k = net->first[branch]; k < net->first[branch + 1]; k++) {
        const int32_t m = net->member[k], part = m < 0 ? ~m : m;
        v -= nodal_drop(d, branch, part);
        if (net->n->parts[part].nodes[m < 0 ? 0 : 1] == node) { break; }
    }
    return v;
}

static double current(const crd_circuit* c, int32_t part)
{
    crdi_nodal* d = c->self;
    crdi_nodal_ladder_look_part(d, part);
    if (d->net.home[part] == CRDI_HOME_TIE && !d->ties_known) {
        crdi_network_tie_currents(&d->net, d->pot, d->source, d->i[0], d->state, d->tie_current);
        d->ties_known = true;
    }
    return crdi_network_current(&d->net, d->pot, d->source, d->i[0], d->state, d->tie_current,
                                part);
}

static double sign_in_branch(const crdi_network* net, int32_t branch, int32_t part)
{
    for (int32_t k = net->first[branch]; k < net->first[branch + 1]; k++) {
        if (net->member[k] == ~part) { return -1; }
    }
    return 1;
}

static void states(const crd_circuit* c, double* out)
{
    crdi_nodal* d = c->self;
    const crdi_network* net = &d->net;
    crdi_nodal_ladder_sync(d);
    for (int32_t i = 0; i < c->n->part_count; i++) {
        const crdi_part_store stores = crdi_part_kind_of(&c->n->parts[i])->stores;
        const bool capacitor = stores == CRDI_STORES_VOLTAGE;
        if (!stores) { continue; }
        const int32_t at = net->home_index[i];
        if (net->home[i] == CRDI_HOME_ROW) {
            const int32_t k = net->row[at].state;
            *out++ = capacitor ? d->vc[0][k] : d->i[0][k];
        } else {
            *out++ = sign_in_branch(net, at, i) *
                     (capacitor ? capacitor_voltage(d, at, i) : d->i[0][at - net->resistive]);
        }
    }
}

// ---- changes -----------------------------------------------------------------------------------

// Factors are made when the next step finds that it needs others.
static crd_status restep(crd_circuit* c, double step)
{
    crdi_nodal* d = c->self;
    if (c->since == 0) { // what never was a history has no times
        d->age[0] = step;
        d->age[1] = 2 * step;
    }
    return CRD_OK;
}

static void restart(crd_circuit* c)
{
    crdi_nodal* d = c->self;
    crdi_nodal_ladder_leave(d);
    crdi_nodal_flatten(d);
    crdi_nodal_switch(d, d->state);
}

// ---- state -------------------------------------------------------------------------------------

// Everything in a row: to or from `at`; returns what comes after it.
static double* copy(double* at, double* own, size_t count, bool save)
{
    if (count > 0) { memcpy(save ? at : own, save ? own : at, count * sizeof *at); }
    return at + count;
}

static double* walk_state(crdi_nodal* d, double* at, bool save)
{
    const crdi_network* net = &d->net;
    const size_t states_count = (size_t)net->states;
    at = copy(at, d->pot, (size_t)crdi_network_potentials(net), save);
    at = copy(at, d->source, (size_t)net->sources, save);
    for (int k = 0; k < CRDI_HISTORY; k++) {
        at = copy(at, d->i[k], states_count, save);
        at = copy(at, d->vc[k], states_count, save);
    }
    at = copy(at, d->vl, states_count, save);
    at = copy(at, d->age, 2, save);
    if (d->shift) { at = copy(at, d->shift, (size_t)net->n->part_count, save); }
    at =
        copy(at, (double*)d->state, (size_t)net->devices * sizeof *d->state / sizeof(double), save);
    at = copy(at, d->before, net->devices > 0 ? (size_t)net->unknowns : 0, save);
    at = copy(at, d->room, d->room_count, save);
    return copy(at, &d->theta, 1, save);
}

static size_t nodal_state_size(const crd_circuit* c)
{
    const crdi_nodal* d = c->self;
    const crdi_network* net = &d->net;
    const size_t numbers = (size_t)crdi_network_potentials(net) + (size_t)net->sources +
                           (2 * CRDI_HISTORY + 1) * (size_t)net->states + 3 + d->room_count +
                           (d->shift ? (size_t)net->n->part_count : 0) +
                           (net->devices > 0 ? (size_t)net->unknowns : 0);
    return (numbers + crdi_nodal_ladder_numbers(d)) * sizeof(double) +
           (size_t)net->devices * sizeof(crdi_device_state);
}

static void save_state(const crd_circuit* c, void* state)
{
    crdi_nodal_ladder_sync(c->self);
    crdi_nodal_ladder_save(c->self, walk_state(c->self, state, true));
}

static void restore_state(crd_circuit* c, const void* state)
{
    crdi_nodal* d = c->self;
    crdi_nodal_ladder_restore(d, walk_state(d, (double*)(uintptr_t)state, false));
    crdi_network_offsets(&d->net, d->source, d->off);
    d->ties_known = false;
}

const crdi_form crdi_form_nodal = {
    .name = "nodal",
    .create = nodal_create,
    .destroy = nodal_destroy,
    .structure = structure,
    .begin = crdi_nodal_begin,
    .step = crdi_nodal_step,
    .voltage = voltage,
    .current = current,
    .states = states,
    .restep = restep,
    .restart = restart,
    .state_size = nodal_state_size,
    .save = save_state,
    .restore = restore_state,
};
