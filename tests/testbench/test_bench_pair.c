// The emulated electric machine bench as the far side of a wave pair, on a virtual network and
// clock: its load machine follows the speed of an engine that is simulated here, over a late link.
static double drive(double t)
{
    return t < 0.5 ? 0 : 60 + 20 * __builtin_sin(1.3 * t);
}

static double drag(double w)
{
    return w;
}
#include "../master/shaft.h"

#include "master/master.h"
#include "place.h"

enum {
    EM,
    OTHER
}; // benches: the one with the port, one that the engine's speed is sent to as it is

static void open_bench(place* p, int i, uint32_t life)
{
    static const char* const pair = "speed_ref:torque";
    crdi_testbench_options o = crdi_testbench_defaults(CRDI_TESTBENCH_EM);
    o.pairs = &pair;
    o.pair_count = i == EM;
    o.life = life;
    o.address.port = (uint16_t)(8080 + i);
    start_bench(p, i, &o, i == EM ? "bench_pair.dcpx" : "bench_other.dcpx");
    p->count = i + 1 > p->count ? i + 1 : p->count;
}

static void open_place(place* p)
{
    make_place(p);
    open_bench(p, EM, 1);
}

static void add_bench(place* p, const char* name, const char* path, const char* address)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.source = CRD_UNIT_DCP;
    u.path = path;
    u.address = address;
    u.session.mode = CRD_DCP_MODE_SRT;
    u.bench = (crd_bench_spec){
        .used = true,
        .plan = "speed 0..4000 1/min; torque -100..100 N.m; avoid speed 0..50 1/min with torque",
        .watchdog = NAN};
    check_ok(crd_system_add_unit(p->sys, &u, NULL));
}

static void begin(place* p, const char* impedance)
{
    p->sys = new_system(p->ctx, 0.01, 60);
    const int e = add_unit(p->sys, "engine", &engine_model, 0);
    set(p->sys, e, "loss", "0.3");
    set(p->sys, e, "J", "0.5");
    add_bench(p, "em", TEST_BUILD_DIR "/bench_pair.dcpx", "udp://127.0.0.1:8080");
    wire(p->sys, 0, "w", 1, "speed_ref");
    wire(p->sys, 1, "torque", 0, "M");
    if (p->count > OTHER) {
        add_bench(p, "other", TEST_BUILD_DIR "/bench_other.dcpx", "udp://127.0.0.1:8081");
        wire(p->sys, 0, "w", 2, "speed_ref");
    }
    if (impedance) {
        crd_bond_spec b = crd_bond_spec_defaults();
        b.name = "shaft";
        b.action_unit = 1;
        b.action = "torque";
        b.flow_unit = 0;
        b.flow = "w";
        b.pair = CRD_PAIR_WAVE;
        b.impedance = impedance;
        b.inner = 1e-3;
        check_ok(crd_system_add_bond(p->sys, &b));
    }
    check_run(crd_master_create(p->ctx, p->sys, NULL, &p->m), p->ctx);
    check_run(crd_master_initialize(p->m), p->ctx);
}

