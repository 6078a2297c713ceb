// The compiler, shut in: a child enters the sandbox and compiles file by file, some at a time, then
// links. What compilers say goes into a file, of which the first errors are shown.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fmi/build/build.h"
#include "shared/archive.h"
#include "shared/base_interrupt.h"
#include "shared/sandbox.h"

enum {
    MOST_WORDS = 1024,     // of a command line
    TIME_S = 600,          // for everything, by the clock
    CPU_S = 300,           // for one file
    SHOWN_ERRORS = 3,      // lines
    LARGEST_LOG = 1 << 16, // bytes of it that are looked at
    POLL_MS = 100,
};
static const uint64_t memory_limit = UINT64_C(4) << 30, file_limit = UINT64_C(1) << 30;

// How the child ends.
enum { ENDED_WELL, ENDED_SHUT_OUT = 10, ENDED_COMPILING, ENDED_LINKING, ENDED_BY_SIGNAL };

// Old sources are not to fail for what newer compilers have begun to refuse.
const char* const crdi_compile_flags[] = {"-O2",
                                          "-fPIC",
                                          "-w",
                                          "-ffp-contract=off",
                                          "-Wno-error=implicit-function-declaration",
                                          "-Wno-error=implicit-int",
                                          "-Wno-error=int-conversion",
                                          "-Wno-error=incompatible-pointer-types",
                                          "-DFMI2_OVERRIDE_FUNCTION_PREFIX",
                                          "-DFMI3_OVERRIDE_FUNCTION_PREFIX",
                                          "-I.",
                                          NULL};

// ---- which compiler ----------------------------------------------------------------------------

// As execvp looks for it; in the arena, NULL: there is none.
static const char* find_program(crd_arena* arena, const char* name)
{
    if (strchr(name, '/')) { return access(name, X_OK) == 0 ? name : NULL; }
    const char* path = getenv("PATH");
    for (const char* p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
        const size_t n = strcspn(p, ":");
        char file[PATH_MAX];
        if (n && p[0] == '/' &&
            (size_t)snprintf(file, sizeof file, "%.*s/%s", (int)n, p, name) < sizeof file &&
            access(file, X_OK) == 0) {
            return crdi_arena_text(arena, file, strlen(file));
        }
        p += n + (p[n] == ':');
    }
    return NULL;
}

// "ccache gcc -m64" into words; the first is looked for.
static crd_status split_words(crd_context* ctx, crd_arena* arena, const char* text,
                              crdi_compiler* out)
{
    size_t count = 0;
    const size_t most = sizeof out->words / sizeof *out->words - 1;
    for (const char* p = text + strspn(text, " "); *p && count < most; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        out->words[count] = crdi_arena_text(arena, p, n);
        if (!out->words[count++]) { return CRD_E_MEMORY; }
        p += n;
    }
    const char* first = count ? find_program(arena, out->words[0]) : NULL;
    out->words[0] = first;
    char real[PATH_MAX];
    if (first && realpath(first, real)) { out->real = crdi_arena_text(arena, real, strlen(real)); }
    (void)ctx;
    return CRD_OK;
}

static const char* variable_of(const crdi_platform* p, bool cpp, char name[40])
{
    snprintf(name, 40, "%s_%s", cpp ? "CXX" : "CC", p->fmi3);
    for (char* c = name; *c; c++) {
        if (*c == '-') { *c = '_'; }
    }
    return name;
}

// $CC_aarch64_linux, aarch64-linux-gnu-gcc
static crd_status find_cross(crd_context* ctx, crd_arena* arena, bool cpp, const crdi_platform* p,
                             crdi_compiler* out)
{
    char variable[40], name[40];
    snprintf(name, sizeof name, "%s-%s", p->triplet, cpp ? "g++" : "gcc");
    const char* wish = getenv(variable_of(p, cpp, variable));
    const crd_status st = split_words(ctx, arena, wish && *wish ? wish : name, out);
    if (st < 0 || out->real) { return st; }
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "there is no %s compiler for %s (%s): install one (Debian and Ubuntu: apt "
                     "install %s-%s) or say in $%s how it is called",
                     cpp ? "C++" : "C", p->fmi3, wish && *wish ? crdi_clip(wish).text : name,
                     cpp ? "g++" : "gcc", p->triplet, variable);
}

