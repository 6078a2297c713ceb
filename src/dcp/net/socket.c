// Real sockets: UDP/IPv4 with one PDU in a datagram, TCP/IPv4 with
//    0  u32  length of the PDU, little endian, without itself
//    4  bytes of the PDU
// PDUs may be split over segments and several may share one.
#include "dcp/net/net.h"
#include "shared/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    PREFIX = 4,
    EVENTS = 64,             // taken from the system at once
    BURST = 32,              // PDUs of one socket before the others have their turn
    MOST_DATAGRAM = 65536,   // room for any
    BATCH = 16,              // datagrams that are read or written at once
    NOTES = 96,              // bytes of what the system says beside one
    LONGEST_US = 50000,      // that a lone socket is waited for at once
    RECEIVE_BUFFER = 4 << 20 // asked for; the system may give less
};

typedef enum kind { DATAGRAM, LISTENER, STREAM } kind;
typedef enum phase { OPEN, OPENING, BROKEN } phase; // streams that we opened may be the last two

typedef struct endpoint {
    int fd; // -1 while BROKEN
    kind kind;
    phase phase;
    bool kept;     // control
    bool outgoing; // a stream that we opened: stays when it breaks, and is opened again
    bool ready;    // stands in the queue
    bool watched;  // epoll knows it; see adjust
    bool writing;  // the system tells when there is room
    crd_dcp_address local, peer;
    uint32_t source; // of a stream that we opened: the own address that was wanted, 0: any
    uint32_t max_pdu;
    uint8_t *in, *out; // of streams: bytes [begin, end) of `room`
    size_t in_begin, in_end, in_room;
    size_t out_begin, out_end, out_room;
    int64_t pdus;     // received
    double retry;     // BROKEN: not before
    uint32_t overrun; // the system's count when it last told
    bool quick;       // of streams: acknowledge at once, the peer waits for that
    bool replied;     // of streams: something was sent since bytes came last
    double heard;     // of streams: when that was
    struct endpoint *previous, *next;
    struct endpoint* after; // in the queue
    bool held;              // stands in the list of those that wait for flush
    struct endpoint* held_after;
} endpoint;

// Datagrams of one socket that were read together.
typedef struct inbox {
    endpoint* of;
    int next, count;
    double now;      // when they were read, and the same
    int64_t real_ns; // on the system's clock
    uint8_t* bytes;  // (BATCH * MOST_DATAGRAM)
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_in from[BATCH];
    _Alignas(struct cmsghdr) uint8_t notes[BATCH][NOTES];
} inbox;

// Datagrams that leave one socket together.
typedef struct outbox {
    endpoint* of;
    int count;
    size_t used;
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_in to[BATCH];
    uint8_t bytes[BATCH * 1024];
} outbox;

typedef struct socket_net {
    crd_dcp_net base;
    int epoll;
    int spare;              // given up for a moment when descriptors have run out
    endpoint *first, *last; // in the order of opening
    endpoint *head, *tail;  // queue of those that may have something
    int burst;              // PDUs from the head so far
    int streams;
    bool changed;      // there are other endpoints than adjust has seen
    bool shown;        // somebody waits for the descriptor of epoll
    int64_t offset_ns; // UNIX time - monotonic time
    uint8_t* packet;   // of the last receive from a stream
    size_t packet_room;
    int held;              // what is sent waits for the end of so many holds
    endpoint* held_stream; // the first that has something to be flushed
    double looked;         // when the system was last asked and everything there was taken
    inbox in;
    outbox out;
} socket_net;

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static double socket_now(const crd_dcp_net* base)
{
    const socket_net* n = (const socket_net*)base;
    return 1e-9 * (double)(clock_ns(CLOCK_MONOTONIC) + n->offset_ns);
}

static struct sockaddr_in to_system(const crd_dcp_address* a)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(a->port), .sin_addr.s_addr = htonl(a->ip)};
}

