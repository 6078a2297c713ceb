// A catalog verified and worked out: all that can be wrong with it is found here, whoever wrote it.
#include "shared/wire.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_FIELDS = 16384, LONGEST_KIND = 32 };

crdi_wire_field crdi_wire_field_init(void)
{
    return (crdi_wire_field){.name = "",
                             .unit = "",
                             .comment = "",
                             .factor = 1,
                             .min = -INFINITY,
                             .max = INFINITY,
                             .selector = -1};
}

crdi_wire_message crdi_wire_message_init(void)
{
    return (crdi_wire_message){.name = "", .sender = "", .comment = "", .counter = {.field = -1}};
}

int crdi_wire_field_find(const crdi_wire_message* m, const char* name)
{
    for (int i = 0; i < m->field_count; i++) {
        if (strcmp(m->fields[i].name, name) == 0) { return i; }
    }
    return -1;
}

int crdi_wire_message_find(const crdi_wire_catalog* c, const char* name)
{
    for (int i = 0; i < c->message_count; i++) {
        if (strcmp(c->messages[i].name, name) == 0) { return i; }
    }
    return -1;
}

const char* crdi_wire_item_name(const crdi_wire_field* f, int64_t raw)
{
    for (int i = 0; i < f->item_count; i++) {
        if (f->items[i].value == raw) { return f->items[i].name; }
    }
    return NULL;
}

// What is being looked at, for messages.
typedef struct view {
    crd_context* ctx;
    const crdi_wire_catalog* catalog;
    crdi_wire_message* message;
} view;

#define WRONG(v, line, ...)                                                                        \
    crdi_json_fail((v)->ctx, (v)->catalog->file, line, CRD_E_FORMAT, __VA_ARGS__)

// ---- where the bits are
// --------------------------------------------------------------------------

// In a big-endian field bits go on below, and from bit 0 to bit 7 of the next byte: counted from
// the top of the message they are contiguous.
static int from_top(int bit)
{
    return bit / 8 * 8 + 7 - bit % 8;
}

static void place_field(crdi_wire_field* f)
{
    f->byte = f->start / 8;
    const int above = f->big ? 7 - f->start % 8 : f->start % 8;
    f->bytes = (above + f->length + 7) / 8;
    f->shift = f->big ? 64 - above - f->length : above;
}

// The bits of a byte that a field has.
static uint8_t bits_in(const crdi_wire_field* f, int byte)
{
    const int first = f->big ? from_top(f->start) : f->start;
    uint8_t bits = 0;
    for (int i = 0; i < 8; i++) {
        const int at = 8 * byte + i;
        if (at >= first && at < first + f->length) {
            bits |= (uint8_t)(f->big ? 0x80 >> i : 1 << i);
        }
    }
    return bits;
}

static bool on_top_of_each_other(const crdi_wire_field* a, const crdi_wire_field* b)
{
    const int first = a->byte > b->byte ? a->byte : b->byte;
    const int end_a = a->byte + a->bytes, end_b = b->byte + b->bytes;
    for (int i = first; i < (end_a < end_b ? end_a : end_b); i++) {
        if (bits_in(a, i) & bits_in(b, i)) { return true; }
    }
    return false;
}

static bool ranges_meet(const crdi_wire_field* a, const crdi_wire_field* b)
{
    for (int i = 0; i < a->selected_by_count; i++) {
        for (int k = 0; k < b->selected_by_count; k++) {
            const crdi_wire_range *p = &a->selected_by[i], *q = &b->selected_by[k];
            if (p->first <= q->last && q->first <= p->last) { return true; }
        }
    }
    return false;
}

// Never both: somewhere above them the same selector would need two values.
static bool exclude_each_other(const crdi_wire_message* m, const crdi_wire_field* a,
                               const crdi_wire_field* b)
{
    for (const crdi_wire_field* p = a; p->selector >= 0; p = &m->fields[p->selector]) {
        for (const crdi_wire_field* q = b; q->selector >= 0; q = &m->fields[q->selector]) {
            if (p->selector == q->selector && !ranges_meet(p, q)) { return true; }
        }
    }
    return false;
}

