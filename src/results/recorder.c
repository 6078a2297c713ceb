// The cycle thread puts rows of words into a ring; the writer thread makes text of them.
//
//   crd_recorder_begin/end -> ring -> writer: format -> buffer -> write()
//
// The buffer holds whole rows only. Neither side wakes the other, as waking is a system call: the
// writer looks every millisecond when there is nothing to do. Between create and destroy nobody
// allocates or frees, so a recording can be finished after a unit has crashed inside malloc.
#include "results/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 4 << 20,
    RING_LEAST = 16,          // rows
    BUFFER_BYTES = 256 << 10, // written when this much has come together
    NAP_NS = 1000000,         // writer, when there is nothing to do
    NAPS_TO_FLUSH = 200,
    WAIT_NS = 50000, // cycle thread, when the ring is full
    SPINS = 200,
    STACK_BYTES = 256 << 10,
};

typedef struct field {
    crd_type type;
    int word;
} field;

struct crd_recorder {
    crd_context* ctx;
    char* path;
    field* fields;
    int field_count;
    crdi_ring* ring;
    int64_t handed; // rows, by the cycle thread

    // the writer's own
    int fd;
    char* buffer;
    size_t used, room; // bytes in the buffer, bytes that a row may take
    int64_t buffered;  // rows in the buffer
    off_t size;        // bytes of the file, whole rows
    int64_t written;   // rows of the file
    int error;         // errno of the first failure
    int naps;          // since the last write

    pthread_t thread;
    bool started;
    atomic_bool ready;    // by the writer: the header is in the file
    atomic_bool stopping; // by finish
    atomic_bool failed;   // by the writer
    atomic_bool done;     // by the writer: all fields above may be read
};

// ---- the writer --------------------------------------------------------------------------------

static void nap(long ns)
{
    const struct timespec ts = {.tv_nsec = ns};
    nanosleep(&ts, NULL);
}

// What made it to the file ends in the middle of a row: go back to the last whole one.
static void give_up(crd_recorder* r, int error, size_t done)
{
    int64_t rows;
    const off_t end = r->size + (off_t)crdi_csv_whole_rows(r->buffer, done, &rows);
    const int cut = ftruncate(r->fd, end); // fails on a pipe or device, where nothing can be done
    (void)cut;
    r->size = end;
    r->written += rows;
    r->used = 0;
    r->error = error;
    atomic_store(&r->failed, true);
}

static void write_buffer(crd_recorder* r)
{
    size_t done = 0;
    while (done < r->used) {
        const ssize_t n = write(r->fd, r->buffer + done, r->used - done);
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) {
            give_up(r, n < 0 ? errno : EIO, done);
            return;
        }
        done += (size_t)n;
    }
    r->size += (off_t)done;
    r->written += r->buffered;
    r->used = 0;
    r->buffered = 0;
    r->naps = 0;
}

static void format_row(crd_recorder* r, const crd_word* row)
{
    char* at = r->buffer + r->used;
    at += crdi_format_double(at, row[0].real);
    for (int i = 0; i < r->field_count; i++) {
        *at++ = ',';
        at = crdi_csv_value(at, r->fields[i].type, row + r->fields[i].word);
    }
    *at++ = '\n';
    r->used = (size_t)(at - r->buffer);
    r->buffered++;
}

static void* writer(void* arg)
{
    crd_recorder* r = arg;
    write_buffer(r); // the header
    if (!r->error) { atomic_store(&r->ready, true); }
    while (!atomic_load_explicit(&r->failed, memory_order_relaxed)) {
        const bool stopping = atomic_load(&r->stopping); // before looking: nothing comes after it
        const crd_word* row = crdi_ring_read(r->ring);
        if (row) {
            format_row(r, row);
            crdi_ring_release(r->ring);
            if (r->used >= BUFFER_BYTES) { write_buffer(r); }
        } else if (stopping) {
            break;
        } else {
            nap(NAP_NS);
            if (++r->naps >= NAPS_TO_FLUSH) { write_buffer(r); }
        }
    }
    if (!r->error) { write_buffer(r); }
    if (close(r->fd) < 0 && !r->error && errno != EINTR) { // network file systems complain here
        r->error = errno;
        atomic_store(&r->failed, true);
    }
    r->fd = -1;
    atomic_store(&r->done, true);
    return NULL;
}

static crd_status cannot_write(crd_context* ctx, const char* path, int error)
{
    return crdi_fail(ctx, CRD_E_IO, "%s: cannot write the results: %s%s", path, strerror(error),
                     error == ENOENT ? "; the folder has to be there" : "");
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
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&r->thread, &attributes, writer, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    if (error) {
        return crdi_fail(r->ctx, CRD_E_IO, "%s: no thread to write it: %s", r->path,
                         strerror(error));
    }
    r->started = true;
    // The header is in the file before the run begins, so a place without room is known at once.
    while (!atomic_load(&r->ready) && !atomic_load(&r->done)) {
        nap(WAIT_NS);
    }
    if (atomic_load(&r->ready)) { return CRD_OK; }
    return cannot_write(r->ctx, r->path, r->error);
}

// ---- create ------------------------------------------------------------------------------------

static bool is_csv(const char* path)
{
    const size_t n = strlen(path);
    return (n > 4 && strcasecmp(path + n - 4, ".csv") == 0) || strncmp(path, "/dev/", 5) == 0;
}

