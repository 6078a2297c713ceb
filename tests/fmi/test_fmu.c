#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cardan/fmi.h"
#include "zip_maker.h"

#define DESCRIPTION                                                                                \
    "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='{1}'>\n"                            \
    "<CoSimulation modelIdentifier='m'/>\n<ModelVariables>\n"                                      \
    "<ScalarVariable name='x' valueReference='1'><Real/></ScalarVariable>\n"                       \
    "</ModelVariables></fmiModelDescription>\n"

static const zip_entry whole[] = {
    {.name = "modelDescription.xml", .data = DESCRIPTION},
    {.name = "binaries/win64/m.dll", .data = "MZ"},
    {.name = "binaries/linux64/m.so", .data = "ELF"},
    {.name = "binaries/linux64/other.so", .data = "ELF"},
    {.name = "binaries/darwin64/readme.txt", .data = "none yet"},
    {.name = "binaries/x86_64-linux/deep/m.so", .data = "not here"},
    {.name = "resources/table.csv", .data = "1;2"},
    {.name = "extra/org.fmi-standard.fmi-ls-bus/fmi-ls-manifest.xml", .data = "<m/>"},
    {.name = "extra/com.tool/notes.xml", .data = "<n/>"},
};
enum { WHOLE = sizeof whole / sizeof *whole };

typedef struct fixture {
    check_allocator allocator;
    crd_context* ctx;
    char folder[256]; // private directories go here
    crd_fmu_options opt;
} fixture;

static int setup(void** state)
{
    fixture* fx = calloc(1, sizeof *fx);
    fx->ctx = check_context(&fx->allocator);
    strcpy(fx->folder, TEST_BUILD_DIR "/fmu-XXXXXX");
    fx->opt = crd_fmu_defaults();
    fx->opt.unpack_to = mkdtemp(fx->folder);
    *state = fx;
    return fx->ctx && fx->opt.unpack_to ? 0 : -1;
}

