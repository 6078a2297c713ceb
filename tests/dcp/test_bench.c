// A bench behind a slave, on a virtual clock: limits, checklist, conditioning, run, watch, stop.
#include "motor_bench.h"
#include "shared/base.h"

static motor_bench* make(bool extension)
{
    const crd_dcp_bench_config c = motor_config();
    return motor_bench_create(&c, extension);
}

static crd_dcp_bench_state look(const motor_bench* k)
{
    return crd_dcp_bench_get_state(k->b);
}

static const double warm = 35; // degC; 10 K above the start
static const char initial[] = "oil 35 degC; tolerance 1 K";

// ---- the emulated bench ------------------------------------------------------------------------

static double time_from_to(double from, double to)
{
    motor m = motor_make();
    m.is[MOTOR_OIL] = from;
    m.set[MOTOR_OIL] = to > from ? to + 10 : 20;
    while ((m.is[MOTOR_OIL] < to) == (from < to) && m.time < 3600) {
        motor_step(&m, 0.1);
    }
    return m.time;
}

static void the_oil_takes_the_times_of_table_3(void** state)
{
    check_near(time_from_to(25, 80), 9 * 60, 1);
    check_near(time_from_to(80, 50), 7 * 60, 4);
    check_near(time_from_to(50, 35), 23 * 60, 14);
}

// ---- limits ------------------------------------------------------------------------------------

static void a_test_case_beyond_a_limit_is_refused_before_anything_turns(void** state)
{
    static const struct {
        const char *variable, *text, *says;
        int code;
    } cases[] = {
        {"bench.case", "speed 60..7000 1/min", "limit speed max", 0x1004},
        {"bench.case", "speed -5..60 1/min", "limit speed min", 0x1004},
        {"bench.case", "speed 60..600 1/min rate 3000 1/min/s", "limit speed rate", 0x1004},
        {"bench.case", "torque -300..0 N.m", "limit torque min", 0x1004},
        {"bench.case", "voltage 0..401 V", "limit voltage max", 0x1004},
        {"bench.case", "oil 20..91 degC", "limit oil max", 0x1004},
        {"bench.case", "speed 0..900 1/min; torque 0..9 N.m", "avoid speed 0..50 1/min", 0x1004},
        {"bench.case", "sped 0..900 1/min", "did you mean speed?", 0x1004},
        {"bench.case", "speed 60..4500 1/min", "its peer allows", 0x1004},
        {"bench.case", "speed sixty 1/min", "expected a range", 0x2009},
        {"bench.peer_limits", "speed", "expected a range", 0x2009},
        {"bench.initial", "oil 95 degC", "limit oil", 0x1004},
        {"bench.initial", "water 50 degC", "no medium", 0x1004},
        {"bench.initial", "speed 50 degC", "no medium", 0x1004},
        {"bench.initial", "oil 50 degC; tolerance 0 K", "tolerance = 0", 0x1004},
        {"bench.initial", "oil 50 bananas", "unit is not known", 0x2009},
    };
    motor_bench* k = make(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        motor_register(k, CRD_DCP_SRT);
        motor_configure(k, 1, true);
        motor_text(k, "bench.peer_limits", "speed ..4000 1/min");
        motor_text(k, cases[i].variable, cases[i].text);
        k->states[0] = 0;
        k->log_count = 0;
        motor_do(k, .type = CRDI_DCP_STC_PREPARE);
        motor_until(k, CRD_DCP_ERRORRESOLVED, 1);
        check_text(k->states, "021112");
        check_contains(motor_find_log(k, "refused: "), cases[i].says);
        check_int(motor_error_code(k), cases[i].code);
        check_int(look(k).reason, CRD_DCP_BENCH_LIMITS);
        check_int(k->m.given, 0);
        check_near(k->m.set[MOTOR_SPEED], 0, 0);
        motor_do(k, .type = CRDI_DCP_STC_DEREGISTER);
    }
    // Remote control was never given, so that a reset is enough to say it better.
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_text(k, "bench.case", "speed 60..7000 1/min");
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_until(k, CRD_DCP_ERRORRESOLVED, 1);
    motor_do(k, .type = CRDI_DCP_STC_RESET);
    motor_configure(k, 1, true);
    motor_text(k, "bench.case", "speed 60..4000 1/min; torque -9..9 N.m");
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_until(k, CRD_DCP_PREPARED, 1);
    check(k->m.remote && look(k).remote && look(k).extension);
    motor_bench_destroy(k);
}

static void the_limits_of_the_bench_are_its_own(void** state)
{
    motor_bench* k = make(true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_text(k, "bench.limits", "speed 0..99999 1/min");
    motor_text(k, "bench.case", "speed 60..9000 1/min");
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_until(k, CRD_DCP_ERRORRESOLVED, 1);
    motor_bench_destroy(k);
}

// ---- checklist ---------------------------------------------------------------------------------

static void each_item_of_the_checklist_holds_it_in_preparing(void** state)
{
    for (int i = 0; i <= MOTOR_ITEMS; i++) {
        motor_bench* k = make(true);
        const char* name = i < MOTOR_ITEMS ? motor_checklist[i] : "error memory not empty";
        if (i < MOTOR_ITEMS) {
            k->m.ready &= ~(1u << i);
        } else {
            k->m.error = 17;
        }
        motor_register(k, CRD_DCP_SRT);
        motor_configure(k, 1, i % 2 == 0); // with and without the extension
        motor_do(k, .type = CRDI_DCP_STC_PREPARE);
        motor_for(k, 21);
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_PREPARING);
        check_int(look(k).missing, i < MOTOR_ITEMS ? 1u << i : 1u << 31);
        char text[64];
        snprintf(text, sizeof text, "preparation: missing %s", name);
        check_text(motor_find_log(k, "preparation: "), text);
        check_int(k->log_count, 5); // at once and every 5 s
        check_int(k->m.given, 0);
        k->m.ready = UINT32_MAX;
        k->m.error = 0;
        motor_until(k, CRD_DCP_PREPARED, 0.02);
        check_text(motor_find_log(k, "preparation: "), "preparation: all items are met");
        check_int(k->m.given, 1);
        motor_bench_destroy(k);
    }
}

static void all_missing_items_are_named_and_what_changes_is_told(void** state)
{
    motor_bench* k = make(true);
    k->m.ready = 0;
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    check_text(k->logs[0], "preparation: missing battery emulator on, temperature control on, data "
                           "acquisition ready, remote control selected");
    motor_for(k, 1);
    k->m.ready = 5;
    motor_for(k, 0.02);
    check_text(k->logs[1], "preparation: missing temperature control on, remote control selected");
    // The master has waited long enough.
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_until(k, CRD_DCP_STOPPED, 1);
    check_int(k->m.given, 0);
    motor_bench_destroy(k);
}

static void an_item_that_is_lost_in_the_run_is_a_fault(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 1, 1000, 0, 400, 25);
    k->m.ready &= ~8u;
    motor_for(k, 0.02);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
    check_text(motor_find_log(k, "fault: "), "fault: lost remote control selected");
    motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
    check_int(look(k).reason, CRD_DCP_BENCH_ITEM_LOST);
    motor_bench_destroy(k);
}

// ---- conditioning ------------------------------------------------------------------------------

