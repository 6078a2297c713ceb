// `predict: auto` against hold in closed loops: random two-mass oscillators, cut at the spring
// (force-displacement, with feedthrough of position and velocity), with and without measurement
// noise. Truth is the exponential of the uncut system's matrix.
//
//   ground --(k1, c1)-- m1 --(kc, cc)-- m2 --(k2, c2)-- ground,   f = kc (x1 - x2) + cc (v1 - v2)
#include "models.h"

#include "master/master.h"
#include "shared/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYSTEMS = 60, STEPS = 300, SUBSTEPS = 2 };

// ---- noise and random systems ------------------------------------------------------------------

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t key)
{
    return (double)(mix(key) >> 11) * 0x1p-53;
}

// Nearly normal, standard deviation 1, the same for the same communication point and channel.
static double noise(int64_t point, int channel)
{
    double sum = 0;
    for (uint64_t i = 0; i < 4; i++) {
        sum += uniform(mix((uint64_t)point * 8 + (uint64_t)channel) + i) - 0.5;
    }
    return sum * sqrt(3);
}

typedef struct oscillator {
    double m[2], k[3], c[3]; // masses; springs and dampers: ground, middle, ground
    double H;
    double rough[3][3]; // of noise: of f, x2, v2 and of their first and second derivatives
} oscillator;

static oscillator now;             // the one that runs
static double trace[STEPS + 1][2]; // its x1 and x2

// ---- units -------------------------------------------------------------------------------------

typedef struct mass {
    double x2, v2, f; // inputs or outputs
    double dx2[CRD_MODEL_MAX_ORDER], dv2[CRD_MODEL_MAX_ORDER], df[CRD_MODEL_MAX_ORDER];
    double x, v;
} mass;

static double along(double y, const double* d, double s)
{
    return y + s * (d[0] + 0.5 * s * d[1]);
}

static double acceleration(const mass* p, bool first, double x, double v, double s)
{
    if (first) {
        const double e = x - along(p->x2, p->dx2, s), w = v - along(p->v2, p->dv2, s);
        return -(now.k[0] * x + now.c[0] * v + now.k[1] * e + now.c[1] * w) / now.m[0];
    }
    return (along(p->f, p->df, s) - now.k[2] * x - now.c[2] * v) / now.m[1];
}

static void advance(mass* p, bool first, double h)
{
    const double d = h / SUBSTEPS;
    for (int i = 0; i < SUBSTEPS; i++) {
        const double s = i * d;
        double x[4] = {p->v}, v[4] = {acceleration(p, first, p->x, p->v, s)};
        for (int j = 1; j < 4; j++) {
            const double part = j < 3 ? 0.5 * d : d;
            x[j] = p->v + part * v[j - 1];
            v[j] = acceleration(p, first, p->x + part * x[j - 1], x[j], s + part);
        }
        p->x += d / 6 * (x[0] + 2 * x[1] + 2 * x[2] + x[3]);
        p->v += d / 6 * (v[0] + 2 * v[1] + 2 * v[2] + v[3]);
    }
}

static crd_model_status begin(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static int64_t point(double t)
{
    return llround(t / now.H);
}

static crd_model_status step_first(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)host;
    advance(self, true, h);
    *reached = t + h;
    trace[point(t + h)][0] = ((mass*)self)->x;
    return CRD_MODEL_OK;
}

static crd_model_status step_second(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    advance(self, false, h);
    *reached = t + h;
    trace[point(t + h)][1] = ((mass*)self)->x;
    return CRD_MODEL_OK;
}

// Each value and each derivative has noise of its own, as measured ones have.
static double rough(int signal, int order, double t)
{
    return now.rough[signal][order] * noise(point(t), 3 * signal + order);
}

static void show_first(void* self, double t)
{
    mass* p = self;
    const double a = acceleration(p, true, p->x, p->v, 0);
    const double jerk = -(now.k[0] * p->v + now.c[0] * a + now.k[1] * (p->v - p->dx2[0]) +
                          now.c[1] * (a - p->dv2[0])) /
                        now.m[0];
    p->f = now.k[1] * (p->x - p->x2) + now.c[1] * (p->v - p->v2) + rough(0, 0, t);
    p->df[0] = now.k[1] * (p->v - p->dx2[0]) + now.c[1] * (a - p->dv2[0]) + rough(0, 1, t);
    p->df[1] = now.k[1] * (a - p->dx2[1]) + now.c[1] * (jerk - p->dv2[1]) + rough(0, 2, t);
}

