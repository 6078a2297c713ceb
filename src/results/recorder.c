// The cycle thread puts rows of words into rings, one per raster; the writer thread hands them to
// the format's sink, which makes bytes of them.
//
//   crd_recorder_begin/end -> ring -> writer -> sink: CSV, MDF, MAT -> file
//
// Neither side wakes the other, as waking is a system call: the writer looks every millisecond when
// there is nothing to do. Between create and destroy nobody allocates or frees, so a recording can
// be finished after a unit has crashed inside malloc (attach and MAT excepted).
#include "results/recorder.h"
#include "shared/base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 4 << 20, // all rings together
    RING_LEAST = 16,      // rows
    TURN = 256,           // rows of a raster before the writer looks at the next
    NAP_NS = 1000000,     // writer, when there is nothing to do
    WAIT_NS = 50000,      // cycle thread, when the ring is full
    SPINS = 200,
    EVENTS = 4096,
    EVENTS_KEPT = 64, // of these for start, stop and errors
    THIN_MOST = 1 << 20,
};

struct crd_recorder {
    crd_context* ctx;
    crdi_sink *first, *second; // second NULL: there is no other place
    crdi_sink* sink;           // one of them; they belong to the writer between create and done
    crdi_field* fields;
    size_t* words; // of a row, (raster_count)
    crdi_rows rows;
    crdi_ring** rings; // (raster_count)
    int64_t handed;    // rows, by the cycle thread; with those that nobody reads
    crd_word* nowhere; // a row that nobody reads, as long as the longest
    bool dropping;     // the row under way is that one
    int64_t dropped;   // rows that found the ring full

    // a full disk
    crd_on_full on_full;
    bool never_wait;
    int64_t* seen;             // by the writer: (raster_count) rows since it thins out
    atomic_int thin;           // by the writer: one of so many
    atomic_llong thinned;      // by the writer: rows left out
    atomic_bool moved;         // by the writer: the second file is in use
    atomic_bool slow;          // by the cycle thread: the ring was full
    _Atomic double since;      // by the writer: when the first of this happened, NaN: never
    double time;               // by the writer: of the newest row
    uint64_t free_first, free; // by the writer: bytes on the disk; 0: not known
    size_t pending;            // by the writer: bytes of rows since it looked
    double end;                // of the run, 0: not known
    double thin_time;          // by the writer: when it last began to leave rows out
    uint64_t thin_free;        // by the writer: what was free then
    int error;                 // by the writer: the first that it went on after, 0: none

    crdi_event* events;        // (EVENTS) or NULL; an event that is there stays as it is
    atomic_bool* events_there; // (EVENTS): it is whole
    atomic_int event_count;    // places that are taken
    atomic_llong events_dropped;
    int events_taken; // by the writer

    pthread_t thread;
    bool started;
    atomic_bool ready;    // by the writer: the header is in the file
    atomic_bool stopping; // by finish
    atomic_bool failed;   // by the writer
    atomic_bool done;     // by the writer: the sink's fields may be read
};

static void nap(long ns)
{
    const struct timespec ts = {.tv_nsec = ns};
    nanosleep(&ts, NULL);
}

static crd_status cannot_write(crd_context* ctx, const char* path, int error)
{
    return crdi_fail(ctx, CRD_E_IO, "%s: cannot write the results: %s%s", path, strerror(error),
                     error == ENOENT ? "; the folder has to be there" : "");
}

// ---- what sinks share --------------------------------------------------------------------------

crd_status crdi_sink_init(crdi_sink* s, const crdi_sink_ops* ops, crd_context* ctx,
                          const char* path)
{
    s->ops = ops;
    s->ctx = ctx;
    s->fd = -1;
    s->path = crdi_strdup(ctx, path);
    if (!s->path) { return CRD_E_MEMORY; }
    // Opened anew, a redirected standard output would begin at its first byte.
    s->fd = strcmp(path, "/dev/stdout") == 0
                ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return s->fd < 0 ? cannot_write(ctx, path, errno) : CRD_OK;
}

void crdi_sink_clear(crdi_sink* s)
{
    if (s->fd >= 0) { close(s->fd); }
    s->fd = -1;
    crd_free(s->ctx, s->path);
}

bool crdi_sink_free_bytes(int fd, uint64_t* bytes)
{
    struct stat info;
    struct statvfs v;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || fstatvfs(fd, &v) < 0 || !v.f_blocks) {
        return false;
    }
    *bytes = (uint64_t)v.f_bavail * v.f_frsize;
    return true;
}

