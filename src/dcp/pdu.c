// PDUs: one table of all types, which decoder, encoder and printer walk. In which states a slave
// takes them is said by states.c.
//
// All integers are little endian and packed; byte 0 is the type. What stands here in a row are the
// fields from byte 1 on, each with its label in a printed line.
#include "shared/dcp.h"

#include <limits.h>
#include <string.h>

typedef enum show { NUMBER, SIGNED, STATE, DATA_TYPE, OP_MODE, IPV4, ERROR, HEX, BYTES } show;

typedef struct field {
    const char* label;
    uint16_t offset; // in crdi_dcp_pdu
    uint8_t size;    // there
    uint8_t wire;    // bytes in the PDU, 0: end of the table
    uint8_t show;
} field;

#define SIZE(member) sizeof(((crdi_dcp_pdu*)0)->member)
#define NARROW(member, wire, show, label)                                                          \
    {                                                                                              \
        label, offsetof(crdi_dcp_pdu, member), SIZE(member), wire, show                            \
    }
#define FIELD(member, show, label) NARROW(member, SIZE(member), show, label)
#define FIELDS(...) ((const field[]){__VA_ARGS__, {0}})

// ---- parts that types share --------------------------------------------------------------------

#define REQUEST FIELD(seq, NUMBER, " seq="), FIELD(peer, NUMBER, " rcv=")
#define STC REQUEST, FIELD(state, STATE, " state_id=")
#define RESPONSE FIELD(seq, NUMBER, " resp_seq="), FIELD(peer, NUMBER, " snd=")
#define NOTIFICATION FIELD(peer, NUMBER, " snd=")
#define DATA_ID FIELD(id, NUMBER, " data_id=")
#define PARAM_ID FIELD(id, NUMBER, " param_id=")
#define POS FIELD(pos, NUMBER, " pos=")
#define SOURCE_TYPE FIELD(data_type, DATA_TYPE, " src_type=")
#define TRANSPORT FIELD(transport, NUMBER, " tp=")
#define UUID FIELD(uuid, BYTES, " uuid=")
#define STEPS FIELD(steps, NUMBER, " steps=")
#define CATEGORY FIELD(category, NUMBER, " category=")
#define STATE_OF FIELD(state, STATE, " state=")
#define ERROR_CODE FIELD(error, ERROR, " error=")

// What follows the transport in the three PDUs with network information.
#define IP_FIELDS FIELDS(FIELD(port, NUMBER, " port="), FIELD(address, IPV4, " ip="))
#define USB_FIELDS FIELDS(FIELD(endpoint, HEX, " endpoint="))
#define BLUETOOTH_FIELDS FIELDS(NARROW(port, 1, NUMBER, " port="), FIELD(bd_addr, HEX, " bd_addr="))

enum { TRANSPORTS = CRD_DCP_TCP + 1 };

// NULL: no such PDU with this transport (CAN), or none that we know; the rest is payload then, for
// the receiver to refuse the transport and not the length.
static const field* const target_network[TRANSPORTS] = {
    [CRD_DCP_UDP] = IP_FIELDS,
    [CRD_DCP_TCP] = IP_FIELDS,
    [CRD_DCP_BLUETOOTH] = BLUETOOTH_FIELDS,
    [CRD_DCP_USB] = FIELDS(FIELD(endpoint, HEX, " endpoint="), UUID),
};
static const field* const source_network[TRANSPORTS] = {
    [CRD_DCP_UDP] = IP_FIELDS,
    [CRD_DCP_TCP] = IP_FIELDS,
    [CRD_DCP_BLUETOOTH] = BLUETOOTH_FIELDS,
    [CRD_DCP_USB] = USB_FIELDS,
};
static const field* const param_network[TRANSPORTS] = {
    [CRD_DCP_UDP] = IP_FIELDS,
    [CRD_DCP_TCP] = IP_FIELDS,
    // other widths than its two siblings have: DCP 1.0 prints it so
    [CRD_DCP_BLUETOOTH] =
        FIELDS(FIELD(port, NUMBER, " port="), NARROW(bd_addr, 4, HEX, " bd_addr=")),
    [CRD_DCP_USB] = USB_FIELDS,
};

// ---- one row per type --------------------------------------------------------------------------

