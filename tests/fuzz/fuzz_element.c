// Any bytes as the description of a coupling element: as JSON and as YAML. What is accepted can be
// written, read again as the same, and made.
// modules: system coupling base
#include "cardan/coupling.h"
#include "cardan/system.h"
#include "fuzz.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

static void use(crd_context* ctx, const crd_element* e)
{
    crd_coupling_options o;
    crd_coupling* c = NULL;
    if (crd_element_options(e, 0.01, &o) == CRD_OK && crd_coupling_create(ctx, &o, &c) == CRD_OK) {
        for (int n = 0; n < 12; n++) {
            crd_coupling_push(c, n * 0.5, n * 0.01, n);
            if (!isfinite(crd_coupling_eval(c, n * 0.01 + 0.03))) { __builtin_trap(); }
        }
    }
    crd_coupling_destroy(c);
    crd_linear l = {0};
    if (crd_element_linear(e, 0.01, 3, &l) == CRD_OK) { crd_linear_clear(ctx, &l); }
}

static void parse(crd_context* ctx, const char* text, size_t length)
{
    crd_element *e = NULL, *again = NULL;
    if (crd_element_parse(ctx, text, length, "e", 1, &e) < 0) { return; }
    crd_text one, two;
    crd_text_init(&one, ctx);
    crd_text_init(&two, ctx);
    if (crd_element_write(e, &one) < 0 ||
        crd_element_parse(ctx, one.data, one.length, "e", 1, &again) < 0 ||
        crd_element_write(again, &two) < 0 || strcmp(one.data, two.data) != 0) {
        __builtin_trap();
    }
    use(ctx, e);
    crd_text_clear(&one);
    crd_text_clear(&two);
    crd_element_destroy(e);
    crd_element_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    parse(ctx, (const char*)data, size);
    crd_text json;
    crd_text_init(&json, ctx);
    const crd_place place = {"e.yaml", 1};
    if (crd_yaml_to_json(ctx, (const char*)data, size, place, &json) == CRD_OK) {
        parse(ctx, json.data, json.length);
    }
    crd_text_clear(&json);
    crd_context_destroy(ctx);
    return 0;
}
