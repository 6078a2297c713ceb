// The hydraulic crane of Rodriguez (2021), section 5.4.4: two links in a plane, a cylinder between
// the ground at B and the middle of link 1, two valves that feed its chambers.
//
//   s = |PB|,  J = ds/dtheta1,  f = a_p (p2 - p1) - c s'                           (5.29)
//   M(theta) theta'' + coriolis = gravity + (J f, 0)
//   p1' = beta(p1) / (a_p l1) (a_p s' + Q(A_i, pP - p1) - Q(A_o, p1 - pT))
//   p2' = beta(p2) / (a_p l2) (-a_p s' + Q(A_o, pP - p2) - Q(A_i, p2 - pT))
// with flows Q(A, dp) = A c_d sqrt(2 dp / rho), 0 for dp < 0, and valve areas A_i = A_v kappa,
// A_o = A_v (1 - kappa) of the spool displacement kappa(t) in (5.30), whose omega is in hertz.
// The data that the thesis leaves out (pressures, flow coefficients, bulk modulus) are those of the
// benchmark library of the same laboratory.
#include "numerics.h"

typedef struct crane {
    signal s, sd, f, p1, p2; // states, inputs or outputs, as the role wants
    double theta1, theta2, omega1, omega2;
    double kappa, energy;
    double L, Lh, m1, m2, m3, g, c, a_p;
    double kappa0, amplitude, frequency;
    double p_P, p_T, c_d, rho, A_v, beta_a, beta_b, l_half, s0;
    int64_t solver;
    int32_t substeps;
} crane;

enum { RK4 = 1, SEMI_IMPLICIT };
static const char* const solvers[] = {"rk4", "semi_implicit", NULL};

typedef enum role {
    WHOLE,
    MECHANICS,       // f comes in
    MECHANICS_PRESS, // p1, p2 come in
    HYDRAULICS,      // s, s' come in, f goes out
} role;

#define PI 3.14159265358979323846

static double spool(const crane* m, double t)
{
    const double ramp = t < 1 ? t : t < 8 ? 1 : t < 9 ? 9 - t : 0;
    return m->kappa0 * (1 - m->amplitude * ramp * sin(2 * PI * m->frequency * t));
}

static double length(const crane* m, double theta1)
{
    return m->L * sqrt(1 - 0.5 * sqrt(3.0) * cos(theta1));
}

static double lever(const crane* m, double theta1) // ds / dtheta1
{
    return sqrt(3.0) * m->L * m->L * sin(theta1) / (4 * length(m, theta1));
}

static double force(const crane* m, double p1, double p2, double sd)
{
    return m->a_p * (p2 - p1) - m->c * sd;
}

/// x = theta1, theta2, omega1, omega2
static void mechanics(const crane* m, const double* x, double f, double* dx)
{
    const double cos12 = cos(x[0] - x[1]), sin12 = sin(x[0] - x[1]);
    const double M11 = m->L * m->L * (m->m1 / 3 + m->m2 + m->m3);
    const double M12 = m->L * m->Lh * m->m3 * cos12;
    const double M22 = m->Lh * m->Lh * m->m3;
    const double turn = m->L * m->Lh * m->m3 * sin12;
    const double q1 = lever(m, x[0]) * f - turn * x[3] * x[3] -
                      (0.5 * m->m1 + m->m2 + m->m3) * m->g * m->L * cos(x[0]);
    const double q2 = turn * x[2] * x[2] - m->m3 * m->g * m->Lh * cos(x[1]);
    const double det = M11 * M22 - M12 * M12;
    dx[0] = x[2];
    dx[1] = x[3];
    dx[2] = (M22 * q1 - M12 * q2) / det;
    dx[3] = (M11 * q2 - M12 * q1) / det;
}

static double flow(const crane* m, double area, double dp)
{
    return dp > 0 ? area * m->c_d * sqrt(2 * dp / m->rho) : 0;
}

