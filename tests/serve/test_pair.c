// A wave pair over a DCP link, on a network with a virtual clock: one side here, the other in a
// slave that makes its inner steps itself, as a plain unit and as a bench. The shaft is that of
// tests/master/test_paired.c.
static double drive(double t)
{
    return 30 + 20 * __builtin_sin(1.3 * t);
}

static double pull; // of the load of its own, N.m

static double drag(double w)
{
    return 0.02 * w * __builtin_fabs(w) - pull;
}
#include "../master/shaft.h"

#include <stdio.h>

#include "master/master.h"
#include "shared/serve.h"
#include "shared/system.h"
#include "shared/unit_wave.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"

enum { HERE = 0x7F000001 };
static const double H = 0.01;

// A machine of 0.25 kg.m2 with a drive of 1 ms behind its set value. It keeps its own account of
// the energy that the torque brings.
typedef struct {
    double tau, tau_is, omega, energy;
} machine;

static double most_torque; // that any machine ever saw

static void machine_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status machine_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    machine* m = self;
    (void)host;
    for (int i = 0; i < SHAFT_PARTS; i++) {
        const double part = h / SHAFT_PARTS;
        m->tau_is += (m->tau - m->tau_is) * part / 1e-3;
        most_torque = fmax(most_torque, fabs(m->tau_is));
        m->energy += 0.5 * part * m->tau_is * m->omega;
        m->omega += part * (m->tau_is - 0.01 * m->omega) / 0.25;
        m->energy += 0.5 * part * m->tau_is * m->omega;
    }
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable machine_rows[] = {
    SHAFT_ROW(machine, tau, CRD_INPUT, "N.m"),
    SHAFT_ROW(machine, tau_is, CRD_OUTPUT, "N.m", .depends = ""),
    SHAFT_ROW(machine, omega, CRD_OUTPUT, "rad/s", .depends = ""),
    SHAFT_ROW(machine, energy, CRD_OUTPUT, "J", .depends = "")};
static const crd_model machine_model = SHAFT_MODEL(machine, "a machine with a drive");

// ---- the world ---------------------------------------------------------------------------------

typedef struct world {
    check_allocator allocator, far_allocator;
    crd_context *ctx, *far;
    testnet* t;
    crd_dcp_net* net;
    crd_system *served, *sys;
    crdi_serve* serve;
    crdi_bench_file bench;
    crd_master* m;
} world;

static world* the_world;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(the_world->t, HERE, out);
}

static void start_slave(world* w, const crd_model* model, const char* pair, const char* bench,
                        uint32_t life)
{
    crd_dcp_address at = {HERE, 8080, CRD_DCP_UDP};
    crdi_serve_options o = crdi_serve_defaults();
    w->served = new_system(w->far, NAN, NAN);
    w->served->single = true;
    add_unit(w->served, model->name, model, 0);
    o.resolution = 1e-3;
    o.pairs = &pair;
    o.pair_count = pair != NULL;
    o.life = life;
    o.addresses = &at;
    o.address_count = 1;
    check_run(crdi_serve_create(w->far, w->served, &o, &w->serve), w->far);
    if (bench) {
        FILE* f = fopen(TEST_BUILD_DIR "/pair_bench.yaml", "w");
        check(f && fputs(bench, f) >= 0 && fclose(f) == 0);
        check_run(crdi_bench_file_load(w->far, TEST_BUILD_DIR "/pair_bench.yaml", &w->served->arena,
                                       &w->bench),
                  w->far);
        check_run(crdi_serve_as_bench(w->serve, &w->bench), w->far);
    }
    check_ok(testnet_join(w->t, HERE, &w->net));
    check_ok(crd_dcp_net_listen(w->net, &at));
    const crd_dcp_link link = crd_dcp_net_link(w->net);
    check_run(crdi_serve_start(w->serve, &link, NULL, NULL, NULL), w->far);
    testnet_attach(w->net, crdi_serve_slave(w->serve));
    crd_text text;
    crd_text_init(&text, w->far);
    check_ok(crd_dcp_write(crdi_serve_description(w->serve), &text));
    FILE* f = fopen(TEST_BUILD_DIR "/pair_far.dcpx", "wb");
    check(f && fwrite(text.data, 1, text.length, f) == text.length && fclose(f) == 0);
    crd_text_clear(&text);
}

