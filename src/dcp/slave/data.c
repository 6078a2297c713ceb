// Values of a slave: where they start, how they come in and go out.
#include "dcp/slave/slave.h"

#include <math.h>
#include <string.h>

// ---- memory ------------------------------------------------------------------------------------

static bool is_structural(const crd_dcp_variable* v)
{
    return v->causality == CRD_STRUCTURAL_PARAMETER;
}

crd_status crdi_dcp_slave_values_create(crd_dcp_slave* s)
{
    const int count = s->d->variable_count;
    const crdi_dcp_room room = {.elements = (uint32_t)s->opt.max_elements,
                                .text = s->opt.max_text,
                                .most =
                                    s->opt.max_pdu, // of the smallest type that it may be fed with
                                .most_text = s->opt.max_pdu};
    s->marks = crdi_arena_new(&s->arena, (size_t)count, sizeof *s->marks);
    s->dirty = crdi_arena_new(&s->arena, (size_t)count, sizeof *s->dirty);
    s->pool_room = 2 * count;
    s->pool = crdi_arena_new(&s->arena, (size_t)s->pool_room, sizeof *s->pool);
    s->pool_types = crdi_arena_new(&s->arena, (size_t)s->pool_room, 1);
    if (!s->marks || !s->dirty || !s->pool || !s->pool_types ||
        crdi_dcp_values_create(&s->arena, s->d, &room, NULL, &s->values) < 0) {
        return CRD_E_MEMORY;
    }
    uint32_t numbers = 1, bytes = 1;
    for (int i = 0; i < count; i++) {
        uint32_t* most = crdi_dcp_is_bytes(s->values[i].slot.type) ? &bytes : &numbers;
        if (s->values[i].capacity > *most) { *most = s->values[i].capacity; }
    }
    // Parameters are looked at before they count.
    s->scratch.real = crdi_arena_new(&s->arena, numbers, sizeof(double));
    s->scratch.integer = crdi_arena_new(&s->arena, numbers, sizeof(int64_t));
    s->scratch.bytes = crdi_arena_new(&s->arena, bytes, 1);
    s->scratch.byte_count = &s->scratch_bytes;
    return s->scratch.real && s->scratch.integer && s->scratch.bytes ? CRD_OK : CRD_E_MEMORY;
}

// ---- start values ------------------------------------------------------------------------------

static void resize(crd_dcp_slave* s)
{
    for (int i = 0; i < s->d->variable_count; i++) {
        if (s->d->variables[i].rank == 0 || crdi_dcp_is_bytes(s->values[i].slot.type)) { continue; }
        s->values[i].slot.count = (uint32_t)crdi_dcp_elements(s->d, s->values, i, -1, 0);
    }
}

static void mark_dirty(crd_dcp_slave* s, int variable)
{
    if (s->marks[variable].dirty) { return; }
    s->marks[variable].dirty = true;
    s->dirty[s->dirty_count++] = variable;
}

void crdi_dcp_slave_values_restart(crd_dcp_slave* s)
{
    s->dirty_count = 0;
    for (int i = 0; i < s->d->variable_count; i++) {
        s->marks[i].dirty = false;
        crdi_dcp_value_restart(s->d, s->values, i);
        if (s->marks[i].touched) { mark_dirty(s, i); }
    }
    resize(s);
}

// ---- from the master ---------------------------------------------------------------------------

static bool within(const crd_dcp_variable* v, const crd_dcp_slot* slot)
{
    if (crdi_dcp_is_bytes(slot->type) || (isnan(v->min) && isnan(v->max))) { return true; }
    for (uint32_t i = 0; i < slot->count; i++) {
        const double x = crdi_dcp_slot_number(slot, i);
        // written so that a value that is NaN is outside, and a limit that is NaN none
        if ((!isnan(v->min) && !(x >= v->min)) || (!isnan(v->max) && !(x <= v->max))) {
            return false;
        }
    }
    return true;
}

// Whether all arrays have room for a structural parameter of this value.
static bool sizes_fit(const crd_dcp_slave* s, int structural, uint64_t to)
{
    if (to == 0 || to > UINT32_MAX) { return false; }
    for (int i = 0; i < s->d->variable_count; i++) {
        for (int k = 0; k < s->d->variables[i].rank; k++) {
            if (s->values[i].linked[k] == structural &&
                crdi_dcp_elements(s->d, s->values, i, structural, to) > s->values[i].capacity) {
                return false;
            }
        }
    }
    return true;
}

