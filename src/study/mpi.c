// The executor `mpi`: the first rank has the study and hands out its runs; every other rank is a
// pool whose runs come from it and whose results go to it.
//   to a rank:    START workers, chunk of the job and a chunk without runs; POINTS; STOP
//   to the first: WANT a number; ROWS; DONE; FAILED with a sentence
#include "study/plugin/mpi.h"
#include "shared/unit.h"
#include "study/chunk.h"
#include "study/executors.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { START = 1, POINTS, STOP, WANT, ROWS, DONE, FAILED };
enum { MOST = 1 << 30, BUFFERED = 20000 };
static const double put_after = 0.5, renew_after = 15; // s

static const study_mpi* mpi; // once per process, as MPI itself
static bool begun;

typedef struct message {
    int from, tag, length;
    char* bytes; // (length) and a zero
} message;

// One message if there is one: 1.
static int receive(crd_context* ctx, message* m, crd_status* st)
{
    *m = (message){0};
    const int there = mpi->peek(&m->from, &m->tag, &m->length);
    if (there == 0) { return 0; }
    *st = there < 0 ? crdi_fail(ctx, CRD_E_IO, "MPI: no messages come any more") : CRD_OK;
    if (*st < 0) { return 0; }
    m->bytes = crdi_new(ctx, (size_t)m->length + 1);
    if (!m->bytes) {
        *st = CRD_E_MEMORY;
    } else if (mpi->receive(m->bytes, m->length, m->from, m->tag) != 0) {
        *st = crdi_fail(ctx, CRD_E_IO, "MPI: a message from rank %d was lost", m->from);
    }
    return 1;
}

static void rest(long ns) // MPI would wait with all its core
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static crd_status send_bytes(crd_context* ctx, const void* bytes, size_t length, int to, int tag)
{
    return length <= MOST && mpi->send(bytes, (int)length, to, tag) == 0
               ? CRD_OK
               : crdi_fail(ctx, CRD_E_IO, "MPI: a message to rank %d cannot be sent", to);
}

// ---- a rank that works -------------------------------------------------------------------------

typedef struct rank_work {
    crd_context* ctx;
    study_chunk c;
    crd_text rows;
} rank_work;

static crd_status rank_claim(void* self, int most, crd_arena* arena, crdi_study_run** out,
                             int* count)
{
    rank_work* w = self;
    message m;
    study_chunk part;
    crd_status st = send_bytes(w->ctx, &most, sizeof most, 0, WANT);
    *count = 0;
    while (st >= 0 && !receive(w->ctx, &m, &st)) {
        rest(100000);
    }
    if (st < 0) { return st; }
    st = study_chunk_decode(w->ctx, "what the first rank sent", m.bytes, (size_t)m.length, arena,
                            &part);
    if (st >= 0) {
        *out = part.runs;
        *count = part.count;
    }
    crd_free(w->ctx, m.bytes);
    return st;
}

static crd_status rank_put(void* self, const crdi_study_run* const* runs, int count)
{
    rank_work* w = self;
    crd_status st = CRD_OK;
    w->rows.length = 0;
    for (int i = 0; i < count && st >= 0; i++) {
        st = study_rows_add(w->ctx, &w->rows, &w->c.f, runs[i]);
        if (st >= 0 && (w->rows.length > MOST / 4 || i + 1 == count)) {
            st = send_bytes(w->ctx, w->rows.data, w->rows.length, 0, ROWS);
            w->rows.length = 0;
        }
    }
    return st;
}

static crd_status start(crd_context* ctx, const message* m)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    int32_t of_job[2] = {0};
    rank_work w = {.ctx = ctx};
    study_source from = {.self = &w, .claim = rank_claim, .put = rank_put, .total = INT32_MAX};
    crd_arena_init(&arena, ctx);
    crd_text_init(&w.rows, ctx);
    memcpy(of_job, m->bytes, sizeof of_job);
    const crdi_study_job job = {.workers = of_job[0] > 0 ? of_job[0] : 1, .chunk = of_job[1]};
    CRD_TRY(study_chunk_decode(ctx, "what the first rank sent", m->bytes + sizeof of_job,
                               (size_t)m->length - sizeof of_job, &arena, &w.c));
    CRD_TRY(study_check_here(ctx, &w.c.stamp, &w.c.f));
    CRD_TRY(study_pool(ctx, &w.c.f, &job, &from));
fail:
    crd_text_clear(&w.rows);
    crd_arena_clear(&arena);
    return st;
}

static crd_status serve_rank(crd_context* ctx)
{
    crd_status st = CRD_OK;
    for (bool over = false; !over && st >= 0;) {
        message m;
        if (!receive(ctx, &m, &st)) {
            rest(2000000);
            continue;
        }
        over = m.tag == STOP;
        if (st >= 0 && m.tag == START) {
            const crd_status made = start(ctx, &m);
            const char* why = made < 0 ? crd_error_text(ctx) : "";
            st = send_bytes(ctx, why, strlen(why), 0, made < 0 ? FAILED : DONE);
        }
        crd_free(ctx, m.bytes);
    }
    return st;
}

