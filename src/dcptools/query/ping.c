// How good the way to a peer is: round trips, losses, clocks.
#include "dcptools/query/query.h"
#include "shared/base_system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the echo ----------------------------------------------------------------------------------

static const uint8_t magic[7] = {0xFF, 0xFF, 'C', 'R', 'D', 'P', 1}; // from the data_id on
enum {
    AT_SEQ = 1,
    AT_MAGIC = 3,
    AT_KIND = 10,
    AT_SESSION = 12,
    AT_NUMBER = 16,
    AT_LEFT = 20,
    AT_REACHED = 28,
    AT_BACK = 36
};
enum { QUESTION, ECHO };

static int64_t ping_to_ns(double seconds)
{
    // The whole part apart: 1e9 times the time since 1970 has more digits than a double.
    const double whole = floor(seconds);
    return (int64_t)whole * 1000000000 + (int64_t)(1e9 * (seconds - whole));
}

static bool ping_is_ours(const uint8_t* bytes, size_t length, uint8_t kind)
{
    return length >= CRDI_DCP_ECHO_LEAST && bytes[0] == CRDI_DCP_DAT_INPUT_OUTPUT &&
           memcmp(bytes + AT_MAGIC, magic, sizeof magic) == 0 && bytes[AT_KIND] == kind &&
           bytes[AT_KIND + 1] == 0;
}

bool crdi_dcp_echo(uint8_t* bytes, size_t length, double arrived, double now)
{
    if (!ping_is_ours(bytes, length, QUESTION)) { return false; }
    bytes[AT_KIND] = ECHO;
    crdi_store_le(bytes + AT_REACHED, 8, (uint64_t)ping_to_ns(arrived));
    crdi_store_le(bytes + AT_BACK, 8, (uint64_t)ping_to_ns(now));
    return true;
}

// ---- asking ------------------------------------------------------------------------------------

enum { MOST_SIZE = 65507, MOST_COUNT = 10000000 };
// Sequence ids of INF_state: few, so that a slave which is registered with a master on this host
// hardly ever takes one of them for the master's.
enum { SEQ_WINDOW = 1024 };
static const double contact_interval = 0.15; // s between two attempts to find somebody

typedef struct ping {
    const crdi_dcp_ping_options* opt;
    crd_dcp_net* net;
    crdi_dcp_ping_sample* samples; // (opt->count)
    crdi_dcp_ping_report* r;
    uint8_t* bytes;  // (opt->size)
    double* left;    // (opt->count) when each one left, s
    double* offsets; // (opt->count) clock of the echo minus ours by this one alone
    uint32_t session;
    uint16_t seq; // of the first INF_state
    double start;
    int next;    // to be sent
    int highest; // number that was answered, -1
    bool met;    // somebody answered
    double blur; // s that a tenth of the round trips are within of the least
} ping;

crdi_dcp_ping_options crdi_dcp_ping_defaults(void)
{
    return (crdi_dcp_ping_options){
        .id = 1, .count = 1000, .interval = 0.01, .size = 80, .timeout = 1, .contact = 3};
}

static bool ask_echo(ping* p, uint32_t number, double now)
{
    memset(p->bytes, 0, p->opt->size);
    p->bytes[0] = CRDI_DCP_DAT_INPUT_OUTPUT;
    crdi_store_le(p->bytes + AT_SEQ, 2, number);
    memcpy(p->bytes + AT_MAGIC, magic, sizeof magic);
    crdi_store_le(p->bytes + AT_SESSION, 4, p->session);
    crdi_store_le(p->bytes + AT_NUMBER, 4, number);
    crdi_store_le(p->bytes + AT_LEFT, 8, (uint64_t)ping_to_ns(now));
    return crdi_dcp_net_send(p->net, &p->opt->to, p->bytes, p->opt->size);
}

static bool ask_slave(ping* p, int number)
{
    return crdi_dcp_query_send(p->net, &p->opt->to,
                               &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE,
                                               .seq = (uint16_t)(p->seq + number % SEQ_WINDOW),
                                               .peer = p->opt->id});
}

// A slave's answer to the newest question with this sequence id, -1.
static int ping_number_of(const ping* p, uint16_t seq)
{
    const uint16_t ahead = (uint16_t)(seq - p->seq);
    if (ahead >= SEQ_WINDOW || p->next == 0) { return -1; }
    const int newest = p->next - 1;
    const int number = newest - (newest % SEQ_WINDOW - ahead + SEQ_WINDOW) % SEQ_WINDOW;
    return number;
}

