// Steps of the fast form: histories of branches -> right-hand side -> solve -> update.
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define HAS_MXCSR 1
#endif

// A formula: the derivative at the end of a step is w[0] x1 + w[1] x[0] + w[2] x[1] + w[3] x[2]; or
// the trapezoidal rule, w[0] (x1 - x0) - x0'.
typedef struct formula {
    double w[4];
    int order; // 0: trapezoidal
} formula;

// ---- histories ---------------------------------------------------------------------------------

// What each branch's current is without voltage, j = -g H with v1 = i1 / g + H. The trapezoidal
// rule has vC1 = vC0 + S/w (i1 + i0) and vL1 = L w (i1 - i0) - vL0, w = 2/h:
//     H = vC0 - vL0 + (S/w - L w) i0
static void trapezoid_history(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const double* restrict g = s->g, * restrict sw = s->sw, * restrict lw = s->lw;
    const double* restrict i = d->i[0], * restrict vc = d->vc[0], * restrict vl = d->vl;
    double* restrict j = d->j;
    for (int32_t k = 0; k < c; k++) {
        j[k] = -g[k] * (vc[k] + sw[k] * i[k]);
    }
    for (int32_t k = c; k < n; k++) {
        j[k] = -g[k] * (vc[k] - vl[k] + (sw[k] - lw[k]) * i[k]);
    }
}

// x = sum w_k x_k
static void combine(const formula* f, double* const* x, int32_t from, int32_t to, double factor,
                    double* restrict out)
{
    const double w1 = factor * f->w[1], w2 = factor * f->w[2], w3 = factor * f->w[3];
    const double* restrict x0 = x[0], * restrict x1 = x[1], * restrict x2 = x[2];
    switch (f->order) {
    case 1:
        for (int32_t k = from; k < to; k++) {
            out[k] = w1 * x0[k];
        }
        break;
    case 2:
        for (int32_t k = from; k < to; k++) {
            out[k] = w1 * x0[k] + w2 * x1[k];
        }
        break;
    default:
        for (int32_t k = from; k < to; k++) {
            out[k] = w1 * x0[k] + w2 * x1[k] + w3 * x2[k];
        }
        break;
    }
}

// The same for formulas of several steps, x1' = w0 x1 + sum w_k x_k: vC1 = S/w0 i1 + ec with
// ec = -sum w_k vC_k / w0, vL1 = L w0 i1 + L sum w_k i_k, so that H = ec + L sum w_k i_k. d->ec:
// voltage of the capacitance without current.
static void multistep_history(crdi_nodal* d, const formula* f)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const double* restrict g = s->g, * restrict lw = s->lw;
    double* restrict j = d->j, * restrict ec = d->ec;
    combine(f, d->vc, 0, net->states, -1 / f->w[0], ec);
    combine(f, d->i, c, net->states, 1 / f->w[0], j);
    for (int32_t k = 0; k < c; k++) {
        j[k] = -g[k] * ec[k];
    }
    for (int32_t k = c; k < n; k++) {
        j[k] = -g[k] * (ec[k] + lw[k] * j[k]);
    }
}

// H of rows with state goes straight to the right-hand side.
static void row_histories(crdi_nodal* d, const formula* f)
{
    const crdi_network* net = &d->net;
    const double w = f->w[0], *i = f->order == 0 ? d->i[0] : d->j;
    const double sign = f->order == 0 ? -1 : 1; // of w times the i in question
    for (int32_t k = 0; k < net->rows && net->states > net->branches - net->resistive; k++) {
        const crdi_row* r = &net->row[k];
        if (r->state < 0) { continue; }
        const bool trapezoid = f->order == 0;
        if (r->capacitor) {
            d->r[r->unknown] +=
                trapezoid ? d->vc[0][r->state] + i[r->state] / (r->value * w) : d->ec[r->state];
        } else {
            d->r[r->unknown] +=
                sign * w * r->value * i[r->state] - (trapezoid ? d->vl[r->state] : 0);
        }
    }
    for (int32_t k = 0; k < net->couplings; k++) {
        const crdi_coupling* m = &net->coupling[k];
        const crdi_row *a = &net->row[m->a], *b = &net->row[m->b];
        d->r[a->unknown] += sign * w * m->value * i[b->state];
        d->r[b->unknown] += sign * w * m->value * i[a->state];
    }
}

