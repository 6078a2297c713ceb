// The design problem, its objective, and what the solvers share.
#include "analysis/design.h"
#include "shared/base.h"

#include "shared/num.h"

crd_goal crd_goal_defaults(void)
{
    return (crd_goal){.v = 1, .alpha = 1, .beta = 0.01, .gamma = 1000};
}

static crd_status check_band(crd_context* ctx, const char* name, crd_interval b, double dT)
{
    if (!(b.lo >= 0 && b.lo < b.hi)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the %s band [%g, %g] rad/s is empty, expected 0 <= lower end < upper end",
                         name, b.lo, b.hi);
    }
    if (!(b.hi * dT <= M_PI)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the %s band ends at %g rad/s, above the Nyquist frequency %g of the "
                         "macro step %g s",
                         name, b.hi, M_PI / dT, dT);
    }
    return CRD_OK;
}

crd_status crdi_goal_check(crd_context* ctx, crd_goal* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_check_step(ctx, d->dT));
    CRD_TRY(check_band(ctx, "magnitude", d->magnitude, d->dT));
    CRD_TRY(check_band(ctx, "phase", d->phase, d->dT));
    if (d->k < 0 || d->k > 10000) {
        return crdi_fail(ctx, CRD_E_RANGE, "the latency is %d macro steps, expected 0 to 10000",
                         d->k);
    }
    if (d->m < 1 || d->m > CRD_TAPS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "a design with %d taps, expected 1 to %d", d->m,
                         CRD_TAPS_MAX);
    }
    if (d->omega_u == 0) { d->omega_u = d->phase.hi; }
    if (!(d->omega_u > 0 && d->omega_u * d->dT < 2 * M_PI)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the roll-off starts at omega_u = %g rad/s, expected > 0 and < %g",
                         d->omega_u, 2 * M_PI / d->dT);
    }
    if (!(d->v >= 0 && d->v <= 10)) {
        return crdi_fail(ctx, CRD_E_RANGE, "the exponent v is %g, expected 0 to 10", d->v);
    }
    const double weights[] = {d->alpha, d->beta, d->gamma, d->delta};
    for (int i = 0; i < 4; i++) {
        static const char* const names[] = {"alpha", "beta", "gamma", "delta"};
        if (!(weights[i] >= 0 && isfinite(weights[i]))) {
            return crdi_fail(ctx, CRD_E_RANGE, "the weight %s is %g, expected >= 0", names[i],
                             weights[i]);
        }
    }
fail:
    return st;
}

void crdi_differences(int m, double x, double x_u, crdi_complex* basis)
{
    const double s = sin(0.5 * x);
    const crdi_complex step = (2 * s * s + I * sin(x)) / x_u;
    basis[0] = crdi_hold(x);
    for (int j = 1; j < m; j++) {
        basis[j] = basis[j - 1] * step;
    }
}

void crdi_from_differences(int m, double x_u, const double* c, double* a)
{
    // Horner in nabla = 1 - shift, from the highest order
    for (int i = 0; i < m; i++) {
        a[i] = 0;
    }
    for (int j = m - 1; j >= 0; j--) {
        for (int i = m - 1; i >= 0; i--) {
            a[i] = (a[i] - (i > 0 ? a[i - 1] : 0)) / x_u;
        }
        a[0] += c[j];
    }
}

crd_status crdi_damped_step(int n, const double* h, const double* g, double damping, double* step,
                            double* work, int32_t* pivots)
{
    double *scale = work, *scaled = work + n;
    for (int i = 0; i < n; i++) {
        const double d = h[(size_t)i * (size_t)n + (size_t)i];
        scale[i] = d > 0 ? 1 / sqrt(d) : 1;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const size_t ij = (size_t)i * (size_t)n + (size_t)j;
            scaled[ij] = h[ij] * scale[i] * scale[j] + (i == j ? damping : 0);
        }
        step[i] = -g[i] * scale[i];
    }
    const crd_status st = crdi_num_solve(n, scaled, step, pivots);
    for (int i = 0; i < n; i++) {
        step[i] *= scale[i];
    }
    return st;
}

// ---- the objective -----------------------------------------------------------------------------

typedef enum part { MAGNITUDE, PHASE, BOUND } part;

typedef struct integrand {
    const crd_linear* e;
    part what;
    double dT, omega_u, v; // BOUND: 1 below omega_u
} integrand;

