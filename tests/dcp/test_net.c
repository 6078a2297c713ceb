// Real sockets over the loopback interface. Nothing sleeps: everything waits for what it expects,
// with a bound after which the test fails.
#include "check.h"
#include "shared/dcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOPBACK = 0x7F000001 };
#define PATIENCE 20.0 // s after which something that has to come does not come any more

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    crd_dcp_net *a, *b;
} place;

static int set_up(void** state)
{
    place* p = calloc(1, sizeof *p);
    p->ctx = check_context(&p->allocator);
    check_ok(crd_dcp_net_create(p->ctx, &p->a));
    check_ok(crd_dcp_net_create(p->ctx, &p->b));
    *state = p;
    return 0;
}

static int tear_down(void** state)
{
    place* p = *state;
    crd_dcp_net_destroy(p->a);
    crd_dcp_net_destroy(p->b);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
    free(p);
    return 0;
}

static crd_dcp_address listening(crd_dcp_net* n, uint8_t transport)
{
    crd_dcp_address at = {.ip = LOOPBACK, .transport = transport};
    check_ok(crd_dcp_net_listen(n, &at));
    check(at.port != 0);
    return at;
}

// The next packet of `n`, while `other` (may be NULL) does its part.
static crd_dcp_packet expect_with(crd_dcp_net* n, crd_dcp_net* other)
{
    crd_dcp_packet p = {0};
    crd_dcp_packet unwanted;
    const double until = crd_dcp_net_now(n) + PATIENCE;
    while (!crd_dcp_net_receive(n, &p)) {
        if (crd_dcp_net_now(n) > until) { fail_msg("nothing came within %g s", PATIENCE); }
        if (other && crd_dcp_net_receive(other, &unwanted)) { fail_msg("the wrong net got it"); }
        crd_dcp_net_wait(n, 0.01);
    }
    return p;
}

static crd_dcp_packet expect(crd_dcp_net* n)
{
    return expect_with(n, NULL);
}

static void expect_bytes(crd_dcp_packet p, const void* bytes, size_t length)
{
    check_int(p.length, length);
    check(length == 0 || memcmp(p.bytes, bytes, length) == 0);
}

// A stream of the operating system alone, to send what no crd_dcp_net would.
static int raw_connect(const crd_dcp_address* to)
{
    const struct sockaddr_in s = {
        .sin_family = AF_INET, .sin_port = htons(to->port), .sin_addr.s_addr = htonl(to->ip)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0);
    const int on = 1;
    check_int(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    check_int(connect(fd, (const struct sockaddr*)&s, sizeof s), 0);
    return fd;
}

static void raw_send(int fd, const void* bytes, size_t length)
{
    check_int(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

// Whether the other side closes while `n` looks at its sockets.
static void expect_end(int fd, crd_dcp_net* n)
{
    const double until = crd_dcp_net_now(n) + PATIENCE;
    crd_dcp_packet p;
    char c = 0;
    for (;;) {
        const ssize_t k = recv(fd, &c, 1, MSG_DONTWAIT);
        if (k == 0 || (k < 0 && errno != EAGAIN)) { return; }
        if (crd_dcp_net_now(n) > until) { fail_msg("still open after %g s", PATIENCE); }
        (void)crd_dcp_net_receive(n, &p);
        struct pollfd w = {.fd = fd, .events = POLLIN};
        (void)poll(&w, 1, 10);
    }
}

static void expect_connections(crd_dcp_net* n, int64_t count)
{
    const double until = crd_dcp_net_now(n) + PATIENCE;
    crd_dcp_packet p;
    while (crd_dcp_net_get_counts(n).connections != count) {
        if (crd_dcp_net_now(n) > until) {
            fail_msg("%lld connections, expected %lld",
                     (long long)crd_dcp_net_get_counts(n).connections, (long long)count);
        }
        crd_dcp_net_wait(n, 0.01);
        check(!crd_dcp_net_receive(n, &p));
    }
}

// ---- datagrams ---------------------------------------------------------------------------------

static void a_datagram_goes_there_and_the_answer_back(void** state)
{
    place* p = *state;
    const crd_dcp_address a = listening(p->a, CRD_DCP_UDP), b = listening(p->b, CRD_DCP_UDP);
    const double before = crd_dcp_net_now(p->b);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"\x80\x00\x00\x01", 4));
    crd_dcp_packet got = expect(p->b);
    expect_bytes(got, "\x80\x00\x00\x01", 4);
    check(crd_dcp_address_equal(&got.from, &a));
    check(crd_dcp_address_equal(&got.at, &b));
    check(got.time > before - 1 && got.time < crd_dcp_net_now(p->b) + 1);
    check(crdi_dcp_net_send(p->b, &got.from, (const uint8_t*)"\xb2\x00\x00\x01\x00", 5));
    expect_bytes(expect(p->a), "\xb2\x00\x00\x01\x00", 5);
    check(!crd_dcp_net_receive(p->a, &got));
    const crd_dcp_net_counts counts = crd_dcp_net_get_counts(p->a);
    check_int(counts.sent, 1);
    check_int(counts.received, 1);
    check_int(counts.bytes_sent, 4);
    check_int(counts.bytes_received, 5);
    check_int(counts.dropped, 0);
}

static void datagrams_may_be_empty_and_as_long_as_UDP_can(void** state)
{
    place* p = *state;
    (void)listening(p->a, CRD_DCP_UDP);
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    static uint8_t big[65508];
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (uint8_t)(i * 7 + i / 256);
    }
    check(crdi_dcp_net_send(p->a, &b, NULL, 0));
    check_int(expect(p->b).length, 0);
    check(crdi_dcp_net_send(p->a, &b, big, 65507));
    expect_bytes(expect(p->b), big, 65507);
    check(!crdi_dcp_net_send(p->a, &b, big, 65508));
    check_int(crd_dcp_net_get_counts(p->a).dropped, 1);
}