static double bulk(const crane* m, double p)
{
    return (1 + m->beta_a * p + m->beta_b * p * p) / (m->beta_a + 2 * m->beta_b * p);
}

/// x = p1, p2
static void hydraulics(const crane* m, double t, const double* x, double s, double sd, double* dx)
{
    const double kappa = spool(m, t);
    const double in = m->A_v * kappa, out = m->A_v * (1 - kappa);
    const double l1 = m->l_half + m->s0 - s, l2 = m->l_half + s - m->s0;
    const double q1 = m->a_p * sd + flow(m, in, m->p_P - x[0]) - flow(m, out, x[0] - m->p_T);
    const double q2 = -m->a_p * sd + flow(m, out, m->p_P - x[1]) - flow(m, in, x[1] - m->p_T);
    dx[0] = bulk(m, x[0]) / (m->a_p * l1) * q1;
    dx[1] = bulk(m, x[1]) / (m->a_p * l2) * q2;
}

typedef struct problem {
    const crane* m;
    role r;
} problem;

static void right_side(const void* self, double t, double tau, const double* x, double* dx)
{
    const problem* q = self;
    const crane* m = q->m;
    switch (q->r) {
    case WHOLE: {
        const double sd = lever(m, x[0]) * x[2];
        mechanics(m, x, force(m, x[4], x[5], sd), dx);
        hydraulics(m, t + tau, x + 4, length(m, x[0]), sd, dx + 4);
        break;
    }
    case MECHANICS:
        mechanics(m, x, signal_at(&m->f, tau), dx);
        break;
    case MECHANICS_PRESS: {
        const double sd = lever(m, x[0]) * x[2];
        mechanics(m, x, force(m, signal_at(&m->p1, tau), signal_at(&m->p2, tau), sd), dx);
        break;
    }
    case HYDRAULICS:
        hydraulics(m, t + tau, x, signal_at(&m->s, tau), signal_at(&m->sd, tau), dx);
        break;
    }
}

static void hold_inputs(crane* m, role r)
{
    if (r == MECHANICS) { signal_hold(&m->f); }
    if (r == MECHANICS_PRESS) {
        signal_hold(&m->p1);
        signal_hold(&m->p2);
    }
    if (r == HYDRAULICS) {
        signal_hold(&m->s);
        signal_hold(&m->sd);
    }
}

static void advance(crane* m, role r, double t, double h)
{
    double* const all[6] = {&m->theta1, &m->theta2, &m->omega1, &m->omega2, &m->p1.v, &m->p2.v};
    double* const* state = r == HYDRAULICS ? all + 4 : all;
    const int n = r == WHOLE ? 6 : r == HYDRAULICS ? 2 : 4;
    const problem q = {m, r};
    double x[6], dx[6];
    for (int i = 0; i < n; i++) {
        x[i] = *state[i];
    }
    if (m->solver == SEMI_IMPLICIT) { // Euler; angles with the new velocities
        right_side(&q, t, 0, x, dx);
        hold_inputs(m, r);
        for (int i = n - 1; i >= 0; i--) {
            x[i] += h * (r != HYDRAULICS && i < 2 ? x[i + 2] : dx[i]);
        }
    } else {
        rk4(right_side, &q, t, h, m->substeps, x, n);
    }
    for (int i = 0; i < n; i++) {
        *state[i] = x[i];
    }
}

static void work_out(crane* m, role r, double t)
{
    if (r != HYDRAULICS) {
        m->s.v = length(m, m->theta1);
        m->sd.v = lever(m, m->theta1) * m->omega1;
        const double vx = -m->L * sin(m->theta1) * m->omega1 - m->Lh * sin(m->theta2) * m->omega2;
        const double vy = m->L * cos(m->theta1) * m->omega1 + m->Lh * cos(m->theta2) * m->omega2;
        const double v1 = m->L * m->omega1;
        m->energy = (m->m1 / 6 + m->m2 / 2) * v1 * v1 + 0.5 * m->m3 * (vx * vx + vy * vy) +
                    m->g * ((0.5 * m->m1 + m->m2 + m->m3) * m->L * sin(m->theta1) +
                            m->m3 * m->Lh * sin(m->theta2));
    }
    if (r == WHOLE || r == HYDRAULICS) {
        m->kappa = spool(m, t);
        m->f.v = force(m, m->p1.v, m->p2.v, m->sd.v);
    }
}

