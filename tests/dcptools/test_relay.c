// The relay on the virtual clock: what a path does to packets, and whole sessions through it.
#include "dcp/rig.h"
#include "shared/dcptools_relay.h"
#include "testnet/testnet.h"

enum {
    MASTER = 0x0A000001,
    NEAR_IP = 0x0A000010,
    FAR_IP = 0x0B000010,
    SLAVE = 0x0B000002,
    HOST = 0x7F000001
};

// ---- a path ------------------------------------------------------------------------------------

typedef struct line {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net *a, *near, *far, *b; // a sender, the relay, a receiver
    crd_dcp_address at, from, to;
    crdi_dcp_relay* relay;
} line;

static void open_line(line* l, const crdi_dcp_relay_options* opt, uint8_t transport)
{
    *l = (line){0};
    l->ctx = check_context(&l->allocator);
    check_ok(testnet_create(l->ctx, &(testnet_faults){.start = 1000}, &l->t));
    check_ok(testnet_join(l->t, MASTER, &l->a));
    check_ok(testnet_join(l->t, NEAR_IP, &l->near));
    check_ok(testnet_join(l->t, FAR_IP, &l->far));
    check_ok(testnet_join(l->t, SLAVE, &l->b));
    l->from = (crd_dcp_address){MASTER, 8081, transport};
    l->at = (crd_dcp_address){NEAR_IP, 0, transport};
    l->to = (crd_dcp_address){SLAVE, 8080, transport};
    check_ok(crd_dcp_net_listen(l->a, &l->from));
    check_ok(crd_dcp_net_listen(l->b, &l->to));
    crdi_dcp_relay_options o = opt ? *opt : crdi_dcp_relay_defaults();
    o.far_ip = FAR_IP;
    check_ok(crdi_dcp_relay_create(l->ctx, l->near, l->far, &o, &l->relay));
    check_ok(crdi_dcp_relay_add(l->relay, &l->at, &l->to));
    check(l->at.port != 0);
    if (transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(l->a, &l->at)); }
}

static void close_line(line* l)
{
    crdi_dcp_relay_destroy(l->relay);
    crd_dcp_net_destroy(l->a);
    crd_dcp_net_destroy(l->near);
    crd_dcp_net_destroy(l->far);
    crd_dcp_net_destroy(l->b);
    testnet_destroy(l->t);
    crd_context_destroy(l->ctx);
    check_int(l->allocator.live, 0);
}

static void check_sum(const crdi_dcp_path_counts* c)
{
    check_int(c->received + c->duplicated, c->sent + c->lost + c->cut + c->queue_full + c->no_room +
                                               c->nowhere + c->unsent + c->waiting);
}

typedef struct arrival {
    double sent, came;
    uint32_t number;
    bool damaged;
} arrival;

// Packets with their number and time, one each `step`; what arrives at the other end by then.
static int run_line(line* l, int count, double step, size_t length, arrival* out, int room)
{
    uint8_t bytes[1024] = {0xF0};
    int n = 0;
    const double end = testnet_now(l->t) + (count + 1) * step + 100;
    for (int i = 0; testnet_now(l->t) < end;) {
        const double now = testnet_now(l->t);
        const double due = 1000 + i * step;
        if (i < count && now >= due) {
            memset(bytes, 0, sizeof bytes);
            bytes[0] = 0xF0;
            memcpy(bytes + 16, &i, 4);
            memcpy(bytes + 24, &now, 8);
            crdi_dcp_net_send(l->a, &l->at, bytes, length);
            i++;
            continue;
        }
        const double next = fmin(i < count ? due : end, crdi_dcp_relay_next(l->relay));
        (void)testnet_advance(l->t, fmax(next, now));
        (void)crdi_dcp_relay_poll(l->relay);
        crd_dcp_packet p;
        while (crd_dcp_net_receive(l->b, &p)) {
            check(n < room && p.length == length);
            arrival* x = &out[n++];
            x->came = p.time;
            memcpy(&x->number, p.bytes + 16, 4);
            memcpy(&x->sent, p.bytes + 24, 8);
            x->damaged = false;
            for (size_t k = 1; k < length; k++) {
                x->damaged = x->damaged || (p.bytes[k] != 0 && (k < 16 || k >= 32));
            }
            x->damaged = x->damaged || p.bytes[0] != 0xF0;
        }
        if (i == count && crdi_dcp_relay_get_counts(l->relay).there.waiting == 0 &&
            crdi_dcp_relay_next(l->relay) > now + 5) {
            break;
        }
        if (i == count && now > 1000 + (count + 1) * step + 90) { break; }
    }
    const crdi_dcp_relay_counts c = crdi_dcp_relay_get_counts(l->relay);
    check_sum(&c.there);
    check_int(c.there.received, count);
    check_int(c.there.sent, n);
    return n;
}

enum { MANY = 20000 };
static arrival arrivals[3 * MANY];

static void moments(int n, double* mean, double* deviation, double* correlation)
{
    static double d[3 * MANY];
    double sum = 0, square = 0, cross = 0;
    for (int i = 0; i < n; i++) { // by number: nothing was lost or doubled
        d[arrivals[i].number] = arrivals[i].came - arrivals[i].sent;
    }
    for (int i = 0; i < n; i++) {
        sum += d[i];
    }
    *mean = sum / n;
    for (int i = 0; i < n; i++) {
        square += (d[i] - *mean) * (d[i] - *mean);
        if (i > 0) { cross += (d[i] - *mean) * (d[i - 1] - *mean); }
    }
    *deviation = sqrt(square / n);
    *correlation = cross / square;
}

static void delays_have_their_mean_spread_and_correlation(void** state)
{
    static line l;
    static const double spread[] = {1 / 1.7320508, 1, 1}; // standard deviation over jitter
    for (int k = 0; k < 6; k++) {
        crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
        const double c = k < 3 ? 0 : 0.8;
        o.seed = 3;
        o.there = (crdi_dcp_path){.delay = 0.05,
                                  .jitter = 0.01,
                                  .distribution = (crdi_dcp_jitter)(k % 3),
                                  .correlation = c};
        open_line(&l, &o, CRD_DCP_UDP);
        const int n = run_line(&l, MANY, 0.001, 64, arrivals, 3 * MANY);
        check_int(n, MANY);
        double mean, deviation, correlation;
        moments(n, &mean, &deviation, &correlation);
        check_near(mean, 0.05, c > 0 ? 0.0010 : 0.0003);
        check_near(deviation, 0.01 * spread[k % 3], c > 0 ? 0.0006 : 0.0003);
        check_near(correlation, c, k % 3 == 2 ? 0.05 : 0.025); // the copula bends that of gamma
        close_line(&l);
    }
}

