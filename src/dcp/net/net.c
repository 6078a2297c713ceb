// The common interface of networks: arguments, counters, captures, and the link of a slave.
#include "dcp/net/net.h"
#include "shared/base.h"

crd_dcp_net_limits crd_dcp_net_default_limits(void)
{
    return (crd_dcp_net_limits){
        .max_pdu = CRDI_DCP_MOST_UDP, .max_connections = 256, .max_queue = 256 << 10};
}

void crdi_dcp_net_init(crd_dcp_net* n, crd_context* ctx, const crdi_dcp_net_ops* ops)
{
    n->ops = ops;
    n->ctx = ctx;
    n->limits = crd_dcp_net_default_limits();
}

void crd_dcp_net_destroy(crd_dcp_net* n)
{
    if (n) { n->ops->destroy(n); }
}

crd_status crd_dcp_net_set_limits(crd_dcp_net* n, const crd_dcp_net_limits* limits)
{
    if (limits->max_pdu < 24) { // STC_register
        return crdi_fail(n->ctx, CRD_E_RANGE, "network: max_pdu = %u, expected at least 24",
                         limits->max_pdu);
    }
    if (limits->max_pdu > 1U << 30) {
        return crdi_fail(n->ctx, CRD_E_RANGE, "network: max_pdu = %u, expected at most 2^30",
                         limits->max_pdu);
    }
    if (limits->max_connections < 1) {
        return crdi_fail(n->ctx, CRD_E_RANGE, "network: max_connections = %d, expected at least 1",
                         limits->max_connections);
    }
    if (limits->max_queue < 1024) {
        return crdi_fail(n->ctx, CRD_E_RANGE, "network: max_queue = %zu, expected at least 1024",
                         limits->max_queue);
    }
    const crd_status st = n->ops->set_limits ? n->ops->set_limits(n, limits) : CRD_OK;
    if (st == CRD_OK) { n->limits = *limits; }
    return st;
}

crd_dcp_net_limits crdi_dcp_net_get_limits(const crd_dcp_net* n)
{
    return n->limits;
}

crd_status crd_dcp_net_listen(crd_dcp_net* n, crd_dcp_address* at)
{
    if (at->transport != CRD_DCP_UDP && at->transport != CRD_DCP_TCP &&
        !(at->transport == CRD_DCP_CAN && n->ops->can)) {
        return crdi_fail(n->ctx, CRD_E_UNSUPPORTED,
                         "network: transport %d cannot be listened at, expected UDP or TCP",
                         at->transport);
    }
    return n->ops->listen ? n->ops->listen(n, at) : crd_dcp_net_listen(n->inner, at);
}

crd_status crdi_dcp_net_connect(crd_dcp_net* n, const crd_dcp_address* to)
{
    return crdi_dcp_net_connect_from(n, 0, to);
}

crd_status crdi_dcp_net_connect_from(crd_dcp_net* n, uint32_t ip, const crd_dcp_address* to)
{
    const crdi_dcp_address_text text = crdi_dcp_address_text_of(to);
    if (to->transport != CRD_DCP_TCP) {
        return crdi_fail(n->ctx, CRD_E_UNSUPPORTED, "network: connect to %s, expected TCP",
                         text.text);
    }
    if (to->port == 0) {
        return crdi_fail(n->ctx, CRD_E_RANGE, "network: connect to %s, expected a port > 0",
                         text.text);
    }
    return ip && n->ops->connect_from ? n->ops->connect_from(n, ip, to) : n->ops->connect(n, to);
}

bool crdi_dcp_net_connected(const crd_dcp_net* n, const crd_dcp_address* to)
{
    return n->ops->connected ? n->ops->connected(n, to) : crdi_dcp_net_connected(n->inner, to);
}

bool crd_dcp_net_local(const crd_dcp_net* n, int index, crd_dcp_address* out)
{
    if (!n->ops->local) { return crd_dcp_net_local(n->inner, index, out); }
    return index >= 0 && n->ops->local(n, index, out);
}

void crdi_dcp_net_set_control(crd_dcp_net* n)
{
    if (n->ops->set_control) {
        n->ops->set_control(n);
    } else {
        crdi_dcp_net_set_control(n->inner);
    }
}

double crd_dcp_net_now(const crd_dcp_net* n)
{
    return n->ops->now ? n->ops->now(n) : crd_dcp_net_now(n->inner);
}

uint32_t crdi_dcp_net_source_ip(const crd_dcp_net* n, const crd_dcp_address* to)
{
    crd_dcp_address first = {.ip = CRDI_DCP_LOOPBACK};
    if (n->ops->source_ip) { return n->ops->source_ip(n, to); }
    if (n->inner) { return crdi_dcp_net_source_ip(n->inner, to); }
    (void)crd_dcp_net_local(n, 0, &first);
    return first.ip;
}

crd_dcp_net_counts crd_dcp_net_get_counts(const crd_dcp_net* n)
{
    if (!n->inner) { return n->counts; }
    crd_dcp_net_counts c = crd_dcp_net_get_counts(n->inner); // what only the inner one can count
    c.sent = n->counts.sent;
    c.received = n->counts.received;
    c.bytes_sent = n->counts.bytes_sent;
    c.bytes_received = n->counts.bytes_received;
    c.dropped = n->counts.dropped;
    return c;
}

