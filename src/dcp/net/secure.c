// Networks whose PDUs are sealed with a key that all partners have.
//
// Two addresses that talk to each other have an association with keys of its own. Who wants to send
// first greets, the other one answers; what is sealed with the keys that follow from both proves
// the rest. All little endian:
//   greeting   0 u8 kind = 0xD1    1 u8 version   2 u64 id        10 byte[32] X25519 key
//              42 u32 ip           46 u16 port    48 u8 transport (where it is sent to)
//              49 u64 instance     57 byte[16] BLAKE2b with a key from the shared one
//   answer     0 u8 kind = 0xD2    1 u8 version   2 u64 id of the greeting   10 u64 own id
//              18 byte[32] X25519 key   50 byte[16] BLAKE2b with a key of the association
//   data       0 u8 kind = 0xD3    1 u8 version   2 u64 receiver's id        10 u64 counter
//              18 bytes            end byte[16] tag of ChaCha20-Poly1305 over all
// The kinds are no types of DCP, so that partners without a key drop them.
//
// Why an attacker without the key gets nowhere:
// - Keys come from the shared key, both X25519 keys and the two messages, so that they differ in
//   every association, in both directions, and after every start of either side: what was recorded
//   is worth nothing later, even to who learns the shared key then.
// - A greeting of an open association that comes from elsewhere is counted as replayed. An
//   older one gets an answer and takes a place among 64 that are unproven. Nothing more is sent
//   there before sealed data have come that only a living partner can make.
// - A greeting says whom it is for. It cannot be handed to another partner with the same key, or
//   thrown back at who sent it.
// - Strangers get no answer: to greetings without the right tag, to data of an association that is
//   not known, or that come from elsewhere. Who gets nothing back for some seconds greets anew: the
//   partner may have started again, or given the place away.
// - No answer is longer than what it answers, and there are at most 256 of them in a second.
#include "dcp/net/secure.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

// ---- bytes -------------------------------------------------------------------------------------

uint64_t
crdi_secure_pack_address(const crd_dcp_address* a) // never 0: there is no port 0 to send to
{
    return (uint64_t)a->ip << 24 | (uint64_t)a->port << 8 | a->transport;
}

static void put_address(uint8_t p[7], const crd_dcp_address* a)
{
    crdi_store_le(p, 4, a->ip);
    crdi_store_le(p + 4, 2, a->port);
    p[6] = a->transport;
}

static void mac_of(uint8_t out[MAC], const uint8_t* bytes, size_t length, const uint8_t key[KEY])
{
    (void)crypto_generichash(out, MAC, bytes, length, key, KEY);
}

static bool mac_fits(const uint8_t* bytes, size_t length, const uint8_t key[KEY])
{
    uint8_t mac[MAC];
    mac_of(mac, bytes, length - MAC, key);
    return sodium_memcmp(mac, bytes + length - MAC, MAC) == 0;
}

// Keys from first to second speaker, from second to first, and of the answer.
static void derive(const crdi_secure_key* key, const uint8_t shared[KEY], const uint8_t* greeting,
                   const uint8_t* answer, uint8_t keys[3][KEY])
{
    static const char label[] = "cardan dcp association";
    uint8_t root[KEY];
    crypto_generichash_state h;
    (void)crypto_generichash_init(&h, key->key, KEY, KEY);
    (void)crypto_generichash_update(&h, (const uint8_t*)label, sizeof label);
    (void)crypto_generichash_update(&h, shared, KEY);
    (void)crypto_generichash_update(&h, greeting, GREETING_SIZE);
    (void)crypto_generichash_update(&h, answer, ANSWER_SIZE - MAC);
    (void)crypto_generichash_final(&h, root, KEY);
    for (uint8_t i = 0; i < 3; i++) {
        (void)crypto_generichash(keys[i], KEY, &i, 1, root, KEY);
    }
    sodium_memzero(root, sizeof root);
    sodium_memzero(&h, sizeof h);
}

double crdi_secure_now(const crdi_secure_net* s)
{
    return crd_dcp_net_now(s->base.inner);
}

// true the first time
bool crdi_secure_first_time(crdi_secure_net* s, unsigned what)
{
    const bool fresh = !(s->said & what);
    s->said |= what;
    return fresh;
}

// ---- handshakes --------------------------------------------------------------------------------

