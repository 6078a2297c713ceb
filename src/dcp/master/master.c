// The master: its plan, and the values that it keeps for itself.
#include "dcp/master/master.h"

#include <math.h>
#include <string.h>

#include "dcp/net/net.h"

enum { TEXT_ROOM = 1024 }; // bytes of a string or binary without maxSize

// ---- create ------------------------------------------------------------------------------------

crd_dcp_master_options crd_dcp_master_defaults(void)
{
    return (crd_dcp_master_options){.timeout = 0.2,
                                    .retries = 10,
                                    .patience = 30,
                                    .contact = 5,
                                    .max_pdu = 1020,
                                    .take_over = true,
                                    .log = true,
                                    .lossless = true};
}

static crd_status check_options(crd_context* ctx, const crd_dcp_master_options* o)
{
    const struct {
        const char* name;
        double value, least;
    } times[] = {{"timeout", o->timeout, 1e-6},
                 {"patience", o->patience, 1e-6},
                 {"rest", o->rest, 0},
                 {"contact", o->contact, 0},
                 {"heartbeat", o->heartbeat, 0}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (!(times[i].value >= times[i].least && times[i].value <= 1e9)) {
            return crdi_fail(ctx, CRD_E_RANGE, "DCP master: %s = %g s, expected %g to 1e9",
                             times[i].name, times[i].value, times[i].least);
        }
    }
    if (o->retries < 0 || o->retries > 100000) {
        return crdi_fail(ctx, CRD_E_RANGE, "DCP master: retries = %d, expected 0 to 100000",
                         o->retries);
    }
    if (o->max_pdu < 32 || o->max_pdu > 1U << 20) {
        return crdi_fail(ctx, CRD_E_RANGE, "DCP master: max_pdu = %u bytes, expected 32 to 2^20",
                         (unsigned)o->max_pdu);
    }
    return CRD_OK;
}

crd_status crd_dcp_master_create(crd_context* ctx, crd_dcp_net* net,
                                 const crd_dcp_master_options* opt, crd_dcp_master** out)
{
    const crd_dcp_master_options o = opt ? *opt : crd_dcp_master_defaults();
    const crd_status st = check_options(ctx, &o);
    if (st < 0) { return st; }
    crd_dcp_master* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    m->ctx = ctx;
    m->net = net;
    m->opt = o;
    m->failed = -1;
    m->now = crd_dcp_net_now(net);
    m->due = INFINITY;
    crd_arena_init(&m->arena, ctx);
    crd_arena_init(&m->layout, ctx);
    *out = m;
    return CRD_OK;
}

void crd_dcp_master_destroy(crd_dcp_master* m)
{
    if (!m) { return; }
    crd_arena_clear(&m->layout);
    crd_arena_clear(&m->arena);
    crd_free(m->ctx, m->routes);
    crd_free(m->ctx, m->wishes);
    crd_free(m->ctx, m->peers);
    crd_free(m->ctx, m);
}

// ---- values ------------------------------------------------------------------------------------

static bool is_text(uint8_t type)
{
    return type == CRD_DCP_STRING || type == CRD_DCP_BINARY;
}

const char* crdi_dcp_variable_name(const crdi_dcp_peer* p, int variable)
{
    return p->d->variables[variable].name;
}

// Elements of a variable as its structural parameters stand.
static uint64_t elements(const crdi_dcp_peer* p, int variable)
{
    const crd_dcp_variable* v = &p->d->variables[variable];
    uint64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        uint64_t k = v->dimensions[i];
        if (v->is_linked[i]) {
            const int link = crd_dcp_find_vr(p->d, v->linked[i]);
            k = link >= 0 && p->cells[link].slot.integer ? (uint64_t)p->cells[link].slot.integer[0]
                                                         : 1;
        }
        if (k > UINT32_MAX || (k > 0 && n > UINT32_MAX / k)) { return UINT32_MAX; }
        n *= k;
    }
    return n;
}

static crd_status check_elements(crd_dcp_master* m, const crdi_dcp_peer* p, int variable,
                                 uint64_t n)
{
    if (n >= 1 && n <= 65536) { return CRD_OK; }
    return crdi_fail(m->ctx, CRD_E_RANGE,
                     "%s: %s would have %llu elements by its structural parameters, expected 1 to "
                     "65536",
                     p->spec.name, crdi_dcp_variable_name(p, variable), (unsigned long long)n);
}