typedef struct row {
    const char* name;          // NULL: there is no such type
    uint8_t head;              // bytes without which nobody could be answered
    bool open;                 // a payload follows
    const field* fields;       // from byte 1 on
    const field* const* tails; // (TRANSPORTS) what follows them, NULL: nothing
    // The data bytes of a frame of DCP over CAN, from byte 0 on: type, data_id, param_id and sender
    // are its identifier. NULL: there is no such message.
    const field* can;
} row;

static const field nothing[] = {{0}};
#define CAN_STC FIELD(peer, NUMBER, " rcv="), FIELD(state, STATE, " state_id=")
#define CAN_INF .can = FIELDS(FIELD(peer, NUMBER, " rcv="))
#define CAN_ERROR .can = FIELDS(NARROW(error, 1, ERROR, " error="))
#define PLAIN_STC 4, .fields = FIELDS(STC), .can = FIELDS(CAN_STC)
#define NETWORK(id, tail) 4, .fields = FIELDS(REQUEST, id, TRANSPORT), .tails = tail

static const row rows[256] = {
    // from the master: changes of state
    [CRDI_DCP_STC_REGISTER] = {"STC_register", 4,
                               .fields =
                                   FIELDS(STC, UUID, FIELD(op_mode, OP_MODE, " op_mode="),
                                          FIELD(major, NUMBER, " ver="), FIELD(minor, NUMBER, ".")),
                               .can = FIELDS(CAN_STC, FIELD(op_mode, OP_MODE, " op_mode="))},
    [CRDI_DCP_STC_DEREGISTER] = {"STC_deregister", PLAIN_STC},
    [CRDI_DCP_STC_PREPARE] = {"STC_prepare", PLAIN_STC},
    [CRDI_DCP_STC_CONFIGURE] = {"STC_configure", PLAIN_STC},
    [CRDI_DCP_STC_INITIALIZE] = {"STC_initialize", PLAIN_STC},
    [CRDI_DCP_STC_RUN] = {"STC_run", 4, .fields = FIELDS(STC, FIELD(time, SIGNED, " time=")),
                          .can = FIELDS(CAN_STC)},
    [CRDI_DCP_STC_DO_STEP] = {"STC_do_step", 4, .fields = FIELDS(STC, STEPS),
                              .can = FIELDS(CAN_STC, NARROW(steps, 1, NUMBER, " steps="))},
    [CRDI_DCP_STC_SEND_OUTPUTS] = {"STC_send_outputs", PLAIN_STC},
    [CRDI_DCP_STC_STOP] = {"STC_stop", PLAIN_STC},
    [CRDI_DCP_STC_RESET] = {"STC_reset", PLAIN_STC},

    // from the master: configuration
    [CRDI_DCP_CFG_TIME_RES] = {"CFG_time_res", 4,
                               .fields = FIELDS(REQUEST, FIELD(numerator, NUMBER, " num="),
                                                FIELD(denominator, NUMBER, " den="))},
    [CRDI_DCP_CFG_STEPS] = {"CFG_steps", 4, .fields = FIELDS(REQUEST, STEPS, DATA_ID)},
    [CRDI_DCP_CFG_INPUT] = {"CFG_input", 4,
                            .fields = FIELDS(REQUEST, DATA_ID, POS,
                                             FIELD(vr, NUMBER, " target_vr="), SOURCE_TYPE)},
    [CRDI_DCP_CFG_OUTPUT] = {"CFG_output", 4,
                             .fields =
                                 FIELDS(REQUEST, DATA_ID, POS, FIELD(vr, NUMBER, " source_vr="))},
    [CRDI_DCP_CFG_CLEAR] = {"CFG_clear", 4, .fields = FIELDS(REQUEST)},
    [CRDI_DCP_CFG_TARGET_NETWORK] = {"CFG_target_network_information",
                                     NETWORK(DATA_ID, target_network)},
    [CRDI_DCP_CFG_SOURCE_NETWORK] = {"CFG_source_network_information",
                                     NETWORK(DATA_ID, source_network)},
    [CRDI_DCP_CFG_PARAMETER] = {"CFG_parameter", 4, .open = true,
                                .fields =
                                    FIELDS(REQUEST, FIELD(vr, NUMBER, " param_vr="), SOURCE_TYPE)},
    [CRDI_DCP_CFG_TUNABLE_PARAMETER] = {"CFG_tunable_parameter", 4,
                                        .fields =
                                            FIELDS(REQUEST, PARAM_ID, POS,
                                                   FIELD(vr, NUMBER, " param_vr="), SOURCE_TYPE)},
    [CRDI_DCP_CFG_PARAM_NETWORK] = {"CFG_param_network_information",
                                    NETWORK(PARAM_ID, param_network)},
    [CRDI_DCP_CFG_LOGGING] = {"CFG_logging", 4,
                              .fields = FIELDS(REQUEST, CATEGORY, FIELD(level, NUMBER, " level="),
                                               FIELD(mode, NUMBER, " mode="))},
    [CRDI_DCP_CFG_SCOPE] = {"CFG_scope", 4,
                            .fields = FIELDS(REQUEST, DATA_ID, FIELD(scope, NUMBER, " scope="))},

    // from the master: questions
    [CRDI_DCP_INF_STATE] = {"INF_state", 4, .fields = FIELDS(REQUEST), CAN_INF},
    [CRDI_DCP_INF_ERROR] = {"INF_error", 4, .fields = FIELDS(REQUEST), CAN_INF},
    [CRDI_DCP_INF_LOG] = {"INF_log", 4,
                          .fields = FIELDS(REQUEST, CATEGORY, FIELD(max, NUMBER, " max="))},

    // from a slave
    [CRDI_DCP_RSP_ACK] = {"RSP_ack", 4, .fields = FIELDS(RESPONSE), .can = nothing},
    [CRDI_DCP_RSP_NACK] = {"RSP_nack", 4,
                           .fields =
                               FIELDS(RESPONSE, FIELD(expected, NUMBER, " exp_seq="), ERROR_CODE),
                           CAN_ERROR},
    [CRDI_DCP_RSP_STATE_ACK] = {"RSP_state_ack", 4, .fields = FIELDS(RESPONSE, STATE_OF),
                                .can = FIELDS(STATE_OF)},
    [CRDI_DCP_RSP_ERROR_ACK] = {"RSP_error_ack", 4, .fields = FIELDS(RESPONSE, ERROR_CODE),
                                CAN_ERROR},
    [CRDI_DCP_RSP_LOG_ACK] = {"RSP_log_ack", 4, .open = true, .fields = FIELDS(RESPONSE)},
    [CRDI_DCP_NTF_STATE_CHANGED] = {"NTF_state_changed", 2,
                                    .fields = FIELDS(NOTIFICATION, STATE_OF),
                                    .can = FIELDS(STATE_OF)},
    [CRDI_DCP_NTF_LOG] = {"NTF_log", 2, .open = true,
                          .fields = FIELDS(NOTIFICATION, FIELD(time, SIGNED, " time="),
                                           FIELD(template_id, NUMBER, " template="))},

    // from either
    [CRDI_DCP_DAT_INPUT_OUTPUT] = {"DAT_input_output", 5, .open = true,
                                   .fields = FIELDS(FIELD(seq, NUMBER, " seq="), DATA_ID),
                                   .can = nothing},
    [CRDI_DCP_DAT_PARAMETER] = {"DAT_parameter", 5, .open = true,
                                .fields = FIELDS(FIELD(seq, NUMBER, " seq="), PARAM_ID),
                                .can = nothing},
};

