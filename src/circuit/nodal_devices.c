// Diodes, switches and laws of the fast form: which unknowns they touch, and Newton's method there.
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

// ---- active unknowns ---------------------------------------------------------------------------

static void mark(const crdi_nodal* d, uint8_t* active, int32_t potential)
{
    const int32_t root = d->net.root[potential];
    if (root >= 0) { active[root] = true; }
}

static void mark_device(const crdi_nodal* d, uint8_t* active, const crd_part* p)
{
    const crdi_network* net = &d->net;
    mark(d, active, net->node_at[p->nodes[0]]);
    mark(d, active, net->node_at[p->nodes[1]]);
    const crd_expression* law = crdi_part_law(net->n, p);
    const crd_use* uses;
    const int count = law ? crd_expression_uses(law, &uses) : 0;
    for (int k = 0; k < count; k++) {
        switch (uses[k].kind) {
        case CRD_USE_PAIR:
            mark(d, active, net->node_at[uses[k].b]);
            // fall through
        case CRD_USE_NODE:
            mark(d, active, net->node_at[uses[k].a]);
            break;
        case CRD_USE_CURRENT:
            mark(d, active, crdi_network_current_unknown(net, uses[k].a));
            break;
        case CRD_USE_INPUT:
            break;
        }
    }
}

// Devices touch few unknowns: those come last. Unknown currents and their ends go with them, as
// nothing says that the rest is regular otherwise. If they are many, all are active.
crd_status crdi_nodal_partition(crdi_nodal* d)
{
    crdi_network* net = &d->net;
    crd_context* ctx = d->c->ctx;
    const int32_t n = net->unknowns;
    d->linear = n;
    if (net->devices == 0) { return CRD_OK; }
    uint8_t* active = crdi_new_array(ctx, (size_t)n, 1);
    int32_t* to = crdi_new_array(ctx, (size_t)n, sizeof *to);
    if (active && to) {
        for (int32_t k = 0; k < net->devices; k++) {
            mark_device(d, active, &net->n->parts[net->device[k]]);
        }
        for (int32_t k = 0; k < net->rows; k++) {
            active[net->row[k].unknown] = true;
            mark(d, active, net->row[k].from);
            mark(d, active, net->row[k].to);
        }
        for (int32_t i = 0; i < n; i++) {
            d->active += active[i];
        }
        d->whole = d->active > CRDI_ACTIVE_MOST;
        if (d->whole) { d->active = n; }
        d->linear = n - d->active;
        int32_t first = 0, last = d->linear;
        for (int32_t i = 0; i < n && !d->whole; i++) {
            to[i] = active[i] ? last++ : first++;
        }
        if (!d->whole) { crdi_network_renumber(net, to); }
    }
    const bool room = active && to;
    crd_free(ctx, active);
    crd_free(ctx, to);
    return room ? CRD_OK : CRD_E_MEMORY;
}

// ---- making them -------------------------------------------------------------------------------

typedef struct places { // of matrix entries, in the whole matrix
    crd_context* ctx;
    int32_t *row, *column;
    size_t count, rows_room, columns_room;
    bool failed;
} places;

// Where (row, column) of the active matrix lies; for the whole matrix the number of the place.
static int32_t nodal_devices_slot_of(crdi_nodal* d, places* p, int32_t row, int32_t column)
{
    const int32_t m = d->active;
    if (!d->whole) { return row == m || column == m ? m * m : row * m + column; }
    if (row == m || column == m || p->failed) { return -1; }
    int32_t* r = crdi_grow(p->ctx, p->row, &p->rows_room, p->count + 1, sizeof *r);
    if (r) { p->row = r; }
    int32_t* c = crdi_grow(p->ctx, p->column, &p->columns_room, p->count + 1, sizeof *c);
    if (c) { p->column = c; }
    p->failed = !r || !c;
    if (p->failed) { return -1; }
    r[p->count] = row;
    c[p->count] = column;
    return (int32_t)p->count++;
}

static void nodal_devices_add_column(crdi_nodal* d, places* p, crdi_device* e, int32_t potential,
                                     int use, double sign)
{
    crdi_column* c = &e->column[e->columns++];
    const int32_t u = crdi_device_active(d, potential);
    *c = (crdi_column){.u = u, .potential = potential, .use = use, .sign = sign};
    c->slot[0] = nodal_devices_slot_of(d, p, e->ua, u);
    c->slot[1] = nodal_devices_slot_of(d, p, e->ub, u);
}

