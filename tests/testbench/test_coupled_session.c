// Both emulated benches in one session with a master, on a virtual network and clock: the session
// of Rautenberg 2023, section 4.1, and its record.
//
// States have the numbers of its Table 7. Master: 0 REGISTER, 1 CONFIGURE, 2 APPLY, 3 INITIALIZE,
// 4 SEND_I, 5 RUN, 6 SEND_D, 7 STOP, 8 STOPPED. Slave: 0 ALIVE, 1 CONFIGURATION, 2 PREPARING,
// 3 PREPARED, 4 CONFIGURING, 5 CONFIGURED, 6 INITIALIZING, 7 INITIALIZED, 8 SENDING_I,
// 9 SYNCHRONIZING, 10 SYNCHRONIZED, 11 RUNNING, ... 15 STOPPING, 16 STOPPED, 17 ERRORHANDLING,
// 18 ERRORRESOLVED.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cardan/results.h"
#include "place.h"
#include "shared/board.h"
#include "unit/standby/standby.h"

enum { EM, ICE, BENCHES };
static const char record_file[] = TEST_BUILD_DIR "/coupled_session.csv";

// What a bench did in its stop, on its own clock; INFINITY: not yet.
typedef struct trace {
    struct place* p;
    int bench;
    double held; // voltage in the run
    double begin, torque_gone, speed_safe, voltage_falls;
} trace;

static trace traces[BENCHES];

static double is(const place* p, int i, const char* name)
{
    const int k = crdi_testbench_find(i == EM ? CRDI_TESTBENCH_EM : CRDI_TESTBENCH_ICE, name);
    check(k >= 0);
    return crdi_testbench_true(p->benches[i], k);
}

static void observe(void* user, double time)
{
    trace* t = user;
    const place* p = t->p;
    const crd_dcp_bench_phase phase =
        crd_dcp_bench_get_state(crdi_testbench_bench(p->benches[t->bench])).phase;
    const bool em = t->bench == EM;
    if (phase < CRD_DCP_BENCH_SPEED_DOWN || phase == CRD_DCP_BENCH_ARMED) {
        t->begin = t->torque_gone = t->speed_safe = t->voltage_falls = INFINITY;
        t->held = em ? is(p, EM, "voltage_dc") : 0;
        return;
    }
    t->begin = fmin(t->begin, time);
    const bool torque = is(p, t->bench, "torque_calc") > 10;
    t->torque_gone = torque ? INFINITY : fmin(t->torque_gone, time);
    if (is(p, t->bench, "speed") <= 102) { t->speed_safe = fmin(t->speed_safe, time); }
    if (em && is(p, EM, "voltage_dc") < 0.97 * t->held) {
        t->voltage_falls = fmin(t->voltage_falls, time);
    }
}

// First torque, then speed, then voltage.
static void check_order(void)
{
    for (int i = 0; i < BENCHES; i++) {
        const trace* t = &traces[i];
        check(t->torque_gone < t->begin + 0.5 && t->torque_gone < t->speed_safe);
        check(isfinite(t->speed_safe));
    }
    const trace* em = &traces[EM];
    check(em->held > 300 && isfinite(em->voltage_falls));
    check(em->speed_safe <= em->voltage_falls + 2e-3);
}

// ---- open and close ----------------------------------------------------------------------------

static void write_file(const char* path, const char* text, size_t length)
{
    FILE* f = fopen(path, "wb");
    check(f && fwrite(text, 1, length, f) == length && fclose(f) == 0);
}

static void open_bench(place* p, int i, const crdi_testbench_options* o)
{
    start_bench(p, i, o, i == EM ? "coupled_em.dcpx" : "coupled_ice.dcpx");
    traces[i] = (trace){.p = p, .bench = i};
    crdi_testbench_observe(p->benches[i], observe, &traces[i]);
}

