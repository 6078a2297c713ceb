// A linear network in its minimal variables (Rodriguez 2021, 4.11 .. 4.26).
//
// Capacitors are voltage sources z, inductors current sources z; modified nodal analysis of what is
// left gives M y = N [z v w], y node voltages and some currents. A capacitor that closes a loop of
// voltage sources and capacitors (an inductor that completes a cutset of current sources and
// inductors) is no state: its current (voltage) w is an input for the moment, and
//     s_d = T_d z + B_d v,     w = (E_dz + E_dd T_d) z' + E_dd B_d v'
// where E s' = w for all storages, E = diag(C) and the matrix of inductances.
#include "cardan/twin.h"
#include "shared/base.h"
#include "shared/circuit_part.h"
#include "twin/dense.h"
#include "twin/twin.h"

#include <math.h>
#include <string.h>

enum { NONE = -1 };

typedef struct storage { // a capacitor or an inductor
    int32_t part;
    bool dependent;
    int at; // column of z, or of w
} storage;

// A matrix and its derivative with respect to the logarithm of a parameter.
typedef struct dual {
    double *a, *da;
} dual;

// Everything that depends on the values of parts. Columns of x: z, v, w.
typedef struct matrices {
    dual x;                  // (n x k), k = p + r + d
    dual e;                  // (s x s) storages
    dual ezz, ezd, edz, edd; // its blocks
    dual td, bd;             // s_d = td z + bd v
    dual tw, bw, xw;         // w_z = tw z + bw v + xw w
    dual xz, xv, xd;         // x by columns
    dual q, h, mass;         // q = edz + edd td, h = edd bd, mass z' = ...
    dual fc, g1, g2, wz, wv, wd, t, b, b2;
} matrices;

struct crd_reduction {
    crd_context* ctx;
    const crd_netlist* n;
    crd_arena arena;
    int nodes, m, p, r, d, s, k, variables;
    double *value, *trial; // (parts) in force, and while new ones are tried
    int32_t* current;      // (parts) row of y that is its current, NONE
    int32_t* source;       // (parts) index of v, NONE
    int32_t* store;        // (parts) index of its storage, NONE
    storage* stores;
    int32_t *state_part, *input_part;
    matrices now, next;
    double *lu, *lu_next, *y, *y_next, *dy; // (m x m), (m x k)
    double *mass_lu, *mass_lu_next;         // (p x p)
    int32_t *pivots, *pivots_next, *mass_pivots, *mass_pivots_next;
    crd_reduced view;
};

// ---- structure ---------------------------------------------------------------------------------

static bool reduce_join(int32_t* parent, const crd_part* p)
{
    return crdi_tree_join(parent, p->nodes[0], p->nodes[1]);
}

static const char* reduce_name_of(const crd_netlist* n, int32_t part)
{
    return n->names + n->parts[part].name;
}

static crd_status check_part(const crd_reduction* r, int32_t i)
{
    const crd_part* p = &r->n->parts[i];
    if (crdi_part_kind_of(p)->linear) { return CRD_OK; }
    return crdi_fail(
        r->ctx, CRD_E_UNSUPPORTED,
        "%s:%d: %s is %s; a twin needs a linear network of R, L, C, K, V, I, E, F, G, H",
        r->n->files[p->file], p->line, crdi_clip(reduce_name_of(r->n, i)).text,
        crdi_part_kind_of(p)->article);
}

static bool is_voltage_like(const crd_part* p) // V, E, H
{
    return crdi_part_kind_of(p)->fixes == CRDI_FIXES_VOLTAGE;
}

static bool is_storage(const crd_part* p)
{
    return crdi_part_kind_of(p)->stores != CRDI_STORES_NOTHING;
}

static bool is_capacitor(const crd_part* p)
{
    return crdi_part_kind_of(p)->stores == CRDI_STORES_VOLTAGE;
}

static bool is_resistor(const crd_part* p) // i = v / value
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->fixes == CRDI_FIXES_NOTHING && !k->stores && !k->couples;
}

static bool is_current_gain(const crd_part* p) // F: i = value i_c
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->fixes == CRDI_FIXES_CURRENT && k->control == CRDI_CONTROL_CURRENT;
}