static void nodal_devices_make_columns(crdi_nodal* d, places* p, crdi_device* e)
{
    const crdi_network* net = &d->net;
    for (int k = 0; k < e->uses; k++) {
        const crd_use* u = &e->use[k];
        if (u->kind == CRD_USE_NODE || u->kind == CRD_USE_PAIR) {
            nodal_devices_add_column(d, p, e, net->node_at[u->a], k, 1);
        }
        if (u->kind == CRD_USE_PAIR) {
            nodal_devices_add_column(d, p, e, net->node_at[u->b], k, -1);
        }
        if (u->kind == CRD_USE_CURRENT) {
            nodal_devices_add_column(d, p, e, crdi_network_current_unknown(net, u->a), k, 1);
        }
    }
}

static void make_device(crdi_nodal* d, places* p, int32_t k, double** room, crdi_column** columns)
{
    const crdi_network* net = &d->net;
    const crd_netlist* n = net->n;
    crdi_device* e = &d->device[k];
    const crd_part* part = &n->parts[net->device[k]];
    e->part = net->device[k];
    e->a = net->node_at[part->nodes[0]];
    e->b = net->node_at[part->nodes[1]];
    e->ua = crdi_device_active(d, e->a);
    e->ub = crdi_device_active(d, e->b);
    e->kind = crdi_part_kind_of(part)->device;
    if (e->kind->make) { e->kind->make(d, e); }
    const int32_t ends[2] = {e->ua, e->ub};
    for (int i = 0; i < 4; i++) {
        e->slot[i] = nodal_devices_slot_of(d, p, ends[i / 2], ends[i % 2]);
    }
    e->law = crdi_part_law(n, part);
    if (e->law) {
        e->uses = crd_expression_uses(e->law, &e->use);
        e->gradient = *room;
        e->at = *room + e->uses;
        e->memory = *room + 2 * e->uses;
        *room += 2 * (size_t)e->uses + crdi_law_numbers(e->table);
        e->column = *columns;
        nodal_devices_make_columns(d, p, e);
        *columns += e->columns;
    }
    d->nonlinear = d->nonlinear || e->kind->nonlinear;
    d->switches = d->switches || !e->kind->nonlinear;
    d->limited = d->limited || e->kind->move;
    d->laws = d->laws || (e->kind->nonlinear && !e->kind->move);
}

// Devices of one kind that follow each other
static crd_status make_runs(crdi_nodal* d)
{
    d->run = crdi_arena_new(&d->arena, (size_t)d->net.devices, sizeof *d->run);
    if (!d->run) { return CRD_E_MEMORY; }
    for (int32_t k = 0; k < d->net.devices; k++) {
        const crdi_device_kind* kind = d->device[k].kind;
        if (d->runs == 0 || d->run[d->runs - 1].kind != kind) {
            d->run[d->runs++] = (crdi_device_run){.kind = kind, .first = k};
        }
        d->run[d->runs - 1].count++;
    }
    return CRD_OK;
}

// Numbers of places become places in the values of the matrix.
static crd_status make_whole(crdi_nodal* d, const places* p)
{
    crd_context* ctx = d->c->ctx;
    const size_t linear = d->all.entries, count = linear + p->count;
    int32_t* at = crdi_new_array(ctx, 2 * count, sizeof *at);
    if (!at) { return CRD_E_MEMORY; }
    memcpy(at, d->all.row, linear * sizeof *at);
    memcpy(at + count, d->all.column, linear * sizeof *at);
    if (p->count > 0) {
        memcpy(at + linear, p->row, p->count * sizeof *at);
        memcpy(at + count + linear, p->column, p->count * sizeof *at);
    }
    const crd_status st = crdi_sparse_init(&d->sparse, &d->arena, d->active, count, at, at + count);
    crd_free(ctx, at);
    if (st < 0) { return st; }
    d->base_count = (size_t)d->sparse.first[d->active];
    const int32_t trash = (int32_t)d->base_count;
    for (int32_t k = 0; k < d->net.devices; k++) {
        crdi_device* e = &d->device[k];
        for (int i = 0; i < 4; i++) {
            e->slot[i] = e->slot[i] < 0 ? trash : d->sparse.slot[linear + (size_t)e->slot[i]];
        }
        for (int i = 0; i < 2 * e->columns; i++) {
            int32_t* s = &e->column[i / 2].slot[i % 2];
            *s = *s < 0 ? trash : d->sparse.slot[linear + (size_t)*s];
        }
    }
    return CRD_OK;
}

