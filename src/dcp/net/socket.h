// Real sockets between their files: socket.c has the list of them, what waits and what listens;
// stream.c and datagram.c have the two kinds of transport.
#pragma once
#include "dcp/net/net.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
    PREFIX = 4,
    EVENTS = 64,             // taken from the system at once
    BURST = 32,              // PDUs of one socket before the others have their turn
    MOST_DATAGRAM = 65536,   // room for any
    BATCH = 16,              // datagrams that are read or written at once
    NOTES = 96,              // bytes of what the system says beside one
    LONGEST_US = 50000,      // that a lone socket is waited for at once
    RECEIVE_BUFFER = 4 << 20 // asked for; the system may give less
};

typedef enum crdi_endpoint_kind { DATAGRAM, LISTENER, STREAM } crdi_endpoint_kind;
typedef enum crdi_endpoint_phase {
    OPEN,
    OPENING,
    BROKEN
} crdi_endpoint_phase; // streams that we opened may be the last two

typedef struct crdi_endpoint {
    int fd; // -1 while BROKEN
    crdi_endpoint_kind kind;
    crdi_endpoint_phase phase;
    bool kept;     // control
    bool outgoing; // a stream that we opened: stays when it breaks, and is opened again
    bool ready;    // stands in the queue
    bool watched;  // epoll knows it; see adjust
    bool writing;  // the system tells when there is room
    crd_dcp_address local, peer;
    uint32_t source; // of a stream that we opened: the own address that was wanted, 0: any
    uint32_t max_pdu;
    uint8_t *in, *out; // of streams: bytes [begin, end) of `room`
    size_t in_begin, in_end, in_room;
    size_t out_begin, out_end, out_room;
    int64_t pdus;     // received
    double retry;     // BROKEN: not before
    uint32_t overrun; // the system's count when it last told
    bool quick;       // of streams: acknowledge at once, the peer waits for that
    bool replied;     // of streams: something was sent since bytes came last
    double arrived;   // of streams: when that was
    struct crdi_endpoint *previous, *next;
    struct crdi_endpoint* after; // in the queue
    bool held;                   // stands in the list of those that wait for flush
    struct crdi_endpoint* held_after;
} crdi_endpoint;

// Datagrams of one socket that were read together.
typedef struct crdi_inbox {
    crdi_endpoint* of;
    int next, count;
    double now;      // when they were read, and the same
    int64_t real_ns; // on the system's clock
    uint8_t* bytes;  // (BATCH * MOST_DATAGRAM)
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_in from[BATCH];
    _Alignas(struct cmsghdr) uint8_t notes[BATCH][NOTES];
} crdi_inbox;

// Datagrams that leave one socket together.
typedef struct crdi_outbox {
    crdi_endpoint* of;
    int count;
    size_t used;
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_in to[BATCH];
    uint8_t bytes[BATCH * 1024];
} crdi_outbox;

typedef struct crdi_socket_net {
    crd_dcp_net base;
    int epoll;
    int spare;                   // given up for a moment when descriptors have run out
    crdi_endpoint *first, *last; // in the order of opening
    crdi_endpoint *head, *tail;  // queue of those that may have something
    int burst;                   // PDUs from the head so far
    int streams;
    bool changed;      // there are other endpoints than adjust has seen
    bool shown;        // somebody waits for the descriptor of epoll
    int64_t offset_ns; // UNIX time - monotonic time
    uint8_t* packet;   // of the last receive from a stream
    size_t packet_room;
    int held;                   // what is sent waits for the end of so many holds
    crdi_endpoint* held_stream; // the first that has something to be flushed
    double looked;              // when the system was last asked and everything there was taken
    crdi_inbox in;
    crdi_outbox out;
} crdi_socket_net;

double crdi_net_now(const crd_dcp_net* base);
struct sockaddr_in crdi_net_to_system(const crd_dcp_address* a);
crd_dcp_address crdi_net_from_system(const struct sockaddr_in* s, uint8_t transport);
void crdi_net_local_of(int fd, crd_dcp_address* out);
void crdi_net_switch_on(int fd, int level, int option);

// socket.c
void crdi_net_queue_insert(crdi_socket_net* n, crdi_endpoint* before, crdi_endpoint* e);
void crdi_net_queue_push(crdi_socket_net* n, crdi_endpoint* e);
void crdi_net_queue_remove(crdi_socket_net* n, crdi_endpoint* e);
crdi_endpoint* crdi_net_endpoint_new(crdi_socket_net* n, crdi_endpoint_kind k);
void crdi_net_endpoint_shut(crdi_socket_net* n, crdi_endpoint* e);
void crdi_net_endpoint_free(crdi_socket_net* n, crdi_endpoint* e);
bool crdi_net_watch(crdi_socket_net* n, crdi_endpoint* e, int operation);
void crdi_net_want_room(crdi_socket_net* n, crdi_endpoint* e, bool want);
crd_status crdi_net_listen(crd_dcp_net* base, crd_dcp_address* at);

// stream.c
void crdi_net_stream_lose(crdi_socket_net* n, crdi_endpoint* e);
/// Begins to connect. 0, or the system's number of the error.
int crdi_net_stream_open(crdi_socket_net* n, crdi_endpoint* e);
/// Writes what waits. false: the stream is lost.
bool crdi_net_stream_flush(crdi_socket_net* n, crdi_endpoint* e);
/// There is room, or connecting has come to an end.
bool crdi_net_stream_writable(crdi_socket_net* n, crdi_endpoint* e);
bool crdi_net_stream_send(crdi_socket_net* n, crdi_endpoint* e, const uint8_t* bytes,
                          size_t length);
/// The next PDU; reads where there is none. The stream may be gone behind false.
bool crdi_net_stream_take(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out);

// datagram.c
void crdi_net_flush_datagrams(crdi_socket_net* n);
bool crdi_net_datagram_send(crdi_socket_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                            size_t length, crd_dcp_address* from);
void crdi_net_inbox_init(crdi_inbox* in);
void crdi_net_inbox_fill(crdi_socket_net* n, crdi_endpoint* e, int flags);
void crdi_net_inbox_take(crdi_socket_net* n, crd_dcp_packet* out);
bool crdi_net_datagram_take(crdi_socket_net* n, crdi_endpoint* e, crd_dcp_packet* out);
