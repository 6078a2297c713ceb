// What is known about benches while a session is brought up, runs and is brought down, and the halt
// of several sessions, on a virtual clock.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../dcp/motor_bench.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"
#include "unit_test.h"

enum { MOST = 2 };
typedef struct world {
    check_allocator allocator;
    crd_context* ctx;
    testnet* network;
    crd_dcp_net* nets[MOST];
    motor_bench* benches[MOST];
    int count;
} world;

static world* the_world;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    const crd_status st = testnet_join(the_world->network, 0x7F000001, out);
    return st < 0 ? crdi_fail(ctx, st, "out of memory") : st;
}

static motor_bench* add_bench(world* w, const crd_dcp_bench_config* c, bool extension)
{
    const int k = w->count++;
    motor_bench* b = motor_bench_make(c, extension);
    crd_text text;
    crd_text_init(&text, w->ctx);
    check_ok(crd_dcp_write(b->d, &text));
    FILE* f = fopen(TEST_BUILD_DIR "/unit_board.dcpx", "wb");
    check(f && fwrite(text.data, 1, text.length, f) == text.length && fclose(f) == 0);
    crd_text_clear(&text);
    check_ok(testnet_join(w->network, 0x7F000001, &w->nets[k]));
    crd_dcp_address at = {0x7F000001, (uint16_t)(8080 + k), CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(w->nets[k], &at));
    const crd_dcp_link link = crd_dcp_net_link(w->nets[k]);
    motor_bench_link(b, &link, NULL);
    testnet_attach(w->nets[k], b->r.slave);
    w->benches[k] = b;
    return b;
}

static world* create(int count)
{
    world* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    const testnet_faults none = {.delay = 1e-3, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(w->ctx, &none, &w->network));
    const crd_dcp_bench_config c = motor_config();
    for (int i = 0; i < count; i++) {
        add_bench(w, &c, true);
    }
    the_world = w;
    crdi_session_open_net = open_net;
    return w;
}

static void destroy(world* w)
{
    for (int i = 0; i < w->count; i++) {
        check_int(crd_dcp_slave_state(w->benches[i]->r.slave), CRD_DCP_ALIVE);
        testnet_attach(w->nets[i], NULL);
        crd_dcp_net_destroy(w->nets[i]);
        motor_bench_destroy(w->benches[i]);
    }
    testnet_destroy(w->network);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
    crdi_session_open_net = crd_dcp_net_create;
}

static crd_unit_spec bench_spec(const char* name, const char* address)
{
    crd_unit_spec s = crd_unit_spec_defaults();
    s.name = name;
    s.source = CRD_UNIT_DCP;
    s.path = TEST_BUILD_DIR "/unit_board.dcpx";
    s.address = address;
    s.session.mode = CRD_DCP_MODE_SRT;
    s.session.patience = 3600;
    s.bench = (crd_bench_spec){.used = true, .watchdog = NAN};
    return s;
}

typedef struct driven {
    crd_unit* u;
    bound in;
    int n; // steps so far
} driven;

static driven make_driven(world* w, const crd_unit_spec* spec)
{
    driven x = {0};
    if (crd_unit_create(w->ctx, spec, &x.u) < 0) { fail_msg("create: %s", crd_error_text(w->ctx)); }
    x.in = bind_names(x.u, "n_ref m_ref u_ref oil_ref");
    x.in.v.real[2] = 300;
    x.in.v.real[3] = 40;
    check_ok(crd_unit_instantiate(x.u));
    return x;
}

static void bring_up(driven* x)
{
    const crd_experiment e = {.start = 0};
    if (x->u->ops->enter_initialization(x->u, &e) < 0) {
        fail_msg("enter: %s", crd_error_text(x->u->ctx));
    }
    set(&x->in);
    check_ok(x->u->ops->exit_initialization(x->u));
}

static void drive(driven* x, int steps)
{
    for (int i = 0; i < steps; i++, x->n++) {
        set(&x->in);
        const crd_status st = x->u->ops->step(x->u, 0.01 * x->n, 0.01);
        if (st < 0) { fail_msg("step %d: %s", x->n, crd_error_text(x->u->ctx)); }
    }
}

static void end(driven* x)
{
    unbind(&x->in);
    crd_unit_destroy(x->u);
}

static crdi_board_state look(const driven* x)
{
    crdi_board_state s;
    crdi_board_read(crdi_unit_board(x->u), &s);
    return s;
}

static const crdi_board_quantity* quantity(const crdi_board_state* s, const char* name)
{
    for (int i = 0; i < s->quantity_count; i++) {
        if (strcmp(s->quantities[i].name, name) == 0) { return &s->quantities[i]; }
    }
    fail_msg("no quantity %s", name);
    return NULL;
}

