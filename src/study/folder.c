#include "study/folder.h"
#include "study/executors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_MOST = 1 << 30, ROWS_MOST = 1 << 30 };

static const char* in_folder(study_folder* d, crd_arena* arena, const char* name)
{
    return crdi_arena_format(arena, "%s/%s", d->path, name);
}

crd_status study_folder_open(crd_context* ctx, crdi_study* s, study_folder* out)
{
    crd_status st = CRD_OK;
    *out = (study_folder){.ctx = ctx, .study = s};
    crd_arena_init(&out->arena, ctx);
    char* whole = realpath(crdi_study_database(s), NULL);
    out->path = crdi_arena_format(&out->arena, "%s.chunks", whole ? whole : crdi_study_database(s));
    free(whole);
    CRD_TRY(crdi_arena_status(&out->arena));
    if (mkdir(out->path, 0777) != 0 && errno != EEXIST) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: the folder of chunks cannot be made: %s", out->path,
                       strerror(errno));
        goto fail;
    }
    CRD_TRY(study_get_stamp(s, &out->stamp));
    return CRD_OK;
fail:
    study_folder_close(out);
    return st;
}

void study_folder_close(study_folder* d)
{
    if (!d->ctx) { return; }
    if (d->path) { (void)rmdir(d->path); }
    crd_free(d->ctx, d->seen);
    crd_arena_clear(&d->arena);
    *d = (study_folder){0};
}

// ---- what is there -----------------------------------------------------------------------------

// "7.chunk" and "7.host-12-34.rows": 7; 0: none of ours.
static int number_of(const char* name, const char* ending)
{
    char* end = NULL;
    if (!crdi_ends_with(name, ending) || name[0] < '1' || name[0] > '9') { return 0; }
    const long n = strtol(name, &end, 10);
    return *end == '.' && n <= STUDY_CHUNKS ? (int)n : 0;
}

static study_seen* find_seen(study_folder* d, const char* name)
{
    for (int i = 0; i < d->seen_count; i++) {
        if (strcmp(d->seen[i].name, name) == 0) { return &d->seen[i]; }
    }
    study_seen* grown =
        crdi_grow(d->ctx, d->seen, &d->seen_room, (size_t)d->seen_count + 1, sizeof *grown);
    if (!grown) { return NULL; }
    d->seen = grown;
    grown[d->seen_count] = (study_seen){.at = 0};
    snprintf(grown[d->seen_count].name, sizeof grown->name, "%s", name);
    return &grown[d->seen_count++];
}

static crd_status scan(study_folder* d)
{
    crd_status st = CRD_OK;
    bool there[STUDY_CHUNKS + 1] = {0};
    DIR* folder = opendir(d->path);
    if (!folder) {
        return crdi_fail(d->ctx, CRD_E_IO, "%s: the folder of chunks: %s", d->path,
                         strerror(errno));
    }
    for (const struct dirent* e = readdir(folder); e && st >= 0; e = readdir(folder)) {
        there[number_of(e->d_name, ".chunk")] = true;
        if (number_of(e->d_name, ".rows") && strlen(e->d_name) < sizeof d->seen->name &&
            !find_seen(d, e->d_name)) {
            st = CRD_E_MEMORY;
        }
    }
    closedir(folder);
    for (int n = 1; n <= STUDY_CHUNKS && st >= 0; n++) {
        if (!there[n]) {
            d->runs[n] = 0;
        } else if (d->runs[n] == 0) {
            study_chunk c;
            crd_arena arena;
            crd_arena_init(&arena, d->ctx);
            st = study_folder_read(d, n, &arena, &c);
            if (st >= 0) {
                d->runs[n] = c.count;
                d->fresh[n] = true;
            }
            crd_arena_clear(&arena);
        }
    }
    return st;
}

crd_status study_folder_read(study_folder* d, int number, crd_arena* arena, study_chunk* out)
{
    crd_text bytes;
    const crdi_file_need need = {.what = "a chunk of a study", .most = CHUNK_MOST};
    const char* path = crdi_arena_format(arena, "%s/%d.chunk", d->path, number);
    if (!path) { return CRD_E_MEMORY; }
    crd_text_init(&bytes, d->ctx);
    crd_status st = crdi_file_read(d->ctx, path, &need, &bytes);
    if (st >= 0) { st = study_chunk_decode(d->ctx, path, bytes.data, bytes.length, arena, out); }
    if (st >= 0 && strcmp(out->stamp.identity, d->stamp.identity) != 0) {
        st = crdi_fail(d->ctx, CRD_E_DIFFERENT,
                       "%s: a chunk of another study; remove the folder %s if nobody needs it",
                       path, d->path);
    }
    crd_text_clear(&bytes);
    return st;
}

// ---- what came ---------------------------------------------------------------------------------

