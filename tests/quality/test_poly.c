#include "check.h"
#include "quality/signals.h"

static const crd_poly quintic = {5, {1, -2, 0.5, 3, -1.5, 0.25}};

static void evaluation_and_derivatives_follow_the_coefficients(void** state)
{
    (void)state;
    check_near(crd_poly_eval(&quintic, 2), 1 - 4 + 2 + 24 - 24 + 8, 1e-14);
    check_near(crd_poly_derivative(&quintic, 0, 2), 7, 1e-14);
    check_near(crd_poly_derivative(&quintic, 1, 2), -2 + 2 + 36 - 48 + 20, 1e-13);
    check_near(crd_poly_derivative(&quintic, 2, 2), 1 + 36 - 72 + 40, 1e-13);
    check_near(crd_poly_derivative(&quintic, 5, 2), 0.25 * 120, 1e-13);
    check_near(crd_poly_derivative(&quintic, 6, 2), 0, 0);
}

static void shifting_moves_the_origin_and_back(void** state)
{
    (void)state;
    const crd_poly q = crd_poly_shift(&quintic, 0.7);
    check_near(crd_poly_eval(&q, 0.4), crd_poly_eval(&quintic, 1.1), 1e-14);
    const crd_poly back = crd_poly_shift(&q, -0.7);
    for (int i = 0; i < CRD_POLY_SIZE; i++) {
        check_near(back.c[i], quintic.c[i], 1e-14);
    }
}

static void the_mean_is_the_integral_by_the_length(void** state)
{
    (void)state;
    const double a = -0.3, b = 1.2;
    double integral = 0;
    for (int i = 0; i <= 5; i++) {
        integral += quintic.c[i] * (pow(b, i + 1) - pow(a, i + 1)) / (i + 1);
    }
    check_near(crd_poly_mean(&quintic, a, b), integral / (b - a), 1e-14);
}

static void the_mean_square_is_exact_up_to_degree_five(void** state)
{
    (void)state;
    const double a = -0.3, b = 1.2;
    double integral = 0;
    for (int i = 0; i <= 5; i++) {
        for (int j = 0; j <= 5; j++) {
            const int n = i + j + 1;
            integral += quintic.c[i] * quintic.c[j] * (pow(b, n) - pow(a, n)) / n;
        }
    }
    check_near(crd_poly_mean_square(&quintic, a, b) / (integral / (b - a)), 1, 1e-14);
    const crd_poly legendre = {5, {0, 15.0 / 8, 0, -70.0 / 8, 0, 63.0 / 8}}; // |P_5|^2 = 2/11
    check_near(crd_poly_mean_square(&legendre, -1, 1), 1.0 / 11, 1e-15);
}

static void the_maximum_is_found_inside_and_at_the_ends(void** state)
{
    (void)state;
    const crd_poly chebyshev = {5, {0, 5, 0, -20, 0, 16}}; // T_5: 1 at six places of [-1, 1]
    check_near(crd_poly_max(&chebyshev, -1, 1), 1, 1e-13);
    check_near(crd_poly_max(&chebyshev, -0.9, 0.9), 1, 1e-13);
    check_near(crd_poly_max(&chebyshev, -1.1, 1), fabs(crd_poly_eval(&chebyshev, -1.1)), 1e-14);
    const crd_poly constant = {0, {-3}};
    check_near(crd_poly_max(&constant, 0, 1), 3, 0);
    const crd_poly parabola = {2, {0.1, -1, 1}}; // -0.15 at 1/2
    check_near(crd_poly_max(&parabola, 0, 1), 0.15, 1e-15);
    const crd_poly broken = {1, {0, NAN}};
    check(isnan(crd_poly_max(&broken, 0, 1)));
}

static void the_maximum_agrees_with_dense_sampling(void** state)
{
    (void)state;
    uint64_t seed = 1;
    for (int k = 0; k < 200; k++) {
        crd_poly p = {.degree = k % CRD_POLY_SIZE};
        for (int i = 0; i <= p.degree; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            p.c[i] = (double)(seed >> 11) / 9007199254740992.0 - 0.5;
        }
        const double max = crd_poly_max(&p, -2, 1.5);
        double sampled = 0;
        for (int i = 0; i <= 2000; i++) {
            sampled = fmax(sampled, fabs(crd_poly_eval(&p, -2 + 3.5 * i / 2000)));
        }
        check(max >= sampled * (1 - 1e-12));
        check_near(max, sampled, 1e-4 * sampled);
    }
}

