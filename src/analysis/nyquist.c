// Nyquist's criterion, margins, and the poles of the closed loop.
#include "analysis/loop.h"

// A pole of the open loop on the upper half of the imaginary axis. The way passes it on the right,
// over the two upper sides of a triangle.
typedef struct detour {
    double omega, radius;
} detour;

typedef struct walk {
    const crdi_evaluator* e;
    crdi_complex* poles; // of the open loop, then of the closed one with ideal elements
    int pole_count;
    double scale; // largest |pole|
    detour* detours;
    int detour_count;
    bool one_loop;          // L is the gain around one loop: margins make sense
    crd_loop_point* points; // that are kept, NULL: none
    size_t point_capacity;
    crd_context* ctx;
} walk;

// The place on the way for a frequency
static crdi_complex at(const walk* w, double omega)
{
    double right = 0;
    for (int i = 0; i < w->detour_count; i++) {
        right = fmax(right, w->detours[i].radius - fabs(omega - w->detours[i].omega));
    }
    return right + I * omega;
}

// On the imaginary axis as far as eigenvalues can tell; a cluster at 0 is known to half the digits.
static bool on_axis(const walk* w, crdi_complex p)
{
    return fabs(creal(p)) <= 1e-10 * (cabs(p) + 1e-6 * w->scale) || cabs(p) <= 1e-7 * w->scale;
}

static crd_status plan_detours(crd_arena* arena, walk* w, int open_count)
{
    w->detours = crdi_arena_new(arena, (size_t)open_count, sizeof *w->detours);
    if (!w->detours) { return CRD_E_MEMORY; }
    for (int i = 0; i < open_count; i++) {
        if (!on_axis(w, w->poles[i]) || cimag(w->poles[i]) < -1e-7 * w->scale) { continue; }
        const double omega = cabs(w->poles[i]) <= 1e-7 * w->scale ? 0 : fabs(cimag(w->poles[i]));
        double nearest = w->scale;
        for (int k = 0; k < w->pole_count; k++) {
            const double d = cabs(w->poles[k] - I * omega);
            if (d > 1e-6 * w->scale) { nearest = fmin(nearest, d); }
        }
        w->detours[w->detour_count++] = (detour){omega, fmin(0.05 * nearest, 1e-3 * w->scale)};
    }
    return CRD_OK;
}

static crd_status known_poles(crd_context* ctx, crd_arena* arena, walk* w, crd_nyquist* n)
{
    crdi_complex *open, *ideal;
    int open_count, ideal_count;
    crd_status st = crdi_open_poles(ctx, arena, w->e->loop, &open_count, &open);
    if (st >= 0) { st = crdi_ideal_poles(ctx, arena, w->e->loop, &ideal_count, &ideal); }
    if (st < 0) { return st; }
    w->pole_count = open_count + ideal_count;
    w->poles = crdi_arena_new(arena, (size_t)w->pole_count, sizeof *w->poles);
    if (!w->poles) { return CRD_E_MEMORY; }
    for (int i = 0; i < w->pole_count; i++) {
        w->poles[i] = i < open_count ? open[i] : ideal[i - open_count];
        w->scale = fmax(w->scale, cabs(w->poles[i]));
    }
    if (w->scale == 0) { w->scale = 1; }
    for (int i = 0; i < open_count; i++) {
        const bool axis = on_axis(w, open[i]);
        n->open_axis += axis;
        n->open_unstable += !axis && creal(open[i]) > 0;
    }
    return plan_detours(arena, w, open_count);
}

// Where the curve has shrunk for good: |L| stays below 0.05 over a decade.
static double fading(const walk* w)
{
    for (double omega = 10 * w->scale; omega < 1e12 * w->scale; omega *= 2) {
        double largest = 0;
        for (int i = 0; i < 100; i++) {
            crdi_value v;
            if (!crdi_evaluate(w->e, I * (omega * pow(10, 0.01 * i)), &v)) { return NAN; }
            largest = fmax(largest, cabs(v.L));
        }
        if (largest < 0.05) { return omega; }
    }
    return NAN;
}

