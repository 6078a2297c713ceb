// Emulated benches as slaves on a virtual network: whole sessions, and every fault.
#include "shared/dcp_safety.h"
#include "shared/testbench_bench.h"
#include "testnet/testnet.h"

#include <math.h>
#include <stdio.h>

#include "check.h"

enum { MASTER = 0x0A000001, BENCH = 0x0A000002 };
static const double begin = 1794710000.25;

typedef struct place {
    check_allocator allocator, network_allocator;
    crd_context *ctx, *network;
    testnet* t;
    crd_dcp_net *net, *bench_net;
    crdi_testbench_kind kind;
    crdi_testbench* b;
    int64_t allocations; // until it was started
    crdi_dcp_bench_plan plan;
    crdi_dcp_bench_peer* p;
    crd_dcp_master* m;
    double step; // of the master
    crd_dcp_op_mode mode;
    double switch_on; // when the operator selects remote control
} place;

// ---- open and close ----------------------------------------------------------------------------

static crdi_testbench_options options(crdi_testbench_kind kind)
{
    crdi_testbench_options o = crdi_testbench_defaults(kind);
    o.address = (crd_dcp_address){BENCH, 8080, CRD_DCP_UDP};
    return o;
}

static void open_place(place* p, const crdi_testbench_options* o)
{
    static const uint32_t ip = 0x0A000000, mask = 0xFF000000;
    const testnet_faults faults = {.delay = 0.001, .start = begin};
    *p = (place){.kind = o->kind, .step = 0.01, .mode = CRD_DCP_SRT, .switch_on = INFINITY};
    p->ctx = check_context(&p->allocator);
    p->network = check_context(&p->network_allocator);
    check_ok(testnet_create(p->network, &faults, &p->t));
    check_ok(testnet_join(p->t, MASTER, &p->net));
    check_ok(testnet_join(p->t, BENCH, &p->bench_net));
    crd_dcp_address at = {BENCH, 8080, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p->bench_net, &at));
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    check_ok(crdi_testbench_create(p->ctx, o, &p->b));
    const crd_dcp_link link = crd_dcp_net_link(p->bench_net);
    check_ok(crdi_testbench_start(p->b, &link, &opt));
    testnet_attach(p->bench_net, crdi_testbench_slave(p->b));
    p->plan = crdi_dcp_bench_plan_defaults();
    p->plan.name = crdi_testbench_kind_name((int)o->kind);
    p->plan.gap_limit = 1000;
}

static void close_master(place* p)
{
    crdi_dcp_bench_peer_destroy(p->p);
    crd_dcp_master_destroy(p->m);
    p->p = NULL;
    p->m = NULL;
}

static void close_place(place* p)
{
    close_master(p);
    testnet_attach(p->bench_net, NULL);
    crdi_testbench_destroy(p->b);
    crd_dcp_net_destroy(p->bench_net);
    crd_dcp_net_destroy(p->net);
    testnet_destroy(p->t);
    crd_context_destroy(p->network);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
    check_int(p->network_allocator.live, 0);
}

// ---- the master --------------------------------------------------------------------------------

static double now_of(const place* p)
{
    return testnet_now(p->t) - begin;
}

static void notice(void* user, const crd_dcp_notice* n)
{
    place* p = user;
    if (p->p) { crdi_dcp_bench_peer_notice(p->p, n); }
}

static bool asked(void* user)
{
    place* p = user;
    if (now_of(p) >= p->switch_on) { crdi_testbench_switch(p->b, 3, true); }
    return false;
}

static int find(const place* p, const char* name)
{
    const int i = crdi_testbench_find(p->kind, name);
    check(i >= 0);
    return i;
}