crd_status crdi_compiler_find(crd_context* ctx, crd_arena* arena, bool cpp,
                              const crdi_platform* platform, crdi_compiler* out)
{
    static const char* const names[2][3] = {{"cc", "gcc", "clang"}, {"c++", "g++", "clang++"}};
    const char* variable = cpp ? "CXX" : "CC";
    const char* wish = getenv(variable);
    *out = (crdi_compiler){0};
    if (platform) { return find_cross(ctx, arena, cpp, platform, out); }
    if (wish && *wish) {
        const crd_status st = split_words(ctx, arena, wish, out);
        if (st < 0 || out->real) { return st; }
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "the compiler '%s' of $%s is not there",
                         crdi_clip(wish).text, variable);
    }
    for (int i = 0; i < 3 && !out->real; i++) {
        const crd_status st = split_words(ctx, arena, names[cpp][i], out);
        if (st < 0) { return st; }
    }
    return out->real ? CRD_OK
                     : crdi_fail(ctx, CRD_E_UNSUPPORTED,
                                 "there is no %s compiler (%s, %s, %s): install one (Debian and "
                                 "Ubuntu: apt install %s) or say in $%s where it is",
                                 cpp ? "C++" : "C", names[cpp][0], names[cpp][1], names[cpp][2],
                                 cpp ? "g++" : "gcc", variable);
}

// Of "aarch64-linux-gnu-gcc --sysroot=/srv/arm64", NULL: none.
static const char* sysroot_of(const crdi_compiler* c)
{
    static const char option[] = "--sysroot=";
    for (const char* const* w = c->words; *w; w++) {
        if (strncmp(*w, option, sizeof option - 1) == 0) { return *w + sizeof option - 1; }
    }
    return NULL;
}

// ---- in the child ------------------------------------------------------------------------------

typedef struct words {
    const char* items[MOST_WORDS + 1];
    size_t count;
} words;

static void add_word(words* w, const char* text)
{
    if (w->count < MOST_WORDS) { w->items[w->count++] = text; }
    w->items[w->count] = NULL;
}

static void add_words(words* w, const char* const* list)
{
    for (; list && *list; list++) {
        add_word(w, *list);
    }
}

// 0: it runs.
static int start(const words* w, pid_t* child)
{
    return posix_spawn(child, w->items[0], NULL, NULL, (char* const*)w->items, environ);
}

static int start_source(const crdi_compile* c, size_t i, pid_t* child)
{
    const crdi_source* s = &c->recipe->sources[i];
    char object[PATH_MAX], headers[PATH_MAX];
    words w = {.count = 0};
    add_words(&w, s->cpp ? c->cpp.words : c->c.words);
    add_words(&w, crdi_compile_flags);
    add_words(&w, s->options);
    snprintf(object, sizeof object, "%s/%zu.o", c->scratch, i);
    snprintf(headers, sizeof headers, "%s/headers", c->scratch);
    const char* const rest[] = {"-idirafter", headers, "-c", "-o", object, s->file, NULL};
    add_words(&w, rest);
    return start(&w, child);
}

// Waits for one of the children; false: it did not end well.
static bool ended_well(int* signalled)
{
    int status = 0;
    while (wait(&status) < 0) {
        if (errno != EINTR) { return false; }
    }
    if (WIFSIGNALED(status)) { *signalled = WTERMSIG(status); }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int compile_all(const crdi_compile* c, int* signalled)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t at_once = cpus < 1 ? 1 : cpus > 8 ? 8 : (size_t)cpus;
    size_t running = 0, next = 0;
    bool good = true;
    while (good && (running || next < c->recipe->count)) {
        pid_t child = -1;
        if (next < c->recipe->count && running < at_once) {
            good = start_source(c, next++, &child) == 0;
            running += good;
        } else {
            good = ended_well(signalled);
            running--;
        }
    }
    while (running-- > 0) {
        (void)ended_well(signalled);
    }
    return good ? 0 : ENDED_COMPILING;
}