static void gamma_delays_have_the_tail_of_their_distribution(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.delay = 0.05, .jitter = 0.01, .distribution = CRDI_DCP_JITTER_GAMMA};
    open_line(&l, &o, CRD_DCP_UDP);
    const int n = run_line(&l, MANY, 0.001, 64, arrivals, 3 * MANY);
    double least = INFINITY;
    int beyond = 0; // g > 5: (1 + 5) exp(-5)
    for (int i = 0; i < n; i++) {
        const double d = arrivals[i].came - arrivals[i].sent;
        least = fmin(least, d);
        beyond += d > 0.05 + 0.01 * (5 - 2) / sqrt(2);
    }
    check(least >= 0.05 - 0.01 * sqrt(2) - 1e-9);
    check_near((double)beyond / n, 6 * exp(-5), 0.004);
    close_line(&l);
}

static void datagrams_are_lost_doubled_damaged_and_held_in_their_parts(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.seed = 11;
    o.there = (crdi_dcp_path){.delay = 0.001,
                              .loss = 0.3,
                              .duplicate = 0.2,
                              .corrupt = 0.1,
                              .reorder = 0.05,
                              .hold = 0.0025};
    open_line(&l, &o, CRD_DCP_UDP);
    const int n = run_line(&l, MANY, 0.001, 100, arrivals, 3 * MANY);
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    int damaged = 0;
    for (int i = 0; i < n; i++) {
        damaged += arrivals[i].damaged;
    }
    const double passed = (double)(MANY - c.lost);
    check_near((double)c.lost / MANY, 0.3, 0.02);
    check_near((double)c.duplicated / passed, 0.2, 0.02);
    check_near((double)c.corrupted / passed, 0.1, 0.02);
    check_near((double)c.held / passed, 0.05, 0.01);
    check_int(n, MANY - c.lost + c.duplicated);
    check(c.reordered > c.held / 2 && c.reordered <= c.held);
    check(damaged > 0.5 * (double)c.corrupted && damaged <= c.corrupted); // some hit the numbers
    close_line(&l);
}

static void bursts_have_their_length_and_frequency(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.burst = 0.01, .burst_length = 8};
    open_line(&l, &o, CRD_DCP_UDP);
    const int n = run_line(&l, MANY, 0.001, 64, arrivals, 3 * MANY);
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    int gaps = 0;
    uint32_t expected = 0;
    for (int i = 0; i < n; i++) {
        gaps += arrivals[i].number != expected;
        expected = arrivals[i].number + 1;
    }
    check_near((double)c.lost / (double)c.bursts, 8, 1.5);
    check_near((double)c.bursts / (MANY - (double)c.lost), 0.01, 0.002);
    check(gaps <= c.bursts && gaps > 0.85 * (double)c.bursts); // two may follow each other
    close_line(&l);
}

static void jitter_reorders_unless_the_path_keeps_the_order(void** state)
{
    static line l;
    for (int keep = 0; keep < 2; keep++) {
        crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
        o.there = (crdi_dcp_path){.delay = 0.2, .jitter = 0.2, .in_order = keep};
        open_line(&l, &o, CRD_DCP_UDP);
        const int n = run_line(&l, 2000, 0.001, 64, arrivals, 3 * MANY);
        check_int(n, 2000);
        int turned = 0;
        uint32_t newest = 0;
        for (int i = 0; i < n; i++) {
            turned += arrivals[i].number < newest;
            if (arrivals[i].number > newest) { newest = arrivals[i].number; }
        }
        check_int(crdi_dcp_relay_get_counts(l.relay).there.reordered, turned);
        check(keep ? turned == 0 : turned > 1000);
        close_line(&l);
    }
    // Those that are held back do not keep the others.
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){
        .delay = 0.02, .jitter = 0.02, .in_order = true, .reorder = 0.1, .hold = 0.5};
    open_line(&l, &o, CRD_DCP_UDP);
    check_int(run_line(&l, 2000, 0.001, 64, arrivals, 3 * MANY), 2000);
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    check(c.held > 150 && c.reordered <= c.held && c.reordered > c.held - 80);
    close_line(&l);
}

static void the_rate_is_kept_and_its_queue_is_bounded(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.rate = 100000, .queue = 10000};
    open_line(&l, &o, CRD_DCP_UDP);
    // 972 bytes and 28 of headers each millisecond are ten times what passes.
    const int n = run_line(&l, 1000, 0.001, 972, arrivals, 3 * MANY);
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    check_int(c.queue_full, 1000 - n);
    check_near(n, 100 + 10, 2); // of a second, and what waited at its end
    for (int i = 1; i < n; i++) {
        check_near(arrivals[i].came - arrivals[i - 1].came, 0.01, 1e-9);
        check(arrivals[i].came - arrivals[i].sent <= 0.1 + 1e-9);
    }
    close_line(&l);
}

static void memory_is_bounded_and_what_finds_none_is_counted(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.memory = 4096; // 16 blocks: 4 packets of 4 blocks
    o.there = (crdi_dcp_path){.delay = 1};
    open_line(&l, &o, CRD_DCP_UDP);
    const int64_t before = l.allocator.allocations;
    const int n = run_line(&l, 100, 0.001, 1000, arrivals, 3 * MANY);
    check_int(n, 4);
    check_int(crdi_dcp_relay_get_counts(l.relay).there.no_room, 96);
    check(l.allocator.allocations - before < 20); // the test network's packets
    close_line(&l);
}

static void a_recording_of_latencies_is_played_over_and_over(void** state)
{
    static line l;
    static const double time[] = {5, 5.1, 5.2, 5.3}, delay[] = {0.01, 0.02, NAN, 0.04};
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.trace_time = time, .trace_delay = delay, .trace_count = 4};
    open_line(&l, &o, CRD_DCP_UDP);
    const int n = run_line(&l, 100, 0.01, 64, arrivals, 3 * MANY);
    int64_t lost = 0;
    int k = 0;
    for (int i = 0; i < 100; i++) {
        // From the first packet on; within rounding of a row's beginning either one is right.
        const double phase = fmod(0.01 * i, 0.4) / 0.1;
        if (fabs(phase - round(phase)) < 1e-6) {
            lost += k < n && arrivals[k].number == (uint32_t)i ? 0 : 1;
            k += k < n && arrivals[k].number == (uint32_t)i;
            continue;
        }
        const double want = delay[(int)phase];
        if (isnan(want)) {
            lost++;
            continue;
        }
        int found = -1;
        for (int j = 0; j < n; j++) {
            if (arrivals[j].number == (uint32_t)i) { found = j; }
        }
        check(found >= 0);
        check_near(arrivals[found].came - arrivals[found].sent, want, 1e-9);
    }
    check_near((double)crdi_dcp_relay_get_counts(l.relay).there.lost, (double)lost, 10);
    close_line(&l);
}

