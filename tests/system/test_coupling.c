// coupling: of connections, and YAML as JSON that keeps its lines.
#include "cardan/coupling.h"
#include "cardan/system.h"
#include "check.h"
#include "shared/base.h"

#include <stdio.h>

// ---- YAML as JSON ------------------------------------------------------------------------------

static void check_json(crd_context* ctx, const char* yaml, const char* json)
{
    crd_text out;
    crd_text_init(&out, ctx);
    if (crd_yaml_to_json(ctx, yaml, strlen(yaml), (crd_place){"e.yaml", 1}, &out) < 0) {
        fail_msg("%s: %s", yaml, crd_error_text(ctx));
    }
    check_text(out.data, json);
    crd_text_clear(&out);
}

static void scalars_keep_what_they_are(void** state)
{
    crd_context* ctx = *state;
    check_json(ctx, "[1, -2.5, 1e-4, 1E5]", "[1, -2.5, 1e-4, 1E5]");
    check_json(ctx, "[+5, .5, 7., 010, 0x1F, -0]", "[5, 0.5, 7, 10, 31, -0]");
    check_json(ctx, "[0x, 0xg, 0x1g, 0X1F]", "[\"0x\", \"0xg\", \"0x1g\", \"0X1F\"]");
    check_json(ctx, "[0xfffffffffffff, 0x10000000000000]", // 13 digits are exact
               "[4503599627370495, \"0x10000000000000\"]");
    check_json(ctx, "[true, False, TRUE, null, ~]", "[true, false, true, null, null]");
    check_json(ctx, "[yes, 5 Hz, 1 2, .inf, .nan, nan, inf, 1e]",
               "[\"yes\", \"5 Hz\", \"1 2\", \".inf\", \".nan\", \"nan\", \"inf\", \"1e\"]");
    check_json(ctx, "[\"1\", 'true', \"\"]", "[\"1\", \"true\", \"\"]");
    check_json(ctx, "a:", "{\"a\": null}");
    check_json(ctx, "{}", "{}");
    check_json(ctx, "\"\\\"\\u00e4\"", "\"\\\"\xc3\xa4\"");
    check_json(ctx, "eros", "\"eros\"");
    check_json(ctx, "[1e999]", "[1e999]"); // whoever reads it says that it is too large
}

static void tokens_stay_in_their_lines(void** state)
{
    crd_context* ctx = *state;
    check_json(ctx, "# a\n\na: 1\nb:\n  - 2\n  - c: 3\n\n    d: 4\n",
               "\n\n{\"a\": 1,\n \"b\": [\n2,\n {\"c\": 3,\n\n \"d\": 4}]}");
    check_json(ctx, "---\n{ \"x\": [1,\n  2]\n}\n", "\n{\"x\": [1,\n 2]}");
}

static void messages_about_an_element_tell_the_line_of_the_yaml(void** state)
{
    crd_context* ctx = *state;
    static const char yaml[] = "# torque of the motor\nname: torque\nalgorithm: wiener\n"
                               "bands:\n  - [0, 10, 1]\n  - [30, 5, 0.03]\nnoise: -1\n";
    crd_text out;
    crd_text_init(&out, ctx);
    crd_element* e = NULL;
    check_ok(crd_yaml_to_json(ctx, yaml, strlen(yaml), (crd_place){"e.yaml", 1}, &out));
    check_status(crd_element_parse(ctx, out.data, out.length, "e.yaml", 1, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "e.yaml:6: bands: band 2");
    crd_text_clear(&out);
}

static void bad_yaml_is_refused(void** state)
{
    crd_context* ctx = *state;
    crd_text out;
    crd_text_init(&out, ctx);
    static const char* const bad[] = {"", "{a: [1}", "a: &x 1", "a: 1\na: 2", "\xff", "a: !!int 3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crd_yaml_to_json(ctx, bad[i], strlen(bad[i]), (crd_place){"e.yaml", 7}, &out),
                     CRD_E_FORMAT);
        check_contains(crd_error_text(ctx), "e.yaml:");
    }
    static const char open[] = "{algorithm: eros"; // on a command line: nobody counts lines
    check_status(crd_yaml_to_json(ctx, open, sizeof open - 1, (crd_place){"", 0}, &out),
                 CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), "not valid YAML: ");
    check(!strstr(crd_error_text(ctx), "line"));
    crd_text_clear(&out);
}

