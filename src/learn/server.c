// The learning server: one loop over all sockets, and one thread that trains.
//
// The loop owns everything but the job; the job changes hands under the lock. Whatever elements
// send, memory is bounded: by `clients`, by `keep`, and by the largest message.
#include "cardan/learn.h"
#include "learn/message.h"
#include "shared/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_CLIENTS = 1024, MOST_KEPT = 50000000, TICK_MS = 100 };
static const int64_t PATIENCE_NS = 10 * INT64_C(1000000000); // for a HELLO, for bytes to be read

typedef enum trial { TRIAL_NONE, TRIAL_SENT, TRIAL_RUNNING } trial;

typedef struct client {
    int fd;                 // -1: the place is free
    int64_t serial;         // over all clients ever
    int64_t waits_since_ns; // for its HELLO, or until it reads; 0: for nothing
    crdi_inbox in;
    crdi_outbox out;
    uint8_t* memory; // of both

    bool joined;
    char name[CRDI_NAME_MAX + 1];
    double step;
    crd_network network;    // in use there, its weights at `current`
    double *current, *sent; // (weight_count), one block
    size_t weight_count;
    int64_t hellos;

    double* history; // (keep) ring by sequence, NaN: missing
    int64_t newest;  // sequence
    int64_t span;    // places in use up to `newest`
    int64_t fresh;   // samples since the last training
    int64_t jumps;
    int64_t ks[CRD_LATENCY_MAX + 1]; // samples since the last training by their latency

    int64_t generation; // of the newest network that was sent, 0: none
    trial trial;
    bool rejected; // `sent` was refused or rolled back
} client;

typedef enum job_state { JOB_NONE, JOB_READY, JOB_RUNNING, JOB_DONE, JOB_QUIT } job_state;

// What the thread gets and gives.
typedef struct job {
    job_state state;  // under the lock
    crd_context* ctx; // of the thread
    int64_t serial, hellos;
    crd_training training;
    double* y; // (keep)
    int64_t n;
    crd_network start, result;
    double* start_weights; // (CRDI_WEIGHTS_MAX)
    crd_training_report report;
    crd_status status;
    double seconds;
} job;

struct crd_learn_server {
    crd_context* ctx;
    crd_learn_server_options opt;
    char* address;
    int listening;
    int family;
    dev_t device; // of the socket's file
    ino_t inode;
    client* clients;      // (opt.clients)
    struct pollfd* polls; // (opt.clients + 2)
    int* owners;          // (opt.clients) which client a row of `polls` is of
    int64_t serials;
    int next; // client that is looked at first for training
    crdi_message message;
    double* weights;       // of `message`
    int64_t rest_until_ns; // out of file descriptors
    job job;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_lock, has_thread;
    volatile bool give_up; // training that is under way
    int wake[2];           // the thread writes a byte when it is done
};

// ---- history -----------------------------------------------------------------------------------

static double* history_place(const crd_learn_server* s, const client* c, int64_t sequence)
{
    const int64_t keep = s->opt.keep;
    return &c->history[((sequence % keep) + keep) % keep];
}

static void put_sample(crd_learn_server* s, client* c, int64_t sequence, double value)
{
    const int64_t keep = s->opt.keep;
    if (c->span == 0 || sequence - c->newest >= keep) { // the first, or nothing before it matters
        c->span = 0;
        c->newest = sequence - 1;
    }
    while (c->newest < sequence) {
        *history_place(s, c, ++c->newest) = NAN;
        c->span += c->span < keep;
    }
    if (sequence > c->newest - c->span) { *history_place(s, c, sequence) = value; }
}

static int64_t samples_of(const crd_learn_server* s, const client* c)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->span; i++) {
        count += isfinite(*history_place(s, c, c->newest - i)) != 0;
    }
    return count;
}

static void forget_history(client* c)
{
    c->span = c->fresh = c->jumps = 0;
    memset(c->ks, 0, sizeof c->ks);
}

static int usual_latency(const client* c)
{
    int best = 0;
    for (int k = 1; k <= CRD_LATENCY_MAX; k++) {
        if (c->ks[k] > c->ks[best]) { best = k; }
    }
    return best;
}