bool crdi_sink_is_full(const crdi_sink* s)
{
    return s->error == ENOSPC || s->error == EDQUOT || s->error == EFBIG;
}

bool crdi_sink_write(crdi_sink* s, int fd, const void* bytes, size_t length, int64_t offset)
{
    for (size_t n = 0; n < length;) {
        const ssize_t k = pwrite(fd, (const char*)bytes + n, length - n, offset + (off_t)n);
        if (k < 0 && errno == EINTR) { continue; }
        if (k <= 0) {
            if (!s->error) { s->error = k < 0 ? errno : EIO; }
            return false;
        }
        n += (size_t)k;
    }
    return true;
}

// A folder that is cleaned up during a long run takes the file with it, and writing goes on.
void crdi_sink_check(crdi_sink* s)
{
    struct stat info;
    if (s->error || fstat(s->fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_nlink > 0 ||
        access(s->path, F_OK) == 0) {
        return;
    }
    s->error = ENOENT;
    s->written = 0;
    snprintf(s->reason, sizeof s->reason, "the file was deleted while it was written");
}

void crdi_sink_close(crdi_sink* s)
{
    if (s->fd >= 0 && close(s->fd) < 0 && !s->error && errno != EINTR) {
        s->error = errno; // network file systems complain here
    }
    s->fd = -1;
}

// ---- a full disk -------------------------------------------------------------------------------

static uint64_t free_bytes(const crdi_sink* s)
{
    uint64_t bytes = 0;
    return crdi_sink_free_bytes(s->fd, &bytes) ? bytes : 0;
}

static void note_begin(crd_recorder* r)
{
    if (isnan(atomic_load(&r->since))) { atomic_store(&r->since, r->time); }
}

static void thin_out(crd_recorder* r, const char* why)
{
    const int thin = atomic_load(&r->thin);
    if (thin >= THIN_MOST) { return; }
    atomic_store(&r->thin, 2 * thin);
    note_begin(r);
    if (!r->sink->ops->event) { return; }
    crdi_event e = {.kind = CRD_EVENT_MARK, .time = r->time};
    snprintf(e.text, sizeof e.text, "one of %d rows is recorded from here on: %s", 2 * thin, why);
    r->sink->ops->event(r->sink, &e);
}

// Do rows as they come now take more than nine tenths of what is free, until the end? Without an
// end the last quarter of what was free has to last: at half of it half of the rows go, and so on.
static bool is_short(const crd_recorder* r)
{
    if (!(r->end > r->time) || isinf(r->end)) {
        return r->free < r->free_first / 4 / (uint64_t)atomic_load(&r->thin);
    }
    const double taken = r->free < r->thin_free ? (double)(r->thin_free - r->free) : 0;
    const double rate = taken / (r->time - r->thin_time); // bytes a second of the run
    return taken > (double)r->free_first / 64 && rate * (r->end - r->time) > 0.9 * (double)r->free;
}

// Small parts are written, so that it is known what they take.
static void look_at_space(crd_recorder* r)
{
    if (r->on_full != CRD_ON_FULL_THIN || !r->free_first || r->pending < r->free / 16 + 4096) {
        return;
    }
    r->pending = 0;
    r->sink->ops->flush(r->sink);
    r->free = free_bytes(r->sink);
    if (isnan(r->thin_time)) {
        r->thin_time = r->time;
        r->thin_free = r->free;
    } else if (is_short(r)) {
        thin_out(r, "the disk is getting full");
        r->thin_time = r->time;
        r->thin_free = r->free;
    }
}

// Writing has failed. true: it can go on.
static bool go_on(crd_recorder* r)
{
    crdi_sink* s = r->sink;
    if (r->second && s == r->first) {
        r->second->ops->start(r->second);
        (void)s->ops->hand_over(s, r->second);
        r->sink = r->second;
        note_begin(r);
        atomic_store(&r->moved, true);
        r->free = r->free_first = free_bytes(r->second);
        return !r->sink->error || go_on(r);
    }
    if (r->on_full != CRD_ON_FULL_THIN || !crdi_sink_is_full(s)) { return false; }
    r->error = r->error ? r->error : s->error;
    s->error = 0;
    atomic_fetch_add(&r->thinned, s->ops->hand_over(s, NULL));
    thin_out(r, "the disk is full");
    s->error = 0; // there may be no room for that event
    return true;
}

// ---- the writer --------------------------------------------------------------------------------

// true: there was something
static bool take_rows(crd_recorder* r, int raster)
{
    crdi_ring* ring = r->rings[raster];
    int n = 0;
    for (; n < TURN && !r->sink->error; n++) {
        const crd_word* row = crdi_ring_read(ring);
        if (!row) { break; }
        const int thin = atomic_load_explicit(&r->thin, memory_order_relaxed);
        if (thin > 1 && r->seen[raster]++ % thin) {
            atomic_fetch_add_explicit(&r->thinned, 1, memory_order_relaxed);
        } else {
            r->time = row[0].real;
            r->sink->ops->row(r->sink, raster, row);
            r->pending += r->words[raster] * sizeof *row;
        }
        crdi_ring_release(ring);
    }
    if (n > 0) { look_at_space(r); }
    return n > 0;
}

static void take_events(crd_recorder* r)
{
    while (r->events_taken < EVENTS && !r->sink->error &&
           atomic_load_explicit(&r->events_there[r->events_taken], memory_order_acquire)) {
        r->sink->ops->event(r->sink, &r->events[r->events_taken++]);
    }
}

static void take_last_events(crd_recorder* r)
{
    const long long dropped = atomic_load(&r->events_dropped);
    if (!r->events || !dropped || r->sink->error) { return; }
    const crdi_event* last = &r->events[r->events_taken - 1];
    crdi_event more = {.kind = CRD_EVENT_MARK, .time = last->time};
    snprintf(more.text, sizeof more.text, "%lld more events are not in this file", dropped);
    r->sink->ops->event(r->sink, &more);
}

static void* writer(void* arg)
{
    crd_recorder* r = arg;
    r->sink->ops->start(r->sink);
    if (!r->sink->error) { atomic_store(&r->ready, true); }
    while (!r->sink->error || (atomic_load(&r->ready) && go_on(r))) {
        crdi_sink* s = r->sink;
        const bool stopping = atomic_load(&r->stopping); // before looking: nothing comes after it
        bool any = false;
        for (int i = 0; i < r->rows.raster_count; i++) {
            any = take_rows(r, i) || any;
        }
        if (r->events) { take_events(r); }
        if (atomic_exchange_explicit(&r->slow, false, memory_order_relaxed)) {
            if (r->on_full == CRD_ON_FULL_THIN) { thin_out(r, "the disk is too slow"); }
            note_begin(r);
        }
        if (any) { continue; }
        if (stopping) {
            s->ops->flush(s); // may fail, and then there may be another place
            if (!s->error) { break; }
            continue;
        }
        nap(NAP_NS);
        if (++s->naps >= s->ops->naps_to_flush) {
            s->naps = 0;
            s->ops->flush(s);
        }
    }
    if (r->sink->error) {
        note_begin(r);
        atomic_store(&r->failed, true);
    }
    while (!atomic_load(&r->stopping)) { // MAT's finish allocates: not beside the run
        nap(NAP_NS);
    }
    take_last_events(r);
    r->first->ops->finish(r->first);
    if (r->second && r->sink == r->second) {
        r->second->ops->finish(r->second);
    } else if (r->second) {
        crdi_sink_close(r->second);
        (void)unlink(r->second->path);
    }
    if (r->sink->error) { atomic_store(&r->failed, true); }
    atomic_store(&r->done, true);
    return NULL;
}

// Signals go to the threads that expect them. A blocked SIGXFSZ or SIGPIPE leaves EFBIG or EPIPE.
static crd_status start_writer(crd_recorder* r)
{
    sigset_t all, old;
    sigfillset(&all);
    // Ordinary priority, whatever the caller has; little to lock in memory.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setstacksize(&attributes, r->sink->ops->stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&r->thread, &attributes, writer, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    if (error) {
        return crdi_fail(r->ctx, CRD_E_IO, "%s: no thread to write it: %s", r->sink->path,
                         strerror(error));
    }
    r->started = true;
    // The header is in the file before the run begins, so a place without room is known at once.
    while (!atomic_load(&r->ready) && !atomic_load(&r->failed)) {
        nap(WAIT_NS);
    }
    if (atomic_load(&r->ready)) { return CRD_OK; }
    return cannot_write(r->ctx, r->sink->path, r->sink->error);
}

