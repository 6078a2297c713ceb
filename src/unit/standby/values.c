// Values between a unit with a stand-in and the two behind it.
#include "unit/standby/standby.h"

#include <math.h>
#include <string.h>

static crd_status standby_values_make(crd_context* ctx, size_t reals, size_t integers, size_t bytes,
                                      crd_values* out)
{
    out->real = crdi_new_array(ctx, reals, sizeof *out->real);
    out->integer = crdi_new_array(ctx, integers, sizeof *out->integer);
    out->bytes = crdi_new_array(ctx, bytes, sizeof *out->bytes);
    return out->real && out->integer && out->bytes ? CRD_OK : CRD_E_MEMORY;
}

// ---- strands -----------------------------------------------------------------------------------

// Where each of them stands in the binding, which has sorted them.
static void find_slots(crdi_strand* s)
{
    const crd_binding* b = s->binding;
    for (int32_t j = 0; j < b->count; j++) {
        for (int k = 0; k < s->count; k++) {
            if (s->ways[k].there == b->variables[j] && s->ways[k].slot < 0) {
                s->ways[k].slot = b->offsets[j];
                break;
            }
        }
    }
}

crd_status crdi_strand_create(crd_context* ctx, crd_unit* unit, const crdi_way* ways, int count,
                              crdi_strand* out)
{
    crd_status st = CRD_OK;
    if (count == 0) { return CRD_OK; }
    int32_t* variables = crdi_new_array(ctx, (size_t)count, sizeof *variables);
    out->ways = crdi_new_array(ctx, (size_t)count, sizeof *out->ways);
    if (!variables || !out->ways) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    memcpy(out->ways, ways, (size_t)count * sizeof *ways);
    out->count = count;
    for (int k = 0; k < count; k++) {
        out->ways[k].slot = -1;
        variables[k] = ways[k].there;
    }
    st = crd_binding_create(unit, variables, count, &out->binding);
    if (st < 0) {
        crdi_fail(ctx, st, "%s", crd_error_text(unit->ctx));
        goto fail;
    }
    find_slots(out);
    CRD_TRY(standby_values_make(ctx, (size_t)out->binding->real_count,
                                (size_t)out->binding->integer_count,
                                (size_t)out->binding->bytes_count, &out->values));
fail:
    crd_free(ctx, variables);
    return st;
}

// The texts have grown over the unit's context.
void crdi_strand_clear(crd_context* ctx, crdi_strand* s)
{
    for (int32_t i = 0; s->values.bytes && i < s->binding->bytes_count; i++) {
        crd_free(s->binding->unit->ctx, s->values.bytes[i].data);
    }
    crd_free(ctx, s->values.real);
    crd_free(ctx, s->values.integer);
    crd_free(ctx, s->values.bytes);
    crd_free(ctx, s->ways);
    crd_binding_destroy(s->binding);
    *s = (crdi_strand){0};
}

// The elements of a way from place `at` to place `to_at`, real ones by its gain and offset.
static crd_status standby_values_convert(crd_context* ctx, const crdi_way* w,
                                         const crd_values* from, int32_t at, crd_values* to,
                                         int32_t to_at)
{
    if (w->kind != CRD_REAL || (w->gain == 1 && w->offset == 0)) {
        return crdi_unit_values_copy(ctx, w->kind, w->size, from, at, to, to_at);
    }
    for (uint32_t e = 0; e < w->size; e++) {
        to->real[to_at + (int32_t)e] = w->gain * from->real[at + (int32_t)e] + w->offset;
    }
    return CRD_OK;
}

// What the primary measures, or that it measures nothing: a twin knows NaN, others go on with what
// the run has.
static crd_status copy_measured(const crdi_standby* u, const crdi_way* w, crd_values* to)
{
    const bool trusted = u->seat && u->good;
    const bool nothing = !trusted && u->is_twin && w->kind == CRD_REAL;
    const crd_status st =
        standby_values_convert(NULL, w, trusted ? &u->seen : &u->values, w->at, to, w->slot);
    for (uint32_t e = 0; nothing && e < w->size; e++) {
        to->real[w->slot + (int32_t)e] = NAN;
    }
    return st;
}

crd_status crdi_strand_set(const crdi_standby* u, crdi_strand* s)
{
    if (!s->binding) { return CRD_OK; }
    crd_unit* unit = s->binding->unit;
    for (int k = 0; k < s->count; k++) {
        const crdi_way* w = &s->ways[k];
        const crd_status st =
            w->measured && w->kind != CRD_BYTES
                ? copy_measured(u, w, &s->values)
                : standby_values_convert(unit->ctx, w, &u->values, w->at, &s->values, w->slot);
        if (st < 0) { return st; }
    }
    return unit->ops->set(unit, s->binding, &s->values);
}

