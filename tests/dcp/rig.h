// A motor on a bench behind a slave, all in memory: the plant, a link that keeps what is sent, and
// a master's hand to ask with.
#pragma once
#include "check.h"

#include <stdio.h>

#include "rig_description.h"

// ---- the rig -----------------------------------------------------------------------------------

enum { RIG_PACKETS = 256, RIG_BYTES = 512, RIG_CALLS = 512 };

typedef struct rig_packet {
    crd_dcp_address to;
    size_t length;
    uint8_t bytes[RIG_BYTES];
} rig_packet;

typedef struct rig {
    check_allocator allocator;
    crd_context* ctx;
    crd_dcp_description d;
    crd_dcp_slave* slave;
    rig_packet out[RIG_PACKETS]; // sent and not yet looked at, oldest first
    int out_count;
    bool held; // what is sent waits ...
    int left;  // ... and so many had left when it began or ended last
    crd_dcp_address listening[8], connected[8];
    int listening_count, connected_count, closed;
    uint16_t seq; // of the next request
    double now, start;
    // the motor
    double u, torque, r, kp, speed, current;
    double temperatures; // how many
    int64_t ticks;
    uint8_t text[64], blob[64], name[64];
    uint32_t text_bytes, blob_bytes, name_bytes;
    int64_t mode, limit;
    double profile[3];
    // what its callbacks shall do, and have done
    crd_dcp_outcome enters[CRD_DCP_STATE_COUNT], steps, sets, gets;
    int entered[RIG_CALLS], entered_count, step_count, set_count, get_count;
    uint32_t last_steps;
    double last_resolution;
    void (*meddle)(struct rig* r); // called by the step
    const double* tape;            // outputs instead of the motor's, one row per step
    int tape_width;
} rig;

static inline crd_dcp_outcome rig_enter(void* user, crd_dcp_state state, double now)
{
    rig* r = user;
    (void)now;
    if (r->entered_count < RIG_CALLS) { r->entered[r->entered_count++] = (int)state; }
    if (state == CRD_DCP_CONFIGURATION) {
        r->u = r->torque = r->speed = r->current = 0;
        r->ticks = 0;
        r->r = 0.5;
        r->kp = 1;
        r->temperatures = 3;
    }
    if (state == CRD_DCP_INITIALIZING) { r->current = (r->kp * r->u - 0.1 * r->speed) / r->r; }
    return r->enters[state];
}

static inline crd_dcp_outcome rig_step(void* user, int64_t done, uint32_t steps, double resolution)
{
    rig* r = user;
    r->current = (r->kp * r->u - 0.1 * r->speed) / r->r;
    r->speed += steps * resolution * (0.1 * r->current - r->torque) / 0.01;
    check_int(done, r->ticks);
    r->ticks += steps;
    r->step_count++;
    r->last_steps = steps;
    r->last_resolution = resolution;
    if (r->meddle) { r->meddle(r); }
    return r->steps;
}

static inline void rig_copy(uint8_t* to, uint32_t* count, const crd_dcp_slot* from)
{
    check(*from->byte_count <= 64);
    *count = *from->byte_count;
    if (*count) { memcpy(to, from->bytes, *count); }
}

static inline crd_dcp_outcome rig_set(void* user, int variable, const crd_dcp_slot* v)
{
    rig* r = user;
    r->set_count++;
    switch (variable) {
    case RIG_U:
        r->u = *v->real;
        break;
    case RIG_TORQUE:
        r->torque = *v->real;
        break;
    case RIG_TEXT:
        rig_copy(r->text, &r->text_bytes, v);
        break;
    case RIG_BLOB:
        rig_copy(r->blob, &r->blob_bytes, v);
        break;
    case RIG_MODE:
        r->mode = *v->integer;
        break;
    case RIG_PROFILE:
        check_int(v->count, 3);
        memcpy(r->profile, v->real, sizeof r->profile);
        break;
    case RIG_R:
        r->r = *v->real;
        break;
    case RIG_KP:
        r->kp = *v->real;
        break;
    case RIG_NAME:
        rig_copy(r->name, &r->name_bytes, v);
        break;
    case RIG_LIMIT:
        r->limit = *v->integer;
        break;
    case RIG_N_TEMPS:
        r->temperatures = (double)*v->integer;
        break;
    default:
        fail_msg("variable %d cannot be set", variable);
    }
    return r->sets;
}

