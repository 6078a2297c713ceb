// The minimiser of J: the kinks are rounded by eps, eps goes to 0, damped Newton steps follow.
//     |e| -> sqrt(e^2 + eps^2),   max(e, 0) -> (e + sqrt(e^2 + eps^2)) / 2
// Quasi-Newton methods and sequences of linear programs stall in the flat valley.
#include <string.h>

#include "analysis/design.h"
#include "shared/base.h"

typedef enum kind { MAGNITUDE, PHASE, BOUND } kind;

typedef struct node {
    kind what;
    double weight; // of the integral, with alpha, beta or gamma
    double bound;
    crdi_complex late; // e^{-jkx}
} node;

typedef struct solver {
    int m, n; // taps, free coordinates c_1 ... c_n
    int nodes;
    node* node;                                    // (nodes)
    crdi_complex* basis;                           // (nodes x m)
    double *c, *trial;                             // (m) with c_0 = 1
    double *gradient, *step, *radial, *tangential; // (n)
    double* hessian;                               // (n x n)
    double noise, *noises;                         // delta; (m x m) |a|^2 = c' noises c
    double* work;
    int32_t* pivots;
} solver;

enum { BAND_NODES = 400, LOW_NODES = 50, HIGH_NODES = 20000, COARSE = 16 };

// `width` is that of the interval which the node stands for.
static void add_node(solver* s, const crd_goal* d, kind what, double omega, double width,
                     double weight)
{
    const double x = omega * d->dT;
    node* n = &s->node[s->nodes];
    *n = (node){what, weight * width, 1, cexp(-I * (d->k * x))};
    if (what == BOUND && omega > d->omega_u) {
        // What |G| can rise between two nodes is taken off the bound, else the solver finds the
        // gaps: |G|'' is at most about (m dT / 2)^2 |G|.
        const double rise = 0.5 * d->m * d->dT * width;
        n->bound = pow(omega / d->omega_u, d->v) * (1 - 0.125 * fmin(rise * rise, 1e-3));
    }
    crdi_differences(s->m, x, d->omega_u * d->dT, &s->basis[(size_t)s->nodes * (size_t)s->m]);
    s->nodes++;
}

// Midpoints of n intervals; graded: the first ones short, as the bound is tightest there
static void add_nodes(solver* s, const crd_goal* d, kind what, crd_interval b, int n, double weight,
                      bool graded)
{
    const double width = b.hi - b.lo;
    for (int i = 0; i < n; i++) {
        double u = (double)i / n, w = (i + 1.0) / n;
        if (graded) {
            u *= u;
            w *= w;
        }
        add_node(s, d, what, b.lo + width * 0.5 * (u + w), width * (w - u), weight);
    }
}

// `coarse` times fewer nodes than it takes
static void add_all_nodes(solver* s, const crd_goal* d, int coarse)
{
    const double mean_m = d->alpha / (d->magnitude.hi - d->magnitude.lo);
    const double mean_p = d->beta / (d->phase.hi - d->phase.lo);
    const int in_band = coarse > 1 ? BAND_NODES / 4 : BAND_NODES;
    s->nodes = 0;
    add_nodes(s, d, MAGNITUDE, d->magnitude, in_band, mean_m, false);
    add_nodes(s, d, PHASE, d->phase, in_band, mean_p, false);
    if (d->phase.lo > 0) {
        add_nodes(s, d, BOUND, (crd_interval){0, d->phase.lo}, LOW_NODES, d->gamma, false);
    }
    add_nodes(s, d, BOUND, (crd_interval){d->omega_u, 2 * M_PI / d->dT}, HIGH_NODES / coarse,
              d->gamma, true);
}

static crdi_complex response(const solver* s, int i, const double* c)
{
    const crdi_complex* b = &s->basis[(size_t)i * (size_t)s->m];
    double re = 0, im = 0;
    for (int j = 0; j < s->m; j++) {
        re += c[j] * creal(b[j]);
        im += c[j] * cimag(b[j]);
    }
    return re + I * im;
}

// |a|^2 = c' N c, and if `half` is not NULL N c, half its gradient (m)
static double noise_of(const solver* s, const double* c, double* half)
{
    double sum = 0;
    for (int i = 0; i < s->m; i++) {
        double row = 0;
        for (int j = 0; j < s->m; j++) {
            row += s->noises[i * s->m + j] * c[j];
        }
        sum += c[i] * row;
        if (half) { half[i] = row; }
    }
    return sum;
}