static void end_slave(world* w)
{
    testnet_attach(w->net, NULL);
    crdi_serve_destroy(w->serve);
    crd_system_destroy(w->served);
    crd_dcp_net_destroy(w->net);
    w->serve = NULL;
}

static void end_master(world* w)
{
    crd_master_destroy(w->m);
    crd_system_destroy(w->sys);
    w->m = NULL;
    w->sys = NULL;
}

static void world_open(world* w, const testnet_faults* faults)
{
    *w = (world){0};
    w->ctx = check_context(&w->allocator);
    w->far = check_context(&w->far_allocator);
    check_ok(testnet_create(w->far, faults, &w->t));
    the_world = w;
    most_torque = pull = 0;
    crdi_session_open_net = open_net;
    crdi_session_has_thread = false;
}

static void world_close(world* w)
{
    end_master(w);
    end_slave(w);
    testnet_destroy(w->t);
    crd_context_destroy(w->far);
    crd_context_destroy(w->ctx);
    check_int(w->far_allocator.live, 0);
    check_int(w->allocator.live, 0);
    crdi_session_open_net = crd_dcp_net_create;
    crdi_session_has_thread = true;
}

static int add_far(crd_system* sys, const char* name, crd_dcp_mode mode, bool bench)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    int index = -1;
    u.name = name;
    u.source = CRD_UNIT_DCP;
    u.path = TEST_BUILD_DIR "/pair_far.dcpx";
    u.address = "udp://127.0.0.1:8080";
    u.session.mode = mode;
    u.session.patience = 100;
    if (bench) {
        u.bench = (crd_bench_spec){
            .used = true, .plan = "speed -300..300 rad/s; torque -3..3 N.m", .watchdog = NAN};
    }
    check_ok(crd_system_add_unit(sys, &u, &index));
    return index;
}

static void add_bond(crd_system* sys, const char* action, const char* flow, bool paired)
{
    if (!paired) { return; }
    crd_bond_spec b = crd_bond_spec_defaults();
    b.name = "shaft";
    b.action_unit = 1;
    b.action = action;
    b.flow_unit = 0;
    b.flow = flow;
    b.pair = CRD_PAIR_WAVE;
    b.impedance = "6 N.m.s/rad";
    b.inner = 1e-3;
    b.place = (crd_place){"far.yaml", 12};
    check_ok(crd_system_add_bond(sys, &b));
}

// The engine is here, spring and load are in the slave, or (`here`) all of it is here.
static void open_master(world* w, bool here, crd_dcp_mode mode, double stop, bool paired)
{
    w->sys = new_system(w->ctx, H, stop);
    add_unit(w->sys, "engine", &engine_model, 0);
    if (here) {
        add_unit(w->sys, "load", &load_model, 0);
    } else {
        (void)add_far(w->sys, "load", mode, false);
    }
    wire(w->sys, 0, "w", 1, "w");
    wire(w->sys, 1, "M", 0, "M");
    add_bond(w->sys, "M", "w", paired);
    check_run(crd_master_create(w->ctx, w->sys, NULL, &w->m), w->ctx);
    check_run(crd_master_initialize(w->m), w->ctx);
}

static const crd_pair_state* side(const world* w, int i)
{
    return &crd_master_get_report(w->m)->pairs[0].sides[i].state;
}

// Of both sides together; the far one is seen a macro step late.
static double created(const world* w)
{
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        const crd_pair_state* s = side(w, i);
        check_near(s->tank, s->absorbed - s->spent + s->received - s->granted - s->dumped,
                   1e-9 * (s->absorbed + s->spent + 1));
        sum += s->spent - s->absorbed;
    }
    return sum;
}

// ---- a plain slave -----------------------------------------------------------------------------