// At most so many per second, whoever asks.
static bool may_answer(crdi_secure_net* s, double now)
{
    const bool may = crdi_dcp_rate_spend(&s->answers, MOST_ANSWERS, now);
    s->counts.muted += !may;
    return may;
}

// Where a PDU to a peer leaves: what is wanted if it is open, else the first of UDP. Of streams the
// connection decides.
static crd_dcp_address local_address(const crdi_secure_net* s, const crd_dcp_address* wanted,
                                     const crd_dcp_address* to)
{
    if (to->transport == CRD_DCP_TCP) { return *wanted; }
    crd_dcp_address first = {0};
    crd_dcp_address a;
    for (int i = 0; crd_dcp_net_local(s->base.inner, i, &a); i++) {
        if (a.transport != CRD_DCP_UDP) { continue; }
        if (first.port == 0) { first = a; }
        if (wanted->port == 0) { break; }
        if (crd_dcp_address_equal(&a, wanted)) { return a; }
    }
    return first;
}

static bool is_valid(const crdi_secure_net* s, int key)
{
    const int64_t expires = s->keys[key].expires;
    return expires == 0 || crdi_secure_now(s) < (double)expires;
}

static bool greet(crdi_secure_net* s, int index)
{
    crdi_secure_peer* p = &s->peers[index];
    p->due = crdi_secure_now(s) + FIRST_RETRY * (double)(1 << p->tries);
    p->tries++;
    // What has waited for long is not worth sending: whoever cares has repeated it.
    if (p->tries > KEEP_TRIES && p->remote.transport == CRD_DCP_UDP) {
        crdi_secure_queue_take(s, index, false);
    }
    bool sent = false;
    for (int i = 0; i < s->key_count; i++) { // which of them the partner has, it says by its answer
        if (!is_valid(s, i)) { continue; }
        mac_of(p->hello + 57, p->hello, GREETING_SIZE - MAC, s->keys[i].hello);
        sent |=
            crdi_dcp_net_send_from(s->base.inner, &p->local, &p->remote, p->hello, GREETING_SIZE);
    }
    return sent;
}

// Begins a handshake; -1: there is no place, or no connection.
static int begin_handshake(crdi_secure_net* s, const crd_dcp_address* local,
                           const crd_dcp_address* to)
{
    const int index = crdi_secure_make_peer_place(s, true);
    if (index < 0) { return -1; }
    crdi_secure_peer* p = &s->peers[index];
    p->phase = PENDING;
    p->local = *local;
    p->remote = *to;
    s->pending++;
    s->there[index] = crdi_secure_pack_address(to);
    uint8_t* h = p->hello;
    h[0] = GREETING;
    h[1] = VERSION;
    crdi_store_le(h + 2, 8, s->ids[index]);
    randombytes_buf(p->secret, KEY);
    (void)crypto_scalarmult_base(h + 10, p->secret);
    put_address(h + 42, to);
    crdi_store_le(h + 49, 8, s->instance);
    if (!greet(s, index) && to->transport == CRD_DCP_TCP) {
        crdi_secure_forget_peer(s, index);
        return -1;
    }
    if (to->transport == CRD_DCP_UDP && local->port == 0) { // opened just now
        p->local = local_address(s, local, to);
    }
    return index;
}

// What is due for those that have been greeted. They are few and short-lived.
static void repeat_greetings(crdi_secure_net* s, double now)
{
    for (int i = 0; s->pending > 0 && i < s->count; i++) {
        crdi_secure_peer* p = &s->peers[i];
        if (p->phase != PENDING || now < p->due) { continue; }
        if (p->tries < MOST_TRIES) {
            (void)greet(s, i);
            continue;
        }
        s->counts.given_up++;
        if (crdi_secure_first_time(s, SAID_SILENT)) {
            crdi_log(s->base.ctx, CRD_LOG_WARNING,
                     "secured network: %s does not answer: nobody is there, or it has no key, or "
                     "another one",
                     crdi_dcp_address_text_of(&p->remote).text);
        }
        crdi_secure_forget_peer(s, i);
    }
}

static double next_due(const crdi_secure_net* s)
{
    double due = INFINITY;
    for (int i = 0; s->pending > 0 && i < s->count; i++) {
        if (s->peers[i].phase == PENDING) { due = fmin(due, s->peers[i].due); }
    }
    return due;
}

