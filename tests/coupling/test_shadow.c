// What an element would have made of a recorded signal.
#include "coupling_test.h"

static crd_replay_options steps(int k)
{
    crd_replay_options o = crd_replay_defaults();
    o.step = 0.01;
    o.delay = k * o.step;
    return o;
}

static crd_replay replay(crd_context* ctx, const char* word, const crd_replay_options* o,
                         const double* y, int64_t count, double* estimate)
{
    crd_element* e = NULL;
    crd_replay r;
    check_ok(word[0] == '{' ? crd_element_parse(ctx, word, strlen(word), "", 0, &e)
                            : crd_element_of_name(ctx, word, &e));
    check_ok(crd_coupling_replay(ctx, e, o, y, count, estimate, &r));
    crd_element_destroy(e);
    return r;
}

static double error_of(crd_context* ctx, const char* word, const crd_replay_options* o,
                       const double* y, int64_t count)
{
    const crd_replay r = replay(ctx, word, o, y, count, NULL);
    return 100 * crd_score_metrics(&r.score).C;
}

static void published_methods_have_their_errors_on_the_torque(void** state)
{
    crd_context* ctx = context_of(state);
    const crd_replay_options o = steps(TORQUE_K);
    double y[TORQUE_SAMPLES];
    torque(y, false, false);
    check_near(error_of(ctx, "zoh", &o, y, TORQUE_SAMPLES), 4.483569, 1e-6);
    const char *foh = "{\"algorithm\": \"foh\", \"react\": \"none\"}",
               *eros = "{\"algorithm\": \"eros\", \"react\": \"none\"}";
    check_near(error_of(ctx, foh, &o, y, TORQUE_SAMPLES), 3.784368, 1e-6);
    check_near(error_of(ctx, eros, &o, y, TORQUE_SAMPLES), 6.914798, 1e-6);
    check(error_of(ctx, "auto", &o, y, TORQUE_SAMPLES) < 0.5 * 4.483569);
    torque(y, true, true);
    check_near(error_of(ctx, "zoh", &o, y, TORQUE_SAMPLES), 5.214881, 1e-6);
    check_near(error_of(ctx, "foh+switch", &o, y, TORQUE_SAMPLES), 5.096866, 1e-6);
    check_near(error_of(ctx, "eros+switch", &o, y, TORQUE_SAMPLES), 7.385768, 1e-6);
}

static void every_algorithm_is_replayed_as_by_hand(void** state)
{
    crd_context* ctx = context_of(state);
    double y[TORQUE_SAMPLES];
    torque(y, true, true);
    const crd_replay_options o = steps(TORQUE_K);
    for (const char* const* name = crd_element_algorithms(); *name; name++) {
        crd_element* e = NULL;
        crd_coupling_options opt;
        check_ok(crd_element_of_name(ctx, *name, &e));
        check_ok(crd_element_options(e, o.step, &opt));
        check_near(error_of(ctx, *name, &o, y, TORQUE_SAMPLES),
                   compensated_error(ctx, &opt, y, TORQUE_SAMPLES, TORQUE_K), 1e-9);
        crd_element_destroy(e);
    }
}

static void latency_is_what_the_delay_says(void** state)
{
    crd_context* ctx = context_of(state);
    double y[TORQUE_SAMPLES];
    torque(y, false, true);
    crd_replay_options o = steps(0);
    o.delay = 0.0575;
    crd_replay r = replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL);
    check(r.k_max == 6 && r.k_mean == 6);
    check_near(100 * crd_score_metrics(&r.score).C, 4.489026, 1e-6); // as k = 6
    o.jitter = 0.02;
    r = replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL);
    check(r.k_max == 8 && r.k_mean > 4.5 && r.k_mean < 6.5);
    o.jitter = 0;
    o.loss = 0.05;
    r = replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL);
    check(r.lost > 30 && r.lost < 90 && r.k_max > 6);
    check_int(r.counts.samples + r.lost, TORQUE_SAMPLES - 6);
    o.burst = 3;
    check(replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL).k_max >= 9);
    o.loss = 0;
    o.duplicate = 1;
    r = replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL);
    check_int(r.repeated, TORQUE_SAMPLES);
    check_int(r.counts.duplicates, TORQUE_SAMPLES - 6);
    o.duplicate = 0;
    o.loss = 1;
    r = replay(ctx, "zoh", &o, y, TORQUE_SAMPLES, NULL);
    check_int(r.counts.samples, 0);
    check_int(r.score.count, TORQUE_SAMPLES);
}

