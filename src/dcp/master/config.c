// What travels under which data_id, from where to where, and the CFG PDUs that say so.
#include "dcp/master/master.h"

#include <math.h>
#include <string.h>

#include "dcp/net/net.h"

enum {
    DATA_HEAD = 5,      // bytes of a data PDU before its payload
    MOST_MEMBERS = 250, // variables of one data_id: slaves have limits of their own
    MOST_PORTS = 16,    // tried of one slave
    DCPLIB_PDU = 905,   // bytes that DCPLib can be trusted to send
};

// ---- routes ------------------------------------------------------------------------------------

static const crd_dcp_variable* master_config_variable_of(const crd_dcp_master* m, int slave,
                                                         int variable)
{
    return &m->peers[slave].d->variables[variable];
}

// Whether somebody beside this route gets the output: the master, or another slave.
static bool wanted_elsewhere(const crd_dcp_master* m, const crdi_dcp_route* r)
{
    for (int i = 0; i < m->wish_count; i++) {
        const crdi_dcp_wish* w = &m->wishes[i];
        for (int k = 0; w->kind == CRDI_WATCH && w->slave == r->from && k < w->count; k++) {
            if (w->variables[k] == r->output) { return true; }
        }
    }
    for (int i = 0; i < m->route_count; i++) {
        const crdi_dcp_route* o = &m->routes[i];
        if (o->from == r->from && o->output == r->output && o->to != r->to) { return true; }
    }
    return false;
}

static bool goes_directly(const crd_dcp_master* m, const crdi_dcp_route* r)
{
    const crdi_dcp_peer *from = &m->peers[r->from], *to = &m->peers[r->to];
    const uint8_t a = master_config_variable_of(m, r->from, r->output)->type;
    const uint8_t b = master_config_variable_of(m, r->to, r->input)->type;
    // Who serves one target only also wants the very type of its inputs.
    const bool types = to->spec.one_target ? a == b : crdi_dcp_converts(a, b);
    return types && from->spec.mode != CRD_DCP_NRT && to->spec.mode != CRD_DCP_NRT &&
           from->spec.control.transport == to->spec.control.transport &&
           !(from->spec.one_target && wanted_elsewhere(m, r));
}

static crd_status decide_routes(crd_dcp_master* m)
{
    for (int i = 0; i < m->route_count; i++) {
        crdi_dcp_route* r = &m->routes[i];
        if (m->net->ops->lay_out) {
            return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                             "DCP session: routes between slaves on a CAN bus are not planned");
        }
        const uint32_t a = m->peers[r->from].values[r->output].slot.count;
        const uint32_t b = m->peers[r->to].values[r->input].slot.count;
        if (a != b) {
            return crdi_fail(m->ctx, CRD_E_RANGE, "%s.%s has %u elements and %s.%s %u",
                             m->peers[r->from].spec.name,
                             master_config_variable_of(m, r->from, r->output)->name, a,
                             m->peers[r->to].spec.name,
                             master_config_variable_of(m, r->to, r->input)->name, b);
        }
        r->direct = goes_directly(m, r);
        if (r->answer) { *r->answer = r->direct; }
    }
    return CRD_OK;
}

// ---- bundles -----------------------------------------------------------------------------------

typedef struct load { // what goes from one to another
    crdi_dcp_kind kind;
    int slave, to, group;
    uint32_t steps;          // 0: as each output likes it
    int *variables, *inputs; // (count)
    int count;
} load;

static uint32_t master_config_steps_of(const crd_dcp_master* m, const load* l, int variable)
{
    if (l->kind == CRDI_FEED || l->kind == CRDI_TUNE) { return 1; }
    const crd_dcp_variable* v = master_config_variable_of(m, l->slave, variable);
    const bool nrt = m->peers[l->slave].spec.mode == CRD_DCP_NRT;
    const uint32_t own = v->default_steps ? v->default_steps : 1;
    return v->fixed_steps || nrt || l->steps == 0 ? own : l->steps;
}

