// A result of a command is one value; text and JSON are two looks at it.
#include "check.h"
#include "cli/result.h"

#include <math.h>

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
} fixture;

static int setup(void** state)
{
    static fixture f;
    f = (fixture){0};
    f.ctx = check_context(&f.memory);
    *state = &f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crd_context_destroy(f->ctx);
    return f->memory.live == 0 ? 0 : -1;
}

static void make(crdi_result* out)
{
    static const crdi_column columns[] = {
        {"signal", "name", "%s"}, {">largest", "max", "%.3g"}, {">share", "share", "100*%.0f %%"},
        {">took", "time", "s"},   {"", "remark", "%s"},        {0}};
    crdi_put(out, TEXT("file", "a \"b\"\n"), BOOL("equal", false), INT("count", 3), NONE("none"));
    crdi_result* list = crdi_array(out, "signals");
    crdi_put(crdi_row(list), TEXT("name", "x"), REAL("max", 0.5), REAL("share", 0.25),
             REAL("time", 2e-3), CELL("remark", "only text"));
    crdi_result* row = crdi_row(list);
    crdi_put(row, TEXT("name", "long name"), AS(REAL("max", NAN), "unknown"), REAL("share", NAN));
    row = crdi_row(list);
    crdi_put(row, TEXT("name", "of JSON"));
    crdi_only_json(row);
    crdi_put(crdi_object_if(out, "run", true), REAL("step", 1e-5), TEXT("path", NULL));
    crdi_put(crdi_object_if(out, "pace", false), REAL("factor", 1));
    static const char others[] = "{\"a\": [1, 2.5, \"x\"]}";
    crdi_put_json(out, "others", others, sizeof others - 1);
    crdi_fact(out, "file", "%s", "a");
    crdi_fact_if(out, "author", "");
    crdi_show_table(out, list, columns, "  ");
    crdi_show_table(out, crdi_array(out, NULL), columns, "  "); // no rows, no table
    crdi_say(out, "%d signals\n", 2);
}

static void look(const fixture* f, bool json, const char* expected)
{
    crdi_root root;
    crd_text text;
    crd_text_init(&text, f->ctx);
    crdi_result_init(&root, f->ctx, json);
    make(&root.result);
    check_ok(crdi_result_write(&root, &text));
    check_text(text.data, expected);
    crdi_result_clear(&root);
    crd_text_clear(&text);
}

static void text_shows_what_was_said_and_tables_of_rows(void** state)
{
    look(*state, false,
         "file          a\n"
         "  signal     largest  share  took\n"
         "  x              0.5   25 %  2 ms  only text\n"
         "  long name  unknown      -\n"
         "2 signals\n");
}

static void json_has_every_value_and_nothing_that_is_only_said(void** state)
{
    look(*state, true,
         "{\n  \"file\": \"a \\\"b\\\"\\n\",\n  \"equal\": false,\n  \"count\": 3,\n"
         "  \"none\": null,\n  \"signals\": [\n"
         "    {\n      \"name\": \"x\",\n      \"max\": 0.5,\n      \"share\": 0.25,\n"
         "      \"time\": 0.002\n    },\n"
         "    {\n      \"name\": \"long name\",\n      \"max\": null,\n      \"share\": null\n    "
         "},\n"
         "    {\n      \"name\": \"of JSON\"\n    }\n  ],\n"
         "  \"run\": {\n    \"step\": 1e-5,\n    \"path\": null\n  },\n"
         "  \"pace\": null,\n"
         "  \"others\": {\n    \"a\": [\n      1,\n      2.5,\n      \"x\"\n    ]\n  }\n}\n");
}

static void without_memory_it_falls_silent_and_says_so(void** state)
{
    fixture* f = *state;
    int failures = 0;
    for (int64_t n = 0; n < 100; n++) {
        crdi_root root;
        crd_text text;
        f->memory.allocations = 0;
        f->memory.fail_at = n;
        crd_text_init(&text, f->ctx);
        crdi_result_init(&root, f->ctx, n % 2 == 0);
        make(&root.result);
        const crd_status st = crdi_result_write(&root, &text);
        failures += st == CRD_E_MEMORY;
        check(f->memory.allocations <= n || st == CRD_E_MEMORY);
        crdi_result_clear(&root);
        crd_text_clear(&text);
    }
    check(failures >= 2);
    f->memory.fail_at = -1;
}

// A document that the parser refuses, `length` bytes of it: no JSON, its failure, and where.
static void refuse(const fixture* f, const char* document, size_t length, const char* why)
{
    crdi_root root;
    crd_text text;
    crd_text_init(&text, f->ctx);
    crdi_result_init(&root, f->ctx, true);
    crdi_put(&root.result, INT("before", 1));
    crdi_put_json(&root.result, "pace", document, length);
    crdi_put(&root.result, INT("behind", 1));
    check_int(crdi_result_write(&root, &text), CRD_E_FORMAT);
    check_int(text.length, 0);
    check(strstr(crd_error_text(f->ctx), why) != NULL);
    crdi_result_clear(&root);
    crdi_result_init(&root, f->ctx, false); // text does not show it
    crdi_put_json(&root.result, "pace", document, length);
    check_ok(crdi_result_write(&root, &text));
    crdi_result_clear(&root);
    crd_text_clear(&text);
}

static void a_document_that_cannot_be_read_is_a_failure_and_not_null(void** state)
{
    enum { LEVELS = 40 };
    char deep[2 * LEVELS + 1];
    memset(deep, '[', LEVELS);
    memset(deep + LEVELS, ']', LEVELS);
    refuse(*state, deep, 2 * LEVELS, "32");
    refuse(*state, "{\"a\": ", 6, "pace");
    const size_t most = 64u << 20;
    char* large = malloc(most + 1);
    assert_non_null(large);
    memset(large, ' ', most + 1);
    large[most] = '1';
    refuse(*state, large, most + 1, "67108864");
    free(large);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(text_shows_what_was_said_and_tables_of_rows),
        T(json_has_every_value_and_nothing_that_is_only_said),
        T(without_memory_it_falls_silent_and_says_so),
        T(a_document_that_cannot_be_read_is_a_failure_and_not_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