static void seeds_repeat_and_differ(void** state)
{
    crd_context* ctx = context_of(state);
    double y[TORQUE_SAMPLES];
    torque(y, false, true);
    crd_replay_options o = steps(6);
    o.jitter = 0.02;
    o.loss = 0.05;
    const double one = error_of(ctx, "foh", &o, y, TORQUE_SAMPLES);
    check(error_of(ctx, "foh", &o, y, TORQUE_SAMPLES) == one);
    o.seed = 2;
    check(error_of(ctx, "foh", &o, y, TORQUE_SAMPLES) != one);
}

static void a_hold_has_no_overshoot_and_a_line_has_it_behind_a_step(void** state)
{
    crd_context* ctx = context_of(state);
    double y[100], estimate[100];
    for (int n = 0; n < 100; n++) {
        y[n] = n < 50 ? 1 : 3;
    }
    const crd_replay_options o = steps(3);
    crd_replay r = replay(ctx, "zoh", &o, y, 100, estimate);
    check(r.overshoot == 0 && r.overshoot_at == -1);
    check(r.worst_at == 50 && r.score.worst == 2);
    check(r.low == 1 && r.high == 3);
    check(estimate[52] == 1 && estimate[53] == 3);
    crd_element* e = NULL; // no reaction: the line runs on
    static const char foh[] = "{\"algorithm\": \"foh\", \"react\": \"none\"}";
    check_ok(crd_element_parse(ctx, foh, strlen(foh), "", 0, &e));
    check_ok(crd_coupling_replay(ctx, e, &o, y, 100, NULL, &r));
    check_near(r.overshoot, 3 * 2, 1e-12); // k times the step beyond the new level
    check_int(r.overshoot_at, 53);
    crd_element_destroy(e);
}

static void missing_samples_are_neither_sent_nor_scored(void** state)
{
    crd_context* ctx = context_of(state);
    double y[200], estimate[200];
    for (int n = 0; n < 200; n++) {
        y[n] = 5 + 0.1 * n;
    }
    y[0] = y[1] = NAN;
    for (int n = 100; n < 108; n++) {
        y[n] = NAN;
    }
    const crd_replay_options o = steps(4);
    const crd_replay r = replay(ctx, "foh", &o, y, 200, estimate);
    check_int(r.score.count, 190);
    check_int(r.counts.samples, 196 - 2 - 8);
    check_int(r.counts.not_finite, 0);
    check_near(r.k_max, 4 + 8, 0);
    check_near(estimate[0], 5.2, 1e-12); // the first that is there
    for (int n = 12; n < 200; n++) {
        check_near(estimate[n], 5 + 0.1 * n, 1e-9); // a line goes on through the gap
    }
}

static void an_element_believes_in_its_own_latency(void** state)
{
    crd_context* ctx = context_of(state);
    double y[100], estimate[100];
    for (int n = 0; n < 100; n++) {
        y[n] = n;
    }
    const crd_replay_options o = steps(6);
    crd_element* e = NULL;
    crd_replay r;
    static const char text[] = "{\"algorithm\": \"foh\", \"latency\": 4}";
    check_ok(crd_element_parse(ctx, text, strlen(text), "", 0, &e));
    check_ok(crd_coupling_replay(ctx, e, &o, y, 100, estimate, &r));
    check_int(r.k_max, 4);
    check_near(estimate[80], 78, 1e-9); // two steps are not compensated
    crd_element_destroy(e);
}

static void a_measured_link_has_a_delay_for_each_sample(void** state)
{
    crd_context* ctx = context_of(state);
    double y[100], estimate[100];
    for (int n = 0; n < 100; n++) {
        y[n] = n;
    }
    crd_replay_options o = steps(0);
    const double delays[5] = {0.02, 0.035, NAN, 0.01, 0.02}; // 1 overtaken by 3, 2 lost
    o.delays = delays;
    o.delay_count = 5;
    o.delay = o.loss = 1; // do not count
    const crd_replay r = replay(ctx, "zoh", &o, y, 100, estimate);
    check_int(r.lost, 20);
    check_int(r.score.count, 100);
    for (int n = 5; n < 100; n += 5) { // newest of what has arrived
        check_near(estimate[n], n - 2, 0);
        check_near(estimate[n + 1], n - 1, 0);
        check_near(estimate[n + 2], n, 0);
        check_near(estimate[n + 3], n, 0);
        check_near(estimate[n + 4], n + 3, 0);
    }
    check_near(crd_score_metrics(&r.score).worst, 3, 0);
    check_int(r.k_max, 3);

    o.delays = (const double[]){0.02};
    o.delay_count = 1;
    const crd_replay even = replay(ctx, "foh", &o, y, 100, NULL);
    const crd_replay_options same = steps(2);
    const crd_replay again = replay(ctx, "foh", &same, y, 100, NULL);
    check(even.score.dd == again.score.dd && even.overshoot == again.overshoot);
    o.delays = (const double[]){1e300};
    check_near(replay(ctx, "foh", &o, y, 100, NULL).score.worst, 99, 0); // nothing arrives
    o.delays = (const double[]){NAN};
    check_int(replay(ctx, "foh", &o, y, 100, NULL).lost, 100);
}

