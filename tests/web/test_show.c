// What pages are told is JSON with the members that they expect.
#include "json_tree.h"
#include "show_help.h"

static crd_context* ctx;
static crd_text out;
static sample s;

static int begin(void** state)
{
    (void)state;
    ctx = crd_context_create(NULL);
    make_sample(&s);
    return 0;
}

static int end(void** state)
{
    (void)state;
    crd_text_clear(&out);
    crd_context_destroy(ctx);
    return 0;
}

static void fresh(void)
{
    crd_text_clear(&out);
    crd_text_init(&out, ctx);
}

static const crdi_json* parsed(void)
{
    const crdi_json* j = json_tree(out.data, out.length);
    return j;
}

static const crdi_json* at(const crdi_json* j, const char* list, size_t i)
{
    const crdi_json* found = crdi_json_item(crdi_json_member(j, list), (int)i);
    if (!found) { fail_msg("no %s[%zu]", list, i); }
    return found;
}

static double number(const crdi_json* j, const char* key)
{
    const crdi_json* v = crdi_json_member(j, key);
    if (!json_is(v, CRDI_JSON_NUMBER)) { fail_msg("%s is no number", key); }
    return crdi_json_value(v);
}

static const char* text(const crdi_json* j, const char* key)
{
    const crdi_json* v = crdi_json_member(j, key);
    if (!json_is(v, CRDI_JSON_TEXT)) { fail_msg("%s is no text", key); }
    return json_text(v);
}

static void hello_has_all_tables(void** state)
{
    (void)state;
    fresh();
    crdi_web_hello(&out, &s.info, true);
    const crdi_json* j = parsed();
    check_text(text(j, "is"), "hello");
    check_text(text(j, "version"), crd_version());
    check(json_is(crdi_json_member(j, "stop"), CRDI_JSON_NULL));
    check(crdi_json_get_bool(j, "read_only", false));
    check_text(text(at(j, "units", 1), "kind"), "dcp");
    check(json_is(crdi_json_member(at(j, "units", 0), "budget"), CRDI_JSON_NULL));
    check_near(number(at(j, "units", 1), "budget"), 5e-4, 0);
    check_text(text(at(j, "signals", 0), "type"), "real");
    check_text(text(at(j, "signals", 1), "type"), "boolean");
    check_text(text(at(j, "signals", 2), "type"), "integer");
    check_text(text(at(j, "signals", 2), "description"), "");
    check(json_is(crdi_json_member(at(j, "settings", 0), "min"), CRDI_JSON_NULL));
    check_near(number(at(j, "settings", 0), "start"), 100, 0);
    check_text(text(at(j, "links", 1), "to"), "motor.\"n\\\n\"");
    check_text(text(at(j, "bonds", 0), "flow"), "mass1.v");
    check_text(text(at(j, "ports", 1), "pair"), "axle");
    check_text(text(at(j, "ports", 1), "output"), "motor.t");
    check_text(json_text(at(j, "faults", 0)), "hold");
    check_int(crdi_json_count(crdi_json_member(j, "faults")), CRDI_FAULT_KINDS - 1);
    check(crdi_json_count(crdi_json_member(j, "algorithms")) > 3);
}