static bool is_by_voltage(const crd_part* p) // E, G
{
    return crdi_part_kind_of(p)->control == CRDI_CONTROL_VOLTAGE;
}

static bool is_by_current(const crd_part* p) // F, H
{
    return crdi_part_kind_of(p)->control == CRDI_CONTROL_CURRENT;
}

static bool couples(const crd_part* p) // K
{
    return crdi_part_kind_of(p)->couples;
}

// A normal tree: voltage sources, then capacitors, resistors, inductors. Capacitors outside and
// inductors inside it are no states.
static void choose_states(crd_reduction* r, int32_t* parent)
{
    const crd_netlist* n = r->n;
    for (int32_t i = 0; i < n->node_count; i++) {
        parent[i] = i;
    }
    for (int pass = 0; pass < 4; pass++) {
        for (int32_t i = 0; i < n->part_count; i++) {
            const crd_part* p = &n->parts[i];
            if (pass == 0 && is_voltage_like(p)) { reduce_join(parent, p); }
            if (pass == 1 && is_capacitor(p)) {
                r->stores[r->store[i]].dependent = !reduce_join(parent, p);
            }
            if (pass == 2 && is_resistor(p)) { reduce_join(parent, p); }
            if (pass == 3 && is_storage(p) && !is_capacitor(p)) {
                r->stores[r->store[i]].dependent = reduce_join(parent, p);
            }
        }
    }
}

static void number_unknowns(crd_reduction* r)
{
    const crd_netlist* n = r->n;
    for (int i = 0; i < r->s; i++) {
        storage* s = &r->stores[i];
        s->at = s->dependent ? r->d++ : r->p;
        if (!s->dependent) { r->state_part[r->p++] = s->part; }
    }
    r->m = r->nodes - 1;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const bool source_like =
            is_storage(p) && r->stores[r->store[i]].dependent == !is_capacitor(p);
        if (is_voltage_like(p) || source_like) { r->current[i] = r->m++; }
    }
    r->k = r->p + r->r + r->d;
}

static crd_status count_parts(crd_reduction* r)
{
    const crd_netlist* n = r->n;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_status st = check_part(r, i);
        if (st < 0) { return st; }
        const crd_part* p = &n->parts[i];
        r->current[i] = r->source[i] = r->store[i] = NONE;
        r->value[i] = p->value;
        if (is_storage(p)) {
            r->stores[r->s] = (storage){.part = i};
            r->store[i] = r->s++;
        }
        if (crdi_part_is_source(p)) {
            r->input_part[r->r] = i;
            r->source[i] = r->r++;
        }
    }
    return CRD_OK;
}

// The value of a law where everything that it uses is at the start of the thermal part, or 0.
static void start_laws(crd_reduction* r, double* room)
{
    const crd_netlist* n = r->n;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const crd_expression* e = crdi_part_law(n, p);
        if (!e) { continue; }
        const crd_use* uses;
        const int count = crd_expression_uses(e, &uses);
        for (int u = 0; u < count; u++) {
            room[u] = 0;
            if (uses[u].kind == CRD_USE_INPUT) { room[u] = n->inputs[uses[u].a].start; }
            if (uses[u].kind == CRD_USE_NODE) {
                const double ic = n->node_ic ? n->node_ic[uses[u].a] : (double)NAN;
                room[u] = isfinite(ic) ? ic : p->thermal ? n->temperature : 0;
            }
        }
        r->value[i] = crd_expression_eval(e, room, 0, NULL);
    }
}

// ---- values ------------------------------------------------------------------------------------

// Adds f * (voltage of a node) to a row of M.
static void put_voltage(const crd_reduction* r, double* m, int row, int32_t node, double f)
{
    if (row >= 0 && node > 0) { m[(ptrdiff_t)row * r->m + node - 1] += f; }
}

static void put_input(const crd_reduction* r, double* rhs, int row, int column, double f)
{
    if (row >= 0) { rhs[(ptrdiff_t)row * r->k + column] += f; }
}