static void two_benches_of_different_speed_wait_for_each_other(void** state)
{
    motor_bench *fast = make(true), *slow = make(true), *both[2] = {fast, slow};
    slow->m.heating /= 4;
    for (int i = 0; i < 2; i++) {
        motor_register(both[i], CRD_DCP_SRT);
        motor_configure(both[i], 1, true);
        motor_text(both[i], "bench.initial", initial);
        motor_do(both[i], .type = CRDI_DCP_STC_PREPARE);
        motor_until(both[i], CRD_DCP_PREPARED, 1);
        motor_do(both[i], .type = CRDI_DCP_STC_CONFIGURE);
    }
    const double quick = motor_until(fast, CRD_DCP_CONFIGURED, 600);
    check_near(quick, 9 / (55.0 / 540), 0.05); // until 1 K is left
    const double late = motor_until(slow, CRD_DCP_CONFIGURED, 600);
    check_near(late, 4 * quick, 0.1);
    // The first one holds its temperature meanwhile, and any longer.
    motor_for(fast, late - quick + 100);
    check_int(crd_dcp_slave_state(fast->r.slave), CRD_DCP_CONFIGURED);
    check_int(look(fast).phase, CRD_DCP_BENCH_CONDITIONED);
    check_near(fast->m.is[MOTOR_OIL], warm, 1e-9);
    check(fast->m.held <= 0.5);
    // Its progress was to be seen: at once, then every 5 s.
    check_text(slow->logs[1], "conditioning: oil at 25 degC, wanted 35");
    check_contains(slow->logs[2], "conditioning: oil at 25.12");
    check_int(slow->log_count, 1 + 1 + (int)(late / 5) + 1);
    check_text(motor_find_log(slow, "conditioning: "), "conditioning: done, temperatures are held");
    motor_bench_destroy(fast);
    motor_bench_destroy(slow);
}

static void conditioning_turns_slowly_with_low_voltage(void** state)
{
    crd_dcp_bench_config c = motor_config();
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_SPEED].conditioning = 300;
    q[MOTOR_VOLTAGE].conditioning = 60;
    c.quantities = q;
    c.induced = motor_induced;
    c.initial = initial; // for masters that say none
    motor_bench* k = motor_bench_create(&c, false);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, false);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    check_near(k->m.set[MOTOR_SPEED], 0, 0);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    motor_for(k, 5);
    check_near(k->m.is[MOTOR_SPEED], 300, 1e-3);
    check_near(k->m.is[MOTOR_VOLTAGE], 60, 1e-3);
    check_near(motor_until(k, CRD_DCP_CONFIGURED, 200), 9 / (55.0 / 540) - 5, 0.05);
    // A master that dies now leaves it turning: STC_stop brings it down as from a run.
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_until(k, CRD_DCP_STOPPED, 5);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    check(k->m.margin > -0.2);
    motor_bench_destroy(k);
}

// ---- the run -----------------------------------------------------------------------------------

static void set_values_are_kept_to_limits_and_rates_and_that_is_reported(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    // A step to 1000 1/min takes half a second at 2000 1/min per second.
    motor_drive(k, 0.25, 1000, 0, 400, 25);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_SPEED), 500, 21);
    check_int((uint32_t)k->out[9] & 1u << 16, 1u << 16); // too fast
    motor_drive(k, 1, 1000, 0, 400, 25);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_SPEED), 1000, 0);
    check_int((uint32_t)k->out[9], 0);
    check_int(look(k).clamps, 0);
    // Beyond a limit: the limit.
    motor_drive(k, 5, 8000, 300, 500, 25);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_SPEED), 6500, 0);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_TORQUE), 210, 0);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_VOLTAGE), 400, 0);
    check_int((uint32_t)k->out[9], 7);
    check_int((int)k->out[10], 3);
    check_text(motor_find_log(k, "clamped: speed"),
               "clamped: speed = 8000 1/min, used 6500, limits 0 to 6500");
    check_text(motor_find_log(k, "clamped: voltage"),
               "clamped: voltage = 500 V, used 400, limits 0 to 400");
    const int logs = k->log_count;
    motor_drive(k, 1, 8000, 300, 500, 25);
    check_int(k->log_count, logs); // told once
    check_near(k->out[MOTOR_SPEED], 6500, 1e-3);
    // Not a number: the last good one stays.
    motor_drive(k, 0.1, 3000, 10, 400, 25);
    motor_drive(k, 0.1, NAN, 10, INFINITY, 25);
    motor_drive(k, 4, 3000, 10, 400, 25);
    check_near(crd_dcp_bench_set_value(k->b, MOTOR_SPEED), 3000, 0);
    check_int((int)k->out[11], 20);
    check_text(motor_find_log(k, "refused: "), "refused: the set value of voltage is not a number");
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
    motor_bench_destroy(k);
}

static void forbidden_operating_points_are_kept_clear_of(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 0.5, 20, 50, 400, 25); // torque below 50 1/min
    check_near(k->m.set[MOTOR_TORQUE], 0, 0);
    check_int((uint32_t)k->out[9] & 2, 2);
    check_contains(motor_find_log(k, "clamped: torque"),
                   "clamped: torque = 50 N.m, used 0: not allowed at this operating point");
    motor_drive(k, 1, 200, 50, 400, 25);
    check_near(k->m.set[MOTOR_TORQUE], 50, 0);
    check_int((uint32_t)k->out[9], 0);
    motor_drive(k, 2, 30, 50, 400, 25);
    check_near(k->m.set[MOTOR_TORQUE], 0, 0);
    motor_bench_destroy(k);

    // A region with bounds: to the nearer one that is allowed.
    crd_dcp_bench_config c = motor_config();
    c.limits = "speed 0..6500 1/min; torque -210..210 N.m; "
               "avoid speed 900..1100 1/min with torque 50..100 N.m; "
               "avoid speed 1900..2100 1/min with torque 50..300 N.m";
    k = motor_bench_create(&c, true);
    motor_run(k, true);
    static const double cases[][3] = {{1000, 49, 49},   {1000, 60, 50},  {1000, 90, 100},
                                      {1000, 101, 101}, {2000, 200, 50}, {3000, 90, 90}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        motor_drive(k, 2, cases[i][0], cases[i][1], 400, 25);
        check_near(k->m.set[MOTOR_TORQUE], cases[i][2], 0);
    }
    motor_bench_destroy(k);
}

static void the_voltage_is_never_set_below_what_the_machine_induces(void** state)
{
    crd_dcp_bench_config c = motor_config();
    c.induced = motor_induced;
    motor_bench* k = motor_bench_create(&c, true);
    motor_run(k, true);
    motor_drive(k, 4, 4000, 10, 50, 25); // 200 V are induced
    check_near(k->m.set[MOTOR_VOLTAGE], 200, 1e-6);
    check_int((uint32_t)k->out[9] & 4, 4);
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_until(k, CRD_DCP_STOPPED, 20);
    check(k->m.margin >
          -4.1); // the lag of the voltage while the machine speeds up: 100 V/s * 0.02 s
    motor_bench_destroy(k);
}

static void a_measured_value_beyond_its_bounds_is_a_fault(void** state)
{
    for (int i = 0; i < 2; i++) {
        motor_bench* k = make(true);
        motor_run(k, true);
        motor_drive(k, 1, 1000, 0, 400, 25);
        if (i == 0) {
            k->m.is[MOTOR_OIL] = 96;
            k->m.set[MOTOR_OIL] = 96;
        } else {
            k->m.is[MOTOR_SPEED] = NAN; // its sensor is gone
            k->m.stuck = true;
        }
        motor_for(k, 0.01);
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
        check_contains(motor_find_log(k, "fault: "),
                       i == 0 ? "oil measured" : "speed measured nan");
        check_int(motor_error_code(k), CRD_DCP_E_PROPERTY_VIOLATED);
        check_int(look(k).reason, CRD_DCP_BENCH_TRIP);
        motor_for(k, 70);
        if (i == 1) { // nobody knows that it stands still: voltage is held, and that is told
            check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
            check_int(look(k).phase, CRD_DCP_BENCH_SPEED_DOWN);
            check_near(k->m.set[MOTOR_VOLTAGE], 400, 0);
            check_near(k->m.set[MOTOR_SPEED], 0, 0);
            check_contains(motor_find_log(k, "stop: has taken 60"), "speed is nan");
            k->m.is[MOTOR_SPEED] = 0;
            motor_for(k, 2);
        }
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORRESOLVED);
        motor_bench_destroy(k);
    }
}

// ---- watchdog ----------------------------------------------------------------------------------

static double stopped_at; // by the clock of the bench

static void note_stop(motor_bench* k)
{
    if (isnan(stopped_at) && !k->m.remote) { stopped_at = k->r.now; }
}