static crd_status open_master(place* p)
{
    crd_status st = CRD_OK;
    crd_dcp_master_options o = crd_dcp_master_defaults();
    o.patience = 7200;
    o.notice = notice;
    o.cancelled = asked;
    o.user = p;
    int count, in[16], out[32], in_count = 0, out_count = 0, index = -1;
    const crdi_testbench_signal* s = crdi_testbench_signals(p->kind, &count);
    for (int i = 0; i < count; i++) {
        if (s[i].input) {
            in[in_count++] = i;
        } else {
            out[out_count++] = i;
        }
    }
    const crd_dcp_description* d = crdi_testbench_description(p->b);
    const crd_dcp_slave_spec spec = {.name = p->plan.name,
                                     .description = d,
                                     .control = {BENCH, 8080, CRD_DCP_UDP},
                                     .mode = p->mode,
                                     .numerator = 1,
                                     .denominator = p->step < 0.005 ? 1000 : 100};
    check_ok(crd_dcp_master_create(p->ctx, p->net, &o, &p->m));
    CRD_TRY(crdi_dcp_bench_peer_create(p->ctx, d, &p->plan, &p->p));
    check_ok(crd_dcp_master_add(p->m, &spec, &index));
    check_ok(crdi_dcp_bench_peer_bind(p->p, p->m, index));
    in_count += crdi_dcp_bench_peer_inputs(p->p, in + in_count);
    out_count += crdi_dcp_bench_peer_outputs(p->p, out + out_count);
    check_ok(crd_dcp_master_feed(p->m, index, in, in_count));
    check_ok(crd_dcp_master_watch(p->m, index, out, out_count, 1));
    CRD_TRY(crd_dcp_master_configure(p->m));
fail:
    return st;
}

static void set(place* p, const char* name, double value)
{
    *crd_dcp_master_slot(p->m, 0, find(p, name))->real = value;
}

static double get(place* p, const char* name)
{
    return *crd_dcp_master_slot(p->m, 0, find(p, name))->real;
}

static double is(const place* p, const char* name)
{
    return crdi_testbench_true(p->b, find(p, name));
}

static crd_dcp_bench_phase phase_of(const place* p)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(p->b)).phase;
}

static crd_dcp_bench_reason reason_of(const place* p)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(p->b)).reason;
}

static void begin_run(place* p)
{
    if (crd_dcp_master_run(p->m, 0, NULL) < 0) {
        fail_msg("%s; %s; %s", crd_error_text(p->ctx), crdi_dcp_bench_peer_view(p->p).why,
                 crdi_testbench_why(p->b));
    }
    crdi_dcp_bench_peer_begin(p->p, crd_dcp_master_now(p->m));
    p->allocations = p->allocator.allocations;
}

static crd_status interval(place* p)
{
    crd_status st = CRD_OK;
    const double now = crd_dcp_master_now(p->m);
    crdi_dcp_bench_peer_send(p->p, now);
    CRD_TRY(crd_dcp_master_send(p->m, 0));
    CRD_TRY(crd_dcp_master_wait(p->m, now + p->step));
    CRD_TRY(crdi_dcp_bench_peer_check(p->p, crd_dcp_master_now(p->m)));
fail:
    return st;
}

static void drive(place* p, double seconds)
{
    const int count = (int)(seconds / p->step + 0.5);
    for (int i = 0; i < count; i++) {
        const crd_status st = interval(p);
        if (st < 0) {
            fail_msg("after %g s: %s; %s; %s", i * p->step, crd_error_text(p->ctx),
                     crdi_dcp_bench_peer_view(p->p).why, crdi_testbench_why(p->b));
        }
    }
    check_int(p->allocator.allocations, p->allocations);
}

// The operating point of each bench in these tests.
static void set_point(place* p, bool torque)
{
    if (p->kind == CRDI_TESTBENCH_EM) {
        set(p, "speed_ref", 2000);
        set(p, "torque_ref", torque ? 120 : 0);
        set(p, "voltage_ref", 350);
        set(p, "oil_ref", 40);
    } else if (p->kind == CRDI_TESTBENCH_ICE) {
        set(p, "speed_ref", 2500);
        set(p, "pedal_ref", torque ? 45 : 0);
        set(p, "coolant_ref", 80);
        set(p, "oil_ref", 80);
    } else if (p->kind == CRDI_TESTBENCH_TRACTION) {
        set(p, "speed_ref", 1200);
        set(p, "torque_ref", torque ? 150 : 0);
        set(p, "voltage_ref", 380);
        set(p, "coolant_ref", 40);
    } else {
        set(p, "speed_ref", 3000);
        set(p, "torque_ref", torque ? 0.3 : 0);
        set(p, "voltage_ref", 35);
    }
}

static double point_speed(const place* p)
{
    static const double speeds[] = {2000, 2500, 3000, 1200};
    return speeds[p->kind];
}

