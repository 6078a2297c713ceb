// Plays the cases of the conformance test against a slave.
#include "dcptools/conform/conform.h"
#include "dcptools/query/query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char* crdi_dcp_verdict_name(crdi_dcp_verdict v)
{
    static const char* const names[] = {"pass", "FAIL", "skip", "differs"};
    return (unsigned)v < sizeof names / sizeof *names ? names[v] : "?";
}

crdi_dcp_conform_options crdi_dcp_conform_defaults(void)
{
    return (crdi_dcp_conform_options){.mode = -1, .id = 1, .timeout = 1, .patience = 5};
}

int crdi_dcp_conform_count(void)
{
    return crdi_conform_case_count;
}

// ---- requests that are bent --------------------------------------------------------------------

static void bend_register(crdi_dcp_pdu* q, uint32_t bent)
{
    if (bent & CRDI_X_UUID) {
        for (size_t i = 0; i < sizeof q->uuid; i++) {
            q->uuid[i] ^= 0xA5;
        }
    }
    if (bent & CRDI_X_OP_MODE) { q->op_mode = 0xFF; }
    if (bent & CRDI_X_MAJOR) { q->major++; }
    if (bent & CRDI_X_MINOR) { q->minor = (uint8_t)(q->minor + 9); }
}

// A type that does not convert to that of the variable, in as many bytes as it has.
static void bend_type(crdi_conform_player* p, crdi_dcp_pdu* q)
{
    q->data_type = q->data_type == CRD_DCP_FLOAT64 ? CRD_DCP_UINT64 : CRD_DCP_FLOAT64;
    if (q->type == CRDI_DCP_CFG_PARAMETER) {
        memset(p->payload, 0, 8);
        q->payload_length = 8;
    }
}

static void bend_variable(crdi_conform_player* p, crdi_dcp_pdu* q, uint32_t bent)
{
    const crdi_conform_choice* c = &p->choice;
    if (bent & CRDI_X_TYPE) { bend_type(p, q); }
    if (bent & CRDI_X_VR) { q->vr = c->no_vr; }
    if (bent & CRDI_X_CAUSALITY) {
        q->vr = q->type == CRDI_DCP_CFG_OUTPUT ? c->output_like : c->input_like;
    }
    if (bent & CRDI_X_FIXED) {
        q->vr = c->fixed->vr;
        q->data_type = c->fixed->type;
    }
    if (bent & CRDI_X_POS) { q->pos = 2; }
    if (bent & CRDI_X_LONG_TEXT) {
        const uint32_t n = c->text->max_size + 1;
        q->vr = c->text->vr;
        q->data_type = CRD_DCP_STRING;
        memset(p->payload, 'x', 4 + n);
        crdi_store_le(p->payload, 4, n);
        q->payload_length = 4 + n;
    }
}

static void bend_time(crdi_conform_player* p, crdi_dcp_pdu* q, uint32_t bent)
{
    if (bent & CRDI_X_PAST) { q->time = 1; }
    if (bent & CRDI_X_FUTURE) { q->time = (int64_t)ceil(crd_dcp_net_now(p->net) + 1); }
    if (bent & CRDI_X_RESOLUTION) {
        q->numerator = 1;
        q->denominator = 4000000007u; // prime, and no raster of anybody
    }
}

// CFG_logging has level and mode in one number.
static void bend_number(crdi_conform_player* p, crdi_dcp_pdu* q, uint32_t number)
{
    q->steps = number == UINT32_MAX - 1 ? p->choice.other_steps : number;
    q->scope = (uint8_t)number;
    if (q->type == CRDI_DCP_CFG_LOGGING) {
        q->level = (uint8_t)(number >> 8);
        q->mode = (uint8_t)number;
    }
}

static uint8_t unknown_category(const crd_dcp_description* d)
{
    uint8_t id = 255;
    for (int i = 0; i < d->category_count; i++) {
        if (d->categories[i].id == id) {
            id--;
            i = -1;
        }
    }
    return id;
}

