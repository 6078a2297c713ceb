// What a binding of an FMU needs at run time: references in runs of one FMI call each, room for
// texts, curves, and discrete inputs.
#include <string.h>

#include "unit/fmi/fmi_unit.h"

// What is taken between steps in event mode only, if there is one.
static bool is_discrete_input(const crdi_fmi_unit* u, const crd_variable* v)
{
    const bool input = v->causality == CRD_INPUT && v->variability != CRD_CONTINUOUS;
    const bool tunable = v->causality == CRD_PARAMETER && v->variability == CRD_TUNABLE;
    return u->event_mode && (input || tunable);
}

static bool takes_curve(const crdi_fmi_unit* u, const crd_variable* v)
{
    if ((!u->base.input_order && !u->exchange) || v->type != CRD_FLOAT64 ||
        v->causality != CRD_INPUT || v->variability != CRD_CONTINUOUS) {
        return false;
    }
    return u->exchange || u->d->version != CRD_FMI_3 || v->intermediate_update;
}

static crd_status prepare_runs(crdi_fmi_unit* u, const crd_binding* b, crdi_fmi_prepared* p)
{
    const size_t n = (size_t)b->count;
    p->refs = crdi_arena_new(&p->arena, n, sizeof *p->refs);
    p->runs = crdi_arena_new(&p->arena, n, sizeof *p->runs);
    p->texts = crdi_arena_new(&p->arena, (size_t)b->bytes_count, sizeof *p->texts);
    p->binaries = crdi_arena_new(&p->arena, (size_t)b->bytes_count, sizeof *p->binaries);
    if (!p->refs || !p->runs || !p->texts || !p->binaries) { return CRD_E_MEMORY; }
    bool negated = false;
    p->only_inputs = true;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* v = &u->base.info.variables[b->variables[j]];
        const bool discrete = is_discrete_input(u, v);
        p->only_inputs = p->only_inputs && v->causality == CRD_INPUT;
        negated = negated || v->negated;
        p->refs[j] = crdi_fmi_unit_reference(&u->base, b->variables[j]);
        crdi_fmi_run* run = p->run_count ? &p->runs[p->run_count - 1] : NULL;
        if (!run || run->type != v->type || run->discrete != discrete ||
            run->negated != v->negated) {
            run = &p->runs[p->run_count++];
            *run = (crdi_fmi_run){.type = v->type,
                                  .discrete = discrete,
                                  .negated = v->negated,
                                  .first = j,
                                  .offset = b->offsets[j]};
        }
        run->count++;
        run->values += (int32_t)v->size;
        p->has_discrete = p->has_discrete || discrete;
    }
    p->ref_count = n;
    p->value_count = (size_t)b->real_count;
    p->plain_get =
        n > 0 && !negated && u->base.info.variables[b->variables[n - 1]].type == CRD_FLOAT64;
    p->plain_set = p->plain_get && !p->has_discrete;
    return negated ? crdi_values_create(&p->arena, b, &p->flipped) : CRD_OK;
}

static crd_status prepare_curves(crdi_fmi_unit* u, const crd_binding* b, crdi_fmi_prepared* p)
{
    crdi_fmi_curves* c = &p->curves;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* v = &u->base.info.variables[b->variables[j]];
        c->ref_count += takes_curve(u, v);
        c->count += takes_curve(u, v) ? (int32_t)v->size : 0;
    }
    if (!c->count) { return CRD_OK; }
    const size_t n = (size_t)c->count, refs = (size_t)c->ref_count;
    c->refs = crdi_arena_new(&p->arena, refs, sizeof *c->refs);
    c->orders = crdi_arena_new(&p->arena, 2 * refs, sizeof *c->orders);
    c->at = crdi_arena_new(&p->arena, n, sizeof *c->at);
    c->values = crdi_arena_new(&p->arena, 2 * n, sizeof *c->values);
    c->u[0] = crdi_arena_new(&p->arena, 5 * n, sizeof *c->u[0]);
    if (!c->refs || !c->orders || !c->at || !c->values || !c->u[0]) { return CRD_E_MEMORY; }
    c->u[1] = c->u[0] + n;
    c->u[2] = c->u[1] + n;
    c->last = c->u[2] + n;
    c->sign = c->last + n;
    size_t r = 0, k = 0;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* v = &u->base.info.variables[b->variables[j]];
        if (!takes_curve(u, v)) { continue; }
        c->refs[r] = p->refs[j];
        c->orders[r] = 1;
        c->orders[refs + r] = 2;
        r++;
        for (uint32_t e = 0; e < v->size; e++) {
            c->sign[k] = v->negated ? -1 : 1;
            c->at[k++] = b->offsets[j] + (int32_t)e;
        }
    }
    if (u->own_curves) {
        p->plain_set = false; // values are kept
        p->next = u->curved;
        u->curved = p;
    }
    return CRD_OK;
}