static void show_second(void* self, double t)
{
    mass* p = self;
    const double a = acceleration(p, false, p->x, p->v, 0);
    const double jerk = (p->df[0] - now.k[2] * p->v - now.c[2] * a) / now.m[1];
    p->x2 = p->x + rough(1, 0, t);
    p->dx2[0] = p->v + rough(1, 1, t);
    p->dx2[1] = a + rough(1, 2, t);
    p->v2 = p->v + rough(2, 0, t);
    p->dv2[0] = a + rough(2, 1, t);
    p->dv2[1] = jerk + rough(2, 2, t);
}

#define END(field, cause, on)                                                                      \
    {                                                                                              \
        .name = #field, .type = CRD_FLOAT64, .causality = cause, .offset = offsetof(mass, field),  \
        .depends = on, .derivatives = offsetof(mass, d##field)                                     \
    }
#define STATE(field)                                                                               \
    {                                                                                              \
        .name = #field, .type = CRD_FLOAT64, .causality = CRD_LOCAL,                               \
        .offset = offsetof(mass, field), .exact = true                                             \
    }
static const crd_model_variable rows_first[] = {END(x2, CRD_INPUT, NULL), END(v2, CRD_INPUT, NULL),
                                                END(f, CRD_OUTPUT, "x2 v2"), STATE(x), STATE(v)};
static const crd_model_variable rows_second[] = {END(f, CRD_INPUT, NULL), END(x2, CRD_OUTPUT, ""),
                                                 END(v2, CRD_OUTPUT, ""), STATE(x), STATE(v)};
#define MASS(which, orders)                                                                        \
    {                                                                                              \
        .name = #which, .description = #which, .size = sizeof(mass), .variables = rows_##which,    \
        .variable_count = 5, .default_step = 0.1, .default_stop = 1,                               \
        .max_input_derivative = orders, .max_output_derivative = orders, .initialize = begin,      \
        .outputs = show_##which, .step = step_##which                                              \
    }
static const crd_model firsts[] = {MASS(first, 0), MASS(first, 2)};
static const crd_model seconds[] = {MASS(second, 0), MASS(second, 2)};

// ---- runs --------------------------------------------------------------------------------------

static double between(uint64_t key, double low, double high) // equal chances of equal ratios
{
    return low * pow(high / low, uniform(key));
}

// Masses 0.1 to 10, springs 10 to 1000, and a step by the fastest angular frequency without
// damping, c = 0.01 sqrt(k m) to `damping` sqrt(k m).
static oscillator draw(int number, double omega_h, double damping, double* A)
{
    oscillator o = {0};
    const uint64_t key = 1000 * (uint64_t)number;
    for (uint64_t i = 0; i < 3; i++) {
        if (i < 2) { o.m[i] = between(key + i, 0.1, 10); }
        o.k[i] = between(key + 2 + i, 10, 1000);
        if (damping > 0) {
            o.c[i] = between(key + 5 + i, 0.01, damping) * sqrt(o.k[i] * o.m[i / 2]);
        }
    }
    const double s1 = (o.k[0] + o.k[1]) / o.m[0], s2 = (o.k[2] + o.k[1]) / o.m[1];
    const double both = o.k[1] * o.k[1] / (o.m[0] * o.m[1]);
    o.H = omega_h / sqrt(0.5 * (s1 + s2) + sqrt(0.25 * (s1 - s2) * (s1 - s2) + both));
    const double rows[] = {0,
                           1,
                           0,
                           0,
                           -s1,
                           -(o.c[0] + o.c[1]) / o.m[0],
                           o.k[1] / o.m[0],
                           o.c[1] / o.m[0],
                           0,
                           0,
                           0,
                           1,
                           o.k[1] / o.m[1],
                           o.c[1] / o.m[1],
                           -s2,
                           -(o.c[2] + o.c[1]) / o.m[1]};
    memcpy(A, rows, sizeof rows);
    return o;
}

static void times(const double* A, const double* x, double* y)
{
    for (int i = 0; i < 4; i++) {
        y[i] = 0;
        for (int j = 0; j < 4; j++) {
            y[i] += A[4 * i + j] * x[j];
        }
    }
}

// The solution at all points, and the largest magnitudes of f, x2, v2 and their derivatives.
static void solve(const oscillator* o, const double* A, double (*x)[4], double (*size)[3])
{
    double P[16], work[32];
    for (int i = 0; i < 16; i++) {
        P[i] = A[i] * o->H;
    }
    check_ok(crdi_num_expm(4, P, work));
    x[0][0] = x[0][2] = 0;
    x[0][1] = 1;
    x[0][3] = -1;
    memset(size, 0, 9 * sizeof(double));
    for (int n = 0; n <= STEPS; n++) {
        if (n > 0) { times(P, x[n - 1], x[n]); }
        double d[3][4];
        memcpy(d[0], x[n], sizeof d[0]);
        for (int i = 0; i < 3; i++) {
            if (i > 0) { times(A, d[i - 1], d[i]); }
            const double f = o->k[1] * (d[i][0] - d[i][2]) + o->c[1] * (d[i][1] - d[i][3]);
            size[0][i] = fmax(size[0][i], fabs(f));
            size[1][i] = fmax(size[1][i], fabs(d[i][2]));
            size[2][i] = fmax(size[2][i], fabs(d[i][3]));
        }
    }
}

static double degree_four; // share of it in the predictions of the last run

// Relative RMS error of x1 and x2 over the run; INFINITY: it did not come to its end.
static double run_error(crd_prediction predict, int orders, bool blind, double (*x)[4])
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, now.H, STEPS * now.H);
    const int a = add_unit(s, "first", &firsts[orders > 0], 0);
    const int b = add_unit(s, "second", &seconds[orders > 0], 0);
    set(s, a, "v", "1");
    set(s, b, "v", "-1");
    s->units[a].refresh = s->units[b].refresh = blind ? CRD_REFRESH_NO : CRD_REFRESH_AUTO;
    wire(s, b, "x2", a, "x2")->predict = predict;
    wire(s, b, "v2", a, "v2")->predict = predict;
    wire(s, a, "f", b, "f")->predict = predict;
    s->run.monitor = 0;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    const crd_status st = crd_master_run(m);
    degree_four = 0;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        degree_four +=
            (double)m->connections.predictions[i].uses[CRD_PREDICT_HERMITE] / (3.0 * STEPS);
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    double error = 0, size = 0;
    for (int n = 1; n <= STEPS && st >= 0; n++) {
        error += pow(trace[n][0] - x[n][0], 2) + pow(trace[n][1] - x[n][2], 2);
        size += pow(x[n][0], 2) + pow(x[n][2], 2);
    }
    return st < 0 ? (double)INFINITY : sqrt(error / size);
}