// Adds f * (current of a part, from its first node to its second) to a row. With `slope` (per part:
// derivative of the logarithm of its value) the derivative of that, which only resistors have.
static void put_current(const crd_reduction* r, const double* value, const double* slope, double* m,
                        double* rhs, int row, int32_t part, double f)
{
    const crd_part* p = &r->n->parts[part];
    if (row < 0) { return; }
    if (is_current_gain(p)) {
        put_current(r, value, slope, m, rhs, row, p->refs[0], f * value[part]);
        return;
    }
    if (slope) {
        if (!is_resistor(p)) { return; }
        f *= -slope[part];
    }
    if (r->current[part] >= 0) {
        m[(ptrdiff_t)row * r->m + r->current[part]] += f;
        return;
    }
    if (is_resistor(p)) { // i = v / R
        put_voltage(r, m, row, p->nodes[0], f / value[part]);
        put_voltage(r, m, row, p->nodes[1], -f / value[part]);
    } else if (is_by_voltage(p)) { // i = value v_c
        put_voltage(r, m, row, p->nodes[2], f * value[part]);
        put_voltage(r, m, row, p->nodes[3], -f * value[part]);
    } else if (crdi_part_is_source(p)) { // i = j
        put_input(r, rhs, row, r->p + r->source[part], -f);
    } else if (is_storage(p)) { // w of a dependent capacitor, z of an inductor
        const int at = r->stores[r->store[part]].at;
        put_input(r, rhs, row, is_capacitor(p) ? r->p + r->r + at : at, -f);
    }
}

// v(a) - v(b) - ... = input, for parts whose current is an unknown
static void put_branch(const crd_reduction* r, const double* value, double* m, double* rhs,
                       int32_t part)
{
    const crd_part* p = &r->n->parts[part];
    const int row = r->current[part];
    put_voltage(r, m, row, p->nodes[0], 1);
    put_voltage(r, m, row, p->nodes[1], -1);
    if (crdi_part_is_source(p)) { // v = e
        put_input(r, rhs, row, r->p + r->source[part], 1);
    } else if (is_by_voltage(p)) { // v = value v_c
        put_voltage(r, m, row, p->nodes[2], -value[part]);
        put_voltage(r, m, row, p->nodes[3], value[part]);
    } else if (is_by_current(p)) { // v = value i_c
        put_current(r, value, NULL, m, rhs, row, p->refs[0], -value[part]);
    } else { // z of a capacitor, w of a dependent inductor
        const int at = r->stores[r->store[part]].at;
        put_input(r, rhs, row, is_capacitor(p) ? at : r->p + r->r + at, 1);
    }
}

static void reduce_build(const crd_reduction* r, const double* value, double* m, double* rhs)
{
    const crd_netlist* n = r->n;
    memset(m, 0, (size_t)r->m * (size_t)r->m * sizeof *m);
    memset(rhs, 0, (size_t)r->m * (size_t)r->k * sizeof *rhs);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (couples(p)) { continue; }
        put_current(r, value, NULL, m, rhs, p->nodes[0] - 1, i, 1);
        put_current(r, value, NULL, m, rhs, p->nodes[1] - 1, i, -1);
        if (r->current[i] >= 0) { put_branch(r, value, m, rhs, i); }
    }
}

// The derivative of M.
static void build_slope(const crd_reduction* r, const double* slope, double* m)
{
    const crd_netlist* n = r->n;
    memset(m, 0, (size_t)r->m * (size_t)r->m * sizeof *m);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (couples(p)) { continue; }
        put_current(r, r->value, slope, m, NULL, p->nodes[0] - 1, i, 1);
        put_current(r, r->value, slope, m, NULL, p->nodes[1] - 1, i, -1);
        if (is_by_current(p) && is_voltage_like(p)) {
            put_current(r, r->value, slope, m, NULL, r->current[i], p->refs[0], -r->value[i]);
        }
    }
}