// ---- the first rank ----------------------------------------------------------------------------

typedef struct first_rank {
    crd_context* ctx;
    const crdi_study_job* job;
    study_stamp stamp;
    const crdi_study_file* f;
    int ranks, active, usable;
    bool* failed; // (ranks)
    char why[400];
    crd_arena arena;             // of results that are not put yet
    const crdi_study_run** done; // (done_count)
    size_t done_room;
    int done_count;
    int64_t put_at, begin, made, not_good;
    crdi_study_counts before;
    crd_status st; // no more is handed out
} first_rank;

static crd_status flush(first_rank* r)
{
    const crd_status st = crdi_study_put(r->job->study, r->done, r->done_count);
    r->done_count = 0;
    r->put_at = crdi_now_ns();
    crd_arena_clear(&r->arena);
    crd_arena_init(&r->arena, r->ctx);
    return st;
}

static crd_status answer(first_rank* r, const message* m)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_text bytes;
    crdi_study_run* runs = NULL;
    int most = 0, count = 0;
    const bool stop = r->st < 0 || (r->job->stop && *r->job->stop);
    crd_arena_init(&arena, r->ctx);
    crd_text_init(&bytes, r->ctx);
    if (m->length == (int)sizeof most) { memcpy(&most, m->bytes, sizeof most); }
    if (!stop && most > 0 && most <= 1000000) {
        r->st = crdi_study_claim(r->job->study, most, &arena, &runs, &count);
    }
    CRD_TRY(study_chunk_encode(r->ctx, &r->stamp, r->f, runs, r->st < 0 ? 0 : count, &bytes));
    CRD_TRY(send_bytes(r->ctx, bytes.data, bytes.length, m->from, POINTS));
fail:
    crd_text_clear(&bytes);
    crd_arena_clear(&arena);
    return st;
}

static crd_status take_rows(first_rank* r, const message* m)
{
    size_t at = 0;
    for (;;) {
        crdi_study_run* run = crdi_arena_new(&r->arena, 1, sizeof *run);
        if (run) {
            run->kept = crdi_arena_new(&r->arena, (size_t)r->f->kept_count, sizeof *run->kept);
        }
        const crdi_study_run** grown = crdi_grow(r->ctx, (void*)r->done, &r->done_room,
                                                 (size_t)r->done_count + 1, sizeof *grown);
        if (!run || !run->kept || !grown) { return CRD_E_MEMORY; }
        r->done = grown;
        if (!study_rows_next(r->f, m->bytes, (size_t)m->length, &at, run)) { break; }
        r->done[r->done_count++] = run;
        r->made++;
        r->not_good += run->state != CRDI_RUN_DONE;
    }
    return at == (size_t)m->length
               ? CRD_OK
               : crdi_fail(r->ctx, CRD_E_FORMAT, "rank %d sent nonsense", m->from);
}

static crd_status handle(first_rank* r, const message* m)
{
    switch (m->tag) {
    case WANT:
        return answer(r, m);
    case ROWS:
        return take_rows(r, m);
    case DONE:
        r->active--;
        return CRD_OK;
    case FAILED:
        r->active--;
        r->usable--;
        r->failed[m->from] = true;
        if (!r->why[0]) { snprintf(r->why, sizeof r->why, "%s", m->bytes); }
        crdi_log(r->ctx, CRD_LOG_WARNING, "%s", m->bytes);
        return CRD_OK;
    default:
        return CRD_OK;
    }
}

static void show(first_rank* r)
{
    const crdi_study_counts* c = &r->before;
    const double seconds = (double)(crdi_now_ns() - r->begin) * 1e-9;
    const int64_t finished = c->total - c->by_state[CRDI_RUN_OPEN] - c->by_state[CRDI_RUN_CLAIMED];
    if (!r->job->progress) { return; }
    r->job->progress(r->job->user, finished + r->made, c->total,
                     finished - c->by_state[CRDI_RUN_DONE] + r->not_good,
                     seconds > 0 ? (double)r->made / seconds : 0);
}

static crd_status start_ranks(first_rank* r)
{
    crd_text bytes;
    const int32_t of_job[2] = {r->job->workers, r->job->chunk};
    crd_text_init(&bytes, r->ctx);
    crdi_text_put(&bytes, of_job, sizeof of_job);
    crd_status st = study_chunk_encode(r->ctx, &r->stamp, r->f, NULL, 0, &bytes);
    r->active = 0;
    for (int i = 1; i < r->ranks && st >= 0; i++) {
        if (r->failed[i]) { continue; }
        st = send_bytes(r->ctx, bytes.data, bytes.length, i, START);
        r->active += st >= 0;
    }
    crd_text_clear(&bytes);
    return st;
}

