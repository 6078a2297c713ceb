// The master's hand of the conformance test: requests that are right, what comes back, and the ways
// from state to state.
#include "dcptools/conform/conform.h"
#include "dcptools/query/query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- words -------------------------------------------------------------------------------------

static void set_verdict(crdi_conform_player* p, crdi_dcp_verdict v, const char* format,
                        va_list list)
{
    crdi_dcp_conform_result* r = p->r;
    if (!r || r->verdict == CRDI_DCP_FAIL) { return; }
    if (v == CRDI_DCP_PASS && r->verdict == CRDI_DCP_DIFFERS) { return; }
    r->verdict = v;
    vsnprintf(r->came, sizeof r->came, format, list);
}

bool crdi_conform_fail(crdi_conform_player* p, const char* format, ...)
{
    va_list list;
    va_start(list, format);
    set_verdict(p, CRDI_DCP_FAIL, format, list);
    va_end(list);
    return false;
}

void crdi_conform_differ(crdi_conform_player* p, const char* format, ...)
{
    va_list list;
    va_start(list, format);
    set_verdict(p, CRDI_DCP_DIFFERS, format, list);
    va_end(list);
}

void crdi_conform_note(crdi_conform_player* p, const char* format, ...)
{
    va_list list;
    va_start(list, format);
    set_verdict(p, CRDI_DCP_PASS, format, list);
    va_end(list);
}

const char* crdi_conform_words(const crdi_dcp_pdu* a, char out[80])
{
    const char* type = crdi_dcp_type_name(a->type);
    const char* error = crd_dcp_error_name(a->error);
    const char* state = crd_dcp_state_name(a->state);
    if (a->type == CRDI_DCP_RSP_NACK || a->type == CRDI_DCP_RSP_ERROR_ACK) {
        snprintf(out, 80, "%s %s (0x%04X)", type, error ? error : "of no known code", a->error);
    } else if (a->type == CRDI_DCP_RSP_STATE_ACK || a->type == CRDI_DCP_NTF_STATE_CHANGED) {
        snprintf(out, 80, "%s %s", type, state ? state : "of no known state");
    } else {
        snprintf(out, 80, "%s", type ? type : "nothing");
    }
    return out;
}

static const char* play_name_of(int state)
{
    const char* name = crd_dcp_state_name(state);
    return name ? name : "unknown state";
}

// ---- in and out --------------------------------------------------------------------------------

bool crdi_conform_send(crdi_conform_player* p, const crd_dcp_address* to, const uint8_t* bytes,
                       size_t n)
{
    if (p->opt->seen && p->r) { p->opt->seen(p->opt->user, true, bytes, n); }
    return crdi_dcp_net_send(p->net, to, bytes, n);
}

static void take_data(crdi_conform_player* p, const crdi_dcp_pdu* in)
{
    const crd_dcp_variable* v = p->choice.output;
    if (in->type != CRDI_DCP_DAT_INPUT_OUTPUT || in->id != CRDI_CONFORM_OUT || !v) { return; }
    if (in->payload_length != crdi_dcp_size_of(v->type)) { p->data_wrong = true; }
    if (p->has_data_seq && in->seq != (uint16_t)(p->data_seq + 1)) { p->data_wrong = true; }
    p->data_seq = in->seq;
    p->has_data_seq = true;
    p->data_count++;
}

static void take_response(crdi_conform_player* p, const crdi_dcp_pdu* in)
{
    if (in->seq == p->beat_seq && in->type == CRDI_DCP_RSP_STATE_ACK &&
        !(p->waiting && in->seq == p->waiting_seq)) {
        return;
    }
    if (!p->waiting || p->answered || in->seq != p->waiting_seq) {
        p->stray = *in;
        p->stray.payload = NULL;
        p->stray_count++;
        return;
    }
    p->answered = true;
    p->answer = *in;
    p->hasty = p->state_count > 0;
    if (in->payload_length > sizeof p->answer_bytes) {
        p->answer.payload_length = sizeof p->answer_bytes;
    }
    if (in->payload_length > 0) { memcpy(p->answer_bytes, in->payload, p->answer.payload_length); }
    p->answer.payload = p->answer_bytes;
}

