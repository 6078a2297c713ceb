// Which variables of each unit are exchanged, and where their values stand.
#include "master/master.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_ROOM = 256 }; // to begin with, of a text or binary

crd_status crdi_values_create(crd_master* m, const crd_binding* b, crd_values* out)
{
    out->real = crdi_arena_new(&m->arena, (size_t)b->real_count, sizeof *out->real);
    out->integer = crdi_arena_new(&m->arena, (size_t)b->integer_count, sizeof *out->integer);
    out->bytes = crdi_arena_new(&m->arena, (size_t)b->bytes_count, sizeof *out->bytes);
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

crd_status crdi_member_refused(crd_master* m, const crdi_member* p, crd_status st)
{
    const char* text = crd_error_text(p->unit->ctx);
    return text[0] ? crdi_fail(m->ctx, st, "unit '%s': %s", p->unit->name, text) : st;
}

static int by_number(const void* a, const void* b)
{
    const int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
    return x < y ? -1 : x > y;
}

static int32_t unique(int32_t* list, int32_t count)
{
    int32_t n = 0;
    if (count) { qsort(list, (size_t)count, sizeof *list, by_number); }
    for (int32_t i = 0; i < count; i++) {
        if (n == 0 || list[n - 1] != list[i]) { list[n++] = list[i]; }
    }
    return n;
}

// position[variable] in a binding, for the variables that are in it
static void note_positions(const crd_binding* b, int32_t* position)
{
    for (int32_t i = 0; b && i < b->count; i++) {
        position[b->variables[i]] = i;
    }
}

// An input whose derivatives the unit is not told rests for it over the step. What an output's
// derivatives are worth then: y' = C (A x + B u) + D u' needs u' only with feedthrough, y'' needs
// it always. With a known gain D u' is added by the master.
static int worth_of_rates(const crd_master* m, const crdi_member* p, const crdi_link* out,
                          const int* incoming, int in_count)
{
    const uint32_t flags = p->unit->info.flags;
    const bool gain = !(flags & CRD_UNIT_CAN_REFRESH) && (flags & CRD_UNIT_HAS_DIRECTIONAL);
    int order = 2;
    for (int i = 0; i < in_count; i++) {
        const crdi_link* k = &m->links[incoming[i]];
        if (!k->real) { continue; }
        int told = crdi_link_flows(m, k) ? crdi_link_order(m, k) : 0;
        told = told < p->slope_order ? told : p->slope_order;
        const bool feeds = crd_unit_depends(p->unit, out->from_variable, k->to_variable, false);
        told += gain || !feeds;
        order = told < order ? told : order;
    }
    return order;
}

static crd_status bind_member(crd_master* m, crdi_member* p, int32_t* list, const int* incoming,
                              int in_count, const int* outgoing, int out_count)
{
    crd_status st = CRD_OK;
    crd_unit* u = p->unit;
    int32_t* position = NULL;
    bool needs_rates = false;
    for (int i = 0; i < in_count; i++) {
        list[i] = m->links[incoming[i]].to_variable;
    }
    const int32_t in = unique(list, in_count);
    if (in) {
        CRD_TRY(crd_binding_create(u, list, in, &p->in));
        CRD_TRY(crdi_values_create(m, p->in, &p->inputs));
    }
    for (int i = 0; i < out_count; i++) {
        list[i] = m->links[outgoing[i]].from_variable;
    }
    const int32_t out = unique(list, out_count);
    if (out) {
        CRD_TRY(crd_binding_create(u, list, out, &p->out));
        CRD_TRY(crdi_values_create(m, p->out, &p->outputs));
        m->output_count += (size_t)p->out->real_count;
    }

    position = crdi_new_array(m->ctx, (size_t)u->info.variable_count, sizeof *position);
    if (!position) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    note_positions(p->in, position);
    for (int i = 0; i < in_count; i++) {
        crdi_link* k = &m->links[incoming[i]];
        k->to_position = position[k->to_variable];
        k->to_slot = p->in->offsets[k->to_position] + k->to_element;
        const int order = k->slope ? 1 : crdi_link_flows(m, k) ? crdi_link_order(m, k) : 0;
        if (order > p->slope_order) { p->slope_order = order; }
    }
    note_positions(p->out, position);
    for (int i = 0; i < out_count; i++) {
        crdi_link* k = &m->links[outgoing[i]];
        k->from_position = position[k->from_variable];
        k->from_slot = p->out->offsets[k->from_position] + k->from_element;
        const bool flows = crdi_link_flows(m, k);
        p->feeds_flow = p->feeds_flow || flows;
        needs_rates = needs_rates || (flows && k->spec->predict != CRD_PREDICTION_LINEAR &&
                                      k->spec->predict != CRD_PREDICTION_QUADRATIC);
    }
    if (p->slope_order > u->info.max_input_order) { p->slope_order = u->info.max_input_order; }
    u->input_order = p->slope_order;
    for (int i = 0; i < out_count && needs_rates; i++) {
        crdi_link* k = &m->links[outgoing[i]];
        k->rate_order = worth_of_rates(m, p, k, incoming, in_count);
    }
    for (int d = 0; d < p->slope_order; d++) {
        p->slopes[d] = crdi_arena_new(&m->arena, (size_t)p->in->real_count, sizeof(double));
        if (!p->slopes[d]) { st = CRD_E_MEMORY; }
    }
    for (int d = 0; needs_rates && d < 2 && d < u->info.max_output_order; d++) {
        p->rates[d] = crdi_arena_new(&m->arena, (size_t)p->out->real_count, sizeof(double));
        if (!p->rates[d]) { st = CRD_E_MEMORY; }
    }
    // A unit with a step of its own may make an odd number of them.
    if (m->samples_middle && p->feeds_flow && !(p->step > 0) &&
        (u->info.flags & CRD_UNIT_CAN_VARY_STEP)) {
        p->middles = crdi_arena_new(&m->arena, (size_t)p->out->real_count, sizeof(double));
        if (!p->middles) { st = CRD_E_MEMORY; }
    }
fail:
    crd_free(m->ctx, position);
    return st < 0 ? crdi_member_refused(m, p, st) : CRD_OK;
}

// Links sorted by member: list[first[i]] ... list[first[i+1]-1] belong to member i.
static void sort_by_member(const crd_master* m, bool target, int* first, int* list)
{
    memset(first, 0, ((size_t)m->member_count + 2) * sizeof *first);
    for (int i = 0; i < m->link_count; i++) {
        first[(target ? m->links[i].to_member : m->links[i].from_member) + 2]++;
    }
    for (int i = 2; i <= m->member_count; i++) {
        first[i] += first[i - 1];
    }
    for (int i = 0; i < m->link_count; i++) {
        list[first[(target ? m->links[i].to_member : m->links[i].from_member) + 1]++] = i;
    }
}

// The real outputs of all units in one row: they are looked through after every tick.
static crd_status gather_outputs(crd_master* m)
{
    m->outputs = crdi_arena_new(&m->arena, m->output_count, sizeof *m->outputs);
    if (!m->outputs) { return CRD_E_MEMORY; }
    double* next = m->outputs;
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        if (!p->out) { continue; }
        p->outputs.real = next;
        next += p->out->real_count;
    }
    return CRD_OK;
}

