// Sensors calibrated by two points: what is computed, refused, stored and told.
#include "check.h"

#include "shared/dcp_calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static crdi_calibration two(double r0, double m0, double r1, double m1)
{
    return (crdi_calibration){.name = "torque",
                              .unit = "N.m",
                              .reference = {r0, r1},
                              .reading = {m0, m1},
                              .date = "2026-11-17T13:45:00Z",
                              .by = "J. Doe"};
}

static void two_points_make_a_line(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    (void)state;
    // By hand: 50 / (50.9 - 0.3) = 0.988142292..., and 0 - that * 0.3
    crdi_calibration c = two(0, 0.3, 50, 50.9);
    check_ok(crdi_calibration_make(ctx, &c, 500));
    check_near(c.gain, 0.98814229249011857, 1e-15);
    check_near(c.offset, -0.29644268774703557, 1e-15);
    crdi_calibration back = two(50, 50.9, 0, 0.3); // the order does not matter
    check_ok(crdi_calibration_make(ctx, &back, 500));
    check_near(back.gain, c.gain, 1e-15);
    check_near(back.offset, c.offset, 1e-13);
    srand(3);
    for (int i = 0; i < 1000; i++) { // whatever line it was is found again
        const double gain = 0.6 + rand() / (RAND_MAX / 1.3), offset = rand() / (RAND_MAX / 4.0) - 2;
        const double a = rand() / (RAND_MAX / 20.0) - 10, b = a + 20 + rand() / (RAND_MAX / 50.0);
        crdi_calibration x = two(a, (a - offset) / gain, b, (b - offset) / gain);
        if (crdi_calibration_make(ctx, &x, NAN) < 0) { continue; } // far off: refused
        check_near(x.gain, gain, 1e-12);
        check_near(x.offset, offset, 1e-10);
    }
    crd_context_destroy(ctx);
}

static void refused(crdi_calibration c, double range, const char* part)
{
    crd_context* ctx = crd_context_create(NULL);
    c.gain = -1;
    check_status(crdi_calibration_make(ctx, &c, range), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), part);
    check_near(c.gain, -1, 0); // and nothing is written
    crd_context_destroy(ctx);
}

static void what_cannot_be_is_refused_with_what_would_be_right(void** state)
{
    (void)state;
    refused(two(5, 5, 5, 6), NAN, "expected two points with different references");
    refused(two(5, 6, 15, 6), NAN, "expected two points with different readings");
    refused(two(NAN, 0, 50, 50), NAN, "expected two numbers");
    refused(two(0, 0, 50, INFINITY), NAN, "expected two numbers");
    refused(two(0, 50, 50, 0), NAN, "the reading falls while the value rises");
    refused(two(0, 0, 50, 20), NAN, "gain = 2.5, expected 0.5 to 2");
    refused(two(0, 0, 20, 50), NAN, "gain = 0.4, expected 0.5 to 2");
    refused(two(0, 60, 50, 110), NAN, "off by more than the two points are apart");
    refused(two(0, 0, 20, 20), 500, "expected 25 at least, a twentieth of its range");
    crdi_calibration c = two(0, 0, 50, 50);
    c.by[0] = 0;
    refused(c, NAN, "nobody has done it");
    c = two(0, 0, 50, 50);
    snprintf(c.by, sizeof c.by, "a\nb");
    refused(c, NAN, "nobody has done it");
    snprintf(c.name, sizeof c.name, "two words");
    refused(c, NAN, "no output of a bench");
}

static void a_file_keeps_all_sensors_and_the_newest_of_each(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    char path[] = "/tmp/calibration_XXXXXX";
    (void)state;
    const int fd = mkstemp(path);
    check(fd >= 0);
    close(fd);
    unlink(path);
    crdi_calibration c = two(0, 0.3, 50, 50.9);
    check_ok(crdi_calibration_make(ctx, &c, NAN));
    check_ok(crdi_calibrations_store(ctx, path, &c));
    snprintf(c.name, sizeof c.name, "speed");
    check_ok(crdi_calibrations_store(ctx, path, &c));
    snprintf(c.by, sizeof c.by, "Somebody \"Else\"");
    check_ok(crdi_calibrations_store(ctx, path, &c));
    crdi_calibrations all;
    check_ok(crdi_calibrations_load(ctx, path, &all));
    check_int(all.count, 2);
    check_text(all.of[0].by, "J. Doe");
    check_text(crdi_calibrations_find(&all, "speed")->by, "Somebody \"Else\"");
    check_near(all.of[1].gain, c.gain, 0);
    check_near(all.of[1].offset, c.offset, 0);
    check(!crdi_calibrations_find(&all, "voltage"));
    for (int i = 2; i < CRDI_CALIBRATIONS_MAX; i++) {
        snprintf(c.name, sizeof c.name, "s%d", i);
        check_ok(crdi_calibrations_store(ctx, path, &c));
    }
    snprintf(c.name, sizeof c.name, "one_more");
    check_status(crdi_calibrations_store(ctx, path, &c), CRD_E_RANGE);
    check_ok(crdi_calibrations_load(ctx, path, &all));
    check_int(all.count, CRDI_CALIBRATIONS_MAX);
    unlink(path);
    check_status(crdi_calibrations_load(ctx, path, &all), CRD_E_NOT_FOUND);
    crd_context_destroy(ctx);
}

static void what_a_bench_says_is_read_again_to_the_last_bit(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    char line[200];
    crdi_calibration c = two(0, 0.3, 50, 50.9), back;
    (void)state;
    check_ok(crdi_calibration_make(ctx, &c, NAN));
    crdi_calibration_print(&c, line, sizeof line);
    check(crdi_calibration_scan(line, &back));
    check_near(back.gain, c.gain, 0);
    check_near(back.offset, c.offset, 0);
    check_text(back.by, "J. Doe");
    check_text(back.date, c.date);
    static const char* const bad[] = {
        "",           "torque",         "torque x",         "torque 1",
        "torque 1 2", "torque 0 1 d b", "torque nan 1 d b", "torque 1 inf d b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check(!crdi_calibration_scan(bad[i], &back));
    }
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_points_make_a_line),
        cmocka_unit_test(what_cannot_be_is_refused_with_what_would_be_right),
        cmocka_unit_test(a_file_keeps_all_sensors_and_the_newest_of_each),
        cmocka_unit_test(what_a_bench_says_is_read_again_to_the_last_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
