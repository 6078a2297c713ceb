// Values of a slave: where they start, how they come in and go out; and its log entries.
#include "dcp/slave/slave.h"

#include <math.h>
#include <string.h>

// ---- memory ------------------------------------------------------------------------------------

static bool is_real(uint8_t type)
{
    return type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64;
}

static bool is_text(uint8_t type)
{
    return type == CRD_DCP_STRING || type == CRD_DCP_BINARY;
}

// Unsigned integers of one element that say how large arrays are.
static bool is_structural(const crd_dcp_variable* v)
{
    return v->causality == CRD_STRUCTURAL_PARAMETER;
}

static uint64_t times(uint64_t a, uint64_t b) // no more than UINT32_MAX
{
    return a == 0 || b == 0 ? 0 : a > UINT32_MAX / b ? UINT32_MAX : a * b;
}

// Elements of an array if its structural parameter `changed` (-1: none) had the value `to`.
static uint64_t elements(const crd_dcp_slave* s, int variable, int changed, uint64_t to)
{
    const crd_dcp_variable* v = &s->d->variables[variable];
    uint64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        const int link = s->values[variable].linked[i];
        n = times(n, link < 0          ? v->dimensions[i]
                     : link == changed ? to
                                       : (uint64_t)*s->values[link].slot.integer);
    }
    return n;
}

// Elements to have room for: as many as the structural parameters may ask for, and a PDU can hold.
static uint32_t find_capacity(const crd_dcp_slave* s, int variable)
{
    const crd_dcp_variable* v = &s->d->variables[variable];
    uint64_t most = 1;
    for (int i = 0; i < v->rank; i++) {
        const int link = s->values[variable].linked[i];
        const double max = link < 0 ? NAN : s->d->variables[link].max;
        most = times(most, link < 0                       ? v->dimensions[i]
                           : max >= 1 && max < UINT32_MAX ? (uint64_t)max
                                                          : (uint64_t)s->opt.max_elements);
    }
    const uint64_t now = elements(s, variable, -1, 0);
    const uint64_t room = s->opt.max_pdu; // of the smallest type that it may be fed with
    if (most < now) { most = now; }
    return (uint32_t)(most < room ? most : room);
}

static void read_start(crd_dcp_slave* s, int variable);

// How much room a value takes.
static void size_value(crd_dcp_slave* s, int variable)
{
    const crd_dcp_variable* v = &s->d->variables[variable];
    crdi_dcp_value* value = &s->values[variable];
    if (is_text(v->type)) {
        const uint32_t wanted = v->max_size == UINT32_MAX ? s->opt.max_text : v->max_size;
        value->slot.max_size = wanted < s->opt.max_pdu ? wanted : s->opt.max_pdu;
        value->capacity = value->slot.max_size;
        value->slot.count = 1;
    } else {
        value->capacity = find_capacity(s, variable);
        value->slot.count = (uint32_t)elements(s, variable, -1, 0);
    }
}

// The values of one kind stand behind each other in the order of the description, so that a group
// of neighbours is copied as one. Both kinds of number take 8 bytes.
static crd_status make_values(crd_dcp_slave* s, bool structural)
{
    size_t numbers = 0, bytes = 0;
    for (int i = 0; i < s->d->variable_count; i++) {
        if (is_structural(&s->d->variables[i]) != structural) { continue; }
        size_value(s, i);
        *(is_text(s->values[i].slot.type) ? &bytes : &numbers) += s->values[i].capacity;
    }
    int64_t* number = crdi_arena_new(&s->arena, numbers, sizeof *number);
    uint8_t* byte = crdi_arena_new(&s->arena, bytes, 1);
    if (!number || !byte) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->d->variable_count; i++) {
        if (is_structural(&s->d->variables[i]) != structural) { continue; }
        crdi_dcp_value* value = &s->values[i];
        if (is_text(value->slot.type)) {
            value->slot.bytes = byte;
            value->slot.byte_count = &value->byte_count;
            byte += value->capacity;
        } else {
            value->slot.real = is_real(value->slot.type) ? (void*)number : NULL;
            value->slot.integer = is_real(value->slot.type) ? NULL : number;
            number += value->capacity;
        }
        read_start(s, i);
    }
    return CRD_OK;
}

