// The linear and the nonlinear oscillator of Rodriguez (2021), sections 5.4.1 and 5.4.2: two masses
// between three spring-dampers, whole and cut in the coupling variants of (5.12) to (5.21).
//
//   ground --(k1, c1)-- m1 --(kc, cc)-- m2 --(k2, c2)-- ground
//
// The coupling element pushes m2 with f and m1 with -f,
//   f = spring(kc, x1 - x2) + damper(cc, v1 - v2)                        (5.14), (5.21)
// Springs are linear or k sgn(e) sqrt|e| (5.22), dampers linear or c v |v| (5.23).
#include "numerics.h"

typedef struct oscillator {
    signal x1, v1, x2, v2, f; // states, inputs or outputs, as the role wants
    double x1_slope, v1_slope, x2_slope, v2_slope;
    double energy;
    double m1, m2, k1, kc, k2, c1, cc, c2;
    int64_t solver;
    int32_t substeps;
    int32_t springs, damping; // 1: square root, quadratic; 0: linear
    bool nonlinear;           // by initialize: a nonlinear table, whose first solver is rk4
    propagator exact;
} oscillator;

enum { EXACT = 1, SEMI_IMPLICIT };
static const char* const linear_solvers[] = {"exact", "semi_implicit", "rk4", NULL};
static const char* const nonlinear_solvers[] = {"rk4", "semi_implicit", NULL};

/// What is inside of a unit, and what comes from outside.
typedef enum role {
    WHOLE,         // both masses
    FIRST,         // mass 1 and the coupling; x2, v2 come in
    FIRST_FORCED,  // mass 1; f comes in
    SECOND,        // mass 2 and the coupling; x1, v1 come in
    SECOND_FORCED, // mass 2; f comes in
    SPRING,        // only the coupling; x1, v1, x2, v2 come in
} role;

static const struct {
    int states, inputs;
} shape[] = {[WHOLE] = {4, 0},  [FIRST] = {2, 2},         [FIRST_FORCED] = {2, 1},
             [SECOND] = {2, 2}, [SECOND_FORCED] = {2, 1}, [SPRING] = {0, 4}};

static double spring(const oscillator* o, double k, double e)
{
    return o->springs ? copysign(k * sqrt(fabs(e)), e) : k * e;
}

static double damper(const oscillator* o, double c, double v)
{
    return o->damping ? c * v * fabs(v) : c * v;
}

static double coupling(const oscillator* o, double e, double v)
{
    return spring(o, o->kc, e) + damper(o, o->cc, v);
}

/// dx of the states x (position, velocity of each mass) under the inputs u.
static void motion(const oscillator* o, role r, const double* x, const double* u, double* dx)
{
    const double own1 = r <= FIRST_FORCED ? spring(o, o->k1, x[0]) + damper(o, o->c1, x[1]) : 0;
    const double* m2 = r == WHOLE ? x + 2 : x;
    const double own2 =
        r == WHOLE || r >= SECOND ? spring(o, o->k2, m2[0]) + damper(o, o->c2, m2[1]) : 0;
    double f = 0;
    switch (r) {
    case WHOLE:
        f = coupling(o, x[0] - x[2], x[1] - x[3]);
        break;
    case FIRST:
        f = coupling(o, x[0] - u[0], x[1] - u[1]);
        break;
    case SECOND:
        f = coupling(o, u[0] - x[0], u[1] - x[1]);
        break;
    default:
        f = u[0];
        break;
    }
    if (r <= FIRST_FORCED) {
        dx[0] = x[1];
        dx[1] = (-own1 - f) / o->m1;
        dx += 2;
    }
    if (r == WHOLE || r >= SECOND) {
        dx[0] = m2[1];
        dx[1] = (f - own2) / o->m2;
    }
}

static void find_signals(oscillator* o, role r, signal** x, signal** u)
{
    const bool first = r == WHOLE || r == FIRST || r == FIRST_FORCED;
    signal* const both[4] = {&o->x1, &o->v1, &o->x2, &o->v2};
    for (int i = 0; i < shape[r].states; i++) {
        x[i] = both[first ? i : i + 2];
    }
    if (shape[r].inputs == 1) {
        u[0] = &o->f;
    } else if (r == SPRING) {
        for (int i = 0; i < 4; i++) {
            u[i] = both[i];
        }
    } else {
        for (int i = 0; i < shape[r].inputs; i++) {
            u[i] = both[first ? i + 2 : i];
        }
    }
}

