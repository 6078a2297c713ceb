// What a network is to the common interface: a table of functions and what all of them have.
#pragma once
#include "shared/dcp.h"

#include <stdatomic.h>

#define CRDI_DCP_RETRY 0.1 // s between two attempts to connect to the same peer

// Functions get arguments that have been looked at: a transport that is UDP, TCP or CAN, lengths
// within the limits. What a network around another has no function for is done by the inner one.
typedef struct crdi_dcp_net_ops {
    void (*destroy)(crd_dcp_net* n);
    crd_status (*listen)(crd_dcp_net* n, crd_dcp_address* at);
    crd_status (*connect)(crd_dcp_net* n, const crd_dcp_address* to);
    bool (*connected)(const crd_dcp_net* n, const crd_dcp_address* to);
    bool (*local)(const crd_dcp_net* n, int index, crd_dcp_address* out);
    void (*set_control)(crd_dcp_net* n);
    // `from` gets the address it leaves from; if it has a port, it is the local address that is
    // wanted
    bool (*send)(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                 crd_dcp_address* from);
    bool (*receive)(crd_dcp_net* n, crd_dcp_packet* out);
    void (*wait)(crd_dcp_net* n, double seconds);
    void (*close)(crd_dcp_net* n, const crd_dcp_address* at);
    double (*now)(const crd_dcp_net* n);
    int (*descriptor)(const crd_dcp_net* n); // NULL: none
    crd_status (*connect_from)(crd_dcp_net* n, uint32_t ip, const crd_dcp_address* to); // NULL: as
                                                                                        // connect
    void (*hold)(crd_dcp_net* n, bool on); // NULL: everything leaves at once
    crd_status (*set_limits)(crd_dcp_net* n, const crd_dcp_net_limits* limits); // NULL: kept only
    int (*socket_to)(const crd_dcp_net* n, const crd_dcp_address* to);          // NULL: none
    crd_status (*adopt)(crd_dcp_net* n, int fd, const crd_dcp_address* to);     // NULL: it cannot
    uint32_t (*source_ip)(const crd_dcp_net* n, const crd_dcp_address* to); // NULL: of the first
                                                                            // that listens
    // What travels under which data_id, where the network has a say in that; NULL: it has none, and
    // the slaves are told by CFG PDUs
    crd_status (*lay_out)(const crd_dcp_net* n, crd_dcp_master* m, int peer);
    bool can;            // a bus of CAN has its addresses
    bool captures_inner; // what travels is the inner one's
} crdi_dcp_net_ops;

// First member of every network's own structure.
struct crd_dcp_net {
    const crdi_dcp_net_ops* ops;
    crd_context* ctx;
    crd_dcp_net_limits limits;
    crd_dcp_net_counts counts;
    crd_dcp_capture* capture; // borrowed
    crdi_dcp_framing framing; // length NULL: by prefixes
    crd_dcp_net* inner;       // of a network around another, NULL
    int messages;             // of lay_out, at most
    const _Atomic int* fence; // not 0: nothing is sent any more; NULL
};

// Streams are written as they are, without prefixes.
void crdi_dcp_capture_set_raw(crd_dcp_capture* c);
// A frame of CAN as captures have it; ns since 1970.
void crdi_dcp_capture_can(crd_dcp_capture* c, int64_t ns, const uint8_t* bytes, size_t length);
void crdi_dcp_net_init(crd_dcp_net* n, crd_context* ctx, const crdi_dcp_net_ops* ops);
