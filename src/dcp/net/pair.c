// Pairing: two hosts agree on a key that nobody else has, if two people see the same code.
//
//   first -> second   commitment   0 u8 0xE1   1 u8 version   2 byte[32] BLAKE2b of the opening
//   second -> first   offer        0 u8 0xE2   1 u8 version   2 u8 role   3 u16 days   5 u8 length
//                                  6 byte[32] name, zeros behind it   38 byte[32] X25519 key
//                                  70 byte[32] random
//   first -> second   opening      0 u8 0xE3, and as the offer
//   both              confirmation 0 u8 0xE4   1 u8 version   2 byte[32]
//
// With H(k, m) = BLAKE2b-256 with key k, and texts with the zero at their end:
//   T = H(-, "cardan pair transcript" opening offer)      S = X25519(own secret, their key)
//   R = H(S, "cardan pair root" T [old key])              where a key is renewed, with it
//   key = H(R, 0)   confirmation of the first = H(R, 1)   of the second = H(R, 2)
//   code = the first 8 bytes of H(R, 3), little endian, modulo 10^8
// The first is bound to its key by the commitment before it sees the second's, so that somebody in
// the middle has one try at a code of eight digits, and does not get a second: a pairing that fails
// is over. Where a key is renewed, the old one stands for the code.
#include "shared/dcp_pair.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum {
    COMMITMENT = 0xE1,
    OFFER = 0xE2,
    OPENING = 0xE3,
    CONFIRMATION = 0xE4,
    VERSION = 1,
    KEY = 32
};
enum { SHORT = 34, LONG = CRDI_PAIR_MESSAGE };
enum { AT_ROLE = 2, AT_DAYS = 3, AT_LENGTH = 5, AT_NAME = 6, AT_KEY = 38, AT_RANDOM = 70 };

static void hash(uint8_t out[KEY], const uint8_t* key, const char* label, const uint8_t* a,
                 size_t a_length, const uint8_t* b, size_t b_length)
{
    crypto_generichash_state h;
    (void)crypto_generichash_init(&h, key, key ? KEY : 0, KEY);
    if (label) { (void)crypto_generichash_update(&h, (const uint8_t*)label, strlen(label) + 1); }
    (void)crypto_generichash_update(&h, a, a_length);
    (void)crypto_generichash_update(&h, b, b_length);
    (void)crypto_generichash_final(&h, out, KEY);
    sodium_memzero(&h, sizeof h);
}

static void from_root(const crdi_pair* p, uint8_t n, uint8_t out[KEY])
{
    hash(out, p->root, NULL, &n, 1, NULL, 0);
}

void crdi_pair_init(crdi_pair* p, bool first, crd_dcp_key_role role, const char* name, int days,
                    const crd_dcp_key* old, const uint8_t secret[32], const uint8_t random[32])
{
    *p = (crdi_pair){.first = first, .state = first ? CRDI_PAIR_OFFERED : CRDI_PAIR_WAITING};
    if (old) {
        p->renews = true;
        p->old = *old;
    }
    uint8_t* m = first ? p->opening : p->offer;
    m[0] = first ? OPENING : OFFER;
    m[1] = VERSION;
    m[AT_ROLE] = (uint8_t)role;
    crdi_store_le(m + AT_DAYS, 2, (uint64_t)days);
    const size_t length = strlen(name);
    m[AT_LENGTH] = (uint8_t)length;
    memcpy(m + AT_NAME, name, length);
    memcpy(p->secret, secret, KEY);
    (void)crypto_scalarmult_base(m + AT_KEY, p->secret);
    memcpy(m + AT_RANDOM, random, KEY);
}

void crdi_pair_clear(crdi_pair* p)
{
    sodium_memzero(p, sizeof *p);
}

size_t crdi_pair_begin(const crdi_pair* p, uint8_t out[CRDI_PAIR_MESSAGE])
{
    out[0] = COMMITMENT;
    out[1] = VERSION;
    hash(out + 2, NULL, NULL, p->opening, LONG, NULL, 0);
    return SHORT;
}

static crdi_pair_state fail(crdi_pair* p, const char* why)
{
    p->why = why;
    return p->state = CRDI_PAIR_FAILED;
}

// One of the two is a bench, and the name is one.
static const char* wrong_message(const crdi_pair* p, const uint8_t* m)
{
    const uint8_t own = (p->first ? p->opening : p->offer)[AT_ROLE];
    const uint8_t role = m[AT_ROLE], length = m[AT_LENGTH];
    char name[KEY + 1] = "";
    if (length > KEY) { return "its name is longer than 32 bytes"; }
    memcpy(name, m + AT_NAME, length);
    if (strlen(name) != length || !crdi_dcp_key_name_fits(name)) {
        return "its name has other characters than letters, digits, - _ .";
    }
    for (size_t i = length; i < KEY; i++) {
        if (m[AT_NAME + i] != 0) { return "there is something behind its name"; }
    }
    if (role < CRD_DCP_MASTER_ROLE || role > CRD_DCP_OBSERVER_ROLE) { return "it has no role"; }
    if (own != CRD_DCP_BENCH_ROLE && role != CRD_DCP_BENCH_ROLE) {
        return "neither side is a bench, expected a bench and its master or observer";
    }
    if (crdi_load_le(m + AT_DAYS, 2) == 0) { return "its key would never be valid"; }
    return NULL;
}

