// Emulated benches and the master of a session, on a virtual network and clock.
#pragma once
#include "cardan/master.h"
#include "check.h"
#include "shared/testbench_bench.h"
#include "testnet/testnet.h"
#include "unit/dcp/dcp_unit.h"

enum { MOST = 4 };

typedef struct place {
    check_allocator allocator, bench_allocator;
    crd_context *ctx, *bench_ctx;
    testnet* network;
    int count;
    crdi_testbench_kind kinds[MOST];
    crd_dcp_net* nets[MOST];
    crdi_testbench* benches[MOST];
    crd_system* sys;
    crd_master* m;
    void (*look)(struct place* p); // behind each step of the first bench's controller
    double seen[4];                // by it
    double soc;
    bool stop;
} place;

static place* the_place;

static inline crd_status open_net(crd_context* ctx, crd_dcp_net** out)
{
    const crd_status st = testnet_join(the_place->network, 0x7F000001, out);
    return st < 0 ? crdi_fail(ctx, st, "out of memory") : st;
}

// Without benches yet.
static inline void make_place(place* p)
{
    *p = (place){0};
    p->ctx = check_context(&p->allocator);
    p->bench_ctx = check_context(&p->bench_allocator);
    const testnet_faults faults = {.delay = 1e-3, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(p->bench_ctx, &faults, &p->network));
    the_place = p;
    crdi_session_open_net = open_net;
}

static inline void close_place(place* p)
{
    crd_master_destroy(p->m);
    crd_system_destroy(p->sys);
    for (int i = 0; i < p->count; i++) {
        testnet_attach(p->nets[i], NULL);
        crdi_testbench_destroy(p->benches[i]);
        crd_dcp_net_destroy(p->nets[i]);
    }
    testnet_destroy(p->network);
    crd_context_destroy(p->bench_ctx);
    crd_context_destroy(p->ctx);
    check_int(p->bench_allocator.live, 0);
    check_int(p->allocator.live, 0);
    crdi_session_open_net = crd_dcp_net_create;
    crdi_session_has_thread = true;
}
