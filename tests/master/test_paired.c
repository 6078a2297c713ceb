// Power bonds with a pair of wave ports: a stiff shaft between an engine (0.25 kg.m2) and a load
// (2 kg.m2, with drag), c = 60 N.m/rad, d = 3 N.m.s/rad, torque and speed exchanged each 10 ms and
// late. Against the undelayed system, which is solved here by itself.
#include "models.h"

#include "master/live/live.h"
#include "master/master.h"

#include <stdio.h>

static double drive(double t)
{
    return 30 + 20 * sin(1.3 * t) + 6 * sin(5.1 * t);
}

static double drag(double w)
{
    return 0.02 * w * fabs(w) + 8 * tanh(20 * w);
}
#include "shaft.h"

#define check_below(a, b) check_near(fmax(a, b), b, 0)

enum { STEPS = 1200, LONG = 4000 };
static const double H = 0.01;

// The undelayed system by Heun's method at 10 us: speed of the engine at macro steps; its range
// from step `from` on.
static double reference(double* w, int from, int steps, double c, double d)
{
    double x[3] = {0}, low = INFINITY, high = -INFINITY; // engine, load, twist
    const double h = 1e-5;
    for (int n = 0; n <= steps; n++) {
        w[n] = x[0];
        low = n < from ? low : fmin(low, x[0]);
        high = n < from ? high : fmax(high, x[0]);
        for (int i = 0; i < 1000; i++) {
            double k[2][3], y[3];
            for (int s = 0; s < 2; s++) {
                for (int j = 0; j < 3; j++) {
                    y[j] = x[j] + (s ? h * k[0][j] : 0);
                }
                const double R = c * y[2] + d * (y[0] - y[1]);
                k[s][0] = (drive(n * H + (i + s) * h) - R) / 0.25;
                k[s][1] = (R - drag(y[1])) / 2;
                k[s][2] = y[0] - y[1];
            }
            for (int j = 0; j < 3; j++) {
                x[j] += 0.5 * h * (k[0][j] + k[1][j]);
            }
        }
    }
    return high - low;
}

typedef struct {
    const char *impedance, *torque; // torque NULL: "M", which drives
    crd_channel_spec channel;
    double inner;
    bool swapped, hold, over;
    const char *c, *d; // of the shaft, NULL: 60 N.m/rad, 3 N.m.s/rad
    int steps;         // 0: STEPS
} setting;

// Hold: both connections through the same network with ZOH, and no pair.
static crd_coupling_spec zoh(const crd_channel_spec* channel)
{
    return (crd_coupling_spec){.element = "{\"algorithm\": \"zoh\"}",
                               .place = {"shaft.yaml", 7},
                               .origin = {"shaft.yaml", 7},
                               .channel = *channel,
                               .has_channel = true};
}

static crd_system* shaft(crd_context* ctx, const setting* s)
{
    static crd_coupling_spec held;
    crd_system* sys = new_system(ctx, H, (s->steps ? s->steps : STEPS) * H);
    const bool resists = s->torque != NULL;
    held = zoh(&s->channel);
    add_unit(sys, "engine", &engine_model, 0);
    const int l = add_unit(sys, "load", &load_model, 0);
    if (s->c) { set(sys, l, "c", s->c); }
    if (s->d) { set(sys, l, "d", s->d); }
    crd_connection_spec* k = wire(sys, 0, "w", 1, "w");
    k->predict = CRD_PREDICTION_HOLD;
    k = wire(sys, 1, resists ? s->torque : "M", 0, resists ? "Mr" : "M");
    k->predict = CRD_PREDICTION_HOLD;
    if (s->hold) {
        sys->connections[0].coupling = sys->connections[1].coupling = &held;
        return sys;
    }
    crd_bond_spec b = crd_bond_spec_defaults();
    b.name = "shaft";
    b.action_unit = s->swapped ? 0 : 1;
    b.action = s->swapped ? "w" : resists ? s->torque : "M";
    b.flow_unit = 1 - b.action_unit;
    b.flow = s->swapped ? (resists ? s->torque : "M") : "w";
    b.pair = CRD_PAIR_WAVE;
    b.impedance = s->impedance;
    b.inner = s->inner;
    b.over = s->over;
    b.channel = s->channel;
    b.has_channel = true;
    b.place = (crd_place){"shaft.yaml", 12};
    check_ok(crd_system_add_bond(sys, &b));
    return sys;
}

