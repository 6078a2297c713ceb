#include "elements.h"

static void responses_equal_the_reference_samples(void** state)
{
    (void)state;
    FILE* f = open_table("gp_samples.csv");
    char line[512], name[16];
    int k, rows = 0;
    double part, re, im, gain, phase;
    for (; next_row(f, line, sizeof line); rows++) {
        check_int(sscanf(line, "%15[^,],%d,%lf,%lf,%lf,%lf,%lf", name, &k, &part, &re, &im, &gain,
                         &phase),
                  7);
        element e;
        make_element(&e, name, k);
        const crd_complex g = crd_response(&e.linear, part * M_PI);
        check_near(g.re, re, 1e-12 * fmax(1, gain));
        check_near(g.im, im, 1e-12 * fmax(1, gain));
    }
    fclose(f);
    check_int(rows, 72);
}

static void series_and_closed_form_meet(void** state)
{
    (void)state;
    element e;
    make_element(&e, "EROS", 6);
    const double edge = 0.5; // where one takes over from the other
    crd_complex d;
    const crd_complex below = crd_response_at(&e.linear, (crd_complex){0, edge - 1e-9}, NULL);
    const crd_complex above = crd_response_at(&e.linear, (crd_complex){0, edge + 1e-9}, &d);
    check_near(above.re - below.re, -2e-9 * d.im, 1e-13); // dG/dx = j dG/dz
    check_near(above.im - below.im, 2e-9 * d.re, 1e-13);
    const crd_complex zero = crd_response(&e.linear, 0);
    check_near(zero.re, 1, 1e-14);
    check_near(zero.im, 0, 0);
}

static void derivative_is_that_of_the_response(void** state)
{
    (void)state;
    element e;
    make_element(&e, "EROS", 3);
    for (double x = 0.05; x < 6; x += 0.37) {
        const double h = 1e-5;
        crd_complex d;
        crd_response_at(&e.linear, (crd_complex){-0.1, x}, &d);
        const crd_complex p = crd_response_at(&e.linear, (crd_complex){-0.1 + h, x}, NULL);
        const crd_complex q = crd_response_at(&e.linear, (crd_complex){-0.1 - h, x}, NULL);
        check_near(d.re, (p.re - q.re) / (2 * h), 1e-5);
        check_near(d.im, (p.im - q.im) / (2 * h), 1e-5);
    }
}

static void limits_are_those_of_table_1(void** state)
{
    FILE* f = open_table("table1.csv");
    char line[512], name[16], side[2][2];
    int k, rows = 0;
    double magnitude, phase;
    for (; next_row(f, line, sizeof line); rows++) {
        check_int(sscanf(line, "%15[^,],%d,%lf,%1[+-],%lf,%1[+-]", name, &k, &magnitude, side[0],
                         &phase, side[1]),
                  6);
        element e;
        make_element(&e, name, k);
        crd_limits l;
        check_ok(crd_analysis_limits(*state, &e.linear, 0.03, 3, &l));
        check_near(100 * l.magnitude / magnitude, 1, 1e-8);
        check_near(100 * l.phase / phase, 1, 1e-8);
        check_int(l.magnitude_side, side[0][0] == '+' ? 1 : -1);
        check_int(l.phase_side, side[1][0] == '+' ? 1 : -1);
    }
    fclose(f);
    check_int(rows, 12);
}

static void limits_follow_their_closed_forms(void** state)
{
    for (int k = 0; k < 40; k++) {
        element e;
        crd_limits l;
        make_element(&e, "ZOH", k);
        check_ok(crd_analysis_limits(*state, &e.linear, 0.03, 3, &l));
        check_near(100 * l.phase * 60 * (k + 0.5), 100, 1e-9);
        make_element(&e, "FOH", k);
        check_ok(crd_analysis_limits(*state, &e.linear, 0.03, 3, &l));
        check_near(100 * l.phase * (k + 1), 18.19914369, 1e-7);
    }
}

static void a_hump_between_two_points_of_the_scan_counts(void** state)
{
    // A tolerance a hair below the first peak of the gain is left just before the peak.
    const double a[] = {1.5, -1, 0.5};
    const crd_linear e = {3, 0, a, NULL, 0};
    crd_peak peak;
    int count;
    check_ok(crd_analysis_peaks(*state, &e, 1, M_PI, 1, &peak, &count));
    check(count >= 1);
    crd_limits l;
    check_ok(crd_analysis_limits(*state, &e, peak.gain - 1 - 1e-12, 179, &l));
    check_near(l.magnitude * M_PI, peak.omega, 1e-5);
    check(l.magnitude * M_PI < peak.omega);
    check_int(l.magnitude_side, 1);
}

static void a_limit_that_is_never_reached_is_infinite(void** state)
{
    element e;
    make_element(&e, "ZOH", 0);
    crd_limits l;
    check_ok(crd_analysis_limits(*state, &e.linear, 0.5, 100, &l));
    check(isinf(l.magnitude) && isinf(l.phase));
    check_int(l.magnitude_side, 0);
}

