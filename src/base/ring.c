// One producer and one consumer: each index is written by one side only. Each side keeps a copy of
// the other's index and looks at the original only when the copy says full or empty, so that the
// cache line of the indices seldom moves.
#include "shared/base.h"

#include <stdatomic.h>

struct crdi_ring {
    crd_context* ctx;
    char* blocks;
    size_t block_bytes, mask; // number of blocks - 1

    // The producer's and the consumer's indices stand on different cache lines.
    char apart0[64];
    atomic_size_t head; // next block to write
    size_t tail_seen;   // producer's copy of tail
    char apart1[64];
    atomic_size_t tail; // next block to read
    size_t head_seen;   // consumer's copy of head
    char apart2[64];
};

crd_status crdi_ring_create(crd_context* ctx, size_t block_bytes, size_t blocks, crdi_ring** out)
{
    size_t n = 2;
    while (n < blocks) {
        n *= 2;
    }
    crdi_ring* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    r->ctx = ctx;
    r->block_bytes = (block_bytes + 15) & ~(size_t)15;
    r->mask = n - 1;
    r->blocks = crdi_new_array(ctx, n, r->block_bytes);
    if (!r->blocks) {
        crdi_ring_destroy(r);
        return CRD_E_MEMORY;
    }
    *out = r;
    return CRD_OK;
}

void crdi_ring_destroy(crdi_ring* r)
{
    if (!r) { return; }
    crd_free(r->ctx, r->blocks);
    crd_free(r->ctx, r);
}

void* crdi_ring_write(crdi_ring* r)
{
    const size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head - r->tail_seen > r->mask) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head - r->tail_seen > r->mask) { return NULL; }
    }
    return r->blocks + (head & r->mask) * r->block_bytes;
}

void crdi_ring_commit(crdi_ring* r)
{
    const size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

const void* crdi_ring_read(crdi_ring* r)
{
    const size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (tail == r->head_seen) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail == r->head_seen) { return NULL; }
    }
    return r->blocks + (tail & r->mask) * r->block_bytes;
}

void crdi_ring_release(crdi_ring* r)
{
    const size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

size_t crdi_ring_count(const crdi_ring* r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire) -
           atomic_load_explicit(&r->tail, memory_order_acquire);
}
