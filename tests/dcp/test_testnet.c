#include "check.h"
#include "shared/dcp.h"
#include "testnet/testnet.h"

#include <stdio.h>

enum { A = 0x0A000001, B = 0x0A000002 };

static check_allocator allocator; // of the place

typedef struct place {
    crd_context* ctx;
    testnet* t;
    crd_dcp_net *a, *b;
    crd_dcp_address at_a, at_b; // UDP
    crd_dcp_address tcp_b;
} place;

static crd_dcp_address listening(crd_dcp_net* n, uint16_t port, uint8_t transport)
{
    crd_dcp_address at = {.port = port, .transport = transport};
    check_ok(crd_dcp_net_listen(n, &at));
    return at;
}

static place open_place(const testnet_faults* faults)
{
    place p = {0};
    p.ctx = check_context(&allocator);
    check_ok(testnet_create(p.ctx, faults, &p.t));
    check_ok(testnet_join(p.t, A, &p.a));
    check_ok(testnet_join(p.t, B, &p.b));
    p.at_a = listening(p.a, 8081, CRD_DCP_UDP);
    p.at_b = listening(p.b, 8080, CRD_DCP_UDP);
    p.tcp_b = listening(p.b, 8080, CRD_DCP_TCP);
    return p;
}

static void close_place(place* p)
{
    crd_dcp_net_destroy(p->a);
    testnet_destroy(p->t); // between its nets, to show that the order is free
    crd_dcp_net_destroy(p->b);
    crd_context_destroy(p->ctx);
    check_int(allocator.live, 0);
}

static void send_number(crd_dcp_net* n, const crd_dcp_address* to, uint32_t x)
{
    const uint8_t bytes[8] = {
        (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24), 0x55, 0x55, 0x55,
        0x55};
    check(crdi_dcp_net_send(n, to, bytes, sizeof bytes));
}

static uint32_t number_of(const crd_dcp_packet* p)
{
    return p->bytes[0] | (uint32_t)p->bytes[1] << 8 | (uint32_t)p->bytes[2] << 16 |
           (uint32_t)p->bytes[3] << 24;
}

// ---- the clock ---------------------------------------------------------------------------------

static void the_clock_goes_from_arrival_to_arrival_and_not_beyond(void** state)
{
    place p = open_place(&(testnet_faults){.delay = 0.25, .start = 1000});
    crd_dcp_packet got;
    check_near(testnet_now(p.t), 1000, 0);
    send_number(p.a, &p.at_b, 1);
    check_near(testnet_advance(p.t, 1000.125), 1000.125, 0);
    check(!crd_dcp_net_receive(p.b, &got));
    send_number(p.a, &p.at_b, 2);
    check_near(testnet_advance(p.t, 2000), 1000.25, 0);
    check(crd_dcp_net_receive(p.b, &got));
    check_int(number_of(&got), 1);
    check_near(got.time, 1000.25, 0);
    check(crd_dcp_address_equal(&got.from, &p.at_a));
    check(crd_dcp_address_equal(&got.at, &p.at_b));
    check(!crd_dcp_net_receive(p.b, &got));
    check_near(testnet_advance(p.t, 10), 1000.25, 0); // never back
    check_near(testnet_advance(p.t, INFINITY), 1000.375, 0);
    check(crd_dcp_net_receive(p.b, &got));
    check_near(testnet_advance(p.t, INFINITY), 1000.375, 0); // nothing to come
    check_near(crd_dcp_net_now(p.b), 1000.375, 0);
    crd_dcp_net_wait(p.b, 0.5);
    check_near(crd_dcp_net_now(p.a), 1000.875, 0);
    send_number(p.a, &p.at_b, 3);
    crd_dcp_net_wait(p.b, 10); // until it comes
    check_near(crd_dcp_net_now(p.a), 1001.125, 0);
    crd_dcp_net_wait(p.b, 10); // it has come: no waiting
    check_near(crd_dcp_net_now(p.a), 1001.125, 0);
    close_place(&p);
}

