// A bus as the network of a master or of a slave. Both speak native DCP; what CAN has no room for
// is put in here: sequence ids, of a slave also uuid and version at registration and the CFG PDUs
// behind it, which the file has. Addresses do not exist on a bus: a slave is told of one that
// stands for it, a master knows its slaves by their ids.
#include "dcp/can/can.h"

#include <string.h>

#include "dcp/net/net.h"
#include "dcp/slave/slave.h"

const crd_dcp_address crdi_dcp_bus_address = {
    .ip = CRDI_DCP_LOOPBACK, .port = CRDI_DCP_BUS_PORT, .transport = CRD_DCP_UDP};
static const crd_dcp_ports bus_port = {CRDI_DCP_BUS_PORT, CRDI_DCP_BUS_PORT};

typedef struct counter { // of data that arrive
    uint16_t id, seq;
    uint8_t sender;
    bool parameters;
} counter;

typedef struct can_net {
    crd_dcp_net base; // first
    crd_dcp_can* can;
    bool owned;   // it belongs to the net
    uint8_t* pdu; // (room)
    size_t room;
    counter* counters;
    int counter_count;
    // of a slave
    uint8_t uuid[16], major, minor;
    const crdi_dcp_can_config* config;
    crd_dcp_slave* engine;
    uint16_t seq;   // of the next request
    bool settled;   // the settings are in
    bool quiet;     // answers are ours, not the master's
    double now;     // of who has a clock of its own, else 0
    uint16_t error; // of the last answer, when quiet
    // of a master
    const crd_dcp_can_description* file;
    uint16_t asked[256]; // sequence id of the last request to each slave
    struct held {        // STC_run, which has no time on the bus, until its time has come
        double at;
        uint16_t seq;
        uint8_t state;
        bool waits, acknowledge, sent; // to be sent; our answer is due; the slave's is
    } held[256];
    int held_count; // of those that wait or whose answer is due
} can_net;

static double engine_now(const can_net* n)
{
    return n->now > 0 ? n->now : crd_dcp_net_now(&n->base);
}

static bool encode_packet(can_net* n, const crdi_dcp_pdu* p, size_t* length)
{
    *length = crdi_dcp_encode(p, n->pdu, n->room);
    return *length > 0 && *length <= n->room;
}

// Of data, which have no numbers on the bus, nothing can be told from them: they are consecutive.
static uint16_t next_data(can_net* n, const crdi_dcp_pdu* p, uint8_t sender)
{
    const bool parameters = p->type == CRDI_DCP_DAT_PARAMETER;
    for (int i = 0; i < n->counter_count; i++) {
        counter* c = &n->counters[i];
        if (c->id == p->id && c->parameters == parameters && c->sender == sender) {
            return c->seq++;
        }
    }
    return 0;
}

// ---- a master ----------------------------------------------------------------------------------

// Another request to the slave came: it shall not run any more when the time has come.
static void forget_run(can_net* n, uint8_t id)
{
    n->held_count -= n->held[id].waits || n->held[id].acknowledge;
    n->held[id] = (struct held){0};
}

static bool master_sends(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                         size_t length, crd_dcp_address* from)
{
    can_net* n = (can_net*)base;
    crdi_dcp_pdu p;
    *from = (crd_dcp_address){.transport = CRD_DCP_CAN};
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_GOOD || to->port > UINT8_MAX) {
        return false;
    }
    if (crdi_dcp_is_request(p.type)) { n->asked[p.peer] = p.seq; }
    if (crdi_dcp_is_state_change(p.type)) { forget_run(n, p.peer); }
    if (p.type == CRDI_DCP_STC_RUN && (double)p.time > crd_dcp_net_now(base)) {
        n->held[p.peer] = (struct held){(double)p.time, p.seq, p.state, true, true, false};
        n->held_count++;
        return true;
    }
    return crdi_dcp_can_send(n->can, &p, 0);
}

