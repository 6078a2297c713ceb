// Reads what the recorder wrote with libmatio; scipy and h5py read it in tests/golden/peer_mat.py.
#include "cardan/results.h"
#include "check.h"
#include "results/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <matio.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const crd_label labels[] = {{0, "off"}, {1, "on"}};

static const crd_column columns[] = {
    {.name = "unit.x[1]", .unit = "N.m", .description = "torque", .type = CRD_FLOAT64},
    {.name = "unit_x_1", .unit = "", .description = "", .type = CRD_FLOAT32},
    {.name = "1st", .unit = "", .description = "", .type = CRD_INT16},
    {.name = "end", .unit = "", .description = "", .type = CRD_BOOLEAN},
    {.name = "mode",
     .unit = "",
     .description = "",
     .type = CRD_ENUMERATION,
     .labels = labels,
     .label_count = 2},
    {.name = "text", .unit = "", .description = "", .type = CRD_STRING},
    {.name = "signals", .unit = "", .description = "", .type = CRD_UINT64},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const char* const variables[COLUMNS] = {"unit_x_1", "unit_x_1_2", "x1st",     "End",
                                               "mode",     "text",       "signals_2"};

static crd_recorder_options options(const char* path, int version)
{
    return (crd_recorder_options){
        .path = path, .columns = columns, .column_count = COLUMNS, .mat_version = version};
}

// false: writing has failed
static bool record(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin(r);
    if (!row) { return false; }
    row[0].real = (double)i * 1e-3;
    row[crd_recorder_word(r, 0)].real = (double)i / 7;
    row[crd_recorder_word(r, 1)].real = (double)i / 3;
    row[crd_recorder_word(r, 2)].integer = -i;
    row[crd_recorder_word(r, 3)].integer = i % 2;
    row[crd_recorder_word(r, 4)].integer = i % 3;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)i);
    crd_word_set_bytes(&row[crd_recorder_word(r, 5)], text, strlen(text));
    row[crd_recorder_word(r, 6)].integer = -1 - i;
    crd_recorder_end(r);
    return true;
}

static matvar_t* read_variable(mat_t* file, const char* name, size_t rows, enum matio_classes type)
{
    matvar_t* v = Mat_VarRead(file, name);
    if (!v) { fail_msg("there is no %s", name); }
    check_int(v->class_type, type);
    check_int(v->dims[0], rows);
    return v;
}

static void check_text_field(const matvar_t* v, const char* field, size_t i, const char* expected)
{
    const matvar_t* f = Mat_VarGetStructFieldByName((matvar_t*)(uintptr_t)v, field, i);
    check(f && f->class_type == MAT_C_CHAR);
    const size_t n = f->dims[0] * f->dims[1];
    check_int(n, strlen(expected));
    for (size_t k = 0; k < n; k++) {
        check_int(((const uint16_t*)f->data)[k], expected[k]);
    }
}

static void check_file(const char* path, size_t rows, enum mat_ft version)
{
    mat_t* file = Mat_Open(path, MAT_ACC_RDONLY);
    check(file);
    check_int(Mat_GetVersion(file), version);
    static const enum matio_classes types[] = {MAT_C_DOUBLE, MAT_C_SINGLE, MAT_C_INT16, MAT_C_UINT8,
                                               MAT_C_INT64,  MAT_C_CHAR,   MAT_C_UINT64};
    matvar_t* time = read_variable(file, "time", rows, MAT_C_DOUBLE);
    matvar_t* v[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        v[i] = read_variable(file, variables[i], rows, types[i]);
    }
    check(rows == 0 || v[3]->isLogical);
    for (size_t i = 0; i < rows; i++) {
        check_near(((double*)time->data)[i], (double)i * 1e-3, 0);
        check_near(((double*)v[0]->data)[i], (double)i / 7, 0);
        check_near((double)((float*)v[1]->data)[i], (double)(float)((double)i / 3), 0);
        check_int(((int16_t*)v[2]->data)[i], (int16_t) - (int64_t)i);
        check_int(((uint8_t*)v[3]->data)[i], i % 2);
        check_int(((int64_t*)v[4]->data)[i], i % 3);
        char text[32];
        snprintf(text, sizeof text, "%-31lld", (long long)i);
        for (size_t k = 0; k < v[5]->dims[1]; k++) { // a row of a matrix, column by column
            check_int(((uint16_t*)v[5]->data)[k * rows + i], text[k]);
        }
        check_int(((uint64_t*)v[6]->data)[i], -1 - (int64_t)i);
    }
    matvar_t* signals = Mat_VarRead(file, "signals");
    check(signals && signals->class_type == MAT_C_STRUCT);
    check_int(signals->dims[0] * signals->dims[1], COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) {
        check_text_field(signals, "variable", i, variables[i]);
        check_text_field(signals, "name", i, columns[i].name);
        check_text_field(signals, "unit", i, columns[i].unit);
        check_text_field(signals, "description", i, columns[i].description);
        check_text_field(signals, "labels", i, i == 4 ? "0 = off; 1 = on" : "");
        Mat_VarFree(v[i]);
    }
    Mat_VarFree(time);
    Mat_VarFree(signals);
    Mat_Close(file);
}