static void nothing_passes_in_a_cut(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there.delay = 0.05;
    o.there.cuts[0] = (crdi_dcp_cut){0.095, 0.295};
    o.there.cuts[1] = (crdi_dcp_cut){0.895, INFINITY};
    o.there.cut_count = 2;
    open_line(&l, &o, CRD_DCP_UDP);
    const int n = run_line(&l, 100, 0.01, 64, arrivals, 3 * MANY);
    check_int(n, 10 + 60); // 0 .. 9 and 30 .. 89: what is on its way arrives
    for (int i = 0; i < n; i++) {
        check_int(arrivals[i].number, i < 10 ? i : i + 20);
        check_near(arrivals[i].came - arrivals[i].sent, 0.05, 1e-9);
    }
    crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    check_sum(&c);
    check_int(c.cut, 30);
    check_int(c.lost, 0);
    close_line(&l);
    o.there.cut_count = 1; // streams wait for its end
    open_line(&l, &o, CRD_DCP_TCP);
    check_int(run_line(&l, 100, 0.01, 64, arrivals, 3 * MANY), 100);
    for (int i = 0; i < 100; i++) {
        const double way = i < 10 || i > 29 ? 0.05 : 0.05 + 0.295 - 0.01 * i;
        check_int(arrivals[i].number, i);
        check_near(arrivals[i].came - arrivals[i].sent, way, 1e-6);
    }
    c = crdi_dcp_relay_get_counts(l.relay).there;
    check_sum(&c);
    check_int(c.cut, 0);
    close_line(&l);
}

static void a_stream_stays_whole_and_a_loss_costs_it_time(void** state)
{
    static line l;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.delay = 0.05,
                              .jitter = 0.04,
                              .loss = 0.1,
                              .duplicate = 0.3,
                              .reorder = 0.3,
                              .corrupt = 0.05,
                              .repeat = 0.2};
    open_line(&l, &o, CRD_DCP_TCP);
    const int n = run_line(&l, 2000, 0.01, 300, arrivals, 3 * MANY);
    check_int(n, 2000);
    for (int i = 0; i < n; i++) {
        check_int(arrivals[i].number, i);
        check(!arrivals[i].damaged && arrivals[i].came - arrivals[i].sent >= 0.01 - 1e-9);
    }
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(l.relay).there;
    check_near((double)c.repeated / 2000, 0.145 / (1 - 0.145), 0.04);
    check_int(c.lost + c.duplicated + c.corrupted + c.reordered, 0);
    close_line(&l);
}

static void equal_seeds_give_equal_fates_and_a_change_of_one_setting_leaves_the_others(void** state)
{
    static line l;
    static arrival first[3 * MANY];
    int n[3] = {0};
    for (int k = 0; k < 3; k++) {
        crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
        o.seed = 77;
        o.there =
            (crdi_dcp_path){.delay = 0.1, .jitter = 0.05, .loss = 0.2, .corrupt = k == 2 ? 0.5 : 0};
        open_line(&l, &o, CRD_DCP_UDP);
        n[k] = run_line(&l, 1000, 0.001, 64, k ? arrivals : first, 3 * MANY);
        close_line(&l);
        check_int(n[k], n[0]);
        for (int i = 0; k && i < n[k]; i++) {
            if (arrivals[i].number < MANY && !arrivals[i].damaged) {
                check(arrivals[i].came == first[i].came);
            }
        }
    }
}

static void settings_that_make_no_sense_are_named(void** state)
{
    static line l;
    open_line(&l, NULL, CRD_DCP_UDP);
    static const double backwards[] = {1, 0.5}, good[] = {0.1, 0.1}, bad[] = {0.1, -1};
    static const double rising[] = {0, 1};
    const struct {
        crdi_dcp_path path;
        const char* says;
    } rows[] = {
        {{.delay = -1}, "delay = -1"},
        {{.jitter = NAN}, "jitter = nan"},
        {{.loss = 1.5}, "loss = 1.5"},
        {{.correlation = 1}, "correlation = 1"},
        {{.burst = 0.1, .burst_length = 0.5}, "bursts of 0.5 packets"},
        {{.rate = -5}, "rate = -5"},
        {{.trace_time = backwards, .trace_delay = good, .trace_count = 2}, "row 2"},
        {{.trace_time = rising, .trace_delay = bad, .trace_count = 2}, "latency -1 s at 1 s"},
        {{.distribution = (crdi_dcp_jitter)7}, "distribution 7"},
        {{.cuts = {{3, 2}}, .cut_count = 1}, "a cut from 3 s to 2 s"},
        {{.cuts = {{0, NAN}}, .cut_count = 1}, "a cut from 0 s to nan s"},
        {{.cut_count = 9}, "9 cuts, expected up to 8"},
    };
    crdi_dcp_relay* r = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
        o.back = rows[i].path;
        check_status(crdi_dcp_relay_create(l.ctx, l.near, l.far, &o, &r), CRD_E_RANGE);
        check_contains(crd_error_text(l.ctx), rows[i].says);
        check_contains(crd_error_text(l.ctx), "back");
    }
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.memory = 10;
    check_status(crdi_dcp_relay_create(l.ctx, l.near, l.far, &o, &r), CRD_E_RANGE);
    crd_dcp_address tcp = {NEAR_IP, 0, CRD_DCP_TCP}, all = {0, 0, CRD_DCP_UDP};
    crd_dcp_address other = {SLAVE, 9, CRD_DCP_UDP}, nobody = {SLAVE, 0, CRD_DCP_UDP};
    check_status(crdi_dcp_relay_add(l.relay, &tcp, &other), CRD_E_RANGE);
    check_contains(crd_error_text(l.ctx), "same transport");
    check_status(crdi_dcp_relay_add(l.relay, &all, &other), CRD_E_RANGE);
    check_contains(crd_error_text(l.ctx), "all interfaces");
    check_status(crdi_dcp_relay_add(l.relay, &l.at, &nobody), CRD_E_RANGE);
    check_status(crdi_dcp_relay_add(l.relay, &l.at, &other), CRD_E_RANGE);
    check_contains(crd_error_text(l.ctx), "leads to udp://11.0.0.2:8080 already");
    crd_dcp_address more = {NEAR_IP, 0, CRD_DCP_UDP};
    check_status(crdi_dcp_relay_add(l.relay, &more, &l.to), CRD_E_RANGE);
    check_contains(crd_error_text(l.ctx), "twice");
    close_line(&l);
}

// ---- sessions ----------------------------------------------------------------------------------

enum { SLAVES = 2 };

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net *master, *near, *far, *bench[SLAVES];
    crdi_dcp_relay* relay;
    rig* r[SLAVES];
    int slaves;
    uint32_t slave_ip[SLAVES], near_ip, far_ip, master_ip;
    crd_dcp_address at[SLAVES]; // where the master finds the slaves
    uint8_t transport;
    uint16_t seq[SLAVES];
    int state[SLAVES];
    int64_t repeats, outputs;
    double last_output;
    // a second one may stand between the first and the slaves
    crd_dcp_net *near2, *far2;
    crdi_dcp_relay* relay2;
} place;