// How many bytes too long it becomes.
static int bend_request(crdi_conform_player* p, const crdi_conform_step* s, crdi_dcp_pdu* q)
{
    const uint32_t bent = s->bent;
    int longer = (bent & CRDI_X_LONGER ? 1 : 0) - (bent & CRDI_X_SHORTER ? 1 : 0);
    if (s->id) { q->id = s->id; }
    if (q->type == CRDI_DCP_STC_REGISTER) { bend_register(q, bent); }
    bend_variable(p, q, bent);
    bend_time(p, q, bent);
    if (bent & CRDI_X_NUMBER) { bend_number(p, q, s->number); }
    if (bent & CRDI_X_CATEGORY) { q->category = unknown_category(p->d); }
    if (bent & CRDI_X_PORT) {
        q->port = q->type == CRDI_DCP_CFG_PARAM_NETWORK ? p->choice.other_tune_port
                                                        : p->choice.other_port;
    }
    if (bent & CRDI_X_TRANSPORT) {
        q->transport = p->choice.other_transport;
        // As long as those of IP: a shorter one makes a DCPLib slave abort.
        if (q->transport != CRD_DCP_UDP && q->transport != CRD_DCP_TCP) { longer += 6; }
    }
    if (bent & CRDI_X_SEQ) { q->seq = (uint16_t)(p->seq + s->number); }
    if (bent & CRDI_X_REPEATED) { q->seq = (uint16_t)(p->seq - 1); }
    if (bent & CRDI_X_RECEIVER) { q->peer = (uint8_t)(p->opt->id % 254 + 1); }
    if (bent & CRDI_X_STATE) { q->state = (uint8_t)((p->state + 1) % CRD_DCP_STATE_COUNT); }
    return longer;
}

// ---- answers -----------------------------------------------------------------------------------

typedef enum course { GO_ON, OVER } course; // of a script

static bool left_open(const crdi_conform_step* s, uint16_t code)
{
    return s->also != 0 && (s->also == code || s->also == CRDI_ALSO_ANY);
}

static void say_nack(uint16_t code, char out[80])
{
    crdi_conform_words(&(crdi_dcp_pdu){.type = CRDI_DCP_RSP_NACK, .error = code}, out);
}

// Sender and expected sequence id of a refusal. In ALIVE no sequence id was valid before: which one
// is expected then is left open.
static course judge_nack(crdi_conform_player* p, const crdi_dcp_pdu* q, bool in_alive)
{
    const crdi_dcp_pdu* a = &p->answer;
    const bool out_of_order = a->error == CRD_DCP_E_INVALID_SEQUENCE_ID;
    const uint16_t expected = out_of_order ? p->seq : (uint16_t)(q->seq + 1);
    const char* name = crdi_dcp_type_name(q->type);
    if (a->peer == q->peer && a->expected == expected) { return GO_ON; }
    if (in_alive && a->peer == q->peer) {
        crdi_conform_differ(p, "%s: RSP_nack with exp_seq_id %u, usual is %u (3.4.1.1)", name,
                            a->expected, expected);
        return GO_ON;
    }
    crdi_conform_fail(p,
                      "%s: RSP_nack with sender %u, exp_seq_id %u, expected %u and %u "
                      "(3.3.3.2, 3.4.1.1)",
                      name, a->peer, a->expected, q->peer, expected);
    return OVER;
}

static course want_nack(crdi_conform_player* p, const crdi_conform_step* s, const crdi_dcp_pdu* q,
                        bool in_alive)
{
    char came[80], wanted[80];
    const crdi_dcp_pdu* a = &p->answer;
    const bool nack = a->type == CRDI_DCP_RSP_NACK;
    const char* name = crdi_dcp_type_name(q->type);
    say_nack(s->code, wanted);
    if (nack && a->error == s->code) {
        crdi_conform_note(p, "%s", crdi_conform_words(a, came));
        return judge_nack(p, q, in_alive);
    }
    if (nack && left_open(s, a->error)) {
        crdi_conform_differ(p, "%s: %s, usual is %s", name, crdi_conform_words(a, came), wanted);
        return GO_ON;
    }
    crdi_conform_fail(p, "%s: %s, expected %s", name, crdi_conform_words(a, came), wanted);
    return OVER;
}

