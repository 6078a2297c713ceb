// What it costs to keep the clock, and to be watched. CPU time of the process, not time that
// passes: the clock is waited for either way.
#include "benchmark.h"

#include "shared/web.h"

#include <arpa/inet.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS = 30, UNITS = 4, CYCLES = 4000 };

static double cpu_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// ---- the system: four units, thirty signals that move -------------------------------------------

typedef struct {
    double u, y[8];
} many;

static crd_model_status many_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    many* m = self;
    (void)host;
    for (int i = 0; i < 8; i++) {
        m->y[i] = sin((t + h) * (1 + 3 * i)) + 0.1 * m->u;
    }
    *reached = t + h;
    return CRD_MODEL_OK;
}

static crd_model_status many_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void many_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

#define Y(k)                                                                                       \
    {                                                                                              \
        .name = "y" #k, .type = CRD_FLOAT64, .causality = CRD_OUTPUT,                              \
        .variability = CRD_CONTINUOUS, .offset = offsetof(many, y) + (k) * sizeof(double),         \
        .depends = ""                                                                              \
    }
static const crd_model_variable many_rows[] = {
    {.name = "u",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(many, u)},
    Y(0),
    Y(1),
    Y(2),
    Y(3),
    Y(4),
    Y(5),
    Y(6),
    Y(7),
};
static const crd_model many_model = {.name = "many",
                                     .size = sizeof(many),
                                     .variables = many_rows,
                                     .variable_count = sizeof many_rows / sizeof *many_rows,
                                     .default_step = 1e-3,
                                     .default_stop = 1,
                                     .initialize = many_initialize,
                                     .outputs = many_outputs,
                                     .step = many_step};

static crd_system* make_system(crd_context* ctx)
{
    static const char* const names[UNITS] = {"a", "b", "c", "d"};
    crd_system* s = NULL;
    benchmark_must(ctx, crd_system_create(ctx, &s));
    for (int i = 0; i < UNITS; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.source = CRD_UNIT_NATIVE;
        u.name = names[i];
        u.model = &many_model;
        benchmark_must(ctx, crd_system_add_unit(s, &u, NULL));
    }
    for (int i = 0; i < UNITS; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.to_unit = (i + 1) % UNITS;
        c.from = "y0";
        c.to = "u";
        benchmark_must(ctx, crd_system_add_connection(s, &c));
    }
    s->run.step = 1e-3;
    s->run.stop = 1e-3 * CYCLES;
    s->run.threads = 1;
    s->run.isolate = CRD_ISOLATE_NONE;
    s->run.pace.factor = 1;
    return s;
}

// ---- a reader in a process of its own -----------------------------------------------------------

static void send_text(int fd, const char* text)
{
    const size_t n = strlen(text);
    uint8_t frame[4096] = {0x81, 0x80 | 126, (uint8_t)(n >> 8), (uint8_t)n}; // mask 0 0 0 0
    memcpy(frame + 8, text, n);
    (void)!write(fd, frame, n + 8);
}

static _Noreturn void read_for_ever(const char* url)
{
    int port = 0;
    char token[80] = "", request[512];
    if (sscanf(url, "http://127.0.0.1:%d/?token=%79s", &port, token) != 2) { _exit(2); }
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (const struct sockaddr*)&to, sizeof to) != 0) { _exit(2); }
    const int n = snprintf(request, sizeof request,
                           "GET /ws?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                           "Sec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Protocol: cardan.live.1\r\n\r\n",
                           token, port);
    (void)!write(fd, request, (size_t)n);
    static char room[1 << 16];
    bool watches = false;
    for (ssize_t k; (k = read(fd, room, sizeof room)) > 0;) {
        if (watches) { continue; }
        char text[2048] = "{\"id\":1,\"do\":\"watch\",\"signals\":[";
        for (int i = 0; i < SIGNALS; i++) {
            char name[24];
            snprintf(name, sizeof name, "%s\"%c.y%d\"", i ? "," : "", 'a' + i / 8, i % 8);
            strcat(text, name);
        }
        strcat(text, "]}");
        send_text(fd, text);
        watches = true;
    }
    _exit(0);
}

// ---- what is measured ---------------------------------------------------------------------------

typedef struct {
    double cpu, wall; // s of the steps
    int64_t overruns, cycles, frames;
} outcome;

static outcome run(bool watched)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = make_system(ctx);
    crd_master* m = NULL;
    crdi_live* live = NULL;
    crdi_web* web = NULL;
    pid_t reader = 0;
    benchmark_must(ctx, crd_master_create(ctx, s, NULL, &m));
    if (watched) {
        crdi_web_options opt = crdi_web_defaults();
        opt.page = true;
        opt.address = "127.0.0.1:0";
        benchmark_must(ctx, crdi_live_create(ctx, m, NULL, &live));
        benchmark_must(ctx, crdi_web_start(ctx, live, &opt, &web));
    }
    benchmark_must(ctx, crd_master_initialize(m));
    if (watched) {
        reader = fork();
        if (reader == 0) { read_for_ever(crdi_web_url(web)); }
        while (crdi_web_readers(web) == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
    }
    const double cpu = cpu_time();
    const int64_t wall = crdi_now_ns();
    benchmark_must(ctx, crd_master_advance(m, CYCLES));
    outcome o = {.cpu = cpu_time() - cpu, .wall = 1e-9 * (double)(crdi_now_ns() - wall)};
    benchmark_must(ctx, crd_master_finish(m));
    const crd_pace_report* p = crd_master_get_report(m)->pace;
    o.overruns = p->overruns;
    o.cycles = p->cycles;
    crdi_web_stop(web, 0);
    if (reader) {
        kill(reader, SIGKILL);
        waitpid(reader, NULL, 0);
    }
    crdi_live_destroy(live);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return o;
}

// The same number of sleeps with nothing between them.
static double bare_sleeps(void)
{
    const double cpu = cpu_time();
    int64_t next = crdi_now_ns();
    for (int i = 0; i < CYCLES; i++) {
        next += 1000000;
        const struct timespec t = {.tv_sec = (time_t)(next / 1000000000),
                                   .tv_nsec = (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    return cpu_time() - cpu;
}

static void benchmark_watching(benchmark* b)
{
    const double floor = bare_sleeps();
    const outcome alone = run(false), watched = run(true);
    benchmark_report(b, "live/pace", 1e6 * alone.cpu / CYCLES, "us", 1e6 * floor / CYCLES, 0,
                     "CPU per cycle of 1 ms, 4 units; floor: bare sleeps; %lld overruns",
                     (long long)alone.overruns);
    benchmark_report(b, "live/watched", 100 * (watched.cpu - alone.cpu) / watched.wall,
                     "% of a core", 100, 0.05, "30 signals at 20 Hz; overruns %lld, alone %lld",
                     (long long)watched.overruns, (long long)alone.overruns);
}

const benchmark_case benchmark_live_cases[] = {{"live/watching", benchmark_watching}, {NULL, NULL}};
