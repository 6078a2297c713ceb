// The slave on a network that loses, doubles, delays and reorders, on the virtual clock.
#include "rig.h"

enum { MASTER = 0x0A000001, SLAVE = 0x0A000002 };

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    crd_dcp_testnet* t;
    crd_dcp_net *master, *bench;
    crd_dcp_address control; // of the slave
    rig* r;                  // whose slave hangs on the bench's net
    uint16_t seq;
    int state; // as last heard
    int64_t repeats, outputs;
} place;

static void open_place(place* p, const crd_dcp_faults* faults, uint8_t transport)
{
    *p = (place){.state = -1};
    p->ctx = check_context(&p->allocator);
    check_ok(crd_dcp_testnet_create(p->ctx, faults, &p->t));
    check_ok(crd_dcp_testnet_join(p->t, MASTER, &p->master));
    check_ok(crd_dcp_testnet_join(p->t, SLAVE, &p->bench));
    p->control = (crd_dcp_address){.ip = SLAVE, .port = 8080, .transport = transport};
    crd_dcp_address m = {.ip = MASTER, .port = 8081, .transport = transport};
    check_ok(crd_dcp_net_listen(p->bench, &p->control));
    check_ok(crd_dcp_net_listen(p->master, &m));
    if (transport == CRD_DCP_TCP) { check_ok(crd_dcp_net_connect(p->master, &p->control)); }
    p->r = rig_create(NULL, NULL);
    crd_dcp_slave_destroy(p->r->slave);
    const crd_dcp_plant plant = rig_plant(p->r);
    const crd_dcp_link link = crd_dcp_net_link(p->bench);
    check_ok(crd_dcp_slave_create(p->r->ctx, &p->r->d, &plant, &link, NULL, &p->r->slave));
}

static void close_place(place* p)
{
    rig_destroy(p->r);
    crd_dcp_net_destroy(p->master);
    crd_dcp_net_destroy(p->bench);
    crd_dcp_testnet_destroy(p->t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

// Everything that arrives until then; the answer to request `seq`, if it comes.
static bool pass(place* p, double until, uint16_t seq, crd_dcp_pdu* answer)
{
    for (;;) {
        const double next = fmax(crd_dcp_slave_next(p->r->slave), crd_dcp_testnet_now(p->t));
        const double now = crd_dcp_testnet_advance(p->t, fmin(until, next));
        crd_dcp_packet got;
        while (crd_dcp_net_receive(p->bench, &got)) {
            crd_dcp_slave_receive(p->r->slave, &got.from, &got.at, got.bytes, got.length, got.time);
        }
        crd_dcp_slave_advance(p->r->slave, now);
        while (crd_dcp_net_receive(p->master, &got)) {
            crd_dcp_pdu in;
            check_int(crd_dcp_decode(got.bytes, got.length, &in), CRD_DCP_GOOD);
            p->outputs += in.type == CRD_DCP_DAT_INPUT_OUTPUT;
            if (in.type >= CRD_DCP_RSP_ACK && in.type <= CRD_DCP_RSP_LOG_ACK && in.seq == seq &&
                answer) {
                *answer = in;
                return true;
            }
        }
        if (now >= until) { return false; }
    }
}

// Sends a request until it is answered. A duplicate that was refused has been executed.
static crd_dcp_pdu ask(place* p, crd_dcp_pdu q)
{
    q.seq = p->seq;
    q.peer = 1;
    uint8_t bytes[RIG_BYTES];
    const size_t n = crd_dcp_encode(&q, bytes, sizeof bytes);
    // A stream repeats by itself.
    const double patience = p->control.transport == CRD_DCP_TCP ? 60 : 0.5;
    for (int i = 0; i < 200; i++) {
        crd_dcp_pdu a;
        crd_dcp_net_send(p->master, &p->control, bytes, n);
        p->repeats += i > 0;
        if (pass(p, crd_dcp_testnet_now(p->t) + patience, q.seq, &a)) {
            const uint16_t next = (uint16_t)(q.seq + 1);
            if (a.type == CRD_DCP_RSP_NACK && a.error == CRD_DCP_E_INVALID_SEQUENCE_ID) {
                check_int(a.expected, next);
                a.type = CRD_DCP_RSP_ACK;
            }
            p->seq = next;
            return a;
        }
    }
    fail_msg("no answer to 0x%02x", q.type);
    return (crd_dcp_pdu){0};
}

static void say(place* p, crd_dcp_pdu q)
{
    const crd_dcp_pdu a = ask(p, q);
    if (a.type != CRD_DCP_RSP_ACK) { fail_msg("0x%02x: error 0x%04x", q.type, a.error); }
}

static void change(place* p, crd_dcp_pdu q, int want)
{
    q.state = (uint8_t)p->state;
    say(p, q);
    do { // notifications may be lost
        const crd_dcp_pdu a = ask(p, (crd_dcp_pdu){.type = CRD_DCP_INF_STATE});
        if (a.type == CRD_DCP_RSP_STATE_ACK) { p->state = a.state; }
    } while (p->state != want);
}

static void start(place* p, crd_dcp_op_mode mode)
{
    const uint8_t transport = p->control.transport;
    crd_dcp_pdu q = {.type = CRD_DCP_STC_REGISTER, .op_mode = (uint8_t)mode, .major = 1};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    p->seq = 65500;
    p->state = CRD_DCP_ALIVE;
    change(p, q, CRD_DCP_CONFIGURATION);
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_OUTPUT, .id = 10, .vr = 11});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_STEPS, .id = 10, .steps = 1});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_SCOPE, .id = 10});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_TARGET_NETWORK,
                         .id = 10,
                         .transport = transport,
                         .port = 8081,
                         .address = MASTER});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_INPUT, .id = 20, .vr = 1, .data_type = 9});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_SCOPE, .id = 20});
    say(p, (crd_dcp_pdu){.type = CRD_DCP_CFG_SOURCE_NETWORK,
                         .id = 20,
                         .transport = transport,
                         .port = 9001,
                         .address = SLAVE});
    change(p, (crd_dcp_pdu){.type = CRD_DCP_STC_PREPARE}, CRD_DCP_PREPARED);
    change(p, (crd_dcp_pdu){.type = CRD_DCP_STC_CONFIGURE}, CRD_DCP_CONFIGURED);
}

