// Looking for slaves and measuring links, on the virtual clock.
#include "dcp/rig.h"

#include "shared/dcptools_query.h"
#include "testnet/testnet.h"

enum { LOOKER = 0x0A000001, MOST_SLAVES = 6 };

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net* net; // the looker's
    crd_dcp_net* nets[MOST_SLAVES];
    rig* rigs[MOST_SLAVES]; // NULL: `talk` answers there
    int count;
    void (*talk)(struct place* p, crd_dcp_net* n, const crd_dcp_packet* got);
    double skew, drift; // of the echo's clock
    int deregistered;
    int cancel_after; // calls, 0: never
} place;

// What is not a slave of ours answers whenever somebody waits.
static bool pump(void* user)
{
    place* p = user;
    for (int i = 0; i < p->count; i++) {
        crd_dcp_packet got;
        while (!p->rigs[i] && crd_dcp_net_receive(p->nets[i], &got)) {
            p->talk(p, p->nets[i], &got);
        }
    }
    return p->cancel_after > 0 && --p->cancel_after == 0;
}

static void open_place(place* p, const testnet_faults* faults)
{
    *p = (place){0};
    p->ctx = check_context(&p->allocator);
    check_ok(testnet_create(p->ctx, faults, &p->t));
    check_ok(testnet_join(p->t, LOOKER, &p->net));
}

static crd_dcp_address address(int i, uint8_t transport)
{
    return (crd_dcp_address){LOOKER + 1 + (uint32_t)i, 8080, transport};
}

static int add_net(place* p, uint8_t transport)
{
    const int i = p->count++;
    crd_dcp_address at = address(i, transport);
    check_ok(testnet_join(p->t, at.ip, &p->nets[i]));
    check_ok(crd_dcp_net_listen(p->nets[i], &at));
    return i;
}

static int add_slave(place* p, const crd_dcp_description* d, uint8_t transport)
{
    const int i = add_net(p, transport);
    rig* r = p->rigs[i] = rig_create(d, NULL);
    crd_dcp_slave_destroy(r->slave);
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(p->nets[i]);
    check_ok(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, NULL, &r->slave));
    testnet_attach(p->nets[i], r->slave);
    return i;
}

// Somebody has registered it already.
static void occupy(place* p, int i, uint8_t id)
{
    uint8_t bytes[64];
    crdi_dcp_pdu q = {
        .type = CRDI_DCP_STC_REGISTER, .seq = 40, .peer = id, .op_mode = CRD_DCP_NRT, .major = 1};
    memcpy(q.uuid, p->rigs[i]->d.uuid, sizeof q.uuid);
    const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
    const crd_dcp_address master = {0x0A0000FE, 8081, CRD_DCP_UDP}, at = address(i, CRD_DCP_UDP);
    crd_dcp_slave_receive(p->rigs[i]->slave, &master, &at, bytes, n, testnet_now(p->t));
    check_int(crd_dcp_slave_state(p->rigs[i]->slave), CRD_DCP_CONFIGURATION);
}

