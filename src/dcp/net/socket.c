// Real sockets: UDP/IPv4 with one PDU in a datagram, TCP/IPv4 with
//    0  u32  length of the PDU, little endian, without itself
//    4  bytes of the PDU
// PDUs may be split over segments and several may share one.
#include "dcp/net/socket.h"

#include "shared/base.h"
#include "shared/base_system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

double crdi_net_now(const crd_dcp_net* base)
{
    const crdi_socket_net* n = (const crdi_socket_net*)base;
    return 1e-9 * (double)(crdi_clock_ns(CLOCK_MONOTONIC) + n->offset_ns);
}

struct sockaddr_in crdi_net_to_system(const crd_dcp_address* a)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(a->port), .sin_addr.s_addr = htonl(a->ip)};
}

crd_dcp_address crdi_net_from_system(const struct sockaddr_in* s, uint8_t transport)
{
    return (crd_dcp_address){
        .ip = ntohl(s->sin_addr.s_addr), .port = ntohs(s->sin_port), .transport = transport};
}

void crdi_net_local_of(int fd, crd_dcp_address* out)
{
    struct sockaddr_in s = {0};
    socklen_t length = sizeof s;
    if (getsockname(fd, (struct sockaddr*)&s, &length) == 0) {
        *out = crdi_net_from_system(&s, out->transport);
    }
}

void crdi_net_switch_on(int fd, int level, int option)
{
    const int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof on); // each is a help, none a condition
}

static crd_status fail_system(crd_context* ctx, const char* what, const crd_dcp_address* a,
                              int code)
{
    return crdi_fail(ctx, CRD_E_IO, "%s %s: %s", crdi_dcp_address_text_of(a).text, what,
                     strerror(code));
}

// ---- the list and the queue --------------------------------------------------------------------

void crdi_net_queue_insert(crdi_socket_net* n, crdi_endpoint* before, crdi_endpoint* e)
{
    e->ready = true;
    e->after = before ? before->after : n->head;
    if (n->tail == before) { n->tail = e; }
    if (before) {
        before->after = e;
    } else {
        n->head = e;
        n->burst = 0;
    }
}

// Data before control: a request was sent behind the data that it is about, and if it is there, so
// are they.
void crdi_net_queue_push(crdi_socket_net* n, crdi_endpoint* e)
{
    if (e->ready) { return; }
    crdi_endpoint* before = e->kept ? n->tail : NULL;
    for (crdi_endpoint* x = n->head; !e->kept && x && !x->kept; x = x->after) {
        before = x;
    }
    crdi_net_queue_insert(n, before, e);
}

void crdi_net_queue_remove(crdi_socket_net* n, crdi_endpoint* e)
{
    if (!e->ready) { return; }
    e->ready = false;
    crdi_endpoint* before = NULL;
    for (crdi_endpoint* x = n->head; x != e; x = x->after) {
        before = x;
    }
    if (before) {
        before->after = e->after;
    } else {
        n->head = e->after;
        n->burst = 0;
    }
    if (n->tail == e) { n->tail = before; }
}

crdi_endpoint* crdi_net_endpoint_new(crdi_socket_net* n, crdi_endpoint_kind k)
{
    crd_context* ctx = n->base.ctx;
    crdi_endpoint* e = crdi_new(ctx, sizeof *e);
    if (!e) { return NULL; }
    e->fd = -1;
    e->kind = k;
    e->max_pdu = n->base.limits.max_pdu;
    if (k == STREAM) {
        // Grown, not new: pages that are never used are never touched.
        const size_t frame = PREFIX + (size_t)e->max_pdu;
        const size_t queue = n->base.limits.max_queue;
        e->in = crdi_grow(ctx, NULL, &e->in_room, frame, 1);
        e->out =
            e->in ? crdi_grow(ctx, NULL, &e->out_room, queue > frame ? queue : frame, 1) : NULL;
        if (!e->out) {
            crd_free(ctx, e->in);
            crd_free(ctx, e);
            return NULL;
        }
        n->streams++;
    }
    e->previous = n->last;
    *(n->last ? &n->last->next : &n->first) = e;
    n->last = e;
    n->changed = true;
    return e;
}