// Output derivatives are for scalar Float64 outputs.
static crd_status prepare_derivatives(crdi_fmi_unit* u, const crd_binding* b, crdi_fmi_prepared* p)
{
    if (!u->base.info.max_output_order) { return CRD_OK; }
    const size_t n = (size_t)b->count;
    p->orders = crdi_arena_new(&p->arena, n, sizeof *p->orders);
    p->derivatives = crdi_arena_new(&p->arena, 3 * n, sizeof *p->derivatives);
    p->derivative_at = crdi_arena_new(&p->arena, n, sizeof *p->derivative_at);
    p->derivative_sign = crdi_arena_new(&p->arena, n, sizeof *p->derivative_sign);
    p->derivative_refs = crdi_arena_new(&p->arena, n, sizeof *p->derivative_refs);
    if (!p->orders || !p->derivatives || !p->derivative_at || !p->derivative_sign ||
        !p->derivative_refs) {
        return CRD_E_MEMORY;
    }
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* v = &u->base.info.variables[b->variables[j]];
        if (v->type != CRD_FLOAT64 || v->rank || v->causality != CRD_OUTPUT ||
            v->variability != CRD_CONTINUOUS) {
            continue;
        }
        p->derivative_refs[p->derivative_count] = p->refs[j];
        p->derivative_sign[p->derivative_count] = v->negated ? -1 : 1;
        p->derivative_at[p->derivative_count++] = b->offsets[j];
    }
    return CRD_OK;
}

crd_status crdi_fmi_unit_prepare(crd_unit* unit, crd_binding* b)
{
    crd_status st = CRD_OK;
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crdi_fmi_prepared* p = crdi_new(unit->ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    b->prepared = p; // from here on unprepare frees it
    crd_arena_init(&p->arena, unit->ctx);
    p->arena.first = (uint32_t)(64 + (size_t)b->count * (sizeof *p->refs + sizeof *p->runs));
    CRD_TRY(prepare_runs(u, b, p));
    if (p->has_discrete) { CRD_TRY(crdi_values_create(&p->arena, b, &p->last)); }
    CRD_TRY(prepare_curves(u, b, p));
    CRD_TRY(prepare_derivatives(u, b, p));
    const size_t most = (size_t)b->real_count + (size_t)b->integer_count + (size_t)b->bytes_count;
    if (most > u->reserve && !p->plain_get) { // reals go as they are
        u->reserve = (uint32_t)most;
        if (u->fmi) { CRD_TRY(crd_fmi_reserve(u->fmi, most)); }
    }
fail:
    return st;
}

void crdi_fmi_unit_unprepare(crd_unit* unit, crd_binding* b)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crdi_fmi_prepared* p = b->prepared;
    if (!p) { return; }
    for (crdi_fmi_prepared** q = &u->curved; *q; q = &(*q)->next) {
        if (*q == p) {
            crdi_fmi_unit_compare_inputs(u, p);
            *q = p->next;
            break;
        }
    }
    crdi_values_clear(unit->ctx, b, &p->last);
    crdi_values_clear(unit->ctx, b, &p->flipped);
    crd_arena_clear(&p->arena);
    crd_free(unit->ctx, p);
    b->prepared = NULL;
}
