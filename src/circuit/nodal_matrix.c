// Matrices of the fast form: entries of a network, and what is factored for one w.
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

// ---- entries -----------------------------------------------------------------------------------

// Into Kirchhoff's law at potential `row`, or into the row of an unknown current. Columns that are
// a known distance from their root go to the right as well.
static void nodal_matrix_put_entry(crdi_assembly* a, const crdi_network* net, int32_t row,
                                   int32_t column, double value)
{
    const int32_t r = net->root[row], c = net->root[column];
    if (r < 0) { return; }
    if (c >= 0) {
        if (a->row) {
            a->row[a->entries] = r;
            a->column[a->entries] = c;
            a->value[a->entries] = value;
        }
        a->entries++;
    }
    if (column > crdi_network_ground(net)) {
        if (a->driven_row) {
            a->driven_row[a->driven] = r;
            a->driven_tie[a->driven] = column;
            a->driven_value[a->driven] = value;
        }
        a->driven++;
    }
}

static void put_conductance(crdi_assembly* a, const crdi_network* net, int32_t from, int32_t to,
                            double g)
{
    if (net->root[from] == net->root[to]) { return; } // within a tree: it moves nothing
    nodal_matrix_put_entry(a, net, from, from, g);
    nodal_matrix_put_entry(a, net, from, to, -g);
    nodal_matrix_put_entry(a, net, to, from, -g);
    nodal_matrix_put_entry(a, net, to, to, g);
}

// Its current in Kirchhoff's law of both ends, and its equation (crdi_row)
static void nodal_matrix_put_row(crdi_assembly* a, const crdi_network* net, const crdi_row* r,
                                 double w)
{
    const int32_t u = r->unknown;
    nodal_matrix_put_entry(a, net, r->from, u, 1);
    nodal_matrix_put_entry(a, net, r->to, u, -1);
    if (r->role == CRDI_ROLE_FLOW || r->role == CRDI_ROLE_OPEN) {
        nodal_matrix_put_entry(a, net, u, u, 1);
        return;
    }
    nodal_matrix_put_entry(a, net, u, r->from, 1);
    nodal_matrix_put_entry(a, net, u, r->to, -1);
    if (r->drop) { nodal_matrix_put_entry(a, net, u, u, -r->drop(r->value, w, 1)); }
    if (r->c >= 0) { nodal_matrix_put_entry(a, net, u, r->c, -r->value); }
    if (r->d >= 0) { nodal_matrix_put_entry(a, net, u, r->d, r->value); }
}

static void fill_assembly(crdi_assembly* a, const crdi_network* net, double w)
{
    a->entries = a->driven = 0;
    for (int32_t b = 0; b < net->branches; b++) {
        const double g = 1 / (net->r[b] + net->l[b] * w + net->s[b] / w);
        put_conductance(a, net, net->from[b], net->to[b], g);
    }
    for (int32_t k = 0; k < net->rows; k++) {
        nodal_matrix_put_row(a, net, &net->row[k], w);
    }
    for (int32_t k = 0; k < net->couplings; k++) {
        const crdi_coupling* m = &net->coupling[k];
        const int32_t x = net->row[m->a].unknown, y = net->row[m->b].unknown;
        nodal_matrix_put_entry(a, net, x, y, -w * m->value);
        nodal_matrix_put_entry(a, net, y, x, -w * m->value);
    }
    for (int32_t k = 0; k < net->gains; k++) {
        const crdi_gain* g = &net->gain[k];
        nodal_matrix_put_entry(a, net, g->from, g->c, g->value);
        nodal_matrix_put_entry(a, net, g->to, g->c, -g->value);
        if (g->by_current) { continue; }
        nodal_matrix_put_entry(a, net, g->from, g->d, -g->value);
        nodal_matrix_put_entry(a, net, g->to, g->d, g->value);
    }
}

