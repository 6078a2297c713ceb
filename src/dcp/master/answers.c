// What slaves answer and notify, and what is known about them by that.
#include "dcp/master/master.h"

#include <math.h>
#include <stdio.h>

#include "dcp/net/net.h"

enum { LOG_ENTRIES = 8 };          // asked for at once: what fits into DCPLib's buffers
static const double log_pause = 1; // s between two INF_log

// ---- states ------------------------------------------------------------------------------------

// Where it cannot be by our doing.
static bool out_of_place(const crdi_dcp_peer* p, crd_dcp_state state)
{
    if (!p->registered || p->going_down) { return false; }
    return state == CRD_DCP_ALIVE || state == CRD_DCP_STOPPING || state == CRD_DCP_STOPPED ||
           (state == CRD_DCP_CONFIGURATION && p->prepared);
}

// The states of the steps of NRT are no news: they come thousands of times a second.
static bool of_steps(crd_dcp_state state)
{
    return state == CRD_DCP_COMPUTING || state == CRD_DCP_COMPUTED || state == CRD_DCP_SENDING_D;
}

static void adopt_state(crd_dcp_master* m, crdi_dcp_peer* p, crd_dcp_state state)
{
    const bool news = !p->known || (p->status.state != state && !of_steps(state) &&
                                    !(state <= CRD_DCP_RUNNING && of_steps(p->status.state)));
    p->known = true;
    p->status.state = state;
    if (news) {
        crdi_dcp_notify(m, p, CRD_DCP_NOTICE_STATE, CRD_DCP_NONE, "%s", crdi_dcp_state_word(state));
    }
    if (state >= CRD_DCP_ERRORHANDLING && !p->error_asked && p->registered && !p->going_down) {
        if (p->errors_refused > CRDI_DCP_REFUSALS) {
            crdi_dcp_peer_fail(m, p, "the DCP slave went to %s and does not say why",
                               crdi_dcp_state_word((int)state));
            return;
        }
        p->error_asked = true;
        crdi_dcp_ask(m, p, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR});
    }
    if (state >= CRD_DCP_ERRORHANDLING && p->going_down && p->op.stage != CRDI_IDLE &&
        p->op.type != CRDI_DCP_STC_DEREGISTER && p->op.to != CRD_DCP_ERRORRESOLVED) {
        crdi_dcp_forget(p); // on the way down it fell: the aim finds another way
    }
}

static void answers_take_state(crd_dcp_master* m, crdi_dcp_peer* p, uint8_t state)
{
    if (state >= CRD_DCP_STATE_COUNT) { return; }
    if (out_of_place(p, state)) {
        if (++p->doubts < 2) { // it may be a damaged answer: once more
            crdi_dcp_ask_state(m, p);
            return;
        }
        p->status.state = state;
        crdi_dcp_peer_fail(m, p,
                           state == CRD_DCP_ALIVE ? "the DCP slave is %s: it was restarted, or "
                                                    "somebody else has deregistered it"
                           : state == CRD_DCP_CONFIGURATION
                               ? "the DCP slave is in %s again: somebody else has reset it"
                               : "the DCP slave has stopped by itself (%s)",
                           crdi_dcp_state_word(state));
        return;
    }
    p->doubts = 0;
    adopt_state(m, p, state);
    crdi_dcp_settle_operation(m, p);
}

static void take_notification(crd_dcp_master* m, crdi_dcp_peer* p, uint8_t state)
{
    const crdi_dcp_operation* op = &p->op;
    if (state >= CRD_DCP_STATE_COUNT || (p->known && p->status.state == state)) { return; }
    const bool expected = (op->stage == CRDI_ASKED || op->stage == CRDI_ACKED) &&
                          (state == op->via || state == op->to);
    if (expected && p->known && p->status.state == op->to) { return; } // `via` came late
    if (expected || state >= CRD_DCP_ERRORHANDLING) {
        adopt_state(m, p, state);
    } else if (p->registered && op->stage != CRDI_NEED) {
        crdi_dcp_ask_state(m, p);
    } else if (op->stage == CRDI_NEED && state == op->from) {
        adopt_state(m, p, state); // a refusal tells if it was an old one
    }
}

// ---- answers -----------------------------------------------------------------------------------

