// The data of a group: its pieces, wherever lists hide them, and the bytes in them one after the
// other.
#include "results/mdf_read.h"

#include <libdeflate.h>
#include <string.h>

enum { CHUNK = 1 << 20, FIRST_CHUNK = 32 << 10 }; // of what is not compressed; behind a seek

// ---- pieces ------------------------------------------------------------------------------------

static crd_status add_piece(crdi_mdf_file* f, crdi_mdf_data* d, const crdi_mdf_piece* p)
{
    if (p->size > UINT64_MAX / 2 - d->size) {
        return crdi_mdf_fail(f, p->block, "the data is too long");
    }
    crdi_mdf_piece* pieces =
        crdi_grow(f->ctx, d->pieces, &d->capacity, d->count + 1, sizeof *pieces);
    if (!pieces) { return CRD_E_MEMORY; }
    d->pieces = pieces;
    pieces[d->count++] = *p;
    d->size += p->size;
    return CRD_OK;
}

crd_status crdi_mdf_check_inflated(const crdi_mdf_file* f, uint64_t block, uint64_t stored,
                                   uint64_t size)
{
    if (size / 1032 > stored) { // deflate cannot do better
        return crdi_mdf_fail(f, block, "%llu bytes are said to inflate to %llu, which cannot be",
                             (unsigned long long)stored, (unsigned long long)size);
    }
    if (size > CRDI_MDF_MOST_INFLATED) {
        return crdi_mdf_fail(f, block, "a compressed block of %llu bytes, expected at most %d",
                             (unsigned long long)size, CRDI_MDF_MOST_INFLATED);
    }
    return CRD_OK;
}

// DZ:  0  char[2]  type of the block before     4  u32  columns if transposed
//      2  u8       method                       8  u64  size before
//      3  u8       0                           16  u64  size of the zlib stream behind this
static crd_status add_compressed(crdi_mdf_file* f, const crdi_mdf_block* b, crdi_mdf_data* d)
{
    const uint64_t room = b->offset + b->length - b->data_at;
    if (room < CRDI_MDF_DZ_SIZE - CRDI_MDF_HEAD) {
        return crdi_mdf_fail(f, b->offset, "a block '##DZ' of %llu bytes, expected at least %d",
                             (unsigned long long)b->length, CRDI_MDF_DZ_SIZE);
    }
    const uint8_t method = b->data[2];
    crdi_mdf_piece p = {.block = b->offset,
                        .at = b->data_at + CRDI_MDF_DZ_SIZE - CRDI_MDF_HEAD,
                        .stored = crdi_mdf_u64(b->data + 16),
                        .size = crdi_mdf_u64(b->data + 8),
                        .deflated = true};
    if (method > CRDI_MDF_TRANSPOSED) {
        return crdi_fail(f->ctx, CRD_E_UNSUPPORTED,
                         "%s: offset %llu: compressed with method %d, expected deflate (0, 1); "
                         "save it with deflate, as asammdf does",
                         f->path, (unsigned long long)b->offset, method);
    }
    if (method == CRDI_MDF_TRANSPOSED) { p.columns = crdi_mdf_u32(b->data + 4); }
    if (p.stored > room - (CRDI_MDF_DZ_SIZE - CRDI_MDF_HEAD)) {
        return crdi_mdf_fail(f, b->offset, "%llu compressed bytes in a block of %llu",
                             (unsigned long long)p.stored, (unsigned long long)b->length);
    }
    if (method == CRDI_MDF_TRANSPOSED && p.columns == 0) {
        return crdi_mdf_fail(f, b->offset, "transposed with records of 0 bytes");
    }
    const crd_status st = crdi_mdf_check_inflated(f, b->offset, p.stored, p.size);
    return st < 0 ? st : add_piece(f, d, &p);
}

