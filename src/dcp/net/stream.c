// Streams of TCP: PDUs with their length before them, connections that come and go.
#include "dcp/net/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

// Ended or failed, by the peer or on the way. One that came in is gone behind this.
void crdi_net_stream_lose(crdi_socket_net* n, crdi_endpoint* e)
{
    n->base.counts.lost++;
    if (!e->outgoing) {
        crdi_net_endpoint_free(n, e);
        return;
    }
    crdi_net_endpoint_shut(n, e);
    e->phase = BROKEN;
    e->in_begin = e->in_end = e->out_begin = e->out_end = 0; // a new one begins with a whole PDU
    e->retry = crdi_net_now(&n->base) + CRDI_DCP_RETRY;
}

// Begins to connect. 0, or the system's number of the error.
int crdi_net_stream_open(crdi_socket_net* n, crdi_endpoint* e)
{
    const struct sockaddr_in to = crdi_net_to_system(&e->peer);
    e->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (e->fd < 0) { return errno; }
    n->base.counts.connections++;
    crdi_net_switch_on(e->fd, IPPROTO_TCP, TCP_NODELAY);
    crdi_net_switch_on(e->fd, IPPROTO_TCP, TCP_QUICKACK);
    const crd_dcp_address own = {.ip = e->source};
    const struct sockaddr_in from = crdi_net_to_system(&own);
    int code = e->source && bind(e->fd, (const struct sockaddr*)&from, sizeof from) ? errno : 0;
    if (code == 0 && connect(e->fd, (const struct sockaddr*)&to, sizeof to) != 0) {
        code = errno == EINPROGRESS ? 0 : errno;
    }
    e->phase = OPENING;
    e->writing = true;
    if (code == 0 && !crdi_net_watch(n, e, EPOLL_CTL_ADD)) { code = errno; }
    if (code != 0) {
        crdi_net_endpoint_shut(n, e);
        e->phase = BROKEN;
        e->retry = crdi_net_now(&n->base) + CRDI_DCP_RETRY;
    }
    return code;
}

// Writes what waits. false: the stream is lost.
bool crdi_net_stream_flush(crdi_socket_net* n, crdi_endpoint* e)
{
    while (e->out_begin < e->out_end) {
        const ssize_t k = send(e->fd, e->out + e->out_begin, e->out_end - e->out_begin,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) { break; }
        if (k < 0) {
            crdi_net_stream_lose(n, e);
            return false;
        }
        e->out_begin += (size_t)k;
    }
    if (e->out_begin == e->out_end) { e->out_begin = e->out_end = 0; }
    crdi_net_want_room(n, e, e->out_end > 0);
    return true;
}

// There is room, or connecting has come to an end.
bool crdi_net_stream_writable(crdi_socket_net* n, crdi_endpoint* e)
{
    if (e->phase == OPENING) {
        int code = 0;
        socklen_t length = sizeof code;
        if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &code, &length) != 0) { code = errno; }
        struct sockaddr_in peer;
        length = sizeof peer;
        if (code == 0 && getpeername(e->fd, (struct sockaddr*)&peer, &length) != 0) { return true; }
        e->local.transport = CRD_DCP_TCP;
        crdi_net_local_of(e->fd, &e->local);
        // Where nobody listens at a port that the system gives to clients, a socket may meet
        // itself.
        if (code != 0 || crd_dcp_address_equal(&e->local, &e->peer)) {
            crdi_net_stream_lose(n, e);
            return false;
        }
        e->phase = OPEN;
    }
    return crdi_net_stream_flush(n, e);
}

static bool stream_queue(crdi_endpoint* e, const uint8_t* bytes, size_t length)
{
    if (length > e->out_room - (e->out_end - e->out_begin)) { return false; }
    if (length > e->out_room - e->out_end) {
        memmove(e->out, e->out + e->out_begin, e->out_end - e->out_begin);
        e->out_end -= e->out_begin;
        e->out_begin = 0;
    }
    memcpy(e->out + e->out_end, bytes, length);
    e->out_end += length;
    return true;
}

