// Reading along: captures of all kinds, streams in pieces, names and values, and bytes that are
// wrong.
#include "dcp/rig.h"
#include "shared/dcptools_log.h"

static const crd_dcp_address master = {0x7F000001, 40001, CRD_DCP_UDP};
static const crd_dcp_address slave = {0x7F000001, 40002, CRD_DCP_UDP};

// ---- what is seen ------------------------------------------------------------------------------

enum { LINES = 256 };

typedef struct watcher {
    check_allocator allocator;
    crd_context* ctx;
    crdi_dcp_log* log;
    char lines[LINES][512];
    double times[LINES];
    crd_dcp_address from[LINES], to[LINES];
    int count, most; // most 0: any number
} watcher;

static bool see(void* user, const crdi_dcp_seen* s)
{
    watcher* w = user;
    check(w->count < LINES);
    (void)crdi_dcp_log_print(w->log, s, w->lines[w->count], sizeof w->lines[0]);
    w->times[w->count] = s->time;
    w->from[w->count] = s->from;
    w->to[w->count] = s->to;
    return ++w->count != w->most;
}

static void open_watcher(watcher* w, const uint16_t* ports, int port_count,
                         const crd_dcp_description* d)
{
    *w = (watcher){0};
    w->ctx = check_context(&w->allocator);
    const crdi_dcp_log_options opt = {.ports = ports,
                                      .port_count = port_count,
                                      .descriptions = &d,
                                      .description_count = d != NULL,
                                      .seen = see,
                                      .user = w};
    check_ok(crdi_dcp_log_create(w->ctx, &opt, &w->log));
}

static void close_watcher(watcher* w)
{
    crdi_dcp_log_destroy(w->log);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
}

// ---- frames ------------------------------------------------------------------------------------

typedef struct frame {
    uint8_t bytes[2048];
    size_t length;
} frame;

static void put16(uint8_t* p, unsigned x)
{
    p[0] = (uint8_t)(x >> 8);
    p[1] = (uint8_t)x;
}

static void put32(uint8_t* p, uint32_t x)
{
    put16(p, x >> 16);
    put16(p + 2, x & 0xFFFF);
}

static frame ip_frame(const crd_dcp_address* from, const crd_dcp_address* to, uint8_t protocol,
                      const uint8_t* inner, size_t length)
{
    frame f = {.length = 20 + length};
    f.bytes[0] = 0x45;
    put16(f.bytes + 2, (unsigned)f.length);
    f.bytes[8] = 64;
    f.bytes[9] = protocol;
    put32(f.bytes + 12, from->ip);
    put32(f.bytes + 16, to->ip);
    memcpy(f.bytes + 20, inner, length);
    return f;
}

static frame udp_frame(const crd_dcp_address* from, const crd_dcp_address* to, const char* hex)
{
    uint8_t inner[600];
    const size_t n = rig_bytes(hex, inner + 8);
    put16(inner, from->port);
    put16(inner + 2, to->port);
    put16(inner + 4, (unsigned)(8 + n));
    put16(inner + 6, 0);
    return ip_frame(from, to, 17, inner, 8 + n);
}

static frame tcp_frame(const crd_dcp_address* from, const crd_dcp_address* to, uint32_t seq,
                       uint8_t flags, const uint8_t* bytes, size_t n)
{
    uint8_t inner[1500] = {0};
    put16(inner, from->port);
    put16(inner + 2, to->port);
    put32(inner + 4, seq);
    inner[12] = 5 << 4;
    inner[13] = flags;
    memcpy(inner + 20, bytes, n);
    return ip_frame(from, to, 6, inner, 20 + n);
}

static void show(watcher* w, const frame* f)
{
    uint8_t* copy = malloc(f->length ? f->length : 1); // exactly so many, for who reads behind
    memcpy(copy, f->bytes, f->length);
    (void)crdi_dcp_log_frame(w->log, CRDI_DCP_LINK_IPV4, 1, copy, f->length, f->length);
    free(copy);
}

