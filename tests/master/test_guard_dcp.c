// The guard's ladder with a bench that is a DCP slave, on a network in memory with a virtual clock:
// a loop that its latency makes diverge gets a calmer element, then the stand-in, then the run ends
// and the slave is left at rest.
#include "models.h"
#include "testnet/testnet.h"

#include "../dcp/rig.h"
#include "master/master.h"
#include "unit/dcp/dcp_unit.h"
#include "unit/standby/standby.h"

static const char rig_file[] = TEST_SOURCE_DIR "/dcp/data/rig.dcpx";
static const char record[] = TEST_BUILD_DIR "/guard_dcp.mf4";
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

static rig* add_slave_at(testnet* network, const crd_dcp_description* d, uint16_t port,
                         crd_dcp_net** net)
{
    rig* r = calloc(1, sizeof *r);
    check(r != NULL);
    r->ctx = check_context(&r->allocator);
    r->r = 0.5;
    r->kp = 1;
    r->temperatures = 3;
    check_ok(testnet_join(network, 0x7F000001, net));
    crd_dcp_address at = {0x7F000001, port, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(*net, &at));
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(*net);
    check_ok(crd_dcp_slave_create(r->ctx, d, &plant, &link, NULL, &r->slave));
    testnet_attach(*net, r->slave);
    return r;
}

static rig* add_slave(testnet* network, const crd_dcp_description* d, crd_dcp_net** net)
{
    return add_slave_at(network, d, 8080, net);
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
    s->results.path = record;
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

// When something of this kind with these words stands in the record; fails if it does not.
static double recorded(crd_event_kind kind, const char* words)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_recording* r = NULL;
    double time = NAN;
    check_run(crd_recording_open(ctx, record, &r), ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    for (int i = 0; i < info->event_count; i++) {
        const crd_event_info* e = &info->events[i];
        if (e->kind == kind && strstr(e->text, words)) { time = e->time; }
    }
    crd_recording_close(r);
    crd_context_destroy(ctx);
    if (isnan(time)) { fail_msg("the record has no event '%s'", words); }
    return time;
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
    const double element = recorded(CRD_EVENT_WARNING, "a calmer element (zoh)");
    const double model = recorded(CRD_EVENT_WARNING, "the stand-ins of its benches");
    const double stop = recorded(CRD_EVENT_ERROR, "the loop");
    check(element > 0 && element < model && model < stop);
    check_near(stop, o.time, 1e-9);
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

// A bench without a stand-in has no second rung: refused by name, before anything turns.
static void a_ladder_without_a_stand_in_is_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const testnet_faults none = {.delay = 1e-4, .seed = 1, .start = 1794710000.25};
    crd_dcp_description* d = NULL;
    crd_dcp_net* net = NULL;
    crd_unit_spec stand_in;
    crd_master* m = NULL;
    check_ok(testnet_create(ctx, &none, &the_network));
    check_ok(crd_dcp_load(ctx, rig_file, &d, NULL, NULL));
    crdi_session_open_net = open_net;
    rig* r = add_slave(the_network, d, &net);
    crd_system* s = late_loop(ctx, &stand_in, "-4");
    s->units[0].standby = (crd_standby_spec){0};
    s->run.guard.place = (crd_place){"late.yaml", 9};
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_status(crd_master_initialize(m), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "late.yaml:9: guard: ladder: unit 'bench' is in a loop");
    check_contains(crd_error_text(ctx), "no stand-in");
    check_contains(crd_error_text(ctx), "expected 'standby:' in the unit, or guard: stop");
    check(r->speed == 0);
    crd_master_destroy(m);
    testnet_attach(net, NULL);
    crd_dcp_net_destroy(net);
    rig_destroy(r);
    crd_system_destroy(s);
    crd_dcp_description_destroy(d);
    testnet_destroy(the_network);
    crd_context_destroy(ctx);
    crdi_session_open_net = crd_dcp_net_create;
}

// ---- from slave to slave -----------------------------------------------------------------------

static void add_bench(crd_system* s, const char* name, const char* address)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.source = CRD_UNIT_DCP;
    u.path = rig_file;
    u.address = address;
    u.session.mode = CRD_DCP_MODE_SRT;
    u.session.resolution = 0.01;
    check_ok(crd_system_add_unit(s, &u, NULL));
}

// a' = 20 u - 2 a - 100 b, b' = 20 a - 2 b: coupled exactly a ringing of 7 Hz that decays; with
// samples every 10 ms that the slaves send each other it grows.
static void what_goes_from_slave_to_slave_is_watched(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const testnet_faults none = {.delay = 1e-4, .seed = 1, .start = 1794710000.25};
    crd_dcp_description* d = NULL;
    crd_dcp_net* net[2];
    crd_master* m = NULL;
    check_ok(testnet_create(ctx, &none, &the_network));
    check_ok(crd_dcp_load(ctx, rig_file, &d, NULL, NULL));
    crdi_session_open_net = open_net;
    rig* a = add_slave_at(the_network, d, 8080, &net[0]);
    rig* b = add_slave_at(the_network, d, 8090, &net[1]);
    crd_system* s = new_system(ctx, 0.01, 20);
    add_bench(s, "a", "udp://127.0.0.1:8080");
    add_bench(s, "b", "udp://127.0.0.1:8090");
    const int c = add_unit(s, "drive", &gain_model, 0);
    check_ok(crd_system_set(s, c, "a", "0", (crd_place){"", 0}));
    check_ok(crd_system_set(s, c, "b", "1e-3", (crd_place){"", 0}));
    check_ok(crd_system_set(s, c, "c", "0", (crd_place){"", 0}));
    wire(s, 0, "shaft.speed", 1, "drive.u_dc")->convert_units = false;
    wire(s, 1, "shaft.speed", 0, "load.torque")->convert_units = false;
    wire(s, c, "y", 0, "drive.u_dc")->convert_units = false;
    s->run.guard.action = CRD_GUARD_STOP;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_master_report* r = crd_master_get_report(m);
    printf("at %g s, speeds %.3g, %.3g: %s\n", r->time, a->speed, b->speed, r->guard.text);
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        check_int(k->routed, k->from.member != c);
    }
    check_int(r->end, CRD_END_GUARD);
    check(r->guard.state >= CRD_GUARD_UNDECIDED && r->guard.stopped);
    check_contains(r->guard.text, "a.shaft.speed -> b.drive.u_dc");
    crd_master_destroy(m);
    rig* rigs[] = {a, b};
    for (int i = 0; i < 2; i++) {
        check_int(crd_dcp_slave_state(rigs[i]->slave), CRD_DCP_ALIVE);
        testnet_attach(net[i], NULL);
        crd_dcp_net_destroy(net[i]);
        rig_destroy(rigs[i]);
    }
    crd_system_destroy(s);
    crd_dcp_description_destroy(d);
    testnet_destroy(the_network);
    crd_context_destroy(ctx);
    crdi_session_open_net = crd_dcp_net_create;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diverging_bench_gets_every_rung),
        cmocka_unit_test(a_calmer_element_may_do),
        cmocka_unit_test(a_ladder_without_a_stand_in_is_refused),
        cmocka_unit_test(what_goes_from_slave_to_slave_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
