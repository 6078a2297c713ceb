#include "check.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "shared/archive.h"
#include "zip_maker.h"

static const crdi_archive_limits generous = {.max_unpacked = 1 << 30, .max_entries = 1000};

typedef struct fixture {
    check_allocator allocator;
    crd_context* ctx;
} fixture;

static int setup(void** state)
{
    fixture* fx = calloc(1, sizeof *fx);
    fx->ctx = check_context(&fx->allocator);
    *state = fx;
    return fx->ctx ? 0 : -1;
}

static int teardown(void** state)
{
    fixture* fx = *state;
    crd_context_destroy(fx->ctx);
    const int64_t live = fx->allocator.live;
    free(fx);
    return live == 0 ? 0 : -1;
}

static crd_status open_bytes(fixture* fx, zip_bytes z, const crdi_archive_limits* limits,
                             crdi_archive** out)
{
    return crdi_archive_open_memory(fx->ctx, z.data, z.length, "x.fmu", limits, out);
}

static void refused(fixture* fx, const zip_entry* entries, size_t count,
                    const crdi_archive_limits* limits, const char* part)
{
    zip_bytes z = zip_make(entries, count);
    crdi_archive* a = NULL;
    const crd_status st = open_bytes(fx, z, limits, &a);
    if (st == CRD_OK) { fail_msg("accepted, expected \"%s\"", part); }
    check_status(st, CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), part);
    free(z.data);
}

// ---- names -------------------------------------------------------------------------------------

static void names_are_cleaned(void** state)
{
    static const struct {
        const char *raw, *clean;
    } rows[] = {
        {"a.txt", "a.txt"},           {"./b.txt", "b.txt"},
        {"././c.txt", "c.txt"},       {"binaries\\linux64\\m.so", "binaries/linux64/m.so"},
        {"d//e/./f", "d/e/f"},        {"..x/y..", "..x/y.."},
        {"\xc3\xa4 b", "\xc3\xa4 b"}, {"folder/", "folder"},
        {"back\\", "back"},           {"./", ""},
    };
    fixture* fx = *state;
    zip_entry entries[16] = {{0}};
    const size_t n = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < n; i++) {
        entries[i] = (zip_entry){.name = rows[i].raw, .flags = 0x800}; // names in UTF-8
    }
    zip_bytes z = zip_make(entries, n);
    crdi_archive* a = NULL;
    check_ok(open_bytes(fx, z, &generous, &a));
    check_int(crdi_archive_count(a), n);
    for (int32_t i = 0; i < (int32_t)n; i++) {
        check_text(crdi_archive_at(a, i)->name, rows[i].clean);
        check_int(crdi_archive_at(a, i)->folder, i >= 7);
        check_int(crdi_archive_find(a, rows[i].clean), i);
    }
    check_int(crdi_archive_find(a, "nothing"), -1);
    crdi_archive_close(a);
    free(z.data);
}