// Structural parameters first: the sizes of the others hang on them.
crd_status crdi_dcp_values_create(crd_dcp_slave* s)
{
    const int count = s->d->variable_count;
    s->values = crdi_arena_new(&s->arena, (size_t)count, sizeof *s->values);
    s->dirty = crdi_arena_new(&s->arena, (size_t)count, sizeof *s->dirty);
    s->pool_room = 2 * count;
    s->pool = crdi_arena_new(&s->arena, (size_t)s->pool_room, sizeof *s->pool);
    s->pool_types = crdi_arena_new(&s->arena, (size_t)s->pool_room, 1);
    if (!s->values || !s->dirty || !s->pool || !s->pool_types) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        const crd_dcp_variable* v = &s->d->variables[i];
        s->values[i].slot.type = v->type;
        for (int k = 0; k < 8; k++) {
            const bool linked = k < v->rank && v->is_linked[k] && !is_structural(v);
            const int link = linked ? crd_dcp_find_vr(s->d, v->linked[k]) : -1;
            s->values[i].linked[k] = link >= 0 && is_structural(&s->d->variables[link]) ? link : -1;
        }
    }
    if (make_values(s, true) < 0 || make_values(s, false) < 0) { return CRD_E_MEMORY; }
    uint32_t numbers = 1, bytes = 1;
    for (int i = 0; i < count; i++) {
        uint32_t* most = is_text(s->values[i].slot.type) ? &bytes : &numbers;
        if (s->values[i].capacity > *most) { *most = s->values[i].capacity; }
    }
    // Parameters are looked at in the probe before they count.
    s->probe.real = crdi_arena_new(&s->arena, numbers, sizeof(double));
    s->probe.integer = crdi_arena_new(&s->arena, numbers, sizeof(int64_t));
    s->probe.bytes = crdi_arena_new(&s->arena, bytes, 1);
    s->probe.byte_count = &s->probe_bytes;
    return s->probe.real && s->probe.integer && s->probe.bytes ? CRD_OK : CRD_E_MEMORY;
}

// ---- start values ------------------------------------------------------------------------------

// Fills all that there is room for, so that an array that grows has start values.
static void read_start(crd_dcp_slave* s, int variable)
{
    crdi_dcp_value* value = &s->values[variable];
    crdi_dcp_read_start(s->d->variables[variable].start, &value->slot, value->capacity);
}

static void resize(crd_dcp_slave* s)
{
    for (int i = 0; i < s->d->variable_count; i++) {
        if (s->d->variables[i].rank == 0 || is_text(s->values[i].slot.type)) { continue; }
        s->values[i].slot.count = (uint32_t)elements(s, i, -1, 0);
    }
}

static void mark(crd_dcp_slave* s, int variable)
{
    if (s->values[variable].dirty) { return; }
    s->values[variable].dirty = true;
    s->dirty[s->dirty_count++] = variable;
}

void crdi_dcp_values_restart(crd_dcp_slave* s)
{
    s->dirty_count = 0;
    for (int i = 0; i < s->d->variable_count; i++) {
        s->values[i].dirty = false;
        read_start(s, i);
        if (s->values[i].touched) { mark(s, i); }
    }
    resize(s);
}

// ---- from the master ---------------------------------------------------------------------------

static bool within(const crd_dcp_variable* v, const crd_dcp_slot* slot)
{
    if (is_text(slot->type) || (isnan(v->min) && isnan(v->max))) { return true; }
    for (uint32_t i = 0; i < slot->count; i++) {
        const double x = is_real(slot->type)            ? slot->real[i]
                         : slot->type == CRD_DCP_UINT64 ? (double)(uint64_t)slot->integer[i]
                                                        : (double)slot->integer[i];
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
                elements(s, i, structural, to) > s->values[i].capacity) {
                return false;
            }
        }
    }
    return true;
}

