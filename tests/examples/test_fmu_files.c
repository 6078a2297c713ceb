// The exported archives themselves: they unpack, build from their own sources folder alone, and
// export the functions of their standard and nothing else.
#include "check.h"
#include "fmi2_abi.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char* format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command);
}

static void unpack_and_build(int version, const char* name)
{
    const char* folder = TEST_BUILD_DIR "/fmus/test_sources";
    check_int(run("rm -rf %s && mkdir -p %s && cd %s && %s -E tar x %s/fmus/fmi%d/%s.fmu", folder,
                  folder, folder, TEST_CMAKE, TEST_BUILD_DIR, version, name),
              0);
    check_int(
        run("cd %s/sources && %s -std=c11 -shared -fPIC -w -o ../own.so *.c -lm", folder, TEST_CC),
        0);
    void* library = dlopen(TEST_BUILD_DIR "/fmus/test_sources/own.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) { fail_msg("%s", dlerror()); }
    char symbol[32];
    snprintf(symbol, sizeof symbol, "fmi%dGetVersion", version);
    const char* (*get_version)(void) = NULL;
    void* address = dlsym(library, symbol);
    check(address != NULL);
    memcpy(&get_version, &address, sizeof address);
    check_text(get_version(), version == 2 ? "2.0" : "3.0");
    dlclose(library);
}

static void archives_build_from_their_own_sources(void** state)
{
    for (int version = 2; version <= 3; version++) {
        unpack_and_build(version, "lo_fd1");
        unpack_and_build(version, "types");
        unpack_and_build(version, "bouncing_ball_me");
    }
}

static void shared_objects_export_fmi_functions_alone(void** state)
{
    for (int version = 2; version <= 3; version++) {
        char command[1024], line[512];
        snprintf(command, sizeof command,
                 "nm -D --defined-only $(ls %s/fmus/stage/types/fmi%d/binaries/*/types.so)",
                 TEST_BUILD_DIR, version);
        FILE* p = popen(command, "r");
        check(p != NULL);
        int count = 0;
        const char prefix[] = {'f', 'm', 'i', (char)('0' + version), 0};
        while (fgets(line, sizeof line, p)) {
            const char* symbol = strrchr(line, ' ');
            check(symbol != NULL);
            if (strncmp(symbol + 1, prefix, 4) != 0) { fail_msg("exported: %s", symbol + 1); }
            count++;
        }
        check_int(pclose(p), 0);
        check_int(count, version == 2 ? 44 : 75);
    }
}

/// Address of a function of the library, put where `to` points.
static void resolve(void* library, const char* name, void* to)
{
    void* address = dlsym(library, name);
    if (!address) { _exit(100); }
    memcpy(to, &address, sizeof address);
}

/// In a child: one step of the faulty FMU in the given mode.
static _Noreturn void fail_in_mode(const char* path, const char* token, int mode)
{
    fmi2Component (*instantiate)(const char*, fmi2Type, const char*, const char*,
                                 const fmi2CallbackFunctions*, fmi2Boolean, fmi2Boolean);
    fmi2Status (*set_integer)(fmi2Component, const uint32_t*, size_t, const int*);
    fmi2Status (*set_real)(fmi2Component, const uint32_t*, size_t, const double*);
    fmi2Status (*setup)(fmi2Component, fmi2Boolean, double, double, fmi2Boolean, double);
    fmi2Status (*enter)(fmi2Component);
    fmi2Status (*leave)(fmi2Component);
    fmi2Status (*step)(fmi2Component, double, double, fmi2Boolean);
    signal(SIGSEGV, SIG_DFL); // a sanitizer would tell its own story
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) { _exit(99); }
    resolve(library, "fmi2Instantiate", &instantiate);
    resolve(library, "fmi2SetInteger", &set_integer);
    resolve(library, "fmi2SetReal", &set_real);
    resolve(library, "fmi2SetupExperiment", &setup);
    resolve(library, "fmi2EnterInitializationMode", &enter);
    resolve(library, "fmi2ExitInitializationMode", &leave);
    resolve(library, "fmi2DoStep", &step);
    fmi2Component c = instantiate("unit", fmi2CoSimulation, token, NULL, NULL, 0, 0);
    const uint32_t when = 2, which = 3; // rows of the table
    const double now = 0;
    if (!c || set_integer(c, &which, 1, &mode) || set_real(c, &when, 1, &now) ||
        setup(c, 0, 0, 0, 0, 0) || enter(c) || leave(c)) {
        _exit(98);
    }
    _exit(step(c, 0, 0.01, 1));
}

static void faulty_fmu_really_crashes(void** state)
{
    char path[512], token[64] = "", line[1024];
    FILE* p = popen("ls " TEST_BUILD_DIR "/fmus/stage/faulty/fmi2/binaries/*/faulty.so", "r");
    check(p && fgets(path, sizeof path, p));
    path[strcspn(path, "\n")] = 0;
    check_int(pclose(p), 0);
    FILE* xml = fopen(TEST_BUILD_DIR "/fmus/stage/faulty/fmi2/modelDescription.xml", "r");
    check(xml != NULL);
    while (fgets(line, sizeof line, xml) && !token[0]) {
        const char* guid = strstr(line, "guid=\"");
        if (guid) { sscanf(guid, "guid=\"%63[^\"]", token); }
    }
    fclose(xml);
    const int modes[] = {0, 3, 7, 8};
    for (int i = 0; i < 4; i++) {
        fflush(NULL);
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) { fail_in_mode(path, token, modes[i]); }
        int status = 0;
        check_int(waitpid(child, &status, 0), child);
        if (modes[i] >= 7) {
            check(WIFSIGNALED(status));
            check_int(WTERMSIG(status), SIGSEGV);
        } else {
            check(WIFEXITED(status));
            check_int(WEXITSTATUS(status), modes[i] == 0 ? fmi2OK : fmi2Error);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_build_from_their_own_sources),
        cmocka_unit_test(shared_objects_export_fmi_functions_alone),
        cmocka_unit_test(faulty_fmu_really_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
