// L(s) of a loop or a network, its derivative, and the poles that need no iteration.
#include "analysis/loop.h"

#include "shared/num.h"

// ---- checks ------------------------------------------------------------------------------------

static crd_status loop_check_numbers(crd_context* ctx, const char* what, const double* x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return crdi_fail(ctx, CRD_E_RANGE, "%s: number %lld is %g, expected a number", what,
                             (long long)i + 1, x[i]);
        }
    }
    return CRD_OK;
}

static crd_status check_transfer(crd_context* ctx, const crd_transfer* t, int i)
{
    if (t->num_degree < 0 || t->den_degree < 0 || t->num_degree > 100 || t->den_degree > 100) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "transfer function %d has degrees %d over %d, expected 0 to 100", i + 1,
                         t->num_degree, t->den_degree);
    }
    crd_status st = loop_check_numbers(ctx, "numerator", t->num, t->num_degree + 1);
    if (st >= 0) { st = loop_check_numbers(ctx, "denominator", t->den, t->den_degree + 1); }
    if (st >= 0 && t->den[t->den_degree] == 0) {
        st = crdi_fail(ctx, CRD_E_RANGE,
                       "transfer function %d: the highest coefficient of its denominator is 0",
                       i + 1);
    }
    return st;
}

static crd_status loop_check_network(crd_context* ctx, const crd_plant* n, double dT)
{
    crd_status st = CRD_OK;
    if (n->states < 0 || n->inputs < 1 || n->outputs < 1 || n->states > 1000 || n->inputs > 1000 ||
        n->outputs > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the network has %d states, %d inputs, %d outputs, expected up to 1000 of "
                         "each and at least one input and output",
                         n->states, n->inputs, n->outputs);
    }
    CRD_TRY(loop_check_numbers(ctx, "matrix A", n->A, (int64_t)n->states * n->states));
    CRD_TRY(loop_check_numbers(ctx, "matrix B", n->B, (int64_t)n->states * n->inputs));
    CRD_TRY(loop_check_numbers(ctx, "matrix C", n->C, (int64_t)n->outputs * n->states));
    if (n->D) {
        CRD_TRY(loop_check_numbers(ctx, "matrix D", n->D, (int64_t)n->outputs * n->inputs));
    }
    for (int i = 0; i < n->link_count; i++) {
        const crd_plant_link* l = &n->links[i];
        if (l->from < 0 || l->from >= n->outputs || l->to < 0 || l->to >= n->inputs) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "link %d goes from output %d to input %d, expected below %d and %d",
                             i + 1, l->from, l->to, n->outputs, n->inputs);
        }
        if (!isfinite(l->gain) || !(l->delay >= 0 && isfinite(l->delay))) {
            return crdi_fail(
                ctx, CRD_E_RANGE,
                "link %d has the gain %g and the delay %g s, expected numbers and >= 0", i + 1,
                l->gain, l->delay);
        }
        if (l->element) {
            CRD_TRY(crdi_check_step(ctx, dT));
            CRD_TRY(crd_analysis_check(ctx, l->element));
        }
    }
fail:
    return st;
}

static crd_status check_loop(crd_context* ctx, const crd_loop* loop)
{
    crd_status st = CRD_OK;
    if (loop->network) { return loop_check_network(ctx, loop->network, loop->dT); }
    if (loop->transfer_count < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "the loop has no transfer function");
    }
    int64_t num = 0, den = 0;
    for (int i = 0; i < loop->transfer_count; i++) {
        CRD_TRY(check_transfer(ctx, &loop->transfers[i], i));
        num += loop->transfers[i].num_degree;
        den += loop->transfers[i].den_degree;
    }
    if (num > den || den > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the transfer functions of the loop have degree %lld over %lld together, "
                         "expected a proper one of at most 1000",
                         (long long)num, (long long)den);
    }
    for (int i = 0; i < loop->element_count; i++) {
        CRD_TRY(crdi_check_step(ctx, loop->dT));
        CRD_TRY(crd_analysis_check(ctx, loop->elements[i]));
    }
    if (!(loop->delay >= 0 && isfinite(loop->delay))) {
        return crdi_fail(ctx, CRD_E_RANGE, "the delay of the loop is %g s, expected >= 0",
                         loop->delay);
    }
fail:
    return st;
}

