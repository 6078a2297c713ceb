// Requests and changes of state, repeated and supervised.
//
// A request has the slave's next sequence id and is sent again, the same, until it is answered.
// Over datagrams one is on its way at a time. An answer counts if it has the sequence id of a
// request that is on its way; notifications have none and may be late, so that they are believed
// only where they fit to the operation that is under way, and looked after with INF_state where
// they do not.
#include "dcp/master/master.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dcp/net/net.h"

enum {
    SCAN_FIRST = 3,       // tries of the contact until other ids are tried
    SCAN_EVERY = 5,       // tries between two of these
    MOST_PACKETS = 10000, // taken in by one poll
};
static const double longest_pause = 1; // s between two questions for the state during a duty

// ---- words -------------------------------------------------------------------------------------

void crdi_dcp_notify(crd_dcp_master* m, crdi_dcp_peer* p, crd_dcp_notice_kind kind,
                     crd_dcp_error error, const char* format, ...)
{
    if (!m->opt.notice) { return; }
    char text[CRDI_DCP_REASON];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const crd_dcp_notice n = {.kind = kind,
                              .slave = p->index,
                              .time = m->now,
                              .state = p->status.state,
                              .error = error,
                              .text = text};
    m->opt.notice(m->opt.user, &n);
}

void crdi_dcp_peer_fail(crd_dcp_master* m, crdi_dcp_peer* p, const char* format, ...)
{
    if (p->failed) { return; }
    char text[CRDI_DCP_REASON - 64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(p->reason, sizeof p->reason, "%.60s: %s", p->spec.name, text);
    p->failed = true;
    p->aim = NULL;
    if (p->op.stage != CRDI_IDLE) { p->known = false; } // it may have gone on
    crdi_dcp_forget(p);
    if (m->failed < 0 && !m->stopping) { m->failed = p->index; }
    crdi_dcp_notify(m, p, CRD_DCP_NOTICE_ERROR, p->status.error, "%s", text);
}

crd_status crdi_dcp_failure(crd_dcp_master* m)
{
    return crdi_fail(m->ctx, CRD_E_UNIT, "%s", m->peers[m->failed].reason);
}

const char* crdi_dcp_code_name(int code)
{
    const char* name = crd_dcp_error_name(code);
    return name ? name : "unknown";
}

const char* crdi_dcp_state_word(int state)
{
    const char* name = crd_dcp_state_name(state);
    return name ? name : "an unknown state";
}

const char* crdi_dcp_type_word(int type)
{
    const char* name = crdi_dcp_type_name(type);
    return name ? name : "a request";
}

// ---- requests ----------------------------------------------------------------------------------

double crdi_dcp_master_clock(crd_dcp_master* m)
{
    const double now = crd_dcp_net_now(m->net);
    if (now > m->now) { m->now = now; }
    return m->now;
}

void crdi_dcp_wake(crd_dcp_master* m, crdi_dcp_peer* p, double time)
{
    if (time < p->due) { p->due = time; }
    if (time < m->due) { m->due = time; }
}

const uint8_t* crdi_dcp_request_bytes(const crdi_dcp_request* r)
{
    return r->bytes ? r->bytes : r->small;
}

uint8_t crdi_dcp_request_type(const crdi_dcp_request* r)
{
    return crdi_dcp_request_bytes(r)[0];
}

bool crdi_dcp_asks(const crdi_dcp_peer* p, uint8_t type)
{
    for (int i = 0; i < p->outbox_count; i++) {
        if (crdi_dcp_request_type(&p->outbox[i]) == type) { return true; }
    }
    return false;
}

static void send_request(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_request* r)
{
    const crd_dcp_address* to = &p->spec.control;
    r->sent = crdi_dcp_master_clock(m);
    if (r->tries++ == 0) { r->begun = r->sent; }
    if (r->tries > 1) { p->status.repeated++; }
    if (to->transport == CRD_DCP_TCP && !crdi_dcp_net_connected(m->net, to)) {
        (void)crdi_dcp_net_connect(m->net, to); // that it did not come about shows by no answer
    }
    (void)crdi_dcp_net_send(m->net, to, crdi_dcp_request_bytes(r), r->length);
    crdi_dcp_wake(m, p, r->sent + p->timeout);
}

// Sends what may be on its way and is not.
void crdi_dcp_transmit(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->outbox_count && i < p->window; i++) {
        crdi_dcp_request* r = &p->outbox[i];
        if (r->flying) { continue; }
        uint8_t* bytes = r->bytes ? r->bytes : r->small;
        r->flying = true;
        r->tries = 0;
        r->seq = p->seq++;
        crdi_store_le(bytes + 1, 2, r->seq);
        bytes[3] = p->id;
        p->status.requests++;
        send_request(m, p, r);
    }
}

