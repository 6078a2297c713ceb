// The conformance test itself: our own slave passes it, in every variant of its description, and
// every case finds a slave that does something wrong.
#include "dcp/rig.h"

#include "dcp/slave/slave.h"
#include "shared/dcptools_query.h"
#include "testnet/testnet.h"

enum { MASTER = 0x0A000001, SLAVE = 0x0A000002, MOST = 200 };

// What a slave can do wrong, between it and its network.
typedef enum sabotage {
    HONEST,
    WRONG_CODE,     // refuses for another reason
    WRONG_EXPECTED, // refuses with another exp_seq_id
    NO_DATA,
    ENDLESS_DATA, // data at every change of state
    TALKATIVE,    // answers what is to be dropped
    NERVOUS,      // data are an error
    CALM,         // nothing is an error
    NO_LOG,
    EASY_GOING,   // any sequence id is right
    WRONG_STATE,  // tells another state than that it is in
    WRONG_SENDER, // tells it in another's name
    REFUSES_CFG,  // does not take configuration
    NO_NOTIFICATION,
    REFUSES_STC, // does not change its state any more
    SABOTAGES,
    LIKE_DCPLIB = SABOTAGES, // what is known of the reference implementation
    CRASHES,                 // is gone behind a scope that does not exist
} sabotage;

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net *master, *bench;
    crd_dcp_address control, local;
    rig* r;
    crd_dcp_link link; // of the bench's net
    sabotage wrong;
    uint16_t seq;     // EASY_GOING: that of the request, and not what the slave was given
    uint8_t type;     // of the request
    int cancel_after; // calls, 0: never
    bool dead;
    int restarts, sent, came;
} place;

// ---- a slave that does something wrong ---------------------------------------------------------

static size_t spoil(place* p, uint8_t* b, size_t n)
{
    switch (p->wrong) {
    case WRONG_CODE:
        if (b[0] == CRDI_DCP_RSP_NACK) { b[6] ^= 0x40; }
        break;
    case WRONG_EXPECTED:
        if (b[0] == CRDI_DCP_RSP_NACK) { b[4] ^= 0x40; }
        break;
    case WRONG_STATE:
        if (b[0] == CRDI_DCP_RSP_STATE_ACK && b[4] != CRD_DCP_ALIVE) { b[4] ^= 1; }
        break;
    case WRONG_SENDER:
        if (b[0] == CRDI_DCP_RSP_STATE_ACK) { b[3] ^= 0x20; }
        break;
    case NO_NOTIFICATION:
        return b[0] == CRDI_DCP_NTF_STATE_CHANGED ? 0 : n;
    case NO_DATA:
        return b[0] == CRDI_DCP_DAT_INPUT_OUTPUT ? 0 : n;
    case CALM: // until it is looked for by hand
        if (b[0] == CRDI_DCP_NTF_STATE_CHANGED && b[2] == CRD_DCP_ERRORHANDLING) { return 0; }
        break;
    case LIKE_DCPLIB:
        if (b[0] == CRDI_DCP_RSP_NACK && p->r->slave->state == CRD_DCP_ALIVE &&
            p->type != CRDI_DCP_STC_REGISTER) {
            b[3] = 0;
            b[4] = 1;
            b[5] = 0;
        }
        if (b[0] == CRDI_DCP_RSP_ERROR_ACK) { b[4] = b[5] = 0; }
        break;
    case EASY_GOING:
        if (b[0] >= CRDI_DCP_RSP_ACK && b[0] <= CRDI_DCP_RSP_LOG_ACK) {
            b[1] = (uint8_t)p->seq;
            b[2] = (uint8_t)(p->seq >> 8);
        }
        break;
    case NO_LOG:
        if (b[0] == CRDI_DCP_RSP_LOG_ACK) { b[0] = CRDI_DCP_RSP_ACK; }
        break;
    default:
        break;
    }
    return n;
}

