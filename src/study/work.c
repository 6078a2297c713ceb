// One chunk, made here: a pool whose runs come from a file and whose results are appended to one.
#include "study/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct work {
    crd_context* ctx;
    study_chunk c;
    int next; // that was not given yet
    int fd;
    const char* path; // of the rows
    crd_text rows;
    int64_t made;
} work;

static crd_status claim(void* self, int most, crd_arena* arena, crdi_study_run** out, int* count)
{
    work* w = self;
    (void)arena;
    *out = w->c.runs + w->next;
    *count = w->c.count - w->next < most ? w->c.count - w->next : most;
    w->next += *count;
    return CRD_OK;
}

static crd_status write_out(work* w)
{
    for (size_t at = 0; at < w->rows.length;) {
        const ssize_t k = write(w->fd, w->rows.data + at, w->rows.length - at);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0) {
            return crdi_fail(w->ctx, CRD_E_IO,
                             "%s: results cannot be written: %s; what was written counts, and the "
                             "same command makes the rest",
                             w->path, strerror(errno));
        }
        at += (size_t)k;
    }
    w->rows.length = 0;
    return CRD_OK;
}

static crd_status put(void* self, const crdi_study_run* const* runs, int count)
{
    work* w = self;
    crd_status st = CRD_OK;
    for (int i = 0; i < count && st >= 0; i++) {
        st = study_rows_add(w->ctx, &w->rows, &w->c.f, runs[i]);
    }
    if (st >= 0 && w->rows.length) { st = write_out(w); }
    if (st >= 0) { w->made += count; }
    return st;
}

// Runs that a process before has made are not made again.
static crd_status skip_done(work* w, const char* path, crd_arena* arena)
{
    crd_status st = CRD_OK;
    crd_text bytes;
    size_t at = 0;
    int left = 0;
    const crdi_file_need need = {.what = "results of a chunk", .most = 1 << 30};
    crdi_study_run r = {.kept = crdi_arena_new(arena, (size_t)w->c.f.kept_count, sizeof *r.kept)};
    bool* done = crdi_arena_new(arena, (size_t)w->c.count, sizeof *done);
    crd_text_init(&bytes, w->ctx);
    CRD_TRY(crdi_arena_status(arena));
    CRD_TRY(crdi_file_read(w->ctx, path, &need, &bytes));
    CRD_TRY(study_rows_open(w->ctx, path, bytes.data, bytes.length, w->c.stamp.identity, &at));
    while (at && study_rows_next(&w->c.f, bytes.data, bytes.length, &at, &r)) {
        // Runs of a chunk are in the order of their numbers.
        int low = 0, high = w->c.count;
        while (low < high) {
            const int middle = low + (high - low) / 2;
            if (w->c.runs[middle].id < r.id) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low < w->c.count && w->c.runs[low].id == r.id) { done[low] = true; }
    }
    for (int i = 0; i < w->c.count; i++) {
        if (!done[i]) { w->c.runs[left++] = w->c.runs[i]; }
    }
    w->c.count = left;
fail:
    crd_text_clear(&bytes);
    return st;
}

// "folder/7" of "folder/7.chunk", and the rows of others there.
static crd_status look_beside(work* w, const char* chunk, crd_arena* arena)
{
    crd_status st = CRD_OK;
    char host[256] = "", whole[PATH_MAX];
    gethostname(host, sizeof host - 1);
    for (char* c = host; *c; c++) {
        if (*c == '/') { *c = '_'; }
    }
    if (!realpath(chunk, whole)) { return crdi_file_fail(w->ctx, chunk, errno); }
    char* name = strrchr(whole, '/') + 1;
    char* dot = strrchr(name, '.');
    if (dot) { *dot = 0; }
    const size_t n = strlen(name);
    const char* folder_path = crdi_arena_text(arena, whole, (size_t)(name - whole));
    w->path = crdi_arena_format(arena, "%s.%s-%ld-%llx.rows", whole, host, (long)getpid(),
                                (unsigned long long)crdi_now_ns());
    DIR* folder = folder_path ? opendir(folder_path) : NULL;
    for (const struct dirent* e = folder ? readdir(folder) : NULL; e && st >= 0;
         e = readdir(folder)) {
        if (strncmp(e->d_name, name, n) != 0 || e->d_name[n] != '.' ||
            !crdi_ends_with(e->d_name, ".rows")) {
            continue;
        }
        const char* path = crdi_arena_format(arena, "%s%s", folder_path, e->d_name);
        st = path ? skip_done(w, path, arena) : CRD_E_MEMORY;
        if (st == CRD_E_NOT_FOUND) { st = CRD_OK; } // it was collected just now
    }
    if (folder) { closedir(folder); }
    if (st >= 0) { st = crdi_arena_status(arena); }
    return st;
}

static crd_status open_rows(work* w)
{
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    return w->fd >= 0 ? CRD_OK : crdi_file_fail(w->ctx, w->path, errno);
}

static crd_status read_chunk(work* w, const char* path, crd_arena* arena)
{
    crd_text bytes;
    const bool in = strcmp(path, "-") == 0;
    const crdi_file_need need = {.what = "a chunk of a study",
                                 .most = 1 << 30,
                                 .shown = in ? "standard input" : NULL,
                                 .pipes = in};
    crd_text_init(&bytes, w->ctx);
    crd_status st = in ? crdi_file_read_from(w->ctx, STDIN_FILENO, path, &need, &bytes)
                       : crdi_file_read(w->ctx, path, &need, &bytes);
    if (st >= 0) {
        st = study_chunk_decode(w->ctx, in ? "standard input" : path, bytes.data, bytes.length,
                                arena, &w->c);
    }
    crd_text_clear(&bytes);
    return st;
}

static crd_status close_out(work* w, crd_status st)
{
    if (w->fd < 0 || w->fd == STDOUT_FILENO) { return st; }
    const bool good = fsync(w->fd) == 0;
    const int why = errno;
    if (close(w->fd) == 0 && good) { return st; }
    return st < 0 ? st
                  : crdi_fail(w->ctx, CRD_E_IO, "%s: results cannot be written: %s", w->path,
                              strerror(good ? errno : why));
}

crd_status crdi_study_work(crd_context* ctx, const char* chunk, const crdi_study_job* job,
                           int64_t* made, int64_t* of)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    const bool in = strcmp(chunk, "-") == 0;
    work w = {.ctx = ctx, .fd = in ? STDOUT_FILENO : -1, .path = "standard output"};
    study_source from = {.self = &w, .claim = claim, .put = put};
    crd_arena_init(&arena, ctx);
    crd_text_init(&w.rows, ctx);
    *made = *of = 0;
    CRD_TRY(read_chunk(&w, chunk, &arena));
    *of = w.c.count;
    if (!in) { CRD_TRY(look_beside(&w, chunk, &arena)); }
    if (w.c.count == 0) { goto fail; }
    CRD_TRY(study_check_here(ctx, &w.c.stamp, &w.c.f));
    if (!in) { CRD_TRY(open_rows(&w)); }
    study_rows_begin(&w.rows, w.c.stamp.identity);
    CRD_TRY(write_out(&w));
    from.total = *of;
    from.finished = *of - w.c.count;
    st = study_pool(ctx, &w.c.f, job, &from);
fail:
    st = close_out(&w, st);
    *made = w.made;
    crd_text_clear(&w.rows);
    crd_arena_clear(&arena);
    return st;
}
