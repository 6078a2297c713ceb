// DCP slaves as units, on a network in memory with a virtual clock.
#include <math.h>

#include "../dcp/rig.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"
#include "unit_test.h"

static const char rig_file[] = TEST_SOURCE_DIR "/dcp/data/rig.dcpx";

// ---- slaves on a network -----------------------------------------------------------------------

enum { MOST = 4 };
typedef struct world {
    check_allocator allocator;
    crd_context* ctx;
    testnet* network;
    crd_dcp_description* d;
    crd_dcp_net* nets[MOST];
    rig* rigs[MOST];
    int count;
} world;

static world* the_world;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    const crd_status st = testnet_join(the_world->network, 0x7F000001, out);
    return st < 0 ? crdi_fail(ctx, st, "out of memory") : st;
}

static world* world_create(void)
{
    world* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    const testnet_faults none = {.delay = 1e-4, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(w->ctx, &none, &w->network));
    check_ok(crd_dcp_load(w->ctx, rig_file, &w->d, NULL, NULL));
    the_world = w;
    crdi_session_open_net = open_net;
    return w;
}

static rig* world_add(world* w, uint16_t port, uint8_t transport)
{
    rig* r = calloc(1, sizeof *r);
    const int k = w->count++;
    r->ctx = check_context(&r->allocator);
    r->r = 0.5;
    r->kp = 1;
    r->temperatures = 3;
    crd_dcp_net* n = NULL;
    check_ok(testnet_join(w->network, 0x7F000001, &n));
    crd_dcp_address at = {0x7F000001, port, transport};
    check_ok(crd_dcp_net_listen(n, &at));
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(n);
    check_ok(crd_dcp_slave_create(r->ctx, w->d, &plant, &link, NULL, &r->slave));
    testnet_attach(n, r->slave);
    w->nets[k] = n;
    w->rigs[k] = r;
    return r;
}

// Everybody is ALIVE at the end.
static void world_destroy(world* w)
{
    for (int i = 0; i < w->count; i++) {
        rig* r = w->rigs[i];
        check_int(crd_dcp_slave_state(r->slave), CRD_DCP_ALIVE);
        testnet_attach(w->nets[i], NULL);
        crd_dcp_net_destroy(w->nets[i]);
        rig_destroy(r);
    }
    crd_dcp_description_destroy(w->d);
    testnet_destroy(w->network);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
    crdi_session_open_net = crd_dcp_net_create;
}

static crd_unit_spec slave_spec(const char* name, const char* address)
{
    crd_unit_spec s = crd_unit_spec_defaults();
    s.name = name;
    s.source = CRD_UNIT_DCP;
    s.path = rig_file;
    s.address = address;
    s.session.resolution = 0.01;
    return s;
}

static crd_unit* create_unit(world* w, crd_unit_store* store, const crd_unit_spec* spec)
{
    crd_unit* u = NULL;
    const crd_status st = crd_unit_create_shared(w->ctx, store, spec, &u);
    if (st < 0) { fail_msg("create: %s", crd_error_text(w->ctx)); }
    return u;
}

static void enter(crd_unit* u)
{
    const crd_experiment e = {.start = 2};
    check_ok(crd_unit_instantiate(u));
    const crd_status st = u->ops->enter_initialization(u, &e);
    if (st < 0) { fail_msg("enter: %s", crd_error_text(u->ctx)); }
}

static void advance(crd_unit* u, double t, double h)
{
    const crd_status st = u->ops->step(u, t, h);
    if (st < 0) { fail_msg("step at %g: %s", t, crd_error_text(u->ctx)); }
}

// ---- descriptions ------------------------------------------------------------------------------