const char* crdi_dcp_type_name(int type)
{
    return type >= 0 && type < 256 ? rows[type].name : NULL;
}

static const field* tail_of(const row* r, const crdi_dcp_pdu* p)
{
    return r->tails && p->transport < TRANSPORTS ? r->tails[p->transport] : NULL;
}

static bool has_payload(const row* r, const crdi_dcp_pdu* p)
{
    return r->open || (r->tails && !tail_of(r, p));
}

// ---- one field ---------------------------------------------------------------------------------

static uint64_t get_field(const crdi_dcp_pdu* p, const field* f)
{
    return crdi_dcp_member_get(p, f->offset, f->size);
}

static void read_field(crdi_dcp_pdu* p, const field* f, const uint8_t* bytes)
{
    if (f->show == BYTES) {
        memcpy((char*)p + f->offset, bytes, f->wire);
    } else {
        crdi_dcp_member_set(p, f->offset, f->size, crdi_load_le(bytes, f->wire));
    }
}

static void write_field(const crdi_dcp_pdu* p, const field* f, uint8_t* bytes)
{
    if (f->show == BYTES) {
        memcpy(bytes, (const char*)p + f->offset, f->wire);
    } else {
        crdi_store_le(bytes, f->wire, get_field(p, f));
    }
}

static bool is_head(const field* f)
{
    return f->offset == offsetof(crdi_dcp_pdu, seq) || f->offset == offsetof(crdi_dcp_pdu, peer) ||
           f->offset == offsetof(crdi_dcp_pdu, state);
}

