// A served unit or system with a link in memory, and a master's hand to ask its slave with.
#pragma once
#include "check.h"

#include <stdio.h>

#include "cardan/master.h"
#include "cardan/unit.h"
#include "shared/dcp.h"
#include "shared/serve.h"

enum { PACKETS = 128, PACKET = 4096, MOST = 64, OUT = 10, IN = 20, TUNED = 30 };

typedef struct packet {
    size_t length;
    uint8_t bytes[PACKET];
} packet;

/// Values of one variable, as the master has them.
typedef struct mirror {
    int variable; // of the description
    crd_dcp_slot slot;
    double real[16];
    int64_t integer[16];
    uint8_t bytes[1024];
    uint32_t byte_count;
} mirror;

typedef struct hand {
    check_allocator allocator;
    crd_context* ctx;
    crd_system* sys;
    crdi_serve* serve;
    const crd_dcp_description* d;
    packet* out; // sent and not yet looked at (PACKETS)
    int out_count;
    char states[512]; // entered, as "0203"
    char logs[4096];  // texts of NTF_log
    uint16_t seq, data_seq, tuned_seq;
    double now;
    mirror ins[MOST], outs[MOST], tuned[MOST];
    int in_count, out_count_of, tuned_count;
} hand;

static const crd_dcp_address hand_master = {0x7F000001, 8081, CRD_DCP_UDP};
static const crd_dcp_address hand_control = {0x7F000001, 8080, CRD_DCP_UDP};

static inline bool hand_send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t n)
{
    hand* h = user;
    (void)to;
    check(h->out_count < PACKETS && n <= PACKET);
    packet* p = &h->out[h->out_count++];
    p->length = n;
    memcpy(p->bytes, bytes, n);
    return true;
}

static inline const char* fmu_path(int version, const char* name)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static inline void hand_context(hand* h)
{
    *h = (hand){.now = 1794710000.25};
    h->out = calloc(PACKETS, sizeof *h->out);
    h->ctx = check_context(&h->allocator);
    check_ok(crd_system_create(h->ctx, &h->sys));
}

/// A system of one unit: an FMU (version 2 or 3), or a model of this process (version 0).
static inline void hand_unit(hand* h, int version, const char* name, const crd_model* model)
{
    hand_context(h);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "one";
    u.source = version ? CRD_UNIT_FMU : CRD_UNIT_NATIVE;
    u.path = version ? fmu_path(version, name) : "";
    u.model = model;
    check_ok(crd_system_add_unit(h->sys, &u, NULL));
    h->sys->single = true;
}

static inline void hand_open_with(hand* h, const crdi_serve_options* opt)
{
    const crd_status st = crdi_serve_create(h->ctx, h->sys, opt, &h->serve);
    if (st < 0) { fail_msg("create: %s", crd_error_text(h->ctx)); }
    h->d = crdi_serve_description(h->serve);
}

static inline void hand_start(hand* h)
{
    const crd_dcp_link link = {.user = h, .send = hand_send};
    check_ok(crdi_serve_start(h->serve, &link, NULL, NULL, NULL));
}

static inline void hand_open(hand* h, const crdi_serve_options* opt)
{
    hand_open_with(h, opt);
    hand_start(h);
}

static inline void hand_close(hand* h)
{
    crdi_serve_destroy(h->serve);
    crd_system_destroy(h->sys);
    crd_context_destroy(h->ctx);
    free(h->out);
    check_int(h->allocator.live, 0);
}

static inline int hand_find(const hand* h, const char* name)
{
    for (int i = 0; i < h->d->variable_count; i++) {
        if (strcmp(h->d->variables[i].name, name) == 0) { return i; }
    }
    fail_msg("there is no variable '%s'", name);
    return -1;
}

static inline const crd_dcp_variable* hand_variable(const hand* h, const char* name)
{
    return &h->d->variables[hand_find(h, name)];
}

// ---- asking ------------------------------------------------------------------------------------

static inline void hand_tell(hand* h, const crdi_dcp_pdu* p)
{
    uint8_t bytes[PACKET];
    const size_t n = crdi_dcp_encode(p, bytes, sizeof bytes);
    check(n > 0);
    crd_dcp_slave_receive(crdi_serve_slave(h->serve), &hand_master, &hand_control, bytes, n,
                          h->now);
}