// A step that no pole and no turn around -1 escapes: a part of the distance to each known pole, of
// |F / F'|, which is near a zero of F the distance to it, and of |L / L'|.
static double stride(const walk* w, double omega, const crdi_value* v)
{
    double h = 0.1 * (omega + 1e-3 * w->scale);
    for (int i = 0; i < w->pole_count; i++) {
        h = fmin(h, 0.15 * cabs(at(w, omega) - w->poles[i]));
    }
    for (int i = 0; i < w->detour_count; i++) { // not past one, and finely along it
        const detour* d = &w->detours[i];
        const double ahead = d->omega - d->radius - omega;
        h = fmin(h, ahead > 0                      ? ahead + 0.1 * d->radius
                    : omega < d->omega + d->radius ? 0.1 * d->radius
                                                   : h);
    }
    const double slope = cabs(v->slope);
    if (slope > 0) {
        h = fmin(h, 0.2 * cabs(1 + v->L) / slope);
        h = fmin(h, 0.2 * fmax(cabs(v->L), 0.1) / slope);
    }
    if (w->point_capacity) { h *= 0.25; } // for drawing
    return fmax(h, 1e-11 * omega + 1e-14 * w->scale);
}

static double gain_above_one(const void* user, double omega)
{
    const walk* w = user;
    crdi_value v = {0};
    crdi_evaluate(w->e, at(w, omega), &v);
    return cabs(v.L) - 1;
}

static double imaginary(const void* user, double omega)
{
    const walk* w = user;
    crdi_value v = {0};
    crdi_evaluate(w->e, at(w, omega), &v);
    return cimag(v.L);
}

static double distance_to_critical(const walk* w, double omega)
{
    crdi_value v = {0};
    crdi_evaluate(w->e, at(w, omega), &v);
    return cabs(1 + v.L);
}

// Smallest distance between lo and hi, by golden section
static void closest(const walk* w, double lo, double hi, crd_nyquist* out)
{
    const double part = 0.5 * (sqrt(5) - 1);
    for (int i = 0; i < 60; i++) {
        const double a = hi - part * (hi - lo), b = lo + part * (hi - lo);
        if (distance_to_critical(w, a) < distance_to_critical(w, b)) {
            hi = b;
        } else {
            lo = a;
        }
    }
    const double omega = 0.5 * (lo + hi), d = distance_to_critical(w, omega);
    if (d < out->min_distance) {
        out->min_distance = d;
        out->min_omega = omega;
    }
}

static void add_crossing(crd_crossing* list, int* count, double omega, double margin)
{
    if (*count < CRD_CROSSINGS_MAX) { list[(*count)++] = (crd_crossing){omega, margin}; }
}

static void cross(const walk* w, double a, crdi_complex L_a, double b, crdi_complex L_b,
                  crd_nyquist* out)
{
    if (creal(at(w, a)) > 0 || creal(at(w, b)) > 0) { return; } // a detour is no frequency
    if ((cabs(L_a) < 1) != (cabs(L_b) < 1)) {
        const double omega = crdi_bisect(gain_above_one, w, a, b);
        crdi_value v = {0};
        crdi_evaluate(w->e, I * omega, &v);
        add_crossing(out->phase, &out->phase_count, omega, carg(-v.L) * (180 / M_PI));
    }
    if ((cimag(L_a) < 0) != (cimag(L_b) < 0) && creal(L_a) < 0 && creal(L_b) < 0) {
        const double omega = crdi_bisect(imaginary, w, a, b);
        crdi_value v = {0};
        crdi_evaluate(w->e, I * omega, &v);
        add_crossing(out->gain, &out->gain_count, omega, 1 / cabs(v.L));
    }
}

static double delay_margin(const crd_nyquist* n)
{
    if (!n->one_loop) { return NAN; }
    if (n->closed_unstable > 0) { return 0; }
    double smallest = INFINITY;
    for (int i = 0; i < n->phase_count; i++) {
        const crd_crossing* c = &n->phase[i];
        const double turn = (c->margin < 0 ? c->margin + 360 : c->margin) * (M_PI / 180);
        if (c->omega > 0) { smallest = fmin(smallest, turn / c->omega); }
    }
    return smallest;
}

