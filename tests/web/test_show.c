// What pages are told is JSON with the members that they expect.
#include "show_help.h"

#include <jansson.h>

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

static json_t* parsed(void)
{
    json_error_t e;
    json_t* j = json_loadb(out.data, out.length, JSON_REJECT_DUPLICATES, &e);
    if (!j) { fail_msg("%s at %d: %s", e.text, e.position, out.data); }
    return j;
}

static const json_t* at(const json_t* j, const char* list, size_t i)
{
    const json_t* found = json_array_get(json_object_get(j, list), i);
    if (!found) { fail_msg("no %s[%zu]", list, i); }
    return found;
}

static double number(const json_t* j, const char* key)
{
    const json_t* v = json_object_get(j, key);
    if (!json_is_number(v)) { fail_msg("%s is no number", key); }
    return json_number_value(v);
}

static const char* text(const json_t* j, const char* key)
{
    const json_t* v = json_object_get(j, key);
    if (!json_is_string(v)) { fail_msg("%s is no text", key); }
    return json_string_value(v);
}

static void hello_has_all_tables(void** state)
{
    (void)state;
    fresh();
    crdi_web_hello(&out, &s.info, true);
    json_t* j = parsed();
    check_text(text(j, "is"), "hello");
    check_text(text(j, "version"), crd_version());
    check(json_is_null(json_object_get(j, "stop")));
    check(json_is_true(json_object_get(j, "read_only")));
    check_text(text(at(j, "units", 1), "kind"), "dcp");
    check(json_is_null(json_object_get(at(j, "units", 0), "budget")));
    check_near(number(at(j, "units", 1), "budget"), 5e-4, 0);
    check_text(text(at(j, "signals", 0), "type"), "real");
    check_text(text(at(j, "signals", 1), "type"), "boolean");
    check_text(text(at(j, "signals", 2), "type"), "integer");
    check_text(text(at(j, "signals", 2), "description"), "");
    check(json_is_null(json_object_get(at(j, "settings", 0), "min")));
    check_near(number(at(j, "settings", 0), "start"), 100, 0);
    check_text(text(at(j, "links", 1), "to"), "motor.\"n\\\n\"");
    check_text(text(at(j, "bonds", 0), "flow"), "mass1.v");
    check_text(json_string_value(at(j, "faults", 0)), "hold");
    check_int(json_array_size(json_object_get(j, "faults")), CRDI_FAULT_KINDS - 1);
    check(json_array_size(json_object_get(j, "algorithms")) > 3);
    json_decref(j);
}

static void status_has_times_in_seconds_and_null_for_nothing(void** state)
{
    (void)state;
    fresh();
    crdi_web_status(&out, &s.status, &s.info, 12, 3);
    json_t* j = parsed();
    check_text(text(j, "is"), "status");
    check_text(text(j, "state"), "running");
    check_text(text(j, "end"), "none");
    check_text(text(j, "message"), "it \"said\"");
    check_int((int)number(j, "lost_rows"), 12);
    check_int((int)number(j, "readers"), 3);
    check_near(number(j, "elapsed"), 0.5, 0);
    const json_t* pace = json_object_get(j, "pace");
    check_near(number(json_object_get(pace, "lateness"), "max"), 1e-4, 1e-15);
    check_near(number(json_object_get(pace, "busy"), "p50"), 1e-4, 1e-5);
    check(json_is_null(json_object_get(json_object_get(pace, "busy"), "p9999"))); // of 100 cycles
    check_int(json_array_size(json_object_get(pace, "kept")), 20);
    check_near(number(at(pace, "kept", 0), "cycle"), 10, 0);
    check_text(json_string_value(at(pace, "notes", 0)), "no SCHED_FIFO");
    int64_t sum = 0;
    double last = -1;
    const json_t* buckets = json_object_get(json_object_get(pace, "histogram"), "lateness");
    for (size_t i = 0; i < json_array_size(buckets); i++) {
        const json_t* b = json_array_get(buckets, i);
        check(json_number_value(json_array_get(b, 0)) > last);
        last = json_number_value(json_array_get(b, 0));
        sum += json_integer_value(json_array_get(b, 1));
    }
    check_int(sum, 100);
    check(json_array_size(buckets) < 40);
    check(json_is_null(json_object_get(at(j, "units", 0), "link")));
    const json_t* link = json_object_get(at(j, "units", 1), "link");
    check_text(text(link, "state"), "RUNNING");
    check(json_is_null(json_object_get(link, "round_trip")));
    check_near(number(at(j, "units", 0), "worst"), 2.5e-6, 1e-18);
    check_text(text(at(j, "links", 0), "fault"), "offset");
    check_text(text(at(j, "links", 1), "fault"), "none");
    check(json_is_null(json_object_get(at(j, "links", 1), "value")));
    check_near(number(at(j, "bonds", 0), "relative"), 5, 0);
    json_decref(j);
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
    json_t* j = parsed();
    check_text(text(j, "is"), "wait");
    check_text(text(j, "title"), "a title");
    check_text(text(j, "state"), "starting");
    check_text(text(j, "end"), "none");
    check(json_is_false(json_object_get(j, "read_only")));
    json_decref(j);
    o = (crdi_live_outcome){CRDI_LIVE_ENDED, CRD_END_FAILED, "unit 'em': \"no\""};
    fresh();
    crdi_web_wait(&out, &s.info, &o, true);
    j = parsed();
    check_text(text(j, "state"), "ended");
    check_text(text(j, "end"), "failed");
    check_text(text(j, "message"), o.message);
    check(json_is_true(json_object_get(j, "read_only")));
    json_decref(j);
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
