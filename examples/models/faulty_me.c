// What can go wrong in Model Exchange, on demand: x' = 1 until the time `when`, then the mode.
//
//   0 nothing                             7 a time event every microsecond before the present one
//   1 derivatives are discarded           8 an indicator that is crossed behind every event
//   2 derivatives are errors              9 a step event at every step
//   3 derivatives are not a number       10 the event ends the run
//   4 x' = x^2 from x = 1: infinite      11 the event fails
//     one second after `when`            12 segmentation fault in the derivatives
//   5 the event iteration never ends     13 the run ends at a completed step
//   6 a time event now, again and again
#include "numerics.h"

enum {
    DISCARD = 1,
    ERROR,
    NOT_A_NUMBER,
    BLOW_UP,
    ITERATION,
    NOW,
    PAST,
    CHATTER,
    STEP_EVENTS,
    TERMINATE,
    FAIL,
    CRASH,
    TERMINATE_STEP
};

typedef struct faulty {
    double x, slope;
    double when;
    double last; // time of the last event
    int32_t mode, events;
    bool late; // `when` is over: set by its event
} faulty;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    faulty* f = self;
    const bool late = t > f->when;
    f->slope = 1;
    if (late && f->mode == DISCARD) { return CRD_MODEL_DISCARD; }
    if (late && f->mode == ERROR) { return CRD_MODEL_ERROR; }
    if (late && f->mode == NOT_A_NUMBER) { f->slope = NAN; }
    if (late && f->mode == CRASH) {
        volatile int* volatile nowhere = NULL;
        *nowhere = 1;
    }
    if (f->mode == BLOW_UP) { f->slope = f->late ? f->x * f->x : 0; }
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static void indicators(void* self, double t, double* z)
{
    const faulty* f = self;
    z[0] = f->late && f->mode == CHATTER && t > f->last ? -1 : 1;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    faulty* f = self;
    f->late = t >= f->when;
    *next = f->late ? INFINITY : f->when;
    if (!f->late) { return CRD_MODEL_OK; }
    f->events++;
    f->last = t;
    switch (f->mode) {
    case BLOW_UP:
        if (f->events == 1) { f->x = 1; }
        return CRD_MODEL_OK;
    case ITERATION:
        return CRD_MODEL_EVENT;
    case NOW:
        *next = t;
        return CRD_MODEL_OK;
    case PAST:
        *next = t - 1e-6;
        return CRD_MODEL_OK;
    case TERMINATE:
        return CRD_MODEL_TERMINATE;
    case FAIL:
        host->log(host->user, CRD_MODEL_ERROR, "this event fails, as asked for");
        return CRD_MODEL_ERROR;
    default:
        return CRD_MODEL_OK;
    }
}

static crd_model_status completed(void* self, const crd_model_host* host, double t)
{
    (void)host;
    const faulty* f = self;
    if (f->mode == STEP_EVENTS && t > f->when) { return CRD_MODEL_EVENT; }
    return f->mode == TERMINATE_STEP && t > f->when ? CRD_MODEL_TERMINATE : CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(faulty, x, "x", CRD_OUTPUT, NULL), .exact = true},
    {ROW_DERIVATIVE(faulty, slope, "x", "1/s"), .depends = "x"},
    {.name = "events",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(faulty, events),
     .exact = true,
     .depends = ""},
    {ROW_PARAMETER(faulty, when, "when", 0.5, "s")},
    {ROW_COUNT(faulty, mode, "mode", 0, 0, TERMINATE_STEP)},
};

const crd_model crd_model_faulty_me = {
    .name = "faulty_me",
    .description = "misbehaves in Model Exchange on demand",
    .size = sizeof(faulty),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 1,
    .has_events = true,
    .initialize = initialize,
    .outputs = outputs,
    .event = event,
    .derivatives = derivatives,
    .indicator_count = 1,
    .indicators = indicators,
    .completed = completed,
};
