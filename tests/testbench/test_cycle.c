#include "cardan/results.h"
#include "check.h"
#include "shared/testbench.h"

#include <stdio.h>

/// What a cycle amounts to.
typedef struct summary {
    double duration;         // s
    double distance;         // m
    double speed_max;        // m/s
    double acceleration_max; // m/s^2
    double acceleration_min; // m/s^2, of the strongest braking
    double standstill;       // s without speed
} summary;

static summary describe(const crdi_cycle* c)
{
    summary s = {.duration = c->time[c->count - 1] - c->time[0], .speed_max = c->speed[0]};
    for (int64_t i = 1; i < c->count; i++) {
        const double h = c->time[i] - c->time[i - 1], a = c->speed[i - 1], b = c->speed[i];
        s.distance += 0.5 * h * (a + b);
        s.speed_max = fmax(s.speed_max, b);
        if (a == 0 && b == 0) { s.standstill += h; }
        if (h > 0) {
            s.acceleration_max = fmax(s.acceleration_max, (b - a) / h);
            s.acceleration_min = fmin(s.acceleration_min, (b - a) / h);
        }
    }
    return s;
}

static const char* written(const char* text)
{
    static const char path[] = TEST_BUILD_DIR "/test_cycle.csv";
    FILE* f = fopen(path, "w");
    check(f);
    fputs(text, f);
    fclose(f);
    return path;
}

// UN ECE R83: 4 x 195 s and 400 s, 4 x 1.013 km and 6.955 km, 120 km/h; accelerations of the table
// are rounded, so that its distances are 0.06 % off those of its speeds.
static void nedc_has_the_length_the_distance_and_the_maxima_of_its_definition(void** state)
{
    const crdi_cycle* c = NULL;
    check_ok(crdi_cycle_create(*state, &(crdi_cycle_source){.name = "nedc"}, &c));
    const summary s = describe(c);
    check_near(s.duration, 1180, 0);
    check_near(s.distance, 11007, 0.001 * 11007);
    check_near(s.distance, 11013.2, 0.1);
    check_near(s.speed_max, 120 / 3.6, 1e-12);
    check_near(s.acceleration_max, 1.04, 0.005);  // 15 km/h in 4 s
    check_near(s.acceleration_min, -1.39, 0.005); // 50 km/h in 10 s
    check_near(s.standstill, 4 * 60 + 40, 1e-9);
    check_near(crdi_cycle_speed(c, -1), 0, 0);
    check_near(crdi_cycle_speed(c, 13), 7.5 / 3.6, 1e-12);
    check_near(crdi_cycle_speed(c, 195 + 70), 32 / 3.6, 1e-12);
    check_near(crdi_cycle_speed(c, 780 + 340), 120 / 3.6, 1e-12);
    check_near(crdi_cycle_speed(c, 5000), 0, 0);
    crdi_cycle_destroy(*state, c);
}

static void nedc_of_the_example_is_that_of_the_library(void** state)
{
    const crdi_cycle *a = NULL, *b = NULL;
    check_ok(crdi_cycle_create(*state, &(crdi_cycle_source){.name = "nedc"}, &a));
    check_ok(crdi_cycle_create(
        *state, &(crdi_cycle_source){.name = TEST_SOURCE_DIR "/../examples/powertrain/nedc.csv"},
        &b));
    check_int(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        check_near(b->time[i], a->time[i], 0);
        check_near(b->speed[i], a->speed[i], 1e-12);
    }
    crdi_cycle_destroy(*state, a);
    crdi_cycle_destroy(*state, b);
}

static void a_column_is_found_by_name_and_converted_by_unit(void** state)
{
    const char* path = written("time,gear,wheel [m/s],v\n0,1,0,0\n10,2,20,72\n");
    const crdi_cycle* c = NULL;
    check_ok(crdi_cycle_create(*state, &(crdi_cycle_source){.name = path, .column = "wheel"}, &c));
    check_near(crdi_cycle_speed(c, 5), 10, 1e-12);
    check_near(describe(c).distance, 100, 1e-9);
    crdi_cycle_destroy(*state, c);
    check_ok(crdi_cycle_create(*state, &(crdi_cycle_source){.name = path}, &c)); // v, in km/h
    check_near(crdi_cycle_speed(c, 10), 20, 1e-12);
    crdi_cycle_destroy(*state, c);
    check_ok(crdi_cycle_create(
        *state, &(crdi_cycle_source){.name = path, .column = "v", .unit = "m/s"}, &c));
    check_near(crdi_cycle_speed(c, 10), 72, 1e-12);
    crdi_cycle_destroy(*state, c);
}