// Numbers of one slave stand behind each other, inputs to inputs and outputs to outputs, so that
// groups in the order of the description become one copy.
static crd_status make_cells(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const int count = p->d->variable_count;
    p->cells = crdi_arena_new(&m->arena, (size_t)count, sizeof *p->cells);
    if (!p->cells) { return CRD_E_MEMORY; }
    static const uint8_t order[] = {CRD_STRUCTURAL_PARAMETER, CRD_PARAMETER, CRD_INPUT, CRD_OUTPUT};
    for (size_t pass = 0; pass < sizeof order; pass++) {
        size_t numbers = 0;
        for (int i = 0; i < count; i++) {
            crdi_dcp_cell* c = &p->cells[i];
            const crd_dcp_variable* v = &p->d->variables[i];
            if (v->causality != order[pass] || is_text(v->type)) { continue; }
            const uint64_t n = elements(p, i);
            const crd_status st = check_elements(m, p, i, n);
            if (st < 0) { return st; }
            c->slot.type = v->type;
            c->slot.count = c->capacity = (uint32_t)n;
            numbers += n;
        }
        int64_t* block = crdi_arena_new(&m->arena, numbers + 1, sizeof *block);
        if (!block) { return CRD_E_MEMORY; }
        for (int i = 0; i < count; i++) {
            crdi_dcp_cell* c = &p->cells[i];
            const crd_dcp_variable* v = &p->d->variables[i];
            if (v->causality != order[pass]) { continue; }
            if (is_text(v->type)) {
                c->slot = (crd_dcp_slot){.type = v->type, .count = 1, .byte_count = &c->byte_count};
                c->slot.max_size = v->max_size == UINT32_MAX         ? TEXT_ROOM
                                   : v->max_size < CRDI_DCP_MOST_UDP ? v->max_size
                                                                     : CRDI_DCP_MOST_UDP;
                c->slot.bytes = crdi_arena_new(&m->arena, c->slot.max_size, 1);
                if (!c->slot.bytes) { return CRD_E_MEMORY; }
            } else if (v->type == CRD_DCP_FLOAT32 || v->type == CRD_DCP_FLOAT64) {
                c->slot.real = (double*)(void*)block; // both have 8 bytes
                block += c->capacity;
            } else {
                c->slot.integer = block;
                block += c->capacity;
            }
            crdi_dcp_read_start(v->start, &c->slot, c->capacity);
        }
    }
    return CRD_OK;
}

crd_status crdi_dcp_master_resize(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->d->variable_count; i++) {
        crdi_dcp_cell* c = &p->cells[i];
        if (p->d->variables[i].rank == 0 || is_text(c->slot.type)) { continue; }
        const uint64_t n = elements(p, i);
        const crd_status st = check_elements(m, p, i, n);
        if (st < 0) { return st; }
        if (n > c->capacity) {
            int64_t* more = crdi_arena_new(&m->arena, n, sizeof *more);
            if (!more) { return CRD_E_MEMORY; }
            c->capacity = (uint32_t)n;
            if (c->slot.real) {
                c->slot.real = (double*)(void*)more;
            } else {
                c->slot.integer = more;
            }
            crdi_dcp_read_start(p->d->variables[i].start, &c->slot, c->capacity);
        }
        c->slot.count = (uint32_t)n;
    }
    return CRD_OK;
}

// ---- slaves ------------------------------------------------------------------------------------

static crd_status check_mode(crd_dcp_master* m, const crd_dcp_slave_spec* s)
{
    const crd_dcp_description* d = s->description;
    const bool offered = s->mode == CRD_DCP_HRT   ? d->hrt
                         : s->mode == CRD_DCP_SRT ? d->srt
                                                  : s->mode == CRD_DCP_NRT && d->nrt;
    if (offered) { return CRD_OK; }
    const char* name = crd_dcp_op_mode_name((int)s->mode);
    return crdi_fail(m->ctx, CRD_E_RANGE, "%s: mode %s, but the slave offers%s%s%s", s->name,
                     name ? name : "unknown", d->hrt ? " HRT" : "", d->srt ? " SRT" : "",
                     d->nrt ? " NRT" : "");
}