// ---- create ------------------------------------------------------------------------------------

typedef enum format { CSV, MDF, MAT, NONE } format;

static format format_of(const char* path)
{
    const size_t n = strlen(path);
    const char* end = n > 4 ? path + n - 4 : "";
    if (strcasecmp(end, ".csv") == 0) { return CSV; }
    if (strcasecmp(end, ".mf4") == 0) { return MDF; }
    if (strcasecmp(end, ".mat") == 0) { return MAT; }
    return strncmp(path, "/dev/", 5) == 0 ? CSV : NONE;
}

crd_status crd_recorder_check_path(crd_context* ctx, const char* path)
{
    if (format_of(path) != NONE) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "%s: results are written as CSV, MDF or MATLAB file, the name should end in "
                     ".csv, .mf4 or .mat",
                     path);
}

bool crd_recorder_has_rasters(const char* path)
{
    return format_of(path) == MDF;
}

static void place_fields(crd_recorder* r, const crd_recorder_options* opt)
{
    for (int i = 0; i < r->rows.raster_count; i++) {
        r->words[i] = 1; // time
    }
    for (int i = 0; i < opt->column_count; i++) {
        const crd_column* c = &opt->columns[i];
        size_t* words = &r->words[c->raster];
        r->fields[i] = (crdi_field){.type = c->type, .raster = c->raster, .word = (int)*words};
        *words += crd_type_kind(c->type) == CRD_BYTES ? CRD_RECORD_BYTES : 1;
    }
}

