// A test bench with the extension of Rautenberg 2023 as a unit, on a virtual clock.
#include <math.h>

#include "../dcp/motor_bench.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"
#include "unit_test.h"

typedef struct bench_world {
    check_allocator allocator;
    crd_context* ctx;
    testnet* network;
    crd_dcp_net* net;
    motor_bench* bench;
    crd_unit* unit;
} bench_world;

static bench_world* the_world;

static crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(the_world->network, 0x7F000001, out);
}

static bench_world* create_far(double delay)
{
    bench_world* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    const testnet_faults none = {.delay = delay, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(w->ctx, &none, &w->network));
    const crd_dcp_bench_config c = motor_config();
    w->bench = motor_bench_make(&c, true);
    crd_text text;
    crd_text_init(&text, w->ctx);
    check_ok(crd_dcp_write(w->bench->d, &text));
    FILE* f = fopen(TEST_BUILD_DIR "/unit_bench.dcpx", "wb");
    check(f && fwrite(text.data, 1, text.length, f) == text.length && fclose(f) == 0);
    crd_text_clear(&text);
    check_ok(testnet_join(w->network, 0x7F000001, &w->net));
    crd_dcp_address at = {0x7F000001, 8080, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(w->net, &at));
    const crd_dcp_link link = crd_dcp_net_link(w->net);
    motor_bench_link(w->bench, &link, NULL);
    testnet_attach(w->net, w->bench->r.slave);
    the_world = w;
    crdi_session_open_net = open_net;
    return w;
}

static bench_world* create(void)
{
    return create_far(1e-3);
}

static void destroy(bench_world* w)
{
    crd_unit_destroy(w->unit);
    check_int(crd_dcp_slave_state(w->bench->r.slave), CRD_DCP_ALIVE);
    testnet_attach(w->net, NULL);
    crd_dcp_net_destroy(w->net);
    motor_bench_destroy(w->bench);
    testnet_destroy(w->network);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
    crdi_session_open_net = crd_dcp_net_create;
}

static const char calm[] =
    "speed 0..3000 1/min rate 1000 1/min/s; torque 0..50 N.m; avoid speed 0..50 1/min with torque";

static crd_unit_spec bench_spec(const char* plan)
{
    crd_unit_spec s = crd_unit_spec_defaults();
    s.name = "motor";
    s.source = CRD_UNIT_DCP;
    s.path = TEST_BUILD_DIR "/unit_bench.dcpx";
    s.address = "udp://127.0.0.1:8080";
    s.session.mode = CRD_DCP_MODE_SRT;
    s.session.patience = 3600;
    s.bench = (crd_bench_spec){.used = true, .plan = plan, .watchdog = NAN};
    return s;
}

// The inputs that the tests set.
static bound begin(bench_world* w, const crd_unit_spec* spec)
{
    const crd_experiment e = {.start = 0};
    const crd_status st = crd_unit_create(w->ctx, spec, &w->unit);
    if (st < 0) { fail_msg("create: %s", crd_error_text(w->ctx)); }
    const bound in = bind_names(w->unit, "n_ref m_ref u_ref oil_ref");
    check_ok(crd_unit_instantiate(w->unit));
    if (w->unit->ops->enter_initialization(w->unit, &e) < 0) {
        fail_msg("enter: %s", crd_error_text(w->unit->ctx));
    }
    return in;
}

