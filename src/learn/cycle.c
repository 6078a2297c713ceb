// Corrections of late coupling signals, learned from run to run. Per frequency, with E = sent -
// received of all signals, G the response from corrections to E, and S scaling both to ranges:
//     C := C - gain S^-1 (A^H A + damping I)^-1 A^H S E,   A = S G S^-1
// All signals of all bonds together (2n x 2n for n bonds), so that bonds on one shaft know of each
// other. G is identified in one run for each signal:
//     G_ki(f) = sum_w dE_k conj(dC_i) / sum_w |dC_i|^2   over the neighbourhood w of f
// What is learned has to repeat: where the age of samples varies, all are used at the same age,
// which the latest but one in a hundred set; how long that is does not matter, as it is corrected.
// The cycle begins and ends differently. What is transformed lies in a longer row: disturbances
// begin and end at 0 inside of the run, so that nothing leaks; an error that is not 0 at the end
// fades behind it, and what the acausal inverse puts behind the end or before the start is cut.
#include "shared/learn_cycle.h"
#include "shared/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double least_trust = 0.5;

typedef struct learner {
    crd_context* ctx;
    crd_arena arena;
    const crdi_repeat_options* o;
    crdi_repeat_runner* run;
    void* user;
    crdi_repeat* c;
    int n, count;        // signals, samples
    int length;          // of the transforms, a power of two
    int bins;            // up to the band limit
    int half;            // bins on each side that the response is smoothed over
    double* response;    // (bins x n x n) complex, row k column i: S F S^-1, F = G + 1
    double* noise;       // (n x bins) power of what does not repeat, over neighbours
    double *wish, *best; // (n x count) corrections: next, of the best run
    double *error, *first,
        *now;             // (n x count) sent - received: of the best run, the first, the newest
    double* spectra;      // (n x length) complex
    double *input, *work; // (length) complex
    double *at, *matrix, *normal, *x; // (n), (n x n), (n x n), (n) complex
    int32_t* pivots;
    crdi_repeat_pass pass;
    double gain;
    bool follows; // F is believed
} learner;

crdi_repeat_options crdi_repeat_defaults(void)
{
    return (crdi_repeat_options){
        .runs = 6, .gain = 1, .damping = 0.03, .band = (double)NAN, .disturbance = 0.05};
}

double crdi_repeat_limit(const crdi_repeat_limits* l, double estimate, double wish, double before,
                         double past)
{
    if (!isfinite(wish) || !isfinite(estimate)) { return 0; }
    const double value = estimate + fmax(-l->most, fmin(l->most, wish));
    double low = l->min, high = l->max;
    if (isfinite(before)) {
        low = fmax(low, before - l->rate * past);
        high = fmin(high, before + l->rate * past);
    }
    // What the estimate does by itself is not undone, and not made worse.
    low = fmin(low, estimate);
    high = fmax(high, estimate);
    return fmax(low, fmin(high, value)) - estimate;
}

crdi_repeat_limits crdi_repeat_limits_of(const crdi_repeat_signal* s, double min, double max,
                                         double rate)
{
    const double margin = isfinite(max - min) ? 0.01 * (max - min) : 0; // never touched
    return (crdi_repeat_limits){.min = fmax(min + margin, s->min - 0.1 * s->scale),
                                .max = fmin(max - margin, s->max + 0.1 * s->scale),
                                .rate = 0.99 * rate,
                                .most = s->scale};
}

// ---- spectra -----------------------------------------------------------------------------------

// A row with gaps (NaN) into `out`: lines over gaps, and behind the last value a fading one.
static void load(const learner* l, const double* row, double* out)
{
    memset(out, 0, 2 * (size_t)l->length * sizeof *out);
    int last = -1;
    for (int i = 0; i < l->count; i++) {
        if (isnan(row[i])) { continue; }
        for (int j = last + 1; j < i && last >= 0; j++) {
            out[2 * j] = row[last] + (row[i] - row[last]) * (j - last) / (i - last);
        }
        out[2 * (size_t)i] = row[i];
        last = i;
    }
    const int fade = (l->length - l->count) / 2;
    for (int i = last + 1; last >= 0 && i < last + fade && i < l->length; i++) {
        out[2 * (size_t)i] = row[last] * 0.5 * (1 + cos(M_PI * (i - last) / fade));
    }
}