static void without_delay_an_answer_is_there_at_once(void** state)
{
    place p = open_place(NULL);
    crd_dcp_packet got;
    for (uint32_t i = 0; i < 100; i++) {
        send_number(p.a, &p.at_b, i);
        check(crd_dcp_net_receive(p.b, &got));
        check_int(number_of(&got), i);
        send_number(p.b, &got.from, i + 1);
        check(crd_dcp_net_receive(p.a, &got));
        check_int(number_of(&got), i + 1);
    }
    check_near(testnet_now(p.t), 0, 0);
    close_place(&p);
}

// ---- chance ------------------------------------------------------------------------------------

// Everything that arrives at b while a sends `count` packets, one every ms, hashed with its time.
static uint64_t history(const testnet_faults* f, uint32_t count,
                        const crd_dcp_address* (*to)(place*))
{
    place p = open_place(f);
    if (to(&p)->transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(p.a, to(&p))); }
    uint64_t hash = 0xCBF29CE484222325U;
    crd_dcp_packet got;
    for (uint32_t i = 0; i < count + 1000; i++) {
        if (i < count) { send_number(p.a, to(&p), i); }
        while (testnet_now(p.t) < 1e-3 * i) {
            (void)testnet_advance(p.t, 1e-3 * i);
        }
        while (crd_dcp_net_receive(p.b, &got)) {
            uint8_t all[16];
            memcpy(all, got.bytes, 8);
            memcpy(all + 8, &got.time, 8);
            for (int k = 0; k < 16; k++) {
                hash = (hash ^ all[k]) * 0x100000001B3U;
            }
        }
    }
    close_place(&p);
    return hash;
}

static const crd_dcp_address* over_udp(place* p)
{
    return &p->at_b;
}

static const crd_dcp_address* over_tcp(place* p)
{
    return &p->tcp_b;
}

static void equal_seeds_give_equal_runs(void** state)
{
    testnet_faults f = {
        .delay = 0.002, .jitter = 0.01, .loss = 0.1, .duplicate = 0.1, .corrupt = 0.1, .seed = 7};
    const uint64_t udp = history(&f, 3000, over_udp), tcp = history(&f, 3000, over_tcp);
    check(history(&f, 3000, over_udp) == udp);
    check(history(&f, 3000, over_tcp) == tcp);
    f.seed = 8;
    check(history(&f, 3000, over_udp) != udp);
    check(history(&f, 3000, over_tcp) != tcp);
}

// Within 5 standard deviations of a binomial distribution; the seed is fixed, so is the outcome.
static void check_part(int64_t count, int64_t of, double part)
{
    const double n = (double)of;
    check_near((double)count, n * part, 5 * sqrt(n * part * (1 - part)));
}

static void losses_copies_and_damages_come_as_often_as_said(void** state)
{
    enum { N = 100000 };
    const testnet_faults f = {.loss = 0.05, .duplicate = 0.03, .corrupt = 0.02, .seed = 1};
    place p = open_place(&f);
    static uint8_t times[N];
    memset(times, 0, sizeof times);
    int64_t damaged = 0, received = 0;
    crd_dcp_packet got;
    for (uint32_t i = 0; i < N; i++) {
        send_number(p.a, &p.at_b, i);
        while (crd_dcp_net_receive(p.b, &got)) {
            received++;
            uint8_t want[8] = {
                (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16), 0, 0x55, 0x55, 0x55, 0x55};
            int differences = 0;
            for (int k = 0; k < 8; k++) {
                differences += got.bytes[k] != want[k];
            }
            check(differences <= 1);
            damaged += differences;
            times[i]++;
        }
    }
    int64_t lost = 0, doubled = 0;
    for (int i = 0; i < N; i++) {
        check(times[i] <= 2);
        lost += times[i] == 0;
        doubled += times[i] == 2;
    }
    check_part(lost, N, f.loss);
    check_part(doubled, N - lost, f.duplicate);
    check_part(damaged, N - lost, f.corrupt);
    const testnet_counts c = testnet_get_counts(p.t);
    check_int(c.sent, N);
    check_int(c.lost, lost);
    check_int(c.duplicated, doubled);
    check_int(c.corrupted, damaged);
    check_int(c.delivered, received);
    check_int(received, N - lost + doubled);
    close_place(&p);
}

