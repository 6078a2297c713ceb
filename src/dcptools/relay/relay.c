// The relay: channels, who has asked, and what is on its way.
#include "dcptools/relay/relay.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 256,  // bytes
    CAN_HEAD = 8, // bytes of a frame before its data
    AT_ONCE = 32, // packets of one net
    TURNS = 64,
};
#define NONE UINT32_MAX
static const double look_soon = 0.1, look_late = 1, retry = 0.1; // s

// ---- what is on its way ------------------------------------------------------------------------

static uint32_t block_new(crdi_dcp_relay* r)
{
    const uint32_t i = r->free;
    if (i != NONE) {
        r->free = r->flights[i].next;
        return i;
    }
    return r->fresh < r->block_count ? r->fresh++ : NONE; // pages are touched when they are needed
}

static void flight_free(crdi_dcp_relay* r, uint32_t first)
{
    while (first != NONE) {
        const uint32_t next = r->flights[first].next;
        r->flights[first].next = r->free;
        r->free = first;
        first = next;
    }
}

// The bytes in a chain of blocks; NONE: there is no room.
static uint32_t flight_new(crdi_dcp_relay* r, const uint8_t* bytes, size_t length)
{
    uint32_t first = NONE, *link = &first;
    size_t done = 0;
    do {
        const uint32_t i = block_new(r);
        *link = i;
        if (i == NONE) {
            flight_free(r, first);
            return NONE;
        }
        const size_t part = length - done < BLOCK ? length - done : BLOCK;
        if (part > 0) { memcpy(r->blocks + (size_t)i * BLOCK, bytes + done, part); }
        done += part;
        link = &r->flights[i].next;
        *link = NONE;
    } while (done < length);
    return first;
}

static void flight_read(const crdi_dcp_relay* r, uint32_t i, uint8_t* out)
{
    size_t left = r->flights[i].length;
    for (; left > 0; i = r->flights[i].next) {
        const size_t part = left < BLOCK ? left : BLOCK;
        memcpy(out, r->blocks + (size_t)i * BLOCK, part);
        out += part;
        left -= part;
    }
}

static bool earlier(const crdi_dcp_relay* r, uint32_t a, uint32_t b)
{
    const crdi_dcp_flight *x = &r->flights[a], *y = &r->flights[b];
    return x->time < y->time || (x->time == y->time && x->number < y->number);
}

static void heap_push(crdi_dcp_relay* r, uint32_t f)
{
    uint32_t i = r->heap_count++;
    while (i > 0 && earlier(r, f, r->heap[(i - 1) / 2])) {
        r->heap[i] = r->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->heap[i] = f;
}

static uint32_t heap_pop(crdi_dcp_relay* r)
{
    const uint32_t top = r->heap[0];
    const uint32_t f = r->heap[--r->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= r->heap_count) { break; }
        if (k + 1 < r->heap_count && earlier(r, r->heap[k + 1], r->heap[k])) { k++; }
        if (!earlier(r, r->heap[k], f)) { break; }
        r->heap[i] = r->heap[k];
        i = k;
    }
    r->heap[i] = f;
    return top;
}

// ---- setting out -------------------------------------------------------------------------------

// Where a packet goes.
typedef struct course {
    crdi_dcp_side side;
    int channel, map; // map -1: control
    crd_dcp_address from, to;
} course;

// A PDU of a stream that cannot be kept: the stream is no longer what was sent.
static void cut_stream(crdi_dcp_relay* r, const course* c, const crd_dcp_packet* p)
{
    const crdi_dcp_side other = c->side == CRDI_DCP_NEAR ? CRDI_DCP_FAR : CRDI_DCP_NEAR;
    crd_dcp_net_close(r->net[c->side], &c->to);
    crd_dcp_net_close(r->net[other], &p->from);
}