static inline void hand_take_data(hand* h, const crdi_dcp_pdu* p)
{
    crd_dcp_slot slots[MOST];
    uint8_t types[MOST];
    for (int i = 0; i < h->out_count_of; i++) {
        slots[i] = h->outs[i].slot;
        types[i] = h->outs[i].slot.type;
    }
    check_int(crdi_dcp_take(slots, types, h->out_count_of, p->payload, p->payload_length),
              CRD_DCP_NONE);
}

/// Looks at what was sent: states and logs are written down, data taken, an answer is handed back.
static inline crdi_dcp_pdu hand_look(hand* h)
{
    crdi_dcp_pdu answer = {0};
    for (int i = 0; i < h->out_count; i++) {
        crdi_dcp_pdu p;
        check_int(crdi_dcp_decode(h->out[i].bytes, h->out[i].length, &p), CRDI_DCP_GOOD);
        if (p.type == CRDI_DCP_NTF_STATE_CHANGED) {
            const size_t n = strlen(h->states);
            snprintf(h->states + n, sizeof h->states - n, "%02x", p.state);
        } else if (p.type == CRDI_DCP_NTF_LOG) {
            const size_t n = strlen(h->logs);
            snprintf(h->logs + n, sizeof h->logs - n, "%d:%.*s\n", p.template_id,
                     (int)p.payload_length - 4, (const char*)p.payload + 4);
        } else if (p.type == CRDI_DCP_DAT_INPUT_OUTPUT) {
            hand_take_data(h, &p);
        } else {
            answer = p;
        }
    }
    h->out_count = 0;
    return answer;
}

static inline crdi_dcp_pdu hand_ask(hand* h, crdi_dcp_pdu p)
{
    p.seq = h->seq++;
    p.peer = 1;
    if (p.type <= CRDI_DCP_STC_RESET) {
        p.state = (uint8_t)crd_dcp_slave_state(crdi_serve_slave(h->serve));
    }
    hand_look(h);
    h->states[0] = 0;
    hand_tell(h, &p);
    return hand_look(h);
}

#define hand_do(h, ...)                                                                            \
    do {                                                                                           \
        const crdi_dcp_pdu hand_a = hand_ask(h, (crdi_dcp_pdu){__VA_ARGS__});                      \
        if (hand_a.type != CRDI_DCP_RSP_ACK) {                                                     \
            fail_msg("%s:%d: answered by 0x%02x, error %s", __FILE__, __LINE__, hand_a.type,       \
                     crd_dcp_error_name(hand_a.error));                                            \
        }                                                                                          \
    } while (0)

/// A state change and the states that it leads through.
static inline void hand_change(hand* h, int type, const char* states)
{
    hand_do(h, .type = (uint8_t)type);
    if (strcmp(h->states, states) != 0) {
        fail_msg("states %s, expected %s: %s", h->states, states, crdi_serve_failure(h->serve));
    }
}

// ---- sessions ----------------------------------------------------------------------------------

static inline void hand_register(hand* h, crd_dcp_op_mode mode)
{
    crdi_dcp_pdu p = {.type = CRDI_DCP_STC_REGISTER, .op_mode = (uint8_t)mode, .major = 1};
    memcpy(p.uuid, h->d->uuid, sizeof p.uuid);
    check_int(hand_ask(h, p).type, CRDI_DCP_RSP_ACK);
    check_text(h->states, "01");
}

static inline void hand_log(hand* h)
{
    for (uint8_t level = 0; level < 5; level++) {
        hand_do(h, .type = CRDI_DCP_CFG_LOGGING, .category = 0, .level = level, .mode = 2);
    }
}

static inline mirror* hand_mirror(hand* h, mirror* m, const char* name)
{
    const crd_dcp_variable* v = hand_variable(h, name);
    uint32_t count = 1;
    for (int i = 0; i < v->rank; i++) {
        const int by = v->is_linked[i] ? crd_dcp_find_vr(h->d, v->linked[i]) : -1;
        count *= by < 0 ? (uint32_t)v->dimensions[i] : (uint32_t)atoi(h->d->variables[by].start);
    }
    *m = (mirror){.variable = hand_find(h, name)};
    m->slot = (crd_dcp_slot){.type = v->type,
                             .count = count,
                             .max_size = sizeof m->bytes,
                             .real = m->real,
                             .integer = m->integer,
                             .bytes = m->bytes,
                             .byte_count = &m->byte_count};
    return m;
}

static inline void hand_network(hand* h, uint8_t type, uint16_t id, uint16_t port)
{
    hand_do(h, .type = type, .id = id, .port = port, .address = 0x7F000001);
}

