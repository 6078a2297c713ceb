// Served units in a session with the master of this project, on a network with a virtual clock.
#include "check.h"

#include <stdio.h>

#include "shared/dcp.h"
#include "shared/serve.h"
#include "testnet/testnet.h"

extern const crd_model crd_model_types, crd_model_lo_fd1, crd_model_lo_fd2;

enum { HERE = 0x7F000001 };

typedef struct world {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net *master_net, *nets[2];
    crd_system* systems[2];
    crdi_serve* serves[2];
    int count;
    crd_dcp_address at[2];
    crd_dcp_master* m;
} world;

static void world_open(world* w, const testnet_faults* faults)
{
    *w = (world){0};
    w->ctx = check_context(&w->allocator);
    check_ok(testnet_create(w->ctx, faults, &w->t));
    check_ok(testnet_join(w->t, HERE, &w->master_net));
    check_ok(crd_dcp_master_create(w->ctx, w->master_net, NULL, &w->m));
}

static void world_close(world* w)
{
    crd_dcp_master_destroy(w->m);
    for (int i = 0; i < w->count; i++) {
        testnet_attach(w->nets[i], NULL);
        crdi_serve_destroy(w->serves[i]);
        crd_system_destroy(w->systems[i]);
        crd_dcp_net_destroy(w->nets[i]);
    }
    crd_dcp_net_destroy(w->master_net);
    testnet_destroy(w->t);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
}

static void add_slave(world* w, const crd_model* model, uint8_t transport, crd_dcp_op_mode mode,
                      uint32_t denominator)
{
    const int i = w->count++;
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = model->name;
    u.source = CRD_UNIT_NATIVE;
    u.model = model;
    check_ok(crd_system_create(w->ctx, &w->systems[i]));
    check_ok(crd_system_add_unit(w->systems[i], &u, NULL));
    w->systems[i]->single = true;
    w->at[i] = (crd_dcp_address){HERE, (uint16_t)(8080 + i), transport};
    crdi_serve_options opt = crdi_serve_defaults();
    opt.addresses = &w->at[i];
    opt.address_count = 1;
    check_ok(crdi_serve_create(w->ctx, w->systems[i], &opt, &w->serves[i]));
    check_ok(testnet_join(w->t, HERE, &w->nets[i]));
    check_ok(crd_dcp_net_listen(w->nets[i], &w->at[i]));
    const crd_dcp_link link = crd_dcp_net_link(w->nets[i]);
    check_ok(crdi_serve_start(w->serves[i], &link, NULL, NULL, NULL));
    testnet_attach(w->nets[i], crdi_serve_slave(w->serves[i]));
    const crd_dcp_slave_spec spec = {.name = model->name,
                                     .description = crdi_serve_description(w->serves[i]),
                                     .control = w->at[i],
                                     .mode = mode,
                                     .numerator = 1,
                                     .denominator = denominator};
    int index = -1;
    check_ok(crd_dcp_master_add(w->m, &spec, &index));
    check_int(index, i);
}

static int variable(const world* w, int slave, const char* name)
{
    const crd_dcp_description* d = crdi_serve_description(w->serves[slave]);
    for (int i = 0; i < d->variable_count; i++) {
        if (strcmp(d->variables[i].name, name) == 0) { return i; }
    }
    fail_msg("there is no variable '%s'", name);
    return -1;
}

static crd_dcp_slot* slot(world* w, int slave, const char* name)
{
    return crd_dcp_master_slot(w->m, slave, variable(w, slave, name));
}

