// wire/receive: datagrams of 32 bytes with a counter, a checksum and ten fields, received, judged
// and decoded as a unit of `frames` does it, against recv and memcpy of the same ones by a plain
// socket.
#include "benchmark.h"
#include "shared/dcp.h"
#include "shared/system.h"
#include "shared/wire.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMES = 100, REPEATS = 400 };

static const char layout[] =
    "layout: 1\nmessages:\n  m:\n    direction: receive\n    cycle: 1 ms\n    counter: n\n"
    "    checksum: { field: c, type: crc16 }\n    fields:\n      n: { type: uint16 }\n"
    "      a: { type: float32 }\n      b: { type: float32, byte_order: big }\n      d: { type: "
    "int16, "
    "scale: 0.1 }\n      e: { type: int16, byte_order: big, scale: 0.1 }\n      f: { type: float64 "
    "}\n"
    "      g: { type: uint, bits: 12 }\n      h: { type: uint8 }\n      i: { type: uint32 }\n"
    "      j: { type: uint8 }\n      c: { type: uint16 }\n";

typedef struct rig {
    crdi_wire_catalog catalog;
    crdi_wire_state in, out;
    crd_dcp_net *net, *from;
    crd_dcp_address at;
    int plain;
    uint16_t plain_port;
    double values[16];
} rig;

static void send_all(rig* r, uint16_t port)
{
    const crdi_wire_message* m = &r->catalog.messages[0];
    const crd_dcp_address to = {CRDI_DCP_LOOPBACK, port, CRD_DCP_UDP};
    uint8_t data[64] = {0};
    for (int i = 0; i < TIMES; i++) {
        (void)crdi_wire_encode(m, r->values, data);
        crdi_wire_seal(m, &r->out, data);
        if (!crdi_dcp_net_send(r->from, &to, data, (size_t)m->length)) { abort(); }
    }
}

static double time_unit(rig* r)
{
    const crdi_wire_message* m = &r->catalog.messages[0];
    static uint8_t packet[65536 + CRDI_WIRE_PAD];
    crd_dcp_packet p;
    int count = 0;
    send_all(r, r->at.port);
    const int64_t begin = crdi_now_ns();
    while (crd_dcp_net_receive(r->net, &p)) {
        memcpy(packet, p.bytes, p.length);
        if (crdi_wire_recognise(&r->catalog, packet, p.length) != m ||
            crdi_wire_judge(m, &r->in, packet, p.length) != CRDI_WIRE_GOOD) {
            abort();
        }
        crdi_wire_decode(m, packet, r->values);
        count++;
    }
    const int64_t end = crdi_now_ns();
    if (count != TIMES) { abort(); }
    return (double)(end - begin) / TIMES;
}

static double time_plain(rig* r)
{
    static uint8_t room[65536];
    static volatile uint8_t copy[65536];
    const crdi_wire_state was = r->out;
    int count = 0;
    send_all(r, r->plain_port);
    r->out = was; // these were not the unit's
    const int64_t begin = crdi_now_ns();
    for (ssize_t n; (n = recv(r->plain, room, sizeof room, MSG_DONTWAIT)) > 0; count++) {
        memcpy((void*)(uintptr_t)copy, room, (size_t)n);
    }
    const int64_t end = crdi_now_ns();
    if (count != TIMES) { abort(); }
    return (double)(end - begin) / TIMES;
}

static void receive_case(benchmark* b)
{
    static rig r;
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    benchmark_must(ctx,
                   crdi_layout_parse(ctx, layout, strlen(layout), "benchmark", &arena, &r.catalog));
    benchmark_must(ctx, crd_dcp_net_create(ctx, &r.net));
    benchmark_must(ctx, crd_dcp_net_create(ctx, &r.from));
    r.at = (crd_dcp_address){CRDI_DCP_LOOPBACK, 0, CRD_DCP_UDP};
    benchmark_must(ctx, crd_dcp_net_listen(r.net, &r.at));
    struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof s;
    r.plain = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(r.plain, (struct sockaddr*)&s, sizeof s) != 0 ||
        getsockname(r.plain, (struct sockaddr*)&s, &length) != 0) {
        abort();
    }
    r.plain_port = ntohs(s.sin_port);
    double ours = INFINITY, floor = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, time_plain(&r));
        ours = fmin(ours, time_unit(&r));
    }
    const double share = 5e-2 * 1e9 / 1e4; // ns of 5 % of a core for each of 10,000 in a second
    benchmark_report(b, "wire/receive", ours, "ns", floor, 1.2,
                     "%d bytes: %.0f ns, recv and memcpy %.0f ns", r.catalog.messages[0].length,
                     ours, floor);
    benchmark_report(b, "wire/share", ours, "ns", share, 1,
                     "10,000 in a second take %.2f %% of a core", 100 * ours * 1e4 / 1e9);
    close(r.plain);
    crd_dcp_net_destroy(r.net);
    crd_dcp_net_destroy(r.from);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_wire_cases[] = {{"wire/receive", receive_case}, {NULL, NULL}};
