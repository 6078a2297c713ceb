// Sessions, stand-ins and units of datagrams on a network in memory with a virtual clock.
#pragma once
#include <math.h>

#include "check.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"
#include "unit/standby/standby.h"
#include "unit/wire/wire_unit.h"

static const uint32_t HOST = 0x7F000001;
static testnet* virtual_network; // of the test that runs

static inline crd_status virtual_net(crd_context* ctx, crd_dcp_net** out)
{
    (void)ctx;
    return testnet_join(virtual_network, HOST, out);
}

static inline int64_t virtual_now(void)
{
    return llround(1e9 * (testnet_now(virtual_network) - 1794710000));
}

static inline void virtual_wait(crdi_standby* u, int64_t until)
{
    (void)u;
    const double end = 1794710000 + 1e-9 * (double)until;
    while (testnet_now(virtual_network) < end) {
        (void)testnet_advance(virtual_network, end);
    }
}

// A delay of 1 ms and no losses; all that opens nets or looks at clocks has these.
static inline testnet* virtual_begin(crd_context* ctx)
{
    const testnet_faults none = {.delay = 1e-3, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(ctx, &none, &virtual_network));
    crdi_session_open_net = crdi_wire_open_net = virtual_net;
    crdi_session_now = virtual_now;
    crdi_standby_wait = virtual_wait;
    crdi_standby_has_threads = false;
    return virtual_network;
}

static inline void virtual_end(void)
{
    testnet_destroy(virtual_network);
    crdi_session_open_net = crdi_wire_open_net = crd_dcp_net_create;
    crdi_session_now = crdi_now_ns;
}
