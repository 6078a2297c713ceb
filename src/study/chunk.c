#include "study/chunk.h"
#include "shared/base_bytes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char chunk_head[] = "cardan chunk 1\n", rows_head[] = "cardan rows 1\n";
static const uint32_t mark = 0x01020304;
enum { FRAME = 1 << 16 };

static void put_text(crd_text* t, const char* text)
{
    const size_t n = strlen(text);
    crdi_put_u32(t, (uint32_t)n);
    crdi_text_put(t, text, n);
}

static const char* take_text(crdi_bytes* s, crd_arena* arena)
{
    const uint32_t n = crdi_take_u32(s);
    const char* p = crdi_take(s, n);
    if (p && memchr(p, 0, n)) { s->failed = true; }
    const char* text = p && !s->failed ? crdi_arena_text(arena, p, n) : "";
    return text ? text : "";
}

// Its first line and the mark of this kind of machine.
static crd_status take_head(crd_context* ctx, const char* name, crdi_bytes* s, const char* head,
                            const char* what)
{
    const char* p = crdi_take(s, strlen(head));
    if (!p || memcmp(p, head, strlen(head)) != 0) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: expected %s, which begins with '%.*s'", name, what,
                         (int)strlen(head) - 1, head);
    }
    const uint32_t theirs = crdi_take_u32(s);
    if (!s->failed && theirs != mark) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: %s of a machine with another order of bytes; all machines of a study "
                         "have to be of one kind",
                         name, what);
    }
    return CRD_OK;
}

crd_status study_chunk_encode(crd_context* ctx, const study_stamp* stamp, const crdi_study_file* f,
                              const crdi_study_run* runs, int count, crd_text* out)
{
    char point[FRAME];
    const uint32_t number = (uint32_t)count;
    crdi_text_add(out, "%s", chunk_head);
    crdi_put_u32(out, mark);
    put_text(out, stamp->identity);
    put_text(out, stamp->path);
    put_text(out, stamp->text);
    put_text(out, stamp->describe);
    crdi_put_u32(out, number);
    for (int i = 0; i < count; i++) {
        const uint32_t n = (uint32_t)crdi_study_encode_point(f, &runs[i], point, sizeof point);
        if (!n) {
            return crdi_fail(ctx, CRD_E_RANGE, "run %lld: its values are too long for a chunk",
                             (long long)runs[i].id);
        }
        crdi_put_u32(out, n);
        crdi_text_put(out, point, n);
    }
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

static crd_status take_runs(crd_context* ctx, const char* name, crdi_bytes* s, crd_arena* arena,
                            study_chunk* out)
{
    const crdi_study_file* f = &out->f;
    const uint32_t count = crdi_take_u32(s);
    if (s->failed || count > s->left / sizeof(uint32_t)) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: it ends before its last run", name);
    }
    out->runs = crdi_arena_new(arena, count, sizeof *out->runs);
    for (uint32_t i = 0; i < count; i++) {
        crdi_study_run* r = out->runs ? &out->runs[i] : NULL;
        const uint32_t n = crdi_take_u32(s);
        const char* p = crdi_take(s, n);
        // Values that are texts point into what they are read from.
        const char* copy = p ? crdi_arena_text(arena, p, n) : NULL;
        if (!p) { return crdi_fail(ctx, CRD_E_FORMAT, "%s: it ends before its last run", name); }
        if (!r || !copy) { return CRD_E_MEMORY; }
        r->values = crdi_arena_new(arena, (size_t)f->factor_count, sizeof *r->values);
        r->kept = crdi_arena_new(arena, (size_t)f->kept_count, sizeof *r->kept);
        if (!r->values || !r->kept) { return CRD_E_MEMORY; }
        if (!crdi_study_decode_point(f, r, copy, n)) {
            return crdi_fail(ctx, CRD_E_FORMAT, "%s: run %u of it is none of this study", name,
                             i + 1);
        }
    }
    out->count = (int)count;
    return s->left ? crdi_fail(ctx, CRD_E_FORMAT, "%s: there is more behind its last run", name)
                   : CRD_OK;
}

crd_status study_chunk_decode(crd_context* ctx, const char* name, const char* bytes, size_t length,
                              crd_arena* arena, study_chunk* out)
{
    crd_status st = CRD_OK;
    crdi_bytes s = {bytes, length, false};
    *out = (study_chunk){0};
    CRD_TRY(take_head(ctx, name, &s, chunk_head, "a chunk of a study"));
    out->stamp.identity = take_text(&s, arena);
    out->stamp.path = take_text(&s, arena);
    out->stamp.text = take_text(&s, arena);
    out->stamp.describe = take_text(&s, arena);
    CRD_TRY(crdi_arena_status(arena));
    if (s.failed) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s: it ends before its first run", name);
        goto fail;
    }
    CRD_TRY(crdi_study_file_read(ctx, out->stamp.text, strlen(out->stamp.text), out->stamp.path,
                                 arena, &out->f));
    CRD_TRY(take_runs(ctx, name, &s, arena, out));