// ---- what is told to others --------------------------------------------------------------------

static void note_event(const crd_learn_server* s, const client* c, crd_learn_event e)
{
    e.name = c->name;
    e.network = &c->network;
    e.jumps = c->jumps;
    if (!e.text) { e.text = ""; }
    if (s->opt.note) { s->opt.note(s->opt.note_user, &e); }
}

// ---- clients -----------------------------------------------------------------------------------

static void free_client(crd_learn_server* s, client* c)
{
    if (c->fd >= 0) { close(c->fd); }
    crd_free(s->ctx, c->memory);
    crd_free(s->ctx, c->current);
    crd_free(s->ctx, c->history);
    *c = (client){.fd = -1};
}

static void part(crd_learn_server* s, client* c, crdi_bye reason, const char* text)
{
    const crdi_message bye = {.type = CRDI_BYE, .bye = (uint8_t)reason};
    if (crdi_outbox_put(&c->out, &bye)) { (void)crdi_outbox_send(&c->out, c->fd); }
    if (reason != CRDI_BYE_DONE) {
        crdi_log(s->ctx, CRD_LOG_WARNING, "learning: element '%s' dismissed: %s",
                 c->joined ? c->name : "?", text);
    }
    if (c->joined) {
        note_event(
            s, c,
            (crd_learn_event){.kind = CRD_LEARN_LEFT, .text = text, .samples = samples_of(s, c)});
    }
    free_client(s, c);
}

static void server_turn_away(int fd)
{
    uint8_t bytes[64];
    const crdi_message bye = {.type = CRDI_BYE, .bye = CRDI_BYE_FULL};
    const size_t n = crdi_message_encode(&bye, bytes, sizeof bytes);
    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
    close(fd);
}

static void welcome(crd_learn_server* s, int64_t now)
{
    const int fd = accept(s->listening, NULL, NULL);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            s->rest_until_ns = now + 10 * INT64_C(1000000) * TICK_MS;
        }
        return;
    }
    crdi_socket_settle(fd, s->family);
    client* c = NULL;
    for (int i = 0; i < s->opt.clients && !c; i++) {
        if (s->clients[i].fd < 0) { c = &s->clients[i]; }
    }
    uint8_t* memory = c ? crdi_new_array(s->ctx, 2, CRDI_MESSAGE_MAX + 64) : NULL;
    if (!memory) {
        crdi_log(s->ctx, CRD_LOG_WARNING, "learning: no room for another element, %d are served",
                 s->opt.clients);
        server_turn_away(fd);
        return;
    }
    c->fd = fd;
    c->serial = ++s->serials;
    c->waits_since_ns = now;
    c->memory = memory;
    c->in = (crdi_inbox){.bytes = memory, .capacity = CRDI_MESSAGE_MAX};
    c->out =
        (crdi_outbox){.bytes = memory + CRDI_MESSAGE_MAX + 64, .capacity = CRDI_MESSAGE_MAX + 64};
}

// ---- what they say -----------------------------------------------------------------------------

static bool all_finite(const double* w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(w[i])) { return false; }
    }
    return true;
}

// NULL, or what is wrong.
static const char* take_hello(crd_learn_server* s, client* c, const crdi_message* m)
{
    const crd_network* n = &m->network;
    const size_t count = crdi_network_weights(n);
    if (!all_finite(m->weights, count) || !(n->alpha > -1 && n->alpha <= 1)) {
        return "its network has numbers that are not finite";
    }
    const bool first = !c->joined;
    const bool same = c->joined && crdi_network_same_shape(&c->network, n) && c->step == m->step;
    if (!same) {
        crd_free(s->ctx, c->current);
        c->current = crdi_new_array(s->ctx, 2 * count, sizeof *c->current);
        if (!c->history) {
            c->history = crdi_new_array(s->ctx, (size_t)s->opt.keep, sizeof *c->history);
        }
        if (!c->current || !c->history) { return "there is not enough memory for it"; }
        c->sent = c->current + count;
        c->weight_count = count;
        c->rejected = false;
        forget_history(c);
    }
    memcpy(c->name, m->name, sizeof c->name);
    memcpy(c->current, m->weights, count * sizeof *c->current);
    c->network = *n;
    crdi_network_place(&c->network, c->current);
    c->step = m->step;
    if (c->trial == TRIAL_RUNNING || !same) { c->trial = TRIAL_NONE; } // else one is on its way
    c->joined = true;
    c->hellos++;
    c->waits_since_ns = 0;
    if (first) { note_event(s, c, (crd_learn_event){.kind = CRD_LEARN_JOINED}); }
    return NULL;
}