void crdi_conform_receive(crdi_conform_player* p)
{
    crd_dcp_packet packet;
    crdi_dcp_pdu in;
    while (crd_dcp_net_receive(p->net, &packet)) {
        if (packet.from.ip != p->control.ip) { continue; }
        if (p->opt->seen && p->r) {
            p->opt->seen(p->opt->user, false, packet.bytes, packet.length);
        }
        if (packet.length == 0) { p->empty_count++; }
        if (crdi_dcp_decode(packet.bytes, packet.length, &in) != CRDI_DCP_GOOD) { continue; }
        if (in.type == CRDI_DCP_NTF_STATE_CHANGED) {
            if (p->state_count < CRDI_CONFORM_STATES) { p->states[p->state_count++] = in.state; }
        } else if (crdi_dcp_is_response(in.type)) {
            take_response(p, &in);
        } else {
            take_data(p, &in);
        }
    }
}

static bool beats(const crdi_conform_player* p)
{
    return !p->mute && isfinite(p->choice.heartbeat) && p->state != CRD_DCP_ALIVE &&
           p->state < CRD_DCP_ERRORHANDLING;
}

static void send_heartbeat(crdi_conform_player* p)
{
    const double now = crd_dcp_net_now(p->net);
    if (!beats(p) || now < p->beat + p->choice.heartbeat / 3) { return; }
    p->beat = now;
    p->beat_seq = p->seq;
    uint8_t bytes[8];
    const crdi_dcp_pdu q = {.type = CRDI_DCP_INF_STATE, .seq = p->seq++, .peer = p->opt->id};
    crdi_conform_send(p, &p->control, bytes, crdi_dcp_encode(&q, bytes, sizeof bytes));
}

bool crdi_conform_wait(crdi_conform_player* p, double until)
{
    if (!p->waiting) { send_heartbeat(p); }
    if (crd_dcp_net_now(p->net) >= until || p->cancelled) { return false; }
    p->cancelled = !crdi_dcp_query_pause(p->net, until, p->opt->cancelled, p->opt->user);
    crdi_conform_receive(p);
    return !p->cancelled;
}

// ---- requests ----------------------------------------------------------------------------------

static size_t start_value(const crd_dcp_variable* v, uint8_t* out)
{
    double real = 0;
    int64_t integer = 0;
    const char* start = v->start ? v->start : "";
    if (crdi_parse_double(start, strlen(start), &real) && !crdi_dcp_is_real(v->type)) {
        if (fabs(real) < 9e18) { integer = (int64_t)real; }
        (void)crdi_parse_int64(start, strlen(start), &integer);
    }
    const crd_dcp_slot slot = {.type = v->type, .count = 1, .real = &real, .integer = &integer};
    return crdi_dcp_put(&slot, 1, out, 8);
}

static void put_variable(crdi_dcp_pdu* q, const crd_dcp_variable* v)
{
    if (!v) { return; }
    q->vr = v->vr;
    q->data_type = v->type;
}

static void put_network(const crdi_conform_player* p, crdi_dcp_pdu* q)
{
    const bool target = q->type == CRDI_DCP_CFG_TARGET_NETWORK;
    const bool tune = q->type == CRDI_DCP_CFG_PARAM_NETWORK;
    q->transport = p->control.transport;
    q->address = target ? p->opt->local.ip : p->control.ip;
    q->port = target ? p->opt->local.port : tune ? p->choice.tune_port : p->choice.data_port;
}