// 1 in the band, 0 above it, a cosine between 0.8 and 1 of its end, if there is anything above.
static double window(const learner* l, int q)
{
    if (2 * l->bins > l->length) { return 1; }
    const double part = (double)q / (double)(l->bins - 1);
    return part < 0.8 ? 1 : part >= 1 ? 0 : 0.5 * (1 + cos(M_PI * (part - 0.8) / 0.2));
}

// Real part of the inverse transform of bins 0 .. bins - 1 and their mirror, in place.
static void back(const learner* l, double* x)
{
    for (int q = l->bins; q <= l->length / 2; q++) {
        x[2 * (size_t)q] = x[2 * (size_t)q + 1] = 0;
    }
    x[1] = 0;
    for (int q = 1; q <= l->length / 2; q++) { // conj(X), so that the forward transform does it
        x[2 * (size_t)q + 1] = -x[2 * (size_t)q + 1];
        x[2 * (size_t)(l->length - q)] = x[2 * (size_t)q];
        x[2 * (size_t)(l->length - q) + 1] = -x[2 * (size_t)q + 1];
    }
    crdi_num_fft(l->length, x);
    for (int i = 0; i < l->length; i++) {
        x[2 * (size_t)i] /= l->length;
    }
}

static uint64_t scramble(uint64_t x) // SplitMix64
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// Noise up to the band limit that begins and ends at 0 and leaves the end of the run to what it
// causes; its largest value is `peak`.
static void disturb(const learner* l, int signal, double peak, double* out)
{
    double* x = l->work;
    const int end = l->count - l->count / 8, edge = l->count / 16;
    memset(x, 0, 2 * (size_t)l->length * sizeof *x);
    for (int i = 0; i < l->length; i++) {
        x[2 * (size_t)i] =
            (double)(scramble((uint64_t)signal * 1000003 + (uint64_t)i) >> 11) * 0x1p-52 - 1;
    }
    crdi_num_fft(l->length, x);
    for (int q = 0; q < l->bins; q++) {
        x[2 * (size_t)q] *= window(l, q);
        x[2 * (size_t)q + 1] *= window(l, q);
    }
    back(l, x);
    double most = 0;
    for (int i = 0; i < l->count; i++) {
        const double side = fmin(i, end - i);
        const double w = side <= 0 ? 0 : side < edge ? 0.5 * (1 - cos(M_PI * side / edge)) : 1;
        out[i] = x[2 * (size_t)i] * w;
        most = fmax(most, fabs(out[i]));
    }
    for (int i = 0; i < l->count; i++) {
        out[i] *= peak / most;
    }
}

// ---- runs --------------------------------------------------------------------------------------

static double rms(const double* x, int count)
{
    double sum = 0;
    int known = 0;
    for (int i = 0; i < count; i++) {
        if (isnan(x[i])) { continue; }
        sum += x[i] * x[i];
        known++;
    }
    return known ? sqrt(sum / known) : 0;
}

