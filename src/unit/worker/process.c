// A worker process: how it begins, is waited for, and ends.
#include "shared/archive.h"
#include "unit/program.h"
#include "unit/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
// A run that is interrupted waits so long for a step that is under way.
static const int64_t GRACE = 2 * SECOND;
static const int64_t NAP_FIRST = 100000, NAP_LONGEST = 20000000; // between two looks at the process
static const int64_t TELL = 200000000; // a worker that hangs may take so long to say where

// ---- where the executable is -------------------------------------------------------------------

bool crdi_worker_find_own(char out[PATH_MAX])
{
    return crdi_program_beside("fmus/cardan-own-fmus", "CARDAN_WORKER", R_OK, out);
}

crd_status crdi_worker_find(crd_context* ctx, char out[PATH_MAX])
{
    return crdi_program_find(ctx, "cardan-worker", "CARDAN_WORKER",
                             "trust the FMU and choose 'isolate: none'", out);
}

// ---- beginning ---------------------------------------------------------------------------------

// Memory that can be handed to another program is a file without a name, not in /dev/shm. A worker
// that made it shorter would end us with SIGBUS. NULL: there is none, errno says why.
static void* map_file(crdi_worker* w)
{
    void* p = NULL;
    errno = crdi_program_memory("cardan-worker", CRDI_CHANNEL_BYTES, &w->memory_fd, &p);
    return p;
}

// Where files must not be so large (ulimit -f), a segment of System V: it is told by its number, is
// gone with the last that uses it, and has one length for ever.
static void* map_segment(crdi_worker* w)
{
    w->segment = shmget(IPC_PRIVATE, CRDI_CHANNEL_BYTES, IPC_CREAT | SHM_NORESERVE | 0600);
    if (w->segment < 0) { return NULL; }
    void* p = shmat(w->segment, NULL, 0);
    const int error = errno;
    shmctl(w->segment, IPC_RMID, NULL);
    errno = error;
    return p == (void*)-1 ? NULL : p;
}

// Standard output and error are shared with the worker, and so are their flags: what would then be
// written without waiting would be lost. As they were before the first worker.
static void keep_streams(crdi_worker* w)
{
    const crdi_worker* other = w->list ? *w->list : NULL;
    while (other && (other == w || !other->pid)) {
        other = other->next;
    }
    for (int i = 0; i < 2; i++) {
        w->stream_flags[i] = other ? other->stream_flags[i] : fcntl(STDOUT_FILENO + i, F_GETFL);
    }
}

static void put_streams_back(const crdi_worker* w)
{
    for (int i = 0; i < 2; i++) {
        const int now = fcntl(STDOUT_FILENO + i, F_GETFL), before = w->stream_flags[i];
        if (now >= 0 && before >= 0 && now != before) { fcntl(STDOUT_FILENO + i, F_SETFL, before); }
    }
}

static crd_status make_memory(crdi_worker* w, crd_context* ctx)
{
    struct rlimit files;
    w->segment = -1;
    const bool limited =
        getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < CRDI_CHANNEL_BYTES;
    void* p = limited ? map_segment(w) : map_file(w);
    if (!p) {
        return crdi_fail(ctx, CRD_E_MEMORY,
                         "%zu MB of address space to share with a worker process: %s; raise the "
                         "limit (ulimit %s), or trust the FMU and choose 'isolate: none'",
                         CRDI_CHANNEL_BYTES >> 20, strerror(errno), errno == EMFILE ? "-n" : "-v");
    }
    w->memory = p;
    w->control = p;
    w->control->layout = crdi_channel_layout();
    w->control->log_level = (uint32_t)crd_log_level(w->ctx);
    w->control->master = getpid();
    atomic_store(&w->control->spin_ns, w->spin_ns);
    w->used = crdi_channel_areas_at();
    w->number = w->answered = w->slot = w->log_read = 0;
    w->values[0] = w->values[1] = (crdi_worker_block){0};
    w->row = (crdi_worker_row){0};
    w->seats = 0;
    w->life++;
    return CRD_OK;
}