void crdi_dcp_push(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_request* r)
{
    if (p->outbox_count == CRDI_DCP_OUTBOX) { return; }
    p->outbox[p->outbox_count++] = *r;
    crdi_dcp_transmit(m, p);
}

void crdi_dcp_ask(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_pdu* pdu)
{
    crdi_dcp_request r = {.bundle = -1};
    r.length = (uint32_t)crdi_dcp_encode(pdu, r.small, sizeof r.small);
    if (pdu->type == CRDI_DCP_INF_STATE) {
        p->beat = m->now + p->beat_pause;
        if (p->registered) { crdi_dcp_wake(m, p, p->beat); }
    }
    crdi_dcp_push(m, p, &r);
}

void crdi_dcp_ask_state(crd_dcp_master* m, crdi_dcp_peer* p)
{
    if (crdi_dcp_asks(p, CRDI_DCP_INF_STATE)) { return; }
    crdi_dcp_ask(m, p, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
}

void crdi_dcp_remove_request(crdi_dcp_peer* p, int i)
{
    p->outbox_count--;
    memmove(&p->outbox[i], &p->outbox[i + 1], (size_t)(p->outbox_count - i) * sizeof p->outbox[0]);
}

// It gets another sequence id: the old one was used up, or is not the one the slave waits for.
void crdi_dcp_renew(crd_dcp_master* m, crdi_dcp_peer* p, int i)
{
    crdi_dcp_request* r = &p->outbox[i];
    r->flying = false;
    if (++r->renewals > CRDI_DCP_RENEWALS) {
        crdi_dcp_peer_fail(m, p,
                           "the DCP slave refuses the sequence ids of %s, also those that it names",
                           crdi_dcp_type_word(crdi_dcp_request_type(r)));
    }
}

void crdi_dcp_forget(crdi_dcp_peer* p)
{
    p->outbox_count = 0;
    p->op.stage = CRDI_IDLE;
    p->contacting = false;
    p->error_asked = false;
    p->data_until = INFINITY;
}

// ---- operations --------------------------------------------------------------------------------

double crdi_dcp_patience(const crd_dcp_master* m, const crdi_dcp_operation* op)
{
    const bool rests = op->to == CRD_DCP_STOPPED || op->to == CRD_DCP_ERRORRESOLVED;
    return rests ? fmax(m->opt.patience, m->opt.rest) : m->opt.patience;
}

void crdi_dcp_begin(crd_dcp_master* m, crdi_dcp_peer* p, uint8_t type, crd_dcp_state from,
                    crd_dcp_state via, crd_dcp_state to)
{
    const double now = m->now;
    p->op = (crdi_dcp_operation){.stage = type ? CRDI_NEED : CRDI_ACKED,
                                 .type = type,
                                 .from = from,
                                 .via = via,
                                 .to = to,
                                 .steps = p->op.steps,
                                 .time = p->op.time,
                                 .pause = m->opt.timeout,
                                 .poll = now + m->opt.timeout};
    p->op.until = now + crdi_dcp_patience(m, &p->op);
    crdi_dcp_wake(m, p, p->op.poll);
}

static void issue_request(crd_dcp_master* m, crdi_dcp_peer* p)
{
    crdi_dcp_operation* op = &p->op;
    crdi_dcp_pdu pdu = {.type = op->type,
                        .state = (uint8_t)op->from,
                        .steps = op->steps,
                        .time = op->time,
                        .op_mode = (uint8_t)p->spec.mode,
                        .major = p->d->major,
                        .minor = p->d->minor};
    memcpy(pdu.uuid, p->d->uuid, sizeof pdu.uuid);
    op->stage = CRDI_ASKED;
    crdi_dcp_ask(m, p, &pdu);
}

void crdi_dcp_drive(crd_dcp_master* m, crdi_dcp_peer* p)
{
    crdi_dcp_operation* op = &p->op;
    for (int i = 0; i < 100; i++) {
        if (p->failed) { return; }
        if (op->stage == CRDI_NEED && p->known && p->status.state == op->from) {
            issue_request(m, p);
        }
        if (op->stage == CRDI_ACKED && p->status.state == op->to) { op->stage = CRDI_IDLE; }
        if (op->stage != CRDI_IDLE || !p->aim) { return; }
        crdi_dcp_aim* const aim = p->aim;
        const int phase = p->phase;
        if (aim(m, p)) {
            p->aim = NULL;
            return;
        }
        if (op->stage == CRDI_IDLE && p->phase == phase) { return; } // it waits
    }
}

void crdi_dcp_aim_at(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_aim* aim)
{
    p->aim = p->failed ? NULL : aim;
    p->phase = p->detours = 0;
    p->data_until = INFINITY;
    crdi_dcp_drive(m, p);
}

void crdi_dcp_operation_refused(crd_dcp_master* m, crdi_dcp_peer* p, crd_dcp_error code)
{
    crdi_dcp_operation* op = &p->op;
    op->code = code;
    if (code == CRD_DCP_E_INVALID_START_TIME && op->type == CRDI_DCP_STC_RUN && op->time != 0) {
        crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, code,
                        "the slave's clock is past the common start: it is started at once");
        op->time = 0;
        op->stage = CRDI_NEED;
        return;
    }
    // Where the slave is not where it was thought to be, its state decides how to go on.
    const bool about_state = code == CRD_DCP_E_TRANSITION_IN_PROGRESS ||
                             code == CRD_DCP_E_INVALID_STATE_ID ||
                             code == CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE;
    if (about_state && ++op->refusals <= CRDI_DCP_REFUSALS) {
        op->stage = CRDI_UNSURE;
        p->known = false;
        crdi_dcp_ask_state(m, p);
        return;
    }
    crdi_dcp_peer_fail(m, p, "the DCP slave refuses %s in %s: 0x%04X %s (%s)",
                       crdi_dcp_type_word(op->type), crdi_dcp_state_word((int)op->from),
                       (unsigned)code, crdi_dcp_code_name((int)code),
                       crd_dcp_error_text((int)code));
}

