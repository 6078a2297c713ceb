// A network in memory on a virtual clock. Packets on their way stand in a heap by time of arrival
// and number; those that have arrived in the queue of their net.
#include "testnet/testnet.h"

#include "dcp/net/net.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_PORT = 49152, // of those that are chosen for somebody
    MOST_REPEATS = 10,  // then a stream gets through, whatever the loss
};

typedef struct node node;

typedef struct port {
    crd_dcp_address at;
    node* owner;
    bool kept;
} port;

// A stream: side 0 has opened it, side 1 listened. Opened again it has another epoch, so that what
// is still on its way from the last does not arrive in the new one.
typedef struct stream {
    node* node[2];
    crd_dcp_address at[2];
    bool open[2];
    bool wanted;    // by side 0, which opens it again when it breaks
    bool kept;      // by side 1
    double ready;   // side 0 may send: a round trip behind connecting
    double last[2]; // arrival of the newest packet at the side
    double retry;
    uint32_t epoch;
    int flying; // packets on their way
    struct stream* next;
} stream;

typedef struct packet {
    double time;
    uint64_t number; // equal times: in the order of sending
    crd_dcp_address from, at;
    stream* stream; // NULL: a datagram
    uint32_t epoch;
    int side;
    bool end; // of the stream
    size_t length, room;
    uint8_t* bytes;
    struct packet* next; // in a queue, or free
} packet;

struct node {
    crd_dcp_net base;
    testnet* network;
    uint32_t ip;
    packet *head, *tail;  // arrived
    packet* current;      // handed out by the last receive
    crd_dcp_slave* slave; // that lives here, NULL
    node *previous, *next;
};

struct testnet {
    crd_context* ctx;
    testnet_faults faults;
    testnet_counts counts;
    double now;
    uint64_t number; // of packets so far
    int nets;
    node* first;  // of them
    int64_t left; // arrivals that no slave fetches by itself
    bool owned;   // not yet destroyed by who created it
    uint16_t next_port;
    packet** heap;
    size_t heap_count, heap_room;
    packet* free;
    port* ports; // of all nets, in the order of opening
    size_t port_count, port_room;
    stream* streams;
};

