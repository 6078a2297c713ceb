// Records into columns of doubles and texts. A block of records is taken in tiles that stay in the
// first cache while all channels pick their bytes out of them.
#include "results/mdf_read.h"
#include "results/table.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK_BYTES = 256 << 10, // records of a block
    MOST_ROWS = 65536,
    TILE_BYTES = 16 << 10,
    MOST_CELLS = 32 << 20, // bytes of a block's columns, unless a single row has more
    MOST_ROW = 256 << 20,  // bytes of the columns for a single row
};

typedef struct channel channel;
typedef void decoder(const channel* c, const uint8_t* at, size_t stride, int64_t n, double* out);

struct channel {
    const crdi_mdf_channel* place;
    decoder* decode;
    double* values;     // (most_rows)
    const char** texts; // (most_rows), NULL for numbers
    char* room;         // of texts in the records, width bytes each
    size_t width;
    char* heap;     // of texts outside of the records, each with a final zero
    uint8_t* index; // the outside data; where a text begins, its place in the heap
    size_t heap_length, index_length;
};

typedef struct mdf_cursor {
    crd_cursor base;
    const crdi_mdf_group* group;
    crdi_mdf_stream stream;
    crd_arena arena;
    channel time;
    channel* channels;
    int count;
    const double** values;
    const char* const** texts;
    int64_t row, rows, most_rows; // next, all, of a block
    int64_t tile_rows;
    double last; // time of the row before
} mdf_cursor;

// ---- numbers -----------------------------------------------------------------------------------

// Types in whole bytes, little endian, are copied as they lie there.
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are copied as they lie in the file, which is little endian"
#endif

#define DECODER(name, type)                                                                        \
    static void name(const channel* c, const uint8_t* at, size_t stride, int64_t n, double* out)   \
    {                                                                                              \
        at += c->place->byte;                                                                      \
        for (int64_t i = 0; i < n; i++, at += stride) {                                            \
            type x;                                                                                \
            memcpy(&x, at, sizeof x);                                                              \
            out[i] = (double)x;                                                                    \
        }                                                                                          \
    }
DECODER(decode_f64, double)
DECODER(decode_f32, float)
DECODER(decode_u8, uint8_t)
DECODER(decode_i8, int8_t)
DECODER(decode_u16, uint16_t)
DECODER(decode_i16, int16_t)
DECODER(decode_u32, uint32_t)
DECODER(decode_i32, int32_t)
DECODER(decode_u64, uint64_t)
DECODER(decode_i64, int64_t)

static bool is_big_endian(uint8_t data_type)
{
    return data_type == CRDI_MDF_UINT_BE || data_type == CRDI_MDF_INT_BE ||
           data_type == CRDI_MDF_REAL_BE;
}

// The bits of a value, wherever they lie: `bits` of them, `shift` above the lowest.
static uint64_t take_bits(const crdi_mdf_channel* c, const uint8_t* at)
{
    const unsigned bytes = (c->shift + c->bits + 7U) / 8; // 1 to 9
    const bool big = is_big_endian(c->data_type);
    uint64_t low = 0, ninth = 0;
    for (unsigned i = 0; i < bytes; i++) { // from the lowest byte
        const uint64_t byte = at[big ? bytes - 1 - i : i];
        if (i < 8) {
            low |= byte << (8 * i);
        } else {
            ninth = byte;
        }
    }
    uint64_t x = low >> c->shift;
    if (bytes > 8) { x |= ninth << (64 - c->shift); }
    return c->bits < 64 ? x & (((uint64_t)1 << c->bits) - 1) : x;
}

static double half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

static void decode_any(const channel* ch, const uint8_t* at, size_t stride, int64_t n, double* out)
{
    const crdi_mdf_channel* c = ch->place;
    const bool is_signed = c->data_type == CRDI_MDF_INT_LE || c->data_type == CRDI_MDF_INT_BE;
    at += c->byte;
    for (int64_t i = 0; i < n; i++, at += stride) {
        const uint64_t x = take_bits(c, at);
        if (c->data_type == CRDI_MDF_REAL_LE || c->data_type == CRDI_MDF_REAL_BE) {
            union {
                uint32_t bits;
                float value;
            } small = {.bits = (uint32_t)x};
            union {
                uint64_t bits;
                double value;
            } large = {.bits = x};
            out[i] = c->bits == 64   ? large.value
                     : c->bits == 32 ? (double)small.value
                                     : half((uint16_t)x);
        } else if (is_signed) {
            const uint64_t sign = (uint64_t)1 << (c->bits - 1);
            out[i] = (double)(int64_t)((x ^ sign) - sign);
        } else {
            out[i] = (double)x;
        }
    }
}