static bool append_point(walk* w, int n, double omega, crdi_complex L)
{
    if (!w->point_capacity) { return true; }
    crd_loop_point* p = crdi_grow(w->ctx, w->points, &w->point_capacity, (size_t)n + 1, sizeof *p);
    if (!p) { return false; }
    w->points = p;
    p[n] = (crd_loop_point){omega, {creal(L), cimag(L)}};
    return true;
}

static crd_status march(crd_context* ctx, walk* w, double end, crd_nyquist* out)
{
    enum { POINTS_MAX = 4000000 };
    crdi_value v;
    if (!crdi_evaluate(w->e, at(w, 0), &v) || 1 + v.L == 0) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "the curve passes through -1 or has a pole at 0");
    }
    if (!append_point(w, 0, 0, v.L)) { return CRD_E_MEMORY; }
    double omega = 0, before = -1, turned = 0;
    double d_before = INFINITY, d = cabs(1 + v.L);
    out->min_distance = d;
    out->min_omega = 0;
    for (out->points = 1; omega < end; out->points++) {
        if (out->points > POINTS_MAX) {
            return crdi_fail(ctx, CRD_E_CONVERGENCE,
                             "Nyquist's curve needs more than %d points; it got to %g of %g rad/s",
                             POINTS_MAX, omega, end);
        }
        double h = fmin(stride(w, omega, &v), end - omega);
        crdi_value next;
        double turn = 0;
        for (;; h *= 0.5) { // the slope may grow within the step
            if (!crdi_evaluate(w->e, at(w, omega + h), &next)) {
                return crdi_fail(ctx, CRD_E_CONVERGENCE, "the loop has no value at %g rad/s",
                                 omega + h);
            }
            turn = carg((1 + next.L) / (1 + v.L));
            if (fabs(turn) < 0.5) { break; }
            if (h < 1e-12 * omega + 1e-15 * w->scale) {
                return crdi_fail(
                    ctx, CRD_E_CONVERGENCE,
                    "the curve passes through -1 at %.10g rad/s: the closed loop is on "
                    "the verge of instability",
                    omega);
            }
        }
        turned += turn;
        if (w->one_loop) { cross(w, omega, v.L, omega + h, next.L, out); }
        if (!append_point(w, out->points, omega + h, next.L)) { return CRD_E_MEMORY; }
        const double d_next = cabs(1 + next.L);
        if (before >= 0 && d <= d_before && d <= d_next) { closest(w, before, omega + h, out); }
        d_before = d;
        d = d_next;
        before = omega;
        omega += h;
        v = next;
    }
    if (d < out->min_distance) { // it falls to the end: no minimum on the way is below
        out->min_distance = d;
        out->min_omega = omega;
    }
    out->encirclements = (int)lround(-turned / M_PI);
    return CRD_OK;
}

static crd_status nyquist(crd_context* ctx, const crd_loop* loop, walk* w, crd_nyquist* out)
{
    crd_status st = CRD_OK;
    crdi_evaluator e;
    crd_nyquist n = {0};
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    w->e = &e;
    w->ctx = ctx;
    CRD_TRY(crdi_evaluator_init(ctx, &arena, loop, &e));
    CRD_TRY(known_poles(ctx, &arena, w, &n));
    n.one_loop = true;
    if (loop->network) { CRD_TRY(crdi_one_loop(&arena, loop->network, &n.one_loop)); }
    w->one_loop = n.one_loop;
    const double end = fading(w);
    if (isnan(end)) {
        st = crdi_fail(ctx, CRD_E_UNSUPPORTED,
                       "the loop does not roll off: |L| stays above 0.05 at all frequencies");
        goto fail;
    }
    CRD_TRY(march(ctx, w, end, &n));
    n.closed_unstable = n.encirclements + n.open_unstable;
    n.delay_margin = delay_margin(&n);
    *out = n;
fail:
    crd_arena_clear(&arena);
    return st;
}

crd_status crd_loop_nyquist(crd_context* ctx, const crd_loop* loop, crd_nyquist* out)
{
    walk w = {0};
    return nyquist(ctx, loop, &w, out);
}