// A block with data in it, or CRD_E_FORMAT.
static crd_status add_block(crdi_mdf_file* f, const crdi_mdf_block* b, crdi_mdf_data* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_mdf_remember(f, b->offset, f));
    CRD_TRY(crdi_mdf_spend(f, b->offset, b->length));
    if (crdi_mdf_is(b, 'D', 'Z')) { return add_compressed(f, b, d); }
    if (!crdi_mdf_is(b, 'D', 'T') && !crdi_mdf_is(b, 'S', 'D') && !crdi_mdf_is(b, 'D', 'V')) {
        return crdi_mdf_fail(f, b->offset, "expected a block of data (DT, SD, DV, DZ, DL, HL)");
    }
    const uint64_t length = b->offset + b->length - b->data_at;
    const crdi_mdf_piece p = {
        .block = b->offset, .at = b->data_at, .stored = length, .size = length};
    st = add_piece(f, d, &p);
fail:
    return st;
}

// DL:  0  u8  flags     4  u32  number of blocks; behind them lengths, which the blocks say, too
// LD:  0  u32  flags    4  u32  number; links of the invalidation blocks follow those of the data
static crd_status add_list(crdi_mdf_file* f, const crdi_mdf_block* list, crdi_mdf_data* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_mdf_remember(f, list->offset, f));
    CRD_TRY(crdi_mdf_spend(f, list->offset, list->length));
    const uint64_t links = list->link_count ? list->link_count - 1 : 0;
    uint64_t count = crdi_mdf_u32(list->data + 4);
    if (crdi_mdf_is(list, 'L', 'D') && (crdi_mdf_u32(list->data) & 0x80000000U)) {
        return crdi_fail(f->ctx, CRD_E_UNSUPPORTED,
                         "%s: offset %llu: invalidation bits in a list of their own; save the file "
                         "as MDF 4.11",
                         f->path, (unsigned long long)list->offset);
    }
    if (f->unfinished) { count = links; } // the number may be old; links without a block are 0
    if (count > links) {
        return crdi_mdf_fail(f, list->offset, "a list of %llu blocks with %llu links",
                             (unsigned long long)count, (unsigned long long)links);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint8_t link[8];
        CRD_TRY(crdi_mdf_read(f, list->offset + CRDI_MDF_HEAD + 8 * (1 + i), link, sizeof link));
        const uint64_t offset = crdi_mdf_u64(link);
        if (offset == 0) { continue; }
        crdi_mdf_block b;
        CRD_TRY(crdi_mdf_read_block(f, offset, f->unfinished, &b));
        CRD_TRY(add_block(f, &b, d));
    }
fail:
    return st;
}

static crd_status find_pieces(crdi_mdf_file* f, uint64_t offset, crdi_mdf_data* d)
{
    crd_status st = CRD_OK;
    crdi_mdf_block b;
    CRD_TRY(crdi_mdf_read_block(f, offset, f->unfinished, &b));
    if (crdi_mdf_is(&b, 'H', 'L')) {
        CRD_TRY(crdi_mdf_remember(f, offset, f));
        offset = b.links[0];
        if (offset == 0) { return CRD_OK; }
        CRD_TRY(crdi_mdf_read_block(f, offset, false, &b));
        if (!crdi_mdf_is(&b, 'D', 'L')) {
            return crdi_mdf_fail(f, offset, "expected a list (DL) behind HL");
        }
    }
    if (!crdi_mdf_is(&b, 'D', 'L') && !crdi_mdf_is(&b, 'L', 'D')) { return add_block(f, &b, d); }
    const uint32_t tag = b.tag;
    for (;;) {
        CRD_TRY(add_list(f, &b, d));
        if (b.links[0] == 0) { return CRD_OK; }
        offset = b.links[0];
        CRD_TRY(crdi_mdf_read_block(f, offset, false, &b));
        if (b.tag != tag) { return crdi_mdf_fail(f, offset, "expected the next list of blocks"); }
    }
fail:
    return st;
}

