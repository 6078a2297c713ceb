// A ball that bounces, as a differential equation with state events: h' = v, v' = -g, and at the
// ground v+ = -e v. When a bounce would stay lower than `rest` the ball lies still.
//
// An impact on the way up is a bounce that is shorter than what the solver resolves: the ball lies
// as well, or it would fall through the ground.
//
// From the height h0 it meets the ground at t1 = sqrt(2 h0 / g) and then again after every
// 2 e^n sqrt(2 h0 / g), n = 1, 2, ...
#include "numerics.h"

typedef struct ball {
    double height, velocity, height_slope, velocity_slope;
    double g, e, rest;
    int32_t bounces;
    bool lying;
} ball;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const ball* b = self;
    if (!(b->g > 0 && b->e >= 0 && b->e < 1 && b->height >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected g > 0, 0 <= e < 1 and height >= 0");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    ball* b = self;
    b->height_slope = b->lying ? 0 : b->velocity;
    b->velocity_slope = b->lying ? 0 : -b->g;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

// A trifle above the ground: behind an impact, at height 0, the sign is clear.
static void indicators(void* self, double t, double* z)
{
    (void)t;
    const ball* b = self;
    z[0] = b->lying ? 1 : b->height + 1e-12;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    (void)t;
    ball* b = self;
    *next = INFINITY;
    if (b->lying || b->height > 0 || (b->height == 0 && b->velocity > 0)) { return CRD_MODEL_OK; }
    const bool impact = b->velocity < 0;
    if (impact) { b->bounces++; }
    b->height = 0;
    b->velocity *= -b->e;
    if (!impact || b->velocity * b->velocity <= 2 * b->g * b->rest) {
        b->velocity = 0;
        b->lying = true;
    }
    return CRD_MODEL_OK;
}

static double partial(const void* self, int unknown, int known)
{
    const ball* b = self;
    if (unknown < 2) { return unknown == known; } // the states themselves
    return unknown == 2 && known == 1 && !b->lying;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(ball, height, "height", CRD_OUTPUT, "m"), .start = 1, .exact = true},
    {ROW_REAL(ball, velocity, "velocity", CRD_OUTPUT, "m/s"), .exact = true},
    {ROW_DERIVATIVE(ball, height_slope, "height", "m/s"), .depends = "velocity"},
    {ROW_DERIVATIVE(ball, velocity_slope, "velocity", "m/s2"), .depends = ""},
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

#define BALL(name_, description_)                                                                  \
    {                                                                                              \
        .name = name_, .description = description_, .size = sizeof(ball), ROWS(rows),              \
        .default_step = 0.01, .default_stop = 3, .has_events = true, .initialize = initialize,     \
        .outputs = outputs, .event = event, .partial = partial, .derivatives = derivatives,        \
        .indicator_count = 1, .indicators = indicators                                             \
    }
const crd_model crd_model_bouncing_ball = BALL("bouncing_ball", "bouncing ball: state events");
const crd_model crd_model_bouncing_ball_me =
    BALL("bouncing_ball_me", "bouncing ball, for Model Exchange only");