static void note_round_trip(crdi_dcp_peer* p, const crdi_dcp_request* r, double time)
{
    if (r->tries != 1) { return; } // of which sending it is the answer is not known
    const double trip = fmax(time - r->sent, 0);
    crd_dcp_slave_status* s = &p->status;
    s->round_trip = s->round_trip == 0 ? trip : s->round_trip + (trip - s->round_trip) / 8;
    s->round_trip_max = fmax(s->round_trip_max, trip);
}

static bool answer_fits(uint8_t request, uint8_t answer)
{
    if (answer == CRDI_DCP_RSP_NACK) { return true; }
    return request == CRDI_DCP_INF_STATE   ? answer == CRDI_DCP_RSP_STATE_ACK
           : request == CRDI_DCP_INF_ERROR ? answer == CRDI_DCP_RSP_ERROR_ACK
           : request == CRDI_DCP_INF_LOG   ? answer == CRDI_DCP_RSP_LOG_ACK
                                           : answer == CRDI_DCP_RSP_ACK;
}

// The slave waits for another number: take it over. From here on one request at a time, so that
// answers to what was sent before cannot be taken for others.
static void resynchronise(crd_dcp_master* m, crdi_dcp_peer* p, uint16_t expected)
{
    p->status.resynchronised++;
    crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, CRD_DCP_E_INVALID_SEQUENCE_ID,
                    "the slave expects sequence id %u: taken over", expected);
    p->seq = expected;
    p->window = 1;
    for (int i = 0; i < p->outbox_count && !p->failed; i++) {
        if (p->outbox[i].flying) { crdi_dcp_renew(m, p, i); }
    }
}

static void wrong_sequence(crd_dcp_master* m, crdi_dcp_peer* p, int i, uint16_t expected)
{
    crdi_dcp_request* r = &p->outbox[i];
    const uint8_t type = crdi_dcp_request_type(r);
    if (expected != (uint16_t)(r->seq + 1)) {
        resynchronise(m, p, expected);
    } else if (crdi_dcp_is_state_change(type)) {
        // It has got it before and the answer was lost: the state tells what it did with it.
        crdi_dcp_remove_request(p, i);
        if (p->op.stage == CRDI_ASKED && p->op.type == type) {
            crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, CRD_DCP_NONE,
                            "the answer to %s was lost: asking for the state",
                            crdi_dcp_type_word(type));
            p->op.stage = CRDI_UNSURE;
            p->op.code = CRD_DCP_E_INVALID_SEQUENCE_ID;
            p->op.refusals++;
            p->known = false;
            crdi_dcp_ask_state(m, p);
        }
    } else {
        crdi_dcp_renew(m, p, i); // doing it twice does no harm, and there is an answer
    }
}

// A refused CFG request. false: that is the end of it.
static bool forgive(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_request* r, crd_dcp_error code)
{
    switch (crdi_dcp_request_type(r)) {
    case CRDI_DCP_CFG_STEPS: // which mean nothing in NRT
        return p->spec.mode == CRD_DCP_NRT &&
               (code == CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE || code == CRD_DCP_E_PDU_NOT_SUPPORTED);
    case CRDI_DCP_CFG_LOGGING:
        crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, code,
                        "the slave refuses a log that its description offers: 0x%04X %s",
                        (unsigned)code, crdi_dcp_code_name((int)code));
        return true;
    default:
        return false;
    }
}

// What a CFG request is about, for its sentence.
static void describe_request(const crdi_dcp_peer* p, const crdi_dcp_request* r, char* out,
                             size_t room)
{
    crdi_dcp_pdu q;
    const uint8_t* bytes = crdi_dcp_request_bytes(r);
    *out = 0;
    if (crdi_dcp_decode(bytes, r->length, &q) != CRDI_DCP_GOOD) { return; }
    const int variable = crdi_dcp_names_variable(q.type) ? crd_dcp_find_vr(p->d, q.vr) : -1;
    if (variable >= 0) {
        snprintf(out, room, " of %.100s (%s)", crdi_dcp_variable_name(p, variable),
                 crd_dcp_data_type_name(p->d->variables[variable].type));
    } else if (q.type == CRDI_DCP_CFG_TIME_RES) {
        snprintf(out, room, " %u/%u s", q.numerator, q.denominator);
    } else if (q.type == CRDI_DCP_CFG_STEPS) {
        snprintf(out, room, " %u", q.steps);
    } else if (r->bundle >= 0) {
        const crd_dcp_address a = crdi_dcp_address_of(&q);
        snprintf(out, room, " %s", crdi_dcp_address_text_of(&a).text);
    }
}

