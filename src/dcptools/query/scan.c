// Which slaves are there, and who they are.
#include "dcptools/query/query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- addresses ---------------------------------------------------------------------------------

static crd_status fail_address(crd_context* ctx, const char* text, const char* what)
{
    return crdi_fail(ctx, CRD_E_FORMAT,
                     "address \"%s\": %s, expected HOST, HOST:PORT, udp://HOST:PORT or a range as "
                     "in tcp://192.168.2.0/28:8080-8090",
                     crdi_clip(text).text, what);
}

static bool read_whole(const char* text, size_t length, uint64_t most, uint32_t* out)
{
    uint64_t n = 0;
    if (length == 0 || text[0] < '0' || text[0] > '9' || !crdi_parse_uint64(text, length, &n) ||
        n > most) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

typedef struct range {
    bool udp, tcp;
    uint32_t ip, ip_count;
    uint32_t port, port_last;
} range;

static crd_status parse_ports(crd_context* ctx, const char* text, const char* ports, range* r)
{
    const size_t dash = strcspn(ports, "-");
    const char* last = ports[dash] ? ports + dash + 1 : ports;
    const size_t last_length = ports[dash] ? strlen(last) : dash;
    if (!read_whole(ports, dash, 65535, &r->port) ||
        !read_whole(last, last_length, 65535, &r->port_last) || r->port == 0) {
        return fail_address(ctx, text, "a port is not a number from 1 to 65535");
    }
    if (r->port_last < r->port) {
        return fail_address(ctx, text, "the last port is below the first");
    }
    return CRD_OK;
}

static crd_status parse_host(crd_context* ctx, const char* text, const char* host, size_t length,
                             range* r)
{
    char address[280];
    const char* slash = memchr(host, '/', length);
    const size_t name = slash ? (size_t)(slash - host) : length;
    uint32_t bits = 32;
    if (slash && !read_whole(slash + 1, length - name - 1, 32, &bits)) {
        return fail_address(ctx, text, "behind the / is no number from 0 to 32");
    }
    if (name == 0 || name > 253) { return fail_address(ctx, text, "no host"); }
    snprintf(address, sizeof address, "udp://%.*s:0", (int)name, host);
    crd_dcp_address a;
    const crd_status st = crd_dcp_address_parse(ctx, address, &a);
    if (st < 0) { return st; }
    if (bits < 20) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "address \"%s\": a range of more than %d addresses, expected /20 to /32",
                         crdi_clip(text).text, CRDI_DCP_SCAN_MOST);
    }
    r->ip_count = 1u << (32 - bits);
    r->ip = a.ip & ~(r->ip_count - 1);
    if (r->ip_count > 2) { // those of the network and of all of it are nobody's
        r->ip++;
        r->ip_count -= 2;
    }
    return CRD_OK;
}

static crd_status parse_range(crd_context* ctx, const char* text, range* r)
{
    *r = (range){
        .udp = true, .tcp = true, .port = CRDI_DCP_SCAN_PORT, .port_last = CRDI_DCP_SCAN_PORT};
    const char* host = text;
    if (strncmp(text, "udp://", 6) == 0 || strncmp(text, "tcp://", 6) == 0) {
        r->udp = text[0] == 'u';
        r->tcp = !r->udp;
        host += 6;
    } else if (strstr(text, "://")) {
        return fail_address(ctx, text, "unknown transport");
    }
    const char* colon = strchr(host, ':');
    const size_t length = colon ? (size_t)(colon - host) : strlen(host);
    crd_status st = parse_host(ctx, text, host, length, r);
    if (st >= 0 && colon) { st = parse_ports(ctx, text, colon + 1, r); }
    return st;
}

crd_status crdi_dcp_scan_expand(crd_context* ctx, const char* text, crd_dcp_address* out, int room,
                                int* count)
{
    range r;
    const crd_status st = parse_range(ctx, text, &r);
    if (st < 0) { return st; }
    const uint64_t all =
        (uint64_t)r.ip_count * (r.port_last - r.port + 1) * (unsigned)(r.udp + r.tcp);
    if (all > CRDI_DCP_SCAN_MOST || (out && all > (uint64_t)room)) {
        return crdi_fail(ctx, CRD_E_RANGE, "address \"%s\": %llu addresses, expected %d at most",
                         crdi_clip(text).text, (unsigned long long)all,
                         out ? room : CRDI_DCP_SCAN_MOST);
    }
    *count = (int)all;
    for (uint32_t i = 0; out && i < r.ip_count; i++) {
        for (uint32_t port = r.port; port <= r.port_last; port++) {
            const crd_dcp_address a = {.ip = r.ip + i, .port = (uint16_t)port};
            if (r.udp) { *out++ = a; }
            if (r.tcp) {
                *out = a;
                out++->transport = CRD_DCP_TCP;
            }
        }
    }
    return CRD_OK;
}

