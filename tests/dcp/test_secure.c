// Secured networks on the virtual clock: sessions, bad networks, and everything that an attacker
// without the key can do: record, drop, change, send again, and send from wrong addresses.
#include "hand.h"

#include "shared/dcp.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dcp/net/net.h"
#include "dcp/slave/slave.h"
#include "testnet/testnet.h"

enum { MASTER = 0x0A000001, SLAVE = 0x0A000002, OTHER = 0x0A000003, PLACES = 3 };

// ---- the attacker ------------------------------------------------------------------------------

enum { TAPE = 512, TAPE_BYTES = 200 };

typedef struct taped {
    crd_dcp_address from, at;
    size_t length;
    uint8_t bytes[TAPE_BYTES];
} taped;

// Sits between a secured net and the network: has everything that arrives on tape, may keep it
// away, and plays in what it likes.
typedef struct tap {
    crd_dcp_net base;
    crd_dcp_net* inner;
    taped tape[TAPE];
    int count;
    taped play[64];
    int play_count, played;
    bool deaf; // what arrives is only taped
    int64_t sent;
    size_t longest, sent_bytes;
    void (*pump)(void* user, double until); // lets time pass instead of the inner one
    void* user;
} tap;

static void tap_destroy(crd_dcp_net* n)
{
    crd_dcp_net_destroy(((tap*)n)->inner);
    free(n);
}
static crd_status tap_listen(crd_dcp_net* n, crd_dcp_address* at)
{
    return crd_dcp_net_listen(((tap*)n)->inner, at);
}
static crd_status tap_connect(crd_dcp_net* n, const crd_dcp_address* to)
{
    return crdi_dcp_net_connect(((tap*)n)->inner, to);
}
static bool tap_connected(const crd_dcp_net* n, const crd_dcp_address* to)
{
    return crdi_dcp_net_connected(((const tap*)n)->inner, to);
}
static bool tap_local(const crd_dcp_net* n, int index, crd_dcp_address* out)
{
    return crd_dcp_net_local(((const tap*)n)->inner, index, out);
}
static void tap_keep(crd_dcp_net* n)
{
    crdi_dcp_net_set_control(((tap*)n)->inner);
}
static bool tap_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                     crd_dcp_address* from)
{
    tap* t = (tap*)n;
    t->sent++;
    t->sent_bytes += length;
    if (length > t->longest) { t->longest = length; }
    return t->inner->ops->send(t->inner, to, bytes, length, from);
}
static bool tap_receive(crd_dcp_net* n, crd_dcp_packet* out)
{
    tap* t = (tap*)n;
    if (t->played < t->play_count) {
        const taped* p = &t->play[t->played++];
        *out = (crd_dcp_packet){.from = p->from,
                                .at = p->at,
                                .bytes = p->bytes,
                                .length = p->length,
                                .time = crd_dcp_net_now(t->inner)};
        return true;
    }
    t->played = t->play_count = 0;
    while (crd_dcp_net_receive(t->inner, out)) {
        if (t->count < TAPE && out->length <= TAPE_BYTES) {
            taped* p = &t->tape[t->count++];
            *p = (taped){out->from, out->at, out->length, {0}};
            if (out->length) { memcpy(p->bytes, out->bytes, out->length); }
        }
        if (!t->deaf) { return true; }
    }
    return false;
}
static void tap_wait(crd_dcp_net* n, double seconds)
{
    tap* t = (tap*)n;
    if (t->pump) {
        t->pump(t->user, crd_dcp_net_now(t->inner) + seconds);
    } else {
        crd_dcp_net_wait(t->inner, seconds);
    }
}
static void tap_close(crd_dcp_net* n, const crd_dcp_address* at)
{
    crd_dcp_net_close(((tap*)n)->inner, at);
}
static double tap_now(const crd_dcp_net* n)
{
    return crd_dcp_net_now(((const tap*)n)->inner);
}

static uint32_t tap_source_ip(const crd_dcp_net* n, const crd_dcp_address* to)
{
    return crdi_dcp_net_source_ip(((const tap*)n)->inner, to);
}

static const crdi_dcp_net_ops tap_ops = {.destroy = tap_destroy,
                                         .listen = tap_listen,
                                         .connect = tap_connect,
                                         .connected = tap_connected,
                                         .local = tap_local,
                                         .set_control = tap_keep,
                                         .send = tap_send,
                                         .receive = tap_receive,
                                         .wait = tap_wait,
                                         .close = tap_close,
                                         .now = tap_now,
                                         .source_ip = tap_source_ip};

static tap* tap_create(crd_context* ctx, crd_dcp_net* inner)
{
    tap* t = calloc(1, sizeof *t);
    crdi_dcp_net_init(&t->base, ctx, &tap_ops);
    t->inner = inner;
    return t;
}

static void play(tap* t, const taped* p)
{
    check(t->play_count < 64);
    t->play[t->play_count++] = *p;
}

// ---- a network with two or three ends ----------------------------------------------------------

typedef struct place {
    check_allocator allocator;
    crd_context* ctx;
    testnet* t;
    crd_dcp_net* net[PLACES]; // secured
    tap* tap[PLACES];
    crd_dcp_address at[PLACES]; // udp
    crd_dcp_key key;
    int lines;
    char line[16][256]; // of the log
    // of a session
    hand h;
} place;

static void keep_line(void* user, crd_level level, const char* text)
{
    place* p = user;
    (void)level;
    check(p->lines < 16);
    snprintf(p->line[p->lines++], sizeof p->line[0], "%s", text);
}

static const uint32_t ips[PLACES] = {MASTER, SLAVE, OTHER};

static void join(place* p, int i, const crd_dcp_key* key, const crd_dcp_secure_options* opt)
{
    crd_dcp_net* inner = NULL;
    check_ok(testnet_join(p->t, ips[i], &inner));
    p->tap[i] = tap_create(p->ctx, inner);
    check_ok(crd_dcp_net_secure(p->ctx, &p->tap[i]->base, key, opt, &p->net[i]));
    p->at[i] = (crd_dcp_address){ips[i], 8080, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p->net[i], &p->at[i]));
}

static void open_place(place* p, const testnet_faults* faults)
{
    *p = (place){.h.state = -1};
    p->allocator.fail_at = -1;
    crd_context_options o = crd_context_defaults();
    o.realloc = check_realloc;
    o.realloc_user = &p->allocator;
    o.log = keep_line;
    o.log_user = p;
    p->ctx = crd_context_create(&o);
    check_ok(testnet_create(p->ctx, faults, &p->t));
    check_ok(crd_dcp_key_make(p->ctx, &p->key));
    for (int i = 0; i < PLACES; i++) {
        join(p, i, &p->key, NULL);
    }
}

static void close_place(place* p)
{
    for (int i = 0; i < PLACES; i++) {
        crd_dcp_net_destroy(p->net[i]);
    }
    testnet_destroy(p->t);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
}

static crd_dcp_secure_counts counts(const place* p, int i)
{
    return crd_dcp_net_secure_counts(p->net[i]);
}

// Takes what arrives at one end; the last PDU is in `got`.
static int drain(place* p, int i, crd_dcp_packet* got, uint8_t* bytes)
{
    int n = 0;
    crd_dcp_packet k;
    while (crd_dcp_net_receive(p->net[i], &k)) {
        n++;
        if (bytes && k.length) { memcpy(bytes, k.bytes, k.length); }
        if (got) {
            *got = k;
            got->bytes = bytes;
        }
    }
    return n;
}

// Time passes, and nobody is interested in what arrives; how much did at `i`.
static int let_pass(place* p, double seconds, int i)
{
    const double until = testnet_now(p->t) + seconds;
    int n = 0;
    double now = 0;
    do {
        now = testnet_advance(p->t, fmin(until, testnet_now(p->t) + 0.05));
        for (int k = 0; k < PLACES; k++) {
            const int found = p->net[k] ? drain(p, k, NULL, NULL) : 0;
            if (k == i) { n += found; }
        }
    } while (now < until);
    return n;
}

static bool send_text(place* p, int from, int to, const char* text)
{
    return crdi_dcp_net_send(p->net[from], &p->at[to], (const uint8_t*)text, strlen(text));
}

static const testnet_faults clean = {.delay = 0.001, .seed = 1, .start = 1000};

// ---- plain use ---------------------------------------------------------------------------------