static void forget_held(crdi_socket_net* n, crdi_endpoint* e)
{
    crdi_endpoint** at = &n->held_stream;
    while (e->held && *at != e) {
        at = &(*at)->held_after;
    }
    if (e->held) { *at = e->held_after; }
    e->held = false;
}

void crdi_net_endpoint_shut(crdi_socket_net* n, crdi_endpoint* e)
{
    crdi_net_queue_remove(n, e);
    forget_held(n, e);
    if (n->in.of == e) { n->in.next = n->in.count = 0; }
    if (n->out.of == e) { n->out.count = 0; } // close has flushed it
    if (e->fd >= 0) {
        if (e->kind == STREAM) { n->base.counts.connections--; }
        close(e->fd); // epoll forgets it by itself
        e->fd = -1;
    }
}

void crdi_net_endpoint_free(crdi_socket_net* n, crdi_endpoint* e)
{
    crdi_net_endpoint_shut(n, e);
    if (e->kind == STREAM) { n->streams--; }
    n->changed = true;
    *(e->previous ? &e->previous->next : &n->first) = e->next;
    *(e->next ? &e->next->previous : &n->last) = e->previous;
    crd_free(n->base.ctx, e->in);
    crd_free(n->base.ctx, e->out);
    crd_free(n->base.ctx, e);
}

bool crdi_net_watch(crdi_socket_net* n, crdi_endpoint* e, int operation)
{
    struct epoll_event ev = {.events = EPOLLIN | (e->writing ? EPOLLOUT : 0U), .data.ptr = e};
    if (epoll_ctl(n->epoll, operation, e->fd, &ev) != 0) { return false; }
    e->watched = operation != EPOLL_CTL_DEL;
    return true;
}

// A datagram socket that is all there is, as with most slaves and masters, is asked and waited for
// itself: epoll would cost nearly a microsecond for every datagram.
static crdi_endpoint* lone(const crdi_socket_net* n)
{
    crdi_endpoint* e = n->first;
    return e && e == n->last && e->kind == DATAGRAM && !n->shown ? e : NULL;
}

static void adjust(crdi_socket_net* n)
{
    if (!n->changed) { return; }
    n->changed = false;
    crdi_endpoint* alone = lone(n);
    if (alone && alone->watched) { (void)crdi_net_watch(n, alone, EPOLL_CTL_DEL); }
    for (crdi_endpoint* e = alone ? NULL : n->first; e; e = e->next) {
        if (e->kind == DATAGRAM && !e->watched && !crdi_net_watch(n, e, EPOLL_CTL_ADD)) {
            n->changed = true; // the system has no room for it now
        }
    }
}

void crdi_net_want_room(crdi_socket_net* n, crdi_endpoint* e, bool want)
{
    if (e->writing == want) { return; }
    e->writing = want;
    (void)crdi_net_watch(n, e, EPOLL_CTL_MOD);
}

// ---- listeners ---------------------------------------------------------------------------------

// A place for one more stream: the oldest that came in and has never sent a PDU goes if need be.
static bool make_stream_place(crdi_socket_net* n)
{
    if (n->streams < n->base.limits.max_connections) { return true; }
    n->base.counts.evicted++;
    for (crdi_endpoint* e = n->first; e; e = e->next) {
        if (e->kind == STREAM && !e->outgoing && e->pdus == 0) {
            crdi_net_endpoint_free(n, e);
            return true;
        }
    }
    return false;
}

// Where descriptors have run out, the connection would stay there and wake us for ever.
// false: there was none.
static bool socket_turn_away(crdi_socket_net* n, crdi_endpoint* e)
{
    if (n->spare >= 0) { close(n->spare); }
    const int fd = accept4(e->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) { close(fd); }
    n->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    n->base.counts.evicted += fd >= 0;
    return fd >= 0;
}