static bool send_spoiled(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t n)
{
    place* p = user;
    uint8_t copy[RIG_BYTES];
    check(n > 0 && n <= sizeof copy);
    memcpy(copy, bytes, n);
    n = spoil(p, copy, n);
    if (p->wrong == ENDLESS_DATA && copy[0] == CRDI_DCP_NTF_STATE_CHANGED) {
        const uint8_t data[13] = {CRDI_DCP_DAT_INPUT_OUTPUT, 77, 0, 10, 0};
        p->link.send(p->link.user, &p->local, data, sizeof data);
    }
    return n == 0 || p->link.send(p->link.user, to, copy, n);
}

static bool listen_too(void* user, const crd_dcp_address* at)
{
    place* p = user;
    return p->link.listen(p->link.user, at);
}

static bool connect_too(void* user, const crd_dcp_address* to)
{
    place* p = user;
    return p->link.connect(p->link.user, to);
}

static void close_too(void* user)
{
    place* p = user;
    p->link.close(p->link.user);
}

static void answer(place* p, const crd_dcp_packet* got, crdi_dcp_pdu a)
{
    uint8_t bytes[32];
    crdi_dcp_net_send(p->bench, &got->from, bytes, crdi_dcp_encode(&a, bytes, sizeof bytes));
}

// false: the slave does not get it.
static bool hears(place* p, const crd_dcp_packet* got)
{
    crdi_dcp_pdu q = {0};
    const crdi_dcp_decoded decoded = crdi_dcp_decode(got->bytes, got->length, &q);
    const bool good = decoded == CRDI_DCP_GOOD;
    const bool alive = crd_dcp_slave_state(p->r->slave) == CRD_DCP_ALIVE;
    const bool stc = good && q.type > CRDI_DCP_STC_REGISTER && q.type <= CRDI_DCP_STC_RESET;
    const bool cfg = good && q.type >= CRDI_DCP_CFG_TIME_RES && q.type <= CRDI_DCP_CFG_SCOPE;
    const bool strange =
        decoded == CRDI_DCP_UNKNOWN || (q.type >= CRDI_DCP_RSP_ACK) || (!alive && q.peer != 1);
    if (p->wrong == TALKATIVE && strange) {
        answer(p, got, (crdi_dcp_pdu){.type = CRDI_DCP_RSP_ACK, .seq = 9999, .peer = 1});
    }
    if ((p->wrong == REFUSES_CFG && cfg) || (p->wrong == REFUSES_STC && stc && !alive)) {
        answer(p, got,
               (crdi_dcp_pdu){.type = CRDI_DCP_RSP_NACK,
                              .seq = q.seq,
                              .peer = q.peer,
                              .expected = (uint16_t)(q.seq + 1),
                              .error = CRD_DCP_E_GENERIC});
        return false;
    }
    p->type = good ? q.type : 0;
    p->dead = p->dead || (p->wrong == CRASHES && p->type == CRDI_DCP_CFG_SCOPE && q.scope > 2);
    if (p->dead) { return false; }
    const uint16_t back = (uint16_t)(p->r->slave->registered + 1);
    if (p->wrong == LIKE_DCPLIB && !alive && p->r->slave->rewind && good && q.seq != back &&
        q.type < CRDI_DCP_RSP_ACK) { // counts from STC_register again
        answer(p, got,
               (crdi_dcp_pdu){.type = CRDI_DCP_RSP_NACK,
                              .seq = q.seq,
                              .peer = q.peer,
                              .expected = back,
                              .error = CRD_DCP_E_INVALID_SEQUENCE_ID});
        return false;
    }
    if (p->wrong == NERVOUS && q.type >= CRDI_DCP_DAT_INPUT_OUTPUT && good) {
        crd_dcp_slave_fault(p->r->slave, CRD_DCP_E_GENERIC, got->time);
    }
    return true;
}

