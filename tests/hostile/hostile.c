// A model that misbehaves on order: resources/order.txt names a kind and a place, as in
// "segv step". Two FMUs are made of it, FMI 2.0 and FMI 3.0 (-DFMI3). y = integral of u otherwise.
//
// Nothing of Cardan is used: this is somebody else's FMU.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef void logger2(void*, const char*, int, const char*, const char*, ...);
typedef void logger3(void*, int, const char*, const char*);
typedef struct callbacks {
    logger2* logger;
    void* (*allocate)(size_t, size_t);
    void (*release)(void*);
    void* step_finished;
    void* environment;
} callbacks;

static struct {
    char kind[64], place[64];
    logger2* logger;
    logger3* logger3;
    void* environment;
    char name[64];
    double t, u, y;
    bool done;  // misbehaves once
    int status; // of the call that is under way
} model;
static jmp_buf back;
static volatile int zero;
static void* volatile nowhere = (void*)(uintptr_t)16;

#ifdef OWN_MALLOC // of an FMU that brings its own heap: what others allocated must not come here
static char heap[1 << 20];
static size_t used;
EXPORT void* malloc(size_t n)
{
    char* p = heap + used;
    used += (n + 31) / 16 * 16;
    return p;
}
EXPORT void* calloc(size_t n, size_t size)
{
    return malloc(n * size); // never used twice
}
EXPORT void* realloc(void* p, size_t n)
{
    return p ? abort(), NULL : malloc(n);
}
EXPORT void free(void* p)
{
    if (p && ((char*)p < heap || (char*)p >= heap + sizeof heap)) { abort(); }
}
#endif

// ---- kinds -------------------------------------------------------------------------------------

static void spin(void)
{
    for (volatile unsigned n = 0;; n++) {}
}

static void crash(void)
{
    *(volatile int*)8 = 1;
}

static int recurse(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return zero ? 0 : recurse(n + 1) + room[0];
}

static void* in_thread(void* f)
{
    ((void (*)(void))(uintptr_t)f)();
    return NULL;
}

static void thread_of(void (*f)(void), bool wait)
{
    pthread_t t;
    if (pthread_create(&t, NULL, in_thread, (void*)(uintptr_t)f) == 0 && wait) {
        pthread_join(t, NULL);
    }
}

static void overflow(void)
{
    zero = recurse(1);
}

static void leave(void)
{
    exit(0);
}

static void nothing(int number)
{
    (void)number;
}

static void
overrun(void) // found by the C library when it looks at its own lists, with its lock held
{
    char* volatile p[32];
    for (int i = 0; i < 32; i++) {
        p[i] = malloc(3000);
    }
    for (int i = 0; i < 32; i++) {
        memset(p[i], 0x41, 3000 + 64);
    }
    for (int i = 31; i >= 0; i--) {
        free(p[i]);
    }
    free(malloc(100000));
}

static void twice(void)
{
    char* volatile p = malloc(5000);
    char* volatile q = malloc(24);
    free(p);
    free(p);
    free(q);
}

static void bus(void)
{
    const int fd = (int)syscall(SYS_memfd_create, "x", 0);
    if (ftruncate(fd, 4096) == 0) {
        volatile char* p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (ftruncate(fd, 0) == 0) { p[0] = 1; }
    }
}

static void broken_pipe(void)
{
    int p[2];
    if (pipe(p) == 0) {
        close(p[0]);
        if (write(p[1], "x", 1) < 0) { close(p[1]); }
    }
}

static void child(int what) // 0: comes back, 1: exit, 2: crash, 3: _exit
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (what == 1) { exit(0); }
        if (what == 2) { crash(); }
        if (what == 3) { _exit(0); }
        return;
    }
    if (what) { waitpid(pid, NULL, 0); }
}

static void bomb(void)
{
    for (int i = 0; i < 6; i++) { // 2^6 processes, each of which stays
        (void)!fork();
    }
    sleep(20);
    _exit(0);
}

