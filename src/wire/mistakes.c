// Checksums and counters: what a receiver finds wrong with a message.
#include "shared/wire.h"

#include <pthread.h>
#include <string.h>

typedef struct checksum_row {
    const char* name;
    int bits;
    uint32_t polynomial; // 0: no CRC
    bool reflected;
    uint32_t start, final_xor;
} checksum_row;

static const checksum_row checksums[CRDI_WIRE_CHECKSUMS] = {
    [CRDI_WIRE_SUM8] = {.name = "sum8", .bits = 8},
    [CRDI_WIRE_XOR8] = {.name = "xor8", .bits = 8},
    [CRDI_WIRE_CRC8] = {"crc8", 8, 0x1d, false, 0xff, 0xff},
    [CRDI_WIRE_CRC8_2F] = {"crc8-2f", 8, 0x2f, false, 0xff, 0xff},
    [CRDI_WIRE_CRC16] = {"crc16", 16, 0x1021, false, 0xffff, 0},
    [CRDI_WIRE_CRC32] = {"crc32", 32, 0x04c11db7, true, 0xffffffff, 0xffffffff},
};

const char* crdi_wire_checksum_name(crdi_wire_checksum_kind k)
{
    return k < CRDI_WIRE_CHECKSUMS ? checksums[k].name : NULL;
}

crdi_wire_checksum_kind crdi_wire_checksum_find(const char* name)
{
    for (int k = 1; k < CRDI_WIRE_CHECKSUMS; k++) {
        if (strcmp(checksums[k].name, name) == 0) { return (crdi_wire_checksum_kind)k; }
    }
    return CRDI_WIRE_NO_CHECKSUM;
}

int crdi_wire_checksum_bits(crdi_wire_checksum_kind k)
{
    return checksums[k].bits;
}

static uint32_t mirrored(uint32_t x)
{
    uint32_t y = 0;
    for (int i = 0; i < 32; i++, x >>= 1) {
        y = y << 1 | (x & 1);
    }
    return y;
}

// Those of each CRC: what becomes of a byte, and of one with 1 to 3 zeros behind it. CRCs are
// linear, so that four bytes are four rows (Sarwate 1988; slicing).
enum { SLICES = 4 };

static uint32_t tables[CRDI_WIRE_CHECKSUMS][SLICES][256];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

// A CRC that is not reflected works at the top of 32 bits, so that all widths go the same way.
static uint32_t behind_byte(const checksum_row* row, uint32_t r)
{
    const uint32_t reflected = mirrored(row->polynomial),
                   plain = row->polynomial << (32 - row->bits);
    for (int bit = 0; bit < 8; bit++) {
        r = row->reflected ? r >> 1 ^ (r & 1 ? reflected : 0) : r << 1 ^ (r >> 31 ? plain : 0);
    }
    return r;
}

static void fill_tables(void)
{
    for (int k = 1; k < CRDI_WIRE_CHECKSUMS; k++) {
        const checksum_row* row = &checksums[k];
        for (uint32_t i = 0; row->polynomial && i < 256; i++) {
            uint32_t r = row->reflected ? i : i << 24;
            for (int slice = 0; slice < SLICES; slice++) {
                tables[k][slice][i] = r = behind_byte(row, r);
            }
        }
    }
}

void crdi_wire_checksum_init(crdi_wire_checksum* c, crdi_wire_checksum_kind kind)
{
    const checksum_row* row = &checksums[kind];
    pthread_once(&filled, fill_tables);
    *c = (crdi_wire_checksum){.kind = kind,
                              .start = row->start,
                              .final_xor = row->final_xor,
                              .table = (const uint32_t(*)[256])tables[kind]};
}

static uint32_t over_reflected(const uint32_t (*t)[256], uint32_t r, const uint8_t* p, size_t n)
{
    for (; n >= SLICES; n -= SLICES, p += SLICES) {
        r ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        r = t[3][r & 255] ^ t[2][r >> 8 & 255] ^ t[1][r >> 16 & 255] ^ t[0][r >> 24];
    }
    for (; n > 0; n--, p++) {
        r = r >> 8 ^ t[0][(r ^ *p) & 255];
    }
    return r;
}

