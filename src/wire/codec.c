// Fields as bits, and whole messages.
#include "shared/wire.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(double) == 8 && sizeof(float) == 4, "IEC 60559");

static uint64_t mask_of(const crdi_wire_field* f)
{
    return UINT64_MAX >> (64 - f->length);
}

static uint64_t reversed(uint64_t w)
{
    return __builtin_bswap64(w);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE(w) (w)
#define BIG(w) reversed(w)
#else
#define LITTLE(w) reversed(w)
#define BIG(w) (w)
#endif

// The bits of a field at the bottom of a word, others above them. Of nine bytes, the last has the
// topmost bits of a little-endian field and the lowest of a big-endian one.
static inline uint64_t bits_of(const crdi_wire_field* f, const uint8_t* data)
{
    const uint8_t* p = data + f->byte;
    uint64_t w;
    memcpy(&w, p, sizeof w);
    if (!f->big) {
        w = LITTLE(w) >> f->shift;
        return f->bytes == 9 ? w | (uint64_t)p[8] << (64 - f->shift) : w;
    }
    if (f->shift >= 0) { return BIG(w) >> f->shift; }
    return BIG(w) << -f->shift | p[8] >> (8 + f->shift);
}

static inline uint64_t raw_of(const crdi_wire_field* f, const uint8_t* data)
{
    const uint64_t raw = bits_of(f, data) & mask_of(f);
    if (f->type != CRDI_WIRE_SIGNED) { return raw; }
    const uint64_t sign = UINT64_C(1) << (f->length - 1);
    return (raw ^ sign) - sign;
}

uint64_t crdi_wire_get_raw(const crdi_wire_field* f, const uint8_t* data)
{
    return raw_of(f, data);
}

void crdi_wire_put_raw(const crdi_wire_field* f, uint8_t* data, uint64_t raw)
{
    const uint64_t mask = mask_of(f);
    uint8_t* p = data + f->byte;
    uint64_t w;
    memcpy(&w, p, sizeof w);
    raw &= mask;
    if (!f->big) {
        w = (LITTLE(w) & ~(mask << f->shift)) | raw << f->shift;
        if (f->bytes == 9) {
            const int up = 64 - f->shift;
            p[8] = (uint8_t)((p[8] & ~(mask >> up)) | raw >> up);
        }
        w = LITTLE(w);
    } else if (f->shift >= 0) {
        w = BIG((BIG(w) & ~(mask << f->shift)) | raw << f->shift);
    } else {
        const int down = -f->shift, left = 8 - down;
        w = BIG((BIG(w) & ~(mask >> down)) | raw >> down);
        p[8] = (uint8_t)((p[8] & ~(mask << left)) | raw << left);
    }
    memcpy(p, &w, sizeof w);
}

static inline double number_of(const crdi_wire_field* f, const uint8_t* data)
{
    const uint64_t raw = raw_of(f, data);
    switch (f->type) {
    case CRDI_WIRE_SIGNED:
        return (double)(int64_t)raw;
    case CRDI_WIRE_FLOAT32: {
        const uint32_t bits = (uint32_t)raw;
        float x;
        memcpy(&x, &bits, sizeof x);
        return (double)x;
    }
    case CRDI_WIRE_FLOAT64: {
        double x;
        memcpy(&x, &raw, sizeof x);
        return x;
    }
    default:
        return (double)raw;
    }
}

static inline double value_of(const crdi_wire_field* f, const uint8_t* data)
{
    return number_of(f, data) * f->factor + f->offset;
}

double crdi_wire_get(const crdi_wire_field* f, const uint8_t* data)
{
    return value_of(f, data);
}

// `lowest` and `highest` keep x inside of what the type can hold.
static uint64_t bits_for(const crdi_wire_field* f, double x)
{
    uint64_t raw = 0;
    if (f->type == CRDI_WIRE_FLOAT64) {
        memcpy(&raw, &x, sizeof raw);
    } else if (f->type == CRDI_WIRE_FLOAT32) {
        const float y = (float)x;
        uint32_t bits;
        memcpy(&bits, &y, sizeof bits);
        raw = bits;
    } else {
        raw = f->type == CRDI_WIRE_SIGNED ? (uint64_t)(int64_t)x : (uint64_t)x;
    }
    return raw;
}

bool crdi_wire_put(const crdi_wire_field* f, uint8_t* data, double value)
{
    const double given = isnan(value) ? f->initial : value;
    double x = (given - f->offset) / f->factor;
    if (f->type <= CRDI_WIRE_SIGNED) { x = round(x); }
    const double kept = fmin(fmax(x, f->lowest), f->highest);
    crdi_wire_put_raw(f, data, bits_for(f, kept));
    return kept == x && !isnan(value);
}

// ---- messages
// ------------------------------------------------------------------------------------

static bool selected(const crdi_wire_field* f, int64_t by)
{
    for (int i = 0; i < f->selected_by_count; i++) {
        if (by >= f->selected_by[i].first && by <= f->selected_by[i].last) { return true; }
    }
    return false;
}

bool crdi_wire_present(const crdi_wire_message* m, const crdi_wire_field* f, const uint8_t* data)
{
    while (f->selector >= 0) {
        const crdi_wire_field* s = &m->fields[f->selector];
        if (!selected(f, (int64_t)raw_of(s, data))) { return false; }
        f = s;
    }
    return true;
}

void crdi_wire_decode(const crdi_wire_message* m, const uint8_t* data, double* values)
{
    for (int i = 0; i < m->field_count; i++) {
        const crdi_wire_field* f = &m->fields[i];
        if (f->depth > 0 && !crdi_wire_present(m, f, data)) { continue; }
        values[i] = value_of(f, data);
    }
}

// Selectors come before what they select: those above have less depth.
int crdi_wire_encode(const crdi_wire_message* m, const double* values, uint8_t* data)
{
    int limited = 0;
    memset(data, 0, (size_t)m->length);
    for (int depth = 0; depth <= m->depth; depth++) {
        for (int i = 0; i < m->field_count; i++) {
            const crdi_wire_field* f = &m->fields[i];
            if (f->depth != depth || i == m->counter.field) { continue; }
            if (m->checksum.kind && i == m->checksum.field) { continue; }
            if (depth > 0 && !crdi_wire_present(m, f, data)) { continue; }
            limited += !crdi_wire_put(f, data, values[i]);
        }
    }
    return limited;
}

// The message of this direction that a datagram is by its kind, or by itself.
static const crdi_wire_message* recognise(const crdi_wire_catalog* c, const uint8_t* data,
                                          size_t length, bool sent)
{
    const crdi_wire_field* kind = &c->kind;
    if (kind->length > 0 && length < (size_t)kind->byte + (size_t)kind->bytes) { return NULL; }
    const uint64_t id = kind->length > 0 ? raw_of(kind, data) : 0;
    for (int i = 0; i < c->message_count; i++) {
        const crdi_wire_message* m = &c->messages[i];
        if (m->sent == sent && (kind->length == 0 || m->id == id)) { return m; }
    }
    return NULL;
}

const crdi_wire_message* crdi_wire_recognise(const crdi_wire_catalog* c, const uint8_t* data,
                                             size_t length)
{
    return recognise(c, data, length, false);
}

const crdi_wire_message* crdi_wire_recognise_any(const crdi_wire_catalog* c, const uint8_t* data,
                                                 size_t length)
{
    const crdi_wire_message* in = recognise(c, data, length, false);
    const crdi_wire_message* out = recognise(c, data, length, true);
    return !in || (out && (size_t)in->length != length && (size_t)out->length == length) ? out : in;
}

size_t crdi_wire_stream_length(const crdi_wire_catalog* c, const uint8_t* bytes, size_t there,
                               bool any)
{
    const size_t first = (size_t)c->kind.byte, end = first + (size_t)c->kind.bytes;
    uint8_t head[2 * CRDI_WIRE_PAD + 8] = {0};
    crdi_wire_catalog view = *c;
    if (c->kind.length > 0) {
        if (there < end) { return 0; }
        memcpy(head, bytes + first, end - first);
        view.kind.byte = 0;
    }
    const crdi_wire_message* m = recognise(&view, head, sizeof head, false);
    if (!m && any) { m = recognise(&view, head, sizeof head, true); }
    return m ? (size_t)m->length : SIZE_MAX;
}