static crdi_testbench_options options_of(int i)
{
    crdi_testbench_options o =
        crdi_testbench_defaults(i == EM ? CRDI_TESTBENCH_EM : CRDI_TESTBENCH_ICE);
    o.address = (crd_dcp_address){0x7F000001, (uint16_t)(9081 + i), CRD_DCP_UDP};
    o.speed_up = 1000;
    return o;
}

static void open_place(place* p, const crdi_testbench_options* em)
{
    make_place(p);
    p->count = BENCHES;
    const crdi_testbench_options ice = options_of(ICE);
    open_bench(p, EM, em);
    open_bench(p, ICE, &ice);
    unlink(record_file);
}

static const char calm[] = "speed 0..2500 1/min; torque 0..120 N.m; "
                           "avoid speed 0..50 1/min with torque";

// The case of the electric machine, the temperatures of both.
static crd_status make_master(place* p, const char* planned)
{
    char text[4096];
    const int n =
        snprintf(text, sizeof text,
                 "cardan: 1\n"
                 "units:\n"
                 "  case:\n"
                 "    signals:\n"
                 "      speed: { shape: constant, value: 2000, unit: rpm }\n"
                 "      torque: { shape: step, start: 0.5 s, amplitude: 100, unit: N.m }\n"
                 "      pedal: { shape: step, start: 0.5 s, amplitude: 20, unit: '%%' }\n"
                 "      voltage: { shape: constant, value: 350, unit: V }\n"
                 "      oil: { shape: constant, value: 60, unit: degC }\n"
                 "      coolant: { shape: constant, value: 80, unit: degC }\n"
                 "  em: { dcp: 'udp://127.0.0.1:9081', description: coupled_em.dcpx,\n"
                 "        session: { mode: srt, patience: 1 h },\n"
                 "        bench: { case: '%s', initial: 'oil 60 degC; tolerance 2 K' } }\n"
                 "  ice: { dcp: 'udp://127.0.0.1:9082', description: coupled_ice.dcpx,\n"
                 "         session: { mode: srt },\n"
                 "         bench: { initial: 'coolant 80 degC; oil 60 degC; tolerance 2 K' } }\n"
                 "connections:\n"
                 "  - case.speed -> em.speed_ref\n"
                 "  - case.torque -> em.torque_ref\n"
                 "  - case.voltage -> em.voltage_ref\n"
                 "  - case.oil -> em.oil_ref\n"
                 "  - case.speed -> ice.speed_ref\n"
                 "  - case.pedal -> ice.pedal_ref\n"
                 "  - case.coolant -> ice.coolant_ref\n"
                 "  - case.oil -> ice.oil_ref\n"
                 "run: { step: 10 ms, stop: 60 s, predict: hold }\n"
                 "results: { session: coupled_session.csv }\n",
                 planned);
    check(n > 0 && (size_t)n < sizeof text);
    if (crd_system_parse(p->ctx, text, (size_t)n, TEST_BUILD_DIR "/coupled.yaml", &p->sys) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
    crd_master_options o = crd_master_defaults();
    o.stop = &p->stop;
    return crd_master_create(p->ctx, p->sys, &o, &p->m);
}

static void end_master(place* p)
{
    crd_master_destroy(p->m);
    crd_system_destroy(p->sys);
    p->m = NULL;
    p->sys = NULL;
    p->stop = false;
}

static crdi_board_state look(const place* p, int i)
{
    crdi_board_state s;
    crd_unit* u = crd_master_get_unit(p->m, 1 + i);
    crdi_board_read(crdi_unit_board(u), &s);
    return s;
}

// ---- what the record says ----------------------------------------------------------------------

static const crd_table_column* column(const crd_table* t, const char* name)
{
    const int k = crd_table_find(t, name);
    if (k < 0) { fail_msg("no column %s", name); }
    return &t->columns[k];
}

// "0 1 2 5": the values, each once as long as it stays.
static const char* course(const crd_table* t, const char* name)
{
    static char text[512];
    const crd_table_column* c = column(t, name);
    size_t n = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        if (i > 0 && c->values[i] == c->values[i - 1]) { continue; }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%g", n ? " " : "", c->values[i]);
    }
    return text;
}