static void a_slave_description_becomes_variables(void** state)
{
    (void)state;
    world* w = world_create();
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    crd_unit* u = create_unit(w, NULL, &spec);
    check_text(u->info.kind, "DCP NRT");
    check_text(u->info.model, "MotorTestBench");
    check_near(u->info.step, 0.01, 0);
    check_near(u->info.fixed_step, 0, 0);
    check_int(u->info.variable_count, w->d->variable_count);
    const int32_t speed = u->ops->find(u, "shaft.speed");
    const crd_variable* v = &u->info.variables[speed];
    check_int(v->type, CRD_FLOAT64);
    check_int(v->causality, CRD_OUTPUT);
    check_text(v->unit, "rad/s");
    check_near(v->max, 1000, 0);
    crd_dimension dim;
    check(crdi_unit_dimension(u, speed, &dim));
    check(dim.s == -1 && dim.rad == 1 && dim.factor == 1);
    const int32_t temps = u->ops->find(u, "bench.temps");
    check_int(u->info.variables[temps].size, 3);
    check_int(u->info.variables[temps].rank, 1);
    check_int(crdi_unit_extent(u, temps, 0), 3);
    check_int(u->info.variables[u->ops->find(u, "cmd.blob")].type, CRD_BINARY);
    check_int(u->info.variables[u->ops->find(u, "ctrl.limit")].type, CRD_INT16);
    // During the initialisation the speed follows the voltage alone; steps come in between later.
    check(crd_unit_depends(u, speed, u->ops->find(u, "drive.u_dc"), true));
    check(!crd_unit_depends(u, speed, u->ops->find(u, "load.torque"), true));
    check(!crd_unit_depends(u, speed, u->ops->find(u, "drive.u_dc"), false));
    bound b = bind_names(u, "drive.R bench.name drive.u_dc");
    get(&b);
    check_near(b.v.real[0] + b.v.real[1], 0.5, 0); // sorted by type: both real
    check_text((const char*)b.v.bytes[0].data, "bench A");
    unbind(&b);
    crd_unit_destroy(u);
    world_destroy(w);
}

static void structural_parameters_size_the_arrays(void** state)
{
    (void)state;
    world* w = world_create();
    rig* r = world_add(w, 8080, CRD_DCP_UDP);
    const crd_setting five = {.variable = "bench.nTemps", .text = "5", .place = {"a.yaml", 7}};
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    spec.parameters = &five;
    spec.parameter_count = 1;
    crd_unit* u = create_unit(w, NULL, &spec);
    check_int(u->info.variables[u->ops->find(u, "bench.temps")].size, 5);
    bound out = bind_names(u, "bench.temps");
    check_int(out.b->real_count, 5);
    enter(u);
    check_ok(u->ops->exit_initialization(u));
    advance(u, 2, 0.01);
    get(&out);
    check_near(r->temperatures, 5, 0);
    check_near(out.v.real[4] - out.v.real[0], 4, 1e-4); // float32 on the wire
    unbind(&out);
    crd_unit_destroy(u);
    world_destroy(w);
}

static void what_the_slave_does_not_offer_is_refused(void** state)
{
    (void)state;
    world* w = world_create();
    crd_unit* u = NULL;
    crd_unit_spec s = slave_spec("motor", "udp://127.0.0.1:8080");
    s.session.mode = CRD_DCP_MODE_HRT;
    check_int(crd_unit_create(w->ctx, &s, &u), CRD_E_RANGE);
    check_contains(crd_error_text(w->ctx), "does not offer hrt, expected nrt or srt");
    s = slave_spec("motor", "udp://127.0.0.1:8080");
    s.session.resolution = 0.2;
    check_int(crd_unit_create(w->ctx, &s, &u), CRD_E_RANGE);
    check_contains(crd_error_text(w->ctx), "0.2 s");
    s = slave_spec("motor", "http://127.0.0.1:8080");
    check(crd_unit_create(w->ctx, &s, &u) < 0);
    check_contains(crd_error_text(w->ctx), "udp://");
    s = slave_spec("motor", "udp://127.0.0.1:8080");
    s.path = TEST_SOURCE_DIR "/dcp/data/none.dcpx";
    check(crd_unit_create(w->ctx, &s, &u) < 0);
    check_contains(crd_error_text(w->ctx), "none.dcpx");
    world_destroy(w);
}

// ---- runs --------------------------------------------------------------------------------------

// The motor of the rig, computed beside it.
typedef struct motor {
    double speed, current;
} motor;

static void motor_step(motor* m, double u, double torque, double r, double h)
{
    m->current = (u - 0.1 * m->speed) / r;
    m->speed += h * (0.1 * m->current - torque) / 0.01;
}

