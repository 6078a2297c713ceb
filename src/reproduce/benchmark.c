#include "reproduce/benchmark.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum { STATES = 4, SIGNALS = 4, FORCES = 2 };
enum { ALL = 2 * STATES };

// Unit 1 has the coupling element and gives the force f that acts on unit 2; unit 2 gives its
// motion y: displacements, then velocities.
struct crdi_benchmark {
    const char* name;
    double c;            // damping
    bool roots, squares; // nonlinear oscillator: springs k sqrt|e|, dampers c v |v|
    int n1, n2, forces;  // states; the motion has twice as many signals as forces
    double start[ALL];   // of unit 1, then unit 2
    void (*slope1)(const crdi_benchmark* s, double t, const double* x, const double* y, double* dx);
    void (*slope2)(const crdi_benchmark* s, const double* x, const double* f, double* dx);
    void (*force)(const crdi_benchmark* s, const double* x, const double* y, double* f);
    void (*motion)(const double* x, double* y);
    void (*positions)(const double* x1, const double* x2, double* p);
    double (*energy)(const crdi_benchmark* s, const double* x1, const double* x2);
    bool explicit1; // unit 1 is of first order: explicit Euler
    double fine;    // step of RK4 for the reference and for accurate units, 0: linear, 1e-4
};

// ---- oscillators: two masses of 1 kg between springs of 10, 100, 1000 N/m -----------------------

static double spring(const crdi_benchmark* s, double k, double e)
{
    return s->roots ? copysign(k * sqrt(fabs(e)), e) : k * e;
}

static double damper(const crdi_benchmark* s, double v)
{
    return s->squares ? s->c * v * fabs(v) : s->c * v;
}

static void oscillator_force(const crdi_benchmark* s, const double* x, const double* y, double* f)
{
    f[0] = spring(s, 100, x[0] - y[0]) + damper(s, x[1] - y[1]);
}

static void oscillator_slope1(const crdi_benchmark* s, double t, const double* x, const double* y,
                              double* dx)
{
    (void)t;
    double f;
    oscillator_force(s, x, y, &f);
    dx[0] = x[1];
    dx[1] = -spring(s, 10, x[0]) - damper(s, x[1]) - f;
}

static void oscillator_slope2(const crdi_benchmark* s, const double* x, const double* f, double* dx)
{
    dx[0] = x[1];
    dx[1] = f[0] - spring(s, 1000, x[0]) - damper(s, x[1]);
}

static void oscillator_motion(const double* x, double* y)
{
    y[0] = x[0];
    y[1] = x[1];
}

static void oscillator_positions(const double* x1, const double* x2, double* p)
{
    p[0] = x1[0];
    p[1] = x2[0];
}

static double oscillator_energy(const crdi_benchmark* s, const double* x1, const double* x2)
{
    const double e[3] = {x1[0], x1[0] - x2[0], x2[0]}, k[3] = {10, 100, 1000};
    double sum = 0.5 * (x1[1] * x1[1] + x2[1] * x2[1]);
    for (int i = 0; i < 3; i++) {
        sum += s->roots ? 2.0 / 3 * k[i] * pow(fabs(e[i]), 1.5) : 0.5 * k[i] * e[i] * e[i];
    }
    return sum;
}

// ---- pendula: angles from the downward vertical, a spring of 6 N/m between the tips -------------

#define GRAVITY 9.81
#define LENGTH1 2.5
#define LENGTH2 3.5
#define MASS1 1.0
#define MASS2 2.0
#define PIVOT2 7.0 // x of the second one
#define LINK 6.0

static void tip(double pivot, double l, const double* x, double* p) // x, y, vx, vy
{
    p[0] = pivot + l * sin(x[0]);
    p[1] = -l * cos(x[0]);
    p[2] = l * cos(x[0]) * x[1];
    p[3] = l * sin(x[0]) * x[1];
}

static void pendula_force(const crdi_benchmark* s, const double* x, const double* y, double* f)
{
    (void)s;
    double p[4];
    tip(0, LENGTH1, x, p);
    f[0] = LINK * (p[0] - y[0]);
    f[1] = LINK * (p[1] - y[1]);
}