static void copy_value(crdi_dcp_value* value, const crd_dcp_slot* from)
{
    const size_t numbers = (size_t)value->slot.count * sizeof(int64_t);
    if (is_text(value->slot.type)) {
        value->byte_count = *from->byte_count;
        memcpy(value->slot.bytes, from->bytes, value->byte_count);
    } else if (is_real(value->slot.type)) {
        memcpy(value->slot.real, from->real, numbers);
    } else {
        memcpy(value->slot.integer, from->integer, numbers);
    }
}

crd_dcp_error crdi_dcp_set_parameter(crd_dcp_slave* s, int variable, uint8_t type,
                                     const uint8_t* payload, size_t length)
{
    const crd_dcp_variable* v = &s->d->variables[variable];
    crdi_dcp_value* value = &s->values[variable];
    if (value->slot.count > value->capacity && !is_text(v->type)) { return CRD_DCP_E_PDU_SIZE; }
    s->probe.type = value->slot.type;
    s->probe.count = value->slot.count;
    s->probe.max_size = value->slot.max_size;
    const crd_dcp_error error = crd_dcp_take(&s->probe, &type, 1, payload, length);
    if (error != CRD_DCP_NONE) { return error; }
    const bool structural = is_structural(v);
    if (structural && !sizes_fit(s, variable, (uint64_t)s->probe.integer[0])) {
        return CRD_DCP_E_INVALID_PAYLOAD;
    }
    if (!within(v, &s->probe)) {
        s->counts.out_of_range++;
        if (s->opt.check_range) { return CRD_DCP_E_PROPERTY_VIOLATED; }
    }
    copy_value(value, &s->probe);
    mark(s, variable);
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
    s->values[variable].dirty = false;
    s->values[variable].touched = true;
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
            if (!s->values[variable].dirty || (pass == 0 && !first)) { continue; }
            if (!all && !is_parameter(&s->d->variables[variable])) { continue; }
            if (!hand_over(s, variable)) { return; } // in error: everything is forgotten later
        }
    }
    for (int i = 0; i < count; i++) {
        if (s->values[s->dirty[i]].dirty) { s->dirty[kept++] = s->dirty[i]; }
    }
    s->dirty_count = kept;
}

// ---- data PDUs ---------------------------------------------------------------------------------

static bool in_run(crd_dcp_state state)
{
    return state >= CRD_DCP_SYNCHRONIZING && state <= CRD_DCP_SENDING_D;
}

static bool in_scope(const crdi_dcp_group* g, crd_dcp_state state)
{
    return g->parameters || g->scope == CRD_DCP_ALWAYS ||
           (g->scope == CRD_DCP_RUN) == in_run(state);
}

// How many PDUs lie between the last one and this, -1: it is that one or older. The first one that
// comes is right, whatever its sequence id.
static int missed(const crdi_dcp_group* g, uint16_t seq)
{
    if (!g->has_seq_in) { return 0; }
    const uint16_t ahead = (uint16_t)(seq - g->seq_in);
    return ahead == 0 || ahead > INT16_MAX ? -1 : ahead - 1;
}

// An old one came before, or was overtaken; nobody repeats one that is older than the window.
static void count_old(crd_dcp_slave* s, crdi_dcp_group* g, uint16_t behind)
{
    const uint64_t bit = behind < 64 ? UINT64_C(1) << behind : 0;
    s->counts.data_old++;
    if (g->window & bit) {
        s->counts.data_duplicates++;
    } else {
        s->counts.data_reordered++;
    }
    g->window |= bit;
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
    return crd_dcp_join(s->slots, s->types, l->end);
}

static void join(crd_dcp_slave* s, crdi_dcp_list* l)
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
        join(s, &s->groups[i].in);
        join(s, &s->groups[i].out);
    }
}

