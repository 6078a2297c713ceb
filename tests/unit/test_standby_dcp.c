// Test benches with a stand-in, on a network in memory with a virtual clock: a cut network, a bench
// that comes back on the grid of the run, two benches that begin together.
#include <math.h>
#include <stdio.h>

#include "../dcp/motor_bench.h"
#include "unit_test.h"
#include "virtual_clock.h"

enum { MOST = 2 };
static const double H = 0.01;

typedef struct lab {
    check_allocator allocator;
    crd_context* ctx;
    testnet* network;
    crd_dcp_net* nets[MOST];
    motor_bench* benches[MOST];
    int count;
} lab;

static void set_loss(lab* w, double loss)
{
    const testnet_faults f = {.delay = 1e-3, .loss = loss, .seed = 1};
    check_ok(testnet_set(w->network, &f));
}

static void add_bench(lab* w)
{
    const int k = w->count++;
    const crd_dcp_bench_config c = motor_config();
    motor_bench* b = w->benches[k] = motor_bench_make(&c, true);
    if (k == 0) {
        crd_text text;
        crd_text_init(&text, w->ctx);
        check_ok(crd_dcp_write(b->d, &text));
        FILE* f = fopen(TEST_BUILD_DIR "/standby_bench.dcpx", "wb");
        check(f && fwrite(text.data, 1, text.length, f) == text.length && fclose(f) == 0);
        crd_text_clear(&text);
    }
    check_ok(testnet_join(w->network, HOST, &w->nets[k]));
    crd_dcp_address at = {HOST, (uint16_t)(8080 + k), CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(w->nets[k], &at));
    const crd_dcp_link link = crd_dcp_net_link(w->nets[k]);
    motor_bench_link(b, &link, NULL);
    testnet_attach(w->nets[k], b->r.slave);
}

static lab* lab_create(int benches)
{
    lab* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    w->network = virtual_begin(w->ctx);
    while (w->count < benches) {
        add_bench(w);
    }
    return w;
}

// Nothing turns any more, and nobody has the benches.
static void lab_destroy(lab* w)
{
    for (int i = 0; i < w->count; i++) {
        check_int(crd_dcp_slave_state(w->benches[i]->r.slave), CRD_DCP_ALIVE);
        check(w->benches[i]->m.is[MOTOR_SPEED] < 10);
        testnet_attach(w->nets[i], NULL);
        crd_dcp_net_destroy(w->nets[i]);
        motor_bench_destroy(w->benches[i]);
    }
    virtual_end();
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
}

// ---- the model of the motor --------------------------------------------------------------------

typedef struct twin {
    double n_ref, m_ref, n, m;
} twin;

static crd_model_status twin_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void twin_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status twin_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    twin* w = self;
    (void)host;
    (void)t;
    (void)reached;
    w->n += (w->n_ref - w->n) * (1 - exp(-h / 0.12));
    w->m += (1.02 * w->m_ref - w->m) * (1 - exp(-h / 0.02));
    return CRD_MODEL_OK;
}

#define TWIN(field_, cause_)                                                                       \
    {                                                                                              \
        .name = #field_, .type = CRD_FLOAT64, .causality = cause_,                                 \
        .offset = offsetof(twin, field_)                                                           \
    }
static const crd_model_variable twin_rows[] = {TWIN(n_ref, CRD_INPUT), TWIN(m_ref, CRD_INPUT),
                                               TWIN(n, CRD_OUTPUT), TWIN(m, CRD_OUTPUT)};
static const crd_model twin_model = {.name = "twin",
                                     .size = sizeof(twin),
                                     .variables = twin_rows,
                                     .variable_count = 4,
                                     .initialize = twin_initialize,
                                     .outputs = twin_outputs,
                                     .step = twin_step};

static crd_unit_spec model_spec;