static void only_what_comes_later_may_be_scored(void** state)
{
    crd_context* ctx = context_of(state);
    double y[100];
    for (int n = 0; n < 100; n++) {
        y[n] = n < 50 ? 10 * (n % 2) : n;
    }
    crd_replay_options o = steps(2);
    o.first = 60;
    const crd_replay r = replay(ctx, "zoh", &o, y, 100, NULL);
    check_int(r.score.count, 40);
    check_near(r.score.worst, 2, 0);
    check(r.worst_at >= 60);
    check_near(r.low, 60, 0);
    check_near(r.high, 99, 0);
    check_near(r.overshoot, 0, 0);
    o.first = 100;
    check_int(replay(ctx, "zoh", &o, y, 100, NULL).score.count, 0);
}

static void channels_that_cannot_be_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    const double y[2] = {1, 2};
    crd_element* e = NULL;
    crd_replay r;
    check_ok(crd_element_of_name(ctx, "zoh", &e));
    crd_replay_options bad[12];
    for (int i = 0; i < 12; i++) {
        bad[i] = steps(1);
    }
    bad[0].step = 0;
    bad[1].step = NAN;
    bad[2].delay = -1;
    bad[3].delay = INFINITY;
    bad[4].jitter = 0.02;
    bad[5].loss = 1.1;
    bad[6].burst = 0;
    bad[7].duplicate = NAN;
    bad[8].jitter = NAN;
    bad[9].first = -1;
    bad[10].delays = y;
    bad[11].delays = (const double[]){1, -1};
    bad[11].delay_count = 2;
    for (int i = 0; i < 12; i++) {
        check_status(crd_coupling_replay(ctx, e, &bad[i], y, 2, NULL, &r), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), "replay: ");
    }
    const crd_replay_options good = steps(1);
    check_status(crd_coupling_replay(ctx, e, &good, y, 0, NULL, &r), CRD_E_RANGE);
    // What is not scored at all would have no error.
    check_status(crd_coupling_replay(ctx, e, &good, (double[]){NAN, NAN}, 2, NULL, &r),
                 CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "none is a number");
    check_status(crd_coupling_replay(ctx, e, &good, (double[]){1, 1e300}, 2, NULL, &r),
                 CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "sample 1 = 1e+300");
    check_ok(crd_coupling_replay(ctx, e, &good, (double[]){NAN, 2}, 2, NULL, &r));
    crd_element_destroy(e);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    const double y[4] = {1, 2, 3, 4};
    crd_replay_options o = steps(1);
    o.duplicate = 0.5;
    crd_status st = CRD_E_MEMORY;
    int failures = 0;
    for (int64_t at = 0; st == CRD_E_MEMORY; at++) {
        check_allocator memory;
        crd_context* ctx = check_context(&memory);
        crd_element* e = NULL;
        crd_replay r;
        check_ok(crd_element_of_name(ctx, "eros", &e));
        const int64_t before = memory.live;
        memory.fail_at = memory.allocations + at;
        st = crd_coupling_replay(ctx, e, &o, y, 4, NULL, &r);
        failures += st == CRD_E_MEMORY;
        check_int(memory.live, before);
        memory.fail_at = -1;
        crd_element_destroy(e);
        crd_context_destroy(ctx);
    }
    check_ok(st);
    check(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(published_methods_have_their_errors_on_the_torque),
        coupling_unit_test(every_algorithm_is_replayed_as_by_hand),
        coupling_unit_test(latency_is_what_the_delay_says),
        coupling_unit_test(seeds_repeat_and_differ),
        coupling_unit_test(a_hold_has_no_overshoot_and_a_line_has_it_behind_a_step),
        coupling_unit_test(missing_samples_are_neither_sent_nor_scored),
        coupling_unit_test(an_element_believes_in_its_own_latency),
        coupling_unit_test(a_measured_link_has_a_delay_for_each_sample),
        coupling_unit_test(only_what_comes_later_may_be_scored),
        coupling_unit_test(channels_that_cannot_be_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
