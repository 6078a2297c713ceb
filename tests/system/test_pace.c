// The pace of a run, budgets of units and the file of exchanged samples in a description.
#include "cardan/system.h"
#include "check.h"

#include <math.h>
#include <stdio.h>

static crd_system* parse_run(crd_context* ctx, const char* run)
{
    char text[600];
    snprintf(text, sizeof text, "cardan: 1\nunits: { a: { fmu: a.fmu } }\nrun: %s\n", run);
    crd_system* s = NULL;
    if (crd_system_parse(ctx, text, strlen(text), "s.yaml", &s) != CRD_OK) {
        fail_msg("refused: %s\n%s", crd_error_text(ctx), text);
    }
    return s;
}

static void a_run_is_not_paced_unless_it_says_so(void** state)
{
    crd_system* s = parse_run(*state, "{ stop: 1 }");
    const crd_pace_spec* p = &s->run.pace;
    check_near(p->factor, 0, 0);
    check_int(p->overrun, CRD_OVERRUN_RECORD);
    check_near(p->slack, 0, 0);
    check_near(p->spin, 0, 0);
    check_int(p->priority, 80);
    check_int(p->cpu, -1);
    check(p->lock && !p->required);
    check(isnan(s->units[0].budget));
    check(s->results.exchange == NULL);
    crd_system_destroy(s);
}

static void the_pace_is_a_word_or_a_factor(void** state)
{
    static const struct {
        const char* text;
        double factor;
    } rows[] = {{"realtime", 1}, {"free", 0},     {"10x", 10},    {"0.5x", 0.5},   {"2", 2},
                {"\"2\"", 2},    {"1e-3x", 1e-3}, {"3 x", 3},     {"\"10x\"", 10}, {".5", 0.5},
                {"1e6", 1e6},    {"1e-6x", 1e-6}, {"1.25x", 1.25}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char run[80];
        snprintf(run, sizeof run, "{ pace: %s }", rows[i].text);
        crd_system* s = parse_run(*state, run);
        check_near(s->run.pace.factor, rows[i].factor, 0);
        check_int(s->run.pace.place.line, 3);
        crd_system_destroy(s);
        snprintf(run, sizeof run, "{ pace: { factor: %s } }", rows[i].text);
        s = parse_run(*state, run);
        check_near(s->run.pace.factor, rows[i].factor, 0);
        crd_system_destroy(s);
    }
}

static void a_mapping_says_everything(void** state)
{
    crd_system* s = parse_run(*state, "{ pace: { factor: 2x, overrun: skip, slack: 50 us, spin: "
                                      "1 ms, priority: 0, cpu: 3, lock: no, required: yes } }");
    const crd_pace_spec* p = &s->run.pace;
    check_near(p->factor, 2, 0);
    check_int(p->overrun, CRD_OVERRUN_SKIP);
    check_near(p->slack, 50e-6, 1e-18);
    check_near(p->spin, 1e-3, 0);
    check_int(p->priority, 0);
    check_int(p->cpu, 3);
    check(!p->lock && p->required);
    check_text(p->place.file, "s.yaml");
    crd_system_destroy(s);
}

static void a_mapping_without_a_factor_means_real_time(void** state)
{
    static const char* const names[] = {"record", "stretch", "skip", "stop"};
    for (int i = 0; i < 4; i++) {
        char run[80];
        snprintf(run, sizeof run, "{ pace: { overrun: %s, cpu: none } }", names[i]);
        crd_system* s = parse_run(*state, run);
        check_near(s->run.pace.factor, 1, 0);
        check_int(s->run.pace.overrun, i);
        check_int(s->run.pace.cpu, -1);
        check_text(crd_overrun_name((crd_overrun)i), names[i]);
        crd_system_destroy(s);
    }
}

static void a_later_file_changes_what_it_names(void** state)
{
    crd_system* s = parse_run(*state, "{ pace: { factor: 4x, overrun: stop } }");
    static const char more[] = "run: { pace: { priority: 50 } }\nunits: { a: { budget: 2 ms } }\n";
    check_ok(crd_system_amend(s, more, strlen(more), "more.yaml", 1));
    check_near(s->run.pace.factor, 4, 0);
    check_int(s->run.pace.overrun, CRD_OVERRUN_STOP);
    check_int(s->run.pace.priority, 50);
    check_near(s->units[0].budget, 2e-3, 0);
    static const char fast[] = "run: { pace: free }\n";
    check_ok(crd_system_amend(s, fast, strlen(fast), "more.yaml", 1));
    check_near(s->run.pace.factor, 0, 0);
    check_int(s->run.pace.priority, 50);
    crd_system_destroy(s);
}

static void a_text_sets_the_pace_as_an_option_does(void** state)
{
    crd_system* s = parse_run(*state, "{ pace: { overrun: stretch } }");
    const crd_place place = {.file = "--pace"};
    check_ok(crd_system_set_pace(s, "10x", place));
    check_near(s->run.pace.factor, 10, 0);
    check_int(s->run.pace.overrun, CRD_OVERRUN_STRETCH);
    check_ok(crd_system_set_pace(s, "{ factor: realtime, overrun: skip }", place));
    check_near(s->run.pace.factor, 1, 0);
    check_int(s->run.pace.overrun, CRD_OVERRUN_SKIP);
    check_status(crd_system_set_pace(s, "fast", place), CRD_E_FORMAT);
    check_text(crd_error_text(*state),
               "--pace: 'fast', expected realtime, free, or a factor such as 10x");
    check_near(s->run.pace.factor, 1, 0); // as before
    crd_system_destroy(s);
}

