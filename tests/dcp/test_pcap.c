// Captures, read back by a reader of their own: blocks of pcapng, IPv4, UDP and TCP from the RFCs.
#include "check.h"
#include "shared/dcp.h"
#include "shared/wire_can.h"
#include "testnet/testnet.h"

#include <stdio.h>
#include <unistd.h>

static const char* const path = TEST_BUILD_DIR "/test_dcp_pcap.pcapng";
static const crd_dcp_address master = {0x7F000001, 8081, CRD_DCP_UDP};
static const crd_dcp_address slave = {0xC0A80206, 8080, CRD_DCP_UDP};
static const crd_dcp_address master_tcp = {0x7F000001, 50000, CRD_DCP_TCP};
static const crd_dcp_address slave_tcp = {0xC0A80206, 8080, CRD_DCP_TCP};

// ---- the reader --------------------------------------------------------------------------------

typedef struct file {
    uint8_t* bytes;
    size_t length, at;
} file;

static file read_file(void)
{
    FILE* in = fopen(path, "rb");
    check(in);
    file f = {.bytes = malloc(1 << 20)};
    f.length = fread(f.bytes, 1, 1 << 20, in);
    check(f.length < 1 << 20);
    fclose(in);
    return f;
}

static uint32_t le(const uint8_t* p, int bytes)
{
    uint32_t x = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        x = x << 8 | p[i];
    }
    return x;
}

static uint32_t be(const uint8_t* p, int bytes)
{
    uint32_t x = 0;
    for (int i = 0; i < bytes; i++) {
        x = x << 8 | p[i];
    }
    return x;
}

// The body of the next block; its two lengths agree and it ends within the file.
static const uint8_t* next_block(file* f, uint32_t type, size_t* length)
{
    check(f->at + 12 <= f->length);
    const uint8_t* b = f->bytes + f->at;
    check_int(le(b, 4), type);
    const uint32_t total = le(b + 4, 4);
    check_int(total % 4, 0);
    check(total >= 12 && total <= f->length - f->at);
    check_int(le(b + total - 4, 4), total);
    f->at += total;
    *length = total - 12;
    return b + 8;
}

// The value of an option, NULL if there is none.
static const uint8_t* find_option(const uint8_t* p, size_t length, uint32_t code, uint32_t* size)
{
    for (size_t at = 0; at + 4 <= length;) {
        const uint32_t c = le(p + at, 2), n = le(p + at + 2, 2);
        check(at + 4 + n <= length);
        if (c == 0) {
            check_int(n, 0);
            check_int(at + 4, length); // the last
            return NULL;
        }
        *size = n;
        if (c == code) { return p + at + 4; }
        at += 4 + (n + 3) / 4 * 4;
    }
    return NULL;
}

static void expect_heads(file* f)
{
    size_t length;
    uint32_t size;
    const uint8_t* b = next_block(f, 0x0A0D0D0A, &length);
    check_int(le(b, 4), 0x1A2B3C4D);
    check_int(le(b + 4, 2), 1); // version 1.0
    check_int(le(b + 6, 2), 0);
    check(le(b + 8, 4) == 0xFFFFFFFF && le(b + 12, 4) == 0xFFFFFFFF);
    const uint8_t* program = find_option(b + 16, length - 16, 4, &size);
    check(program && size > 7 && memcmp(program, "cardan ", 7) == 0);
    check(!find_option(b + 16, length - 16, 999, &size)); // walks to the end
    b = next_block(f, 1, &length);
    check_int(le(b, 2), 228); // LINKTYPE_IPV4
    check_int(le(b + 2, 2), 0);
    check_int(le(b + 4, 4), 0); // no limit
    const uint8_t* resolution = find_option(b + 8, length - 8, 9, &size);
    check(resolution && size == 1 && *resolution == 9);
    const uint8_t* name = find_option(b + 8, length - 8, 2, &size);
    check(name && size == 3 && memcmp(name, "dcp", 3) == 0);
    check(!find_option(b + 8, length - 8, 999, &size));
}