// ---- fields
// --------------------------------------------------------------------------------------

static crd_status check_bits(const view* v, const crdi_wire_field* f, int message_length)
{
    const int bits = f->type == CRDI_WIRE_FLOAT32   ? 32
                     : f->type == CRDI_WIRE_FLOAT64 ? 64
                                                    : f->length;
    if (f->length < 1 || f->length > 64 || f->length != bits) {
        return WRONG(v, f->line, "%s: %s has %d bits, expected %s", v->message->name, f->name,
                     f->length,
                     bits == f->length ? "1 to 64"
                     : bits == 32      ? "32"
                                       : "64");
    }
    const int first = f->big ? from_top(f->start) : f->start;
    if (f->start < 0 || first > 8 * message_length - f->length) {
        return WRONG(v, f->line,
                     "%s: %s ends at bit %d behind the end, expected it inside of the %d bits (%d "
                     "bytes) of the message",
                     v->message->name, f->name, first + f->length - 1, 8 * message_length,
                     message_length);
    }
    return CRD_OK;
}

static crd_status check_scale(const view* v, const crdi_wire_field* f)
{
    if (!isfinite(f->factor) || f->factor == 0 || !isfinite(f->offset)) {
        return WRONG(v, f->line,
                     "%s: %s has factor %g and offset %g, expected finite ones, the "
                     "factor not 0",
                     v->message->name, f->name, f->factor, f->offset);
    }
    if (!(f->min <= f->max)) {
        return WRONG(v, f->line, "%s: %s has the limits %g to %g, expected the smaller one first",
                     v->message->name, f->name, f->min, f->max);
    }
    return CRD_OK;
}

// What the type holds, and inside of that what min and max allow.
static void limit_field(crdi_wire_field* f)
{
    const bool is_signed = f->type == CRDI_WIRE_SIGNED;
    double low = 0, high = ldexp(1, f->length - is_signed);
    if (is_signed) { low = -high; }
    // 2^n - 1; of 64 bits the double below
    high = f->length - is_signed > 53 ? nextafter(high, 0) : high - 1;
    if (f->type == CRDI_WIRE_FLOAT32) { high = FLT_MAX, low = -FLT_MAX; }
    if (f->type == CRDI_WIRE_FLOAT64) { high = DBL_MAX, low = -DBL_MAX; }
    double a = (f->min - f->offset) / f->factor, b = (f->max - f->offset) / f->factor;
    if (f->factor < 0) {
        const double c = a;
        a = b, b = c;
    }
    if (f->type <= CRDI_WIRE_SIGNED) { a = round(a), b = round(b); }
    f->lowest = fmin(fmax(a, low), high);
    f->highest = fmax(fmin(b, high), f->lowest);
}

static crd_status check_selector(const view* v, crdi_wire_field* f)
{
    const crdi_wire_message* m = v->message;
    f->depth = 0;
    for (const crdi_wire_field* p = f; p->selector >= 0; p = &m->fields[p->selector]) {
        const crdi_wire_field* s = p->selector < m->field_count ? &m->fields[p->selector] : NULL;
        if (!s || s->type > CRDI_WIRE_SIGNED || p->selected_by_count < 1) {
            return WRONG(v, f->line,
                         "%s: %s is selected by %s, expected an integer field of the "
                         "message and at least one value",
                         m->name, f->name, s ? s->name : "nothing");
        }
        if (++f->depth > m->field_count) {
            return WRONG(v, f->line, "%s: %s is selected by itself, expected another field",
                         m->name, f->name);
        }
    }
    if (f->depth > v->message->depth) { v->message->depth = f->depth; }
    return CRD_OK;
}

