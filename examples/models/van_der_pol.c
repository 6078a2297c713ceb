// Van der Pol's oscillator: x0' = x1, x1' = mu (1 - x0^2) x1 - x0. With mu = 1000 it is the stiff
// test problem of Hairer and Wanner (1996): slow arcs of about 807 s, and jumps of about 1 ms.
// The inner solver is for small mu; Model Exchange brings a solver that is for all.
#include "numerics.h"

typedef struct oscillator {
    double x0, x1, slope0, slope1;
    double mu;
} oscillator;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const oscillator* o = self;
    if (!(o->mu >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected mu >= 0");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    oscillator* o = self;
    o->slope0 = o->x1;
    o->slope1 = o->mu * (1 - o->x0 * o->x0) * o->x1 - o->x0;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

enum { X0, X1, SLOPE0, SLOPE1 }; // rows

static double partial(const void* self, int unknown, int known)
{
    const oscillator* o = self;
    if (unknown == SLOPE0) { return known == X1; }
    if (unknown == SLOPE1 && known == X0) { return -2 * o->mu * o->x0 * o->x1 - 1; }
    if (unknown == SLOPE1 && known == X1) { return o->mu * (1 - o->x0 * o->x0); }
    return unknown == known; // outputs are the states
}

static const crd_model_variable rows[] = {
    {ROW_REAL(oscillator, x0, "x0", CRD_OUTPUT, NULL), .start = 2, .exact = true},
    {ROW_REAL(oscillator, x1, "x1", CRD_OUTPUT, NULL), .exact = true},
    {ROW_DERIVATIVE(oscillator, slope0, "x0", NULL), .depends = "x1"},
    {ROW_DERIVATIVE(oscillator, slope1, "x1", NULL), .depends = "x0 x1"},
    {ROW_PARAMETER(oscillator, mu, "mu", 1, NULL), .description = "stiff when large"},
};

const crd_model crd_model_van_der_pol = {
    .name = "van_der_pol",
    .description = "Van der Pol's oscillator, stiff for large mu",
    .size = sizeof(oscillator),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 20,
    .initialize = initialize,
    .outputs = outputs,
    .derivatives = derivatives,
    .partial = partial,
};