static void the_watchdog_bites_exactly_at_its_time(void** state)
{
    for (int on = 0; on < 2; on++) { // the extension
        motor_bench* k = make(on == 1);
        motor_run(k, on == 1);
        motor_drive(k, 0.5, 500, 0, 100, 25);
        motor_for(k, 0.0037);
        motor_feed(k, 500, 0, 100, 25);
        const double last = k->r.now;
        stopped_at = NAN;
        k->each = note_stop;
        motor_go(k, last + 0.4999);
        check(isnan(stopped_at));
        motor_go(k, last + 0.5001);
        check_near(stopped_at - last, 0.5, 1e-6);
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
        check_int(motor_error_code(k), CRD_DCP_E_HEARTBEAT_MISSED);
        check_int(look(k).reason, CRD_DCP_BENCH_WATCHDOG);
        if (on) {
            check_text(motor_find_log(k, "fault: "), "fault: watchdog, no valid data for 0.5 s");
        }
        motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
        motor_bench_destroy(k);
    }
}

static void data_that_are_not_valid_do_not_feed_the_watchdog(void** state)
{
    for (int i = 0; i < 3; i++) {
        motor_bench* k = make(i > 0);
        motor_run(k, i > 0);
        motor_drive(k, 0.5, 500, 0, 100, 25);
        const double last = k->r.now;
        stopped_at = NAN;
        k->each = note_stop;
        for (int n = 1; n < 60 && isnan(stopped_at); n++) {
            motor_go(k, last + n * 0.01);
            if (i == 2) { k->number--; } // the same number over and over
            motor_feed(k, i == 1 ? NAN : 500, 0, 100, i == 0 ? NAN : 25);
        }
        check_near(stopped_at - last, 0.5, 1e-6);
        motor_bench_destroy(k);
    }
}

static void a_run_that_never_gets_data_ends_too(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_until(k, CRD_DCP_ERRORHANDLING, 0.52);
    check_int(look(k).reason, CRD_DCP_BENCH_WATCHDOG);
    motor_bench_destroy(k);
}

static void a_stop_drives_nothing_that_nobody_has_driven(void** state)
{
    motor_bench* k = make(true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    k->m.stuck = true; // a sensor that lies
    k->m.is[MOTOR_SPEED] = 3000;
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    check_int(look(k).phase, CRD_DCP_BENCH_SPEED_DOWN);
    for (int i = 0; i < 100; i++) {
        motor_for(k, 0.01);
        check(fabs(k->m.set[MOTOR_SPEED]) < 1e-9);
    }
    motor_bench_destroy(k);
}

static void a_start_in_the_future_is_waited_for(void** state)
{
    motor_bench* k = make(true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    motor_for(k, 0.4); // the others are slow, but not slower than the watchdog
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_SYNCHRONIZED);
    const double start = floor(k->r.now) + 3;
    motor_do(k, .type = CRDI_DCP_STC_RUN, .time = (int64_t)start);
    motor_go(k, start + 0.49);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
    motor_go(k, start + 0.51);
    check(crd_dcp_slave_state(k->r.slave) >= CRD_DCP_ERRORHANDLING);
    motor_bench_destroy(k);
}

// ---- the safety core in a bench ----------------------------------------------------------------

// Set values may come in the initialisation and while it synchronizes: they move nothing. A master
// that dies there is noticed by the watchdog, which waits from STC_run on.
static void set_values_before_running_move_nothing(void** state)
{
    for (int on = 0; on < 2; on++) {
        motor_bench* k = make(true);
        motor_register(k, CRD_DCP_SRT);
        motor_configure(k, 1, on);
        motor_do(k, .type = CRDI_DCP_STC_PREPARE);
        motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
        motor_feed(k, 3000, 40, 300, 25);
        motor_do(k, .type = CRDI_DCP_STC_INITIALIZE);
        motor_until(k, CRD_DCP_INITIALIZED, 1);
        motor_do(k, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        const double start = floor(k->r.now) + 3;
        motor_do(k, .type = CRDI_DCP_STC_RUN, .time = (int64_t)start);
        while (k->r.now < start - 0.02) {
            motor_for(k, 0.01);
            motor_feed(k, 3000, 40, 300, 25);
            check_int(look(k).phase, CRD_DCP_BENCH_ARMED);
        }
        motor_go(k, start + 0.49);
        check(crd_dcp_slave_state(k->r.slave) == CRD_DCP_SYNCHRONIZED);
        motor_until(k, CRD_DCP_ERRORHANDLING, 0.02);
        check_int(look(k).reason, CRD_DCP_BENCH_WATCHDOG);
        motor_until(k, CRD_DCP_ERRORRESOLVED, 1);
        check_near(k->m.is[MOTOR_SPEED], 0, 0);
        check_near(k->m.is[MOTOR_TORQUE], 0, 0);
        check_near(k->m.is[MOTOR_VOLTAGE], 0, 0);
        motor_bench_destroy(k);
    }
}

// Somebody has seen the data_id and counts ahead: from another address, and from another port of
// the master's own host.
static void data_of_somebody_else_do_nothing(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 3, 3000, 0, 300, 25);
    for (int i = 0; i < 100; i++) {
        crd_dcp_address from = rig_master;
        if (i % 2) {
            from.ip += 65;
        } else {
            from.port++; // a process of the master's host
            from.transport = i % 4 ? CRD_DCP_TCP : CRD_DCP_UDP;
        }
        const double values[4] = {6000, 200, 400, 25};
        uint8_t payload[40], bytes[64];
        memcpy(payload, values, 32);
        const uint32_t numbers[2] = {k->number + 1000, k->echo};
        memcpy(payload + 32, numbers, 8);
        const crdi_dcp_pdu p = {.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                .seq = (uint16_t)(k->in + 1000),
                                .id = 20,
                                .payload = payload,
                                .payload_length = sizeof payload};
        const size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
        crd_dcp_slave_receive(k->r.slave, &from, &rig_control, bytes, n, k->r.now);
        motor_drive(k, 0.01, 3000, 0, 300, 25);
        check_near(k->m.set[MOTOR_SPEED], 3000, 0);
        check_near(k->m.set[MOTOR_TORQUE], 0, 0);
    }
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(k->r.slave);
    check_int(c.data_foreign, 100);
    check_int(c.data_old, 0); // the master's own are still good
    check_int(look(k).foreign, 100);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
    check_contains(motor_find_log(k, "refused: "), "somebody who is not the master");
    motor_bench_destroy(k);
}

// A master with several data_ids: the speed goes on to come, torque and voltage do not.
static void a_set_value_that_does_not_come_any_more_is_missed(void** state)
{
    motor_bench* k = make(false);
    motor_run(k, false);
    motor_drive(k, 2, 3000, 50, 300, 25);
    const crd_dcp_plant plant = crd_dcp_bench_plant(k->b);
    double speed = 3000;
    const crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 1, .real = &speed};
    int steps = 0;
    while (crd_dcp_slave_state(k->r.slave) == CRD_DCP_RUNNING && steps < 200) {
        motor_for(k, 0.01);
        (void)plant.set(plant.user, MOTOR_SPEED, &slot);
        steps++;
    }
    check_near(steps, 50, 1); // 500 ms
    check_int(look(k).reason, CRD_DCP_BENCH_WATCHDOG);
    check_near(k->m.set[MOTOR_TORQUE], 0, 0);
    motor_bench_destroy(k);
}