static crd_dcp_address from_system(const struct sockaddr_in* s, uint8_t transport)
{
    return (crd_dcp_address){
        .ip = ntohl(s->sin_addr.s_addr), .port = ntohs(s->sin_port), .transport = transport};
}

static void local_of(int fd, crd_dcp_address* out)
{
    struct sockaddr_in s = {0};
    socklen_t length = sizeof s;
    if (getsockname(fd, (struct sockaddr*)&s, &length) == 0) {
        *out = from_system(&s, out->transport);
    }
}

static void switch_on(int fd, int level, int option)
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

static void queue_insert(socket_net* n, endpoint* before, endpoint* e)
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
static void queue_push(socket_net* n, endpoint* e)
{
    if (e->ready) { return; }
    endpoint* before = e->kept ? n->tail : NULL;
    for (endpoint* x = n->head; !e->kept && x && !x->kept; x = x->after) {
        before = x;
    }
    queue_insert(n, before, e);
}

static void queue_remove(socket_net* n, endpoint* e)
{
    if (!e->ready) { return; }
    e->ready = false;
    endpoint* before = NULL;
    for (endpoint* x = n->head; x != e; x = x->after) {
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

static endpoint* endpoint_new(socket_net* n, kind k)
{
    crd_context* ctx = n->base.ctx;
    endpoint* e = crdi_new(ctx, sizeof *e);
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

static void forget_held(socket_net* n, endpoint* e)
{
    endpoint** at = &n->held_stream;
    while (e->held && *at != e) {
        at = &(*at)->held_after;
    }
    if (e->held) { *at = e->held_after; }
    e->held = false;
}

static void endpoint_shut(socket_net* n, endpoint* e)
{
    queue_remove(n, e);
    forget_held(n, e);
    if (n->in.of == e) { n->in.next = n->in.count = 0; }
    if (n->out.of == e) { n->out.count = 0; } // close has flushed it
    if (e->fd >= 0) {
        if (e->kind == STREAM) { n->base.counts.connections--; }
        close(e->fd); // epoll forgets it by itself
        e->fd = -1;
    }
}

static void endpoint_free(socket_net* n, endpoint* e)
{
    endpoint_shut(n, e);
    if (e->kind == STREAM) { n->streams--; }
    n->changed = true;
    *(e->previous ? &e->previous->next : &n->first) = e->next;
    *(e->next ? &e->next->previous : &n->last) = e->previous;
    crd_free(n->base.ctx, e->in);
    crd_free(n->base.ctx, e->out);
    crd_free(n->base.ctx, e);
}

static bool watch(socket_net* n, endpoint* e, int operation)
{
    struct epoll_event ev = {.events = EPOLLIN | (e->writing ? EPOLLOUT : 0U), .data.ptr = e};
    if (epoll_ctl(n->epoll, operation, e->fd, &ev) != 0) { return false; }
    e->watched = operation != EPOLL_CTL_DEL;
    return true;
}

// A datagram socket that is all there is, as with most slaves and masters, is asked and waited for
// itself: epoll would cost nearly a microsecond for every datagram.
static endpoint* lone(const socket_net* n)
{
    endpoint* e = n->first;
    return e && e == n->last && e->kind == DATAGRAM && !n->shown ? e : NULL;
}

static void adjust(socket_net* n)
{
    if (!n->changed) { return; }
    n->changed = false;
    endpoint* alone = lone(n);
    if (alone && alone->watched) { (void)watch(n, alone, EPOLL_CTL_DEL); }
    for (endpoint* e = alone ? NULL : n->first; e; e = e->next) {
        if (e->kind == DATAGRAM && !e->watched && !watch(n, e, EPOLL_CTL_ADD)) {
            n->changed = true; // the system has no room for it now
        }
    }
}

static void want_room(socket_net* n, endpoint* e, bool want)
{
    if (e->writing == want) { return; }
    e->writing = want;
    (void)watch(n, e, EPOLL_CTL_MOD);
}

// ---- streams -----------------------------------------------------------------------------------

// Ended or failed, by the peer or on the way. One that came in is gone behind this.
static void stream_lose(socket_net* n, endpoint* e)
{
    n->base.counts.lost++;
    if (!e->outgoing) {
        endpoint_free(n, e);
        return;
    }
    endpoint_shut(n, e);
    e->phase = BROKEN;
    e->in_begin = e->in_end = e->out_begin = e->out_end = 0; // a new one begins with a whole PDU
    e->retry = socket_now(&n->base) + CRDI_DCP_RETRY;
}

// Begins to connect. 0, or the system's number of the error.
static int stream_open(socket_net* n, endpoint* e)
{
    const struct sockaddr_in to = to_system(&e->peer);
    e->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (e->fd < 0) { return errno; }
    n->base.counts.connections++;
    switch_on(e->fd, IPPROTO_TCP, TCP_NODELAY);
    switch_on(e->fd, IPPROTO_TCP, TCP_QUICKACK);
    const crd_dcp_address own = {.ip = e->source};
    const struct sockaddr_in from = to_system(&own);
    int code = e->source && bind(e->fd, (const struct sockaddr*)&from, sizeof from) ? errno : 0;
    if (code == 0 && connect(e->fd, (const struct sockaddr*)&to, sizeof to) != 0) {
        code = errno == EINPROGRESS ? 0 : errno;
    }
    e->phase = OPENING;
    e->writing = true;
    if (code == 0 && !watch(n, e, EPOLL_CTL_ADD)) { code = errno; }
    if (code != 0) {
        endpoint_shut(n, e);
        e->phase = BROKEN;
        e->retry = socket_now(&n->base) + CRDI_DCP_RETRY;
    }
    return code;
}

// Writes what waits. false: the stream is lost.
static bool stream_flush(socket_net* n, endpoint* e)
{
    while (e->out_begin < e->out_end) {
        const ssize_t k = send(e->fd, e->out + e->out_begin, e->out_end - e->out_begin,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) { break; }
        if (k < 0) {
            stream_lose(n, e);
            return false;
        }
        e->out_begin += (size_t)k;
    }
    if (e->out_begin == e->out_end) { e->out_begin = e->out_end = 0; }
    want_room(n, e, e->out_end > 0);
    return true;
}

// There is room, or connecting has come to an end.
static bool stream_writable(socket_net* n, endpoint* e)
{
    if (e->phase == OPENING) {
        int code = 0;
        socklen_t length = sizeof code;
        if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &code, &length) != 0) { code = errno; }
        struct sockaddr_in peer;
        length = sizeof peer;
        if (code == 0 && getpeername(e->fd, (struct sockaddr*)&peer, &length) != 0) { return true; }
        e->local.transport = CRD_DCP_TCP;
        local_of(e->fd, &e->local);
        // Where nobody listens at a port that the system gives to clients, a socket may meet
        // itself.
        if (code != 0 || crd_dcp_address_equal(&e->local, &e->peer)) {
            stream_lose(n, e);
            return false;
        }
        e->phase = OPEN;
    }
    return stream_flush(n, e);
}

static bool stream_queue(endpoint* e, const uint8_t* bytes, size_t length)
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

static bool stream_send(socket_net* n, endpoint* e, const uint8_t* bytes, size_t length)
{
    if (e->phase == BROKEN) {
        if (socket_now(&n->base) < e->retry || stream_open(n, e) != 0) { return false; }
    }
    uint8_t prefix[PREFIX] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16),
                              (uint8_t)(length >> 24)};
    size_t done = 0; // of prefix and bytes
    e->replied = true;
    if (n->held && e->phase == OPEN &&
        PREFIX + length <= e->out_room - (e->out_end - e->out_begin)) {
        (void)stream_queue(e, prefix, PREFIX);
        (void)stream_queue(e, bytes, length);
        if (!e->held) {
            e->held = true;
            e->held_after = n->held_stream;
            n->held_stream = e;
        }
        return true;
    }
    if (e->phase == OPEN && e->out_end > 0 && !stream_flush(n, e)) { return false; }
    if (e->phase == OPEN && e->out_end == 0) {
        struct iovec parts[2] = {{prefix, PREFIX}, {(void*)(uintptr_t)bytes, length}};
        const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t k = 0;
        do {
            k = sendmsg(e->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        } while (k < 0 && errno == EINTR);
        if (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            stream_lose(n, e);
            return false;
        }
        done = k < 0 ? 0 : (size_t)k;
        if (done == PREFIX + length) { return true; }
    }
    if (PREFIX + length - done > e->out_room - (e->out_end - e->out_begin)) { return false; }
    if (done < PREFIX) { (void)stream_queue(e, prefix + done, PREFIX - done); }
    const size_t skip = done < PREFIX ? 0 : done - PREFIX;
    if (length > skip) { (void)stream_queue(e, bytes + skip, length - skip); }
    want_room(n, e, true);
    return true;
}

