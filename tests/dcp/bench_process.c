// The emulated motor bench and a master for it as processes:
//     bench_process bench ADDRESS     says "listening at ...", then "phase ..." as it changes
//     bench_process master ADDRESS    brings it to 3000 1/min, says "running", until SIGTERM
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "motor_bench.h"

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static void say(const char* text)
{
    puts(text);
    fflush(stdout);
}

static crd_dcp_bench_config config(void)
{
    crd_dcp_bench_config c = motor_config();
    c.limits = "speed 0..6500 1/min rate 10000 1/min/s; torque -210..210 N.m; voltage 0..400 V; "
               "avoid speed 0..50 1/min with torque";
    c.watchdog = 2;      // the machine that runs the tests may be busy
    c.stop_rate = 10000; // 3000 1/min in 0.3 s
    c.gap_limit = 10000;
    c.induced = motor_induced;
    return c;
}

static void tell_phase(crd_dcp_bench* b, const motor* m, double now, int* told)
{
    const crd_dcp_bench_state s = crd_dcp_bench_get_state(b);
    char text[160];
    if ((int)s.phase == *told) { return; }
    *told = (int)s.phase;
    snprintf(text, sizeof text, "phase %s reason %s after %.3f s speed %.1f margin %.2f",
             crd_dcp_bench_phase_name(s.phase), crd_dcp_bench_reason_name(s.reason), now - s.valid,
             m->is[MOTOR_SPEED], m->margin);
    say(text);
}

static void serve(crd_dcp_net* net, crd_dcp_slave* slave, crd_dcp_bench* b, const motor* m)
{
    int told = CRD_DCP_BENCH_IDLE;
    while (!ended) {
        crd_dcp_packet p;
        while (crd_dcp_net_receive(net, &p)) {
            crd_dcp_slave_receive(slave, &p.from, &p.at, p.bytes, p.length, p.time);
        }
        const double now = crd_dcp_net_now(net);
        crd_dcp_slave_advance(slave, now);
        tell_phase(b, m, now, &told);
        crd_dcp_net_wait(net, fmax(0, fmin(crd_dcp_slave_next(slave) - now, 0.2)));
    }
}

static crd_status be_bench(crd_context* ctx, crd_dcp_net* net, crd_dcp_description* d,
                           crd_dcp_address at)
{
    crd_status st = CRD_OK;
    motor m = motor_make();
    const crd_dcp_rig ops = motor_ops(&m);
    const crd_dcp_bench_config c = config();
    crd_dcp_bench* b = NULL;
    crd_dcp_slave* slave = NULL;
    CRD_TRY(crd_dcp_net_listen(net, &at));
    CRD_TRY(crd_dcp_bench_create(ctx, d, &c, &ops, &b));
    const crd_dcp_plant plant = crd_dcp_bench_plant(b);
    const crd_dcp_link link = crd_dcp_net_link(net);
    CRD_TRY(crd_dcp_slave_create(ctx, d, &plant, &link, NULL, &slave));
    crd_dcp_bench_attach(b, slave);
    char text[64] = "listening at ";
    crd_dcp_address_print(&at, text + strlen(text), sizeof text - strlen(text));
    say(text);
    serve(net, slave, b, &m);
fail:
    crd_dcp_slave_destroy(slave);
    crd_dcp_bench_destroy(b);
    return st;
}

static crd_status drive(crd_dcp_master* m, crdi_dcp_bench_peer* p)
{
    crd_status st = CRD_OK;
    bool told = false;
    double next = crd_dcp_master_now(m);
    crdi_dcp_bench_peer_begin(p, next);
    const double values[] = {3000, 50, 300, 25};
    for (int i = 0; i < 4; i++) {
        *crd_dcp_master_slot(m, 0, i)->real = values[i];
    }
    while (!ended) {
        crdi_dcp_bench_peer_send(p, crd_dcp_master_now(m));
        CRD_TRY(crd_dcp_master_send(m, 0));
        next += 0.01;
        CRD_TRY(crd_dcp_master_wait(m, next));
        CRD_TRY(crdi_dcp_bench_peer_check(p, crd_dcp_master_now(m)));
        if (!told && *crd_dcp_master_slot(m, 0, MOTOR_N)->real > 2900) {
            told = true;
            say("running");
        }
    }
fail:
    return st;
}

static crd_status be_master(crd_context* ctx, crd_dcp_net* net, crd_dcp_description* d,
                            crd_dcp_address at)
{
    crd_status st = CRD_OK;
    crd_dcp_master* m = NULL;
    crdi_dcp_bench_peer* p = NULL;
    crdi_dcp_bench_plan plan = crdi_dcp_bench_plan_defaults();
    plan.planned = "speed 0..3000 1/min; torque 0..50 N.m; avoid speed 0..50 1/min with torque";
    plan.watchdog = 5;
    plan.gap_limit = 10000;
    const crd_dcp_slave_spec spec = {.name = "motor",
                                     .description = d,
                                     .control = at,
                                     .mode = CRD_DCP_SRT,
                                     .numerator = 1,
                                     .denominator = 100};
    int index, in[6] = {MOTOR_N_REF, MOTOR_M_REF, MOTOR_U_REF, MOTOR_OIL_REF};
    int out[8] = {MOTOR_N};
    CRD_TRY(crd_dcp_master_create(ctx, net, NULL, &m));
    CRD_TRY(crdi_dcp_bench_peer_create(ctx, d, &plan, &p));
    CRD_TRY(crd_dcp_master_add(m, &spec, &index));
    CRD_TRY(crdi_dcp_bench_peer_bind(p, m, index));
    crdi_dcp_bench_peer_inputs(p, in + 4);
    crdi_dcp_bench_peer_outputs(p, out + 1);
    CRD_TRY(crd_dcp_master_feed(m, index, in, 6));
    CRD_TRY(crd_dcp_master_watch(m, index, out, 8, 1));
    CRD_TRY(crd_dcp_master_configure(m));
    CRD_TRY(crd_dcp_master_run(m, 0, NULL));
    CRD_TRY(drive(m, p));
    CRD_TRY(crd_dcp_master_stop(m));
    say("stopped");
fail:
    crdi_dcp_bench_peer_destroy(p);
    crd_dcp_master_destroy(m);
    return st;
}

int main(int argc, char** argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_process bench|master ADDRESS\n");
        return 2;
    }
    signal(SIGTERM, end);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_net* net = NULL;
    crd_dcp_address at = {0};
    const crd_dcp_bench_config c = config();
    crd_dcp_description* d = motor_description(ctx, &c, true);
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_address_parse(ctx, argv[2], &at));
    CRD_TRY(crd_dcp_net_create(ctx, &net));
    CRD_TRY(strcmp(argv[1], "bench") == 0 ? be_bench(ctx, net, d, at) : be_master(ctx, net, d, at));
fail:
    if (st < 0) { fprintf(stderr, "bench_process: %s\n", crd_error_text(ctx)); }
    crd_dcp_net_destroy(net);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    return st < 0;
}