crd_status crdi_mdf_data_find(crdi_mdf_file* f, uint64_t offset, crdi_mdf_data* d)
{
    if (offset == 0) { return CRD_OK; }
    const crd_status st = find_pieces(f, offset, d);
    if (st == CRD_E_FORMAT && f->unfinished) {
        d->cut = true;
        return CRD_OK;
    }
    return st;
}

void crdi_mdf_data_clear(crdi_mdf_file* f, crdi_mdf_data* d)
{
    crd_free(f->ctx, d->pieces);
    *d = (crdi_mdf_data){0};
}

// ---- inflating and transposing -----------------------------------------------------------------

crd_status crdi_mdf_inflate(const crdi_mdf_file* f, uint64_t block,
                            struct libdeflate_decompressor* inflater, const void* stored,
                            size_t stored_length, void* out, size_t length)
{
    // Without a place for the number of bytes, fewer than `length` are an error as well.
    const enum libdeflate_result result =
        libdeflate_zlib_decompress(inflater, stored, stored_length, out, length, NULL);
    if (result == LIBDEFLATE_SUCCESS) { return CRD_OK; }
    return crdi_mdf_fail(f, block, "%s",
                         result == LIBDEFLATE_SHORT_OUTPUT         ? "inflates to less than it says"
                         : result == LIBDEFLATE_INSUFFICIENT_SPACE ? "inflates to more than it says"
                                                                   : "the compressed bytes are "
                                                                     "damaged");
}

// Eight words of eight bytes, byte j of word i <-> byte i of word j: swap blocks of 4, 2, 1.
static inline void turn(uint64_t w[8])
{
    for (int i = 0; i < 4; i++) {
        const uint64_t t = (w[i] >> 32 ^ w[i + 4]) & 0x00000000ffffffffU;
        w[i + 4] ^= t;
        w[i] ^= t << 32;
    }
    for (int i = 0; i < 8; i += i % 2 ? 3 : 1) {
        const uint64_t t = (w[i] >> 16 ^ w[i + 2]) & 0x0000ffff0000ffffU;
        w[i + 2] ^= t;
        w[i] ^= t << 16;
    }
    for (int i = 0; i < 8; i += 2) {
        const uint64_t t = (w[i] >> 8 ^ w[i + 1]) & 0x00ff00ff00ff00ffU;
        w[i + 1] ^= t;
        w[i] ^= t << 8;
    }
}

void crdi_mdf_transpose(const uint8_t* in, uint8_t* out, size_t length, size_t columns)
{
    const size_t rows = length / columns, whole = rows * columns;
    const size_t wide = columns & ~(size_t)7, tall = rows & ~(size_t)7;
    for (size_t r = 0; r < tall; r += 8) {
        for (size_t c = 0; c < wide; c += 8) {
            uint64_t w[8];
            for (size_t i = 0; i < 8; i++) {
                memcpy(&w[i], in + (c + i) * rows + r, 8);
            }
            turn(w);
            for (size_t i = 0; i < 8; i++) {
                memcpy(out + (r + i) * columns + c, &w[i], 8);
            }
        }
    }
    for (size_t c = 0; rows && c < columns; c++) { // columns may be any number
        for (size_t r = c < wide ? tall : 0; r < rows; r++) {
            out[r * columns + c] = in[c * rows + r];
        }
    }
    memcpy(out + whole, in + whole, length - whole);
}

// ---- stream ------------------------------------------------------------------------------------

