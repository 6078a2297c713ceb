// Steps of the reference form. Every method solves
//     Phi(x_i, t_i) = 0,   sum_j W_ij A x_j + s_i + b(x_i) = 0       for its stages i
// by Newton's method; they differ in W, in s and in t_i.
#include "circuit/dae.h"
#include "circuit/small.h"
#include "shared/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- coefficients ------------------------------------------------------------------------------

static int stages_of(crd_circuit_method method)
{
    return method == CRD_METHOD_GAUSS2 ? 2 : method == CRD_METHOD_GAUSS4 ? 4 : 1;
}

// Weights w with sum_j w_j c_j^k = want_k, k < s
static crd_status moments(int s, const double* c, const double* wanted, double* w)
{
    double a[CRDI_STAGES * CRDI_STAGES];
    for (int k = 0; k < s; k++) {
        for (int j = 0; j < s; j++) {
            a[k * s + j] = pow(c[j], k);
        }
        w[k] = wanted[k];
    }
    return crdi_small_solve(s, a, w);
}

// Gauss-Legendre: nodes c, weights b, and W = a^-1 of a_ij = integral of the j-th basis polynomial
// from 0 to c_i.
static crd_status make_gauss(crdi_dae* d)
{
    const int s = d->stages;
    double a[CRDI_STAGES][CRDI_STAGES], wanted[CRDI_STAGES];
    crd_status st = CRD_OK;
    if (s == 2) {
        d->gauss_c[0] = 0.5 - sqrt(3) / 6;
        d->gauss_c[1] = 0.5 + sqrt(3) / 6;
    } else {
        const double far = 0.5 * sqrt(3. / 7 + 2. / 7 * sqrt(6. / 5));
        const double near = 0.5 * sqrt(3. / 7 - 2. / 7 * sqrt(6. / 5));
        const double c[4] = {0.5 - far, 0.5 - near, 0.5 + near, 0.5 + far};
        memcpy(d->gauss_c, c, sizeof c);
    }
    for (int i = 0; i <= s; i++) {
        const double to = i < s ? d->gauss_c[i] : 1;
        for (int k = 0; k < s; k++) {
            wanted[k] = pow(to, k + 1) / (k + 1);
        }
        CRD_TRY(moments(s, d->gauss_c, wanted, i < s ? a[i] : d->gauss_b));
    }
    for (int k = 0; k < s; k++) {
        wanted[k] = 1;
    }
    CRD_TRY(moments(s, d->gauss_c, wanted, d->gauss_end));
    for (int j = 0; j < s; j++) {
        double copy[CRDI_STAGES * CRDI_STAGES], unit[CRDI_STAGES] = {0};
        for (int i = 0; i < s * s; i++) {
            copy[i] = a[i / s][i % s];
        }
        unit[j] = 1;
        CRD_TRY(crdi_small_solve(s, copy, unit));
        for (int i = 0; i < s; i++) {
            d->gauss_w[i][j] = unit[i];
        }
    }
fail:
    return st;
}

crd_status crdi_dae_methods(crdi_dae* d)
{
    crd_context* ctx = d->c->ctx;
    d->stages = stages_of(d->c->opt.method);
    return d->stages == 1      ? CRD_OK
           : make_gauss(d) < 0 ? crdi_fail(ctx, CRD_E_CONVERGENCE, "circuit: no coefficients")
                               : CRD_OK;
}

// ---- Newton ------------------------------------------------------------------------------------

crd_status crdi_dae_stuck(const crdi_dae* d, double t, const char* how)
{
    const crd_netlist* n = d->c->n;
    const int32_t part = d->column_part[d->worst];
    return crdi_fail(d->c->ctx, CRD_E_CONVERGENCE, "%s: at t = %g s %s; it is about %s %s",
                     crdi_part_place(n, part).text, t, how, part >= 0 ? "the part" : "node",
                     crdi_clip(part >= 0 ? crdi_part_name(n, part) : n->nodes[-1 - part]).text);
}