crd_status crdi_evaluator_init(crd_context* ctx, crd_arena* arena, const crd_loop* loop,
                               crdi_evaluator* e)
{
    *e = (crdi_evaluator){.loop = loop, .blend = 1};
    const crd_status st = check_loop(ctx, loop);
    if (st < 0 || !loop->network) { return st; }
    const size_t n = (size_t)loop->network->states, in = (size_t)loop->network->inputs,
                 out = (size_t)loop->network->outputs;
    e->resolvent = crdi_arena_new(arena, n * n, sizeof(crdi_complex));
    e->solved = crdi_arena_new(arena, 2 * n * in, sizeof(crdi_complex));
    e->units = crdi_arena_new(arena, out * in, sizeof(crdi_complex));
    e->units_by_s = crdi_arena_new(arena, out * in, sizeof(crdi_complex));
    e->links = crdi_arena_new(arena, in * out, sizeof(crdi_complex));
    e->links_by_s = crdi_arena_new(arena, in * out, sizeof(crdi_complex));
    e->matrix = crdi_arena_new(arena, in * in, sizeof(crdi_complex));
    e->by_s = crdi_arena_new(arena, in * in, sizeof(crdi_complex));
    e->pivots = crdi_arena_new(arena, n + in, sizeof *e->pivots);
    return e->resolvent && e->solved && e->units && e->units_by_s && e->links && e->links_by_s &&
                   e->matrix && e->by_s && e->pivots
               ? CRD_OK
               : CRD_E_MEMORY;
}

// ---- one loop ----------------------------------------------------------------------------------

static crdi_complex loop_polynomial(int degree, const double* c, crdi_complex s,
                                    crdi_complex* slope)
{
    crdi_complex p = 0, d = 0;
    for (int i = degree; i >= 0; i--) {
        d = d * s + p;
        p = p * s + c[i];
    }
    *slope = d;
    return p;
}

// v *= f with the product rule
static void multiply_value(crdi_value* v, crdi_complex f, crdi_complex slope)
{
    v->slope = v->slope * f + v->L * slope;
    v->L *= f;
}

// An element with a delay, blended with 1
static void through(const crdi_evaluator* e, const crd_linear* element, double delay,
                    crdi_complex s, crdi_value* v)
{
    crdi_complex g = 1, slope = 0;
    if (element) {
        g = crdi_response(element, s * e->loop->dT, &slope);
        slope *= e->loop->dT;
    }
    const crdi_complex late = cexp(-s * delay);
    slope = late * (slope - delay * g);
    g *= late;
    multiply_value(v, 1 + e->blend * (g - 1), e->blend * slope);
}

static bool evaluate_loop(const crdi_evaluator* e, crdi_complex s, crdi_value* out)
{
    crdi_value v = {1, 0};
    for (int i = 0; i < e->loop->transfer_count; i++) {
        const crd_transfer* t = &e->loop->transfers[i];
        crdi_complex num_slope, den_slope;
        const crdi_complex num = loop_polynomial(t->num_degree, t->num, s, &num_slope);
        const crdi_complex den = loop_polynomial(t->den_degree, t->den, s, &den_slope);
        if (den == 0) { return false; }
        multiply_value(&v, num / den, (num_slope - num / den * den_slope) / den);
    }
    for (int i = 0; i < e->loop->element_count; i++) {
        through(e, e->loop->elements[i], 0, s, &v);
    }
    through(e, NULL, e->loop->delay, s, &v);
    *out = v;
    return isfinite(creal(v.L)) && isfinite(cimag(v.L));
}

// ---- network -----------------------------------------------------------------------------------

// P(s) = C (s - A)^-1 B + D and P'(s) = -C (s - A)^-2 B
static bool evaluate_units(const crdi_evaluator* e, crdi_complex s)
{
    const crd_plant* w = e->loop->network;
    const int n = w->states, in = w->inputs, out = w->outputs;
    crdi_complex *x = e->solved, *xx = e->solved + (size_t)n * (size_t)in; // a row per input
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            e->resolvent[i * n + j] = (i == j ? s : 0) - w->A[i * n + j];
        }
        for (int u = 0; u < in; u++) {
            x[u * n + i] = w->B[i * in + u];
        }
    }
    if (n > 0) {
        double* a = (double*)e->resolvent;
        if (crdi_num_complex_factor(n, a, e->pivots, NULL) < 0) { return false; }
        crdi_num_complex_solve(n, in, a, e->pivots, (double*)x);
        for (int i = 0; i < n * in; i++) {
            xx[i] = x[i];
        }
        crdi_num_complex_solve(n, in, a, e->pivots, (double*)xx);
    }
    for (int y = 0; y < out; y++) {
        for (int u = 0; u < in; u++) {
            crdi_complex p = w->D ? w->D[y * in + u] : 0, d = 0;
            for (int i = 0; i < n; i++) {
                p += w->C[y * n + i] * x[u * n + i];
                d -= w->C[y * n + i] * xx[u * n + i];
            }
            e->units[y * in + u] = p;
            e->units_by_s[y * in + u] = d;
        }
    }
    return true;
}