// Entries:  0 time:i64  8 log_template_id:u8  9 arguments
static bool logs_are_whole(const crdi_conform_player* p, int* entries)
{
    const uint8_t* at = p->answer.payload;
    size_t left = p->answer.payload_length;
    for (*entries = 0; left > 0; (*entries)++) {
        const crd_dcp_log_template* t = left < 9 ? NULL : crdi_dcp_find_template(p->d, at[8]);
        if (!t) { return false; }
        size_t n = 9;
        for (int i = 0; i < t->argument_count; i++) {
            const size_t size = crdi_dcp_encoded_size(t->arguments[i], 1, at + n, left - n);
            if (size == SIZE_MAX) { return false; }
            n += size;
        }
        at += n;
        left -= n;
    }
    return true;
}

static course want_logs(crdi_conform_player* p)
{
    char came[80];
    int entries = 0;
    if (!p->answered && p->empty_count > 0) {
        crdi_conform_fail(p, "INF_log: an empty PDU, expected RSP_log_ack");
        return OVER;
    }
    if (p->answer.type != CRDI_DCP_RSP_LOG_ACK) {
        crdi_conform_fail(p, "INF_log: %s, expected RSP_log_ack",
                          crdi_conform_words(&p->answer, came));
        return OVER;
    }
    if (!logs_are_whole(p, &entries)) {
        crdi_conform_fail(p, "RSP_log_ack whose entry %d is not whole", entries + 1);
        return OVER;
    }
    crdi_conform_note(p, "RSP_log_ack with %d entries", entries);
    return GO_ON;
}

static course want_error(crdi_conform_player* p, const crdi_conform_step* s)
{
    char came[80];
    const crdi_dcp_pdu* a = &p->answer;
    const bool error_ack = a->type == CRDI_DCP_RSP_ERROR_ACK;
    crdi_conform_words(a, came);
    if (error_ack && a->error == s->code) {
        crdi_conform_note(p, "%s", came);
        return GO_ON;
    }
    const char* wanted = crd_dcp_error_name(s->code);
    if (error_ack && a->error != CRD_DCP_NONE && left_open(s, a->error)) {
        crdi_conform_differ(p, "%s, usual is %s", came, wanted);
        return GO_ON;
    }
    crdi_conform_fail(p, "INF_error: %s, expected RSP_error_ack %s", came, wanted);
    return OVER;
}

static course want_state(crdi_conform_player* p, const crdi_dcp_pdu* q)
{
    char came[80];
    const crdi_dcp_pdu* a = &p->answer;
    const bool right = a->type == CRDI_DCP_RSP_STATE_ACK && a->state == p->state;
    crdi_conform_words(a, came);
    if (!right || a->peer != q->peer) {
        crdi_conform_fail(p, "%s from %u, expected RSP_state_ack %s from %u", came, a->peer,
                          crd_dcp_state_name((int)p->state), q->peer);
        return OVER;
    }
    crdi_conform_note(p, "%s", came);
    return GO_ON;
}

static course want_ack(crdi_conform_player* p, const crdi_dcp_pdu* q)
{
    char came[80];
    const crdi_dcp_pdu* a = &p->answer;
    if (a->type != CRDI_DCP_RSP_ACK || a->peer != q->peer) {
        crdi_conform_fail(p, "%s: %s from %u, expected RSP_ack from %u",
                          crdi_dcp_type_name(q->type), crdi_conform_words(a, came), a->peer,
                          q->peer);
        return OVER;
    }
    crdi_conform_note(p, "RSP_ack");
    if (!crdi_dcp_is_state_change(q->type)) { return GO_ON; }
    if (!crdi_conform_follow(p, q->type)) { return OVER; }
    crdi_conform_note(p, "RSP_ack, then %s", crd_dcp_state_name((int)p->state));
    return GO_ON;
}

