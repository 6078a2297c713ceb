// Two benches, an engine and a machine, with one master on a virtual clock, and one of them dies or
// stands still for a while, at any moment of a session. The other one comes to rest within the time
// after which a bench is missed and the stop time of its sheet, and so does one that goes on again.
#include "check.h"

#include "shared/dcp.h"
#include "shared/dcp_safety.h"
#include "testbench/bench.h"
#include "testnet/testnet.h"

#include <math.h>
#include <string.h>

enum { BENCHES = 2, MASTER = 0x0A000001, BENCH = 0x0A000002, HOSTS = 0x0A000000 };
static const double begin = 1794710000.25;
static const double alive = 3;   // s until a bench is missed
static const double heart = 3;   // s until a bench misses its master
static const double repeats = 1; // s for what is then sent to the other one
static const double watchdog = 0.5;
static bool whole;

typedef struct field {
    check_allocator allocator, network_allocator;
    crd_context *ctx, *network;
    testnet* t;
    crd_dcp_net *net, *nets[BENCHES];
    crdi_testbench* b[BENCHES];
    crd_dcp_master* m;
    int dies;
    double at, back; // when it dies, when it goes on: INFINITY: never
    double died;
    crd_dcp_state in;                         // where it died
    double driven[BENCHES], turning[BENCHES]; // when last: by set values, at all
    double fastest;
} field;

static const crdi_testbench_kind kinds[BENCHES] = {CRDI_TESTBENCH_ICE, CRDI_TESTBENCH_EM};
static const char* const names[BENCHES] = {"engine", "machine"};

static crd_dcp_bench_phase phase_of(const field* f, int i)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(f->b[i])).phase;
}

static double speed_of(const field* f, int i)
{
    return fabs(crdi_testbench_true(f->b[i], crdi_testbench_find(kinds[i], "speed")));
}

// Whenever the master waits, and between its calls.
static bool look(void* user)
{
    field* f = user;
    const double now = testnet_now(f->t) - begin;
    crd_dcp_slave* slave = crdi_testbench_slave(f->b[f->dies]);
    if (isinf(f->died) && now >= f->at) {
        f->died = now;
        f->in = crd_dcp_slave_state(slave);
        testnet_attach(f->nets[f->dies], NULL);
    }
    if (now >= f->back) {
        f->back = INFINITY;
        testnet_attach(f->nets[f->dies], slave);
    }
    for (int i = 0; i < BENCHES; i++) {
        if (crdi_safety_mover_of(phase_of(f, i)) == CRDI_SAFETY_MASTER) { f->driven[i] = now; }
        if (speed_of(f, i) > 1) { f->turning[i] = now; }
        f->fastest = fmax(f->fastest, speed_of(f, i));
    }
    return false;
}

static void open_field(field* f, int dies, double at, double pause)
{
    static const uint32_t ip = HOSTS, mask = 0xFF000000;
    const testnet_faults faults = {.delay = 0.001, .start = begin};
    *f = (field){.dies = dies, .at = at, .back = at + pause, .died = INFINITY};
    f->ctx = check_context(&f->allocator);
    f->network = check_context(&f->network_allocator);
    check_ok(testnet_create(f->network, &faults, &f->t));
    check_ok(testnet_join(f->t, MASTER, &f->net));
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    for (int i = 0; i < BENCHES; i++) {
        crd_dcp_address where = {(uint32_t)(BENCH + i), 8080, CRD_DCP_UDP};
        crdi_testbench_options o = crdi_testbench_defaults(kinds[i]);
        o.speed_up = 300;
        o.address = where;
        check_ok(testnet_join(f->t, where.ip, &f->nets[i]));
        check_ok(crd_dcp_net_listen(f->nets[i], &where));
        check_ok(crdi_testbench_create(f->ctx, &o, &f->b[i]));
        const crd_dcp_link link = crd_dcp_net_link(f->nets[i]);
        check_ok(crdi_testbench_start(f->b[i], &link, &opt));
        testnet_attach(f->nets[i], crdi_testbench_slave(f->b[i]));
    }
    crd_dcp_master_options o = crd_dcp_master_defaults();
    o.patience = 1800;
    o.cancelled = look;
    o.user = f;
    check_ok(crd_dcp_master_create(f->ctx, f->net, &o, &f->m));
}