#define session_ok(w, expr)                                                                        \
    do {                                                                                           \
        if ((expr) < 0) { fail_msg("%s: %s", #expr, crd_error_text((w)->ctx)); }                   \
    } while (0)

static void every_type_goes_there_and_back(void** state)
{
    for (int i = 0; i < 2; i++) {
        world w;
        // Datagrams that overtake each other are another story.
        const testnet_faults late = {.delay = 1e-4, .jitter = i ? 2e-4 : 0, .seed = 5};
        world_open(&w, &late);
        add_slave(&w, &crd_model_types, i ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT, 100);
        const crd_dcp_description* d = crdi_serve_description(w.serves[0]);
        int in[64], out[64], ins = 0, outs = 0;
        for (int k = 0; k < d->variable_count; k++) {
            const char* name = d->variables[k].name;
            if (strncmp(name, "in_", 3) == 0) { in[ins++] = k; }
            if (strncmp(name, "out_", 4) == 0) { out[outs++] = k; }
        }
        check(ins > 15);
        check_int(ins, outs);
        check_ok(crd_dcp_master_feed(w.m, 0, in, ins));
        check_ok(crd_dcp_master_watch(w.m, 0, out, outs, 1));
        session_ok(&w, crd_dcp_master_configure(w.m));
        session_ok(&w, crd_dcp_master_initialize(w.m, 0));
        session_ok(&w, crd_dcp_master_run(w.m, 0, NULL));
        for (int n = 0; n < 5; n++) {
            for (int k = 0; k < ins; k++) {
                crd_dcp_slot* x = crd_dcp_master_slot(w.m, 0, in[k]);
                const bool boolean = strncmp(d->variables[in[k]].name, "in_b", 4) == 0;
                const bool choice = strcmp(d->variables[in[k]].name, "in_e") == 0;
                if (x->type == CRD_DCP_STRING || x->type == CRD_DCP_BINARY) {
                    *x->byte_count = (uint32_t)snprintf((char*)x->bytes, 20, "text %d %d", n, k);
                    continue;
                }
                for (uint32_t e = 0; e < x->count; e++) {
                    if (x->type == CRD_DCP_FLOAT32 || x->type == CRD_DCP_FLOAT64) {
                        x->real[e] = n + 0.25 * e;
                    } else {
                        x->integer[e] = choice ? 1 + n % 3 : boolean ? (n + (int)e) % 2 : n + k;
                    }
                }
            }
            session_ok(&w, crd_dcp_master_begin_step(w.m, 0, 2));
            session_ok(&w, crd_dcp_master_end_step(w.m, 0));
            for (int k = 0; k < ins; k++) {
                const crd_dcp_slot* x = crd_dcp_master_slot(w.m, 0, in[k]);
                const crd_dcp_slot* y = crd_dcp_master_slot(w.m, 0, out[k]);
                const size_t bytes = x->count * sizeof(double);
                const bool text = x->type == CRD_DCP_STRING || x->type == CRD_DCP_BINARY;
                const bool real = x->type == CRD_DCP_FLOAT32 || x->type == CRD_DCP_FLOAT64;
                const bool same = text ? *x->byte_count == *y->byte_count &&
                                             memcmp(x->bytes, y->bytes, *x->byte_count) == 0
                                  : real ? memcmp(x->real, y->real, bytes) == 0
                                         : memcmp(x->integer, y->integer, bytes) == 0;
                if (!same) { fail_msg("%s differs", d->variables[out[k]].name); }
            }
        }
        session_ok(&w, crd_dcp_master_stop(w.m));
        world_close(&w);
    }
}

// The oscillator cut in two, both sides behind DCP, coupled by the session: as if there were none.
static void two_slaves_in_a_session_are_coupled(void** state)
{
    double found[2][2] = {{0}};
    for (int turn = 0; turn < 2; turn++) { // with another session after it
        world w;
        world_open(&w, NULL);
        add_slave(&w, &crd_model_lo_fd1, CRD_DCP_UDP, CRD_DCP_NRT, 1000);
        add_slave(&w, &crd_model_lo_fd2, CRD_DCP_UDP, CRD_DCP_NRT, 1000);
        const int f = variable(&w, 0, "f"), x2 = variable(&w, 1, "x2"), v2 = variable(&w, 1, "v2");
        const int watched[] = {x2, v2};
        check_ok(crd_dcp_master_route(w.m, 0, f, 1, variable(&w, 1, "f"), 1, NULL));
        check_ok(crd_dcp_master_route(w.m, 1, x2, 0, variable(&w, 0, "x2"), 1, NULL));
        check_ok(crd_dcp_master_route(w.m, 1, v2, 0, variable(&w, 0, "v2"), 1, NULL));
        check_ok(crd_dcp_master_watch(w.m, 1, watched, 2, 1));
        session_ok(&w, crd_dcp_master_configure(w.m));
        session_ok(&w, crd_dcp_master_initialize(w.m, -1));
        session_ok(&w, crd_dcp_master_initialize(w.m, -1));
        session_ok(&w, crd_dcp_master_run(w.m, 0, NULL));
        for (int n = 0; n < 50; n++) {
            for (int i = 0; i < 2; i++) {
                session_ok(&w, crd_dcp_master_begin_step(w.m, i, 1));
            }
            for (int i = 0; i < 2; i++) {
                session_ok(&w, crd_dcp_master_end_step(w.m, i));
            }
        }
        found[turn][0] = slot(&w, 1, "x2")->real[0];
        found[turn][1] = slot(&w, 1, "v2")->real[0];
        session_ok(&w, crd_dcp_master_stop(w.m));
        world_close(&w);
    }
    check(found[0][0] == found[1][0] && found[0][1] == found[1][1]);
    check(fabs(found[0][0]) > 1e-3 && isfinite(found[0][0]));
}

static void in_real_time_a_slave_that_leaves_says_so(void** state)
{
    world w;
    world_open(&w, NULL);
    add_slave(&w, &crd_model_lo_fd2, CRD_DCP_UDP, CRD_DCP_SRT, 100);
    const int x2 = variable(&w, 0, "x2");
    check_ok(crd_dcp_master_watch(w.m, 0, &x2, 1, 1));
    session_ok(&w, crd_dcp_master_configure(w.m));
    session_ok(&w, crd_dcp_master_run(w.m, 0, NULL));
    session_ok(&w, crd_dcp_master_wait(w.m, crd_dcp_master_now(w.m) + 1));
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(crdi_serve_slave(w.serves[0]));
    check(c.steps >= 100 && c.steps <= 103);
    check_int(c.late_steps, 0);
    crdi_serve_leave(w.serves[0], crd_dcp_net_now(w.nets[0]));
    check_status(crd_dcp_master_wait(w.m, crd_dcp_master_now(w.m) + 1), CRD_E_UNIT);
    check_int(crd_dcp_master_status(w.m, 0).state, CRD_DCP_STOPPED);
    session_ok(&w, crd_dcp_master_stop(w.m));
    world_close(&w);
}

// ---- the loop ----------------------------------------------------------------------------------

static double spent; // by a step, on the clock of the network
static testnet* clock_of;

static crd_model_status slow_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)self;
    (void)host;
    (void)t;
    (void)h;
    (void)reached;
    const double until = testnet_now(clock_of) + spent;
    while (testnet_advance(clock_of, until) < until) {}
    return CRD_MODEL_OK;
}

