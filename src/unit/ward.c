// The master's side of the guard: the heart beat, the sockets for it, and a new one when it dies.
#include "shared/unit_ward.h"
#include "unit/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BEAT_MS = 20,
    MOST_SESSIONS = CRDI_WARD_SLAVES,
    START_MS = 10000, // until a guard watches
    LEAVE_MS = 5000   // until it is gone
};

struct crdi_ward {
    crd_context* ctx; // of its own
    crdi_ward_options opt;
    char program[PATH_MAX];
    crdi_ward_page* page;
    int page_fd;
    pid_t guard;
    int socket; // to the guard
    pthread_t thread;
    bool has_thread;
    atomic_bool quit;
    bool said_fence;
    int64_t steps; // as they were last seen

    pthread_mutex_t lock; // of what follows, and of sending
    struct {
        crd_dcp_net* net;        // borrowed
        crdi_ward_message about; // of all its slaves
    } sessions[MOST_SESSIONS];
    int session_count;
    int sockets[CRDI_WARD_SLAVES]; // duplicates, for a guard that comes later
};

static crdi_ward* only; // sessions are made far from whoever made it

crdi_ward* crdi_ward_of_process(void)
{
    return only;
}

const char* crdi_ward_url(const crdi_ward* w)
{
    return w->page->url;
}

// ---- what the guard needs to speak to slaves ----------------------------------------------------

static void send_socket(crdi_ward* w, int slave)
{
    const int session = w->page->slaves[slave].session;
    crdi_ward_message m = w->sessions[session].about;
    m.slave = slave;
    struct iovec part = {&m, sizeof m};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } beside = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &beside,
                             .msg_controllen = sizeof beside.room};
    beside.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&beside.head), &w->sockets[slave], sizeof(int));
    (void)sendmsg(w->socket, &message, MSG_NOSIGNAL); // who is gone is missed by the thread
}

static bool same_socket(int a, int b)
{
    struct stat x, y;
    return a >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino;
}

crd_status crdi_ward_join(crd_context* ctx, crdi_ward* w, crd_dcp_net* net, const char* const* keys,
                          int count, int* session)
{
    crdi_ward_message about = {.key_count = count};
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(keys[i]) + 1;
        if (length > sizeof about.keys - n) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "session.key: the names of %d files have more than %zu characters "
                             "together, which is more than the guard takes: shorter ones, please",
                             count, sizeof about.keys);
        }
        memcpy(about.keys + n, keys[i], length);
        n += length;
    }
    pthread_mutex_lock(&w->lock);
    *session = w->session_count < MOST_SESSIONS ? w->session_count++ : -1;
    if (*session >= 0) {
        w->sessions[*session].net = net;
        w->sessions[*session].about = about;
    }
    pthread_mutex_unlock(&w->lock);
    crdi_dcp_net_set_fence(net, &w->page->fence);
    return CRD_OK;
}

static int add_slave(crdi_ward* w, int session, const crd_dcp_slave_spec* spec)
{
    const int slave = atomic_load(&w->page->slave_count);
    if (slave == CRDI_WARD_SLAVES) { return -1; }
    crdi_ward_slave* s = &w->page->slaves[slave];
    snprintf(s->name, sizeof s->name, "%s", spec->name);
    s->control = spec->control;
    s->mode = (int32_t)spec->mode;
    s->session = session;
    w->sockets[slave] = -1;
    atomic_store(&w->page->slave_count, slave + 1);
    return slave;
}

int crdi_ward_note(crdi_ward* w, int slave, int session, const crd_dcp_master* m, int index,
                   const crd_dcp_slave_spec* spec)
{
    crdi_dcp_hold hold;
    if (session < 0) { return -1; }
    pthread_mutex_lock(&w->lock);
    if (slave < 0) { slave = add_slave(w, session, spec); }
    if (slave >= 0) {
        crdi_ward_slave* s = &w->page->slaves[slave];
        const bool held = crdi_dcp_master_holds(m, index, &hold);
        const int fd = crdi_dcp_net_socket_to(w->sessions[session].net, &s->control);
        if (fd >= 0 && !same_socket(w->sockets[slave], fd)) {
            if (w->sockets[slave] >= 0) { close(w->sockets[slave]); }
            w->sockets[slave] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
            send_socket(w, slave);
        }
        atomic_store(&s->id, hold.id);
        atomic_store(&s->seq, hold.seq);
        atomic_store(&s->state, (uint32_t)hold.state);
        atomic_store(&s->held, held);
    }
    pthread_mutex_unlock(&w->lock);
    return slave;
}

// ---- the process --------------------------------------------------------------------------------