static crd_status check_field(const view* v, int index)
{
    crd_status st = CRD_OK;
    const crdi_wire_message* m = v->message;
    crdi_wire_field* f = &m->fields[index];
    if (f->name[0] == 0) { return WRONG(v, f->line, "%s: a field without a name", m->name); }
    CRD_TRY(check_bits(v, f, m->length));
    CRD_TRY(check_scale(v, f));
    CRD_TRY(check_selector(v, f));
    place_field(f);
    limit_field(f);
    const double raw = (f->initial - f->offset) / f->factor;
    if (!(raw >= f->lowest && raw <= f->highest)) {
        f->initial =
            fmin(fmax(isnan(raw) ? 0 : raw, f->lowest), f->highest) * f->factor + f->offset;
    }
fail:
    return st;
}

static crd_status check_pairs(const view* v)
{
    const crdi_wire_message* m = v->message;
    for (int i = 0; i < m->field_count; i++) {
        for (int k = 0; k < i; k++) {
            const crdi_wire_field *a = &m->fields[k], *b = &m->fields[i];
            if (strcmp(a->name, b->name) == 0) {
                return WRONG(v, b->line, "%s: two fields are called %s, expected each name once",
                             m->name, b->name);
            }
            if (on_top_of_each_other(a, b) && !exclude_each_other(m, a, b)) {
                return WRONG(
                    v, b->line,
                    "%s: %s (from bit %d, %d bits) overlaps %s (from bit %d, %d bits, line "
                    "%d), expected fields beside each other",
                    m->name, b->name, b->start, b->length, a->name, a->start, a->length, a->line);
            }
        }
    }
    return CRD_OK;
}

// ---- counters, checksums
// -------------------------------------------------------------------------

static crd_status check_counter(const view* v, crdi_wire_counter* c)
{
    const crdi_wire_message* m = v->message;
    if (c->field < 0) { return CRD_OK; }
    const crdi_wire_field* f = c->field < m->field_count ? &m->fields[c->field] : NULL;
    if (!f || f->type != CRDI_WIRE_UNSIGNED || f->selector >= 0 || f->length > 32 ||
        f->length < 1) {
        return WRONG(v, c->line,
                     "%s: %s cannot be the counter, expected an unsigned field of 1 to "
                     "32 bits that is always there",
                     m->name, f ? f->name : "nothing");
    }
    const uint64_t most = UINT64_C(1) << f->length;
    if (c->modulus == 0) { c->modulus = most; }
    if (c->step == 0) { c->step = 1; }
    if (c->modulus < 2 || c->modulus > most || c->step >= c->modulus || c->modulus % c->step) {
        return WRONG(v, c->line,
                     "%s: the counter %s of %d bits has modulus %llu and step %llu, expected a "
                     "modulus of 2 to %llu and a step that divides it",
                     m->name, f->name, f->length, (unsigned long long)c->modulus,
                     (unsigned long long)c->step, (unsigned long long)most);
    }
    return CRD_OK;
}

static crd_status check_checksum(const view* v, const crdi_wire_checksum* c)
{
    const crdi_wire_message* m = v->message;
    if (!c->kind) { return CRD_OK; }
    const int bits = crdi_wire_checksum_bits(c->kind);
    const crdi_wire_field* f =
        c->field >= 0 && c->field < m->field_count ? &m->fields[c->field] : NULL;
    if (!f || f->type != CRDI_WIRE_UNSIGNED || f->selector >= 0 || f->length != bits ||
        f->bytes * 8 != bits || c->field == m->counter.field) {
        return WRONG(v, c->line,
                     "%s: %s cannot be the checksum %s, expected an unsigned field of "
                     "%d bits, whole bytes, that is always there",
                     m->name, f ? f->name : "nothing", crdi_wire_checksum_name(c->kind), bits);
    }
    if (c->first < 0 || c->count < 0 || c->first > m->length - c->count) {
        return WRONG(v, c->line,
                     "%s: the checksum is over %d bytes from byte %d on, expected bytes "
                     "of the message, which has %d",
                     m->name, c->count, c->first, m->length);
    }
    const bool ids = c->data_ids == 0 || c->data_ids == 1 ||
                     (c->data_ids == CRDI_WIRE_DATA_IDS && m->counter.field >= 0);
    if (!ids || (c->data_ids && c->data_id_bytes != 1 && c->data_id_bytes != 2)) {
        return WRONG(v, c->line,
                     "%s: the checksum has %d data ids of %d bytes, expected one, or "
                     "%d for a message with a counter, of 1 or 2 bytes",
                     m->name, c->data_ids, c->data_id_bytes, CRDI_WIRE_DATA_IDS);
    }
    return CRD_OK;
}

