// Archives that we write: what is inside comes back, equal content gives equal bytes, and nobody
// ever sees half of one.
#include "check.h"
#include "shared/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#define FOLDER TEST_BUILD_DIR "/test_archive_write"
#define ARCHIVE FOLDER "/a.zip"
#define INPUT FOLDER "/input.bin"

static const crdi_archive_limits limits = {.max_unpacked = 1 << 24, .max_entries = 1000};

static int set_up(void** state)
{
    (void)crdi_scratch_remove(FOLDER);
    mkdir(FOLDER, 0777);
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static void put_file(const char* path, const void* bytes, size_t length)
{
    FILE* f = fopen(path, "wb");
    check(f != NULL);
    check_int(fwrite(bytes, 1, length, f), length);
    fclose(f);
}

static size_t get_file(const char* path, char* out, size_t room)
{
    FILE* f = fopen(path, "rb");
    check(f != NULL);
    const size_t n = fread(out, 1, room, f);
    fclose(f);
    return n;
}

static int files_in_folder(void)
{
    int n = 0;
    DIR* dir = opendir(FOLDER);
    for (struct dirent* e = readdir(dir); e; e = readdir(dir)) {
        n += e->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

static void check_entry(crd_context* ctx, crdi_archive* a, const char* name, const void* bytes,
                        size_t length)
{
    const int32_t index = crdi_archive_find(a, name);
    if (index < 0) { fail_msg("no entry '%s'", name); }
    char* data = NULL;
    size_t n = 0;
    check_ok(crdi_archive_read(a, index, 1 << 24, &data, &n));
    check_int(n, length);
    check(memcmp(data, bytes, length) == 0);
    crd_free(ctx, data);
}

static void what_was_added_is_read_back(void** state)
{
    crd_context* ctx = *state;
    enum { LARGE = 300000 };
    char* large = calloc(1, LARGE); // compresses well
    char noise[5000];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        x = x * 1664525u + 1013904223u;
        noise[i] = (char)(x >> 24);
    }
    put_file(INPUT, noise, sizeof noise);
    crdi_archive_writer* w = NULL;
    check_ok(crdi_archive_create(ctx, ARCHIVE, &w));
    char passing[] = "text";
    check_ok(crdi_archive_add(w, "SystemStructure.ssd", passing, 4));
    memset(passing, 'x', 4); // the bytes were copied
    check_ok(crdi_archive_add(w, "empty", NULL, 0));
    check_ok(crdi_archive_add(w, "resources/\xc3\xa4 \xe2\x82\xac.txt", large, LARGE));
    check_ok(crdi_archive_add_file(w, "resources/noise.bin", INPUT));
    check_status(crdi_archive_add(w, "empty", "x", 1), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "'empty'");
    check(access(ARCHIVE, F_OK) != 0); // not before it is finished
    check_ok(crdi_archive_finish(w));
    crdi_archive_discard(w);

    crdi_archive* a = NULL;
    check_ok(crdi_archive_open(ctx, ARCHIVE, &limits, &a));
    check_int(crdi_archive_count(a), 4);
    check_entry(ctx, a, "SystemStructure.ssd", "text", 4);
    check_entry(ctx, a, "empty", "", 0);
    check_entry(ctx, a, "resources/\xc3\xa4 \xe2\x82\xac.txt", large, LARGE);
    check_entry(ctx, a, "resources/noise.bin", noise, sizeof noise);
    crdi_archive_close(a);
    struct stat s;
    check(stat(ARCHIVE, &s) == 0);
    check(s.st_size < 10000); // deflated
    check_int(files_in_folder(), 2);
    free(large);
}

static void write_pair(crd_context* ctx, const char* path)
{
    crdi_archive_writer* w = NULL;
    check_ok(crdi_archive_create(ctx, path, &w));
    check_ok(crdi_archive_add(w, "a", "some text", 9));
    check_ok(crdi_archive_add_file(w, "b", INPUT));
    check_ok(crdi_archive_finish(w));
    crdi_archive_discard(w);
}

static void equal_content_gives_equal_bytes(void** state)
{
    char first[4000], second[4000];
    put_file(INPUT, "content", 7);
    write_pair(*state, ARCHIVE);
    // another date, other rights
    check(utime(INPUT, &(struct utimbuf){100000000, 100000000}) == 0);
    check(chmod(INPUT, 0700) == 0);
    write_pair(*state, FOLDER "/b.zip");
    const size_t n = get_file(ARCHIVE, first, sizeof first);
    check_int(get_file(FOLDER "/b.zip", second, sizeof second), n);
    check(n > 100 && n < sizeof first);
    check(memcmp(first, second, n) == 0);
}

static void a_failure_leaves_the_old_archive_as_it_was(void** state)
{
    crd_context* ctx = *state;
    put_file(ARCHIVE, "old", 3);
    crdi_archive_writer* w = NULL;
    check_ok(crdi_archive_create(ctx, ARCHIVE, &w));
    check_ok(crdi_archive_add(w, "a", "x", 1));
    const crd_status st = crdi_archive_add_file(w, "b", FOLDER "/gone");
    if (st == CRD_OK) {
        check_status(crdi_archive_finish(w), CRD_E_IO);
    } else {
        check_status(st, CRD_E_IO);
    }
    check_contains(crd_error_text(ctx), "a.zip");
    check_contains(crd_error_text(ctx), "No such file");
    crdi_archive_discard(w);
    char text[10] = "";
    check_int(get_file(ARCHIVE, text, sizeof text), 3);
    check(memcmp(text, "old", 3) == 0);
    check_int(files_in_folder(), 1); // and nothing beside it

    check_ok(crdi_archive_create(ctx, ARCHIVE, &w)); // given up in the middle
    check_ok(crdi_archive_add(w, "a", "x", 1));
    crdi_archive_discard(w);
    check_int(get_file(ARCHIVE, text, sizeof text), 3);
    check_int(files_in_folder(), 1);

    check_ok(crdi_archive_create(ctx, ARCHIVE, &w)); // and replaced when all is well
    check_ok(crdi_archive_add(w, "a", "x", 1));
    check_ok(crdi_archive_finish(w));
    crdi_archive_discard(w);
    crdi_archive* a = NULL;
    check_ok(crdi_archive_open(ctx, ARCHIVE, &limits, &a));
    check_entry(ctx, a, "a", "x", 1);
    crdi_archive_close(a);
}

static void a_place_that_cannot_be_written_is_said(void** state)
{
    crd_context* ctx = *state;
    crdi_archive_writer* w = NULL;
    crd_status st = crdi_archive_create(ctx, FOLDER "/no/a.zip", &w);
    if (st == CRD_OK) {
        check_ok(crdi_archive_add(w, "a", "x", 1));
        st = crdi_archive_finish(w);
    }
    check_status(st, CRD_E_IO);
    check_contains(crd_error_text(ctx), "no/a.zip: cannot be written");
    crdi_archive_discard(w);
    w = NULL;
    check(crdi_archive_create(ctx, FOLDER, &w) < 0); // a folder
    check(w == NULL);
    crdi_archive_discard(NULL);
}

static void every_allocation_may_fail(void** state)
{
    put_file(INPUT, "content", 7);
    int failures = 0;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crdi_archive_writer* w = NULL;
        crd_status st = crdi_archive_create(ctx, ARCHIVE, &w);
        if (st == CRD_OK) { st = crdi_archive_add(w, "a", "x", 1); }
        if (st == CRD_OK) { st = crdi_archive_add_file(w, "b", INPUT); }
        if (st == CRD_OK) { st = crdi_archive_finish(w); }
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            failures++;
        }
        crdi_archive_discard(w);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check(access(ARCHIVE, F_OK) != 0);
    }
    check(failures >= 3);
}