static crd_unit_spec bench_spec(const char* name, const char* address)
{
    model_spec = crd_unit_spec_defaults();
    model_spec.source = CRD_UNIT_NATIVE;
    model_spec.model = &twin_model;
    crd_unit_spec s = crd_unit_spec_defaults();
    s.name = name;
    s.source = CRD_UNIT_DCP;
    s.path = TEST_BUILD_DIR "/standby_bench.dcpx";
    s.address = address;
    s.session.mode = CRD_DCP_MODE_SRT;
    s.session.patience = 3600;
    s.bench = (crd_bench_spec){.used = true,
                               .plan = "speed 0..3000 1/min rate 1000 1/min/s; torque 0..50 N.m; "
                                       "avoid speed 0..50 1/min with torque",
                               .watchdog = NAN};
    s.standby.model = &model_spec;
    s.standby.after = 0.05;
    s.standby.fade = 0.2;
    return s;
}

// ---- a run -------------------------------------------------------------------------------------

typedef struct run {
    lab* w;
    crd_unit* u;
    crdi_standby* s;
    bound in, out;
    int n;
    double y, step; // newest speed; largest change in a step
    double late;    // of the clock against the grid, s, largest so far
} run;

static void begin_run(run* r, lab* w, crd_unit_store* store, const crd_unit_spec* spec)
{
    const crd_experiment e = {.start = 0};
    *r = (run){.w = w};
    const crd_status st = crd_unit_create_shared(w->ctx, store, spec, &r->u);
    if (st < 0) { fail_msg("create: %s", crd_error_text(w->ctx)); }
    r->s = (crdi_standby*)r->u;
    r->in = bind_names(r->u, "n_ref m_ref u_ref oil_ref");
    r->out = bind_names(r->u, "n m standby.weight model.n standby.active");
    check_ok(crd_unit_instantiate(r->u));
    if (r->u->ops->enter_initialization(r->u, &e) < 0) {
        fail_msg("enter: %s", crd_error_text(r->u->ctx));
    }
}

static void begin_exit(run* r)
{
    check_ok(r->u->ops->exit_initialization(r->u));
}

static void one_step(run* r)
{
    const double t = r->n * H;
    r->in.v.real[0] = fmin(2000, 600 * t);
    r->in.v.real[1] = r->in.v.real[0] > 100 ? 20 : 0;
    r->in.v.real[2] = 300;
    r->in.v.real[3] = 25;
    set(&r->in);
    const crd_status st = r->u->ops->step(r->u, t, H);
    if (st < 0) { fail_msg("step at %g: %s", t, crd_error_text(r->u->ctx)); }
    get(&r->out);
    r->step = fmax(r->step, fabs(r->out.v.real[0] - r->y));
    r->y = r->out.v.real[0];
    r->n++;
    const double due = 1e-9 * (double)(virtual_now() - r->u->origin) - r->n * H;
    r->late = fmax(r->late, fabs(due));
}

static void go_on(run* r, double until)
{
    while (r->n * H < until - 1e-9) {
        one_step(r);
    }
}

static void end_run(run* r)
{
    if (r->u->ops->terminate(r->u) < 0) { fail_msg("end: %s", crd_error_text(r->u->ctx)); }
    unbind(&r->in);
    unbind(&r->out);
    crd_unit_destroy(r->u);
}

static crd_standby_stats stats_of(const run* r)
{
    crd_standby_stats s;
    check(crd_unit_get_standby(r->u, &s));
    return s;
}

// ---- what is promised --------------------------------------------------------------------------

static void a_network_that_is_cut_for_a_moment_is_bridged(void** state)
{
    (void)state;
    lab* w = lab_create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    run r;
    begin_run(&r, w, NULL, &spec);
    begin_exit(&r);
    go_on(&r, 2);
    check(r.y > 1000);
    check_int(r.u->remarks, 0);
    const int requests = (int)crd_dcp_slave_get_counts(w->benches[0]->r.slave).requests;
    r.step = 0;
    set_loss(w, 1);
    go_on(&r, 2.04);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH); // not yet
    go_on(&r, 2.08);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    check_contains(r.u->remark, "motor: the stand-in takes over: no new data for 50 ms");
    go_on(&r, 2.2);
    set_loss(w, 0);
    go_on(&r, 2.6);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL); // it has to be good for half a second
    go_on(&r, 2.8);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    go_on(&r, 5);
    check(r.step < 600 * H + 0.2 * 30); // the ramp, and what fades of 12 ms of it and more
    check_near(r.y, 2000, 1);
    check(r.late < 1e-3);
    const crd_standby_stats s = stats_of(&r);
    check_int(s.takeovers, 1);
    check_int(s.returns, 1);
    check_near(s.stood_in, 0.66, 0.1);
    // Nobody registered it anew.
    check(crd_dcp_slave_get_counts(w->benches[0]->r.slave).requests - requests < 20);
    crd_link_stats link;
    r.u->ops->remote->link(r.u, &link);
    check(link.in > 450);
    end_run(&r);
    lab_destroy(w);
}