static void storages(const crd_reduction* r, const double* value, const double* slope, double* e)
{
    const crd_netlist* n = r->n;
    memset(e, 0, (size_t)r->s * (size_t)r->s * sizeof *e);
    for (int i = 0; i < r->s; i++) {
        const int32_t part = r->stores[i].part;
        e[(ptrdiff_t)i * r->s + i] = value[part] * (slope ? slope[part] : 1);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!couples(p)) { continue; }
        const int a = r->store[p->refs[0]], b = r->store[p->refs[1]];
        double mutual = value[i] * sqrt(value[p->refs[0]] * value[p->refs[1]]); // k sqrt(L1 L2)
        if (slope) { mutual *= (slope[p->refs[0]] + slope[p->refs[1]]) / 2; }
        e[(ptrdiff_t)a * r->s + b] = e[(ptrdiff_t)b * r->s + a] = mutual;
    }
}

// Row of x that is s of a storage (voltage of a capacitor, current of an inductor) or its w (the
// other one), as a difference of at most two rows of x.
typedef struct pick {
    int plus, minus; // NONE: nothing
} pick;

static pick pick_of(const crd_reduction* r, int store, bool want_w)
{
    const int32_t part = r->stores[store].part;
    const crd_part* p = &r->n->parts[part];
    if (is_capacitor(p) == want_w) { return (pick){r->nodes + part, NONE}; }
    return (pick){p->nodes[0], p->nodes[1]};
}

static double picked(const double* x, int k, pick q, int column)
{
    return x[(ptrdiff_t)q.plus * k + column] -
           (q.minus >= 0 ? x[(ptrdiff_t)q.minus * k + column] : 0);
}

// ---- matrices ----------------------------------------------------------------------------------

// One current as a row of x, from what is there already. F comes last: it takes another one.
static void fill_current(const crd_reduction* r, const double* value, int32_t part, const double* y,
                         double* x)
{
    const crd_part* p = &r->n->parts[part];
    const int k = r->k;
    double* row = x + (ptrdiff_t)(r->nodes + part) * k;
    const pick across = {p->nodes[0], p->nodes[1]}, control = {p->nodes[2], p->nodes[3]};
    for (int c = 0; c < k; c++) {
        if (r->current[part] >= 0) {
            row[c] = y[(ptrdiff_t)r->current[part] * k + c];
        } else if (is_resistor(p)) {
            row[c] = picked(x, k, across, c) / value[part];
        } else if (is_by_voltage(p)) {
            row[c] = picked(x, k, control, c) * value[part];
        } else if (is_current_gain(p)) {
            row[c] = value[part] * x[(ptrdiff_t)(r->nodes + p->refs[0]) * k + c];
        }
    }
}

// x from y: node voltages as they are, currents by the law of their part. With `slope` the
// derivative of x, y being that of y and `base` x itself.
static void fill_x(const crd_reduction* r, const double* value, const double* y,
                   const double* slope, const double* base, double* x)
{
    const crd_netlist* n = r->n;
    const int k = r->k;
    memset(x, 0, (size_t)r->variables * (size_t)k * sizeof *x);
    memcpy(x + k, y, (size_t)(r->nodes - 1) * (size_t)k * sizeof *x);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < n->part_count; i++) {
            const crd_part* p = &n->parts[i];
            double* row = x + (ptrdiff_t)(r->nodes + i) * k;
            if (is_current_gain(p) != (pass == 1)) { continue; }
            fill_current(r, value, i, y, x);
            if (slope) {
                for (int c = 0; c < k && is_resistor(p); c++) {
                    row[c] -= slope[i] * base[(ptrdiff_t)(r->nodes + i) * k + c];
                }
            } else if (crdi_part_is_source(p) && !is_voltage_like(p)) {
                row[r->p + r->source[i]] = 1;
            } else if (is_storage(p) && r->current[i] < 0) {
                const storage* s = &r->stores[r->store[i]];
                row[s->dependent ? r->p + r->r + s->at : s->at] = 1;
            }
        }
    }
}

static void split_storages(const crd_reduction* r, const matrices* m, bool slope)
{
    const double* e = slope ? m->e.da : m->e.a;
    for (int i = 0; i < r->s; i++) {
        const storage* a = &r->stores[i];
        for (int j = 0; j < r->s; j++) {
            const storage* b = &r->stores[j];
            const dual* to = a->dependent ? (b->dependent ? &m->edd : &m->edz)
                                          : (b->dependent ? &m->ezd : &m->ezz);
            const int columns = b->dependent ? r->d : r->p;
            (slope ? to->da : to->a)[(ptrdiff_t)a->at * columns + b->at] =
                e[(ptrdiff_t)i * r->s + j];
        }
    }
}