static void set_out(crdi_dcp_relay* r, const course* c, const crd_dcp_packet* p,
                    const uint8_t* bytes, double now)
{
    crdi_dcp_path_state* path = &r->path[c->side];
    const bool stream = c->to.transport == CRD_DCP_TCP;
    const double trip = r->path[0].path.delay + r->path[1].path.delay + path->path.jitter;
    const double came = p->time <= now ? p->time : now;
    const crdi_dcp_fate fate = crdi_dcp_path_pass(path, stream, p->length, came, r->since, trip);
    crdi_dcp_map* m = c->map >= 0 ? &r->maps[c->map] : NULL;
    double* last = m ? &m->last : &r->channels[c->channel].last[c->side];
    for (int i = 0; i < fate.copies; i++) {
        const uint32_t f = p->length <= r->buffer_room ? flight_new(r, bytes, p->length) : NONE;
        if (f == NONE) {
            path->counts.no_room++;
            if (stream) { cut_stream(r, c, p); }
            continue;
        }
        double time = fate.time[i];
        if (stream) { *last = time = fmax(time, *last); }
        crdi_dcp_flight* x = &r->flights[f];
        *x = (crdi_dcp_flight){.time = time,
                               .number = r->number++,
                               .place = path->number,
                               .from = c->from,
                               .to = c->to,
                               .length = (uint32_t)p->length,
                               .next = x->next,
                               .side = (uint8_t)c->side,
                               .channel = (int16_t)c->channel,
                               .map = (int16_t)c->map};
        const size_t head = c->to.transport == CRD_DCP_CAN ? CAN_HEAD : 0;
        if (i == 0 && fate.corrupt && p->length > head) { // one byte becomes another
            const size_t at = head + (fate.noise >> 8) % (p->length - head);
            uint32_t b = f;
            for (size_t k = 0; k < at / BLOCK; k++) {
                b = r->flights[b].next;
            }
            r->blocks[(size_t)b * BLOCK + at % BLOCK] ^= (uint8_t)(1 + fate.noise % 255);
        }
        heap_push(r, f);
        path->counts.waiting++;
        r->channels[c->channel].flying[c->side]++;
        if (m) { m->flying++; }
    }
}

// ---- who has asked -----------------------------------------------------------------------------

static const crdi_dcp_asked* find_asked(const crdi_dcp_channel* c, uint16_t seq)
{
    for (uint64_t n = c->asked_count; n > 0 && n + CRDI_DCP_ASKED > c->asked_count; n--) {
        const crdi_dcp_asked* a = &c->asked[(n - 1) % CRDI_DCP_ASKED];
        if (a->seq == seq) { return a; }
    }
    return NULL;
}

static void know_client(crdi_dcp_channel* c, const crd_dcp_address* client)
{
    for (int i = 0; i < c->client_count; i++) {
        if (crd_dcp_address_equal(&c->clients[i], client)) { return; }
    }
    if (c->client_count == CRDI_DCP_CLIENTS) { // the oldest is forgotten
        c->client_count--;
        memmove(c->clients, c->clients + 1, (size_t)c->client_count * sizeof *c->clients);
    }
    c->clients[c->client_count++] = *client;
}

// A request that the relay lets pass is remembered, with who shall get the notifications.
static void note_request(crdi_dcp_relay* r, crdi_dcp_channel* c, const crdi_dcp_pdu* pdu,
                         const crd_dcp_address* from)
{
    c->asked[c->asked_count++ % CRDI_DCP_ASKED] =
        (crdi_dcp_asked){.client = *from, .number = r->number, .seq = pdu->seq, .type = pdu->type};
    const bool free = !c->registered || c->owner.ip == from->ip;
    if (c->owner.port == 0 || (free && pdu->type != CRDI_DCP_INF_STATE)) { c->owner = *from; }
}