static void a_bench_is_conditioned_driven_and_brought_to_rest(void** state)
{
    (void)state;
    bench_world* w = create();
    crd_unit_spec spec = bench_spec(calm);
    spec.bench.initial = "oil 40 degC";
    const double before = testnet_now(w->network);
    bound in = begin(w, &spec);
    crd_unit* u = w->unit;
    // 15 K at 55 K in 540 s
    check_near(testnet_now(w->network) - before, 14 * 540 / 55.0, 12);
    check_near(w->bench->m.is[MOTOR_OIL], 40, 1);
    bound out = bind_names(u, "n bench.sequence_out bench.clamps");
    crd_binding* late = NULL; // its sequence number is not ours to give
    const int32_t sequence = u->ops->find(u, "bench.sequence");
    check_int(crd_binding_create(u, &sequence, 1, &late), CRD_E_STATE);
    check_ok(u->ops->exit_initialization(u));
    for (int i = 0; i < 500; i++) {
        in.v.real[0] = fmin(3000, 6 * i); // 600 1/min per second
        in.v.real[1] = in.v.real[0] > 100 ? 20 : 0;
        in.v.real[2] = 300;
        in.v.real[3] = 40;
        set(&in);
        const crd_status st = u->ops->step(u, 0.01 * i, 0.01);
        if (st < 0) { fail_msg("step %d: %s", i, crd_error_text(u->ctx)); }
    }
    get(&out);
    check_near(out.v.real[0], 2994, 150);
    check(out.v.integer[0] > 400); // it counts, and what it counts comes back
    check(w->bench->m.remote);
    check_ok(u->ops->terminate(u));
    check(!w->bench->m.remote);
    check(w->bench->m.is[MOTOR_SPEED] < 10);
    check(w->bench->m.margin > 0); // the voltage was above the induced one all the way
    unbind(&in);
    unbind(&out);
    destroy(w);
}

// What leaves at t is with the bench 25.2 ms later, the answer back 50.4 ms later and read at the
// end of the step then, t + 60 ms: five steps behind what it would be without latency, t + 10 ms.
static void outputs_of_a_bench_are_dated_by_what_it_answers_to(void** state)
{
    (void)state;
    bench_world* w = create_far(25.2e-3);
    const crd_unit_spec spec = bench_spec(calm);
    bound in = begin(w, &spec);
    crd_unit* u = w->unit;
    check(u->info.flags & CRD_UNIT_DATES_OUTPUTS);
    check_ok(u->ops->exit_initialization(u));
    check(isnan(u->made));
    for (int i = 0; i < 50; i++) {
        in.v.real[2] = 300;
        in.v.real[3] = 25;
        set(&in);
        const crd_status st = u->ops->step(u, 0.01 * i, 0.01);
        if (st < 0) { fail_msg("step %d: %s", i, crd_error_text(u->ctx)); }
        if (i < 5) {
            check(isnan(u->made)); // nothing can be back
        } else {                   // the run began when the handshake of the start was over
            check_near(u->made, 0.01 * (i + 1 - 5), 1e-9);
        }
    }
    check_ok(u->ops->terminate(u));
    unbind(&in);
    destroy(w);
}

static void a_test_case_beyond_the_limits_is_refused_before_anybody_is_asked(void** state)
{
    (void)state;
    bench_world* w = create();
    const crd_unit_spec spec = bench_spec("speed 0..7000 1/min");
    check_int(crd_unit_create(w->ctx, &spec, &w->unit), CRD_E_RANGE);
    check_contains(crd_error_text(w->ctx), "speed");
    check_contains(crd_error_text(w->ctx), "6500");
    check_int(crd_dcp_slave_get_counts(w->bench->r.slave).requests, 0);
    w->unit = NULL;
    destroy(w);
}

static void a_fault_of_the_bench_ends_the_run_with_its_own_words(void** state)
{
    (void)state;
    bench_world* w = create();
    const crd_unit_spec spec = bench_spec(calm);
    bound in = begin(w, &spec);
    crd_unit* u = w->unit;
    check_ok(u->ops->exit_initialization(u));
    crd_status st = CRD_OK;
    int i = 0;
    for (; i < 400 && st >= 0; i++) {
        in.v.real[0] = 6 * i;
        in.v.real[2] = 300;
        in.v.real[3] = 25;
        set(&in);
        if (i == 300) { w->bench->m.error = 7; } // in its error memory
        st = u->ops->step(u, 0.01 * i, 0.01);
    }
    check_int(st, CRD_E_UNIT);
    check(i > 300 && i < 320);
    check_contains(crd_error_text(u->ctx), "ERRORHANDLING");
    check_contains(crd_error_text(u->ctx), "the bench says: ");
    w->bench->m.error = 0; // somebody has looked at it
    check_ok(u->ops->terminate(u));
    check(w->bench->m.is[MOTOR_SPEED] < 10);
    unbind(&in);
    destroy(w);
}

