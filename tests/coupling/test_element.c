#include "coupling_test.h"

static crd_coupling_options options(crd_method method)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.step = 0.01;
    o.design = crd_design_defaults(method);
    return o;
}

static crd_coupling* element(void** state, const crd_coupling_options* o)
{
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(context_of(state), o, &c));
    return c;
}

static const crd_method methods[] = {CRD_METHOD_ZOH,    CRD_METHOD_FOH,
                                     CRD_METHOD_EROS,   CRD_METHOD_ERROR_SPACE,
                                     CRD_METHOD_MOMENT, CRD_METHOD_SAVITZKY_GOLAY,
                                     CRD_METHOD_WIENER};
enum { METHODS = sizeof methods / sizeof methods[0] };

typedef double signal_at(double t);

static double ramp(double t)
{
    return 2 - 3 * t;
}

static double constant(double t)
{
    (void)t;
    return 4.5;
}

static double swing(double t)
{
    return sin(3 * t) + 0.2 * cos(11 * t);
}

// Samples sent every step arrive 1 .. 9 steps later, out of order, one of five never, some twice.
// Returns the largest error of the element at any time after the 60th step.
static double worst_over_a_bad_link(crd_coupling* c, signal_at* y, double step, uint32_t seed)
{
    enum { SENT = 400 };
    static int arrival[SENT];
    static bool twice[SENT];
    for (int n = 0; n < SENT; n++) {
        const bool lost = n > 2 && next_uniform(&seed) < 0.2;
        arrival[n] = lost ? -1 : n + 1 + (int)(8 * next_uniform(&seed));
        twice[n] = next_uniform(&seed) < 0.1;
    }
    double worst = 0;
    for (int now = 0; now < SENT; now++) {
        for (int n = SENT - 1; n >= 0; n--) {
            if (arrival[n] == now || (twice[n] && arrival[n] == now - 1 && arrival[n] >= 0)) {
                crd_coupling_push(c, y(n * step), n * step, n);
            }
        }
        for (double theta = 0; theta < 1 && now > 60; theta += 0.3) {
            const double t = (now + theta) * step;
            worst = fmax(worst, fabs(crd_coupling_eval(c, t) - y(t)));
        }
    }
    return worst;
}

static void constants_survive_any_latency_pattern_with_every_algorithm(void** state)
{
    for (int i = 0; i < METHODS; i++) {
        for (int detection = 0; detection <= CRD_DETECT_GUARDED; detection++) {
            for (int reconstruction = 0; reconstruction <= CRD_RECONSTRUCT_SMOOTH;
                 reconstruction++) {
                crd_coupling_options o = options(methods[i]);
                o.detection = detection;
                o.reconstruction = reconstruction;
                crd_coupling* c = element(state, &o);
                check_near(worst_over_a_bad_link(c, constant, o.step, 7), 0, 1e-9);
                crd_coupling_destroy(c);
            }
        }
    }
}

static const crd_algorithm others[] = {CRD_ALGORITHM_NETWORK, CRD_ALGORITHM_LEARNING,
                                       CRD_ALGORITHM_RLS, CRD_ALGORITHM_AUTO};
enum { OTHERS = sizeof others / sizeof others[0] };

static crd_coupling* other_element(void** state, crd_algorithm algorithm, crd_coupling_options* o)
{
    crd_linear l = make(context_of(state), CRD_METHOD_EROS, 3);
    crd_network n;
    check_ok(crd_network_morph(context_of(state), &l, 0.01, &n));
    o->algorithm = algorithm;
    o->network = &n;
    crd_coupling* c = element(state, o);
    crd_linear_clear(context_of(state), &l);
    crd_network_clear(context_of(state), &n);
    return c;
}

static void constants_survive_with_what_is_not_linear_or_learns(void** state)
{
    for (int i = 0; i < OTHERS; i++) {
        for (int reconstruction = 0; reconstruction <= CRD_RECONSTRUCT_SMOOTH; reconstruction++) {
            crd_coupling_options o = options(CRD_METHOD_EROS);
            o.reconstruction = reconstruction;
            crd_coupling* c = other_element(state, others[i], &o);
            check_near(worst_over_a_bad_link(c, constant, o.step, 9), 0, 1e-9);
            crd_coupling_destroy(c);
        }
    }
}

static void ramps_survive_jitter_loss_and_disorder_with_foh_and_eros(void** state)
{
    for (int i = 1; i <= 3; i++) {
        for (uint32_t seed = 1; seed < 6; seed++) {
            crd_coupling_options o = options(methods[i]);
            crd_coupling* c = element(state, &o);
            check_near(worst_over_a_bad_link(c, ramp, o.step, seed), 0, 1e-9);
            const crd_coupling_counts n = crd_coupling_get_counts(c);
            check(n.filled > 50 && n.late > 50 && n.duplicates > 10);
            check_int(n.jumps + n.too_late + n.restarts + n.backwards + n.not_finite, 0);
            crd_coupling_destroy(c);
        }
    }
}