// The PDU at the front of what has been read: 1 it is in `out`, 0 not yet complete, -1 absurd.
static int stream_frame(socket_net* n, endpoint* e, crd_dcp_packet* out)
{
    const size_t there = e->in_end - e->in_begin;
    if (there < PREFIX) { return 0; }
    const uint8_t* p = e->in + e->in_begin;
    const uint32_t length =
        p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (length > e->max_pdu) { return -1; }
    if (there < PREFIX + (size_t)length) { return 0; }
    if (length > n->packet_room) { // only where the limit was raised behind create
        uint8_t* more = crdi_grow(n->base.ctx, n->packet, &n->packet_room, length, 1);
        if (!more) { return -1; }
        n->packet = more;
    }
    memcpy(n->packet, p + PREFIX, length);
    e->in_begin += PREFIX + length;
    e->pdus++;
    *out = (crd_dcp_packet){
        .from = e->peer, .at = e->local, .bytes = n->packet, .length = length, .time = e->heard};
    return 1;
}

// A peer that sends its PDUs without TCP_NODELAY keeps the second of two until the first is
// acknowledged, which the system puts off by 40 ms. It is known by such a pause between two PDUs
// with nothing of ours between them; from then on it gets its acknowledgements at once. To do so
// for everybody would cost a call and a segment for every one.
static void stream_heard(socket_net* n, endpoint* e)
{
    const double pause = 0.01, now = socket_now(&n->base);
    if (e->heard > 0 && !e->replied && now - e->heard > pause) { e->quick = true; }
    e->heard = now;
    e->replied = false;
    if (e->quick) { switch_on(e->fd, IPPROTO_TCP, TCP_QUICKACK); } // the system forgets it
}