static inline crd_dcp_outcome rig_get(void* user, int variable, crd_dcp_slot* v)
{
    rig* r = user;
    r->get_count++;
    if (r->tape) {
        *v->real = r->tape[(r->step_count - 1) * r->tape_width + variable];
        return r->gets;
    }
    switch (variable) {
    case RIG_SPEED:
        *v->real = r->speed;
        break;
    case RIG_CURRENT:
        *v->real = r->current;
        break;
    case RIG_TICKS:
        *v->integer = r->ticks;
        break;
    case RIG_STATUS:
        *v->byte_count = r->text_bytes;
        memcpy(v->bytes, r->text, r->text_bytes);
        break;
    case RIG_BLOB_OUT:
        *v->byte_count = r->blob_bytes;
        memcpy(v->bytes, r->blob, r->blob_bytes);
        break;
    case RIG_TEMPS:
        check_int(v->count, (int64_t)r->temperatures);
        for (uint32_t i = 0; i < v->count; i++) {
            v->real[i] = 293.15 + r->current + i;
        }
        break;
    default:
        fail_msg("variable %d cannot be asked for", variable);
    }
    return r->gets;
}

static inline bool rig_send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t n)
{
    rig* r = user;
    check(r->out_count < RIG_PACKETS && n <= RIG_BYTES && n > 0);
    rig_packet* p = &r->out[r->out_count++];
    p->to = *to;
    p->length = n;
    memcpy(p->bytes, bytes, n);
    return true;
}

static inline bool rig_listen(void* user, const crd_dcp_address* at)
{
    rig* r = user;
    if (r->listening_count == 8) { return false; }
    r->listening[r->listening_count++] = *at;
    return true;
}

static inline bool rig_connect(void* user, const crd_dcp_address* to)
{
    rig* r = user;
    if (r->connected_count == 8) { return false; }
    r->connected[r->connected_count++] = *to;
    return true;
}

static inline void rig_close_links(void* user)
{
    ((rig*)user)->closed++;
}

static inline crd_dcp_plant rig_plant(rig* r)
{
    return (crd_dcp_plant){r, rig_enter, rig_step, rig_set, rig_get};
}

// Holds are not nested, and each comes to its end.
static inline void rig_hold(void* user, bool on)
{
    rig* r = user;
    check(r->held != on);
    r->held = on;
    r->left = r->out_count;
}

static inline crd_dcp_link rig_link(rig* r)
{
    return (crd_dcp_link){r, rig_send, rig_listen, rig_connect, rig_close_links, rig_hold};
}

static inline rig* rig_create(const crd_dcp_description* d, const crd_dcp_slave_options* opt)
{
    rig* r = calloc(1, sizeof *r);
    r->ctx = check_context(&r->allocator);
    r->d = d ? *d : rig_description();
    r->now = 1794710000.25;
    r->r = 0.5;
    r->kp = 1;
    r->temperatures = 3;
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = rig_link(r);
    check_ok(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, opt, &r->slave));
    return r;
}

/// Also says that nothing was allocated since `create`.
static inline void rig_destroy(rig* r)
{
    crd_dcp_slave_destroy(r->slave);
    crd_context_destroy(r->ctx);
    check_int(r->allocator.live, 0);
    free(r);
}

// ---- a master's hand ---------------------------------------------------------------------------

static const crd_dcp_address rig_master = {0x7F000001, 8081, CRD_DCP_UDP};
static const crd_dcp_address rig_control = {0x7F000001, 8080, CRD_DCP_UDP};