static size_t master_config_size_of(const crd_dcp_master* m, const load* l, int variable)
{
    const crd_dcp_slot* s = &m->peers[l->slave].values[variable].slot;
    const size_t element = crdi_dcp_size_of(s->type);
    return element ? element * s->count : 4 + (size_t)s->max_size;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t slave_limit(const crdi_dcp_peer* p)
{
    const size_t declared = p->endpoint->max_pdu_size ? p->endpoint->max_pdu_size : 65507;
    return smaller(declared, CRDI_DCP_MOST_UDP);
}

// Bytes of a PDU that its sender and receiver take; `hard`: what they can take at most.
static size_t limit_of(const crd_dcp_master* m, const load* l, bool hard)
{
    const crdi_dcp_peer* p = &m->peers[l->slave];
    size_t most = slave_limit(p);
    if (l->kind == CRDI_DIRECT) { most = smaller(most, slave_limit(&m->peers[l->to])); }
    if (!hard || p->spec.one_target) { most = smaller(most, m->opt.max_pdu); }
    if (p->spec.one_target && (l->kind == CRDI_WATCH || l->kind == CRDI_DIRECT)) {
        most = smaller(most, DCPLIB_PDU);
    }
    return most;
}

crdi_dcp_bundle* crdi_dcp_bundle_new(crd_dcp_master* m, crdi_dcp_kind kind, int slave, int room,
                                     uint32_t steps)
{
    if (m->bundle_count == m->bundle_room) { return NULL; }
    crdi_dcp_bundle* b = &m->bundles[m->bundle_count++];
    *b = (crdi_dcp_bundle){.id = (uint16_t)m->bundle_count,
                           .kind = kind,
                           .slave = slave,
                           .steps = steps,
                           .variables = crdi_arena_new(&m->layout, (size_t)room, sizeof(int)),
                           .inputs = crdi_arena_new(&m->layout, (size_t)room, sizeof(int))};
    return b->variables && b->inputs ? b : NULL;
}

// Splits a load into bundles: equal steps, not more bytes than anybody takes.
static crd_status pack_load(crd_dcp_master* m, const load* l)
{
    const size_t soft = limit_of(m, l, false), hard = limit_of(m, l, true);
    bool* packed = crdi_arena_new(&m->layout, (size_t)l->count + 1, sizeof *packed);
    if (!packed) { return CRD_E_MEMORY; }
    for (int first = 0; first < l->count; first++) {
        if (packed[first]) { continue; }
        const uint32_t steps = master_config_steps_of(m, l, l->variables[first]);
        crdi_dcp_bundle* b = NULL;
        size_t size = 0;
        for (int i = first; i < l->count; i++) {
            const int variable = l->variables[i];
            if (packed[i] || master_config_steps_of(m, l, variable) != steps) { continue; }
            const size_t more = master_config_size_of(m, l, variable);
            if (DATA_HEAD + more > hard) {
                return crdi_fail(
                    m->ctx, CRD_E_RANGE, "%s: %s takes %zu bytes, but a PDU has at most %zu",
                    m->peers[l->slave].spec.name,
                    master_config_variable_of(m, l->slave, variable)->name, DATA_HEAD + more, hard);
            }
            if (!b || size + more > soft || b->count == MOST_MEMBERS) {
                b = crdi_dcp_bundle_new(m, l->kind, l->slave, l->count, steps);
                if (!b) { return CRD_E_MEMORY; }
                b->to = l->to;
                b->group = l->group;
                size = DATA_HEAD;
            }
            b->variables[b->count] = variable;
            b->inputs[b->count++] = l->inputs ? l->inputs[i] : 0;
            size += more;
            packed[i] = true;
        }
    }
    return CRD_OK;
}

bool crdi_dcp_bundled(const crd_dcp_master* m, crdi_dcp_kind kind, int slave, int variable,
                      int* index)
{
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        for (int k = 0; b->kind == kind && b->slave == slave && k < b->count; k++) {
            if (b->variables[k] == variable) {
                if (index) { *index = i; }
                return true;
            }
        }
    }
    return false;
}

static bool in_load(const load* l, int variable)
{
    for (int i = 0; i < l->count; i++) {
        if (l->variables[i] == variable) { return true; }
    }
    return false;
}