static void pendula_slope1(const crdi_benchmark* s, double t, const double* x, const double* y,
                           double* dx)
{
    (void)t;
    double f[FORCES];
    pendula_force(s, x, y, f);
    dx[0] = x[1];
    dx[1] =
        (-f[0] * cos(x[0]) - f[1] * sin(x[0])) / (MASS1 * LENGTH1) - GRAVITY / LENGTH1 * sin(x[0]);
}

static void pendula_slope2(const crdi_benchmark* s, const double* x, const double* f, double* dx)
{
    (void)s;
    dx[0] = x[1];
    dx[1] =
        (f[0] * cos(x[0]) + f[1] * sin(x[0])) / (MASS2 * LENGTH2) - GRAVITY / LENGTH2 * sin(x[0]);
}

static void pendula_motion(const double* x, double* y)
{
    tip(PIVOT2, LENGTH2, x, y);
}

static void pendula_positions(const double* x1, const double* x2, double* p)
{
    p[0] = LENGTH1 * sin(x1[0]);
    p[1] = PIVOT2 + LENGTH2 * sin(x2[0]);
}

static double pendula_energy(const crdi_benchmark* s, const double* x1, const double* x2)
{
    double p[4], q[4], f[FORCES];
    tip(0, LENGTH1, x1, p);
    tip(PIVOT2, LENGTH2, x2, q);
    pendula_force(s, x1, q, f);
    return MASS1 * (0.5 * (p[2] * p[2] + p[3] * p[3]) + GRAVITY * p[1]) +
           MASS2 * (0.5 * (q[2] * q[2] + q[3] * q[3]) + GRAVITY * q[1]) +
           0.5 * (f[0] * f[0] + f[1] * f[1]) / LINK;
}

// ---- hydraulic crane: unit 1 is the hydraulics (p1, p2), unit 2 the links (angles, rates) -------

#define BOOM 1.0 // L
#define ROPE 0.5 // Lh
#define LINK1 200.0
#define LINK2 250.0
#define LOAD 100.0
#define PISTON 65e-4
#define FRICTION 1e5
#define PUMP 7.6e6
#define TANK 1e5

static double crane_spool(double t)
{
    const double ramp = t < 1 ? t : t < 8 ? 1 : t < 9 ? 9 - t : 0;
    return 0.45434558959805127 * (1 - 0.1 * ramp * sin(4 * 3.14159265358979323846 * t)); // 2 Hz
}

static double crane_length(double angle)
{
    return BOOM * sqrt(1 - 0.5 * sqrt(3.0) * cos(angle));
}

static double crane_lever(double angle) // d length / d angle
{
    return sqrt(3.0) * BOOM * BOOM * sin(angle) / (4 * crane_length(angle));
}

static void crane_force(const crdi_benchmark* s, const double* x, const double* y, double* f)
{
    (void)s;
    f[0] = PISTON * (x[1] - x[0]) - FRICTION * y[1];
}

static double flow(double area, double dp)
{
    return dp > 0 ? area * 0.67 * sqrt(2 * dp / 850) : 0;
}

static double bulk(double p)
{
    const double a = 6.53e-10, b = -1.19e-18;
    return (1 + a * p + b * p * p) / (a + 2 * b * p);
}

static void crane_slope1(const crdi_benchmark* s, double t, const double* x, const double* y,
                         double* dx)
{
    (void)s;
    const double kappa = crane_spool(t), in = 5e-4 * kappa, out = 5e-4 * (1 - kappa);
    const double l1 = 0.221 + 0.5 - y[0], l2 = 0.221 + y[0] - 0.5;
    const double q1 = PISTON * y[1] + flow(in, PUMP - x[0]) - flow(out, x[0] - TANK);
    const double q2 = -PISTON * y[1] + flow(out, PUMP - x[1]) - flow(in, x[1] - TANK);
    dx[0] = bulk(x[0]) / (PISTON * l1) * q1;
    dx[1] = bulk(x[1]) / (PISTON * l2) * q2;
}

