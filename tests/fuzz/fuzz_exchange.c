// modules: master system base
// Any bytes as what a recording of exchanged samples says about itself. What is accepted can be
// used without looking twice.
#include "fuzz.h"
#include "master/replay/replay.h"

#include <math.h>
#include <string.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

static void look_at_link(const crdi_exchange_link* k)
{
    must(k->from[0] && k->to[0] && k->unit && !isnan(k->gain) && !isnan(k->offset));
    must(k->predict >= 0 && k->predict < CRD_PREDICTION_COUNT);
    must(k->count == 0 && k->input_count == 0);
    must(k->past.count >= 0 && k->past.count <= CRD_HISTORY);
    for (int i = 0; i < k->past.count; i++) {
        must(k->past.sample[i].order >= 0 && k->past.sample[i].order <= 2);
        must(i + 1 == k->past.count || k->past.h[i] > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crdi_exchange x = {.ctx = ctx, .path = "x.mf4", .file = ""};
    crd_arena_init(&x.arena, ctx);
    const crd_status st = crdi_exchange_head(&x, (const char*)data, size);
    must(st == CRD_OK || crd_error_text(ctx)[0]);
    if (st == CRD_OK) {
        must(x.tick > 0 && !isnan(x.start) && !isnan(x.stop) && x.file && x.link_count > 0);
        for (int i = 0; i < x.link_count; i++) {
            look_at_link(&x.links[i]);
        }
        for (int i = 0; i < x.order_count; i++) {
            must(strlen(x.order[i]) <= size);
        }
        for (int i = 0; i < x.text_count; i++) {
            must(strlen(x.texts[i]) <= size);
        }
    }
    crd_arena_clear(&x.arena);
    crd_context_destroy(ctx);
    return 0;
}
