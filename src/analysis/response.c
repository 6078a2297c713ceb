// The transfer function of one element: G_p, Bode data, limits, peaks.
#include "analysis/analysis.h"
#include "shared/base.h"

crd_status crd_analysis_check(crd_context* ctx, const crd_linear* e)
{
    if (e->m < 1 || e->m > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE, "the element has %d taps, expected 1 to 1000", e->m);
    }
    if (e->k < 0 || e->k > 10000) {
        return crdi_fail(ctx, CRD_E_RANGE, "the latency is %d macro steps, expected 0 to 10000",
                         e->k);
    }
    for (int i = 0; i < e->m; i++) {
        if (!isfinite(e->a[i])) {
            return crdi_fail(ctx, CRD_E_RANGE, "weight a[%d] is %g, expected a number", i, e->a[i]);
        }
        if (e->A && !isfinite(e->A[i])) {
            return crdi_fail(ctx, CRD_E_RANGE, "weight A[%d] is %g, expected a number", i, e->A[i]);
        }
    }
    return CRD_OK;
}

crd_status crd_analysis_check_constants(crd_context* ctx, const crd_linear* e, double tolerance)
{
    const crd_status st = crd_analysis_check(ctx, e);
    if (st < 0) { return st; }
    double a = 0, slope = 0;
    for (int i = 0; i < e->m; i++) {
        a += e->a[i];
        slope += e->A ? e->A[i] : 0;
    }
    if (!(fabs(a - 1) <= tolerance)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the weights a sum to %.10g, expected 1: a constant would not pass", a);
    }
    if (!(fabs(slope) <= tolerance)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the weights A sum to %.10g, expected 0: a constant would become a saw",
                         slope);
    }
    return CRD_OK;
}

crd_status crdi_check_step(crd_context* ctx, double dT)
{
    if (dT > 0 && isfinite(dT)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE, "the macro step is %g s, expected > 0", dT);
}

// phi_p(z) = integral_0^1 t^p e^{-zt} dt, p = 0, 1, 2; phi_p' = -phi_{p+1}.
static void moments(crdi_complex z, crdi_complex phi[3])
{
    if (cabs(z) < 0.5) { // the closed forms cancel
        phi[0] = phi[1] = phi[2] = 0;
        crdi_complex power = 1; // (-z)^n / n!
        for (int n = 0; n < 24; n++) {
            for (int p = 0; p < 3; p++) {
                phi[p] += power / (n + p + 1);
            }
            power *= -z / (n + 1);
        }
        return;
    }
    const crdi_complex decay = cexp(-z);
    phi[0] = (1 - decay) / z;
    phi[1] = (phi[0] - decay) / z;
    phi[2] = (2 * phi[1] - decay) / z;
}

crdi_complex crdi_hold(double x)
{
    const double h = 0.5 * x;
    return cexp(-I * h) * (fabs(h) < 1e-8 ? 1 : sin(h) / h);
}

crdi_complex crdi_response(const crd_linear* e, crdi_complex z, crdi_complex* derivative)
{
    // Sums over w^i, w = e^{-z}, and their derivatives by w, by Horner
    const crdi_complex w = cexp(-z);
    crdi_complex a = 0, a1 = 0, s = 0, s1 = 0;
    for (int i = e->m - 1; i >= 0; i--) {
        a1 = a1 * w + a;
        a = a * w + e->a[i];
        if (e->A) {
            s1 = s1 * w + s;
            s = s * w + e->A[i];
        }
    }
    crdi_complex phi[3];
    moments(z, phi);
    const crdi_complex late = cexp(-e->k * z), g = phi[0] * a + phi[1] * s;
    if (derivative) {
        *derivative =
            late * (-e->k * g - phi[1] * a - phi[2] * s - w * (phi[0] * a1 + phi[1] * s1));
    }
    return late * g;
}

crd_complex crd_response_at(const crd_linear* e, crd_complex z, crd_complex* derivative)
{
    crdi_complex d = 0;
    const crdi_complex g = crdi_response(e, z.re + I * z.im, &d);
    if (derivative) { *derivative = (crd_complex){creal(d), cimag(d)}; }
    return (crd_complex){creal(g), cimag(g)};
}

