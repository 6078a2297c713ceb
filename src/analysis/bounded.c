// Least squares with a bound on |G|: convex, so a logarithmic barrier and Newton's method find the
// one minimum. The hold (a = 1, 0, ...) lies inside the bound and is the start.
#include <string.h>

#include "analysis/design.h"
#include "shared/base.h"

// Between these nodes the bound is exceeded by some 1e-5 of itself. More of them would move `a` by
// 1e-2 along a flat valley and make nothing better.
enum { GOAL_NODES = 400, BAND_NODES = 200, ABOVE_NODES = 400 };

typedef struct bounded {
    int m, n;            // taps; free coordinates z with a = e_0 + sum_j z_j (e_j - e_{j+1})
    int nodes;           // of the bound
    crdi_complex* hold;  // (nodes) response of e_0
    crdi_complex* basis; // (nodes x n)
    double* bound;       // (nodes) squared
    double* slack;       // (nodes) bound - |G|^2 at z, by assemble
    double *q, *p;       // (n x n), (n): objective z' q z / 2 + p' z + const
    double constant;
    double *z, *trial, *gradient, *hessian, *step, *re, *im, *g, *work;
    int32_t* pivots;
} bounded;

// Response of e_0 without latency, and of the coordinates
static crdi_complex responses(int n, double x, crdi_complex* basis)
{
    const crdi_complex hold = crdi_hold(x), shift = cexp(-I * x);
    const double s = sin(0.5 * x);
    crdi_complex tap = hold * (2 * s * s + I * sin(x)); // 1 - shift
    for (int j = 0; j < n; j++) {
        basis[j] = tap;
        tap *= shift;
    }
    return hold;
}

static void add_square(double* q, int n, const double* v, double weight)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            q[(size_t)i * (size_t)n + (size_t)j] += weight * v[i] * v[j];
        }
    }
}

// mean over B_p of |G e^{-jkx} - 1|^2 + mu |a|^2
static void set_objective(bounded* s, const crd_goal* d, double mu)
{
    const int n = s->n;
    crdi_complex* basis = s->basis; // free until the bound is set
    for (int i = 0; i < GOAL_NODES; i++) {
        const double omega = d->phase.lo + (d->phase.hi - d->phase.lo) * (i + 0.5) / GOAL_NODES;
        const double x = omega * d->dT;
        const crdi_complex error = responses(n, x, basis) - cexp(I * (d->k * x));
        for (int j = 0; j < n; j++) {
            s->re[j] = creal(basis[j]);
            s->im[j] = cimag(basis[j]);
            s->p[j] += 2.0 / GOAL_NODES * creal(conj(error) * basis[j]);
        }
        s->constant += creal(error * conj(error)) / GOAL_NODES;
        add_square(s->q, n, s->re, 2.0 / GOAL_NODES);
        add_square(s->q, n, s->im, 2.0 / GOAL_NODES);
    }
    for (int j = 0; j < n; j++) { // a_j = z_j - z_{j-1}, a_0 = 1 + z_0
        const size_t jj = (size_t)j * (size_t)n + (size_t)j;
        s->q[jj] += 4 * mu;
        if (j + 1 < n) {
            s->q[jj + 1] -= 2 * mu;
            s->q[jj + (size_t)n] -= 2 * mu;
        }
    }
    s->p[0] += 2 * mu;
    s->constant += mu;
}

static void add_bound(bounded* s, const crd_goal* d, double omega, double bound)
{
    const int i = s->nodes++;
    s->bound[i] = bound * bound;
    s->hold[i] = responses(s->n, omega * d->dT, &s->basis[(size_t)i * (size_t)s->n]);
}

// Above the Nyquist frequency the hold damps more and the bound is higher: nothing to ask there.
static void set_bound(bounded* s, const crd_goal* d, double margin)
{
    const double width = d->magnitude.hi - d->magnitude.lo;
    const double ratio = M_PI / d->dT / d->magnitude.hi;
    for (int i = 0; i < BAND_NODES; i++) {
        add_bound(s, d, d->magnitude.lo + width * i / (BAND_NODES - 1), 1 + margin);
    }
    for (int i = 1; i < ABOVE_NODES; i++) {
        const double omega = d->magnitude.hi * pow(ratio, (double)i / (ABOVE_NODES - 1));
        add_bound(s, d, omega, fmax(1 + margin, pow(omega / d->omega_u, d->v)));
    }
}

static crdi_complex at_node(const bounded* s, int i, const double* z)
{
    const crdi_complex* b = &s->basis[(size_t)i * (size_t)s->n];
    crdi_complex g = s->hold[i];
    for (int j = 0; j < s->n; j++) {
        g += z[j] * b[j];
    }
    return g;
}

// t * objective + barrier; INFINITY where a slack shrinks below a twentieth of what it is at z: so
// near to the bound Newton's method would take many steps to come away again.
static double potential(const bounded* s, const double* z, double t)
{
    double sum = t * s->constant;
    for (int i = 0; i < s->n; i++) {
        double row = 0;
        for (int j = 0; j < s->n; j++) {
            row += s->q[(size_t)i * (size_t)s->n + (size_t)j] * z[j];
        }
        sum += t * z[i] * (0.5 * row + s->p[i]);
    }
    for (int i = 0; i < s->nodes; i++) {
        const crdi_complex g = at_node(s, i, z);
        const double slack = s->bound[i] - creal(g * conj(g));
        if (!(slack > 0.05 * s->slack[i])) { return INFINITY; }
        sum -= log(slack);
    }
    return sum;
}

