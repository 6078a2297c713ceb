// Elements, loops, signals and links as they are described, from end to end: what the command
// analyze, design and link show, and what other programs get from the same functions.
#include "check.h"

#include "cardan/analysis.h"
#include "shared/base.h"

#include <stdio.h>

static const double pi = 3.14159265358979323846;

// The two-mass oscillator of Baumann (2020), coupling A, as transfer functions and as matrices
static const char transfers[] = "{\"loop\": 1, \"step\": \"1 ms\", \"latency\": 3,\n"
                                " \"transfers\": [{\"num\": [1], \"den\": [10, 0.01, 100]},\n"
                                "  {\"num\": [100, 0.2, 10.0001, 0.01], \"den\": [20, 0.02, 1]}],\n"
                                " \"elements\": [\"zoh\", {\"algorithm\": \"zoh\"}]}\n";
static const char matrices[] =
    "{\"loop\": 1, \"step\": \"1 ms\", \"latency\": 3, \"units\": {\n"
    " \"mass\": {\"A\": [[0, 1], [-0.1, -0.0001]], \"B\": [[0], [0.01]], \"C\": [[1, 0], [0, 1]],\n"
    "  \"inputs\": [\"F\"], \"outputs\": [\"x\", \"v\"]},\n"
    " \"spring\": {\"A\": [[0, 1], [-20, -0.02]], \"B\": [[0, 0], [10, 0.01]], \"C\": [[10, "
    "0.01]],\n"
    "  \"D\": [[-10, -0.01]]}},\n"
    " \"links\": [{\"from\": \"spring.1\", \"to\": \"mass.F\", \"element\": \"zoh\"},\n"
    "  {\"from\": \"mass.x\", \"to\": \"spring.1\", \"element\": \"zoh\"},\n"
    "  {\"from\": \"mass.v\", \"to\": \"spring.2\", \"element\": \"zoh\"}]}\n";

static crd_status parse(crd_context* ctx, const char* json, const crd_loop_options* o,
                        crd_loop_model* m)
{
    return crd_loop_parse(ctx, json, strlen(json), "loop.yaml", o, m);
}

// ---- elements ----------------------------------------------------------------------------------

static void limits_and_peaks_of_eros_are_those_of_table_1(void** state)
{
    crd_element* e = NULL;
    crd_element_report r;
    check_ok(crd_element_of_name(*state, "eros", &e));
    check_ok(crd_analysis_element(e, 0.01, 6, 0.03, 3, &r));
    check_near(100 * r.worst.magnitude, 2.294217584, 1e-8);
    check_near(100 * r.worst.phase, 2.241303535, 1e-8);
    check_int(r.linears.count, 1);
    check_int(r.pieces[0].patterns, 0);
    check_near(r.pieces[0].dc, 1, 1e-12);
    check_near(r.pieces[0].peaks[0].gain, 8.051145, 1e-6);
    check_near(r.pieces[0].peaks[r.pieces[0].highest].gain, 20.926359, 1e-6);
    crd_element_report_clear(&r);
    crd_element_destroy(e);
}

static void the_worst_of_all_pieces_counts(void** state)
{
    static const char json[] =
        "{\"algorithm\": \"network\", \"latency\": 2, \"any-gain\": true, \"network\": {"
        "\"alpha\": 0, \"W1\": [[1, 0], [0, 1]], \"W2\": [[1, 0], [0, 1]], \"W3\": [0.5, 0.5]}}";
    crd_element* e = NULL;
    crd_element_report r;
    check_ok(crd_element_parse(*state, json, strlen(json), "net", 1, &e));
    check_int(crd_element_latency(e, 0.001), 2);
    check_ok(crd_analysis_element(e, 0.001, 2, 0.03, 3, &r));
    check_int(r.linears.count, 4);       // each ReLU on or off
    check_near(r.worst.magnitude, 0, 0); // all but one miss constants
    crd_element_report_clear(&r);
    crd_element_destroy(e);
    check_ok(crd_element_of_name(*state, "auto", &e));
    check_int(crd_element_latency(e, 0.001), -1);
    check_status(crd_analysis_element(e, 0.001, 2, 0.03, 3, &r), CRD_E_UNSUPPORTED);
    crd_element_destroy(e);
}