static void run_in_steps(uint8_t transport)
{
    world* w = world_create();
    rig* r = world_add(w, 8080, transport);
    const crd_setting set_r = {.variable = "drive.R", .text = "0.75", .place = {"a.yaml", 7}};
    crd_unit_spec spec = slave_spec("motor", transport == CRD_DCP_TCP ? "tcp://127.0.0.1:8080"
                                                                      : "udp://127.0.0.1:8080");
    spec.parameters = &set_r;
    spec.parameter_count = 1;
    crd_unit* u = create_unit(w, NULL, &spec);
    bound in = bind_names(u, "drive.u_dc load.torque cmd.text cmd.blob cmd.mode cmd.profile");
    bound out = bind_names(u, "shaft.speed bench.ticks bench.status bench.blob");
    enter(u);
    in.v.real[0] = 12;
    in.v.real[1] = 0.5;
    in.v.integer[0] = 2;
    check_ok(crd_bytes_set(u->ctx, &in.v.bytes[0], "go", 2));
    check_ok(crd_bytes_set(u->ctx, &in.v.bytes[1], "\x01\x00\x02", 3));
    set(&in);
    get(&out); // one turn of the initialisation loop
    check_near(r->current, 12 / 0.75, 1e-12);
    check_int(r->mode, 2);
    check_ok(u->ops->exit_initialization(u));
    motor m = {0};
    for (int i = 0; i < 20; i++) {
        set(&in);
        const double h = i < 10 ? 0.01 : 0.03; // several resolutions at once
        advance(u, 2 + i * 0.01, h);
        get(&out);
        motor_step(&m, 12, 0.5, 0.75, h);
        check_near(out.v.real[0], m.speed, 1e-12);
    }
    check_int(out.v.integer[0], 40);
    check_text((const char*)out.v.bytes[0].data, "go");
    check_int(out.v.bytes[1].length, 3);
    check_int(memcmp(out.v.bytes[1].data, "\x01\x00\x02", 3), 0);
    check_ok(u->ops->terminate(u));
    check_int(crd_dcp_slave_state(r->slave), CRD_DCP_ALIVE);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    world_destroy(w);
}

static void a_slave_runs_in_steps_as_any_unit(void** state)
{
    (void)state;
    run_in_steps(CRD_DCP_UDP);
    run_in_steps(CRD_DCP_TCP);
}

static void real_time_passes_in_the_steps_of_a_slave(void** state)
{
    (void)state;
    world* w = world_create();
    rig* r = world_add(w, 8080, CRD_DCP_UDP);
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    spec.session.mode = CRD_DCP_MODE_SRT;
    crd_unit* u = create_unit(w, NULL, &spec);
    check_text(u->info.kind, "DCP SRT");
    bound in = bind_names(u, "drive.u_dc load.torque");
    bound out = bind_names(u, "shaft.speed bench.ticks");
    enter(u);
    in.v.real[0] = 12;
    set(&in);
    check_ok(u->ops->exit_initialization(u));
    // The common start is at the first whole second that is half a second away.
    const double first = ceil(testnet_now(w->network) + 0.5);
    u->ops->remote->begin(u, 2, 0.1);
    advance(u, 2, 0.1);
    check_near(testnet_now(w->network), first + 0.1, 1e-6);
    for (int i = 1; i < 30; i++) {
        advance(u, 2 + 0.1 * i, 0.1);
    }
    check_near(testnet_now(w->network), first + 3, 1e-6);
    get(&out);
    check(out.v.integer[0] >= 299); // 100 per second
    check(out.v.real[0] > 100);     // towards 120 rad/s
    check_ok(u->ops->terminate(u));
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    check_int(r->enters[CRD_DCP_STOPPING], CRD_DCP_DONE);
    world_destroy(w);
}