// ---- the right-hand side -----------------------------------------------------------------------

static void right_hand_side(crdi_nodal* d, const formula* f)
{
    const crdi_network* net = &d->net;
    const int32_t n = net->branches - net->resistive;
    const int32_t* restrict from = d->row_from, * restrict to = d->row_to;
    double* r = d->r;
    memcpy(r, d->now->steady, (size_t)(net->unknowns + 1) * sizeof *r);
    if (f->order == 0) {
        trapezoid_history(d);
    } else {
        multistep_history(d, f);
    }
    if (net->rows > 0) { row_histories(d, f); }
    const double* j = d->j;
    const int32_t nobody = net->unknowns; // adding one after the other there would take its time
    for (int32_t k = 0; k < n; k++) {
        if (from[k] != nobody) { r[from[k]] -= j[k]; }
        if (to[k] != nobody) { r[to[k]] += j[k]; }
    }
    if (d->varying_count > 0) { crdi_nodal_drive(d, d->now, false, r); }
}

// ---- the same for changes ----------------------------------------------------------------------

// What each branch's current is when its voltage stays: j = g (v0 - H), without the large voltages
// that v0 and H have in common.
static void standing_currents(crdi_nodal* d, const formula* f)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const double *g = s->g, *sw = s->sw, *lw = s->lw, *r = net->r + net->resistive;
    const double *i = d->i[0], *vc = d->vc[0], *vl = d->vl;
    if (f->order == 0) {
        for (int32_t k = 0; k < n; k++) {
            d->j[k] = g[k] * ((r[k] - sw[k] + lw[k]) * i[k] + (k < c ? 0 : 2 * vl[k]));
        }
        return;
    }
    for (int32_t k = 0; k < n; k++) {
        double hc = 0, hl = 0;
        for (int o = 2; o <= f->order; o++) {
            hc += f->w[o] * (d->vc[o - 1][k] - vc[k]);
            hl += f->w[o] * (d->i[o - 1][k] - i[k]);
        }
        hc /= f->w[0];
        hl /= f->w[0];
        d->ec[k] = vc[k] - hc;
        d->j[k] = g[k] * ((r[k] + lw[k]) * i[k] + (k < c ? 0 : vl[k]) + hc - lw[k] * hl);
    }
    combine(f, d->vc, n, net->states, -1 / f->w[0], d->ec); // of rows
    combine(f, d->i, n, net->states, 1 / f->w[0], d->j);
}

static void add_current(crdi_nodal* d, int32_t from, int32_t to, double i)
{
    const int32_t a = d->net.root[from], b = d->net.root[to];
    if (a >= 0) { d->r[a] -= i; }
    if (b >= 0) { d->r[b] += i; }
}

// What is left of a row's equation. Histories are added by row_histories.
static void add_row(crdi_nodal* d, const crdi_row* row, double w)
{
    const double *p = d->p0, i = p[row->unknown];
    double left = row->source >= 0 ? d->source[row->source] : 0;
    add_current(d, row->from, row->to, i);
    if (row->role == CRDI_ROLE_FLOW || row->role == CRDI_ROLE_OPEN) {
        d->r[row->unknown] += left - i;
        return;
    }
    if (row->drop) { left += row->drop(row->value, w, i); }
    if (row->c >= 0) { left += row->value * (row->d >= 0 ? p[row->c] - p[row->d] : p[row->c]); }
    d->r[row->unknown] += left - (p[row->from] - p[row->to]);
}

