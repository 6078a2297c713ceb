// The bytes of PDUs: one table of fields per type, which decoder, encoder and printer walk.
//
// All integers are little endian and packed; byte 0 is the type. What stands here in a row are the
// fields from byte 1 on, each with its label in a printed line. Bytes are read and written one by
// one, so that the host's order does not matter; compilers make single loads and stores of it.
#include "cardan/dcp.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum show { NUMBER, SIGNED, STATE, DATA_TYPE, OP_MODE, IPV4, ERROR, HEX, BYTES } show;

typedef struct field {
    const char* label;
    uint16_t offset; // in crd_dcp_pdu
    uint8_t size;    // there
    uint8_t wire;    // bytes in the PDU, 0: end of the table
    uint8_t show;
} field;

#define SIZE(member) sizeof(((crd_dcp_pdu*)0)->member)
#define NARROW(member, wire, show, label)                                                          \
    {                                                                                              \
        label, offsetof(crd_dcp_pdu, member), SIZE(member), wire, show                             \
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

typedef struct layout {
    uint8_t type;
    uint8_t head;              // bytes without which nobody could be answered
    bool open;                 // a payload follows
    uint8_t least;             // bytes of it
    const field* fields;       // from byte 1 on
    const field* const* tails; // (TRANSPORTS) what follows them, NULL: nothing
} layout;

#define ROW(type, head, ...)                                                                       \
    {                                                                                              \
        CRD_DCP_##type, head, false, 0, FIELDS(__VA_ARGS__), NULL                                  \
    }
#define OPEN(type, head, least, ...)                                                               \
    {                                                                                              \
        CRD_DCP_##type, head, true, least, FIELDS(__VA_ARGS__), NULL                               \
    }
#define NETWORK(type, tails, id)                                                                   \
    {                                                                                              \
        CRD_DCP_##type, 4, false, 0, FIELDS(REQUEST, id, TRANSPORT), tails                         \
    }

// Data first: they come most often.
static const layout native[] = {
    OPEN(DAT_INPUT_OUTPUT, 5, 0, FIELD(seq, NUMBER, " seq="), DATA_ID),
    OPEN(DAT_PARAMETER, 5, 0, FIELD(seq, NUMBER, " seq="), PARAM_ID),

    ROW(STC_REGISTER, 4, STC, UUID, FIELD(op_mode, OP_MODE, " op_mode="),
        FIELD(major, NUMBER, " ver="), FIELD(minor, NUMBER, ".")),
    ROW(STC_DEREGISTER, 4, STC),
    ROW(STC_PREPARE, 4, STC),
    ROW(STC_CONFIGURE, 4, STC),
    ROW(STC_INITIALIZE, 4, STC),
    ROW(STC_RUN, 4, STC, FIELD(time, SIGNED, " time=")),
    ROW(STC_DO_STEP, 4, STC, STEPS),
    ROW(STC_SEND_OUTPUTS, 4, STC),
    ROW(STC_STOP, 4, STC),
    ROW(STC_RESET, 4, STC),

    ROW(CFG_TIME_RES, 4, REQUEST, FIELD(numerator, NUMBER, " num="),
        FIELD(denominator, NUMBER, " den=")),
    ROW(CFG_STEPS, 4, REQUEST, STEPS, DATA_ID),
    ROW(CFG_INPUT, 4, REQUEST, DATA_ID, POS, FIELD(vr, NUMBER, " target_vr="), SOURCE_TYPE),
    ROW(CFG_OUTPUT, 4, REQUEST, DATA_ID, POS, FIELD(vr, NUMBER, " source_vr=")),
    ROW(CFG_CLEAR, 4, REQUEST),
    NETWORK(CFG_TARGET_NETWORK, target_network, DATA_ID),
    NETWORK(CFG_SOURCE_NETWORK, source_network, DATA_ID),
    OPEN(CFG_PARAMETER, 4, 1, REQUEST, FIELD(vr, NUMBER, " param_vr="), SOURCE_TYPE),
    ROW(CFG_TUNABLE_PARAMETER, 4, REQUEST, PARAM_ID, POS, FIELD(vr, NUMBER, " param_vr="),
        SOURCE_TYPE),
    NETWORK(CFG_PARAM_NETWORK, param_network, PARAM_ID),
    ROW(CFG_LOGGING, 4, REQUEST, CATEGORY, FIELD(level, NUMBER, " level="),
        FIELD(mode, NUMBER, " mode=")),
    ROW(CFG_SCOPE, 4, REQUEST, DATA_ID, FIELD(scope, NUMBER, " scope=")),

    ROW(INF_STATE, 4, REQUEST),
    ROW(INF_ERROR, 4, REQUEST),
    ROW(INF_LOG, 4, REQUEST, CATEGORY, FIELD(max, NUMBER, " max=")),

    ROW(RSP_ACK, 4, RESPONSE),
    ROW(RSP_NACK, 4, RESPONSE, FIELD(expected, NUMBER, " exp_seq="), ERROR_CODE),
    ROW(RSP_STATE_ACK, 4, RESPONSE, STATE_OF),
    ROW(RSP_ERROR_ACK, 4, RESPONSE, ERROR_CODE),
    OPEN(RSP_LOG_ACK, 4, 0, RESPONSE),

    ROW(NTF_STATE_CHANGED, 2, NOTIFICATION, STATE_OF),
    OPEN(NTF_LOG, 2, 0, NOTIFICATION, FIELD(time, SIGNED, " time="),
         FIELD(template_id, NUMBER, " template=")),
};

// DCP over CAN, from byte 0 on: type, data_id, param_id and sender are the frame's identifier.
#define RECEIVER FIELD(peer, NUMBER, " rcv=")
#define CAN_STC RECEIVER, FIELD(state, STATE, " state_id=")
#define CAN_EMPTY(type)                                                                            \
    {                                                                                              \
        CRD_DCP_##type, 0, false, 0, (const field[]){{0}}, NULL                                    \
    }
#define CAN_OPEN(type)                                                                             \
    {                                                                                              \
        CRD_DCP_##type, 0, true, 0, (const field[]){{0}}, NULL                                     \
    }
static const layout can[] = {
    CAN_OPEN(DAT_INPUT_OUTPUT),
    CAN_OPEN(DAT_PARAMETER),
    ROW(STC_REGISTER, 0, CAN_STC, FIELD(op_mode, OP_MODE, " op_mode=")),
    ROW(STC_DEREGISTER, 0, CAN_STC),
    ROW(STC_PREPARE, 0, CAN_STC),
    ROW(STC_CONFIGURE, 0, CAN_STC),
    ROW(STC_INITIALIZE, 0, CAN_STC),
    ROW(STC_RUN, 0, CAN_STC),
    ROW(STC_DO_STEP, 0, CAN_STC, NARROW(steps, 1, NUMBER, " steps=")),
    ROW(STC_SEND_OUTPUTS, 0, CAN_STC),
    ROW(STC_STOP, 0, CAN_STC),
    ROW(STC_RESET, 0, CAN_STC),
    ROW(INF_STATE, 0, RECEIVER),
    ROW(INF_ERROR, 0, RECEIVER),
    CAN_EMPTY(RSP_ACK),
    ROW(RSP_NACK, 0, NARROW(error, 1, ERROR, " error=")),
    ROW(RSP_STATE_ACK, 0, STATE_OF),
    ROW(RSP_ERROR_ACK, 0, NARROW(error, 1, ERROR, " error=")),
    ROW(NTF_STATE_CHANGED, 0, STATE_OF),
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const layout* find(const layout* rows, size_t count, int type)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].type == type) { return &rows[i]; }
    }
    return NULL;
}

