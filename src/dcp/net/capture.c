// PDUs as a pcapng file (draft-ietf-opsawg-pcapng), little endian:
//   section header      type u32 = 0A0D0D0A  length u32  magic u32 = 1A2B3C4D  1 u16  0 u16
//                       section length i64 = -1  options  length u32
//   interface           type u32 = 1  length u32  link type u16  0 u16  snap length u32 = 0
//                       options  length u32
//   one for each packet type u32 = 6  length u32  interface u32  time high u32  time low u32
//                       captured u32  original u32  bytes, to a multiple of 4  length u32
// The bytes are IPv4 packets (RFC 791) with UDP (RFC 768) or TCP (RFC 9293) in them, big endian; of
// CAN, on an interface of its own, frames as SocketCAN has them.
#include "dcp/net/net.h"
#include "shared/base.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LINKTYPE_CAN = 227,
    LINKTYPE_IPV4 = 228,
    IP_HEADER = 20,
    UDP_HEADER = 8,
    TCP_HEADER = 20,
    PREFIX = 4,
    MOST_IP = 65535,
    MOST_CAN = 72,
    MOST_SEGMENT = MOST_IP - IP_HEADER - TCP_HEADER,
    PACKET_HEAD = 28, // of a packet's block
    FILE_BUFFER = 1 << 16,
};

typedef struct flow { // a stream, both ways
    crd_dcp_address end[2];
    uint32_t next[2]; // sequence number of the end's next byte
} flow;

struct crd_dcp_capture {
    crd_context* ctx;
    char* path;
    FILE* file;
    int error; // the first of the system's
    uint16_t ip_id;
    bool raw; // streams have no prefixes
    bool can; // there is an interface for CAN
    flow* flows;
    size_t flow_count, flow_room;
    char buffer[FILE_BUFFER];
    uint8_t block[PACKET_HEAD + MOST_IP + 8]; // the packet is made where it is written from
};

static void store_be16(uint8_t* p, unsigned x) // big endian
{
    p[0] = (uint8_t)(x >> 8);
    p[1] = (uint8_t)x;
}

static void store_be32(uint8_t* p, uint32_t x)
{
    store_be16(p, x >> 16);
    store_be16(p + 2, x & 0xFFFF);
}

static void write_bytes(crd_dcp_capture* c, const uint8_t* bytes, size_t length)
{
    if (c->error == 0 && fwrite(bytes, 1, length, c->file) != length) {
        c->error = errno ? errno : EIO;
    }
}

static uint64_t ns_of(double time)
{
    const bool sane = time > 0 && time < 1e10;
    const double whole = sane ? floor(time) : 0;
    return (uint64_t)whole * UINT64_C(1000000000) + (sane ? (uint64_t)(1e9 * (time - whole)) : 0);
}

// `captured` bytes are in the block behind its head.
static void write_block(crd_dcp_capture* c, uint64_t ns, uint32_t interface, uint32_t captured)
{
    const uint32_t padded = (captured + 3) / 4 * 4;
    uint8_t* b = c->block;
    crdi_store_le(b, 4, 6);
    crdi_store_le(b + 4, 4, PACKET_HEAD + padded + 4);
    crdi_store_le(b + 8, 4, interface);
    crdi_store_le(b + 12, 4, (uint32_t)(ns >> 32));
    crdi_store_le(b + 16, 4, (uint32_t)ns);
    crdi_store_le(b + 20, 4, captured);
    crdi_store_le(b + 24, 4, captured);
    memset(b + PACKET_HEAD + captured, 0, padded - captured);
    crdi_store_le(b + PACKET_HEAD + padded, 4, PACKET_HEAD + padded + 4);
    write_bytes(c, b, PACKET_HEAD + padded + 4);
}

// ---- IPv4 --------------------------------------------------------------------------------------

// The sum of RFC 1071, not yet folded.
static uint32_t add16(uint32_t sum, const uint8_t* p, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2) {
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    }
    if (length % 2) { sum += (uint32_t)p[length - 1] << 8; }
    return sum;
}

