// Every test enters the sandbox in a child and tries to get out, or to do what has to work inside.
// A child says how many of its sentences did not hold, and prints them.
#include "check.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <mqueue.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

extern char** environ;

// Folders outside and inside: base/secret/key cannot be read, base/open/data can, base/scratch can
// be written.
typedef struct place {
    char base[64], secret[96], key[128], open[96], data[128], scratch[96];
} place;

static int failures;     // of the child
static uid_t become = 0; // the user whom a child of root becomes before it enters

#define holds(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: inside: %s does not hold (errno: %s)\n", __FILE__, __LINE__,   \
                    #cond, strerror(errno));                                                       \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

// The call fails, and by being forbidden (EXDEV: what must not be linked or moved across).
#define denied(expr)                                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        const long denied_r = (long)(expr);                                                        \
        if (denied_r != -1 || (errno != EPERM && errno != EACCES && errno != EXDEV)) {             \
            fprintf(stderr, "%s:%d: inside: %s gave %ld (errno: %s), expected to be denied\n",     \
                    __FILE__, __LINE__, #expr, denied_r, strerror(errno));                         \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static void write_file(const char* path, const char* text)
{
    FILE* f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int setup(void** state)
{
    place* p = calloc(1, sizeof *p);
    strcpy(p->base, "/tmp/test_sandbox_XXXXXX");
    if (!mkdtemp(p->base)) { return -1; }
    snprintf(p->secret, sizeof p->secret, "%s/secret", p->base);
    snprintf(p->key, sizeof p->key, "%s/key", p->secret);
    snprintf(p->open, sizeof p->open, "%s/open", p->base);
    snprintf(p->data, sizeof p->data, "%s/data", p->open);
    snprintf(p->scratch, sizeof p->scratch, "%s/scratch", p->base);
    mkdir(p->secret, 0700);
    mkdir(p->open, 0700);
    mkdir(p->scratch, 0700);
    write_file(p->key, "key");
    write_file(p->data, "data");
    *state = p;
    return 0;
}

static int remove_one(const char* path, const struct stat* s, int kind, struct FTW* at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static int teardown(void** state)
{
    place* p = *state;
    const int wrong = nftw(p->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
    return wrong;
}

// How the child ends that enters and then runs `body`.
static int inside(const place* p, crdi_sandbox s, void (*body)(const place*))
{
    const char* const readable[] = {p->open};
    if (!s.readable) {
        s.readable = readable;
        s.readable_count = 1;
    }
    s.scratch = p->scratch;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        crd_context* ctx = crd_context_create(NULL);
        if (become && setuid(become) != 0) { _exit(101); }
        if (crdi_sandbox_enter(ctx, &s) != CRD_OK) {
            fprintf(stderr, "not entered: %s\n", crd_error_text(ctx));
            _exit(100);
        }
        body(p);
        _exit(failures > 99 ? 99 : failures);
    }
    int status = -1;
    check_int(waitpid(child, &status, 0), child);
    return status;
}

static void all_hold(const place* p, crdi_sandbox s, void (*body)(const place*))
{
    const int status = inside(p, s, body);
    check(WIFEXITED(status));
    check_int(WEXITSTATUS(status), 0);
}

static bool no_landlock(int version)
{
    if (crdi_landlock_version() >= version) { return false; }
    print_message("this kernel has Landlock %d, below %d\n", crdi_landlock_version(), version);
    return true;
}

// ---- files -------------------------------------------------------------------------------------

static void try_reading(const place* p)
{
    denied(open("/etc/shadow", O_RDONLY));
    denied(open(p->key, O_RDONLY));
    denied(open(p->secret, O_RDONLY | O_DIRECTORY));
    denied(open("/", O_RDONLY | O_DIRECTORY));
    denied(open("/proc", O_RDONLY | O_DIRECTORY));
    denied(open("/root", O_RDONLY | O_DIRECTORY));
    denied(open("/home", O_RDONLY | O_DIRECTORY));
    denied(open("../secret/key", O_RDONLY));
    // a link to it does not help, be it one's own or one through /proc
    holds(symlink(p->key, "link") == 0);
    denied(open("link", O_RDONLY));
    const int fd = open(p->key, O_PATH);
    if (fd >= 0) {
        char path[64], byte;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        denied(open(path, O_RDONLY));
        holds(read(fd, &byte, 1) == -1);
    }
    denied(open("/proc/self/root/etc/shadow", O_RDONLY));
    denied(link(p->key, "hard"));
    denied(rename(p->key, "moved"));
    const int here = open(p->data, O_RDONLY);
    char text[8] = {0};
    holds(here >= 0 && read(here, text, 4) == 4 && strcmp(text, "data") == 0);
}

static void nothing_outside_can_be_read(void** state)
{
    if (no_landlock(1)) { skip(); }
    all_hold(*state, (crdi_sandbox){0}, try_reading);
}

static void try_writing(const place* p)
{
    char path[200];
    denied(open(p->data, O_WRONLY));
    denied(open(p->data, O_RDONLY | O_TRUNC));
    denied(truncate(p->data, 0));
    denied(unlink(p->data));
    snprintf(path, sizeof path, "%s/new", p->open);
    denied(open(path, O_CREAT | O_WRONLY, 0600));
    denied(mkdir(path, 0700));
    denied(symlink("/", path));
    denied(open("/tmp/cardan_sandbox_was_here", O_CREAT | O_WRONLY, 0600));
    // what is readable does not become writable below another name
    denied(link(p->data, "hard"));
    holds(symlink(p->data, "soft") == 0);
    denied(open("soft", O_WRONLY));
    denied(rename(p->data, "moved"));
    // nor can it be spoilt without being opened
    denied(chmod(p->data, 0));
    denied(fchmodat(AT_FDCWD, p->key, 0, 0));
    denied(chown(p->data, 1, 1));
    denied(utimes(p->data, NULL));
    denied(utimensat(AT_FDCWD, p->key, NULL, 0));
    denied(setxattr(p->key, "user.x", "y", 1, 0));
}

static void nothing_outside_can_be_written(void** state)
{
    if (no_landlock(1)) { skip(); }
    const place* p = *state;
    all_hold(p, (crdi_sandbox){0}, try_writing);
    struct stat info;
    check_int(stat(p->data, &info), 0);
    check_int(info.st_size, 4);
    check_int(info.st_mode & 0777, 0644 & ~022 & info.st_mode & 0777);
    check(info.st_mode & S_IRUSR);
}

static void use_scratch(const place* p)
{
    char where[PATH_MAX];
    holds(getcwd(where, sizeof where) && strcmp(where, p->scratch) == 0);
    holds(strcmp(getenv("HOME"), p->scratch) == 0 && strcmp(getenv("TMPDIR"), p->scratch) == 0);
    holds(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
    int fd = open("a/x", O_CREAT | O_RDWR, 0600);
    holds(fd >= 0 && write(fd, "1234", 4) == 4 && ftruncate(fd, 2) == 0 && fchmod(fd, 0400) == 0);
    holds(futimens(fd, NULL) == 0);
    if (crdi_landlock_version() >= 2) { holds(rename("a/x", "b/y") == 0 && unlink("b/y") == 0); }
    holds(rmdir("b") == 0);
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/t_XXXXXX", getenv("TMPDIR"));
    fd = mkstemp(name);
    holds(fd >= 0);
    void* shared = MAP_FAILED;
    holds(ftruncate(fd, 4096) == 0);
    holds((shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) != MAP_FAILED);
}

static void the_scratch_folder_is_one_to_work_in(void** state)
{
    all_hold(*state, (crdi_sandbox){0}, use_scratch);
}

// ---- what has to work --------------------------------------------------------------------------

static void* count_up(void* counter)
{
    __atomic_fetch_add((int*)counter, 1, __ATOMIC_RELAXED);
    return NULL;
}

static volatile sig_atomic_t signalled;
static void note_signal(int number)
{
    signalled = number;
}

static void use_threads(const place* p)
{
    (void)p;
    pthread_t t[8];
    int counter = 0;
    for (int i = 0; i < 8; i++) {
        holds(pthread_create(&t[i], NULL, count_up, &counter) == 0);
    }
    for (int i = 0; i < 8; i++) {
        holds(pthread_join(t[i], NULL) == 0);
    }
    holds(counter == 8);
    signal(SIGUSR1, note_signal);
    holds(raise(SIGUSR1) == 0 && signalled == SIGUSR1);
    signalled = 0;
    holds(kill(getpid(), SIGUSR1) == 0 && signalled == SIGUSR1);
    signalled = 0;
    holds(pthread_kill(pthread_self(), SIGUSR1) == 0 && signalled == SIGUSR1);
    int pair[2];
    holds(pipe(pair) == 0);
    holds(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct rlimit now;
    holds(getrlimit(RLIMIT_STACK, &now) == 0);
    cpu_set_t cpus;
    holds(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    holds(sched_setaffinity(0, sizeof cpus, &cpus) == 0);
}

static void use_system(const place* p)
{
    (void)p;
    char byte[16];
    int fd = open("/dev/null", O_WRONLY);
    holds(fd >= 0 && write(fd, "x", 1) == 1);
    fd = open("/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600); // as shells open it
    holds(fd >= 0);
    fd = open("/dev/urandom", O_RDONLY);
    holds(fd >= 0 && read(fd, byte, 16) == 16);
    fd = open("/proc/self/maps", O_RDONLY);
    holds(fd >= 0 && read(fd, byte, 16) == 16);
    fd = open("/proc/cpuinfo", O_RDONLY);
    holds(fd >= 0);
    holds(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    setenv("TZ", "Europe/Vienna", 1);
    tzset();
    const time_t summer = 1719835200; // 2024-07-01 12:00 UTC
    struct tm local;
    if (access("/usr/share/zoneinfo/Europe/Vienna", R_OK) == 0) {
        holds(localtime_r(&summer, &local) && local.tm_hour == 14);
    }
    holds(setlocale(LC_ALL, "C.UTF-8") != NULL);
    holds(getpwuid(getuid()) != NULL);
    void* big = malloc(64 << 20);
    holds(big != NULL);
    memset(big, 1, 64 << 20);
    free(big);
    holds(dlopen("libz.so.1", RTLD_NOW) != NULL);
}

static void threads_and_signals_to_oneself_work(void** state)
{
    all_hold(*state, (crdi_sandbox){0}, use_threads);
}

static void files_of_the_system_and_its_libraries_work(void** state)
{
    all_hold(*state, (crdi_sandbox){0}, use_system);
}

static void load_library(const place* p)
{
    char path[200];
    snprintf(path, sizeof path, "%s/own.so", p->open);
    void* own = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!own) { fprintf(stderr, "%s\n", dlerror()); }
    holds(own && dlsym(own, "zlibVersion"));
}

static void a_library_of_a_readable_folder_can_be_loaded(void** state)
{
    const place* p = *state;
    void* z = dlopen("libz.so.1", RTLD_NOW);
    assert_non_null(z);
    Dl_info where;
    check(dladdr(dlsym(z, "zlibVersion"), &where) != 0);
    char command[600];
    snprintf(command, sizeof command, "cp '%s' '%s/own.so'", where.dli_fname, p->open);
    check_int(system(command), 0); // NOLINT(cert-env33-c): the test's own
    dlclose(z);
    all_hold(p, (crdi_sandbox){0}, load_library);
}

// ---- other processes ---------------------------------------------------------------------------

static void try_processes(const place* p)
{
    (void)p;
    const pid_t parent = getppid();
    char path[64], byte = 0;
    denied(kill(parent, 0));
    denied(kill(parent, SIGKILL));
    denied(kill(0, 0));
    denied(kill(-1, 0));
    denied(syscall(SYS_tgkill, parent, parent, SIGKILL));
    denied(syscall(SYS_tkill, parent, SIGKILL));
    denied(sigqueue(parent, SIGTERM, (union sigval){0}));
    denied(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
    denied(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    struct iovec io = {&byte, 1};
    denied(process_vm_readv(parent, &io, 1, &io, 1, 0));
    denied(process_vm_writev(parent, &io, 1, &io, 1, 0));
    denied(syscall(434, parent, 0)); // pidfd_open
    denied(setpriority(PRIO_PROCESS, (id_t)parent, 19));
    denied(setpriority(PRIO_USER, 0, 19));
    const struct rlimit none = {0, 0};
    denied(prlimit(parent, RLIMIT_CPU, &none, NULL));
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    denied(sched_setaffinity(parent, sizeof cpus, &cpus));
    const struct sched_param idle = {0};
    denied(sched_setscheduler(parent, SCHED_IDLE, &idle));
    int pair[2];
    holds(pipe(pair) == 0);
    denied(fcntl(pair[0], F_SETOWN, parent));
    denied(ioctl(0, TIOCSTI, "x"));
    if (crdi_landlock_version() > 0) {
        static const char* const files[] = {"mem", "environ", "cmdline", "fd", "maps", "status"};
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(path, sizeof path, "/proc/%d/%s", parent, files[i]);
            denied(open(path, O_RDONLY));
        }
        snprintf(path, sizeof path, "/proc/%d/mem", parent);
        denied(open(path, O_RDWR));
    }
}

static void other_processes_cannot_be_touched(void** state)
{
    all_hold(*state, (crdi_sandbox){0}, try_processes);
}

static void try_starting(const place* p)
{
    char path[128];
    snprintf(path, sizeof path, "%s/ran", p->scratch);
    char* arguments[] = {"touch", path, NULL};
    pid_t child = -1;
    denied(fork());
    denied(vfork());
    denied(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
    denied(syscall(SYS_clone, SIGCHLD | 0x8000 /* CLONE_PARENT */, NULL, NULL, NULL, NULL));
    holds(posix_spawn(&child, "/bin/touch", NULL, NULL, arguments, environ) == EPERM);
    denied(execve("/bin/touch", arguments, environ));
    denied(execve(path, arguments, environ));
    holds(system("true") != 0); // NOLINT(cert-env33-c)
    holds(popen("true", "r") == NULL);
    errno = 0;
    holds(syscall(435, NULL, 0) == -1 && errno == ENOSYS); // clone3
    errno = 0;
    holds(syscall(100000, NULL) == -1 && errno == ENOSYS); // of a kernel to come
    denied(unshare(CLONE_NEWUSER));
    denied(unshare(CLONE_NEWNS));
}

static void no_process_and_no_program_can_be_started(void** state)
{
    all_hold(*state, (crdi_sandbox){0}, try_starting);
}

static void try_sharing(const place* p)
{
    (void)p;
    denied(shm_open("/cardan_test_sandbox", O_CREAT | O_RDWR, 0600));
    denied(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    denied(mq_open("/cardan_test_sandbox", O_CREAT | O_RDWR, 0600, NULL));
    errno = 0;
    holds(sem_open("/cardan_test_sandbox", O_CREAT, 0600, 0) == SEM_FAILED);
    denied(syscall(SYS_memfd_create, "x", 0));
    denied(syscall(SYS_keyctl, 0, 0, 0));
    denied(syscall(SYS_add_key, "user", "x", "y", 1, -2));
    denied(syscall(SYS_bpf, 0, NULL, 0));
    denied(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    denied(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
    denied(syscall(SYS_chroot, "/"));
    denied(syscall(SYS_init_module, NULL, 0, ""));
    denied(syscall(SYS_reboot, 0, 0, 0, NULL));
    denied(syscall(SYS_sethostname, "x", 1));
    denied(syscall(SYS_userfaultfd, 0));
    denied(syscall(425, 1, NULL)); // io_uring_setup
    denied(syscall(SYS_open_by_handle_at, -1, NULL, 0));
    const struct timespec long_ago = {0};
    denied(clock_settime(CLOCK_REALTIME, &long_ago));
#ifdef __x86_64__
    denied(syscall(SYS_iopl, 3));
    // 32-bit calls, by their own way into the kernel: open("/etc/passwd") there is 5
    long r = 0;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid */) : "memory");
    holds(r == -EPERM || r == -ENOSYS);
#endif
}

static void nothing_is_shared_and_the_machine_stays_as_it_is(void** state)
{
    if (no_landlock(1)) { skip(); }
    all_hold(*state, (crdi_sandbox){0}, try_sharing);
}

// ---- network -----------------------------------------------------------------------------------

static int listener;         // TCP, of the parent, on `port`
static in_port_t port;       // in network order
static int tcp, unix_socket; // made before entering

static int connect_to_listener(int fd)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect(fd, (const struct sockaddr*)&to, sizeof to);
}

static void try_network(const place* p)
{
    (void)p;
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK, AF_PACKET, AF_VSOCK};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        denied(socket(families[i], SOCK_STREAM, 0));
        denied(socket(families[i], SOCK_DGRAM, 0));
    }
    // high bits do not help: the kernel looks at an int, and so does the filter
    denied(syscall(SYS_socket, (1L << 32) | AF_INET, SOCK_STREAM, 0));
    if (crdi_landlock_version() >= 4) {
        denied(connect_to_listener(tcp));
        const struct sockaddr_in any = {.sin_family = AF_INET};
        denied(bind(tcp, (const struct sockaddr*)&any, sizeof any));
    }
    if (crdi_landlock_version() >= 6) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "cardan_test_sandbox_%d", getppid());
        denied(connect(unix_socket, (const struct sockaddr*)&to, sizeof to));
    }
}

static void use_network(const place* p)
{
    (void)p;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    holds(fd >= 0 && connect_to_listener(fd) == 0);
    holds(socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || errno == EAFNOSUPPORT);
    denied(socket(AF_UNIX, SOCK_STREAM, 0));
    denied(socket(AF_PACKET, SOCK_RAW, 0));
}

static void network_is_closed_unless_asked_for(void** state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check_int(bind(listener, (const struct sockaddr*)&at, sizeof at), 0);
    check_int(listen(listener, 4), 0);
    check_int(getsockname(listener, (struct sockaddr*)&at, &length), 0);
    port = at.sin_port;
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    unix_socket = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un abstract = {.sun_family = AF_UNIX};
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "cardan_test_sandbox_%d",
             getpid());
    check_int(bind(server, (const struct sockaddr*)&abstract, sizeof abstract), 0);
    check_int(listen(server, 4), 0);
    all_hold(*state, (crdi_sandbox){0}, try_network);
    all_hold(*state, (crdi_sandbox){.network = true}, use_network);
    close(listener);
    close(tcp);
    close(unix_socket);
    close(server);
}

// ---- programs ----------------------------------------------------------------------------------

static int run_shell(const char* command)
{
    char* arguments[] = {"sh", "-c", (char*)command, NULL};
    pid_t child = -1;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) { return -1; }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void use_programs(const place* p)
{
    char command[400];
    holds(run_shell("echo hello > made && cat made | grep -q hello") == 0);
    snprintf(command, sizeof command, "cat '%s' >/dev/null", p->data);
    holds(run_shell(command) == 0);
    snprintf(command, sizeof command, "cat '%s' 2>/dev/null", p->key);
    holds(run_shell(command) != 0);
    snprintf(command, sizeof command, "(echo x > '%s/new') 2>/dev/null", p->open);
    holds(run_shell(command) != 0);
    snprintf(command, sizeof command, "kill -0 %d 2>/dev/null", getppid());
    holds(run_shell(command) != 0);
    // what it made itself is data, not a program
    holds(run_shell("cp /bin/true own && (./own) 2>/dev/null") != 0);
    denied(unshare(CLONE_NEWUSER));
    denied(syscall(SYS_clone, SIGCHLD | 0x8000 /* CLONE_PARENT */, NULL, NULL, NULL, NULL));
    denied(socket(AF_INET, SOCK_STREAM, 0));
    denied(kill(getppid(), 0));
}

static void programs_that_are_asked_for_are_shut_in_too(void** state)
{
    if (no_landlock(6)) { skip(); }
    all_hold(*state, (crdi_sandbox){.programs = true}, use_programs);
}

// ---- limits ------------------------------------------------------------------------------------

static void use_too_much(const place* p)
{
    (void)p;
    void* big = malloc(512 << 20);
    holds(big == NULL && errno == ENOMEM);
    holds(mmap(NULL, 512 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) ==
          MAP_FAILED);
    int last = 0;
    for (int i = 0; i < 100 && last >= 0; i++) {
        last = open("/dev/null", O_RDONLY);
    }
    holds(last == -1 && errno == EMFILE);
    struct rlimit more = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    denied(setrlimit(RLIMIT_AS, &more));
    struct rlimit core = {0};
    holds(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
    struct rlimit size = {0};
    holds(getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_max == 1 << 20);
}

static void limits_hold_and_cannot_be_raised(void** state)
{
#ifdef __SANITIZE_ADDRESS__
    skip(); // its shadow alone is larger
#endif
    all_hold(*state, (crdi_sandbox){.memory = 256 << 20, .files = 40, .file_size = 1 << 20},
             use_too_much);
}

static void write_two_megabytes(const place* p)
{
    (void)p;
    static char block[1 << 20];
    signal(SIGXFSZ, SIG_IGN);
    const int fd = open("big", O_CREAT | O_WRONLY, 0600);
    holds(write(fd, block, sizeof block) == sizeof block);
    errno = 0;
    holds(write(fd, block, sizeof block) == -1 && errno == EFBIG);
}

static void a_file_too_large_is_not_written(void** state)
{
    all_hold(*state, (crdi_sandbox){.file_size = 1 << 20}, write_two_megabytes);
}

static void spin(const place* p)
{
    (void)p;
    for (volatile uint64_t i = 0;; i++) {}
}

static void whoever_computes_too_long_is_killed(void** state)
{
    const int status = inside(*state, (crdi_sandbox){.cpu_seconds = 1}, spin);
    check(WIFSIGNALED(status));
    check(WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
}

static void fork_often(const place* p)
{
    (void)p;
    int children = 0;
    while (children < 20000) {
        const pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        if (child < 0) { break; }
        children++;
    }
    holds(children >= 50 && children < 20000);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM); // all of this domain, none of outside
    while (wait(NULL) > 0) {}
}

static void a_fork_bomb_ends_at_the_limit(void** state)
{
    if (no_landlock(6)) { skip(); } // the bomb is ended by a signal to its group
    const place* p = *state;
    if (getuid() == 0) { // whom such limits do not bind
        become = 65534;
        check_int(chmod(p->base, 0755), 0);
        check_int(chown(p->scratch, become, become), 0);
        check_int(chown(p->open, become, become), 0);
    }
    all_hold(p, (crdi_sandbox){.programs = true, .processes = 50}, fork_often);
    become = 0;
}

// ---- how it is entered -------------------------------------------------------------------------

static void do_nothing(const place* p)
{
    (void)p;
}

static void read_more(const place* p)
{
    holds(open(p->key, O_RDONLY) >= 0);
    denied(open(p->key, O_WRONLY));
    denied(open("/etc/shadow", O_RDONLY));
}

static void the_environment_can_name_more_to_read(void** state)
{
    if (no_landlock(1)) { skip(); }
    const place* p = *state;
    char list[300];
    snprintf(list, sizeof list, "relative::/no/such/folder:%s", p->secret);
    setenv("CARDAN_READABLE", list, 1);
    all_hold(p, (crdi_sandbox){0}, read_more);
    unsetenv("CARDAN_READABLE");
}

static void a_path_that_is_not_there_is_named(void** state)
{
    if (no_landlock(1)) { skip(); }
    const char* const readable[] = {"/no/such/folder"};
    const int status =
        inside(*state, (crdi_sandbox){.readable = readable, .readable_count = 1}, do_nothing);
    check_int(WEXITSTATUS(status), 100);
}

static void* wait_for_byte(void* pipe)
{
    char byte;
    return read(*(int*)pipe, &byte, 1) == 1 ? NULL : pipe;
}

static void with_two_threads_it_is_not_entered(void** state)
{
    (void)state;
    int pair[2];
    pthread_t other;
    check_int(pipe(pair), 0);
    check_int(pthread_create(&other, NULL, wait_for_byte, &pair[0]), 0);
    crd_context* ctx = crd_context_create(NULL);
    check_status(crdi_sandbox_enter(ctx, &(crdi_sandbox){0}), CRD_E_STATE);
    check_contains(crd_error_text(ctx), "more than one thread");
    crd_context_destroy(ctx);
    check_int(write(pair[1], "x", 1), 1);
    pthread_join(other, NULL);
    close(pair[0]);
    close(pair[1]);
}

static void what_is_missing_is_said(void** state)
{
    (void)state;
    char text[128];
    crdi_sandbox_missing(text, sizeof text);
    check_int(strstr(text, "Landlock") != NULL, crdi_landlock_version() == 0);
    check_int(strstr(text, "seccomp") != NULL, !crdi_seccomp_there());
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(nothing_outside_can_be_read),
        test(nothing_outside_can_be_written),
        test(the_scratch_folder_is_one_to_work_in),
        test(threads_and_signals_to_oneself_work),
        test(files_of_the_system_and_its_libraries_work),
        test(a_library_of_a_readable_folder_can_be_loaded),
        test(other_processes_cannot_be_touched),
        test(no_process_and_no_program_can_be_started),
        test(nothing_is_shared_and_the_machine_stays_as_it_is),
        test(network_is_closed_unless_asked_for),
        test(programs_that_are_asked_for_are_shut_in_too),
        test(limits_hold_and_cannot_be_raised),
        test(a_file_too_large_is_not_written),
        test(whoever_computes_too_long_is_killed),
        test(a_fork_bomb_ends_at_the_limit),
        test(the_environment_can_name_more_to_read),
        test(a_path_that_is_not_there_is_named),
        test(with_two_threads_it_is_not_entered),
        test(what_is_missing_is_said),
    };
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
