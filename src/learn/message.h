// Messages between coupling elements and the learning server, and the sockets that carry them.
//
// message.c, address.c and client.c use libc and POSIX alone: they go into exported FMUs.
#pragma once
#include "shared/coupling.h"

#include <sys/socket.h>

// ---- messages ----------------------------------------------------------------------------------

typedef enum crdi_message_type {
    CRDI_HELLO = 1, // element: who I am and the network that I use; again after a roll-back
    CRDI_SAMPLES,   // element: what arrived
    CRDI_NETWORK,   // server: a better one
    CRDI_OUTCOME,   // element: what became of it
    CRDI_BYE,       // both: the connection ends
    CRDI_MESSAGE_TYPES,
} crdi_message_type;

typedef enum crdi_outcome {
    CRDI_SWAPPED = 1, // in use, on trial
    CRDI_REFUSED,     // never used: size, numbers or sums
    CRDI_ROLLED_BACK, // the old one was better; a HELLO follows
    CRDI_KEPT,        // passed its trial
    CRDI_OUTCOMES,
} crdi_outcome;

typedef enum crdi_bye {
    CRDI_BYE_DONE,
    CRDI_BYE_FULL,      // no room for another element
    CRDI_BYE_MALFORMED, // the other side sent nonsense
    CRDI_BYE_SLOW,      // the other side does not read, or says nothing
    CRDI_BYES,
} crdi_bye;

enum {
    CRDI_MESSAGE_VERSION = 1,
    CRDI_MESSAGE_HEADER = 12,
    CRDI_NAME_MAX = 127,
    CRDI_BATCH = 64, // most samples of one message
    CRDI_HIDDEN_MAX = CRD_NETWORK_NEURONS,
    CRDI_WEIGHTS_MAX = CRDI_HIDDEN_MAX * (CRD_TAPS_MAX + 3 * CRDI_HIDDEN_MAX + 5) + 1,
    CRDI_MESSAGE_MAX = CRDI_MESSAGE_HEADER + 256 + 8 * CRDI_WEIGHTS_MAX,
    CRDI_K_UNKNOWN = 255,
    CRDI_FLAG_JUMP = 1,
};

// One struct for all; a message uses the fields of its table in message.c.
typedef struct crdi_message {
    crdi_message_type type;
    char name[CRDI_NAME_MAX + 1];
    double step;
    int64_t first; // sequence number of the first sample, then one by one
    uint16_t count;
    double values[CRDI_BATCH];
    uint8_t k[CRDI_BATCH]; // latency at which it was used, CRDI_K_UNKNOWN
    uint8_t flags[CRDI_BATCH];
    int64_t generation;
    uint8_t outcome, bye;
    double held_before, held_after; // mean squared error on what was held out
    // Decoded weights go to `weights` (weight_capacity). Where they do not fit, `network` has its
    // shape but no weights: W1 is NULL.
    crd_network network;
    double* weights;
    size_t weight_capacity;
} crdi_message;

// Length of the message in `out`, 0 if it does not fit.
size_t crdi_message_encode(const crdi_message* m, uint8_t* out, size_t capacity);
// What is wrong with a header, or NULL; then `*length` is that of the body.
const char* crdi_message_header(const uint8_t head[CRDI_MESSAGE_HEADER], crdi_message_type* type,
                                size_t* length);
// Header and body; of a NETWORK that is too large for who reads it the first part will do. What is
// wrong, or NULL.
const char* crdi_message_decode(crdi_message* m, const uint8_t* bytes, size_t present);

// ---- boxes: messages in pieces -----------------------------------------------------------------

typedef struct crdi_inbox {
    uint8_t* bytes;
    size_t capacity; // a longer message is read in its first part, the rest passes
    size_t head, tail, skip;
} crdi_inbox;

// Room for more bytes at `*at`, > 0 after crdi_inbox_next has returned false.
size_t crdi_inbox_room(crdi_inbox* in, uint8_t** at);
void crdi_inbox_add(crdi_inbox* in, size_t n);
// The next message. false: there is none yet, or `*wrong` says what is wrong for good.
bool crdi_inbox_next(crdi_inbox* in, crdi_message* m, const char** wrong);

typedef struct crdi_outbox {
    uint8_t* bytes;
    size_t capacity, head, tail;
} crdi_outbox;

bool crdi_outbox_put(crdi_outbox* out, const crdi_message* m); // false: no room
size_t crdi_outbox_room(const crdi_outbox* out);

// ---- addresses and sockets ---------------------------------------------------------------------

typedef struct crdi_address {
    struct sockaddr_storage socket;
    socklen_t length;
} crdi_address;

// "unix:PATH" or "tcp:ADDRESS:PORT" with a numeric address. CRD_E_RANGE with a sentence.
crd_status crdi_address_parse(crd_context* ctx, const char* text, crdi_address* out);
bool crdi_address_is_local(const crdi_address* a); // reached from this host only
// A socket that never blocks and is not inherited, -1.
int crdi_socket_open(int family);
void crdi_socket_settle(int fd, int family); // what a connection needs: no delay, no inheritance
// One call of the system each; false: the connection is over. Nothing to read or no room to write
// is no end.
bool crdi_inbox_receive(crdi_inbox* in, int fd);
bool crdi_outbox_send(crdi_outbox* out, int fd);
