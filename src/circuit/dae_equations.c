// Variables and equations of the reference form.
#include "circuit/dae.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

// ---- layout ------------------------------------------------------------------------------------

static unsigned inside_of(const crd_netlist* n, const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->inside ? k->inside(n, p) : 0;
}

// Columns: nodes of the netlist, nodes inside parts, currents, charges. Returns n.
static int32_t number_columns(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    int32_t column = n->node_count;
    for (int32_t i = 0; i < n->part_count; i++) { // nodes inside
        crdi_dae_part* q = &d->part[i];
        *q = (crdi_dae_part){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        if (!crdi_part_kind_of(&n->parts[i])->inside) { continue; }
        const bool node = inside_of(n, &n->parts[i]) & CRDI_INSIDE_NODE;
        q->inner = node ? column++ : n->parts[i].nodes[0];
    }
    d->nodes = column;
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_dae_part* q = &d->part[i];
        if (crdi_part_kind_of(&n->parts[i])->couples) { continue; }
        q->current = column++;
        if (q->inner < 0) { continue; }
        q->inner_current = q->inner == n->parts[i].nodes[0] ? q->current : column++;
        if (inside_of(n, &n->parts[i]) & CRDI_INSIDE_CHARGE) {
            q->charge = column++;
            q->charging = column++;
        }
    }
    return column;
}

// Rows: ground, the other nodes, laws; then what has derivatives.
static void number_rows(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    int32_t row = d->nodes, p = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_dae_part* q = &d->part[i];
        const crdi_part_kind* k = crdi_part_kind_of(&n->parts[i]);
        if (k->limit) { q->device = d->diodes++; }
        if (k->switches) { q->device = d->switches++; }
        if (q->current < 0 || k->stores) { continue; }
        q->row = row++;
        if (q->inner_current >= 0 && q->inner_current != q->current) { q->series_row = row++; }
        if (q->charge >= 0) { q->charge_row = row++; }
    }
    d->m = row;
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_dae_part* q = &d->part[i];
        if (crdi_part_kind_of(&n->parts[i])->stores) { q->row = d->m + p++; }
        if (q->charge >= 0) { q->charging_row = d->m + p++; }
    }
    d->p = p;
}

static void name_columns(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    for (int32_t i = 0; i < n->node_count; i++) {
        d->row_part[i] = d->column_part[i] = -1 - i;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crdi_dae_part* q = &d->part[i];
        const int32_t columns[5] = {q->current, q->inner_current, q->charge, q->charging,
                                    q->inner >= n->node_count ? q->inner : -1};
        for (int k = 0; k < 5; k++) {
            if (columns[k] < 0) { continue; }
            d->column_part[columns[k]] = i;
            d->column_kind[columns[k]] = k == 4 ? 0 : k == 2 ? 2 : 1;
        }
        const int32_t rows[5] = {q->row, q->series_row, q->charge_row, q->charging_row, columns[4]};
        for (int k = 0; k < 5; k++) {
            if (rows[k] >= 0) { d->row_part[rows[k]] = i; }
        }
    }
}

// ---- parts -------------------------------------------------------------------------------------

// d(use)/dx times `factor` into a row
static void put_use(crdi_dae* d, int32_t row, const crd_use* u, double factor)
{
    switch (u->kind) {
    case CRD_USE_NODE:
        crdi_dae_put(&d->j, row, u->a, factor);
        break;
    case CRD_USE_PAIR:
        crdi_dae_put(&d->j, row, u->a, factor);
        crdi_dae_put(&d->j, row, u->b, -factor);
        break;
    case CRD_USE_CURRENT:
        crdi_dae_put(&d->j, row, d->part[u->a].current, factor);
        break;
    case CRD_USE_INPUT:
        break;
    }
}

double crdi_dae_expression(crdi_dae* d, const crd_expression* e, const double* x, double t,
                           double* gradient)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    for (int i = 0; i < count; i++) {
        const crd_use* u = &uses[i];
        d->values[i] = u->kind == CRD_USE_NODE      ? x[u->a]
                       : u->kind == CRD_USE_PAIR    ? x[u->a] - x[u->b]
                       : u->kind == CRD_USE_CURRENT ? x[d->part[u->a].current]
                                                    : d->c->inputs[u->a];
    }
    return crd_expression_eval(e, d->values, t, gradient);
}