static void subnormals(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

static void blocked(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void ignored(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

static void close_from(int first)
{
    for (int fd = first; fd < 1024; fd++) {
        close(fd);
    }
}

static void redirect(void)
{
    const int fd = open("/dev/null", O_WRONLY);
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
}

static void memory(void)
{
    for (size_t n = (size_t)1 << 30; n > 4096;) {
        char* p = malloc(n);
        if (!p) {
            n /= 2;
        } else {
            memset(p, 1, n);
        }
    }
}

static void files(void)
{
    while (open("/dev/null", O_RDONLY) >= 0) {}
}

static void sleep_long(void)
{
    for (;;) {
        pause();
    }
}

static void threads(void)
{
    for (int i = 0; i < 2000; i++) {
        thread_of(sleep_long, false);
    }
}

static void scribble(void) // over what lies beside its own memory
{
    char* p = malloc(100000);
    memset(p - 64, 0x55, 100000 + 4096);
}

static void megabytes(void)
{
    for (int i = 0; i < 100000; i++) {
        fprintf(i % 2 ? stdout : stderr, "%0100d\n", i);
    }
    fflush(stdout);
}

static void say(void* environment, const char* format, ...)
{
    if (model.logger3) {
        model.logger3(environment, 1, "logStatusWarning", "a message");
    } else {
        model.logger(environment, model.name, 1, "logStatusWarning", format, "a message", 1, 2);
    }
}

static void talk(void)
{
    for (int i = 0; i < 50; i++) {
        say(model.environment, "%s");
        usleep(10000);
    }
}

static void timer(int which, int number)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    (void)number;
    setitimer(which, &soon, NULL);
    spin();
}

static void limit_files(void)
{
    const struct rlimit small = {100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
}

static void locale_of_thread(void)
{
    uselocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
}

// Symbols that Cardan has, too: each shall get its own.
EXPORT int dgemm_(void);
EXPORT int N_VAbs_Serial(void);
EXPORT int XML_Parse(void);
int dgemm_(void)
{
    return 4711;
}
int N_VAbs_Serial(void)
{
    return 4712;
}
int XML_Parse(void)
{
    return 4713;
}
int (*volatile own[])(void) = {dgemm_, N_VAbs_Serial, XML_Parse};

static void names(void)
{
    if (dgemm_() != 4711 || N_VAbs_Serial() != 4712 || XML_Parse() != 4713 || own[0]() != 4711 ||
        own[1]() != 4712) {
        model.status = 3;
    }
}

static void duplicate(void)
{
    for (int i = 0; i < 10; i++) {
        char* volatile p = strdup("allocated by the C library");
        free(p);
    }
}

// ---- against the process that it is shut in ----------------------------------------------------

// The memory that is shared with the run: the first part, where numbers, answers and lengths are.
static unsigned char* shared(size_t* bytes)
{
    char line[512];
    FILE* f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        size_t from = 0, to = 0;
        if (strstr(line, "memfd:cardan") && sscanf(line, "%zx-%zx", &from, &to) == 2) {
            fclose(f);
            *bytes = to - from;
            return (unsigned char*)from;
        }
    }
    if (f) { fclose(f); }
    *bytes = 0;
    return NULL;
}

static void unmap(int how) // 0: gone, 1: other memory in its place, 2: not to be written
{
    size_t bytes = 0;
    void* p = shared(&bytes);
    if (!p) { return; }
    if (how == 0) { munmap(p, bytes); }
    if (how == 1) {
        mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    if (how == 2) { mprotect(p, bytes, PROT_READ); }
}

enum { WORDS = 96 * 1024 }; // of 4 bytes: control, ring, log
static void* parts[2];      // the beginning, and the lines of the units behind the messages
static uint32_t noise;

static uint32_t draw(void)
{
    noise = noise * 1664525u + 1013904223u;
    return noise >> 3;
}

static bool find_parts(void)
{
    size_t bytes = 0;
    parts[0] = shared(&bytes);
    parts[1] = (char*)parts[0] + ((size_t)1 << 28) + ((size_t)1 << 18);
    return parts[0] != NULL && bytes > ((size_t)1 << 29);
}

// Each word of what the two sides tell each other. `value` 1: any number.
static void overwrite(uint32_t value)
{
    for (size_t i = 0; find_parts() && i < WORDS; i++) {
        ((volatile uint32_t*)parts[0])[i] = value == 1 ? draw() : value;
        ((volatile uint32_t*)parts[1])[i % 16384] = value == 1 ? draw() : value;
    }
}

static void disturb(void) // one word after the other, in the middle of everything
{
    static const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x1b1b1b1b};
    while (find_parts()) {
        for (int i = 0; i < 10000; i++) {
            const uint32_t k = draw();
            ((volatile uint32_t*)parts[k & 1])[(k >> 4) % (k & 1 ? 16384 : 2048)] = values[k % 6];
        }
        usleep(100);
    }
}

static void hide(void) // from the end of its master: then nobody ends it
{
    size_t bytes = 0;
    unsigned char* p = shared(&bytes);
    for (size_t i = 0; p && i < 1024; i++) { // whoever it is told to look for
        uint32_t* word = (uint32_t*)p + i;
        if (*word == (uint32_t)getppid()) { *word = 1; }
    }
    fcntl(4, F_SETSIG, 0);
    fcntl(4, F_SETFL, 0);
    ioctl(4, FIOASYNC, &(int){0});
    syscall(SYS_close_range, 3, ~0U, 0);
    dup2(0, 4);
    dup3(0, 4, O_CLOEXEC);
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    setsid();
    setpgid(0, 0);
    blocked();
    spin();
}

static void flags_of_streams(void)
{
    for (int fd = 0; fd < 3; fd++) {
        const int copy = dup(fd);
        fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
        ioctl(copy, FIONBIO, &(int){1});
        close(copy);
    }
}

static void own_limits(void)
{
    const struct rlimit none = {0, 0};
    for (int k = 0; k < RLIM_NLIMITS; k++) {
        setrlimit((__rlimit_resource_t)k, &none);
    }
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "\033[2J) Z 1 1");
    prctl(PR_SET_TIMERSLACK, 1000000000);
}

// Each of them is for this process alone, or refused. An error says which was not.
static void parent(void)
{
    const pid_t run = getppid();
    char path[64], word = 0;
    struct iovec here = {&word, 1}, there = {&model, 1};
    const struct rlimit small = {16, 16};
    const struct sched_param low = {.sched_priority = 0};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)run);
    if (kill(run, SIGSTOP) == 0 || kill(-1, SIGSTOP) == 0 || kill(0, SIGSTOP) == 0 ||
        syscall(SYS_tgkill, run, run, SIGSTOP) == 0 ||
        sigqueue(run, SIGSTOP, (union sigval){0}) == 0 || ptrace(PTRACE_SEIZE, run, 0, 0) == 0 ||
        process_vm_readv(run, &here, 1, &there, 1, 0) > 0 ||
        prlimit(run, RLIMIT_NOFILE, &small, NULL) == 0 || setpriority(PRIO_PROCESS, run, 19) == 0 ||
        sched_setaffinity(run, sizeof one, &one) == 0 ||
        sched_setscheduler(run, SCHED_IDLE, &low) == 0 || open(path, O_RDWR) >= 0) {
        model.status = 3;
    }
}

