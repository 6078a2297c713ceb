// Open addressing with linear probing; keys are compared by hash first.
#include "cardan/base.h"

#include <string.h>

typedef struct crdi_map_slot {
    const char* key; // NULL: free
    uint32_t hash;
    int32_t value;
} crdi_map_slot;

// FNV-1a, 32 bit, with a final mix because the low bits choose the slot.
static uint32_t hash_of(const char* key)
{
    uint32_t h = 2166136261U;
    for (const unsigned char* p = (const unsigned char*)key; *p; p++) {
        h = (h ^ *p) * 16777619U;
    }
    h ^= h >> 16;
    h *= 0x7feb352dU;
    return h ^ (h >> 15);
}

void crdi_map_init(crdi_map* m, crd_context* ctx)
{
    *m = (crdi_map){.ctx = ctx};
}

void crdi_map_clear(crdi_map* m)
{
    if (m->ctx) { crdi_free(m->ctx, m->slots); }
    *m = (crdi_map){.ctx = m->ctx};
}

static crdi_map_slot* slot_of(const crdi_map* m, const char* key, uint32_t hash)
{
    for (uint32_t i = hash & (m->capacity - 1);; i = (i + 1) & (m->capacity - 1)) {
        crdi_map_slot* s = &m->slots[i];
        if (!s->key || (s->hash == hash && strcmp(s->key, key) == 0)) { return s; }
    }
}

crd_status crdi_map_reserve(crdi_map* m, size_t count)
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
    crdi_map old = *m;
    m->slots = slots;
    m->capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].key) { *slot_of(m, old.slots[i].key, old.slots[i].hash) = old.slots[i]; }
    }
    crdi_free(m->ctx, old.slots);
    return CRD_OK;
}

crd_status crdi_map_add(crdi_map* m, const char* key, int32_t value, bool* fresh)
{
    if (m->count + 1 + (m->count + 1) / 2 > m->capacity) {
        const crd_status st = crdi_map_reserve(m, (size_t)m->count + 1);
        if (st < 0) { return st; }
    }
    const uint32_t hash = hash_of(key);
    crdi_map_slot* s = slot_of(m, key, hash);
    if (fresh) { *fresh = !s->key; }
    if (!s->key) {
        *s = (crdi_map_slot){key, hash, value};
        m->count++;
    }
    return CRD_OK;
}

int32_t crdi_map_find(const crdi_map* m, const char* key)
{
    if (!m->capacity) { return -1; }
    const crdi_map_slot* s = slot_of(m, key, hash_of(key));
    return s->key ? s->value : -1;
}
