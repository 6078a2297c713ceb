// Watch over inputs: gradient, preEdge, postEdge.
#include "rig.h"

// u may change by 100 1/s; both inputs arrive 2 ms early or 5 ms late at most.
static rig* make(const crd_dcp_slave_options* opt)
{
    static crd_dcp_variable v[RIG_VARIABLES];
    memcpy(v, rig_variables, sizeof v);
    for (int i = 0; i < RIG_VARIABLES; i++) {
        v[i].gradient = v[i].pre_edge = v[i].post_edge = NAN;
    }
    v[RIG_U].gradient = 100;
    v[RIG_U].pre_edge = 0.002;
    v[RIG_TORQUE].post_edge = 0.005;
    crd_dcp_description d = rig_description();
    d.variables = v;
    return rig_create(&d, opt);
}

// RUNNING; data_id 20 comes every `steps` hundredths of a second, 0: nobody says so.
static void run(rig* r, crd_dcp_op_mode mode, uint32_t steps)
{
    rig_register(r, mode);
    rig_configure(r);
    if (steps) { rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 20, .steps = steps); }
    rig_make_ready(r);
    rig_inputs(r, 0, 1e6, 0); // before the run nothing is watched
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    crd_dcp_slave_advance(r->slave, r->now);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    r->out_count = 0;
}

static void feed_at(rig* r, double now, uint16_t seq, double u)
{
    r->now = now;
    rig_inputs(r, seq, u, 0);
    r->out_count = 0;
}

static void an_input_that_changes_too_fast_is_counted_or_on_request_an_error(void** state)
{
    for (int on = 0; on < 2; on++) {
        crd_dcp_slave_options opt = crd_dcp_slave_defaults();
        opt.check_gradient = on == 1;
        rig* r = make(&opt);
        run(r, CRD_DCP_SRT, 0);
        const double t = r->now;
        feed_at(r, t + 0.1, 1, 5);  // the first one
        feed_at(r, t + 0.2, 2, 15); // 100 1/s
        feed_at(r, t + 0.2, 3, 16); // at once: as if one resolution later
        feed_at(r, t + 0.3, 5, 6);  // downwards
        check_int(crd_dcp_slave_get_counts(r->slave).too_steep, 0);
        check_int(crd_dcp_slave_state(r->slave), CRD_DCP_RUNNING);
        feed_at(r, t + 0.4, 6, 16.1); // 101 1/s
        check_int(crd_dcp_slave_get_counts(r->slave).too_steep, 1);
        check_int(crd_dcp_slave_state(r->slave), on ? CRD_DCP_ERRORRESOLVED : CRD_DCP_RUNNING);
        check_int(crd_dcp_slave_error(r->slave), on ? CRD_DCP_E_PROPERTY_VIOLATED : 0);
        rig_destroy(r);
    }
}

static void in_nrt_the_time_of_a_gradient_is_that_of_the_steps(void** state)
{
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.check_gradient = true;
    rig* r = make(&opt);
    run(r, CRD_DCP_NRT, 0);
    feed_at(r, r->now, 1, 5);
    for (int i = 0; i < 3; i++) {
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 10);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        r->out_count = 0;
        feed_at(r, r->now + 1000, (uint16_t)(2 + i), i < 2 ? 15.0 + 10 * i : 36);
        check_int(crd_dcp_slave_state(r->slave), i < 2 ? CRD_DCP_RUNNING : CRD_DCP_ERRORRESOLVED);
    }
    rig_destroy(r);
}

static void not_a_number_is_too_steep(void** state)
{
    rig* r = make(NULL);
    run(r, CRD_DCP_SRT, 0);
    feed_at(r, r->now + 0.1, 1, 5);
    feed_at(r, r->now + 0.1, 2, NAN);
    check_int(crd_dcp_slave_get_counts(r->slave).too_steep, 1);
    rig_destroy(r);
}

static void data_off_their_time_are_counted_or_on_request_an_error(void** state)
{
    static const struct {
        double after; // s behind the last
        uint16_t seq;
        bool good;
    } cases[] = {{0.02, 2, true},    {0.0181, 2, true}, {0.0179, 2, false}, {0.0249, 2, true},
                 {0.0251, 2, false}, {0.06, 4, true},   {0.0581, 4, true},  {0.0661, 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int on = 0; on < 2; on++) {
            crd_dcp_slave_options opt = crd_dcp_slave_defaults();
            opt.check_edges = on == 1;
            rig* r = make(&opt);
            run(r, CRD_DCP_SRT, 2);
            feed_at(r, r->now + 0.5, 1, 0);
            feed_at(r, r->now + cases[i].after, cases[i].seq, 0);
            check_int(crd_dcp_slave_get_counts(r->slave).off_edge, cases[i].good ? 0 : 1);
            check_int(crd_dcp_slave_state(r->slave),
                      on && !cases[i].good ? CRD_DCP_ERRORRESOLVED : CRD_DCP_RUNNING);
            rig_destroy(r);
        }
    }
}

static void where_nobody_says_when_data_are_due_they_are_never_off(void** state)
{
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.check_edges = true;
    for (int i = 0; i < 2; i++) {
        rig* r = make(&opt);
        run(r, i ? CRD_DCP_NRT : CRD_DCP_SRT, i ? 2 : 0);
        for (int n = 1; n < 5; n++) {
            feed_at(r, r->now + 0.1 * n, (uint16_t)n, 0);
        }
        check_int(crd_dcp_slave_get_counts(r->slave).off_edge, 0);
        check_int(crd_dcp_slave_state(r->slave), CRD_DCP_RUNNING);
        rig_destroy(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_that_changes_too_fast_is_counted_or_on_request_an_error),
        cmocka_unit_test(in_nrt_the_time_of_a_gradient_is_that_of_the_steps),
        cmocka_unit_test(not_a_number_is_too_steep),
        cmocka_unit_test(data_off_their_time_are_counted_or_on_request_an_error),
        cmocka_unit_test(where_nobody_says_when_data_are_due_they_are_never_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