// ---- asking ------------------------------------------------------------------------------------

enum { AT_ONCE = 128, FEW = 64 }; // addresses: asked at the same time; whose ids are all tried
enum { SEQ_FIRST = CRDI_DCP_STRANGER_SEQ + 0x5D, SEQ_IDS, SEQ_REGISTER };

typedef struct asked {  // beside each sighting
    double first, last; // when the questions for ids 1 to `ids` were sent
    int ids;
    const crd_dcp_description* trying; // waits for the answer to a registration
    uint16_t seq;                      // of that
} asked;

typedef struct scan {
    crd_dcp_net* net;
    const crdi_dcp_scan_options* opt;
    crdi_dcp_sighting* of; // (count)
    int count;
    asked asked[AT_ONCE];
    int waiting;
    bool cancelled;
} scan;

crdi_dcp_scan_options crdi_dcp_scan_defaults(void)
{
    return (crdi_dcp_scan_options){.timeout = 0.5};
}

static crdi_dcp_sighting* find_sighting(scan* s, const crd_dcp_address* from)
{
    for (int i = 0; i < s->count; i++) {
        if (crd_dcp_address_equal(&s->of[i].address, from)) { return &s->of[i]; }
    }
    return NULL;
}

// When the question for this id was sent: they go out one behind the other, some hundred before
// the first answer is looked at.
static double sent_at(const asked* a, uint8_t id)
{
    const double part = a->ids > 1 ? (double)(id - 1) / (a->ids - 1) : 1;
    return a->first + fmin(fmax(part, 0), 1) * (a->last - a->first);
}

static void scan_take_state(scan* s, crdi_dcp_sighting* g, const crdi_dcp_pdu* p, double time)
{
    if (g->answered || (p->seq != SEQ_FIRST && p->seq != SEQ_IDS)) { return; }
    g->answered = true;
    g->id = p->peer;
    g->state = p->type == CRDI_DCP_RSP_STATE_ACK ? p->state : -1;
    g->error = p->error;
    g->round_trip = fmax(time - sent_at(&s->asked[g - s->of], p->peer), 0);
    s->waiting--;
}

// The right uuid is refused for the mode; a wrong one before that is looked at.
static void take_registration(scan* s, crdi_dcp_sighting* g, const crdi_dcp_pdu* p)
{
    asked* a = &s->asked[g - s->of];
    if (!a->trying || p->seq != a->seq) { return; }
    const bool fits = p->type == CRDI_DCP_RSP_ACK || (p->error >= CRD_DCP_E_INVALID_MAJOR_VERSION &&
                                                      p->error <= CRD_DCP_E_INVALID_OP_MODE);
    if (p->type == CRDI_DCP_RSP_ACK) {
        g->registered = true;
        crdi_dcp_query_send(s->net, &g->address,
                            &(crdi_dcp_pdu){.type = CRDI_DCP_STC_DEREGISTER,
                                            .seq = (uint16_t)(a->seq + 1),
                                            .peer = 1,
                                            .state = CRD_DCP_CONFIGURATION});
    }
    g->tried++;
    if (fits) { g->match = a->trying; }
    a->trying = NULL;
    s->waiting--;
}

static void take_packet(scan* s, const crd_dcp_packet* packet)
{
    crdi_dcp_pdu p;
    crdi_dcp_sighting* g = find_sighting(s, &packet->from);
    if (!g || crdi_dcp_decode(packet->bytes, packet->length, &p) != CRDI_DCP_GOOD) { return; }
    if (p.type == CRDI_DCP_RSP_STATE_ACK || p.type == CRDI_DCP_RSP_NACK) {
        scan_take_state(s, g, &p, packet->time);
    }
    if (p.type == CRDI_DCP_RSP_ACK || p.type == CRDI_DCP_RSP_NACK) { take_registration(s, g, &p); }
}

