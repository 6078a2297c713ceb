// What the cycle thread does in a run on the clock: between its first and its last cycle it takes
// no memory, no lock, and calls the system for nothing but send, receive and sleep. A filter of the
// kernel traps every other call of that thread and the linker shows every malloc and mutex.
#include "models.h"

#include "shared/live.h"
#include "shared/pace.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// ---- what is counted ---------------------------------------------------------------------------

static _Thread_local bool counts; // this thread, now
static int allocations, locks, calls, last_call;

void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* p, size_t size);
void __real_free(void* p);
int __real_pthread_mutex_lock(pthread_mutex_t* m);
int __real_pthread_mutex_unlock(pthread_mutex_t* m);
void* __wrap_malloc(size_t size);
void* __wrap_calloc(size_t n, size_t size);
void* __wrap_realloc(void* p, size_t size);
void __wrap_free(void* p);
int __wrap_pthread_mutex_lock(pthread_mutex_t* m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* m);

void* __wrap_malloc(size_t size)
{
    allocations += counts;
    return __real_malloc(size);
}

void* __wrap_calloc(size_t n, size_t size)
{
    allocations += counts;
    return __real_calloc(n, size);
}

void* __wrap_realloc(void* p, size_t size)
{
    allocations += counts;
    return __real_realloc(p, size);
}

void __wrap_free(void* p)
{
    allocations += counts;
    __real_free(p);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t* m)
{
    locks += counts;
    return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* m)
{
    return __real_pthread_mutex_unlock(m);
}

static void trapped(int signal_number, siginfo_t* info, void* context)
{
    (void)signal_number;
    ucontext_t* u = context;
    if (counts) {
        calls++;
        last_call = info->si_syscall;
    }
#if defined(__x86_64__)
    u->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
    u->uc_mcontext.regs[0] = (uint64_t)-ENOSYS;
#endif
}

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// For the calling thread only, and for the rest of its life. false: the kernel has no such filter.
static bool watch_this_thread(void)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_clock_nanosleep),
        ALLOW(SYS_sendto),
        ALLOW(SYS_sendmsg),
        ALLOW(SYS_recvfrom),
        ALLOW(SYS_recvmsg),
        ALLOW(SYS_ppoll),
        ALLOW(SYS_rt_sigreturn), // of the trap itself
        ALLOW(SYS_exit),         // the end of the thread, when nothing is counted any more
        ALLOW(SYS_madvise),
        ALLOW(SYS_munmap),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// ---- a unit that drops out ---------------------------------------------------------------------

static bool stands_by; // the first unit has a stand-in, and needs it
static double fails_at = INFINITY;

static crd_model_status frail_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    if (t >= fails_at && t < fails_at + 0.5e-3) {
        host->log(host->user, CRD_MODEL_ERROR, "its fuse has blown");
        return CRD_MODEL_ERROR;
    }
    return euler_step(self, host, t, h, reached);
}

static void add_stand_in(crd_unit_spec* u)
{
    static crd_model frail;
    static crd_unit_spec model;
    frail = euler_model;
    frail.step = frail_step;
    model = *u;
    u->model = &frail;
    u->standby.model = &model;
    u->standby.after = 2e-3;
    u->standby.fade = 5e-3;
    fails_at = 30e-3;
}

// ---- the run -----------------------------------------------------------------------------------

enum { CYCLES = 250, UNITS = 4 };

typedef struct {
    crd_context* ctx;
    crd_system* sys;
    crd_master* m;
    crdi_live* live;
    crd_status status;
    bool filtered;
    bool quit;    // atomic
    bool steered; // the watcher sends one of each command
    int sent;     // by the watcher
    char refused[200];
} fixture;