// The values of the moments of one kind, in order; and when the first with a value was.
static int values_of(const crdi_board_state* s, crdi_board_what what, double* out, int most)
{
    int n = 0;
    for (int i = 0; i < s->moment_count && n < most; i++) {
        if (s->moments[i].what == (int)what) { out[n++] = s->moments[i].value; }
    }
    return n;
}

static double time_of(const crdi_board_state* s, crdi_board_what what, double value)
{
    for (int i = 0; i < s->moment_count; i++) {
        if (s->moments[i].what == (int)what && s->moments[i].value == value) {
            return s->moments[i].time;
        }
    }
    return NAN;
}

// ---- tests -------------------------------------------------------------------------------------

static void a_board_begins_with_limits_and_nothing_else(void** state)
{
    (void)state;
    world* w = create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    spec.bench.limits = "speed ..300 rad/s; torque -300..100 N.m; power ..50 kW";
    driven x = make_driven(w, &spec);
    const crdi_board_state s = look(&x);
    check_int(s.state, -1);
    check(s.extension && isnan(s.last_data) && isnan(s.round_trip) && !s.lost);
    check_int(s.moment_count, 0);
    check_int(s.quantity_count, 5);
    const crdi_board_quantity* q = quantity(&s, "speed");
    check_text(q->unit, "1/min");
    check_near(q->min, 0, 0);
    check_near(q->max, 300 * 30 / acos(-1), 1e-9); // ours is narrower
    check(isnan(q->set) && isnan(q->measured) && !q->clamped);
    check_near(quantity(&s, "torque")->min, -210, 0);
    check_near(quantity(&s, "torque")->max, 100, 0);
    check_near(quantity(&s, "power")->max, 50, 1e-12);
    check_text(quantity(&s, "power")->unit, "kW");
    end(&x);
    destroy(w);
}

static void a_board_follows_the_bench_from_registration_to_rest(void** state)
{
    (void)state;
    static const double states[] = {
        CRD_DCP_ALIVE,       CRD_DCP_CONFIGURATION, CRD_DCP_PREPARING,     CRD_DCP_PREPARED,
        CRD_DCP_CONFIGURING, CRD_DCP_CONFIGURED,    CRD_DCP_INITIALIZING,  CRD_DCP_INITIALIZED,
        CRD_DCP_SENDING_I,   CRD_DCP_CONFIGURED,    CRD_DCP_SYNCHRONIZING, CRD_DCP_SYNCHRONIZED,
        CRD_DCP_RUNNING,     CRD_DCP_STOPPING,      CRD_DCP_STOPPED,       CRD_DCP_ALIVE};
    static const double phases[] = {
        CRD_DCP_BENCH_PREPARATION, CRD_DCP_BENCH_PREPARED,     CRD_DCP_BENCH_CONDITIONING,
        CRD_DCP_BENCH_CONDITIONED, CRD_DCP_BENCH_ARMED,        CRD_DCP_BENCH_RUN,
        CRD_DCP_BENCH_SPEED_DOWN,  CRD_DCP_BENCH_VOLTAGE_DOWN, CRD_DCP_BENCH_STAND_DOWN,
        CRD_DCP_BENCH_SAFE,        CRD_DCP_BENCH_IDLE};
    world* w = create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    spec.bench.initial = "oil 40 degC";
    driven x = make_driven(w, &spec);
    bring_up(&x);
    crdi_board_state s = look(&x);
    check_int(s.state, CRD_DCP_CONFIGURED);
    check_int(s.phase, CRD_DCP_BENCH_CONDITIONED);
    check_contains(s.progress, "conditioning: done");
    // 15 K at 55 K in 540 s, within 1 K of it
    const double took = time_of(&s, CRDI_BOARD_STATE, CRD_DCP_CONFIGURED) -
                        time_of(&s, CRDI_BOARD_STATE, CRD_DCP_CONFIGURING);
    check_near(took, 14 * 540 / 55.0, 1);
    double heat[CRDI_BOARD_MOMENTS];
    const int heats = values_of(&s, CRDI_BOARD_HEAT, heat, CRDI_BOARD_MOMENTS);
    check(heats >= 5 && heats <= 9);
    check_near(heat[0], 15, 0.5);
    check_near(heat[heats - 1], 0, 0);
    x.in.v.real[0] = 3000;
    x.in.v.real[1] = 50;
    drive(&x, 300);
    s = look(&x);
    check_int(s.state, CRD_DCP_RUNNING);
    check_int(s.phase, CRD_DCP_BENCH_RUN);
    check_near(quantity(&s, "speed")->set, 3000, 0);
    check_near(quantity(&s, "speed")->measured, 3000, 30);
    check_near(quantity(&s, "torque")->measured, 50, 1);
    check(!quantity(&s, "speed")->clamped);
    check_near(s.round_trip, 0.01, 0.01);
    check(s.round_trip_max >= s.round_trip && s.last_data > took && s.clamps > 0);
    check_ok(x.u->ops->terminate(x.u));
    s = look(&x);
    double seen[CRDI_BOARD_MOMENTS];
    check_int(values_of(&s, CRDI_BOARD_STATE, seen, CRDI_BOARD_MOMENTS),
              sizeof states / sizeof *states);
    check(memcmp(seen, states, sizeof states) == 0);
    check_int(values_of(&s, CRDI_BOARD_PHASE, seen, CRDI_BOARD_MOMENTS),
              sizeof phases / sizeof *phases);
    check(memcmp(seen, phases, sizeof phases) == 0);
    check_text(s.stopping, "stop: safe");
    check_int(s.reason, CRD_DCP_BENCH_BY_MASTER);
    end(&x);
    destroy(w);
}

