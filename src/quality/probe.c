// Feedthrough of a unit that is a black box: found by probing, then used to refresh its output.
//
// f_(k+1) = D u_k + what the states give. Held inputs u_k are ours to choose, so each is moved by a
// probe d_k whose sign alternates, +-+- of a displacement, +--+ of a flow. Fourth differences of f
// and u take out what is smooth; the probes are the instruments that pick out of the rest what u
// caused and not what caused u. Of a displacement the alternating force leaves positions at the
// ends of steps where they were, so that its answer is D alone. A flow w is integrated by the unit
// (spring K): f_(k+1) - f_k = (D - K H) w_k - D w_(k-1), and the gain is that of the older one.
//
// What is not certain is not used: D is shrunk by its variance, and f is extrapolated only while
// its refreshed values follow a course; where they jump to and fro, D is not known yet, or the
// coupling is about to become unstable, and f is held.
#include "cardan/quality.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum { GAINS = CRD_PROBE_GAINS, WINDOW = CRD_PROBE_WINDOW };

static const double colour = 4; // differences of white noise are strongest where probes are
static const double score_forget = 0.9;
static const double gate_open = 0; // slope of successive changes: -1 alternation, -0.5 noise
static const double gate_shut = -0.5;
static const double ridge = 1e-6;

crd_probe crd_probe_defaults(void)
{
    return (crd_probe){
        .inputs = 1, .flow = {false, true}, .amplitude = 0.5, .forget = 0.997, .gate_forget = 0.98};
}

crd_status crd_probe_check(crd_context* ctx, const crd_probe* p)
{
    if (p->inputs < 1 || p->inputs > CRD_PROBE_INPUTS) {
        return crdi_fail(ctx, CRD_E_RANGE, "probe: %d inputs, expected 1 or %d", p->inputs,
                         CRD_PROBE_INPUTS);
    }
    if (p->inputs == 2 && p->flow[0] == p->flow[1]) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "probe: both inputs are %s, expected one displacement and one flow",
                         p->flow[0] ? "flows" : "displacements");
    }
    if (!(p->amplitude > 0 && p->amplitude <= 0.5)) {
        return crdi_fail(ctx, CRD_E_RANGE, "probe: amplitude = %g, expected 0 < amplitude <= 0.5",
                         p->amplitude);
    }
    if (!(p->forget >= 0.9 && p->forget <= 1)) { // shorter memories cannot tell three gains
        return crdi_fail(ctx, CRD_E_RANGE, "probe: forget = %g, expected 0.9 <= forget <= 1",
                         p->forget);
    }
    if (!(p->gate_forget > 0 && p->gate_forget <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "probe: gate_forget = %g, expected 0 < gate_forget <= 1",
                         p->gate_forget);
    }
    return CRD_OK;
}

static int gains_of(const crd_probe* p)
{
    int n = 0;
    for (int i = 0; i < p->inputs; i++) {
        n += p->flow[i] ? 2 : 1;
    }
    return n;
}

static void push_window(double a[WINDOW], double value)
{
    memmove(a + 1, a, (WINDOW - 1) * sizeof *a);
    a[0] = value;
}

static void remember_sample(crd_history* y, double h, double value)
{
    crd_history_push(y, h, &(crd_sample){.y = {value}});
}

static double third(const double* a)
{
    return a[0] - 3 * a[1] + 3 * a[2] - a[3];
}

static double fourth(const double* a)
{
    return third(a) - third(a + 1);
}

void crd_probe_start(const crd_probe* p, crd_probe_state* s, double f, const double* y)
{
    *s = (crd_probe_state){.fresh = f, .gate = 1, .used = CRD_PREDICT_AB2, .equal = 1};
    push_window(s->f, f);
    remember_sample(&s->refreshed, 0, f);
    for (int i = 0; i < p->inputs; i++) {
        push_window(s->u[i], y[i]); // f was evaluated with it
        push_window(s->u[i], y[i]); // and it is held over the first step
        remember_sample(&s->y[i], 0, y[i]);
    }
    s->ab[0] = s->ab[1] = f;
}

void crd_probe_event(const crd_probe* p, crd_probe_state* s)
{
    for (int i = 0; i < p->inputs; i++) {
        s->y[i] = (crd_history){0};
    }
    s->refreshed = (crd_history){0};
    s->equal = 0;
    s->score[0] = s->score[1] = 0;
    s->gate_xy = s->gate_xx = s->rate = 0;
    s->used = CRD_PREDICT_AB2;
}

