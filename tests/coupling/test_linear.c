#include "coupling_test.h"

static const crd_method all[] = {CRD_METHOD_ZOH,    CRD_METHOD_FOH,
                                 CRD_METHOD_EROS,   CRD_METHOD_ERROR_SPACE,
                                 CRD_METHOD_MOMENT, CRD_METHOD_SAVITZKY_GOLAY,
                                 CRD_METHOD_WIENER};
enum { ALL = sizeof all / sizeof all[0] };

// y_{n-k-i} of the signal sin(0.1 n) + 0.01 n^2 at n = 30.
static void fill_samples(int k, double* y, int count)
{
    for (int i = 0; i < count; i++) {
        const double n = 30 - k - i;
        y[i] = sin(0.1 * n) + 0.01 * n * n;
    }
}

static void predictions_are_those_of_the_reference(void** state)
{
    static const char* const names[] = {"ZOH", "FOH", "EROS"};
    FILE* f = fopen(TEST_SOURCE_DIR "/coupling/predict_samples.csv", "r");
    check(f);
    char line[256], name[16];
    int rows = 0;
    check(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        int k, method = 0;
        double theta, want, y[32];
        check_int(sscanf(line, "%15[^,],%d,%lf,%lf", name, &k, &theta, &want), 4);
        while (strcmp(name, names[method]) != 0) {
            method++;
        }
        crd_linear l = make(context_of(state), all[method], k);
        fill_samples(k, y, l.m);
        check_near(crd_linear_eval(&l, y, theta), want, 1e-12);
        crd_linear_clear(context_of(state), &l);
        rows++;
    }
    fclose(f);
    check_int(rows, 36);
}

static void eros_is_the_simplest_product_of_the_error_space_procedure(void** state)
{
    for (int k = 0; k <= CRD_LATENCY_MAX; k++) {
        crd_linear want = make(context_of(state), CRD_METHOD_EROS, k);
        crd_linear got = make(context_of(state), CRD_METHOD_ERROR_SPACE, k);
        check_int(got.m, want.m);
        for (int i = 0; i < want.m; i++) {
            check_near(got.a[i], want.a[i], 1e-11 * (k + 1));
            check_near(got.A[i], want.A[i], 1e-12);
        }
        crd_linear_clear(context_of(state), &want);
        crd_linear_clear(context_of(state), &got);
    }
}

// A polynomial's error over a fixed distance is a polynomial of one degree less or equal, so an
// error space that continues such errors exactly predicts it exactly, for any number of past
// errors.
static void error_space_of_higher_order_follows_parabolas(void** state)
{
    for (int curve = 1; curve <= 3; curve++) {
        for (int errors = 3; errors <= 6; errors++) {
            for (int distance = 0; distance <= (curve == 1 ? 0 : CRD_DISTANCE_MEAN); distance++) {
                crd_design d = crd_design_defaults(CRD_METHOD_ERROR_SPACE);
                d.curve = curve;
                d.errors = errors;
                d.order = 2;
                d.distance = distance;
                crd_linear l;
                check_ok(crd_linear_make(context_of(state), &d, 2, &l));
                double y[32];
                for (int i = 0; i < l.m; i++) {
                    y[i] = 3 - (2.0 + i) + 0.5 * (2.0 + i) * (2.0 + i); // 3 + t + t^2 / 2
                }
                // the end of the step is what the procedure aims at
                if (distance == CRD_DISTANCE_END) {
                    check_near(crd_linear_eval(&l, y, 1), 3 + 1 + 0.5, 1e-10);
                } else { // its mean error is that of the chord
                    double mean = 0.5 * (crd_linear_eval(&l, y, 0) + crd_linear_eval(&l, y, 1));
                    check_near(mean, 0.5 * (3 + 4.5), 0.3);
                }
                crd_linear_clear(context_of(state), &l);
            }
        }
    }
}

static void moment_design_is_the_closed_form(void** state)
{
    const double want[4] = {23.0 / 3, -31.0 / 6, -37.0 / 6, 14.0 / 3};
    crd_design d = crd_design_defaults(CRD_METHOD_MOMENT);
    d.taps = 4;
    crd_linear l;
    check_ok(crd_linear_make(context_of(state), &d, 3, &l));
    for (int i = 0; i < 4; i++) {
        check_near(l.a[i], want[i], 1e-8);
    }
    crd_linear_clear(context_of(state), &l);
}