// Whether a packet for the address at `p` has come to it.
static bool meant_for(const crdi_secure_net* s, const uint8_t* p, const crd_dcp_address* at)
{
    if (s->any_address) { return true; }
    return crdi_load_le(p + 4, 2) == at->port && p[6] == at->transport &&
           (at->ip == 0 || crdi_load_le(p, 4) == at->ip);
}

// Who listens on all interfaces does not know which one it was: the one that leads back.
static crd_dcp_address arrived_at(const crdi_secure_net* s, const crd_dcp_packet* k)
{
    crd_dcp_address at = k->at;
    if (at.ip == 0 && k->from.ip >> 24 != 127) {
        at.ip = crdi_dcp_net_source_ip(s->base.inner, &k->from);
    }
    return at;
}

// With which of our keys a greeting was made; -1: none.
static int genuine(crdi_secure_net* s, const crd_dcp_packet* k)
{
    for (int i = 0; i < s->key_count; i++) {
        if (is_valid(s, i) && mac_fits(k->bytes, k->length, s->keys[i].hello)) { return i; }
    }
    s->counts.rejected++;
    if (crdi_secure_first_time(s, SAID_KEY)) {
        crdi_log(s->base.ctx, CRD_LOG_WARNING,
                 "secured network: %s does not have our key, or its packets are damaged",
                 crdi_dcp_address_text_of(&k->from).text);
    }
    return -1;
}

// The answer again, where the first one seems to be lost; none for who has recorded the greeting of
// an association that is open. false: this greeting is new.
static bool repeat_answer(crdi_secure_net* s, const crd_dcp_packet* k)
{
    const uint64_t id = crdi_load_le(k->bytes + 2, 8);
    for (int i = 0; i < s->count; i++) {
        crdi_secure_peer* p = &s->peers[i];
        if (!p->greeted || p->their_id != id) { continue; }
        if (!crdi_secure_belongs(p, &k->from, &k->at)) {
            // Not before: else who is faster than the partner would keep it out.
            if (p->phase != OPEN || k->from.transport != CRD_DCP_UDP) { continue; }
            s->counts.replayed++;
            return true;
        }
        const double now = crdi_secure_now(s);
        if (p->phase == UNPROVEN && now >= p->due &&
            memcmp(p->hello_mac, k->bytes + GREETING_SIZE - MAC, MAC) == 0 && may_answer(s, now)) {
            p->due = now + FIRST_RETRY / 4;
            (void)crdi_dcp_net_send_from(s->base.inner, &p->local, &p->remote, p->hello,
                                         ANSWER_SIZE);
        }
        return true;
    }
    return false;
}

static void take_greeting(crdi_secure_net* s, const crd_dcp_packet* k)
{
    const uint8_t* h = k->bytes;
    const int key = genuine(s, k);
    if (key < 0) { return; }
    const crd_dcp_address at = arrived_at(s, k);
    if (!meant_for(s, h + 42, &at) || (s->any_address && crdi_load_le(h + 49, 8) == s->instance)) {
        s->counts.misdirected++;
        const crd_dcp_address meant = {.ip = (uint32_t)crdi_load_le(h + 42, 4),
                                       .port = (uint16_t)crdi_load_le(h + 46, 2),
                                       .transport = h[48]};
        if (crdi_secure_first_time(s, SAID_MISDIRECTED)) {
            crdi_log(s->base.ctx, CRD_LOG_WARNING,
                     "secured network: a handshake for %s has come to %s; behind NAT the addresses "
                     "must be ignored (any_address)",
                     crdi_dcp_address_text_of(&meant).text, crdi_dcp_address_text_of(&at).text);
        }
        return;
    }
    const double now = crdi_secure_now(s);
    uint8_t shared[KEY], secret[KEY], keys[3][KEY];
    if (repeat_answer(s, k) || !may_answer(s, now)) { return; }
    randombytes_buf(secret, KEY);
    if (crypto_scalarmult(shared, secret, h + 10) != 0) {
        s->counts.rejected++;
        return;
    }
    const int index = crdi_secure_make_peer_place(s, false);
    if (index < 0) { return; }
    crdi_secure_peer* p = &s->peers[index];
    p->phase = UNPROVEN;
    p->key = key;
    p->greeted = true;
    p->local = k->at;
    p->remote = k->from;
    p->their_id = crdi_load_le(h + 2, 8);
    memcpy(p->hello_mac, h + GREETING_SIZE - MAC, MAC);
    uint8_t* a = p->hello;
    a[0] = ANSWER;
    a[1] = VERSION;
    crdi_store_le(a + 2, 8, p->their_id);
    crdi_store_le(a + 10, 8, s->ids[index]);
    (void)crypto_scalarmult_base(a + 18, secret);
    derive(&s->keys[key], shared, h, a, keys);
    memcpy(p->receive_key, keys[0], KEY);
    memcpy(p->send_key, keys[1], KEY);
    mac_of(a + 50, a, ANSWER_SIZE - MAC, keys[2]);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(keys, sizeof keys);
    p->due = now + FIRST_RETRY / 4;
    (void)crdi_dcp_net_send_from(s->base.inner, &p->local, &p->remote, a, ANSWER_SIZE);
}

