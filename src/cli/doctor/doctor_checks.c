// The checks of a machine: one row each says what it is about, who needs it and why it matters, who
// reads it, how it is judged and what to type. Judges see nothing but facts.
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(__aarch64__)
#define DEBIAN_NAME "arm64"
#else
#define DEBIAN_NAME "amd64"
#endif
// The second half of "add this".
#define BOOT_LINE "to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo update-grub; sudo reboot"

enum { CAP_BIT_IPC_LOCK = 14, CAP_BIT_SYS_NICE = 23 };

#define found crdi_diagnosis_found
#define advise crdi_diagnosis_fix

// ---- words of judges ---------------------------------------------------------------------------

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

static crdi_finding poor_if(bool poor)
{
    return poor ? CRDI_POOR : CRDI_GOOD;
}

// ---- kernel ------------------------------------------------------------------------------------

static void judge_version(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    const bool recent = f->major > 5 || (f->major == 5 && f->minor >= 10);
    found(x, f->major ? poor_if(!recent) : CRDI_OPEN, "%s", *f->release ? f->release : "not known");
}

static void judge_preemption(const crdi_case* c, crdi_diagnosis* x)
{
    static const char* const names[] = {"not known", "none", "voluntary", "lazy", "full", "rt"};
    const crdi_facts* f = c->f;
    const crdi_preemption p = f->preemption;
    const crdi_profile profile = c->w->profile;
    // Soft real time lives with a fully preemptible kernel, hard real time does not.
    const bool good = p == CRDI_PREEMPT_RT || (p >= CRDI_PREEMPT_LAZY && profile != CRDI_HARD);
    found(x, p == CRDI_PREEMPT_UNKNOWN ? CRDI_OPEN : good_if(good, CRDI_BAD), "%s%s", names[p],
          p == CRDI_PREEMPT_RT ? ", PREEMPT_RT"
          : f->preempt_dynamic ? ", chosen at boot by PREEMPT_DYNAMIC"
                               : "");
    if (profile == CRDI_SOFT && f->preempt_dynamic) {
        advise(x, "echo full | sudo tee /sys/kernel/debug/sched/preempt   # until the next boot");
        advise(x, "for good: add preempt=full\n" BOOT_LINE);
    } else if (*f->container) {
        advise(x, "boot the host with a PREEMPT_RT kernel");
    } else if (strcmp(f->distribution, "debian") == 0) {
        advise(x, "sudo apt install linux-image-rt-%s   # then boot it", DEBIAN_NAME);
    } else if (strcmp(f->distribution, "ubuntu") == 0) {
        advise(x, "sudo pro enable realtime-kernel   # then reboot");
    } else {
        advise(x,
               "install your distribution's PREEMPT_RT kernel (part of Linux since 6.12) and boot "
               "it");
    }
}

static void judge_timers(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    if (!known(f->resolution) && !known(f->high_resolution)) { return; }
    const bool coarse = (known(f->resolution) && f->resolution > 1000) || f->high_resolution == 0;
    found(x, good_if(!coarse, CRDI_BAD), "%s",
          coarse ? "coarse: as long as a tick" : "high resolution");
}

static void judge_clocksource(const crdi_case* c, crdi_diagnosis* x)
{
    static const char* const fast[] = {"tsc", "arch_sys_counter", "kvm-clock",
                                       "hyperv_clocksource_tsc_page", "riscv_clocksource"};
    const crdi_facts* f = c->f;
    bool good = false;
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) {
        good = good || strcmp(f->clocksource, fast[i]) == 0;
    }
    if (!*f->clocksource) { return; }
    found(x, good_if(good, CRDI_BAD), "%s%s", f->clocksource,
          good ? "" : ", read by a system call");
    advise(x, "%s",
           strstr(f->clocksources, "tsc")
               ? "echo tsc | sudo tee "
                 "/sys/devices/system/clocksource/clocksource0/current_clocksource"
               : "sudo dmesg | grep -i -e tsc -e clocksource   # why the kernel left it");
}

static void judge_hypervisor(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t guest = c->f->hypervisor;
    found(x, known(guest) ? good_if(!guest, CRDI_BAD) : CRDI_OPEN, "%s%s%s",
          yes_no(guest, "a guest of a hypervisor", "real"), *c->f->vendor ? ", " : "",
          c->f->vendor);
}