bool crdi_net_stream_send(crdi_socket_net* n, crdi_endpoint* e, const uint8_t* bytes, size_t length)
{
    if (e->phase == BROKEN) {
        if (crdi_net_now(&n->base) < e->retry || crdi_net_stream_open(n, e) != 0) { return false; }
    }
    const uint8_t prefix[PREFIX] = {(uint8_t)length, (uint8_t)(length >> 8),
                                    (uint8_t)(length >> 16), (uint8_t)(length >> 24)};
    const size_t front = n->base.framing.length ? 0 : PREFIX;
    size_t done = 0; // of prefix and bytes
    e->replied = true;
    if (n->held && e->phase == OPEN &&
        front + length <= e->out_room - (e->out_end - e->out_begin)) {
        (void)stream_queue(e, prefix, front);
        (void)stream_queue(e, bytes, length);
        if (!e->held) {
            e->held = true;
            e->held_after = n->held_stream;
            n->held_stream = e;
        }
        return true;
    }
    if (e->phase == OPEN && e->out_end > 0 && !crdi_net_stream_flush(n, e)) { return false; }
    if (e->phase == OPEN && e->out_end == 0) {
        struct iovec parts[2] = {{(void*)(uintptr_t)prefix, front},
                                 {(void*)(uintptr_t)bytes, length}};
        const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t k = 0;
        do {
            k = sendmsg(e->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        } while (k < 0 && errno == EINTR);
        if (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            crdi_net_stream_lose(n, e);
            return false;
        }
        done = k < 0 ? 0 : (size_t)k;
        if (done == front + length) { return true; }
    }
    if (front + length - done > e->out_room - (e->out_end - e->out_begin)) { return false; }
    if (done < front) { (void)stream_queue(e, prefix + done, front - done); }
    const size_t skip = done < front ? 0 : done - front;
    if (length > skip) { (void)stream_queue(e, bytes + skip, length - skip); }
    crdi_net_want_room(n, e, true);
    return true;
}

// The PDU at the front of what has been read: 1 it is in `out`, 0 not yet complete, -1 absurd.
static int stream_frame(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out)
{
    const size_t there = e->in_end - e->in_begin;
    const uint8_t* p = e->in + e->in_begin;
    const crdi_dcp_framing* framing = &n->base.framing;
    const size_t front = framing->length ? 0 : PREFIX;
    if (there < front || there == 0) { return 0; }
    const size_t length =
        framing->length ? framing->length(framing->user, p, there)
                        : p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (length > e->max_pdu) { return -1; }
    if ((framing->length && length == 0) || there < front + length) { return 0; }
    if (length > n->packet_room) { // only where the limit was raised behind create
        uint8_t* more = crdi_grow(n->base.ctx, n->packet, &n->packet_room, length, 1);
        if (!more) { return -1; }
        n->packet = more;
    }
    memcpy(n->packet, p + front, length);
    e->in_begin += front + length;
    e->pdus++;
    *out = (crd_dcp_packet){
        .from = e->peer, .at = e->local, .bytes = n->packet, .length = length, .time = e->arrived};
    return 1;
}

// A peer that sends its PDUs without TCP_NODELAY keeps the second of two until the first is
// acknowledged, which the system puts off by 40 ms. It is known by such a pause between two PDUs
// with nothing of ours between them; from then on it gets its acknowledgements at once. To do so
// for everybody would cost a call and a segment for every one.
static void note_arrival(crdi_socket_net* n, crdi_endpoint* e)
{
    const double pause = 0.01, now = crdi_net_now(&n->base);
    if (e->arrived > 0 && !e->replied && now - e->arrived > pause) { e->quick = true; }
    e->arrived = now;
    e->replied = false;
    if (e->quick) { crdi_net_switch_on(e->fd, IPPROTO_TCP, TCP_QUICKACK); } // the system forgets it
}

// The next PDU; reads where there is none. The stream may be gone behind false.
bool crdi_net_stream_take(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out)
{
    if (e->phase != OPEN) { return false; }
    for (;;) {
        const int found = stream_frame(n, e, out);
        if (found > 0) { return true; }
        if (found < 0) {
            n->base.counts.refused++;
            crdi_net_stream_lose(n, e);
            return false;
        }
        memmove(e->in, e->in + e->in_begin, e->in_end - e->in_begin);
        e->in_end -= e->in_begin;
        e->in_begin = 0;
        const ssize_t k = recv(e->fd, e->in + e->in_end, e->in_room - e->in_end, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) { return false; }
        if (k <= 0) {
            crdi_net_stream_lose(n, e);
            return false;
        }
        e->in_end += (size_t)k;
        note_arrival(n, e);
    }
}