// Outputs that the master relays and does not get anyway, inputs that it relays to.
static crd_status pack_relays(crd_dcp_master* m, crdi_dcp_kind kind, int slave)
{
    load l = {.kind = kind, .slave = slave};
    l.variables = crdi_arena_new(&m->layout, (size_t)m->route_count + 1, sizeof(int));
    bool* done = crdi_arena_new(&m->layout, (size_t)m->route_count + 1, sizeof(bool));
    if (!l.variables || !done) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->route_count; i++) {
        const crdi_dcp_route* first = &m->routes[i];
        l.count = 0;
        l.steps = kind == CRDI_WATCH ? first->steps : 0;
        for (int k = i; k < m->route_count; k++) {
            const crdi_dcp_route* r = &m->routes[k];
            const int variable = kind == CRDI_WATCH ? r->output : r->input;
            if (r->direct || done[k] || (kind == CRDI_WATCH ? r->from : r->to) != slave ||
                (kind == CRDI_WATCH && r->steps != first->steps)) {
                continue;
            }
            done[k] = true;
            if (!crdi_dcp_bundled(m, kind, slave, variable, NULL) && !in_load(&l, variable)) {
                l.variables[l.count++] = variable;
            }
        }
        const crd_status st = pack_load(m, &l);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Routes with the same ends and steps travel together.
static crd_status pack_direct(crd_dcp_master* m)
{
    const size_t room = (size_t)m->route_count + 1;
    load l = {.kind = CRDI_DIRECT};
    l.variables = crdi_arena_new(&m->layout, room, sizeof(int));
    l.inputs = crdi_arena_new(&m->layout, room, sizeof(int));
    bool* done = crdi_arena_new(&m->layout, room, sizeof(bool));
    if (!l.variables || !l.inputs || !done) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->route_count; i++) {
        const crdi_dcp_route* first = &m->routes[i];
        if (!first->direct || done[i]) { continue; }
        l.slave = first->from;
        l.to = first->to;
        l.steps = first->steps;
        l.count = 0;
        for (int k = i; k < m->route_count; k++) {
            const crdi_dcp_route* r = &m->routes[k];
            if (!r->direct || r->from != l.slave || r->to != l.to || r->steps != l.steps) {
                continue;
            }
            done[k] = true;
            l.variables[l.count] = r->output;
            l.inputs[l.count++] = r->input;
        }
        const crd_status st = pack_load(m, &l);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status pack_all(crd_dcp_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; m->net->ops->lay_out && i < m->count; i++) {
        CRD_TRY(m->net->ops->lay_out(m->net, m, i));
    }
    if (m->net->ops->lay_out) { return CRD_OK; }
    for (int i = 0; i < m->wish_count; i++) {
        const crdi_dcp_wish* w = &m->wishes[i];
        const load l = {.kind = w->kind,
                        .slave = w->slave,
                        .group = w->group,
                        .steps = w->steps,
                        .variables = w->variables,
                        .count = w->count};
        CRD_TRY(pack_load(m, &l));
    }
    for (int i = 0; i < m->count; i++) {
        CRD_TRY(pack_relays(m, CRDI_FEED, i));
        CRD_TRY(pack_relays(m, CRDI_WATCH, i));
    }
    CRD_TRY(pack_direct(m));
    if (m->bundle_count > 65535) {
        st = crdi_fail(m->ctx, CRD_E_RANGE, "DCP session: %d data_ids, expected at most 65535",
                       m->bundle_count);
    }
fail:
    return st;
}

// What arrives for a route that the master relays is written to the input of the other slave.
static crd_status link_relays(crd_dcp_master* m)
{
    for (int i = 0; i < m->bundle_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[i];
        if (b->kind != CRDI_WATCH) { continue; }
        b->relays = crdi_arena_new(&m->layout, (size_t)m->route_count + 1, sizeof *b->relays);
        if (!b->relays) { return CRD_E_MEMORY; }
        for (int k = 0; k < m->route_count; k++) {
            const crdi_dcp_route* r = &m->routes[k];
            int bundle = 0, feed = 0;
            if (r->direct || r->from != b->slave ||
                !crdi_dcp_bundled(m, CRDI_WATCH, r->from, r->output, &bundle) || bundle != i ||
                !crdi_dcp_bundled(m, CRDI_FEED, r->to, r->input, &feed)) {
                continue;
            }
            b->relays[b->relay_count++] =
                (crdi_dcp_relayed){.from = &m->peers[r->from].values[r->output].slot,
                                   .to = &m->peers[r->to].values[r->input].slot,
                                   .bundle = feed};
        }
    }
    return CRD_OK;
}

static crd_status list_bundles(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const size_t room = (size_t)m->bundle_count + 1;
    p->feeds = crdi_arena_new(&m->layout, room, sizeof(int));
    p->watches = crdi_arena_new(&m->layout, room, sizeof(int));
    p->tunes = crdi_arena_new(&m->layout, room, sizeof(int));
    if (!p->feeds || !p->watches || !p->tunes) { return CRD_E_MEMORY; }
    p->feed_count = p->watch_count = p->tune_count = 0;
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        if (b->slave != p->index) { continue; }
        if (b->kind == CRDI_FEED) { p->feeds[p->feed_count++] = i; }
        if (b->kind == CRDI_WATCH) { p->watches[p->watch_count++] = i; }
        if (b->kind == CRDI_TUNE) { p->tunes[p->tune_count++] = i; }
    }
    return CRD_OK;
}

