// A network of the test kind, for the tests of everything that speaks DCP.
#pragma once
#include "shared/dcp.h"

/// A network in memory on a virtual clock: every packet that is sent gets a delay, may be lost,
/// doubled, reordered or damaged, from a seed. Several crd_dcp_net hang on one of them.
typedef struct testnet testnet; ///< opaque
typedef struct testnet_faults {
    double delay, jitter;            ///< s; uniform in delay .. delay + jitter
    double loss, duplicate, corrupt; ///< parts of the packets
    uint64_t seed;
    double start; ///< of the clock, s since 1970; default 0
} testnet_faults;

/// What became of the packets, streams included.
typedef struct testnet_counts {
    int64_t sent, delivered;
    int64_t lost, duplicated, corrupted; ///< datagrams
    int64_t nowhere;  ///< nobody listened where they arrived, or the connection was gone
    int64_t repeated; ///< transmissions that a stream had to do again
} testnet_counts;

/// Streams are reliable and in order: a loss costs them a round trip. Every packet draws its fate
/// from the seed and its own number, so that a change of one fault leaves the others as they were.
/// Sending allocates until there are as many packets as are ever on their way at once.
crd_status testnet_create(crd_context* ctx, const testnet_faults* faults, testnet** out);
void testnet_destroy(testnet* t);
/// A host, or another process on one: addresses may be shared, ports not. Nets and network may be
/// destroyed in any order. crd_dcp_net_wait lets the clock of all go on to the next arrival.
crd_status testnet_join(testnet* t, uint32_t ip, crd_dcp_net** out);
/// For packets that are sent from now on; seed and start stay. CRD_E_RANGE.
crd_status testnet_set(testnet* t, const testnet_faults* faults);
testnet_counts testnet_get_counts(const testnet* t);
/// The clock goes on to the next arrival, at most to `until`; the new time.
double testnet_advance(testnet* t, double until);
double testnet_now(const testnet* t);
/// `s` (borrowed, NULL: none any more) lives at `n`, a net of a test network: it gets what arrives
/// there and its time whenever the clock goes on, so that a master may wait for it on the same
/// clock. Its next event counts as an arrival for testnet_advance.
void testnet_attach(crd_dcp_net* n, crd_dcp_slave* s);