static void sending_without_a_socket_opens_one(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"x", 1));
    const crd_dcp_packet got = expect(p->b);
    crd_dcp_address here;
    check(crd_dcp_net_local(p->a, 0, &here));
    check(crd_dcp_address_equal(&here, &got.from));
    check(!crd_dcp_net_local(p->a, 1, &here));
    check(!crd_dcp_net_local(p->a, -1, &here));
}

static void a_flood_at_one_socket_leaves_the_others_their_turn(void** state)
{
    place* p = *state;
    (void)listening(p->a, CRD_DCP_UDP);
    const crd_dcp_address one = listening(p->b, CRD_DCP_UDP), two = listening(p->b, CRD_DCP_UDP);
    for (int i = 0; i < 200; i++) {
        check(crdi_dcp_net_send(p->a, &one, (const uint8_t*)"flood", 5));
    }
    check(crdi_dcp_net_send(p->a, &two, (const uint8_t*)"me", 2));
    int before = 0;
    for (;; before++) {
        const crd_dcp_packet got = expect(p->b);
        if (crd_dcp_address_equal(&got.at, &two)) { break; }
    }
    check(before <= 100);
    for (int i = before; i < 200; i++) {
        expect_bytes(expect(p->b), "flood", 5);
    }
}

static void datagrams_that_nobody_read_in_time_are_counted(void** state)
{
#ifdef TEST_EMULATED
    skip(); // qemu-user hands on no SO_RXQ_OVFL
#endif
    place* p = *state;
    (void)listening(p->a, CRD_DCP_UDP);
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    static const uint8_t bytes[8000];
    int64_t sent = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2000; i++) { // 16 MB, more than a socket keeps
            check(crdi_dcp_net_send(p->a, &b, bytes, sizeof bytes));
        }
        crd_dcp_packet got;
        while (crd_dcp_net_receive(p->b, &got)) {}
        check(crdi_dcp_net_send(p->a, &b, bytes, 1)); // brings the news
        check_int(expect(p->b).length, 1);
        sent += 2001;
        const crd_dcp_net_counts c = crd_dcp_net_get_counts(p->b);
        check(c.overrun > 0);
        check_int(c.received + c.overrun, sent);
    }
}

// ---- streams -----------------------------------------------------------------------------------

static void a_stream_carries_PDUs_both_ways(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    check_ok(crdi_dcp_net_connect(p->a, &b));
    check_ok(crdi_dcp_net_connect(p->a, &b)); // it is there already
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"one", 3));
    check(crdi_dcp_net_send(p->a, &b, NULL, 0));
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"three", 5));
    crd_dcp_packet got = expect_with(p->b, p->a);
    expect_bytes(got, "one", 3);
    check(crd_dcp_address_equal(&got.at, &b));
    check(crdi_dcp_net_connected(p->b, &got.from));
    expect_bytes(expect(p->b), "", 0);
    got = expect(p->b);
    expect_bytes(got, "three", 5);
    check(crdi_dcp_net_send(p->b, &got.from, (const uint8_t*)"back", 4));
    got = expect(p->a);
    expect_bytes(got, "back", 4);
    check(crd_dcp_address_equal(&got.from, &b));
    check(crdi_dcp_net_connected(p->a, &b));
    check_int(crd_dcp_net_get_counts(p->a).connections, 1);
    check_int(crd_dcp_net_get_counts(p->b).connections, 1);
}

static size_t pseudo_length(int i)
{
    return i % 50 == 0 ? 65507 - (size_t)i : (size_t)(i * 37 % 900);
}

static void fill(uint8_t* bytes, size_t length, int i)
{
    for (size_t k = 0; k < length; k++) {
        bytes[k] = (uint8_t)((size_t)i * 31 + k * 17);
    }
}

static void a_thousand_PDUs_of_all_lengths_arrive_whole_and_in_order(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    check_ok(crdi_dcp_net_connect(p->a, &b));
    static uint8_t bytes[65536];
    crd_dcp_packet got;
    int received = 0;
    const double until = crd_dcp_net_now(p->a) + PATIENCE;
    for (int sent = 0; received < 1000;) {
        if (crd_dcp_net_now(p->a) > until) { fail_msg("%d of 1000 came", received); }
        fill(bytes, pseudo_length(sent), sent);
        if (sent < 1000 && crdi_dcp_net_send(p->a, &b, bytes, pseudo_length(sent))) {
            sent++;
            if (sent % 40 != 0) { continue; } // let some pile up
        }
        check(!crd_dcp_net_receive(p->a, &got)); // writes what waits
        while (crd_dcp_net_receive(p->b, &got)) {
            fill(bytes, pseudo_length(received), received);
            expect_bytes(got, bytes, pseudo_length(received));
            received++;
        }
    }
    check_int(crd_dcp_net_get_counts(p->b).refused, 0);
}