static void close_field(field* f)
{
    crd_dcp_master_destroy(f->m);
    for (int i = 0; i < BENCHES; i++) {
        testnet_attach(f->nets[i], NULL);
        crdi_testbench_destroy(f->b[i]);
        crd_dcp_net_destroy(f->nets[i]);
    }
    crd_dcp_net_destroy(f->net);
    testnet_destroy(f->t);
    crd_context_destroy(f->network);
    crd_context_destroy(f->ctx);
}

static void plan(field* f)
{
    static const char* const inputs[BENCHES][4] = {
        {"speed_ref", "pedal_ref", "coolant_ref", "oil_ref"},
        {"speed_ref", "torque_ref", "voltage_ref", "oil_ref"}};
    static const double set[BENCHES][4] = {{3000, 30, 60, 60}, {3000, 40, 350, 30}};
    static const char* const initial[BENCHES] = {"coolant 60 degC; oil 60 degC; tolerance 2 K",
                                                 "oil 60 degC; tolerance 1 K"};
    for (int i = 0; i < BENCHES; i++) {
        const crd_dcp_description* d = crdi_testbench_description(f->b[i]);
        const crd_dcp_slave_spec spec = {.name = names[i],
                                         .description = d,
                                         .control = {(uint32_t)(BENCH + i), 8080, CRD_DCP_UDP},
                                         .mode = CRD_DCP_SRT,
                                         .numerator = 1,
                                         .denominator = 100,
                                         .alive = alive};
        int in[5];
        check_ok(crd_dcp_master_add(f->m, &spec, NULL));
        for (int k = 0; k < 4; k++) {
            in[k] = crdi_dcp_find_name(d, inputs[i][k]);
            check(in[k] >= 0);
        }
        in[4] = crdi_dcp_find_name(d, "bench.sequence");
        check_ok(crd_dcp_master_feed(f->m, i, in, 5));
        for (int k = 0; k < 4; k++) {
            crd_dcp_master_slot(f->m, i, in[k])->real[0] = set[i][k];
        }
        const int extension = crdi_dcp_find_name(d, "bench.extension");
        check_ok(crd_dcp_master_set(f->m, i, extension));
        crd_dcp_master_slot(f->m, i, extension)->integer[0] = 1;
        const int text = crdi_dcp_find_name(d, "bench.initial");
        check_ok(crd_dcp_master_set(f->m, i, text));
        crd_dcp_slot* v = crd_dcp_master_slot(f->m, i, text);
        *v->byte_count = (uint32_t)strlen(initial[i]);
        memcpy(v->bytes, initial[i], strlen(initial[i]));
    }
}

static crd_status whole_session(field* f)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_master_configure(f->m));
    CRD_TRY(crd_dcp_master_initialize(f->m, -1));
    CRD_TRY(crd_dcp_master_run(f->m, 0.5, NULL));
    for (double end = testnet_now(f->t) + 3; testnet_now(f->t) < end;) {
        for (int i = 0; i < BENCHES; i++) {
            const int number =
                crdi_dcp_find_name(crdi_testbench_description(f->b[i]), "bench.sequence");
            crd_dcp_master_slot(f->m, i, number)->integer[0]++;
            CRD_TRY(crd_dcp_master_send(f->m, i));
        }
        CRD_TRY(crd_dcp_master_wait(f->m, testnet_now(f->t) + 0.01));
        (void)look(f);
    }
fail:
    return st;
}

static void go_on(field* f, double until)
{
    while (testnet_now(f->t) - begin < until) {
        (void)testnet_advance(f->t, testnet_now(f->t) + 0.01);
        (void)look(f);
    }
}

// One session; where the bench was when it died.
static crd_dcp_state one_dies(int dies, double at, double pause)
{
    field f;
    open_field(&f, dies, at, pause);
    plan(&f);
    const crd_status st = whole_session(&f);
    const crd_status down = crd_dcp_master_stop(f.m);
    if (isinf(at)) {
        check_ok(st);
        check_ok(down);
        check(f.fastest > 2500); // set values do turn them
    } else if (isfinite(f.died)) {
        const int other = !dies;
        const double slow = crdi_plant_type_of(kinds[other])->stop_time;
        go_on(&f, f.died + alive + repeats + slow + 1 + (isinf(pause) ? 0 : pause + 10));
        check(f.driven[other] <= f.died + alive + repeats);
        check(f.turning[other] <= f.died + alive + repeats + slow);
        check(speed_of(&f, other) < 1);
        if (isfinite(pause)) { // it went on: nobody drives it, or for the watchdog only
            check(f.driven[dies] <= f.died + pause + watchdog);
            check(f.turning[dies] <=
                  f.died + pause + alive + crdi_plant_type_of(kinds[dies])->stop_time);
            check(speed_of(&f, dies) < 1);
        }
    }
    const crd_dcp_state in = isfinite(f.died) ? f.in : CRD_DCP_STATE_COUNT;
    close_field(&f);
    return in;
}

