// dcp/nrt-udp, dcp/nrt-tcp: one NRT step of a slave with 10 float64 in and 10 out, master and slave
// of Cardan in two processes on loopback, against a bare ping-pong of the same PDUs in the same
// order between the same two processes:
//     -> data, STC_do_step      <- RSP_ack, COMPUTING, COMPUTED
//     -> STC_send_outputs       <- RSP_ack, SENDING_D, data, RUNNING
// dcp/srt-32: 32 slaves that run at 1 kHz with one master: every PDU is accounted for.
#include "benchmark.h"
#include "shared/dcp.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    VALUES = 10,
    DATA = 5 + 8 * VALUES, // bytes of a data PDU
    STEPS = 400,           // of one turn
    TURNS = 15,            // of each, by turns; the median of the ratios counts
    SLAVES = 32,
    MOST = 64, // PDUs before time is looked at
};

static void must(bool ok, const char* what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

// As a program does that has to keep its times; not everybody may.
static void real_time(bool on)
{
    const struct sched_param priority = {.sched_priority = on ? 5 : 0};
    (void)sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &priority);
}

// ---- the slave ---------------------------------------------------------------------------------

static void describe(crd_dcp_description* d)
{
    static crd_dcp_variable variables[2 * VALUES];
    static char names[2 * VALUES][8];
    static const crd_dcp_resolution resolution = {
        .numerator = 1, .numerator_to = 1, .denominator = 1000};
    static const crd_dcp_ports ports = {1024, 65535};
    for (int i = 0; i < 2 * VALUES; i++) {
        const bool input = i < VALUES;
        snprintf(names[i], sizeof names[i], "%s%d", input ? "u" : "y", i % VALUES);
        variables[i] = crd_dcp_variable_defaults();
        variables[i].name = names[i];
        variables[i].vr = (uint64_t)i;
        variables[i].causality = input ? CRD_INPUT : CRD_OUTPUT;
        variables[i].variability = CRD_CONTINUOUS;
        variables[i].type = CRD_DCP_FLOAT64;
        variables[i].start = "0";
    }
    const crd_dcp_endpoint ip = {.offered = true,
                                 .max_pdu_size = 65507,
                                 .host = "127.0.0.1",
                                 .has_data = true,
                                 .has_parameter = true,
                                 .data_host = "",
                                 .parameter_host = "",
                                 .data = &ports,
                                 .parameter = &ports,
                                 .data_count = 1,
                                 .parameter_count = 1};
    d->name = "echo";
    d->major = 1;
    d->srt = d->nrt = true;
    d->nrt_default_steps = d->nrt_min_steps = d->nrt_max_steps = 1;
    d->nrt_fixed_steps = true;
    d->resolutions = &resolution;
    d->resolution_count = 1;
    d->fixed_resolution = true;
    d->can_accept_config = d->can_reset = true;
    d->udp = d->tcp = ip;
    d->variables = variables;
    d->variable_count = 2 * VALUES;
}

static crd_dcp_outcome set(void* user, int variable, const crd_dcp_slot* value)
{
    ((double*)user)[variable] = *value->real;
    return CRD_DCP_DONE;
}

static crd_dcp_outcome get(void* user, int variable, crd_dcp_slot* value)
{
    *value->real = ((double*)user)[variable - VALUES];
    return CRD_DCP_DONE;
}

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

// What a slave has counted, for its parent.
typedef struct tally {
    crd_dcp_slave_counts slave;
    crd_dcp_net_counts net;
} tally;

typedef struct host { // of slaves in a process of their own
    crd_context* ctx;
    crd_dcp_description* d;
    crd_dcp_net* nets[SLAVES];
    crd_dcp_slave* slaves[SLAVES];
    double values[SLAVES][VALUES];
    uint16_t ports[SLAVES];
} host;

static void host_open(host* h, int count, uint8_t transport)
{
    h->ctx = crd_context_create(NULL);
    benchmark_must(h->ctx, crd_dcp_description_create(h->ctx, &h->d));
    describe(h->d);
    for (int i = 0; i < count; i++) {
        crd_dcp_address at = {.ip = 0x7F000001, .transport = transport};
        const crd_dcp_plant plant = {.user = h->values[i], .set = set, .get = get};
        benchmark_must(h->ctx, crd_dcp_net_create(h->ctx, &h->nets[i]));
        benchmark_must(h->ctx, crd_dcp_net_listen(h->nets[i], &at));
        const crd_dcp_link link = crd_dcp_net_link(h->nets[i]);
        benchmark_must(h->ctx,
                       crd_dcp_slave_create(h->ctx, h->d, &plant, &link, NULL, &h->slaves[i]));
        h->ports[i] = at.port;
    }
}