static void note_answer(ping* p, int number, double time, double reached, double back)
{
    if (number < 0 || number >= p->next) { return; }
    crdi_dcp_ping_sample* s = &p->samples[number];
    if (!isnan(s->round_trip)) {
        p->r->duplicates++;
        return;
    }
    const double trip = time - p->left[number] - (back - reached);
    if (trip > p->opt->timeout) { return; } // it counts as lost
    s->round_trip = fmax(trip, 0);
    p->offsets[number] = 0.5 * ((reached - p->left[number]) + (back - time));
    if (number < p->highest) { p->r->reordered++; }
    p->highest = number > p->highest ? number : p->highest;
}

// Times of the echo as s on the scale of ours: the difference of two large numbers, in ns.
static double on_our_scale(const ping* p, const uint8_t* at)
{
    return 1e-9 * (double)((int64_t)crdi_load_le(at, 8) - ping_to_ns(p->start)) + p->start;
}

static void take_echo(ping* p, const crd_dcp_packet* packet)
{
    const uint8_t* b = packet->bytes;
    if ((uint32_t)crdi_load_le(b + AT_SESSION, 4) != p->session) { return; }
    if (!p->met) {
        p->met = p->r->echo = true;
        return;
    }
    const uint64_t number = crdi_load_le(b + AT_NUMBER, 4);
    if (!p->r->echo || number >= (uint64_t)p->opt->count) { return; }
    note_answer(p, (int)number, packet->time, on_our_scale(p, b + AT_REACHED),
                on_our_scale(p, b + AT_BACK));
}

static void ping_take_state(ping* p, const crd_dcp_packet* packet)
{
    crdi_dcp_pdu a;
    if (crdi_dcp_decode(packet->bytes, packet->length, &a) != CRDI_DCP_GOOD ||
        (a.type != CRDI_DCP_RSP_STATE_ACK && a.type != CRDI_DCP_RSP_NACK)) {
        return;
    }
    if (!p->met) {
        p->met = true;
        p->r->state = a.type == CRDI_DCP_RSP_STATE_ACK ? a.state : -1;
        // A slave that says where its master is: there is room on the other side.
        if (a.type == CRDI_DCP_RSP_NACK) { p->seq = (uint16_t)(a.expected + 0x8000); }
        return;
    }
    if (!p->r->echo) { note_answer(p, ping_number_of(p, a.seq), packet->time, 0, 0); }
}

static void take_all(ping* p)
{
    crd_dcp_packet packet;
    while (crd_dcp_net_receive(p->net, &packet)) {
        if (!crd_dcp_address_equal(&packet.from, &p->opt->to)) { continue; }
        if (ping_is_ours(packet.bytes, packet.length, ECHO)) {
            take_echo(p, &packet);
        } else {
            ping_take_state(p, &packet);
        }
    }
}

// Asks as a master would, then as an echo understands it, in turns.
static crd_status make_contact(crd_context* ctx, ping* p)
{
    const crdi_dcp_ping_options* o = p->opt;
    char text[32];
    const double until = crd_dcp_net_now(p->net) + o->contact;
    (void)crd_dcp_address_print(&o->to, text, sizeof text);
    if (!crdi_dcp_query_connect(p->net, &o->to, until, o->cancelled, o->user)) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: nobody takes a connection in", text);
    }
    for (int i = 0; crd_dcp_net_now(p->net) < until; i++) {
        const double now = crd_dcp_net_now(p->net);
        if (i % 2 == 0) {
            ask_slave(p, 0);
        } else {
            ask_echo(p, UINT32_MAX, now);
        }
        while (crd_dcp_net_now(p->net) < fmin(now + contact_interval, until)) {
            take_all(p);
            if (p->met) { return CRD_OK; }
            if (!crdi_dcp_query_pause(p->net, now + contact_interval, o->cancelled, o->user)) {
                return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: interrupted", text);
            }
        }
    }
    return crdi_fail(ctx, CRD_E_NOT_FOUND,
                     "%s: neither a slave nor an echo answers; 'cardan dcp link --echo' runs one",
                     text);
}

static void send_due(ping* p)
{
    const crdi_dcp_ping_options* o = p->opt;
    const double now = crd_dcp_net_now(p->net);
    const double due = p->start + p->next * o->interval;
    if (p->next == o->count || now < due) { return; }
    crdi_dcp_ping_sample* s = &p->samples[p->next];
    *s = (crdi_dcp_ping_sample){.sent = p->next * o->interval,
                                .late = now - due,
                                .round_trip = NAN,
                                .there = NAN,
                                .back = NAN};
    p->left[p->next] = now;
    const int number = p->next++;
    if (p->r->echo) {
        ask_echo(p, (uint32_t)number, now);
    } else {
        ask_slave(p, number);
    }
    if (o->progress) { o->progress(o->user, p->next); }
}

