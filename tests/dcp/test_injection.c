// Injection: PDUs of every type that others than the registered master send, from foreign addresses
// and ports, with right and wrong sequence ids, lengths and receivers, and old ones of the master
// sent again, in every state, to a slave, to a bench and (as answers, notifications and data) to a
// master. Nothing acts on them, and every one is counted. Who forges the master's very address is
// stopped by a key only.
#include "session.h"

#include "dcp/slave/slave.h"

// ---- a master ----------------------------------------------------------------------------------

enum { ATTACKER = 0x0A000063 };

typedef struct liar {
    session s;
    crd_dcp_net* nets[2]; // on another host, on the slave's host at another port
    int64_t sent;
} liar;

static const int fed[] = {RIG_U, RIG_TORQUE}, watched[] = {RIG_SPEED, RIG_TICKS};

// Answers, notifications and data in the slave's name, with every number that may be waited for.
static void lie(liar* l, uint16_t port)
{
    static const uint8_t told[] = {0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xE0,
                                   0xE1, 0xF0, 0xF1, 0x09, 0x80};
    static const double values[2] = {1e6, 77};
    const crd_dcp_address to = {SESSION_MASTER, port, CRD_DCP_UDP};
    const crd_dcp_slave_status k = crd_dcp_master_status(l->s.m, 0);
    for (size_t t = 0; t < sizeof told; t++) {
        for (int i = 0; i < 60; i++) {
            uint8_t bytes[64];
            crdi_dcp_pdu q = {.type = told[t],
                              .seq = (uint16_t)(told[t] >= 0xF0 ? k.data_in + i - 10 : i),
                              .peer = 1,
                              .state = (uint8_t)(i % CRD_DCP_STATE_COUNT),
                              .error = CRD_DCP_E_GENERIC,
                              .expected = 4711,
                              .id = (uint16_t)(1 + i % 3)};
            if (told[t] >= 0xF0) {
                q.payload = (const uint8_t*)values;
                q.payload_length = 12;
            }
            const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
            l->sent += crdi_dcp_net_send(l->nets[i % 2], &to, bytes, n);
        }
    }
}

// The ports that the master has: that of its requests, and that of its data.
static void lie_everywhere(liar* l)
{
    uint16_t ports[8];
    int count = 0;
    const rig* r = l->s.r[0];
    if (r->slave->state != CRD_DCP_ALIVE) { ports[count++] = r->slave->master.port; }
    for (int i = 0; i < r->slave->group_count && count < 8; i++) {
        const crdi_dcp_group* g = &r->slave->groups[i];
        if (g->target_count > 0 && g->targets[0].port != ports[0]) {
            ports[count++] = g->targets[0].port;
        }
    }
    for (int i = 0; i < count; i++) {
        lie(l, ports[i]);
    }
}

static double run_with_lies(crd_dcp_op_mode mode, bool lies, int64_t* sent, int64_t* foreigners)
{
    static liar l;
    session* s = &l.s;
    l = (liar){0};
    session_open(s, NULL, 1, CRD_DCP_UDP, mode);
    session_master(s, NULL);
    check_ok(testnet_join(s->t, ATTACKER, &l.nets[0]));
    check_ok(testnet_join(s->t, SESSION_SLAVE, &l.nets[1]));
    for (int i = 0; i < 2; i++) {
        crd_dcp_address at = {i ? SESSION_SLAVE : ATTACKER, 7777, CRD_DCP_UDP};
        check_ok(crd_dcp_net_listen(l.nets[i], &at));
    }
    check_ok(crd_dcp_master_feed(s->m, 0, fed, 2));
    check_ok(crd_dcp_master_watch(s->m, 0, watched, 2, 1));
    session_do(s, crd_dcp_master_configure(s->m));
    if (lies) { lie_everywhere(&l); }
    session_do(s, crd_dcp_master_initialize(s->m, -1));
    session_do(s, crd_dcp_master_run(s->m, 0, NULL));
    session_real(s, 0, RIG_U)[0] = 12;
    for (int k = 0; k < 20 && mode == CRD_DCP_NRT; k++) {
        if (lies) { lie_everywhere(&l); }
        session_do(s, crd_dcp_master_begin_step(s->m, 0, 1));
        if (lies) { lie_everywhere(&l); }
        session_do(s, crd_dcp_master_end_step(s->m, 0));
        check_int(session_integer(s, 0, RIG_TICKS)[0], k + 1);
        check_near(session_real(s, 0, RIG_SPEED)[0], s->r[0]->speed, 0);
    }
    const double speed = session_real(s, 0, RIG_SPEED)[0];
    if (lies) { lie_everywhere(&l); }
    session_do(s, crd_dcp_master_stop(s->m));
    const crd_dcp_slave_status k = crd_dcp_master_status(s->m, 0);
    check_int(k.state, CRD_DCP_ALIVE);
    check_int(s->notices[CRD_DCP_NOTICE_REPAIR] + s->notices[CRD_DCP_NOTICE_ERROR] +
                  s->notices[CRD_DCP_NOTICE_LOSS],
              0);
    check_int(k.nacks + k.resynchronised + k.data_old + k.data_missed + k.data_bad, 0);
    *sent = l.sent;
    *foreigners = k.foreign;
    for (int i = 0; i < 2; i++) {
        crd_dcp_net_destroy(l.nets[i]);
    }
    session_close(s);
    return speed;
}

static void a_master_believes_nobody_but_its_slaves(void** test)
{
    (void)test;
    int64_t sent = 0, foreigners = 0;
    const double honest = run_with_lies(CRD_DCP_NRT, false, &sent, &foreigners);
    check_int(foreigners, 0);
    check_near(run_with_lies(CRD_DCP_NRT, true, &sent, &foreigners), honest, 0);
    check(sent > 10000);
    // those that came behind the last wait are not seen any more
    check(foreigners > sent - 2000 && foreigners <= sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_master_believes_nobody_but_its_slaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
