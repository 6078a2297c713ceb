// Benches as pages see them: what the moments of a board tell, margins, and the JSON of it.
#include "check.h"
#include "json_tree.h"

#include "shared/dcp.h"
#include "shared/dcp_bench.h"
#include "web/web.h"

#include <stdio.h>

static void add(crdi_board_state* b, double time, crdi_board_what what, double value)
{
    b->moments[b->moment_count++] = (crdi_board_moment){time, (int)what, value};
}

static void state(crdi_board_state* b, double time, int value)
{
    add(b, time, CRDI_BOARD_STATE, value);
}

static void phase(crdi_board_state* b, double time, int value)
{
    add(b, time, CRDI_BOARD_PHASE, value);
}

static void bring_up(crdi_board_state* b, double t)
{
    state(b, t, CRD_DCP_ALIVE);
    state(b, t + 1, CRD_DCP_CONFIGURATION);
    phase(b, t + 1.1, CRD_DCP_BENCH_PREPARATION);
    state(b, t + 1.2, CRD_DCP_PREPARING);
    state(b, t + 2, CRD_DCP_PREPARED);
    state(b, t + 3, CRD_DCP_CONFIGURING);
    phase(b, t + 3.1, CRD_DCP_BENCH_CONDITIONING);
    add(b, t + 3.2, CRDI_BOARD_HEAT, 40);
    add(b, t + 4, CRDI_BOARD_HEAT, 10);
    state(b, t + 5, CRD_DCP_CONFIGURED);
    state(b, t + 6, CRD_DCP_RUNNING);
    phase(b, t + 6.5, CRD_DCP_BENCH_CONDITIONED); // by data, which are late
    phase(b, t + 7, CRD_DCP_BENCH_RUN);
}

static void bring_down(crdi_board_state* b, double t)
{
    phase(b, t, CRD_DCP_BENCH_SPEED_DOWN);
    state(b, t + 0.1, CRD_DCP_STOPPING);
    phase(b, t + 2, CRD_DCP_BENCH_VOLTAGE_DOWN);
    phase(b, t + 3, CRD_DCP_BENCH_STAND_DOWN); // it was cool: that phase was not seen
    phase(b, t + 4, CRD_DCP_BENCH_SAFE);
    state(b, t + 4.1, CRD_DCP_STOPPED);
    state(b, t + 4.2, CRD_DCP_ALIVE);
}

static void check_times(const double* is, const double* want, int count)
{
    for (int i = 0; i < count; i++) {
        if (isnan(want[i]) ? !isnan(is[i]) : fabs(is[i] - want[i]) > 1e-12) {
            fail_msg("time %d = %g, expected %g", i, is[i], want[i]);
        }
    }
}

static void a_bench_goes_forward_through_its_places(void** unused)
{
    (void)unused;
    crdi_board_state b = {0};
    crdi_web_story s;
    crdi_web_tell_story(&b, &s);
    check_int(s.place, -1);
    check(isnan(s.entered[0]) && isnan(s.stop[0]) && isnan(s.heat_first));
    bring_up(&b, 0);
    crdi_web_tell_story(&b, &s);
    check_int(s.place, CRDI_WEB_RUNNING);
    check_times(s.entered, (double[]){1, 2, 3, 5, 6, NAN, NAN}, CRDI_WEB_PLACES);
    check_near(s.heat_first, 40, 0);
    check_near(s.heat_now, 10, 0);
    check(isnan(s.stop[0]));
}

static void the_steps_of_a_stop_are_ticked_one_by_one(void** unused)
{
    (void)unused;
    crdi_board_state b = {0};
    crdi_web_story s;
    bring_up(&b, 0);
    phase(&b, 10, CRD_DCP_BENCH_SPEED_DOWN);
    crdi_web_tell_story(&b, &s);
    check_int(s.place, CRDI_WEB_STOPPING);
    check_times(s.stop, (double[]){10, NAN, NAN, NAN, NAN, NAN}, CRDI_WEB_STOP_STEPS);
    b.moment_count--;
    bring_down(&b, 10);
    crdi_web_tell_story(&b, &s);
    check_int(s.place, CRDI_WEB_SAFE); // also when it is nobody's any more
    check_times(s.stop, (double[]){10, 12, 13, 13, 14, 14}, CRDI_WEB_STOP_STEPS);
    check_near(s.entered[CRDI_WEB_STOPPING], 10, 0);
    check_near(s.entered[CRDI_WEB_SAFE], 14, 0);
}

