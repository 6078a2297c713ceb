// CSV as other programs and people write it.
#include "cardan/results.h"
#include "check.h"

#include <stdio.h>

static crd_status parse_exactly(crd_context* ctx, const char* text, crd_table** out)
{
    const size_t n = strlen(text);
    char* copy = malloc(n + !n); // exactly as long: a sanitizer sees any byte read behind it
    memcpy(copy, text, n);
    const crd_status st = crd_table_parse(ctx, copy, n, "f.csv", out);
    free(copy);
    return st;
}

// Every text holds v = 18.5 km/h at 0 s and 36 km/h at 0.5 s.
static void check_cycle(crd_context* ctx, const char* text, const char* unit)
{
    crd_table* t = NULL;
    check_log[0] = 0;
    if (parse_exactly(ctx, text, &t) < 0) { fail_msg("\"%s\" gave %s", text, crd_error_text(ctx)); }
    const int v = crd_table_find(t, "v");
    if (v < 0 || t->rows != 2 || strcmp(t->columns[v].unit, unit) != 0 || check_log[0]) {
        fail_msg("\"%s\": column v at %d in '%s', %lld rows, %s", text, v,
                 v < 0 ? "" : t->columns[v].unit, (long long)t->rows, check_log);
    }
    check_near(t->time[0], 0, 0);
    check_near(t->time[1], 0.5, 0);
    check_near(t->columns[v].values[0], 18.5, 0);
    check_near(t->columns[v].values[1], 36, 0);
    crd_table_destroy(t);
}

static void units_in_names_are_understood(void** state)
{
    static const char* const headers[] = {
        "time,v [km/h]",   "time,v[km/h]",       "time,v (km/h)",         "time,v/(km/h)",
        "time,v / (km/h)", "time,v / km/h",      "t/s,v [km/h]",          "Time (s),v [km/h]",
        "time(s),v[km/h]", "time [s],v  [km/h]", "\"time\",\"v [km/h]\"",
    };
    char text[128];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        snprintf(text, sizeof text, "%s\n0,18.5\n0.5,36\n", headers[i]);
        check_cycle(*state, text, "km/h");
    }
}

static void names_that_only_look_like_units_stay_names(void** state)
{
    crd_table* t = NULL;
    check_ok(parse_exactly(
        *state, "time,der(V),x[1],\"y[1,2]\",a/m,gear (first),z[up],/m,f (x) [N]\n", &t));
    static const char* const names[] = {"der(V)",       "x[1]",  "y[1,2]", "a/m",
                                        "gear (first)", "z[up]", "/m",     "f (x)"};
    for (int i = 0; i < 8; i++) {
        check_text(t->columns[i].name, names[i]);
        check_text(t->columns[i].unit, i == 7 ? "N" : "");
    }
    crd_table_destroy(t);
}

static void the_same_signal_in_two_units_is_two_signals(void** state)
{
    crd_table* t = NULL;
    check_ok(parse_exactly(*state, "time,v [km/h],v [m/s]\n0,36,10\n", &t));
    check_near(t->columns[crd_table_find(t, "v")].values[0], 36, 0);
    check_near(t->columns[crd_table_find(t, "v [m/s]")].values[0], 10, 0);
    check_text(t->columns[1].unit, "m/s");
    crd_table_destroy(t);
}

static void a_row_of_units_may_do_without_brackets(void** state)
{
    check_cycle(*state, "time,v\n[s],[km/h]\n0,18.5\n0.5,36\n", "km/h");
    check_cycle(*state, "time,v\n(s),(km/h)\n0,18.5\n0.5,36\n", "km/h");
    check_cycle(*state, "time,v\ns,km/h\n0,18.5\n0.5,36\n", "km/h");
    check_cycle(*state, "time,v\nms,km/h\n0,18.5\n500,36\n", "km/h");
    check_cycle(*state, "time,v,i\ns,km/h,1\n0,18.5,1\n0.5,36,2\n", "km/h");
    check_cycle(*state, "time,v\ns,-\n0,18.5\n0.5,36\n", "");
}

static void times_are_turned_into_seconds(void** state)
{
    check_cycle(*state, "time [ms],v\n0,18.5\n500,36\n", "");
    check_cycle(*state, "t/ms,v\n0,18.5\n500,36\n", "");
    check_cycle(*state, "time (msec),v\n0,18.5\n500,36\n", "");
    check_cycle(*state, "time_us,v\n0,18.5\n500000,36\n", "");
    check_cycle(*state, "time [min],v\n0,18.5\n0.008333333333333333,36\n", "");
    check_cycle(*state, "time,v\n[ms],[km/h]\n0,18.5\n500,36\n", "km/h");
    crd_table* t = NULL;
    char text[64];
    for (int i = 1; i < 2000; i++) { // not a rounding error anywhere
        snprintf(text, sizeof text, "time [ms]\n%d\n", i);
        check_ok(parse_exactly(*state, text, &t));
        snprintf(text, sizeof text, "%d.%03d", i / 1000, i % 1000);
        check_near(t->time[0], strtod(text, NULL), 0);
        crd_table_destroy(t);
    }
    check_ok(parse_exactly(*state, "distance [m],v\n0,1\n", &t));
    check_contains(check_log, "f.csv:1: the column of times is in 'm'");
    crd_table_destroy(t);
}