static void put_content(crdi_conform_player* p, crdi_dcp_pdu* q)
{
    const crdi_conform_choice* c = &p->choice;
    switch (q->type) {
    case CRDI_DCP_STC_REGISTER:
        memcpy(q->uuid, p->d->uuid, sizeof q->uuid);
        q->op_mode = (uint8_t)p->mode;
        q->major = p->d->major;
        q->minor = p->d->minor;
        break;
    case CRDI_DCP_STC_DO_STEP:
        q->steps = p->d->nrt_default_steps > 0 ? p->d->nrt_default_steps : 1;
        break;
    case CRDI_DCP_CFG_TIME_RES:
        q->numerator = c->numerator;
        q->denominator = c->denominator;
        break;
    case CRDI_DCP_CFG_STEPS:
        q->steps = c->output && c->output->default_steps > 0 ? c->output->default_steps : 1;
        break;
    case CRDI_DCP_CFG_INPUT:
        put_variable(q, c->input);
        break;
    case CRDI_DCP_CFG_OUTPUT:
        put_variable(q, c->output);
        break;
    case CRDI_DCP_CFG_PARAMETER:
        put_variable(q, c->parameter);
        q->payload = p->payload;
        q->payload_length = c->parameter ? start_value(c->parameter, p->payload) : 1;
        break;
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
        put_variable(q, c->tunable);
        break;
    case CRDI_DCP_CFG_TARGET_NETWORK:
    case CRDI_DCP_CFG_SOURCE_NETWORK:
    case CRDI_DCP_CFG_PARAM_NETWORK:
        put_network(p, q);
        break;
    case CRDI_DCP_CFG_LOGGING:
        q->level = 3;
        q->mode = p->d->can_log_on_request ? 1 : 2;
        q->category = p->d->category_count > 0 ? p->d->categories[0].id : 1;
        break;
    case CRDI_DCP_INF_LOG:
        q->category = p->d->category_count > 0 ? p->d->categories[0].id : 1;
        q->max = 8;
        break;
    default:
        break;
    }
}

static uint16_t usual_id(uint8_t type)
{
    switch (type) {
    case CRDI_DCP_CFG_INPUT:
    case CRDI_DCP_CFG_SOURCE_NETWORK:
        return CRDI_CONFORM_IN;
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
    case CRDI_DCP_CFG_PARAM_NETWORK:
        return CRDI_CONFORM_TUNE;
    default:
        return CRDI_CONFORM_OUT;
    }
}

crdi_dcp_pdu crdi_conform_request(crdi_conform_player* p, uint8_t type)
{
    crdi_dcp_pdu q = {
        .type = type, .peer = p->opt->id, .state = (uint8_t)p->state, .id = usual_id(type)};
    send_heartbeat(p);
    q.seq = p->seq;
    put_content(p, &q);
    return q;
}

bool crdi_conform_supports(const crdi_conform_player* p, uint8_t type)
{
    // before it is registered it has no operating mode
    return crdi_dcp_supports(p->d, type, p->state == CRD_DCP_ALIVE ? CRD_DCP_NRT : p->mode);
}

// ---- asking ------------------------------------------------------------------------------------

// What an answer means for the sequence ids.
static void count_sequence(crdi_conform_player* p, const crdi_dcp_pdu* q)
{
    const crdi_dcp_pdu* a = &p->answer;
    const bool out_of_order =
        a->type == CRDI_DCP_RSP_NACK && a->error == CRD_DCP_E_INVALID_SEQUENCE_ID;
    if (q->seq == p->seq && !out_of_order) { p->seq++; }
    p->may_rewind = a->type == CRDI_DCP_RSP_ACK &&
                    (q->type == CRDI_DCP_CFG_CLEAR || q->type == CRDI_DCP_STC_RESET);
    if (a->type != CRDI_DCP_RSP_ACK) { return; }
    if (q->type == CRDI_DCP_STC_REGISTER) {
        p->registered = q->seq;
        p->beat = crd_dcp_net_now(p->net);
    }
    if (p->may_rewind || q->type == CRDI_DCP_STC_REGISTER) { p->configured = false; }
    if (q->type == CRDI_DCP_STC_PREPARE || q->type == CRDI_DCP_STC_RESET) {
        p->has_data_seq = false;
    }
}

static void send_out(crdi_conform_player* p, uint16_t seq, size_t n)
{
    p->waiting = true;
    p->waiting_seq = seq;
    p->answered = p->hasty = false;
    const double until = crd_dcp_net_now(p->net) + p->opt->timeout;
    crdi_conform_send(p, &p->control, p->out, n);
    crdi_conform_receive(p);
    while (!p->answered && crdi_conform_wait(p, until)) {}
    p->waiting = false;
}

