// What is recorded, and how a row is filled.
#include "master/master.h"

#include <math.h>
#include <string.h>

static const char* full_name(crd_master* m, const crd_unit* u, const crd_variable* v,
                             uint32_t element)
{
    const char* unit = m->sys->single ? "" : u->name;
    const char* dot = m->sys->single ? "" : ".";
    if (m->sys->single && v->rank == 0) { return v->name; }
    if (v->rank == 0) { return crdi_arena_format(&m->arena, "%s%s%s", unit, dot, v->name); }
    return crdi_arena_format(&m->arena, "%s%s%s[%u]", unit, dot, v->name, element + 1);
}

// `used` marks the patterns that match.
static bool is_wanted(const crd_master* m, const crd_variable* v, const char* name, bool* used)
{
    const crd_results_spec* r = &m->sys->results;
    if (v->type == CRD_CLOCK || v->causality == CRD_INDEPENDENT) { return false; }
    if (r->pattern_count == 0) { return v->causality == CRD_OUTPUT && v->alias_of < 0; }
    bool wanted = false;
    for (int i = 0; i < r->pattern_count; i++) {
        if (crdi_glob(r->patterns[i], name)) { wanted = used[i] = true; }
    }
    return wanted;
}

// In a single FMU with --input, the recording that feeds it is not a result.
static bool is_hidden(const crd_master* m, int member)
{
    return m->sys->single && member > 0;
}

// The elements of one variable that are wanted. The name of an array stands for all of them.
static crd_status select_variable(crd_master* m, int member, int32_t variable, size_t* capacity,
                                  bool* used)
{
    const crd_unit* u = m->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    if (m->sys->results.pattern_count == 0 && v->causality != CRD_OUTPUT) { return CRD_OK; }
    const char* whole = full_name(m, u, &(crd_variable){.name = v->name}, 0);
    if (!whole) { return CRD_E_MEMORY; }
    const bool all = is_wanted(m, v, whole, used);
    for (uint32_t e = 0; e < v->size; e++) {
        const char* name = v->rank == 0 ? whole : full_name(m, u, v, e);
        if (!name) { return CRD_E_MEMORY; }
        const bool element = v->rank > 0 && is_wanted(m, v, name, used);
        if (!all && !element) { continue; }
        crdi_signal* s =
            crdi_grow(m->ctx, m->signals, capacity, (size_t)m->signal_count + 1, sizeof *s);
        if (!s) { return CRD_E_MEMORY; }
        m->signals = s;
        s[m->signal_count++] = (crdi_signal){name, member, variable, (int32_t)e};
    }
    return CRD_OK;
}

// All names of all variables, for a suggestion.
typedef struct {
    crd_master* m;
    int member;
    int32_t variable;
} names;

static const char* next_name(void* user)
{
    names* n = user;
    for (; n->member < n->m->member_count; n->member++, n->variable = 0) {
        const crd_unit* u = n->m->members[n->member].unit;
        if (n->variable < u->info.variable_count) {
            const char* name = u->info.variables[n->variable++].name;
            return n->m->sys->single ? name
                                     : crdi_arena_format(&n->m->arena, "%s.%s", u->name, name);
        }
    }
    return NULL;
}