static void close_place(place* p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->rigs[i]) {
            testnet_attach(p->nets[i], NULL);
            rig_destroy(p->rigs[i]);
        }
        crd_dcp_net_destroy(p->nets[i]);
    }
    crd_dcp_net_destroy(p->net);
    testnet_destroy(p->t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

static void answer(place* p, crd_dcp_net* n, const crd_dcp_packet* got, crdi_dcp_pdu a)
{
    uint8_t bytes[64];
    (void)p;
    crdi_dcp_net_send(n, &got->from, bytes, crdi_dcp_encode(&a, bytes, sizeof bytes));
}

// ---- addresses ---------------------------------------------------------------------------------

static void ranges_become_single_addresses(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    static crd_dcp_address out[CRDI_DCP_SCAN_MOST];
    static const struct {
        const char* text;
        int count;
        const char *first, *last;
    } good[] = {
        {"udp://10.0.0.7:8080", 1, "udp://10.0.0.7:8080", "udp://10.0.0.7:8080"},
        {"10.0.0.7", 2, "udp://10.0.0.7:8080", "tcp://10.0.0.7:8080"},
        {"localhost:9000", 2, "udp://127.0.0.1:9000", "tcp://127.0.0.1:9000"},
        {"tcp://10.0.0.7:1-3", 3, "tcp://10.0.0.7:1", "tcp://10.0.0.7:3"},
        {"udp://192.168.2.77/28:8080-8081", 28, "udp://192.168.2.65:8080",
         "udp://192.168.2.78:8081"},
        {"192.168.2.6/31", 4, "udp://192.168.2.6:8080", "tcp://192.168.2.7:8080"},
        {"udp://192.168.2.6/32:5", 1, "udp://192.168.2.6:5", "udp://192.168.2.6:5"},
        {"udp://10.1.0.0/20", 4094, "udp://10.1.0.1:8080", "udp://10.1.15.254:8080"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int count = 0, again = 0;
        char text[32];
        check_ok(crdi_dcp_scan_expand(ctx, good[i].text, NULL, 0, &count));
        check_int(count, good[i].count);
        check_ok(crdi_dcp_scan_expand(ctx, good[i].text, out, CRDI_DCP_SCAN_MOST, &again));
        check_int(again, count);
        crd_dcp_address_print(&out[0], text, sizeof text);
        check_text(text, good[i].first);
        crd_dcp_address_print(&out[count - 1], text, sizeof text);
        check_text(text, good[i].last);
    }
    static const struct {
        const char* text;
        crd_status st;
        const char* says;
    } bad[] = {
        {"ftp://10.0.0.7", CRD_E_FORMAT, "unknown transport"},
        {"10.0.0.7:0", CRD_E_FORMAT, "1 to 65535"},
        {"10.0.0.7:70000", CRD_E_FORMAT, "1 to 65535"},
        {"10.0.0.7:8080-", CRD_E_FORMAT, "1 to 65535"},
        {"10.0.0.7:9-8", CRD_E_FORMAT, "below the first"},
        {"10.0.0.7/33", CRD_E_FORMAT, "0 to 32"},
        {"10.0.0.7/", CRD_E_FORMAT, "0 to 32"},
        {"10.0.0/24", CRD_E_FORMAT, "four numbers"},
        {"", CRD_E_FORMAT, "no host"},
        {":8080", CRD_E_FORMAT, "no host"},
        {"10.0.0.0/8", CRD_E_RANGE, "/20"},
        {"10.0.0.0/24:8000-8100", CRD_E_RANGE, "4096 at most"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int count = 0;
        check_status(crdi_dcp_scan_expand(ctx, bad[i].text, NULL, 0, &count), bad[i].st);
        check_contains(crd_error_text(ctx), bad[i].says);
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// ---- scan --------------------------------------------------------------------------------------

static crdi_dcp_scan_options look(place* p)
{
    crdi_dcp_scan_options o = crdi_dcp_scan_defaults();
    o.cancelled = pump;
    o.user = p;
    return o;
}

static void a_scan_finds_slaves_their_states_and_descriptions_and_disturbs_nobody(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 1, .start = 1000});
    const crd_dcp_description first = rig_description();
    crd_dcp_description second = first;
    second.name = "Another";
    second.uuid[3] ^= 1;
    add_slave(&p, &first, CRD_DCP_UDP);
    add_slave(&p, &second, CRD_DCP_UDP);
    add_slave(&p, &first, CRD_DCP_TCP);
    occupy(&p, add_slave(&p, &first, CRD_DCP_UDP), 1);
    occupy(&p, add_slave(&p, &first, CRD_DCP_UDP), 213);
    crdi_dcp_sighting s[8] = {
        {.address = address(0, CRD_DCP_UDP)}, {.address = address(1, CRD_DCP_UDP)},
        {.address = address(2, CRD_DCP_TCP)}, {.address = address(3, CRD_DCP_UDP)},
        {.address = address(4, CRD_DCP_UDP)}, {.address = address(5, CRD_DCP_UDP)},
        {.address = address(5, CRD_DCP_TCP)}, {.address = address(1, CRD_DCP_TCP)}};
    const crd_dcp_description* both[] = {&first, &second};
    crdi_dcp_scan_options o = look(&p);
    o.descriptions = both;
    o.description_count = 2;
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, s, 8));
    for (int i = 0; i < 8; i++) {
        check_int(s[i].answered, i < 5);
        if (i < 5) { check_int(s[i].state, i < 3 ? CRD_DCP_ALIVE : CRD_DCP_CONFIGURATION); }
    }
    check(s[0].match == &first && s[1].match == &second && s[2].match == &first);
    check(!s[3].match && s[3].tried == 0);
    check_int(s[3].id, 1);
    check_int(s[4].id, 213);
    check_near(s[0].round_trip, 0.004, 1e-9);
    check(s[2].connected && !s[6].connected);
    // nobody has noticed: no state, no sequence id, no heartbeat
    for (int i = 0; i < 5; i++) {
        check_int(crd_dcp_slave_state(p.rigs[i]->slave), s[i].state);
        check_int(p.rigs[i]->entered_count, 0);
    }
    check(crd_dcp_net_get_counts(p.net).connections == 0);
    close_place(&p);
}

static void a_description_that_is_expected_is_the_only_one_tried(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 1, .start = 1000});
    const crd_dcp_description right = rig_description();
    crd_dcp_description wrong = right;
    wrong.uuid[0] ^= 1;
    add_slave(&p, &right, CRD_DCP_UDP);
    crdi_dcp_sighting s = {.address = address(0, CRD_DCP_UDP), .description = &wrong};
    const crd_dcp_description* other[] = {&right};
    crdi_dcp_scan_options o = look(&p);
    o.descriptions = other;
    o.description_count = 1;
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, &s, 1));
    check(s.answered && !s.match && s.tried == 1);
    s = (crdi_dcp_sighting){.address = address(0, CRD_DCP_UDP), .description = &right};
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, &s, 1));
    check(s.match == &right);
    close_place(&p);
}