static void delays_are_uniform_and_reorder(void** state)
{
    enum { N = 20000 };
    place p = open_place(&(testnet_faults){.delay = 1, .jitter = 2, .seed = 5});
    for (uint32_t i = 0; i < N; i++) {
        send_number(p.a, &p.at_b, i);
    }
    double sum = 0, squares = 0;
    uint32_t last = 0, inversions = 0;
    for (int i = 0; i < N; i++) {
        crd_dcp_packet got;
        const double now = testnet_advance(p.t, INFINITY);
        check(crd_dcp_net_receive(p.b, &got));
        check_near(got.time, now, 0);
        check(now >= 1 && now < 3);
        sum += now;
        squares += (now - 2) * (now - 2);
        inversions += number_of(&got) < last;
        last = number_of(&got);
    }
    // mean 2, variance jitter^2/12 = 1/3 with standard deviation sqrt(1/5 - 1/9) of a square
    check_near(sum / N, 2, 5 * sqrt(1.0 / 3 / N));
    check_near(squares / N, 1.0 / 3, 5 * sqrt((0.2 - 1.0 / 9) / N));
    check_part(inversions, N - 1, 0.5); // a random order
    close_place(&p);
}

static void without_jitter_the_order_stays(void** state)
{
    place p = open_place(&(testnet_faults){.delay = 1, .duplicate = 0.5, .seed = 5});
    crd_dcp_packet got;
    uint32_t last = 0, count = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        send_number(p.a, &p.at_b, i);
    }
    (void)testnet_advance(p.t, INFINITY);
    while (crd_dcp_net_receive(p.b, &got)) {
        check(number_of(&got) >= last);
        last = number_of(&got);
        count++;
    }
    check_int(last, 999);
    check(count > 1300);
    close_place(&p);
}

// What a packet meets does not depend on what happens to others, so that two runs that differ in
// one fault can be compared packet by packet.
static void one_fault_more_leaves_the_others_as_they_were(void** state)
{
    enum { N = 2000 };
    static double times[2][N];
    for (int run = 0; run < 2; run++) {
        place p = open_place(
            &(testnet_faults){.delay = 1, .jitter = 1, .loss = run ? 0.3 : 0, .seed = 9});
        for (int i = 0; i < N; i++) {
            times[run][i] = 0;
            send_number(p.a, &p.at_b, (uint32_t)i);
        }
        crd_dcp_packet got;
        (void)testnet_advance(p.t, 0.5);
        while (testnet_advance(p.t, 3) < 3) {
            while (crd_dcp_net_receive(p.b, &got)) {
                times[run][number_of(&got)] = got.time;
            }
        }
        close_place(&p);
    }
    int lost = 0;
    for (int i = 0; i < N; i++) {
        lost += times[1][i] == 0;
        check(times[1][i] == 0 || times[1][i] == times[0][i]);
    }
    check_part(lost, N, 0.3);
}