crd_dcp_error crdi_dcp_set_parameter(crd_dcp_slave* s, int variable, uint8_t type,
                                     const uint8_t* payload, size_t length)
{
    const crd_dcp_variable* v = &s->d->variables[variable];
    crdi_dcp_value* value = &s->values[variable];
    if (value->slot.count > value->capacity && !crdi_dcp_is_bytes(v->type)) {
        return CRD_DCP_E_PDU_SIZE;
    }
    s->scratch.type = value->slot.type;
    s->scratch.count = value->slot.count;
    s->scratch.max_size = value->slot.max_size;
    const crd_dcp_error error = crdi_dcp_take(&s->scratch, &type, 1, payload, length);
    if (error != CRD_DCP_NONE) { return error; }
    const bool structural = is_structural(v);
    if (structural && !sizes_fit(s, variable, (uint64_t)s->scratch.integer[0])) {
        return CRD_DCP_E_INVALID_PAYLOAD;
    }
    if (!within(v, &s->scratch)) {
        s->counts.out_of_range++;
        if (s->opt.check_range) { return CRD_DCP_E_PROPERTY_VIOLATED; }
    }
    crdi_dcp_slot_copy(&value->slot, &s->scratch);
    mark_dirty(s, variable);
    if (structural) { resize(s); }
    return CRD_DCP_NONE;
}

// ---- to the plant ------------------------------------------------------------------------------

static bool is_parameter(const crd_dcp_variable* v)
{
    return v->causality == CRD_PARAMETER || is_structural(v);
}

// False: the plant did not take it, or has moved the slave on.
static bool hand_over(crd_dcp_slave* s, int variable)
{
    const uint64_t entry = s->entry;
    s->marks[variable].dirty = false;
    s->marks[variable].touched = true;
    if (!s->plant.set) { return true; }
    if (s->plant.set(s->plant.user, variable, &s->values[variable].slot) != CRD_DCP_DONE) {
        crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
    }
    return s->entry == entry;
}

void crdi_dcp_latch(crd_dcp_slave* s, bool all)
{
    int kept = 0;
    const int count = s->dirty_count;
    for (int pass = all ? 1 : 0; pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            const int variable = s->dirty[i];
            const bool first = is_structural(&s->d->variables[variable]);
            if (!s->marks[variable].dirty || (pass == 0 && !first)) { continue; }
            if (!all && !is_parameter(&s->d->variables[variable])) { continue; }
            if (!hand_over(s, variable)) { return; } // in error: everything is forgotten later
        }
    }
    for (int i = 0; i < count; i++) {
        if (s->marks[s->dirty[i]].dirty) { s->dirty[kept++] = s->dirty[i]; }
    }
    s->dirty_count = kept;
}

// ---- data PDUs ---------------------------------------------------------------------------------

static bool in_scope(const crdi_dcp_group* g, crd_dcp_state state)
{
    return g->parameters || g->scope == CRDI_DCP_ALWAYS ||
           (g->scope == CRDI_DCP_RUN) == crdi_dcp_in_run(state);
}

// What a list's payload is read into or made of, neighbours in memory as one: by STC_prepare, or
// now where there was no room for it.
static int slots_of(crd_dcp_slave* s, const crdi_dcp_list* l, const crd_dcp_slot** slots,
                    const uint8_t** types)
{
    if (l->slots) {
        *slots = l->slots;
        *types = l->types;
        return l->slot_count;
    }
    for (int i = 0; i < l->end; i++) {
        s->slots[i] = s->values[l->entries[i].variable].slot;
        s->types[i] = l->entries[i].type;
    }
    *slots = s->slots;
    *types = s->types;
    return crdi_dcp_join(s->slots, s->types, l->end);
}

static void join_list(crd_dcp_slave* s, crdi_dcp_list* l)
{
    const crd_dcp_slot* slots = NULL;
    const uint8_t* types = NULL;
    l->slots = NULL;
    const int count = slots_of(s, l, &slots, &types);
    if (count == 0 || count > s->pool_room - s->pool_used) { return; }
    l->slots = s->pool + s->pool_used;
    l->types = s->pool_types + s->pool_used;
    l->slot_count = count;
    s->pool_used += count;
    memcpy(l->slots, slots, (size_t)count * sizeof *slots);
    memcpy(l->types, types, (size_t)count * sizeof *types);
}

void crdi_dcp_join_groups(crd_dcp_slave* s)
{
    s->pool_used = 0;
    for (int i = 0; i < s->group_count; i++) {
        s->groups[i].sender = (crd_dcp_address){0};
        join_list(s, &s->groups[i].in);
        join_list(s, &s->groups[i].out);
    }
}

static bool decode_group(crd_dcp_slave* s, const crdi_dcp_group* g, const crdi_dcp_pdu* p)
{
    const crd_dcp_slot* slots = NULL;
    const uint8_t* types = NULL;
    const int count = slots_of(s, &g->in, &slots, &types);
    return crdi_dcp_take(slots, types, count, p->payload, p->payload_length) == CRD_DCP_NONE;
}