static void take_answer(crdi_secure_net* s, const crd_dcp_packet* k)
{
    const uint8_t* a = k->bytes;
    const int index = crdi_secure_find_id(s, crdi_load_le(a + 2, 8));
    if (index < 0 || s->peers[index].phase != PENDING) { // late, or a second one
        s->counts.unknown++;
        return;
    }
    crdi_secure_peer* p = &s->peers[index];
    uint8_t shared[KEY], keys[3][KEY];
    const bool good = crd_dcp_address_equal(&k->from, &p->remote) &&
                      crdi_secure_belongs(p, &k->from, &k->at) &&
                      crypto_scalarmult(shared, p->secret, a + 18) == 0;
    int key = good ? 0 : s->key_count;
    for (; key < s->key_count; key++) { // to the greeting with which key?
        mac_of(p->hello + 57, p->hello, GREETING_SIZE - MAC, s->keys[key].hello);
        derive(&s->keys[key], shared, p->hello, a, keys);
        if (mac_fits(a, ANSWER_SIZE, keys[2])) { break; }
    }
    if (key == s->key_count) {
        s->counts.rejected++;
        return;
    }
    memcpy(p->send_key, keys[0], KEY);
    memcpy(p->receive_key, keys[1], KEY);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(keys, sizeof keys);
    sodium_memzero(p->secret, sizeof p->secret);
    p->key = key;
    p->their_id = crdi_load_le(a + 10, 8);
    p->local = k->at;
    p->phase = OPEN;
    s->pending--;
    p->last_received = crdi_secure_now(s);
    s->counts.handshakes++;
    crdi_secure_use_association(s, index);
    crdi_secure_queue_take(s, index, true);
}

// ---- data --------------------------------------------------------------------------------------

static void nonce_of(uint8_t nonce[12], uint64_t counter)
{
    crdi_store_le(nonce, 4, 0);
    crdi_store_le(nonce + 4, 8, counter);
}

bool crdi_secure_seal(crdi_secure_net* s, int index, const uint8_t* bytes, size_t length)
{
    crdi_secure_peer* p = &s->peers[index];
    uint8_t nonce[12];
    uint8_t* o = s->out;
    o[0] = DATA;
    o[1] = VERSION;
    crdi_store_le(o + 2, 8, p->their_id);
    crdi_store_le(o + 10, 8, p->sent);
    nonce_of(nonce, p->sent);
    p->sent++; // whatever becomes of it: never twice
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(o + HEAD, NULL, bytes, length, o, HEAD, NULL,
                                                    nonce, p->send_key);
    return crdi_dcp_net_send_from(s->base.inner, &p->local, &p->remote, o,
                                  length + CRD_DCP_SECURE_OVERHEAD);
}

// Whether a counter has not been here; remembers it.
static bool fresh_counter(crdi_secure_peer* p, uint64_t c)
{
    if (c == UINT64_MAX || (c < p->newest && p->newest - c > WINDOW)) { return false; }
    if (c >= p->newest) {
        const uint64_t words = (c >> 6) - (p->newest >> 6);
        for (uint64_t i = 1; i <= words && i <= WINDOW_WORDS; i++) {
            p->seen[((p->newest >> 6) + i) % WINDOW_WORDS] = 0;
        }
        p->newest = c + 1;
        if ((p->newest & 63) == 0) { p->seen[(p->newest >> 6) % WINDOW_WORDS] = 0; }
    }
    uint64_t* word = &p->seen[(c >> 6) % WINDOW_WORDS];
    const uint64_t bit = UINT64_C(1) << (c & 63);
    if (*word & bit) { return false; }
    *word |= bit;
    return true;
}

