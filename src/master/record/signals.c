// What is recorded: which signals, at which times, and where their values stand.
#include "master/master.h"

#include <string.h>

// `used` marks the patterns that match.
static bool matches(const crd_master* m, const char* name, bool* used)
{
    const crd_results_spec* r = &m->plan->sys->results;
    bool wanted = false;
    for (int i = 0; i < r->pattern_count; i++) {
        if (crdi_glob(r->patterns[i], name)) { wanted = used[i] = true; }
    }
    return wanted;
}

static bool signals_is_wanted(const crd_master* m, const crd_unit* u, const crd_variable* v,
                              const char* name, bool* used)
{
    if (v->type == CRD_CLOCK || v->causality == CRD_INDEPENDENT) { return false; }
    if (m->plan->sys->results.pattern_count == 0) { // each output once
        return v->causality == CRD_OUTPUT &&
               (v->alias_of < 0 || u->info.variables[v->alias_of].causality != CRD_OUTPUT);
    }
    return matches(m, name, used);
}

static crd_status signals_add_signal(crd_master* m, size_t* capacity, crdi_signal signal)
{
    crdi_signal* s = crdi_grow(m->ctx, m->record.signals, capacity,
                               (size_t)m->record.signal_count + 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    m->record.signals = s;
    s[m->record.signal_count++] = signal;
    return CRD_OK;
}

// The elements of one variable that are wanted. The name of an array stands for all of them.
static crd_status select_variable(crd_master* m, int member, int32_t variable, size_t* capacity,
                                  bool* used)
{
    const crd_unit* u = m->plan->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    if (m->plan->sys->results.pattern_count == 0 && v->causality != CRD_OUTPUT) { return CRD_OK; }
    const char* whole =
        m->plan->sys->single ? v->name : crdi_arena_format(&m->arena, "%s.%s", u->name, v->name);
    if (!whole) { return CRD_E_MEMORY; }
    const bool all = signals_is_wanted(m, u, v, whole, used);
    for (uint32_t e = 0; e < v->size; e++) {
        const char* name =
            v->rank == 0 ? whole : crdi_arena_format(&m->arena, "%s[%u]", whole, e + 1);
        if (!name) { return CRD_E_MEMORY; }
        const bool element = v->rank > 0 && signals_is_wanted(m, u, v, name, used);
        if (!all && !element) { continue; }
        const crd_status st = signals_add_signal(
            m, capacity,
            (crdi_signal){
                .name = name, .member = member, .variable = variable, .element = (int32_t)e});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status select_offered(crd_master* m, int member, const crdi_offer* x, int count,
                                 size_t* capacity, bool* used)
{
    for (int i = 0; i < count; i++, x++) {
        if (m->plan->sys->results.pattern_count && !matches(m, x->name, used)) { continue; }
        const crd_status st = signals_add_signal(
            m, capacity, (crdi_signal){.name = x->name, .member = member, .offer = x});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What couplings and connections at the inputs of a member and power bonds with its flow offer.
static crd_status select_coupled(crd_master* m, int member, size_t* capacity, bool* used)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->connections.coupled_count; i++) {
        const crdi_coupled* c = &m->connections.coupled[i];
        if (c->of->to.member != member) { continue; }
        CRD_TRY(select_offered(m, member, c->signals, c->signal_count, capacity, used));
    }
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        if (p->flow_member != member) { continue; }
        CRD_TRY(select_offered(m, member, p->signals, p->signal_count, capacity, used));
    }
    for (int i = 0; i < m->connections.pair_count; i++) {
        const crdi_paired* p = &m->connections.pairs[i];
        if (p->sides[0].member != &m->plan->members[member]) { continue; }
        CRD_TRY(select_offered(m, member, p->signals, p->signal_count, capacity, used));
    }
    for (int i = 0; i < m->plan->members[member].flow_count; i++) {
        const crdi_offer* x = NULL;
        CRD_TRY(crdi_defect_offer(
            m->plan, &m->connections.predictions[m->plan->members[member].flows[i]], &x));
        if (x) { CRD_TRY(select_offered(m, member, x, 1, capacity, used)); }
    }
fail:
    return st;
}

// The account of the clock is recorded with the rows of the member that steps most often.
static int fastest_member(const crd_master* m)
{
    int best = 0;
    for (int i = 1; i < m->plan->member_count; i++) {
        if (m->plan->members[i].ticks < m->plan->members[best].ticks) { best = i; }
    }
    return best;
}

// All names of all variables and of what couplings and bonds offer, for a suggestion.
typedef struct {
    crd_master* m;
    int member;
    int32_t variable;
    int couple, power, pair, signal;
} names;

static const char* signals_next_name(void* user)
{
    names* n = user;
    for (; n->member < n->m->plan->member_count; n->member++, n->variable = 0) {
        const crd_unit* u = n->m->plan->members[n->member].unit;
        if (n->variable < u->info.variable_count) {
            const char* name = u->info.variables[n->variable++].name;
            return n->m->plan->sys->single
                       ? name
                       : crdi_arena_format(&n->m->arena, "%s.%s", u->name, name);
        }
    }
    for (; n->couple < n->m->connections.coupled_count; n->couple++, n->signal = 0) {
        const crdi_coupled* c = &n->m->connections.coupled[n->couple];
        if (n->signal < c->signal_count) { return c->signals[n->signal++].name; }
    }
    for (; n->power < n->m->energy.bond_count; n->power++, n->signal = 0) {
        const crdi_bond* p = &n->m->energy.bonds[n->power];
        if (n->signal < p->signal_count) { return p->signals[n->signal++].name; }
    }
    for (; n->pair < n->m->connections.pair_count; n->pair++, n->signal = 0) {
        const crdi_paired* p = &n->m->connections.pairs[n->pair];
        if (n->signal < p->signal_count) { return p->signals[n->signal++].name; }
    }
    return NULL;
}

// A record of the time alone is not what anybody meant.
static crd_status fail_no_signal(crd_master* m)
{
    const char* pattern = m->plan->sys->results.patterns[0];
    names n = {.m = m};
    const char* near = crdi_nearest(pattern, signals_next_name, &n);
    return crdi_fail(m->ctx, CRD_E_NOT_FOUND, "no variable matches '%s'%s%s%s", pattern,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

// ---- rasters -----------------------------------------------------------------------------------

static crd_status add_raster(crd_master* m, int64_t ticks, bool at_end, int* index)
{
    crdi_raster* r = &m->record.rasters[m->record.raster_count];
    *r = (crdi_raster){.ticks = ticks, .at_end = at_end, .read = -1};
    const crdi_duration d = crdi_duration_text((double)ticks * m->plan->times.tick, 6);
    r->name = crdi_arena_text(&m->arena, d.text, strlen(d.text));
    if (!r->name) { return CRD_E_MEMORY; }
    *index = m->record.raster_count++;
    return CRD_OK;
}

// Where the file has room for several rasters, a unit that steps more seldom than rows come is
// recorded at its own communication points. All others share the first raster.
static crd_status plan_rasters(crd_master* m)
{
    const bool several =
        m->plan->sys->results.path && crd_recorder_has_rasters(m->plan->sys->results.path);
    int base = -1;
    m->record.rasters = crdi_arena_new(&m->arena, several ? (size_t)m->plan->member_count + 1 : 1,
                                       sizeof *m->record.rasters);
    m->record.extras =
        crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *m->record.extras);
    if (!m->record.rasters || !m->record.extras) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    for (int pass = 0; pass < 2; pass++) { // the shared one comes first
        for (int i = 0; i < m->record.signal_count; i++) {
            const int member = m->record.signals[i].member;
            const crdi_member* p = &m->plan->members[member];
            const bool own = several && p->ticks > m->plan->times.row_every;
            if (own != (pass == 1) ||
                (i && m->record.signals[i - 1].member == m->record.signals[i].member)) {
                continue;
            }
            if (!own) {
                if (base < 0) { CRD_TRY(add_raster(m, m->plan->times.row_every, true, &base)); }
                m->record.extras[member].raster = base;
                continue;
            }
            int k = base + 1;
            while (k < m->record.raster_count && m->record.rasters[k].ticks != p->ticks) {
                k++;
            }
            if (k == m->record.raster_count) { CRD_TRY(add_raster(m, p->ticks, false, &k)); }
            m->record.extras[member].raster = k;
        }
    }
    if (m->record.raster_count == 0) {
        CRD_TRY(add_raster(m, m->plan->times.row_every, true, &base));
    }
fail:
    return st;
}

// ---- signals -----------------------------------------------------------------------------------

crd_status crdi_record_plan(crd_master* m)
{
    crd_status st = CRD_OK;
    const crd_results_spec* r = &m->plan->sys->results;
    size_t capacity = 0;
    m->record.next_row = m->plan->times.start;
    bool* used = crdi_new_array(m->ctx, (size_t)r->pattern_count, sizeof *used);
    if (!used) { return CRD_E_MEMORY; }
    const int fastest = fastest_member(m);
    for (int i = 0; i < m->plan->member_count; i++) {
        const int32_t n =
            crdi_member_is_hidden(m->plan, i) ? 0 : m->plan->members[i].unit->info.variable_count;
        for (int32_t v = 0; v < n; v++) {
            CRD_TRY(select_variable(m, i, v, &capacity, used));
        }
        if (!crdi_member_is_hidden(m->plan, i)) { CRD_TRY(select_coupled(m, i, &capacity, used)); }
        if (i == fastest) {
            int count = 0;
            const crdi_offer* x = crdi_pacing_signals(m, &count);
            CRD_TRY(select_offered(m, i, x, count, &capacity, used));
        }
    }
    if (r->pattern_count && !m->record.signal_count) {
        st = fail_no_signal(m);
        goto fail;
    }
    for (int i = 0; i < r->pattern_count; i++) {
        if (!used[i]) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "no variable matches '%s': nothing is recorded for it", r->patterns[i]);
        }
    }
    CRD_TRY(plan_rasters(m));
fail:
    crd_free(m->ctx, used);
    return st;
}

// Signals that no connection reads get a binding of their own, which is read for rows only. The
// member's signals are `first` and the next `signals`.
static crd_status bind_extras(crd_master* m, int member, int first, int signals, int32_t* position,
                              int32_t* list)
{
    crd_status st = CRD_OK;
    const crdi_member* p = &m->plan->members[member];
    crdi_extras* x = &m->record.extras[member];
    const int32_t n = p->unit->info.variable_count;
    for (int32_t i = 0; i < n; i++) {
        position[i] = -1;
    }
    for (int32_t i = 0; p->out && i < p->out->count; i++) {
        position[p->out->variables[i]] = i;
    }
    int32_t count = 0;
    for (int i = first; i < first + signals; i++) {
        if (m->record.signals[i].offer) { continue; }
        const int32_t v = crdi_variable_read(p->unit, m->record.signals[i].variable);
        if (position[v] == -1) {
            position[v] = -2;
            list[count++] = v;
        }
    }
    if (count) {
        CRD_TRY(crd_binding_create(p->unit, list, count, &x->binding));
        CRD_TRY(crdi_values_create(&m->arena, x->binding, &x->values));
    }
    for (int32_t i = 0; x->binding && i < x->binding->count; i++) {
        position[x->binding->variables[i]] = -3 - i;
    }
fail:
    return st < 0 ? crdi_member_refused(m->ctx, p, st) : CRD_OK;
}

static const void* value_source(const crdi_member* p, const crdi_extras* x, int32_t position,
                                int32_t element, crd_kind kind)
{
    return position >= 0
               ? crdi_slot(&p->outputs, kind, p->out->offsets[position] + element)
               : crdi_slot(&x->values, kind, x->binding->offsets[-3 - position] + element);
}

// Members and values in the order of the rasters.
static crd_status sort_by_raster(crd_master* m, crdi_recorded* unsorted)
{
    m->record.values =
        crdi_arena_new(&m->arena, (size_t)m->record.signal_count, sizeof *m->record.values);
    m->record.readers =
        crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *m->record.readers);
    if (!m->record.values || !m->record.readers) { return CRD_E_MEMORY; }
    int values = 0, members = 0;
    for (int k = 0; k < m->record.raster_count; k++) {
        crdi_raster* r = &m->record.rasters[k];
        r->value_first = values;
        r->member_first = members;
        for (int i = 0; i < m->record.signal_count; i++) {
            if (m->record.extras[m->record.signals[i].member].raster == k) {
                m->record.values[values++] = unsorted[i];
            }
        }
        for (int i = 0; i < m->plan->member_count; i++) {
            const crdi_extras* x = &m->record.extras[i];
            if (x->binding && x->raster == k) { m->record.readers[members++] = i; }
        }
        r->value_count = values - r->value_first;
        r->member_count = members - r->member_first;
    }
    return CRD_OK;
}