static void slaves_in_real_time_exchange_values_directly(void** state)
{
    (void)state;
    world* w = world_create();
    rig* a = world_add(w, 8080, CRD_DCP_UDP);
    rig* b = world_add(w, 8090, CRD_DCP_UDP);
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(w->ctx, &store));
    crd_unit_spec specs[2] = {slave_spec("a", "udp://127.0.0.1:8080"),
                              slave_spec("b", "udp://127.0.0.1:8090")};
    specs[0].session.mode = specs[1].session.mode = CRD_DCP_MODE_SRT;
    crd_unit *ua = create_unit(w, store, &specs[0]), *ub = create_unit(w, store, &specs[1]);
    check(ua->ops->remote->route(ua, ua->ops->find(ua, "shaft.speed"), ub,
                                 ub->ops->find(ub, "load.torque")));
    // A text does not become a number.
    check(!ua->ops->remote->route(ua, ua->ops->find(ua, "bench.status"), ub,
                                  ub->ops->find(ub, "load.torque")));
    bound in = bind_names(ua, "drive.u_dc");
    const crd_experiment e = {.start = 0};
    check_ok(crd_unit_instantiate(ua));
    check_ok(crd_unit_instantiate(ub));
    check_ok(ua->ops->enter_initialization(ua, &e));
    check_ok(ub->ops->enter_initialization(ub, &e));
    in.v.real[0] = 12;
    set(&in);
    check_ok(ua->ops->exit_initialization(ua));
    check_ok(ub->ops->exit_initialization(ub));
    for (int i = 0; i < 10; i++) {
        ua->ops->remote->begin(ua, 0.1 * i, 0.1);
        ub->ops->remote->begin(ub, 0.1 * i, 0.1);
        advance(ua, 0.1 * i, 0.1);
        advance(ub, 0.1 * i, 0.1);
    }
    check(a->speed > 50);
    check_near(b->torque, a->speed, 0.05 * a->speed); // one sample behind at most
    const crd_dcp_slave_counts counts = crd_dcp_slave_get_counts(b->slave);
    check(counts.data_in >= 95); // a hundred samples, and no word of the master in between
    check_ok(ua->ops->terminate(ua));
    check_ok(ub->ops->terminate(ub));
    unbind(&in);
    crd_unit_destroy(ua);
    crd_unit_destroy(ub);
    crd_unit_store_destroy(store);
    world_destroy(w);
}

static void a_slave_that_fails_ends_the_others_in_order(void** state)
{
    (void)state;
    world* w = world_create();
    rig* a = world_add(w, 8080, CRD_DCP_UDP);
    world_add(w, 8090, CRD_DCP_UDP);
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(w->ctx, &store));
    crd_unit_spec specs[2] = {slave_spec("a", "udp://127.0.0.1:8080"),
                              slave_spec("b", "udp://127.0.0.1:8090")};
    crd_unit *ua = create_unit(w, store, &specs[0]), *ub = create_unit(w, store, &specs[1]);
    const crd_experiment e = {.start = 0};
    crd_unit* both[] = {ua, ub};
    for (int i = 0; i < 2; i++) {
        check_ok(crd_unit_instantiate(both[i]));
    }
    for (int i = 0; i < 2; i++) {
        check_ok(both[i]->ops->enter_initialization(both[i], &e));
    }
    for (int i = 0; i < 2; i++) {
        check_ok(both[i]->ops->exit_initialization(both[i]));
    }
    ua->ops->remote->begin(ua, 0, 0.01);
    ub->ops->remote->begin(ub, 0, 0.01);
    advance(ua, 0, 0.01);
    advance(ub, 0, 0.01);
    a->steps = CRD_DCP_FAILED;
    ua->ops->remote->begin(ua, 0.01, 0.01);
    ub->ops->remote->begin(ub, 0.01, 0.01);
    check_ok(ub->ops->step(ub, 0.01, 0.01)); // it is not the one to say it
    check_int(ua->ops->step(ua, 0.01, 0.01), CRD_E_UNIT);
    check_contains(crd_error_text(ua->ctx), "ERROR");
    check_int(ub->ops->step(ub, 0.02, 0.01), CRD_E_UNIT);
    check_contains(crd_error_text(ub->ctx), "because of unit 'a': ");
    (void)ua->ops->terminate(ua);
    (void)ub->ops->terminate(ub);
    crd_unit_destroy(ua);
    crd_unit_destroy(ub);
    crd_unit_store_destroy(store);
    world_destroy(w); // both are ALIVE
}

static void a_slave_is_one_unit_of_a_system(void** state)
{
    (void)state;
    world* w = world_create();
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(w->ctx, &store));
    crd_unit_spec specs[2] = {slave_spec("a", "udp://127.0.0.1:8080"),
                              slave_spec("b", "udp://localhost:8080")};
    crd_unit *ua = create_unit(w, store, &specs[0]), *ub = NULL;
    check_int(crd_unit_create_shared(w->ctx, store, &specs[1], &ub), CRD_E_RANGE);
    check_contains(crd_error_text(w->ctx), "is the slave of unit 'a' already");
    crd_unit_destroy(ua);
    crd_unit_store_destroy(store);
    world_destroy(w);
}