static void evaluate_links(const crdi_evaluator* e, crdi_complex s)
{
    const crd_plant* w = e->loop->network;
    for (int i = 0; i < w->inputs * w->outputs; i++) {
        e->links[i] = e->links_by_s[i] = 0;
    }
    for (int i = 0; i < w->link_count; i++) {
        const crd_plant_link* l = &w->links[i];
        crdi_value v = {l->gain == 0 ? 1 : l->gain, 0};
        through(e, l->element, l->delay, s, &v);
        e->links[l->to * w->outputs + l->from] += v.L;
        e->links_by_s[l->to * w->outputs + l->from] += v.slope;
    }
}

// M = I - K P; det M - 1 and its derivative det M tr(M^-1 M')
static bool evaluate_network(const crdi_evaluator* e, crdi_complex s, crdi_value* out)
{
    const crd_plant* w = e->loop->network;
    const int in = w->inputs, middle = w->outputs;
    if (!evaluate_units(e, s)) { return false; }
    evaluate_links(e, s);
    for (int i = 0; i < in; i++) {
        for (int j = 0; j < in; j++) {
            crdi_complex m = i == j ? 1 : 0, d = 0;
            for (int y = 0; y < middle; y++) {
                const crdi_complex k = e->links[i * middle + y], p = e->units[y * in + j];
                m -= k * p;
                d -= e->links_by_s[i * middle + y] * p + k * e->units_by_s[y * in + j];
            }
            e->matrix[i * in + j] = m;
            e->by_s[j * in + i] = d; // columns in rows, as the solver wants them
        }
    }
    double det[2];
    const bool regular = crdi_num_complex_factor(in, (double*)e->matrix, e->pivots, det) >= 0;
    crdi_complex trace = 0;
    if (regular) {
        crdi_num_complex_solve(in, in, (double*)e->matrix, e->pivots, (double*)e->by_s);
        for (int i = 0; i < in; i++) {
            trace += e->by_s[i * in + i];
        }
    }
    const crdi_complex f = det[0] + I * det[1];
    *out = (crdi_value){f - 1, f * trace};
    return isfinite(creal(f)) && isfinite(cimag(f));
}

bool crdi_evaluate(const crdi_evaluator* e, crdi_complex s, crdi_value* out)
{
    return e->loop->network ? evaluate_network(e, s, out) : evaluate_loop(e, s, out);
}

crd_status crd_loop_response(crd_context* ctx, const crd_loop* loop, crd_complex s,
                             crd_complex* out)
{
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_evaluator e;
    crdi_value v;
    crd_status st = crdi_evaluator_init(ctx, &arena, loop, &e);
    if (st >= 0 && !crdi_evaluate(&e, s.re + I * s.im, &v)) {
        st = crdi_fail(ctx, CRD_E_RANGE, "the loop has a pole at %g%+gj", s.re, s.im);
    }
    if (st >= 0) { *out = (crd_complex){creal(v.L), cimag(v.L)}; }
    crd_arena_clear(&arena);
    return st;
}

// ---- poles without iteration -------------------------------------------------------------------

static crd_status eigenvalues(crd_context* ctx, crd_arena* arena, int n, double* matrix, int* count,
                              crdi_complex** out)
{
    double* re = crdi_arena_new(arena, (size_t)n, sizeof *re);
    double* im = crdi_arena_new(arena, (size_t)n, sizeof *im);
    *out = crdi_arena_new(arena, (size_t)n, sizeof **out);
    *count = n;
    if (!re || !im || !*out) { return CRD_E_MEMORY; }
    if (n > 0 && crdi_num_eigenvalues(n, matrix, re, im) < 0) {
        return crdi_fail(ctx, CRD_E_CONVERGENCE,
                         "the eigenvalues of a %d x %d matrix were not found", n, n);
    }
    for (int i = 0; i < n; i++) {
        (*out)[i] = re[i] + I * im[i];
    }
    return CRD_OK;
}

