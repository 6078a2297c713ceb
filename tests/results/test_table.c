#include "cardan/results.h"
#include "check.h"

#include <stdio.h>
#include <unistd.h>

static crd_table* parse(crd_context* ctx, const char* text)
{
    crd_table* t = NULL;
    const size_t n = strlen(text);
    char* copy = malloc(n); // exactly as long: a sanitizer sees any byte read behind it
    if (n) { memcpy(copy, text, n); }
    const crd_status st = crd_table_parse(ctx, copy, n, "f.csv", &t);
    free(copy);
    if (st < 0) { fail_msg("\"%s\" gave %s", text, crd_error_text(ctx)); }
    return t;
}

static void check_table(crd_context* ctx, const char* text, int64_t rows, int columns)
{
    crd_table* t = parse(ctx, text);
    if (t->rows != rows || t->column_count != columns) {
        fail_msg("\"%s\": %lld rows and %d columns, expected %lld and %d", text, (long long)t->rows,
                 t->column_count, (long long)rows, columns);
    }
    if (rows == 2 && columns == 2) { // the usual content
        check_near(t->time[0], 0, 0);
        check_near(t->time[1], 0.5, 0);
        check_near(t->columns[0].values[0], 1.5, 0);
        check_near(t->columns[0].values[1], -2, 0);
        check_near(t->columns[1].values[0], 3, 0);
        check_near(t->columns[1].values[1], 4e-5, 0);
        check_text(t->columns[0].name, "x");
        check_text(t->columns[1].name, "y");
        check(!t->columns[0].texts && !t->columns[1].texts);
    }
    crd_table_destroy(t);
}

static void check_refused(crd_context* ctx, const char* text, const char* message)
{
    crd_table* t = NULL;
    check_status(crd_table_parse(ctx, text, strlen(text), "f.csv", &t), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), message);
    check(!t);
}

static void the_usual_dialects_are_read_alike(void** state)
{
    static const char* const texts[] = {
        "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n",
        "time,x,y\r\n0,1.5,3\r\n0.5,-2,4e-5\r\n",
        "time,x,y\n0,1.5,3\n0.5,-2,4e-5",               // no line end at the end
        "\xEF\xBB\xBFtime,x,y\n0,1.5,3\n0.5,-2,4e-5\n", // byte order mark
        "time;x;y\n0;1.5;3\n0.5;-2;4e-5\n",
        "time;x;y\n0;1,5;3\n0,5;-2;4e-5\n", // decimal comma
        "time\tx\ty\n0\t1.5\t3\n0.5\t-2\t4e-5\n",
        "time\tx\ty\n0\t1,5\t3\n0,5\t-2\t4e-5\n",
        "\"time\",\"x\",\"y\"\n\"0\",\"1.5\",\"3\"\n0.5,\"-2\",4e-5\n",
        "time , x , y\n 0 , 1.5 ,\t3\n0.5 ,  -2,4e-5 \n",
        "\n\ntime,x,y\n\n0,1.5,3\n\r\n0.5,-2,4e-5\n\n\n", // empty lines
        "time [s],x [m],y [m/s2]\n0,1.5,3\n0.5,-2,4e-5\n",
        "time,x,y\n[s],[m],[m/s2]\n0,1.5,3\n0.5,-2,4e-5\n",
        "t,x,y\n[s],,\n0,1.5,3\n0.5,-2,4e-5\n",
        ",x,y\n0,1.5,3\n0.5,-2,4e-5\n", // whatever the name of the first column is
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_table(*state, texts[i], 2, 2);
    }
    check_text(check_log, "");
}