// ---- decode ------------------------------------------------------------------------------------

static bool read_fields(const field* f, const uint8_t* bytes, size_t length, size_t* at,
                        crdi_dcp_pdu* p)
{
    for (; f->wire; f++) {
        if (length - *at < f->wire) { return false; }
        read_field(p, f, bytes + *at);
        *at += f->wire;
    }
    return true;
}

// `fields` are those of the row, native or of CAN; `at` is where they begin.
static bool read_pdu(const row* r, const field* fields, const uint8_t* bytes, size_t length,
                     size_t at, crdi_dcp_pdu* p)
{
    if (!read_fields(fields, bytes, length, &at, p)) { return false; }
    const field* tail = tail_of(r, p); // now that the transport is known
    if (tail && !read_fields(tail, bytes, length, &at, p)) { return false; }
    if (!has_payload(r, p)) { return at == length; }
    p->payload_length = length - at;
    if (p->payload_length) { p->payload = bytes + at; }
    return true;
}

crdi_dcp_decoded crdi_dcp_decode(const uint8_t* bytes, size_t length, crdi_dcp_pdu* out)
{
    *out = (crdi_dcp_pdu){0};
    const row* r = length ? &rows[bytes[0]] : NULL;
    if (!r || !r->name || length < r->head) { return CRDI_DCP_UNKNOWN; }
    out->type = bytes[0];
    if (read_pdu(r, r->fields, bytes, length, 1, out)) { return CRDI_DCP_GOOD; }
    *out = (crdi_dcp_pdu){.type = bytes[0], .bad_length = length};
    size_t at = 1;
    for (const field* f = r->fields; is_head(f) && at + f->wire <= length; at += f->wire, f++) {
        read_field(out, f, bytes + at);
    }
    return CRDI_DCP_BAD_LENGTH;
}

// ---- encode ------------------------------------------------------------------------------------

// Adds the bytes of the fields to `*size`; false: a value is too large for its field.
static bool measure_fields(const field* f, const crdi_dcp_pdu* p, size_t* size)
{
    for (; f->wire; f++) {
        if (f->wire < f->size && get_field(p, f) >> (8 * f->wire)) { return false; }
        *size += f->wire;
    }
    return true;
}

static uint8_t* write_fields(const field* f, const crdi_dcp_pdu* p, uint8_t* out)
{
    for (; f->wire; f++) {
        write_field(p, f, out);
        out += f->wire;
    }
    return out;
}

static bool measure_pdu(const row* r, const field* fields, const crdi_dcp_pdu* p, size_t* size)
{
    const field* tail = tail_of(r, p);
    if (!measure_fields(fields, p, size) || (tail && !measure_fields(tail, p, size))) {
        return false;
    }
    if (has_payload(r, p)) { *size += p->payload_length; }
    return true;
}

// `size` bytes as measured. The payload comes first: it may be in the way of the fields.
static void write_pdu(const row* r, const field* fields, const crdi_dcp_pdu* p, uint8_t* out,
                      size_t size)
{
    const field* tail = tail_of(r, p);
    if (has_payload(r, p) && p->payload_length) {
        uint8_t* place = out + (size - p->payload_length);
        if (place != p->payload) { memmove(place, p->payload, p->payload_length); }
    }
    out = write_fields(fields, p, out);
    if (tail) { write_fields(tail, p, out); }
}

size_t crdi_dcp_encode(const crdi_dcp_pdu* p, uint8_t* out, size_t room)
{
    const row* r = &rows[p->type];
    size_t size = 1;
    if (!r->name || !measure_pdu(r, r->fields, p, &size)) { return 0; }
    if (out && size <= room) {
        write_pdu(r, r->fields, p, out + 1, size - 1);
        out[0] = p->type;
    }
    return size;
}

// ---- print -------------------------------------------------------------------------------------

static void pdu_put_name(crdi_dcp_line* l, const char* name, uint64_t v)
{
    if (name) {
        crdi_dcp_line_put(l, name, strlen(name));
    } else {
        crdi_dcp_line_add(l, "%llu", (unsigned long long)v);
    }
}

