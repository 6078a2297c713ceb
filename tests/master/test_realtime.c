#include "check.h"
#include "master/pace/realtime.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTE = CRD_PACE_NOTE_BYTES };

static bool fits(const char* note) // was not cut off
{
    return strlen(note) > 0 && strlen(note) < NOTE - 1;
}

// ---- words -------------------------------------------------------------------------------------

static void a_refused_scheduler_names_the_limit_and_the_line_that_mends_it(void** state)
{
    (void)state;
    char note[NOTE];
    crdi_realtime_fifo_note(80, EPERM, 0, false, note, sizeof note);
    check(fits(note));
    check_contains(note, "SCHED_FIFO priority 80: not permitted (RLIMIT_RTPRIO is 0)");
    check_contains(note, "'@realtime - rtprio 95' to /etc/security/limits.d/cardan.conf");
    check_contains(note, "setcap cap_sys_nice,cap_ipc_lock+ep $(command -v cardan)");
    crdi_realtime_fifo_note(99, EPERM, 95, false, note, sizeof note);
    check_contains(note, "RLIMIT_RTPRIO is 95");
    // A line that would not mend it is not given.
    crdi_realtime_fifo_note(99, EPERM, 95, false, note, sizeof note);
    check_contains(note, "rtprio 99");
}

static void a_scheduler_that_limits_allow_is_refused_by_the_container(void** state)
{
    (void)state;
    char note[NOTE];
    for (int i = 0; i < 2; i++) {
        crdi_realtime_fifo_note(80, EPERM, i ? 95 : 0, i == 0, note, sizeof note);
        check(fits(note));
        check_contains(note, "SYS_NICE");
        check(!strstr(note, "limits.d"));
    }
    crdi_realtime_fifo_note(120, EINVAL, 95, true, note, sizeof note);
    check_contains(note, "priority 120");
    check_contains(note, "1 .. 99");
    crdi_realtime_fifo_note(80, ESRCH, 95, true, note, sizeof note);
    check_contains(note, strerror(ESRCH));
}

static void memory_is_locked_only_where_later_allocations_can_be_too(void** state)
{
    (void)state;
    check(!crdi_realtime_may_lock(0, false));
    check(!crdi_realtime_may_lock((uint64_t)64 << 20, false));
    check(crdi_realtime_may_lock(RLIM_INFINITY, false));
    check(crdi_realtime_may_lock(0, true));
    char note[NOTE];
    crdi_realtime_lock_note(0, (uint64_t)8 << 20, false, note, sizeof note);
    check(fits(note));
    check_contains(note, "RLIMIT_MEMLOCK is 8192 KiB");
    check_contains(note, "'@realtime - memlock unlimited' to /etc/security/limits.d/cardan.conf");
    check_contains(note, "setcap cap_sys_nice,cap_ipc_lock+ep");
    crdi_realtime_lock_note(ENOMEM, RLIM_INFINITY, false, note, sizeof note);
    check(fits(note));
    check_contains(note, strerror(ENOMEM));
    check(!strstr(note, "RLIMIT_MEMLOCK"));
}

static void cpus_are_listed_in_ranges(void** state)
{
    (void)state;
    static const struct {
        int cpus[8]; // until the next -1
        const char* want;
    } rows[] = {
        {{-1}, ""},
        {{0, -1}, "0"},
        {{0, 1, -1}, "0-1"},
        {{0, 1, 2, 3, 6, -1}, "0-3, 6"},
        {{5, 7, 9, -1}, "5, 7, 9"},
        {{1, 1022, 1023, -1}, "1, 1022-1023"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int k = 0; rows[i].cpus[k] >= 0; k++) {
            CPU_SET(rows[i].cpus[k], &set);
        }
        char list[96];
        crdi_realtime_cpu_list(&set, list, sizeof list);
        check_text(list, rows[i].want);
    }
    cpu_set_t even;
    CPU_ZERO(&even);
    for (int i = 0; i < CPU_SETSIZE; i += 2) {
        CPU_SET(i, &even);
    }
    char list[32];
    crdi_realtime_cpu_list(&even, list, sizeof list); // too long: ends in dots
    check(strlen(list) < sizeof list);
    check_contains(list, "0, 2, 4");
    check_text(list + strlen(list) - 3, "...");
}