static crd_status make_devices(crdi_nodal* d)
{
    crd_status st = CRD_OK;
    double* room = d->room;
    crdi_column* columns = d->columns;
    places p = {.ctx = d->c->ctx};
    for (int32_t k = 0; k < d->net.devices; k++) {
        make_device(d, &p, k, &room, &columns);
    }
    CRD_TRY(p.failed ? CRD_E_MEMORY : make_runs(d));
    if (d->whole) { CRD_TRY(make_whole(d, &p)); }
fail:
    crd_free(p.ctx, p.row);
    crd_free(p.ctx, p.column);
    return st;
}

crd_status crdi_nodal_devices(crdi_nodal* d)
{
    crd_status st = CRD_OK;
    crd_arena* a = &d->arena;
    const crdi_network* net = &d->net;
    const size_t count = (size_t)net->devices, active = (size_t)d->active;
    size_t columns = 0;
    d->device = crdi_arena_new(a, count, sizeof *d->device);
    d->state = crdi_arena_new(a, count, sizeof *d->state);
    d->next = crdi_arena_new(a, count, sizeof *d->next);
    d->is_current = crdi_arena_new(a, active, 1);
    if (a->failed) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < count; k++) {
        const crd_expression* law = crdi_part_law(net->n, &net->n->parts[net->device[k]]);
        const crd_use* list;
        const int uses = law ? crd_expression_uses(law, &list) : 0;
        if (law) { CRD_TRY(crdi_law_create(a, law, &d->device[k].table)); }
        d->room_count += 2 * (size_t)uses + crdi_law_numbers(d->device[k].table);
        columns += 2 * (size_t)uses; // at most
    }
    d->room = crdi_arena_new(a, d->room_count, sizeof *d->room);
    d->room_saved = crdi_arena_new(a, d->room_count, sizeof *d->room_saved);
    d->columns = crdi_arena_new(a, columns, sizeof *d->columns);
    if (a->failed) { return CRD_E_MEMORY; }
    d->base_count = d->whole ? 0 : active * active;
    CRD_TRY(make_devices(d));
    d->rc = crdi_arena_new(a, active + 1, sizeof *d->rc);
    d->ra = crdi_arena_new(a, active + 1, sizeof *d->ra);
    d->ua = crdi_arena_new(a, active + 1, sizeof *d->ua);
    d->matrix = crdi_arena_new(a, d->base_count + 1, sizeof *d->matrix);
    for (int32_t k = 0; k < net->rows; k++) {
        const int32_t u = net->row[k].unknown - d->linear;
        if (u >= 0) { d->is_current[u] = true; }
    }
    st = crdi_arena_status(a);
fail:
    return st;
}

// ---- one iteration -----------------------------------------------------------------------------

void crdi_device_settle_law(const crdi_nodal* d, int32_t first, int32_t count, double w)
{
    (void)w;
    for (int32_t k = first; k < first + count; k++) {
        const crdi_device* e = &d->device[k];
        double i = e->j + (d->pot[e->a] - d->pot[e->b]) * e->conductance; // of a flow: 0
        for (int c = 0; c < e->columns; c++) {
            const crdi_column* x = &e->column[c];
            i += e->slope * x->sign * e->gradient[x->use] * d->ua[x->u];
        }
        d->next[k].i = i;
    }
}

// LU of a small matrix with partial pivoting; b becomes the solution.
static inline void solve_small(int n, double* a, double* b)
{
    for (int k = 0; k < n; k++) {
        int top = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[top * n + k])) { top = i; }
        }
        double* row = a + k * n;
        if (top != k) {
            double* other = a + top * n;
            for (int j = k; j < n; j++) {
                const double x = row[j];
                row[j] = other[j];
                other[j] = x;
            }
            const double x = b[k];
            b[k] = b[top];
            b[top] = x;
        }
        const double inverse = 1 / row[k];
        for (int i = k + 1; i < n; i++) {
            double* under = a + i * n;
            const double factor = under[k] * inverse;
            for (int j = k + 1; j < n; j++) {
                under[j] -= factor * row[j];
            }
            b[i] -= factor * b[k];
        }
        row[k] = inverse;
    }
    for (int k = n - 1; k >= 0; k--) {
        double x = b[k];
        for (int j = k + 1; j < n; j++) {
            x -= a[k * n + j] * b[j];
        }
        b[k] = x * a[k * n + k];
    }
}

