// A pool of worker processes on this machine, each at the end of a socket. A worker is given a few
// runs ahead; what it has not answered when it ends was not done, and the first of that is what it
// was at. Where runs come from and results go to is the business of a study_source.
#include "shared/archive.h"
#include "study/study.h"

#include <errno.h>
#include <fcntl.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    AHEAD_MOST = 48, // runs that a worker has: all of them fit into the buffers of its socket
    FRAME = 1 << 16,
    KEPT_BYTES = 32 << 20, // that a worker gives back at its end only
    TRIES = 10,            // for a run whose worker was killed by somebody else
    TRIES_OF_MEMORY = 3,   // where the kernel says that it has killed
    TAINTED = 77,          // exit code: it should make no further run; what it made is told
    UNUSABLE = 78,         // it cannot make runs at all, which is told
    NAP_MS = 4,            // that results may wait for others
    BATCH = 512            // results in one transaction
};
static const double commit_after = 0.5, work_ahead = 0.1, renew_after = 15; // s

typedef struct task {
    crdi_study_run* run;
    int tries;
} task;

typedef struct process {
    pid_t pid; // 0: none
    int fd;
    int64_t kills; // of the kernel for want of memory, when it began
    task given[AHEAD_MOST];
    int first, count;
    int64_t begun; // ns, of the first that is given
    char frame[FRAME];
    size_t filled;
} process;

typedef struct pool {
    crd_context* ctx;
    const crdi_study_job* job;
    const study_source* from;
    const crdi_study_file* f;
    process* list;
    int count;
    crd_arena arenas[2];  // of the runs that are claimed: one is filled while the other empties
    int64_t under_way[2]; // runs of each that are not put yet
    int part;             // that is filled
    task* waiting;        // claimed and not given
    int waiting_count;
    const crdi_study_run** done; // (done_count) not put yet
    int done_count;
    size_t done_room, waiting_room;
    bool exhausted; // there was nothing to claim
    bool asked;     // whether there is more, and nothing could be claimed since
    double seconds; // of a run, mean of late
    int64_t put_at, shown_at, begin;
    int64_t finished, failed, total, here;
    bool killed; // a worker ended before it could clean up
    crd_status fatal;
} pool;

// ---- a worker ----------------------------------------------------------------------------------

static bool read_all(int fd, void* to, size_t n)
{
    for (size_t got = 0; got < n;) {
        const ssize_t k = read(fd, (char*)to + got, n - got);
        if (k <= 0) {
            if (k < 0 && errno == EINTR) { continue; }
            return false;
        }
        got += (size_t)k;
    }
    return true;
}

static bool send_frame(int fd, const void* bytes, size_t n)
{
    char frame[FRAME + 4];
    const uint32_t length = (uint32_t)n;
    memcpy(frame, &length, 4);
    memcpy(frame + 4, bytes, n);
    for (size_t sent = 0; sent < n + 4;) {
        const ssize_t k = send(fd, frame + sent, n + 4 - sent, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0) { return false; }
        sent += (size_t)k;
    }
    return true;
}

static void tell_unusable(int fd, const char* why)
{
    char bytes[1024];
    const int64_t none = -1;
    memcpy(bytes, &none, sizeof none);
    snprintf(bytes + sizeof none, sizeof bytes - sizeof none, "%s", why);
    (void)send_frame(fd, bytes, sizeof none + strlen(bytes + sizeof none) + 1);
}

// A run takes and gives back what the run before it did: the kernel is not asked each time.
static void keep_memory(void)
{
#if defined(__GLIBC__)
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TOP_PAD, 1 << 20);
#endif
}