static void show_udp(watcher* w, const crd_dcp_address* from, const crd_dcp_address* to,
                     const char* hex)
{
    const frame f = udp_frame(from, to, hex);
    show(w, &f);
}

static const char inf_state[] = "80010007", state_ack[] = "b201000700";

static void all_kinds_of_frames_are_unwrapped(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    const frame ip = udp_frame(&master, &slave, inf_state);
    const struct {
        int link;
        size_t head;
        uint8_t bytes[24];
    } rows[] = {
        {CRDI_DCP_LINK_IPV4, 0, {0}},
        {CRDI_DCP_LINK_RAW, 0, {0}},
        {12, 0, {0}},
        {CRDI_DCP_LINK_LOOPBACK, 4, {2, 0, 0, 0}},
        {CRDI_DCP_LINK_LOOPBACK, 4, {0, 0, 0, 2}},
        {CRDI_DCP_LINK_LOOP, 4, {0, 0, 0, 2}},
        {CRDI_DCP_LINK_ETHERNET, 14, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 8, 0}},
        {CRDI_DCP_LINK_ETHERNET, 18, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 0x81, 0, 0, 7, 8, 0}},
        {CRDI_DCP_LINK_LINUX, 16, {0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0}},
        {CRDI_DCP_LINK_LINUX_2, 20, {8, 0}},
    };
    enum { COUNT = sizeof rows / sizeof rows[0] };
    for (int i = 0; i < COUNT; i++) {
        uint8_t bytes[256];
        memcpy(bytes, rows[i].bytes, rows[i].head);
        memcpy(bytes + rows[i].head, ip.bytes, ip.length);
        const size_t n = rows[i].head + ip.length;
        check(crdi_dcp_log_frame(w.log, rows[i].link, i, bytes, n, n));
        check_int(w.count, i + 1);
        for (size_t cut = 0; cut < n; cut++) { // none of them is read beyond its end
            uint8_t* part = malloc(cut ? cut : 1);
            memcpy(part, bytes, cut);
            (void)crdi_dcp_log_frame(w.log, rows[i].link, i, part, cut, cut % 2 ? cut : n);
            free(part);
        }
        check_int(w.count, i + 1);
    }
    check_text(w.lines[0], "INF_state seq=1 rcv=7");
    check(crd_dcp_address_equal(&w.from[3], &master) && crd_dcp_address_equal(&w.to[3], &slave));
    (void)crdi_dcp_log_frame(w.log, 9999, 0, ip.bytes, ip.length, ip.length);
    check_int(w.count, COUNT);
    const crdi_dcp_log_counts c = crdi_dcp_log_get_counts(w.log);
    check_int(c.frames, c.other + c.truncated + c.fragments + COUNT);
    check(c.truncated > 0);
    close_watcher(&w);
}

static void what_is_not_dcp_is_left_out(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    const crd_dcp_address dns = {0x08080808, 53, CRD_DCP_UDP};
    show_udp(&w, &master, &dns, "f0f101000001000000000000"); // as data, but nobody is known
    show_udp(&w, &master, &dns, "010203040506");
    show_udp(&w, &master, &slave, "");
    show_udp(&w, &master, &slave, "f00000010000");
    check_int(w.count, 0);
    show_udp(&w, &master, &slave, inf_state);
    show_udp(&w, &slave, &master, state_ack);
    show_udp(&w, &master, &slave, "f00000010000"); // now it is
    show_udp(&w, &master, &slave, "0304000100ff"); // wrong in length, and worth to be seen
    show_udp(&w, &master, &slave, "99");
    check_int(w.count, 4);
    check_text(w.lines[2], "DAT_input_output seq=0 data_id=1 payload=00");
    check_contains(w.lines[3], "STC_prepare seq=4");
    check_contains(w.lines[3], "bad_length=6");
    check_int(crdi_dcp_log_get_counts(w.log).other, 5);
    close_watcher(&w);
}