// Deeper than any path can be, without rights, with ways out of it and with names like those that
// the remover gives.
static void a_folder_is_removed_whatever_is_in_it(void** state)
{
    (void)state;
    char name[201];
    memset(name, 'x', 200);
    name[200] = 0;
    put_file(INPUT, "kept", 4);
    check_int(mkdir(FOLDER "/all", 0700), 0);
    check_int(mkdir(FOLDER "/all/0", 0700), 0);
    check_int(mkdir(FOLDER "/all/0/1", 0700), 0);
    check_int(mkdir(FOLDER "/all/0/1/2", 0), 0);
    put_file(FOLDER "/all/1", "x", 1);
    check_int(symlink("..", FOLDER "/all/up"), 0);
    check_int(symlink("../..", FOLDER "/all/0/up"), 0);
    int fd = open(FOLDER "/all", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 200; i++) {
        check_int(mkdirat(fd, name, 0700), 0);
        check_int(symlinkat(INPUT, fd, "file"), 0);
        const int next = openat(fd, name, O_RDONLY | O_DIRECTORY);
        check(next >= 0);
        close(fd);
        fd = next;
    }
    check_int(fchmod(fd, 0), 0);
    close(fd);
    check(crdi_scratch_remove(FOLDER "/all"));
    check(access(FOLDER "/all", F_OK) != 0);
    check(access(INPUT, R_OK) == 0);
    check(crdi_scratch_remove(FOLDER "/all")); // is not there
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, check_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_added_is_read_back),
        TEST(equal_content_gives_equal_bytes),
        TEST(a_failure_leaves_the_old_archive_as_it_was),
        TEST(a_place_that_cannot_be_written_is_said),
        TEST(every_allocation_may_fail),
        TEST(a_folder_is_removed_whatever_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