static void a_port_in_a_slave_does_what_one_here_does(void** state)
{
    (void)state;
    enum { STEPS = 300 };
    double speed[2][STEPS];
    for (int here = 0; here < 2; here++) {
        world w;
        const testnet_faults late = {.delay = 1e-4, .seed = 5};
        world_open(&w, &late);
        start_slave(&w, &load_model, "w:M", NULL, 1);
        open_master(&w, here, CRD_DCP_MODE_NRT, STEPS * H + 1, true);
        for (int n = 0; n < STEPS; n++) {
            check_run(crd_master_advance(w.m, 1), w.ctx);
            speed[here][n] = value(w.m, "engine.w");
        }
        const int64_t before = w.allocator.allocations + w.far_allocator.allocations;
        check_run(crd_master_advance(w.m, 50), w.ctx);
        check_int(w.allocator.allocations + w.far_allocator.allocations, before);
        const crd_pair_side_report* far = &crd_master_get_report(w.m)->pairs[0].sides[1];
        check_near(far->inner, 1e-3, 1e-12);
        check_near(far->state.impedance, 6, 1e-12);
        check(far->state.spent > 1 && far->state.granted > 1);
        world_close(&w);
    }
    for (int n = 0; n < STEPS; n++) { // but for the rounding of times
        check_near(speed[0][n], speed[1][n], 1e-9 * (1 + fabs(speed[1][n])));
    }
    check(fabs(speed[0][STEPS - 1]) > 5);
}

// In real time, with the network's delay in both directions. Held values grow without bounds there.
static void over_a_bad_link_the_shaft_stays_what_it_is(void** state)
{
    (void)state;
    for (int paired = 1; paired >= 0; paired--) {
        world w;
        double most = 0;
        const testnet_faults bad = {
            .delay = 0.04, .jitter = 0.05, .loss = 0.1, .duplicate = 0.05, .seed = 3};
        world_open(&w, NULL);
        start_slave(&w, &load_model, "w:M", NULL, 1);
        open_master(&w, false, CRD_DCP_MODE_SRT, 10, paired);
        check_ok(testnet_set(w.t, &bad));
        crd_status st = CRD_OK;
        for (int n = 0; n < 800 && st >= 0 && most < 1e6; n++) {
            st = crd_master_advance(w.m, 1);
            most = fmax(most, fabs(value(w.m, "engine.w")));
        }
        print_message("%s: largest speed %g rad/s\n", paired ? "pair" : "held", most);
        if (paired) {
            check_run(st, w.ctx);
            check(most > 10 && most < 60); // 30 N.m are 39 rad/s in its drag, with its swing
            check(created(&w) <= side(&w, 0)->debt + side(&w, 1)->debt + 1e-9);
            check(side(&w, 0)->debt + side(&w, 1)->debt < 0.02 * side(&w, 1)->absorbed + 0.05);
        } else {
            check(!(most < 1e6));
        }
        check_ok(testnet_set(w.t, &(testnet_faults){.delay = 1e-4}));
        world_close(&w);
    }
}

// Nothing arrives for 0.4 s, five times: the flows agree again behind it.
static void a_link_that_dies_and_comes_back_does_no_harm(void** state)
{
    (void)state;
    world w;
    const testnet_faults dead = {.delay = 1e-3, .loss = 1, .seed = 2};
    const testnet_faults alive = {.delay = 1e-3, .seed = 2};
    double most = 0;
    world_open(&w, &alive);
    start_slave(&w, &load_model, "w:M", NULL, 1);
    open_master(&w, false, CRD_DCP_MODE_SRT, 20, true);
    for (int n = 0; n < 1500; n++) {
        const bool gone = n > 300 && n < 1300 && n % 200 < 40;
        check_ok(testnet_set(w.t, gone ? &dead : &alive));
        check_run(crd_master_advance(w.m, 1), w.ctx);
        most = fmax(most, fabs(value(w.m, "engine.w")));
    }
    const double apart = fabs(value(w.m, "engine.w") - value(w.m, "load.load_w"));
    print_message("largest speed %g, apart at the end %g rad/s\n", most, apart);
    check(most < 70 && apart < 3);
    check(created(&w) <= side(&w, 0)->debt + side(&w, 1)->debt + 1e-9);
    world_close(&w);
}