// Tells its state to its master only, as the reference implementation does.
static void guarded(place* p, crd_dcp_net* n, const crd_dcp_packet* got)
{
    crdi_dcp_pdu q;
    if (crdi_dcp_decode(got->bytes, got->length, &q) != CRDI_DCP_GOOD || q.peer != 3) { return; }
    answer(p, n, got,
           (crdi_dcp_pdu){.type = CRDI_DCP_RSP_NACK,
                          .seq = q.seq,
                          .peer = q.peer,
                          .expected = 7,
                          .error = CRD_DCP_E_INVALID_SEQUENCE_ID});
}

static void a_slave_that_answers_its_master_only_is_seen(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 1, .start = 1000});
    p.talk = guarded;
    crdi_dcp_sighting s = {.address = address(add_net(&p, CRD_DCP_UDP), CRD_DCP_UDP)};
    const crdi_dcp_scan_options o = look(&p);
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, &s, 1));
    check(s.answered);
    check_int(s.state, -1);
    check_int(s.error, CRD_DCP_E_INVALID_SEQUENCE_ID);
    check_int(s.id, 3);
    close_place(&p);
}

// Registers whoever comes.
static void careless(place* p, crd_dcp_net* n, const crd_dcp_packet* got)
{
    crdi_dcp_pdu q;
    if (crdi_dcp_decode(got->bytes, got->length, &q) != CRDI_DCP_GOOD) { return; }
    p->deregistered += q.type == CRDI_DCP_STC_DEREGISTER;
    const uint8_t type = q.type == CRDI_DCP_INF_STATE ? CRDI_DCP_RSP_STATE_ACK : CRDI_DCP_RSP_ACK;
    answer(p, n, got, (crdi_dcp_pdu){.type = type, .seq = q.seq, .peer = q.peer});
}

static void a_slave_that_lets_itself_be_registered_is_deregistered_again(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 1, .start = 1000});
    p.talk = careless;
    const crd_dcp_description d = rig_description();
    crdi_dcp_sighting s = {.address = address(add_net(&p, CRD_DCP_UDP), CRD_DCP_UDP),
                           .description = &d};
    const crdi_dcp_scan_options o = look(&p);
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, &s, 1));
    check(s.registered && s.match == &d);
    testnet_advance(p.t, testnet_now(p.t) + 1);
    pump(&p);
    check_int(p.deregistered, 1);
    close_place(&p);
}

