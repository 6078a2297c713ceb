// Values in payloads: behind each other, little endian, without padding. Strings and binaries have
// their number of bytes before them (u32), arrays nothing.
#include "shared/dcp.h"

#include <float.h>
#include <math.h>
#include <string.h>

// ---- conversions -------------------------------------------------------------------------------

#define TO(type) (1u << CRD_DCP_##type)
#define FLOATS (TO(FLOAT32) | TO(FLOAT64))

// What a value may become without loss: DCP 1.0, rules of CFG_input.
static const uint16_t targets[CRD_DCP_DATA_TYPE_COUNT] = {
    [CRD_DCP_UINT8] = TO(UINT8) | TO(UINT16) | TO(UINT32) | TO(UINT64) | TO(INT16) | TO(INT32) |
                      TO(INT64) | FLOATS,
    [CRD_DCP_UINT16] = TO(UINT16) | TO(UINT32) | TO(UINT64) | TO(INT32) | TO(INT64) | FLOATS,
    [CRD_DCP_UINT32] = TO(UINT32) | TO(UINT64) | TO(INT64) | TO(FLOAT64),
    [CRD_DCP_UINT64] = TO(UINT64),
    [CRD_DCP_INT8] = TO(INT8) | TO(INT16) | TO(INT32) | TO(INT64) | FLOATS,
    [CRD_DCP_INT16] = TO(INT16) | TO(INT32) | TO(INT64) | FLOATS,
    [CRD_DCP_INT32] = TO(INT32) | TO(INT64) | TO(FLOAT64),
    [CRD_DCP_INT64] = TO(INT64),
    [CRD_DCP_FLOAT32] = FLOATS,
    [CRD_DCP_FLOAT64] = TO(FLOAT64),
    [CRD_DCP_STRING] = TO(STRING),
    [CRD_DCP_BINARY] = TO(BINARY),
};

static inline bool converts(unsigned from, unsigned to)
{
    return from < CRD_DCP_DATA_TYPE_COUNT && to < CRD_DCP_DATA_TYPE_COUNT &&
           (targets[from] >> to & 1);
}

bool crdi_dcp_converts(crd_dcp_data_type from, crd_dcp_data_type to)
{
    return converts((unsigned)from, (unsigned)to);
}

static inline size_t width(unsigned type)
{
    static const uint8_t widths[CRD_DCP_DATA_TYPE_COUNT] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0};
    return type < CRD_DCP_DATA_TYPE_COUNT ? widths[type] : 0;
}

size_t crdi_dcp_size_of(crd_dcp_data_type type)
{
    return width((unsigned)type);
}

// ---- bytes -------------------------------------------------------------------------------------

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LITTLE_ENDIAN_HOST = 1 };
#else
enum { LITTLE_ENDIAN_HOST = 0 };
#endif

static inline void store_double(uint8_t* bytes, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    crdi_store_le(bytes, 8, bits);
}