static void open_run(fixture* f, bool coupled, const char* results, const char* exchange,
                     bool watched)
{
    static const char* const names[UNITS] = {"a", "b", "c", "d"};
    static const crd_setting slow = {.variable = "b", .text = "-1"};
    static crd_coupling_spec coupling;
    *f = (fixture){.ctx = crd_context_create(NULL)};
    check_ok(crd_system_create(f->ctx, &f->sys));
    for (int i = 0; i < UNITS; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.source = CRD_UNIT_NATIVE;
        u.name = names[i];
        u.model = &euler_model;
        u.parameters = &slow;
        u.parameter_count = 1;
        if (stands_by && i == 0) { add_stand_in(&u); }
        check_ok(crd_system_add_unit(f->sys, &u, NULL));
    }
    coupling = (crd_coupling_spec){.element = "{\"element\": 1, \"algorithm\": \"eros\"}",
                                   .place = {"", 0},
                                   .channel = {.step = NAN,
                                               .delay = 3e-3,
                                               .jitter = 1e-3,
                                               .loss = 0.05,
                                               .burst = 1,
                                               .duplicate = 0.02,
                                               .seed = 1},
                                   .has_channel = true,
                                   .record = true};
    for (int i = 0; i < UNITS; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.to_unit = (i + 1) % UNITS;
        c.from = "y";
        c.to = "u";
        if (coupled && i % 2) { c.coupling = &coupling; }
        check_ok(crd_system_add_connection(f->sys, &c));
    }
    f->sys->run.step = 1e-3;
    f->sys->run.stop = 1e-3 * (CYCLES + 50);
    f->sys->run.threads = 1;
    f->sys->run.pace.factor = 1;
    f->sys->results.path = results;
    f->sys->results.exchange = exchange;
    check_ok(crd_master_create(f->ctx, f->sys, NULL, &f->m));
    if (watched) { check_ok(crdi_live_create(f->ctx, f->m, NULL, &f->live)); }
    check_ok(crd_master_initialize(f->m));
}

static void* cycle_thread(void* user)
{
    fixture* f = user;
    f->status = crd_master_advance(f->m, 10); // the way into real time
    f->filtered = watch_this_thread();
    counts = true;
    if (f->status >= 0) { f->status = crd_master_advance(f->m, CYCLES); }
    counts = false;
    return NULL;
}

// One command of each kind, one after the other.
static void steer(fixture* f)
{
    const crdi_live_info* info = crdi_live_get_info(f->live);
    const crdi_live_command all[] = {
        {.action = CRDI_LIVE_MARK, .text = "here"},
        {.action = CRDI_LIVE_SET, .name = info->settings[0].name, .text = "0"},
        {.action = CRDI_LIVE_COUPLE, .name = "c.u", .text = "foh"},
        {.action = CRDI_LIVE_FAULT,
         .name = "b.u",
         .fault = CRDI_FAULT_OFFSET,
         .value = 1e-3,
         .duration = 3e-3},
        {.action = CRDI_LIVE_FAULT,
         .name = "c.u",
         .fault = CRDI_FAULT_DELAY,
         .value = 2e-3,
         .duration = NAN},
        {.action = CRDI_LIVE_CLEAR, .name = ""},
        {.action = CRDI_LIVE_PAUSE},
        {.action = CRDI_LIVE_STEP, .count = 2},
        {.action = CRDI_LIVE_START},
    };
    enum { BEHIND = 4, COUNT = sizeof all / sizeof *all }; // once cycles are counted
    const int i = f->sent++ - BEHIND;
    if (i < 0 || i >= COUNT || crdi_live_send(f->live, &all[i]) >= 0) { return; }
    snprintf(f->refused, sizeof f->refused, "command %d: %s", i, crdi_live_error(f->live));
}