// When a column first has a value at or behind `from`; NAN.
static double first(const crd_table* t, const char* name, double value, double from)
{
    const crd_table_column* c = column(t, name);
    for (int64_t i = 0; i < c->rows; i++) {
        if (c->values[i] == value && c->time[i] >= from) { return c->time[i]; }
    }
    return NAN;
}

static const char* note(const crd_table* t)
{
    const crd_table_column* c = column(t, "note");
    check(c->texts != NULL);
    return c->texts[c->rows - 1];
}

static crd_table* read_record(place* p)
{
    crd_table* t = NULL;
    if (crd_table_read(p->ctx, record_file, &t) < 0) { fail_msg("%s", crd_error_text(p->ctx)); }
    return t;
}

// ---- tests -------------------------------------------------------------------------------------

static void a_case_outside_of_the_limits_is_refused_before_anything_turns(void** state)
{
    place p;
    const crdi_testbench_options em = options_of(EM);
    open_place(&p, &em);
    check_int(make_master(&p, "speed 0..7000 1/min"), CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx), "speed");
    check_contains(crd_error_text(p.ctx), "6500");
    for (int i = 0; i < BENCHES; i++) { // nobody was asked for anything
        check_int(crd_dcp_slave_get_counts(crdi_testbench_slave(p.benches[i])).requests, 0);
        check_near(is(&p, i, "speed"), 0, 0);
    }
    close_place(&p);
}

static void run_and_abort(place* p, double* begin)
{
    check_ok(make_master(p, calm));
    if (crd_master_initialize(p->m) < 0) { fail_msg("%s", crd_error_text(p->ctx)); }
    check_ok(crd_master_advance(p->m, 150));
    check_near(is(p, EM, "speed"), 2000, 5);
    check_near(is(p, EM, "torque_calc"), 100, 3);
    check_near(is(p, ICE, "speed"), 2000, 5);
    p->stop = true; // Ctrl-C
    check_ok(crd_master_advance(p->m, 10));
    check_int(crd_master_ended(p->m), CRD_END_INTERRUPTED);
    check_ok(crd_master_finish(p->m));
    for (int i = 0; i < BENCHES; i++) {
        const crdi_board_state s = look(p, i);
        check_int(s.state, CRD_DCP_ALIVE);
        check_int(s.reason, CRD_DCP_BENCH_BY_MASTER);
        check_text(s.stopping, "stop: safe");
        check_near(is(p, i, "speed"), 0, 1);
    }
    check_near(is(p, EM, "voltage_dc"), 0, 1);
    check_order();
    crd_table* t = read_record(p);
    *begin = column(t, "utc")->values[0];
    // Figure 7: from 0 to the run, abort by 7, and 0 again for the next one.
    check_text(course(t, "master.state"), "0 1 2 3 5 7 8 0");
    check_text(course(t, "em.state"), "-1 0 1 2 3 4 5 6 7 8 5 9 10 11 15 16 0");
    check_text(course(t, "ice.state"), "-1 0 1 2 3 4 5 6 7 8 5 9 10 11 15 16 0");
    // torque 0 and speed down, voltage down, standstill, safe
    check_contains(course(t, "em.phase"), "5 6 7 9 10 0");
    check_contains(course(t, "ice.phase"), "5 6 7 9 10 0");
    check_text(note(t), "interrupted");
    crd_table_destroy(t);
}