// The slave's side of the network, whenever the test of it waits.
static bool pump(void* user)
{
    place* p = user;
    crd_dcp_packet got;
    while (crd_dcp_net_receive(p->bench, &got)) {
        uint8_t bytes[RIG_BYTES];
        check(got.length <= sizeof bytes);
        if (got.length) { memcpy(bytes, got.bytes, got.length); }
        if (!hears(p, &got)) { continue; }
        if (p->wrong == EASY_GOING && got.length >= 4 && bytes[0] < CRDI_DCP_RSP_ACK &&
            crd_dcp_slave_state(p->r->slave) != CRD_DCP_ALIVE) {
            const uint16_t next = (uint16_t)(p->r->slave->last + 1);
            p->seq = (uint16_t)(bytes[1] | bytes[2] << 8);
            bytes[1] = (uint8_t)next;
            bytes[2] = (uint8_t)(next >> 8);
        } else if (got.length >= 4) {
            p->seq = (uint16_t)(bytes[1] | bytes[2] << 8);
        }
        crd_dcp_slave_receive(p->r->slave, &got.from, &got.at, bytes, got.length, got.time);
    }
    const double now = testnet_now(p->t);
    while (!p->dead) {
        crd_dcp_slave_advance(p->r->slave, now);
        if (crd_dcp_slave_next(p->r->slave) > now) { break; }
    }
    return p->cancel_after > 0 && --p->cancel_after == 0;
}

// ---- the place ---------------------------------------------------------------------------------

static void start_slave(place* p)
{
    const crd_dcp_plant plant = rig_plant(p->r);
    const crd_dcp_link link = {p, send_spoiled, listen_too, connect_too, close_too};
    crd_dcp_slave_destroy(p->r->slave);
    check_ok(crd_dcp_slave_create(p->r->ctx, &p->r->d, &plant, &link, NULL, &p->r->slave));
    p->dead = false;
}

static bool restart(void* user)
{
    place* p = user;
    p->restarts++;
    start_slave(p);
    return true;
}

static void count_pdu(void* user, bool sent, const uint8_t* bytes, size_t length)
{
    place* p = user;
    check(bytes || length == 0);
    *(sent ? &p->sent : &p->came) += 1;
}

static void open_place(place* p, const crd_dcp_description* d, uint8_t transport, sabotage wrong)
{
    static const testnet_faults quick = {.delay = 1e-4, .seed = 3, .start = 1794710000.5};
    *p = (place){.wrong = wrong};
    p->ctx = check_context(&p->allocator);
    check_ok(testnet_create(p->ctx, &quick, &p->t));
    check_ok(testnet_join(p->t, MASTER, &p->master));
    check_ok(testnet_join(p->t, SLAVE, &p->bench));
    p->control = (crd_dcp_address){.ip = SLAVE, .port = 8080, .transport = transport};
    p->local = (crd_dcp_address){.ip = MASTER, .port = 8081, .transport = transport};
    check_ok(crd_dcp_net_listen(p->bench, &p->control));
    check_ok(crd_dcp_net_listen(p->master, &p->local));
    p->r = rig_create(d, NULL);
    p->link = crd_dcp_net_link(p->bench);
    start_slave(p);
}

