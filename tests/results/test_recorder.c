#include "cardan/results.h"
#include "check.h"
#include "shared/base.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const crd_column reals[] = {
    {.name = "a", .unit = "m", .description = "", .type = CRD_FLOAT64},
    {.name = "b", .unit = "", .description = "", .type = CRD_FLOAT64},
};

static crd_recorder_options options(const char* path)
{
    return (crd_recorder_options){.path = path, .columns = reals, .column_count = 2};
}

// false: writing has failed
static bool record(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin(r);
    if (!row) { return false; }
    row[0].real = (double)i * 1e-3;
    row[1].real = sin((double)i);
    row[2].real = (double)i / 7;
    crd_recorder_end(r);
    return true;
}

static void check_rows(crd_context* ctx, const char* path, int64_t rows)
{
    crd_table* t = NULL;
    check_ok(crd_table_read(ctx, path, &t));
    if (rows >= 0) { check_int(t->rows, rows); }
    check_int(t->column_count, 2);
    for (int64_t i = 0; i < t->rows; i++) { // 17 digits: the same bits come back
        check_near(t->time[i], (double)i * 1e-3, 0);
        check_near(t->columns[0].values[i], sin((double)i), 0);
        check_near(t->columns[1].values[i], (double)i / 7, 0);
    }
    crd_table_destroy(t);
}

static char* content(const char* path)
{
    static char text[4096];
    FILE* f = fopen(path, "rb");
    if (!f) { fail_msg("%s: %s", path, strerror(errno)); }
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void every_row_that_was_handed_over_is_in_the_file_after_finish(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_rows.csv";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    const int64_t rows = 50000; // more than a buffer
    for (int64_t i = 0; i < rows; i++) {
        check(record(r, i));
    }
    check_int(crd_recorder_rows(r), rows);
    check_ok(crd_recorder_finish(r));
    check_rows(*state, path, rows);
    check_ok(crd_recorder_finish(r)); // again: nothing happens
    check_int(crd_recorder_rows(r), rows);
    crd_recorder_destroy(r);
}

static void a_full_ring_makes_the_run_wait_and_loses_nothing(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_ring.csv";
    crd_recorder_options opt = options(path);
    opt.ring_rows = 2;
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int64_t i = 0; i < 300; i++) {
        check(record(r, i));
    }
    crd_recorder_destroy(r); // finishes
    check_rows(*state, path, 300);
}

static void a_row_that_was_begun_but_not_ended_is_not_written(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_begun.csv";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    check(record(r, 0));
    crd_word* row = crd_recorder_begin(r);
    row[0].real = 99;
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check_rows(*state, path, 1);
}

static void all_types_are_written_as_other_tools_read_them(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_types.csv";
    static const crd_column columns[] = {
        {.name = "x[1,2]", .unit = "N.m", .description = "", .type = CRD_FLOAT64},
        {.name = "on", .unit = "", .description = "", .type = CRD_BOOLEAN},
        {.name = "name", .unit = "", .description = "", .type = CRD_STRING},
        {.name = "n", .unit = "1/s", .description = "", .type = CRD_INT32},
        {.name = "raw", .unit = "", .description = "", .type = CRD_BINARY},
        {.name = "u", .unit = "", .description = "", .type = CRD_UINT64},
    };
    const crd_recorder_options opt = {
        .path = path, .columns = columns, .column_count = 6, .unit_row = true};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    crd_word* row = crd_recorder_begin(r);
    row[0].real = 0;
    row[crd_recorder_word(r, 0)].real = (double)NAN;
    row[crd_recorder_word(r, 1)].integer = 1;
    crd_word_set_bytes(&row[crd_recorder_word(r, 2)], "on, \"really\"", 12);
    row[crd_recorder_word(r, 3)].integer = -3;
    crd_word_set_bytes(&row[crd_recorder_word(r, 4)], "\x00\xFF", 2);
    row[crd_recorder_word(r, 5)].integer = -1;
    crd_recorder_end(r);
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check_text(content(path), "time,\"x[1,2]\",on,name,n,raw,u\n"
                              "[s],[N.m],,,[1/s],,\n"
                              "0,nan,1,\"on, \"\"really\"\"\",-3,00ff,18446744073709551615\n");
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, path, &t));
    check_int(t->rows, 1);
    check_text(t->columns[0].unit, "N.m");
    check_text(t->columns[2].texts[0], "on, \"really\"");
    check_near(t->columns[3].values[0], -3, 0);
    crd_table_destroy(t);
}