static void peaks_are_all_the_local_maxima(void** state)
{
    static const crd_peak eros[] = {
        {8.05114536424167, 58.27484011639048},   {17.05851296974528, 139.3879060670593},
        {20.92635907024187, 225.03983656532827}, {18.46723499719324, 311.6251572772584},
        {11.909814218373956, 397.8942260086624}, {5.028497088416787, 482.4269276939876},
        {0.9084970730164659, 561.4646746616066},
    };
    element e;
    crd_peak peaks[16];
    int count;
    make_element(&e, "EROS", 6);
    check_ok(crd_analysis_peaks(*state, &e.linear, 0.01, 2 * M_PI / 0.01, 16, peaks, &count));
    check_int(count, 7);
    for (int i = 0; i < count; i++) {
        check_near(peaks[i].gain / eros[i].gain, 1, 1e-8);
        check_near(peaks[i].omega / eros[i].omega, 1, 1e-8);
    }
    make_element(&e, "FOH", 6);
    check_ok(crd_analysis_peaks(*state, &e.linear, 0.01, 2 * M_PI / 0.01, 16, peaks, &count));
    check_int(count, 1);
    check_near(peaks[0].gain / 10.163622550759055, 1, 1e-8);
    check_near(peaks[0].omega / 232.717020784564, 1, 1e-8); // from quadruple precision
    make_element(&e, "EROS", 6); // too little room: the first ones, and how many there are
    check_ok(crd_analysis_peaks(*state, &e.linear, 0.01, 2 * M_PI / 0.01, 1, peaks, &count));
    check_int(count, 7);
    check_near(peaks[0].omega / eros[0].omega, 1, 1e-8);
}

static void phase_is_continuous_through_many_turns(void** state)
{
    element e;
    make_element(&e, "ZOH", 20);
    double omega[7];
    crd_bode_point p[7];
    check_ok(crd_frequency_grid(*state, 0, 600, 7, false, omega));
    check_ok(crd_analysis_bode(*state, &e.linear, 0.01, omega, 7,
                               p)); // points 100 rad/s apart, x up to 6
    for (int i = 0; i < 7; i++) {
        check_near(p[i].phase_deg, -20.5 * omega[i] * 0.01 * 180 / M_PI, 1e-9);
        check_near(p[i].gain, hypot(p[i].g.re, p[i].g.im), 1e-15);
    }
    check_ok(crd_frequency_grid(*state, 0.1, 1000, 5, true, omega));
    check_near(omega[1], 1, 1e-14);
    check_near(omega[4], 1000, 0);
}

static void bad_input_is_named(void** state)
{
    const double good[] = {2, -1}, half[] = {0.5, 0.4}, bad[] = {1, NAN}, saw[] = {1, 1};
    crd_linear e = {2, 1, good, NULL, 0};
    crd_limits l;
    crd_peak peak;
    int count;
    crd_bode_point p[3];
    const double zigzag[] = {1, 3, 2}, negative[] = {-1, 0, 1};
    check_ok(crd_analysis_check_constants(*state, &e, 1e-12));
    check_status(crd_analysis_bode(*state, &e, 0.01, zigzag, 3, p), CRD_E_RANGE);
    check_contains(crd_error_text(*state),
                   "the frequency grid does not rise: 3 rad/s stands before 2");
    check_status(crd_analysis_bode(*state, &e, 0.01, negative, 3, p), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "frequency 1 of the grid is -1 rad/s");
    check_status(crd_analysis_bode(*state, &e, 0, zigzag, 3, p), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the macro step is 0 s");
    check_status(crd_analysis_peaks(*state, &e, 0.01, NAN, 1, &peak, &count), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "up to nan rad/s");
    double omega[3];
    check_status(crd_frequency_grid(*state, 5, 5, 3, false, omega), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the band is [5, 5] rad/s");
    check_status(crd_frequency_grid(*state, 0, 5, 3, true, omega), CRD_E_RANGE);
    check_status(crd_frequency_grid(*state, 1, 5, 1, true, omega), CRD_E_RANGE);
    check_status(crd_analysis_limits(*state, &e, 0, 3, &l), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "tolerance of the magnitude is 0");
    check_status(crd_analysis_limits(*state, &e, 0.03, 180, &l), CRD_E_RANGE);
    e.a = half;
    check_status(crd_analysis_check_constants(*state, &e, 1e-9), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the weights a sum to 0.9, expected 1");
    check_status(crd_analysis_limits(*state, &e, 0.03, 3, &l), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "with the factor 0.9");
    e.a = good;
    e.A = saw;
    check_status(crd_analysis_check_constants(*state, &e, 1e-9), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the weights A sum to 2");
    e.A = bad;
    check_status(crd_analysis_check(*state, &e), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "weight A[1] is nan");
    e.k = -1;
    check_status(crd_analysis_check(*state, &e), CRD_E_RANGE);
    e.m = 0;
    check_status(crd_analysis_check(*state, &e), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the element has 0 taps");
}

int main(void)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(responses_equal_the_reference_samples, ctx),
        cmocka_unit_test_prestate(series_and_closed_form_meet, ctx),
        cmocka_unit_test_prestate(derivative_is_that_of_the_response, ctx),
        cmocka_unit_test_prestate(limits_are_those_of_table_1, ctx),
        cmocka_unit_test_prestate(limits_follow_their_closed_forms, ctx),
        cmocka_unit_test_prestate(a_hump_between_two_points_of_the_scan_counts, ctx),
        cmocka_unit_test_prestate(a_limit_that_is_never_reached_is_infinite, ctx),
        cmocka_unit_test_prestate(peaks_are_all_the_local_maxima, ctx),
        cmocka_unit_test_prestate(phase_is_continuous_through_many_turns, ctx),
        cmocka_unit_test_prestate(bad_input_is_named, ctx),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