// r is what Kirchhoff's laws lack if all unknowns stay.
static void residual(crdi_nodal* d, const formula* f)
{
    const crdi_network* net = &d->net;
    const int32_t n = net->branches - net->resistive;
    const double *p = d->p0, *g = d->now->g, *res = net->r + net->resistive;
    double* r = d->r;
    memset(r, 0, (size_t)(net->unknowns + 1) * sizeof *r);
    standing_currents(d, f);
    if (net->rows > 0) { row_histories(d, f); }
    for (int32_t b = 0; b < net->resistive; b++) {
        add_current(d, net->from[b], net->to[b], (p[net->from[b]] - p[net->to[b]]) / net->r[b]);
    }
    for (int32_t k = 0; k < n; k++) {
        const int32_t from = net->from[net->resistive + k], to = net->to[net->resistive + k];
        // what sources have moved, and rounding, which is the same at both ends
        const double v0 = res[k] * d->i[0][k] + d->vc[0][k] + d->vl[k];
        d->j[k] += g[k] * (p[from] - p[to] - v0);
        r[d->row_from[k]] -= d->j[k];
        r[d->row_to[k]] += d->j[k];
    }
    for (int32_t k = 0; k < net->flows; k++) {
        const crdi_flow* w = &net->flow[k];
        r[w->from] -= d->source[w->source];
        r[w->to] += d->source[w->source];
    }
    for (int32_t k = 0; k < net->gains; k++) {
        const crdi_gain* w = &net->gain[k];
        add_current(d, w->from, w->to, w->value * (w->by_current ? p[w->c] : p[w->c] - p[w->d]));
    }
    for (int32_t k = 0; k < net->rows; k++) {
        add_row(d, &net->row[k], f->w[0]);
    }
    for (int32_t k = 0; k < net->couplings; k++) {
        const crdi_row *a = &net->row[net->coupling[k].a], *b = &net->row[net->coupling[k].b];
        const double wm = f->w[0] * net->coupling[k].value;
        r[a->unknown] += wm * p[b->unknown];
        r[b->unknown] += wm * p[a->unknown];
    }
}

// Changes are counted from the potentials that are expected, with the sources of t.
static void start_from_latest(crdi_nodal* d, double t)
{
    const crdi_network* net = &d->net;
    crdi_nodal_sources(d, t, false);
    if (d->latest == d->pot_saved) { // the first stage of a step: what they will be, roughly
        for (int32_t i = 0; i < net->unknowns; i++) {
            d->p_before[i] = 2 * d->latest[i] - d->before[i];
        }
    } else {
        memcpy(d->p_before, d->latest, (size_t)net->unknowns * sizeof *d->p_before);
    }
    crdi_network_spread(net, d->off, d->p_before);
    d->p0 = d->p_before;
}

// ---- solving -----------------------------------------------------------------------------------

// d->rc = r_a - A_al A_ll^-1 r_l, d->z = A_ll^-1 r_l
static void condense(crdi_nodal* d)
{
    const int32_t n = d->linear, m = d->active;
    const crdi_nodal_set* s = d->now;
    const double* r = d->r + n;
    double* rc = d->rc;
    if (n == 0) {
        memcpy(rc, r, (size_t)m * sizeof *rc);
        return;
    }
    if (n <= CRDI_DENSE_MOST && m > 0) {
        crdi_dense_apply(n + m, n, s->condense, d->r, d->z);
        for (int32_t i = 0; i < m; i++) {
            rc[i] = r[i] - d->z[n + i];
        }
        return;
    }
    memcpy(rc, r, (size_t)m * sizeof *rc);
    memcpy(d->z, d->r, (size_t)n * sizeof *d->z);
    crdi_linear_solve(&d->now->linear, d->z);
    for (size_t k = 0; k < d->al_count; k++) {
        const int32_t e = d->al[k];
        rc[d->all.row[e] - n] -= s->al_value[k] * d->z[d->all.column[e]];
    }
}