// ---- rights ------------------------------------------------------------------------------------

static void judge_user(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t uid = c->f->uid;
    if (!known(uid)) { return; }
    found(x, poor_if(uid == 0), "%s", uid ? "not root" : "root, which Cardan never needs");
}

static void fix_limit(const crdi_case* c, const char* line, const char* docker, const char* systemd,
                      crdi_diagnosis* x)
{
    if (*c->f->container) {
        advise(x, "start the container with %s", docker);
        return;
    }
    advise(x, "sudo groupadd -f realtime; sudo usermod -aG realtime $USER");
    advise(x, "echo '@realtime - %s' | sudo tee -a /etc/security/limits.d/cardan.conf", line);
    advise(x, "then log in again; in a systemd unit: %s (examples/realtime)", systemd);
}

static void judge_priority(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t limit = c->f->rtprio;
    if (can(c->f, CAP_BIT_SYS_NICE)) {
        found(x, CRDI_GOOD, "any, by CAP_SYS_NICE");
    } else if (known(limit)) {
        found(x, good_if(limit >= c->w->priority, CRDI_BAD), "%lld, wished %d", (long long)limit,
              c->w->priority);
    }
    fix_limit(c, "rtprio 95", "--cap-add SYS_NICE --ulimit rtprio=95", "LimitRTPRIO=95", x);
}

static void judge_memlock(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t limit = c->f->memlock;
    const bool lock = can(c->f, CAP_BIT_IPC_LOCK);
    if (lock || limit == INT64_MAX) {
        found(x, CRDI_GOOD, "all%s", lock ? ", by CAP_IPC_LOCK" : "");
    } else if (known(limit)) {
        found(x, CRDI_BAD, "up to %lld KiB", (long long)(limit / 1024));
    }
    fix_limit(c, "memlock unlimited", "--cap-add IPC_LOCK --ulimit memlock=-1",
              "LimitMEMLOCK=infinity", x);
}

static void judge_group_rt(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t us = c->f->group_rt;
    if (us >= 0) {
        found(x, good_if(us, CRDI_BAD), "%lld us per period", (long long)us);
    } else {
        found(x, CRDI_GOOD, "no limit");
    }
}

static void judge_group_cpu(const crdi_case* c, crdi_diagnosis* x)
{
    if (isnan(c->f->group_cpus)) {
        found(x, CRDI_GOOD, "no quota");
    } else {
        found(x, CRDI_BAD, "%.3g CPUs of each period", c->f->group_cpus);
    }
    advise(x, "%s",
           *c->f->container ? "start the container without --cpus and --cpu-quota"
                            : "sudo systemctl set-property <unit or slice> CPUQuota=");
}

static void judge_container(const crdi_case* c, crdi_diagnosis* x)
{
    const char* name = c->f->container;
    found(x, poor_if(*name), "%s", *name ? name : "none");
}

// ---- scheduling --------------------------------------------------------------------------------

static void judge_fifo(const crdi_case* c, crdi_diagnosis* x)
{
    const int error = c->f->fifo_error;
    if (error < 0) {
        found(x, CRDI_OPEN, "not tried");
    } else if (error == 0) {
        found(x, CRDI_GOOD, "priority %d works", c->w->priority);
    } else {
        found(x, CRDI_BAD, "priority %d: %s", c->w->priority, strerror(error));
    }
    advise(x, "%s",
           c->f->group_rt == 0 ? "give the control group real-time time, see above"
                               : "raise the priority limit, see above");
}

static void judge_affinity(const crdi_case* c, crdi_diagnosis* x)
{
    const int cpu = c->w->cpu;
    char list[64];
    if (!c->f->allowed.known) { return; }
    crdi_cpus_text(&c->f->allowed, list, sizeof list);
    if (cpu < 0) {
        found(x, CRDI_GOOD, "any of %s", list);
        return;
    }
    const bool there = crdi_cpus_has(&c->f->online, cpu) && crdi_cpus_has(&c->f->allowed, cpu);
    if (there) {
        found(x, CRDI_GOOD, "%d, of %s", cpu, list);
    } else {
        found(x, CRDI_BAD, "%d is not one of %s", cpu, list);
    }
    if (*c->f->container) {
        advise(x, "start the container with --cpuset-cpus that has %d", cpu);
    } else {
        advise(x, "taskset -c %d cardan ..., or AllowedCPUs= of its slice", cpu);
    }
}

