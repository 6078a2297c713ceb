#include "check.h"
#include "shared/base.h"

#include <float.h>

static void texts_grow_piece_by_piece(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_put(&t, "", 0);
    check_text(t.data, "");
    char longest[1000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    crdi_text_add(&t, "%d-%s-", 42, "a");
    crdi_text_add(&t, "%s|", longest); // longer than the buffer on the stack
    crdi_text_put(&t, "end", 3);
    check_int(t.length, 5 + 999 + 1 + 3);
    check_int(strlen(t.data), t.length);
    check(strncmp(t.data, "42-a-xxx", 8) == 0);
    check_text(t.data + t.length - 5, "x|end");
    check(!t.failed);
    crd_text_clear(&t);
    crd_context_destroy(ctx);
}

static void xml_has_no_character_that_would_end_it(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_xml(&t, "a<b>&\"c'\n\x01 \xC3\xA9");
    check_text(t.data, "a&lt;b&gt;&amp;&quot;c&apos;\n? \xC3\xA9");
    crd_text_clear(&t);
    crd_context_destroy(ctx);
}

static void bytes_become_base64(void** state)
{
    static const char* const rows[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}}; // RFC 4648
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_text t;
        crd_text_init(&t, ctx);
        crdi_text_base64(&t, rows[i][0], strlen(rows[i][0]));
        check_text(t.data, rows[i][1]);
        check_int(t.length, strlen(rows[i][1]));
        crd_text_clear(&t);
    }
    crd_context_destroy(ctx);
}

static void json_texts_are_escaped_and_are_utf8(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"</script>", "\"\\u003c/script>\""},
        {"\n\x7f", "\"\\u000a\\u007f\""},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\xC3", "\"\xEF\xBF\xBD\""},                                 // cut off
        {"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                 // overlong
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, // half of a pair
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_text t;
        crd_text_init(&t, ctx);
        crdi_text_json(&t, rows[i].text);
        check_text(t.data, rows[i].json);
        crd_text_clear(&t);
    }
    crd_context_destroy(ctx);
}

static void json_numbers_read_back_as_they_were(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    static const double numbers[] = {0, -0.0, 0.1, 1.0 / 3, 1e300, DBL_MIN, 5e-324, 123456789.5};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        crd_text t;
        crd_text_init(&t, ctx);
        crdi_text_json_number(&t, numbers[i]);
        const double back = strtod(t.data, NULL);
        check(memcmp(&back, &numbers[i], sizeof back) == 0);
        crd_text_clear(&t);
    }
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_json_number(&t, 0.1);
    crdi_text_put(&t, " ", 1);
    crdi_text_json_number(&t, NAN);
    crdi_text_put(&t, " ", 1);
    crdi_text_json_number(&t, -INFINITY);
    check_text(t.data, "0.1 null null");
    crd_text_clear(&t);
    crd_context_destroy(ctx);
}

static void running_out_of_memory_is_remembered(void** state)
{
    check_allocator a = {.fail_at = -1};
    crd_context_options opt = crd_context_defaults();
    opt.realloc = check_realloc;
    opt.realloc_user = &a;
    crd_context* ctx = crd_context_create(&opt);
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_add(&t, "kept");
    a.fail_at = a.allocations;
    a.once = true;
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    crdi_text_put(&t, longest, sizeof longest);
    check(t.failed);
    crdi_text_add(&t, "more"); // there is memory again, but something is missing
    check_text(t.data, "kept");
    crd_text_clear(&t);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_grow_piece_by_piece),
        cmocka_unit_test(xml_has_no_character_that_would_end_it),
        cmocka_unit_test(bytes_become_base64),
        cmocka_unit_test(json_texts_are_escaped_and_are_utf8),
        cmocka_unit_test(json_numbers_read_back_as_they_were),
        cmocka_unit_test(running_out_of_memory_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