static void what_is_clamped_and_what_is_wrong_is_on_the_board(void** state)
{
    (void)state;
    world* w = create(1);
    const crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    driven x = make_driven(w, &spec);
    bring_up(&x);
    x.in.v.real[0] = 1000;
    drive(&x, 100);
    x.in.v.real[1] = 500; // of 210 N.m
    drive(&x, 100);
    crdi_board_state s = look(&x);
    check(quantity(&s, "torque")->clamped && !quantity(&s, "voltage")->clamped);
    check_near(quantity(&s, "torque")->set, 500, 0);
    check_contains(s.why, "clamped: torque = 500 N.m, used 210");
    w->benches[0]->m.error = 7; // in its error memory
    crd_status st = CRD_OK;
    for (int i = 0; i < 20 && st >= 0; i++, x.n++) {
        st = x.u->ops->step(x.u, 0.01 * x.n, 0.01);
    }
    check_int(st, CRD_E_UNIT);
    w->benches[0]->m.error = 0;
    check_ok(x.u->ops->terminate(x.u));
    s = look(&x);
    check_text(s.why, "fault: error 7 in the memory of the bench");
    check_int(s.reason, CRD_DCP_BENCH_RIG_ERROR);
    check(isfinite(time_of(&s, CRDI_BOARD_STATE, CRD_DCP_ERRORHANDLING)));
    check(time_of(&s, CRDI_BOARD_PHASE, CRD_DCP_BENCH_SPEED_DOWN) <
          time_of(&s, CRDI_BOARD_PHASE, CRD_DCP_BENCH_VOLTAGE_DOWN));
    check_int(s.phase, CRD_DCP_BENCH_IDLE);
    end(&x);
    destroy(w);
}

static void a_plain_slave_has_a_board_too(void** state)
{
    (void)state;
    world* w = create(0);
    const crd_dcp_bench_config c = motor_config();
    add_bench(w, &c, false);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    spec.bench.used = false;
    driven x = make_driven(w, &spec);
    bring_up(&x);
    drive(&x, 20);
    crdi_board_state s = look(&x);
    check(!s.extension);
    check_int(s.state, CRD_DCP_RUNNING);
    check_int(s.quantity_count, 0);
    check_near(s.round_trip, 2e-3, 1e-3);
    check(s.last_data >= 0.1);
    testnet_attach(w->nets[0], NULL); // it is gone
    crd_status st = CRD_OK;
    for (int i = 0; i < 2000 && st >= 0; i++, x.n++) {
        st = x.u->ops->step(x.u, 0.01 * x.n, 0.01);
    }
    check_int(st, CRD_E_UNIT);
    s = look(&x);
    check(s.lost);
    check_contains(s.why, "is lost");
    testnet_attach(w->nets[0], w->benches[0]->r.slave);
    end(&x);
    destroy(w);
}

