// Sources over time. Corners are computed by one formula, by which eval decides and which next
// hands out: a solver that steps onto a corner sees what comes behind it.
#include "circuit/circuit.h"

#include <math.h>

static const double two_pi = 6.28318530717958647692;

enum { LOW, HIGH, DELAY, RISE, FALL, WIDTH, PERIOD };

// The pulse in which t lies: its number, from 0.
static double pulse_number(const double* v, double t)
{
    if (!isfinite(v[PERIOD]) || !(v[PERIOD] > 0)) { return 0; }
    double k = floor((t - v[DELAY]) / v[PERIOD]);
    if (v[DELAY] + (k + 1) * v[PERIOD] <= t) { k++; }
    if (v[DELAY] + k * v[PERIOD] > t) { k--; }
    return k > 0 ? k : 0;
}

static void pulse_corners(const double* v, double k, double corner[4])
{
    corner[0] = v[DELAY] + (k > 0 ? k * v[PERIOD] : 0);
    corner[1] = corner[0] + v[RISE];
    corner[2] = corner[1] + v[WIDTH];
    corner[3] = corner[2] + v[FALL];
}

static double pulse(const double* v, double t)
{
    if (t < v[DELAY]) { return v[LOW]; }
    double c[4];
    pulse_corners(v, pulse_number(v, t), c);
    if (t < c[1]) { return v[LOW] + (v[HIGH] - v[LOW]) * (t - c[0]) / v[RISE]; }
    if (t < c[2]) { return v[HIGH]; }
    if (t < c[3]) { return v[HIGH] + (v[LOW] - v[HIGH]) * (t - c[2]) / v[FALL]; }
    return v[LOW];
}

static double sine(const double* v, double t)
{
    const double phase = v[5] * (two_pi / 360), tau = t - v[3];
    if (tau < 0) { return v[0] + v[1] * sin(phase); }
    const double y = v[1] * sin(two_pi * v[2] * tau + phase);
    return v[0] + (v[4] != 0 ? y * exp(-tau * v[4]) : y);
}

// low high delay1 tau1 delay2 tau2
static double exponential(const double* v, double t)
{
    double y = v[0];
    if (t > v[2]) { y += (v[1] - v[0]) * -expm1(-(t - v[2]) / v[3]); }
    if (t > v[4]) { y += (v[0] - v[1]) * -expm1(-(t - v[4]) / v[5]); }
    return y;
}

// How many points are at or before t.
static int points_until(const crd_waveform* w, double t)
{
    int low = 0, high = w->count;
    while (low < high) {
        const int k = low + (high - low) / 2;
        if (w->times[k] <= t) {
            low = k + 1;
        } else {
            high = k;
        }
    }
    return low;
}

static double piecewise(const crd_waveform* w, double t)
{
    const int k = points_until(w, t);
    if (k == 0) { return w->values[0]; }
    if (k == w->count) { return w->values[k - 1]; }
    const double t0 = w->times[k - 1], y0 = w->values[k - 1];
    return y0 + (w->values[k] - y0) * ((t - t0) / (w->times[k] - t0));
}

double crd_waveform_eval(const crd_waveform* w, double t, const double* inputs)
{
    switch (w->kind) {
    case CRD_WAVE_DC:
        return w->v[0];
    case CRD_WAVE_SIN:
        return sine(w->v, t);
    case CRD_WAVE_PULSE:
        return pulse(w->v, t);
    case CRD_WAVE_PWL:
        return piecewise(w, t);
    case CRD_WAVE_EXP:
        return exponential(w->v, t);
    case CRD_WAVE_INPUT:
        return inputs[w->input];
    }
    return (double)NAN;
}

static double pulse_next(const double* v, double t)
{
    const double first = pulse_number(v, t);
    const bool periodic = isfinite(v[PERIOD]) && v[PERIOD] > 0;
    for (int i = 0; i < (periodic ? 2 : 1); i++) {
        double c[4], end = (double)INFINITY;
        pulse_corners(v, first + i, c);
        if (periodic) { end = v[DELAY] + (first + i + 1) * v[PERIOD]; } // may cut the pulse short
        for (int k = 0; k < 4; k++) {
            if (c[k] > t && c[k] < end) { return c[k]; }
        }
        if (end > t && i == 0 && periodic) { return end; }
    }
    return (double)INFINITY;
}

double crd_waveform_next(const crd_waveform* w, double t)
{
    const double never = (double)INFINITY;
    switch (w->kind) {
    case CRD_WAVE_SIN:
        return t < w->v[3] ? w->v[3] : never;
    case CRD_WAVE_PULSE:
        return pulse_next(w->v, t);
    case CRD_WAVE_EXP: {
        const double a = w->v[2] > t ? w->v[2] : never, b = w->v[4] > t ? w->v[4] : never;
        return a < b ? a : b;
    }
    case CRD_WAVE_PWL: {
        const int k = points_until(w, t);
        return k < w->count ? w->times[k] : never;
    }
    default:
        return never;
    }
}

// ---- slopes ------------------------------------------------------------------------------------

static double sine_slope(const double* v, double t)
{
    const double offset_free = v[1], f = v[2], delay = v[3], damping = v[4];
    if (t < delay) { return 0; }
    const double w = 2 * M_PI * f, s = t - delay, phase = w * s + v[5] * M_PI / 180;
    return offset_free * exp(-damping * s) * (w * cos(phase) - damping * sin(phase));
}

static double exp_slope(const double* v, double t)
{
    const double low = v[0], high = v[1];
    double slope = 0;
    if (t >= v[2]) { slope += (high - low) / v[3] * exp(-(t - v[2]) / v[3]); }
    if (t >= v[4]) { slope += (low - high) / v[5] * exp(-(t - v[4]) / v[5]); }
    return slope;
}

// To the right of a corner.
double crdi_waveform_slope(const crd_waveform* w, double t)
{
    switch (w->kind) {
    case CRD_WAVE_SIN:
        return sine_slope(w->v, t);
    case CRD_WAVE_EXP:
        return exp_slope(w->v, t);
    case CRD_WAVE_PULSE:
    case CRD_WAVE_PWL: { // straight between corners
        const double end = crd_waveform_next(w, t);
        const double step = isfinite(end) ? 0.5 * (end - t) : 1;
        if (!(step > 0)) { return 0; }
        const double from = t + 0.5 * step, to = t + 1.5 * step;
        return (crd_waveform_eval(w, to, NULL) - crd_waveform_eval(w, from, NULL)) / (to - from);
    }
    default:
        return 0;
    }
}
