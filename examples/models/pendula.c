// Two pendula connected by a spring-damper at their tips, Rodriguez (2021), section 5.4.3, in
// minimal coordinates: the angles theta from the downward vertical,
//   tip = pivot + l (sin theta, -cos theta),  m l^2 theta'' = l (F . (cos theta, sin theta)) - m g
//   l sin theta
// The spring-damper pushes tip 2 with f = k (p1 - p2) + c (v1 - v2) and tip 1 with -f; its natural
// length is 0.
#include "numerics.h"

typedef struct pendula {
    signal x1, y1, vx1, vy1, x2, y2, vx2, vy2, fx, fy;
    double theta1, omega1, theta2, omega2;
    double energy;
    double m1, m2, l1, l2, k, c, g, xA, yA, xB, yB;
    int64_t solver;
    int32_t substeps;
} pendula;

enum { RK4 = 1, SEMI_IMPLICIT };
static const char* const solvers[] = {"rk4", "semi_implicit", NULL};

typedef enum role {
    WHOLE,
    FIRST,         // pendulum 1 and the spring; the tip of 2 comes in
    SECOND,        // pendulum 2 and the spring; the tip of 1 comes in
    FIRST_FORCED,  // pendulum 1; the force comes in
    SECOND_FORCED, // pendulum 2; the force comes in
    LINK,          // the spring; both tips come in
} role;

static bool has_first(role r)
{
    return r == WHOLE || r == FIRST || r == FIRST_FORCED;
}

static bool has_second(role r)
{
    return r == WHOLE || r == SECOND || r == SECOND_FORCED;
}

/// Position and velocity of a tip: x, y, vx, vy.
static void tip(double pivot_x, double pivot_y, double l, double theta, double omega, double p[4])
{
    p[0] = pivot_x + l * sin(theta);
    p[1] = pivot_y - l * cos(theta);
    p[2] = l * cos(theta) * omega;
    p[3] = l * sin(theta) * omega;
}

typedef struct problem {
    const pendula* m;
    role r;
} problem;

static void inputs_at(const pendula* m, role r, double tau, double u[4])
{
    const signal* first[4] = {&m->x1, &m->y1, &m->vx1, &m->vy1};
    const signal* second[4] = {&m->x2, &m->y2, &m->vx2, &m->vy2};
    const signal* force[4] = {&m->fx, &m->fy, &m->fx, &m->fy};
    const signal** s = r == FIRST ? second : r == SECOND ? first : force;
    for (int i = 0; i < 4 && r != WHOLE; i++) {
        u[i] = signal_at(s[i], tau);
    }
}

/// States (theta, omega) of each pendulum inside.
static void right_side(const void* self, double t, double tau, const double* x, double* dx)
{
    (void)t;
    const problem* q = self;
    const pendula* m = q->m;
    const double* x2 = has_first(q->r) ? x + 2 : x;
    double u[4] = {0}, p1[4] = {0}, p2[4] = {0};
    inputs_at(m, q->r, tau, u);
    if (has_first(q->r)) { tip(m->xA, m->yA, m->l1, x[0], x[1], p1); }
    if (has_second(q->r)) { tip(m->xB, m->yB, m->l2, x2[0], x2[1], p2); }
    if (q->r == FIRST) { memcpy(p2, u, sizeof p2); }
    if (q->r == SECOND) { memcpy(p1, u, sizeof p1); }
    double fx = u[0], fy = u[1];
    if (q->r <= SECOND) {
        fx = m->k * (p1[0] - p2[0]) + m->c * (p1[2] - p2[2]);
        fy = m->k * (p1[1] - p2[1]) + m->c * (p1[3] - p2[3]);
    }
    if (has_first(q->r)) {
        const double torque = -fx * cos(x[0]) - fy * sin(x[0]);
        dx[0] = x[1];
        dx[1] = torque / (m->m1 * m->l1) - m->g / m->l1 * sin(x[0]);
        dx += 2;
    }
    if (has_second(q->r)) {
        const double torque = fx * cos(x2[0]) + fy * sin(x2[0]);
        dx[0] = x2[1];
        dx[1] = torque / (m->m2 * m->l2) - m->g / m->l2 * sin(x2[0]);
    }
}

