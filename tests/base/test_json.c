#include "check.h"
#include "shared/base_bytes.h"
#include "shared/base_values.h"

#include <float.h>

// ---- reading -----------------------------------------------------------------------------------

static void members_are_found_by_their_names_and_kinds(void** state)
{
    static const char text[] =
        "{\"a\": {\"x\": 1.5, \"t\": \"word\"}, \"yes\": true, \"no\": false, "
        "\"l\": [1, true, null]}";
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crdi_json* root = NULL;
    check_ok(crdi_json_parse(&arena, text, strlen(text),
                             (crdi_json_source){.file = "f", .first_line = 1}, &root));
    const crdi_json* a = crdi_json_get_object(root, "a");
    check(a != NULL);
    check_near(crdi_json_get_number(a, "x"), 1.5, 0);
    check_text(crdi_json_get_text(a, "t"), "word");
    check_int(crdi_json_count(crdi_json_get_list(root, "l")), 3);
    check_near(crdi_json_first(crdi_json_get_list(root, "l"))->number, 1, 0);
    check(crdi_json_item(crdi_json_get_list(root, "l"), 1)->truth);
    check(!crdi_json_item(crdi_json_get_list(root, "l"), 3));
    check(crdi_json_get_bool(root, "yes", false) && !crdi_json_get_bool(root, "none", false));
    check(!crdi_json_get_bool(root, "no", true) && crdi_json_get_bool(root, "l", true));
    // what is missing or something else
    check(isnan(crdi_json_get_number(a, "t")) && isnan(crdi_json_get_number(a, "none")));
    check_text(crdi_json_get_text(a, "x"), "");
    check(!crdi_json_get_list(root, "a") && !crdi_json_get_object(root, "l"));
    check(!crdi_json_member(NULL, "a") && !crdi_json_member(crdi_json_get_list(root, "l"), "a"));
    check_text(crdi_json_get_text(NULL, "a"), "");
    check_int(crdi_json_count(NULL), 0);
    check(!crdi_json_first(NULL) && !crdi_json_item(NULL, 0));
    crd_arena_clear(&arena);
}

static void trees_are_equal_whatever_the_order_of_their_keys(void** state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\": 1, \"b\": [2, \"x\"]}", "{\"b\": [2.0, \"x\"], \"a\": 1e0}", true},
        {"[1, 2]", "[2, 1]", false},
        {"{\"a\": 1}", "{\"a\": 1, \"b\": 2}", false},
        {"{\"a\": null}", "{\"b\": null}", false},
        {"true", "false", false},
        {"\"a\"", "\"a\"", true},
        {"null", "0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_arena arena;
        crd_arena_init(&arena, *state);
        crdi_json *a = NULL, *b = NULL;
        const crdi_json_source source = {.file = "", .first_line = 0};
        check_ok(crdi_json_parse(&arena, rows[i].a, strlen(rows[i].a), source, &a));
        check_ok(crdi_json_parse(&arena, rows[i].b, strlen(rows[i].b), source, &b));
        check_int(crdi_json_equal(a, b), rows[i].equal);
        check_int(crdi_json_equal(b, a), rows[i].equal);
        crd_arena_clear(&arena);
    }
}

static void what_is_no_json_is_refused_with_its_line(void** state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "f:1: not valid JSON: the end"},
        {"{\n\"a\": 1,\n}", "f:3: not valid JSON"},
        {"{\"a\": 1,\n \"a\": 2}", "f:2: the key 'a' is given twice"},
        {"[1, 2", "expected ',' or ']'"},
        {"\"\xff\"", "a text in UTF-8"},
        {"\"\xED\xA0\x80\"", "a text in UTF-8"},
        {"\"\\u0000\"", "an escape in a text that means nothing"},
        {"1e999", "beyond the largest number"},
        {"01", "expected no digit behind a leading zero"},
        {"1 2", "expected nothing behind the value"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested deeper than 32 levels"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_arena arena;
        crd_arena_init(&arena, *state);
        crdi_json* root = NULL;
        check(crdi_json_parse(&arena, rows[i].text, strlen(rows[i].text),
                              (crdi_json_source){.file = "f", .first_line = 1}, &root) < 0);
        check_contains(crd_error_text(*state), rows[i].message);
        crd_arena_clear(&arena);
    }
}

// ---- writing -----------------------------------------------------------------------------------

