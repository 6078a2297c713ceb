// The bytes of the learning messages. Little endian; every message begins with
//    0  u8[4]  "CRDL"             6  u16  0
//    4  u8     version = 1        8  u32  length of the body
//    5  u8     type
// and the tables below say what its body is, for encoding and decoding alike.
#include "learn/message.h"

#include <math.h>
#include <string.h>

typedef enum kind {
    U8,      // u8
    I64,     // i64
    F64,     // f64
    NAME,    // u16 length, bytes
    BATCH,   // u16 count, f64[count] values, u8[count] k, u8[count] flags
    NETWORK, // u16 m, u16 n1 (0: none), u16 n2; if m has the highest bit u16 more, u16[more]; then
             // f64 alpha, f64[] W1 b1 W2 b2, those of the layers that are more, W3 b3
    END,
} kind;

typedef struct field {
    kind kind;
    size_t offset; // in crdi_message, of plain numbers
} field;

#define AT(member) offsetof(crdi_message, member)

static const field hello[] = {{NAME, 0}, {F64, AT(step)}, {NETWORK, 0}, {END, 0}};
static const field samples[] = {{I64, AT(first)}, {BATCH, 0}, {END, 0}};
static const field network[] = {
    {I64, AT(generation)}, {F64, AT(held_before)}, {F64, AT(held_after)}, {NETWORK, 0}, {END, 0}};
static const field outcome[] = {{I64, AT(generation)}, {U8, AT(outcome)}, {END, 0}};
static const field bye[] = {{U8, AT(bye)}, {END, 0}};

static const field* const layouts[CRDI_MESSAGE_TYPES] = {[CRDI_HELLO] = hello,
                                                         [CRDI_SAMPLES] = samples,
                                                         [CRDI_NETWORK] = network,
                                                         [CRDI_OUTCOME] = outcome,
                                                         [CRDI_BYE] = bye};

// ---- numbers, one way or the other -------------------------------------------------------------

typedef struct cursor {
    uint8_t* to;         // writing: where to, else NULL
    const uint8_t* from; // reading: where from, else NULL
    size_t left;         // bytes that are there
    size_t beyond;       // reading: bytes of the body that follow those
    const char* wrong;   // the first thing that is; nothing more is read or written then
} cursor;

static void fail(cursor* c, const char* wrong)
{
    if (!c->wrong) { c->wrong = wrong; }
}

static bool need(cursor* c, size_t bytes)
{
    if (c->wrong || c->left < bytes) {
        fail(c, "a message is shorter than its content");
        return false;
    }
    c->left -= bytes;
    return true;
}

static void pass_bytes(cursor* c, void* bytes, size_t n)
{
    if (!need(c, n) || n == 0) { return; }
    if (c->to) {
        memcpy(c->to, bytes, n);
        c->to += n;
    } else {
        memcpy(bytes, c->from, n);
        c->from += n;
    }
}

static uint64_t pass_bits(cursor* c, uint64_t value, int bytes)
{
    uint8_t b[8];
    for (int i = 0; i < bytes; i++) {
        b[i] = (uint8_t)(value >> (8 * i));
    }
    pass_bytes(c, b, (size_t)bytes);
    value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)b[i] << (8 * i);
    }
    return value;
}

static void pass_f64(cursor* c, double* x)
{
    uint64_t bits;
    memcpy(&bits, x, sizeof bits);
    bits = pass_bits(c, bits, 8);
    memcpy(x, &bits, sizeof bits);
}

static int pass_u16(cursor* c, int value)
{
    return (int)pass_bits(c, (uint64_t)value, 2);
}

// ---- what is more than a number ----------------------------------------------------------------

static void pass_name(cursor* c, crdi_message* m)
{
    const int length = pass_u16(c, (int)strlen(m->name));
    if (length > CRDI_NAME_MAX) { fail(c, "a name is too long"); }
    if (c->wrong) { return; }
    pass_bytes(c, m->name, (size_t)length);
    if (c->wrong) { return; }
    m->name[length] = 0;
    for (int i = 0; i < length; i++) {
        const unsigned char letter = (unsigned char)m->name[i];
        if (letter < ' ' || letter == 127) { fail(c, "a name has control characters"); }
    }
}