static bool take(crd_dcp_slave* s, const crdi_dcp_group* g, const crd_dcp_pdu* p)
{
    const crd_dcp_slot* slots = NULL;
    const uint8_t* types = NULL;
    const int count = slots_of(s, &g->in, &slots, &types);
    return crd_dcp_take(slots, types, count, p->payload, p->payload_length) == CRD_DCP_NONE;
}

void crdi_dcp_receive_data(crd_dcp_slave* s, const crd_dcp_pdu* p)
{
    const bool parameters = p->type == CRD_DCP_DAT_PARAMETER;
    const bool here = crd_dcp_allowed(s->state, p->type, s->mode);
    crdi_dcp_group* g = here ? crdi_dcp_find_group(s, p->id, parameters) : NULL;
    if (!g || g->in.count == 0 || !in_scope(g, s->state)) {
        s->counts.data_dropped++;
        return;
    }
    const int gap = missed(g, p->seq);
    if (gap < 0) {
        count_old(s, g, (uint16_t)(g->seq_in - p->seq));
        return;
    }
    if (!take(s, g, p)) {
        s->counts.data_dropped++;
        return;
    }
    g->window = (g->has_seq_in && gap < 63 ? g->window << (gap + 1) : 0) | 1;
    g->seq_in = p->seq;
    g->has_seq_in = true;
    s->counts.data_in++;
    s->counts.data_missed += gap;
    bool good = true;
    for (int i = 0; i < g->in.end; i++) {
        const int variable = g->in.entries[i].variable;
        good = within(&s->d->variables[variable], &s->values[variable].slot) && good;
        mark(s, variable);
    }
    if (!good) { s->counts.out_of_range++; }
    const bool watched = (g->steep || g->edged) && in_run(s->state);
    const bool fine = !watched || crdi_dcp_watch_data(s, g, gap);
    if ((g->has_limit && (uint32_t)gap > g->limit) || (!good && s->opt.check_range) || !fine) {
        crdi_dcp_slave_fault(s, CRD_DCP_E_PROPERTY_VIOLATED);
        return;
    }
    // At once where time runs by itself; a step that is under way has begun with the old values.
    if (s->mode != CRD_DCP_NRT && in_run(s->state) && s->pending == CRDI_NOTHING) {
        crdi_dcp_latch(s, true);
    }
}