static void a_cpu_that_cannot_be_had_is_told_with_those_that_can(void** state)
{
    (void)state;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    CPU_SET(1, &set);
    CPU_SET(4, &set);
    char note[NOTE];
    crdi_realtime_cpu_note(7, EINVAL, &set, note, sizeof note);
    check(fits(note));
    check_contains(note, "CPU 7");
    check_contains(note, "0-1, 4");
    crdi_realtime_cpu_note(7, EPERM, &set, note, sizeof note);
    check_contains(note, strerror(EPERM));
}

static void the_latency_of_c_states_is_held_by_an_open_file(void** state)
{
    (void)state;
    const char* path = TEST_BUILD_DIR "/cpu_dma_latency";
    unlink(path);
    check_int(crdi_realtime_hold_latency(path), -1); // it does not exist: it is not made
    check(access(path, F_OK) != 0);
    FILE* f = fopen(path, "wb");
    check(f && fwrite("\xff\xff\xff\xff", 1, 4, f) == 4 && fclose(f) == 0);
    const int fd = crdi_realtime_hold_latency(path);
    check(fd >= 0);
    check(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int32_t us = -1;
    f = fopen(path, "rb");
    check(f && fread(&us, sizeof us, 1, f) == 1 && fclose(f) == 0);
    check_int(us, 0);
    check_int(close(fd), 0);
    check_int(crdi_realtime_hold_latency("/dev/full"), -1); // cannot be written
    unlink(path);
}

// ---- this machine ------------------------------------------------------------------------------

static crd_pace_spec wishes(void)
{
    return (crd_pace_spec){.factor = 1, .priority = 80, .cpu = -1, .lock = true};
}

typedef struct facts {
    int policy, priority, slack;
    cpu_set_t cpus;
    int files;       // open ones among the first 64
    long locked_kib; // memory of the process
} facts;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LOCKS = 0 }; // their mlockall does nothing
#else
enum { LOCKS = 1 };
#endif

static long locked_kib(void)
{
    char line[256];
    long kib = -1;
    FILE* f = fopen("/proc/self/status", "r");
    check(f != NULL);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmLck: %ld", &kib) == 1) { break; }
    }
    check_int(fclose(f), 0);
    return kib;
}

static facts look(void)
{
    facts f = {.policy = sched_getscheduler(0), .slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)};
    struct sched_param param;
    check_int(sched_getparam(0, &param), 0);
    f.priority = param.sched_priority;
    CPU_ZERO(&f.cpus);
    check_int(sched_getaffinity(0, sizeof f.cpus, &f.cpus), 0);
    for (int i = 0; i < 64; i++) {
        f.files += fcntl(i, F_GETFD) >= 0;
    }
    f.locked_kib = locked_kib();
    return f;
}

static void check_facts(const facts* a, const facts* b)
{
    check_int(a->policy & ~SCHED_RESET_ON_FORK, b->policy & ~SCHED_RESET_ON_FORK);
    check_int(a->priority, b->priority);
    check_int(a->slack, b->slack);
    check(CPU_EQUAL(&a->cpus, &b->cpus));
    check_int(a->files, b->files);
    check_int(a->locked_kib, b->locked_kib);
}

static int a_cpu(void) // the last one that may be used
{
    cpu_set_t set;
    CPU_ZERO(&set);
    check_int(sched_getaffinity(0, sizeof set, &set), 0);
    int last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set)) { last = i; }
    }
    return last;
}

