// Inside the relay: a direction's chance (path.c), ports for data (map.c), what is on
// its way and who has asked (relay.c).
#pragma once
#include "shared/dcp.h"
#include "shared/dcptools_relay.h"

enum {
    CRDI_DCP_ASKED = 64,  // requests whose senders are remembered
    CRDI_DCP_CLIENTS = 8, // streams to one channel
};

// ---- one direction -----------------------------------------------------------------------------

typedef struct crdi_dcp_path_state {
    crdi_dcp_path path;
    uint64_t seed, number; // number: of packets so far
    bool bad;              // in a burst
    double z;              // of the last delay, standard normal
    double busy;           // until then the rate is used up
    double last;           // of datagrams that stay in order
    uint64_t newest;       // number of the newest datagram that has left
    crdi_dcp_path_counts counts;
} crdi_dcp_path_state;

// What becomes of a packet.
typedef struct crdi_dcp_fate {
    int copies;     // 0: lost, or no room in the queue
    double time[2]; // when they arrive
    bool corrupt;   // the first
    uint64_t noise; // for that
} crdi_dcp_fate;

void crdi_dcp_path_init(crdi_dcp_path_state* s, const crdi_dcp_path* p, uint64_t seed);
crd_status crdi_dcp_path_check(crd_context* ctx, const char* name, const crdi_dcp_path* p);
// A packet of `length` bytes that came at `now`; `since` is when the relay's first packet came.
// `trip`: s there and back, for streams.
crdi_dcp_fate crdi_dcp_path_pass(crdi_dcp_path_state* s, bool stream, size_t length, double now,
                                 double since, double trip);

// ---- the relay ---------------------------------------------------------------------------------

typedef enum crdi_dcp_side { CRDI_DCP_NEAR, CRDI_DCP_FAR } crdi_dcp_side;

typedef struct crdi_dcp_asked {
    crd_dcp_address client;
    uint64_t number; // of the relay's, when it came
    uint16_t seq;
    uint8_t type;
} crdi_dcp_asked;

typedef struct crdi_dcp_channel {
    crd_dcp_address at, to;               // where the relay listens, and the slave
    crd_dcp_address out;                  // UDP: the relay's own on the far side
    crdi_dcp_asked asked[CRDI_DCP_ASKED]; // newest at (asked_count - 1) % ...
    uint64_t asked_count;
    crd_dcp_address owner; // who has registered, or else asked last; port 0: nobody
    bool registered;
    crd_dcp_address clients[CRDI_DCP_CLIENTS]; // streams
    int client_count;
    bool far_open, far_seen; // the stream to the slave was opened, was established
    double connect;          // not before
    double used;             // time of the last packet
    double last[2];          // by side: newest arrival of a stream
    int flying[2];           // by side: packets on their way to there
} crdi_dcp_channel;

// A port for data.
typedef struct crdi_dcp_map {
    bool used, closing;
    crdi_dcp_side side; // where the relay listens; it sends on the other
    int channel;
    crd_dcp_address at, to;
    crd_dcp_address named; // by the master
    uint64_t number;       // of the relay's, when it was last asked for
    double last;           // newest arrival of a stream
    double connect;        // not before
    int flying;
} crdi_dcp_map;

typedef struct crdi_dcp_flight {
    double time;
    uint64_t number;          // over both directions: equal times in the order of coming
    uint64_t place;           // in its direction
    crd_dcp_address from, to; // from: a local address, or port 0
    uint32_t length, next;    // next: the block behind the first, or free
    uint8_t side;             // to where
    int16_t channel, map;     // map -1: control
} crdi_dcp_flight;

struct crdi_dcp_relay {
    crd_context* ctx;
    crd_dcp_net* net[2];
    crdi_dcp_relay_options opt;
    crdi_dcp_path_state path[2]; // by the side that they lead to
    double since;                // of the first packet; NaN
    double look;                 // next time to look after channels
    uint64_t number;
    crdi_dcp_channel* channels;
    int channel_count;
    crdi_dcp_map* maps;
    int map_count; // used ones are below
    crdi_dcp_relay_counts counts;
    // What is on its way: chains of blocks; a packet has the number of its first.
    uint8_t* blocks;
    crdi_dcp_flight* flights; // (block_count)
    uint32_t* heap;           // (block_count) by time and number
    uint32_t block_count, fresh, free, heap_count;
    uint8_t* buffer; // one PDU
    size_t buffer_room;
};

// Network information on its way to a slave: a port is opened, and it is rewritten.
enum { CRDI_DCP_NETWORK_LENGTH = 13 }; // over UDP and TCP
void crdi_dcp_map_request(crdi_dcp_relay* r, int channel, const crdi_dcp_pdu* p,
                          uint8_t bytes[CRDI_DCP_NETWORK_LENGTH]);
uint32_t crdi_dcp_near_ip(const crdi_dcp_relay* r, const crdi_dcp_channel* c);
// The port for data that listens there, NULL.
crdi_dcp_map* crdi_dcp_map_find(crdi_dcp_relay* r, crdi_dcp_side side, const crd_dcp_address* at);
// Closes the ports of a channel that were asked for before `number`; those that packets are on
// their way from when these have left.
void crdi_dcp_map_release(crdi_dcp_relay* r, int channel, uint64_t number);
bool crdi_dcp_map_any(const crdi_dcp_relay* r);
void crdi_dcp_map_landed(crdi_dcp_relay* r, crdi_dcp_map* m);
