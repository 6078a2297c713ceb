// A master and slaves on real sockets of the loopback, in one thread: the slaves have their turn
// whenever the master waits.
#include "session.h"

enum { SLAVES = 3 };

typedef struct town {
    check_allocator allocator;
    crd_context* ctx;
    crd_dcp_net *net, *nets[SLAVES];
    rig* r[SLAVES];
    crd_dcp_address control[SLAVES];
    crd_dcp_master* m;
} town;

static bool turn(void* user)
{
    town* t = user;
    for (int i = 0; i < SLAVES; i++) {
        crd_dcp_packet p;
        while (crd_dcp_net_receive(t->nets[i], &p)) {
            crd_dcp_slave_receive(t->r[i]->slave, &p.from, &p.at, p.bytes, p.length, p.time);
        }
        crd_dcp_slave_advance(t->r[i]->slave, crd_dcp_net_now(t->nets[i]));
    }
    return false;
}

static void open_town(town* t, uint8_t transport)
{
    *t = (town){0};
    t->ctx = check_context(&t->allocator);
    check_ok(crd_dcp_net_create(t->ctx, &t->net));
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.cancelled = turn;
    opt.user = t;
    opt.timeout = 20; // nothing is lost here, however slow the machine is
    opt.contact = 60;
    check_ok(crd_dcp_master_create(t->ctx, t->net, &opt, &t->m));
    for (int i = 0; i < SLAVES; i++) {
        t->r[i] = rig_create(NULL, NULL);
        t->control[i] = (crd_dcp_address){.ip = 0x7F000001, .transport = transport};
        check_ok(crd_dcp_net_create(t->ctx, &t->nets[i]));
        check_ok(crd_dcp_net_listen(t->nets[i], &t->control[i]));
        crd_dcp_slave_destroy(t->r[i]->slave);
        const crd_dcp_plant plant = rig_plant(t->r[i]);
        const crd_dcp_link link = crd_dcp_net_link(t->nets[i]);
        check_ok(
            crd_dcp_slave_create(t->r[i]->ctx, &t->r[i]->d, &plant, &link, NULL, &t->r[i]->slave));
        const crd_dcp_slave_spec spec = {.name = "motor",
                                         .description = &t->r[i]->d,
                                         .control = t->control[i],
                                         .mode = CRD_DCP_NRT};
        check_ok(crd_dcp_master_add(t->m, &spec, NULL));
        check_ok(crd_dcp_master_feed(t->m, i, (int[]){RIG_U, RIG_TORQUE, RIG_TEXT}, 3));
        check_ok(crd_dcp_master_watch(t->m, i, (int[]){RIG_SPEED, RIG_TICKS, RIG_STATUS}, 3, 1));
    }
    check_ok(crd_dcp_master_route(t->m, 0, RIG_TICKS, 1, RIG_TORQUE, 1, NULL));
}

static void close_town(town* t)
{
    crd_dcp_master_destroy(t->m);
    crd_dcp_net_destroy(t->net);
    for (int i = 0; i < SLAVES; i++) {
        rig_destroy(t->r[i]);
        crd_dcp_net_destroy(t->nets[i]);
    }
    crd_context_destroy(t->ctx);
    check_int(t->allocator.live, 0);
}

#define town_do(t, expr)                                                                           \
    do {                                                                                           \
        if ((expr) != CRD_OK) { fail_msg("%s: %s", #expr, crd_error_text((t)->ctx)); }             \
    } while (0)

static void sessions_run_over_real_sockets(void** state)
{
    static town t;
    for (int tcp = 0; tcp < 2; tcp++) {
        open_town(&t, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
        for (int again = 0; again < 2; again++) {
            town_do(&t, crd_dcp_master_configure(t.m));
            town_do(&t, crd_dcp_master_initialize(t.m, -1));
            town_do(&t, crd_dcp_master_run(t.m, 0, NULL));
            for (int k = 0; k < 100; k++) {
                for (int i = 0; i < SLAVES; i++) {
                    *crd_dcp_master_slot(t.m, i, RIG_U)->real = k;
                    town_do(&t, crd_dcp_master_begin_step(t.m, i, 1));
                }
                for (int i = 0; i < SLAVES; i++) {
                    town_do(&t, crd_dcp_master_end_step(t.m, i));
                    check_near(t.r[i]->u, k, 0);
                    check_int(*crd_dcp_master_slot(t.m, i, RIG_TICKS)->integer, k + 1);
                    check_near(*crd_dcp_master_slot(t.m, i, RIG_SPEED)->real, t.r[i]->speed, 0);
                }
                check_near(t.r[1]->torque, k, 0); // ticks of the step before
            }
            town_do(&t, crd_dcp_master_stop(t.m));
            for (int i = 0; i < SLAVES; i++) {
                check_int(crd_dcp_slave_state(t.r[i]->slave), CRD_DCP_ALIVE);
                const crd_dcp_slave_status s = crd_dcp_master_status(t.m, i);
                check_int(s.repeated + s.nacks + s.data_missed + s.data_bad, 0);
                t.r[i]->ticks = 0;
                *crd_dcp_master_slot(t.m, i, RIG_TORQUE)->real = 0;
            }
        }
        close_town(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_run_over_real_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