// The next PDU; reads where there is none. The stream may be gone behind false.
static bool stream_take(socket_net* n, endpoint* e, crd_dcp_packet* out)
{
    if (e->phase != OPEN) { return false; }
    for (;;) {
        const int found = stream_frame(n, e, out);
        if (found > 0) { return true; }
        if (found < 0) {
            n->base.counts.refused++;
            stream_lose(n, e);
            return false;
        }
        memmove(e->in, e->in + e->in_begin, e->in_end - e->in_begin);
        e->in_end -= e->in_begin;
        e->in_begin = 0;
        const ssize_t k = recv(e->fd, e->in + e->in_end, e->in_room - e->in_end, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) { return false; }
        if (k <= 0) {
            stream_lose(n, e);
            return false;
        }
        e->in_end += (size_t)k;
        stream_heard(n, e);
    }
}

// ---- listeners ---------------------------------------------------------------------------------

// A place for one more stream: the oldest that came in and has never sent a PDU goes if need be.
static bool make_place(socket_net* n)
{
    if (n->streams < n->base.limits.max_connections) { return true; }
    n->base.counts.evicted++;
    for (endpoint* e = n->first; e; e = e->next) {
        if (e->kind == STREAM && !e->outgoing && e->pdus == 0) {
            endpoint_free(n, e);
            return true;
        }
    }
    return false;
}