static void split_x(const crd_reduction* r, const matrices* m, bool slope)
{
    const double* x = slope ? m->x.da : m->x.a;
    const dual* parts[3] = {&m->xz, &m->xv, &m->xd};
    const int width[3] = {r->p, r->r, r->d}, first[3] = {0, r->p, r->p + r->r};
    for (int q = 0; q < 3; q++) {
        double* to = slope ? parts[q]->da : parts[q]->a;
        for (int i = 0; i < r->variables; i++) {
            for (int c = 0; c < width[q]; c++) {
                to[(ptrdiff_t)i * width[q] + c] = x[(ptrdiff_t)i * r->k + first[q] + c];
            }
        }
    }
    for (int i = 0; i < r->s; i++) {
        const storage* s = &r->stores[i];
        const pick from = pick_of(r, i, !s->dependent);
        const dual* rows[3] = {s->dependent ? &m->td : &m->tw, s->dependent ? &m->bd : &m->bw,
                               s->dependent ? NULL : &m->xw};
        for (int q = 0; q < 3 && rows[q]; q++) {
            double* to = (slope ? rows[q]->da : rows[q]->a) + (ptrdiff_t)s->at * width[q];
            for (int c = 0; c < width[q]; c++) {
                to[c] = picked(x, r->k, from, first[q] + c);
            }
        }
    }
}

// c = or += f a b, and its derivative
static void reduce_multiply(int n, int m, int k, double f, dual a, dual b, bool add, dual c,
                            bool slope)
{
    if (slope) {
        crdi_dense_multiply(n, m, k, f, a.da, b.a, add, c.da);
        crdi_dense_multiply(n, m, k, f, a.a, b.da, true, c.da);
    } else {
        crdi_dense_multiply(n, m, k, f, a.a, b.a, add, c.a);
    }
}

static void copy(size_t count, dual from, dual to, bool slope)
{
    memcpy(slope ? to.da : to.a, slope ? from.da : from.a, count * sizeof(double));
}

// c (p x k) becomes mass^-1 c, or the derivative of that: mass^-1 (c' - mass' c)
static void divide(const crd_reduction* r, const matrices* m, const double* lu,
                   const int32_t* pivots, int k, dual c, bool slope)
{
    if (slope) { crdi_dense_multiply(r->p, r->p, k, -1, m->mass.da, c.a, true, c.da); }
    crdi_dense_solve(r->p, lu, pivots, k, slope ? c.da : c.a);
}

// From x and e to the mass matrix, and with its factors to the result.
static void find_mass(const crd_reduction* r, const matrices* m, bool slope)
{
    const int p = r->p, d = r->d;
    split_storages(r, m, slope);
    split_x(r, m, slope);
    copy((size_t)d * (size_t)p, m->edz, m->q, slope);
    reduce_multiply(d, d, p, 1, m->edd, m->td, true, m->q, slope);
    reduce_multiply(d, d, r->r, 1, m->edd, m->bd, false, m->h, slope);
    copy((size_t)p * (size_t)p, m->ezz, m->mass, slope);
    reduce_multiply(p, d, p, 1, m->ezd, m->td, true, m->mass, slope);
    reduce_multiply(p, d, p, -1, m->xw, m->q, true, m->mass, slope);
}

static void find_result(const crd_reduction* r, const matrices* m, const double* lu,
                        const int32_t* pivots, bool slope)
{
    const int p = r->p, d = r->d, n = r->variables;
    copy((size_t)p * (size_t)p, m->tw, m->fc, slope);
    copy((size_t)p * (size_t)r->r, m->bw, m->g1, slope);
    reduce_multiply(p, d, r->r, 1, m->xw, m->h, false, m->g2, slope);
    reduce_multiply(p, d, r->r, -1, m->ezd, m->bd, true, m->g2, slope);
    divide(r, m, lu, pivots, p, m->fc, slope);
    divide(r, m, lu, pivots, r->r, m->g1, slope);
    divide(r, m, lu, pivots, r->r, m->g2, slope);
    reduce_multiply(d, p, p, 1, m->q, m->fc, false, m->wz, slope);
    reduce_multiply(d, p, r->r, 1, m->q, m->g1, false, m->wv, slope);
    copy((size_t)d * (size_t)r->r, m->h, m->wd, slope);
    reduce_multiply(d, p, r->r, 1, m->q, m->g2, true, m->wd, slope);
    copy((size_t)n * (size_t)p, m->xz, m->t, slope);
    reduce_multiply(n, d, p, 1, m->xd, m->wz, true, m->t, slope);
    copy((size_t)n * (size_t)r->r, m->xv, m->b, slope);
    reduce_multiply(n, d, r->r, 1, m->xd, m->wv, true, m->b, slope);
    reduce_multiply(n, d, r->r, 1, m->xd, m->wd, false, m->b2, slope);
}