// x: angle 1, rate 1, angle 2, rate 2
static void crane_slope2(const crdi_benchmark* s, const double* x, const double* f, double* dx)
{
    (void)s;
    const double between = x[0] - x[2];
    const double M11 = BOOM * BOOM * (LINK1 / 3 + LINK2 + LOAD);
    const double M12 = BOOM * ROPE * LOAD * cos(between), M22 = ROPE * ROPE * LOAD;
    const double turn = BOOM * ROPE * LOAD * sin(between);
    const double q1 = crane_lever(x[0]) * f[0] - turn * x[3] * x[3] -
                      (0.5 * LINK1 + LINK2 + LOAD) * GRAVITY * BOOM * cos(x[0]);
    const double q2 = turn * x[1] * x[1] - LOAD * GRAVITY * ROPE * cos(x[2]);
    const double det = M11 * M22 - M12 * M12;
    dx[0] = x[1];
    dx[1] = (M22 * q1 - M12 * q2) / det;
    dx[2] = x[3];
    dx[3] = (M11 * q2 - M12 * q1) / det;
}

static void crane_motion(const double* x, double* y)
{
    y[0] = crane_length(x[0]);
    y[1] = crane_lever(x[0]) * x[1];
}

static void crane_positions(const double* x1, const double* x2, double* p)
{
    (void)x1;
    p[0] = p[1] = crane_length(x2[0]);
}

static double crane_energy(const crdi_benchmark* s, const double* x1, const double* x2)
{
    (void)s;
    (void)x1;
    const double v1 = BOOM * x2[1];
    const double vx = -BOOM * sin(x2[0]) * x2[1] - ROPE * sin(x2[2]) * x2[3];
    const double vy = BOOM * cos(x2[0]) * x2[1] + ROPE * cos(x2[2]) * x2[3];
    return (LINK1 / 6 + LINK2 / 2) * v1 * v1 + 0.5 * LOAD * (vx * vx + vy * vy) +
           GRAVITY * ((0.5 * LINK1 + LINK2 + LOAD) * BOOM * sin(x2[0]) + LOAD * ROPE * sin(x2[2]));
}

// ---- the systems -------------------------------------------------------------------------------

#define OSCILLATOR                                                                                 \
    .n1 = 2, .n2 = 2, .forces = 1, .start = {0, 100, 0, -100}, .slope1 = oscillator_slope1,        \
    .slope2 = oscillator_slope2, .force = oscillator_force, .motion = oscillator_motion,           \
    .positions = oscillator_positions, .energy = oscillator_energy

static const crdi_benchmark systems[] = {
    {"LO1", OSCILLATOR},
    {"LO2", .c = 0.1, OSCILLATOR},
    {"NLO1", .roots = true, .fine = 1e-4, OSCILLATOR},
    {"NLO2", .c = 0.001, .squares = true, .fine = 1e-4, OSCILLATOR},
    {"PEN", .n1 = 2, .n2 = 2, .forces = 2,
     .start = {0.78539816339744831, 0, 0.17453292519943295, 0}, // pi/4, pi/18
     .slope1 = pendula_slope1, .slope2 = pendula_slope2, .force = pendula_force,
     .motion = pendula_motion, .positions = pendula_positions, .energy = pendula_energy,
     .fine = 5e-4},
    {"HC", .n1 = 2, .n2 = 4, .forces = 1,
     // where the flows through both valves are equal; pi/6 and the rope vertical
     .start = {3170846.1538461540, 4529153.8461538460, 0.52359877559829882, 0, 4.7123889803846897,
               0},
     .slope1 = crane_slope1, .slope2 = crane_slope2, .force = crane_force, .motion = crane_motion,
     .positions = crane_positions, .energy = crane_energy, .explicit1 = true, .fine = 2.5e-4},
};

// "LO1", "LO2" (linear oscillator), "NLO1", "NLO2" (nonlinear), "PEN" (pendula), "HC" (hydraulic
// crane); NULL: there is no such system.
static const crdi_benchmark* find_benchmark(const char* name)
{
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        if (strcmp(systems[i].name, name) == 0) { return &systems[i]; }
    }
    return NULL;
}

crdi_benchmark_options crdi_benchmark_defaults(const char* system, double step)
{
    return (crdi_benchmark_options){.system = find_benchmark(system),
                                    .step1 = step,
                                    .step2 = step,
                                    .bond = crd_bond_defaults(),
                                    .until = 10};
}