// ---- connections -------------------------------------------------------------------------------

#define UNITS "cardan: 1\nunits: { a: { fmu: a.fmu }, b: { fmu: b.fmu } }\nconnections:\n"
#define ELEMENT_FILE TEST_BUILD_DIR "/test_coupling_element.yaml"
#define HERE TEST_BUILD_DIR "/test_coupling.yaml"

static void write_element_file(void)
{
    FILE* f = fopen(ELEMENT_FILE, "w");
    check(f != NULL);
    fputs("# an element\nalgorithm: moment\ntaps: 4\n", f);
    fclose(f);
}

static crd_system* parse(crd_context* ctx, const char* text)
{
    crd_system* s = NULL;
    if (crd_system_parse(ctx, text, strlen(text), HERE, &s) != CRD_OK) {
        fail_msg("refused: %s", crd_error_text(ctx));
    }
    return s;
}

static void a_word_is_an_element(void** state)
{
    crd_system* s = parse(*state, UNITS "  - { from: a.y, to: b.u, coupling: eros }\n"
                                        "  - a.z -> b.v\n");
    const crd_coupling_spec* c = s->connections[0].coupling;
    check_text(c->element, "{\"algorithm\": \"eros\"}");
    check_text(c->place.file, HERE);
    check_int(c->place.line, 4);
    check(c->record && !c->has_channel && c->shadow_count == 0);
    check(s->connections[1].coupling == NULL);
    crd_system_destroy(s);
    s = parse(*state, UNITS "  - { from: a.y, to: b.u, coupling: savitzky-golay }\n"); // no file
    check_text(s->connections[0].coupling->element, "{\"algorithm\": \"savitzky-golay\"}");
    crd_system_destroy(s);
}

static void all_or_nothing_may_be_lost_or_repeated(void** state)
{
    crd_system* s = parse(*state, UNITS "  - { from: a.y, to: b.u, coupling: { channel: { loss: 1, "
                                        "duplicate: 100 %, delay: 1, jitter: 1 } } }\n");
    const crd_channel_spec* h = &s->connections[0].coupling->channel;
    check(h->loss == 1 && h->duplicate == 1 && h->jitter == 1);
    crd_system_destroy(s);
}

static void a_mapping_has_element_channel_and_shadows(void** state)
{
    write_element_file();
    crd_system* s = parse(*state, UNITS "  - from: a.y\n"
                                        "    to: b.u\n"
                                        "    coupling:\n"
                                        "      algorithm: wiener\n"
                                        "      record: no\n"
                                        "      taps: 25\n"
                                        "      channel: { step: 10 ms, delay: 57.5 ms, loss: 5 %,\n"
                                        "                 jitter: 5 ms, burst: 3, seed: 7,\n"
                                        "                 duplicate: 0.01 }\n"
                                        "      shadow:\n"
                                        "        - zoh\n"
                                        "        - { algorithm: rls, taps: 9 }\n"
                                        "        - test_coupling_element.yaml\n"
                                        "      latency: 60 ms\n");
    const crd_coupling_spec* c = s->connections[0].coupling;
    check_text(c->element, "{\n\"algorithm\": \"wiener\",\n\n \"taps\": 25,"
                           "\n\n\n\n\n\n\n\n \"latency\": \"60 ms\"}");
    check_int(c->place.line, 6);
    check(!c->record && c->has_channel);
    check(c->channel.step == 0.01 && c->channel.delay == 0.0575 && c->channel.loss == 0.05);
    check(c->channel.jitter == 0.005 && c->channel.burst == 3 && c->channel.seed == 7);
    check(c->channel.duplicate == 0.01);
    check_int(c->shadow_count, 3);
    check_text(c->shadows[0], "{\"algorithm\": \"zoh\"}");
    check_int(c->shadow_places[0].line, 14);
    check_text(c->shadows[1], "{\"algorithm\": \"rls\", \"taps\": 9}");
    check_int(c->shadow_places[1].line, 15);
    check_text(c->shadows[2], "\n{\"algorithm\": \"moment\",\n \"taps\": 4}");
    check_text(c->shadow_places[2].file, ELEMENT_FILE);
    check_int(c->shadow_places[2].line, 1);
    crd_system_destroy(s);
}