static void faults_can_change_on_the_way_and_must_make_sense(void** state)
{
    place p = open_place(&(testnet_faults){.seed = 1});
    crd_dcp_packet got;
    check_ok(testnet_set(p.t, &(testnet_faults){.loss = 1}));
    send_number(p.a, &p.at_b, 1);
    check(!crd_dcp_net_receive(p.b, &got));
    check_ok(testnet_set(p.t, &(testnet_faults){.delay = 1}));
    send_number(p.a, &p.at_b, 2);
    check_near(testnet_advance(p.t, 5), 1, 0);
    check(crd_dcp_net_receive(p.b, &got));
    check_int(number_of(&got), 2);
    const testnet_faults bad[] = {
        {.delay = -1},  {.jitter = NAN},     {.loss = 1.5}, {.duplicate = -0.1},
        {.corrupt = 2}, {.delay = INFINITY}, {.start = -5},
    };
    static const char* const names[] = {"delay = -1",       "jitter = nan", "loss = 1.5",
                                        "duplicate = -0.1", "corrupt = 2",  "delay = inf",
                                        "start = -5"};
    for (int i = 0; i < 7; i++) {
        testnet* t = NULL;
        check_status(testnet_set(p.t, &bad[i]), CRD_E_RANGE);
        check_contains(crd_error_text(p.ctx), names[i]);
        check_status(testnet_create(p.ctx, &bad[i], &t), CRD_E_RANGE);
        check(!t);
    }
    close_place(&p);
}

// ---- streams -----------------------------------------------------------------------------------

static void a_stream_loses_nothing_and_keeps_the_order_whatever_the_faults(void** state)
{
    place p = open_place(&(testnet_faults){
        .delay = 0.01, .jitter = 0.05, .loss = 0.4, .duplicate = 0.3, .corrupt = 0.3, .seed = 3});
    crd_dcp_packet got;
    crd_dcp_address from = {0};
    check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
    for (uint32_t i = 0; i < 2000; i++) {
        send_number(p.a, &p.tcp_b, i);
        (void)testnet_advance(p.t, testnet_now(p.t) + 0.001);
    }
    uint32_t next = 0;
    double last = 0;
    for (double now = -1; now != testnet_now(p.t);) {
        while (crd_dcp_net_receive(p.b, &got)) {
            check_int(number_of(&got), next);
            check_int(got.bytes[7], 0x55);
            check(got.time >= last);
            last = got.time;
            from = got.from;
            next++;
        }
        now = testnet_now(p.t);
        (void)testnet_advance(p.t, INFINITY);
    }
    check_int(next, 2000);
    // the expected number of repetitions is p/(1 - p) with p = 1 - 0.6*0.7
    const int64_t repeated = testnet_get_counts(p.t).repeated;
    check_near((double)repeated, 2000 * 0.58 / 0.42, 5 * sqrt(2000 * 0.58) / 0.42);
    send_number(p.b, &from, 5); // and back
    (void)testnet_advance(p.t, INFINITY);
    check(crd_dcp_net_receive(p.a, &got));
    check(crd_dcp_address_equal(&got.from, &p.tcp_b));
    check_ok(testnet_set(p.t, &(testnet_faults){.delay = 0.01, .loss = 1}));
    send_number(p.a, &p.tcp_b, 6); // even now
    (void)testnet_advance(p.t, INFINITY);
    check(crd_dcp_net_receive(p.b, &got));
    close_place(&p);
}

