#include "cardan/results.h"
#include "check.h"
#include "results/mdf_maker.h"

#include <stdio.h>

static crd_table* parse(crd_context* ctx, const char* name, const char* text)
{
    crd_table* t = NULL;
    check_ok(crd_table_parse(ctx, text, strlen(text), name, &t));
    return t;
}

static crd_status compare(crd_context* ctx, const char* a, const char* b,
                          const crd_compare_options* opt, crd_comparison** out)
{
    crd_table *ta = parse(ctx, "a.csv", a), *tb = parse(ctx, "b.csv", b);
    const crd_status st = crd_compare(ctx, ta, tb, opt, out);
    crd_table_destroy(ta); // the comparison does not need them any more
    crd_table_destroy(tb);
    return st;
}

static void equal_results_are_equal(void** state)
{
    const char* text = "time,x,m,e\n0,1,on,nan\n1,inf,off,\n2,3,on,-inf\n";
    crd_comparison* c = NULL;
    const crd_compare_options exact = {.relative = 0, .absolute = 0};
    check_ok(compare(*state, text, text, &exact, &c));
    check_int(c->signal_count, 3);
    check_int(c->different_count, 0);
    check_near(c->start, 0, 0);
    check_near(c->stop, 2, 0);
    for (int i = 0; i < 3; i++) {
        check(!c->signals[i].differs && isnan(c->signals[i].first_time));
        check_near(c->signals[i].max_error, 0, 0);
    }
    crd_comparison_destroy(c);
    crd_comparison_destroy(NULL);
}

static void signals_of_two_names_are_compared_in_pairs(void** state)
{
    const char *a = "time,x,y\n0,1,5\n1,2,6\n", *b = "time,u.x,y\n0,1,9\n1,2.5,9\n";
    const crd_pair pairs[] = {{"x", "u.x"}, {"x", "y"}};
    crd_compare_options opt = crd_compare_defaults();
    opt.pairs = pairs;
    opt.pair_count = 2;
    crd_comparison* c = NULL;
    check_ok(compare(*state, a, b, &opt, &c));
    check_int(c->signal_count, 2); // y itself is not asked for
    check_int(c->different_count, 2);
    check_text(c->signals[0].name, "x=u.x");
    check_near(c->signals[0].max_error, 0.5, 1e-15);
    check_near(c->signals[0].first_time, 1, 0);
    check_near(c->signals[1].max_error, 8, 1e-15);
    crd_comparison_destroy(c);
    const crd_pair absent[] = {{"x", "u.z"}};
    opt.pairs = absent;
    opt.pair_count = 1;
    check_status(compare(*state, a, b, &opt, &c), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "b.csv has no signal 'u.z'");
}

static void a_difference_is_located_and_measured(void** state)
{
    crd_comparison* c = NULL;
    check_ok(compare(*state, "time,x,y\n0,0,1\n1,10,1\n2,20,1\n3,30,1\n",
                     "time,x,y\n0,0,1\n1,10.001,1\n2,20.002,1\n3,30,1\n", NULL, &c));
    check_int(c->signal_count, 2);
    check_int(c->different_count, 1);
    const crd_difference* d = &c->signals[0];
    check_text(d->name, "x");
    check(d->differs && !d->only_in_a && !d->only_in_b);
    check_near(d->first_time, 1, 0);
    check_near(d->max_error, 0.002, 1e-12);
    check_near(d->max_error_time, 2, 0);
    check_near(d->value_a, 20, 0);
    check_near(d->value_b, 20.002, 0);
    check_near(d->rms_error, sqrt((1e-6 + 4e-6) / 4), 1e-12);
    check_near(d->tolerance, 1e-12 + 1e-9 * 30, 1e-20);
    crd_comparison_destroy(c);

    const crd_compare_options wide = {.relative = 1e-3};
    check_ok(compare(*state, "time,x\n0,0\n1,10\n", "time,x\n0,0\n1,10.001\n", &wide, &c));
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
}

static void other_grids_are_interpolated_where_both_have_values(void** state)
{
    crd_comparison* c = NULL; // x = 2t on both, on different grids and times
    check_ok(compare(*state, "time,x\n-1,-2\n0,0\n0.3,0.6\n0.7,1.4\n1.9,3.8\n4,99\n",
                     "time,x\n0,0\n1,2\n2,4\n3,6\n", NULL, &c));
    check_near(c->start, 0, 0);
    check_near(c->stop, 3, 0);
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    check_status(compare(*state, "time,x\n0,0\n1,2\n", "time,x\n5,0\n6,2\n", NULL, &c),
                 CRD_E_RANGE);
    check_contains(crd_error_text(*state), "a.csv covers 0 to 1 s, b.csv covers 5 to 6 s");
    check_status(compare(*state, "time,x\n0,0\n", "time,x\n", NULL, &c), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "b.csv has no rows");
    check_ok(compare(*state, "time,x\n", "time,x\n", NULL, &c));
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
}

