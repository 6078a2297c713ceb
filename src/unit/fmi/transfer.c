// Values and derivatives in and out of an FMU.
#include <math.h>
#include <string.h>

#include "unit/fmi/fmi_unit.h"

// Of its size: by how much an input on a curve may miss the end of the curve before without being a
// jump. That gap is the error of the extrapolation; solvers pass over it better than they begin
// anew.
static const double CURVE_JUMP = 0.01;

// Values of negated aliases, as the FMU has them or as they are seen.
CRDI_COLD static void flip(const crdi_fmi_run* run, const crd_values* from, crd_values* to)
{
    const size_t begin = (size_t)run->offset, end = begin + (size_t)run->values;
    for (size_t k = begin; k < end; k++) {
        if (crd_type_kind(run->type) == CRD_REAL) {
            to->real[k] = -from->real[k];
        } else if (run->type == CRD_BOOLEAN) {
            to->integer[k] = !from->integer[k];
        } else {
            to->integer[k] = -from->integer[k];
        }
    }
}

// ---- set ---------------------------------------------------------------------------------------

CRDI_COLD static crd_status set_run(crdi_fmi_unit* u, const crdi_fmi_prepared* p,
                                    const crdi_fmi_run* run, const crd_values* v)
{
    const uint32_t* refs = p->refs + run->first;
    const size_t n = (size_t)run->count, values = (size_t)run->values;
    const int32_t at = run->offset;
    if (run->negated) {
        crd_values flipped = p->flipped;
        flip(run, v, &flipped);
        v = &p->flipped;
    }
    switch (run->type) {
    case CRD_FLOAT64:
        return crd_fmi_set_real(u->fmi, refs, n, v->real + at, values);
    case CRD_FLOAT32:
        return crd_fmi_set_float32(u->fmi, refs, n, v->real + at, values);
    case CRD_STRING:
        for (size_t k = 0; k < values; k++) {
            const crd_bytes* b = &v->bytes[(size_t)at + k];
            p->texts[k] = b->data ? (const char*)b->data : "";
        }
        return crd_fmi_set_string(u->fmi, refs, n, p->texts, values);
    case CRD_BINARY:
        for (size_t k = 0; k < values; k++) {
            const crd_bytes* b = &v->bytes[(size_t)at + k];
            p->binaries[k] = (crd_fmi_binary){b->data, b->length};
        }
        return crd_fmi_set_binary(u->fmi, refs, n, p->binaries, values);
    case CRD_CLOCK:
        return crdi_fail(u->base.ctx, CRD_E_UNSUPPORTED, "clocks cannot be set here");
    default:
        return crd_fmi_set_integer(u->fmi, run->type, refs, n, v->integer + at, values);
    }
}

static bool same_bytes(const crd_bytes* a, const crd_bytes* b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}

// Whether a run differs from what was sent last; remembers it.
static crd_status note_change(crdi_fmi_unit* u, crdi_fmi_prepared* p, const crdi_fmi_run* run,
                              const crd_values* v, bool* changed)
{
    const size_t at = (size_t)run->offset, n = (size_t)run->values;
    switch (crd_type_kind(run->type)) {
    case CRD_REAL:
        *changed = *changed || memcmp(p->last.real + at, v->real + at, n * sizeof *v->real) != 0;
        memcpy(p->last.real + at, v->real + at, n * sizeof *v->real);
        break;
    case CRD_INTEGER:
        *changed =
            *changed || memcmp(p->last.integer + at, v->integer + at, n * sizeof *v->integer) != 0;
        memcpy(p->last.integer + at, v->integer + at, n * sizeof *v->integer);
        break;
    case CRD_BYTES:
        for (size_t k = at; k < at + n; k++) {
            if (same_bytes(&p->last.bytes[k], &v->bytes[k])) { continue; }
            *changed = true;
            const crd_status st =
                crd_bytes_set(u->base.ctx, &p->last.bytes[k], v->bytes[k].data, v->bytes[k].length);
            if (st < 0) { return st; }
        }
        break;
    }
    return CRD_OK;
}