static decoder* decoder_of(const crdi_mdf_channel* c)
{
    static decoder* const integers[2][4] = {{decode_u8, decode_u16, decode_u32, decode_u64},
                                            {decode_i8, decode_i16, decode_i32, decode_i64}};
    const int size = c->bits == 8 ? 0 : c->bits == 16 ? 1 : c->bits == 32 ? 2 : 3;
    if (c->shift || (c->bits != 8 && c->bits != 16 && c->bits != 32 && c->bits != 64)) {
        return decode_any;
    }
    switch (c->data_type) {
    case CRDI_MDF_UINT_LE:
        return integers[0][size];
    case CRDI_MDF_INT_LE:
        return integers[1][size];
    case CRDI_MDF_REAL_LE:
        return c->bits == 64 ? decode_f64 : c->bits == 32 ? decode_f32 : decode_any;
    default:
        return decode_any;
    }
}

static void mdf_read_cursor_convert(const crdi_mdf_conversion* c, double* x, int64_t n)
{
    const double* p = c->p;
    if (c->kind == CRDI_MDF_BY_LINE) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] * p[1] + p[0];
        }
    } else if (c->kind == CRDI_MDF_BY_QUOTIENT) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = (p[0] * x[i] * x[i] + p[1] * x[i] + p[2]) /
                   (p[3] * x[i] * x[i] + p[4] * x[i] + p[5]);
        }
    }
}

// ---- texts -------------------------------------------------------------------------------------

// A character as UTF-8; returns the end.
static char* put_utf8(char* to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

// Bytes that copy_text may write for a text of so many bytes.
static size_t text_room(size_t length)
{
    return 2 * length + 1;
}

// Up to a zero or `length` bytes, as UTF-8 with a final zero. Returns the place behind it.
static char* mdf_read_cursor_copy_text(uint8_t data_type, const uint8_t* at, size_t length,
                                       char* to)
{
    if (data_type == CRDI_MDF_UTF8) {
        const size_t n = strnlen((const char*)at, length);
        memcpy(to, at, n);
        to += n;
    } else if (data_type == CRDI_MDF_LATIN1) {
        for (size_t i = 0; i < length && at[i]; i++) {
            to = put_utf8(to, at[i]);
        }
    } else {
        const int low = data_type == CRDI_MDF_UTF16_BE, high = !low;
        for (size_t i = 0; i + 1 < length; i += 2) {
            uint32_t c = at[i + (size_t)low] | (uint32_t)at[i + (size_t)high] << 8;
            if (c == 0) { break; }
            if (c >= 0xD800 && c < 0xDC00 && i + 3 < length) {
                const uint32_t next = at[i + 2 + (size_t)low] | (uint32_t)at[i + 2 + (size_t)high]
                                                                    << 8;
                if (next >= 0xDC00 && next < 0xE000) {
                    c = 0x10000 + ((c - 0xD800) << 10) + (next - 0xDC00);
                    i += 2;
                }
            }
            to = put_utf8(to, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
        }
    }
    *to = 0;
    return to + 1;
}

static void decode_texts(const channel* c, const uint8_t* at, size_t stride, int64_t first,
                         int64_t n)
{
    at += c->place->byte;
    for (int64_t i = first; i < first + n; i++, at += stride) {
        const char* text = "";
        if (c->place->vlsd) {
            const uint64_t offset = crdi_mdf_u64(at);
            if (c->index_length >= 4 && offset <= c->index_length - 4) {
                const uint32_t place = crdi_mdf_u32(c->index + offset);
                if (place < c->heap_length) { text = c->heap + place; }
            }
        } else {
            char* to = c->room + (size_t)i * c->width;
            mdf_read_cursor_copy_text(c->place->data_type, at, c->place->bits / 8, to);
            text = to;
        }
        c->texts[i] = text;
        c->values[i] = crdi_text_value(text, strlen(text));
    }
}

// SD: u32 length and bytes, one after the other. Texts go to the heap, and their places there over
// the lengths: whatever offset a record has, it cannot leave the heap.
static crd_status load_texts(mdf_cursor* c, channel* ch)
{
    crd_status st = CRD_OK;
    const crdi_mdf_recording* r = (const crdi_mdf_recording*)c->base.recording;
    const crdi_mdf_data* d = &ch->place->texts;
    crdi_mdf_stream s = {0};
    const size_t size = (size_t)d->size;
    ch->index = crdi_arena_new(&c->arena, size + 1, 1);
    ch->heap = crdi_arena_new(&c->arena, text_room(size), 1); // a length has room for the zero
    if (!ch->index || !ch->heap) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_mdf_stream_open(&s, &r->file, d, 0));
    while (ch->index_length < size) {
        CRD_TRY(crdi_mdf_stream_more(&s));
        const size_t n = (size_t)(s.end - s.begin);
        memcpy(ch->index + ch->index_length, s.begin, n);
        ch->index_length += n;
        s.begin = s.end;
    }
    char* to = ch->heap;
    for (size_t at = 0; size - at >= 4;) {
        const uint32_t length = crdi_mdf_u32(ch->index + at);
        if (length > size - at - 4) { break; } // the file was cut here
        const uint32_t place = (uint32_t)(to - ch->heap);
        to = mdf_read_cursor_copy_text(ch->place->data_type, ch->index + at + 4, length, to);
        for (int i = 0; i < 4; i++) {
            ch->index[at + (size_t)i] = (uint8_t)(place >> (8 * i));
        }
        at += 4 + (size_t)length;
    }
    ch->heap_length = (size_t)(to - ch->heap);
fail:
    crdi_mdf_stream_close(&s);
    return st;
}

// ---- cursor ------------------------------------------------------------------------------------

static void decode_tile(const mdf_cursor* c, const channel* ch, const uint8_t* records,
                        int64_t first, int64_t n)
{
    const crdi_mdf_channel* place = ch->place;
    const size_t stride = c->group->record;
    double* out = ch->values + first;
    if (ch->texts) {
        decode_texts(ch, records, stride, first, n);
    } else if (place->by_index) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (double)(c->row + first + i);
        }
    } else {
        ch->decode(ch, records, stride, n, out);
    }
    if (!ch->texts) { mdf_read_cursor_convert(place->conversion, out, n); }
    if (!place->all_invalid && !place->can_be_invalid) { return; }
    const uint8_t* bits = records + c->group->data_bytes + place->invalid_bit / 8;
    for (int64_t i = 0; i < n; i++) {
        const bool invalid =
            place->all_invalid || (bits[(size_t)i * stride] >> (place->invalid_bit % 8) & 1);
        if (!invalid) { continue; }
        out[i] = (double)NAN;
        if (ch->texts) { ch->texts[first + i] = ""; }
    }
}