static void a_session_goes_as_figure_7_shows_and_once_more_from_alive(void** state)
{
    place p;
    crdi_testbench_options em = options_of(EM);
    em.start_up = 2; // until its supply is on: the checklist waits
    open_place(&p, &em);
    double begin[2];
    run_and_abort(&p, &begin[0]);
    crd_table* t = read_record(&p);
    const double prepared = first(t, "em.state", CRD_DCP_PREPARED, 0);
    check_near(prepared - first(t, "em.state", CRD_DCP_PREPARING, 0), 2, 0.3);
    // Both are conditioned at the same time; one that is done waits for the other, and the master
    // leaves APPLY with the slower one.
    const double em_done = first(t, "em.state", CRD_DCP_CONFIGURED, 0);
    const double ice_done = first(t, "ice.state", CRD_DCP_CONFIGURED, 0);
    const double left = first(t, "master.state", CRDI_DCP_MASTER_INITIALIZE, 0);
    check(em_done < ice_done - 0.05); // the machine's oil is warm before the engine
    check_near(left, ice_done, 1e-9);
    check_near(first(t, "em.heat", 35, 0), first(t, "em.state", CRD_DCP_CONFIGURING, 0), 0.1);
    check_near(first(t, "ice.heat", 55, 0), first(t, "ice.state", CRD_DCP_CONFIGURING, 0), 0.1);
    check(first(t, "ice.heat", 0, 0) <= ice_done);
    // The abort reaches both at once, and each comes to rest in its order.
    const double stop = first(t, "master.state", CRDI_DCP_MASTER_STOP, 0);
    check_near(first(t, "em.state", CRD_DCP_STOPPING, 0), stop, 5e-3);
    check_near(first(t, "ice.state", CRD_DCP_STOPPING, 0), stop, 5e-3);
    check(first(t, "em.state", CRD_DCP_STOPPED, 0) > stop + 1);
    check_near(
        first(t, "master.state", CRDI_DCP_MASTER_STOPPED, 0),
        fmax(first(t, "em.state", CRD_DCP_STOPPED, 0), first(t, "ice.state", CRD_DCP_STOPPED, 0)),
        1e-9);
    crd_table_destroy(t);
    end_master(&p);
    run_and_abort(&p, &begin[1]); // as it was, and warm from the beginning
    check(begin[1] > begin[0]);
    t = read_record(&p);
    check(first(t, "master.state", CRDI_DCP_MASTER_RUN, 0) < 1.5);
    crd_table_destroy(t);
    close_place(&p);
}

static void when_one_bench_fails_the_other_stops_and_the_record_says_why(void** state)
{
    place p;
    crdi_testbench_options em = options_of(EM);
    em.fault_count = 1;
    em.faults[0] = (crdi_testbench_fault){.kind = CRDI_TESTBENCH_EMERGENCY_STOP, .at = 1};
    open_place(&p, &em);
    check_ok(make_master(&p, calm));
    check_int(crd_master_run(p.m), CRD_E_UNIT);
    check_contains(crd_error_text(p.ctx), "unit 'em'");
    for (int i = 0; i < BENCHES; i++) {
        check_int(crd_dcp_bench_get_state(crdi_testbench_bench(p.benches[i])).phase,
                  CRD_DCP_BENCH_SAFE);
        check_near(is(&p, i, "speed"), 0, 1);
    }
    check_order();
    check_int(look(&p, EM).reason, CRD_DCP_BENCH_ITEM_LOST);
    check_int(look(&p, ICE).reason, CRD_DCP_BENCH_BY_MASTER);
    crd_table* t = read_record(&p);
    check_contains(course(t, "em.state"), "11 17 18 0");
    check_contains(course(t, "ice.state"), "11 15 16 0");
    check_contains(course(t, "master.state"), "5 7");
    check_contains(note(t), "lost emergency stop released");
    // The engine is told at once, while the machine still comes down.
    check_near(first(t, "ice.state", CRD_DCP_STOPPING, 0),
               first(t, "em.state", CRD_DCP_ERRORHANDLING, 0), 0.1);
    crd_table_destroy(t);
    close_place(&p);
}

