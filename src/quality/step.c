// Length of the next communication step from the defect of the last one.
#include "cardan/quality.h"
#include "shared/base.h"

#include <math.h>

crd_step_options crd_step_defaults(void)
{
    return (crd_step_options){
        .method = CRD_STEP_H211B,
        .kp = 0.13,
        .ki = 1.0 / 15,
        .theta_max = 2,
        .safety = 0.9,
        .floor = 1e-12,
        .ceiling = INFINITY,
    };
}

crd_status crd_step_check(crd_context* ctx, const crd_step_options* opt)
{
    if (!(opt->tol > 0 && isfinite(opt->tol))) {
        return crdi_fail(ctx, CRD_E_RANGE, "step control: tol = %g, expected > 0", opt->tol);
    }
    if (!(opt->h1 >= 0 && isfinite(opt->h1))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "step control: first step h1 = %g s, expected > 0 (or 0: from the "
                         "tolerance)",
                         opt->h1);
    }
    if (!(opt->kp >= 0 && isfinite(opt->kp)) || !(opt->ki > 0 && isfinite(opt->ki))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "step control: kp = %g and ki = %g, expected kp >= 0 and ki > 0", opt->kp,
                         opt->ki);
    }
    if (!(opt->theta_max > 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "step control: theta_max = %g, expected > 1",
                         opt->theta_max);
    }
    if (!(opt->safety > 0 && opt->safety <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "step control: safety = %g, expected 0 < safety <= 1",
                         opt->safety);
    }
    if (!(opt->floor > 0 && opt->floor <= opt->ceiling)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "step control: floor = %g s and ceiling = %g s, expected 0 < floor <= "
                         "ceiling",
                         opt->floor, opt->ceiling);
    }
    return CRD_OK;
}

static double limit(const crd_step_options* opt, crd_step* s, double h)
{
    if (h < opt->floor) {
        s->at_floor++;
        return opt->floor;
    }
    if (h > opt->ceiling) {
        s->at_ceiling++;
        return opt->ceiling;
    }
    return h;
}

void crd_step_event(const crd_step_options* opt, double h1, crd_step* s)
{
    s->h = fmin(fmax(h1, opt->floor), opt->ceiling);
    s->I = log(s->h);
    s->h_last = s->c_last = 0;
}

void crd_step_init(const crd_step_options* opt, double h1, crd_step* s)
{
    *s = (crd_step){0};
    crd_step_event(opt, h1, s);
}

// (39); what limits the step is taken out of the integrator, the floor and the ceiling too.
static void next_pi(const crd_step_options* opt, crd_step* s, double eps)
{
    const double e = log(opt->tol) - log(eps);
    const double I = s->I + opt->ki * e;
    const double log_h = I + opt->kp * e;
    s->h = limit(opt, s, fmin(opt->theta_max * s->h, exp(log_h)));
    s->I = I + log(s->h) - log_h;
}

// H211b: (c_n c_(n-1))^(1/4k) (H_n / H_(n-1))^(-1/4), c = safety tol / eps, smoothly limited.
static void next_h211b(const crd_step_options* opt, crd_step* s, double eps, int order)
{
    const double h = s->h, c = opt->safety * opt->tol / eps;
    const double c_last = s->h_last > 0 ? s->c_last : c;
    const double ratio = s->h_last > 0 ? h / s->h_last : 1;
    const double x = pow(c, 0.25 / order) * pow(c_last, 0.25 / order) * pow(ratio, -0.25);
    s->h = limit(opt, s, h * (1 + atan(x - 1)));
    s->h_last = h;
    s->c_last = c;
}

double crd_step_next(const crd_step_options* opt, crd_step* s, double eps, int order)
{
    if (!isfinite(eps)) { return NAN; }
    eps = fmax(eps, 1e-16);
    if (opt->method == CRD_STEP_PI) {
        next_pi(opt, s, eps);
    } else {
        next_h211b(opt, s, eps, order);
    }
    return s->h;
}

double crd_step_next_after(const crd_step_options* opt, crd_step* s, double h_done, double eps,
                           int order)
{
    if (!isfinite(eps)) { return NAN; }
    if (h_done < s->h && eps <= opt->tol) { return s->h; } // a cut step tells little
    if (h_done != s->h) { // the history is of another step: begin from the one that was done
        crd_step_event(opt, h_done, s);
    }
    return crd_step_next(opt, s, eps, order);
}

double crd_step_reject(const crd_step_options* opt, crd_step* s, double eps, int order)
{
    double factor = 0.1;
    if (isfinite(eps) && eps > 0) {
        factor = 0.9 * pow(opt->safety * opt->tol / eps, 1.0 / order);
        factor = fmin(fmax(factor, 0.1), 0.9);
    }
    s->rejected++;
    crd_step_event(opt, s->h * factor, s);
    return s->h;
}

// The largest h at which no derivative from order k on makes a defect beyond tol: that of order j
// is |y^(j)| h^j / (j! sqrt(2j+1)) as RMS over the step.
static double step_within_tolerance(const crd_sample* y, int k, double tol)
{
    double d[4] = {0}; // magnitudes of the derivatives
    double omega = 0;  // how a derivative grows out of the one before
    for (int i = 0; i <= y->order; i++) {
        d[i] = fabs(y->y[i]);
        if (i > 0 && d[i - 1] > 0) { omega = fmax(omega, d[i] / d[i - 1]); }
    }
    if (y->order == 2 && d[0] > 0) { omega = fmax(omega, sqrt(d[2] / d[0])); }
    for (int i = y->order + 1; i <= 3; i++) {
        d[i] = d[i - 1] * omega;
    }
    static const double factorial[4] = {1, 1, 2, 6};
    double h = INFINITY;
    for (int j = k; j <= 3; j++) {
        if (!(d[j] > 0)) { continue; }
        h = fmin(h, pow(tol * factorial[j] * sqrt(2 * j + 1) / d[j], 1.0 / j));
    }
    return h;
}

double crd_step_first(const crd_step_options* opt, int n, const crd_sample* y, int order,
                      double span)
{
    const int k = order < 3 ? order : 3; // the first step has no past: taylor2 is the best there
    double h = 1e-3 * span;
    for (int i = 0; i < n; i++) {
        h = fmin(h, y[i].order > 0 ? 0.1 * step_within_tolerance(&y[i], k, opt->tol) : 1e-6 * span);
    }
    return fmin(fmax(h, opt->floor), opt->ceiling);
}
