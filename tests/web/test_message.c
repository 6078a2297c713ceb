// What pages say: bytes to commands, and what is wrong with them.
#include "check.h"

#include "web/web.h"

static crd_context* ctx;
static crd_arena arena;
static crdi_web_request q;

static int begin(void** state)
{
    (void)state;
    ctx = crd_context_create(NULL);
    crd_arena_init(&arena, ctx);
    return 0;
}

static int end(void** state)
{
    (void)state;
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}

static crd_status read_text(const char* text)
{
    return crdi_web_message(&arena, text, strlen(text), &q);
}

static void good(const char* text)
{
    if (read_text(text) < 0) { fail_msg("%s: %s", text, crd_error_text(ctx)); }
    check(q.has_id);
}

static void bad(const char* text, const char* part)
{
    check_status(read_text(text), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), part);
}

static void commands_are_read(void** state)
{
    (void)state;
    good("{\"id\":7,\"do\":\"start\"}");
    check_int(q.command.action, CRDI_LIVE_START);
    check(!q.watching && q.id == 7);
    good("{\"do\":\"pause\",\"id\":-1}");
    check_int(q.command.action, CRDI_LIVE_PAUSE);
    good("{\"id\":1,\"do\":\"stop\"}");
    check_int(q.command.action, CRDI_LIVE_STOP);
    good("{\"id\":1,\"do\":\"step\"}");
    check_int(q.command.action, CRDI_LIVE_STEP);
    check_int(q.command.count, 1);
    good("{\"id\":1,\"do\":\"step\",\"count\":1e3}");
    check_int(q.command.count, 1000);
    good("{\"id\":1,\"do\":\"mark\",\"text\":\"gro\\u00df\"}");
    check_int(q.command.action, CRDI_LIVE_MARK);
    check_text(q.command.text, "groß");
    good("{\"id\":1,\"do\":\"clear\",\"to\":\"\"}");
    check_int(q.command.action, CRDI_LIVE_CLEAR);
    check_text(q.command.name, "");
}

static void values_are_texts_numbers_and_truths(void** state)
{
    (void)state;
    good("{\"id\":1,\"do\":\"set\",\"name\":\"a.b\",\"value\":\"100 g\"}");
    check_int(q.command.action, CRDI_LIVE_SET);
    check_text(q.command.name, "a.b");
    check_text(q.command.text, "100 g");
    good("{\"id\":1,\"do\":\"set\",\"name\":\"a.b\",\"value\":-1.5e-3}");
    check_text(q.command.text, "-1.5e-3");
    good("{\"id\":1,\"do\":\"set\",\"name\":\"a.b\",\"value\":true}");
    check_text(q.command.text, "true");
    bad("{\"id\":1,\"do\":\"set\",\"name\":\"a.b\",\"value\":null}", "\"value\" is null");
    bad("{\"id\":1,\"do\":\"set\",\"name\":\"a.b\"}", "\"value\" is missing");
    bad("{\"id\":1,\"do\":\"set\",\"name\":3,\"value\":1}", "\"name\" is a number");
    bad("{\"id\":1,\"do\":\"set\",\"name\":\"x\",\"value\":[1]}", "a list");
}

static void watches_are_lists_of_at_most_64_names(void** state)
{
    (void)state;
    good("{\"id\":1,\"do\":\"watch\",\"signals\":[\"a.b\",\"c\"]}");
    check(q.watching);
    check_int(q.signal_count, 2);
    check_text(q.signals[1], "c");
    good("{\"id\":1,\"do\":\"watch\",\"signals\":[]}");
    check_int(q.signal_count, 0);
    bad("{\"id\":1,\"do\":\"watch\"}", "missing");
    bad("{\"id\":1,\"do\":\"watch\",\"signals\":[1]}", "names only");
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_add(&t, "{\"id\":1,\"do\":\"watch\",\"signals\":[");
    for (int i = 0; i < 65; i++) {
        crdi_text_add(&t, "%s\"s\"", i ? "," : "");
    }
    crdi_text_add(&t, "]}");
    bad(t.data, "65 signals");
    crd_text_clear(&t);
}