static void the_agreed_case_is_what_the_bench_keeps_to(void** state)
{
    motor_bench* k = make(true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_text(k, "bench.case",
               "speed 0..3100 1/min rate 1000 1/min/s; torque -60..60 N.m; "
               "avoid speed 0..50 1/min with torque");
    motor_text(k, "bench.peer_limits", "torque -40..100 N.m; voltage 0..0.35 kV");
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_until(k, CRD_DCP_ERRORRESOLVED, 1); // -60 is beyond the peer's -40
    motor_do(k, .type = CRDI_DCP_STC_RESET);
    motor_configure(k, 1, true);
    motor_text(k, "bench.case",
               "speed 0..3100 1/min rate 1000 1/min/s; torque -40..60 N.m; "
               "avoid speed 0..50 1/min with torque");
    motor_text(k, "bench.peer_limits", "torque -40..100 N.m; voltage 0..0.35 kV");
    motor_start(k);
    double most = 0;
    for (int i = 0; i < 500; i++) {
        const double before = k->m.set[MOTOR_SPEED];
        motor_drive(k, 0.01, 5000, 150, 400, 25);
        most = fmax(most, k->m.set[MOTOR_SPEED] - before);
        check(k->m.set[MOTOR_SPEED] <= 3100 && k->m.set[MOTOR_TORQUE] <= 60);
        check(k->m.set[MOTOR_VOLTAGE] <= 350);
    }
    check_near(k->m.set[MOTOR_SPEED], 3100, 0);
    check_near(k->m.set[MOTOR_TORQUE], 60, 0);
    check_near(most, 10, 1e-3); // of a clock that counts from 1970
    check_int(look(k).clamped & 7, 7);
    check_int(look(k).clamps, 3);
    check_text(motor_find_log(k, "clamped: speed"),
               "clamped: speed = 5000 1/min, used 3100, limits 0 to 3100");
    motor_drive(k, 1, 3000, -150, 300, 25);
    check_near(k->m.set[MOTOR_TORQUE], -40, 0);
    motor_bench_destroy(k);
}

// A machine that does not slow down: its drive is cut, and its voltage stays.
static void a_stage_that_is_late_cuts_the_drive_and_keeps_the_voltage(void** state)
{
    crd_dcp_bench_config c = motor_config();
    c.stop_patience = 4;
    motor_bench* k = motor_bench_create(&c, true);
    motor_run(k, true);
    motor_drive(k, 3, 3000, 0, 300, 25);
    k->m.stuck = true;
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_for(k, 3.9);
    check_int(k->m.cuts, 0);
    motor_for(k, 10);
    check_int(k->m.cuts, 1);
    check(look(k).cut);
    check_int(look(k).phase, CRD_DCP_BENCH_SPEED_DOWN);
    check_near(k->m.set[MOTOR_VOLTAGE], 300, 0);
    check_near(k->m.set[MOTOR_SPEED], 0, 0);
    check_text(motor_find_log(k, "stop: drive"), "stop: drive cut off");
    k->m.stuck = false;
    motor_until(k, CRD_DCP_STOPPED, 10);
    motor_bench_destroy(k);
}

// A set value of 0 V is no proof: a DC link may keep its charge.
static void a_bench_with_voltage_is_not_safe(void** state)
{
    (void)state;
    crd_dcp_bench_config c = motor_config();
    c.stop_patience = 4;
    motor_bench* k = motor_bench_create(&c, true);
    motor_run(k, true);
    motor_drive(k, 3, 1000, 0, 300, 25);
    k->m.charged = true;
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_for(k, 20);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    check_near(k->m.set[MOTOR_VOLTAGE], 0, 0);
    check_int(look(k).phase, CRD_DCP_BENCH_STAND_DOWN);
    check(*motor_find_log(k, "stop: drive cut off"));
    k->m.is[MOTOR_VOLTAGE] = 61;
    motor_for(k, 1);
    check_int(look(k).phase, CRD_DCP_BENCH_STAND_DOWN);
    k->m.is[MOTOR_VOLTAGE] = NAN;
    motor_for(k, 1);
    check_int(look(k).phase, CRD_DCP_BENCH_STAND_DOWN);
    k->m.is[MOTOR_VOLTAGE] = 59;
    motor_until(k, CRD_DCP_STOPPED, 1);
    check_int(look(k).phase, CRD_DCP_BENCH_SAFE);
    motor_bench_destroy(k);
}

static void what_is_not_guarded_is_said(void** state)
{
    crd_dcp_bench_config c = motor_config();
    c.watchdog = c.heartbeat = c.stop_patience = 0;
    c.limits = "torque -210..210 N.m; voltage 0..400 V; oil 20..90 degC";
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_SPEED].unit = "1/min";
    c.quantities = q;
    motor_bench* k = motor_bench_create(&c, true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    const char* const said[] = {"not safe: watchdog 0", "not safe: no heartbeat",
                                "not safe: stop_patience 0", "not safe: no limits: speed"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        check(*motor_find_log(k, said[i]));
    }
    motor_bench_destroy(k);
    c = motor_config(); // and what is as good as nothing
    c.watchdog = 86400;
    c.safe_speed = 1e5;
    k = motor_bench_create(&c, true);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    check(*motor_find_log(k, "not safe: watchdog 86400 s"));
    check(*motor_find_log(k, "not safe: safe_speed"));
    motor_bench_destroy(k);
}

// Outside of runs, where conditioning turns the machine, the heartbeat is the deadman.
static void a_master_that_dies_while_it_conditions_is_noticed(void** state)
{
    crd_dcp_bench_config c = motor_config();
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_SPEED].conditioning = 90;
    c.quantities = q;
    c.initial = "oil 80 degC";
    c.heartbeat = 3;
    motor_bench* k = motor_bench_create(&c, true);
    check(k->d->can_reset && k->d->can_monitor_heartbeat);
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    for (int i = 0; i < 10; i++) {
        motor_for(k, 1);
        (void)rig_ask(&k->r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        motor_drain(k);
    }
    check_near(k->m.is[MOTOR_SPEED], 90, 1);
    motor_for(k, 2.99);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_CONFIGURING);
    motor_for(k, 0.02);
    check(crd_dcp_slave_state(k->r.slave) >= CRD_DCP_ERRORHANDLING);
    check_contains(motor_find_log(k, "fault: "), "no sign of the master for 3 s");
    motor_until(k, CRD_DCP_ERRORRESOLVED, 2);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    motor_bench_destroy(k);
}

// The master dies while the bench turns with 3000 1/min: it is safe behind the time of its watchdog
// and of its ramp, and the voltage stays above the induced one on the way.
static void a_master_that_dies_leaves_a_bench_that_becomes_safe_in_time(void** state)
{
    for (int on = 0; on < 2; on++) {
        motor_bench* k = make(on == 1);
        motor_run(k, on == 1);
        motor_drive(k, 3, 3000, 100, 200, 25);
        check_near(k->m.is[MOTOR_SPEED], 3000, 1e-3);
        check_near(k->m.is[MOTOR_TORQUE], 100, 1e-3);
        const double last = k->r.now;
        k->m.margin = INFINITY;
        motor_until(k, CRD_DCP_ERRORHANDLING, 1);
        check_near(k->m.set[MOTOR_TORQUE], 0, 0);
        check_near(k->m.set[MOTOR_VOLTAGE], 200, 0);
        motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
        // 0.5 s, then 2900 1/min with 1000 1/min per s, behind which the machine lags by 0.1 s.
        const double safe = look(k).safe_since - last;
        check_near(safe, 0.5 + 2.9 + 0.1, 0.011);
        check(k->m.margin > 0);
        check_near(k->m.is[MOTOR_SPEED], 0, 1);
        check_near(k->m.is[MOTOR_TORQUE], 0, 1e-9);
        check_near(k->m.set[MOTOR_VOLTAGE], 0, 0);
        check_int(look(k).phase, CRD_DCP_BENCH_SAFE);
        check_int(k->m.withdrawn, 1);
        motor_bench_destroy(k);
    }
}

static void a_missed_heartbeat_stops_it_in_the_same_way(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    motor_bench* k = motor_bench_create(&c, true);
    k->d->can_monitor_heartbeat = k->d->has_heartbeat = true;
    k->d->heartbeat_numerator = k->d->heartbeat_denominator = 1;
    motor_run(k, true);
    motor_drive(k, 0.9, 1000, 0, 400, 25); // data, but no INF_state
    motor_drive(k, 0.5, 1000, 0, 400, 25);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
    check_int(motor_error_code(k), CRD_DCP_E_HEARTBEAT_MISSED);
    check_int(look(k).reason, CRD_DCP_BENCH_SLAVE);
    motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
    motor_bench_destroy(k);
}