static void ports_that_are_named_are_dcp_and_others_are_not(void** state)
{
    static watcher w;
    static const uint16_t ports[] = {40002, 7};
    open_watcher(&w, ports, 2, NULL);
    const crd_dcp_address other = {0x7F000001, 40003, CRD_DCP_UDP};
    show_udp(&w, &master, &other, inf_state);
    check_int(w.count, 0);
    show_udp(&w, &master, &slave, "f00000010000");
    show_udp(&w, &slave, &master, "f00000010000");
    check_int(w.count, 2);
    close_watcher(&w);
}

// ---- streams -----------------------------------------------------------------------------------

static size_t stream_bytes(const char* const* pdus, int count, uint8_t* out)
{
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        const size_t length = rig_bytes(pdus[i], out + n + 4);
        out[n] = (uint8_t)length;
        out[n + 1] = (uint8_t)(length >> 8);
        out[n + 2] = out[n + 3] = 0;
        n += 4 + length;
    }
    return n;
}

static void streams_are_put_together_from_any_pieces_in_any_order(void** state)
{
    static watcher w;
    const crd_dcp_address a = {0x0A000001, 5000, CRD_DCP_TCP}, b = {0x0A000002, 80, CRD_DCP_TCP};
    uint8_t bytes[256];
    static const char* const pdus[] = {"80010001", "0302000101", "80030001", "24040001",
                                       "f0000001000000000000000000"};
    const size_t n = stream_bytes(pdus, 5, bytes);
    for (size_t piece = 1; piece <= n; piece++) {
        for (int mode = 0; mode < 3; mode++) { // in order; each pair exchanged; all of it twice
            const uint32_t start = 0xFFFFFFF0; // wraps
            open_watcher(&w, NULL, 0, NULL);
            frame f = tcp_frame(&a, &b, start - 1, 2, bytes, 0);
            show(&w, &f);
            for (size_t at = 0; at < n; at += piece) {
                size_t here = at;
                if (mode == 1) {
                    here = at / piece % 2 ? at - piece : at + piece;
                    if (here >= n) { here = at; }
                }
                const size_t part = n - here < piece ? n - here : piece;
                f = tcp_frame(&a, &b, start + (uint32_t)here, 0x10, bytes + here, part);
                show(&w, &f);
                if (mode == 2) { show(&w, &f); }
            }
            if (mode == 2) { // and once more with other bounds
                f = tcp_frame(&a, &b, start + 3, 0x10, bytes + 3, n - 3);
                show(&w, &f);
            }
            check_int(w.count, 5);
            check_text(w.lines[1], "STC_prepare seq=2 rcv=1 state_id=CONFIGURATION");
            check_contains(w.lines[4], "payload=0000000000000000");
            check_int(crdi_dcp_log_get_counts(w.log).gaps, 0);
            close_watcher(&w);
        }
    }
}

static void a_stream_that_was_met_late_or_has_a_gap_goes_on_at_a_whole_pdu(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    const crd_dcp_address a = {0x0A000001, 5000, CRD_DCP_TCP}, b = {0x0A000002, 80, CRD_DCP_TCP};
    static const char* const pdus[] = {"80010001"};
    uint8_t bytes[64];
    const size_t n = stream_bytes(pdus, 1, bytes);
    uint32_t seq = 1000;
    frame f = tcp_frame(&a, &b, seq, 0x10, bytes + 2, n - 2); // its middle
    show(&w, &f);
    seq += (uint32_t)n - 2;
    check_int(w.count, 0);
    f = tcp_frame(&a, &b, seq, 0x10, bytes, n);
    show(&w, &f);
    seq += (uint32_t)n;
    check_int(w.count, 1);
    seq += 100; // what was there is missing
    for (int i = 0; i < 40; i++) {
        f = tcp_frame(&a, &b, seq, 0x10, bytes, n);
        show(&w, &f);
        seq += (uint32_t)n;
    }
    check_int(crdi_dcp_log_get_counts(w.log).gaps, 1);
    check(w.count >= 1 + 40 - 33 && w.count < 40);
    // Another connection of the same ends begins anew.
    f = tcp_frame(&a, &b, 5, 2, bytes, 0);
    show(&w, &f);
    const int before = w.count;
    f = tcp_frame(&a, &b, 6, 0x10, bytes, n);
    show(&w, &f);
    check_int(w.count, before + 1);
    close_watcher(&w);
}