// A law may have no value where the search for a beginning starts: no resistance is known at 0 K.
double crdi_dae_put_expression(crdi_dae* d, int32_t row, const crd_expression* e,
                               const crdi_dae_point* at, double factor, double instead)
{
    double value = crdi_dae_expression(d, e, at->x, at->t, d->gradient);
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    bool known = isfinite(value);
    for (int i = 0; i < count; i++) {
        known = known && isfinite(d->gradient[i]);
    }
    if (!known && d->leak > 0) {
        d->undefined = true;
        d->worst = d->part[d->row_part[row]].current;
        value = instead;
        memset(d->gradient, 0, (size_t)count * sizeof *d->gradient);
    }
    for (int i = 0; i < count; i++) {
        put_use(d, row, &uses[i], -factor * d->gradient[i]);
    }
    return value;
}

// Kirchhoff's current law: a current from node a to node b; ground has no law.
static void flow(crdi_dae* d, int32_t a, int32_t b, int32_t column, const crdi_dae_point* at)
{
    if (a > 0) {
        at->f[a] += at->x[column];
        crdi_dae_put(&d->j, a, column, 1);
    }
    if (b > 0) {
        at->f[b] -= at->x[column];
        crdi_dae_put(&d->j, b, column, -1);
    }
}

// Phi: v_ground = 0; sum of the currents that leave a node = 0 (A); laws of parts. b: laws of parts
// that have derivatives (Eqs. 3.6 and 3.7).
void crdi_dae_eval(crdi_dae* d, const double* x, double t, const double* limit, double* f)
{
    const crd_netlist* n = d->c->n;
    const crdi_dae_point at = {x, t, limit, f};
    crdi_circuit_move_inputs(d->c, t);
    memset(f, 0, (size_t)d->n * sizeof *f);
    d->j.count = 0;
    f[0] = x[0]; // ground
    crdi_dae_put(&d->j, 0, 0, 1);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_dae_part* q = &d->part[i];
        if (q->current < 0) { continue; }
        crdi_part_kind_of(p)->law(d, i, &at);
        const bool inside = q->inner_current >= 0 && q->inner_current != q->current;
        flow(d, p->nodes[0], inside ? q->inner : p->nodes[1], q->current, &at);
        if (inside) { flow(d, q->inner, p->nodes[1], q->inner_current, &at); }
        if (q->charging >= 0) { flow(d, q->inner, p->nodes[1], q->charging, &at); }
    }
}

// ---- A -----------------------------------------------------------------------------------------

static void walk_a(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    d->a.count = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crdi_part_kind* k = crdi_part_kind_of(&n->parts[i]);
        if (k->mass) { k->mass(d, i); }
    }
}

void crdi_dae_multiply(const crdi_dae* d, const double* x, double* ax)
{
    memset(ax, 0, (size_t)d->p * sizeof *ax);
    for (size_t k = 0; k < d->a.count; k++) {
        ax[d->a.row[k]] += d->a.value[k] * x[d->a.column[k]];
    }
}

// ---- what moves --------------------------------------------------------------------------------

// By a difference: expressions have no derivative with respect to time.
double crdi_dae_expression_slope(crdi_dae* d, const crd_expression* e, const double* x, double t)
{
    const double step = 1e-3 * d->c->opt.step;
    const double to = crdi_dae_expression(d, e, x, t + step, NULL);
    return (to - crdi_dae_expression(d, e, x, t - step, NULL)) / (2 * step);
}

// dPhi/dt at constant x, 1/s of what the rows are
void crdi_dae_rates(crdi_dae* d, const double* x, double t, double* phi_t)
{
    const crd_netlist* n = d->c->n;
    memset(phi_t, 0, (size_t)d->m * sizeof *phi_t);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crdi_part_kind* k = crdi_part_kind_of(&n->parts[i]);
        if (k->slope) { phi_t[d->part[i].row] = k->slope(d, i, x, t); }
    }
}

bool crdi_dae_limit(const crdi_dae* d, const double* x, double* limit, int32_t* worst)
{
    const crd_netlist* n = d->c->n;
    bool limited = false;
    for (int32_t i = 0; i < n->part_count && d->diodes > 0; i++) {
        const crdi_part_kind* k = crdi_part_kind_of(&n->parts[i]);
        if (k->limit && k->limit(d, i, x, limit)) {
            limited = true;
            *worst = d->part[i].inner_current;
        }
    }
    return limited;
}