double crdi_dae_change(crdi_dae* d, const double* x, const double* delta, int32_t count)
{
    double large[3] = {1e-6, 1e-9, 1e-15}; // volts, amperes, coulombs that always count as small
    for (int32_t i = 0; i < count; i++) {
        double* top = &large[d->column_kind[i % d->n]];
        *top = fmax(*top, fabs(x[i]));
        // at the beginning all may be 0, but not for long
        if (d->leak > 0) { *top = fmax(*top, fabs(d->rate[i % d->n]) * d->c->opt.step); }
    }
    double worst = 0;
    memset(d->changes, 0, sizeof d->changes);
    for (int32_t i = 0; i < count; i++) {
        const int kind = d->column_kind[i % d->n];
        const double change = fabs(delta[i]) / large[kind];
        if (!(change <= d->changes[kind])) { d->changes[kind] = change; } // NaN too
        if (!(change <= worst)) {
            worst = change;
            d->worst = i % d->n;
        }
    }
    return worst;
}

// The residual of all stages, minus sign, and the entries of its derivative:
//     [Phi(x_i); sum_j W_ij A x_j + s_i + b(x_i)]  and  [Phi_x; b_x] at (i, i), W_ij A at (i, j).
static void assemble(crdi_dae* d, const double* times)
{
    const size_t n = (size_t)d->n, p = (size_t)d->p, s = (size_t)d->stages;
    double* entry = d->newton_values;
    for (size_t i = 0; i < s; i++) {
        crdi_dae_multiply(d, d->next + i * n, d->product + i * p);
    }
    for (size_t i = 0; i < s; i++) {
        double* r = d->residual + i * n;
        crdi_dae_eval(d, d->next + i * n, times[i], d->limits + i * (size_t)d->diodes, r);
        memcpy(entry, d->j.value, d->j.count * sizeof *entry);
        entry += d->j.count;
        for (size_t k = 0; k < p; k++) {
            double sum = d->history[i * p + k];
            for (size_t j = 0; j < s; j++) {
                sum += d->weights[i][j] * d->product[j * p + k];
            }
            r[(size_t)d->m + k] += sum;
        }
        for (size_t k = 0; k < n; k++) {
            r[k] = -r[k];
        }
    }
    for (size_t i = 0; i < s; i++) {
        for (size_t j = 0; j < s; j++) {
            for (size_t k = 0; k < d->a.count; k++) {
                *entry++ = d->weights[i][j] * d->a.value[k];
            }
        }
    }
}

static crd_status factor(crdi_dae* d, double t)
{
    const int again = d->c->opt.refactor;
    if (d->linear && d->factored && again == 0) { return CRD_OK; }
    crd_status st = crdi_sparse_factor(&d->newton, d->newton_values);
    for (int i = 1; i < again && st == CRD_OK; i++) {
        st = crdi_sparse_factor(&d->newton, d->newton_values);
    }
    d->c->counts.factorisations++;
    d->factored = st == CRD_OK;
    if (st == CRD_E_CONVERGENCE) {
        const int at = d->newton.common.singular_col;
        d->worst = at >= 0 && at < d->newton.n ? at % d->n : 0;
        return crdi_dae_stuck(d, t,
                              "the equations are singular: nothing determines it, or controlled "
                              "sources and negative values take it back");
    }
    return st;
}

bool crdi_dae_finite(crdi_dae* d, const double* f, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (!isfinite(f[i])) {
            const int32_t part = d->row_part[i % d->n];
            d->worst = part >= 0 ? d->part[part].current : -1 - part;
            return false;
        }
    }
    return true;
}

crd_status crdi_dae_undefined(crdi_dae* d, const double* x, double t)
{
    const crd_netlist* n = d->c->n;
    const int32_t part = d->column_part[d->worst];
    const crd_expression* e = part >= 0 ? crdi_part_law(n, &n->parts[part]) : NULL;
    if (!e) { return crdi_dae_stuck(d, t, "the equations have no value"); }
    const double value = crdi_dae_expression(d, e, x, t, d->gradient);
    const crd_use* uses;
    char with[80] = "";
    if (crd_expression_uses(e, &uses) > 0) {
        snprintf(with, sizeof with, " where it uses %s%.40s%s = %g",
                 uses[0].kind == CRD_USE_CURRENT ? "i("
                 : uses[0].kind == CRD_USE_INPUT ? ""
                                                 : "v(",
                 uses[0].kind == CRD_USE_CURRENT ? crdi_part_name(n, uses[0].a)
                 : uses[0].kind == CRD_USE_INPUT ? n->inputs[uses[0].a].name
                                                 : n->nodes[uses[0].a],
                 uses[0].kind == CRD_USE_INPUT  ? ""
                 : uses[0].kind == CRD_USE_PAIR ? ",...)"
                                                : ")",
                 d->values[0]);
    }
    return crdi_fail(d->c->ctx, CRD_E_CONVERGENCE, "%s: at t = %g s the expression of %s is %g%s%s",
                     crdi_part_place(n, part).text, t, crdi_clip(crdi_part_name(n, part)).text,
                     value, isfinite(value) ? ", and its slope has no value," : "", with);
}

