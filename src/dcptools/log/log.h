// Inside the log: frames (frame.c), files (file.c), what CFG PDUs said (log.c).
#pragma once
#include "shared/base.h"
#include "shared/dcp.h"
#include "shared/dcptools_log.h"

enum {
    CRDI_LOG_KNOWN = 4096,       // ends; a power of two
    CRDI_LOG_FLOWS = 256,        // directions of streams
    CRDI_LOG_EARLY = 32,         // segments of one that came before their turn
    CRDI_LOG_MOST_PDU = 1 << 20, // bytes in a stream
    CRDI_LOG_SLAVES = 512,
    CRDI_LOG_GROUPS = 4096,
    CRDI_LOG_ITEMS = 4096, // variables of a group
    CRDI_LOG_TARGETS = 8,
    CRDI_LOG_SIZES = 64, // structural parameters of a slave
};

typedef struct crdi_log_segment {
    uint32_t seq;
    size_t length, capacity;
    uint8_t* bytes;
} crdi_log_segment;

// One direction of a stream.
typedef struct crdi_log_flow {
    bool used, synced, foreign; // foreign: not DCP
    crd_dcp_address from, to;
    uint32_t next;   // sequence number of the next byte
    uint8_t* buffer; // a PDU that is not complete
    size_t length, capacity;
    crdi_log_segment early[CRDI_LOG_EARLY];
    int early_count;
    uint64_t age;
} crdi_log_flow;

typedef struct crdi_log_item {
    const crd_dcp_variable* variable;
    uint8_t type; // on the wire
} crdi_log_item;

typedef enum crdi_log_kind { CRDI_LOG_OUT, CRDI_LOG_IN, CRDI_LOG_PARAM } crdi_log_kind;

typedef struct crdi_log_group {
    int slave;
    crdi_log_kind kind;
    uint16_t id;
    crdi_log_item* items; // by pos; variable NULL: not said
    size_t count, capacity;
    crd_dcp_address ends[CRDI_LOG_TARGETS]; // targets, or where it arrives
    int end_count;
} crdi_log_group;

typedef struct crdi_log_slave {
    crd_dcp_address at;
    const crd_dcp_description* d; // NULL: none
    uint64_t size_vr[CRDI_LOG_SIZES], size[CRDI_LOG_SIZES];
    int size_count;
} crdi_log_slave;

struct crdi_dcp_log {
    crd_context* ctx;
    crdi_dcp_log_options opt;
    uint16_t* ports;
    const crd_dcp_description** descriptions;
    crdi_dcp_log_counts counts;
    crd_dcp_address known[CRDI_LOG_KNOWN]; // hashed; port 0: free
    int known_count;
    crdi_log_flow* flows; // at most CRDI_LOG_FLOWS
    int flow_count;
    size_t flow_room;
    uint64_t age;
    crdi_log_slave* slaves; // at most CRDI_LOG_SLAVES
    int slave_count;
    size_t slave_room;
    crdi_log_group* groups;
    size_t group_count, group_room;
    crd_dcp_can* can; // NULL: frames of CAN are not known
    crd_text text;    // of the last value
    bool enough;
};

void crdi_log_know(crdi_dcp_log* l, const crd_dcp_address* a);
bool crdi_log_is_known(const crdi_dcp_log* l, const crd_dcp_address* a);
// What the PDU tells about slaves and groups.
void crdi_log_learn(crdi_dcp_log* l, const crdi_dcp_seen* s);