static inline double load_double(const uint8_t* bytes)
{
    const uint64_t bits = crdi_load_le(bytes, 8);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void store_float(uint8_t* bytes, double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    crdi_store_le(bytes, 4, bits);
}

static inline double load_float(const uint8_t* bytes)
{
    const uint32_t bits = (uint32_t)crdi_load_le(bytes, 4);
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

// ---- put ---------------------------------------------------------------------------------------

static inline void put_integers(const crd_dcp_slot* s, uint8_t* out, size_t size)
{
    for (uint32_t i = 0; i < s->count; i++) {
        crdi_store_le(out + i * size, size, (uint64_t)s->integer[i]);
    }
}

static void put_doubles(const crd_dcp_slot* s, uint8_t* out)
{
    if (LITTLE_ENDIAN_HOST && s->count > 1) {
        memcpy(out, s->real, (size_t)s->count * 8);
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        store_double(out + (size_t)i * 8, s->real[i]);
    }
}

static void put_floats(const crd_dcp_slot* s, uint8_t* out)
{
    for (uint32_t i = 0; i < s->count; i++) {
        store_float(out + (size_t)i * 4, s->real[i]);
    }
}

static void put_slot(const crd_dcp_slot* s, uint8_t* out, size_t size)
{
    switch (s->type) {
    case CRD_DCP_FLOAT64:
        put_doubles(s, out);
        break;
    case CRD_DCP_FLOAT32:
        put_floats(s, out);
        break;
    case CRD_DCP_UINT8:
    case CRD_DCP_INT8:
        put_integers(s, out, 1);
        break;
    case CRD_DCP_UINT16:
    case CRD_DCP_INT16:
        put_integers(s, out, 2);
        break;
    case CRD_DCP_UINT32:
    case CRD_DCP_INT32:
        put_integers(s, out, 4);
        break;
    case CRD_DCP_UINT64:
    case CRD_DCP_INT64:
        put_integers(s, out, 8);
        break;
    default:
        crdi_store_le(out, 4, size - 4);
        if (size > 4) { memcpy(out + 4, s->bytes, size - 4); }
        break;
    }
}

static size_t size_of_slot(const crd_dcp_slot* s)
{
    if (!crdi_dcp_is_bytes(s->type)) { return s->count * width(s->type); }
    return 4 + (size_t)(*s->byte_count < s->max_size ? *s->byte_count : s->max_size);
}

size_t crdi_dcp_put(const crd_dcp_slot* slots, int count, uint8_t* out, size_t room)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const size_t size = size_of_slot(&slots[i]);
        // what comes behind the first that has no room has none either
        if (at <= room && size <= room - at && size > 0) { put_slot(&slots[i], out + at, size); }
        at += size;
    }
    return at;
}

// ---- take --------------------------------------------------------------------------------------

// Where a value ends that begins at `*at`; false: behind the end of the payload.
static inline bool skip(uint32_t count, uint8_t type, const uint8_t* payload, size_t length,
                        size_t* at)
{
    const size_t left = length - *at;
    size_t size = count * width(type);
    if (crdi_dcp_is_bytes(type)) {
        if (left < 4) { return false; }
        const uint64_t n = 4 + crdi_load_le(payload + *at, 4);
        if (n > left) { return false; }
        size = (size_t)n;
    }
    if (size > left) { return false; }
    *at += size;
    return true;
}

size_t crdi_dcp_encoded_size(uint8_t type, uint64_t count, const uint8_t* bytes, size_t left)
{
    size_t at = 0;
    const bool known = type < CRD_DCP_DATA_TYPE_COUNT && count <= UINT32_MAX;
    return known && skip((uint32_t)count, type, bytes, left, &at) ? at : SIZE_MAX;
}

static crd_dcp_error look_through(const crd_dcp_slot* slots, const uint8_t* types, int count,
                                  const uint8_t* payload, size_t length)
{
    size_t at = 0;
    bool fits = true;
    for (int i = 0; i < count; i++) {
        if (!converts(types[i], slots[i].type)) { return CRD_DCP_E_INVALID_SOURCE_DATA_TYPE; }
        const size_t begin = at;
        if (!skip(slots[i].count, types[i], payload, length, &at)) {
            return CRD_DCP_E_INVALID_LENGTH;
        }
        if (crdi_dcp_is_bytes(types[i]) && at - begin - 4 > slots[i].max_size) { fits = false; }
    }
    if (at != length) { return CRD_DCP_E_INVALID_LENGTH; }
    return fits ? CRD_DCP_NONE : CRD_DCP_E_INVALID_PAYLOAD;
}

static inline void take_integers(const crd_dcp_slot* s, const uint8_t* p, size_t size,
                                 bool is_signed)
{
    const uint64_t sign = is_signed ? (uint64_t)1 << (8 * size - 1) : 0;
    const bool real = crdi_dcp_is_real(s->type);
    for (uint32_t i = 0; i < s->count; i++) {
        const int64_t v = (int64_t)((crdi_load_le(p + i * size, size) ^ sign) - sign);
        if (real) {
            s->real[i] = (double)v; // no more than 32 bits come here: exact
        } else {
            s->integer[i] = v;
        }
    }
}

