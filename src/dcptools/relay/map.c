// Ports for data of a relay. What the master says of an address is true on its side; on the other
// side the relay says it of itself:
//   CFG_source_..., CFG_param_network_information: the slave shall listen. The relay listens in its
//       place, at the same port of its own address, and the slave at its own.
//   CFG_target_network_information: the slave shall send. It sends to a port of the relay.
#include "dcptools/relay/relay.h"
#include "shared/base.h"

#include <string.h>

uint32_t crdi_dcp_near_ip(const crdi_dcp_relay* r, const crdi_dcp_channel* c)
{
    return r->opt.near_ip ? r->opt.near_ip : c->at.ip;
}

static bool is_loopback(uint32_t ip)
{
    return ip >> 24 == 127;
}

crdi_dcp_map* crdi_dcp_map_find(crdi_dcp_relay* r, crdi_dcp_side side, const crd_dcp_address* at)
{
    for (int i = 0; i < r->map_count; i++) {
        crdi_dcp_map* m = &r->maps[i];
        if (m->used && m->side == side && crd_dcp_address_equal(&m->at, at)) { return m; }
    }
    return NULL;
}

bool crdi_dcp_map_any(const crdi_dcp_relay* r)
{
    for (int i = 0; i < r->map_count; i++) {
        if (r->maps[i].used) { return true; }
    }
    return false;
}

// ---- closing -----------------------------------------------------------------------------------

// Somebody else needs the stream to there, or it is a port of the relay's own, which would be
// closed: data from one slave to another.
static bool map_is_wanted(const crdi_dcp_relay* r, crdi_dcp_side side, const crd_dcp_address* to)
{
    for (int i = 0; i < r->map_count; i++) {
        const crdi_dcp_map* m = &r->maps[i];
        const crd_dcp_address* a = m->side == side ? &m->at : &m->to;
        if (m->used && crd_dcp_address_equal(a, to)) { return true; }
    }
    for (int i = 0; i < r->channel_count; i++) {
        const crdi_dcp_channel* c = &r->channels[i];
        const crd_dcp_address* a = side == CRDI_DCP_FAR ? &c->to : &c->at;
        if (crd_dcp_address_equal(a, to)) { return true; }
    }
    return false;
}

static void map_close(crdi_dcp_relay* r, crdi_dcp_map* m)
{
    const crdi_dcp_side other = m->side == CRDI_DCP_NEAR ? CRDI_DCP_FAR : CRDI_DCP_NEAR;
    m->used = false;
    r->counts.closed++;
    crdi_log(r->ctx, CRD_LOG_INFO, "relay close at = %s to = %s",
             crdi_dcp_address_text_of(&m->at).text, crdi_dcp_address_text_of(&m->to).text);
    crd_dcp_net_close(r->net[m->side], &m->at);
    if (m->to.transport == CRD_DCP_TCP && !map_is_wanted(r, other, &m->to)) {
        crd_dcp_net_close(r->net[other], &m->to);
    }
}

void crdi_dcp_map_landed(crdi_dcp_relay* r, crdi_dcp_map* m)
{
    m->flying--;
    if (m->closing && m->flying == 0) { map_close(r, m); }
}

void crdi_dcp_map_release(crdi_dcp_relay* r, int channel, uint64_t number)
{
    for (int i = 0; i < r->map_count; i++) {
        crdi_dcp_map* m = &r->maps[i];
        if (!m->used || m->channel != channel || m->number >= number) { continue; }
        m->closing = true;
        if (m->flying == 0) { map_close(r, m); }
    }
}

// ---- opening -----------------------------------------------------------------------------------

// A place in the list; NULL: it is full.
static crdi_dcp_map* map_new(crdi_dcp_relay* r)
{
    for (int i = 0; i < r->opt.max_maps; i++) {
        if (r->maps[i].used) { continue; }
        if (i >= r->map_count) { r->map_count = i + 1; }
        return &r->maps[i];
    }
    (void)crdi_fail(r->ctx, CRD_E_LIMIT, "%d ports are open already", r->opt.max_maps);
    return NULL;
}

// The relay listens there, or has told a slave to.
static bool is_promised(const crdi_dcp_relay* r, const crd_dcp_address* a)
{
    for (int i = 0; i < r->map_count; i++) {
        const crdi_dcp_map* m = &r->maps[i];
        const bool named = m->side == CRDI_DCP_NEAR && crd_dcp_address_equal(&m->to, a);
        if (m->used && (named || crd_dcp_address_equal(&m->at, a))) { return true; }
    }
    for (int i = 0; i < r->channel_count; i++) {
        const crdi_dcp_channel* c = &r->channels[i];
        if (crd_dcp_address_equal(&c->at, a) || crd_dcp_address_equal(&c->out, a)) { return true; }
    }
    return false;
}

// A port for a slave that lives at the relay's own address: one that can be opened here.
static bool choose_port(crdi_dcp_relay* r, crd_dcp_address* a)
{
    const int tries = r->opt.port_from ? r->opt.port_to - r->opt.port_from + 1 : 64;
    for (int i = 0; i < tries; i++) {
        a->port = r->opt.port_from ? (uint16_t)(r->opt.port_from + i) : 0;
        if (a->port && is_promised(r, a)) { continue; }
        crd_dcp_address open = *a;
        if (crd_dcp_net_listen(r->net[CRDI_DCP_FAR], &open) < 0) { continue; }
        const bool taken = is_promised(r, &open);
        if (!taken) { crd_dcp_net_close(r->net[CRDI_DCP_FAR], &open); }
        a->port = open.port;
        if (!taken) { return true; }
    }
    (void)crdi_fail(r->ctx, CRD_E_LIMIT, "no port is free for the slave's data");
    return false;
}

