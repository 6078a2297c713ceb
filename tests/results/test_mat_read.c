// Layouts that other programs write. What Cardan writes itself is in test_recording.c.
#include "cardan/results.h"
#include "check.h"

#include <matio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH TEST_BUILD_DIR "/mat_read.mat"

static const enum mat_ft versions[] = {MAT_FT_MAT5, MAT_FT_MAT73, MAT_FT_MAT5};
static const enum matio_compression compressions[] = {MAT_COMPRESSION_NONE, MAT_COMPRESSION_NONE,
                                                      MAT_COMPRESSION_ZLIB};
static enum matio_compression compression;

static mat_t* create(int version)
{
    remove(PATH);
    compression = compressions[version];
    return Mat_CreateVer(PATH, NULL, versions[version]);
}

static matvar_t* numbers(const char* name, enum matio_classes class, size_t rows, size_t columns,
                         const void* data, int flags)
{
    static const enum matio_types types[] = {
        [MAT_C_DOUBLE] = MAT_T_DOUBLE, [MAT_C_SINGLE] = MAT_T_SINGLE, [MAT_C_INT8] = MAT_T_INT8,
        [MAT_C_UINT8] = MAT_T_UINT8,   [MAT_C_INT16] = MAT_T_INT16,   [MAT_C_UINT16] = MAT_T_UINT16,
        [MAT_C_INT32] = MAT_T_INT32,   [MAT_C_UINT32] = MAT_T_UINT32, [MAT_C_INT64] = MAT_T_INT64,
        [MAT_C_UINT64] = MAT_T_UINT64};
    size_t dims[2] = {rows, columns};
    return Mat_VarCreate(name, class, types[class], 2, dims, (void*)data, flags);
}

// As MATLAB writes them, in UTF-16.
static matvar_t* text(const char* name, const char* content)
{
    uint16_t units[64];
    size_t dims[2] = {1, strlen(content)};
    for (size_t i = 0; i < dims[1]; i++) {
        units[i] = (uint8_t)content[i];
    }
    return Mat_VarCreate(name, MAT_C_CHAR, MAT_T_UINT16, 2, dims, units, 0);
}

static void put(mat_t* file, matvar_t* v)
{
    check_int(Mat_VarWrite(file, v, compression), 0);
    Mat_VarFree(v);
}

static crd_table* read_file(crd_context* ctx, mat_t* file)
{
    Mat_Close(file);
    crd_table* t = NULL;
    const crd_status st = crd_table_read(ctx, PATH, &t);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return t;
}

static const double times[] = {0, 0.5, 1.5}, squares[] = {0, 1, 4};

static const crd_table_column* column(const crd_table* t, const char* name)
{
    const int i = crd_table_find(t, name);
    if (i < 0) { fail_msg("there is no column '%s'", name); }
    return &t->columns[i];
}

static void vectors_beside_a_vector_of_times_are_columns(void** state)
{
    for (int version = 0; version < 3; version++) {
        static const char* const names[] = {"time", "t", "Time"};
        mat_t* f = create(version);
        put(f, numbers("x", MAT_C_DOUBLE, 3, 1, squares, 0));
        put(f, numbers(names[version], MAT_C_DOUBLE, 3, 1, times, 0));
        put(f, numbers("row", MAT_C_INT16, 1, 3, (int16_t[]){-1, 2, -3}, 0));
        put(f, numbers("single", MAT_C_SINGLE, 3, 1, (float[]){0.1F, 1, 2}, 0));
        put(f, numbers("flag", MAT_C_UINT8, 3, 1, (uint8_t[]){0, 1, 1}, MAT_F_LOGICAL));
        put(f, numbers("large", MAT_C_UINT64, 3, 1, (uint64_t[]){0, UINT64_MAX, 1}, 0));
        crd_table* t = read_file(*state, f);
        check_int(t->column_count, 5);
        check_int(t->rows, 3);
        check_near(t->time[2], 1.5, 0);
        check_near(column(t, "x")->values[2], 4, 0);
        check_near(column(t, "row")->values[2], -3, 0);
        check_int(column(t, "row")->type, CRD_INT16);
        check_near(column(t, "single")->values[0], (double)0.1F, 0);
        check_int(column(t, "flag")->type, CRD_BOOLEAN);
        check_near(column(t, "flag")->values[1], 1, 0);
        check_near(column(t, "large")->values[1], 18446744073709551615.0, 0);
        crd_table_destroy(t);
    }
}

