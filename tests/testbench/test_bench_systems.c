// Emulated benches in systems, on a virtual network and clock: modes of drives, and sessions of
// several benches. What is expected is worked out by hand from the data of the benches.
#include <math.h>
#include <stdio.h>

#include "place.h"
#include "shared/board.h"

static void observe(void* user, double time)
{
    place* p = user;
    (void)time;
    if (p->look) { p->look(p); }
}

static double is(const place* p, int i, const char* name)
{
    const int k = crdi_testbench_find(p->kinds[i], name);
    if (k < 0) { fail_msg("no signal %s", name); }
    return crdi_testbench_true(p->benches[i], k);
}

static crd_dcp_bench_state state_of(const place* p, int i)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(p->benches[i]));
}

// ---- open and close ----------------------------------------------------------------------------

static void open_bench(place* p, crdi_testbench_kind kind)
{
    const int i = p->count++;
    char file[64];
    crdi_testbench_options o = crdi_testbench_defaults(kind);
    o.address = (crd_dcp_address){0x7F000001, (uint16_t)(9081 + i), CRD_DCP_UDP};
    o.speed_up = 1000;
    o.soc = p->soc;
    snprintf(file, sizeof file, "%s.dcpx", crdi_testbench_kind_name((int)kind));
    start_bench(p, i, &o, file);
}

static void open_place_with(place* p, const crdi_testbench_kind* kinds, int count, double soc)
{
    make_place(p);
    p->soc = soc;
    for (int i = 0; i < count; i++) {
        open_bench(p, kinds[i]);
    }
    crdi_testbench_observe(p->benches[0], observe, p);
}

static void open_place(place* p, const crdi_testbench_kind* kinds, int count)
{
    open_place_with(p, kinds, count, 0.5);
}