// ---- loops -------------------------------------------------------------------------------------

static void transfer_functions_have_the_margins_of_the_paper(void** state)
{
    crd_loop_options o = crd_loop_defaults();
    crd_loop_model m;
    crd_stability r;
    crd_margins margins;
    check_ok(parse(*state, transfers, &o, &m));
    check_ok(crd_analysis_loop(&m, &r));
    check(!r.stable);
    check_int(r.nyquist.closed_unstable, 2);
    check_near(crd_nyquist_phase_margin(&r.nyquist)->margin, -0.08814442634416843, 1e-5);
    check_contains(m.no_map, "give units and links");
    crd_free(*state, r.points);
    crd_loop_model_clear(&m);
    crd_element* foh = NULL;
    check_ok(crd_element_of_name(*state, "foh", &foh));
    o.element = foh;
    o.latency = 3e-3;
    check_ok(parse(*state, transfers, &o, &m));
    check_int(m.elements[1].current->k, 3);
    check_ok(crd_analysis_margins(&m, &margins));
    check(margins.known && margins.stable);
    check_near(margins.phase, 0.066994, 1e-5);
    crd_loop_model_clear(&m);
    o.latency = 1;
    check_status(parse(*state, transfers, &o, &m), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "1000 macro steps");
    crd_element_destroy(foh);
}

static void matrices_have_the_same_poles_and_an_exact_map(void** state)
{
    const crd_loop_options o = crd_loop_defaults();
    crd_loop_model m;
    crd_stability r;
    crd_margins margins;
    check_ok(parse(*state, matrices, &o, &m));
    check_int(m.element_count, 3);
    check_int(m.variants, 1);
    check_ok(crd_analysis_loop(&m, &r));
    check(!r.stable && r.nyquist.one_loop && r.after.known && r.before.known);
    check_near(r.poles.at[0].re, 9.842950618131232e-05, 1e-12);
    check_near(r.after.at[0].re, 7.349285e-5, 1e-10);
    check_near(r.before.at[0].re, 1.233661e-4, 1e-10);
    check_ok(crd_analysis_margins(&m, &margins));
    check(margins.known && !margins.stable);
    check_near(margins.delay, 0, 0);
    crd_free(*state, r.points);
    crd_loop_model_clear(&m);
}

static void a_proper_transfer_function_is_realised(void** state)
{
    // 4 / (1 + s)^3 and (2 + s) / (1 + s), an element behind each
    static const char json[] =
        "{\"loop\": 1, \"step\": 0.001, \"latency\": 0, \"elements\": [\"foh\", \"foh\"],"
        "\"transfers\": [{\"num\": [0.4], \"den\": [1, 3, 3, 1]}, {\"num\": [2, 1], \"den\": [1, "
        "1]}]}";
    const crd_loop_options o = crd_loop_defaults();
    crd_loop_model m;
    crd_stability r;
    check_ok(parse(*state, json, &o, &m));
    check_ok(crd_analysis_loop(&m, &r));
    check(r.stable && r.after.known);
    check_near(r.after.at[0].re, r.poles.at[0].re, 1e-5);
    check_near(r.after.at[0].im, r.poles.at[0].im, 1e-5);
    crd_free(*state, r.points);
    crd_loop_model_clear(&m);
}

static void bad_loops_are_named_with_their_line(void** state)
{
    static const char* const rows[][3] = {
        {"\"latency\": 3", "\"latency\": \"three\"", "loop.yaml:1: latency: expected"},
        {"\"loop\": 1", "\"loop\": 2", "loop.yaml:1: loop: expected 1"},
        {"\"num\": [1]", "\"nun\": [1]", "loop.yaml:2: unknown key 'nun', did you mean 'num'?"},
        {"\"num\": [1]", "\"num\": []", "loop.yaml:2: num: expected a list"},
        {"[20, 0.02, 1]", "[20, 0.02, 0]", "loop.yaml:3: den: the last coefficient"},
        {"\"zoh\",", "\"zohh\",", "loop.yaml:4: "},
        {"\"algorithm\"", "\"algoritm\"", "loop.yaml:4: "},
        {"\"transfers\"", "\"transfer\"", "expected transfers"},
    };
    const crd_loop_options o = crd_loop_defaults();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        crd_loop_model m;
        const char* at = strstr(transfers, rows[i][0]);
        check(at != NULL);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - transfers), transfers, rows[i][1],
                 at + strlen(rows[i][0]));
        check(parse(*state, text, &o, &m) < 0);
        check_contains(crd_error_text(*state), rows[i][2]);
    }
}

