// The error-space procedure with supporting points (Baumann 2024, sec. 2.2).
#include "coupling_test.h"

enum { K = 4 };

static crd_coupling* element_of(crd_context* ctx, crd_family family, int points, crd_fit fit)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1;
    o.algorithm = CRD_ALGORITHM_ERROR_CURVES;
    o.design.family = family;
    o.design.point_count = points;
    o.design.points[0] = NAN;
    o.design.fit = fit;
    o.detection = CRD_DETECT_NONE;
    o.reaction = CRD_REACT_NONE;
    crd_coupling* c;
    check_ok(crd_coupling_create(ctx, &o, &c));
    return c;
}

// Largest error of predicting y(n) over K steps, n = 40 .. 79.
static double worst_of(crd_coupling* c, double (*y)(double n))
{
    double worst = 0;
    for (int n = 0; n < 80; n++) {
        crd_coupling_push(c, y(n), n, n);
        if (n < 40) { continue; }
        worst = fmax(worst, fabs(crd_coupling_eval(c, n + K) - y(n + K)));
    }
    crd_coupling_destroy(c);
    return worst;
}

// Lines have errors that are linear in their parameter: the points find what eq. 18 says.
static void lines_by_supporting_points_are_eros(void** state)
{
    crd_context* ctx = context_of(state);
    for (int variant = 0; variant < 4; variant++) {
        crd_coupling* c = element_of(ctx, CRD_FAMILY_LINE, variant < 2 ? 0 : 7,
                                     variant % 2 ? CRD_FIT_QUADRATIC : CRD_FIT_LINEAR);
        uint32_t seed = 7;
        double y[400];
        for (int n = 0; n < 400; n++) {
            y[n] = 10 * sin(0.07 * n) + next_normal(&seed);
            crd_coupling_push(c, y[n], n, n);
            for (int k = 0; k <= 6 && n >= 20; k += 3) {
                const double g = (k + 2.0) / (k + 1.0);
                const double slope = g * y[n] - y[n - 1] - g * y[n - k - 1] + y[n - k - 2];
                check_near(crd_coupling_eval(c, n + k), y[n] + k * slope, 1e-10);
            }
        }
        crd_coupling_destroy(c);
    }
}

static double fading(double n)
{
    return 3 + 5 * pow(0.9, n - 40);
}

static double swinging(double n)
{
    return -2 + 5 * sin(0.23 * n + 0.4);
}

// What a family contains has no error for its parameter in any past step, so that is found: exactly
// if it is a supporting point, else as well as the fit is. EROS cannot.
static void a_family_predicts_what_it_contains(void** state)
{
    crd_context* ctx = context_of(state);
    static const struct {
        crd_family family;
        double (*signal)(double);
        int exact;  // points with which the parameter is one of them
        int coarse; // with which it is not
    } rows[] = {{CRD_FAMILY_DECAY, fading, 11, 9}, {CRD_FAMILY_SWING, swinging, 0, 17}};
    for (int i = 0; i < 2; i++) {
        const double line =
            worst_of(element_of(ctx, CRD_FAMILY_LINE, 0, CRD_FIT_LINEAR), rows[i].signal);
        check(line > 0.05);
        if (rows[i].exact) {
            check(worst_of(element_of(ctx, rows[i].family, rows[i].exact, CRD_FIT_LINEAR),
                           rows[i].signal) < 1e-12);
        }
        // Twice the points, a quarter of the error of lines and an eighth of that of parabolas; not
        // to the digit, for the parameter lies elsewhere between them.
        double before[2] = {0};
        for (int points = rows[i].coarse; points <= 64; points = 2 * points - 1) {
            for (int fit = 0; fit < 2; fit++) {
                const double error =
                    worst_of(element_of(ctx, rows[i].family, points, (crd_fit)fit), rows[i].signal);
                check(error < 0.2 * line);
                if (points > rows[i].coarse) { check(error < 0.7 * before[fit]); }
                before[fit] = error;
            }
            check(before[1] < before[0]);
        }
    }
}

// Given points are the ones that are used: with one of them right it is exact, and with none near
// the least error at a point counts.
static void the_points_may_be_placed(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1;
    o.algorithm = CRD_ALGORITHM_ERROR_CURVES;
    o.design.family = CRD_FAMILY_SWING;
    o.design.point_count = 3;
    o.design.points[0] = 0.1;
    o.design.points[1] = 0.23;
    o.design.points[2] = 0.4;
    o.detection = CRD_DETECT_NONE;
    crd_coupling* c;
    check_ok(crd_coupling_create(ctx, &o, &c));
    check(worst_of(c, swinging) < 1e-9); // at n = 47 the error has next to no slope there
    // Decay: 0.2 and 0.3 only. All errors are negative, nearest to zero at 0.3.
    o.design.family = CRD_FAMILY_DECAY;
    o.design.point_count = 2;
    o.design.points[0] = 0.2;
    o.design.points[1] = 0.3;
    check_ok(crd_coupling_create(ctx, &o, &c));
    for (int n = 0; n < 60; n++) {
        crd_coupling_push(c, fading(n), n, n);
    }
    const double change = fading(59) - fading(58);
    const double sum = 0.3 + 0.09 + 0.027 + 0.0081;
    check_near(crd_coupling_eval(c, 59 + K), fading(59) + change * sum, 1e-12);
    crd_coupling_destroy(c);
}

static void constants_and_steps_pass(void** state)
{
    crd_context* ctx = context_of(state);
    for (int family = 0; family <= CRD_FAMILY_SWING; family++) {
        crd_coupling* c = element_of(ctx, (crd_family)family, 0, CRD_FIT_QUADRATIC);
        for (int n = 0; n < 100; n++) {
            const double y = n < 50 ? 4 : 1e6;
            crd_coupling_push(c, y, n, n);
            const double x = crd_coupling_eval(c, n + K);
            check(isfinite(x));
            if (n < 50 || n > 75) { check_near(x, y, 0); }
        }
        crd_coupling_destroy(c);
    }
}

static void what_makes_no_sense_is_refused(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling* c;
    for (int i = 0; i < 5; i++) {
        crd_coupling_options o = crd_coupling_defaults();
        static const char* const says[] = {"family", "errors", "number of points", "point 2",
                                           "fit"};
        o.step = 1;
        o.algorithm = CRD_ALGORITHM_ERROR_CURVES;
        if (i == 0) { o.design.family = (crd_family)9; }
        if (i == 1) { o.design.errors = 1; }
        if (i == 2) { o.design.point_count = CRD_POINTS_MAX + 1; }
        if (i == 3) { o.design.point_count = 2; }
        if (i == 4) { o.design.fit = (crd_fit)2; }
        check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), says[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(lines_by_supporting_points_are_eros),
        coupling_unit_test(a_family_predicts_what_it_contains),
        coupling_unit_test(the_points_may_be_placed),
        coupling_unit_test(constants_and_steps_pass),
        coupling_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