static void streams_of_others_are_left_alone(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    const crd_dcp_address a = {0x0A000001, 5000, CRD_DCP_TCP}, b = {0x0A000002, 80, CRD_DCP_TCP};
    const char* text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    frame f = tcp_frame(&a, &b, 0, 2, (const uint8_t*)text, 0);
    show(&w, &f);
    f = tcp_frame(&a, &b, 1, 0x18, (const uint8_t*)text, strlen(text));
    show(&w, &f);
    uint8_t bytes[64];
    const size_t n = stream_bytes((const char* const[]){"e00100"}, 1, bytes);
    f = tcp_frame(&a, &b, 1 + (uint32_t)strlen(text), 0x18, bytes, n);
    show(&w, &f);
    check_int(w.count, 0);
    for (uint16_t i = 0; i < 2000; i++) { // more of them than there is room for
        const crd_dcp_address c = {0x0A000003, (uint16_t)(6000 + i), CRD_DCP_TCP};
        f = tcp_frame(&c, &b, 1, 0x18, bytes, n - 1);
        show(&w, &f);
    }
    close_watcher(&w);
}

static void garbage_between_known_ends_does_not_end_a_stream(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    const crd_dcp_address a = {0x0A000001, 5000, CRD_DCP_TCP}, b = {0x0A000002, 80, CRD_DCP_TCP};
    static const char* const pdus[] = {"80010001", "99ff", "", "80020001ff", "80020001"};
    uint8_t bytes[128];
    const size_t n = stream_bytes(pdus, 5, bytes);
    const frame f = tcp_frame(&a, &b, 1, 0x18, bytes, n);
    show(&w, &f);
    check_int(w.count, 3);
    check_contains(w.lines[1], "bad_length=5");
    check_text(w.lines[2], "INF_state seq=2 rcv=1");
    close_watcher(&w);
}

// ---- files -------------------------------------------------------------------------------------

// As a file, in one of four forms: pcap and pcapng, either order of bytes.
typedef struct maker {
    uint8_t bytes[1 << 16];
    size_t length;
    bool swapped;
} maker;

static void add32(maker* m, uint32_t x)
{
    for (int i = 0; i < 4; i++) {
        m->bytes[m->length++] = (uint8_t)(x >> 8 * (m->swapped ? 3 - i : i));
    }
}

static void add16(maker* m, unsigned x)
{
    m->bytes[m->length++] = (uint8_t)(m->swapped ? x >> 8 : x);
    m->bytes[m->length++] = (uint8_t)(m->swapped ? x : x >> 8);
}

static void make_pcap(maker* m, bool ns, const frame* f, int count)
{
    add32(m, ns ? 0xA1B23C4D : 0xA1B2C3D4);
    add16(m, 2);
    add16(m, 4);
    add32(m, 0);
    add32(m, 0);
    add32(m, 65535);
    add32(m, CRDI_DCP_LINK_RAW);
    for (int i = 0; i < count; i++) {
        add32(m, 1000);
        add32(m, ns ? 250000000 : 250000);
        add32(m, (uint32_t)f[i].length);
        add32(m, (uint32_t)f[i].length);
        memcpy(m->bytes + m->length, f[i].bytes, f[i].length);
        m->length += f[i].length;
    }
}