static void what_is_sent_arrives_and_nobody_can_read_it_on_the_way(void** state)
{
    static place p;
    open_place(&p, &clean);
    uint8_t bytes[64];
    crd_dcp_packet got;
    check(send_text(&p, 0, 1, "torque"));
    check(send_text(&p, 0, 1, "speed!"));
    for (int i = 0; i < 3; i++) { // greeting, answer, data
        testnet_advance(p.t, 2000);
        if (i != 2) {
            check_int(drain(&p, 0, NULL, NULL), 0);
            check_int(drain(&p, 1, NULL, NULL), 0);
        }
    }
    check(crd_dcp_net_receive(p.net[1], &got));
    check_int(got.length, 6);
    check(memcmp(got.bytes, "torque", 6) == 0);
    check(crd_dcp_address_equal(&got.from, &p.at[0]) && crd_dcp_address_equal(&got.at, &p.at[1]));
    check_near(got.time, 1000.003, 1e-9);
    check(crd_dcp_net_receive(p.net[1], &got));
    check(memcmp(got.bytes, "speed!", 6) == 0);
    // The answer needs no handshake of its own, and an empty PDU is one.
    check(send_text(&p, 1, 0, ""));
    testnet_advance(p.t, 2000);
    check_int(drain(&p, 0, &got, bytes), 1);
    check_int(got.length, 0);
    check_int(counts(&p, 0).handshakes, 1);
    check_int(counts(&p, 1).handshakes, 1);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < p.tap[i]->count; k++) {
            const taped* w = &p.tap[i]->tape[k];
            check(w->bytes[0] >= 0xD1 && w->bytes[0] <= 0xD4);
            for (size_t n = 0; n + 4 <= w->length; n++) {
                check(memcmp(w->bytes + n, "torq", 4) != 0 && memcmp(w->bytes + n, "spee", 4) != 0);
            }
        }
    }
    check_int(p.tap[1]->tape[1].length, 6 + CRD_DCP_SECURE_OVERHEAD);
    const crd_dcp_net_counts c = crd_dcp_net_get_counts(p.net[1]);
    check_int(c.received, 2);
    check_int(c.bytes_received, 12);
    check_int(c.sent, 1);
    check_int(p.lines, 0);
    close_place(&p);
}

static void a_peer_may_talk_to_itself_and_to_several_ports_of_another(void** state)
{
    static place p;
    open_place(&p, &clean);
    crd_dcp_address data = {SLAVE, 9001, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p.net[1], &data));
    uint8_t bytes[64];
    crd_dcp_packet got;
    check(send_text(&p, 1, 1, "me"));
    check_int(let_pass(&p, 0.1, 1), 1);
    for (int i = 0; i < 5; i++) {
        check(send_text(&p, 1, 1, "me"));
        check_int(let_pass(&p, 0.1, 1), 1);
    }
    check(crdi_dcp_net_send(p.net[0], &data, (const uint8_t*)"in", 2));
    check(send_text(&p, 0, 1, "on"));
    check_int(let_pass(&p, 0.1, 1), 2);
    check(crdi_dcp_net_send(p.net[0], &data, (const uint8_t*)"in", 2));
    testnet_advance(p.t, 2000);
    check_int(drain(&p, 1, &got, bytes), 1);
    check(crd_dcp_address_equal(&got.at, &data) && crd_dcp_address_equal(&got.from, &p.at[0]));
    // From the first port, as without encryption; or from another one that is named.
    check(send_text(&p, 1, 0, "y"));
    testnet_advance(p.t, 2000);
    check_int(drain(&p, 0, &got, bytes), 1);
    check(crd_dcp_address_equal(&got.from, &p.at[1]));
    check(crdi_dcp_net_send_from(p.net[1], &data, &p.at[0], (const uint8_t*)"z", 1));
    testnet_advance(p.t, 2000);
    check_int(drain(&p, 0, &got, bytes), 1);
    check(crd_dcp_address_equal(&got.from, &data));
    check_int(counts(&p, 0).handshakes, 2);
    check_int(counts(&p, 1).rejected + counts(&p, 1).replayed + counts(&p, 1).unknown, 0);
    close_place(&p);
}

static void pdus_are_as_long_as_the_overhead_leaves_room_for(void** state)
{
    static place p;
    open_place(&p, &clean);
    static uint8_t big[70000];
    check(crdi_dcp_net_send(p.net[0], &p.at[1], big, 65507 - CRD_DCP_SECURE_OVERHEAD));
    check(!crdi_dcp_net_send(p.net[0], &p.at[1], big, 65507 - CRD_DCP_SECURE_OVERHEAD + 1));
    check_int(let_pass(&p, 0.1, 1), 1);
    check_int(p.tap[0]->longest, 65507);
    // Streams as the limits say, which are those of PDUs.
    crd_dcp_net_limits l = crd_dcp_net_default_limits();
    l.max_pdu = 66000;
    check_ok(crd_dcp_net_set_limits(p.net[0], &l));
    check_ok(crd_dcp_net_set_limits(p.net[1], &l));
    check_int(p.tap[0]->base.limits.max_pdu, 66000 + CRD_DCP_SECURE_OVERHEAD);
    check_ok(crd_dcp_net_set_limits(p.tap[0]->inner, &p.tap[0]->base.limits));
    check_ok(crd_dcp_net_set_limits(p.tap[1]->inner, &p.tap[1]->base.limits));
    crd_dcp_address s = {SLAVE, 8080, CRD_DCP_TCP};
    check_ok(crd_dcp_net_listen(p.net[1], &s));
    check_ok(crdi_dcp_net_connect(p.net[0], &s));
    check_int(let_pass(&p, 0.1, 1), 0);
    check_int(counts(&p, 0).handshakes, 2); // with the connection, before there is something to say
    check(crdi_dcp_net_send(p.net[0], &s, big, 66000));
    check(!crdi_dcp_net_send(p.net[0], &s, big, 66001));
    check_int(let_pass(&p, 0.1, 1), 1);
    // Without a connection nothing waits for a handshake either.
    const crd_dcp_address nowhere = {SLAVE, 8099, CRD_DCP_TCP};
    check(!crdi_dcp_net_send(p.net[0], &nowhere, big, 10));
    check_int(counts(&p, 0).peers, 2);
    l.max_pdu = 23;
    check_status(crd_dcp_net_set_limits(p.net[0], &l), CRD_E_RANGE);
    close_place(&p);
}

static void put(uint8_t* p, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(x >> 8 * i);
    }
}

// The format once more, written from its table: versions of this library have to get along.
static void a_partner_that_knows_the_format_only_gets_along(void** state)
{
    static place p;
    open_place(&p, &clean);
    static const char handshake[] = "cardan dcp handshake",
                      association[] = "cardan dcp association";
    uint8_t hello_key[32], secret[32], shared[32], root[32], keys[3][32], mac[16];
    crypto_generichash(hello_key, 32, (const uint8_t*)handshake, sizeof handshake, p.key.bytes, 32);
    taped w = {.from = p.at[0], .at = p.at[1], .length = 73};
    uint8_t* g = w.bytes;
    g[0] = 0xD1;
    g[1] = 1;
    put(g + 2, 0x1122334455667788, 8);
    randombytes_buf(secret, 32);
    crypto_scalarmult_base(g + 10, secret);
    put(g + 42, SLAVE, 4);
    put(g + 46, 8080, 2);
    g[48] = CRD_DCP_UDP;
    put(g + 49, 99, 8);
    crypto_generichash(g + 57, 16, g, 57, hello_key, 32);
    play(p.tap[1], &w);
    p.tap[0]->deaf = true;
    check_int(let_pass(&p, 0.1, 1), 0);
    check_int(p.tap[0]->count, 1);
    const uint8_t* a = p.tap[0]->tape[0].bytes;
    check_int(p.tap[0]->tape[0].length, 66);
    check(a[0] == 0xD2 && a[1] == 1 && memcmp(a + 2, g + 2, 8) == 0);
    check_int(crypto_scalarmult(shared, secret, a + 18), 0);
    crypto_generichash_state h;
    crypto_generichash_init(&h, p.key.bytes, 32, 32);
    crypto_generichash_update(&h, (const uint8_t*)association, sizeof association);
    crypto_generichash_update(&h, shared, 32);
    crypto_generichash_update(&h, g, 73);
    crypto_generichash_update(&h, a, 50);
    crypto_generichash_final(&h, root, 32);
    for (uint8_t i = 0; i < 3; i++) {
        crypto_generichash(keys[i], 32, &i, 1, root, 32);
    }
    crypto_generichash(mac, 16, a, 50, keys[2], 32);
    check(memcmp(mac, a + 50, 16) == 0);
    // Data with a counter of some size
    uint8_t nonce[12] = {0}, bytes[64];
    taped d = {.from = p.at[0], .at = p.at[1], .length = 18 + 5 + 16};
    d.bytes[0] = 0xD3;
    d.bytes[1] = 1;
    memcpy(d.bytes + 2, a + 10, 8);
    put(d.bytes + 10, 0x0102030405, 8);
    put(nonce + 4, 0x0102030405, 8);
    crypto_aead_chacha20poly1305_ietf_encrypt(d.bytes + 18, NULL, (const uint8_t*)"hello", 5,
                                              d.bytes, 18, NULL, nonce, keys[0]);
    play(p.tap[1], &d);
    crd_dcp_packet got;
    check_int(drain(&p, 1, &got, bytes), 1);
    check(got.length == 5 && memcmp(bytes, "hello", 5) == 0);
    // And back, with the other key
    check(send_text(&p, 1, 0, "there"));
    check_int(let_pass(&p, 0.1, 0), 0);
    check_int(p.tap[0]->count, 2);
    const taped* back = &p.tap[0]->tape[1];
    memset(nonce, 0, sizeof nonce);
    check_int(back->length, 39);
    check(back->bytes[0] == 0xD3 && memcmp(back->bytes + 2, g + 2, 8) == 0);
    check_int(crypto_aead_chacha20poly1305_ietf_decrypt(bytes, NULL, NULL, back->bytes + 18, 21,
                                                        back->bytes, 18, nonce, keys[1]),
              0);
    check(memcmp(bytes, "there", 5) == 0);
    close_place(&p);
}

