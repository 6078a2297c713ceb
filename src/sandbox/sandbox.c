// How a process shuts itself in: one thing after the other, the filter last.
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

// Names in a folder of /proc that are numbers: processes or threads. 0: it cannot be read.
static uint64_t count_numbers(const char* path)
{
    uint64_t count = 0;
    DIR* dir = opendir(path);
    for (struct dirent* e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        count += e->d_name[0] >= '0' && e->d_name[0] <= '9';
    }
    if (dir) { closedir(dir); }
    return count;
}

// Threads of the whole machine, from "0.1 0.2 0.3 1/543 678". RLIMIT_NPROC counts those of a user;
// to count them would take longer (14 ms) than everything else here (0.5 ms).
static uint64_t threads_now(void)
{
    unsigned long long all = 0;
    FILE* f = fopen("/proc/loadavg", "r");
    if (f && fscanf(f, "%*s %*s %*s %*u/%20llu", &all) != 1) { all = 0; }
    if (f) { (void)fclose(f); }
    return all ? all : 4096;
}

// Soft and hard: what is shut in cannot raise it again.
static crd_status limit(crd_context* ctx, int resource, const char* what, uint64_t value)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) != 0) { now.rlim_max = RLIM_INFINITY; }
    if ((rlim_t)value > now.rlim_max) { value = now.rlim_max; }
    const struct rlimit wanted = {.rlim_cur = value, .rlim_max = value};
    if (setrlimit((__rlimit_resource_t)resource, &wanted) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: the limit of %s to %llu: %s", what,
                         (unsigned long long)value, strerror(errno));
    }
    return CRD_OK;
}

static crd_status set_limits(crd_context* ctx, const crdi_sandbox* s)
{
    crd_status st = CRD_OK;
    CRD_TRY(limit(ctx, RLIMIT_CORE, "core files", 0));
    CRD_TRY(limit(ctx, RLIMIT_RTPRIO, "priority in real time", 0)); // a run may have them
    CRD_TRY(limit(ctx, RLIMIT_NICE, "priority", 0));
    if (s->cpu_seconds) { CRD_TRY(limit(ctx, RLIMIT_CPU, "CPU seconds", s->cpu_seconds)); }
    if (s->memory) { CRD_TRY(limit(ctx, RLIMIT_AS, "memory", s->memory)); }
    if (s->files) { CRD_TRY(limit(ctx, RLIMIT_NOFILE, "open files", s->files)); }
    if (s->file_size) { CRD_TRY(limit(ctx, RLIMIT_FSIZE, "file size", s->file_size)); }
    if (s->processes) {
        CRD_TRY(limit(ctx, RLIMIT_NPROC, "processes", threads_now() + s->processes));
    }
fail:
    return st;
}

static crd_status use_scratch(crd_context* ctx, const char* folder)
{
    if (chdir(folder) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: the scratch folder '%s': %s", folder,
                         strerror(errno));
    }
    if (setenv("TMPDIR", folder, 1) != 0 || setenv("HOME", folder, 1) != 0) { return CRD_E_MEMORY; }
    return CRD_OK;
}

// Root, or whoever was given capabilities, goes without them. Only reading whatever Landlock lets
// through stays: the files may be those of the user who called sudo.
static crd_status drop_capabilities(crd_context* ctx, bool keep_reading)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &head, had) == 0 && keep_reading) {
        const uint32_t reading = 1U << CAP_DAC_READ_SEARCH;
        left[0].effective = left[0].permitted = had[0].permitted & reading;
    }
    if (syscall(SYS_capset, &head, left) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: capabilities: %s", strerror(errno));
    }
    return CRD_OK;
}

void crdi_sandbox_missing(char* text, size_t room)
{
    const bool files = crdi_landlock_version() > 0, calls = crdi_seccomp_there();
    snprintf(text, room, "%s%s%s", files ? "" : "no Landlock (files are not restricted)",
             files || calls ? "" : ", ",
             calls ? "" : "no seccomp (system calls are not restricted)");
}

void crdi_sandbox_tell(char* text, size_t room)
{
    char missing[128], landlock[32] = "";
    crdi_sandbox_missing(missing, sizeof missing);
    if (crdi_landlock_version() > 0) {
        snprintf(landlock, sizeof landlock, "Landlock %d, ", crdi_landlock_version());
    }
    snprintf(text, room, "%s%slimits%s%s", landlock, crdi_seccomp_there() ? "seccomp, " : "",
             missing[0] ? "; " : "", missing);
}

crd_status crdi_sandbox_enter(crd_context* ctx, const crdi_sandbox* s)
{
    crd_status st = CRD_OK;
    char missing[128];
    const int landlock = crdi_landlock_version();
    if (count_numbers("/proc/self/task") > 1) {
        return crdi_fail(ctx, CRD_E_STATE, "sandbox: this process has more than one thread");
    }
    crdi_sandbox_missing(missing, sizeof missing);
    if (missing[0]) { crdi_log(ctx, CRD_LOG_WARNING, "sandbox missing = %s", missing); }
    CRD_TRY(set_limits(ctx, s));
    if (s->scratch) { CRD_TRY(use_scratch(ctx, s->scratch)); }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: no new privileges: %s", strerror(errno));
    }
    if (landlock > 0) { CRD_TRY(crdi_landlock_enter(ctx, s, landlock)); }
    CRD_TRY(drop_capabilities(ctx, landlock > 0));
    if (crdi_seccomp_there()) { CRD_TRY(crdi_seccomp_enter(ctx, s, landlock)); }
fail:
    return st;
}
