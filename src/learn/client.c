// An element's line to the learning server. All of it happens inside the step and none of it waits:
// sockets do not block, buffers are fixed, and what does not fit is dropped and counted.
#define _POSIX_C_SOURCE 200809L
#include "cardan/learn.h"
#include "learn/message.h"
#include "shared/base.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIAL = 500,       // samples that a new network has to prove itself
    TRIAL_SLACK = 256, // its last errors are known later, by the latency
    BATCHES = 128,     // sample messages that the buffer holds
    BATCH_BYTES = CRDI_MESSAGE_HEADER + 10 + 10 * CRDI_BATCH,
    SEND_EVERY = 32,       // samples of a message
    SHORT_MESSAGES = 1024, // bytes that samples leave to outcomes
    LATE = 1000,           // macro steps; time that goes back further begins anew
};

static const double FIRST_PAUSE = 1, LONGEST_PAUSE = 30; // s between attempts
static const double PATIENCE = 10;                       // s for a connection to come about

struct crd_learn_client {
    crd_context* ctx;
    crd_coupling* element; // borrowed
    double step;
    crdi_address address;
    int fd; // -1: none
    crd_learn_link link;
    double pause, try_at, since; // by the caller's clock; `since` of the connection

    crdi_message batch; // SAMPLES that is being filled
    bool on_grid;       // a time stamp has set the origin
    double origin;      // time of sequence 0
    int64_t newest;     // sequence of the last sample

    crdi_message hello; // also the name
    size_t hello_bytes;
    crdi_message received;
    crdi_inbox in;
    crdi_outbox out;
    int64_t queued; // samples in `out`
    uint8_t* memory;
    double* weights;

    int64_t generation;       // of the network on trial, 0: none, or of another connection
    int trial_left;           // samples
    crd_coupling_counts seen; // of the element
    crd_learn_client_counts counts;
};

// ---- the connection ----------------------------------------------------------------------------

static void hang_up(crd_learn_client* c, double now)
{
    if (c->fd >= 0) { close(c->fd); }
    c->fd = -1;
    // A line that held for a while was a good one: its loss is news, and the next is near.
    if (c->link == CRD_LEARN_ONLINE && now - c->since > PATIENCE) { c->pause = FIRST_PAUSE; }
    c->link = CRD_LEARN_OFFLINE;
    c->try_at = now + c->pause;
    c->pause = fmin(2 * c->pause, LONGEST_PAUSE);
    c->counts.dropped += c->queued + c->batch.count;
    c->queued = 0;
    c->batch.count = 0;
    c->generation = 0;
    c->trial_left = 0;
    c->in.head = c->in.tail = c->in.skip = 0;
    c->out.head = c->out.tail = 0;
}

static void queue_message(crd_learn_client* c, const crdi_message* m, double now)
{
    // Samples leave room for the rest: a server that makes this fail does not read.
    if (!crdi_outbox_put(&c->out, m)) { hang_up(c, now); }
}

static void say_hello(crd_learn_client* c, double now)
{
    c->hello.network = *crd_coupling_get_network(c->element);
    queue_message(c, &c->hello, now);
}

static void say_outcome(crd_learn_client* c, crdi_outcome outcome, int64_t generation, double now)
{
    crdi_message m = {.type = CRDI_OUTCOME, .generation = generation, .outcome = (uint8_t)outcome};
    queue_message(c, &m, now);
}

static void answered(crd_learn_client* c, double now)
{
    c->link = CRD_LEARN_ONLINE;
    c->since = now;
    c->counts.connects++;
    say_hello(c, now);
}

static void client_call(crd_learn_client* c, double now)
{
    const struct sockaddr* address = (const struct sockaddr*)&c->address.socket;
    c->fd = crdi_socket_open(address->sa_family);
    c->since = now;
    if (c->fd < 0) {
        hang_up(c, now);
    } else if (connect(c->fd, address, c->address.length) == 0) {
        answered(c, now);
    } else if (errno == EINPROGRESS || errno == EINTR) {
        c->link = CRD_LEARN_CONNECTING;
    } else {
        hang_up(c, now);
    }
}

static void await_answer(crd_learn_client* c, double now)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&p, 1, 0) > 0) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
            answered(c, now);
        } else {
            hang_up(c, now);
        }
    } else if (!(now - c->since < PATIENCE)) {
        hang_up(c, now);
    }
}

// ---- samples -----------------------------------------------------------------------------------

