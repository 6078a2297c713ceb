// Retrospective selection: the finished step tells which predictor would have been the best for it.
#include "quality/poly.h"
#include "shared/base.h"
#include "shared/quality_level.h"

#include <math.h>

// Hysteresis of the slow errors, and how much of a single step's square counts in them as well.
static const double SLOW_GAIN = 0.7, ROUGH = 0.03;
enum { PATIENCE = 64, LONGEST = 1 << 20 }; // steps

crd_select_options crd_select_defaults(void)
{
    return (crd_select_options){
        .candidates = 1u << CRD_PREDICT_HOLD | 1u << CRD_PREDICT_TAYLOR1 |
                      1u << CRD_PREDICT_TAYLOR2 | 1u << CRD_PREDICT_HERMITE,
        .forget = 0.8,
        .gain = 0.45,
        .jump = 8,
        .settle = 2,
        .omega_h = CRD_HERMITE_BOUND,
    };
}

crd_status crd_select_check(crd_context* ctx, const crd_select_options* opt)
{
    if (opt->candidates >> CRD_PREDICT_COUNT != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: candidates = %#x has bits beyond the %d "
                         "predictors",
                         opt->candidates, CRD_PREDICT_COUNT);
    }
    if (!(opt->forget >= 0 && opt->forget < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: forget = %g, expected 0 <= forget < 1",
                         opt->forget);
    }
    if (!(opt->gain > 0 && opt->gain <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: gain = %g, expected 0 < gain <= 1",
                         opt->gain);
    }
    if (!(opt->jump > 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "selection of the predictor: jump = %g, expected > 1",
                         opt->jump);
    }
    if (opt->settle < 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: settle = %d steps, expected >= 0",
                         opt->settle);
    }
    if (!(opt->omega_h > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "selection of the predictor: omega_h = %g, expected > 0",
                         opt->omega_h);
    }
    if (!(opt->smooth >= 0 && opt->smooth < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: smooth = %g, expected 0 <= smooth < 1",
                         opt->smooth);
    }
    if (!(opt->tol >= 0)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "selection of the predictor: tol = %g, expected >= 0 (0: least error)",
                         opt->tol);
    }
    return CRD_OK;
}

static bool is_candidate(const crd_select_options* opt, int p)
{
    return p == CRD_PREDICT_HOLD || (opt->candidates >> p & 1u) != 0;
}

void crd_select_start(const crd_select_options* opt, crd_select* s, const crd_sample* first)
{
    *s = (crd_select){.now = CRD_PREDICT_HOLD};
    for (int p = CRD_PREDICT_TAYLOR1; p <= CRD_PREDICT_TAYLOR2; p++) {
        const int degree = p - CRD_PREDICT_HOLD;
        if (degree <= first->order && is_candidate(opt, p)) { s->now = (crd_predictor)p; }
    }
}

// A change far beyond those of late that neither the slope nor the curvature had announced.
static bool jumped(const crd_select_options* opt, const crd_select* s, const crd_history* before,
                   double h, double y)
{
    const double change = fabs(y - before->sample[0].y[0]);
    const double noise = 1e-12 * (fabs(y) + fabs(before->sample[0].y[0]));
    if (!(s->weight > 0) || !(change > noise)) { return false; }
    if (!(change > opt->jump * sqrt(s->change / s->weight))) { return false; }
    double error = change;
    for (int p = CRD_PREDICT_TAYLOR1; p <= CRD_PREDICT_TAYLOR2; p++) {
        const crd_poly u = crd_predict((crd_predictor)p, before, h);
        error = fmin(error, fabs(crd_poly_eval(&u, h) - y));
    }
    return error > 0.5 * change;
}

void crd_select_event(const crd_select_options* opt, crd_select* s)
{
    *s = (crd_select){.now = CRD_PREDICT_HOLD,
                      .settle = opt->settle,
                      .wait = s->wait,
                      .patience = s->patience,
                      .steps = s->steps,
                      .jumps = s->jumps + 1,
                      .switches = s->switches + (s->now != CRD_PREDICT_HOLD)};
}

// With hysteresis, upwards only: a lower order that is better at all is the safer one.
static bool better(const crd_select_options* opt, crd_predictor p, double bad, crd_predictor now,
                   double present)
{
    const bool lower = crd_predictor_order(p) < crd_predictor_order(now);
    return bad < (lower ? 1 : opt->gain * opt->gain) * present;
}