static void a_new_registration_begins_a_new_story(void** unused)
{
    (void)unused;
    crdi_board_state b = {0};
    crdi_web_story s;
    bring_up(&b, 0);
    bring_down(&b, 10);
    state(&b, 20, CRD_DCP_CONFIGURATION);
    crdi_web_tell_story(&b, &s);
    check_int(s.place, CRDI_WEB_REGISTERED);
    check_times(s.entered, (double[]){20, NAN, NAN, NAN, NAN, NAN, NAN}, CRDI_WEB_PLACES);
    check(isnan(s.stop[0]) && isnan(s.heat_first));
    b.moment_count--;
    bring_up(&b, 20);
    crdi_web_tell_story(&b, &s);
    check_times(s.entered, (double[]){21, 22, 23, 25, 26, NAN, NAN}, CRDI_WEB_PLACES);
}

static void a_slave_that_is_no_bench_has_a_way_too(void** unused)
{
    (void)unused;
    crdi_board_state b = {0};
    crdi_web_story s;
    state(&b, 1, CRD_DCP_CONFIGURATION);
    state(&b, 2, CRD_DCP_RUNNING);
    state(&b, 3, CRD_DCP_ERRORHANDLING);
    crdi_web_tell_story(&b, &s);
    check_int(s.place, CRDI_WEB_STOPPING);
    check_times(s.entered, (double[]){1, NAN, NAN, NAN, 2, 3, NAN}, CRDI_WEB_PLACES);
    check(isnan(s.stop[0]));
}

static void moments_that_make_no_sense_are_passed_over(void** unused)
{
    (void)unused;
    crdi_board_state b = {0};
    crdi_web_story s;
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 99, -1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (int what = -1; what < 6; what++) {
            add(&b, NAN, (crdi_board_what)what, values[i]);
        }
    }
    crdi_web_tell_story(&b, &s);
    check_int(s.place, -1);
}

// ---- margins -----------------------------------------------------------------------------------

static void check_margin(double min, double max, double set, double measured, const char* side,
                         double distance, double percent)
{
    const crdi_board_quantity q = {.min = min, .max = max, .set = set, .measured = measured};
    double d, p;
    check_text(crdi_web_margin(&q, &d, &p), side);
    check_times((double[]){d, p}, (double[]){distance, percent}, 2);
}

static void margins_are_to_the_nearer_limit(void** unused)
{
    (void)unused;
    check_margin(-250, 250, 0, 200, "max", 50, 10);
    check_margin(-250, 250, 0, -240, "min", 10, 2);
    check_margin(-250, 250, 0, 260, "max", -10, -2);
    check_margin(-250, 250, 125, NAN, "max", 125, 25); // nothing is measured: what was sent
    check_margin(-250, 250, NAN, NAN, "", NAN, NAN);
    check_margin(-INFINITY, INFINITY, 1, 1, "", NAN, NAN);
    check_margin(-INFINITY, 105, NAN, 80, "max", 25, NAN); // no range to compare with
    check_margin(25, INFINITY, NAN, 80, "min", 55, NAN);
}

static void a_machine_at_rest_is_not_near_to_a_limit(void** unused)
{
    (void)unused;
    check_margin(0, 6500, 0, 0, "max", 6500, 100);
    check_margin(0, 6500, 0, -5, "max", 6505, 100 * 6505.0 / 6500); // noise
    check_margin(0, 6500, 0, -650, "min", -650, -10);
    check_margin(-100, 0, 0, 0, "min", 100, 100);
}

// ---- JSON --------------------------------------------------------------------------------------

static const crdi_json* written(const crdi_board_state* b)
{
    crd_text t;
    crd_context* ctx = crd_context_create(NULL);
    crd_text_init(&t, ctx);
    crdi_web_bench(&t, "em \"1\"", b);
    const crdi_json* j = json_tree(t.data, t.length);
    crd_text_clear(&t);
    crd_context_destroy(ctx);
    return j;
}

static void check_word(const crdi_json* j, const char* name, const char* want)
{
    check_text(json_text(crdi_json_member(j, name)), want);
}