// By how much currents are off (A), against the largest of them.
bool crdi_dae_at_rounding(const crdi_dae* d, const double* x, const double* limit)
{
    const crd_netlist* n = d->c->n;
    double largest = 1, off = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_part_kind* k = crdi_part_kind_of(p);
        if (!crdi_part_is_linear(p) && !k->switches && !k->off) { return false; }
        if (k->couples) { continue; }
        largest = fmax(largest, fabs(x[d->part[i].current]));
        if (k->off) { off = fmax(off, k->off(d, i, x, limit)); }
    }
    return off <= 1e-12 * largest;
}

// ---- making it ---------------------------------------------------------------------------------

static crd_status make_entries(crdi_dae* d, crdi_entries* e)
{
    e->row = crdi_arena_new(&d->arena, e->count, sizeof *e->row);
    e->column = crdi_arena_new(&d->arena, e->count, sizeof *e->column);
    e->value = crdi_arena_new(&d->arena, e->count, sizeof *e->value);
    return crdi_arena_status(&d->arena);
}

static bool dae_equations_is_linear(const crd_netlist* n) // where the switches stand
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!crdi_part_is_linear(p) && !crdi_part_kind_of(p)->switches) { return false; }
    }
    return true;
}

static crd_status make_state(crdi_dae* d)
{
    crd_arena* a = &d->arena;
    const size_t n = (size_t)d->n, p = (size_t)d->p, s = (size_t)d->stages;
    d->state_count = 4 * n + 2 + (size_t)d->diodes + (size_t)d->switches;
    d->state = crdi_arena_new(a, d->state_count, sizeof *d->state);
    d->saved = crdi_arena_new(a, d->state_count, sizeof *d->saved);
    d->next = crdi_arena_new(a, s * n, sizeof *d->next);
    d->delta = crdi_arena_new(a, (s > 2 ? s : 2) * n, sizeof *d->delta);
    d->residual = crdi_arena_new(a, (s > 2 ? s : 2) * n, sizeof *d->residual);
    d->history = crdi_arena_new(a, s * p, sizeof *d->history);
    d->product = crdi_arena_new(a, s * p, sizeof *d->product);
    d->target = crdi_arena_new(a, p, sizeof *d->target);
    d->middle = crdi_arena_new(a, n, sizeof *d->middle);
    d->limits = crdi_arena_new(a, s * (size_t)d->diodes, sizeof *d->limits);
    if (a->failed) { return CRD_E_MEMORY; }
    for (int i = 0; i < 3; i++) {
        d->x[i] = d->state + (size_t)i * n;
    }
    d->rate = d->state + 3 * n;
    d->age = d->state + 4 * n;
    d->limit = d->age + 2;
    d->closed = d->limit + d->diodes;
    return CRD_OK;
}

static size_t most_uses(const crd_netlist* n)
{
    int most = 0;
    for (int i = 0; i < n->expression_count; i++) {
        const crd_use* uses;
        const int count = crd_expression_uses(n->expressions[i], &uses);
        most = count > most ? count : most;
    }
    return (size_t)most;
}

crd_status crdi_dae_layout(crdi_dae* d)
{
    crd_status st = CRD_OK;
    crd_arena* a = &d->arena;
    const crd_netlist* n = d->c->n;
    if (n->node_count > INT32_MAX / 32 || n->part_count > INT32_MAX / 32) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "circuit: too large for this form");
    }
    d->part = crdi_arena_new(a, (size_t)n->part_count, sizeof *d->part);
    if (!d->part) { return CRD_E_MEMORY; }
    d->n = number_columns(d);
    number_rows(d);
    d->linear = dae_equations_is_linear(n);
    d->row_part = crdi_arena_new(a, (size_t)d->n, sizeof *d->row_part);
    d->column_part = crdi_arena_new(a, (size_t)d->n, sizeof *d->column_part);
    d->column_kind = crdi_arena_new(a, (size_t)d->n, sizeof *d->column_kind);
    d->gradient = crdi_arena_new(a, most_uses(n), sizeof *d->gradient);
    d->values = crdi_arena_new(a, most_uses(n), sizeof *d->values);
    CRD_TRY(make_state(d));
    name_columns(d);
    crdi_dae_eval(d, d->x[0], 0, d->limit, d->residual); // counts
    CRD_TRY(make_entries(d, &d->j));
    crdi_dae_eval(d, d->x[0], 0, d->limit, d->residual); // places
    walk_a(d);
    CRD_TRY(make_entries(d, &d->a));
    walk_a(d);
    d->j.placed = d->a.placed = true;
fail:
    return st;
}