static crdi_dcp_map* map_open(crdi_dcp_relay* r, const crdi_dcp_map* wish)
{
    crdi_dcp_map* m = map_new(r);
    crd_dcp_address at = wish->at;
    if (!m || crd_dcp_net_listen(r->net[wish->side], &at) < 0) {
        r->counts.unmapped++;
        crdi_log(r->ctx, CRD_LOG_WARNING,
                 "data that the master wants at %s do not pass the relay: %s",
                 crdi_dcp_address_text_of(&wish->named).text, crd_error_text(r->ctx));
        return NULL;
    }
    *m = *wish;
    m->used = true;
    m->at = at;
    r->counts.opened++;
    crdi_log(r->ctx, CRD_LOG_INFO, "relay open at = %s to = %s", crdi_dcp_address_text_of(&at).text,
             crdi_dcp_address_text_of(&m->to).text);
    return m;
}

// ---- network information -----------------------------------------------------------------------

static crdi_dcp_map* find_named(crdi_dcp_relay* r, crdi_dcp_side side, int channel,
                                const crd_dcp_address* named)
{
    for (int i = 0; i < r->map_count; i++) {
        crdi_dcp_map* m = &r->maps[i];
        if (m->used && m->side == side && m->channel == channel &&
            crd_dcp_address_equal(&m->named, named)) {
            m->closing = false;
            m->number = r->number;
            return m;
        }
    }
    return NULL;
}

// The slave shall listen. What it shall be told is in `*say`.
static bool map_source(crdi_dcp_relay* r, int channel, const crd_dcp_address* asked,
                       crd_dcp_address* say)
{
    const crdi_dcp_channel* c = &r->channels[channel];
    const uint32_t own = crdi_dcp_near_ip(r, c);
    if (asked->ip != 0 && asked->ip != own && !is_loopback(asked->ip)) {
        r->counts.outside++;
        return false;
    }
    const crd_dcp_address named = {own, asked->port, asked->transport};
    if (named.port == c->at.port && named.transport == c->at.transport) {
        *say = c->to; // data and control share a port
        return true;
    }
    const crdi_dcp_map* m = find_named(r, CRDI_DCP_NEAR, channel, &named);
    if (!m) {
        crdi_dcp_map wish = {.side = CRDI_DCP_NEAR,
                             .channel = channel,
                             .at = named,
                             .to = {c->to.ip, named.port, named.transport},
                             .named = named,
                             .number = r->number};
        bool good = true;
        if (is_promised(r, &named)) {
            good = false;
            (void)crdi_fail(r->ctx, CRD_E_LIMIT, "the port serves another slave already");
        } else if (wish.to.ip == own) {
            good = choose_port(r, &wish.to);
        }
        if (!good) {
            r->counts.unmapped++;
            crdi_log(r->ctx, CRD_LOG_WARNING, "data for %s do not pass the relay: %s",
                     crdi_dcp_address_text_of(&named).text, crd_error_text(r->ctx));
        }
        m = good ? map_open(r, &wish) : NULL;
    }
    if (m) { *say = m->to; }
    return m;
}

// The slave shall send. Slaves of the far side reach each other without the relay.
static bool map_target(crdi_dcp_relay* r, int channel, const crd_dcp_address* named,
                       crd_dcp_address* say)
{
    bool outside = named->ip == 0 || named->port == 0;
    for (int i = 0; i < r->channel_count && !is_loopback(named->ip); i++) {
        const crdi_dcp_channel* c = &r->channels[i];
        outside = outside || (named->ip == c->to.ip && named->ip != crdi_dcp_near_ip(r, c));
    }
    if (outside) {
        r->counts.outside++;
        return false;
    }
    const crdi_dcp_map* m = find_named(r, CRDI_DCP_FAR, channel, named);
    if (!m) {
        const crdi_dcp_map wish = {.side = CRDI_DCP_FAR,
                                   .channel = channel,
                                   .at = {r->opt.far_ip, 0, named->transport},
                                   .to = *named,
                                   .named = *named,
                                   .number = r->number};
        m = map_open(r, &wish);
    }
    if (m) { *say = m->at; }
    return m;
}

// 0 type  1 seq  3 receiver  4 id  6 transport  7 u16 port  9 u32 address
void crdi_dcp_map_request(crdi_dcp_relay* r, int channel, const crdi_dcp_pdu* p,
                          uint8_t bytes[CRDI_DCP_NETWORK_LENGTH])
{
    const crd_dcp_address named = crdi_dcp_address_of(p);
    crd_dcp_address say = named;
    const bool good = p->type == CRDI_DCP_CFG_TARGET_NETWORK ? map_target(r, channel, &named, &say)
                                                             : map_source(r, channel, &named, &say);
    if (!good) { return; }
    r->counts.rewritten++;
    crdi_dcp_pdu changed = *p;
    changed.port = say.port;
    changed.address = say.ip;
    (void)crdi_dcp_encode(&changed, bytes, CRDI_DCP_NETWORK_LENGTH);
}