static int last_cpu(const crdi_cpus* c)
{
    int last = 0;
    for (int i = 0; i < CRDI_CPUS; i++) {
        if (crdi_cpus_has(c, i)) { last = i; }
    }
    return last;
}

static void judge_isolation(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    const int count = crdi_cpus_count(&f->isolated), wished = c->w->cpu;
    const int cpu = wished >= 0 ? wished
                    : count     ? crdi_cpus_first(&f->isolated)
                                : last_cpu(&f->online);
    char list[64];
    crdi_cpus_text(&f->isolated, list, sizeof list);
    if (count && crdi_cpus_has(&f->isolated, wished)) {
        const bool ticks = !crdi_cpus_has(&f->nohz_full, wished);
        const bool callbacks = !crdi_cpus_has(&f->rcu_nocbs, wished);
        found(x, poor_if(ticks || callbacks), "%s, CPU %d among them%s%s", list, wished,
              ticks ? "; nohz_full without it" : "", callbacks ? "; rcu_nocbs without it" : "");
    } else if (count && wished < 0) {
        found(x, CRDI_POOR, "%s, and no CPU was chosen", list);
        advise(x, "cardan doctor --cpu %d, and 'pace: {cpu: %d}' for the run", cpu, cpu);
        return;
    } else if (f->isolated.known) {
        found(x, CRDI_POOR, "%s%s", list, count ? ", the chosen one is not among them" : "");
    }
    if (crdi_cpus_count(&f->online) < 2) {
        advise(x, "a machine with two CPUs at least");
    } else {
        advise(x, "add isolcpus=managed_irq,domain,%d nohz_full=%d rcu_nocbs=%d\n" BOOT_LINE, cpu,
               cpu, cpu);
    }
}

static void judge_smt(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_cpus* siblings = &c->f->siblings;
    char list[64];
    if (c->w->cpu < 0 || !siblings->known) {
        const int64_t active = c->f->smt_active;
        if (known(active)) { found(x, poor_if(active), "%s", active ? "in use" : "not in use"); }
        return;
    }
    crdi_cpus_text(siblings, list, sizeof list);
    if (crdi_cpus_count(siblings) > 1) {
        found(x, CRDI_POOR, "CPUs %s share a core", list);
    } else {
        found(x, CRDI_GOOD, "CPU %s has its core alone", list);
    }
}

static void judge_rivals(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
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
    found(x, poor_if(f->task_all), "%s", text);
    if (f->task_count) {
        advise(x, "sudo chrt -f -p %d %lld   # if it may stand back",
               c->w->priority > 20 ? c->w->priority - 20 : 1, (long long)f->tasks[0].pid);
    }
}

static void judge_throttle(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    const int64_t period = f->rt_period > 0 ? f->rt_period : 1000000;
    if (!known(f->rt_runtime)) { return; }
    if (f->rt_runtime < 0) {
        found(x, CRDI_GOOD, "off");
    } else {
        found(x, CRDI_POOR, "after %.0f of %.0f ms%s", 1e-3 * (double)f->rt_runtime,
              1e-3 * (double)period, f->fair_server > 0 ? ", by the deadline server" : "");
    }
}

// ---- CPU ---------------------------------------------------------------------------------------

enum { FAST_IDLE_US = 20 };

static void judge_cpus(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_cpus* mine = c->f->allowed.known ? &c->f->allowed : &c->f->online;
    const int count = crdi_cpus_count(mine);
    found(x, mine->known ? good_if(count > 1, CRDI_BAD) : CRDI_OPEN, "%d for this process", count);
}

static void judge_governor(const crdi_case* c, crdi_diagnosis* x)
{
    const char* governor = c->f->governor;
    const bool fast = strcmp(governor, "performance") == 0, chosen = c->w->cpu >= 0;
    if (!*governor) {
        found(x, CRDI_OPEN, "no choice here: firmware or host decide");
    } else if (chosen || fast) {
        found(x, good_if(fast, CRDI_BAD), "%s%s", governor,
              chosen ? " on this CPU" : " on all CPUs");
    } else {
        found(x, CRDI_BAD, "%s on CPU %d", governor, c->f->governor_cpu);
    }
}