static setting wave(double delay, double jitter, double loss)
{
    return (setting){
        .impedance = "6 N.m.s/rad",
        .inner = 1e-3,
        .channel = {
            .step = NAN, .delay = delay, .jitter = jitter, .loss = loss, .burst = 1, .seed = 7}};
}

// RMS of the engine's speed against the undelayed one, of its range there, from step `from` on; `w`
// gets what was there, `predicted` the steps in which the commands on top acted.
static double error_from(const setting* s, int from, double* w, int64_t* predicted)
{
    static double want[LONG + 1];
    const int steps = s->steps ? s->steps : STEPS;
    const double range =
        reference(want, from, steps, s->c ? strtod(s->c, NULL) : 60, s->d ? strtod(s->d, NULL) : 3);
    crd_context* ctx = crd_context_create(NULL);
    crd_system* sys = shaft(ctx, s);
    crd_master* m = NULL;
    double sum = 0;
    check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    for (int n = 1; n <= steps; n++) {
        const crd_status st = crd_master_advance(m, 1);
        if (s->hold && st < 0) { // it has left all numbers
            sum = INFINITY;
            break;
        }
        check_run(st, ctx);
        const double x = value(m, "engine.w");
        if (w) { w[n] = x; }
        sum += n > from ? (x - want[n]) * (x - want[n]) : 0;
    }
    if (predicted) { *predicted = crd_master_get_report(m)->pairs[0].sides[0].predicted; }
    crd_master_destroy(m);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
    return sqrt(sum / (steps - from)) / range;
}

static double error_of(const setting* s, double* w)
{
    return error_from(s, 0, w, NULL);
}

// Of the whole run, run-up included. Limits: what this test had before, or the medians of drive
// trains of the prototype (other plants: calm 1.96, 4.06, 5.06, 9.8 % at 10, 30, 60, 200 ms,
// bad 7.8 and 13.9 %) where they are smaller; 9.8 % at 200 ms is missed. From 20 ms on hold has no
// bounds, else the plant would be no test; at 10 ms it is stable and about as good as the pair.
static void a_stiff_shaft_follows_the_undelayed_one_over_any_link(void** state)
{
    (void)state;
    const struct {
        double delay, jitter, loss, most;
    } of[] = {{0.01, 0, 0, 0.015},     {0.02, 0, 0, 0.025}, {0.06, 0, 0, 0.0506},
              {0.06, 0.05, 0.1, 0.07}, {0.2, 0, 0, 0.15},   {0.2, 0.2, 0.2, 0.139}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        setting s = wave(of[i].delay, of[i].jitter, of[i].loss);
        // 1 / (1 / sqrt(c sqrt(JA JB)) + tau / JB), tau: mean delay and a macro step
        const double tau = of[i].delay + 0.5 * of[i].jitter + H;
        char b[32];
        snprintf(b, sizeof b, "%.4f N.m.s/rad", 1 / (1 / sqrt(60 * sqrt(0.25 * 2)) + tau / 2));
        s.impedance = b;
        const double error = error_of(&s, NULL);
        s.hold = true;
        const double hold = error_of(&s, NULL);
        print_message("%g ms, jitter %g ms, loss %g: b %s, %.3f %%, hold %.3g %%\n",
                      1e3 * of[i].delay, 1e3 * of[i].jitter, of[i].loss, b, 100 * error,
                      100 * hold);
        check_below(error, of[i].most);
        if (of[i].delay >= 0.02) { assert_false(hold < 1e3); }
    }
}