static crd_status make_run(learner* l, const double* correction, const char* what, bool identify,
                           double* error)
{
    crdi_repeat_pass* p = &l->pass;
    crdi_repeat* c = l->c;
    p->number++;
    p->correction = correction;
    p->cycle = c;
    p->limited = 0;
    memset(p->ages, 0, (size_t)l->n * CRDI_REPEAT_AGES * sizeof *p->ages);
    for (size_t i = 0; i < (size_t)l->n * (size_t)l->count; i++) {
        p->sent[i] = p->received[i] = NAN;
        p->acted[i] = 0;
    }
    const crd_status st = l->run(l->user, p);
    if (st < 0) { return st; }
    crdi_repeat_figure* f = &c->figures[c->figure_count++];
    *f = (crdi_repeat_figure){.what = what, .limited = p->limited, .gain = identify ? 0 : l->gain};
    for (int k = 0; k < l->n; k++) {
        const size_t row = (size_t)k * (size_t)l->count;
        if (c->signals[k].scale == 0) { // the first run
            crdi_repeat_signal* s = &c->signals[k];
            s->min = INFINITY;
            s->max = -INFINITY;
            for (int i = 0; i < l->count; i++) {
                s->min = fmin(s->min, p->sent[row + (size_t)i]);
                s->max = fmax(s->max, p->sent[row + (size_t)i]);
            }
            const double size = fmax(fabs(s->min), fabs(s->max));
            s->scale = s->max > s->min ? s->max - s->min : size > 0 ? size : 1;
        }
        for (int i = 0; i < l->count; i++) {
            l->now[row + (size_t)i] = p->sent[row + (size_t)i] - p->received[row + (size_t)i];
        }
        f->signals[k] = rms(l->now + row, l->count) / c->signals[k].scale;
        f->error += f->signals[k] * f->signals[k] / l->n;
    }
    f->error = sqrt(f->error);
    *error = f->error;
    return isfinite(f->error)
               ? CRD_OK
               : crdi_fail(l->ctx, CRD_E_CONVERGENCE,
                           "run %d (%s): what was exchanged is not finite", p->number, what);
}

static void tell(const learner* l, bool kept)
{
    crdi_repeat_figure* f = &l->c->figures[l->c->figure_count - 1];
    f->kept = kept;
    if (l->o->note) { l->o->note(l->user, f, l->c->figure_count); }
}

static void keep(learner* l)
{
    const size_t all = (size_t)l->n * (size_t)l->count;
    memcpy(l->error, l->now, all * sizeof *l->error);
    memcpy(l->best, l->pass.acted, all * sizeof *l->best);
    for (int k = 0; k < l->n; k++) {
        const size_t row = (size_t)k * (size_t)l->count;
        memcpy(l->c->signals[k].sent, l->pass.sent + row, (size_t)l->count * sizeof(double));
        l->c->signals[k].latency = l->pass.latency[k];
    }
}

// ---- identification ----------------------------------------------------------------------------

// Column i of the response at all bins, from dE (in spectra) and dC (in input). What is told acts
// on what is received at once, E = ... - C: only the rest F = G + 1 is identified,
//     F_ki = sum_w dF_k conj(dC_i) / sum_w |dC_i|^2,  dF_k = dE_k + [k = i] dC_i
// and as far as it is more than chance: times (g - g0) / (1 - g0), g the squared coherence and g0
// what noise has among so many bins. Something that jumps at another time in this run is such
// noise.
static void smooth_column(learner* l, int i)
{
    const int n = l->n;
    const double bins = 4.0 / 3 * (l->half + 1) * l->count / l->length; // that are independent
    const double chance = fmin(0.9, 1 / bins);
    for (int q = 0; q < l->bins; q++) {
        double* to = l->response + 2 * (size_t)q * (size_t)(n * n);
        for (int k = 0; k < n; k++) {
            double power = 0, answer = 0, re = 0, im = 0;
            for (int d = -l->half; d <= l->half; d++) {
                const int at = (q + d + l->length) % l->length; // below 0: the mirror
                const double w = 0.5 * (1 + cos(M_PI * d / (l->half + 1)));
                const double* u = l->input + 2 * (size_t)at;
                const double* e = l->spectra + 2 * ((size_t)k * (size_t)l->length + (size_t)at);
                const double x = e[0] + (k == i ? u[0] : 0), y = e[1] + (k == i ? u[1] : 0);
                power += w * (u[0] * u[0] + u[1] * u[1]);
                answer += w * (x * x + y * y);
                re += w * (x * u[0] + y * u[1]);
                im += w * (y * u[0] - x * u[1]);
            }
            const double both = power * answer;
            const double coherence = both > 0 ? (re * re + im * im) / both : 0;
            const double known = fmax(0, fmin(1, 2 * (coherence - chance) / (1 - chance)));
            double* noise = &l->noise[(size_t)k * (size_t)l->bins + (size_t)q]; // of both runs
            *noise = fmin(*noise, 0.5 * (1 - coherence) * answer);
            const double scale =
                power > 0 ? known * l->c->signals[i].scale / l->c->signals[k].scale / power : 0;
            to[2 * (k * n + i)] = scale * re;
            to[2 * (k * n + i) + 1] = scale * im;
        }
    }
}