static void another_run_and_a_slave_that_was_started_anew_begin_anew(void** state)
{
    (void)state;
    world w;
    double speed[3];
    world_open(&w, NULL);
    start_slave(&w, &load_model, "w:M", NULL, 1);
    for (int k = 0; k < 3; k++) {
        if (k == 2) {
            end_slave(&w);
            start_slave(&w, &load_model, "w:M", NULL, 100);
        }
        open_master(&w, false, CRD_DCP_MODE_NRT, 2, true);
        check_run(crd_master_advance(w.m, 200), w.ctx);
        speed[k] = value(w.m, "engine.w");
        check_near(value(w.m, "load.w.pair.run"), k < 2 ? 1 + k : 100, 0);
        check_near(value(w.m, "load.w.pair.number"), 200, 0);
        check_run(crd_master_finish(w.m), w.ctx);
        end_master(&w);
    }
    check_near(speed[1], speed[0], 0);
    check_near(speed[2], speed[0], 0);
    w.m = NULL;
    world_close(&w);
}

// Without `pair: wave` the slave with a port is as the one without.
static void a_port_that_nobody_asks_for_does_nothing(void** state)
{
    (void)state;
    double speed[2];
    for (int k = 0; k < 2; k++) {
        world w;
        world_open(&w, NULL);
        start_slave(&w, &load_model, k ? "w:M" : NULL, NULL, 1);
        open_master(&w, false, CRD_DCP_MODE_NRT, 1, false);
        check_run(crd_master_advance(w.m, 50), w.ctx);
        speed[k] = value(w.m, "engine.w");
        world_close(&w);
    }
    check_near(speed[1], speed[0], 0);
}

static void wrong_signs_are_found_in_the_slave_too(void** state)
{
    (void)state;
    world w;
    world_open(&w, NULL);
    start_slave(&w, &load_model, "w:R", NULL, 1);
    w.sys = new_system(w.ctx, H, 5);
    add_unit(w.sys, "engine", &engine_model, 0);
    (void)add_far(w.sys, "load", CRD_DCP_MODE_NRT, false);
    wire(w.sys, 0, "w", 1, "w");
    wire(w.sys, 1, "R", 0, "Mr");
    add_bond(w.sys, "R", "w", true);
    check_run(crd_master_create(w.ctx, w.sys, NULL, &w.m), w.ctx);
    check_run(crd_master_initialize(w.m), w.ctx);
    check(crd_master_advance(w.m, 200) < 0);
    check_contains(crd_error_text(w.ctx), "far.yaml:12: bond 'shaft': the action");
    check(crd_master_time(w.m) < 0.5);
    world_close(&w);
}

static void a_pair_that_does_not_fit_is_refused(void** state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } of[] = {{"w", "pair 'w', expected INPUT:OUTPUT"},
              {":M", "pair ':M', expected INPUT:OUTPUT"},
              {"w:torque", "pair 'w:torque': the slave has no output 'torque' of one float64"},
              {"M:w", "pair 'M:w': the slave has no input 'M' of one float64"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        crd_context* ctx = crd_context_create(NULL);
        crd_system* sys = new_system(ctx, NAN, NAN);
        crdi_serve_options o = crdi_serve_defaults();
        crdi_serve* s = NULL;
        add_unit(sys, "load", &load_model, 0);
        sys->single = true;
        o.pairs = &of[i].text;
        o.pair_count = 1;
        check(crdi_serve_create(ctx, sys, &o, &s) < 0);
        check_contains(crd_error_text(ctx), of[i].why);
        crd_system_destroy(sys);
        crd_context_destroy(ctx);
    }
    crd_context* ctx = crd_context_create(NULL);
    crd_system* sys = new_system(ctx, NAN, NAN);
    crdi_serve_options o = crdi_serve_defaults();
    crdi_serve* s = NULL;
    add_unit(sys, "load", &load_model, 0);
    sys->single = true;
    o.pairs = (const char*[]){"w:M", "w:R"};
    o.pair_count = 2;
    check(crdi_serve_create(ctx, sys, &o, &s) < 0);
    check_contains(crd_error_text(ctx), "there is a variable w.pair.side already");
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
}

