#include "check.h"

#include "cardan/num.h"

static void solves_a_row_major_system_that_needs_pivoting(void** state)
{
    (void)state;
    double a[] = {0, 2, 1, 1, 1, 0, 3, 0, 1}, b[] = {7, 3, 6}; // x = (1, 2, 3)
    int32_t pivots[3];
    check_ok(crd_num_solve(3, a, b, pivots));
    check_near(b[0], 1, 1e-14);
    check_near(b[1], 2, 1e-14);
    check_near(b[2], 3, 1e-14);
}

static void a_singular_matrix_is_reported(void** state)
{
    (void)state;
    double a[] = {1, 2, 2, 4}, b[] = {1, 1};
    int32_t pivots[2];
    check_status(crd_num_solve(2, a, b, pivots), CRD_E_CONVERGENCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_a_row_major_system_that_needs_pivoting),
        cmocka_unit_test(a_singular_matrix_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