// Where descriptors have run out, the connection would stay there and wake us for ever.
// false: there was none.
static bool turn_away(socket_net* n, endpoint* e)
{
    if (n->spare >= 0) { close(n->spare); }
    const int fd = accept4(e->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) { close(fd); }
    n->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    n->base.counts.evicted += fd >= 0;
    return fd >= 0;
}

static void take_in(socket_net* n, endpoint* e)
{
    for (int i = 0; i < BURST; i++) {
        struct sockaddr_in from = {0};
        socklen_t length = sizeof from;
        const int fd =
            accept4(e->fd, (struct sockaddr*)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const int code = fd < 0 ? errno : 0;
        if (code == EAGAIN || code == EWOULDBLOCK) { return; }
        if ((code == EMFILE || code == ENFILE) && !turn_away(n, e)) { return; }
        if (fd < 0) { continue; } // it has gone again
        endpoint* s = make_place(n) ? endpoint_new(n, STREAM) : NULL;
        if (!s) {
            close(fd);
            continue;
        }
        n->base.counts.connections++;
        s->fd = fd;
        s->kept = e->kept;
        s->local = e->local;
        s->peer = from_system(&from, CRD_DCP_TCP);
        switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
        switch_on(fd, IPPROTO_TCP, TCP_QUICKACK);
        if (!watch(n, s, EPOLL_CTL_ADD)) {
            endpoint_free(n, s);
            continue;
        }
        queue_push(n, s); // its first PDU may be there already
    }
}

static int bind_at(endpoint* e, const crd_dcp_address* at)
{
    const bool udp = at->transport == CRD_DCP_UDP;
    const struct sockaddr_in s = to_system(at);
    e->fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM | SOCK_NONBLOCK) | SOCK_CLOEXEC, 0);
    if (e->fd < 0) { return errno; }
    if (udp) {
        const int room = RECEIVE_BUFFER;
        const struct timeval longest = {.tv_usec = LONGEST_US};
        (void)setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        (void)setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        switch_on(e->fd, SOL_SOCKET, SO_TIMESTAMPNS);
        switch_on(e->fd, SOL_SOCKET, SO_RXQ_OVFL);
    } else {
        switch_on(e->fd, SOL_SOCKET, SO_REUSEADDR);
    }
    if (bind(e->fd, (const struct sockaddr*)&s, sizeof s) != 0) { return errno; }
    return udp || listen(e->fd, SOMAXCONN) == 0 ? 0 : errno;
}

static crd_status socket_listen(crd_dcp_net* base, crd_dcp_address* at)
{
    socket_net* n = (socket_net*)base;
    const kind k = at->transport == CRD_DCP_UDP ? DATAGRAM : LISTENER;
    for (const endpoint* e = n->first; at->port && e; e = e->next) {
        if (e->kind == k && e->local.port == at->port &&
            (e->local.ip == at->ip || e->local.ip == 0)) {
            return CRD_OK;
        }
    }
    endpoint* e = endpoint_new(n, k);
    if (!e) { return CRD_E_MEMORY; }
    int code = bind_at(e, at);
    if (code == 0 && k == LISTENER && !watch(n, e, EPOLL_CTL_ADD)) { code = errno; }
    if (code != 0) {
        endpoint_free(n, e);
        return fail_system(base->ctx, "cannot be listened at", at, code);
    }
    e->local = *at;
    local_of(e->fd, &e->local);
    *at = e->local;
    return CRD_OK;
}

static crd_status socket_connect_from(crd_dcp_net* base, uint32_t ip, const crd_dcp_address* to)
{
    socket_net* n = (socket_net*)base;
    endpoint* e = n->first;
    while (e && !(e->kind == STREAM && e->outgoing && e->source == ip &&
                  crd_dcp_address_equal(&e->peer, to))) {
        e = e->next;
    }
    if (e && e->phase != BROKEN) { return CRD_OK; }
    const bool fresh = !e;
    if (fresh) {
        if (!make_place(n)) {
            return crdi_fail(base->ctx, CRD_E_LIMIT, "%s: there are %d connections already",
                             crdi_dcp_address_text_of(to).text, n->streams);
        }
        e = endpoint_new(n, STREAM);
        if (!e) { return CRD_E_MEMORY; }
        e->outgoing = true;
        e->source = ip;
        e->peer = *to;
    }
    const int code = stream_open(n, e);
    if (code != 0) {
        if (fresh) { endpoint_free(n, e); }
        return fail_system(base->ctx, "cannot be connected to", to, code);
    }
    return CRD_OK;
}

