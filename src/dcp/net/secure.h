// Secured networks between their files: secure.c seals and opens, greets and answers;
// associations.c has the places of partners and what waits for them.
#pragma once
#include "dcp/net/net.h"

#include <sodium.h>

enum {
    GREETING = 0xD1,
    ANSWER = 0xD2,
    DATA = 0xD3,
    VERSION = 1,
    MAC = 16,
    GREETING_SIZE = 73,
    ANSWER_SIZE = 66,
    HEAD = 18, // of data
    KEY = 32,
    WINDOW = 1024,         // counters behind the newest that are still taken
    WINDOW_WORDS = 32,     // twice as many bits, so that a word can be cleared as a whole
    MOST_UNPROVEN = 64,    // that have greeted and not yet sent data
    MOST_ANSWERS = 256,    // per second
    MOST_TRIES = 6,        // greetings: at 0, 0.1, 0.3, 0.7, 1.5 and 3.1 s
    KEEP_TRIES = 3,        // PDUs wait until the next
    MOST_LOOKED_AT = 1024, // packets that are not data, before receive returns
    QUEUE = 64 << 10,
    QUEUE_HEAD = 8, // u32 peer, u32 length
};
#define FIRST_RETRY 0.1 // s; doubles
#define SILENCE 2.0 // s without anything from a partner to whom we send, until it is greeted anew
#define MOST_SILENCE 64.0 // s: twice as long each time up to this, for those who only ever receive
#define GREETING_LIFE 7.0 // s, of all tries of one greeting
#define RETIRED_IDLE 10.0 // s without data until the place may be given away
#define OPEN_IDLE 60.0

_Static_assert(CRD_DCP_SECURE_OVERHEAD == HEAD + MAC, "the header says how much a PDU grows");
_Static_assert(KEY == crypto_aead_chacha20poly1305_IETF_KEYBYTES &&
                   KEY == crypto_scalarmult_BYTES && KEY == crypto_generichash_KEYBYTES &&
                   MAC == crypto_aead_chacha20poly1305_IETF_ABYTES,
               "all keys have 32 bytes, all tags 16");

typedef enum crdi_secure_phase {
    FREE,
    PENDING,  // has been greeted
    UNPROVEN, // has greeted
    OPEN,
} crdi_secure_phase;

typedef struct crdi_secure_key {
    uint8_t key[KEY], hello[KEY]; // shared; of greetings
    crd_dcp_key_role peer;        // of who has it on the other side
    int64_t expires;              // s since 1970, 0: never
} crdi_secure_key;

typedef struct crdi_secure_peer {
    crdi_secure_phase phase;
    int key;      // of `keys`; OPEN, UNPROVEN
    bool greeted; // we were: not the first to speak
    bool retired; // a newer one sends; this one still receives
    crd_dcp_address local, remote;
    uint64_t their_id;
    uint8_t send_key[KEY], receive_key[KEY];
    uint8_t secret[KEY]; // PENDING: of the X25519 key in the greeting
    uint64_t sent;       // data
    uint64_t newest;     // counter + 1 of data
    uint64_t seen[WINDOW_WORDS];
    uint8_t hello[GREETING_SIZE]; // PENDING: the greeting, UNPROVEN: the answer
    uint8_t hello_mac[MAC];       // UNPROVEN: of the greeting that it answers
    double last_received, due;    // due: PENDING, the next greeting; UNPROVEN: the next answer
    double unanswered, patience;  // OPEN: since when nothing came back, until it is greeted anew
    int tries;
    size_t queued; // bytes
} crdi_secure_peer;

// Log lines that come once.
enum {
    SAID_KEY = 1,
    SAID_PLAIN = 2,
    SAID_SILENT = 4,
    SAID_MISDIRECTED = 8,
    SAID_VERSION = 16,
    SAID_FULL = 32,
    SAID_ROLE = 64
};

typedef struct crdi_secure_net {
    crd_dcp_net base;
    bool any_address;
    crdi_secure_key keys[2 * CRD_DCP_MOST_KEYS]; // with those that were replaced
    int key_count;
    uint64_t instance;
    int count; // of the arrays
    crdi_secure_peer* peers;
    uint64_t* ids;   // (count) ours, 0: free
    uint64_t* there; // (count) packed address where it sends, 0: nothing to send with it
    int pending;
    crdi_dcp_rate answers;
    uint8_t *out, *in; // (room)
    size_t room;
    uint8_t* queue;
    size_t queue_end;
    unsigned said;
    crd_dcp_secure_counts counts;
} crdi_secure_net;

// secure.c
double crdi_secure_now(const crdi_secure_net* s);
bool crdi_secure_first_time(crdi_secure_net* s, unsigned what);
bool crdi_secure_seal(crdi_secure_net* s, int index, const uint8_t* bytes, size_t length);
uint64_t crdi_secure_pack_address(const crd_dcp_address* a);

// associations.c
bool crdi_secure_queue_add(crdi_secure_net* s, int index, const uint8_t* bytes, size_t length);
/// Takes out what waits for a peer, in order: sent or dropped.
void crdi_secure_queue_take(crdi_secure_net* s, int index, bool send);
void crdi_secure_forget_peer(crdi_secure_net* s, int index);
/// A place, the oldest of the most expendable; -1: none. `own`: for a greeting of ours.
int crdi_secure_make_peer_place(crdi_secure_net* s, bool own);
int crdi_secure_find_id(const crdi_secure_net* s, uint64_t id);
/// Packets of an association go between two addresses. A stream that was opened again has another
/// port at one end.
bool crdi_secure_belongs(const crdi_secure_peer* p, const crd_dcp_address* from,
                         const crd_dcp_address* at);
/// The association to send with: OPEN, else PENDING, -1.
int crdi_secure_find_association(const crdi_secure_net* s, const crd_dcp_address* local,
                                 const crd_dcp_address* to);
/// It is the one that sends between its addresses from now on.
void crdi_secure_use_association(crdi_secure_net* s, int index);