// ---- bad networks ------------------------------------------------------------------------------

static void counters_out_of_order_are_taken_once_within_1024(void** state)
{
    static place p;
    static const testnet_faults bad = {
        .delay = 0.001, .jitter = 0.9, .loss = 0.3, .duplicate = 0.3, .seed = 3, .start = 1000};
    static uint8_t seen[1801];
    memset(seen, 0, sizeof seen);
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "first"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check_ok(testnet_set(p.t, &bad)); // for less than 2 s: who hears nothing longer greets anew
    const testnet_counts before = testnet_get_counts(p.t);
    int64_t taken = 0;
    for (uint16_t i = 1; i <= 3300; i++) {
        if (i <= 1800) {
            const uint8_t b[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
            check(crdi_dcp_net_send(p.net[0], &p.at[1], b, 2));
        }
        const double until = 1000 + 1e-3 * (i + 100);
        while (testnet_advance(p.t, until) < until) {}
        crd_dcp_packet k;
        while (crd_dcp_net_receive(p.net[1], &k)) {
            check_int(k.length, 2);
            const int n = k.bytes[0] | k.bytes[1] << 8;
            check(n >= 1 && n <= 1800 && !seen[n]); // never twice, never something else
            seen[n] = 1;
            taken++;
        }
    }
    const testnet_counts t = testnet_get_counts(p.t);
    const crd_dcp_secure_counts c = counts(&p, 1);
    check_int(t.sent - before.sent, 1800);
    // All that were not lost, once each: with 1 ms between them none is older than 1024.
    check_int(taken, 1800 - (t.lost - before.lost));
    check_int(c.replayed, t.duplicated - before.duplicated);
    check(c.replayed > 320);
    check_int(c.rejected, 0);
    close_place(&p);
}

static void a_counter_more_than_1024_behind_is_dropped(void** state)
{
    static place p;
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "0"));
    check_int(let_pass(&p, 0.1, 1), 1);
    // Two that are late: one just inside, one just outside.
    p.tap[1]->deaf = true;
    p.tap[1]->count = 0;
    check(send_text(&p, 0, 1, "outside"));
    check(send_text(&p, 0, 1, "inside"));
    check_int(let_pass(&p, 0.1, 1), 0);
    check_int(p.tap[1]->count, 2);
    p.tap[1]->deaf = false;
    for (int i = 0; i < 1023; i++) {
        check(send_text(&p, 0, 1, "x"));
    }
    check_int(let_pass(&p, 0.1, 1), 1023);
    const taped late[2] = {p.tap[1]->tape[0], p.tap[1]->tape[1]};
    play(p.tap[1], &late[0]);
    play(p.tap[1], &late[1]);
    uint8_t bytes[64];
    crd_dcp_packet got;
    check_int(drain(&p, 1, &got, bytes), 1);
    check(got.length == 6 && memcmp(bytes, "inside", 6) == 0);
    check_int(counts(&p, 1).replayed, 1);
    close_place(&p);
}

// ---- a slave's session -------------------------------------------------------------------------

static void start_slave(place* p, uint8_t transport)
{
    p->h.t = p->t;
    p->h.master = p->net[0];
    p->h.bench = p->net[1];
    p->h.control = (crd_dcp_address){SLAVE, 8080, transport};
    crd_dcp_address data = {MASTER, 8081, transport};
    check_ok(crd_dcp_net_listen(p->net[1], &p->h.control));
    check_ok(crd_dcp_net_listen(p->net[0], &data));
    if (transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(p->net[0], &p->h.control)); }
    p->h.r = rig_create(NULL, NULL);
    crd_dcp_slave_destroy(p->h.r->slave);
    const crd_dcp_plant plant = rig_plant(p->h.r);
    const crd_dcp_link link = crd_dcp_net_link(p->net[1]);
    check_ok(crd_dcp_slave_create(p->h.r->ctx, &p->h.r->d, &plant, &link, NULL, &p->h.r->slave));
}

static void configure(place* p)
{
    const uint8_t transport = p->h.control.transport;
    crdi_dcp_pdu q = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT, .major = 1};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    p->h.seq = 100;
    p->h.state = CRD_DCP_ALIVE;
    hand_change(&p->h, q, CRD_DCP_CONFIGURATION);
    hand_say(&p->h,
             (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 11});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 1});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 10});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TARGET_NETWORK,
                                   .id = 10,
                                   .transport = transport,
                                   .port = 8081,
                                   .address = MASTER});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT, .id = 20, .vr = 1, .data_type = 9});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 20});
    hand_say(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SOURCE_NETWORK,
                                   .id = 20,
                                   .transport = transport,
                                   .port = 9001,
                                   .address = SLAVE});
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}, CRD_DCP_PREPARED);
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}, CRD_DCP_CONFIGURED);
}

static void run_steps(place* p, int steps)
{
    const crd_dcp_address data = {SLAVE, 9001, p->h.control.transport};
    if (data.transport == CRD_DCP_TCP) { check_ok(crdi_dcp_net_connect(p->net[0], &data)); }
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_SYNCHRONIZED);
    hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}, CRD_DCP_RUNNING);
    for (int i = 0; i < steps; i++) {
        const double u = 0.125 * (i + 1);
        uint8_t bytes[13] = {CRDI_DCP_DAT_INPUT_OUTPUT, (uint8_t)i, (uint8_t)(i >> 8), 20, 0};
        memcpy(bytes + 5, &u, 8);
        crdi_dcp_net_send(p->net[0], &data, bytes, sizeof bytes);
        hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1},
                    CRD_DCP_COMPUTED);
        check(p->h.r->u <= u);
        hand_change(&p->h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}, CRD_DCP_RUNNING);
    }
}

static void a_session_runs_over_secured_nets_clean_and_bad_over_datagrams_and_streams(void** state)
{
    static place p;
    static const testnet_faults bad = {.delay = 0.005,
                                       .jitter = 0.1,
                                       .loss = 0.3,
                                       .duplicate = 0.3,
                                       .corrupt = 0.1,
                                       .seed = 8,
                                       .start = 1000};
    for (int i = 0; i < 4; i++) {
        const bool tcp = i % 2 == 1, worse = i >= 2;
        open_place(&p, worse ? &bad : &clean);
        start_slave(&p, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
        configure(&p);
        run_steps(&p, 100);
        const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(p.h.r->slave);
        check_int(c.steps, 100);
        check_int(c.data_out, 100);
        check_int(c.dropped, 0);
        if (!worse || tcp) {
            hand_pass(&p.h, testnet_now(p.t) + 1, 0, NULL);
            check_int(p.h.repeats, 0);
            check_int(p.h.outputs, 100);
            check_int(crd_dcp_slave_get_counts(p.h.r->slave).data_in, 100);
            check_int(counts(&p, 0).rejected + counts(&p, 1).rejected, 0);
            check_int(counts(&p, 0).replayed + counts(&p, 1).replayed, 0);
        } else {
            check(p.h.repeats > 100);
            check(counts(&p, 1).rejected > 10); // those that were damaged
            check(counts(&p, 1).replayed > 50);
        }
        if (!worse) { check_int(counts(&p, 0).plain + counts(&p, 1).plain, 0); }
        check_int(counts(&p, 0).dropped, 0);
        rig_destroy(p.h.r);
        close_place(&p);
    }
}

static int64_t refused(const place* p)
{
    const crd_dcp_secure_counts c = counts(p, 1);
    return c.plain + c.rejected + c.replayed + c.unknown + c.misdirected;
}

// At the slave: PDUs in clear with the right numbers, and all that the master has ever sent again,
// from the master's address, from another port of it, and from another host.
static void assault(place* p)
{
    const crd_dcp_slave* s = p->h.r->slave;
    const crd_dcp_address from[] = {p->at[0], {MASTER, 9999, CRD_DCP_UDP}, p->at[2]};
    const int taped_count = p->tap[1]->count;
    const crd_dcp_slave before = *s;
    const int64_t delivered = crd_dcp_net_get_counts(p->net[1]).received, count = refused(p);
    int64_t data = 0;
    for (int i = 0; i < 256 + taped_count; i++) {
        taped t = {.at = p->at[1], .length = 24};
        if (i < 256) {
            t.bytes[0] = (uint8_t)i;
            t.bytes[1] = (uint8_t)(s->last + 1);
            t.bytes[2] = (uint8_t)((s->last + 1) >> 8);
            t.bytes[3] = 1;
            t.bytes[4] = (uint8_t)s->state;
        } else {
            t = p->tap[1]->tape[i - 256];
        }
        const bool greeting = t.bytes[0] == 0xD1 && t.length == 73;
        for (int k = 0; k < 3; k++) {
            t.from = from[k];
            play(p->tap[1], &t);
            data += !greeting; // which lead to an answer at most
        }
        check_int(drain(p, 1, NULL, NULL), 0);
    }
    check_int(crd_dcp_net_get_counts(p->net[1]).received, delivered);
    check(refused(p) - count >= data);
    check(s->state == before.state && s->last == before.last && s->entry == before.entry);
    check(memcmp(&s->counts, &before.counts, sizeof before.counts) == 0);
    p->tap[1]->count = taped_count;
}

static void nothing_without_the_key_reaches_a_slave_in_any_state(void** state)
{
    static place p;
    open_place(&p, &clean);
    start_slave(&p, CRD_DCP_UDP);
    assault(&p);
    configure(&p);
    assault(&p);
    run_steps(&p, 20);
    assault(&p);
    hand_change(&p.h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}, CRD_DCP_STOPPED);
    assault(&p);
    check_int(crd_dcp_slave_get_counts(p.h.r->slave).steps, 20);
    check_int(crd_dcp_slave_get_counts(p.h.r->slave).dropped, 0);
    rig_destroy(p.h.r);
    close_place(&p);
}