typedef struct problem { // for rk4
    const oscillator* o;
    role r;
    signal* const* u;
} problem;

static void right_side(const void* self, double t, double tau, const double* x, double* dx)
{
    (void)t;
    const problem* p = self;
    double u[4] = {0};
    for (int i = 0; i < shape[p->r].inputs; i++) {
        u[i] = signal_at(p->u[i], tau);
    }
    motion(p->o, p->r, x, u, dx);
}

/// A and B by probing: the linear motion has no constant part.
static void make_exact(oscillator* o, role r, double h)
{
    double A[LINEAR_N][LINEAR_N] = {{0}}, B[LINEAR_N][LINEAR_M] = {{0}};
    const int n = shape[r].states, m = shape[r].inputs;
    for (int j = 0; j < n + m; j++) {
        double x[4] = {0}, u[2] = {0}, dx[4] = {0};
        *(j < n ? &x[j] : &u[j - n]) = 1;
        motion(o, r, x, u, dx);
        for (int i = 0; i < n; i++) {
            *(j < n ? &A[i][j] : &B[i][j - n]) = dx[i];
        }
    }
    propagator_make(&o->exact, n, m, A, B, h);
}

static void advance(oscillator* o, role r, double t, double h)
{
    const int n = shape[r].states, m = shape[r].inputs;
    signal *s[4], *u[4];
    double x[4] = {0}, dx[4] = {0}, held[4] = {0};
    find_signals(o, r, s, u);
    for (int i = 0; i < n; i++) {
        x[i] = s[i]->v;
    }
    if (o->solver == SEMI_IMPLICIT) { // inputs are those at the beginning of the step
        for (int i = 0; i < m; i++) {
            held[i] = u[i]->v;
            signal_hold(u[i]);
        }
    }
    if (n == 0) { return; }
    if (o->solver == EXACT && !o->nonlinear) {
        if (o->exact.h != h) { make_exact(o, r, h); }
        propagator_apply(&o->exact, n, m, x, (const signal* const*)u);
    } else if (o->solver == SEMI_IMPLICIT) {
        motion(o, r, x, held, dx);
        for (int i = 0; i < n; i += 2) {
            x[i + 1] += h * dx[i + 1];
            x[i] += h * x[i + 1];
        }
    } else {
        const problem p = {o, r, u};
        rk4(right_side, &p, t, h, o->substeps, x, n);
    }
    for (int i = 0; i < n; i++) {
        s[i]->v = x[i];
    }
}

static double potential(const oscillator* o, double k, double e)
{
    return o->springs ? 2.0 / 3.0 * k * fabs(e) * sqrt(fabs(e)) : 0.5 * k * e * e;
}

/// Derivatives are those of the linear motion, x' = A x + B u and x'' = A x' + B u'. The nonlinear
/// tables do not offer them.
static void work_out(oscillator* o, role r)
{
    const int n = shape[r].states, m = shape[r].inputs;
    signal *s[4], *u[4];
    double x[4], in[4] = {0}, rate[4] = {0}, dx[4], ddx[4];
    find_signals(o, r, s, u);
    for (int i = 0; i < n; i++) {
        x[i] = s[i]->v;
    }
    for (int i = 0; i < m; i++) {
        in[i] = u[i]->v;
        rate[i] = u[i]->d[0];
    }
    if (n > 0 && !o->nonlinear) {
        motion(o, r, x, in, dx);
        motion(o, r, dx, rate, ddx);
        for (int i = 0; i < n; i++) {
            s[i]->d[0] = dx[i];
            s[i]->d[1] = ddx[i];
        }
    }
    if (r == WHOLE || r == FIRST || r == SPRING) {
        o->f.v = coupling(o, o->x1.v - o->x2.v, o->v1.v - o->v2.v);
        for (int i = 0; i < CRD_MODEL_MAX_ORDER && !o->nonlinear; i++) {
            o->f.d[i] = coupling(o, o->x1.d[i] - o->x2.d[i], o->v1.d[i] - o->v2.d[i]);
        }
    }
    o->energy = 0;
    if (r <= FIRST_FORCED) {
        o->energy += 0.5 * o->m1 * o->v1.v * o->v1.v + potential(o, o->k1, o->x1.v);
    }
    if (r == WHOLE || r == SECOND || r == SECOND_FORCED) {
        o->energy += 0.5 * o->m2 * o->v2.v * o->v2.v + potential(o, o->k2, o->x2.v);
    }
    if (r == WHOLE || r == SPRING) { o->energy += potential(o, o->kc, o->x1.v - o->x2.v); }
}

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    oscillator* o = self;
    if (!(o->m1 >= 0 && o->m2 >= 0)) { // a unit without one of them has 0 there
        host->log(host->user, CRD_MODEL_ERROR, "the masses m1 and m2 have to be > 0");
        return CRD_MODEL_ERROR;
    }
    o->exact.h = 0;
    return CRD_MODEL_OK;
}