static void a_late_sample_leaves_the_history_as_if_it_had_been_in_time(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    o.detection = CRD_DETECT_NONE;
    crd_coupling *in_time = element(state, &o), *late = element(state, &o);
    static const int order[] = {0, 1, 2, 5, 3, 9, 4, 6, 8, 7, 10};
    for (int i = 0; i <= 10; i++) {
        crd_coupling_push(in_time, swing(i * o.step), i * o.step, i);
        crd_coupling_push(late, swing(order[i] * o.step), order[i] * o.step, order[i]);
    }
    for (double t = 0.1; t < 0.2; t += 0.003) {
        check_near(crd_coupling_eval(late, t), crd_coupling_eval(in_time, t), 0);
    }
    check_int(crd_coupling_get_counts(late).late, 5);
    crd_coupling_destroy(in_time);
    crd_coupling_destroy(late);
}

static void a_late_sample_from_before_a_jump_is_lifted_with_its_neighbours(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 100; n++) {
        if (n != 97) { crd_coupling_push(c, 0.1 * n + (n >= 98 ? 50 : 0), n * o.step, n); }
    }
    crd_coupling_push(c, 9.7, 97 * o.step, 97);
    check_near(crd_coupling_eval(c, 1.0), 60, 1e-9);
    // between 96 and 98 the history is lifted to the new level: asked for the past, it is a line
    check_near(crd_coupling_eval(c, 0.97), 59.7, 1e-9);
    crd_coupling_destroy(c);
}

static void gaps_in_a_smooth_signal_lie_on_its_curve(void** state)
{
    for (int lost = 1; lost <= 3; lost++) {
        crd_coupling_options o = options(CRD_METHOD_FOH);
        crd_coupling* c = element(state, &o);
        double worst = 0, worst_on_line = 0;
        for (int n = 0; n < 400; n++) {
            const int gap = (n - 60) % 20; // since the first of a gap, if there was one
            if (n >= 60 && gap < lost) { continue; }
            crd_coupling_push(c, swing(n * o.step), n * o.step, n);
            for (int i = 1; i <= lost && n >= 60 && gap == lost; i++) {
                const double t = (n - i) * o.step, from = swing((n - lost - 1) * o.step);
                const double line = from + (swing(n * o.step) - from) * (lost + 1 - i) / (lost + 1);
                worst = fmax(worst, fabs(crd_coupling_eval(c, t) - swing(t)));
                worst_on_line = fmax(worst_on_line, fabs(line - swing(t)));
            }
        }
        check(worst < 0.1 * worst_on_line);
        check_int(crd_coupling_get_counts(c).jumps, 0);
        check_int(crd_coupling_get_counts(c).filled, 17 * lost);
        crd_coupling_destroy(c);
    }
}

static double swing_with_jump(int n, int at)
{
    return swing(0.01 * n) + (n >= at ? 5 : 0);
}

// A jump behind a gap is taken to be at the first sample after it, until the others come.
static void late_samples_put_a_jump_in_its_place(void** state)
{
    static const int order[3][3] = {{100, 99, 98}, {100, 98, 99}, {99, 100, 98}};
    for (int at = 98; at <= 101; at++) {
        for (int i = 0; i < 3; i++) {
            crd_coupling_options o = options(CRD_METHOD_EROS);
            crd_coupling *c = element(state, &o), *in_time = element(state, &o);
            for (int n = 0; n < 110; n++) {
                const int late = n >= 98 && n <= 100 ? order[i][n - 98] : n;
                crd_coupling_push(c, swing_with_jump(late, at), late * o.step, late);
                crd_coupling_push(in_time, swing_with_jump(n, at), n * o.step, n);
            }
            check_int(crd_coupling_get_counts(c).jumps, 1);
            for (int n = 90; n < 116; n++) { // the level before the jump is as good as extrapolated
                check_near(crd_coupling_eval(c, n * o.step), crd_coupling_eval(in_time, n * o.step),
                           0.01);
            }
            crd_coupling_destroy(c);
            crd_coupling_destroy(in_time);
        }
    }
}