static void take_samples(crd_learn_server* s, client* c, const crdi_message* m)
{
    for (int i = 0; i < m->count; i++) {
        if (!isfinite(m->values[i])) { continue; } // a gap
        put_sample(s, c, m->first + i, m->values[i]);
        c->fresh++;
        c->jumps += (m->flags[i] & CRDI_FLAG_JUMP) != 0;
        if (m->k[i] <= CRD_LATENCY_MAX) { c->ks[m->k[i]]++; }
    }
}

static const char* take_outcome(crd_learn_server* s, client* c, const crdi_message* m)
{
    static const crd_learn_event_kind kinds[CRDI_OUTCOMES] = {[CRDI_SWAPPED] = CRD_LEARN_SWAPPED,
                                                              [CRDI_REFUSED] = CRD_LEARN_REFUSED,
                                                              [CRDI_ROLLED_BACK] =
                                                                  CRD_LEARN_ROLLED_BACK,
                                                              [CRDI_KEPT] = CRD_LEARN_KEPT};
    if (m->generation < 1 || m->generation > c->generation) {
        return "it speaks of a network that was not sent";
    }
    if (m->generation < c->generation) { return NULL; } // of one before
    switch (m->outcome) {
    case CRDI_SWAPPED:
        memcpy(c->current, c->sent, c->weight_count * sizeof *c->current);
        crdi_network_place(&c->network, c->current);
        c->trial = TRIAL_RUNNING;
        break;
    case CRDI_KEPT:
        c->trial = TRIAL_NONE;
        break;
    default: // the HELLO after a roll-back says what it uses
        c->trial = TRIAL_NONE;
        c->rejected = true;
    }
    note_event(s, c, (crd_learn_event){.kind = kinds[m->outcome], .generation = m->generation});
    return NULL;
}

// false: the client is gone.
static bool take_message(crd_learn_server* s, client* c, const crdi_message* m)
{
    const char* wrong = NULL;
    if (!c->joined && m->type != CRDI_HELLO && m->type != CRDI_BYE) {
        wrong = "it did not say what it is first";
    } else if (m->type == CRDI_HELLO) {
        wrong = take_hello(s, c, m);
    } else if (m->type == CRDI_SAMPLES) {
        take_samples(s, c, m);
    } else if (m->type == CRDI_OUTCOME) {
        wrong = take_outcome(s, c, m);
    } else if (m->type == CRDI_BYE) {
        part(s, c, CRDI_BYE_DONE, "it is done");
        return false;
    } else {
        wrong = "it sent what only the server sends";
    }
    if (wrong) { part(s, c, CRDI_BYE_MALFORMED, wrong); }
    return !wrong;
}

static void receive_from(crd_learn_server* s, client* c)
{
    const char* wrong = NULL;
    const bool open = crdi_inbox_receive(&c->in, c->fd);
    while (crdi_inbox_next(&c->in, &s->message, &wrong)) {
        if (!take_message(s, c, &s->message)) { return; }
    }
    if (wrong) {
        part(s, c, CRDI_BYE_MALFORMED, wrong);
    } else if (!open) {
        part(s, c, CRDI_BYE_DONE, "the connection ended");
    }
}

static void speak(crd_learn_server* s, client* c, int64_t now)
{
    const size_t before = c->out.head;
    if (!crdi_outbox_send(&c->out, c->fd)) {
        part(s, c, CRDI_BYE_DONE, "the connection ended");
    } else if (c->out.head == c->out.tail) {
        if (c->joined) { c->waits_since_ns = 0; }
    } else if (c->out.head != before || !c->waits_since_ns) {
        c->waits_since_ns = now;
    }
}

