#include "check.h"
#include "shared/xml.h"

#include <stdio.h>

static crdi_xml* parse(crd_context* ctx, const char* text)
{
    crdi_xml* x = NULL;
    const crd_status st = crdi_xml_parse(ctx, text, strlen(text), "a.xml", &x);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return x;
}

static void refused(crd_context* ctx, const char* text, size_t length, const char* part)
{
    crdi_xml* x = NULL;
    check_status(crdi_xml_parse(ctx, text, length, "a.xml", &x), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), part);
    check(!x);
}

static void names_are_resolved_whatever_the_prefix(void** state)
{
    static const char* const texts[] = {
        "<root xmlns='urn:a' k='1'><inner/><b:other xmlns:b='urn:b' b:k='2'/></root>",
        "<p:root xmlns:p='urn:a' k='1'><p:inner/><other xmlns='urn:b' xmlns:q='urn:b' q:k='2'/>"
        "</p:root>"};
    for (int i = 0; i < 2; i++) {
        crdi_xml* x = parse(*state, texts[i]);
        check(crdi_xml_is(x->root, "urn:a", "root"));
        check_text(crdi_xml_get(x->root, "k"), "1");
        check(crdi_xml_child(x->root, "urn:a", "inner") == x->root->first);
        const crdi_xml_element* other = crdi_xml_child(x->root, "urn:b", "other");
        check(other != NULL);
        check(!crdi_xml_get(other, "k")); // it has a namespace
        check_text(other->attributes[0].space, "urn:b");
        check(!crdi_xml_child(x->root, "urn:a", "other"));
        crdi_xml_destroy(x);
    }
}

static void elements_know_their_text_line_and_bytes(void** state)
{
    const char* text = "<?xml version='1.0'?>\n<!-- c -->\n<a>\n  one<b/>two &lt;\n  <b x='>'\n"
                       "  >in</b>\n</a>";
    crdi_xml* x = parse(*state, text);
    check_text(x->root->text, "\n  onetwo <\n  \n");
    check_int(x->root->line, 3);
    const crdi_xml_element* b = x->root->first;
    check_int(b->line, 4);
    check_text(b->text, "");
    check(strncmp(x->source + b->begin, "<b/>", b->end - b->begin) == 0 && b->end - b->begin == 4);
    const crdi_xml_element* second = crdi_xml_same(b);
    check_int(second->line, 5);
    check_text(second->text, "in");
    check_int(second->end - second->begin, 18);
    check(!crdi_xml_same(second));
    check(second->parent == x->root);
    check_int(x->root->end, x->length);
    crdi_xml_destroy(x);
}

static void white_space_alone_is_no_text(void** state)
{
    crdi_xml* x = parse(*state, "<a>\n\t <b/> \n</a>");
    check_text(x->root->text, "");
    crdi_xml_destroy(x);
}

static void a_mark_at_the_beginning_is_skipped(void** state)
{
    crdi_xml* x =
        parse(*state, "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?><a k='\xC3\xA4'/>");
    check_text(crdi_xml_get(x->root, "k"), "\xC3\xA4");
    crd_text t;
    crd_text_init(&t, *state);
    crdi_xml_copy(x, x->root, &t);
    check_text(t.data, "<a k='\xC3\xA4'/>");
    crd_text_clear(&t);
    crdi_xml_destroy(x);
}

static void a_copy_is_a_document_of_its_own(void** state)
{
    crdi_xml* x =
        parse(*state, "<s:a xmlns:s='urn:s' xmlns='urn:d' xmlns:o=\"urn:o&amp;1\"><s:b\n"
                      " xmlns='urn:near'><o:c s:k='1'  xmlns:s='urn:own'><leaf/>t</o:c></s:b>"
                      "</s:a>");
    const crdi_xml_element* c = x->root->first->first;
    crd_text t;
    crd_text_init(&t, *state);
    crdi_xml_copy(x, c, &t);
    crdi_xml* copy = parse(*state, t.data);
    check(crdi_xml_is(copy->root, "urn:o&1", "c"));
    check_text(copy->root->attributes[0].space, "urn:own");
    check(crdi_xml_is(copy->root->first, "urn:near", "leaf"));
    check_text(copy->root->text, "t");
    // and again: it declares everything itself, so nothing is added
    crd_text again;
    crd_text_init(&again, *state);
    crdi_xml_copy(copy, copy->root, &again);
    check_text(again.data, t.data);
    crd_text_clear(&again);
    crd_text_clear(&t);
    crdi_xml_destroy(copy);
    crdi_xml_destroy(x);
}

