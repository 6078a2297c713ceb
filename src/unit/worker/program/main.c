// cardan-worker: makes units for a master in another process and carries out what it asks for.
#include "unit/worker/program/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER_VERSION = 126 };

static crdi_server server;

// ---- what is left behind ------------------------------------------------------------------------

// Which function the FMU is in, for the master's sentence. Nothing here but loads and stores.
static void leave_call(void)
{
    const uint32_t at = atomic_load(&server.control->unit);
    const crdi_served* served =
        server.in_call && at < (uint32_t)server.count ? server.units[at] : NULL;
    const char* call = served && served->unit ? crdi_unit_last_call(served->unit) : "";
    char* to = server.control->call;
    size_t n = strnlen(call, sizeof server.control->call - 1);
    for (size_t i = 1; i < n; i++) {
        to[i] = call[i];
    }
    to[n] = 0;
    if (n) { __atomic_store_n(to, call[0], __ATOMIC_RELEASE); } // the first says that it is there
}

static void on_fatal(int number)
{
    leave_call();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_question(int number)
{
    (void)number;
    leave_call();
}

static void on_exit_call(void)
{
    if (server.in_call) { leave_call(); }
}

static void install_handlers(void)
{
    static char stack[64 * 1024];
    const stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&s, NULL);
    struct sigaction fatal = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    struct sigaction question = {.sa_handler = on_question, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigemptyset(&fatal.sa_mask);
    sigemptyset(&question.sa_mask);
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &fatal, NULL);
    }
    sigaction(SIGUSR2, &question, NULL);
    (void)atexit(on_exit_call);
}

#ifdef CRDI_SANITIZED // looking for leaks needs ptrace, which the sandbox does not allow
CRD_API const char* __asan_default_options(void);
const char* __asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

// ---- life --------------------------------------------------------------------------------------

// When the master ends the kernel ends this session; unless it was gone before it could say so.
static bool follow_master(void)
{
    server.master = server.control->master; // what is shared can be changed by an FMU
    return getppid() == server.master;
}

// A segment of System V by its number, else a file.
static bool open_channel(const char* segment)
{
    struct stat s;
    struct shmid_ds d;
    void* p = MAP_FAILED;
    if (segment) {
        const int id = atoi(segment);
        if (shmctl(id, IPC_STAT, &d) == 0 && d.shm_segsz == CRDI_CHANNEL_BYTES) {
            p = shmat(id, NULL, 0); // fails as mmap does, with -1
        }
    } else if (fstat(CRDI_CHANNEL_FD, &s) == 0 && s.st_size == (off_t)CRDI_CHANNEL_BYTES) {
        p = mmap(NULL, CRDI_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                 CRDI_CHANNEL_FD, 0);
    }
    if (p == MAP_FAILED) { return false; }
    server.memory = p;
    server.control = p;
    return true;
}

int main(int argc, char** argv)
{
    if (!open_channel(argc > 1 ? argv[1] : NULL)) {
        fprintf(stderr, "cardan-worker is started by Cardan itself, for units with 'isolate'\n");
        return 2;
    }
    if (server.control->layout != crdi_channel_layout()) { return OTHER_VERSION; }
    if (!follow_master()) { return 1; }
    const int victim = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (victim >= 0) { // when memory runs out it is this process, not the run
        if (write(victim, "1000", 4) < 0) { return 1; }
        close(victim);
    }
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); // it has a map of a gigabyte
    install_handlers();
    return crdi_serve(&server);
}