// At most half the pair's error at 60 ms, over stiff shafts, of which none diverges.
static void commands_on_top_halve_the_error(void** state)
{
    (void)state;
    static const char* const shafts[][2] = {{"60", "3"}, {"120", "2"}, {"240", "5"}, {"30", "1"}};
    for (int bad = 0; bad < 2; bad++) {
        double pair = 0, with = 0;
        for (int i = 0; i < 4; i++) {
            setting s = bad ? wave(0.06, 0.02, 0.05) : wave(0.06, 0, 0);
            int64_t predicted = 0;
            s.c = shafts[i][0];
            s.d = shafts[i][1];
            s.steps = LONG;
            const double alone = error_from(&s, LONG / 2, NULL, NULL);
            s.over = true;
            const double over = error_from(&s, LONG / 2, NULL, &predicted);
            print_message("c %s: pair %.3f %%, with commands %.3f %%, in %d of %d steps\n", s.c,
                          100 * alone, 100 * over, (int)predicted, LONG);
            check_below(over, alone);
            pair += alone;
            with += over;
        }
        check_below(with, 0.5 * pair);
    }
}

static void runs_repeat_to_the_last_bit(void** state)
{
    (void)state;
    static double a[STEPS + 1], b[STEPS + 1];
    const setting s = wave(0.06, 0.05, 0.1);
    (void)error_of(&s, a);
    (void)error_of(&s, b);
    assert_memory_equal(a, b, sizeof a);
}

static void an_impedance_wrong_by_four_or_learned_stays_stable(void** state)
{
    (void)state;
    const char* const b[] = {"1.5 N.m.s/rad", "24 N.m.s/rad", "learned"};
    for (int i = 0; i < 3; i++) {
        setting s = wave(0.06, 0.05, 0.1);
        s.impedance = b[i];
        const double error = error_of(&s, NULL);
        print_message("b = %s: %.3f %%\n", b[i], 100 * error);
        check_below(error, 0.25);
    }
}

static void a_torque_that_resists_is_written_the_other_way_round(void** state)
{
    (void)state;
    static double a[STEPS + 1], b[STEPS + 1];
    setting s = wave(0.06, 0, 0);
    (void)error_of(&s, a);
    s.torque = "R";
    s.swapped = true;
    (void)error_of(&s, b);
    for (int n = 0; n <= STEPS; n++) {
        check_near(a[n], b[n], 1e-9 * (1 + fabs(a[n])));
    }
}

static void wrong_signs_stop_the_run_early(void** state)
{
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        crd_context* ctx = crd_context_create(NULL);
        setting s = wave(0.06, 0, 0);
        s.swapped = swapped;
        s.torque = swapped ? NULL : "R";
        crd_system* sys = shaft(ctx, &s);
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
        assert_true(crd_master_run(m) < 0);
        check_contains(crd_error_text(ctx), "shaft.yaml:12: bond 'shaft': the action");
        check_contains(crd_error_text(ctx), swapped ? "action: load.M, flow: engine.w"
                                                    : "action: engine.w, flow: load.R");
        check_below(crd_master_time(m), 0.5);
        check_below(fabs(value(m, "engine.w")), 100);
        crd_master_destroy(m);
        crd_system_destroy(sys);
        crd_context_destroy(ctx);
    }
}

// One connection has the sign of the other unit's taste and the other one has not: the spring
// pushes where it should pull, which no port can hold.
static void signs_that_make_power_stop_the_run(void** state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        crd_context* ctx = crd_context_create(NULL);
        const setting s = wave(0.06, 0, 0);
        crd_system* sys = shaft(ctx, &s);
        crd_master* m = NULL;
        sys->connections[wrong].gain = -1;
        sys->connections[wrong].has_transformation = true;
        check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
        assert_true(crd_master_run(m) < 0);
        check_contains(crd_error_text(ctx), "bond 'shaft': load.M and engine.w are no power");
        check_contains(crd_error_text(ctx), wrong ? "connections: -1 and 1)" : ": 1 and -1)");
        check_below(fabs(value(m, "engine.w")), 1e6);
        crd_master_destroy(m);
        crd_system_destroy(sys);
        crd_context_destroy(ctx);
    }
}

