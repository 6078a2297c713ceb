/// What the models of the hybrid powertrain share: rows of their tables, curves, small helpers.
///
/// All of them are sampled: a step reads the inputs as they were at its beginning and leaves
/// outputs that hold until the next one. None but the clutch has feedthrough, so any of them may
/// stand on a test bench. In the order driver, controller, engine, machine, battery, vehicle
/// (Gauss-Seidel) the step is that of one program; with Jacobi each hand-over costs one step. Goes
/// into FMUs: model.h and libc only.
#pragma once
#include "cardan/model.h"

#include <math.h>

#define PT_INPUT(type_, field, unit_, what)                                                        \
    .name = #field, .type = CRD_FLOAT64, .causality = CRD_INPUT, .variability = CRD_CONTINUOUS,    \
    .offset = offsetof(type_, field), .unit = unit_, .description = what
#define PT_OUTPUT(type_, field, unit_, what)                                                       \
    .name = #field, .type = CRD_FLOAT64, .causality = CRD_OUTPUT, .variability = CRD_CONTINUOUS,   \
    .offset = offsetof(type_, field), .unit = unit_, .description = what, .depends = ""
#define PT_FLAG(type_, field, cause, what)                                                         \
    .name = #field, .type = CRD_BOOLEAN, .causality = cause, .variability = CRD_DISCRETE,          \
    .offset = offsetof(type_, field), .description = what, .depends = ""
#define PT_COUNT(type_, field, cause, what)                                                        \
    .name = #field, .type = CRD_INT32, .causality = cause, .variability = CRD_DISCRETE,            \
    .offset = offsetof(type_, field), .description = what, .depends = ""
#define PT_PARAMETER(type_, field, start_, unit_, what)                                            \
    .name = #field, .type = CRD_FLOAT64, .causality = CRD_PARAMETER, .variability = CRD_FIXED,     \
    .offset = offsetof(type_, field), .start = start_, .unit = unit_, .description = what
#define PT_TUNABLE(type_, field, start_, min_, max_, unit_, what)                                  \
    .name = #field, .type = CRD_FLOAT64, .causality = CRD_PARAMETER, .variability = CRD_TUNABLE,   \
    .offset = offsetof(type_, field), .start = start_, .min = min_, .max = max_, .unit = unit_,    \
    .description = what

/// What models of the powertrain have in common: they are sampled every 10 ms, run for `stop`
/// seconds, and have functions called <type>_initialize and <type>_step.
#define PT_SAMPLED(type_, table, stop, outputs_)                                                   \
    .size = sizeof(type_), .variables = table,                                                     \
    .variable_count = (int)(sizeof(table) / sizeof *(table)), .default_step = 0.01,                \
    .default_stop = stop, .initialize = type_##_initialize, .outputs = outputs_,                   \
    .step = type_##_step

#define PT_PI 3.14159265358979323846
#define PT_RPM 0.10471975511965977 ///< rad/s of one revolution per minute

/// `outputs` of a model whose step leaves them.
static inline void pt_hold_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static inline double pt_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/// The line through n points (x ascending), held beyond its ends.
static inline double pt_curve(const double* x, const double* y, int n, double at)
{
    if (!(at > x[0])) { return y[0]; }
    for (int i = 1; i < n; i++) {
        if (at <= x[i]) {
            return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1]);
        }
    }
    return y[n - 1];
}

/// The part of the way to its target that a lag of first order goes in h; all of it without lag.
static inline double pt_approach(double h, double lag)
{
    return lag > 0 ? -expm1(-h / lag) : 1;
}

/// Torque that turning an engine costs, N.m: 1.5 bar + 0.35 bar (n / 3000)^2 over its displacement.
static inline double pt_drag(double displacement, double w)
{
    const double y = w / PT_RPM / 3000;
    return displacement / (4 * PT_PI) * (1.5 + 0.35 * y * y) * 1e5;
}

/// 64 random bits: xorshift64*. The state is never 0.
static inline uint64_t pt_random(uint64_t* state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Du;
}

static inline crd_model_status pt_expect(const crd_model_host* host, bool good,
                                         const char* sentence)
{
    if (good) { return CRD_MODEL_OK; }
    host->log(host->user, CRD_MODEL_ERROR, sentence);
    return CRD_MODEL_ERROR;
}