static bool is_of_c(const char* library)
{
    static const char* const all[] = {"-lm", "-lc", "-ldl", "-lrt", "-lpthread"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(library, all[i]) == 0) { return true; }
    }
    return false;
}

static bool names_libraries(const crdi_recipe* r)
{
    bool some = false;
    for (size_t i = 0; i < r->library_count; i++) {
        some = some || !is_of_c(r->libraries[i]);
    }
    return some;
}

// `bundled`: with the libraries inside, but for those of C.
static bool link_all(const crdi_compile* c, bool bundled, int* signalled)
{
    pid_t child = -1;
    char folder[PATH_MAX], list[PATH_MAX];
    words w = {.count = 0};
    // Names of the objects stand in a file: there may be more than a command line takes.
    snprintf(list, sizeof list, "%s/objects", c->scratch);
    FILE* f = fopen(list, "w");
    for (size_t i = 0; f && i < c->recipe->count; i++) {
        fprintf(f, "%s/%zu.o\n", c->scratch, i);
    }
    if (!f || fclose(f) != 0) { return false; }
    snprintf(list, sizeof list, "@%s/objects", c->scratch);
    snprintf(folder, sizeof folder, "%s/out.so", c->scratch);
    add_words(&w, c->cpp.real ? c->cpp.words : c->c.words);
    const char* const plain[] = {"-shared", "-Wl,-z,defs", "-o", folder, list, NULL};
    add_words(&w, plain);
    char binaries[PATH_MAX];
    if (c->binaries) {
        snprintf(binaries, sizeof binaries, "-L%s", c->binaries);
        add_word(&w, binaries);
    }
    if (bundled) { add_word(&w, "-Wl,--exclude-libs,ALL"); }
    for (size_t i = 0; i < c->recipe->library_count; i++) {
        const char* library = c->recipe->libraries[i];
        if (bundled) { add_word(&w, is_of_c(library) ? "-Wl,-Bdynamic" : "-Wl,-Bstatic"); }
        add_word(&w, library);
    }
    if (bundled) { add_word(&w, "-Wl,-Bdynamic"); }
    const char* const system_libraries[] = {"-lm", "-ldl", "-lpthread", NULL};
    add_words(&w, system_libraries);
    add_words(&w, c->aliases);
    return start(&w, &child) == 0 && ended_well(signalled);
}

// Another machine may not have its libraries: they go along where that can be.
static int link_best(const crdi_compile* c, int* signalled)
{
    if (c->platform && names_libraries(c->recipe) && link_all(c, true, signalled)) { return 0; }
    if (ftruncate(STDERR_FILENO, 0) != 0 || lseek(STDERR_FILENO, 0, SEEK_SET) != 0) {
        return ENDED_LINKING;
    }
    return link_all(c, false, signalled) ? 0 : ENDED_LINKING;
}

// Folder above the one that a program lies in: /opt/gcc for /opt/gcc/bin/gcc.
static void folder_of_program(const char* program, char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", program);
    for (int i = 0; i < 2; i++) {
        char* slash = strrchr(folder, '/');
        if (slash && slash > folder) { *slash = 0; }
    }
}