static void close_place(place* p)
{
    crd_dcp_net_destroy(p->master);
    rig_destroy(p->r);
    crd_dcp_net_destroy(p->bench);
    testnet_destroy(p->t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

static crdi_dcp_conform_options options(place* p)
{
    crdi_dcp_conform_options o = crdi_dcp_conform_defaults();
    o.risky = true;
    o.local = p->local;
    o.timeout = 0.2;
    o.patience = 3;
    o.cancelled = pump;
    o.user = p;
    return o;
}

// ---- variants of the description ---------------------------------------------------------------

enum { PLAIN, GUARDED, POOR, SLOW, VARIANTS };

static crd_dcp_description variant(int which)
{
    static const crd_dcp_ports few[] = {{9000, 9010}, {8080, 8080}};
    static const crd_dcp_resolution one[] = {
        {.numerator = 1, .numerator_to = 1, .denominator = 100}};
    crd_dcp_description d = rig_description();
    if (which == GUARDED) {
        d.can_monitor_heartbeat = d.has_heartbeat = true;
        d.heartbeat_numerator = 1;
        d.heartbeat_denominator = 2;
        d.can_log_on_request = false;
        d.can_vary_steps = false;
        d.udp.data = d.udp.parameter = d.tcp.data = d.tcp.parameter = few;
        d.udp.data_count = d.udp.parameter_count = d.tcp.data_count = d.tcp.parameter_count = 2;
    } else if (which == POOR) { // no capability at all, no transport but UDP
        d.can_accept_config = d.can_reset = d.can_vary_steps = false;
        d.can_log_on_request = d.can_log_on_notification = false;
        d.tcp.offered = false;
        d.resolutions = one;
        d.resolution_count = 1;
        d.fixed_resolution = true;
    } else if (which == SLOW) { // real time only
        d.nrt = false;
        d.can_log_on_notification = false;
        d.resolutions = one;
        d.resolution_count = 1;
        d.fixed_resolution = true;
    }
    return d;
}

static void run(int which, uint8_t transport, sabotage wrong, const char* only,
                crdi_dcp_conform_result* results, int* count)
{
    static place p;
    const crd_dcp_description d = variant(which);
    open_place(&p, &d, transport, wrong);
    crdi_dcp_conform_options o = options(&p);
    o.only = only;
    check(crdi_dcp_conform_count() <= MOST);
    check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &d, &o, results, count));
    check_int(*count, only ? 1 : crdi_dcp_conform_count());
    close_place(&p);
}

// ---- tests -------------------------------------------------------------------------------------

static void our_slave_passes_every_case_in_every_variant(void** state)
{
    static crdi_dcp_conform_result results[MOST];
    static bool played[MOST];
    for (int which = 0; which < VARIANTS; which++) {
        for (int tcp = 0; tcp < (which == POOR ? 1 : 2); tcp++) {
            int count = 0;
            run(which, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, HONEST, NULL, results, &count);
            for (int i = 0; i < count; i++) {
                const crdi_dcp_conform_result* r = &results[i];
                if (r->verdict != CRDI_DCP_PASS && r->verdict != CRDI_DCP_SKIP) {
                    fail_msg("variant %d, %s, %s: %s: %s", which, tcp ? "TCP" : "UDP", r->id,
                             crdi_dcp_verdict_name(r->verdict), r->came);
                }
                check(r->came[0]);
                played[i] = played[i] || r->verdict == CRDI_DCP_PASS;
            }
        }
    }
    for (int i = 0; i < crdi_dcp_conform_count(); i++) {
        if (!played[i]) { fail_msg("%s was never played", results[i].id); }
    }
}

static void every_case_finds_a_slave_that_does_something_wrong(void** state)
{
    static crdi_dcp_conform_result all[MOST];
    int count = 0, by[SABOTAGES] = {0};
    run(PLAIN, CRD_DCP_UDP, HONEST, NULL, all, &count);
    for (int i = 0; i < count; i++) {
        crdi_dcp_conform_result one = {.verdict = CRDI_DCP_SKIP};
        int wrong = HONEST + 1;
        for (; wrong < SABOTAGES && one.verdict != CRDI_DCP_FAIL; wrong++) {
            for (int which = 0; which < VARIANTS && one.verdict != CRDI_DCP_FAIL; which++) {
                int n = 0;
                run(which, CRD_DCP_UDP, (sabotage)wrong, all[i].id, &one, &n);
            }
        }
        if (one.verdict != CRDI_DCP_FAIL) { fail_msg("%s never failed", all[i].id); }
        check(one.came[0]);
        by[wrong - 1]++;
    }
    // By what the case is about, not because nothing works at all.
    check(by[WRONG_CODE] > 50 && by[TALKATIVE] > 4 && by[NERVOUS] > 4 && by[CALM] > 1);
    check_int(by[NO_NOTIFICATION] + by[REFUSES_STC], 0);
}

// ---- as others do it ---------------------------------------------------------------------------