static void queue_batch(crd_learn_client* c)
{
    const int count = c->batch.count;
    if (crdi_outbox_room(&c->out) >= BATCH_BYTES + c->hello_bytes + SHORT_MESSAGES &&
        crdi_outbox_put(&c->out, &c->batch)) {
        c->queued += count;
    } else {
        c->counts.dropped += count;
    }
    c->batch.count = 0;
}

// The number of a sample on the grid of macro steps, by its time stamp if it has one.
static int64_t sequence_of(crd_learn_client* c, double stamp)
{
    if (!(fabs(stamp / c->step) < 1e15)) { return c->newest + 1; }
    double n = round((stamp - c->origin) / c->step);
    if (!c->on_grid || n < (double)(c->newest - LATE)) {
        c->on_grid = true;
        n = (double)(c->newest + 2); // a gap, so that nothing is learnt across it
        c->origin = stamp - n * c->step;
    }
    return (int64_t)n;
}

static void note_sample(crd_learn_client* c, double sample, double stamp)
{
    const int64_t sequence = sequence_of(c, stamp);
    if (!isfinite(sample) || sequence == c->newest) { return; } // a gap, or nothing new
    c->newest = sequence;
    if (c->link != CRD_LEARN_ONLINE) {
        c->counts.dropped++;
        return;
    }
    crdi_message* b = &c->batch;
    if (b->count > 0 && sequence != b->first + b->count) { queue_batch(c); }
    if (b->count == 0) { b->first = sequence; }
    const crd_coupling_state s = crd_coupling_get_state(c->element);
    b->values[b->count] = sample;
    b->k[b->count] = s.k >= 0 && s.k <= CRD_LATENCY_MAX ? (uint8_t)s.k : CRDI_K_UNKNOWN;
    b->flags[b->count] = s.jump ? CRDI_FLAG_JUMP : 0;
    if (++b->count == SEND_EVERY) { queue_batch(c); }
}

// ---- networks ----------------------------------------------------------------------------------

static void take_network(crd_learn_client* c, double now)
{
    const crdi_message* m = &c->received;
    c->counts.networks++;
    if (m->network.W1 && crd_coupling_swap(c->element, &m->network, TRIAL)) {
        c->seen = crd_coupling_get_counts(c->element); // its verdict on one before is not asked for
        c->generation = m->generation;
        c->trial_left = TRIAL + TRIAL_SLACK;
        say_outcome(c, CRDI_SWAPPED, m->generation, now);
    } else {
        c->counts.refused++;
        say_outcome(c, CRDI_REFUSED, m->generation, now);
    }
}

// What became of the network that came last. A HELLO says what is in use after a roll-back or a
// reset, also to a server that has not sent what was given up.
static void note_trial(crd_learn_client* c, double now)
{
    const crd_coupling_counts before = c->seen;
    c->seen = crd_coupling_get_counts(c->element);
    if (c->link != CRD_LEARN_ONLINE) { return; }
    const bool reset = c->seen.swaps < before.swaps;
    if (reset || c->seen.rollbacks != before.rollbacks) {
        if (c->generation) { say_outcome(c, CRDI_ROLLED_BACK, c->generation, now); }
        c->generation = 0;
        c->trial_left = 0;
        if (c->link == CRD_LEARN_ONLINE) { say_hello(c, now); }
    } else if (c->trial_left > 0 && --c->trial_left == 0) {
        say_outcome(c, CRDI_KEPT, c->generation, now);
    }
}

static void listen_to(crd_learn_client* c, double now)
{
    const char* wrong = NULL;
    const bool open = crdi_inbox_receive(&c->in, c->fd);
    while (c->link == CRD_LEARN_ONLINE && crdi_inbox_next(&c->in, &c->received, &wrong)) {
        switch (c->received.type) {
        case CRDI_NETWORK:
            take_network(c, now);
            break;
        case CRDI_BYE:
            hang_up(c, now);
            break;
        default: // what only elements say
            c->counts.malformed++;
            hang_up(c, now);
        }
    }
    if (c->link == CRD_LEARN_ONLINE && wrong) {
        c->counts.malformed++;
        hang_up(c, now);
    } else if (c->link == CRD_LEARN_ONLINE && !open) {
        hang_up(c, now);
    }
}

static void talk(crd_learn_client* c, double now)
{
    if (!crdi_outbox_send(&c->out, c->fd)) {
        hang_up(c, now);
    } else if (c->out.head == c->out.tail) {
        c->counts.sent += c->queued;
        c->queued = 0;
    }
}

// ---- from outside ------------------------------------------------------------------------------