static void pass_batch(cursor* c, crdi_message* m)
{
    m->count = (uint16_t)pass_u16(c, m->count);
    if (m->count < 1 || m->count > CRDI_BATCH) { fail(c, "a message has no or too many samples"); }
    if (c->wrong) { return; }
    for (int i = 0; i < m->count; i++) {
        pass_f64(c, &m->values[i]);
    }
    pass_bytes(c, m->k, m->count);
    pass_bytes(c, m->flags, m->count);
    for (int i = 0; i < m->count && !c->wrong; i++) {
        if (m->k[i] > CRD_LATENCY_MAX && m->k[i] != CRDI_K_UNKNOWN) {
            fail(c, "a latency is too large");
        }
        if (m->flags[i] & ~CRDI_FLAG_JUMP) { fail(c, "a sample has unknown flags"); }
    }
}

static void write_weights(cursor* c, const crd_network* n)
{
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    for (int p = 0; p < count; p++) {
        for (int i = 0; i < parts[p].count; i++) {
            double x = parts[p].w[i];
            pass_f64(c, &x);
        }
    }
}

static void read_weights(cursor* c, crdi_message* m, size_t count)
{
    crd_network* n = &m->network;
    n->W1 = n->b1 = n->W2 = n->b2 = n->W3 = NULL;
    n->b3 = NAN;
    if (c->left + c->beyond != 8 * count) {
        fail(c, "a network has another number of weights than its shape says");
    } else if (c->beyond || m->weight_capacity < count) {
        c->left = 0;
    } else {
        for (size_t i = 0; i < count; i++) {
            pass_f64(c, &m->weights[i]);
        }
        crdi_network_place(n, m->weights);
    }
}

enum { DEEP = 0x8000 };
static const char no_shape[] = "a network has an impossible shape";

static void pass_network(cursor* c, crdi_message* m)
{
    crd_network* n = &m->network;
    n->m = pass_u16(c, n->more > 0 ? n->m | DEEP : n->m);
    n->n1 = pass_u16(c, n->n1);
    n->n2 = pass_u16(c, n->n2);
    if (n->m & DEEP) {
        n->more = pass_u16(c, n->more);
        if (n->more < 1 || n->more > CRD_NETWORK_LAYERS - 2) { fail(c, no_shape); }
        for (int h = 0; h < n->more && !c->wrong; h++) {
            n->n_more[h] = pass_u16(c, n->n_more[h]);
        }
    }
    n->m &= ~DEEP;
    pass_f64(c, &n->alpha);
    if (!c->wrong && !crdi_network_has_shape(n)) { fail(c, no_shape); }
    if (c->wrong) { return; }
    if (c->to) {
        write_weights(c, n);
    } else {
        read_weights(c, m, crdi_network_weights(n));
    }
}

static void pass_field(cursor* c, const field* f, crdi_message* m)
{
    void* at = (char*)m + f->offset;
    switch (f->kind) {
    case U8:
        *(uint8_t*)at = (uint8_t)pass_bits(c, *(uint8_t*)at, 1);
        break;
    case I64:
        *(int64_t*)at = (int64_t)pass_bits(c, (uint64_t) * (int64_t*)at, 8);
        break;
    case F64:
        pass_f64(c, at);
        break;
    case NAME:
        pass_name(c, m);
        break;
    case BATCH:
        pass_batch(c, m);
        break;
    case NETWORK:
        pass_network(c, m);
        break;
    case END:
        break;
    }
}

// ---- messages ----------------------------------------------------------------------------------

static const uint8_t magic[4] = {'C', 'R', 'D', 'L'};

size_t crdi_message_encode(const crdi_message* m, uint8_t* out, size_t capacity)
{
    if (capacity < CRDI_MESSAGE_HEADER) { return 0; }
    crdi_message copy = *m; // fields are passed by reference, whichever way they go
    cursor c = {.to = out + CRDI_MESSAGE_HEADER, .left = capacity - CRDI_MESSAGE_HEADER};
    for (const field* f = layouts[m->type]; f->kind != END; f++) {
        pass_field(&c, f, &copy);
    }
    if (c.wrong) { return 0; }
    const size_t body = capacity - CRDI_MESSAGE_HEADER - c.left;
    c = (cursor){.to = out, .left = CRDI_MESSAGE_HEADER};
    pass_bytes(&c, (void*)magic, sizeof magic);
    pass_bits(&c, CRDI_MESSAGE_VERSION, 1);
    pass_bits(&c, m->type, 1);
    pass_bits(&c, 0, 2);
    pass_bits(&c, body, 4);
    return CRDI_MESSAGE_HEADER + body;
}