// ---- signals, designs, links -------------------------------------------------------------------

enum { SAMPLES = 4000 };

static crd_signal two_sines(double* y)
{
    for (int n = 0; n < SAMPLES; n++) {
        y[n] = 3 + 5 * sin(0.04 * n) + 2 * sin(0.09 * n);
    }
    return (crd_signal){.name = "torque", .y = y, .count = SAMPLES, .step = 0.01};
}

static void the_bandwidth_of_two_sines_is_the_faster_one(void** state)
{
    double y[SAMPLES];
    const crd_signal s = two_sines(y);
    crd_signal_report r;
    check_ok(crd_analysis_signal(*state, &s, 0, 0.99, &r));
    check(r.bandwidth >= 9 && r.bandwidth < 10.5);
    check_near(r.mean, 3, 0.1);
    crd_element* e = NULL;
    crd_step_need need;
    check_ok(crd_element_of_name(*state, "foh", &e));
    check_ok(crd_analysis_step_need(e, r.bandwidth, s.step, 1, NAN, 0.03, 3, &need));
    check_near(need.step, pi * 0.04017546321 / r.bandwidth, 1e-9);
    check_ok(crd_analysis_step_need(e, r.bandwidth, s.step, 1, 0.2, 0.03, 3, &need));
    check(isnan(need.step) && need.keeps < r.bandwidth); // 200 ms are too long, whatever the step
    check_ok(crd_analysis_step_need(e, r.bandwidth, s.step, 1, 0.002, 0.03, 3, &need));
    check(need.step >= 0.002 && need.keeps > r.bandwidth);
    check_int(need.k, 1);
    crd_element_destroy(e);
    crd_spectrum_clear(*state, &r.spectrum);
}

static void a_design_for_a_signal_beats_the_hold_and_is_an_element(void** state)
{
    double y[SAMPLES];
    const crd_signal s = two_sines(y);
    crd_arena arena;
    crd_text text;
    crd_element* e = NULL;
    crd_designed d[2];
    crd_linear l;
    crd_design_task task = crd_design_task_defaults();
    crd_arena_init(&arena, *state);
    crd_text_init(&text, *state);
    task.signal = &s;
    task.goal.dT = s.step;
    check_ok(crd_design_find_bands(*state, &arena, &task));
    check(task.band_count > 0 && task.goal.phase.hi < 12);
    for (int k = 0; k < 2; k++) {
        check_ok(crd_design_make(*state, &task, CRD_DESIGNER_WIENER, 5 + k, &d[k]));
        check(d[k].metrics.C < 0.2 * d[k].zoh);
    }
    check_ok(crd_design_describe("torque", s.step, d, 2, &text));
    check_ok(crd_element_parse(*state, text.data, text.length, "element", 1, &e));
    check_ok(crd_element_linear(e, NAN, 6, &l));
    for (int i = 0; i < l.m; i++) {
        check_near(l.a[i], d[1].linear.a[i], 0);
    }
    crd_linear_clear(*state, &l);
    crd_element_destroy(e);
    crd_text_clear(&text);
    crd_linear_clear(*state, &d[0].linear);
    crd_linear_clear(*state, &d[1].linear);
    memset(y, 0, sizeof y);
    check_status(crd_design_find_bands(*state, &arena, &task), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "'torque' is constant");
    crd_arena_clear(&arena);
}

static void a_link_has_the_latencies_of_its_packets(void** state)
{
    crd_arena arena;
    crd_link l;
    crd_arena_init(&arena, *state);
    check_ok(crd_link_emulate(*state, &arena, 0.0575, 0.005, 0.05, &l));
    check_ok(crd_link_examine(*state, &l, 0.01));
    check_near(l.mean, 0.0575, 1e-4);
    check_near((double)l.lost / (double)l.count, 0.05, 0.01);
    check_int(l.k_low, 6);
    check_int(l.k_most, 6);
    check_int(l.k_high, 9); // 62.5 ms, and two more for those that are lost
    check_status(crd_link_examine(*state, &l, 1e-4), CRD_E_RANGE);
    check_status(crd_link_emulate(*state, &arena, 0.01, 0.02, 0, &l), CRD_E_RANGE);
    crd_arena_clear(&arena);
}