// u_l = A_ll^-1 (r_l - A_la u_a); r stays. All changes, and the potentials they lead to.
static void substitute(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const int32_t n = d->linear, m = d->active, ground = crdi_network_ground(net);
    const crdi_nodal_set* s = d->now;
    double* x = d->delta;
    if (n > 0 && n <= CRDI_DENSE_MOST) {
        double part[CRDI_DENSE_MOST + 4];
        crdi_dense_apply(n, m, s->back, d->ua, part);
        for (int32_t i = 0; i < n; i++) {
            x[i] = d->z[i] - part[i];
        }
    } else if (n > 0) {
        memcpy(x, d->r, (size_t)n * sizeof *x);
        for (size_t k = 0; k < d->la_count; k++) {
            const int32_t e = d->la[k];
            x[d->all.row[e]] -= s->la_value[k] * d->ua[d->all.column[e] - n];
        }
        crdi_linear_solve(&d->now->linear, x);
    }
    for (int32_t i = 0; i < m; i++) {
        x[n + i] = d->ua[i];
    }
    for (int32_t i = 0; i < n + m; i++) {
        d->pot[i] = d->p0[i] + x[i];
    }
    crdi_network_spread(net, d->off, d->pot);
    for (int32_t k = ground + 1; k <= ground + net->ties; k++) {
        x[k] = net->root[k] >= 0 ? x[net->root[k]] : 0;
    }
}

// What is looked for lies near where the last two steps point to; if not, where the last one ended.
static crd_status newton_from_guess(crdi_nodal* d, double t)
{
    const int32_t n = d->linear, m = d->active;
    for (int32_t i = 0; i < m; i++) {
        d->ua[i] = d->limited ? 0 : 2 * d->pot_saved[n + i] - d->before[n + i];
    }
    const crd_status st = crdi_nodal_newton(d, t);
    if (st != CRD_E_CONVERGENCE) { return st; }
    crdi_nodal_guess_again(d);
    for (int32_t i = 0; i < m; i++) {
        d->ua[i] = d->limited ? 0 : d->pot_saved[n + i];
    }
    return crdi_nodal_newton(d, t);
}

// Switches move between solutions, not within Newton's method; each move repeats the step.
static crd_status solve_with_devices(crdi_nodal* d, double t)
{
    condense(d);
    for (int pass = 0; pass < 10; pass++) {
        const crd_status st = newton_from_guess(d, t);
        if (st < 0) { return st; }
        substitute(d);
        // with stages inside the step they are looked at when it ends
        if (d->c->hold || d->c->opt.method == CRD_METHOD_TRBDF2) { break; }
        if (!crdi_nodal_switch(d, d->next)) { break; }
    }
    memcpy(d->before, d->pot_saved, (size_t)d->net.unknowns * sizeof *d->before);
    return CRD_OK;
}

static crd_status nodal_step_solve(crdi_nodal* d, double t)
{
    if (d->net.devices > 0) { return solve_with_devices(d, t); }
    crdi_linear_solve(&d->now->linear, d->r);
    memcpy(d->pot, d->r, (size_t)d->net.unknowns * sizeof *d->pot);
    crdi_network_spread(&d->net, d->off, d->pot);
    d->c->iterations++;
    return CRD_OK;
}

// ---- update ------------------------------------------------------------------------------------

// i1 = g v + j, vC1 = vC0 + S/w (i1 + i0), vL1 = v - R i1 - vC1, in place.
static void trapezoid_update(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const int32_t* restrict from = net->from + net->resistive, * restrict to =
                                                                   net->to + net->resistive;
    const double* restrict pot = d->pot, * restrict g = s->g, * restrict sw = s->sw;
    const double* restrict r = net->r + net->resistive, * restrict j = d->j;
    double* restrict i = d->i[0], * restrict vc = d->vc[0], * restrict vl = d->vl;
    for (int32_t k = 0; k < c; k++) {
        const double v = pot[from[k]] - pot[to[k]];
        i[k] = g[k] * v + j[k];
        vc[k] = v - r[k] * i[k];
    }
    for (int32_t k = c; k < n; k++) {
        const double v = pot[from[k]] - pot[to[k]], now = g[k] * v + j[k];
        vc[k] += sw[k] * (now + i[k]);
        i[k] = now;
        vl[k] = v - r[k] * now - vc[k];
    }
}

