// An electric drive in three parts, for runs that are watched and steered: its parameters may be
// changed while it runs.
//
//   controller  e = target - speed, I' = ki e (stands while the demand is at its limit),
//               demand = kp e + I within +-limit
//   motor       tau M' = demand - M,  P = M w + r M^2,  C T' = r M^2 - G (T - T0)
//   shaft       J1 w1' = M - c (phi1 - phi2) - d (w1 - w2),
//               J2 w2' = c (phi1 - phi2) + d (w1 - w2) - b w2 - load
#include "numerics.h"

#define ROW_TUNABLE(type_, field, name_, start_, min_, max_, unit_, what)                          \
    .name = name_, .type = CRD_FLOAT64, .causality = CRD_PARAMETER, .variability = CRD_TUNABLE,    \
    .offset = offsetof(type_, field), .start = start_, .min = min_, .max = max_, .unit = unit_,    \
    .description = what

// ---- controller --------------------------------------------------------------------------------

typedef struct controller {
    double target, speed, demand, error, integral;
    double kp, ki, limit;
} controller;

static crd_model_status initialize_controller(void* self, const crd_model_host* host, double t)
{
    (void)host;
    (void)t;
    ((controller*)self)->integral = 0;
    return CRD_MODEL_OK;
}

static double within(double x, double limit)
{
    return fmax(-limit, fmin(limit, x));
}

static crd_model_status step_controller(void* self, const crd_model_host* host, double t, double h,
                                        double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    controller* c = self;
    const double e = c->target - c->speed, wish = c->kp * e + c->integral;
    if (fabs(wish) < c->limit || wish * e < 0) { c->integral += h * c->ki * e; }
    return CRD_MODEL_OK;
}

static void outputs_controller(void* self, double t)
{
    (void)t;
    controller* c = self;
    c->error = c->target - c->speed;
    c->demand = within(c->kp * c->error + c->integral, c->limit);
}

static const crd_model_variable controller_rows[] = {
    {ROW_REAL(controller, target, "target", CRD_INPUT, "rad/s"), .description = "wanted speed"},
    {ROW_REAL(controller, speed, "speed", CRD_INPUT, "rad/s"), .description = "measured speed"},
    {.name = "demand",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(controller, demand),
     .unit = "N.m",
     .description = "torque that the motor is asked for",
     .depends = "target speed"},
    {.name = "error",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(controller, error),
     .unit = "rad/s",
     .depends = "target speed"},
    {ROW_TUNABLE(controller, kp, "kp", 1.2, 0, 100, NULL, "N.m per rad/s")},
    {ROW_TUNABLE(controller, ki, "ki", 4, 0, 1000, NULL, "N.m per rad")},
    {ROW_TUNABLE(controller, limit, "limit", 60, 0, 400, "N.m", "of the demand")},
};

const crd_model crd_model_drive_controller = {
    .name = "drive_controller",
    .description = "speed controller of an electric drive",
    .size = sizeof(controller),
    ROWS(controller_rows),
    .default_step = 1e-3,
    .default_stop = 10,
    .initialize = initialize_controller,
    .outputs = outputs_controller,
    .step = step_controller,
};

// ---- motor -------------------------------------------------------------------------------------

typedef struct motor {
    double demand, speed, torque, power, temperature;
    double lag, loss, heat, cooling, ambient;
} motor;

static crd_model_status step_motor(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    motor* m = self;
    m->torque += (m->demand - m->torque) * -expm1(-h / m->lag);
    const double lost = m->loss * m->torque * m->torque;
    const double settled = m->ambient + lost / m->cooling;
    m->temperature += (settled - m->temperature) * -expm1(-h * m->cooling / m->heat);
    return CRD_MODEL_OK;
}

static void outputs_motor(void* self, double t)
{
    (void)t;
    motor* m = self;
    m->power = m->torque * m->speed + m->loss * m->torque * m->torque;
}

static crd_model_status initialize_motor(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const motor* m = self;
    if (m->lag > 0 && m->heat > 0 && m->cooling > 0) { return CRD_MODEL_OK; }
    host->log(host->user, CRD_MODEL_ERROR, "lag, heat and cooling have to be > 0");
    return CRD_MODEL_ERROR;
}