static void a_PDU_may_come_byte_by_byte_and_several_in_one_segment(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int fd = raw_connect(&b);
    static const uint8_t frame[] = {4, 0, 0, 0, 0x80, 0, 0, 1};
    crd_dcp_packet got;
    for (size_t i = 0; i < sizeof frame; i++) {
        while (crd_dcp_net_receive(p->b, &got)) {
            fail_msg("a PDU after %zu of %zu bytes", i, sizeof frame);
        }
        raw_send(fd, frame + i, 1);
    }
    expect_bytes(expect(p->b), frame + 4, 4);
    // two and a half, then the rest
    static const uint8_t three[] = {1,   0,   0, 0, 'a', 2, 0,   0,   0,
                                    'b', 'b', 3, 0, 0,   0, 'c', 'c', 'c'};
    raw_send(fd, three, 14);
    expect_bytes(expect(p->b), "a", 1);
    expect_bytes(expect(p->b), "bb", 2);
    check(!crd_dcp_net_receive(p->b, &got));
    raw_send(fd, three + 14, 4);
    got = expect(p->b);
    expect_bytes(got, "ccc", 3);
    // and what we send is framed
    check(crdi_dcp_net_send(p->b, &got.from, (const uint8_t*)"hello", 5));
    uint8_t answer[9];
    check_int(recv(fd, answer, sizeof answer, MSG_WAITALL), 9);
    check(memcmp(answer, "\5\0\0\0hello", 9) == 0);
    close(fd);
    expect_connections(p->b, 0);
    check_int(crd_dcp_net_get_counts(p->b).lost, 1);
}

static void the_last_PDUs_before_the_end_of_a_stream_count(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int fd = raw_connect(&b);
    raw_send(fd, "\1\0\0\0x\1\0\0\0y\7\0\0\0cut", 17);
    shutdown(fd, SHUT_WR);
    crd_dcp_packet got = expect(p->b);
    expect_bytes(got, "x", 1);
    expect_bytes(expect(p->b), "y", 1);
    check(crdi_dcp_net_send(p->b, &got.from, (const uint8_t*)"z", 1)); // it still reads
    uint8_t answer[5];
    check_int(recv(fd, answer, sizeof answer, MSG_WAITALL), 5);
    expect_connections(p->b, 0);
    check(!crdi_dcp_net_send(p->b, &got.from, (const uint8_t*)"z", 1));
    close(fd);
}

static void an_absurd_length_closes_its_stream_and_no_other(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int good = raw_connect(&b);
    raw_send(good, "\1\0\0\0x", 5);
    const crd_dcp_address peer = expect(p->b).from;
    static const char* const absurd[] = {"\xFF\xFF\xFF\xFF", "\xE4\xFF\0\0", "\0\0\0\x80"};
    for (int i = 0; i < 3; i++) {
        const int fd = raw_connect(&b);
        raw_send(fd, absurd[i], 4); // 2^32 - 1; 65508; 2^31
        expect_end(fd, p->b);
        close(fd);
    }
    check_int(crd_dcp_net_get_counts(p->b).refused, 3);
    check_int(crd_dcp_net_get_counts(p->b).connections, 1);
    check(crdi_dcp_net_send(p->b, &peer, (const uint8_t*)"y", 1));
    raw_send(good, "\1\0\0\0z", 5);
    expect_bytes(expect(p->b), "z", 1);
    close(good);
}

static void the_limit_of_a_PDU_can_be_moved(void** state)
{
    place* p = *state;
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_pdu = 1 << 20;
    limits.max_queue = 4 << 20;
    check_ok(crd_dcp_net_set_limits(p->a, &limits));
    check_ok(crd_dcp_net_set_limits(p->b, &limits));
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    check_ok(crdi_dcp_net_connect(p->a, &b));
    uint8_t* bytes = calloc(1, (1 << 20) + 1);
    fill(bytes, 1 << 20, 3);
    check(crdi_dcp_net_send(p->a, &b, bytes, 1 << 20));
    check(!crdi_dcp_net_send(p->a, &b, bytes, (1 << 20) + 1));
    expect_bytes(expect_with(p->b, p->a), bytes, 1 << 20);
    free(bytes);
    limits.max_pdu = 3;
    check_status(crd_dcp_net_set_limits(p->a, &limits), CRD_E_RANGE);
    check_contains(crd_error_text(p->ctx), "max_pdu = 3");
    limits = crd_dcp_net_default_limits();
    limits.max_connections = 0;
    check_status(crd_dcp_net_set_limits(p->a, &limits), CRD_E_RANGE);
    limits = crd_dcp_net_default_limits();
    limits.max_queue = 0;
    check_status(crd_dcp_net_set_limits(p->a, &limits), CRD_E_RANGE);
}

// Where the PDUs of a stream begin, read the plain way until it is cut or absurd; how many.
static int read_plainly(const uint8_t* bytes, size_t length, uint32_t most, size_t* starts)
{
    int count = 0;
    for (size_t at = 0; length - at >= 4; count++) {
        const uint32_t n = bytes[at] | (uint32_t)bytes[at + 1] << 8 |
                           (uint32_t)bytes[at + 2] << 16 | (uint32_t)bytes[at + 3] << 24;
        if (n > most || length - at - 4 < n) { break; }
        starts[count] = at;
        at += 4 + n;
    }
    return count;
}