// ---- addresses ---------------------------------------------------------------------------------

static crd_status find_ways(crd_dcp_master* m)
{
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        p->local_ip =
            m->opt.local_ip ? m->opt.local_ip : crdi_dcp_net_source_ip(m->net, &p->spec.control);
        if (p->local_ip == 0) {
            return crdi_fail(m->ctx, CRD_E_IO, "%s: no interface of this host leads to %s",
                             p->spec.name, crdi_dcp_address_text_of(&p->spec.control).text);
        }
    }
    return CRD_OK;
}

// Where the session listens: at the interface that leads to the slaves, at all if there are
// several.
static crd_status open_at(crd_dcp_master* m, uint8_t transport, crd_dcp_address* at)
{
    uint32_t ip = 0;
    int users = 0;
    bool equal = true;
    for (int i = 0; i < m->count; i++) {
        const crdi_dcp_peer* p = &m->peers[i];
        if (p->spec.control.transport != transport) { continue; }
        if (users++ == 0) { ip = p->local_ip; }
        equal = equal && p->local_ip == ip;
    }
    if (users == 0 || at->port) { return CRD_OK; }
    crd_dcp_address open;
    for (int i = 0; transport == CRD_DCP_UDP && crd_dcp_net_local(m->net, i, &open); i++) {
        if (open.transport != transport) { continue; }
        if (open.ip == 0 || (equal && open.ip == ip)) { // requests leave from the first one
            *at = open;
            return CRD_OK;
        }
        return crdi_fail(m->ctx, CRD_E_IO,
                         "the DCP session would send from %s, which does not lead to all slaves",
                         crdi_dcp_address_text_of(&open).text);
    }
    crd_dcp_address here = {.ip = equal ? ip : 0, .transport = transport};
    const crd_status st = crd_dcp_net_listen(m->net, &here);
    if (st == CRD_OK) { *at = here; }
    return st;
}

// Whether another slave of that host has the port.
static bool occupied(const crd_dcp_master* m, const crdi_dcp_peer* p, uint16_t port)
{
    const crd_dcp_address* own = &p->spec.control;
    for (int i = 0; i < m->count; i++) {
        const crd_dcp_address* c = &m->peers[i].spec.control;
        if (c->ip == own->ip && c->port == port && c->transport == own->transport) { return true; }
    }
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        const int who = b->kind == CRDI_DIRECT ? b->to : b->slave;
        if (b->kind != CRDI_WATCH && who != p->index && b->address.ip == own->ip &&
            b->address.port == port && b->address.transport == own->transport) {
            return true;
        }
    }
    return false;
}

