// The macro-step map against formulas by hand and against a simulation that shares no code with it.
#include "check.h"
#include "shared/quality_macro.h"

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

// x' = a x + b u, y = c x + d u, twice, each the other's input
typedef struct pair {
    double a[2], b[2], c[2], d[2];
    crdi_macro_unit units[2];
    crdi_macro_link links[2];
    int order[2];
    crdi_macro macro;
} pair;

static void pair_make(pair* p, double h)
{
    for (int i = 0; i < 2; i++) {
        p->units[i] = (crdi_macro_unit){.states = 1,
                                        .inputs = 1,
                                        .outputs = 1,
                                        .A = &p->a[i],
                                        .B = &p->b[i],
                                        .C = &p->c[i],
                                        .D = &p->d[i],
                                        .ticks = 1};
        p->links[i] = (crdi_macro_link){
            .from_unit = 1 - i, .to_unit = i, .gain = 1, .early = true, .textbook = true};
        p->order[i] = i;
    }
    p->macro = (crdi_macro){.tick = h,
                            .unit_count = 2,
                            .link_count = 2,
                            .units = p->units,
                            .links = p->links,
                            .order = p->order};
}

static void hold_has_the_map_that_is_computed_by_hand(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    pair p = {.a = {-1, -2}, .b = {1, 1}, .c = {1, 1}};
    pair_make(&p, 0.1);
    p.links[0].gain = -3;
    check_ok(crdi_macro_init(&arena, &p.macro));
    // Jacobi: x1+ = e1 x1 - 3 g1 x2, x2+ = e2 x2 + g2 x1
    const double e1 = exp(-0.1), e2 = exp(-0.2), g1 = 1 - e1, g2 = (1 - e2) / 2;
    double rho = 0;
    check_ok(crdi_macro_ln_rho(&p.macro, &rho));
    // complex pair: |rho|^2 is the determinant
    check_near(rho, 0.5 * log(e1 * e2 + 3 * g1 * g2), 1e-12);
    double growth = 0, fastest = 0;
    check_ok(crdi_macro_exact(&p.macro, &growth, &fastest));
    check_near(growth, -1.5, 1e-12); // s^2 + 3 s + 2 + 3
    check_near(fastest, sqrt(5), 1e-12);
    // Gauss-Seidel: the second takes x1+, so x2+ = e2 x2 + g2 (e1 x1 - 3 g1 x2); det = e1 e2
    p.units[1].phase = p.links[1].phase = 1;
    p.links[0].early = p.links[1].early = false;
    check_ok(crdi_macro_init(&arena, &p.macro));
    check_ok(crdi_macro_ln_rho(&p.macro, &rho));
    check_near(rho, 0.5 * log(e1 * e2), 1e-12);
    crd_arena_clear(&arena);
}

static void multi_rate_is_the_product_of_its_ticks(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    pair p = {.a = {-1, -2}, .b = {1, 1}, .c = {1, 1}};
    pair_make(&p, 0.1);
    p.links[0].gain = -3;
    p.units[1].ticks = 3;
    check_ok(crdi_macro_init(&arena, &p.macro));
    // The slow one holds x1 of the beginning for 0.3 s, the fast one sees x2 of the beginning
    const double e1 = exp(-0.3), e2 = exp(-0.6), g1 = 1 - e1, g2 = (1 - e2) / 2;
    double rho = 0;
    check_ok(crdi_macro_ln_rho(&p.macro, &rho));
    check_near(rho, 0.5 * log(e1 * e2 + 3 * g1 * g2) / 3, 1e-12);
    crd_arena_clear(&arena);
}

static void a_late_element_is_a_chain_of_states(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    // x1' = u, u = -x2 held; the second passes its input on: x1+ = x1 - h k x1(n - 3)
    pair p = {.a = {0, 0}, .b = {1, 0}, .c = {1, 0}, .d = {0, 1}};
    const double taps[] = {0, 0, 1}; // two steps late, and one more through the second unit
    pair_make(&p, 0.1);
    p.units[1].states = 0;
    p.links[0].gain = -7;
    p.links[0].tap_count = 3;
    p.links[0].taps = taps;
    check_ok(crdi_macro_init(&arena, &p.macro));
    double rho = 0;
    check_ok(crdi_macro_ln_rho(&p.macro, &rho));
    // z^4 = z^3 - 0.7: by Newton from the root's neighbourhood
    double re = 0.9, im = 0.5;
    for (int i = 0; i < 60; i++) {
        const double r2 = re * re - im * im, i2 = 2 * re * im;
        const double r3 = r2 * re - i2 * im, i3 = r2 * im + i2 * re;
        const double fr = r3 * re - i3 * im - r3 + 0.7, fi = r3 * im + i3 * re - i3;
        const double dr = 4 * r3 - 3 * r2, di = 4 * i3 - 3 * i2, q = dr * dr + di * di;
        re -= (fr * dr + fi * di) / q;
        im -= (fi * dr - fr * di) / q;
    }
    check_near(rho, log(hypot(re, im)), 1e-10);
    double growth = 0;
    check_ok(crdi_macro_exact(&p.macro, &growth, NULL));
    check_near(growth, -7, 1e-12); // as if it came at once
    crd_arena_clear(&arena);
}

