// The record of a session with test benches: who was in which state when (Rautenberg 2023, Figure 7
// and Table 7), from the boards of the units. It is written after everything else, perhaps behind a
// unit that crashed: nothing is allocated then.
#include "master/master.h"
#include "shared/base_system.h"
#include "shared/board.h"
#include "shared/dcp_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct bench {
    const char* name;
    const crdi_board* from; // NULL: it was never made
    double offset;          // of its times, s
    crdi_board_state board;
    int next;                          // moment
    bool known_state;                  // it was in some state
    double state, phase, source, heat; // as they are at the row that is written
} bench;

typedef struct crdi_session_record {
    crd_context* ctx;
    const char* path;
    char* part; // where it is written
    bench* benches;
    int count;
    double utc; // of time 0, s since 1970
    int fd;
    int error; // errno of the first failure
    char text[4096];
    size_t used;
} record;

// ---- text --------------------------------------------------------------------------------------

static void flush(record* r)
{
    for (size_t done = 0; !r->error && done < r->used;) {
        const ssize_t n = write(r->fd, r->text + done, r->used - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            r->error = n == 0 ? EIO : errno;
        }
    }
    r->used = 0;
}

static void record_session_put_bytes(record* r, const char* bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r->used == sizeof r->text) { flush(r); }
        r->text[r->used++] = bytes[i];
    }
}

static void record_session_put(record* r, const char* text)
{
    record_session_put_bytes(r, text, strlen(text));
}

// ---- rows --------------------------------------------------------------------------------------

// Benches whose stand-in is in use are not waited for; one that is lost is in no state, one that
// has not answered yet is still to be registered.
static int state_of_master(const record* r)
{
    crd_dcp_state states[64];
    int count = 0;
    for (int i = 0; i < r->count && count < 64; i++) {
        const bench* b = &r->benches[i];
        const bool known = b->state >= 0 || !b->known_state;
        if (known && b->source == CRDI_BOARD_BENCH) {
            states[count++] = b->known_state ? (crd_dcp_state)b->state : CRD_DCP_ALIVE;
        }
    }
    return count ? (int)crdi_dcp_master_state_of(states, count, true) : CRDI_DCP_MASTER_REGISTER;
}

static void record_session_put_number(record* r, double x)
{
    char text[32];
    crdi_format_double(text, x);
    record_session_put(r, ",");
    record_session_put(r, text);
}

// RFC 4180: a quote is doubled. Of control characters nothing is left.
static void put_quoted(record* r, const char* text)
{
    record_session_put(r, "\"");
    for (; *text; text++) {
        const char c = (unsigned char)*text < ' ' ? ' ' : *text;
        record_session_put_bytes(r, c == '"' ? "\"\"" : &c, c == '"' ? 2 : 1);
    }
    record_session_put(r, "\"");
}

static void record_session_put_row(record* r, double time, const char* note)
{
    char text[96];
    snprintf(text, sizeof text, "%.6f,%.6f,%d", time, r->utc + time, state_of_master(r));
    record_session_put(r, text);
    for (int i = 0; i < r->count; i++) {
        const bench* b = &r->benches[i];
        record_session_put_number(r, b->state);
        record_session_put_number(r, b->phase);
        record_session_put_number(r, b->source);
        record_session_put_number(r, b->heat);
    }
    record_session_put(r, ",");
    if (*note) { put_quoted(r, note); }
    record_session_put(r, "\n");
}

static void record_session_put_head(record* r)
{
    static const char* const columns[] = {"state", "phase", "source", "heat"};
    char name[256];
    record_session_put(r, "time,utc,master.state");
    for (int i = 0; i < r->count; i++) {
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "%.200s.%s", r->benches[i].name, columns[k]);
            record_session_put(r, ",");
            if (strpbrk(name, ",;\t\" ")) {
                put_quoted(r, name);
            } else {
                record_session_put(r, name);
            }
        }
    }
    record_session_put(r, ",note\n[s],[s],");
    for (int i = 0; i < r->count; i++) {
        record_session_put(r, ",,,,[K]");
    }
    record_session_put(r, ",\n");
}