// Until which time nothing happens by itself.
static double serve(host* h, int i)
{
    crd_dcp_packet p;
    for (int k = 0; k < MOST && crd_dcp_net_receive(h->nets[i], &p); k++) {
        crd_dcp_slave_receive(h->slaves[i], &p.from, &p.at, p.bytes, p.length, p.time);
    }
    crd_dcp_slave_advance(h->slaves[i], crd_dcp_net_now(h->nets[i]));
    return crd_dcp_slave_next(h->slaves[i]);
}

// Several slaves in one thread look at all of them every so often.
static void serve_all(host* h, int count)
{
    while (!ended) {
        double next = INFINITY;
        for (int i = 0; i < count; i++) {
            next = fmin(next, serve(h, i));
        }
        const double pause = fmin(next - crd_dcp_net_now(h->nets[0]), count > 1 ? 0.0005 : 1);
        if (count == 1) {
            crd_dcp_net_wait(h->nets[0], pause);
        } else if (pause > 0) {
            nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * pause)}, NULL);
        }
    }
}

// A process with slaves; their ports are in `ports`. It writes its tallies to the pipe at its end.
static pid_t start_slaves(int count, uint8_t transport, uint16_t* ports, int* pipe_end)
{
    int ends[2];
    must(pipe(ends) == 0, "pipe");
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child > 0) {
        const size_t size = (size_t)count * sizeof *ports;
        close(ends[1]);
        must(read(ends[0], ports, size) == (ssize_t)size, "slave");
        *pipe_end = ends[0];
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL); // that ends a wait
    static host h;
    host_open(&h, count, transport);
    must(write(ends[1], h.ports, (size_t)count * sizeof *ports) > 0, "slave");
    serve_all(&h, count);
    for (int i = 0; i < count; i++) {
        const tally t = {crd_dcp_slave_get_counts(h.slaves[i]), crd_dcp_net_get_counts(h.nets[i])};
        must(write(ends[1], &t, sizeof t) == sizeof t, "slave");
    }
    _exit(0);
}

// ---- the master --------------------------------------------------------------------------------

typedef struct session {
    crd_context* ctx;
    crd_dcp_description* d;
    crd_dcp_net* net;
    crd_dcp_master* m;
} session;

static void session_open(session* s, int count, const uint16_t* ports, uint8_t transport,
                         crd_dcp_op_mode mode)
{
    int inputs[VALUES], outputs[VALUES];
    s->ctx = crd_context_create(NULL);
    benchmark_must(s->ctx, crd_dcp_description_create(s->ctx, &s->d));
    describe(s->d);
    benchmark_must(s->ctx, crd_dcp_net_create(s->ctx, &s->net));
    benchmark_must(s->ctx, crd_dcp_master_create(s->ctx, s->net, NULL, &s->m));
    for (int i = 0; i < VALUES; i++) {
        inputs[i] = i;
        outputs[i] = VALUES + i;
    }
    for (int i = 0; i < count; i++) {
        const crd_dcp_slave_spec spec = {
            .name = "echo",
            .description = s->d,
            .control = {.ip = 0x7F000001, .port = ports[i], .transport = transport},
            .mode = mode};
        int index = 0;
        benchmark_must(s->ctx, crd_dcp_master_add(s->m, &spec, &index));
        benchmark_must(s->ctx, crd_dcp_master_feed(s->m, index, inputs, VALUES));
        benchmark_must(s->ctx, crd_dcp_master_watch(s->m, index, outputs, VALUES, 1));
    }
    double start = 0;
    benchmark_must(s->ctx, crd_dcp_master_configure(s->m));
    benchmark_must(s->ctx, crd_dcp_master_run(s->m, 0, &start));
}

static void session_close(session* s)
{
    crd_dcp_master_destroy(s->m);
    crd_dcp_net_destroy(s->net);
    crd_dcp_description_destroy(s->d);
    crd_context_destroy(s->ctx);
}