static void accept_streams(crdi_socket_net* n, crdi_endpoint* e)
{
    for (int i = 0; i < BURST; i++) {
        struct sockaddr_in from = {0};
        socklen_t length = sizeof from;
        const int fd =
            accept4(e->fd, (struct sockaddr*)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const int code = fd < 0 ? errno : 0;
        if (code == EAGAIN || code == EWOULDBLOCK) { return; }
        if ((code == EMFILE || code == ENFILE) && !socket_turn_away(n, e)) { return; }
        if (fd < 0) { continue; } // it has gone again
        crdi_endpoint* s = make_stream_place(n) ? crdi_net_endpoint_new(n, STREAM) : NULL;
        if (!s) {
            close(fd);
            continue;
        }
        n->base.counts.connections++;
        s->fd = fd;
        s->kept = e->kept;
        s->local = e->local;
        s->peer = crdi_net_from_system(&from, CRD_DCP_TCP);
        crdi_net_switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
        crdi_net_switch_on(fd, IPPROTO_TCP, TCP_QUICKACK);
        if (!crdi_net_watch(n, s, EPOLL_CTL_ADD)) {
            crdi_net_endpoint_free(n, s);
            continue;
        }
        crdi_net_queue_push(n, s); // its first PDU may be there already
    }
}

static int bind_at(crdi_endpoint* e, const crd_dcp_address* at)
{
    const bool udp = at->transport == CRD_DCP_UDP;
    const struct sockaddr_in s = crdi_net_to_system(at);
    e->fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM | SOCK_NONBLOCK) | SOCK_CLOEXEC, 0);
    if (e->fd < 0) { return errno; }
    if (udp) {
        const int room = RECEIVE_BUFFER;
        const struct timeval longest = {.tv_usec = LONGEST_US};
        (void)setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        (void)setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        crdi_net_switch_on(e->fd, SOL_SOCKET, SO_TIMESTAMPNS);
        crdi_net_switch_on(e->fd, SOL_SOCKET, SO_RXQ_OVFL);
    } else {
        crdi_net_switch_on(e->fd, SOL_SOCKET, SO_REUSEADDR);
    }
    if (bind(e->fd, (const struct sockaddr*)&s, sizeof s) != 0) { return errno; }
    return udp || listen(e->fd, SOMAXCONN) == 0 ? 0 : errno;
}

crd_status crdi_net_listen(crd_dcp_net* base, crd_dcp_address* at)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    const crdi_endpoint_kind k = at->transport == CRD_DCP_UDP ? DATAGRAM : LISTENER;
    for (const crdi_endpoint* e = n->first; at->port && e; e = e->next) {
        if (e->kind == k && e->local.port == at->port &&
            (e->local.ip == at->ip || e->local.ip == 0)) {
            return CRD_OK;
        }
    }
    crdi_endpoint* e = crdi_net_endpoint_new(n, k);
    if (!e) { return CRD_E_MEMORY; }
    int code = bind_at(e, at);
    if (code == 0 && k == LISTENER && !crdi_net_watch(n, e, EPOLL_CTL_ADD)) { code = errno; }
    if (code != 0) {
        crdi_net_endpoint_free(n, e);
        return fail_system(base->ctx, "cannot be listened at", at, code);
    }
    e->local = *at;
    crdi_net_local_of(e->fd, &e->local);
    *at = e->local;
    return CRD_OK;
}

static crd_status socket_connect_from(crd_dcp_net* base, uint32_t ip, const crd_dcp_address* to)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    crdi_endpoint* e = n->first;
    while (e && !(e->kind == STREAM && e->outgoing && e->source == ip &&
                  crd_dcp_address_equal(&e->peer, to))) {
        e = e->next;
    }
    if (e && e->phase != BROKEN) { return CRD_OK; }
    const bool fresh = !e;
    if (fresh) {
        if (!make_stream_place(n)) {
            return crdi_fail(base->ctx, CRD_E_LIMIT, "%s: there are %d connections already",
                             crdi_dcp_address_text_of(to).text, n->streams);
        }
        e = crdi_net_endpoint_new(n, STREAM);
        if (!e) { return CRD_E_MEMORY; }
        e->outgoing = true;
        e->source = ip;
        e->peer = *to;
    }
    const int code = crdi_net_stream_open(n, e);
    if (code != 0) {
        if (fresh) { crdi_net_endpoint_free(n, e); }
        return fail_system(base->ctx, "cannot be connected to", to, code);
    }
    return CRD_OK;
}