// How the addresses are: two networks, or all on one host.
static void open_place(place* p, const crdi_dcp_relay_options* opt, uint8_t transport, int slaves,
                       bool one_host, bool chain)
{
    *p = (place){.slaves = slaves, .transport = transport};
    p->master_ip = one_host ? HOST : MASTER;
    p->near_ip = one_host ? HOST : NEAR_IP;
    p->far_ip = one_host ? HOST : FAR_IP;
    p->ctx = check_context(&p->allocator);
    check_ok(testnet_create(p->ctx, &(testnet_faults){.start = 1000}, &p->t));
    check_ok(testnet_join(p->t, p->master_ip, &p->master));
    check_ok(testnet_join(p->t, p->near_ip, &p->near));
    check_ok(testnet_join(p->t, p->far_ip, &p->far));
    crd_dcp_address m = {p->master_ip, 8081, transport};
    check_ok(crd_dcp_net_listen(p->master, &m));
    crdi_dcp_relay_options o = opt ? *opt : crdi_dcp_relay_defaults();
    o.far_ip = p->far_ip;
    check_ok(crdi_dcp_relay_create(p->ctx, p->near, p->far, &o, &p->relay));
    if (chain) { // near at 12.0.0.1, far at 11.0.0.17
        check_ok(testnet_join(p->t, one_host ? HOST : 0x0C000001, &p->near2));
        check_ok(testnet_join(p->t, one_host ? HOST : FAR_IP + 1, &p->far2));
        o.far_ip = one_host ? HOST : FAR_IP + 1;
        check_ok(crdi_dcp_relay_create(p->ctx, p->near2, p->far2, &o, &p->relay2));
    }
    for (int i = 0; i < slaves; i++) {
        p->slave_ip[i] = one_host ? HOST : SLAVE + (uint32_t)i;
        p->at[i] = (crd_dcp_address){p->near_ip, (uint16_t)(9080 + i), transport};
        crd_dcp_address control = {p->slave_ip[i], (uint16_t)(8090 + i), transport};
        check_ok(testnet_join(p->t, p->slave_ip[i], &p->bench[i]));
        check_ok(crd_dcp_net_listen(p->bench[i], &control));
        p->r[i] = rig_create(NULL, NULL);
        crd_dcp_slave_destroy(p->r[i]->slave);
        const crd_dcp_plant plant = rig_plant(p->r[i]);
        const crd_dcp_link link = crd_dcp_net_link(p->bench[i]);
        check_ok(
            crd_dcp_slave_create(p->r[i]->ctx, &p->r[i]->d, &plant, &link, NULL, &p->r[i]->slave));
        if (chain) {
            crd_dcp_address middle = {one_host ? HOST : 0x0C000001, (uint16_t)(7080 + i),
                                      transport};
            check_ok(crdi_dcp_relay_add(p->relay2, &middle, &control));
            control = middle;
        }
        check_ok(crdi_dcp_relay_add(p->relay, &p->at[i], &control));
        if (transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(p->master, &p->at[i])); }
    }
}

static void close_place(place* p)
{
    const crdi_dcp_relay_counts c = crdi_dcp_relay_get_counts(p->relay);
    check_sum(&c.there);
    check_sum(&c.back);
    crdi_dcp_relay_destroy(p->relay);
    crdi_dcp_relay_destroy(p->relay2);
    for (int i = 0; i < p->slaves; i++) {
        rig_destroy(p->r[i]);
        crd_dcp_net_destroy(p->bench[i]);
    }
    crd_dcp_net_destroy(p->master);
    crd_dcp_net_destroy(p->near);
    crd_dcp_net_destroy(p->far);
    crd_dcp_net_destroy(p->near2);
    crd_dcp_net_destroy(p->far2);
    testnet_destroy(p->t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

static double next_event(const place* p)
{
    double next = crdi_dcp_relay_next(p->relay);
    if (p->relay2) { next = fmin(next, crdi_dcp_relay_next(p->relay2)); }
    for (int i = 0; i < p->slaves; i++) {
        next = fmin(next, crd_dcp_slave_next(p->r[i]->slave));
    }
    return fmax(next, testnet_now(p->t));
}

// Everything that arrives until then; the answer to request `seq`, if it comes.
static bool pass(place* p, double until, uint16_t seq, crdi_dcp_pdu* answer)
{
    for (;;) {
        const double now = testnet_advance(p->t, fmin(until, next_event(p)));
        crd_dcp_packet got;
        (void)crdi_dcp_relay_poll(p->relay);
        if (p->relay2) { (void)crdi_dcp_relay_poll(p->relay2); }
        for (int i = 0; i < p->slaves; i++) {
            while (crd_dcp_net_receive(p->bench[i], &got)) {
                crd_dcp_slave_receive(p->r[i]->slave, &got.from, &got.at, got.bytes, got.length,
                                      got.time);
            }
            crd_dcp_slave_advance(p->r[i]->slave, now);
        }
        while (crd_dcp_net_receive(p->master, &got)) {
            crdi_dcp_pdu in;
            check_int(crdi_dcp_decode(got.bytes, got.length, &in), CRDI_DCP_GOOD);
            if (in.type == CRDI_DCP_DAT_INPUT_OUTPUT) {
                p->outputs++;
                memcpy(&p->last_output, in.payload, 8);
            }
            if (in.type >= CRDI_DCP_RSP_ACK && in.type <= CRDI_DCP_RSP_LOG_ACK && in.seq == seq &&
                answer) {
                *answer = in;
                return true;
            }
        }
        if (now >= until) { return false; }
    }
}

static void settle(place* p, double seconds)
{
    (void)pass(p, testnet_now(p->t) + seconds, 0, NULL);
}

// Sends a request until it is answered. A duplicate that was refused has been executed.
static crdi_dcp_pdu ask(place* p, int slave, crdi_dcp_pdu q)
{
    q.seq = p->seq[slave];
    q.peer = (uint8_t)(slave + 1);
    uint8_t bytes[RIG_BYTES];
    const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
    const double patience = p->transport == CRD_DCP_TCP ? 60 : 0.5;
    for (int i = 0; i < 200; i++) {
        crdi_dcp_pdu a;
        crdi_dcp_net_send(p->master, &p->at[slave], bytes, n);
        p->repeats += i > 0;
        if (pass(p, testnet_now(p->t) + patience, q.seq, &a)) {
            const uint16_t next = (uint16_t)(q.seq + 1);
            if (a.type == CRDI_DCP_RSP_NACK && a.error == CRD_DCP_E_INVALID_SEQUENCE_ID) {
                check_int(a.expected, next);
                a.type = CRDI_DCP_RSP_ACK;
            }
            p->seq[slave] = next;
            return a;
        }
    }
    fail_msg("no answer to 0x%02x", q.type);
    return (crdi_dcp_pdu){0};
}

static void say(place* p, int slave, crdi_dcp_pdu q)
{
    const crdi_dcp_pdu a = ask(p, slave, q);
    if (a.type != CRDI_DCP_RSP_ACK) { fail_msg("0x%02x: error 0x%04x", q.type, a.error); }
}

static void change(place* p, int slave, crdi_dcp_pdu q, int want)
{
    q.state = (uint8_t)p->state[slave];
    say(p, slave, q);
    for (int i = 0; i < 20 || p->state[slave] != want; i++) { // notifications may be lost
        if (i == 20) {
            fail_msg("slave %d stays in state %d, error 0x%04x", slave, p->state[slave],
                     crd_dcp_slave_error(p->r[slave]->slave));
        }
        const crdi_dcp_pdu a = ask(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        if (a.type == CRDI_DCP_RSP_STATE_ACK) { p->state[slave] = a.state; }
        if (p->state[slave] == want) { return; }
    }
}

static void log_in(place* p, int slave, crd_dcp_op_mode mode)
{
    crdi_dcp_pdu q = {.type = CRDI_DCP_STC_REGISTER, .op_mode = (uint8_t)mode, .major = 1};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    p->seq[slave] = (uint16_t)(65500 + 10 * slave);
    p->state[slave] = CRD_DCP_ALIVE;
    change(p, slave, q, CRD_DCP_CONFIGURATION);
}

// data_id 10 + slave: speed out to `target`; data_id 20 + slave: u in at port 9001 + slave.
static void configure(place* p, int slave, crd_dcp_address target)
{
    const uint16_t out = (uint16_t)(10 + slave), in = (uint16_t)(20 + slave);
    say(p, slave,
        (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100});
    say(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = out, .vr = 11});
    say(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = out, .steps = 1});
    say(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = out});
    say(p, slave,
        (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TARGET_NETWORK,
                       .id = out,
                       .transport = p->transport,
                       .port = target.port,
                       .address = target.ip});
    say(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = in, .vr = 1, .data_type = 9});
    say(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = in});
    say(p, slave,
        (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SOURCE_NETWORK,
                       .id = in,
                       .transport = p->transport,
                       .port = (uint16_t)(9001 + slave),
                       .address = p->near_ip});
}