// The slave has its turn while the master waits.
static void serve(void* user, double until)
{
    place* p = user;
    crd_dcp_packet got;
    const double next = fmax(crd_dcp_slave_next(p->h.r->slave), testnet_now(p->t));
    const double now = testnet_advance(p->t, fmin(until, next));
    while (crd_dcp_net_receive(p->net[1], &got)) {
        crd_dcp_slave_receive(p->h.r->slave, &got.from, &got.at, got.bytes, got.length, got.time);
    }
    crd_dcp_slave_advance(p->h.r->slave, now);
}

#define session_do(p, expr)                                                                        \
    do {                                                                                           \
        if ((expr) != CRD_OK) {                                                                    \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, #expr, crd_error_text((p)->ctx));        \
        }                                                                                          \
    } while (0)

static void the_master_of_the_library_does_not_notice_that_its_net_is_secured(void** state)
{
    static place p;
    static const testnet_faults bad = {.delay = 0.002,
                                       .jitter = 0.02,
                                       .loss = 0.1,
                                       .duplicate = 0.1,
                                       .corrupt = 0.05,
                                       .seed = 5,
                                       .start = 1000};
    static const int in[] = {RIG_U, RIG_TORQUE}, out[] = {RIG_SPEED, RIG_TICKS};
    for (int i = 0; i < 4; i++) {
        const bool tcp = i % 2 == 1, worse = i >= 2;
        open_place(&p, worse ? &bad : &clean);
        start_slave(&p, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
        p.tap[0]->pump = serve;
        p.tap[0]->user = &p;
        crd_dcp_master* m = NULL;
        crd_dcp_master_options o = crd_dcp_master_defaults();
        o.lossless = false;
        check_ok(crd_dcp_master_create(p.ctx, p.net[0], &o, &m));
        const crd_dcp_slave_spec spec = {.name = "motor",
                                         .description = &p.h.r->d,
                                         .control = p.h.control,
                                         .mode = CRD_DCP_NRT,
                                         .numerator = 1,
                                         .denominator = 100};
        int index = -1;
        session_do(&p, crd_dcp_master_add(m, &spec, &index));
        session_do(&p, crd_dcp_master_feed(m, 0, in, 2));
        session_do(&p, crd_dcp_master_watch(m, 0, out, 2, 1));
        session_do(&p, crd_dcp_master_configure(m));
        session_do(&p, crd_dcp_master_run(m, 0, NULL));
        for (int k = 0; k < 50; k++) {
            *crd_dcp_master_slot(m, 0, RIG_U)->real = 0.125 * k;
            session_do(&p, crd_dcp_master_begin_step(m, 0, 1));
            session_do(&p, crd_dcp_master_end_step(m, 0));
            if (worse && !tcp) { continue; } // data may be lost there
            check_near(p.h.r->u, 0.125 * k, 0);
            check_int(*crd_dcp_master_slot(m, 0, RIG_TICKS)->integer, k + 1);
        }
        check_int(p.h.r->ticks, 50);
        session_do(&p, crd_dcp_master_stop(m));
        const crd_dcp_slave_status k = crd_dcp_master_status(m, 0);
        if (!worse) { check_int(k.repeated + k.nacks + k.data_missed + k.data_bad, 0); }
        check_int(counts(&p, 1).muted + counts(&p, 1).misdirected, 0);
        crd_dcp_master_destroy(m);
        rig_destroy(p.h.r);
        close_place(&p);
    }
}

// ---- starting again ----------------------------------------------------------------------------

static void restart(place* p, int i)
{
    crd_dcp_net_destroy(p->net[i]);
    p->net[i] = NULL;
    join(p, i, &p->key, NULL);
    p->h.master = p->net[0];
    p->h.bench = p->net[1];
}

static void either_side_may_start_again_and_what_was_recorded_before_is_worth_nothing(void** state)
{
    static place p;
    static taped old[2][TAPE];
    for (int side = 0; side < 2; side++) {
        open_place(&p, &clean);
        for (int i = 0; i < 3; i++) {
            check(send_text(&p, 0, 1, "question"));
            check_int(let_pass(&p, 0.1, 1), 1);
            check(send_text(&p, 1, 0, "answer"));
            check_int(let_pass(&p, 0.1, 0), 1);
        }
        int count[2];
        for (int i = 0; i < 2; i++) {
            count[i] = p.tap[i]->count;
            memcpy(old[i], p.tap[i]->tape, sizeof old[i]);
        }
        check_int(count[0] + count[1], 8);
        restart(&p, side);
        // Everything again that was recorded, at both ends.
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < count[i]; k++) {
                play(p.tap[i], &old[i][k]);
            }
        }
        check_int(let_pass(&p, 1, 0) + let_pass(&p, 1, 1), 0);
        check_int(counts(&p, side).handshakes, 0);
        // And the session goes on: what is sent before the silence is noticed is lost, no more.
        int got = 0;
        for (int i = 0; i < 22 && got == 0; i++) {
            check(send_text(&p, 0, 1, "question"));
            got = let_pass(&p, 0.1, 1);
        }
        check(send_text(&p, 0, 1, "question"));
        check_int(let_pass(&p, 0.5, 1), 1);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.5, 0), 1);
        check_int(counts(&p, side).handshakes, 1);
        check_int(counts(&p, 0).rejected + counts(&p, 1).rejected, 0);
        // The old ones once more, now that there is an association.
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < count[i]; k++) {
                play(p.tap[i], &old[i][k]);
            }
        }
        check_int(let_pass(&p, 1, 0), 0);
        check_int(let_pass(&p, 1, 1), 0);
        check(send_text(&p, 0, 1, "question"));
        check_int(let_pass(&p, 0.5, 1), 1);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.5, 0), 1);
        close_place(&p);
    }
}

static void a_session_survives_a_master_that_starts_again_over_datagrams(void** state)
{
    static place p;
    open_place(&p, &clean);
    start_slave(&p, CRD_DCP_UDP);
    configure(&p);
    restart(&p, 0);
    crd_dcp_address data = {MASTER, 8081, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p.net[0], &data));
    run_steps(&p, 20); // from the same address, with the next sequence id
    check_int(crd_dcp_slave_get_counts(p.h.r->slave).steps, 20);
    check_int(counts(&p, 0).handshakes, 3); // control, data in, data out
    rig_destroy(p.h.r);
    close_place(&p);
}

static void a_stream_that_is_opened_again_keeps_its_association(void** state)
{
    static place p;
    open_place(&p, &clean);
    crd_dcp_address s = {SLAVE, 8080, CRD_DCP_TCP};
    check_ok(crd_dcp_net_listen(p.net[1], &s));
    check_ok(crdi_dcp_net_connect(p.net[0], &s));
    check(crdi_dcp_net_send(p.net[0], &s, (const uint8_t*)"one", 3));
    uint8_t bytes[64];
    crd_dcp_packet got = {0};
    const double until = testnet_now(p.t) + 0.1;
    while (testnet_advance(p.t, until) < until) {
        (void)drain(&p, 0, NULL, NULL);
        (void)drain(&p, 1, &got, bytes);
    }
    check_int(got.length, 3);
    const crd_dcp_address before = got.from;
    crd_dcp_net_close(p.net[0], &s);
    check_int(let_pass(&p, 0.1, 1), 0);
    check_int(crd_dcp_net_get_counts(p.tap[1]->inner).lost, 1);
    check_ok(crdi_dcp_net_connect(p.net[0], &s));
    check(crdi_dcp_net_send(p.net[0], &s, (const uint8_t*)"four", 4));
    while (testnet_advance(p.t, until + 0.2) < until + 0.2) {
        (void)drain(&p, 1, &got, bytes);
    }
    check_int(got.length, 4);
    check(!crd_dcp_address_equal(&before, &got.from));
    check(crdi_dcp_net_send(p.net[1], &got.from, (const uint8_t*)"back", 4));
    check_int(let_pass(&p, 0.1, 0), 1);
    check_int(counts(&p, 0).handshakes, 1);
    check_int(counts(&p, 1).unknown, 0);
    close_place(&p);
}