static void own_code(void) // through the file of its memory, where rights do not count
{
    const int fd = open("/proc/self/mem", O_RDWR);
    static const char stop[64] = {0};
    const void* at = (const void*)(uintptr_t)strtod;
    if (fd >= 0 && pwrite(fd, stop, sizeof stop, (off_t)(uintptr_t)at) > 0) {
        (void)strtod("1", NULL);
    }
}

static void timers(void) // of every kind, a thousand times a second, until the end
{
    const struct itimerval fast = {{0, 1000}, {0, 1000}};
    const struct itimerspec as_fast = {{0, 1000000}, {0, 1000000}};
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    timer_t id;
    signal(SIGALRM, nothing);
    signal(SIGPROF, nothing);
    setitimer(ITIMER_REAL, &fast, NULL);
    setitimer(ITIMER_PROF, &fast, NULL);
    if (timer_create(CLOCK_MONOTONIC, &e, &id) == 0) { timer_settime(id, 0, &as_fast, NULL); }
}

static void leave_children(void) // in a session of their own
{
    char* const sleeper[] = {"sleep", "30", NULL};
    pid_t pid = 0;
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
    if (posix_spawnp(&pid, "sleep", NULL, &how, sleeper, NULL) == 0) { model.status = 3; }
    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
        setsid();
        for (;;) {
            pause();
        }
    }
}