static crd_status socket_connect(crd_dcp_net* base, const crd_dcp_address* to)
{
    return socket_connect_from(base, 0, to);
}

// ---- all of them -------------------------------------------------------------------------------

// Two peers of different local addresses may have the same number: the one that came in at `from`
// (may be NULL), then control comes first.
static crdi_endpoint* find_stream(const crdi_socket_net* n, const crd_dcp_address* peer,
                                  const crd_dcp_address* from)
{
    crdi_endpoint* found = NULL;
    for (crdi_endpoint* e = n->first; e; e = e->next) {
        if (e->kind != STREAM || !crd_dcp_address_equal(&e->peer, peer)) { continue; }
        if (from && from->ip && from->port == 0 && e->source == from->ip) { return e; }
        if (from && from->port ? crd_dcp_address_equal(&e->local, from) : e->kept) { return e; }
        if (!found) { found = e; }
    }
    return found;
}

static bool socket_send(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                        size_t length, crd_dcp_address* from)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    if (to->transport == CRD_DCP_UDP) { return crdi_net_datagram_send(n, to, bytes, length, from); }
    crdi_endpoint* e = find_stream(n, to, from);
    if (!e || length > e->max_pdu) { return false; }
    *from = e->local;
    return crdi_net_stream_send(n, e, bytes, length);
}

static void flush_all(crdi_socket_net* n)
{
    crdi_net_flush_datagrams(n);
    while (n->held_stream) {
        crdi_endpoint* e = n->held_stream;
        n->held_stream = e->held_after;
        e->held = false;
        (void)crdi_net_stream_flush(n, e);
    }
}

static void socket_hold(crd_dcp_net* base, bool on)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    n->held += on ? 1 : -1;
    if (n->held <= 0) {
        n->held = 0;
        flush_all(n);
    }
}

static bool socket_connected(const crd_dcp_net* base, const crd_dcp_address* to)
{
    const crdi_endpoint* e = find_stream((const crdi_socket_net*)base, to, NULL);
    return e && e->phase == OPEN;
}

static bool socket_local(const crd_dcp_net* base, int index, crd_dcp_address* out)
{
    for (const crdi_endpoint* e = ((const crdi_socket_net*)base)->first; e; e = e->next) {
        if (e->kind == STREAM) { continue; }
        if (index-- == 0) {
            *out = e->local;
            return true;
        }
    }
    return false;
}

static void socket_set_control(crd_dcp_net* base)
{
    for (crdi_endpoint* e = ((crdi_socket_net*)base)->first; e; e = e->next) {
        e->kept = !e->outgoing;
    }
}

// Those that have something to the queue; writes where there is room again.
static void harvest(crdi_socket_net* n, const struct epoll_event* events, int count)
{
    for (int i = 0; i < count; i++) {
        crdi_endpoint* e = events[i].data.ptr;
        const bool room = e->kind == STREAM && (e->phase == OPENING || events[i].events & EPOLLOUT);
        if (room && !crdi_net_stream_writable(n, e)) { continue; }
        if (events[i].events & ~(uint32_t)EPOLLOUT) { crdi_net_queue_push(n, e); }
    }
}

// Asks the system which sockets have something.
static void poll_sockets(crdi_socket_net* n)
{
    struct epoll_event events[EVENTS];
    adjust(n);
    if (lone(n)) {
        crdi_net_queue_push(n, lone(n));
        return;
    }
    harvest(n, events, epoll_wait(n->epoll, events, EVENTS, 0));
}