// ---- sequence numbers --------------------------------------------------------------------------

static void numbers_are_sent_back_and_measure_the_round_trip(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 1, 500, 0, 100, 25);
    motor_for(k, 0.02);
    check_int((int)k->out[6], (int)k->number); // echo of ours
    check(k->out[5] >= 99);                    // their own
    const crd_dcp_round_trip r = look(k).round_trip;
    check(r.count > 90);
    check(r.least >= 0 && r.most < 0.0201);
    motor_bench_destroy(k);
}

static void numbers_too_far_apart_stop_the_bench(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 0.5, 500, 0, 100, 25);
    k->number += 100; // 100 lost: just allowed
    motor_drive(k, 0.5, 500, 0, 100, 25);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
    k->number += 101;
    motor_drive(k, 0.03, 500, 0, 100, 25);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
    check_text(motor_find_log(k, "fault: "), "fault: sequence numbers are 101 apart, allowed 100");
    check_int(look(k).reason, CRD_DCP_BENCH_GAP);
    motor_bench_destroy(k);

    // The master does not get ours any more, and goes on sending.
    k = make(true);
    motor_run(k, true);
    motor_drive(k, 0.5, 500, 0, 100, 25);
    const double begin = k->r.now;
    const uint32_t echo = k->echo;
    while (crd_dcp_slave_state(k->r.slave) == CRD_DCP_RUNNING && k->r.now < begin + 3) {
        motor_go(k, k->r.now + 0.01);
        k->echo = echo;
        motor_feed(k, 500, 0, 100, 25);
    }
    check_near(k->r.now - begin, 1.01, 0.02); // one per 10 ms
    check_int(look(k).reason, CRD_DCP_BENCH_GAP);
    motor_bench_destroy(k);
}

static void numbers_wrap(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    k->number = UINT32_MAX - 20;
    motor_drive(k, 1, 500, 0, 100, 25);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
    check_int((int)k->out[6], 100 - 21 - 1);
    motor_bench_destroy(k);
}

// ---- the stop ----------------------------------------------------------------------------------

static void a_stop_goes_through_its_phases_in_order(void** state)
{
    crd_dcp_bench_config c = motor_config();
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_OIL].cool_down = 40;
    q[MOTOR_VOLTAGE].conditioning = 48;
    c.quantities = q;
    c.induced = motor_induced;
    motor_bench* k = motor_bench_create(&c, true);
    motor_run(k, true);
    motor_drive(k, 2, 2000, 50, 400, 60);
    k->m.is[MOTOR_OIL] = 60; // hot from the run
    k->log_count = 0;
    k->m.margin = INFINITY;
    const double begin = k->r.now;
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_STOPPING);
    check(!k->m.remote);
    check_near(k->m.set[MOTOR_TORQUE], 0, 0);
    motor_for(k, 1);
    check_int(look(k).phase, CRD_DCP_BENCH_SPEED_DOWN);
    check_near(k->m.set[MOTOR_VOLTAGE], 400, 0);
    check_near(k->m.set[MOTOR_SPEED], 1000, 11);
    motor_for(k, 2);
    check_int(look(k).phase, CRD_DCP_BENCH_COOL_DOWN);
    check_near(look(k).safe_since - begin, 2.0, 0.02); // 1900 1/min and the lag
    check_near(k->m.set[MOTOR_VOLTAGE], 48, 0);
    motor_for(k, 60);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_STOPPING);
    check_near(k->m.is[MOTOR_SPEED], 50, 1e-3); // turns while it cools
    const double taken = 63 + motor_until(k, CRD_DCP_STOPPED, 900);
    // 34.55 + 25.45 exp(-0.002567 t) = 40
    check_near(taken, 3 + log(25.45 / 5.45) / 0.002567, 5);
    check(k->m.is[MOTOR_OIL] <= 40);
    check_near(k->m.set[MOTOR_VOLTAGE], 0, 0);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    check(k->m.margin > 0);
    static const char* const phases[] = {"stop: remote control withdrawn",
                                         "stop: torque 0, speed down, voltage held",
                                         "stop: speed is safe, voltage down",
                                         "stop: cool down, turning",
                                         "stop: to standstill",
                                         "stop: safe"};
    check_int(k->log_count, 6);
    for (int i = 0; i < 6; i++) {
        check_text(k->logs[i], phases[i]);
    }
    check_int(look(k).reason, CRD_DCP_BENCH_BY_MASTER);
    motor_bench_destroy(k);
}

static void a_stop_turns_nothing_that_stands(void** state)
{
    crd_dcp_bench_config c = motor_config();
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_OIL].cool_down = 40;
    c.quantities = q;
    motor_bench* k = motor_bench_create(&c, true);
    k->m.is[MOTOR_OIL] = k->m.set[MOTOR_OIL] = 60; // still hot from an earlier run
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_for(k, 1);
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    check(motor_until(k, CRD_DCP_STOPPED, 1) < 0.1);
    check_near(k->m.is[MOTOR_SPEED], 0, 0);
    check_near(k->m.set[MOTOR_OIL], 60, 0); // nobody has said anything about it
    motor_bench_destroy(k);
}

static void an_error_in_any_state_leads_to_the_safe_state(void** state)
{
    static const crd_dcp_state states[] = {
        CRD_DCP_PREPARED,     CRD_DCP_CONFIGURING, CRD_DCP_CONFIGURED, CRD_DCP_INITIALIZED,
        CRD_DCP_SYNCHRONIZED, CRD_DCP_RUNNING,     CRD_DCP_STOPPING};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        motor_bench* k = make(true);
        motor_register(k, CRD_DCP_SRT);
        motor_configure(k, 1, true);
        motor_text(k, "bench.initial", initial);
        motor_do(k, .type = CRDI_DCP_STC_PREPARE);
        if (states[i] > CRD_DCP_PREPARED) { motor_do(k, .type = CRDI_DCP_STC_CONFIGURE); }
        if (states[i] > CRD_DCP_CONFIGURING) { motor_until(k, CRD_DCP_CONFIGURED, 200); }
        if (states[i] == CRD_DCP_INITIALIZED) { motor_do(k, .type = CRDI_DCP_STC_INITIALIZE); }
        if (states[i] > CRD_DCP_INITIALIZED) { motor_do(k, .type = CRDI_DCP_STC_RUN); }
        motor_for(k, 0.01);
        if (states[i] > CRD_DCP_SYNCHRONIZED) {
            motor_do(k, .type = CRDI_DCP_STC_RUN);
            motor_drive(k, 2, 2000, 50, 400, warm);
        }
        if (states[i] == CRD_DCP_STOPPING) {
            motor_do(k, .type = CRDI_DCP_STC_STOP);
            motor_for(k, 1);
        }
        check_int(crd_dcp_slave_state(k->r.slave), states[i]);
        const double begin = k->r.now;
        k->m.margin = INFINITY;
        k->m.error = 42;
        motor_for(k, 0.02);
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
        check_text(motor_find_log(k, "fault: "), "fault: error 42 in the memory of the bench");
        motor_for(k, 10);
        // Safe, but not resolved: somebody has to look at the bench first.
        check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORHANDLING);
        check_int(look(k).phase, CRD_DCP_BENCH_SAFE);
        check_near(k->m.is[MOTOR_SPEED], 0, 1);
        check(k->m.margin > 0);
        int begun = 0;
        for (int n = 0; n < k->log_count; n++) {
            begun += strncmp(k->logs[n], "stop: torque 0", 14) == 0;
        }
        check_int(begun, 1);
        if (states[i] == CRD_DCP_STOPPING) { // the stop went on where it was
            check_near(look(k).safe_since - begin, 1.0, 0.03);
        }
        k->m.error = 0;
        motor_until(k, CRD_DCP_ERRORRESOLVED, 0.02);
        check_int(look(k).reason, CRD_DCP_BENCH_RIG_ERROR);
        motor_bench_destroy(k);
    }
}