static void what_is_not_well_formed_is_refused_with_its_line(void** state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "a.xml:1: not well-formed"},
        {"<a>\n<b></a>", "a.xml:2: not well-formed XML: mismatched tag"},
        {"<a>\n", "a.xml:2: not well-formed"},
        {"<a/><a/>", "a.xml:1: not well-formed"},
        {"<a k='1' k='2'/>", "duplicate attribute"},
        {"<p:a/>", "unbound prefix"},
        {"<a>&unknown;</a>", "undefined entity"},
        {"<a>\xFF</a>", "not well-formed"},
        {"<?xml version='1.0' encoding='ISO-8859-1'?><a/>", "encoding 'ISO-8859-1'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(*state, rows[i].text, strlen(rows[i].text), rows[i].part);
    }
    refused(*state, "\xFF\xFE<\0a\0", 6, "UTF-16");
    refused(*state, "<a>\0</a>", 8, "a.xml:1");
}

static void a_doctype_is_refused_before_anything_grows(void** state)
{
    const char* laughs = "<?xml version='1.0'?>\n<!DOCTYPE l [<!ENTITY a 'ha'>"
                         "<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;'>]>"
                         "<l>&c;</l>";
    refused(*state, laughs, strlen(laughs), "a.xml:2: a DOCTYPE");
    const char* file = "<!DOCTYPE l SYSTEM 'file:///etc/passwd'><l/>";
    refused(*state, file, strlen(file), "a DOCTYPE");
}

static void depth_and_numbers_are_bounded(void** state)
{
    enum { DEEP = 10000 };
    crd_text t;
    crd_text_init(&t, *state);
    for (int i = 0; i < DEEP; i++) {
        crdi_text_put(&t, "<a>\n", 4);
    }
    refused(*state, t.data, t.length, "a.xml:257: elements are nested deeper than 256");
    t.length = 0;
    crdi_text_put(&t, "<a", 2);
    for (int i = 0; i < 300; i++) {
        crdi_text_add(&t, " k%d=''", i);
    }
    crdi_text_put(&t, "/>", 2);
    refused(*state, t.data, t.length, "more than 256 attributes");
    t.length = 0;
    crdi_text_put(&t, "<a", 2);
    for (int i = 0; i < 300; i++) {
        crdi_text_add(&t, " xmlns:k%d='u'", i);
    }
    crdi_text_put(&t, "/>", 2);
    refused(*state, t.data, t.length, "more than 256 namespaces");
    t.length = 0;
    crdi_text_put(&t, "<a>", 3);
    for (int i = 0; i < 1 << 20; i++) {
        crdi_text_put(&t, "<b/>", 4);
    }
    crdi_text_put(&t, "</a>", 4);
    refused(*state, t.data, t.length, "more than 1048576 elements");
    crd_text_clear(&t);
    crdi_xml* x = NULL;
    check_status(crdi_xml_parse(*state, "", (size_t)65 << 20, "a.xml", &x), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "expected at most");
}

static void running_out_of_memory_is_an_error_everywhere(void** state)
{
    const char* text = "<s:a xmlns:s='urn:s' k='1'>text<s:b x='2'>more</s:b></s:a>";
    bool done = false;
    for (int fail_at = 0; !done; fail_at++) {
        check(fail_at < 1000);
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t before = a.live;
        a.allocations = 0;
        a.fail_at = fail_at;
        crdi_xml* x = NULL;
        crd_text t;
        crd_text_init(&t, ctx);
        const crd_status st = crdi_xml_parse(ctx, text, strlen(text), "a.xml", &x);
        if (st == CRD_OK) {
            crdi_xml_copy(x, x->root->first, &t);
            done = !t.failed;
        } else {
            check_status(st, CRD_E_MEMORY);
            check(!x);
        }
        crd_text_clear(&t);
        crdi_xml_destroy(x);
        check_int(a.live, before);
        crd_context_destroy(ctx);
    }
}