static crd_status merge_bytes(study_folder* d, const char* bytes, size_t length, size_t* at)
{
    enum { BATCH = 10000 };
    crd_status st = CRD_OK;
    const crdi_study_file* f = crdi_study_get_file(d->study);
    crd_arena arena;
    crd_arena_init(&arena, d->ctx);
    crdi_study_run* runs = crdi_arena_new(&arena, BATCH, sizeof *runs);
    const crdi_study_run** list = crdi_arena_new(&arena, BATCH, sizeof *list);
    double* kept = crdi_arena_new(&arena, (size_t)f->kept_count * BATCH, sizeof *kept);
    CRD_TRY(crdi_arena_status(&arena));
    for (int n = BATCH; n == BATCH;) {
        size_t next = *at;
        for (n = 0; n < BATCH; n++) {
            list[n] = &runs[n];
            runs[n].kept = kept + (size_t)n * (size_t)f->kept_count;
            if (!study_rows_next(f, bytes, length, &next, &runs[n])) { break; }
        }
        if (n) { CRD_TRY(crdi_study_merge(d->study, list, n)); }
        *at = next;
    }
fail:
    crd_arena_clear(&arena);
    return st;
}

static crd_status merge_file(study_folder* d, study_seen* seen, bool* grown)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_text bytes;
    struct stat info;
    size_t at = 0;
    const crdi_file_need need = {.what = "results of a chunk", .most = ROWS_MOST};
    crd_arena_init(&arena, d->ctx);
    crd_text_init(&bytes, d->ctx);
    const char* path = in_folder(d, &arena, seen->name);
    CRD_TRY(crdi_arena_status(&arena));
    *grown = false;
    if (stat(path, &info) != 0 || (seen->at && (size_t)info.st_size <= seen->at)) { goto fail; }
    CRD_TRY(crdi_file_read(d->ctx, path, &need, &bytes));
    CRD_TRY(study_rows_open(d->ctx, path, bytes.data, bytes.length, d->stamp.identity, &at));
    if (at == 0) { goto fail; }
    if (seen->at > at) { at = seen->at; }
    CRD_TRY(merge_bytes(d, bytes.data, bytes.length, &at));
    *grown = at != seen->at;
    seen->at = at;
fail:
    crd_text_clear(&bytes);
    crd_arena_clear(&arena);
    return st;
}

static void remove_named(study_folder* d, const char* name)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", d->path, name);
    if (n > 0 && n < (int)sizeof path) { (void)unlink(path); }
}

static void remove_chunk(study_folder* d, int number)
{
    char name[32];
    snprintf(name, sizeof name, "%d.chunk", number);
    remove_named(d, name);
    snprintf(name, sizeof name, "%d.log", number);
    remove_named(d, name);
    d->runs[number] = 0;
}

// Results of runs that are all in the study: rows without a chunk, too, as a chunk goes last.
static void remove_rows(study_folder* d)
{
    int left = 0;
    for (int i = 0; i < d->seen_count; i++) {
        if (d->runs[number_of(d->seen[i].name, ".rows")] == 0) {
            remove_named(d, d->seen[i].name);
        } else {
            d->seen[left++] = d->seen[i];
        }
    }
    d->seen_count = left;
}

crd_status study_folder_collect(study_folder* d)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    CRD_TRY(scan(d));
    for (int i = 0; i < d->seen_count; i++) {
        bool grown = false;
        CRD_TRY(merge_file(d, &d->seen[i], &grown));
        if (grown) { d->fresh[number_of(d->seen[i].name, ".rows")] = true; }
    }
    for (int n = 1; n <= STUDY_CHUNKS; n++) {
        study_chunk c;
        if (!d->runs[n] || !d->fresh[n]) { continue; }
        crd_arena_init(&arena, d->ctx);
        st = study_folder_read(d, n, &arena, &c);
        if (st >= 0) { st = study_unfinished(d->study, c.runs, &c.count); }
        if (st >= 0 && c.count == 0) { remove_chunk(d, n); }
        d->fresh[n] = false;
        crd_arena_clear(&arena);
        if (st < 0) { goto fail; }
    }
    remove_rows(d);
fail:
    return st;
}

crd_status crdi_study_collect(crd_context* ctx, crdi_study* s)
{
    study_folder d;
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s.chunks", crdi_study_database(s));
    if (stat(path, &info) != 0) { return CRD_OK; }
    crd_status st = study_folder_open(ctx, s, &d);
    if (st < 0) { return st; }
    st = study_folder_collect(&d);
    study_folder_close(&d);
    return st;
}

// ---- what is to be made ------------------------------------------------------------------------