// What is hard to remove: deeper than any path, without rights, a way out of the folder.
static void leave_files(void)
{
    char name[201];
    memset(name, 'x', 200);
    name[200] = 0;
    const int secret = open(".", O_RDONLY | O_DIRECTORY);
    if (symlink("/", "way_out") < 0 || symlink("..", "up") < 0 || mkdir("closed", 0700) < 0) {
        return;
    }
    const int closed = open("closed", O_RDONLY | O_DIRECTORY);
    const int file = openat(closed, "file\n\033[2J", O_CREAT | O_WRONLY, 0);
    fchmod(closed, 0);
    for (int i = 0; i < 60 && mkdir(name, 0700) == 0 && chdir(name) == 0; i++) {
        close(open("file", O_CREAT | O_WRONLY, 0));
    }
    if (fchdir(secret) < 0) { return; }
    close(secret);
    close(closed);
    close(file);
}

static void priority(void) // above everybody, for ever
{
    const struct sched_param top = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &top) == 0) {
        const struct sched_param low = {.sched_priority = 0};
        sched_setscheduler(0, SCHED_OTHER, &low);
        model.status = 3;
    }
}

static void own_filter(void) // what the worker needs to wait is not there any more
{
    static struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
        {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_futex},
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_getppid},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
    };
    static const struct sock_fprog filter = {sizeof code / sizeof *code, code};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void other_bed(void) // whoever sleeps in the shared memory is moved where nobody wakes him
{
    static uint32_t nobody;
    while (find_parts()) {
        for (size_t i = 0; i < 4096; i++) {
            syscall(SYS_futex, (uint32_t*)parts[i & 1] + i / 2, FUTEX_REQUEUE, 0, 100, &nobody, 0);
        }
        usleep(100);
    }
}

static void first_thread_ends(void)
{
    thread_of(sleep_long, false);
    syscall(SYS_exit, 0);
}

static void seals(void) // of the file that the memory is, by whatever number it can be had
{
    char path[64];
    for (int fd = 3; fd < 64; fd++) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        if (ftruncate(fd, 4096) == 0 || fallocate(fd, 3, 0, (off_t)1 << 30) == 0) { zero = 0; }
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (truncate(path, 0) == 0) { zero = 0; }
    }
}

static void touch_all(int how) // 0: each page of it, 1: gives all pages back
{
    size_t bytes = 0;
    volatile unsigned char* p = shared(&bytes);
    if (how == 1 && p) { madvise((void*)(uintptr_t)p, bytes, MADV_REMOVE); }
    for (size_t i = (size_t)1 << 20; p && how == 0 && i < bytes; i += 4096) {
        p[i] = p[i];
    }
}

static void answer_early(void) // what the run asks for is done, before anybody has looked at it
{
    while (find_parts()) {
        uint32_t number = 0;
        for (size_t i = 0; i < 8192; i += 16) { // lines of requests: the number is first
            const uint32_t k = ((volatile uint32_t*)parts[0])[i];
            if (k > number && k < 1000000) { number = k; }
        }
        for (size_t i = 0; i < 16384; i += 16) {
            ((volatile uint32_t*)parts[1])[i] = number;
        }
        for (size_t i = 0; i < 64; i += 16) {
            ((volatile uint32_t*)parts[0])[i] = number;
        }
    }
}