static void units_come_from_the_names_or_from_the_second_line(void** state)
{
    crd_table* t = parse(*state, "time [s],x [m],y[1],z [],a b [rad/s]\n0,1,2,3,4\n");
    check_text(t->columns[0].name, "x");
    check_text(t->columns[0].unit, "m");
    check_text(t->columns[1].name, "y[1]"); // an index
    check_text(t->columns[1].unit, "");
    check_text(t->columns[2].unit, "");
    check_text(t->columns[3].name, "a b");
    check_text(t->columns[3].unit, "rad/s");
    check_int(crd_table_find(t, "y[1]"), 1);
    check_int(crd_table_find(t, "x [m]"), -1);
    check_int(crd_table_find(t, "time"), -1);
    crd_table_destroy(t);
    t = parse(*state, "time,x,y,z\n[s],[m],,\"[a,b]\"\n0,1,2,3\n");
    check_text(t->columns[0].unit, "m");
    check_text(t->columns[1].unit, "");
    check_text(t->columns[2].unit, "a,b");
    check_int(t->rows, 1);
    crd_table_destroy(t);
}

static void booleans_gaps_and_special_values_are_numbers(void** state)
{
    crd_table* t = parse(*state, "time,b,c,d\n0,true,,inf\n1,False,NaN,-INF\n2,TRUE,3,1\n");
    check(!t->columns[0].texts && !t->columns[1].texts && !t->columns[2].texts);
    check_near(t->columns[0].values[0], 1, 0);
    check_near(t->columns[0].values[1], 0, 0);
    check_near(t->columns[0].values[2], 1, 0);
    check(isnan(t->columns[1].values[0]) && isnan(t->columns[1].values[1]));
    check(isinf(t->columns[2].values[1]) && t->columns[2].values[1] < 0);
    crd_table_destroy(t);
}

static void columns_of_texts_keep_them(void** state)
{
    crd_table* t =
        parse(*state, "time,mode,x,\"a \"\"b\"\"\"\n0,7,1,q\n\n1,\"on, off\",2,\"\"\"\"\n"
                      "2,\"two\nlines\",3,\n3,,4,r");
    check_int(t->rows, 4);
    check_text(t->columns[2].name, "a \"b\"");
    check(!t->columns[1].texts);
    const char* const* mode = t->columns[0].texts;
    check_text(mode[0], "7");
    check_text(mode[1], "on, off");
    check_text(mode[2], "two\nlines");
    check_text(mode[3], "");
    check_near(t->columns[0].values[0], 7, 0);
    check(isnan(t->columns[0].values[1]));
    check_text(t->columns[2].texts[1], "\"");
    check_text(t->columns[2].texts[3], "r");
    crd_table_destroy(t);
}

static void an_incomplete_last_line_is_left_out_with_a_warning(void** state)
{
    static const char* const texts[] = {
        "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n0.7",       "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n0.7,1.2",
        "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n0.7,1.2,-", "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n0.7,1.2,4e-",
        "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n-",         "time,x,y\n0,1.5,3\n0.5,-2,4e-5\n0.7,1.2,\"a",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_log[0] = 0;
        check_table(*state, texts[i], 2, 2);
        check_contains(check_log, "f.csv:4: the last line is incomplete");
    }
    check_table(*state, "time,x,y\n0,1", 0, 2);
}

static void tables_without_rows_or_without_columns_are_tables(void** state)
{
    check_table(*state, "time,x", 0, 1);
    check_table(*state, "time,x\n", 0, 1);
    check_table(*state, "time\n0\n1\n", 2, 0);
    crd_table* t = parse(*state, "time,x\n");
    int64_t hint = 0;
    check(isnan(crd_table_value(t, 0, 0, true, &hint)));
    crd_table_destroy(t);
}