// us of a step
static double time_steps(session* s)
{
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < STEPS; i++) {
        *crd_dcp_master_slot(s->m, 0, 0)->real = i;
        benchmark_must(s->ctx, crd_dcp_master_begin_step(s->m, 0, 1));
        benchmark_must(s->ctx, crd_dcp_master_end_step(s->m, 0));
        if (*crd_dcp_master_slot(s->m, 0, VALUES)->real != i) { abort(); }
    }
    return 1e-3 * (double)(crdi_now_ns() - begin) / STEPS;
}

// ---- the floor ---------------------------------------------------------------------------------

typedef struct pair { // two sockets that know each other
    int master, slave;
    struct sockaddr_in to_master, to_slave;
    bool stream;
} pair;

static int open_socket(int type, struct sockaddr_in* at)
{
    socklen_t length = sizeof *at;
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, type, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr*)at, length) == 0 &&
             getsockname(fd, (struct sockaddr*)at, &length) == 0,
         "socket");
    return fd;
}

static pair open_pair(bool stream)
{
    pair p = {.stream = stream};
    if (!stream) {
        p.master = open_socket(SOCK_DGRAM, &p.to_master);
        p.slave = open_socket(SOCK_DGRAM, &p.to_slave);
        return p;
    }
    const int on = 1, listener = open_socket(SOCK_STREAM, &p.to_slave);
    must(listen(listener, 1) == 0, "listen");
    p.master = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(p.master, (struct sockaddr*)&p.to_slave, sizeof p.to_slave) == 0, "connect");
    p.slave = accept(listener, NULL, NULL);
    must(p.slave >= 0, "accept");
    close(listener);
    setsockopt(p.master, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(p.slave, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return p;
}

static void give(const pair* p, bool to_slave, size_t length)
{
    static const uint8_t bytes[4 + DATA];
    const int fd = to_slave ? p->master : p->slave;
    const struct sockaddr_in* to = to_slave ? &p->to_slave : &p->to_master;
    const ssize_t k = p->stream
                          ? send(fd, bytes, 4 + length, MSG_NOSIGNAL)
                          : sendto(fd, bytes, length, 0, (const struct sockaddr*)to, sizeof *to);
    must(k > 0, "send");
}

static void take(const pair* p, bool at_slave, size_t length)
{
    uint8_t bytes[4 + DATA];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    const int fd = at_slave ? p->slave : p->master;
    const ssize_t k = p->stream
                          ? recv(fd, bytes, 4 + length, MSG_WAITALL)
                          : recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr*)&from, &size);
    if (k <= 0) { _exit(0); } // the other one has gone
}

// Lengths of the PDUs; those to the slave are negative.
static const int order[] = {-DATA, -9, 4, 3, 3, -5, 4, 3, DATA, 3};

static void floor_step(const pair* p, bool slave)
{
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const bool to_slave = order[i] < 0;
        const size_t length = (size_t)abs(order[i]);
        if (to_slave == slave) {
            take(p, slave, length);
        } else {
            give(p, to_slave, length);
        }
    }
}

static pid_t start_floor(const pair* p)
{
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child > 0) { return child; }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        floor_step(p, true);
    }
}

static double time_floor(const pair* p)
{
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < STEPS; i++) {
        floor_step(p, false);
    }
    return 1e-3 * (double)(crdi_now_ns() - begin) / STEPS;
}

// ---- NRT ---------------------------------------------------------------------------------------