// With two samples missing a jump of this size is within what the signal could have done.
static void a_jump_that_only_a_late_sample_shows_is_found(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 110; n++) {
        const int late = n == 98 ? 100 : n == 100 ? 98 : n;
        crd_coupling_push(c, sin(0.45 * late) + (late >= 99 ? 1.2 : 0), late * o.step, late);
        check_int(crd_coupling_get_counts(c).jumps, n >= 99);
        if (n == 98) { check(!crd_coupling_get_state(c).jump); }
    }
    // lifted, by what can be told of the height without number 98
    check_near(crd_coupling_eval(c, 0.975), 1.2 + (sin(0.45 * 97) + sin(0.45 * 98)) / 2, 0.4);
    crd_coupling_destroy(c);
}

typedef struct link {
    double jitter, loss; // in steps, part
    int burst;
} link;
static const link links[] = {{0, 0, 1}, {0, 0.05, 1}, {0, 0.2, 1}, {0, 0.2, 3},
                             {2, 0, 1}, {2, 0.05, 1}, {2, 0.2, 1}};
enum { LINKS = sizeof links / sizeof links[0], LONG = 3000 };

static crd_replay over_link(void** state, const char* name, const link* l, const double* y)
{
    crd_element* e = NULL;
    crd_replay r;
    crd_replay_options o = crd_replay_defaults();
    o.step = 0.01;
    o.delay = 0.06;
    o.jitter = l->jitter * o.step;
    o.loss = l->loss;
    o.burst = l->burst;
    check_ok(crd_element_of_name(context_of(state), name, &e));
    check_ok(crd_coupling_replay(context_of(state), e, &o, y, LONG, NULL, &r));
    crd_element_destroy(e);
    return r;
}

static double smooth(int which, int n)
{
    const double pi = acos(-1), f = 0.0025 + 0.0725 * n / LONG; // of the chirp
    switch (which) {
    case 0:
        return sin(0.01 * pi * n);
    case 1:
        return sin(0.05 * pi * n);
    case 2:
        return sin(0.15 * pi * n);
    case 3:
        return sin(0.013 * pi * n) + 0.3 * sin(0.08 * pi * n + 1);
    case 4:
        return 3 * exp(-n / 400.0);
    default:
        return sin(2 * pi * f * n / 2);
    }
}

static void smooth_signals_over_a_bad_link_have_no_jumps(void** state)
{
    static double y[LONG];
    static const double noise[] = {0, 1e-3, 1e-2, 0.1};
    for (int which = 0; which < 6; which++) {
        for (int i = 0; i < 4; i++) {
            uint32_t x = 17;
            for (int n = 0; n < LONG; n++) {
                y[n] = smooth(which, n) + 0.7 * noise[i] * next_normal(&x);
            }
            for (int l = 0; l < LINKS; l++) {
                const int64_t jumps = over_link(state, "eros+rebase", &links[l], y).counts.jumps;
                if (jumps > LONG / 1000) {
                    fail_msg("signal %d, noise %g, link %d: %d jumps", which, noise[i], l,
                             (int)jumps);
                }
            }
        }
    }
}

static void jumps_over_a_bad_link_are_found_in_their_place(void** state)
{
    static double y[LONG];
    uint32_t x = 5;
    int jumps = 0, next = 100;
    double level = 0;
    for (int n = 0; n < LONG; n++) {
        if (n == next) {
            level += next_uniform(&x) < 0.5 ? -1 : 1;
            next += 60 + (int)(80 * next_uniform(&x));
            jumps++;
        }
        y[n] = sin(0.03 * acos(-1) * n) + level + 7e-4 * next_normal(&x);
    }
    double best = 0;
    for (int l = 0; l < LINKS; l++) {
        const crd_replay r = over_link(state, "wiener+rebase", &links[l], y);
        // a height that was taken across a gap may need another jump to be put right
        check_near((double)r.counts.jumps, jumps, 3);
        const double rms = crd_score_metrics(&r.score).rms;
        if (l == 0) { best = rms; }
        check(rms < 1.5 * best);
    }
}

static void shifted_time_and_scaled_signals_give_shifted_and_scaled_results(void** state)
{
    for (int i = 0; i < METHODS; i++) {
        crd_coupling_options o = options(methods[i]);
        o.step = 0.0078125; // a power of two: shifting is exact
        crd_coupling *c = element(state, &o), *d = element(state, &o);
        for (int n = 0; n < 200; n++) {
            const double y = swing(n * o.step) + (n > 120);
            crd_coupling_push(c, y, n * o.step, n);
            crd_coupling_push(d, -8 * y, 64 + n * o.step, 1000 + n);
            for (double theta = 0; theta < 1; theta += 0.25) {
                const double t = (n + 4 + theta) * o.step;
                check_near(crd_coupling_eval(d, 64 + t), -8 * crd_coupling_eval(c, t), 0);
            }
        }
        check_int(crd_coupling_get_counts(c).jumps, 1);
        crd_coupling_destroy(c);
        crd_coupling_destroy(d);
    }
}

