#include "check.h"
#include "shared/study.h"

#include <math.h>

typedef struct fixture {
    crd_arena arena;
    crdi_study_file f;
    crdi_points* d;
    crdi_study_value values[8];
} fixture;

static void make(crd_context* ctx, fixture* x, const char* text)
{
    crd_arena_init(&x->arena, ctx);
    check_ok(crdi_study_file_read(ctx, text, strlen(text), "study.yaml", &x->arena, &x->f));
    check_ok(crdi_points_create(ctx, &x->f, &x->d));
}

static void clear(fixture* x)
{
    crdi_points_destroy(x->d);
    crd_arena_clear(&x->arena);
}

#define HEAD "study: 1\nsystem: s.yaml\nkeep: { y: a.y }\n"

static void a_grid_is_the_product_of_its_lists(void** state)
{
    fixture x;
    uint64_t key, keys[12];
    make(*state, &x, HEAD "vary:\n  a.p: [1, 2, 3]\n  a.q: { from: 0 s, to: 6 s, step: 2 s }\n");
    check_int(crdi_points_count(&x.f), 12);
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        check(crdi_points_point(x.d, i, x.values, &keys[i]));
        sum += x.values[0].x * 10 + x.values[1].x;
        for (int k = 0; k < i; k++) {
            check(keys[k] != keys[i]);
        }
    }
    check_near(sum, 4 * 60 + 3 * 12, 0);
    check_text(x.f.factors[1].unit, "s");
    clear(&x);
    // A longer list keeps the keys of the points that were there.
    fixture y;
    make(*state, &y, HEAD "vary:\n  a.p: [1, 7, 2, 3]\n  a.q: { from: 0 s, to: 6 s, step: 2 s }\n");
    int found = 0;
    for (int i = 0; i < 16; i++) {
        check(crdi_points_point(y.d, i, y.values, &key));
        for (int k = 0; k < 12; k++) {
            found += keys[k] == key;
        }
    }
    check_int(found, 12);
    clear(&y);
}

static void conditions_exclude(void** state)
{
    fixture x;
    uint64_t key;
    int left = 0;
    make(*state, &x,
         HEAD "vary:\n  a.p: [1, 2, 3]\n  a.q: [1, 2, 3]\nexclude: [a_p == a_q, a_p*a_q > 5]\n");
    for (int i = 0; i < 9; i++) {
        left += crdi_points_point(x.d, i, x.values, &key);
    }
    check_int(left, 4); // (1,2) (1,3) (2,1) (3,1)
    clear(&x);
}

static void each_stratum_of_a_latin_hypercube_has_one_point(void** state)
{
    fixture x;
    double u[2];
    int seen[2][100] = {0};
    make(*state, &x,
         HEAD "vary:\n  a.p: { uniform: [0, 1] }\n  a.q: { normal: [0, 1] }\n"
              "sample: { method: latin, count: 100, seed: 5 }\n");
    for (int i = 0; i < 100; i++) {
        crdi_points_unit(x.d, i, u);
        seen[0][(int)(u[0] * 100)]++;
        seen[1][(int)(u[1] * 100)]++;
    }
    for (int i = 0; i < 100; i++) {
        check_int(seen[0][i], 1);
        check_int(seen[1][i], 1);
    }
    clear(&x);
}

// Every dimension is a (0, 1)-sequence, and the first two together a (0, 2)-sequence (Sobol 1967).
static void sobol_points_are_stratified(void** state)
{
    (void)state;
    uint32_t v[2][32];
    for (int d = 0; d < CRDI_SOBOL_MOST; d++) {
        int seen[256] = {0};
        crdi_sobol_directions(d, v[0]);
        for (uint32_t i = 0; i < 256; i++) {
            seen[(int)(crdi_sobol(v[0], i, 0x12345678) * 256)]++;
        }
        for (int i = 0; i < 256; i++) {
            check_int(seen[i], 1);
        }
    }
    crdi_sobol_directions(0, v[0]);
    crdi_sobol_directions(1, v[1]);
    for (int a = 0; a <= 8; a++) { // boxes of 2^-a by 2^-(8 - a)
        int seen[256] = {0};
        for (uint32_t i = 0; i < 256; i++) {
            const int x = (int)(crdi_sobol(v[0], i, 0) * (1 << a));
            const int y = (int)(crdi_sobol(v[1], i, 0) * (1 << (8 - a)));
            seen[x * (1 << (8 - a)) + y]++;
        }
        for (int i = 0; i < 256; i++) {
            check_int(seen[i], 1);
        }
    }
    // The third dimension as published by Joe and Kuo: 0, 1/2, 3/4, 1/4, 5/8, 1/8 ... in Gray's
    // order.
    static const double third[] = {0, 0.5, 0.75, 0.25, 0.625, 0.125, 0.375, 0.875};
    int found = 0;
    crdi_sobol_directions(2, v[0]);
    for (uint32_t i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++) {
            found += fabs(crdi_sobol(v[0], i, 0) - third[k]) < 1e-9;
        }
    }
    check_int(found, 8);
}