// Waits for one that has. epoll_wait knows whole milliseconds only; the newer call is not
// everywhere.
static void wait_for_sockets(crdi_socket_net* n, const struct timespec* t)
{
    crdi_endpoint* alone = lone(n);
    struct pollfd p = {.fd = alone ? alone->fd : n->epoll, .events = POLLIN};
    if (alone) {
        if (ppoll(&p, 1, t, NULL) > 0) { crdi_net_queue_push(n, alone); }
        return;
    }
#ifdef SYS_epoll_pwait2
    struct epoll_event events[EVENTS];
    const long count = syscall(SYS_epoll_pwait2, n->epoll, events, EVENTS, t, NULL, (size_t)0);
    if (count >= 0 || errno != ENOSYS) {
        harvest(n, events, (int)count);
        return;
    }
#endif
    (void)ppoll(&p, 1, t, NULL);
    poll_sockets(n);
}

static bool take_from(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out)
{
    switch (e->kind) {
    case DATAGRAM:
        return crdi_net_datagram_take(n, e, out);
    case STREAM:
        return crdi_net_stream_take(n, e, out);
    case LISTENER:
        accept_streams(n, e);
        return false;
    }
    return false;
}

// Whoever has waited and taken everything does not ask again at once.
static bool just_looked(crdi_socket_net* n)
{
    const double looked = n->looked, moment = 20e-6;
    n->looked = -INFINITY;
    return looked > 0 && crdi_net_now(&n->base) - looked < moment;
}

static bool socket_receive(crd_dcp_net* base, crd_dcp_packet* out)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    if (n->in.next < n->in.count) {
        crdi_net_inbox_take(n, out);
        return true;
    }
    if (n->head && n->burst >= BURST) { // the others' turn
        crdi_endpoint* e = n->head;
        poll_sockets(n); // it may lose a stream, this one too
        if (n->head == e) {
            crdi_net_queue_remove(n, e);
            crdi_net_queue_insert(n, n->tail, e);
        }
    }
    if (!n->head && just_looked(n)) { return false; }
    if (!n->head) { poll_sockets(n); }
    while (n->head) {
        crdi_endpoint* e = n->head;
        n->burst++;
        // In the queue while it is looked at: whoever frees it takes it out.
        if (take_from(n, e, out)) { return true; }
        if (n->head == e) { crdi_net_queue_remove(n, e); }
    }
    return false;
}

static void socket_wait(crd_dcp_net* base, double seconds)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    flush_all(n);
    if (n->head || n->in.next < n->in.count) { return; }
    const double most = 1e6;
    if (seconds > most) { seconds = most; }
    adjust(n);
    if (lone(n) && seconds >= 1e-6 * LONGEST_US) {
        crdi_net_inbox_fill(n, lone(n), MSG_WAITFORONE);
        n->looked = n->in.now;
        return;
    }
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    wait_for_sockets(n, &t);
    n->looked = crdi_net_now(base);
}

// The system knows it of a datagram socket that was given a peer; nothing is sent.
static uint32_t socket_source_ip(const crd_dcp_net* base, const crd_dcp_address* to)
{
    (void)base;
    crd_dcp_address here = {0};
    struct sockaddr_in there = crdi_net_to_system(to);
    if (to->port == 0) { there.sin_port = htons(1); }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) { return 0; }
    if (connect(fd, (const struct sockaddr*)&there, sizeof there) == 0) {
        crdi_net_local_of(fd, &here);
    }
    close(fd);
    return here.ip;
}

static int socket_descriptor(const crd_dcp_net* base)
{
    crdi_socket_net* n = (crdi_socket_net*)(uintptr_t)base;
    n->changed = n->changed || !n->shown;
    n->shown = true;
    adjust(n);
    return n->epoll;
}

static int socket_to(const crd_dcp_net* base, const crd_dcp_address* to)
{
    const crdi_socket_net* n = (const crdi_socket_net*)base;
    const crdi_endpoint* e = n->first;
    if (to->transport == CRD_DCP_TCP) {
        e = find_stream(n, to, NULL);
        return e && e->phase == OPEN ? e->fd : -1;
    }
    while (e && e->kind != DATAGRAM) {
        e = e->next;
    }
    return e ? e->fd : -1;
}

