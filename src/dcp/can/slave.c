// A slave on a CAN bus. The engine speaks native DCP; what CAN has no room for is put in here:
// sequence ids, uuid and version at registration, and the CFG PDUs behind it, which the file has.
// Addresses do not exist on a bus: the engine is told of one that stands for it.
#include "dcp/can/can.h"

#include <string.h>

#include "dcp/slave/slave.h"

static const crd_dcp_address bus = {.ip = 0x7F000001, .port = 1, .transport = CRD_DCP_UDP};
static const crd_dcp_ports bus_port = {1, 1};

typedef struct counter { // of data that arrive
    uint16_t id, seq;
    bool parameters;
} counter;

struct crd_dcp_can_slave {
    crd_context* ctx;
    crd_dcp_can* can;
    crd_dcp_description d; // as given, but for the transport
    const crdi_dcp_can_config* config;
    crd_dcp_slave* engine;
    uint16_t seq;   // of the next request
    bool settled;   // the settings are in
    bool quiet;     // answers are ours, not the master's
    uint16_t error; // of the last answer, when quiet
    counter* counters;
    int counter_count;
    double now;
    uint8_t* pdu; // (room)
    size_t room;
};

// ---- from the engine ---------------------------------------------------------------------------

static bool engine_sends(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    crd_dcp_can_slave* s = user;
    crdi_dcp_pdu p;
    (void)to;
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_GOOD) { return false; }
    const bool answer = crdi_dcp_is_response(p.type);
    if (answer) { s->seq = (uint16_t)(p.seq + 1); }
    if (answer && s->quiet) {
        s->error = p.type == CRDI_DCP_RSP_NACK ? p.error : CRD_DCP_NONE;
        return true;
    }
    return crdi_dcp_can_send(s->can, &p, s->config->id);
}

static bool engine_opens(void* user, const crd_dcp_address* at)
{
    (void)user, (void)at;
    return true; // the bus is there
}

// ---- to the engine -----------------------------------------------------------------------------

static void hand_to_engine(crd_dcp_can_slave* s, crdi_dcp_pdu* p)
{
    const size_t length = crdi_dcp_encode(p, s->pdu, s->room);
    if (length == 0 || length > s->room) { return; }
    crd_dcp_slave_receive(s->engine, &bus, &bus, s->pdu, length, s->now);
}

// A setting as the engine knows it. The bus is one address.
static crd_dcp_error apply_setting(crd_dcp_can_slave* s, crdi_dcp_pdu p)
{
    p.seq = s->seq;
    p.peer = s->config->id;
    if (crdi_dcp_is_network(p.type)) {
        p.transport = bus.transport;
        p.port = bus.port;
        p.address = bus.ip;
    }
    s->error = CRD_DCP_E_GENERIC;
    s->quiet = true;
    hand_to_engine(s, &p);
    s->quiet = false;
    return (crd_dcp_error)s->error;
}

static crd_dcp_error apply_network(crd_dcp_can_slave* s, const crdi_dcp_pdu* of)
{
    const uint8_t type = of->type == CRDI_DCP_CFG_OUTPUT  ? CRDI_DCP_CFG_TARGET_NETWORK
                         : of->type == CRDI_DCP_CFG_INPUT ? CRDI_DCP_CFG_SOURCE_NETWORK
                                                          : CRDI_DCP_CFG_PARAM_NETWORK;
    return apply_setting(s, (crdi_dcp_pdu){.type = type, .id = of->id});
}

// All settings; the first that is refused is an error of the slave.
static void apply_settings(crd_dcp_can_slave* s)
{
    s->settled = true;
    for (int i = 0; i < s->config->setting_count; i++) {
        const crdi_dcp_pdu* p = &s->config->settings[i];
        crd_dcp_error e = apply_setting(s, *p);
        // What the file does not say about networks: it can only be the bus.
        const bool data = p->type == CRDI_DCP_CFG_OUTPUT || p->type == CRDI_DCP_CFG_INPUT ||
                          p->type == CRDI_DCP_CFG_TUNABLE_PARAMETER;
        if (e == CRD_DCP_NONE && data && p->pos == 0) { e = apply_network(s, p); }
        if (e == CRD_DCP_NONE) { continue; }
        if (e == CRD_DCP_E_TRANSITION_IN_PROGRESS) { // the plant is not back at its start: later
            s->settled = false;
            return;
        }
        const char* name = crd_dcp_error_name(e);
        crdi_log(s->ctx, CRD_LOG_ERROR, "CAN: slave %d: %s in line %d is refused: %s",
                 s->config->id, crdi_dcp_type_name(p->type),
                 s->config->lines ? s->config->lines[i] : 0, name ? name : "?");
        crd_dcp_slave_fault(s->engine, e, s->now);
        return;
    }
}

// The engine wants consecutive numbers; of data, which have none on the bus, nothing can be told
// from them.
static uint16_t next_seq(crd_dcp_can_slave* s, const crdi_dcp_pdu* p)
{
    if (!crdi_dcp_is_data(p->type)) { return s->seq; }
    const bool parameters = p->type == CRDI_DCP_DAT_PARAMETER;
    for (int i = 0; i < s->counter_count; i++) {
        counter* c = &s->counters[i];
        if (c->id == p->id && c->parameters == parameters) { return c->seq++; }
    }
    return 0;
}