static crd_status identify(learner* l, int i)
{
    const size_t row = (size_t)i * (size_t)l->count;
    char* what = crdi_arena_format(&l->c->arena, "identify %s", l->c->signals[i].to);
    double error = 0;
    if (!what) { return CRD_E_MEMORY; }
    memset(l->wish, 0, (size_t)l->n * (size_t)l->count * sizeof *l->wish);
    disturb(l, i, l->o->disturbance * l->c->signals[i].scale, l->wish + row);
    const crd_status st = make_run(l, l->wish, what, true, &error);
    if (st < 0) { return st; }
    tell(l, false);
    load(l, l->pass.acted + row, l->input);
    crdi_num_fft(l->length, l->input);
    for (int k = 0; k < l->n; k++) {
        double* e = l->now + (size_t)k * (size_t)l->count;
        for (int j = 0; j < l->count; j++) {
            e[j] -= l->first[(size_t)k * (size_t)l->count + (size_t)j];
        }
        double* x = l->spectra + 2 * (size_t)k * (size_t)l->length;
        load(l, e, x);
        crdi_num_fft(l->length, x);
    }
    smooth_column(l, i);
    return CRD_OK;
}

// ---- the step ----------------------------------------------------------------------------------

// x = (A^H A + damping I)^-1 A^H x at one bin.
static crd_status solve(learner* l, const double* a, double* x)
{
    const int n = l->n;
    double* m = l->normal;
    double* b = l->x;
    for (int r = 0; r < n; r++) {
        b[2 * r] = b[2 * r + 1] = 0;
        for (int k = 0; k < n; k++) {
            const double *p = a + 2 * (k * n + r), *y = x + 2 * k;
            b[2 * r] += p[0] * y[0] + p[1] * y[1];
            b[2 * r + 1] += p[0] * y[1] - p[1] * y[0];
        }
        for (int c = 0; c < n; c++) {
            double re = r == c ? l->o->damping : 0, im = 0;
            for (int k = 0; k < n; k++) {
                const double *p = a + 2 * (k * n + r), *y = a + 2 * (k * n + c);
                re += p[0] * y[0] + p[1] * y[1];
                im += p[0] * y[1] - p[1] * y[0];
            }
            m[2 * (r * n + c)] = re;
            m[2 * (r * n + c) + 1] = im;
        }
    }
    crd_status st = crdi_num_complex_factor(n, m, l->pivots, NULL);
    if (st == CRD_OK) { st = crdi_num_complex_solve(n, 1, m, l->pivots, b); }
    memcpy(x, b, 2 * (size_t)n * sizeof *x);
    return st;
}

// The error of signal k (in spectra) as far as it is more than noise, times 1 - N / |E|^2 of the
// neighbourhood and least_trust at least: what was taken for noise in the identification may have
// been something that jumped at another time.
static void weigh(learner* l, int k)
{
    double* x = l->spectra + 2 * (size_t)k * (size_t)l->length;
    for (int q = 0; q < l->bins; q++) {
        double power = 0;
        for (int d = -l->half; d <= l->half; d++) {
            const double* e = x + 2 * (size_t)((q + d + l->length) % l->length);
            power += 0.5 * (1 + cos(M_PI * d / (l->half + 1))) * (e[0] * e[0] + e[1] * e[1]);
        }
        double* noise = &l->noise[(size_t)k * (size_t)l->bins + (size_t)q];
        *noise = fmin(*noise, power);
        l->input[q] = power > 0 ? fmax(least_trust, 1 - *noise / power) : 0;
    }
    for (int q = 0; q < l->bins; q++) {
        x[2 * (size_t)q] *= l->input[q];
        x[2 * (size_t)q + 1] *= l->input[q];
    }
}