// Between steps FMI 3, and Model Exchange, take discrete inputs in event mode only: a change of one
// is an event.
static crd_status set_discrete(crdi_fmi_unit* u, crdi_fmi_prepared* p, const crd_values* v)
{
    crd_status st = CRD_OK;
    const crd_fmi_state now = crd_fmi_get_state(u->fmi);
    const bool between = u->event_mode && (now == CRD_FMI_STEP || now == CRD_FMI_CONTINUOUS);
    bool changed = p->sent != u->epoch;
    for (int32_t r = 0; r < p->run_count; r++) {
        if (p->runs[r].discrete) { CRD_TRY(note_change(u, p, &p->runs[r], v, &changed)); }
    }
    if (between && !changed) { return CRD_OK; }
    // FMI 1 that is initialised already has to look at them in an event
    const bool late = u->d->version == CRD_FMI_1 && now == CRD_FMI_EVENT;
    if (between || late) { CRD_TRY(crd_fmi_enter_event_mode(u->fmi)); }
    for (int32_t r = 0; r < p->run_count; r++) {
        if (p->runs[r].discrete) { CRD_TRY(set_run(u, p, &p->runs[r], v)); }
    }
    p->sent = u->epoch;
    u->sent++;
    if (between) {
        u->base.events++;
        CRD_TRY(u->settle(u));
    }
fail:
    return st;
}

CRDI_COLD static crd_status set_others(crdi_fmi_unit* u, crdi_fmi_prepared* p, const crd_values* v)
{
    crd_status st = CRD_OK;
    for (int32_t r = 0; r < p->run_count; r++) {
        if (p->runs[r].discrete) { continue; }
        CRD_TRY(set_run(u, p, &p->runs[r], v));
        if (p->runs[r].type != CRD_FLOAT64) { u->changed = u->jumped = true; } // not remembered
    }
    if (p->has_discrete) { CRD_TRY(set_discrete(u, p, v)); }
    if (u->curved) {
        crdi_fmi_curves* c = &p->curves;
        for (int32_t k = 0; k < c->count; k++) {
            c->u[0][k] = c->sign[k] * v->real[c->at[k]];
        }
        c->order = 0;
        u->step_begin = u->now;
    }
fail:
    return st;
}

void crdi_fmi_unit_keep_inputs(crdi_fmi_unit* u)
{
    for (crdi_fmi_prepared* p = u->curved; p; p = p->next) {
        crdi_fmi_curves* c = &p->curves;
        memcpy(c->last, c->order ? c->values : c->u[0], (size_t)c->count * sizeof *c->last);
        c->last_order = c->order;
    }
}

void crdi_fmi_unit_compare_inputs(crdi_fmi_unit* u, const crdi_fmi_prepared* p)
{
    const crdi_fmi_curves* c = &p->curves;
    const double jump = c->last_order ? CURVE_JUMP : u->jump;
    for (int32_t k = 0; k < c->count; k++) {
        const double x = c->u[0][k], before = c->last[k];
        u->changed |= x != before;
        u->jumped |= fabs(x - before) > jump * (fabs(x) + fabs(before));
    }
}

crd_status crdi_fmi_unit_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crdi_fmi_prepared* p = b->prepared;
    u->was_set = true;
    if (p->plain_set) {
        return crd_fmi_set_real(u->fmi, p->refs, p->ref_count, v->real, p->value_count);
    }
    return set_others(u, p, v);
}

// ---- get ---------------------------------------------------------------------------------------

CRDI_COLD static crd_status get_run(crdi_fmi_unit* u, const crdi_fmi_prepared* p,
                                    const crdi_fmi_run* run, crd_values* v)
{
    crd_status st = CRD_OK;
    const uint32_t* refs = p->refs + run->first;
    const size_t n = (size_t)run->count, values = (size_t)run->values, at = (size_t)run->offset;
    switch (run->type) {
    case CRD_FLOAT64:
        return crd_fmi_get_real(u->fmi, refs, n, v->real + at, values);
    case CRD_FLOAT32:
        return crd_fmi_get_float32(u->fmi, refs, n, v->real + at, values);
    case CRD_STRING:
        CRD_TRY(crd_fmi_get_string(u->fmi, refs, n, p->texts, values));
        for (size_t k = 0; k < values; k++) {
            const char* text = p->texts[k] ? p->texts[k] : "";
            CRD_TRY(crd_bytes_set(u->base.ctx, &v->bytes[at + k], text, strlen(text)));
        }
        return CRD_OK;
    case CRD_BINARY:
        CRD_TRY(crd_fmi_get_binary(u->fmi, refs, n, p->binaries, values));
        for (size_t k = 0; k < values; k++) {
            const crd_fmi_binary* x = &p->binaries[k];
            CRD_TRY(crd_bytes_set(u->base.ctx, &v->bytes[at + k], x->data, x->data ? x->size : 0));
        }
        return CRD_OK;
    case CRD_CLOCK: // ticks belong to event mode; between steps no clock ticks
        memset(v->integer + at, 0, values * sizeof *v->integer);
        return CRD_OK;
    default:
        return crd_fmi_get_integer(u->fmi, run->type, refs, n, v->integer + at, values);
    }
fail:
    return st;
}