// i1 = g v + j, vC1 = S/w i1 + ec, vL1 = v - R i1 - vC1, into the spare arrays, which become the
// newest.
static void multistep_update(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const int32_t* restrict from = net->from + net->resistive, * restrict to =
                                                                   net->to + net->resistive;
    const double* restrict pot = d->pot, * restrict g = s->g, * restrict sw = s->sw;
    const double* restrict r = net->r + net->resistive, * restrict j = d->j, * restrict ec = d->ec;
    double* restrict i = d->i[CRDI_HISTORY], * restrict vc = d->vc[CRDI_HISTORY];
    double* restrict vl = d->vl;
    for (int32_t k = 0; k < c; k++) {
        const double v = pot[from[k]] - pot[to[k]];
        i[k] = g[k] * v + j[k];
        vc[k] = v - r[k] * i[k];
    }
    for (int32_t k = c; k < n; k++) {
        const double v = pot[from[k]] - pot[to[k]];
        i[k] = g[k] * v + j[k];
        vc[k] = sw[k] * i[k] + ec[k];
        vl[k] = v - r[k] * i[k] - vc[k];
    }
}

// After changes: either formula.
static void update_by_changes(crdi_nodal* d, bool trapezoid)
{
    const crdi_network* net = &d->net;
    const crdi_nodal_set* s = d->now;
    const int32_t c = net->capacitive - net->resistive, n = net->branches - net->resistive;
    const int32_t *from = net->from + net->resistive, *to = net->to + net->resistive;
    const double *pot = d->pot, *x = d->delta, *r = net->r + net->resistive;
    double *i = d->i[trapezoid ? 0 : CRDI_HISTORY], *vc = d->vc[trapezoid ? 0 : CRDI_HISTORY];
    for (int32_t k = 0; k < n; k++) {
        const double v = pot[from[k]] - pot[to[k]];
        const double now = d->j[k] + s->g[k] * (x[from[k]] - x[to[k]]);
        if (k < c) {
            vc[k] = v - r[k] * now;
        } else {
            vc[k] = trapezoid ? vc[k] + s->sw[k] * (now + i[k]) : s->sw[k] * now + d->ec[k];
            d->vl[k] = v - r[k] * now - vc[k];
        }
        i[k] = now;
    }
}

static void update_rows(crdi_nodal* d, double* i, double* vc)
{
    const crdi_network* net = &d->net;
    for (int32_t k = 0; k < net->rows; k++) {
        const crdi_row* r = &net->row[k];
        if (r->state < 0) { continue; }
        const double v = d->pot[r->from] - d->pot[r->to];
        i[r->state] = d->pot[r->unknown];
        vc[r->state] = r->capacitor ? v : 0;
        d->vl[r->state] = r->capacitor ? 0 : v;
    }
}

// The spare arrays become the newest, the oldest ones spare.
static void nodal_step_rotate(double** x)
{
    double* spare = x[CRDI_HISTORY];
    for (int k = CRDI_HISTORY; k > 0; k--) {
        x[k] = x[k - 1];
    }
    x[0] = spare;
}

static void copy_newest(crdi_nodal* d) // a copy of the newest comes before it
{
    const size_t size = (size_t)d->net.states * sizeof(double);
    memcpy(d->i[CRDI_HISTORY], d->i[0], size);
    memcpy(d->vc[CRDI_HISTORY], d->vc[0], size);
    nodal_step_rotate(d->i);
    nodal_step_rotate(d->vc);
}