// b = 20 is above the inertia of its rotor over the lag of its drive, 0.08 kg.m2 / 15 ms: both
// speeds go together, and what the drive did beyond the tank is little. Behind the run it comes to
// rest.
static void the_machine_bench_holds_the_far_side(void** state)
{
    (void)state;
    static const testnet_faults links[] = {
        {.delay = 0.005, .seed = 1}, {.delay = 0.04, .jitter = 0.02, .loss = 0.05, .seed = 1}};
    for (int k = 0; k < 2; k++) {
        place p;
        double most = 0, apart = 0;
        open_place(&p);
        begin(&p, "20");
        check_ok(testnet_set(p.network, &links[k]));
        for (int n = 0; n < 1000; n++) {
            check_run(crd_master_advance(p.m, 1), p.ctx);
            const double w = value(p.m, "engine.w"), is = value(p.m, "em.speed") * M_PI / 30;
            most = fmax(most, fmax(w, is));
            if (n >= 500) { apart += (w - is) * (w - is) / 500; }
        }
        const double debt = value(p.m, "em.speed_ref.pair.debt");
        const double spent = value(p.m, "em.speed_ref.pair.spent");
        print_message("largest speed %g, apart %g rad/s, spent %g J, debt %g J\n", most,
                      sqrt(apart), spent, debt);
        check(most > 100 && most < 230); // 60 N.m over 0.3 N.m.s/rad are 200 rad/s
        check(sqrt(apart) < 0.02 * most);
        check(spent > 1000 && debt < 0.01 * spent);
        check_near(value(p.m, "em.bench.status"), CRD_DCP_BENCH_RUN, 0);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-4}));
        check_run(crd_master_finish(p.m), p.ctx);
        check_int(crd_dcp_bench_get_state(crdi_testbench_bench(p.benches[0])).phase,
                  CRD_DCP_BENCH_SAFE);
        close_place(&p);
    }
}

// ---- under attack ------------------------------------------------------------------------------

static crd_dcp_bench_state state_of(const place* p, int i)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(p->benches[i]));
}

static double speed_of(const place* p, int i)
{
    return crdi_testbench_true(p->benches[i], crdi_testbench_find(CRDI_TESTBENCH_EM, "speed"));
}

// Behind each step of the bench with the port: seen[0] its largest speed, seen[1] the smallest,
// seen[2] the largest torque of the set value's machine, in RUN.
static void watch(void* user, double time)
{
    place* p = user;
    (void)time;
    if (!p->benches[EM]) { return; }
    p->seen[0] = fmax(p->seen[0], speed_of(p, EM));
    p->seen[1] = fmin(p->seen[1], speed_of(p, EM));
}

static crd_pair_state far_account(const place* p)
{
    return crd_master_get_report(p->m)->pairs[0].sides[1].state;
}

static void end_master(place* p)
{
    crd_master_destroy(p->m);
    crd_system_destroy(p->sys);
    p->m = NULL;
    p->sys = NULL;
}

static void check_at_rest(const place* p, int i)
{
    check_int(state_of(p, i).phase, CRD_DCP_BENCH_SAFE);
    check(fabs(speed_of(p, i)) < 10);
}

// SIGKILL of the master while its packets hold the machine: both benches begin their stop within
// the deadman's time, whatever the tank has, and stand within 8 s of it. The next master begins a
// life with an empty tank.
static void benches_whose_master_was_killed_stop(void** state)
{
    (void)state;
    place p;
    double speed[2];
    open_place(&p);
    open_bench(&p, OTHER, 1);
    for (int life = 0; life < 2; life++) {
        begin(&p, "20");
        check_run(crd_master_advance(p.m, 400), p.ctx);
        speed[life] = value(p.m, "engine.w");
        check_near(value(p.m, "em.speed_ref.pair.run"), 1 + life, 0);
        check(speed_of(&p, EM) > 1000 && value(p.m, "em.speed_ref.pair.spent") > 100);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3, .loss = 1})); // killed
        const double before = speed_of(&p, EM);
        pass(&p, 0.6); // 0.5 s without data
        for (int i = EM; i <= OTHER; i++) {
            check_int(state_of(&p, i).reason, CRD_DCP_BENCH_WATCHDOG);
            check(state_of(&p, i).phase > CRD_DCP_BENCH_RUN);
        }
        check(speed_of(&p, EM) < 1.05 * before);
        pass(&p, 8);
        check_at_rest(&p, EM);
        check_at_rest(&p, OTHER);
        end_master(&p);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3}));
        pass(&p, 4);
    }
    check_near(speed[1], speed[0], 0.01 * speed[0]); // its oil is warmer now
    close_place(&p);
}

