#include "cardan/results.h"
#include "check.h"
#include "shared/base.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER TEST_BUILD_DIR "/"

static void write_text(const char* path, const char* text)
{
    FILE* f = fopen(path, "wb");
    fputs(text, f);
    fclose(f);
}

static void a_csv_file_is_a_recording_with_one_group(void** state)
{
    const char* path = FOLDER "recording.csv";
    write_text(path, "time,x [m],mode\n0,1,on\n1,2,off\n1.5,4,on\n");
    crd_recording* r = NULL;
    check_ok(crd_recording_open(*state, path, &r));
    const crd_recording_info* info = crd_recording_describe(r);
    check_text(info->format, "CSV");
    check_text(info->path, path);
    check_int(info->group_count, 1);
    check_int(info->groups[0].rows, 3);
    check_int(info->groups[0].signal_count, 2);
    check_text(info->signals[0].unit, "m");
    check_int(info->signals[1].type, CRD_STRING);
    check_int(info->attachment_count, 0);
    crd_cursor* c = NULL;
    crd_block b;
    check_ok(crd_cursor_open(r, 0, (int[]){1, 0}, 2, &c));
    check_ok(crd_cursor_next(c, &b));
    check_int(b.rows, 3);
    check_near(b.time[2], 1.5, 0);
    check_text(b.texts[0][1], "off");
    check(!b.texts[1]);
    check_near(b.values[1][2], 4, 0);
    check_ok(crd_cursor_next(c, &b));
    check_int(b.rows, 0);
    crd_cursor_close(c);
    crd_recording_close(r);
}

static void a_file_without_signals_is_a_recording(void** state)
{
    write_text(FOLDER "recording.csv", "time\n0\n1\n");
    crd_recording* r = NULL;
    check_ok(crd_recording_open(*state, FOLDER "recording.csv", &r));
    check_int(crd_recording_describe(r)->group_count, 1);
    crd_cursor* c = NULL;
    crd_block b;
    check_ok(crd_cursor_open(r, 0, NULL, 0, &c));
    check_ok(crd_cursor_next(c, &b));
    check_int(b.rows, 2);
    crd_cursor_close(c);
    crd_recording_close(r);
}

static void the_content_says_the_format(void** state)
{
    const char* path = FOLDER "recording.mat"; // no MATLAB file, whatever its name
    write_text(path, "time,x\n0,1\n");
    crd_recording* r = NULL;
    check_status(crd_recording_open(*state, path, &r), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "recording.mat: not a MATLAB file");
    path = FOLDER "recording.txt";
    write_text(path, "MDF     4.10    ");
    check_status(crd_recording_open(*state, path, &r), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "too short for an MDF file");
    check_status(crd_recording_open(*state, FOLDER "no such file", &r), CRD_E_NOT_FOUND);
    check_status(crd_recording_open(*state, TEST_BUILD_DIR, &r), CRD_E_FORMAT);
}

// ---- there and back ----------------------------------------------------------------------------

static const crd_label gears[] = {{-1, "reverse"}, {0, "neutral"}, {3, "third; or = not"}};
static const crd_column columns[] = {
    {"motor.x", "m", "position & more", CRD_FLOAT64, 0, NULL, 0},
    {"f", "N", "", CRD_FLOAT32, 0, NULL, 0},
    {"i8", "", "", CRD_INT8, 0, NULL, 0},
    {"u8", "", "", CRD_UINT8, 0, NULL, 0},
    {"i16", "", "", CRD_INT16, 0, NULL, 0},
    {"u16", "", "", CRD_UINT16, 0, NULL, 0},
    {"i32", "", "", CRD_INT32, 0, NULL, 0},
    {"u32", "", "", CRD_UINT32, 0, NULL, 0},
    {"i64", "", "", CRD_INT64, 0, NULL, 0},
    {"u64", "", "", CRD_UINT64, 0, NULL, 0},
    {"on", "", "", CRD_BOOLEAN, 0, NULL, 0},
    {"gear", "", "", CRD_ENUMERATION, 0, gears, 3},
    {"text", "", "", CRD_STRING, 0, NULL, 0},
    {"empty", "", "", CRD_STRING, 0, NULL, 0},
};
enum { COLUMNS = sizeof columns / sizeof *columns, ROWS = 3000 };