static void halt_reaches_the_benches_of_all_sessions_before_the_first_is_waited_for(void** state)
{
    (void)state;
    world* w = create(2);
    crd_unit_spec specs[] = {bench_spec("a", "udp://127.0.0.1:8080"),
                             bench_spec("b", "udp://127.0.0.1:8081")};
    driven x[2];
    for (int i = 0; i < 2; i++) {
        specs[i].session.lead = 0;
        x[i] = make_driven(w, &specs[i]); // no store: each has a session of its own
        bring_up(&x[i]);
        x[i].in.v.real[0] = 200; // soon there
    }
    check(((crdi_dcp_unit*)x[0].u)->session != ((crdi_dcp_unit*)x[1].u)->session);
    for (int n = 0; n < 30; n++) {
        drive(&x[0], 1);
        drive(&x[1], 1);
    }
    const double before = testnet_now(w->network);
    x[0].u->ops->remote->halt(x[0].u);
    x[1].u->ops->remote->halt(x[1].u);
    check_near(testnet_now(w->network), before, 0); // nobody waited
    // The stop of the first takes its time; the second is on its way down from the beginning.
    check_ok(x[0].u->ops->terminate(x[0].u));
    const double first = testnet_now(w->network);
    check(first - before > 0.1);
    check(crd_dcp_slave_state(w->benches[1]->r.slave) >= CRD_DCP_STOPPING);
    check(crd_dcp_bench_get_state(w->benches[1]->b).phase == CRD_DCP_BENCH_SAFE);
    check_int(crd_dcp_bench_get_state(w->benches[1]->b).reason, CRD_DCP_BENCH_BY_MASTER);
    check_ok(x[1].u->ops->terminate(x[1].u));
    check(testnet_now(w->network) - first < 0.5 * (first - before));
    end(&x[0]);
    end(&x[1]);
    destroy(w);
}

// ---- the board itself --------------------------------------------------------------------------

static void of_many_moments_the_first_and_the_newest_stay(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_board* b = NULL;
    check_ok(crdi_board_create(ctx, &b));
    for (int i = 0; i < 1000; i++) {
        crdi_board_note_at(b, CRDI_BOARD_STATE, i, i == 999 ? 5.0 : i); // time does not go back
    }
    crdi_board_show(b);
    crdi_board_state s;
    crdi_board_read(b, &s);
    check_int(s.moment_count, CRDI_BOARD_MOMENTS);
    check_int(s.moments_left_out, 1000 - CRDI_BOARD_MOMENTS);
    check_near(s.moments[0].value, 0, 0);
    check_near(s.moments[CRDI_BOARD_MOMENTS / 2 - 1].value, CRDI_BOARD_MOMENTS / 2 - 1, 0);
    check_near(s.moments[CRDI_BOARD_MOMENTS - 1].value, 999, 0);
    check_near(s.moments[CRDI_BOARD_MOMENTS - 1].time, 998, 0);
    crdi_board_destroy(b);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

typedef struct reader {
    crdi_board* b;
    atomic_bool quit;
    bool torn;
} reader;

static void* read_on(void* user)
{
    reader* r = user;
    while (!atomic_load(&r->quit)) {
        crdi_board_state s;
        crdi_board_read(r->b, &s);
        r->torn = r->torn || s.clamps != s.refused || s.clamps != s.takeovers ||
                  (s.clamps > 0 && s.moments[0].value != (double)s.clamps);
    }
    return NULL;
}

static void readers_see_all_of_a_state_or_another_one(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    reader r = {0};
    check_ok(crdi_board_create(ctx, &r.b));
    crdi_board_state* mine = crdi_board_edit(r.b);
    mine->moment_count = 1;
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, read_on, &r), 0);
    for (int i = 1; i <= 20000; i++) {
        mine->clamps = mine->refused = mine->takeovers = i;
        mine->moments[0].value = i;
        crdi_board_show(r.b);
    }
    atomic_store(&r.quit, true);
    pthread_join(thread, NULL);
    check(!r.torn);
    crdi_board_destroy(r.b);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void each_allocation_may_fail(void** state)
{
    (void)state;
    world* w = create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    for (int64_t n = 0;; n++) {
        crd_unit* u = NULL;
        const int64_t live = w->allocator.live;
        w->allocator.fail_at = w->allocator.allocations + n;
        const crd_status st = crd_unit_create(w->ctx, &spec, &u);
        w->allocator.fail_at = -1;
        crd_unit_destroy(st == CRD_OK ? u : NULL);
        check_int(w->allocator.live, live);
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
        check(n < 5000);
    }
    destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_begins_with_limits_and_nothing_else),
        cmocka_unit_test(a_board_follows_the_bench_from_registration_to_rest),
        cmocka_unit_test(what_is_clamped_and_what_is_wrong_is_on_the_board),
        cmocka_unit_test(a_plain_slave_has_a_board_too),
        cmocka_unit_test(halt_reaches_the_benches_of_all_sessions_before_the_first_is_waited_for),
        cmocka_unit_test(of_many_moments_the_first_and_the_newest_stay),
        cmocka_unit_test(readers_see_all_of_a_state_or_another_one),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