static void what_was_entered_is_left_as_it_was(void** state)
{
    crd_pace_report r = {0};
    crd_pace_spec spec = wishes();
    spec.cpu = a_cpu();
    const facts before = look();
    crdi_realtime_leave(&r); // nothing was entered
    for (int i = 0; i < 3; i++) {
        check_ok(crdi_realtime_enter(*state, &spec, &r));
        if (i == 1) { check_ok(crdi_realtime_enter(*state, &spec, &r)); } // again, without leaving
        const facts in = look();
        // Whatever this machine allows: the report says what is so.
        check_int(r.fifo, (in.policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO);
        check_int(r.priority, r.fifo ? 80 : -1);
        check_int(in.priority, r.fifo ? 80 : before.priority);
        check(r.pinned);
        check_int(r.cpu, spec.cpu);
        check_int(CPU_COUNT(&in.cpus), 1);
        check(CPU_ISSET(spec.cpu, &in.cpus));
        check_int(in.files, before.files + r.awake);
        if (LOCKS) { check_int(in.locked_kib > 0, r.locked); }
        check_int(r.note_count, !r.fifo + !r.locked);
        for (int k = 0; k < r.note_count; k++) {
            check(fits(r.notes[k]));
        }
        crdi_realtime_leave(&r);
        const facts after = look();
        check_facts(&after, &before);
        crdi_realtime_leave(&r); // twice is fine
    }
}

static void nothing_is_touched_that_is_not_wished(void** state)
{
    crd_pace_report r = {0};
    const crd_pace_spec spec = {.factor = 1, .cpu = -1, .required = true};
    const facts before = look();
    check_ok(crdi_realtime_enter(*state, &spec, &r));
    check(!r.fifo && !r.locked && !r.pinned && !r.awake);
    check_int(r.priority, -1);
    check_int(r.cpu, -1);
    check_int(r.note_count, 0);
    facts in = look();
    check_int(in.slack, 1);
    in.slack = before.slack; // sharper timers are nobody's loss
    check_facts(&in, &before);
    crdi_realtime_leave(&r);
    const facts after = look();
    check_facts(&after, &before);
}

static void a_cpu_that_does_not_exist_is_a_note_or_a_failure(void** state)
{
    crd_pace_report r = {0};
    crd_pace_spec spec = {.factor = 1};
    const int cpus[] = {CPU_SETSIZE - 1, CPU_SETSIZE, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        spec.cpu = cpus[i];
        spec.required = false;
        const facts before = look();
        check_ok(crdi_realtime_enter(*state, &spec, &r));
        check(!r.pinned);
        check_int(r.cpu, -1);
        check_int(r.note_count, 1);
        char list[96];
        crdi_realtime_cpu_list(&before.cpus, list, sizeof list);
        check_contains(r.notes[0], list);
        crdi_realtime_leave(&r);
        spec.required = true;
        check_status(crdi_realtime_enter(*state, &spec, &r), CRD_E_STATE);
        check_text(crd_error_text(*state), r.notes[0]);
        const facts after = look(); // without leaving
        check_facts(&after, &before);
    }
}

static void memory_that_is_not_there_is_told(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_pace_report r = {0};
    const crd_pace_spec spec = wishes();
    const facts before = look();
    a.allocations = 0;
    a.fail_at = 0;
    check_status(crdi_realtime_enter(ctx, &spec, &r), CRD_E_MEMORY);
    check(!r.fifo && !r.locked);
    const facts after = look();
    check_facts(&after, &before);
    a.fail_at = -1;
    check_ok(crdi_realtime_enter(ctx, &spec, &r));
    crdi_realtime_leave(&r);
    check_int(a.live, 1); // the context
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// As an ordinary user whose limits allow it: at the end there is no capability to take the flag
// back that keeps children ordinary.
static void* leave_without_capability(void* ctx)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    static int policy;
    crd_pace_report r = {0};
    const crd_pace_spec spec = {.factor = 1, .priority = 10, .cpu = -1};
    if (crdi_realtime_enter(ctx, &spec, &r) < 0 || !r.fifo) { return NULL; }
    if (syscall(SYS_capget, &head, data) != 0) { return NULL; }
    data[0].effective &= ~(1u << CAP_SYS_NICE); // of this thread alone
    if (syscall(SYS_capset, &head, data) != 0) { return NULL; }
    crdi_realtime_leave(&r);
    policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    return &policy;
}

static void the_scheduler_is_left_also_by_those_who_only_have_the_limit(void** state)
{
    pthread_t thread;
    void* policy = NULL;
    check_int(pthread_create(&thread, NULL, leave_without_capability, *state), 0);
    check_int(pthread_join(thread, &policy), 0);
    if (!policy) { skip(); } // no real time here
    check_int(*(int*)policy, SCHED_OTHER);
}

static void* enter_on_a_small_stack(void* ctx)
{
    crd_pace_report r = {0};
    const crd_pace_spec spec = {.factor = 1, .cpu = -1, .lock = true};
    const crd_status st = crdi_realtime_enter(ctx, &spec, &r);
    crdi_realtime_leave(&r);
    return st == CRD_OK ? ctx : NULL;
}

static void a_thread_with_a_small_stack_survives(void** state)
{
    pthread_attr_t attr;
    pthread_t thread;
    void* good = NULL;
    check_int(pthread_attr_init(&attr), 0);
    check_int(pthread_attr_setstacksize(&attr, 192 << 10), 0);
    check_int(pthread_create(&thread, &attr, enter_on_a_small_stack, *state), 0);
    check_int(pthread_join(thread, &good), 0);
    check(good == *state);
    pthread_attr_destroy(&attr);
}

static void memory_stays_locked_until_the_last_thread_leaves(void** state)
{
    crd_pace_report r = {0};
    const crd_pace_spec spec = {.factor = 1, .cpu = -1, .lock = true};
    check_ok(crdi_realtime_enter(*state, &spec, &r));
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, enter_on_a_small_stack, *state), 0);
    check_int(pthread_join(thread, NULL), 0);
    if (LOCKS) { check_int(locked_kib() > 0, r.locked); }
    crdi_realtime_leave(&r);
    check_int(locked_kib(), 0);
}

