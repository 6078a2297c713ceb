// From facts to judgements, each with what to type. Nothing here looks at the machine.
#include "cli/doctor.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#if defined(__aarch64__)
#define DEBIAN_NAME "arm64"
#else
#define DEBIAN_NAME "amd64"
#endif

enum { CAP_BIT_IPC_LOCK = 14, CAP_BIT_SYS_NICE = 23 };
// The second half of "add this".
static const char boot_line[] =
    "to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo update-grub; "
    "sudo reboot";

static bool can(const crdi_facts* f, int bit)
{
    return f->capabilities >= 0 && f->capabilities >> bit & 1;
}

static bool known(int64_t x)
{
    return x != CRDI_UNKNOWN;
}

static const char* yes_no(int64_t x, const char* yes, const char* no)
{
    return x == CRDI_UNKNOWN ? "not known" : x ? yes : no;
}

static crdi_finding good_if(int64_t x, crdi_finding otherwise)
{
    return x == CRDI_UNKNOWN ? CRDI_OPEN : x ? CRDI_GOOD : otherwise;
}

// ---- kernel ------------------------------------------------------------------------------------

static void fix_preemption(const crdi_facts* f, crdi_profile p, crdi_diagnosis* x)
{
    if (p == CRDI_SOFT && f->preempt_dynamic) {
        crdi_diagnosis_fix(x, "echo full | sudo tee /sys/kernel/debug/sched/preempt   # until the "
                              "next boot");
        crdi_diagnosis_fix(x, "for good: add preempt=full");
        crdi_diagnosis_fix(x, "%s", boot_line);
    } else if (*f->container) {
        crdi_diagnosis_fix(x, "boot the host with a PREEMPT_RT kernel");
    } else if (strcmp(f->distribution, "debian") == 0) {
        crdi_diagnosis_fix(x, "sudo apt install linux-image-rt-%s   # then boot it", DEBIAN_NAME);
    } else if (strcmp(f->distribution, "ubuntu") == 0) {
        crdi_diagnosis_fix(x, "sudo pro enable realtime-kernel   # then reboot");
    } else {
        crdi_diagnosis_fix(x, "install your distribution's PREEMPT_RT kernel (part of Linux since "
                              "6.12) and boot it");
    }
}

static void judge_preemption(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    static const char* const names[] = {"not known", "none", "voluntary", "lazy", "full", "rt"};
    const crdi_preemption p = f->preemption;
    // Soft real time lives with a fully preemptible kernel, hard real time does not.
    const crdi_finding finding = p == CRDI_PREEMPT_UNKNOWN                           ? CRDI_OPEN
                                 : p == CRDI_PREEMPT_RT                              ? CRDI_GOOD
                                 : p >= CRDI_PREEMPT_LAZY && w->profile != CRDI_HARD ? CRDI_GOOD
                                                                                     : CRDI_BAD;
    crdi_diagnosis* x = crdi_diagnose(r, "preemption", "", finding, "%s%s", names[p],
                                      p == CRDI_PREEMPT_RT ? ", PREEMPT_RT"
                                      : f->preempt_dynamic ? ", chosen at boot by PREEMPT_DYNAMIC"
                                                           : "");
    fix_preemption(f, w->profile, x);
}

static void judge_clocksource(const crdi_facts* f, crdi_diagnoses* r)
{
    static const char* const fast[] = {"tsc", "arch_sys_counter", "kvm-clock",
                                       "hyperv_clocksource_tsc_page", "riscv_clocksource"};
    bool good = false;
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) {
        good = good || strcmp(f->clocksource, fast[i]) == 0;
    }
    crdi_diagnosis* x = crdi_diagnose(r, "clocksource", "",
                                      !*f->clocksource ? CRDI_OPEN
                                      : good           ? CRDI_GOOD
                                                       : CRDI_BAD,
                                      "%s%s", *f->clocksource ? f->clocksource : "not known",
                                      good || !*f->clocksource ? "" : ", read by a system call");
    if (strstr(f->clocksources, "tsc")) {
        crdi_diagnosis_fix(x, "echo tsc | sudo tee "
                              "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    } else {
        crdi_diagnosis_fix(x,
                           "sudo dmesg | grep -i -e tsc -e clocksource   # why the kernel left it");
    }
}