CRDI_COLD static crd_status get_others(crdi_fmi_unit* u, const crdi_fmi_prepared* p, crd_values* v)
{
    for (int32_t r = 0; r < p->run_count; r++) {
        const crd_status st = get_run(u, p, &p->runs[r], v);
        if (st < 0) { return st; }
        if (p->runs[r].negated) { flip(&p->runs[r], v, v); }
    }
    return CRD_OK;
}

// FMI 1 has no values before it is initialised, and inputs are wanted before: they are their
// settings, else their start values. Once inputs are set, who reads wants outputs: some are aliases
// of inputs.
CRDI_COLD static crd_status get_start_inputs(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    for (int32_t j = 0; j < b->count; j++) {
        const crd_variable* x = &unit->info.variables[b->variables[j]];
        const crd_kind kind = crd_type_kind((crd_type)x->type);
        const int32_t at = b->offsets[j];
        const crdi_setting* s = crdi_unit_setting(unit, b->variables[j]);
        crd_values start = {0};
        crd_status st = s ? CRD_OK : crdi_unit_values_init(unit->ctx, &start, kind, x->size);
        if (st == CRD_OK && !s && x->start) {
            st = crdi_unit_parse_start(unit, b->variables[j], &start, x->size);
        }
        if (st == CRD_OK) {
            const crd_values* from = s ? &s->values : &start;
            st = crdi_unit_values_copy(unit->ctx, kind, x->size, from, 0, v, at);
        }
        if (!s) { crdi_unit_values_clear(unit->ctx, &start, x->size); }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_fmi_unit_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const crdi_fmi_prepared* p = b->prepared;
    if (p->only_inputs && !u->was_set && u->d->version == CRD_FMI_1 &&
        crd_fmi_get_state(u->fmi) == CRD_FMI_INITIALIZATION) {
        return get_start_inputs(unit, b, v);
    }
    if (p->plain_get) {
        return crd_fmi_get_real(u->fmi, p->refs, p->ref_count, v->real, p->value_count);
    }
    return get_others(u, p, v);
}

// ---- derivatives -------------------------------------------------------------------------------

crd_status crdi_fmi_unit_set_derivatives(crd_unit* unit, const crd_binding* b,
                                         const double* const* d, int order)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crdi_fmi_curves* c = &((crdi_fmi_prepared*)b->prepared)->curves;
    if (!c->count || order < 1) { return CRD_OK; }
    if (order > unit->info.max_input_order) { order = unit->info.max_input_order; }
    const bool two = !u->own_curves;
    for (int o = 0; o < CRD_MODEL_MAX_ORDER; o++) {
        double* to = two ? c->values + (size_t)o * (size_t)c->count : c->u[o + 1];
        for (int32_t k = 0; k < c->count; k++) {
            to[k] = o < order ? c->sign[k] * d[o][c->at[k]] : 0;
        }
    }
    if (!two) {
        c->order = order;
        return CRD_OK;
    }
    if (order < c->order) { order = c->order; } // what was sent once stays: it has to become 0
    c->order = order;
    for (int o = 1; o <= order; o++) { // some FMUs take one order in a call
        const size_t first = (size_t)(o - 1) * (size_t)c->count;
        const crd_status st = crd_fmi_set_input_derivatives(u->fmi, c->refs, (size_t)c->count,
                                                            c->orders + first, c->values + first);
        if (st < 0) { return crdi_fail_in(unit->ctx, st, "input derivatives of order %d", o); }
    }
    return CRD_OK;
}

crd_status crdi_fmi_unit_move_inputs(crdi_fmi_unit* u, double t)
{
    const double tau = t - u->step_begin;
    for (crdi_fmi_prepared* p = u->curved; p; p = p->next) {
        crdi_fmi_curves* c = &p->curves;
        if (!c->order) { continue; }
        for (int32_t k = 0; k < c->count; k++) {
            c->values[k] = c->u[0][k] + tau * (c->u[1][k] + 0.5 * tau * c->u[2][k]);
        }
        const crd_status st =
            crd_fmi_set_real(u->fmi, c->refs, (size_t)c->ref_count, c->values, (size_t)c->count);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_fmi_unit_get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    crdi_fmi_prepared* p = b->prepared;
    memset(d, 0, (size_t)b->real_count * sizeof *d);
    if (!p->derivative_count || order > unit->info.max_output_order) { return CRD_OK; }
    for (int32_t k = 0; k < p->derivative_count; k++) {
        p->orders[k] = order;
    }
    const crd_status st = crd_fmi_get_output_derivatives(
        u->fmi, p->derivative_refs, (size_t)p->derivative_count, p->orders, p->derivatives);
    for (int32_t k = 0; st == CRD_OK && k < p->derivative_count; k++) {
        d[p->derivative_at[k]] = p->derivative_sign[k] * p->derivatives[k];
    }
    return st;
}
