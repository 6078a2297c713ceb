// Bindings, and the room that values live in.
#include "shared/base.h"
#include "unit/unit.h"

#include <assert.h>
#include <string.h>

crd_status crd_bytes_set(crd_context* ctx, crd_bytes* b, const void* data, size_t length)
{
    if (length >= b->capacity) {
        void* p = crdi_grow(ctx, b->data, &b->capacity, length + 1, 1);
        if (!p) { return CRD_E_MEMORY; }
        b->data = p;
    }
    if (length) { memmove(b->data, data, length); }
    b->data[length] = 0;
    b->length = length;
    return CRD_OK;
}

crd_status crdi_unit_values_init(crd_context* ctx, crd_values* v, crd_kind kind, uint32_t count)
{
    *v = (crd_values){0};
    switch (kind) {
    case CRD_REAL:
        v->real = crdi_new_array(ctx, count, sizeof *v->real);
        break;
    case CRD_INTEGER:
        v->integer = crdi_new_array(ctx, count, sizeof *v->integer);
        break;
    case CRD_BYTES:
        v->bytes = crdi_new_array(ctx, count, sizeof *v->bytes);
        break;
    }
    return v->real || v->integer || v->bytes ? CRD_OK : CRD_E_MEMORY;
}

void crdi_unit_values_clear(crd_context* ctx, crd_values* v, uint32_t count)
{
    for (uint32_t i = 0; v->bytes && i < count; i++) {
        crd_free(ctx, v->bytes[i].data);
    }
    crd_free(ctx, v->real);
    crd_free(ctx, v->integer);
    crd_free(ctx, v->bytes);
    *v = (crd_values){0};
}

crd_status crdi_unit_values_copy(crd_context* ctx, crd_kind kind, uint32_t size,
                                 const crd_values* from, int32_t at, crd_values* to, int32_t to_at)
{
    crd_status st = CRD_OK;
    if (kind == CRD_REAL) {
        memcpy(to->real + to_at, from->real + at, size * sizeof *to->real);
    } else if (kind == CRD_INTEGER) {
        memcpy(to->integer + to_at, from->integer + at, size * sizeof *to->integer);
    } else {
        const crd_bytes* x = from->bytes + at;
        for (uint32_t e = 0; e < size && st >= 0; e++) {
            st = crd_bytes_set(ctx, &to->bytes[to_at + (int32_t)e], x[e].data, x[e].length);
        }
    }
    return st;
}

// Stable counting sort by type, then offsets in the order that results.
static crd_status binding_lay_out(crd_unit* u, const int32_t* variables, crd_binding* b)
{
    const crd_variable* all = u->info.variables;
    int32_t at[CRD_TYPE_COUNT + 1] = {0};
    for (int32_t j = 0; j < b->count; j++) {
        assert(variables[j] >= 0 && variables[j] < u->info.variable_count);
        at[all[variables[j]].type + 1]++;
    }
    for (int t = 0; t < CRD_TYPE_COUNT; t++) {
        at[t + 1] += at[t];
    }
    for (int32_t j = 0; j < b->count; j++) {
        b->variables[at[all[variables[j]].type]++] = variables[j];
    }
    int64_t elements[3] = {0};
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* v = &all[b->variables[j]];
        int64_t* n = &elements[crd_type_kind(v->type)];
        b->offsets[j] = (int32_t)*n;
        *n += v->size;
        if (*n > INT32_MAX) {
            return crdi_fail(u->ctx, CRD_E_RANGE, "more than %d values of one kind at '%s'",
                             INT32_MAX, v->name);
        }
    }
    b->real_count = (int32_t)elements[CRD_REAL];
    b->integer_count = (int32_t)elements[CRD_INTEGER];
    b->bytes_count = (int32_t)elements[CRD_BYTES];
    return CRD_OK;
}

crd_status crd_binding_create(crd_unit* u, const int32_t* variables, int32_t count,
                              crd_binding** out)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)count;
    crd_binding* b = crdi_new(u->ctx, sizeof *b + 2 * n * sizeof(int32_t));
    if (!b) { return CRD_E_MEMORY; }
    b->unit = u;
    b->count = count;
    b->variables = (int32_t*)(b + 1);
    b->offsets = b->variables + n;
    CRD_TRY(binding_lay_out(u, variables, b));
    if (CRDI_UNIT_HAS(u, lane, prepare)) { CRD_TRY(u->ops->lane->prepare(u, b)); }
    *out = b;
    return CRD_OK;
fail:
    crd_binding_destroy(b);
    return st;
}

void crd_binding_destroy(crd_binding* b)
{
    if (!b) { return; }
    if (CRDI_UNIT_HAS(b->unit, lane, unprepare)) { b->unit->ops->lane->unprepare(b->unit, b); }
    crd_free(b->unit->ctx, b);
}

enum { BYTES_ROOM = 256 }; // to begin with, of a text or binary

crd_status crdi_values_create(crd_arena* arena, const crd_binding* b, crd_values* out)
{
    out->real = crdi_arena_new(arena, (size_t)b->real_count, sizeof *out->real);
    out->integer = crdi_arena_new(arena, (size_t)b->integer_count, sizeof *out->integer);
    out->bytes = crdi_arena_new(arena, (size_t)b->bytes_count, sizeof *out->bytes);
    if (!out->real || !out->integer || !out->bytes) { return CRD_E_MEMORY; }
    for (int i = 0; i < b->bytes_count; i++) {
        crd_bytes* x = &out->bytes[i];
        x->data = crdi_new(b->unit->ctx, BYTES_ROOM);
        if (!x->data) { return CRD_E_MEMORY; }
        x->capacity = BYTES_ROOM;
    }
    return CRD_OK;
}

void crdi_values_clear(crd_context* ctx, const crd_binding* b, crd_values* v)
{
    for (int i = 0; b && v->bytes && i < b->bytes_count; i++) {
        crd_free(ctx, v->bytes[i].data);
    }
}