static void judge_kernel(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    const bool recent = f->major > 5 || (f->major == 5 && f->minor >= 10);
    crdi_diagnosis* x = crdi_diagnose(r, "kernel-version", "",
                                      !f->major ? CRDI_OPEN
                                      : recent  ? CRDI_GOOD
                                                : CRDI_POOR,
                                      "%s", *f->release ? f->release : "not known");
    crdi_diagnosis_fix(x, "upgrade the distribution: Linux 5.10 or later is expected");
    judge_preemption(f, w, r);
    const bool coarse = (known(f->resolution) && f->resolution > 1000) || f->high_resolution == 0;
    if (!known(f->resolution) && !known(f->high_resolution)) {
        crdi_diagnose(r, "timers", "", CRDI_OPEN, "not known");
    } else {
        x = crdi_diagnose(r, "timers", "", coarse ? CRDI_BAD : CRDI_GOOD, "%s",
                          coarse ? "coarse: as long as a tick" : "high resolution");
        crdi_diagnosis_fix(x, "remove highres=off from the kernel's command line, or use a kernel "
                              "with HIGH_RES_TIMERS");
    }
    judge_clocksource(f, r);
    x = crdi_diagnose(r, "hypervisor", "",
                      !known(f->hypervisor) ? CRDI_OPEN
                      : f->hypervisor       ? CRDI_BAD
                                            : CRDI_GOOD,
                      "%s%s%s", yes_no(f->hypervisor, "a guest of a hypervisor", "real"),
                      *f->vendor ? ", " : "", f->vendor);
    crdi_diagnosis_fix(x,
                       "use a machine without hypervisor, or have its host give this guest CPUs of "
                       "its own");
}

// ---- rights ------------------------------------------------------------------------------------

static void fix_limit(const crdi_facts* f, const char* line, const char* docker,
                      const char* systemd, crdi_diagnosis* x)
{
    if (*f->container) {
        crdi_diagnosis_fix(x, "start the container with %s", docker);
        return;
    }
    crdi_diagnosis_fix(x, "sudo groupadd -f realtime; sudo usermod -aG realtime $USER");
    crdi_diagnosis_fix(x, "echo '@realtime - %s' | sudo tee -a /etc/security/limits.d/cardan.conf",
                       line);
    crdi_diagnosis_fix(x, "then log in again; in a systemd unit: %s (examples/realtime)", systemd);
}

static void judge_limits(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    const bool nice = can(f, CAP_BIT_SYS_NICE), lock = can(f, CAP_BIT_IPC_LOCK);
    char text[64];
    const bool enough = nice || f->rtprio >= w->priority;
    if (nice) {
        snprintf(text, sizeof text, "any, by CAP_SYS_NICE");
    } else if (known(f->rtprio)) {
        snprintf(text, sizeof text, "%lld, wished %d", (long long)f->rtprio, w->priority);
    } else {
        snprintf(text, sizeof text, "not known");
    }
    crdi_diagnosis* x = crdi_diagnose(r, "rt-priority", "",
                                      enough             ? CRDI_GOOD
                                      : known(f->rtprio) ? CRDI_BAD
                                                         : CRDI_OPEN,
                                      "%s", text);
    fix_limit(f, "rtprio 95", "--cap-add SYS_NICE --ulimit rtprio=95", "LimitRTPRIO=95", x);
    const bool all = lock || f->memlock == INT64_MAX;
    if (all) {
        snprintf(text, sizeof text, "all%s", lock ? ", by CAP_IPC_LOCK" : "");
    } else if (known(f->memlock)) {
        snprintf(text, sizeof text, "up to %lld KiB", (long long)(f->memlock / 1024));
    } else {
        snprintf(text, sizeof text, "not known");
    }
    x = crdi_diagnose(r, "memlock", "",
                      all                 ? CRDI_GOOD
                      : known(f->memlock) ? CRDI_BAD
                                          : CRDI_OPEN,
                      "%s", text);
    fix_limit(f, "memlock unlimited", "--cap-add IPC_LOCK --ulimit memlock=-1",
              "LimitMEMLOCK=infinity", x);
}

