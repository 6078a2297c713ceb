// The master with slaves of ours on the virtual clock: what a session does when all goes well.
#include "session.h"
#include "testnet/testnet.h"

static const int inputs[] = {RIG_U, RIG_TORQUE, RIG_TEXT, RIG_BLOB, RIG_MODE, RIG_PROFILE};
static const int outputs[] = {RIG_SPEED,  RIG_CURRENT,  RIG_TICKS,
                              RIG_STATUS, RIG_BLOB_OUT, RIG_TEMPS};

static void a_run_in_steps_moves_values_of_all_types_there_and_back(void** state)
{
    static session s;
    for (int tcp = 0; tcp < 2; tcp++) {
        session_open(&s, NULL, 1, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
        session_master(&s, NULL);
        check_ok(crd_dcp_master_feed(s.m, 0, inputs, 6));
        check_ok(crd_dcp_master_watch(s.m, 0, outputs, 6, 1));
        *session_integer(&s, 0, RIG_N_TEMPS) = 5;
        check_ok(crd_dcp_master_set(s.m, 0, RIG_N_TEMPS));
        check_int(crd_dcp_master_slot(s.m, 0, RIG_TEMPS)->count, 5);
        *session_real(&s, 0, RIG_R) = 0.25;
        check_ok(crd_dcp_master_set(s.m, 0, RIG_R));
        session_text(&s, 0, RIG_NAME, "bench B");
        check_ok(crd_dcp_master_set(s.m, 0, RIG_NAME));
        const int tuned[] = {RIG_KP, RIG_LIMIT};
        int group = -1;
        check_ok(crd_dcp_master_tunable(s.m, 0, tuned, 2, &group));
        session_do(&s, crd_dcp_master_configure(s.m));
        check_int(session_state(&s, 0), CRD_DCP_CONFIGURED);
        check_near(s.r[0]->r, 0.25, 0);
        check_int(s.r[0]->name_bytes, 7);
        check_near(s.r[0]->temperatures, 5, 0);

        *session_real(&s, 0, RIG_U) = 12;
        *session_real(&s, 0, RIG_TORQUE) = 0.5;
        session_text(&s, 0, RIG_TEXT, "beef");
        session_text(&s, 0, RIG_BLOB, "\x39\xe6\x29\xd2");
        *session_integer(&s, 0, RIG_MODE) = 2;
        for (int i = 0; i < 3; i++) {
            session_real(&s, 0, RIG_PROFILE)[i] = i + 1;
        }
        session_do(&s, crd_dcp_master_initialize(s.m, -1));
        check_near(*session_real(&s, 0, RIG_CURRENT), 48, 0);
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        check_int(session_state(&s, 0), CRD_DCP_RUNNING);
        const int64_t before = s.allocator.allocations;
        for (int i = 0; i < 100; i++) {
            *session_real(&s, 0, RIG_U) = 0.125 * i;
            session_do(&s, crd_dcp_master_begin_step(s.m, 0, i % 2 ? 1 : 3));
            session_do(&s, crd_dcp_master_end_step(s.m, 0));
            check_near(s.r[0]->u, 0.125 * i, 0);
            check_near(*session_real(&s, 0, RIG_SPEED), s.r[0]->speed, 0);
            check_near(*session_real(&s, 0, RIG_CURRENT), (float)s.r[0]->current, 0);
            check_int(*session_integer(&s, 0, RIG_TICKS), s.r[0]->ticks);
            check_int(s.r[0]->ticks, 2 * (i + 1) + (i % 2 ? 0 : 1));
            check_near(session_real(&s, 0, RIG_TEMPS)[4], (float)(297.15 + s.r[0]->current), 0);
        }
        check_int(s.allocator.allocations, before);
        check_int(*crd_dcp_master_slot(s.m, 0, RIG_STATUS)->byte_count, 4);
        check(memcmp(crd_dcp_master_slot(s.m, 0, RIG_STATUS)->bytes, "beef", 4) == 0);
        check_int(crd_dcp_master_slot(s.m, 0, RIG_BLOB_OUT)->bytes[3], 0xd2);
        check_near(s.r[0]->profile[2], 3, 0);
        *session_real(&s, 0, RIG_KP) = 2;
        *session_integer(&s, 0, RIG_LIMIT) = -7;
        session_do(&s, crd_dcp_master_tune(s.m, 0, group));
        session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
        session_do(&s, crd_dcp_master_end_step(s.m, 0));
        check_near(s.r[0]->kp, 2, 0);
        check_int(s.r[0]->limit, -7);

        session_do(&s, crd_dcp_master_stop(s.m));
        check_int(session_state(&s, 0), CRD_DCP_ALIVE);
        const crd_dcp_slave_status k = crd_dcp_master_status(s.m, 0);
        check_int(k.repeated + k.nacks + k.resynchronised + k.data_old + k.data_missed + k.data_bad,
                  0);
        check_int(k.data_in, 102);
        check_int(k.data_out, 103); // with the parameters
        check_near(k.round_trip, 0.002, 1e-9);
        check_int(crd_dcp_slave_get_counts(s.r[0]->slave).data_dropped, 0);
        session_close(&s);
    }
}

static void plan_simple(session* s)
{
    static const int in[] = {RIG_U}, out[] = {RIG_SPEED, RIG_TICKS};
    for (int i = 0; i < s->count; i++) {
        check_ok(crd_dcp_master_feed(s->m, i, in, 1));
        check_ok(crd_dcp_master_watch(s->m, i, out, 2, 1));
    }
}

static void sequence_ids_of_requests_and_data_go_round(void** state)
{
    static session s;
    session_open(&s, &(testnet_faults){.start = 1000}, 1, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    plan_simple(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    for (int i = 0; i < 66000; i++) {
        session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
        session_do(&s, crd_dcp_master_end_step(s.m, 0));
        check_int(session_integer(&s, 0, RIG_TICKS)[0], i + 1);
    }
    session_do(&s, crd_dcp_master_stop(s.m));
    const crd_dcp_slave_status k = crd_dcp_master_status(s.m, 0);
    check(k.requests > 132000);
    check_int(k.data_in, 66000);
    check_int(k.data_out, 66000);
    check_int(k.nacks + k.repeated + k.resynchronised + k.data_old + k.data_missed, 0);
    session_close(&s);
}

static double bring_up_time(int count)
{
    static session s;
    session_open(&s, NULL, count, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    plan_simple(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    const double time = testnet_now(s.t) - 1000.25;
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
    return time;
}

static void many_slaves_are_brought_up_in_the_time_of_one(void** state)
{
    const double one = bring_up_time(1);
    check(one > 0.02);
    check_near(bring_up_time(SESSION_SITES), one, 0.005);
}

// ---- real time ---------------------------------------------------------------------------------

static void slaves_in_real_time_start_together_and_exchange_data_directly(void** state)
{
    static session s;
    for (int tcp = 0; tcp < 2; tcp++) {
        session_open(&s, NULL, 2, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_SRT);
        for (int i = 0; i < 2; i++) {
            s.r[i]->d.can_monitor_heartbeat = s.r[i]->d.has_heartbeat = true;
            s.r[i]->d.heartbeat_numerator = 1;
            s.r[i]->d.heartbeat_denominator = 2 + (uint32_t)i;
        }
        session_master(&s, NULL);
        plan_simple(&s);
        bool direct[3] = {false, false, false};
        check_ok(crd_dcp_master_route(s.m, 0, RIG_SPEED, 1, RIG_TORQUE, 1, &direct[0]));
        check_ok(crd_dcp_master_route(s.m, 1, RIG_BLOB_OUT, 0, RIG_BLOB, 2, &direct[1]));
        check_ok(crd_dcp_master_route(s.m, 1, RIG_STATUS, 0, RIG_TEXT, 2, &direct[2]));
        session_do(&s, crd_dcp_master_configure(s.m));
        check(direct[0] && direct[1] && direct[2]);
        *session_real(&s, 0, RIG_U) = 10;
        memcpy(s.r[1]->text, "warm", s.r[1]->text_bytes = 4);
        double start = 0;
        session_do(&s, crd_dcp_master_run(s.m, 2, &start));
        check_near(start, 1003, 0);
        session_do(&s, crd_dcp_master_send(s.m, 0));
        for (int i = 0; i < 40; i++) {
            session_do(&s, crd_dcp_master_wait(s.m, start + 0.2505 * (i + 1)));
            check_int(s.r[0]->ticks, s.r[1]->ticks);
            check_int(s.r[0]->ticks, (int)(25.05 * (i + 1)) + 1);
            check(s.r[1]->torque != 0);
        }
        check_near(s.r[0]->u, 10, 0);
        check(s.r[0]->text_bytes == 4 && memcmp(s.r[0]->text, "warm", 4) == 0);
        // A step is in the slots a millisecond later.
        session_do(&s, crd_dcp_master_wait(s.m, start + 10.0225));
        check_int(session_integer(&s, 0, RIG_TICKS)[0], s.r[0]->ticks);
        check_near(session_real(&s, 0, RIG_SPEED)[0], s.r[0]->speed, 0);
        check_near(s.r[1]->torque, s.r[0]->speed, 0);
        check_near(crd_dcp_master_status(s.m, 0).data_time, testnet_now(s.t), 0.011);
        session_do(&s, crd_dcp_master_stop(s.m));
        for (int i = 0; i < 2; i++) {
            check_int(session_state(&s, i), CRD_DCP_ALIVE);
            check_int(crd_dcp_master_status(s.m, i).nacks, 0);
            check_int(crd_dcp_master_status(s.m, i).data_missed, 0);
            check_int(crd_dcp_slave_get_counts(s.r[i]->slave).data_dropped, 0);
        }
        session_close(&s);
    }
}

static void what_cannot_go_directly_is_relayed(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_SRT);
    s.spec[0].one_target = true;
    session_master(&s, NULL);
    const int watched[] = {RIG_SPEED};
    check_ok(crd_dcp_master_watch(s.m, 0, watched, 1, 1));
    bool direct[3] = {true, true, false};
    check_ok(crd_dcp_master_route(s.m, 0, RIG_SPEED, 1, RIG_TORQUE, 1, &direct[0]));
    check_ok(crd_dcp_master_route(s.m, 0, RIG_SPEED, 1, RIG_MODE, 1, &direct[1]));
    check_ok(crd_dcp_master_route(s.m, 0, RIG_TICKS, 1, RIG_U, 5, &direct[2]));
    session_do(&s, crd_dcp_master_configure(s.m));
    check(!direct[0]); // the master wants it too
    check(!direct[1]); // float64 to uint8
    check(direct[2]);
    s.r[0]->torque = -0.5;
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 1.0045));
    check(s.r[0]->speed > 10);
    check_near(s.r[1]->torque, s.r[0]->speed, 0);
    check_int(s.r[1]->mode, lround(s.r[0]->speed));
    check(s.r[1]->u > 90 && s.r[1]->u <= (double)s.r[0]->ticks);
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void in_steps_a_route_arrives_before_the_next_step(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    bool direct = true;
    check_ok(crd_dcp_master_route(s.m, 0, RIG_SPEED, 1, RIG_TORQUE, 1, &direct));
    check_ok(crd_dcp_master_route(s.m, 0, RIG_TICKS, 1, RIG_MODE, 1, NULL));
    check_ok(crd_dcp_master_route(s.m, 0, RIG_TEMPS, 1, RIG_PROFILE, 1, NULL));
    session_do(&s, crd_dcp_master_configure(s.m));
    check(!direct);
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    for (int k = 0; k < 300; k++) {
        s.r[0]->torque = -k;
        session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
        session_do(&s, crd_dcp_master_end_step(s.m, 0));
        session_do(&s, crd_dcp_master_begin_step(s.m, 1, 1));
        session_do(&s, crd_dcp_master_end_step(s.m, 1));
        check_near(s.r[1]->torque, s.r[0]->speed, 0);
        check_int(s.r[1]->mode, k + 1 < 255 ? k + 1 : 255); // as much as a uint8 holds
        check_near(s.r[1]->profile[1], (float)(294.15 + s.r[0]->current), 1e-4);
    }
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

static void a_loop_of_initialisations_converges(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    // i = 2 u - 0.2 w: the gear's u is -i/8 of the motor, the motor's u that of the gear + 1
    const int in[] = {RIG_U}, out[] = {RIG_CURRENT};
    for (int i = 0; i < 2; i++) {
        check_ok(crd_dcp_master_feed(s.m, i, in, 1));
        check_ok(crd_dcp_master_watch(s.m, i, out, 1, 1));
    }
    session_do(&s, crd_dcp_master_configure(s.m));
    int turns = 0;
    for (double change = 1; change > 1e-6; turns++) {
        session_do(&s, crd_dcp_master_initialize(s.m, 0));
        *session_real(&s, 1, RIG_U) = -session_real(&s, 0, RIG_CURRENT)[0] / 8;
        session_do(&s, crd_dcp_master_initialize(s.m, 1));
        const double u = session_real(&s, 1, RIG_CURRENT)[0] + 1;
        change = fabs(u - *session_real(&s, 0, RIG_U));
        *session_real(&s, 0, RIG_U) = u;
    }
    check_near(*session_real(&s, 0, RIG_U), 2.0 / 3, 1e-6); // u = 1 - u/2
    check(turns > 5);
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

// ---- logs --------------------------------------------------------------------------------------

// In real time and in steps, one of them in the middle; and where the word is lost on the way.
static void halt_stops_all_without_waiting_and_stop_finds_them_there(void** state)
{
    for (int turn = 0; turn < 3; turn++) {
        session s;
        session_open(&s, NULL, 2, CRD_DCP_UDP, turn == 1 ? CRD_DCP_NRT : CRD_DCP_SRT);
        session_master(&s, NULL);
        plan_simple(&s);
        crd_dcp_master_halt(s.m); // nobody is there yet
        session_do(&s, crd_dcp_master_stop(s.m));
        session_do(&s, crd_dcp_master_configure(s.m));
        session_do(&s, crd_dcp_master_initialize(s.m, -1));
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        if (turn == 1) { session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1)); }
        const double before = testnet_now(s.t);
        if (turn == 2) { testnet_attach(s.nets[0], NULL); }
        crd_dcp_master_halt(s.m);
        check_near(testnet_now(s.t), before, 0);
        if (turn == 2) {
            testnet_advance(s.t, before + 0.0015);
            testnet_attach(s.nets[0], s.r[0]->slave);
        }
        for (int i = 0; i < 100 && session_state(&s, 0) < CRD_DCP_STOPPING; i++) {
            (void)crd_dcp_master_poll(s.m); // as somebody who writes files meanwhile
            testnet_advance(s.t, testnet_now(s.t) + 0.01);
        }
        check(session_state(&s, 0) >= CRD_DCP_STOPPING);
        check(session_state(&s, 1) >= CRD_DCP_STOPPING);
        session_do(&s, crd_dcp_master_stop(s.m));
        check_int(session_state(&s, 0), CRD_DCP_ALIVE);
        check_int(session_state(&s, 1), CRD_DCP_ALIVE);
        session_do(&s, crd_dcp_master_configure(s.m)); // and up again
        session_do(&s, crd_dcp_master_stop(s.m));
        session_close(&s);
    }
}

static void log_something(session* s, double x)
{
    const double t = 0.5;
    double numbers[] = {t, x};
    const crd_dcp_slot slots[] = {{.type = CRD_DCP_FLOAT64, .count = 1, .real = &numbers[0]},
                                  {.type = CRD_DCP_FLOAT64, .count = 1, .real = &numbers[1]}};
    crd_dcp_slave_log(s->r[0]->slave, 1, slots, testnet_now(s->t));
}

static void logs_come_as_notices_by_themselves_or_on_request(void** state)
{
    static session s;
    for (int on_request = 0; on_request < 2; on_request++) {
        session_open(&s, NULL, 1, CRD_DCP_UDP, CRD_DCP_NRT);
        s.r[0]->d.can_log_on_notification = !on_request;
        session_master(&s, NULL);
        plan_simple(&s);
        session_do(&s, crd_dcp_master_configure(s.m));
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        for (int i = 0; i < 20; i++) {
            log_something(&s, i);
        }
        session_do(&s, crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 2));
        check_int(s.notices[CRD_DCP_NOTICE_LOG], 20);
        check_text(s.log, "t = 0.5 s, speed = 19 rad/s");
        for (int i = 0; i < 30; i++) { // in the time of steps, too, and at the end
            session_do(&s, crd_dcp_master_begin_step(s.m, 0, 1));
            log_something(&s, 100 + i);
            session_do(&s, crd_dcp_master_end_step(s.m, 0));
        }
        session_do(&s, crd_dcp_master_stop(s.m));
        check_int(s.notices[CRD_DCP_NOTICE_LOG], 50);
        check_text(s.log, "t = 0.5 s, speed = 129 rad/s");
        check_int(s.notices[CRD_DCP_NOTICE_ERROR], 0);
        session_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_in_steps_moves_values_of_all_types_there_and_back),
        cmocka_unit_test(sequence_ids_of_requests_and_data_go_round),
        cmocka_unit_test(many_slaves_are_brought_up_in_the_time_of_one),
        cmocka_unit_test(slaves_in_real_time_start_together_and_exchange_data_directly),
        cmocka_unit_test(what_cannot_go_directly_is_relayed),
        cmocka_unit_test(in_steps_a_route_arrives_before_the_next_step),
        cmocka_unit_test(a_loop_of_initialisations_converges),
        cmocka_unit_test(halt_stops_all_without_waiting_and_stop_finds_them_there),
        cmocka_unit_test(logs_come_as_notices_by_themselves_or_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