static void judge_idle(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    if (!known(f->idle_latency)) { return; }
    const bool slow = f->idle_latency > FAST_IDLE_US, held = slow && f->dma_latency == 1;
    found(x, good_if(!slow || held, CRDI_BAD), "%s: %lld us%s",
          *f->idle_name ? f->idle_name : "deepest", (long long)f->idle_latency,
          held ? ", kept off during a run" : "");
    advise(x, "sudo cpupower idle-set -D %d   # until the next boot; or the next line",
           FAST_IDLE_US);
}

static void judge_dma_latency(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    const bool shallow = f->idle_latency >= 0 && f->idle_latency <= FAST_IDLE_US;
    found(x, shallow ? CRDI_GOOD : good_if(f->dma_latency, CRDI_POOR), "%s%s",
          yes_no(f->dma_latency, "may be written", "may not be written"),
          shallow ? ", not needed here" : "");
    advise(x, "%s",
           *f->container
               ? "start the container with --device /dev/cpu_dma_latency"
               : "echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\"' |\n"
                 "    sudo tee /etc/udev/rules.d/99-cardan.rules   # then reboot");
}

static void judge_heat(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t times = c->f->throttled;
    if (!known(times)) { return; }
    found(x, poor_if(times), "throttled %lld times since boot", (long long)times);
}

// ---- memory ------------------------------------------------------------------------------------

static void judge_memory(const crdi_case* c, crdi_diagnosis* x)
{
    enum { LITTLE = 256, ENOUGH = 1024 }; // MiB
    const crdi_facts* f = c->f;
    if (!known(f->available_kb)) { return; }
    const bool group = f->group_kb >= 0 && f->group_kb < f->available_kb;
    const int64_t mib = (group ? f->group_kb : f->available_kb) / 1024;
    found(x, mib < LITTLE ? CRDI_BAD : poor_if(mib < ENOUGH), "%lld MiB%s", (long long)mib,
          group ? ", the limit of the control group" : "");
}

static void judge_swap(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t kb = c->f->swap_kb;
    if (!known(kb)) { return; }
    if (kb) {
        found(x, CRDI_POOR, "%lld MiB", (long long)(kb / 1024));
    } else {
        found(x, CRDI_GOOD, "none");
    }
}

static void judge_huge_pages(const crdi_case* c, crdi_diagnosis* x)
{
    const char* word = c->f->huge_pages;
    if (*word) { found(x, poor_if(strcmp(word, "always") == 0), "%s", word); }
}

static void judge_numa(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    const crdi_nic* far = NULL;
    for (int i = 0; i < f->nic_count; i++) {
        const crdi_nic* n = &f->nics[i];
        if (n->node >= 0 && known(f->cpu_node) && n->node != f->cpu_node) { far = n; }
    }
    if (!known(f->nodes)) { return; }
    if (f->nodes > 1 && c->w->cpu >= 0 && far) {
        found(x, CRDI_POOR, "CPU %d is at node %lld, %s at %lld", c->w->cpu, (long long)f->cpu_node,
              far->name, (long long)far->node);
        advise(x, "cat /sys/devices/system/node/node%lld/cpulist   # choose one of these",
               (long long)far->node);
    } else {
        found(x, CRDI_GOOD, "%lld", (long long)f->nodes);
    }
}

// ---- network -----------------------------------------------------------------------------------

static void judge_link(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_nic* n = c->nic;
    if (!n) {
        found(x, CRDI_OPEN, "no network card is up");
        return;
    }
    char speed[64] = "speed not known";
    if (known(n->speed)) {
        snprintf(speed, sizeof speed, "%lld Mbit/s %.15s", (long long)n->speed, n->duplex);
    }
    const bool slow = known(n->speed) && n->speed < 100;
    const bool bad = !n->up || !n->carrier || n->wireless || strcmp(n->duplex, "half") == 0;
    found(x, bad ? CRDI_BAD : poor_if(slow), "%s%s, MTU %lld%s%s",
          !n->up        ? "down, "
          : !n->carrier ? "no carrier, "
                        : "",
          n->wireless ? "wireless" : speed, (long long)n->mtu, n->multicast ? ", multicast" : "",
          n->device ? "" : ", not a card");
    if (n->wireless) {
        advise(x, "use a cable: a radio link repeats and waits for tens of ms");
    } else if (!n->up) {
        advise(x, "sudo ip link set %s up", n->name);
    } else if (!n->carrier) {
        advise(x, "ip -s link show %s   # is the cable in, is the other side on?", n->name);
    }
}