static void judge_rights(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    crdi_diagnosis* x = crdi_diagnose(r, "user", "",
                                      !known(f->uid) ? CRDI_OPEN
                                      : f->uid == 0  ? CRDI_POOR
                                                     : CRDI_GOOD,
                                      "%s",
                                      !known(f->uid) ? "not known"
                                      : f->uid == 0  ? "root, which Cardan never needs"
                                                     : "not root");
    crdi_diagnosis_fix(x, "run as an ordinary user with the limits rtprio and memlock");
    judge_limits(f, w, r);
    if (f->group_rt >= 0) {
        x = crdi_diagnose(r, "group-rt", "", f->group_rt == 0 ? CRDI_BAD : CRDI_GOOD,
                          "%lld us per period", (long long)f->group_rt);
        crdi_diagnosis_fix(x,
                           "echo 950000 | sudo tee "
                           "/sys/fs/cgroup/cpu/<group>/cpu.rt_runtime_us   # of each group above "
                           "first");
    } else {
        crdi_diagnose(r, "group-rt", "", CRDI_GOOD, "no limit");
    }
    const bool limited = !isnan(f->group_cpus);
    x = limited
            ? crdi_diagnose(r, "group-cpu", "", CRDI_BAD, "%.3g CPUs of each period", f->group_cpus)
            : crdi_diagnose(r, "group-cpu", "", CRDI_GOOD, "no quota");
    crdi_diagnosis_fix(x, *f->container ? "start the container without --cpus and --cpu-quota"
                                        : "sudo systemctl set-property <unit or slice> CPUQuota=");
    x = crdi_diagnose(r, "container", "", *f->container ? CRDI_POOR : CRDI_GOOD, "%s",
                      *f->container ? f->container : "none");
    crdi_diagnosis_fix(x, "docker run --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 "
                          "\\\n    --ulimit memlock=-1 --network host --cpuset-cpus <CPUs> ...");
}

// ---- scheduling --------------------------------------------------------------------------------

static void judge_fifo(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    if (f->fifo_error < 0) {
        crdi_diagnose(r, "fifo", "", CRDI_OPEN, "not tried");
        return;
    }
    crdi_diagnosis* x =
        f->fifo_error == 0
            ? crdi_diagnose(r, "fifo", "", CRDI_GOOD, "priority %d works", w->priority)
            : crdi_diagnose(r, "fifo", "", CRDI_BAD, "priority %d: %s", w->priority,
                            strerror(f->fifo_error));
    crdi_diagnosis_fix(x, f->group_rt == 0 ? "give the control group real-time time, see above"
                                           : "raise the priority limit, see above");
}

static int last_cpu(const crdi_cpus* c)
{
    int last = 0;
    for (int i = 0; i < CRDI_CPUS; i++) {
        if (crdi_cpus_has(c, i)) { last = i; }
    }
    return last;
}

static void judge_isolation(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    char list[64], quiet[96] = "";
    const int count = crdi_cpus_count(&f->isolated);
    const int last = last_cpu(&f->online);
    const int cpu = w->cpu >= 0 ? w->cpu : count ? crdi_cpus_first(&f->isolated) : last;
    crdi_diagnosis* x = NULL;
    crdi_cpus_text(&f->isolated, list, sizeof list);
    if (count && crdi_cpus_has(&f->isolated, w->cpu)) {
        snprintf(quiet, sizeof quiet, "%s%s",
                 crdi_cpus_has(&f->nohz_full, w->cpu) ? "" : "; nohz_full without it",
                 crdi_cpus_has(&f->rcu_nocbs, w->cpu) ? "" : "; rcu_nocbs without it");
        x = crdi_diagnose(r, "isolated", "", *quiet ? CRDI_POOR : CRDI_GOOD,
                          "%s, CPU %d among "
                          "them%s",
                          list, w->cpu, quiet);
    } else if (count && w->cpu < 0) {
        x = crdi_diagnose(r, "isolated", "", CRDI_POOR, "%s, and no CPU was chosen", list);
        crdi_diagnosis_fix(x, "cardan doctor --cpu %d, and 'pace: {cpu: %d}' for the run", cpu,
                           cpu);
        return;
    } else if (!f->isolated.known) {
        crdi_diagnose(r, "isolated", "", CRDI_OPEN, "not known");
        return;
    } else {
        x = crdi_diagnose(r, "isolated", "", CRDI_POOR, "%s%s", list,
                          count ? ", the chosen one is not among them" : "");
    }
    if (crdi_cpus_count(&f->online) < 2) {
        crdi_diagnosis_fix(x, "a machine with two CPUs at least");
        return;
    }
    crdi_diagnosis_fix(x, "add isolcpus=managed_irq,domain,%d nohz_full=%d rcu_nocbs=%d", cpu, cpu,
                       cpu);
    crdi_diagnosis_fix(x, "%s", boot_line);
}