static bool resolution_offered(const crd_dcp_description* d, uint32_t numerator,
                               uint32_t denominator)
{
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const uint32_t to = r->numerator_to < r->numerator ? r->numerator : r->numerator_to;
        // numerator / denominator = k / r->denominator, with k in the range
        const uint64_t k = (uint64_t)numerator * r->denominator;
        if (k % denominator == 0 && k / denominator >= r->numerator && k / denominator <= to) {
            return true;
        }
    }
    return false;
}

static crd_status choose_resolution(crd_dcp_master* m, crd_dcp_slave_spec* s)
{
    const crd_dcp_description* d = s->description;
    if (s->numerator == 0 && s->denominator == 0) {
        int best = 0;
        for (int i = d->resolution_count - 1; i >= 0; i--) {
            if (d->resolutions[i].recommended) { best = i; }
        }
        if (d->resolution_count == 0) {
            return crdi_fail(m->ctx, CRD_E_RANGE, "%s: its description has no time resolution",
                             s->name);
        }
        s->numerator = d->resolutions[best].numerator;
        s->denominator = d->resolutions[best].denominator;
    }
    if (s->numerator == 0 || s->denominator == 0 ||
        !resolution_offered(d, s->numerator, s->denominator)) {
        const crd_dcp_resolution none = {0}, *r = d->resolution_count ? d->resolutions : &none;
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: time resolution %u/%u s is not offered; the first of its %d is %u/%u "
                         "s",
                         s->name, s->numerator, s->denominator, d->resolution_count, r->numerator,
                         r->denominator);
    }
    return CRD_OK;
}

static crd_status choose_id(crd_dcp_master* m, crdi_dcp_peer* p)
{
    bool taken[256] = {true}; // 0 is the master
    for (int i = 0; i < m->count; i++) {
        taken[m->peers[i].own_id] = true;
    }
    int id = p->spec.id ? p->spec.id : 1;
    while (p->spec.id == 0 && id < 256 && taken[id]) {
        id++;
    }
    if (id > 255) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: a DCP session has at most 255 slaves",
                         p->spec.name);
    }
    if (taken[id]) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: slave id %d is taken by another slave",
                         p->spec.name, id);
    }
    p->own_id = p->id = (uint8_t)id;
    return CRD_OK;
}

static crd_status check_plan(crd_dcp_master* m, int slave)
{
    if (slave < 0 || slave >= m->count) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "DCP master: slave %d, but there are %d", slave,
                         m->count);
    }
    if (m->progress != CRDI_PLANNED) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "%s: the session is configured already: plan before, or stop it first",
                         m->peers[slave].spec.name);
    }
    return CRD_OK;
}

// A heartbeat that was lost has to be there again in time.
static double repeat_pause(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    const bool demanded = p->d->can_monitor_heartbeat && p->d->has_heartbeat;
    return demanded ? fmin(m->opt.timeout, p->beat_pause / 2) : m->opt.timeout;
}

static double heartbeat_pause(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    const crd_dcp_description* d = p->d;
    if (m->opt.heartbeat > 0) { return m->opt.heartbeat; }
    if (d->can_monitor_heartbeat && d->has_heartbeat && d->heartbeat_denominator > 0) {
        return (double)d->heartbeat_numerator / (double)d->heartbeat_denominator / 3;
    }
    return 1;
}

crd_status crd_dcp_master_add(crd_dcp_master* m, const crd_dcp_slave_spec* spec, int* index)
{
    crd_status st = CRD_OK;
    crdi_dcp_peer peer = {.index = m->count, .spec = *spec, .d = spec->description};
    crdi_dcp_peer* p = &peer;
    if (!p->spec.name) { p->spec.name = p->d->name; }
    if (m->progress != CRDI_PLANNED) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s: added to a session that is configured already",
                         p->spec.name);
    }
    const uint8_t transport = spec->control.transport;
    p->endpoint = transport == CRD_DCP_UDP   ? &p->d->udp
                  : transport == CRD_DCP_TCP ? &p->d->tcp
                                             : NULL;
    if (!p->endpoint || !p->endpoint->offered) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: %s is asked for, but the slave offers%s%s",
                         p->spec.name,
                         transport == CRD_DCP_UDP   ? "UDP"
                         : transport == CRD_DCP_TCP ? "TCP"
                                                    : "another transport than UDP and TCP",
                         p->d->udp.offered ? " UDP" : "", p->d->tcp.offered ? " TCP" : "");
    }
    if (spec->control.port == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: control port 0, expected 1 to 65535",
                         p->spec.name);
    }
    CRD_TRY(check_mode(m, &p->spec));
    CRD_TRY(choose_resolution(m, &p->spec));
    CRD_TRY(choose_id(m, p));
    p->resolution = (double)p->spec.numerator / (double)p->spec.denominator;
    p->beat_pause = heartbeat_pause(m, p);
    p->timeout = repeat_pause(m, p);
    p->status = (crd_dcp_slave_status){.heard = -INFINITY, .data_time = -INFINITY};
    p->beat = p->log_at = p->due = p->data_until = INFINITY;
    CRD_TRY(make_cells(m, p));
    crdi_dcp_peer* more =
        crdi_grow(m->ctx, m->peers, &m->peer_room, (size_t)m->count + 1, sizeof *more);
    if (!more) { return CRD_E_MEMORY; }
    m->peers = more;
    m->peers[m->count] = peer;
    if (index) { *index = m->count; }
    m->count++;
