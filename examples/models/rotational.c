// The two-mass rotational oscillator of Glumac and Kovacic (2023), equations (40) to (44).
//
//   x' = A x + B u,  y = C x + D u
// Unit 1 takes the speed omega2 and gives the torque tau = ck (phi1 - phi2) + dk (omega1 - omega2),
// with feedthrough D = -dk; unit 2 takes the torque and gives the speed. Both are solved exactly
// for polynomial inputs, or by one explicit Euler step whose slope is frozen over the step (45).
#include "numerics.h"

typedef struct rotational {
    signal phi1, omega1, phi2, omega2, tau;
    double J1, J2, c1, c2, ck, d1, d2, dk;
    int64_t solver;
    double slope[LINEAR_N]; // of the last Euler step, its derivative of the state (46)
    bool stepped;
    propagator exact;
} rotational;

enum { EXACT = 1, EULER };
static const char* const solvers[] = {"exact", "euler", NULL};

typedef enum role { WHOLE, FIRST, SECOND } role;

typedef struct linear {
    int n, m;
    double A[LINEAR_N][LINEAR_N], B[LINEAR_N][LINEAR_M];
    signal *x[LINEAR_N], *u[LINEAR_M];
} linear;

static linear make_linear(rotational* r, role which)
{
    if (which == FIRST) {
        return (linear){.n = 3,
                        .m = 1,
                        .A = {{0, 1, 0},
                              {-(r->c1 + r->ck) / r->J1, -(r->d1 + r->dk) / r->J1, r->ck / r->J1},
                              {0, 0, 0}},
                        .B = {{0}, {r->dk / r->J1}, {1}},
                        .x = {&r->phi1, &r->omega1, &r->phi2},
                        .u = {&r->omega2}};
    }
    if (which == SECOND) {
        return (linear){.n = 2,
                        .m = 1,
                        .A = {{0, 1}, {-r->c2 / r->J2, -r->d2 / r->J2}},
                        .B = {{0}, {1 / r->J2}},
                        .x = {&r->phi2, &r->omega2},
                        .u = {&r->tau}};
    }
    return (linear){
        .n = 4,
        .A = {{0, 1, 0, 0},
              {-(r->c1 + r->ck) / r->J1, -(r->d1 + r->dk) / r->J1, r->ck / r->J1, r->dk / r->J1},
              {0, 0, 0, 1},
              {r->ck / r->J2, r->dk / r->J2, -(r->c2 + r->ck) / r->J2, -(r->d2 + r->dk) / r->J2}},
        .x = {&r->phi1, &r->omega1, &r->phi2, &r->omega2}};
}

/// out = A x + B u of values (order 0) or of derivatives (1, 2)
static void derivative(const linear* s, int order, double* out)
{
    for (int i = 0; i < s->n; i++) {
        out[i] = 0;
        for (int j = 0; j < s->n; j++) {
            out[i] += s->A[i][j] * (order ? s->x[j]->d[order - 1] : s->x[j]->v);
        }
        for (int j = 0; j < s->m; j++) {
            out[i] += s->B[i][j] * (order ? s->u[j]->d[order - 1] : s->u[j]->v);
        }
    }
}

static void advance(rotational* r, role which, double h)
{
    linear s = make_linear(r, which);
    if (r->solver == EULER) {
        derivative(&s, 0, r->slope);
        for (int i = 0; i < s.n; i++) {
            s.x[i]->v += h * r->slope[i];
        }
        r->stepped = true;
        return;
    }
    double x[LINEAR_N];
    for (int i = 0; i < s.n; i++) {
        x[i] = s.x[i]->v;
    }
    if (r->exact.h != h) { propagator_make(&r->exact, s.n, s.m, s.A, s.B, h); }
    propagator_apply(&r->exact, s.n, s.m, x, (const signal* const*)s.u);
    for (int i = 0; i < s.n; i++) {
        s.x[i]->v = x[i];
    }
}

static double torque(const rotational* r, double phi1, double omega1, double phi2, double omega2)
{
    return r->ck * (phi1 - phi2) + r->dk * (omega1 - omega2);
}