static const field* tail_of(const layout* l, const crd_dcp_pdu* p)
{
    return l->tails && p->transport < TRANSPORTS ? l->tails[p->transport] : NULL;
}

static bool has_payload(const layout* l, const crd_dcp_pdu* p)
{
    return l->open || (l->tails && !tail_of(l, p));
}

// ---- one field ---------------------------------------------------------------------------------

static uint64_t load(const uint8_t* bytes, size_t count)
{
    uint64_t v = 0;
    for (size_t i = 0; i < count; i++) {
        v |= (uint64_t)bytes[i] << (8 * i);
    }
    return v;
}

static void store(uint8_t* bytes, size_t count, uint64_t v)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(v >> (8 * i));
    }
}

static uint64_t get(const crd_dcp_pdu* p, const field* f)
{
    const void* member = (const char*)p + f->offset;
    switch (f->size) {
    case 1:
        return *(const uint8_t*)member;
    case 2:
        return *(const uint16_t*)member;
    case 4:
        return *(const uint32_t*)member;
    default:
        return *(const uint64_t*)member;
    }
}

static void set(crd_dcp_pdu* p, const field* f, uint64_t v)
{
    void* member = (char*)p + f->offset;
    switch (f->size) {
    case 1:
        *(uint8_t*)member = (uint8_t)v;
        break;
    case 2:
        *(uint16_t*)member = (uint16_t)v;
        break;
    case 4:
        *(uint32_t*)member = (uint32_t)v;
        break;
    default:
        *(uint64_t*)member = v;
        break;
    }
}