// Its group as well: what the FMU has forked. Only after that is the number free for others.
static void end_process(crdi_worker* w)
{
    if (!w->pid) { return; }
    kill(-w->pid, SIGKILL);
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {}
    kill(-w->pid, SIGKILL);
    w->pid = 0;
    put_streams_back(w);
}

static void clear_process(crdi_worker* w)
{
    if (w->memory) { munmap(w->memory, CRDI_CHANNEL_BYTES); }
    if (w->memory_fd >= 0) { close(w->memory_fd); }
    for (int i = 0; i < 2; i++) {
        if (w->life_fds[i] >= 0) { close(w->life_fds[i]); }
    }
    w->memory = NULL;
    w->control = NULL;
    w->memory_fd = w->life_fds[0] = w->life_fds[1] = -1;
}

// When this process is no more, whatever became of it, the kernel closes what it had open: the end
// of the socket that goes first sends SIGKILL to who owns the other one, which is the session of
// the worker. The worker has neither, so that nothing in it can do anything about it; and
// PR_SET_PDEATHSIG would go by the thread that started it.
static crd_status bind_life(crdi_worker* w, crd_context* ctx)
{
    bool bound = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->life_fds) == 0;
    for (int i = 0; i < 2 && bound; i++) {
        bound = fcntl(w->life_fds[i], F_SETOWN, -w->pid) == 0 &&
                fcntl(w->life_fds[i], F_SETSIG, SIGKILL) == 0 &&
                fcntl(w->life_fds[i], F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
    }
    return bound ? CRD_OK
                 : crdi_fail(ctx, CRD_E_IO,
                             "no socket for a worker process: %s; raise the limit (ulimit -n)",
                             strerror(errno));
}

crd_status crdi_worker_start(crdi_worker* w, crd_context* ctx)
{
    crd_status st = CRD_OK;
    char program[PATH_MAX];
    if (w->pid) { return CRD_OK; }
    clear_process(w);
    w->failed = false;
    w->blamed = -1;
    CRD_TRY(crdi_worker_find(ctx, program));
    if (!w->scratch) { CRD_TRY(crdi_scratch_make(&w->arena, ctx, NULL, &w->scratch)); }
    CRD_TRY(make_memory(w, ctx));
    _Static_assert(CRDI_CHANNEL_FD == 3, "where spawn puts it");
    char segment[16];
    snprintf(segment, sizeof segment, "%d", w->segment);
    if (w->segment >= 0) { w->memory_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); }
    keep_streams(w);
    const int error = crdi_program_spawn(program, "cardan-worker", w->segment < 0 ? NULL : segment,
                                         w->memory_fd, -1, &w->pid);
    for (int32_t i = 0, others = 0; i < w->unit_count && w->users > 1; i++) {
        if (!w->units[i]) { continue; }
        crdi_log(w->ctx, CRD_LOG_INFO, "unit '%s' runs in worker process %d%s",
                 w->units[i]->base.name, (int)w->pid, others++ ? " too" : "");
    }
    if (error) {
        w->pid = 0;
        st = crdi_fail(ctx, CRD_E_IO, "its worker process could not be started: %s: %s", program,
                       strerror(error));
        goto fail;
    }
    CRD_TRY(bind_life(w, ctx));
    return CRD_OK;
fail:
    end_process(w);
    clear_process(w);
    return st;
}

void crdi_worker_stop(crdi_worker* w)
{
    end_process(w);
    clear_process(w);
    if (w->scratch) { (void)crdi_scratch_remove(w->scratch); }
    w->scratch = NULL;
}

size_t crdi_worker_area(crdi_worker* w, size_t bytes)
{
    bytes = crdi_channel_round(bytes);
    if (bytes > CRDI_CHANNEL_BYTES - w->used) { return SIZE_MAX; }
    const size_t at = w->used;
    w->used += bytes;
    return at;
}

