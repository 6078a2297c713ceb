// The slave on a network that loses, doubles, delays and reorders, on the virtual clock.
#include "hand.h"
#include "testnet/testnet.h"

enum { MASTER = 0x0A000001, SLAVE = 0x0A000002 };

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    hand h;
} place;

static void open_place(place* p, const testnet_faults* faults, uint8_t transport)
{
    *p = (place){.h.state = -1};
    p->ctx = check_context(&p->allocator);
    check_ok(testnet_create(p->ctx, faults, &p->h.t));
    check_ok(testnet_join(p->h.t, MASTER, &p->h.master));
    check_ok(testnet_join(p->h.t, SLAVE, &p->h.bench));
    p->h.control = (crd_dcp_address){.ip = SLAVE, .port = 8080, .transport = transport};
    crd_dcp_address m = {.ip = MASTER, .port = 8081, .transport = transport};
    check_ok(crd_dcp_net_listen(p->h.bench, &p->h.control));
    check_ok(crd_dcp_net_listen(p->h.master, &m));
    if (transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(p->h.master, &p->h.control)); }
    p->h.r = rig_create(NULL, NULL);
    crd_dcp_slave_destroy(p->h.r->slave);
    const crd_dcp_plant plant = rig_plant(p->h.r);
    const crd_dcp_link link = crd_dcp_net_link(p->h.bench);
    check_ok(crd_dcp_slave_create(p->h.r->ctx, &p->h.r->d, &plant, &link, NULL, &p->h.r->slave));
}

static void close_place(place* p)
{
    rig_destroy(p->h.r);
    crd_dcp_net_destroy(p->h.master);
    crd_dcp_net_destroy(p->h.bench);
    testnet_destroy(p->h.t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

static void start(place* p, crd_dcp_op_mode mode)
{
    const uint8_t transport = p->h.control.transport;
    crdi_dcp_pdu q = {.type = CRDI_DCP_STC_REGISTER, .op_mode = (uint8_t)mode, .major = 1};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    p->h.seq = 65500;
    p->h.state = CRD_DCP_ALIVE;
    hand_change(&p->h, q, CRD_DCP_CONFIGURATION);
    hand_say(&p->h,
             (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 11});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 1});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 10});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TARGET_NETWORK,
                                   .id = 10,
                                   .transport = transport,
                                   .port = 8081,
                                   .address = MASTER});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = 20, .vr = 1, .data_type = 9});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 20});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SOURCE_NETWORK,
                                   .id = 20,
                                   .transport = transport,
                                   .port = 9001,
                                   .address = SLAVE});
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}, CRD_DCP_PREPARED);
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}, CRD_DCP_CONFIGURED);
}

static void send_u(place* p, uint16_t seq, double u)
{
    uint8_t bytes[13] = {CRDI_DCP_DAT_INPUT_OUTPUT, (uint8_t)seq, (uint8_t)(seq >> 8), 20, 0};
    memcpy(bytes + 5, &u, 8);
    const crd_dcp_address to = {.ip = SLAVE, .port = 9001, .transport = p->h.control.transport};
    crdi_dcp_net_send(p->h.master, &to, bytes, sizeof bytes);
}

static void a_run_over_a_bad_network_does_each_step_once_with_values_that_were_sent(void** state)
{
    static place p;
    static const testnet_faults bad = {
        .delay = 0.005, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2, .seed = 4, .start = 1000};
    for (int tcp = 0; tcp < 2; tcp++) {
        open_place(&p, &bad, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
        start(&p, CRD_DCP_NRT);
        hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_SYNCHRONIZED);
        hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_RUNNING);
        if (tcp) {
            const crd_dcp_address data = {SLAVE, 9001, CRD_DCP_TCP};
            check_ok(crdi_dcp_net_connect(p.h.master, &data));
        }
        double last = 0;
        for (uint16_t i = 0; i < 300; i++) {
            send_u(&p, i, 0.125 * (i + 1));
            hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1},
                        CRD_DCP_COMPUTED);
            check_int(p.h.r->step_count, i + 1);
            const double k = p.h.r->u / 0.125; // one that was sent, none older than the last
            check_near(k, round(k), 0);
            check(p.h.r->u >= last && k <= i + 1);
            last = p.h.r->u;
            hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
        }
        hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}, CRD_DCP_STOPPED);
        // ALIVE knows no sequence ids: there, a repeated one is out of place.
        const crdi_dcp_pdu gone = hand_ask(
            &p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DEREGISTER, .state = CRD_DCP_STOPPED});
        check(gone.type == CRDI_DCP_RSP_ACK || gone.error == CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE);
        check_int(crd_dcp_slave_state(p.h.r->slave), CRD_DCP_ALIVE);
        hand_pass(&p.h, testnet_now(p.h.t) + 5, 0, NULL); // what is still on its way
        const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(p.h.r->slave);
        check_int(c.steps, 300);
        check_int(c.data_out, 300);
        check_int(c.requests, c.acks + c.nacks + c.muted);
        check_int(c.muted, 0);
        if (tcp) {
            check_int(p.h.repeats, 0);
            check_int(c.data_in, 300);
            check_int(p.h.outputs, 300);
        } else {
            check(p.h.repeats > 300);
            check(c.nacks > 100);
            check(c.data_in < 250 && c.data_in > 100);
        }
        close_place(&p);
    }
}

static void a_million_data_over_a_bad_network_are_all_accounted_for(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.seed = 9, .start = 1000}, CRD_DCP_UDP);
    start(&p, CRD_DCP_SRT);
    hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN, .time = 5000},
                CRD_DCP_SYNCHRONIZING);
    check_ok(testnet_set(
        p.h.t, &(testnet_faults){.delay = 0.01, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2}));
    const testnet_counts before = testnet_get_counts(p.h.t);
    enum { COUNT = 1000000 };
    double last = 0;
    for (int i = 0; i < COUNT; i++) {
        send_u(&p, (uint16_t)i, i + 1.0);
        const double now = testnet_now(p.h.t);
        hand_pass(&p.h, now + 0.001, 0, NULL);
        check(p.h.r->u >= last && p.h.r->u <= i + 1.0 && p.h.r->u == floor(p.h.r->u));
        last = p.h.r->u;
    }
    hand_pass(&p.h, testnet_now(p.h.t) + 1, 0, NULL);
    const testnet_counts t = testnet_get_counts(p.h.t);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(p.h.r->slave);
    // Delivered to the slave: taken or too old. Between the first and the last one taken, each was
    // taken or is missed.
    check_int(c.data_in + c.data_old + c.data_dropped, t.sent - before.sent + t.duplicated -
                                                           before.duplicated -
                                                           (t.lost - before.lost) - c.data_out * 0);
    check_int(c.data_dropped, 0);
    check(p.h.r->u > COUNT - 100);
    const double first = p.h.r->u - (double)(c.data_in + c.data_missed) + 1;
    check(first >= 1 && first < 300);
    check_int(crd_dcp_slave_state(p.h.r->slave), CRD_DCP_SYNCHRONIZING);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_over_a_bad_network_does_each_step_once_with_values_that_were_sent),
        cmocka_unit_test(a_million_data_over_a_bad_network_are_all_accounted_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