static double design_value(const void* user, double omega)
{
    const integrand* f = user;
    const crdi_complex g = crdi_response(f->e, I * (omega * f->dT), NULL);
    switch (f->what) {
    case MAGNITUDE:
        return cabs(g) - 1;
    case PHASE:
        return carg(g) * (180 / M_PI);
    default:
        return cabs(g) - (omega > f->omega_u ? pow(omega / f->omega_u, f->v) : 1);
    }
}

// Integral of a function without a sign change between lo and hi: Gauss-Legendre with 4 points
static double piece(const integrand* f, double lo, double hi)
{
    static const double x[] = {0.33998104358485626, 0.86113631159405258};
    static const double w[] = {0.65214515486254614, 0.34785484513745386};
    const double c = 0.5 * (lo + hi), h = 0.5 * (hi - lo);
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        sum += w[i] * (design_value(f, c - h * x[i]) + design_value(f, c + h * x[i]));
    }
    return sum * h;
}

// Between lo and hi: the integral of |f|, of max(f, 0) for BOUND. Split where f changes its sign.
static double between(const integrand* f, double lo, double f_lo, double hi, double f_hi)
{
    if (f->what == BOUND && f_lo <= 0 && f_hi <= 0) { return 0; }
    const bool positive_only = f->what == BOUND;
    if ((f_lo < 0) == (f_hi < 0)) { return fabs(piece(f, lo, hi)); }
    // A phase that jumps by a full turn has no zero in between.
    const double zero = crdi_bisect(design_value, f, lo, hi);
    const double left = piece(f, lo, zero), right = piece(f, zero, hi);
    if (positive_only) { return fmax(left, 0) + fmax(right, 0); }
    return fabs(left) + fabs(right);
}

// n intervals, the first ones shorter (cubic grading): an excess just above omega_u is narrow.
static double integrate(const integrand* f, double lo, double hi, int n, bool graded)
{
    double sum = 0, at = lo, f_at = design_value(f, lo);
    for (int i = 1; i <= n; i++) {
        const double u = (double)i / n, next = lo + (hi - lo) * (graded ? u * u * u : u);
        const double f_next = design_value(f, next);
        sum += between(f, at, f_at, next, f_next);
        at = next;
        f_at = f_next;
    }
    return sum;
}

static crd_status largest_gain(crd_context* ctx, const crd_linear* e, double dT, crd_quality* q)
{
    crd_peak peaks[64];
    int count = 0;
    const crd_status st = crd_analysis_peaks(ctx, e, dT, 2 * M_PI / dT, 64, peaks, &count);
    q->peak_gain = cabs(crdi_response(e, 0, NULL));
    q->peak_omega = 0;
    for (int i = 0; st >= 0 && i < count && i < 64; i++) {
        if (peaks[i].gain > q->peak_gain) {
            q->peak_gain = peaks[i].gain;
            q->peak_omega = peaks[i].omega;
        }
    }
    return st;
}

crd_status crd_goal_quality(crd_context* ctx, const crd_goal* design, const crd_linear* e,
                            crd_quality* out)
{
    crd_status st = CRD_OK;
    crd_goal d = *design;
    d.k = e->k;
    d.m = e->m;
    CRD_TRY(crd_analysis_check(ctx, e));
    CRD_TRY(crdi_goal_check(ctx, &d));
    integrand f = {e, MAGNITUDE, d.dT, d.omega_u, d.v};
    crd_quality q = {0};
    q.J_m = integrate(&f, d.magnitude.lo, d.magnitude.hi, 1000, false) /
            (d.magnitude.hi - d.magnitude.lo);
    f.what = PHASE;
    q.J_p_deg = integrate(&f, d.phase.lo, d.phase.hi, 1000, false) / (d.phase.hi - d.phase.lo);
    f.what = BOUND;
    if (d.phase.lo > 0) {
        f.omega_u = d.phase.lo; // 1 all the way
        q.J_r_low = integrate(&f, 0, d.phase.lo, 200, false);
        f.omega_u = d.omega_u;
    }
    q.J_r_high = integrate(&f, d.omega_u, 2 * M_PI / d.dT, 40000, true);
    for (int i = 0; i < e->m; i++) {
        q.norm += e->a[i] * e->a[i];
    }
    q.J = d.alpha * q.J_m + d.beta * q.J_p_deg + d.gamma * (q.J_r_low + q.J_r_high) +
          d.delta * q.norm;
    q.norm = sqrt(q.norm);
    CRD_TRY(largest_gain(ctx, e, d.dT, &q));
    *out = q;
fail:
    return st;
}