const char* crdi_message_header(const uint8_t head[CRDI_MESSAGE_HEADER], crdi_message_type* type,
                                size_t* length)
{
    cursor c = {.from = head, .left = CRDI_MESSAGE_HEADER};
    uint8_t word[4];
    pass_bytes(&c, word, sizeof word);
    const uint64_t version = pass_bits(&c, 0, 1);
    const uint64_t code = pass_bits(&c, 0, 1);
    const uint64_t zero = pass_bits(&c, 0, 2);
    const uint64_t body = pass_bits(&c, 0, 4);
    if (memcmp(word, magic, sizeof word) != 0) { return "this is no learning message"; }
    if (version != CRDI_MESSAGE_VERSION) { return "the messages have another version"; }
    if (code < 1 || code >= CRDI_MESSAGE_TYPES || zero != 0) { return "a message is unknown"; }
    if (body > CRDI_MESSAGE_MAX - CRDI_MESSAGE_HEADER) { return "a message is too long"; }
    *type = (crdi_message_type)code;
    *length = (size_t)body;
    return NULL;
}

// Numbers whose range does not depend on who reads them.
static const char* check_content(const crdi_message* m)
{
    const int64_t far = INT64_C(1) << 60;
    switch (m->type) {
    case CRDI_HELLO:
        return m->step > 0 && isfinite(m->step) ? NULL : "the macro step is not above 0";
    case CRDI_SAMPLES:
        return m->first > -far && m->first < far ? NULL : "a sequence number is out of range";
    case CRDI_OUTCOME:
        return m->outcome > 0 && m->outcome < CRDI_OUTCOMES ? NULL : "an outcome is unknown";
    case CRDI_BYE:
        return m->bye < CRDI_BYES ? NULL : "a reason is unknown";
    default:
        return NULL;
    }
}

const char* crdi_message_decode(crdi_message* m, const uint8_t* bytes, size_t present)
{
    size_t length = 0;
    if (present < CRDI_MESSAGE_HEADER) { return "a message is shorter than its header"; }
    const char* wrong = crdi_message_header(bytes, &m->type, &length);
    if (wrong) { return wrong; }
    const size_t there = present - CRDI_MESSAGE_HEADER;
    if (there > length) { return "a message is longer than its header says"; }
    m->name[0] = 0;
    m->count = 0;
    m->network = (crd_network){0};
    cursor c = {.from = bytes + CRDI_MESSAGE_HEADER, .left = there, .beyond = length - there};
    for (const field* f = layouts[m->type]; f->kind != END; f++) {
        pass_field(&c, f, m);
    }
    // Only a network may be cut off, and only where its weights are.
    if (c.left || (c.beyond && m->type != CRDI_NETWORK)) {
        fail(&c, "a message is longer than its content");
    }
    return c.wrong ? c.wrong : check_content(m);
}

// ---- boxes -------------------------------------------------------------------------------------

static void compact(uint8_t* bytes, size_t* head, size_t* tail)
{
    if (*head > 0 && *tail > *head) { memmove(bytes, bytes + *head, *tail - *head); }
    *tail -= *head;
    *head = 0;
}

size_t crdi_inbox_room(crdi_inbox* in, uint8_t** at)
{
    compact(in->bytes, &in->head, &in->tail);
    *at = in->bytes + in->tail;
    return in->capacity - in->tail;
}

void crdi_inbox_add(crdi_inbox* in, size_t n)
{
    in->tail += n;
}

bool crdi_inbox_next(crdi_inbox* in, crdi_message* m, const char** wrong)
{
    *wrong = NULL;
    const size_t passing = in->skip < in->tail - in->head ? in->skip : in->tail - in->head;
    in->head += passing;
    in->skip -= passing;
    if (in->tail - in->head < CRDI_MESSAGE_HEADER) { return false; }
    size_t length = 0;
    *wrong = crdi_message_header(in->bytes + in->head, &m->type, &length);
    if (*wrong) { return false; }
    const size_t whole = CRDI_MESSAGE_HEADER + length;
    const size_t part = whole < in->capacity ? whole : in->capacity;
    if (in->tail - in->head < part) { return false; }
    *wrong = crdi_message_decode(m, in->bytes + in->head, part);
    if (*wrong) { return false; }
    in->head += part;
    in->skip = whole - part;
    return true;
}

size_t crdi_outbox_room(const crdi_outbox* out)
{
    return out->capacity - (out->tail - out->head);
}

bool crdi_outbox_put(crdi_outbox* out, const crdi_message* m)
{
    if (out->head == out->tail) { out->head = out->tail = 0; }
    size_t n = crdi_message_encode(m, out->bytes + out->tail, out->capacity - out->tail);
    if (n == 0 && out->head > 0) {
        compact(out->bytes, &out->head, &out->tail);
        n = crdi_message_encode(m, out->bytes + out->tail, out->capacity - out->tail);
    }
    out->tail += n;
    return n > 0;
}
