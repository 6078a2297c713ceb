#include "check.h"
#include "quality/signals.h"

static void the_connection_defect_has_its_closed_form(void** state)
{
    (void)state;
    // hold of a ramp a t: u - y = -a s, RMS a h / sqrt(3), largest a h
    const crd_poly u = {0, {2}}, y = {1, {2, 5}};
    double max = 0;
    check_near(crd_defect_connection(&u, &y, 0.1, &max), 0.5 / sqrt(3), 1e-15);
    check_near(max, 0.5, 1e-15);
    check_near(crd_defect_mean(&u, &y, 0.1), 0.25, 1e-15);
    check_near(crd_defect_connection(&y, &y, 0.1, NULL), 0, 0);
    // an input of order 1 against an output of order 2 about its end
    const crd_sample end = {{1, 2, 6}, 2};
    const double h = 0.2;
    const crd_poly out = crd_poly_output(&end, 2, h); // 1 + 2 (s-h) + 3 (s-h)^2
    const crd_poly in = {1, {1 - 2 * h, 2}};          // without the square
    check_near(crd_defect_connection(&in, &out, h, NULL), 3 * h * h / sqrt(5), 1e-15);
}

static void the_output_defect_has_its_closed_form(void** state)
{
    (void)state;
    for (int n = 0; n <= 2; n++) { // |d| 2^(n+1) / sqrt(2n+3)
        check_near(crd_defect_mid(0, n + 1, -3), 3 * pow(2, n + 1) / sqrt(2 * n + 3), 1e-14);
    }
    // quintic: 64 sqrt(6! 6! / 13!)
    check_near(crd_defect_mid(3, 3, 1), 64 * sqrt(720.0 * 720 / 6227020800.0), 1e-15);
    check_near(crd_defect_mid(2, 1, 1), crd_defect_mid(1, 2, 1), 1e-15);
}

// An output of one degree more than its polynomial has exactly the estimated defect.
static void the_output_estimate_is_exact_where_one_more_order_is_all_there_is(void** state)
{
    (void)state;
    for (int n = 0; n <= 2; n++) {
        crd_poly y = {n + 1, {0.3, -1, 2, 0.7}};
        for (int i = n + 2; i < CRD_POLY_SIZE; i++) {
            y.c[i] = 0;
        }
        const double t = 0.8, h = 0.25;
        const crd_sample end = sample_poly(&y, t, 2);
        const crd_poly taylor = crd_poly_output(&end, n, h);
        const crd_poly truth = crd_poly_shift(&y, t - h);
        const crd_poly d = crd_poly_minus(&taylor, &truth);
        check_near(crd_defect_output(&end, n, h, crd_poly_eval(&y, t - h / 2)),
                   sqrt(crd_poly_mean_square(&d, 0, h)), 1e-14);
    }
}

static void the_two_point_estimate_is_exact_on_degree_six(void** state)
{
    (void)state;
    // y = s^3 (h-s)^3 has zero data at both ends; its defect is itself.
    const double h = 0.5;
    const crd_sample zero = {.order = 2};
    const crd_poly u = {0};
    const crd_defect d = crd_defect_two_point(&u, &zero, &zero, h, pow(h / 2, 6));
    check_near(d.connection, 0, 0);
    check_near(d.output, pow(h, 6) * sqrt(720.0 * 720 / 6227020800.0), 1e-15);
    check(isnan(crd_defect_two_point(&u, &zero, &zero, h, NAN).output));
    check_near(crd_defect_two_point(&u, &zero, &zero, h, NAN).connection, 0, 0);
}

static void the_two_point_connection_defect_is_the_true_prediction_error(void** state)
{
    (void)state;
    const double h = 0.05, t = 0.4;
    crd_history y = {0};
    const crd_sample a = sample_sine(2, t - h, 2), b = sample_sine(2, t, 2);
    crd_history_push(&y, 0, &a);
    crd_history_push(&y, h, &b);
    const crd_sample end = sample_sine(2, t + h, 2);
    for (int p = CRD_PREDICT_HOLD; p <= CRD_PREDICT_HERMITE; p++) {
        const crd_poly u = crd_predict((crd_predictor)p, &y, h);
        double square = 0;
        for (int i = 0; i < 1000; i++) {
            const double s = h * (i + 0.5) / 1000;
            const double d = crd_poly_eval(&u, s) - sample_sine(2, t + s, 0).y[0];
            square += d * d / 1000;
        }
        const crd_defect d =
            crd_defect_two_point(&u, &b, &end, h, sample_sine(2, t + h / 2, 0).y[0]);
        check_near(d.connection / sqrt(square), 1, 2e-3);
        check(d.output < 1e-9);
        check(d.max >= d.connection);
    }
}

// Of a polynomial of degree n0 + n1 the interpolation from both ends misses one term, and the
// sample before tells it; in unequal steps too.
static void what_interpolation_misses_is_told_by_the_sample_before(void** state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        const double h = 0.2, b = 0.3;
        crd_poly y = {.degree = 2 * order + 2, .c = {1, -2, 3, 0.5, -4, 2}};
        if (order == 2) { y.degree = 5; } // nothing is missed of degree 5
        const crd_sample before = sample_poly(&y, -b, order), start = sample_poly(&y, 0, order),
                         end = sample_poly(&y, h, order);
        crd_history past = {0};
        crd_history_push(&past, 0, &before);
        check_near(crd_history_missed(&past, h, &end), 0, 0); // nobody before it
        crd_history_push(&past, b, &start);
        const crd_poly p = crd_poly_hermite(&start, order + 1, &end, order + 1, h);
        const crd_poly off = crd_poly_minus(&y, &p);
        const double missed = crd_history_missed(&past, h, &end);
        check_near(missed, crd_poly_eval(&off, h / 2), 1e-13);
        check_near(crd_defect_mid_mean(order + 1, order + 1, missed), crd_poly_mean(&off, 0, h),
                   1e-13);
    }
}