static void a_recording_of_a_drive_is_a_cycle(void** state)
{
    static const char path[] = TEST_BUILD_DIR "/test_cycle.mf4";
    const crd_column columns[] = {{.name = "car.gear", .unit = "", .description = ""},
                                  {.name = "car.speed", .unit = "km/h", .description = ""}};
    crd_recorder* r = NULL;
    const crd_recorder_options opt = {.path = path, .columns = columns, .column_count = 2};
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int i = 0; i <= 100; i++) {
        crd_word* row = crd_recorder_begin(r);
        check(row);
        row[0].real = 0.1 * i;
        row[1].real = 1;
        row[2].real = 3.6 * i; // 10 m/s^2
        crd_recorder_end(r);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    const crdi_cycle* c = NULL;
    check_ok(
        crdi_cycle_create(*state, &(crdi_cycle_source){.name = path, .column = "car.speed"}, &c));
    check_int(c->count, 101);
    check_near(crdi_cycle_speed(c, 3.25), 32.5, 1e-9);
    check_near(describe(c).acceleration_max, 10, 1e-6);
    crdi_cycle_destroy(*state, c);
}

static void bad_cycles_are_refused_with_a_sentence(void** state)
{
    static const struct {
        const char *text, *column, *unit, *says;
        crd_status status;
    } bad[] = {
        {"time,a,b\n0,0,0\n1,1,1\n", NULL, NULL, "say which", CRD_E_NOT_FOUND},
        {"time,v\n0,0\n1,1\n", "speed", NULL, "no column 'speed'", CRD_E_NOT_FOUND},
        {"time,v\n0,0\n1,1\n", NULL, "N.m", "expected a speed", CRD_E_RANGE},
        {"time,v\n0,0\n1,1\n", NULL, "furlongs", "expected a speed", CRD_E_RANGE},
        {"time,v\n0,0\n", NULL, NULL, "at least 2", CRD_E_FORMAT},
        {"time,v\n0,0\n1,-1\n", NULL, NULL, "row 2", CRD_E_FORMAT},
        {"time,v\n0,0\n1,nan\n", NULL, NULL, "row 2", CRD_E_FORMAT},
        {"time,v\n3,0\n3,1\n", NULL, NULL, "all rows are at 3 s", CRD_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const crdi_cycle* c = NULL;
        const crdi_cycle_source s = {written(bad[i].text), bad[i].column, bad[i].unit};
        check_status(crdi_cycle_create(*state, &s, &c), bad[i].status);
        check(!c);
        check_contains(crd_error_text(*state), bad[i].says);
    }
    const crdi_cycle* c = NULL;
    check_status(crdi_cycle_create(*state, &(crdi_cycle_source){.name = "/no/such.csv"}, &c),
                 CRD_E_NOT_FOUND);
}

static void every_allocation_of_a_cycle_may_fail(void** state)
{
    const char* const names[] = {"nedc", TEST_SOURCE_DIR "/../examples/powertrain/nedc.csv"};
    for (size_t n = 0; n < 2; n++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t first = a.allocations, live = a.live;
        crd_status st = CRD_E_MEMORY;
        int failures = 0;
        for (; st != CRD_OK && failures < 2000; failures++) {
            const crdi_cycle* c = NULL;
            a.allocations = first;
            a.fail_at = first + failures;
            st = crdi_cycle_create(ctx, &(crdi_cycle_source){.name = names[n]}, &c);
            a.fail_at = -1;
            check(st == CRD_OK || st == CRD_E_MEMORY);
            crdi_cycle_destroy(ctx, c);
            check_int(a.live, live);
        }
        check_ok(st);
        check(failures > 4);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(nedc_has_the_length_the_distance_and_the_maxima_of_its_definition),
        TEST(nedc_of_the_example_is_that_of_the_library),
        TEST(a_column_is_found_by_name_and_converted_by_unit),
        TEST(a_recording_of_a_drive_is_a_cycle),
        TEST(bad_cycles_are_refused_with_a_sentence),
        cmocka_unit_test(every_allocation_of_a_cycle_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
