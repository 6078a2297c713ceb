#include "check.h"
#include "shared/study.h"

#include <math.h>
#include <stdlib.h>

static void students_quantiles(void** state)
{
    (void)state; // tables of Student's t
    check_near(crdi_student_quantile(0.975, 1), 12.706204736, 1e-6);
    check_near(crdi_student_quantile(0.975, 2), 4.302652730, 1e-6);
    check_near(crdi_student_quantile(0.975, 5), 2.570581836, 3e-3);
    check_near(crdi_student_quantile(0.975, 10), 2.228138852, 1e-4);
    check_near(crdi_student_quantile(0.975, 100), 1.983971519, 1e-7);
}

static void a_summary_is_that_of_its_finite_numbers(void** state)
{
    const double x[] = {4, NAN, 1, 3, INFINITY, 2, 5};
    crdi_study_summary s;
    check_ok(crdi_study_summarise(*state, x, 7, &s));
    check_int(s.count, 5);
    check_near(s.mean, 3, 1e-15);
    check_near(s.deviation, sqrt(2.5), 1e-15);
    check_near(s.quantiles[1], 2, 1e-15);
    check_near(s.quantiles[0], 1.2, 1e-15); // type 7
    check_near(s.mean_high - 3, 2.776445105 * sqrt(2.5 / 5), 1e-2);
}

// Ishigami and Homma (1990): f = sin x1 + 7 sin^2 x2 + 0.1 x3^4 sin x1, x uniform in +-pi.
static double ishigami(const crdi_study_value* x)
{
    return sin(x[0].x) + 7 * pow(sin(x[1].x), 2) + 0.1 * pow(x[2].x, 4) * sin(x[0].x);
}

static void design(crd_context* ctx, crd_arena* arena, const char* method, int count, int seed,
                   crdi_study_file* f, crdi_points** d)
{
    char text[512];
    snprintf(text, sizeof text,
             "study: 1\nsystem: s.yaml\nkeep: { y: a.y }\nvary:\n"
             "  a.x1: { uniform: [-3.141592653589793, 3.141592653589793] }\n"
             "  a.x2: { uniform: [-3.141592653589793, 3.141592653589793] }\n"
             "  a.x3: { uniform: [-3.141592653589793, 3.141592653589793] }\n"
             "sample: { method: %s, count: %d, seed: %d }\n",
             method, count, seed);
    check_ok(crdi_study_file_read(ctx, text, strlen(text), "study.yaml", arena, f));
    check_ok(crdi_points_create(ctx, f, d));
}

// In 95 of 100 repetitions all six indices are within their 95 % intervals.
static void ishigamis_indices_lie_in_their_intervals(void** state)
{
    enum { COUNT = 512, REPETITIONS = 100 };
    static const double first[] = {0.31390519, 0.44241114, 0},
                        total[] = {0.55758886, 0.44241114, 0.24368366};
    static double y[COUNT * 5];
    int good = 0;
    for (int seed = 1; seed <= REPETITIONS; seed++) {
        crd_arena arena;
        crdi_study_file f;
        crdi_points* d;
        crdi_study_value x[3];
        crdi_study_effect e[3];
        uint64_t key;
        crd_arena_init(&arena, *state);
        design(*state, &arena, "saltelli", COUNT, seed, &f, &d);
        check_int(crdi_points_count(&f), COUNT * 5);
        for (int i = 0; i < COUNT * 5; i++) {
            check(crdi_points_point(d, i, x, &key));
            y[i] = ishigami(x);
        }
        check_ok(crdi_study_sobol(*state, y, COUNT, 3, (uint64_t)seed, e));
        bool within = true;
        for (int j = 0; j < 3; j++) {
            within = within && e[j].first_low <= first[j] && first[j] <= e[j].first_high &&
                     e[j].total_low <= total[j] && total[j] <= e[j].total_high;
        }
        good += within;
        crdi_points_destroy(d);
        crd_arena_clear(&arena);
    }
    printf("all six indices within their intervals in %d of %d\n", good, REPETITIONS);
    check(good >= 95);
}

// mu* = mean |df/du| over steps of half the range; x3 acts by its square alone on top of sin x1.
static void morris_finds_a_linear_function_exactly(void** state)
{
    enum { COUNT = 20 };
    double y[COUNT * 4], places[3][COUNT * 4];
    const double* u[3] = {places[0], places[1], places[2]};
    crd_arena arena;
    crdi_study_file f;
    crdi_points* d;
    crdi_study_effect e[3];
    crd_arena_init(&arena, *state);
    design(*state, &arena, "morris", COUNT, 3, &f, &d);
    for (int i = 0; i < COUNT * 4; i++) {
        double p[3];
        crdi_points_unit(d, i, p);
        for (int j = 0; j < 3; j++) {
            places[j][i] = p[j];
        }
        y[i] = 3 * p[0] - 2 * p[1];
    }
    check_ok(crdi_study_morris(*state, y, u, COUNT, 3, e));
    check_near(e[0].total, 3, 1e-12);
    check_near(e[1].first, -2, 1e-12);
    check_near(e[1].total, 2, 1e-12);
    check_near(e[2].total, 0, 1e-12);
    check_near(e[0].sigma, 0, 1e-12);
    crdi_points_destroy(d);
    crd_arena_clear(&arena);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_set_up, check_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(students_quantiles),
        TEST(a_summary_is_that_of_its_finite_numbers),
        TEST(ishigamis_indices_lie_in_their_intervals),
        TEST(morris_finds_a_linear_function_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