// What is due of STC_run: the frame to the slave, and before that an answer in its place.
static bool run_is_due(can_net* n, crd_dcp_packet* out)
{
    const double now = n->held_count ? crd_dcp_net_now(&n->base) : 0;
    for (int id = 1; n->held_count && id < 256; id++) {
        struct held* h = &n->held[id];
        const crdi_dcp_pdu answer = {.type = CRDI_DCP_RSP_ACK, .peer = (uint8_t)id, .seq = h->seq};
        size_t length = 0;
        if (h->waits && now >= h->at) {
            const crdi_dcp_pdu run = {
                .type = CRDI_DCP_STC_RUN, .peer = (uint8_t)id, .state = h->state};
            h->sent = crdi_dcp_can_send(n->can, &run, 0);
            h->waits = false;
            n->held_count -= !h->acknowledge;
        }
        if (!h->acknowledge || !encode_packet(n, &answer, &length)) { continue; }
        h->acknowledge = false;
        n->held_count -= !h->waits;
        *out = (crd_dcp_packet){.from = {.port = (uint16_t)id, .transport = CRD_DCP_CAN},
                                .at = {.transport = CRD_DCP_CAN},
                                .time = now,
                                .bytes = n->pdu,
                                .length = length};
        return true;
    }
    return false;
}

// Frames of slaves. An answer is taken for that to the last request: which one a frame answers,
// nothing on the bus says. If it was the one before, the state of the slave tells, which is asked
// for where an answer does not fit.
static bool master_receives(crd_dcp_net* base, crd_dcp_packet* out)
{
    can_net* n = (can_net*)base;
    crdi_dcp_pdu p;
    uint8_t sender = 0;
    double time = 0;
    size_t length = 0;
    if (run_is_due(n, out)) { return true; }
    while (crdi_dcp_can_receive(n->can, &p, &sender, &time)) {
        const bool data = p.type == CRDI_DCP_DAT_INPUT_OUTPUT;
        if (p.type == CRDI_DCP_RSP_ACK && n->held[sender].sent) { // ours came before
            n->held[sender].sent = false;
            continue;
        }
        if (sender == 0 || (data && !crdi_dcp_can_for_master(n->can, &p, sender))) { continue; }
        p.seq = data ? next_data(n, &p, sender) : n->asked[sender];
        p.expected = (uint16_t)(p.seq + 1);
        if (!encode_packet(n, &p, &length)) { continue; }
        *out = (crd_dcp_packet){.from = {.port = sender, .transport = CRD_DCP_CAN},
                                .at = {.transport = CRD_DCP_CAN},
                                .time = time,
                                .bytes = n->pdu,
                                .length = length};
        return true;
    }
    return false;
}

static crd_status master_lays_out(const crd_dcp_net* n, crd_dcp_master* m, int peer)
{
    return crdi_can_lay_out(((const can_net*)n)->file, m, peer);
}

// ---- a slave: from the engine ------------------------------------------------------------------

static bool slave_sends(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                        size_t length, crd_dcp_address* from)
{
    can_net* n = (can_net*)base;
    crdi_dcp_pdu p;
    (void)to;
    *from = crdi_dcp_bus_address;
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_GOOD) { return false; }
    const bool answer = crdi_dcp_is_response(p.type);
    if (answer) { n->seq = (uint16_t)(p.seq + 1); }
    if (answer && n->quiet) {
        n->error = p.type == CRDI_DCP_RSP_NACK ? p.error : CRD_DCP_NONE;
        return true;
    }
    return crdi_dcp_can_send(n->can, &p, n->config->id);
}

// ---- a slave: to the engine --------------------------------------------------------------------

// A setting as the engine knows it. The bus is one address.
static crd_dcp_error apply_setting(can_net* n, crdi_dcp_pdu p)
{
    size_t length = 0;
    p.seq = n->seq;
    p.peer = n->config->id;
    if (crdi_dcp_is_network(p.type)) {
        p.transport = crdi_dcp_bus_address.transport;
        p.port = crdi_dcp_bus_address.port;
        p.address = crdi_dcp_bus_address.ip;
    }
    n->error = CRD_DCP_E_GENERIC;
    n->quiet = true;
    if (encode_packet(n, &p, &length)) {
        crd_dcp_slave_receive(n->engine, &crdi_dcp_bus_address, &crdi_dcp_bus_address, n->pdu,
                              length, engine_now(n));
    }
    n->quiet = false;
    return (crd_dcp_error)n->error;
}

static crd_dcp_error apply_network(can_net* n, const crdi_dcp_pdu* of)
{
    const uint8_t type = of->type == CRDI_DCP_CFG_OUTPUT  ? CRDI_DCP_CFG_TARGET_NETWORK
                         : of->type == CRDI_DCP_CFG_INPUT ? CRDI_DCP_CFG_SOURCE_NETWORK
                                                          : CRDI_DCP_CFG_PARAM_NETWORK;
    return apply_setting(n, (crdi_dcp_pdu){.type = type, .id = of->id});
}