static void slopes_that_are_all_off_alike_tell_the_course_all_the_same(void** state)
{
    (void)state;
    const double h = 0.2, steps[] = {0.1, 0.3, 0.15};
    const crd_poly y = {.degree = 5, .c = {1, -2, 3, 0.5, -4, 2}};
    crd_history past = {0};
    double t = -0.55;
    for (int i = 0; i < 4; i++) {
        crd_sample s = sample_poly(&y, t, 1);
        s.y[1] += 7;
        crd_history_push(&past, i ? steps[i - 1] : 0, &s);
        t += i < 3 ? steps[i] : 0;
    }
    crd_sample end = sample_poly(&y, h, 1);
    end.y[1] += 7;
    crd_poly found;
    check(crd_history_by_slopes(&past, h, &end, &found));
    for (int i = 0; i <= 10; i++) {
        check_near(crd_poly_eval(&found, 0.1 * i * h), crd_poly_eval(&y, 0.1 * i * h), 1e-12);
    }
    crd_history_cut(&past);
    check(!crd_history_by_slopes(&past, h, &end, &found));
}

static void moments_are_legendre_coefficients(void** state)
{
    (void)state;
    const double h = 0.5;
    const crd_poly p = {.degree = 4, .c = {1, -2, 3, 0.5, -4}};
    for (int degree = 0; degree < 3; degree++) { // the nearest leaves out what is above
        const crd_poly near = crd_poly_nearest(&p, degree, h), off = crd_poly_minus(&p, &near);
        for (int k = 0; k <= degree; k++) {
            check_near(crd_poly_moment(&near, k, h), crd_poly_moment(&p, k, h), 1e-14);
            check_near(crd_poly_moment(&off, k, h), 0, 1e-14);
        }
    }
    const crd_poly cubic = {.degree = 3, .c = {-1, 12, -30, 20}}; // the third, over [0, 1]
    check_near(crd_poly_moment(&cubic, 3, 1), 1, 1e-14);
    check_near(crd_poly_moment(&cubic, 2, 1), 0, 1e-13);
}

static void schemes_differ_in_start_and_feedthrough(void** state)
{
    (void)state;
    const crd_sample s = {{1, 2, 3}, 2};
    for (int i = 0; i < 3; i++) {
        crd_defect_scheme v = CRD_DEFECT_STRICT;
        check(crd_defect_scheme_find(crd_defect_scheme_name((crd_defect_scheme)i), &v));
        check_int(v, i);
        const crd_sample first = crd_defect_scheme_initial(v, &s);
        check_int(first.order, 2);
        check_near(first.y[0], 1, 0);
        check_near(first.y[1], v == CRD_DEFECT_PROGRAM ? 0 : 2, 0);
        check_near(first.y[2], v == CRD_DEFECT_PROGRAM ? 0 : 3, 0);
        check(crd_defect_scheme_refreshes(v) == (v != CRD_DEFECT_STRICT));
    }
    crd_defect_scheme v;
    check(!crd_defect_scheme_find("loose", &v));
}

static void a_run_sums_squares_over_time(void** state)
{
    (void)state;
    crd_defect_sum sum = {0};
    check_near(crd_defect_rms(&sum), 0, 0);
    crd_defect_add(&sum, 0.1, 0.1, 3, 4);
    crd_defect_add(&sum, 0.4, 0.3, 1, 7);
    check_near(crd_defect_rms(&sum), sqrt((0.1 * 9 + 0.3) / 0.4), 1e-15);
    check_near(sum.max, 7, 0);
    check_near(sum.max_time, 0.4, 0);
    check_near(sum.rms_max, 3, 0);
    check_int(sum.broken, 0);
}

static void a_broken_signal_is_not_hidden(void** state)
{
    (void)state;
    crd_defect_sum sum = {0};
    crd_defect_add(&sum, 0.1, 0.1, 3, 4);
    crd_defect_add(&sum, 0.2, 0.1, NAN, NAN);
    check_int(sum.steps, 2);
    check_int(sum.broken, 1);
    check(isnan(crd_defect_rms(&sum)));
    check_near(sum.max, 4, 0);
    check(isnan(crd_defect_larger(NAN, 1)));
    check(isnan(crd_defect_larger(1, NAN)));
    check_near(crd_defect_larger(1, 2), 2, 0);
    check_near(crd_defect_larger(2, 1), 2, 0);
    const crd_poly u = {1, {0, NAN}}, y = {0};
    double max = 0;
    check(isnan(crd_defect_connection(&u, &y, 0.1, &max)));
    check(isnan(max));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_connection_defect_has_its_closed_form),
        cmocka_unit_test(the_output_defect_has_its_closed_form),
        cmocka_unit_test(the_output_estimate_is_exact_where_one_more_order_is_all_there_is),
        cmocka_unit_test(the_two_point_estimate_is_exact_on_degree_six),
        cmocka_unit_test(the_two_point_connection_defect_is_the_true_prediction_error),
        cmocka_unit_test(what_interpolation_misses_is_told_by_the_sample_before),
        cmocka_unit_test(slopes_that_are_all_off_alike_tell_the_course_all_the_same),
        cmocka_unit_test(moments_are_legendre_coefficients),
        cmocka_unit_test(schemes_differ_in_start_and_feedthrough),
        cmocka_unit_test(a_run_sums_squares_over_time),
        cmocka_unit_test(a_broken_signal_is_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
