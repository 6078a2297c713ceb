// Verdicts about filters, on sequences whose statistics are known.
#include "cardan/twin.h"
#include "check.h"
#include "noise.h"

enum { ROWS = 400, RUNS = 200 };

typedef struct counts {
    int consistent, confident, cautious;
} counts;

// AR(1) of variance scale^2 and correlation r from row to row; 1: one draw for all rows
static counts judge_many(double scale, double r, int width, bool correlated)
{
    static double z[ROWS * 3];
    counts c = {0};
    noise seeded = {.state = 11};
    for (int run = 0; run < RUNS; run++) {
        for (int k = 0; k < width; k++) {
            double x = noise_next(&seeded);
            for (int i = 0; i < ROWS; i++) {
                z[i * width + k] = scale * x;
                x = r * x + sqrt(1 - r * r) * noise_next(&seeded);
            }
        }
        const crd_consistency now = crd_consistency_judge(z, width, width, ROWS, correlated);
        c.consistent += now.verdict == CRD_VERDICT_CONSISTENT;
        c.confident += now.verdict == CRD_VERDICT_CONFIDENT;
        c.cautious += now.verdict == CRD_VERDICT_CAUTIOUS;
    }
    return c;
}

static void right_sequences_are_called_consistent(void** state)
{
    const double correlations[] = {0, 0.5, 0.9, 0.99, 1};
    check(judge_many(1, 0, 1, false).consistent >= 0.97 * RUNS);
    check(judge_many(1, 0, 3, false).consistent >= 0.97 * RUNS);
    for (int i = 0; i < 5; i++) {
        check(judge_many(1, correlations[i], 2, true).consistent >= 0.95 * RUNS);
        check(judge_many(1, correlations[i], 1, true).consistent >= 0.95 * RUNS);
    }
}

static void wrong_sequences_are_called_by_name(void** state)
{
    check(judge_many(1.3, 0, 1, false).confident >= 0.97 * RUNS);
    check(judge_many(0.8, 0, 1, false).cautious >= 0.97 * RUNS);
    check(judge_many(2, 0.9, 2, true).confident >= 0.9 * RUNS);
    check(judge_many(0.5, 0.5, 2, true).cautious >= 0.9 * RUNS);
}

static void bounds_and_shares_are_those_of_the_distribution(void** state)
{
    static double z[2 * ROWS]; // the second of two a row
    noise seeded = {.state = 5};
    for (int i = 0; i < ROWS; i++) {
        z[2 * i] = 100;
        z[2 * i + 1] = i % 4 == 3 ? (double)NAN : noise_next(&seeded); // a quarter is missing
    }
    const crd_consistency c = crd_consistency_judge(z + 1, 1, 2, ROWS, false);
    check_int(c.count, 300);
    check_near(c.freedom, 300, 0);
    // chi-square of 300, 0.5 % and 99.5 %: 240.66 and 366.84 (printed tables)
    check_near(c.low, 240.66 / 300, 1e-4);
    check_near(c.high, 366.84 / 300, 1e-4);
    check(c.inside > 0.91 && c.inside < 0.99);
}

static void what_is_not_there_is_not_judged(void** state)
{
    const double nan = (double)NAN, z[4] = {nan, nan, nan, 1};
    const crd_consistency c = crd_consistency_judge(z, 1, 1, 3, true);
    check_int(c.count, 0);
    check(isnan(c.mean) && c.verdict == CRD_VERDICT_NONE);
    check_int(crd_consistency_judge(z, 1, 1, 4, true).count, 1);
    check_near(crd_consistency_judge(z, 2, 2, 2, true).freedom, 1, 0);
    check_text(crd_verdict_text(CRD_VERDICT_NONE), "nothing to judge by");
    check_text(crd_verdict_text(CRD_VERDICT_CONFIDENT), "too confident");
}

static void quantities_that_follow_from_others_do_not_count(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    const char text[] = "rc\nv1 in 0 1\nr1 in a 1\nc1 a 0 1\nr2 a b 1\nc2 b 0 2\n"
                        ".output a=v(a) b=v(b) sum={v(a)+v(b)}\n.end\n";
    crd_netlist* n = NULL;
    check_ok(crd_netlist_parse(ctx, text, strlen(text), "rc.cir", NULL, &n));
    const crd_twin_sensor sensor = {"s", "v(b)", "V", 0.1};
    crd_twin_spec s = crd_twin_defaults();
    s.sensors = &sensor;
    s.sensor_count = 1;
    s.step = 0.1;
    crd_twin* w = NULL;
    check_ok(crd_twin_create(ctx, n, &s, &w));
    check_ok(crd_twin_begin(w, 0));
    const crd_twin_quantity q[3] = {
        {CRD_TWIN_OUTPUT, 0}, {CRD_TWIN_OUTPUT, 1}, {CRD_TWIN_OUTPUT, 2}};
    // at the start states are independent with sd 1: errors are their own normal form
    const double a = crd_twin_output(w, 0).value, b = crd_twin_output(w, 1).value;
    const double truth[3] = {a + 0.5, b - 2, a + b - 1.5};
    double z[3], room[3 * 4 + 4];
    crd_twin_errors(w, q, truth, 3, z, room);
    check_near(z[0], 0.5, 1e-9);
    check_near(z[1], -2, 1e-9);
    check(isnan(z[2]));
    // the sum alone has the variance 2
    crd_twin_errors(w, q + 2, truth + 2, 1, z, room);
    check_near(z[0], -1.5 / sqrt(2), 1e-9);
    const double unknown = (double)NAN;
    crd_twin_errors(w, q, &unknown, 1, z, room);
    check(isnan(z[0]));
    crd_twin_destroy(w);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_sequences_are_called_consistent),
        cmocka_unit_test(wrong_sequences_are_called_by_name),
        cmocka_unit_test(bounds_and_shares_are_those_of_the_distribution),
        cmocka_unit_test(what_is_not_there_is_not_judged),
        cmocka_unit_test(quantities_that_follow_from_others_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