static void savitzky_golay_continues_its_polynomial(void** state)
{
    for (int degree = 0; degree <= 4; degree++) {
        for (int k = 0; k <= 12; k += 3) {
            crd_design d = crd_design_defaults(CRD_METHOD_SAVITZKY_GOLAY);
            d.degree = degree;
            crd_linear l;
            double y[9];
            check_ok(crd_linear_make(context_of(state), &d, k, &l));
            for (int i = 0; i < 9; i++) {
                const double t = -(k + i) * 0.1;
                y[i] = 2 + pow(t + 0.3, degree);
            }
            check_near(crd_linear_eval(&l, y, 0), 2 + pow(0.3, degree), 1e-8);
            crd_linear_clear(context_of(state), &l);
        }
    }
}

static void wiener_weights_are_those_of_the_reference(void** state)
{
    static const double want[9] = {7.564977391125395,   -5.719216113364641,  -4.876395975503735,
                                   0.3674640852008697,  3.634849169244162,   2.8027840242116047,
                                   -0.5124650338798896, -2.5812333573725277, 0.3192358103387624};
    crd_linear l = make(context_of(state), CRD_METHOD_WIENER, 6);
    for (int i = 0; i < 9; i++) {
        check_near(l.a[i], want[i], 1e-8);
    }
    crd_linear_clear(context_of(state), &l);
    // With 25 taps, and the first band cut into many: the power is that of a mean over each.
    static const double first[4] = {6.3092692743202505, -3.1619813928215135, -4.212842740955944,
                                    -1.5941241422074215};
    crd_band bands[21] = {{0.3, 0.55, 0.03}};
    for (int i = 0; i < 20; i++) {
        bands[1 + i] = (crd_band){0.005 * i, 0.005 * (i + 1), 1.0 / 20};
    }
    check_ok(crd_linear_wiener(context_of(state), 6, 25, bands, 21, 1e-4, &l));
    for (int i = 0; i < 4; i++) {
        check_near(l.a[i], first[i], 1e-8);
    }
    crd_linear_clear(context_of(state), &l);
}

static void constants_pass_through_every_algorithm(void** state)
{
    double y[CRD_TAPS_MAX];
    for (int i = 0; i < CRD_TAPS_MAX; i++) {
        y[i] = -7.25;
    }
    for (int j = 0; j < ALL; j++) {
        for (int k = 0; k <= 24; k++) {
            crd_linear l = make(context_of(state), all[j], k);
            check_near(crd_linear_eval(&l, y, 0), -7.25, 1e-9);
            check_near(crd_linear_eval(&l, y, 0.9), -7.25, 1e-9);
            crd_linear_clear(context_of(state), &l);
        }
    }
}

static void ramps_pass_through_foh_and_eros(void** state)
{
    for (int k = 0; k <= 40; k++) {
        for (int j = 1; j <= 3; j++) { // FOH, EROS, error space
            crd_linear l = make(context_of(state), all[j], k);
            double y[64];
            for (int i = 0; i < l.m; i++) {
                y[i] = 5 - 0.3 * (k + i);
            }
            for (double theta = 0; theta <= 1; theta += 0.25) {
                check_near(crd_linear_eval(&l, y, theta), 5 + 0.3 * theta, 1e-10);
            }
            crd_linear_clear(context_of(state), &l);
        }
    }
}

static void designs_that_make_no_sense_are_refused_with_the_number(void** state)
{
    crd_context* ctx = context_of(state);
    crd_linear l;
    crd_design d = crd_design_defaults(CRD_METHOD_WIENER);
    d.bands[1] = (crd_band){0.5, 0.3, 1};
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "band 2 = [0.5, 0.3]");
    d.band_count = 0;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "band_count = 0");
    d = crd_design_defaults(CRD_METHOD_WIENER);
    d.noise = NAN;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "noise = ");
    d.noise = 1e-300;
    d.taps = 200;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    d = crd_design_defaults(CRD_METHOD_MOMENT);
    d.taps = 2;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "taps = 2");
    d = crd_design_defaults(CRD_METHOD_ERROR_SPACE);
    d.errors = 1;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "errors = 1");
    d = crd_design_defaults(CRD_METHOD_FOH);
    check_status(crd_linear_make(ctx, &d, -1, &l), CRD_E_RANGE);
    check_status(crd_linear_make(ctx, &d, CRD_LATENCY_MAX + 1, &l), CRD_E_RANGE);
    d.method = (crd_method)77;
    check_status(crd_linear_make(ctx, &d, 1, &l), CRD_E_RANGE);
}