size_t crdi_worker_seat_area(crdi_worker* w, int which, size_t bytes)
{
    enum { BLOCK = 4096 - CRDI_CHANNEL_LINE }; // inputs and outputs not at the same place of a page
    crdi_worker_block* b = &w->values[which];
    if (bytes > b->end - b->at) {
        const size_t all = bytes > BLOCK ? bytes : BLOCK, at = crdi_worker_area(w, all);
        if (at == SIZE_MAX) { return at; }
        *b = (crdi_worker_block){at, at + all};
    }
    const size_t at = b->at;
    b->at += bytes;
    return at;
}

void crdi_worker_lock(_Atomic uint32_t* lock)
{
    for (int tries = 0;; tries++) {
        uint32_t open = 0;
        if (atomic_compare_exchange_weak_explicit(lock, &open, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return;
        }
        if (tries > 1000) { nanosleep(&(struct timespec){0, 50000}, NULL); }
    }
}

// ---- log lines ---------------------------------------------------------------------------------

// A terminal obeys them.
static void blank_controls(char* text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) { text[i] = ' '; }
    }
}

// The worker's lines: lengths are its word, so nothing is read beyond what it can have written.
static void take_log(crdi_worker* w)
{
    const uint32_t written = atomic_load_explicit(&w->control->log_written, memory_order_acquire);
    const char* log = w->control->log;
    char line[CRDI_CHANNEL_TEXT];
    uint32_t at = w->log_read, left = written - at;
    put_streams_back(w); // the lines may go there
    if (left > CRDI_CHANNEL_LOG) { left = 0; }
    while (left >= 8) {
        uint32_t head[2];
        for (size_t i = 0; i < sizeof head; i++) {
            ((char*)head)[i] = log[(at + i) % CRDI_CHANNEL_LOG];
        }
        const uint32_t length = head[1];
        if (length > left - 8) { break; }
        const uint32_t kept = length < sizeof line ? length : (uint32_t)sizeof line - 1;
        for (uint32_t i = 0; i < kept; i++) {
            line[i] = log[(at + 8 + i) % CRDI_CHANNEL_LOG];
        }
        line[kept] = 0;
        blank_controls(line, kept);
        at += 8 + length;
        left -= 8 + length;
        crdi_log_on(w->ctx, head[0] <= CRD_LOG_DEBUG ? (crd_level)head[0] : CRD_LOG_DEBUG, line);
    }
    __atomic_store_n(&w->log_read, written, __ATOMIC_RELAXED); // others look without the lock
    atomic_store_explicit(&w->control->log_read, written, memory_order_release);
}

// ---- what went wrong ---------------------------------------------------------------------------

// Where its handler says that it was; else by what it was asked for.
static const char* call_of(const crdi_worker* w, const crdi_proxy* u, char out[64])
{
    static const char* const texts[] = {
#define OP_TEXT(name, text) text,
        CRDI_CHANNEL_OPS(OP_TEXT)
#undef OP_TEXT
    };
    size_t n = 0;
    for (; n < 63; n++) {
        const char c = w->control->call[n];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              c == ' ')) { // "the loading of its library"
            break;
        }
        out[n] = c;
    }
    out[n] = 0;
    if (n) { return out; }
    const char version = strncmp(u->base.info.kind, "FMU ", 4) == 0 ? u->base.info.kind[4] : 0;
    const bool exchange = strstr(u->base.info.kind, "ME") != NULL;
    if ((u->op == CRDI_OP_STEP || w->row.pending) && !exchange) {
        return version == '1' ? "fmiDoStep" : version == '2' ? "fmi2DoStep" : "fmi3DoStep";
    }
    snprintf(out, 64, "a call to %s",
             texts[u->op < CRDI_OP_COUNT && !w->row.pending ? u->op : CRDI_OP_STEP]);
    return out;
}