static int set_up(void** state)
{
    *state = crd_context_create(NULL);
    return 0;
}

// ---- writing -----------------------------------------------------------------------------------

static void what_is_written_has_lines_of_its_own_and_reads_back(void** state)
{
    crd_context* ctx = *state;
    crd_text t;
    crdi_xml_writer w;
    crd_text_init(&t, ctx);
    crdi_xml_writer_init(&w, &t);
    crdi_xml_begin(&w, "a");
    crdi_xml_put(&w, "text", "<'&\"\t\n>");
    crdi_xml_put_int(&w, "n", -3);
    crdi_xml_begin(&w, "leaf");
    crdi_xml_put_if(&w, "none", "");
    crdi_xml_put_bool(&w, "yes", true);
    crdi_xml_end(&w);
    crdi_xml_begin_in(&w, "p:", "line");
    crdi_xml_inline(&w);
    crdi_xml_put(&w, "xmlns:p", "urn:p");
    crdi_xml_begin(&w, "x");
    crdi_xml_content(&w, "1 < 2, \"so\"");
    crdi_xml_end(&w);
    crdi_xml_begin(&w, "y");
    crdi_xml_put_real(&w, "v", 0.1);
    crdi_xml_end(&w);
    crdi_xml_end(&w);
    crdi_xml_line(&w, "<raw/>");
    crdi_xml_end(&w);
    assert_false(t.failed);
    assert_null(w.bad);
    assert_string_equal(
        t.data, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<a text=\"&lt;'&amp;&quot;&#9;&#10;&gt;\" n=\"-3\">\n"
                "  <leaf yes=\"true\"/>\n"
                "  <p:line xmlns:p=\"urn:p\"><x>1 &lt; 2, \"so\"</x><y v=\"0.1\"/></p:line>\n"
                "  <raw/>\n"
                "</a>\n");
    crdi_xml* x = NULL;
    check_ok(crdi_xml_parse(ctx, t.data, t.length, "w.xml", &x));
    assert_string_equal(crdi_xml_get(x->root, "text"), "<'&\"\t\n>");
    crdi_xml_destroy(x);
    crd_text_clear(&t);
}

static void a_text_that_xml_cannot_hold_is_named_and_too_deep_fails(void** state)
{
    crd_context* ctx = *state;
    static const char* const bad[] = {"a\x01", "\xff", "\xEF\xBF\xBE"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crd_text t;
        crdi_xml_writer w;
        crd_text_init(&t, ctx);
        crdi_xml_writer_init(&w, &t);
        crdi_xml_begin(&w, "a");
        crdi_xml_put(&w, "good", "\xC3\xA4");
        assert_null(w.bad);
        crdi_xml_put(&w, "text", bad[i]);
        assert_ptr_equal(w.bad, bad[i]);
        for (int k = 0; k < CRDI_XML_WRITE_DEPTH; k++) {
            crdi_xml_begin(&w, "b");
        }
        crdi_xml_begin(&w, "c");
        for (int k = 0; k < CRDI_XML_WRITE_DEPTH + 2; k++) {
            crdi_xml_end(&w);
        }
        assert_true(t.failed);
        crd_text_clear(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_resolved_whatever_the_prefix),
        cmocka_unit_test(elements_know_their_text_line_and_bytes),
        cmocka_unit_test(white_space_alone_is_no_text),
        cmocka_unit_test(a_mark_at_the_beginning_is_skipped),
        cmocka_unit_test(a_copy_is_a_document_of_its_own),
        cmocka_unit_test(what_is_not_well_formed_is_refused_with_its_line),
        cmocka_unit_test(a_doctype_is_refused_before_anything_grows),
        cmocka_unit_test(depth_and_numbers_are_bounded),
        cmocka_unit_test(running_out_of_memory_is_an_error_everywhere),
        cmocka_unit_test(what_is_written_has_lines_of_its_own_and_reads_back),
        cmocka_unit_test(a_text_that_xml_cannot_hold_is_named_and_too_deep_fails),
    };
    return cmocka_run_group_tests(tests, set_up, check_tear_down);
}