// ---- a simulation of its own: two oscillators, force and motion --------------------------------

typedef struct {
    double x, v; // of the unit that owns motion
    double y[4]; // force, newest first
    double p[4]; // position
} loop;

// x'' = -w x - d v + F(s); F = -k x(s) - c v(s) is the other one, without states
static void rk4(double* x, double* v, double f0, double f1, double f2, double h)
{
    enum { PARTS = 400 };
    const double w = 40, d = 0.7, dt = h / PARTS;
    for (int i = 0; i < PARTS; i++) {
        const double s = i * dt;
#define ACC(X, V, S) (-w * (X)-d * (V) + f0 + f1 * (S) + f2 * (S) * (S))
        const double k1 = *v, l1 = ACC(*x, *v, s);
        const double k2 = *v + 0.5 * dt * l1, l2 = ACC(*x + 0.5 * dt * k1, k2, s + 0.5 * dt);
        const double k3 = *v + 0.5 * dt * l2, l3 = ACC(*x + 0.5 * dt * k2, k3, s + 0.5 * dt);
        const double k4 = *v + dt * l3, l4 = ACC(*x + dt * k3, k4, s + dt);
        *x += dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6;
        *v += dt * (l1 + 2 * l2 + 2 * l3 + l4) / 6;
    }
}

// Order 1 without derivatives, into units that hold: means of lines. Position -> force -> motion.
static void own_step(loop* q, double h)
{
    const double f = 1.5 * q->y[0] - 0.5 * q->y[1], p = 1.5 * q->p[0] - 0.5 * q->p[1];
    rk4(&q->x, &q->v, f, 0, 0, h);
    memmove(q->y + 1, q->y, 3 * sizeof q->y[0]);
    memmove(q->p + 1, q->p, 3 * sizeof q->p[0]);
    q->y[0] = -60 * p; // not refreshed
    q->p[0] = q->x;
}

static void a_step_does_what_a_simulation_does(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    const double A[] = {0, 1, -40, -0.7}, B[] = {0, 1}, C[] = {1, 0}, D[] = {0}, K[] = {-60};
    crdi_macro_unit units[] = {
        {.states = 2, .inputs = 1, .outputs = 1, .A = A, .B = B, .C = C, .D = D, .ticks = 1},
        {.inputs = 1, .outputs = 1, .D = K, .ticks = 1}};
    crdi_macro_link links[] = {{.from_unit = 1, .to_unit = 0, .gain = 1, .early = true},
                               {.from_unit = 0, .to_unit = 1, .gain = 1, .early = true}};
    crdi_macro m = {.tick = 0.03, .unit_count = 2, .link_count = 2, .units = units, .links = links};
    check_ok(crdi_macro_init(&arena, &m));
    crdi_macro_set_level(&m, 1);
    check_int(crdi_macro_size(&m), 6);
    crdi_macro_state s;
    check_ok(crdi_macro_state_init(&arena, &m, &s));
    loop q = {.x = 1, .v = -2, .y = {0.3, 0.1}, .p = {1, 1.1}};
    const double z[] = {1, -2, 0.3, 0.1, 1, 1.1};
    double now[6];
    crdi_macro_unpack(&m, z, &s);
    for (int i = 0; i < 50; i++) {
        own_step(&q, 0.03);
        crdi_macro_step(&m, &s, NULL);
    }
    crdi_macro_pack(&m, &s, now);
    const double want[] = {q.x, q.v, q.y[0], q.y[1], q.p[0], q.p[1]};
    for (int i = 0; i < 6; i++) {
        check_near(now[i], want[i], 1e-8 * (1 + fabs(want[i])));
    }
    crd_arena_clear(&arena);
}

// The growth per second of every level goes to that of the exact system, at its order.
static void levels_converge_to_the_exact_growth(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    for (int refresh = 0; refresh < 2; refresh++) {
        for (int level = 0; level < 3; level++) {
            double error[2];
            for (int i = 0; i < 2; i++) {
                pair p = {.a = {-1, -2}, .b = {1, 1}, .c = {1, 1}, .d = {0, 0.3}};
                pair_make(&p, i ? 0.01 : 0.02);
                p.links[0].gain = -3;
                for (int k = 0; k < 2; k++) {
                    p.units[k].takes = p.units[k].gives = 2;
                    p.units[k].refresh = refresh ? CRDI_MACRO_ASKED : CRDI_MACRO_STALE;
                }
                p.macro.refresh_count = refresh ? 2 : 0;
                check_ok(crdi_macro_init(&arena, &p.macro));
                crdi_macro_set_level(&p.macro, level);
                double rho = 0, growth = 0;
                check_ok(crdi_macro_ln_rho(&p.macro, &rho));
                check_ok(crdi_macro_exact(&p.macro, &growth, NULL));
                error[i] = fabs(rho / p.macro.tick - growth);
            }
            // order level + 1: halving the step divides the error by 2^(level + 1), within 30 %
            const double ratio = error[0] / error[1], want = pow(2, level + 1);
            if (!(ratio > 0.7 * want)) {
                fail_msg("level %d, refresh %d: ratio %g of errors %g, %g, expected %g", level,
                         refresh, ratio, error[0], error[1], want);
            }
        }
    }
    crd_arena_clear(&arena);
}

