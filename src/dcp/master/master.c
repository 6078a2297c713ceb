// The master: its plan, and the values that it keeps for itself.
#include "dcp/master/master.h"

#include <math.h>
#include <string.h>

#include "dcp/net/net.h"

enum {
    TEXT_ROOM = 1024,     // bytes of a string or binary without maxSize
    MOST_ELEMENTS = 65536 // of a variable
};

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

static crd_status check_master_options(crd_context* ctx, const crd_dcp_master_options* o)
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
    const crd_status st = check_master_options(ctx, &o);
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

const char* crdi_dcp_variable_name(const crdi_dcp_peer* p, int variable)
{
    return p->d->variables[variable].name;
}

static crd_status check_elements(crd_dcp_master* m, const crdi_dcp_peer* p, int variable,
                                 uint64_t n)
{
    if (n >= 1 && n <= MOST_ELEMENTS) { return CRD_OK; }
    return crdi_fail(m->ctx, CRD_E_RANGE,
                     "%s: %s would have %llu elements by its structural parameters, expected 1 to "
                     "%d",
                     p->spec.name, crdi_dcp_variable_name(p, variable), (unsigned long long)n,
                     MOST_ELEMENTS);
}

static crd_status dcp_master_make_values(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const crdi_dcp_room room = {
        .text = TEXT_ROOM, .most = MOST_ELEMENTS, .most_text = CRDI_DCP_MOST_UDP};
    crd_status st = crdi_dcp_values_create(&m->arena, p->d, &room, NULL, &p->values);
    p->is_set = crdi_arena_new(&m->arena, (size_t)p->d->variable_count, sizeof *p->is_set);
    if (!p->is_set) { return CRD_E_MEMORY; }
    for (int i = 0; i < p->d->variable_count && st >= 0; i++) {
        st = check_elements(m, p, i, p->values[i].slot.count);
    }
    return st;
}

crd_status crdi_dcp_master_resize(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->d->variable_count; i++) {
        crdi_dcp_value* c = &p->values[i];
        if (p->d->variables[i].rank == 0 || crdi_dcp_is_bytes(c->slot.type)) { continue; }
        const uint64_t n = crdi_dcp_elements(p->d, p->values, i, -1, 0);
        const crd_status st = check_elements(m, p, i, n);
        if (st < 0) { return st; }
        if (n > c->capacity) {
            int64_t* more = crdi_arena_new(&m->arena, (size_t)n, sizeof *more);
            if (!more) { return CRD_E_MEMORY; }
            c->capacity = (uint32_t)n;
            if (c->slot.real) {
                c->slot.real = (double*)(void*)more;
            } else {
                c->slot.integer = more;
            }
            crdi_dcp_value_restart(p->d, p->values, i);
        }
        c->slot.count = (uint32_t)n;
    }
    return CRD_OK;
}

// ---- slaves ------------------------------------------------------------------------------------

static crd_status check_mode(crd_dcp_master* m, const crd_dcp_slave_spec* s)
{
    const crd_dcp_description* d = s->description;
    if (crdi_dcp_offers_mode(d, (int)s->mode)) { return CRD_OK; }
    const char* name = crd_dcp_op_mode_name((int)s->mode);
    return crdi_fail(m->ctx, CRD_E_RANGE, "%s: mode %s, but the slave offers%s%s%s", s->name,
                     name ? name : "unknown", d->hrt ? " HRT" : "", d->srt ? " SRT" : "",
                     d->nrt ? " NRT" : "");
}