static void a_place_that_cannot_be_written_is_refused_before_the_run(void** state)
{
    crd_recorder* r = NULL;
    crd_recorder_options opt = options(TEST_BUILD_DIR "/no/such/folder/x.csv");
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_IO);
    check_contains(crd_error_text(*state),
                   "/no/such/folder/x.csv: cannot write the results: No such file or "
                   "directory; the folder has to be there");
    opt.path = TEST_BUILD_DIR "/x.xlsx";
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), ".csv");
    opt.path = TEST_BUILD_DIR "/folder.csv";
    mkdir(opt.path, 0777);
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_IO);
    opt.path = "/dev/full"; // a disk without room for the header
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_IO);
    check_contains(crd_error_text(*state), "/dev/full: cannot write the results: No space left");
    check(!r);
}

// In a child process: a file may have `limit` bytes. Returns the child's exit code.
static int run_limited(const char* path, rlim_t limit)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit size = {limit, limit};
        setrlimit(RLIMIT_FSIZE, &size);
        crd_context* ctx = crd_context_create(NULL);
        const crd_recorder_options opt = options(path);
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        int64_t i = 0;
        while (i < 10000000 && record(r, i)) {
            i++;
        }
        const bool stopped = i < 10000000; // begin said so
        const crd_status st = crd_recorder_finish(r);
        char reason[64];
        snprintf(reason, sizeof reason, "%s", strerror(EFBIG));
        const bool told = strstr(crd_error_text(ctx), path) && strstr(crd_error_text(ctx), reason);
        int64_t lines = 0;
        FILE* f = fopen(path, "rb");
        for (int c = fgetc(f); c != EOF; c = fgetc(f)) {
            lines += c == '\n';
        }
        fclose(f);
        const bool counted = crd_recorder_rows(r) == lines - 1; // the first is the header
        crd_recorder_destroy(r);
        crd_context_destroy(ctx);
        _exit(!stopped ? 3 : st != CRD_E_IO ? 4 : !told ? 5 : !counted ? 6 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_full_disk_stops_the_run_and_leaves_whole_rows(void** state)
{
    check_int(run_limited(TEST_BUILD_DIR "/recorder_no_header.csv", 4), 2); // create says so
    const char* path = TEST_BUILD_DIR "/recorder_limited.csv";
    static const rlim_t limits[] = {100, 4096, 300001, 1000003};
    for (int i = 0; i < 4; i++) {
        check_int(run_limited(path, limits[i]), 0);
        struct stat info;
        check(stat(path, &info) == 0);
        check(info.st_size <= (off_t)limits[i]);
        check(info.st_size > (off_t)limits[i] - 80); // nothing was thrown away but the cut row
        FILE* f = fopen(path, "rb");
        fseek(f, -1, SEEK_END);
        check_int(fgetc(f), '\n');
        fclose(f);
        check_rows(*state, path, -1);
    }
}

static void a_reader_that_goes_away_is_reported(void** state)
{
    int ends[2];
    check(pipe(ends) == 0);
    char fd_path[64];
    snprintf(fd_path, sizeof fd_path, "/dev/fd/%d", ends[1]);
    const crd_recorder_options opt = options(fd_path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    close(ends[0]);
    close(ends[1]);
    int64_t i = 0;
    while (i < 10000000 && record(r, i)) {
        i++;
    }
    check(i < 10000000);
    check_status(crd_recorder_finish(r), CRD_E_IO);
    check_contains(crd_error_text(*state), "Broken pipe");
    check_contains(crd_error_text(*state), "the first 0 of ");
    check_status(crd_recorder_finish(r), CRD_E_IO); // still so
    crd_recorder_destroy(r);
}

static void what_a_killed_run_had_written_is_readable(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_killed.csv";
    unlink(path);
    int ends[2];
    check(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        crd_context* ctx = crd_context_create(NULL);
        crd_recorder_options opt = options(path);
        opt.ring_rows = 64; // so that what was begun was soon formatted
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        for (int64_t i = 0; i < 40000; i++) { // several buffers
            if (!record(r, i)) { _exit(3); }
        }
        if (write(ends[1], "x", 1) != 1) { _exit(4); }
        pause();
        _exit(5);
    }
    char c = 0;
    check(read(ends[0], &c, 1) == 1);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, path, &t));
    check(t->rows > 20000);
    crd_table_destroy(t);
    check_rows(*state, path, -1);
}