// One's complement sum of all 16-bit words, as a receiver does it: 0xFFFF if the checksum is right.
static uint32_t ones_sum(uint32_t sum, const uint8_t* p, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return sum;
}

typedef struct found {
    uint64_t time_ns;
    uint32_t from_ip, to_ip;
    uint32_t from_port, to_port;
    int protocol;
    uint32_t id, seq, ack, flags;
    const uint8_t* data;
    size_t length;
} found;

static found next_packet(file* f)
{
    found r = {0};
    size_t length;
    const uint8_t* b = next_block(f, 6, &length);
    check_int(le(b, 4), 0); // interface
    r.time_ns = (uint64_t)le(b + 4, 4) << 32 | le(b + 8, 4);
    const uint32_t captured = le(b + 12, 4);
    check_int(le(b + 16, 4), captured);
    check_int(length, 20 + (captured + 3) / 4 * 4);
    for (size_t i = 20 + captured; i < length; i++) {
        check_int(b[i], 0);
    }
    const uint8_t* ip = b + 20;
    check(captured >= 28);
    check_int(ip[0], 0x45);
    check_int(be(ip + 2, 2), captured);
    r.id = be(ip + 4, 2);
    check_int(be(ip + 6, 2), 0x4000);
    check(ip[8] > 0);
    check_int(ones_sum(0, ip, 20), 0xFFFF);
    r.protocol = ip[9];
    r.from_ip = be(ip + 12, 4);
    r.to_ip = be(ip + 16, 4);
    const uint8_t* inner = ip + 20;
    const uint32_t rest = captured - 20;
    const uint8_t pseudo[4] = {0, ip[9], (uint8_t)(rest >> 8), (uint8_t)rest};
    check_int(ones_sum(ones_sum(ones_sum(0, ip + 12, 8), pseudo, 4), inner, rest), 0xFFFF);
    r.from_port = be(inner, 2);
    r.to_port = be(inner + 2, 2);
    if (r.protocol == 17) {
        check_int(be(inner + 4, 2), rest);
        check(be(inner + 6, 2) != 0);
        r.data = inner + 8;
        r.length = rest - 8;
    } else {
        check_int(r.protocol, 6);
        r.seq = be(inner + 4, 4);
        r.ack = be(inner + 8, 4);
        check_int(inner[12], 0x50);
        r.flags = inner[13];
        check_int(be(inner + 18, 2), 0);
        r.data = inner + 20;
        r.length = rest - 20;
    }
    return r;
}

static void expect_end(file* f)
{
    check_int(f->at, f->length);
    free(f->bytes);
}

// ---- tests -------------------------------------------------------------------------------------

static void a_datagram_is_a_packet_with_right_headers_and_sums(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    static uint8_t big[65507];
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (uint8_t)(i * 13 + i / 251);
    }
    static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 24, 1001, 65506, 65507};
    for (size_t i = 0; i < 10; i++) {
        check_ok(
            crd_dcp_capture_add(c, 1794710000.25 + (double)i, &master, &slave, big, lengths[i]));
    }
    check_ok(crd_dcp_capture_close(c));
    file f = read_file();
    expect_heads(&f);
    for (size_t i = 0; i < 10; i++) {
        const found r = next_packet(&f);
        check_int(r.time_ns, UINT64_C(1794710000250000000) + i * UINT64_C(1000000000));
        check_int(r.protocol, 17);
        check_int(r.from_ip, 0x7F000001);
        check_int(r.to_ip, 0xC0A80206);
        check_int(r.from_port, 8081);
        check_int(r.to_port, 8080);
        check_int(r.id, i);
        check_int(r.length, lengths[i]);
        check(memcmp(r.data, big, r.length) == 0);
    }
    expect_end(&f);
    crd_context_destroy(ctx);
}