enum { DEEP = 384 << 10, PAGE = 4096 };

static __attribute__((noinline)) void go_deep(void)
{
    volatile char here[DEEP];
    for (int i = 0; i < DEEP; i += PAGE) {
        here[i] = 1;
    }
    check_int(here[0], 1);
}

static long faults_here(void)
{
    struct rusage u = {0};
    check_int(getrusage(RUSAGE_THREAD, &u), 0);
    return u.ru_minflt;
}

typedef struct deep {
    crd_context* ctx;
    bool enter;
    long faults;
} deep;

static void* count_faults(void* user)
{
    deep* d = user;
    crd_pace_report r = {0};
    const crd_pace_spec spec = {.factor = 1, .cpu = -1, .lock = true};
    if (d->enter && crdi_realtime_enter(d->ctx, &spec, &r) < 0) { return NULL; }
    const long before = faults_here();
    go_deep();
    d->faults = faults_here() - before;
    if (d->enter) { crdi_realtime_leave(&r); }
    return NULL;
}

static void the_stack_is_there_before_the_first_cycle(void** state)
{
#if defined(__SANITIZE_THREAD__)
    skip(); // its shadow of the stack has faults of its own
#endif
    deep d[2] = {{*state, false, -1}, {*state, true, -1}};
    check_int(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0); // one huge page would be one fault
    for (int i = 0; i < 2; i++) {
        pthread_attr_t attr;
        pthread_t thread;
        check_int(pthread_attr_init(&attr), 0);
        check_int(pthread_attr_setstacksize(&attr, (size_t)(20 + i) << 20), 0); // no used one
        check_int(pthread_create(&thread, &attr, count_faults, &d[i]), 0);
        check_int(pthread_join(thread, NULL), 0);
        check_int(pthread_attr_destroy(&attr), 0);
    }
    check(d[1].faults >= 0);
    check(d[1].faults < DEEP / PAGE / 4);
    check(d[0].faults >= DEEP / PAGE * 3 / 4); // they are seen
    check_int(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

static void* policy_here(void* out)
{
    *(int*)out = sched_getscheduler(0);
    return NULL;
}

static void threads_made_later_are_ordinary_ones(void** state)
{
    crd_pace_report r = {0};
    crd_pace_spec spec = wishes();
    spec.lock = false;
    check_ok(crdi_realtime_enter(*state, &spec, &r));
    int policy = -1;
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, policy_here, &policy), 0);
    check_int(pthread_join(thread, NULL), 0);
    crdi_realtime_leave(&r);
    check_int(policy, SCHED_OTHER);
}

