// Any bytes as JSON. What is accepted can be written in every style and read again as the same.
// modules: base
#include "fuzz.h"
#include "shared/base.h"

// Numbers by value, not as they were written.
static void put_numbers(crdi_json_writer* w, const crdi_json* n)
{
    if (n->kind == CRDI_JSON_NUMBER) { crdi_json_put_number(w, NULL, n->number); }
    for (const crdi_json* m = n->first; m; m = m->next) {
        put_numbers(w, m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_json *tree = NULL, *again = NULL;
    const crdi_json_source source = {.file = "f", .first_line = 1};
    if (crdi_json_parse(&arena, (const char*)data, size, source, &tree) == CRD_OK) {
        for (int style = CRDI_JSON_COMPACT; style <= CRDI_JSON_LINE; style++) {
            crd_text t;
            crdi_json_writer w;
            crd_text_init(&t, ctx);
            crdi_json_writer_init(&w, &t, (crdi_json_style)style);
            crdi_json_put_tree(&w, NULL, tree);
            if (t.failed || crdi_json_parse(&arena, t.data, t.length, source, &again) < 0 ||
                !crdi_json_equal(tree, again)) {
                __builtin_trap();
            }
            t.length = 0;
            crdi_json_writer_init(&w, &t, (crdi_json_style)style);
            crdi_json_begin_list(&w, NULL);
            put_numbers(&w, tree);
            crdi_json_end(&w);
            if (crdi_json_parse(&arena, t.data, t.length, source, &again) < 0) { __builtin_trap(); }
            crd_text_clear(&t);
        }
    }
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