static void elements_are_names_or_objects_that_survive(void** state)
{
    (void)state;
    good("{\"id\":1,\"do\":\"couple\",\"to\":\"s.M\",\"element\":\"eros\"}");
    check_int(q.command.action, CRDI_LIVE_COUPLE);
    check_text(q.command.text, "eros");
    good("{\"id\":1,\"do\":\"couple\",\"to\":\"s.M\",\"element\": {\"algorithm\" : \"foh\", "
         "\"x\":[1, "
         "-2.50,true,null,\"a\\\"b\"], \"y\":{}} }");
    check_text(q.command.text,
               "{\"algorithm\":\"foh\",\"x\":[1,-2.50,true,null,\"a\\\"b\"],\"y\":{}}");
    bad("{\"id\":1,\"do\":\"couple\",\"to\":\"s.M\",\"element\":3}", "\"element\" is a number");
}

static void faults_have_a_kind_a_value_and_a_duration(void** state)
{
    (void)state;
    good("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"offset\",\"value\":1.5,\"duration\":"
         "2}");
    check_int(q.command.action, CRDI_LIVE_FAULT);
    check_int(q.command.fault, CRDI_FAULT_OFFSET);
    check_near(q.command.value, 1.5, 0);
    check_near(q.command.duration, 2, 0);
    good("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"hold\",\"duration\":null}");
    check(isnan(q.command.duration));
    bad("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"offset\"}", "needs a \"value\"");
    bad("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"none\",\"value\":1}",
        "no fault \"none\"");
    bad("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"\",\"value\":1}", "no fault \"\"");
    bad("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"gain\",\"value\":1,\"duration\":0}",
        "expected > 0");
    bad("{\"id\":1,\"do\":\"fault\",\"to\":\"s.M\",\"kind\":\"gain\",\"value\":\"1\"}", "a text");
}

static void levers_are_moved_by_names_and_numbers(void** state)
{
    (void)state;
    good("{\"id\":1,\"do\":\"take\",\"unit\":\"desk\"}");
    check_int(q.command.action, CRDI_LIVE_TAKE);
    check_text(q.command.name, "desk");
    good("{\"id\":1,\"do\":\"release\",\"unit\":\"desk\"}");
    check_int(q.command.action, CRDI_LIVE_RELEASE);
    good("{\"id\":1,\"do\":\"drive\",\"unit\":\"human\"}"); // a sign of life
    check_int(q.command.value_count, 0);
    good("{\"id\":1,\"do\":\"drive\",\"unit\":\"human\",\"values\":[1,-2.5]}");
    check_int(q.command.action, CRDI_LIVE_DRIVE);
    check_int(q.command.value_count, 2);
    check_near(q.command.values[1], -2.5, 0);
    good("{\"id\":1,\"do\":\"go\",\"lever\":\"desk.speed\",\"target\":100,\"rate\":5}");
    check_text(q.command.name, "desk.speed");
    check_near(q.command.value, 100, 0);
    check_near(q.command.rate, 5, 0);
    good("{\"id\":1,\"do\":\"go\",\"lever\":\"desk.speed\",\"target\":null}");
    check(isnan(q.command.value) && isnan(q.command.rate));
    good("{\"id\":1,\"do\":\"prepare\"}");
    check_int(q.command.action, CRDI_LIVE_PREPARE);
    bad("{\"id\":1,\"do\":\"take\"}", "\"unit\" is missing, expected a text");
    bad("{\"id\":1,\"do\":\"drive\",\"unit\":\"h\",\"values\":3}", "expected a list of 32 numbers");
    bad("{\"id\":1,\"do\":\"drive\",\"unit\":\"h\",\"values\":[true]}", "numbers only");
    bad("{\"id\":1,\"do\":\"go\",\"lever\":\"d.s\"}", "\"target\" is missing");
    bad("{\"id\":1,\"do\":\"go\",\"lever\":\"d.s\",\"target\":\"5\"}", "expected a number");
    good("{\"id\":1,\"do\":\"calibrate\",\"name\":\"b.t\",\"points\":[[0,0.5],[50,51]],\"by\":"
         "\"me\"}");
    check_int(q.command.action, CRDI_LIVE_CALIBRATE);
    check_near(q.command.values[3], 51, 0);
    bad("{\"id\":1,\"do\":\"calibrate\",\"name\":\"b.t\",\"points\":[[0,1]],\"by\":\"me\"}",
        "expected two of reference");
    bad("{\"id\":1,\"do\":\"calibrate\",\"name\":\"b.t\",\"points\":[[0,1],[1,2],[2,3]],\"by\":"
        "\"me\"}",
        "expected two of reference");
    bad("{\"id\":1,\"do\":\"calibrate\",\"name\":\"b.t\",\"points\":[[0,1],[1,2]]}",
        "\"by\" is missing");
    char many[400] = "{\"id\":1,\"do\":\"drive\",\"unit\":\"h\",\"values\":[0";
    for (int i = 0; i < 32; i++) {
        strcat(many, ",0");
    }
    strcat(many, "]}");
    bad(many, "a longer list");
}