// A process that shares this one's memory and outlives the thread that made it; and one of its own.
static void clone_memory(void)
{
    static char stack[65536];
    static struct {
        uint64_t flags, pidfd, child, parent, exit_signal, stack, size, tls;
    } how = {.flags = 0x100, .exit_signal = 17};
    how.stack = (uint64_t)(uintptr_t)stack;
    how.size = sizeof stack;
    if (clone((int (*)(void*))(uintptr_t)sleep_long, stack + sizeof stack, 0x100 | 0x400, NULL) >
            0 ||
        syscall(SYS_clone3, &how, sizeof how) > 0) {
        model.status = 3;
    }
}

static void processor(int what) // 0: MMX without EMMS, 1: direction, 2: alignment
{
#if defined(__x86_64__)
    if (what == 0) { __asm__ volatile("pxor %%mm0, %%mm0; pxor %%mm7, %%mm7" ::: "memory"); }
    if (what == 1) { __asm__ volatile("std" ::: "memory"); }
    if (what == 2) { __asm__ volatile("pushfq; orl $0x40000, (%%rsp); popfq" ::: "memory", "cc"); }
#endif
}

static void unload(void)
{
    Dl_info here;
    if (!dladdr((void*)(uintptr_t)unload, &here)) { return; }
    void* self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; self && i < 10; i++) {
        dlclose(self);
    }
}

static void no_system_calls(void)
{
    static volatile char block = 1;
    prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &block);
}

static void flood(size_t length) // of the logger: each wording is another
{
    char* line = malloc(length + 32);
    if (!line) { return; }
    for (int i = 0; i < (length < 1000 ? 300000 : 20); i++) {
        for (size_t k = 0; k < length; k++) {
            line[k] = (char)('a' + draw() % 26);
        }
        line[length] = 0;
        model.logger(model.environment, model.name, (int)(draw() % 5), line, "%s", line);
    }
    free(line);
}

#define KIND(name, ...)                                                                            \
    static void kind_##name(void)                                                                  \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