// Rautenberg 2023 restarts a run by STC_reset: from STOPPED, and from ERRORRESOLVED.
static void after_a_stop_a_reset_brings_remote_control_back(void** state)
{
    motor_bench* k = make(true);
    motor_register(k, CRD_DCP_SRT);
    for (int turn = 0; turn < 4; turn++) {
        motor_configure(k, 1, true);
        motor_start(k);
        motor_drive(k, 1, 1000, 0, 400, 25);
        check(k->m.is[MOTOR_SPEED] > 900);
        check_int(k->m.given, turn + 1);
        if (turn % 2) { // nobody sends any more
            motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
            check_int(look(k).reason, CRD_DCP_BENCH_WATCHDOG);
        } else {
            motor_do(k, .type = CRDI_DCP_STC_STOP);
            motor_until(k, CRD_DCP_STOPPED, 10);
        }
        check_int(look(k).phase, CRD_DCP_BENCH_SAFE);
        check_near(k->m.is[MOTOR_SPEED], 0, 1);
        motor_do(k, .type = CRDI_DCP_STC_RESET);
        check_int(look(k).phase, CRD_DCP_BENCH_IDLE);
        k->states[0] = 0;
        k->log_count = 0;
        k->in = 0;
    }
    motor_bench_destroy(k);
}

static void somebody_at_the_bench_can_stop_it(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 1, 1000, 0, 400, 25);
    k->states[0] = 0;
    crd_dcp_bench_stop(k->b, k->r.now);
    motor_until(k, CRD_DCP_STOPPED, 10);
    check_text(k->states, "0f10");
    check_int(look(k).reason, CRD_DCP_BENCH_BY_OPERATOR);
    motor_do(k, .type = CRDI_DCP_STC_DEREGISTER);
    crd_dcp_bench_stop(k->b, k->r.now); // nothing to stop
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, true);
    motor_text(k, "bench.initial", initial);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    motor_for(k, 3);
    k->states[0] = 0;
    crd_dcp_bench_stop(k->b, k->r.now);
    motor_until(k, CRD_DCP_ERRORRESOLVED, 10);
    check_text(k->states, "1112");
    check_int(look(k).reason, CRD_DCP_BENCH_BY_OPERATOR);
    motor_bench_destroy(k);
}

// ---- plain masters, other modes ----------------------------------------------------------------

static void a_master_that_knows_nothing_of_it_gets_an_ordinary_slave(void** state)
{
    for (int i = 0; i < 2; i++) { // a bench with and without the extension in its description
        motor_bench* k = make(i == 1);
        motor_run(k, false);
        motor_drive(k, 5, 9000, 20, 400, 25);
        check(!look(k).extension);
        check_near(k->out[MOTOR_SPEED], 6500, 1e-2); // clamped all the same
        check_near(k->out[4], 20 * 6500 * M_PI / 30, 1);
        motor_do(k, .type = CRDI_DCP_STC_STOP);
        motor_until(k, CRD_DCP_STOPPED, 10);
        check_near(k->m.is[MOTOR_SPEED], 0, 1);
        motor_bench_destroy(k);
    }
}

static void in_nrt_the_rig_goes_with_the_steps(void** state)
{
    crd_dcp_bench_config c = motor_config();
    c.watchdog = 0;
    motor_bench* k = motor_bench_create(&c, false);
    motor_register(k, CRD_DCP_NRT);
    motor_configure(k, 1, false);
    motor_start(k);
    const double before = k->m.time;
    motor_for(k, 60); // the master thinks
    check_near(k->m.time, before, 0);
    for (int i = 0; i < 20; i++) {
        motor_feed(k, 1000, 0, 400, 25);
        motor_do(k, .type = CRDI_DCP_STC_DO_STEP, .steps = 10);
        motor_do(k, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    }
    check_near(k->m.time - before, 2, 1e-9);
    check_near(k->out[MOTOR_SPEED], 1000, 1);
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    motor_until(k, CRD_DCP_STOPPED, 10); // in real time again
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    motor_bench_destroy(k);
}

static void a_time_that_jumps_is_gone_through_in_order(void** state)
{
    motor_bench* k = make(true);
    motor_run(k, true);
    motor_drive(k, 2, 2000, 50, 400, 25);
    const double last = k->r.now;
    k->m.margin = INFINITY;
    k->r.now += 3600; // the process was asleep
    int calls = 0;
    while (crd_dcp_slave_next(k->r.slave) <= k->r.now) {
        crd_dcp_slave_advance(k->r.slave, k->r.now);
        motor_drain(k);
        calls++;
    }
    check(calls >= 360 && calls < 370); // 1000 events each
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_ERRORRESOLVED);
    check_near(look(k).safe_since - last, 0.5 + 1.9 + 0.1, 0.02);
    check(k->m.margin > 0);
    motor_bench_destroy(k);
}

static void entries_can_be_asked_for_instead(void** state)
{
    motor_bench* k = make(true);
    k->m.ready = 14;
    motor_register(k, CRD_DCP_SRT);
    motor_do(k, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    for (uint8_t level = 0; level < 5; level++) {
        motor_do(k, .type = CRDI_DCP_CFG_LOGGING, .level = level, .mode = 1);
    }
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_for(k, 1);
    const crdi_dcp_pdu a = rig_ask(&k->r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .max = 10});
    check_int(a.type, CRDI_DCP_RSP_LOG_ACK);
    check_int(a.payload_length, 9 + 4 + 19); // "battery emulator on"
    check_int(memcmp(a.payload + 13, "battery emulator on", 19), 0);
    motor_bench_destroy(k);
}

// ---- another bench -----------------------------------------------------------------------------

// An engine: speed of the brake, pedal, coolant; no voltage.
static void an_engine_bench_is_the_same_with_other_quantities(void** state)
{
    crd_dcp_bench_config c = motor_config();
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_TORQUE].name = "pedal";
    q[MOTOR_TORQUE].role = CRD_DCP_ROLE_OTHER;
    q[MOTOR_TORQUE].safe = 0.02;
    q[MOTOR_VOLTAGE].name = "lambda";
    q[MOTOR_VOLTAGE].role = CRD_DCP_ROLE_OTHER;
    q[MOTOR_VOLTAGE].safe = 1;
    q[MOTOR_OIL].name = "coolant";
    q[MOTOR_OIL].unit = "K";
    q[MOTOR_OIL].trip_max = 380;
    c.quantities = q;
    c.limits = "speed 600..7000 1/min; pedal 0..1; coolant ..100 degC";
    c.initial = "coolant 350 K; tolerance 0.5 K";
    c.tolerance = 0.5;
    motor_bench* k = motor_bench_create(&c, false);
    k->m.is[MOTOR_OIL] = 340;
    k->m.heating = 1;
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, false);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    check_near(motor_until(k, CRD_DCP_CONFIGURED, 60), 9.5, 0.02);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    motor_drive(k, 5, 3000, 0.7, 0.9, 400);
    check_near(k->m.set[MOTOR_TORQUE], 0.7, 0);
    check_near(k->m.set[MOTOR_OIL], 373.15, 1e-9);
    motor_drive(k, 1, 100, 0.7, 0.9, 350);
    check_near(k->m.set[MOTOR_SPEED], 600, 0);
    crd_dcp_bench_stop(k->b, k->r.now);
    check_near(k->m.set[MOTOR_TORQUE], 0.02, 0);
    check_near(k->m.set[MOTOR_VOLTAGE], 1, 0);
    motor_until(k, CRD_DCP_STOPPED, 10);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    motor_bench_destroy(k);
}

// ---- whatever comes ----------------------------------------------------------------------------