static void weights_that_distort_constants_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {2.4748, -0.647, -0.1664, -0.6664}; // Baumann 2020, eq. 12: sums to 0.995
    const double bad[2] = {1, INFINITY}, one[2] = {1, 0};
    const crd_linear trained = {4, 3, a, NULL, 0}, infinite = {2, 0, bad, NULL, 0};
    const crd_linear drifting = {2, 0, one, one, 0}, empty = {0, 0, one, NULL, 0};
    crd_linear l;
    check_status(crd_linear_copy(ctx, &trained, false, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "sum to 0.995");
    check_ok(crd_linear_copy(ctx, &trained, true, &l));
    check_near(crd_linear_eval(&l, (double[4]){1, 1, 1, 1}, 0.5), 0.995, 1e-12);
    crd_linear_clear(ctx, &l);
    check_status(crd_linear_copy(ctx, &infinite, true, &l), CRD_E_RANGE);
    check_status(crd_linear_copy(ctx, &drifting, false, &l), CRD_E_RANGE);
    check_status(crd_linear_copy(ctx, &empty, false, &l), CRD_E_RANGE);
}

// One tap, one band [0, h]: a = P sin(k h) / (k h) / (P + noise), b = mean (1 - a). Of more taps
// the normal equations hold.
static void the_affine_design_shrinks_towards_the_mean(void** state)
{
    crd_context* ctx = context_of(state);
    const crd_band band = {0, 0.2, 3};
    crd_linear l;
    check_ok(crd_linear_affine(ctx, 5, 1, &band, 1, 0.5, 40, &l));
    check_near(l.a[0], 3 * sin(1) / 1 / 3.5, 1e-14);
    check_near(l.b, 40 * (1 - l.a[0]), 1e-13);
    check_near(crd_linear_eval(&l, (double[]){40}, 0.5), 40, 1e-12); // rests at its mean
    crd_linear_clear(ctx, &l);
    check_ok(crd_linear_affine(ctx, 3, 4, &band, 1, 0.01, -7, &l));
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double left = 0.01 * l.a[i];
        for (int j = 0; j < 4; j++) {
            const double x = 0.2 * (i - j);
            left += 3 * (i == j ? 1 : sin(x) / x) * l.a[j];
        }
        const double x = 0.2 * (i + 3);
        check_near(left, 3 * sin(x) / x, 1e-12);
        sum += l.a[i];
    }
    check(fabs(sum - 1) > 1e-4); // it is not made to be 1
    check_near(l.b, -7 * (1 - sum), 1e-13);
    crd_linear_clear(ctx, &l);
    check_status(crd_linear_affine(ctx, 3, 4, &band, 1, 0.01, NAN, &l), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "mean = nan");
}

static void a_constant_is_asked_for_and_then_added(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[2] = {1.5, -0.75}, A[2] = {0.25, -0.25};
    const crd_linear l = {2, 1, a, A, 8}, wild = {2, 1, a, A, NAN};
    crd_linear copy;
    check_status(crd_linear_copy(ctx, &(crd_linear){1, 0, (double[]){1}, NULL, 8}, false, &copy),
                 CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "b = 8");
    check_status(crd_linear_copy(ctx, &wild, true, &copy), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "b = nan");
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1;
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = &l;
    o.given_count = 1;
    o.any_gain = true;
    o.detection = CRD_DETECT_NONE;
    o.reaction = CRD_REACT_NONE;
    crd_coupling_bank* bank;
    check_status(crd_coupling_bank_create(ctx, &o, 2, &bank), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(ctx), "constant b");
    for (int hold = 0; hold < 2; hold++) {
        crd_coupling* c;
        if (hold) { o.reconstruction = CRD_RECONSTRUCT_HOLD; }
        check_ok(crd_coupling_create(ctx, &o, &c));
        crd_coupling_push(c, 4, 0, 0);
        crd_coupling_push(c, 10, 1, 1);
        // 8 + 15 - 3, and half a step later 0.5 (2.5 - 1) more
        check_near(crd_coupling_eval(c, 2.0), 20, 1e-14);
        check_near(crd_coupling_eval(c, 2.5), hold ? 20 : 20.75, 1e-14);
        crd_coupling_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(predictions_are_those_of_the_reference),
        coupling_unit_test(eros_is_the_simplest_product_of_the_error_space_procedure),
        coupling_unit_test(error_space_of_higher_order_follows_parabolas),
        coupling_unit_test(moment_design_is_the_closed_form),
        coupling_unit_test(savitzky_golay_continues_its_polynomial),
        coupling_unit_test(wiener_weights_are_those_of_the_reference),
        coupling_unit_test(constants_pass_through_every_algorithm),
        coupling_unit_test(ramps_pass_through_foh_and_eros),
        coupling_unit_test(designs_that_make_no_sense_are_refused_with_the_number),
        coupling_unit_test(weights_that_distort_constants_are_refused),
        coupling_unit_test(the_affine_design_shrinks_towards_the_mean),
        coupling_unit_test(a_constant_is_asked_for_and_then_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