// The step at which the candidate would reach tol, (step / h)^k = tol / error, to the power -4:
// twice the hysteresis of errors would be too much for steps.
static double shortness(const crd_select_options* opt, const crd_select* s, crd_predictor p,
                        double h)
{
    const double ratio = s->score[p] / s->weight / (opt->tol * opt->tol);
    return pow(ratio, 2.0 / crd_predictor_order(p)) / (h * h * h * h);
}

// The least error decides among all but hermite. That one is bound to short steps: where the step
// is controlled it has to allow a longer one than the other, at equal tolerance.
static crd_predictor best(const crd_select_options* opt, const crd_select* s, double h)
{
    crd_predictor low = s->now == CRD_PREDICT_HERMITE ? CRD_PREDICT_HOLD : s->now;
    const crd_predictor from = low;
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        const crd_predictor p = (crd_predictor)i;
        if (p == CRD_PREDICT_HERMITE || !is_candidate(opt, i)) { continue; }
        if (s->wait > 0 && crd_predictor_order(p) > 2) { continue; }
        if (s->score[i] < s->score[low] && better(opt, p, s->score[i], from, s->score[from])) {
            low = p;
        }
    }
    if (!is_candidate(opt, CRD_PREDICT_HERMITE)) { return low; }
    double bad = s->score[CRD_PREDICT_HERMITE], other = s->score[low];
    if (opt->tol > 0) {
        const double omega = crd_select_omega(s) / opt->omega_h;
        bad = fmax(shortness(opt, s, CRD_PREDICT_HERMITE, h), omega * omega * omega * omega);
        other = shortness(opt, s, low, h);
    }
    if (s->now == CRD_PREDICT_HERMITE) {
        return better(opt, low, other, s->now, bad) ? low : s->now;
    }
    return better(opt, CRD_PREDICT_HERMITE, bad, low, other) ? CRD_PREDICT_HERMITE : low;
}

// The order above hold, or hold if there is none.
static crd_predictor second(const crd_select_options* opt)
{
    return is_candidate(opt, CRD_PREDICT_TAYLOR1) ? CRD_PREDICT_TAYLOR1
           : is_candidate(opt, CRD_PREDICT_AB2)   ? CRD_PREDICT_AB2
                                                  : CRD_PREDICT_HOLD;
}

// Units integrate their inputs: noise of single steps cancels in what they feel, a delay does not.
static crd_predictor best_of_slow(const crd_select_options* opt, const crd_select* s)
{
    const double gain = s->now == CRD_PREDICT_HOLD ? SLOW_GAIN * SLOW_GAIN : 1;
    return s->slow[1] < gain * s->slow[0] ? second(opt) : CRD_PREDICT_HOLD;
}

// High orders made of differences are not stable in every closed loop, and look good until they are
// used: what had to be left is tried again, but later and later.
static void change_to(crd_select* s, crd_predictor next, bool differences)
{
    const int order = crd_predictor_order(s->now);
    if (s->wait > 0) { s->wait--; }
    if (differences && order > 2 && crd_predictor_order(next) < order) {
        s->patience = s->patience == 0        ? PATIENCE
                      : s->patience < LONGEST ? 2 * s->patience
                                              : LONGEST;
        s->wait = s->patience;
    }
    s->switches += next != s->now;
    s->now = next;
}

// Squared, as the unit feels it; `bias` is its mean.
static double error_of(const crd_select_options* opt, const crd_poly* u, const crd_poly* truth,
                       double bias, double h)
{
    if (opt->hold_only) { return bias * bias; }
    const crd_poly d = crd_poly_minus(u, truth);
    return crd_poly_mean_square(&d, 0, h);
}

static void add_slow(crd_select* s, int i, double keep, double bias, double square)
{
    s->drift[i] = keep * s->drift[i] + (1 - keep) * bias;
    s->slow[i] = keep * s->slow[i] + (1 - keep) * (s->drift[i] * s->drift[i] + ROUGH * square);
}

// What each candidate was wrong by over the step, on average and as a mean square.
typedef struct misses {
    double bias[CRD_PREDICT_COUNT], square[CRD_PREDICT_COUNT];
} misses;