static crd_dcp_address master_of(const place* p)
{
    return (crd_dcp_address){p->master_ip, 8081, p->transport};
}

static void make_ready(place* p, int slave)
{
    change(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}, CRD_DCP_PREPARED);
    change(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}, CRD_DCP_CONFIGURED);
}

static void run(place* p, int slave)
{
    change(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_SYNCHRONIZED);
    change(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_RUNNING);
}

static void log_out(place* p, int slave)
{
    change(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}, CRD_DCP_STOPPED);
    const crdi_dcp_pdu gone =
        ask(p, slave, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DEREGISTER, .state = CRD_DCP_STOPPED});
    check(gone.type == CRDI_DCP_RSP_ACK || gone.error == CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE);
    check_int(crd_dcp_slave_state(p->r[slave]->slave), CRD_DCP_ALIVE);
}

static void send_u(place* p, int slave, uint16_t seq, double u)
{
    uint8_t bytes[13] = {CRDI_DCP_DAT_INPUT_OUTPUT, (uint8_t)seq, (uint8_t)(seq >> 8),
                         (uint8_t)(20 + slave), 0};
    memcpy(bytes + 5, &u, 8);
    const crd_dcp_address to = {p->near_ip, (uint16_t)(9001 + slave), p->transport};
    crdi_dcp_net_send(p->master, &to, bytes, sizeof bytes);
}

static int ports_of(const crd_dcp_net* n)
{
    int count = 0;
    crd_dcp_address a;
    while (crd_dcp_net_local(n, count, &a)) {
        count++;
    }
    return count;
}

static void a_whole_session_passes_the_relay_with_its_data(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.seed = 5;
    o.there = o.back = (crdi_dcp_path){.delay = 0.02, .jitter = 0.002};
    for (int k = 0; k < 8; k++) { // UDP, TCP; two networks, one host; one relay, two
        const bool tcp = k & 1, one_host = k & 2, chain = k & 4;
        open_place(&p, &o, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, 1, one_host, chain);
        log_in(&p, 0, CRD_DCP_NRT);
        configure(&p, 0, master_of(&p));
        make_ready(&p, 0);
        run(&p, 0);
        const crd_dcp_address data = {p.near_ip, 9001, CRD_DCP_TCP};
        if (tcp) { check_ok(crdi_dcp_net_connect(p.master, &data)); }
        for (uint16_t i = 0; i < 20; i++) {
            send_u(&p, 0, i, 0.125 * (i + 1));
            settle(&p, tcp ? 0.5 : 0.1);
            change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1},
                   CRD_DCP_COMPUTED);
            check_near(p.r[0]->u, 0.125 * (i + 1), 0);
            change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
            settle(&p, tcp ? 0.5 : 0.1);
            check_int(p.outputs, i + 1);
            check_near(p.last_output, p.r[0]->speed, 0);
        }
        settle(&p, 1);
        const crdi_dcp_relay_counts c = crdi_dcp_relay_get_counts(p.relay);
        check_int(c.opened, 2);
        check_int(c.rewritten, 2);
        check_int(c.unmapped + c.outside + c.strangers + c.there.nowhere + c.back.nowhere, 0);
        // Every PDU that the slave got and sent has passed, data included.
        const crd_dcp_net_counts bench = crd_dcp_net_get_counts(p.bench[0]);
        check_int(bench.received, c.there.sent);
        check_int(bench.sent, c.back.received);
        check_int(crd_dcp_net_get_counts(p.master).sent, c.there.received);
        check_int(crd_dcp_net_get_counts(p.master).received, c.back.sent);
        log_out(&p, 0);
        settle(&p, 1);
        check_int(crdi_dcp_relay_get_counts(p.relay).closed, 2);
        check_int(ports_of(p.near), 1);
        check_int(ports_of(p.far), tcp ? 0 : 1);
        close_place(&p);
    }
}

static void ports_for_data_close_after_reset_clear_and_a_new_registration(void** state)
{
    static place p;
    open_place(&p, NULL, CRD_DCP_UDP, 1, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    configure(&p, 0, master_of(&p));
    check_int(ports_of(p.near), 2);
    check_int(ports_of(p.far), 2);
    configure(&p, 0, master_of(&p)); // the same again opens nothing
    check_int(crdi_dcp_relay_get_counts(p.relay).opened, 2);
    say(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_CLEAR});
    check_int(ports_of(p.near), 1);
    check_int(ports_of(p.far), 1);
    configure(&p, 0, master_of(&p));
    make_ready(&p, 0);
    check_int(crdi_dcp_relay_get_counts(p.relay).opened, 4);
    change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}, CRD_DCP_STOPPED);
    check_int(ports_of(p.near), 2);
    change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RESET}, CRD_DCP_CONFIGURATION);
    check_int(ports_of(p.near), 1);
    configure(&p, 0, master_of(&p));
    check_int(crdi_dcp_relay_get_counts(p.relay).opened, 6);
    // The slave dies and is there again; nobody has deregistered it.
    crd_dcp_slave_destroy(p.r[0]->slave);
    const crd_dcp_plant plant = rig_plant(p.r[0]);
    const crd_dcp_link link = crd_dcp_net_link(p.bench[0]);
    check_ok(crd_dcp_slave_create(p.r[0]->ctx, &p.r[0]->d, &plant, &link, NULL, &p.r[0]->slave));
    log_in(&p, 0, CRD_DCP_NRT);
    check_int(ports_of(p.near), 1);
    check_int(crdi_dcp_relay_get_counts(p.relay).closed, 6);
    close_place(&p);
}