static void jumps_at_one_time_are_compared_side_by_side(void** state)
{
    const char* a = "time,x\n0,0\n1,1\n1,5\n2,6\n";
    crd_comparison* c = NULL;
    check_ok(compare(*state, a, a, NULL, &c));
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    check_ok(compare(*state, a, "time,x\n0,0\n1,1\n1,3\n1,5\n2,6\n", NULL, &c)); // one more row
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    check_ok(compare(*state, a, "time,x\n0,0\n1,2\n1,5\n2,6\n", NULL, &c));
    check_int(c->different_count, 1);
    check_near(c->signals[0].max_error, 1, 0);
    crd_comparison_destroy(c);
}

static void missing_signals_nan_and_texts_differ(void** state)
{
    crd_comparison* c = NULL;
    check_ok(compare(*state, "time,a,n,t,k\n0,1,1,on,1\n1,1,2,off,2\n",
                     "time,n,t,b,k\n0,1,on,1,1\n1,nan,on,1,two\n", NULL, &c));
    check_int(c->signal_count, 5);
    check_int(c->different_count, 5);
    check(c->signals[0].only_in_a && c->signals[0].differs);
    check_text(c->signals[1].name, "n");
    check_near(c->signals[1].first_time, 1, 0);
    check(isinf(c->signals[1].max_error));
    check_near(c->signals[1].rms_error, 0, 0);
    check_text(c->signals[2].name, "t");
    check_near(c->signals[2].first_time, 1, 0);
    check_text(c->signals[3].name, "k"); // a number against a text
    check_near(c->signals[3].first_time, 1, 0);
    check_text(c->signals[4].name, "b");
    check(c->signals[4].only_in_b);
    crd_comparison_destroy(c);
}

static void constants_are_compared_relative_to_their_size(void** state)
{
    crd_comparison* c = NULL;
    check_ok(
        compare(*state, "time,x\n0,1e6\n1,1e6\n", "time,x\n0,1000000.0001\n1,1e6\n", NULL, &c));
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    check_ok(compare(*state, "time,x\n0,1e6\n1,1e6\n", "time,x\n0,1000000.01\n1,1e6\n", NULL, &c));
    check_int(c->different_count, 1);
    crd_comparison_destroy(c);
}