static void any_bytes_in_any_pieces_give_their_PDUs(void** state)
{
    place* p = *state;
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_pdu = 40;
    check_ok(crd_dcp_net_set_limits(p->b, &limits));
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    uint64_t random = 1;
    for (int round = 0; round < 100; round++) {
        uint8_t bytes[400];
        size_t starts[100];
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            // Mostly zeros, so that lengths make sense for a while.
            bytes[i] = random >> 62 ? 0 : (uint8_t)(random >> 40 & 63);
        }
        const int want = read_plainly(bytes, sizeof bytes, limits.max_pdu, starts);
        const int fd = raw_connect(&b);
        int found = 0;
        crd_dcp_packet got;
        for (size_t at = 0; at < sizeof bytes;) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            const size_t piece = 1 + (size_t)(random >> 50) % 60;
            const size_t n = piece < sizeof bytes - at ? piece : sizeof bytes - at;
            (void)send(fd, bytes + at, n, MSG_NOSIGNAL); // it may be closed already
            at += n;
            while (crd_dcp_net_receive(p->b, &got)) {
                check(found < want);
                expect_bytes(got, bytes + starts[found] + 4, bytes[starts[found]]);
                found++;
            }
        }
        shutdown(fd, SHUT_WR);
        const double until = crd_dcp_net_now(p->b) + PATIENCE;
        while (crd_dcp_net_get_counts(p->b).lost <= round) {
            check(crd_dcp_net_now(p->b) < until);
            crd_dcp_net_wait(p->b, 0.01);
            while (crd_dcp_net_receive(p->b, &got)) {
                check(found < want);
                expect_bytes(got, bytes + starts[found] + 4, bytes[starts[found]]);
                found++;
            }
        }
        check_int(found, want);
        close(fd);
    }
    check(crd_dcp_net_get_counts(p->b).refused > 50);
}

enum { SLOW = 9973 }; // bytes of a PDU

// PDUs with numbers from `first` on; the first number that was not taken.
static int send_until_full(crd_dcp_net* n, const crd_dcp_address* to, int first)
{
    static uint8_t bytes[SLOW];
    for (int i = first;; i++) {
        check(i < 100000); // the system's own buffers end before 1 GB
        fill(bytes, SLOW, i);
        if (!crdi_dcp_net_send(n, to, bytes, SLOW)) { return i; }
    }
}

static void read_frames(int fd, crd_dcp_net* n, int first, int count)
{
    static uint8_t bytes[SLOW], frame[4 + SLOW];
    const double until = crd_dcp_net_now(n) + PATIENCE;
    for (int i = first; i < first + count; i++) {
        for (size_t have = 0; have < sizeof frame;) {
            if (crd_dcp_net_now(n) > until) { fail_msg("%d of %d came", i - first, count); }
            crd_dcp_packet none;
            check(!crd_dcp_net_receive(n, &none)); // writes what waits
            const ssize_t k = recv(fd, frame + have, sizeof frame - have, MSG_DONTWAIT);
            check(k != 0);
            if (k > 0) { have += (size_t)k; }
            struct pollfd w = {.fd = fd, .events = POLLIN};
            if (k < 0) { (void)poll(&w, 1, 10); }
        }
        fill(bytes, SLOW, i);
        check(memcmp(frame, "\xF5\x26\0\0", 4) == 0);
        check(memcmp(frame + 4, bytes, SLOW) == 0);
    }
}

// A peer that does not read: sending goes on until the queue is full, then says so; what was
// accepted arrives in full once it reads.
static void a_slow_peer_fills_the_queue_and_no_more(void** state)
{
    place* p = *state;
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_queue = 8 << 20; // more than the system keeps, so that it empties in part
    check_ok(crd_dcp_net_set_limits(p->b, &limits));
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int fd = raw_connect(&b);
    raw_send(fd, "\1\0\0\0x", 5);
    const crd_dcp_address peer = expect(p->b).from;
    int accepted = send_until_full(p->b, &peer, 0);
    check(accepted >= (8 << 20) / (4 + SLOW));
    check_int(crd_dcp_net_get_counts(p->b).dropped, 1);
    check_int(crd_dcp_net_get_counts(p->b).connections, 1);
    // Room in the middle of the queue, filled again, several times round.
    int seen = 0;
    for (int round = 0; round < 5; round++) {
        const int half = (accepted - seen) / 2;
        read_frames(fd, p->b, seen, half);
        seen += half;
        accepted = send_until_full(p->b, &peer, accepted);
    }
    read_frames(fd, p->b, seen, accepted - seen);
    check_int(crd_dcp_net_get_counts(p->b).dropped, 6);
    close(fd);
}

static void a_broken_connection_is_made_again_by_sending(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    check_ok(crdi_dcp_net_connect(p->a, &b));
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"first", 5));
    expect_bytes(expect_with(p->b, p->a), "first", 5);
    crd_dcp_net_destroy(p->b);
    p->b = NULL;
    expect_connections(p->a, 0);
    check(!crdi_dcp_net_connected(p->a, &b));
    check_ok(crd_dcp_net_create(p->ctx, &p->b));
    crd_dcp_address again = b;
    check_ok(crd_dcp_net_listen(p->b, &again));
    const double until = crd_dcp_net_now(p->a) + PATIENCE;
    while (!crdi_dcp_net_send(p->a, &b, (const uint8_t*)"second", 6)) {
        if (crd_dcp_net_now(p->a) > until) { fail_msg("never connected again"); }
        crd_dcp_net_wait(p->a, 0.02);
    }
    expect_bytes(expect_with(p->b, p->a), "second", 6);
    check_int(crd_dcp_net_get_counts(p->a).lost, 1);
}