fail:
    return st;
}

crd_dcp_slot* crd_dcp_master_slot(crd_dcp_master* m, int slave, int variable)
{
    if (slave < 0 || slave >= m->count) { return NULL; }
    crdi_dcp_peer* p = &m->peers[slave];
    return variable >= 0 && variable < p->d->variable_count ? &p->cells[variable].slot : NULL;
}

// ---- what shall travel -------------------------------------------------------------------------

static const char* causality_name(int causality)
{
    return causality == CRD_INPUT                  ? "an input"
           : causality == CRD_OUTPUT               ? "an output"
           : causality == CRD_PARAMETER            ? "a parameter"
           : causality == CRD_STRUCTURAL_PARAMETER ? "a structural parameter"
                                                   : "another variable";
}

static crd_status check_variable(crd_dcp_master* m, int slave, int variable, crd_causality want)
{
    const crdi_dcp_peer* p = &m->peers[slave];
    if (variable < 0 || variable >= p->d->variable_count) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: variable %d, but it has %d", p->spec.name,
                         variable, p->d->variable_count);
    }
    const crd_dcp_variable* v = &p->d->variables[variable];
    if (v->causality == want) { return CRD_OK; }
    return crdi_fail(m->ctx, CRD_E_RANGE, "%s: %s is %s, expected %s", p->spec.name, v->name,
                     causality_name(v->causality), causality_name((int)want));
}

// The steps that a group with this output has: in NRT the master says when it is sent.
static crd_status check_steps(crd_dcp_master* m, int slave, int variable, uint32_t steps)
{
    const crdi_dcp_peer* p = &m->peers[slave];
    const crd_dcp_variable* v = &p->d->variables[variable];
    if (p->spec.mode == CRD_DCP_NRT || steps == 0) { return CRD_OK; }
    if (v->fixed_steps ? steps == v->default_steps
                       : steps >= v->min_steps && (v->max_steps == 0 || steps <= v->max_steps)) {
        return CRD_OK;
    }
    if (v->fixed_steps) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: %s every %u steps, but its steps are fixed to %u", p->spec.name,
                         v->name, steps, v->default_steps);
    }
    return crdi_fail(m->ctx, CRD_E_RANGE, "%s: %s every %u steps, expected %u to %u", p->spec.name,
                     v->name, steps, v->min_steps, v->max_steps);
}

static crd_status add_wish(crd_dcp_master* m, crdi_dcp_kind kind, int slave, const int* variables,
                           int count, uint32_t steps, int group)
{
    if (count <= 0) { return CRD_OK; }
    int* copy = crdi_arena_new(&m->arena, (size_t)count, sizeof *copy);
    if (!copy) { return CRD_E_MEMORY; }
    memcpy(copy, variables, (size_t)count * sizeof *copy);
    crdi_dcp_wish* more =
        crdi_grow(m->ctx, m->wishes, &m->wish_room, (size_t)m->wish_count + 1, sizeof *more);
    if (!more) { return CRD_E_MEMORY; }
    m->wishes = more;
    m->wishes[m->wish_count++] = (crdi_dcp_wish){.kind = kind,
                                                 .slave = slave,
                                                 .count = count,
                                                 .variables = copy,
                                                 .steps = steps,
                                                 .group = group};
    return CRD_OK;
}