// On the way down: which way is decided anew, but not for ever.
static void choose_detour(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const crdi_dcp_operation op = p->op;
    p->op.stage = CRDI_IDLE;
    if (++p->detours <= CRDI_DCP_REFUSALS) { return; }
    crdi_dcp_peer_fail(m, p, "the DCP slave cannot be brought down: it is in %s and refuses %s%s%s",
                       crdi_dcp_state_word((int)p->status.state), crdi_dcp_type_word(op.type),
                       op.code ? ": " : "", op.code ? crdi_dcp_code_name((int)op.code) : "");
}

// INF_state says what became of a request.
void crdi_dcp_settle_operation(crd_dcp_master* m, crdi_dcp_peer* p)
{
    crdi_dcp_operation* op = &p->op;
    const crd_dcp_state state = p->status.state;
    if (p->going_down && op->stage == CRDI_ACKED && state != op->from && state != op->via &&
        state != op->to) {
        choose_detour(m, p); // it is somewhere else
    }
    if (op->stage != CRDI_UNSURE) { return; }
    if (state == op->to || state == op->via) {
        op->stage = CRDI_ACKED;
    } else if (p->going_down) {
        choose_detour(m, p);
    } else if (state == op->from && op->refusals > CRDI_DCP_REFUSALS / 2) {
        crdi_dcp_peer_fail(m, p, "the DCP slave refuses %s in %s: 0x%04X %s (%s)",
                           crdi_dcp_type_word(op->type), crdi_dcp_state_word((int)state),
                           (unsigned)op->code, crdi_dcp_code_name((int)op->code),
                           crd_dcp_error_text((int)op->code));
    } else if (state == op->from && op->code == CRD_DCP_E_TRANSITION_IN_PROGRESS) {
        op->stage = CRDI_NEED; // at the next answer, not at once
        op->code = CRD_DCP_NONE;
        p->known = false;
    } else {
        op->stage = CRDI_NEED;
    }
}

// ---- time --------------------------------------------------------------------------------------

// A slave that was registered by an earlier session answers to its old id only.
static void scan_ids(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_request* r)
{
    uint8_t bytes[4] = {CRDI_DCP_INF_STATE, (uint8_t)r->seq, (uint8_t)(r->seq >> 8), 0};
    for (int id = 1; id < 256; id++) {
        bytes[3] = (uint8_t)id;
        if (id != p->id) { (void)crdi_dcp_net_send(m->net, &p->spec.control, bytes, sizeof bytes); }
    }
}