static void a_scan_asks_twice_over_a_bad_network_and_ends_when_it_is_told(void** state)
{
    static place p;
    open_place(&p, &(testnet_faults){.delay = 0.002, .loss = 0.4, .seed = 1, .start = 1000});
    add_slave(&p, NULL, CRD_DCP_UDP);
    crdi_dcp_sighting s[300];
    for (int i = 0; i < 300; i++) {
        s[i] = (crdi_dcp_sighting){.address = address(0, CRD_DCP_UDP)};
        s[i].address.port = (uint16_t)(8080 + (i + 150) % 300); // the slave is the 151st
    }
    crdi_dcp_scan_options o = look(&p);
    o.most_ids = 20;
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, s, 300));
    int answered = 0;
    for (int i = 0; i < 300; i++) {
        answered += s[i].answered;
    }
    check_int(answered, 1);
    check(s[150].answered);
    p.cancel_after = 3;
    const double begin = testnet_now(p.t);
    check_ok(crdi_dcp_scan(p.ctx, p.net, &o, s, 300));
    check(testnet_now(p.t) < begin + 0.1);
    o.timeout = 0;
    check_status(crdi_dcp_scan(p.ctx, p.net, &o, s, 300), CRD_E_RANGE);
    close_place(&p);
}

// ---- the link ----------------------------------------------------------------------------------

static void echo(place* p, crd_dcp_net* n, const crd_dcp_packet* got)
{
    uint8_t bytes[2048];
    check(got->length <= sizeof bytes);
    if (got->length) { memcpy(bytes, got->bytes, got->length); }
    const double shift = p->skew + p->drift * (got->time - 1000);
    if (crdi_dcp_echo(bytes, got->length, got->time + shift, got->time + shift + 0.003)) {
        crdi_dcp_net_send(n, &got->from, bytes, got->length);
    }
}

static crdi_dcp_ping_options to_echo(place* p, int count)
{
    crdi_dcp_ping_options o = crdi_dcp_ping_defaults();
    o.to = address(0, CRD_DCP_UDP);
    o.count = count;
    o.cancelled = pump;
    o.user = p;
    return o;
}

static void a_ping_counts_what_the_network_does_and_finds_the_clock_of_the_echo(void** state)
{
    enum { COUNT = 2000 };
    static place p;
    static crdi_dcp_ping_sample s[COUNT];
    open_place(&p, &(testnet_faults){.delay = 0.005, .seed = 7, .start = 1000});
    p.talk = echo;
    p.skew = -37.5;
    p.drift = 20e-6;
    add_net(&p, CRD_DCP_UDP);
    crdi_dcp_ping_options o = to_echo(&p, COUNT);
    crdi_dcp_ping_report r;
    check_ok(testnet_set(
        p.t, &(testnet_faults){.delay = 0.005, .jitter = 0.03, .loss = 0.05, .duplicate = 0.05}));
    check_ok(crdi_dcp_ping(p.ctx, p.net, &o, s, &r));
    const testnet_counts c = testnet_get_counts(p.t);
    check(r.echo);
    check_int(r.sent, COUNT);
    check_int(r.answered + r.lost, COUNT);
    check(r.lost > 0.06 * COUNT && r.lost < 0.14 * COUNT); // there and back
    check(r.duplicates > 100 && r.duplicates <= c.duplicated);
    check(r.reordered > 100);
    // The echo sends at the next wake-up; what it says that it took is not in the round trip.
    check(r.least > 0.007 && r.median > 0.02 && r.most < 0.09);
    check(r.least <= r.median && r.median <= r.p90 && r.p90 <= r.p99 && r.p99 <= r.p999 &&
          r.p999 <= r.most);
    check(r.deviation > 0.005 && r.jitter > 0.005);
    check(fabs(r.offset - p.skew) <= r.offset_error + 1e-3);
    check(r.drift_error < 2e-3 && fabs(r.drift - p.drift) <= r.drift_error + 1e-6);
    for (int i = 0; i < COUNT; i++) {
        check_near(s[i].sent, 0.01 * i, 1e-12);
        if (isnan(s[i].round_trip)) {
            check(isnan(s[i].there) && isnan(s[i].back));
        } else {
            check(s[i].there >= 0 && s[i].back >= 0);
        }
    }
    close_place(&p);
}