static void ports_for_data_close_when_a_channel_is_silent_for_long(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.idle = 10;
    open_place(&p, &o, CRD_DCP_UDP, 1, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    configure(&p, 0, master_of(&p));
    settle(&p, 9);
    check_int(ports_of(p.near), 2);
    settle(&p, 3);
    check_int(ports_of(p.near), 1);
    check_int(ports_of(p.far), 1);
    check(isinf(crdi_dcp_relay_next(p.relay)));
    close_place(&p);
}

static void requests_that_follow_a_registration_at_once_keep_their_ports(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = o.back = (crdi_dcp_path){.delay = 0.1};
    open_place(&p, &o, CRD_DCP_UDP, 1, false, false);
    crdi_dcp_pdu q = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT, .major = 1, .peer = 1};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    uint8_t bytes[64];
    crdi_dcp_net_send(p.master, &p.at[0], bytes, crdi_dcp_encode(&q, bytes, sizeof bytes));
    q = (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SOURCE_NETWORK,
                       .seq = 1,
                       .peer = 1,
                       .id = 20,
                       .port = 9001,
                       .address = NEAR_IP};
    crdi_dcp_net_send(p.master, &p.at[0], bytes, crdi_dcp_encode(&q, bytes, sizeof bytes));
    settle(&p, 1);
    check_int(crd_dcp_slave_get_counts(p.r[0]->slave).acks, 2);
    check_int(ports_of(p.near), 2);
    close_place(&p);
}

static void two_slaves_exchange_data_through_the_relay(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.there = (crdi_dcp_path){.delay = 0.02};
    o.back = (crdi_dcp_path){.delay = 0.03};
    for (int k = 0; k < 4; k++) {
        const bool tcp = k & 1, one_host = k & 2;
        open_place(&p, &o, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, 2, one_host, false);
        for (int i = 0; i < 2; i++) {
            log_in(&p, i, CRD_DCP_NRT);
        }
        // What slave 0 sends is an input of slave 1, which its master knows at the relay. Its
        // data_id is that of the input.
        configure(&p, 0, (crd_dcp_address){p.near_ip, 9002, p.transport});
        configure(&p, 1, master_of(&p));
        say(&p, 1, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = 10, .vr = 2, .data_type = 9});
        say(&p, 1, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 10});
        say(&p, 1,
            (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SOURCE_NETWORK,
                           .id = 10,
                           .transport = p.transport,
                           .port = 9002,
                           .address = p.near_ip});
        for (int i = 0; i < 2; i++) {
            change(&p, i, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}, CRD_DCP_PREPARED);
        }
        for (int i = 0; i < 2; i++) {
            change(&p, i, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}, CRD_DCP_CONFIGURED);
        }
        for (int i = 0; i < 2; i++) {
            run(&p, i);
        }
        p.r[0]->u = 7;
        change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1}, CRD_DCP_COMPUTED);
        change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
        settle(&p, 1);
        change(&p, 1, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1}, CRD_DCP_COMPUTED);
        check(p.r[0]->speed != 0);
        check_near(p.r[1]->torque, p.r[0]->speed, 0);
        check_int(crdi_dcp_relay_get_counts(p.relay).unmapped, 0);
        // One slave goes: the other's ports stay.
        log_out(&p, 0);
        settle(&p, 1);
        check_int(ports_of(p.near), 3);
        log_out(&p, 1);
        settle(&p, 1);
        check_int(ports_of(p.near), 2);
        check_int(ports_of(p.far), tcp ? 0 : 2);
        close_place(&p);
    }
}

