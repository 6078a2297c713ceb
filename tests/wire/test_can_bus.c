// Frames on a bus of this host, on a descriptor, and as text.
#include "check.h"
#include "shared/wire_can.h"

#include <arpa/inet.h>
#include <linux/can.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUS "udp://239.74.163.2:43117"

static crdi_can_frame frame_of(const char* text)
{
    crdi_can_frame f;
    const char* why = "";
    if (!crdi_can_parse_frame(text, strlen(text), &f, &why)) { fail_msg("%s: %s", text, why); }
    return f;
}

static void frames_as_text_come_back(void** state)
{
    (void)state;
    static const char* const good[] = {
        "123#",   "7FF#DEADBEEF", "00000123#0102030405060708", "1FFFFFFF#R", "123#R8",
        "123##1", "123##0000102", "20000040#0000000000000000"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[CRDI_CAN_TEXT];
        const crdi_can_frame f = frame_of(good[i]);
        crdi_can_print_frame(&f, text);
        check_text(text, good[i]);
    }
    check(frame_of("00000123#").extended && frame_of("123##311").flags == 3);
    check(frame_of("20000040#").error && frame_of("20000040#").id == 0x40);
    check_text(crdi_can_error_name(&(crdi_can_frame){.error = true, .id = 0x40}), "bus off");
    static const char* const bad[] = {"",
                                      "123",
                                      "800#",
                                      "12#",
                                      "123#0",
                                      "123#XY",
                                      "123#0102030405060708AA",
                                      "123#R9",
                                      "123##",
                                      "123##1010203040506070809",
                                      "FFFFFFFF#",
                                      "1234#",
                                      "12345678#R88"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crdi_can_frame f;
        const char* why = "";
        if (crdi_can_parse_frame(bad[i], strlen(bad[i]), &f, &why)) { fail_msg("%s", bad[i]); }
        check(why[0]);
    }
}

