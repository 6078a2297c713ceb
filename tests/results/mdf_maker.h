// MDF files put together block by block, right or wrong as a test wants them.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    uint8_t* bytes;
    size_t length;
} maker;

static inline void put_u16(uint8_t* at, unsigned x)
{
    at[0] = (uint8_t)x;
    at[1] = (uint8_t)(x >> 8);
}

static inline void put_u32(uint8_t* at, uint32_t x)
{
    put_u16(at, x & 0xffff);
    put_u16(at + 2, x >> 16);
}

static inline void put_u64(uint8_t* at, uint64_t x)
{
    put_u32(at, (uint32_t)x);
    put_u32(at + 4, (uint32_t)(x >> 32));
}

static inline void put_f64(uint8_t* at, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    put_u64(at, bits);
}

static inline uint64_t make_bytes(maker* m, const void* data, size_t n)
{
    const size_t at = m->length;
    m->bytes = realloc(m->bytes, at + n + 8);
    if (data) {
        memcpy(m->bytes + at, data, n);
    } else {
        memset(m->bytes + at, 0, n);
    }
    m->length = at + n;
    return at;
}

// A block at a multiple of 8; its offset.
static inline uint64_t make_block(maker* m, const char* tag, unsigned links, const void* data,
                                  size_t n)
{
    make_bytes(m, NULL, (8 - m->length % 8) % 8);
    uint8_t head[24] = {'#', '#', (uint8_t)tag[0], (uint8_t)tag[1]};
    put_u64(head + 8, 24 + 8 * (uint64_t)links + n);
    put_u64(head + 16, links);
    const uint64_t at = make_bytes(m, head, sizeof head);
    make_bytes(m, NULL, 8 * (size_t)links);
    make_bytes(m, data, n);
    return at;
}

static inline void make_link(maker* m, uint64_t block, unsigned i, uint64_t to)
{
    put_u64(m->bytes + block + 24 + 8 * i, to);
}

static inline uint8_t* data_of(maker* m, uint64_t block)
{
    return m->bytes + block + 24 + 8 * m->bytes[block + 16];
}

enum { HD = 64 };

// Identification and HD.
static inline maker make_file(const char* mark, unsigned version)
{
    maker m = {0};
    uint8_t id[64] = {0};
    char text[32];
    snprintf(text, sizeof text, "%-8s%u.%02u    maker   ", mark, version / 100, version % 100);
    memcpy(id, text, 24);
    put_u16(id + 28, version);
    if (strcmp(mark, "MDF") != 0) { put_u16(id + 60, 0x05); }
    make_bytes(&m, id, sizeof id);
    make_block(&m, "HD", 6, NULL, 32);
    return m;
}

static inline uint64_t make_text(maker* m, const char* text)
{
    return make_block(m, text[0] == '<' ? "MD" : "TX", 0, text, strlen(text) + 1);
}

typedef struct channel_spec {
    const char* name;
    unsigned type, sync, data_type, shift, byte, bits, flags, invalid_bit;
} channel_spec;

static inline uint64_t make_channel(maker* m, const channel_spec* s)
{
    uint8_t d[72] = {(uint8_t)s->type, (uint8_t)s->sync, (uint8_t)s->data_type, (uint8_t)s->shift};
    put_u32(d + 4, s->byte);
    put_u32(d + 8, s->bits);
    put_u32(d + 12, s->flags);
    put_u32(d + 16, s->invalid_bit);
    const uint64_t at = make_block(m, "CN", 8, d, sizeof d);
    make_link(m, at, 2, make_text(m, s->name));
    return at;
}

// DG with one CG and these channels; `channels` gets their offsets. The data link is 2 of DG.
static inline uint64_t make_group(maker* m, const channel_spec* specs, unsigned count,
                                  uint64_t records, unsigned data_bytes, unsigned invalid_bytes,
                                  uint64_t* channels)
{
    uint8_t cg_data[32] = {0};
    put_u64(cg_data + 8, records);
    put_u32(cg_data + 24, data_bytes);
    put_u32(cg_data + 28, invalid_bytes);
    const uint64_t dg = make_block(m, "DG", 4, NULL, 8), cg = make_block(m, "CG", 6, cg_data, 32);
    make_link(m, dg, 1, cg);
    uint64_t before = 0;
    for (unsigned i = 0; i < count; i++) {
        channels[i] = make_channel(m, &specs[i]);
        if (i == 0) {
            make_link(m, cg, 1, channels[i]);
        } else {
            make_link(m, before, 0, channels[i]);
        }
        before = channels[i];
    }
    return dg;
}

// Hang a block on the end of a chain that begins at link `i` of HD.
static inline void make_chain(maker* m, unsigned i, uint64_t block)
{
    uint8_t* at = m->bytes + HD + 24 + 8 * i;
    for (;;) {
        uint64_t next = 0;
        memcpy(&next, at, 8);
        if (next == 0) { break; }
        at = m->bytes + next + 24;
    }
    put_u64(at, block);
}

// CC: values behind its fixed part, references from link 4.
static inline uint64_t make_conversion(maker* m, unsigned type, const double* values, unsigned n,
                                       const uint64_t* texts, unsigned text_count)
{
    uint8_t d[24 + 8 * 16] = {(uint8_t)type};
    put_u16(d + 4, text_count);
    put_u16(d + 6, n);
    for (unsigned i = 0; i < n; i++) {
        put_f64(d + 24 + 8 * i, values[i]);
    }
    const uint64_t at = make_block(m, "CC", 4 + text_count, d, 24 + 8 * (size_t)n);
    for (unsigned i = 0; i < text_count; i++) {
        make_link(m, at, 4 + i, texts[i]);
    }
    return at;
}

static inline void make_save(maker* m, const char* path)
{
    FILE* f = fopen(path, "wb");
    if (!f || fwrite(m->bytes, 1, m->length, f) != m->length || fclose(f) != 0) { abort(); }
    free(m->bytes);
    *m = (maker){0};
}