static void every_row_is_in_the_file_in_both_versions(void** state)
{
    const char* path = TEST_BUILD_DIR "/mat_rows.mat";
    static const int64_t counts[] = {1, 100, 30000}; // the last: several blocks
    for (int k = 0; k < 9; k++) {
        const int version = k % 3 == 0 ? 0 : k % 3 == 1 ? 5 : 73;
        const crd_recorder_options opt = options(path, version);
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        for (int64_t i = 0; i < counts[k / 3]; i++) {
            check(record(r, i));
        }
        crd_recorder_event(r, CRD_EVENT_STOP, 0, "there is no room for it");
        check_ok(crd_recorder_finish(r));
        check_int(crd_recorder_rows(r), counts[k / 3]);
        crd_recorder_destroy(r);
        check_file(path, (size_t)counts[k / 3], version == 73 ? MAT_FT_MAT73 : MAT_FT_MAT5);
    }
}

static void a_recording_without_rows_can_be_opened(void** state)
{
    const char* path = TEST_BUILD_DIR "/mat_empty.mat";
    for (int version = 5; version <= 73; version += 68) {
        const crd_recorder_options opt = options(path, version);
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        check_ok(crd_recorder_finish(r));
        crd_recorder_destroy(r);
        mat_t* file = Mat_Open(path, MAT_ACC_RDONLY);
        check(file);
        matvar_t* v = Mat_VarRead(file, "signals");
        check(v);
        Mat_VarFree(v);
        Mat_Close(file);
    }
}

static void attachments_are_variables(void** state)
{
    const char* path = TEST_BUILD_DIR "/mat_attached.mat";
    crd_recorder_options opt = options(path, 5);
    const crd_attachment first = {CRD_ATTACHMENT_RUN, "application/json", "{\"a\": 1}", 8};
    opt.attachments = &first;
    opt.attachment_count = 1;
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    check(record(r, 0));
    check_ok(crd_recorder_attach(
        r, &(crd_attachment){CRD_ATTACHMENT_VERDICT, "application/json", "\xC3\xA4", 2}));
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    mat_t* file = Mat_Open(path, MAT_ACC_RDONLY);
    matvar_t* v = read_variable(file, "cardan_run", 1, MAT_C_CHAR);
    check_int(v->dims[1], 8);
    check_int(((uint16_t*)v->data)[7], '}');
    Mat_VarFree(v);
    v = read_variable(file, "cardan_verdict", 1, MAT_C_CHAR);
    check_int(v->dims[1], 1);
    check_int(((uint16_t*)v->data)[0], 0xE4);
    Mat_VarFree(v);
    Mat_Close(file);
}