static void a_file_is_read_beside_the_description(void** state)
{
    write_element_file();
    const char* const texts[] = {
        UNITS "  - { from: a.y, to: b.u, coupling: test_coupling_element.yaml }\n",
        UNITS "  - { from: a.y, to: b.u,\n"
              "      coupling: { file: test_coupling_element.yaml, channel: { delay: 1 } } }\n"};
    for (int i = 0; i < 2; i++) {
        crd_system* s = parse(*state, texts[i]);
        const crd_coupling_spec* c = s->connections[0].coupling;
        check_text(c->element, "\n{\"algorithm\": \"moment\",\n \"taps\": 4}");
        check_text(c->place.file, ELEMENT_FILE);
        check_int(c->has_channel, i);
        check(isnan(c->channel.step) && c->channel.burst == 1 && c->channel.seed == 1);
        crd_system_destroy(s);
    }
}

static void a_channel_alone_is_enough(void** state)
{
    crd_system* s = parse(*state, UNITS
                          "  - { from: a.y, to: b.u, coupling: { channel: { delay: 60 ms } } }\n");
    check_text(s->connections[0].coupling->element, "{}");
    crd_system_destroy(s);
}

static void an_amendment_puts_a_coupling_in_place_of_another(void** state)
{
    crd_system* s = parse(*state, UNITS "  - { from: a.y, to: b.u, coupling: eros }\n");
    static const char foh[] = "connections: [{ from: a.y, to: b.u, coupling: foh }]";
    check_ok(crd_system_amend(s, foh, strlen(foh), "x.yaml", 1));
    check_int(s->connection_count, 1);
    check_text(s->connections[0].coupling->element, "{\"algorithm\": \"foh\"}");
    static const char gain[] = "connections: [{ from: a.y, to: b.u, gain: 2 }]";
    check_ok(crd_system_amend(s, gain, strlen(gain), "x.yaml", 1));
    check_text(s->connections[0].coupling->element, "{\"algorithm\": \"foh\"}");
    static const char hold[] = "connections: [{ from: a.y, to: b.u, predict: hold }]";
    check_ok(crd_system_amend(s, hold, strlen(hold), "x.yaml", 1));
    check(s->connections[0].coupling == NULL);
    crd_system_destroy(s);
}