static void lines_of_candump_are_read(void** state)
{
    (void)state;
    static const struct {
        const char *line, *interface, *frame;
        int64_t time;
    } rows[] = {
        {"(1436509052.249713) vcan0 044#2A366C2BBA\n", "vcan0", "044#2A366C2BBA",
         1436509052249713000},
        {"(0.000000001) can1 123##5AABB R", "can1", "123##1AABB", 1},
        {"123#AB", "", "123#AB", 0},
        {"  vcan0  123   [4]  DE AD BE EF\r\n", "vcan0", "123#DEADBEEF", 0},
        {" (1700000000.5)  vcan0  12345678   [2]  DE AD   '..'", "vcan0", "12345678#DEAD",
         1700000000500000000},
        {"  vcan0  123  [12]  00 01 02 03 04 05 06 07 08 09 0A 0B", "vcan0",
         "123##0000102030405060708090A0B", 0},
        {"  vcan0  123   [0]  remote request", "vcan0", "123#R", 0},
        {"  vcan0  123   [0] ", "vcan0", "123#", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crdi_can_frame f;
        const char *interface = "", *why = "";
        size_t n = 0;
        char text[CRDI_CAN_TEXT];
        if (!crdi_can_parse_line(rows[i].line, strlen(rows[i].line), &f, &interface, &n, &why)) {
            fail_msg("%s: expected %s", rows[i].line, why);
        }
        crdi_can_print_frame(&f, text);
        check_text(text, rows[i].frame);
        check_int(f.time, rows[i].time);
        check(n == strlen(rows[i].interface) && memcmp(interface, rows[i].interface, n) == 0);
    }
    static const char* const bad[] = {"",
                                      "can0",
                                      "can0 123",
                                      "(x) can0 123#",
                                      "can0 123 [3] 01 02",
                                      "(1.0000000001) can0 123#",
                                      "can0 123 [9] 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crdi_can_frame f;
        const char *interface = "", *why = "";
        size_t n = 0;
        if (crdi_can_parse_line(bad[i], strlen(bad[i]), &f, &interface, &n, &why)) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void receive(crdi_can_bus* b, const char* expected, bool timed)
{
    crdi_can_frame f;
    char text[CRDI_CAN_TEXT] = "";
    for (int i = 0; i < 50; i++) {
        if (crdi_can_bus_receive(b, &f)) {
            crdi_can_print_frame(&f, text);
            break;
        }
        crdi_can_bus_wait(b, 0.1);
    }
    check_text(text, expected);
    check(!timed || f.time > INT64_C(1600000000) * 1000000000);
}

static void a_frame_comes_to_all_others_of_a_bus(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crdi_can_bus* b[3];
    for (int i = 0; i < 3; i++) {
        if (crdi_can_bus_open(ctx, BUS, &b[i]) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    }
    static const char* const frames[] = {"123#DEADBEEF", "00000001##30102", "7FF#R3"};
    for (int k = 0; k < 3; k++) {
        const crdi_can_frame f = frame_of(frames[k]);
        check(crdi_can_bus_send(b[k], &f));
        receive(b[(k + 1) % 3], frames[k], true);
        receive(b[(k + 2) % 3], frames[k], true);
    }
    crdi_can_frame f;
    for (int i = 0; i < 3; i++) {
        check(!crdi_can_bus_receive(b[i], &f)); // nothing of its own
        const crdi_can_counts c = crdi_can_bus_counts(b[i]);
        check(c.sent == 1 && c.received == 2 && c.bad == 0 && c.overrun == 0);
        crdi_can_bus_close(b[i]);
    }
    crd_context_destroy(ctx);
}

// What others put into the group: several frames in a packet, and what is none.
static void packets_of_others_are_taken_apart(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crdi_can_bus* b = NULL;
    check_ok(crdi_can_bus_open(ctx, BUS, &b));
    const int s = socket(AF_INET, SOCK_DGRAM, 0);
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(43117)};
    inet_pton(AF_INET, "239.74.163.2", &to.sin_addr);
    check(setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) == 0);
    static const uint8_t wrong[][12] = {
        {2, 0, 1},                               // too short
        {1, 0, 0, 0, 1, 0, 0, 1, 0x23, 0},       // another version
        {2, 1, 0, 0, 1, 0, 0, 1, 0x23, 0},       // no data
        {2, 0, 0, 0, 1, 0, 0, 1, 0x23, 8, 1, 2}, // fewer bytes than it says
        {2, 0, 0, 0, 1, 0, 0, 1, 0x23, 9, 1, 2}, // more than a frame has
    };
    static const int sizes[] = {3, 10, 10, 12, 12};
    for (int i = 0; i < 5; i++) {
        check(sendto(s, wrong[i], (size_t)sizes[i], 0, (const struct sockaddr*)&to, sizeof to) > 0);
    }
    static const uint8_t two[] = {2,    0,    7, 0, 2, 0,    0, 1,    0x23, 1,
                                  0xAB, 0x80, 0, 0, 1, 0x82, 1, 0xCC, 0xDD};
    check(sendto(s, two, sizeof two, 0, (const struct sockaddr*)&to, sizeof to) > 0);
    receive(b, "123#AB", true);
    receive(b, "00000001##1CCDD", true);
    check_int(crdi_can_bus_counts(b).bad, 5);
    close(s);
    crdi_can_bus_close(b);
    crd_context_destroy(ctx);
}

static void descriptors_carry_what_socketcan_does(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    int pair[2];
    crdi_can_bus* b = NULL;
    check(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    check_ok(crdi_can_bus_over(ctx, pair[0], &b));
    crdi_can_frame f = frame_of("123##1AABB");
    struct canfd_frame raw;
    check(crdi_can_bus_send(b, &f));
    check_int(read(pair[1], &raw, sizeof raw), CANFD_MTU);
    check(raw.can_id == 0x123 && raw.len == 2 && raw.flags & CANFD_BRS && raw.data[1] == 0xBB);
    raw = (struct canfd_frame){.can_id = 7 | CAN_EFF_FLAG, .len = 3, .data = {1, 2, 3}};
    check_int(write(pair[1], &raw, CAN_MTU), CAN_MTU);
    receive(b, "00000007#010203", false);
    raw.len = 9; // of a frame of 8
    check_int(write(pair[1], &raw, CAN_MTU), CAN_MTU);
    check_int(write(pair[1], &raw, 5), 5);
    check(!crdi_can_bus_receive(b, &f));
    check_int(crdi_can_bus_counts(b).bad, 2);
    f.length = 65;
    check(!crdi_can_bus_send(b, &f));
    check_int(crdi_can_bus_counts(b).dropped, 1);
    crdi_can_bus_close(b);
    close(pair[0]);
    close(pair[1]);
    crd_context_destroy(ctx);
}

static void interfaces_that_are_none_are_told(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crdi_can_bus* b = NULL;
    static const char* const names[] = {"",
                                        "a-name-that-is-too-long",
                                        "udp://127.0.0.1:5000",
                                        "udp://239.1.2.3",
                                        "udp://239.1.2.3:99999",
                                        "tcp://1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_status(crdi_can_bus_open(ctx, names[i], &b), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), "udp://239.74.163.2:43113");
    }
    check(crdi_can_bus_open(ctx, "nocan9", &b) < 0); // this kernel has no CAN, or no such interface
    check_contains(crd_error_text(ctx), "CAN: ");
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_as_text_come_back),
        cmocka_unit_test(lines_of_candump_are_read),
        cmocka_unit_test(a_frame_comes_to_all_others_of_a_bus),
        cmocka_unit_test(packets_of_others_are_taken_apart),
        cmocka_unit_test(descriptors_carry_what_socketcan_does),
        cmocka_unit_test(interfaces_that_are_none_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