// Two unknowns by Cramer's rule, which is as exact as elimination for them, and shorter.
static void solve_two(const double* a, double* b)
{
    const double inverse = 1 / (a[0] * a[3] - a[1] * a[2]);
    const double x = b[0], y = b[1];
    b[0] = (a[3] * x - a[1] * y) * inverse;
    b[1] = (a[0] * y - a[2] * x) * inverse;
}

static crd_status solve_whole(crdi_nodal* d)
{
    crdi_sparse* s = &d->sparse;
    memcpy(s->value, d->matrix, d->base_count * sizeof *s->value);
    d->c->counts.factorisations++;
    bool done = s->numeric &&
                klu_refactor(s->first, s->row, s->value, s->symbolic, s->numeric, &s->common) &&
                klu_rgrowth(s->first, s->row, s->value, s->symbolic, s->numeric, &s->common) &&
                s->common.rgrowth > 1e-6;
    if (!done) {
        klu_free_numeric(&s->numeric, &s->common);
        s->numeric = klu_factor(s->first, s->row, s->value, s->symbolic, &s->common);
        if (s->common.status == KLU_OUT_OF_MEMORY) {
            return crdi_fail(d->c->ctx, CRD_E_MEMORY, "out of memory");
        }
        done = s->numeric && s->common.status == KLU_OK;
    }
    if (!done) { return CRD_E_CONVERGENCE; }
    crdi_sparse_solve(s, d->ra);
    return CRD_OK;
}

static crd_status stuck(crdi_nodal* d, double t, const char* how)
{
    const int32_t part = d->device[d->worst].part;
    return crdi_fail(d->c->ctx, CRD_E_CONVERGENCE,
                     "%s: at t = %g s %s (a shorter step may help); it is about the part %s",
                     crdi_part_place(d->c->n, part).text, t, how,
                     crdi_clip(crdi_part_name(d->c->n, part)).text);
}

// Whether all that still moves is rounding: what hangs on blocking diodes alone (1e-12 S) follows
// the last digits of currents elsewhere.
static bool at_rounding(const crdi_nodal* d)
{
    double largest = 1, off = 0;
    for (int32_t i = 0; i < d->active; i++) {
        largest = fmax(largest, fabs(d->rc[i]));
    }
    for (int32_t k = 0; k < d->net.devices; k++) {
        const crdi_device_kind* kind = d->device[k].kind;
        if (!kind->nonlinear) { continue; }
        if (!kind->off) { return false; }
        off = fmax(off, kind->off(d, k));
    }
    return off <= 1e-14 * largest;
}

// The largest change of a potential, relative to the largest potential; the same for currents.
static double change(const crdi_nodal* d)
{
    double top[2] = {1e-6, 1e-9}, most[2] = {0, 0};
    const double* last = d->ra; // they change places after each solution
    if (d->net.rows == 0) {     // no currents among them
        double x = top[0], dx = 0;
        for (int32_t i = 0; i < d->active; i++) {
            const double a = fabs(d->p0[d->linear + i] + d->ua[i]), b = fabs(d->ua[i] - last[i]);
            x = a > x ? a : x;
            dx = b > dx ? b : dx;
        }
        return dx / x;
    }
    for (int32_t i = 0; i < d->active; i++) {
        const int kind = d->is_current[i];
        const double x = fabs(d->p0[d->linear + i] + d->ua[i]), dx = fabs(d->ua[i] - last[i]);
        top[kind] = x > top[kind] ? x : top[kind];
        most[kind] = dx > most[kind] ? dx : most[kind];
    }
    const double volts = most[0] / top[0], amperes = most[1] / top[1];
    return volts > amperes ? volts : amperes;
}

static crd_status stamp_all(crdi_nodal* d, double t, bool tangent)
{
    if (d->active == 2) { // sizes that are known are copied without a call
        memcpy(d->matrix, d->now->base, 5 * sizeof *d->matrix);
        memcpy(d->ra, d->rc, 3 * sizeof *d->ra);
    } else {
        memcpy(d->matrix, d->now->base, (d->base_count + 1) * sizeof *d->matrix);
        memcpy(d->ra, d->rc, (size_t)(d->active + 1) * sizeof *d->ra);
    }
    for (int32_t k = 0; k < d->runs; k++) {
        const crdi_device_run* r = &d->run[k];
        const int32_t bad = r->kind->stamp(d, r->first, r->count, t, tangent);
        if (bad >= 0) {
            d->worst = bad;
            return stuck(d, t, "the equations have no value");
        }
    }
    return CRD_OK;
}

