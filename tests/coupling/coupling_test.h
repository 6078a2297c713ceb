// What the tests of the coupling module share: a context that counts, elements, the torque
// benchmark.
#pragma once
#include <stdio.h>

#include "check.h"

#include "cardan/coupling.h"

typedef struct coupling_test {
    check_allocator memory;
    crd_context* ctx;
} coupling_test;

static inline int coupling_setup(void** state)
{
    coupling_test* t = calloc(1, sizeof *t);
    t->ctx = check_context(&t->memory);
    *state = t;
    return 0;
}

// Nothing may be left when a test has cleaned up after itself.
static inline int coupling_teardown(void** state)
{
    coupling_test* t = *state;
    crd_context_destroy(t->ctx);
    const bool lost = t->memory.live != 0;
    free(t);
    return lost;
}

static inline crd_context* context_of(void** state)
{
    return ((coupling_test*)*state)->ctx;
}

#define coupling_unit_test(f) cmocka_unit_test_setup_teardown(f, coupling_setup, coupling_teardown)

static inline crd_linear make(crd_context* ctx, crd_method method, int k)
{
    const crd_design d = crd_design_defaults(method);
    crd_linear l;
    check_ok(crd_linear_make(ctx, &d, k, &l));
    return l;
}

// Uniform in [0, 1): x <- 1664525 x + 1013904223 mod 2^32.
static inline double next_uniform(uint32_t* x)
{
    *x = 1664525u * *x + 1013904223u;
    return *x / 4294967296.0;
}

// Nearly Gaussian, sigma = 1.
static inline double next_normal(uint32_t* x)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += next_uniform(x);
    }
    return sum;
}

enum { TORQUE_SAMPLES = 1200, TORQUE_K = 6 };

// A shaft torque with a gear shift at 3.2 s, filtered or hard.
static inline void torque(double* y, bool hard, bool noise)
{
    uint32_t seed = 12345;
    for (int n = 0; n < TORQUE_SAMPLES; n++) {
        const double t = 0.01 * n, b = (t - 6) / 1.2;
        const double s =
            hard ? (n >= 320 && n < 360) : (tanh((t - 3.2) / .04) - tanh((t - 3.6) / .04)) / 2;
        y[n] = 100 * (1 - exp(-t / 0.7)) + 8 * sin(1.3 * t) + 6 * sin(3.1 * t + .5) +
               12 * sin(6.7 * t + 1.1) + 20 * sin(9.7 * t + 2) +
               1.6 * (0.35 + exp(-b * b)) *
                   (4 * sin(34 * t + .3) + 2.5 * sin(45 * t + 1.7) + 1.5 * sin(53 * t + .9)) -
               110 * s + (noise ? 0.3 * next_normal(&seed) : 0);
    }
}

// Sprague and Geers' combined error, in per cent.
static inline double combined_error(const double* y, const double* yhat, int count)
{
    double yy = 0, hh = 0, yh = 0;
    for (int n = 0; n < count; n++) {
        yy += y[n] * y[n];
        hh += yhat[n] * yhat[n];
        yh += y[n] * yhat[n];
    }
    const double M = sqrt(yy / hh) - 1, P = acos(fmin(1, yh / sqrt(yy * hh))) / acos(-1);
    return 100 * sqrt(M * M + P * P);
}

// What an element makes of a signal that arrives k steps late.
static inline double compensated_error(crd_context* ctx, const crd_coupling_options* opt,
                                       const double* y, int count, int k)
{
    crd_coupling* c = NULL;
    double* yhat = calloc((size_t)count, sizeof *yhat);
    check_ok(crd_coupling_create(ctx, opt, &c));
    for (int n = 0; n < count; n++) {
        if (n < k) { // the history before the first sample is the first sample
            yhat[n] = y[0];
        } else {
            crd_coupling_push(c, y[n - k], (n - k) * opt->step, n - k);
            yhat[n] = crd_coupling_eval(c, n * opt->step);
        }
    }
    const double C = combined_error(y, yhat, count);
    crd_coupling_destroy(c);
    free(yhat);
    return C;
}
