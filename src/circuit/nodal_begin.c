// Beginnings of the fast form. In plain circuits capacitors are voltage sources and inductors
// current sources (or nothing and a wire, at rest), and one solution says all. Everything else
// (loops of capacitors and sources, cutsets of inductors, devices) is asked of the reference form.
#include "circuit/dae.h"
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

enum { GIVEN, REST };

// ---- which -------------------------------------------------------------------------------------

// An operating point with capacitors that .ic holds
static bool nodal_begin_is_held(const crd_netlist* n)
{
    bool held = false;
    for (int32_t i = 1; i < n->node_count && n->node_ic; i++) {
        held = held || !isnan(n->node_ic[i]);
    }
    return held && !crdi_netlist_is_given(n);
}

static crd_status make_plain(crdi_nodal* d, int which)
{
    crd_status st = CRD_OK;
    crdi_network* net = &d->begin_net[which];
    crdi_assembly* a = &d->begin_all[which];
    CRD_TRY(crdi_network_init(net, &d->begin_arena, d->c->n,
                              which == GIVEN ? CRDI_NETWORK_GIVEN : CRDI_NETWORK_REST));
    CRD_TRY(crdi_assembly_init(a, &d->begin_arena, net));
    const bool symmetric = d->symmetric && net->rows == 0;
    CRD_TRY(crdi_linear_init(&d->begin_matrix[which], &d->begin_arena, net->unknowns, symmetric,
                             !d->c->opt.no_chains, a->entries, a->row, a->column));
    CRD_TRY(crdi_linear_factor(&d->begin_matrix[which], a->value));
    if (!crdi_linear_regular(&d->begin_matrix[which])) { st = CRD_E_UNSUPPORTED; }
fail:
    return st == CRD_E_CONVERGENCE ? CRD_E_UNSUPPORTED : st;
}

static void clear_plain(crdi_nodal* d)
{
    crdi_linear_clear(&d->begin_matrix[GIVEN]);
    crdi_linear_clear(&d->begin_matrix[REST]);
    crd_arena_clear(&d->begin_arena);
}

