// A shaft that is cut between torque and speed: an engine, and the spring and damper with the load
// behind it. Who includes this has said before what drives the engine beside its input, drive(t) in
// N.m, and what brakes the load, drag(w) in N.m.
#pragma once
#include "models.h"

enum { SHAFT_PARTS = 20 }; // Euler steps of the models inside a step

// J w' = drive(t) + push + M - Mr - loss w: M drives, Mr resists.
typedef struct {
    double push, M, Mr, w, J, loss;
} engine;

static void engine_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status shaft_rests(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static crd_model_status engine_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    engine* e = self;
    const double part = h / SHAFT_PARTS;
    (void)host;
    for (int i = 0; i < SHAFT_PARTS; i++) {
        e->w +=
            part * (drive(t + (i + 0.5) * part) + e->push + e->M - e->Mr - e->loss * e->w) / e->J;
    }
    *reached = t + h;
    return CRD_MODEL_OK;
}

// R = c twist + d (w - load_w) resists the engine, M = -R drives it.
typedef struct {
    double w, M, R, load_w, twist, c, d, J;
} load;

static void load_outputs(void* self, double t)
{
    load* l = self;
    (void)t;
    l->R = l->c * l->twist + l->d * (l->w - l->load_w);
    l->M = -l->R;
}

static crd_model_status load_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    load* l = self;
    (void)host;
    for (int i = 0; i < SHAFT_PARTS; i++) {
        load_outputs(l, t);
        l->load_w += h / SHAFT_PARTS * (l->R - drag(l->load_w)) / l->J;
        l->twist += h / SHAFT_PARTS * (l->w - l->load_w);
    }
    load_outputs(l, t);
    *reached = t + h;
    return CRD_MODEL_OK;
}

#define SHAFT_ROW(T, field_, cause, unit_, ...)                                                    \
    {                                                                                              \
        .name = #field_, .type = CRD_FLOAT64, .causality = cause, .variability = CRD_CONTINUOUS,   \
        .offset = offsetof(T, field_), .unit = unit_, __VA_ARGS__                                  \
    }
static const crd_model_variable engine_rows[] = {
    SHAFT_ROW(engine, push, CRD_INPUT, ""),
    SHAFT_ROW(engine, M, CRD_INPUT, "N.m"),
    SHAFT_ROW(engine, Mr, CRD_INPUT, "N.m"),
    SHAFT_ROW(engine, w, CRD_OUTPUT, "rad/s", .depends = ""),
    REAL(engine, J, CRD_PARAMETER, 0.25),
    REAL(engine, loss, CRD_PARAMETER, 0)};
static const crd_model_variable load_rows[] = {
    SHAFT_ROW(load, w, CRD_INPUT, "rad/s"),
    SHAFT_ROW(load, M, CRD_OUTPUT, "N.m", .depends = "w"),
    SHAFT_ROW(load, R, CRD_OUTPUT, "N.m", .depends = "w"),
    SHAFT_ROW(load, load_w, CRD_OUTPUT, "rad/s", .depends = ""),
    REAL(load, c, CRD_PARAMETER, 60),
    REAL(load, d, CRD_PARAMETER, 3),
    REAL(load, J, CRD_PARAMETER, 2)};
#define SHAFT_MODEL(which, about)                                                                  \
    {                                                                                              \
        .name = #which, .description = about, .size = sizeof(which), .variables = which##_rows,    \
        .variable_count = sizeof which##_rows / sizeof *which##_rows, .default_step = 1e-2,        \
        .default_stop = 1, .initialize = shaft_rests, .outputs = which##_outputs,                  \
        .step = which##_step                                                                       \
    }
static const crd_model engine_model = SHAFT_MODEL(engine, "an inertia");
static const crd_model load_model = SHAFT_MODEL(load, "a spring, a damper and a load");
