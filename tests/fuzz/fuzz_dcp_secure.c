// modules: dcp base
// Two secured networks and an attacker between them who delivers what he likes, where, in which
// order and how often, changes it, makes up packets, lets time pass and starts either side again.
// Whatever he does, a PDU that comes out was sent to there by the other side, and comes out once.
//
// A record is  0 what:u8  1 n:u8  and for RAW n bytes, for CHANGED two.
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "dcp/net/net.h"
#include "fuzz.h"

enum { SEND, DELIVER, CHANGED, RAW, WAIT, RESTART, MOVED, KINDS };
enum { WIRE = 48, ROOM = 128, SERIALS = 512 };

typedef struct flying {
    crd_dcp_address from, to;
    size_t length;
    uint8_t bytes[ROOM];
} flying;

typedef struct world {
    struct end* end[2];
    crd_dcp_net* net[2]; // secured
    crd_context* ctx;
    double now;
    flying wire[WIRE];
    int count;
    int sender[SERIALS], serials; // who sent a PDU, -1: it has come out
} world;

typedef struct end {
    crd_dcp_net base;
    world* w;
    crd_dcp_address at;
    flying in; // the next to be received
    bool full;
    uint8_t* bytes; // exactly so many, of the last one
} end;

static world w;

// ---- the wire ----------------------------------------------------------------------------------

static void end_destroy(crd_dcp_net* n)
{
    free(((end*)n)->bytes);
    free(n);
}
static crd_status end_listen(crd_dcp_net* n, crd_dcp_address* at)
{
    *at = ((end*)n)->at;
    return CRD_OK;
}
static crd_status end_connect(crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)n, (void)to;
    return CRD_OK;
}
static bool end_connected(const crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)n, (void)to;
    return false;
}
static bool end_local(const crd_dcp_net* n, int index, crd_dcp_address* out)
{
    *out = ((const end*)n)->at;
    return index == 0;
}
static void end_nothing(crd_dcp_net* n)
{
    (void)n;
}
static bool end_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                     crd_dcp_address* from)
{
    const end* e = (end*)n;
    if (length > ROOM) { abort(); }
    if (w.count == WIRE) { // the oldest is forgotten
        memmove(w.wire, w.wire + 1, (WIRE - 1) * sizeof *w.wire);
        w.count--;
    }
    flying* f = &w.wire[w.count++];
    *f = (flying){.from = e->at, .to = *to, .length = length};
    memcpy(f->bytes, bytes, length);
    *from = e->at;
    return true;
}
static bool end_receive(crd_dcp_net* n, crd_dcp_packet* out)
{
    end* e = (end*)n;
    if (!e->full) { return false; }
    e->full = false;
    free(e->bytes);
    e->bytes = malloc(e->in.length ? e->in.length : 1);
    if (!e->bytes) { abort(); }
    memcpy(e->bytes, e->in.bytes, e->in.length);
    *out = (crd_dcp_packet){.from = e->in.from,
                            .at = e->in.to,
                            .bytes = e->bytes,
                            .length = e->in.length,
                            .time = w.now};
    return true;
}
static void end_wait(crd_dcp_net* n, double seconds)
{
    (void)n;
    w.now += seconds;
}
static void end_close(crd_dcp_net* n, const crd_dcp_address* at)
{
    (void)n, (void)at;
}
static double end_now(const crd_dcp_net* n)
{
    (void)n;
    return w.now;
}

static const crdi_dcp_net_ops ops = {
    .destroy = end_destroy,
    .listen = end_listen,
    .connect = end_connect,
    .connected = end_connected,
    .local = end_local,
    .set_control = end_nothing,
    .send = end_send,
    .receive = end_receive,
    .wait = end_wait,
    .close = end_close,
    .now = end_now,
};

static void start(int i)
{
    const crd_dcp_key key = {.bytes = {7, 1}};
    crd_dcp_secure_options opt = crd_dcp_secure_defaults();
    opt.max_peers = 5;
    crd_dcp_net_destroy(w.net[i]);
    end* e = calloc(1, sizeof *e);
    if (!e) { abort(); }
    crdi_dcp_net_init(&e->base, w.ctx, &ops);
    e->at = (crd_dcp_address){0x0A000001 + (uint32_t)i, 8080, CRD_DCP_UDP};
    w.end[i] = e;
    if (crd_dcp_net_secure(w.ctx, &e->base, &key, &opt, &w.net[i]) != CRD_OK) { abort(); }
}

// ---- what happens ------------------------------------------------------------------------------

static void receive(int i, const flying* f)
{
    crd_dcp_packet k;
    if (f) {
        w.end[i]->in = *f;
        w.end[i]->full = true;
    }
    while (crd_dcp_net_receive(w.net[i], &k)) {
        if (k.length < 4) { abort(); }
        const int serial = k.bytes[0] | k.bytes[1] << 8;
        const int from = serial < w.serials ? w.sender[serial] : -1;
        if (from < 0 || k.bytes[2] != i || k.length != 4 + (size_t)k.bytes[3]) { abort(); }
        for (size_t b = 4; b < k.length; b++) {
            if (k.bytes[b] != (uint8_t)(serial + (int)b)) { abort(); }
        }
        if (!crd_dcp_address_equal(&k.from, &w.end[from]->at) ||
            !crd_dcp_address_equal(&k.at, &w.end[i]->at)) {
            abort();
        }
        w.sender[serial] = -1;
    }
}

