// Consistent values by least squares (Rodriguez 2021, Eqs. 3.19 to 3.25). Matrices may lack rank:
// capacitors in parallel, loops of inductors, capacitors across sources.
#include "circuit/dae.h"
#include "circuit/parts/switch.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

// ---- matrices ----------------------------------------------------------------------------------

typedef enum block { // of d->j and d->a, shifted to a place in a stack
    PHI,             // rows 0..m-1 of j
    RATES,           // rows m..n-1 of j, those of b
    STATES,          // a
    KEPT,            // a, without charges of junctions
    CHARGING,        // b, charges of junctions only
    FREE,            // b, without capacitors that .ic holds
    HELD,            // a, those
} block;

typedef struct placed {
    block what;
    int32_t row, column;
} placed;

static bool is_charge_row(const crdi_dae* d, int32_t row) // 0..p-1
{
    return d->part[d->row_part[d->m + row]].charging_row == d->m + row;
}

// .ic of an operating point: the capacitor between such nodes has that voltage while it is sought.
static bool is_held_row(const crdi_dae* d, int32_t row) // 0..p-1
{
    const crd_netlist* n = d->c->n;
    const crd_part* p = &n->parts[d->row_part[d->m + row]];
    if (crdi_part_kind_of(p)->stores != CRDI_STORES_VOLTAGE || !n->node_ic || d->whole) {
        return false;
    }
    const double a = p->nodes[0] == 0 ? 0 : n->node_ic[p->nodes[0]];
    const double b = p->nodes[1] == 0 ? 0 : n->node_ic[p->nodes[1]];
    return !isnan(a - b);
}

static bool belongs(const crdi_dae* d, block what, int32_t row)
{
    switch (what) {
    case PHI:
        return row < d->m;
    case RATES:
        return row >= d->m;
    case CHARGING:
        return row >= d->m && is_charge_row(d, row - d->m);
    case STATES:
        return true;
    case KEPT:
        return !is_charge_row(d, row);
    case FREE:
        return row >= d->m && !is_held_row(d, row - d->m);
    case HELD:
        return is_held_row(d, row);
    }
    return false;
}

static crd_status make_stack(crdi_dae* d, crdi_stack* s, int32_t rows, int32_t columns,
                             const placed* blocks, int count)
{
    int32_t *row = NULL, *column = NULL;
    for (int pass = 0; pass < 2; pass++) { // counts, then fills
        s->count = 0;
        for (int b = 0; b < count; b++) {
            const bool states =
                blocks[b].what == STATES || blocks[b].what == KEPT || blocks[b].what == HELD;
            const crdi_entries* e = states ? &d->a : &d->j;
            const int32_t base = !states && blocks[b].what != PHI ? d->m : 0;
            for (size_t k = 0; k < e->count; k++) {
                if (!belongs(d, blocks[b].what, e->row[k])) { continue; }
                if (pass == 1) {
                    row[s->count] = blocks[b].row + e->row[k] - base;
                    column[s->count] = blocks[b].column + e->column[k];
                    s->source[s->count] = states ? -1 - (int32_t)k : (int32_t)k;
                }
                s->count++;
            }
        }
        if (pass == 1) { break; }
        row = crdi_arena_new(&d->arena, s->count, sizeof *row);
        column = crdi_arena_new(&d->arena, s->count, sizeof *column);
        s->source = crdi_arena_new(&d->arena, s->count, sizeof *s->source);
        s->value = crdi_arena_new(&d->arena, s->count, sizeof *s->value);
        if (d->arena.failed) { return CRD_E_MEMORY; }
    }
    return crdi_least_init(&s->least, &d->arena, rows, columns, s->count, row, column);
}

