// What a session may be planned to do, how it is laid out, and what it says to the slaves.
#include "session.h"

#include "dcp/master/master.h"
#include "testnet/testnet.h"

static void open_one(session* s, uint8_t transport, crd_dcp_op_mode mode)
{
    session_open(s, NULL, 1, transport, mode);
}

static void slaves_that_do_not_offer_what_is_asked_for_are_refused(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.timeout = NAN;
    check_status(crd_dcp_master_create(s.ctx, s.net, &opt, &s.m), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "timeout");
    session_master(&s, NULL);
    crd_dcp_slave_spec a = s.spec[0];
    a.name = "other";
    a.mode = CRD_DCP_HRT;
    check_status(crd_dcp_master_add(s.m, &a, NULL), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx), "other: mode HRT, but the slave offers SRT NRT");
    a.mode = CRD_DCP_SRT;
    a.denominator = 3;
    check_status(crd_dcp_master_add(s.m, &a, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "other: time resolution 1/3 s is not offered; the first");
    a.denominator = 100;
    a.id = 1;
    check_status(crd_dcp_master_add(s.m, &a, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "other: slave id 1 is taken");
    a.id = 0;
    crd_dcp_description d = s.r[0]->d;
    d.udp.offered = false;
    a.description = &d;
    check_status(crd_dcp_master_add(s.m, &a, NULL), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx), "other: UDP is asked for, but the slave offers TCP");
    a.control.transport = CRD_DCP_CAN;
    check_status(crd_dcp_master_add(s.m, &a, NULL), CRD_E_RANGE);
    a.control.transport = CRD_DCP_TCP;
    a.numerator = a.denominator = 0;
    int index = -1;
    check_ok(crd_dcp_master_add(s.m, &a, &index));
    check_int(index, 1);
    check_int(crd_dcp_master_count(s.m), 2);
    check_near(crd_dcp_master_resolution(s.m, 0), 0.01, 0);
    check_near(crd_dcp_master_resolution(s.m, 1), 0.001, 0); // recommended
    check(isnan(crd_dcp_master_resolution(s.m, 2)));
    session_close(&s);
}

static void variables_that_do_not_fit_are_named(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_SRT);
    session_master(&s, NULL);
    int group = -1;
    check_status(crd_dcp_master_feed(s.m, 2, NULL, 0), CRD_E_RANGE);
    check_status(crd_dcp_master_feed(s.m, 0, (int[]){RIG_SPEED}, 1), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx), "motor: shaft.speed is an output, expected an input");
    check_status(crd_dcp_master_feed(s.m, 0, (int[]){99}, 1), CRD_E_RANGE);
    check_status(crd_dcp_master_watch(s.m, 0, (int[]){RIG_U}, 1, 1), CRD_E_RANGE);
    check_status(crd_dcp_master_watch(s.m, 0, (int[]){RIG_SPEED}, 1, 1001), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx), "motor: shaft.speed every 1001 steps, expected 1 to 1000");
    check_status(crd_dcp_master_set(s.m, 0, RIG_U), CRD_E_RANGE);
    check_status(crd_dcp_master_tunable(s.m, 0, (int[]){RIG_R}, 1, &group), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "motor: drive.R is fixed");
    check_status(crd_dcp_master_route(s.m, 0, RIG_STATUS, 1, RIG_U, 1, NULL), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx),
               "motor.bench.status is a string and cannot go to gear.drive.u_dc, a float64");
    *session_integer(&s, 0, RIG_N_TEMPS) = 0;
    check_status(crd_dcp_master_set(s.m, 0, RIG_N_TEMPS), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "bench.temps would have 0 elements");
    *session_integer(&s, 0, RIG_N_TEMPS) = 4;
    check_ok(crd_dcp_master_set(s.m, 0, RIG_N_TEMPS));
    check_ok(crd_dcp_master_route(s.m, 0, RIG_TEMPS, 1, RIG_PROFILE, 1, NULL));
    check_status(crd_dcp_master_configure(s.m), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx), "motor.bench.temps has 4 elements and gear.cmd.profile 3");
    check(!crd_dcp_master_slot(s.m, 0, RIG_VARIABLES));
    check(!crd_dcp_master_slot(s.m, 5, 0));
    session_close(&s);
}