static crd_status socket_connect(crd_dcp_net* base, const crd_dcp_address* to)
{
    return socket_connect_from(base, 0, to);
}

// ---- datagrams ---------------------------------------------------------------------------------

// Those that the system refuses were counted as sent.
static void flush_datagrams(socket_net* n)
{
    outbox* o = &n->out;
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

static void outbox_add(socket_net* n, endpoint* e, const crd_dcp_address* to, const uint8_t* bytes,
                       size_t length)
{
    outbox* o = &n->out;
    if (o->of != e || o->count == BATCH || length > sizeof o->bytes - o->used) {
        flush_datagrams(n);
    }
    o->of = e;
    const int i = o->count++;
    memcpy(o->bytes + o->used, bytes, length);
    o->to[i] = to_system(to);
    o->parts[i] = (struct iovec){o->bytes + o->used, length};
    o->messages[i].msg_hdr = (struct msghdr){.msg_name = &o->to[i],
                                             .msg_namelen = sizeof o->to[i],
                                             .msg_iov = &o->parts[i],
                                             .msg_iovlen = 1};
    o->used += length;
}

static bool datagram_send(socket_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                          size_t length, crd_dcp_address* from)
{
    endpoint* e = NULL;
    for (endpoint* x = n->first; x; x = x->next) {
        if (x->kind != DATAGRAM) { continue; }
        if (!e || crd_dcp_address_equal(&x->local, from)) { e = x; }
        if (from->port == 0 || crd_dcp_address_equal(&x->local, from)) { break; }
    }
    if (!e) {
        crd_dcp_address at = {.ip = CRDI_DCP_LOOPBACK, .transport = CRD_DCP_UDP};
        if (n->first && n->first->kind == LISTENER) { at.ip = n->first->local.ip; }
        if (socket_listen(&n->base, &at) < 0) { return false; }
        e = n->last;
    }
    *from = e->local;
    if (n->held && length <= sizeof n->out.bytes) {
        outbox_add(n, e, to, bytes, length);
        return true;
    }
    flush_datagrams(n); // so that they leave in their order
    const struct sockaddr_in s = to_system(to);
    ssize_t k = 0;
    do {
        k = sendto(e->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr*)&s,
                   sizeof s);
    } while (k < 0 && errno == EINTR);
    return k >= 0;
}

// What the system says beside a datagram: its time of arrival, and how many it has thrown away.
static double read_notes(socket_net* n, endpoint* e, struct msghdr* m)
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

static void inbox_init(inbox* in)
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
static void inbox_fill(socket_net* n, endpoint* e, int flags)
{
    inbox* in = &n->in;
    for (int i = 0; i < in->count; i++) { // what the system has overwritten
        in->messages[i].msg_hdr.msg_namelen = sizeof in->from[i];
        in->messages[i].msg_hdr.msg_controllen = NOTES;
    }
    const int k = recvmmsg(e->fd, in->messages, BATCH, flags, NULL);
    in->of = e;
    in->next = 0;
    in->count = k > 0 ? k : 0;
    in->now = socket_now(&n->base);
    in->real_ns = clock_ns(CLOCK_REALTIME);
}

static void inbox_take(socket_net* n, crd_dcp_packet* out)
{
    inbox* in = &n->in;
    const int i = in->next++;
    *out = (crd_dcp_packet){.from = from_system(&in->from[i], CRD_DCP_UDP),
                            .at = in->of->local,
                            .bytes = in->parts[i].iov_base,
                            .length = in->messages[i].msg_len,
                            .time = read_notes(n, in->of, &in->messages[i].msg_hdr)};
}