static void a_stream_ends_behind_its_last_PDU_and_can_be_opened_again(void** state)
{
    place p = open_place(&(testnet_faults){.delay = 0.5});
    crd_dcp_packet got;
    check(!crdi_dcp_net_send(p.a, &p.tcp_b, (const uint8_t*)"x", 1)); // not connected
    check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
    check(!crdi_dcp_net_connected(p.a, &p.tcp_b));
    send_number(p.a, &p.tcp_b, 1); // waits for the connection: a round trip
    check_near(testnet_advance(p.t, INFINITY), 1.5, 0);
    check(crdi_dcp_net_connected(p.a, &p.tcp_b));
    check(crd_dcp_net_receive(p.b, &got));
    const crd_dcp_address from = got.from;
    check_int(from.ip, A);
    send_number(p.b, &from, 2);
    crd_dcp_net_close(p.b, &p.tcp_b); // listener and all that came in
    check(!crdi_dcp_net_send(p.b, &from, (const uint8_t*)"x", 1));
    send_number(p.a, &p.tcp_b, 3); // a does not know yet
    (void)testnet_advance(p.t, 2.0);
    check(crd_dcp_net_receive(p.a, &got));
    check_int(number_of(&got), 2);
    check(!crdi_dcp_net_connected(p.a, &p.tcp_b));
    check_int(crd_dcp_net_get_counts(p.a).lost, 1);
    check_int(crd_dcp_net_get_counts(p.a).connections, 0);
    check(!crd_dcp_net_receive(p.b, &got));
    check_int(testnet_get_counts(p.t).nowhere, 1);
    check(!crdi_dcp_net_send(p.a, &p.tcp_b, (const uint8_t*)"x", 1)); // nobody listens
    check_status(crdi_dcp_net_connect(p.a, &p.tcp_b), CRD_E_IO);
    check_contains(crd_error_text(p.ctx), "tcp://10.0.0.2:8080");
    check_ok(crd_dcp_net_listen(p.b, &p.tcp_b));
    check(!crdi_dcp_net_send(p.a, &p.tcp_b, (const uint8_t*)"x", 1)); // too early for the next try
    (void)testnet_advance(p.t, 3);
    send_number(p.a, &p.tcp_b, 4); // opens it again
    (void)testnet_advance(p.t, INFINITY);
    check(crd_dcp_net_receive(p.b, &got));
    check_int(number_of(&got), 4);
    check_int(crd_dcp_net_get_counts(p.b).connections, 1);
    crd_dcp_net_close(p.a, &p.tcp_b);
    (void)testnet_advance(p.t, INFINITY);
    check_int(crd_dcp_net_get_counts(p.b).connections, 0);
    check_int(crd_dcp_net_get_counts(p.b).lost, 1);
    check(!crdi_dcp_net_send(p.a, &p.tcp_b, (const uint8_t*)"x", 1));
    close_place(&p);
}

static void what_was_on_its_way_does_not_get_into_the_next_connection(void** state)
{
    for (int run = 0; run < 2; run++) {
        place p = open_place(&(testnet_faults){.delay = 5});
        crd_dcp_packet got;
        check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
        send_number(p.a, &p.tcp_b, 1); // there at 15 s
        check_ok(testnet_set(p.t, &(testnet_faults){.delay = 0.5}));
        crd_dcp_net_close(p.b, &p.tcp_b);
        check_ok(crd_dcp_net_listen(p.b, &p.tcp_b));
        (void)testnet_advance(p.t, 1);
        check(!crdi_dcp_net_connected(p.a, &p.tcp_b));
        (void)testnet_advance(p.t, 1);
        if (run == 1) { // a new one instead of the old one opened again
            crd_dcp_net_close(p.a, &p.tcp_b);
            check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
        }
        send_number(p.a, &p.tcp_b, 2);
        check_near(testnet_advance(p.t, INFINITY), 2.5, 0);
        check(crd_dcp_net_receive(p.b, &got));
        check_int(number_of(&got), 2);
        check_near(testnet_advance(p.t, INFINITY), 15, 0);
        check(!crd_dcp_net_receive(p.b, &got));
        check_int(testnet_get_counts(p.t).nowhere, 1);
        close_place(&p);
    }
}

static void a_stream_that_announces_too_much_is_closed(void** state)
{
    place p = open_place(&(testnet_faults){.delay = 1});
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_pdu = 100;
    check_ok(crd_dcp_net_set_limits(p.b, &limits));
    check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
    const uint8_t bytes[101] = {0};
    check(crdi_dcp_net_send(p.a, &p.tcp_b, bytes, 100));
    check(crdi_dcp_net_send(p.a, &p.tcp_b, bytes, 101));
    crd_dcp_packet got;
    (void)testnet_advance(p.t, INFINITY);
    check(crd_dcp_net_receive(p.b, &got));
    check(!crd_dcp_net_receive(p.b, &got));
    check_int(crd_dcp_net_get_counts(p.b).refused, 1);
    (void)testnet_advance(p.t, INFINITY);
    check(!crdi_dcp_net_connected(p.a, &p.tcp_b));
    check_int(crd_dcp_net_get_counts(p.a).lost, 1);
    static uint8_t large[65508];
    check(!crdi_dcp_net_send(p.a, &p.at_b, large, sizeof large)); // more than a datagram can be
    close_place(&p);
}