static const crd_model_variable motor_rows[] = {
    {ROW_REAL(motor, demand, "demand", CRD_INPUT, "N.m")},
    {ROW_REAL(motor, speed, "speed", CRD_INPUT, "rad/s")},
    {ROW_REAL(motor, torque, "torque", CRD_OUTPUT, "N.m"), .exact = true},
    {.name = "power",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(motor, power),
     .unit = "W",
     .description = "from the battery",
     .depends = "speed"},
    {ROW_REAL(motor, temperature, "temperature", CRD_OUTPUT, "degC"), .start = 40, .exact = true},
    {ROW_PARAMETER(motor, lag, "lag", 5e-3, "s")},
    {ROW_PARAMETER(motor, heat, "heat", 400, "J/K")},
    {ROW_TUNABLE(motor, loss, "loss", 0.3, 0, 10, NULL, "W per (N.m)^2")},
    {ROW_TUNABLE(motor, cooling, "cooling", 12, 0.1, 1000, "W/K", "conductance to the coolant")},
    {ROW_TUNABLE(motor, ambient, "coolant", 40, -40, 120, "degC", "temperature of the coolant")},
};

const crd_model crd_model_drive_motor = {
    .name = "drive_motor",
    .description = "electric machine with lag, losses and temperature",
    .size = sizeof(motor),
    ROWS(motor_rows),
    .default_step = 1e-3,
    .default_stop = 10,
    .initialize = initialize_motor,
    .outputs = outputs_motor,
    .step = step_motor,
};

// ---- shaft -------------------------------------------------------------------------------------

typedef struct shaft {
    double torque, load;
    double speed, load_speed, twist, transmitted;
    double J1, J2, c, d, b;
} shaft;

static void rhs_shaft(const void* self, double t, double tau, const double* x, double* dx)
{
    (void)t;
    (void)tau;
    const shaft* s = self;
    const double through = s->c * x[2] + s->d * (x[0] - x[1]);
    dx[0] = (s->torque - through) / s->J1;
    dx[1] = (through - s->b * x[1] - s->load) / s->J2;
    dx[2] = x[0] - x[1];
}

static crd_model_status step_shaft(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)host;
    (void)reached;
    shaft* s = self;
    double x[3] = {s->speed, s->load_speed, s->twist};
    rk4(rhs_shaft, s, t, h, (int)ceil(h / 5e-4 - 1e-9), x, 3);
    s->speed = x[0];
    s->load_speed = x[1];
    s->twist = x[2];
    return CRD_MODEL_OK;
}

static void outputs_shaft(void* self, double t)
{
    (void)t;
    shaft* s = self;
    s->transmitted = s->c * s->twist + s->d * (s->speed - s->load_speed);
}

static crd_model_status initialize_shaft(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const shaft* s = self;
    if (s->J1 > 0 && s->J2 > 0) { return CRD_MODEL_OK; }
    host->log(host->user, CRD_MODEL_ERROR, "J1 and J2 have to be > 0");
    return CRD_MODEL_ERROR;
}

static const crd_model_variable shaft_rows[] = {
    {ROW_REAL(shaft, torque, "torque", CRD_INPUT, "N.m")},
    {ROW_REAL(shaft, load, "load", CRD_INPUT, "N.m")},
    {ROW_REAL(shaft, speed, "speed", CRD_OUTPUT, "rad/s"), .exact = true},
    {ROW_REAL(shaft, load_speed, "load_speed", CRD_OUTPUT, "rad/s"), .exact = true},
    {ROW_REAL(shaft, twist, "twist", CRD_OUTPUT, "rad"), .exact = true},
    {ROW_REAL(shaft, transmitted, "transmitted", CRD_OUTPUT, "N.m")},
    {ROW_PARAMETER(shaft, J1, "J1", 0.05, "kg.m2")},
    {ROW_PARAMETER(shaft, J2, "J2", 0.4, "kg.m2")},
    {ROW_TUNABLE(shaft, c, "c", 800, 0, 1e5, "N.m/rad", "stiffness")},
    {ROW_TUNABLE(shaft, d, "d", 0.8, 0, 100, "N.m.s/rad", "damping")},
    {ROW_TUNABLE(shaft, b, "b", 0.05, 0, 10, "N.m.s/rad", "friction of the load")},
};

const crd_model crd_model_drive_shaft = {
    .name = "drive_shaft",
    .description = "two inertias with an elastic shaft between them",
    .size = sizeof(shaft),
    ROWS(shaft_rows),
    .default_step = 1e-3,
    .default_stop = 10,
    .initialize = initialize_shaft,
    .outputs = outputs_shaft,
    .step = step_shaft,
};