bool crdi_dcp_net_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                       size_t length)
{
    return crdi_dcp_net_send_from(n, NULL, to, bytes, length);
}

bool crdi_dcp_net_send_from(crd_dcp_net* n, const crd_dcp_address* at, const crd_dcp_address* to,
                            const uint8_t* bytes, size_t length)
{
    crd_dcp_address from = at ? *at : (crd_dcp_address){0};
    if (n->fence && atomic_load_explicit(n->fence, memory_order_relaxed)) {
        n->counts.dropped++;
        return false;
    }
    const bool known =
        to->transport == CRD_DCP_TCP
            ? length <= n->limits.max_pdu
            : (to->transport == CRD_DCP_UDP || (to->transport == CRD_DCP_CAN && n->ops->can)) &&
                  length <= CRDI_DCP_MOST_UDP;
    if (!known || !n->ops->send(n, to, bytes, length, &from)) {
        n->counts.dropped++;
        return false;
    }
    n->counts.sent++;
    n->counts.bytes_sent += (int64_t)length;
    if (n->capture) {
        (void)crd_dcp_capture_add(n->capture, crd_dcp_net_now(n), &from, to, bytes, length);
    }
    return true;
}

bool crd_dcp_net_receive(crd_dcp_net* n, crd_dcp_packet* out)
{
    if (!n->ops->receive(n, out)) { return false; }
    n->counts.received++;
    n->counts.bytes_received += (int64_t)out->length;
    if (n->capture) {
        (void)crd_dcp_capture_add(n->capture, out->time, &out->from, &out->at, out->bytes,
                                  out->length);
    }
    return true;
}

void crd_dcp_net_wait(crd_dcp_net* n, double seconds)
{
    n->ops->wait(n, seconds > 0 ? seconds : 0); // so that NaN does not wait
}

void crdi_dcp_net_hold(crd_dcp_net* n, bool on)
{
    if (n->ops->hold) { n->ops->hold(n, on); }
    if (n->inner && !n->ops->hold) { crdi_dcp_net_hold(n->inner, on); }
}

int crd_dcp_net_descriptor(const crd_dcp_net* n)
{
    if (n->ops->descriptor) { return n->ops->descriptor(n); }
    return n->inner ? crd_dcp_net_descriptor(n->inner) : -1;
}

void crdi_dcp_net_set_fence(crd_dcp_net* n, const _Atomic int* fence)
{
    n->fence = fence;
    if (n->inner) { crdi_dcp_net_set_fence(n->inner, fence); }
}

int crdi_dcp_net_socket_to(const crd_dcp_net* n, const crd_dcp_address* to)
{
    if (n->ops->socket_to) { return n->ops->socket_to(n, to); }
    return n->inner ? crdi_dcp_net_socket_to(n->inner, to) : -1;
}

crd_status crdi_dcp_net_adopt(crd_dcp_net* n, int fd, const crd_dcp_address* to)
{
    if (!n->ops->adopt && n->inner) { return crdi_dcp_net_adopt(n->inner, fd, to); }
    return n->ops->adopt ? n->ops->adopt(n, fd, to)
                         : crdi_fail(n->ctx, CRD_E_UNSUPPORTED, "network: it has no sockets");
}

void crd_dcp_net_close(crd_dcp_net* n, const crd_dcp_address* at)
{
    if (n->ops->close) {
        n->ops->close(n, at);
    } else {
        crd_dcp_net_close(n->inner, at);
    }
}

void crdi_dcp_net_set_framing(crd_dcp_net* n, const crdi_dcp_framing* framing)
{
    n->framing = *framing;
}

size_t crdi_dcp_framing_any(const void* user, const uint8_t* bytes, size_t there)
{
    (void)user, (void)bytes;
    return there < CRDI_DCP_MOST_UDP ? there : CRDI_DCP_MOST_UDP;
}

void crd_dcp_net_capture(crd_dcp_net* n, crd_dcp_capture* c)
{
    if (n->ops->captures_inner) {
        crd_dcp_net_capture(n->inner, c);
        return;
    }
    n->capture = c;
    if (c && n->framing.length) { crdi_dcp_capture_set_raw(c); }
}

// ---- the link of a slave -----------------------------------------------------------------------

static bool link_send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    return crdi_dcp_net_send(user, to, bytes, length);
}

static bool link_listen(void* user, const crd_dcp_address* at)
{
    crd_dcp_address here = *at;
    crd_dcp_address control = {.ip = CRDI_DCP_LOOPBACK};
    if (here.ip == 0) {
        (void)crd_dcp_net_local(user, 0, &control);
        here.ip = control.ip;
    }
    return crd_dcp_net_listen(user, &here) == CRD_OK;
}

static bool link_connect(void* user, const crd_dcp_address* to)
{
    return crdi_dcp_net_connect(user, to) == CRD_OK;
}

static void link_hold(void* user, bool on)
{
    crdi_dcp_net_hold(user, on);
}

static void link_close(void* user)
{
    crd_dcp_net_close(user, NULL);
}

crd_dcp_link crd_dcp_net_link(crd_dcp_net* n)
{
    crdi_dcp_net_set_control(n);
    return (crd_dcp_link){.user = n,
                          .send = link_send,
                          .listen = link_listen,
                          .connect = link_connect,
                          .close = link_close,
                          .hold = link_hold};
}