static void send(uint8_t n)
{
    const int from = n & 1, to = (n >> 1) & 1;
    if (w.serials == SERIALS) { return; }
    const size_t more = (n >> 2) % 48;
    uint8_t pdu[64] = {(uint8_t)w.serials, (uint8_t)(w.serials >> 8), (uint8_t)to, (uint8_t)more};
    for (size_t i = 4; i < 4 + more; i++) {
        pdu[i] = (uint8_t)(w.serials + (int)i);
    }
    w.sender[w.serials++] = from;
    (void)crdi_dcp_net_send(w.net[from], &w.end[to]->at, pdu, 4 + more);
}

static void happen(int what, uint8_t n, const uint8_t* more, size_t length)
{
    flying f = {0};
    if (w.count > 0) { f = w.wire[n % w.count]; }
    const int there = f.to.ip == 0x0A000002;
    switch (what) {
    case SEND:
        send(n);
        break;
    case DELIVER:
        receive(there, &f);
        break;
    case CHANGED:
        if (length == 2 && f.length > 0) {
            f.bytes[more[0] % f.length] ^= more[1];
            if (more[1] == 0) { f.length = more[0] % f.length; }
        }
        receive(there, &f);
        break;
    case MOVED: // to the other side, to or from another port
        if (n & 64) { f.to.port++; }
        if (n & 128) { f.from.port++; }
        receive(n & 192 ? there : !there, &f);
        break;
    case RAW:
        f = (flying){.from = w.end[n & 1]->at, .to = w.end[!(n & 1)]->at, .length = length};
        memcpy(f.bytes, more, length);
        receive(!(n & 1), &f);
        break;
    case WAIT:
        w.now += n < 128 ? n * 0.01 : n - 127;
        receive(0, NULL);
        receive(1, NULL);
        break;
    default:
        start(n & 1);
        break;
    }
}

// ---- a group that costs nothing ----------------------------------------------------------------

// In the place of X25519, which took half of the time: products modulo 2^31 - 1. Both sides come to
// the same secret, and another byte of a public key leads to another one. It keeps no secret, and
// the attacker here does not compute.
static int multiply(uint8_t out[32], const uint8_t secret[32], uint64_t x)
{
    const uint64_t prime = (UINT64_C(1) << 31) - 1;
    uint64_t n = 0;
    memcpy(&n, secret, sizeof n);
    n = (n & prime) | 1;
    const uint64_t product = n * (x % prime) % prime;
    memset(out, 0, 32);
    memcpy(out, &product, sizeof product);
    return product == 0 ? -1 : 0;
}

int crypto_scalarmult_base(unsigned char* q, const unsigned char* n)
{
    return multiply(q, n, 3);
}

int crypto_scalarmult(unsigned char* q, const unsigned char* n, const unsigned char* p)
{
    uint64_t words[4];
    memcpy(words, p, sizeof words);
    return multiply(q, n, words[0] ^ words[1] ^ words[2] ^ words[3]);
}

// ---- chance that is none: what libFuzzer finds can be found again ------------------------------

static uint64_t chance;
static const char* chance_name(void)
{
    return "none";
}
static uint32_t chance_word(void)
{
    uint64_t z = chance += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    return (uint32_t)(z ^ z >> 27);
}
static void chance_bytes(void* out, const size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t*)out)[i] = (uint8_t)chance_word();
    }
}
static randombytes_implementation no_chance = {
    .implementation_name = chance_name, .random = chance_word, .buf = chance_bytes};

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static bool ready;
    if (!ready) {
        randombytes_set_implementation(&no_chance);
        ready = true;
    }
    chance = 1;
    w = (world){.now = 1000, .ctx = crd_context_create(NULL)};
    start(0);
    start(1);
    int restarts = 0;
    for (size_t at = 0; at + 2 <= size;) {
        const int what = data[at] % KINDS;
        const uint8_t n = data[at + 1];
        at += 2;
        size_t length = what == RAW ? n % ROOM : what == CHANGED ? 2 : 0;
        if (length > size - at) { length = size - at; }
        if (what != RESTART || restarts++ < 16) { happen(what, n, data + at, length); }
        at += length;
        for (int i = 0; i < 2; i++) {
            const crd_dcp_secure_counts c = crd_dcp_net_secure_counts(w.net[i]);
            if (c.peers < 0 || c.peers > 5) { abort(); }
        }
    }
    crd_dcp_net_destroy(w.net[0]);
    crd_dcp_net_destroy(w.net[1]);
    crd_context_destroy(w.ctx);
    return 0;
}