static void judge_smt(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    crdi_diagnosis* x = NULL;
    char list[64];
    if (w->cpu >= 0 && f->siblings.known) {
        const bool shared = crdi_cpus_count(&f->siblings) > 1;
        x = crdi_diagnose(r, "smt", "", shared ? CRDI_POOR : CRDI_GOOD,
                          shared ? "CPUs %s share a core" : "CPU %s has its core alone",
                          crdi_cpus_text(&f->siblings, list, sizeof list));
    } else {
        x = crdi_diagnose(r, "smt", "",
                          !known(f->smt_active) ? CRDI_OPEN
                          : f->smt_active       ? CRDI_POOR
                                                : CRDI_GOOD,
                          "%s", yes_no(f->smt_active, "in use", "not in use"));
    }
    crdi_diagnosis_fix(x,
                       "echo off | sudo tee /sys/devices/system/cpu/smt/control   # until the next "
                       "boot");
}

static void judge_rivals(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    char text[CRDI_FOUND] = "none";
    size_t used = 0;
    for (int i = 0; i < f->task_count && used < sizeof text; i++) {
        const crdi_task* t = &f->tasks[i];
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%.31s (%lld, pid %lld)",
                             used ? ", " : "", t->name, (long long)t->priority, (long long)t->pid);
    }
    if (f->task_all > f->task_count && used < sizeof text) {
        snprintf(text + used, sizeof text - used, " and %d more", f->task_all - f->task_count);
    }
    crdi_diagnosis* x =
        crdi_diagnose(r, "rt-tasks", "", f->task_all ? CRDI_POOR : CRDI_GOOD, "%s", text);
    if (f->task_count) {
        crdi_diagnosis_fix(x, "sudo chrt -f -p %d %lld   # if it may stand back",
                           w->priority > 20 ? w->priority - 20 : 1, (long long)f->tasks[0].pid);
    }
}

static void judge_throttle(const crdi_facts* f, crdi_diagnoses* r)
{
    const int64_t period = f->rt_period > 0 ? f->rt_period : 1000000;
    if (!known(f->rt_runtime)) {
        crdi_diagnose(r, "rt-throttle", "", CRDI_OPEN, "not known");
        return;
    }
    crdi_diagnosis* x =
        f->rt_runtime < 0
            ? crdi_diagnose(r, "rt-throttle", "", CRDI_GOOD, "off")
            : crdi_diagnose(r, "rt-throttle", "", CRDI_POOR, "after %.0f of %.0f ms%s",
                            1e-3 * (double)f->rt_runtime, 1e-3 * (double)period,
                            f->fair_server > 0 ? ", by the deadline server" : "");
    crdi_diagnosis_fix(x, "only with an isolated CPU: sudo sysctl kernel.sched_rt_runtime_us=-1");
}

static void judge_scheduling(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    char list[64];
    judge_fifo(f, w, r);
    const bool there = w->cpu < 0 || (crdi_cpus_has(&f->online, w->cpu) &&
                                      (!f->allowed.known || crdi_cpus_has(&f->allowed, w->cpu)));
    crdi_diagnosis* x = NULL;
    if (!f->allowed.known) {
        crdi_diagnose(r, "affinity", "", CRDI_OPEN, "not known");
    } else if (w->cpu < 0) {
        crdi_diagnose(r, "affinity", "", CRDI_GOOD, "any of %s",
                      crdi_cpus_text(&f->allowed, list, sizeof list));
    } else {
        x = crdi_diagnose(r, "affinity", "", there ? CRDI_GOOD : CRDI_BAD,
                          there ? "%d, of %s" : "%d is not one of %s", w->cpu,
                          crdi_cpus_text(&f->allowed, list, sizeof list));
    }
    crdi_diagnosis_fix(x,
                       *f->container ? "start the container with --cpuset-cpus that has %d"
                                     : "taskset -c %d cardan ..., or AllowedCPUs= of its slice",
                       w->cpu);
    judge_isolation(f, w, r);
    judge_smt(f, w, r);
    judge_rivals(f, w, r);
    judge_throttle(f, r);
}

// ---- CPU ---------------------------------------------------------------------------------------