// Whose call it was: the one the worker says, if it is one of its units.
static crdi_proxy* find_blamed(crdi_worker* w, crdi_proxy* asked)
{
    const uint32_t unit = atomic_load(&w->control->unit);
    crdi_proxy* u = unit < (uint32_t)w->unit_count ? w->units[unit] : NULL;
    return u ? u : asked;
}

static void describe_end(crdi_worker* w, crdi_proxy* asked, int status)
{
    char call[64];
    crdi_proxy* u = find_blamed(w, asked);
    const char* where = call_of(w, u, call);
    w->blamed = u->index;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 126) {
        snprintf(w->why, sizeof w->why, "cardan-worker is of another version than this library");
    } else if (WIFEXITED(status) && u->op == CRDI_OP_SHUT_IN) { // nothing foreign is there yet
        snprintf(w->why, sizeof w->why,
                 "its worker process could not begin (code %d): it is no cardan-worker of this "
                 "version, or has no %zu MB of address space to share (ulimit -v) or too few files "
                 "(ulimit -n)",
                 WEXITSTATUS(status), CRDI_CHANNEL_BYTES >> 20);
    } else if (WIFEXITED(status)) {
        snprintf(w->why, sizeof w->why, "ended its process with exit() in %s, code %d", where,
                 WEXITSTATUS(status));
    } else {
        const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        const bool own = number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
                         number == SIGILL || number == SIGABRT || number == SIGTRAP;
        snprintf(w->why, sizeof w->why, own ? "crashed in %s (%s)" : "lost its process in %s (%s)",
                 where, number ? crdi_signal_text(number) : "gone");
    }
}

static void note_end(crdi_worker* w, crdi_proxy* u, int status)
{
    if (w->failed) { return; }
    take_log(w);
    describe_end(w, u, status);
    w->failed = true;
}

// It still runs, but not as it should: it is asked where it is, then ended.
static void note_hang(crdi_worker* w, crdi_proxy* asked, bool stopped, const char* what)
{
    char call[64];
    if (w->failed) { return; }
    const int64_t end = crdi_now_ns() + (stopped ? 0 : TELL);
    if (!stopped) { kill(w->pid, SIGUSR2); }
    while (!*(volatile char*)w->control->call && crdi_now_ns() < end && kill(w->pid, 0) == 0) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    crdi_proxy* u = find_blamed(w, asked);
    take_log(w);
    snprintf(w->why, sizeof w->why, "%s in %s and was ended", what, call_of(w, u, call));
    w->blamed = u->index;
    w->failed = true;
    end_process(w);
}

crd_status crdi_worker_gone(crdi_proxy* u)
{
    const crdi_worker* w = u->worker;
    u->begun = false;
    u->said = true;
    if (!w->failed) { return crdi_fail(u->base.ctx, CRD_E_STATE, "its worker process has ended"); }
    if (w->blamed == u->index || w->blamed < 0 || !w->units[w->blamed]) {
        return crdi_fail(u->base.ctx, CRD_E_CRASH, "%s", w->why);
    }
    return crdi_fail(u->base.ctx, CRD_E_CRASH, "shares a worker process with unit '%s', which %s",
                     w->units[w->blamed]->base.name, w->why);
}

// ---- waiting -----------------------------------------------------------------------------------

static bool is_interrupted(const crdi_proxy* u)
{
    const crd_experiment* e = &u->experiment;
    return (e->interrupted && __atomic_load_n(e->interrupted, __ATOMIC_RELAXED)) ||
           (e->emergency && __atomic_load_n(e->emergency, __ATOMIC_RELAXED)) ||
           atomic_load_explicit(&u->given_up, memory_order_relaxed);
}