static void update(crdi_nodal* d, const formula* f)
{
    if (d->limited) {
        update_by_changes(d, f->order == 0);
    } else if (f->order == 0) {
        trapezoid_update(d);
    } else {
        multistep_update(d);
    }
    if (f->order > 0) {
        nodal_step_rotate(d->i);
        nodal_step_rotate(d->vc);
    }
    if (d->net.rows > 0) { update_rows(d, d->i[0], d->vc[0]); }
    if (d->net.devices > 0) { crdi_nodal_settle(d, f->w[0]); }
    d->ties_known = false;
}

// ---- methods -----------------------------------------------------------------------------------

void crdi_nodal_sources(crdi_nodal* d, double t, bool all)
{
    const int32_t count = all ? d->net.sources : d->varying_count;
    crdi_circuit_move_inputs(d->c, t);
    for (int32_t k = 0; k < count; k++) {
        const int32_t s = all ? k : d->varying[k];
        d->source[s] = d->wave[s] ? crd_waveform_eval(d->wave[s], t, d->c->inputs) : 0;
    }
    if (all || count > 0) { crdi_network_offsets(&d->net, d->source, d->off); }
}

// The trapezoidal rule where d->few: from histories straight to z and rc, and potentials are what
// is solved for.
static crd_status few_stage(crdi_nodal* d, double w, double t)
{
    const int32_t n = d->linear, m = d->active, states = d->net.states;
    const crdi_nodal_set* s = d->now;
    trapezoid_history(d);
    crdi_dense_apply_to(n + m, states, s->direct, d->j, s->offset, d->z);
    for (int32_t i = 0; i < m; i++) {
        d->rc[i] = d->z[n + i];
    }
    d->p0 = d->off;
    const crd_status st = newton_from_guess(d, t);
    if (st < 0) { return st; }
    double part[CRDI_DENSE_MOST + 4], *restrict pot = d->pot;
    const double* restrict z = d->z;
    crdi_dense_apply(n, m, s->back, d->ua, part);
    for (int32_t i = 0; i < n; i++) {
        pot[i] = z[i] - part[i];
    }
    for (int32_t i = 0; i < m; i++) {
        pot[n + i] = d->ua[i];
    }
    crdi_network_spread(&d->net, d->off, pot);
    memcpy(d->before, d->pot_saved, (size_t)d->net.unknowns * sizeof *d->before);
    trapezoid_update(d);
    crdi_nodal_settle(d, w);
    d->ties_known = false;
    d->latest = d->pot;
    return CRD_OK;
}

// One formula over one stretch that ends at t.
static crd_status stage(crdi_nodal* d, const formula* f, double t)
{
    crd_status st = d->now->w == f->w[0] ? CRD_OK : crdi_nodal_choose(d, f->w[0]);
    if (st < 0) { return st; }
    if (d->few && f->order == 0) { return few_stage(d, f->w[0], t); }
    if (d->net.devices > 0) { crdi_nodal_charges(d, f->w, f->order == 0); }
    if (d->limited) {
        start_from_latest(d, t);
        residual(d, f);
    } else {
        crdi_nodal_sources(d, t, false);
        right_hand_side(d, f);
        d->p0 = d->off;
    }
    st = nodal_step_solve(d, t);
    if (st < 0) { return st; }
    update(d, f);
    d->latest = d->pot;
    return CRD_OK;
}

// x1' = 2/h (x1 - x0) - x0'
static crd_status trapezoid(crdi_nodal* d, double t1, double h, bool kept)
{
    const formula f = {.w = {2 / h}};
    if (kept) { copy_newest(d); }
    return stage(d, &f, t1);
}