static void quantiles_are_those_of_the_distributions(void** state)
{
    // Tables of the normal distribution; the triangle beyond its peak: c - sqrt((1 - u)(c - a)(c -
    // b)).
    check_near(crdi_normal_quantile(0.975), 1.959963984540054, 1e-14);
    check_near(crdi_normal_quantile(1e-9), -5.9978070150076865, 1e-12);
    check_near(crdi_normal_quantile(0.5), 0, 1e-15);
    fixture x;
    make(*state, &x,
         HEAD
         "vary:\n  a.t: { triangular: [1, 2, 5] }\n  a.l: { lognormal: [100 N, 0.5] }\n"
         "  a.n: { normal: [10, 2], min: 8, max: 14 }\n  a.w: { uniform: [1, 6], whole: true }\n"
         "sample: { count: 1000 }\n");
    double cut[2];
    crdi_law_cut(&x.f.factors[0], cut);
    check_near(crdi_law_quantile(&x.f.factors[0], cut, 0.3), 5 - sqrt(0.7 * 4 * 3), 1e-14);
    crdi_law_cut(&x.f.factors[1], cut);
    check_near(crdi_law_quantile(&x.f.factors[1], cut, 0.975), 100 * exp(0.5 * 1.959963984540054),
               1e-10);
    uint64_t key;
    for (int i = 0; i < 1000; i++) {
        check(crdi_points_point(x.d, i, x.values, &key));
        check(x.values[2].x >= 8 && x.values[2].x <= 14);
        check(x.values[3].x == floor(x.values[3].x));
    }
    clear(&x);
}

static void what_min_and_max_leave_is_a_distribution(void** state)
{
    static const char* const empty[] = {"{ uniform: [0, 1], min: 5 }",
                                        "{ normal: [0, 1], min: 20 }",
                                        "{ uniform: [0, 9], min: 2.2, max: 2.8, whole: true }"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        crd_arena arena;
        crdi_study_file f;
        crdi_points* d = NULL;
        char text[256];
        snprintf(text, sizeof text, HEAD "vary:\n  a.p: %s\nsample: { count: 3 }\n", empty[i]);
        crd_arena_init(&arena, *state);
        check_ok(crdi_study_file_read(*state, text, strlen(text), "study.yaml", &arena, &f));
        check_int(crdi_points_create(*state, &f, &d), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "study.yaml:5: vary.a.p: an empty range: min and");
        crd_arena_clear(&arena);
    }
    fixture x;
    uint64_t key;
    make(*state, &x,
         HEAD "vary:\n  a.p: { uniform: [0, 9], min: 2.5, max: 5.5, whole: true }\n"
              "sample: { count: 400 }\n");
    int seen[10] = {0};
    for (int i = 0; i < 400; i++) { // 2 is below min, 6 above max
        check(crdi_points_point(x.d, i, x.values, &key));
        seen[(int)x.values[0].x]++;
    }
    check_int(seen[3] + seen[4] + seen[5], 400);
    check(seen[3] > 50 && seen[4] > 50 && seen[5] > 50);
    clear(&x);
}

static void a_trajectory_moves_each_factor_once(void** state)
{
    fixture x;
    double u[2][3];
    make(*state, &x,
         HEAD "vary:\n  a.p: { uniform: [0, 1] }\n  a.q: { uniform: [0, 1] }\n"
              "  a.r: { uniform: [0, 1] }\nsample: { method: morris, count: 20 }\n");
    check_int(crdi_points_count(&x.f), 80);
    for (int t = 0; t < 20; t++) {
        int moved[3] = {0};
        for (int i = 0; i < 3; i++) {
            crdi_points_unit(x.d, t * 4 + i, u[0]);
            crdi_points_unit(x.d, t * 4 + i + 1, u[1]);
            for (int j = 0; j < 3; j++) {
                if (u[0][j] == u[1][j]) { continue; }
                moved[j]++;
                check_near(fabs(u[0][j] - u[1][j]), 0.5, 1e-15);
            }
        }
        for (int j = 0; j < 3; j++) {
            check_int(moved[j], 1);
        }
    }
    clear(&x);
}