#define KINDS(X)                                                                                   \
    X(segv, crash())                                                                               \
    X(bus, bus())                                                                                  \
    X(fpe, zero = 17 / zero)                                                                       \
    X(ill, __builtin_trap())                                                                       \
    X(abort, abort())                                                                              \
    X(heap_overrun, overrun())                                                                     \
    X(double_free, twice())                                                                        \
    X(bad_free, free(nowhere))                                                                     \
    X(stack_overflow, overflow())                                                                  \
    X(thread_segv, thread_of(crash, true))                                                         \
    X(thread_abort, thread_of(abort, true))                                                        \
    X(thread_heap, thread_of(overrun, true))                                                       \
    X(thread_stack, thread_of(overflow, true))                                                     \
    X(thread_exit, thread_of(leave, true))                                                         \
    X(under_exit, _exit(0))                                                                        \
    X(exit, exit(0))                                                                               \
    X(quick_exit, quick_exit(0))                                                                   \
    X(sigpipe, broken_pipe())                                                                      \
    X(sigtrap, raise(SIGTRAP))                                                                     \
    X(sigsys, raise(SIGSYS))                                                                       \
    X(sigxcpu, raise(SIGXCPU))                                                                     \
    X(sigusr1, raise(SIGUSR1))                                                                     \
    X(sigkill, kill(getpid(), SIGKILL))                                                            \
    X(sigstop, kill(getpid(), SIGSTOP))                                                            \
    X(sigterm, kill(getpid(), SIGTERM))                                                            \
    X(alarm, timer(ITIMER_REAL, SIGALRM))                                                          \
    X(vtalarm, timer(ITIMER_VIRTUAL, SIGVTALRM))                                                   \
    X(ignore_term, ignored())                                                                      \
    X(ignore_term_spin, (ignored(), blocked(), spin()))                                            \
    X(block_all, blocked())                                                                        \
    X(block_all_segv, (blocked(), crash()))                                                        \
    X(block_all_spin, (blocked(), spin()))                                                         \
    X(spin, spin())                                                                                \
    X(sleep, sleep_long())                                                                         \
    X(own_handler, signal(SIGSEGV, nothing))                                                       \
    X(own_handler_segv, (signal(SIGSEGV, nothing), crash()))                                       \
    X(fork_back, child(0))                                                                         \
    X(fork_exit, child(1))                                                                         \
    X(fork_segv, child(2))                                                                         \
    X(fork_under_exit, child(3))                                                                   \
    X(fork_bomb, bomb())                                                                           \
    X(fesetround, fesetround(FE_UPWARD))                                                           \
    X(flush_to_zero, subnormals())                                                                 \
    X(feenableexcept, feenableexcept(FE_DIVBYZERO | FE_INVALID))                                   \
    X(setlocale, setlocale(LC_ALL, "C.UTF-8"))                                                     \
    X(uselocale, locale_of_thread())                                                               \
    X(chdir, model.status = chdir("/"))                                                            \
    X(umask, umask(0777))                                                                          \
    X(close_files, close_from(3))                                                                  \
    X(close_all, close_from(0))                                                                    \
    X(dup_streams, redirect())                                                                     \
    X(fclose_stdout, fclose(stdout))                                                               \
    X(megabytes, megabytes())                                                                      \
    X(scribble, scribble())                                                                        \
    X(memory, memory())                                                                            \
    X(files, files())                                                                              \
    X(threads, threads())                                                                          \
    X(limit_files, limit_files())                                                                  \
    X(atexit_spin, atexit(spin))                                                                   \
    X(atexit_segv, atexit(crash))                                                                  \
    X(longjmp, longjmp(back, 1))                                                                   \
    X(pthread_exit, pthread_exit(NULL))                                                            \
    X(pthread_cancel, (pthread_cancel(pthread_self()), pthread_testcancel()))                      \
    X(log_null, say(NULL, "%s"))                                                                   \
    X(log_one, say((void*)(uintptr_t)1, "%s"))                                                     \
    X(log_two, say((void*)(uintptr_t)2, "%s"))                                                     \
    X(log_n, say(model.environment, "%n%n%n%n"))                                                   \
    X(log_bad_text, model.logger(model.environment, model.name, 1, "", "%s", (char*)8))            \
    X(log_thread, thread_of(talk, false))                                                          \
    X(bogus_status, model.status = 77)                                                             \
    X(negative_status, model.status = -5)                                                          \
    X(error, model.status = 3)                                                                     \
    X(fatal, model.status = 4)                                                                     \
    X(fatal_spin, (atexit(spin), model.status = 4))                                                \
    X(pending, model.status = 5)                                                                   \
    X(nan, model.y = NAN)                                                                          \
    X(own_malloc, duplicate())                                                                     \
    X(unmap, unmap(0))                                                                             \
    X(other_memory, unmap(1))                                                                      \
    X(no_writing, unmap(2))                                                                        \
    X(zeros, overwrite(0))                                                                         \
    X(ones, overwrite(0xffffffff))                                                                 \
    X(any_numbers, overwrite(1))                                                                   \
    X(escapes, overwrite(0x5b321b0a))                                                              \
    X(disturb, thread_of(disturb, false))                                                          \
    X(hide, hide())                                                                                \
    X(flags_of_streams, flags_of_streams())                                                        \
    X(own_limits, own_limits())                                                                    \
    X(parent, parent())                                                                            \
    X(own_code, own_code())                                                                        \
    X(timers, timers())                                                                            \
    X(leave_children, leave_children())                                                            \
    X(leave_files, leave_files())                                                                  \
    X(priority, priority())                                                                        \
    X(own_filter, own_filter())                                                                    \
    X(other_bed, thread_of(other_bed, false))                                                      \
    X(first_thread_ends, first_thread_ends())                                                      \
    X(seals, seals())                                                                              \
    X(fill_shared, touch_all(0))                                                                   \
    X(punch, touch_all(1))                                                                         \
    X(answer_early, thread_of(answer_early, false))                                                \
    X(clone_memory, clone_memory())                                                                \
    X(mmx, processor(0))                                                                           \
    X(direction, processor(1))                                                                     \
    X(alignment, processor(2))                                                                     \
    X(unload, unload())                                                                            \
    X(environment, environ = (char**)(uintptr_t)8)                                                 \
    X(shrink_heap, brk((char*)sbrk(0) - 131072))                                                   \
    X(no_altstack, (sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), overflow()))            \
    X(no_tls, syscall(SYS_arch_prctl, 0x1002, 0))                                                  \
    X(no_system_calls, no_system_calls())                                                          \
    X(no_clock, prctl(PR_SET_TSC, PR_TSC_SIGSEGV))                                                 \
    X(log_flood, flood(60))                                                                        \
    X(log_huge, flood(3000000))                                                                    \
    X(infinity, model.y = INFINITY)                                                                \
    X(names, names())