// TR over g h, then BDF2 over the rest (method.c).
static crd_status trbdf2(crdi_nodal* d, double t0, double t1, double h)
{
    const crdi_trbdf2 m = crdi_trbdf2_of(h);
    const formula first = {.w = {m.w}};
    const formula second = {.order = 2, .w = {m.w, m.middle, m.first}};
    copy_newest(d);
    crd_status st = stage(d, &first, t0 + m.g * h);
    if (st == CRD_OK) { st = stage(d, &second, t1); }
    if (st < 0) { return st; }
    // i[1] is what was inside the step; what counts as history is i[2], its beginning
    double *i = d->i[1], *vc = d->vc[1];
    for (int k = 1; k < CRDI_HISTORY; k++) {
        d->i[k] = d->i[k + 1];
        d->vc[k] = d->vc[k + 1];
    }
    d->i[CRDI_HISTORY] = i;
    d->vc[CRDI_HISTORY] = vc;
    for (int32_t k = 0; k < d->net.devices; k++) {
        d->state[k].q[1] = d->state[k].q[2];
    }
    return CRD_OK;
}

static crd_status nodal_step_advance(crdi_nodal* d)
{
    const crd_circuit* c = d->c;
    const double t0 = crdi_circuit_time(c, 0), t1 = crdi_circuit_time(c, 1), h = c->opt.step;
    switch (c->opt.method) {
    case CRD_METHOD_BDF1:
    case CRD_METHOD_BDF2:
    case CRD_METHOD_BDF3: {
        const int order = (int)c->opt.method - (int)CRD_METHOD_BDF1 + 1;
        const bool started = c->since >= crdi_start_steps(&c->opt, order);
        if (started && crdi_nodal_ladder_can(d)) { return crdi_nodal_ladder_step(d, t1); }
        crdi_nodal_ladder_leave(d);
        if (!started) { return trapezoid(d, t1, h, true); }
        formula f = {.order = order};
        crdi_bdf_weights(order, h, d->age, f.w);
        return stage(d, &f, t1);
    }
    case CRD_METHOD_TRBDF2:
        crdi_nodal_ladder_leave(d);
        return trbdf2(d, t0, t1, h);
    default: // only variable steps look further back
        if (crdi_nodal_ladder_can(d)) { return crdi_nodal_ladder_step(d, t1); }
        crdi_nodal_ladder_leave(d);
        return trapezoid(d, t1, h, c->control != NULL);
    }
}

static void exchange_potentials(crdi_nodal* d)
{
    double* pot = d->pot;
    d->pot = d->pot_saved;
    d->pot_saved = pot;
}

// What a step may leave half done when a device does not settle. Potentials are all new after it.
static void remember(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    for (int32_t k = 0; k < d->varying_count; k++) {
        d->source_saved[k] = d->source[d->varying[k]];
    }
    if (d->laws) { memcpy(d->room_saved, d->room, d->room_count * sizeof *d->room); }
    d->theta_saved = d->theta;
    if (d->c->opt.method == CRD_METHOD_TRBDF2) {
        memcpy(d->vl_saved, d->vl, (size_t)net->states * sizeof *d->vl);
        memcpy(d->state_saved, d->state, (size_t)net->devices * sizeof *d->state);
        memcpy(d->before_saved, d->before, (size_t)net->unknowns * sizeof *d->before);
    }
}

static void go_back(crdi_nodal* d)
{
    const crdi_network* net = &d->net;
    for (int32_t k = 0; k < d->varying_count; k++) {
        d->source[d->varying[k]] = d->source_saved[k];
    }
    if (d->laws) { memcpy(d->room, d->room_saved, d->room_count * sizeof *d->room); }
    d->theta = d->theta_saved;
    crdi_network_offsets(net, d->source, d->off);
    if (d->c->opt.method == CRD_METHOD_TRBDF2) {
        memcpy(d->vl, d->vl_saved, (size_t)net->states * sizeof *d->vl);
        memcpy(d->state, d->state_saved, (size_t)net->devices * sizeof *d->state);
        memcpy(d->before, d->before_saved, (size_t)net->unknowns * sizeof *d->before);
    }
    d->ties_known = false;
}

// `copy_newest` made a copy to be overwritten: back to the original.
static void turn_back(crdi_nodal* d, const double* i)
{
    while (d->i[0] != i) {
        double *x = d->i[0], *y = d->vc[0];
        for (int k = 0; k < CRDI_HISTORY; k++) {
            d->i[k] = d->i[k + 1];
            d->vc[k] = d->vc[k + 1];
        }
        d->i[CRDI_HISTORY] = x;
        d->vc[CRDI_HISTORY] = y;
    }
}