// ---- training ----------------------------------------------------------------------------------

static void train_client(job* j)
{
    const int64_t begin = crdi_now_ns();
    j->result = (crd_network){0};
    j->report = (crd_training_report){0};
    j->status =
        crd_learn_train(j->ctx, &j->training, j->y, j->n, &j->start, &j->result, &j->report, NULL);
    j->seconds = 1e-9 * (double)(crdi_now_ns() - begin);
}

static void* server_work(void* user)
{
    crd_learn_server* s = user;
    job* j = &s->job;
    pthread_mutex_lock(&s->lock);
    while (j->state != JOB_QUIT) {
        if (j->state != JOB_READY) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        j->state = JOB_RUNNING;
        pthread_mutex_unlock(&s->lock);
        train_client(j);
        pthread_mutex_lock(&s->lock);
        if (j->state != JOB_QUIT) { j->state = JOB_DONE; }
        (void)!write(s->wake[1], "", 1);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static job_state look_at_job(crd_learn_server* s)
{
    pthread_mutex_lock(&s->lock);
    const job_state state = s->job.state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

static void set_job(crd_learn_server* s, job_state state)
{
    pthread_mutex_lock(&s->lock);
    s->job.state = state;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void start_job(crd_learn_server* s, client* c)
{
    job* j = &s->job;
    j->serial = c->serial;
    j->hellos = c->hellos;
    j->training = s->opt.training;
    j->training.k = usual_latency(c);
    j->training.stop = &s->give_up;
    j->n = c->span;
    for (int64_t i = 0; i < j->n; i++) {
        j->y[i] = *history_place(s, c, c->newest - c->span + 1 + i);
    }
    j->start = c->network;
    memcpy(j->start_weights, c->current, c->weight_count * sizeof *c->current);
    crdi_network_place(&j->start, j->start_weights);
    c->fresh = 0;
    memset(c->ks, 0, sizeof c->ks);
    set_job(s, JOB_READY);
}

// The next client that has enough new samples and no network on trial.
static void find_job(crd_learn_server* s)
{
    for (int i = 0; i < s->opt.clients; i++) {
        client* c = &s->clients[(s->next + i) % s->opt.clients];
        if (c->fd >= 0 && c->joined && c->trial == TRIAL_NONE && c->fresh >= s->opt.every) {
            s->next = (s->next + i + 1) % s->opt.clients;
            start_job(s, c);
            return;
        }
    }
}

// Why the result is not sent, or NULL.
static const char* judge_training(const crd_learn_server* s, client* c, double* weights)
{
    const job* j = &s->job;
    if (j->status < 0) { return crd_error_text(j->ctx); }
    if (!j->report.better) { return "not better on what was held out"; }
    crdi_network_flatten(&j->result, weights);
    if (!all_finite(weights, c->weight_count)) { return "training gave numbers without end"; }
    if (c->rejected && memcmp(weights, c->sent, c->weight_count * sizeof *weights) == 0) {
        return "the element has given up this network before";
    }
    return NULL;
}

static void send_network(crd_learn_server* s, client* c, int64_t now)
{
    const job* j = &s->job;
    const crdi_message m = {.type = CRDI_NETWORK,
                            .generation = c->generation + 1,
                            .held_before = j->report.held_before,
                            .held_after = j->report.held_after,
                            .network = j->result};
    if (!crdi_outbox_put(&c->out, &m)) { // the one before has not been read yet
        part(s, c, CRDI_BYE_SLOW, "it does not read what is sent to it");
        return;
    }
    crdi_network_flatten(&j->result, c->sent);
    c->generation++;
    c->trial = TRIAL_SENT;
    c->rejected = false;
    speak(s, c, now);
}

static void finish_job(crd_learn_server* s, int64_t now)
{
    job* j = &s->job;
    client* c = NULL;
    for (int i = 0; i < s->opt.clients && !c; i++) {
        client* one = &s->clients[i];
        if (one->fd >= 0 && one->serial == j->serial && one->hellos == j->hellos) { c = one; }
    }
    if (c) { // else it has left, or uses another network by now
        const char* reason = judge_training(s, c, s->weights);
        note_event(s, c,
                   (crd_learn_event){.kind = CRD_LEARN_TRAINED,
                                     .text = reason,
                                     .samples = j->n,
                                     .generation = reason ? 0 : c->generation + 1,
                                     .k = j->training.k,
                                     .seconds = j->seconds,
                                     .report = j->report});
        if (!reason) { send_network(s, c, now); }
    }
    crd_network_clear(j->ctx, &j->result);
    set_job(s, JOB_NONE);
}

// ---- the loop ----------------------------------------------------------------------------------

static void dismiss_the_slow(crd_learn_server* s, int64_t now)
{
    for (int i = 0; i < s->opt.clients; i++) {
        client* c = &s->clients[i];
        if (c->fd < 0 || !c->waits_since_ns || now - c->waits_since_ns < PATIENCE_NS) { continue; }
        part(s, c, CRDI_BYE_SLOW,
             c->joined ? "it does not read what is sent to it" : "it does not say what it is");
    }
}

// Rows of `polls`: the thread, then who is there, then the listening socket.
static int gather_polls(crd_learn_server* s, int64_t now)
{
    int n = 0;
    s->polls[n++] = (struct pollfd){.fd = s->wake[0], .events = POLLIN};
    for (int i = 0; i < s->opt.clients; i++) {
        const client* c = &s->clients[i];
        if (c->fd < 0) { continue; }
        const bool unsent = c->out.head != c->out.tail;
        s->owners[n - 1] = i;
        s->polls[n++] =
            (struct pollfd){.fd = c->fd, .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
    }
    if (now >= s->rest_until_ns) {
        s->polls[n++] = (struct pollfd){.fd = s->listening, .events = POLLIN};
    }
    return n;
}

static crd_status serve_once(crd_learn_server* s, int timeout_ms)
{
    int64_t now = crdi_now_ns();
    const int n = gather_polls(s, now);
    const int ready = poll(s->polls, (nfds_t)n, timeout_ms);
    if (ready < 0 && errno != EINTR) {
        return crdi_fail(s->ctx, CRD_E_IO, "learning server %s: %s", s->address, strerror(errno));
    }
    now = crdi_now_ns();
    for (int i = 0; ready > 0 && i < n; i++) {
        const struct pollfd* p = &s->polls[i];
        if (!p->revents) { continue; }
        if (p->fd == s->listening) {
            welcome(s, now);
        } else if (p->fd == s->wake[0]) {
            char drain[16];
            (void)!read(p->fd, drain, sizeof drain);
        } else {
            client* c = &s->clients[s->owners[i - 1]];
            if (p->revents & ~POLLOUT) { receive_from(s, c); }
            if (c->fd >= 0 && (p->revents & POLLOUT)) { speak(s, c, now); }
        }
    }
    const job_state state = look_at_job(s);
    if (state == JOB_DONE) { finish_job(s, now); }
    if (state == JOB_DONE || state == JOB_NONE) { find_job(s); }
    dismiss_the_slow(s, now);
    return CRD_OK;
}

static bool is_set(const volatile bool* flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

crd_status crd_learn_server_run(crd_learn_server* s, const volatile bool* stop, double seconds)
{
    const int64_t begin = crdi_now_ns();
    for (bool over = false; !over && !is_set(stop);) {
        const double left = seconds - 1e-9 * (double)(crdi_now_ns() - begin);
        int wait_ms = TICK_MS;
        over = left <= 0; // then what is there already is still dealt with
        if (1e3 * left < wait_ms) { wait_ms = over ? 0 : (int)(1e3 * left) + 1; }
        const crd_status st = serve_once(s, wait_ms);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

const char* crd_learn_server_address(const crd_learn_server* s)
{
    return s->address;
}

// ---- create and destroy ------------------------------------------------------------------------

static crd_status check_server_options(crd_context* ctx, const crd_learn_server_options* o)
{
    const struct {
        const char* name;
        int64_t value, most;
    } numbers[] = {{"every", o->every, MOST_KEPT},
                   {"keep", o->keep, MOST_KEPT},
                   {"clients", o->clients, MOST_CLIENTS}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < 1 || numbers[i].value > numbers[i].most) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "learning server: %s = %" PRId64 ", expected 1 to %" PRId64,
                             numbers[i].name, numbers[i].value, numbers[i].most);
        }
    }
    return CRD_OK;
}

// A socket's file outlives its server. One that nobody answers at is put out of the way.
static crd_status clear_stale(crd_learn_server* s, const crdi_address* a, const char* path)
{
    struct stat info;
    if (lstat(path, &info) < 0) { return CRD_OK; }
    if (!S_ISSOCK(info.st_mode)) {
        return crdi_fail(s->ctx, CRD_E_IO,
                         "%s: there is a file that is no socket; choose another "
                         "path or remove it",
                         path);
    }
    const int fd = crdi_socket_open(AF_UNIX);
    const bool answered = fd < 0 ||
                          connect(fd, (const struct sockaddr*)&a->socket, a->length) == 0 ||
                          errno != ECONNREFUSED;
    if (fd >= 0) { close(fd); }
    if (answered) {
        return crdi_fail(s->ctx, CRD_E_IO, "%s: in use by a learning server that is running", path);
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return crdi_fail(s->ctx, CRD_E_IO,
                         "%s: left behind by another server and cannot be "
                         "removed: %s",
                         path, strerror(errno));
    }
    return CRD_OK;
}

static const char* unix_path(const crdi_address* a)
{
    return ((const struct sockaddr_un*)&a->socket)->sun_path;
}

// Where it really listens: the system may have chosen the port.
static crd_status name_address(crd_learn_server* s, const crdi_address* a)
{
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    char host[INET6_ADDRSTRLEN] = "";
    if (s->family == AF_UNIX) {
        struct stat info;
        if (lstat(unix_path(a), &info) == 0) {
            s->device = info.st_dev;
            s->inode = info.st_ino;
        }
        s->address = crdi_strdup(s->ctx, s->opt.address);
    } else if (getsockname(s->listening, (struct sockaddr*)&own, &size) < 0) {
        return crdi_fail(s->ctx, CRD_E_IO, "learning server: %s", strerror(errno));
    } else if (s->family == AF_INET) {
        const struct sockaddr_in* in = (const struct sockaddr_in*)&own;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        s->address = crdi_format(s->ctx, "tcp:%s:%d", host, ntohs(in->sin_port));
    } else {
        const struct sockaddr_in6* in6 = (const struct sockaddr_in6*)&own;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        s->address = crdi_format(s->ctx, "tcp:[%s]:%d", host, ntohs(in6->sin6_port));
    }
    return s->address ? CRD_OK : CRD_E_MEMORY;
}

static crd_status start_listening(crd_learn_server* s)
{
    crd_status st = CRD_OK;
    crdi_address a;
    CRD_TRY(crdi_address_parse(s->ctx, s->opt.address, &a));
    s->family = a.socket.ss_family;
    CRD_TRY(crdi_check_plain(s->ctx, s->opt.address, crdi_address_is_local(&a), false, s->opt.plain,
                             "unix:PATH (there are no keys for learning) or --plain"));
    if (s->family == AF_UNIX) { CRD_TRY(clear_stale(s, &a, unix_path(&a))); }
    const int fd = crdi_socket_open(s->family);
    const int on = 1;
    s->listening = fd;
    if (fd >= 0 && s->family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (fd < 0 || bind(fd, (const struct sockaddr*)&a.socket, a.length) < 0 ||
        listen(fd, s->opt.clients) < 0) {
        return crdi_fail(s->ctx, CRD_E_IO, "learning server: cannot listen at %s: %s",
                         s->opt.address,
                         errno == EADDRINUSE ? "the address is in use" : strerror(errno));
    }
    CRD_TRY(name_address(s, &a));
fail:
    return st;
}

static crd_status server_start_thread(crd_learn_server* s)
{
    if (pipe(s->wake) < 0) {
        s->wake[0] = s->wake[1] = -1;
        return crdi_fail(s->ctx, CRD_E_IO, "learning server: %s", strerror(errno));
    }
    crdi_socket_settle(s->wake[0], AF_UNIX);
    crdi_socket_settle(s->wake[1], AF_UNIX);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->has_lock = true;
    const int error = pthread_create(&s->thread, NULL, server_work, s);
    if (error) {
        return crdi_fail(s->ctx, CRD_E_IO, "learning server: no thread: %s", strerror(error));
    }
    s->has_thread = true;
    return CRD_OK;
}

static crd_status allocate_server(crd_learn_server* s)
{
    const size_t clients = (size_t)s->opt.clients;
    s->clients = crdi_new_array(s->ctx, clients, sizeof *s->clients);
    s->polls = crdi_new_array(s->ctx, clients + 2, sizeof *s->polls);
    s->owners = crdi_new_array(s->ctx, clients, sizeof *s->owners);
    s->weights = crdi_new_array(s->ctx, CRDI_WEIGHTS_MAX, sizeof *s->weights);
    s->job.start_weights = crdi_new_array(s->ctx, CRDI_WEIGHTS_MAX, sizeof *s->weights);
    s->job.y = crdi_new_array(s->ctx, (size_t)s->opt.keep, sizeof *s->job.y);
    s->job.ctx = crdi_context_child(s->ctx);
    for (size_t i = 0; s->clients && i < clients; i++) {
        s->clients[i].fd = -1;
    }
    if (!s->clients || !s->polls || !s->owners || !s->weights || !s->job.start_weights ||
        !s->job.y || !s->job.ctx) {
        return CRD_E_MEMORY;
    }
    s->message.weights = s->weights;
    s->message.weight_capacity = CRDI_WEIGHTS_MAX;
    return CRD_OK;
}

crd_status crd_learn_server_create(crd_context* ctx, const crd_learn_server_options* opt,
                                   crd_learn_server** out)
{
    crd_status st = check_server_options(ctx, opt);
    if (st < 0) { return st; }
    crd_learn_server* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->opt = *opt;
    s->listening = s->wake[0] = s->wake[1] = -1;
    CRD_TRY(allocate_server(s));
    CRD_TRY(start_listening(s));
    CRD_TRY(server_start_thread(s));
    s->opt.address = s->address;
    *out = s;
    return CRD_OK;
fail:
    crd_learn_server_destroy(s);
    return st;
}

static void remove_file(const crd_learn_server* s)
{
    const char* path = s->opt.address + strlen("unix:");
    struct stat info;
    if (s->inode && lstat(path, &info) == 0 && info.st_dev == s->device &&
        info.st_ino == s->inode) {
        unlink(path);
    }
}

void crd_learn_server_destroy(crd_learn_server* s)
{
    if (!s) { return; }
    for (int i = 0; s->clients && i < s->opt.clients; i++) {
        if (s->clients[i].fd >= 0) { part(s, &s->clients[i], CRDI_BYE_DONE, "the server ends"); }
    }
    if (s->family == AF_UNIX) { remove_file(s); }
    if (s->listening >= 0) { close(s->listening); }
    if (s->has_thread) {
        __atomic_store_n(&s->give_up, true, __ATOMIC_RELAXED);
        set_job(s, JOB_QUIT);
        pthread_join(s->thread, NULL);
        crd_network_clear(s->job.ctx, &s->job.result);
    }
    if (s->has_lock) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
    }
    if (s->wake[0] >= 0) { close(s->wake[0]); }
    if (s->wake[1] >= 0) { close(s->wake[1]); }
    crd_context_destroy(s->job.ctx);
    crd_free(s->ctx, s->job.y);
    crd_free(s->ctx, s->job.start_weights);
    crd_free(s->ctx, s->weights);
    crd_free(s->ctx, s->owners);
    crd_free(s->ctx, s->polls);
    crd_free(s->ctx, s->clients);
    crd_free(s->ctx, s->address);
    crd_free(s->ctx, s);
}
