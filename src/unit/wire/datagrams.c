// `frames`: datagrams of UDP, or messages in a stream of TCP, by a layout.
#include "shared/base.h"
#include "shared/dcp.h"
#include "shared/system.h"
#include "unit/wire/wire_unit.h"

#include <string.h>

typedef struct datagrams {
    crdi_wire_link base; // first
    crd_context* ctx;
    const crdi_wire_catalog* catalog;
    crd_dcp_net* net;
    crd_dcp_capture* capture;
    crd_dcp_address peer; // port 0: nobody has come yet
    bool listens;         // the partner is who comes first
    bool is_virtual;      // the clock is a test's
    double retry;         // s: not before
    uint8_t* packet;      // the last one, up to the longest message, CRDI_WIRE_PAD behind it
    size_t longest;
} datagrams;

crd_status (*crdi_wire_open_net)(crd_context* ctx, crd_dcp_net** out) = crd_dcp_net_create;

static double datagrams_now(const crdi_wire_link* l)
{
    return crd_dcp_net_now(((const datagrams*)l)->net);
}

static void datagrams_wait(crdi_wire_link* l, double seconds)
{
    datagrams* d = (datagrams*)l;
    if (d->is_virtual) {
        crd_dcp_net_wait(d->net, seconds);
    } else {
        crdi_wire_sleep(seconds);
    }
}

static bool connected(const datagrams* d)
{
    return d->peer.transport == CRD_DCP_UDP || crdi_dcp_net_connected(d->net, &d->peer);
}

// A stream that has ended is opened again; one that came in may be followed by another's.
static void look_after(datagrams* d)
{
    if (d->peer.port == 0 || connected(d)) { return; }
    const double now = crd_dcp_net_now(d->net), pause = 0.1;
    if (d->listens) {
        d->peer.port = 0;
    } else if (now >= d->retry) {
        d->retry = now + pause;
        (void)crdi_dcp_net_connect(d->net, &d->peer);
    }
}

static bool datagrams_receive(crdi_wire_link* l, crdi_wire_packet* out)
{
    datagrams* d = (datagrams*)l;
    crd_dcp_packet p;
    if (!crd_dcp_net_receive(d->net, &p)) {
        look_after(d);
        return false;
    }
    if (d->listens && d->peer.port == 0) { d->peer = p.from; }
    memcpy(d->packet, p.bytes, p.length < d->longest ? p.length : d->longest);
    const crdi_wire_message* m = crdi_wire_recognise(d->catalog, d->packet, p.length);
    // A partner may send from another port than that at which it listens, a stream has but one.
    const bool its = d->listens || p.from.transport == CRD_DCP_TCP
                         ? crd_dcp_address_equal(&p.from, &d->peer)
                         : p.from.ip == d->peer.ip;
    *out = (crdi_wire_packet){.message = m ? (int)(m - d->catalog->messages) : -1,
                              .data = d->packet,
                              .length = p.length,
                              .time = p.time,
                              .foreign = !its};
    return true;
}

static bool datagrams_send(crdi_wire_link* l, const crdi_wire_message* m, const uint8_t* data)
{
    datagrams* d = (datagrams*)l;
    return d->peer.port != 0 && connected(d) &&
           crdi_dcp_net_send(d->net, &d->peer, data, (size_t)m->length);
}

static const char* datagrams_trouble(const crdi_wire_link* l)
{
    const datagrams* d = (const datagrams*)l;
    return d->peer.port == 0 ? "nobody has come yet" : connected(d) ? "" : "there is no connection";
}

static crd_status datagrams_close(crdi_wire_link* l)
{
    datagrams* d = (datagrams*)l;
    crd_dcp_net_destroy(d->net);
    const crd_status st = crd_dcp_capture_close(d->capture);
    crd_free(d->ctx, d->packet);
    crd_free(d->ctx, d);
    return st;
}

static const crdi_wire_link_ops link_ops = {.now = datagrams_now,
                                            .wait = datagrams_wait,
                                            .receive = datagrams_receive,
                                            .send = datagrams_send,
                                            .trouble = datagrams_trouble,
                                            .close = datagrams_close};

static size_t stream_length(const void* user, const uint8_t* bytes, size_t there)
{
    return crdi_wire_stream_length(user, bytes, there, false);
}

// ---- opening
// -------------------------------------------------------------------------------------