KINDS(KIND)

static void misbehave(const char* place)
{
    static const struct {
        const char* name;
        void (*f)(void);
    } rows[] = {
#define ROW(name, ...) {#name, kind_##name},
        KINDS(ROW)};
    if (model.done || strcmp(place, model.place) != 0) { return; }
    if (strcmp(place, "step") == 0 && model.t < 0.4999) { return; }
    model.done = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, model.kind) == 0) {
            rows[i].f();
            return;
        }
    }
}

// ---- the library -------------------------------------------------------------------------------

static __attribute__((constructor)) void constructor(void)
{
    Dl_info here;
    char path[4096];
    if (!dladdr((void*)(uintptr_t)constructor, &here)) { return; }
    snprintf(path, sizeof path - 64, "%s", here.dli_fname); // .../binaries/linux64/hostile.so
    for (int i = 0; i < 3; i++) {
        char* slash = strrchr(path, '/');
        if (slash) { *slash = 0; }
    }
    strcat(path, "/resources/order.txt");
    FILE* f = fopen(path, "r");
    if (!f || fscanf(f, "%63s %63s", model.kind, model.place) != 2) { model.kind[0] = 0; }
    if (f) { fclose(f); }
    misbehave("constructor");
}

static __attribute__((destructor)) void destructor(void)
{
    misbehave("destructor");
}

static int reached(const char* place)
{
    model.status = 0;
    misbehave(place);
    return model.status;
}

static void* begin(const char* name)
{
    snprintf(model.name, sizeof model.name, "%s", name);
    if (setjmp(back)) { return &model; }
    return reached("instantiate") == 0 ? &model : NULL;
}

static int step(double t, double h)
{
    model.t = t;
    model.status = 0;
    if (strcmp(model.kind, "warns") == 0) { // in every step, in words and by status
        say(model.environment, "%s");
        model.status = 1;
    }
    misbehave("step");
    const bool failed = isnan(model.y);
    if (!failed) { model.y += h * model.u; }
    return model.status;
}

#define PLAIN(name, place)                                                                         \
    EXPORT int name(void* c);                                                                      \
    int name(void* c)                                                                              \
    {                                                                                              \
        (void)c;                                                                                   \
        return reached(place);                                                                     \
    }

static void copy(double* out, const unsigned* refs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = refs[i] == 1 ? model.y : model.u;
    }
}

static void take(const double* in, const unsigned* refs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (refs[i] == 0) { model.u = in[i]; }
    }
}

#ifdef FMI3
EXPORT const char* fmi3GetVersion(void);
EXPORT void* fmi3InstantiateCoSimulation(const char*, const char*, const char*, bool, bool, bool,
                                         bool, const unsigned*, size_t, void*, logger3*, void*);