crd_status study_folder_write(study_folder* d, const crdi_study_run* runs, int count, int* number)
{
    crd_text bytes;
    char path[PATH_MAX];
    *number = 0;
    for (int n = 1; n <= STUDY_CHUNKS && !*number; n++) {
        if (d->runs[n] == 0) { *number = n; }
    }
    if (!*number) { return CRD_OK; }
    crd_text_init(&bytes, d->ctx);
    crd_status st =
        study_chunk_encode(d->ctx, &d->stamp, crdi_study_get_file(d->study), runs, count, &bytes);
    snprintf(path, sizeof path, "%s/%d.chunk", d->path, *number);
    if (st >= 0) { st = crdi_file_write(d->ctx, path, &bytes); }
    if (st >= 0) { d->runs[*number] = count; }
    crd_text_clear(&bytes);
    return st;
}

crd_status study_folder_hold(study_folder* d, int64_t* held)
{
    crd_status st = CRD_OK;
    *held = 0;
    for (int n = 1; n <= STUDY_CHUNKS && st >= 0; n++) {
        study_chunk c;
        crd_arena arena;
        if (!d->runs[n]) { continue; }
        crd_arena_init(&arena, d->ctx);
        st = study_folder_read(d, n, &arena, &c);
        if (st >= 0) { st = study_hold(d->study, c.runs, &c.count); }
        if (st >= 0) { *held += c.count; }
        crd_arena_clear(&arena);
    }
    return st;
}

crd_status study_folder_fill(study_folder* d, int size, int64_t* runs)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    int free_chunks = 0;
    *runs = 0;
    for (int n = 1; n <= STUDY_CHUNKS; n++) {
        free_chunks += d->runs[n] == 0;
    }
    for (int i = 0; i < free_chunks && st >= 0; i++) {
        crdi_study_run* list = NULL;
        int count = 0, number = 0;
        crd_arena_init(&arena, d->ctx);
        st = crdi_study_claim(d->study, size, &arena, &list, &count);
        if (st >= 0 && count) { st = study_folder_write(d, list, count, &number); }
        crd_arena_clear(&arena);
        *runs += count;
        if (count < size) { break; }
    }
    return st;
}

crd_status study_folder_size(crdi_study* s, const crdi_study_job* job, int64_t* open, int* size)
{
    crdi_study_counts c;
    const crd_status st = crdi_study_count(s, &c);
    if (st < 0) { return st; }
    *open = c.by_state[CRDI_RUN_OPEN];
    const int workers = job->workers > 0 ? job->workers : 1;
    double n = c.seconds > 0 ? 60 * workers / c.seconds : ceil((double)*open / 100);
    n = fmax(n, ceil((double)*open / STUDY_CHUNKS));
    n = fmin(fmax(n, 1), 1e6);
    *size = job->chunk > 0 ? job->chunk : (int)n;
    return CRD_OK;
}

const char* study_program(crd_arena* arena)
{
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) { return "cardan"; }
    path[n] = 0;
    const char* copy = crdi_arena_text(arena, path, (size_t)n);
    return copy ? copy : "cardan";
}

void study_put_quoted(crd_text* t, const char* text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:=@%";
    if (*text && strspn(text, plain) == strlen(text)) {
        crdi_text_add(t, "%s", text);
        return;
    }
    crdi_text_add(t, "'");
    for (const char* c = text; *c; c++) {
        crdi_text_add(t, *c == '\'' ? "'\\''" : "%c", *c);
    }
    crdi_text_add(t, "'");
}

// ---- list --------------------------------------------------------------------------------------

crd_status study_run_list(crd_context* ctx, const crdi_study_job* job)
{
    crd_status st = CRD_OK;
    study_folder d = {0};
    crd_text line;
    int64_t held = 0, filled = 0, open = 0;
    int size = 0;
    crd_text_init(&line, ctx);
    CRD_TRY(study_folder_open(ctx, job->study, &d));
    CRD_TRY(study_folder_collect(&d));
    CRD_TRY(study_folder_hold(&d, &held)); // what is in chunks is not put into others
    CRD_TRY(study_folder_size(job->study, job, &open, &size));
    CRD_TRY(study_folder_fill(&d, size, &filled));
    for (int n = 1; n <= STUDY_CHUNKS; n++) {
        if (!d.runs[n]) { continue; }
        line.length = 0;
        study_put_quoted(&line, study_program(&d.arena));
        crdi_text_add(&line, " study work ");
        study_put_quoted(&line, crdi_arena_format(&d.arena, "%s/%d.chunk", d.path, n));
        if (job->workers > 0) { crdi_text_add(&line, " --workers %d", job->workers); }
        if (line.failed) { CRD_TRY(CRD_E_MEMORY); }
        job->say(job->user, line.data);
    }
    CRD_TRY(crdi_study_release(job->study));
fail:
    crd_text_clear(&line);
    study_folder_close(&d);
    return st;
}