static int work(const crdi_study_file* f, int fd)
{
    keep_memory();
    crd_context* ctx = crd_context_create(NULL);
    crdi_study_worker* w = NULL;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_study_run r = {0};
    r.values = crdi_arena_new(&arena, (size_t)f->factor_count, sizeof *r.values);
    r.kept = crdi_arena_new(&arena, (size_t)f->kept_count, sizeof *r.kept);
    char* bytes = crdi_arena_new(&arena, FRAME, 1);
    int code = 0;
    if (!bytes || crdi_study_worker_create(ctx, f, &w) < 0) {
        tell_unusable(fd, crd_error_text(ctx));
        return UNUSABLE;
    }
    for (;;) {
        uint32_t length = 0;
        bool tainted = false;
        if (!read_all(fd, &length, 4) || length > FRAME || !read_all(fd, bytes, length)) { break; }
        if (!crdi_study_decode_point(f, &r, bytes, length)) { break; }
        crdi_study_worker_run(w, &r, &tainted);
        const size_t n = crdi_study_encode_result(f, &r, bytes, FRAME);
        if (!n || !send_frame(fd, bytes, n)) { break; }
        if (tainted && r.state == CRDI_RUN_CRASHED) { return TAINTED; } // with its memory as it is
        if (tainted) {
            code = TAINTED;
            break;
        }
    }
    crdi_study_worker_destroy(w);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return code;
}

// Processes that the kernel has killed for want of memory; 0: it does not say.
static int64_t memory_kills(void)
{
    char line[128];
    long long n = 0;
    FILE* f = fopen("/proc/vmstat", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "oom_kill %lld", &n) != 1) {}
    if (f) { fclose(f); }
    return n;
}

static crd_status spawn(pool* p, process* w)
{
    int ends[2];
    const pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return crdi_fail(p->ctx, CRD_E_IO, "a socket for a worker: %s", strerror(errno));
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return crdi_fail(p->ctx, CRD_E_IO, "no worker could be started: %s", strerror(errno));
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_IGN); // the terminal's goes to all; the parent ends us
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        for (int i = 0; i < p->count; i++) {
            if (p->list[i].pid) { close(p->list[i].fd); }
        }
        close(ends[0]);
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) { dup2(nowhere, STDOUT_FILENO); } // units may print; rows are not there
        _exit(getppid() == parent ? work(p->f, ends[1]) : 0);
    }
    close(ends[1]);
    w->pid = pid;
    w->fd = ends[0];
    w->kills = memory_kills();
    w->first = w->count = 0;
    w->filled = 0;
    return CRD_OK;
}

// ---- what came of runs -------------------------------------------------------------------------