crd_status crdi_record_bind(crd_master* m)
{
    crd_status st = CRD_OK;
    int32_t most = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const int32_t n = m->plan->members[i].unit->info.variable_count;
        most = n > most ? n : most;
    }
    int32_t* position = crdi_new_array(m->ctx, (size_t)most, sizeof *position);
    int32_t* list = crdi_new_array(m->ctx, (size_t)most, sizeof *list);
    crdi_recorded* found = crdi_new_array(m->ctx, (size_t)m->record.signal_count, sizeof *found);
    if (!position || !list || !found) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int member = 0, i = 0, end = 0; member < m->plan->member_count; member++) {
        while (end < m->record.signal_count &&
               m->record.signals[end].member == member) { // sorted by member
            end++;
        }
        CRD_TRY(bind_extras(m, member, i, end - i, position, list));
        for (; i < end; i++) {
            const crdi_member* p = &m->plan->members[member];
            const crdi_offer* x = m->record.signals[i].offer;
            if (x) {
                found[i] =
                    (crdi_recorded){.from = x->from, .signal = i, .kind = crd_type_kind(x->type)};
                continue;
            }
            const int32_t v = crdi_variable_read(p->unit, m->record.signals[i].variable);
            const crd_kind kind = crd_type_kind(p->unit->info.variables[v].type);
            found[i] = (crdi_recorded){
                .from = value_source(p, &m->record.extras[member], position[v],
                                     m->record.signals[i].element, kind),
                .signal = i,
                .kind = kind,
                .watched = kind == CRD_REAL && position[v] < 0 &&
                           p->unit->info.variables[v].causality == CRD_OUTPUT,
            };
        }
    }
    CRD_TRY(sort_by_raster(m, found));
fail:
    crd_free(m->ctx, position);
    crd_free(m->ctx, list);
    crd_free(m->ctx, found);
    return st;
}

// ---- for others --------------------------------------------------------------------------------

int crdi_record_signal_count(const crd_master* m)
{
    return m->record.signal_count;
}

const crdi_signal* crdi_record_signal(const crd_master* m, int i)
{
    return &m->record.signals[i];
}

const crdi_recorded* crdi_record_value(const crd_master* m, int i)
{
    return &m->record.values[i];
}

int crd_master_signal_count(const crd_master* m)
{
    return m->record.signal_count;
}

const char* crd_master_signal_name(const crd_master* m, int i)
{
    return m->record.signals[i].name;
}
