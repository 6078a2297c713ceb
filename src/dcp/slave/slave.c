// The slave: which requests it takes and what it answers.
#include "dcp/slave/slave.h"

#include <math.h>
#include <string.h>

// ---- create ------------------------------------------------------------------------------------

crd_dcp_slave_options crd_dcp_slave_defaults(void)
{
    return (crd_dcp_slave_options){.max_groups = 64,
                                   .max_group_size = 256,
                                   .max_targets = 8,
                                   .log_entries = 64,
                                   .max_pdu = 65507,
                                   .max_garbage = 100,
                                   .max_elements = 1024,
                                   .max_text = 1024,
                                   .log_bytes = 256};
}

static crd_status in_range(crd_context* ctx, const char* what, int value, int least)
{
    if (value >= least && value <= 65536) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE, "DCP slave: %s = %d, expected %d to 65536", what, value,
                     least);
}

static crd_status check_slave_options(crd_context* ctx, const crd_dcp_slave_options* o)
{
    crd_status st = CRD_OK;
    CRD_TRY(in_range(ctx, "max_groups", o->max_groups, 1));
    CRD_TRY(in_range(ctx, "max_group_size", o->max_group_size, 1));
    CRD_TRY(in_range(ctx, "max_targets", o->max_targets, 1));
    CRD_TRY(in_range(ctx, "log_entries", o->log_entries, 0));
    CRD_TRY(in_range(ctx, "max_garbage", o->max_garbage, 0));
    CRD_TRY(in_range(ctx, "max_elements", o->max_elements, 1));
    if (o->max_pdu < 64) {
        return crdi_fail(ctx, CRD_E_RANGE, "DCP slave: max_pdu = %u bytes, expected >= 64",
                         (unsigned)o->max_pdu);
    }
    if (o->allowed_count < 0 || (o->allowed_ip && !o->allowed_mask)) {
        return crdi_fail(ctx, CRD_E_RANGE, "DCP slave: allowed addresses without their masks");
    }
fail:
    return st;
}

static crd_status check_description(crd_context* ctx, const crd_dcp_description* d)
{
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        const bool structural = v->causality == CRD_STRUCTURAL_PARAMETER;
        if (v->type >= CRD_DCP_DATA_TYPE_COUNT || v->rank < 0 || v->rank > 8 ||
            (structural && (v->type > CRD_DCP_UINT64 || v->rank > 0))) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: variable %s has data type %d and rank %d, which no %s has",
                             d->file ? d->file : "DCP slave", v->name, v->type, v->rank,
                             structural ? "structural parameter" : "variable");
        }
    }
    if (d->can_monitor_heartbeat && d->has_heartbeat &&
        (d->heartbeat_numerator == 0 || d->heartbeat_denominator == 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: heartbeat interval %u/%u s, expected > 0",
                         d->file ? d->file : "DCP slave", (unsigned)d->heartbeat_numerator,
                         (unsigned)d->heartbeat_denominator);
    }
    return CRD_OK;
}

// Copies of the allowed addresses: options need not outlive create.
static crd_status copy_allowed(crd_dcp_slave* s)
{
    if (!s->opt.allowed_ip) { return CRD_OK; }
    const size_t count = (size_t)s->opt.allowed_count;
    uint32_t* both = crdi_arena_new(&s->arena, count, 2 * sizeof *both);
    if (!both) { return CRD_E_MEMORY; }
    if (count) {
        memcpy(both, s->opt.allowed_ip, count * sizeof *both);
        memcpy(both + count, s->opt.allowed_mask, count * sizeof *both);
    }
    s->opt.allowed_ip = both;
    s->opt.allowed_mask = both + count;
    return CRD_OK;
}

