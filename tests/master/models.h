// Small models and a small builder for the tests of the master.
#pragma once
#include "check.h"

#include "cardan/master.h"

#include <math.h>

#define REAL(T, field, cause, value)                                                               \
    {                                                                                              \
        .name = #field, .type = CRD_FLOAT64, .causality = cause,                                   \
        .variability = (cause) == CRD_PARAMETER ? CRD_TUNABLE : CRD_CONTINUOUS,                    \
        .offset = offsetof(T, field), .start = value                                               \
    }

// x' = a u + b x by explicit Euler, y = x: no feedthrough.
typedef struct {
    double u, y, a, b, x;
    double du[CRD_MODEL_MAX_ORDER], dy[CRD_MODEL_MAX_ORDER];
} euler;

static crd_model_status euler_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    (void)t;
    ((euler*)self)->y = ((euler*)self)->x;
    return CRD_MODEL_OK;
}

static void euler_outputs(void* self, double t)
{
    euler* e = self;
    (void)t;
    e->y = e->x;
    e->dy[0] = e->a * e->u + e->b * e->x;
}

static crd_model_status euler_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    euler* e = self;
    (void)host;
    e->x += h * (e->a * e->u + e->b * e->x);
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable euler_variables[] = {
    REAL(euler, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(euler, y),
     .depends = ""},
    REAL(euler, a, CRD_PARAMETER, 1),
    REAL(euler, b, CRD_PARAMETER, 0),
    {.name = "x",
     .type = CRD_FLOAT64,
     .causality = CRD_LOCAL,
     .offset = offsetof(euler, x),
     .exact = true},
};
static const crd_model euler_model = {.name = "euler",
                                      .description = "x' = a u + b x",
                                      .size = sizeof(euler),
                                      .variables = euler_variables,
                                      .variable_count = 5,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = euler_initialize,
                                      .outputs = euler_outputs,
                                      .step = euler_step};

// y = a u + b: feedthrough and nothing else; `curve` adds c cos(u).
typedef struct {
    double u, y, a, b, c;
} gain;

static void gain_outputs(void* self, double t)
{
    gain* g = self;
    (void)t;
    g->y = g->a * g->u + g->b + g->c * cos(g->u);
}

static crd_model_status gain_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    gain_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status gain_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)self;
    (void)host;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static double gain_partial(const void* self, int unknown, int known)
{
    const gain* g = self;
    return unknown == 1 && known == 0 ? g->a - g->c * sin(g->u) : 0;
}

static const crd_model_variable gain_variables[] = {
    REAL(gain, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(gain, y),
     .depends = "u"},
    REAL(gain, a, CRD_PARAMETER, 1),
    REAL(gain, b, CRD_PARAMETER, 0),
    REAL(gain, c, CRD_PARAMETER, 0),
};
static const crd_model gain_model = {.name = "gain",
                                     .description = "y = a u + b + c cos u",
                                     .size = sizeof(gain),
                                     .variables = gain_variables,
                                     .variable_count = 5,
                                     .default_step = 0.1,
                                     .default_stop = 1,
                                     .initialize = gain_initialize,
                                     .outputs = gain_outputs,
                                     .step = gain_step,
                                     .partial = gain_partial};
// The same without derivatives of its own.
static const crd_model plain_gain_model = {.name = "plain_gain",
                                           .description = "y = a u + b + c cos u",
                                           .size = sizeof(gain),
                                           .variables = gain_variables,
                                           .variable_count = 5,
                                           .default_step = 0.1,
                                           .default_stop = 1,
                                           .initialize = gain_initialize,
                                           .outputs = gain_outputs,
                                           .step = gain_step};

// x' = u exactly for polynomial inputs, y = x, with derivatives in and out.
typedef struct {
    double u, y, x;
    double du[CRD_MODEL_MAX_ORDER], dy[CRD_MODEL_MAX_ORDER];
} exact;

static void exact_outputs(void* self, double t)
{
    exact* e = self;
    (void)t;
    e->y = e->x;
    e->dy[0] = e->u;
    e->dy[1] = e->du[0];
}

