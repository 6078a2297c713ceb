// Memory out of one block: what an element allocates stands in the bytes of the instance, so that
// they can be saved and restored as a whole. Nothing is given back but the newest object, which
// keeps the scratch memory of create out of the way.
#include <string.h>

#include "unit/coupling/coupling_model.h"

enum { ALIGN = 16 };

// Stands before each object.
typedef struct header {
    size_t before; // offset of the object before, 0: none
    size_t size;   // 0: given back
} header;

static size_t rounded(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static header* header_at(crdi_place* p, size_t offset)
{
    return (header*)((char*)p + offset - ALIGN);
}

static void* place_allocate(crdi_place* p, size_t size)
{
    if (size > p->size || p->used + ALIGN + rounded(size) > p->size) { return NULL; }
    const size_t at = p->used + ALIGN;
    *header_at(p, at) = (header){.before = p->last, .size = size};
    p->last = at;
    p->used = at + rounded(size);
    if (p->used > p->most) { p->most = p->used; }
    return (char*)p + at;
}

static void release(crdi_place* p, void* object)
{
    header_at(p, (size_t)((char*)object - (char*)p))->size = 0;
    while (p->last && header_at(p, p->last)->size == 0) {
        p->used = p->last - ALIGN;
        p->last = header_at(p, p->last)->before;
    }
}

static void* reallocate(void* user, void* object, size_t size)
{
    crdi_place* p = user;
    if (size == 0) {
        if (object) { release(p, object); }
        return NULL;
    }
    void* q = place_allocate(p, size);
    if (q && object) {
        const size_t old = header_at(p, (size_t)((char*)object - (char*)p))->size;
        memcpy(q, object, old < size ? old : size);
        release(p, object);
    }
    return q;
}

crd_status crdi_place_create(crdi_place* p, size_t size, const crd_coupling_options* opt)
{
    *p = (crdi_place){.size = size, .used = rounded(sizeof *p)};
    p->most = p->used;
    crd_context_options context = crd_context_defaults();
    context.realloc = reallocate;
    context.realloc_user = p;
    p->ctx = crd_context_create(&context);
    return p->ctx ? crd_coupling_create(p->ctx, opt, &p->element) : CRD_E_MEMORY;
}

crd_status crdi_place_measure(crd_context* ctx, const crd_coupling_options* opt, size_t* room)
{
    for (size_t size = 1 << 16;; size *= 4) {
        crdi_place* p = crdi_new(ctx, size);
        if (!p) { return CRD_E_MEMORY; }
        const crd_status st = crdi_place_create(p, size, opt);
        *room = rounded(p->most);
        if (st < 0 && p->ctx) { (void)crdi_fail(ctx, st, "%s", crd_error_text(p->ctx)); }
        crd_free(ctx, p); // the element is in it
        if (st != CRD_E_MEMORY || size > (size_t)1 << 30) { return st; }
    }
}