// N = T' T, where a = T c.
static void make_noises(solver* s, double x_u, double* T)
{
    for (int j = 0; j < s->m; j++) {
        memset(s->trial, 0, (size_t)s->m * sizeof *s->trial);
        s->trial[j] = 1;
        crdi_from_differences(s->m, x_u, s->trial, T + j * s->m); // column j
    }
    for (int i = 0; i < s->m; i++) {
        for (int j = 0; j < s->m; j++) {
            for (int t = 0; t < s->m; t++) {
                s->noises[i * s->m + j] += T[i * s->m + t] * T[j * s->m + t];
            }
        }
    }
    memset(s->trial, 0, (size_t)s->m * sizeof *s->trial);
}

// The rounded objective at c
static double cost(const solver* s, const double* c, double eps)
{
    double sum = s->noise > 0 ? s->noise * noise_of(s, c, NULL) : 0;
    for (int i = 0; i < s->nodes; i++) {
        const node* n = &s->node[i];
        const crdi_complex g = response(s, i, c);
        if (n->what == PHASE) {
            sum += n->weight * hypot(carg(g * n->late) * (180 / M_PI), 100 * eps);
            continue;
        }
        const double size = sqrt(creal(g) * creal(g) + cimag(g) * cimag(g)), e = size - n->bound;
        const double rounded = sqrt(e * e + eps * eps);
        if (n->what == MAGNITUDE) {
            sum += n->weight * rounded;
        } else { // the two nearly cancel when e is far below 0
            sum += n->weight * (e < 0 ? 0.5 * eps * eps / (rounded - e) : 0.5 * (e + rounded));
        }
    }
    return sum;
}

static void add_outer(const solver* s, const double* v, double weight)
{
    for (int i = 0; i < s->n; i++) {
        const double w = weight * v[i];
        for (int j = 0; j <= i; j++) {
            s->hessian[i * s->n + j] += w * v[j];
        }
    }
}

// One node's part of the gradient and of the Hessian. With e a function of |G| or of arg G:
//     grad |G| = radial,  grad arg G = tangential / |G|,  hess |G| = tangential tangential' / |G|.
// Only the positive part of the curvature is used, so that each step goes downhill.
static void assemble_node(const solver* s, int i, double eps)
{
    const node* n = &s->node[i];
    const crdi_complex g = response(s, i, s->c);
    const double size = fmax(sqrt(creal(g) * creal(g) + cimag(g) * cimag(g)), 1e-150);
    double first, second, bend; // by e, by e twice, times the Hessian of |G|
    if (n->what == PHASE) {
        const double e = carg(g * n->late) * (180 / M_PI), r = hypot(e, 100 * eps);
        const double slope = 180 / M_PI / size;
        first = n->weight * e / r * slope;
        second = n->weight / r * slope * slope;
        bend = 0;
    } else {
        const double e = size - n->bound, r = sqrt(e * e + eps * eps);
        if (n->what == MAGNITUDE) {
            first = n->weight * e / r;
            second = n->weight / r;
            bend = fmax(first, 0) / size;
        } else {
            first = n->weight * (e < 0 ? 0.5 * eps * eps / (r * (r - e)) : 0.5 * (1 + e / r));
            second = n->weight * 0.5 * eps * eps / (r * r * r);
            bend = first / size;
            if (first < 1e-14 && second < 1e-14) { return; } // far from the bound
        }
    }
    const crdi_complex* b = &s->basis[(size_t)i * (size_t)s->m];
    const crdi_complex unit = conj(g) / size;
    for (int j = 0; j < s->n; j++) {
        const crdi_complex along = unit * b[j + 1];
        s->radial[j] = creal(along);
        s->tangential[j] = cimag(along);
    }
    const double* direction = n->what == PHASE ? s->tangential : s->radial;
    for (int j = 0; j < s->n; j++) {
        s->gradient[j] += first * direction[j];
    }
    add_outer(s, direction, second);
    if (bend > 0) { add_outer(s, s->tangential, bend); }
}

static void assemble_gradient(const solver* s, double eps)
{
    memset(s->gradient, 0, (size_t)s->n * sizeof *s->gradient);
    memset(s->hessian, 0, (size_t)s->n * (size_t)s->n * sizeof *s->hessian);
    for (int i = 0; i < s->nodes; i++) {
        assemble_node(s, i, eps);
    }
    if (s->noise > 0) {
        double half[32];
        noise_of(s, s->c, half);
        for (int i = 0; i < s->n; i++) {
            s->gradient[i] += 2 * s->noise * half[i + 1];
            for (int j = 0; j <= i; j++) {
                s->hessian[i * s->n + j] += 2 * s->noise * s->noises[(i + 1) * s->m + j + 1];
            }
        }
    }
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < i; j++) {
            s->hessian[j * s->n + i] = s->hessian[i * s->n + j];
        }
    }
}