static void half_a_PDU_of_a_broken_connection_does_not_get_into_the_next(void** state)
{
    place* p = *state;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(LOOPBACK)};
    socklen_t length = sizeof s;
    check_int(bind(listener, (const struct sockaddr*)&s, sizeof s), 0);
    check_int(listen(listener, 5), 0);
    check_int(getsockname(listener, (struct sockaddr*)&s, &length), 0);
    const crd_dcp_address to = {LOOPBACK, ntohs(s.sin_port), CRD_DCP_TCP};
    check_ok(crdi_dcp_net_connect(p->a, &to));
    int fd = accept(listener, NULL, NULL);
    check(fd >= 0);
    raw_send(fd, "\1\0\0\0x\5\0\0\0ab", 11);
    expect_bytes(expect(p->a), "x", 1);
    close(fd);
    expect_connections(p->a, 0);
    check_ok(crdi_dcp_net_connect(p->a, &to));
    fd = accept(listener, NULL, NULL);
    check(fd >= 0);
    raw_send(fd, "\1\0\0\0y", 5);
    expect_bytes(expect(p->a), "y", 1);
    close(fd);
    close(listener);
}

static void connecting_where_nobody_listens_fails_and_may_be_tried_again(void** state)
{
    place* p = *state;
    crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    crd_dcp_net_close(p->b, &b); // now surely free
    const crd_status st = crdi_dcp_net_connect(p->a, &b);
    if (st == CRD_OK) {
        expect_connections(p->a, 0);
    } else {
        check_status(st, CRD_E_IO);
        check_contains(crd_error_text(p->ctx), "cannot be connected to");
    }
    check(!crdi_dcp_net_connected(p->a, &b));
    check(!crdi_dcp_net_send(p->a, &b, (const uint8_t*)"x", 1));
    check_ok(crd_dcp_net_listen(p->b, &b));
    check_ok(crdi_dcp_net_connect(p->a, &b));
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"x", 1));
    expect_bytes(expect_with(p->b, p->a), "x", 1);
    const crd_dcp_address udp = {.ip = LOOPBACK, .port = 1, .transport = CRD_DCP_UDP};
    check_status(crdi_dcp_net_connect(p->a, &udp), CRD_E_UNSUPPORTED);
    const crd_dcp_address zero = {.ip = LOOPBACK, .transport = CRD_DCP_TCP};
    check_status(crdi_dcp_net_connect(p->a, &zero), CRD_E_RANGE);
}

static void two_hundred_connections_keep_their_PDUs_apart(void** state)
{
    place* p = *state;
    enum { PEERS = 200 };
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    static int fd[PEERS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PEERS; i++) {
            if (round == 0) { fd[i] = raw_connect(&b); }
            const uint8_t frame[] = {2, 0, 0, 0, (uint8_t)i, (uint8_t)round};
            raw_send(fd[i], frame, sizeof frame);
        }
        bool seen[PEERS] = {0};
        for (int i = 0; i < PEERS; i++) {
            const crd_dcp_packet got = expect(p->b);
            check_int(got.length, 2);
            check_int(got.bytes[1], round);
            check(!seen[got.bytes[0]]);
            seen[got.bytes[0]] = true;
            const uint8_t answer = got.bytes[0];
            check(crdi_dcp_net_send(p->b, &got.from, &answer, 1));
        }
        for (int i = 0; i < PEERS; i++) {
            uint8_t answer[5];
            check_int(recv(fd[i], answer, 5, MSG_WAITALL), 5);
            check_int(answer[4], i);
        }
    }
    check_int(crd_dcp_net_get_counts(p->b).connections, PEERS);
    for (int i = 0; i < PEERS; i++) {
        close(fd[i]);
    }
    expect_connections(p->b, 0);
}

static void those_who_only_sit_there_make_place_for_others(void** state)
{
    place* p = *state;
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_connections = 3;
    check_ok(crd_dcp_net_set_limits(p->b, &limits));
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int silent = raw_connect(&b);
    expect_connections(p->b, 1);
    int busy[3];
    for (int i = 0; i < 3; i++) {
        busy[i] = raw_connect(&b);
        raw_send(busy[i], "\1\0\0\0x", 5);
        expect_bytes(expect(p->b), "x", 1);
    }
    expect_end(silent, p->b);
    check_int(crd_dcp_net_get_counts(p->b).evicted, 1);
    const int late = raw_connect(&b); // all three have said something
    expect_end(late, p->b);
    check_int(crd_dcp_net_get_counts(p->b).evicted, 2);
    check_int(crd_dcp_net_get_counts(p->b).connections, 3);
    const crd_dcp_address to = {.ip = LOOPBACK, .port = 9, .transport = CRD_DCP_TCP};
    check_status(crdi_dcp_net_connect(p->b, &to), CRD_E_LIMIT);
    for (int i = 0; i < 3; i++) {
        close(busy[i]);
    }
    close(silent);
    close(late);
}

static void without_descriptors_peers_are_turned_away(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int fd = raw_connect(&b);
    struct rlimit old;
    check_int(getrlimit(RLIMIT_NOFILE, &old), 0);
    const int next = dup(fd); // the lowest that is free
    close(next);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
    check_int(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_end(fd, p->b);
    check_int(setrlimit(RLIMIT_NOFILE, &old), 0);
    check_int(crd_dcp_net_get_counts(p->b).evicted, 1);
    close(fd);
    const int again = raw_connect(&b);
    raw_send(again, "\1\0\0\0x", 5);
    expect_bytes(expect(p->b), "x", 1);
    close(again);
}

// ---- listening and closing ---------------------------------------------------------------------

static void listening_says_what_is_wrong(void** state)
{
    place* p = *state;
    for (int i = 0; i < 2; i++) {
        const uint8_t transport = i ? CRD_DCP_TCP : CRD_DCP_UDP;
        crd_dcp_address b = listening(p->b, transport);
        check_ok(crd_dcp_net_listen(p->b, &b)); // twice is fine
        char text[32];
        crd_dcp_address_print(&b, text, sizeof text);
        check_status(crd_dcp_net_listen(p->a, &b), CRD_E_IO);
        check_contains(crd_error_text(p->ctx), text);
        crd_dcp_address foreign = {.ip = 0xC0000201, .port = 0, .transport = transport};
        check_status(crd_dcp_net_listen(p->a, &foreign), CRD_E_IO); // 192.0.2.1 is nobody's
        check_contains(crd_error_text(p->ctx), "192.0.2.1");
    }
    crd_dcp_address can = {.transport = CRD_DCP_CAN};
    check_status(crd_dcp_net_listen(p->a, &can), CRD_E_UNSUPPORTED);
    crd_dcp_address all = {.ip = 0, .transport = CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p->a, &all));
    check_int(all.ip, 0);
    crd_dcp_address one = {.ip = LOOPBACK, .port = all.port, .transport = CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p->a, &one)); // covered
    check(crdi_dcp_net_send(p->b, &one, (const uint8_t*)"x", 1));
    expect_bytes(expect(p->a), "x", 1);
}