// ---- attacks -----------------------------------------------------------------------------------

static void changed_cut_and_lengthened_packets_are_rejected(void** state)
{
    static place p;
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check(send_text(&p, 1, 0, "answer"));
    check_int(let_pass(&p, 0.1, 0), 1);
    // greeting and data at 1, answer and data at 0
    int played = 0;
    for (int i = 0; i < 2; i++) {
        const int n = p.tap[i]->count;
        check_int(n, 2);
        for (int k = 0; k < n; k++) {
            const taped original = p.tap[i]->tape[k];
            for (size_t b = 0; b < original.length; b++) {
                taped w = original;
                w.bytes[b] ^= (uint8_t)(1 << b % 8);
                play(p.tap[i], &w);
                w = original;
                w.length = b;
                play(p.tap[i], &w);
                played += 2;
                check_int(drain(&p, i, NULL, NULL), 0);
            }
            taped w = original;
            w.length++;
            play(p.tap[i], &w);
            played++;
            check_int(drain(&p, i, NULL, NULL), 0);
        }
    }
    int64_t accounted = 0;
    for (int i = 0; i < 2; i++) {
        const crd_dcp_secure_counts c = counts(&p, i);
        accounted += c.rejected + c.plain + c.unknown + c.replayed;
        check_int(c.handshakes, 1);
        check_int(c.replayed, 0);
    }
    check_int(accounted, played);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    close_place(&p);
}

static void reflected_swapped_and_redirected_packets_are_dropped(void** state)
{
    static place p;
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check(send_text(&p, 1, 0, "answer"));
    check_int(let_pass(&p, 0.1, 0), 1);
    check_int(p.tap[1]->count, 2);
    const taped greeting = p.tap[1]->tape[0], data = p.tap[1]->tape[1];
    check_int(greeting.bytes[0], 0xD1);
    check_int(data.bytes[0], 0xD3);
    // Thrown back at who sent them, as if by the partner.
    taped w = greeting;
    w.from = p.at[1];
    w.at = p.at[0];
    play(p.tap[0], &w);
    w = data;
    w.from = p.at[1];
    w.at = p.at[0];
    play(p.tap[0], &w);
    check_int(let_pass(&p, 0.2, 0), 0);
    check_int(counts(&p, 0).misdirected, 1);
    check_int(counts(&p, 0).unknown, 1);
    // Handed to another partner with the same key.
    w = greeting;
    w.at = p.at[2];
    play(p.tap[2], &w);
    w = data;
    w.at = p.at[2];
    play(p.tap[2], &w);
    check_int(let_pass(&p, 0.2, 2), 0);
    check_int(counts(&p, 2).misdirected, 1);
    check_int(counts(&p, 2).handshakes, 0);
    check_contains(p.line[0],
                   "a handshake for udp://10.0.0.2:8080 has come to udp://10.0.0.1:8080");
    // A new one from another port: genuine, but it does not come from where its association is.
    p.tap[1]->deaf = true;
    p.tap[1]->count = 0;
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 0);
    p.tap[1]->deaf = false;
    check_int(p.tap[1]->count, 1);
    w = p.tap[1]->tape[0];
    w.from.port = 6666;
    play(p.tap[1], &w);
    check_int(let_pass(&p, 0.1, 1), 0);
    w = p.tap[1]->tape[0];
    w.at.port = 9001;
    play(p.tap[1], &w);
    check_int(let_pass(&p, 0.1, 1), 0);
    play(p.tap[1], &p.tap[1]->tape[0]); // it has not been used up
    check_int(let_pass(&p, 0.1, 1), 1);
    check_int(counts(&p, 1).rejected + counts(&p, 0).rejected, 0);
    close_place(&p);
}

static void who_listens_on_all_interfaces_takes_what_comes_for_the_one_that_leads_back(void** state)
{
    static place p;
    open_place(&p, &clean);
    p.tap[1]->deaf = p.tap[2]->deaf = true;
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.05, 1), 0);
    taped w = p.tap[1]->tape[0];
    w.at.ip = 0;
    p.tap[1]->deaf = false;
    play(p.tap[1], &w);
    play(p.tap[2], &w); // the same port of another host
    check_int(let_pass(&p, 0.01, 1), 0);
    check_int(counts(&p, 1).misdirected, 0);
    check_int(counts(&p, 1).peers, 1);
    check_int(counts(&p, 2).misdirected, 1);
    check_int(counts(&p, 2).peers, 0);
    close_place(&p);
}

static void peers_that_ignore_addresses_do_not_meet_themselves(void** state)
{
    static place p;
    open_place(&p, &clean);
    crd_dcp_net_destroy(p.net[0]);
    check_ok(testnet_set(p.t, &clean));
    crd_dcp_secure_options o = crd_dcp_secure_defaults();
    o.any_address = true;
    join(&p, 0, &p.key, &o);
    crd_dcp_net_destroy(p.net[1]);
    join(&p, 1, &p.key, &o);
    // A greeting for an address that is translated on the way.
    p.tap[1]->deaf = true;
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.05, 1), 0);
    taped w = p.tap[1]->tape[0];
    w.at.port = 9999;
    p.tap[1]->deaf = false;
    play(p.tap[1], &w);
    w = p.tap[1]->tape[0];
    w.from = p.at[1];
    w.at = p.at[0];
    play(p.tap[0], &w); // and back to its sender
    (void)let_pass(&p, 0.02, 0);
    check_int(counts(&p, 0).misdirected, 1);
    check_int(counts(&p, 1).misdirected, 0);
    check_int(counts(&p, 1).peers, 1);
    close_place(&p);
}

static void another_key_or_none_is_told_once_and_nothing_gets_through(void** state)
{
    static place p;
    open_place(&p, &clean);
    crd_dcp_key wrong;
    check_ok(crd_dcp_key_make(p.ctx, &wrong));
    crd_dcp_net_destroy(p.net[1]);
    join(&p, 1, &wrong, NULL);
    for (int i = 0; i < 20; i++) {
        check(send_text(&p, 0, 1, "question"));
        check_int(let_pass(&p, 1, 1), 0);
    }
    check(counts(&p, 0).given_up >= 2);
    check(counts(&p, 0).dropped >= 15);
    check(counts(&p, 1).rejected > 10);
    check_int(counts(&p, 1).handshakes + counts(&p, 0).handshakes, 0);
    check_int(p.lines, 2);
    check_contains(p.line[0], "udp://10.0.0.1:8080 does not have our key");
    check_contains(p.line[1], "udp://10.0.0.2:8080 does not answer");
    // Somebody without encryption.
    crd_dcp_net* plain = NULL;
    check_ok(testnet_join(p.t, OTHER, &plain));
    const uint8_t pdu[4] = {CRDI_DCP_INF_STATE, 0, 0, 1};
    for (int i = 0; i < 3; i++) {
        check(crdi_dcp_net_send(plain, &p.at[0], pdu, 4));
        check(crdi_dcp_net_send(plain, &p.at[0], pdu, 0));
    }
    check_int(let_pass(&p, 0.1, 0), 0);
    check_int(counts(&p, 0).plain, 6);
    check_int(p.lines, 3);
    check_contains(p.line[2], "sends without encryption");
    // A later version
    const uint8_t later[] = {0xD1, 2, 0};
    check(crdi_dcp_net_send(plain, &p.at[0], later, sizeof later));
    check_int(let_pass(&p, 0.1, 0), 0);
    check_contains(p.line[3], "uses version 2 of the encryption, expected 1");
    crd_dcp_net_destroy(plain);
    close_place(&p);
}