EXPORT void fmi3FreeInstance(void*);
EXPORT int fmi3EnterInitializationMode(void*, bool, double, double, bool, double);
EXPORT int fmi3GetFloat64(void*, const unsigned*, size_t, double*, size_t);
EXPORT int fmi3SetFloat64(void*, const unsigned*, size_t, const double*, size_t);
EXPORT int fmi3DoStep(void*, double, double, bool, bool*, bool*, bool*, double*);
const char* fmi3GetVersion(void)
{
    return "3.0";
}
void* fmi3InstantiateCoSimulation(const char* name, const char* token, const char* resources,
                                  bool visible, bool logging, bool events, bool early,
                                  const unsigned* refs, size_t n, void* environment, logger3* log,
                                  void* update)
{
    (void)token, (void)resources, (void)visible, (void)logging, (void)events, (void)early;
    (void)refs, (void)n, (void)update;
    model.logger3 = log;
    model.environment = environment;
    return begin(name);
}
void fmi3FreeInstance(void* c)
{
    (void)c;
    reached("free");
}
int fmi3EnterInitializationMode(void* c, bool has_tolerance, double tolerance, double start,
                                bool has_stop, double stop)
{
    (void)c, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return reached("initialise");
}
int fmi3GetFloat64(void* c, const unsigned* refs, size_t n, double* values, size_t count)
{
    (void)c, (void)count;
    copy(values, refs, n);
    return 0;
}
int fmi3SetFloat64(void* c, const unsigned* refs, size_t n, const double* values, size_t count)
{
    (void)c, (void)count;
    take(values, refs, n);
    return 0;
}
int fmi3DoStep(void* c, double t, double h, bool rollback, bool* event, bool* terminate,
               bool* early, double* last)
{
    (void)c, (void)rollback;
    *event = *terminate = *early = false;
    *last = t + h;
    return step(t, h);
}
PLAIN(fmi3ExitInitializationMode, "")
PLAIN(fmi3Terminate, "terminate")
PLAIN(fmi3Reset, "reset")
#else
EXPORT const char* fmi2GetVersion(void);
EXPORT const char* fmi2GetTypesPlatform(void);
EXPORT void* fmi2Instantiate(const char*, int, const char*, const char*, const callbacks*, int,
                             int);
EXPORT void fmi2FreeInstance(void*);
EXPORT int fmi2SetupExperiment(void*, int, double, double, int, double);
EXPORT int fmi2GetReal(void*, const unsigned*, size_t, double*);
EXPORT int fmi2SetReal(void*, const unsigned*, size_t, const double*);
EXPORT int fmi2DoStep(void*, double, double, int);
EXPORT int fmi2GetStatus(void*, int, int*);
EXPORT int fmi2GetFMUstate(void*, void**);
EXPORT int fmi2SetFMUstate(void*, void*);
EXPORT int fmi2FreeFMUstate(void*, void**);
const char* fmi2GetVersion(void)
{
    return "2.0";
}
const char* fmi2GetTypesPlatform(void)
{
    return "default";
}
void* fmi2Instantiate(const char* name, int kind, const char* token, const char* resources,
                      const callbacks* k, int visible, int logging)
{
    (void)kind, (void)token, (void)resources, (void)visible, (void)logging;
    model.logger = k->logger;
    model.environment = k->environment;
    return begin(name);
}
void fmi2FreeInstance(void* c)
{
    (void)c;
    reached("free");
}
int fmi2SetupExperiment(void* c, int has_tolerance, double tolerance, double start, int has_stop,
                        double stop)
{
    (void)c, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return 0;
}
int fmi2GetReal(void* c, const unsigned* refs, size_t n, double* values)
{
    (void)c;
    copy(values, refs, n);
    return 0;
}
int fmi2SetReal(void* c, const unsigned* refs, size_t n, const double* values)
{
    (void)c;
    take(values, refs, n);
    return 0;
}
int fmi2DoStep(void* c, double t, double h, int rollback)
{
    (void)c, (void)rollback;
    return step(t, h);
}
int fmi2GetStatus(void* c, int kind, int* value) // a step that never ends
{
    (void)c, (void)kind;
    *value = 5;
    return 0;
}
int fmi2GetFMUstate(void* c, void** state)
{
    (void)c;
    if (!*state) { *state = malloc(sizeof(double)); }
    *(double*)*state = model.y;
    return model.t >= 0.4999 ? reached("get_state") : 0;
}
int fmi2SetFMUstate(void* c, void* state)
{
    (void)c;
    model.y = *(double*)state;
    return reached("set_state");
}
int fmi2FreeFMUstate(void* c, void** state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return reached("free_state");
}
PLAIN(fmi2EnterInitializationMode, "initialise")
PLAIN(fmi2ExitInitializationMode, "")
PLAIN(fmi2Terminate, "terminate")
PLAIN(fmi2Reset, "reset")
#endif
