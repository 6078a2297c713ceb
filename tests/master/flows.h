// Models and helpers for the tests of predicted, controlled and iterated runs: sources with known
// curves, and a target that writes down what it is told.
#pragma once
#include "models.h"

#include "master/master.h"

#include <stdio.h>

// ---- a source with a known curve ---------------------------------------------------------------

enum { CUBIC, SINE, LINE, BAD_RATE, BAD_CURVE, LEAP };

static inline double cubic(int order, double t)
{
    return order == 0   ? 1 + t * (2 + t * (-3 + t * 4))
           : order == 1 ? 2 + t * (-6 + t * 12)
           : order == 2 ? -6 + 24 * t
           : order == 3 ? 24
                        : 0;
}

static inline double sine(int order, double t)
{
    return sin(2 * t + order * 1.57079632679489662) * pow(2, order);
}

typedef struct {
    double y, t;
    double dy[CRD_MODEL_MAX_ORDER];
    int32_t kind;
} curve;

static inline double curve_at(int kind, int order, double t)
{
    switch (kind) {
    case CUBIC:
        return cubic(order, t);
    case SINE:
        return sine(order, t);
    case LEAP:
        return sine(order, t) + (order == 0 && t > 20.05);
    default:
        return order == 0 ? 2 * t : order == 1 ? 2 : 0;
    }
}

static inline void curve_outputs(void* self, double t)
{
    curve* c = self;
    (void)t;
    c->y = curve_at(c->kind, 0, c->t);
    c->dy[0] = c->kind == BAD_RATE && c->t > 0.25 ? NAN : curve_at(c->kind, 1, c->t);
    c->dy[1] = c->kind == BAD_CURVE && c->t > 0.25 ? INFINITY : curve_at(c->kind, 2, c->t);
}

static inline crd_model_status curve_start(void* self, const crd_model_host* host, double t)
{
    (void)host;
    ((curve*)self)->t = t;
    curve_outputs(self, t);
    return CRD_MODEL_OK;
}

static inline crd_model_status curve_step(void* self, const crd_model_host* host, double t,
                                          double h, double* reached)
{
    (void)host;
    ((curve*)self)->t = *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable curve_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(curve, y),
     .depends = "",
     .derivatives = offsetof(curve, dy)},
    {.name = "kind",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(curve, kind)},
};
#define CURVE_MODEL(order)                                                                         \
    {                                                                                              \
        .name = "curve", .description = "a known curve", .size = sizeof(curve),                    \
        .variables = curve_variables, .variable_count = 2, .default_step = 0.1, .default_stop = 1, \
        .max_output_derivative = order, .initialize = curve_start, .outputs = curve_outputs,       \
        .step = curve_step                                                                         \
    }
static const crd_model curve_models[] = {CURVE_MODEL(0), CURVE_MODEL(1), CURVE_MODEL(2)};

// ---- a target that writes down what it is told -------------------------------------------------

typedef struct {
    double t, h, u, d1, d2;
} told;

enum { TOLD = 4096 };
static told said[TOLD];
static int said_count;

typedef struct {
    double u, y, x;
    double du[CRD_MODEL_MAX_ORDER];
} listener;

static inline void listener_outputs(void* self, double t)
{
    (void)t;
    ((listener*)self)->y = ((listener*)self)->x;
}

static inline crd_model_status listener_start(void* self, const crd_model_host* host, double t)
{
    (void)host;
    listener_outputs(self, t);
    return CRD_MODEL_OK;
}

// y integrates what was told, exactly.
static inline crd_model_status listener_step(void* self, const crd_model_host* host, double t,
                                             double h, double* reached)
{
    listener* p = self;
    (void)host;
    if (said_count < TOLD) { said[said_count++] = (told){t, h, p->u, p->du[0], p->du[1]}; }
    p->x += h * (p->u + h * (p->du[0] / 2 + h * p->du[1] / 6));
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable listener_variables[] = {
    {.name = "u",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .offset = offsetof(listener, u),
     .derivatives = offsetof(listener, du)},
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(listener, y),
     .depends = ""},
};
#define LISTENER_MODEL(order)                                                                      \
    {                                                                                              \
        .name = "listener", .description = "writes down", .size = sizeof(listener),                \
        .variables = listener_variables, .variable_count = 2, .default_step = 0.1,                 \
        .default_stop = 1, .max_input_derivative = order, .initialize = listener_start,            \
        .outputs = listener_outputs, .step = listener_step                                         \
    }
static const crd_model listener_models[] = {LISTENER_MODEL(0), LISTENER_MODEL(1),
                                            LISTENER_MODEL(2)};

// ---- units that cannot everything --------------------------------------------------------------

// Tests that link with --wrap=crd_unit_create_shared: names say what is taken away.
//   rigid...: cannot save its state; deaf...: cannot be asked again between steps
crd_status __real_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out);
crd_status __wrap_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out);

static crd_status (*altered)(crd_unit* u); // what else a test wants to change, NULL: nothing

crd_status __wrap_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out)
{
    const crd_status st = __real_crd_unit_create_shared(ctx, store, spec, out);
    if (st < 0) { return st; }
    crd_unit* u = *out;
    if (strncmp(u->name, "rigid", 5) == 0) { u->info.flags &= ~(uint32_t)CRD_UNIT_CAN_SAVE; }
    if (strncmp(u->name, "deaf", 4) == 0) { u->info.flags &= ~(uint32_t)CRD_UNIT_CAN_REFRESH; }
    return altered ? altered(u) : st;
}

// ---- runs --------------------------------------------------------------------------------------

static inline crd_connection_spec* wire_as(crd_system* s, int from, int to, crd_prediction predict)
{
    crd_connection_spec* c = wire(s, from, "y", to, "u");
    c->predict = predict;
    return c;
}

static inline void set_kind(crd_system* s, int unit, int kind)
{
    static const char* const words[] = {"0", "1", "2", "3", "4", "5"};
    set(s, unit, "kind", words[kind]);
}

static inline crd_master* open_run(crd_context* ctx, crd_system* s)
{
    crd_master* m = NULL;
    said_count = 0;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    return m;
}

static inline void close_run(crd_master* m, crd_system* s)
{
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static inline void run_all(crd_context* ctx, crd_master* m)
{
    while (crd_master_ended(m) == CRD_END_NONE) {
        check_run(crd_master_advance(m, 1000), ctx);
    }
}

static inline void use_control(crd_system* s, double tolerance)
{
    s->run.control.on = true;
    s->run.control.tolerance = tolerance;
    s->run.control.place = (crd_place){"test", 7};
}

static inline void use_iteration(crd_system* s, crd_accel_method acceleration, double tolerance)
{
    s->run.iterate.on = true;
    s->run.iterate.acceleration = acceleration;
    s->run.iterate.tolerance = tolerance;
    s->run.iterate.place = (crd_place){"test", 8};
}

static inline int setup(void** state)
{
    altered = NULL;
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static inline int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