static void what_the_reference_implementation_does_wrong_fails_with_its_clause(void** state)
{
    static const char* const wrong[] = {"alive.requests", "register.length", "seq.clear",
                                        "seq.reset", "data.missed.many"};
    static crdi_dcp_conform_result results[MOST];
    int count = 0, failed = 0;
    run(PLAIN, CRD_DCP_UDP, LIKE_DCPLIB, NULL, results, &count);
    for (int i = 0; i < count; i++) {
        check(results[i].clause[0]);
        check(results[i].verdict != CRDI_DCP_DIFFERS);
        if (results[i].verdict != CRDI_DCP_FAIL) { continue; }
        check(failed < 5);
        check_text(results[i].id, wrong[failed++]);
    }
    check_int(failed, 5);
}

static void a_slave_that_is_gone_is_started_again_if_somebody_can(void** state)
{
    static crdi_dcp_conform_result results[MOST];
    for (int can = 0; can < 2; can++) {
        static place p;
        int count = 0, failed = 0, skipped = 0;
        const crd_dcp_description d = variant(PLAIN);
        open_place(&p, &d, CRD_DCP_UDP, CRASHES);
        crdi_dcp_conform_options o = options(&p);
        o.risky = !can; // who can be started again may be made to abort
        o.restart = can ? restart : NULL;
        o.seen = count_pdu;
        check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &d, &o, results, &count));
        for (int i = 0; i < count; i++) {
            const bool scope = strcmp(results[i].id, "cfg.scope.wrong") == 0;
            check_int(results[i].restarted, can && scope);
            check_int(results[i].verdict == CRDI_DCP_FAIL, scope);
            failed += results[i].verdict == CRDI_DCP_FAIL;
            skipped += strstr(results[i].came, "did not come back") != NULL &&
                       results[i].verdict == CRDI_DCP_SKIP;
        }
        check_int(failed, 1);
        check_int(p.restarts, can);
        check(can ? skipped == 0 : skipped > 50);
        check(p.sent > count && p.came > count);
        close_place(&p);
    }
}

static void a_case_that_lost_a_packet_is_played_again(void** state)
{
    static place p;
    static crdi_dcp_conform_result results[MOST];
    open_place(&p, NULL, CRD_DCP_UDP, HONEST);
    check_ok(testnet_set(p.t, &(testnet_faults){.delay = 1e-4, .loss = 0.002}));
    const crdi_dcp_conform_options o = options(&p);
    int count = 0;
    check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count));
    for (int i = 0; i < count; i++) {
        if (results[i].verdict == CRDI_DCP_FAIL) {
            fail_msg("%s: %s", results[i].id, results[i].came);
        }
    }
    check(testnet_get_counts(p.t).lost > 1);
    close_place(&p);
}

static void a_network_that_damages_everything_is_survived(void** state)
{
    static crdi_dcp_conform_result results[MOST];
    for (uint64_t seed = 1; seed <= 4; seed++) {
        static place p;
        open_place(&p, NULL, CRD_DCP_UDP, HONEST);
        check_ok(testnet_set(p.t, &(testnet_faults){.delay = 1e-4,
                                                    .jitter = 1e-3,
                                                    .duplicate = 0.2,
                                                    .corrupt = 0.02 * (double)seed}));
        crdi_dcp_conform_options o = options(&p);
        o.timeout = o.patience = 0.02;
        int count = 0, failed = 0;
        const crd_status st =
            crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count);
        check(st == CRD_OK || st == CRD_E_NOT_FOUND || st == CRD_E_STATE);
        for (int i = 0; i < count; i++) {
            failed += results[i].verdict == CRDI_DCP_FAIL;
        }
        check(st != CRD_OK || failed > 0);
        close_place(&p);
    }
}

// ---- who is there ------------------------------------------------------------------------------

static void occupy(place* p)
{
    crdi_dcp_pdu q = {
        .type = CRDI_DCP_STC_REGISTER, .seq = 77, .peer = 1, .op_mode = CRD_DCP_NRT, .major = 1};
    uint8_t bytes[32];
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
    const crd_dcp_address other = {MASTER, 9999, CRD_DCP_UDP};
    crd_dcp_slave_receive(p->r->slave, &other, &p->control, bytes, n, testnet_now(p->t));
    check_int(crd_dcp_slave_state(p->r->slave), CRD_DCP_CONFIGURATION);
}