// The sink alone, with a smaller limit than the format's. Returns the error.
static int run_sink(crd_context* ctx, const char* path, int version, int64_t* written, char* reason)
{
    static const crd_column one[] = {
        {.name = "x", .unit = "", .description = "", .type = CRD_FLOAT64}};
    static const crdi_field field = {.type = CRD_FLOAT64, .word = 1};
    static const size_t words = 2;
    const crdi_rows rows = {&field, 1, &words, 1};
    const crd_recorder_options opt = {
        .path = path, .columns = one, .column_count = 1, .mat_version = version};
    crdi_sink* s = NULL;
    check_ok(crdi_mat_sink(ctx, &opt, &rows, 8000, &s));
    s->ops->start(s);
    for (int i = 0; i < 1500 && !s->error; i++) {
        s->ops->row(s, 0, (crd_word[]){{.real = i}, {.real = 2.0 * i}});
    }
    s->ops->finish(s);
    const int error = s->error;
    *written = s->written;
    strcpy(reason, s->reason);
    s->ops->destroy(s);
    return error;
}

static void what_is_too_large_for_version_5_becomes_7_3_or_is_an_error(void** state)
{
    const char* path = TEST_BUILD_DIR "/mat_large.mat";
    int64_t written;
    char reason[192];
    check_int(run_sink(*state, path, 0, &written, reason), 0);
    check_int(written, 1500);
    mat_t* file = Mat_Open(path, MAT_ACC_RDONLY);
    check_int(Mat_GetVersion(file), MAT_FT_MAT73);
    Mat_Close(file);
    check_int(run_sink(*state, path, 5, &written, reason), EFBIG);
    check_int(written, 1000); // what there was room for
    check_contains(reason, "at most 2 GiB, version 7.3 holds more");
    file = Mat_Open(path, MAT_ACC_RDONLY);
    check_int(Mat_GetVersion(file), MAT_FT_MAT5);
    matvar_t* v = read_variable(file, "x", 1000, MAT_C_DOUBLE);
    check_near(((double*)v->data)[999], 1998, 0);
    Mat_VarFree(v);
    Mat_Close(file);
}

// SciPy counts characters where the file counts units of UTF-16, and reads nothing of such a file.
static void characters_of_two_units_are_kept_in_7_3_only(void** state)
{
    static const crd_column column = {
        .name = "x", .unit = "\u00B0C", .description = "a\U0001F600b", .type = CRD_FLOAT64};
    const char* path = TEST_BUILD_DIR "/mat_pairs.mat";
    for (int version = 5; version <= 73; version += 68) {
        static const uint16_t one[] = {'a', 0xFFFD, 'b'}, two[] = {'a', 0xD83D, 0xDE00, 'b'};
        const uint16_t* expected = version == 5 ? one : two;
        const crd_recorder_options opt = {
            .path = path, .columns = &column, .column_count = 1, .mat_version = version};
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        check_ok(crd_recorder_finish(r));
        crd_recorder_destroy(r);
        mat_t* file = Mat_Open(path, MAT_ACC_RDONLY);
        matvar_t* signals = Mat_VarRead(file, "signals");
        const matvar_t* unit = Mat_VarGetStructFieldByName(signals, "unit", 0);
        const matvar_t* text = Mat_VarGetStructFieldByName(signals, "description", 0);
        check_int(unit->dims[1], 2);
        check_int(((const uint16_t*)unit->data)[0], 0xB0);
        check_int(text->dims[1], version == 5 ? 3 : 4);
        check(memcmp(text->data, expected, 2 * text->dims[1]) == 0);
        Mat_VarFree(signals);
        Mat_Close(file);
    }
}

static void a_unit_may_change_the_working_folder(void** state)
{
    char before[4096];
    check(getcwd(before, sizeof before));
    check(chdir(TEST_BUILD_DIR) == 0);
    const crd_recorder_options opt = options("mat_folder.mat", 5);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    check(chdir("/") == 0);
    check(record(r, 0));
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check(chdir(before) == 0);
    check_file(TEST_BUILD_DIR "/mat_folder.mat", 1, MAT_FT_MAT5);
}

static void a_version_that_does_not_exist_is_refused(void** state)
{
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/mat_version.mat", 7);
    crd_recorder* r = NULL;
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "version 7 of MAT files, expected 5 or 73");
}

static int count_files(const char* folder)
{
    DIR* d = opendir(folder);
    check(d);
    int n = 0;
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static void the_file_that_collects_rows_has_no_name(void** state)
{
    const char* folder = TEST_BUILD_DIR "/mat_folder";
    mkdir(folder, 0777);
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/mat_folder/x.mat", 0);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int64_t i = 0; i < 30000; i++) {
        check(record(r, i));
    }
    check_int(count_files(folder), 1);
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check_int(count_files(folder), 1);
}