crd_status crd_dcp_slave_create(crd_context* ctx, const crd_dcp_description* d,
                                const crd_dcp_plant* plant, const crd_dcp_link* link,
                                const crd_dcp_slave_options* opt, crd_dcp_slave** out)
{
    crd_status st = CRD_OK;
    crd_dcp_slave* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->d = d;
    s->plant = plant ? *plant : (crd_dcp_plant){0};
    s->link = *link;
    s->opt = opt ? *opt : crd_dcp_slave_defaults();
    s->mode = CRD_DCP_NRT; // until it is registered, nothing is refused for its mode
    crd_arena_init(&s->arena, ctx);
    CRD_TRY(check_slave_options(ctx, &s->opt));
    CRD_TRY(check_description(ctx, d));
    s->garbage.left = s->opt.max_garbage;
    CRD_TRY(copy_allowed(s));
    CRD_TRY(crdi_dcp_config_create(s));
    CRD_TRY(crdi_dcp_slave_values_create(s));
    CRD_TRY(crdi_dcp_watch_create(s));
    CRD_TRY(crdi_dcp_logs_create(s));
    s->pdu = crdi_arena_new(&s->arena, s->opt.max_pdu, 1);
    CRD_TRY(s->pdu ? CRD_OK : CRD_E_MEMORY);
    crdi_dcp_unconfigure(s);
    *out = s;
    return CRD_OK;
fail:
    crd_dcp_slave_destroy(s);
    return st;
}

void crd_dcp_slave_destroy(crd_dcp_slave* s)
{
    if (!s) { return; }
    crd_arena_clear(&s->arena);
    crd_free(s->ctx, s);
}

// ---- out ---------------------------------------------------------------------------------------

bool crdi_dcp_slave_send(crd_dcp_slave* s, const crd_dcp_address* to, size_t length)
{
    const bool sent = s->link.send(s->link.user, to, s->pdu, length);
    if (!sent) { s->counts.send_failed++; }
    return sent;
}

void crdi_dcp_slave_hold(crd_dcp_slave* s)
{
    if (s->held++ == 0 && s->link.hold) { s->link.hold(s->link.user, true); }
}

void crdi_dcp_slave_release(crd_dcp_slave* s)
{
    if (--s->held == 0 && s->link.hold) { s->link.hold(s->link.user, false); }
}

void crdi_dcp_slave_flush(crd_dcp_slave* s)
{
    if (s->held > 0 && s->link.hold) {
        s->link.hold(s->link.user, false);
        s->link.hold(s->link.user, true);
    }
}

void crdi_dcp_slave_send_pdu(crd_dcp_slave* s, const crd_dcp_address* to, const crdi_dcp_pdu* p)
{
    crdi_dcp_slave_send(s, to, crdi_dcp_encode(p, s->pdu, s->opt.max_pdu));
}

static bool is_master(const crd_dcp_slave* s, const crd_dcp_address* from)
{
    return s->state != CRD_DCP_ALIVE && crd_dcp_address_equal(from, &s->master);
}

// Others than the master get no more than max_garbage such answers in a second: whoever forges
// addresses shall not make us flood their owners.
static bool may_answer(crd_dcp_slave* s, const crd_dcp_address* from)
{
    if (is_master(s, from)) { return true; }
    const bool may = crdi_dcp_rate_spend(&s->garbage, s->opt.max_garbage, s->now);
    s->counts.muted += !may;
    return may;
}

static void send_nack(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* request,
                      crd_dcp_error error)
{
    if (!may_answer(s, from)) { return; }
    const uint16_t last = s->state == CRD_DCP_ALIVE ? request->seq : s->last;
    crdi_dcp_slave_send_pdu(s, from,
                            &(crdi_dcp_pdu){.type = CRDI_DCP_RSP_NACK,
                                            .seq = request->seq,
                                            .peer = request->peer,
                                            .expected = (uint16_t)(last + 1),
                                            .error = (uint16_t)error});
    s->counts.nacks++;
}

// An answer that is no refusal: what differs is in `a`.
static void send_answer(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* request,
                        crdi_dcp_pdu a)
{
    a.seq = request->seq;
    a.peer = request->peer;
    crdi_dcp_slave_send_pdu(s, from, &a);
    s->counts.acks++;
}

static void send_state(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* request)
{
    send_answer(s, from, request,
                (crdi_dcp_pdu){.type = CRDI_DCP_RSP_STATE_ACK, .state = (uint8_t)s->state});
}

// ---- checks of state changes -------------------------------------------------------------------

static crd_dcp_error check_register(const crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (memcmp(p->uuid, s->d->uuid, sizeof p->uuid) != 0) { return CRD_DCP_E_INVALID_UUID; }
    if (!crdi_dcp_offers_mode(s->d, p->op_mode)) { return CRD_DCP_E_INVALID_OP_MODE; }
    if (p->major != s->d->major) { return CRD_DCP_E_INVALID_MAJOR_VERSION; }
    if (p->minor != s->d->minor) { return CRD_DCP_E_INVALID_MINOR_VERSION; }
    return CRD_DCP_NONE;
}