void crdi_nodal_flatten(crdi_nodal* d)
{
    for (int k = 1; k < CRDI_HISTORY; k++) {
        memcpy(d->i[k], d->i[0], (size_t)d->net.states * sizeof(double));
        memcpy(d->vc[k], d->vc[0], (size_t)d->net.states * sizeof(double));
        d->age[k - 1] = k * d->c->opt.step;
    }
    for (int32_t k = 0; k < d->net.devices; k++) {
        crdi_device_state* s = &d->state[k];
        s->q[1] = s->q[2] = s->q[0];
        s->v[1] = s->v[2] = s->v[3] = s->v[0];
        const crdi_device* e = &d->device[k];
        if (e->table) { memset(e->memory, 0, crdi_law_numbers(e->table) * sizeof *e->memory); }
    }
    if (d->net.devices > 0) {
        memcpy(d->before, d->pot, (size_t)d->net.unknowns * sizeof *d->before);
    }
    d->theta = 1;
}

// One step, and again from its beginning for every switch that its end moves.
static crd_status step_with_devices(crdi_nodal* d)
{
    crd_circuit* c = d->c;
    const double* newest = d->i[0];
    remember(d);
    for (int pass = 0;; pass++) {
        exchange_potentials(d);
        d->latest = d->pot_saved;
        const crd_status st = nodal_step_advance(d);
        if (st == CRD_OK && (c->hold || c->opt.method != CRD_METHOD_TRBDF2)) { return st; }
        if (st == CRD_OK && (!crdi_nodal_switch(d, d->state) || pass == 9)) { return st; }
        for (int32_t k = 0; k < d->net.devices; k++) {
            d->next[k].closed = d->state[k].closed;
        }
        turn_back(d, newest);
        exchange_potentials(d);
        go_back(d);
        if (st < 0) { return st; }
        for (int32_t k = 0; k < d->net.devices; k++) {
            d->state[k].closed = d->next[k].closed;
        }
    }
}

// Values that die out become subnormal, which costs a hundred times: then they are flushed to zero.
// To switch that on and off has its price too, so small circuits are looked at first.
#ifdef HAS_MXCSR
static inline __m128d dying_of(__m128d x)
{
    const __m128d size = _mm_andnot_pd(_mm_set1_pd(-0.0), x);
    return _mm_and_pd(_mm_cmplt_pd(size, _mm_set1_pd(1e-280)), _mm_cmpneq_pd(x, _mm_setzero_pd()));
}

static bool has_dying(const crdi_nodal* d)
{
    const double *i = d->i[0], *vc = d->vc[0];
    __m128d dying = _mm_setzero_pd();
    for (int32_t k = 0; k < d->net.states; k++) {
        dying = _mm_or_pd(dying, dying_of(_mm_set_pd(i[k], vc[k])));
    }
    return _mm_movemask_pd(dying) != 0;
}
#endif

crd_status crdi_nodal_step(crd_circuit* c)
{
    crdi_nodal* d = c->self;
#ifdef HAS_MXCSR
    const bool flush = d->net.states >= 16 || has_dying(d);
    const unsigned control = flush ? _mm_getcsr() : 0;
    if (flush) { _mm_setcsr(control | 0x8040u); } // flush to zero, denormals are zero
#endif
    c->iterations = 0;
    const double* newest = d->i[0];
    const crd_status st = d->net.devices > 0 ? step_with_devices(d) : nodal_step_advance(d);
    if (st == CRD_OK) {
        d->age[1] = d->age[0] + c->opt.step;
        d->age[0] = c->opt.step;
    } else {
        turn_back(d, newest);
    }
#ifdef HAS_MXCSR
    if (flush) { _mm_setcsr(control); }
#endif
    return st;
}