static void hold_inputs(pendula* m, role r)
{
    signal* first[4] = {&m->x1, &m->y1, &m->vx1, &m->vy1};
    signal* second[4] = {&m->x2, &m->y2, &m->vx2, &m->vy2};
    for (int i = 0; i < 4; i++) {
        if (r == FIRST || r == LINK) { signal_hold(second[i]); }
        if (r == SECOND || r == LINK) { signal_hold(first[i]); }
    }
    signal_hold(&m->fx);
    signal_hold(&m->fy);
}

static void advance(pendula* m, role r, double t, double h)
{
    double* const all[4] = {&m->theta1, &m->omega1, &m->theta2, &m->omega2};
    double* const* s = has_first(r) ? all : all + 2;
    const int n = r == WHOLE ? 4 : r == LINK ? 0 : 2;
    double x[4] = {0}, dx[4];
    const problem q = {m, r};
    for (int i = 0; i < n; i++) {
        x[i] = *s[i];
    }
    if (m->solver == SEMI_IMPLICIT) {
        right_side(&q, t, 0, x, dx);
        hold_inputs(m, r);
        for (int i = 0; i < n; i += 2) {
            x[i + 1] += h * dx[i + 1];
            x[i] += h * x[i + 1];
        }
    } else {
        rk4(right_side, &q, t, h, m->substeps, x, n);
    }
    for (int i = 0; i < n; i++) {
        *s[i] = x[i];
    }
}