static void a_bench_is_json_whatever_it_says(void** unused)
{
    (void)unused;
    crdi_board_state b = {.state = CRD_DCP_STOPPED,
                          .extension = true,
                          .phase = CRD_DCP_BENCH_SAFE,
                          .reason = CRD_DCP_BENCH_BY_MASTER,
                          .last_data = NAN,
                          .round_trip = 1e-3,
                          .round_trip_max = NAN,
                          .has_standby = true,
                          .source = CRDI_BOARD_COMING,
                          .weight = 0.25,
                          .takeovers = 2,
                          .quantity_count = 2,
                          .now = 30};
    snprintf(b.why, sizeof b.why, "fault: \"\xff</script>\"");
    b.quantities[0] = (crdi_board_quantity){"torque", "N.m", -250, 250, 300, 250, true};
    b.quantities[1] = (crdi_board_quantity){"oil", "degC", -INFINITY, 105, NAN, NAN, false};
    bring_up(&b, 0);
    bring_down(&b, 10);
    const crdi_json* j = written(&b);
    check_word(j, "unit", "em \"1\"");
    check_word(j, "state_name", "STOPPED");
    check_word(j, "phase_name", "safe");
    check_word(j, "reason_name", crd_dcp_bench_reason_name(CRD_DCP_BENCH_BY_MASTER));
    check(json_is(crdi_json_member(j, "last_data"), CRDI_JSON_NULL));
    check(json_is(crdi_json_member(j, "round_trip_max"), CRDI_JSON_NULL));
    const crdi_json* limits = crdi_json_member(j, "limits");
    check_int(crdi_json_count(limits), 2);
    check(crdi_json_get_bool(crdi_json_item(limits, 0), "clamped", false));
    check_near(crdi_json_value(crdi_json_member(crdi_json_item(limits, 0), "margin")), 0, 0);
    check(json_is(crdi_json_member(crdi_json_item(limits, 1), "min"), CRDI_JSON_NULL));
    check(json_is(crdi_json_member(crdi_json_item(limits, 1), "margin"), CRDI_JSON_NULL));
    check_word(crdi_json_member(j, "standby"), "source", "coming");
    check_int((int64_t)crdi_json_value(crdi_json_member(j, "place")), CRDI_WEB_SAFE);
    const crdi_json* stop = crdi_json_member(j, "stop");
    check_int(crdi_json_count(stop), CRDI_WEB_STOP_STEPS);
    check_near(crdi_json_value(crdi_json_item(stop, 1)), 2, 1e-12); // since the stop began
    check_near(crdi_json_value(crdi_json_member(crdi_json_member(j, "heat"), "first")), 40, 0);
}

static void a_bench_of_which_nothing_is_known_is_json_too(void** unused)
{
    (void)unused;
    crd_context* ctx = crd_context_create(NULL);
    crdi_board* board = NULL;
    crdi_board_state b;
    check_ok(crdi_board_create(ctx, &board));
    crdi_board_read(board, &b);
    const crdi_json* j = written(&b);
    check_int((int64_t)crdi_json_value(crdi_json_member(j, "state")), -1);
    check_word(j, "state_name", "");
    check_int((int64_t)crdi_json_value(crdi_json_member(j, "phase")), -1);
    check(json_is(crdi_json_member(j, "standby"), CRDI_JSON_NULL));
    check(json_is(crdi_json_member(j, "stop"), CRDI_JSON_NULL));
    check(json_is(crdi_json_member(j, "heat"), CRDI_JSON_NULL));
    crdi_board_destroy(board);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bench_goes_forward_through_its_places),
        cmocka_unit_test(the_steps_of_a_stop_are_ticked_one_by_one),
        cmocka_unit_test(a_new_registration_begins_a_new_story),
        cmocka_unit_test(a_slave_that_is_no_bench_has_a_way_too),
        cmocka_unit_test(moments_that_make_no_sense_are_passed_over),
        cmocka_unit_test(margins_are_to_the_nearer_limit),
        cmocka_unit_test(a_machine_at_rest_is_not_near_to_a_limit),
        cmocka_unit_test(a_bench_is_json_whatever_it_says),
        cmocka_unit_test(a_bench_of_which_nothing_is_known_is_json_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