static void record(crd_context* ctx, const char* path, int mat_version)
{
    static const crd_attachment attachment = {CRD_ATTACHMENT_RUN, "application/json",
                                              "{\"format\": 1}", 13};
    crd_recorder_options opt = {.path = path,
                                .columns = columns,
                                .column_count = COLUMNS,
                                .attachments = &attachment,
                                .attachment_count = 1,
                                .mat_version = mat_version};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(ctx, &opt, &r));
    for (int k = 0; k < ROWS; k++) {
        crd_word* w = crd_recorder_begin(r);
        w[0].real = 1e-3 * k;
        for (int i = 0; i < COLUMNS; i++) {
            crd_word* at = &w[crd_recorder_word(r, i)];
            char text[32];
            snprintf(text, sizeof text, "row %d, \"%d\"", k, k * k);
            switch (columns[i].type) {
            case CRD_FLOAT64:
                at->real = sin(k) / 3;
                break;
            case CRD_FLOAT32:
                at->real = (double)(float)cos(k);
                break;
            case CRD_BOOLEAN:
                at->integer = k % 2;
                break;
            case CRD_ENUMERATION:
                at->integer = gears[k % 3].value;
                break;
            case CRD_INT64:
            case CRD_UINT64:
                at->integer = (int64_t)((uint64_t)k * 0x123456789abcdefU);
                break;
            case CRD_STRING:
                crd_word_set_bytes(at, text, i + 1 == COLUMNS ? 0 : strlen(text));
                break;
            default:
                at->integer = columns[i].type % 2 ? k % 200 : k % 100 - 50;
                break;
            }
        }
        crd_recorder_end(r);
    }
    crd_recorder_event(r, CRD_EVENT_WARNING, 0.5, "hot");
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
}

static void all_formats_of_the_same_run_are_equal(void** state)
{
    static const struct {
        const char* path;
        int mat_version;
    } files[] = {{FOLDER "run.csv", 0},
                 {FOLDER "run.mf4", 0},
                 {FOLDER "run5.mat", 5},
                 {FOLDER "run73.mat", 73}};
    crd_table* tables[4];
    for (int i = 0; i < 4; i++) {
        record(*state, files[i].path, files[i].mat_version);
        const crd_status st = crd_table_read(*state, files[i].path, &tables[i]);
        if (st < 0) { fail_msg("%s", crd_error_text(*state)); }
        check_int(tables[i]->rows, ROWS);
    }
    const crd_compare_options exact = {.relative = 0, .absolute = 0};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            crd_comparison* c = NULL;
            check_ok(crd_compare(*state, tables[i], tables[j], &exact, &c));
            check_int(c->signal_count, COLUMNS);
            for (int k = 0; k < c->signal_count; k++) {
                const crd_difference* d = &c->signals[k];
                if (d->differs) {
                    fail_msg("%s of %s and %s differs at %g: %.17g and %.17g", d->name,
                             files[i].path, files[j].path, d->first_time, d->value_a, d->value_b);
                }
            }
            crd_comparison_destroy(c);
        }
    }
    for (int i = 0; i < 4; i++) {
        crd_table_destroy(tables[i]);
    }
}

static void what_a_recorder_is_told_about_signals_comes_back(void** state)
{
    static const char* const paths[] = {FOLDER "run.mf4", FOLDER "run5.mat", FOLDER "run73.mat"};
    static const char* const formats[] = {"MDF 4.10", "MAT 5", "MAT 7.3"};
    for (int f = 0; f < 3; f++) {
        record(*state, paths[f], f == 1 ? 5 : 73);
        crd_recording* r = NULL;
        check_ok(crd_recording_open(*state, paths[f], &r));
        const crd_recording_info* info = crd_recording_describe(r);
        check_text(info->format, formats[f]);
        check(!info->unfinished);
        check_int(info->signal_count, COLUMNS);
        check_int(info->groups[0].rows, ROWS);
        for (int i = 0; i < COLUMNS; i++) {
            check_text(info->signals[i].name, columns[i].name);
            check_text(info->signals[i].unit, columns[i].unit);
            check_text(info->signals[i].description, columns[i].description);
            if (info->signals[i].type != columns[i].type) {
                fail_msg("%s: %s has type %d, expected %d", paths[f], columns[i].name,
                         info->signals[i].type, columns[i].type);
            }
        }
        const crd_signal_info* gear = &info->signals[11];
        check_int(gear->label_count, 3);
        check_int(gear->labels[0].value, -1);
        check_text(gear->labels[0].text, "reverse");
        check_int(info->attachment_count, 1);
        check_text(info->attachments[0].name, CRD_ATTACHMENT_RUN);
        char* data = NULL;
        size_t n = 0;
        check_ok(crd_recording_attachment(r, 0, &data, &n));
        check_text(data, "{\"format\": 1}");
        crd_free(*state, data);
        if (f == 0) {
            check(info->started > 0);
            bool hot = false;
            for (int i = 0; i < info->event_count; i++) {
                const crd_event_info* e = &info->events[i];
                hot = hot || (e->kind == CRD_EVENT_WARNING && e->time == 0.5 &&
                              strcmp(e->text, "hot") == 0);
            }
            check(hot);
        }
        crd_recording_close(r);
    }
}