static void measure_link(ping* p)
{
    const crdi_dcp_ping_options* o = p->opt;
    p->start = crd_dcp_net_now(p->net) + fmin(o->interval, 0.01);
    p->highest = -1;
    for (;;) {
        take_all(p);
        send_due(p);
        int answered = 0;
        const double last = p->start + (o->count - 1) * o->interval + o->timeout;
        const double until = p->next < o->count ? p->start + p->next * o->interval : last;
        if (p->next == o->count) {
            for (int i = 0; i < p->next; i++) {
                answered += !isnan(p->samples[i].round_trip);
            }
            if (answered == p->next || crd_dcp_net_now(p->net) >= last) { return; }
        }
        if (!crdi_dcp_query_pause(p->net, until, o->cancelled, o->user)) { return; }
    }
}

// ---- what it means -----------------------------------------------------------------------------

static double quantile(const double* sorted, int n, double q)
{
    return sorted[(int)(q * (n - 1))];
}

// The quickest round trip within first .. last has the least unknown in it; -1: none.
static int quickest(const ping* p, int first, int last)
{
    int best = -1;
    for (int i = first; i < last; i++) {
        const double trip = p->samples[i].round_trip;
        if (!isnan(trip) && (best < 0 || trip < p->samples[best].round_trip)) { best = i; }
    }
    return best;
}

// What a round trip has beyond the quickest one may all have happened in one direction; and so may
// what the quickest one has beyond the shortest there could be.
static double doubt(const ping* p, int sample)
{
    return 0.5 * (p->samples[sample].round_trip - p->r->least + p->blur);
}

// How fast the clocks go apart, by the quickest trips of the first and the last third.
static void set_drift(ping* p)
{
    crdi_dcp_ping_report* r = p->r;
    const int n = p->next, early = quickest(p, 0, n / 3), late = quickest(p, n - n / 3, n);
    if (early < 0 || late <= early) { return; }
    const double time = p->left[late] - p->left[early];
    if (time < 1) { return; } // too short for a clock
    r->drift = (p->offsets[late] - p->offsets[early]) / time;
    r->drift_error = (doubt(p, late) + doubt(p, early)) / time;
}

// Offset of the clocks by the quickest trip, and the two directions from it. How the quickest trip
// divides into there and back nobody can know: half of it is the error.
static void set_clocks(ping* p)
{
    crdi_dcp_ping_report* r = p->r;
    const int best = quickest(p, 0, p->next);
    set_drift(p);
    const double drift = fabs(r->drift) > r->drift_error ? r->drift : 0; // NaN: 0
    r->offset = p->offsets[best];
    r->offset_error = 0.5 * p->samples[best].round_trip;
    for (int i = 0; i < p->next; i++) {
        crdi_dcp_ping_sample* s = &p->samples[i];
        if (isnan(s->round_trip)) { continue; }
        const double here = r->offset + drift * (p->left[i] - p->left[best]);
        // offset_i = offset + (there - back) / 2, trip = there + back
        s->there = fmax(0.5 * s->round_trip + (p->offsets[i] - here), 0);
        s->back = fmax(0.5 * s->round_trip - (p->offsets[i] - here), 0);
    }
}

static void set_ways(ping* p, double* sorted, int n)
{
    crdi_dcp_ping_report* r = p->r;
    r->way_least = 0.5 * r->least;
    r->way_median = 0.5 * r->median;
    r->way_p999 = 0.5 * r->p999;
    for (int direction = 0; r->echo && direction < 2; direction++) {
        int k = 0;
        for (int i = 0; i < p->next; i++) {
            const crdi_dcp_ping_sample* s = &p->samples[i];
            if (!isnan(s->round_trip)) { sorted[k++] = direction ? s->back : s->there; }
        }
        qsort(sorted, (size_t)n, sizeof *sorted, crdi_by_value);
        const double tail = quantile(sorted, n, 0.999);
        if (direction == 1 && tail <= r->way_p999) { continue; }
        r->way_least = sorted[0];
        r->way_median = quantile(sorted, n, 0.5);
        r->way_p999 = tail;
    }
}