// Asks the plant for the values of a group; false: it has failed.
static bool collect(crd_dcp_slave* s, const crdi_dcp_group* g)
{
    const uint64_t entry = s->entry;
    for (int i = 0; i < g->out.end; i++) {
        const int variable = g->out.entries[i].variable;
        crd_dcp_slot slot =
            s->values[variable].slot; // a copy: the plant writes values, not where they are
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
    const crd_dcp_pdu head = {.type = CRD_DCP_DAT_INPUT_OUTPUT, .seq = g->seq_out, .id = g->id};
    const size_t at = crd_dcp_encode(&head, s->pdu, s->opt.max_pdu);
    const size_t length = at + crd_dcp_put(slots, count, s->pdu + at, s->opt.max_pdu - at);
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

// ---- log entries -------------------------------------------------------------------------------

crd_status crdi_dcp_logs_create(crd_dcp_slave* s)
{
    const size_t count = (size_t)s->opt.log_entries;
    s->logs = crdi_arena_new(&s->arena, count, sizeof *s->logs);
    s->log_order = crdi_arena_new(&s->arena, count, sizeof *s->log_order);
    uint8_t* bytes = crdi_arena_new(&s->arena, count, s->opt.log_bytes);
    if (!s->logs || !s->log_order || !bytes) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        s->log_order[i] = (int)i;
        s->logs[i].bytes = bytes + i * s->opt.log_bytes;
    }
    return CRD_OK;
}

// Takes the i-th of those kept out and puts it to the free ones.
static void forget_log(crd_dcp_slave* s, int i)
{
    const int entry = s->log_order[i];
    s->log_count--;
    memmove(&s->log_order[i], &s->log_order[i + 1],
            (size_t)(s->log_count - i) * sizeof *s->log_order);
    s->log_order[s->log_count] = entry;
}

static int64_t whole_seconds(double now)
{
    return now > -9e18 && now < 9e18 ? (int64_t)floor(now) : 0;
}

static void keep_log(crd_dcp_slave* s, const crd_dcp_log_template* t, const crd_dcp_slot* arguments)
{
    const size_t length = crd_dcp_put(arguments, t->argument_count, NULL, 0);
    if (s->opt.log_entries == 0 || length > s->opt.log_bytes) {
        s->counts.logs_lost++;
        return;
    }
    if (s->log_count == s->opt.log_entries) {
        forget_log(s, 0);
        s->counts.logs_lost++;
    }
    crdi_dcp_log_slot* log = &s->logs[s->log_order[s->log_count++]];
    crd_dcp_put(arguments, t->argument_count, log->bytes, s->opt.log_bytes);
    log->time = whole_seconds(s->now);
    log->template_id = t->id;
    log->category = t->category;
    log->length = (uint32_t)length;
}

static void notify_log(crd_dcp_slave* s, const crd_dcp_log_template* t,
                       const crd_dcp_slot* arguments)
{
    const crd_dcp_pdu head = {.type = CRD_DCP_NTF_LOG,
                              .peer = s->id,
                              .time = whole_seconds(s->now),
                              .template_id = t->id};
    const size_t room = crdi_dcp_max_pdu(s, s->master.transport);
    const size_t at = crd_dcp_encode(&head, s->pdu, room);
    const size_t length = at + crd_dcp_put(arguments, t->argument_count, s->pdu + at, room - at);
    if (length > room) {
        s->counts.logs_lost++;
        return;
    }
    crdi_dcp_slave_send(s, &s->master, length);
}

void crd_dcp_slave_log(crd_dcp_slave* s, uint8_t template_id, const crd_dcp_slot* arguments,
                       double now)
{
    crdi_dcp_slave_clock(s, now);
    const crd_dcp_log_template* t = NULL;
    for (int i = 0; i < s->d->template_count && !t; i++) {
        if (s->d->templates[i].id == template_id) { t = &s->d->templates[i]; }
    }
    if (!t || t->level >= CRDI_DCP_LEVELS || s->state == CRD_DCP_ALIVE) { return; }
    for (int i = 0; i < t->argument_count; i++) {
        if (arguments[i].type != t->arguments[i]) { return; }
    }
    const uint8_t mode = s->log_modes[t->category][t->level];
    if (mode == 1) {
        keep_log(s, t, arguments);
    } else if (mode == 2) {
        notify_log(s, t, arguments);
    }
}

// An entry of RSP_log_ack:  0 time:i64  8 log_template_id:u8  9 arguments
enum { LOG_HEAD = 9 };

static void write_log(const crdi_dcp_log_slot* log, uint8_t* out)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)((uint64_t)log->time >> (8 * i));
    }
    out[8] = log->template_id;
    memcpy(out + LOG_HEAD, log->bytes, log->length);
}

size_t crdi_dcp_take_logs(crd_dcp_slave* s, const crd_dcp_pdu* request, size_t room)
{
    const crd_dcp_pdu head = {.type = CRD_DCP_RSP_LOG_ACK, .seq = request->seq, .peer = s->id};
    size_t at = crd_dcp_encode(&head, s->pdu, room);
    int taken = 0, i = 0;
    while (i < s->log_count && taken < request->max) {
        const crdi_dcp_log_slot* log = &s->logs[s->log_order[i]];
        if (request->category != 0 && log->category != request->category) {
            i++;
            continue;
        }
        if (log->length + LOG_HEAD > room - at) { break; }
        write_log(log, s->pdu + at);
        at += LOG_HEAD + log->length;
        forget_log(s, i);
        taken++;
    }
    return at;
}
