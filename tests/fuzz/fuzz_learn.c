// modules: learn coupling num base
// Any bytes as learning messages, in pieces as a socket delivers them: as the server reads them and
// as an element does that has less room. What is accepted says the same once more when written.
// Bytes that begin with a message then go to a real element and to a real server.
#include "cardan/learn.h"
#include "fuzz.h"
#include "learn/message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double weights[CRDI_WEIGHTS_MAX], again[CRDI_WEIGHTS_MAX];
static uint8_t box[CRDI_MESSAGE_MAX], copy[CRDI_MESSAGE_MAX];
static volatile double sum;

static void look_at(const crdi_message* m)
{
    if (m->type < CRDI_HELLO || m->type >= CRDI_MESSAGE_TYPES) { abort(); }
    if (strlen(m->name) > CRDI_NAME_MAX || m->count > CRDI_BATCH) { abort(); }
    if (m->type == CRDI_OUTCOME && (m->outcome < 1 || m->outcome >= CRDI_OUTCOMES)) { abort(); }
    if (m->type == CRDI_BYE && m->bye >= CRDI_BYES) { abort(); }
    if (m->type == CRDI_HELLO && !(m->step > 0 && isfinite(m->step))) { abort(); }
    for (int i = 0; m->type == CRDI_SAMPLES && i < m->count; i++) {
        if (m->k[i] > CRD_LATENCY_MAX && m->k[i] != CRDI_K_UNKNOWN) { abort(); }
        sum = sum + m->values[i];
    }
    if (m->type != CRDI_HELLO && m->type != CRDI_NETWORK) { return; }
    const crd_network* n = &m->network;
    if (!crdi_network_has_shape(n)) { abort(); }
    if (n->W1) {
        double y[CRD_TAPS_MAX];
        memset(y, 0, sizeof y);
        sum = crd_network_eval(n, y);
    }
}

// Bytes that were accepted are the only ones for what they say.
static void write_again(const crdi_message* m, const uint8_t* bytes, size_t length)
{
    if (crdi_message_encode(m, copy, sizeof copy) != length) { abort(); }
    if (memcmp(copy, bytes, length) != 0) { abort(); }
    if (length > CRDI_MESSAGE_HEADER && crdi_message_encode(m, copy, length - 1) != 0) { abort(); }
    crdi_message back = {.weights = again, .weight_capacity = CRDI_WEIGHTS_MAX};
    if (crdi_message_decode(&back, bytes, length)) { abort(); }
}

static int read_stream(const uint8_t* data, size_t size, size_t piece, size_t capacity,
                       size_t most_weights)
{
    int count = 0;
    crdi_inbox in = {.bytes = box, .capacity = capacity};
    crdi_message m = {.weights = weights, .weight_capacity = most_weights};
    const char* wrong = NULL;
    for (size_t at = 0; at < size && !wrong;) {
        uint8_t* to = NULL;
        size_t n = crdi_inbox_room(&in, &to);
        if (n == 0) { abort(); } // nothing would ever come through
        n = n < piece ? n : piece;
        n = n < size - at ? n : size - at;
        memcpy(to, data + at, n);
        crdi_inbox_add(&in, n);
        at += n;
        size_t before = in.head + (in.skip < in.tail - in.head ? in.skip : in.tail - in.head);
        while (crdi_inbox_next(&in, &m, &wrong)) {
            look_at(&m);
            count++;
            const bool has_network = m.type == CRDI_HELLO || m.type == CRDI_NETWORK;
            if (in.skip == 0 && (!has_network || m.network.W1)) {
                write_again(&m, in.bytes + before, in.head - before);
            }
            before = in.head + (in.skip < in.tail - in.head ? in.skip : in.tail - in.head);
        }
    }
    return count;
}

// ---- both ends ---------------------------------------------------------------------------------

static struct ends {
    crd_context* ctx;
    char served[108], heard[108]; // addresses of the server and of the listener
    crd_learn_server* server;
    int listener;
    crd_coupling* element;
    crd_learn_client* client;
    double time, clock; // of the signal; of the client, which waits between attempts
} ends;