// Bytes that get no answer and change nothing: INF_state behind them finds everything as before.
static course want_nothing(crdi_conform_player* p, const uint8_t* bytes, size_t length,
                           const char* name)
{
    char came[80];
    crdi_dcp_pdu q = crdi_conform_request(p, CRDI_DCP_INF_STATE);
    crdi_conform_receive(p);
    p->stray_count = 0;
    crdi_conform_send(p, &p->control, bytes, length);
    crdi_conform_receive(p);
    const int before = p->stray_count;
    if (!crdi_conform_ask(p, &q, 0)) {
        crdi_conform_fail(p, "%s: INF_state behind it gets no answer", name);
        return OVER;
    }
    if (before + p->stray_count > 0) {
        crdi_conform_fail(p, "%s: %s, expected no answer", name,
                          crdi_conform_words(&p->stray, came));
        return OVER;
    }
    const course c = want_state(p, &q);
    if (c == GO_ON) { crdi_conform_note(p, "no answer"); }
    return c;
}

// ---- steps -------------------------------------------------------------------------------------

static course no_answer(crdi_conform_player* p, uint8_t type)
{
    crdi_conform_fail(p, "%s: no answer within %g s", crdi_dcp_type_name(type), p->opt->timeout);
    return OVER;
}

static course ask_request(crdi_conform_player* p, const crdi_conform_step* s)
{
    crdi_dcp_pdu q = crdi_conform_request(p, s->type);
    const int longer = bend_request(p, s, &q);
    const bool in_alive = p->state == CRD_DCP_ALIVE;
    if (s->want == CRDI_DROPPED) {
        const size_t n = crdi_dcp_encode(&q, p->out, sizeof p->out);
        uint8_t bytes[64];
        if (n > sizeof bytes) { return OVER; }
        memcpy(bytes, p->out, n);
        return want_nothing(p, bytes, n, crdi_dcp_type_name(s->type));
    }
    p->empty_count = 0;
    if (!crdi_conform_ask(p, &q, longer) && !(s->want == CRDI_LOG_ACK && p->empty_count > 0)) {
        return no_answer(p, s->type);
    }
    switch (s->want) {
    case CRDI_NACK:
        return want_nack(p, s, &q, in_alive);
    case CRDI_STATE_ACK:
        return want_state(p, &q);
    case CRDI_ERROR_ACK:
        return want_error(p, s);
    case CRDI_LOG_ACK:
        return want_logs(p);
    default:
        return want_ack(p, &q);
    }
}

// One request of a sweep.
static course want_refusal(crdi_conform_player* p, uint8_t type, uint16_t code, uint32_t bent)
{
    const crdi_conform_step s = {
        .op = CRDI_ASK, .type = type, .want = CRDI_NACK, .code = code, .bent = bent};
    return ask_request(p, &s);
}

static course sweep_requests(crdi_conform_player* p)
{
    int count = 0;
    for (uint8_t type = 1; type < (uint8_t)CRDI_DCP_RSP_ACK; type++) {
        if (!crdi_dcp_is_request(type)) { continue; }
        const bool supported = crdi_conform_supports(p, type);
        const bool allowed = supported && crdi_dcp_allowed(p->state, type, p->mode);
        if (allowed && !crdi_dcp_is_state_change(type)) { continue; }
        const uint16_t code = !supported ? CRD_DCP_E_PDU_NOT_SUPPORTED
                              : allowed  ? CRD_DCP_E_INVALID_STATE_ID
                                         : CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE;
        if (want_refusal(p, type, code, allowed ? CRDI_X_STATE : 0) == OVER) { return OVER; }
        count++;
    }
    crdi_conform_note(p, "%d requests refused", count);
    return GO_ON;
}