static void work_out(pendula* m, role r)
{
    double p[4];
    m->energy = 0;
    if (has_first(r)) {
        tip(m->xA, m->yA, m->l1, m->theta1, m->omega1, p);
        m->x1.v = p[0];
        m->y1.v = p[1];
        m->vx1.v = p[2];
        m->vy1.v = p[3];
        m->energy += 0.5 * m->m1 * (p[2] * p[2] + p[3] * p[3]) + m->m1 * m->g * p[1];
    }
    if (has_second(r)) {
        tip(m->xB, m->yB, m->l2, m->theta2, m->omega2, p);
        m->x2.v = p[0];
        m->y2.v = p[1];
        m->vx2.v = p[2];
        m->vy2.v = p[3];
        m->energy += 0.5 * m->m2 * (p[2] * p[2] + p[3] * p[3]) + m->m2 * m->g * p[1];
    }
    if (r == WHOLE || r == FIRST || r == LINK) {
        const double ex = m->x1.v - m->x2.v, ey = m->y1.v - m->y2.v;
        m->fx.v = m->k * ex + m->c * (m->vx1.v - m->vx2.v);
        m->fy.v = m->k * ey + m->c * (m->vy1.v - m->vy2.v);
        if (r != FIRST) { m->energy += 0.5 * m->k * (ex * ex + ey * ey); }
    }
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const pendula* m = self;
    if (!(m->m1 >= 0 && m->m2 >= 0 && m->l1 >= 0 && m->l2 >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "masses and lengths have to be > 0");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

#define ROLE(name, which)                                                                          \
    static crd_model_status step_##name(void* self, const crd_model_host* host, double t,          \
                                        double h, double* reached)                                 \
    {                                                                                              \
        (void)host;                                                                                \
        (void)reached;                                                                             \
        advance(self, which, t, h);                                                                \
        return CRD_MODEL_OK;                                                                       \
    }                                                                                              \
    static void outputs_##name(void* self, double t)                                               \
    {                                                                                              \
        (void)t;                                                                                   \
        work_out(self, which);                                                                     \
    }
ROLE(whole, WHOLE)
ROLE(first, FIRST)
ROLE(second, SECOND)
ROLE(first_forced, FIRST_FORCED)
ROLE(second_forced, SECOND_FORCED)
ROLE(link, LINK)

// fx, fy are rows 0, 1 of pen_fd1, and x2, y2, vx2, vy2 follow
static double partial_first(const void* self, int unknown, int known)
{
    const pendula* m = self;
    if (unknown > 1 || known < 2 || known > 5 || known % 2 != unknown) { return 0; }
    return known < 4 ? -m->k : -m->c;
}

// fx, fy are rows 0, 1 of pen_ffspring, then x1, y1, vx1, vy1, x2, y2, vx2, vy2
static double partial_link(const void* self, int unknown, int known)
{
    const pendula* m = self;
    if (unknown > 1 || known < 2 || known > 9 || known % 2 != unknown) { return 0; }
    const double sign = known < 6 ? 1 : -1;
    return sign * ((known - 2) % 4 < 2 ? m->k : m->c);
}

#define SIGNAL(name, cause, unit_) ROW_SIGNAL(pendula, name, #name, cause, unit_)
#define TIP_OUT(i)                                                                                 \
    {SIGNAL(x##i, CRD_OUTPUT, "m"), .depends = ""},                                                \
        {SIGNAL(y##i, CRD_OUTPUT, "m"), .depends = ""},                                            \
        {SIGNAL(vx##i, CRD_OUTPUT, "m/s"), .depends = ""},                                         \
    {                                                                                              \
        SIGNAL(vy##i, CRD_OUTPUT, "m/s"), .depends = ""                                            \
    }
#define TIP_IN(i, x_, y_)                                                                          \
    {SIGNAL(x##i, CRD_INPUT, "m"), .start = x_}, {SIGNAL(y##i, CRD_INPUT, "m"), .start = y_},      \
        {SIGNAL(vx##i, CRD_INPUT, "m/s")},                                                         \
    {                                                                                              \
        SIGNAL(vy##i, CRD_INPUT, "m/s")                                                            \
    }
#define FORCE_IN                                                                                   \
    {SIGNAL(fx, CRD_INPUT, "N")},                                                                  \
    {                                                                                              \
        SIGNAL(fy, CRD_INPUT, "N")                                                                 \
    }
#define ANGLE(i, start_)                                                                           \
    {ROW_REAL(pendula, theta##i, "theta" #i, CRD_OUTPUT, "rad"), .start = start_, .exact = true},  \
    {                                                                                              \
        ROW_REAL(pendula, omega##i, "omega" #i, CRD_OUTPUT, "rad/s"), .exact = true                \
    }
#define ENERGY                                                                                     \
    {                                                                                              \
        ROW_REAL(pendula, energy, "energy", CRD_OUTPUT, "J"),                                      \
            .description = "kinetic and potential energy of what is in this unit"                  \
    }
#define PARAMETER(name, start_, unit_)                                                             \
    {                                                                                              \
        ROW_PARAMETER(pendula, name, #name, start_, unit_)                                         \
    }
#define PENDULUM1                                                                                  \
    PARAMETER(m1, 1, "kg"), PARAMETER(l1, 2.5, "m"), PARAMETER(xA, 0, "m"), PARAMETER(yA, 0, "m")
#define PENDULUM2                                                                                  \
    PARAMETER(m2, 2, "kg"), PARAMETER(l2, 3.5, "m"), PARAMETER(xB, 7, "m"), PARAMETER(yB, 0, "m")
#define SPRING PARAMETER(k, 6, "N/m"), PARAMETER(c, 0, "N.s/m")
#define COMMON                                                                                     \
    PARAMETER(g, 9.81, "m/s2"), {ROW_CHOICE(pendula, solver, "solver", 1, solvers)},               \
    {                                                                                              \
        ROW_COUNT(pendula, substeps, "substeps", 10, 1, 1000000),                                  \
            .description = "inner steps of rk4"                                                    \
    }

#define THETA1 0.7853981633974483  // pi/4
#define THETA2 0.17453292519943295 // pi/18
#define X1 1.7677669529663687      // of the tips at these angles
#define Y1 (-1.7677669529663687)
#define X2 7.607768621834256
#define Y2 (-3.446827135542728)

static const crd_model_variable mono_rows[] = {{SIGNAL(fx, CRD_OUTPUT, "N"), .depends = ""},
                                               {SIGNAL(fy, CRD_OUTPUT, "N"), .depends = ""},
                                               TIP_OUT(1),
                                               TIP_OUT(2),
                                               ANGLE(1, THETA1),
                                               ANGLE(2, THETA2),
                                               ENERGY,
                                               PENDULUM1,
                                               PENDULUM2,
                                               SPRING,
                                               COMMON};
static const crd_model_variable fd1_rows[] = {
    {SIGNAL(fx, CRD_OUTPUT, "N"), .depends = "x2 vx2", .description = "force on tip 2"},
    {SIGNAL(fy, CRD_OUTPUT, "N"), .depends = "y2 vy2", .description = "force on tip 2"},
    TIP_IN(2, X2, Y2),
    TIP_OUT(1),
    ANGLE(1, THETA1),
    ENERGY,
    PENDULUM1,
    SPRING,
    COMMON};
static const crd_model_variable fd2_rows[] = {FORCE_IN, TIP_OUT(2), ANGLE(2, THETA2),
                                              ENERGY,   PENDULUM2,  COMMON};
static const crd_model_variable dd1_rows[] = {
    TIP_IN(2, X2, Y2), TIP_OUT(1), ANGLE(1, THETA1), ENERGY, PENDULUM1, SPRING, COMMON};
static const crd_model_variable dd2_rows[] = {
    TIP_IN(1, X1, Y1), TIP_OUT(2), ANGLE(2, THETA2), ENERGY, PENDULUM2, SPRING, COMMON};
static const crd_model_variable ff1_rows[] = {FORCE_IN, TIP_OUT(1), ANGLE(1, THETA1),
                                              ENERGY,   PENDULUM1,  COMMON};
static const crd_model_variable ff2_rows[] = {FORCE_IN, TIP_OUT(2), ANGLE(2, THETA2),
                                              ENERGY,   PENDULUM2,  COMMON};
static const crd_model_variable ffspring_rows[] = {
    {SIGNAL(fx, CRD_OUTPUT, "N"), .depends = "x1 vx1 x2 vx2", .description = "force on tip 2"},
    {SIGNAL(fy, CRD_OUTPUT, "N"), .depends = "y1 vy1 y2 vy2", .description = "force on tip 2"},
    TIP_IN(1, X1, Y1),
    TIP_IN(2, X2, Y2),
    ENERGY,
    SPRING,
    COMMON};

#define MODEL(unit_, what, part, order, partial_)                                                  \
    const crd_model crd_model_pen_##unit_ = {                                                      \
        .name = "pen_" #unit_,                                                                     \
        .description = "two pendula" what,                                                         \
        .size = sizeof(pendula),                                                                   \
        ROWS(unit_##_rows),                                                                        \
        .default_step = 1e-3,                                                                      \
        .default_stop = 10,                                                                        \
        .max_input_derivative = order,                                                             \
        .initialize = initialize,                                                                  \
        .outputs = outputs_##part,                                                                 \
        .step = step_##part,                                                                       \
        .partial = partial_,                                                                       \
    };
MODEL(mono, "", whole, 0, NULL)
MODEL(fd1, ", pendulum 1: displacement in, force out", first, 2, partial_first)
MODEL(fd2, ", pendulum 2: force in, displacement out", second_forced, 2, NULL)
MODEL(dd1, ", pendulum 1: displacement in, displacement out", first, 2, NULL)
MODEL(dd2, ", pendulum 2: displacement in, displacement out", second, 2, NULL)
MODEL(ff1, ", pendulum 1: force in, displacement out", first_forced, 2, NULL)
MODEL(ff2, ", pendulum 2: force in, displacement out", second_forced, 2, NULL)
MODEL(ffspring, ", coupling: displacements in, force out", link, 2, partial_link)