static void closing_leaves_control_open(void** state)
{
    place* p = *state;
    const crd_dcp_address control = listening(p->b, CRD_DCP_TCP);
    const crd_dcp_link link = crd_dcp_net_link(p->b);
    crd_dcp_address data = {.port = 0, .transport = CRD_DCP_UDP};
    check(link.listen(link.user, &data));
    check(crd_dcp_net_local(p->b, 1, &data));
    check_int(data.ip, LOOPBACK); // as control, although 0.0.0.0 was asked for
    crd_dcp_address target = listening(p->a, CRD_DCP_TCP);
    check(link.connect(link.user, &target));
    check(link.send(link.user, &target, (const uint8_t*)"to a", 4));
    expect_bytes(expect_with(p->a, p->b), "to a", 4);
    check_ok(crdi_dcp_net_connect(p->a, &control));
    check(crdi_dcp_net_send(p->a, &control, (const uint8_t*)"to b", 4));
    const crd_dcp_address master = expect_with(p->b, p->a).from;
    check_int(crd_dcp_net_get_counts(p->b).connections, 2);
    link.close(link.user);
    check_int(crd_dcp_net_get_counts(p->b).connections, 1);
    crd_dcp_address here;
    check(crd_dcp_net_local(p->b, 0, &here) && crd_dcp_address_equal(&here, &control));
    check(!crd_dcp_net_local(p->b, 1, &here));
    check(!link.send(link.user, &target, (const uint8_t*)"to a", 4));
    check(link.send(link.user, &master, (const uint8_t*)"still", 5));
    expect_bytes(expect(p->a), "still", 5);
    // one connection, and a listener with all that came in there
    crd_dcp_net_close(p->a, &control);
    expect_connections(p->b, 0);
    check_ok(crdi_dcp_net_connect(p->a, &control));
    check(crdi_dcp_net_send(p->a, &control, (const uint8_t*)"x", 1));
    expect_bytes(expect_with(p->b, p->a), "x", 1);
    crd_dcp_net_close(p->b, &control);
    check_int(crd_dcp_net_get_counts(p->b).connections, 0);
    check(!crd_dcp_net_local(p->b, 0, &here));
}

static void a_packet_survives_what_is_done_while_it_is_looked_at(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    const int fd = raw_connect(&b);
    raw_send(fd, "\4\0\0\0keep\4\0\0\0gone", 16);
    const crd_dcp_packet got = expect(p->b);
    crd_dcp_net_close(p->b, &got.from);
    crd_dcp_net_close(p->b, NULL);
    expect_bytes(got, "keep", 4);
    crd_dcp_packet none;
    check(!crd_dcp_net_receive(p->b, &none));
    close(fd);
}

static void other_transports_are_not_sent_over(void** state)
{
    place* p = *state;
    const crd_dcp_address can = {.ip = LOOPBACK, .port = 1, .transport = CRD_DCP_CAN};
    const crd_dcp_address tcp = {.ip = LOOPBACK, .port = 1, .transport = CRD_DCP_TCP};
    check(!crdi_dcp_net_send(p->a, &can, (const uint8_t*)"x", 1));
    check(!crdi_dcp_net_send(p->a, &tcp, (const uint8_t*)"x", 1)); // not connected
    check_int(crd_dcp_net_get_counts(p->a).dropped, 2);
    check_int(crd_dcp_net_get_counts(p->a).sent, 0);
}

// ---- memory ------------------------------------------------------------------------------------

static crd_status open_all(crd_context* ctx, crd_dcp_net** n)
{
    crd_dcp_address udp = {.ip = LOOPBACK, .transport = CRD_DCP_UDP};
    crd_dcp_address tcp = {.ip = LOOPBACK, .transport = CRD_DCP_TCP};
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_net_create(ctx, n));
    CRD_TRY(crd_dcp_net_listen(*n, &udp));
    CRD_TRY(crd_dcp_net_listen(*n, &tcp));
    CRD_TRY(crdi_dcp_net_connect(*n, &tcp));
fail:
    return st;
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t before = a.allocations;
        a.fail_at = before + fail_at;
        crd_dcp_net* n = NULL;
        const crd_status st = open_all(ctx, &n);
        crd_dcp_net_destroy(n);
        check_int(a.live, 1);
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 5);
            return;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

static void a_connection_there_is_no_memory_for_is_closed(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_TCP);
    for (int64_t k = 0; k < 3; k++) {
        const int fd = raw_connect(&b);
        p->allocator.fail_at = p->allocator.allocations + k;
        expect_end(fd, p->b);
        p->allocator.fail_at = -1;
        close(fd);
    }
    check_int(crd_dcp_net_get_counts(p->b).connections, 0);
}