static int compare(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void nrt_case(benchmark* b, uint8_t transport, const char* name, double limit)
{
    uint16_t port = 0;
    int tallies = -1;
    const pid_t slave = start_slaves(1, transport, &port, &tallies);
    const pair p = open_pair(transport == CRD_DCP_TCP);
    const pid_t bare = start_floor(&p);
    session s = {0};
    session_open(&s, 1, &port, transport, CRD_DCP_NRT);
    double ratios[TURNS], floors[TURNS];
    for (int i = 0; i < TURNS; i++) {
        // Before and behind it: what else the machine does meets both.
        const double before = time_floor(&p), own = time_steps(&s), behind = time_floor(&p);
        floors[i] = 0.5 * (before + behind);
        ratios[i] = own / floors[i];
    }
    benchmark_must(s.ctx, crd_dcp_master_stop(s.m));
    session_close(&s);
    kill(bare, SIGKILL);
    kill(slave, SIGKILL);
    waitpid(bare, NULL, 0);
    waitpid(slave, NULL, 0);
    close(p.master);
    close(p.slave);
    close(tallies);
    qsort(ratios, TURNS, sizeof *ratios, compare);
    qsort(floors, TURNS, sizeof *floors, compare);
    const double floor = floors[TURNS / 2], value = floor * ratios[TURNS / 2];
    benchmark_report(b, name, value, "us", floor, limit, "a step of 10 PDUs: %.1f us, bare %.1f us",
                     value, floor);
}

static void udp_case(benchmark* b)
{
    nrt_case(b, CRD_DCP_UDP, "dcp/nrt-udp", 1.3);
}

static void tcp_case(benchmark* b)
{
    nrt_case(b, CRD_DCP_TCP, "dcp/nrt-tcp", 1.5);
}

// ---- SRT ---------------------------------------------------------------------------------------

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

typedef struct balance { // of data PDUs, over all slaves
    int64_t sent, received, lost;
} balance;

// What was sent is received or counted as lost, in either direction.
static void account(const session* s, const tally* tallies, balance* up, balance* down)
{
    for (int i = 0; i < SLAVES; i++) {
        const crd_dcp_slave_status m = crd_dcp_master_status(s->m, i);
        const crd_dcp_slave_counts* c = &tallies[i].slave;
        up->sent += c->data_out;
        up->received += m.data_in + m.data_old + m.data_bad;
        up->lost += m.data_missed - m.data_old;
        down->sent += m.data_out;
        down->received += c->data_in + c->data_old + c->data_dropped;
        down->lost += c->data_missed - c->data_old;
    }
}

// Data go both ways once in a millisecond, in the master from its own clock.
static double exchange(session* s, double seconds)
{
    const double begin = crd_dcp_master_now(s->m), used = cpu_seconds();
    for (int k = 1; k <= (int)(1000 * seconds); k++) {
        benchmark_must(s->ctx, crd_dcp_master_wait(s->m, begin + 0.001 * k));
        crdi_dcp_net_hold(s->net, true);
        for (int i = 0; i < SLAVES; i++) {
            *crd_dcp_master_slot(s->m, i, 0)->real = k;
            benchmark_must(s->ctx, crd_dcp_master_send(s->m, i));
        }
        crdi_dcp_net_hold(s->net, false);
    }
    return (cpu_seconds() - used) / (crd_dcp_master_now(s->m) - begin);
}

static void srt_case(benchmark* b)
{
    const double seconds = benchmark_seconds(b);
    uint16_t ports[SLAVES];
    static tally tallies[SLAVES];
    int from = -1;
    real_time(true);
    const pid_t slaves = start_slaves(SLAVES, CRD_DCP_UDP, ports, &from);
    session s = {0};
    session_open(&s, SLAVES, ports, CRD_DCP_UDP, CRD_DCP_SRT);
    const double share = exchange(&s, seconds);
    benchmark_must(s.ctx, crd_dcp_master_stop(s.m));
    real_time(false);
    struct rusage u;
    kill(slaves, SIGTERM);
    for (int i = 0; i < SLAVES; i++) {
        must(read(from, &tallies[i], sizeof tallies[i]) == sizeof tallies[i], "slaves");
    }
    must(wait4(slaves, NULL, 0, &u) == slaves, "slaves");
    close(from);
    balance up = {0}, down = {0};
    account(&s, tallies, &up, &down);
    const int64_t sent = up.sent + down.sent, lost = up.lost + down.lost;
    const int64_t found = up.received + down.received + lost;
    session_close(&s);
    const double used = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                        1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    benchmark_report(
        b, "dcp/srt-32", (double)(sent + llabs(sent - found)), "PDUs", (double)sent, 1,
        "%lld PDUs in %g s, %lld lost, %lld without account; CPU %.0f %%, slaves %.0f %%",
        (long long)sent, seconds, (long long)lost, (long long)(sent - found), 100 * share,
        100 * used / seconds);
}

const benchmark_case benchmark_dcp_net_cases[] = {
    {"dcp/nrt-udp", udp_case}, {"dcp/nrt-tcp", tcp_case}, {"dcp/srt-32", srt_case}, {NULL, NULL}};
