#include "elements.h"

enum { N = 8192 };

static double* sine(double omega, double dt, double amplitude)
{
    double* y = malloc(N * sizeof *y);
    assert_non_null(y);
    for (int i = 0; i < N; i++) {
        y[i] = 3 + amplitude * sin(omega * dt * i + 0.3);
    }
    return y;
}

static void a_sine_has_its_power_at_its_frequency(void** state)
{
    double* y = sine(20, 0.01, 2);
    crd_spectrum s;
    check_ok(crd_analysis_spectrum(*state, y, N, 0.01, 0, &s));
    check_int(s.bins, 1025);
    check_int(s.segments, 7);
    check_near(s.variance, 2, 0.01); // amplitude^2 / 2; the mean of 3 is gone
    int top = 0;
    for (int q = 0; q < s.bins; q++) {
        if (s.density[q] > s.density[top]) { top = q; }
    }
    check_near(s.omega[top], 20, 0.5 * s.omega[1]);
    double omega;
    check_ok(crd_spectrum_bandwidth(*state, &s, 0.5, &omega));
    check_near(omega, 20, s.omega[1]);
    check_ok(crd_spectrum_bandwidth(*state, &s, 0.99, &omega));
    check(omega > 20 && omega < 20 + 3 * s.omega[1]);
    crd_spectrum_clear(*state, &s);
    free(y);
}

static void white_noise_is_flat_and_keeps_its_variance(void** state)
{
    double y[N], direct = 0;
    uint32_t x = 12345;
    for (int i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        y[i] = (double)x / 4294967296.0 - 0.5;
        direct += y[i] * y[i] / N;
    }
    crd_spectrum s;
    check_ok(crd_analysis_spectrum(*state, y, N, 0.01, 64, &s));
    check_near(s.variance / direct, 1, 0.05);
    for (int q = 2; q < s.bins - 1; q++) {
        check_near(s.density[q] * (M_PI / 0.01) / direct, 1, 0.35);
    }
    double omega;
    check_ok(crd_spectrum_bandwidth(*state, &s, 0.5, &omega));
    check_near(omega, 0.5 * M_PI / 0.01, 12);
    crd_spectrum_clear(*state, &s);
}

static void at_the_recommended_step_the_element_is_at_its_limit(void** state)
{
    element e;
    make_element(&e, "EROS", 6);
    double dT;
    check_ok(crd_analysis_macro_step(*state, &e.linear, 10, 0.03, 3, &dT));
    check_near(dT * 10 / M_PI / 0.02241303535, 1, 1e-8); // the phase is the first to go
    const crd_complex g = crd_response(&e.linear, 10 * dT);
    check_near(atan2(g.im, g.re) * 180 / M_PI, 3, 1e-8);
    make_element(&e, "ZOH", 0); // limits beyond Nyquist: no more than one step per half period
    check_ok(crd_analysis_macro_step(*state, &e.linear, 10, 0.9, 170, &dT));
    check_near(dT, M_PI / 10, 1e-15);
}

static void bad_recordings_are_named(void** state)
{
    double y[64] = {0};
    crd_spectrum s;
    double omega;
    check_status(crd_analysis_spectrum(*state, y, 7, 0.01, 0, &s), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the recording has 7 samples");
    check_status(crd_analysis_spectrum(*state, y, 64, 0.01, 12, &s), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "a segment has 12 samples, expected a power of two");
    check_status(crd_analysis_spectrum(*state, y, 64, 0, 0, &s), CRD_E_RANGE);
    y[5] = NAN;
    check_status(crd_analysis_spectrum(*state, y, 64, 0.01, 0, &s), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "sample 6 at 0.05 s is nan");
    y[5] = 0;
    check_ok(crd_analysis_spectrum(*state, y, 64, 0.01, 0, &s));
    check_status(crd_spectrum_bandwidth(*state, &s, 0.99, &omega), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the recording is constant");
    check_status(crd_spectrum_bandwidth(*state, &s, 1, &omega), CRD_E_RANGE);
    crd_spectrum_clear(*state, &s);
    element e;
    make_element(&e, "ZOH", 0);
    check_status(crd_analysis_macro_step(*state, &e.linear, 0, 0.03, 3, &omega), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the bandwidth is 0 rad/s");
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    const double y[64] = {1, 2, 3};
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        a.fail_at = a.allocations + fail_at;
        a.once = true;
        crd_spectrum s = {0};
        const crd_status st = crd_analysis_spectrum(ctx, y, 64, 0.01, 0, &s);
        crd_spectrum_clear(ctx, &s);
        check_int(a.live, live);
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check_int(fail_at, 3);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_sine_has_its_power_at_its_frequency, ctx),
        cmocka_unit_test_prestate(white_noise_is_flat_and_keeps_its_variance, ctx),
        cmocka_unit_test_prestate(at_the_recommended_step_the_element_is_at_its_limit, ctx),
        cmocka_unit_test_prestate(bad_recordings_are_named, ctx),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