// A = S G S^-1 = -1 + S F S^-1 at bin q.
static const double* response_at(learner* l, int q)
{
    const int n = l->n;
    const double* F = l->response + 2 * (size_t)q * (size_t)(n * n);
    for (int i = 0; i < 2 * n * n; i++) {
        l->matrix[i] = l->follows ? F[i] : 0;
    }
    for (int i = 0; i < n; i++) {
        l->matrix[2 * i * (n + 1)] -= 1;
    }
    return l->matrix;
}

// wish = best - gain S^-1 (A^H A + damping I)^-1 A^H S E
static crd_status improve(learner* l)
{
    const int n = l->n;
    double* at = l->at; // one bin of all signals
    for (int k = 0; k < n; k++) {
        double* x = l->spectra + 2 * (size_t)k * (size_t)l->length;
        load(l, l->error + (size_t)k * (size_t)l->count, x);
        crdi_num_fft(l->length, x);
    }
    for (int k = 0; k < n; k++) {
        weigh(l, k);
    }
    for (int q = 0; q < l->bins; q++) {
        for (int k = 0; k < n; k++) {
            const double* x = l->spectra + 2 * ((size_t)k * (size_t)l->length + (size_t)q);
            at[2 * k] = x[0] / l->c->signals[k].scale;
            at[2 * k + 1] = x[1] / l->c->signals[k].scale;
        }
        const crd_status st = solve(l, response_at(l, q), at);
        if (st < 0) { return crdi_fail(l->ctx, st, "the identified response is not finite"); }
        for (int k = 0; k < n; k++) {
            double* x = l->spectra + 2 * ((size_t)k * (size_t)l->length + (size_t)q);
            const double scale = l->gain * window(l, q) * l->c->signals[k].scale;
            x[0] = scale * at[2 * k];
            x[1] = scale * at[2 * k + 1];
        }
    }
    for (int k = 0; k < n; k++) {
        double* x = l->spectra + 2 * (size_t)k * (size_t)l->length;
        const size_t row = (size_t)k * (size_t)l->count;
        back(l, x);
        for (int i = 0; i < l->count; i++) {
            l->wish[row + (size_t)i] = l->best[row + (size_t)i] - x[2 * (size_t)i];
        }
    }
    return CRD_OK;
}

// A run that got worse is undone: the best one counts again, with half the gain. Two runs in a row
// that gained less than a fiftieth end it. Where the first one leaves more than half of the error,
// F is not what a correction meets: things move (an engine starts a little later), and the answer
// to a small disturbance is none to a large one. Then what was sent in the last run is played back,
// F = 0, until a run gets worse by that.
static crd_status learn(learner* l)
{
    crdi_repeat* c = l->c;
    for (int run = 2, idle = 0; run <= l->o->runs && idle < 2; run++) {
        double error = 0;
        crd_status st = improve(l);
        if (st == CRD_OK) { st = make_run(l, l->wish, "learn", false, &error); }
        if (st == CRD_E_CONVERGENCE) { error = INFINITY; } // it exploded: the worst there is
        if (st < 0 && st != CRD_E_CONVERGENCE) { return st; }
        const bool better = error < c->best;
        if (run == 2) { l->follows = error < 0.5 * c->best; }
        if (!better) { l->follows = true; }
        idle = error < 0.98 * c->best ? 0 : idle + 1;
        if (better) {
            c->best = error;
            keep(l);
        } else {
            l->gain *= 0.5;
        }
        if (st == CRD_OK) { tell(l, better); }
    }
    for (int k = 0; k < l->n; k++) {
        memcpy(c->signals[k].correction, l->best + (size_t)k * (size_t)l->count,
               (size_t)l->count * sizeof(double));
    }
    return CRD_OK;
}