// The agreed 3000 1/min, whatever was set; an input without a quantity acts as it was set.
static void what_acts_is_what_the_limits_left(void** state)
{
    (void)state;
    bench_world* w = create();
    const crd_unit_spec spec = bench_spec(calm);
    bound in = begin(w, &spec);
    crd_unit* u = w->unit;
    const int32_t speed = u->ops->find(u, "n_ref");
    double x = 1;
    check_ok(u->ops->exit_initialization(u));
    for (int i = 0; i < 500; i++) {
        in.v.real[0] = 10 * i;
        in.v.real[2] = 300;
        in.v.real[3] = 25;
        set(&in);
        const crd_status st = u->ops->step(u, 0.01 * i, 0.01);
        if (st < 0) { fail_msg("step %d: %s", i, crd_error_text(u->ctx)); }
        check(u->ops->remote->acting(u, speed, &x));
        check_near(x, fmin(3000, 10 * i), 1e-9);
    }
    check_ok(u->ops->terminate(u));
    unbind(&in);
    destroy(w);
}

// Behind the last step, so that no step can tell it.
static void a_fault_behind_the_last_step_is_no_good_end(void** state)
{
    (void)state;
    for (int stops = 0; stops < 2; stops++) { // it falls by itself, or while it is brought down
        bench_world* w = create();
        const crd_unit_spec spec = bench_spec(calm);
        bound in = begin(w, &spec);
        crd_unit* u = w->unit;
        check_ok(u->ops->exit_initialization(u));
        for (int i = 0; i < 300; i++) {
            in.v.real[0] = 6 * i;
            in.v.real[2] = 300;
            in.v.real[3] = 25;
            set(&in);
            check_ok(u->ops->step(u, 0.01 * i, 0.01));
        }
        if (stops) { u->ops->remote->halt(u); }
        w->bench->m.error = 7;
        for (double end = testnet_now(w->network) + 0.05; testnet_now(w->network) < end;) {
            (void)testnet_advance(w->network, end);
        }
        check_int(crd_dcp_slave_state(w->bench->r.slave), CRD_DCP_ERRORHANDLING);
        w->bench->m.error = 0; // somebody has looked at it
        check_int(u->ops->terminate(u), CRD_E_UNIT);
        check_contains(crd_error_text(u->ctx), "ERRORHANDLING");
        check(w->bench->m.is[MOTOR_SPEED] < 10);
        unbind(&in);
        destroy(w);
    }
}

static void a_plain_slave_cannot_be_driven_as_a_bench(void** state)
{
    (void)state;
    bench_world* w = create();
    crd_unit_spec spec = bench_spec(calm);
    spec.path = TEST_SOURCE_DIR "/dcp/data/rig.dcpx";
    check_int(crd_unit_create(w->ctx, &spec, &w->unit), CRD_E_UNSUPPORTED);
    w->unit = NULL;
    destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bench_is_conditioned_driven_and_brought_to_rest),
        cmocka_unit_test(outputs_of_a_bench_are_dated_by_what_it_answers_to),
        cmocka_unit_test(a_test_case_beyond_the_limits_is_refused_before_anybody_is_asked),
        cmocka_unit_test(a_fault_of_the_bench_ends_the_run_with_its_own_words),
        cmocka_unit_test(what_acts_is_what_the_limits_left),
        cmocka_unit_test(a_fault_behind_the_last_step_is_no_good_end),
        cmocka_unit_test(a_plain_slave_cannot_be_driven_as_a_bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