static int entries_of(const char* folder)
{
    int n = 0;
    DIR* dir = opendir(folder);
    for (struct dirent* e = readdir(dir); e; e = readdir(dir)) {
        n += e->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

static int teardown(void** state)
{
    fixture* fx = *state;
    crd_context_destroy(fx->ctx);
    const bool clean = fx->allocator.live == 0 && entries_of(fx->folder) == 0;
    rmdir(fx->folder);
    free(fx);
    return clean ? 0 : -1;
}

// A path of our own for the archive, outside of the folder for private directories.
static const char* archive_path(const fixture* fx)
{
    static char path[300];
    snprintf(path, sizeof path, "%s.fmu", fx->folder);
    return path;
}

static crd_status open_entries(fixture* fx, const zip_entry* entries, size_t count, crd_fmu** out)
{
    const char* path = archive_path(fx);
    zip_write(path, entries, count);
    const crd_status st = crd_fmu_open(fx->ctx, path, &fx->opt, out);
    unlink(path);
    return st;
}

static bool exists(const char* folder, const char* name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

static void an_archive_is_unpacked_into_a_private_directory(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    const char* folder = crd_fmu_folder(f);
    check_int(folder[0], '/');
    check_contains(folder, fx->folder);
    struct stat info;
    check_int(stat(folder, &info), 0);
    check_int(info.st_mode & 07777, 0700);
    check(exists(folder, "binaries/linux64/m.so") && exists(folder, "resources/table.csv"));
    check_text(crd_fmu_platforms(f), "linux64 win64");
    check_text(crd_fmu_path(f), archive_path(fx));
    check_text(crd_fmu_describe(f)->model_identifier, "m");
    check_int(crd_fmu_describe(f)->layered_standard_count, 1);
    check_text(crd_fmu_describe(f)->layered_standards[0], "org.fmi-standard.fmi-ls-bus");
    check_int(crd_fmu_find(f, "x"), 0);
    check_int(entries_of(fx->folder), 1);

    // the same from the unpacked folder
    crd_fmu* g = NULL;
    check_ok(crd_fmu_open(fx->ctx, folder, &fx->opt, &g));
    check_text(crd_fmu_folder(g), folder);
    check_text(crd_fmu_platforms(g), "linux64 win64");
    check_int(crd_fmu_describe(g)->layered_standard_count, 1);
    crd_fmu_close(g);
    check(exists(folder, "modelDescription.xml")); // a folder of the user's stays

    // files that the FMU left, a link out of the folder among them
    char path[512];
    snprintf(path, sizeof path, "%s/resources/link", folder);
    check_int(symlink("/etc", path), 0);
    crd_fmu_close(f);
    check_int(entries_of(fx->folder), 0);
    check(access("/etc/passwd", F_OK) == 0);
}

static void description_only_unpacks_nothing(void** state)
{
    fixture* fx = *state;
    fx->opt.description_only = true;
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    check_text(crd_fmu_folder(f), "");
    check_text(crd_fmu_platforms(f), "linux64 win64");
    check_int(entries_of(fx->folder), 0);
    crd_fmu_close(f);
}

static void a_bare_description_is_enough_to_describe(void** state)
{
    fixture* fx = *state;
    char path[300];
    snprintf(path, sizeof path, "%s.xml", fx->folder);
    FILE* file = fopen(path, "w");
    fputs(DESCRIPTION, file);
    fclose(file);
    crd_fmu* f = NULL;
    check_status(crd_fmu_open(fx->ctx, path, &fx->opt, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "not a zip archive (starts with '<fmi')");
    fx->opt.description_only = true;
    check_ok(crd_fmu_open(fx->ctx, path, &fx->opt, &f));
    check_int(crd_fmu_describe(f)->variable_count, 1);
    check_text(crd_fmu_folder(f), "");
    crd_fmu_close(f);
    unlink(path);
}

static void a_child_process_does_not_remove_the_folder(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    const pid_t child = fork();
    if (child == 0) {
        crd_fmu_close(f);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    check(exists(crd_fmu_folder(f), "modelDescription.xml"));
    crd_fmu_close(f);
}

// A process that ends without closing, as if killed. Its folder's name is left in `folder`.
static void leave_a_folder(fixture* fx, char folder[512])
{
    int tube[2];
    check_int(pipe(tube), 0);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        crd_fmu* f = NULL;
        const crd_status st = open_entries(fx, whole, WHOLE, &f);
        const char* name = st == CRD_OK ? crd_fmu_folder(f) : "";
        _exit(write(tube[1], name, strlen(name)) > 0 ? 0 : 1);
    }
    close(tube[1]);
    const ssize_t n = read(tube[0], folder, 511);
    close(tube[0]);
    check(n > 0);
    folder[n] = 0;
    check_int(waitpid(child, NULL, 0), child);
    check_int(entries_of(fx->folder), 1);
}

static void folders_of_killed_processes_go_when_the_next_fmu_is_opened(void** state)
{
    fixture* fx = *state;
    char left[512], foreign[512], link[512];
    leave_a_folder(fx, left);
    // of another container, a link in place of a folder, and something else of the user's
    snprintf(foreign, sizeof foreign, "%s/cardan-1-2-3-abcdef", fx->folder);
    check_int(mkdir(foreign, 0700), 0);
    snprintf(link, sizeof link, "%s", left);
    memcpy(link + strlen(link) - 6, "a-link", 6);
    check_int(symlink("/etc", link), 0);
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    check(access(left, F_OK) != 0);
    check(access(foreign, F_OK) == 0);
    check(access(link, F_OK) == 0 && access("/etc/passwd", F_OK) == 0);
    check(access(crd_fmu_folder(f), F_OK) == 0);
    // the living are left alone
    crd_fmu* g = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &g));
    check(access(crd_fmu_folder(f), F_OK) == 0);
    crd_fmu_close(f);
    crd_fmu_close(g);
    check_int(rmdir(foreign), 0);
    check_int(unlink(link), 0);
}

// An emulator (qemu-user) tells its processes that they began a tick beside what others see.
static void a_process_that_is_told_another_start_keeps_its_folder(void** state)
{
    fixture* fx = *state;
    struct stat space;
    check_int(stat("/proc/self/ns/pid", &space), 0);
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    char path[64];
    unsigned long long start = 0; // field 22
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    FILE* stat_file = fopen(path, "r");
    check(stat_file &&
          fscanf(stat_file,
                 "%*d (%*[^)]) %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                 "%*s %*s %*s %*s %*s %llu",
                 &start) == 1);
    check_int(fclose(stat_file), 0);
    char near[512], far[512];
    const unsigned long long id = (unsigned long long)space.st_ino;
    snprintf(near, sizeof near, "%s/cardan-%d-%llu-%llu-nearby", fx->folder, (int)child, start + 1,
             id);
    snprintf(far, sizeof far, "%s/cardan-%d-%llu-%llu-before", fx->folder, (int)child,
             start > 360000 ? start - 360000 : 1, id);
    check_int(mkdir(near, 0700), 0);
    check_int(mkdir(far, 0700), 0);
    crd_fmu* g = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &g));
    check(access(near, F_OK) == 0);
    check(access(far, F_OK) != 0);
    check_int(kill(child, SIGKILL), 0);
    check_int(waitpid(child, NULL, 0), child);
    crd_fmu_close(f);
    crd_fmu_close(g);
    check_int(rmdir(near), 0);
}