crd_status crdi_assembly_init(crdi_assembly* a, crd_arena* memory, const crdi_network* net)
{
    *a = (crdi_assembly){0};
    fill_assembly(a, net, 1); // counts
    a->row = crdi_arena_new(memory, a->entries, sizeof *a->row);
    a->column = crdi_arena_new(memory, a->entries, sizeof *a->column);
    a->value = crdi_arena_new(memory, a->entries, sizeof *a->value);
    a->driven_row = crdi_arena_new(memory, a->driven, sizeof *a->driven_row);
    a->driven_tie = crdi_arena_new(memory, a->driven, sizeof *a->driven_tie);
    a->driven_value = crdi_arena_new(memory, a->driven, sizeof *a->driven_value);
    if (memory->failed) { return CRD_E_MEMORY; }
    fill_assembly(a, net, 1);
    return CRD_OK;
}

// ---- sources -----------------------------------------------------------------------------------

void crdi_network_offsets(const crdi_network* net, const double* source, double* off)
{
    double* to = off + crdi_network_ground(net) + 1; // before it all is 0
    for (int32_t k = 0; k < net->ties; k++) {
        const crdi_tie* t = &net->tie[k];
        to[k] = off[t->parent] + t->sign * source[t->source];
    }
}

void crdi_network_drive(const crdi_network* net, const crdi_assembly* a, const double* driven_value,
                        const double* source, const double* off, double* r)
{
    for (size_t k = 0; k < a->driven; k++) {
        r[a->driven_row[k]] -= driven_value[k] * off[a->driven_tie[k]];
    }
    for (int32_t k = 0; k < net->flows; k++) {
        const crdi_flow* f = &net->flow[k];
        r[f->from] -= source[f->source];
        r[f->to] += source[f->source];
    }
    for (int32_t k = 0; k < net->rows; k++) {
        if (net->row[k].source >= 0) { r[net->row[k].unknown] += source[net->row[k].source]; }
    }
}

void crdi_network_spread(const crdi_network* net, const double* off, double* pot)
{
    const int32_t ground = crdi_network_ground(net);
    pot[ground] = 0;
    for (int32_t k = 0; k < net->ties; k++) {
        const int32_t at = ground + 1 + k, root = net->root[at];
        pot[at] = (root >= 0 ? pot[root] : 0) + off[at];
    }
}

// ---- currents ----------------------------------------------------------------------------------

double crdi_network_current(const crdi_network* net, const double* pot, const double* source,
                            const double* i, const crdi_device_state* state,
                            const double* tie_current, int32_t part)
{
    const int32_t at = net->home_index[part];
    switch ((crdi_home)net->home[part]) {
    case CRDI_HOME_BRANCH: {
        // a part that lies the other way round is listed as its complement
        double sign = 1;
        for (int32_t k = net->first[at]; k < net->first[at + 1]; k++) {
            if (net->member[k] == ~part) { sign = -1; }
        }
        return sign * (at < net->resistive ? (pot[net->from[at]] - pot[net->to[at]]) / net->r[at]
                                           : i[at - net->resistive]);
    }
    case CRDI_HOME_ROW:
        return pot[net->row[at].unknown];
    case CRDI_HOME_TIE:
        return tie_current[at];
    case CRDI_HOME_FLOW:
        return source[at];
    case CRDI_HOME_GAIN: {
        const crdi_gain* g = &net->gain[at];
        return g->value * (g->by_current ? pot[g->c] : pot[g->c] - pot[g->d]);
    }
    case CRDI_HOME_DEVICE:
        return state[at].i;
    default:
        return 0;
    }
}

void crdi_network_tie_currents(const crdi_network* net, const double* pot, const double* source,
                               const double* i, const crdi_device_state* state, double* tie_current)
{
    for (int32_t k = net->ties - 1; k >= 0; k--) { // what hangs on it comes after it
        double leaves = 0;
        for (int32_t p = net->touch_first[k]; p < net->touch_first[k + 1]; p++) {
            const int32_t m = net->touch[p], part = m < 0 ? ~m : m;
            const double x = crdi_network_current(net, pot, source, i, state, tie_current, part);
            leaves += m < 0 ? -x : x;
        }
        tie_current[k] = net->tie[k].sign > 0 ? -leaves : leaves; // sign: its nodes[0] is the tie
    }
}

// ---- sets --------------------------------------------------------------------------------------