static void calls_at_the_wrong_time_are_refused(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    check_status(crd_dcp_master_run(s.m, 0, NULL), CRD_E_STATE);
    check_contains(crd_error_text(s.ctx), "motor: run, but the DCP session is not configured");
    check_status(crd_dcp_master_begin_step(s.m, 0, 1), CRD_E_STATE);
    check_status(crd_dcp_master_send(s.m, 0), CRD_E_STATE);
    session_do(&s, crd_dcp_master_configure(s.m));
    check_status(crd_dcp_master_configure(s.m), CRD_E_STATE);
    check_status(crd_dcp_master_feed(s.m, 0, (int[]){RIG_U}, 1), CRD_E_STATE);
    check_status(crd_dcp_master_add(s.m, &s.spec[0], NULL), CRD_E_STATE);
    check_status(crd_dcp_master_begin_step(s.m, 0, 1), CRD_E_STATE);
    check_status(crd_dcp_master_tune(s.m, 0, 0), CRD_E_RANGE);
    check_status(crd_dcp_master_run(s.m, NAN, NULL), CRD_E_RANGE);
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    check_status(crd_dcp_master_initialize(s.m, -1), CRD_E_STATE);
    check_status(crd_dcp_master_begin_step(s.m, 0, 101), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "motor: 101 resolutions in a step, expected 1 to 100");
    session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
    check_status(crd_dcp_master_begin_step(s.m, 0, 1), CRD_E_STATE);
    check_contains(crd_error_text(s.ctx), "the last one is not ended");
    session_do(&s, crd_dcp_master_end_step(s.m, 0));
    session_do(&s, crd_dcp_master_end_step(s.m, 0)); // nothing to end
    session_do(&s, crd_dcp_master_stop(s.m));
    session_do(&s, crd_dcp_master_stop(s.m)); // again
    session_close(&s);
}

static void steps_of_one_that_cannot_vary_them_stay_equal(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
    s.r[0]->d.can_vary_steps = false;
    session_master(&s, NULL);
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_begin_step(s.m, 0, 5));
    session_do(&s, crd_dcp_master_end_step(s.m, 0));
    check_status(crd_dcp_master_begin_step(s.m, 0, 4), CRD_E_RANGE);
    check_contains(crd_error_text(s.ctx), "its steps must be equal");
    session_do(&s, crd_dcp_master_begin_step(s.m, 0, 5));
    session_do(&s, crd_dcp_master_end_step(s.m, 0));
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void groups_that_are_too_long_for_a_PDU_are_split(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.max_pdu = 85;
    session_master(&s, &opt);
    const int in[] = {RIG_U, RIG_TORQUE, RIG_TEXT, RIG_MODE, RIG_BLOB, RIG_PROFILE};
    check_ok(crd_dcp_master_feed(s.m, 0, in, 6));
    check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_STATUS, RIG_BLOB_OUT, RIG_SPEED}, 3, 1));
    session_do(&s, crd_dcp_master_configure(s.m));
    // 5 + 8 + 8 | 5 + 68 + 1 | 5 + 68 + 12 : the text would not go behind the two numbers
    check_int(s.m->peers[0].feed_count, 3);
    check_int(s.m->peers[0].watch_count, 2);
    *session_real(&s, 0, RIG_U) = 3;
    session_text(&s, 0, RIG_TEXT,
                 "0123456789012345678901234567890123456789012345678901234567890123");
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
    session_do(&s, crd_dcp_master_end_step(s.m, 0));
    check_near(s.r[0]->u, 3, 0);
    check_int(s.r[0]->text_bytes, 64);
    check_int(*crd_dcp_master_slot(s.m, 0, RIG_STATUS)->byte_count, 64);
    check_int(crd_dcp_master_status(s.m, 0).data_in, 2);
    check_int(crd_dcp_master_status(s.m, 0).data_out, 3);
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void one_variable_may_be_longer_than_our_limit_but_not_than_the_slaves(void** state)
{
    static session s;
    for (int small = 0; small < 2; small++) {
        open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
        if (small) { s.r[0]->d.udp.max_pdu_size = 500; }
        session_master(&s, NULL);
        *session_integer(&s, 0, RIG_N_TEMPS) = 400; // 1605 bytes
        check_ok(crd_dcp_master_set(s.m, 0, RIG_N_TEMPS));
        check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_TEMPS, RIG_SPEED}, 2, 1));
        if (small) {
            check_status(crd_dcp_master_configure(s.m), CRD_E_RANGE);
            check_text(crd_error_text(s.ctx),
                       "motor: bench.temps takes 1605 bytes, but a PDU has at most 500");
        } else {
            session_do(&s, crd_dcp_master_configure(s.m));
            check_int(s.m->peers[0].watch_count, 2);
            session_do(&s, crd_dcp_master_initialize(s.m, 0));
            check_near(session_real(&s, 0, RIG_TEMPS)[399], 293.15 + 399, 1e-3);
            session_do(&s, crd_dcp_master_stop(s.m));
        }
        session_close(&s);
    }
}