static void note_answer(crdi_dcp_relay* r, int channel, const crdi_dcp_pdu* pdu,
                        const crdi_dcp_asked* a)
{
    crdi_dcp_channel* c = &r->channels[channel];
    if (pdu->type != CRDI_DCP_RSP_ACK || !a) { return; }
    switch (a->type) {
    case CRDI_DCP_STC_REGISTER:
        c->registered = true;
        c->owner = a->client;
        break;
    case CRDI_DCP_STC_DEREGISTER:
        c->registered = false;
        break;
    case CRDI_DCP_STC_RESET:
    case CRDI_DCP_CFG_CLEAR:
        break;
    default:
        return;
    }
    crdi_dcp_map_release(r, channel, a->number);
}

// ---- what comes --------------------------------------------------------------------------------

static bool is_ip_network(const crdi_dcp_pdu* p, size_t length)
{
    return crdi_dcp_is_network(p->type) &&
           (p->transport == CRD_DCP_UDP || p->transport == CRD_DCP_TCP) &&
           length == CRDI_DCP_NETWORK_LENGTH;
}

static int find_near(const crdi_dcp_relay* r, const crd_dcp_packet* p)
{
    for (int i = 0; i < r->channel_count; i++) {
        if (crd_dcp_address_equal(&r->channels[i].at, &p->at)) { return i; }
    }
    return -1;
}

static int find_far(const crdi_dcp_relay* r, const crd_dcp_packet* p)
{
    for (int i = 0; i < r->channel_count; i++) {
        const crdi_dcp_channel* c = &r->channels[i];
        const bool its = c->to.transport == CRD_DCP_TCP
                             ? crd_dcp_address_equal(&c->to, &p->from)
                             : crd_dcp_address_equal(&c->out, &p->at) && c->to.ip == p->from.ip;
        if (its) { return i; }
    }
    return -1;
}

static void from_master(crdi_dcp_relay* r, int channel, const crd_dcp_packet* p, double now)
{
    crdi_dcp_channel* c = &r->channels[channel];
    crdi_dcp_pdu pdu = {0};
    const crdi_dcp_decoded known =
        r->opt.raw ? CRDI_DCP_UNKNOWN : crdi_dcp_decode(p->bytes, p->length, &pdu);
    const bool request = known != CRDI_DCP_UNKNOWN && crdi_dcp_is_request(pdu.type);
    // To the slave all come from the relay: it cannot tell. It answers these two by itself.
    const bool open = pdu.type == CRDI_DCP_INF_STATE || pdu.type == CRDI_DCP_STC_REGISTER;
    if (request && c->registered && p->from.ip != c->owner.ip && !open) {
        r->counts.strangers++;
        r->path[CRDI_DCP_FAR].counts.nowhere++;
        return;
    }
    c->used = now;
    if (request) { note_request(r, c, &pdu, &p->from); }
    if (!request && !c->registered) { c->owner = p->from; }
    if (p->from.transport == CRD_DCP_TCP) { know_client(c, &p->from); }
    const uint8_t* bytes = p->bytes;
    uint8_t changed[CRDI_DCP_NETWORK_LENGTH];
    if (known == CRDI_DCP_GOOD && is_ip_network(&pdu, p->length) && !r->opt.control_only) {
        memcpy(changed, bytes, sizeof changed);
        crdi_dcp_map_request(r, channel, &pdu, changed);
        bytes = changed;
    }
    const course there = {
        .side = CRDI_DCP_FAR, .channel = channel, .map = -1, .from = c->out, .to = c->to};
    set_out(r, &there, p, bytes, now);
}

static void from_slave(crdi_dcp_relay* r, int channel, const crd_dcp_packet* p, double now)
{
    crdi_dcp_channel* c = &r->channels[channel];
    c->used = now;
    crdi_dcp_pdu pdu;
    crd_dcp_address to = c->owner;
    if (!r->opt.raw && crdi_dcp_decode(p->bytes, p->length, &pdu) != CRDI_DCP_UNKNOWN &&
        crdi_dcp_is_response(pdu.type)) {
        const crdi_dcp_asked* a = find_asked(c, pdu.seq);
        if (a) { to = a->client; }
        note_answer(r, channel, &pdu, a);
    }
    if (to.port == 0) {
        r->path[CRDI_DCP_NEAR].counts.nowhere++;
        return;
    }
    const course back = {
        .side = CRDI_DCP_NEAR, .channel = channel, .map = -1, .from = c->at, .to = to};
    set_out(r, &back, p, p->bytes, now);
}