crd_complex crd_response(const crd_linear* e, double x)
{
    const crdi_complex g = crdi_response(e, I * x, NULL);
    return (crd_complex){creal(g), cimag(g)};
}

// ---- Bode data ---------------------------------------------------------------------------------

crd_status crd_frequency_grid(crd_context* ctx, double lo, double hi, int n, bool ratios,
                              double* omega)
{
    if (!(lo >= 0 && isfinite(hi) && lo < hi)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the band is [%g, %g] rad/s, expected 0 <= lower end < upper end", lo, hi);
    }
    if (ratios && !(lo > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a grid of equal ratios starts at %g rad/s, expected > 0", lo);
    }
    if (n < 2) {
        return crdi_fail(ctx, CRD_E_RANGE, "the grid has %d points, expected at least 2", n);
    }
    for (int i = 0; i < n; i++) {
        const double part = (double)i / (n - 1);
        omega[i] = ratios ? lo * pow(hi / lo, part) : lo + part * (hi - lo);
    }
    omega[n - 1] = hi;
    return CRD_OK;
}

// Change of phase in radians from x0 to x1, in steps so small that it cannot turn unseen.
static double phase_change(const crd_linear* e, double x0, double x1)
{
    const double widest = M_PI / (8.0 * (e->m + e->k + 1));
    const int64_t steps = (int64_t)ceil((x1 - x0) / widest);
    double sum = 0;
    crdi_complex before = crdi_response(e, I * x0, NULL);
    for (int64_t i = 1; i <= steps; i++) {
        const double x = x0 + (x1 - x0) * (double)i / (double)steps;
        const crdi_complex now = crdi_response(e, I * x, NULL);
        const crdi_complex ratio = now * conj(before);
        if (ratio != 0) { // exactly 0 has no phase: the one before stays
            sum += carg(ratio);
            before = now;
        }
    }
    return sum;
}

crd_status crd_analysis_bode(crd_context* ctx, const crd_linear* e, double dT, const double* omega,
                             int n, crd_bode_point* out)
{
    crd_status st = crd_analysis_check(ctx, e);
    if (st >= 0) { st = crdi_check_step(ctx, dT); }
    if (st < 0) { return st; }
    for (int i = 0; i < n; i++) {
        if (!(omega[i] >= 0 && omega[i] * dT <= 200)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "frequency %d of the grid is %g rad/s, expected 0 to %g", i + 1,
                             omega[i], 200 / dT);
        }
        if (i > 0 && !(omega[i] > omega[i - 1])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "the frequency grid does not rise: %g rad/s stands before %g rad/s "
                             "(points %d and %d)",
                             omega[i - 1], omega[i], i, i + 1);
        }
    }
    double phase = carg(crdi_response(e, 0, NULL)), x = 0;
    for (int i = 0; i < n; i++) {
        phase += phase_change(e, x, omega[i] * dT);
        x = omega[i] * dT;
        const crdi_complex g = crdi_response(e, I * x, NULL);
        out[i] = (crd_bode_point){.omega = omega[i],
                                  .g = {creal(g), cimag(g)},
                                  .gain = cabs(g),
                                  .phase_deg = phase * (180 / M_PI)};
    }
    return CRD_OK;
}

// ---- limits and peaks --------------------------------------------------------------------------

double crdi_bisect(double (*f)(const void* user, double x), const void* user, double lo, double hi)
{
    const bool rising = f(user, lo) < 0;
    for (int i = 0; i < 200; i++) {
        const double x = 0.5 * (lo + hi);
        if (x <= lo || x >= hi) { break; }
        if ((f(user, x) < 0) == rising) {
            lo = x;
        } else {
            hi = x;
        }
    }
    return 0.5 * (lo + hi);
}

typedef struct limit {
    const crd_linear* e;
    bool phase;
    double tolerance;
} limit;

// Signed deviation from the direct connection
static double deviation(const limit* l, double x)
{
    const crdi_complex g = crdi_response(l->e, I * x, NULL);
    return l->phase ? carg(g) * (180 / M_PI) : cabs(g) - 1;
}

static double excess(const void* user, double x)
{
    const limit* l = user;
    return fabs(deviation(l, x)) - l->tolerance;
}