static crd_status singular(const crd_reduction* r, int at)
{
    const crd_netlist* n = r->n;
    if (at < r->nodes - 1) {
        return crdi_fail(r->ctx, CRD_E_CONVERGENCE,
                         "twin: nothing determines the voltage of node %s; the network is singular",
                         crdi_clip(n->nodes[at + 1]).text);
    }
    int32_t part = 0;
    while (part < n->part_count - 1 && r->current[part] != at) {
        part++;
    }
    return crdi_fail(r->ctx, CRD_E_CONVERGENCE,
                     "twin: nothing determines the current of %s; the network is singular",
                     crdi_clip(reduce_name_of(n, part)).text);
}

// Everything from r->trial, into `next`; exchanged with `now` on success.
static crd_status renew(crd_reduction* r)
{
    int at = 0;
    reduce_build(r, r->trial, r->lu_next, r->y_next);
    if (!crdi_dense_factor(r->m, r->lu_next, r->pivots_next, &at)) { return singular(r, at); }
    crdi_dense_solve(r->m, r->lu_next, r->pivots_next, r->k, r->y_next);
    const matrices* m = &r->next;
    fill_x(r, r->trial, r->y_next, NULL, NULL, m->x.a);
    storages(r, r->trial, NULL, m->e.a);
    find_mass(r, m, false);
    memcpy(r->mass_lu_next, m->mass.a, (size_t)r->p * (size_t)r->p * sizeof(double));
    if (!crdi_dense_factor(r->p, r->mass_lu_next, r->mass_pivots_next, &at)) {
        return crdi_fail(r->ctx, CRD_E_CONVERGENCE,
                         "twin: the derivative of the state of %s is not determined",
                         crdi_clip(reduce_name_of(r->n, r->state_part[at])).text);
    }
    find_result(r, m, r->mass_lu_next, r->mass_pivots_next, false);
#define EXCHANGE(type, a, b)                                                                       \
    do {                                                                                           \
        type keep_ = a;                                                                            \
        a = b;                                                                                     \
        b = keep_;                                                                                 \
    } while (0)
    EXCHANGE(matrices, r->now, r->next);
    EXCHANGE(double*, r->lu, r->lu_next);
    EXCHANGE(double*, r->y, r->y_next);
    EXCHANGE(double*, r->mass_lu, r->mass_lu_next);
    EXCHANGE(int32_t*, r->pivots, r->pivots_next);
    EXCHANGE(int32_t*, r->mass_pivots, r->mass_pivots_next);
    EXCHANGE(double*, r->value, r->trial);
#undef EXCHANGE
    const matrices* c = &r->now;
    r->view = (crd_reduced){.states = r->p,
                            .inputs = r->r,
                            .variables = r->variables,
                            .state_part = r->state_part,
                            .input_part = r->input_part,
                            .fc = c->fc.a,
                            .g1 = c->g1.a,
                            .g2 = c->g2.a,
                            .t = c->t.a,
                            .b = c->b.a,
                            .b2 = c->b2.a};
    return CRD_OK;
}

// ---- the interface -----------------------------------------------------------------------------

static bool new_matrix(crd_reduction* r, double** to, int rows, int columns)
{
    const size_t count = (size_t)rows * (size_t)columns;
    *to = crdi_arena_new(&r->arena, count ? count : 1, sizeof(double));
    return *to != NULL;
}