static void make_pcapng(maker* m, const frame* f, int count)
{
    add32(m, 0x0A0D0D0A);
    add32(m, 28);
    add32(m, 0x1A2B3C4D);
    add16(m, 1);
    add16(m, 0);
    add32(m, 0xFFFFFFFF);
    add32(m, 0xFFFFFFFF);
    add32(m, 28);
    for (int i = 0; i < 2; i++) { // microseconds; 2^-10 s, which began at 400 s
        add32(m, 1);
        add32(m, i ? 44 : 20);
        add16(m, CRDI_DCP_LINK_RAW);
        add16(m, 0);
        add32(m, 0);
        if (i) {
            add16(m, 9);
            add16(m, 1);
            m->bytes[m->length++] = 0x8A;
            m->length += 3;
            add16(m, 14);
            add16(m, 8);
            add32(m, m->swapped ? 0 : 400);
            add32(m, m->swapped ? 400 : 0);
            add16(m, 0);
            add16(m, 0);
        }
        add32(m, i ? 44 : 20);
    }
    for (int i = 0; i < count; i++) {
        const uint32_t padded = (uint32_t)(f[i].length + 3) / 4 * 4;
        const uint64_t ticks = i % 2 ? (uint64_t)(600.25 * 1024) : UINT64_C(1000250000);
        add32(m, 6);
        add32(m, 32 + padded);
        add32(m, (uint32_t)i % 2);
        add32(m, (uint32_t)(ticks >> 32));
        add32(m, (uint32_t)ticks);
        add32(m, (uint32_t)f[i].length);
        add32(m, (uint32_t)f[i].length);
        memcpy(m->bytes + m->length, f[i].bytes, f[i].length);
        m->length += padded;
        add32(m, 32 + padded);
        add32(m, 0xBAD); // a block that nobody knows
        add32(m, 12);
        add32(m, 12);
    }
}

static crd_status read_bytes(watcher* w, const uint8_t* bytes, size_t length)
{
    uint8_t* copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    FILE* f = length ? fmemopen(copy, length, "rb") : fopen("/dev/null", "rb");
    check(f);
    const crd_status st = crdi_dcp_log_read(w->log, f, "x.pcap");
    fclose(f);
    free(copy);
    return st;
}

static void captures_of_every_form_are_read(void** state)
{
    static watcher w;
    static maker m;
    const frame f[] = {udp_frame(&master, &slave, inf_state),
                       udp_frame(&slave, &master, state_ack)};
    for (int form = 0; form < 6; form++) {
        m = (maker){.swapped = form % 2};
        if (form < 4) {
            make_pcap(&m, form / 2, f, 2);
        } else {
            make_pcapng(&m, f, 2);
        }
        open_watcher(&w, NULL, 0, NULL);
        check_ok(read_bytes(&w, m.bytes, m.length));
        check_int(w.count, 2);
        check_near(w.times[0], 1000.25, 1e-9);
        check_near(w.times[1], 1000.25, 1e-9);
        check_text(w.lines[1], "RSP_state_ack resp_seq=1 snd=7 state=ALIVE");
        close_watcher(&w);
        // Every beginning of it is either read or refused in words; every byte may be wrong.
        for (size_t cut = 0; cut < m.length; cut++) {
            open_watcher(&w, NULL, 0, NULL);
            const crd_status st = read_bytes(&w, m.bytes, cut);
            check(st == CRD_OK || st == CRD_E_FORMAT || st == CRD_E_UNSUPPORTED);
            if (st < 0) { check_contains(crd_error_text(w.ctx), "x.pcap: "); }
            close_watcher(&w);
            m.bytes[cut] ^= 0xFF;
            open_watcher(&w, NULL, 0, NULL);
            (void)read_bytes(&w, m.bytes, m.length);
            close_watcher(&w);
            m.bytes[cut] ^= 0xFF;
        }
    }
}

static void what_is_no_capture_is_said(void** state)
{
    static watcher w;
    open_watcher(&w, NULL, 0, NULL);
    check_status(read_bytes(&w, (const uint8_t*)"time,x\n0,1\n", 11), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(w.ctx), "not a capture");
    check_status(read_bytes(&w, (const uint8_t*)"", 0), CRD_E_UNSUPPORTED);
    close_watcher(&w);
}