static inline void rig_receive(rig* r, const uint8_t* bytes, size_t length)
{
    // Exactly so many bytes, for who reads behind them.
    uint8_t* copy = malloc(length ? length : 1);
    if (length) { memcpy(copy, bytes, length); }
    crd_dcp_slave_receive(r->slave, &rig_master, &rig_control, copy, length, r->now);
    free(copy);
}

static inline size_t rig_bytes(const char* hex, uint8_t* out)
{
    size_t n = 0;
    for (; hex[0] && hex[0] != ' '; hex += 2) {
        unsigned byte = 0;
        check(n < RIG_BYTES && sscanf(hex, "%2x", &byte) == 1);
        out[n++] = (uint8_t)byte;
    }
    return n;
}

static inline void rig_hex(rig* r, const char* hex)
{
    uint8_t bytes[RIG_BYTES];
    rig_receive(r, bytes, rig_bytes(hex, bytes));
}

/// Takes the oldest packet away; with `port`, the oldest one to there.
static inline rig_packet rig_take(rig* r, uint16_t port)
{
    for (int i = 0; i < r->out_count; i++) {
        const rig_packet p = r->out[i];
        if (port && p.to.port != port) { continue; }
        r->out_count--;
        memmove(&r->out[i], &r->out[i + 1], (size_t)(r->out_count - i) * sizeof p);
        return p;
    }
    fail_msg("nothing was sent");
    return (rig_packet){0};
}

static inline void rig_expect(rig* r, const char* hex)
{
    const rig_packet p = rig_take(r, 0);
    char text[2 * RIG_BYTES + 1] = "";
    for (size_t i = 0; i < p.length; i++) {
        snprintf(text + 2 * i, 3, "%02x", p.bytes[i]);
    }
    check_text(text, hex);
}

static inline void rig_quiet(const rig* r)
{
    check_int(r->out_count, 0);
}

/// The states that it said it entered, and nothing else: "0203".
static inline void rig_states(rig* r, const char* states)
{
    char text[256] = "";
    while (r->out_count) {
        const rig_packet p = rig_take(r, 0);
        check_int(p.bytes[0], CRDI_DCP_NTF_STATE_CHANGED);
        check_int(p.length, 3);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%02x", p.bytes[2]);
    }
    check_text(text, states);
}

static inline void rig_tell(rig* r, const crdi_dcp_pdu* p)
{
    uint8_t bytes[RIG_BYTES];
    const size_t n = crdi_dcp_encode(p, bytes, sizeof bytes);
    check(n > 0);
    rig_receive(r, bytes, n);
}

/// A request with the next sequence id to slave 1 (unless it names another); its answer.
static inline crdi_dcp_pdu rig_ask(rig* r, crdi_dcp_pdu p)
{
    p.seq = r->seq++;
    if (p.peer == 0) { p.peer = 1; }
    if (p.type <= CRDI_DCP_STC_RESET && p.state == 0) {
        p.state = (uint8_t)crd_dcp_slave_state(r->slave);
    }
    rig_quiet(r);
    rig_tell(r, &p);
    static rig_packet answer; // its payload is looked at
    answer = rig_take(r, 0);
    crdi_dcp_pdu a;
    check_int(crdi_dcp_decode(answer.bytes, answer.length, &a), CRDI_DCP_GOOD);
    check_int(a.seq, p.seq);
    check_int(a.peer, p.peer);
    check(answer.to.ip == rig_master.ip && answer.to.port == rig_master.port);
    return a;
}

#define rig_do(r, ...)                                                                             \
    do {                                                                                           \
        const crdi_dcp_pdu rig_a = rig_ask(r, (crdi_dcp_pdu){__VA_ARGS__});                        \
        if (rig_a.type != CRDI_DCP_RSP_ACK) {                                                      \
            fail_msg("%s:%d: answered by 0x%02x, error %s", __FILE__, __LINE__, rig_a.type,        \
                     crd_dcp_error_name(rig_a.error));                                             \
        }                                                                                          \
    } while (0)