static bool room_dual(crd_reduction* r, dual* to, int rows, int columns)
{
    return new_matrix(r, &to->a, rows, columns) && new_matrix(r, &to->da, rows, columns);
}

static bool room_matrices(crd_reduction* r, matrices* m)
{
    const int n = r->variables, p = r->p, v = r->r, d = r->d;
    return room_dual(r, &m->x, n, r->k) && room_dual(r, &m->e, r->s, r->s) &&
           room_dual(r, &m->ezz, p, p) && room_dual(r, &m->ezd, p, d) &&
           room_dual(r, &m->edz, d, p) && room_dual(r, &m->edd, d, d) &&
           room_dual(r, &m->td, d, p) && room_dual(r, &m->bd, d, v) && room_dual(r, &m->tw, p, p) &&
           room_dual(r, &m->bw, p, v) && room_dual(r, &m->xw, p, d) && room_dual(r, &m->xz, n, p) &&
           room_dual(r, &m->xv, n, v) && room_dual(r, &m->xd, n, d) && room_dual(r, &m->q, d, p) &&
           room_dual(r, &m->h, d, v) && room_dual(r, &m->mass, p, p) &&
           room_dual(r, &m->fc, p, p) && room_dual(r, &m->g1, p, v) && room_dual(r, &m->g2, p, v) &&
           room_dual(r, &m->wz, d, p) && room_dual(r, &m->wv, d, v) && room_dual(r, &m->wd, d, v) &&
           room_dual(r, &m->t, n, p) && room_dual(r, &m->b, n, v) && room_dual(r, &m->b2, n, v);
}

static bool room_factors(crd_reduction* r)
{
    r->pivots = crdi_arena_new(&r->arena, (size_t)r->m + 1, sizeof(int32_t));
    r->pivots_next = crdi_arena_new(&r->arena, (size_t)r->m + 1, sizeof(int32_t));
    r->mass_pivots = crdi_arena_new(&r->arena, (size_t)r->p + 1, sizeof(int32_t));
    r->mass_pivots_next = crdi_arena_new(&r->arena, (size_t)r->p + 1, sizeof(int32_t));
    return r->pivots && r->pivots_next && r->mass_pivots && r->mass_pivots_next &&
           new_matrix(r, &r->lu, r->m, r->m) && new_matrix(r, &r->lu_next, r->m, r->m) &&
           new_matrix(r, &r->y, r->m, r->k) && new_matrix(r, &r->y_next, r->m, r->k) &&
           new_matrix(r, &r->dy, r->m, r->k) && new_matrix(r, &r->mass_lu, r->p, r->p) &&
           new_matrix(r, &r->mass_lu_next, r->p, r->p);
}

static bool room_parts(crd_reduction* r)
{
    const size_t parts = (size_t)r->n->part_count + 1;
    r->current = crdi_arena_new(&r->arena, parts, sizeof *r->current);
    r->source = crdi_arena_new(&r->arena, parts, sizeof *r->source);
    r->store = crdi_arena_new(&r->arena, parts, sizeof *r->store);
    r->stores = crdi_arena_new(&r->arena, parts, sizeof *r->stores);
    r->state_part = crdi_arena_new(&r->arena, parts, sizeof *r->state_part);
    r->input_part = crdi_arena_new(&r->arena, parts, sizeof *r->input_part);
    return r->current && r->source && r->store && r->stores && r->state_part && r->input_part &&
           new_matrix(r, &r->value, (int)parts, 1) && new_matrix(r, &r->trial, (int)parts, 1);
}

static crd_status check_dependents(const crd_reduction* r)
{
    for (int i = 0; i < r->s; i++) {
        if (!r->stores[i].dependent) { continue; }
        const pick from = pick_of(r, i, false);
        for (int c = r->p + r->r; c < r->k; c++) {
            if (fabs(picked(r->now.x.a, r->k, from, c)) > 1e-12) {
                return crdi_fail(r->ctx, CRD_E_UNSUPPORTED,
                                 "twin: %s is bound by a controlled source to the derivative of "
                                 "itself; a twin needs a network of index 2 at most",
                                 crdi_clip(reduce_name_of(r->n, r->stores[i].part)).text);
            }
        }
    }
    return CRD_OK;
}