static double dut_torque(const place* p)
{
    return p->kind == CRDI_TESTBENCH_BACK_TO_BACK ? is(p, "current") * 48.6e-3
                                                  : is(p, "torque_calc");
}

static double voltage(const place* p)
{
    return p->kind == CRDI_TESTBENCH_ICE            ? NAN
           : p->kind == CRDI_TESTBENCH_BACK_TO_BACK ? is(p, "voltage")
                                                    : is(p, "voltage_dc");
}

static void bring_up(place* p)
{
    if (open_master(p) < 0) {
        fail_msg("%s; %s", crd_error_text(p->ctx), crdi_dcp_bench_peer_view(p->p).why);
    }
    begin_run(p);
    set_point(p, false);
    drive(p, 1.5);
    set_point(p, true);
}

// Time passes, and nobody drives.
static void pass(place* p, double seconds)
{
    const double until = testnet_now(p->t) + seconds;
    while (testnet_now(p->t) < until) {
        testnet_advance(p->t, until); // to the next event at most
    }
}

// ---- the stop, as seen -------------------------------------------------------------------------

typedef struct trace {
    double torque_gone, speed_safe, voltage_falls, safe; // s since it began; INFINITY
    double least_margin;                                 // of the voltage above the induced one
} trace;

// Goes on until the bench is at rest; nobody drives it any more.
static trace watch_stop(place* p, double held)
{
    static const double induced[] = {0.05, 0, 5.076e-3, 0.02}, small[] = {6, 10, 0.02, 6};
    trace t = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    const double from = now_of(p);
    while (now_of(p) < from + 900 &&
           (phase_of(p) != CRD_DCP_BENCH_SAFE || now_of(p) < from + 0.01)) {
        const double at = now_of(p) - from, speed = fabs(is(p, "speed"));
        if (!(dut_torque(p) > small[p->kind])) {
            t.torque_gone = fmin(t.torque_gone, at);
        } else {
            t.torque_gone = INFINITY;
        }
        if (crdi_safety_mover_of(phase_of(p)) == CRDI_SAFETY_ORDER && speed <= 102) {
            t.speed_safe = fmin(t.speed_safe, at);
        }
        if (voltage(p) < 0.97 * held) { t.voltage_falls = fmin(t.voltage_falls, at); }
        if (p->kind != CRDI_TESTBENCH_ICE) {
            t.least_margin = fmin(t.least_margin, voltage(p) - induced[p->kind] * speed);
        }
        pass(p, 1e-3);
    }
    t.safe = now_of(p) - from;
    return t;
}

static void check_order(place* p, trace t)
{
    pass(p, 0.1); // lags of what is at rest
    check(t.torque_gone < INFINITY && t.torque_gone <= t.speed_safe);
    check(t.speed_safe < INFINITY);
    if (p->kind != CRDI_TESTBENCH_ICE) {
        check(t.voltage_falls < INFINITY && t.speed_safe <= t.voltage_falls + 2e-3);
        check(t.least_margin > -0.01);
        check(voltage(p) < 1);
    }
    check_int(phase_of(p), CRD_DCP_BENCH_SAFE);
    check_near(is(p, "speed"), 0, 0.01); // parked
}

// ---- sessions ----------------------------------------------------------------------------------

static void each_bench_runs_stops_in_order_and_runs_again(void** state)
{
    for (int kind = 0; kind < CRDI_TESTBENCH_BATTERY; kind++) { // those with a shaft
        const crdi_testbench_options o = options((crdi_testbench_kind)kind);
        place p;
        open_place(&p, &o);
        for (int turn = 0; turn < 2; turn++) {
            p.mode = turn ? CRD_DCP_HRT : CRD_DCP_SRT;
            bring_up(&p);
            drive(&p, 1);
            check_near(get(&p, "speed"), point_speed(&p), 3);
            check(dut_torque(&p) > (kind == CRDI_TESTBENCH_BACK_TO_BACK ? 0.29 : 100));
            check_ok(crd_dcp_master_stop(p.m));
            check_int(phase_of(&p), CRD_DCP_BENCH_SAFE);
            check_int(reason_of(&p), CRD_DCP_BENCH_BY_MASTER);
            check_near(is(&p, "speed"), 0, 5);
            close_master(&p);
        }
        close_place(&p);
    }
}