crd_status crdi_dae_stacks(crdi_dae* d)
{
    const int32_t n = d->n, m = d->m;
    crd_status st = CRD_OK;
    d->whole = crdi_netlist_is_given(d->c->n);
    CRD_TRY(make_stack(d, &d->rest, n, n, (placed[]){{PHI, 0, 0}, {FREE, m, 0}, {HELD, m, 0}}, 3));
    CRD_TRY(
        make_stack(d, &d->given, n, n, (placed[]){{PHI, 0, 0}, {KEPT, m, 0}, {CHARGING, m, 0}}, 3));
    CRD_TRY(make_stack(d, &d->algebraic, m, n, (placed[]){{PHI, 0, 0}}, 1));
    CRD_TRY(make_stack(
        d, &d->joint, 2 * n, 2 * n,
        (placed[]){{PHI, 0, 0}, {STATES, m, 0}, {PHI, n, n}, {STATES, n + m, n}, {RATES, n + m, 0}},
        5));
    CRD_TRY(make_stack(d, &d->tangent, n, n, (placed[]){{PHI, 0, 0}, {STATES, m, 0}}, 2));
fail:
    return st;
}

void crdi_dae_stacks_clear(crdi_dae* d)
{
    crdi_least_clear(&d->rest.least);
    crdi_least_clear(&d->given.least);
    crdi_least_clear(&d->algebraic.least);
    crdi_least_clear(&d->joint.least);
    crdi_least_clear(&d->tangent.least);
}

static void dae_begin_gather(crdi_dae* d, crdi_stack* s)
{
    for (size_t k = 0; k < s->count; k++) {
        const int32_t from = s->source[k];
        s->value[k] = from >= 0 ? d->j.value[from] : d->a.value[-1 - from];
    }
}

static crd_status dae_begin_fill(crdi_dae* d, crdi_stack* s, double t, double penalty)
{
    dae_begin_gather(d, s);
    const crd_status st = crdi_least_factor(&s->least, s->value, penalty);
    return st == CRD_E_CONVERGENCE ? crdi_dae_stuck(d, t, "the equations are singular") : st;
}

// ---- Gauss-Newton ------------------------------------------------------------------------------

#define MOST 200 // iterations of a beginning

// What the rows of a stack want, at x: minus the residual.
static void want(crdi_dae* d, const crdi_stack* s, const double* x, double t)
{
    const int32_t n = d->n, m = d->m;
    double* r = d->residual;
    crdi_dae_eval(d, x, t, d->limit, r);
    if (s == &d->joint) {
        memcpy(r + n + m, r + m, (size_t)d->p * sizeof *r);
        crdi_dae_rates(d, x, t, r + n);
    }
    if (s != &d->algebraic) {
        crdi_dae_multiply(d, x, d->product);
        for (int32_t i = 0; i < d->p; i++) {
            if (s == &d->given && is_charge_row(d, i)) { continue; }
            if (s == &d->rest && !is_held_row(d, i)) { continue; }
            r[m + i] = d->product[i] - d->target[i];
        }
    }
    for (int32_t i = 0; i < s->least.rows; i++) {
        r[i] = -r[i];
    }
}

static crd_status dae_begin_iterate(crdi_dae* d, crdi_stack* s, double* x, double t)
{
    double before = (double)INFINITY;
    for (int k = 0; k < MOST; k++) {
        d->undefined = false;
        want(d, s, x, t);
        if (!crdi_dae_finite(d, d->residual, s->least.rows) || (d->undefined && k == MOST - 1)) {
            return crdi_dae_undefined(d, x, t);
        }
        const crd_status st = dae_begin_fill(d, s, t, 0);
        if (st < 0) { return st; }
        crdi_least_solve(&s->least, d->residual, d->delta);
        for (int32_t i = 0; i < d->n; i++) {
            x[i] += d->delta[i];
        }
        if (s == &d->joint) { memcpy(d->rate, d->delta + d->n, (size_t)d->n * sizeof *d->rate); }
        const bool limited = crdi_dae_limit(d, x, d->limit, &d->worst);
        const bool defined = !d->undefined && !limited;
        if (d->linear && k == 2) { return CRD_OK; } // what is left is rounding
        const double change = crdi_dae_change(d, x, d->delta, d->n);
        const bool noise = !s->least.regular && change < 1e-5 && change > 0.1 * before;
        if (defined && (change <= d->c->opt.tolerance || noise)) { return CRD_OK; }
        before = change;
    }
    return crdi_dae_stuck(d, t, "no consistent beginning was found");
}