static void take_doubles(const crd_dcp_slot* s, const uint8_t* p)
{
    if (LITTLE_ENDIAN_HOST && s->count > 1) {
        memcpy(s->real, p, (size_t)s->count * 8);
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        s->real[i] = load_double(p + (size_t)i * 8);
    }
}

static void take_text(const crd_dcp_slot* s, const uint8_t* p)
{
    *s->byte_count = (uint32_t)crdi_load_le(p, 4);
    if (*s->byte_count) { memcpy(s->bytes, p + 4, *s->byte_count); }
}

static void take_slot(const crd_dcp_slot* s, uint8_t type, const uint8_t* p)
{
    switch ((crd_dcp_data_type)type) {
    case CRD_DCP_FLOAT64:
        take_doubles(s, p);
        break;
    case CRD_DCP_FLOAT32:
        for (uint32_t i = 0; i < s->count; i++) {
            s->real[i] = load_float(p + (size_t)i * 4);
        }
        break;
    case CRD_DCP_UINT8:
        take_integers(s, p, 1, false);
        break;
    case CRD_DCP_UINT16:
        take_integers(s, p, 2, false);
        break;
    case CRD_DCP_UINT32:
        take_integers(s, p, 4, false);
        break;
    case CRD_DCP_INT8:
        take_integers(s, p, 1, true);
        break;
    case CRD_DCP_INT16:
        take_integers(s, p, 2, true);
        break;
    case CRD_DCP_INT32:
        take_integers(s, p, 4, true);
        break;
    case CRD_DCP_UINT64:
    case CRD_DCP_INT64:
        take_integers(s, p, 8, false);
        break;
    default:
        take_text(s, p);
        break;
    }
}

crd_dcp_error crdi_dcp_take(const crd_dcp_slot* slots, const uint8_t* types, int count,
                            const uint8_t* payload, size_t length)
{
    const crd_dcp_error fault = look_through(slots, types, count, payload, length);
    if (fault != CRD_DCP_NONE) { return fault; }
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const size_t begin = at;
        skip(slots[i].count, types[i], payload, length, &at);
        if (at > begin) { take_slot(&slots[i], types[i], payload + begin); }
    }
    return CRD_DCP_NONE;
}

void crdi_dcp_load_number(uint8_t type, const uint8_t* bytes, double* real, int64_t* integer)
{
    const crd_dcp_slot slot = {.type = type, .count = 1, .real = real, .integer = integer};
    (void)crdi_dcp_take(&slot, &type, 1, bytes, width(type));
}

// ---- slots -------------------------------------------------------------------------------------

double crdi_dcp_slot_number(const crd_dcp_slot* s, uint32_t i)
{
    return crdi_dcp_is_real(s->type)   ? s->real[i]
           : s->type == CRD_DCP_UINT64 ? (double)(uint64_t)s->integer[i]
                                       : (double)s->integer[i];
}

void crdi_dcp_range(int data_type, double* least, double* most)
{
    static const double ranges[][2] = {
        [CRD_DCP_UINT8] = {0, UINT8_MAX},
        [CRD_DCP_UINT16] = {0, UINT16_MAX},
        [CRD_DCP_UINT32] = {0, UINT32_MAX},
        [CRD_DCP_UINT64] = {0, 0x1p64},
        [CRD_DCP_INT8] = {INT8_MIN, INT8_MAX},
        [CRD_DCP_INT16] = {INT16_MIN, INT16_MAX},
        [CRD_DCP_INT32] = {INT32_MIN, INT32_MAX},
        [CRD_DCP_INT64] = {-0x1p63, 0x1p63},
        [CRD_DCP_FLOAT32] = {-(double)FLT_MAX, FLT_MAX},
        [CRD_DCP_FLOAT64] = {-DBL_MAX, DBL_MAX},
    };
    *least = ranges[data_type][0];
    *most = ranges[data_type][1];
}