// Up to 30 steps at one eps
static void descend(solver* s, double eps, double* damping)
{
    double now = cost(s, s->c, eps);
    for (int step = 0; step < 30; step++) {
        assemble_gradient(s, eps);
        double next = INFINITY;
        for (int tries = 0; tries < 12; tries++) {
            const crd_status st = crdi_damped_step(s->n, s->hessian, s->gradient, *damping, s->step,
                                                   s->work, s->pivots);
            for (int j = 0; j < s->n; j++) {
                s->trial[j + 1] = s->c[j + 1] + s->step[j];
            }
            next = st < 0 ? INFINITY : cost(s, s->trial, eps);
            if (next < now) { break; }
            *damping = fmax(*damping * 8, 1e-14);
        }
        if (!(next < now)) { break; } // at the bottom, as far as numbers tell
        memcpy(s->c, s->trial, (size_t)s->m * sizeof *s->c);
        *damping *= 0.2;
        const double gain = now - next;
        now = next;
        if (gain < (eps > 1e-5 ? 1e-6 : 1e-9) * now) { break; }
    }
    *damping = fmin(fmax(*damping, 1e-14), 1e-2);
}

static crd_status allocate_descent(crd_arena* arena, solver* s)
{
    const size_t m = (size_t)s->m, n = (size_t)s->n,
                 count = 2 * BAND_NODES + LOW_NODES + HIGH_NODES;
    s->node = crdi_arena_new(arena, count, sizeof *s->node);
    s->basis = crdi_arena_new(arena, count * m, sizeof *s->basis);
    s->c = crdi_arena_new(arena, m, sizeof(double));
    s->trial = crdi_arena_new(arena, m, sizeof(double));
    s->gradient = crdi_arena_new(arena, n, sizeof(double));
    s->step = crdi_arena_new(arena, n, sizeof(double));
    s->radial = crdi_arena_new(arena, n, sizeof(double));
    s->tangential = crdi_arena_new(arena, n, sizeof(double));
    s->hessian = crdi_arena_new(arena, n * n, sizeof(double));
    s->work = crdi_arena_new(arena, n * (n + 1), sizeof(double));
    s->pivots = crdi_arena_new(arena, n, sizeof *s->pivots);
    s->noises = crdi_arena_new(arena, m * m, sizeof(double));
    const bool complete = s->node && s->basis && s->c && s->trial && s->gradient && s->step &&
                          s->radial && s->tangential && s->hessian && s->work && s->pivots &&
                          s->noises;
    return complete ? CRD_OK : CRD_E_MEMORY;
}

crd_status crd_goal_optimal(crd_context* ctx, const crd_goal* goal, double* a)
{
    crd_goal d = *goal;
    crd_status st = crdi_goal_check(ctx, &d);
    if (st < 0) { return st; }
    const double x_u = d.omega_u * d.dT;
    if (d.m > 32 || pow(2 / x_u, d.m - 1) > 1e140) {
        return crdi_fail(
            ctx, CRD_E_UNSUPPORTED,
            "%d taps are too many for this objective with omega_u dT = %g; expected at "
            "most 32, fewer if the band is narrow",
            d.m, x_u);
    }
    if (d.m == 1) { // sum a = 1 leaves nothing to choose
        a[0] = 1;
        return CRD_OK;
    }
    solver s = {.m = d.m, .n = d.m - 1};
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    CRD_TRY(allocate_descent(&arena, &s));
    s.noise = d.delta;
    if (d.delta > 0) {
        double* T = crdi_arena_new(&arena, (size_t)d.m * (size_t)d.m, sizeof *T);
        CRD_TRY(T ? CRD_OK : CRD_E_MEMORY);
        make_noises(&s, x_u, T);
    }
    add_all_nodes(&s, &d, COARSE);
    s.c[0] = s.trial[0] = 1; // hold
    double damping = 1e-3;
    bool coarse = true;
    for (double eps = 1; eps > 1e-13; eps *= 0.3) {
        if (coarse && eps < 1e-2) {
            add_all_nodes(&s, &d, 1);
            coarse = false;
        }
        descend(&s, eps, &damping);
    }
    crdi_from_differences(d.m, x_u, s.c, a);
fail:
    crd_arena_clear(&arena);
    return st;
}