static void candidates_are_tried_on_what_they_have_not_seen(void** state)
{
    double y[SAMPLES];
    const crd_signal s = two_sines(y);
    crd_arena arena;
    crd_link l;
    crd_link_trial t = {0};
    crd_text text;
    crd_element* e = NULL;
    crd_arena_init(&arena, *state);
    crd_text_init(&text, *state);
    check_ok(crd_link_emulate(*state, &arena, 0.05, 0, 0, &l));
    check_ok(crd_link_examine(*state, &l, s.step));
    check_ok(crd_link_design(*state, &l, &s, 2400, 0, 5, &t));
    check_int(t.count, CRD_LINK_CANDIDATES);
    check_int(t.candidates[4].design_count, 0); // only one was wanted
    check_text(t.candidates[5].name, "wiener");
    check_ok(crd_link_try(&t, &l, &s, 2400, 0));
    check_ok(crd_link_try(&t, &l, &s, 2400, 5));
    check(t.candidates[5].metrics.C < 0.2 * t.candidates[0].metrics.C);
    check_ok(crd_link_describe(&t.candidates[5], "torque", s.step, &text));
    check_ok(crd_element_parse(*state, text.data, text.length, "element", 1, &e));
    crd_element_destroy(e);
    crd_text_clear(&text);
    crd_link_trial_clear(&t);
    crd_arena_clear(&arena);
}

// ---- memory ------------------------------------------------------------------------------------

static crd_status everything(crd_context* ctx, const crd_signal* s)
{
    crd_status st = CRD_OK;
    const crd_loop_options o = crd_loop_defaults();
    crd_element* e = NULL;
    crd_element_report report = {0};
    crd_loop_model m = {0};
    crd_stability stability = {0};
    crd_link l;
    crd_link_trial t = {0};
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    CRD_TRY(crd_element_of_name(ctx, "eros", &e));
    CRD_TRY(crd_analysis_element(e, 0.01, 2, 0.03, 3, &report));
    CRD_TRY(parse(ctx, matrices, &o, &m));
    CRD_TRY(crd_analysis_loop(&m, &stability));
    CRD_TRY(crd_link_emulate(ctx, &arena, 0.03, 0, 0, &l));
    CRD_TRY(crd_link_examine(ctx, &l, s->step));
    CRD_TRY(crd_link_design(ctx, &l, s, s->count, 4, 5, &t));
    CRD_TRY(crd_link_try(&t, &l, s, 0, 5));
fail:
    crd_link_trial_clear(&t);
    crd_arena_clear(&arena);
    crd_free(ctx, stability.points);
    crd_loop_model_clear(&m);
    crd_element_report_clear(&report);
    crd_element_destroy(e);
    return st;
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    double y[SAMPLES];
    crd_signal s = two_sines(y);
    s.count = 400;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        a.fail_at = a.allocations + fail_at;
        const crd_status st = everything(ctx, &s);
        check_int(a.live, live);
        a.fail_at = -1;
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 20);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(limits_and_peaks_of_eros_are_those_of_table_1, ctx),
        cmocka_unit_test_prestate(the_worst_of_all_pieces_counts, ctx),
        cmocka_unit_test_prestate(transfer_functions_have_the_margins_of_the_paper, ctx),
        cmocka_unit_test_prestate(matrices_have_the_same_poles_and_an_exact_map, ctx),
        cmocka_unit_test_prestate(a_proper_transfer_function_is_realised, ctx),
        cmocka_unit_test_prestate(bad_loops_are_named_with_their_line, ctx),
        cmocka_unit_test_prestate(the_bandwidth_of_two_sines_is_the_faster_one, ctx),
        cmocka_unit_test_prestate(a_design_for_a_signal_beats_the_hold_and_is_an_element, ctx),
        cmocka_unit_test_prestate(a_link_has_the_latencies_of_its_packets, ctx),
        cmocka_unit_test_prestate(candidates_are_tried_on_what_they_have_not_seen, ctx),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