// Against bytes worked out by hand, so that reader and writer cannot share a mistake.
static void one_datagram_byte_by_byte(void** state)
{
    static const uint8_t want[] = {
        6,
        0,
        0,
        0,
        64,
        0,
        0,
        0,
        0,
        0,
        0,
        0, // packet, 64 bytes, interface 0
        0,
        0,
        0,
        0,
        0x00,
        0x65,
        0xCD,
        0x1D, // 0.5 s = 0x1DCD6500 ns
        32,
        0,
        0,
        0,
        32,
        0,
        0,
        0, // captured, original
        // IPv4: 4500 + 0020 + 4000 + 4011 + 7F00 + 0001 + C0A8 + 0206 = 206E0, folded 06E2
        0x45,
        0,
        0,
        32,
        0,
        0,
        0x40,
        0,
        64,
        17,
        0xF9,
        0x1D,
        127,
        0,
        0,
        1,
        192,
        168,
        2,
        6,
        // UDP: 7F00 + 0001 + C0A8 + 0206 + 0011 + 000C + 1F91 + 1F90 + 000C + 8000 + 0001 = 200FA,
        // folded 00FC
        0x1F,
        0x91,
        0x1F,
        0x90,
        0,
        12,
        0xFF,
        0x03,
        0x80,
        0,
        0,
        1, // INF_state
        64,
        0,
        0,
        0,
    };
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    check_ok(crd_dcp_capture_add(c, 0.5, &master, &slave, (const uint8_t*)"\x80\0\0\1", 4));
    check_ok(crd_dcp_capture_close(c));
    file f = read_file();
    expect_heads(&f);
    check_int(f.length - f.at, sizeof want);
    for (size_t i = 0; i < sizeof want; i++) {
        if (f.bytes[f.at + i] != want[i]) {
            fail_msg("byte %zu is %02X, expected %02X", i, f.bytes[f.at + i], want[i]);
        }
    }
    free(f.bytes);
    crd_context_destroy(ctx);
}

static void a_stream_has_its_sequence_numbers_both_ways(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    crd_dcp_address other = master_tcp;
    other.port++;
    check_ok(crd_dcp_capture_add(c, 1, &master_tcp, &slave_tcp, (const uint8_t*)"abcd", 4));
    check_ok(crd_dcp_capture_add(c, 2, &slave_tcp, &master_tcp, (const uint8_t*)"xyz", 3));
    check_ok(crd_dcp_capture_add(c, 3, &master_tcp, &slave_tcp, NULL, 0));
    check_ok(crd_dcp_capture_add(c, 4, &other, &slave_tcp, (const uint8_t*)"o", 1));
    check_ok(crd_dcp_capture_add(c, 5, &slave_tcp, &master_tcp, (const uint8_t*)"!", 1));
    check_ok(crd_dcp_capture_close(c));
    static const struct {
        uint32_t from, to, seq, ack;
        const char* data;
        size_t length;
    } want[] = {
        {50000, 8080, 1, 1, "\4\0\0\0abcd", 8}, {8080, 50000, 1, 9, "\3\0\0\0xyz", 7},
        {50000, 8080, 9, 8, "\0\0\0\0", 4},     {50001, 8080, 1, 1, "\1\0\0\0o", 5},
        {8080, 50000, 8, 13, "\1\0\0\0!", 5},
    };
    file f = read_file();
    expect_heads(&f);
    for (size_t i = 0; i < 5; i++) {
        const found r = next_packet(&f);
        check_int(r.protocol, 6);
        check_int(r.flags, 0x18);
        check_int(r.from_port, want[i].from);
        check_int(r.to_port, want[i].to);
        check_int(r.seq, want[i].seq);
        check_int(r.ack, want[i].ack);
        check_int(r.length, want[i].length);
        check(memcmp(r.data, want[i].data, r.length) == 0);
    }
    expect_end(&f);
    crd_context_destroy(ctx);
}

static void a_PDU_longer_than_a_segment_is_split(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    const size_t length = 200001;
    uint8_t* bytes = malloc(length);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 300);
    }
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    check_ok(crd_dcp_capture_add(c, 1, &master_tcp, &slave_tcp, bytes, length));
    check_ok(crd_dcp_capture_close(c));
    file f = read_file();
    expect_heads(&f);
    size_t at = 0;
    while (at < 4 + length) {
        const found r = next_packet(&f);
        check_int(r.seq, 1 + at);
        for (size_t i = 0; i < r.length; i++, at++) {
            check_int(r.data[i], at < 4 ? (uint8_t)(length >> 8 * at) : bytes[at - 4]);
        }
    }
    check_int(at, 4 + length);
    expect_end(&f);
    free(bytes);
    crd_context_destroy(ctx);
}