// The n-th port at which a slave may be told to listen; 0: there is none. Its control port is the
// best: what arrives there arrives in the order of sending.
static uint16_t port_of(const crd_dcp_master* m, const crdi_dcp_peer* p, bool parameters, int n)
{
    const crd_dcp_endpoint* e = p->endpoint;
    const crd_dcp_ports* ports = parameters ? e->parameter : e->data;
    const int count = parameters ? e->parameter_count : e->data_count;
    const uint16_t control = p->spec.control.port;
    // DCPLib cannot take data through the stream of control.
    const bool own_stream = p->spec.one_target && p->spec.control.transport == CRD_DCP_TCP;
    if ((count == 0 || crdi_dcp_port_listed(ports, count, control)) && !own_stream && n-- == 0) {
        return control;
    }
    if (n >= MOST_PORTS) { return 0; }
    // Those behind its control port first: a slave of another session, which we do not know of, has
    // another one, so that both do not begin at the same place.
    for (int i = 0; i < 2 * count; i++) {
        const crd_dcp_ports* r = &ports[i % count];
        const uint32_t first = i < count ? control + 1U : 1;
        const uint32_t last = i < count || r->to < control ? r->to : control;
        for (uint32_t port = r->from > first ? r->from : first; port <= last; port++) {
            if (!occupied(m, p, (uint16_t)port) && n-- == 0) { return (uint16_t)port; }
        }
    }
    return 0;
}

static crd_status give_addresses(crd_dcp_master* m)
{
    for (int i = 0; i < m->bundle_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[i];
        const crdi_dcp_peer* p = &m->peers[b->kind == CRDI_DIRECT ? b->to : b->slave];
        b->address = p->spec.control;
        if (m->net->ops->lay_out) { continue; } // a bus has no ports
        if (b->kind == CRDI_WATCH) {
            b->address.ip = p->local_ip;
            b->address.port = b->address.transport == CRD_DCP_TCP ? m->tcp.port : m->udp.port;
            continue;
        }
        b->address.port = port_of(m, p, b->kind == CRDI_TUNE, 0);
        if (b->address.port == 0) {
            return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                             "%s: its description has no port at which data could arrive",
                             p->spec.name);
        }
    }
    return CRD_OK;
}

static crdi_dcp_pdu network_pdu(const crdi_dcp_bundle* b, int index, uint8_t type)
{
    return (crdi_dcp_pdu){.type = type,
                          .id = (uint16_t)(index + 1),
                          .transport = b->address.transport,
                          .port = b->address.port,
                          .address = b->address.ip};
}

bool crdi_dcp_master_next_port(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_request* r)
{
    crdi_dcp_bundle* b = &m->bundles[r->bundle];
    if (r->small[0] == CRDI_DCP_CFG_TARGET_NETWORK) { return false; } // no choice there
    const uint16_t port = port_of(m, p, b->kind == CRDI_TUNE, ++b->port_tries);
    if (port == 0) { return false; }
    crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, CRD_DCP_E_INVALID_NETWORK_INFORMATION,
                    "the slave does not take data at port %u: trying %u", b->address.port, port);
    b->address.port = port;
    const crdi_dcp_pdu pdu = network_pdu(b, r->bundle, r->small[0]);
    (void)crdi_dcp_encode(&pdu, r->small, sizeof r->small);
    return true;
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status check_capabilities(crd_dcp_master* m)
{
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        const int ends[] = {b->slave, b->kind == CRDI_DIRECT ? b->to : b->slave};
        for (int k = 0; k < 2 && b->kind != CRDI_TUNE; k++) {
            const crdi_dcp_peer* p = &m->peers[ends[k]];
            if (!p->d->can_accept_config && !m->net->ops->lay_out) {
                return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                                 "%s: its inputs and outputs cannot be connected: it takes no "
                                 "configuration (canAcceptConfigPdus is false)",
                                 p->spec.name);
            }
        }
    }
    return CRD_OK;
}

// How many bundles there can be at most.
static size_t bundle_bound(const crd_dcp_master* m)
{
    size_t n = 2 * (size_t)m->route_count + (size_t)(m->net->messages * m->count);
    for (int i = 0; i < m->wish_count; i++) {
        n += (size_t)m->wishes[i].count;
    }
    return n;
}