// ---- whatever comes ----------------------------------------------------------------------------

typedef struct {
    double input, output;
    bool bad;
} fake;

static crd_dcp_outcome fake_set(void* user, int variable, const crd_dcp_slot* value)
{
    fake* f = user;
    check_int(variable, 0);
    f->input = *value->real;
    f->bad = f->bad || !isfinite(f->input);
    return CRD_DCP_DONE;
}

static crd_dcp_outcome fake_get(void* user, int variable, crd_dcp_slot* value)
{
    const fake* f = user;
    check_int(variable, 1);
    *value->real = f->output;
    return CRD_DCP_DONE;
}

static crd_dcp_outcome fake_step(void* user, int64_t done, uint32_t steps, double resolution)
{
    fake* f = user;
    (void)done;
    check_int(steps, 1);
    f->output += resolution * (f->input - f->output);
    if (!(fabs(f->output) < 1e200)) { f->output = 0; }
    return CRD_DCP_DONE;
}

static double odd_number(uint64_t* seed)
{
    static const double odd[] = {0,      1,     2,        -1,        1e-300, 1e99,
                                 -1e120, 1e308, INFINITY, -INFINITY, NAN};
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    const unsigned k = (unsigned)(*seed >> 40) % 24;
    return k < 11 ? odd[k] : ((double)(*seed >> 11) * 0x1p-53 - 0.5) * (k < 18 ? 10 : 1e4);
}

// A master that says anything, parameters included: the plant gets numbers, and so does who asks.
static void whatever_a_master_says_stays_finite(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_description* d = NULL;
    crd_dcp_variable v[2] = {crd_dcp_variable_defaults(), crd_dcp_variable_defaults()};
    crdi_wave w;
    fake f = {0};
    uint64_t seed = 7;
    v[0].name = "tau";
    v[1].name = "omega";
    v[1].causality = CRD_OUTPUT;
    v[0].causality = CRD_INPUT;
    v[0].type = v[1].type = CRD_DCP_FLOAT64;
    v[1].vr = 1;
    check_ok(crd_dcp_description_create(ctx, &d));
    d->variables = v;
    d->variable_count = 2;
    check_ok(crdi_wave_declare(d, "tau:omega", 1, &w));
    check_int(d->variable_count, 2 + CRDI_WAVE_VARIABLES);
    const crd_dcp_plant inner = {.user = &f, .set = fake_set, .get = fake_get, .step = fake_step};
    const crd_dcp_plant plant = crdi_wave_plant(&w, &inner, false);
    int lives = 0;
    for (int life = 0; life < 3000; life++) {
        double x;
        crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 1, .real = &x};
        plant.enter(plant.user, CRD_DCP_CONFIGURATION, 0);
        for (int k = 0; k < CRDI_WAVE_FAR; k++) {
            x = k == CRDI_WAVE_SIDE ? 1 + life % 2 : odd_number(&seed);
            if (life % 3 || k == CRDI_WAVE_SIDE) { plant.set(plant.user, 2 + k, &slot); }
        }
        if (plant.enter(plant.user, CRD_DCP_PREPARING, 0) != CRD_DCP_DONE) { continue; }
        lives++;
        for (int n = 0; n < 30; n++) {
            for (int k = CRDI_WAVE_FAR; k < CRDI_WAVE_OWN; k++) {
                x = k == CRDI_WAVE_FAR + 1 && n % 2 ? n : odd_number(&seed);
                plant.set(plant.user, 2 + k, &slot);
            }
            check_int(plant.step(plant.user, 5 * n, 5, 1e-3), CRD_DCP_DONE);
            for (int k = CRDI_WAVE_OWN; k < CRDI_WAVE_VARIABLES; k++) {
                plant.get(plant.user, 2 + k, &slot);
                if (!isfinite(x)) {
                    fail_msg("life %d: %s = %g", life, d->variables[2 + k].name, x);
                }
            }
        }
        check(!f.bad);
    }
    check(lives > 1000);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
}