crd_status crd_reduction_create(crd_context* ctx, const crd_netlist* n, crd_reduction** out)
{
    crd_status st;
    crd_reduction* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    *r = (crd_reduction){.ctx = ctx, .n = n, .nodes = n->node_count};
    crd_arena_init(&r->arena, ctx);
    r->variables = n->node_count + n->part_count;
    CRD_TRY(crdi_twin_start_check(ctx, n));
    CRD_TRY(room_parts(r) ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(count_parts(r));
    int most = n->node_count;
    for (int i = 0; i < n->expression_count; i++) {
        const crd_use* uses;
        const int count = crd_expression_uses(n->expressions[i], &uses);
        most = count > most ? count : most;
    }
    double* scratch = NULL;
    CRD_TRY(new_matrix(r, &scratch, most + 1, 1) ? CRD_OK : CRD_E_MEMORY);
    choose_states(r, (int32_t*)(void*)scratch);
    start_laws(r, scratch);
    number_unknowns(r);
    CRD_TRY(room_matrices(r, &r->now) && room_matrices(r, &r->next) && room_factors(r)
                ? CRD_OK
                : CRD_E_MEMORY);
    memcpy(r->trial, r->value, (size_t)n->part_count * sizeof *r->trial);
    CRD_TRY(renew(r));
    CRD_TRY(check_dependents(r));
    *out = r;
    return CRD_OK;
fail:
    crd_reduction_destroy(r);
    return st;
}

void crd_reduction_destroy(crd_reduction* r)
{
    if (!r) { return; }
    crd_arena_clear(&r->arena);
    crd_free(r->ctx, r);
}

const crd_reduced* crd_reduction_get(const crd_reduction* r)
{
    return &r->view;
}

double crd_reduction_value(const crd_reduction* r, int32_t part)
{
    return part >= 0 && part < r->n->part_count ? r->value[part] : (double)NAN;
}

crd_status crd_reduction_set(crd_reduction* r, const int32_t* parts, const double* values,
                             int count)
{
    const crd_netlist* n = r->n;
    memcpy(r->trial, r->value, (size_t)n->part_count * sizeof *r->trial);
    for (int i = 0; i < count; i++) {
        const bool there = parts[i] >= 0 && parts[i] < n->part_count;
        const crd_part* p = there ? &n->parts[parts[i]] : NULL;
        if (!there || !(is_storage(p) || is_resistor(p))) {
            return crdi_fail(r->ctx, CRD_E_RANGE, "twin: %s has no value; expected an R, C or L",
                             there ? crdi_clip(reduce_name_of(n, parts[i])).text
                                   : "a part that is not there");
        }
        if (!(values[i] > 0 && isfinite(values[i]))) {
            return crdi_fail(r->ctx, CRD_E_RANGE, "twin: %s = %g, expected > 0",
                             crdi_clip(reduce_name_of(n, parts[i])).text, values[i]);
        }
        r->trial[parts[i]] = values[i];
    }
    return renew(r);
}

crd_reduced crd_reduction_sensitivity(crd_reduction* r, const crd_twin_group* g)
{
    const matrices* m = &r->now;
    double *slope = r->trial, *dm = r->lu_next;
    memset(slope, 0, (size_t)r->n->part_count * sizeof *slope);
    for (int i = 0; i < g->count; i++) {
        slope[g->parts[i]] = 1; // value = factor * parameter: the logarithms move together
    }
    build_slope(r, slope, dm);
    crdi_dense_multiply(r->m, r->m, r->k, -1, dm, r->y, false, r->dy);
    crdi_dense_solve(r->m, r->lu, r->pivots, r->k, r->dy);
    fill_x(r, r->value, r->dy, slope, m->x.a, m->x.da);
    storages(r, r->value, slope, m->e.da);
    find_mass(r, m, true);
    find_result(r, m, r->mass_lu, r->mass_pivots, true);
    crd_reduced view = r->view;
    view.fc = m->fc.da;
    view.g1 = m->g1.da;
    view.g2 = m->g2.da;
    view.t = m->t.da;
    view.b = m->b.da;
    view.b2 = m->b2.da;
    return view;
}
