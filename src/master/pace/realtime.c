// What real time needs of the system, as far as it lets us: scheduler, CPU, memory, C-states.
// What crdi_realtime_leave has to undo is kept per thread in `saved`; locked memory and malloc's
// thresholds belong to the process, so that the last thread that leaves lets go of them.
#include "master/pace/realtime.h"
#include "shared/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STACK_BYTES = 512 << 10, // touched before the first cycle
    STACK_CHUNK = 16 << 10,
    STACK_SPARE = 64 << 10, // of a small stack, left alone
    HEAP_BYTES = 1 << 20,
};

static _Thread_local struct {
    int policy; // -1: not changed
    struct sched_param param;
    bool pinned;
    cpu_set_t cpus;
    int slack;   // ns of the thread's timers, 0: not changed
    int latency; // open file, -1: none
    bool memory; // this thread is one of `holders`
    bool entered;
} saved = {.policy = -1, .latency = -1};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static int holders; // threads that want memory to stay, under the lock

// ---- words -------------------------------------------------------------------------------------
// setcap replaces what was there, so that its line names both capabilities.

void crdi_realtime_fifo_note(int priority, int error, uint64_t limit, bool capable, char* out,
                             size_t size)
{
    if (error == EPERM && !capable && limit < (uint64_t)priority) {
        snprintf(out, size,
                 "SCHED_FIFO priority %d: not permitted (RLIMIT_RTPRIO is %llu); add '@realtime - "
                 "rtprio %d' to /etc/security/limits.d/cardan.conf, or 'setcap "
                 "cap_sys_nice,cap_ipc_lock+ep "
                 "$(command -v cardan)'",
                 priority, (unsigned long long)limit, priority > 95 ? 99 : 95);
    } else if (error == EPERM) {
        snprintf(out, size,
                 "SCHED_FIFO priority %d: not permitted, although the limits allow it: the control "
                 "group or the container has no real time; run it with '--cap-add=SYS_NICE', or "
                 "give cpu.rt_runtime_us a value",
                 priority);
    } else if (error == EINVAL) {
        snprintf(out, size,
                 "SCHED_FIFO priority %d: there are 1 .. 99; set 'priority' to one of them",
                 priority);
    } else {
        snprintf(out, size, "SCHED_FIFO priority %d: %s", priority, strerror(error));
    }
}

bool crdi_realtime_may_lock(uint64_t limit, bool capable)
{
    return capable || limit == RLIM_INFINITY;
}

void crdi_realtime_lock_note(int error, uint64_t limit, bool capable, char* out, size_t size)
{
    if (!crdi_realtime_may_lock(limit, capable)) {
        snprintf(out, size,
                 "locked memory: not permitted (RLIMIT_MEMLOCK is %llu KiB); add '@realtime - "
                 "memlock unlimited' to /etc/security/limits.d/cardan.conf, or 'setcap "
                 "cap_sys_nice,cap_ipc_lock+ep $(command -v cardan)'",
                 (unsigned long long)(limit >> 10));
    } else {
        snprintf(out, size,
                 "locked memory: %s; pages may be swapped out: free memory, or 'swapoff -a'",
                 strerror(error));
    }
}

void crdi_realtime_cpu_list(const cpu_set_t* set, char* out, size_t size)
{
    enum { RANGE = 16 }; // ", 1022-1023" and the zero
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, set)) { continue; }
        int last = i;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set)) {
            last++;
        }
        if (size - n < RANGE + sizeof ", ...") {
            snprintf(out + n, size - n, ", ...");
            return;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%d", n > 0 ? ", " : "", i);
        if (last > i) { n += (size_t)snprintf(out + n, size - n, "-%d", last); }
        i = last;
    }
}

void crdi_realtime_cpu_note(int cpu, int error, const cpu_set_t* allowed, char* out, size_t size)
{
    if (error == EINVAL) {
        char list[96];
        crdi_realtime_cpu_list(allowed, list, sizeof list);
        snprintf(out, size,
                 "CPU %d: it does not exist, or this process may not use it; it may use %s: set "
                 "'cpu' to one of them",
                 cpu, list);
    } else {
        snprintf(out, size, "CPU %d: %s", cpu, strerror(error));
    }
}

// ---- attempts ----------------------------------------------------------------------------------

// The next free note, the last one over and over when there are too many.
static char* new_note(crd_pace_report* r)
{
    if (r->note_count < CRD_PACE_NOTES) { r->note_count++; }
    return r->notes[r->note_count - 1];
}

static bool capable(int capability)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &head, data) != 0) { return false; }
    return data[capability / 32].effective >> (capability % 32) & 1u;
}

static uint64_t limit_of(__rlimit_resource_t resource)
{
    struct rlimit l;
    return getrlimit(resource, &l) == 0 ? (uint64_t)l.rlim_cur : 0;
}

// Threads and processes that this one makes later start as ordinary ones.
static void try_fifo(int priority, crd_pace_report* r)
{
    struct sched_param old;
    const int policy = sched_getscheduler(0);
    const struct sched_param wish = {.sched_priority = priority};
    if (policy >= 0 && sched_getparam(0, &old) == 0 &&
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wish) == 0) {
        saved.policy = policy;
        saved.param = old;
        r->fifo = true;
        r->priority = priority;
        return;
    }
    const int error = errno;
    crdi_realtime_fifo_note(priority, error, limit_of(RLIMIT_RTPRIO), capable(CAP_SYS_NICE),
                            new_note(r), CRD_PACE_NOTE_BYTES);
}