// What the partner's role lets it send.
static bool may_send(crdi_secure_net* s, const crdi_secure_peer* p, size_t length)
{
    const crd_dcp_key_role role = s->keys[p->key].peer;
    const uint8_t type = length > 0 ? s->in[0] : 0;
    const bool looks =
        type == CRDI_DCP_INF_STATE || type == CRDI_DCP_INF_ERROR || type == CRDI_DCP_INF_LOG;
    const bool may = role == CRD_DCP_OBSERVER_ROLE ? looks
                     : role == CRD_DCP_BENCH_ROLE  ? !crdi_dcp_is_request(type)
                                                   : true;
    if (may) { return true; }
    s->counts.forbidden++;
    if (crdi_secure_first_time(s, SAID_ROLE)) {
        crdi_log(s->base.ctx, CRD_LOG_WARNING,
                 "secured network: %s has the key of one that is %s, and sends what only a master "
                 "may, which "
                 "is dropped",
                 crdi_dcp_address_text_of(&p->remote).text, crdi_dcp_role_names[role]);
    }
    return false;
}

static bool open_data(crdi_secure_net* s, crd_dcp_packet* k)
{
    const uint8_t* b = k->bytes;
    const int index = crdi_secure_find_id(s, crdi_load_le(b + 2, 8));
    crdi_secure_peer* p = index < 0 ? NULL : &s->peers[index];
    if (!p || (p->phase != OPEN && p->phase != UNPROVEN)) {
        s->counts.unknown++;
        return false;
    }
    uint8_t nonce[12];
    const uint64_t counter = crdi_load_le(b + 10, 8);
    nonce_of(nonce, counter);
    const size_t length = k->length - CRD_DCP_SECURE_OVERHEAD;
    if (length > s->room - CRD_DCP_SECURE_OVERHEAD ||
        crypto_aead_chacha20poly1305_ietf_decrypt(s->in, NULL, NULL, b + HEAD, length + MAC, b,
                                                  HEAD, nonce, p->receive_key) != 0) {
        s->counts.rejected++;
        return false;
    }
    if (!crdi_secure_belongs(p, &k->from, &k->at)) { // it has moved, or somebody plays it
        s->counts.unknown++;
        return false;
    }
    if (!fresh_counter(p, counter)) {
        s->counts.replayed++;
        return false;
    }
    p->last_received = crdi_secure_now(s);
    p->unanswered = p->patience = 0;
    const bool moved = k->from.port != p->remote.port; // a stream that was opened again
    if (moved) { p->remote = k->from; }
    if (p->phase == UNPROVEN) {
        p->phase = OPEN;
        s->counts.handshakes++;
        crdi_secure_use_association(s, index);
    } else if (moved && s->there[index] != 0) {
        crdi_secure_use_association(s, index);
    }
    k->bytes = s->in;
    k->length = length;
    return may_send(s, p, length);
}

static bool open_packet(crdi_secure_net* s, crd_dcp_packet* k)
{
    const uint8_t kind = k->length > 0 ? k->bytes[0] : 0;
    const bool ours = kind >= GREETING && kind <= DATA;
    if (!ours) {
        s->counts.plain++;
        if (crdi_secure_first_time(s, SAID_PLAIN)) {
            crdi_log(s->base.ctx, CRD_LOG_WARNING,
                     "secured network: %s sends without encryption, which is dropped",
                     crdi_dcp_address_text_of(&k->from).text);
        }
        return false;
    }
    if (k->length > 1 && k->bytes[1] != VERSION && crdi_secure_first_time(s, SAID_VERSION)) {
        crdi_log(s->base.ctx, CRD_LOG_WARNING,
                 "secured network: %s uses version %d of the encryption, expected %d",
                 crdi_dcp_address_text_of(&k->from).text, k->bytes[1], VERSION);
    }
    static const size_t sizes[] = {GREETING_SIZE, ANSWER_SIZE, HEAD + MAC};
    const size_t size = sizes[kind - GREETING];
    const bool fits = kind == DATA ? k->length >= size : k->length == size;
    if (!fits || k->bytes[1] != VERSION || k->from.port == 0) {
        s->counts.rejected++;
        return false;
    }
    switch (kind) {
    case GREETING:
        take_greeting(s, k);
        return false;
    case ANSWER:
        take_answer(s, k);
        return false;
    default:
        return open_data(s, k);
    }
}

// ---- a network ---------------------------------------------------------------------------------