static void matrices_are_columns_with_an_index(void** state)
{
    for (int version = 0; version < 3; version++) {
        mat_t* f = create(version);
        put(f, numbers("time", MAT_C_DOUBLE, 3, 1, times, 0));
        put(f, numbers("upright", MAT_C_DOUBLE, 3, 2, (double[]){1, 2, 3, 10, 20, 30}, 0));
        put(f, numbers("lying", MAT_C_DOUBLE, 2, 3, (double[]){1, 10, 2, 20, 3, 30}, 0));
        put(f, numbers("other", MAT_C_DOUBLE, 2, 2, (double[]){1, 2, 3, 4}, 0));
        put(f, text("note", "some text"));
        crd_table* t = read_file(*state, f);
        check_int(t->column_count, 4);
        for (int i = 0; i < 3; i++) {
            check_near(column(t, "upright[1]")->values[i], i + 1, 0);
            check_near(column(t, "upright[2]")->values[i], 10 * (i + 1), 0);
            check_near(column(t, "lying[1]")->values[i], i + 1, 0);
            check_near(column(t, "lying[2]")->values[i], 10 * (i + 1), 0);
        }
        check_contains(check_log, "'other' is left out: it has 4 values");
        check_contains(check_log, "'note' is left out");
        crd_table_destroy(t);
    }
}

static void cells_of_texts_are_columns(void** state)
{
    for (int version = 0; version < 3; version++) {
        mat_t* f = create(version);
        put(f, numbers("t", MAT_C_DOUBLE, 3, 1, times, 0));
        size_t dims[2] = {3, 1};
        matvar_t* cells[] = {text(NULL, "on"), text(NULL, "off"), text(NULL, "3.5")};
        put(f, Mat_VarCreate("mode", MAT_C_CELL, MAT_T_CELL, 2, dims, cells, 0));
        crd_table* t = read_file(*state, f);
        check_int(t->column_count, 1);
        check_int(t->columns[0].type, CRD_STRING);
        check_text(t->columns[0].texts[1], "off");
        check_near(t->columns[0].values[2], 3.5, 0);
        check(isnan(t->columns[0].values[0]));
        crd_table_destroy(t);
    }
}

static void structures_with_times_are_groups(void** state)
{
    for (int version = 0; version < 3; version++) {
        mat_t* f = create(version);
        size_t one[2] = {1, 1}, two[2] = {1, 2};
        static const char* fields[] = {"Time", "Data"};
        matvar_t* series = Mat_VarCreateStruct("speed", 2, one, fields, 2);
        Mat_VarSetStructFieldByName(series, "Time", 0, numbers(NULL, MAT_C_DOUBLE, 3, 1, times, 0));
        Mat_VarSetStructFieldByName(series, "Data", 0,
                                    numbers(NULL, MAT_C_DOUBLE, 3, 1, squares, 0));
        put(f, series);
        static const char* outer_fields[] = {"time", "signals"};
        static const char* inner_fields[] = {"values", "label"};
        matvar_t* outer = Mat_VarCreateStruct("simout", 2, one, outer_fields, 2);
        matvar_t* inner = Mat_VarCreateStruct(NULL, 2, two, inner_fields, 2);
        Mat_VarSetStructFieldByName(inner, "values", 0,
                                    numbers(NULL, MAT_C_DOUBLE, 2, 1, (double[]){5, 6}, 0));
        Mat_VarSetStructFieldByName(inner, "label", 0, text(NULL, "torque"));
        Mat_VarSetStructFieldByName(inner, "values", 1,
                                    numbers(NULL, MAT_C_DOUBLE, 2, 1, (double[]){7, 8}, 0));
        Mat_VarSetStructFieldByName(inner, "label", 1, text(NULL, ""));
        Mat_VarSetStructFieldByName(outer, "time", 0,
                                    numbers(NULL, MAT_C_DOUBLE, 2, 1, (double[]){0, 10}, 0));
        Mat_VarSetStructFieldByName(outer, "signals", 0, inner);
        put(f, outer);
        Mat_Close(f);
        crd_recording* r = NULL;
        check_ok(crd_recording_open(*state, PATH, &r));
        const crd_recording_info* info = crd_recording_describe(r);
        check_int(info->group_count, 2);
        check_int(info->signal_count, 3);
        crd_recording_close(r);
        crd_table* t = NULL;
        check_ok(crd_table_read(*state, PATH, &t));
        check_int(column(t, "speed")->rows, 3);
        check_near(column(t, "speed")->values[2], 4, 0);
        check_int(column(t, "torque")->rows, 2);
        check_near(column(t, "torque")->time[1], 10, 0);
        check_near(column(t, "simout[2]")->values[1], 8, 0);
        crd_table_destroy(t);
    }
}

