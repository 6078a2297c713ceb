// Variables by handle: a name is looked up once, then values pass without a search or memory.
#include "master/master.h"

#include <math.h>
#include <string.h>

typedef struct handle {
    crd_handle_info info;
    crdi_member* member;
    crd_binding* binding; // of the variable alone
    crd_values values;
    const char* name;
    const char* feeds; // output that is connected to it, NULL: none
} handle;

struct crdi_handles {
    handle* list;
    int count;
    size_t room;
    crd_arena arena; // not that of the run: handles outlive a state that is restored
};

static const handle* handle_at(const crd_master* m, int index)
{
    return m->handles && index >= 0 && index < m->handles->count ? &m->handles->list[index] : NULL;
}

static crd_status fail_unknown(crd_master* m, int index)
{
    return crdi_fail(m->ctx, CRD_E_RANGE, "handle %d is none of this run, which has %d", index,
                     m->handles ? m->handles->count : 0);
}

static crd_status handles_open(crd_master* m)
{
    if (m->handles) { return CRD_OK; }
    m->handles = crdi_new(m->ctx, sizeof *m->handles);
    if (!m->handles) { return CRD_E_MEMORY; }
    crd_arena_init(&m->handles->arena, m->ctx);
    return CRD_OK;
}

// What overwrites an input in every step.
static const char* find_feed(crd_master* m, const handle* h)
{
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        const bool here = &m->plan->members[k->to.member] == h->member &&
                          k->to.variable == h->info.variable &&
                          (h->info.element < 0 || k->to.element == h->info.element);
        if (here) { return crdi_end_short_name(m->plan, &m->handles->arena, &k->from); }
    }
    return NULL;
}

// Where the master has the value anyway: in the outputs that it exchanges.
static const double* find_exchanged(const handle* h)
{
    const crdi_member* p = h->member;
    const int32_t read = crdi_variable_read(p->unit, h->info.variable);
    for (int32_t i = 0; p->out && i < p->out->count; i++) {
        if (p->out->variables[i] == read && crd_type_kind(h->info.type) == CRD_REAL) {
            return &p->outputs
                        .real[p->out->offsets[i] + (h->info.element < 0 ? 0 : h->info.element)];
        }
    }
    return NULL;
}

static crd_status handle_bind(crd_master* m, handle* h, const char* name)
{
    const crd_variable* v = &h->member->unit->info.variables[h->info.variable];
    crd_status st = CRD_OK;
    if (crd_type_kind(v->type) == CRD_BYTES) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED, "'%s' is a %s, not a number", name,
                         v->type == CRD_STRING ? "text" : "block of bytes");
    }
    h->info.type = v->type;
    h->info.causality = v->causality;
    h->info.variability = v->variability;
    h->info.text = v->unit;
    h->info.count = h->info.element < 0 ? (int)v->size : 1;
    CRD_TRY(crd_binding_create(h->member->unit, &h->info.variable, 1, &h->binding));
    CRD_TRY(crdi_values_create(&m->handles->arena, h->binding, &h->values));
    h->name = crdi_arena_format(&m->handles->arena, "%s", name);
    h->feeds = v->causality == CRD_INPUT ? find_feed(m, h) : NULL;
    h->info.at = v->causality == CRD_OUTPUT && !h->member->async ? find_exchanged(h) : NULL;
    return m->handles->arena.failed ? CRD_E_MEMORY : CRD_OK;
fail:
    return crdi_member_refused(m->ctx, h->member, st);
}

crd_status crd_master_find(crd_master* m, const char* name, int* out)
{
    int unit = 0;
    const char* text = name;
    handle h = {0};
    crd_status st = CRD_OK;
    CRD_TRY(handles_open(m));
    for (int i = 0; i < m->handles->count; i++) {
        if (strcmp(m->handles->list[i].name, name) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    if (!m->plan->sys->single) {
        CRD_TRY(crd_system_split(m->plan->sys, name, (crd_place){"", 0}, &unit, &text));
    }
    h.info.unit = unit;
    h.member = &m->plan->members[unit];
    CRD_TRY(crd_unit_resolve(h.member->unit, m->ctx, text, &h.info.variable, &h.info.element));
    handle* list = crdi_grow(m->ctx, m->handles->list, &m->handles->room,
                             (size_t)m->handles->count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    m->handles->list = list;
    st = handle_bind(m, &h, name);
    if (st < 0) {
        crd_binding_destroy(h.binding);
        return st;
    }
    *out = m->handles->count;
    list[m->handles->count++] = h;
fail:
    return st;
}

const crd_handle_info* crd_master_handle(const crd_master* m, int index)
{
    const handle* h = handle_at(m, index);
    return h ? &h->info : NULL;
}

void crdi_handles_free(crd_master* m)
{
    if (!m->handles) { return; }
    for (int i = 0; i < m->handles->count; i++) {
        crd_binding_destroy(m->handles->list[i].binding);
    }
    crd_free(m->ctx, m->handles->list);
    crd_arena_clear(&m->handles->arena);
    crd_free(m->ctx, m->handles);
    m->handles = NULL;
}

// ---- values ------------------------------------------------------------------------------------

static crd_status check_alive(crd_master* m, const handle* h)
{
    const crdi_member* p = h->member;
    const int at = h->info.unit;
    if (m->life.stage < CRD_STAGE_INSTANTIATED || m->life.finished || p->run->crashed) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s cannot be reached: %s", h->name,
                         p->run->crashed    ? "its unit crashed"
                         : m->life.finished ? "the run is finished"
                                            : "the run is not initialised");
    }
    if (crdi_async_busy(m, at)) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "%s cannot be reached now: unit '%s' is late, its step is still under way",
                         h->name, p->unit->name);
    }
    return CRD_OK;
}