// A partner from which nothing comes back may have forgotten us: a new association beside this one,
// which takes over when it is open. Who only ever receives is silent as well, and greeted more and
// more rarely.
static void greet_silent(crdi_secure_net* s, int index)
{
    crdi_secure_peer* p = &s->peers[index];
    const double now = crdi_secure_now(s);
    if (p->unanswered == 0) { p->unanswered = now; }
    const double patience = fmax(p->patience, SILENCE);
    if (now - p->unanswered < patience) { return; }
    p->unanswered = now;
    p->patience = fmax(patience, GREETING_LIFE); // of this one, if the new one is not answered
    const crd_dcp_address local = p->local, remote = p->remote;
    const int fresh = begin_handshake(s, &local, &remote);
    if (fresh >= 0) { s->peers[fresh].patience = fmin(2 * patience, MOST_SILENCE); }
}

static bool secure_send(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                        size_t length, crd_dcp_address* from)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    const size_t most = to->transport == CRD_DCP_UDP ? CRDI_DCP_MOST_UDP : s->room;
    if (length + CRD_DCP_SECURE_OVERHEAD > most || to->port == 0) { return false; }
    const crd_dcp_address local = local_address(s, from, to);
    int index = crdi_secure_find_association(s, &local, to);
    if (index < 0) { index = begin_handshake(s, &local, to); }
    if (index < 0) {
        s->counts.dropped++;
        return false;
    }
    *from = s->peers[index].local;
    if (s->peers[index].phase == OPEN) { greet_silent(s, index); }
    return s->peers[index].phase == OPEN ? crdi_secure_seal(s, index, bytes, length)
                                         : crdi_secure_queue_add(s, index, bytes, length);
}

static bool secure_receive(crd_dcp_net* base, crd_dcp_packet* out)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    bool found = false;
    if (s->pending > 0) { repeat_greetings(s, crdi_secure_now(s)); }
    for (int i = 0; i < MOST_LOOKED_AT && !found && crd_dcp_net_receive(s->base.inner, out); i++) {
        found = open_packet(s, out);
    }
    return found;
}

static void secure_wait(crd_dcp_net* base, double seconds)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    if (s->pending > 0) { seconds = fmin(seconds, fmax(0, next_due(s) - crdi_secure_now(s))); }
    crd_dcp_net_wait(s->base.inner, seconds);
}

static crd_status secure_connect(crd_dcp_net* base, const crd_dcp_address* to)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    const crd_dcp_address local = {0};
    const crd_status st = crdi_dcp_net_connect(s->base.inner, to);
    if (st == CRD_OK && crdi_secure_find_association(s, &local, to) < 0) {
        (void)begin_handshake(s, &local, to);
    }
    return st;
}

static crd_status make_buffers(crdi_secure_net* s, uint32_t max_pdu)
{
    crd_context* ctx = s->base.ctx;
    const size_t most = max_pdu > CRDI_DCP_MOST_UDP ? max_pdu : CRDI_DCP_MOST_UDP;
    const size_t room = most + CRD_DCP_SECURE_OVERHEAD;
    if (room <= s->room) { return CRD_OK; }
    uint8_t* out = crdi_new(ctx, room);
    uint8_t* in = out ? crdi_new(ctx, room) : NULL;
    if (!in) {
        crd_free(ctx, out);
        return CRD_E_MEMORY;
    }
    crd_free(ctx, s->out);
    crd_free(ctx, s->in);
    s->out = out;
    s->in = in;
    s->room = room;
    return CRD_OK;
}

static crd_status secure_set_limits(crd_dcp_net* base, const crd_dcp_net_limits* limits)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    crd_dcp_net_limits inner = *limits;
    inner.max_pdu += CRD_DCP_SECURE_OVERHEAD;
    const crd_status st = make_buffers(s, limits->max_pdu);
    return st < 0 ? st : crd_dcp_net_set_limits(s->base.inner, &inner);
}

static void free_secure(crdi_secure_net* s) // without the inner one
{
    crd_context* ctx = s->base.ctx;
    if (s->peers) { sodium_memzero(s->peers, (size_t)s->count * sizeof *s->peers); }
    if (s->queue) { sodium_memzero(s->queue, QUEUE); }
    if (s->in) { sodium_memzero(s->in, s->room); }
    crd_free(ctx, s->peers);
    crd_free(ctx, s->ids);
    crd_free(ctx, s->there);
    crd_free(ctx, s->queue);
    crd_free(ctx, s->out);
    crd_free(ctx, s->in);
    sodium_memzero(s, sizeof *s);
    crd_free(ctx, s);
}