static void files_without_ascending_times_are_refused(void** state)
{
    crd_table* t = NULL;
    mat_t* f = create(0);
    put(f, numbers("x", MAT_C_DOUBLE, 3, 1, times, 0));
    Mat_Close(f);
    check_status(crd_table_read(*state, PATH, &t), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "no times, expected a vector called 'time'");
    f = create(0);
    put(f, numbers("time", MAT_C_DOUBLE, 3, 1, (double[]){0, 2, 1}, 0));
    Mat_Close(f);
    check_status(crd_table_read(*state, PATH, &t), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "time(3) = 1, expected finite and ascending times");
    f = create(0);
    put(f, numbers("time", MAT_C_DOUBLE, 2, 1, (double[]){0, NAN}, 0));
    Mat_Close(f);
    check_status(crd_table_read(*state, PATH, &t), CRD_E_FORMAT);
}

// libmatio itself would give zeros.
static void files_that_were_cut_off_are_refused(void** state)
{
    static double zeros[500];
    for (int compressed = 0; compressed < 2; compressed++) {
        mat_t* f = create(2 * compressed); // version 5
        put(f, numbers("time", MAT_C_DOUBLE, 500, 1, zeros, 0));
        put(f, numbers("x", MAT_C_DOUBLE, 500, 1, zeros, 0));
        Mat_Close(f);
        struct stat info;
        check(stat(PATH, &info) == 0);
        crd_table* t = NULL;
        check_ok(crd_table_read(*state, PATH, &t));
        check_int(t->column_count, 1);
        crd_table_destroy(t);
        for (off_t size = info.st_size - 1; size > 128; size -= compressed ? 7 : 501) {
            check(truncate(PATH, size) == 0);
            check_status(crd_table_read(*state, PATH, &t), CRD_E_FORMAT);
        }
        check(truncate(PATH, 0) == 0);
        check_status(crd_table_read(*state, PATH, &t), CRD_E_FORMAT);
        check_contains(crd_error_text(*state), "the file is empty");
    }
}

static void every_allocation_may_fail(void** state)
{
    mat_t* f = create(0);
    put(f, numbers("time", MAT_C_DOUBLE, 3, 1, times, 0));
    put(f, numbers("x", MAT_C_DOUBLE, 3, 1, squares, 0));
    Mat_Close(f);
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
        const crd_status st = crd_recording_open(ctx, PATH, &r);
        crd_recording_close(r);
        check_int(a.live, live);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check_contains(crd_error_text(ctx), "out of memory");
    }
    check(failures >= 6);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_log_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(vectors_beside_a_vector_of_times_are_columns),
        TEST(matrices_are_columns_with_an_index),
        TEST(cells_of_texts_are_columns),
        TEST(structures_with_times_are_groups),
        TEST(files_without_ascending_times_are_refused),
        TEST(files_that_were_cut_off_are_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
