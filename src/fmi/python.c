// Which libpython, by asking python3.
#include "fmi/python.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 16, ANSWER_MS = 20000, OLDEST = 7, NEWEST = 20 };

const char crdi_python_advice[] =
    "its code is Python, and no libpython was found: install that of your python3 (Debian and "
    "Ubuntu: apt install libpython3-dev), or say in $CARDAN_LIBPYTHON where it is";

static const char symbol[] = "_Py_NoneStruct"; // whoever returns None

bool crdi_python_needed(const char* file)
{
    struct stat s;
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) { return false; }
    const bool there = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0;
    void* bytes = there ? mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED) { return false; }
    const bool found = memmem(bytes, (size_t)s.st_size, symbol, sizeof symbol) != NULL;
    munmap(bytes, (size_t)s.st_size);
    return found;
}

bool crdi_python_missing(const char* why)
{
    return why && (strstr(why, "undefined symbol: Py") || strstr(why, "undefined symbol: _Py"));
}

// ---- asking ------------------------------------------------------------------------------------

// Isolated (-I), so that no file of the working folder takes part. Where the library lies and what
// it is called; packages of a virtual environment, which an interpreter inside of another program
// does not find; then all folders that are read.
static const char question[] =
    "import sys, sysconfig, site\n"
    "v = sysconfig.get_config_var\n"
    "name = 'libpython%d.%d.so.1.0' % sys.version_info[:2]\n"
    "own = v('INSTSONAME') or ''\n"
    "print(v('LIBDIR') or '')\n"
    "print(own if '.so' in own else name)\n"
    "virtual = sys.prefix != sys.base_prefix\n"
    "print(':'.join(p for p in sys.path if virtual and p.startswith(sys.prefix)))\n"
    "for p in [sys.prefix, sys.base_prefix, site.getusersitepackages()] + sys.path: print(p)\n";

// What the program answers, at most ANSWER_BYTES - 1 bytes and a zero. false: nothing.
static bool read_answer(int fd, char* answer)
{
    size_t length = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (length < ANSWER_BYTES - 1 && poll(&p, 1, ANSWER_MS) > 0) {
        const ssize_t n = read(fd, answer + length, ANSWER_BYTES - 1 - length);
        if (n <= 0) { break; }
        length += (size_t)n;
    }
    answer[length] = 0;
    return length > 0;
}

static bool ask_python(const char* program, char* answer)
{
    int ends[2];
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    const char* const words[] = {program, "-I", "-c", question, NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) { return false; }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const bool runs =
        posix_spawnp(&child, program, &actions, NULL, (char* const*)words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    const bool said = runs && read_answer(ends[0], answer);
    close(ends[0]);
    if (runs) {
        (void)kill(child, SIGKILL); // if it goes on for ever
        (void)waitpid(child, NULL, 0);
    }
    return said;
}

// ---- finding -----------------------------------------------------------------------------------

static void allow_reading(char* folders)
{
    const char* before = getenv("CARDAN_READABLE");
    char all[ANSWER_BYTES];
    size_t length = (size_t)snprintf(all, sizeof all, "%s", before ? before : "");
    char* rest = NULL;
    for (char* p = strtok_r(folders, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
        if (p[0] != '/' || strchr(p, ':') || length + strlen(p) + 2 > sizeof all) { continue; }
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", length ? ":" : "", p);
    }
    (void)setenv("CARDAN_READABLE", all, 1);
}

// Can it be loaded? Then its real place, as the sandbox wants it.
static bool try_library(const char* name, char path[PATH_MAX])
{
    void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) { return false; }
    Dl_info info;
    const void* none = dlsym(handle, symbol);
    const bool found = none && dladdr(none, &info) != 0 && realpath(info.dli_fname, path);
    dlclose(handle);
    return found;
}

static bool find_by_python(const char* program, char path[PATH_MAX])
{
    char answer[ANSWER_BYTES], name[PATH_MAX];
    char* lines[4] = {answer};
    if (!ask_python(program, answer)) { return false; }
    for (int i = 1; i < 4; i++) {
        char* end = strchr(lines[i - 1], '\n');
        if (!end) { return false; }
        *end = 0;
        lines[i] = end + 1;
    }
    if (((size_t)snprintf(name, sizeof name, "%s/%s", lines[0], lines[1]) >= sizeof name ||
         !try_library(name, path)) &&
        !try_library(lines[1], path)) {
        return false;
    }
    if (lines[2][0]) { (void)setenv("PYTHONPATH", lines[2], 0); }
    allow_reading(lines[3]);
    return true;
}

const char* crdi_python_library(void)
{
    const char* known = getenv("CARDAN_LIBPYTHON");
    if (known && *known) { return known; }
    char path[PATH_MAX], program[PATH_MAX];
    const char* environment = getenv("VIRTUAL_ENV");
    bool found =
        environment &&
        (size_t)snprintf(program, sizeof program, "%s/bin/python3", environment) < sizeof program &&
        find_by_python(program, path);
    found = found || find_by_python("python3", path);
    for (int minor = NEWEST; !found && minor >= OLDEST; minor--) {
        snprintf(program, sizeof program, "libpython3.%d.so.1.0", minor);
        found = try_library(program, path);
    }
    if (!found || setenv("CARDAN_LIBPYTHON", path, 1) != 0) { return NULL; }
    char* folder = strrchr(path, '/');
    if (folder && folder > path) {
        *folder = 0;
        allow_reading(path);
    }
    return getenv("CARDAN_LIBPYTHON");
}