static void sending_and_receiving_do_not_allocate(void** state)
{
    place* p = *state;
    const crd_dcp_address a = listening(p->a, CRD_DCP_UDP), b = listening(p->b, CRD_DCP_TCP);
    check_ok(crdi_dcp_net_connect(p->a, &b));
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"x", 1));
    (void)listening(p->b, CRD_DCP_UDP);
    const crd_dcp_address from = expect_with(p->b, p->a).from;
    const int64_t before = p->allocator.allocations;
    static uint8_t bytes[3000];
    for (int i = 0; i < 100; i++) {
        check(crdi_dcp_net_send(p->a, &b, bytes, (size_t)i * 30));
        check_int(expect_with(p->b, p->a).length, i * 30);
        check(crdi_dcp_net_send(p->b, &from, bytes, (size_t)i));
        check_int(expect(p->a).length, i);
        check(crdi_dcp_net_send(p->b, &a, bytes, (size_t)i));
        check_int(expect(p->a).length, i);
    }
    check_int(p->allocator.allocations, before);
}

// ---- addresses ---------------------------------------------------------------------------------

static void addresses_are_read_and_printed(void** state)
{
    place* p = *state;
    static const struct {
        const char *text, *printed;
    } good[] = {
        {"udp://127.0.0.1:8080", "udp://127.0.0.1:8080"},
        {"tcp://192.168.2.6:60000", "tcp://192.168.2.6:60000"},
        {"udp://:9001", "udp://127.0.0.1:9001"},
        {"udp://0.0.0.0:0", "udp://0.0.0.0:0"},
        {"tcp://localhost:65535", "tcp://127.0.0.1:65535"},
        {"tcp://255.255.255.255:1", "tcp://255.255.255.255:1"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        crd_dcp_address a;
        check_ok(crd_dcp_address_parse(p->ctx, good[i].text, &a));
        char text[28];
        check(crd_dcp_address_print(&a, text, sizeof text) < 28);
        check_text(text, good[i].printed);
    }
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "no transport"},
        {"127.0.0.1:8080", "no transport"},
        {"http://127.0.0.1:8080", "unknown transport"},
        {"udp:/127.0.0.1:8080", "no transport"},
        {"udp://127.0.0.1", "no port"},
        {"udp://", "no port"},
        {"udp://127.0.0.1:", "port is not a number"},
        {"udp://127.0.0.1:65536", "port is not a number"},
        {"udp://127.0.0.1:-1", "port is not a number"},
        {"udp://127.0.0.1:+1", "port is not a number"},
        {"udp://127.0.0.1:80 ", "port is not a number"},
        {"udp://127.0.0.1:99999999999999999999", "port is not a number"},
        {"udp://127.0.0.256:80", "not an IPv4 address"},
        {"udp://127.1:80", "not an IPv4 address"},
        {"udp://1.2.3.4.5:80", "not an IPv4 address"},
        {"udp://[::1]:80", "IPv6"},
        {"udp://::1:80", "more than one colon"},
        {"udp://a b:80", "a character"},
        {"udp://bench/7:80", "a character"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        crd_dcp_address a;
        check_status(crd_dcp_address_parse(p->ctx, bad[i].text, &a), CRD_E_FORMAT);
        check_contains(crd_error_text(p->ctx), bad[i].why);
        check_contains(crd_error_text(p->ctx), bad[i].text);
    }
    char long_one[400];
    memset(long_one, 'a', sizeof long_one);
    memcpy(long_one, "tcp://", 6);
    memcpy(long_one + sizeof long_one - 4, ":80", 4);
    crd_dcp_address a;
    check_status(crd_dcp_address_parse(p->ctx, long_one, &a), CRD_E_FORMAT);
    check_contains(crd_error_text(p->ctx), "253");
}

// ---- together and in order ---------------------------------------------------------------------

static void what_is_held_leaves_together_when_the_hold_ends(void** state)
{
    place* p = *state;
    const crd_dcp_address udp = listening(p->b, CRD_DCP_UDP), tcp = listening(p->b, CRD_DCP_TCP);
    crd_dcp_packet none;
    check_ok(crdi_dcp_net_connect(p->a, &tcp));
    check(crdi_dcp_net_send(p->a, &tcp, (const uint8_t*)"0", 1)); // so that it is established
    expect_bytes(expect_with(p->b, p->a), "0", 1);
    crdi_dcp_net_hold(p->a, true);
    crdi_dcp_net_hold(p->a, true);
    for (int i = 0; i < 40; i++) { // more than one call can carry
        const uint8_t byte = (uint8_t)i;
        check(crdi_dcp_net_send(p->a, i % 2 ? &udp : &tcp, &byte, 1));
    }
    crdi_dcp_net_hold(p->a, false);
    for (int i = 0; i < 3; i++) {
        while (crd_dcp_net_receive(p->b, &none)) {
            check(none.at.transport == CRD_DCP_UDP && none.bytes[0] < 2 * 16); // the first call's
        }
    }
    crdi_dcp_net_hold(p->a, false);
    int last[2] = {-2, -1}, streams = 0;
    while (streams < 20 || last[1] < 39) {
        const crd_dcp_packet got = expect(p->b);
        const int i = got.bytes[0];
        check(got.length == 1 && i > last[i % 2]);
        check_int(got.at.transport, i % 2 ? CRD_DCP_UDP : CRD_DCP_TCP);
        last[i % 2] = i;
        streams += i % 2 == 0;
    }
    check_int(last[0], 38);
    check_int(crd_dcp_net_get_counts(p->a).sent, 41);
}