static crd_status socket_adopt(crd_dcp_net* base, int fd, const crd_dcp_address* to)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    crd_dcp_address local = {.transport = to->transport};
    crdi_net_local_of(fd, &local);
    for (const crdi_endpoint* e = n->first; e; e = e->next) {
        if (e->kind == DATAGRAM && crd_dcp_address_equal(&e->local, &local)) {
            close(fd); // the same one again
            return CRD_OK;
        }
    }
    const bool udp = to->transport == CRD_DCP_UDP;
    crdi_endpoint* e = crdi_net_endpoint_new(n, udp ? DATAGRAM : STREAM);
    if (!e) {
        close(fd);
        return CRD_E_MEMORY;
    }
    e->fd = fd;
    e->local = local;
    if (udp) { return CRD_OK; }
    e->outgoing = true;
    e->peer = *to;
    n->base.counts.connections++;
    if (crdi_net_watch(n, e, EPOLL_CTL_ADD)) { return CRD_OK; }
    crdi_net_endpoint_free(n, e);
    return fail_system(base->ctx, "cannot be watched", to, errno);
}

static void socket_close(crd_dcp_net* base, const crd_dcp_address* at)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    crdi_endpoint* next = NULL;
    flush_all(n); // a stream that is lost by it is gone before we walk
    for (crdi_endpoint* e = n->first; e; e = next) {
        next = e->next;
        const bool named = at && ((!e->outgoing && crd_dcp_address_equal(&e->local, at)) ||
                                  (e->kind == STREAM && crd_dcp_address_equal(&e->peer, at)));
        if (at ? named : !e->kept) { crdi_net_endpoint_free(n, e); }
    }
}

static void socket_destroy(crd_dcp_net* base)
{
    crdi_socket_net* n = (crdi_socket_net*)base;
    flush_all(n);
    while (n->first) {
        crdi_net_endpoint_free(n, n->first);
    }
    if (n->epoll >= 0) { close(n->epoll); }
    if (n->spare >= 0) { close(n->spare); }
    crd_free(base->ctx, n->packet);
    crd_free(base->ctx, n->in.bytes);
    crd_free(base->ctx, n);
}

static const crdi_dcp_net_ops ops = {
    .destroy = socket_destroy,
    .listen = crdi_net_listen,
    .connect = socket_connect,
    .connect_from = socket_connect_from,
    .connected = socket_connected,
    .local = socket_local,
    .set_control = socket_set_control,
    .send = socket_send,
    .receive = socket_receive,
    .wait = socket_wait,
    .close = socket_close,
    .now = crdi_net_now,
    .hold = socket_hold,
    .descriptor = socket_descriptor,
    .source_ip = socket_source_ip,
    .socket_to = socket_to,
    .adopt = socket_adopt,
};

crd_status crd_dcp_net_create(crd_context* ctx, crd_dcp_net** out)
{
    crdi_socket_net* n = crdi_new(ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    crdi_dcp_net_init(&n->base, ctx, &ops);
    n->offset_ns = crdi_clock_ns(CLOCK_REALTIME) - crdi_clock_ns(CLOCK_MONOTONIC);
    n->epoll = epoll_create1(EPOLL_CLOEXEC);
    n->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (n->epoll < 0) {
        const int code = errno;
        socket_destroy(&n->base);
        return crdi_fail(ctx, CRD_E_IO, "network: no epoll: %s", strerror(code));
    }
    size_t inbox_room = 0;
    n->packet = crdi_grow(ctx, NULL, &n->packet_room, MOST_DATAGRAM, 1);
    n->in.bytes = // pages that are never used are never touched
        n->packet ? crdi_grow(ctx, NULL, &inbox_room, BATCH * MOST_DATAGRAM, 1) : NULL;
    if (!n->in.bytes) {
        socket_destroy(&n->base);
        return CRD_E_MEMORY;
    }
    crdi_net_inbox_init(&n->in);
    n->looked = -INFINITY;
    *out = &n->base;
    return CRD_OK;
}