static crd_status list_entries(crdi_nodal* d)
{
    const crdi_assembly* a = &d->all;
    size_t count[4] = {0};
    int32_t** const lists[4] = {&d->ll, &d->la, &d->al, &d->aa};
    for (int pass = 0; pass < 2; pass++) {
        memset(count, 0, sizeof count);
        for (size_t k = 0; k < a->entries; k++) {
            const int at = 2 * (a->row[k] >= d->linear) + (a->column[k] >= d->linear);
            if (pass == 1) { (*lists[at])[count[at]] = (int32_t)k; }
            count[at]++;
        }
        for (int i = 0; i < 4 && pass == 0; i++) {
            *lists[i] = crdi_arena_new(&d->arena, count[i], sizeof(int32_t));
        }
        if (d->arena.failed) { return CRD_E_MEMORY; }
    }
    d->ll_count = count[0];
    d->la_count = count[1];
    d->al_count = count[2];
    d->aa_count = count[3];
    d->ll_value = crdi_arena_new(&d->arena, d->ll_count, sizeof *d->ll_value);
    return crdi_arena_status(&d->arena);
}

// Numbers 0 .. count-1 with those that do not vary first; returns how many.
static int32_t constant_first(int32_t count, const uint8_t* varies, int32_t* order)
{
    int32_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t k = 0; k < count; k++) {
            if (varies[k] == pass) { order[at++] = k; }
        }
    }
    int32_t constant = 0;
    while (constant < count && !varies[order[constant]]) {
        constant++;
    }
    return constant;
}

crd_status crdi_nodal_split(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const int32_t ground = crdi_network_ground(net);
    const size_t driven = d->all.driven, flows = (size_t)net->flows, rows = (size_t)net->rows;
    const size_t sources = (size_t)net->sources, ties = (size_t)net->ties;
    uint8_t* source = crdi_new_array(d->c->ctx, sources + ties + driven + flows + rows, 1);
    d->drive_order = crdi_arena_new(&d->arena, driven, sizeof *d->drive_order);
    d->flow_order = crdi_arena_new(&d->arena, flows, sizeof *d->flow_order);
    d->row_order = crdi_arena_new(&d->arena, rows, sizeof *d->row_order);
    if (source && !d->arena.failed) {
        uint8_t *tie = source + sources, *list = tie + ties;
        for (int32_t k = 0; k < d->varying_count; k++) {
            source[d->varying[k]] = 1;
        }
        for (int32_t k = 0; k < net->ties; k++) {
            const int32_t parent = net->tie[k].parent - ground - 1;
            tie[k] = source[net->tie[k].source] || (parent >= 0 && tie[parent]);
        }
        for (size_t k = 0; k < driven; k++) {
            list[k] = tie[d->all.driven_tie[k] - ground - 1];
        }
        d->drive_constant = constant_first((int32_t)driven, list, d->drive_order);
        for (size_t k = 0; k < flows; k++) {
            list[k] = source[net->flow[k].source];
        }
        d->flow_constant = constant_first(net->flows, list, d->flow_order);
        for (size_t k = 0; k < rows; k++) { // 2: has no source
            list[k] = net->row[k].source < 0 ? 2 : source[net->row[k].source];
            d->row_count += list[k] < 2;
        }
        d->row_constant = constant_first(net->rows, list, d->row_order);
        if (d->row_constant > d->row_count) { d->row_constant = d->row_count; }
    }
    const bool room = source != NULL;
    crd_free(d->c->ctx, source);
    return room ? crdi_arena_status(&d->arena) : CRD_E_MEMORY;
}

void crdi_nodal_drive(const crdi_nodal* d, const crdi_nodal_set* s, bool constant, double* r)
{
    const crdi_network* net = &d->net;
    const crdi_assembly* a = &d->all;
    const int32_t drives = (int32_t)a->driven;
    for (int32_t i = constant ? 0 : d->drive_constant; i < (constant ? d->drive_constant : drives);
         i++) {
        const int32_t k = d->drive_order[i];
        r[a->driven_row[k]] -= s->driven_value[k] * d->off[a->driven_tie[k]];
    }
    for (int32_t i = constant ? 0 : d->flow_constant;
         i < (constant ? d->flow_constant : net->flows); i++) {
        const crdi_flow* f = &net->flow[d->flow_order[i]];
        r[f->from] -= d->source[f->source];
        r[f->to] += d->source[f->source];
    }
    for (int32_t i = constant ? 0 : d->row_constant;
         i < (constant ? d->row_constant : d->row_count); i++) {
        const crdi_row* row = &net->row[d->row_order[i]];
        r[row->unknown] += d->source[row->source];
    }
}