crd_status crdi_mdf_stream_open(crdi_mdf_stream* s, const crdi_mdf_file* f, const crdi_mdf_data* d,
                                size_t keep)
{
    *s = (crdi_mdf_stream){.file = f, .data = d, .chunk = CHUNK};
    uint64_t plain = 0, size = 0, stored = 0, turned = 0;
    for (size_t i = 0; i < d->count; i++) {
        const crdi_mdf_piece* p = &d->pieces[i];
        if (!p->deflated) {
            plain = p->size > plain ? p->size : plain;
            continue;
        }
        size = p->size > size ? p->size : size;
        stored = p->stored > stored ? p->stored : stored;
        if (p->columns && p->size > turned) { turned = p->size; }
    }
    plain = plain < CHUNK ? plain : CHUNK;
    s->capacity = keep + (size_t)(size > plain ? size : plain);
    s->buffer = crdi_new(f->ctx, s->capacity + 8);
    s->stored = stored ? crdi_new(f->ctx, (size_t)stored) : NULL;
    s->turned = turned ? crdi_new(f->ctx, (size_t)turned) : NULL;
    if (!s->buffer || (stored && !s->stored) || (turned && !s->turned)) { return CRD_E_MEMORY; }
    if (size) {
        s->inflater = libdeflate_alloc_decompressor();
        if (!s->inflater) { return crdi_fail(f->ctx, CRD_E_MEMORY, "out of memory"); }
    }
    s->begin = s->end = s->buffer;
    return CRD_OK;
}

void crdi_mdf_stream_close(crdi_mdf_stream* s)
{
    if (!s->file) { return; }
    crd_free(s->file->ctx, s->buffer);
    crd_free(s->file->ctx, s->stored);
    crd_free(s->file->ctx, s->turned);
    libdeflate_free_decompressor(s->inflater);
    *s = (crdi_mdf_stream){0};
}

crd_status crdi_mdf_stream_more(crdi_mdf_stream* s)
{
    crd_status st = CRD_OK;
    const size_t left = (size_t)(s->end - s->begin);
    if (left && s->begin != s->buffer) { memmove(s->buffer, s->begin, left); }
    s->begin = s->buffer;
    s->end = s->buffer + left;
    s->inflated = 0;
    while (s->piece < s->data->count && s->used == s->data->pieces[s->piece].size) {
        s->piece++;
        s->used = 0;
    }
    if (s->piece == s->data->count) { return CRD_OK; }
    const crdi_mdf_piece* p = &s->data->pieces[s->piece];
    const size_t room = s->capacity - left;
    const uint64_t rest = p->size - s->used;
    size_t n = rest < room ? (size_t)rest : room;
    if (!p->deflated) {
        if (n > s->chunk) { n = s->chunk; }
        s->chunk = 2 * s->chunk < CHUNK ? 2 * s->chunk : CHUNK;
        CRD_TRY(crdi_mdf_read(s->file, p->at + s->used, s->end, n));
    } else {
        CRD_TRY(crdi_mdf_read(s->file, p->at, s->stored, (size_t)p->stored));
        CRD_TRY(crdi_mdf_inflate(s->file, p->block, s->inflater, s->stored, (size_t)p->stored,
                                 p->columns ? s->turned : s->end, n));
        if (p->columns) { crdi_mdf_transpose(s->turned, s->end, n, p->columns); }
        s->inflated = s->piece + 1;
        s->inflated_at = s->end;
    }
    s->end += n;
    s->used += n;
fail:
    return st;
}

crd_status crdi_mdf_stream_seek(crdi_mdf_stream* s, uint64_t offset)
{
    size_t k = 0;
    while (k < s->data->count && offset >= s->data->pieces[k].size) {
        offset -= s->data->pieces[k++].size;
    }
    const crdi_mdf_piece* p = k < s->data->count ? &s->data->pieces[k] : NULL;
    s->chunk = FIRST_CHUNK;
    s->piece = k;
    if (p && s->inflated == k + 1) { // it is at hand: who searches comes here again and again
        s->used = p->size;
        s->begin = s->inflated_at + offset;
        s->end = s->inflated_at + p->size;
        return CRD_OK;
    }
    s->begin = s->end = s->buffer;
    s->used = p && !p->deflated ? offset : 0;
    if (!p || !p->deflated) { return CRD_OK; }
    const crd_status st = crdi_mdf_stream_more(s); // one is inflated as a whole
    if (st == CRD_OK) { s->begin += offset; }
    return st;
}