// The largest excess between lo and hi, by golden section: a hump that just passes the limit
// between two points of the scan.
static double hump(const limit* l, double lo, double hi)
{
    const double part = 0.5 * (sqrt(5) - 1);
    for (int i = 0; i < 60; i++) {
        const double a = hi - part * (hi - lo), b = lo + part * (hi - lo);
        if (excess(l, a) > excess(l, b)) {
            hi = b;
        } else {
            lo = a;
        }
    }
    return 0.5 * (lo + hi);
}

// Smallest x in (0, pi] where the excess becomes positive, INFINITY if none
static double first_excess(const limit* l)
{
    const int n = 64 * (l->e->m + l->e->k + 1);
    double before = excess(l, 0), last = before;
    for (int i = 1; i <= n; i++) {
        const double h = M_PI / n, x = i * h, now = excess(l, x);
        if (now > 0) { return crdi_bisect(excess, l, x - h, x); }
        if (i > 1 && last >= before && last >= now) {
            const double top = hump(l, x - 2 * h, x);
            if (excess(l, top) > 0) { return crdi_bisect(excess, l, x - 2 * h, top); }
        }
        before = last;
        last = now;
    }
    return INFINITY;
}

static crd_status find_limit(crd_context* ctx, const limit* l, double* part, int* side)
{
    if (!(l->tolerance > 0 && l->tolerance < (l->phase ? 180.0 : INFINITY))) {
        return crdi_fail(ctx, CRD_E_RANGE, "the tolerance of the %s is %g, expected > 0%s",
                         l->phase ? "phase" : "magnitude", l->tolerance,
                         l->phase ? " and < 180 degrees" : "");
    }
    if (excess(l, 0) > 0) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "a constant is passed on with the factor %.10g: its %s misses the tolerance "
            "at every frequency; expected weights a that sum to 1 and A to 0",
            creal(crdi_response(l->e, 0, NULL)), l->phase ? "phase" : "magnitude");
    }
    const double x = first_excess(l);
    *part = x / M_PI;
    *side = isinf(x) ? 0 : deviation(l, x) > 0 ? 1 : -1;
    return CRD_OK;
}

crd_status crd_analysis_limits(crd_context* ctx, const crd_linear* e, double magnitude_tolerance,
                               double phase_tolerance_deg, crd_limits* out)
{
    crd_status st = CRD_OK;
    crd_limits found;
    const limit magnitude = {e, false, magnitude_tolerance}, phase = {e, true, phase_tolerance_deg};
    CRD_TRY(crd_analysis_check(ctx, e));
    CRD_TRY(find_limit(ctx, &magnitude, &found.magnitude, &found.magnitude_side));
    CRD_TRY(find_limit(ctx, &phase, &found.phase, &found.phase_side));
    *out = found;
fail:
    return st;
}

// Half the derivative of |G|^2 by x
static double climb(const void* user, double x)
{
    crdi_complex d;
    const crdi_complex g = crdi_response(user, I * x, &d);
    return creal(conj(g) * I * d);
}

crd_status crd_analysis_peaks(crd_context* ctx, const crd_linear* e, double dT, double omega_max,
                              int capacity, crd_peak* out, int* count)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_analysis_check(ctx, e));
    CRD_TRY(crdi_check_step(ctx, dT));
    const double last = omega_max * dT;
    if (!(last > 0 && last <= 200)) {
        return crdi_fail(ctx, CRD_E_RANGE, "peaks are wanted up to %g rad/s, expected > 0 to %g",
                         omega_max, 200 / dT);
    }
    // The latency does not change |G|: its fastest term turns m - 1 times in 2 pi.
    const int64_t n = (int64_t)ceil(last / (M_PI / (64.0 * (e->m + 1))));
    const double h = last / (double)n;
    int found = 0;
    double before = climb(e, 1e-3 * h); // at 0 it is 0
    for (int64_t i = 1; i <= n; i++) {
        const double now = climb(e, (double)i * h);
        if (before > 0 && now <= 0) {
            const double x =
                crdi_bisect(climb, e, i == 1 ? 1e-3 * h : (double)(i - 1) * h, (double)i * h);
            if (found < capacity) {
                out[found] = (crd_peak){cabs(crdi_response(e, I * x, NULL)), x / dT};
            }
            found++;
        }
        before = now;
    }
    *count = found;
fail:
    return st;
}