static void outputs_with_other_steps_of_their_own_get_their_own_data_id(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_SRT);
    static crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_TICKS].fixed_steps = true;
    variables[RIG_TICKS].default_steps = 4;
    s.r[0]->d.variables = variables;
    session_start_slave(&s, 0);
    session_master(&s, NULL);
    check_status(crd_dcp_master_watch(s.m, 0, (int[]){RIG_TICKS}, 1, 2), CRD_E_RANGE);
    check_text(crd_error_text(s.ctx),
               "motor: bench.ticks every 2 steps, but its steps are fixed to 4");
    check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_SPEED, RIG_TICKS, RIG_CURRENT}, 3, 0));
    session_do(&s, crd_dcp_master_configure(s.m));
    check_int(s.m->peers[0].watch_count, 2);
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 1));
    const int64_t both = crd_dcp_master_status(s.m, 0).data_in;
    check(both >= 124 && both <= 126); // 100 and 25
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void what_a_slave_cannot_do_is_said_before_it_is_asked(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_NRT);
    s.r[0]->d.can_accept_config = false;
    session_master(&s, NULL);
    check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_SPEED}, 1, 1));
    check_status(crd_dcp_master_configure(s.m), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(s.ctx), "canAcceptConfigPdus is false");
    check_int(crd_dcp_slave_get_counts(s.r[0]->slave).requests, 0);
    crd_dcp_master_destroy(s.m);
    // Without inputs and outputs it runs.
    session_master(&s, NULL);
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
    session_do(&s, crd_dcp_master_end_step(s.m, 0));
    check_int(s.r[0]->ticks, 1);
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void data_arrive_at_the_control_port_or_at_those_of_the_description(void** state)
{
    static session s;
    static const crd_dcp_ports few[] = {{9000, 9001}, {9005, 9005}};
    for (int k = 0; k < 3; k++) {
        session_open(&s, NULL, 1, k == 2 ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
        crd_dcp_endpoint* e = k == 2 ? &s.r[0]->d.tcp : &s.r[0]->d.udp;
        if (k > 0) {
            e->data = e->parameter = few;
            e->data_count = e->parameter_count = 2;
            e->port = 1;
        }
        session_master(&s, NULL);
        check_ok(crd_dcp_master_feed(s.m, 0, (int[]){RIG_U}, 1));
        int group = 0;
        check_ok(crd_dcp_master_tunable(s.m, 0, (int[]){RIG_KP}, 1, &group));
        session_do(&s, crd_dcp_master_configure(s.m));
        check_int(s.m->bundles[0].address.port, k ? 9000 : 8080);
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        *session_real(&s, 0, RIG_U) = 2.5;
        *session_real(&s, 0, RIG_KP) = 3;
        session_do(&s, crd_dcp_master_tune(s.m, 0, group));
        for (int i = 0; i < 2; i++) {
            session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
            session_do(&s, crd_dcp_master_end_step(s.m, 0));
        }
        check_near(s.r[0]->u, 2.5, 0);
        check_near(s.r[0]->kp, 3, 0);
        session_do(&s, crd_dcp_master_stop(s.m));
        session_close(&s);
    }
}

static void a_session_can_be_configured_and_stopped_many_times(void** state)
{
    static session s;
    for (int tcp = 0; tcp < 2; tcp++) {
        session_open(&s, NULL, 2, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
        session_master(&s, NULL);
        check_ok(crd_dcp_master_feed(s.m, 0, (int[]){RIG_U}, 1));
        check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_TICKS}, 1, 1));
        for (int k = 0; k < 5; k++) {
            session_do(&s, crd_dcp_master_configure(s.m));
            session_do(&s, crd_dcp_master_initialize(s.m, -1));
            session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
            for (int i = 0; i < 3; i++) {
                session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
                session_do(&s, crd_dcp_master_end_step(s.m, 0));
                check_int(session_integer(&s, 0, RIG_TICKS)[0], i + 1);
            }
            session_do(&s, crd_dcp_master_stop(s.m));
            if (k % 2 == 0) { // a gear may be added in between
                check_ok(crd_dcp_master_set(s.m, 1, RIG_R));
            }
        }
        session_close(&s);
    }
}