static void nap(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static bool is_gone(crdi_ward* w, int* status)
{
    pid_t gone = 0;
    do {
        gone = waitpid(w->guard, status, WNOHANG);
    } while (gone < 0 && errno == EINTR);
    if (gone == 0) { return false; }
    if (gone < 0) { *status = 0; } // somebody else has waited for it
    w->guard = 0;
    return true;
}

static void end_guard(crdi_ward* w, int patience_ms)
{
    int status = 0;
    for (int ms = 0; w->guard && !is_gone(w, &status); ms += 5) {
        if (ms >= patience_ms) { (void)kill(w->guard, SIGKILL); }
        nap(5);
    }
}

static crd_status start_guard(crdi_ward* w)
{
    int ends[2];
    crdi_ward_page* p = w->page;
    atomic_store(&p->ready, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return crdi_fail(w->ctx, CRD_E_IO, "no socket for the guard: %s", strerror(errno));
    }
    if (w->socket >= 0) { close(w->socket); }
    w->socket = ends[0];
    // Before it begins: they are there for it even if this process is not any more.
    for (int i = 0; i < atomic_load(&p->slave_count); i++) {
        if (w->sockets[i] >= 0) { send_socket(w, i); }
    }
    const int error =
        crdi_program_spawn(w->program, "cardan-guard", NULL, ends[1], w->page_fd, &w->guard);
    close(ends[1]);
    if (error) {
        w->guard = 0;
        return crdi_fail(w->ctx, CRD_E_IO, "%s: %s", w->program, strerror(error));
    }
    int status = 0;
    for (int ms = 0; ms < START_MS && atomic_load(&p->ready) == 0 && !is_gone(w, &status); ms++) {
        atomic_store(&p->beat, crdi_now_ns());
        nap(1);
    }
    if (atomic_load(&p->ready) == 1) { return CRD_OK; }
    const bool says = atomic_load(&p->ready) < 0;
    end_guard(w, 0);
    return crdi_fail(w->ctx, says ? CRD_E_RANGE : CRD_E_IO, "the guard of the benches %s%s",
                     says ? "does not begin: " : "does not begin; 'watchdog: none' goes without it",
                     says ? p->cause : "");
}

// Nobody watches now. Another one does, or the run ends: a machine is not without a guard.
static void replace_guard(crdi_ward* w, const char* why)
{
    char url[sizeof w->page->url];
    memcpy(url, w->page->url, sizeof url);
    crdi_log(w->ctx, CRD_LOG_WARNING, "the guard of the benches %s: another one is started", why);
    if (w->guard) { end_guard(w, 0); }
    pthread_mutex_lock(&w->lock);
    const crd_status st = start_guard(w);
    pthread_mutex_unlock(&w->lock);
    if (st == CRD_OK && strcmp(url, w->page->url) != 0) {
        crdi_log(w->ctx, CRD_LOG_WARNING, "the emergency stop is now at %s", w->page->url);
    }
    if (st == CRD_OK) { return; }
    crdi_log(w->ctx, CRD_LOG_ERROR, "%s: the run is ended, as nobody guards its benches",
             crd_error_text(w->ctx));
    (void)kill(getpid(), SIGTERM); // as if somebody had asked for it: everything comes to rest
}

static void look_after_guard(crdi_ward* w)
{
    int status = 0;
    char why[80] = "ended";
    if (!w->guard) { return; } // the run is on its way to its end
    if (is_gone(w, &status)) {
        if (atomic_load(&w->page->fence)) { return; } // it has done what it had to
        if (WIFSIGNALED(status)) {
            snprintf(why, sizeof why, "was ended by signal %d", WTERMSIG(status));
        }
        replace_guard(w, why);
    } else if (crdi_now_ns() - atomic_load(&w->page->guard_beat) > w->page->watchdog_ns &&
               !atomic_load(&w->page->fence)) {
        replace_guard(w, "does not run any more");
    }
}

// ---- the heart beat -----------------------------------------------------------------------------

static void beat(crdi_ward* w)
{
    crdi_ward_page* p = w->page;
    int64_t steps = 0;
    const crdi_ward_phase phase = w->opt.pulse(w->opt.user, &steps);
    const int64_t now = crdi_now_ns();
    // The first step waits for the common start.
    if (phase != CRDI_WARD_RUNNING || steps != w->steps || steps == 0) {
        atomic_store(&p->cycle_beat, now);
    }
    w->steps = steps;
    atomic_store(&p->phase, (int)phase);
    atomic_store(&p->beat, now);
}

static void* keep_watch(void* user)
{
    crdi_ward* w = user;
    while (!atomic_load(&w->quit)) {
        beat(w);
        if (atomic_load(&w->page->fence) && !w->said_fence) {
            w->said_fence = true;
            w->opt.fenced(w->opt.user, w->page->cause);
        }
        look_after_guard(w);
        nap(BEAT_MS);
    }
    return NULL;
}

// ---- life ---------------------------------------------------------------------------------------

static crd_status keep_text(crd_context* ctx, char* out, size_t room, const char* what,
                            const char* text)
{
    if (!text) { return CRD_OK; }
    if (strlen(text) < room) {
        memcpy(out, text, strlen(text) + 1);
        return CRD_OK;
    }
    return crdi_fail(ctx, CRD_E_RANGE, "the guard: %s has %zu characters, expected %zu at most",
                     what, strlen(text), room - 1);
}

// 128 random bits, or one that was given: letters, digits, '-._~', as it stands in an address.
static crd_status make_token(crdi_ward* w)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    crdi_ward_page* p = w->page;
    uint8_t bits[16];
    if (p->token[0]) {
        const size_t n = strlen(p->token);
        if (n >= 8 && n <= 128 && p->token[strspn(p->token, plain)] == 0) { return CRD_OK; }
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "the guard's token has %zu characters, expected 8 to 128 letters, digits "
                         "and '-._~'",
                         n);
    }
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        return crdi_fail(w->ctx, CRD_E_IO, "the guard: the system gives no random numbers");
    }
    for (size_t i = 0; i < sizeof bits; i++) {
        snprintf(p->token + 2 * i, 3, "%02x", bits[i]);
    }
    return CRD_OK;
}