// ---- messages
// ------------------------------------------------------------------------------------

static crd_status check_message(const view* v)
{
    crd_status st = CRD_OK;
    crdi_wire_message* m = v->message;
    if (m->length < 0 || m->length > CRDI_WIRE_LONGEST || m->field_count > MOST_FIELDS) {
        return WRONG(v, m->line, "%s has %d bytes and %d fields, expected at most %d and %d",
                     m->name, m->length, m->field_count, CRDI_WIRE_LONGEST, MOST_FIELDS);
    }
    if (!(m->cycle >= 0 && isfinite(m->cycle))) {
        return WRONG(v, m->line, "%s has a cycle of %g s, expected a positive time", m->name,
                     m->cycle);
    }
    m->depth = 0;
    for (int i = 0; i < m->field_count; i++) {
        CRD_TRY(check_field(v, i));
    }
    CRD_TRY(check_pairs(v));
    CRD_TRY(check_counter(v, &m->counter));
    CRD_TRY(check_checksum(v, &m->checksum));
fail:
    return st;
}

static crd_status check_other(const view* v, const crdi_wire_message* a)
{
    const crdi_wire_message* b = v->message;
    if (strcmp(a->name, b->name) == 0) {
        return WRONG(v, b->line, "two messages are called %s, expected each name once", b->name);
    }
    if (a->id != b->id || a->extended != b->extended || a->sent != b->sent) { return CRD_OK; }
    return WRONG(v, b->line, "%s has the id 0x%X of %s (line %d), expected one of its own", b->name,
                 b->id, a->name, a->line);
}

// The field that tells datagrams apart is at the same place in all of them.
static crd_status check_kind(const view* v, crdi_wire_field* kind)
{
    crd_status st = CRD_OK;
    if (kind->length == 0) { return CRD_OK; }
    CRD_TRY(check_bits(v, kind, v->message->length));
    if (kind->type != CRDI_WIRE_UNSIGNED || kind->length > LONGEST_KIND) {
        return WRONG(v, kind->line,
                     "the kind of a message has %d bits, expected an unsigned field "
                     "of 1 to %d",
                     kind->length, LONGEST_KIND);
    }
    place_field(kind);
    const crdi_wire_message* m = v->message;
    for (int i = 0; i < m->field_count; i++) {
        if (on_top_of_each_other(&m->fields[i], kind)) {
            return WRONG(v, m->fields[i].line,
                         "%s: %s overlaps the kind of the message (bit %d, %d "
                         "bits), expected it beside that",
                         m->name, m->fields[i].name, kind->start, kind->length);
        }
    }
    if (kind->length < 32 && m->id >> kind->length) {
        return WRONG(v, m->line, "%s has the id 0x%X, expected one of %d bits", m->name, m->id,
                     kind->length);
    }
fail:
    return st;
}

crd_status crdi_wire_prepare(crd_context* ctx, crdi_wire_catalog* c)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < c->message_count; i++) {
        const view v = {ctx, c, &c->messages[i]};
        CRD_TRY(check_message(&v));
        CRD_TRY(check_kind(&v, &c->kind));
        for (int k = 0; k < i; k++) {
            CRD_TRY(check_other(&v, &c->messages[k]));
        }
    }
fail:
    return st;
}