static crd_dcp_error slave_check_steps(const crd_dcp_slave* s, uint32_t steps)
{
    if (steps == 0 || !crdi_dcp_nrt_steps_fit(s->d, steps)) { return CRD_DCP_E_INVALID_STEPS; }
    if (!s->d->can_vary_steps && s->first_steps != 0 && steps != s->first_steps) {
        return CRD_DCP_E_NO_VARIABLE_STEPS;
    }
    return CRD_DCP_NONE;
}

static crd_dcp_error check_change(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (p->state != s->state) { return CRD_DCP_E_INVALID_STATE_ID; }
    switch (p->type) {
    case CRDI_DCP_STC_REGISTER:
        return check_register(s, p);
    case CRDI_DCP_STC_PREPARE:
        return crdi_dcp_complete(s);
    case CRDI_DCP_STC_RUN:
        return s->mode != CRD_DCP_NRT && p->time != 0 && (double)p->time < s->now
                   ? CRD_DCP_E_INVALID_START_TIME
                   : CRD_DCP_NONE;
    case CRDI_DCP_STC_DO_STEP:
        return slave_check_steps(s, p->steps);
    default:
        return CRD_DCP_NONE;
    }
}

// ---- requests ----------------------------------------------------------------------------------

// Next to the last one. Some masters count on from STC_register behind CFG_clear and STC_reset,
// others do not: for one request both are right.
static bool in_sequence(const crd_dcp_slave* s, uint16_t seq)
{
    return seq == (uint16_t)(s->last + 1) || (s->rewind && seq == (uint16_t)(s->registered + 1));
}

static crd_dcp_error not_now(const crd_dcp_slave* s, uint8_t type)
{
    // A transient state that can be met has a duty that is not done.
    const bool busy = s->pending == CRDI_DUTY || s->state == CRD_DCP_SYNCHRONIZING ||
                      s->state == CRD_DCP_COMPUTING;
    if (busy && crdi_dcp_is_state_change(type)) { return CRD_DCP_E_TRANSITION_IN_PROGRESS; }
    return CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE;
}

// The checks in their order; the first that fails decides.
static crd_dcp_error check_request(crd_dcp_slave* s, const crdi_dcp_pdu* p, bool good_length)
{
    if (s->state != CRD_DCP_ALIVE) {
        if (!in_sequence(s, p->seq)) { return CRD_DCP_E_INVALID_SEQUENCE_ID; }
        s->last = p->seq;
        s->rewind = false;
    }
    if (!crdi_dcp_supports(s->d, p->type, s->mode)) { return CRD_DCP_E_PDU_NOT_SUPPORTED; }
    if (!good_length) { return CRD_DCP_E_INVALID_LENGTH; }
    const bool resetting = s->state == CRD_DCP_CONFIGURATION && s->pending == CRDI_DUTY &&
                           p->type == CRDI_DCP_STC_PREPARE;
    if (!crdi_dcp_allowed(s->state, p->type, s->mode) || resetting) { return not_now(s, p->type); }
    return crdi_dcp_is_state_change(p->type) ? check_change(s, p) : CRD_DCP_NONE;
}

static void answer_log(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* p)
{
    if (!crdi_dcp_log_category_known(s, p->category)) {
        send_nack(s, from, p, CRD_DCP_E_INVALID_LOG_CATEGORY);
        return;
    }
    const size_t room = crdi_dcp_max_pdu(s, from->transport);
    crdi_dcp_slave_send(s, from, crdi_dcp_take_logs(s, p, room));
    s->counts.acks++;
}

static void execute(crd_dcp_slave* s, const crd_dcp_address* from, const crd_dcp_address* at,
                    const crdi_dcp_pdu* p)
{
    if (crdi_dcp_is_state_change(p->type)) {
        send_answer(s, from, p, (crdi_dcp_pdu){.type = CRDI_DCP_RSP_ACK});
        crdi_dcp_change(s, from, at, p);
    } else if (p->type == CRDI_DCP_INF_STATE) {
        s->beat = s->now;
        send_state(s, from, p);
    } else if (p->type == CRDI_DCP_INF_ERROR) {
        send_answer(s, from, p,
                    (crdi_dcp_pdu){.type = CRDI_DCP_RSP_ERROR_ACK, .error = (uint16_t)s->error});
    } else if (p->type == CRDI_DCP_INF_LOG) {
        answer_log(s, from, p);
    } else {
        const crd_dcp_error error = crdi_dcp_configure(s, p);
        if (error != CRD_DCP_NONE) {
            send_nack(s, from, p, error);
            return;
        }
        if (p->type == CRDI_DCP_CFG_CLEAR) { s->rewind = true; }
        send_answer(s, from, p, (crdi_dcp_pdu){.type = CRDI_DCP_RSP_ACK});
    }
}