static void strange_times_do_no_harm(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    const double times[] = {-1, NAN, INFINITY, -INFINITY, 1e300, 0};
    for (int i = 0; i < 6; i++) {
        check_ok(crd_dcp_capture_add(c, times[i], &master, &slave, NULL, 0));
    }
    check_ok(crd_dcp_capture_close(c));
    file f = read_file();
    expect_heads(&f);
    for (int i = 0; i < 6; i++) {
        check_int(next_packet(&f).time_ns, 0);
    }
    expect_end(&f);
    crd_context_destroy(ctx);
}

static void what_cannot_be_captured_is_said(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    check_status(crd_dcp_capture_open(ctx, "/nowhere/at/all.pcapng", &c), CRD_E_IO);
    check_contains(crd_error_text(ctx), "/nowhere/at/all.pcapng");
    check(!c);
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    static uint8_t big[65508];
    const crd_dcp_address can = {0x7F000001, 1, CRD_DCP_CAN};
    check_status(crd_dcp_capture_add(c, 0, &master, &slave, big, sizeof big), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "65508");
    check_status(crd_dcp_capture_add(c, 0, &master, &can, big, 73), CRD_E_RANGE);
    check_ok(crd_dcp_capture_close(c));
    check_ok(crd_dcp_capture_close(NULL));
    if (access("/dev/full", W_OK) == 0) { // a disk without room
        check_ok(crd_dcp_capture_open(ctx, "/dev/full", &c));
        for (int i = 0; i < 100; i++) {
            check_ok(crd_dcp_capture_add(c, 0, &master, &slave, big, 65507));
        }
        check_status(crd_dcp_capture_close(c), CRD_E_IO);
        check_contains(crd_error_text(ctx), "not complete");
    }
    crd_context_destroy(ctx);
}