static bool send_and_wait(crdi_conform_player* p, const crdi_dcp_pdu* q, int longer)
{
    size_t n = crdi_dcp_encode(q, p->out, sizeof p->out);
    if (n == 0 || n + 16 > sizeof p->out) { return crdi_conform_fail(p, "too long to be sent"); }
    if (longer > 0) { memset(p->out + n, 0, (size_t)longer); }
    n += (size_t)longer; // or shorter
    send_out(p, q->seq, n);
    // Slaves may close the connection behind STC_deregister.
    const double until = crd_dcp_net_now(p->net) + p->opt->timeout;
    if (!p->answered && p->state == CRD_DCP_ALIVE && p->control.transport == CRD_DCP_TCP &&
        !crdi_dcp_net_connected(p->net, &p->control) &&
        crdi_dcp_query_connect(p->net, &p->control, until, p->opt->cancelled, p->opt->user)) {
        send_out(p, q->seq, n);
    }
    if (!p->answered) { p->silent = true; }
    return p->answered;
}

bool crdi_conform_ask(crdi_conform_player* p, crdi_dcp_pdu* q, int longer)
{
    crdi_conform_receive(p);
    p->stray_count = 0;
    p->answer = (crdi_dcp_pdu){0};
    if (p->state_count > 0) {
        p->state = p->states[p->state_count - 1];
        return crdi_conform_fail(p, "NTF_state_changed %s that nobody asked for",
                                 play_name_of(p->state));
    }
    if (crdi_dcp_is_state_change(q->type)) {
        p->data_count = 0;
        p->data_wrong = false;
    }
    if (!send_and_wait(p, q, longer)) { return false; }
    const crdi_dcp_pdu* a = &p->answer;
    const uint16_t back = (uint16_t)(p->registered + 1);
    if (p->may_rewind && q->seq == p->seq && a->type == CRDI_DCP_RSP_NACK &&
        a->error == CRD_DCP_E_INVALID_SEQUENCE_ID && a->expected == back) {
        p->rewound = true;
        p->seq = q->seq = back;
        if (!send_and_wait(p, q, longer)) { return false; }
    }
    count_sequence(p, q);
    return true;
}

// ---- states ------------------------------------------------------------------------------------

bool crdi_conform_states(crdi_conform_player* p, const uint8_t* states, int count_)
{
    const double until = crd_dcp_net_now(p->net) + p->opt->patience;
    for (int i = 0; i < count_; i++) {
        while (p->state_count == 0) {
            if (crdi_conform_wait(p, until)) { continue; }
            if (p->state_count > 0) { break; }
            p->silent = true;
            return crdi_conform_fail(p, "no NTF_state_changed %s within %g s",
                                     play_name_of(states[i]), p->opt->patience);
        }
        p->state = p->states[0];
        memmove(p->states, p->states + 1, (size_t)--p->state_count);
        if (p->state != states[i]) {
            p->silent = true; // that one may have been lost
            return crdi_conform_fail(p, "NTF_state_changed %s, expected %s", play_name_of(p->state),
                                     play_name_of(states[i]));
        }
    }
    return true;
}

bool crdi_conform_follow(crdi_conform_player* p, uint8_t type)
{
    uint8_t states[4];
    int n = 0, next = crdi_dcp_next_state(p->state, type, p->mode);
    if (next < 0) { return crdi_conform_fail(p, "acknowledged in %s", play_name_of(p->state)); }
    if (p->hasty) {
        return crdi_conform_fail(p, "NTF_state_changed before RSP_ack (3.4.3, Table 101)");
    }
    if (type == CRDI_DCP_STC_DO_STEP) { p->from_run = p->state; }
    while (next >= 0 && n < 4) {
        states[n++] = (uint8_t)next;
        next = crdi_dcp_next_state_event((crd_dcp_state)next, CRDI_DCP_SIG_DONE, p->from_run);
    }
    return crdi_conform_states(p, states, n);
}

// A request that has to be acknowledged, on the way to somewhere.
static bool step_on(crdi_conform_player* p, crdi_dcp_pdu q)
{
    char words[80];
    if (!crdi_conform_ask(p, &q, 0) || p->answer.type != CRDI_DCP_RSP_ACK) {
        return crdi_conform_fail(p, "%s: %s, expected RSP_ack", crdi_dcp_type_name(q.type),
                                 crdi_conform_words(&p->answer, words));
    }
    return !crdi_dcp_is_state_change(q.type) || crdi_conform_follow(p, q.type);
}

