// Any bytes as a message from the page of connections, answered over a small description. Answers
// are JSON; the description goes on being one, and its first line stays.
//
// modules: web results base
#include "fuzz.h"
#include "web/draw.h"
#include "web/view.h"

#include <string.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

static crdi_draw* draw_over(crd_context* ctx)
{
    static const char text[] = "# stays\ncardan: 1\nunits:\n"
                               "  a: { signals: { y: { constant: 1 m } } }\n"
                               "  b: { signals: { z: { constant: 1 } } }\n"
                               "connections:\nrun: { step: 1 ms, stop: 1 s }\n";
    crdi_draw* d = NULL;
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_put(&t, text, sizeof text - 1);
    must(crdi_draw_create(ctx, &(crdi_draw_options){.path = "fuzz.yaml", .text = &t}, &d) ==
         CRD_OK);
    crd_text_clear(&t);
    return d;
}

static const crdi_json* answer(crd_arena* arena, crdi_draw* d, const crdi_draw_request* q,
                               crd_text* t)
{
    crdi_json* tree = NULL;
    t->length = 0;
    crdi_draw_answer(d, q, t);
    must(crdi_json_parse(arena, t->data, t->length, (crdi_json_source){.file = ""}, &tree) ==
         CRD_OK);
    return tree;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static crd_context* ctx;
    static crdi_draw* d; // one for all inputs
    if (!ctx) { ctx = crd_context_create(NULL); }
    if (!ctx) { return 0; }
    if (!d) { d = draw_over(ctx); }
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_draw_request q;
    const crd_status st = crdi_draw_message(&arena, (const char*)data, size, &q);
    must(st == CRD_OK || st == CRD_E_FORMAT || st == CRD_E_RANGE);
    if (st == CRD_OK && q.verb != CRDI_DRAW_SAVE) { // nothing is written here
        const crdi_draw_request ask = {.has_id = true, .verb = CRDI_DRAW_TEXT};
        const crdi_json* now = answer(&arena, d, &ask, &t);
        q.version = crdi_json_get_number(crdi_json_get_object(now, "state"), "version");
        (void)answer(&arena, d, &q, &t);
        now = answer(&arena, d, &ask, &t);
        must(strncmp(crdi_json_get_text(now, "text"), "# stays\ncardan: 1\n", 18) == 0);
    }
    crd_text_clear(&t);
    crd_arena_clear(&arena);
    return 0;
}