crd_status crdi_dcp_master_lay_out(crd_dcp_master* m)
{
    crd_status st = CRD_OK;
    crd_arena_clear(&m->layout);
    crd_arena_init(&m->layout, m->ctx);
    m->bundle_count = 0;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        p->script = NULL;
        p->script_count = p->feed_count = p->watch_count = p->tune_count = 0;
        CRD_TRY(crdi_dcp_master_resize(m, p));
    }
    const size_t bound = bundle_bound(m);
    m->bundles = crdi_arena_new(&m->layout, bound + 1, sizeof *m->bundles);
    if (!m->bundles) { return CRD_E_MEMORY; }
    m->bundle_room = (int)bound;
    CRD_TRY(decide_routes(m));
    CRD_TRY(pack_all(m));
    CRD_TRY(check_capabilities(m));
    CRD_TRY(link_relays(m));
    CRD_TRY(find_ways(m));
    CRD_TRY(open_at(m, CRD_DCP_UDP, &m->udp));
    CRD_TRY(open_at(m, CRD_DCP_TCP, &m->tcp));
    CRD_TRY(give_addresses(m));
    for (int i = 0; i < m->bundle_count; i++) {
        CRD_TRY(crdi_dcp_bundle_prepare(m, &m->bundles[i]));
    }
    for (int i = 0; i < m->count; i++) {
        CRD_TRY(list_bundles(m, &m->peers[i]));
    }
fail:
    return st;
}

// ---- scripts -----------------------------------------------------------------------------------

typedef struct writer { // counts in a first pass, writes in a second one
    crd_dcp_master* m;
    crdi_dcp_request* out; // NULL: only count
    int count;
    bool failed;
} writer;

static void add_request(writer* w, const crdi_dcp_pdu* pdu, int bundle)
{
    const int at = w->count++;
    if (!w->out || w->failed) { return; }
    crdi_dcp_request* r = &w->out[at];
    const size_t length = crdi_dcp_encode(pdu, NULL, 0);
    *r = (crdi_dcp_request){.bundle = bundle, .length = (uint32_t)length};
    if (length > CRDI_DCP_SHORT) {
        r->bytes = crdi_arena_new(&w->m->layout, length, 1);
        if (!r->bytes) {
            w->failed = true;
            return;
        }
    }
    (void)crdi_dcp_encode(pdu, r->bytes ? r->bytes : r->small, length);
}

static void add_network(writer* w, int index, uint8_t type)
{
    const crdi_dcp_pdu pdu = network_pdu(&w->m->bundles[index], index, type);
    add_request(w, &pdu, index);
}

static void add_parameters(writer* w, const crdi_dcp_peer* p, bool structural)
{
    for (int i = 0; i < p->d->variable_count; i++) {
        const crd_dcp_variable* v = &p->d->variables[i];
        const crd_dcp_slot* slot = &p->values[i].slot;
        if (!p->is_set[i] || (v->causality == CRD_STRUCTURAL_PARAMETER) != structural) { continue; }
        const size_t length = crdi_dcp_put(slot, 1, NULL, 0);
        uint8_t* value = w->out ? crdi_arena_new(&w->m->layout, length + 1, 1) : NULL;
        if (w->out && !value) {
            w->failed = true;
            return;
        }
        if (value) { (void)crdi_dcp_put(slot, 1, value, length); }
        add_request(w,
                    &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_PARAMETER,
                                    .vr = v->vr,
                                    .data_type = v->type,
                                    .payload = value,
                                    .payload_length = value ? length : 0},
                    -1);
    }
}

// One for every category and level that has a template. DCPLib, which serves one target only, ends
// itself when it is asked for notifications.
static void add_logging(writer* w, crdi_dcp_peer* p)
{
    const crd_dcp_description* d = p->d;
    const bool notify = d->can_log_on_notification && !p->spec.one_target;
    p->log_mode = !w->m->opt.log ? 0 : notify ? 2 : d->can_log_on_request ? 1 : 0;
    bool said[256][5] = {{0}};
    for (int i = 0; p->log_mode && i < d->template_count; i++) {
        const crd_dcp_log_template* t = &d->templates[i];
        if (t->level > 4 || said[t->category][t->level]) { continue; }
        said[t->category][t->level] = true;
        add_request(w,
                    &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_LOGGING,
                                    .category = t->category,
                                    .level = t->level,
                                    .mode = p->log_mode},
                    -1);
    }
}

