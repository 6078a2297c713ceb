// A full or slow disk: what is kept, what is said. A limit on the size of files is a disk that is
// full, a pipe that nobody empties one that is too slow.
#include "cardan/results.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static check_allocator memory;

static int make_context(void** state)
{
    signal(SIGXFSZ, SIG_IGN);
    *state = check_context(&memory);
    return 0;
}

static int drop_context(void** state)
{
    crd_context_destroy(*state);
    return memory.live == 0 ? 0 : -1;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    check_int(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes;
    check_int(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static const crd_column columns[] = {
    {.name = "a", .unit = "m", .description = "", .type = CRD_FLOAT64},
    {.name = "s", .unit = "", .description = "", .type = CRD_STRING},
};

static double value_of(int64_t i) // whose digits cannot be packed
{
    return sin((double)i);
}

static crd_recorder* begin(crd_context* ctx, const char* path, crd_on_full on_full,
                           const char* second)
{
    const crd_recorder_options opt = {
        .path = path, .columns = columns, .column_count = 2, .on_full = on_full, .second = second};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(ctx, &opt, &r));
    return r;
}

// The number of rows that could be handed over, at most `most`.
static int64_t record(crd_recorder* r, int64_t most)
{
    const int text = crd_recorder_word(r, 1);
    for (int64_t i = 0; i < most; i++) {
        char word[16];
        crd_word* row = crd_recorder_begin(r);
        if (!row) { return i; }
        row[0].real = (double)i;
        row[1].real = value_of(i);
        crd_word_set_bytes(&row[text], word, (size_t)snprintf(word, sizeof word, "%d", (int)i % 7));
        crd_recorder_end(r);
    }
    return most;
}

// The rows are those of `first` and behind it in steps of `thin`, as long as that is not 0; all of
// their cells belong together.
static int64_t check_file(crd_context* ctx, const char* path, int64_t first, int thin)
{
    crd_table* t = NULL;
    check_ok(crd_table_read(ctx, path, &t));
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t n = (int64_t)t->time[i];
        if (thin) { check_int(n, first + i * thin); }
        check(i == 0 || t->time[i] > t->time[i - 1]);
        check_near(t->columns[0].values[i], value_of(n), 0);
        if (t->columns[1].texts) { check_int(atoi(t->columns[1].texts[i]), n % 7); }
    }
    const int64_t rows = t->rows;
    crd_table_destroy(t);
    return rows;
}

static int64_t size_of(const char* path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (int64_t)s.st_size : -1;
}

enum { LIMIT = 300000, ROWS = 60000 };

static const char* const formats[] = {"csv", "mf4", "mat"};

static const char* path_of(const char* name, const char* format)
{
    static char text[2][400];
    static int which;
    which = !which;
    snprintf(text[which], sizeof text[which], "%s/full_%s.%s", TEST_BUILD_DIR, name, format);
    return text[which];
}

static void a_full_disk_has_all_rows_that_it_has_room_for(void** state)
{
    for (int i = 0; i < 3; i++) {
        const char* path = path_of("stop", formats[i]);
        crd_recorder* r = begin(*state, path, CRD_ON_FULL_STOP, NULL);
        limit_files(LIMIT);
        record(r, 2000000); // more than MAT collects before it writes
        const crd_status st = crd_recorder_finish(r);
        limit_files(RLIM_INFINITY);
        check_status(st, CRD_E_IO);
        check_contains(crd_error_text(*state), "writing the results failed: File too large");
        const int64_t rows = check_file(*state, path, 0, 1);
        check_int(rows, crd_recorder_rows(r));
        if (size_of(path) < LIMIT * 8 / 10) {
            fail_msg("%s has %d bytes of %d", path, (int)size_of(path), LIMIT);
        }
        crd_recorder_destroy(r);
    }
}

static void the_rest_goes_to_a_second_place(void** state)
{
    const int64_t rows_of[] = {12000, 45000}; // of which not all fit, and twice as many would
    for (int i = 0; i < 2; i++) {
        const char *path = path_of("first", formats[i]), *second = path_of("second", formats[i]);
        crd_recorder* r = begin(*state, path, CRD_ON_FULL_STOP, second);
        limit_files(LIMIT);
        const int64_t all = record(r, rows_of[i]);
        const crd_status st = crd_recorder_finish(r);
        limit_files(RLIM_INFINITY);
        if (st < 0) { fail_msg("%s: %s", path, crd_error_text(*state)); }
        check_int(all, rows_of[i]);
        const int64_t rows = check_file(*state, path, 0, 1);
        check(rows > 0 && rows < all);
        check_int(rows + check_file(*state, second, rows, 1), all);
        const crd_recorder_loss l = crd_recorder_get_loss(r);
        check_int(l.lost, 0);
        check_int(strcmp(l.second, second), 0);
        check_contains(l.reason, "File too large");
        check(l.since >= 0 && l.since <= (double)all);
        crd_recorder_destroy(r);
    }
}

static void a_second_place_that_is_not_needed_is_left_clean(void** state)
{
    const char *path = path_of("enough", "csv"), *second = path_of("unused", "csv");
    crd_recorder* r = begin(*state, path, CRD_ON_FULL_STOP, second);
    record(r, 10);
    check_ok(crd_recorder_finish(r));
    check(!crd_recorder_get_loss(r).second && isnan(crd_recorder_get_loss(r).since));
    crd_recorder_destroy(r);
    check_int(check_file(*state, path, 0, 1), 10);
    check_int(size_of(second), -1);
}

static void a_second_place_is_another_file_of_the_same_kind(void** state)
{
    const char* path = path_of("one", "csv");
    crd_recorder_options opt = {
        .path = path, .columns = columns, .column_count = 2, .second = path};
    crd_recorder* r = NULL;
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the same file");
    opt.second = path_of("one", "mf4");
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the same ending");
}

static void a_run_goes_on_without_its_record(void** state)
{
    for (int i = 0; i < 2; i++) {
        const char* path = path_of("drop", formats[i]);
        crd_recorder* r = begin(*state, path, CRD_ON_FULL_DROP, NULL);
        limit_files(LIMIT);
        const int64_t all = record(r, ROWS);
        const crd_status st = crd_recorder_finish(r);
        limit_files(RLIM_INFINITY);
        check_int(all, ROWS);
        check_status(st, CRD_E_IO);
        check_contains(crd_error_text(*state), "the run went on without them");
        const int64_t rows = check_file(*state, path, 0, 1);
        check(rows > 0);
        check_int(rows + crd_recorder_get_loss(r).lost, ROWS);
        crd_recorder_destroy(r);
    }
}

static void rows_are_thinned_out_and_counted(void** state)
{
    for (int i = 0; i < 2; i++) {
        const char* path = path_of("thin", formats[i]);
        crd_recorder* r = begin(*state, path, CRD_ON_FULL_THIN, NULL);
        limit_files(LIMIT);
        check_int(record(r, ROWS), ROWS);
        const crd_status st = crd_recorder_finish(r);
        limit_files(RLIM_INFINITY);
        check_status(st, CRD_E_IO); // this disk stays full
        const crd_recorder_loss l = crd_recorder_get_loss(r);
        check(l.thin > 1 && l.thinned > 0 && l.since > 0);
        check_int(check_file(*state, path, 0, 0) + l.lost + l.thinned, ROWS);
        crd_recorder_destroy(r);
    }
}

static void a_slow_disk_costs_rows_and_no_time(void** state)
{
    int ends[2];
    char path[64];
    check_int(pipe2(ends, O_CLOEXEC), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    const crd_recorder_options opt = {.path = path,
                                      .columns = columns,
                                      .column_count = 2,
                                      .ring_rows = 64,
                                      .on_full = CRD_ON_FULL_DROP,
                                      .never_wait = true};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    // The pipe has 64 KB and the buffer 256 KB: the writer waits for somebody to read, for ever.
    check_int(record(r, 100000), 100000);
    check(crd_recorder_get_loss(r).lost > 0);
    close(ends[1]);
    close(ends[0]); // nobody will
    check_status(crd_recorder_finish(r), CRD_E_IO);
    check_contains(crd_error_text(*state), "of 100000 rows are not recorded");
    crd_recorder_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_has_all_rows_that_it_has_room_for),
        cmocka_unit_test(the_rest_goes_to_a_second_place),
        cmocka_unit_test(a_second_place_that_is_not_needed_is_left_clean),
        cmocka_unit_test(a_second_place_is_another_file_of_the_same_kind),
        cmocka_unit_test(a_run_goes_on_without_its_record),
        cmocka_unit_test(rows_are_thinned_out_and_counted),
        cmocka_unit_test(a_slow_disk_costs_rows_and_no_time),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