// How often the board says that a bench came to RUNNING.
static int runs_on_board(const run* r)
{
    crdi_board_state b;
    crdi_standby_show(r->s);
    crdi_board_read(crdi_unit_board(r->u), &b);
    int count = 0;
    for (int i = 0; i < b.moment_count; i++) {
        const crdi_board_moment* m = &b.moments[i];
        count += m->what == CRDI_BOARD_STATE && m->value == CRD_DCP_RUNNING;
        check(i == 0 || m->time >= m[-1].time);
    }
    return count;
}

static void a_bench_that_is_lost_comes_back_on_the_grid_of_the_run(void** state)
{
    (void)state;
    lab* w = lab_create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    run r;
    begin_run(&r, w, NULL, &spec);
    begin_exit(&r);
    go_on(&r, 3);
    r.step = 0;
    set_loss(w, 1);
    go_on(&r, 5);
    check_int(r.s->post, CRDI_POST_WANTED); // the watchdogs have seen it
    check_int(runs_on_board(&r), 1);
    check_contains(r.s->failure, "no new data for 0.5 s");
    check_int(r.out.v.integer[0], CRDI_BOARD_COMING);
    check(r.late < 1e-3); // it keeps its pace alone
    check(r.step < 600 * H + 0.2 * 30);
    check_int(crdi_standby_bring_up(r.s), CRD_E_UNIT); // nobody answers
    set_loss(w, 0);
    const crd_status st = crdi_standby_bring_up(r.s);
    if (st < 0) { fail_msg("%s", crd_error_text(r.s->helper)); }
    check_int(r.s->post, CRDI_POST_READY);
    // As if the run had gone on meanwhile.
    r.n = (int)ceil(1e-9 * (double)(virtual_now() - r.u->origin) / H);
    r.late = 0;
    const double back = r.n * H;
    go_on(&r, back + 0.4);
    check_contains(r.u->remark, "the bench runs again");
    check(r.late < 1e-3); // the same grid
    check(w->benches[0]->m.remote);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    go_on(&r, back + 1.6);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL); // it runs up from the first data on
    go_on(&r, back + 2.1);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    go_on(&r, back + 8);
    check_near(r.y, 2000, 1);
    check_near(w->benches[0]->m.is[MOTOR_SPEED], 2000, 5);
    check(r.late < 1e-3);
    check(r.step < 600 * H + 0.2 * 30 || r.step < 2000 * H); // a bench that runs up
    check_int(stats_of(&r).returns, 1);
    // Each session is told once, whichever bench is looked at.
    check_int(runs_on_board(&r), 2);
    set_loss(w, 1);
    go_on(&r, back + 10);
    check_int(r.s->post, CRDI_POST_WANTED);
    check_int(crdi_standby_bring_up(r.s), CRD_E_UNIT);
    check_int(runs_on_board(&r), 2);
    set_loss(w, 0);
    check_ok(crdi_standby_bring_up(r.s));
    end_run(&r);
    lab_destroy(w);
}

static void a_bench_that_protects_itself_is_stood_in_for(void** state)
{
    (void)state;
    lab* w = lab_create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    spec.standby.rejoin = false;
    run r;
    begin_run(&r, w, NULL, &spec);
    begin_exit(&r);
    go_on(&r, 2);
    r.step = 0;
    w->benches[0]->m.error = 7; // in its error memory
    go_on(&r, 3);
    check_int(r.s->post, CRDI_POST_WANTED);
    w->benches[0]->m.error = 0;
    check_ok(crdi_standby_bring_up(r.s)); // brings it to rest only
    check_int(r.s->post, CRDI_POST_GONE);
    check_int(crd_dcp_slave_state(w->benches[0]->r.slave), CRD_DCP_ALIVE);
    check_contains(r.s->failure, "ERRORHANDLING");
    check_contains(r.u->remark, "takes over");
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    check(r.step < 600 * H + 0.2 * 30);
    check(r.late < 1e-3);
    // Somebody asks for it all the same.
    bound use = bind_names(r.u, "standby.use");
    use.v.integer[0] = CRDI_USE_BENCH;
    set(&use);
    unbind(&use);
    one_step(&r);
    check_int(r.s->post, CRDI_POST_WANTED);
    check_int(r.out.v.integer[0], CRDI_BOARD_COMING);
    end_run(&r);
    lab_destroy(w);
}

