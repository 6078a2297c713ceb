// Open addressing with linear probing; keys are compared by hash first.
#include "shared/base.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct crdi_map_slot {
    const char* key; // NULL: free
    uint32_t hash;
    int32_t value;
} crdi_map_slot;

// A key of its own for each map: names come from foreign files, and whoever could tell their slots
// beforehand could send them all into one. Nothing depends on the order of the slots.
static void make_key(uint64_t key[2])
{
    if (getrandom(key, 2 * sizeof *key, GRND_NONBLOCK) == (ssize_t)(2 * sizeof *key)) { return; }
    struct timespec now; // no randomness yet, as at boot: then what is hard to guess from outside
    clock_gettime(CLOCK_MONOTONIC, &now);
    key[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15U;
    key[1] = (uint64_t)(uintptr_t)key ^ (uint64_t)now.tv_sec << 32;
}

static inline uint64_t map_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = map_rotate(v[1], 13) ^ v[0];
    v[0] = map_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = map_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = map_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = map_rotate(v[1], 17) ^ v[2];
    v[2] = map_rotate(v[2], 32);
}

// SipHash (Aumasson and Bernstein 2012) with one round per word and three at the end; 32 bits of
// it.
static uint32_t hash_of(const crd_map* m, const char* text)
{
    const size_t length = strlen(text);
    uint64_t v[4] = {m->key[0] ^ 0x736f6d6570736575U, m->key[1] ^ 0x646f72616e646f6dU,
                     m->key[0] ^ 0x6c7967656e657261U, m->key[1] ^ 0x7465646279746573U};
    const size_t words = length / 8;
    for (size_t i = 0; i <= words; i++) {
        uint64_t word = (uint64_t)length << 56; // stays in what the last word has left
        memcpy(&word, text + 8 * i, i < words ? 8 : length % 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

void crdi_map_init(crd_map* m, crd_context* ctx)
{
    *m = (crd_map){.ctx = ctx};
}

void crdi_map_clear(crd_map* m)
{
    if (m->ctx) { crd_free(m->ctx, m->slots); }
    *m = (crd_map){.ctx = m->ctx};
}

static crdi_map_slot* map_slot(const crd_map* m, const char* key, uint32_t hash)
{
    for (uint32_t i = hash & (m->capacity - 1);; i = (i + 1) & (m->capacity - 1)) {
        crdi_map_slot* s = &m->slots[i];
        if (!s->key || (s->hash == hash && strcmp(s->key, key) == 0)) { return s; }
    }
}

crd_status crdi_map_reserve(crd_map* m, size_t count)
{
    size_t capacity = m->capacity ? m->capacity : 16;
    while (capacity < count + count / 2) {
        capacity *= 2;
    }
    if (capacity == m->capacity) { return CRD_OK; }
    if (capacity > UINT32_MAX / 2) {
        return crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory: a map of %zu names", count);
    }
    crdi_map_slot* slots = crdi_new_array(m->ctx, capacity, sizeof *slots);
    if (!slots) { return CRD_E_MEMORY; }
    crd_map old = *m;
    if (!old.capacity) { make_key(m->key); }
    m->slots = slots;
    m->capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].key) { *map_slot(m, old.slots[i].key, old.slots[i].hash) = old.slots[i]; }
    }
    crd_free(m->ctx, old.slots);
    return CRD_OK;
}

crd_status crdi_map_add(crd_map* m, const char* key, int32_t value, bool* fresh)
{
    if (m->count + 1 + (m->count + 1) / 2 > m->capacity) {
        const crd_status st = crdi_map_reserve(m, (size_t)m->count + 1);
        if (st < 0) { return st; }
    }
    const uint32_t hash = hash_of(m, key);
    crdi_map_slot* s = map_slot(m, key, hash);
    if (fresh) { *fresh = !s->key; }
    if (!s->key) {
        *s = (crdi_map_slot){key, hash, value};
        m->count++;
    }
    return CRD_OK;
}

int32_t crdi_map_find(const crd_map* m, const char* key)
{
    if (!m->capacity) { return -1; }
    const crdi_map_slot* s = map_slot(m, key, hash_of(m, key));
    return s->key ? s->value : -1;
}