// The nearest integer that the type has; NaN becomes 0.
static int64_t integer_of(double x, uint8_t type)
{
    double least, most;
    crdi_dcp_range(type, &least, &most);
    if (isnan(x)) { return 0; }
    x = round(x);
    if (x <= least) { return type == CRD_DCP_INT64 ? INT64_MIN : (int64_t)least; }
    if (type == CRD_DCP_UINT64) { return (int64_t)(x >= most ? UINT64_MAX : (uint64_t)x); }
    if (x >= most) { return type == CRD_DCP_INT64 ? INT64_MAX : (int64_t)most; }
    return (int64_t)x;
}

static bool integer_fits(int64_t x, uint8_t from, uint8_t to)
{
    return from == to || converts(from, to) || (x >= 0 && x <= 127);
}

static void copy_numbers(const crd_dcp_slot* to, const crd_dcp_slot* from, uint32_t count)
{
    const bool real = crdi_dcp_is_real(to->type), from_real = crdi_dcp_is_real(from->type);
    for (uint32_t i = 0; i < count; i++) {
        if (real) {
            to->real[i] = crdi_dcp_slot_number(from, i);
        } else if (!from_real && integer_fits(from->integer[i], from->type, to->type)) {
            to->integer[i] = from->integer[i];
        } else {
            to->integer[i] = integer_of(crdi_dcp_slot_number(from, i), to->type);
        }
    }
}

void crdi_dcp_slot_copy(const crd_dcp_slot* to, const crd_dcp_slot* from)
{
    const uint32_t count = to->count < from->count ? to->count : from->count;
    if (crdi_dcp_is_bytes(to->type)) {
        *to->byte_count = *from->byte_count < to->max_size ? *from->byte_count : to->max_size;
        if (*to->byte_count) { memcpy(to->bytes, from->bytes, *to->byte_count); }
    } else if (to->type != from->type) {
        copy_numbers(to, from, count);
    } else if (crdi_dcp_is_real(to->type)) {
        memcpy(to->real, from->real, count * sizeof *to->real);
    } else {
        memcpy(to->integer, from->integer, count * sizeof *to->integer);
    }
}

crd_type crdi_dcp_type(int data_type)
{
    static const uint8_t types[CRD_DCP_DATA_TYPE_COUNT] = {
        [CRD_DCP_UINT8] = CRD_UINT8,     [CRD_DCP_UINT16] = CRD_UINT16,
        [CRD_DCP_UINT32] = CRD_UINT32,   [CRD_DCP_UINT64] = CRD_UINT64,
        [CRD_DCP_INT8] = CRD_INT8,       [CRD_DCP_INT16] = CRD_INT16,
        [CRD_DCP_INT32] = CRD_INT32,     [CRD_DCP_INT64] = CRD_INT64,
        [CRD_DCP_FLOAT32] = CRD_FLOAT32, [CRD_DCP_FLOAT64] = CRD_FLOAT64,
        [CRD_DCP_STRING] = CRD_STRING,   [CRD_DCP_BINARY] = CRD_BINARY,
    };
    return (crd_type)types[data_type];
}

// ---- join --------------------------------------------------------------------------------------

static bool follows(const crd_dcp_slot* a, const crd_dcp_slot* b)
{
    if (a->type != b->type || crdi_dcp_is_bytes(a->type) || b->count > UINT32_MAX - a->count) {
        return false;
    }
    return crdi_dcp_is_real(a->type) ? a->real + a->count == b->real
                                     : a->integer + a->count == b->integer;
}

int crdi_dcp_join(crd_dcp_slot* slots, uint8_t* types, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept > 0 && follows(&slots[kept - 1], &slots[i]) &&
            (!types || types[kept - 1] == types[i])) {
            slots[kept - 1].count += slots[i].count;
            continue;
        }
        slots[kept] = slots[i];
        if (types) { types[kept] = types[i]; }
        kept++;
    }
    return kept;
}