/// Names separated by blanks become the group; "" none.
static inline int hand_group(hand* h, mirror* list, uint8_t type, uint16_t id, const char* names)
{
    int n = 0;
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", names);
    for (char* p = strtok(copy, " "); p; p = strtok(NULL, " ")) {
        hand_mirror(h, &list[n], p);
        const crd_dcp_variable* v = &h->d->variables[list[n].variable];
        hand_do(h, .type = type, .id = id, .pos = (uint16_t)n, .vr = v->vr, .data_type = v->type);
        n++;
    }
    return n;
}

static inline void hand_configure(hand* h, uint32_t denominator, const char* inputs,
                                  const char* outputs, const char* tuned)
{
    if (denominator) {
        hand_do(h, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = denominator);
    }
    h->in_count = hand_group(h, h->ins, CRDI_DCP_CFG_INPUT, IN, inputs);
    h->out_count_of = hand_group(h, h->outs, CRDI_DCP_CFG_OUTPUT, OUT, outputs);
    h->tuned_count = hand_group(h, h->tuned, CRDI_DCP_CFG_TUNABLE_PARAMETER, TUNED, tuned);
    h->data_seq = h->tuned_seq = 0;
    if (h->in_count) {
        hand_do(h, .type = CRDI_DCP_CFG_SCOPE, .id = IN);
        hand_network(h, CRDI_DCP_CFG_SOURCE_NETWORK, IN, 9001);
    }
    if (h->out_count_of) {
        hand_do(h, .type = CRDI_DCP_CFG_SCOPE, .id = OUT);
        hand_do(h, .type = CRDI_DCP_CFG_STEPS, .id = OUT, .steps = 1);
        hand_network(h, CRDI_DCP_CFG_TARGET_NETWORK, OUT, 8081);
    }
    if (h->tuned_count) { hand_network(h, CRDI_DCP_CFG_PARAM_NETWORK, TUNED, 9002); }
}

static inline void hand_send_group(hand* h, uint8_t type, uint16_t id, uint16_t seq, mirror* list,
                                   int count)
{
    crd_dcp_slot slots[MOST];
    uint8_t payload[PACKET - 8];
    for (int i = 0; i < count; i++) {
        slots[i] = list[i].slot;
    }
    const size_t n = crdi_dcp_put(slots, count, payload, sizeof payload);
    check(n > 0 && n <= sizeof payload);
    hand_tell(h, &(crdi_dcp_pdu){
                     .type = type, .seq = seq, .id = id, .payload = payload, .payload_length = n});
}

static inline void hand_inputs(hand* h)
{
    hand_send_group(h, CRDI_DCP_DAT_INPUT_OUTPUT, IN, h->data_seq++, h->ins, h->in_count);
}

static inline void hand_tune(hand* h)
{
    hand_send_group(h, CRDI_DCP_DAT_PARAMETER, TUNED, h->tuned_seq++, h->tuned, h->tuned_count);
}

/// CFG_parameter with the value of a mirror.
static inline void hand_parameter(hand* h, mirror* m)
{
    uint8_t value[PACKET];
    const crd_dcp_variable* v = &h->d->variables[m->variable];
    const size_t n = crdi_dcp_put(&m->slot, 1, value, sizeof value);
    hand_do(h, .type = CRDI_DCP_CFG_PARAMETER, .vr = v->vr, .data_type = v->type, .payload = value,
            .payload_length = n);
}

/// From CONFIGURATION to CONFIGURED, RUNNING.
static inline void hand_make_ready(hand* h)
{
    hand_change(h, CRDI_DCP_STC_PREPARE, "0203");
    hand_change(h, CRDI_DCP_STC_CONFIGURE, "0405");
}

static inline void hand_run(hand* h)
{
    hand_change(h, CRDI_DCP_STC_RUN, "090a");
    hand_change(h, CRDI_DCP_STC_RUN, "0b");
}

/// Outputs of the initial state.
static inline void hand_initialize(hand* h)
{
    hand_change(h, CRDI_DCP_STC_INITIALIZE, "0607");
    hand_change(h, CRDI_DCP_STC_SEND_OUTPUTS, "0805");
}

/// One NRT step; its outputs are in the mirrors.
static inline void hand_step(hand* h, uint32_t steps)
{
    hand_do(h, .type = CRDI_DCP_STC_DO_STEP, .steps = steps);
    if (strcmp(h->states, "0c0d") != 0) {
        fail_msg("states %s, expected 0c0d: %s", h->states, crdi_serve_failure(h->serve));
    }
    hand_change(h, CRDI_DCP_STC_SEND_OUTPUTS, "0e0b");
}