// ---- without rights, in a process of its own ---------------------------------------------------

#define expect(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #cond);                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int without_rights(crd_context* ctx)
{
    const struct rlimit none = {0, 0};
    expect(setrlimit(RLIMIT_RTPRIO, &none) == 0);
    expect(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    if (getuid() == 0) { expect(setuid(65534) == 0); }
    crd_pace_report r = {0};
    crd_pace_spec spec = wishes();
    expect(crdi_realtime_enter(ctx, &spec, &r) == CRD_OK);
    expect(!r.fifo && !r.locked && r.priority == -1);
    expect(r.note_count == 2);
    expect(strstr(r.notes[0], "RLIMIT_MEMLOCK is 0 KiB"));
    expect(strstr(r.notes[1], "SCHED_FIFO priority 80: not permitted (RLIMIT_RTPRIO is 0)"));
    expect(sched_getscheduler(0) == SCHED_OTHER);
    void* later = malloc(8 << 20); // nothing was locked: there is memory
    expect(later);
    memset(later, 1, 8 << 20);
    free(later);
    crdi_realtime_leave(&r);
    spec.required = true;
    expect(crdi_realtime_enter(ctx, &spec, &r) == CRD_E_STATE);
    expect(strcmp(crd_error_text(ctx), r.notes[0]) == 0);
    expect(!r.fifo && !r.locked && !r.awake);
    spec.lock = false;
    spec.priority = 0; // what is not wished is not required
    expect(crdi_realtime_enter(ctx, &spec, &r) == CRD_OK);
    crdi_realtime_leave(&r);
    return 0;
}

static void without_rights_there_are_notes_and_no_failure_unless_required(void** state)
{
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) { _exit(without_rights(*state)); }
    int status = -1;
    check_int(waitpid(child, &status, 0), child);
    check(WIFEXITED(status));
    check_int(WEXITSTATUS(status), 0);
}

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_scheduler_names_the_limit_and_the_line_that_mends_it),
        cmocka_unit_test(a_scheduler_that_limits_allow_is_refused_by_the_container),
        cmocka_unit_test(memory_is_locked_only_where_later_allocations_can_be_too),
        cmocka_unit_test(cpus_are_listed_in_ranges),
        cmocka_unit_test(a_cpu_that_cannot_be_had_is_told_with_those_that_can),
        cmocka_unit_test(the_latency_of_c_states_is_held_by_an_open_file),
        cmocka_unit_test(what_was_entered_is_left_as_it_was),
        cmocka_unit_test(nothing_is_touched_that_is_not_wished),
        cmocka_unit_test(a_cpu_that_does_not_exist_is_a_note_or_a_failure),
        cmocka_unit_test(memory_that_is_not_there_is_told),
        cmocka_unit_test(the_scheduler_is_left_also_by_those_who_only_have_the_limit),
        cmocka_unit_test(a_thread_with_a_small_stack_survives),
        cmocka_unit_test(memory_stays_locked_until_the_last_thread_leaves),
        cmocka_unit_test(the_stack_is_there_before_the_first_cycle),
        cmocka_unit_test(threads_made_later_are_ordinary_ones),
        cmocka_unit_test(without_rights_there_are_notes_and_no_failure_unless_required),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