static void what_cannot_run_here_is_known_without_running_it(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    check_ok(crd_fmu_check_runnable(f, fx->ctx));
    crd_fmu_close(f);

    check_ok(open_entries(fx, whole, 2, &f)); // without the library for Linux
    check_status(crd_fmu_check_runnable(f, fx->ctx), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(fx->ctx), "no binaries/linux64/m.so for this platform; the FMU "
                                            "has binaries for: win64");
    crd_fmu_close(f);

    check_ok(open_entries(fx, whole, 1, &f));
    check_status(crd_fmu_check_runnable(f, fx->ctx), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(fx->ctx), "the FMU has no binaries");
    crd_fmu_close(f);

    fx->opt.description_only = true;
    check_ok(open_entries(fx, whole, WHOLE, &f));
    check_status(crd_fmu_check_runnable(f, fx->ctx), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(fx->ctx), "only the description was opened");
    crd_fmu_close(f);
}

static void the_only_library_of_a_platform_is_taken_whatever_its_name(void** state)
{
    fixture* fx = *state;
    const zip_entry entries[] = {
        {.name = "modelDescription.xml", .data = DESCRIPTION},
        {.name = "binaries/x86_64-linux/renamed.so", .data = "ELF"}, // the other version's folder
        {.name = "binaries/x86_64-linux/deep/m.so", .data = "ELF"},
        {.name = "binaries/x86_64-linux/readme.so.txt", .data = "text"},
        {.name = "binaries/x86_64-linux/second.so", .data = "ELF"},
    };
    crd_fmu* f = NULL;
    for (int again = 0; again < 2; again++) {
        check_ok(open_entries(fx, entries, 4, &f));
        crd_fmu* g = NULL; // and unpacked
        check_ok(crd_fmu_open(fx->ctx, crd_fmu_folder(f), NULL, &g));
        check_ok(crd_fmu_check_runnable(f, fx->ctx));
        check_ok(crd_fmu_check_runnable(g, fx->ctx));
        crd_fmu_close(g);
        crd_fmu_close(f);
    }
    check_ok(open_entries(fx, entries, 5, &f)); // which of two?
    check_status(crd_fmu_check_runnable(f, fx->ctx), CRD_E_UNSUPPORTED);
    crd_fmu_close(f);
}

