// Variables and equations of the reference form.
#include "circuit/dae.h"
#include "circuit/devices.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

// ---- layout ------------------------------------------------------------------------------------

static bool is_differential(const crd_part* p)
{
    return p->kind == CRD_PART_CAPACITOR || p->kind == CRD_PART_INDUCTOR;
}

// Columns: nodes of the netlist, nodes inside diodes, currents, charges. Returns n.
static int32_t number_columns(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    int32_t column = n->node_count;
    for (int32_t i = 0; i < n->part_count; i++) { // nodes inside
        crdi_dae_part* q = &d->part[i];
        *q = (crdi_dae_part){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        if (n->parts[i].kind != CRD_PART_DIODE) { continue; }
        const crd_diode_model* m = &n->diodes[n->parts[i].index];
        q->anode = m->rs > 0 || crdi_diode_has_charge(m) ? column++ : n->parts[i].nodes[0];
    }
    d->nodes = column;
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_dae_part* q = &d->part[i];
        if (n->parts[i].kind == CRD_PART_MUTUAL) { continue; }
        q->current = column++;
        if (n->parts[i].kind != CRD_PART_DIODE) { continue; }
        q->junction = q->anode == n->parts[i].nodes[0] ? q->current : column++;
        if (crdi_diode_has_charge(&n->diodes[n->parts[i].index])) {
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
        const crd_part* part = &n->parts[i];
        if (part->kind == CRD_PART_DIODE) { q->device = d->diodes++; }
        if (part->kind == CRD_PART_SWITCH || part->kind == CRD_PART_CURRENT_SWITCH) {
            q->device = d->switches++;
        }
        if (q->current < 0 || is_differential(part)) { continue; }
        q->row = row++;
        if (q->junction >= 0 && q->junction != q->current) { q->series_row = row++; }
        if (q->charge >= 0) { q->charge_row = row++; }
    }
    d->m = row;
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_dae_part* q = &d->part[i];
        if (is_differential(&n->parts[i])) { q->row = d->m + p++; }
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
        const int32_t columns[5] = {q->current, q->junction, q->charge, q->charging,
                                    q->anode >= n->node_count ? q->anode : -1};
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

static void put(crdi_entries* e, int32_t row, int32_t column, double value)
{
    if (e->row) {
        e->row[e->count] = row;
        e->column[e->count] = column;
    }
    if (e->value) { e->value[e->count] = value; }
    e->count++;
}

// d(use)/dx times `factor` into a row
static void put_use(crdi_dae* d, int32_t row, const crd_use* u, double factor)
{
    switch (u->kind) {
    case CRD_USE_NODE:
        put(&d->j, row, u->a, factor);
        break;
    case CRD_USE_PAIR:
        put(&d->j, row, u->a, factor);
        put(&d->j, row, u->b, -factor);
        break;
    case CRD_USE_CURRENT:
        put(&d->j, row, d->part[u->a].current, factor);
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

// left - factor * e(x, t) = 0: returns e and puts its derivatives. A law may have no value where
// the search for a beginning starts: no resistance is known at 0 K.
static double put_expression(crdi_dae* d, int32_t row, const crd_expression* e, const double* x,
                             double t, double factor, double instead)
{
    double value = crdi_dae_expression(d, e, x, t, d->gradient);
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

double crdi_dae_junction(const crdi_dae* d, const crdi_dae_part* q, int32_t part, const double* x)
{
    return x[q->anode] - x[d->c->n->parts[part].nodes[1]];
}

static void eval_diode(crdi_dae* d, int32_t i, const double* x, const double* limit, double* f)
{
    const crd_part* p = &d->c->n->parts[i];
    const crdi_dae_part* q = &d->part[i];
    const crd_diode_model* m = &d->c->n->diodes[p->index];
    const double v = crdi_dae_junction(d, q, i, x), at = limit ? limit[q->device] : v;
    const crdi_value_slope own = crdi_diode_current(m, at);
    crdi_value_slope g = own;
    g.value += d->leak * at;
    g.slope += d->leak;
    f[q->row] = x[q->junction] - (g.value + g.slope * (v - at));
    put(&d->j, q->row, q->junction, 1);
    put(&d->j, q->row, q->anode, -g.slope);
    put(&d->j, q->row, p->nodes[1], g.slope);
    if (q->series_row >= 0) {
        f[q->series_row] = x[p->nodes[0]] - x[q->anode] - m->rs * x[q->current];
        put(&d->j, q->series_row, p->nodes[0], 1);
        put(&d->j, q->series_row, q->anode, -1);
        put(&d->j, q->series_row, q->current, -m->rs);
    }
    if (q->charge >= 0) {
        const crdi_value_slope s = crdi_diode_charge(m, at, own);
        f[q->charge_row] = x[q->charge] - (s.value + s.slope * (v - at));
        put(&d->j, q->charge_row, q->charge, 1);
        put(&d->j, q->charge_row, q->anode, -s.slope);
        put(&d->j, q->charge_row, p->nodes[1], s.slope);
        f[q->charging_row] = -x[q->charging];
        put(&d->j, q->charging_row, q->charging, -1);
    }
}

// V_a - V_b - r I = 0
static void eval_resistance(crdi_dae* d, const crd_part* p, const crdi_dae_part* q, const double* x,
                            double r, double* f)
{
    f[q->row] = x[p->nodes[0]] - x[p->nodes[1]] - r * x[q->current];
    put(&d->j, q->row, p->nodes[0], 1);
    put(&d->j, q->row, p->nodes[1], -1);
    put(&d->j, q->row, q->current, -r);
}

// left = V_a - V_b or I
static double eval_left(crdi_dae* d, const crd_part* p, const crdi_dae_part* q, const double* x,
                        bool voltage)
{
    if (voltage) {
        put(&d->j, q->row, p->nodes[0], 1);
        put(&d->j, q->row, p->nodes[1], -1);
        return x[p->nodes[0]] - x[p->nodes[1]];
    }
    put(&d->j, q->row, q->current, 1);
    return x[q->current];
}

static double switch_resistance(const crdi_dae* d, const crd_part* p, const crdi_dae_part* q)
{
    const crd_switch_model* m = &d->c->n->switches[p->index];
    return d->closed[q->device] != 0 ? m->on : m->off;
}

static void eval_controlled(crdi_dae* d, const crd_part* p, const crdi_dae_part* q, const double* x,
                            double* f)
{
    const bool voltage = p->kind == CRD_PART_VCVS || p->kind == CRD_PART_CCVS;
    const double left = eval_left(d, p, q, x, voltage);
    if (p->kind == CRD_PART_VCVS || p->kind == CRD_PART_VCCS) {
        f[q->row] = left - p->value * (x[p->nodes[2]] - x[p->nodes[3]]);
        put(&d->j, q->row, p->nodes[2], -p->value);
        put(&d->j, q->row, p->nodes[3], p->value);
    } else {
        const int32_t k = d->part[p->refs[0]].current;
        f[q->row] = left - p->value * x[k];
        put(&d->j, q->row, k, -p->value);
    }
}

static void eval_part(crdi_dae* d, int32_t i, const double* x, double t, const double* limit,
                      double* f)
{
    const crd_netlist* n = d->c->n;
    const crd_part* p = &n->parts[i];
    const crdi_dae_part* q = &d->part[i];
    switch ((crd_part_kind)p->kind) {
    case CRD_PART_RESISTOR:
        if (p->index < 0) {
            eval_resistance(d, p, q, x, p->value, f);
        } else {
            const double r =
                put_expression(d, q->row, n->expressions[p->index], x, t, x[q->current], 1);
            eval_resistance(d, p, q, x, r, f);
        }
        break;
    case CRD_PART_CAPACITOR:
        f[q->row] = -x[q->current];
        put(&d->j, q->row, q->current, -1);
        break;
    case CRD_PART_INDUCTOR:
        f[q->row] = x[p->nodes[1]] - x[p->nodes[0]];
        put(&d->j, q->row, p->nodes[0], -1);
        put(&d->j, q->row, p->nodes[1], 1);
        break;
    case CRD_PART_MUTUAL:
        break;
    case CRD_PART_VOLTAGE:
    case CRD_PART_CURRENT:
        f[q->row] = eval_left(d, p, q, x, p->kind == CRD_PART_VOLTAGE) -
                    crd_waveform_eval(&n->waves[p->index], t, d->c->inputs);
        break;
    case CRD_PART_DIODE:
        eval_diode(d, i, x, limit, f);
        break;
    case CRD_PART_SWITCH:
    case CRD_PART_CURRENT_SWITCH:
        eval_resistance(d, p, q, x, switch_resistance(d, p, q), f);
        break;
    case CRD_PART_VCVS:
    case CRD_PART_CCCS:
    case CRD_PART_VCCS:
    case CRD_PART_CCVS:
        eval_controlled(d, p, q, x, f);
        break;
    case CRD_PART_B_VOLTAGE:
    case CRD_PART_B_CURRENT: {
        const double left = eval_left(d, p, q, x, p->kind == CRD_PART_B_VOLTAGE);
        f[q->row] = left - put_expression(d, q->row, n->expressions[p->index], x, t, 1, 0);
        break;
    }
    }
}

// A current from node a to node b; ground has no law.
static void flow(crdi_dae* d, int32_t a, int32_t b, int32_t column, const double* x, double* f)
{
    if (a > 0) {
        f[a] += x[column];
        put(&d->j, a, column, 1);
    }
    if (b > 0) {
        f[b] -= x[column];
        put(&d->j, b, column, -1);
    }
}

void crdi_dae_eval(crdi_dae* d, const double* x, double t, const double* limit, double* f)
{
    const crd_netlist* n = d->c->n;
    memset(f, 0, (size_t)d->n * sizeof *f);
    d->j.count = 0;
    f[0] = x[0];
    put(&d->j, 0, 0, 1);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_dae_part* q = &d->part[i];
        if (q->current < 0) { continue; }
        eval_part(d, i, x, t, limit, f);
        const bool inside = q->junction >= 0 && q->junction != q->current;
        flow(d, p->nodes[0], inside ? q->anode : p->nodes[1], q->current, x, f);
        if (inside) { flow(d, q->anode, p->nodes[1], q->junction, x, f); }
        if (q->charging >= 0) { flow(d, q->anode, p->nodes[1], q->charging, x, f); }
    }
}

// ---- A -----------------------------------------------------------------------------------------

static void walk_a(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    d->a.count = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_dae_part* q = &d->part[i];
        switch ((crd_part_kind)p->kind) {
        case CRD_PART_CAPACITOR:
            put(&d->a, q->row - d->m, p->nodes[0], p->value);
            put(&d->a, q->row - d->m, p->nodes[1], -p->value);
            break;
        case CRD_PART_INDUCTOR:
            put(&d->a, q->row - d->m, q->current, p->value);
            break;
        case CRD_PART_MUTUAL: {
            const crdi_dae_part *u = &d->part[p->refs[0]], *v = &d->part[p->refs[1]];
            const double mutual =
                p->value * sqrt(n->parts[p->refs[0]].value * n->parts[p->refs[1]].value);
            put(&d->a, u->row - d->m, v->current, mutual);
            put(&d->a, v->row - d->m, u->current, mutual);
            break;
        }
        default:
            break;
        }
        if (q->charge >= 0) { put(&d->a, q->charging_row - d->m, q->charge, 1); }
    }
}

void crdi_dae_multiply(const crdi_dae* d, const double* x, double* ax)
{
    memset(ax, 0, (size_t)d->p * sizeof *ax);
    for (size_t k = 0; k < d->a.count; k++) {
        ax[d->a.row[k]] += d->a.value[k] * x[d->a.column[k]];
    }
}

// ---- making it ---------------------------------------------------------------------------------

static crd_status make_entries(crdi_dae* d, crdi_entries* e)
{
    e->room = e->count;
    e->row = crdi_new_array(d->c->ctx, e->room, sizeof *e->row);
    e->column = crdi_new_array(d->c->ctx, e->room, sizeof *e->column);
    e->value = crdi_new_array(d->c->ctx, e->room, sizeof *e->value);
    return e->row && e->column && e->value ? CRD_OK : CRD_E_MEMORY;
}

static bool is_linear(const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (p->kind == CRD_PART_DIODE || p->kind >= CRD_PART_B_VOLTAGE ||
            (p->kind == CRD_PART_RESISTOR && p->index >= 0)) {
            return false;
        }
    }
    return true;
}

static crd_status make_state(crdi_dae* d)
{
    crd_context* ctx = d->c->ctx;
    const size_t n = (size_t)d->n, s = (size_t)d->stages;
    d->state_count = 4 * n + 2 + (size_t)d->diodes + (size_t)d->switches;
    d->state = crdi_new_array(ctx, d->state_count, sizeof *d->state);
    d->saved = crdi_new_array(ctx, d->state_count, sizeof *d->saved);
    d->next = crdi_new_array(ctx, s * n, sizeof *d->next);
    d->delta = crdi_new_array(ctx, (s > 2 ? s : 2) * n, sizeof *d->delta);
    d->residual = crdi_new_array(ctx, (s > 2 ? s : 2) * n, sizeof *d->residual);
    d->history = crdi_new_array(ctx, s * (size_t)d->p, sizeof *d->history);
    d->product = crdi_new_array(ctx, s * (size_t)d->p, sizeof *d->product);
    d->target = crdi_new_array(ctx, (size_t)d->p, sizeof *d->target);
    d->middle = crdi_new_array(ctx, n, sizeof *d->middle);
    d->limits = crdi_new_array(ctx, s * (size_t)d->diodes, sizeof *d->limits);
    if (!d->state || !d->saved || !d->next || !d->delta || !d->residual || !d->history ||
        !d->product || !d->target || !d->middle || !d->limits) {
        return CRD_E_MEMORY;
    }
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
    crd_context* ctx = d->c->ctx;
    const crd_netlist* n = d->c->n;
    crd_status st = CRD_E_MEMORY;
    if (n->node_count > INT32_MAX / 32 || n->part_count > INT32_MAX / 32) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: too large for this form");
    }
    d->part = crdi_new_array(ctx, (size_t)n->part_count, sizeof *d->part);
    if (!d->part) { return st; }
    d->n = number_columns(d);
    number_rows(d);
    d->linear = is_linear(n);
    d->row_part = crdi_new_array(ctx, (size_t)d->n, sizeof *d->row_part);
    d->column_part = crdi_new_array(ctx, (size_t)d->n, sizeof *d->column_part);
    d->column_kind = crdi_new_array(ctx, (size_t)d->n, sizeof *d->column_kind);
    d->gradient = crdi_new_array(ctx, most_uses(n), sizeof *d->gradient);
    d->values = crdi_new_array(ctx, most_uses(n), sizeof *d->values);
    if (!d->row_part || !d->column_part || !d->column_kind || !d->gradient || !d->values) {
        return st;
    }
    name_columns(d);
    st = make_state(d);
    if (st < 0) { return st; }
    crdi_dae_eval(d, d->x[0], 0, d->limit, d->residual); // counts
    st = make_entries(d, &d->j);
    if (st < 0) { return st; }
    crdi_dae_eval(d, d->x[0], 0, d->limit, d->residual); // places
    walk_a(d);
    st = make_entries(d, &d->a);
    if (st < 0) { return st; }
    walk_a(d);
    return CRD_OK;
}