bool crdi_conform_configure(crdi_conform_player* p, uint32_t without)
{
    static const struct {
        uint8_t type;
        uint16_t id;
        uint32_t needs;
    } parts[] = {
        {CRDI_DCP_CFG_TIME_RES, 0, 0},
        {CRDI_DCP_CFG_OUTPUT, CRDI_CONFORM_OUT, CRDI_N_OUTPUT},
        {CRDI_DCP_CFG_STEPS, CRDI_CONFORM_OUT, CRDI_N_OUTPUT},
        {CRDI_DCP_CFG_SCOPE, CRDI_CONFORM_OUT, CRDI_N_OUTPUT},
        {CRDI_DCP_CFG_TARGET_NETWORK, CRDI_CONFORM_OUT, CRDI_N_OUTPUT},
        {CRDI_DCP_CFG_INPUT, CRDI_CONFORM_IN, CRDI_N_INPUT},
        {CRDI_DCP_CFG_SCOPE, CRDI_CONFORM_IN, CRDI_N_INPUT},
        {CRDI_DCP_CFG_SOURCE_NETWORK, CRDI_CONFORM_IN, CRDI_N_INPUT},
        {CRDI_DCP_CFG_TUNABLE_PARAMETER, CRDI_CONFORM_TUNE, CRDI_N_TUNABLE},
        {CRDI_DCP_CFG_PARAM_NETWORK, CRDI_CONFORM_TUNE, CRDI_N_TUNABLE},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if ((without >> i & 1) || (parts[i].needs & ~p->choice.have)) { continue; }
        crdi_dcp_pdu q = crdi_conform_request(p, parts[i].type);
        q.id = parts[i].id;
        if (!step_on(p, q)) { return false; }
    }
    p->configured = true;
    return true;
}

// The request that leads from here towards `to`, 0: there is none.
static uint8_t towards(crd_dcp_state from, crd_dcp_state to)
{
    if (to == CRD_DCP_STOPPED && from >= CRD_DCP_PREPARED && from <= CRD_DCP_SENDING_D) {
        return CRDI_DCP_STC_STOP;
    }
    switch (from) {
    case CRD_DCP_ALIVE:
        return CRDI_DCP_STC_REGISTER;
    case CRD_DCP_CONFIGURATION:
        return CRDI_DCP_STC_PREPARE;
    case CRD_DCP_PREPARED:
        return CRDI_DCP_STC_CONFIGURE;
    case CRD_DCP_CONFIGURED:
        return to == CRD_DCP_INITIALIZED ? CRDI_DCP_STC_INITIALIZE : CRDI_DCP_STC_RUN;
    case CRD_DCP_INITIALIZED:
    case CRD_DCP_COMPUTED:
        return CRDI_DCP_STC_SEND_OUTPUTS;
    case CRD_DCP_SYNCHRONIZED:
        return CRDI_DCP_STC_RUN;
    case CRD_DCP_RUNNING:
        return to == CRD_DCP_COMPUTED ? CRDI_DCP_STC_DO_STEP : 0;
    default:
        return 0;
    }
}

bool crdi_conform_go(crdi_conform_player* p, crd_dcp_state to)
{
    if (to == CRD_DCP_ERRORRESOLVED) {
        return crdi_conform_go(p, CRD_DCP_RUNNING) && crdi_conform_upset(p);
    }
    while (p->state != to) {
        const uint8_t type = towards(p->state, to);
        if (type == 0) {
            return crdi_conform_fail(p, "no way from %s to %s", play_name_of(p->state),
                                     play_name_of(to));
        }
        const bool bare = type == CRDI_DCP_STC_PREPARE && !p->configured;
        if (bare && !crdi_conform_configure(p, 0)) { return false; }
        if (!step_on(p, crdi_conform_request(p, type))) { return false; }
    }
    return true;
}

// ---- data and errors ---------------------------------------------------------------------------