static void test_cases_outside_of_the_limits_are_refused_before_anything_turns(void** state)
{
    static const struct {
        crdi_testbench_kind kind;
        const char *planned, *initial, *says;
    } cases[] = {
        {CRDI_TESTBENCH_EM, "speed 0..7000 1/min", "", "speed"},
        {CRDI_TESTBENCH_EM, "torque -300..0 N.m", "", "torque"},
        {CRDI_TESTBENCH_EM, "voltage 0..800 V", "", "voltage"},
        {CRDI_TESTBENCH_EM, "speed 0..2000 1/min; torque 0..100 N.m", "", "avoid"},
        {CRDI_TESTBENCH_EM, "", "oil 120 degC", "oil"},
        {CRDI_TESTBENCH_ICE, "pedal 0..80 %", "", "pedal"},
        {CRDI_TESTBENCH_BACK_TO_BACK, "torque 0..2 N.m", "", "torque"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const crdi_testbench_options o = options(cases[i].kind);
        place p;
        open_place(&p, &o);
        p.plan.planned = cases[i].planned;
        p.plan.initial = cases[i].initial;
        check(open_master(&p) < 0);
        check_contains(crd_error_text(p.ctx), cases[i].says);
        check_near(is(&p, "speed"), 0, 0.01);
        if (cases[i].kind != CRDI_TESTBENCH_ICE) { check_near(voltage(&p), 0, 0); }
        close_place(&p);
    }
}

static void preparation_waits_for_the_checklist(void** state)
{
    crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    o.start_up = 2;
    place p;
    open_place(&p, &o);
    check_text(crdi_testbench_item(p.b, 3), "remote control selected");
    crdi_testbench_switch(p.b, 3, false);
    p.switch_on = 6;
    check_ok(open_master(&p));
    check(now_of(&p) >= 6 && now_of(&p) < 6.5);
    check_contains(crdi_dcp_bench_peer_view(p.p).missing, "all items are met");
    close_place(&p);
}

static void conditioning_takes_the_time_of_table_3_or_less_by_its_speed_up(void** state)
{
    static const double speed_ups[] = {20, 100};
    for (int i = 0; i < 2; i++) {
        crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
        o.speed_up = speed_ups[i];
        place p;
        open_place(&p, &o);
        p.plan.initial = "oil 80 degC; tolerance 1 K";
        check_ok(open_master(&p));
        check_near(now_of(&p), 9 * 60 / speed_ups[i], 1.2 + 0.05 * 9 * 60 / speed_ups[i]);
        check_near(is(&p, "oil_in"), 80, 1.2);
        check_near(is(&p, "speed"), 100, 2); // it turns meanwhile
        check_near(voltage(&p), 60, 1);
        begin_run(&p);
        set_point(&p, false);
        set(&p, "oil_ref", 80);
        drive(&p, 1);
        check_near(get(&p, "oil_in"), 80, 1.2);
        check_int(phase_of(&p), CRD_DCP_BENCH_RUN);
        close_place(&p);
    }
}

static void machine_itself_can_be_the_medium_that_is_conditioned(void** state)
{
    crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    o.speed_up = 200;
    place p;
    open_place(&p, &o);
    p.plan.initial = "winding 30 degC; tolerance 1 K"; // Rautenberg 2023, section 4.2
    check_ok(open_master(&p));
    check_near(is(&p, "temperature_max"), 30, 1.5);
    close_place(&p);
}

static void engine_is_conditioned_while_it_is_motored(void** state)
{
    crdi_testbench_options o = options(CRDI_TESTBENCH_ICE);
    o.speed_up = 1000;
    place p;
    open_place(&p, &o);
    p.plan.initial = "coolant 85 degC; oil 80 degC; tolerance 2 K";
    check_ok(open_master(&p));
    check(now_of(&p) < 20);
    check_near(is(&p, "coolant_in"), 85, 4);
    check_near(is(&p, "oil"), 80, 4);
    check_near(is(&p, "speed"), 800, 5);
    check_near(is(&p, "fuel"), 0, 0);
    close_place(&p);
}

// ---- faults ------------------------------------------------------------------------------------

typedef struct fault_case {
    crdi_testbench_kind kind;
    const char* fault;
    crd_dcp_bench_reason reason;
    const char *says, *why; // the bench's log, and on the spot
    double most;            // s from the fault to the end of the drive
} fault_case;

static const fault_case fault_cases[] = {
    {CRDI_TESTBENCH_EM, "overtemperature@2s", CRD_DCP_BENCH_TRIP, "fault: winding measured 175",
     "temperature_max = 175", 30},
    {CRDI_TESTBENCH_EM, "sensor-loss:speed@2s", CRD_DCP_BENCH_TRIP, "fault: speed measured nan",
     "speed = nan", 0.1},
    {CRDI_TESTBENCH_EM, "sensor-loss:torque@2s", CRD_DCP_BENCH_TRIP, "fault: torque measured nan",
     "torque = nan", 0.1},
    {CRDI_TESTBENCH_EM, "sensor-loss:temperature_max@2s", CRD_DCP_BENCH_TRIP,
     "fault: winding measured nan", "temperature_max = nan", 0.1},
    {CRDI_TESTBENCH_EM, "stuck-torque@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost torque control",
     "lost torque control", 1.5},
    {CRDI_TESTBENCH_EM, "coolant-loss@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost oil flow",
     "lost oil flow", 1.5},
    {CRDI_TESTBENCH_EM, "speed-runaway@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost speed control",
     "lost speed control", 0.5},
    {CRDI_TESTBENCH_EM, "emergency-stop@2s", CRD_DCP_BENCH_ITEM_LOST,
     "fault: lost emergency stop released", "lost emergency stop released", 0.1},
    {CRDI_TESTBENCH_ICE, "overtemperature@2s", CRD_DCP_BENCH_TRIP, "fault: coolant measured 115",
     "coolant_in = 115", 60},
    {CRDI_TESTBENCH_ICE, "sensor-loss:oil@2s", CRD_DCP_BENCH_TRIP, "fault: oil measured nan",
     "oil = nan", 0.1},
    {CRDI_TESTBENCH_ICE, "stuck-torque@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost torque control",
     "lost torque control", 1.5},
    {CRDI_TESTBENCH_ICE, "coolant-loss@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost coolant flow",
     "lost coolant flow", 1.5},
    {CRDI_TESTBENCH_ICE, "speed-runaway@2s", CRD_DCP_BENCH_ITEM_LOST, "fault: lost speed control",
     "lost speed control", 1},
    {CRDI_TESTBENCH_BACK_TO_BACK, "overtemperature@2s", CRD_DCP_BENCH_TRIP,
     "fault: winding measured 125", "temperature = 125", 30},
    {CRDI_TESTBENCH_BACK_TO_BACK, "sensor-loss:speed@2s", CRD_DCP_BENCH_TRIP,
     "fault: speed measured nan", "speed = nan", 0.1},
    {CRDI_TESTBENCH_BACK_TO_BACK, "stuck-torque@2s", CRD_DCP_BENCH_ITEM_LOST,
     "fault: lost torque control", "lost torque control", 1.5},
    {CRDI_TESTBENCH_BACK_TO_BACK, "speed-runaway@2s", CRD_DCP_BENCH_ITEM_LOST,
     "fault: lost speed control", "lost speed control", 0.5},
};

// Drives until the bench withdraws; how long it took behind the fault.
static double drive_into_fault(place* p, double fault_at, double* held)
{
    const double start = now_of(p);
    while (phase_of(p) == CRD_DCP_BENCH_RUN && now_of(p) < start + 120) {
        if (now_of(p) > start + fault_at) { set_point(p, false); } // stuck torque is seen now
        *held = voltage(p);
        if (interval(p) < 0) { break; }
    }
    return now_of(p) - start - fault_at;
}

static void every_fault_stops_the_bench_in_order_and_says_why(void** state)
{
    for (size_t i = 0; i < sizeof fault_cases / sizeof *fault_cases; i++) {
        const fault_case* c = &fault_cases[i];
        crdi_testbench_options o = options(c->kind);
        o.speed_up = 100;
        o.fault_count = 1;
        place p;
        open_place(&p, &o);
        check_ok(crdi_testbench_fault_parse(p.ctx, c->kind, c->fault, &o.faults[0]));
        check_near(o.faults[0].at, 2, 0);
        close_place(&p);
        open_place(&p, &o);
        bring_up(&p); // 1.5 s
        double held = NAN;
        const double took = drive_into_fault(&p, 0.5, &held);
        if (!(took > -0.1 && took < c->most + 0.1)) { fail_msg("%s: %g s", c->fault, took); }
        check_int(reason_of(&p), c->reason);
        check_contains(crdi_testbench_why(p.b), c->why);
        check_order(&p, watch_stop(&p, held));
        crd_dcp_master_wait(p.m, crd_dcp_master_now(p.m) + 0.1); // its log is here by now
        check_contains(crdi_dcp_bench_peer_view(p.p).why, c->says);
        close_master(&p);
        // mended, acknowledged, registered anew
        pass(&p, 2);
        check_near(is(&p, "speed"), 0, 0.01);
        bring_up(&p);
        drive(&p, 1);
        check_int(phase_of(&p), CRD_DCP_BENCH_RUN);
        close_place(&p);
    }
}

static void sensor_that_protects_nothing_may_be_lost(void** state)
{
    crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    o.fault_count = 1;
    o.faults[0] =
        (crdi_testbench_fault){.kind = CRDI_TESTBENCH_SENSOR_LOSS,
                               .signal = crdi_testbench_find(CRDI_TESTBENCH_EM, "power_dc"),
                               .at = 0.5};
    place p;
    open_place(&p, &o);
    bring_up(&p);
    drive(&p, 0.5);
    check(isnan(get(&p, "power_dc")) && is(&p, "power_dc") > 20e3);
    check_int(phase_of(&p), CRD_DCP_BENCH_RUN);
    close_place(&p);
}

static void master_that_falls_silent_is_noticed_by_the_watchdog(void** state)
{
    for (int kind = 0; kind < CRDI_TESTBENCH_BATTERY; kind++) { // those with a shaft
        const crdi_testbench_options o = options((crdi_testbench_kind)kind);
        place p;
        open_place(&p, &o);
        bring_up(&p);
        drive(&p, 0.5);
        const double held = voltage(&p), from = now_of(&p);
        while (phase_of(&p) == CRD_DCP_BENCH_RUN && now_of(&p) < from + 2) {
            pass(&p, 1e-3);
        }
        check_near(now_of(&p) - from, 0.5, 0.02);
        check_int(reason_of(&p), CRD_DCP_BENCH_WATCHDOG);
        check_order(&p, watch_stop(&p, held));
        close_place(&p);
    }
}

// ---- in steps, and create ----------------------------------------------------------------------

static void master_that_sends_what_is_no_number_is_as_good_as_silent(void** state)
{
    for (int kind = 0; kind < CRDI_TESTBENCH_BATTERY; kind++) { // those with a shaft
        const crdi_testbench_options o = options((crdi_testbench_kind)kind);
        place p;
        open_place(&p, &o);
        bring_up(&p);
        drive(&p, 0.5);
        const double held = voltage(&p), from = now_of(&p), speed = is(&p, "speed_ref");
        set(&p, "speed_ref", NAN);
        while (phase_of(&p) == CRD_DCP_BENCH_RUN && now_of(&p) < from + 2) {
            check_near(is(&p, "speed_ref"), speed, 0); // the last good one stays
            (void)interval(&p);
        }
        check_near(now_of(&p) - from, 0.5, 0.02);
        check_int(reason_of(&p), CRD_DCP_BENCH_WATCHDOG);
        check(crd_dcp_bench_get_state(crdi_testbench_bench(p.b)).refused > 0);
        check_order(&p, watch_stop(&p, held));
        close_place(&p);
    }
}

static void second_master_is_not_heard_by_a_bench_that_runs(void** state)
{
    enum { OTHER = 0x0A000003 };
    const crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    place p;
    open_place(&p, &o);
    bring_up(&p);
    drive(&p, 0.5);
    crd_dcp_net* other = NULL;
    check_ok(testnet_join(p.t, OTHER, &other));
    crd_dcp_master_options mo = crd_dcp_master_defaults();
    const crd_dcp_slave_spec spec = {.name = "em",
                                     .description = crdi_testbench_description(p.b),
                                     .control = {BENCH, 8080, CRD_DCP_UDP},
                                     .mode = CRD_DCP_SRT,
                                     .numerator = 1,
                                     .denominator = 100};
    crd_dcp_master* second = NULL;
    int index = -1;
    check_ok(crd_dcp_master_create(p.ctx, other, &mo, &second));
    check_ok(crd_dcp_master_add(second, &spec, &index));
    check(crd_dcp_master_configure(second) < 0); // in no time
    check_contains(crd_error_text(p.ctx), "em: the DCP slave is in RUNNING, in a run of another");
    crd_dcp_master_stop(second); // which stops nobody
    crd_dcp_master_destroy(second);
    p.allocations = p.allocator.allocations;
    drive(&p, 0.5);
    check_int(phase_of(&p), CRD_DCP_BENCH_RUN);
    check(dut_torque(&p) > 100);
    crd_dcp_net_destroy(other);
    close_place(&p);
}

typedef struct seen {
    const place* p;
    double last;
    int steps;
    crd_dcp_bench_phase phases[16];
    int count;
} seen;

static void look(void* user, double time)
{
    seen* s = user;
    const crd_dcp_bench_phase phase = phase_of(s->p);
    check(time > s->last);
    s->last = time;
    s->steps++;
    if (s->count > 0 && s->phases[s->count - 1] == phase) { return; }
    check(s->count < 16);
    s->phases[s->count++] = phase;
}

static void observer_sees_each_step_and_each_phase(void** state)
{
    const crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    place p;
    open_place(&p, &o);
    seen s = {.p = &p, .last = -1};
    crdi_testbench_observe(p.b, look, &s);
    bring_up(&p);
    drive(&p, 0.5);
    const int before = s.steps;
    const double from = s.last;
    drive(&p, 0.5);
    check_int(s.steps - before, 500);
    check_near(s.last - from, 0.5, 1e-9);
    check_ok(crd_dcp_master_stop(p.m));
    const crd_dcp_bench_phase stop[] = {CRD_DCP_BENCH_RUN, CRD_DCP_BENCH_SPEED_DOWN,
                                        CRD_DCP_BENCH_VOLTAGE_DOWN, CRD_DCP_BENCH_STAND_DOWN};
    pass(&p, 0.01);
    check(s.count >= 5 && s.phases[s.count - 1] == CRD_DCP_BENCH_SAFE);
    for (int i = 0; i < 4; i++) {
        check_int(s.phases[s.count - 5 + i], stop[i]);
    }
    crdi_testbench_observe(p.b, NULL, NULL);
    close_place(&p);
}

static void in_steps_a_run_repeats_bit_by_bit(void** state)
{
    double results[2][3];
    for (int turn = 0; turn < 2; turn++) {
        const crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
        place p;
        open_place(&p, &o);
        p.mode = CRD_DCP_NRT;
        check_ok(open_master(&p));
        begin_run(&p);
        set_point(&p, true);
        for (int i = 0; i < 100; i++) {
            crdi_dcp_bench_peer_send(p.p, crd_dcp_master_now(p.m));
            check_ok(crd_dcp_master_begin_step(p.m, 0, 1));
            check_ok(crd_dcp_master_end_step(p.m, 0));
        }
        results[turn][0] = get(&p, "speed");
        results[turn][1] = get(&p, "torque");
        results[turn][2] = get(&p, "power_dc");
        close_place(&p);
    }
    check(results[0][0] > 1500);
    check(memcmp(results[0], results[1], sizeof results[0]) == 0);
}

static void descriptions_have_no_findings(void** state)
{
    for (int kind = 0; kind < CRDI_TESTBENCH_KIND_COUNT; kind++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const crdi_testbench_options o = options((crdi_testbench_kind)kind);
        crdi_testbench* b = NULL;
        check_ok(crdi_testbench_create(ctx, &o, &b));
        crd_dcp_description d = *crdi_testbench_description(b);
        const crd_dcp_finding* f = NULL;
        int count = 0;
        check_ok(crd_dcp_validate(&d, &f, &count));
        for (int i = 0; i < count; i++) {
            if (f[i].severity != CRD_DCP_NOTE) { fail_msg("%s: %s", f[i].code, f[i].text); }
        }
        crdi_testbench_destroy(b);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
}

static bool send_nowhere(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    (void)user;
    (void)to;
    (void)bytes;
    (void)length;
    return true;
}

static void each_allocation_may_fail(void** state)
{
    const crd_dcp_link link = {.send = send_nowhere};
    for (int64_t n = 0;; n++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + n;
        const crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
        crdi_testbench* b = NULL;
        crd_status st = crdi_testbench_create(ctx, &o, &b);
        if (st == CRD_OK) { st = crdi_testbench_start(b, &link, NULL); }
        a.fail_at = -1;
        crdi_testbench_destroy(b);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
        check(n < 1000);
    }
}

static void faults_and_options_that_make_no_sense_are_refused(void** state)
{
    static const struct {
        crdi_testbench_kind kind;
        const char *text, *says;
    } cases[] = {
        {CRDI_TESTBENCH_EM, "overtemperature", "such as overtemperature@30s"},
        {CRDI_TESTBENCH_EM, "overtemperature@", "overtemperature@30s"},
        {CRDI_TESTBENCH_EM, "overtemperature@-1s", "overtemperature@30s"},
        {CRDI_TESTBENCH_EM, "overtemperature@3 kg", "overtemperature@30s"},
        {CRDI_TESTBENCH_EM, "fire@1s", "expected overtemperature, sensor-loss"},
        {CRDI_TESTBENCH_EM, "sensor-loss@1s", "has no output ''"},
        {CRDI_TESTBENCH_EM, "sensor-loss:torque_ref@1s", "has no output 'torque_ref'"},
        {CRDI_TESTBENCH_EM, "stuck-torque:speed@1s", "stuck-torque is of no output"},
        {CRDI_TESTBENCH_BACK_TO_BACK, "coolant-loss@1s", "has no coolant"},
    };
    check_allocator a;
    crd_context* ctx = check_context(&a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crdi_testbench_fault f;
        check_int(crdi_testbench_fault_parse(ctx, cases[i].kind, cases[i].text, &f), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), cases[i].says);
    }
    crdi_testbench* b = NULL;
    crdi_testbench_options o = options(CRDI_TESTBENCH_EM);
    o.speed_up = 0.5;
    check_int(crdi_testbench_create(ctx, &o, &b), CRD_E_RANGE);
    o = options(CRDI_TESTBENCH_EM);
    o.kind = (crdi_testbench_kind)9;
    check_int(crdi_testbench_create(ctx, &o, &b), CRD_E_RANGE);
    o = options(CRDI_TESTBENCH_EM);
    o.start_up = NAN;
    check_int(crdi_testbench_create(ctx, &o, &b), CRD_E_RANGE);
    o = options(CRDI_TESTBENCH_EM);
    o.watchdog = -1;
    check_int(crdi_testbench_create(ctx, &o, &b), CRD_E_RANGE);
    o = options(CRDI_TESTBENCH_BACK_TO_BACK);
    o.fault_count = 1;
    static const crdi_testbench_fault wrong[] = {{(crdi_testbench_fault_kind)77, 0, 1},
                                                 {CRDI_TESTBENCH_SENSOR_LOSS, 0, 1},
                                                 {CRDI_TESTBENCH_SENSOR_LOSS, 99, 1},
                                                 {CRDI_TESTBENCH_STUCK_TORQUE, 0, -1},
                                                 {CRDI_TESTBENCH_COOLANT_LOSS, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.faults[0] = wrong[i];
        check_int(crdi_testbench_create(ctx, &o, &b), CRD_E_RANGE);
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bench_runs_stops_in_order_and_runs_again),
        cmocka_unit_test(test_cases_outside_of_the_limits_are_refused_before_anything_turns),
        cmocka_unit_test(preparation_waits_for_the_checklist),
        cmocka_unit_test(conditioning_takes_the_time_of_table_3_or_less_by_its_speed_up),
        cmocka_unit_test(machine_itself_can_be_the_medium_that_is_conditioned),
        cmocka_unit_test(engine_is_conditioned_while_it_is_motored),
        cmocka_unit_test(every_fault_stops_the_bench_in_order_and_says_why),
        cmocka_unit_test(sensor_that_protects_nothing_may_be_lost),
        cmocka_unit_test(master_that_falls_silent_is_noticed_by_the_watchdog),
        cmocka_unit_test(master_that_sends_what_is_no_number_is_as_good_as_silent),
        cmocka_unit_test(second_master_is_not_heard_by_a_bench_that_runs),
        cmocka_unit_test(observer_sees_each_step_and_each_phase),
        cmocka_unit_test(in_steps_a_run_repeats_bit_by_bit),
        cmocka_unit_test(descriptions_have_no_findings),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(faults_and_options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