static void judge_idle(const crdi_facts* f, crdi_diagnoses* r)
{
    enum { FAST = 20 }; // us
    if (!known(f->idle_latency)) {
        crdi_diagnose(r, "idle-states", "", CRDI_OPEN, "not known");
    } else {
        const bool slow = f->idle_latency > FAST, held = slow && f->dma_latency == 1;
        crdi_diagnosis* x =
            crdi_diagnose(r, "idle-states", "", slow && !held ? CRDI_BAD : CRDI_GOOD,
                          "%s: %lld us%s", *f->idle_name ? f->idle_name : "deepest",
                          (long long)f->idle_latency, held ? ", kept off during a run" : "");
        crdi_diagnosis_fix(
            x, "sudo cpupower idle-set -D %d   # until the next boot; or the next line", FAST);
    }
    const bool shallow = f->idle_latency >= 0 && f->idle_latency <= FAST;
    crdi_diagnosis* x = crdi_diagnose(
        r, "dma-latency", "", shallow ? CRDI_GOOD : good_if(f->dma_latency, CRDI_POOR), "%s%s",
        yes_no(f->dma_latency, "may be written", "may not be written"),
        shallow ? ", not needed here" : "");
    if (*f->container) {
        crdi_diagnosis_fix(x, "start the container with --device /dev/cpu_dma_latency");
        return;
    }
    crdi_diagnosis_fix(x,
                       "echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\"' |\n"
                       "    sudo tee /etc/udev/rules.d/99-cardan.rules   # then reboot");
}