// A record of the time alone is not what anybody meant.
static crd_status fail_no_signal(crd_master* m)
{
    const char* pattern = m->sys->results.patterns[0];
    names n = {.m = m};
    const char* near = crdi_nearest(pattern, next_name, &n);
    return crdi_fail(m->ctx, CRD_E_NOT_FOUND, "no variable matches '%s'%s%s%s", pattern,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

crd_status crdi_master_select_signals(crd_master* m)
{
    crd_status st = CRD_OK;
    const crd_results_spec* r = &m->sys->results;
    size_t capacity = 0;
    bool* used = crdi_new_array(m->ctx, (size_t)r->pattern_count, sizeof *used);
    if (!used) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->member_count; i++) {
        const int32_t n = is_hidden(m, i) ? 0 : m->members[i].unit->info.variable_count;
        for (int32_t v = 0; v < n; v++) {
            CRD_TRY(select_variable(m, i, v, &capacity, used));
        }
    }
    if (r->pattern_count && !m->signal_count) {
        st = fail_no_signal(m);
        goto fail;
    }
    for (int i = 0; i < r->pattern_count; i++) {
        if (!used[i]) {
            crdi_log(m->ctx, CRD_LOG_WARNING,
                     "no variable matches '%s': nothing is recorded for it", r->patterns[i]);
        }
    }
fail:
    crdi_free(m->ctx, used);
    return st;
}

// The variable that is really read: aliases share their value.
static int32_t read_variable(const crd_unit* u, int32_t v)
{
    return u->info.variables[v].alias_of >= 0 ? u->info.variables[v].alias_of : v;
}

// Signals that no connection reads get a binding of their own, which is read for rows only. The
// member's signals are `first` and the next `signals`.
static crd_status bind_extras(crd_master* m, int member, int first, int signals, int32_t* position,
                              int32_t* list)
{
    crd_status st = CRD_OK;
    crdi_member* p = &m->members[member];
    const int32_t n = p->unit->info.variable_count;
    for (int32_t i = 0; i < n; i++) {
        position[i] = -1;
    }
    for (int32_t i = 0; p->out && i < p->out->count; i++) {
        position[p->out->variables[i]] = i;
    }
    int32_t count = 0;
    for (int i = first; i < first + signals; i++) {
        const int32_t v = read_variable(p->unit, m->signals[i].variable);
        if (position[v] == -1) {
            position[v] = -2;
            list[count++] = v;
        }
    }
    if (count) {
        CRD_TRY(crd_binding_create(p->unit, list, count, &p->extra));
        CRD_TRY(crdi_values_create(m, p->extra, &p->extras));
    }
    for (int32_t i = 0; p->extra && i < p->extra->count; i++) {
        position[p->extra->variables[i]] = -3 - i;
    }
fail:
    return st < 0 ? crdi_member_refused(m, p, st) : CRD_OK;
}

static const void* probe_source(const crdi_member* p, int32_t position, int32_t element,
                                crd_kind kind)
{
    return position >= 0 ? crdi_slot(&p->outputs, kind, p->out->offsets[position] + element)
                         : crdi_slot(&p->extras, kind, p->extra->offsets[-3 - position] + element);
}

static crd_status bind_probes(crd_master* m)
{
    crd_status st = CRD_OK;
    int32_t most = 0;
    for (int i = 0; i < m->member_count; i++) {
        const int32_t n = m->members[i].unit->info.variable_count;
        most = n > most ? n : most;
    }
    int32_t* position = crdi_new_array(m->ctx, (size_t)most, sizeof *position);
    int32_t* list = crdi_new_array(m->ctx, (size_t)most, sizeof *list);
    m->probes = crdi_arena_new(&m->arena, (size_t)m->signal_count, sizeof *m->probes);
    if (!position || !list || !m->probes) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int member = 0, i = 0, end = 0; member < m->member_count; member++) {
        while (end < m->signal_count && m->signals[end].member == member) { // sorted by member
            end++;
        }
        CRD_TRY(bind_extras(m, member, i, end - i, position, list));
        for (; i < end; i++) {
            const crdi_member* p = &m->members[member];
            const int32_t v = read_variable(p->unit, m->signals[i].variable);
            const crd_kind kind = crd_type_kind(p->unit->info.variables[v].type);
            m->probes[i] = (crdi_probe){
                .from = probe_source(p, position[v], m->signals[i].element, kind),
                .kind = kind,
                .watched = kind == CRD_REAL && position[v] < 0 &&
                           p->unit->info.variables[v].causality == CRD_OUTPUT,
            };
        }
    }
    m->probe_count = m->signal_count;
fail:
    crdi_free(m->ctx, position);
    crdi_free(m->ctx, list);
    return st;
}

crd_status crdi_master_open_results(crd_master* m)
{
    const crd_results_spec* r = &m->sys->results;
    if (!r->path) { return CRD_OK; }
    crd_status st = bind_probes(m);
    if (st < 0) { return st; }
    crd_column* columns = crdi_new_array(m->ctx, (size_t)m->signal_count, sizeof *columns);
    if (!columns) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->signal_count; i++) {
        const crdi_signal* s = &m->signals[i];
        const crd_variable* v = &m->members[s->member].unit->info.variables[s->variable];
        columns[i] = (crd_column){s->name, v->unit, v->description, v->type};
    }
    st = crd_recorder_create(m->ctx,
                             &(crd_recorder_options){.path = r->path,
                                                     .columns = columns,
                                                     .column_count = m->signal_count,
                                                     .unit_row = r->unit_row},
                             &m->recorder);
    crdi_free(m->ctx, columns);
    for (int i = 0; st == CRD_OK && i < m->probe_count; i++) {
        m->probes[i].word = crd_recorder_word(m->recorder, i);
    }
    return st;
}

static crd_status read_extras(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        if (!p->extra) { continue; }
        m->running = i;
        const crd_status st = p->unit->ops->get(p->unit, p->extra, &p->extras);
        m->running = -1;
        if (st < 0) { return crdi_member_failed(m, i, st); }
    }
    return CRD_OK;
}

static void put_bytes(crd_word* w, const crd_bytes* b)
{
    const size_t room = (CRD_RECORD_BYTES - 1) * sizeof *w;
    const size_t n = b->length < room ? b->length : room;
    w[0].integer = (int64_t)n;
    if (n) { memcpy(w + 1, b->data, n); }
}

static crd_status __attribute__((cold, noinline)) fail_nan(crd_master* m, int signal)
{
    const crdi_signal* s = &m->signals[signal];
    const crd_unit* u = m->members[s->member].unit;
    (void)crdi_fail(u->ctx, CRD_E_UNIT, "output '%s' is not a number (NaN)%s",
                    u->info.variables[s->variable].name, m->n ? " after the step" : "");
    return crdi_member_failed(m, s->member, CRD_E_UNIT);
}

crd_status crdi_master_record(crd_master* m)
{
    const crd_status st = read_extras(m);
    if (st < 0) { return st; }
    crd_word* row = crd_recorder_begin(m->recorder);
    if (!row) {
        m->end = CRD_END_FAILED;
        return CRD_E_IO; // finish says why
    }
    int nan = -1;
    row[0].real = crd_master_time(m);
    for (int i = 0; i < m->probe_count; i++) {
        const crdi_probe* p = &m->probes[i];
        if (p->kind == CRD_REAL) {
            const double x = *(const double*)p->from;
            row[p->word].real = x;
            if (__builtin_expect(x != x, 0) && p->watched && nan < 0) { nan = i; }
        } else if (p->kind == CRD_INTEGER) {
            row[p->word].integer = *(const int64_t*)p->from;
        } else {
            put_bytes(&row[p->word], p->from);
        }
    }
    crd_recorder_end(m->recorder);
    return nan < 0 ? CRD_OK : fail_nan(m, nan);
}
