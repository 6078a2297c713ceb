#include "check.h"

#include "shared/num.h"

static void solves_a_row_major_system_that_needs_pivoting(void** state)
{
    double a[] = {0, 2, 1, 1, 1, 0, 3, 0, 1}, b[] = {7, 3, 6}; // x = (1, 2, 3)
    int32_t pivots[3];
    check_ok(crdi_num_solve(3, a, b, pivots));
    check_near(b[0], 1, 1e-14);
    check_near(b[1], 2, 1e-14);
    check_near(b[2], 3, 1e-14);
}

static void a_singular_matrix_is_reported(void** state)
{
    double a[] = {1, 2, 2, 4}, b[] = {1, 1};
    int32_t pivots[2];
    check_status(crdi_num_solve(2, a, b, pivots), CRD_E_CONVERGENCE);
}

static void complex_factors_give_determinant_and_solution(void** state)
{
    // [0, 1; j, 2]: needs pivoting; determinant -j
    double a[] = {0, 0, 1, 0, 0, 1, 2, 0}, det[2];
    double b[] = {2, 0, 4, 1, 1, 0, 2, 0}; // two right-hand sides: x = (1, 2) and (0, 1)
    int32_t pivots[2];
    check_ok(crdi_num_complex_factor(2, a, pivots, det));
    check_near(det[0], 0, 1e-15);
    check_near(det[1], -1, 1e-15);
    check_ok(crdi_num_complex_solve(2, 2, a, pivots, b));
    const double x[] = {1, 0, 2, 0, 0, 0, 1, 0};
    for (int i = 0; i < 8; i++) {
        check_near(b[i], x[i], 1e-14);
    }
    double singular[] = {1, 0, 2, 0, 2, 0, 4, 0};
    check_status(crdi_num_complex_factor(2, singular, pivots, det), CRD_E_CONVERGENCE);
    check_near(det[0], 0, 0);
}

static void eigenvalues_of_a_rotation_with_decay(void** state)
{
    double a[] = {-1, 3, -3, -1}, re[2], im[2];
    check_ok(crdi_num_eigenvalues(2, a, re, im));
    check_near(re[0], -1, 1e-14);
    check_near(fabs(im[0]), 3, 1e-14);
    check_near(im[0] + im[1], 0, 0);
    double bad[] = {1, NAN, 0, 1};
    check_status(crdi_num_eigenvalues(2, bad, re, im), CRD_E_CONVERGENCE);
}

static void exponential_of_a_rotation_and_of_a_nilpotent_matrix(void** state)
{
    for (double angle = 0.1; angle < 200; angle *= 7) { // with and without scaling
        double a[] = {0, angle, -angle, 0}, work[8];
        check_ok(crdi_num_expm(2, a, work));
        check_near(a[0], cos(angle), 1e-12);
        check_near(a[1], sin(angle), 1e-12);
    }
    double n[] = {0, 2, 3, 0, 0, 4, 0, 0, 0}, work[18];
    check_ok(crdi_num_expm(3, n, work));
    check_near(n[1], 2, 1e-15);
    check_near(n[2], 3 + 4, 1e-15); // the square of it over 2
    check_near(n[3], 0, 0);
    double bad[] = {INFINITY};
    check_status(crdi_num_expm(1, bad, work), CRD_E_RANGE);
}

static void fourier_transform_equals_its_sum(void** state)
{
    enum { N = 64 };
    double x[2 * N], y[2 * N];
    for (int i = 0; i < 2 * N; i++) {
        x[i] = y[i] = sin(i * i * 0.37 + 1);
    }
    crdi_num_fft(N, y);
    for (int q = 0; q < N; q++) {
        double re = 0, im = 0;
        for (int i = 0; i < N; i++) {
            const double c = cos(2 * M_PI * i * q / N), s = -sin(2 * M_PI * i * q / N);
            re += c * x[2 * i] - s * x[2 * i + 1];
            im += c * x[2 * i + 1] + s * x[2 * i];
        }
        check_near(y[2 * q], re, 1e-12);
        check_near(y[2 * q + 1], im, 1e-12);
    }
    double one[] = {3, 4};
    crdi_num_fft(1, one);
    check_near(one[0], 3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_a_row_major_system_that_needs_pivoting),
        cmocka_unit_test(a_singular_matrix_is_reported),
        cmocka_unit_test(complex_factors_give_determinant_and_solution),
        cmocka_unit_test(eigenvalues_of_a_rotation_with_decay),
        cmocka_unit_test(exponential_of_a_rotation_and_of_a_nilpotent_matrix),
        cmocka_unit_test(fourier_transform_equals_its_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