static crd_status make_room(learner* l)
{
    const size_t n = (size_t)l->n, all = n * (size_t)l->count, size = (size_t)l->length;
    crd_arena* a = &l->arena;
    l->response = crdi_arena_new(a, 2 * (size_t)l->bins * n * n, sizeof *l->response);
    l->noise = crdi_arena_new(a, n * (size_t)l->bins, sizeof *l->noise);
    l->wish = crdi_arena_new(a, all, sizeof *l->wish);
    l->best = crdi_arena_new(a, all, sizeof *l->best);
    l->error = crdi_arena_new(a, all, sizeof *l->error);
    l->first = crdi_arena_new(a, all, sizeof *l->first);
    l->spectra = crdi_arena_new(a, 2 * n * size, sizeof *l->spectra);
    l->input = crdi_arena_new(a, 2 * size, sizeof *l->input);
    l->work = crdi_arena_new(a, 2 * size, sizeof *l->work);
    l->at = crdi_arena_new(a, 2 * n, sizeof *l->at);
    l->matrix = crdi_arena_new(a, 2 * n * n, sizeof *l->matrix);
    l->normal = crdi_arena_new(a, 2 * n * n, sizeof *l->normal);
    l->x = crdi_arena_new(a, 2 * n, sizeof *l->x);
    l->pivots = crdi_arena_new(a, n, sizeof *l->pivots);
    l->pass.acted = crdi_arena_new(a, all, sizeof(double));
    l->pass.sent = crdi_arena_new(a, all, sizeof(double));
    l->pass.received = crdi_arena_new(a, all, sizeof(double));
    l->now = crdi_arena_new(a, all, sizeof *l->now);
    l->pass.latency = crdi_arena_new(a, n, sizeof(double));
    l->pass.ages = crdi_arena_new(a, n * CRDI_REPEAT_AGES, sizeof *l->pass.ages);
    crdi_repeat* c = l->c;
    c->figures = crdi_arena_new(&c->arena, n + (size_t)(l->o->runs > 1 ? l->o->runs : 1) + 3,
                                sizeof *c->figures);
    for (int k = 0; k < l->n; k++) {
        c->signals[k].scale = c->signals[k].steady = 0;
        c->signals[k].correction = crdi_arena_new(&c->arena, (size_t)l->count, sizeof(double));
        c->signals[k].sent = crdi_arena_new(&c->arena, (size_t)l->count, sizeof(double));
    }
    return a->failed || c->arena.failed ? CRD_E_MEMORY : CRD_OK;
}

// The row is longer by an eighth at least; the response is smoothed over what the cycle resolves
// four times, or 0.4 % of the sampling rate.
static crd_status plan(learner* l)
{
    const double rate = 1 / l->c->step;
    const double band = isnan(l->o->band) ? 0.5 * rate : l->o->band;
    if (l->count < CRDI_REPEAT_LEAST) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "the cycle has %d samples of %g s, expected at least %d for the "
                         "identification",
                         l->count, l->c->step, CRDI_REPEAT_LEAST);
    }
    if (!(band > 0 && band <= 0.5 * rate)) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "band = %g Hz, expected above 0 and up to %g Hz, half "
                         "the sampling rate",
                         band, 0.5 * rate);
    }
    for (l->length = CRDI_REPEAT_LEAST; l->length < l->count + l->count / 8;) {
        l->length *= 2;
    }
    l->bins = (int)(band / rate * l->length) + 1;
    if (l->bins < 8) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "band = %g Hz is less than this cycle can tell apart: "
                         "expected at least %g Hz",
                         band, 8 * rate / l->length);
    }
    const double width = fmax(4.0 / l->count, 0.004);
    l->half = (int)ceil(width * l->length);
    if (l->half > l->bins / 2) { l->half = l->bins / 2; }
    return make_room(l);
}

// The age that all but one in a hundred samples have at most, if more than one in a hundred are
// younger; else 0. One more where some never come, so that their neighbours are there. On a real
// link one more than all have, too: clocks of master and benches meet differently in each run, so
// that what is five samples old in all of one run is six in all of another.
static double steady_age(const int64_t* ages, int count, bool real)
{
    int64_t all = 0, sum = 0;
    for (int i = 0; i < CRDI_REPEAT_AGES; i++) {
        all += ages[i];
    }
    for (int i = 0; i < CRDI_REPEAT_AGES; i++) {
        const int64_t younger = sum;
        sum += ages[i];
        if (100 * sum >= 99 * all) {
            const double age = i + (100 * all < 99 * (int64_t)count);
            return 100 * younger > all ? age : real ? age + 1 : 0;
        }
    }
    return 0;
}