static crd_status make_rings(crd_recorder* r, size_t ring_rows)
{
    size_t most = 0;
    for (int i = 0; i < r->rows.raster_count; i++) {
        const size_t row_bytes = r->words[i] * sizeof(crd_word);
        size_t rows = ring_rows;
        if (rows == 0) {
            rows = RING_BYTES / (size_t)r->rows.raster_count / row_bytes;
            if (rows < RING_LEAST) { rows = RING_LEAST; }
        }
        const crd_status st = crdi_ring_create(r->ctx, row_bytes, rows, &r->rings[i]);
        if (st < 0) { return st; }
        if (r->words[i] > most) { most = r->words[i]; }
    }
    if (r->on_full != CRD_ON_FULL_STOP) {
        r->nowhere = crdi_new_array(r->ctx, most, sizeof *r->nowhere);
    }
    return r->nowhere || r->on_full == CRD_ON_FULL_STOP ? CRD_OK : CRD_E_MEMORY;
}

static crd_status check_rasters(crd_context* ctx, const crd_recorder_options* opt)
{
    if (opt->raster_count > 1 && !crd_recorder_has_rasters(opt->path)) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: %d rasters, but this format has one; .mf4 holds several", opt->path,
                         opt->raster_count);
    }
    for (int i = 0; i < opt->column_count; i++) {
        const int most = opt->raster_count > 1 ? opt->raster_count - 1 : 0;
        if (opt->columns[i].raster < 0 || opt->columns[i].raster > most) {
            return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' is in raster %d, expected 0 to %d",
                             opt->path, opt->columns[i].name, opt->columns[i].raster, most);
        }
    }
    return CRD_OK;
}

static crd_status open_sink(crd_recorder* r, const crd_recorder_options* opt, crdi_sink** out)
{
    crd_status st = CRD_OK;
    switch (format_of(opt->path)) {
    case MDF:
        CRD_TRY(crdi_mdf_sink(r->ctx, opt, &r->rows, out));
        break;
    case MAT:
        CRD_TRY(crdi_mat_sink(r->ctx, opt, &r->rows, 0, out));
        break;
    default:
        CRD_TRY(crdi_csv_sink(r->ctx, opt, &r->rows, out));
        break;
    }
    for (int i = 0; (*out)->ops->attach && i < opt->attachment_count; i++) {
        CRD_TRY((*out)->ops->attach(*out, &opt->attachments[i]));
    }
fail:
    return st;
}