static void secure_destroy(crd_dcp_net* base)
{
    crdi_secure_net* s = (crdi_secure_net*)base;
    crd_dcp_net_destroy(s->base.inner);
    free_secure(s);
}

static const crdi_dcp_net_ops ops = {
    .destroy = secure_destroy,
    .connect = secure_connect,
    .send = secure_send,
    .receive = secure_receive,
    .wait = secure_wait,
    .set_limits = secure_set_limits,
};

crd_dcp_secure_options crd_dcp_secure_defaults(void)
{
    return (crd_dcp_secure_options){.max_peers = 256};
}

static void add_key(crdi_secure_net* s, const uint8_t bytes[KEY], crd_dcp_key_role peer,
                    int64_t expires)
{
    static const char label[] = "cardan dcp handshake";
    crdi_secure_key* k = &s->keys[s->key_count++];
    *k = (crdi_secure_key){.peer = peer, .expires = expires};
    memcpy(k->key, bytes, KEY);
    (void)crypto_generichash(k->hello, KEY, (const uint8_t*)label, sizeof label, k->key, KEY);
}

// A key that was renewed brings the one before, as long as that is taken.
static void add_keys(crdi_secure_net* s, const crd_dcp_key* key, const crd_dcp_secure_options* o)
{
    for (int i = -1; i < o->more_count; i++) {
        const crd_dcp_key* k = i < 0 ? key : &o->more[i];
        add_key(s, k->bytes, k->peer, k->expires);
        if (k->previous_until != 0) { add_key(s, k->previous, k->peer, k->previous_until); }
    }
}

crd_status crd_dcp_net_secure(crd_context* ctx, crd_dcp_net* inner, const crd_dcp_key* key,
                              const crd_dcp_secure_options* opt, crd_dcp_net** out)
{
    const crd_dcp_secure_options o = opt ? *opt : crd_dcp_secure_defaults();
    if (o.max_peers < 1 || o.max_peers > 65536) {
        return crdi_fail(ctx, CRD_E_RANGE, "secured network: max_peers = %d, expected 1 to 65536",
                         o.max_peers);
    }
    if (o.more_count < 0 || o.more_count >= CRD_DCP_MOST_KEYS) {
        return crdi_fail(ctx, CRD_E_RANGE, "secured network: %d more keys, expected 0 to %d",
                         o.more_count, CRD_DCP_MOST_KEYS - 1);
    }
    if (inner->limits.max_pdu < 24 + CRD_DCP_SECURE_OVERHEAD) {
        return crdi_fail(ctx, CRD_E_RANGE, "secured network: max_pdu = %u, expected at least %d",
                         inner->limits.max_pdu, 24 + CRD_DCP_SECURE_OVERHEAD);
    }
    if (sodium_init() < 0) {
        return crdi_fail(ctx, CRD_E_IO, "secured network: the system gives no random numbers");
    }
    crdi_secure_net* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    crdi_dcp_net_init(&s->base, ctx, &ops);
    s->base.inner = inner;
    s->any_address = o.any_address;
    s->count = o.max_peers;
    s->answers = (crdi_dcp_rate){MOST_ANSWERS, crdi_secure_now(s)};
    s->base.limits = inner->limits;
    s->base.limits.max_pdu -= CRD_DCP_SECURE_OVERHEAD;
    add_keys(s, key, &o);
    randombytes_buf(&s->instance, sizeof s->instance);
    const size_t n = (size_t)s->count;
    s->peers = crdi_new_array(ctx, n, sizeof *s->peers);
    s->ids = crdi_new_array(ctx, n, sizeof *s->ids);
    s->there = crdi_new_array(ctx, n, sizeof *s->there);
    s->queue = crdi_new(ctx, QUEUE);
    if (!s->peers || !s->ids || !s->there || !s->queue ||
        make_buffers(s, s->base.limits.max_pdu) < 0) {
        free_secure(s);
        return CRD_E_MEMORY;
    }
    *out = &s->base;
    return CRD_OK;
}

crd_dcp_secure_counts crd_dcp_net_secure_counts(const crd_dcp_net* n)
{
    return n->ops == &ops ? ((const crdi_secure_net*)n)->counts : (crd_dcp_secure_counts){0};
}
