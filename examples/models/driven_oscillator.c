// A linear oscillator with an input: x' = v, v' = w^2 (u - x) - 2 zeta w v. With u held, x - u
// decays as exp(-zeta w t) cos and sin of wd t, wd = w sqrt(1 - zeta^2). The acceleration is an
// output with feedthrough of the input.
#include "numerics.h"

typedef struct driven {
    signal u;
    double x, v, x_slope, v_slope, a;
    double w, zeta;
} driven;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const driven* d = self;
    if (!(d->w > 0 && d->zeta >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected w > 0 and zeta >= 0");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    driven* d = self;
    d->x_slope = d->v;
    d->v_slope = d->w * d->w * (d->u.v - d->x) - 2 * d->zeta * d->w * d->v;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)t;
    driven* d = self;
    d->a = d->v_slope;
}

enum { U, X, V, X_SLOPE, V_SLOPE, A }; // rows

static double partial(const void* self, int unknown, int known)
{
    const driven* d = self;
    if (unknown == X_SLOPE) { return known == V; }
    if (unknown == V_SLOPE || unknown == A) {
        return known == X   ? -d->w * d->w
               : known == V ? -2 * d->zeta * d->w
               : known == U ? d->w * d->w
                            : 0;
    }
    return unknown == known;
}

static const crd_model_variable rows[] = {
    {ROW_SIGNAL(driven, u, "u", CRD_INPUT, "m")},
    {ROW_REAL(driven, x, "x", CRD_OUTPUT, "m"), .start = 1, .exact = true},
    {ROW_REAL(driven, v, "v", CRD_OUTPUT, "m/s"), .exact = true},
    {ROW_DERIVATIVE(driven, x_slope, "x", "m/s"), .depends = "v"},
    {ROW_DERIVATIVE(driven, v_slope, "v", "m/s2"), .depends = "u x v"},
    {.name = "a",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(driven, a),
     .unit = "m/s2",
     .depends = "u x v"},
    {ROW_PARAMETER(driven, w, "w", 6.283185307179586, "rad/s")},
    {ROW_PARAMETER(driven, zeta, "zeta", 0.1, NULL), .description = "damping ratio"},
};

const crd_model crd_model_driven_oscillator = {
    .name = "driven_oscillator",
    .description = "linear oscillator with an input",
    .size = sizeof(driven),
    ROWS(rows),
    .default_step = 1e-3,
    .default_stop = 5,
    .max_input_derivative = 2,
    .initialize = initialize,
    .outputs = outputs,
    .derivatives = derivatives,
    .partial = partial,
};