static void what_is_not_linear_or_learns_shifts_and_scales_with_time_and_signal(void** state)
{
    for (int i = 0; i < OTHERS; i++) {
        crd_coupling_options o = options(CRD_METHOD_EROS);
        o.step = 0.0078125;
        crd_coupling* c = other_element(state, others[i], &o);
        crd_coupling* d = other_element(state, others[i], &o);
        for (int n = 0; n < 400; n++) {
            const double y = swing(n * o.step) + (n > 220);
            if (n % 11 == 4) { continue; } // lost
            crd_coupling_push(c, y, n * o.step, n);
            crd_coupling_push(d, 1024 * y, 64 + n * o.step, 1000 + n);
            for (double theta = 0; theta < 1; theta += 0.5) {
                const double t = (n + 1 + n % 4 + theta) * o.step;
                check_near(crd_coupling_eval(d, 64 + t), 1024 * crd_coupling_eval(c, t), 0);
            }
        }
        crd_coupling_destroy(c);
        crd_coupling_destroy(d);
    }
}

// Samples in order have a shorter way; it leads to the same bits.
static void stamps_numbers_and_order_give_equal_bits(void** state)
{
    for (int i = 0; i < METHODS; i++) {
        for (int detection = 0; detection <= CRD_DETECT_GUARDED; detection++) {
            crd_coupling_options o = options(methods[i]);
            o.step = 0.0078125;
            o.detection = detection;
            crd_coupling* c[4];
            for (int j = 0; j < 4; j++) {
                c[j] = element(state, &o);
            }
            for (int n = 0; n < 300; n++) {
                const double y = n % 50 == 9 ? NAN : swing(n * o.step) + (n > 200);
                const double t = (n + n % 7 + 0.375) * o.step;
                for (int j = 0; j < 4; j++) {
                    crd_coupling_push(c[j], y, j & 1 ? NAN : n * o.step, j & 2 ? -1 : n);
                }
                const double want = crd_coupling_eval(c[0], t);
                for (int j = 1; j < 4; j++) {
                    check_near(crd_coupling_eval(c[j], t), want, 0);
                    check_int(crd_coupling_get_state(c[j]).k, n % 7);
                }
            }
            for (int j = 0; j < 4; j++) {
                const crd_coupling_counts counts = crd_coupling_get_counts(c[j]);
                check_int(counts.samples, 300);
                check_int(counts.not_finite, 6);
                check_int(crd_coupling_get_state(c[j]).sequence, 299);
                crd_coupling_destroy(c[j]);
            }
        }
    }
}

static void the_latency_is_measured_at_every_step(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 40; n++) {
        crd_coupling_push(c, ramp(n * o.step), n * o.step, n);
        for (int k = 0; k <= n % 17; k++) {
            check_near(crd_coupling_eval(c, (n + k) * o.step), ramp((n + k) * o.step), 1e-11);
            check_int(crd_coupling_get_state(c).k, k);
        }
    }
    crd_coupling_destroy(c);
}

static void samples_find_their_place_by_stamp_or_number_or_order_alone(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    o.start_time = 5;
    crd_coupling *by_stamp = element(state, &o), *by_number = element(state, &o);
    crd_coupling* by_order = element(state, &o);
    for (int n = 0; n < 60; n++) {
        const double t = o.start_time + n * o.step;
        if (n % 5 != 3) {
            crd_coupling_push(by_stamp, ramp(t), t, -1);
            crd_coupling_push(by_number, ramp(t), NAN, n);
        }
        crd_coupling_push(by_order, ramp(t), NAN, -1);
    }
    const double t = o.start_time + 62.5 * o.step;
    check_near(crd_coupling_eval(by_stamp, t), ramp(t), 1e-9);
    check_near(crd_coupling_eval(by_number, t), ramp(t), 1e-9);
    check_near(crd_coupling_eval(by_order, t), ramp(t), 1e-9);
    check_int(crd_coupling_get_counts(by_stamp).filled, 12);
    check_int(crd_coupling_get_counts(by_number).filled, 12);
    crd_coupling_destroy(by_stamp);
    crd_coupling_destroy(by_number);
    crd_coupling_destroy(by_order);
}

static void samples_that_are_not_finite_are_held_and_counted(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_ZOH);
    crd_coupling* c = element(state, &o);
    crd_coupling_push(c, NAN, 0, 0); // before anything is known
    check_near(crd_coupling_eval(c, 0), 0, 0);
    crd_coupling_push(c, 3, 0.01, 1);
    crd_coupling_push(c, INFINITY, 0.02, 2);
    crd_coupling_push(c, -INFINITY, 0.03, 3);
    check_near(crd_coupling_eval(c, 0.03), 3, 0);
    crd_coupling_push(c, 4, 0.03, 3); // sent again, this time with a value
    check_near(crd_coupling_eval(c, 0.03), 4, 0);
    crd_coupling_push(c, 1e308, 0.04, 4); // no measurement either
    check_near(crd_coupling_eval(c, 0.04), 4, 0);
    check_int(crd_coupling_get_counts(c).not_finite, 4);
    crd_coupling_destroy(c);
}