// Greetings that were recorded once, from many addresses.
static void a_flood_of_old_greetings_costs_little_and_disturbs_nobody(void** state)
{
    static place p;
    static taped old[300];
    open_place(&p, &clean);
    // Three hundred partners that were there in the past, with two hundred bytes of question each.
    for (int i = 0; i < 300; i++) {
        restart(&p, 2);
        check(send_text(&p, 2, 1, "question"));
        p.tap[1]->count = 0;
        p.tap[1]->deaf = true;
        check_int(let_pass(&p, 0.01, 1), 0);
        check_int(p.tap[1]->count, 1);
        old[i] = p.tap[1]->tape[0];
        old[i].from.port = (uint16_t)(10000 + i);
    }
    restart(&p, 1);
    restart(&p, 2);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 1, 1), 1);
    const int64_t sent = p.tap[1]->sent;
    const size_t sent_bytes = p.tap[1]->sent_bytes;
    for (int i = 0; i < 300; i++) { // all of them in no time
        play(p.tap[1], &old[i]);
        check_int(drain(&p, 1, NULL, NULL), 0);
    }
    const crd_dcp_secure_counts c = counts(&p, 1);
    check_int(p.tap[1]->sent - sent, 256); // of one second
    check(p.tap[1]->sent_bytes - sent_bytes <= 256 * old[0].length);
    check_int(c.muted, 300 - 256);
    check_int(c.peers, 1 + 64);
    check_int(c.handshakes, 1);
    // The partner that is there goes on, and a new one gets in, behind a second.
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.2, 1), 1);
    check(send_text(&p, 2, 1, "question"));
    check_int(let_pass(&p, 0.5, 1), 1);
    // One greeting over and over is answered now and then only.
    const int64_t again = p.tap[1]->sent;
    (void)let_pass(&p, 2, 0);
    for (int i = 0; i < 64; i++) {
        play(p.tap[1], &old[0]);
    }
    check_int(drain(&p, 1, NULL, NULL), 0);
    check_int(p.tap[1]->sent - again, 1);
    close_place(&p);
}

static void strangers_get_no_answer_and_are_counted(void** state)
{
    static place p;
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    const taped hello = p.tap[1]->tape[0], data = p.tap[1]->tape[1];
    const int64_t sent = p.tap[1]->sent;
    // Without the key: data of no association, greetings, answers and the kind that is none.
    taped w = {.from = {OTHER, 1234, CRD_DCP_UDP}, .at = p.at[1], .length = 34};
    w.bytes[1] = 1;
    for (int i = 0; i < 1000; i++) {
        static const size_t lengths[] = {73, 66, 34, 33};
        w.bytes[0] = (uint8_t)(0xD1 + i % 4);
        w.bytes[2] = (uint8_t)i;
        w.length = lengths[i % 4];
        play(p.tap[1], &w);
        check_int(drain(&p, 1, NULL, NULL), 0);
    }
    check_int(counts(&p, 1).unknown, 500);  // answers and data
    check_int(counts(&p, 1).rejected, 250); // greetings
    check_int(counts(&p, 1).plain, 250);
    // Genuine data of an association, from another port and to another partner.
    w = data;
    w.from.port = 6666;
    for (int i = 0; i < 10; i++) {
        play(p.tap[1], &w);
        check_int(let_pass(&p, 0.2, 1), 0);
    }
    w = hello; // and its greeting
    check_int(w.bytes[0], 0xD1);
    w.from.port = 6666;
    for (int i = 0; i < 10; i++) {
        play(p.tap[1], &w);
        check_int(let_pass(&p, 0.2, 1), 0);
    }
    check_int(counts(&p, 1).replayed, 10);
    w = data;
    w.at = p.at[2];
    play(p.tap[2], &w);
    check_int(let_pass(&p, 0.1, 2), 0);
    check_int(counts(&p, 1).unknown, 510);
    check_int(counts(&p, 2).unknown, 1);
    check_int(p.tap[1]->sent - sent, 0);
    check_int(p.tap[2]->sent, 0);
    check_int(counts(&p, 0).handshakes, 1); // and nobody greets anew for it
    close_place(&p);
}

// A partner that has started again is met within seconds, and not by more greetings than that
// takes.
static void who_hears_nothing_greets_anew(void** state)
{
    static place p;
    open_place(&p, &clean);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    for (int round = 0; round < 3; round++) {
        restart(&p, 1);
        int got = 0;
        for (int i = 0; i < 25 && got == 0; i++) {
            check(send_text(&p, 0, 1, "lost"));
            got = let_pass(&p, 0.1, 1);
        }
        check_int(got, 1);
        check_int(counts(&p, 0).handshakes, 2 + round);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.1, 0), 1);
        (void)let_pass(&p, 20, 0); // an answer long ago: the next silence counts from the start
        check(send_text(&p, 0, 1, "question"));
        check_int(let_pass(&p, 0.1, 1), 1);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.1, 0), 1);
        p.tap[0]->sent = 0;
        check_int(counts(&p, 0).rejected + counts(&p, 1).rejected, 0);
    }
    // One who only ever receives is greeted more and more rarely, and loses nothing.
    int got = 0;
    const int64_t before = counts(&p, 0).handshakes;
    for (int i = 0; i < 2000; i++) {
        check(send_text(&p, 0, 1, "datum"));
        got += let_pass(&p, 0.1, 1);
    }
    check_int(got, 2000);
    check(counts(&p, 0).handshakes - before <= 8); // in 200 s: behind 2, 4, 8, 16, 32, 64, 64 s
    close_place(&p);
}

// A forged answer does not get in the way of the genuine one.
static void a_forged_answer_is_rejected_and_the_genuine_one_still_taken(void** state)
{
    static place p;
    open_place(&p, &clean);
    p.tap[0]->deaf = true;
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.05, 1), 0);
    const taped answer = p.tap[0]->tape[0];
    check_int(answer.bytes[0], 0xD2);
    p.tap[0]->deaf = false;
    for (size_t i = 10; i < answer.length; i++) { // its id, its key, its proof
        taped w = answer;
        w.bytes[i] ^= 1;
        play(p.tap[0], &w);
        check_int(drain(&p, 0, NULL, NULL), 0);
    }
    taped w = answer;
    w.from.port++;
    play(p.tap[0], &w);
    check_int(drain(&p, 0, NULL, NULL), 0);
    check_int(counts(&p, 0).rejected, (int64_t)answer.length - 10 + 1);
    check_int(counts(&p, 0).handshakes, 0);
    play(p.tap[0], &answer);
    check_int(drain(&p, 0, NULL, NULL), 0);
    check_int(let_pass(&p, 0.02, 1), 1);
    check_int(counts(&p, 0).handshakes, 1);
    close_place(&p);
}

// ---- bounds ------------------------------------------------------------------------------------

static void places_are_bounded_and_who_is_there_stays(void** state)
{
    static place p;
    open_place(&p, &clean);
    crd_dcp_secure_options o = crd_dcp_secure_defaults();
    o.max_peers = 2;
    crd_dcp_net_destroy(p.net[1]);
    join(&p, 1, &p.key, &o);
    check(send_text(&p, 0, 1, "a"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check(send_text(&p, 2, 1, "b"));
    check_int(let_pass(&p, 0.1, 1), 1);
    crd_dcp_address more = {OTHER, 8090, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(p.net[2], &more));
    check(crdi_dcp_net_send_from(p.net[2], &more, &p.at[1], (const uint8_t*)"c", 1));
    check_int(let_pass(&p, 0.1, 1), 0);
    check_int(counts(&p, 1).peers, 2);
    check_contains(p.line[p.lines - 1], "there are 2 peers already");
    // Behind a minute of silence the oldest one goes.
    check_int(let_pass(&p, 30, 1), 0);
    check(send_text(&p, 0, 1, "a"));
    check_int(let_pass(&p, 31, 1), 1);
    check(crdi_dcp_net_send_from(p.net[2], &more, &p.at[1], (const uint8_t*)"c", 1));
    check_int(let_pass(&p, 0.5, 1), 1);
    check(send_text(&p, 0, 1, "a"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check_int(counts(&p, 1).handshakes, 3);
    // Its own wishes: the latest two.
    for (int i = 0; i < 10; i++) {
        const crd_dcp_address nobody = {0x0A000063, (uint16_t)(100 + i), CRD_DCP_UDP};
        (void)crdi_dcp_net_send(p.net[1], &nobody, (const uint8_t*)"x", 1);
    }
    check_int(counts(&p, 1).peers, 2);
    o.max_peers = 0;
    crd_dcp_net* out = NULL;
    check_status(crd_dcp_net_secure(p.ctx, p.net[1], &p.key, &o, &out), CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx), "max_peers = 0, expected 1 to 65536");
    close_place(&p);
}

static void what_waits_is_bounded_and_keeps_room_for_others(void** state)
{
    static place p;
    open_place(&p, &clean);
    static uint8_t kilobyte[1000];
    const crd_dcp_address nobody = {0x0A000063, 100, CRD_DCP_UDP};
    int taken = 0;
    for (int i = 0; i < 100; i++) {
        taken += crdi_dcp_net_send(p.net[0], &nobody, kilobyte, sizeof kilobyte);
    }
    check_int(taken, 16);
    check(send_text(&p, 0, 1, "question"));
    check_int(let_pass(&p, 0.1, 1), 1);
    check_int(let_pass(&p, 10, 1), 0);
    check_int(counts(&p, 0).dropped, 100);
    check_int(counts(&p, 0).given_up, 1);
    check_int(counts(&p, 0).peers, 1);
    close_place(&p);
}

static void sending_and_receiving_do_not_allocate(void** state)
{
    static place p;
    open_place(&p, &clean);
    for (int i = 0; i < 3; i++) { // the test network has its packets then
        check(send_text(&p, 0, 1, "question"));
        check_int(let_pass(&p, 0.1, 1), 1);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.1, 0), 1);
    }
    restart(&p, 1);
    const int64_t before = p.allocator.allocations;
    for (int i = 0; i < 100; i++) {
        check(send_text(&p, 0, 1, "question"));
        (void)let_pass(&p, 0.1, 1);
        check(send_text(&p, 1, 0, "answer"));
        check_int(let_pass(&p, 0.1, 0), 1);
    }
    check_int(p.allocator.allocations, before);
    close_place(&p);
}

static void every_allocation_that_fails_is_reported_and_leaves_the_inner_net(void** state)
{
    check_allocator a;
    crd_dcp_key key = {{1, 2, 3}};
    for (int64_t at = 0;; at++) {
        crd_context* ctx = check_context(&a);
        testnet* t = NULL;
        crd_dcp_net *inner = NULL, *out = NULL;
        check_ok(testnet_create(ctx, &clean, &t));
        check_ok(testnet_join(t, MASTER, &inner));
        a.fail_at = a.allocations + at;
        const crd_status st = crd_dcp_net_secure(ctx, inner, &key, NULL, &out);
        a.fail_at = -1;
        crd_dcp_net_limits l = crd_dcp_net_default_limits();
        if (st == CRD_OK) {
            l.max_pdu = 100000;
            for (int k = 0; k < 2; k++) {
                a.fail_at = a.allocations + k;
                check_status(crd_dcp_net_set_limits(out, &l), CRD_E_MEMORY);
            }
            a.fail_at = -1;
            check_ok(crd_dcp_net_set_limits(out, &l));
        } else {
            check_int(st, CRD_E_MEMORY);
            check(!out);
        }
        crd_dcp_net_destroy(out ? out : inner);
        testnet_destroy(t);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) {
            check(at >= 5);
            break;
        }
    }
}