#define rig_refused(r, code, ...)                                                                  \
    do {                                                                                           \
        const crdi_dcp_pdu rig_a = rig_ask(r, (crdi_dcp_pdu){__VA_ARGS__});                        \
        if (rig_a.type != CRDI_DCP_RSP_NACK || rig_a.error != (code)) {                            \
            fail_msg("%s:%d: answered by 0x%02x, error 0x%04x, expected 0x%04x", __FILE__,         \
                     __LINE__, rig_a.type, rig_a.error, code);                                     \
        }                                                                                          \
        check_int(rig_a.expected, (r)->seq);                                                       \
    } while (0)

static inline void rig_register(rig* r, crd_dcp_op_mode mode)
{
    crdi_dcp_pdu p = {.type = CRDI_DCP_STC_REGISTER, .op_mode = (uint8_t)mode, .major = r->d.major};
    memcpy(p.uuid, r->d.uuid, sizeof p.uuid);
    check_int(rig_ask(r, p).type, CRDI_DCP_RSP_ACK);
    rig_states(r, "01");
}

static inline void rig_network(rig* r, uint8_t type, uint16_t id, uint16_t port)
{
    rig_do(r, .type = type, .id = id, .port = port, .address = 0x7F000001);
}

/// data_id 10: speed and ticks out to 8081; data_id 20: u and torque in at 9001; param_id 30: kp at
/// 9002; 1/100 s.
static inline void rig_configure(rig* r)
{
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 0, .vr = 11);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 1, .vr = 13);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 1);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 0, .vr = 1,
           .data_type = CRD_DCP_FLOAT64);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 2,
           .data_type = CRD_DCP_FLOAT64);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
    rig_do(r, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 30, .vr = 22,
           .data_type = CRD_DCP_FLOAT64);
    rig_network(r, CRDI_DCP_CFG_PARAM_NETWORK, 30, 9002);
}

/// From CONFIGURATION to CONFIGURED.
static inline void rig_make_ready(rig* r)
{
    rig_do(r, .type = CRDI_DCP_STC_PREPARE);
    rig_states(r, "0203");
    rig_do(r, .type = CRDI_DCP_STC_CONFIGURE);
    rig_states(r, "0405");
}

/// From ALIVE to RUNNING. Real time: steps begin at r->start, later in this second.
static inline void rig_run(rig* r, crd_dcp_op_mode mode)
{
    rig_register(r, mode);
    rig_configure(r);
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "090a");
    if (mode != CRD_DCP_NRT) {
        crd_dcp_slave_advance(r->slave, r->now);
        check_int(rig_take(r, 0).bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
        r->step_count = 0;
    }
    r->start = ceil(r->now);
    rig_do(r, .type = CRDI_DCP_STC_RUN, .time = (int64_t)r->start);
    rig_states(r, "0b");
}

/// DAT_input_output to data_id 20.
static inline void rig_inputs(rig* r, uint16_t seq, double u, double torque)
{
    double values[2] = {u, torque};
    uint8_t payload[16];
    const crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 2, .real = values};
    check_int(crdi_dcp_put(&slot, 1, payload, sizeof payload), 16);
    rig_tell(r, &(crdi_dcp_pdu){.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                .seq = seq,
                                .id = 20,
                                .payload = payload,
                                .payload_length = sizeof payload});
}

static inline void rig_tune(rig* r, uint16_t seq, double kp)
{
    uint8_t payload[8];
    const crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 1, .real = &kp};
    check_int(crdi_dcp_put(&slot, 1, payload, sizeof payload), 8);
    rig_tell(r, &(crdi_dcp_pdu){.type = CRDI_DCP_DAT_PARAMETER,
                                .seq = seq,
                                .id = 30,
                                .payload = payload,
                                .payload_length = sizeof payload});
}
