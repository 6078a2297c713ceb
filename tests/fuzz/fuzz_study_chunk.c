// modules: study base
//
// Any bytes as a chunk of a study, and as what came of one: files that another machine wrote, or a
// pipe brought. What is accepted is written again as it is.
#include "study/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char study[] = "study: 1\nsystem: s.yaml\nvary: { a.p: [1, 2], a.m: [one, two] }\n"
                            "keep: { x: a.x, y: max a.y }\n";

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void as_chunk(crd_context* ctx, const char* bytes, size_t size)
{
    crd_arena arena;
    study_chunk c;
    crd_text again;
    crd_arena_init(&arena, ctx);
    crd_text_init(&again, ctx);
    if (study_chunk_decode(ctx, "fuzz.chunk", bytes, size, &arena, &c) < 0) {
        must(crd_error_text(ctx)[0]);
    } else if (study_chunk_encode(ctx, &c.stamp, &c.f, c.runs, c.count, &again) >= 0) {
        must(again.length == size && memcmp(again.data, bytes, size) == 0);
    }
    crd_text_clear(&again);
    crd_arena_clear(&arena);
}

// Behind a beginning that is right, or as it is.
static void as_rows(crd_context* ctx, const crdi_study_file* f, const char* bytes, size_t size)
{
    size_t at = 0, before;
    double kept[2];
    crdi_study_run r = {.kept = kept};
    if (study_rows_open(ctx, "fuzz.rows", bytes, size, "fuzz", &at) < 0) {
        must(crd_error_text(ctx)[0]);
        return;
    }
    must(at <= size);
    while (at && (before = at, study_rows_next(f, bytes, size, &at, &r))) {
        must(at > before && at <= size);
        must(r.state >= CRDI_RUN_DONE && r.state < CRDI_RUN_STATES && r.id > 0);
        must(memchr(r.reason, 0, sizeof r.reason) != NULL);
        crd_text again;
        crd_text_init(&again, ctx);
        must(study_rows_add(ctx, &again, f, &r) >= 0 && again.length == at - before);
        must(memcmp(again.data, bytes + before, at - before) == 0);
        crd_text_clear(&again);
    }
}

// Checks keep almost everything out: here results come without.
static void as_result(const crdi_study_file* f, const char* bytes, size_t size)
{
    double kept[2];
    crdi_study_value values[2];
    crdi_study_run r = {.kept = kept, .values = values};
    char again[1024];
    if (crdi_study_decode_result(f, &r, bytes, size)) {
        must(crdi_study_encode_result(f, &r, again, sizeof again) == size);
        must(memcmp(again, bytes, size) == 0);
    }
    if (crdi_study_decode_point(f, &r, bytes, size)) { must(values[1].text[0] || size > 0); }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    const char* bytes = (const char*)data;
    crd_arena arena;
    crdi_study_file f;
    crd_text rows;
    crd_arena_init(&arena, ctx);
    crd_text_init(&rows, ctx);
    must(crdi_study_file_read(ctx, study, strlen(study), "fuzz.yaml", &arena, &f) >= 0);
    as_chunk(ctx, bytes, size);
    as_rows(ctx, &f, bytes, size);
    study_rows_begin(&rows, "fuzz");
    crdi_text_put(&rows, bytes, size);
    as_rows(ctx, &f, rows.data, rows.length);
    as_result(&f, bytes, size);
    crd_text_clear(&rows);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