// Whose data count. The master's always do, from the address and port that have registered; a bench
// takes no others. Elsewhere (one slave to another, or a connection that is for data only and has a
// port of its own) a data_id belongs to who was the first, until the master itself sends it or says
// STC_prepare again.
static bool may_send(const crd_dcp_slave* s, const crdi_dcp_group* g, const crd_dcp_address* from)
{
    if (crd_dcp_address_equal(from, &s->master)) { return true; }
    const bool stream = from->transport == CRD_DCP_TCP && from->ip == s->master.ip;
    if (s->one_sender || (g->parameters && !stream)) { return false; }
    return g->sender.port == 0 || crd_dcp_address_equal(&g->sender, from);
}

void crdi_dcp_receive_data(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* p)
{
    const bool parameters = p->type == CRDI_DCP_DAT_PARAMETER;
    const bool here = crdi_dcp_allowed(s->state, p->type, s->mode);
    crdi_dcp_group* g = here ? crdi_dcp_find_group(s, p->id, parameters) : NULL;
    if (!g || g->in.count == 0 || !in_scope(g, s->state)) {
        s->counts.data_dropped++;
        return;
    }
    if (!may_send(s, g, from)) { // before it is looked at: its number counts for nothing
        s->counts.data_foreign++;
        return;
    }
    const int gap = crdi_dcp_sequence_gap(&g->arrived_seq, p->seq);
    if (gap < 0) {
        const bool repeated = crdi_dcp_sequence_repeated(&g->arrived_seq, p->seq);
        s->counts.data_old++;
        *(repeated ? &s->counts.data_duplicates : &s->counts.data_reordered) += 1;
        return;
    }
    if (!decode_group(s, g, p)) {
        s->counts.data_dropped++;
        return;
    }
    crdi_dcp_sequence_take(&g->arrived_seq, p->seq);
    g->sender = *from;
    s->counts.data_in++;
    s->counts.data_missed += gap;
    bool good = true;
    for (int i = 0; i < g->in.end; i++) {
        const int variable = g->in.entries[i].variable;
        good = within(&s->d->variables[variable], &s->values[variable].slot) && good;
        mark_dirty(s, variable);
    }
    if (!good) { s->counts.out_of_range++; }
    const bool watched = (g->steep || g->edged) && crdi_dcp_in_run(s->state);
    const bool fine = !watched || crdi_dcp_watch_data(s, g, gap);
    if ((g->has_limit && (uint32_t)gap > g->limit) || (!good && s->opt.check_range) || !fine) {
        crdi_dcp_slave_fault(s, CRD_DCP_E_PROPERTY_VIOLATED);
        return;
    }
    // At once where time runs by itself; a step that is under way has begun with the old values.
    if (s->mode != CRD_DCP_NRT && crdi_dcp_in_run(s->state) && s->pending == CRDI_NOTHING) {
        crdi_dcp_latch(s, true);
    }
}

// Asks the plant for the values of a group; false: it has failed.
static bool collect(crd_dcp_slave* s, const crdi_dcp_group* g)
{
    const uint64_t entry = s->entry;
    for (int i = 0; i < g->out.end; i++) {
        const int variable = g->out.entries[i].variable;
        crd_dcp_slot slot = s->values[variable].slot; // the plant writes values, not where they are
        if (s->plant.get && s->plant.get(s->plant.user, variable, &slot) != CRD_DCP_DONE) {
            crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
        }
        if (s->entry != entry) { return false; }
    }
    return true;
}

void crdi_dcp_send_group(crd_dcp_slave* s, crdi_dcp_group* g)
{
    if (!collect(s, g)) { return; }
    const crd_dcp_slot* slots = NULL;
    const uint8_t* types = NULL;
    const int count = slots_of(s, &g->out, &slots, &types);
    const crdi_dcp_pdu head = {.type = CRDI_DCP_DAT_INPUT_OUTPUT, .seq = g->seq_out, .id = g->id};
    const size_t at = crdi_dcp_encode(&head, s->pdu, s->opt.max_pdu);
    const size_t length = at + crdi_dcp_put(slots, count, s->pdu + at, s->opt.max_pdu - at);
    g->seq_out++;
    for (int i = 0; i < g->target_count; i++) {
        const bool fits = length <= crdi_dcp_max_pdu(s, g->targets[i].transport);
        if (!fits) {
            s->counts.send_failed++;
        } else if (crdi_dcp_slave_send(s, &g->targets[i], length)) {
            s->counts.data_out++;
        }
    }
}