// A, and with `closed` A + B K (I - D K)^-1 C for direct links
static crd_status network_poles(crd_context* ctx, crd_arena* arena, const crd_plant* w, bool closed,
                                int* count, crdi_complex** out)
{
    const size_t n = (size_t)w->states, in = (size_t)w->inputs, ny = (size_t)w->outputs;
    double* a = crdi_arena_new(arena, n * n, sizeof *a);
    double* k = crdi_arena_new(arena, in * ny, sizeof *k);
    double* loop = crdi_arena_new(arena, ny * ny, sizeof *loop);
    double* y = crdi_arena_new(arena, ny, sizeof *y);
    int32_t* pivots = crdi_arena_new(arena, ny, sizeof *pivots);
    if (!a || !k || !loop || !y || !pivots) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n * n; i++) {
        a[i] = w->A[i];
    }
    for (int i = 0; closed && i < w->link_count; i++) {
        const crd_plant_link* l = &w->links[i];
        k[(size_t)l->to * ny + (size_t)l->from] += l->gain == 0 ? 1 : l->gain;
    }
    for (size_t x = 0; closed && x < n; x++) { // y when only state x is 1
        for (size_t i = 0; i < ny; i++) {
            y[i] = w->C[i * n + x];
            for (size_t j = 0; j < ny; j++) {
                loop[i * ny + j] = i == j ? 1 : 0;
                for (size_t u = 0; w->D && u < in; u++) {
                    loop[i * ny + j] -= w->D[i * in + u] * k[u * ny + j];
                }
            }
        }
        if (crdi_num_solve((int)ny, loop, y, pivots) < 0) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "the network has an algebraic loop without solution");
        }
        for (size_t u = 0; u < in; u++) {
            double input = 0;
            for (size_t i = 0; i < ny; i++) {
                input += k[u * ny + i] * y[i];
            }
            for (size_t i = 0; i < n; i++) {
                a[i * n + x] += w->B[i * in + u] * input;
            }
        }
    }
    return eigenvalues(ctx, arena, (int)n, a, count, out);
}

// p *= the polynomial c; p has room for the product
static void convolve(double* p, int* degree, const double* c, int c_degree)
{
    for (int i = *degree + c_degree; i >= 0; i--) {
        double sum = 0;
        for (int j = 0; j <= c_degree && j <= i; j++) {
            if (i - j <= *degree) { sum += c[j] * p[i - j]; }
        }
        p[i] = sum;
    }
    *degree += c_degree;
}

// Roots of the product of the denominators, plus that of the numerators if `closed`
static crd_status loop_poles(crd_context* ctx, crd_arena* arena, const crd_loop* loop, bool closed,
                             int* count, crdi_complex** out)
{
    int degree = 0, num_degree = 0, total = 0;
    for (int i = 0; i < loop->transfer_count; i++) {
        total += loop->transfers[i].den_degree;
    }
    double* den = crdi_arena_new(arena, (size_t)total + 1, sizeof *den);
    double* num = crdi_arena_new(arena, (size_t)total + 1, sizeof *num);
    double* companion = crdi_arena_new(arena, (size_t)total * (size_t)total, sizeof *companion);
    if (!den || !num || !companion) { return CRD_E_MEMORY; }
    den[0] = num[0] = 1;
    for (int i = 0; i < loop->transfer_count; i++) {
        const crd_transfer* t = &loop->transfers[i];
        convolve(den, &degree, t->den, t->den_degree);
        convolve(num, &num_degree, t->num, t->num_degree);
    }
    for (int i = 0; closed && i <= num_degree; i++) {
        den[i] += num[i];
    }
    while (degree > 0 && den[degree] == 0) { // L = -1 at infinity
        degree--;
    }
    for (int i = 0; i < degree; i++) {
        if (i + 1 < degree) { companion[i * degree + i + 1] = 1; }
        companion[(degree - 1) * degree + i] = -den[i] / den[degree];
    }
    return eigenvalues(ctx, arena, degree, companion, count, out);
}

crd_status crdi_open_poles(crd_context* ctx, crd_arena* arena, const crd_loop* loop, int* count,
                           crdi_complex** out)
{
    return loop->network ? network_poles(ctx, arena, loop->network, false, count, out)
                         : loop_poles(ctx, arena, loop, false, count, out);
}

crd_status crdi_ideal_poles(crd_context* ctx, crd_arena* arena, const crd_loop* loop, int* count,
                            crdi_complex** out)
{
    return loop->network ? network_poles(ctx, arena, loop->network, true, count, out)
                         : loop_poles(ctx, arena, loop, true, count, out);
}