static void add_lower(double* h, int n, const double* v, double weight)
{
    for (int i = 0; i < n; i++) {
        const double w = weight * v[i];
        for (int j = 0; j <= i; j++) {
            h[i * n + j] += w * v[j];
        }
    }
}

static void assemble_bounded(bounded* s, double t)
{
    const int n = s->n;
    for (int i = 0; i < n; i++) {
        double row = 0;
        for (int j = 0; j < n; j++) {
            const double q = s->q[i * n + j];
            s->hessian[i * n + j] = t * q;
            row += q * s->z[j];
        }
        s->gradient[i] = t * (row + s->p[i]);
    }
    for (int i = 0; i < s->nodes; i++) {
        const crdi_complex* b = &s->basis[(size_t)i * (size_t)n];
        const crdi_complex g = at_node(s, i, s->z);
        const double slack = s->bound[i] - creal(g * conj(g));
        s->slack[i] = slack;
        for (int j = 0; j < n; j++) {
            s->re[j] = creal(b[j]);
            s->im[j] = cimag(b[j]);
            s->g[j] = 2 * creal(conj(g) * b[j]);
            s->gradient[j] += s->g[j] / slack;
        }
        add_lower(s->hessian, n, s->g, 1 / (slack * slack));
        add_lower(s->hessian, n, s->re, 2 / slack);
        add_lower(s->hessian, n, s->im, 2 / slack);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            s->hessian[j * n + i] = s->hessian[i * n + j];
        }
    }
}

// Newton's method at one t
static void centre(bounded* s, double t)
{
    for (int step = 0; step < 60; step++) {
        assemble_bounded(s, t);
        const double now = potential(s, s->z, t);
        if (crdi_damped_step(s->n, s->hessian, s->gradient, 0, s->step, s->work, s->pivots) < 0) {
            return;
        }
        double slope = 0;
        for (int j = 0; j < s->n; j++) {
            slope += s->gradient[j] * s->step[j];
        }
        if (!(slope < -1e-9)) { return; }
        double length = 1, next = INFINITY;
        for (int tries = 0; tries < 40; tries++, length *= 0.5) {
            for (int j = 0; j < s->n; j++) {
                s->trial[j] = s->z[j] + length * s->step[j];
            }
            next = potential(s, s->trial, t);
            if (next <= now + 0.1 * length * slope) { break; }
        }
        if (!(next < now)) { return; } // rounding: no better point can be told apart
        memcpy(s->z, s->trial, (size_t)s->n * sizeof *s->z);
    }
}

static crd_status allocate_bounded(crd_arena* arena, bounded* s)
{
    const size_t n = (size_t)s->n, nodes = BAND_NODES + ABOVE_NODES;
    s->hold = crdi_arena_new(arena, nodes, sizeof *s->hold);
    s->basis = crdi_arena_new(arena, nodes * n, sizeof *s->basis);
    s->bound = crdi_arena_new(arena, nodes, sizeof(double));
    s->slack = crdi_arena_new(arena, nodes, sizeof(double));
    s->q = crdi_arena_new(arena, n * n, sizeof(double));
    s->hessian = crdi_arena_new(arena, n * n, sizeof(double));
    s->work = crdi_arena_new(arena, n * (n + 1), sizeof(double));
    s->pivots = crdi_arena_new(arena, n, sizeof *s->pivots);
    double* vectors = crdi_arena_new(arena, 8 * n, sizeof(double));
    if (!s->hold || !s->basis || !s->bound || !s->slack || !s->q || !s->hessian || !s->work ||
        !s->pivots || !vectors) {
        return CRD_E_MEMORY;
    }
    double** const parts[] = {&s->p,    &s->z,  &s->trial, &s->gradient,
                              &s->step, &s->re, &s->im,    &s->g};
    for (int i = 0; i < 8; i++) {
        *parts[i] = vectors + (size_t)i * n;
    }
    return CRD_OK;
}

crd_status crd_goal_bounded(crd_context* ctx, const crd_goal* goal, double margin, double mu,
                            double* a)
{
    crd_goal d = *goal;
    crd_status st = crdi_goal_check(ctx, &d);
    if (st < 0) { return st; }
    if (!(margin > 0 && margin <= 10)) {
        return crdi_fail(ctx, CRD_E_RANGE, "the margin of the bound is %g, expected > 0 and <= 10",
                         margin);
    }
    if (!(mu > 0 && isfinite(mu))) {
        return crdi_fail(ctx, CRD_E_RANGE, "mu is %g, expected > 0", mu);
    }
    bounded s = {.m = d.m, .n = d.m - 1};
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    a[0] = 1;
    if (s.n > 0) {
        CRD_TRY(allocate_bounded(&arena, &s));
        set_objective(&s, &d, mu);
        set_bound(&s, &d, margin);
        // Longer strides would leave the path: between the nodes of a touching point the way is
        // short.
        for (double t = 1; t < 1e13; t *= 4) {
            centre(&s, t);
        }
        a[0] = 1 + s.z[0];
        for (int j = 1; j < s.n; j++) {
            a[j] = s.z[j] - s.z[j - 1];
        }
        a[s.n] = -s.z[s.n - 1];
    }
fail:
    crd_arena_clear(&arena);
    return st;
}