// ---- gains -------------------------------------------------------------------------------------

// Inverse of a (n x n) by Gauss and Jordan with pivots. false: singular.
static bool invert(int n, double a[GAINS][GAINS], double inverse[GAINS][GAINS])
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            inverse[i][j] = i == j;
        }
    }
    for (int c = 0; c < n; c++) {
        int best = c;
        for (int i = c + 1; i < n; i++) {
            if (fabs(a[i][c]) > fabs(a[best][c])) { best = i; }
        }
        if (a[best][c] == 0) { return false; }
        for (int j = 0; j < n; j++) {
            const double t = a[c][j], u = inverse[c][j];
            a[c][j] = a[best][j];
            a[best][j] = t;
            inverse[c][j] = inverse[best][j];
            inverse[best][j] = u;
        }
        const double pivot = a[c][c];
        for (int j = 0; j < n; j++) {
            a[c][j] /= pivot;
            inverse[c][j] /= pivot;
        }
        for (int i = 0; i < n; i++) {
            const double q = i == c ? 0 : a[i][c];
            for (int j = 0; j < n; j++) {
                a[i][j] -= q * a[c][j];
                inverse[i][j] -= q * inverse[c][j];
            }
        }
    }
    return true;
}

// The finished step enters the sums.
static void probe_learn(const crd_probe* p, crd_probe_state* s)
{
    const int n = gains_of(p);
    const double a = fourth(s->f);
    double x[GAINS] = {0}, z[GAINS] = {0};
    for (int i = 0, j = 0; i < p->inputs; i++) {
        if (p->flow[i]) {
            x[j] = third(s->u[i]);
            z[j++] = third(s->probe[i]);
            x[j] = third(s->u[i] + 1);
            z[j++] = third(s->probe[i] + 1);
        } else {
            x[j] = fourth(s->u[i]);
            z[j++] = fourth(s->probe[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            s->zx[i][j] = p->forget * s->zx[i][j] + z[i] * x[j];
            s->zz[i][j] = p->forget * s->zz[i][j] + z[i] * z[j];
            s->xx[i][j] = p->forget * s->xx[i][j] + x[i] * x[j];
        }
        s->za[i] = p->forget * s->za[i] + z[i] * a;
        s->xa[i] = p->forget * s->xa[i] + x[i] * a;
    }
    s->aa = p->forget * s->aa + a * a;
    s->weight = p->forget * s->weight + 1;
    s->learned++;
}

// g = zx^-1 za with its variances, 0 of inputs that have not moved. false: too early to tell.
static bool estimate_gains(const crd_probe_state* s, int n, double g[GAINS], double variance[GAINS])
{
    double scale[GAINS], a[GAINS][GAINS], inverse[GAINS][GAINS];
    const double free = s->weight - n;
    if (!(free > 0.5)) { return false; }
    for (int i = 0; i < n; i++) { // inputs differ by orders of magnitude
        scale[i] = s->zz[i][i] == 0 ? 1 : sqrt(s->zz[i][i]);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            a[i][j] = s->zx[i][j] / (scale[i] * scale[j]);
        }
        a[i][i] += s->zz[i][i] == 0 ? 1 : ridge;
    }
    if (!invert(n, a, inverse)) { return false; }
    double rest = s->aa;
    for (int i = 0; i < n; i++) {
        g[i] = 0;
        for (int j = 0; j < n; j++) {
            inverse[i][j] /= scale[i] * scale[j];
            g[i] += inverse[i][j] * s->za[j];
        }
    }
    for (int i = 0; i < n; i++) {
        rest -= 2 * g[i] * s->xa[i];
        for (int j = 0; j < n; j++) {
            rest += g[i] * g[j] * s->xx[i][j];
        }
    }
    rest = crd_defect_larger(rest, 1e-12 * s->aa); // not below rounding
    for (int i = 0; i < n; i++) {
        variance[i] = 0;
        for (int j = 0; j < n; j++) {
            for (int k = 0; k < n; k++) {
                variance[i] += inverse[i][j] * s->zz[j][k] * inverse[i][k];
            }
        }
        variance[i] *= colour * rest / free;
    }
    return true;
}

static void find_gains(const crd_probe* p, crd_probe_state* s)
{
    const int n = gains_of(p);
    double g[GAINS], variance[GAINS];
    if (s->learned <= n || !estimate_gains(s, n, g, variance)) { return; }
    for (int i = 0, j = 0; i < p->inputs; i++) {
        double D = g[j], v = variance[j];
        j++;
        if (p->flow[i]) {
            D = -g[j];
            v = variance[j];
            j++;
        }
        s->deviation[i] = sqrt(v);
        s->gain[i] = D * D <= v ? 0 : D - v / D;
    }
}

// ---- extrapolation of f ------------------------------------------------------------------------

// AB3 while it is better than AB2 on the step that just ended.
static void choose_order(crd_probe_state* s, double h)
{
    if (s->refreshed.count < 3) { return; }
    const crd_sample end = crd_history_estimate(&s->refreshed, 2);
    const crd_poly course = crd_poly_taylor(&end, 2);
    const double mean = crd_poly_mean(&course, -h, 0);
    for (int i = 0; i < 2; i++) {
        const double e = s->ab[i] - mean;
        s->score[i] = score_forget * s->score[i] + e * e;
    }
    if (s->score[1] < 0.7 * s->score[0]) {
        s->used = CRD_PREDICT_AB3;
    } else if (s->score[1] > s->score[0]) {
        s->used = CRD_PREDICT_AB2;
    }
}

// Least-squares slope of the changes of f on those before.
static void move_gate(const crd_probe* p, crd_probe_state* s, double h)
{
    const crd_history* f = &s->refreshed;
    const double rate = f->count > 1 ? (f->sample[0].y[0] - f->sample[1].y[0]) / h : 0;
    if (f->count > 2) {
        s->gate_xy = p->gate_forget * s->gate_xy + rate * s->rate;
        s->gate_xx = p->gate_forget * s->gate_xx + s->rate * s->rate;
    }
    s->rate = rate;
    const bool early = s->steps < gains_of(p) + WINDOW + 1; // there are no gains yet
    if (early || !(s->gate_xx > 0)) {
        s->gate = 1;
        return;
    }
    const double slope = s->gate_xy / s->gate_xx;
    s->gate = fmin(fmax((slope - gate_shut) / (gate_open - gate_shut), 0), 1);
}

static double extrapolate(const crd_probe* p, crd_probe_state* s, double h, double h_next)
{
    remember_sample(&s->refreshed, h, s->fresh);
    choose_order(s, h);
    move_gate(p, s, h);
    s->ab[0] = crd_predict_mean(CRD_PREDICT_AB2, &s->refreshed, h_next);
    s->ab[1] = crd_predict_mean(CRD_PREDICT_AB3, &s->refreshed, h_next);
    const double to = s->used == CRD_PREDICT_AB3 ? s->ab[1] : s->ab[0];
    return s->fresh + s->gate * (to - s->fresh);
}

// ---- the step ----------------------------------------------------------------------------------

crd_predictor crd_probe_predictor(const crd_probe* p, int i)
{
    return p->flow[i] ? CRD_PREDICT_AB2 : CRD_PREDICT_AB3;
}

// What input i is held at over the next step: the mean of its prediction, and the probe.
static double probed(const crd_probe* p, crd_probe_state* s, int i, double h, double h_next)
{
    const crd_history* y = &s->y[i];
    const int64_t k = s->steps;
    const double sign = (k & 1) != (p->flow[i] ? k >> 1 & 1 : 0) ? -1 : 1;
    const double change = y->count > 1 ? (y->sample[0].y[0] - y->sample[1].y[0]) / h * h_next : 0;
    const double probe = sign * p->amplitude * change;
    push_window(s->probe[i], probe);
    return crd_predict_mean(crd_probe_predictor(p, i), y, h_next) + probe;
}

double crd_probe_step(const crd_probe* p, crd_probe_state* s, double h, double h_next, double f,
                      const double* y, double* u)
{
    const bool same = s->steps == 0 || fabs(h - s->h) <= 1e-9 * h;
    s->equal = !same ? 1 : s->equal < WINDOW ? s->equal + 1 : WINDOW;
    s->h = h;
    s->steps++;
    push_window(s->f, f);
    if (s->equal == WINDOW) {
        probe_learn(p, s);
        find_gains(p, s);
    }
    s->fresh = f;
    for (int i = 0; i < p->inputs; i++) {
        s->fresh += s->gain[i] * (y[i] - s->u[i][0]);
        remember_sample(&s->y[i], h, y[i]);
    }
    for (int i = 0; i < p->inputs; i++) {
        u[i] = probed(p, s, i, h, h_next);
        push_window(s->u[i], u[i]);
    }
    return extrapolate(p, s, h, h_next);
}