bool crdi_conform_data(crdi_conform_player* p, uint8_t type, uint16_t id, uint16_t seq, int longer)
{
    const bool tune = type == CRDI_DCP_DAT_PARAMETER;
    const crd_dcp_variable* v = tune ? p->choice.tunable : p->choice.input;
    const crdi_dcp_pdu q = {.type = type,
                            .seq = seq,
                            .id = id     ? id
                                  : tune ? CRDI_CONFORM_TUNE
                                         : CRDI_CONFORM_IN,
                            .payload = p->payload,
                            .payload_length = v ? start_value(v, p->payload) : 8};
    const crd_dcp_address to = {.ip = p->control.ip,
                                .port = tune ? p->choice.tune_port : p->choice.data_port,
                                .transport = p->control.transport};
    const double until = crd_dcp_net_now(p->net) + p->opt->timeout;
    size_t n = crdi_dcp_encode(&q, p->out, sizeof p->out - 1);
    p->out[n] = 0;
    n += (size_t)longer; // or shorter
    if (!crdi_dcp_query_connect(p->net, &to, until, p->opt->cancelled, p->opt->user) ||
        !crdi_conform_send(p, &to, p->out, n)) {
        if (p->state >= CRD_DCP_STOPPING) { return true; } // streams may be closed by then
        return crdi_conform_fail(p, "no connection to the data port %u", to.port);
    }
    return true;
}

bool crdi_conform_upset(crdi_conform_player* p)
{
    static const uint8_t states[] = {CRD_DCP_ERRORHANDLING, CRD_DCP_ERRORRESOLVED};
    bool good = true;
    if (p->choice.have & CRDI_N_MISSED) {
        const uint16_t gap = (uint16_t)(p->choice.input->max_missed + 2);
        good = crdi_conform_data(p, CRDI_DCP_DAT_INPUT_OUTPUT, 0, 100, 0) &&
               crdi_conform_data(p, CRDI_DCP_DAT_INPUT_OUTPUT, 0, (uint16_t)(100 + gap), 0);
    } else {
        p->mute = true;
        const double until = crd_dcp_net_now(p->net) + p->choice.heartbeat;
        while (p->state_count == 0 && crdi_conform_wait(p, until)) {}
    }
    good = good && crdi_conform_states(p, states, 2);
    p->mute = false;
    return good;
}

// ---- home --------------------------------------------------------------------------------------

// Asks for the state wherever the sequence ids are; false: no answer.
static bool ask_for_state(crdi_conform_player* p)
{
    for (int i = 0; i < 3; i++) {
        p->state_count = 0;
        crdi_dcp_pdu q = {.type = CRDI_DCP_INF_STATE, .seq = p->seq, .peer = p->opt->id};
        if (!crdi_conform_ask(p, &q, 0)) { continue; }
        if (p->answer.type == CRDI_DCP_RSP_STATE_ACK && p->answer.state < CRD_DCP_STATE_COUNT) {
            p->state = (crd_dcp_state)p->answer.state;
            return true;
        }
        if (p->answer.type == CRDI_DCP_RSP_NACK) { p->seq = p->answer.expected; }
    }
    return false;
}

bool crdi_conform_home(crdi_conform_player* p)
{
    const double until = crd_dcp_net_now(p->net) + 2 * p->opt->patience;
    crdi_dcp_conform_result* r = p->r;
    bool home = false;
    p->r = NULL; // what happens here is nobody's verdict
    p->mute = false;
    while (!home && !p->cancelled && crd_dcp_net_now(p->net) < until) {
        if (!crdi_dcp_query_connect(p->net, &p->control, until, p->opt->cancelled, p->opt->user) ||
            !ask_for_state(p)) {
            break;
        }
        home = p->state == CRD_DCP_ALIVE;
        const bool stoppable = p->state >= CRD_DCP_PREPARING && p->state <= CRD_DCP_SENDING_D;
        const bool leaves = p->state == CRD_DCP_CONFIGURATION || p->state == CRD_DCP_STOPPED ||
                            p->state == CRD_DCP_ERRORRESOLVED;
        if (stoppable || leaves) {
            crdi_dcp_pdu q = {.type = stoppable ? CRDI_DCP_STC_STOP : CRDI_DCP_STC_DEREGISTER,
                              .seq = p->seq,
                              .peer = p->opt->id,
                              .state = (uint8_t)p->state};
            p->state_count = 0;
            if (crdi_conform_ask(p, &q, 0) && p->answer.type == CRDI_DCP_RSP_NACK) {
                p->seq = p->answer.expected;
            }
        }
        if (!home) {
            const double soon = crd_dcp_net_now(p->net) + 0.02;
            while (crdi_conform_wait(p, soon)) {}
        }
    }
    crdi_conform_receive(p);
    p->state_count = 0;
    p->r = r;
    return home;
}