crd_status crd_loop_curve(crd_context* ctx, const crd_loop* loop, crd_nyquist* out,
                          crd_loop_point** points)
{
    walk w = {.point_capacity = 1024};
    w.points = crdi_new_array(ctx, w.point_capacity, sizeof *w.points);
    if (!w.points) { return CRD_E_MEMORY; }
    const crd_status st = nyquist(ctx, loop, &w, out);
    if (st < 0) {
        crd_free(ctx, w.points);
        return st;
    }
    *points = w.points;
    return CRD_OK;
}

// ---- poles -------------------------------------------------------------------------------------

typedef struct poles {
    crdi_complex* at; // those that are settled, then those on their way
    int count;
} poles;

// Newton's method on 1 + L, divided by the distances to the first `known` poles (Maehly), so that
// poles that start from the same place part; false if it does not settle.
static bool settle_pole(const crdi_evaluator* e, const poles* p, int known)
{
    crdi_complex s = p->at[known];
    for (int i = 0; i < 80; i++) {
        crdi_value v;
        if (!crdi_evaluate(e, s, &v)) { return false; }
        if (1 + v.L == 0) { break; }
        crdi_complex slope = v.slope / (1 + v.L);
        for (int j = 0; j < known; j++) {
            if (s == p->at[j]) { s += 1e-7 * (cabs(s) + 1e-3) * (1 + I); }
            slope -= 1 / (s - p->at[j]);
        }
        const crdi_complex step = 1 / slope;
        s -= step;
        if (!isfinite(creal(s)) || !isfinite(cimag(s))) { return false; }
        // A double pole has no more than half of the digits.
        if (cabs(step) <= (i < 50 ? 1e-14 : 1e-6) * (cabs(s) + 1e-3)) { break; }
        if (i == 79) { return false; }
    }
    p->at[known] = s;
    return true;
}

// A mode that no link reaches is a pole of both and stays where it is.
static bool unreached(crdi_complex s, const crdi_complex* open, int count)
{
    for (int i = 0; i < count; i++) {
        if (cabs(s - open[i]) <= 1e-10 * (cabs(s) + 1e-6)) { return true; }
    }
    return false;
}

// From ideal elements to the real ones; the poles move along.
static crd_status move_over(crd_context* ctx, crdi_evaluator* e, poles* p)
{
    enum { STEPS = 16 };
    for (int step = 1; step <= STEPS; step++) {
        e->blend = (double)step / STEPS;
        for (int i = 0; i < p->count; i++) {
            const crdi_complex from = p->at[i];
            if (!settle_pole(e, p, i)) {
                return crdi_fail(
                    ctx, CRD_E_CONVERGENCE,
                    "the pole near %g%+gj was lost on the way from ideal coupling (%d of "
                    "%d steps)",
                    creal(from), cimag(from), step, STEPS);
            }
        }
    }
    return CRD_OK;
}

crd_status crd_loop_poles(crd_context* ctx, const crd_loop* loop, int capacity, crd_complex* out,
                          int* count)
{
    crd_status st = CRD_OK;
    crdi_evaluator e;
    crdi_complex *ideal, *open;
    poles p = {0};
    int ideal_count, open_count, fixed = 0;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    CRD_TRY(crdi_evaluator_init(ctx, &arena, loop, &e));
    CRD_TRY(crdi_ideal_poles(ctx, &arena, loop, &ideal_count, &ideal));
    CRD_TRY(crdi_open_poles(ctx, &arena, loop, &open_count, &open));
    p.at = ideal; // compacted in place
    for (int i = 0; i < ideal_count; i++) {
        const crdi_complex s = ideal[i];
        if (cabs(s) * loop->dT > M_PI) { continue; }
        if (!unreached(s, open, open_count)) {
            p.at[p.count++] = s;
        } else {
            if (fixed < capacity) { out[fixed] = (crd_complex){creal(s), cimag(s)}; }
            fixed++;
        }
    }
    CRD_TRY(move_over(ctx, &e, &p));
    for (int i = 0; i < p.count && fixed + i < capacity; i++) {
        out[fixed + i] = (crd_complex){creal(p.at[i]), cimag(p.at[i])};
    }
    *count = fixed + p.count;
fail:
    crd_arena_clear(&arena);
    return st;
}