static void rasters_come_back_as_groups(void** state)
{
    static const crd_raster rasters[] = {{"1 ms", 1e-3}, {"10 ms", 1e-2}};
    static const crd_column cols[] = {{"fast", "m", "", CRD_FLOAT64, 0, NULL, 0},
                                      {"slow", "K", "", CRD_FLOAT64, 1, NULL, 0}};
    crd_recorder_options opt = {.path = FOLDER "rasters.mf4",
                                .columns = cols,
                                .column_count = 2,
                                .rasters = rasters,
                                .raster_count = 2};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int k = 0; k <= 100; k++) {
        crd_word* w = crd_recorder_begin_raster(r, 0);
        w[0].real = 1e-3 * k;
        w[1].real = k;
        crd_recorder_end_raster(r, 0);
        if (k % 10) { continue; }
        w = crd_recorder_begin_raster(r, 1);
        w[0].real = 1e-3 * k;
        w[1].real = -k;
        crd_recorder_end_raster(r, 1);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, opt.path, &t));
    check_int(t->column_count, 2);
    const int fast = crd_table_find(t, "fast"), slow = crd_table_find(t, "slow");
    check_int(t->columns[fast].rows, 101);
    check_int(t->columns[slow].rows, 11);
    int64_t hint = 0;
    check_near(crd_table_value(t, slow, 0.055, true, &hint), -55, 1e-9);
    hint = 0;
    check_near(crd_table_value(t, slow, 0.055, false, &hint), -50, 0);
    check_near(crd_table_value(t, fast, 0.055, false, &(int64_t){0}), 55, 0);
    crd_table_destroy(t);
}

static void write_until_killed(const char* path)
{
    static const crd_column column = {"x", "", "", CRD_FLOAT64, 0, NULL, 0};
    crd_recorder_options opt = {.path = path, .columns = &column, .column_count = 1};
    crd_recorder* r = NULL;
    crd_context* ctx = crd_context_create(NULL);
    if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(1); }
    for (int k = 0; k < 800000; k++) {
        crd_word* w = crd_recorder_begin(r);
        if (!w) { _exit(1); }
        w[0].real = 1e-3 * k;
        w[1].real = 0.1 * k;
        crd_recorder_end(r);
    }
    kill(getpid(), SIGKILL);
}

static void what_a_killed_writer_left_is_read(void** state)
{
    const char* path = FOLDER "killed.mf4";
    const pid_t child = fork();
    if (child == 0) {
        write_until_killed(path);
        _exit(1);
    }
    int how = 0;
    check_int(waitpid(child, &how, 0), child);
    check(WIFSIGNALED(how));
    crd_recording* r = NULL;
    check_ok(crd_recording_open(*state, path, &r));
    check(crd_recording_describe(r)->unfinished);
    crd_recording_close(r);
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, path, &t));
    check(t->rows > 100000); // the last blocks were still in the writer's hands
    for (int64_t k = 0; k < t->rows; k++) {
        if (t->time[k] != 1e-3 * (double)k || t->columns[0].values[k] != 0.1 * (double)k) {
            fail_msg("row %lld: %g at %g", (long long)k, t->columns[0].values[k], t->time[k]);
        }
    }
    crd_table_destroy(t);
}

static void every_allocation_may_fail(void** state)
{
    const char* path = FOLDER "recording_memory.csv";
    write_text(path, "time,x,mode\n0,1,on\n1,2,off\n");
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (int i = 0;; i++) {
        failures = i / 2; // from there on, and there alone
        a.once = i % 2;
        a.allocations = first;
        a.fail_at = first + failures;
        crd_recording* r = NULL;
        crd_cursor* c = NULL;
        crd_status st = crd_recording_open(ctx, path, &r);
        if (st == CRD_OK) { st = crd_cursor_open(r, 0, (int[]){0, 1}, 2, &c); }
        crd_cursor_close(c);
        crd_recording_close(r);
        check_int(a.live, live);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check_contains(crd_error_text(ctx), "out of memory");
    }
    check(failures >= 8);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(a_csv_file_is_a_recording_with_one_group),
        TEST(a_file_without_signals_is_a_recording),
        TEST(the_content_says_the_format),
        TEST(all_formats_of_the_same_run_are_equal),
        TEST(what_a_recorder_is_told_about_signals_comes_back),
        TEST(rasters_come_back_as_groups),
        TEST(what_a_killed_writer_left_is_read),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