static void data_comes(crdi_dcp_relay* r, crdi_dcp_map* m, const crd_dcp_packet* p, double now)
{
    crdi_dcp_channel* c = &r->channels[m->channel];
    const crdi_dcp_side to = m->side == CRDI_DCP_NEAR ? CRDI_DCP_FAR : CRDI_DCP_NEAR;
    if (m->closing) {
        r->path[to].counts.nowhere++;
        return;
    }
    c->used = now;
    course onward = {.side = to, .channel = m->channel, .map = (int)(m - r->maps), .to = m->to};
    const crd_dcp_address* own = to == CRDI_DCP_FAR ? &c->out : &c->at;
    if (m->to.transport == CRD_DCP_UDP && own->transport == CRD_DCP_UDP) {
        onward.from = *own;
    } else if (m->to.transport == CRD_DCP_TCP && to == CRDI_DCP_NEAR) {
        onward.from.ip = crdi_dcp_near_ip(r, c); // a master knows its slave by that
    }
    set_out(r, &onward, p, p->bytes, now);
}

// A packet that the near or far net has received.
static void relay_packet(crdi_dcp_relay* r, bool far, const crd_dcp_packet* p, double now)
{
    crdi_dcp_side side = far ? CRDI_DCP_FAR : CRDI_DCP_NEAR;
    if (r->net[0] == r->net[1]) { // then the address tells the side
        const bool near = crdi_dcp_map_find(r, CRDI_DCP_NEAR, &p->at) || find_near(r, p) >= 0;
        side = near ? CRDI_DCP_NEAR : CRDI_DCP_FAR;
    }
    r->number++;
    if (isnan(r->since)) { r->since = p->time; }
    crdi_dcp_path_counts* counts = &r->path[1 - (int)side].counts;
    counts->received++;
    counts->bytes_received += (int64_t)p->length;
    crdi_dcp_map* m = crdi_dcp_map_find(r, side, &p->at);
    const int channel = m ? m->channel : side == CRDI_DCP_NEAR ? find_near(r, p) : find_far(r, p);
    if (channel < 0) {
        counts->nowhere++;
        return;
    }
    if (m) {
        data_comes(r, m, p, now);
    } else if (side == CRDI_DCP_NEAR) {
        from_master(r, channel, p, now);
    } else {
        from_slave(r, channel, p, now);
    }
    const double soon = now + (p->at.transport == CRD_DCP_TCP ? look_soon : look_late);
    if (!(r->look <= soon)) { r->look = soon; }
}

// ---- what leaves -------------------------------------------------------------------------------

static bool send_flight(crdi_dcp_relay* r, const crdi_dcp_flight* x, double now)
{
    crd_dcp_net* net = r->net[x->side];
    crdi_dcp_channel* c = &r->channels[x->channel];
    if (x->to.transport == CRD_DCP_TCP && (x->map >= 0 || x->side == CRDI_DCP_FAR)) {
        double* connect = x->map >= 0 ? &r->maps[x->map].connect : &c->connect;
        if (now >= *connect) {
            *connect = now + retry;
            (void)crdi_dcp_net_connect_from(net, x->from.ip, &x->to); // fine if it is there
        }
        if (x->map < 0) { c->far_open = true; }
    }
    return crdi_dcp_net_send_from(net, &x->from, &x->to, r->buffer, x->length);
}