static void judge_ring(const crdi_case* c, crdi_diagnosis* x)
{
    enum { FEW = 64 };
    const crdi_nic* n = c->nic;
    const char* driver = *n->driver ? n->driver : "unknown driver";
    if (known(n->rx_ring)) {
        found(x, poor_if(n->rx_ring < FEW && n->rx_ring < n->rx_ring_max),
              "%s, receive ring %lld of %lld", driver, (long long)n->rx_ring,
              (long long)n->rx_ring_max);
    } else {
        found(x, CRDI_OPEN, "%s, receive ring not known", driver);
    }
}

static void judge_coalescing(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_nic* n = c->nic;
    if (!known(n->rx_usecs)) { return; }
    found(x, poor_if(n->rx_usecs > 0 || n->adaptive_rx > 0), "%lld us%s", (long long)n->rx_usecs,
          n->adaptive_rx > 0 ? ", adaptive" : "");
}

static void judge_stamps(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_nic* n = c->nic;
    found(x, good_if(n->stamps_hardware, CRDI_POOR), "%s",
          yes_no(n->stamps_hardware, "by the card",
                 n->stamps_software == 1 ? "by the kernel only" : "none"));
}

static void judge_irqs(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_nic* n = c->nic;
    char list[64];
    if (!n->irq_count) { return; }
    crdi_cpus_text(&n->irq_cpus, list, sizeof list);
    const bool near = n->irq_near >= 0, moved = c->f->irqbalance && c->w->cpu >= 0;
    found(x, poor_if(near || moved), "%d on CPUs %s%s", n->irq_count, list,
          moved ? ", moved about by irqbalance" : "");
    if (moved) { advise(x, "sudo systemctl disable --now irqbalance"); }
    if (near) {
        advise(x, "echo %d | sudo tee /proc/irq/%d/smp_affinity_list   # likewise others",
               c->w->cpu == 0 ? 1 : 0, n->irq_near);
    }
}

static void judge_filter(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t filter = c->nic->rp_filter;
    if (!known(filter)) { return; }
    found(x, poor_if(filter == 1 && c->f->nics_up > 1), "%s",
          filter == 1   ? "strict"
          : filter == 2 ? "loose"
                        : "not filtered");
}

// ---- time, ports, sandbox ----------------------------------------------------------------------

static void judge_sync(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    char a[32], b[32];
    if (!known(f->synchronised)) { return; }
    if (f->synchronised) {
        found(x, CRDI_GOOD, "synchronised, offset %s, error at most %s, TAI - UTC %lld s",
              crdi_format_seconds(a, 1e-9 * (double)f->clock_offset),
              crdi_format_seconds(b, 1e-9 * (double)f->clock_error), (long long)f->tai);
    } else {
        found(x, CRDI_POOR, "not synchronised");
    }
    advise(x, "sudo apt install chrony   # or linuxptp for benches%s",
           *f->container ? ", on the host" : "");
}

static void judge_daemons(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    found(x,
          *f->time_daemons ? CRDI_GOOD
          : *f->container  ? CRDI_OPEN
                           : CRDI_POOR,
          "%s%s",
          *f->time_daemons ? f->time_daemons
          : *f->container  ? "those of the host are not seen here"
                           : "none that is known",
          f->ptp4l ? "; its master: sudo pmc -u -b 0 'GET PARENT_DATA_SET'" : "");
}

static void judge_ptp(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_facts* f = c->f;
    if (f->ptp_clocks) {
        found(x, CRDI_GOOD, "%d (%s)", f->ptp_clocks, *f->ptp_name ? f->ptp_name : "without name");
    } else {
        found(x, CRDI_POOR, "none");
    }
}

static void judge_port(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_port* p = c->port;
    const crdi_open_port* o = &c->f->ports[p - c->w->ports];
    if (p->named) { x->need = CRDI_NEEDED; }
    if (o->taken) {
        found(x, good_if(p->served, CRDI_BAD), "%s: taken at %s", p->purpose, o->address);
        advise(x, "sudo ss -lntup 'sport = :%d'   # who has it", p->number);
    } else if (o->forbidden) {
        found(x, CRDI_BAD, "%s: only for root", p->purpose);
        advise(x, "choose a port from %lld on", (long long)c->f->low_port);
    } else {
        found(x, CRDI_GOOD, "%s: %s", p->purpose, p->served ? "nobody listens now" : "free");
    }
}