static void when_one_of_two_benches_dies_the_other_comes_to_rest(void** state)
{
    bool met[CRD_DCP_STATE_COUNT + 1] = {false};
    int sessions = 0;
    (void)one_dies(0, INFINITY, INFINITY);
    const double step = whole ? 0.05 : 0.8, fine = whole ? 0.0025 : 0.01; // until it is configured
    for (int dies = 0; dies < BENCHES; dies++) {
        for (int stops = 0; stops < 2; stops++) {
            crd_dcp_state in = CRD_DCP_ALIVE;
            for (double at = 0.0015; in != CRD_DCP_STATE_COUNT; at += at < 0.1 ? fine : step) {
                in = one_dies(dies, at, stops ? 5 : INFINITY);
                met[in] = true;
                sessions++;
            }
        }
    }
    print_message("%d sessions; died in", sessions);
    for (int i = 0; i < CRD_DCP_STATE_COUNT; i++) {
        if (met[i]) { print_message(" %s", crd_dcp_state_name(i)); }
    }
    print_message("\n");
    static const crd_dcp_state all[] = {CRD_DCP_CONFIGURATION, CRD_DCP_CONFIGURING, CRD_DCP_RUNNING,
                                        CRD_DCP_STOPPING};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check(met[all[i]]);
    }
}

// Its process looks at the net each `pause` only, and what it finds there moves nobody to stop the
// session: a thread for heartbeats beside one that waits for a disk, or one that gets no time.
static void dies_beside_a_busy_master(int dies, double pause)
{
    field f;
    open_field(&f, dies, INFINITY, INFINITY);
    plan(&f);
    check_ok(crd_dcp_master_configure(f.m));
    const double conditioned = testnet_now(f.t) - begin;
    double next = conditioned;
    f.at = conditioned + 10;
    for (double t = conditioned; t < conditioned + 60; t = testnet_now(f.t) - begin) {
        if (t >= next) {
            (void)crd_dcp_master_poll(f.m);
            next = t + pause;
        }
        go_on(&f, t + 0.005);
        if (t < f.at) { check(speed_of(&f, !dies) > 50); } // it is waited for
    }
    check_near(f.died, f.at, 0.02);
    // The deadman of a bench has the same time as the master; from there a second is enough.
    check(f.turning[!dies] <= f.died + alive + heart + 1);
    (void)crd_dcp_master_stop(f.m);
    close_field(&f);
}

static void a_master_that_is_busy_keeps_no_bench_turning_when_another_dies(void** state)
{
    for (int dies = 0; dies < BENCHES; dies++) {
        dies_beside_a_busy_master(dies, 0.1);
        dies_beside_a_busy_master(dies, 1);
        dies_beside_a_busy_master(dies, 2.9);
    }
}

// Who is stopped first is not the one that does not answer.
static void a_bench_that_is_conditioned_is_stopped_before_a_dead_one_is_waited_for(void** state)
{
    for (int dies = 0; dies < BENCHES; dies++) {
        field f;
        open_field(&f, dies, INFINITY, INFINITY);
        plan(&f);
        check_ok(crd_dcp_master_configure(f.m));
        f.at = testnet_now(f.t) - begin;
        (void)look(&f);
        check(speed_of(&f, !dies) > 50);
        check_int(crd_dcp_master_initialize(f.m, dies), CRD_E_UNIT);
        const double noticed = testnet_now(f.t) - begin;
        (void)crd_dcp_master_stop(f.m);
        check(f.turning[!dies] <= noticed + 0.45); // the engine's stop; 0.5 s for the dead one more
        close_field(&f);
    }
}

int main(int argc, char** argv)
{
    whole = argc > 1 && strcmp(argv[1], "long") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_one_of_two_benches_dies_the_other_comes_to_rest),
        cmocka_unit_test(a_master_that_is_busy_keeps_no_bench_turning_when_another_dies),
        cmocka_unit_test(a_bench_that_is_conditioned_is_stopped_before_a_dead_one_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