typedef struct {
    const handle* h;
    bool set;
    crd_status st;
} passing;

static void pass_values(void* with)
{
    passing* a = with;
    crd_unit* u = a->h->member->unit;
    crd_values v = a->h->values;
    a->st = a->set ? u->ops->set(u, a->h->binding, &v) : u->ops->get(u, a->h->binding, &v);
}

static crd_status handle_pass(crd_master* m, const handle* h, bool set)
{
    passing a = {h, set, CRD_OK};
    m->running = h->info.unit;
    const int crash = crdi_life_catch(m, pass_values, &a);
    m->running = -1;
    if (crash) { return crdi_member_crashed(m, h->info.unit, crash); }
    return crdi_member_refused(m->ctx, h->member, a.st);
}

static double number_at(const handle* h, int i)
{
    return crd_type_kind(h->info.type) == CRD_REAL ? h->values.real[i]
           : h->info.type == CRD_UINT64            ? (double)(uint64_t)h->values.integer[i]
                                                   : (double)h->values.integer[i];
}

crd_status crd_master_get(crd_master* m, int index, double* values)
{
    const handle* h = handle_at(m, index);
    if (!h) { return fail_unknown(m, index); }
    crd_status st = check_alive(m, h);
    if (st < 0) { return st; }
    if (h->info.at && m->life.started) {
        memcpy(values, h->info.at, (size_t)h->info.count * sizeof *values);
        return CRD_OK;
    }
    st = handle_pass(m, h, false);
    for (int i = 0; st >= 0 && i < h->info.count; i++) {
        values[i] = number_at(h, (h->info.element < 0 ? 0 : h->info.element) + i);
    }
    return st;
}

crd_status crdi_handles_check(crd_master* m, int index, const double* values)
{
    const handle* h = handle_at(m, index);
    for (int i = 0; h && i < h->info.count; i++) {
        if (isfinite(values[i]) ||
            crdi_member_lets_pass(m, h->info.unit, h->name, crdi_time_seen(m), values[i])) {
            continue;
        }
        const crd_unit* u = h->member->unit;
        (void)crdi_fail(u->ctx, CRD_E_UNIT, "'%s' is not a number (NaN)",
                        u->info.variables[h->info.variable].name);
        return crdi_member_failed(m, h->info.unit, CRD_E_UNIT);
    }
    return CRD_OK;
}

static crd_status check_may_set(crd_master* m, const handle* h)
{
    const crd_causality cause = h->info.causality;
    const bool parameter = cause == CRD_PARAMETER;
    if (h->feeds) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s is connected to %s, which is what it gets",
                         h->name, h->feeds);
    }
    if (cause != CRD_INPUT && !parameter) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%s cannot be set: it is neither an input nor a parameter", h->name);
    }
    if (parameter && h->info.variability != CRD_TUNABLE &&
        m->life.stage >= CRD_STAGE_INITIALIZING) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "%s cannot be changed any more: it is a fixed parameter, which is set "
                         "before the initialisation (only a tunable one may change in a run)",
                         h->name);
    }
    return CRD_OK;
}

// The whole numbers of a type, as far as a double knows them.
static void range_of(crd_type t, double* low, double* high)
{
    static const struct {
        double low, high;
    } of[CRD_TYPE_COUNT] = {
        [CRD_INT8] = {-128, 127},
        [CRD_UINT8] = {0, 255},
        [CRD_INT16] = {-32768, 32767},
        [CRD_UINT16] = {0, 65535},
        [CRD_INT32] = {-2147483648.0, 2147483647.0},
        [CRD_UINT32] = {0, 4294967295.0},
        [CRD_INT64] = {-0x1p63, 0x1p63 - 1024},
        [CRD_UINT64] = {0, 0x1p64 - 2048},
        [CRD_BOOLEAN] = {0, 1},
        [CRD_ENUMERATION] = {-0x1p63, 0x1p63 - 1024},
        [CRD_CLOCK] = {0, 1},
    };
    *low = of[t].low;
    *high = of[t].high;
}

static crd_status check_value(crd_master* m, const handle* h, double x)
{
    const crd_variable* v = &h->member->unit->info.variables[h->info.variable];
    const bool real = crd_type_kind(h->info.type) == CRD_REAL;
    double low = -INFINITY, high = INFINITY;
    if (!real) { range_of(h->info.type, &low, &high); }
    if (isnan(x) || (!real && x != floor(x))) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s = %g, expected %s", h->name, x,
                         real ? "a number" : "a whole number");
    }
    low = fmax(low, v->min);
    high = fmin(high, v->max);
    if (x < low || x > high) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s = %.10g, expected %.10g .. %.10g", h->name, x,
                         low, high);
    }
    return CRD_OK;
}

crd_status crd_master_set(crd_master* m, int index, const double* values)
{
    const handle* h = handle_at(m, index);
    crd_status st = h ? check_alive(m, h) : fail_unknown(m, index);
    if (st < 0) { return st; }
    CRD_TRY(check_may_set(m, h));
    for (int i = 0; i < h->info.count; i++) {
        CRD_TRY(check_value(m, h, values[i]));
    }
    if (h->info.element >= 0) { CRD_TRY(handle_pass(m, h, false)); } // the others stay
    for (int i = 0; i < h->info.count; i++) {
        const int at = (h->info.element < 0 ? 0 : h->info.element) + i;
        if (crd_type_kind(h->info.type) == CRD_REAL) {
            h->values.real[at] = values[i];
        } else {
            h->values.integer[at] =
                h->info.type == CRD_UINT64 ? (int64_t)(uint64_t)values[i] : (int64_t)values[i];
        }
    }
    CRD_TRY(handle_pass(m, h, true));
fail:
    return st;
}