static void a_quiet_link_gives_exact_numbers(void** state)
{
    static place p;
    static crdi_dcp_ping_sample s[400];
    open_place(&p, &(testnet_faults){.delay = 0.005, .seed = 7, .start = 1000});
    p.talk = echo;
    p.skew = 2.25;
    p.drift = 40e-6;
    add_net(&p, CRD_DCP_UDP);
    crdi_dcp_ping_options o = to_echo(&p, 400);
    crdi_dcp_ping_report r;
    o.size = 44;
    check_ok(crdi_dcp_ping(p.ctx, p.net, &o, s, &r));
    check_int(r.answered, 400);
    check_int(r.lost + r.duplicates + r.reordered, 0);
    // 10 ms on the way; the echo says that it took 3 ms which it did not take
    check_near(r.least, 0.007, 1e-6);
    check_near(r.most, 0.007, 1e-6);
    check_near(r.offset, 2.25 + 0.0015, 2e-4);
    check_near(r.drift, 40e-6, 1e-6);
    check_near(r.drift_error, 0, 1e-6);
    check_near(s[200].there, 0.0035, 1e-6);
    check_near(r.way_p999, 0.0035, 1e-6);
    close_place(&p);
}

static void a_slave_is_pinged_by_its_state(void** state)
{
    static crdi_dcp_ping_sample s[3000];
    for (int i = 0; i < 3; i++) {
        static place p;
        open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 7, .start = 1000});
        add_slave(&p, NULL, i == 1 ? CRD_DCP_TCP : CRD_DCP_UDP);
        if (i == 2) { occupy(&p, 0, 1); }
        crdi_dcp_ping_options o = to_echo(&p, 3000);
        o.to = address(0, i == 1 ? CRD_DCP_TCP : CRD_DCP_UDP);
        crdi_dcp_ping_report r;
        check_ok(crdi_dcp_ping(p.ctx, p.net, &o, s, &r));
        check(!r.echo && isnan(r.offset) && isnan(s[0].there));
        check_int(r.state, i == 2 ? CRD_DCP_CONFIGURATION : CRD_DCP_ALIVE);
        check_int(r.answered, 3000);
        check_int(r.lost + r.duplicates + r.reordered, 0);
        check_near(r.median, 0.004, 1e-6);
        check_near(r.way_median, 0.002, 1e-6);
        close_place(&p);
    }
}

static void refusals_are_answers_too(void** state)
{
    static place p;
    static crdi_dcp_ping_sample s[50];
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 1, .start = 1000});
    p.talk = guarded;
    add_net(&p, CRD_DCP_UDP);
    crdi_dcp_ping_options o = to_echo(&p, 50);
    crdi_dcp_ping_report r;
    o.id = 3;
    check_ok(crdi_dcp_ping(p.ctx, p.net, &o, s, &r));
    check_int(r.answered, 50);
    check_int(r.state, -1);
    check_near(r.median, 0.004, 1e-6);
    close_place(&p);
}

static void a_ping_says_when_nobody_is_there_and_ends_when_it_is_told(void** state)
{
    static place p;
    static crdi_dcp_ping_sample s[400];
    open_place(&p, &(testnet_faults){.delay = 0.002, .seed = 7, .start = 1000});
    crdi_dcp_ping_options o = to_echo(&p, 400);
    crdi_dcp_ping_report r;
    check_status(crdi_dcp_ping(p.ctx, p.net, &o, s, &r), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(p.ctx), "udp://10.0.0.2:8080");
    p.talk = echo;
    add_net(&p, CRD_DCP_UDP);
    p.cancel_after = 200;
    check_ok(crdi_dcp_ping(p.ctx, p.net, &o, s, &r));
    check(r.sent > 10 && r.sent < 300);
    o.count = 0;
    check_status(crdi_dcp_ping(p.ctx, p.net, &o, s, &r), CRD_E_RANGE);
    o.count = 1;
    o.size = 43;
    check_status(crdi_dcp_ping(p.ctx, p.net, &o, s, &r), CRD_E_RANGE);
    o.size = 80;
    for (int64_t at = 0;; at++) { // every allocation fails in turn; nets have theirs
        p.allocator.fail_at = p.allocator.allocations + at;
        const int64_t live = p.allocator.live;
        const crd_status st = crdi_dcp_ping(p.ctx, p.net, &o, s, &r);
        p.allocator.fail_at = -1;
        if (st == CRD_OK) { break; }
        check(at < 50 && (at >= 4 || st == CRD_E_MEMORY));
        if (at < 4) { check_int(p.allocator.live, live); }
    }
    close_place(&p);
}