// A clock that jumps back, or was no number, must not keep the line closed for ever.
static bool time_to_call(crd_learn_client* c, double now)
{
    if (!(c->try_at - now <= LONGEST_PAUSE)) { c->try_at = now; }
    return now >= c->try_at;
}

void crd_learn_client_step(crd_learn_client* c, double sample, double stamp, double now)
{
    note_sample(c, sample, stamp);
    note_trial(c, now);
    if (c->link == CRD_LEARN_OFFLINE && time_to_call(c, now)) {
        client_call(c, now);
    } else if (c->link == CRD_LEARN_CONNECTING) {
        await_answer(c, now);
    } else if (c->link == CRD_LEARN_ONLINE) {
        listen_to(c, now);
    }
    if (c->link == CRD_LEARN_ONLINE) { talk(c, now); }
}

crd_learn_link crd_learn_client_link(const crd_learn_client* c)
{
    return c->link;
}

crd_learn_client_counts crd_learn_client_get_counts(const crd_learn_client* c)
{
    return c->counts;
}

// Names are shown in other people's terminals.
static void set_name(crdi_message* hello, const char* name)
{
    const size_t length = strlen(name) < CRDI_NAME_MAX ? strlen(name) : CRDI_NAME_MAX;
    for (size_t i = 0; i < length; i++) {
        const unsigned char letter = (unsigned char)name[i];
        hello->name[i] = letter < ' ' || letter == 127 ? '?' : name[i];
    }
    hello->name[length] = 0;
}

static crd_status set_buffers(crd_learn_client* c, const crd_network* n)
{
    const size_t own = crdi_network_weights(n);
    const size_t weights = own > CRD_NETWORK_ROOM ? own : CRD_NETWORK_ROOM;
    c->hello_bytes = CRDI_MESSAGE_HEADER + 256 + 8 * weights;
    c->in.capacity = c->hello_bytes;
    c->out.capacity = BATCHES * BATCH_BYTES + 2 * c->hello_bytes + SHORT_MESSAGES;
    c->memory = crdi_new_array(c->ctx, c->in.capacity + c->out.capacity, 1);
    c->weights = crdi_new_array(c->ctx, weights, sizeof *c->weights);
    if (!c->memory || !c->weights) { return CRD_E_MEMORY; }
    c->in.bytes = c->memory;
    c->out.bytes = c->memory + c->in.capacity;
    c->received.weights = c->weights;
    c->received.weight_capacity = weights;
    return CRD_OK;
}

crd_status crd_learn_client_create(crd_context* ctx, const char* address, const char* name,
                                   double step, crd_coupling* element, crd_learn_client** out)
{
    crd_status st = CRD_OK;
    const crd_network* n = crd_coupling_get_network(element);
    if (!n) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "learning: element '%s' has no network that could be trained", name);
    }
    if (!(step > 0) || !isfinite(step)) {
        return crdi_fail(ctx, CRD_E_RANGE, "learning: macro step = %g, expected > 0", step);
    }
    crd_learn_client* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->element = element;
    c->step = step;
    c->fd = -1;
    c->pause = FIRST_PAUSE;
    c->try_at = NAN;
    c->newest = -1;
    c->batch.type = CRDI_SAMPLES;
    c->hello.type = CRDI_HELLO;
    c->hello.step = step;
    set_name(&c->hello, name);
    c->seen = crd_coupling_get_counts(element);
    CRD_TRY(crdi_address_parse(ctx, address, &c->address));
    if (!crdi_address_is_local(&c->address)) {
        crdi_log(ctx, CRD_LOG_WARNING,
                 "learning from %s, which is beyond this host: nothing is encrypted or "
                 "authenticated, whoever is there sends the networks that this run tries",
                 address);
    }
    CRD_TRY(set_buffers(c, n));
    *out = c;
    return CRD_OK;
fail:
    crd_learn_client_destroy(c);
    return st;
}

void crd_learn_client_destroy(crd_learn_client* c)
{
    if (!c) { return; }
    if (c->link == CRD_LEARN_ONLINE) {
        const crdi_message bye = {.type = CRDI_BYE, .bye = CRDI_BYE_DONE};
        if (c->batch.count) { queue_batch(c); }
        (void)crdi_outbox_put(&c->out, &bye);
        (void)crdi_outbox_send(&c->out, c->fd);
    }
    if (c->fd >= 0) { close(c->fd); }
    crd_free(c->ctx, c->memory);
    crd_free(c->ctx, c->weights);
    crd_free(c->ctx, c);
}