static void land_flight(crdi_dcp_relay* r, uint32_t f, double now)
{
    const crdi_dcp_flight* x = &r->flights[f];
    crdi_dcp_path_state* path = &r->path[x->side];
    flight_read(r, f, r->buffer);
    path->counts.waiting--;
    path->counts.late = fmax(path->counts.late, now - x->time);
    if (send_flight(r, x, now)) {
        path->counts.sent++;
        path->counts.bytes_sent += x->length;
    } else {
        path->counts.unsent++;
    }
    if (x->to.transport != CRD_DCP_TCP) {
        path->counts.reordered += x->place < path->newest;
        if (x->place > path->newest) { path->newest = x->place; }
    }
    r->channels[x->channel].flying[x->side]--;
    if (x->map >= 0) { crdi_dcp_map_landed(r, &r->maps[x->map]); }
    flight_free(r, f);
}

// A stream that ends on one side ends on the other, behind all that was sent.
static void look_after_stream(crdi_dcp_relay* r, crdi_dcp_channel* c)
{
    crd_dcp_net *near = r->net[CRDI_DCP_NEAR], *far = r->net[CRDI_DCP_FAR];
    int left = 0;
    for (int i = 0; i < c->client_count; i++) {
        if (crdi_dcp_net_connected(near, &c->clients[i])) { c->clients[left++] = c->clients[i]; }
    }
    c->client_count = left;
    const bool there = crdi_dcp_net_connected(far, &c->to);
    if (there) {
        c->far_seen = true;
    } else if (c->far_seen && c->flying[CRDI_DCP_NEAR] == 0) {
        for (int i = 0; i < c->client_count; i++) {
            crd_dcp_net_close(near, &c->clients[i]);
        }
        c->client_count = 0;
    }
    if (c->client_count == 0 && c->flying[CRDI_DCP_FAR] == 0) {
        crd_dcp_net_close(far, &c->to);
        c->far_open = c->far_seen = false;
        c->connect = -INFINITY;
    }
}

static void look_after(crdi_dcp_relay* r, double now)
{
    double next = crdi_dcp_map_any(r) ? now + look_late : INFINITY;
    for (int i = 0; i < r->channel_count; i++) {
        crdi_dcp_channel* c = &r->channels[i];
        if (c->to.transport == CRD_DCP_TCP && (c->far_open || c->client_count > 0)) {
            look_after_stream(r, c);
            if (c->far_open || c->client_count > 0) { next = fmin(next, now + look_soon); }
        }
        if (now - c->used > r->opt.idle) {
            crdi_dcp_map_release(r, i, UINT64_MAX);
            c->registered = false;
        } else if (c->registered) {
            next = fmin(next, now + look_late);
        }
    }
    r->look = next;
}

// What is due leaves.
static void send_due(crdi_dcp_relay* r, double now)
{
    while (r->heap_count > 0 && r->flights[r->heap[0]].time <= now) {
        land_flight(r, heap_pop(r), now);
    }
    if (now >= r->look) { look_after(r, now); }
}

double crdi_dcp_relay_next(const crdi_dcp_relay* r)
{
    return r->heap_count > 0 ? fmin(r->flights[r->heap[0]].time, r->look) : r->look;
}

// Some of one net, some of the other: a flood keeps nobody waiting.
bool crdi_dcp_relay_poll(crdi_dcp_relay* r)
{
    const int nets = r->net[0] == r->net[1] ? 1 : 2;
    bool more = true;
    for (int turn = 0; turn < TURNS && more; turn++) {
        more = false;
        for (int side = 0; side < nets; side++) {
            crd_dcp_packet p;
            int count = 0;
            while (count < AT_ONCE && crd_dcp_net_receive(r->net[side], &p)) {
                relay_packet(r, side == CRDI_DCP_FAR, &p, crd_dcp_net_now(r->net[0]));
                count++;
            }
            more = more || count == AT_ONCE;
        }
        send_due(r, crd_dcp_net_now(r->net[0]));
    }
    return more;
}