static const crdi_board_moment* moment_of(const bench* b)
{
    return b->next < b->board.moment_count ? &b->board.moments[b->next] : NULL;
}

static void take_moment(bench* b)
{
    const crdi_board_moment* m = &b->board.moments[b->next++];
    switch (m->what) {
    case CRDI_BOARD_STATE:
        b->state = m->value;
        b->known_state = true;
        break;
    case CRDI_BOARD_PHASE:
        b->phase = m->value;
        break;
    case CRDI_BOARD_SOURCE:
        b->source = m->value;
        break;
    case CRDI_BOARD_HEAT:
        b->heat = m->value;
        break;
    default:
        break;
    }
}

// When the next of the moments of all is; INFINITY: there is none.
static double next_time(const record* r)
{
    double next = INFINITY;
    for (int i = 0; i < r->count; i++) {
        const crdi_board_moment* m = moment_of(&r->benches[i]);
        if (m) { next = fmin(next, m->time + r->benches[i].offset); }
    }
    return next;
}

// Of more moments than a board has room for, the first half of the room and the newest stay.
static void tell_gap(const bench* b, char* text, size_t room)
{
    if (b->board.moments_left_out > 0 && b->next == CRDI_BOARD_MOMENTS / 2 + 1 && !*text) {
        snprintf(text, room, "%s: %lld changes before this one are left out", b->name,
                 (long long)b->board.moments_left_out);
    }
}

// Sensors of a bench that were calibrated, by whom and when. How long the note is then.
static int note_calibrations(const bench* b, char* out, size_t room, int n)
{
    for (int i = 0; i < b->board.calibrations.count && n < (int)room; i++) {
        const crdi_calibration* c = &b->board.calibrations.of[i];
        n +=
            snprintf(out + n, room - (size_t)n, ", %s calibrated %s by %s (gain %.6g, offset %.6g)",
                     c->name, c->date, c->by, c->gain, c->offset);
    }
    return n;
}

static void put_rows(record* r, double end, const char* note)
{
    double time = 0;
    char links[4096] = "";
    for (int i = 0, n = 0; i < r->count && n < (int)sizeof links; i++) {
        const bench* b = &r->benches[i];
        n += snprintf(links + n, sizeof links - (size_t)n, "%s%s: %s",
                      i ? "; " : "security: ", b->name,
                      b->board.security[0] ? b->board.security : "not known yet");
        n = note_calibrations(b, links, sizeof links, n);
    }
    record_session_put_row(r, 0, links);
    for (double next = next_time(r); isfinite(next); next = next_time(r)) {
        char gap[160] = "";
        for (int i = 0; i < r->count; i++) {
            bench* b = &r->benches[i];
            unsigned taken = 0; // kinds: what changes twice at the same time has two rows
            for (const crdi_board_moment* m; (m = moment_of(b)) && m->time + b->offset <= next;) {
                if (taken & 1u << m->what) { break; }
                taken |= 1u << m->what;
                take_moment(b);
                tell_gap(b, gap, sizeof gap);
            }
        }
        time = fmax(time, next);
        record_session_put_row(r, time, gap);
    }
    record_session_put_row(r, fmax(time, end), note);
}

// ---- the file ----------------------------------------------------------------------------------