// The verdict of a pair: how far what the ports act with is from what the other unit gives, against
// the values themselves at the ends of macro steps.
static void what_a_late_pair_misses_is_in_the_verdict(void** state)
{
    (void)state;
    static const double delays[] = {0, 0.06, 0.2};
    double missed[3] = {0};
    for (int i = 0; i < 3; i++) {
        crd_context* ctx = crd_context_create(NULL);
        const setting s = wave(delays[i], 0, 0);
        crd_system* sys = shaft(ctx, &s);
        crd_master* m = NULL;
        double sum = 0, last = 0;
        check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
        check_run(crd_master_initialize(m), ctx);
        for (int n = 1; n <= STEPS; n++) {
            check_run(crd_master_advance(m, 1), ctx);
            const double e = value(m, "load.w") - value(m, "engine.w");
            sum += (last * last + last * e + e * e) / 3;
            last = e;
        }
        const crd_master_report* r = crd_master_get_report(m);
        check_int(r->flow_count, 2);
        for (int k = 0; k < 2; k++) {
            const crd_flow_report* f = &r->flows[k];
            assert_string_equal(f->used, "wave pair");
            if (strcmp(f->to, "load.w") != 0) { continue; }
            // With an empty tank single inner steps are cut, the last one of a macro step as well.
            if (i > 0) { check_near(f->rms, sqrt(sum / STEPS), 0.2 * f->rms); }
            print_message("%g s: the load's speed misses the engine's by %.3g %%\n", delays[i],
                          100 * f->relative);
            missed[i] = f->relative;
        }
        check_int(r->trust, i > 0 ? CRD_TRUST_DOUBTFUL : r->trust);
        check_contains(r->error_note, "is one of a pair");
        check_contains(r->error_note, i > 0 ? "half the delay" : "half the step");
        for (int k = 0; k < r->advice_count; k++) { // nothing is old without a link
            assert_true(i > 0 || !strstr(r->advice[k], " old"));
        }
        crd_master_destroy(m);
        crd_system_destroy(sys);
        crd_context_destroy(ctx);
    }
    assert_true(missed[0] < missed[1] && missed[1] < missed[2]);
}

static void a_link_that_brings_nothing_is_told(void** state)
{
    crd_context* ctx = *state;
    for (int slow = 0; slow < 2; slow++) {
        const setting s = wave(slow ? 60 : 0.06, 0, slow ? 0 : 1);
        crd_system* sys = shaft(ctx, &s);
        crd_master* m = NULL;
        check_log[0] = 0;
        check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
        check_run(crd_master_run(m), ctx);
        check_contains(check_log, "bond 'shaft': no packet has come to 'load' (1200 sent");
        check_contains(check_log, "no packet has come to 'engine'");
        crd_master_destroy(m);
        crd_system_destroy(sys);
    }
}

// tank = absorbed - spent + received - granted - dumped on both sides, and no side receives more
// than the other has granted: what the bond has created is at most the two debts.
static void the_bond_creates_no_energy(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    setting s = wave(0.1, 0.1, 0.2);
    crd_system* sys = shaft(ctx, &s);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_master_report* r = crd_master_get_report(m);
    check_int(r->pair_count, 1);
    double created = 0, passed = 0;
    for (int i = 0; i < 2; i++) {
        const crd_pair_side_report* p = &r->pairs[0].sides[i];
        const crd_pair_state* k = &p->state;
        check_near(k->tank, k->absorbed - k->spent + k->received - k->granted - k->dumped,
                   1e-9 * (k->absorbed + k->spent + 1));
        assert_true(k->received <= r->pairs[0].sides[1 - i].state.granted);
        check_near(p->inner, 1e-3, 1e-12);
        check_int(k->steps, STEPS * 10);
        assert_false(k->strict);
        assert_true(p->sent == STEPS && p->lost > STEPS / 10 && p->lost < STEPS * 3 / 10);
        created += k->spent - k->absorbed;
        passed += k->absorbed;
    }
    check_below(created, 0.02 * passed);
    crd_master_destroy(m);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
}