// ---- chance ------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood 2014)
static uint64_t draw(uint64_t* state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

static double uniform(uint64_t* state) // 0 <= x < 1
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

static uint64_t chance_of(const testnet* t, uint64_t number)
{
    uint64_t s = t->faults.seed;
    s = draw(&s) ^ number;
    return draw(&s);
}

// ---- packets -----------------------------------------------------------------------------------

static packet* packet_new(testnet* t, size_t length)
{
    packet* p = t->free;
    if (p) {
        t->free = p->next;
    } else {
        p = crdi_new(t->ctx, sizeof *p);
        if (!p) { return NULL; }
    }
    if (length > p->room) {
        uint8_t* more = crdi_grow(t->ctx, p->bytes, &p->room, length, 1);
        if (!more) {
            p->next = t->free;
            t->free = p;
            return NULL;
        }
        p->bytes = more;
    }
    *p = (packet){.bytes = p->bytes, .room = p->room, .length = length};
    return p;
}

static void packet_free(testnet* t, packet* p)
{
    if (!p) { return; }
    p->next = t->free;
    t->free = p;
}

static bool earlier(const packet* a, const packet* b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

// Room in the heap is made before (heap_reserve), so that this cannot fail.
static void heap_push(testnet* t, packet* p)
{
    size_t i = t->heap_count++;
    while (i > 0 && earlier(p, t->heap[(i - 1) / 2])) {
        t->heap[i] = t->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    t->heap[i] = p;
    if (p->stream) { p->stream->flying++; }
}

static bool heap_reserve(testnet* t, size_t more)
{
    packet** h = crdi_grow(t->ctx, t->heap, &t->heap_room, t->heap_count + more, sizeof(packet*));
    if (!h) { return false; }
    t->heap = h;
    return true;
}

static packet* heap_pop(testnet* t)
{
    packet* top = t->heap[0];
    packet* p = t->heap[--t->heap_count];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= t->heap_count) { break; }
        if (k + 1 < t->heap_count && earlier(t->heap[k + 1], t->heap[k])) { k++; }
        if (!earlier(t->heap[k], p)) { break; }
        t->heap[i] = t->heap[k];
        i = k;
    }
    t->heap[i] = p;
    if (top->stream) { top->stream->flying--; }
    return top;
}

// ---- ports and streams -------------------------------------------------------------------------

static port* find_port(const testnet* t, const crd_dcp_address* at)
{
    for (size_t i = 0; i < t->port_count; i++) {
        if (crd_dcp_address_equal(&t->ports[i].at, at)) { return &t->ports[i]; }
    }
    return NULL;
}

static uint16_t choose_port(testnet* t, uint32_t ip, uint8_t transport)
{
    for (int tries = 0; tries < 65536 - FIRST_PORT; tries++) {
        const crd_dcp_address at = {.ip = ip, .port = t->next_port, .transport = transport};
        t->next_port = t->next_port == 65535 ? FIRST_PORT : (uint16_t)(t->next_port + 1);
        if (!find_port(t, &at)) { return at.port; }
    }
    return 0;
}

// Frees it if nobody needs it any more.
static void stream_release(testnet* t, stream* s)
{
    if (s->wanted || s->open[0] || s->open[1] || s->flying > 0) { return; }
    stream** at = &t->streams;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    crd_free(t->ctx, s);
}

static void stream_broke(testnet* t, stream* s, int side)
{
    s->open[side] = false;
    s->retry = t->now + CRDI_DCP_RETRY;
    s->node[side]->base.counts.lost++;
    s->node[side]->base.counts.connections--;
}

// One side closes; the other learns it behind all that has been sent.
static void stream_close(testnet* t, stream* s, int side)
{
    if (side == 0) { s->wanted = false; }
    if (s->open[side]) {
        const int other = 1 - side;
        s->open[side] = false;
        s->node[side]->base.counts.connections--;
        packet* p = s->open[other] && heap_reserve(t, 1) ? packet_new(t, 0) : NULL;
        if (p) {
            p->time = fmax(t->now + t->faults.delay, s->last[other]);
            p->number = t->number++;
            p->stream = s;
            p->epoch = s->epoch;
            p->side = other;
            p->end = true;
            heap_push(t, p);
        } else if (s->open[other]) { // out of memory: it learns it now
            stream_broke(t, s, other);
        }
    }
    stream_release(t, s);
}

static crd_status stream_open(node* n, stream* s)
{
    testnet* t = n->network;
    const port* there = find_port(t, &s->at[1]);
    if (!there) {
        s->retry = t->now + CRDI_DCP_RETRY;
        return crdi_fail(n->base.ctx, CRD_E_IO, "%s cannot be connected to: nobody listens there",
                         crdi_dcp_address_text_of(&s->at[1]).text);
    }
    s->at[0] = (crd_dcp_address){.ip = n->ip, .transport = CRD_DCP_TCP};
    s->at[0].port = choose_port(t, n->ip, CRD_DCP_TCP);
    s->node[0] = n;
    s->node[1] = there->owner;
    s->kept = there->kept;
    s->open[0] = s->open[1] = s->wanted = true;
    s->ready = t->now + 2 * t->faults.delay;
    s->last[0] = s->last[1] = t->now;
    s->epoch++;
    n->base.counts.connections++;
    there->owner->base.counts.connections++;
    return CRD_OK;
}

// The stream of this net to a peer, and which side the net is.
static stream* find_stream(const node* n, const crd_dcp_address* peer, int* side)
{
    stream* found = NULL;
    for (stream* s = n->network->streams; s; s = s->next) {
        for (int i = 0; i < 2; i++) {
            const bool mine = s->node[i] == n && (s->open[i] || (i == 0 && s->wanted));
            if (!mine || !crd_dcp_address_equal(&s->at[1 - i], peer)) { continue; }
            if (!found || (i == 1 && s->kept)) {
                found = s;
                *side = i;
            }
        }
    }
    return found;
}

// ---- arrival -----------------------------------------------------------------------------------

static void enqueue(node* n, packet* p)
{
    p->next = NULL;
    *(n->tail ? &n->tail->next : &n->head) = p;
    n->tail = p;
    n->network->counts.delivered++;
    n->network->left += !n->slave;
}

static void arrive_stream(testnet* t, packet* p)
{
    stream* s = p->stream;
    const bool there = p->epoch == s->epoch && s->open[p->side];
    if (p->end) {
        if (there) { stream_broke(t, s, p->side); }
        packet_free(t, p);
    } else if (!there) {
        t->counts.nowhere++;
        packet_free(t, p);
    } else if (p->length > s->node[p->side]->base.limits.max_pdu) {
        s->node[p->side]->base.counts.refused++;
        s->node[p->side]->base.counts.lost++;
        t->counts.nowhere++;
        s->retry = t->now + CRDI_DCP_RETRY;
        const bool wanted = s->wanted;
        s->flying++; // so that it outlives the closing
        stream_close(t, s, p->side);
        s->flying--;
        s->wanted = wanted;
        packet_free(t, p);
    } else {
        enqueue(s->node[p->side], p);
    }
    stream_release(t, s);
}

// All that is due by now.
static void deliver(testnet* t)
{
    while (t->heap_count > 0 && t->heap[0]->time <= t->now) {
        packet* p = heap_pop(t);
        if (p->stream) {
            arrive_stream(t, p);
            continue;
        }
        const port* there = find_port(t, &p->at);
        if (there) {
            enqueue(there->owner, p);
        } else {
            t->counts.nowhere++;
            packet_free(t, p);
        }
    }
}

double testnet_now(const testnet* t)
{
    return t->now;
}

// Slaves that live on nets get what is there and what is due.
static void serve(testnet* t)
{
    for (node* n = t->first; n; n = n->next) {
        crd_dcp_packet p;
        while (n->slave && crd_dcp_net_receive(&n->base, &p)) {
            crd_dcp_slave_receive(n->slave, &p.from, &p.at, p.bytes, p.length, p.time);
        }
        if (n->slave && crd_dcp_slave_next(n->slave) <= t->now) {
            crd_dcp_slave_advance(n->slave, t->now);
        }
    }
}

static double next_event(const testnet* t)
{
    double next = t->heap_count > 0 ? t->heap[0]->time : INFINITY;
    for (const node* n = t->first; n; n = n->next) {
        if (n->slave) { next = fmin(next, crd_dcp_slave_next(n->slave)); }
    }
    return next;
}

double testnet_advance(testnet* t, double until)
{
    serve(t);
    const double next = next_event(t);
    if (next <= until && isfinite(next)) {
        t->now = fmax(t->now, next);
    } else if (until > t->now && isfinite(until)) {
        t->now = until;
    }
    deliver(t);
    serve(t);
    return t->now;
}

void testnet_attach(crd_dcp_net* n, crd_dcp_slave* s)
{
    ((node*)n)->slave = s;
}

// ---- what a net does ---------------------------------------------------------------------------

static double node_now(const crd_dcp_net* base)
{
    return ((const node*)base)->network->now;
}

static crd_status node_listen(crd_dcp_net* base, crd_dcp_address* at)
{
    node* n = (node*)base;
    testnet* t = n->network;
    crd_dcp_address here = *at;
    if (here.ip == 0) { here.ip = n->ip; }
    if (here.ip != n->ip) {
        return crdi_fail(base->ctx, CRD_E_IO,
                         "%s cannot be listened at: it is not an address of this host",
                         crdi_dcp_address_text_of(at).text);
    }
    if (here.port == 0) { here.port = choose_port(t, here.ip, here.transport); }
    const port* there = find_port(t, &here);
    if (here.port == 0 || (there && there->owner != n)) {
        return crdi_fail(base->ctx, CRD_E_IO, "%s cannot be listened at: it is in use",
                         crdi_dcp_address_text_of(at).text);
    }
    if (!there) {
        port* more = crdi_grow(t->ctx, t->ports, &t->port_room, t->port_count + 1, sizeof *more);
        if (!more) { return CRD_E_MEMORY; }
        t->ports = more;
        t->ports[t->port_count++] = (port){.at = here, .owner = n};
    }
    *at = here;
    return CRD_OK;
}

static crd_status node_connect(crd_dcp_net* base, const crd_dcp_address* to)
{
    node* n = (node*)base;
    testnet* t = n->network;
    int side = 0;
    stream* s = find_stream(n, to, &side);
    if (s && s->open[side]) { return CRD_OK; }
    if (s) { return stream_open(n, s); }
    s = crdi_new(t->ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->at[1] = *to;
    s->next = t->streams;
    t->streams = s;
    const crd_status st = stream_open(n, s);
    if (st < 0) { stream_release(t, s); }
    return st;
}

static bool node_connected(const crd_dcp_net* base, const crd_dcp_address* to)
{
    const node* n = (const node*)base;
    int side = 0;
    const stream* s = find_stream(n, to, &side);
    return s && s->open[side] && (side == 1 || n->network->now >= s->ready);
}

static bool node_local(const crd_dcp_net* base, int index, crd_dcp_address* out)
{
    const testnet* t = ((const node*)base)->network;
    for (size_t i = 0; i < t->port_count; i++) {
        if (&t->ports[i].owner->base == base && index-- == 0) {
            *out = t->ports[i].at;
            return true;
        }
    }
    return false;
}

static void node_set_control(crd_dcp_net* base)
{
    node* n = (node*)base;
    for (size_t i = 0; i < n->network->port_count; i++) {
        if (n->network->ports[i].owner == n) { n->network->ports[i].kept = true; }
    }
    for (stream* s = n->network->streams; s; s = s->next) {
        if (s->node[1] == n) { s->kept = true; }
    }
}

static bool send_stream(node* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                        crd_dcp_address* from)
{
    testnet* t = n->network;
    int side = 0;
    stream* s = find_stream(n, to, &side);
    if (!s) { return false; }
    if (!s->open[side] && (t->now < s->retry || stream_open(n, s) < 0)) { return false; }
    packet* p = heap_reserve(t, 1) ? packet_new(t, length) : NULL;
    if (!p) { return false; }
    const int other = 1 - side;
    const testnet_faults* f = &t->faults;
    p->number = t->number++;
    uint64_t chance = chance_of(t, p->number);
    const double bad = 1 - (1 - f->loss) * (1 - f->corrupt);
    double time = (side == 0 ? fmax(t->now, s->ready) : t->now) + f->delay;
    time += f->jitter * uniform(&chance);
    for (int i = 0; i < MOST_REPEATS && uniform(&chance) < bad; i++) {
        time += 2 * f->delay + f->jitter;
        t->counts.repeated++;
    }
    s->last[other] = p->time = fmax(time, s->last[other]);
    *from = p->from = s->at[side];
    p->at = s->at[other];
    p->stream = s;
    p->epoch = s->epoch;
    p->side = other;
    if (length > 0) { memcpy(p->bytes, bytes, length); }
    heap_push(t, p);
    t->counts.sent++;
    return true;
}

// The one that is wanted, else the first.
static const crd_dcp_address* find_udp(const node* n, const crd_dcp_address* wanted)
{
    const testnet* t = n->network;
    const crd_dcp_address* found = NULL;
    for (size_t i = 0; i < t->port_count; i++) {
        const port* p = &t->ports[i];
        if (p->owner != n || p->at.transport != CRD_DCP_UDP) { continue; }
        if (!found || crd_dcp_address_equal(&p->at, wanted)) { found = &p->at; }
        if (wanted->port == 0 || crd_dcp_address_equal(&p->at, wanted)) { break; }
    }
    return found;
}

static bool send_datagram(node* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                          crd_dcp_address* from)
{
    testnet* t = n->network;
    const crd_dcp_address* here = find_udp(n, from);
    *from = (crd_dcp_address){.ip = n->ip, .transport = CRD_DCP_UDP};
    if (here) {
        *from = *here;
    } else if (node_listen(&n->base, from) < 0) {
        return false;
    }
    packet* copies[2] = {0};
    if (!heap_reserve(t, 2)) { return false; }
    copies[0] = packet_new(t, length);
    copies[1] = copies[0] ? packet_new(t, length) : NULL;
    if (!copies[1]) {
        packet_free(t, copies[0]);
        return false;
    }
    const testnet_faults* f = &t->faults;
    const uint64_t number = t->number;
    t->number += 2;
    // Always the same draws in the same order, whatever becomes of them.
    uint64_t chance = chance_of(t, number);
    const bool lost = uniform(&chance) < f->loss;
    const bool doubled = uniform(&chance) < f->duplicate;
    const bool damaged = uniform(&chance) < f->corrupt;
    for (unsigned i = 0; i < 2; i++) {
        packet* p = copies[i];
        p->time = t->now + f->delay + f->jitter * uniform(&chance);
        p->number = number + i;
        p->from = *from;
        p->at = *to;
        if (length > 0) { memcpy(p->bytes, bytes, length); }
    }
    if (damaged && !lost && length > 0) { // one byte of the first copy becomes another
        const uint64_t r = draw(&chance);
        copies[0]->bytes[(r >> 8) % length] ^= (uint8_t)(1 + r % 255);
    }
    t->counts.sent++;
    t->counts.lost += lost;
    t->counts.duplicated += doubled && !lost;
    t->counts.corrupted += damaged && !lost && length > 0;
    for (int i = 0; i < 2; i++) {
        if (lost || (i == 1 && !doubled)) {
            packet_free(t, copies[i]);
        } else {
            heap_push(t, copies[i]);
        }
    }
    return true;
}

static bool node_send(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                      size_t length, crd_dcp_address* from)
{
    node* n = (node*)base;
    return to->transport == CRD_DCP_TCP ? send_stream(n, to, bytes, length, from)
                                        : send_datagram(n, to, bytes, length, from);
}

static bool node_receive(crd_dcp_net* base, crd_dcp_packet* out)
{
    node* n = (node*)base;
    deliver(n->network);
    packet_free(n->network, n->current);
    packet* p = n->current = n->head;
    if (!p) { return false; }
    n->head = p->next;
    if (!n->head) { n->tail = NULL; }
    *out = (crd_dcp_packet){
        .from = p->from, .at = p->at, .bytes = p->bytes, .length = p->length, .time = p->time};
    return true;
}

// On to the next arrival; past those that slaves who live here have fetched already.
static void node_wait(crd_dcp_net* base, double seconds)
{
    node* n = (node*)base;
    testnet* t = n->network;
    const double until = t->now + seconds;
    deliver(t);
    const int64_t left = t->left;
    while (!n->head && testnet_advance(t, until) < until && t->left == left &&
           (isfinite(until) || isfinite(next_event(t)))) {}
}

static void close_ports(node* n, const crd_dcp_address* at, bool all)
{
    testnet* t = n->network;
    size_t kept = 0;
    for (size_t i = 0; i < t->port_count; i++) {
        const port* p = &t->ports[i];
        const bool named = at ? crd_dcp_address_equal(&p->at, at) : all || !p->kept;
        if (p->owner != n || !named) { t->ports[kept++] = *p; }
    }
    t->port_count = kept;
}

static void close_streams(node* n, const crd_dcp_address* at, bool all)
{
    stream* next = NULL;
    for (stream* s = n->network->streams; s; s = next) {
        next = s->next;
        s->flying++; // so that it outlives the closing of one side
        for (int i = 0; i < 2; i++) {
            if (s->node[i] != n) { continue; }
            const bool named = at ? crd_dcp_address_equal(&s->at[1 - i], at) ||
                                        (i == 1 && crd_dcp_address_equal(&s->at[1], at))
                                  : all || i == 0 || !s->kept;
            if (named) { stream_close(n->network, s, i); }
        }
        s->flying--;
        stream_release(n->network, s);
    }
}

static void node_close(crd_dcp_net* base, const crd_dcp_address* at)
{
    close_streams((node*)base, at, false);
    close_ports((node*)base, at, false);
}

// ---- the network -------------------------------------------------------------------------------

static void free_packets(testnet* t, packet* p)
{
    while (p) {
        packet* next = p->next;
        crd_free(t->ctx, p->bytes);
        crd_free(t->ctx, p);
        p = next;
    }
}

static void release(testnet* t)
{
    if (t->owned || t->nets > 0) { return; }
    while (t->heap_count > 0) {
        packet_free(t, heap_pop(t));
    }
    free_packets(t, t->free);
    while (t->streams) {
        stream* next = t->streams->next;
        crd_free(t->ctx, t->streams);
        t->streams = next;
    }
    crd_free(t->ctx, t->heap);
    crd_free(t->ctx, t->ports);
    crd_free(t->ctx, t);
}

static void node_destroy(crd_dcp_net* base)
{
    node* n = (node*)base;
    testnet* t = n->network;
    close_streams(n, NULL, true);
    close_ports(n, NULL, true);
    for (stream* s = t->streams; s; s = s->next) { // those whose other side is still open
        for (int i = 0; i < 2; i++) {
            if (s->node[i] == n) { s->node[i] = NULL; }
        }
    }
    while (n->head) {
        packet* next = n->head->next;
        packet_free(t, n->head);
        n->head = next;
    }
    packet_free(t, n->current);
    *(n->previous ? &n->previous->next : &t->first) = n->next;
    if (n->next) { n->next->previous = n->previous; }
    t->nets--;
    crd_free(t->ctx, n);
    release(t);
}

static uint32_t node_source_ip(const crd_dcp_net* base, const crd_dcp_address* to)
{
    (void)to;
    return ((const node*)base)->ip;
}

static const crdi_dcp_net_ops ops = {
    .destroy = node_destroy,
    .listen = node_listen,
    .connect = node_connect,
    .connected = node_connected,
    .local = node_local,
    .set_control = node_set_control,
    .send = node_send,
    .receive = node_receive,
    .wait = node_wait,
    .close = node_close,
    .now = node_now,
    .source_ip = node_source_ip,
};

static crd_status look_at(crd_context* ctx, const testnet_faults* f)
{
    const struct {
        const char* name;
        double value, most;
    } rows[] = {
        {"delay", f->delay, 1e6},       {"jitter", f->jitter, 1e6}, {"loss", f->loss, 1},
        {"duplicate", f->duplicate, 1}, {"corrupt", f->corrupt, 1}, {"start", f->start, 1e12},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!(rows[i].value >= 0 && rows[i].value <= rows[i].most)) {
            return crdi_fail(ctx, CRD_E_RANGE, "test network: %s = %g, expected 0 to %g",
                             rows[i].name, rows[i].value, rows[i].most);
        }
    }
    return CRD_OK;
}

crd_status testnet_create(crd_context* ctx, const testnet_faults* faults, testnet** out)
{
    const testnet_faults none = {0};
    const testnet_faults* f = faults ? faults : &none;
    const crd_status st = look_at(ctx, f);
    if (st < 0) { return st; }
    testnet* t = crdi_new(ctx, sizeof *t);
    if (!t) { return CRD_E_MEMORY; }
    t->ctx = ctx;
    t->faults = *f;
    t->now = f->start;
    t->owned = true;
    t->next_port = FIRST_PORT;
    *out = t;
    return CRD_OK;
}

void testnet_destroy(testnet* t)
{
    if (!t) { return; }
    t->owned = false;
    release(t);
}

crd_status testnet_join(testnet* t, uint32_t ip, crd_dcp_net** out)
{
    if (ip == 0) {
        return crdi_fail(t->ctx, CRD_E_RANGE, "test network: 0.0.0.0 is not the address of a host");
    }
    node* n = crdi_new(t->ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    crdi_dcp_net_init(&n->base, t->ctx, &ops);
    n->network = t;
    n->ip = ip;
    n->next = t->first;
    if (t->first) { t->first->previous = n; }
    t->first = n;
    t->nets++;
    *out = &n->base;
    return CRD_OK;
}

crd_status testnet_set(testnet* t, const testnet_faults* faults)
{
    const crd_status st = look_at(t->ctx, faults);
    if (st < 0) { return st; }
    const uint64_t seed = t->faults.seed;
    t->faults = *faults;
    t->faults.seed = seed;
    return CRD_OK;
}

testnet_counts testnet_get_counts(const testnet* t)
{
    return t->counts;
}