static crd_status not_converged(const crdi_dae* d, double t)
{
    char how[160];
    const int32_t part = d->column_part[d->worst];
    const bool diode = part >= 0 && crdi_part_kind_of(&d->c->n->parts[part])->limit;
    snprintf(how, sizeof how,
             "Newton's method did not converge in %d iterations (a shorter step%s may help)",
             d->c->opt.max_iterations, diode ? ", or rs and cjo of its model," : "");
    return crdi_dae_stuck(d, t, how);
}

// d->next is the guess and becomes the solution.
static crd_status newton(crdi_dae* d, const double* times)
{
    const crd_circuit_options* o = &d->c->opt;
    const int32_t size = d->stages * d->n;
    const double t = times[d->stages - 1];
    double before = (double)INFINITY;
    for (int i = 0; i < d->stages; i++) {
        memcpy(d->limits + i * d->diodes, d->limit, (size_t)d->diodes * sizeof *d->limit);
    }
    for (int k = 1; k <= o->max_iterations; k++) {
        assemble(d, times);
        if (!crdi_dae_finite(d, d->residual, size)) { return crdi_dae_undefined(d, d->next, t); }
        const crd_status st = factor(d, t);
        if (st < 0) { return st; }
        crdi_sparse_solve(&d->newton, d->residual);
        bool limited = false;
        for (int32_t i = 0; i < size; i++) {
            d->next[i] += d->residual[i];
        }
        if (!crdi_dae_finite(d, d->next, size)) {
            return crdi_dae_stuck(d, t, "the iteration ran away");
        }
        const double change = crdi_dae_change(d, d->next, d->residual, size);
        // what is small and does not get smaller is rounding
        bool settled = change <= o->tolerance || (change < 1e-7 && change > 0.3 * before);
        // Where nothing moves, all currents (or voltages) are rounding, however large that is
        // against themselves: what the others stand still with.
        settled |=
            k >= 4 && change > 0.3 * before && fmin(d->changes[0], d->changes[1]) <= o->tolerance;
        before = change;
        if (!settled && k >= 10 && d->diodes) {
            settled = true;
            for (int i = 0; i < d->stages; i++) {
                settled &= crdi_dae_at_rounding(d, d->next + i * d->n, d->limits + i * d->diodes);
            }
        }
        for (int i = 0; i < d->stages; i++) {
            limited |= crdi_dae_limit(d, d->next + i * d->n, d->limits + i * d->diodes, &d->worst);
        }
        d->c->iterations++;
        if (!o->fixed_iterations && (d->linear || (settled && !limited))) { break; }
        if (k == o->max_iterations && !o->fixed_iterations) { return not_converged(d, t); }
    }
    memcpy(d->limit, d->limits + (d->stages - 1) * d->diodes, (size_t)d->diodes * sizeof *d->limit);
    return CRD_OK;
}

// ---- methods -----------------------------------------------------------------------------------

static void set_weight(crdi_dae* d, int i, int j, double w)
{
    if (d->weights[i][j] != w) { d->factored = false; }
    d->weights[i][j] = w;
}

// s += factor * A x
static void dae_step_add_product(crdi_dae* d, double factor, const double* x)
{
    crdi_dae_multiply(d, x, d->product);
    for (int32_t i = 0; i < d->p; i++) {
        d->history[i] += factor * d->product[i];
    }
}

// s += b(x)
static void add_rate(crdi_dae* d, const double* x, double t)
{
    crdi_dae_eval(d, x, t, d->limit, d->residual);
    for (int32_t i = 0; i < d->p; i++) {
        d->history[i] += d->residual[d->m + i];
    }
}

