// lag_slave DCPX ADDRESS [STATE]: the lag of lag.dcpx, y' = (k u - y)/T by Euler steps, as a slave
// of Cardan on real sockets, for the tests with other processes. Says "listening at
// udp://127.0.0.1:PORT", and "state NAME" whenever its state changes. Ends with SIGTERM, or with
// the process that started it. In STATE it kills itself, as if it were pulled out of the wall.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "shared/dcp.h"

enum { MOST = 64 };

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static crd_dcp_slave* slave;
static int deadly = -1; // state

static void die_in(int state)
{
    if (state == deadly) { raise(SIGKILL); }
}

typedef struct lag {
    double u, y, t, k;
    int64_t ticks;
    const crd_dcp_description* d;
} lag;

static bool is(const lag* l, int variable, const char* name)
{
    return strcmp(l->d->variables[variable].name, name) == 0;
}

static crd_dcp_outcome enter(void* user, crd_dcp_state state, double now)
{
    lag* l = user;
    (void)now;
    die_in((int)state);
    if (state == CRD_DCP_CONFIGURING) { l->y = 0, l->ticks = 0; }
    return CRD_DCP_DONE;
}

static crd_dcp_outcome step(void* user, int64_t done, uint32_t steps, double resolution)
{
    lag* l = user;
    (void)done;
    die_in((int)crd_dcp_slave_state(slave));
    for (uint32_t i = 0; i < steps; i++) {
        l->y += resolution / l->t * (l->k * l->u - l->y);
    }
    l->ticks += steps;
    return CRD_DCP_DONE;
}

static crd_dcp_outcome set(void* user, int variable, const crd_dcp_slot* value)
{
    lag* l = user;
    if (is(l, variable, "u")) { l->u = *value->real; }
    if (is(l, variable, "T")) { l->t = *value->real; }
    if (is(l, variable, "k")) { l->k = *value->real; }
    return CRD_DCP_DONE;
}

static crd_dcp_outcome get(void* user, int variable, crd_dcp_slot* value)
{
    lag* l = user;
    die_in((int)crd_dcp_slave_state(slave));
    if (is(l, variable, "y")) { *value->real = l->y; }
    if (is(l, variable, "ticks")) { *value->integer = l->ticks; }
    return CRD_DCP_DONE;
}

static void serve(crd_dcp_net* net)
{
    crd_dcp_state told = CRD_DCP_ALIVE;
    while (!ended) {
        crd_dcp_packet p;
        for (int i = 0; i < MOST && crd_dcp_net_receive(net, &p); i++) {
            crd_dcp_slave_receive(slave, &p.from, &p.at, p.bytes, p.length, p.time);
            if (told != CRD_DCP_ALIVE) { die_in((int)crd_dcp_slave_state(slave)); }
        }
        const double now = crd_dcp_net_now(net);
        crd_dcp_slave_advance(slave, now);
        if (crd_dcp_slave_state(slave) != told) {
            told = crd_dcp_slave_state(slave);
            die_in((int)told);
            printf("state %s\n", crd_dcp_state_name(told));
            fflush(stdout);
        }
        crd_dcp_net_wait(net, fmin(crd_dcp_slave_next(slave) - now, 0.2));
    }
}

int main(int argc, char** argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: lag_slave DCPX ADDRESS [STATE|any-port]\n");
        return 2;
    }
    signal(SIGTERM, end);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_description* d = NULL;
    crd_dcp_net* net = NULL;
    crd_dcp_address at = {0};
    lag l = {.t = 1, .k = 1};
    const crd_dcp_plant plant = {.user = &l, .enter = enter, .step = step, .set = set, .get = get};
    crd_dcp_link link = {0};
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    crd_status st = CRD_OK;
    for (int i = 0; argc == 4 && i < CRD_DCP_STATE_COUNT; i++) {
        if (strcmp(argv[3], crd_dcp_state_name(i)) == 0) { deadly = i; }
    }
    CRD_TRY(crd_dcp_load(ctx, argv[1], &d, NULL, NULL));
    l.d = d;
    CRD_TRY(crd_dcp_address_parse(ctx, argv[2], &at));
    CRD_TRY(crd_dcp_net_create(ctx, &net));
    CRD_TRY(crd_dcp_net_listen(net, &at));
    link = crd_dcp_net_link(net);
    opt.any_port = argc == 4 && strcmp(argv[3], "any-port") == 0;
    CRD_TRY(crd_dcp_slave_create(ctx, d, &plant, &link, &opt, &slave));
    char text[32];
    crd_dcp_address_print(&at, text, sizeof text);
    printf("listening at %s\n", text);
    fflush(stdout);
    serve(net);
fail:
    if (st < 0) { fprintf(stderr, "lag_slave: %s\n", crd_error_text(ctx)); }
    crd_dcp_slave_destroy(slave);
    crd_dcp_net_destroy(net);
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    return st < 0;
}