// 123#AABB and 12345678##1CC, as tcpdump.org has LINKTYPE_CAN_SOCKETCAN: big endian, extended
// frames with bit 31, BRS 1 and FDF 4.
static void frames_of_can_have_an_interface_of_their_own(void** state)
{
    (void)state;
    static const uint8_t expected[] = {
        1,    0,    0,   0,   40,  0,   0,    0,    227, 0,  0,  0, 0, 0,    0,
        0,    2,    0,   3,   0,   'c', 'a',  'n',  0,   9,  0,  1, 0, 9,    0,
        0,    0,    0,   0,   0,   0,   40,   0,    0,   0, // the interface, then a packet
        6,    0,    0,   0,   44,  0,   0,    0,    1,   0,  0,  0, 0, 0,    0,
        0,    0,    202, 154, 59,  10,  0,    0,    0,   10, 0,  0, 0, 0,    0,
        1,    0x23, 2,   0,   0,   0,   0xAA, 0xBB, 0,   0,  44, 0, 0, 0, // and another one
        6,    0,    0,   0,   44,  0,   0,    0,    1,   0,  0,  0, 0, 0,    0,
        0,    0,    148, 53,  119, 9,   0,    0,    0,   9,  0,  0, 0, 0x92, 0x34,
        0x56, 0x78, 1,   5,   0,   0,   0xCC, 0,    0,   0,  44, 0, 0, 0};
    const crdi_can_frame one = {.id = 0x123, .length = 2, .data = {0xAA, 0xBB}, .time = 1000000000};
    const crdi_can_frame two = {.id = 0x12345678,
                                .extended = true,
                                .fd = true,
                                .flags = 1,
                                .length = 1,
                                .data = {0xCC},
                                .time = 2000000000};
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    uint8_t bytes[512];
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    crdi_dcp_capture_frame(c, &one);
    crdi_dcp_capture_frame(c, &two);
    check_ok(crd_dcp_capture_close(c));
    FILE* f = fopen(path, "rb");
    check(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    check(n > sizeof expected);
    check(memcmp(bytes + n - sizeof expected, expected, sizeof expected) == 0);
    crdi_can_frame back;
    check(crdi_can_unpack(expected + sizeof expected - 16, 9, &back));
    check(back.extended && back.fd && back.id == two.id && back.flags == 1 && back.data[0] == 0xCC);
    // Who does not say FDF shows it by 72 bytes; longer than its frame, or CAN XL (bit 7): none
    uint8_t old[72] = {0, 0, 1, 0x23, 8};
    check(crdi_can_unpack(old, 72, &back) && back.fd);
    check(crdi_can_unpack(old, 16, &back) && !back.fd && back.length == 8);
    check(!crdi_can_unpack(old, 15, &back) && !crdi_can_unpack(old, 7, &back));
    old[4] = 0x80;
    check(!crdi_can_unpack(old, 72, &back));
    crd_context_destroy(ctx);
}

static void a_net_adds_what_it_sends_and_receives(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    testnet* t = NULL;
    crd_dcp_net *a = NULL, *b = NULL;
    const testnet_faults faults = {.delay = 0.5, .start = 1000};
    check_ok(testnet_create(ctx, &faults, &t));
    check_ok(testnet_join(t, 0x0A000001, &a));
    check_ok(testnet_join(t, 0x0A000002, &b));
    crd_dcp_address at_a = {.port = 1, .transport = CRD_DCP_UDP};
    crd_dcp_address at_b = {.port = 2, .transport = CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(a, &at_a));
    check_ok(crd_dcp_net_listen(b, &at_b));
    check_ok(crd_dcp_capture_open(ctx, path, &c));
    crd_dcp_net_capture(a, c);
    crd_dcp_packet got;
    check(crdi_dcp_net_send(a, &at_b, (const uint8_t*)"there", 5));
    crd_dcp_net_wait(b, 1);
    check(crd_dcp_net_receive(b, &got));
    check(crdi_dcp_net_send(b, &got.from, (const uint8_t*)"back", 4));
    crd_dcp_net_wait(a, 1);
    check(crd_dcp_net_receive(a, &got));
    crd_dcp_net_capture(a, NULL);
    check(crdi_dcp_net_send(a, &at_b, (const uint8_t*)"unseen", 6));
    check_ok(crd_dcp_capture_close(c));
    file f = read_file();
    expect_heads(&f);
    found r = next_packet(&f);
    check_int(r.time_ns, 1000 * UINT64_C(1000000000));
    check_int(r.from_ip, 0x0A000001);
    check_int(r.to_port, 2);
    check(r.length == 5 && memcmp(r.data, "there", 5) == 0);
    r = next_packet(&f);
    check_int(r.time_ns, 1001 * UINT64_C(1000000000));
    check_int(r.from_ip, 0x0A000002);
    check_int(r.to_port, 1);
    check(r.length == 4 && memcmp(r.data, "back", 4) == 0);
    expect_end(&f);
    crd_dcp_net_destroy(a);
    crd_dcp_net_destroy(b);
    testnet_destroy(t);
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_dcp_capture* c = NULL;
        crd_status st = crd_dcp_capture_open(ctx, path, &c);
        if (st == CRD_OK) {
            st = crd_dcp_capture_add(c, 1, &master_tcp, &slave_tcp, (const uint8_t*)"x", 1);
        }
        check_ok(crd_dcp_capture_close(c));
        check_int(a.live, 1);
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 3);
            return;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_datagram_is_a_packet_with_right_headers_and_sums),
        cmocka_unit_test(one_datagram_byte_by_byte),
        cmocka_unit_test(a_stream_has_its_sequence_numbers_both_ways),
        cmocka_unit_test(a_PDU_longer_than_a_segment_is_split),
        cmocka_unit_test(strange_times_do_no_harm),
        cmocka_unit_test(what_cannot_be_captured_is_said),
        cmocka_unit_test(frames_of_can_have_an_interface_of_their_own),
        cmocka_unit_test(a_net_adds_what_it_sends_and_receives),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