static uint16_t fold_sum(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

// Puts the IPv4 header in front of `length` bytes of UDP or TCP and writes the block. The checksum
// of those is at `checksum` from their beginning, still 0.
static void write_packet(crd_dcp_capture* c, double time, const crd_dcp_address* from,
                         const crd_dcp_address* to, uint8_t protocol, size_t length,
                         size_t checksum)
{
    uint8_t* ip = c->block + PACKET_HEAD;
    uint8_t* inner = ip + IP_HEADER;
    memset(ip, 0, IP_HEADER);
    ip[0] = 0x45; // version 4, five words
    store_be16(ip + 2, (unsigned)(IP_HEADER + length));
    store_be16(ip + 4, c->ip_id++);
    store_be16(ip + 6, 0x4000); // do not fragment
    ip[8] = 64;                 // hops
    ip[9] = protocol;
    store_be32(ip + 12, from->ip);
    store_be32(ip + 16, to->ip);
    store_be16(ip + 10, fold_sum(add16(0, ip, IP_HEADER)));
    // Addresses, protocol and length count as well.
    const uint32_t pseudo = add16(protocol + (uint32_t)length, ip + 12, 8);
    const uint16_t sum = fold_sum(add16(pseudo, inner, length));
    store_be16(inner + checksum, protocol == 17 && sum == 0 ? 0xFFFF : sum); // UDP: 0 is "none"

    write_block(c, ns_of(time), 0, (uint32_t)(IP_HEADER + length));
}

static void add_datagram(crd_dcp_capture* c, double time, const crd_dcp_address* from,
                         const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    uint8_t* udp = c->block + PACKET_HEAD + IP_HEADER;
    store_be16(udp, from->port);
    store_be16(udp + 2, to->port);
    store_be16(udp + 4, (unsigned)(UDP_HEADER + length));
    store_be16(udp + 6, 0);
    if (length > 0) { memcpy(udp + UDP_HEADER, bytes, length); }
    write_packet(c, time, from, to, 17, UDP_HEADER + length, 6);
}

// The stream between two ends and which of them is `from`; NULL when out of memory.
static flow* find_flow(crd_dcp_capture* c, const crd_dcp_address* from, const crd_dcp_address* to,
                       int* side)
{
    for (size_t i = 0; i < c->flow_count; i++) {
        flow* f = &c->flows[i];
        for (int k = 0; k < 2; k++) {
            if (crd_dcp_address_equal(&f->end[k], from) &&
                crd_dcp_address_equal(&f->end[1 - k], to)) {
                *side = k;
                return f;
            }
        }
    }
    flow* more = crdi_grow(c->ctx, c->flows, &c->flow_room, c->flow_count + 1, sizeof *more);
    if (!more) { return NULL; }
    c->flows = more;
    c->flows[c->flow_count] = (flow){.end = {*from, *to}, .next = {1, 1}};
    *side = 0;
    return &c->flows[c->flow_count++];
}

static crd_status add_stream(crd_dcp_capture* c, double time, const crd_dcp_address* from,
                             const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    int side = 0;
    flow* f = find_flow(c, from, to, &side);
    if (!f) { return CRD_E_MEMORY; }
    uint8_t* tcp = c->block + PACKET_HEAD + IP_HEADER;
    uint8_t* data = tcp + TCP_HEADER;
    size_t done = 0;
    size_t front = c->raw ? 0 : PREFIX; // in the first segment
    do {
        const size_t room = MOST_SEGMENT - front;
        const size_t part = length - done < room ? length - done : room;
        memset(tcp, 0, TCP_HEADER);
        store_be16(tcp, from->port);
        store_be16(tcp + 2, to->port);
        store_be32(tcp + 4, f->next[side]);
        store_be32(tcp + 8, f->next[1 - side]);
        tcp[12] = 5 << 4;             // words
        tcp[13] = 0x18;               // ACK, PSH
        store_be16(tcp + 14, 0xFFFF); // window
        if (front > 0) { crdi_store_le(data, 4, (uint32_t)length); }
        if (part > 0) { memcpy(data + front, bytes + done, part); }
        write_packet(c, time, from, to, 6, TCP_HEADER + front + part, 16);
        f->next[side] += (uint32_t)(front + part);
        done += part;
        front = 0;
    } while (done < length);
    return CRD_OK;
}

// ---- the file ----------------------------------------------------------------------------------

static void write_interface(crd_dcp_capture* c, uint16_t link, const char name[static 3])
{
    uint8_t b[40] = {0};
    crdi_store_le(b, 4, 1);
    crdi_store_le(b + 4, 4, 40);
    crdi_store_le(b + 8, 2, link);
    crdi_store_le(b + 16, 2, 2); // if_name
    crdi_store_le(b + 18, 2, 3);
    memcpy(b + 20, name, 3);
    crdi_store_le(b + 24, 2, 9); // if_tsresol
    crdi_store_le(b + 26, 2, 1);
    b[28] = 9;                    // 10^-9 s
    crdi_store_le(b + 36, 4, 40); // behind the end of the options
    write_bytes(c, b, 40);
}

static void write_heads(crd_dcp_capture* c)
{
    static const char program[] = "cardan " CRD_VERSION;
    uint8_t b[128] = {0};
    const uint32_t text = (uint32_t)sizeof program - 1;
    const uint32_t length = 24 + 4 + (text + 3) / 4 * 4 + 4 + 4;
    crdi_store_le(b, 4, 0x0A0D0D0A);
    crdi_store_le(b + 4, 4, length);
    crdi_store_le(b + 8, 4, 0x1A2B3C4D);
    crdi_store_le(b + 12, 2, 1);
    memset(b + 16, 0xFF, 8);     // length of the section: not said
    crdi_store_le(b + 24, 2, 4); // shb_userappl
    crdi_store_le(b + 26, 2, text);
    memcpy(b + 28, program, text);
    crdi_store_le(b + length - 4, 4, length); // behind the four zeros that end the options
    write_bytes(c, b, length);
    write_interface(c, LINKTYPE_IPV4, "dcp");
}

static void capture_free(crd_dcp_capture* c)
{
    crd_context* ctx = c->ctx;
    crd_free(ctx, c->flows);
    crd_free(ctx, c->path);
    crd_free(ctx, c);
}

crd_status crd_dcp_capture_open(crd_context* ctx, const char* path, crd_dcp_capture** out)
{
    crd_dcp_capture* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->path = crdi_strdup(ctx, path);
    if (!c->path) {
        capture_free(c);
        return CRD_E_MEMORY;
    }
    c->file = fopen(path, "wbe");
    if (!c->file) {
        const int code = errno;
        capture_free(c);
        return crdi_fail(ctx, CRD_E_IO, "%s: cannot be written: %s", path, strerror(code));
    }
    (void)setvbuf(c->file, c->buffer, _IOFBF, sizeof c->buffer);
    write_heads(c);
    *out = c;
    return CRD_OK;
}

void crdi_dcp_capture_set_raw(crd_dcp_capture* c)
{
    c->raw = true;
}

void crdi_dcp_capture_can(crd_dcp_capture* c, int64_t ns, const uint8_t* bytes, size_t length)
{
    if (!c->can) { write_interface(c, LINKTYPE_CAN, "can"); }
    c->can = true;
    memcpy(c->block + PACKET_HEAD, bytes, length);
    write_block(c, (uint64_t)ns, 1, (uint32_t)length);
}

crd_status crd_dcp_capture_add(crd_dcp_capture* c, double time, const crd_dcp_address* from,
                               const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    if (to->transport == CRD_DCP_UDP && length <= CRDI_DCP_MOST_UDP) {
        add_datagram(c, time, from, to, bytes, length);
        return CRD_OK;
    }
    if (to->transport == CRD_DCP_TCP && length <= UINT32_MAX) {
        return add_stream(c, time, from, to, bytes, length);
    }
    if (to->transport == CRD_DCP_CAN && length <= MOST_CAN) { // as captures have it
        crdi_dcp_capture_can(c, (int64_t)ns_of(time), bytes, length);
        return CRD_OK;
    }
    return crdi_fail(c->ctx, CRD_E_RANGE, "%s: %zu bytes to %s cannot be written", c->path, length,
                     crdi_dcp_address_text_of(to).text);
}

crd_status crd_dcp_capture_close(crd_dcp_capture* c)
{
    if (!c) { return CRD_OK; }
    crd_status st = CRD_OK;
    if (fclose(c->file) != 0 && c->error == 0) { c->error = errno; }
    if (c->error != 0) {
        st = crdi_fail(c->ctx, CRD_E_IO, "%s: is not complete: %s", c->path, strerror(c->error));
    }
    capture_free(c);
    return st;
}