static void mistakes_are_said_with_their_line(void** state)
{
    crd_context* ctx = *state;
    static const struct {
        const char* coupling;
        crd_status st;
        const char *part, *other;
    } rows[] = {
        {"eros, predict: linear", CRD_E_FORMAT, "coupling and predict", "one of them"},
        {"eros, scale: 2", CRD_E_FORMAT, "coupling and scale", "one of them"},
        {"eros, tolerance: 2", CRD_E_FORMAT, "coupling and tolerance", "one of them"},
        {"[eros]", CRD_E_FORMAT, "coupling: a list", "an algorithm such as eros"},
        {"", CRD_E_FORMAT, "coupling: nothing", "expected"},
        {"none.yaml", CRD_E_NOT_FOUND, TEST_BUILD_DIR "/none.yaml", "no such file"},
        {"./", CRD_E_FORMAT, "a folder", "expected the file of an element"},
        {"{ file: none.yaml }", CRD_E_NOT_FOUND, "none.yaml", "no such file"},
        {"{ file: a.yaml, taps: 3 }", CRD_E_FORMAT, "no other keys", "channel, shadow and record"},
        {"{ record: maybe }", CRD_E_FORMAT, "coupling.record", "true or false"},
        {"{ channel: 3 }", CRD_E_FORMAT, "coupling.channel: '3'", "a mapping"},
        {"{ channel: { dely: 3 } }", CRD_E_FORMAT, "unknown key 'dely'", "'delay'"},
        {"{ channel: { delay: -1 } }", CRD_E_RANGE, "channel.delay", "less than 0"},
        {"{ channel: { delay: 10 ms, jitter: 20 ms } }", CRD_E_RANGE, "jitter: 0.02 s", "0.01 s"},
        {"{ channel: { loss: 5 } }", CRD_E_RANGE, "loss: 5", "from 0 to 1"},
        {"{ channel: { loss: 5 m } }", CRD_E_FORMAT, "channel.loss", "length"},
        {"{ channel: { duplicate: 1.01 } }", CRD_E_RANGE, "duplicate: 1.01", "5 %"},
        {"{ channel: { burst: 0 } }", CRD_E_RANGE, "channel.burst", "from 1 to"},
        {"{ channel: { step: 0 } }", CRD_E_RANGE, "channel.step", "greater than 0"},
        {"{ channel: { delay: .nan } }", CRD_E_RANGE, "channel.delay", "finite"},
        {"{ shadow: [] }", CRD_E_FORMAT, "coupling.shadow: an empty list", "[zoh, eros]"},
        {"{ shadow: [zoh, [foh]] }", CRD_E_FORMAT, "coupling.shadow[2]", "an algorithm"},
        {"{ shadow: [{ channel: {} }] }", CRD_E_FORMAT, "'channel' has no place", "element"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        snprintf(text, sizeof text, UNITS "  - { from: a.y, to: b.u, coupling: %s }\n",
                 rows[i].coupling);
        crd_system* s = NULL;
        const crd_status st = crd_system_parse(ctx, text, strlen(text), HERE, &s);
        if (st != rows[i].st) {
            fail_msg("%s gave %s: %s", rows[i].coupling, crd_status_name(st), crd_error_text(ctx));
        }
        check_contains(crd_error_text(ctx), HERE ":4: connections[1]");
        check_contains(crd_error_text(ctx), rows[i].part);
        check_contains(crd_error_text(ctx), rows[i].other);
    }
}

static void a_broken_element_file_is_named(void** state)
{
    FILE* f = fopen(TEST_BUILD_DIR "/test_coupling_broken.yaml", "w");
    check(f != NULL);
    fputs("algorithm: eros\nalgorithm: foh\n", f);
    fclose(f);
    crd_system* s = NULL;
    static const char text[] =
        UNITS "  - { from: a.y, to: b.u, coupling: test_coupling_broken.yaml }\n";
    check_status(crd_system_parse(*state, text, strlen(text), HERE, &s), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "test_coupling_broken.yaml:2: the key 'algorithm'");
}

static void every_allocation_may_fail(void** state)
{
    write_element_file();
    static const char text[] =
        UNITS "  - { from: a.y, to: b.u, coupling: eros }\n"
              "  - { from: a.z, to: b.v, coupling: { taps: 3, channel: { delay: 1 },\n"
              "      shadow: [zoh, { algorithm: rls }, test_coupling_element.yaml] } }\n"
              "  - { from: a.z, to: b.w, coupling: { file: test_coupling_element.yaml } }\n";
    int failures = 0;
    crd_status st = CRD_E_MEMORY;
    for (int64_t fail_at = 0; st != CRD_OK; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t before = a.live;
        a.fail_at = a.allocations + fail_at;
        crd_system* s = NULL;
        st = crd_system_parse(ctx, text, strlen(text), HERE, &s);
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            failures++;
        }
        crd_system_destroy(s);
        check_int(a.live, before);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
    check(failures >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_keep_what_they_are),
        cmocka_unit_test(tokens_stay_in_their_lines),
        cmocka_unit_test(messages_about_an_element_tell_the_line_of_the_yaml),
        cmocka_unit_test(bad_yaml_is_refused),
        cmocka_unit_test(a_word_is_an_element),
        cmocka_unit_test(all_or_nothing_may_be_lost_or_repeated),
        cmocka_unit_test(a_mapping_has_element_channel_and_shadows),
        cmocka_unit_test(a_file_is_read_beside_the_description),
        cmocka_unit_test(a_channel_alone_is_enough),
        cmocka_unit_test(an_amendment_puts_a_coupling_in_place_of_another),
        cmocka_unit_test(mistakes_are_said_with_their_line),
        cmocka_unit_test(a_broken_element_file_is_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
