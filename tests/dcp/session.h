// A master and some motors on a test network, all on one virtual clock.
#pragma once
#include "rig.h"

#include "shared/dcp.h"
#include "testnet/testnet.h"

enum { SESSION_MASTER = 0x0A000001, SESSION_SLAVE = 0x0A000002, SESSION_SITES = 32 };

typedef struct session {
    check_allocator allocator, network_allocator;
    crd_context *ctx, *network; // of the master, of the test network
    testnet* t;
    crd_dcp_net* net; // of the master
    crd_dcp_master* m;
    rig* r[SESSION_SITES];
    crd_dcp_net* nets[SESSION_SITES];
    crd_dcp_address control[SESSION_SITES];
    crd_dcp_slave_spec spec[SESSION_SITES];
    int count;
    bool any_port; // slaves that are started from then on
    // what it was told
    int notices[5];
    char log[256], error[512], repair[512];
    int cancel_after; // so many times asked, 0: never
} session;

static inline void session_notice(void* user, const crd_dcp_notice* n)
{
    session* s = user;
    check(n->kind <= CRD_DCP_NOTICE_ERROR && n->slave >= 0 && n->slave < s->count);
    check(!strchr(n->text, '\n'));
    s->notices[n->kind]++;
    if (n->kind == CRD_DCP_NOTICE_LOG) { snprintf(s->log, sizeof s->log, "%s", n->text); }
    if (n->kind == CRD_DCP_NOTICE_ERROR) { snprintf(s->error, sizeof s->error, "%s", n->text); }
    if (n->kind == CRD_DCP_NOTICE_REPAIR) { snprintf(s->repair, sizeof s->repair, "%s", n->text); }
}

/// The slave of a site as if its process had been started anew.
static inline void session_start_slave(session* s, int i)
{
    rig* r = s->r[i];
    static const uint32_t ip = 0x0A000000, mask = 0xFF000000;
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    opt.any_port = s->any_port;
    testnet_attach(s->nets[i], NULL);
    crd_dcp_slave_destroy(r->slave);
    (void)rig_enter(r, CRD_DCP_CONFIGURATION, 0);
    r->entered_count = r->step_count = 0;
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = crd_dcp_net_link(s->nets[i]);
    check_ok(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, &opt, &r->slave));
    testnet_attach(s->nets[i], r->slave);
}

/// `count` motors, slave i at 10.0.0.(2 + i):8080, in `mode`.
static inline void session_open(session* s, const testnet_faults* faults, int count,
                                uint8_t transport, crd_dcp_op_mode mode)
{
    static const char* const names[] = {"motor", "gear", "load", "battery"};
    *s = (session){.count = count};
    s->ctx = check_context(&s->allocator);
    s->network = check_context(&s->network_allocator);
    const testnet_faults none = {.delay = 0.001, .start = 1000.25};
    check_ok(testnet_create(s->network, faults ? faults : &none, &s->t));
    check_ok(testnet_join(s->t, SESSION_MASTER, &s->net));
    for (int i = 0; i < count; i++) {
        s->control[i] = (crd_dcp_address){(uint32_t)(SESSION_SLAVE + i), 8080, transport};
        s->r[i] = rig_create(NULL, NULL);
        check_ok(testnet_join(s->t, s->control[i].ip, &s->nets[i]));
        check_ok(crd_dcp_net_listen(s->nets[i], &s->control[i]));
        session_start_slave(s, i);
        s->spec[i] = (crd_dcp_slave_spec){.name = names[i % 4],
                                          .description = &s->r[i]->d,
                                          .control = s->control[i],
                                          .mode = mode,
                                          .numerator = 1,
                                          .denominator = 100};
    }
}

/// The master with all slaves added; `opt` NULL: defaults.
static inline void session_master(session* s, const crd_dcp_master_options* opt)
{
    crd_dcp_master_options o = opt ? *opt : crd_dcp_master_defaults();
    o.notice = session_notice;
    o.user = s;
    check_ok(crd_dcp_master_create(s->ctx, s->net, &o, &s->m));
    for (int i = 0; i < s->count; i++) {
        int index = -1;
        check_ok(crd_dcp_master_add(s->m, &s->spec[i], &index));
        check_int(index, i);
    }
}

static inline double* session_real(session* s, int slave, int variable)
{
    return crd_dcp_master_slot(s->m, slave, variable)->real;
}

static inline int64_t* session_integer(session* s, int slave, int variable)
{
    return crd_dcp_master_slot(s->m, slave, variable)->integer;
}

static inline void session_text(session* s, int slave, int variable, const char* text)
{
    crd_dcp_slot* v = crd_dcp_master_slot(s->m, slave, variable);
    *v->byte_count = (uint32_t)strlen(text);
    memcpy(v->bytes, text, strlen(text));
}

static inline crd_dcp_state session_state(const session* s, int slave)
{
    return crd_dcp_slave_state(s->r[slave]->slave);
}

#define session_do(s, expr)                                                                        \
    do {                                                                                           \
        const crd_status session_st = (expr);                                                      \
        if (session_st != CRD_OK) {                                                                \
            fail_msg("%s:%d: %s: %s: %s", __FILE__, __LINE__, #expr, crd_status_name(session_st),  \
                     crd_error_text((s)->ctx));                                                    \
        }                                                                                          \
    } while (0)

static inline void session_close(session* s)
{
    crd_dcp_master_destroy(s->m);
    for (int i = 0; i < s->count; i++) {
        testnet_attach(s->nets[i], NULL);
        rig_destroy(s->r[i]);
        crd_dcp_net_destroy(s->nets[i]);
    }
    crd_dcp_net_destroy(s->net);
    testnet_destroy(s->t);
    crd_context_destroy(s->ctx);
    crd_context_destroy(s->network);
    check_int(s->allocator.live, 0);
    check_int(s->network_allocator.live, 0);
}