// ---- keys --------------------------------------------------------------------------------------

static const char* put_file(const char* name, const char* text, mode_t mode)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", TEST_BUILD_DIR, name);
    (void)unlink(path);
    FILE* f = fopen(path, "w");
    check(f && fwrite(text, 1, strlen(text), f) == strlen(text));
    check(fclose(f) == 0 && chmod(path, mode) == 0);
    return path;
}

static void keys_are_read_and_written_and_watched_over(void** state)
{
    static place p;
    open_place(&p, &clean);
    static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
    static const char b64[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    char text[128];
    crd_dcp_key k;
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, i == 1 ? "  %s\r\n" : "%s", i < 2 ? hex : b64);
        if (i == 3) { text[43] = 0; } // without the sign at its end
        check_ok(crd_dcp_key_load(p.ctx, put_file("secure.key", text, 0600), &k));
        for (int n = 0; n < 32; n++) {
            check_int(k.bytes[n], n);
        }
    }
    check_int(p.lines, 0);
    check_status(crd_dcp_key_load(p.ctx, put_file("secure.key", hex, 0644), &k), CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx),
                   "others may read or change this key (mode 644), which is refused, expected 600");
    static const char* const bad[] = {
        "",
        "00",
        "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1",
        "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1G",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crd_dcp_key_load(p.ctx, put_file("secure.key", bad[i], 0600), &k),
                     CRD_E_FORMAT);
        check_contains(crd_error_text(p.ctx), "expected 64 hex digits or 44 of base64");
    }
    memset(text, '0', 64);
    text[64] = 0;
    check_status(crd_dcp_key_load(p.ctx, put_file("secure.key", text, 0600), &k), CRD_E_FORMAT);
    check_contains(crd_error_text(p.ctx), "32 random bytes");
    check_status(crd_dcp_key_load(p.ctx, TEST_BUILD_DIR "/no/such.key", &k), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(p.ctx), "no/such.key: the key cannot be read");
    // Written for the owner only, and never over another one.
    const char* path = put_file("secure.key", "", 0600);
    struct stat s;
    crd_dcp_key made, read;
    check_ok(crd_dcp_key_make(p.ctx, &made));
    check_status(crd_dcp_key_write(p.ctx, path, &made), CRD_E_IO);
    check_contains(crd_error_text(p.ctx), "there is such a file already");
    check(unlink(path) == 0);
    check_ok(crd_dcp_key_write(p.ctx, path, &made));
    check(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600 && s.st_size == 65);
    check_ok(crd_dcp_key_load(p.ctx, path, &read));
    check(memcmp(&made, &read, sizeof read) == 0);
    crd_dcp_key_clear(&read);
    for (int n = 0; n < 32; n++) {
        check_int(read.bytes[n], 0);
    }
    check_int(p.lines, 0);
    check(unlink(path) == 0);
    close_place(&p);
}

#define PAIRED_KEY "key 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static void keys_of_two_partners_say_who_they_are_for(void** state)
{
    static place p;
    static const char good[] = "cardan-key 2\nrole bench\npeer master desk-1\ncreated 2026-11-16\n"
                               "expires 2999-01-01\n" PAIRED_KEY;
    static const struct {
        const char *text, *says;
        crd_status st;
    } bad[] = {
        {"cardan-key 3\n", ":1: a key of another version", CRD_E_FORMAT},
        {"cardan-key 2\nrole driver\n", ":2: role is not right, expected master, bench",
         CRD_E_FORMAT},
        {"cardan-key 2\nrole bench bench\n", ":2: role is not right", CRD_E_FORMAT},
        {"cardan-key 2\nrole bench\nrole bench\n", ":3: a word twice", CRD_E_FORMAT},
        {"cardan-key 2\ncolour red\n", ":2: an unknown word", CRD_E_FORMAT},
        {"cardan-key 2\npeer master a/b\n", ":2: peer is not right", CRD_E_FORMAT},
        {"cardan-key 2\nexpires 2027-02-30\n", ":2: expires is not right, expected a date",
         CRD_E_FORMAT},
        {"cardan-key 2\nkey 00\n", ":2: key is not right, expected 64 hex digits", CRD_E_FORMAT},
        {"cardan-key 2\nrole bench\n", "peer is missing", CRD_E_FORMAT},
        {"cardan-key 2\nrole bench\npeer master desk\ncreated 2020-01-01\nexpires "
         "2021-01-01\n" PAIRED_KEY,
         "expired on 2021-01-01, expected a key that is valid: cardan key pair", CRD_E_RANGE},
    };
    open_place(&p, &clean);
    check(setenv("XDG_CONFIG_HOME", TEST_BUILD_DIR, 1) == 0);
    crd_dcp_key k;
    check_ok(crd_dcp_key_load(p.ctx, put_file("paired.key", good, 0600), &k));
    check_int(k.role, CRD_DCP_BENCH_ROLE);
    check_int(k.peer, CRD_DCP_MASTER_ROLE);
    check_text(k.name, "desk-1");
    check_int(k.expires, INT64_C(32472144000)); // date -u -d 2999-01-01 +%s
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crd_dcp_key_load(p.ctx, put_file("paired.key", bad[i].text, 0600), &k),
                     bad[i].st);
        check_contains(crd_error_text(p.ctx), bad[i].says);
        check(strstr(crd_error_text(p.ctx), "0102") == NULL); // no sentence has a key in it
    }
    // Of another role than what it is used as.
    const char* path = put_file("paired.key", good, 0600);
    check_ok(crd_dcp_key_load(p.ctx, path, &k));
    check_ok(crdi_dcp_key_check_role(p.ctx, path, &k, CRD_DCP_BENCH_ROLE));
    check_status(crdi_dcp_key_check_role(p.ctx, path, &k, CRD_DCP_MASTER_ROLE), CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx),
                   "the key of a bench, expected one of a master: cardan key pair --role master");
    // Revoked.
    char id[17], line[64];
    crdi_dcp_key_id(&k, id);
    check(mkdir(TEST_BUILD_DIR "/cardan-keys", 0700) == 0 || errno == EEXIST);
    check(setenv("XDG_CONFIG_HOME", TEST_BUILD_DIR "/cardan-keys", 1) == 0);
    check(mkdir(TEST_BUILD_DIR "/cardan-keys/cardan", 0700) == 0 || errno == EEXIST);
    snprintf(line, sizeof line, "0123456789abcdef x\n%s 2026-11-16\n", id);
    (void)put_file("cardan-keys/cardan/revoked", line, 0600);
    path = put_file("paired.key", good, 0600);
    check_status(crd_dcp_key_load(p.ctx, path, &k), CRD_E_RANGE);
    check_contains(crd_error_text(p.ctx), "is revoked");
    check(unlink(TEST_BUILD_DIR "/cardan-keys/cardan/revoked") == 0);
    check_ok(crd_dcp_key_load(p.ctx, path, &k));
    check(unlink(path) == 0);
    close_place(&p);
}

