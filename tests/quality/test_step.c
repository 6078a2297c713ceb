#include "cardan/quality.h"
#include "check.h"

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

static crd_step_options options(crd_step_method method, double tol)
{
    crd_step_options opt = crd_step_defaults();
    opt.method = method;
    opt.tol = tol;
    return opt;
}

static void pi_follows_39_line_by_line(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_PI, 1e-3);
    check_near(opt.kp, 0.13, 0);
    check_near(opt.ki, 1.0 / 15, 0);
    check_near(opt.theta_max, 2, 0);
    const double eps[] = {1e-9, 1e-8, 1e-6, 2e-4, 5e-3, 1e-3, 0, 3e-1};
    crd_step s;
    crd_step_init(&opt, 1e-4, &s);
    check_near(s.h, 1e-4, 0);
    double H = 1e-4, I = log(1e-4);
    for (size_t k = 0; k < sizeof eps / sizeof eps[0]; k++) {
        const double e = log(1e-3) - log(fmax(eps[k], 1e-16));
        const double I1 = I + e / 15;
        const double H1 = exp(I1 + 0.13 * e);
        H = H1 > 2 * H ? 2 * H : H1;
        I = I1 + log(H) - log(H1);
        check_near(crd_step_next(&opt, &s, eps[k], 1) / H, 1, 1e-13);
        check_near(s.I, I, 1e-12);
    }
}

static void h211b_follows_its_formula(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_H211B, 1e-6);
    crd_step s;
    crd_step_init(&opt, 0.01, &s);
    const double eps[] = {1e-7, 2e-6, 5e-7};
    const int k = 5;
    double h = 0.01, h_last = 0.01, c_last = 0.9 * 1e-6 / eps[0];
    for (int n = 0; n < 3; n++) {
        const double c = 0.9 * 1e-6 / eps[n];
        const double x = pow(c * c_last, 1.0 / (4 * k)) * pow(h / h_last, -0.25);
        const double next = h * (1 + atan(x - 1));
        check_near(crd_step_next(&opt, &s, eps[n], k), next, 1e-16);
        h_last = h;
        c_last = c;
        h = next;
    }
}

// eps = a h^k: both find the step at which eps is what they aim at.
static void both_controllers_settle_at_the_tolerance(void** state)
{
    (void)state;
    for (int method = CRD_STEP_PI; method <= CRD_STEP_H211B; method++) {
        for (int k = 1; k <= 5; k++) {
            const crd_step_options opt = options((crd_step_method)method, 1e-6);
            crd_step s;
            crd_step_init(&opt, 1e-4, &s);
            for (int n = 0; n < 300; n++) {
                crd_step_next(&opt, &s, 3 * pow(s.h, k), k);
            }
            const double aim = method == CRD_STEP_PI ? 1e-6 : 0.9e-6;
            check_near(3 * pow(s.h, k) / aim, 1, 1e-6);
        }
    }
}

static void h211b_never_grows_beyond_its_limiter(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_H211B, 1);
    crd_step s;
    crd_step_init(&opt, 1e-6, &s);
    for (int n = 0; n < 5; n++) {
        const double h = s.h;
        check(crd_step_next(&opt, &s, 0, 1) <= h * (1 + 1.5707964));
        check(s.h > h);
    }
}

static void the_step_stays_between_floor_and_ceiling_without_windup(void** state)
{
    (void)state;
    for (int method = CRD_STEP_PI; method <= CRD_STEP_H211B; method++) {
        crd_step_options opt = options((crd_step_method)method, 1e-3);
        opt.floor = 1e-3;
        opt.ceiling = 0.1;
        crd_step s;
        crd_step_init(&opt, 1, &s);
        check_near(s.h, 0.1, 0);
        for (int n = 0; n < 200; n++) {
            check(crd_step_next(&opt, &s, 1e-12, 2) <= 0.1);
        }
        check_near(s.h, 0.1, 0);
        check(s.at_ceiling > 100);
        for (int n = 0; n < 3; n++) { // at once, whatever came before
            crd_step_next(&opt, &s, 0.1, 2);
        }
        check(s.h < 0.09);
        for (int n = 0; n < 200; n++) {
            check(crd_step_next(&opt, &s, 1e3, 2) >= 1e-3);
        }
        check_near(s.h, 1e-3, 0);
        check(s.at_floor > 100);
    }
}

static void a_broken_defect_gives_no_step(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_PI, 1e-3);
    crd_step s;
    crd_step_init(&opt, 0.01, &s);
    check(isnan(crd_step_next(&opt, &s, NAN, 1)));
    check(isnan(crd_step_next(&opt, &s, INFINITY, 1)));
    check(isnan(crd_step_next_after(&opt, &s, 0.001, NAN, 1)));
    check_near(s.h, 0.01, 0);
    check_near(s.I, log(0.01), 0);
}

static void a_rejected_step_becomes_shorter(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_H211B, 1e-3);
    crd_step s;
    crd_step_init(&opt, 0.01, &s);
    const double h = crd_step_reject(&opt, &s, 8e-3, 3); // eps at it: below tol
    check_near(h, 0.01 * 0.9 * pow(0.9 / 8, 1.0 / 3), 1e-15);
    check(8e-3 * pow(h / 0.01, 3) < 1e-3);
    check_near(crd_step_reject(&opt, &s, 1e-9, 3), 0.9 * h, 1e-15);
    check_near(crd_step_reject(&opt, &s, 1e9, 3), 0.09 * h, 1e-15);
    check_near(crd_step_reject(&opt, &s, NAN, 3), 0.009 * h, 1e-15);
    check_int(s.rejected, 4);
}