static void a_master_that_keeps_to_control_only_is_handed_on_word_by_word(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.control_only = true;
    open_place(&p, &o, CRD_DCP_UDP, 1, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    // The relay's far address is the slave's master: other targets are refused by it.
    const crdi_dcp_pdu a =
        ask(&p, 0,
            (crdi_dcp_pdu){
                .type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 10, .port = 8081, .address = MASTER});
    check_int(a.error, CRD_DCP_E_INVALID_NETWORK_INFORMATION);
    check_int(crdi_dcp_relay_get_counts(p.relay).opened, 0);
    close_place(&p);
}

static void addresses_that_are_not_the_relays_are_left_alone(void** state)
{
    static place p;
    open_place(&p, NULL, CRD_DCP_UDP, 2, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    // Its own address as a source, the other slave's as a target.
    say(&p, 0,
        (crdi_dcp_pdu){
            .type = CRDI_DCP_CFG_SOURCE_NETWORK, .id = 20, .port = 9001, .address = SLAVE});
    const crdi_dcp_pdu a =
        ask(&p, 0,
            (crdi_dcp_pdu){
                .type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 10, .port = 9002, .address = SLAVE + 1});
    check_int(a.error, CRD_DCP_E_INVALID_NETWORK_INFORMATION); // not in the slave's list
    check_int(crdi_dcp_relay_get_counts(p.relay).outside, 2);
    check_int(crdi_dcp_relay_get_counts(p.relay).opened, 0);
    close_place(&p);
}

static void a_port_that_is_taken_is_said_and_counted(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.max_maps = 3;
    open_place(&p, &o, CRD_DCP_UDP, 2, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    log_in(&p, 1, CRD_DCP_NRT);
    const crdi_dcp_pdu q = {
        .type = CRDI_DCP_CFG_SOURCE_NETWORK, .id = 20, .port = 9001, .address = NEAR_IP};
    say(&p, 0, q);
    (void)ask(&p, 1, q);
    check_int(crdi_dcp_relay_get_counts(p.relay).unmapped, 1);
    for (uint16_t i = 0; i < 3; i++) {
        crdi_dcp_pdu more = q;
        more.port = (uint16_t)(9100 + i);
        (void)ask(&p, 0, more);
    }
    check_int(crdi_dcp_relay_get_counts(p.relay).unmapped, 2); // three at most
    close_place(&p);
}

static void answers_go_to_who_has_asked_and_strangers_do_not_rule(void** state)
{
    static place p;
    open_place(&p, NULL, CRD_DCP_UDP, 1, false, false);
    crd_dcp_net *scout, *stranger;
    check_ok(testnet_join(p.t, MASTER, &scout));
    check_ok(testnet_join(p.t, MASTER + 1, &stranger));
    log_in(&p, 0, CRD_DCP_NRT);
    uint8_t bytes[64];
    const crdi_dcp_pdu state_q = {.type = CRDI_DCP_INF_STATE, .seq = 4242, .peer = 1};
    crd_dcp_packet got;
    crdi_dcp_pdu in;
    crd_dcp_net* both[] = {scout, stranger};
    for (int i = 0; i < 2; i++) {
        crdi_dcp_net_send(both[i], &p.at[0], bytes, crdi_dcp_encode(&state_q, bytes, sizeof bytes));
        settle(&p, 0.1);
        check(crd_dcp_net_receive(both[i], &got));
        check_int(crdi_dcp_decode(got.bytes, got.length, &in), CRDI_DCP_GOOD);
        check_int(in.seq, 4242);
        check(crd_dcp_address_equal(&got.from, &p.at[0]));
        check(!crd_dcp_net_receive(both[i], &got));
    }
    const crdi_dcp_pdu end = {.type = CRDI_DCP_STC_DEREGISTER,
                              .seq = p.seq[0],
                              .peer = 1,
                              .state = CRD_DCP_CONFIGURATION};
    crdi_dcp_net_send(stranger, &p.at[0], bytes, crdi_dcp_encode(&end, bytes, sizeof bytes));
    settle(&p, 0.1);
    check_int(crd_dcp_slave_state(p.r[0]->slave), CRD_DCP_CONFIGURATION);
    check_int(crdi_dcp_relay_get_counts(p.relay).strangers, 1);
    // The master's notifications still come to it.
    configure(&p, 0, master_of(&p));
    make_ready(&p, 0);
    check_int(crd_dcp_net_get_counts(scout).received, 1);
    crd_dcp_net_destroy(scout);
    crd_dcp_net_destroy(stranger);
    close_place(&p);
}

static void a_stream_that_ends_on_one_side_ends_on_the_other(void** state)
{
    static place p;
    open_place(&p, NULL, CRD_DCP_TCP, 1, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    settle(&p, 0.5);
    check_int(crd_dcp_net_get_counts(p.bench[0]).connections, 1);
    crd_dcp_net_close(p.master, &p.at[0]);
    settle(&p, 1);
    check_int(crd_dcp_net_get_counts(p.bench[0]).connections, 0);
    // A new one goes on.
    check_ok(crdi_dcp_net_connect(p.master, &p.at[0]));
    say(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_CLEAR});
    settle(&p, 0.5);
    check_int(crd_dcp_net_get_counts(p.bench[0]).connections, 1);
    // And the slave's end.
    crd_dcp_address peer;
    check(crd_dcp_net_local(p.near, 0, &peer));
    const crd_dcp_address control = {SLAVE, 8090, CRD_DCP_TCP};
    crd_dcp_net_close(p.bench[0], &control);
    settle(&p, 1);
    check(!crdi_dcp_net_connected(p.master, &p.at[0]));
    close_place(&p);
}

static void a_million_datagrams_over_a_bad_relay_are_all_accounted_for(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.seed = 9;
    open_place(&p, &o, CRD_DCP_UDP, 1, false, false);
    log_in(&p, 0, CRD_DCP_SRT);
    configure(&p, 0, master_of(&p));
    make_ready(&p, 0);
    change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN, .time = 50000}, CRD_DCP_SYNCHRONIZING);
    // The same ports in a relay that has become bad: its maps are the first one's.
    const crd_dcp_slave_counts before = crd_dcp_slave_get_counts(p.r[0]->slave);
    crd_dcp_address data = {0};
    check(crd_dcp_net_local(p.bench[0], 1, &data));
    crdi_dcp_relay_destroy(p.relay);
    crd_dcp_net_close(p.near, &p.at[0]);
    o.far_ip = FAR_IP;
    o.there = (crdi_dcp_path){
        .delay = 0.2, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2, .reorder = 0.1, .hold = 0.05};
    check_ok(crdi_dcp_relay_create(p.ctx, p.near, p.far, &o, &p.relay));
    crd_dcp_address at = {NEAR_IP, 9001, CRD_DCP_UDP};
    check_ok(crdi_dcp_relay_add(p.relay, &at, &data));
    enum { COUNT = 1000000 };
    double last = 0;
    for (int i = 0; i < COUNT; i++) {
        send_u(&p, 0, (uint16_t)i, i + 1.0);
        settle(&p, 0.001);
        const double u = p.r[0]->u;
        if (!(u >= last && u <= i + 1.0 && u == floor(u))) { fail_msg("u = %g at %d", u, i); }
        last = u;
    }
    settle(&p, 2);
    const crdi_dcp_path_counts c = crdi_dcp_relay_get_counts(p.relay).there;
    const crd_dcp_slave_counts s = crd_dcp_slave_get_counts(p.r[0]->slave);
    check_sum(&c);
    check_int(c.received, COUNT);
    check_int(c.waiting + c.no_room + c.unsent + c.nowhere + c.queue_full, 0);
    check_int(c.sent, COUNT + c.duplicated - c.lost);
    check_near((double)c.lost / COUNT, 0.3, 0.003);
    check_near((double)c.duplicated / (double)(COUNT - c.lost), 0.2, 0.003);
    check(c.reordered > COUNT / 2);
    // Delivered to the slave: taken or too old.
    check_int(s.data_in - before.data_in + s.data_old + s.data_dropped, c.sent);
    check_int(s.data_dropped, 0);
    check(p.r[0]->u > COUNT - 200);
    check_int(crd_dcp_slave_state(p.r[0]->slave), CRD_DCP_SYNCHRONIZING);
    close_place(&p);
}

static void a_session_over_a_bad_relay_does_each_step_once(void** state)
{
    static place p;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.seed = 21;
    o.there = o.back = (crdi_dcp_path){.delay = 0.1,
                                       .jitter = 0.1,
                                       .loss = 0.3,
                                       .duplicate = 0.2,
                                       .reorder = 0.1,
                                       .burst = 0.02,
                                       .burst_length = 3};
    open_place(&p, &o, CRD_DCP_UDP, 1, false, false);
    log_in(&p, 0, CRD_DCP_NRT);
    configure(&p, 0, master_of(&p));
    make_ready(&p, 0);
    run(&p, 0);
    double last = 0;
    for (uint16_t i = 0; i < 100; i++) {
        send_u(&p, 0, i, 0.125 * (i + 1));
        change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1}, CRD_DCP_COMPUTED);
        check_int(p.r[0]->step_count, i + 1);
        const double k = p.r[0]->u / 0.125; // one that was sent, none older than the last
        check_near(k, round(k), 0);
        check(p.r[0]->u >= last && k <= i + 1);
        last = p.r[0]->u;
        change(&p, 0, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
    }
    check(p.repeats > 100);
    log_out(&p, 0);
    settle(&p, 5);
    const crdi_dcp_relay_counts c = crdi_dcp_relay_get_counts(p.relay);
    check_int(c.there.waiting + c.back.waiting, 0);
    close_place(&p);
}