crd_status crd_dcp_master_feed(crd_dcp_master* m, int slave, const int* variables, int count)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_plan(m, slave));
    for (int i = 0; i < count; i++) {
        CRD_TRY(check_variable(m, slave, variables[i], CRD_INPUT));
    }
    st = add_wish(m, CRDI_FEED, slave, variables, count, 0, 0);
fail:
    return st;
}

crd_status crd_dcp_master_watch(crd_dcp_master* m, int slave, const int* variables, int count,
                                uint32_t steps)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_plan(m, slave));
    for (int i = 0; i < count; i++) {
        CRD_TRY(check_variable(m, slave, variables[i], CRD_OUTPUT));
        CRD_TRY(check_steps(m, slave, variables[i], steps));
    }
    st = add_wish(m, CRDI_WATCH, slave, variables, count, steps, 0);
fail:
    return st;
}

crd_status crd_dcp_master_route(crd_dcp_master* m, int from, int output, int to, int input,
                                uint32_t steps, bool* direct)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_plan(m, from));
    CRD_TRY(check_plan(m, to));
    CRD_TRY(check_variable(m, from, output, CRD_OUTPUT));
    CRD_TRY(check_variable(m, to, input, CRD_INPUT));
    CRD_TRY(check_steps(m, from, output, steps));
    const uint8_t a = m->peers[from].d->variables[output].type;
    const uint8_t b = m->peers[to].d->variables[input].type;
    if ((is_text(a) || is_text(b)) && a != b) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s.%s is a %s and cannot go to %s.%s, a %s",
                         m->peers[from].spec.name, crdi_dcp_variable_name(&m->peers[from], output),
                         crd_dcp_data_type_name(a), m->peers[to].spec.name,
                         crdi_dcp_variable_name(&m->peers[to], input), crd_dcp_data_type_name(b));
    }
    crdi_dcp_route* more =
        crdi_grow(m->ctx, m->routes, &m->route_room, (size_t)m->route_count + 1, sizeof *more);
    if (!more) { return CRD_E_MEMORY; }
    m->routes = more;
    m->routes[m->route_count++] = (crdi_dcp_route){
        .from = from, .output = output, .to = to, .input = input, .steps = steps, .told = direct};
fail:
    return st;
}

crd_status crd_dcp_master_set(crd_dcp_master* m, int slave, int variable)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_plan(m, slave));
    crdi_dcp_peer* p = &m->peers[slave];
    const bool structural = variable >= 0 && variable < p->d->variable_count &&
                            p->d->variables[variable].causality == CRD_STRUCTURAL_PARAMETER;
    if (!structural) { CRD_TRY(check_variable(m, slave, variable, CRD_PARAMETER)); }
    p->cells[variable].is_set = true;
    if (structural) { CRD_TRY(crdi_dcp_master_resize(m, p)); }
fail:
    return st;
}

crd_status crd_dcp_master_tunable(crd_dcp_master* m, int slave, const int* variables, int count,
                                  int* group)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_plan(m, slave));
    const crdi_dcp_peer* p = &m->peers[slave];
    for (int i = 0; i < count; i++) {
        CRD_TRY(check_variable(m, slave, variables[i], CRD_PARAMETER));
        if (p->d->variables[variables[i]].variability != CRD_TUNABLE) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%s: %s is fixed: it can be set before the run, not tuned",
                             p->spec.name, crdi_dcp_variable_name(p, variables[i]));
        }
    }
    int groups = 0;
    for (int i = 0; i < m->wish_count; i++) {
        groups += m->wishes[i].kind == CRDI_TUNE && m->wishes[i].slave == slave;
    }
    CRD_TRY(add_wish(m, CRDI_TUNE, slave, variables, count, 0, groups));
    if (group) { *group = groups; }
fail:
    return st;
}

// ---- looking -----------------------------------------------------------------------------------

int crd_dcp_master_count(const crd_dcp_master* m)
{
    return m->count;
}

crd_dcp_slave_status crd_dcp_master_status(const crd_dcp_master* m, int slave)
{
    if (slave < 0 || slave >= m->count) { return (crd_dcp_slave_status){0}; }
    return m->peers[slave].status;
}

double crd_dcp_master_resolution(const crd_dcp_master* m, int slave)
{
    return slave >= 0 && slave < m->count ? m->peers[slave].resolution : NAN;
}

double crd_dcp_master_now(const crd_dcp_master* m)
{
    return crd_dcp_net_now(m->net);
}
