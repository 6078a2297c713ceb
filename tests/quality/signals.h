// Signals with known derivatives, and slopes of errors.
#pragma once
#include "cardan/quality.h"

#include <math.h>

// y = sum of a_i t^i
static inline crd_sample sample_poly(const crd_poly* a, double t, int order)
{
    crd_sample s = {.order = order};
    for (int i = 0; i <= order; i++) {
        s.y[i] = crd_poly_derivative(a, i, t);
    }
    return s;
}

// y = sin(w t + 0.3)
static inline crd_sample sample_sine(double w, double t, int order)
{
    const double y[3] = {sin(w * t + 0.3), w * cos(w * t + 0.3), -w * w * sin(w * t + 0.3)};
    crd_sample s = {.order = order};
    for (int i = 0; i <= order; i++) {
        s.y[i] = y[i];
    }
    return s;
}

// Slope of log e over log h by least squares.
static inline double slope_of(int n, const double* h, const double* e)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < n; i++) {
        const double a = log(h[i]), b = log(e[i]);
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}