static crd_model_status initialize_nonlinear(void* self, const crd_model_host* host, double t)
{
    ((oscillator*)self)->nonlinear = true;
    return initialize(self, host, t);
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
ROLE(first_forced, FIRST_FORCED)
ROLE(second, SECOND)
ROLE(second_forced, SECOND_FORCED)
ROLE(spring, SPRING)

// ---- as a differential equation ----------------------------------------------------------------

static double* slope_of(oscillator* o, const signal* state)
{
    return state == &o->x1   ? &o->x1_slope
           : state == &o->v1 ? &o->v1_slope
           : state == &o->x2 ? &o->x2_slope
                             : &o->v2_slope;
}

static void differentiate(oscillator* o, role r)
{
    signal *s[4], *u[4];
    double x[4] = {0}, in[4] = {0}, dx[4] = {0};
    find_signals(o, r, s, u);
    for (int i = 0; i < shape[r].states; i++) {
        x[i] = s[i]->v;
    }
    for (int i = 0; i < shape[r].inputs; i++) {
        in[i] = u[i]->v;
    }
    motion(o, r, x, in, dx);
    for (int i = 0; i < shape[r].states; i++) {
        *slope_of(o, s[i]) = dx[i];
    }
}

#define DERIVATIVES(name, which)                                                                   \
    static crd_model_status derivatives_##name(void* self, double t)                               \
    {                                                                                              \
        (void)t;                                                                                   \
        differentiate(self, which);                                                                \
        return CRD_MODEL_OK;                                                                       \
    }
DERIVATIVES(whole, WHOLE)
DERIVATIVES(first, FIRST)
DERIVATIVES(first_forced, FIRST_FORCED)
DERIVATIVES(second, SECOND)
DERIVATIVES(second_forced, SECOND_FORCED)

/// Partial derivatives of the linear tables. What is linear is probed: all states and inputs 0 but
/// the known one.
static double linear_partial(const oscillator* o, role r, const crd_model_variable* rows,
                             int unknown, int known)
{
    oscillator one = *o;
    signal* const all[] = {&one.x1, &one.v1, &one.x2, &one.v2, &one.f};
    const size_t of = rows[unknown].offset, by = rows[known].offset;
    for (int i = 0; i < 5; i++) {
        *all[i] = (signal){.v = (size_t)((char*)&all[i]->v - (char*)&one) == by ? 1 : 0};
    }
    if (of != offsetof(oscillator, energy)) {
        if (shape[r].states) { differentiate(&one, r); }
        if (shape[r].inputs != 1) {
            one.f.v = coupling(&one, one.x1.v - one.x2.v, one.v1.v - one.v2.v);
        }
        return *(const double*)((const char*)&one + of);
    }
    const bool first = r <= FIRST_FORCED, second = r == WHOLE || r == SECOND || r == SECOND_FORCED;
    const double stretch = r == WHOLE || r == SPRING ? o->kc * (o->x1.v - o->x2.v) : 0;
    return by == offsetof(oscillator, x1.v)   ? (first ? o->k1 * o->x1.v : 0) + stretch
           : by == offsetof(oscillator, v1.v) ? (first ? o->m1 * o->v1.v : 0)
           : by == offsetof(oscillator, x2.v) ? (second ? o->k2 * o->x2.v : 0) - stretch
           : by == offsetof(oscillator, v2.v) ? (second ? o->m2 * o->v2.v : 0)
                                              : 0;
}

// ---- tables ------------------------------------------------------------------------------------

/// df / d(x1 - x2) and df / d(v1 - v2)
static double stiffness(const oscillator* o)
{
    const double e = fabs(o->x1.v - o->x2.v);
    return !o->springs ? o->kc : e > 0 ? 0.5 * o->kc / sqrt(e) : 0;
}

static double resistance(const oscillator* o)
{
    return !o->damping ? o->cc : 2 * o->cc * fabs(o->v1.v - o->v2.v);
}

// f is row 0 of the tables that have it as an output, and its inputs follow
static double partial_first(const void* self, int unknown, int known)
{
    return unknown != 0 ? 0 : known == 1 ? -stiffness(self) : known == 2 ? -resistance(self) : 0;
}

static double partial_spring(const void* self, int unknown, int known)
{
    if (unknown != 0 || known < 1 || known > 4) { return 0; }
    const double gain = known % 2 ? stiffness(self) : resistance(self);
    return known <= 2 ? gain : -gain;
}

#define SIGNAL(name, cause, unit_) ROW_SIGNAL(oscillator, name, #name, cause, unit_)
#define INPUT(name, unit_, start_)                                                                 \
    {                                                                                              \
        SIGNAL(name, CRD_INPUT, unit_), .start = start_                                            \
    }
#define STATE(name, unit_, start_)                                                                 \
    {                                                                                              \
        SIGNAL(name, CRD_OUTPUT, unit_), .start = start_, .exact = true, .depends = ""             \
    }
#define FORCE(on)                                                                                  \
    {                                                                                              \
        SIGNAL(f, CRD_OUTPUT, "N"), .depends = on, .description = "coupling force on m2"           \
    }
#define ENERGY(on)                                                                                 \
    {                                                                                              \
        .name = "energy", .type = CRD_FLOAT64, .causality = CRD_OUTPUT,                            \
        .variability = CRD_CONTINUOUS, .offset = offsetof(oscillator, energy), .unit = "J",        \
        .depends = on, .description = "kinetic and potential energy of what is in this unit"       \
    }
#define PARAMETER(name, start_, unit_)                                                             \
    {                                                                                              \
        ROW_PARAMETER(oscillator, name, #name, start_, unit_)                                      \
    }

#define LINEAR_SOLVER                                                                              \
    {ROW_CHOICE(oscillator, solver, "solver", 1, linear_solvers)},                                 \
    {                                                                                              \
        ROW_COUNT(oscillator, substeps, "substeps", 10, 1, 1000000),                               \
            .description = "inner steps of rk4"                                                    \
    }
#define NONLINEAR_SOLVER                                                                           \
    {ROW_CHOICE(oscillator, solver, "solver", 1, nonlinear_solvers)},                              \
        {ROW_COUNT(oscillator, substeps, "substeps", 10, 1, 1000000),                              \
         .description = "inner steps of rk4"},                                                     \
        {ROW_COUNT(oscillator, springs, "springs", 1, 0, 1),                                       \
         .description = "1: square-root springs, 0: linear springs"},                              \
    {                                                                                              \
        ROW_COUNT(oscillator, damping, "damping", 0, 0, 1),                                        \
            .description = "1: quadratic dampers, 0: linear dampers"                               \
    }

#define STATE1 STATE(x1, "m", 0), STATE(v1, "m/s", 100)
#define STATE2 STATE(x2, "m", 0), STATE(v2, "m/s", -100)
#define INPUT1 INPUT(x1, "m", 0), INPUT(v1, "m/s", 100)
#define INPUT2 INPUT(x2, "m", 0), INPUT(v2, "m/s", -100)
#define MASS1(ku, cu) PARAMETER(m1, 1, "kg"), PARAMETER(k1, 10, ku), PARAMETER(c1, 0, cu)
#define MASS2(ku, cu) PARAMETER(m2, 1, "kg"), PARAMETER(k2, 1000, ku), PARAMETER(c2, 0, cu)
#define COUPLING(ku, cu) PARAMETER(kc, 100, ku), PARAMETER(cc, 0, cu)

#define SLOPES(mass, on)                                                                           \
    {ROW_DERIVATIVE(oscillator, x##mass##_slope, "x" #mass, "m/s"), .depends = "v" #mass},         \
    {                                                                                              \
        ROW_DERIVATIVE(oscillator, v##mass##_slope, "v" #mass, "m/s2"), .depends = on              \
    }

#define MODEL(family, unit_, what, part, order_, initialize_, partial_, ...)                       \
    const crd_model crd_model_##family##_##unit_ = {.name = #family "_" #unit_,                    \
                                                    .description = what,                           \
                                                    .size = sizeof(oscillator),                    \
                                                    ROWS(family##_##unit_##_rows),                 \
                                                    .default_step = 1e-3,                          \
                                                    .default_stop = 10,                            \
                                                    .max_input_derivative = part##_inputs ? 2 : 0, \
                                                    .max_output_derivative = order_,               \
                                                    .initialize = initialize_,                     \
                                                    .outputs = outputs_##part,                     \
                                                    .step = step_##part,                           \
                                                    .partial = partial_,                           \
                                                    __VA_ARGS__};

enum {
    whole_inputs = 0,
    first_inputs = 2,
    first_forced_inputs = 1,
    second_inputs = 2,
    second_forced_inputs = 1,
    spring_inputs = 4,
};

#define WHAT_MONO " oscillator"
#define WHAT_FD1 " oscillator, mass 1: displacement in, force out"
#define WHAT_FD2 " oscillator, mass 2: force in, displacement out"
#define WHAT_DD1 " oscillator, mass 1: displacement in, displacement out"
#define WHAT_DD2 " oscillator, mass 2: displacement in, displacement out"
#define WHAT_FF1 " oscillator, mass 1: force in, displacement out"
#define WHAT_FF2 " oscillator, mass 2: force in, displacement out"
#define WHAT_SPRING " oscillator, coupling: displacements in, force out"

// ---- linear: differential equations as well ----------------------------------------------------

#define M1 MASS1("N/m", "N.s/m")
#define M2 MASS2("N/m", "N.s/m")
#define KC COUPLING("N/m", "N.s/m")
static const crd_model_variable lo_mono_rows[] = {FORCE("x1 v1 x2 v2"),
                                                  STATE1,
                                                  STATE2,
                                                  ENERGY("x1 v1 x2 v2"),
                                                  M1,
                                                  KC,
                                                  M2,
                                                  LINEAR_SOLVER,
                                                  SLOPES(1, "x1 v1 x2 v2"),
                                                  SLOPES(2, "x1 v1 x2 v2")};
static const crd_model_variable lo_fd1_rows[] = {
    FORCE("x2 v2 x1 v1"),    INPUT2, STATE1, ENERGY("x1 v1"), M1, KC, LINEAR_SOLVER,
    SLOPES(1, "x2 v2 x1 v1")};
static const crd_model_variable lo_fd2_rows[] = {
    INPUT(f, "N", 0), STATE2, ENERGY("x2 v2"), M2, LINEAR_SOLVER, SLOPES(2, "f x2 v2")};
static const crd_model_variable lo_dd1_rows[] = {INPUT2, STATE1,        ENERGY("x1 v1"),         M1,
                                                 KC,     LINEAR_SOLVER, SLOPES(1, "x2 v2 x1 v1")};
static const crd_model_variable lo_dd2_rows[] = {INPUT1, STATE2,        ENERGY("x2 v2"),         KC,
                                                 M2,     LINEAR_SOLVER, SLOPES(2, "x1 v1 x2 v2")};
static const crd_model_variable lo_ff1_rows[] = {
    INPUT(f, "N", 0), STATE1, ENERGY("x1 v1"), M1, LINEAR_SOLVER, SLOPES(1, "f x1 v1")};
static const crd_model_variable lo_ff2_rows[] = {
    INPUT(f, "N", 0), STATE2, ENERGY("x2 v2"), M2, LINEAR_SOLVER, SLOPES(2, "f x2 v2")};
static const crd_model_variable lo_ffspring_rows[] = {FORCE("x1 v1 x2 v2"), INPUT1, INPUT2,
                                                      ENERGY("x1 x2"),      KC,     LINEAR_SOLVER};

#define LINEAR(unit_, what, part, which, ...)                                                      \
    static double partial_lo_##unit_(const void* self, int unknown, int known)                     \
    {                                                                                              \
        return linear_partial(self, which, lo_##unit_##_rows, unknown, known);                     \
    }                                                                                              \
    MODEL(lo, unit_, "linear" what, part, 2, initialize, partial_lo_##unit_, __VA_ARGS__)
LINEAR(mono, WHAT_MONO, whole, WHOLE, .derivatives = derivatives_whole)
LINEAR(fd1, WHAT_FD1, first, FIRST, .derivatives = derivatives_first)
LINEAR(fd2, WHAT_FD2, second_forced, SECOND_FORCED, .derivatives = derivatives_second_forced)
LINEAR(dd1, WHAT_DD1, first, FIRST, .derivatives = derivatives_first)
LINEAR(dd2, WHAT_DD2, second, SECOND, .derivatives = derivatives_second)
LINEAR(ff1, WHAT_FF1, first_forced, FIRST_FORCED, .derivatives = derivatives_first_forced)
LINEAR(ff2, WHAT_FF2, second_forced, SECOND_FORCED, .derivatives = derivatives_second_forced)
LINEAR(ffspring, WHAT_SPRING, spring, SPRING, .derivatives = NULL)

// ---- nonlinear ---------------------------------------------------------------------------------

#define P1 MASS1(NULL, NULL)
#define P2 MASS2(NULL, NULL)
#define PC COUPLING(NULL, NULL)
static const crd_model_variable nlo_mono_rows[] = {FORCE(""), STATE1, STATE2, ENERGY(""),
                                                   P1,        PC,     P2,     NONLINEAR_SOLVER};
static const crd_model_variable nlo_fd1_rows[] = {
    FORCE("x2 v2"), INPUT2, STATE1, ENERGY(""), P1, PC, NONLINEAR_SOLVER};
static const crd_model_variable nlo_fd2_rows[] = {INPUT(f, "N", 0), STATE2, ENERGY(""), P2,
                                                  NONLINEAR_SOLVER};
static const crd_model_variable nlo_dd1_rows[] = {INPUT2, STATE1, ENERGY(""),
                                                  P1,     PC,     NONLINEAR_SOLVER};
static const crd_model_variable nlo_dd2_rows[] = {INPUT1, STATE2, ENERGY(""),
                                                  PC,     P2,     NONLINEAR_SOLVER};
static const crd_model_variable nlo_ff1_rows[] = {INPUT(f, "N", 0), STATE1, ENERGY(""), P1,
                                                  NONLINEAR_SOLVER};
static const crd_model_variable nlo_ff2_rows[] = {INPUT(f, "N", 0), STATE2, ENERGY(""), P2,
                                                  NONLINEAR_SOLVER};
static const crd_model_variable nlo_ffspring_rows[] = {
    FORCE("x1 v1 x2 v2"), INPUT1, INPUT2, ENERGY("x1 x2"), PC, NONLINEAR_SOLVER};

#define NONLINEAR(unit_, what, part, partial_)                                                     \
    MODEL(nlo, unit_, "nonlinear" what, part, 0, initialize_nonlinear, partial_, )
NONLINEAR(mono, WHAT_MONO, whole, NULL)
NONLINEAR(fd1, WHAT_FD1, first, partial_first)
NONLINEAR(fd2, WHAT_FD2, second_forced, NULL)
NONLINEAR(dd1, WHAT_DD1, first, NULL)
NONLINEAR(dd2, WHAT_DD2, second, NULL)
NONLINEAR(ff1, WHAT_FF1, first_forced, NULL)
NONLINEAR(ff2, WHAT_FF2, second_forced, NULL)
NONLINEAR(ffspring, WHAT_SPRING, spring, partial_spring)