static void read_field(crd_dcp_pdu* p, const field* f, const uint8_t* bytes)
{
    if (f->show == BYTES) {
        memcpy((char*)p + f->offset, bytes, f->wire);
    } else {
        set(p, f, load(bytes, f->wire));
    }
}

static void write_field(const crd_dcp_pdu* p, const field* f, uint8_t* bytes)
{
    if (f->show == BYTES) {
        memcpy(bytes, (const char*)p + f->offset, f->wire);
    } else {
        store(bytes, f->wire, get(p, f));
    }
}

static bool is_head(const field* f)
{
    return f->offset == offsetof(crd_dcp_pdu, seq) || f->offset == offsetof(crd_dcp_pdu, peer) ||
           f->offset == offsetof(crd_dcp_pdu, state);
}

// ---- decode ------------------------------------------------------------------------------------

static bool read_fields(const field* f, const uint8_t* bytes, size_t length, size_t* at,
                        crd_dcp_pdu* p)
{
    for (; f->wire; f++) {
        if (length - *at < f->wire) { return false; }
        read_field(p, f, bytes + *at);
        *at += f->wire;
    }
    return true;
}

static bool read_all(const layout* l, const uint8_t* bytes, size_t length, size_t at,
                     crd_dcp_pdu* p)
{
    if (!read_fields(l->fields, bytes, length, &at, p)) { return false; }
    const field* tail = tail_of(l, p); // now that the transport is known
    if (tail && !read_fields(tail, bytes, length, &at, p)) { return false; }
    if (!has_payload(l, p)) { return at == length; }
    if (length - at < l->least) { return false; }
    p->payload_length = length - at;
    if (p->payload_length) { p->payload = bytes + at; }
    return true;
}

crd_dcp_decoded crd_dcp_decode(const uint8_t* bytes, size_t length, crd_dcp_pdu* out)
{
    *out = (crd_dcp_pdu){0};
    if (length == 0) { return CRD_DCP_UNKNOWN; }
    const layout* l = find(native, COUNT(native), bytes[0]);
    if (!l || length < l->head) { return CRD_DCP_UNKNOWN; }
    out->type = bytes[0];
    if (read_all(l, bytes, length, 1, out)) { return CRD_DCP_GOOD; }
    *out = (crd_dcp_pdu){.type = bytes[0], .bad_length = length};
    size_t at = 1;
    for (const field* f = l->fields; is_head(f) && at + f->wire <= length; at += f->wire, f++) {
        read_field(out, f, bytes + at);
    }
    return CRD_DCP_BAD_LENGTH;
}

// ---- encode ------------------------------------------------------------------------------------

// Adds the bytes of the fields to `*size`; false: a value is too large for its field.
static bool measure(const field* f, const crd_dcp_pdu* p, size_t* size)
{
    for (; f->wire; f++) {
        if (f->wire < f->size && get(p, f) >> (8 * f->wire)) { return false; }
        *size += f->wire;
    }
    return true;
}

static uint8_t* write_fields(const field* f, const crd_dcp_pdu* p, uint8_t* out)
{
    for (; f->wire; f++) {
        write_field(p, f, out);
        out += f->wire;
    }
    return out;
}

static bool measure_all(const layout* l, const crd_dcp_pdu* p, size_t* size)
{
    const field* tail = tail_of(l, p);
    if (!measure(l->fields, p, size) || (tail && !measure(tail, p, size))) { return false; }
    if (has_payload(l, p)) { *size += p->payload_length; }
    return true;
}

// `size` bytes as measured. The payload comes first: it may be in the way of the fields.
static void write_all(const layout* l, const crd_dcp_pdu* p, uint8_t* out, size_t size)
{
    const field* tail = tail_of(l, p);
    if (has_payload(l, p) && p->payload_length) {
        uint8_t* place = out + (size - p->payload_length);
        if (place != p->payload) { memmove(place, p->payload, p->payload_length); }
    }
    out = write_fields(l->fields, p, out);
    if (tail) { write_fields(tail, p, out); }
}

size_t crd_dcp_encode(const crd_dcp_pdu* p, uint8_t* out, size_t room)
{
    const layout* l = find(native, COUNT(native), p->type);
    size_t size = 1;
    if (!l || !measure_all(l, p, &size)) { return 0; }
    if (out && size <= room) {
        write_all(l, p, out + 1, size - 1);
        out[0] = p->type;
    }
    return size;
}

// ---- print -------------------------------------------------------------------------------------