// ---- hosts -------------------------------------------------------------------------------------

static void hosts_have_their_own_addresses_and_ports(void** state)
{
    place p = open_place(NULL);
    crd_dcp_net* c = NULL;
    check_ok(testnet_join(p.t, A, &c)); // another process of the same host
    crd_dcp_address at = p.at_a;
    check_status(crd_dcp_net_listen(c, &at), CRD_E_IO);
    check_contains(crd_error_text(p.ctx), "in use");
    check_ok(crd_dcp_net_listen(p.a, &at)); // its own
    at.ip = B;
    check_status(crd_dcp_net_listen(c, &at), CRD_E_IO);
    check_contains(crd_error_text(p.ctx), "not an address of this host");
    const crd_dcp_address one = listening(c, 0, CRD_DCP_UDP), two = listening(c, 0, CRD_DCP_UDP);
    check(one.port != two.port && one.port >= 49152);
    check_int(one.ip, A);
    crd_dcp_packet got;
    send_number(p.b, &two, 9);
    check(crd_dcp_net_receive(c, &got));
    check(crd_dcp_address_equal(&got.at, &two));
    crd_dcp_net_close(c, &two);
    send_number(p.b, &two, 9);
    check(!crd_dcp_net_receive(c, &got));
    check_int(testnet_get_counts(p.t).nowhere, 1);
    crd_dcp_net* none = NULL;
    check_status(testnet_join(p.t, 0, &none), CRD_E_RANGE);
    crd_dcp_net_destroy(c);
    send_number(p.b, &one, 9); // to somebody who has left
    (void)testnet_advance(p.t, 1);
    check_int(testnet_get_counts(p.t).nowhere, 2);
    close_place(&p);
}

static void a_link_keeps_control_open(void** state)
{
    place p = open_place(NULL);
    const crd_dcp_link link = crd_dcp_net_link(p.b);
    check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
    crd_dcp_address data = {.port = 9001, .transport = CRD_DCP_UDP}, here;
    check(link.listen(link.user, &data));
    data.ip = 0x01020304;
    check(!link.listen(link.user, &data));
    data.ip = B;
    const crd_dcp_address target = listening(p.a, 9002, CRD_DCP_TCP);
    check(link.connect(link.user, &target));
    check(link.send(link.user, &target, (const uint8_t*)"x", 1));
    check_int(crd_dcp_net_get_counts(p.b).connections, 2);
    link.close(link.user);
    check_int(crd_dcp_net_get_counts(p.b).connections, 1);
    check(crd_dcp_net_local(p.b, 0, &here) && crd_dcp_address_equal(&here, &p.at_b));
    check(crd_dcp_net_local(p.b, 1, &here) && crd_dcp_address_equal(&here, &p.tcp_b));
    check(!crd_dcp_net_local(p.b, 2, &here));
    crd_dcp_packet got;
    check(crd_dcp_net_receive(p.a, &got)); // sent before the end
    check(!link.send(link.user, &target, (const uint8_t*)"x", 1));
    close_place(&p);
}

// ---- memory and size ---------------------------------------------------------------------------