// Somebody puts 5 N.m at the engine's input, whatever the port says: what is booked there is what
// the engine got, 5 N.m times the way that it went.
static void a_fault_at_the_input_is_booked_as_it_was(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const setting s = wave(0.02, 0, 0);
    crd_system* sys = shaft(ctx, &s);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, sys, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    const crdi_paired_side* side = &m->connections.pairs[0].sides[CRD_PAIR_OWNS_FLOW];
    crdi_fault f = {.m = m,
                    .member = side->member,
                    .kind = CRDI_FAULT_VALUE,
                    .slot = (int)(side->to - side->member->inputs.real),
                    .value = 5};
    side->member->run->faults = &f;
    double way = 0, before = value(m, "engine.w");
    for (int n = 0; n < 200; n++) {
        check_run(crd_master_advance(m, 1), ctx);
        const double w = value(m, "engine.w");
        way += 0.5 * H * (before + w);
        before = w;
    }
    const crd_pair_state* k = &crd_master_get_report(m)->pairs[0].sides[CRD_PAIR_OWNS_FLOW].state;
    print_message("booked %g J, given %g J\n", k->spent - k->absorbed, 5 * way);
    assert_true(way > 10);
    check_near(k->spent - k->absorbed, 5 * way, 0.002 * 5 * way);
    side->member->run->faults = NULL;
    crd_master_destroy(m);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
}

static void check_refused(crd_context* ctx, crd_system* sys, const char* why)
{
    crd_master* m = NULL;
    assert_true(crd_master_create(ctx, sys, NULL, &m) < 0);
    check_contains(crd_error_text(ctx), why);
    crd_system_destroy(sys);
}

static void what_contradicts_a_pair_is_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const setting s = wave(0.06, 0, 0);
    crd_system* sys = shaft(ctx, &s);
    sys->run.control.on = true;
    sys->run.control.tolerance = 1e-3;
    check_refused(ctx, sys, "shaft.yaml:12: bond 'shaft': a pair and run.control, expected one");
    sys = shaft(ctx, &s);
    sys->run.iterate.on = true;
    check_refused(ctx, sys, "a pair and run.iterate, expected one of them");
    setting odd = s;
    odd.impedance = "6 kg";
    check_refused(ctx, shaft(ctx, &odd), "impedance = '6 kg', expected an effort per flow");
    sys = shaft(ctx, &s);
    sys->connections[0].gain = 2;
    sys->connections[0].has_transformation = true;
    check_refused(ctx, sys, "multiply the action by 1 and the flow by 2, expected the same number");
    odd = s;
    odd.inner = 1e-9;
    check_refused(ctx, shaft(ctx, &odd), "inner = 1e-09 s, expected at least 1e-07 s");
    sys = shaft(ctx, &s);
    crd_bond_spec b = sys->bonds[0];
    b.impedance = "-1 N.m.s/rad";
    assert_true(crd_system_add_bond(sys, &b) < 0);
    check_contains(crd_error_text(ctx), "impedance = '-1 N.m.s/rad', expected a number greater");
    b.impedance = "";
    b.correct = CRD_CORRECT_POWER;
    assert_true(crd_system_add_bond(sys, &b) < 0);
    check_contains(crd_error_text(ctx), "pair and 'correct: power', expected one of them");
    b.correct = CRD_CORRECT_NONE;
    b.pair = CRD_PAIR_NONE;
    assert_true(crd_system_add_bond(sys, &b) < 0);
    check_contains(crd_error_text(ctx), "inner belongs to a pair, expected 'pair: wave'");
    b.inner = NAN;
    b.over = true;
    assert_true(crd_system_add_bond(sys, &b) < 0);
    check_contains(crd_error_text(ctx), "over belongs to a pair, expected 'pair: wave'");
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stiff_shaft_follows_the_undelayed_one_over_any_link),
        cmocka_unit_test(commands_on_top_halve_the_error),
        cmocka_unit_test(runs_repeat_to_the_last_bit),
        cmocka_unit_test(an_impedance_wrong_by_four_or_learned_stays_stable),
        cmocka_unit_test(a_torque_that_resists_is_written_the_other_way_round),
        cmocka_unit_test(wrong_signs_stop_the_run_early),
        cmocka_unit_test(signs_that_make_power_stop_the_run),
        cmocka_unit_test(what_a_late_pair_misses_is_in_the_verdict),
        cmocka_unit_test_setup_teardown(a_link_that_brings_nothing_is_told, check_log_up,
                                        check_count_down),
        cmocka_unit_test(the_bond_creates_no_energy),
        cmocka_unit_test(a_fault_at_the_input_is_booked_as_it_was),
        cmocka_unit_test(what_contradicts_a_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