// Until all have answered, or for as long as the options say.
static void wait_for_answers(scan* s)
{
    const double until = crd_dcp_net_now(s->net) + s->opt->timeout;
    while (!s->cancelled) {
        crd_dcp_packet packet;
        while (crd_dcp_net_receive(s->net, &packet)) {
            take_packet(s, &packet);
        }
        for (int i = 0; i < s->count; i++) {
            crdi_dcp_sighting* g = &s->of[i];
            if (g->address.transport == CRD_DCP_TCP && !g->connected) {
                g->connected = crdi_dcp_net_connected(s->net, &g->address);
            }
        }
        if (s->waiting == 0 || crd_dcp_net_now(s->net) >= until) { return; }
        s->cancelled = !crdi_dcp_query_pause(s->net, until, s->opt->cancelled, s->opt->user);
    }
}

static void ask_state(scan* s, int i, uint8_t id, uint16_t seq)
{
    asked* a = &s->asked[i];
    a->last = crd_dcp_net_now(s->net);
    if (id == 1) { a->first = a->last; }
    a->ids = id;
    crdi_dcp_query_send(s->net, &s->of[i].address,
                        &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE, .seq = seq, .peer = id});
}

static void ask_first(scan* s)
{
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_sighting* g = &s->of[i];
        *g = (crdi_dcp_sighting){
            .address = g->address, .description = g->description, .state = -1, .round_trip = NAN};
        s->asked[i] = (asked){0};
        if (g->address.transport == CRD_DCP_TCP) {
            (void)crdi_dcp_net_connect(s->net, &g->address);
        }
        ask_state(s, i, 1, SEQ_FIRST);
    }
    s->waiting = s->count;
    wait_for_answers(s);
}

// Those who are silent may be registered under another id, or the datagram was lost.
static void ask_again(scan* s, int most)
{
    s->waiting = 0;
    for (int i = 0; i < s->count; i++) {
        const crdi_dcp_sighting* g = &s->of[i];
        if (g->answered || (g->address.transport == CRD_DCP_TCP && !g->connected)) { continue; }
        s->waiting++;
        for (int id = 1; id <= most; id++) {
            ask_state(s, i, (uint8_t)id, SEQ_IDS);
        }
    }
    if (s->waiting > 0) { wait_for_answers(s); }
}

static const crd_dcp_description* candidate(const scan* s, const crdi_dcp_sighting* g, int k)
{
    if (g->description) { return k == 0 ? g->description : NULL; }
    return k < s->opt->description_count ? s->opt->descriptions[k] : NULL;
}

// The k-th description that each of them could have; false: there are no more.
static bool try_descriptions(scan* s, int k)
{
    bool any = false;
    s->waiting = 0;
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_sighting* g = &s->of[i];
        const crd_dcp_description* d = candidate(s, g, k);
        if (!d || !g->answered || g->state != CRD_DCP_ALIVE || g->match) { continue; }
        any = true;
        crdi_dcp_pdu p = {.type = CRDI_DCP_STC_REGISTER,
                          .seq = (uint16_t)(SEQ_REGISTER + 2 * k),
                          .peer = 1,
                          .op_mode = 0xFF,
                          .major = d->major,
                          .minor = d->minor};
        memcpy(p.uuid, d->uuid, sizeof p.uuid);
        s->asked[i].trying = d;
        s->asked[i].seq = p.seq;
        s->waiting++;
        crdi_dcp_query_send(s->net, &g->address, &p);
    }
    if (any) { wait_for_answers(s); }
    return any;
}

crd_status crdi_dcp_scan(crd_context* ctx, crd_dcp_net* net, const crdi_dcp_scan_options* opt,
                         crdi_dcp_sighting* sightings, int count)
{
    if (!(opt->timeout > 0) || opt->most_ids < 0 || opt->most_ids > 255) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "scan: a timeout of %g s and ids up to %d, expected > 0 and 1 to 255",
                         opt->timeout, opt->most_ids);
    }
    const int most = opt->most_ids ? opt->most_ids : count > FEW ? 8 : 255;
    scan s = {.net = net, .opt = opt};
    for (int begin = 0; begin < count && !s.cancelled; begin += AT_ONCE) {
        s.of = sightings + begin;
        s.count = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        ask_first(&s);
        if (!s.cancelled) { ask_again(&s, most); }
        for (int k = 0; !s.cancelled && try_descriptions(&s, k); k++) {}
        for (int i = 0; i < s.count; i++) {
            if (s.of[i].address.transport == CRD_DCP_TCP) {
                crd_dcp_net_close(net, &s.of[i].address);
            }
        }
    }
    return CRD_OK;
}