static void hermite_reproduces_polynomials_of_its_degree(void** state)
{
    (void)state;
    const double t0 = 0.4, h = 0.3;
    for (int n0 = 0; n0 <= 3; n0++) {
        for (int n1 = n0 == 0; n1 <= 3; n1++) {
            crd_poly p = quintic;
            p.degree = n0 + n1 - 1;
            for (int i = p.degree + 1; i < CRD_POLY_SIZE; i++) {
                p.c[i] = 0;
            }
            const crd_sample a = sample_poly(&p, t0, 2), b = sample_poly(&p, t0 + h, 2);
            const crd_poly q = crd_poly_hermite(&a, n0, &b, n1, h);
            const crd_poly want = crd_poly_shift(&p, t0);
            check_int(q.degree, p.degree);
            for (int i = 0; i < CRD_POLY_SIZE; i++) {
                check_near(q.c[i], want.c[i], 2e-10); // the fifth derivative divides by h^5
            }
        }
    }
}

static void hermite_takes_on_all_its_data(void** state)
{
    (void)state;
    const crd_sample a = {{1, -2, 3}, 2}, b = {{0.5, 4, -7}, 2};
    for (int side = -1; side <= 1; side += 2) {
        const double h = side * 0.25;
        const crd_poly p = crd_poly_hermite(&a, 3, &b, 3, h);
        for (int i = 0; i < 3; i++) {
            check_near(crd_poly_derivative(&p, i, 0), a.y[i], 1e-12);
            check_near(crd_poly_derivative(&p, i, h), b.y[i], 1e-10);
        }
    }
}

static void the_quintic_reconstruction_is_of_order_six(void** state)
{
    (void)state;
    double h[4], e[4];
    for (int k = 0; k < 4; k++) {
        h[k] = 0.8 / (1 << k);
        const crd_sample a = sample_sine(1, 0.9, 2), b = sample_sine(1, 0.9 + h[k], 2);
        const crd_poly p = crd_poly_hermite(&a, 3, &b, 3, h[k]);
        e[k] = fabs(crd_poly_eval(&p, h[k] / 2) - sample_sine(1, 0.9 + h[k] / 2, 0).y[0]);
    }
    check_near(slope_of(4, h, e), 6, 0.1);
}

static void taylor_polynomials_of_inputs_and_outputs(void** state)
{
    (void)state;
    const crd_sample s = {{1, 2, 6}, 2};
    const crd_poly u = crd_poly_taylor(&s, 2), u1 = crd_poly_taylor(&s, 1);
    check_int(u.degree, 2);
    check_near(u.c[2], 3, 0);
    check_int(u1.degree, 1);
    check_near(u1.c[2], 0, 0);
    const crd_sample less = {{1, 2, 0}, 1};
    check_int(crd_poly_taylor(&less, 2).degree, 1);
    const double h = 0.2; // about its end, written from the start
    const crd_poly y = crd_poly_output(&s, 2, h);
    check_near(crd_poly_eval(&y, h), 1, 1e-15);
    check_near(crd_poly_derivative(&y, 1, h), 2, 1e-15);
    check_near(crd_poly_eval(&y, 0), 1 - 2 * h + 3 * h * h, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_and_derivatives_follow_the_coefficients),
        cmocka_unit_test(shifting_moves_the_origin_and_back),
        cmocka_unit_test(the_mean_is_the_integral_by_the_length),
        cmocka_unit_test(the_mean_square_is_exact_up_to_degree_five),
        cmocka_unit_test(the_maximum_is_found_inside_and_at_the_ends),
        cmocka_unit_test(the_maximum_agrees_with_dense_sampling),
        cmocka_unit_test(hermite_reproduces_polynomials_of_its_degree),
        cmocka_unit_test(hermite_takes_on_all_its_data),
        cmocka_unit_test(the_quintic_reconstruction_is_of_order_six),
        cmocka_unit_test(taylor_polynomials_of_inputs_and_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