static uint64_t draw(uint64_t* seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void forget_packets(motor_bench* k)
{
    k->r.out_count = k->log_count = 0;
    k->states[0] = 0;
}

// Set values of all kinds for 0.3 s.
static void feed_anything(motor_bench* k, uint64_t* seed)
{
    static const double odd[] = {0, 60, 3000, -1e9, 1e300, NAN, INFINITY, 6500};
    for (int i = 0; i < 30; i++) {
        motor_feed(k, draw(seed, 3) ? 3000 : odd[draw(seed, 8)],
                   draw(seed, 3) ? 100 : odd[draw(seed, 8)], odd[draw(seed, 8)],
                   draw(seed, 9) ? 30 : odd[draw(seed, 8)]);
        motor_for(k, 0.01);
        forget_packets(k);
    }
}

// The request that leads on, 0: none.
static uint8_t way_on(crd_dcp_state state)
{
    return state == CRD_DCP_CONFIGURATION                                 ? CRDI_DCP_STC_PREPARE
           : state == CRD_DCP_PREPARED                                    ? CRDI_DCP_STC_CONFIGURE
           : state == CRD_DCP_CONFIGURED || state == CRD_DCP_SYNCHRONIZED ? CRDI_DCP_STC_RUN
                                                                          : 0;
}

static void act(motor_bench* k, uint64_t* seed)
{
    crdi_dcp_pdu p = {.peer = 1, .state = (uint8_t)crd_dcp_slave_state(k->r.slave)};
    p.type = way_on(p.state);
    switch (draw(seed, 40)) {
    case 0:
        p.type = (uint8_t)(1 + draw(seed, 10));
        break;
    case 1:
        k->m.error = draw(seed, 3) == 0 ? 3 : 0;
        return;
    case 2:
        k->m.ready = draw(seed, 3) == 0 ? (uint32_t)draw(seed, 16) : 15;
        return;
    case 3:
        k->r.now += (double)draw(seed, 20) * 0.1; // nobody has looked for a while
        return;
    case 4:
        crd_dcp_slave_fault(k->r.slave, CRD_DCP_E_GENERIC, k->r.now);
        return;
    case 5:
        crd_dcp_bench_stop(k->b, k->r.now);
        return;
    default:
        break;
    }
    if (p.type == 0) {
        feed_anything(k, seed);
        return;
    }
    p.seq = k->r.seq++;
    rig_tell(&k->r, &p);
}

static void whatever_comes_the_bench_keeps_its_limits_and_becomes_safe(void** state)
{
    uint64_t seed = 7;
    int runs = 0, stops = 0;
    crd_dcp_bench_config c = motor_config();
    c.induced = motor_induced;
    motor_bench* k = motor_bench_create(&c, true);
    k->m.strict = true;
    for (int i = 0; i < 3000; i++) {
        const crd_dcp_state s = crd_dcp_slave_state(k->r.slave);
        if (s == CRD_DCP_STOPPED || s == CRD_DCP_ERRORRESOLVED) {
            stops++;
            check_near(k->m.is[MOTOR_SPEED], 0, 1);
            check(!k->m.remote && !look(k).remote);
            motor_do(k, .type = CRDI_DCP_STC_DEREGISTER);
        } else if (s == CRD_DCP_ALIVE) {
            motor_for(k, 0.01);
            forget_packets(k);
            motor_register(k, CRD_DCP_SRT);
            motor_configure(k, 1, i % 2);
        }
        act(k, &seed);
        forget_packets(k);
        motor_for(k, 0.02);
        forget_packets(k);
        runs += crd_dcp_slave_state(k->r.slave) == CRD_DCP_RUNNING && k->m.is[MOTOR_SPEED] > 100;
    }
    // The voltage is behind its set value by 0.02 s while the machine speeds up by 2000 1/min per
    // s.
    check(k->m.margin > -2000 * motor_induced * 0.05);
    check(runs > 300 && stops > 50);
    k->m.error = 0;
    k->m.ready = 15;
    motor_go(k, k->r.now + 30); // and if nobody comes any more
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    motor_bench_destroy(k);
}

// ---- create ------------------------------------------------------------------------------------

static void every_allocation_of_create_may_fail(void** state)
{
    for (int64_t at = 0;; at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_dcp_bench_config c = motor_config();
        crd_dcp_description* d = motor_description(ctx, &c, false);
        motor m = motor_make();
        const crd_dcp_rig ops = motor_ops(&m);
        crd_dcp_bench* b = NULL;
        crdi_dcp_bench_peer* p = NULL;
        const crdi_dcp_bench_plan plan = crdi_dcp_bench_plan_defaults();
        a.fail_at = a.allocations + at;
        a.once = true;
        crd_status st = crd_dcp_bench_declare(d, &c, 100);
        if (st == CRD_OK) { st = crd_dcp_bench_create(ctx, d, &c, &ops, &b); }
        if (st == CRD_OK) { st = crdi_dcp_bench_peer_create(ctx, d, &plan, &p); }
        const bool done = a.fail_at >= 0;
        check_int(st, done ? CRD_OK : CRD_E_MEMORY);
        crdi_dcp_bench_peer_destroy(p);
        crd_dcp_bench_destroy(b);
        crd_dcp_description_destroy(d);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (done) {
            check(at >= 3);
            return;
        }
    }
}

static void the_declaration_keeps_the_rules_and_comes_back_from_a_file(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_dcp_bench_config c = motor_config();
    crd_dcp_description* d = motor_description(ctx, &c, true);
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    check_ok(crd_dcp_validate(d, &findings, &count));
    for (int i = 0; i < count; i++) {
        if (findings[i].severity != CRD_DCP_NOTE) { fail_msg("%s", findings[i].text); }
    }
    crd_text text;
    crd_text_init(&text, ctx);
    check_ok(crd_dcp_write(d, &text));
    crd_dcp_description* again = NULL;
    check_ok(crd_dcp_parse(ctx, text.data, text.length, "again.dcpx", &again, NULL, NULL));
    crdi_dcp_bench_variables at, before;
    check(crdi_dcp_bench_find(d, &before) && crdi_dcp_bench_find(again, &at));
    check_int(memcmp(&at, &before, sizeof at), 0);
    check_text(again->variables[at.limits].start, motor_limits);
    // A bench from it has its log entries.
    motor m = motor_make();
    const crd_dcp_rig ops = motor_ops(&m);
    crd_dcp_bench* b = NULL;
    check_ok(crd_dcp_bench_create(ctx, again, &c, &ops, &b));
    crd_dcp_bench_destroy(b);
    // Names and references are taken once.
    check_status(crd_dcp_bench_declare(d, &c, 500), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "bench.extension");
    check_status(crd_dcp_bench_declare(d, &c, 3), CRD_E_RANGE);
    check_status(crd_dcp_bench_declare(d, &c, UINT64_MAX - 3), CRD_E_RANGE);
    crd_text_clear(&text);
    crd_dcp_description_destroy(again);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

typedef void change(crd_dcp_bench_config* c, crd_dcp_quantity* q);
static void no_period(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->period = 0;
}
static void nan_watchdog(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->watchdog = NAN;
}
static void many(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->quantity_count = 17;
}
static void long_list(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->checklist_count = 32;
}
static void bad_limits(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->limits = "speed";
}
static void bad_initial(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->initial = "oil 5 V";
}
static void hot(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->initial = "oil 99 degC";
}
static void no_input(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[0].input = "n_reff";
}
static void an_output(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[0].input = "n";
}
static void no_unit(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[0].unit = "furlong";
}
static void other_unit(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[0].unit = "V";
}
static void two_speeds(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[1].role = CRD_DCP_ROLE_SPEED;
}
static void nowhere(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->limits = "avoid x 0..1 with torque";
}
static void in_volts(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->limits = "avoid speed 0..1 V with torque";
}

static void held(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)c;
    q[MOTOR_TORQUE].safe = 150;
}

static void never_still(crd_dcp_bench_config* c, crd_dcp_quantity* q)
{
    (void)q;
    c->standstill = 5000;
}

static void a_configuration_that_makes_no_sense_is_refused(void** state)
{
    static const struct {
        change* change;
        crd_status status;
        const char* says;
    } cases[] = {
        {no_period, CRD_E_RANGE, "period = 0"},
        {nan_watchdog, CRD_E_RANGE, "watchdog = nan"},
        {many, CRD_E_RANGE, "17 quantities"},
        {long_list, CRD_E_RANGE, "32 items"},
        {bad_limits, CRD_E_FORMAT, "expected a range"},
        {bad_initial, CRD_E_FORMAT, "expected one temperature"},
        {hot, CRD_E_RANGE, "limit oil"},
        {no_input, CRD_E_NOT_FOUND, "n_reff"},
        {an_output, CRD_E_NOT_FOUND, "expected an input"},
        {no_unit, CRD_E_RANGE, "furlong"},
        {other_unit, CRD_E_RANGE, "is in 'V'"},
        {two_speeds, CRD_E_RANGE, "both the speed"},
        {nowhere, CRD_E_NOT_FOUND, "none of its quantities"},
        {in_volts, CRD_E_RANGE, "units differ"},
        {held, CRD_E_RANGE, "a stop ends with torque 0"},
        {never_still, CRD_E_RANGE, "standstill = 5000, expected at most safe_speed"},
    };
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_dcp_bench_config c = motor_config();
    crd_dcp_description* d = motor_description(ctx, &c, true);
    motor m = motor_make();
    const crd_dcp_rig ops = motor_ops(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_dcp_bench* b = NULL;
        crd_dcp_quantity q[MOTOR_QUANTITIES];
        c = motor_config();
        memcpy(q, c.quantities, sizeof q);
        c.quantities = q;
        cases[i].change(&c, q);
        check_status(crd_dcp_bench_create(ctx, d, &c, &ops, &b), cases[i].status);
        check_contains(crd_error_text(ctx), cases[i].says);
    }
    // Other units of the same are fine: the variable in rad/s, the limit in 1/min.
    crd_dcp_quantity q[MOTOR_QUANTITIES];
    c = motor_config();
    memcpy(q, c.quantities, sizeof q);
    q[MOTOR_SPEED].unit = "rad/s";
    c.quantities = q;
    crd_dcp_bench* b = NULL;
    check_ok(crd_dcp_bench_create(ctx, d, &c, &ops, &b));
    crd_dcp_bench_destroy(b);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// What a description says about pairs may be anybody's.
static void quantities_and_their_variables_are_in_the_description(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    motor_bench* k = motor_bench_create(&c, true);
    crdi_dcp_bench_pair pairs[CRD_DCP_LIMITS_MAX];
    check_int(crdi_dcp_bench_pairs(k->d, pairs), 4);
    check_text(pairs[0].name, "speed");
    check_int(pairs[0].input, MOTOR_N_REF);
    check_int(pairs[0].output, MOTOR_N);
    check_text(pairs[3].name, "oil");
    check_int(pairs[3].input, MOTOR_OIL_REF);
    crdi_dcp_bench_variables at;
    check(crdi_dcp_bench_find(k->d, &at));
    crd_dcp_variable* v = (crd_dcp_variable*)&k->d->variables[at.clamped];
    const char* const kept = v->description;
    static const struct {
        const char* text;
        int count;
    } cases[] = {
        {"", 0},
        {"bits", 0},
        {"bits; ", 0},
        {"bits; 1 speed (n_ref, n)", 0},
        {"bits; 0 speed", 0},
        {"bits; 0 speed (n_ref", 0},
        {"bits; 0 speed (n_ref, n", 0},
        {"bits; 0 speed (n_ref, n)", 1},
        {"bits; 0 speed (n, n_ref), 1 x (-, -), 2", 2},
        {"bits; 0 a_name_that_is_far_too_long_for_a_limit (n_ref, n)", 0},
        {"b;0 a (-,-)1 a (-,-)2 a (-,-)3 a (-,-)4 a (-,-)5 a (-,-)6 a (-,-)7 a (-,-)8 a (-,-)"
         "9 a (-,-)10 a (-,-)11 a (-,-)12 a (-,-)13 a (-,-)14 a (-,-)15 a (-,-)16 a (-,-)",
         CRD_DCP_LIMITS_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        v->description = cases[i].text;
        check_int(crdi_dcp_bench_pairs(k->d, pairs), cases[i].count);
        if (i == 8) { check(pairs[0].input == -1 && pairs[0].output == -1); } // not what they are
    }
    v->description = kept;
    motor_bench_destroy(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oil_takes_the_times_of_table_3),
        cmocka_unit_test(a_test_case_beyond_a_limit_is_refused_before_anything_turns),
        cmocka_unit_test(the_limits_of_the_bench_are_its_own),
        cmocka_unit_test(each_item_of_the_checklist_holds_it_in_preparing),
        cmocka_unit_test(all_missing_items_are_named_and_what_changes_is_told),
        cmocka_unit_test(an_item_that_is_lost_in_the_run_is_a_fault),
        cmocka_unit_test(two_benches_of_different_speed_wait_for_each_other),
        cmocka_unit_test(conditioning_turns_slowly_with_low_voltage),
        cmocka_unit_test(set_values_are_kept_to_limits_and_rates_and_that_is_reported),
        cmocka_unit_test(forbidden_operating_points_are_kept_clear_of),
        cmocka_unit_test(the_voltage_is_never_set_below_what_the_machine_induces),
        cmocka_unit_test(a_measured_value_beyond_its_bounds_is_a_fault),
        cmocka_unit_test(the_watchdog_bites_exactly_at_its_time),
        cmocka_unit_test(data_that_are_not_valid_do_not_feed_the_watchdog),
        cmocka_unit_test(a_run_that_never_gets_data_ends_too),
        cmocka_unit_test(a_stop_drives_nothing_that_nobody_has_driven),
        cmocka_unit_test(a_start_in_the_future_is_waited_for),
        cmocka_unit_test(a_master_that_dies_leaves_a_bench_that_becomes_safe_in_time),
        cmocka_unit_test(a_missed_heartbeat_stops_it_in_the_same_way),
        cmocka_unit_test(numbers_are_sent_back_and_measure_the_round_trip),
        cmocka_unit_test(numbers_too_far_apart_stop_the_bench),
        cmocka_unit_test(numbers_wrap),
        cmocka_unit_test(a_stop_goes_through_its_phases_in_order),
        cmocka_unit_test(a_stop_turns_nothing_that_stands),
        cmocka_unit_test(an_error_in_any_state_leads_to_the_safe_state),
        cmocka_unit_test(set_values_before_running_move_nothing),
        cmocka_unit_test(data_of_somebody_else_do_nothing),
        cmocka_unit_test(a_set_value_that_does_not_come_any_more_is_missed),
        cmocka_unit_test(the_agreed_case_is_what_the_bench_keeps_to),
        cmocka_unit_test(a_stage_that_is_late_cuts_the_drive_and_keeps_the_voltage),
        cmocka_unit_test(a_bench_with_voltage_is_not_safe),
        cmocka_unit_test(what_is_not_guarded_is_said),
        cmocka_unit_test(a_master_that_dies_while_it_conditions_is_noticed),
        cmocka_unit_test(after_a_stop_a_reset_brings_remote_control_back),
        cmocka_unit_test(somebody_at_the_bench_can_stop_it),
        cmocka_unit_test(a_master_that_knows_nothing_of_it_gets_an_ordinary_slave),
        cmocka_unit_test(in_nrt_the_rig_goes_with_the_steps),
        cmocka_unit_test(a_time_that_jumps_is_gone_through_in_order),
        cmocka_unit_test(entries_can_be_asked_for_instead),
        cmocka_unit_test(an_engine_bench_is_the_same_with_other_quantities),
        cmocka_unit_test(whatever_comes_the_bench_keeps_its_limits_and_becomes_safe),
        cmocka_unit_test(every_allocation_of_create_may_fail),
        cmocka_unit_test(the_declaration_keeps_the_rules_and_comes_back_from_a_file),
        cmocka_unit_test(a_configuration_that_makes_no_sense_is_refused),
        cmocka_unit_test(quantities_and_their_variables_are_in_the_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
