// Datagrams of UDP: read and written several at once.
#include "dcp/net/socket.h"
#include "shared/base_system.h"

#include <errno.h>
#include <string.h>

// Those that the system refuses were counted as sent.
void crdi_net_flush_datagrams(crdi_socket_net* n)
{
    crdi_outbox* o = &n->out;
    int done = 0;
    while (done < o->count) {
        const int k = sendmmsg(o->of->fd, o->messages + done, (unsigned)(o->count - done),
                               MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) { continue; }
        if (k <= 0) {
            n->base.counts.sent--;
            n->base.counts.bytes_sent -= (int64_t)o->parts[done].iov_len;
            n->base.counts.dropped++;
        }
        done += k > 0 ? k : 1;
    }
    o->count = 0;
    o->used = 0;
}

static void outbox_add(crdi_socket_net* n, crdi_endpoint* e, const crd_dcp_address* to,
                       const uint8_t* bytes, size_t length)
{
    crdi_outbox* o = &n->out;
    if (o->of != e || o->count == BATCH || length > sizeof o->bytes - o->used) {
        crdi_net_flush_datagrams(n);
    }
    o->of = e;
    const int i = o->count++;
    memcpy(o->bytes + o->used, bytes, length);
    o->to[i] = crdi_net_to_system(to);
    o->parts[i] = (struct iovec){o->bytes + o->used, length};
    o->messages[i].msg_hdr = (struct msghdr){.msg_name = &o->to[i],
                                             .msg_namelen = sizeof o->to[i],
                                             .msg_iov = &o->parts[i],
                                             .msg_iovlen = 1};
    o->used += length;
}

bool crdi_net_datagram_send(crdi_socket_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                            size_t length, crd_dcp_address* from)
{
    crdi_endpoint* e = NULL;
    for (crdi_endpoint* x = n->first; x; x = x->next) {
        if (x->kind != DATAGRAM) { continue; }
        if (!e || crd_dcp_address_equal(&x->local, from)) { e = x; }
        if (from->port == 0 || crd_dcp_address_equal(&x->local, from)) { break; }
    }
    if (!e) {
        crd_dcp_address at = {.ip = CRDI_DCP_LOOPBACK, .transport = CRD_DCP_UDP};
        if (n->first && n->first->kind == LISTENER) { at.ip = n->first->local.ip; }
        if (crdi_net_listen(&n->base, &at) < 0) { return false; }
        e = n->last;
    }
    *from = e->local;
    if (n->held && length <= sizeof n->out.bytes) {
        outbox_add(n, e, to, bytes, length);
        return true;
    }
    crdi_net_flush_datagrams(n); // so that they leave in their order
    const struct sockaddr_in s = crdi_net_to_system(to);
    ssize_t k = 0;
    do {
        k = sendto(e->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr*)&s,
                   sizeof s);
    } while (k < 0 && errno == EINTR);
    return k >= 0;
}

// What the system says beside a datagram: its time of arrival, and how many it has thrown away.
static double read_notes(crdi_socket_net* n, crdi_endpoint* e, struct msghdr* m)
{
    double time = n->in.now;
    for (struct cmsghdr* c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET) { continue; }
        if (c->cmsg_type == SCM_TIMESTAMPNS && c->cmsg_len >= CMSG_LEN(sizeof(struct timespec))) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            const int64_t age = n->in.real_ns - (t.tv_sec * INT64_C(1000000000) + t.tv_nsec);
            // Not believed where somebody has set the clock meanwhile.
            if (age > 0 && age < INT64_C(10000000000)) { time -= 1e-9 * (double)age; }
        }
        if (c->cmsg_type == SO_RXQ_OVFL && c->cmsg_len >= CMSG_LEN(sizeof(uint32_t))) {
            uint32_t total = 0;
            memcpy(&total, CMSG_DATA(c), sizeof total);
            n->base.counts.overrun += (uint32_t)(total - e->overrun);
            e->overrun = total;
        }
    }
    return time;
}

void crdi_net_inbox_init(crdi_inbox* in)
{
    for (int i = 0; i < BATCH; i++) {
        in->parts[i] = (struct iovec){in->bytes + (size_t)i * MOST_DATAGRAM, MOST_DATAGRAM};
        in->messages[i].msg_hdr = (struct msghdr){.msg_name = &in->from[i],
                                                  .msg_namelen = sizeof in->from[i],
                                                  .msg_iov = &in->parts[i],
                                                  .msg_iovlen = 1,
                                                  .msg_control = in->notes[i],
                                                  .msg_controllen = NOTES};
    }
}

// Reads what there is, BATCH datagrams at most; or waits for the first, until a signal comes or
// LONGEST_US have passed.
void crdi_net_inbox_fill(crdi_socket_net* n, crdi_endpoint* e, int flags)
{
    crdi_inbox* in = &n->in;
    for (int i = 0; i < in->count; i++) { // what the system has overwritten
        in->messages[i].msg_hdr.msg_namelen = sizeof in->from[i];
        in->messages[i].msg_hdr.msg_controllen = NOTES;
    }
    const int k = recvmmsg(e->fd, in->messages, BATCH, flags, NULL);
    in->of = e;
    in->next = 0;
    in->count = k > 0 ? k : 0;
    in->now = crdi_net_now(&n->base);
    in->real_ns = crdi_clock_ns(CLOCK_REALTIME);
}

void crdi_net_inbox_take(crdi_socket_net* n, crd_dcp_packet* out)
{
    crdi_inbox* in = &n->in;
    const int i = in->next++;
    *out = (crd_dcp_packet){.from = crdi_net_from_system(&in->from[i], CRD_DCP_UDP),
                            .at = in->of->local,
                            .bytes = in->parts[i].iov_base,
                            .length = in->messages[i].msg_len,
                            .time = read_notes(n, in->of, &in->messages[i].msg_hdr)};
}

bool crdi_net_datagram_take(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out)
{
    crdi_net_inbox_fill(n, e, MSG_DONTWAIT);
    if (n->in.count == 0) { return false; }
    n->burst += n->in.count - 1;
    if (n->in.count < BATCH) { crdi_net_queue_remove(n, e); } // it is empty now
    crdi_net_inbox_take(n, out);
    return true;
}