static crd_status note_done(pool* p, const crdi_study_run* r)
{
    const crdi_study_run** grown =
        crdi_grow(p->ctx, (void*)p->done, &p->done_room, (size_t)p->done_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    p->done = grown;
    grown[p->done_count++] = r;
    p->finished++;
    p->here++;
    p->failed += r->state != CRDI_RUN_DONE;
    return CRD_OK;
}

static crd_status put_results(pool* p)
{
    const crd_status st = p->from->put(p->from->self, p->done, p->done_count);
    for (int i = 0; st >= 0 && i < p->done_count; i++) {
        p->under_way[p->done[i]->part]--;
    }
    if (st >= 0) { p->done_count = 0; }
    p->put_at = crdi_now_ns();
    return st;
}

static task take_first(process* w)
{
    const task t = w->given[w->first];
    w->first = (w->first + 1) % AHEAD_MOST;
    w->count--;
    w->begun = crdi_now_ns();
    return t;
}

// It is given next, or behind all others.
static crd_status wait_again(pool* p, task t, bool last)
{
    task* grown = crdi_grow(p->ctx, p->waiting, &p->waiting_room, (size_t)p->waiting_count + 1,
                            sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    p->waiting = grown;
    if (last) { memmove(grown + 1, grown, (size_t)p->waiting_count * sizeof *grown); }
    grown[last ? 0 : p->waiting_count] = t;
    p->waiting_count++;
    return CRD_OK;
}

static crd_status failed_run(pool* p, crdi_study_run* r, crdi_run_state state, double seconds,
                             const char* format, ...) CRD_PRINTF(5, 6);
static crd_status failed_run(pool* p, crdi_study_run* r, crdi_run_state state, double seconds,
                             const char* format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->reason, sizeof r->reason, format, args);
    va_end(args);
    r->state = state;
    r->seconds = seconds;
    for (int i = 0; i < p->f->kept_count; i++) {
        r->kept[i] = NAN;
    }
    return note_done(p, r);
}

// The worker is gone, or is made to be. What it had goes to others, but for the run it was at.
static crd_status bury(pool* p, process* w, bool hung)
{
    crd_status st = CRD_OK;
    int code = 0;
    const double seconds = (double)(crdi_now_ns() - w->begun) * 1e-9;
    if (hung) { kill(w->pid, SIGKILL); }
    while (waitpid(w->pid, &code, 0) < 0 && errno == EINTR) {}
    close(w->fd);
    w->pid = 0;
    p->killed = true;
    const bool announced = WIFEXITED(code) && WEXITSTATUS(code) == TAINTED;
    if (w->count && !announced) {
        task t = take_first(w);
        const bool killed = WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL;
        const int most = killed && memory_kills() > w->kills ? TRIES_OF_MEMORY : TRIES;
        char again[40] = "";
        if (killed) { snprintf(again, sizeof again, ", %d times: out of memory?", t.tries + 1); }
        if (hung) {
            st =
                failed_run(p, t.run, CRDI_RUN_HUNG, seconds,
                           "it took longer than the timeout of %g s, and was ended", p->f->timeout);
        } else if (killed && ++t.tries < most) {
            st = wait_again(p, t, true);
        } else if (WIFSIGNALED(code)) {
            st = failed_run(p, t.run, CRDI_RUN_CRASHED, seconds,
                            "its process ended by signal %d (%s)%s", WTERMSIG(code),
                            strsignal(WTERMSIG(code)), again);
        } else {
            st = failed_run(p, t.run, CRDI_RUN_CRASHED, seconds,
                            "its process ended by itself with exit code %d", WEXITSTATUS(code));
        }
    }
    while (st >= 0 && w->count) {
        st = wait_again(p, take_first(w), false);
    }
    return st;
}

static crd_status take_frame(pool* p, process* w, const char* bytes, size_t length)
{
    int64_t id = 0;
    if (length >= sizeof id) { memcpy(&id, bytes, sizeof id); }
    if (id == -1) { // it cannot work at all
        p->fatal =
            crdi_fail(p->ctx, CRD_E_UNIT, "%.*s", (int)(length - sizeof id), bytes + sizeof id);
        return p->fatal;
    }
    if (!w->count || id != w->given[w->first].run->id) {
        return crdi_fail(p->ctx, CRD_E_STATE, "a worker answered what it was not asked");
    }
    const task t = take_first(w);
    if (!crdi_study_decode_result(p->f, t.run, bytes, length)) {
        return crdi_fail(p->ctx, CRD_E_STATE, "a worker answered nonsense");
    }
    const double weight = p->here < 20 ? 0.5 : 0.02;
    p->seconds += weight * (t.run->seconds - p->seconds);
    return note_done(p, t.run);
}

static crd_status receive(pool* p, process* w)
{
    crd_status st = CRD_OK;
    const ssize_t k = recv(w->fd, w->frame + w->filled, sizeof w->frame - w->filled, MSG_DONTWAIT);
    if (k < 0) { return errno == EAGAIN || errno == EINTR ? CRD_OK : bury(p, w, false); }
    if (k == 0) { return bury(p, w, false); }
    w->filled += (size_t)k;
    size_t at = 0;
    while (st >= 0 && w->filled - at >= 4) {
        uint32_t length = 0;
        memcpy(&length, w->frame + at, 4);
        if (length > FRAME - 4) {
            return crdi_fail(p->ctx, CRD_E_STATE, "a worker answered nonsense");
        }
        if (w->filled - at < 4 + (size_t)length) { break; }
        st = take_frame(p, w, w->frame + at + 4, length);
        at += 4 + (size_t)length;
    }
    memmove(w->frame, w->frame + at, w->filled - at);
    w->filled -= at;
    return st;
}

// ---- what is to be done ------------------------------------------------------------------------

// So many runs that a worker does not wait for the next one, and loses little when it ends.
static int ahead(const pool* p)
{
    if (p->job->chunk > 0) { return p->job->chunk < AHEAD_MOST ? p->job->chunk : AHEAD_MOST; }
    if (p->here < p->count) { return 2; }
    const double n = work_ahead / fmax(p->seconds, 1e-6);
    return n < 1 ? 1 : n > AHEAD_MOST ? AHEAD_MOST : (int)n;
}

static int running(const pool* p) // runs that workers have
{
    int n = 0;
    for (int i = 0; i < p->count; i++) {
        n += p->list[i].count;
    }
    return n;
}

enum { PART = 4 << 20 }; // bytes of runs until those of the other arena are done
static crd_status claim(pool* p)
{
    crd_status st = CRD_OK;
    crdi_study_run* runs = NULL;
    int count = 0, most = p->count * ahead(p);
    const double rate = p->count / fmax(p->seconds, 1e-6);
    if (p->here >= p->count && rate * commit_after > most) {
        most = (int)fmin(rate * commit_after, 20000);
    }
    if (p->under_way[!p->part] == 0 && p->arenas[p->part].used > PART) {
        p->part = !p->part;
        crd_arena_clear(&p->arenas[p->part]);
        crd_arena_init(&p->arenas[p->part], p->ctx);
    }
    CRD_TRY(p->from->claim(p->from->self, most, &p->arenas[p->part], &runs, &count));
    p->exhausted = count == 0;
    p->asked = p->asked && p->exhausted;
    p->under_way[p->part] += count;
    for (int i = count - 1; i >= 0 && st >= 0; i--) { // the last is given first
        runs[i].part = p->part;
        st = wait_again(p, (task){&runs[i], 0}, false);
    }
fail:
    return st;
}

static crd_status give(pool* p, process* w)
{
    char bytes[FRAME];
    crd_status st = CRD_OK;
    const int most = ahead(p);
    while (p->waiting_count && w->count < most && st >= 0) {
        const task t = p->waiting[p->waiting_count - 1];
        const size_t n = crdi_study_encode_point(p->f, t.run, bytes, sizeof bytes);
        p->waiting_count--;
        if (!n) {
            st = failed_run(p, t.run, CRDI_RUN_FAILED, 0, "its values are too long");
            continue;
        }
        if (w->count == 0) { w->begun = crdi_now_ns(); }
        w->given[(w->first + w->count++) % AHEAD_MOST] = t;
        if (!send_frame(w->fd, bytes, n)) { return bury(p, w, false); }
    }
    return st;
}

static void show(pool* p)
{
    const int64_t now = crdi_now_ns();
    if (!p->job->progress || now - p->shown_at < 200000000) { return; }
    p->shown_at = now;
    const double seconds = (double)(now - p->begin) * 1e-9;
    p->job->progress(p->job->user, p->finished, p->total, p->failed,
                     seconds > 0 ? (double)p->here / seconds : 0);
}

static int patience(const pool* p)
{
    int64_t next = 200;
    const int64_t now = crdi_now_ns();
    for (int i = 0; i < p->count; i++) {
        const process* w = &p->list[i];
        if (!w->pid || !w->count) { continue; }
        const int64_t left =
            (w->begun - now) / 1000000 + (int64_t)fmin(p->f->timeout * 1e3, 1e12) + 1;
        next = left < next ? left : next;
    }
    return next < 0 ? 0 : (int)next;
}

// Each of the workers, with more than it makes in the meantime.
static bool all_have_work(const pool* p)
{
    bool all = p->here >= p->count;
    for (int i = 0; i < p->count && all; i++) {
        all = p->list[i].pid && p->list[i].count * p->seconds > 2e-3 * NAP_MS;
    }
    return all;
}

static crd_status listen_all(pool* p)
{
    struct pollfd fds[256];
    int of[256], n = 0;
    crd_status st = CRD_OK;
    for (int i = 0; i < p->count && n < 256; i++) {
        if (!p->list[i].pid) { continue; }
        fds[n] = (struct pollfd){.fd = p->list[i].fd};
        of[n++] = i;
    }
    // Several results at once are less work than each by itself; who ends is seen at once.
    if (all_have_work(p)) { (void)poll(fds, (nfds_t)n, NAP_MS); }
    for (int i = 0; i < n; i++) {
        fds[i].events = POLLIN;
    }
    if (poll(fds, (nfds_t)n, patience(p)) < 0 && errno != EINTR) {
        return crdi_fail(p->ctx, CRD_E_IO, "waiting for workers: %s", strerror(errno));
    }
    for (int i = 0; i < n && st >= 0; i++) {
        if (fds[i].revents) { st = receive(p, &p->list[of[i]]); }
    }
    const int64_t now = crdi_now_ns();
    for (int i = 0; i < p->count && st >= 0; i++) {
        process* w = &p->list[i];
        if (w->pid && w->count && (double)(now - w->begun) * 1e-9 > p->f->timeout) {
            st = bury(p, w, true);
        }
    }
    return st;
}

// Nothing is left to do. What is open and cannot be claimed is somebody else's.
static crd_status ask_more(pool* p, bool* over)
{
    crd_status st = CRD_OK;
    bool open = false;
    if (p->job->more && !p->asked) {
        if (p->done_count) { CRD_TRY(put_results(p)); }
        CRD_TRY(p->job->more(p->job->more_user, &open));
    }
    p->asked = open;
    p->exhausted = !open;
    *over = !open;
fail:
    return st;
}

static crd_status turn(pool* p, bool* over)
{
    crd_status st = CRD_OK;
    const double since = (double)(crdi_now_ns() - p->put_at) * 1e-9;
    if ((p->done_count && since > commit_after) || p->done_count >= 20000 || since > renew_after) {
        CRD_TRY(put_results(p));
    }
    const int busy = running(p);
    if (!p->exhausted && p->waiting_count < p->count) { CRD_TRY(claim(p)); }
    if (p->waiting_count == 0 && busy == 0) { return ask_more(p, over); }
    for (int i = 0; i < p->count && st >= 0; i++) {
        process* w = &p->list[i];
        if (!w->pid && p->waiting_count) { CRD_TRY(spawn(p, w)); }
        if (w->pid) { st = give(p, w); }
    }
    if (st >= 0) { st = listen_all(p); }
    show(p);
fail:
    return st;
}

static void end_all(pool* p)
{
    for (int i = 0; i < p->count; i++) {
        process* w = &p->list[i];
        if (!w->pid) { continue; }
        if (w->count) {
            kill(w->pid, SIGKILL);
            p->killed = true;
        }
        close(w->fd); // the others see the end of their socket
    }
    for (int i = 0; i < p->count; i++) {
        int code = 0;
        if (p->list[i].pid) {
            while (waitpid(p->list[i].pid, &code, 0) < 0 && errno == EINTR) {}
        }
        p->killed = p->killed || code != 0;
    }
}

crd_status study_pool(crd_context* ctx, const crdi_study_file* f, const crdi_study_job* job,
                      const study_source* from)
{
    crd_status st = CRD_OK;
    pool p = {.ctx = ctx,
              .job = job,
              .from = from,
              .f = f,
              .total = from->total,
              .finished = from->finished,
              .failed = from->failed};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    p.count = job->workers > 0 ? job->workers : cores > 0 ? (int)cores : 1;
    if (p.count > 256) { p.count = 256; }
    crd_arena_init(&p.arenas[0], ctx);
    crd_arena_init(&p.arenas[1], ctx);
    p.begin = p.put_at = crdi_now_ns();
    p.list = crdi_new_array(ctx, (size_t)p.count, sizeof *p.list);
    if (!p.list) { return CRD_E_MEMORY; }
    if (p.total - p.finished < p.count) {
        p.count = p.total > p.finished ? (int)(p.total - p.finished) : 1;
    }
    for (bool over = false; !over && st >= 0;) {
        if (job->stop && *job->stop) { break; }
        st = turn(&p, &over);
    }
    end_all(&p);
    if (p.killed) { crdi_scratch_sweep(); }
    char why[1024];
    snprintf(why, sizeof why, "%s", st < 0 ? crd_error_text(ctx) : "");
    const crd_status put = p.done_count ? put_results(&p) : CRD_OK;
    if (st >= 0) {
        st = put;
    } else {
        crdi_fail(ctx, st, "%s", why);
    }
    crd_free(ctx, p.list);
    crd_free(ctx, p.waiting);
    crd_free(ctx, (void*)p.done);
    crd_arena_clear(&p.arenas[0]);
    crd_arena_clear(&p.arenas[1]);
    return st;
}