static void work_out(rotational* r, role which)
{
    const linear s = make_linear(r, which);
    double dx[LINEAR_N];
    const bool frozen = r->solver == EULER && r->stepped;
    for (int order = 0; order < CRD_MODEL_MAX_ORDER; order++) {
        derivative(&s, order, dx);
        for (int i = 0; i < s.n; i++) {
            s.x[i]->d[order] = !frozen ? dx[i] : order == 0 ? r->slope[i] : 0;
        }
    }
    if (which == SECOND) { return; }
    r->tau.v = torque(r, r->phi1.v, r->omega1.v, r->phi2.v, r->omega2.v);
    for (int i = 0; i < CRD_MODEL_MAX_ORDER; i++) {
        r->tau.d[i] = torque(r, r->phi1.d[i], r->omega1.d[i], r->phi2.d[i], r->omega2.d[i]);
    }
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    rotational* r = self;
    if (!(r->J1 >= 0 && r->J2 >= 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "the inertias J1 and J2 have to be > 0");
        return CRD_MODEL_ERROR;
    }
    r->exact.h = 0;
    r->stepped = false;
    return CRD_MODEL_OK;
}

#define ROLE(name, which)                                                                          \
    static crd_model_status step_##name(void* self, const crd_model_host* host, double t,          \
                                        double h, double* reached)                                 \
    {                                                                                              \
        (void)host;                                                                                \
        (void)t;                                                                                   \
        (void)reached;                                                                             \
        advance(self, which, h);                                                                   \
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

// tau is row 0 of rot_1, its input omega2 follows
static double partial_first(const void* self, int unknown, int known)
{
    return unknown == 0 && known == 1 ? -((const rotational*)self)->dk : 0;
}

#define SIGNAL(name, cause, unit_) ROW_SIGNAL(rotational, name, #name, cause, unit_)
#define INPUT(name, unit_, start_)                                                                 \
    {                                                                                              \
        SIGNAL(name, CRD_INPUT, unit_), .start = start_                                            \
    }
#define OUTPUT(name, unit_, on)                                                                    \
    {                                                                                              \
        SIGNAL(name, CRD_OUTPUT, unit_), .depends = on                                             \
    }
#define STATE(name, unit_, start_)                                                                 \
    {                                                                                              \
        SIGNAL(name, CRD_OUTPUT, unit_), .start = start_, .exact = true, .depends = ""             \
    }
#define PARAMETER(name, start_, unit_)                                                             \
    {                                                                                              \
        ROW_PARAMETER(rotational, name, #name, start_, unit_)                                      \
    }
#define MASS1 PARAMETER(J1, 10, "kg.m2"), PARAMETER(c1, 1, "N.m/rad"), PARAMETER(d1, 1, "N.m.s/rad")
#define MASS2 PARAMETER(J2, 10, "kg.m2"), PARAMETER(c2, 1, "N.m/rad"), PARAMETER(d2, 2, "N.m.s/rad")
#define COUPLING PARAMETER(ck, 1, "N.m/rad"), PARAMETER(dk, 2, "N.m.s/rad")
#define STATE1 STATE(phi1, "rad", 0.1), STATE(omega1, "rad/s", 0.1)
#define SOLVER                                                                                     \
    {                                                                                              \
        ROW_CHOICE(rotational, solver, "solver", 1, solvers)                                       \
    }

static const crd_model_variable mono_rows[] = {OUTPUT(tau, "N.m", ""),
                                               STATE(omega2, "rad/s", 0.1),
                                               STATE1,
                                               STATE(phi2, "rad", 0.2),
                                               MASS1,
                                               COUPLING,
                                               MASS2,
                                               SOLVER};
static const crd_model_variable first_rows[] = {OUTPUT(tau, "N.m", "omega2"),
                                                INPUT(omega2, "rad/s", 0.1),
                                                STATE1,
                                                STATE(phi2, "rad", 0.2),
                                                MASS1,
                                                COUPLING,
                                                SOLVER};
static const crd_model_variable second_rows[] = {STATE(omega2, "rad/s", 0.1), INPUT(tau, "N.m", 0),
                                                 STATE(phi2, "rad", 0.2), MASS2, SOLVER};

#define MODEL(symbol, what, part, rows, order, partial_)                                           \
    const crd_model crd_model_##symbol = {                                                         \
        .name = #symbol,                                                                           \
        .description = "two rotational masses" what,                                               \
        .size = sizeof(rotational),                                                                \
        ROWS(rows),                                                                                \
        .default_step = 0.01,                                                                      \
        .default_stop = 50,                                                                        \
        .max_input_derivative = order,                                                             \
        .max_output_derivative = 2,                                                                \
        .initialize = initialize,                                                                  \
        .outputs = outputs_##part,                                                                 \
        .step = step_##part,                                                                       \
        .partial = partial_,                                                                       \
    };
MODEL(rot_mono, "", whole, mono_rows, 0, NULL)
MODEL(rot_1, ", mass 1: speed in, torque out", first, first_rows, 2, partial_first)
MODEL(rot_2, ", mass 2: torque in, speed out", second, second_rows, 2, NULL)