static crd_status judge_samples(crd_context* ctx, ping* p, double* sorted)
{
    crdi_dcp_ping_report* r = p->r;
    double sum = 0, squares = 0, steps = 0, before = NAN;
    int n = 0, pairs = 0;
    r->sent = p->next;
    r->late = 0;
    for (int i = 0; i < p->next; i++) {
        const double trip = p->samples[i].round_trip;
        r->late = fmax(r->late, p->samples[i].late);
        if (isnan(trip)) { continue; }
        sorted[n++] = trip;
        sum += trip;
        if (!isnan(before)) {
            steps += fabs(trip - before);
            pairs++;
        }
        before = trip;
    }
    r->answered = n;
    r->lost = r->sent - n;
    if (n == 0) { return crdi_fail(ctx, CRD_E_NOT_FOUND, "the link loses every packet"); }
    r->mean = sum / n;
    for (int i = 0; i < n; i++) {
        squares += (sorted[i] - r->mean) * (sorted[i] - r->mean);
    }
    r->deviation = sqrt(squares / n);
    r->jitter = pairs ? steps / pairs : 0;
    qsort(sorted, (size_t)n, sizeof *sorted, crdi_by_value);
    r->least = sorted[0];
    r->median = quantile(sorted, n, 0.5);
    r->p90 = quantile(sorted, n, 0.9);
    r->p99 = quantile(sorted, n, 0.99);
    r->p999 = quantile(sorted, n, 0.999);
    r->most = sorted[n - 1];
    p->blur = quantile(sorted, n, 0.1) - r->least;
    if (r->echo) { set_clocks(p); }
    set_ways(p, sorted, n);
    return CRD_OK;
}

static crd_status check_ping_options(crd_context* ctx, const crdi_dcp_ping_options* o)
{
    if (o->count < 1 || o->count > MOST_COUNT || !(o->interval > 0) || !(o->timeout > 0) ||
        !(o->interval <= 3600) || !(o->timeout <= 3600)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%d packets, one each %g s, lost after %g s: expected 1 to %d, and times "
                         "up to an hour",
                         o->count, o->interval, o->timeout, MOST_COUNT);
    }
    if (o->size < CRDI_DCP_ECHO_LEAST || o->size > MOST_SIZE) {
        return crdi_fail(ctx, CRD_E_RANGE, "packets of %u bytes, expected %d to %d",
                         (unsigned)o->size, CRDI_DCP_ECHO_LEAST, MOST_SIZE);
    }
    return CRD_OK;
}

crd_status crdi_dcp_ping(crd_context* ctx, crd_dcp_net* net, const crdi_dcp_ping_options* opt,
                         crdi_dcp_ping_sample* samples, crdi_dcp_ping_report* out)
{
    crd_status st = check_ping_options(ctx, opt);
    if (st < 0) { return st; }
    *out = (crdi_dcp_ping_report){
        .state = -1, .offset = NAN, .offset_error = NAN, .drift = NAN, .drift_error = NAN};
    const size_t count = (size_t)opt->count;
    ping p = {.opt = opt,
              .net = net,
              .samples = samples,
              .r = out,
              .session = (uint32_t)ping_to_ns(crd_dcp_net_now(net)),
              .seq = CRDI_DCP_STRANGER_SEQ};
    p.bytes = crdi_new(ctx, opt->size);
    p.left = crdi_new_array(ctx, count, sizeof *p.left);
    p.offsets = crdi_new_array(ctx, count, sizeof *p.offsets);
    double* sorted = crdi_new_array(ctx, count, sizeof *sorted);
    if (!p.bytes || !p.left || !p.offsets || !sorted) { st = CRD_E_MEMORY; }
    if (st >= 0) { st = make_contact(ctx, &p); }
    if (st >= 0) {
        measure_link(&p);
        st = judge_samples(ctx, &p, sorted);
    }
    crd_free(ctx, p.bytes);
    crd_free(ctx, p.left);
    crd_free(ctx, p.offsets);
    crd_free(ctx, sorted);
    return st;
}

// ---- advice ------------------------------------------------------------------------------------

static int latency_of(double delay, double step)
{
    return (int)fmin(ceil(delay / step - 1e-6), 1e6);
}

crdi_dcp_ping_advice crdi_dcp_ping_advise(const crdi_dcp_ping_report* r, double step)
{
    static const double grid[] = {1, 2, 5};
    const double need = fmax(r->way_p999 - r->way_least, r->way_p999 / 8);
    crdi_dcp_ping_advice a = {.step = step};
    if (isnan(step)) {
        double decade = 1e-4; // shorter macro steps than that nobody has on a network
        a.step = decade;
        for (int i = 0; a.step < need && decade < 1e3; i++) {
            if (i % 3 == 2) { decade *= 10; }
            a.step = decade * grid[(i + 1) % 3];
        }
    }
    a.k = latency_of(r->way_median, a.step);
    a.k_most = latency_of(r->way_p999, a.step) + (r->lost > 0 ? 2 : 0);
    return a;
}
