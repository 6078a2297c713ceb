/// Bytes taken one after the other, of what other processes wrote: beyond the end there is nothing,
/// and that is remembered. And numbers put likewise. Not for users.
#pragma once
#include <string.h>

#include "shared/base.h"

typedef struct crdi_bytes {
    const char* at;
    size_t left;
    bool failed; ///< there was less than was asked for, or it made no sense
} crdi_bytes;

/// NULL: there are not so many.
static inline const char* crdi_take(crdi_bytes* b, uint64_t size)
{
    const char* p = b->at;
    b->failed = b->failed || size > b->left;
    if (b->failed) { return NULL; }
    b->at += size;
    b->left -= (size_t)size;
    return p;
}

/// Zeros if there are not so many.
static inline void crdi_take_to(crdi_bytes* b, void* to, size_t size)
{
    const char* p = crdi_take(b, size);
    if (p) {
        memcpy(to, p, size);
    } else {
        memset(to, 0, size);
    }
}

static inline uint32_t crdi_take_u32(crdi_bytes* b)
{
    uint32_t x;
    crdi_take_to(b, &x, sizeof x);
    return x;
}

static inline uint64_t crdi_take_u64(crdi_bytes* b)
{
    uint64_t x;
    crdi_take_to(b, &x, sizeof x);
    return x;
}

static inline void crdi_put_u32(crd_text* t, uint32_t x)
{
    crdi_text_put(t, &x, sizeof x);
}

static inline void crdi_put_u64(crd_text* t, uint64_t x)
{
    crdi_text_put(t, &x, sizeof x);
}