static void dae_step_guess(crdi_dae* d, const double* x)
{
    for (int i = 0; i < d->stages; i++) {
        memcpy(d->next + i * d->n, x, (size_t)d->n * sizeof *x);
    }
    memset(d->history, 0, (size_t)(d->stages * d->p) * sizeof *d->history);
}

void crdi_dae_flatten(crdi_dae* d)
{
    for (int i = 1; i < 3; i++) {
        memcpy(d->x[i], d->x[0], (size_t)d->n * sizeof(double));
        d->age[i - 1] = i * d->c->opt.step;
    }
}

// sum w_j A x_j + b(x1) = 0
static crd_status bdf(crdi_dae* d, int order, double t1, double h)
{
    double w[4];
    crdi_bdf_weights(order, h, d->age, w);
    dae_step_guess(d, d->x[0]);
    set_weight(d, 0, 0, w[0]);
    for (int k = 1; k <= order; k++) {
        dae_step_add_product(d, w[k], d->x[k - 1]);
    }
    return newton(d, &t1);
}

crd_status crdi_dae_settle(crdi_dae* d, double t)
{
    const double h = 1e-6 * d->c->opt.step;
    crd_status st = CRD_OK;
    for (int i = 1; i <= 2 && st == CRD_OK; i++) {
        st = bdf(d, 1, t + i * h, h);
        if (st == CRD_OK) { memcpy(d->x[0], d->next, (size_t)d->n * sizeof(double)); }
    }
    return st;
}

crd_status crdi_dae_solvable(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    const klu_symbolic* s = d->newton.symbolic;
    const double times[CRDI_STAGES] = {0};
    if (s->structural_rank == s->n) { return CRD_OK; }
    for (int i = 0; i < d->stages; i++) {
        d->weights[i][i] = 1;
    }
    assemble(d, times);
    if (crdi_sparse_factor(&d->newton, d->newton_values) == CRD_E_MEMORY) { return CRD_E_MEMORY; }
    d->factored = false;
    const int at = d->newton.common.singular_col;
    const int32_t part = d->column_part[at >= 0 && at < d->newton.n ? at % d->n : 0];
    return crdi_fail(d->c->ctx, CRD_E_RANGE,
                     "%s: nothing determines %s %s: a controlled source repeats or takes back what "
                     "others say",
                     crdi_part_place(n, part).text, part >= 0 ? "the current of" : "the voltage of",
                     crdi_clip(part >= 0 ? crdi_part_name(n, part) : n->nodes[-1 - part]).text);
}

// A (x1 - x0) 2/h + b(x1) + b(x0) = 0: derivatives are not carried.
static crd_status trapezoid(crdi_dae* d, double t0, double t1, double h)
{
    dae_step_guess(d, d->x[0]);
    set_weight(d, 0, 0, 2 / h);
    dae_step_add_product(d, -2 / h, d->x[0]);
    add_rate(d, d->x[0], t0);
    return newton(d, &t1);
}

// Eq. (3.16), x1' = 2/h (x1 - x0) - x0': x' belongs to the state.
static crd_status trapezoid_carried(crdi_dae* d, double t1, double h)
{
    dae_step_guess(d, d->x[0]);
    set_weight(d, 0, 0, 2 / h);
    dae_step_add_product(d, -2 / h, d->x[0]);
    dae_step_add_product(d, -1, d->rate);
    const crd_status st = newton(d, &t1);
    if (st < 0) { return st; }
    for (int32_t i = 0; i < d->n; i++) {
        d->rate[i] = 2 / h * (d->next[i] - d->x[0][i]) - d->rate[i];
    }
    return d->c->opt.projection > 0 ? crdi_dae_project(d, d->next, t1) : CRD_OK;
}

// TR over g h, then BDF2 over the rest (method.c).
static crd_status trbdf2(crdi_dae* d, double t0, double t1, double h)
{
    const crdi_trbdf2 m = crdi_trbdf2_of(h);
    const double tg = t0 + m.g * h;
    dae_step_guess(d, d->x[0]);
    set_weight(d, 0, 0, m.w);
    dae_step_add_product(d, -m.w, d->x[0]);
    add_rate(d, d->x[0], t0);
    const crd_status st = newton(d, &tg);
    if (st < 0) { return st; }
    memcpy(d->middle, d->next, (size_t)d->n * sizeof *d->middle);
    dae_step_guess(d, d->middle);
    dae_step_add_product(d, m.middle, d->middle);
    dae_step_add_product(d, m.first, d->x[0]);
    return newton(d, &t1);
}