static void judge_cpu(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    const crdi_cpus* mine = f->allowed.known ? &f->allowed : &f->online;
    const int count = crdi_cpus_count(mine);
    crdi_diagnosis* x = crdi_diagnose(r, "cpus", "",
                                      !mine->known ? CRDI_OPEN
                                      : count > 1  ? CRDI_GOOD
                                                   : CRDI_BAD,
                                      "%d for this process", count);
    crdi_diagnosis_fix(x, "give it two CPUs at least: taskset, --cpuset-cpus, or another machine");
    const bool fast = strcmp(f->governor, "performance") == 0;
    if (!*f->governor) {
        crdi_diagnose(r, "governor", "", CRDI_OPEN, "no choice here: firmware or host decide");
    } else {
        x = w->cpu >= 0 || fast
                ? crdi_diagnose(r, "governor", "", fast ? CRDI_GOOD : CRDI_BAD, "%s%s", f->governor,
                                w->cpu >= 0 ? " on this CPU" : " on all CPUs")
                : crdi_diagnose(r, "governor", "", CRDI_BAD, "%s on CPU %d", f->governor,
                                f->governor_cpu);
        crdi_diagnosis_fix(x, "echo performance | sudo tee "
                              "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
    }
    judge_idle(f, r);
    x = crdi_diagnose(r, "turbo", "",
                      !known(f->turbo) ? CRDI_OPEN
                      : f->turbo       ? CRDI_POOR
                                       : CRDI_GOOD,
                      "%s", yes_no(f->turbo, "on", "off"));
    crdi_diagnosis_fix(x,
                       "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo   # Intel");
    crdi_diagnosis_fix(
        x, "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost           # others");
    if (!known(f->throttled)) {
        crdi_diagnose(r, "throttled", "", CRDI_OPEN, "not known");
    } else {
        x = crdi_diagnose(r, "throttled", "", f->throttled ? CRDI_POOR : CRDI_GOOD,
                          "throttled %lld times since boot", (long long)f->throttled);
        crdi_diagnosis_fix(
            x, "look after fans, dust and power limits; the count starts again at boot");
    }
    x = crdi_diagnose(r, "nmi-watchdog", "",
                      !known(f->nmi_watchdog) ? CRDI_OPEN
                      : f->nmi_watchdog       ? CRDI_POOR
                                              : CRDI_GOOD,
                      "%s", yes_no(f->nmi_watchdog, "on", "off"));
    crdi_diagnosis_fix(x, "sudo sysctl kernel.nmi_watchdog=0");
}

// ---- memory ------------------------------------------------------------------------------------

static void judge_memory(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    const bool group = f->group_kb >= 0 && f->group_kb < f->available_kb;
    const int64_t free_mib = (group ? f->group_kb : f->available_kb) / 1024;
    enum { LITTLE = 256, ENOUGH = 1024 }; // MiB
    crdi_diagnosis* x = NULL;
    if (!known(f->available_kb)) {
        crdi_diagnose(r, "memory", "", CRDI_OPEN, "not known");
    } else {
        x = crdi_diagnose(r, "memory", "",
                          free_mib < LITTLE   ? CRDI_BAD
                          : free_mib < ENOUGH ? CRDI_POOR
                                              : CRDI_GOOD,
                          "%lld MiB%s", (long long)free_mib,
                          group ? ", the limit of the control group" : "");
        crdi_diagnosis_fix(x, "end what else needs memory: ps -eo rss,comm --sort=-rss | head");
    }
    if (!known(f->swap_kb)) {
        crdi_diagnose(r, "swap", "", CRDI_OPEN, "not known");
    } else {
        x = f->swap_kb ? crdi_diagnose(r, "swap", "", CRDI_POOR, "%lld MiB",
                                       (long long)(f->swap_kb / 1024))
                       : crdi_diagnose(r, "swap", "", CRDI_GOOD, "none");
        crdi_diagnosis_fix(x, "sudo swapoff -a   # with memory to spare; until the next boot");
    }
    const bool always = strcmp(f->huge_pages, "always") == 0;
    x = crdi_diagnose(r, "huge-pages", "",
                      !*f->huge_pages ? CRDI_OPEN
                      : always        ? CRDI_POOR
                                      : CRDI_GOOD,
                      "%s", *f->huge_pages ? f->huge_pages : "not known");
    crdi_diagnosis_fix(x, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    const crdi_nic* far = NULL;
    for (int i = 0; i < f->nic_count; i++) {
        const crdi_nic* n = &f->nics[i];
        if (n->node >= 0 && known(f->cpu_node) && n->node != f->cpu_node) { far = n; }
    }
    if (!known(f->nodes)) {
        crdi_diagnose(r, "numa", "", CRDI_OPEN, "not known");
    } else if (f->nodes > 1 && w->cpu >= 0 && far) {
        x = crdi_diagnose(r, "numa", "", CRDI_POOR, "CPU %d is at node %lld, %s at %lld", w->cpu,
                          (long long)f->cpu_node, far->name, (long long)far->node);
        crdi_diagnosis_fix(x,
                           "cat /sys/devices/system/node/node%lld/cpulist   # choose one of these",
                           (long long)far->node);
    } else {
        crdi_diagnose(r, "numa", "", CRDI_GOOD, "%lld", (long long)f->nodes);
    }
}

// ---- network -----------------------------------------------------------------------------------

static void judge_link(const crdi_nic* n, crdi_diagnoses* r)
{
    const char* about = n->wireless ? "wireless" : "";
    char speed[64] = "speed not known";
    if (known(n->speed)) {
        snprintf(speed, sizeof speed, "%lld Mbit/s %.15s", (long long)n->speed, n->duplex);
    }
    const bool half = strcmp(n->duplex, "half") == 0;
    const bool slow = known(n->speed) && n->speed < 100;
    const bool bad = !n->up || !n->carrier || n->wireless || half;
    crdi_diagnosis* x =
        crdi_diagnose(r, "link", n->name,
                      bad    ? CRDI_BAD
                      : slow ? CRDI_POOR
                             : CRDI_GOOD,
                      "%s%s%s, MTU %lld%s%s",
                      !n->up        ? "down, "
                      : !n->carrier ? "no carrier, "
                                    : "",
                      about, *about ? "" : speed, (long long)n->mtu,
                      n->multicast ? ", multicast" : "", n->device ? "" : ", not a card");
    if (n->wireless) {
        crdi_diagnosis_fix(x, "use a cable: a radio link repeats and waits for tens of ms");
    } else if (!n->up) {
        crdi_diagnosis_fix(x, "sudo ip link set %s up", n->name);
    } else if (!n->carrier) {
        crdi_diagnosis_fix(x, "ip -s link show %s   # is the cable in, is the other side on?",
                           n->name);
    } else {
        crdi_diagnosis_fix(x, "sudo ethtool -s %s autoneg on   # and look at cable and switch",
                           n->name);
    }
}

static void judge_irqs(const crdi_facts* f, const crdi_wish* w, const crdi_nic* n,
                       crdi_diagnoses* r)
{
    char list[64];
    crdi_cpus_text(&n->irq_cpus, list, sizeof list);
    if (!n->irq_count) {
        crdi_diagnose(r, "irqs", n->name, CRDI_OPEN, "not known");
        return;
    }
    const bool near = n->irq_near >= 0, moved = f->irqbalance && w->cpu >= 0;
    crdi_diagnosis* x =
        crdi_diagnose(r, "irqs", n->name, near || moved ? CRDI_POOR : CRDI_GOOD, "%d on CPUs %s%s",
                      n->irq_count, list, moved ? ", moved about by irqbalance" : "");
    if (moved) { crdi_diagnosis_fix(x, "sudo systemctl disable --now irqbalance"); }
    if (near) {
        crdi_diagnosis_fix(x,
                           "echo %d | sudo tee /proc/irq/%d/smp_affinity_list   # likewise others",
                           w->cpu == 0 ? 1 : 0, n->irq_near);
    }
}

static void judge_nic(const crdi_facts* f, const crdi_wish* w, const crdi_nic* n, crdi_diagnoses* r)
{
    judge_link(n, r);
    enum { FEW = 64 };
    char ring[64] = ", receive ring not known";
    if (known(n->rx_ring)) {
        snprintf(ring, sizeof ring, ", receive ring %lld of %lld", (long long)n->rx_ring,
                 (long long)n->rx_ring_max);
    }
    crdi_diagnosis* x = crdi_diagnose(r, "ring", n->name,
                                      !known(n->rx_ring)                                ? CRDI_OPEN
                                      : n->rx_ring < FEW && n->rx_ring < n->rx_ring_max ? CRDI_POOR
                                                                                        : CRDI_GOOD,
                                      "%s%s", *n->driver ? n->driver : "unknown driver", ring);
    crdi_diagnosis_fix(x, "sudo ethtool -G %s rx 256", n->name);
    if (!known(n->rx_usecs)) {
        crdi_diagnose(r, "coalescing", n->name, CRDI_OPEN, "not known");
    } else {
        x = crdi_diagnose(
            r, "coalescing", n->name, n->rx_usecs > 0 || n->adaptive_rx > 0 ? CRDI_POOR : CRDI_GOOD,
            "%lld us%s", (long long)n->rx_usecs, n->adaptive_rx > 0 ? ", adaptive" : "");
        crdi_diagnosis_fix(x, "sudo ethtool -C %s adaptive-rx off rx-usecs 0", n->name);
    }
    x = crdi_diagnose(r, "offloads", n->name,
                      !known(n->lro) ? CRDI_OPEN
                      : n->lro       ? CRDI_POOR
                                     : CRDI_GOOD,
                      "%s", yes_no(n->lro, "LRO on", "LRO off"));
    crdi_diagnosis_fix(x, "sudo ethtool -K %s lro off", n->name);
    x = crdi_diagnose(r, "timestamping", n->name, good_if(n->stamps_hardware, CRDI_POOR), "%s",
                      yes_no(n->stamps_hardware, "by the card",
                             n->stamps_software == 1 ? "by the kernel only" : "none"));
    crdi_diagnosis_fix(x, "a card whose 'ethtool -T' lists hardware-transmit and hardware-receive");
    judge_irqs(f, w, n, r);
    x = crdi_diagnose(r, "rp-filter", n->name,
                      !known(n->rp_filter)                  ? CRDI_OPEN
                      : n->rp_filter == 1 && f->nics_up > 1 ? CRDI_POOR
                                                            : CRDI_GOOD,
                      "%s",
                      !known(n->rp_filter) ? "not known"
                      : n->rp_filter == 1  ? "strict"
                      : n->rp_filter == 2  ? "loose"
                                           : "not filtered");
    crdi_diagnosis_fix(x, "sudo sysctl net.ipv4.conf.all.rp_filter=2");
}

static void judge_network(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    for (int i = 0; i < f->nic_count; i++) {
        judge_nic(f, w, &f->nics[i], r);
    }
    if (!f->nic_count) { crdi_diagnose(r, "link", "", CRDI_OPEN, "no network card is up"); }
}

// ---- time, ports, sandbox ----------------------------------------------------------------------

static void judge_time(const crdi_facts* f, crdi_diagnoses* r)
{
    char a[32], b[32];
    crdi_diagnosis* x = NULL;
    if (!known(f->synchronised)) {
        crdi_diagnose(r, "clock-sync", "", CRDI_OPEN, "not known");
    } else if (f->synchronised) {
        x = crdi_diagnose(r, "clock-sync", "", CRDI_GOOD,
                          "synchronised, offset %s, error at most %s, TAI - UTC %lld s",
                          crdi_format_seconds(a, 1e-9 * (double)f->clock_offset),
                          crdi_format_seconds(b, 1e-9 * (double)f->clock_error), (long long)f->tai);
    } else {
        x = crdi_diagnose(r, "clock-sync", "", CRDI_POOR, "not synchronised");
    }
    crdi_diagnosis_fix(x, "sudo apt install chrony   # or linuxptp for benches%s",
                       *f->container ? ", on the host" : "");
    x = crdi_diagnose(r, "time-daemon", "",
                      *f->time_daemons ? CRDI_GOOD
                      : *f->container  ? CRDI_OPEN
                                       : CRDI_POOR,
                      "%s%s",
                      *f->time_daemons ? f->time_daemons
                      : *f->container  ? "those of the host are not seen here"
                                       : "none that is known",
                      f->ptp4l ? "; its master: sudo pmc -u -b 0 'GET PARENT_DATA_SET'" : "");
    crdi_diagnosis_fix(x, "sudo apt install chrony");
    x = f->ptp_clocks ? crdi_diagnose(r, "ptp", "", CRDI_GOOD, "%d (%s)", f->ptp_clocks,
                                      *f->ptp_name ? f->ptp_name : "without name")
                      : crdi_diagnose(r, "ptp", "", CRDI_POOR, "none");
    crdi_diagnosis_fix(x, "a card with a clock of its own, if several machines share a bench");
}

static void judge_ports(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    for (int i = 0; i < w->port_count; i++) {
        const crdi_port* p = &w->ports[i];
        const crdi_open_port* o = &f->ports[i];
        char subject[32];
        const char* kind = p->udp && p->tcp ? "udp+tcp" : p->udp ? "udp" : "tcp";
        snprintf(subject, sizeof subject, "%s %d", kind, p->number);
        crdi_diagnosis* x = NULL;
        if (o->taken) {
            x = crdi_diagnose(r, "port", subject, p->served ? CRDI_GOOD : CRDI_BAD,
                              "%s: taken at %s", p->purpose, o->address);
        } else if (o->forbidden) {
            x = crdi_diagnose(r, "port", subject, CRDI_BAD, "%s: only for root", p->purpose);
        } else {
            x = crdi_diagnose(r, "port", subject, CRDI_GOOD, "%s: %s", p->purpose,
                              p->served ? "nobody listens now" : "free");
        }
        if (p->named) { crdi_diagnosis_need(x, CRDI_NEEDED); }
        if (o->taken) {
            crdi_diagnosis_fix(x, "sudo ss -lntup 'sport = :%d'   # who has it", p->number);
        } else {
            crdi_diagnosis_fix(x, "choose a port from %lld on", (long long)f->low_port);
        }
    }
    crdi_diagnose(r, "firewall", "", CRDI_OPEN,
                  f->netfilter == 1 ? "rules are for root to read: sudo nft list ruleset"
                                    : "not known");
}

static void judge_sandbox(const crdi_facts* f, crdi_diagnoses* r)
{
    crdi_diagnosis* x =
        crdi_diagnose(r, "user-namespaces", "", good_if(f->user_namespaces, CRDI_POOR), "%s",
                      yes_no(f->user_namespaces, "allowed", "not allowed"));
    crdi_diagnosis_fix(x,
                       "sudo sysctl user.max_user_namespaces=15000; on Ubuntu an AppArmor profile");
    x = f->landlock > 0
            ? crdi_diagnose(r, "landlock", "", CRDI_GOOD, "ABI %lld", (long long)f->landlock)
            : crdi_diagnose(r, "landlock", "", good_if(f->landlock, CRDI_POOR), "%s",
                            yes_no(f->landlock, "", "none"));
    crdi_diagnosis_fix(x, "add lsm=landlock,... (and what /sys/kernel/security/lsm lists) to the "
                          "kernel's command line");
    x = crdi_diagnose(r, "seccomp", "", good_if(f->seccomp, CRDI_POOR), "%s",
                      yes_no(f->seccomp, "there", "none"));
    crdi_diagnosis_fix(x, "use a kernel with SECCOMP_FILTER: every distribution has one");
    crdi_diagnose(r, "bubblewrap", "", good_if(f->bubblewrap, CRDI_POOR), "%s",
                  yes_no(f->bubblewrap, "installed", "not installed"));
}

void crdi_judge_machine(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    judge_kernel(f, w, r);
    judge_rights(f, w, r);
    judge_scheduling(f, w, r);
    judge_cpu(f, w, r);
    judge_memory(f, w, r);
    judge_network(f, w, r);
    judge_time(f, r);
    judge_ports(f, w, r);
    judge_sandbox(f, r);
}
