// Any bytes as a system description, as a scheme, as a quantity.
// modules: system base
#include "cardan/system.h"
#include "fuzz.h"
#include "shared/base_findings.h"
#include "shared/system_edit.h"

#include <string.h>

static void short_texts(crd_context* ctx, const char* bytes, size_t size)
{
    char text[128];
    if (size >= sizeof text) { return; }
    memcpy(text, bytes, size);
    text[size] = 0;
    crd_dimension dim;
    double x;
    bool bare;
    (void)crd_dimension_parse(text, &dim);
    (void)crd_quantity_parse(text, &x, &dim, &bare);
    crd_system* s = NULL;
    if (crd_system_of_fmu(ctx, text, &s) < 0) { return; }
    const char* variable = NULL;
    int unit = 0;
    (void)crd_system_set_scheme(s, text, (crd_place){"--scheme", 0});
    (void)crd_system_split(s, text, (crd_place){"", 0}, &unit, &variable);
    crd_system_destroy(s);
}

// As `cardan check` reads it: on after each mistake. What is right is right both ways.
static void all_mistakes(const char* data, size_t size, bool right)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return; }
    crdi_findings found = {0};
    crd_arena_init(&found.arena, ctx);
    crdi_findings_collect(ctx, &found);
    crd_system* s = NULL;
    const crd_status st = crd_system_parse(ctx, data, size, "folder/system.yaml", &s);
    if ((st == CRD_OK && !found.count) != right) { __builtin_trap(); }
    crd_system_destroy(s);
    crdi_findings_clear(&found);
    crd_context_destroy(ctx);
}

static void edits(crd_context* ctx, const char* data, size_t size)
{
    crd_text more, less;
    crd_text_init(&more, ctx);
    crd_text_init(&less, ctx);
    if (crd_system_text_connect(ctx, data, size, "system.yaml", "a.y", "b.u", &more) == CRD_OK) {
        (void)crd_system_text_disconnect(ctx, more.data, more.length, "system.yaml", NULL, "b.u",
                                         &less);
    }
    crd_text_clear(&less);
    crd_text_init(&less, ctx);
    (void)crdi_system_text_set(ctx, data, size, "system.yaml", "run.step", "2 ms", &less);
    crd_text_clear(&more);
    crd_text_clear(&less);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_system* s = NULL;
    const crd_status st = crd_system_parse(ctx, (const char*)data, size, "folder/system.yaml", &s);
    if (st == CRD_OK) {
        // what was accepted can be found again
        for (int i = 0; i < s->unit_count; i++) {
            if (crd_system_find(s, s->units[i].name) != i) { __builtin_trap(); }
        }
    }
    crd_system_destroy(s);
    all_mistakes((const char*)data, size, st == CRD_OK);
    edits(ctx, (const char*)data, size);
    short_texts(ctx, (const char*)data, size);
    crd_context_destroy(ctx);
    return 0;
}
