// JSON that something has written, as a tree to look at. Trees live until the program ends.
#pragma once
#include "check.h"
#include "shared/base.h"

static inline const crdi_json* json_tree(const char* text, size_t length)
{
    static crd_arena memory;
    if (!memory.ctx) { crd_arena_init(&memory, crd_context_create(NULL)); }
    crdi_json* root = NULL;
    const crdi_json_source source = {.first_line = 1};
    if (crdi_json_parse_most(&memory, text, length, 64 << 20, source, &root) < 0) {
        fail_msg("%s: %.*s", crd_error_text(memory.ctx), (int)length, text);
    }
    return root;
}

static inline bool json_is(const crdi_json* value, crdi_json_kind kind)
{
    return value && value->kind == kind;
}

// NULL: it is no text.
static inline const char* json_text(const crdi_json* value)
{
    return json_is(value, CRDI_JSON_TEXT) ? value->text : NULL;
}

static inline const crdi_json* json_tree_of_file(const char* path)
{
    crd_text text;
    crd_context* ctx = crd_context_create(NULL);
    crd_text_init(&text, ctx);
    const crdi_file_need need = {.what = "JSON", .most = 64 << 20};
    if (crdi_file_read(ctx, path, &need, &text) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    const crdi_json* tree = json_tree(text.data, text.length);
    crd_text_clear(&text);
    crd_context_destroy(ctx);
    return tree;
}