static crd_status open_sinks(crd_recorder* r, const crd_recorder_options* opt)
{
    crd_status st = CRD_OK;
    if (opt->second && format_of(opt->second) != format_of(opt->path)) {
        return crdi_fail(r->ctx, CRD_E_RANGE,
                         "%s: the rest of %s would go there, expected a name with the same ending",
                         opt->second, opt->path);
    }
    CRD_TRY(open_sink(r, opt, &r->first));
    r->sink = r->first;
    r->free = r->free_first = free_bytes(r->first);
    if (opt->second) {
        crd_recorder_options other = *opt;
        other.path = opt->second;
        CRD_TRY(open_sink(r, &other, &r->second));
        struct stat a, b;
        if (fstat(r->first->fd, &a) == 0 && fstat(r->second->fd, &b) == 0 && a.st_dev == b.st_dev &&
            a.st_ino == b.st_ino) {
            return crdi_fail(r->ctx, CRD_E_RANGE,
                             "%s: the rest of the results would go to the same file, expected "
                             "another one",
                             opt->second);
        }
    }
    if (r->sink->ops->event) {
        r->events = crdi_new_array(r->ctx, EVENTS, sizeof *r->events);
        r->events_there = crdi_new_array(r->ctx, EVENTS, sizeof *r->events_there);
        if (!r->events || !r->events_there) { st = CRD_E_MEMORY; }
    }
fail:
    return st;
}

crd_status crd_recorder_create(crd_context* ctx, const crd_recorder_options* opt,
                               crd_recorder** out)
{
    crd_status st = crd_recorder_check_path(ctx, opt->path);
    if (st == CRD_OK) { st = check_rasters(ctx, opt); }
    if (st < 0) { return st; }
    crd_recorder* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    r->ctx = ctx;
    const int rasters = opt->raster_count > 0 ? opt->raster_count : 1;
    r->fields = crdi_new_array(ctx, (size_t)opt->column_count, sizeof *r->fields);
    r->words = crdi_new_array(ctx, (size_t)rasters, sizeof *r->words);
    r->rings = crdi_new_array(ctx, (size_t)rasters, sizeof *r->rings);
    r->seen = crdi_new_array(ctx, (size_t)rasters, sizeof *r->seen);
    r->on_full = opt->on_full;
    r->never_wait = opt->never_wait && opt->on_full != CRD_ON_FULL_STOP;
    r->time = r->thin_time = NAN;
    r->end = opt->end;
    atomic_init(&r->thin, 1);
    atomic_init(&r->since, NAN);
    if (!r->fields || !r->words || !r->rings || !r->seen) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    r->rows = (crdi_rows){.fields = r->fields,
                          .field_count = opt->column_count,
                          .words = r->words,
                          .raster_count = rasters};
    place_fields(r, opt);
    CRD_TRY(make_rings(r, opt->ring_rows));
    CRD_TRY(open_sinks(r, opt));
    CRD_TRY(start_writer(r));
    *out = r;
    return CRD_OK;
fail:
    crd_recorder_destroy(r);
    return st;
}

// ---- the cycle thread's side -------------------------------------------------------------------

static crd_word* begin_dropped(crd_recorder* r)
{
    r->dropping = r->nowhere != NULL;
    return r->nowhere; // NULL: the run should stop
}

crd_word* crd_recorder_begin_raster(crd_recorder* r, int raster)
{
    for (int tries = 0;; tries++) {
        if (atomic_load_explicit(&r->failed, memory_order_relaxed)) { return begin_dropped(r); }
        crd_word* row = crdi_ring_write(r->rings[raster]);
        if (row) { return row; }
        if (r->never_wait) {
            atomic_store_explicit(&r->slow, true, memory_order_relaxed);
            return begin_dropped(r);
        }
        if (tries >= SPINS) { nap(WAIT_NS); }
    }
}

crd_word* crd_recorder_try_raster(crd_recorder* r, int raster)
{
    const bool failed = atomic_load_explicit(&r->failed, memory_order_relaxed);
    return failed ? NULL : crdi_ring_write(r->rings[raster]);
}

void crd_recorder_end_raster(crd_recorder* r, int raster)
{
    r->handed++;
    if (__builtin_expect(r->dropping, 0)) {
        r->dropping = false;
        r->dropped++;
        return;
    }
    crdi_ring_commit(r->rings[raster]);
}

crd_word* crd_recorder_begin(crd_recorder* r)
{
    return crd_recorder_begin_raster(r, 0);
}

void crd_recorder_end(crd_recorder* r)
{
    crd_recorder_end_raster(r, 0);
}

// Cut to whole UTF-8 characters.
static void set_text(crdi_event* e, const char* text)
{
    size_t n = strlen(text);
    if (n >= sizeof e->text) {
        n = sizeof e->text - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) {
            n--;
        }
    }
    memcpy(e->text, text, n);
    e->text[n] = 0;
}