// ---- the reference: the system without a cut ---------------------------------------------------

static void whole_system(const crdi_benchmark* s, double t, const double* x, double* dx)
{
    double y[SIGNALS], f[FORCES];
    s->motion(x + s->n1, y);
    s->force(s, x, y, f);
    s->slope1(s, t, x, y, dx);
    s->slope2(s, x + s->n1, f, dx + s->n1);
}

static void series_step(const crdi_benchmark* s, double* x, double h)
{
    double term[ALL], next[ALL];
    memcpy(term, x, sizeof term);
    for (int j = 1; j <= 24; j++) { // linear: derivatives by repeated application
        whole_system(s, 0, term, next);
        for (int i = 0; i < s->n1 + s->n2; i++) {
            term[i] = next[i] * h / j;
            x[i] += term[i];
        }
    }
}

static void rk4_step(const crdi_benchmark* s, double t, double* x, double h)
{
    double k[4][ALL], y[ALL];
    static const double part[4] = {0, 0.5, 0.5, 1};
    const int n = s->n1 + s->n2;
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < n; i++) {
            y[i] = j == 0 ? x[i] : x[i] + part[j] * h * k[j - 1][i];
        }
        whole_system(s, t + part[j] * h, y, k[j]);
    }
    for (int i = 0; i < n; i++) {
        x[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}

// Springs k sqrt|e| have a kink at e = 0, where steps become small in proportion to the time that
// is left to it or has gone since. (That of c v |v| at v = 0 costs 1e-9 m/s with steps of 0.1 ms.)
static double kink_step(const crdi_benchmark* s, const double* x)
{
    const double e[3] = {x[0], x[0] - x[2], x[2]}, de[3] = {x[1], x[1] - x[3], x[3]};
    double h = s->fine;
    for (int i = 0; i < 3; i++) {
        h = fmin(h, 0.1 * fabs(e[i]) / (fabs(de[i]) + 1e-300));
    }
    return fmax(h, 1e-8);
}

static void reference_step(const crdi_benchmark* s, double t, double* x, double H)
{
    if (s->fine == 0) {
        series_step(s, x, H);
    } else if (s->roots) {
        for (double done = 0; done < H;) {
            double h = kink_step(s, x);
            if (done + h > H - 1e-12) { h = H - done; }
            rk4_step(s, t + done, x, h);
            done = h == H - done ? H : done + h;
        }
    } else {
        const int count = (int)ceil(H / s->fine - 1e-9);
        for (int i = 0; i < count; i++) {
            rk4_step(s, t + i * (H / count), x, H / count);
        }
    }
}

// ---- co-simulation -----------------------------------------------------------------------------

// Semi-implicit Euler: velocities, then positions with the new velocities.
static void micro_step(const crdi_benchmark* s, bool second, double t, double* x, const double* u,
                       double h)
{
    double dx[STATES];
    if (second) {
        s->slope2(s, x, u, dx);
    } else {
        s->slope1(s, t, x, u, dx);
    }
    const int n = second ? s->n2 : s->n1;
    for (int i = 0; i < n; i += 2) {
        if (!second && s->explicit1) {
            x[i] += h * dx[i];
            x[i + 1] += h * dx[i + 1];
        } else {
            x[i + 1] += h * dx[i + 1];
            x[i] += h * x[i + 1];
        }
    }
}

// The same unit with constant inputs, solved to where its own error does not count.
static void accurate_step(const crdi_benchmark* s, bool second, double t, double* x,
                          const double* u, double h)
{
    const double fine = s->fine > 0 ? s->fine : 1e-4;
    const int count = (int)ceil(h / fine - 1e-9), n = second ? s->n2 : s->n1;
    const double part[4] = {0, 0.5, 0.5, 1}, dt = h / count;
    for (int step = 0; step < count; step++) {
        double k[4][STATES], y[STATES];
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < n; i++) {
                y[i] = j == 0 ? x[i] : x[i] + part[j] * dt * k[j - 1][i];
            }
            if (second) {
                s->slope2(s, y, u, k[j]);
            } else {
                s->slope1(s, t + (step + part[j]) * dt, y, u, k[j]);
            }
        }
        for (int i = 0; i < n; i++) {
            x[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
        }
    }
}