static void begin(place* p, const char* text)
{
    if (crd_system_parse(p->ctx, text, strlen(text), TEST_BUILD_DIR "/systems.yaml", &p->sys) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
    if (crd_master_create(p->ctx, p->sys, NULL, &p->m) < 0 || crd_master_initialize(p->m) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
}

static void go(place* p, double seconds)
{
    if (crd_master_advance(p->m, (int64_t)(seconds / 0.01 + 0.5)) < 0) {
        fail_msg("%s", crd_error_text(p->ctx));
    }
}

// ---- modes of the small bench's drives (Rodriguez 2021, section 6.2) ---------------------------

#define SMALL(case_, signals, connections)                                                         \
    "cardan: 1\n"                                                                                  \
    "units:\n"                                                                                     \
    "  case:\n"                                                                                    \
    "    signals:\n"                                                                               \
    "      voltage: { shape: constant, value: 35, unit: V }\n" signals                             \
    "  small: { dcp: 'udp://127.0.0.1:9081', description: backtoback.dcpx, session: { mode: srt }" \
    ", bench: { case: '" case_ "' } }\n"                                                           \
    "connections:\n"                                                                               \
    "  - case.voltage -> small.voltage_ref\n" connections                                          \
    "run: { step: 10 ms, stop: 60 s, predict: hold }\n"

static const crdi_testbench_kind small[] = {CRDI_TESTBENCH_BACK_TO_BACK};

// 8 A are 0.389 N.m, of which 0.2 N.m were agreed: 4.115 A.
static void in_current_mode_what_was_agreed_of_the_torque_holds(void** state)
{
    place p;
    open_place(&p, small, 1);
    begin(&p,
          SMALL("speed 0..2000 1/min; torque -0.2..0.2 N.m; avoid speed 0..500 1/min with torque",
                "      speed: { shape: ramp, start: 2 s, duration: 1 s, amplitude: 1500, unit: rpm "
                "}\n"
                "      current: { shape: constant, value: 8, unit: A }\n"
                "      mode: { shape: step, start: 1 s, amplitude: 1, unit: '1' }\n",
                "  - case.speed -> small.speed_ref\n"
                "  - case.current -> small.current_ref\n"
                "  - case.mode -> small.test_mode_ref\n"));
    go(&p, 0.9);
    check_near(is(&p, 0, "test_mode"), 0, 0);
    check_near(is(&p, 0, "current"), 0, 1e-3); // a current that nobody follows
    go(&p, 1);
    check_near(is(&p, 0, "test_mode"), 1, 0);
    check_near(is(&p, 0, "current"), 0, 1e-3); // where torque is forbidden a current is
    go(&p, 2.1);
    check_near(is(&p, 0, "speed"), 1500, 2);
    check_near(is(&p, 0, "current"), 0.2 / 48.6e-3, 1e-3);
    check(state_of(&p, 0).clamps >= 1 && state_of(&p, 0).clamped & 1u << 4);
    check_ok(crd_master_finish(p.m));
    check_near(is(&p, 0, "current"), 0, 1e-3);
    close_place(&p);
}

static void a_current_that_leaves_nothing_is_refused(void** state)
{
    place p;
    open_place(&p, small, 1);
    const char text[] = SMALL("torque 0..0.1 N.m; current 5..6 A", "", "");
    check_ok(crd_system_parse(p.ctx, text, strlen(text), TEST_BUILD_DIR "/x.yaml", &p.sys));
    crd_status st = crd_master_create(p.ctx, p.sys, NULL, &p.m);
    if (st >= 0) { st = crd_master_initialize(p.m); }
    check(st < 0);
    check_contains(crd_error_text(p.ctx), "current");
    check_contains(crd_error_text(p.ctx), "torque");
    check_near(is(&p, 0, "voltage"), 0, 0.1);
    close_place(&p);
}

static void note_speed(place* p)
{
    const double speed = is(p, 0, "speed");
    p->seen[0] = fmax(p->seen[0], speed);
    p->seen[1] = fmin(p->seen[1], speed);
}

#define TO_A_POSITION                                                                              \
    SMALL("speed -1000..1000 1/min",                                                               \
          "      most: { shape: constant, value: 3000, unit: rpm }\n"                              \
          "      to: { shape: step, amplitude: -150, unit: rad }\n"                                \
          "      mode: { shape: constant, value: 1, unit: '1' }\n",                                \
          "  - case.most -> small.speed_ref\n"                                                     \
          "  - case.to -> small.position_ref\n"                                                    \
          "  - case.mode -> small.load_mode_ref\n")

// 150 rad at 1000 1/min (104.7 rad/s) take 1.43 s and the ends of the way.
static void in_position_mode_the_load_goes_there_with_the_agreed_speed(void** state)
{
    place p;
    open_place(&p, small, 1);
    p.look = note_speed;
    begin(&p, TO_A_POSITION);
    go(&p, 1.3);
    check_near(is(&p, 0, "load_mode"), 1, 0);
    check_near(is(&p, 0, "speed"), -1000, 10);
    check(is(&p, 0, "position") > -137);
    go(&p, 0.7);
    check_near(is(&p, 0, "position"), -150, 0.01);
    check_near(is(&p, 0, "speed"), 0, 1);
    check(p.seen[1] >= -1047 && p.seen[0] <= 47); // overshoot of its sheet
    check_ok(crd_master_finish(p.m));
    close_place(&p);
}

static void watch_it_slow_down(place* p)
{
    const double speed = is(p, 0, "speed");
    if (state_of(p, 0).phase < CRD_DCP_BENCH_SPEED_DOWN) { p->seen[2] = speed; }
    if (speed < p->seen[2] - 5 || speed > 47) { p->seen[3]++; } // faster, or the other way
    p->seen[2] = fmax(p->seen[2], speed);
}

// On its way to -150 rad the master falls silent. The set values of the stop (position 0, mode 0)
// turn nothing back, and it stands within 4 s.
static void a_stop_on_the_way_to_a_position_only_slows_down(void** state)
{
    place p;
    open_place(&p, small, 1);
    begin(&p, TO_A_POSITION);
    go(&p, 0.7);
    check_near(is(&p, 0, "speed"), -1000, 10);
    p.look = watch_it_slow_down;
    pass(&p, 0.4);
    check_int(state_of(&p, 0).phase, CRD_DCP_BENCH_RUN);
    pass(&p, 0.15);
    check_near(is(&p, 0, "load_mode"), is(&p, 0, "speed") < -1, 0); // until it stands
    pass(&p, 4);
    check_int(state_of(&p, 0).phase, CRD_DCP_BENCH_SAFE);
    check_int(state_of(&p, 0).reason, CRD_DCP_BENCH_WATCHDOG);
    check_near(p.seen[3], 0, 0);
    check(is(&p, 0, "position") < -100);
    close_place(&p);
}

static void between_speed_and_position_nothing_changes_while_it_turns(void** state)
{
    place p;
    open_place(&p, small, 1);
    p.look = note_speed;
    begin(&p, SMALL("speed -1000..1000 1/min",
                    "      speed: { shape: table, times: [0, 1.2], values: [800, 0], "
                    "interpolation: hold, unit: rpm }\n"
                    "      mode: { shape: step, start: 0.5 s, amplitude: 1, unit: '1' }\n",
                    "  - case.speed -> small.speed_ref\n"
                    "  - case.mode -> small.load_mode_ref\n"));
    go(&p, 1.1);
    check_near(is(&p, 0, "load_mode_ref"), 1, 0);
    check_near(is(&p, 0, "load_mode"), 0, 0);
    check_near(is(&p, 0, "speed"), 800, 5);
    go(&p, 0.6);
    check_near(is(&p, 0, "load_mode"), 1, 0);
    check(p.seen[0] < 847 && p.seen[1] > -47);
    check_ok(crd_master_finish(p.m));
    close_place(&p);
}

// ---- the battery bench -------------------------------------------------------------------------

#define BATTERY(signals, bench)                                                                    \
    "cardan: 1\n"                                                                                  \
    "units:\n"                                                                                     \
    "  case:\n"                                                                                    \
    "    signals:\n"                                                                               \
    "      voltage: { shape: table, times: [0, 0.5], values: [0, 400], interpolation: hold, "      \
    "unit: V }\n" signals                                                                          \
    "  battery: { dcp: 'udp://127.0.0.1:9081', description: battery.dcpx, session: { mode: srt, "  \
    "patience: 1 h }" bench " }\n"                                                                 \
    "connections:\n"                                                                               \
    "  - case.voltage -> battery.voltage_ref\n"                                                    \
    "  - case.current -> battery.current_ref\n"                                                    \
    "run: { step: 10 ms, stop: 60 s, predict: hold }\n"

static const crdi_testbench_kind battery_alone[] = {CRDI_TESTBENCH_BATTERY};

// What happens at the contactors: seen[0] the current at which they opened under way, seen[1] how
// often they did, seen[2] the state before, seen[3] pre-charges.
static void watch_contactors(place* p)
{
    const double now = is(p, 0, "contactors");
    if (p->seen[2] == 2 && now == 0) {
        p->seen[0] = fmax(p->seen[0], fabs(is(p, 0, "current")));
        p->seen[1]++;
    }
    if (p->seen[2] == 0 && now == 2) { p->seen[3] -= 100; } // without a pre-charge
    p->seen[3] += p->seen[2] != 1 && now == 1;
    p->seen[2] = now;
}

// 96 cells of 3.71 V at half charge, 85 mOhm and two RC elements (30 mOhm and 8 s, 45 mOhm and
// 150 s): 100 A for 3 s make 356.16 - 8.5 - 3 (1 - exp(-3/8)) - 4.5 (1 - exp(-3/150)) = 346.63 V,
// less 48 V of open voltage per unit of charge x 0.00245 = 0.118 V of discharge.
static void
a_battery_closes_its_contactors_over_a_pre_charge_and_opens_them_at_no_current(void** state)
{
    place p;
    open_place(&p, battery_alone, 1);
    p.look = watch_contactors;
    begin(&p, BATTERY("      current: { shape: step, start: 2 s, amplitude: 100, unit: A }\n", ""));
    go(&p, 0.45);
    check_near(is(&p, 0, "contactors"), 0, 0);
    check_near(is(&p, 0, "voltage"), 0, 0.1);
    go(&p, 1.2);                               // 250 V after a second
    check_near(is(&p, 0, "contactors"), 1, 0); // 95 % after three times 0.1 s
    go(&p, 0.3);
    check_near(is(&p, 0, "contactors"), 2, 0);
    check_near(is(&p, 0, "voltage"), 356.16, 0.01);
    go(&p, 3.06);
    check_near(is(&p, 0, "current"), 100, 0.01);
    check_near(is(&p, 0, "voltage"), 346.515, 0.05);
    check_near(0.5 - is(&p, 0, "soc"), 100 * 3.0 / (34 * 3600), 100 * 0.05 / (34 * 3600));
    check_ok(crd_master_finish(p.m));
    check_near(is(&p, 0, "contactors"), 0, 0);
    check(is(&p, 0, "voltage") < 1);
    check(p.seen[0] < 1);
    check_near(p.seen[1], 1, 0);
    check_near(p.seen[3], 1, 0);
    close_place(&p);
}

// At 10 % of charge half of 340 A; at 5 degC a third of the charging current. The set value is
// kept to that by the bench, and its master is told.
static void limits_of_the_battery_move_with_charge_and_temperature(void** state)
{
    place p;
    open_place_with(&p, battery_alone, 1, 0.1);
    begin(&p,
          BATTERY("      current: { shape: step, start: 2.5 s, amplitude: 300, unit: A }\n", ""));
    go(&p, 2.4);
    check_near(is(&p, 0, "current_max"), 170, 0.5);
    check_int(state_of(&p, 0).clamps, 0);
    go(&p, 1);
    check_near(is(&p, 0, "current_ref"), is(&p, 0, "current_max"), 0.1);
    check(is(&p, 0, "current_max") < 168 && is(&p, 0, "current_max") > 150); // it is being emptied
    check(state_of(&p, 0).clamps == 1 && state_of(&p, 0).clamped & 1u);
    const double before = is(&p, 0, "current");
    go(&p, 5);
    check(is(&p, 0, "current") < before - 5);
    check_ok(crd_master_finish(p.m));
    close_place(&p);
    open_place(&p, battery_alone, 1);
    begin(&p, BATTERY("      current: { shape: step, start: 2.5 s, amplitude: -200, unit: A }\n",
                      ", bench: { initial: 'cells 5 degC; tolerance 0.5 K' }"));
    go(&p, 3);
    check_near(is(&p, 0, "temperature"), 5, 1);
    check_near(is(&p, 0, "current"), -260 * is(&p, 0, "temperature") / 15, 1);
    check_ok(crd_master_finish(p.m));
    close_place(&p);
}

// ---- sessions of several benches ---------------------------------------------------------------

static const char hybrid[] =
    "cardan: 1\n"
    "units:\n"
    "  case:\n"
    "    signals:\n"
    "      link: { shape: constant, value: 400, unit: V }\n"
    "      speed: { shape: ramp, start: 2 s, duration: 1 s, amplitude: 2000, unit: rpm }\n"
    "      torque: { shape: step, start: 4 s, amplitude: 100, unit: N.m }\n"
    "      pedal: { shape: step, start: 4 s, amplitude: 20, unit: '%%' }\n"
    "      small: { shape: constant, value: 1000, unit: rpm }\n"
    "  battery: { dcp: 'udp://127.0.0.1:9081', description: battery.dcpx, session: { mode: srt } "
    "}\n"
    "  em: { dcp: 'udp://127.0.0.1:9082', description: em.dcpx, session: { mode: srt } }\n"
    "  ice: { dcp: 'udp://127.0.0.1:9083', description: ice.dcpx, session: { mode: srt } }\n"
    "%s"
    "connections:\n"
    "  - case.link -> battery.voltage_ref\n"
    "  - em.current_dc -> battery.current_ref\n"
    "  - battery.voltage -> em.voltage_ref\n"
    "  - case.speed -> em.speed_ref\n"
    "  - case.torque -> em.torque_ref\n"
    "  - case.speed -> ice.speed_ref\n"
    "  - case.pedal -> ice.pedal_ref\n"
    "%s"
    "run: { step: 10 ms, stop: 60 s, predict: hold }\n";
static const crdi_testbench_kind three[] = {CRDI_TESTBENCH_BATTERY, CRDI_TESTBENCH_EM,
                                            CRDI_TESTBENCH_ICE, CRDI_TESTBENCH_BACK_TO_BACK};

static void begin_hybrid(place* p, int count)
{
    char text[4096];
    open_place(p, three, count);
    p->look = watch_contactors;
    snprintf(text, sizeof text, hybrid,
             count < 4 ? ""
                       : "  small: { dcp: 'udp://127.0.0.1:9084', description: backtoback.dcpx, "
                         "session: { mode: srt } }\n",
             count < 4 ? "" : "  - case.small -> small.speed_ref\n");
    begin(p, text);
    go(p, 6);
    check_near(is(p, 1, "speed"), 2000, 5);
    check_near(is(p, 1, "torque_calc"), 100, 3);
    // the link: what the machine takes the battery gives, at the battery's voltage
    check(is(p, 1, "current_dc") > 55);
    check_near(is(p, 0, "current"), is(p, 1, "current_dc"), 1);
    check_near(is(p, 1, "voltage_dc"), is(p, 0, "voltage"), 3);
    check(is(p, 0, "voltage") < 352);
}

static bool at_rest(const place* p, int i)
{
    const double moves = i == 0 ? is(p, 0, "contactors") : fabs(is(p, i, "speed"));
    return state_of(p, i).phase == CRD_DCP_BENCH_SAFE && moves < 1 &&
           !(i == 0 && is(p, 0, "voltage") > 1);
}

static void three_benches_share_a_link_and_a_fourth_is_configuration(void** state)
{
    for (int count = 3; count <= 4; count++) {
        place p;
        begin_hybrid(&p, count);
        if (count == 4) { check_near(is(&p, 3, "speed"), 1000, 5); }
        check_ok(crd_master_finish(p.m));
        for (int i = 0; i < count; i++) {
            check(at_rest(&p, i));
        }
        check(p.seen[0] < 1);
        close_place(&p);
    }
}

// The master is gone, or its network: each by its own watchdog, 0.5 s behind the last data.
static void when_the_master_falls_silent_all_three_come_down_by_themselves(void** state)
{
    place p;
    begin_hybrid(&p, 3);
    pass(&p, 0.55 + 8);
    for (int i = 0; i < 3; i++) {
        check(at_rest(&p, i));
        check_int(state_of(&p, i).reason, CRD_DCP_BENCH_WATCHDOG);
    }
    check(p.seen[0] < 1 && p.seen[1] == 1);
    close_place(&p);
}

// The process of one is gone: the master ends the session, and the others stand within the time in
// which a bench is missed (3 s) and that of their stops (8 s).
static void when_one_of_three_dies_the_others_come_down(void** state)
{
    for (int dies = 0; dies < 3; dies++) {
        place p;
        begin_hybrid(&p, 3);
        testnet_attach(p.nets[dies], NULL);
        const double from = testnet_now(p.network);
        crd_status st = CRD_OK;
        while (st >= 0 && testnet_now(p.network) < from + 20) {
            st = crd_master_advance(p.m, 1);
        }
        check(st < 0);
        check(testnet_now(p.network) < from + 4);
        (void)crd_master_finish(p.m);
        const double left = from + 11 - testnet_now(p.network);
        if (left > 0) { pass(&p, left); }
        for (int i = 0; i < 3; i++) {
            if (i != dies) { check(at_rest(&p, i)); }
        }
        if (dies != 0) { check(p.seen[0] < 1 && p.seen[1] == 1); }
        close_place(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_current_mode_what_was_agreed_of_the_torque_holds),
        cmocka_unit_test(a_current_that_leaves_nothing_is_refused),
        cmocka_unit_test(in_position_mode_the_load_goes_there_with_the_agreed_speed),
        cmocka_unit_test(a_stop_on_the_way_to_a_position_only_slows_down),
        cmocka_unit_test(between_speed_and_position_nothing_changes_while_it_turns),
        cmocka_unit_test(
            a_battery_closes_its_contactors_over_a_pre_charge_and_opens_them_at_no_current),
        cmocka_unit_test(limits_of_the_battery_move_with_charge_and_temperature),
        cmocka_unit_test(three_benches_share_a_link_and_a_fourth_is_configuration),
        cmocka_unit_test(when_the_master_falls_silent_all_three_come_down_by_themselves),
        cmocka_unit_test(when_one_of_three_dies_the_others_come_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