// How many of the n rows have times that go on from those before; CRD_E_FORMAT for the next one.
// The end of an unfinished file may never have been written: there it is the end of the rows.
static crd_status mdf_read_cursor_check_times(mdf_cursor* c, int64_t* n)
{
    const crdi_mdf_recording* r = (const crdi_mdf_recording*)c->base.recording;
    const double* t = c->time.values;
    for (int64_t i = 0; i < *n; i++) {
        if (t[i] >= c->last && t[i] <= 1.7976931348623157e308) {
            c->last = t[i];
            continue;
        }
        if (r->file.unfinished) {
            crdi_log(r->base.ctx, CRD_LOG_WARNING,
                     "%s: record %lld: its time %g cannot be; the file is unfinished, and the rest "
                     "is left out",
                     r->file.path, (long long)c->row + i, t[i]);
            c->rows = c->row + i;
            *n = i;
            return CRD_OK;
        }
        return crdi_mdf_fail(&r->file, c->group->data_block,
                             isfinite(t[i]) ? "record %lld of the group: time goes back to %.17g, "
                                              "expected ascending times"
                                            : "record %lld of the group: time %g is not finite",
                             (long long)c->row + i, t[i]);
    }
    return CRD_OK;
}

crd_status crdi_mdf_cursor_next(crd_cursor* cursor, crd_block* out)
{
    mdf_cursor* c = (mdf_cursor*)cursor;
    crd_status st = CRD_OK;
    const size_t stride = c->group->record;
    crdi_mdf_stream* s = &c->stream;
    int64_t n = c->rows - c->row;
    if (n > c->most_rows) { n = c->most_rows; }
    size_t at_hand = (size_t)(s->end - s->begin);
    while (n > 0 && at_hand < stride) {
        CRD_TRY(crdi_mdf_stream_more(s));
        const size_t now = (size_t)(s->end - s->begin);
        if (now == at_hand) { // cannot be: the rows were counted
            return crdi_mdf_fail(s->file, c->group->data_block, "the data ends at record %lld",
                                 (long long)c->row);
        }
        at_hand = now;
    }
    if ((int64_t)(at_hand / stride) < n) { n = (int64_t)(at_hand / stride); }
    for (int64_t i = 0; i < n; i += c->tile_rows) {
        const int64_t rows = n - i < c->tile_rows ? n - i : c->tile_rows;
        const uint8_t* records = s->begin + (size_t)i * stride;
        decode_tile(c, &c->time, records, i, rows);
        for (int k = 0; k < c->count; k++) {
            decode_tile(c, &c->channels[k], records, i, rows);
        }
    }
    CRD_TRY(mdf_read_cursor_check_times(c, &n));
    *out = (crd_block){
        .first = c->row, .rows = n, .time = c->time.values, .values = c->values, .texts = c->texts};
    s->begin += (size_t)n * stride;
    c->row += n;
fail:
    return st;
}

