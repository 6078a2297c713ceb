#include "check.h"
#include "shared/num.h"

static void a_regular_system_is_solved(void** state)
{
    double a[] = {2, 1, 0, -1, 3, 1, 0, 4, -2}; // column by column
    const double want[] = {1.5, -2, 0.25};
    double b[3] = {0}, x[3], work[9];
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) {
            b[i] += a[3 * j + i] * want[j];
        }
    }
    check_int(crdi_num_least_squares(3, 3, a, b, 0, x, work), 3);
    for (int i = 0; i < 3; i++) {
        check_near(x[i], want[i], 1e-14);
        check_near(b[i], 0, 1e-14);
    }
}

static void the_line_of_least_squares_is_the_textbooks(void** state)
{
    double a[] = {1, 1, 1, 1, 0, 1, 2, 3}; // 1, t
    double b[] = {1, 3, 2, 5}, x[2], work[4];
    check_int(crdi_num_least_squares(4, 2, a, b, 1e-12, x, work), 2);
    check_near(x[0], 1.1, 1e-14);
    check_near(x[1], 1.1, 1e-14);
    const double rest[] = {-0.1, 0.8, -1.3, 0.6};
    for (int i = 0; i < 4; i++) {
        check_near(b[i], rest[i], 1e-14);
    }
}

static void dependent_columns_are_left_out(void** state)
{
    double a[] = {1, 0, 0, 2, 0, 0, 1, 1, 0, 0, 0, 0};
    double b[] = {3, 4, 5}, x[4], work[16];
    check_int(crdi_num_least_squares(3, 4, a, b, 1e-10, x, work), 2);
    check_near(x[0], -1, 1e-14);
    check_near(x[1], 0, 0);
    check_near(x[2], 4, 1e-14);
    check_near(x[3], 0, 0);
    check_near(b[2], 5, 1e-14);
}

static void nearly_dependent_columns_keep_their_digits(void** state)
{
    const double e = 1e-7; // normal equations would lose it: e^2 is below rounding beside 1
    double a[] = {1, e, 0, 1, 0, e};
    double b[] = {3, e, 2 * e}, x[2], work[4]; // x = 1, 2
    check_int(crdi_num_least_squares(3, 2, a, b, 1e-10, x, work), 2);
    check_near(x[0], 1, 1e-8);
    check_near(x[1], 2, 1e-8);
}

static void nothing_gives_nothing(void** state)
{
    double b[] = {1, 2};
    check_int(crdi_num_least_squares(2, 0, NULL, b, 0, NULL, NULL), 0);
    double a[] = {NAN, 1, 0, 1}, x[2], work[4];
    check_int(crdi_num_least_squares(2, 2, a, b, 0, x, work), 1);
    check_near(x[0], 0, 0);
    check_near(x[1], 2, 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_regular_system_is_solved),
        cmocka_unit_test(the_line_of_least_squares_is_the_textbooks),
        cmocka_unit_test(dependent_columns_are_left_out),
        cmocka_unit_test(nearly_dependent_columns_keep_their_digits),
        cmocka_unit_test(nothing_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