static void an_interrupted_step_comes_to_its_end_and_a_long_one_does_not(void** state)
{
    (void)state;
    world* w = world_create();
    world_add(w, 8080, CRD_DCP_UDP);
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    spec.session.mode = CRD_DCP_MODE_SRT;
    crd_unit* u = create_unit(w, NULL, &spec);
    volatile bool interrupted = false;
    const crd_experiment e = {.start = 0, .interrupted = &interrupted};
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &e));
    check_ok(u->ops->exit_initialization(u));
    advance(u, 0, 0.1);
    interrupted = true;
    advance(u, 0.1, 0.1);
    check_int(u->ops->step(u, 0.2, 100), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "interrupted");
    check_ok(u->ops->terminate(u));
    crd_unit_destroy(u);
    world_destroy(w);
}

static void a_step_that_is_no_multiple_of_the_resolution_is_refused(void** state)
{
    (void)state;
    world* w = world_create();
    world_add(w, 8080, CRD_DCP_UDP);
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    crd_unit* u = create_unit(w, NULL, &spec);
    enter(u);
    check_ok(u->ops->exit_initialization(u));
    check_int(u->ops->step(u, 2, 0.015), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "0.01 s");
    check_contains(crd_error_text(u->ctx), "session.resolution");
    crd_unit_destroy(u); // brings the slave down
    world_destroy(w);
}

static void the_resolution_follows_a_step_that_the_proposed_one_does_not_divide(void** state)
{
    (void)state;
    world* w = world_create();
    rig* r = world_add(w, 8080, CRD_DCP_UDP);
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    spec.session.resolution = NAN; // 1 ms is proposed, 1 to 100 ms are offered
    crd_unit* u = create_unit(w, NULL, &spec);
    u->step = 0.0005 * 45; // 22.5 ms: 4.5 ms would do, but whole milliseconds are offered only
    check_int(crd_unit_instantiate(u), CRD_E_RANGE); // before anything is said to the slave
    check_contains(crd_error_text(u->ctx), "a step of 0.0225 s is not a multiple");
    crd_unit_destroy(u);
    spec.session.resolution = 0.1; // as if that were proposed
    u = create_unit(w, NULL, &spec);
    spec.session.resolution = NAN;
    u->step = 0.25;
    enter(u);
    check_ok(u->ops->exit_initialization(u));
    advance(u, 2, 0.25);
    check_near(r->last_resolution * r->last_steps, 0.25, 1e-15);
    check_near(r->last_resolution, 0.05, 1e-15);
    crd_unit_destroy(u);
    world_destroy(w);
}

static void nobody_there_is_said_with_the_address(void** state)
{
    (void)state;
    world* w = world_create();
    crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
    crd_unit* u = create_unit(w, NULL, &spec);
    const crd_experiment e = {.start = 0};
    check_ok(crd_unit_instantiate(u));
    check(u->ops->enter_initialization(u, &e) < 0);
    check_contains(crd_error_text(u->ctx), "127.0.0.1:8080");
    crd_unit_destroy(u);
    world_destroy(w);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    world* w = world_create();
    world_add(w, 8080, CRD_DCP_UDP);
    int fail_at = 0;
    for (bool done = false; !done; fail_at++) {
        check_allocator allocator;
        crd_context* ctx = check_context(&allocator);
        crd_unit_spec spec = slave_spec("motor", "udp://127.0.0.1:8080");
        crd_unit* u = NULL;
        allocator.fail_at = allocator.allocations + fail_at;
        crd_status st = crd_unit_create(ctx, &spec, &u);
        if (st >= 0) {
            const crd_experiment e = {.start = 0};
            st = crd_unit_instantiate(u);
            if (st >= 0) { st = u->ops->enter_initialization(u, &e); }
            crd_unit_destroy(u);
        }
        done = st >= 0;
        if (!done) { check_int(st, CRD_E_MEMORY); }
        crd_context_destroy(ctx);
        check_int(allocator.live, 0);
        check(fail_at < 2000);
    }
    check(fail_at > 20);
    world_destroy(w);
}