static void what_is_wrong_is_said_with_its_line(void** state)
{
    check_refused(*state, "", "f.csv:1: empty");
    check_refused(*state, "\n\n", "f.csv:1: empty");
    check_refused(*state, "0,1\n1,2\n", "f.csv:1: the first line begins with the number 0");
    check_refused(*state, "time,x,y\n0,1,2\n1,2\n", "f.csv:3: 2 fields, expected 3");
    check_refused(*state, "time,x,y\n0,1,2\n1,2,3,4\n", "f.csv:3: 4 fields, expected 3");
    check_refused(*state, "time,x\n0,1\nnow,2\n", "f.csv:3: time 'now' is not a finite number");
    check_refused(*state, "time,x\n0,1\n,2\n", "f.csv:3: time '' is not");
    check_refused(*state, "time,x\n0,1\nnan,2\n", "f.csv:3: time 'nan'");
    check_refused(*state, "time,x\n\n1,1\n\n0.5,2\n", "f.csv:5: time goes back from 1 to 0.5");
    check_refused(*state, "time,x,x\n0,1,2\n", "f.csv:1: column 'x' occurs twice");
    check_refused(*state, "time,x [m],x [m]\n0,1,2\n", "f.csv:1: column 'x' occurs twice");
    check_refused(*state, "time,x,\n0,1,2\n", "f.csv:2: 3 fields, expected 2");
    check_refused(*state, "time,,x\n0,1,2\n", "f.csv:1: column 2 has no name");
    check_refused(*state, "time,x\n0,\"1\n1,2\n2,3\n", "f.csv:2: a quote is never closed");
    check_refused(*state, "time,\"x\n0,1\n", "f.csv:1: a quote is never closed");
    check_refused(*state, "time,x\n0,\"1\"2\n", "f.csv:2: text after a closing quote");
    crd_table* t = NULL;
    check_status(crd_table_parse(*state, "time,x\n0,\0001\n", 12, "f.csv", &t), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "f.csv:2: a zero byte");
}

static void a_hostile_header_does_not_cost_more_than_its_size(void** state)
{
    // 20000 columns and 20000 empty or short lines: 3.2 GB if one believed it
    const size_t n = 20000;
    char* text = malloc(8 * n * 2);
    char* at = text + sprintf(text, "time");
    for (size_t i = 0; i < n; i++) {
        at += sprintf(at, ",c%zu", i);
    }
    memset(at, '\n', n);
    at += n;
    crd_table* t = NULL;
    check_ok(crd_table_parse(*state, text, (size_t)(at - text), "f.csv", &t));
    crd_table_destroy(t);
    for (size_t i = 0; i < n; i++) {
        at += sprintf(at, "1\n");
    }
    check_status(crd_table_parse(*state, text, (size_t)(at - text), "f.csv", &t), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "1 field, expected 20001");
    free(text);
}

static void values_are_held_or_interpolated(void** state)
{
    crd_table* t = parse(*state, "time,x\n1,10\n2,20\n2,40\n3,50\n");
    int64_t hint = 0;
    check_near(crd_table_value(t, 0, 0.5, true, &hint), 10, 0); // before the first
    check_near(crd_table_value(t, 0, 1, true, &hint), 10, 0);
    check_near(crd_table_value(t, 0, 1.5, true, &hint), 15, 1e-15);
    check_near(crd_table_value(t, 0, 1.5, false, &hint), 10, 0);
    check_near(crd_table_value(t, 0, 2, true, &hint), 40, 0); // the later row from then on
    check_near(crd_table_value(t, 0, 2, false, &hint), 40, 0);
    check_near(crd_table_value(t, 0, 2.25, true, &hint), 42.5, 1e-13);
    check_near(crd_table_value(t, 0, 3, false, &hint), 50, 0);
    check_near(crd_table_value(t, 0, 9, true, &hint), 50, 0);          // behind the last
    check_near(crd_table_value(t, 0, 1.25, true, &hint), 12.5, 1e-13); // and back again
    hint = 1000000;                                                    // nonsense does no harm
    check_near(crd_table_value(t, 0, 1.5, true, &hint), 15, 1e-13);
    crd_table_destroy(t);
}

static void hints_do_not_change_values(void** state)
{
    char text[20000];
    char* at = text + sprintf(text, "time,x\n");
    for (int i = 0; i < 1000; i++) {
        at += sprintf(at, "%d,%d\n", i / 3 * 3, i);
    }
    crd_table* t = parse(*state, text);
    int64_t hint = 0;
    for (int i = 0; i < 5000; i++) {
        const double time = (double)((i * 7919) % 10000) * 0.11 - 3;
        int64_t none = 0;
        check_near(crd_table_value(t, 0, time, true, &hint),
                   crd_table_value(t, 0, time, true, &none), 0);
    }
    crd_table_destroy(t);
}