// Looks whether the process is well. false: it is no more; then `why` says it.
static bool look_after(crdi_proxy* u)
{
    crdi_worker* w = u->worker;
    int status = 0;
    if (!w->pid) { return false; }
    const pid_t changed = waitpid(w->pid, &status, WNOHANG | WUNTRACED);
    if (changed == 0 || (changed < 0 && errno == EINTR)) { return true; }
    if (changed > 0 && WIFSTOPPED(status)) {
        char what[64];
        snprintf(what, sizeof what, "was stopped by a signal (%s)", strsignal(WSTOPSIG(status)));
        note_hang(w, u, true, what);
        return false;
    }
    note_end(w, u, changed > 0 ? status : 0);
    kill(-w->pid, SIGKILL); // what it has left behind
    w->pid = 0;
    put_streams_back(w);
    return false;
}

// The ring is full: the worker has to take something first. Under lock. Whoever then waits for one
// that is gone is told.
static void __attribute__((cold, noinline)) wait_for_slot(crdi_proxy* u, uint32_t number)
{
    crdi_worker* w = u->worker;
    int64_t end = crdi_now_ns() + u->limit;
    while (number - atomic_load(&w->control->taken) >= CRDI_CHANNEL_SLOTS && look_after(u)) {
        nanosleep(&(struct timespec){0, 20000}, NULL);
        const int64_t now = crdi_now_ns();
        if (is_interrupted(u) && end > now + GRACE) { end = now + GRACE; }
        if (now > end) { note_hang(w, u, false, "did not take what it was given"); }
    }
}

void crdi_worker_push(crdi_proxy* u, const crdi_request* r)
{
    crdi_worker* w = u->worker;
    crdi_control* c = w->control;
    const uint32_t number = ++w->number;
    // `taken` is looked at twice in a round only: its line is the worker's.
    if ((number & (CRDI_CHANNEL_SLOTS / 2 - 1)) == 0 &&
        number - w->answered >= CRDI_CHANNEL_SLOTS / 2 &&
        number - atomic_load(&c->taken) >= CRDI_CHANNEL_SLOTS / 2) {
        wait_for_slot(u, number + CRDI_CHANNEL_SLOTS / 2);
    }
    w->slot += w->answered != number - 1;
    crdi_request* slot = &c->ring[w->slot & (CRDI_CHANNEL_SLOTS - 1)];
    slot->op = r->op;
    slot->order = r->order;
    slot->unit = (uint32_t)u->index;
    slot->handle = r->handle;
    memcpy(slot->few, r->few, sizeof slot->few);
    slot->t = r->t;
    slot->h = r->h;
    slot->length = r->length;
    if (r->op == CRDI_OP_ROW) {
        w->row.number = number;
    } else if (crdi_request_is_answered(r)) {
        u->number = number;
    }
    u->op = r->op;
    crdi_channel_raise(&slot->number, number);
    if (__builtin_expect(atomic_load_explicit(&c->asleep, memory_order_relaxed), 0)) {
        atomic_fetch_add(&c->bell, 1);
        crdi_channel_wake(&c->bell);
    }
}

// Takes turns between sleeping and looking after the process. Another thread may do the same for
// another unit of the worker.
static bool __attribute__((cold, noinline))
wait_long(crdi_proxy* u, crdi_answer* a, const crdi_channel_look* l)
{
    crdi_worker* w = u->worker;
    const crdi_channel_bed bed = {&a->waited, &a->number};
    const crdi_proxy* running = find_blamed(w, u);
    int64_t begin = crdi_now_ns(), interrupted = 0;
    bool alive = true;
    for (int64_t nap = NAP_FIRST, turns = 0; alive; nap = nap < NAP_LONGEST ? 2 * nap : nap) {
        crdi_channel_sleep(l, &bed, nap);
        if (atomic_load(&a->number) == l->wanted) { break; }
        const int64_t now = crdi_now_ns();
        char what[96] = "";
        const crdi_proxy* runs = find_blamed(w, u);
        if (runs != running && turns++ < w->users) { begin = now; } // a limit is for one call
        running = runs;
        if (is_interrupted(u) && !interrupted) { interrupted = now; }
        if (now - begin > running->limit) {
            snprintf(what, sizeof what, "did not come back within %.4g s",
                     (double)running->limit / 1e9);
        } else if (interrupted && now - interrupted > GRACE) {
            snprintf(what, sizeof what, "did not come back when the run was interrupted");
        }
        crdi_worker_lock(&w->lock);
        if (w->control && w->pid) { take_log(w); }
        if (what[0] && w->pid) { note_hang(w, u, false, what); }
        alive = look_after(u);
        crdi_worker_unlock(&w->lock);
    }
    return !w->failed && atomic_load(&a->number) == l->wanted;
}