crd_status crdi_master_bind(crd_master* m)
{
    crd_status st = CRD_E_MEMORY;
    const size_t members = (size_t)m->member_count + 2, links = (size_t)m->link_count + 1;
    int* in_first = crdi_new_array(m->ctx, members, sizeof *in_first);
    int* out_first = crdi_new_array(m->ctx, members, sizeof *out_first);
    int* in = crdi_new_array(m->ctx, links, sizeof *in);
    int* out = crdi_new_array(m->ctx, links, sizeof *out);
    int32_t* list = crdi_new_array(m->ctx, links, sizeof *list);
    if (!in_first || !out_first || !in || !out || !list) { goto fail; }
    sort_by_member(m, true, in_first, in);
    sort_by_member(m, false, out_first, out);
    for (int i = 0; i < m->member_count; i++) {
        CRD_TRY(bind_member(m, &m->members[i], list, in + in_first[i],
                            in_first[i + 1] - in_first[i], out + out_first[i],
                            out_first[i + 1] - out_first[i]));
    }
    st = gather_outputs(m);
fail:
    crd_free(m->ctx, in_first);
    crd_free(m->ctx, out_first);
    crd_free(m->ctx, in);
    crd_free(m->ctx, out);
    crd_free(m->ctx, list);
    return st;
}
