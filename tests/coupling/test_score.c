// Sprague and Geers' comparison.
#include "coupling_test.h"

static crd_metrics compare(const double* y, const double* e, int n)
{
    crd_score s = {0};
    for (int i = 0; i < n; i++) {
        crd_score_add(&s, y[i], e[i]);
    }
    check_int(s.count, n);
    return crd_score_metrics(&s);
}

static void an_exact_estimate_has_no_error(void** state)
{
    (void)state;
    const double y[4] = {1, -2, 3, 4};
    const crd_metrics m = compare(y, y, 4);
    check(m.M == 0 && m.rms == 0 && m.worst == 0);
    check_near(m.P, 0, 1e-7); // the angle of a cosine near 1
    check_near(m.C, 0, 1e-7);
}

static void half_the_amplitude_is_a_magnitude_error_alone(void** state)
{
    (void)state;
    const double y[3] = {2, -4, 6}, half[3] = {1, -2, 3}, twice[3] = {4, -8, 12};
    crd_metrics m = compare(y, half, 3);
    check_near(m.M, 1, 1e-15); // as printed: sqrt(yy / ee) - 1
    check_near(m.P, 0, 1e-7);
    check_near(m.worst, 3, 0);
    check_near(m.rms, sqrt(14.0 / 3), 1e-15);
    m = compare(y, twice, 3);
    check_near(m.M, -0.5, 1e-15);
}

static void a_quarter_period_late_is_half_a_phase(void** state)
{
    (void)state;
    enum { N = 1000 };
    double y[N], e[N];
    for (int i = 0; i < N; i++) {
        y[i] = sin(2 * acos(-1) * i / N);
        e[i] = -cos(2 * acos(-1) * i / N);
    }
    const crd_metrics m = compare(y, e, N);
    check_near(m.M, 0, 1e-12);
    check_near(m.P, 0.5, 1e-12);
    check_near(m.C, 0.5, 1e-12);
}

static void the_opposite_is_a_phase_of_one(void** state)
{
    (void)state;
    const double y[3] = {1, 2, 3}, e[3] = {-1, -2, -3};
    check_near(compare(y, e, 3).P, 1, 1e-7);
}

static void nothing_to_compare_is_no_number(void** state)
{
    (void)state;
    const double zero[2] = {0, 0}, one[2] = {1, 1};
    check(isnan(compare(zero, one, 2).C) && isnan(compare(one, zero, 2).C));
    check(isnan(compare(zero, zero, 0).M));
    check_near(compare(zero, one, 2).rms, 1, 0);
}

static void scale_does_not_matter_even_at_the_edge_of_numbers(void** state)
{
    (void)state;
    const double y[3] = {1, 2, 4}, e[3] = {1.5, 2, 3};
    const double C = compare(y, e, 3).C;
    for (int k = -150; k <= 150; k += 30) {
        double Y[3], E[3];
        for (int i = 0; i < 3; i++) {
            Y[i] = y[i] * pow(10, k);
            E[i] = e[i] * pow(10, k);
        }
        check_near(compare(Y, E, 3).C, C, 1e-7);
    }
}

static void a_small_error_on_a_large_constant_is_told(void** state)
{
    (void)state;
    enum { N = 200 };
    double y[N], e[N], twice[N];
    for (int i = 0; i < N; i++) {
        const double swing = 1e-3 * sin(0.3 * i);
        y[i] = 1e6;
        e[i] = 1e6 + swing;
        twice[i] = 1e6 + 2 * swing;
    }
    const double P = compare(y, e, N).P;
    check_near(P, 1e-9 / sqrt(2) / acos(-1), 1e-12);
    check_near(compare(y, twice, N).P / P, 2, 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_estimate_has_no_error),
        cmocka_unit_test(half_the_amplitude_is_a_magnitude_error_alone),
        cmocka_unit_test(a_quarter_period_late_is_half_a_phase),
        cmocka_unit_test(the_opposite_is_a_phase_of_one),
        cmocka_unit_test(nothing_to_compare_is_no_number),
        cmocka_unit_test(scale_does_not_matter_even_at_the_edge_of_numbers),
        cmocka_unit_test(a_small_error_on_a_large_constant_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
