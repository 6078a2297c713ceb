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

#include <stdio.h>

#include "shared/testbench_bench.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"

typedef struct place {
    check_allocator allocator, far_allocator;
    crd_context *ctx, *far;
    testnet* network;
    crd_dcp_net* net;
    crdi_testbench* bench;
    crd_system* sys;
    crd_master* m;
} place;

static place* the_place;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(the_place->network, 0x7F000001, out);
}

static void open_place(place* p)
{
    static const char* const pair = "speed_ref:torque";
    crdi_testbench_options o = crdi_testbench_defaults(CRDI_TESTBENCH_EM);
    *p = (place){0};
    p->ctx = check_context(&p->allocator);
    p->far = check_context(&p->far_allocator);
    check_ok(testnet_create(p->far, &(testnet_faults){.delay = 1e-3, .seed = 1}, &p->network));
    check_ok(testnet_join(p->network, 0x7F000001, &p->net));
    check_ok(crd_dcp_net_listen(p->net, &o.address));
    o.pairs = &pair;
    o.pair_count = 1;
    check_run(crdi_testbench_create(p->far, &o, &p->bench), p->far);
    const crd_dcp_link link = crd_dcp_net_link(p->net);
    check_ok(crdi_testbench_start(p->bench, &link, NULL));
    testnet_attach(p->net, crdi_testbench_slave(p->bench));
    crd_text text;
    crd_text_init(&text, p->far);
    check_ok(crd_dcp_write(crdi_testbench_description(p->bench), &text));
    FILE* f = fopen(TEST_BUILD_DIR "/bench_pair.dcpx", "wb");
    check(f && fwrite(text.data, 1, text.length, f) == text.length && fclose(f) == 0);
    crd_text_clear(&text);
    the_place = p;
    crdi_session_open_net = open_net;
    crdi_session_has_thread = false;
}

static void close_place(place* p)
{
    crd_master_destroy(p->m);
    crd_system_destroy(p->sys);
    testnet_attach(p->net, NULL);
    crdi_testbench_destroy(p->bench);
    crd_dcp_net_destroy(p->net);
    testnet_destroy(p->network);
    crd_context_destroy(p->far);
    crd_context_destroy(p->ctx);
    check_int(p->far_allocator.live, 0);
    check_int(p->allocator.live, 0);
    crdi_session_open_net = crd_dcp_net_create;
    crdi_session_has_thread = true;
}

static void begin(place* p, const char* impedance)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    p->sys = new_system(p->ctx, 0.01, 20);
    const int e = add_unit(p->sys, "engine", &engine_model, 0);
    set(p->sys, e, "loss", "0.3");
    set(p->sys, e, "J", "0.5");
    u.name = "em";
    u.source = CRD_UNIT_DCP;
    u.path = TEST_BUILD_DIR "/bench_pair.dcpx";
    u.address = "udp://127.0.0.1:8080";
    u.session.mode = CRD_DCP_MODE_SRT;
    u.bench = (crd_bench_spec){
        .used = true,
        .plan = "speed 0..4000 1/min; torque -100..100 N.m; avoid speed 0..50 1/min with torque",
        .watchdog = NAN};
    check_ok(crd_system_add_unit(p->sys, &u, NULL));
    wire(p->sys, 0, "w", 1, "speed_ref");
    wire(p->sys, 1, "torque", 0, "M");
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
        check_int(crd_dcp_bench_get_state(crdi_testbench_bench(p.bench)).phase, CRD_DCP_BENCH_SAFE);
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
        cmocka_unit_test(a_port_at_what_is_not_measured_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
