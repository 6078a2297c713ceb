// A pulse train u, `high` for duty * period at the beginning of each period and 0 for the rest,
// into a first-order lag: T y' = u - y. Its edges are time events. Between them y approaches u
// exponentially, which gives the closed form edge by edge.
#include "numerics.h"

typedef struct pwm {
    double y, slope, u;
    double period, duty, high, T;
    int32_t edge; // edges since time 0: even ones rise
} pwm;

// Time of the k-th edge, from the count: a sum would drift.
static double edge_time(const pwm* p, int32_t k)
{
    return p->period * (double)(k / 2) + (k % 2 ? p->duty * p->period : 0);
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    pwm* p = self;
    if (!(p->period >= 1e-6 && p->duty > 0 && p->duty < 1 && p->T > 0 && t >= 0 && t <= 1000)) {
        host->log(
            host->user, CRD_MODEL_ERROR,
            "expected period >= 1e-6 s, 0 < duty < 1, T > 0 and a start time from 0 to 1000 s");
        return CRD_MODEL_ERROR;
    }
    p->edge = 2 * (int32_t)(t / p->period);
    p->u = p->high;
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    pwm* p = self;
    p->slope = (p->u - p->y) / p->T;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

// A solver may stop an ulp before the edge.
static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    pwm* p = self;
    while (t >= edge_time(p, p->edge + 1) - 1e-9 * p->period) {
        p->edge++;
    }
    p->u = p->edge % 2 ? 0 : p->high;
    *next = edge_time(p, p->edge + 1);
    return CRD_MODEL_OK;
}

enum { Y, SLOPE }; // rows

static double partial(const void* self, int unknown, int known)
{
    const pwm* p = self;
    return unknown == SLOPE && known == Y ? -1 / p->T : unknown == known;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(pwm, y, "y", CRD_OUTPUT, NULL), .exact = true},
    {ROW_DERIVATIVE(pwm, slope, "y", "1/s"), .depends = "y"},
    {.name = "u",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(pwm, u),
     .depends = ""},
    {ROW_PARAMETER(pwm, period, "period", 0.1, "s")},
    {ROW_PARAMETER(pwm, duty, "duty", 0.3, NULL)},
    {ROW_PARAMETER(pwm, high, "high", 1, NULL)},
    {ROW_PARAMETER(pwm, T, "T", 0.05, "s")},
};

const crd_model crd_model_pwm_lag = {
    .name = "pwm_lag",
    .description = "pulse train into a first-order lag: time events",
    .size = sizeof(pwm),
    ROWS(rows),
    .default_step = 1e-3,
    .default_stop = 1,
    .has_events = true,
    .initialize = initialize,
    .outputs = outputs,
    .event = event,
    .derivatives = derivatives,
    .partial = partial,
};
