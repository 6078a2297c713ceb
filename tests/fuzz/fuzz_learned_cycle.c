// modules: learn coupling num base
// Any bytes as a learned cycle: what is accepted has rows of equal length with numbers that can be
// added to a signal, and says the same once more when written.
#include "fuzz.h"
#include "shared/learn_cycle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static crd_context* ctx;

static void look_at(const crdi_repeat* c)
{
    if (!(c->step > 0) || c->count < 2 || c->signal_count < 1) { abort(); }
    for (int k = 0; k < c->signal_count; k++) {
        const crdi_repeat_signal* s = &c->signals[k];
        if (!(s->scale > 0) || !(s->max >= s->min) || !s->to || !s->from) { abort(); }
        const crdi_repeat_limits l = crdi_repeat_limits_of(s, -1, 1, 10);
        for (int i = 0; i < c->count; i++) {
            if (!isfinite(s->correction[i])) { abort(); }
            if (!isfinite(crdi_repeat_limit(&l, 0, s->correction[i], 0, 0.01))) { abort(); }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crdi_repeat c, again;
    crd_text text;
    if (!ctx) { ctx = crd_context_create(NULL); }
    if (crdi_repeat_parse(ctx, (const char*)data, size, "cycle.json", &c) == CRD_OK) {
        look_at(&c);
        crd_text_init(&text, ctx);
        crdi_repeat_write(&c, &text);
        if (crdi_repeat_parse(ctx, text.data, text.length, "again.json", &again) != CRD_OK) {
            abort();
        }
        crd_arena_clear(&again.arena);
        crd_text_clear(&text);
    } else if (!*crd_error_text(ctx)) {
        abort();
    }
    crd_arena_clear(&c.arena);
    return 0;
}