// How much of the error is another one in the newest run, in ranges.
static double unrepeated(const learner* l)
{
    double sum = 0;
    for (int k = 0; k < l->n; k++) {
        const size_t row = (size_t)k * (size_t)l->count;
        double own = 0;
        for (size_t i = row; i < row + (size_t)l->count; i++) {
            const double d = (l->now[i] - l->error[i]) / l->c->signals[k].scale;
            own += isnan(d) ? 0 : 0.5 * d * d;
        }
        sum += own / l->count / l->n;
    }
    return sqrt(sum);
}

// Where the age of samples varies, once more, to see what that does. Is it more than a twentieth of
// the error, or is the link a real one, a third time with samples of one age: what the next runs
// are compared with.
static crd_status steady(learner* l)
{
    crdi_repeat* c = l->c;
    double age[CRDI_REPEAT_SIGNALS], again = 0;
    bool any = false, varies = false;
    for (int k = 0; k < l->n; k++) {
        const int64_t* ages = l->pass.ages + (size_t)k * CRDI_REPEAT_AGES;
        age[k] = steady_age(ages, l->count, l->pass.real);
        any = any || age[k] > 0;
        varies = varies || steady_age(ages, l->count, false) > 0;
    }
    if (!any) { return CRD_OK; }
    crd_status st = CRD_OK;
    if (varies) {
        st = make_run(l, NULL, "identify jitter", true, &again);
        if (st < 0) { return st; }
        tell(l, false);
        if (!l->pass.real && unrepeated(l) < 0.05 * c->first) { return CRD_OK; }
    }
    for (int k = 0; k < l->n; k++) {
        c->signals[k].steady = age[k];
    }
    st = make_run(l, NULL, "identify with one age", true, &c->best);
    if (st < 0) { return st; }
    tell(l, true);
    keep(l);
    return CRD_OK;
}

// What drives the cycle, and how large it is.
static void scale_drives(crdi_repeat* c)
{
    for (int i = 0; i < c->driven_count; i++) {
        double low = INFINITY, high = -INFINITY;
        for (int k = 0; k < c->count; k++) {
            low = fmin(low, c->driven[i].samples[k]);
            high = fmax(high, c->driven[i].samples[k]);
        }
        const double size = fmax(fabs(low), fabs(high));
        c->driven[i].scale = high > low ? high - low : isfinite(size) && size > 0 ? size : 1;
    }
}

crd_status crdi_repeat_learn(crd_context* ctx, const crdi_repeat_options* o,
                             crdi_repeat_runner* run, void* user, crdi_repeat* c)
{
    crd_status st = CRD_OK;
    learner l = {.ctx = ctx,
                 .o = o,
                 .run = run,
                 .user = user,
                 .c = c,
                 .n = c->signal_count,
                 .count = c->count,
                 .gain = 0,
                 .follows = true};
    crd_arena_init(&l.arena, ctx);
    CRD_TRY(plan(&l));
    CRD_TRY(make_run(&l, NULL, "hold", false, &c->first));
    tell(&l, true);
    if (!(c->first > 1e-9)) {
        st = crdi_fail(ctx, CRD_E_CONVERGENCE,
                       "what is received is what was sent: no signal of a "
                       "bond is late, there is nothing to learn");
        goto fail;
    }
    c->best = c->first;
    keep(&l);
    CRD_TRY(steady(&l));
    memcpy(l.first, l.error, (size_t)l.n * (size_t)l.count * sizeof *l.first);
    for (int i = 0; i < l.n * l.bins; i++) {
        l.noise[i] = INFINITY;
    }
    for (int i = 0; i < l.n; i++) {
        CRD_TRY(identify(&l, i));
    }
    l.gain = o->gain;
    CRD_TRY(learn(&l));
    scale_drives(c);
fail:
    crd_arena_clear(&l.arena);
    return st;
}
