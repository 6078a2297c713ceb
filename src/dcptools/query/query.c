// What scan, ping and conformance share: sending and waiting.
#include "dcptools/query/query.h"

#include <math.h>

static const double longest = 0.01; // s between two looks at what happens outside

bool crdi_dcp_query_pause(crd_dcp_net* net, double until, bool (*cancelled)(void* user), void* user)
{
    if (cancelled && cancelled(user)) { return false; }
    const double left = until - crd_dcp_net_now(net);
    if (left > 0) { crd_dcp_net_wait(net, fmin(left, longest)); }
    return true;
}

bool crdi_dcp_query_send(crd_dcp_net* net, const crd_dcp_address* to, const crdi_dcp_pdu* p)
{
    uint8_t bytes[256];
    const size_t n = crdi_dcp_encode(p, bytes, sizeof bytes);
    return n > 0 && n <= sizeof bytes && crdi_dcp_net_send(net, to, bytes, n);
}

bool crdi_dcp_query_connect(crd_dcp_net* net, const crd_dcp_address* to, double until,
                            bool (*cancelled)(void* user), void* user)
{
    if (to->transport != CRD_DCP_TCP || crdi_dcp_net_connected(net, to)) { return true; }
    while (crdi_dcp_net_connect(net, to) == CRD_OK) {
        crd_dcp_packet ignored;
        while (crd_dcp_net_receive(net, &ignored)) {} // which also sees connections come about
        if (crdi_dcp_net_connected(net, to)) { return true; }
        if (crd_dcp_net_now(net) >= until || !crdi_dcp_query_pause(net, until, cancelled, user)) {
            return false;
        }
    }
    return false;
}
