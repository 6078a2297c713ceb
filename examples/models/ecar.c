// The e-Car of Rodriguez (2021), section 6.2.3: a planar vehicle of three degrees of freedom on
// massless wheels, driven by a torque tau at the front wheel; it tells the bench how fast that
// wheel turns. Minimal form of (6.1), (6.2), the wheel radius in its second row included:
//
//   s_F = y + l/2 sin th - h cos th - r,  s_R = y - l/2 sin th - h cos th - r
//   N = k (s0 - s) - c s',  m x'' = tau / r,  m y'' = N_F + N_R - m g
//   J th'' = N_F (l/2 cos th + h sin th) + N_R (-l/2 cos th + h sin th) + tau/r (-l/2 sin th + h
//   cos th) + tau
// The last tau is the motor's reaction on the body, if its housing sits there.
#include "numerics.h"

typedef struct ecar {
    signal tau;
    double omega_F, s_F, s_R;
    double x, y, theta, vx, vy, omega; // states
    double l_AB, h, r, m, g, k_F, k_R, c_F, c_R, s_F0, s_R0, J;
    double torque, t_on, t_off; // of ecar_mono: a pulse
    bool reaction;
    int32_t substeps;
} ecar;

static void suspension(const ecar* e, const double* x, double* N_F, double* N_R, double* out)
{
    const double sn = sin(x[2]), cs = cos(x[2]), half = 0.5 * e->l_AB;
    const double s_F = x[1] + half * sn - e->h * cs - e->r;
    const double s_R = x[1] - half * sn - e->h * cs - e->r;
    const double arm_F = half * cs + e->h * sn, arm_R = -half * cs + e->h * sn;
    *N_F = e->k_F * (e->s_F0 - s_F) - e->c_F * (x[4] + arm_F * x[5]);
    *N_R = e->k_R * (e->s_R0 - s_R) - e->c_R * (x[4] + arm_R * x[5]);
    out[0] = s_F;
    out[1] = s_R;
    out[2] = arm_F;
    out[3] = arm_R;
    out[4] = -half * sn + e->h * cs; // d x_A / d theta
}

/// x = x, y, theta and their rates
static void right_side(const void* self, double t, double tau_, const double* x, double* dx)
{
    (void)t;
    const ecar* e = self;
    const double torque = signal_at(&e->tau, tau_);
    double N_F, N_R, g[5];
    suspension(e, x, &N_F, &N_R, g);
    dx[0] = x[3];
    dx[1] = x[4];
    dx[2] = x[5];
    dx[3] = torque / e->r / e->m;
    dx[4] = (N_F + N_R) / e->m - e->g;
    dx[5] = (N_F * g[2] + N_R * g[3] + torque / e->r * g[4] + (e->reaction ? torque : 0)) / e->J;
}

static void advance(ecar* e, double t, double h, int substeps)
{
    double x[6] = {e->x, e->y, e->theta, e->vx, e->vy, e->omega};
    rk4(right_side, e, t, h, substeps, x, 6);
    e->x = x[0];
    e->y = x[1];
    e->theta = x[2];
    e->vx = x[3];
    e->vy = x[4];
    e->omega = x[5];
}

static crd_model_status step_driven(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    (void)reached;
    advance(self, t, h, ((ecar*)self)->substeps);
    return CRD_MODEL_OK;
}

/// The torque is constant between the edges of its pulse, and no inner step goes over an edge.
static crd_model_status step_mono(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)host;
    (void)reached;
    ecar* e = self;
    const double tiny = 1e-9 * h, end = t + h;
    while (t < end - tiny) {
        const bool before = t < e->t_on - tiny, within = !before && t < e->t_off - tiny;
        const double edge = before ? e->t_on : within ? e->t_off : end;
        const double until = edge < end - tiny ? edge : end;
        e->tau.v = within ? e->torque : 0;
        advance(e, t, until - t, e->substeps);
        t = until;
    }
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)t;
    ecar* e = self;
    const double x[6] = {e->x, e->y, e->theta, e->vx, e->vy, e->omega};
    double N_F, N_R, g[5];
    suspension(e, x, &N_F, &N_R, g);
    e->s_F = g[0];
    e->s_R = g[1];
    e->omega_F = (e->vx + g[4] * e->omega) / e->r;
}