static void no_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status no_start(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void ask(crd_dcp_net* from, const crd_dcp_address* to, crdi_dcp_pdu p)
{
    static uint16_t seq;
    uint8_t bytes[64];
    if (p.type == CRDI_DCP_STC_REGISTER) { seq = 0; }
    p.seq = seq++;
    p.peer = 1;
    const size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
    check(crdi_dcp_net_send(from, to, bytes, n));
}

// A slave is busy with a step for longer than the heartbeat; the master asked meanwhile.
static void heartbeats_that_come_during_a_long_step_count(void** state)
{
    static const crd_model_variable rows[] = {
        {.name = "y", .type = CRD_FLOAT64, .causality = CRD_OUTPUT, .variability = CRD_CONTINUOUS}};
    const crd_model model = {.name = "slow",
                             .description = "",
                             .size = sizeof(double),
                             .variables = rows,
                             .variable_count = 1,
                             .default_step = 0.1,
                             .default_stop = 1,
                             .initialize = no_start,
                             .outputs = no_outputs,
                             .step = slow_step};
    for (int beats = 0; beats < 2; beats++) {
        world w;
        world_open(&w, NULL);
        clock_of = w.t;
        w.count = 1;
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = "slow";
        u.source = CRD_UNIT_NATIVE;
        u.model = &model;
        check_ok(crd_system_create(w.ctx, &w.systems[0]));
        check_ok(crd_system_add_unit(w.systems[0], &u, NULL));
        crdi_serve_options opt = crdi_serve_defaults();
        opt.heartbeat = 1;
        check_ok(crdi_serve_create(w.ctx, w.systems[0], &opt, &w.serves[0]));
        check_ok(testnet_join(w.t, HERE, &w.nets[0]));
        crd_dcp_address at = {HERE, 8080, CRD_DCP_UDP}, mine = {HERE, 8081, CRD_DCP_UDP};
        check_ok(crd_dcp_net_listen(w.nets[0], &at));
        check_ok(crd_dcp_net_listen(w.master_net, &mine));
        const crd_dcp_link link = crd_dcp_net_link(w.nets[0]);
        check_ok(crdi_serve_start(w.serves[0], &link, NULL, NULL, NULL));
        crdi_dcp_pdu p = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT, .major = 1};
        memcpy(p.uuid, crdi_serve_description(w.serves[0])->uuid, 16);
        ask(w.master_net, &at, p);
        ask(w.master_net, &at,
            (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 10});
        static const uint8_t way[] = {CRDI_DCP_STC_PREPARE, CRDI_DCP_STC_CONFIGURE,
                                      CRDI_DCP_STC_RUN, CRDI_DCP_STC_RUN};
        static const uint8_t states[] = {CRD_DCP_CONFIGURATION, CRD_DCP_PREPARED,
                                         CRD_DCP_CONFIGURED, CRD_DCP_SYNCHRONIZED};
        for (int i = 0; i < 4; i++) {
            ask(w.master_net, &at, (crdi_dcp_pdu){.type = way[i], .state = states[i]});
        }
        crdi_serve_turn(w.serves[0], w.nets[0], 0);
        check_int(crd_dcp_slave_state(crdi_serve_slave(w.serves[0])), CRD_DCP_RUNNING);
        spent = 1.5;
        ask(w.master_net, &at,
            (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .state = CRD_DCP_RUNNING, .steps = 1});
        const testnet_faults later = {.delay = 0.8};
        check_ok(testnet_set(w.t, &later));
        if (beats) { ask(w.master_net, &at, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}); }
        crdi_serve_turn(w.serves[0], w.nets[0], 0);
        check_int(crd_dcp_slave_state(crdi_serve_slave(w.serves[0])),
                  beats ? CRD_DCP_COMPUTED : CRD_DCP_ERRORRESOLVED);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_goes_there_and_back),
        cmocka_unit_test(two_slaves_in_a_session_are_coupled),
        cmocka_unit_test(in_real_time_a_slave_that_leaves_says_so),
        cmocka_unit_test(heartbeats_that_come_during_a_long_step_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