static void a_slave_of_somebody_else_is_left_alone_unless_taken_over(void** state)
{
    static place p;
    static crdi_dcp_conform_result results[MOST];
    int count = 9;
    open_place(&p, NULL, CRD_DCP_UDP, HONEST);
    crdi_dcp_conform_options o = options(&p);
    o.only = "register.*";
    occupy(&p);
    check_status(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count),
                 CRD_E_STATE);
    check_int(count, 0);
    check_contains(crd_error_text(p.ctx), "CONFIGURATION");
    check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_CONFIGURATION);
    check_int(p.r->slave->last, 77);
    o.take_over = true;
    check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count));
    check_int(count, 9);
    for (int i = 0; i < count; i++) {
        check_int(results[i].verdict, CRDI_DCP_PASS);
    }
    check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_ALIVE);
    close_place(&p);
}

static void wrong_options_and_nobody_are_told(void** state)
{
    static place p;
    static crdi_dcp_conform_result results[MOST];
    int count = 0;
    open_place(&p, NULL, CRD_DCP_UDP, HONEST);
    crdi_dcp_conform_options o = options(&p);
    o.mode = CRD_DCP_HRT;
    check_status(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count),
                 CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx), "HRT");
    o.mode = CRD_DCP_SRT;
    o.only = "nrt.*";
    check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count));
    check(count > 5);
    for (int i = 0; i < count; i++) {
        check_int(results[i].verdict, CRDI_DCP_SKIP);
        check_contains(results[i].came, "NRT");
    }
    crd_dcp_address nobody = p.control;
    nobody.port++;
    check_status(crdi_dcp_conform(p.ctx, p.master, &nobody, &p.r->d, &o, results, &count),
                 CRD_E_NOT_FOUND);
    nobody.transport = CRD_DCP_TCP;
    check_status(crdi_dcp_conform(p.ctx, p.master, &nobody, &p.r->d, &o, results, &count),
                 CRD_E_NOT_FOUND);
    o.timeout = 0;
    check_status(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count),
                 CRD_E_RANGE);
    close_place(&p);
}

static int told;
static void count_case(void* user, const crdi_dcp_conform_result* r)
{
    (void)user;
    check(r->id && r->came[0]);
    told++;
}

static void it_ends_when_it_is_told_and_without_memory(void** state)
{
    static place p;
    static crdi_dcp_conform_result results[MOST];
    int count = 0;
    open_place(&p, NULL, CRD_DCP_UDP, HONEST);
    crdi_dcp_conform_options o = options(&p);
    o.next = count_case;
    p.allocator.fail_at = p.allocator.allocations;
    check_status(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count),
                 CRD_E_MEMORY);
    p.allocator.fail_at = -1;
    p.cancel_after = 500;
    told = 0;
    check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count));
    check(count > 3 && count < 100);
    check_int(told, count);
    check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_ALIVE);
    for (int i = 10; i < 80; i += 7) { // in the middle of a case, too
        p.cancel_after = i;
        check_ok(crdi_dcp_conform(p.ctx, p.master, &p.control, &p.r->d, &o, results, &count));
        check_int(crd_dcp_slave_state(p.r->slave), CRD_DCP_ALIVE);
    }
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_slave_passes_every_case_in_every_variant),
        cmocka_unit_test(every_case_finds_a_slave_that_does_something_wrong),
        cmocka_unit_test(what_the_reference_implementation_does_wrong_fails_with_its_clause),
        cmocka_unit_test(a_slave_that_is_gone_is_started_again_if_somebody_can),
        cmocka_unit_test(a_case_that_lost_a_packet_is_played_again),
        cmocka_unit_test(a_network_that_damages_everything_is_survived),
        cmocka_unit_test(a_slave_of_somebody_else_is_left_alone_unless_taken_over),
        cmocka_unit_test(wrong_options_and_nobody_are_told),
        cmocka_unit_test(it_ends_when_it_is_told_and_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