typedef struct cosimulation {
    const crdi_benchmark_options* o;
    double H;
    double x1[STATES], x2[STATES];
    double y[SIGNALS], y_last[SIGNALS]; // motion of unit 2, now and a step ago
    double z[SIGNALS], z_last[SIGNALS]; // motion of unit 1, for a cut between motions
    double f[FORCES], f_last[FORCES];   // force of unit 1, without the correction
    double seen[SIGNALS];               // the motion that unit 1 was last given
    crd_bond_state bond;
    crd_bond_axis axes[FORCES]; // with the corrections
    crd_history motion[SIGNALS], force[FORCES];
    int64_t k;
} cosimulation;

// Input at a part of the step, by holding it or along a line.
static void input_at(const cosimulation* c, int n, const double* now, const double* last,
                     double part, double* u)
{
    for (int i = 0; i < n; i++) {
        u[i] = now[i] + (c->o->linear && c->k > 0 ? part * (now[i] - last[i]) : 0);
    }
}

static void step_both_accurately(cosimulation* c, double t)
{
    const crdi_benchmark* s = c->o->system;
    double u[SIGNALS], f[FORCES];
    for (int i = 0; i < 2 * s->forces; i++) {
        u[i] = crd_predict_mean(c->o->predictor, &c->motion[i], c->H);
    }
    for (int i = 0; i < s->forces; i++) {
        f[i] = crd_predict_mean(c->o->predictor, &c->force[i], c->H) + c->axes[i].B;
    }
    memcpy(c->seen, u, sizeof u);
    accurate_step(s, false, t, c->x1, u, c->H);
    accurate_step(s, true, t, c->x2, f, c->H);
}

static void remember_outputs(cosimulation* c)
{
    const int n = c->o->system->forces;
    for (int i = 0; i < 2 * n; i++) {
        crd_history_push(&c->motion[i], c->H, &(crd_sample){.y = {c->y[i]}});
    }
    for (int i = 0; i < n; i++) {
        crd_history_push(&c->force[i], c->H, &(crd_sample){.y = {c->f[i]}});
    }
}

static void step_first(cosimulation* c, double t)
{
    const crdi_benchmark* s = c->o->system;
    const int count = (int)lround(c->H / c->o->step1);
    for (int j = 0; j < count; j++) {
        double u[SIGNALS];
        input_at(c, 2 * s->forces, c->y, c->y_last, (double)j / count, u);
        memcpy(c->seen, u, sizeof u);
        micro_step(s, false, t + j * c->o->step1, c->x1, u, c->o->step1);
    }
}

static void step_second(cosimulation* c, double t)
{
    const crdi_benchmark* s = c->o->system;
    const int count = (int)lround(c->H / c->o->step2);
    for (int j = 0; j < count; j++) {
        double u[SIGNALS], f[FORCES];
        const double part = (double)j / count;
        if (c->o->cut == CRDI_CUT_MOTION_MOTION) {
            input_at(c, 2 * s->forces, c->z, c->z_last, part, u);
            s->force(s, u, c->x2, f);
        } else {
            input_at(c, s->forces, c->f, c->f_last, part, f);
            for (int i = 0; i < s->forces; i++) {
                f[i] += c->axes[i].B;
            }
        }
        micro_step(s, true, t + j * c->o->step2, c->x2, f, c->o->step2);
    }
}

static void look_at_bond(cosimulation* c)
{
    const int n = c->o->system->forces;
    for (int i = 0; i < n; i++) {
        c->axes[i].f = c->f[i];
        c->axes[i].v = c->y[n + i];
    }
}

static void exchange(cosimulation* c)
{
    const crdi_benchmark* s = c->o->system;
    memcpy(c->y_last, c->y, sizeof c->y);
    memcpy(c->z_last, c->z, sizeof c->z);
    memcpy(c->f_last, c->f, sizeof c->f);
    s->motion(c->x2, c->y);
    memcpy(c->z, c->x1, sizeof c->z);
    const bool fresh = c->o->fresh || c->o->cut == CRDI_CUT_FORCE_FORCE;
    s->force(s, c->x1, fresh ? c->y : c->seen, c->f);
    look_at_bond(c);
    crd_bond_step_axes(&c->o->bond, &c->bond, c->H, c->H, s->forces, c->axes);
}