typedef struct addresses {
    crd_dcp_address to, local;
} addresses;

static crd_status read_addresses(crd_context* ctx, const crd_unit_spec* spec, addresses* out)
{
    crd_status st = CRD_OK;
    const crd_link_spec* link = &spec->link;
    CRD_TRY(crd_dcp_address_parse(ctx, spec->address, &out->to));
    out->local = (crd_dcp_address){.transport = out->to.transport};
    if (out->to.port == 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "frames: '%s' has port 0, expected that of the partner%s", spec->address,
                         link->listen ? ", or the own one with link.listen" : "");
    }
    if (link->listen && link->local) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "link.local: with link.listen 'frames' is the own address already; expected "
            "one of them");
    }
    if (link->local) { CRD_TRY(crd_dcp_address_parse(ctx, link->local, &out->local)); }
    if (link->local &&
        (out->local.transport != out->to.transport || out->to.transport != CRD_DCP_UDP)) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "link.local: '%s' with frames: '%s', expected udp:// in both; a stream has "
            "the address that the system gives it",
            link->local, spec->address);
    }
    CRD_TRY(crdi_dcp_check_plain(ctx, &out->to, false, link->plain, "link: { plain: true }"));
fail:
    return st;
}

static crd_status frames_load(crd_context* ctx, const crd_unit_spec* spec, crd_arena* arena,
                              crdi_wire_catalog* out)
{
    crd_status st = CRD_OK;
    addresses a;
    CRD_TRY(read_addresses(ctx, spec, &a));
    CRD_TRY(crdi_layout_load(ctx, spec->path, arena, out));
fail:
    return st;
}

static crd_status open_all(datagrams* d, const crd_unit_spec* spec, addresses* a)
{
    crd_status st = CRD_OK;
    const crdi_dcp_framing framing = {stream_length, d->catalog};
    const bool udp = a->to.transport == CRD_DCP_UDP;
    CRD_TRY(crdi_wire_open_net(d->ctx, &d->net));
    d->is_virtual = crdi_wire_open_net != crd_dcp_net_create;
    crdi_dcp_net_set_framing(d->net, &framing);
    if (spec->link.capture) {
        CRD_TRY(crd_dcp_capture_open(d->ctx, spec->link.capture, &d->capture));
        crd_dcp_net_capture(d->net, d->capture);
    }
    if (d->listens) {
        CRD_TRY(crd_dcp_net_listen(d->net, &a->to));
        return CRD_OK;
    }
    d->peer = a->to;
    if (udp && a->local.ip == 0) { a->local.ip = crdi_dcp_net_source_ip(d->net, &a->to); }
    if (udp) { CRD_TRY(crd_dcp_net_listen(d->net, &a->local)); }
    if (!udp) { CRD_TRY(crdi_dcp_net_connect(d->net, &a->to)); }
fail:
    return st;
}

static crd_status frames_open(crd_context* ctx, const crd_unit_spec* spec,
                              const crdi_wire_catalog* catalog, crdi_wire_link** out)
{
    addresses a;
    crd_status st = read_addresses(ctx, spec, &a);
    if (st < 0) { return st; }
    datagrams* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    *d = (datagrams){
        .base.ops = &link_ops, .ctx = ctx, .catalog = catalog, .listens = spec->link.listen};
    d->peer.transport = a.to.transport;
    d->longest = (size_t)catalog->kind.byte + (size_t)catalog->kind.bytes;
    for (int i = 0; i < catalog->message_count; i++) {
        const size_t length = (size_t)catalog->messages[i].length;
        if (length > d->longest) { d->longest = length; }
    }
    d->packet = crdi_new_array(ctx, d->longest + CRDI_WIRE_PAD, 1);
    st = d->packet ? open_all(d, spec, &a) : CRD_E_MEMORY;
    if (st < 0) {
        (void)datagrams_close(&d->base);
        return st;
    }
    *out = &d->base;
    return CRD_OK;
}

static crd_status frames_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                crd_place* place, crd_unit** out)
{
    static const crdi_wire_kind kind = {"frames", "came from others than the partner", frames_load,
                                        frames_open};
    (void)store, (void)place;
    return crdi_wire_unit_create(ctx, spec, &kind, out);
}

const crdi_adapter crdi_adapter_frames = {.create = frames_create};