// Whether nothing is lost by another master: the slave is at rest, and its own one has gone silent.
static bool is_abandoned(const crd_dcp_slave* s)
{
    static const double silence = 3; // s; our masters ask for the state each second
    const bool rest = s->state == CRD_DCP_CONFIGURATION || s->state == CRD_DCP_STOPPED ||
                      s->state == CRD_DCP_ERRORRESOLVED;
    return rest && (s->now - s->asked > silence || s->error == CRD_DCP_E_HEARTBEAT_MISSED);
}

// Whether a registered slave listens to this peer: its master, at the address and port that have
// registered. From another port of that host comes anybody's process; it is the master if that was
// asked for (any_port), or to take over a slave that has been left behind. Without the next
// sequence id it may try then, and is told it, but who only looks at the state does not count.
static bool listens_to(const crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* p)
{
    if (is_master(s, from)) { return true; }
    if (from->ip != s->master.ip || !(s->opt.any_port || is_abandoned(s))) { return false; }
    return p->type != CRDI_DCP_INF_STATE || in_sequence(s, p->seq);
}

// Somebody who is not the master may look at the state, nothing else. It is no heartbeat.
static void answer_stranger(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* p,
                            bool good_length)
{
    if (p->type != CRDI_DCP_INF_STATE || !good_length) {
        s->counts.dropped++;
        s->counts.foreign++;
        return;
    }
    s->counts.requests++;
    if (may_answer(s, from)) { send_state(s, from, p); }
}

static void receive_request(crd_dcp_slave* s, const crd_dcp_address* from,
                            const crd_dcp_address* at, const crdi_dcp_pdu* p, bool good_length)
{
    const bool alive = s->state == CRD_DCP_ALIVE;
    if (alive ? p->peer == 0 : p->peer != s->id) {
        s->counts.dropped++;
        return;
    }
    if (!alive && !listens_to(s, from, p)) {
        answer_stranger(s, from, p, good_length);
        return;
    }
    s->counts.requests++;
    const bool next = !alive && in_sequence(s, p->seq);
    const crd_dcp_error error = check_request(s, p, good_length);
    if (next) { s->master = *from; }
    if (alive || is_master(s, from)) { s->asked = s->now; }
    if (error != CRD_DCP_NONE) {
        send_nack(s, from, p, error);
        return;
    }
    execute(s, from, at, p);
}

void crd_dcp_slave_receive(crd_dcp_slave* s, const crd_dcp_address* from, const crd_dcp_address* at,
                           const uint8_t* bytes, size_t length, double now)
{
    crdi_dcp_pdu p;
    crdi_dcp_slave_hold(s);
    crd_dcp_slave_advance(s, now); // what was due before it came
    const crdi_dcp_decoded decoded =
        length > s->opt.max_pdu ? CRDI_DCP_UNKNOWN : crdi_dcp_decode(bytes, length, &p);
    if (decoded == CRDI_DCP_UNKNOWN) {
        s->counts.dropped++;
    } else if (crdi_dcp_is_request(p.type)) {
        receive_request(s, from, at, &p, decoded == CRDI_DCP_GOOD);
    } else if (!crdi_dcp_is_data(p.type)) {
        s->counts.dropped++; // meant for a master
    } else if (decoded == CRDI_DCP_GOOD) {
        crdi_dcp_receive_data(s, from, &p);
    } else {
        s->counts.data_dropped++;
    }
    crdi_dcp_slave_release(s);
}

// ---- looking -----------------------------------------------------------------------------------

crd_dcp_state crd_dcp_slave_state(const crd_dcp_slave* s)
{
    return s->state;
}

crd_dcp_error crd_dcp_slave_error(const crd_dcp_slave* s)
{
    return s->error;
}

crd_dcp_slave_counts crd_dcp_slave_get_counts(const crd_dcp_slave* s)
{
    return s->counts;
}