static void cfg_refused(crd_dcp_master* m, crdi_dcp_peer* p, int i, crd_dcp_error code)
{
    crdi_dcp_request* r = &p->outbox[i];
    const bool port = code == CRD_DCP_E_INVALID_NETWORK_INFORMATION && r->bundle >= 0;
    if (port && crdi_dcp_master_next_port(m, p, r)) {
        r->flying = false;
        return;
    }
    if (!forgive(m, p, r, code)) {
        char what[160];
        describe_request(p, r, what, sizeof what);
        crdi_dcp_peer_fail(m, p, "the DCP slave refuses %s%s: 0x%04X %s (%s)",
                           crdi_dcp_type_word(crdi_dcp_request_type(r)), what, (unsigned)code,
                           crdi_dcp_code_name((int)code), crd_dcp_error_text((int)code));
        return;
    }
    crdi_dcp_remove_request(p, i);
}

static void take_nack(crd_dcp_master* m, crdi_dcp_peer* p, int i, const crdi_dcp_pdu* a)
{
    const uint8_t type = crdi_dcp_request_type(&p->outbox[i]);
    const crd_dcp_error code = (crd_dcp_error)a->error;
    p->status.nacks++;
    if (code == CRD_DCP_E_INVALID_SEQUENCE_ID) {
        wrong_sequence(m, p, i, a->expected);
    } else if (crdi_dcp_is_state_change(type)) {
        crdi_dcp_remove_request(p, i);
        if (p->op.stage == CRDI_ASKED && p->op.type == type) {
            crdi_dcp_operation_refused(m, p, code);
        }
    } else if (crdi_dcp_is_configuration(type)) {
        cfg_refused(m, p, i, code);
    } else if (type == CRDI_DCP_INF_STATE) {
        crdi_dcp_renew(m, p, i); // which it may not refuse
    } else {
        crdi_dcp_remove_request(p, i);
        if (type == CRDI_DCP_INF_ERROR) { // then it is not in error
            p->error_asked = false;
            p->errors_refused++;
            p->known = false;
            crdi_dcp_ask_state(m, p);
        }
        if (type == CRDI_DCP_INF_LOG) { p->log_mode = 0; }
    }
}

void crdi_dcp_ask_log(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const crd_dcp_description* d = p->d;
    if (p->log_mode != 1 || d->category_count == 0 || crdi_dcp_asks(p, CRDI_DCP_INF_LOG)) {
        return;
    }
    const int k = p->log_category++ % d->category_count;
    p->logs_asked++;
    p->log_at = m->now + log_pause / d->category_count;
    crdi_dcp_ask(m, p,
                 &(crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG,
                                 .category = d->categories[k].id,
                                 .max = LOG_ENTRIES});
}

static void in_error(crd_dcp_master* m, crdi_dcp_peer* p, uint16_t code)
{
    p->status.error = (crd_dcp_error)code;
    if (p->going_down) { return; }
    const crd_dcp_state state =
        p->status.state >= CRD_DCP_ERRORHANDLING ? p->status.state : CRD_DCP_ERRORHANDLING;
    const bool late = p->spec.mode == CRD_DCP_HRT && code == CRD_DCP_E_GENERIC;
    crdi_dcp_peer_fail(m, p, "the DCP slave went to %s: 0x%04X %s (%s%s)%s%s",
                       crdi_dcp_state_word((int)state), code, crdi_dcp_code_name(code),
                       crd_dcp_error_text(code),
                       late ? "; in HRT that is a step that was late: run the slave with real-time "
                              "priority, or in mode srt"
                            : "",
                       *p->logged ? "; its last message: " : "", p->logged);
    crdi_dcp_ask_log(m, p); // which may say more
}

