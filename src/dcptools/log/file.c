// Captures: the classic pcap, and pcapng (draft-ietf-opsawg-pcapng), of either byte order.
//
// pcap:    magic u32  version u16 u16  0 u32  0 u32  snap length u32  link type u32, then for each
//          packet  s u32  us or ns u32  captured u32  original u32  bytes
// pcapng:  blocks  type u32  length u32  body, to a multiple of 4  length u32
#include "dcptools/log/log.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { MOST_BLOCK = 16 << 20, INTERFACES = 256 };

typedef struct interface {
    int link;
    double resolution; // s
    double offset;     // s
    uint32_t snap;
} interface;

typedef struct source {
    crd_context* ctx;
    bool (*take)(void* user, const crdi_captured* frame);
    void* user;
    bool enough;
    FILE* f;
    const char* name;
    int64_t at; // bytes read so far
    bool swapped;
    uint8_t* bytes;
    size_t capacity;
    interface interfaces[INTERFACES];
    int interface_count;
} source;

static uint32_t get32(const source* s, const uint8_t* p)
{
    const uint32_t x = (uint32_t)crdi_load_le(p, 4);
    return s->swapped ? __builtin_bswap32(x) : x;
}

static unsigned get16(const source* s, const uint8_t* p)
{
    return s->swapped ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static crd_status fail_capture(source* s, int64_t at, const char* what)
{
    return crdi_fail(s->ctx, CRD_E_FORMAT, "%s: byte %lld: %s", s->name, (long long)at, what);
}

// Bytes to `at` of the buffer. CRD_E_FORMAT where the file ends before.
static crd_status read_bytes(source* s, size_t at, size_t length, bool* end)
{
    uint8_t* more = crdi_grow(s->ctx, s->bytes, &s->capacity, at + length, 1);
    if (!more) { return CRD_E_MEMORY; }
    s->bytes = more;
    const size_t n = fread(s->bytes + at, 1, length, s->f);
    s->at += (int64_t)n;
    if (end) { *end = n == 0; }
    if (n == length || (n == 0 && end)) { return CRD_OK; }
    if (ferror(s->f)) { return crdi_fail(s->ctx, CRD_E_IO, "%s: %s", s->name, strerror(errno)); }
    return fail_capture(s, s->at, "the capture ends within a packet");
}

// ---- pcap --------------------------------------------------------------------------------------

static crd_status read_pcap(source* s, double resolution)
{
    crd_status st = read_bytes(s, 4, 20, NULL);
    if (st < 0) { return st; }
    const int link = (int)(get32(s, s->bytes + 20) & 0x0FFFFFFF);
    for (;;) {
        bool end = false;
        st = read_bytes(s, 0, 16, &end);
        if (st < 0 || end) { return st; }
        const double time = get32(s, s->bytes) + resolution * get32(s, s->bytes + 4);
        const int64_t ns = (int64_t)get32(s, s->bytes) * 1000000000 +
                           (int64_t)get32(s, s->bytes + 4) * (resolution < 1e-6 ? 1 : 1000);
        const uint32_t length = get32(s, s->bytes + 8), whole = get32(s, s->bytes + 12);
        if (length > MOST_BLOCK) {
            return fail_capture(s, s->at - 8, "a packet of more than 16 MiB");
        }
        st = read_bytes(s, 0, length, NULL);
        if (st < 0) { return st; }
        if (!s->take(s->user, &(crdi_captured){link, time, ns, s->bytes, length, whole})) {
            return CRD_OK;
        }
    }
}

// ---- pcapng ------------------------------------------------------------------------------------

// if_tsresol (9) and if_tsoffset (14)
static void read_interface_options(const source* s, const uint8_t* p, size_t length, interface* i)
{
    while (length >= 4) {
        const unsigned code = get16(s, p), size = get16(s, p + 2);
        const size_t padded = 4 + (size_t)(size + 3) / 4 * 4;
        if (code == 0 || padded > length) { return; }
        if (code == 9 && size == 1) {
            i->resolution = p[4] & 0x80 ? ldexp(1, -(p[4] & 0x7F)) : pow(10, -(double)p[4]);
        }
        if (code == 14 && size == 8) {
            const uint32_t low = get32(s, p + (s->swapped ? 8 : 4));
            const uint32_t high = get32(s, p + (s->swapped ? 4 : 8));
            i->offset = (double)(int64_t)((uint64_t)high << 32 | low);
        }
        p += padded;
        length -= padded;
    }
}

static crd_status read_interface(source* s, const uint8_t* p, size_t length)
{
    if (length < 8) { return fail_capture(s, s->at, "an interface of less than 8 bytes"); }
    if (s->interface_count == INTERFACES) {
        return fail_capture(s, s->at, "more than 256 interfaces");
    }
    interface* i = &s->interfaces[s->interface_count++];
    *i = (interface){.link = (int)get16(s, p), .resolution = 1e-6, .snap = get32(s, p + 4)};
    read_interface_options(s, p + 8, length - 8, i);
    return CRD_OK;
}

static int64_t ns_of(const interface* i, uint64_t ticks, double time)
{
    const double tick = 1e9 * i->resolution; // ns
    const bool nano = fabs(tick - 1) < 1e-6, micro = fabs(tick - 1000) < 1e-3;
    const uint64_t most = INT64_MAX / (micro ? 1000 : 1);
    if ((nano || micro) && i->offset == 0 && ticks <= most) {
        return (int64_t)(ticks * (micro ? 1000 : 1));
    }
    return time > -9e9 && time < 9e9 ? llround(1e9 * time) : 0;
}

// Enhanced (6), simple (3) and obsolete (2) packets.
static crd_status read_packet(source* s, uint32_t type, const uint8_t* p, size_t length)
{
    const size_t head = type == 3 ? 4 : 20;
    if (length < head) { return fail_capture(s, s->at, "a packet without its head"); }
    const uint32_t index = type == 6 ? get32(s, p) : type == 2 ? get16(s, p) : 0;
    if (index >= (uint32_t)s->interface_count) {
        return fail_capture(s, s->at, "a packet of an interface that is not described");
    }
    const interface* i = &s->interfaces[index];
    uint32_t captured = 0, whole = 0;
    double time = 0;
    int64_t ns = 0;
    if (type == 3) {
        whole = get32(s, p);
        captured = whole;
        if (i->snap && captured > i->snap) { captured = i->snap; }
        if (captured > length - head) { captured = (uint32_t)(length - head); }
    } else {
        const double ticks = 4294967296.0 * get32(s, p + 4) + get32(s, p + 8);
        time = i->offset + i->resolution * ticks;
        ns = ns_of(i, (uint64_t)get32(s, p + 4) << 32 | get32(s, p + 8), time);
        captured = get32(s, p + 12);
        whole = get32(s, p + 16);
    }
    if (captured > length - head) {
        return fail_capture(s, s->at, "a packet that is longer than its block");
    }
    s->enough = !s->take(s->user, &(crdi_captured){i->link, time, ns, p + head, captured, whole});
    return CRD_OK;
}

// The order of bytes is that of the section; `s->bytes` has the type and length of its head.
static crd_status begin_section(source* s)
{
    const crd_status st = read_bytes(s, 8, 4, NULL);
    if (st < 0) { return st; }
    s->swapped = false;
    const uint32_t magic = get32(s, s->bytes + 8);
    s->swapped = magic == 0x4D3C2B1A;
    if (magic != 0x1A2B3C4D && !s->swapped) {
        return fail_capture(s, s->at - 4, "no pcapng section: its magic number is wrong");
    }
    s->interface_count = 0;
    return CRD_OK;
}

static crd_status read_pcapng(source* s)
{
    size_t there = 4; // of the block's bytes: its type was read
    for (;;) {
        bool end = false;
        crd_status st = there == 0 ? read_bytes(s, 0, 4, &end) : CRD_OK;
        if (st < 0 || end) { return st; }
        st = read_bytes(s, 4, 4, NULL);
        if (st < 0) { return st; }
        const bool section = memcmp(s->bytes, "\x0A\x0D\x0D\x0A", 4) == 0; // the same both ways
        there = 8;
        if (section) {
            st = begin_section(s);
            if (st < 0) { return st; }
            there = 12;
        }
        const uint32_t type = get32(s, s->bytes), length = get32(s, s->bytes + 4);
        if (length % 4 || length < there + 4 || length > MOST_BLOCK) {
            return fail_capture(s, s->at, "a block of an absurd length");
        }
        st = read_bytes(s, there, length - there, NULL);
        if (st < 0) { return st; }
        if (get32(s, s->bytes + length - 4) != length) {
            return fail_capture(s, s->at - 4, "a block whose two lengths differ");
        }
        const uint8_t* body = s->bytes + 8;
        if (type == 1) { st = read_interface(s, body, length - 12); }
        if (type == 2 || type == 3 || type == 6) { st = read_packet(s, type, body, length - 12); }
        if (st < 0 || s->enough) { return st; }
        there = 0;
    }
}

crd_status crdi_capture_read(crd_context* ctx, FILE* f, const char* name,
                             bool (*take)(void* user, const crdi_captured* frame), void* user)
{
    source* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->take = take;
    s->user = user;
    s->f = f;
    s->name = name;
    bool end = false;
    crd_status st = read_bytes(s, 0, 4, &end);
    const uint32_t magic = st >= 0 && !end ? get32(s, s->bytes) : 0;
    if (st >= 0 && magic == 0x0A0D0D0A) {
        st = read_pcapng(s);
    } else if (st >= 0 && (magic == 0xA1B2C3D4 || magic == 0xA1B23C4D)) {
        st = read_pcap(s, magic == 0xA1B2C3D4 ? 1e-6 : 1e-9);
    } else if (st >= 0 && (magic == 0xD4C3B2A1 || magic == 0x4D3CB2A1)) {
        s->swapped = true;
        st = read_pcap(s, magic == 0xD4C3B2A1 ? 1e-6 : 1e-9);
    } else if (st >= 0 || st == CRD_E_FORMAT) {
        st = crdi_fail(ctx, CRD_E_UNSUPPORTED,
                       "%s: not a capture, expected pcapng or pcap as Wireshark and tcpdump write "
                       "them",
                       name);
    }
    crd_free(ctx, s->bytes);
    crd_free(ctx, s);
    return st;
}

static bool take_captured(void* user, const crdi_captured* c)
{
    return crdi_dcp_log_frame(user, c->link, c->time, c->bytes, c->length, c->whole);
}

crd_status crdi_dcp_log_read(crdi_dcp_log* l, FILE* f, const char* name)
{
    return crdi_capture_read(l->ctx, f, name, take_captured, l);
}
