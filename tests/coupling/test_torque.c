// The torque benchmark: combined error of each way to compensate 6 steps of latency.
#include "coupling_test.h"

static void the_signals_are_those_of_the_reference(void** state)
{
    (void)state;
    static double s[4][TORQUE_SAMPLES];
    torque(s[0], false, false);
    torque(s[1], false, true);
    torque(s[2], true, false);
    torque(s[3], true, true);
    FILE* f = fopen(TEST_SOURCE_DIR "/coupling/torque_samples.csv", "r");
    check(f);
    char line[256];
    int rows = 0;
    check(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        int n;
        double want[4];
        check_int(sscanf(line, "%d,%lf,%lf,%lf,%lf", &n, &want[0], &want[1], &want[2], &want[3]),
                  5);
        for (int i = 0; i < 4; i++) {
            check_near(s[i][n], want[i], 1e-11);
        }
        rows++;
    }
    fclose(f);
    check_int(rows, 14);
}

// The optimum of the published objective for k = 6, m = 9 and its convex competitors.
static const double a_optimal[9] = {
    9.962345765031143,     -17.93320105601923,  10.374831269276422,
    -1.7221505886095692,   1.7421483928550536,  -1.415476533407599,
    -0.037795898042796594, -0.2759023512252843, 0.30520100014183177};
static const double a_bounded[9] = {5.858649599391789,  -5.497084487090094,  -2.2413765032410176,
                                    1.579906525151621,  2.044883415398189,   0.7799235398113993,
                                    -0.783171655178478, -1.7341203802698368, 0.9923899460264203};
static const crd_linear optimal = {9, 6, a_optimal, NULL, 0}, bounded = {9, 6, a_bounded, NULL, 0};

static crd_coupling_options plain(crd_method method, int taps)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.step = 0.01;
    o.design = crd_design_defaults(method);
    if (taps > 0) { o.design.taps = taps; }
    o.detection = CRD_DETECT_NONE;
    return o;
}

static crd_coupling_options with_weights(const crd_linear* l)
{
    crd_coupling_options o = plain(CRD_METHOD_ZOH, 0);
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = l;
    o.given_count = 1;
    return o;
}

#define check_error(opt, signal, want, relative)                                                   \
    do {                                                                                           \
        const crd_coupling_options check_o = (opt);                                                \
        const double check_c =                                                                     \
            compensated_error(context_of(state), &check_o, signal, TORQUE_SAMPLES, TORQUE_K);      \
        check_near(check_c, want, (relative) * (want));                                            \
    } while (0)

static void fixed_filters_reach_the_errors_of_the_reference(void** state)
{
    static double clean[TORQUE_SAMPLES], noisy[TORQUE_SAMPLES], hard[TORQUE_SAMPLES];
    torque(clean, false, false);
    torque(noisy, false, true);
    torque(hard, true, true);
    check_error(plain(CRD_METHOD_ZOH, 0), clean, 4.483569, 1e-6);
    check_error(plain(CRD_METHOD_ZOH, 0), noisy, 4.489026, 1e-6);
    check_error(plain(CRD_METHOD_ZOH, 0), hard, 5.214881, 1e-6);
    check_error(plain(CRD_METHOD_FOH, 0), clean, 3.784368, 1e-6);
    check_error(plain(CRD_METHOD_FOH, 0), noisy, 3.909161, 1e-6);
    check_error(plain(CRD_METHOD_FOH, 0), hard, 10.953338, 1e-6);
    check_error(plain(CRD_METHOD_EROS, 0), clean, 6.914798, 1e-6);
    check_error(plain(CRD_METHOD_EROS, 0), noisy, 7.070470, 1e-6);
    check_error(plain(CRD_METHOD_EROS, 0), hard, 17.525848, 1e-6);
    check_error(with_weights(&optimal), clean, 2.947028, 1e-6);
    check_error(with_weights(&optimal), noisy, 3.712266, 1e-6);
    check_error(with_weights(&bounded), noisy, 3.212944, 1e-6);
    check_error(plain(CRD_METHOD_WIENER, 9), noisy, 2.863191, 1e-6);
    check_error(plain(CRD_METHOD_WIENER, 25), noisy, 2.656617, 1e-6);
}

static crd_coupling_options guarded_by(crd_coupling_options o, crd_detection detection,
                                       crd_reaction reaction)
{
    o.detection = detection;
    o.reaction = reaction;
    return o;
}