static void try_cpu(int cpu, crd_pace_report* r)
{
    cpu_set_t old, one;
    CPU_ZERO(&old);
    CPU_ZERO(&one);
    int error = pthread_getaffinity_np(pthread_self(), sizeof old, &old);
    if (error == 0) {
        if (cpu < CPU_SETSIZE) { CPU_SET(cpu, &one); }
        error = pthread_setaffinity_np(pthread_self(), sizeof one, &one); // none: EINVAL
    }
    if (error == 0) {
        saved.pinned = true;
        saved.cpus = old;
        r->pinned = true;
        r->cpu = cpu;
        return;
    }
    crdi_realtime_cpu_note(cpu, error, &old, new_note(r), CRD_PACE_NOTE_BYTES);
}

// Recursion, as the compiler may not know the size of what is on the stack.
static __attribute__((noinline)) void touch_stack(size_t bytes)
{
    volatile char here[STACK_CHUNK];
    for (size_t i = 0; i < sizeof here; i += 4096) {
        here[i] = 0;
    }
    if (bytes > sizeof here) { touch_stack(bytes - sizeof here); }
    here[0] = 1; // after the call: no loop is made of it
}

// As much of STACK_BYTES as this thread's stack has left.
static size_t stack_left(void)
{
    pthread_attr_t attr;
    void* low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) { return 0; }
    const int error = pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    const char* here = __builtin_frame_address(0);
    if (error != 0 || here < (char*)low + STACK_SPARE) { return 0; }
    const size_t left = (size_t)(here - (char*)low) - STACK_SPARE;
    return left < STACK_BYTES ? left : STACK_BYTES;
}

// What is allocated and freed stays with the process, so that its pages are there already.
static crd_status keep_memory(crd_context* ctx, crd_pace_report* r)
{
    const uint64_t limit = limit_of(RLIMIT_MEMLOCK);
    const bool may = crdi_realtime_may_lock(limit, capable(CAP_IPC_LOCK));
    pthread_mutex_lock(&memory_lock);
    holders += !saved.memory;
    saved.memory = true;
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_MAX, 0);
    r->locked = may && crdi_lock_memory();
    const int error = may && !r->locked ? errno : 0;
    pthread_mutex_unlock(&memory_lock);
    if (!r->locked) {
        crdi_realtime_lock_note(error, limit, may, new_note(r), CRD_PACE_NOTE_BYTES);
    }
    const size_t left = stack_left();
    if (left > STACK_CHUNK) { touch_stack(left - STACK_CHUNK); }
    char* heap = crdi_new(ctx, HEAP_BYTES);
    if (!heap) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < HEAP_BYTES; i += 4096) {
        ((volatile char*)heap)[i] = 1;
    }
    crd_free(ctx, heap);
    return CRD_OK;
}

static void release_memory(void)
{
    pthread_mutex_lock(&memory_lock);
    if (--holders == 0) {
        munlockall();
        mallopt(M_TRIM_THRESHOLD, 128 << 10);
        mallopt(M_MMAP_MAX, 65536);
    }
    pthread_mutex_unlock(&memory_lock);
}

int crdi_realtime_hold_latency(const char* path)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) { return -1; }
    const int32_t us = 0;
    if (write(fd, &us, sizeof us) == (ssize_t)sizeof us) { return fd; }
    close(fd);
    return -1;
}

// The system may otherwise wake an ordinary thread 50 us late to wake several at once.
static void sharpen_timers(void)
{
    const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (slack > 1 && prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0) { saved.slack = slack; }
}

crd_status crdi_realtime_enter(crd_context* ctx, const crd_pace_spec* spec, crd_pace_report* report)
{
    crdi_realtime_leave(report); // entered twice: from the beginning
    report->fifo = report->locked = report->pinned = report->awake = false;
    report->priority = report->cpu = -1;
    report->note_count = 0;
    saved.entered = true;
    crd_status st = CRD_OK;
    if (spec->lock) { CRD_TRY(keep_memory(ctx, report)); }
    if (spec->cpu >= 0) { try_cpu(spec->cpu, report); }
    sharpen_timers();
    if (spec->priority > 0) {
        saved.latency = crdi_realtime_hold_latency("/dev/cpu_dma_latency");
        report->awake = saved.latency >= 0;
        try_fifo(spec->priority, report);
    }
    if (spec->required && report->note_count > 0) {
        CRD_TRY(crdi_fail(ctx, CRD_E_STATE, "%s", report->notes[0]));
    }
    return CRD_OK;
fail:
    crdi_realtime_leave(report);
    report->fifo = report->locked = report->pinned = report->awake = false;
    report->priority = report->cpu = -1;
    return st;
}

void crdi_realtime_leave(const crd_pace_report* report)
{
    (void)report;
    if (!saved.entered) { return; }
    saved.entered = false;
    if (saved.policy >= 0 && sched_setscheduler(0, saved.policy, &saved.param) != 0) {
        // Only CAP_SYS_NICE may take that flag back; without it the scheduler alone is as before.
        sched_setscheduler(0, saved.policy | SCHED_RESET_ON_FORK, &saved.param);
    }
    if (saved.pinned) { pthread_setaffinity_np(pthread_self(), sizeof saved.cpus, &saved.cpus); }
    if (saved.slack > 0) { prctl(PR_SET_TIMERSLACK, saved.slack, 0, 0, 0); }
    if (saved.latency >= 0) { close(saved.latency); }
    if (saved.memory) { release_memory(); }
    saved.policy = saved.latency = -1;
    saved.pinned = saved.memory = false;
    saved.slack = 0;
}
