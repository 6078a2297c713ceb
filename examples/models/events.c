// A ball that bounces: free fall is solved exactly, an impact is an event that turns the velocity
// round, v+ = -e v. When the bounces get lower than `rest` the ball stays on the ground.
#include "numerics.h"

typedef struct ball {
    double height, velocity;
    double g, e, rest;
    int32_t bounces;
    bool impact; // the last step ended on the ground
    bool lying;
} ball;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const ball* b = self;
    if (!(b->g > 0 && b->e >= 0 && b->e < 1)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected g > 0 and 0 <= e < 1");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)host;
    ball* b = self;
    if (b->lying) { return CRD_MODEL_OK; }
    // height + velocity tau - g/2 tau^2 = 0, the later root
    const double hit =
        (b->velocity + sqrt(b->velocity * b->velocity + 2 * b->g * b->height)) / b->g;
    const double tau = hit < h ? hit : h;
    b->height = fmax(0, b->height + tau * (b->velocity - 0.5 * b->g * tau));
    b->velocity -= b->g * tau;
    if (hit > h) { return CRD_MODEL_OK; }
    b->height = 0;
    b->impact = true;
    *reached = hit < h ? t + hit : t + h;
    return CRD_MODEL_EVENT;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    (void)t;
    ball* b = self;
    *next = INFINITY;
    if (!b->impact) { return CRD_MODEL_OK; }
    b->impact = false;
    b->bounces++;
    b->velocity *= -b->e;
    if (b->velocity * b->velocity < 2 * b->g * b->rest) {
        b->velocity = 0;
        b->lying = true;
    }
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(ball, height, "height", CRD_OUTPUT, "m"), .start = 1, .exact = true},
    {ROW_REAL(ball, velocity, "velocity", CRD_OUTPUT, "m/s"), .exact = true},
    {.name = "bounces",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(ball, bounces),
     .exact = true,
     .depends = ""},
    {ROW_PARAMETER(ball, g, "g", 9.81, "m/s2")},
    {ROW_PARAMETER(ball, e, "e", 0.7, NULL), .description = "coefficient of restitution"},
    {ROW_PARAMETER(ball, rest, "rest", 1e-6, "m"), .description = "lowest bounce"},
};

const crd_model crd_model_events = {
    .name = "events",
    .description = "bouncing ball: events, event mode and early return",
    .size = sizeof(ball),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 3,
    .has_events = true,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
    .event = event,
};