static void a_session_that_never_comes_about_is_recorded_too(void** state)
{
    place p;
    const crdi_testbench_options em = options_of(EM);
    open_place(&p, &em);
    crdi_testbench_switch(p.benches[EM], 3, false); // remote control is not selected
    check_ok(make_master(&p, calm));
    p.stop = true; // nobody waits for ever
    check_int(crd_master_run(p.m), CRD_E_UNIT);
    check_contains(crd_error_text(p.ctx), "interrupted");
    crd_table* t = read_record(&p);
    check_text(course(t, "master.state"), "0");
    check_contains(note(t), "interrupted");
    crd_table_destroy(t);
    close_place(&p);
}

static void record_survives_strange_names_and_each_allocation_that_fails(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_board* b = NULL;
    check_ok(crdi_board_create(ctx, &b));
    for (int i = 0; i < 300; i++) {
        crdi_board_note_at(b, CRDI_BOARD_STATE, i % 19, 0.5 * i);
    }
    crdi_board_show(b);
    const crd_session_bench benches[] = {{"a \"b\", c", b}, {"none", NULL}};
    for (int64_t n = 0;; n++) {
        unlink(record_file);
        const int64_t live = a.live;
        a.fail_at = a.allocations + n;
        const crd_status st = crd_session_write(ctx, record_file, benches, 2, "\"so\"\nit is");
        a.fail_at = -1;
        check_int(a.live, live);
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
        check(access(record_file, F_OK) != 0); // all of it or nothing
        check(n < 100);
    }
    crd_table* t = NULL;
    check_ok(crd_table_read(ctx, record_file, &t));
    check_int(column(t, "a \"b\", c.state")->rows, 1 + CRDI_BOARD_MOMENTS + 1);
    check_text(note(t), "\"so\" it is");
    const char* gap = column(t, "note")->texts[1 + CRDI_BOARD_MOMENTS / 2];
    check_contains(gap, "172 changes before this one are left out");
    check_near(column(t, "none.state")->values[5], -1, 0);
    crd_table_destroy(t);
    check_int(crd_session_write(ctx, TEST_BUILD_DIR "/no/such/folder.csv", benches, 2, NULL),
              CRD_E_IO);
    check_contains(crd_error_text(ctx), "folder.csv: cannot write the record of the session");
    crdi_board_destroy(b);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// ---- the guard's ladder ------------------------------------------------------------------------

// The speed of the machine's bench is asked for as 2000 - g (speed - 2000) 1/min, 50 ms late each
// way: what extrapolates over that time makes it swing.
static void make_loop(place* p, const char* gain)
{
    static const char control[] =
        "control\n.param g=1\n.input n unit=rpm start=2000\n.input on start=0\n"
        "B1 a 0 v={2000-g*on*(n-2000)}\nR1 a 0 1\n.tran 1m 1\n"
        ".output ref={v(a)} unit=rpm\n.end\n";
    static const char model[] =
        "machine\n.input ref unit=rpm start=2000\nB1 a 0 v={ref}\nR1 a b 1\n"
        "C1 b 0 0.1 ic=2000\n.tran 1m 1 uic\n.output n={v(b)} unit=rpm\n.end\n";
    char text[4096];
    write_file(TEST_BUILD_DIR "/ladder_control.cir", control, strlen(control));
    write_file(TEST_BUILD_DIR "/ladder_model.cir", model, strlen(model));
    const int n = snprintf(
        text, sizeof text,
        "cardan: 1\n"
        "units:\n"
        "  case:\n"
        "    signals:\n"
        "      torque: { shape: constant, value: 0, unit: N.m }\n"
        "      on: { shape: step, start: 3 s, amplitude: 1 }\n"
        "      voltage: { shape: constant, value: 350, unit: V }\n"
        "      oil: { shape: constant, value: 60, unit: degC }\n"
        "  em: { dcp: 'udp://127.0.0.1:9081', description: coupled_em.dcpx,\n"
        "        session: { mode: srt, patience: 1 h },\n"
        "        bench: { case: '%s', initial: 'oil 60 degC; tolerance 2 K' },\n"
        "        standby: { circuit: ladder_model.cir, names: { speed_ref: ref, speed: n } } }\n"
        "  control: { circuit: ladder_control.cir, parameters: { g: %s } }\n"
        "connections:\n"
        "  - case.torque -> em.torque_ref\n"
        "  - case.voltage -> em.voltage_ref\n"
        "  - case.oil -> em.oil_ref\n"
        "  - case.on -> control.on\n"
        "  - { from: em.speed, to: control.n, coupling: { algorithm: foh, channel: { delay: 50 ms "
        "} "
        "} }\n"
        "  - { from: control.ref, to: em.speed_ref, coupling: { algorithm: foh, channel: { delay: "
        "50 ms } } }\n"
        "run: { step: 10 ms, stop: 30 s, predict: hold, guard: ladder }\n"
        "results: { session: coupled_session.csv }\n",
        calm, gain);
    check(n > 0 && (size_t)n < sizeof text);
    if (crd_system_parse(p->ctx, text, (size_t)n, TEST_BUILD_DIR "/ladder.yaml", &p->sys) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
    if (crd_master_create(p->ctx, p->sys, NULL, &p->m) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
}

static void the_guard_climbs_its_ladder_and_benches_stop_in_order(void** state)
{
    (void)state;
    place p;
    const crdi_testbench_options em = options_of(EM);
    open_place(&p, &em);
    crdi_standby_has_threads = false;
    make_loop(&p, "4");
    if (crd_master_run(p.m) < 0) { fail_msg("%s", crd_error_text(p.ctx)); }
    const crd_master_report* r = crd_master_get_report(p.m);
    print_message("  ended by %d at %g s: %s\n", (int)r->end, r->time, r->guard.text);
    check_int(r->end, CRD_END_GUARD);
    check_int(r->coupling_count, 2);
    for (int i = 0; i < 2; i++) { // the first rung, the second, the last
        check_contains(r->couplings[i].taps[0].label, "zoh, from t = ");
    }
    check(r->units[1].standby && r->units[1].standby->takeovers == 1);
    check(r->guard.stopped && r->time < 30);
    check_int(crd_dcp_slave_state(crdi_testbench_slave(p.benches[EM])), CRD_DCP_ALIVE);
    check_near(is(&p, EM, "speed"), 0, 1);
    check_near(is(&p, EM, "voltage_dc"), 0, 1);
    const trace* t = &traces[EM];
    check(t->held > 300 && isfinite(t->speed_safe) && t->speed_safe <= t->voltage_falls + 2e-3);
    close_place(&p);
}

// What does not extrapolate holds: nothing else is done, and the bench runs to the end.
static void the_first_rung_may_do_for_a_bench(void** state)
{
    (void)state;
    place p;
    const crdi_testbench_options em = options_of(EM);
    open_place(&p, &em);
    crdi_standby_has_threads = false;
    make_loop(&p, "0.5");
    if (crd_master_run(p.m) < 0) { fail_msg("%s", crd_error_text(p.ctx)); }
    const crd_master_report* r = crd_master_get_report(p.m);
    print_message("  ended by %d at %g s: %s\n", (int)r->end, r->time, r->guard.text);
    check_int(r->end, CRD_END_STOP_TIME);
    check_int(r->guard.state, CRD_GUARD_WARNED);
    check_contains(r->couplings[0].taps[0].label, "zoh, from t = ");
    check_int(r->units[1].standby->takeovers, 0);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_outside_of_the_limits_is_refused_before_anything_turns),
        cmocka_unit_test(a_session_goes_as_figure_7_shows_and_once_more_from_alive),
        cmocka_unit_test(when_one_bench_fails_the_other_stops_and_the_record_says_why),
        cmocka_unit_test(a_session_that_never_comes_about_is_recorded_too),
        cmocka_unit_test(record_survives_strange_names_and_each_allocation_that_fails),
        cmocka_unit_test(the_guard_climbs_its_ladder_and_benches_stop_in_order),
        cmocka_unit_test(the_first_rung_may_do_for_a_bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
