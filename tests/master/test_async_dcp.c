// DCP slaves with a budget, on a network in memory with a virtual clock: the steps of a slave wait
// on a thread of their own.
#include "models.h"
#include "testnet/testnet.h"

#include <stdio.h>

#include "../dcp/rig.h"
#include "master/step/async.h"
#include "unit/dcp/dcp_unit.h"

static const char rig_file[] = TEST_SOURCE_DIR "/dcp/data/rig.dcpx";
static const double YEARS = 1e9;

enum { SLAVES = 2 };
typedef struct world {
    crd_context* ctx;
    testnet* network;
    crd_dcp_description* d;
    crd_dcp_net* nets[SLAVES];
    rig* rigs[SLAVES];
    crd_system* s;
    crd_master* m;
} world;

static testnet* the_network;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(the_network, 0x7F000001, out);
}

static void add_slave(world* w, int k)
{
    rig* r = calloc(1, sizeof *r);
    check(r != NULL);
    r->ctx = check_context(&r->allocator);
    r->r = 0.5;
    r->kp = 1;
    r->temperatures = 3;
    check_ok(testnet_join(w->network, 0x7F000001, &w->nets[k]));
    crd_dcp_address at = {0x7F000001, (uint16_t)(8080 + k), CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(w->nets[k], &at));
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(w->nets[k]);
    check_ok(crd_dcp_slave_create(r->ctx, w->d, &plant, &link, NULL, &r->slave));
    testnet_attach(w->nets[k], r->slave);
    w->rigs[k] = r;
}

// clock -> a -> b -> sink
static void open_world(world* w, double budget_a, double budget_b, crd_dcp_mode mode)
{
    static const char* const names[] = {"a", "b"};
    static const char* const addresses[] = {"udp://127.0.0.1:8080", "udp://127.0.0.1:8081"};
    *w = (world){.ctx = crd_context_create(NULL)};
    const testnet_faults none = {.delay = 1e-4, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(w->ctx, &none, &w->network));
    check_ok(crd_dcp_load(w->ctx, rig_file, &w->d, NULL, NULL));
    the_network = w->network;
    crdi_session_open_net = open_net;
    w->s = new_system(w->ctx, 0.01, 0.2);
    add_unit(w->s, "source", &clock_model, 0);
    for (int k = 0; k < SLAVES; k++) {
        add_slave(w, k);
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = names[k];
        u.source = CRD_UNIT_DCP;
        u.path = rig_file;
        u.address = addresses[k];
        u.session.resolution = 0.01;
        u.session.mode = mode;
        u.budget = k == 0 ? budget_a : budget_b;
        u.place = (crd_place){"bench.yaml", 3 + k};
        check_ok(crd_system_add_unit(w->s, &u, NULL));
    }
    add_unit(w->s, "sink", &euler_model, 0);
    wire(w->s, 0, "y", 1, "drive.u_dc");
    wire(w->s, 1, "shaft.speed", 2, "drive.u_dc")->convert_units = false;
    wire(w->s, 2, "shaft.speed", 3, "u");
}

static void start(world* w)
{
    check_run(crd_master_create(w->ctx, w->s, NULL, &w->m), w->ctx);
    check_run(crd_master_initialize(w->m), w->ctx);
}

static void close_world(world* w)
{
    crd_master_destroy(w->m);
    for (int k = 0; k < SLAVES; k++) {
        rig* r = w->rigs[k];
        check_int(crd_dcp_slave_state(r->slave), CRD_DCP_ALIVE);
        testnet_attach(w->nets[k], NULL);
        crd_dcp_net_destroy(w->nets[k]);
        rig_destroy(r);
    }
    crd_system_destroy(w->s);
    crd_dcp_description_destroy(w->d);
    testnet_destroy(w->network);
    crd_context_destroy(w->ctx);
    crdi_session_open_net = crd_dcp_net_create;
}

static void run(double budget_a, double budget_b, double out[4])
{
    world w;
    open_world(&w, budget_a, budget_b, CRD_DCP_MODE_NRT);
    start(&w);
    while (crd_master_ended(w.m) == CRD_END_NONE) {
        check_run(crd_master_advance(w.m, 1), w.ctx);
    }
    out[0] = value(w.m, "a.shaft.speed");
    out[1] = value(w.m, "b.shaft.speed");
    out[2] = value(w.m, "sink.y");
    out[3] = value(w.m, "a.bench.ticks");
    crd_link_stats k = {0};
    check(crdi_member_link(w.m, 1, &k));
    check_int(k.in, 20);
    check_int(k.late, 0);
    check(!crdi_member_link(w.m, 0, &k));
    close_world(&w);
}