static double move_all(crdi_nodal* d)
{
    // after a change of x = dv / (n vt) the tangent of an exponential is x^2 / 2 off
    const double small = sqrt(2 * d->c->opt.tolerance);
    double most = 0;
    for (int32_t k = 0; k < d->runs; k++) {
        const crdi_device_run* r = &d->run[k];
        if (!r->kind->move) { continue; }
        int worst = d->worst;
        const double x = r->kind->move(d, r->first, r->count, small, &worst);
        if (x > most) {
            most = x;
            d->worst = worst;
        }
    }
    return most;
}

// Whether laws are settled after iteration k, which changed things by `now`, the one before it by
// `before`. The first iteration of a step may use an old tangent: how much of its change it leaves
// as error is known from steps that made a second one (d->theta). From the second on it is Newton's
// method, where the next change is not larger than now^2 / before.
static bool laws_settled(crdi_nodal* d, int k, double now, double before)
{
    const double tolerance = d->c->opt.tolerance, least = 1e-3;
    if (k == 2) { d->theta = fmin(1, fmax(now / before, 0.5 * d->theta)); }
    if (now <= tolerance) { return true; }
    const double left = k == 1 ? d->theta : now / before;
    return now * (left > least ? left : least) <= tolerance;
}

crd_status crdi_nodal_newton(crdi_nodal* d, double t)
{
    const crd_circuit_options* o = &d->c->opt;
    const size_t m = (size_t)d->active;
    const bool chord = d->laws && !d->limited && d->theta < 0.05 && !o->fixed_iterations;
    double before = 0, moved_before = 0;
    int noise = 0;
    d->worst = 0;
    for (int k = 1; k <= o->max_iterations; k++) {
        crd_status st = stamp_all(d, t, k > 1 || !chord);
        if (st < 0) { return st; }
        if (d->whole) {
            st = solve_whole(d);
            if (st == CRD_E_CONVERGENCE) { return stuck(d, t, "the equations are singular"); }
            if (st < 0) { return st; }
        } else if (d->few && d->active == 2) {
            solve_two(d->matrix, d->ra);
        } else if (d->active == 2) { // loops over a known size are no loops
            solve_small(2, d->matrix, d->ra);
        } else {
            solve_small(d->active, d->matrix, d->ra);
        }
        double* solution = d->ra;
        d->ra = d->ua;
        d->ua = solution;
        d->ua[m] = 0; // what is known does not change
        d->c->iterations++;
        const double moved = d->limited ? move_all(d) : 0;
        // Newton's method would square it: what does not even become smaller is rounding, of
        // potentials that hang on nothing but leakage
        noise += moved < 0.01 && moved > 0.25 * moved_before;
        bool settled = moved == 0 || noise > 2;
        moved_before = moved;
        double sum = 0;
        for (size_t i = 0; i < m; i++) {
            sum += d->ua[i];
        }
        if (!isfinite(sum)) { return stuck(d, t, "the iteration ran away"); }
        if (d->laws) {
            const double now = change(d);
            settled &= d->limited ? now <= o->tolerance : laws_settled(d, k, now, before);
            before = now;
        }
        if (!settled && k >= 10) { settled = at_rounding(d); }
        if (!o->fixed_iterations && (settled || !d->nonlinear)) { return CRD_OK; }
    }
    return o->fixed_iterations ? CRD_OK : stuck(d, t, "Newton's method did not converge");
}

// ---- between steps -----------------------------------------------------------------------------

void crdi_nodal_guess_again(crdi_nodal* d)
{
    for (int32_t k = 0; k < d->net.devices; k++) {
        d->next[k].v[0] = d->state[k].v[0];
    }
}

void crdi_nodal_charges(crdi_nodal* d, const double* weights, bool trapezoid)
{
    for (int32_t k = 0; k < d->net.devices && d->switches; k++) {
        d->next[k].closed = d->state[k].closed;
    }
    for (int32_t k = 0; k < d->runs; k++) {
        const crdi_device_run* r = &d->run[k];
        if (r->kind->begin) { r->kind->begin(d, r->first, r->count, weights, trapezoid); }
    }
}

void crdi_nodal_settle(crdi_nodal* d, double w)
{
    for (int32_t k = 0; k < d->runs; k++) {
        const crdi_device_run* r = &d->run[k];
        if (r->kind->settle) { r->kind->settle(d, r->first, r->count, w); }
    }
    crdi_device_state* old = d->state;
    d->state = d->next;
    d->next = old;
}