// ---- links -------------------------------------------------------------------------------------

// A slave in real time, one step of a tenth of a second made.
typedef struct link_bench {
    world* w;
    rig* r;
    crd_unit_spec spec;
    crd_unit* u;
    bound in;
    double first; // start on the clock of the net
    int steps;
} link_bench;

static void link_open(link_bench* b, crd_dcp_mode mode)
{
    *b = (link_bench){.w = world_create()};
    b->r = world_add(b->w, 8080, CRD_DCP_UDP);
    b->spec = slave_spec("motor", "udp://127.0.0.1:8080");
    b->spec.session.mode = mode;
    b->u = create_unit(b->w, NULL, &b->spec);
    crd_link_stats k;
    b->u->ops->remote->link(b->u, &k);
    check(k.in == 0 && k.state == -1 && isnan(k.age) && isnan(k.round_trip));
    check_text(k.state_name, "");
    b->in = bind_names(b->u, "drive.u_dc");
    enter(b->u);
    check_ok(b->u->ops->exit_initialization(b->u));
    b->first = ceil(testnet_now(b->w->network) + 0.5);
}

static crd_link_stats link_step(link_bench* b)
{
    crd_link_stats k;
    advance(b->u, 2 + 0.1 * b->steps, 0.1);
    b->steps++;
    if (b->spec.session.mode == CRD_DCP_MODE_SRT) { // whatever comes or does not
        check_near(testnet_now(b->w->network), b->first + 0.1 * b->steps, 1e-6);
    }
    b->u->ops->remote->link(b->u, &k);
    return k;
}

static void link_close(link_bench* b)
{
    check_ok(b->u->ops->terminate(b->u));
    unbind(&b->in);
    crd_unit_destroy(b->u);
    world_destroy(b->w);
}

static void a_slave_in_real_time_tells_its_grid_and_what_it_waited(void** state)
{
    (void)state;
    link_bench b;
    link_open(&b, CRD_DCP_MODE_SRT);
    check(b.u->info.flags & CRD_UNIT_IN_REAL_TIME);
    check_int(b.u->origin, 0);
    const int64_t before = crdi_now_ns();
    b.u->ops->remote->begin(b.u, 2, 0.1);
    const int64_t after = crdi_now_ns();
    const double begun = testnet_now(b.w->network);
    const int64_t ahead = llround(1e9 * (b.first - begun));
    check(b.u->origin >= before + ahead - 1 && b.u->origin <= after + ahead + 1);
    check_int(b.u->waited, 0);
    crd_link_stats k = {0};
    for (int i = 0; i < 30; i++) {
        k = link_step(&b);
    }
    check_near(1e-9 * (double)b.u->waited, b.first + 3 - begun, 1e-5);
    check(k.in >= 298 && k.in <= 301); // 100 per second
    check_int(k.out, 30);
    check_int(k.lost + k.duplicates + k.reordered + k.bad + k.late, 0);
    check_near(k.age, 0.01, 1e-6); // what the slave made a resolution ago
    check_near(k.age_mean, 0.01, 1e-6);
    check_near(k.age_max, 0.01, 1e-6);
    check(k.round_trip > 0 && k.round_trip_max >= k.round_trip);
    check_int(k.state, CRD_DCP_RUNNING);
    check_text(k.state_name, "RUNNING");
    link_close(&b);
}

static void a_slave_that_falls_silent_does_not_hold_the_step(void** state)
{
    (void)state;
    link_bench b;
    link_open(&b, CRD_DCP_MODE_SRT);
    for (int i = 0; i < 5; i++) {
        check_int(link_step(&b).late, 0);
    }
    const testnet_faults deaf = {.delay = 1e-4, .loss = 1};
    const testnet_faults none = {.delay = 1e-4};
    check_ok(testnet_set(b.w->network, &deaf));
    crd_link_stats k = {0};
    for (int i = 0; i < 6; i++) {
        k = link_step(&b);
    }
    check(k.late == 6 || k.late == 5); // one may still have been on its way
    check_near(k.age, k.late == 6 ? 0.61 : 0.6, 1e-6);
    check_near(k.age_max, k.age, 1e-9);
    check_ok(testnet_set(b.w->network, &none));
    const int64_t late = k.late;
    for (int i = 0; i < 3; i++) {
        k = link_step(&b);
    }
    check_int(k.late, late);
    check_near(k.age, 0.01, 1e-6);
    check(k.lost >= 55 && k.lost <= 65);
    link_close(&b);
}