static void no_answer(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_request* r)
{
    const crdi_dcp_address_text where = crdi_dcp_address_text_of(&p->spec.control);
    if (p->contacting) {
        crdi_dcp_peer_fail(m, p, "no DCP slave answers at %s within %g s", where.text,
                           m->opt.contact);
        return;
    }
    if (p->going_down && !m->stopping) {
        crdi_dcp_peer_fail(m, p,
                           "the DCP slave at %s is in %s, registered by another master as slave "
                           "%d, and does not answer %s of this one",
                           where.text, crdi_dcp_state_word((int)p->status.state), p->id,
                           crdi_dcp_type_word(crdi_dcp_request_type(r)));
        p->touched = false;
        return;
    }
    p->status.lost = true;
    crdi_dcp_peer_fail(m, p,
                       "the DCP slave at %s is lost: no answer to %s, sent %d times; it was last "
                       "received %.1f s ago, in %s",
                       where.text, crdi_dcp_type_word(crdi_dcp_request_type(r)), r->tries,
                       m->now - p->status.last_pdu, crdi_dcp_state_word((int)p->status.state));
}

// Patience is for progress, not for life: who is at work may take long, but a bench answers.
static bool is_silent(const crd_dcp_master* m, const crdi_dcp_peer* p, const crdi_dcp_request* r)
{
    enum { TRIES = 3 };
    const double since = fmax(r->begun, p->status.last_pdu);
    return p->spec.alive > 0 && !p->contacting && r->tries >= TRIES &&
           m->now >= since + p->spec.alive;
}

// Silent for as long as a bench may be, or given up. Its question may be young, as a process
// that gets little time asks late.
static bool is_missed(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    return p->failed ||
           (p->registered && p->spec.alive > 0 && m->now >= p->status.last_pdu + p->spec.alive);
}

// INF_state says that all is well. While another slave is missed it is not, and nobody says so: the
// deadman of a bench that turns brings it down if no stop does, whatever keeps this side from it.
static bool may_reassure(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    if (m->stopping || is_missed(m, p)) { return true; }
    for (int i = 0; i < m->count; i++) {
        if (is_missed(m, &m->peers[i])) { return false; }
    }
    return true;
}

// Sends again what was not answered in time. Streams do that by themselves while they stand.
static void repeat_requests(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->outbox_count; i++) {
        crdi_dcp_request* r = &p->outbox[i];
        if (!r->flying || m->now < r->sent + p->timeout) { continue; }
        // Who is at work may have no time to answer.
        const bool at_work = p->op.stage == CRDI_ACKED && m->now < p->op.until;
        const bool patient = p->contacting ? m->now < p->contact_until : at_work;
        const bool enough =
            r->tries > p->retries && m->now >= r->begun + m->opt.timeout * (p->retries + 0.5);
        if (p->failed && enough) { // it was a last question, for its log
            p->outbox_count = 0;
            return;
        }
        if ((!patient && enough) || is_silent(m, p, r)) {
            no_answer(m, p, r);
            return;
        }
        const crd_dcp_address* to = &p->spec.control;
        // On a bus the ids are given, and the others are other slaves'.
        const bool scan =
            p->contacting && !m->net->ops->can && (r->tries + 1) % SCAN_EVERY == SCAN_FIRST;
        if (to->transport == CRD_DCP_TCP && crdi_dcp_net_connected(m->net, to)) {
            r->sent = m->now;
            r->tries++;
            if (scan) { scan_ids(m, p, r); }
            continue;
        }
        if (r->tries == 1 && !p->contacting) {
            crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, CRD_DCP_NONE, "%s was not answered: again",
                            crdi_dcp_type_word(crdi_dcp_request_type(r)));
        }
        send_request(m, p, r);
        if (scan) { scan_ids(m, p, r); }
    }
}