static bool is_small(const crdi_nodal* d)
{
    return d->linear <= CRDI_DENSE_MOST;
}

static crd_status make_linear(crdi_nodal* d, crdi_linear* l)
{
    crd_context* ctx = d->c->ctx;
    int32_t* place = crdi_new_array(ctx, 2 * d->ll_count, sizeof *place);
    if (!place) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < d->ll_count; k++) {
        place[k] = d->all.row[d->ll[k]];
        place[d->ll_count + k] = d->all.column[d->ll[k]];
    }
    const crd_status st =
        crdi_linear_init(l, &d->arena, d->linear, d->symmetric, !d->c->opt.no_chains, d->ll_count,
                         place, place + d->ll_count);
    crd_free(ctx, place);
    return st;
}

static crd_status init_set(crdi_nodal* d, crdi_nodal_set* s)
{
    crd_arena* a = &d->arena;
    const size_t states = (size_t)(d->net.branches - d->net.resistive);
    const bool small = is_small(d) && d->active > 0;
    const int rows = d->linear + d->active;
    const size_t condense = small ? (size_t)(crdi_dense_stride(rows) * d->linear) : 0;
    const size_t back = small ? (size_t)(crdi_dense_stride(d->linear) * d->active) : 0;
    const size_t direct = d->few ? (size_t)crdi_dense_stride(rows) : 0;
    s->direct = crdi_arena_new(a, direct * states, sizeof *s->direct);
    s->offset = crdi_arena_new(a, direct, sizeof *s->offset);
    s->g = crdi_arena_new(a, states, sizeof *s->g);
    s->sw = crdi_arena_new(a, states, sizeof *s->sw);
    s->lw = crdi_arena_new(a, states, sizeof *s->lw);
    s->driven_value = crdi_arena_new(a, d->all.driven, sizeof *s->driven_value);
    s->base = crdi_arena_new(a, d->base_count + 1, sizeof *s->base);
    s->condense = crdi_arena_new(a, condense, sizeof *s->condense);
    s->back = crdi_arena_new(a, back, sizeof *s->back);
    s->steady = crdi_arena_new(a, (size_t)d->net.unknowns + 1, sizeof *s->steady);
    s->la_value = crdi_arena_new(a, d->la_count, sizeof *s->la_value);
    s->al_value = crdi_arena_new(a, d->al_count, sizeof *s->al_value);
    return a->failed ? CRD_E_MEMORY : make_linear(d, &s->linear);
}

crd_status crdi_nodal_matrices(crdi_nodal* d)
{
    crd_status st = list_entries(d);
    for (int i = 0; i < d->sets && st == CRD_OK; i++) {
        st = init_set(d, &d->set[i]);
    }
    return st;
}

// base = A_aa - A_al A_ll^-1 A_la, column by column
static void complement(crdi_nodal* d, crdi_nodal_set* s)
{
    const crdi_assembly* a = &d->all;
    const int32_t n = d->linear, m = d->active;
    memset(s->base, 0, (d->base_count + 1) * sizeof *s->base);
    for (size_t k = 0; k < d->aa_count; k++) {
        const int32_t e = d->aa[k];
        s->base[(a->row[e] - n) * m + a->column[e] - n] += a->value[e];
    }
    for (int32_t j = 0; j < m && n > 0; j++) {
        double* x = d->z;
        memset(x, 0, (size_t)n * sizeof *x);
        bool any = false;
        for (size_t k = 0; k < d->la_count; k++) {
            const int32_t e = d->la[k];
            if (a->column[e] != n + j) { continue; }
            x[a->row[e]] += a->value[e];
            any = true;
        }
        if (any) { crdi_linear_solve(&s->linear, x); }
        for (size_t k = 0; k < d->al_count && any; k++) {
            const int32_t e = d->al[k];
            s->base[(a->row[e] - n) * m + j] -= a->value[e] * x[a->column[e]];
        }
        for (int32_t i = 0; i < n && is_small(d); i++) {
            s->back[j * crdi_dense_stride(n) + i] = x[i];
        }
    }
}

