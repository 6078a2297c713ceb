// Mass 1 of the oscillator of Baumann (2020) with its stop, as a differential equation with a state
// event: m x'' + d x' + c x = f, and at x = stop v+ = -e v. The other half is lo_fd1.
//
// Where the force holds it against the stop, and bounces become shorter than what a solver
// resolves, it stays there until the force turns.
#include "numerics.h"

typedef struct stopped {
    signal f;
    double x, v, x_slope, v_slope, energy;
    double m, c, d, stop, e, rest;
    int32_t impacts;
    bool lying;
} stopped;

static double push(const stopped* s)
{
    return s->f.v - s->c * s->x - s->d * s->v;
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const stopped* s = self;
    if (!(s->m > 0 && s->e >= 0 && s->e < 1 && s->x >= s->stop && s->rest >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR,
                  "expected m > 0, 0 <= e < 1, x1 at or above the stop and rest >= 0");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    stopped* s = self;
    s->x_slope = s->lying ? 0 : s->v;
    s->v_slope = s->lying ? 0 : push(s) / s->m;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)t;
    stopped* s = self;
    s->energy = 0.5 * (s->m * s->v * s->v + s->c * s->x * s->x);
}

// A trifle before the stop: behind an impact the sign is clear. Lying, it waits for the force.
static void indicators(void* self, double t, double* z)
{
    (void)t;
    const stopped* s = self;
    z[0] = s->lying ? 1 : s->x - s->stop + 1e-12;
    z[1] = s->lying ? -push(s) + 1e-12 : 1;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    (void)t;
    stopped* s = self;
    *next = INFINITY;
    if (s->lying) {
        s->lying = push(s) <= 0;
        return CRD_MODEL_OK;
    }
    if (s->x > s->stop || (s->x == s->stop && s->v > 0)) { return CRD_MODEL_OK; }
    s->impacts += s->v < 0;
    s->x = s->stop;
    s->v = s->v < 0 ? -s->e * s->v : 0;
    if (s->v <= s->rest && push(s) <= 0) {
        s->v = 0;
        s->lying = true;
    }
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {ROW_SIGNAL(stopped, f, "f", CRD_INPUT, "N"), .description = "force of the other half"},
    {ROW_REAL(stopped, x, "x1", CRD_OUTPUT, "m"), .start = 1, .exact = true},
    {ROW_REAL(stopped, v, "v1", CRD_OUTPUT, "m/s"), .exact = true},
    {ROW_DERIVATIVE(stopped, x_slope, "x1", "m/s"), .depends = "v1"},
    {ROW_DERIVATIVE(stopped, v_slope, "v1", "m/s2"), .depends = "x1 v1 f"},
    {ROW_REAL(stopped, energy, "energy", CRD_OUTPUT, "J")},
    {.name = "impacts",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(stopped, impacts),
     .exact = true,
     .depends = ""},
    {ROW_PARAMETER(stopped, m, "m1", 100, "kg")},
    {ROW_PARAMETER(stopped, c, "k1", 10, "N/m")},
    {ROW_PARAMETER(stopped, d, "c1", 0.01, "N.s/m")},
    {ROW_PARAMETER(stopped, stop, "stop", -0.1, "m"), .description = "where the stop is"},
    {ROW_PARAMETER(stopped, e, "e", 0.7, NULL), .description = "coefficient of restitution"},
    {ROW_PARAMETER(stopped, rest, "rest", 1e-6, "m/s"), .description = "slowest bounce"},
};

const crd_model crd_model_stop_mass = {
    .name = "stop_mass",
    .description = "mass with a spring and a stop: state events",
    .size = sizeof(stopped),
    ROWS(rows),
    .default_step = 1e-3,
    .default_stop = 50,
    .has_events = true,
    .initialize = initialize,
    .outputs = outputs,
    .event = event,
    .derivatives = derivatives,
    .indicator_count = 2,
    .indicators = indicators,
};