static void the_file_of_exchanged_samples_is_beside_the_description(void** state)
{
    static const char text[] = "cardan: 1\nunits: { a: { fmu: a.fmu } }\n"
                               "results: { file: run.csv, exchange: out/x.MF4, "
                               "session: s.CSV }\n";
    crd_system* s = NULL;
    check_ok(crd_system_parse(*state, text, strlen(text), "some/where/s.yaml", &s));
    check_text(s->results.exchange, "some/where/out/x.MF4");
    check_text(s->results.session, "some/where/s.CSV");
    check_text(s->results.path, "some/where/run.csv");
    crd_system_destroy(s);
}

static void mistakes_are_told_with_line_value_and_what_is_right(void** state)
{
    static const struct {
        const char* text; // behind three lines
        crd_status status;
        const char* message;
    } rows[] = {
        {"run: { pace: fast }", CRD_E_FORMAT,
         "s.yaml:4: run.pace: 'fast', expected realtime, free, or a factor such as 10x"},
        {"run: { pace: 10y }", CRD_E_FORMAT, "run.pace: '10y', expected realtime, free"},
        {"run: { pace: 10xx }", CRD_E_FORMAT, "'10xx', expected realtime, free"},
        {"run: { pace: x }", CRD_E_FORMAT, "'x', expected realtime, free"},
        {"run: { pace: 0 }", CRD_E_RANGE,
         "run.pace: '0' is out of range, expected 1e-06 to 1e+06 simulated seconds per second, or "
         "realtime, free"},
        {"run: { pace: -1x }", CRD_E_RANGE, "'-1x' is out of range"},
        {"run: { pace: 1e7 }", CRD_E_RANGE, "'1e7' is out of range"},
        {"run: { pace: .nan }", CRD_E_FORMAT, "'.nan', expected realtime"},
        {"run: { pace: }", CRD_E_FORMAT, "run.pace: nothing, expected realtime, free"},
        {"run: { pace: [1, 2] }", CRD_E_FORMAT,
         "run.pace: a list, expected realtime, free, or a factor such as 10x, or a mapping"},
        {"run:\n  pace:\n    factor: 10 s", CRD_E_FORMAT,
         "s.yaml:6: run.pace.factor: '10 s', expected realtime"},
        {"run: { pace: { overrun: abort } }", CRD_E_FORMAT,
         "run.pace.overrun: 'abort' is not known. Expected one of record, stretch, skip, stop"},
        {"run: { pace: { slack: -1 us } }", CRD_E_RANGE, "run.pace.slack: '-1 us' is less than 0"},
        {"run:\n  pace:\n    spin: 2 ms", CRD_E_RANGE,
         "s.yaml:6: run.pace: spin: 0.002 s, expected at most 1 ms"},
        {"run: { pace: { priority: 100 } }", CRD_E_RANGE,
         "run.pace.priority: '100' is out of range, expected a whole number from 0 to 99"},
        {"run: { pace: { cpu: any } }", CRD_E_FORMAT,
         "run.pace.cpu: 'any', expected a whole number from 0 to 4095, or none"},
        {"run: { pace: { cpu: -1 } }", CRD_E_RANGE, "'-1' is out of range"},
        {"run: { pace: { lock: 2 } }", CRD_E_FORMAT, "run.pace.lock: '2', expected true or false"},
        {"run: { pace: { overun: stop } }", CRD_E_FORMAT,
         "unknown key 'overun', did you mean 'overrun'?"},
        {"results: { exchange: x.csv }", CRD_E_FORMAT,
         "s.yaml:4: results: exchange: 'x.csv', expected a file whose name ends in .mf4"},
        {"results: { exchange: .mf4 }", CRD_E_FORMAT, "expected a file whose name ends in .mf4"},
        {"results: { file: x.mf4, exchange: x.mf4 }", CRD_E_RANGE,
         "'x.mf4' is the result file too, expected another one"},
        {"# one more\nresults:\n  exchange: [a]", CRD_E_FORMAT, "s.yaml:6: results.exchange: "},
        {"results: { session: x.mf4 }", CRD_E_FORMAT,
         "s.yaml:4: results: session: 'x.mf4', expected a file whose name ends in .csv"},
        {"results: { file: x.csv, session: x.csv }", CRD_E_RANGE,
         "session: 'x.csv' is the result file too, expected another one"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        snprintf(text, sizeof text, "cardan: 1\nunits:\n  a: { fmu: a.fmu }\n%s\n", rows[i].text);
        crd_system* s = NULL;
        const crd_status st = crd_system_parse(*state, text, strlen(text), "s.yaml", &s);
        if (st == CRD_OK) { fail_msg("accepted:\n%s", text); }
        check_contains(crd_error_text(*state), rows[i].message);
        check_status(st, rows[i].status);
    }
    static const char* const budgets[] = {"0", "-1 ms", "1 m", "soon"};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        char text[200];
        snprintf(text, sizeof text, "cardan: 1\nunits:\n  a: { fmu: a.fmu, budget: %s }\n",
                 budgets[i]);
        crd_system* s = NULL;
        check(crd_system_parse(*state, text, strlen(text), "s.yaml", &s) < 0);
        check_contains(crd_error_text(*state), "s.yaml:3: units.a.budget: '");
        check_contains(crd_error_text(*state), "expected a time such as 10 ms");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_not_paced_unless_it_says_so),
        cmocka_unit_test(the_pace_is_a_word_or_a_factor),
        cmocka_unit_test(a_mapping_says_everything),
        cmocka_unit_test(a_mapping_without_a_factor_means_real_time),
        cmocka_unit_test(a_later_file_changes_what_it_names),
        cmocka_unit_test(a_text_sets_the_pace_as_an_option_does),
        cmocka_unit_test(the_file_of_exchanged_samples_is_beside_the_description),
        cmocka_unit_test(mistakes_are_told_with_line_value_and_what_is_right),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