static bool datagram_take(socket_net* n, endpoint* e, crd_dcp_packet* out)
{
    inbox_fill(n, e, MSG_DONTWAIT);
    if (n->in.count == 0) { return false; }
    n->burst += n->in.count - 1;
    if (n->in.count < BATCH) { queue_remove(n, e); } // it is empty now
    inbox_take(n, out);
    return true;
}

// ---- all of them -------------------------------------------------------------------------------

// Two peers of different local addresses may have the same number: the one that came in at `from`
// (may be NULL), then control comes first.
static endpoint* find_stream(const socket_net* n, const crd_dcp_address* peer,
                             const crd_dcp_address* from)
{
    endpoint* found = NULL;
    for (endpoint* e = n->first; e; e = e->next) {
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
    socket_net* n = (socket_net*)base;
    if (to->transport == CRD_DCP_UDP) { return datagram_send(n, to, bytes, length, from); }
    endpoint* e = find_stream(n, to, from);
    if (!e || length > e->max_pdu) { return false; }
    *from = e->local;
    return stream_send(n, e, bytes, length);
}

static void flush(socket_net* n)
{
    flush_datagrams(n);
    while (n->held_stream) {
        endpoint* e = n->held_stream;
        n->held_stream = e->held_after;
        e->held = false;
        (void)stream_flush(n, e);
    }
}

static void socket_hold(crd_dcp_net* base, bool on)
{
    socket_net* n = (socket_net*)base;
    n->held += on ? 1 : -1;
    if (n->held <= 0) {
        n->held = 0;
        flush(n);
    }
}

static bool socket_connected(const crd_dcp_net* base, const crd_dcp_address* to)
{
    const endpoint* e = find_stream((const socket_net*)base, to, NULL);
    return e && e->phase == OPEN;
}

static bool socket_local(const crd_dcp_net* base, int index, crd_dcp_address* out)
{
    for (const endpoint* e = ((const socket_net*)base)->first; e; e = e->next) {
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
    for (endpoint* e = ((socket_net*)base)->first; e; e = e->next) {
        e->kept = !e->outgoing;
    }
}

// Those that have something to the queue; writes where there is room again.
static void harvest(socket_net* n, const struct epoll_event* events, int count)
{
    for (int i = 0; i < count; i++) {
        endpoint* e = events[i].data.ptr;
        const bool room = e->kind == STREAM && (e->phase == OPENING || events[i].events & EPOLLOUT);
        if (room && !stream_writable(n, e)) { continue; }
        if (events[i].events & ~(uint32_t)EPOLLOUT) { queue_push(n, e); }
    }
}

// Asks the system which sockets have something.
static void look(socket_net* n)
{
    struct epoll_event events[EVENTS];
    adjust(n);
    if (lone(n)) {
        queue_push(n, lone(n));
        return;
    }
    harvest(n, events, epoll_wait(n->epoll, events, EVENTS, 0));
}

// Waits for one that has. epoll_wait knows whole milliseconds only; the newer call is not
// everywhere.
static void look_for(socket_net* n, const struct timespec* t)
{
    endpoint* alone = lone(n);
    struct pollfd p = {.fd = alone ? alone->fd : n->epoll, .events = POLLIN};
    if (alone) {
        if (ppoll(&p, 1, t, NULL) > 0) { queue_push(n, alone); }
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
    look(n);
}

static bool take(socket_net* n, endpoint* e, crd_dcp_packet* out)
{
    switch (e->kind) {
    case DATAGRAM:
        return datagram_take(n, e, out);
    case STREAM:
        return stream_take(n, e, out);
    case LISTENER:
        take_in(n, e);
        return false;
    }
    return false;
}

// Whoever has waited and taken everything does not ask again at once.
static bool just_looked(socket_net* n)
{
    const double looked = n->looked, moment = 20e-6;
    n->looked = -INFINITY;
    return looked > 0 && socket_now(&n->base) - looked < moment;
}

static bool socket_receive(crd_dcp_net* base, crd_dcp_packet* out)
{
    socket_net* n = (socket_net*)base;
    if (n->in.next < n->in.count) {
        inbox_take(n, out);
        return true;
    }
    if (n->head && n->burst >= BURST) { // the others' turn
        endpoint* e = n->head;
        look(n); // it may lose a stream, this one too
        if (n->head == e) {
            queue_remove(n, e);
            queue_insert(n, n->tail, e);
        }
    }
    if (!n->head && just_looked(n)) { return false; }
    if (!n->head) { look(n); }
    while (n->head) {
        endpoint* e = n->head;
        n->burst++;
        // In the queue while it is looked at: whoever frees it takes it out.
        if (take(n, e, out)) { return true; }
        if (n->head == e) { queue_remove(n, e); }
    }
    return false;
}

static void socket_wait(crd_dcp_net* base, double seconds)
{
    socket_net* n = (socket_net*)base;
    flush(n);
    if (n->head || n->in.next < n->in.count) { return; }
    const double most = 1e6;
    if (seconds > most) { seconds = most; }
    adjust(n);
    if (lone(n) && seconds >= 1e-6 * LONGEST_US) {
        inbox_fill(n, lone(n), MSG_WAITFORONE);
        n->looked = n->in.now;
        return;
    }
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    look_for(n, &t);
    n->looked = socket_now(base);
}

// The system knows it of a datagram socket that was given a peer; nothing is sent.
static uint32_t socket_source_ip(const crd_dcp_net* base, const crd_dcp_address* to)
{
    (void)base;
    crd_dcp_address here = {0};
    struct sockaddr_in there = to_system(to);
    if (to->port == 0) { there.sin_port = htons(1); }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) { return 0; }
    if (connect(fd, (const struct sockaddr*)&there, sizeof there) == 0) { local_of(fd, &here); }
    close(fd);
    return here.ip;
}

static int socket_descriptor(const crd_dcp_net* base)
{
    socket_net* n = (socket_net*)(uintptr_t)base;
    n->changed = n->changed || !n->shown;
    n->shown = true;
    adjust(n);
    return n->epoll;
}

static void socket_close(crd_dcp_net* base, const crd_dcp_address* at)
{
    socket_net* n = (socket_net*)base;
    endpoint* next = NULL;
    flush(n); // a stream that is lost by it is gone before we walk
    for (endpoint* e = n->first; e; e = next) {
        next = e->next;
        const bool named = at && ((!e->outgoing && crd_dcp_address_equal(&e->local, at)) ||
                                  (e->kind == STREAM && crd_dcp_address_equal(&e->peer, at)));
        if (at ? named : !e->kept) { endpoint_free(n, e); }
    }
}

static void socket_destroy(crd_dcp_net* base)
{
    socket_net* n = (socket_net*)base;
    flush(n);
    while (n->first) {
        endpoint_free(n, n->first);
    }
    if (n->epoll >= 0) { close(n->epoll); }
    if (n->spare >= 0) { close(n->spare); }
    crd_free(base->ctx, n->packet);
    crd_free(base->ctx, n->in.bytes);
    crd_free(base->ctx, n);
}

static const crdi_dcp_net_ops ops = {
    .destroy = socket_destroy,
    .listen = socket_listen,
    .connect = socket_connect,
    .connect_from = socket_connect_from,
    .connected = socket_connected,
    .local = socket_local,
    .set_control = socket_set_control,
    .send = socket_send,
    .receive = socket_receive,
    .wait = socket_wait,
    .close = socket_close,
    .now = socket_now,
    .hold = socket_hold,
    .descriptor = socket_descriptor,
    .source_ip = socket_source_ip,
};

crd_status crd_dcp_net_create(crd_context* ctx, crd_dcp_net** out)
{
    socket_net* n = crdi_new(ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    crdi_dcp_net_init(&n->base, ctx, &ops);
    n->offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
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
    inbox_init(&n->in);
    n->looked = -INFINITY;
    *out = &n->base;
    return CRD_OK;
}