static void add_received(writer* w, int index, const crdi_dcp_peer* p)
{
    const crdi_dcp_bundle* b = &w->m->bundles[index];
    const bool tune = b->kind == CRDI_TUNE;
    const uint16_t id = (uint16_t)(index + 1);
    if (!tune) { add_request(w, &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = id}, -1); }
    for (int i = 0; i < b->count; i++) {
        const int variable = b->kind == CRDI_DIRECT ? b->inputs[i] : b->variables[i];
        const uint8_t type = b->kind == CRDI_DIRECT
                                 ? master_config_variable_of(w->m, b->slave, b->variables[i])->type
                                 : p->d->variables[variable].type;
        add_request(
            w,
            &(crdi_dcp_pdu){.type = tune ? CRDI_DCP_CFG_TUNABLE_PARAMETER : CRDI_DCP_CFG_INPUT,
                            .id = id,
                            .pos = (uint16_t)i,
                            .vr = p->d->variables[variable].vr,
                            .data_type = type},
            -1);
    }
    add_network(w, index, tune ? CRDI_DCP_CFG_PARAM_NETWORK : CRDI_DCP_CFG_SOURCE_NETWORK);
}

static void add_sent(writer* w, int index, const crdi_dcp_peer* p)
{
    const crdi_dcp_bundle* b = &w->m->bundles[index];
    const uint16_t id = (uint16_t)(index + 1);
    add_request(w, &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = id}, -1);
    for (int i = 0; i < b->count; i++) {
        add_request(w,
                    &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT,
                                    .id = id,
                                    .pos = (uint16_t)i,
                                    .vr = p->d->variables[b->variables[i]].vr},
                    -1);
    }
    add_request(w, &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = id, .steps = b->steps}, -1);
    if (b->kind == CRDI_WATCH) { add_network(w, index, CRDI_DCP_CFG_TARGET_NETWORK); }
}

static void add_everything(writer* w, crdi_dcp_peer* p)
{
    if (w->m->net->ops->lay_out) { return; } // who has laid it out has told them
    if (!p->d->fixed_resolution) {
        add_request(w,
                    &(crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES,
                                    .numerator = p->spec.numerator,
                                    .denominator = p->spec.denominator},
                    -1);
    }
    add_parameters(w, p, true);
    add_parameters(w, p, false);
    add_logging(w, p);
    for (int i = 0; i < w->m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &w->m->bundles[i];
        const bool direct = b->kind == CRDI_DIRECT, watch = b->kind == CRDI_WATCH;
        if (direct ? b->to == p->index : !watch && b->slave == p->index) { add_received(w, i, p); }
        if ((direct || watch) && b->slave == p->index) { add_sent(w, i, p); }
    }
}

// Where data go directly, known when the receivers have said at which port they take them.
static void add_targets(writer* w, const crdi_dcp_peer* p)
{
    for (int i = 0; i < w->m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &w->m->bundles[i];
        if (b->kind == CRDI_DIRECT && b->slave == p->index) {
            add_network(w, i, CRDI_DCP_CFG_TARGET_NETWORK);
        }
    }
}

crd_status crdi_dcp_master_write_scripts(crd_dcp_master* m, bool direct_targets)
{
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        writer w = {.m = m};
        for (int pass = 0; pass < 2; pass++) {
            w.count = 0;
            if (direct_targets) {
                add_targets(&w, p);
            } else {
                add_everything(&w, p);
            }
            if (pass == 1) { break; }
            w.out = crdi_arena_new(&m->layout, (size_t)w.count + 1, sizeof *w.out);
            if (!w.out) { return CRD_E_MEMORY; }
        }
        if (w.failed) { return CRD_E_MEMORY; }
        p->script = w.out;
        p->script_count = w.count;
        p->script_next = 0;
    }
    return CRD_OK;
}