static void patterns_choose_signals(void** state)
{
    const char* a = "time,m.x,m.y,n.x\n0,1,1,1\n";
    const char* b = "time,m.x,m.y,n.x\n0,1,2,3\n";
    const char* const some[] = {"*.x"};
    crd_compare_options opt = crd_compare_defaults();
    opt.patterns = some;
    opt.pattern_count = 1;
    crd_comparison* c = NULL;
    check_ok(compare(*state, a, b, &opt, &c));
    check_int(c->signal_count, 2);
    check_int(c->different_count, 1);
    crd_comparison_destroy(c);
    const char* const none[] = {"m.*", "q.*"};
    opt.patterns = none;
    opt.pattern_count = 2;
    check_status(compare(*state, a, b, &opt, &c), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "no signal of a.csv or b.csv matches 'q.*'");
    opt.pattern_count = 0;
    opt.relative = (double)NAN;
    check_status(compare(*state, a, b, &opt, &c), CRD_E_RANGE);
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_table* t = parse(ctx, "a.csv", "time,x\n0,1\n1,2\n");
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (;; failures++) {
        a.allocations = first;
        a.fail_at = first + failures;
        crd_comparison* c = NULL;
        const crd_status st = crd_compare(ctx, t, t, NULL, &c);
        if (st == CRD_OK) {
            crd_comparison_destroy(c);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(failures >= 3);
    check_int(a.live, live);
    crd_table_destroy(t);
    crd_context_destroy(ctx);
}

// Groups of an MF4 file with one signal each: `rows` rows from `start` with `step` between them,
// the values are factor * time.
typedef struct raster {
    const char* name;
    unsigned rows;
    double start, step, factor;
} raster;

static crd_table* rasters(crd_context* ctx, const char* path, const raster* all, int count)
{
    maker m = make_file("MDF", 410);
    for (int i = 0; i < count; i++) {
        const raster* r = &all[i];
        const channel_spec specs[] = {{"time", .type = 2, .sync = 1, .data_type = 4, .bits = 64},
                                      {r->name, .data_type = 4, .byte = 8, .bits = 64}};
        uint64_t channels[2];
        const uint64_t dg = make_group(&m, specs, 2, r->rows, 16, 0, channels);
        uint8_t data[16 * 128];
        for (unsigned k = 0; k < r->rows; k++) {
            put_f64(data + 16 * k, r->start + r->step * k);
            put_f64(data + 16 * k + 8, r->factor * (r->start + r->step * k));
        }
        make_link(&m, dg, 2, make_block(&m, "DT", 0, data, 16 * r->rows));
        make_chain(&m, 0, dg);
    }
    make_save(&m, path);
    crd_table* t = NULL;
    check_ok(crd_table_read(ctx, path, &t));
    return t;
}

static void each_signal_is_compared_at_its_own_times(void** state)
{
    const raster in_a[] = {{"fast", 101, 0, 0.0625, 2},
                           {"slow", 11, 0.5, 0.5, 3},
                           {"late", 5, 100, 1, 1},
                           {"twice", 3, 0, 1, 1},
                           {"twice", 9, 0, 1, 7}};
    const raster in_b[] = {{"twice", 3, 0, 1, 1},
                           {"slow", 41, 0, 0.25, 3},
                           {"fast", 9, 0, 1, 2.5},
                           {"late", 5, 0, 1, 1},
                           {"twice", 9, 0, 1, 7}};
    crd_table* a = rasters(*state, TEST_BUILD_DIR "/compare_a.mf4", in_a, 5);
    crd_table* b = rasters(*state, TEST_BUILD_DIR "/compare_b.mf4", in_b, 5);
    crd_comparison* c = NULL;
    check_ok(crd_compare(*state, a, b, NULL, &c));
    check_int(c->signal_count, 5);
    check_int(c->different_count, 2);
    check_near(c->start, 0, 0);
    check_near(c->stop, 8, 0);
    check(c->signals[0].differs); // fast: 2 t and 2.5 t
    check_near(c->signals[0].first_time, 0.0625, 0);
    check_near(c->signals[0].max_error, 0.5 * 6.25, 1e-12);
    check_near(c->signals[0].max_error_time, 6.25, 0);
    check(!c->signals[1].differs); // slow
    check(c->signals[2].differs);  // no time in common
    check(isnan(c->signals[2].first_time) && isinf(c->signals[2].max_error));
    check(!c->signals[3].differs); // the second of a name meets the second
    check(!c->signals[4].differs);
    crd_comparison_destroy(c);
    crd_table_destroy(a);
    crd_table_destroy(b);
}

static void formats_are_compared_by_their_values(void** state)
{
    const raster in_a[] = {{"x", 5, 0, 0.5, 0.1}};
    crd_table* a = rasters(*state, TEST_BUILD_DIR "/compare_a.mf4", in_a, 1);
    crd_table* b =
        parse(*state, "b.csv", "time,x\n0,0\n0.5,0.05\n1,0.1\n1.5,0.15000000000000002\n2,0.2\n");
    crd_comparison* c = NULL;
    const crd_compare_options exact = {.relative = 0, .absolute = 0};
    check_ok(crd_compare(*state, a, b, &exact, &c));
    check_int(c->signal_count, 1);
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    crd_table_destroy(a);
    crd_table_destroy(b);
}

static void empty_texts_equal_missing_numbers(void** state)
{
    crd_comparison* c = NULL;
    check_ok(compare(*state, "time,s\n0,\n1,\n", "time,s\n0,\n1,\n2,word\n", NULL, &c));
    check_int(c->different_count, 0);
    crd_comparison_destroy(c);
    check_ok(compare(*state, "time,s\n0,\n1,\n", "time,s\n0,\n1,word\n", NULL, &c));
    check_int(c->different_count, 1);
    crd_comparison_destroy(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(equal_results_are_equal),
        TEST(signals_of_two_names_are_compared_in_pairs),
        TEST(a_difference_is_located_and_measured),
        TEST(other_grids_are_interpolated_where_both_have_values),
        TEST(jumps_at_one_time_are_compared_side_by_side),
        TEST(missing_signals_nan_and_texts_differ),
        TEST(constants_are_compared_relative_to_their_size),
        TEST(patterns_choose_signals),
        TEST(each_signal_is_compared_at_its_own_times),
        TEST(formats_are_compared_by_their_values),
        TEST(empty_texts_equal_missing_numbers),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