static course sweep_lengths(crdi_conform_player* p)
{
    int count = 0;
    for (uint8_t type = 1; type < (uint8_t)CRDI_DCP_RSP_ACK; type++) {
        if (!crdi_dcp_is_request(type)) { continue; }
        const bool shortest = type == CRDI_DCP_CFG_CLEAR || type == CRDI_DCP_INF_STATE ||
                              type == CRDI_DCP_INF_ERROR; // shorter ones are dropped
        if (type == CRDI_DCP_CFG_PARAMETER) { continue; } // of any length
        const uint16_t code =
            crdi_conform_supports(p, type) ? CRD_DCP_E_INVALID_LENGTH : CRD_DCP_E_PDU_NOT_SUPPORTED;
        if (want_refusal(p, type, code, CRDI_X_LONGER) == OVER) { return OVER; }
        if (!shortest && want_refusal(p, type, code, CRDI_X_SHORTER) == OVER) { return OVER; }
        count += shortest ? 1 : 2;
    }
    crdi_conform_note(p, "%d requests refused", count);
    return GO_ON;
}

static course send_raw(crdi_conform_player* p, const crdi_conform_step* s)
{
    uint8_t bytes[32];
    size_t n = 0;
    char name[48];
    for (const char* c = s->raw; *c && n < sizeof bytes; c += 2) {
        unsigned byte = 0;
        (void)sscanf(c, "%2x", &byte);
        bytes[n++] = (uint8_t)byte;
    }
    snprintf(name, sizeof name, n ? "bytes %.24s" : "empty PDU%.24s", s->raw);
    return want_nothing(p, bytes, n, name);
}

static course send_data(crdi_conform_player* p, const crdi_conform_step* s)
{
    const int longer = (s->bent & CRDI_X_LONGER ? 1 : 0) - (s->bent & CRDI_X_SHORTER ? 1 : 0);
    uint32_t seq = s->number;
    if (s->bent & CRDI_X_NUMBER) { seq += p->choice.input->max_missed; }
    return crdi_conform_data(p, s->type, s->id, (uint16_t)seq, longer) ? GO_ON : OVER;
}

static course want_state_now(crdi_conform_player* p, const crdi_conform_step* s)
{
    char came[80];
    crdi_dcp_pdu q = crdi_conform_request(p, CRDI_DCP_INF_STATE);
    if (!crdi_conform_ask(p, &q, 0)) { return no_answer(p, q.type); }
    if (p->state != s->state || p->answer.type != CRDI_DCP_RSP_STATE_ACK ||
        p->answer.state != s->state) {
        crdi_conform_fail(p, "%s, expected RSP_state_ack %s", crdi_conform_words(&p->answer, came),
                          crd_dcp_state_name(s->state));
        return OVER;
    }
    crdi_conform_note(p, "%s", crdi_conform_words(&p->answer, came));
    return GO_ON;
}

static course want_notification(crdi_conform_player* p, const crdi_conform_step* s)
{
    const uint8_t states[] = {CRD_DCP_ERRORHANDLING, s->state};
    const bool good = crdi_conform_states(p, states, 2);
    p->mute = false;
    if (good) { crdi_conform_note(p, "%s", crd_dcp_state_name(s->state)); }
    return good ? GO_ON : OVER;
}

static course want_outputs(crdi_conform_player* p, const crdi_conform_step* s)
{
    const double until = crd_dcp_net_now(p->net) + p->opt->patience;
    while (p->data_count < (int)s->number && crdi_conform_wait(p, until)) {}
    if (p->data_count < (int)s->number) {
        p->silent = true;
        crdi_conform_fail(p, "%d DAT_input_output, expected %u", p->data_count, s->number);
        return OVER;
    }
    if (p->data_wrong) {
        p->silent = true; // one may have been lost
        crdi_conform_fail(p, "DAT_input_output of a wrong length or sequence id");
        return OVER;
    }
    crdi_conform_note(p, "%d DAT_input_output", p->data_count);
    return GO_ON;
}