// Bytes of address space that this process has already: the limit comes on top of it, as processes
// are started by this one.
static uint64_t memory_used(void)
{
    unsigned long long pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%20llu", &pages) != 1) { pages = 0; }
    if (f) { (void)fclose(f); }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static crd_status shut_in(crd_context* ctx, const crdi_compile* c, const char* sources)
{
    char homes[2][PATH_MAX];
    const char* readable[6] = {sources, c->binaries ? c->binaries : sources};
    size_t count = 2;
    const crdi_compiler* used[] = {&c->c, &c->cpp};
    for (int i = 0; i < 2; i++) {
        if (!used[i]->real) { continue; }
        folder_of_program(used[i]->real, homes[i]);
        readable[count++] = homes[i];
        const char* sysroot = sysroot_of(used[i]);
        if (sysroot) { readable[count++] = sysroot; }
    }
    return crdi_sandbox_enter(ctx, &(crdi_sandbox){.readable = readable,
                                                   .readable_count = count,
                                                   .scratch = c->scratch,
                                                   .programs = true,
                                                   .cpu_seconds = CPU_S,
                                                   .memory = memory_used() + memory_limit,
                                                   .file_size = file_limit,
                                                   .processes = 256});
}

// Never returns. What goes wrong here stands in the log.
static _Noreturn void child_main(crd_context* ctx, const crdi_compile* c, int log)
{
    char sources[PATH_MAX];
    int signalled = 0;
    snprintf(sources, sizeof sources, "%s/sources", c->folder);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    (void)setenv("LC_ALL", "C", 1);
    if (shut_in(ctx, c, sources) < 0 || chdir(sources) != 0) {
        dprintf(log, "%s\n", crd_error_text(ctx));
        _exit(ENDED_SHUT_OUT);
    }
    int end = compile_all(c, &signalled);
    if (end == 0) { end = link_best(c, &signalled); }
    _exit(signalled ? ENDED_BY_SIGNAL : end);
}

// ---- in the parent -----------------------------------------------------------------------------

// It was in the hands of the child: it may have become a link or a pipe.
crd_status crdi_compile_result(crd_context* ctx, const crdi_compile* c, crd_text* out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/out.so", c->scratch);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) { return crdi_file_fail(ctx, path, errno); }
    const crdi_file_need need = {.what = "what the compiler made", .most = file_limit};
    const crd_status st = crdi_file_read_from(ctx, fd, path, &need, out);
    close(fd);
    if (st == CRD_OK && (out->length < 4 || memcmp(out->data, "\177ELF", 4) != 0)) {
        return crdi_fail(ctx, CRD_E_UNIT, "%s: what the compiler made is no library", c->shown);
    }
    // A compiler for another machine, by a wrong $CC: the folder in the FMU would lie.
    const crdi_platform* p = c->platform ? c->platform : crdi_platform_own();
    Elf32_Half machine = 0;
    const size_t at = offsetof(Elf32_Ehdr, e_machine); // where it is in files of 64 bits, too
    if (st == CRD_OK && out->length >= at + sizeof machine) {
        memcpy(&machine, out->data + at, sizeof machine);
    }
    if (st == CRD_OK && p && machine != p->elf) {
        return crdi_fail(ctx, CRD_E_UNIT, "%s: %s does not compile for %s", c->shown, c->c.words[0],
                         p->fmi3);
    }
    return st;
}

static bool tells_why(const char* line, size_t n)
{
    static const char* const words_of_errors[] = {
        "error:",         "Error:",        "undefined reference", "undefined symbol",
        "cannot find -l", "out of memory", "multiple definition", "unrecognized"};
    for (size_t i = 0; i < sizeof words_of_errors / sizeof *words_of_errors; i++) {
        if (memmem(line, n, words_of_errors[i], strlen(words_of_errors[i]))) { return true; }
    }
    return false;
}

// The first lines of the log that are errors; the first line if none looks like one. One sentence.
static void first_errors(const crd_text* log, const char* scratch, crd_text* out)
{
    int shown = 0;
    const char* end = log->data ? log->data + log->length : NULL;
    for (const char* p = log->data; p && p < end && shown < SHOWN_ERRORS;) {
        const char* stop = memchr(p, '\n', (size_t)(end - p));
        const size_t n = (size_t)((stop ? stop : end) - p);
        if (tells_why(p, n)) {
            char line[301];
            snprintf(line, sizeof line, "%.*s", (int)(n < 300 ? n : 300), p);
            char* own = strstr(line, scratch); // a path that says nothing to anybody
            if (own) { memmove(own, own + strlen(scratch), strlen(own + strlen(scratch)) + 1); }
            for (char* q = line; *q; q++) {
                if ((unsigned char)*q < ' ') { *q = ' '; }
            }
            crdi_text_add(out, "%s%s", shown++ ? "; " : "", line);
        }
        p = stop ? stop + 1 : end;
    }
    if (!shown && log->data) { // whatever it says first
        const char* line = log->data + strspn(log->data, "\n ");
        crdi_text_add(out, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static crd_status tell_failure(crd_context* ctx, const crdi_compile* c, int end)
{
    crd_text log, why;
    crd_text_init(&log, ctx);
    crd_text_init(&why, ctx);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/log", c->scratch);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char* room = fd >= 0 ? crdi_text_room(&log, LARGEST_LOG) : NULL;
    const ssize_t n = room ? read(fd, room, LARGEST_LOG) : 0;
    if (n > 0) {
        log.length += (size_t)n;
        log.data[log.length] = 0;
    }
    if (fd >= 0) { close(fd); }
    first_errors(&log, c->scratch, &why);
    const char* text = why.data ? why.data : "it gave no reason";
    crd_status st = CRD_E_UNIT;
    if (end == ENDED_SHUT_OUT) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: the compiler cannot be started: %s", c->shown, text);
    } else if (end == ENDED_BY_SIGNAL) {
        st = crdi_fail(ctx, CRD_E_LIMIT,
                       "%s: the compiler was ended: its sources need more than %d s or %d GB%s%s",
                       c->shown, CPU_S, (int)(memory_limit >> 30), why.data ? "; " : "",
                       why.data ? why.data : "");
    } else {
        char hint[300] = "", name[40];
        if (c->platform && names_libraries(c->recipe)) {
            snprintf(hint, sizeof hint,
                     "; it wants libraries for %s, installed for it (Debian: apt install "
                     "NAME-dev:ARCHITECTURE) or in a folder that $%s names, as in %s-gcc "
                     "--sysroot=FOLDER",
                     c->platform->fmi3, variable_of(c->platform, false, name),
                     c->platform->triplet);
        }
        st = crdi_fail(ctx, CRD_E_UNIT, "%s: its sources cannot be %s by %s: %s%s", c->shown,
                       end == ENDED_LINKING ? "linked" : "compiled", c->c.words[0], text, hint);
    }
    crd_text_clear(&log);
    crd_text_clear(&why);
    return st;
}

// How the child ended, -1: not in time, -2: somebody pressed Ctrl-C. `alive` is readable when it
// has ended.
static int wait_for(pid_t child, int alive)
{
    int status = 0, waited_ms = 0;
    struct pollfd p = {.fd = alive, .events = POLLIN};
    while (waited_ms < TIME_S * 1000 && !crdi_interrupted() && poll(&p, 1, POLL_MS) <= 0) {
        waited_ms += POLL_MS;
    }
    const bool late = waited_ms >= TIME_S * 1000, stopped = crdi_interrupted();
    if (late || stopped) { (void)kill(-child, SIGKILL); }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    (void)kill(-child, SIGKILL); // what it left behind
    if (late || stopped) { return late ? -1 : -2; }
    return WIFEXITED(status) ? WEXITSTATUS(status) : ENDED_BY_SIGNAL;
}

crd_status crdi_compile_run(crd_context* ctx, const crdi_compile* c)
{
    char path[PATH_MAX];
    int alive[2];
    snprintf(path, sizeof path, "%s/log", c->scratch);
    const int log = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (log < 0 || pipe2(alive, O_CLOEXEC) != 0) {
        const int why = errno;
        if (log >= 0) { close(log); }
        return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(why));
    }
    const pid_t child = fork();
    if (child == 0) {
        close(alive[0]);
        child_main(ctx, c, log);
    }
    close(log);
    close(alive[1]);
    const int end = child < 0 ? ENDED_SHUT_OUT : wait_for(child, alive[0]);
    close(alive[0]);
    if (end == ENDED_WELL) { return CRD_OK; }
    if (end == -1) {
        return crdi_fail(ctx, CRD_E_LIMIT, "%s: its sources were not compiled within %d s",
                         c->shown, TIME_S);
    }
    if (end == -2) {
        return crdi_fail(ctx, CRD_E_UNIT, "%s: compiling its sources was interrupted", c->shown);
    }
    return tell_failure(ctx, c, end);
}
