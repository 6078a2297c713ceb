// Emulated benches and the master of a session, on a virtual network and clock.
#pragma once
#include <stdio.h>

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

// Without benches yet. The clock goes on where the test says: a session has no thread of its own.
static inline void make_place(place* p)
{
    *p = (place){0};
    p->ctx = check_context(&p->allocator);
    p->bench_ctx = check_context(&p->bench_allocator);
    const testnet_faults faults = {.delay = 1e-3, .seed = 1, .start = 1794710000.25};
    check_ok(testnet_create(p->bench_ctx, &faults, &p->network));
    the_place = p;
    crdi_session_open_net = open_net;
    crdi_session_has_thread = false;
}

// Bench i listens at `o->address`, with the description in `file` of the build folder.
static inline void start_bench(place* p, int i, const crdi_testbench_options* o, const char* file)
{
    static const uint32_t ip = 0x7F000000, mask = 0xFF000000;
    char path[512];
    p->kinds[i] = o->kind;
    crd_dcp_address at = o->address;
    check_ok(testnet_join(p->network, 0x7F000001, &p->nets[i]));
    check_ok(crd_dcp_net_listen(p->nets[i], &at));
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    if (crdi_testbench_create(p->bench_ctx, o, &p->benches[i]) < 0) {
        fail_msg("%s", crd_error_text(p->bench_ctx));
    }
    const crd_dcp_link link = crd_dcp_net_link(p->nets[i]);
    check_ok(crdi_testbench_start(p->benches[i], &link, &opt));
    testnet_attach(p->nets[i], crdi_testbench_slave(p->benches[i]));
    crd_text text;
    crd_text_init(&text, p->bench_ctx);
    check_ok(crd_dcp_write(crdi_testbench_description(p->benches[i]), &text));
    snprintf(path, sizeof path, TEST_BUILD_DIR "/%s", file);
    check_ok(crdi_file_write(p->bench_ctx, path, &text));
    crd_text_clear(&text);
}

// Its process was killed: nobody listens there any more.
static inline void kill_bench(place* p, int i)
{
    testnet_attach(p->nets[i], NULL);
    crdi_testbench_destroy(p->benches[i]);
    crd_dcp_net_destroy(p->nets[i]);
    p->benches[i] = NULL;
    p->nets[i] = NULL;
}

// Time passes, and nobody drives.
static inline void pass(place* p, double seconds)
{
    const double until = testnet_now(p->network) + seconds;
    while (testnet_now(p->network) < until) {
        testnet_advance(p->network, until);
    }
}

static inline void close_place(place* p)
{
    crd_master_destroy(p->m);
    crd_system_destroy(p->sys);
    for (int i = 0; i < p->count; i++) {
        if (p->nets[i]) { kill_bench(p, i); }
    }
    testnet_destroy(p->network);
    crd_context_destroy(p->bench_ctx);
    crd_context_destroy(p->ctx);
    check_int(p->bench_allocator.live, 0);
    check_int(p->allocator.live, 0);
    crdi_session_open_net = crd_dcp_net_create;
    crdi_session_has_thread = true;
}