static course want_silence(crdi_conform_player* p)
{
    const double until = crd_dcp_net_now(p->net) + 0.05;
    while (crdi_conform_wait(p, until)) {}
    if (p->data_count > 0) {
        crdi_conform_fail(p, "%d DAT_input_output, expected none", p->data_count);
        return OVER;
    }
    crdi_conform_note(p, "no data");
    return GO_ON;
}

// 0 ms: for as long as it takes to miss a heartbeat, twice; without them that is the next step's
// business.
static course wait_a_while(crdi_conform_player* p, const crdi_conform_step* s)
{
    const double begin = crd_dcp_net_now(p->net);
    double seconds = 1e-3 * s->number;
    if (s->without) {
        p->mute = true;
        seconds = p->choice.heartbeat;
    } else if (s->number == 0) {
        seconds = 2 * p->choice.heartbeat;
    }
    while (p->state_count == 0 && crdi_conform_wait(p, begin + seconds)) {}
    return GO_ON;
}

static course want_counting(crdi_conform_player* p)
{
    if (p->rewound) {
        crdi_conform_fail(p, "the id behind that of STC_register is expected");
        return OVER;
    }
    crdi_conform_note(p, "the next id is taken");
    return GO_ON;
}

static course play_step(crdi_conform_player* p, const crdi_conform_step* s)
{
    switch (s->op) {
    case CRDI_GO:
        return crdi_conform_go(p, s->state) ? GO_ON : OVER;
    case CRDI_CONFIG:
        return crdi_conform_configure(p, s->without) ? GO_ON : OVER;
    case CRDI_ASK:
        return ask_request(p, s);
    case CRDI_SWEEP:
        return sweep_requests(p);
    case CRDI_LENGTHS:
        return sweep_lengths(p);
    case CRDI_RAW:
        return send_raw(p, s);
    case CRDI_DATA:
        return send_data(p, s);
    case CRDI_STATE:
        return want_state_now(p, s);
    case CRDI_NOTIFY:
        return want_notification(p, s);
    case CRDI_OUTPUT:
        return want_outputs(p, s);
    case CRDI_SILENT:
        return want_silence(p);
    case CRDI_PAUSE:
        return wait_a_while(p, s);
    case CRDI_SEQ:
        p->seq = (uint16_t)s->number;
        return GO_ON;
    case CRDI_COUNTED:
        return want_counting(p);
    default:
        return OVER;
    }
}

// ---- cases -------------------------------------------------------------------------------------

static int mode_of(const crdi_conform_player* p, const crdi_conform_case* c)
{
    const crd_dcp_description* d = p->d;
    const int real = d->srt ? CRD_DCP_SRT : d->hrt ? CRD_DCP_HRT : -1;
    const int given = p->opt->mode;
    const bool given_real = given == CRD_DCP_SRT || given == CRD_DCP_HRT;
    if (c->modes == CRDI_IN_NRT) {
        return d->nrt && (given < 0 || given == CRD_DCP_NRT) ? CRD_DCP_NRT : -1;
    }
    if (c->modes == CRDI_IN_REAL_TIME) { return given < 0 ? real : given_real ? given : -1; }
    return given >= 0 ? given : d->nrt ? CRD_DCP_NRT : real;
}

// Why a case does not apply, NULL: it does.
static const char* why_not(const crdi_conform_player* p, const crdi_conform_case* c)
{
    const uint32_t missing = c->needs & ~p->choice.have;
    if (mode_of(p, c) < 0) {
        return c->modes == CRDI_IN_NRT ? "NRT is not offered or not asked for"
                                       : "SRT and HRT are not offered or not asked for";
    }
    if (c->risky && !p->opt->risky && !p->opt->restart) {
        return "could make the slave abort: --include-risky, or --restart";
    }
    for (int i = 0; i < CRDI_N_COUNT; i++) {
        if (missing >> i & 1) { return crdi_conform_needs[i]; }
    }
    return NULL;
}