crd_status crdi_mdf_cursor_seek(crd_cursor* cursor, int64_t row)
{
    mdf_cursor* c = (mdf_cursor*)cursor;
    c->row = row;
    c->last = -1.7976931348623157e308;
    return crdi_mdf_stream_seek(&c->stream, (uint64_t)row * c->group->record);
}

void crdi_mdf_cursor_close(crd_cursor* cursor)
{
    mdf_cursor* c = (mdf_cursor*)cursor;
    crdi_mdf_stream_close(&c->stream);
    crd_arena_clear(&c->arena);
    crd_free(cursor->recording->ctx, c);
}

static bool has_text(const crdi_mdf_channel* place)
{
    return place->data_type >= CRDI_MDF_LATIN1 && !place->by_index;
}

// Rows of a block and of a tile. Channels may share their bytes, so that a block's columns may be
// much larger than its records.
static crd_status choose_rows(mdf_cursor* c, const int* signals, int count)
{
    const crdi_mdf_recording* r = (const crdi_mdf_recording*)c->base.recording;
    const int64_t record = (int64_t)c->group->record;
    double row = sizeof(double);
    for (int i = 0; i < count; i++) {
        const crdi_mdf_channel* place = &r->channels[signals[i]];
        row += sizeof(double);
        if (has_text(place)) { row += sizeof(char*); }
        if (has_text(place) && !place->vlsd) { row += (double)text_room(place->bits / 8); }
    }
    if (row > MOST_ROW && c->rows > 0) {
        return crdi_fail(r->base.ctx, CRD_E_UNSUPPORTED,
                         "%s: offset %llu: these signals of the group have %.4g bytes in one row",
                         r->file.path, (unsigned long long)c->group->data_block, row);
    }
    c->most_rows = BLOCK_BYTES / record;
    if (row * (double)c->most_rows > MOST_CELLS) { c->most_rows = (int64_t)(MOST_CELLS / row); }
    if (c->most_rows > MOST_ROWS) { c->most_rows = MOST_ROWS; }
    if (c->most_rows < 1) { c->most_rows = 1; }
    if (c->most_rows > c->rows) { c->most_rows = c->rows; }
    c->tile_rows = TILE_BYTES / record;
    if (c->tile_rows < 16) { c->tile_rows = 16; }
    return CRD_OK;
}

static crd_status open_channel(mdf_cursor* c, const crdi_mdf_channel* place, channel* ch)
{
    const size_t rows = (size_t)c->most_rows;
    *ch = (channel){.place = place, .decode = decoder_of(place)};
    ch->values = crdi_arena_new(&c->arena, rows, sizeof *ch->values);
    if (!ch->values) { return CRD_E_MEMORY; }
    if (!has_text(place)) { return CRD_OK; }
    ch->texts = crdi_arena_new(&c->arena, rows, sizeof *ch->texts);
    if (!ch->texts) { return CRD_E_MEMORY; }
    if (place->vlsd) { return load_texts(c, ch); }
    ch->width = text_room(place->bits / 8);
    ch->room = crdi_arena_new(&c->arena, rows, ch->width);
    return ch->room ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_mdf_cursor_open(crd_recording* base, int group, const int* signals, int count,
                                crd_cursor** out)
{
    crd_status st = CRD_OK;
    crdi_mdf_recording* r = (crdi_mdf_recording*)base;
    const crdi_mdf_group* g = &r->groups[group];
    mdf_cursor* c = crdi_new(base->ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->base.recording = base;
    c->group = g;
    c->rows = base->info.groups[group].rows;
    c->last = -1.7976931348623157e308;
    crd_arena_init(&c->arena, base->ctx);
    CRD_TRY(choose_rows(c, signals, count));
    c->channels = crdi_arena_new(&c->arena, (size_t)count, sizeof *c->channels);
    c->values = crdi_arena_new(&c->arena, (size_t)count, sizeof *c->values);
    c->texts = crdi_arena_new(&c->arena, (size_t)count, sizeof *c->texts);
    if (!c->channels || !c->values || !c->texts) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    CRD_TRY(crdi_mdf_stream_open(&c->stream, &r->file, &g->data, g->record));
    CRD_TRY(open_channel(c, &g->time, &c->time));
    for (int i = 0; i < count; i++) {
        CRD_TRY(open_channel(c, &r->channels[signals[i]], &c->channels[i]));
        c->values[i] = c->channels[i].values;
        c->texts[i] = c->channels[i].texts;
        c->count++;
    }
    *out = &c->base;
    return CRD_OK;
fail:
    crdi_mdf_cursor_close(&c->base);
    return st;
}