static void slaves_on_threads_of_their_own_give_the_same_bits(void** state)
{
    (void)state;
    double want[4], got[4];
    run(NAN, NAN, want);
    check_int(want[3], 20);
    check(want[2] > 0);
    static const double budgets[][2] = {{YEARS, YEARS}, {YEARS, NAN}, {NAN, YEARS}};
    for (int i = 0; i < 3; i++) {
        run(budgets[i][0], budgets[i][1], got);
        check(memcmp(want, got, sizeof want) == 0);
    }
}

// ---- a slave that computes for long ------------------------------------------------------------

static sem_t entered, gate;
static atomic_bool closed;

static void stop_in_step(rig* r)
{
    (void)r;
    if (!atomic_load(&closed)) { return; }
    sem_post(&entered);
    while (sem_wait(&gate) != 0) {}
}

static void a_slave_that_is_late_is_held_and_catches_up_in_steps_of_its_own(void** state)
{
    (void)state;
    world w;
    bool now = false;
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    atomic_store(&closed, false);
    open_world(&w, YEARS, YEARS, CRD_DCP_MODE_NRT);
    w.rigs[1]->meddle = stop_in_step;
    start(&w);
    check_run(crd_master_advance(w.m, 4), w.ctx);
    const double held = value(w.m, "b.shaft.speed");
    crdi_runner* r = w.m->async->of[2];
    atomic_store(&closed, true);
    r->budget = w.m->async->of[1]->budget = 0;
    check_run(crd_master_advance(w.m, 1), w.ctx);
    while (sem_wait(&entered) != 0) {}
    check_run(crd_master_advance(w.m, 4), w.ctx);
    check_int(crdi_async_late(w.m, 2, &now), 5);
    check(now);
    check_near(value(w.m, "sink.u"), held, 0);
    crd_link_stats k = {0};
    check(crdi_member_link(w.m, 2, &k)); // as it was; the slave is not asked now
    atomic_store(&closed, false);
    sem_post(&gate);
    for (int i = 1; i <= 2; i++) { // a, of the same session, may have waited for b
        crdi_runner* each = w.m->async->of[i];
        if (each->handed) {
            while (sem_wait(&each->done) != 0) {}
            sem_post(&each->done);
        }
        each->budget = (int64_t)(YEARS * 1e9);
    }
    check_run(crd_master_advance(w.m, 1), w.ctx);
    check_int(crdi_async_late(w.m, 2, &now), 5);
    check(!now);
    check_int((int64_t)value(w.m, "b.bench.ticks"), 10); // none is missing
    check_int((int64_t)value(w.m, "a.bench.ticks"), 10);
    check_int(w.rigs[1]->last_steps, 1);
    close_world(&w);
}

static void a_slave_in_real_time_needs_no_budget(void** state)
{
    (void)state;
    world w;
    open_world(&w, 1e-3, NAN, CRD_DCP_MODE_SRT);
    check_status(crd_master_create(w.ctx, w.s, NULL, &w.m), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(w.ctx), "bench.yaml:3: unit 'a' has a budget");
    check_contains(crd_error_text(w.ctx), "real time");
    close_world(&w);
}

// Time passes there by itself: another pace cannot be kept.
static void a_slave_in_real_time_wants_its_pace(void** state)
{
    (void)state;
    world w;
    open_world(&w, NAN, NAN, CRD_DCP_MODE_SRT);
    w.s->run.pace.factor = 2;
    check_status(crd_master_create(w.ctx, w.s, NULL, &w.m), CRD_E_RANGE);
    check_contains(crd_error_text(w.ctx), "unit 'a' runs in real time");
    check_contains(crd_error_text(w.ctx), "expected 'pace: realtime'");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slaves_on_threads_of_their_own_give_the_same_bits),
        cmocka_unit_test(a_slave_that_is_late_is_held_and_catches_up_in_steps_of_its_own),
        cmocka_unit_test(a_slave_in_real_time_needs_no_budget),
        cmocka_unit_test(a_slave_in_real_time_wants_its_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
