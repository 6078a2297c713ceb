// The guard's ladder with a bench that is a DCP slave, on a network in memory with a virtual clock:
// a loop that its latency makes diverge gets a calmer element, then the stand-in, then the run ends
// and the slave is left at rest.
#include "models.h"
#include "testnet/testnet.h"

#include "../dcp/rig.h"
#include "unit/dcp/dcp_unit.h"
#include "unit/standby/standby.h"

static const char rig_file[] = TEST_SOURCE_DIR "/dcp/data/rig.dcpx";
static testnet* the_network;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(the_network, 0x7F000001, out);
}

static char said[2][900];
static int rungs;
static void note_rungs(void* user, crd_level level, const char* text)
{
    (void)user;
    if (level != CRD_LOG_WARNING || !strstr(text, "the guard has put in") || rungs == 2) { return; }
    snprintf(said[rungs++], sizeof said[0], "%s", text);
}

static rig* add_slave(testnet* network, const crd_dcp_description* d, crd_dcp_net** net)
{
    rig* r = calloc(1, sizeof *r);
    check(r != NULL);
    r->ctx = check_context(&r->allocator);
    r->r = 0.5;
    r->kp = 1;
    r->temperatures = 3;
    check_ok(testnet_join(network, 0x7F000001, net));
    crd_dcp_address at = {0x7F000001, 8080, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(*net, &at));
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(*net);
    check_ok(crd_dcp_slave_create(r->ctx, d, &plant, &link, NULL, &r->slave));
    testnet_attach(*net, r->slave);
    return r;
}

// speed' = 20 u - 2 speed on the bench and in its stand-in; u = factor speed + 1e-6, three steps
// later each way: the exact loop is stable, what is extrapolated over 60 ms is not.
static crd_system* late_loop(crd_context* ctx, crd_unit_spec* stand_in, const char* factor)
{
    static const crd_setting settings[] = {{.variable = "a", .text = "20"},
                                           {.variable = "b", .text = "-2"},
                                           {.variable = "x", .text = "0"}};
    static const crd_name_pair names[] = {{"drive.u_dc", "u"}, {"shaft.speed", "y"}};
    static const crd_coupling_spec late = {
        .element = "{\"algorithm\": \"foh\"}",
        .channel = {.step = NAN, .burst = 1, .seed = 1, .delay = 30e-3},
        .has_channel = true,
    };
    crd_system* s = new_system(ctx, 0.01, 20);
    *stand_in = crd_unit_spec_defaults();
    stand_in->source = CRD_UNIT_NATIVE;
    stand_in->model = &euler_model;
    stand_in->parameters = settings;
    stand_in->parameter_count = 3;
    crd_unit_spec bench = crd_unit_spec_defaults();
    bench.name = "bench";
    bench.source = CRD_UNIT_DCP;
    bench.path = rig_file;
    bench.address = "udp://127.0.0.1:8080";
    bench.session.resolution = 0.01;
    bench.session.mode = CRD_DCP_MODE_NRT;
    bench.standby.model = stand_in;
    bench.standby.names = names;
    bench.standby.name_count = 2;
    bench.place = (crd_place){"bench.yaml", 3};
    check_ok(crd_system_add_unit(s, &bench, NULL));
    const int c = add_unit(s, "control", &gain_model, 0);
    check_ok(crd_system_set(s, c, "a", factor, (crd_place){"", 0}));
    check_ok(crd_system_set(s, c, "b", "1e-6", (crd_place){"", 0}));
    check_ok(crd_system_set(s, c, "c", "0", (crd_place){"", 0}));
    wire(s, 0, "shaft.speed", c, "u")->convert_units = false;
    wire(s, c, "y", 0, "drive.u_dc")->convert_units = false;
    for (int i = 0; i < s->connection_count; i++) {
        s->connections[i].coupling = &late;
    }
    s->run.guard.action = CRD_GUARD_LADDER;
    return s;
}

typedef struct outcome {
    crd_end end;
    bool stopped;
    int64_t takeovers;
    double time, speed, u; // when it ended; of the bench
} outcome;

static outcome run_with(const char* factor)
{
    crd_context_options o = crd_context_defaults();
    o.log = note_rungs;
    crd_context* ctx = crd_context_create(&o);
    const testnet_faults none = {.delay = 1e-4, .seed = 1, .start = 1794710000.25};
    crd_dcp_description* d = NULL;
    crd_dcp_net* net = NULL;
    crd_unit_spec stand_in;
    crd_master* m = NULL;
    rungs = 0;
    check_ok(testnet_create(ctx, &none, &the_network));
    check_ok(crd_dcp_load(ctx, rig_file, &d, NULL, NULL));
    crdi_session_open_net = open_net;
    crdi_standby_has_threads = false;
    rig* r = add_slave(the_network, d, &net);
    crd_system* s = late_loop(ctx, &stand_in, factor);
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_master_report* report = crd_master_get_report(m);
    check(report->units[0].standby != NULL);
    const outcome out = {.end = report->end,
                         .stopped = report->guard.stopped,
                         .takeovers = report->units[0].standby->takeovers,
                         .time = report->time,
                         .speed = r->speed,
                         .u = r->u};
    crd_master_destroy(m);
    check_int(crd_dcp_slave_state(r->slave), CRD_DCP_ALIVE); // at rest, and released
    testnet_attach(net, NULL);
    crd_dcp_net_destroy(net);
    rig_destroy(r);
    crd_system_destroy(s);
    crd_dcp_description_destroy(d);
    testnet_destroy(the_network);
    crd_context_destroy(ctx);
    crdi_session_open_net = crd_dcp_net_create;
    return out;
}

static void a_diverging_bench_gets_every_rung(void** state)
{
    (void)state;
    const outcome o = run_with("-4");
    check_int(rungs, 2);
    check_contains(said[0], "a calmer element (zoh)");
    check_contains(said[1], "the stand-ins of its benches");
    check_int(o.end, CRD_END_GUARD);
    check(o.stopped && o.time < 1);
    check_int(o.takeovers, 1);
    check(fabs(o.u) < 48); // what the bench takes; it began with 1e-6
}

// Without extrapolation the loop holds: nothing else is done.
static void a_calmer_element_may_do(void** state)
{
    (void)state;
    const outcome o = run_with("-0.6");
    check_int(rungs, 1);
    check_int(o.end, CRD_END_STOP_TIME);
    check_int(o.takeovers, 0);
    check(fabs(o.speed) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diverging_bench_gets_every_rung),
        cmocka_unit_test(a_calmer_element_may_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
