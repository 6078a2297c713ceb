#include "elements.h"

// The two published tasks: Baumann 2020 (dT = 1 ms, k = 3, 4 taps) and 2024 (10 ms, k = 6, 9 taps)
static crd_goal goal_2020(void)
{
    crd_goal g = crd_goal_defaults();
    g.dT = 0.001;
    g.k = 3;
    g.m = 4;
    g.magnitude = g.phase = (crd_interval){1, 6};
    return g;
}

static crd_goal goal_2024(void)
{
    crd_goal g = crd_goal_defaults();
    g.dT = 0.01;
    g.k = 6;
    g.m = 9;
    g.phase = (crd_interval){0.1, 10};
    g.magnitude = (crd_interval){0.1, 55};
    return g;
}

static crd_quality quality(crd_context* ctx, const crd_goal* g, const double* a)
{
    const crd_linear e = {g->m, g->k, a, NULL, 0};
    crd_quality q;
    check_ok(crd_goal_quality(ctx, g, &e, &q));
    return q;
}

static void objective_of_given_vectors(void** state)
{
    static const struct {
        double a[4], J, J_half, peak, omega;
    } rows[] = {
        {{6.5103, -1.5509, -9.9296, 5.9702}, 2.5222884693e-6, 17907.08396, 17.0976673, 1828.33065},
        {{2.4748, -0.647, -0.1664, -0.6664},
         5.8999293737e-3,
         5.8999293737e-3,
         2.85211989,
         1071.7985},
        {{1, 0, 0, 0}, 7.0193302124e-3, 7.0193302124e-3, 1, 0},
        {{7.6875, -5.1875, -6.1875, 4.6875}, 1.28416646e-6, 1.28416646e-6, 15.9932691, 1804.14424},
        {{23.0 / 3, -31.0 / 6, -37.0 / 6, 14.0 / 3}, 7.38362e-7, 7.38362e-7, 15.938286, 1803.98718},
        {{26.586733674800506, -61.92687042487581, 50.59353984938727, -14.253403099311974},
         7.129019e-9,
         165812321.68,
         103.262783,
         2789.66206},
    };
    crd_goal g = goal_2020();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        g.v = 1;
        const crd_quality q = quality(*state, &g, rows[i].a);
        check_near(q.J / rows[i].J, 1, 1e-4);
        check_near(q.peak_gain / rows[i].peak, 1, 1e-6);
        check_near(q.peak_omega, rows[i].omega, 0.32); // read on a grid of 0.314 rad/s
        check_near(q.J, g.alpha * q.J_m + g.beta * q.J_p_deg + g.gamma * (q.J_r_low + q.J_r_high),
                   1e-15);
        g.v = 0.5;
        check_near(quality(*state, &g, rows[i].a).J / rows[i].J_half, 1, 1e-4);
    }
}

static void a_narrow_excess_above_omega_u_is_integrated(void** state)
{
    // First-order extrapolation, hold between: |G| - 1 ~ e at omega_u and flat there, the bound
    // leaves it behind with slope 1 / omega_u: the area is omega_u e^2 / 2.
    const double a[] = {4, -3, 0, 0};
    const crd_goal g = goal_2020();
    const crd_linear l = {4, 3, a, NULL, 0};
    const crd_complex r = crd_response(&l, 0.006);
    const double e = hypot(r.re, r.im) - 1;
    const crd_quality q = quality(*state, &g, a);
    check_near(q.J_r_high / (0.5 * 6 * e * e), 1, 1e-3); // |G| grows a little meanwhile
    check_near(q.J_r_low / 1.986107361258129e-06, 1, 1e-6);
}

static void optimum_of_2020_is_found(void** state)
{
    double a[4];
    crd_goal g = goal_2020();
    check_ok(crd_goal_optimal(*state, &g, a));
    const double best[] = {26.586733674800506, -61.92687042487581, 50.59353984938727,
                           -14.253403099311974};
    for (int i = 0; i < 4; i++) {
        check_near(a[i], best[i], 5e-3);
    }
    check_near(a[0] + a[1] + a[2] + a[3], 1, 1e-9);
    check(quality(*state, &g, a).J <= 7.3e-9);
    g.v = 0.5;
    check_ok(crd_goal_optimal(*state, &g, a));
    check(quality(*state, &g, a).J <= 2.9265e-7);
    g.v = 0.25;
    check_ok(crd_goal_optimal(*state, &g, a));
    check(quality(*state, &g, a).J <= 3.79e-3);
}

static void optimum_of_2024_is_found(void** state)
{
    static const double best[] = {9.9623,  -17.9332, 10.3748, -1.7222, 1.7421,
                                  -1.4155, -0.0378,  -0.2759, 0.3052};
    double a[9];
    crd_goal g = goal_2024();
    check_ok(crd_goal_optimal(*state, &g, a));
    const crd_quality q = quality(*state, &g, a);
    check(q.J >= 0.13049 && q.J <= 0.13054);
    check_near(q.J_p_deg, 12.468, 0.01);
    check_near(q.peak_gain, 28.537, 0.02);
    for (int i = 0; i < 9; i++) {
        check_near(a[i], best[i], 5e-3);
    }
    const double hold[9] = {1};
    check_near(quality(*state, &g, hold).J / 0.19227290092667731, 1, 1e-6);
    g.omega_u = 55;
    check_ok(crd_goal_optimal(*state, &g, a));
    check_near(quality(*state, &g, a).J, 0.16462, 2e-5);
    g.omega_u = 10;
    g.v = 0.25;
    check_ok(crd_goal_optimal(*state, &g, a));
    check_near(quality(*state, &g, a).J, 0.17240, 2e-5);
}