// All usable ranks until there is nothing to claim. Whatever happens here, they all end first.
static crd_status round_of(first_rank* r)
{
    crd_status st = start_ranks(r);
    if (st < 0) { return st; }
    while (r->active) {
        message m;
        crd_status got = CRD_OK;
        if (receive(r->ctx, &m, &got)) {
            if (got >= 0) { got = handle(r, &m); }
            crd_free(r->ctx, m.bytes);
        } else {
            rest(200000);
        }
        const double since = (double)(crdi_now_ns() - r->put_at) * 1e-9;
        if (got >= 0 && r->st >= 0 &&
            ((r->done_count && since > put_after) || r->done_count > BUFFERED ||
             since > renew_after)) {
            r->st = flush(r);
            show(r);
        }
        if (got < 0) { return got; } // MPI itself is broken
    }
    return r->st >= 0 ? flush(r) : r->st;
}

static crd_status run_rounds(first_rank* r)
{
    crd_status st = CRD_OK;
    crdi_study_counts c;
    for (;;) {
        const int64_t made = r->made;
        const int usable = r->usable;
        CRD_TRY(round_of(r));
        if (usable == r->usable || (r->job->stop && *r->job->stop)) { break; }
        CRD_TRY(crdi_study_release(r->job->study)); // what ranks had that failed
        CRD_TRY(crdi_study_count(r->job->study, &c));
        if (c.by_state[CRDI_RUN_OPEN] == 0) { break; }
        if (r->usable == 0 || (made == r->made && usable == r->usable)) {
            return crdi_fail(r->ctx, CRD_E_UNIT, "no rank can make runs: %s", r->why);
        }
    }
fail:
    return st;
}

crd_status study_run_mpi(crd_context* ctx, const crdi_study_job* job)
{
    crd_status st = CRD_OK;
    first_rank r = {.ctx = ctx, .job = job, .f = crdi_study_get_file(job->study)};
    crd_arena_init(&r.arena, ctx);
    r.ranks = mpi->size();
    r.usable = r.ranks - 1;
    r.begin = r.put_at = crdi_now_ns();
    r.failed = crdi_new_array(ctx, (size_t)r.ranks, sizeof *r.failed);
    if (!r.failed) { return CRD_E_MEMORY; }
    CRD_TRY(study_get_stamp(job->study, &r.stamp));
    CRD_TRY(crdi_study_count(job->study, &r.before));
    CRD_TRY(run_rounds(&r));
fail:
    crd_free(ctx, r.failed);
    crd_free(ctx, (void*)r.done);
    crd_arena_clear(&r.arena);
    return st;
}

// ---- the library -------------------------------------------------------------------------------

static crd_status load(crd_context* ctx)
{
    char path[PATH_MAX];
    const char* const without =
        "it is built where CMake finds Open MPI (libopenmpi-dev); --executor local, slurm and list "
        "do without";
    if (mpi) { return CRD_OK; }
    if (!crdi_program_beside("cardan-mpi.so", NULL, R_OK, path)) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "--executor mpi: cardan-mpi.so was not found beside the command nor in "
                         "libexec/cardan: %s",
                         without);
    }
    // MPI's own parts look for its symbols.
    void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const study_mpi* found = library ? dlsym(library, "cardan_mpi") : NULL;
    if (!found || found->format != STUDY_MPI_FORMAT) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "--executor mpi: %s; %s",
                         found ? "cardan-mpi.so is of another version" : dlerror(), without);
    }
    mpi = found;
    return CRD_OK;
}

static bool is_launched(void)
{
    static const char* const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (getenv(signs[i])) { return true; }
    }
    return false;
}

static crd_status too_few(crd_context* ctx)
{
    return crdi_fail(ctx, CRD_E_RANGE,
                     "--executor mpi: one rank hands out runs and the others make them, which are "
                     "not there: mpirun -n 2 cardan study run ... --executor mpi, or more");
}

crd_status study_begin_mpi(crd_context* ctx, bool* ours)
{
    crd_status st = load(ctx);
    *ours = true;
    if (st < 0) { return st; }
    if (!is_launched()) { return too_few(ctx); } // MPI ends processes that nobody launched
    if (mpi->begin() != 0) {
        return crdi_fail(ctx, CRD_E_IO, "--executor mpi: MPI does not begin");
    }
    begun = true;
    if (mpi->size() < 2) {
        study_end_mpi();
        return too_few(ctx);
    }
    if (mpi->rank() == 0) { return CRD_OK; }
    *ours = false;
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) { dup2(nowhere, STDOUT_FILENO); } // what there is to say the first rank says
    st = serve_rank(ctx);
    if (st >= 0) { study_end_mpi(); }
    return st;
}

void study_end_mpi(void)
{
    if (!begun) { return; }
    for (int i = 1; mpi->rank() == 0 && i < mpi->size(); i++) {
        (void)mpi->send("", 0, i, STOP);
    }
    mpi->end();
    begun = false;
}