crd_status crdi_strand_get(crdi_standby* u, crdi_strand* s, crd_values* to)
{
    if (!s->binding) { return CRD_OK; }
    crd_unit* unit = s->binding->unit;
    const crd_status got = unit->ops->get(unit, s->binding, &s->values);
    if (got < 0) { return got; }
    for (int k = 0; k < s->count; k++) {
        const crdi_way* w = &s->ways[k];
        const crd_status st =
            standby_values_convert(u->base.ctx, w, &s->values, w->slot, to, w->at);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- seats -------------------------------------------------------------------------------------

static crdi_way standby_values_same(const crdi_standby* u, int32_t i)
{
    const crd_variable* v = &u->variables[i];
    return (crdi_way){.own = i,
                      .there = i,
                      .at = u->offsets[i],
                      .size = v->size,
                      .kind = crd_type_kind(v->type),
                      .gain = 1};
}

crd_status crdi_seat_bind(crdi_standby* u, crdi_standby_seat* s)
{
    crd_status st = CRD_OK;
    int in = 0, out = 0;
    const size_t n = (size_t)u->primary_count;
    crdi_way* ways = crdi_new_array(s->ctx, 2 * n, sizeof *ways);
    if (!ways) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < u->primary_count; i++) {
        const int causality = u->variables[i].causality;
        if (causality == CRD_INPUT && u->wanted[i]) {
            ways[in++] = standby_values_same(u, i);
        } else if (causality == CRD_OUTPUT || (u->wanted[i] && causality == CRD_LOCAL)) {
            ways[n + (size_t)out++] = standby_values_same(u, i);
        }
    }
    CRD_TRY(crdi_strand_create(s->ctx, s->unit, ways, in, &s->in));
    CRD_TRY(crdi_strand_create(s->ctx, s->unit, ways + n, out, &s->out));
fail:
    crd_free(s->ctx, ways);
    return st;
}

void crdi_seat_clear(crdi_standby_seat* s)
{
    if (!s->unit) { return; }
    crdi_strand_clear(s->ctx, &s->in);
    crdi_strand_clear(s->ctx, &s->out);
    crd_unit_destroy(s->unit);
    s->unit = NULL;
}

// ---- room --------------------------------------------------------------------------------------

// Of texts that are asked for before anybody has given them.
static crd_status put_starts(crdi_standby* u)
{
    for (int32_t i = 0; i < u->base.info.variable_count; i++) {
        const crd_variable* v = &u->variables[i];
        const int32_t at = u->offsets[i];
        crd_values own = {u->values.real + at, u->values.integer + at, u->values.bytes + at};
        if (!v->start || v->type == CRD_CLOCK) { continue; }
        // Of another size by structural parameters: then it has none.
        const crd_status st = crdi_unit_parse_start(&u->base, i, &own, v->size);
        if (st == CRD_E_MEMORY) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_standby_make_room(crdi_standby* u)
{
    crd_status st = CRD_OK;
    crd_context* ctx = u->base.ctx;
    size_t count[3] = {0};
    for (int32_t i = 0; i < u->base.info.variable_count; i++) {
        const crd_variable* v = &u->variables[i];
        u->offsets[i] = (int32_t)count[crd_type_kind(v->type)];
        count[crd_type_kind(v->type)] += v->size;
        if (count[crd_type_kind(v->type)] > INT32_MAX) {
            return crdi_fail(ctx, CRD_E_RANGE, "more than %d values of one kind", INT32_MAX);
        }
    }
    u->real_count = count[CRD_REAL];
    u->integer_count = count[CRD_INTEGER];
    u->bytes_count = count[CRD_BYTES];
    crd_values* const all[] = {&u->values, &u->seen, &u->shadow};
    for (int i = 0; i < 3; i++) {
        CRD_TRY(standby_values_make(ctx, u->real_count, u->integer_count, u->bytes_count, all[i]));
    }
    u->before = crdi_arena_new(&u->arena, u->real_count + 1, sizeof *u->before);
    u->rest = crdi_arena_new(&u->arena, u->real_count + 1, sizeof *u->rest);
    u->size = crdi_arena_new(&u->arena, u->real_count + 1, sizeof *u->size);
    u->apart = crdi_arena_new(&u->arena, u->real_count + 1, sizeof *u->apart);
    u->mirror = crdi_arena_new(&u->arena, u->real_count + u->integer_count + 1, sizeof *u->mirror);
    if (!u->before || !u->rest || !u->size || !u->apart || !u->mirror) { return CRD_E_MEMORY; }
    for (int i = 0; i < u->twofold_count; i++) {
        crdi_twofold* o = &u->twofold[i];
        o->at = u->offsets[o->own];
        if (o->modelled) { o->model_at = u->offsets[o->model_at]; }
    }
    for (int i = 0; i < u->into_count; i++) {
        u->into[i].at = u->offsets[u->into[i].own];
    }
    for (int i = 0; i < u->out_count; i++) {
        u->out[i].at = u->offsets[u->out[i].own];
    }
    CRD_TRY(put_starts(u));
fail:
    return st;
}

void crdi_standby_clear_values(crdi_standby* u)
{
    crd_values* const all[] = {&u->values, &u->seen, &u->shadow};
    for (int i = 0; i < 3; i++) {
        crdi_unit_values_clear(u->base.ctx, all[i], (uint32_t)u->bytes_count);
    }
}