static crd_status dcp_master_choose_resolution(crd_dcp_master* m, crd_dcp_slave_spec* s)
{
    const crd_dcp_description* d = s->description;
    if (s->numerator == 0 && s->denominator == 0) {
        const crd_dcp_resolution* usual = crdi_dcp_usual_resolution(d);
        if (!usual) {
            return crdi_fail(m->ctx, CRD_E_RANGE, "%s: its description has no time resolution",
                             s->name);
        }
        s->numerator = usual->numerator;
        s->denominator = usual->denominator;
    }
    if (!crdi_dcp_offers_resolution(d, s->numerator, s->denominator)) {
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

// How often it is asked for its state, and when a question that was lost has to be there again.
static void set_pauses(const crd_dcp_master* m, crdi_dcp_peer* p)
{
    const double demanded = crdi_dcp_heartbeat(p->d);
    p->beat_pause = m->opt.heartbeat > 0 ? m->opt.heartbeat : isfinite(demanded) ? demanded / 3 : 1;
    if (p->spec.alive > 0) { p->beat_pause = fmin(p->beat_pause, p->spec.alive / 3); }
    p->timeout = isfinite(demanded) ? fmin(m->opt.timeout, p->beat_pause / 2) : m->opt.timeout;
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
    p->endpoint = crdi_dcp_find_endpoint(p->d, transport);
    const bool can = transport == CRD_DCP_CAN && p->d->can && m->net->ops->can;
    if (!p->endpoint && !can) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: %s is asked for, but the slave offers%s%s%s",
                         p->spec.name,
                         transport == CRD_DCP_UDP   ? "UDP"
                         : transport == CRD_DCP_TCP ? "TCP"
                         : transport == CRD_DCP_CAN ? "CAN"
                                                    : "another transport than UDP, TCP and CAN",
                         p->d->udp.offered ? " UDP" : "", p->d->tcp.offered ? " TCP" : "",
                         p->d->can ? " CAN" : "");
    }
    if (spec->control.port == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: control port 0, expected 1 to 65535",
                         p->spec.name);
    }
    CRD_TRY(check_mode(m, &p->spec));
    CRD_TRY(dcp_master_choose_resolution(m, &p->spec));
    CRD_TRY(choose_id(m, p));
    p->resolution = (double)p->spec.numerator / (double)p->spec.denominator;
    set_pauses(m, p);
    p->status = (crd_dcp_slave_status){.last_pdu = -INFINITY, .data_time = -INFINITY};
    p->beat = p->log_at = p->due = p->data_until = INFINITY;
    CRD_TRY(dcp_master_make_values(m, p));
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
    return variable >= 0 && variable < p->d->variable_count ? &p->values[variable].slot : NULL;
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

static crd_status dcp_master_check_variable(crd_dcp_master* m, int slave, int variable,
                                            crd_causality want)
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
static crd_status dcp_master_check_steps(crd_dcp_master* m, int slave, int variable, uint32_t steps)
{
    const crdi_dcp_peer* p = &m->peers[slave];
    const crd_dcp_variable* v = &p->d->variables[variable];
    if (p->spec.mode == CRD_DCP_NRT || steps == 0) { return CRD_OK; }
    if (crdi_dcp_output_steps_fit(v, steps)) { return CRD_OK; }
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
        CRD_TRY(dcp_master_check_variable(m, slave, variables[i], CRD_INPUT));
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
        CRD_TRY(dcp_master_check_variable(m, slave, variables[i], CRD_OUTPUT));
        CRD_TRY(dcp_master_check_steps(m, slave, variables[i], steps));
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
    CRD_TRY(dcp_master_check_variable(m, from, output, CRD_OUTPUT));
    CRD_TRY(dcp_master_check_variable(m, to, input, CRD_INPUT));
    CRD_TRY(dcp_master_check_steps(m, from, output, steps));
    const uint8_t a = m->peers[from].d->variables[output].type;
    const uint8_t b = m->peers[to].d->variables[input].type;
    if ((crdi_dcp_is_bytes(a) || crdi_dcp_is_bytes(b)) && a != b) {
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
        .from = from, .output = output, .to = to, .input = input, .steps = steps, .answer = direct};
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
    if (!structural) { CRD_TRY(dcp_master_check_variable(m, slave, variable, CRD_PARAMETER)); }
    p->is_set[variable] = true;
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
        CRD_TRY(dcp_master_check_variable(m, slave, variables[i], CRD_PARAMETER));
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