// All settings; the first that is refused is an error of the slave.
static void apply_settings(can_net* n)
{
    n->settled = true;
    for (int i = 0; i < n->config->setting_count; i++) {
        const crdi_dcp_pdu* p = &n->config->settings[i];
        crd_dcp_error e = apply_setting(n, *p);
        // What the file does not say about networks: it can only be the bus.
        const bool data = p->type == CRDI_DCP_CFG_OUTPUT || p->type == CRDI_DCP_CFG_INPUT ||
                          p->type == CRDI_DCP_CFG_TUNABLE_PARAMETER;
        if (e == CRD_DCP_NONE && data && p->pos == 0) { e = apply_network(n, p); }
        if (e == CRD_DCP_NONE) { continue; }
        if (e == CRD_DCP_E_TRANSITION_IN_PROGRESS) { // the plant is not back at its start: later
            n->settled = false;
            return;
        }
        const char* name = crd_dcp_error_name(e);
        crdi_log(n->base.ctx, CRD_LOG_ERROR, "CAN: slave %d: %s in line %d is refused: %s",
                 n->config->id, crdi_dcp_type_name(p->type),
                 n->config->lines ? n->config->lines[i] : 0, name ? name : "?");
        crd_dcp_slave_fault(n->engine, e, engine_now(n));
        return;
    }
}

static void apply_if_need_be(can_net* n)
{
    const bool there = n->engine && crd_dcp_slave_state(n->engine) == CRD_DCP_CONFIGURATION;
    n->settled = n->settled && there;
    if (there && !n->settled) { apply_settings(n); }
}

static bool slave_receives(crd_dcp_net* base, crd_dcp_packet* out)
{
    can_net* n = (can_net*)base;
    crdi_dcp_pdu p;
    uint8_t sender = 0;
    double time = 0;
    size_t length = 0;
    apply_if_need_be(n);
    while (crdi_dcp_can_receive(n->can, &p, &sender, &time)) {
        const bool data = crdi_dcp_is_data(p.type);
        if (!data && (p.type >= CRDI_DCP_RSP_ACK || p.peer != n->config->id)) { continue; }
        p.seq = data ? next_data(n, &p, 0) : n->seq;
        if (p.type == CRDI_DCP_STC_REGISTER) {
            memcpy(p.uuid, n->uuid, sizeof p.uuid);
            p.major = n->major;
            p.minor = n->minor;
        }
        if (!encode_packet(n, &p, &length)) { continue; }
        *out = (crd_dcp_packet){.from = crdi_dcp_bus_address,
                                .at = crdi_dcp_bus_address,
                                .time = time,
                                .bytes = n->pdu,
                                .length = length};
        return true;
    }
    return false;
}

static crd_status slave_listens(crd_dcp_net* n, crd_dcp_address* at)
{
    (void)n, (void)at;
    return CRD_OK; // the bus is there
}

static crd_status slave_connects(crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)n, (void)to;
    return CRD_OK;
}

static bool slave_local(const crd_dcp_net* n, int index, crd_dcp_address* out)
{
    (void)n;
    *out = crdi_dcp_bus_address;
    return index == 0;
}

// ---- all of it ---------------------------------------------------------------------------------

static void can_wait(crd_dcp_net* base, double seconds)
{
    static const double moment = 1e-3; // until a plant is back at its start
    const can_net* n = (const can_net*)base;
    const bool settling =
        n->engine && !n->settled && crd_dcp_slave_state(n->engine) == CRD_DCP_CONFIGURATION;
    double most = settling && seconds > moment ? moment : seconds;
    for (int id = 1; n->held_count && id < 256; id++) {
        const struct held* h = &n->held[id];
        const double left = h->waits ? h->at - crd_dcp_net_now(base) : most;
        most = h->acknowledge || left < 0 ? 0 : left < most ? left : most;
    }
    crd_dcp_net_wait(base->inner, most);
}

static void can_destroy(crd_dcp_net* base)
{
    can_net* n = (can_net*)base;
    if (n->owned) { crd_dcp_can_destroy(n->can); }
    crd_free(base->ctx, n->counters);
    crd_free(base->ctx, n->pdu);
    crd_free(base->ctx, n);
}

const crdi_dcp_can_config* crdi_can_config_of(const crd_dcp_can_description* file,
                                              const uint8_t uuid[16], uint8_t id)
{
    for (int i = 0; i < file->slave_count; i++) {
        const crdi_dcp_can_config* c = &file->slaves[i];
        if (memcmp(c->uuid, uuid, sizeof c->uuid) == 0 && (id == 0 || c->id == id)) { return c; }
    }
    return NULL;
}