/// The pressures start where the flows through both valves are equal.
static crd_model_status start_hydraulics(void* self, const crd_model_host* host, double t)
{
    crane* m = self;
    const double kappa = spool(m, t);
    const double in = kappa * kappa, out = (1 - kappa) * (1 - kappa);
    if (!(m->kappa0 >= 0 && m->kappa0 <= 1)) {
        host->log(host->user, CRD_MODEL_ERROR, "kappa0 has to be between 0 and 1");
        return CRD_MODEL_ERROR;
    }
    m->p1.v = (in * m->p_P + out * m->p_T) / (in + out);
    m->p2.v = (out * m->p_P + in * m->p_T) / (in + out);
    return CRD_MODEL_OK;
}

static crd_model_status start_mechanics(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
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
        work_out(self, which, t);                                                                  \
    }
ROLE(whole, WHOLE)
ROLE(mechanics, MECHANICS)
ROLE(mechanics_press, MECHANICS_PRESS)
ROLE(hydraulics, HYDRAULICS)

// f is row 0 of hc_hyd, s and sd follow
static double partial_hydraulics(const void* self, int unknown, int known)
{
    return unknown == 0 && known == 2 ? -((const crane*)self)->c : 0;
}

#define SIGNAL(name, cause, unit_) ROW_SIGNAL(crane, name, #name, cause, unit_)
#define INPUT(name, unit_, start_)                                                                 \
    {                                                                                              \
        SIGNAL(name, CRD_INPUT, unit_), .start = start_                                            \
    }
#define OUTPUT(name, unit_, on, what)                                                              \
    {                                                                                              \
        SIGNAL(name, CRD_OUTPUT, unit_), .depends = on, .description = what                        \
    }