static void judge_firewall(const crdi_case* c, crdi_diagnosis* x)
{
    found(x, CRDI_OPEN, "%s",
          c->f->netfilter == 1 ? "rules are for root to read: sudo nft list ruleset" : "not known");
}

static void judge_landlock(const crdi_case* c, crdi_diagnosis* x)
{
    const int64_t abi = c->f->landlock;
    if (abi > 0) {
        found(x, CRDI_GOOD, "ABI %lld", (long long)abi);
    } else {
        found(x, good_if(abi, CRDI_POOR), "%s", yes_no(abi, "", "none"));
    }
}

// ---- the table ---------------------------------------------------------------------------------

#define NO CRDI_NONE
#define WISH CRDI_WISHED
#define NEED CRDI_NEEDED
#define CHECK(id_, area_, title_, desk, soft, hard, why_, ...)                                     \
    {                                                                                              \
        .id = id_, .area = CRDI_AREA_##area_, .title = title_, .need = {desk, soft, hard},         \
        .why = why_, __VA_ARGS__                                                                   \
    }
#define NIC .per = CRDI_PER_NIC
// A fact of its own that is 0 or 1.
#define FACT(field) .flag = true, .fact = offsetof(crdi_facts, field)

// In the order of the output, area by area: what desk, soft and hard make of it, and why.
// `fix` holds unless the judge knows better; @ is the subject.
const crdi_check crdi_checks[] = {
    CHECK("kernel-version", KERNEL, "version", NO, WISH, WISH,
          "newer kernels delay a due thread less", .read = crdi_look_at_kernel,
          .judge = judge_version,
          .fix = "upgrade the distribution: Linux 5.10 or later is expected"),
    CHECK("preemption", KERNEL, "preemption", NO, WISH, NEED,
          "decides how long the kernel lets a due cycle wait", .judge = judge_preemption),
    CHECK("timers", KERNEL, "timers", WISH, NEED, NEED,
          "deadlines need finer timers than the kernel's tick", .judge = judge_timers,
          .fix = "remove highres=off from the kernel's command line, or use a kernel with "
                 "HIGH_RES_TIMERS"),
    CHECK("clocksource", KERNEL, "clock source", WISH, WISH, NEED,
          "every cycle reads the clock several times", .judge = judge_clocksource),
    CHECK("hypervisor", KERNEL, "machine", NO, WISH, NEED,
          "a host may stop its guests for milliseconds", .judge = judge_hypervisor,
          .fix = "use a machine without hypervisor, or have its host give this guest CPUs of its "
                 "own"),

    CHECK("user", RIGHTS, "user", WISH, WISH, WISH,
          "an FMU is foreign code with the rights of its user", .read = crdi_look_at_rights,
          .judge = judge_user, .fix = "run as an ordinary user with the limits rtprio and memlock"),
    CHECK("rt-priority", RIGHTS, "priority limit", NO, WISH, NEED,
          "the cycle thread asks for SCHED_FIFO", .judge = judge_priority),
    CHECK("memlock", RIGHTS, "locked memory", NO, WISH, NEED,
          "a page that has to be fetched stops a cycle", .judge = judge_memlock),
    CHECK("group-rt", RIGHTS, "group, real time", NO, WISH, NEED,
          "a group without such time refuses SCHED_FIFO", .judge = judge_group_rt,
          .fix = "echo 950000 | sudo tee /sys/fs/cgroup/cpu/<group>/cpu.rt_runtime_us   # of each "
                 "group above first"),
    CHECK("group-cpu", RIGHTS, "group, CPU", NO, WISH, NEED,
          "at the end of the quota threads stand still", .judge = judge_group_cpu),
    CHECK("container", RIGHTS, "container", NO, NO, WISH,
          "rights and CPUs have to be handed in from outside", .judge = judge_container,
          .fix = "docker run --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 \\\n    "
                 "--ulimit memlock=-1 --network host --cpuset-cpus <CPUs> ..."),

    CHECK("fifo", SCHEDULING, "SCHED_FIFO", NO, WISH, NEED,
          "lets nothing ordinary go before a due cycle", .judge = judge_fifo),
    CHECK("affinity", SCHEDULING, "CPU of the cycle", WISH, NEED, NEED,
          "the thread has to be allowed there", .read = crdi_look_at_cpus, .judge = judge_affinity),
    CHECK("isolated", SCHEDULING, "isolated CPUs", NO, NO, WISH,
          "keeps other threads away from the cycle", .judge = judge_isolation),
    CHECK("smt", SCHEDULING, "hyper-threads", NO, NO, WISH, "a busy sibling takes half of the core",
          .judge = judge_smt,
          .fix = "echo off | sudo tee /sys/devices/system/cpu/smt/control   # until the next boot"),
    CHECK("rt-tasks", SCHEDULING, "rivals", NO, WISH, WISH, "equal or higher priorities go first",
          .read = crdi_look_at_processes, .judge = judge_rivals),
    CHECK("rt-throttle", SCHEDULING, "throttling", NO, NO, WISH,
          "who spins is stopped for the rest of a second", .judge = judge_throttle,
          .fix = "only with an isolated CPU: sudo sysctl kernel.sched_rt_runtime_us=-1"),

    CHECK("cpus", CPU, "CPUs", NO, WISH, NEED, "recording and the page need one beside the cycle's",
          .judge = judge_cpus,
          .fix = "give it two CPUs at least: taskset, --cpuset-cpus, or another machine"),
    CHECK("governor", CPU, "governor", NO, WISH, NEED,
          "a CPU that slows down when idle wakes up slowly", .judge = judge_governor,
          .fix = "echo performance | sudo tee "
                 "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    CHECK("idle-states", CPU, "idle states", NO, WISH, NEED,
          "this is what waking up from the deepest takes", .judge = judge_idle),
    CHECK("dma-latency", CPU, "cpu_dma_latency", NO, WISH, WISH,
          "Cardan keeps CPUs out of deep idle states with it", .judge = judge_dma_latency),
    CHECK("turbo", CPU, "turbo", NO, NO, WISH, "step times vary with heat and neighbours",
          FACT(turbo), .yes = "on", .no = "off",
          .fix = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo   # Intel\n"
                 "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost           # others"),
    CHECK("throttled", CPU, "heat", NO, WISH, WISH, "a hot CPU slows down in the middle of a run",
          .judge = judge_heat,
          .fix = "look after fans, dust and power limits; the count starts again at boot"),
    CHECK("nmi-watchdog", CPU, "NMI watchdog", NO, NO, WISH, "interrupts even an isolated CPU",
          FACT(nmi_watchdog), .yes = "on", .no = "off", .fix = "sudo sysctl kernel.nmi_watchdog=0"),

    CHECK("memory", MEMORY, "free memory", WISH, NEED, NEED, "the whole run is locked into it",
          .read = crdi_look_at_memory, .judge = judge_memory,
          .fix = "end what else needs memory: ps -eo rss,comm --sort=-rss | head"),
    CHECK("swap", MEMORY, "swap", NO, WISH, WISH, "what is not locked may have to come from a disk",
          .judge = judge_swap,
          .fix = "sudo swapoff -a   # with memory to spare; until the next boot"),
    CHECK("huge-pages", MEMORY, "huge pages", NO, WISH, WISH,
          "with 'always' the kernel stops threads to merge pages", .judge = judge_huge_pages,
          .fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
    CHECK("numa", MEMORY, "NUMA nodes", NO, NO, WISH, "data cross between sockets in every step",
          .judge = judge_numa),

    CHECK("link", NETWORK, "link", NO, WISH, NEED, "the datagrams of every cycle pass here", NIC,
          .read = crdi_look_at_network, .judge = judge_link,
          .fix = "sudo ethtool -s @ autoneg on   # and look at cable and switch"),
    CHECK("ring", NETWORK, "driver", NO, WISH, WISH, "a full receive ring drops datagrams", NIC,
          .judge = judge_ring, .fix = "sudo ethtool -G @ rx 256"),
    CHECK("coalescing", NETWORK, "coalescing", NO, WISH, WISH,
          "the card holds datagrams back to save interrupts", NIC, .judge = judge_coalescing,
          .fix = "sudo ethtool -C @ adaptive-rx off rx-usecs 0"),
    CHECK("offloads", NETWORK, "receive offload", NO, NO, WISH,
          "the card waits for more data to join", NIC, .flag = true,
          .fact = offsetof(crdi_nic, lro), .yes = "LRO on", .no = "LRO off",
          .fix = "sudo ethtool -K @ lro off"),
    CHECK("timestamping", NETWORK, "time stamps", NO, NO, WISH,
          "one-way delays to the microsecond need them", NIC, .judge = judge_stamps,
          .fix = "a card whose 'ethtool -T' lists hardware-transmit and hardware-receive"),
    CHECK("irqs", NETWORK, "interrupts", NO, NO, WISH, "on the cycle's CPU they delay it", NIC,
          .judge = judge_irqs),
    CHECK("rp-filter", NETWORK, "return path", NO, WISH, WISH,
          "a strict filter drops what comes by another card", NIC, .judge = judge_filter,
          .fix = "sudo sysctl net.ipv4.conf.all.rp_filter=2"),

    CHECK("clock-sync", TIME, "wall clock", NO, WISH, WISH,
          "ages of data from other machines are as good as it", .judge = judge_sync),
    CHECK("time-daemon", TIME, "daemons", NO, WISH, WISH, "somebody has to keep the clock right",
          .judge = judge_daemons, .fix = "sudo apt install chrony"),
    CHECK("ptp", TIME, "PTP clock", NO, NO, WISH, "keeps benches together below a microsecond",
          .judge = judge_ptp,
          .fix = "a card with a clock of its own, if several machines share a bench"),

    CHECK("port", PORTS, "port", WISH, WISH, WISH, "only one program can listen there",
          .per = CRDI_PER_PORT, .read = crdi_look_at_ports, .judge = judge_port),
    CHECK("firewall", PORTS, "firewall", NO, WISH, WISH,
          "a rule that drops looks like a bad network", .judge = judge_firewall),

    CHECK("user-namespaces", SANDBOX, "user namespaces", WISH, WISH, WISH,
          "shut a foreign FMU in without root", .read = crdi_look_at_sandbox, FACT(user_namespaces),
          .good = true, .yes = "allowed", .no = "not allowed",
          .fix = "sudo sysctl user.max_user_namespaces=15000; on Ubuntu an AppArmor profile"),
    CHECK("landlock", SANDBOX, "Landlock", WISH, WISH, WISH, "takes files away from foreign code",
          .judge = judge_landlock,
          .fix = "add lsm=landlock,... (and what /sys/kernel/security/lsm lists) to the kernel's "
                 "command line"),
    CHECK("seccomp", SANDBOX, "seccomp", WISH, WISH, WISH, "takes system calls away from it",
          FACT(seccomp), .good = true, .yes = "there", .no = "none",
          .fix = "use a kernel with SECCOMP_FILTER: every distribution has one"),
    CHECK("worker", SANDBOX, "cardan-worker", WISH, WISH, WISH,
          "foreign FMUs run in its process, or not at all", FACT(worker), .good = true,
          .yes = "there", .no = "not found",
          .fix = "install it in libexec/cardan, or set CARDAN_WORKER to its path"),
    CHECK("bubblewrap", SANDBOX, "bubblewrap", NO, NO, NO, "starts Cardan inside of all that",
          FACT(bubblewrap), .good = true, .yes = "installed", .no = "not installed"),

    CHECK("wake-up", MEASUREMENT, "wake-up", WISH, NEED, NEED, "so late a cycle begins",
          .per = CRDI_PER_OTHER),
    CHECK("round-trip", MEASUREMENT, "round trip", WISH, WISH, NEED,
          "adds to it for a unit behind a local socket", .per = CRDI_PER_OTHER),
    CHECK("step", MEASUREMENT, "step", WISH, NEED, NEED, "what is left of it is for the models",
          .per = CRDI_PER_OTHER),

    CHECK("fmu-binary", MODELS, "binary", NEED, NEED, NEED, "an FMU runs where it was built for",
          .per = CRDI_PER_OTHER),
    CHECK("fmu-tool", MODELS, "tool", WISH, WISH, NEED,
          "another program keeps time by its own rules", .per = CRDI_PER_OTHER),
    CHECK("dry-run", MODELS, "dry run", NEED, NEED, NEED, "what fails there fails in real time",
          .per = CRDI_PER_OTHER),
    CHECK("step-time", MODELS, "longest step", WISH, NEED, NEED, "has to be done within its period",
          .per = CRDI_PER_OTHER),
};
const int crdi_check_count = sizeof crdi_checks / sizeof *crdi_checks;