// What the worker says of a failure, as users know the file.
crd_status __attribute__((cold, noinline)) crdi_worker_tell(crdi_proxy* u, int32_t status)
{
    char text[CRDI_CHANNEL_TEXT], shown[CRDI_CHANNEL_TEXT];
    uint32_t length = __atomic_load_n(&u->answer->length, __ATOMIC_RELAXED);
    if (length >= sizeof text) { length = sizeof text - 1; }
    memcpy(text, u->text, length);
    text[length] = 0;
    blank_controls(text, length);
    const char* at = u->folder[0] ? strstr(text, u->folder) : NULL;
    if (at) {
        snprintf(shown, sizeof shown, "%.*s%s%s", (int)(at - text), text, u->path,
                 at + strlen(u->folder));
    } else {
        memcpy(shown, text, sizeof text);
    }
    const crd_status st = status >= CRD_E_LIMIT ? (crd_status)status : CRD_E_UNIT;
    return crdi_fail(u->base.ctx, st, "%s", shown);
}

crd_status crdi_worker_take(crdi_proxy* u)
{
    const crdi_answer* a = u->answer;
    const int32_t status = __atomic_load_n(&a->status, __ATOMIC_RELAXED);
    const uint32_t flags = a->flags;
    const int64_t events = a->events; // the master may have set its own count back
    u->base.events = (int64_t)((uint64_t)u->base.events + (uint64_t)events - (uint64_t)u->events);
    u->events = events;
    u->base.next_event = a->next_event;
    if (__builtin_expect((flags & CRDI_WANTS_STOP) && !u->base.wants_stop, 0)) {
        crdi_unit_wish_stop(&u->base);
    } else if (!(flags & CRDI_WANTS_STOP)) {
        u->base.wants_stop = false;
    }
    return __builtin_expect(status < 0, 0) ? crdi_worker_tell(u, status) : CRD_OK;
}

bool crdi_worker_await(crdi_proxy* u, crdi_answer* a, uint32_t number, const double* values)
{
    crdi_worker* w = u->worker;
    const crdi_channel_look l = {&a->number, &a->number, number, (const char*)values, w->spin_ns};
    if (!crdi_channel_spin(&l, &u->vain) && !wait_long(u, a, &l)) { return false; }
    if (__builtin_expect(atomic_load_explicit(&a->waited, memory_order_relaxed), 0) &&
        !crdi_channel_is_cold(u->vain)) {
        atomic_store(&a->waited, 0);
    }
    __atomic_store_n(&w->answered, number,
                     __ATOMIC_RELAXED); // an older one from another thread: no matter
    if (__builtin_expect(a->log != __atomic_load_n(&w->log_read, __ATOMIC_RELAXED), 0)) {
        crdi_worker_lock(&w->lock);
        take_log(w);
        crdi_worker_unlock(&w->lock);
    }
    return true;
}

crd_status crdi_worker_wait(crdi_proxy* u)
{
    crdi_answer* a = u->answer;
    if (__builtin_expect(u->worker->failed, 0)) { return crdi_worker_gone(u); }
    const double* values = u->watched ? u->watched : (const double*)a;
    return crdi_worker_await(u, a, u->number, values) ? crdi_worker_take(u) : crdi_worker_gone(u);
}