// SIGKILL of a bench, the one with the port or the other: the run ends with a sentence that names
// it, the one that is left stands within 8 s, and the port here has given the engine nothing that
// it did not have.
static void a_killed_bench_takes_the_session_down(void** state)
{
    (void)state;
    for (int victim = EM; victim <= OTHER; victim++) {
        place p;
        open_place(&p);
        open_bench(&p, OTHER, 1);
        begin(&p, "20");
        check_run(crd_master_advance(p.m, 400), p.ctx);
        check(speed_of(&p, EM) > 1000);
        kill_bench(&p, victim);
        crd_status st = CRD_OK;
        int n = 0;
        double most = 0;
        for (; n < 1000 && st >= 0; n++) {
            st = crd_master_advance(p.m, 1);
            most = fmax(most, fabs(value(p.m, "engine.w")));
        }
        print_message("%s killed: the run ended after %d steps, most %g rad/s: %s\n",
                      victim == EM ? "em" : "other", n, most, crd_error_text(p.ctx));
        check(st < 0 && n < 400);
        check_contains(crd_error_text(p.ctx), victim == EM ? "em" : "other");
        check(most < 267); // 80 N.m over 0.3 N.m.s/rad: what the engine does alone
        const crd_pair_state* s = &crd_master_get_report(p.m)->pairs[0].sides[0].state;
        check(s->spent <= s->absorbed + s->received + s->debt + 1e-9);
        pass(&p, 8);
        check_at_rest(&p, victim == EM ? OTHER : EM);
        close_place(&p);
    }
}

// The link is dead for 0.05 to 0.4 s, again and again, which the deadman (0.5 s) bears; then for
// good.
static void links_that_die_and_come_back_are_borne_up_to_the_deadman(void** state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        place p;
        uint64_t random = seed * 977;
        int change = 200;
        bool dead = false;
        double most = 0;
        open_place(&p);
        begin(&p, "20");
        for (int n = 0; n < 2500; n++) {
            if (n >= change) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                dead = !dead;
                change =
                    n + (dead ? 5 + (int)((random >> 40) % 36) : 20 + (int)((random >> 40) % 80));
                check_ok(testnet_set(
                    p.network, &(testnet_faults){.delay = 0.01, .jitter = 0.01, .loss = dead}));
            }
            check_run(crd_master_advance(p.m, 1), p.ctx);
            most = fmax(most, value(p.m, "engine.w"));
        }
        const crd_pair_state far = far_account(&p);
        const crd_pair_state* here = &crd_master_get_report(p.m)->pairs[0].sides[0].state;
        print_message("seed %d: most %g rad/s, debts %g and %g J of %g\n", (int)seed, most,
                      here->debt, far.debt, far.spent);
        check_int(state_of(&p, EM).phase, CRD_DCP_BENCH_RUN);
        check(most < 267);
        check(here->spent - here->absorbed + far.spent - far.absorbed <= here->debt + far.debt + 1);
        check(far.debt < 0.05 * far.spent); // what the drive did beyond what was asked for
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 0.01, .loss = 1}));
        pass(&p, 9);
        check_int(state_of(&p, EM).reason, CRD_DCP_BENCH_WATCHDOG);
        check_at_rest(&p, EM);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3}));
        close_place(&p);
    }
}