// All times from the moment when the first board was made. How long ago that was.
static double read_boards(record* r)
{
    const int64_t now = crdi_now_ns();
    int64_t first = now;
    for (int i = 0; i < r->count; i++) {
        const crdi_board* b = r->benches[i].from;
        if (b && crdi_board_born(b) < first) { first = crdi_board_born(b); }
    }
    for (int i = 0; i < r->count; i++) {
        bench* b = &r->benches[i];
        b->next = 0;
        b->known_state = false;
        b->offset = b->phase = b->source = 0;
        b->state = -1;
        b->heat = NAN;
        if (!b->from) { continue; }
        b->offset = 1e-9 * (double)(crdi_board_born(b->from) - first);
        crdi_board_read(b->from, &b->board);
    }
    const double elapsed = 1e-9 * (double)(now - first);
    r->utc = 1e-9 * (double)crdi_clock_ns(CLOCK_REALTIME) - elapsed;
    return elapsed;
}

// Complete or not at all: written beside its place, then renamed; what is not a file as it is.
static crd_status write_record(record* r, const char* note)
{
    struct stat info;
    const bool direct = stat(r->path, &info) == 0 && !S_ISREG(info.st_mode);
    const char* path = direct ? r->path : r->part;
    const double end = read_boards(r);
    r->error = 0;
    r->fd = open(path, (direct ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC) | O_CLOEXEC, 0666);
    if (r->fd < 0) { r->error = errno; }
    record_session_put_head(r);
    put_rows(r, end, note);
    flush(r);
    if (r->fd >= 0 && close(r->fd) != 0 && !r->error) { r->error = errno; }
    if (!r->error && !direct && rename(path, r->path) != 0) { r->error = errno; }
    if (!r->error) { return CRD_OK; }
    if (r->fd >= 0 && !direct) { unlink(path); }
    return crdi_fail(r->ctx, CRD_E_IO, "%s: cannot write the record of the session: %s", r->path,
                     strerror(r->error));
}

static void record_session_destroy(record* r)
{
    if (!r) { return; }
    crd_free(r->ctx, r->part);
    crd_free(r->ctx, r->benches);
    crd_free(r->ctx, r);
}

static crd_status record_session_create(crd_context* ctx, const char* path,
                                        const crd_session_bench* benches, int count, record** out)
{
    record* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    r->ctx = ctx;
    r->path = path;
    r->part = crdi_format(ctx, "%s.%ld.part", path, (long)getpid());
    r->benches = crdi_new_array(ctx, (size_t)count + 1, sizeof *r->benches);
    if (!r->part || !r->benches) {
        record_session_destroy(r);
        return CRD_E_MEMORY;
    }
    for (; r->count < count; r->count++) {
        r->benches[r->count].name = benches[r->count].unit;
        r->benches[r->count].from = benches[r->count].board;
    }
    *out = r;
    return CRD_OK;
}

// ---- from outside ------------------------------------------------------------------------------

crd_status crd_session_write(crd_context* ctx, const char* path, const crd_session_bench* benches,
                             int count, const char* note)
{
    record* r = NULL;
    crd_status st = record_session_create(ctx, path, benches, count, &r);
    if (st == CRD_OK) { st = write_record(r, note ? note : ""); }
    record_session_destroy(r);
    return st;
}

crd_status crdi_session_plan(crd_master* m)
{
    if (!m->plan->sys->results.session) { return CRD_OK; }
    crd_session_bench* benches =
        crdi_arena_new(&m->arena, (size_t)m->plan->member_count + 1, sizeof *benches);
    if (!benches) { return CRD_E_MEMORY; }
    int count = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crd_unit* u = m->plan->members[i].unit;
        const crdi_board* board = crdi_unit_board(u);
        if (board) { benches[count++] = (crd_session_bench){u->name, board}; }
    }
    return record_session_create(m->ctx, m->plan->sys->results.session, benches, count,
                                 &m->record.session);
}

crd_status crdi_session_write(crd_master* m)
{
    char text[CRDI_TEXT];
    if (!m->record.session) { return CRD_OK; }
    crdi_life_end_text(m, text);
    return write_record(m->record.session, m->life.message[0] ? m->life.message : text);
}

void crdi_session_free(crd_master* m)
{
    record_session_destroy(m->record.session);
    m->record.session = NULL;
}
