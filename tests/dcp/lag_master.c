// lag_master DCPX ADDRESS[,ADDRESS...] nrt|srt STEPS RUNS [force] [quick] [dcplib]: Cardan's
// master with slaves of lag.dcpx, for the tests with other processes. In each run T = 2 and k = 1
// by CFG_parameter, u = 1, k is tuned to 3 in the middle (half of STEPS), y and ticks are watched.
// Says "run N: ticks T y Y" with what came last from each slave, and what the session has to tell
// on standard error. force: takes slaves over that run for somebody else; quick: gives up soon;
// dcplib: the slave is one of DCPLib.
// Exit code 1: something failed; all are brought down before.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "shared/dcp.h"

enum { U, Y, TICKS, T, K }; // variables in the order of the description
enum { MOST = 8 };          // slaves

static void tell(void* user, const crd_dcp_notice* n)
{
    (void)user;
    fprintf(stderr, "%.3f [%d] %s: %s\n", n->time, n->slave, crd_dcp_state_name((int)n->state),
            n->text);
    fflush(stderr);
}

typedef struct plan {
    crd_dcp_op_mode mode;
    int slaves, steps;
    int tunable[MOST];
} plan;

static bool behind(crd_dcp_master* m, const plan* p, int64_t ticks)
{
    for (int i = 0; i < p->slaves; i++) {
        if (*crd_dcp_master_slot(m, i, TICKS)->integer < ticks) { return true; }
    }
    return false;
}

static crd_status go(crd_dcp_master* m, const plan* p, int64_t from, int64_t to)
{
    crd_status st = CRD_OK;
    while (p->mode != CRD_DCP_NRT && behind(m, p, to)) {
        CRD_TRY(crd_dcp_master_wait(m, crd_dcp_master_now(m) + 0.001));
    }
    for (int64_t k = from; p->mode == CRD_DCP_NRT && k < to; k++) {
        for (int i = 0; i < p->slaves; i++) {
            CRD_TRY(crd_dcp_master_begin_step(m, i, 1));
        }
        for (int i = 0; i < p->slaves; i++) {
            CRD_TRY(crd_dcp_master_end_step(m, i));
        }
    }
fail:
    return st;
}

static crd_status run(crd_dcp_master* m, const plan* p, int number)
{
    crd_status st = CRD_OK;
    double start = 0;
    for (int i = 0; i < p->slaves; i++) {
        *crd_dcp_master_slot(m, i, TICKS)->integer = 0;
        *crd_dcp_master_slot(m, i, U)->real = 1;
        *crd_dcp_master_slot(m, i, K)->real = 1;
    }
    CRD_TRY(crd_dcp_master_configure(m));
    CRD_TRY(crd_dcp_master_initialize(m, -1));
    CRD_TRY(crd_dcp_master_run(m, 0, &start));
    for (int i = 0; i < p->slaves; i++) {
        CRD_TRY(crd_dcp_master_send(m, i));
    }
    CRD_TRY(go(m, p, 0, p->steps / 2));
    for (int i = 0; i < p->slaves; i++) {
        *crd_dcp_master_slot(m, i, K)->real = 3;
        CRD_TRY(crd_dcp_master_tune(m, i, p->tunable[i]));
    }
    CRD_TRY(go(m, p, p->steps / 2, p->steps));
    for (int i = 0; i < p->slaves; i++) {
        printf("run %d: ticks %lld y %.17g\n", number,
               (long long)*crd_dcp_master_slot(m, i, TICKS)->integer,
               *crd_dcp_master_slot(m, i, Y)->real);
    }
    fflush(stdout);
    CRD_TRY(crd_dcp_master_stop(m));
fail:
    return st;
}

static crd_status add(crd_context* ctx, crd_dcp_master* m, crd_dcp_slave_spec* spec, plan* p,
                      char* addresses)
{
    const int inputs[] = {U}, outputs[] = {Y, TICKS}, tuned[] = {K};
    crd_status st = CRD_OK;
    for (char* a = strtok(addresses, ","); a && p->slaves < MOST; a = strtok(NULL, ",")) {
        int i = 0;
        CRD_TRY(crd_dcp_address_parse(ctx, a, &spec->control));
        spec->name = a;
        CRD_TRY(crd_dcp_master_add(m, spec, &i));
        CRD_TRY(crd_dcp_master_feed(m, i, inputs, 1));
        CRD_TRY(crd_dcp_master_watch(m, i, outputs, 2, 1));
        CRD_TRY(crd_dcp_master_tunable(m, i, tuned, 1, &p->tunable[i]));
        *crd_dcp_master_slot(m, i, T)->real = 2;
        CRD_TRY(crd_dcp_master_set(m, i, T));
        CRD_TRY(crd_dcp_master_set(m, i, K));
        p->slaves++;
    }
fail:
    return st;
}

static crd_dcp_master_options options(int argc, char** argv)
{
    crd_dcp_master_options o = crd_dcp_master_defaults();
    o.notice = tell;
    for (int i = 6; i < argc; i++) {
        if (strcmp(argv[i], "force") == 0) { o.force = true; }
        if (strcmp(argv[i], "quick") == 0) {
            o.timeout = 0.1;
            o.retries = 10;
            o.patience = 2;
            o.contact = 2;
        }
    }
    return o;
}

int main(int argc, char** argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: lag_master DCPX ADDRESS[,...] nrt|srt STEPS RUNS [force] [quick] "
                        "[dcplib]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_description* d = NULL;
    crd_dcp_net* net = NULL;
    crd_dcp_master* m = NULL;
    const crd_dcp_master_options opt = options(argc, argv);
    crd_dcp_slave_spec spec = {.one_target = strcmp(argv[argc - 1], "dcplib") == 0};
    plan p = {.steps = atoi(argv[4])};
    crd_status st = CRD_OK;
    spec.mode = p.mode = strcmp(argv[3], "nrt") == 0 ? CRD_DCP_NRT : CRD_DCP_SRT;
    CRD_TRY(crd_dcp_load(ctx, argv[1], &d, NULL, NULL));
    spec.description = d;
    CRD_TRY(crd_dcp_net_create(ctx, &net));
    CRD_TRY(crd_dcp_master_create(ctx, net, &opt, &m));
    CRD_TRY(add(ctx, m, &spec, &p, argv[2]));
    for (int i = 0; i < atoi(argv[5]); i++) {
        CRD_TRY(run(m, &p, i + 1));
    }
fail:
    if (st < 0) {
        fprintf(stderr, "lag_master: %s\n", crd_error_text(ctx));
        if (m && crd_dcp_master_stop(m) < 0) {
            fprintf(stderr, "lag_master: stop: %s\n", crd_error_text(ctx));
        }
    }
    crd_dcp_master_destroy(m);
    crd_dcp_net_destroy(net);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    return st < 0;
}