// Stages: A (x_i - x0) = h sum_j a_ij (-b(x_j)), that is sum_j W_ij / h A (x_j - x0) + b(x_i) = 0,
// W = a^-1. Then the end: A x1 = A x0 - h sum_i b_i b(x_i) from the quadrature, the rest from Phi =
// 0, and what neither says (currents of capacitors across a source) from the polynomial through the
// stages.
static crd_status gauss(crdi_dae* d, double t0, double t1, double h)
{
    const int s = d->stages;
    double times[CRDI_STAGES];
    dae_step_guess(d, d->x[0]);
    crdi_dae_multiply(d, d->x[0], d->product);
    for (int i = 0; i < s; i++) {
        times[i] = t0 + d->gauss_c[i] * h;
        double sum = 0;
        for (int j = 0; j < s; j++) {
            set_weight(d, i, j, d->gauss_w[i][j] / h);
            sum += d->gauss_w[i][j] / h;
        }
        for (int32_t k = 0; k < d->p; k++) {
            d->history[i * d->p + k] = -sum * d->product[k];
        }
    }
    const crd_status st = newton(d, times);
    if (st < 0) { return st; }
    crdi_dae_multiply(d, d->x[0], d->target);
    memset(d->middle, 0, (size_t)d->n * sizeof *d->middle);
    for (int i = 0; i < s; i++) {
        const double* x = d->next + i * d->n;
        crdi_dae_eval(d, x, times[i], d->limit, d->residual);
        for (int32_t k = 0; k < d->p; k++) {
            d->target[k] -= h * d->gauss_b[i] * d->residual[d->m + k];
        }
        for (int32_t k = 0; k < d->n; k++) {
            d->middle[k] += d->gauss_end[i] * x[k];
        }
    }
    memcpy(d->next, d->middle, (size_t)d->n * sizeof *d->next);
    return crdi_dae_pull(d, d->next, t1);
}

static crd_status dae_step_advance(crdi_dae* d)
{
    const crd_circuit* c = d->c;
    const double t0 = crdi_circuit_time(c, 0), t1 = crdi_circuit_time(c, 1), h = c->opt.step;
    switch (c->opt.method) {
    case CRD_METHOD_BDF1:
    case CRD_METHOD_BDF2:
    case CRD_METHOD_BDF3: {
        const int order = (int)c->opt.method - (int)CRD_METHOD_BDF1 + 1;
        return c->since < crdi_start_steps(&c->opt, order) ? trapezoid(d, t0, t1, h)
                                                           : bdf(d, order, t1, h);
    }
    case CRD_METHOD_TR:
        return trapezoid(d, t0, t1, h);
    case CRD_METHOD_TR_CARRIED:
        return trapezoid_carried(d, t1, h);
    case CRD_METHOD_TRBDF2:
        return trbdf2(d, t0, t1, h);
    default:
        return gauss(d, t0, t1, h);
    }
}

// Switches move between solutions, not within Newton's method; each move repeats the step.
crd_status crdi_dae_step(crd_circuit* c)
{
    crdi_dae* d = c->self;
    const size_t n = (size_t)d->n;
    memcpy(d->saved, d->state, d->state_count * sizeof *d->state);
    c->iterations = 0;
    for (int pass = 0; pass < 10; pass++) {
        const crd_status st = dae_step_advance(d);
        if (st < 0) {
            memcpy(d->state, d->saved, d->state_count * sizeof *d->state);
            return st;
        }
        if (c->hold || !crdi_dae_switch(d, d->next)) { break; }
        d->factored = d->projected = false;
        memcpy(d->rate, d->saved + (d->rate - d->state), n * sizeof *d->rate);
    }
    memcpy(d->x[2], d->x[1], n * sizeof(double));
    memcpy(d->x[1], d->x[0], n * sizeof(double));
    memcpy(d->x[0], d->next, n * sizeof(double));
    d->age[1] = d->age[0] + c->opt.step;
    d->age[0] = c->opt.step;
    return CRD_OK;
}