uint8_t crdi_dcp_can_find(const crd_dcp_can_description* d, const uint8_t uuid[16], uint8_t id)
{
    const crdi_dcp_can_config* c = crdi_can_config_of(d, uuid, id);
    return c ? c->id : 0;
}

bool crdi_dcp_can_slave_of(const crd_dcp_can_description* d, int slave, uint8_t* id,
                           const uint8_t** uuid)
{
    if (slave >= d->slave_count) { return false; }
    *id = d->slaves[slave].id;
    *uuid = d->slaves[slave].uuid;
    return true;
}

bool crdi_dcp_can_setting(const crd_dcp_can_description* d, int slave, int index, crdi_dcp_pdu* out)
{
    const crdi_dcp_can_config* c = &d->slaves[slave];
    if (index >= c->setting_count) { return false; }
    *out = c->settings[index];
    out->peer = c->id;
    return true;
}

static crd_status check_settings(crd_context* ctx, const crdi_dcp_can_config* c, size_t* room)
{
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* p = &c->settings[i];
        if (crdi_dcp_is_network(p->type) && p->transport != CRD_DCP_CAN) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "CAN: slave %d: %s in line %d names another network, expected <CAN/>",
                             c->id, crdi_dcp_type_name(p->type), c->lines ? c->lines[i] : 0);
        }
        if (p->payload_length + 64 > *room) { *room = p->payload_length + 64; }
    }
    return CRD_OK;
}

// The data of a message come from its sender; to a slave it is the same whoever that is.
static crd_status count_messages(can_net* n, const crd_dcp_can_description* file, bool master)
{
    n->counters = crdi_new_array(n->base.ctx, (size_t)file->message_count, sizeof *n->counters);
    if (!n->counters) { return CRD_E_MEMORY; }
    for (int i = 0; i < file->message_count; i++) {
        const crdi_dcp_can_message* m = &file->messages[i];
        if (!crdi_dcp_is_data(m->type)) { continue; }
        n->counters[n->counter_count++] =
            (counter){.id = m->id,
                      .sender = master ? m->sender : 0,
                      .parameters = m->type == CRDI_DCP_DAT_PARAMETER};
    }
    return CRD_OK;
}

// Over `can`; on failure that is the caller's.
static crd_status make_net(crd_context* ctx, crd_dcp_can* can, const crd_dcp_can_description* file,
                           const crdi_dcp_can_config* config, crd_dcp_net** out)
{
    static const crdi_dcp_net_ops of_master = {.destroy = can_destroy,
                                               .send = master_sends,
                                               .receive = master_receives,
                                               .wait = can_wait,
                                               .lay_out = master_lays_out,
                                               .can = true,
                                               .captures_inner = true};
    static const crdi_dcp_net_ops of_slave = {.destroy = can_destroy,
                                              .listen = slave_listens,
                                              .connect = slave_connects,
                                              .local = slave_local,
                                              .send = slave_sends,
                                              .receive = slave_receives,
                                              .wait = can_wait,
                                              .captures_inner = true};
    crd_status st = CRD_OK;
    can_net* n = crdi_new(ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    crdi_dcp_net_init(&n->base, ctx, config ? &of_slave : &of_master);
    n->base.inner = crdi_dcp_can_frames(can);
    n->can = can;
    n->config = config;
    n->file = file;
    n->base.messages = file->message_count;
    n->room = CRDI_CAN_PAYLOAD + 64;
    if (config) { CRD_TRY(check_settings(ctx, config, &n->room)); }
    n->pdu = crdi_new(ctx, n->room);
    if (!n->pdu) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(count_messages(n, file, !config));
    *out = &n->base;
    return CRD_OK;
fail:
    can_destroy(&n->base);
    return st;
}

static crd_status open_can(crd_context* ctx, const char* text, const crd_dcp_can_description* d,
                           crd_dcp_can** out)
{
    crdi_can_bus* bus = NULL;
    const crd_status st = crdi_dcp_bus_open(ctx, text, &bus);
    return st < 0 ? st : crdi_dcp_can_over(ctx, d, bus, out);
}

// It belongs to the net.
static crd_status own_can(crd_status st, crd_dcp_can* can, crd_dcp_net** net)
{
    if (st < 0) {
        crd_dcp_can_destroy(can);
    } else {
        ((can_net*)*net)->owned = true;
    }
    return st;
}

crd_status crdi_dcp_net_can_master(crd_context* ctx, const char* text,
                                   const crd_dcp_can_description* d, crd_dcp_net** out)
{
    crd_dcp_can* can = NULL;
    const crd_status st = open_can(ctx, text, d, &can);
    return st < 0 ? st : own_can(make_net(ctx, can, d, NULL, out), can, out);
}

// For the slave `d` of the file; `can` stays the caller's.
static crd_status slave_net(crd_context* ctx, crd_dcp_can* can, const crd_dcp_can_description* file,
                            const crd_dcp_description* d, uint8_t id, crd_dcp_net** out)
{
    const crdi_dcp_can_config* config = crdi_can_config_of(file, d->uuid, id);
    if (!config) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "CAN: %s has no <DcpSlave> with the uuid of %s%s",
                         file->file, d->name, id ? " and this dcpId" : "");
    }
    const crd_status st = make_net(ctx, can, file, config, out);
    if (st < 0) { return st; }
    can_net* n = (can_net*)*out;
    memcpy(n->uuid, d->uuid, sizeof n->uuid);
    n->major = d->major;
    n->minor = d->minor;
    return CRD_OK;
}