static void a_cut_step_does_not_shorten_the_next(void** state)
{
    (void)state;
    for (int method = CRD_STEP_PI; method <= CRD_STEP_H211B; method++) {
        const crd_step_options opt = options((crd_step_method)method, 1e-3);
        crd_step s;
        crd_step_init(&opt, 0.01, &s);
        check_near(crd_step_next_after(&opt, &s, 1e-7, 1e-12, 2), 0.01, 0);
        // unless it was already too long
        check(crd_step_next_after(&opt, &s, 0.005, 0.1, 2) < 0.005);
        crd_step whole;
        crd_step_init(&opt, 0.01, &whole);
        crd_step_init(&opt, 0.01, &s);
        check_near(crd_step_next_after(&opt, &s, 0.01, 2e-4, 2),
                   crd_step_next(&opt, &whole, 2e-4, 2), 0);
    }
}

static void the_first_step_makes_a_defect_below_the_tolerance(void** state)
{
    (void)state;
    const crd_step_options opt = options(CRD_STEP_PI, 1e-3);
    // y = 2 sin(3 t): derivatives 0, 6, 0; and its quadrature
    const crd_sample y[2] = {{{0, 6, 0}, 2}, {{2, 0, -18}, 2}};
    // hold: |y'| h / sqrt(3) = tol for the first
    check_near(crd_step_first(&opt, 1, y, 1, 1e3), 0.1 * 1e-3 * sqrt(3) / 6, 1e-12);
    // taylor1 has y'' h^2 / (2 sqrt(5)) of the second
    check_near(crd_step_first(&opt, 2, y, 2, 1e3), 0.1 * sqrt(1e-3 * 2 * sqrt(5) / 18), 1e-12);
    // taylor2: y''' = omega y'' = 3 * 18, continued
    check_near(crd_step_first(&opt, 2, y, 3, 1e3), 0.1 * cbrt(1e-3 * 6 * sqrt(7) / 54), 1e-12);
    check_near(crd_step_first(&opt, 2, y, 5, 1e3), crd_step_first(&opt, 2, y, 3, 1e3), 0);
    // nothing moves: by the span; nothing is known: carefully
    const crd_sample rest = {{1, 0, 0}, 2}, blind = {{1, 0, 0}, 0};
    check_near(crd_step_first(&opt, 1, &rest, 3, 10), 0.01, 1e-15);
    check_near(crd_step_first(&opt, 1, &blind, 1, 10), 1e-5, 1e-18);
    crd_step_options narrow = opt;
    narrow.floor = 0.02;
    check_near(crd_step_first(&narrow, 2, y, 1, 1e3), 0.02, 0);
}

static void bad_options_are_named(void** state)
{
    static const struct {
        double tol, h1, kp, theta_max, safety, floor, ceiling;
        const char* says;
    } rows[] = {
        {0, 1, 0.1, 2, 0.9, 1e-9, 1, "tol = 0"},    {-1, 1, 0.1, 2, 0.9, 1e-9, 1, "tol = -1"},
        {NAN, 1, 0.1, 2, 0.9, 1e-9, 1, "tol = "},   {1, -1, 0.1, 2, 0.9, 1e-9, 1, "h1 = -1"},
        {1, 1, -0.1, 2, 0.9, 1e-9, 1, "kp = -0.1"}, {1, 1, 0.1, 1, 0.9, 1e-9, 1, "theta_max = 1"},
        {1, 1, 0.1, 2, 0, 1e-9, 1, "safety = 0"},   {1, 1, 0.1, 2, 0.9, 0, 1, "floor = 0"},
        {1, 1, 0.1, 2, 0.9, 2, 1, "ceiling = 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        crd_step_options opt = options(CRD_STEP_PI, rows[i].tol);
        opt.h1 = rows[i].h1;
        opt.kp = rows[i].kp;
        opt.theta_max = rows[i].theta_max;
        opt.safety = rows[i].safety;
        opt.floor = rows[i].floor;
        opt.ceiling = rows[i].ceiling;
        check_status(crd_step_check(*state, &opt), CRD_E_RANGE);
        check_contains(crd_error_text(*state), rows[i].says);
    }
    const crd_step_options good = options(CRD_STEP_H211B, 1e-3);
    check_ok(crd_step_check(*state, &good));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pi_follows_39_line_by_line),
        cmocka_unit_test(h211b_follows_its_formula),
        cmocka_unit_test(both_controllers_settle_at_the_tolerance),
        cmocka_unit_test(h211b_never_grows_beyond_its_limiter),
        cmocka_unit_test(the_step_stays_between_floor_and_ceiling_without_windup),
        cmocka_unit_test(a_broken_defect_gives_no_step),
        cmocka_unit_test(a_rejected_step_becomes_shorter),
        cmocka_unit_test(a_cut_step_does_not_shorten_the_next),
        cmocka_unit_test(the_first_step_makes_a_defect_below_the_tolerance),
        cmocka_unit_test(bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