// delta of a whole polynomial beside a zero past is what drives the units.
static void what_is_added_drives_the_units(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    pair p = {.a = {-1, -2}, .b = {1, 1}, .c = {1, 1}};
    pair_make(&p, 0.1);
    p.units[0].takes = 1;
    check_ok(crdi_macro_init(&arena, &p.macro));
    crdi_macro_set_level(&p.macro, 1);
    crdi_macro_state s;
    check_ok(crdi_macro_state_init(&arena, &p.macro, &s));
    const crd_poly delta[] = {{.degree = 1, .c = {2, 5}}, {.degree = 1, .c = {2, 5}}};
    crdi_macro_step(&p.macro, &s, delta);
    // x1' = -x1 + 2 + 5 s: x1 = (2 - 5)(1 - e^-t) + 5 t;  the other feels the mean, 2.25
    check_near(s.x[0], -3 * (1 - exp(-0.1)) + 0.5, 1e-13);
    check_near(s.x[1], 2.25 * (1 - exp(-0.2)) / 2, 1e-13);
    crd_arena_clear(&arena);
}

// x1' = x2, x2' = -x1: the exact system turns by h in a step. Held at once it is Euler's method, mu
// = 1 + i h; one after the other the symplectic one, on the circle, cos(angle) = 1 - h^2 / 2. What
// does not decay is counted over 1000 steps.
static void held_in_sequence_a_loop_drifts_less(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    const double h = 0.1;
    double drift[2];
    for (int sequential = 0; sequential < 2; sequential++) {
        pair p = {.b = {1, -1}, .c = {1, 1}};
        pair_make(&p, h);
        if (sequential) {
            p.units[1].phase = p.links[1].phase = 1;
            p.links[0].early = p.links[1].early = false;
        }
        check_ok(crdi_macro_init(&arena, &p.macro));
        crdi_macro_set_level(&p.macro, 0);
        check_ok(crdi_macro_deviation(&p.macro, &drift[sequential]));
    }
    const double angle = acos(1 - 0.5 * h * h);
    check_near(drift[0], 1e3 * hypot(1 - cos(h), h - sin(h)), 1e-9);
    check_near(drift[1], 1e3 * hypot(cos(angle) - cos(h), sin(angle) - sin(h)), 1e-9);
    crd_arena_clear(&arena);
}

// x' = u with one inner step a step, and 2 for u from the first one on. By the trapezoidal rule the
// input was a line from 0: x = h, 3 h, 5 h. y' is the slope of the last two ends, or of three.
static void few_inner_steps_remember_what_was_before(void** state)
{
    crd_arena arena;
    crd_arena_init(&arena, *state);
    const double h = 0.1;
    for (int points = 2; points <= 4; points++) {
        pair p = {.b = {1, 1}, .c = {1, 1}};
        pair_make(&p, h);
        p.units[0].longest = INFINITY;
        p.units[0].past = 0.5;
        p.units[0].points = points;
        p.units[0].gives = p.units[1].takes = 1;
        p.links[0].gain = 0;
        p.links[1].predictor = CRD_PREDICT_TAYLOR1;
        p.links[1].textbook = false;
        check_ok(crdi_macro_init(&arena, &p.macro));
        crdi_macro_size_links(&p.macro);
        p.links[1].kept = 2;
        crdi_macro_state s;
        check_ok(crdi_macro_state_init(&arena, &p.macro, &s));
        const crd_poly delta[2] = {{.c = {2}}};
        static const double x[] = {1, 3, 5, 7};
        const double slopes[3][4] = {
            {1, 2, 2, 2}, {1.5, 2.5, 2, 2}, {11.0 / 6, 2.5, 11.0 / 6 * 5 - 9 + 1.5, 2}};
        for (int k = 0; k < 4; k++) {
            crdi_macro_step(&p.macro, &s, delta);
            check_near(s.x[0], x[k] * h, 1e-14);
            check_near(s.flows[1].end.y[1], slopes[points - 2][k], 1e-12);
        }
        check_ok(crdi_macro_set_tick(&p.macro, h / 2));
        check_int(p.units[0].inner, 1);
    }
    crd_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hold_has_the_map_that_is_computed_by_hand),
        cmocka_unit_test(multi_rate_is_the_product_of_its_ticks),
        cmocka_unit_test(a_late_element_is_a_chain_of_states),
        cmocka_unit_test(a_step_does_what_a_simulation_does),
        cmocka_unit_test(levels_converge_to_the_exact_growth),
        cmocka_unit_test(what_is_added_drives_the_units),
        cmocka_unit_test(held_in_sequence_a_loop_drifts_less),
        cmocka_unit_test(few_inner_steps_remember_what_was_before),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
