// A master's hand over a network: asks a slave that hangs on a test network, and repeats what is
// lost.
#pragma once
#include "rig.h"
#include "testnet/testnet.h"

typedef struct hand {
    testnet* t;
    crd_dcp_net *master, *bench;
    crd_dcp_address control; // of the slave
    rig* r;                  // whose slave hangs on the bench's net
    uint16_t seq;
    int state; // as last heard
    int64_t repeats, outputs;
} hand;

// Everything that arrives until then; the answer to request `seq`, if it comes.
static inline bool hand_pass(hand* p, double until, uint16_t seq, crdi_dcp_pdu* answer)
{
    for (;;) {
        const double next = fmax(crd_dcp_slave_next(p->r->slave), testnet_now(p->t));
        const double now = testnet_advance(p->t, fmin(until, next));
        crd_dcp_packet got;
        while (crd_dcp_net_receive(p->bench, &got)) {
            crd_dcp_slave_receive(p->r->slave, &got.from, &got.at, got.bytes, got.length, got.time);
        }
        crd_dcp_slave_advance(p->r->slave, now);
        while (crd_dcp_net_receive(p->master, &got)) {
            crdi_dcp_pdu in;
            check_int(crdi_dcp_decode(got.bytes, got.length, &in), CRDI_DCP_GOOD);
            p->outputs += in.type == CRDI_DCP_DAT_INPUT_OUTPUT;
            if (in.type >= CRDI_DCP_RSP_ACK && in.type <= CRDI_DCP_RSP_LOG_ACK && in.seq == seq &&
                answer) {
                *answer = in;
                return true;
            }
        }
        if (now >= until) { return false; }
    }
}

// Sends a request until it is answered. A duplicate that was refused has been executed.
static inline crdi_dcp_pdu hand_ask(hand* p, crdi_dcp_pdu q)
{
    q.seq = p->seq;
    q.peer = 1;
    uint8_t bytes[RIG_BYTES];
    const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
    // A stream repeats by itself.
    const double patience = p->control.transport == CRD_DCP_TCP ? 60 : 0.5;
    for (int i = 0; i < 200; i++) {
        crdi_dcp_pdu a;
        crdi_dcp_net_send(p->master, &p->control, bytes, n);
        p->repeats += i > 0;
        if (hand_pass(p, testnet_now(p->t) + patience, q.seq, &a)) {
            const uint16_t next = (uint16_t)(q.seq + 1);
            if (a.type == CRDI_DCP_RSP_NACK && a.error == CRD_DCP_E_INVALID_SEQUENCE_ID) {
                check_int(a.expected, next);
                a.type = CRDI_DCP_RSP_ACK;
            }
            p->seq = next;
            return a;
        }
    }
    fail_msg("no answer to 0x%02x", q.type);
    return (crdi_dcp_pdu){0};
}

static inline void hand_say(hand* p, crdi_dcp_pdu q)
{
    const crdi_dcp_pdu a = hand_ask(p, q);
    if (a.type != CRDI_DCP_RSP_ACK) { fail_msg("0x%02x: error 0x%04x", q.type, a.error); }
}

static inline void hand_change(hand* p, crdi_dcp_pdu q, int want)
{
    q.state = (uint8_t)p->state;
    hand_say(p, q);
    do { // notifications may be lost
        const crdi_dcp_pdu a = hand_ask(p, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        if (a.type == CRDI_DCP_RSP_STATE_ACK) { p->state = a.state; }
    } while (p->state != want);
}