static crd_status use_all(crd_context* ctx, testnet** t, crd_dcp_net** a, crd_dcp_net** b)
{
    crd_dcp_address udp = {.port = 1, .transport = CRD_DCP_UDP};
    crd_dcp_address tcp = {.port = 1, .transport = CRD_DCP_TCP};
    crd_status st = CRD_OK;
    CRD_TRY(testnet_create(ctx, NULL, t));
    CRD_TRY(testnet_join(*t, A, a));
    CRD_TRY(testnet_join(*t, B, b));
    CRD_TRY(crd_dcp_net_listen(*b, &udp));
    CRD_TRY(crd_dcp_net_listen(*b, &tcp));
    CRD_TRY(crdi_dcp_net_connect(*a, &tcp));
    if (!crdi_dcp_net_send(*a, &udp, (const uint8_t*)"x", 1)) { return CRD_E_MEMORY; }
    if (!crdi_dcp_net_send(*a, &tcp, (const uint8_t*)"x", 1)) { return CRD_E_MEMORY; }
fail:
    return st;
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t fail_at = 0;; fail_at++) {
        crd_context* ctx = check_context(&allocator);
        allocator.fail_at = allocator.allocations + fail_at;
        testnet* t = NULL;
        crd_dcp_net *a = NULL, *b = NULL;
        const crd_status st = use_all(ctx, &t, &a, &b);
        crd_dcp_net_destroy(b); // a learns it without memory for the message
        crd_dcp_net_destroy(a);
        testnet_destroy(t);
        check_int(allocator.live, 1);
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 8);
            return;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

static void a_million_packets_pass_without_memory_of_their_own(void** state)
{
    place p =
        open_place(&(testnet_faults){.delay = 0.001, .jitter = 0.001, .loss = 0.01, .seed = 2});
    crd_dcp_packet got;
    int64_t received = 0, before = 0;
    for (uint32_t i = 0; i < 1000000; i++) {
        send_number(p.a, &p.at_b, i); // one every 10 us: 150 are on their way
        if (i == 10000) { before = allocator.allocations; }
        const double until = 1e-5 * i;
        while (testnet_advance(p.t, until) < until) {}
        while (crd_dcp_net_receive(p.b, &got)) {
            received++;
        }
    }
    check(allocator.allocations <= before + 200); // a higher crest now and then
    crd_dcp_net_wait(p.b, 1);
    while (crd_dcp_net_receive(p.b, &got)) {
        received++;
        crd_dcp_net_wait(p.b, 1);
    }
    const int64_t lost = testnet_get_counts(p.t).lost;
    check_int(received, 1000000 - lost);
    check_part(lost, 1000000, 0.01);
    close_place(&p);
}

static void it_can_be_destroyed_with_packets_on_their_way(void** state)
{
    place p = open_place(&(testnet_faults){.delay = 1});
    check_ok(crdi_dcp_net_connect(p.a, &p.tcp_b));
    send_number(p.a, &p.tcp_b, 1);
    send_number(p.a, &p.at_b, 1);
    send_number(p.b, &p.at_a, 1);
    (void)testnet_advance(p.t, 1);
    send_number(p.a, &p.at_b, 1);
    close_place(&p);
    testnet_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_goes_from_arrival_to_arrival_and_not_beyond),
        cmocka_unit_test(without_delay_an_answer_is_there_at_once),
        cmocka_unit_test(equal_seeds_give_equal_runs),
        cmocka_unit_test(losses_copies_and_damages_come_as_often_as_said),
        cmocka_unit_test(delays_are_uniform_and_reorder),
        cmocka_unit_test(without_jitter_the_order_stays),
        cmocka_unit_test(one_fault_more_leaves_the_others_as_they_were),
        cmocka_unit_test(faults_can_change_on_the_way_and_must_make_sense),
        cmocka_unit_test(a_stream_loses_nothing_and_keeps_the_order_whatever_the_faults),
        cmocka_unit_test(a_stream_ends_behind_its_last_PDU_and_can_be_opened_again),
        cmocka_unit_test(what_was_on_its_way_does_not_get_into_the_next_connection),
        cmocka_unit_test(a_stream_that_announces_too_much_is_closed),
        cmocka_unit_test(hosts_have_their_own_addresses_and_ports),
        cmocka_unit_test(a_link_keeps_control_open),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_million_packets_pass_without_memory_of_their_own),
        cmocka_unit_test(it_can_be_destroyed_with_packets_on_their_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