// In a child process: a file may have `limit` bytes. Returns the child's exit code.
static int run_limited(const char* path, int version, rlim_t limit, int64_t rows, size_t length)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit most = {limit, limit};
        setrlimit(RLIMIT_FSIZE, &most);
        crd_context* ctx = crd_context_create(NULL);
        const crd_recorder_options opt = options(path, version);
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        char text[256];
        memset(text, 'x', sizeof text);
        for (int64_t i = 0; i < rows; i++) {
            crd_word* row = crd_recorder_begin(r);
            if (!row) { break; }
            memset(row, 0, 40 * sizeof *row);
            crd_word_set_bytes(&row[crd_recorder_word(r, 5)], text, length);
            crd_recorder_end(r);
        }
        const crd_status st = crd_recorder_finish(r);
        const char* why = crd_error_text(ctx);
        const bool told = strstr(why, "the file holds the first ") && !strstr(why, "first 0 of");
        crd_recorder_destroy(r);
        crd_context_destroy(ctx);
        _exit(st != CRD_E_IO ? 3 : !told ? 4 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A whole file with so much in it.
static void check_limited(crd_context* ctx, const char* path, int64_t least, int64_t limit)
{
    struct stat info;
    crd_table* t = NULL;
    check_int(stat(path, &info), 0);
    if (info.st_size < least || info.st_size > limit) {
        fail_msg("%d bytes of %d", (int)info.st_size, (int)limit);
    }
    check_ok(crd_table_read(ctx, path, &t));
    check(t->rows > 0);
    crd_table_destroy(t);
}

static void a_full_disk_is_reported_and_keeps_what_fits(void** state)
{
    const char* path = TEST_BUILD_DIR "/mat_limited.mat";
    for (int version = 5; version <= 73; version += 68) {
        // No room to collect rows: what is in memory is left, 40 words a row, of which the result
        // needs a few.
        check_int(run_limited(path, version, 1 << 20, 100000, 1), 0);
        check_limited(*state, path, 500000, 1 << 20);
        // Rows can be collected, but texts in UTF-16 need twice the room.
        check_int(run_limited(path, version, 5 << 20, 13000, 256), 0);
        check_limited(*state, path, 4 << 20, 5 << 20);
    }
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const char* path = TEST_BUILD_DIR "/mat_memory.mat";
    crd_recorder_options opt = options(path, 0);
    const crd_attachment attachment = {"a.txt", "text/plain", "text", 4};
    opt.attachments = &attachment;
    opt.attachment_count = 1;
    const int64_t first = a.allocations, live = a.live;
#ifdef __SANITIZE_THREAD__
    const int kinds = 1; // it takes its time, and has nothing to do with how they fail
#else
    const int kinds = 2; // all from there on, and there alone
#endif
    for (int once = 0; once < kinds; once++) {
        int failures = 0;
        for (;; failures++) {
            a.allocations = first;
            a.fail_at = first + failures;
            a.once = once;
            crd_recorder* r = NULL;
            crd_status st = crd_recorder_create(ctx, &opt, &r);
            if (st == CRD_OK) {
                check(record(r, 0));
                st = crd_recorder_finish(r);
            }
            crd_recorder_destroy(r);
            check_int(a.live, live);
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
        }
        check(failures >= 20);
        check_file(path, 1, MAT_FT_MAT5);
    }
    a.fail_at = -1;
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_in_the_file_in_both_versions),
        TEST(a_recording_without_rows_can_be_opened),
        TEST(attachments_are_variables),
        TEST(what_is_too_large_for_version_5_becomes_7_3_or_is_an_error),
        TEST(characters_of_two_units_are_kept_in_7_3_only),
        TEST(a_unit_may_change_the_working_folder),
        TEST(a_version_that_does_not_exist_is_refused),
        TEST(the_file_that_collects_rows_has_no_name),
        TEST(a_full_disk_is_reported_and_keeps_what_fits),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