static void switching_at_a_hard_shift_saves_foh_but_not_eros(void** state)
{
    static double hard[TORQUE_SAMPLES];
    torque(hard, true, true);
    check_error(guarded_by(plain(CRD_METHOD_FOH, 0), CRD_DETECT_SPECTRUM, CRD_REACT_SWITCH), hard,
                5.096866, 1e-6);
    check_error(guarded_by(plain(CRD_METHOD_EROS, 0), CRD_DETECT_SPECTRUM, CRD_REACT_SWITCH), hard,
                7.385768, 1e-6);
}

static void no_discontinuity_is_seen_in_a_filtered_shift(void** state)
{
    static double clean[TORQUE_SAMPLES], noisy[TORQUE_SAMPLES];
    torque(clean, false, false);
    torque(noisy, false, true);
    const crd_coupling_options o =
        guarded_by(plain(CRD_METHOD_EROS, 0), CRD_DETECT_SPECTRUM, CRD_REACT_SWITCH);
    check_error(o, clean, 6.914798, 1e-6);
    check_error(o, noisy, 7.070470, 1e-6);
}

static void rebasing_makes_a_hard_shift_as_good_as_a_filtered_one(void** state)
{
    static double noisy[TORQUE_SAMPLES], hard[TORQUE_SAMPLES];
    torque(noisy, false, true);
    torque(hard, true, true);
    const crd_coupling_options o =
        guarded_by(plain(CRD_METHOD_WIENER, 25), CRD_DETECT_GUARDED, CRD_REACT_REBASE);
    check_error(o, noisy, 2.656617, 0.01);
    check_error(o, hard, 4.095172, 0.01);
}

static crd_coupling_options learning(crd_algorithm algorithm, int taps, double window, double ridge)
{
    crd_coupling_options o = plain(CRD_METHOD_WIENER, taps);
    o.algorithm = algorithm;
    o.learning_taps = taps;
    o.learning_window = window;
    o.learning_ridge = ridge;
    return o;
}

// In points of the change against the hold: the reference gives whole per cents and does not say
// how its recursion began.
#define check_change(opt, signal, want, points)                                                    \
    do {                                                                                           \
        const crd_coupling_options check_o = (opt), check_z = plain(CRD_METHOD_ZOH, 0);            \
        const double check_c =                                                                     \
            compensated_error(context_of(state), &check_o, signal, TORQUE_SAMPLES, TORQUE_K);      \
        const double check_h =                                                                     \
            compensated_error(context_of(state), &check_z, signal, TORQUE_SAMPLES, TORQUE_K);      \
        check_near(100 * (check_c / check_h - 1), want, points);                                   \
    } while (0)

static void recursive_least_squares_reaches_the_errors_of_the_reference(void** state)
{
    static double clean[TORQUE_SAMPLES], noisy[TORQUE_SAMPLES], hard[TORQUE_SAMPLES];
    torque(clean, false, false);
    torque(noisy, false, true);
    torque(hard, true, true);
    const crd_coupling_options nine = learning(CRD_ALGORITHM_RLS, 9, 200, 1e-4);
    const crd_coupling_options twenty = learning(CRD_ALGORITHM_RLS, 20, 200, 1e-4);
    check_change(nine, clean, -64, 1.5);
    check_change(twenty, clean, -62, 1.5);
    check_change(nine, noisy, -40, 0.6);
    check_change(twenty, noisy, -41, 0.6);
    check_change(nine, hard, 96, 10); // nothing but the jump counts here
    check_change(twenty, hard, 245, 20);
}

// The reference solves once over a whole run before; here it is learned on the way.
static void learning_reaches_what_the_reference_learns_from_a_run_before(void** state)
{
    static double noisy[TORQUE_SAMPLES];
    torque(noisy, false, true);
    check_change(learning(CRD_ALGORITHM_LEARNING, 9, 300, 0.01), noisy, -41, 1.5);
    check_change(learning(CRD_ALGORITHM_LEARNING, 25, 300, 0.01), noisy, -49, 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(the_signals_are_those_of_the_reference),
        coupling_unit_test(fixed_filters_reach_the_errors_of_the_reference),
        coupling_unit_test(switching_at_a_hard_shift_saves_foh_but_not_eros),
        coupling_unit_test(no_discontinuity_is_seen_in_a_filtered_shift),
        coupling_unit_test(rebasing_makes_a_hard_shift_as_good_as_a_filtered_one),
        coupling_unit_test(recursive_least_squares_reaches_the_errors_of_the_reference),
        coupling_unit_test(learning_reaches_what_the_reference_learns_from_a_run_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