static void apply_if_need_be(crd_dcp_can_slave* s)
{
    const bool there = crd_dcp_slave_state(s->engine) == CRD_DCP_CONFIGURATION;
    s->settled = s->settled && there;
    if (there && !s->settled) { apply_settings(s); }
}

static void take_pdu(crd_dcp_can_slave* s, crdi_dcp_pdu* p)
{
    const bool data = crdi_dcp_is_data(p->type);
    if (!data && (p->type >= CRDI_DCP_RSP_ACK || p->peer != s->config->id)) { return; }
    p->seq = next_seq(s, p);
    if (p->type == CRDI_DCP_STC_REGISTER) {
        memcpy(p->uuid, s->d.uuid, sizeof p->uuid);
        p->major = s->d.major;
        p->minor = s->d.minor;
    }
    hand_to_engine(s, p);
    apply_if_need_be(s);
}

void crd_dcp_can_slave_poll(crd_dcp_can_slave* s, double now)
{
    crdi_dcp_pdu p;
    if (now > s->now) { s->now = now; }
    while (crdi_dcp_can_receive(s->can, &p, NULL)) {
        take_pdu(s, &p);
    }
    crd_dcp_slave_advance(s->engine, s->now);
    apply_if_need_be(s);
}

crd_dcp_slave* crd_dcp_can_slave_engine(crd_dcp_can_slave* s)
{
    return s->engine;
}

// ---- all of it ---------------------------------------------------------------------------------

static const crdi_dcp_can_config* find_config(const crd_dcp_can_description* file,
                                              const crd_dcp_description* d, uint8_t id)
{
    for (int i = 0; i < file->slave_count; i++) {
        const crdi_dcp_can_config* c = &file->slaves[i];
        if (memcmp(c->uuid, d->uuid, sizeof c->uuid) == 0 && (id == 0 || c->id == id)) { return c; }
    }
    return NULL;
}

static void count_groups(crd_dcp_can_slave* s)
{
    for (int i = 0; i < s->config->setting_count; i++) {
        const crdi_dcp_pdu* p = &s->config->settings[i];
        const bool parameters = p->type == CRDI_DCP_CFG_TUNABLE_PARAMETER;
        if ((parameters || p->type == CRDI_DCP_CFG_INPUT) && p->pos == 0) {
            s->counters[s->counter_count++] = (counter){.id = p->id, .parameters = parameters};
        }
    }
}

static crd_status check_settings(crd_context* ctx, const crdi_dcp_can_config* c, size_t* room)
{
    *room = 64;
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* p = &c->settings[i];
        if (crdi_dcp_is_network(p->type) && p->transport != CRD_DCP_CAN) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "CAN: slave %d: %s in line %d names another network, expected <CAN/>",
                             c->id, crdi_dcp_type_name(p->type), c->lines ? c->lines[i] : 0);
        }
        if (p->payload_length + 64 > *room) { *room = p->payload_length + 64; }
    }
    if (*room < CRDI_CAN_PAYLOAD + 64) { *room = CRDI_CAN_PAYLOAD + 64; }
    return CRD_OK;
}

crd_status crd_dcp_can_slave_create(crd_context* ctx, crd_dcp_can* can,
                                    const crd_dcp_can_description* file,
                                    const crd_dcp_description* d, const crd_dcp_plant* plant,
                                    uint8_t id, const crd_dcp_slave_options* opt,
                                    crd_dcp_can_slave** out)
{
    crd_status st = CRD_OK;
    const crdi_dcp_can_config* config = find_config(file, d, id);
    if (!config) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "CAN: %s has no <DcpSlave> with the uuid of %s%s",
                         file->file, d->name, id ? " and this dcpId" : "");
    }
    crd_dcp_can_slave* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->can = can;
    s->config = config;
    s->d = *d;
    s->d.can_accept_config = true;
    s->d.udp = (crd_dcp_endpoint){.offered = true,
                                  .max_pdu_size = 65507,
                                  .host = "",
                                  .port = bus.port,
                                  .has_data = true,
                                  .has_parameter = true,
                                  .data_host = "",
                                  .parameter_host = "",
                                  .data = &bus_port,
                                  .parameter = &bus_port,
                                  .data_count = 1,
                                  .parameter_count = 1};
    CRD_TRY(check_settings(ctx, config, &s->room));
    s->pdu = crdi_new(ctx, s->room);
    s->counters = crdi_new_array(ctx, (size_t)config->setting_count, sizeof *s->counters);
    if (!s->pdu || !s->counters) { CRD_TRY(CRD_E_MEMORY); }
    count_groups(s);
    const crd_dcp_link link = {
        .user = s, .send = engine_sends, .listen = engine_opens, .connect = engine_opens};
    CRD_TRY(crd_dcp_slave_create(ctx, &s->d, plant, &link, opt, &s->engine));
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
    crd_free(s->ctx, s->counters);
    crd_free(s->ctx, s->pdu);
    crd_free(s->ctx, s);
}