static void waiting_ends_a_hold_that_nobody_ended(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    crdi_dcp_net_hold(p->a, true);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"one", 3));
    crd_dcp_net_wait(p->a, 0);
    expect_bytes(expect(p->b), "one", 3);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"two", 3));
    crd_dcp_net_close(p->a, NULL);
    expect_bytes(expect(p->b), "two", 3);
    crdi_dcp_net_hold(p->a, false);
}

// The system sends nothing to port 0.
static void a_held_datagram_that_cannot_be_sent_is_counted(void** state)
{
    place* p = *state;
    const crd_dcp_address nowhere = {.ip = LOOPBACK, .transport = CRD_DCP_UDP};
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    crdi_dcp_net_hold(p->a, true);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"one", 3));
    check(crdi_dcp_net_send(p->a, &nowhere, (const uint8_t*)"two", 3));
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"three", 5));
    crdi_dcp_net_hold(p->a, false);
    check_int(crd_dcp_net_get_counts(p->a).sent, 2);
    check_int(crd_dcp_net_get_counts(p->a).dropped, 1);
    check_int(crd_dcp_net_get_counts(p->a).bytes_sent, 8);
    expect_bytes(expect(p->b), "one", 3);
    expect_bytes(expect(p->b), "three", 5);
}

static void data_that_are_there_come_before_requests(void** state)
{
    place* p = *state;
    const crd_dcp_address control = listening(p->b, CRD_DCP_UDP);
    crdi_dcp_net_set_control(p->b);
    const crd_dcp_address data = listening(p->b, CRD_DCP_UDP);
    const crd_dcp_address stream = listening(p->b, CRD_DCP_TCP);
    check(crdi_dcp_net_send(p->a, &control, (const uint8_t*)"request", 7));
    check(crdi_dcp_net_send(p->a, &data, (const uint8_t*)"data", 4));
    const int fd = raw_connect(&stream); // not even taken in yet
    raw_send(fd, "\x04\0\0\0more", 8);
    check_int(expect(p->b).length, 4);
    check_int(expect(p->b).length, 4);
    expect_bytes(expect(p->b), "request", 7);
    close(fd);
}

static void the_descriptor_tells_of_the_only_socket_too(void** state)
{
    place* p = *state;
    const crd_dcp_address b = listening(p->b, CRD_DCP_UDP);
    crd_dcp_packet got;
    check(!crd_dcp_net_receive(p->b, &got));
    struct pollfd w = {.fd = crd_dcp_net_descriptor(p->b), .events = POLLIN};
    check_int(poll(&w, 1, 0), 0);
    check(crdi_dcp_net_send(p->a, &b, (const uint8_t*)"one", 3));
    check_int(poll(&w, 1, (int)(1000 * PATIENCE)), 1);
    expect_bytes(expect(p->b), "one", 3);
    check(!crd_dcp_net_receive(p->b, &got));
    check(!crd_dcp_net_receive(p->b, &got));
    check_int(poll(&w, 1, 0), 0);
}

static void destroying_nothing_is_fine(void** state)
{
    crd_dcp_net_destroy(NULL);
}

#define with_nets(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_nets(a_datagram_goes_there_and_the_answer_back),
        with_nets(datagrams_may_be_empty_and_as_long_as_UDP_can),
        with_nets(sending_without_a_socket_opens_one),
        with_nets(a_flood_at_one_socket_leaves_the_others_their_turn),
        with_nets(datagrams_that_nobody_read_in_time_are_counted),
        with_nets(a_stream_carries_PDUs_both_ways),
        with_nets(a_thousand_PDUs_of_all_lengths_arrive_whole_and_in_order),
        with_nets(a_PDU_may_come_byte_by_byte_and_several_in_one_segment),
        with_nets(the_last_PDUs_before_the_end_of_a_stream_count),
        with_nets(an_absurd_length_closes_its_stream_and_no_other),
        with_nets(the_limit_of_a_PDU_can_be_moved),
        with_nets(any_bytes_in_any_pieces_give_their_PDUs),
        with_nets(a_slow_peer_fills_the_queue_and_no_more),
        with_nets(a_broken_connection_is_made_again_by_sending),
        with_nets(half_a_PDU_of_a_broken_connection_does_not_get_into_the_next),
        with_nets(connecting_where_nobody_listens_fails_and_may_be_tried_again),
        with_nets(two_hundred_connections_keep_their_PDUs_apart),
        with_nets(those_who_only_sit_there_make_place_for_others),
        with_nets(without_descriptors_peers_are_turned_away),
        with_nets(listening_says_what_is_wrong),
        with_nets(closing_leaves_control_open),
        with_nets(a_packet_survives_what_is_done_while_it_is_looked_at),
        with_nets(other_transports_are_not_sent_over),
        cmocka_unit_test(every_allocation_may_fail),
        with_nets(a_connection_there_is_no_memory_for_is_closed),
        with_nets(sending_and_receiving_do_not_allocate),
        with_nets(addresses_are_read_and_printed),
        with_nets(what_is_held_leaves_together_when_the_hold_ends),
        with_nets(waiting_ends_a_hold_that_nobody_ended),
        with_nets(a_held_datagram_that_cannot_be_sent_is_counted),
        with_nets(data_that_are_there_come_before_requests),
        with_nets(the_descriptor_tells_of_the_only_socket_too),
        cmocka_unit_test(destroying_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