static void a_prediction_that_overflows_becomes_the_newest_sample(void** state)
{
    const double a[2] = {1e100, 1 - 1e100};
    const crd_linear large = {2, 0, a, NULL, 0};
    crd_coupling_options o = options(CRD_METHOD_ZOH);
    o.detection = CRD_DETECT_NONE;
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = &large;
    o.given_count = 1;
    o.any_gain = true;
    crd_coupling* c = element(state, &o);
    crd_coupling_push(c, -1e240, 0, 0);
    crd_coupling_push(c, 1e240, 0.01, 1);
    check_near(crd_coupling_eval(c, 0.05), 1e240, 0);
    check_int(crd_coupling_get_counts(c).overflows, 1);
    crd_coupling_destroy(c);
}

static void time_that_goes_backwards_is_answered_and_counted(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 30; n++) {
        crd_coupling_push(c, ramp(n * o.step), n * o.step, n);
    }
    check_near(crd_coupling_eval(c, 0.31), ramp(0.31), 1e-10);
    check_near(crd_coupling_eval(c, 0.205), ramp(0.205), 1e-10); // from the history
    check_near(crd_coupling_eval(c, -1e9), *(double[]){ramp(0)}, 1e-10);
    check_int(crd_coupling_get_counts(c).rewound, 2);
    check(isfinite(crd_coupling_eval(c, NAN)));
    check(isfinite(crd_coupling_eval(c, INFINITY)));
    crd_coupling_push(c, ramp(0.3), 0.1, 30); // the number says later, the stamp earlier
    check_int(crd_coupling_get_counts(c).backwards, 1);
    check_near(crd_coupling_eval(c, 0.32), ramp(0.32), 1e-10);
    crd_coupling_destroy(c);
}

static void a_latency_beyond_the_table_is_held_at_its_end(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    o.k_max = 4;
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 10; n++) {
        crd_coupling_push(c, n, n * o.step, n);
    }
    check_near(crd_coupling_eval(c, 0.139), 13.9, 1e-9);
    check_near(crd_coupling_eval(c, 0.14), 14, 1e-9);
    check_near(crd_coupling_eval(c, 0.5), 14, 1e-9);
    check_near(crd_coupling_eval(c, 1e300), 14, 1e-9);
    check_int(crd_coupling_get_counts(c).beyond, 3);
    crd_coupling_destroy(c);
}

static void a_clock_that_was_set_is_followed(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    for (int by_number = 0; by_number < 2; by_number++) {
        for (int hours = -1; hours < 2; hours++) { // stamps jump back for good, or one is too large
            crd_coupling* c = element(state, &o);
            double y = 0;
            for (int n = 0; n < 100; n++) {
                const bool odd = hours < 0 ? n >= 50 : n == 50;
                const double clock = odd ? 3600.0 * hours : 0, t = n * o.step;
                crd_coupling_push(c, ramp(t), t + clock, by_number ? n : -1);
                y = crd_coupling_eval(c, t + 3 * o.step + (hours < 0 ? clock : 0));
            }
            check_near(y, ramp(102 * o.step), 1e-9);
            crd_coupling_destroy(c);
        }
    }
}

static void a_coarse_clock_is_smoothed_by_the_numbers(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_FOH);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 200; n++) { // 20 samples have the same stamp
        crd_coupling_push(c, ramp(n * o.step), floor(n / 20.0) * 20 * o.step, n);
        check_near(crd_coupling_eval(c, (n + 3) * o.step), n < 1 ? ramp(0) : ramp((n + 3) * o.step),
                   1e-9);
    }
    crd_coupling_destroy(c);
}

static void a_partner_that_begins_anew_is_followed(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 1000; n++) {
        crd_coupling_push(c, ramp(n * o.step), n * o.step, n);
    }
    crd_coupling_push(c, 7, 10.00, 0); // later stamp, first number
    check_int(crd_coupling_get_counts(c).restarts, 1);
    check_near(crd_coupling_eval(c, 10.03), 7, 1e-12);
    crd_coupling_push(c, 8, 1e6, INT64_MAX); // away for very long
    check_int(crd_coupling_get_counts(c).restarts, 2);
    check_near(crd_coupling_eval(c, 1e6), 8, 1e-12);
    for (int n = 0; n < 20; n++) { // numbers only: believed after some of them
        crd_coupling_push(c, 9, NAN, n);
    }
    check_int(crd_coupling_get_counts(c).restarts, 3);
    check_int(crd_coupling_get_state(c).sequence, 19);
    check_near(crd_coupling_eval(c, 0.2), 9, 1e-12);
    crd_coupling_destroy(c);
}