static void put_field(crdi_dcp_line* l, const field* f, const crdi_dcp_pdu* p)
{
    crdi_dcp_line_put(l, f->label, strlen(f->label));
    if (f->show == BYTES) {
        crdi_dcp_line_hex(l, (const uint8_t*)p + f->offset, f->size);
        return;
    }
    const uint64_t v = get_field(p, f);
    switch ((show)f->show) {
    case STATE:
        pdu_put_name(l, crd_dcp_state_name((int)v), v);
        break;
    case DATA_TYPE:
        pdu_put_name(l, crd_dcp_data_type_name((int)v), v);
        break;
    case OP_MODE:
        pdu_put_name(l, crd_dcp_op_mode_name((int)v), v);
        break;
    case ERROR:
        crdi_dcp_line_add(l, "0x%04llX", (unsigned long long)v);
        break;
    case HEX:
        crdi_dcp_line_add(l, "0x%02llX", (unsigned long long)v);
        break;
    case SIGNED:
        crdi_dcp_line_add(l, "%lld", (long long)v);
        break;
    case IPV4:
        crdi_dcp_line_add(l, "%u.%u.%u.%u", (unsigned)(v >> 24), (unsigned)(v >> 16) & 255,
                          (unsigned)(v >> 8) & 255, (unsigned)v & 255);
        break;
    default:
        crdi_dcp_line_add(l, "%llu", (unsigned long long)v);
        break;
    }
}

static void put_fields(crdi_dcp_line* l, const field* f, const crdi_dcp_pdu* p)
{
    for (; f->wire; f++) {
        put_field(l, f, p);
    }
}

static void put_pdu(crdi_dcp_line* l, const row* r, const crdi_dcp_pdu* p)
{
    if (p->bad_length) { // of which only the head is known
        size_t at = 1;
        for (const field* f = r->fields; is_head(f) && at + f->wire <= p->bad_length; f++) {
            put_field(l, f, p);
            at += f->wire;
        }
        crdi_dcp_line_add(l, " bad_length=%zu", p->bad_length);
        return;
    }
    const field* tail = tail_of(r, p);
    put_fields(l, r->fields, p);
    if (tail) { put_fields(l, tail, p); }
    if (has_payload(r, p) && p->payload_length) {
        crdi_dcp_line_add(l, " payload=");
        crdi_dcp_line_hex(l, p->payload, p->payload_length);
    }
}

int crdi_dcp_print(const crdi_dcp_pdu* p, char* out, size_t room)
{
    crdi_dcp_line l = {.out = out, .room = room};
    const row* r = &rows[p->type];
    if (r->name) {
        crdi_dcp_line_put(&l, r->name, strlen(r->name));
        put_pdu(&l, r, p);
    } else {
        crdi_dcp_line_add(&l, "unknown type 0x%02X", p->type);
    }
    return l.length < INT_MAX ? (int)l.length : INT_MAX;
}

// ---- CAN ---------------------------------------------------------------------------------------

// Codes have 16 bits, the frame has 8 for them. All that DCP 1.0 lists are 0xg0nn with g < 8 and
// nn < 32; three and five bits carry them without loss.
static uint16_t narrow_error(uint16_t code)
{
    const bool fits = code < 0x8000 && (code & 0x0FFF) < 32;
    const uint16_t c = fits ? code : CRD_DCP_E_GENERIC;
    return (uint16_t)(c >> 12 << 5 | (c & 31));
}

static uint16_t widen_error(uint16_t byte)
{
    return (uint16_t)(byte >> 5 << 12 | (byte & 31));
}

int crdi_dcp_can_encode(const crdi_dcp_pdu* p, uint8_t out[CRDI_DCP_CAN_ROOM])
{
    const row* r = &rows[p->type];
    crdi_dcp_pdu narrow = *p;
    size_t size = 0;
    narrow.error = narrow_error(p->error);
    if (!r->can || !measure_pdu(r, r->can, &narrow, &size) || size > CRDI_DCP_CAN_ROOM) {
        return -1;
    }
    write_pdu(r, r->can, &narrow, out, size);
    return (int)size;
}

crdi_dcp_decoded crdi_dcp_can_decode(const uint8_t* bytes, size_t length, crdi_dcp_pdu* p)
{
    *p = (crdi_dcp_pdu){.type = p->type, .id = p->id, .peer = p->peer};
    const row* r = &rows[p->type];
    if (!r->can || length > CRDI_DCP_CAN_ROOM) { return CRDI_DCP_UNKNOWN; }
    const crdi_dcp_pdu before = *p;
    if (!read_pdu(r, r->can, bytes, length, 0, p)) {
        *p = before;
        p->bad_length = length;
        return CRDI_DCP_BAD_LENGTH;
    }
    p->error = widen_error(p->error);
    return CRDI_DCP_GOOD;
}