// Values at equal steps that become means: from differences alone.
static bool find_even(const crd_select_options* opt, const crd_history* before, double h,
                      const crd_sample* end, misses* out)
{
    const unsigned means = 1u << CRD_PREDICT_HOLD | 1u << CRD_PREDICT_AB2 | 1u << CRD_PREDICT_AB3;
    if (!opt->hold_only || opt->candidates & ~means || before->count < 3 ||
        before->sample[0].order + end->order > 0 || fabs(before->h[0] - h) > 1e-10 * h ||
        fabs(before->h[1] - h) > 1e-10 * h) {
        return false;
    }
    static const crd_predictor levels[] = {CRD_PREDICT_HOLD, CRD_PREDICT_AB2, CRD_PREDICT_AB3};
    crdi_level_signal past = {.count = 3};
    double error[CRDI_LEVELS];
    crdi_level_resume(
        &past, (double[]){before->sample[0].y[0], before->sample[1].y[0], before->sample[2].y[0]});
    crdi_level_errors(&past, end->y[0], error);
    for (int l = 0; l < CRDI_LEVELS; l++) {
        out->bias[levels[l]] = -error[l];
        out->square[levels[l]] = error[l] * error[l];
    }
    return true;
}

static void find_misses(const crd_select_options* opt, crd_select* s, const crd_history* before,
                        double h, const crd_sample* end, misses* out)
{
    const crd_poly truth = crd_history_reconstruct(before, h, end);
    const double mean = crd_poly_mean(&truth, 0, h);
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        if (!is_candidate(opt, i)) { continue; }
        const crd_poly u = crd_predict((crd_predictor)i, before, h);
        out->bias[i] = crd_poly_mean(&u, 0, h) - mean;
        out->square[i] = error_of(opt, &u, &truth, out->bias[i], h);
    }
    // Over many steps and by time: within a fraction of a period the ratio says nothing.
    const double slope = crd_poly_derivative(&truth, 1, h);
    const double curve = crd_poly_derivative(&truth, 2, h);
    s->slope_square = 0.98 * s->slope_square + h * slope * slope;
    s->curve_square = 0.98 * s->curve_square + h * curve * curve;
}

bool crd_select_step(const crd_select_options* opt, crd_select* s, const crd_history* before,
                     double h, const crd_sample* end)
{
    misses missed;
    s->steps++;
    if (before->count == 0) { return false; }
    if (jumped(opt, s, before, h, end->y[0])) {
        crd_select_event(opt, s);
        return true;
    }
    if (!find_even(opt, before, h, end, &missed)) { find_misses(opt, s, before, h, end, &missed); }
    // While the history fills, candidates are not yet what they will be: the newest step counts.
    const double w = before->count < 3 ? fmin(0.2, opt->forget) : opt->forget, part = 1 - w;
    const bool slow = opt->smooth > 0 && !(opt->tol > 0);
    // Where hermite has no derivatives it is taylor2, and no better.
    const bool derivatives = before->sample[0].order >= 2;
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        if (!is_candidate(opt, i)) { continue; }
        if (i == CRD_PREDICT_HERMITE && !derivatives && is_candidate(opt, CRD_PREDICT_TAYLOR2)) {
            s->score[i] = s->score[CRD_PREDICT_TAYLOR2];
            continue;
        }
        s->score[i] = w * s->score[i] + part * missed.square[i];
        if (slow && (i == CRD_PREDICT_HOLD || i == (int)second(opt))) {
            add_slow(s, i != CRD_PREDICT_HOLD, fmin(w, opt->smooth), missed.bias[i],
                     missed.square[i]);
        }
    }
    const double change = end->y[0] - before->sample[0].y[0];
    s->weight = w * s->weight + part;
    s->change = w * s->change + part * change * change;
    // of the signal, squared: scores below its rounding say nothing
    const double size = end->y[0] * end->y[0] + before->sample[0].y[0] * before->sample[0].y[0];
    if (s->settle > 0) {
        s->settle--;
        return false;
    }
    if (s->score[s->now] > 1e-28 * size) {
        crd_predictor next = best(opt, s, h);
        if (slow && next == CRD_PREDICT_HOLD) { next = best_of_slow(opt, s); }
        change_to(s, next, end->order == 0);
    }
    return false;
}

double crd_select_omega(const crd_select* s)
{
    return s->slope_square > 0 ? sqrt(s->curve_square / s->slope_square) : 0;
}

double crd_select_ceiling(const crd_select_options* opt, const crd_select* s)
{
    return s->now == CRD_PREDICT_HERMITE ? opt->omega_h / crd_select_omega(s) : INFINITY;
}

crd_predictor crd_select_choice(const crd_select_options* opt, const crd_select* s, double H)
{
    // A step right at the ceiling is meant to pass.
    return H <= crd_select_ceiling(opt, s) * (1 + 1e-12) ? s->now : CRD_PREDICT_TAYLOR2;
}