static void a_new_macro_step_keeps_ramps(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    o.k_max = 8;
    o.late = 100; // enough history for the longer step
    crd_coupling* c = element(state, &o);
    for (int n = 0; n < 200; n++) {
        crd_coupling_push(c, ramp(n * 0.01), n * 0.01, -1);
    }
    check(!crd_coupling_set_step(c, 0));
    check(!crd_coupling_set_step(c, NAN));
    check(!crd_coupling_set_step(c, INFINITY));
    const double steps[] = {0.005, 0.05, 0.02};
    double t = 1.99;
    for (int i = 0; i < 3; i++) {
        check(crd_coupling_set_step(c, steps[i]));
        check_near(crd_coupling_eval(c, t + 3.5 * steps[i]), ramp(t + 3.5 * steps[i]), 1e-9);
        t += steps[i];
        crd_coupling_push(c, ramp(t), t, -1);
        check_near(crd_coupling_eval(c, t + 3.5 * steps[i]), ramp(t + 3.5 * steps[i]), 1e-9);
    }
    check_int(crd_coupling_get_counts(c).filled, 0);
    crd_coupling_destroy(c);
}

static void the_slope_is_the_derivative_of_the_curve(void** state)
{
    for (int i = 0; i < METHODS * 3 * 2; i++) { // with detection the way is another one
        crd_coupling_options o = options(methods[i / 6]);
        o.reconstruction = i / 2 % 3;
        o.detection = i % 2 ? CRD_DETECT_GUARDED : CRD_DETECT_NONE;
        crd_coupling* c = element(state, &o);
        double steepest = 0;
        for (int n = 0; n < 60; n++) {
            crd_coupling_push(c, swing(n * o.step), n * o.step, n);
            for (int j = 0; n > 20 && j < 4; j++) {
                const double t = (n + 2 + 0.1 + 0.25 * j) * o.step, h = 0.01 * o.step;
                const double low = crd_coupling_eval(c, t - h), high = crd_coupling_eval(c, t + h);
                check_near(crd_coupling_slope(c, t), (high - low) / (2 * h), 1e-8);
                steepest = fmax(steepest, fabs(crd_coupling_slope(c, t)));
            }
            if (n > 20) {
                crd_coupling_eval(c, (n + 3) * o.step - 1e-9);
            } // a smooth one leaves here
        }
        check(o.reconstruction == CRD_RECONSTRUCT_HOLD ? steepest == 0
              : o.reconstruction == CRD_RECONSTRUCT_SMOOTH
                  ? steepest > 1
                  : steepest > 1 || o.design.method == CRD_METHOD_ZOH ||
                        o.design.method >= CRD_METHOD_MOMENT);
        crd_coupling_destroy(c);
    }
}

static void reconstruction_holds_follows_or_smoothes(void** state)
{
    double largest[3] = {0}, inside[3] = {0};
    for (int r = 0; r < 3; r++) {
        crd_coupling_options o = options(CRD_METHOD_FOH);
        o.reconstruction = r;
        crd_coupling* c = element(state, &o);
        double before = 0;
        for (int i = 0; i < 20000; i++) { // 100 micro steps per macro step
            if (i % 100 == 0) { crd_coupling_push(c, swing(i * 1e-4), i * 1e-4, i / 100); }
            const double now = crd_coupling_eval(c, i * 1e-4 + 3 * o.step);
            if (i > 1000) {
                double* change = i % 100 == 0 ? &largest[r] : &inside[r];
                *change = fmax(*change, fabs(now - before));
            }
            before = now;
        }
        crd_coupling_destroy(c);
    }
    check_near(inside[CRD_RECONSTRUCT_HOLD], 0, 1e-15); // a step at every exchange, none between
    check(largest[CRD_RECONSTRUCT_OWN] > 20 * inside[CRD_RECONSTRUCT_OWN]);
    check(largest[CRD_RECONSTRUCT_SMOOTH] < 2 * inside[CRD_RECONSTRUCT_OWN]); // no step anywhere
}