#define STATE(name, unit_, start_)                                                                 \
    {                                                                                              \
        ROW_REAL(crane, name, #name, CRD_OUTPUT, unit_), .start = start_, .exact = true            \
    }
#define PARAMETER(name, start_, unit_)                                                             \
    {                                                                                              \
        ROW_PARAMETER(crane, name, #name, start_, unit_)                                           \
    }

#define CYLINDER_OUT                                                                               \
    OUTPUT(s, "m", "", "length of the cylinder"), OUTPUT(sd, "m/s", "", "velocity of the cylinder")
#define PRESSURES_OUT OUTPUT(p1, "Pa", "", "chamber 1"), OUTPUT(p2, "Pa", "", "chamber 2")
#define KAPPA                                                                                      \
    {                                                                                              \
        ROW_REAL(crane, kappa, "kappa", CRD_OUTPUT, NULL), .description = "spool displacement"     \
    }
#define LINKS                                                                                      \
    STATE(theta1, "rad", 0.52359877559829882), STATE(theta2, "rad", 4.7123889803846897),           \
        STATE(omega1, "rad/s", 0), STATE(omega2, "rad/s", 0),                                      \
    {                                                                                              \
        ROW_REAL(crane, energy, "energy", CRD_OUTPUT, "J"),                                        \
            .description = "kinetic and potential energy of the links"                             \
    }
#define LINK_PARAMETERS                                                                            \
    PARAMETER(L, 1, "m"), PARAMETER(Lh, 0.5, "m"), PARAMETER(m1, 200, "kg"),                       \
        PARAMETER(m2, 250, "kg"), PARAMETER(m3, 100, "kg"), PARAMETER(g, 9.81, "m/s2")
#define PISTON PARAMETER(a_p, 65e-4, "m2"), PARAMETER(c, 1e5, "N.s/m")
#define VALVES                                                                                     \
    PARAMETER(kappa0, 0.45434558959805127, NULL), PARAMETER(amplitude, 0.1, NULL),                 \
        PARAMETER(frequency, 2, "Hz"), PARAMETER(p_P, 7.6e6, "Pa"), PARAMETER(p_T, 1e5, "Pa"),     \
        PARAMETER(c_d, 0.67, NULL), PARAMETER(rho, 850, "kg/m3"), PARAMETER(A_v, 5e-4, "m2"),      \
        PARAMETER(beta_a, 6.53e-10, "1/Pa"), PARAMETER(beta_b, -1.19e-18, "1/Pa2"),                \
        PARAMETER(l_half, 0.221, "m"), PARAMETER(s0, 0.5, "m")
#define COMMON(n)                                                                                  \
    {ROW_CHOICE(crane, solver, "solver", 1, solvers)},                                             \
    {                                                                                              \
        ROW_COUNT(crane, substeps, "substeps", n, 1, 1000000), .description = "inner steps of rk4" \
    }

static const crd_model_variable mono_rows[] = {OUTPUT(f, "N", "", "force of the cylinder"),
                                               CYLINDER_OUT,
                                               PRESSURES_OUT,
                                               KAPPA,
                                               LINKS,
                                               LINK_PARAMETERS,
                                               PISTON,
                                               VALVES,
                                               COMMON(10)};
static const crd_model_variable mech_rows[] = {INPUT(f, "N", 8829), CYLINDER_OUT, LINKS,
                                               LINK_PARAMETERS, COMMON(10)};
static const crd_model_variable hyd_rows[] = {OUTPUT(f, "N", "sd", "force of the cylinder"),
                                              INPUT(s, "m", 0.5),
                                              INPUT(sd, "m/s", 0),
                                              PRESSURES_OUT,
                                              KAPPA,
                                              PISTON,
                                              VALVES,
                                              COMMON(10)};
static const crd_model_variable pd_mech_rows[] = {INPUT(p1, "Pa", 3170846.1538461540),
                                                  INPUT(p2, "Pa", 4529153.8461538460),
                                                  CYLINDER_OUT,
                                                  LINKS,
                                                  LINK_PARAMETERS,
                                                  PISTON,
                                                  COMMON(10)};
static const crd_model_variable pd_hyd_rows[] = {INPUT(s, "m", 0.5),
                                                 INPUT(sd, "m/s", 0),
                                                 PRESSURES_OUT,
                                                 KAPPA,
                                                 PARAMETER(a_p, 65e-4, "m2"),
                                                 VALVES,
                                                 COMMON(10)};

#define MODEL(unit_, what, part, start_, order, partial_)                                          \
    const crd_model crd_model_hc_##unit_ = {                                                       \
        .name = "hc_" #unit_,                                                                      \
        .description = "hydraulic crane" what,                                                     \
        .size = sizeof(crane),                                                                     \
        ROWS(unit_##_rows),                                                                        \
        .default_step = 1e-3,                                                                      \
        .default_stop = 10,                                                                        \
        .max_input_derivative = order,                                                             \
        .initialize = start_,                                                                      \
        .outputs = outputs_##part,                                                                 \
        .step = step_##part,                                                                       \
        .partial = partial_,                                                                       \
    };
MODEL(mono, "", whole, start_hydraulics, 0, NULL)
MODEL(mech, ", mechanics: force in, displacement out", mechanics, start_mechanics, 2, NULL)
MODEL(hyd, ", hydraulics: displacement in, force out", hydraulics, start_hydraulics, 2,
      partial_hydraulics)
MODEL(pd_mech, ", mechanics: pressures in, displacement out", mechanics_press, start_mechanics, 2,
      NULL)
MODEL(pd_hyd, ", hydraulics: displacement in, pressures out", hydraulics, start_hydraulics, 2, NULL)