static uint32_t over_plain(const uint32_t (*t)[256], uint32_t r, const uint8_t* p, size_t n)
{
    for (; n >= SLICES; n -= SLICES, p += SLICES) {
        r ^= (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        r = t[3][r >> 24] ^ t[2][r >> 16 & 255] ^ t[1][r >> 8 & 255] ^ t[0][r & 255];
    }
    for (; n > 0; n--, p++) {
        r = r << 8 ^ t[0][r >> 24 ^ *p];
    }
    return r;
}

static uint32_t over(const crdi_wire_checksum* c, uint32_t r, const uint8_t* p, size_t n)
{
    if (checksums[c->kind].reflected) { return over_reflected(c->table, r, p, n); }
    if (checksums[c->kind].polynomial) { return over_plain(c->table, r, p, n); }
    for (size_t i = 0; i < n; i++) {
        r = c->kind == CRDI_WIRE_SUM8 ? r + p[i] : r ^ p[i];
    }
    return r;
}

static uint32_t over_data_id(const crdi_wire_message* m, uint32_t r, const uint8_t* data)
{
    const crdi_wire_checksum* c = &m->checksum;
    if (c->data_ids == 0) { return r; }
    const uint64_t which =
        c->data_ids == 1 ? 0 : crdi_wire_get_raw(&m->fields[m->counter.field], data) % 16;
    const uint16_t id = c->data_id[which];
    const uint8_t bytes[2] = {(uint8_t)id, (uint8_t)(id >> 8)};
    return over(c, r, bytes, (size_t)c->data_id_bytes);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

uint32_t crdi_wire_checksum_of(const crdi_wire_message* m, const uint8_t* data)
{
    const crdi_wire_checksum* c = &m->checksum;
    const crdi_wire_field* own = &m->fields[c->field];
    const int up = checksums[c->kind].polynomial && !checksums[c->kind].reflected
                       ? 32 - checksums[c->kind].bits
                       : 0;
    const size_t first = (size_t)c->first,
                 end = c->count ? first + (size_t)c->count : (size_t)m->length;
    const size_t hole = (size_t)own->byte, behind = hole + (size_t)own->bytes;
    uint32_t r = c->start << up;
    if (!c->data_id_last) { r = over_data_id(m, r, data); }
    if (hole > first) { r = over(c, r, data + first, (hole < end ? hole : end) - first); }
    const size_t next = larger(first, behind);
    if (next < end) { r = over(c, r, data + next, end - next); }
    if (c->data_id_last) { r = over_data_id(m, r, data); }
    r = r >> up ^ c->final_xor;
    return own->length < 32 ? r & ((UINT32_C(1) << own->length) - 1) : r;
}

// ---- counters
// ------------------------------------------------------------------------------------

enum { SMALLEST_WITH_OLD = 16 }; // below, a counter cannot tell old messages from missing ones

// Old ones that count up are those of a partner that has begun anew, not stragglers.
static bool begins_anew(const crdi_wire_counter* c, crdi_wire_state* s, uint64_t now)
{
    const bool next = s->going > 0 && now == (s->behind + c->step) % c->modulus;
    s->going = next ? s->going + 1 : 1;
    s->behind = now;
    return s->going == CRDI_WIRE_PERSIST;
}

static crdi_wire_verdict judge_counter(const crdi_wire_message* m, crdi_wire_state* s,
                                       const uint8_t* data)
{
    const crdi_wire_counter* c = &m->counter;
    if (c->field < 0) { return CRDI_WIRE_GOOD; }
    const uint64_t now = crdi_wire_get_raw(&m->fields[c->field], data);
    if (now >= c->modulus) {
        s->counter++;
        return CRDI_WIRE_COUNTER;
    }
    const uint64_t ahead = (now + c->modulus - s->last) % c->modulus;
    if (s->begun && ahead == 0) {
        s->repeated++;
        s->stuck += ++s->standing == CRDI_WIRE_PERSIST;
        return CRDI_WIRE_REPEATED;
    }
    if (s->begun && c->modulus >= SMALLEST_WITH_OLD && ahead > c->modulus / 2) {
        if (!begins_anew(c, s, now)) {
            s->old++;
            return CRDI_WIRE_OLD;
        }
        s->restarts++;
    } else if (s->begun) {
        s->missing += (int64_t)((ahead + c->step - 1) / c->step - 1);
    }
    s->last = now;
    s->standing = s->going = 0;
    s->begun = true;
    return CRDI_WIRE_GOOD;
}

crdi_wire_verdict crdi_wire_judge(const crdi_wire_message* m, crdi_wire_state* s,
                                  const uint8_t* data, size_t length)
{
    if (length != (size_t)m->length) {
        s->length++;
        return CRDI_WIRE_LENGTH;
    }
    if (m->checksum.kind &&
        crdi_wire_get_raw(&m->fields[m->checksum.field], data) != crdi_wire_checksum_of(m, data)) {
        s->checksum++;
        return CRDI_WIRE_CHECKSUM;
    }
    const crdi_wire_verdict v = judge_counter(m, s, data);
    s->good += v == CRDI_WIRE_GOOD;
    return v;
}

void crdi_wire_seal(const crdi_wire_message* m, crdi_wire_state* s, uint8_t* data)
{
    if (m->counter.field >= 0) {
        const uint64_t next = s->begun ? (s->last + m->counter.step) % m->counter.modulus : 0;
        crdi_wire_put_raw(&m->fields[m->counter.field], data, next);
        s->last = next;
        s->begun = true;
    }
    if (m->checksum.kind) {
        crdi_wire_put_raw(&m->fields[m->checksum.field], data, crdi_wire_checksum_of(m, data));
    }
    s->good++;
}