static crd_status fill_page(crdi_ward* w)
{
    crd_status st = CRD_OK;
    crdi_ward_page* p = w->page;
    const crdi_ward_options* o = &w->opt;
    p->layout = sizeof *p;
    p->master = (int32_t)getpid();
    p->watchdog_ns = llround(1e9 * o->watchdog);
    p->cycle_ns = o->period > 0 ? llround(1e9 * (o->watchdog + 2 * o->period)) : 0;
    atomic_store(&p->beat, crdi_now_ns());
    atomic_store(&p->cycle_beat, crdi_now_ns());
    atomic_store(&p->guard_beat, crdi_now_ns());
    CRD_TRY(keep_text(w->ctx, p->address, sizeof p->address, "its address", o->address));
    CRD_TRY(keep_text(w->ctx, p->token, sizeof p->token, "its token", o->token));
    CRD_TRY(keep_text(w->ctx, p->input, sizeof p->input, "its input", o->input));
    CRD_TRY(keep_text(w->ctx, p->results, sizeof p->results, "the result file", o->results));
    CRD_TRY(keep_text(w->ctx, p->session, sizeof p->session, "the session record", o->session));
    CRD_TRY(keep_text(w->ctx, p->note, sizeof p->note, "the note", o->note));
    st = make_token(w);
fail:
    return st;
}

static crd_status start_thread(crdi_ward* w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->has_thread = pthread_create(&w->thread, NULL, keep_watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (w->has_thread) {
        (void)pthread_setname_np(w->thread, "cardan-ward");
        return CRD_OK;
    }
    return crdi_fail(w->ctx, CRD_E_STATE, "no thread for the heart beat: too many of them");
}

crd_status crdi_ward_create(crd_context* ctx, const crdi_ward_options* opt, crdi_ward** out)
{
    crd_status st = CRD_OK;
    void* memory = NULL;
    crd_context* own = crdi_context_child(ctx);
    crdi_ward* w = own ? crdi_new(own, sizeof *w) : NULL;
    if (!w) {
        crd_context_destroy(own);
        return crdi_fail(ctx, CRD_E_MEMORY, "out of memory");
    }
    w->ctx = own;
    w->opt = *opt;
    w->page_fd = w->socket = -1;
    pthread_mutex_init(&w->lock, NULL);
    CRD_TRY(crdi_program_find(own, "cardan-guard", "CARDAN_GUARD", "'watchdog: none'", w->program));
    const int error =
        crdi_program_memory("cardan-guard", sizeof(crdi_ward_page), &w->page_fd, &memory);
    if (error) {
        st = crdi_fail(own, CRD_E_IO, "no memory for the guard: %s", strerror(error));
        goto fail;
    }
    w->page = memory;
    CRD_TRY(fill_page(w));
    CRD_TRY(start_guard(w));
    CRD_TRY(start_thread(w));
    *out = only = w;
    return CRD_OK;
fail:
    crdi_fail(ctx, st, "%s", crd_error_text(own));
    crdi_ward_destroy(w);
    return st;
}

void crdi_ward_let_go(crdi_ward* w)
{
    static const int64_t minute = INT64_C(60000000000);
    atomic_store(&w->quit, true);
    if (w->has_thread) { pthread_join(w->thread, NULL); }
    w->has_thread = false;
    if (!w->page) { return; }
    atomic_store(&w->page->phase, CRDI_WARD_ENDING);
    atomic_store(&w->page->beat, crdi_now_ns() + minute); // the rest has no heart beat
}

void crdi_ward_destroy(crdi_ward* w)
{
    if (!w) { return; }
    only = only == w ? NULL : only;
    crdi_ward_let_go(w);
    if (w->page) { atomic_store(&w->page->phase, CRDI_WARD_OVER); }
    if (w->socket >= 0) { close(w->socket); }
    end_guard(w, LEAVE_MS);
    const int count = w->page ? atomic_load(&w->page->slave_count) : 0;
    for (int i = 0; i < count; i++) {
        if (w->sockets[i] >= 0) { close(w->sockets[i]); }
    }
    if (w->page) { munmap(w->page, sizeof *w->page); }
    if (w->page_fd >= 0) { close(w->page_fd); }
    pthread_mutex_destroy(&w->lock);
    crd_context* ctx = w->ctx;
    crd_free(ctx, w);
    crd_context_destroy(ctx);
}