void crd_recorder_event(crd_recorder* r, crd_event_kind kind, double time, const char* text)
{
    if (!r->events) { return; }
    const bool kept = kind == CRD_EVENT_START || kind == CRD_EVENT_STOP || kind == CRD_EVENT_ERROR;
    int n = atomic_load_explicit(&r->event_count, memory_order_relaxed);
    do { // each takes a place of its own, so that nobody waits
        if (n >= (kept ? EVENTS : EVENTS - EVENTS_KEPT)) {
            atomic_fetch_add(&r->events_dropped, 1);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&r->event_count, &n, n + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    r->events[n].kind = kind;
    r->events[n].time = time;
    set_text(&r->events[n], text);
    atomic_store_explicit(&r->events_there[n], true, memory_order_release);
}

crd_status crd_recorder_attach(crd_recorder* r, const crd_attachment* a)
{
    assert(!atomic_load(&r->stopping));
    if (!r->first->ops->attach) { return CRD_OK; }
    const crd_status st = r->first->ops->attach(r->first, a);
    return st < 0 || !r->second ? st : r->second->ops->attach(r->second, a);
}

int crd_recorder_word(const crd_recorder* r, int column)
{
    return r->fields[column].word;
}

static int64_t rows_written(const crd_recorder* r)
{
    return r->first->written + (r->second ? r->second->written : 0);
}

crd_recorder_loss crd_recorder_get_loss(const crd_recorder* r)
{
    const bool moved = atomic_load(&r->moved), failed = atomic_load(&r->failed);
    const bool done = atomic_load(&r->done);
    crd_recorder_loss l = {.lost = r->dropped,
                           .thinned = atomic_load(&r->thinned),
                           .thin = atomic_load(&r->thin),
                           .second = moved ? r->second->path : NULL,
                           .since = atomic_load(&r->since),
                           .reason = ""};
    if (moved || failed || done) { // else the writer may be writing it
        const int error = r->error ? r->error : r->first->error;
        l.reason = error ? strerror(error) : "";
    }
    if (done) { l.lost = r->handed - l.thinned - rows_written(r); }
    return l;
}

int64_t crd_recorder_rows(const crd_recorder* r)
{
    return atomic_load(&r->done) ? rows_written(r) : r->handed - r->dropped;
}

crd_status crd_recorder_finish(crd_recorder* r)
{
    atomic_store(&r->stopping, true);
    while (r->started && !atomic_load(&r->done)) {
        nap(WAIT_NS);
    }
    const crdi_sink* s = r->sink;
    const long long lost = (long long)crd_recorder_get_loss(r).lost, all = (long long)r->handed;
    if (s->error && r->on_full == CRD_ON_FULL_STOP) {
        return crdi_fail(r->ctx, s->error == ENOMEM ? CRD_E_MEMORY : CRD_E_IO,
                         "%s: writing the results failed: %s; the file holds the first %lld of "
                         "%lld rows",
                         s->path, s->reason[0] ? s->reason : strerror(s->error),
                         (long long)rows_written(r), all);
    }
    if (lost == 0 && !s->error) { return CRD_OK; }
    if (!s->error) { s = r->first; }
    const int error = s->error ? s->error : r->error;
    return crdi_fail(r->ctx, error == ENOMEM ? CRD_E_MEMORY : CRD_E_IO,
                     "%s: %lld of %lld rows are not recorded: %s; the run went on without them",
                     s->path, lost, all,
                     s->reason[0] ? s->reason
                     : error      ? strerror(error)
                                  : "the disk was too slow for them");
}

void crd_recorder_destroy(crd_recorder* r)
{
    if (!r) { return; }
    if (r->started) {
        atomic_store(&r->stopping, true);
        pthread_join(r->thread, NULL);
    }
    for (int i = 0; r->rings && i < r->rows.raster_count; i++) {
        crdi_ring_destroy(r->rings[i]);
    }
    if (r->first) { r->first->ops->destroy(r->first); }
    if (r->second) { r->second->ops->destroy(r->second); }
    crd_free(r->ctx, r->nowhere);
    crd_free(r->ctx, r->seen);
    crd_free(r->ctx, r->events);
    crd_free(r->ctx, r->events_there);
    crd_free(r->ctx, r->rings);
    crd_free(r->ctx, r->words);
    crd_free(r->ctx, r->fields);
    crd_free(r->ctx, r);
}