static void take_answer(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_pdu* a, double time)
{
    int i = 0;
    while (i < p->outbox_count && !(p->outbox[i].flying && p->outbox[i].seq == a->seq)) {
        i++;
    }
    if (i == p->outbox_count || !answer_fits(crdi_dcp_request_type(&p->outbox[i]), a->type)) {
        return;
    }
    if (a->peer != p->id && a->peer != 0 && !p->contacting) { return; }
    if (a->type == CRDI_DCP_RSP_STATE_ACK && a->state >= CRD_DCP_STATE_COUNT) { return; }
    const uint8_t type = crdi_dcp_request_type(&p->outbox[i]);
    p->status.lost = false;
    note_round_trip(p, &p->outbox[i], time);
    if (a->type == CRDI_DCP_RSP_NACK) {
        take_nack(m, p, i, a);
        crdi_dcp_transmit(m, p);
        return;
    }
    crdi_dcp_remove_request(p, i);
    if (type == CRDI_DCP_INF_STATE) {
        if (p->contacting && a->peer != 0) { p->id = a->peer; }
        p->contacting = false;
        answers_take_state(m, p, a->state);
    } else if (type == CRDI_DCP_INF_ERROR) {
        in_error(m, p, a->error);
    } else if (type == CRDI_DCP_INF_LOG) {
        crdi_dcp_master_log(m, p, a);
        if (a->payload_length > 0) {
            p->log_at = m->now; // there may be more
            p->log_category--;
        } else {
            p->logs_empty++;
        }
        crdi_dcp_wake(m, p, p->log_at);
    } else if (crdi_dcp_is_state_change(type) && p->op.stage == CRDI_ASKED && p->op.type == type) {
        p->op.stage = CRDI_ACKED;
        p->op.pause = m->opt.timeout;
        p->op.poll = m->now + m->opt.timeout;
        p->op.until = m->now + crdi_dcp_patience(m, &p->op) +
                      (type == CRDI_DCP_STC_RUN && p->op.time ? m->run_lead : 0);
        crdi_dcp_wake(m, p, p->op.poll);
    }
    crdi_dcp_transmit(m, p);
}

// ---- packets -----------------------------------------------------------------------------------

// Who speaks control from there: with this id if several do.
static crdi_dcp_peer* find_peer(crd_dcp_master* m, const crd_dcp_address* from, uint8_t id)
{
    crdi_dcp_peer* found = NULL;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (!crd_dcp_address_equal(&p->spec.control, from)) { continue; }
        if (p->id == id) { return p; }
        if (!found) { found = p; }
    }
    return found;
}

// DCPLib answers INF_log with an empty datagram where it has nothing.
static void nothing_came(crd_dcp_master* m, const crd_dcp_packet* packet)
{
    crdi_dcp_peer* p = find_peer(m, &packet->from, 0);
    if (!p) { crdi_dcp_count_foreign(m, 0); }
    for (int i = 0; p && i < p->outbox_count; i++) {
        if (crdi_dcp_request_type(&p->outbox[i]) == CRDI_DCP_INF_LOG && p->outbox[i].flying) {
            crdi_dcp_remove_request(p, i);
            p->logs_empty++;
            crdi_dcp_transmit(m, p);
            crdi_dcp_drive(m, p);
            return;
        }
    }
}

void crdi_dcp_count_foreign(crd_dcp_master* m, uint8_t id)
{
    int i = m->count - 1;
    while (i > 0 && m->peers[i].id != id) {
        i--;
    }
    if (i >= 0) { m->peers[i].status.foreign++; }
}

void crdi_dcp_handle_packet(crd_dcp_master* m, const crd_dcp_packet* packet)
{
    crdi_dcp_pdu a;
    if (packet->time > m->now) { m->now = packet->time; }
    if (packet->length == 0) {
        nothing_came(m, packet);
        return;
    }
    const bool good = crdi_dcp_decode(packet->bytes, packet->length, &a) == CRDI_DCP_GOOD;
    if (good && a.type == CRDI_DCP_DAT_INPUT_OUTPUT) {
        crdi_dcp_master_take(m, &packet->from, &a, packet->time);
        return;
    }
    const bool answer = good && crdi_dcp_is_response(a.type);
    const bool said =
        answer || (good && (a.type == CRDI_DCP_NTF_STATE_CHANGED || a.type == CRDI_DCP_NTF_LOG));
    crdi_dcp_peer* p = find_peer(m, &packet->from, a.peer);
    if (!p) { crdi_dcp_count_foreign(m, a.peer); }
    if (!p || !said) { return; }
    p->status.last_pdu = packet->time;
    if (answer) {
        take_answer(m, p, &a, packet->time);
    } else if (a.peer != p->id) {
        return;
    } else if (a.type == CRDI_DCP_NTF_STATE_CHANGED) {
        take_notification(m, p, a.state);
    } else {
        crdi_dcp_master_log(m, p, &a);
    }
    crdi_dcp_drive(m, p);
}