static void every_allocation_of_a_port_may_fail(void** state)
{
    (void)state;
    for (int64_t n = 0;; n++) {
        check_allocator a = {0};
        crd_context* ctx = check_context(&a);
        crd_system* sys = new_system(ctx, NAN, NAN);
        crdi_serve_options o = crdi_serve_defaults();
        crdi_serve* s = NULL;
        const char* pair = "w:M";
        add_unit(sys, "load", &load_model, 0);
        sys->single = true;
        o.pairs = &pair;
        o.pair_count = 1;
        a.fail_at = a.allocations + n;
        const crd_status st = crdi_serve_create(ctx, sys, &o, &s);
        a.fail_at = -1;
        if (st < 0) { check_status(st, CRD_E_MEMORY); }
        crdi_serve_destroy(s);
        crd_system_destroy(sys);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st >= 0) { break; }
    }
}

// ---- a bench -----------------------------------------------------------------------------------

static const char bench_text[] = "bench: 1\n"
                                 "quantities:\n"
                                 "  speed:\n"
                                 "    role: speed\n"
                                 "    measured: omega\n"
                                 "    limits: -300..300 rad/s\n"
                                 "  torque:\n"
                                 "    role: torque\n"
                                 "    set: tau\n"
                                 "    measured: tau_is\n"
                                 "    limits: -3..3 N.m rate 2000 N.m/s\n"
                                 "stop: { safe_speed: 500, standstill: 400 }\n"
                                 "watchdog: 300 ms\n";

// The machine is in the slave, spring and load are here.
static void open_bench_master(world* w, double stop)
{
    pull = 40;
    w->sys = new_system(w->ctx, H, stop);
    (void)add_far(w->sys, "motor", CRD_DCP_MODE_SRT, true);
    add_unit(w->sys, "load", &load_model, 0);
    wire(w->sys, 0, "omega", 1, "w");
    wire(w->sys, 1, "M", 0, "tau");
    add_bond(w->sys, "M", "omega", true);
    check_run(crd_master_create(w->ctx, w->sys, NULL, &w->m), w->ctx);
    check_run(crd_master_initialize(w->m), w->ctx);
}

static double far_value(const world* w, const char* name)
{
    char full[64];
    snprintf(full, sizeof full, "motor.%s", name);
    return value(w->m, full);
}

// 40 N.m at the load pull the machine along, which takes 4.4 N.m; 3 N.m are allowed. The port asks
// for more than it gets, and what it books is what the machine got.
static void a_clamp_is_booked_as_it_was(void** state)
{
    (void)state;
    world w;
    const testnet_faults late = {.delay = 0.02, .jitter = 0.01, .loss = 0.02, .seed = 4};
    world_open(&w, NULL);
    start_slave(&w, &machine_model, "tau:omega", bench_text, 1);
    open_bench_master(&w, 20);
    check_ok(testnet_set(w.t, &late));
    check_run(crd_master_advance(w.m, 800), w.ctx);
    check_ok(testnet_set(w.t, &(testnet_faults){.delay = 1e-4}));
    check_run(crd_master_advance(w.m, 2), w.ctx);
    const double booked = far_value(&w, "tau.pair.spent") - far_value(&w, "tau.pair.absorbed");
    const double real = far_value(&w, "energy");
    print_message("clamps %g, most torque %g N.m, energy into the machine %g J, booked %g J\n",
                  far_value(&w, "bench.clamps"), most_torque, real, booked);
    check(far_value(&w, "bench.clamps") >= 1);
    check(most_torque > 2.9 && most_torque <= 3 * (1 + 1e-9));
    check(fabs(real) > 50);
    check_near(booked, real, 0.002 * fabs(real)); // means of begin and end in 1 ms
    check(created(&w) <= side(&w, 0)->debt + side(&w, 1)->debt + 1e-9);
    world_close(&w);
}

