// What scan, ping and conformance share.
#pragma once
#include "shared/dcp.h"
#include "shared/dcptools_query.h"

// Where sequence ids of ours begin while we are nobody's master: far from where masters are that
// have begun at 0, as most do. A slave that is registered would take the right one for its
// master's.
enum { CRDI_DCP_STRANGER_SEQ = 0xCA00 };

// Waits for a packet, a while at most: timers of a slave in the same process, and who wants to stop
// us, are asked meanwhile. false: cancelled.
bool crdi_dcp_query_pause(crd_dcp_net* net, double until, bool (*cancelled)(void* user),
                          void* user);
// Encodes and sends. false: it was dropped.
bool crdi_dcp_query_send(crd_dcp_net* net, const crd_dcp_address* to, const crdi_dcp_pdu* p);
// A TCP peer is connected to, up to `until`; true at once for UDP.
bool crdi_dcp_query_connect(crd_dcp_net* net, const crd_dcp_address* to, double until,
                            bool (*cancelled)(void* user), void* user);
