// Descriptions of twins: what they may say, and what is told when they are wrong.
#include "cardan/twin.h"
#include "check.h"
#include "shared/base.h"

#include <stdio.h>

static const char rc[] = "rc\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
                         "resistance r3 3 0 3\ncapacity c1 2 0.1\ncapacity c2 3 0.2\n.endthermal\n"
                         ".output top=t(1)\n.end\n";

static crd_netlist* netlist(crd_context* ctx)
{
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, rc, strlen(rc), "rc.cir", NULL, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

static const char whole[] =
    "{\"twin\": 1, \"step\": \"1 ms\", \"filter\": \"reduced\", \"gate\": 0.99,\n"
    "\"sensors\": {\"s2\": {\"at\": \"t(2)\", \"sd\": 0.5, \"unit\": \"K\"},\n"
    "  \"top\": {\"sd\": 1}, \"3\": {\"sd\": 2}},\n"
    "\"parameters\": {\"r2\": {\"start\": 4, \"sd\": 0.5, \"drift\": 1e-8},\n"
    "  \"all\": {\"parts\": [\"R1\", \"r3\"], \"factors\": [1, 3]}, \"c\": {\"parts\": \"c*\"}},\n"
    "\"sources\": {\"q0\": {\"model\": \"oscillator\", \"frequency\": \"5 Hz\", \"noise\": 1e-6,\n"
    "  \"start\": 10, \"sd\": 3}},\n"
    "\"states\": {\"noise\": 1e-4, \"sd\": 0.1}, \"freeze\": 10}";

static void check_whole(const crd_netlist* n, const crd_twin_spec* s)
{
    check_near(s->step, 1e-3, 0);
    check_int(s->filter, CRD_TWIN_REDUCED);
    check_near(s->gate, 0.99, 0);
    check_int(s->frozen_after, 10);
    check_near(s->state_noise, 1e-4, 0);
    check_near(s->state_sd, 0.1, 0);
    check_int(s->sensor_count, 3);
    check(strcmp(s->sensors[0].what, "t(2)") == 0 && strcmp(s->sensors[0].unit, "K") == 0);
    check(strcmp(s->sensors[1].what, "top") == 0);
    check(strcmp(s->sensors[2].what, "v(3)") == 0);
    check_near(s->sensors[2].sd, 2, 0);
    check_int(s->parameter_count, 3);
    check_near(s->parameters[0].start, 4, 0);
    check_near(s->parameters[0].drift, 1e-8, 0);
    check(isnan(s->parameters[1].start));
    check_int(s->parameters[1].group.count, 2);
    check_int(s->parameters[1].group.parts[1], crd_netlist_part(n, "r3"));
    check_near(s->parameters[1].group.factors[1], 3, 0);
    check_int(s->parameters[2].group.count, 2);
    check_int(s->source_count, 1);
    check_int(s->sources[0].model, CRD_SOURCE_OSCILLATOR);
    check_near(s->sources[0].frequency, 5, 1e-12);
}

static void every_key_arrives_and_what_is_written_reads_back_the_same(void** state)
{
    crd_netlist* n = netlist(*state);
    crd_twin_description *d = NULL, *again = NULL;
    if (crd_twin_parse(*state, whole, strlen(whole), "t.yaml", 1, n, &d) < 0) {
        fail_msg("%s", crd_error_text(*state));
    }
    check_whole(n, &d->spec);
    crd_text out;
    crd_text_init(&out, *state);
    check_ok(crd_twin_write(n, &d->spec, &out));
    if (crd_twin_parse(*state, out.data, out.length, "written", 1, n, &again) < 0) {
        fail_msg("%s in %s", crd_error_text(*state), out.data);
    }
    check_whole(n, &again->spec);
    crd_text_clear(&out);
    crd_twin_description_destroy(again);
    crd_twin_description_destroy(d);
    crd_netlist_destroy(n);
}

static void check_told(crd_context* ctx, const crd_netlist* n, const char* json, const char* told)
{
    crd_twin_description* d = NULL;
    check(crd_twin_parse(ctx, json, strlen(json), "t.yaml", 1, n, &d) < 0);
    check_contains(crd_error_text(ctx), told);
    check_contains(crd_error_text(ctx), "t.yaml");
}

static void what_is_wrong_is_told_with_its_line_and_key(void** state)
{
    crd_netlist* n = netlist(*state);
    check_told(*state, n, "{\n\"sensor\": {}}",
               "t.yaml:2: sensor: there is no such key; did you mean sensors?");
    check_told(*state, n, "{\"sensors\": {\"a\": {\"at\": \"t(2)\"}}}", "sd is missing");
    check_told(*state, n, "{\"sensors\": {\"a\": {\"sd\": -1}}}", "\"-1\", expected > 0");
    check_told(*state, n, "{\"step\": \"1 kg\"}", "step: \"1 kg\", expected > 0 in s");
    check_told(*state, n, "{\"parameters\": {\"r7\": {}}}", "there is no part \"r7\"");
    check_told(*state, n, "{\"parameters\": {\"x\": {\"parts\": [\"zz*\"]}}}",
               "there is no part \"zz*\"");
    check_told(*state, n, "{\"parameters\": {\"c\": {\"parts\": \"c*\", \"factors\": [1]}}}",
               "list of 2 numbers");
    check_told(*state, n, "{\"sources\": {\"q0\": {}}}", "noise is missing");
    check_told(*state, n, "{\"sources\": {\"q0\": {\"model\": \"sine\"}}}",
               "constant, walk, integrated, oscillator");
    check_told(*state, n, "{\"sources\": {\"q0\": {\"model\": \"oscillator\"}}}",
               "frequency is missing");
    check_told(*state, n, "{\"gate\": 1.5}", "between 0 and 1");
    check_told(*state, n, "{\"twin\": 2}", "expected 1");
    check_told(*state, n, "[]", "expected an object");
    check_told(*state, NULL, "{\"step\": 1}", "circuit is missing");
    check_told(*state, NULL, "{\"circuit\": \"not_there.cir\"}", "not_there.cir");
    crd_netlist_destroy(n);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t at = 0;; at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_netlist* n = netlist(ctx);
        a.fail_at = a.allocations + at;
        crd_twin_description* d = NULL;
        const crd_status st = crd_twin_parse(ctx, whole, strlen(whole), "t.yaml", 1, n, &d);
        a.fail_at = -1;
        crd_twin_description_destroy(d);
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_arrives_and_what_is_written_reads_back_the_same),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line_and_key),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