static void rows_reach_the_file_without_a_finish_when_the_run_is_slow(void** state)
{
    const char* path = TEST_BUILD_DIR "/recorder_slow.csv";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    struct stat info;
    check(stat(path, &info) == 0);
    const off_t header = info.st_size;
    check(record(r, 0));
    const int64_t start = crdi_now_ns(); // a guard against hanging, not a deadline
    do {
        check(stat(path, &info) == 0);
        check(crdi_now_ns() - start < 60000000000);
    } while (info.st_size == header);
    check_rows(*state, path, 1);
    crd_recorder_destroy(r);
}

static void nothing_is_allocated_between_create_and_destroy(void** state)
{
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/recorder_zero.csv");
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    const int64_t before = check_memory.allocations, live = check_memory.live;
    for (int64_t i = 0; i < 10000; i++) {
        check(record(r, i));
    }
    check_ok(crd_recorder_finish(r));
    check_int(check_memory.allocations, before);
    check_int(check_memory.live, live);
    crd_recorder_destroy(r);
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/recorder_memory.csv");
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (;; failures++) {
        a.allocations = first;
        a.fail_at = first + failures;
        crd_recorder* r = NULL;
        const crd_status st = crd_recorder_create(ctx, &opt, &r);
        if (st == CRD_OK) {
            crd_recorder_destroy(r);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(failures >= 5);
    check_int(a.live, live);
    a.fail_at = -1;
    crd_context_destroy(ctx);
}

static void a_file_that_was_deleted_during_the_run_is_told(void** state)
{
    static const char* const paths[] = {TEST_BUILD_DIR "/recorder_deleted.csv",
                                        TEST_BUILD_DIR "/recorder_deleted.mf4"};
    for (int i = 0; i < 2; i++) {
        const crd_recorder_options opt = options(paths[i]);
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        check(record(r, 0));
        check(unlink(paths[i]) == 0);
        check(record(r, 1));
        check_status(crd_recorder_finish(r), CRD_E_IO);
        check_contains(crd_error_text(*state), "was deleted while it was written");
        check_int(crd_recorder_rows(r), 0);
        crd_recorder_destroy(r);
    }
}

static void signals_stay_with_the_threads_that_expect_them(void** state)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/recorder_signals.csv");
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < SIGRTMIN; s++) {
        check_int(sigismember(&before, s), sigismember(&after, s));
    }
    crd_recorder_destroy(r);
    crd_recorder_destroy(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(every_row_that_was_handed_over_is_in_the_file_after_finish),
        TEST(a_full_ring_makes_the_run_wait_and_loses_nothing),
        TEST(a_row_that_was_begun_but_not_ended_is_not_written),
        TEST(all_types_are_written_as_other_tools_read_them),
        TEST(a_place_that_cannot_be_written_is_refused_before_the_run),
        TEST(a_full_disk_stops_the_run_and_leaves_whole_rows),
        TEST(a_reader_that_goes_away_is_reported),
        TEST(what_a_killed_run_had_written_is_readable),
        TEST(rows_reach_the_file_without_a_finish_when_the_run_is_slow),
        TEST(nothing_is_allocated_between_create_and_destroy),
        TEST(every_allocation_may_fail),
        TEST(a_file_that_was_deleted_during_the_run_is_told),
        TEST(signals_stay_with_the_threads_that_expect_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