static void status_has_times_in_seconds_and_null_for_nothing(void** state)
{
    (void)state;
    fresh();
    crdi_web_status(&out, &s.status, &s.info, 12, 3);
    const crdi_json* j = parsed();
    check_text(text(j, "is"), "status");
    check_text(text(j, "state"), "running");
    check_text(text(j, "end"), "none");
    check_text(text(j, "message"), "it \"said\"");
    check_int((int)number(j, "lost_rows"), 12);
    check_int((int)number(j, "readers"), 3);
    check_near(number(j, "elapsed"), 0.5, 0);
    const crdi_json* pace = crdi_json_member(j, "pace");
    check_near(number(crdi_json_member(pace, "lateness"), "max"), 1e-4, 1e-15);
    check_near(number(crdi_json_member(pace, "busy"), "p50"), 1e-4, 1e-5);
    check(json_is(crdi_json_member(crdi_json_member(pace, "busy"), "p9999"),
                  CRDI_JSON_NULL)); // of 100 cycles
    check_int(crdi_json_count(crdi_json_member(pace, "kept")), 20);
    check_near(number(at(pace, "kept", 0), "cycle"), 10, 0);
    check_text(json_text(at(pace, "notes", 0)), "no SCHED_FIFO");
    int64_t sum = 0;
    double last = -1;
    const crdi_json* buckets = crdi_json_member(crdi_json_member(pace, "histogram"), "lateness");
    for (int i = 0; i < crdi_json_count(buckets); i++) {
        const crdi_json* b = crdi_json_item(buckets, i);
        check(crdi_json_value(crdi_json_item(b, 0)) > last);
        last = crdi_json_value(crdi_json_item(b, 0));
        sum += (int64_t)crdi_json_value(crdi_json_item(b, 1));
    }
    check_int(sum, 100);
    check(crdi_json_count(buckets) < 40);
    check(json_is(crdi_json_member(at(j, "units", 0), "link"), CRDI_JSON_NULL));
    const crdi_json* link = crdi_json_member(at(j, "units", 1), "link");
    check_text(text(link, "state"), "RUNNING");
    check(json_is(crdi_json_member(link, "round_trip"), CRDI_JSON_NULL));
    check_near(number(at(j, "units", 0), "worst"), 2.5e-6, 1e-18);
    check_text(text(at(j, "links", 0), "fault"), "offset");
    check_text(text(at(j, "links", 1), "fault"), "none");
    check(json_is(crdi_json_member(at(j, "links", 1), "value"), CRDI_JSON_NULL));
    check_near(number(at(j, "bonds", 0), "relative"), 5, 0);
    check_near(number(at(j, "ports", 0), "predicted"), 12, 0);
    check_near(number(at(j, "ports", 0), "dumped"), 2, 0);
    check_near(number(at(j, "ports", 1), "tank"), -0.25, 0);
    check(json_is(crdi_json_member(at(j, "ports", 1), "predicted"), CRDI_JSON_NULL));
}

static void events_and_replies_are_short(void** state)
{
    (void)state;
    const crdi_live_event e = {
        .number = 3, .time = 1.5, .kind = CRD_EVENT_OVERRUN, .text = "a \"b\""};
    fresh();
    crdi_web_event(&out, &e);
    check_text(out.data,
               "{\"is\":\"event\",\"number\":3,\"time\":1.5,\"kind\":\"overrun\",\"text\":\"a "
               "\\\"b\\\"\"}");
    fresh();
    crdi_web_reply(&out, &(crdi_web_request){.has_id = true, .id = 9007199254740992.0}, NULL);
    check_text(out.data, "{\"is\":\"reply\",\"id\":9007199254740992,\"ok\":true}");
    fresh();
    crdi_web_reply(&out, &(crdi_web_request){0}, "no");
    check_text(out.data, "{\"is\":\"reply\",\"id\":null,\"ok\":false,\"error\":\"no\"}");
}

static void every_state_and_end_has_a_name(void** state)
{
    (void)state;
    for (int i = CRDI_LIVE_STARTING; i <= CRDI_LIVE_ENDED; i++) {
        check(crdi_web_state_name((crdi_live_state)i)[0]);
    }
    for (int i = CRD_END_NONE; i <= CRD_END_OVERRUN; i++) {
        check(crdi_web_end_name((crd_end)i)[0]);
    }
}

static void what_is_known_before_the_run_is_ready_is_told_too(void** state)
{
    (void)state;
    crdi_live_outcome o = {.state = CRDI_LIVE_STARTING};
    fresh();
    crdi_web_wait(&out, &s.info, &o, false);
    const crdi_json* j = parsed();
    check_text(text(j, "is"), "wait");
    check_text(text(j, "title"), "a title");
    check_text(text(j, "state"), "starting");
    check_text(text(j, "end"), "none");
    check(!crdi_json_get_bool(j, "read_only", true));
    o = (crdi_live_outcome){CRDI_LIVE_ENDED, CRD_END_FAILED, "unit 'em': \"no\""};
    fresh();
    crdi_web_wait(&out, &s.info, &o, true);
    j = parsed();
    check_text(text(j, "state"), "ended");
    check_text(text(j, "end"), "failed");
    check_text(text(j, "message"), o.message);
    check(crdi_json_get_bool(j, "read_only", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_has_all_tables),
        cmocka_unit_test(status_has_times_in_seconds_and_null_for_nothing),
        cmocka_unit_test(events_and_replies_are_short),
        cmocka_unit_test(every_state_and_end_has_a_name),
        cmocka_unit_test(what_is_known_before_the_run_is_ready_is_told_too),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