static void lost_doubled_and_overtaken_data_are_told_apart(void** state)
{
    (void)state;
    link_bench b;
    link_open(&b, CRD_DCP_MODE_SRT);
    link_step(&b);
    // Two resolutions of jitter: one overtakes another.
    check_ok(testnet_set(
        b.w->network,
        &(testnet_faults){.delay = 1e-4, .jitter = 0.02, .loss = 0.1, .duplicate = 0.1}));
    for (int i = 0; i < 200; i++) {
        link_step(&b);
    }
    check_ok(testnet_set(b.w->network, &(testnet_faults){.delay = 1e-4}));
    link_step(&b);
    const crd_link_stats k = link_step(&b);
    // 20.3 s of 100 numbers each: all came first, behind a later one, or never.
    check_near((double)(k.in + k.reordered + k.lost), 2030, 2);
    check_near((double)k.lost, 200, 45);       // a tenth, 3 sigma; each copy of a doubled one may
    check_near((double)k.duplicates, 180, 45); // be lost by itself
    check(k.reordered > 100);
    const testnet_counts c = testnet_get_counts(b.w->network);
    check(k.duplicates < c.duplicated && k.lost < c.lost);
    link_close(&b);
}

static void a_slave_in_steps_tells_about_its_link(void** state)
{
    (void)state;
    link_bench b;
    link_open(&b, CRD_DCP_MODE_NRT);
    check_int(b.u->info.flags & CRD_UNIT_IN_REAL_TIME, 0);
    crd_link_stats k = {0};
    for (int i = 0; i < 10; i++) {
        k = link_step(&b);
    }
    check_int(k.in, 10);
    check_int(k.lost + k.duplicates + k.reordered + k.bad + k.late, 0);
    check(k.age >= 0 && k.age < 1e-3); // since they came
    check_int(b.u->origin, 0);
    check_int(b.u->waited, 0);
    link_close(&b);
}

static void whoever_waits_for_a_slave_can_be_told_to_give_up(void** state)
{
    (void)state;
    link_bench b;
    link_open(&b, CRD_DCP_MODE_NRT);
    link_step(&b);
    b.r->steps = CRD_DCP_LATER;
    const double before = testnet_now(b.w->network);
    b.u->ops->remote->interrupt(b.u);
    check_int(b.u->ops->step(b.u, 2.1, 0.1), CRD_E_UNIT);
    check_contains(crd_error_text(b.u->ctx), "interrupted");
    check(testnet_now(b.w->network) < before + 1); // and not 30 s
    b.r->steps = CRD_DCP_DONE;
    link_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slave_in_real_time_tells_its_grid_and_what_it_waited),
        cmocka_unit_test(a_slave_that_falls_silent_does_not_hold_the_step),
        cmocka_unit_test(lost_doubled_and_overtaken_data_are_told_apart),
        cmocka_unit_test(a_slave_in_steps_tells_about_its_link),
        cmocka_unit_test(whoever_waits_for_a_slave_can_be_told_to_give_up),
        cmocka_unit_test(a_slave_description_becomes_variables),
        cmocka_unit_test(structural_parameters_size_the_arrays),
        cmocka_unit_test(what_the_slave_does_not_offer_is_refused),
        cmocka_unit_test(a_slave_runs_in_steps_as_any_unit),
        cmocka_unit_test(real_time_passes_in_the_steps_of_a_slave),
        cmocka_unit_test(slaves_in_real_time_exchange_values_directly),
        cmocka_unit_test(a_slave_that_fails_ends_the_others_in_order),
        cmocka_unit_test(a_slave_is_one_unit_of_a_system),
        cmocka_unit_test(an_interrupted_step_comes_to_its_end_and_a_long_one_does_not),
        cmocka_unit_test(a_step_that_is_no_multiple_of_the_resolution_is_refused),
        cmocka_unit_test(the_resolution_follows_a_step_that_the_proposed_one_does_not_divide),
        cmocka_unit_test(nobody_there_is_said_with_the_address),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