static void supervise(crd_dcp_master* m, crdi_dcp_peer* p)
{
    crdi_dcp_operation* op = &p->op;
    const bool waits =
        op->stage == CRDI_NEED || op->stage == CRDI_UNSURE || op->stage == CRDI_ACKED;
    if (!waits) { return; }
    if (m->now >= op->until) {
        crdi_dcp_peer_fail(m, p, "the DCP slave is in %s for more than %g s, expected %s",
                           crdi_dcp_state_word((int)p->status.state), crdi_dcp_patience(m, op),
                           crdi_dcp_state_word((int)(op->stage == CRDI_ACKED ? op->to : op->from)));
        return;
    }
    if (m->now >= op->poll) {
        op->pause = fmin(2 * op->pause, fmax(longest_pause, m->opt.timeout));
        op->poll = m->now + op->pause;
        if (may_reassure(m, p)) { crdi_dcp_ask_state(m, p); }
    }
}

// Whether it is asked how it is, now and then.
static bool has_beat(const crdi_dcp_peer* p)
{
    if (!p->registered || p->failed) { return false; }
    return isfinite(crdi_dcp_heartbeat(p->d)) || p->spec.mode != CRD_DCP_NRT || !p->aim;
}

static bool has_log(const crdi_dcp_peer* p)
{
    return p->log_mode == 1 && p->prepared && !p->going_down && !p->failed &&
           !crdi_dcp_asks(p, CRDI_DCP_INF_LOG);
}

static void attend_peer(crd_dcp_master* m, crdi_dcp_peer* p)
{
    repeat_requests(m, p);
    supervise(m, p);
    if (has_beat(p) && m->now >= p->beat) {
        p->beat = m->now + p->beat_pause;
        if (may_reassure(m, p)) { crdi_dcp_ask_state(m, p); }
    }
    if (has_log(p) && m->now >= p->log_at) { crdi_dcp_ask_log(m, p); }
    crdi_dcp_drive(m, p);
    p->due = INFINITY;
    for (int i = 0; i < p->outbox_count; i++) {
        if (p->outbox[i].flying) { p->due = fmin(p->due, p->outbox[i].sent + p->timeout); }
    }
    if (p->op.stage != CRDI_IDLE && p->op.stage != CRDI_ASKED) {
        p->due = fmin(p->due, fmin(p->op.poll, p->op.until));
    }
    if (has_beat(p)) { p->due = fmin(p->due, p->beat); }
    if (has_log(p)) { p->due = fmin(p->due, p->log_at); }
    if (p->aim) { p->due = fmin(p->due, p->data_until); }
}

static void attend_peers(crd_dcp_master* m)
{
    double due = INFINITY;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (m->now >= p->due) { attend_peer(m, p); }
    }
    for (int i = 0; i < m->count; i++) {
        due = fmin(due, m->peers[i].due);
    }
    m->due = due;
}

void crdi_dcp_pump(crd_dcp_master* m)
{
    crd_dcp_packet packet;
    for (int i = 0; i < MOST_PACKETS && crd_dcp_net_receive(m->net, &packet); i++) {
        crdi_dcp_handle_packet(m, &packet);
        if (m->now >= m->due) { attend_peers(m); }
    }
    if (crdi_dcp_master_clock(m) >= m->due) { attend_peers(m); }
}

static bool reached(const crd_dcp_master* m, int slave)
{
    if (slave >= 0) { return !m->peers[slave].aim; }
    for (int i = 0; i < m->count; i++) {
        if (m->peers[i].aim) { return false; }
    }
    return true;
}

crd_status crdi_dcp_pursue(crd_dcp_master* m, int slave, bool tolerant)
{
    return crdi_dcp_pursue_until(m, slave, tolerant, INFINITY);
}

crd_status crdi_dcp_pursue_until(crd_dcp_master* m, int slave, bool tolerant, double time)
{
    for (;;) {
        if (m->failed >= 0 && !tolerant) { return crdi_dcp_failure(m); }
        if (reached(m, slave)) { return CRD_OK; }
        crd_dcp_packet packet;
        if (crd_dcp_net_receive(m->net, &packet)) {
            crdi_dcp_handle_packet(m, &packet);
            if (m->now >= m->due) { attend_peers(m); }
            continue;
        }
        if (crdi_dcp_master_clock(m) >= m->due) {
            attend_peers(m);
            continue;
        }
        double pause = fmin(m->due, time) - m->now;
        if (m->now >= time) { return CRD_OK; }
        if (m->opt.cancelled) {
            if (m->opt.cancelled(m->opt.user) && !tolerant) {
                return crdi_fail(m->ctx, CRD_E_UNIT, "interrupted while waiting for DCP slaves");
            }
            pause = fmin(pause, 0.1);
        }
        crd_dcp_net_wait(m->net, pause);
    }
}