fail:
    return st;
}

// ---- whether it is the same here ---------------------------------------------------------------

static crd_status first_point(crd_context* ctx, const crdi_study_file* f, crdi_study_run* r)
{
    crdi_points* d = NULL;
    uint64_t key = 0;
    crd_status st = crdi_points_create(ctx, f, &d);
    const int64_t all = crdi_points_count(f);
    bool found = false;
    for (int64_t i = 0; st >= 0 && !found && i < all; i++) {
        found = crdi_points_point(d, i, r->values, &key);
    }
    // Values that are texts belong to the study file.
    r->seed = crdi_points_seed(f, key);
    crdi_points_destroy(d);
    if (st >= 0 && !found) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%s: exclude: no run is left", f->file);
    }
    return st;
}

crd_status study_check_here(crd_context* ctx, const study_stamp* stamp, const crdi_study_file* f)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_text now;
    crdi_study_worker* w = NULL;
    crdi_study_run r = {0};
    char host[256] = "";
    crd_arena_init(&arena, ctx);
    crd_text_init(&now, ctx);
    gethostname(host, sizeof host - 1);
    r.values = crdi_arena_new(&arena, (size_t)f->factor_count, sizeof *r.values);
    r.kept = crdi_arena_new(&arena, (size_t)f->kept_count, sizeof *r.kept);
    CRD_TRY(crdi_arena_status(&arena));
    CRD_TRY(first_point(ctx, f, &r));
    CRD_TRY(crdi_study_worker_create(ctx, f, &w));
    CRD_TRY(crdi_study_worker_describe(w, &r, &now));
    CRD_TRY(study_compare_describe(ctx, &arena, stamp->path, stamp->describe, now.data));
fail:
    if (st < 0) { crdi_fail_in(ctx, st, "%s cannot make runs of this study", host); }
    crdi_study_worker_destroy(w);
    crd_text_clear(&now);
    crd_arena_clear(&arena);
    return st;
}

// ---- rows --------------------------------------------------------------------------------------

static uint64_t check_of(const char* bytes, size_t n)
{
    uint64_t h = n + 1;
    for (size_t at = 0; at < n; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, n - at < 8 ? n - at : 8);
        h = study_mix(h ^ word);
    }
    return h;
}

void study_rows_begin(crd_text* out, const char* identity)
{
    crdi_text_add(out, "%s", rows_head);
    crdi_put_u32(out, mark);
    put_text(out, identity);
}

crd_status study_rows_add(crd_context* ctx, crd_text* out, const crdi_study_file* f,
                          const crdi_study_run* r)
{
    char bytes[FRAME];
    const uint32_t n = (uint32_t)crdi_study_encode_result(f, r, bytes, sizeof bytes);
    if (!n) { return crdi_fail(ctx, CRD_E_RANGE, "run %lld: too much is kept", (long long)r->id); }
    const uint64_t check = check_of(bytes, n);
    crdi_put_u32(out, n);
    crdi_put_u64(out, check);
    crdi_text_put(out, bytes, n);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status study_rows_open(crd_context* ctx, const char* name, const char* bytes, size_t length,
                           const char* identity, size_t* at)
{
    crdi_bytes s = {bytes, length, false};
    const size_t n = strlen(rows_head);
    *at = 0;
    if (length < n && memcmp(bytes, rows_head, length) == 0) { return CRD_OK; } // not written yet
    const crd_status st = take_head(ctx, name, &s, rows_head, "results of a chunk");
    if (st < 0) { return st; }
    const uint32_t m = crdi_take_u32(&s);
    const char* p = crdi_take(&s, m);
    if (!p) { return CRD_OK; }
    if (m != strlen(identity) || memcmp(p, identity, m) != 0) {
        return crdi_fail(ctx, CRD_E_DIFFERENT,
                         "%s: these are results of another study; they are left as they are", name);
    }
    *at = length - s.left;
    return CRD_OK;
}

bool study_rows_next(const crdi_study_file* f, const char* bytes, size_t length, size_t* at,
                     crdi_study_run* r)
{
    crdi_bytes s = {bytes + *at, length - *at, false};
    uint64_t check = 0;
    const uint32_t n = crdi_take_u32(&s);
    const char* c = crdi_take(&s, sizeof check);
    const char* p = crdi_take(&s, n);
    if (!p) { return false; }
    memcpy(&check, c, sizeof check);
    if (check != check_of(p, n) || !crdi_study_decode_result(f, r, p, n)) { return false; }
    *at = length - s.left;
    return true;
}