static void what_is_wrong_is_said_with_its_line(void** state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {HEAD "vary:\n  a.p: []\n", "study.yaml:5: vary.a.p: an empty list"},
        {HEAD "vary:\n  a.p: { uniform: [2, 1] }\nsample: { count: 3 }\n",
         "vary.a.p: an empty range: the first number is not below"},
        {HEAD "vary:\n  a.p: { uniform: [1, 2] }\n", "sample.count: how many points"},
        {HEAD "vary:\n  a.p: { unifrom: [1, 2] }\n", "did you mean 'uniform'"},
        {HEAD "vary:\n  a.p: [1, 2, 1]\n", "'1' is in the list twice"},
        {HEAD "vary:\n  a.p: { from: 1 s, to: 2 m, count: 3 }\n", "expected a number in s"},
        {HEAD "vary:\n  a.p: { from: 1, to: 2, step: -1 }\n", "empty or endless range"},
        {HEAD "vary:\n  a.p: [1]\nsample: { count: 4 }\n", "nothing is drawn"},
        {HEAD "vary:\n  a.p: [1]\nsample: { method: morris }\n", "without lists"},
        {"study: 1\nsystem: s.yaml\nkeep: {}\n", "nothing is kept"},
        {"study: 2\nsystem: s.yaml\nkeep: { y: a.y }\n", "expected a whole number from 1 to 1"},
        {"study: 1\nsystem: s.yaml\nkeep: { a-b: a.y }\n", "'-' in a name"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        crd_arena arena;
        crdi_study_file f;
        crd_arena_init(&arena, *state);
        check(crdi_study_file_read(*state, wrong[i].text, strlen(wrong[i].text), "study.yaml",
                                   &arena, &f) < 0);
        check_contains(crd_error_text(*state), wrong[i].says);
        crd_arena_clear(&arena);
    }
}

static void runs_travel_as_they_are_and_nonsense_does_not(void** state)
{
    fixture x;
    uint64_t key;
    char bytes[512];
    make(*state, &x, HEAD "vary:\n  a.p: [1, 2]\n  a.m: [one, two]\n");
    crdi_study_value values[2];
    double kept[1];
    crdi_study_run r = {.id = 7, .values = x.values}, back = {.values = values, .kept = kept};
    check(crdi_points_point(x.d, 3, x.values, &key));
    r.seed = crdi_points_seed(&x.f, key);
    const size_t n = crdi_study_encode_point(&x.f, &r, bytes, sizeof bytes);
    check(crdi_study_decode_point(&x.f, &back, bytes, n));
    check(back.id == 7 && back.seed == r.seed && values[0].x == 2);
    check_text(values[1].text, "two");
    for (size_t i = 0; i < n; i++) {
        check(!crdi_study_decode_point(&x.f, &back, bytes, i));
    }
    double y = 0.1;
    crdi_study_run done = {.id = 7, .state = CRDI_RUN_LIMIT, .kept = &y, .reason = "because"};
    const size_t m = crdi_study_encode_result(&x.f, &done, bytes, sizeof bytes);
    check(crdi_study_decode_result(&x.f, &back, bytes, m));
    check(back.state == CRDI_RUN_LIMIT && kept[0] == 0.1);
    check_text(back.reason, "because");
    for (size_t i = 0; i < m; i++) {
        check(!crdi_study_decode_result(&x.f, &back, bytes, i));
    }
    check_int(crdi_study_encode_point(&x.f, &r, bytes, n - 1), 0);
    clear(&x);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_set_up, check_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_grid_is_the_product_of_its_lists),
        TEST(conditions_exclude),
        TEST(each_stratum_of_a_latin_hypercube_has_one_point),
        TEST(sobol_points_are_stratified),
        TEST(quantiles_are_those_of_the_distributions),
        TEST(what_min_and_max_leave_is_a_distribution),
        TEST(a_trajectory_moves_each_factor_once),
        TEST(what_is_wrong_is_said_with_its_line),
        TEST(runs_travel_as_they_are_and_nonsense_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