static void reading_ends_when_it_is_enough(void** state)
{
    static watcher w;
    static maker m;
    frame f[10];
    for (int i = 0; i < 10; i++) {
        f[i] = udp_frame(&master, &slave, inf_state);
    }
    m = (maker){0};
    make_pcapng(&m, f, 10);
    open_watcher(&w, NULL, 0, NULL);
    w.most = 3;
    check_ok(read_bytes(&w, m.bytes, m.length));
    check_int(w.count, 3);
    close_watcher(&w);
}

static void our_own_captures_are_read_back_bit_by_bit(void** state)
{
    static watcher w;
    const char* path = TEST_BUILD_DIR "/test_log.pcapng";
    for (int tcp = 0; tcp < 2; tcp++) {
        open_watcher(&w, NULL, 0, NULL);
        crd_dcp_capture* c = NULL;
        check_ok(crd_dcp_capture_open(w.ctx, path, &c));
        crd_dcp_address a = master, b = slave;
        a.transport = b.transport = tcp ? CRD_DCP_TCP : CRD_DCP_UDP;
        static const char* const pdus[] = {"80010001", "b201000100", "0302000101", "b0020001"};
        for (int i = 0; i < 40; i++) {
            uint8_t bytes[64];
            const size_t n = rig_bytes(pdus[i % 4], bytes);
            check_ok(crd_dcp_capture_add(c, 1000 + 0.125 * i, i % 2 ? &b : &a, i % 2 ? &a : &b,
                                         bytes, n));
        }
        // One that is longer than a segment.
        static uint8_t longest[100000] = {CRDI_DCP_DAT_INPUT_OUTPUT};
        if (tcp) { check_ok(crd_dcp_capture_add(c, 1006, &a, &b, longest, sizeof longest)); }
        check_ok(crd_dcp_capture_close(c));
        FILE* f = fopen(path, "rb");
        check_ok(crdi_dcp_log_read(w.log, f, path));
        fclose(f);
        check_int(w.count, tcp ? 41 : 40);
        for (int i = 0; i < 40; i++) {
            check_near(w.times[i], 1000 + 0.125 * i, 1e-6);
            check(crd_dcp_address_equal(&w.from[i], i % 2 ? &b : &a));
        }
        close_watcher(&w);
    }
    remove(path);
}

// ---- names and values --------------------------------------------------------------------------

static void tell(watcher* w, crdi_dcp_pdu p)
{
    uint8_t bytes[256];
    char hex[600] = "";
    p.peer = 1;
    const size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
    check(n > 0);
    for (size_t i = 0; i < n; i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
    show_udp(w, &master, &slave, hex);
}

static void data_have_names_and_values_once_they_were_configured(void** state)
{
    static watcher w;
    const crd_dcp_description d = rig_description();
    open_watcher(&w, NULL, 0, &d);
    crdi_dcp_pdu reg = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT, .major = 1};
    memcpy(reg.uuid, d.uuid, sizeof reg.uuid);
    tell(&w, reg);
    tell(&w, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 0, .vr = 11});
    check_contains(w.lines[1], "source_vr=11 (shaft.speed)");
    tell(&w, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 1, .vr = 13});
    tell(&w, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = 20, .vr = 3, .data_type = 10});
    tell(&w,
         (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 6, .data_type = 8});
    tell(&w,
         (crdi_dcp_pdu){
             .type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 10, .port = 9100, .address = 0x7F000001});
    tell(&w, (crdi_dcp_pdu){
                 .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 10, .vr = 22, .data_type = 9});
    const crd_dcp_address data = {0x7F000001, 9100, CRD_DCP_UDP},
                          own = {0x7F000001, 40099, CRD_DCP_UDP};
    int n = w.count;
    // float64 2.5, and as much of ticks as its type has; the address is known by its configuration
    const size_t ticks = crdi_dcp_size_of(rig_variables[RIG_TICKS].type);
    char hex[64];
    snprintf(hex, sizeof hex, "f003000a000000000000000440%.*s", (int)(2 * ticks),
             "0700000000000000");
    show_udp(&w, &own, &data, hex);
    check_int(w.count, n + 1);
    check_contains(w.lines[n], "DAT_input_output seq=3 data_id=10 shaft.speed=2.5 ");
    check_contains(w.lines[n], "=7");
    // string "hi", float32 1 0.1 nan
    show_udp(&w, &master, &slave, "f0000014000200000068690000803fcdcccc3d0000c07f");
    check_text(w.lines[n + 1],
               "DAT_input_output seq=0 data_id=20 cmd.text=\"hi\" cmd.profile=[1, 0.1, NaN]");
    show_udp(&w, &master, &slave, "f105000a00000000000000f03f");
    check_contains(w.lines[n + 2], "DAT_parameter seq=5 param_id=10 ");
    check_contains(w.lines[n + 2], "=1");
    // Another length than was configured: bytes.
    show_udp(&w, &master, &slave, "f001001400020000006869");
    check_contains(w.lines[n + 3], "payload=020000006869");
    tell(&w, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_CLEAR});
    show_udp(&w, &master, &slave, "f0020014000200000068690000803fcdcccc3d0000c07f");
    check_contains(w.lines[n + 5], "payload=");
    show_udp(&w, &slave, &master, "b107000108001120");
    check_contains(w.lines[n + 6], "error=0x2011 (INVALID_UUID)");
    close_watcher(&w);
}