// What a command and what the master write: nested, empty, in lists.
static void write_sample(crdi_json_writer* w)
{
    crdi_json_begin_object(w, NULL);
    crdi_json_put_text(w, "name", "a<\"b\"\n");
    crdi_json_put_number(w, "x", 2);
    crdi_json_begin_list(w, "rows");
    for (int i = 0; i < 2; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_json_put_integer(w, "i", i);
        crdi_json_begin_list(w, "of");
        crdi_json_put(w, REAL(NULL, 0.1), BOOL(NULL, i == 0));
        crdi_json_end(w);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    check(crdi_json_begin_object_if(w, "none", true));
    crdi_json_end(w);
    crdi_json_begin_list(w, "empty");
    crdi_json_end(w);
    check(!crdi_json_begin_object_if(w, "unit", false));
    crdi_json_put_raw(w, "raw", "[1]");
    crdi_json_end(w);
}

static void values_are_put_as_one_by_one(void** state)
{
    static const char* const items[] = {"a", "b"};
    crd_text t;
    crdi_json_writer w;
    crd_text_init(&t, *state);
    crdi_json_writer_init(&w, &t, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(&w, TEXT("text", "x"), TEXT("none", NULL), TEXT_IF("if", ""), TEXT_IF("is", "y"),
                  INT("int", -3), REAL("real", 0.5), REAL("nan", (double)NAN), BOOL("bool", true),
                  NONE("null"));
    crdi_json_put_texts(&w, "items", items, 2);
    crdi_json_end(&w);
    check_text(t.data, "{\"text\":\"x\",\"none\":\"\",\"if\":null,\"is\":\"y\",\"int\":-3,"
                       "\"real\":0.5,\"nan\":null,\"bool\":true,\"null\":null,"
                       "\"items\":[\"a\",\"b\"]}");
    crd_text_clear(&t);
}

static void bytes_beyond_the_end_are_not_taken(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    crdi_put_u32(&t, 7);
    crdi_put_u64(&t, 8);
    crdi_bytes b = {t.data, t.length, false};
    check_int(crdi_take_u32(&b), 7);
    check_int((int64_t)crdi_take_u64(&b), 8);
    check(!b.failed && b.left == 0 && crdi_take(&b, 0) && !b.failed);
    check_int(crdi_take_u32(&b), 0);
    check(b.failed && !crdi_take(&b, 0));
    crd_text_clear(&t);
}

static void one_writer_has_four_styles(void** state)
{
    static const struct {
        crdi_json_style style;
        const char* text;
    } rows[] = {
        {CRDI_JSON_COMPACT,
         "{\"name\":\"a\\u003c\\\"b\\\"\\u000a\",\"x\":2,\"rows\":[{\"i\":0,\"of\":[0.1,true]},"
         "{\"i\":1,\"of\":[0.1,false]}],\"none\":{},\"empty\":[],\"unit\":null,\"raw\":[1]}"},
        {CRDI_JSON_ROWS,
         "{\"name\": \"a\\u003c\\\"b\\\"\\u000a\", \"x\": 2, \"rows\": [\n"
         "  {\"i\": 0, \"of\": [0.1, true]},\n"
         "  {\"i\": 1, \"of\": [0.1, false]}], \"none\": {}, \"empty\": [], \"unit\": null, "
         "\"raw\": [1]}"},
        {CRDI_JSON_INDENTED, "{\n"
                             "  \"name\": \"a<\\\"b\\\"\\n\",\n"
                             "  \"x\": 2.0,\n"
                             "  \"rows\": [\n"
                             "    {\n"
                             "      \"i\": 0,\n"
                             "      \"of\": [\n"
                             "        0.1,\n"
                             "        true\n"
                             "      ]\n"
                             "    },\n"
                             "    {\n"
                             "      \"i\": 1,\n"
                             "      \"of\": [\n"
                             "        0.1,\n"
                             "        false\n"
                             "      ]\n"
                             "    }\n"
                             "  ],\n"
                             "  \"none\": {},\n"
                             "  \"empty\": [],\n"
                             "  \"unit\": null,\n"
                             "  \"raw\": [1]\n"
                             "}"},
        {CRDI_JSON_LINE, "{\"name\":\"a<\\\"b\\\"\\n\",\"x\":2.0,\"rows\":[{\"i\":0,\"of\":[0.1,"
                         "true]},{\"i\":1,\"of\":[0.1,false]}],\"none\":{},\"empty\":[],"
                         "\"unit\":null,\"raw\":[1]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_text t;
        crdi_json_writer w;
        crd_text_init(&t, *state);
        crdi_json_writer_init(&w, &t, rows[i].style);
        write_sample(&w);
        check_text(t.data, rows[i].text);
        crd_arena arena;
        crdi_json* root = NULL;
        crd_arena_init(&arena, *state);
        check_ok(crdi_json_parse(&arena, t.data, t.length,
                                 (crdi_json_source){.file = "", .first_line = 0}, &root));
        check_text(crdi_json_get_text(root, "name"), "a<\"b\"\n");
        crd_arena_clear(&arena);
        crd_text_clear(&t);
    }
}

static void reals_of_commands_have_a_point(void** state)
{
    static const struct {
        double x;
        const char* text;
    } rows[] = {{0, "0.0"},
                {-0.0, "-0.0"},
                {1, "1.0"},
                {-2.5, "-2.5"},
                {1e15, "1000000000000000.0"},
                {1e20, "1e20"},
                {1.5e-7, "1.5e-7"},
                {1e-5, "1e-5"},
                {5e-324, "5e-324"},
                {DBL_MAX, "1.7976931348623157e308"},
                {NAN, "null"},
                {-INFINITY, "null"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_text t;
        crdi_json_writer w;
        crd_text_init(&t, *state);
        crdi_json_writer_init(&w, &t, CRDI_JSON_INDENTED);
        crdi_json_put_number(&w, NULL, rows[i].x);
        check_text(t.data, rows[i].text);
        crd_text_clear(&t);
    }
}

static void running_out_of_memory_is_remembered_by_the_text(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    for (int64_t n = 0;; n++) {
        crd_text t;
        crdi_json_writer w;
        crd_text_init(&t, ctx);
        crdi_json_writer_init(&w, &t, CRDI_JSON_INDENTED);
        a.fail_at = a.allocations + n;
        write_sample(&w);
        a.fail_at = -1;
        const bool failed = t.failed;
        crd_text_clear(&t);
        if (!failed) {
            check(n > 1);
            break;
        }
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_their_names_and_kinds),
        cmocka_unit_test(trees_are_equal_whatever_the_order_of_their_keys),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_line),
        cmocka_unit_test(values_are_put_as_one_by_one),
        cmocka_unit_test(bytes_beyond_the_end_are_not_taken),
        cmocka_unit_test(one_writer_has_four_styles),
        cmocka_unit_test(reals_of_commands_have_a_point),
        cmocka_unit_test(running_out_of_memory_is_remembered_by_the_text),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