static crdi_pair_state agree(crdi_pair* p, const uint8_t* m)
{
    uint8_t transcript[KEY], shared[KEY];
    const char* wrong = wrong_message(p, m);
    if (wrong) { return fail(p, wrong); }
    memcpy(p->first ? p->offer : p->opening, m, LONG);
    if (crypto_scalarmult(shared, p->secret, m + AT_KEY) != 0) {
        return fail(p, "its X25519 key is none");
    }
    hash(transcript, NULL, "cardan pair transcript", p->opening, LONG, p->offer, LONG);
    hash(p->root, shared, "cardan pair root", transcript, KEY, p->old.bytes, p->renews ? KEY : 0);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(p->secret, sizeof p->secret);
    return p->state = CRDI_PAIR_AGREED;
}

crdi_pair_state crdi_pair_take(crdi_pair* p, const uint8_t* bytes, size_t length,
                               uint8_t out[CRDI_PAIR_MESSAGE], size_t* out_length)
{
    uint8_t expected[KEY];
    *out_length = 0;
    const uint8_t kind = length > 0 ? bytes[0] : 0;
    const size_t size = kind == COMMITMENT || kind == CONFIRMATION ? SHORT : LONG;
    if (length != size || kind < COMMITMENT || kind > CONFIRMATION) {
        return fail(p, "it does not speak of pairing");
    }
    if (bytes[1] != VERSION) { return fail(p, "it uses another version of pairing"); }
    if (p->state == CRDI_PAIR_WAITING && kind == COMMITMENT) {
        memcpy(p->commitment, bytes + 2, KEY);
        memcpy(out, p->offer, LONG);
        *out_length = LONG;
        return p->state = CRDI_PAIR_OFFERED;
    }
    if (p->state == CRDI_PAIR_OFFERED && kind == (p->first ? OFFER : OPENING)) {
        hash(expected, NULL, NULL, bytes, LONG, NULL, 0);
        if (!p->first && sodium_memcmp(expected, p->commitment, KEY) != 0) {
            return fail(p, "what it says is not what it has committed itself to");
        }
        if (p->first) {
            memcpy(out, p->opening, LONG);
            *out_length = LONG;
        }
        return agree(p, bytes);
    }
    if (p->state == CRDI_PAIR_AGREED && kind == CONFIRMATION) {
        from_root(p, p->first ? 2 : 1, expected);
        if (sodium_memcmp(expected, bytes + 2, KEY) != 0) {
            return fail(p, p->renews ? "it does not have the key that is to be renewed"
                                     : "it has agreed on another key: somebody is in between");
        }
        p->confirmed = true;
        return p->state;
    }
    return fail(p, "it does not keep to the order of pairing");
}

void crdi_pair_code(const crdi_pair* p, char out[10])
{
    uint8_t h[KEY];
    from_root(p, 3, h);
    const uint64_t n = crdi_load_le(h, 8) % 100000000;
    snprintf(out, 10, "%04u %04u", (unsigned)(n / 10000), (unsigned)(n % 10000));
}

size_t crdi_pair_confirm(const crdi_pair* p, uint8_t out[CRDI_PAIR_MESSAGE])
{
    out[0] = CONFIRMATION;
    out[1] = VERSION;
    from_root(p, p->first ? 1 : 2, out + 2);
    return SHORT;
}

void crdi_pair_key(const crdi_pair* p, int64_t now, int overlap, crd_dcp_key* out)
{
    enum { DAY = 86400 };
    const uint8_t* own = p->first ? p->opening : p->offer;
    const uint8_t* other = p->first ? p->offer : p->opening;
    const int64_t a = (int64_t)crdi_load_le(own + AT_DAYS, 2);
    const int64_t b = (int64_t)crdi_load_le(other + AT_DAYS, 2);
    const int64_t today = now / DAY * DAY;
    *out = (crd_dcp_key){.role = (crd_dcp_key_role)own[AT_ROLE],
                         .peer = (crd_dcp_key_role)other[AT_ROLE],
                         .created = today,
                         .expires = today + (a < b ? a : b) * DAY};
    memcpy(out->name, other + AT_NAME, other[AT_LENGTH]);
    from_root(p, 0, out->bytes);
    if (p->renews && overlap > 0) {
        memcpy(out->previous, p->old.bytes, KEY);
        out->previous_until = today + (int64_t)overlap * DAY;
    }
}