// The inverse, and A_al times it below
static void make_condense(crdi_nodal* d, crdi_nodal_set* s)
{
    const crdi_assembly* a = &d->all;
    const int32_t n = d->linear, stride = crdi_dense_stride(n + d->active);
    const int32_t own = crdi_dense_stride(n);
    memset(s->condense, 0, (size_t)(stride * n) * sizeof *s->condense);
    for (int32_t j = 0; j < n; j++) {
        double* column = s->condense + j * stride;
        memcpy(column, s->linear.inverse + j * own, (size_t)n * sizeof *column);
        for (size_t k = 0; k < d->al_count; k++) {
            const int32_t e = d->al[k];
            column[a->row[e]] += a->value[e] * column[a->column[e]];
        }
    }
}

// z and rc of this r
static void condense_to(const crdi_nodal* d, const crdi_nodal_set* s, const double* r, double* out)
{
    const int32_t n = d->linear, m = d->active;
    crdi_dense_apply(n + m, n, s->condense, r, out);
    for (int32_t i = n; i < n + m; i++) {
        out[i] = r[i] - out[i];
    }
}

static void make_direct(crdi_nodal* d, crdi_nodal_set* s)
{
    const int32_t states = d->net.states, stride = crdi_dense_stride(d->linear + d->active);
    condense_to(d, s, s->steady, s->offset);
    for (int32_t k = 0; k < states; k++) {
        memset(d->r, 0, ((size_t)d->net.unknowns + 1) * sizeof *d->r);
        d->r[d->row_from[k]] -= 1;
        d->r[d->row_to[k]] += 1;
        condense_to(d, s, d->r, s->direct + k * stride);
    }
}

static crd_status make_set(crdi_nodal* d, crdi_nodal_set* s, double w)
{
    const crdi_network* net = &d->net;
    crdi_assembly* a = &d->all;
    fill_assembly(a, net, w);
    for (int32_t b = net->resistive; b < net->branches; b++) {
        const int32_t k = b - net->resistive;
        s->sw[k] = net->s[b] / w;
        s->lw[k] = net->l[b] * w;
        s->g[k] = 1 / (net->r[b] + s->lw[k] + s->sw[k]);
    }
    memcpy(s->driven_value, a->driven_value, a->driven * sizeof *a->driven_value);
    memset(s->steady, 0, ((size_t)net->unknowns + 1) * sizeof *s->steady);
    crdi_nodal_drive(d, s, true, s->steady);
    s->w = 0;
    d->c->counts.factorisations++;
    if (d->whole) {
        memset(s->base, 0, (d->base_count + 1) * sizeof *s->base);
        for (size_t k = 0; k < a->entries; k++) {
            s->base[d->sparse.slot[k]] += a->value[k];
        }
    } else {
        for (size_t k = 0; k < d->ll_count; k++) {
            d->ll_value[k] = a->value[d->ll[k]];
        }
        const crd_status st = crdi_linear_factor(&s->linear, d->ll_value);
        if (st == CRD_E_CONVERGENCE) {
            return crdi_fail(d->c->ctx, st, "circuit: the equations are singular");
        }
        if (st < 0) { return st; }
        for (size_t k = 0; k < d->la_count; k++) {
            s->la_value[k] = a->value[d->la[k]];
        }
        for (size_t k = 0; k < d->al_count; k++) {
            s->al_value[k] = a->value[d->al[k]];
        }
        complement(d, s);
        if (is_small(d) && d->active > 0) { make_condense(d, s); }
        if (d->few) { make_direct(d, s); }
    }
    s->w = w;
    return CRD_OK;
}

crd_status crdi_nodal_choose(crdi_nodal* d, double w)
{
    d->clock++;
    crdi_nodal_set* oldest = &d->set[0];
    for (int i = 0; i < d->sets; i++) {
        crdi_nodal_set* s = &d->set[i];
        if (s->w == w) {
            s->used = d->clock;
            d->now = s;
            return CRD_OK;
        }
        if (s->used < oldest->used) { oldest = s; }
    }
    const crd_status st = make_set(d, oldest, w);
    if (st < 0) { return st; }
    oldest->used = d->clock;
    d->now = oldest;
    return CRD_OK;
}