crd_status crdi_dcp_net_can_slave(crd_context* ctx, const char* text,
                                  const crd_dcp_can_description* file, const crd_dcp_description* d,
                                  uint8_t id, crd_dcp_net** out)
{
    crd_dcp_can* can = NULL;
    const crd_status st = open_can(ctx, text, file, &can);
    return st < 0 ? st : own_can(slave_net(ctx, can, file, d, id, out), can, out);
}

void crdi_dcp_net_can_bind(crd_dcp_net* n, crd_dcp_slave* slave)
{
    ((can_net*)n)->engine = slave;
}

// ---- a slave with its net ----------------------------------------------------------------------

void crdi_dcp_can_stand_for(crd_dcp_description* d)
{
    d->can_accept_config = true;
    d->udp = (crd_dcp_endpoint){.offered = true,
                                .max_pdu_size = 65507,
                                .host = "",
                                .port = CRDI_DCP_BUS_PORT,
                                .has_data = true,
                                .has_parameter = true,
                                .data_host = "",
                                .parameter_host = "",
                                .data = &bus_port,
                                .parameter = &bus_port,
                                .data_count = 1,
                                .parameter_count = 1};
}

struct crd_dcp_can_slave {
    crd_context* ctx;
    crd_dcp_description d; // as given, but for the transport
    crd_dcp_net* net;
    crd_dcp_slave* engine;
};

crd_status crd_dcp_can_slave_create(crd_context* ctx, crd_dcp_can* can,
                                    const crd_dcp_can_description* file,
                                    const crd_dcp_description* d, const crd_dcp_plant* plant,
                                    uint8_t id, const crd_dcp_slave_options* opt,
                                    crd_dcp_can_slave** out)
{
    crd_status st = CRD_OK;
    crd_dcp_can_slave* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->d = *d;
    crdi_dcp_can_stand_for(&s->d);
    CRD_TRY(slave_net(ctx, can, file, d, id, &s->net));
    const crd_dcp_link link = crd_dcp_net_link(s->net);
    CRD_TRY(crd_dcp_slave_create(ctx, &s->d, plant, &link, opt, &s->engine));
    crdi_dcp_net_can_bind(s->net, s->engine);
    *out = s;
    return CRD_OK;
fail:
    crd_dcp_can_slave_destroy(s);
    return st;
}

void crd_dcp_can_slave_destroy(crd_dcp_can_slave* s)
{
    if (!s) { return; }
    crd_dcp_slave_destroy(s->engine);
    crd_dcp_net_destroy(s->net);
    crd_free(s->ctx, s);
}

void crd_dcp_can_slave_poll(crd_dcp_can_slave* s, double now)
{
    crd_dcp_packet p;
    can_net* n = (can_net*)s->net;
    if (now > n->now) { n->now = now; }
    while (crd_dcp_net_receive(s->net, &p)) {
        crd_dcp_slave_receive(s->engine, &p.from, &p.at, p.bytes, p.length, n->now);
    }
    crd_dcp_slave_advance(s->engine, n->now);
    apply_if_need_be(n);
}

crd_dcp_slave* crd_dcp_can_slave_engine(crd_dcp_can_slave* s)
{
    return s->engine;
}