static void time_need_not_be_the_first_column(void** state)
{
    check_cycle(*state, ",time,v\n7,0,18.5\n8,0.5,36\n", ""); // the index of pandas
    check_cycle(*state, "v,time\n18.5,0\n36,0.5\n", "");
    check_cycle(*state, "v,Time [ms],mode\n18.5,0,on\n36,500,off\n", "");
    check_cycle(*state, "t,v,time\n0,18.5,9\n0.5,36,8\n", ""); // t is one as well, and comes first
    crd_table* t = NULL;
    check_ok(parse_exactly(*state, "mode,time,x,text\na,0,1,p\nb,1,2,q\n", &t));
    check_text(t->columns[0].name, "mode");
    check_text(t->columns[0].texts[1], "b");
    check_near(t->columns[1].values[1], 2, 0);
    check_text(t->columns[2].texts[1], "q");
    crd_table_destroy(t);
}

static void a_recording_without_time_is_told(void** state)
{
    crd_table* t = NULL;
    check_ok(parse_exactly(*state, "a,b\n1,2\n3,4\n", &t));
    check_near(t->time[1], 3, 0);
    check_contains(check_log, "f.csv:1: no column is called time; the first one, 'a', is taken");
    crd_table_destroy(t);
    check_log[0] = 0;
    static const char* const told[] = {"SimTime", "abs_time [s]", "Zeitpunkt", "T", "x [ms]"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,b\n1,2\n3,4\n", told[i]);
        check_ok(parse_exactly(*state, text, &t));
        check_text(check_log, "");
        crd_table_destroy(t);
    }
}

static void comments_blanks_and_separators_at_the_end_do_not_matter(void** state)
{
    static const char* const texts[] = {
        "# a cycle\n#\n# of someone, with commas\ntime,v\n0,18.5\n# in between\n0.5,36\n# end\n",
        "# time,v\n0,18.5\n0.5,36\n", // numpy.savetxt
        "#time,v\n0,18.5\n0.5,36\n# end",
        "# time v\n0.0e+00 1.85e+01\n5e-1 3.6e1\n",
        "# by hand\n# time\tv\n0\t18.5\n0.5\t36\n",
        "time v\n0 18.5\n0.5 36\n",
        "  time    v  \r\n  0.0   18.5 \r\n  0.5\t 36 \r\n",
        "time,v,\n0,18.5,\n0.5,36,\n",
        "time,v\n0,18.5,,\n0.5,36,,\n",
        "time;v;;\r\n0;18,5;;\r\n0,5;36;;",
        "sep=;\r\ntime;v\r\n0;18.5\r\n0.5;36\r\n",
        "time;v\n0;18,5\n0,5;36",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_cycle(*state, texts[i], "");
    }
}

static void texts_of_spreadsheets_become_utf_8(void** state)
{
    crd_table* t = NULL;
    check_ok(parse_exactly(*state,
                           "time,W\xe4rme [\xb0"
                           "C]\n0,1\n",
                           &t));
    check_text(t->columns[0].name, "W\xc3\xa4rme");
    check_text(t->columns[0].unit, "\xc2\xb0"
                                   "C");
    crd_table_destroy(t);
}

static void what_cannot_be_meant_is_said(void** state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"time,v\n0,18\n0,5,36,2\n",
         "f.csv:3: 4 fields, expected 2 as in the header; where numbers "
         "have a decimal comma, semicolons must separate them"},
        {"time;v\n0;18;3\n", "f.csv:2: 3 fields, expected 2 as in the header"},
        {"time,v\n2026-01-01 00:00:00,0\n", "is not a finite number, expected seconds"},
        {"time,v\r0,1\r", "f.csv:1: its lines end in CR alone"},
        {"# a cycle\n0,1\n", "f.csv:2: the first line begins with the number 0"},
        {"# only\n# remarks", "f.csv:1: empty"},
        {"#", "f.csv:1: empty"},
        {"time,v,w\n0,1,\"2\n3\n", "f.csv:2: a quote is never closed"},
        {"# \"time\n0\n", "a quote is never closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_table* t = NULL;
        check_status(parse_exactly(*state, cases[i].text, &t), CRD_E_FORMAT);
        check_contains(crd_error_text(*state), cases[i].message);
    }
}

static void every_beginning_of_a_file_is_read_or_refused(void** state)
{
    static const char whole[] =
        "# n\nsep=;\n# \"time [ms]\";v (km/h);m\n0;1,5;\"a\"\"b\";\n\n2;3;c\n";
    char text[sizeof whole];
    for (size_t n = 0; n < sizeof whole; n++) {
        memcpy(text, whole, n);
        text[n] = 0;
        crd_table* t = NULL;
        if (parse_exactly(*state, text, &t) == CRD_OK) { crd_table_destroy(t); }
    }
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (;; failures++) {
        a.allocations = first;
        a.fail_at = first + failures;
        crd_table* t = NULL;
        const crd_status st =
            parse_exactly(ctx, "# x\n,time,v [m/s],v [\xb0]\n,ms,m/s,\n1,2,3,a\n", &t);
        if (st == CRD_OK) {
            crd_table_destroy(t);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(failures >= 5);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_log_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(units_in_names_are_understood),
        TEST(names_that_only_look_like_units_stay_names),
        TEST(the_same_signal_in_two_units_is_two_signals),
        TEST(a_row_of_units_may_do_without_brackets),
        TEST(times_are_turned_into_seconds),
        TEST(time_need_not_be_the_first_column),
        TEST(a_recording_without_time_is_told),
        TEST(comments_blanks_and_separators_at_the_end_do_not_matter),
        TEST(texts_of_spreadsheets_become_utf_8),
        TEST(what_cannot_be_meant_is_said),
        TEST(every_beginning_of_a_file_is_read_or_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