static crd_status check_benchmark(crd_context* ctx, const crdi_benchmark_options* o)
{
    if (!o->system) { return crdi_fail(ctx, CRD_E_NOT_FOUND, "no such benchmark system"); }
    const double H = fmax(o->step1, o->step2), h = fmin(o->step1, o->step2);
    if (!(o->step1 > 0 && o->step2 > 0 && fabs(H / h - round(H / h)) < 1e-6 && H / h < 1e6 &&
          o->until >= H && o->until / h < 1e8)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "steps of %g s and %g s up to %g s: expected steps > 0, the larger one a "
                         "multiple of the smaller",
                         o->step1, o->step2, o->until);
    }
    if (o->accurate && (o->step1 != o->step2 || o->cut != CRDI_CUT_FORCE_MOTION)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "accurate units are run at a single rate, between force and motion");
    }
    if (o->cut != CRDI_CUT_FORCE_MOTION && o->system->fine != 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s is cut between force and motion only",
                         o->system->name);
    }
    return CRD_OK;
}

static void watch_errors(const cosimulation* c, double t, const double* x,
                         crdi_benchmark_result* out)
{
    const crdi_benchmark* s = c->o->system;
    double p[2], q[2];
    s->positions(c->x1, c->x2, p);
    s->positions(x, x + s->n1, q);
    out->energy = s->energy(s, c->x1, c->x2);
    out->exact = s->energy(s, x, x + s->n1);
    for (int i = 0; i < 2; i++) {
        out->error[i] = fmax(out->error[i], fabs(p[i] - q[i]));
        out->rms[i] += (p[i] - q[i]) * (p[i] - q[i]); // becomes the root mean square at the end
    }
    if (c->k == 0) { out->start = out->exact; }
    out->worst_energy = fmax(out->worst_energy, fabs(out->energy - out->exact) / fabs(out->start));
    if (c->o->see) { c->o->see(c->o->user, t, p, q, out->energy, out->exact, c->bond.power); }
}

crd_status crdi_benchmark_run(crd_context* ctx, const crdi_benchmark_options* opt,
                              crdi_benchmark_result* out)
{
    const crd_status st = check_benchmark(ctx, opt);
    if (st < 0) { return st; }
    const crdi_benchmark* s = opt->system;
    cosimulation c = {.o = opt, .H = fmax(opt->step1, opt->step2)};
    double x[ALL];
    memcpy(x, s->start, sizeof x);
    memcpy(c.x1, x, (size_t)s->n1 * sizeof *x);
    memcpy(c.x2, x + s->n1, (size_t)s->n2 * sizeof *x);
    s->motion(c.x2, c.y);
    memcpy(c.z, c.x1, sizeof c.z);
    s->force(s, c.x1, c.y, c.f);
    remember_outputs(&c);
    look_at_bond(&c);
    crd_bond_start_axes(&c.bond, s->forces, c.axes);
    *out = (crdi_benchmark_result){
        .steps = (int64_t)(opt->until / c.H + 1e-9), .power_max = -INFINITY, .power_min = INFINITY};
    watch_errors(&c, 0, x, out);
    while (c.k < out->steps) {
        const double t = (double)c.k * c.H;
        if (opt->accurate) {
            step_both_accurately(&c, t);
        } else {
            step_first(&c, t);
            step_second(&c, t);
        }
        reference_step(s, t, x, c.H);
        exchange(&c);
        if (opt->accurate) { remember_outputs(&c); }
        c.k++;
        out->residual += c.bond.power * c.H;
        out->power_max = fmax(out->power_max, c.bond.power);
        out->power_min = fmin(out->power_min, c.bond.power);
        watch_errors(&c, (double)c.k * c.H, x, out);
    }
    out->gain = out->energy / out->exact - 1;
    out->rms[0] = sqrt(out->rms[0] / (double)(out->steps + 1));
    out->rms[1] = sqrt(out->rms[1] / (double)(out->steps + 1));
    return CRD_OK;
}
