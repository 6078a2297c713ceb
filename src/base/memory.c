#include "base/context.h"
#include "shared/base.h"

#include <stdio.h>
#include <string.h>

static void* memory_allocate(crd_context* ctx, void* p, size_t size)
{
    void* q = ctx->opt.realloc(ctx->opt.realloc_user, p, size);
    if (!q) { (void)crdi_fail(ctx, CRD_E_MEMORY, "out of memory: %zu bytes were asked for", size); }
    return q;
}

void* crdi_new(crd_context* ctx, size_t size)
{
    void* p = memory_allocate(ctx, NULL, size ? size : 1);
    return p ? memset(p, 0, size) : NULL;
}

void* crdi_new_array(crd_context* ctx, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / 2 / size) {
        (void)crdi_fail(ctx, CRD_E_MEMORY, "out of memory: %zu objects of %zu bytes", n, size);
        return NULL;
    }
    return crdi_new(ctx, n * size);
}

enum { LARGE = 1 << 20 }; // bytes that the kernel moves page by page: there less is in reserve

void* crdi_grow(crd_context* ctx, void* p, size_t* capacity, size_t need, size_t size)
{
    if (p && need <= *capacity) { return p; }
    size_t n = *capacity < 8 ? 8 : *capacity;
    while (n < need) {
        n += n / (n > LARGE / size ? 32 : 2);
    }
    if (n > SIZE_MAX / 2 / size) {
        (void)crdi_fail(ctx, CRD_E_MEMORY, "out of memory: %zu objects of %zu bytes", n, size);
        return NULL;
    }
    void* q = memory_allocate(ctx, p, n * size);
    if (q) { *capacity = n; }
    return q;
}

void crd_free(crd_context* ctx, void* p)
{
    if (p) { ctx->opt.realloc(ctx->opt.realloc_user, p, 0); }
}

char* crdi_strdup(crd_context* ctx, const char* text)
{
    const size_t n = strlen(text) + 1;
    char* p = memory_allocate(ctx, NULL, n);
    return p ? memcpy(p, text, n) : NULL;
}

char* crdi_format(crd_context* ctx, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char* p = memory_allocate(ctx, NULL, (size_t)n + 1);
    if (p) {
        va_start(args, format);
        vsnprintf(p, (size_t)n + 1, format, args);
        va_end(args);
    }
    return p;
}

// ---- arena -------------------------------------------------------------------------------------

typedef struct crdi_chunk {
    struct crdi_chunk* next;
    size_t size, used; // of the bytes behind the header
} crdi_chunk;

#ifdef CRDI_SMALL // memory is dearer than blocks are many
enum { CHUNK_FIRST = 256, CHUNK_MOST = 256, ALIGN = 8, HEADER = 24 };
#else
enum { CHUNK_FIRST = 4096, CHUNK_MOST = 1 << 20, ALIGN = 16, HEADER = 32 };
#endif
_Static_assert(sizeof(crdi_chunk) <= HEADER && HEADER % ALIGN == 0, "a chunk's head");

void crd_arena_init(crd_arena* a, crd_context* ctx)
{
    *a = (crd_arena){.ctx = ctx};
}

void crd_arena_clear(crd_arena* a)
{
    while (a->chunks) {
        crdi_chunk* c = a->chunks;
        a->chunks = c->next;
        crd_free(a->ctx, c);
    }
    a->used = 0;
    a->failed = false;
}

// Room for `size` bytes at a multiple of `align`, not zeroed.
static void* arena_take(crd_arena* a, size_t size, size_t align)
{
    if (a->failed) { return NULL; }
    crdi_chunk* c = a->chunks;
    size_t at = c ? (c->used + align - 1) & ~(align - 1) : 0;
    if (!c || at > c->size || size > c->size - at) {
        size_t room = c ? 2 * c->size : a->first ? a->first : CHUNK_FIRST;
        if (room > CHUNK_MOST) { room = CHUNK_MOST; }
        const bool large = c && size > room / 4; // gets its own, and what is left here is used on
        if (room < size || large) { room = size; }
        a->failed = room > SIZE_MAX / 2;
        if (a->failed) {
            (void)crdi_fail(a->ctx, CRD_E_MEMORY, "out of memory: %zu bytes", size);
            return NULL;
        }
        c = memory_allocate(a->ctx, NULL, HEADER + room);
        a->failed = !c;
        if (!c) { return NULL; }
        crdi_chunk** before = large ? &a->chunks->next : &a->chunks;
        *c = (crdi_chunk){.next = *before, .size = room};
        *before = c;
        at = 0;
    }
    c->used = at + size;
    a->used += size;
    return (char*)c + HEADER + at;
}

void* crdi_arena_new(crd_arena* a, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / 2 / size) {
        (void)crdi_fail(a->ctx, CRD_E_MEMORY, "out of memory: %zu objects of %zu bytes", n, size);
        a->failed = true;
        return NULL;
    }
    void* p = arena_take(a, n * size, ALIGN);
    return p ? memset(p, 0, n * size) : NULL;
}

const void* crdi_arena_chunk(const crd_arena* a, const void* after, void** data, size_t* used)
{
    crdi_chunk* c = after ? ((const crdi_chunk*)after)->next : a->chunks;
    if (c) {
        *data = (char*)c + HEADER;
        *used = c->used;
    }
    return c;
}

// Behind a header that says how large it is. What is given back stays where it is.
static void* arena_reallocate(void* user, void* p, size_t size)
{
    if (size == 0) { return NULL; }
    size_t* room = arena_take(user, ALIGN + size, ALIGN);
    if (!room) { return NULL; }
    *room = size;
    void* q = (char*)room + ALIGN;
    if (p) {
        const size_t old = *(const size_t*)((const char*)p - ALIGN);
        memcpy(q, p, old < size ? old : size);
    }
    return q;
}

crd_context* crdi_context_in(crd_arena* a)
{
    crd_context_options opt = a->ctx->opt;
    opt.realloc = arena_reallocate;
    opt.realloc_user = a;
    return crdi_context_make(&opt);
}

char* crdi_arena_text(crd_arena* a, const char* text, size_t length)
{
    char* p = arena_take(a, length + 1, 1);
    if (!p) { return NULL; }
    if (length) { memcpy(p, text, length); }
    p[length] = 0;
    return p;
}

char* crdi_arena_format(crd_arena* a, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char* p = arena_take(a, (size_t)n + 1, 1);
    if (p) {
        va_start(args, format);
        vsnprintf(p, (size_t)n + 1, format, args);
        va_end(args);
    }
    return p;
}