static void need(bool it_is_so)
{
    if (!it_is_so) { abort(); }
}

static void remove_files(void)
{
    crd_learn_client_destroy(ends.client);
    crd_coupling_destroy(ends.element);
    crd_learn_server_destroy(ends.server);
    crd_context_destroy(ends.ctx);
    unlink(ends.heard + strlen("unix:"));
}

static void make_element(void)
{
    crd_linear l = {.m = 3, .k = 1, .a = (const double[]){2, -1, 0}};
    crd_network n = {0};
    need(crd_network_morph(ends.ctx, &l, 0.01, &n) == CRD_OK);
    crd_coupling_options opt = crd_coupling_defaults();
    opt.step = 1;
    opt.algorithm = CRD_ALGORITHM_NETWORK;
    opt.network = &n;
    need(crd_coupling_create(ends.ctx, &opt, &ends.element) == CRD_OK);
    crd_network_clear(ends.ctx, &n);
}

static void make_ends(void)
{
    const char* folder = getenv("TMPDIR");
    crdi_address a;
    if (!folder || strlen(folder) > 60) { folder = "/tmp"; }
    ends.ctx = crd_context_create(NULL);
    snprintf(ends.served, sizeof ends.served, "unix:%s/fuzz_%d.a", folder, (int)getpid());
    snprintf(ends.heard, sizeof ends.heard, "unix:%s/fuzz_%d.b", folder, (int)getpid());
    crd_learn_server_options opt = crd_learn_server_defaults();
    opt.address = ends.served;
    opt.keep = 100;
    need(crd_learn_server_create(ends.ctx, &opt, &ends.server) == CRD_OK);
    need(crdi_address_parse(ends.ctx, ends.heard, &a) == CRD_OK);
    ends.listener = crdi_socket_open(AF_UNIX);
    unlink(ends.heard + strlen("unix:"));
    need(bind(ends.listener, (struct sockaddr*)&a.socket, a.length) == 0);
    need(listen(ends.listener, 8) == 0);
    make_element();
    need(crd_learn_client_create(ends.ctx, ends.heard, "x", 1, ends.element, &ends.client) ==
         CRD_OK);
    atexit(remove_files);
}

static void step_element(void)
{
    const double sample = sin(ends.time);
    crd_coupling_push(ends.element, sample, ends.time, -1);
    need(isfinite(crd_coupling_eval(ends.element, ends.time + 1)));
    crd_learn_client_step(ends.client, sample, ends.time, ends.clock);
    ends.time += 1;
}

static void tell_element(const uint8_t* data, size_t size)
{
    ends.clock += 31;
    crd_coupling_reset(ends.element);
    step_element();
    const int fd = accept(ends.listener, NULL, NULL);
    if (fd < 0) { return; }
    (void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 40; i++) {
        step_element();
    }
    close(fd);
    step_element();
    step_element();
    need(crd_learn_client_link(ends.client) == CRD_LEARN_OFFLINE);
}

static void tell_server(const uint8_t* data, size_t size)
{
    crdi_address a;
    need(crdi_address_parse(ends.ctx, ends.served, &a) == CRD_OK);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    need(fd >= 0 && connect(fd, (struct sockaddr*)&a.socket, a.length) == 0);
    (void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
    for (int i = 0; i < 3; i++) { // accept, read, notice the end
        need(crd_learn_server_run(ends.server, NULL, 0) == CRD_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    if (size == 0) { return 0; }
    if (!ends.ctx) { make_ends(); }
    const size_t piece = 1 + data[0];
    const int messages = read_stream(data + 1, size - 1, piece, CRDI_MESSAGE_MAX, CRDI_WEIGHTS_MAX);
    read_stream(data + 1, size - 1, piece, 400, 41);
    if (messages > 0) {
        tell_element(data + 1, size - 1);
        tell_server(data + 1, size - 1);
    }
    return 0;
}