crd_status crdi_dae_pull(crdi_dae* d, double* x, double t)
{
    for (int k = 0; k < MOST; k++) {
        want(d, &d->tangent, x, t);
        if (!(d->linear && d->projected)) {
            const crd_status st = dae_begin_fill(d, &d->tangent, t, 0);
            if (st < 0) { return st; }
            d->projected = true;
        }
        crdi_least_solve(&d->tangent.least, d->residual, d->delta);
        for (int32_t i = 0; i < d->n; i++) {
            x[i] += d->delta[i];
        }
        const bool limited = crdi_dae_limit(d, x, d->limit, &d->worst);
        const bool settled = crdi_dae_change(d, x, d->delta, d->n) <= d->c->opt.tolerance;
        if (d->linear || (!limited && settled)) { return CRD_OK; }
    }
    return crdi_dae_stuck(d, t, "the end of the step was not found");
}

crd_status crdi_dae_project(crdi_dae* d, const double* x, double t)
{
    const double alpha = d->c->opt.projection;
    double* r = d->residual;
    crdi_dae_eval(d, x, t, NULL, r); // r: Phi, b
    if (!(d->linear && d->projected)) {
        const crd_status st = dae_begin_fill(d, &d->tangent, t, isfinite(alpha) ? alpha : 0);
        if (st < 0) { return st; }
        d->projected = true;
    }
    crdi_dae_rates(d, x, t, r); // Phi_t, b
    for (size_t k = 0; k < d->j.count; k++) {
        if (d->j.row[k] < d->m) { r[d->j.row[k]] += d->j.value[k] * d->rate[d->j.column[k]]; }
    }
    crdi_dae_multiply(d, d->rate, d->product);
    for (int32_t i = 0; i < d->p; i++) {
        r[d->m + i] += d->product[i];
    }
    for (int32_t i = 0; i < d->n; i++) {
        r[i] = -r[i];
    }
    crdi_least_solve(&d->tangent.least, r, d->delta);
    for (int32_t i = 0; i < d->n; i++) {
        d->rate[i] += d->delta[i];
    }
    return CRD_OK;
}

// Where it does not succeed at once: conductances across junctions that fade.
static crd_status approach(crdi_dae* d, crdi_stack* s, double* x, double t)
{
    const double last = d->leak;
    crd_status st = dae_begin_iterate(d, s, x, t);
    if (st != CRD_E_CONVERGENCE || d->diodes == 0) { return st; }
    memset(x, 0, (size_t)d->n * sizeof *x);
    memset(d->limit, 0, (size_t)d->diodes * sizeof *d->limit);
    st = CRD_OK;
    for (double leak = 1e-2; leak > 2 * last && st == CRD_OK; leak /= 10) {
        d->leak = leak;
        st = dae_begin_iterate(d, s, x, t);
    }
    d->leak = last;
    return st < 0 ? st : dae_begin_iterate(d, s, x, t);
}

// ---- the beginning -----------------------------------------------------------------------------

// A x of the given voltages and currents
static void take_given(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    memset(d->target, 0, (size_t)d->p * sizeof *d->target);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (crdi_part_kind_of(p)->stores == CRDI_STORES_VOLTAGE) {
            d->target[d->part[i].row - d->m] = p->value * crdi_netlist_capacitor_ic(n, p);
        }
    }
    for (size_t k = 0; k < d->a.count; k++) {
        const int32_t part = d->column_part[d->a.column[k]];
        const crd_part* p = part >= 0 ? &n->parts[part] : NULL;
        if (p && p->has_ic && crdi_part_kind_of(p)->stores == CRDI_STORES_CURRENT) {
            d->target[d->a.row[k]] += d->a.value[k] * p->ic;
        }
    }
}