static void more_taps_are_never_worse(void** state)
{
    crd_goal g = goal_2024();
    double before = INFINITY, a[12];
    for (g.m = 1; g.m <= 12; g.m += g.m < 4 ? 1 : 4) {
        check_ok(crd_goal_optimal(*state, &g, a));
        const double J = quality(*state, &g, a).J;
        check(J < before * (1 + 1e-4));
        before = J;
    }
}

// mean over B_p of |G - 1|^2 + mu |a|^2
static double bounded_objective(const crd_goal* g, const double* a, double mu)
{
    const crd_linear e = {g->m, g->k, a, NULL, 0};
    double sum = 0, norm = 0;
    for (int i = 0; i < 4000; i++) {
        const double omega = g->phase.lo + (g->phase.hi - g->phase.lo) * (i + 0.5) / 4000;
        const crd_complex r = crd_response(&e, omega * g->dT);
        sum += (r.re - 1) * (r.re - 1) + r.im * r.im;
    }
    for (int i = 0; i < g->m; i++) {
        norm += a[i] * a[i];
    }
    return sum / 4000 + mu * norm;
}

static void bounded_design_keeps_its_bound_and_is_the_best(void** state)
{
    static const struct {
        double margin, mu, objective, peak, a[9];
    } rows[] = {
        {0.03,
         1e-4,
         0.07459386187999695,
         13.0742,
         {5.858650, -5.497084, -2.241377, 1.579907, 2.044883, 0.779924, -0.783172, -1.734120,
          0.992390}},
        {0.01,
         1e-4,
         0.0775139725844906,
         13.0853,
         {5.857421, -5.587572, -2.154691, 1.638936, 1.999897, 0.756604, -0.770886, -1.805788,
          1.066081}},
        {0.03,
         1e-5,
         0.06170855662772672,
         21.2030,
         {9.240479, -14.496242, 4.996145, 1.536462, 0.553386, -0.464505, 0.813030, -2.218046,
          1.039292}},
    };
    const crd_goal g = goal_2024();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double a[9], sum = 0;
        check_ok(crd_goal_bounded(*state, &g, rows[r].margin, rows[r].mu, a));
        const crd_linear e = {9, 6, a, NULL, 0};
        for (int i = 0; i < 9; i++) {
            sum += a[i];
            check_near(a[i], rows[r].a[i], 1e-4);
        }
        check_near(sum, 1, 1e-12);
        check_near(bounded_objective(&g, a, rows[r].mu), rows[r].objective, 1e-7);
        check_near(quality(*state, &g, a).peak_gain, rows[r].peak, 1e-3);
        for (double omega = 0.1; omega < 2 * M_PI / g.dT; omega += 0.0173) {
            const crd_complex z = crd_response(&e, omega * g.dT);
            const double above = omega > g.magnitude.hi ? omega / 10 : 0;
            check(hypot(z.re, z.im) <= fmax(1 + rows[r].margin, above) * (1 + 3e-5));
        }
    }
}

static void bad_goals_are_named(void** state)
{
    double a[300];
    crd_goal g = goal_2024();
    g.phase = (crd_interval){10, 10};
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the phase band [10, 10] rad/s is empty");
    g = goal_2024();
    g.magnitude.hi = 400;
    check_status(crd_goal_bounded(*state, &g, 0.03, 1e-4, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "above the Nyquist frequency 314.159");
    g = goal_2024();
    check_status(crd_goal_bounded(*state, &g, 0, 1e-4, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the margin of the bound is 0");
    check_status(crd_goal_bounded(*state, &g, 0.03, 0, a), CRD_E_RANGE);
    g.m = 33;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "33 taps are too many");
    g.m = 0;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "a design with 0 taps");
    g = goal_2024();
    g.k = -1;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    g = goal_2024();
    g.beta = NAN;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the weight beta is nan");
    g = goal_2024();
    g.v = -1;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    g = goal_2024();
    g.omega_u = 1000;
    check_status(crd_goal_optimal(*state, &g, a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "omega_u = 1000 rad/s");
}

static crd_status every_design(crd_context* ctx)
{
    crd_goal g = goal_2024();
    g.m = 2;
    double a[2];
    crd_status st = crd_goal_bounded(ctx, &g, 0.03, 1e-4, a);
    if (st >= 0) { st = crd_goal_optimal(ctx, &g, a); }
    return st;
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        a.fail_at = a.allocations + fail_at;
        const crd_status st = every_design(ctx);
        check_int(a.live, live);
        a.fail_at = -1;
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 3);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(objective_of_given_vectors, ctx),
        cmocka_unit_test_prestate(a_narrow_excess_above_omega_u_is_integrated, ctx),
        cmocka_unit_test_prestate(optimum_of_2020_is_found, ctx),
        cmocka_unit_test_prestate(optimum_of_2024_is_found, ctx),
        cmocka_unit_test_prestate(more_taps_are_never_worse, ctx),
        cmocka_unit_test_prestate(bounded_design_keeps_its_bound_and_is_the_best, ctx),
        cmocka_unit_test_prestate(bad_goals_are_named, ctx),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