// Nobody hurries: its step waits as long as requests are repeated, once.
static void a_bench_in_steps_is_waited_for_once_and_then_stood_in_for(void** state)
{
    (void)state;
    lab* w = lab_create(1);
    crd_unit_spec spec = bench_spec("motor", "udp://127.0.0.1:8080");
    spec.session.mode = CRD_DCP_MODE_NRT;
    run r;
    begin_run(&r, w, NULL, &spec);
    begin_exit(&r);
    go_on(&r, 2);
    check_int(r.u->remarks, 0);
    r.step = 0;
    set_loss(w, 1);
    const double before = testnet_now(w->network);
    one_step(&r);
    check_near(testnet_now(w->network) - before, 2.2, 0.5);
    check_contains(r.u->remark, "takes over");
    const double after = testnet_now(w->network);
    go_on(&r, 3);
    check_near(testnet_now(w->network), after, 0); // nobody waits any more
    check(r.step < 600 * H + 0.2 * 30);
    check_int(r.out.v.integer[0], CRDI_BOARD_COMING);
    set_loss(w, 0);
    (void)testnet_advance(w->network, after); // what was sent is gone
    crd_status st = CRD_E_UNIT;
    for (int i = 0; i < 10 && st < 0; i++) { // its watchdog stops it, then it can be had
        st = crdi_standby_bring_up(r.s);
    }
    if (st < 0) { fail_msg("%s", crd_error_text(r.s->helper)); }
    const double back = r.n * H;
    go_on(&r, back + 8);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    check_near(r.y, 2000, 1);
    check_int(stats_of(&r).returns, 1);
    end_run(&r);
    lab_destroy(w);
}

static void two_benches_with_sessions_of_their_own_begin_together(void** state)
{
    (void)state;
    lab* w = lab_create(2);
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(w->ctx, &store));
    const crd_unit_spec a = bench_spec("first", "udp://127.0.0.1:8080");
    const crd_unit_spec b = bench_spec("second", "udp://127.0.0.1:8081");
    run r[2];
    begin_run(&r[0], w, store, &a);
    begin_run(&r[1], w, store, &b);
    begin_exit(&r[0]);
    begin_exit(&r[1]);
    for (int i = 0; i < 300; i++) { // one after the other, as Gauss and Seidel do
        one_step(&r[0]);
        one_step(&r[1]);
    }
    check_int(r[0].u->origin, r[1].u->origin);
    check(r[0].late < 1e-3 && r[1].late < 1e-3);
    check_near(r[0].y, r[1].y, 10);
    // One fails, and does not take the other with it.
    w->benches[0]->m.error = 7;
    for (int i = 0; i < 200; i++) {
        one_step(&r[0]);
        one_step(&r[1]);
    }
    check_int(r[0].out.v.integer[0], CRDI_BOARD_COMING);
    check_int(r[1].out.v.integer[0], CRDI_BOARD_BENCH);
    check_int(r[1].u->remarks, 0);
    w->benches[0]->m.error = 0;
    end_run(&r[0]);
    end_run(&r[1]);
    crd_unit_store_destroy(store);
    lab_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_that_is_cut_for_a_moment_is_bridged),
        cmocka_unit_test(a_bench_that_is_lost_comes_back_on_the_grid_of_the_run),
        cmocka_unit_test(a_bench_that_protects_itself_is_stood_in_for),
        cmocka_unit_test(a_bench_in_steps_is_waited_for_once_and_then_stood_in_for),
        cmocka_unit_test(two_benches_with_sessions_of_their_own_begin_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
