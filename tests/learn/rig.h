// An element with a network that learns a signal it gets late, for the tests of client and server.
#pragma once
#include "cardan/learn.h"
#include "check.h"
#include "learn/message.h"

#include <poll.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

enum { RIG_K = 3 };
static const double RIG_STEP = 0.01;

typedef struct rig {
    crd_context* ctx;
    crd_network start; // of the element
    crd_coupling* element;
    crd_learn_client* client;
    int64_t n;  // macro steps done
    double now; // the client's clock, s
} rig;

static inline double rig_signal(int64_t n)
{
    const double t = RIG_STEP * (double)n;
    return sin(9.0 * t) + 0.5 * sin(23.0 * t + 1.0);
}

static inline void rig_init(rig* r, crd_context* ctx, const char* address)
{
    crd_linear zoh = {0};
    crd_design design = crd_design_defaults(CRD_METHOD_EROS);
    *r = (rig){.ctx = ctx};
    check_ok(crd_linear_make(ctx, &design, RIG_K, &zoh));
    check_ok(crd_network_morph(ctx, &zoh, 0.01, &r->start));
    crd_linear_clear(ctx, &zoh);
    crd_coupling_options opt = crd_coupling_defaults();
    opt.step = RIG_STEP;
    opt.algorithm = CRD_ALGORITHM_NETWORK;
    opt.network = &r->start;
    check_ok(crd_coupling_create(ctx, &opt, &r->element));
    check_ok(crd_learn_client_create(ctx, address, "rig.torque", RIG_STEP, r->element, &r->client));
}

static inline void rig_clear(rig* r)
{
    crd_learn_client_destroy(r->client);
    crd_coupling_destroy(r->element);
    crd_network_clear(r->ctx, &r->start);
}

// One macro step: the sample of RIG_K steps ago arrives. Returns the element's error.
static inline double rig_step(rig* r)
{
    const int64_t late = r->n - RIG_K;
    const double stamp = RIG_STEP * (double)late;
    const double sample = rig_signal(late);
    crd_coupling_push(r->element, sample, stamp, late >= 0 ? late : -1);
    const double guess = crd_coupling_eval(r->element, RIG_STEP * (double)r->n);
    crd_learn_client_step(r->client, sample, stamp, r->now);
    check(isfinite(guess));
    return guess - rig_signal(r->n++);
}

// ---- the other end, by script ------------------------------------------------------------------

typedef struct peer {
    int listening, fd;
    uint8_t bytes[1 << 16], out_bytes[1 << 16];
    double weights[CRDI_WEIGHTS_MAX];
    crdi_inbox in;
    crdi_message message;
} peer;

static inline void peer_listen(peer* p, crd_context* ctx, const char* address)
{
    crdi_address a;
    *p = (peer){.fd = -1};
    check_ok(crdi_address_parse(ctx, address, &a));
    p->listening = crdi_socket_open(a.socket.ss_family);
    if (a.socket.ss_family == AF_UNIX) { unlink(((struct sockaddr_un*)&a.socket)->sun_path); }
    check(bind(p->listening, (struct sockaddr*)&a.socket, a.length) == 0);
    check(listen(p->listening, 4) == 0);
}

static inline void peer_accept(peer* p)
{
    p->fd = accept(p->listening, NULL, NULL);
    check(p->fd >= 0);
    crdi_socket_settle(p->fd, AF_UNIX);
    p->in = (crdi_inbox){.bytes = p->bytes, .capacity = sizeof p->bytes};
    p->message = (crdi_message){.weights = p->weights, .weight_capacity = CRDI_WEIGHTS_MAX};
}

static inline void peer_close(peer* p)
{
    if (p->fd >= 0) { close(p->fd); }
    p->fd = -1;
}

static inline void peer_stop(peer* p)
{
    peer_close(p);
    close(p->listening);
    p->listening = -1;
}

// The next message that the element has sent, false: none yet.
static inline bool peer_hear(peer* p)
{
    const char* wrong = NULL;
    if (crdi_inbox_next(&p->in, &p->message, &wrong)) { return true; }
    check(!wrong);
    (void)crdi_inbox_receive(&p->in, p->fd);
    const bool got = crdi_inbox_next(&p->in, &p->message, &wrong);
    check(!wrong);
    return got;
}

// The next message of this type; others pass.
static inline bool peer_hear_type(peer* p, crdi_message_type type)
{
    while (peer_hear(p)) {
        if (p->message.type == type) { return true; }
    }
    return false;
}

static inline size_t peer_encode_network(peer* p, const crd_network* n, int64_t generation)
{
    const crdi_message m = {.type = CRDI_NETWORK, .generation = generation, .network = *n};
    return crdi_message_encode(&m, p->out_bytes, sizeof p->out_bytes);
}

static inline void peer_say(peer* p, const crdi_message* m)
{
    const size_t n = crdi_message_encode(m, p->out_bytes, sizeof p->out_bytes);
    check(n > 0 && send(p->fd, p->out_bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static inline void peer_send_network(peer* p, const crd_network* n, int64_t generation)
{
    const size_t bytes = peer_encode_network(p, n, generation);
    check(bytes > 0 && send(p->fd, p->out_bytes, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}