static void switching_goes_from_hold_over_line_back_to_eros(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    o.detection = CRD_DETECT_SPECTRUM;
    o.reaction = CRD_REACT_SWITCH;
    crd_coupling* c = element(state, &o);
    double worst = 0;
    for (int n = 0; n < 60; n++) {
        crd_coupling_push(c, 0.01 * n + (n >= 30), n * o.step, n);
        const double now = crd_coupling_eval(c, (n + 3) * o.step);
        const crd_coupling_state s = crd_coupling_get_state(c);
        check_int(s.jump, n == 30);
        check_int(s.active != CRD_ACTIVE_ALGORITHM,
                  n >= 30 && n < 35); // 1 hold and k + 1 = 4 lines
        worst = n >= 30 ? fmax(worst, fabs(now - (0.01 * (n + 3) + 1))) : worst;
    }
    check_near(worst, 0.03, 1e-12); // what the hold misses once
    crd_coupling_destroy(c);
}

// Foh multiplies a jump by k + 1, a re-based one continues at the new level.
static void without_reaction_foh_overshoots_fourfold_and_rebased_not_at_all(void** state)
{
    for (int reaction = CRD_REACT_NONE; reaction <= CRD_REACT_REBASE; reaction += 2) {
        crd_coupling_options o = options(CRD_METHOD_FOH);
        o.reaction = reaction;
        crd_coupling* c = element(state, &o);
        double highest = 0;
        for (int n = 0; n < 100; n++) {
            crd_coupling_push(c, n >= 70, n * o.step, n);
            highest = fmax(highest, crd_coupling_eval(c, (n + 3) * o.step));
        }
        check_near(highest, reaction == CRD_REACT_NONE ? 4 : 1, 1e-9);
        check_int(crd_coupling_get_counts(c).jumps, 1);
        crd_coupling_destroy(c);
    }
}

static void given_weights_are_used_by_latency(void** state)
{
    const double hold[1] = {1}, foh2[2] = {3, -2}, A[2] = {1, -1};
    const crd_linear given[] = {{1, 0, hold, NULL}, {2, 2, foh2, A}};
    crd_coupling_options o = options(CRD_METHOD_ZOH);
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = given;
    o.given_count = 2;
    crd_coupling* c = element(state, &o);
    crd_coupling_push(c, 1, 0, 0);
    crd_coupling_push(c, 2, 0.01, 1);
    check_near(crd_coupling_eval(c, 0.02), 2, 1e-12);
    check_near(crd_coupling_eval(c, 0.03), 4, 1e-12);
    check_near(crd_coupling_eval(c, 0.04), 4, 1e-12);
    crd_coupling_destroy(c);
}

static void reset_makes_an_element_as_new(void** state)
{
    crd_coupling_options o = options(CRD_METHOD_EROS);
    o.start_value = 0.5;
    crd_coupling* c = element(state, &o);
    check_near(crd_coupling_eval(c, 0.03), 0.5, 1e-15);
    double first[50];
    for (int run = 0; run < 2; run++) {
        for (int n = 0; n < 50; n++) {
            crd_coupling_push(c, swing(n * o.step) + (n > 40), n * o.step, n);
            const double now = crd_coupling_eval(c, (n + 2.5) * o.step);
            check_near(now, run == 0 ? now : first[n], 0);
            first[n] = now;
        }
        crd_coupling_reset(c);
        check_int(crd_coupling_get_counts(c).samples, 0);
    }
    crd_coupling_destroy(c);
}

static void hostile_pushes_and_times_never_break_an_element(void** state)
{
    const double values[] = {0, 1, -1e250, 1e250, NAN, INFINITY, 1e-320};
    const double times[] = {0, 0.01, -1e308, 1e308, NAN, INFINITY, -INFINITY, 0.5};
    const int64_t numbers[] = {-1, 0, 1, 7, INT64_MAX, INT64_MIN, 1 << 20};
    uint32_t seed = 3;
    for (int kind = 0; kind < 3 * METHODS; kind++) {
        crd_coupling_options o = options(methods[kind / 3]);
        o.reconstruction = kind % 3;
        o.detection = (kind + 1) % 3;
        crd_coupling* c = element(state, &o);
        for (int i = 0; i < 10000; i++) {
            crd_coupling_push(c, values[(int)(7 * next_uniform(&seed))],
                              times[(int)(8 * next_uniform(&seed))] + 0.01 * (i % 50),
                              numbers[(int)(7 * next_uniform(&seed))]);
            const double t = times[(int)(8 * next_uniform(&seed))] + 0.003 * (i % 170);
            check(isfinite(crd_coupling_eval(c, t)));
            if (i % 1000 == 0) { crd_coupling_set_step(c, 0.001 + next_uniform(&seed)); }
            check_int(crd_coupling_get_counts(c).samples, i + 1);
        }
        crd_coupling_destroy(c);
    }
}