static void outputs_mono(void* self, double t)
{
    ecar* e = self;
    e->tau.v = t >= e->t_on && t < e->t_off ? e->torque : 0;
    outputs(self, t);
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    ecar* e = self;
    if (!(e->m > 0 && e->r > 0 && e->l_AB > 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "m, r and l_AB have to be > 0");
        return CRD_MODEL_ERROR;
    }
    e->J = e->m * (0.25 * e->l_AB * e->l_AB + e->h * e->h); // m l_BG^2
    return CRD_MODEL_OK;
}

#define OUTPUT(name, unit_, what)                                                                  \
    {                                                                                              \
        ROW_REAL(ecar, name, #name, CRD_OUTPUT, unit_), .description = what                        \
    }
#define STATE(name, label, unit_, start_, what)                                                    \
    {                                                                                              \
        ROW_REAL(ecar, name, label, CRD_OUTPUT, unit_), .start = start_, .exact = true,            \
                                                        .description = what                        \
    }
#define PARAMETER(name, start_, unit_)                                                             \
    {                                                                                              \
        ROW_PARAMETER(ecar, name, #name, start_, unit_)                                            \
    }
#define BODY                                                                                       \
    OUTPUT(omega_F, "rad/s", "speed of the front wheel"), OUTPUT(s_F, "m", "front suspension"),    \
        OUTPUT(s_R, "m", "rear suspension"), STATE(x, "x_G", "m", 0, "centre of mass"),            \
        STATE(y, "y_G", "m", 0.08673, "centre of mass"),                                           \
        STATE(theta, "theta", "rad", 0, "pitch of the body"), STATE(vx, "vx", "m/s", 0, NULL),     \
        STATE(vy, "vy", "m/s", 0, NULL), STATE(omega, "omega", "rad/s", 0, "pitch rate"),          \
        PARAMETER(l_AB, 0.18, "m"), PARAMETER(h, 0.01, "m"), PARAMETER(r, 0.04, "m"),              \
        PARAMETER(m, 2, "kg"), PARAMETER(g, 9.81, "m/s2"), PARAMETER(k_F, 3000, "N/m"),            \
        PARAMETER(k_R, 3000, "N/m"), PARAMETER(c_F, 100, "N.s/m"), PARAMETER(c_R, 100, "N.s/m"),   \
        PARAMETER(s_F0, 0.04, "m"), PARAMETER(s_R0, 0.04, "m"),                                    \
        {.name = "reaction",                                                                       \
         .type = CRD_BOOLEAN,                                                                      \
         .causality = CRD_PARAMETER,                                                               \
         .variability = CRD_FIXED,                                                                 \
         .offset = offsetof(ecar, reaction),                                                       \
         .start = 1,                                                                               \
         .description = "the motor's housing sits on the body"},                                   \
    {                                                                                              \
        ROW_COUNT(ecar, substeps, "substeps", 10, 1, 1000000), .description = "inner steps of rk4" \
    }

static const crd_model_variable driven_rows[] = {
    {ROW_SIGNAL(ecar, tau, "tau", CRD_INPUT, "N.m"), .description = "torque of the motor"}, BODY};
static const crd_model_variable mono_rows[] = {
    {ROW_REAL(ecar, tau.v, "tau", CRD_OUTPUT, "N.m"), .description = "torque of the motor"},
    BODY,
    PARAMETER(torque, 0.2, "N.m"),
    PARAMETER(t_on, 0.5, "s"),
    PARAMETER(t_off, 1.5, "s")};

const crd_model crd_model_ecar = {
    .name = "ecar",
    .description = "e-Car: torque in, front wheel speed out",
    .size = sizeof(ecar),
    ROWS(driven_rows),
    .default_step = 1e-3,
    .default_stop = 2,
    .max_input_derivative = 2,
    .initialize = initialize,
    .outputs = outputs,
    .step = step_driven,
};

const crd_model crd_model_ecar_mono = {
    .name = "ecar_mono",
    .description = "e-Car with a pulse of torque",
    .size = sizeof(ecar),
    ROWS(mono_rows),
    .default_step = 1e-3,
    .default_stop = 2,
    .initialize = initialize,
    .outputs = outputs_mono,
    .step = step_mono,
};