// The tank has energy, and data with other values go on: the deadman comes all the same.
static void a_dead_link_stops_a_bench_whatever_its_tank_has(void** state)
{
    (void)state;
    world w;
    world_open(&w, NULL);
    start_slave(&w, &machine_model, "tau:omega", bench_text, 1);
    open_bench_master(&w, 20);
    check_run(crd_master_advance(w.m, 300), w.ctx);
    check_near(far_value(&w, "bench.status"), CRD_DCP_BENCH_RUN, 0);
    check(fabs(far_value(&w, "tau_is")) > 0.1);
    check_ok(testnet_set(w.t, &(testnet_faults){.delay = 1e-3, .loss = 1}));
    const double until = testnet_now(w.t) + 0.4;
    while (testnet_now(w.t) < until) {
        testnet_advance(w.t, until);
    }
    check_int(crd_dcp_slave_state(crdi_serve_slave(w.serve)) >= CRD_DCP_ERRORHANDLING, 1);
    check_ok(testnet_set(w.t, &(testnet_faults){.delay = 1e-4}));
    check(crd_master_advance(w.m, 300) < 0);
    world_close(&w);
}

// A master that goes on sending, but whose packets are no news, does not keep the bench alive.
static void packets_that_are_not_taken_are_no_sign_of_life(void** state)
{
    (void)state;
    world w;
    world_open(&w, NULL);
    start_slave(&w, &machine_model, "tau:omega", bench_text, 1);
    open_bench_master(&w, 20);
    check_run(crd_master_advance(w.m, 200), w.ctx);
    crd_status st = CRD_OK;
    int n = 0;
    for (; n < 100 && st >= 0; n++) {
        w.m->connections.pairs[0].sides[1].pair.number = 100; // of its next packet: an old one
        st = crd_master_advance(w.m, 1);
    }
    check(st < 0 && n > 25 && n < 60); // 300 ms of watchdog, and what it takes to be told
    world_close(&w);
}

static void a_pair_at_an_input_without_limits_is_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* sys = new_system(ctx, NAN, NAN);
    crdi_serve_options o = crdi_serve_defaults();
    crdi_serve* s = NULL;
    crdi_bench_file f;
    const char* pair = "tau:omega";
    add_unit(sys, "machine", &machine_model, 0);
    sys->single = true;
    o.pairs = &pair;
    o.pair_count = 1;
    check_run(crdi_serve_create(ctx, sys, &o, &s), ctx);
    FILE* out = fopen(TEST_BUILD_DIR "/pair_none.yaml", "w");
    check(out && fputs("bench: 1\nquantities:\n  speed:\n    role: speed\n    measured: omega\n"
                       "    limits: -300..300 rad/s\n",
                       out) >= 0);
    check(fclose(out) == 0);
    check_run(crdi_bench_file_load(ctx, TEST_BUILD_DIR "/pair_none.yaml", &sys->arena, &f), ctx);
    check(crdi_serve_as_bench(s, &f) < 0);
    check_contains(crd_error_text(ctx), "pair_none.yaml: no quantity has 'set: tau', expected one");
    crdi_serve_destroy(s);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_in_a_slave_does_what_one_here_does),
        cmocka_unit_test(over_a_bad_link_the_shaft_stays_what_it_is),
        cmocka_unit_test(a_link_that_dies_and_comes_back_does_no_harm),
        cmocka_unit_test(another_run_and_a_slave_that_was_started_anew_begin_anew),
        cmocka_unit_test(a_port_that_nobody_asks_for_does_nothing),
        cmocka_unit_test(wrong_signs_are_found_in_the_slave_too),
        cmocka_unit_test(a_pair_that_does_not_fit_is_refused),
        cmocka_unit_test(whatever_a_master_says_stays_finite),
        cmocka_unit_test(every_allocation_of_a_port_may_fail),
        cmocka_unit_test(a_clamp_is_booked_as_it_was),
        cmocka_unit_test(a_dead_link_stops_a_bench_whatever_its_tank_has),
        cmocka_unit_test(packets_that_are_not_taken_are_no_sign_of_life),
        cmocka_unit_test(a_pair_at_an_input_without_limits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