// Somebody in the way of the packets writes into them whatever he likes. Of odd seeds he knows what
// he does: energy without end, and means that pull. The machine stays in what was agreed. Of even
// ones anything may stand anywhere: the port finds no packet to take any more, and the bench stops.
static void forged_packets_do_not_lead_out_of_the_agreed_case(void** state)
{
    (void)state;
    static const double odd[] = {1e3,   -1e3,      1e6,      -1e6, 1e12, -1e12,
                                 1e200, -INFINITY, INFINITY, NAN,  0,    1e-300};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        place p;
        uint64_t random = seed * 7919;
        crd_status st = CRD_OK;
        int n = 0;
        open_place(&p);
        begin(&p, "20");
        crdi_testbench_observe(p.benches[EM], watch, &p);
        check_run(crd_master_advance(p.m, 200), p.ctx);
        for (; n < 600 && st >= 0; n++) {
            crd_pair_port* port = &p.m->connections.pairs[0].sides[0].pair; // what it says next
            double* const fields[] = {&port->granted,  &port->effort_sum, &port->flow_sum,
                                      &port->effort_h, &port->flow_h,     &port->number};
            random = random * 6364136223846793005u + 1442695040888963407u;
            const double pull = (double)((random >> 40) % 5) - 2;
            const unsigned k = (unsigned)(random >> 33) % 6, v = (unsigned)(random >> 50) % 12;
            const double was = *fields[k];
            if (seed % 2) {
                port->granted += 1e6;
                port->effort_h = n / 100 % 2 ? 1e4 * pull : 1e5;
                port->flow_h = n / 100 % 2 ? 1e5 : 1e4 * pull;
            } else if (n % 3 == 0) {
                *fields[k] = k == 0 || k == 5 ? was + odd[v] : odd[v];
            }
            st = crd_master_advance(p.m, 1);
            if (!isfinite(port->granted)) { port->granted = 0; }
            if (!isfinite(port->number)) { port->number = n; }
        }
        print_message("seed %d: %d steps, speed %g .. %g 1/min%s%s\n", (int)seed, n, p.seen[1],
                      p.seen[0], st < 0 ? ", " : "", st < 0 ? crd_error_text(p.ctx) : "");
        check(p.seen[0] < 4000 + 120 && p.seen[1] > -60); // with what its drive overshoots
        if (seed % 2 == 0) {
            check(st < 0);
            check_int(state_of(&p, EM).reason, CRD_DCP_BENCH_WATCHDOG);
        }
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3, .loss = 1}));
        pass(&p, 9);
        check_at_rest(&p, EM);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3}));
        close_place(&p);
    }
}

// Bits that turn on the way, one packet of ten: what is no set value of this session is left out or
// stops the bench.
static void packets_that_are_damaged_do_no_harm(void** state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        place p;
        crd_status st = CRD_OK;
        open_place(&p);
        begin(&p, "20");
        crdi_testbench_observe(p.benches[EM], watch, &p);
        check_run(crd_master_advance(p.m, 200 + 37 * (int64_t)seed), p.ctx);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 5e-3, .corrupt = 0.1}));
        for (int n = 0; n < 600 && st >= 0; n++) {
            st = crd_master_advance(p.m, 1);
        }
        print_message("seed %d: speed %g .. %g 1/min%s%s\n", (int)seed, p.seen[1], p.seen[0],
                      st < 0 ? ", " : "", st < 0 ? crd_error_text(p.ctx) : "");
        check(isfinite(value(p.m, "engine.w")));
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 5e-3, .loss = 1}));
        pass(&p, 9);
        check(p.seen[0] < 4000 + 120 && p.seen[1] > -60);
        check_at_rest(&p, EM);
        check_ok(testnet_set(p.network, &(testnet_faults){.delay = 1e-3}));
        close_place(&p);
    }
}

static void a_port_at_what_is_not_measured_is_refused(void** state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } of[] = {{"speed_ref:torqe", "the slave has no output 'torqe' of one float64"},
              {"speed:torque", "the slave has no input 'speed' of one float64"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        crd_context* ctx = crd_context_create(NULL);
        crdi_testbench_options o = crdi_testbench_defaults(CRDI_TESTBENCH_EM);
        crdi_testbench* b = NULL;
        o.pairs = &of[i].text;
        o.pair_count = 1;
        check(crdi_testbench_create(ctx, &o, &b) < 0);
        check_contains(crd_error_text(ctx), of[i].why);
        crd_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_bench_holds_the_far_side),
        cmocka_unit_test(benches_whose_master_was_killed_stop),
        cmocka_unit_test(a_killed_bench_takes_the_session_down),
        cmocka_unit_test(links_that_die_and_come_back_are_borne_up_to_the_deadman),
        cmocka_unit_test(forged_packets_do_not_lead_out_of_the_agreed_case),
        cmocka_unit_test(packets_that_are_damaged_do_no_harm),
        cmocka_unit_test(a_port_at_what_is_not_measured_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