static void what_is_not_there_is_not_found(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    check_status(crd_fmu_open(fx->ctx, "/no/such.fmu", NULL, &f), CRD_E_NOT_FOUND);
    check_text(crd_error_text(fx->ctx), "/no/such.fmu: no such file");
    check_status(crd_fmu_open(fx->ctx, "/dev/null", NULL, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "neither a file nor a folder");
    check_status(crd_fmu_open(fx->ctx, fx->folder, NULL, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "no modelDescription.xml in this folder");
    fx->opt.unpack_to = "/no/such/folder";
    check_status(open_entries(fx, whole, WHOLE, &f), CRD_E_IO);
    check_contains(crd_error_text(fx->ctx), "cannot make a folder to unpack into below '/no/such");
    check(f == NULL);
}

static void archives_without_description_are_refused(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    check_status(open_entries(fx, whole + 1, WHOLE - 1, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), ".fmu: no modelDescription.xml in this archive");
    const zip_entry deeper = {.name = "m/modelDescription.xml", .data = DESCRIPTION};
    check_status(open_entries(fx, &deeper, 1, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "but at 'm/modelDescription.xml'");
    const zip_entry folder = {.name = "modelDescription.xml/"};
    check_status(open_entries(fx, &folder, 1, &f), CRD_E_FORMAT);
}

static void failures_name_the_file_in_the_archive_and_leave_nothing(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    const zip_entry bad = {.name = "modelDescription.xml", .data = "<a>\n\n</b>"};
    check_status(open_entries(fx, &bad, 1, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), ".fmu/modelDescription.xml:");
    const zip_entry slip[] = {whole[0], {.name = "../../x", .data = "x"}};
    check_status(open_entries(fx, slip, 2, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "entry '../../x' leaves the archive's folder");
    const zip_entry damaged[] = {whole[0], {.name = "resources/x", .data = "x", .crc = 7}};
    check_status(open_entries(fx, damaged, 2, &f), CRD_E_FORMAT); // half unpacked
    check_contains(crd_error_text(fx->ctx), "entry 'resources/x' is damaged");
    check_int(entries_of(fx->folder), 0);
    fx->opt.max_unpacked = 100;
    check_status(open_entries(fx, whole, WHOLE, &f), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "more than the limit of 100 bytes");
    check(f == NULL);
}

static void the_private_directory_is_made_below_tmpdir(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = NULL;
    fx->opt.unpack_to = NULL;
    setenv("TMPDIR", fx->folder, 1);
    check_ok(open_entries(fx, whole, WHOLE, &f));
    unsetenv("TMPDIR");
    check_contains(crd_fmu_folder(f), fx->folder);
    crd_fmu_close(f);
}

static void every_allocation_may_fail(void** state)
{
    fixture* fx = *state;
    const char* path = archive_path(fx);
    zip_write(path, whole, WHOLE);
    int64_t failures = 0;
    for (int64_t fail_at = 1;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = fail_at;
        crd_fmu* f = NULL;
        const crd_status st = crd_fmu_open(ctx, path, &fx->opt, &f);
        crd_fmu_close(f);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        check_int(entries_of(fx->folder), 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        failures++;
    }
    check(failures > 8);
    unlink(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_archive_is_unpacked_into_a_private_directory),
        TEST(description_only_unpacks_nothing),
        TEST(a_bare_description_is_enough_to_describe),
        TEST(a_child_process_does_not_remove_the_folder),
        TEST(folders_of_killed_processes_go_when_the_next_fmu_is_opened),
        TEST(a_process_that_is_told_another_start_keeps_its_folder),
        TEST(what_cannot_run_here_is_known_without_running_it),
        TEST(what_is_not_there_is_not_found),
        TEST(the_only_library_of_a_platform_is_taken_whatever_its_name),
        TEST(archives_without_description_are_refused),
        TEST(failures_name_the_file_in_the_archive_and_leave_nothing),
        TEST(the_private_directory_is_made_below_tmpdir),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