static void* watch(void* user)
{
    fixture* f = user;
    const struct timespec pause = {.tv_nsec = 5000000};
    while (!__atomic_load_n(&f->quit, __ATOMIC_RELAXED)) {
        while (crdi_live_read(f->live)) {
            crdi_live_release(f->live);
        }
        (void)crdi_live_get_status(f->live);
        if (f->steered) { steer(f); }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void run_watched(bool coupled, const char* results, const char* exchange, bool watched,
                        bool steered)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); // they have calls of their own
#endif
    fixture f;
    pthread_t cycle, watcher;
    allocations = locks = calls = last_call = 0;
    open_run(&f, coupled, results, exchange, watched);
    f.steered = steered;
    if (watched) { check_int(pthread_create(&watcher, NULL, watch, &f), 0); }
    check_int(pthread_create(&cycle, NULL, cycle_thread, &f), 0);
    pthread_join(cycle, NULL);
    __atomic_store_n(&f.quit, true, __ATOMIC_RELAXED);
    if (watched) { pthread_join(watcher, NULL); }
    check_ok(f.status);
    check_text(f.refused, "");
    if (!f.filtered) { print_message("no filter of the kernel here: calls were not counted\n"); }
    check_int(allocations, 0);
    check_int(locks, 0);
    if (calls) { print_message("the last call was number %d\n", last_call); }
    check_int(calls, 0);
    check_ok(crd_master_finish(f.m));
    const crd_master_report* r = crd_master_get_report(f.m);
    check_int(r->pace->cycles, CYCLES + 10);
    if (stands_by) { check_int(r->units[0].standby->takeovers, 1); }
    if (stands_by) { check_int(r->units[0].standby->returns, 1); }
    crdi_live_destroy(f.live);
    crd_master_destroy(f.m);
    crd_system_destroy(f.sys);
    crd_context_destroy(f.ctx);
}

static void four_units_at_1_khz_only_sleep(void** state)
{
    (void)state;
    run_watched(false, NULL, NULL, false, false);
}

static void so_do_couplings_over_a_channel(void** state)
{
    (void)state;
    run_watched(true, NULL, NULL, false, false);
}

static void so_does_a_run_that_is_recorded(void** state)
{
    (void)state;
    run_watched(true, TEST_BUILD_DIR "/step_path.mf4", TEST_BUILD_DIR "/step_path.exchange.mf4",
                false, false);
}

static void so_does_a_run_that_is_watched(void** state)
{
    (void)state;
    run_watched(true, TEST_BUILD_DIR "/step_path_live.mf4", NULL, true, false);
}

// Also what is rare, with its events in two files.
static void so_does_a_run_that_is_steered(void** state)
{
    (void)state;
    run_watched(true, TEST_BUILD_DIR "/step_path_steered.mf4",
                TEST_BUILD_DIR "/step_path_steered.exchange.mf4", true, true);
}

// The change of hands, and a bench that others bring up meanwhile.
static void so_does_a_run_whose_bench_drops_out_and_comes_back(void** state)
{
    (void)state;
    stands_by = true;
    run_watched(true, TEST_BUILD_DIR "/step_path_standby.mf4", NULL, true, false);
    stands_by = false;
}

// The counters count: what is forbidden is seen.
static int seen;

static void* sin_thread(void* user)
{
    bool* filtered = user;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    *filtered = watch_this_thread();
    counts = true;
    void* volatile p = malloc(10);
    free(p);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    const int before = calls; // the first malloc of a thread asks for an arena
    (void)syscall(SYS_getpid);
    seen = calls - before;
    counts = false;
    return NULL;
}

static void a_call_that_is_none_of_these_would_be_seen(void** state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    pthread_t t;
    bool filtered = false;
    allocations = locks = calls = 0;
    check_int(pthread_create(&t, NULL, sin_thread, &filtered), 0);
    pthread_join(t, NULL);
    check_int(allocations, 2);
    check_int(locks, 1);
    if (filtered) { check_int(seen, 1); }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_none_of_these_would_be_seen),
        cmocka_unit_test(four_units_at_1_khz_only_sleep),
        cmocka_unit_test(so_do_couplings_over_a_channel),
        cmocka_unit_test(so_does_a_run_that_is_recorded),
        cmocka_unit_test(so_does_a_run_that_is_watched),
        cmocka_unit_test(so_does_a_run_that_is_steered),
        cmocka_unit_test(so_does_a_run_whose_bench_drops_out_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