static void an_echo_answers_questions_only_and_nothing_longer(void** state)
{
    static const uint8_t head[12] = {0xF0, 0, 0, 0xFF, 0xFF, 'C', 'R', 'D', 'P', 1, 0, 0};
    for (size_t length = 0; length < 100; length++) {
        uint8_t bytes[100] = {0};
        memcpy(bytes, head, sizeof head);
        check_int(crdi_dcp_echo(bytes, length, 5, 6), length >= CRDI_DCP_ECHO_LEAST);
    }
    for (size_t i = 0; i < sizeof head; i++) {
        uint8_t bytes[64] = {0};
        memcpy(bytes, head, sizeof head);
        bytes[i] ^= 1;
        check_int(crdi_dcp_echo(bytes, sizeof bytes, 5, 6), i == 1 || i == 2); // any sequence id
    }
    uint8_t bytes[64] = {0};
    memcpy(bytes, head, sizeof head);
    bytes[22] = 77;
    check(crdi_dcp_echo(bytes, sizeof bytes, 1.5, 1794710000.000001));
    check(!crdi_dcp_echo(bytes, sizeof bytes, 1.5, 2)); // two echoes do not play with each other
    static const uint8_t came[8] = {0x00, 0x2f, 0x68, 0x59}; // 1.5e9 ns
    check(memcmp(bytes + 28, came, 8) == 0);
    check_int(bytes[22], 77);
    crdi_dcp_pdu q; // to a slave it is data of an id that it does not have
    check_int(crdi_dcp_decode(bytes, sizeof bytes, &q), CRDI_DCP_GOOD);
    check_int(q.type, CRDI_DCP_DAT_INPUT_OUTPUT);
    check_int(q.id, 0xFFFF);
}

static void advice_is_the_shortest_macro_step_that_holds_jitter_and_latency(void** state)
{
    static const struct {
        double least, median, p999;
        int lost;
        double step, want;
        int k, k_most;
    } rows[] = {
        {0.0575, 0.0577, 0.0585, 0, 0.01, 0.01, 6, 6}, // the link of the benchmark
        {0.0575, 0.0577, 0.0585, 5, 0.01, 0.01, 6, 8}, {0.0575, 0.0577, 0.0585, 0, NAN, 0.01, 6, 6},
        {0.010, 0.012, 0.031, 0, NAN, 0.05, 1, 1}, // the jitter decides
        {0.0095, 0.0096, 0.0100, 0, NAN, 0.002, 5, 5}, {1e-6, 2e-6, 5e-6, 0, NAN, 1e-4, 1, 1},
        {0.010, 0.020, 0.030, 0, 0.01, 0.01, 2, 3}, // whole steps are not rounded up
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crdi_dcp_ping_report r = {.way_least = rows[i].least,
                                        .way_median = rows[i].median,
                                        .way_p999 = rows[i].p999,
                                        .lost = rows[i].lost};
        const crdi_dcp_ping_advice a = crdi_dcp_ping_advise(&r, rows[i].step);
        check_near(a.step, rows[i].want, 1e-9);
        check_int(a.k, rows[i].k);
        check_int(a.k_most, rows[i].k_most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_become_single_addresses),
        cmocka_unit_test(a_scan_finds_slaves_their_states_and_descriptions_and_disturbs_nobody),
        cmocka_unit_test(a_description_that_is_expected_is_the_only_one_tried),
        cmocka_unit_test(a_slave_that_answers_its_master_only_is_seen),
        cmocka_unit_test(a_slave_that_lets_itself_be_registered_is_deregistered_again),
        cmocka_unit_test(a_scan_asks_twice_over_a_bad_network_and_ends_when_it_is_told),
        cmocka_unit_test(a_ping_counts_what_the_network_does_and_finds_the_clock_of_the_echo),
        cmocka_unit_test(a_quiet_link_gives_exact_numbers),
        cmocka_unit_test(a_slave_is_pinged_by_its_state),
        cmocka_unit_test(refusals_are_answers_too),
        cmocka_unit_test(a_ping_says_when_nobody_is_there_and_ends_when_it_is_told),
        cmocka_unit_test(an_echo_answers_questions_only_and_nothing_longer),
        cmocka_unit_test(advice_is_the_shortest_macro_step_that_holds_jitter_and_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