static void what_makes_no_sense_is_named(void** state)
{
    (void)state;
    bad("[]", "the message is a list");
    check(!q.has_id);
    bad("{}", "\"id\" is missing");
    bad("{\"id\":1.5,\"do\":\"start\"}", "whole number");
    bad("{\"id\":\"1\",\"do\":\"start\"}", "\"id\" is a text");
    bad("{\"id\":1e300,\"do\":\"start\"}", "2^53");
    bad("{\"id\":1e999,\"do\":\"start\"}", "1e999");
    bad("{\"id\":4}", "\"do\" is missing");
    check(q.has_id && q.id == 4);
    bad("{\"id\":1,\"do\":\"explode\"}", "\"explode\"");
    bad("{\"id\":1,\"do\":\"start\",\"now\":true}", "\"start\" has no member \"now\"");
    bad("{\"id\":1,\"do\":\"pause\",\"count\":1}", "no member \"count\"");
    bad("{\"id\":1,\"do\":\"emergency\",\"text\":\"now\"}", "no member \"text\"");
    bad("{\"id\":1,\"do\":\"step\",\"count\":0}", "\"count\" is 0");
    bad("{\"id\":1,\"do\":\"step\",\"count\":1.5}", "1.5");
    bad("{\"id\":1,\"do\":\"step\",\"count\":\"2\"}", "a text");
    bad("{\"id\":1,\"do\":\"mark\",\"text\":\"\"}", "0 bytes");
    bad("{\"id\":1,\"do\":\"mark\",\"text\":\"a\\nb\"}", "control character");
}

static void what_is_no_json_is_another_failure(void** state)
{
    (void)state;
    check_status(read_text("hello"), CRD_E_FORMAT);
    check_status(read_text(""), CRD_E_FORMAT);
    check_status(read_text("{\"id\":1,\"do\":\"start\"} x"), CRD_E_FORMAT);
    check_status(read_text("{\"id\":1,\"id\":2,\"do\":\"start\"}"), CRD_E_FORMAT);
    check_status(read_text("{\"id\":1,\"do\":\"\xff\"}"), CRD_E_FORMAT);
    char* deep = crdi_new(ctx, 2 * CRDI_WEB_MESSAGE_BYTES);
    memset(deep, '[', CRDI_WEB_MESSAGE_BYTES);
    check_status(crdi_web_message(&arena, deep, CRDI_WEB_MESSAGE_BYTES, &q), CRD_E_FORMAT);
    check_status(crdi_web_message(&arena, deep, CRDI_WEB_MESSAGE_BYTES + 1, &q), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), "16385 bytes");
    crd_free(ctx, deep);
}

static void running_out_of_memory_is_told_and_leaves_nothing(void** state)
{
    (void)state;
    const char text[] =
        "{\"id\":1,\"do\":\"couple\",\"to\":\"s.M\",\"element\":{\"algorithm\":\"foh\"}}";
    for (int fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* own = check_context(&a);
        crd_arena memory;
        crd_arena_init(&memory, own);
        a.fail_at = a.allocations + fail_at;
        const crd_status st = crdi_web_message(&memory, text, strlen(text), &q);
        crd_arena_clear(&memory);
        crd_context_destroy(own);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(fail_at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_read),
        cmocka_unit_test(values_are_texts_numbers_and_truths),
        cmocka_unit_test(watches_are_lists_of_at_most_64_names),
        cmocka_unit_test(elements_are_names_or_objects_that_survive),
        cmocka_unit_test(faults_have_a_kind_a_value_and_a_duration),
        cmocka_unit_test(levers_are_moved_by_names_and_numbers),
        cmocka_unit_test(what_makes_no_sense_is_named),
        cmocka_unit_test(what_is_no_json_is_another_failure),
        cmocka_unit_test(running_out_of_memory_is_told_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
