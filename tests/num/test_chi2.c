// The chi-square distribution against printed tables (Abramowitz and Stegun, table 26.8), its
// closed forms, and the normal distribution that it becomes.
#include "check.h"
#include "shared/num.h"

static void quantiles_are_those_of_the_tables(void** state)
{
    check_near(crdi_num_chi2_quantile(0.95, 1), 3.84146, 5e-6);
    check_near(crdi_num_chi2_quantile(0.025, 1), 0.000982069, 5e-10);
    check_near(crdi_num_chi2_quantile(0.975, 3), 9.34840, 5e-6);
    check_near(crdi_num_chi2_quantile(0.005, 10), 2.15586, 5e-6);
    check_near(crdi_num_chi2_quantile(0.99, 50), 76.1539, 5e-5);
}

static void closed_forms_hold(void** state)
{
    for (double x = 0.01; x < 40; x *= 1.7) {
        check_near(crdi_num_chi2(x, 1), erf(sqrt(x / 2)), 1e-13); // the square of a normal one
        check_near(crdi_num_chi2(x, 2), 1 - exp(-x / 2), 1e-13);
    }
    check_near(crdi_num_chi2(0, 3), 0, 0);
    check_near(crdi_num_chi2(-1, 3), 0, 0);
}

static void many_degrees_of_freedom_become_normal(void** state)
{
    for (double freedom = 1e3; freedom < 1e8; freedom *= 10) {
        // Wilson and Hilferty: (x / n)^(1/3) is normal; the error of x / n falls faster than 1 / n
        const double z = 2.5758293035489004, r = 2 / (9 * freedom);
        const double want = pow(1 - r + z * sqrt(r), 3);
        check_near(crdi_num_chi2_quantile(0.995, freedom) / freedom, want, 1e-1 / freedom);
        const double low = crdi_num_chi2_quantile(0.005, freedom);
        check_near(crdi_num_chi2(low, freedom), 0.005, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(closed_forms_hold),
        cmocka_unit_test(many_degrees_of_freedom_become_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