static crd_status make_reference(crdi_nodal* d)
{
    crd_circuit* c = crdi_new(d->c->ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    *c = *d->c;
    c->form = &crdi_form_dae;
    c->self = NULL;
    d->reference = c;
    return crdi_form_dae.create(c, &c->self);
}

crd_status crdi_nodal_begin_init(crdi_nodal* d)
{
    crd_status st = CRD_E_UNSUPPORTED;
    crd_arena_init(&d->begin_arena, d->c->ctx);
    if (d->net.devices == 0 && !nodal_begin_is_held(d->c->n)) {
        st = make_plain(d, GIVEN); // also at rest: it says that nothing else is free
        if (st == CRD_OK && !crdi_netlist_is_given(d->c->n)) { st = make_plain(d, REST); }
    }
    if (st == CRD_E_UNSUPPORTED) {
        clear_plain(d);
        return make_reference(d);
    }
    size_t most = 0;
    for (int which = 0; which < 2 && st == CRD_OK; which++) {
        const crdi_network* net = &d->begin_net[which];
        const size_t need = net->n ? 2 * (size_t)crdi_network_potentials(net) + (size_t)net->ties +
                                         (size_t)net->sources
                                   : 0;
        most = need > most ? need : most;
    }
    d->begin_work = crdi_arena_new(&d->begin_arena, most, sizeof *d->begin_work);
    return st < 0 ? st : crdi_arena_status(&d->begin_arena);
}

void crdi_nodal_begin_clear(crdi_nodal* d)
{
    clear_plain(d);
    if (d->reference) {
        crdi_form_dae.destroy(d->reference, d->reference->self);
        crd_free(d->c->ctx, d->reference);
    }
}

// ---- plain -------------------------------------------------------------------------------------

static double source_value(const crd_circuit* c, const crdi_network* net, int32_t part, double t)
{
    const crd_part* p = &c->n->parts[part];
    const crdi_part_store stores = crdi_part_kind_of(p)->stores;
    if (crdi_part_is_source(p)) { return crd_waveform_eval(&c->n->waves[p->index], t, c->inputs); }
    if (net->purpose != CRDI_NETWORK_GIVEN || !stores) { return 0; }
    return stores == CRDI_STORES_VOLTAGE ? crdi_netlist_capacitor_ic(c->n, p)
           : p->has_ic                   ? p->ic
                                         : 0;
}

static void solve_plain(crdi_nodal* d, int which, double t)
{
    const crd_circuit* c = d->c;
    const crdi_network* net = &d->begin_net[which];
    const size_t pots = (size_t)crdi_network_potentials(net);
    double *pot = d->begin_work, *off = pot + pots, *tie_current = off + pots;
    double* source = tie_current + net->ties;
    memset(pot, 0, 2 * pots * sizeof *pot);
    for (int32_t k = 0; k < net->sources; k++) {
        source[k] = source_value(c, net, net->source[k], t);
    }
    crdi_network_offsets(net, source, off);
    crdi_network_drive(net, &d->begin_all[which], d->begin_all[which].driven_value, source, off,
                       pot);
    crdi_linear_solve(&d->begin_matrix[which], pot);
    crdi_network_spread(net, off, pot);
    crdi_network_tie_currents(net, pot, source, NULL, NULL, tie_current);
    for (int32_t i = 0; i < c->n->node_count; i++) {
        d->begin_v[i] = pot[net->node_at[i]];
    }
    for (int32_t i = 0; i < c->n->part_count; i++) {
        d->begin_i[i] = crdi_network_current(net, pot, source, NULL, NULL, tie_current, i);
    }
}

// ---- from the reference form -------------------------------------------------------------------

static crd_status ask_reference(crdi_nodal* d, double t)
{
    crd_circuit* c = d->reference;
    const crd_netlist* n = c->n;
    c->t0 = t;
    c->steps = c->since = 0;
    c->opt.step = d->c->opt.step;
    const crd_status st = crdi_form_dae.begin(c, t);
    if (st < 0) { return st; }
    for (int32_t i = 0; i < n->node_count; i++) {
        d->begin_v[i] = crdi_form_dae.voltage(c, i);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const bool has = !crdi_part_kind_of(&n->parts[i])->couples;
        d->begin_i[i] = has ? crdi_form_dae.current(c, i) : 0;
    }
    return CRD_OK;
}

static void take_devices(crdi_nodal* d)
{
    for (int32_t k = 0; k < d->net.devices; k++) {
        const crdi_device* e = &d->device[k];
        d->state[k] = (crdi_device_state){.i = d->begin_i[e->part]};
        if (e->kind->take) { e->kind->take(d->reference->self, e, &d->state[k]); }
    }
}

// ---- both --------------------------------------------------------------------------------------

static double nodal_begin_across(const crdi_nodal* d, int32_t member) // along its branch
{
    const crd_part* p = &d->net.n->parts[member < 0 ? ~member : member];
    const double v = d->begin_v[p->nodes[0]] - d->begin_v[p->nodes[1]];
    return member < 0 ? -v : v;
}

static void take_branch(crdi_nodal* d, int32_t b)
{
    const crdi_network* net = &d->net;
    const int32_t k = b - net->resistive, m0 = net->member[net->first[b]];
    double vc = 0, vl = 0;
    for (int32_t p = net->first[b]; p < net->first[b + 1]; p++) {
        const int32_t m = net->member[p];
        const crdi_part_store stores = crdi_part_kind_of(&net->n->parts[m < 0 ? ~m : m])->stores;
        if (stores == CRDI_STORES_VOLTAGE) { vc += nodal_begin_across(d, m); }
        if (stores == CRDI_STORES_CURRENT) { vl += nodal_begin_across(d, m); }
    }
    d->i[0][k] = m0 < 0 ? -d->begin_i[~m0] : d->begin_i[m0];
    d->vc[0][k] = vc;
    d->vl[k] = vl;
    for (int32_t p = net->first[b]; p < net->first[b + 1] && d->shift; p++) {
        const int32_t m = net->member[p], part = m < 0 ? ~m : m;
        if (crdi_part_kind_of(&net->n->parts[part])->stores == CRDI_STORES_VOLTAGE) {
            d->shift[part] =
                nodal_begin_across(d, m) - vc / (net->s[b] * net->n->parts[part].value);
        }
    }
}

static void take_beginning(crdi_nodal* d, double t)
{
    const crdi_network* net = &d->net;
    for (int32_t i = 0; i < net->n->node_count; i++) {
        if (net->node_at[i] >= 0) { d->pot[net->node_at[i]] = d->begin_v[i]; }
    }
    for (int32_t b = net->resistive; b < net->branches; b++) {
        take_branch(d, b);
    }
    for (int32_t k = 0; k < net->rows; k++) {
        const crdi_row* r = &net->row[k];
        d->pot[r->unknown] = d->begin_i[r->part];
        if (r->state < 0) { continue; }
        const bool capacitor = r->capacitor;
        const double v = nodal_begin_across(d, r->part);
        d->i[0][r->state] = d->begin_i[r->part];
        d->vc[0][r->state] = capacitor ? v : 0;
        d->vl[r->state] = capacitor ? 0 : v;
    }
    crdi_nodal_sources(d, t, true);
}

crd_status crdi_nodal_begin(crd_circuit* c, double t)
{
    crdi_nodal* d = c->self;
    crdi_nodal_ladder_forget(d);
    if (d->reference) {
        const crd_status st = ask_reference(d, t);
        if (st < 0) { return st; }
    } else {
        solve_plain(d, crdi_netlist_is_given(c->n) ? GIVEN : REST, t);
    }
    take_beginning(d, t);
    if (d->reference) { take_devices(d); }
    crdi_nodal_flatten(d);
    d->ties_known = false;
    return CRD_OK;
}