// Two ends with keys of their own, over a clean network; what one sends the other as a PDU.
static int exchange(place* p, const crd_dcp_key* a, const crd_dcp_key* b, uint8_t type)
{
    const crd_dcp_key* both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        crd_dcp_net_destroy(p->net[i]);
        join(p, i, both[i], NULL);
    }
    const uint8_t pdu[8] = {type, 0, 0, 1};
    check(crdi_dcp_net_send(p->net[0], &p->at[1], pdu, sizeof pdu));
    return let_pass(p, 1, 1);
}

static void a_role_says_what_a_partner_may_send(void** state)
{
    static place p;
    open_place(&p, &clean);
    for (int peer = CRD_DCP_ANY_ROLE; peer <= CRD_DCP_OBSERVER_ROLE; peer++) {
        for (int type = 1; type < 256; type++) {
            const bool request = crdi_dcp_is_request((uint8_t)type);
            const bool looks = type == CRDI_DCP_INF_STATE || type == CRDI_DCP_INF_ERROR ||
                               type == CRDI_DCP_INF_LOG;
            const bool may = peer == CRD_DCP_OBSERVER_ROLE ? looks
                             : peer == CRD_DCP_BENCH_ROLE  ? !request
                                                           : true;
            crd_dcp_key bench = p.key;
            bench.peer = (crd_dcp_key_role)peer;
            p.lines = 0;
            check_int(exchange(&p, &p.key, &bench, (uint8_t)type), may);
            check_int(counts(&p, 1).forbidden, !may);
        }
    }
    check_contains(p.line[0],
                   "has the key of one that is observer, and sends what only a master may");
    close_place(&p);
}

static void keys_expire_rotate_and_stand_side_by_side(void** state)
{
    static place p;
    open_place(&p, &clean); // begins at 1000 s
    crd_dcp_key now, old, other;
    check_ok(crd_dcp_key_make(p.ctx, &now));
    check_ok(crd_dcp_key_make(p.ctx, &old));
    check_ok(crd_dcp_key_make(p.ctx, &other));
    crd_dcp_key both = now;
    memcpy(both.previous, old.bytes, sizeof both.previous);
    both.previous_until = 100000;
    // Renewed on one side only, whichever greets; on both; and a third key that is neither.
    check_int(exchange(&p, &both, &old, CRDI_DCP_INF_STATE), 1);
    check_int(exchange(&p, &old, &both, CRDI_DCP_INF_STATE), 1);
    check_int(exchange(&p, &both, &both, CRDI_DCP_INF_STATE), 1);
    check_int(exchange(&p, &other, &both, CRDI_DCP_INF_STATE), 0);
    // The overlap is over.
    both.previous_until = 900;
    check_int(exchange(&p, &both, &old, CRDI_DCP_INF_STATE), 0);
    check_int(exchange(&p, &old, &both, CRDI_DCP_INF_STATE), 0);
    check_int(exchange(&p, &now, &both, CRDI_DCP_INF_STATE), 1);
    // Expired on either side.
    crd_dcp_key late = now;
    late.expires = 900;
    check_int(exchange(&p, &late, &now, CRDI_DCP_INF_STATE), 0);
    check_int(exchange(&p, &now, &late, CRDI_DCP_INF_STATE), 0);
    late.expires = 100000;
    check_int(exchange(&p, &now, &late, CRDI_DCP_INF_STATE), 1);
    // A bench with the keys of two masters.
    crd_dcp_secure_options o = crd_dcp_secure_defaults();
    o.more = &other;
    o.more_count = 1;
    crd_dcp_net_destroy(p.net[1]);
    join(&p, 1, &now, &o);
    crd_dcp_net_destroy(p.net[2]);
    join(&p, 2, &other, NULL);
    crd_dcp_net_destroy(p.net[0]);
    join(&p, 0, &now, NULL);
    check(send_text(&p, 0, 1, "one"));
    check(send_text(&p, 2, 1, "two"));
    check_int(let_pass(&p, 1, 1), 2);
    check(send_text(&p, 1, 2, "answer"));
    check_int(let_pass(&p, 1, 2), 1);
    close_place(&p);
}

static void a_session_runs_over_secured_sockets(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_dcp_key key;
    check_ok(crd_dcp_key_make(ctx, &key));
    crd_dcp_net* net[2];
    for (int i = 0; i < 2; i++) {
        crd_dcp_net* inner = NULL;
        check_ok(crd_dcp_net_create(ctx, &inner));
        check_ok(crd_dcp_net_secure(ctx, inner, &key, NULL, &net[i]));
    }
    for (int tcp = 0; tcp < 2; tcp++) {
        // One on all interfaces, the other one opened by sending.
        crd_dcp_address at = {0, 0, tcp ? CRD_DCP_TCP : CRD_DCP_UDP};
        check_ok(crd_dcp_net_listen(net[1], &at));
        const crd_dcp_address to = {0x7F000001, at.port, at.transport};
        if (tcp) { check_ok(crdi_dcp_net_connect(net[0], &to)); }
        int there = 0, back = 0;
        for (uint8_t i = 0; i < 10; i++) {
            check(crdi_dcp_net_send(net[0], &to, &i, 1));
            const double until = crd_dcp_net_now(net[0]) + 20;
            while (back == i && crd_dcp_net_now(net[0]) < until) {
                crd_dcp_packet k;
                crd_dcp_net_wait(net[1], 0.001);
                while (crd_dcp_net_receive(net[1], &k)) {
                    check(k.length == 1 && k.bytes[0] == i);
                    there++;
                    check(crdi_dcp_net_send(net[1], &k.from, k.bytes, 1));
                }
                crd_dcp_net_wait(net[0], 0.001);
                while (crd_dcp_net_receive(net[0], &k)) {
                    check(k.length == 1 && k.bytes[0] == i);
                    check(crd_dcp_address_equal(&k.from, &to));
                    back++;
                }
            }
        }
        check_int(there, 10);
        check_int(back, 10);
        check_int(crd_dcp_net_secure_counts(net[0]).handshakes, tcp + 1);
        check_int(crd_dcp_net_secure_counts(net[1]).handshakes, tcp + 1);
    }
    crd_dcp_net_destroy(net[0]);
    crd_dcp_net_destroy(net[1]);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_arrives_and_nobody_can_read_it_on_the_way),
        cmocka_unit_test(a_peer_may_talk_to_itself_and_to_several_ports_of_another),
        cmocka_unit_test(pdus_are_as_long_as_the_overhead_leaves_room_for),
        cmocka_unit_test(a_partner_that_knows_the_format_only_gets_along),
        cmocka_unit_test(counters_out_of_order_are_taken_once_within_1024),
        cmocka_unit_test(a_counter_more_than_1024_behind_is_dropped),
        cmocka_unit_test(a_session_runs_over_secured_nets_clean_and_bad_over_datagrams_and_streams),
        cmocka_unit_test(nothing_without_the_key_reaches_a_slave_in_any_state),
        cmocka_unit_test(the_master_of_the_library_does_not_notice_that_its_net_is_secured),
        cmocka_unit_test(either_side_may_start_again_and_what_was_recorded_before_is_worth_nothing),
        cmocka_unit_test(a_session_survives_a_master_that_starts_again_over_datagrams),
        cmocka_unit_test(a_stream_that_is_opened_again_keeps_its_association),
        cmocka_unit_test(changed_cut_and_lengthened_packets_are_rejected),
        cmocka_unit_test(reflected_swapped_and_redirected_packets_are_dropped),
        cmocka_unit_test(
            who_listens_on_all_interfaces_takes_what_comes_for_the_one_that_leads_back),
        cmocka_unit_test(peers_that_ignore_addresses_do_not_meet_themselves),
        cmocka_unit_test(another_key_or_none_is_told_once_and_nothing_gets_through),
        cmocka_unit_test(a_flood_of_old_greetings_costs_little_and_disturbs_nobody),
        cmocka_unit_test(strangers_get_no_answer_and_are_counted),
        cmocka_unit_test(who_hears_nothing_greets_anew),
        cmocka_unit_test(a_forged_answer_is_rejected_and_the_genuine_one_still_taken),
        cmocka_unit_test(places_are_bounded_and_who_is_there_stays),
        cmocka_unit_test(what_waits_is_bounded_and_keeps_room_for_others),
        cmocka_unit_test(sending_and_receiving_do_not_allocate),
        cmocka_unit_test(every_allocation_that_fails_is_reported_and_leaves_the_inner_net),
        cmocka_unit_test(keys_are_read_and_written_and_watched_over),
        cmocka_unit_test(keys_of_two_partners_say_who_they_are_for),
        cmocka_unit_test(a_role_says_what_a_partner_may_send),
        cmocka_unit_test(keys_expire_rotate_and_stand_side_by_side),
        cmocka_unit_test(a_session_runs_over_secured_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