static crd_model_status exact_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    exact_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status exact_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    exact* e = self;
    (void)host;
    e->x += h * (e->u + h * (e->du[0] / 2 + h * e->du[1] / 6));
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable exact_variables[] = {
    {.name = "u",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .offset = offsetof(exact, u),
     .derivatives = offsetof(exact, du)},
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(exact, y),
     .depends = "",
     .derivatives = offsetof(exact, dy)},
    {.name = "x",
     .type = CRD_FLOAT64,
     .causality = CRD_LOCAL,
     .offset = offsetof(exact, x),
     .exact = true},
};
static const crd_model exact_model = {.name = "exact",
                                      .description = "x' = u",
                                      .size = sizeof(exact),
                                      .variables = exact_variables,
                                      .variable_count = 3,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .max_input_derivative = 2,
                                      .max_output_derivative = 2,
                                      .initialize = exact_initialize,
                                      .outputs = exact_outputs,
                                      .step = exact_step};

// A source, y = t, that ends or fails when it is told to.
typedef struct {
    double y, t, when;
    int32_t what; // 1 terminate, 2 error, 3 NaN, 4 crash, 5 abort
} clock_unit;

static crd_model_status clock_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    ((clock_unit*)self)->y = ((clock_unit*)self)->t = t;
    return CRD_MODEL_OK;
}

static void clock_outputs(void* self, double t)
{
    clock_unit* c = self;
    (void)t;
    c->y = c->what == 3 && c->t >= c->when ? NAN : c->t;
}

static volatile int* volatile nowhere = (volatile int*)(uintptr_t)16;

static crd_model_status clock_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    clock_unit* c = self;
    (void)host;
    *reached = c->t = t + h;
    if (c->t < c->when || c->what == 0 || c->what == 3) { return CRD_MODEL_OK; }
    if (c->what == 4) { *nowhere = 1; }
    if (c->what == 5) { abort(); }
    return c->what == 1 ? CRD_MODEL_TERMINATE : CRD_MODEL_ERROR;
}

static const crd_model_variable clock_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(clock_unit, y),
     .depends = ""},
    REAL(clock_unit, when, CRD_PARAMETER, 1e300),
    {.name = "what",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(clock_unit, what)},
};
static const crd_model clock_model = {.name = "clock",
                                      .description = "y = t",
                                      .size = sizeof(clock_unit),
                                      .variables = clock_variables,
                                      .variable_count = 3,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = clock_initialize,
                                      .outputs = clock_outputs,
                                      .step = clock_step};

// ---- builder -----------------------------------------------------------------------------------

static inline int add_unit(crd_system* s, const char* name, const crd_model* model, double step)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.source = CRD_UNIT_NATIVE;
    u.model = model;
    u.step = step;
    int index = -1;
    check_ok(crd_system_add_unit(s, &u, &index));
    return index;
}

static inline void set(crd_system* s, int unit, const char* variable, const char* text)
{
    check_ok(crd_system_set(s, unit, variable, text, (crd_place){"test", 1}));
}

static inline crd_connection_spec* wire(crd_system* s, int from, const char* y, int to,
                                        const char* u)
{
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = from;
    c.from = y;
    c.to_unit = to;
    c.to = u;
    c.predict = CRD_PREDICTION_HOLD; // the rules that tests write out by hand
    check_ok(crd_system_add_connection(s, &c));
    return &s->connections[s->connection_count - 1];
}

static inline crd_system* new_system(crd_context* ctx, double step, double stop)
{
    crd_system* s = NULL;
    check_ok(crd_system_create(ctx, &s));
    s->run.start = 0;
    s->run.step = step;
    s->run.stop = stop;
    s->run.threads = 1;
    s->run.predict = CRD_PREDICTION_HOLD;
    return s;
}

static inline double value(crd_master* m, const char* name)
{
    double x = NAN;
    check_ok(crd_master_value(m, name, &x));
    return x;
}

#define check_run(expr, ctx)                                                                       \
    do {                                                                                           \
        if ((expr) < 0) { fail_msg("%s:%d: %s", __FILE__, __LINE__, crd_error_text(ctx)); }        \
    } while (0)