crdi_dcp_relay_counts crdi_dcp_relay_get_counts(const crdi_dcp_relay* r)
{
    crdi_dcp_relay_counts c = r->counts;
    c.there = r->path[CRDI_DCP_FAR].counts;
    c.back = r->path[CRDI_DCP_NEAR].counts;
    return c;
}

// ---- create ------------------------------------------------------------------------------------

crdi_dcp_relay_options crdi_dcp_relay_defaults(void)
{
    return (crdi_dcp_relay_options){
        .memory = 16 << 20, .max_channels = 64, .max_maps = 1024, .idle = 3600};
}

static crd_status check_relay_options(crd_context* ctx, const crdi_dcp_relay_options* o)
{
    crd_status st = crdi_dcp_path_check(ctx, "there", &o->there);
    if (st >= 0) { st = crdi_dcp_path_check(ctx, "back", &o->back); }
    if (st < 0) { return st; }
    if (o->memory < 4096 || o->memory > (size_t)1 << 38) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: memory = %zu bytes, expected 4096 to 2^38",
                         o->memory);
    }
    if (o->max_channels < 1 || o->max_channels > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: max_channels = %d, expected 1 to 1000",
                         o->max_channels);
    }
    if (o->max_maps < 1 || o->max_maps > 30000) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: max_maps = %d, expected 1 to 30000",
                         o->max_maps);
    }
    if (!(o->idle > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: idle = %g s, expected > 0", o->idle);
    }
    if (o->port_from > o->port_to) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: ports %u to %u, expected a range", o->port_from,
                         o->port_to);
    }
    return CRD_OK;
}