enum { TRIES = 3 };

static void play_case(crdi_conform_player* p, const crdi_conform_case* c)
{
    p->seq = 1;
    p->state = CRD_DCP_ALIVE;
    p->configured = p->may_rewind = p->rewound = p->silent = p->mute = false;
    p->r->verdict = CRDI_DCP_PASS;
    p->r->came[0] = '\0';
    for (const crdi_conform_step* s = c->steps; s->op != CRDI_END; s++) {
        if (play_step(p, s) == OVER || p->r->verdict == CRDI_DCP_FAIL) { return; }
    }
}

// Something that did not come may have been lost on the way: again, where that can be.
static bool run_case(crdi_conform_player* p, const crdi_conform_case* c)
{
    bool home = true;
    const double begin = crd_dcp_net_now(p->net);
    p->mode = (crd_dcp_op_mode)mode_of(p, c);
    for (int i = 0; i < TRIES; i++) {
        play_case(p, c);
        if (p->cancelled) { return false; }
        home = crdi_conform_home(p);
        const bool again = p->r->verdict == CRDI_DCP_FAIL && p->silent && home &&
                           p->control.transport == CRD_DCP_UDP;
        if (!again) { break; }
    }
    if (!home && p->r->verdict != CRDI_DCP_FAIL) {
        crdi_conform_fail(p, "it did not come back to ALIVE");
    }
    p->r->mode = (int)p->mode;
    p->r->seconds = crd_dcp_net_now(p->net) - begin;
    return home;
}

static crd_status check_conform_options(crd_context* ctx, const crd_dcp_description* d,
                                        const crd_dcp_address* control,
                                        const crdi_dcp_conform_options* o)
{
    if (o->mode >= 0 && !crdi_dcp_offers_mode(d, o->mode)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s is not among its operating modes",
                         d->file ? d->file : "description",
                         o->mode > CRD_DCP_NRT ? "this mode" : crd_dcp_op_mode_name(o->mode));
    }
    if (o->id == 0 || !(o->timeout > 0) || !(o->patience > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "slave id %u, answers within %g s, states within %g s: expected > 0",
                         o->id, o->timeout, o->patience);
    }
    if (!crdi_dcp_find_endpoint(d, control->transport)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: it does not offer %s",
                         d->file ? d->file : "description",
                         control->transport == CRD_DCP_TCP ? "TCP_IPv4" : "UDP_IPv4");
    }
    return CRD_OK;
}

// It has to be there, and nobody else's.
static crd_status find_slave(crd_context* ctx, crdi_conform_player* p)
{
    char text[32];
    (void)crd_dcp_address_print(&p->control, text, sizeof text);
    const double until = crd_dcp_net_now(p->net) + p->opt->patience;
    bool found =
        crdi_dcp_query_connect(p->net, &p->control, until, p->opt->cancelled, p->opt->user);
    for (int i = 0; found && i < 3; i++) {
        crdi_dcp_pdu q = {
            .type = CRDI_DCP_INF_STATE, .seq = CRDI_DCP_STRANGER_SEQ, .peer = p->opt->id};
        if (crdi_conform_ask(p, &q, 0)) { break; }
        found = i < 2;
    }
    if (!found || !p->answered) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: no slave answers there", text);
    }
    const bool alive = p->answer.type == CRDI_DCP_RSP_STATE_ACK && p->answer.state == CRD_DCP_ALIVE;
    if (!alive && p->opt->take_over) {
        p->seq = CRDI_DCP_STRANGER_SEQ;
        if (crdi_conform_home(p)) { return CRD_OK; }
    }
    if (!alive) {
        const char* state = crd_dcp_state_name(p->answer.state);
        return crdi_fail(ctx, CRD_E_STATE,
                         "%s: the slave is in %s and belongs to a master, expected ALIVE; "
                         "--take-over stops and deregisters it first",
                         text,
                         p->answer.type == CRDI_DCP_RSP_STATE_ACK && state ? state : "a session");
    }
    return CRD_OK;
}