static void every_allocation_may_fail(void** state)
{
    static maker m;
    const crd_dcp_address a = {0x0A000001, 5000, CRD_DCP_TCP}, b = {0x0A000002, 80, CRD_DCP_TCP};
    uint8_t bytes[256];
    const size_t n = stream_bytes((const char* const[]){"80010001", "0302000101"}, 2, bytes);
    const frame f[] = {tcp_frame(&a, &b, 0, 2, bytes, 0),
                       tcp_frame(&a, &b, 9, 16, bytes + 8, n - 8),
                       tcp_frame(&a, &b, 1, 16, bytes, 8)};
    m = (maker){0};
    make_pcapng(&m, f, 3);
    const crd_dcp_description d = rig_description();
    const crd_dcp_description* list[] = {&d};
    bool done = false;
    for (int64_t k = 0; !done; k++) {
        static watcher w;
        w = (watcher){0};
        w.ctx = check_context(&w.allocator);
        const crdi_dcp_log_options opt = {
            .descriptions = list, .description_count = 1, .seen = see, .user = &w};
        w.allocator.fail_at = w.allocator.allocations + k;
        crd_status st = crdi_dcp_log_create(w.ctx, &opt, &w.log);
        if (st == CRD_OK) {
            st = read_bytes(&w, m.bytes, m.length);
            done = st == CRD_OK && w.allocator.allocations < w.allocator.fail_at;
            if (done) { check_int(w.count, 2); }
        }
        check(st == CRD_OK || st == CRD_E_MEMORY);
        close_watcher(&w);
        check(k < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_of_frames_are_unwrapped),
        cmocka_unit_test(what_is_not_dcp_is_left_out),
        cmocka_unit_test(ports_that_are_named_are_dcp_and_others_are_not),
        cmocka_unit_test(streams_are_put_together_from_any_pieces_in_any_order),
        cmocka_unit_test(a_stream_that_was_met_late_or_has_a_gap_goes_on_at_a_whole_pdu),
        cmocka_unit_test(streams_of_others_are_left_alone),
        cmocka_unit_test(garbage_between_known_ends_does_not_end_a_stream),
        cmocka_unit_test(captures_of_every_form_are_read),
        cmocka_unit_test(what_is_no_capture_is_said),
        cmocka_unit_test(reading_ends_when_it_is_enough),
        cmocka_unit_test(our_own_captures_are_read_back_bit_by_bit),
        cmocka_unit_test(data_have_names_and_values_once_they_were_configured),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