typedef struct line {
    char* out;
    size_t room, length;
} line;

static void put_char(line* l, char c)
{
    if (l->length + 1 < l->room) { l->out[l->length] = c; }
    l->length++;
}

static void put_text(line* l, const char* text)
{
    for (; *text; text++) {
        put_char(l, *text);
    }
}

static void put_bytes(line* l, const uint8_t* bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        put_char(l, digits[bytes[i] >> 4]);
        put_char(l, digits[bytes[i] & 15]);
    }
}

static void put_format(line* l, const char* format, ...) CRD_PRINTF(2, 3);
static void put_format(line* l, const char* format, ...)
{
    char text[32];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_text(l, text);
}

static void put_name(line* l, const char* name, uint64_t v)
{
    if (name) {
        put_text(l, name);
    } else {
        put_format(l, "%" PRIu64, v);
    }
}

static void put_field(line* l, const field* f, const crd_dcp_pdu* p)
{
    put_text(l, f->label);
    if (f->show == BYTES) {
        put_bytes(l, (const uint8_t*)p + f->offset, f->size);
        return;
    }
    const uint64_t v = get(p, f);
    switch ((show)f->show) {
    case STATE:
        put_name(l, crd_dcp_state_name((int)v), v);
        break;
    case DATA_TYPE:
        put_name(l, crd_dcp_data_type_name((int)v), v);
        break;
    case OP_MODE:
        put_name(l, crd_dcp_op_mode_name((int)v), v);
        break;
    case ERROR:
        put_format(l, "0x%04" PRIX64, v);
        break;
    case HEX:
        put_format(l, "0x%02" PRIX64, v);
        break;
    case SIGNED:
        put_format(l, "%" PRId64, (int64_t)v);
        break;
    case IPV4:
        put_format(l, "%u.%u.%u.%u", (unsigned)(v >> 24), (unsigned)(v >> 16) & 255,
                   (unsigned)(v >> 8) & 255, (unsigned)v & 255);
        break;
    default:
        put_format(l, "%" PRIu64, v);
        break;
    }
}

static void put_fields(line* l, const field* f, const crd_dcp_pdu* p)
{
    for (; f->wire; f++) {
        put_field(l, f, p);
    }
}

static void put_pdu(line* l, const layout* row, const crd_dcp_pdu* p)
{
    if (p->bad_length) { // of which only the head is known
        size_t at = 1;
        for (const field* f = row->fields; is_head(f) && at + f->wire <= p->bad_length; f++) {
            put_field(l, f, p);
            at += f->wire;
        }
        put_format(l, " bad_length=%zu", p->bad_length);
        return;
    }
    const field* tail = tail_of(row, p);
    put_fields(l, row->fields, p);
    if (tail) { put_fields(l, tail, p); }
    if (has_payload(row, p) && p->payload_length) {
        put_text(l, " payload=");
        put_bytes(l, p->payload, p->payload_length);
    }
}

int crd_dcp_print(const crd_dcp_pdu* p, char* out, size_t room)
{
    line l = {.out = out, .room = room};
    const layout* row = find(native, COUNT(native), p->type);
    if (row) {
        put_text(&l, crd_dcp_type_name(p->type));
        put_pdu(&l, row, p);
    } else {
        put_format(&l, "unknown type 0x%02X", p->type);
    }
    if (room > 0) { out[l.length < room ? l.length : room - 1] = '\0'; }
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

int crd_dcp_can_encode(const crd_dcp_pdu* p, uint8_t out[CRD_DCP_CAN_ROOM])
{
    const layout* l = find(can, COUNT(can), p->type);
    crd_dcp_pdu narrow = *p;
    size_t size = 0;
    narrow.error = narrow_error(p->error);
    if (!l || !measure_all(l, &narrow, &size) || size > CRD_DCP_CAN_ROOM) { return -1; }
    write_all(l, &narrow, out, size);
    return (int)size;
}

crd_dcp_decoded crd_dcp_can_decode(const uint8_t* bytes, size_t length, crd_dcp_pdu* p)
{
    *p = (crd_dcp_pdu){.type = p->type, .id = p->id, .peer = p->peer};
    const layout* l = find(can, COUNT(can), p->type);
    if (!l || length > CRD_DCP_CAN_ROOM) { return CRD_DCP_UNKNOWN; }
    const crd_dcp_pdu before = *p;
    if (!read_all(l, bytes, length, 0, p)) {
        *p = before;
        p->bad_length = length;
        return CRD_DCP_BAD_LENGTH;
    }
    p->error = widen_error(p->error);
    return CRD_DCP_GOOD;
}
