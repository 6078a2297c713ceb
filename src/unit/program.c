// Where our executables are, and how they begin.
#include "unit/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static bool find_beside(const char* file, const char* name, int mode, char out[PATH_MAX])
{
    static const char* const places[] = {"", "../libexec/cardan/", "../../libexec/cardan/", "../",
                                         "../../"};
    char real[PATH_MAX];
    if (!file || !realpath(file, real)) { return false; }
    char* slash = strrchr(real, '/');
    if (!slash) { return false; }
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(out, PATH_MAX, "%s/%s%s", real, places[i], name);
        if (n > 0 && n < PATH_MAX && access(out, mode) == 0) { return true; }
    }
    return false;
}

bool crdi_program_beside(const char* name, const char* variable, int mode, char out[PATH_MAX])
{
    const char* given = variable ? secure_getenv(variable) : NULL;
    static const char here = 0; // something of ours, wherever it was linked to
    Dl_info info;
    return (given && find_beside(given, name, mode, out)) ||
           (dladdr(&here, &info) && find_beside(info.dli_fname, name, mode, out)) ||
           find_beside("/proc/self/exe", name, mode, out) ||
           find_beside(CRDI_LIBEXEC "/cardan-worker", name, mode, out); // has the library inside
}

crd_status crdi_program_find(crd_context* ctx, const char* name, const char* variable,
                             const char* without, char out[PATH_MAX])
{
    const char* given = secure_getenv(variable);
    if (given && given[0]) {
        snprintf(out, PATH_MAX, "%s", given);
        if (access(out, X_OK) == 0) { return CRD_OK; }
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "%s is '%.200s', which cannot be executed: %s; "
                         "name another one, or %s",
                         variable, given, strerror(errno), without);
    }
    if (crdi_program_beside(name, NULL, X_OK, out)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_NOT_FOUND,
                     "the executable %s was not found beside the library or the command nor in "
                     "libexec/cardan; set %s to its path, or %s",
                     name, variable, without);
}

int crdi_program_memory(const char* name, size_t bytes, int* fd, void** out)
{
    struct rlimit files; // it counts as a file; only for a moment, as other threads write real ones
    const bool limited = getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != files.rlim_max;
    const struct rlimit most = {files.rlim_max, files.rlim_max};
    if (limited) { setrlimit(RLIMIT_FSIZE, &most); }
    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const bool made = *fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0;
    if (limited) { setrlimit(RLIMIT_FSIZE, &files); }
    // Who made it shorter would end the other with SIGBUS.
    if (!made || fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return errno;
    }
    void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
    if (p == MAP_FAILED) { return errno; }
    *out = p;
    return 0;
}

int crdi_program_spawn(const char* program, const char* name, const char* argument, int fd3,
                       int fd4, pid_t* pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    // Both may be where the other goes to: first out of the way.
    const int from[] = {fcntl(fd3, F_DUPFD_CLOEXEC, 10), fcntl(fd4, F_DUPFD_CLOEXEC, 10)};
    posix_spawn_file_actions_adddup2(&files, from[0], 3);
    if (fd4 >= 0) { posix_spawn_file_actions_adddup2(&files, from[1], 4); }
    posix_spawn_file_actions_addclosefrom_np(&files, fd4 >= 0 ? 5 : 4);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char* const arguments[] = {(char*)(uintptr_t)name, (char*)(uintptr_t)argument, NULL};
    const int error = posix_spawn(pid, program, &files, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 2; i++) {
        if (from[i] >= 0) { close(from[i]); }
    }
    return error;
}