static void names_that_leave_the_folder_are_refused(void** state)
{
    static const struct {
        const char *name, *part;
    } rows[] = {
        {"../../etc/passwd", "x.fmu: entry '../../etc/passwd' leaves the archive's folder"},
        {"a/../../b", "leaves the archive's folder"},
        {"a/..", "leaves the archive's folder"},
        {"..\\x", "leaves the archive's folder"},
        {"..", "leaves the archive's folder"},
        {"/etc/passwd", "entry '/etc/passwd' has an absolute name"},
        {"\\\\server\\share", "absolute name"},
        {"C:\\x", "drive letter"},
        {"c:x", "drive letter"},
        {"a\nb", "entry 'a?b' has a control character"},
        {"a/\x1b[2J", "control character"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const zip_entry e = {.name = rows[i].name, .data = "x"};
        refused(*state, &e, 1, &generous, rows[i].part);
    }
}

static void deep_and_long_names_are_refused(void** state)
{
    char deep[200] = "", wide[400] = "", endless[5000] = "";
    for (int i = 0; i < 32; i++) {
        strcat(deep, "d/");
    }
    strcat(deep, "x");
    memset(wide, 'w', 300);
    for (int i = 0; i < 4000; i++) {
        endless[i] = i % 200 ? 'e' : '/';
    }
    endless[0] = 'e';
    const zip_entry entries[] = {
        {.name = deep, .data = "x"}, {.name = wide, .data = "x"}, {.name = endless, .data = "x"}};
    refused(*state, &entries[0], 1, &generous, "more than 32 folders deep");
    refused(*state, &entries[1], 1, &generous, "a name that is too long");
    refused(*state, &entries[2], 1, &generous, "a name that is too long");
}

static void duplicates_that_differ_are_refused(void** state)
{
    const zip_entry same[] = {{.name = "a", .data = "1"}, {.name = "a", .data = "2"}};
    refused(*state, same, 2, &generous, "entry 'a' is there twice");
    const zip_entry cleaned[] = {{.name = "a/b", .data = "1"}, {.name = "./a\\b", .data = "2"}};
    refused(*state, cleaned, 2, &generous, "is there twice");
    const zip_entry mixed[] = {{.name = "a/"}, {.name = "a", .data = "2"}};
    refused(*state, mixed, 2, &generous, "is there twice");
    const zip_entry below[] = {{.name = "a/b/c", .data = "1"}, {.name = "a", .data = "2"}};
    refused(*state, below, 2, &generous, "'a/b/c' lies below another entry that is a file");
}

static void a_repeated_entry_is_unpacked_once(void** state)
{
    fixture* fx = *state;
    const zip_entry entries[] = {{.name = "a/"},
                                 {.name = "a/b", .data = "12"},
                                 {.name = "a/"},
                                 {.name = "a/b", .data = "12"}};
    const crdi_archive_limits two_bytes = {.max_unpacked = 2, .max_entries = 4};
    zip_bytes z = zip_make(entries, 4);
    crdi_archive* a = NULL;
    check_ok(open_bytes(fx, z, &two_bytes, &a));
    char folder[] = TEST_BUILD_DIR "/repeated-XXXXXX", path[300];
    check(mkdtemp(folder) != NULL);
    check_ok(crdi_archive_unpack(a, folder));
    snprintf(path, sizeof path, "%s/a/b", folder);
    check_int(unlink(path), 0);
    snprintf(path, sizeof path, "%s/a", folder);
    check_int(rmdir(path), 0);
    check_int(rmdir(folder), 0);
    crdi_archive_close(a);
    free(z.data);
}

// ---- kinds and sizes ---------------------------------------------------------------------------

static void links_devices_and_encryption_are_refused(void** state)
{
    const zip_entry link = {.name = "l", .data = "/etc/passwd", .mode = S_IFLNK | 0777};
    refused(*state, &link, 1, &generous, "entry 'l' is a link");
    const zip_entry fifo = {.name = "f", .mode = S_IFIFO | 0666};
    refused(*state, &fifo, 1, &generous, "is a device");
    const zip_entry secret = {.name = "s", .data = "xxxxxxxxxxxxx", .flags = 1};
    refused(*state, &secret, 1, &generous, "entry 's' is encrypted");
    const zip_entry exotic = {.name = "e", .data = "x", .method = 14}; // LZMA
    refused(*state, &exotic, 1, &generous, "compressed by a method other than deflate");
}

static void counts_and_sizes_are_bounded(void** state)
{
    const zip_entry three[] = {{.name = "a", .data = "12345678"},
                               {.name = "b", .data = "12345678"},
                               {.name = "c", .data = "12345678"}};
    const crdi_archive_limits two = {.max_unpacked = 1000, .max_entries = 2};
    refused(*state, three, 3, &two, "x.fmu: 3 entries, more than the limit of 2");
    const crdi_archive_limits small = {.max_unpacked = 23, .max_entries = 10};
    refused(*state, three, 3, &small, "more than the limit of 23 bytes (at entry 'c')");
    const zip_entry liar = {.name = "z", .data = "x", .method = 8, .size = 0xFFFFFFF0U};
    refused(*state, &liar, 1, &generous, "entry 'z' grows more than 1000 times");
}

// What libzip makes of `length` zeros.
static zip_bytes deflated_zeros(const char* path, size_t length, uint32_t* crc)
{
    char* zeros = calloc(1, length);
    *crc = zip_crc(zeros, length);
    unlink(path);
    zip_t* z = zip_open(path, ZIP_CREATE, NULL);
    zip_file_add(z, "z", zip_source_buffer(z, zeros, length, 0), 0);
    check_int(zip_close(z), 0);
    free(zeros);
    z = zip_open(path, ZIP_RDONLY, NULL);
    zip_stat_t s;
    check_int(zip_stat_index(z, 0, 0, &s), 0);
    zip_bytes out = {.data = malloc(s.comp_size), .length = s.comp_size};
    zip_file_t* f = zip_fopen_index(z, 0, ZIP_FL_COMPRESSED);
    check_int(zip_fread(f, out.data, out.length), out.length);
    zip_fclose(f);
    zip_discard(z);
    unlink(path);
    return out;
}

static void bombs_are_refused_whatever_they_declare(void** state)
{
    fixture* fx = *state;
    uint32_t crc = 0;
    zip_bytes bomb = deflated_zeros(TEST_BUILD_DIR "/bomb.zip", 20 << 20, &crc);
    zip_entry e = {.name = "z", .data = (char*)bomb.data, .method = 8, .crc = crc};
    e.packed = (uint32_t)bomb.length;
    e.size = 20 << 20;
    refused(fx, &e, 1, &generous, "which only a zip bomb does");

    e.size = 1000; // the lie is found while reading
    zip_bytes z = zip_make(&e, 1);
    crdi_archive* a = NULL;
    check_ok(open_bytes(fx, z, &generous, &a));
    char* text = NULL;
    size_t length = 0;
    check_status(crdi_archive_read(a, 0, 1 << 20, &text, &length), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "unpacks to more than the 1000 bytes it declares");
    check(text == NULL);
    crdi_archive_close(a);
    free(z.data);

    e.size = 2000000000; // more than there is, at a ratio that would pass
    e.packed = (uint32_t)bomb.length;
    bomb.data = realloc(bomb.data, 3000000);
    memset(bomb.data + bomb.length, 0, 3000000 - bomb.length);
    e.data = (char*)bomb.data;
    e.packed = 3000000;
    z = zip_make(&e, 1);
    const crdi_archive_limits large = {.max_unpacked = UINT64_MAX, .max_entries = 10};
    check_ok(open_bytes(fx, z, &large, &a));
    check_status(crdi_archive_begin(a, 0), CRD_OK);
    char block[4096];
    size_t got = 1;
    crd_status st = CRD_OK;
    while (st == CRD_OK && got > 0) {
        st = crdi_archive_pull(a, block, sizeof block, &got);
    }
    check_status(st, CRD_E_FORMAT);
    crdi_archive_close(a);
    free(z.data);
    free(bomb.data);
}

// ---- damaged files
// -------------------------------------------------------------------------------

static void what_is_not_a_zip_is_told_by_its_first_bytes(void** state)
{
    fixture* fx = *state;
    crdi_archive* a = NULL;
    const char* path = TEST_BUILD_DIR "/not_a_zip.fmu";
    FILE* f = fopen(path, "wb");
    fwrite("MZ\x90\0 and so on", 1, 14, f);
    fclose(f);
    check_status(crdi_archive_open(fx->ctx, path, &generous, &a), CRD_E_FORMAT);
    unlink(path);
    check_contains(crd_error_text(fx->ctx),
                   "not_a_zip.fmu: not a zip archive (starts with 'MZ..')");
    check_status(crdi_archive_open_memory(fx->ctx, "", 0, "x.fmu", &generous, &a), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "x.fmu: the file is empty");
    check_status(crdi_archive_open(fx->ctx, TEST_BUILD_DIR "/no_such.fmu", &generous, &a),
                 CRD_E_NOT_FOUND);
    const zip_entry e = {.name = "a", .data = "some text"};
    zip_bytes z = zip_make(&e, 1);
    z.length -= 30; // the directory is gone
    check_status(open_bytes(fx, z, &generous, &a), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "the file is cut off");
    free(z.data);
    check(a == NULL);
}

static void damaged_entries_are_named(void** state)
{
    fixture* fx = *state;
    const zip_entry e = {.name = "a", .data = "some text", .crc = 12345};
    zip_bytes z = zip_make(&e, 1);
    crdi_archive* a = NULL;
    char* text = NULL;
    size_t length = 0;
    check_ok(open_bytes(fx, z, &generous, &a));
    check_status(crdi_archive_read(a, 0, 100, &text, &length), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "x.fmu: entry 'a' is damaged: CRC error");
    check_status(crdi_archive_read(a, 0, 5, &text, &length), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "'a' has 9 bytes, more than the limit of 5");
    crdi_archive_close(a);
    free(z.data);
}

static void an_empty_archive_has_no_entries(void** state)
{
    fixture* fx = *state;
    zip_bytes z = zip_make(NULL, 0);
    crdi_archive* a = NULL;
    check_ok(open_bytes(fx, z, &generous, &a));
    check_int(crdi_archive_count(a), 0);
    crdi_archive_close(a);
    free(z.data);
}

// ---- unpacking
// -----------------------------------------------------------------------------------

static char* make_folder(char* out)
{
    strcpy(out, TEST_BUILD_DIR "/unpack-XXXXXX");
    if (!mkdtemp(out)) { fail_msg("mkdtemp failed"); }
    return out;
}

static int remove_one(const char* path, const struct stat* info, int kind, struct FTW* at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(const char* folder)
{
    check_int(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void check_file(const char* folder, const char* name, const char* content)
{
    char path[4096], text[100] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct stat info;
    check_int(stat(path, &info), 0);
    check_int(info.st_mode & 07777, 0600);
    FILE* f = fopen(path, "rb");
    check(f != NULL);
    check_int(fread(text, 1, sizeof text - 1, f), strlen(content));
    check_text(text, content);
    fclose(f);
}

static void everything_is_unpacked_with_plain_modes(void** state)
{
    fixture* fx = *state;
    const zip_entry entries[] = {
        {.name = "modelDescription.xml", .data = "<x/>", .mode = S_IFREG | 04777},
        {.name = "binaries/", .mode = S_IFDIR | 0777},
        {.name = "binaries\\linux64\\m.so", .data = "ELF"},
        {.name = "binaries/linux64/help.so", .data = "ELF2"},
        {.name = "resources/a/b/c.bin", .data = "c"},
        {.name = "resources/a/d.bin", .data = ""},
        {.name = "extra/"},
    };
    zip_bytes z = zip_make(entries, sizeof entries / sizeof *entries);
    crdi_archive* a = NULL;
    char folder[256];
    make_folder(folder);
    check_ok(open_bytes(fx, z, &generous, &a));
    check_ok(crdi_archive_unpack(a, folder));
    check_file(folder, "modelDescription.xml", "<x/>");
    check_file(folder, "binaries/linux64/m.so", "ELF");
    check_file(folder, "binaries/linux64/help.so", "ELF2");
    check_file(folder, "resources/a/b/c.bin", "c");
    check_file(folder, "resources/a/d.bin", "");
    char path[300];
    struct stat info;
    snprintf(path, sizeof path, "%s/extra", folder);
    check_int(stat(path, &info), 0);
    check_int(info.st_mode & 07777, 0700);
    check_status(crdi_archive_unpack(a, folder), CRD_E_IO); // nothing is overwritten
    check_contains(crd_error_text(fx->ctx), "File exists");
    crdi_archive_close(a);
    remove_folder(folder);
    free(z.data);
}

static void a_full_disk_is_told_with_the_path(void** state)
{
    fixture* fx = *state;
    char* data = malloc(100001);
    memset(data, 'x', 100000);
    data[100000] = 0;
    const zip_entry e = {.name = "resources/large.bin", .data = data};
    zip_bytes z = zip_make(&e, 1);
    crdi_archive* a = NULL;
    char folder[256];
    make_folder(folder);
    check_ok(open_bytes(fx, z, &generous, &a));
    // A limit on the size of files fails a write in the middle, as a full disk does.
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = 70000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    const crd_status st = crdi_archive_unpack(a, folder);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    check_status(st, CRD_E_IO);
    check_contains(crd_error_text(fx->ctx), "x.fmu: cannot write '");
    check_contains(crd_error_text(fx->ctx), "/resources/large.bin': File too large");
    check_status(crdi_archive_unpack(a, "/nonexistent/folder"), CRD_E_IO);
    check_contains(crd_error_text(fx->ctx), "cannot write '/nonexistent/folder/");
    crdi_archive_close(a);
    remove_folder(folder);
    free(z.data);
    free(data);
}

static void every_allocation_may_fail(void** state)
{
    const zip_entry entries[] = {{.name = "a/b", .data = "1"}, {.name = "c", .data = "2"}};
    zip_bytes z = zip_make(entries, 2);
    for (int64_t fail_at = 1;; fail_at++) {
        check_allocator al;
        crd_context* ctx = check_context(&al);
        al.fail_at = fail_at;
        crdi_archive* a = NULL;
        char* text = NULL;
        size_t length = 0;
        crd_status st = crdi_archive_open_memory(ctx, z.data, z.length, "x.fmu", &generous, &a);
        if (st == CRD_OK) { st = crdi_archive_read(a, 0, 100, &text, &length); }
        if (st == CRD_OK) { crd_free(ctx, text); }
        crdi_archive_close(a);
        crd_context_destroy(ctx);
        check_int(al.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 4);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
    free(z.data);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_cleaned),
        TEST(names_that_leave_the_folder_are_refused),
        TEST(deep_and_long_names_are_refused),
        TEST(duplicates_that_differ_are_refused),
        TEST(a_repeated_entry_is_unpacked_once),
        TEST(links_devices_and_encryption_are_refused),
        TEST(counts_and_sizes_are_bounded),
        TEST(bombs_are_refused_whatever_they_declare),
        TEST(what_is_not_a_zip_is_told_by_its_first_bytes),
        TEST(damaged_entries_are_named),
        TEST(an_empty_archive_has_no_entries),
        TEST(everything_is_unpacked_with_plain_modes),
        TEST(a_full_disk_is_told_with_the_path),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