static int by_value(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double make(int number, double omega_h, double damping, double percent, double (*x)[4])
{
    double A[16], size[3][3];
    now = draw(number, omega_h, damping, A);
    solve(&now, A, x, size);
    for (int k = 0; k < 9; k++) {
        now.rough[k / 3][k % 3] = 0.01 * percent * size[k / 3][k % 3];
    }
    return 0.01 * percent;
}

// auto's error is nowhere more than twice that of hold, or far below the noise; above 1.2 times in
// 0.2 % of all systems here. These units cannot be linearised: the loop has one level, raised after
// some steps of hold, whose error stays in the damped systems.
static int systems, above;

static void compare(int orders, bool blind, double damping, double percent)
{
    static const double omega_h[] = {0.05, 0.15, 0.3};
    static double x[STEPS + 1][4], ratios[SYSTEMS];
    for (int w = 0; w < 3; w++) {
        int bad = 0, diverged = 0;
        for (int i = 0; i < SYSTEMS; i++) {
            const double level = make(i, omega_h[w], damping, percent, x);
            const double hold = run_error(CRD_PREDICTION_HOLD, orders, blind, x);
            const double chosen = run_error(CRD_PREDICTION_AUTO, orders, blind, x);
            ratios[i] = chosen / hold;
            diverged += hold > 1;
            systems++;
            if (!(chosen <= 1.2 * hold || chosen < 0.1 * level)) {
                above++;
                bad += !(chosen <= 2 * hold);
                printf("  system %d: hold %.4g, auto %.4g\n", i, hold, chosen);
            }
        }
        qsort(ratios, SYSTEMS, sizeof *ratios, by_value);
        printf("%s%s, damping up to %g, noise %g %%, omega H = %g: auto / hold median %.3g, worst "
               "%.3g; hold is off by more than the signal in %d of %d\n",
               orders ? "derivatives" : "hold only", blind ? ", not refreshed" : "", damping,
               percent, omega_h[w], ratios[SYSTEMS / 2], ratios[SYSTEMS - 1], diverged, SYSTEMS);
        check_int(bad, 0);
    }
}

static void units_that_hold_are_never_worse_off_than_with_hold(void** state)
{
    (void)state;
    compare(0, false, 0, 0);
    compare(0, false, 3, 0);
}

static void units_that_hold_are_not_worse_off_with_noise(void** state)
{
    (void)state;
    compare(0, false, 0, 1);
    compare(0, false, 3, 1);
}

static void units_with_derivatives_are_never_worse_off_than_with_hold(void** state)
{
    (void)state;
    compare(2, false, 0, 0);
    compare(2, false, 3, 0);
}

static void units_with_derivatives_are_not_worse_off_with_noise(void** state)
{
    (void)state;
    compare(2, false, 0, 1);
    compare(2, false, 3, 1);
}

// Heavy damping (3) without fresh outputs is beyond any prediction, and of hold in places.
static void derivatives_that_are_not_fresh_are_still_better_than_hold(void** state)
{
    (void)state;
    compare(2, true, 0, 0);
    compare(2, true, 0, 1);
    compare(2, true, 0.3, 1);
}

static void what_holds_and_is_not_fresh_is_not_worse_off(void** state)
{
    (void)state;
    static double x[STEPS + 1][4];
    for (int i = 0; i < 5; i++) {
        make(i, 0.15, 3, 1, x);
        const double hold = run_error(CRD_PREDICTION_HOLD, 0, true, x);
        check(run_error(CRD_PREDICTION_AUTO, 0, true, x) <= 1.05 * hold);
    }
}

// Degree four is stable in short steps only, and nothing is known of these units.
static void the_degree_four_predictor_is_not_used_in_loops_of_unknown_units(void** state)
{
    (void)state;
    static double x[STEPS + 1][4];
    static const double omega_h[] = {0.05, 0.1, 0.13, 0.17, 0.3};
    const oscillator even = {.m = {1, 1}, .k = {100, 100, 100}};
    for (int i = 0; i < 5; i++) {
        double size[3][3];
        const double A[] = {0, 1, 0, 0, -200, 0, 100, 0, 0, 0, 0, 1, 100, 0, -200, 0};
        now = even;
        now.H = omega_h[i] / sqrt(300);
        solve(&now, A, x, size);
        const double hold = run_error(CRD_PREDICTION_HOLD, 2, false, x);
        const double error = run_error(CRD_PREDICTION_AUTO, 2, false, x);
        printf("omega H = %g: error %.3g, with hold %.3g\n", omega_h[i], error, hold);
        check(degree_four == 0);
        check(error < 0.5 * hold);
    }
}

static void hardly_any_is_worse_off_by_a_fifth(void** state)
{
    (void)state;
    printf("above 1.2 times hold: %d of %d\n", above, systems);
    check(systems > 1000 && above <= 0.002 * systems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_that_hold_are_never_worse_off_than_with_hold),
        cmocka_unit_test(units_that_hold_are_not_worse_off_with_noise),
        cmocka_unit_test(units_with_derivatives_are_never_worse_off_than_with_hold),
        cmocka_unit_test(units_with_derivatives_are_not_worse_off_with_noise),
        cmocka_unit_test(derivatives_that_are_not_fresh_are_still_better_than_hold),
        cmocka_unit_test(hardly_any_is_worse_off_by_a_fifth),
        cmocka_unit_test(what_holds_and_is_not_fresh_is_not_worse_off),
        cmocka_unit_test(the_degree_four_predictor_is_not_used_in_loops_of_unknown_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