// Starts it again, and waits until it is ALIVE.
static bool bring_back(crdi_conform_player* p)
{
    const double until = crd_dcp_net_now(p->net) + 2 * p->opt->patience;
    crdi_dcp_conform_result* r = p->r;
    bool back = false;
    if (!p->opt->restart || !p->opt->restart(p->opt->user)) { return false; }
    p->r = NULL;
    while (!back && !p->cancelled && crd_dcp_net_now(p->net) < until) {
        back = crdi_conform_home(p);
        const double soon = crd_dcp_net_now(p->net) + 0.05;
        while (!back && crdi_conform_wait(p, soon)) {}
    }
    p->r = r;
    if (back && r) { r->restarted = true; }
    return back;
}

static bool never(void* user)
{
    const crdi_dcp_conform_options* o = user;
    if (o->cancelled) { (void)o->cancelled(o->user); } // it may count on being asked
    return false;
}

// Whoever interrupts gets the slave back in ALIVE.
static void leave_slave(crdi_conform_player* p)
{
    crdi_dcp_conform_options given = *p->opt, o = given;
    o.cancelled = never;
    o.user = &given;
    p->opt = &o;
    p->cancelled = false;
    (void)crdi_conform_home(p);
}

crd_status crdi_dcp_conform(crd_context* ctx, crd_dcp_net* net, const crd_dcp_address* control,
                            const crd_dcp_description* d, const crdi_dcp_conform_options* opt,
                            crdi_dcp_conform_result* results, int* count)
{
    *count = 0;
    crd_status st = check_conform_options(ctx, d, control, opt);
    if (st < 0) { return st; }
    crdi_conform_player* p = crdi_new(ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->net = net;
    p->control = *control;
    p->d = d;
    p->opt = opt;
    crdi_conform_choose(&p->choice, d, control, opt->data_port);
    st = find_slave(ctx, p);
    if (st == CRD_E_NOT_FOUND && opt->restart) {
        st = bring_back(p) ? CRD_OK : crdi_fail_in(ctx, st, "%s", "behind the restart command");
    }
    const char* lost = NULL; // the case behind which it did not come back
    for (int i = 0; st >= 0 && i < crdi_conform_case_count && !p->cancelled; i++) {
        const crdi_conform_case* c = &crdi_conform_cases[i];
        if (opt->only && !crdi_glob(opt->only, c->id)) { continue; }
        crdi_dcp_conform_result* r = &results[*count];
        *r = (crdi_dcp_conform_result){.id = c->id,
                                       .done = c->done,
                                       .prescribed = c->prescribed,
                                       .clause = crdi_conform_clause(c->id),
                                       .verdict = CRDI_DCP_SKIP,
                                       .mode = mode_of(p, c)};
        const char* why = why_not(p, c);
        p->r = r;
        r->unseen = lost && !why;
        if (r->unseen) {
            snprintf(r->came, sizeof r->came, "it did not come back to ALIVE behind %s%s", lost,
                     opt->restart ? ", nor when it was restarted" : "; --restart starts it again");
        } else if (why) {
            snprintf(r->came, sizeof r->came, "%s", why);
        } else if (!run_case(p, c) && !p->cancelled && !bring_back(p)) {
            lost = c->id;
        }
        if (p->cancelled) { break; }
        (*count)++;
        if (opt->next) { opt->next(opt->user, r); }
    }
    if (st >= 0 && p->cancelled) { leave_slave(p); }
    crd_free(ctx, p);
    return st;
}