static crd_status make_memory(crdi_dcp_relay* r)
{
    const uint32_t near = crdi_dcp_net_get_limits(r->net[0]).max_pdu;
    const uint32_t far = crdi_dcp_net_get_limits(r->net[1]).max_pdu;
    size_t room = near > far ? near : far;
    if (room < CRDI_DCP_MOST_UDP) { room = CRDI_DCP_MOST_UDP; }
    const size_t n = r->opt.memory / BLOCK;
    size_t capacity = 0;
    r->block_count = (uint32_t)n;
    r->free = NONE;
    // Grown, not new: pages that are never used are never touched.
    r->blocks = crdi_grow(r->ctx, NULL, &capacity, n * BLOCK, 1);
    capacity = 0;
    r->flights = r->blocks ? crdi_grow(r->ctx, NULL, &capacity, n, sizeof *r->flights) : NULL;
    capacity = 0;
    r->heap = r->flights ? crdi_grow(r->ctx, NULL, &capacity, n, sizeof *r->heap) : NULL;
    r->buffer = r->heap ? crdi_grow(r->ctx, NULL, &r->buffer_room, room, 1) : NULL;
    if (!r->buffer) { return CRD_E_MEMORY; }
    r->channels = crdi_new_array(r->ctx, (size_t)r->opt.max_channels, sizeof *r->channels);
    r->maps = r->channels ? crdi_new_array(r->ctx, (size_t)r->opt.max_maps, sizeof *r->maps) : NULL;
    return r->maps ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_dcp_relay_create(crd_context* ctx, crd_dcp_net* near, crd_dcp_net* far,
                                 const crdi_dcp_relay_options* opt, crdi_dcp_relay** out)
{
    const crdi_dcp_relay_options defaults = crdi_dcp_relay_defaults();
    crd_status st = check_relay_options(ctx, opt ? opt : &defaults);
    if (st < 0) { return st; }
    crdi_dcp_relay* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    r->ctx = ctx;
    r->net[CRDI_DCP_NEAR] = near;
    r->net[CRDI_DCP_FAR] = far;
    r->opt = opt ? *opt : defaults;
    if (r->opt.far_ip == 0) { r->opt.far_ip = CRDI_DCP_LOOPBACK; }
    r->since = NAN;
    r->look = INFINITY;
    crdi_dcp_path_init(&r->path[CRDI_DCP_FAR], &r->opt.there, r->opt.seed);
    crdi_dcp_path_init(&r->path[CRDI_DCP_NEAR], &r->opt.back, ~r->opt.seed);
    CRD_TRY(make_memory(r));
    *out = r;
    return CRD_OK;
fail:
    crdi_dcp_relay_destroy(r);
    return st;
}

void crdi_dcp_relay_destroy(crdi_dcp_relay* r)
{
    if (!r) { return; }
    for (int i = 0; r->maps && i < r->channel_count; i++) {
        for (int k = 0; k < r->map_count; k++) {
            r->maps[k].flying = 0;
        }
        crdi_dcp_map_release(r, i, UINT64_MAX);
    }
    crd_context* ctx = r->ctx;
    crd_free(ctx, r->blocks);
    crd_free(ctx, r->flights);
    crd_free(ctx, r->heap);
    crd_free(ctx, r->buffer);
    crd_free(ctx, r->channels);
    crd_free(ctx, r->maps);
    crd_free(ctx, r);
}

static crd_status check_channel(const crdi_dcp_relay* r, const crd_dcp_address* at,
                                const crd_dcp_address* to)
{
    crd_context* ctx = r->ctx;
    const crdi_dcp_address_text a = crdi_dcp_address_text_of(at), b = crdi_dcp_address_text_of(to);
    const bool known = to->transport == CRD_DCP_UDP || to->transport == CRD_DCP_TCP ||
                       (to->transport == CRD_DCP_CAN && r->opt.raw);
    if (at->transport != to->transport || !known) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "relay: from %s to %s, expected the same transport on both sides, UDP, "
                         "TCP or CAN",
                         a.text, b.text);
    }
    if (to->port == 0 || to->ip == 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: to %s, expected the address of a slave", b.text);
    }
    if (at->ip == 0 && r->opt.near_ip == 0 && !r->opt.control_only) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "relay: %s are all interfaces, expected the address that senders of data "
                         "know",
                         a.text);
    }
    for (int i = 0; i < r->channel_count; i++) {
        const crdi_dcp_channel* c = &r->channels[i];
        if (crd_dcp_address_equal(&c->to, to)) {
            return crdi_fail(ctx, CRD_E_RANGE, "relay: %s is there twice", b.text);
        }
        if (at->port && crd_dcp_address_equal(&c->at, at)) {
            return crdi_fail(ctx, CRD_E_RANGE, "relay: %s leads to %s already", a.text,
                             crdi_dcp_address_text_of(&c->to).text);
        }
    }
    if (r->channel_count == r->opt.max_channels) {
        return crdi_fail(ctx, CRD_E_LIMIT, "relay: more than %d slaves", r->opt.max_channels);
    }
    return CRD_OK;
}

crd_status crdi_dcp_relay_add(crdi_dcp_relay* r, crd_dcp_address* at, const crd_dcp_address* to)
{
    crd_status st = check_channel(r, at, to);
    if (st < 0) { return st; }
    crdi_dcp_channel c = {.at = *at, .to = *to, .used = -INFINITY, .connect = -INFINITY};
    c.last[0] = c.last[1] = -INFINITY;
    st = crd_dcp_net_listen(r->net[CRDI_DCP_NEAR], &c.at);
    if (st < 0) { return st; }
    if (to->transport == CRD_DCP_CAN) { c.out = c.owner = c.at; } // all of a bus have one
    if (to->transport == CRD_DCP_UDP) {
        c.out = (crd_dcp_address){.ip = r->opt.far_ip, .transport = CRD_DCP_UDP};
        st = crd_dcp_net_listen(r->net[CRDI_DCP_FAR], &c.out);
        if (st < 0) {
            crd_dcp_net_close(r->net[CRDI_DCP_NEAR], &c.at);
            return st;
        }
    }
    r->channels[r->channel_count++] = c;
    *at = c.at;
    return CRD_OK;
}