static void heartbeats_get_through_a_network_that_loses(void** state)
{
    static session s;
    const testnet_faults good = {.delay = 0.002, .seed = 11, .start = 1000.5};
    session_open(&s, &good, 2, CRD_DCP_UDP, CRD_DCP_SRT);
    for (int i = 0; i < 2; i++) {
        s.r[i]->d.can_monitor_heartbeat = s.r[i]->d.has_heartbeat = true;
        s.r[i]->d.heartbeat_numerator = s.r[i]->d.heartbeat_denominator = 1;
    }
    session_master(&s, NULL);
    check_ok(crd_dcp_master_watch(s.m, 0, (int[]){RIG_TICKS}, 1, 1));
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 1, NULL));
    check_ok(testnet_set(s.t, &(testnet_faults){.delay = 0.002, .loss = 0.1}));
    session_do(&s, crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 100));
    const crd_dcp_slave_status k = crd_dcp_master_status(s.m, 0);
    check(k.repeated > 30 && k.data_missed > 500);
    check_near((double)(k.data_in + k.data_missed), 10000, 20);
    session_do(&s, crd_dcp_master_stop(s.m));
    // Who does not beat is told so.
    check_ok(testnet_set(s.t, &good));
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    testnet_advance(s.t, 0);
    while (testnet_advance(s.t, INFINITY) < 2000 && session_state(&s, 0) != CRD_DCP_ERRORRESOLVED) {
    }
    check_status(crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 1), CRD_E_UNIT);
    check_contains(crd_error_text(s.ctx), "0x1002 PROTOCOL_ERROR_HEARTBEAT_MISSED");
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void a_slave_whose_clock_is_ahead_is_started_at_once(void** state)
{
    static session s;
    open_one(&s, CRD_DCP_UDP, CRD_DCP_SRT);
    session_master(&s, NULL);
    session_do(&s, crd_dcp_master_configure(s.m));
    // Its clock never goes back: an hour ahead.
    crd_dcp_slave_advance(s.r[0]->slave, testnet_now(s.t) + 3600);
    session_do(&s, crd_dcp_master_run(s.m, 1, NULL));
    check_contains(s.repair, "clock is past the common start");
    check_int(session_state(&s, 0), CRD_DCP_RUNNING);
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slaves_that_do_not_offer_what_is_asked_for_are_refused),
        cmocka_unit_test(variables_that_do_not_fit_are_named),
        cmocka_unit_test(calls_at_the_wrong_time_are_refused),
        cmocka_unit_test(steps_of_one_that_cannot_vary_them_stay_equal),
        cmocka_unit_test(groups_that_are_too_long_for_a_PDU_are_split),
        cmocka_unit_test(one_variable_may_be_longer_than_our_limit_but_not_than_the_slaves),
        cmocka_unit_test(outputs_with_other_steps_of_their_own_get_their_own_data_id),
        cmocka_unit_test(what_a_slave_cannot_do_is_said_before_it_is_asked),
        cmocka_unit_test(data_arrive_at_the_control_port_or_at_those_of_the_description),
        cmocka_unit_test(a_session_can_be_configured_and_stopped_many_times),
        cmocka_unit_test(heartbeats_get_through_a_network_that_loses),
        cmocka_unit_test(a_slave_whose_clock_is_ahead_is_started_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