// x' from Eq. (3.25), if it has one solution: then x has one as well, and `*unique` is set.
static crd_status find_rates(crdi_dae* d, const double* x, double t, bool* unique)
{
    double* r = d->residual;
    crdi_dae_eval(d, x, t, NULL, r);
    const crd_status st = dae_begin_fill(d, &d->tangent, t, 0);
    if (st < 0) { return st; }
    crdi_dae_rates(d, x, t, r);
    for (int32_t i = 0; i < d->n; i++) {
        r[i] = -r[i];
    }
    crdi_least_solve(&d->tangent.least, r, d->rate);
    *unique = d->tangent.least.regular;
    return CRD_OK;
}

static crd_status find_beginning(crdi_dae* d, double* x, double t, bool given)
{
    crd_status st = CRD_OK;
    bool unique = false;
    d->leak = 1e-12; // a node behind diodes that block is somewhere
    take_given(d);
    if (!given) {
        CRD_TRY(approach(d, &d->rest, x, t));
        crdi_dae_multiply(d, x, d->target);
    }
    CRD_TRY(approach(d, &d->given, x, t));
    crdi_dae_multiply(d, x, d->product);
    for (int32_t i = 0; i < d->p; i++) {
        if (is_charge_row(d, i)) { d->target[i] = d->product[i]; }
    }
    CRD_TRY(find_rates(d, x, t, &unique));
    if (!unique) {
        memcpy(d->middle, x, (size_t)d->n * sizeof *x);
        st = dae_begin_iterate(d, &d->joint, x, t);
        // Values that contradict the circuit were a compromise until now; Phi is none.
        if (st == CRD_OK) { st = dae_begin_iterate(d, &d->algebraic, x, t); }
        if (st == CRD_E_CONVERGENCE && d->stages == 1) { // far apart: a moment later it is clear
            memcpy(x, d->middle, (size_t)d->n * sizeof *x);
            st = crdi_dae_settle(d, t);
        }
    }
fail:
    d->leak = 0;
    return st;
}

crd_status crdi_dae_begin(crd_circuit* c, double t)
{
    crdi_dae* d = c->self;
    const bool given = d->whole;
    memset(d->state, 0, d->state_count * sizeof *d->state);
    d->factored = d->projected = false;
    crdi_dae_switches_begin(d);
    for (int pass = 0; pass < 100; pass++) { // one stage of a chain of switches in each
        memset(d->x[0], 0, (size_t)d->n * sizeof(double));
        memset(d->limit, 0, (size_t)d->diodes * sizeof(double));
        const crd_status st = find_beginning(d, d->x[0], t, given);
        if (st < 0) { return st; }
        if (!crdi_dae_switch(d, d->x[0])) { break; }
    }
    crdi_dae_flatten(d);
    return CRD_OK;
}

// ---- looking in --------------------------------------------------------------------------------

double crdi_dae_node_rate(const crd_circuit* c, int32_t node)
{
    const crdi_dae* d = c->self;
    return d->rate[node];
}

double crdi_dae_drift(crd_circuit* c)
{
    crdi_dae* d = c->self;
    const double t = crdi_circuit_time(c, 0);
    crdi_dae_eval(d, d->x[0], t, NULL, d->residual);
    crdi_dae_rates(d, d->x[0], t, d->residual);
    double sum = 0;
    for (size_t k = 0; k < d->j.count; k++) {
        if (d->j.row[k] < d->m) {
            d->residual[d->j.row[k]] += d->j.value[k] * d->rate[d->j.column[k]];
        }
    }
    for (int32_t i = 0; i < d->m; i++) {
        sum += d->residual[i] * d->residual[i];
    }
    return sqrt(sum);
}

static bool is_carried(const crd_circuit* c)
{
    return c->form == &crdi_form_dae && c->opt.method == CRD_METHOD_TR_CARRIED;
}

double crd_circuit_carried(const crd_circuit* c, int32_t node)
{
    return is_carried(c) ? crdi_dae_node_rate(c, node) : (double)NAN;
}

double crd_circuit_drift(crd_circuit* c)
{
    return is_carried(c) ? crdi_dae_drift(c) : (double)NAN;
}
