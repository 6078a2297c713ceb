// Any bytes as a message from the viewer's page, answered over a small recording. Answers are JSON,
// or binary of a length that their heads say.
//
// modules: web results base
#include "fuzz.h"
#include "web/view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

static crdi_view* view_over(crd_context* ctx)
{
    static crdi_view* view; // one for all inputs
    if (view) { return view; }
    char path[64];
    snprintf(path, sizeof path, "/tmp/fuzz_view_%d.csv", (int)getpid());
    FILE* f = fopen(path, "wb");
    must(f != NULL);
    fputs("time,x [m],mode\n0,1,a\n1,NaN,b\n2,-3,a\n2,4,c\n", f);
    fclose(f);
    const char* paths[] = {path, path};
    must(crdi_view_create(ctx, paths, 2, &view) == CRD_OK);
    unlink(path);
    return view;
}

static uint32_t word_at(const crd_text* t, size_t at)
{
    uint32_t x;
    must(at + sizeof x <= t->length);
    memcpy(&x, t->data + at, sizeof x);
    return x;
}

static void look_at_bytes(const crd_text* t)
{
    size_t at = 16;
    for (uint32_t n = word_at(t, 8); n > 0; n--) {
        const uint32_t kind = word_at(t, at + 8), count = word_at(t, at + 12);
        must(kind <= 2);
        at += 16 + (kind == 2 ? (count + 7U) / 8 * 8 : (size_t)count * (kind == 1 ? 16 : 24));
    }
    must(at == t->length);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static crd_context* ctx;
    if (!ctx) { ctx = crd_context_create(NULL); }
    if (!ctx) { return 0; }
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crd_text answer;
    crd_text_init(&answer, ctx);
    crdi_view_request q;
    bool binary = false;
    const crd_status st = crdi_view_message(&arena, (const char*)data, size, &q);
    must(st == CRD_OK || st == CRD_E_FORMAT || st == CRD_E_RANGE);
    if (st < 0 || q.verb == CRDI_VIEW_SAVE) { // nothing is written here
        crdi_view_refuse(&answer, q.has_id, q.id, st < 0 ? crd_error_text(ctx) : NULL);
    } else {
        must(q.track_count <= CRDI_VIEW_TRACKS && q.pixels <= CRDI_VIEW_PIXELS);
        crdi_view_answer(view_over(ctx), &q, &arena, &answer, &binary);
    }
    if (binary) {
        look_at_bytes(&answer);
    } else {
        crdi_json* tree = NULL;
        must(crdi_json_parse(&arena, answer.data, answer.length, (crdi_json_source){.file = ""},
                             &tree) == CRD_OK);
    }
    crd_text_clear(&answer);
    crd_arena_clear(&arena);
    return 0;
}
