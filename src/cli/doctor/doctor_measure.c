// Two measurements on threads like the cycle thread: how late it wakes, how long a datagram to a
// thread on this machine and back takes.
#include "cli/doctor/doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATAGRAM = 64, PATIENCE_US = 100000, LOOK_NS = 50000000 };

static bool doctor_measure_stopped(const volatile bool* stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

// The next point of the grid behind `now`; those slept over are counted.
static int64_t next_deadline(int64_t deadline, int64_t now, int64_t period, int64_t* missed)
{
    deadline += period;
    if (deadline <= now) {
        const int64_t over = (now - deadline) / period + 1;
        *missed += over;
        deadline += over * period;
    }
    return deadline;
}

void crdi_measure_wakeup(crd_clock clock, int64_t period, int64_t duration,
                         const volatile bool* stop, crdi_latency* out)
{
    const int64_t begin = clock.now(clock.user), end = begin + duration;
    int64_t deadline = begin + period;
    out->done = true;
    out->period = period;
    while (deadline <= end && !doctor_measure_stopped(stop)) {
        clock.sleep_until(clock.user, deadline);
        const int64_t now = clock.now(clock.user);
        if (now < deadline) { continue; } // a signal
        crd_histogram_add(&out->h, now - deadline);
        deadline = next_deadline(deadline, now, period, &out->missed);
    }
}

// ---- threads -----------------------------------------------------------------------------------

typedef struct job {
    crd_context* ctx; // of its own
    crd_pace_spec spec;
    int64_t duration; // ns
    const volatile bool* stop;
    crdi_latency* out;
    int near, far; // sockets of the round trip
    bool done;     // atomic
} job;

static void enter_realtime(job* j)
{
    if (crdi_realtime_enter(j->ctx, &j->spec, &j->out->rights) < 0) {
        snprintf(j->out->problem, sizeof j->out->problem, "%.150s", crd_error_text(j->ctx));
    }
}

static void* wakeup_thread(void* user)
{
    job* j = user;
    enter_realtime(j);
    crdi_measure_wakeup(crd_clock_system(), j->out->period, j->duration, j->stop, j->out);
    crdi_realtime_leave(&j->out->rights);
    __atomic_store_n(&j->done, true, __ATOMIC_RELEASE);
    return NULL;
}

// The answer with this number; older ones came too late and count as missing already.
static bool answered(int fd, int64_t number)
{
    unsigned char data[DATAGRAM];
    for (;;) {
        const ssize_t n = recv(fd, data, sizeof data, 0);
        int64_t got = 0;
        if (n < 0 && errno == EINTR) { continue; }
        if (n < (ssize_t)sizeof got) { return false; }
        memcpy(&got, data, sizeof got);
        if (got == number) { return true; }
    }
}

static void* trip_thread(void* user)
{
    job* j = user;
    crdi_latency* out = j->out;
    const crd_clock clock = crd_clock_system();
    enter_realtime(j);
    out->done = true;
    const int64_t begin = clock.now(NULL), end = begin + j->duration;
    int64_t deadline = begin + out->period;
    unsigned char data[DATAGRAM] = {0};
    for (int64_t number = 1; deadline <= end && !doctor_measure_stopped(j->stop); number++) {
        int64_t over = 0;
        clock.sleep_until(NULL, deadline);
        memcpy(data, &number, sizeof number);
        const int64_t sent = clock.now(NULL);
        if (send(j->near, data, sizeof data, 0) == (ssize_t)sizeof data &&
            answered(j->near, number)) {
            crd_histogram_add(&out->h, clock.now(NULL) - sent);
        } else {
            out->missed++;
        }
        deadline = next_deadline(deadline, clock.now(NULL), out->period, &over);
    }
    crdi_realtime_leave(&out->rights);
    __atomic_store_n(&j->done, true, __ATOMIC_RELEASE);
    return NULL;
}

// Sends back what comes, until it is told that the measurement is over.
static void* echo_thread(void* user)
{
    job* j = user;
    crd_pace_report rights = {0};
    crd_pace_spec spec = j->spec;
    spec.cpu = -1;
    spec.lock = false;
    (void)crdi_realtime_enter(j->ctx, &spec, &rights);
    while (!__atomic_load_n(&j->done, __ATOMIC_ACQUIRE)) {
        unsigned char data[DATAGRAM];
        const ssize_t n = recv(j->far, data, sizeof data, 0);
        if (n > 0) { (void)!send(j->far, data, (size_t)n, 0); }
    }
    crdi_realtime_leave(&rights);
    return NULL;
}

// ---- sockets -----------------------------------------------------------------------------------

static int open_socket(struct sockaddr_in* at)
{
    const struct timeval patience = {.tv_usec = PATIENCE_US};
    socklen_t length = sizeof *at;
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) { return -1; }
    if (bind(fd, (struct sockaddr*)at, sizeof *at) == 0 &&
        getsockname(fd, (struct sockaddr*)at, &length) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

// Connected to each other, so that nobody else's datagrams are taken for ours.
static bool open_pair(job* j)
{
    struct sockaddr_in near, far;
    j->near = open_socket(&near);
    j->far = open_socket(&far);
    return j->near >= 0 && j->far >= 0 &&
           connect(j->near, (struct sockaddr*)&far, sizeof far) == 0 &&
           connect(j->far, (struct sockaddr*)&near, sizeof near) == 0;
}

// ---- both --------------------------------------------------------------------------------------

static int doctor_measure_start_thread(pthread_t* thread, void* (*body)(void*), job* j)
{
    sigset_t block, old; // signals are for the main thread
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    const int error = pthread_create(thread, NULL, body, j);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static void wait_for(crdi_cli* cli, job* j, double duration, const char* what)
{
    const int64_t begin = crdi_now_ns();
    int64_t shown = 0;
    while (!__atomic_load_n(&j->done, __ATOMIC_ACQUIRE)) {
        const struct timespec look = {.tv_nsec = LOOK_NS};
        nanosleep(&look, NULL);
        const int64_t passed = (crdi_now_ns() - begin) / 1000000000;
        if (passed == shown) { continue; }
        shown = passed;
        crdi_progress(cli->ctx, what, (double)passed, ceil(duration), "seconds");
    }
    crdi_progress_end(cli->ctx);
}

static void no_thread(job* j, int error)
{
    snprintf(j->out->problem, sizeof j->out->problem, "no thread: %s", strerror(error));
}

static void measure_wakeup(crdi_cli* cli, const crdi_wish* w, job* j)
{
    pthread_t thread;
    const int error = doctor_measure_start_thread(&thread, wakeup_thread, j);
    if (error) {
        no_thread(j, error);
        return;
    }
    wait_for(cli, j, w->duration, "wake-up latency");
    pthread_join(thread, NULL);
}

static void measure_trip(crdi_cli* cli, const crdi_wish* w, job* j)
{
    pthread_t near, far;
    if (!open_pair(j)) {
        snprintf(j->out->problem, sizeof j->out->problem, "no sockets on 127.0.0.1: %s",
                 strerror(errno));
    } else {
        int error = doctor_measure_start_thread(&far, echo_thread, j);
        if (error) {
            no_thread(j, error);
        } else {
            error = doctor_measure_start_thread(&near, trip_thread, j);
            if (error) {
                no_thread(j, error);
                __atomic_store_n(&j->done, true, __ATOMIC_RELEASE);
            } else {
                wait_for(cli, j, w->duration, "round trip over UDP");
                pthread_join(near, NULL);
            }
            pthread_join(far, NULL);
        }
    }
    if (j->near >= 0) { close(j->near); }
    if (j->far >= 0) { close(j->far); }
}

void crdi_measure(crdi_cli* cli, const crdi_wish* w, const volatile bool* stop,
                  crdi_latency* wakeup, crdi_latency* trip)
{
    crdi_latency* const out[] = {wakeup, trip};
    for (int i = 0; i < 2; i++) {
        job j = {.ctx = crdi_context_child(cli->ctx),
                 .spec = {.priority = w->priority, .cpu = w->cpu, .lock = true},
                 .duration = (int64_t)(w->duration * 1e9),
                 .stop = stop,
                 .out = out[i],
                 .near = -1,
                 .far = -1};
        out[i]->period = w->profile == CRDI_HARD ? 250000 : 1000000;
        if (!j.ctx) {
            snprintf(out[i]->problem, sizeof out[i]->problem, "out of memory");
            continue;
        }
        if (!doctor_measure_stopped(stop)) { (i == 0 ? measure_wakeup : measure_trip)(cli, w, &j); }
        crd_context_destroy(j.ctx);
    }
}