static void one_net_serves_both_sides(void** state)
{
    static line l;
    open_line(&l, NULL, CRD_DCP_UDP);
    crdi_dcp_relay* r = NULL;
    crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
    o.far_ip = NEAR_IP;
    check_ok(crdi_dcp_relay_create(l.ctx, l.near, l.near, &o, &r));
    crd_dcp_address at = {NEAR_IP, 7000, CRD_DCP_UDP}, to = l.to;
    check_ok(crdi_dcp_relay_add(r, &at, &to));
    const uint8_t q[4] = {CRDI_DCP_INF_STATE, 9, 0, 1}, a[5] = {CRDI_DCP_RSP_STATE_ACK, 9, 0, 1, 0};
    crd_dcp_packet p;
    check(crdi_dcp_net_send(l.a, &at, q, sizeof q));
    (void)crdi_dcp_relay_poll(r);
    check(crd_dcp_net_receive(l.b, &p));
    check_int(p.length, 4);
    check(crdi_dcp_net_send(l.b, &p.from, a, sizeof a));
    (void)crdi_dcp_relay_poll(r);
    check(crd_dcp_net_receive(l.a, &p));
    check_int(p.length, 5);
    check(crd_dcp_address_equal(&p.from, &at));
    crdi_dcp_relay_destroy(r);
    close_line(&l);
}

static bool next_packet(crd_dcp_net* n, crd_dcp_packet* p)
{
    for (int i = 0; i < 2000; i++) {
        if (crd_dcp_net_receive(n, p)) { return true; }
        crd_dcp_net_wait(n, 0.01);
    }
    return false;
}

static void sockets_send_from_the_address_that_is_wanted(void** state)
{
    check_allocator allocator;
    crd_context* ctx = check_context(&allocator);
    crd_dcp_net *a = NULL, *b = NULL;
    check_ok(crd_dcp_net_create(ctx, &a));
    check_ok(crd_dcp_net_create(ctx, &b));
    crd_dcp_address first = {HOST, 0, CRD_DCP_UDP}, second = {HOST + 1, 0, CRD_DCP_UDP};
    crd_dcp_address to = {HOST, 0, CRD_DCP_UDP}, stream = {HOST, 0, CRD_DCP_TCP};
    check_ok(crd_dcp_net_listen(a, &first));
    check_ok(crd_dcp_net_listen(a, &second));
    check_ok(crd_dcp_net_listen(b, &to));
    check_ok(crd_dcp_net_listen(b, &stream));
    check(crd_dcp_net_descriptor(a) >= 0);
    crd_dcp_packet p;
    const crd_dcp_address gone = {HOST + 5, 9, CRD_DCP_UDP};
    const crd_dcp_address* from[] = {&second, &first, NULL, &gone};
    for (int i = 0; i < 4; i++) {
        check(crdi_dcp_net_send_from(a, from[i], &to, (const uint8_t*)"x", 1));
        check(next_packet(b, &p));
        check(crd_dcp_address_equal(&p.from, i == 0 ? &second : &first));
    }
    // Two streams to the same peer, from two addresses.
    for (uint32_t i = 0; i < 2; i++) {
        const crd_dcp_address own = {HOST + i, 0, CRD_DCP_TCP};
        check_ok(crdi_dcp_net_connect_from(a, own.ip, &stream));
        check(crdi_dcp_net_send_from(a, &own, &stream, (const uint8_t*)"y", 1));
    }
    uint32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2000 && !crd_dcp_net_receive(b, &p); k++) {
            (void)crd_dcp_net_receive(a, &p); // lets it connect
            crd_dcp_net_wait(b, 0.01);
        }
        sum += p.from.ip - HOST;
        check_int(p.from.transport, CRD_DCP_TCP);
    }
    check_int(sum, 1);
    crd_dcp_net_destroy(a);
    crd_dcp_net_destroy(b);
    crd_context_destroy(ctx);
    check_int(allocator.live, 0);
}

static void every_allocation_may_fail(void** state)
{
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        testnet* t = NULL;
        crd_dcp_net *near = NULL, *far = NULL;
        crdi_dcp_relay* r = NULL;
        check_ok(testnet_create(ctx, NULL, &t));
        check_ok(testnet_join(t, NEAR_IP, &near));
        check_ok(testnet_join(t, FAR_IP, &far));
        a.fail_at = a.allocations + n;
        crd_dcp_address at = {NEAR_IP, 7000, CRD_DCP_UDP};
        const crd_dcp_address to = {SLAVE, 8080, CRD_DCP_UDP};
        crdi_dcp_relay_options o = crdi_dcp_relay_defaults();
        o.far_ip = FAR_IP;
        crd_status st = crdi_dcp_relay_create(ctx, near, far, &o, &r);
        if (st == CRD_OK) { st = crdi_dcp_relay_add(r, &at, &to); }
        done = st == CRD_OK;
        if (!done) { check_int(st, CRD_E_MEMORY); }
        crdi_dcp_relay_destroy(r);
        crd_dcp_net_destroy(near);
        crd_dcp_net_destroy(far);
        testnet_destroy(t);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        check(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_have_their_mean_spread_and_correlation),
        cmocka_unit_test(gamma_delays_have_the_tail_of_their_distribution),
        cmocka_unit_test(datagrams_are_lost_doubled_damaged_and_held_in_their_parts),
        cmocka_unit_test(bursts_have_their_length_and_frequency),
        cmocka_unit_test(jitter_reorders_unless_the_path_keeps_the_order),
        cmocka_unit_test(the_rate_is_kept_and_its_queue_is_bounded),
        cmocka_unit_test(memory_is_bounded_and_what_finds_none_is_counted),
        cmocka_unit_test(a_recording_of_latencies_is_played_over_and_over),
        cmocka_unit_test(nothing_passes_in_a_cut),
        cmocka_unit_test(a_stream_stays_whole_and_a_loss_costs_it_time),
        cmocka_unit_test(
            equal_seeds_give_equal_fates_and_a_change_of_one_setting_leaves_the_others),
        cmocka_unit_test(settings_that_make_no_sense_are_named),
        cmocka_unit_test(a_whole_session_passes_the_relay_with_its_data),
        cmocka_unit_test(ports_for_data_close_after_reset_clear_and_a_new_registration),
        cmocka_unit_test(ports_for_data_close_when_a_channel_is_silent_for_long),
        cmocka_unit_test(requests_that_follow_a_registration_at_once_keep_their_ports),
        cmocka_unit_test(two_slaves_exchange_data_through_the_relay),
        cmocka_unit_test(a_master_that_keeps_to_control_only_is_handed_on_word_by_word),
        cmocka_unit_test(addresses_that_are_not_the_relays_are_left_alone),
        cmocka_unit_test(a_port_that_is_taken_is_said_and_counted),
        cmocka_unit_test(answers_go_to_who_has_asked_and_strangers_do_not_rule),
        cmocka_unit_test(a_stream_that_ends_on_one_side_ends_on_the_other),
        cmocka_unit_test(a_session_over_a_bad_relay_does_each_step_once),
        cmocka_unit_test(a_million_datagrams_over_a_bad_relay_are_all_accounted_for),
        cmocka_unit_test(one_net_serves_both_sides),
        cmocka_unit_test(sockets_send_from_the_address_that_is_wanted),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