static void send_u(place* p, uint16_t seq, double u)
{
    uint8_t bytes[13] = {CRD_DCP_DAT_INPUT_OUTPUT, (uint8_t)seq, (uint8_t)(seq >> 8), 20, 0};
    memcpy(bytes + 5, &u, 8);
    const crd_dcp_address to = {.ip = SLAVE, .port = 9001, .transport = p->control.transport};
    crd_dcp_net_send(p->master, &to, bytes, sizeof bytes);
}

static void a_run_over_a_bad_network_does_each_step_once_with_values_that_were_sent(void** state)
{
    (void)state;
    static place p;
    static const crd_dcp_faults bad = {
        .delay = 0.005, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2, .seed = 4, .start = 1000};
    for (int tcp = 0; tcp < 2; tcp++) {
        open_place(&p, &bad, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
        start(&p, CRD_DCP_NRT);
        change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_RUN}, CRD_DCP_SYNCHRONIZED);
        change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_RUN}, CRD_DCP_RUNNING);
        if (tcp) {
            const crd_dcp_address data = {SLAVE, 9001, CRD_DCP_TCP};
            check_ok(crd_dcp_net_connect(p.master, &data));
        }
        double last = 0;
        for (uint16_t i = 0; i < 300; i++) {
            send_u(&p, i, 0.125 * (i + 1));
            change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_DO_STEP, .steps = 1}, CRD_DCP_COMPUTED);
            check_int(p.r->step_count, i + 1);
            const double k = p.r->u / 0.125; // one that was sent, none older than the last
            check_near(k, round(k), 0);
            check(p.r->u >= last && k <= i + 1);
            last = p.r->u;
            change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
        }
        change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_STOP}, CRD_DCP_STOPPED);
        // ALIVE knows no sequence ids: there, a repeated one is out of place.
        const crd_dcp_pdu gone =
            ask(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_DEREGISTER, .state = CRD_DCP_STOPPED});
        check(gone.type == CRD_DCP_RSP_ACK || gone.error == CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE);
        check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_ALIVE);
        pass(&p, crd_dcp_testnet_now(p.t) + 5, 0, NULL); // what is still on its way
        const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(p.r->slave);
        check_int(c.steps, 300);
        check_int(c.data_out, 300);
        check_int(c.requests, c.acks + c.nacks + c.muted);
        check_int(c.muted, 0);
        if (tcp) {
            check_int(p.repeats, 0);
            check_int(c.data_in, 300);
            check_int(p.outputs, 300);
        } else {
            check(p.repeats > 300);
            check(c.nacks > 100);
            check(c.data_in < 250 && c.data_in > 100);
        }
        close_place(&p);
    }
}

static void a_million_data_over_a_bad_network_are_all_accounted_for(void** state)
{
    (void)state;
    static place p;
    open_place(&p, &(crd_dcp_faults){.seed = 9, .start = 1000}, CRD_DCP_UDP);
    start(&p, CRD_DCP_SRT);
    change(&p, (crd_dcp_pdu){.type = CRD_DCP_STC_RUN, .time = 5000}, CRD_DCP_SYNCHRONIZING);
    check_ok(crd_dcp_testnet_set(
        p.t, &(crd_dcp_faults){.delay = 0.01, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2}));
    const crd_dcp_testnet_counts before = crd_dcp_testnet_get_counts(p.t);
    enum { COUNT = 1000000 };
    double last = 0;
    for (int i = 0; i < COUNT; i++) {
        send_u(&p, (uint16_t)i, i + 1.0);
        const double now = crd_dcp_testnet_now(p.t);
        pass(&p, now + 0.001, 0, NULL);
        check(p.r->u >= last && p.r->u <= i + 1.0 && p.r->u == floor(p.r->u));
        last = p.r->u;
    }
    pass(&p, crd_dcp_testnet_now(p.t) + 1, 0, NULL);
    const crd_dcp_testnet_counts t = crd_dcp_testnet_get_counts(p.t);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(p.r->slave);
    // Delivered to the slave: taken or too old. Between the first and the last one taken, each was
    // taken or is missed.
    check_int(c.data_in + c.data_old + c.data_dropped, t.sent - before.sent + t.duplicated -
                                                           before.duplicated -
                                                           (t.lost - before.lost) - c.data_out * 0);
    check_int(c.data_dropped, 0);
    check(p.r->u > COUNT - 100);
    const double first = p.r->u - (double)(c.data_in + c.data_missed) + 1;
    check(first >= 1 && first < 300);
    check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_SYNCHRONIZING);
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