static void options_that_make_no_sense_are_refused_with_the_number(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling* c = NULL;
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "step = 0");
    o = options(CRD_METHOD_ZOH);
    o.k_max = 100000;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "k_max = 100000");
    o = options(CRD_METHOD_ZOH);
    o.start_value = NAN;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    o = options(CRD_METHOD_ZOH);
    o.algorithm = CRD_ALGORITHM_GIVEN;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "given_count = 0");
    o = options(CRD_METHOD_ZOH);
    o.threshold = -1;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    o = options(CRD_METHOD_MOMENT);
    o.design.taps = 0;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check(c == NULL);
    crd_coupling_destroy(NULL);
}

static void every_allocation_of_create_may_fail(void** state)
{
    coupling_test* test = *state;
    const double a[2] = {2, -1};
    const crd_linear l = {2, 1, a, NULL, 0};
    crd_network network;
    check_ok(crd_network_morph(test->ctx, &l, 0.01, &network));
    for (int kind = 0; kind <= CRD_ALGORITHM_NETWORK; kind++) {
        crd_coupling_options o = options(CRD_METHOD_WIENER);
        o.k_max = 3;
        o.algorithm = kind;
        o.given = &l;
        o.given_count = 1;
        o.network = &network;
        const int64_t before = test->memory.live;
        crd_status st = CRD_E_MEMORY;
        int64_t failures = 0;
        for (int64_t fail_at = 0; st == CRD_E_MEMORY; fail_at++) {
            crd_coupling* c = NULL;
            test->memory.allocations = 0;
            test->memory.fail_at = fail_at;
            st = crd_coupling_create(test->ctx, &o, &c);
            test->memory.fail_at = -1;
            if (st == CRD_OK) {
                const int64_t made = test->memory.allocations;
                for (int n = 0; n < 300; n++) { // steps do not allocate
                    crd_coupling_push(c, sin(n), n * o.step, n + n % 3);
                    crd_coupling_eval(c, (n + 2) * o.step);
                }
                check_int(test->memory.allocations, made);
            }
            crd_coupling_destroy(c);
            check_int(test->memory.live, before);
            failures++;
        }
        check_ok(st);
        check(failures > 8);
    }
    crd_network_clear(test->ctx, &network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(constants_survive_any_latency_pattern_with_every_algorithm),
        coupling_unit_test(constants_survive_with_what_is_not_linear_or_learns),
        coupling_unit_test(ramps_survive_jitter_loss_and_disorder_with_foh_and_eros),
        coupling_unit_test(a_late_sample_leaves_the_history_as_if_it_had_been_in_time),
        coupling_unit_test(a_late_sample_from_before_a_jump_is_lifted_with_its_neighbours),
        coupling_unit_test(gaps_in_a_smooth_signal_lie_on_its_curve),
        coupling_unit_test(late_samples_put_a_jump_in_its_place),
        coupling_unit_test(a_jump_that_only_a_late_sample_shows_is_found),
        coupling_unit_test(smooth_signals_over_a_bad_link_have_no_jumps),
        coupling_unit_test(jumps_over_a_bad_link_are_found_in_their_place),
        coupling_unit_test(shifted_time_and_scaled_signals_give_shifted_and_scaled_results),
        coupling_unit_test(what_is_not_linear_or_learns_shifts_and_scales_with_time_and_signal),
        coupling_unit_test(stamps_numbers_and_order_give_equal_bits),
        coupling_unit_test(the_latency_is_measured_at_every_step),
        coupling_unit_test(samples_find_their_place_by_stamp_or_number_or_order_alone),
        coupling_unit_test(samples_that_are_not_finite_are_held_and_counted),
        coupling_unit_test(a_prediction_that_overflows_becomes_the_newest_sample),
        coupling_unit_test(time_that_goes_backwards_is_answered_and_counted),
        coupling_unit_test(a_clock_that_was_set_is_followed),
        coupling_unit_test(a_coarse_clock_is_smoothed_by_the_numbers),
        coupling_unit_test(a_latency_beyond_the_table_is_held_at_its_end),
        coupling_unit_test(a_partner_that_begins_anew_is_followed),
        coupling_unit_test(a_new_macro_step_keeps_ramps),
        coupling_unit_test(the_slope_is_the_derivative_of_the_curve),
        coupling_unit_test(reconstruction_holds_follows_or_smoothes),
        coupling_unit_test(switching_goes_from_hold_over_line_back_to_eros),
        coupling_unit_test(without_reaction_foh_overshoots_fourfold_and_rebased_not_at_all),
        coupling_unit_test(given_weights_are_used_by_latency),
        coupling_unit_test(reset_makes_an_element_as_new),
        coupling_unit_test(hostile_pushes_and_times_never_break_an_element),
        coupling_unit_test(options_that_make_no_sense_are_refused_with_the_number),
        coupling_unit_test(every_allocation_of_create_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
