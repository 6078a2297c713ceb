#include "check.h"
#include "shared/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER TEST_BUILD_DIR "/base_file"

static const crdi_file_need small = {.what = "a small text", .most = 10};

static void write_file(const char* path, const char* bytes, size_t length)
{
    FILE* f = fopen(path, "wb");
    check(f != NULL);
    check_int(fwrite(bytes, 1, length, f), length);
    check_int(fclose(f), 0);
}

static int setup(void** state)
{
    mkdir(FOLDER, 0777);
    mkdir(FOLDER "/folder", 0777);
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static void refused(crd_context* ctx, const char* path, const crdi_file_need* need, crd_status want,
                    const char* message)
{
    crd_text t;
    crd_text_init(&t, ctx);
    check_status(crdi_file_read(ctx, path, need, &t), want);
    check_contains(crd_error_text(ctx), message);
    crd_text_clear(&t);
}

static void a_file_is_read_to_its_last_byte(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    write_file(FOLDER "/ten",
               "0123\0"
               "56789",
               10);
    check_ok(crdi_file_read(*state, FOLDER "/ten", &small, &t)); // as many as are allowed
    check_int(t.length, 10);
    check(memcmp(t.data,
                 "0123\0"
                 "56789",
                 11) == 0);                                      // and a zero behind them
    check_ok(crdi_file_read(*state, FOLDER "/ten", &small, &t)); // appended
    check_int(t.length, 20);
    crd_text_clear(&t);
    write_file(FOLDER "/empty", "", 0);
    check_ok(crdi_file_read(*state, FOLDER "/empty", &small, &t));
    check_text(t.data, "");
    crd_text_clear(&t);
}

static void large_files_and_streams_arrive_whole(void** state)
{
    enum { LENGTH = 300000 };
    char* bytes = malloc(LENGTH);
    for (int i = 0; i < LENGTH; i++) {
        bytes[i] = (char)(i % 251);
    }
    write_file(FOLDER "/large", bytes, LENGTH);
    const crdi_file_need need = {.what = "bytes", .most = LENGTH, .pipes = true};
    crd_text t;
    crd_text_init(&t, *state);
    check_ok(crdi_file_read(*state, FOLDER "/large", &need, &t));
    check_int(t.length, LENGTH);
    check(memcmp(t.data, bytes, LENGTH) == 0);
    crd_text_clear(&t);
    FILE* p = popen("cat " FOLDER "/large", "r"); // its size is not known before
    check(p != NULL);
    check_ok(crdi_file_read_from(*state, fileno(p), "standard input", &need, &t));
    check_int(t.length, LENGTH);
    check(memcmp(t.data, bytes, LENGTH) == 0);
    check_int(pclose(p), 0);
    crd_text_clear(&t);
    free(bytes);
}

static void what_cannot_be_read_is_told_in_one_wording(void** state)
{
    const crdi_file_need shown = {.what = "a small text", .most = 10, .shown = "in.ssp/a.ssd"};
    refused(*state, FOLDER "/none", &small, CRD_E_NOT_FOUND, FOLDER "/none: no such file");
    refused(*state, FOLDER "/none", &shown, CRD_E_NOT_FOUND, "in.ssp/a.ssd: no such file");
    refused(*state, FOLDER "/empty/none", &small, CRD_E_NOT_FOUND, ": no such file");
    refused(*state, FOLDER "/folder", &small, CRD_E_FORMAT,
            FOLDER "/folder: a folder, expected a small text");
    const crdi_file_need any = {.what = "a small text", .most = 10, .pipes = true};
    refused(*state, FOLDER "/folder", &any, CRD_E_FORMAT, "a folder, expected a small text");
    if (geteuid() != 0) {
        write_file(FOLDER "/secret", "x", 1);
        chmod(FOLDER "/secret", 0);
        refused(*state, FOLDER "/secret", &small, CRD_E_IO,
                "secret: cannot be read: Permission denied");
        unlink(FOLDER "/secret");
    }
}

static void what_is_too_large_is_refused_not_cut_off(void** state)
{
    const crdi_file_need bytes = {.what = "a table", .most = 9},
                         mega = {.what = "a description", .most = 4 << 20},
                         pipe = {.what = "a table", .most = 100000, .pipes = true};
    write_file(FOLDER "/ten", "0123456789", 10);
    refused(*state, FOLDER "/ten", &bytes, CRD_E_FORMAT,
            FOLDER "/ten: larger than 9 bytes, expected a table");
    write_file(FOLDER "/large", "", 0);
    check_int(truncate(FOLDER "/large", (4 << 20) + 1), 0);
    refused(*state, FOLDER "/large", &mega, CRD_E_FORMAT,
            "larger than 4 MiB, expected a description");
    refused(*state, "/dev/zero", &pipe, CRD_E_FORMAT, "larger than 100000 bytes, expected a table");
}

static void pipes_are_for_those_who_ask_for_them(void** state)
{
    unlink(FOLDER "/pipe");
    check_int(mkfifo(FOLDER "/pipe", 0600), 0); // nobody writes into it
    refused(*state, FOLDER "/pipe", &small, CRD_E_FORMAT,
            "not a regular file, expected a small text");
    refused(*state, "/dev/zero", &small, CRD_E_FORMAT, "/dev/zero: not a regular file");
}

static void a_text_ends_behind_a_zero_byte(void** state)
{
    const crdi_file_need text = {.what = "a text", .most = SIZE_MAX, .pipes = true, .text = true};
    crd_text t;
    crd_text_init(&t, *state);
    check_ok(crdi_file_read(*state, "/dev/zero", &text, &t));
    check(t.length > 0);
    crd_text_clear(&t);
}

static void heads_are_short_and_end_with_a_zero(void** state)
{
    char head[5];
    write_file(FOLDER "/ten", "0123456789", 10);
    check_int(crdi_file_head(FOLDER "/ten", head, sizeof head), 4);
    check_text(head, "0123");
    check_int(crdi_file_head(FOLDER "/none", head, sizeof head), 0);
    check_text(head, "");
    check_int(crdi_file_head("/dev/zero", head, sizeof head), 0);
    check_int(crdi_file_head(FOLDER, head, sizeof head), 0);
}

static void files_are_written_whole_or_not_at_all(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    unlink(FOLDER "/link");
    write_file(FOLDER "/new", "an older and longer text", 24);
    check_int(symlink("new", FOLDER "/link"), 0);
    crdi_text_add(&t, "text");
    check_ok(crdi_file_write(*state, FOLDER "/new", &t));
    check_ok(crdi_file_write(*state, FOLDER "/link", &t)); // what it leads to
    check_ok(crdi_file_write(*state, "/dev/null", &t));
    crd_text_clear(&t);
    check_ok(crdi_file_read(*state, FOLDER "/new", &small, &t));
    check_text(t.data, "text");
    check_status(crdi_file_write(*state, "/no/such/folder/x", &t), CRD_E_IO);
    check_contains(crd_error_text(*state), "/no/such/folder/x: cannot be written: No such file");
    check_status(crdi_file_write(*state, "/dev/full", &t), CRD_E_IO);
    check_status(crdi_file_write(*state, FOLDER "/folder", &t), CRD_E_IO);
    t.failed = true;
    check_status(crdi_file_write(*state, FOLDER "/new", &t), CRD_E_MEMORY);
    crd_text_clear(&t);
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    write_file(FOLDER "/ten", "0123456789", 10);
    for (int64_t n = 0;; n++) {
        crd_text t;
        crd_text_init(&t, ctx);
        a.fail_at = a.allocations + n;
        const crd_status st = crdi_file_read(ctx, FOLDER "/ten", &small, &t);
        a.fail_at = -1;
        crd_text_clear(&t);
        if (st == CRD_OK) {
            check(n > 0);
            break;
        }
        check_int(st, CRD_E_MEMORY);
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_to_its_last_byte),
        cmocka_unit_test(large_files_and_streams_arrive_whole),
        cmocka_unit_test(what_cannot_be_read_is_told_in_one_wording),
        cmocka_unit_test(what_is_too_large_is_refused_not_cut_off),
        cmocka_unit_test(pipes_are_for_those_who_ask_for_them),
        cmocka_unit_test(a_text_ends_behind_a_zero_byte),
        cmocka_unit_test(heads_are_short_and_end_with_a_zero),
        cmocka_unit_test(files_are_written_whole_or_not_at_all),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, check_tear_down);
}