static void files_that_are_not_there_are_not_found(void** state)
{
    crd_table* t = NULL;
    check_status(crd_table_read(*state, TEST_BUILD_DIR "/no_such.csv", &t), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "no_such.csv: no such file");
    check_status(crd_table_read(*state, TEST_BUILD_DIR, &t), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "a folder, expected a CSV, MF4 or MAT file");
    crd_table_destroy(NULL);
}

static void a_table_that_was_written_is_read_as_it_was(void** state)
{
    static const char* const ends[] = {"csv", "mf4", "mat"};
    static const double time[] = {0, 0.1, 0.2}, x[] = {1, 1.0 / 3, NAN}, n[] = {0, -7, 12};
    static const double late[] = {0, 0.2};
    crd_table_column columns[] = {
        {.name = "x", .unit = "m", .values = x, .time = time, .rows = 3, .type = CRD_FLOAT64},
        {.name = "word", .unit = "", .time = time, .rows = 3, .type = CRD_STRING},
        {.name = "n", .unit = "", .values = n, .time = time, .rows = 3, .type = CRD_INT32},
        {.name = "slow", .unit = "", .values = x, .time = late, .rows = 2, .type = CRD_FLOAT64},
    };
    crd_table t = {.path = "", .rows = 3, .column_count = 3, .time = time, .columns = columns};
    const crd_attachment note = {
        .name = "a.txt", .mime = "text/plain", .data = "hello", .length = 5};
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, TEST_BUILD_DIR "/table_written.%s", ends[i]);
        crd_table* back = NULL;
        check_ok(crd_table_write(*state, &t, path, &note, 1));
        check_ok(crd_table_read(*state, path, &back));
        check_int(back->rows, 3);
        const int at_x = crd_table_find(back, "x"), at_n = crd_table_find(back, "n");
        check(at_x >= 0 && at_n >= 0 && crd_table_find(back, "word") < 0);
        check(memcmp(back->columns[at_x].values, x, 2 * sizeof(double)) == 0);
        check(isnan(back->columns[at_x].values[2]));
        check(memcmp(back->columns[at_n].values, n, sizeof n) == 0);
        check(memcmp(back->time, time, sizeof time) == 0);
        crd_table_destroy(back);
        unlink(path);
    }
    t.column_count = 4; // two rasters
    check_status(crd_table_write(*state, &t, TEST_BUILD_DIR "/table_written.csv", NULL, 0),
                 CRD_E_UNSUPPORTED);
    check_ok(crd_table_write(*state, &t, TEST_BUILD_DIR "/table_written.mf4", NULL, 0));
    unlink(TEST_BUILD_DIR "/table_written.mf4");
    t.column_count = 3;
    check_status(crd_table_write(*state, &t, TEST_BUILD_DIR "/nowhere/a.csv", NULL, 0), CRD_E_IO);
    check_status(crd_table_write(*state, &t, "a.xyz", NULL, 0), CRD_E_UNSUPPORTED);
}

static void every_allocation_may_fail(void** state)
{
    const char* path = TEST_BUILD_DIR "/table_memory.csv";
    FILE* f = fopen(path, "wb");
    fputs("time,x [m],mode,y\n0,1,on,2\n1,2,off,3\n", f);
    fclose(f);
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (;; failures++) {
        a.allocations = first;
        a.fail_at = first + failures;
        crd_table* t = NULL;
        const crd_status st = crd_table_read(ctx, path, &t);
        if (st == CRD_OK) {
            crd_table_destroy(t);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(failures >= 6);
    check_int(a.live, live);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_log_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(the_usual_dialects_are_read_alike),
        TEST(units_come_from_the_names_or_from_the_second_line),
        TEST(booleans_gaps_and_special_values_are_numbers),
        TEST(columns_of_texts_keep_them),
        TEST(an_incomplete_last_line_is_left_out_with_a_warning),
        TEST(tables_without_rows_or_without_columns_are_tables),
        TEST(what_is_wrong_is_said_with_its_line),
        TEST(a_hostile_header_does_not_cost_more_than_its_size),
        TEST(values_are_held_or_interpolated),
        TEST(hints_do_not_change_values),
        TEST(files_that_are_not_there_are_not_found),
        TEST(a_table_that_was_written_is_read_as_it_was),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