// Words of a row
static size_t place_fields(crd_recorder* r, const crd_recorder_options* opt)
{
    size_t words = 1;
    r->room = crdi_csv_room(CRD_FLOAT64);
    for (int i = 0; i < opt->column_count; i++) {
        const crd_type type = opt->columns[i].type;
        r->fields[i] = (field){.type = type, .word = (int)words};
        words += crd_type_kind(type) == CRD_BYTES ? CRD_RECORD_BYTES : 1;
        r->room += crdi_csv_room(type);
    }
    return words;
}

static size_t header_room(const crd_recorder_options* opt)
{
    size_t n = 64;
    for (int i = 0; i < opt->column_count; i++) {
        n += CRDI_CSV_TEXT_ROOM(strlen(opt->columns[i].name)) + 1;
        if (opt->unit_row) { n += CRDI_CSV_TEXT_ROOM(strlen(opt->columns[i].unit)) + 3; }
    }
    return n;
}

static char* put_unit(char* at, const char* unit)
{
    char text[256];
    const size_t n = strlen(unit);
    if (n == 0 || n > sizeof text - 2) { return at; } // no real unit is that long
    text[0] = '[';
    memcpy(text + 1, unit, n);
    text[n + 1] = ']';
    return crdi_csv_text(at, text, n + 2);
}

static void format_header(crd_recorder* r, const crd_recorder_options* opt)
{
    char* at = r->buffer;
    memcpy(at, "time", 4);
    at += 4;
    for (int i = 0; i < opt->column_count; i++) {
        *at++ = ',';
        at = crdi_csv_text(at, opt->columns[i].name, strlen(opt->columns[i].name));
    }
    *at++ = '\n';
    if (opt->unit_row) {
        at = put_unit(at, "s");
        for (int i = 0; i < opt->column_count; i++) {
            *at++ = ',';
            at = put_unit(at, opt->columns[i].unit);
        }
        *at++ = '\n';
    }
    r->used = (size_t)(at - r->buffer);
}

crd_status crd_recorder_check_path(crd_context* ctx, const char* path)
{
    if (is_csv(path)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "%s: results are written as CSV, the name should end in .csv", path);
}

crd_status crd_recorder_create(crd_context* ctx, const crd_recorder_options* opt,
                               crd_recorder** out)
{
    crd_status st = crd_recorder_check_path(ctx, opt->path);
    if (st < 0) { return st; }
    st = CRD_E_MEMORY;
    crd_recorder* r = crdi_new(ctx, sizeof *r);
    if (!r) { return st; }
    r->ctx = ctx;
    r->fd = -1;
    r->field_count = opt->column_count;
    r->path = crdi_strdup(ctx, opt->path);
    r->fields = crdi_new_array(ctx, (size_t)opt->column_count, sizeof *r->fields);
    if (!r->path || !r->fields) { goto fail; }
    const size_t row_bytes = place_fields(r, opt) * sizeof(crd_word);
    size_t rows = opt->ring_rows ? opt->ring_rows : RING_BYTES / row_bytes;
    if (rows < RING_LEAST && !opt->ring_rows) { rows = RING_LEAST; }
    CRD_TRY(crdi_ring_create(ctx, row_bytes, rows, &r->ring));
    const size_t header = header_room(opt);
    const size_t buffer = BUFFER_BYTES + r->room;
    r->buffer = crdi_new_array(ctx, buffer > header ? buffer : header, 1);
    if (!r->buffer) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    format_header(r, opt);
    r->fd = open(opt->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (r->fd < 0) {
        st = cannot_write(ctx, opt->path, errno);
        goto fail;
    }
    CRD_TRY(start_writer(r));
    *out = r;
    return CRD_OK;
fail:
    crd_recorder_destroy(r);
    return st;
}

// ---- the cycle thread's side -------------------------------------------------------------------

crd_word* crd_recorder_begin(crd_recorder* r)
{
    for (int tries = 0;; tries++) {
        if (atomic_load_explicit(&r->failed, memory_order_relaxed)) { return NULL; }
        crd_word* row = crdi_ring_write(r->ring);
        if (row) { return row; }
        if (tries >= SPINS) { nap(WAIT_NS); }
    }
}

void crd_recorder_end(crd_recorder* r)
{
    crdi_ring_commit(r->ring);
    r->handed++;
}

int crd_recorder_word(const crd_recorder* r, int column)
{
    return r->fields[column].word;
}

int64_t crd_recorder_rows(const crd_recorder* r)
{
    return atomic_load(&r->done) ? r->written : r->handed;
}

crd_status crd_recorder_finish(crd_recorder* r)
{
    atomic_store(&r->stopping, true);
    while (r->started && !atomic_load(&r->done)) {
        nap(WAIT_NS);
    }
    if (!r->error) { return CRD_OK; }
    return crdi_fail(r->ctx, CRD_E_IO,
                     "%s: writing the results failed: %s; the file holds the first %lld of %lld "
                     "rows",
                     r->path, strerror(r->error), (long long)r->written, (long long)r->handed);
}

void crd_recorder_destroy(crd_recorder* r)
{
    if (!r) { return; }
    if (r->started) {
        atomic_store(&r->stopping, true);
        pthread_join(r->thread, NULL);
    }
    if (r->fd >= 0) { close(r->fd); }
    crdi_ring_destroy(r->ring);
    crdi_free(r->ctx, r->buffer);
    crdi_free(r->ctx, r->fields);
    crdi_free(r->ctx, r->path);
    crdi_free(r->ctx, r);
}
