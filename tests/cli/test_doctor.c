// cardan doctor on machines that are made of files, and its judgements of scripted measurements.
#include "check.h"
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

// ---- machines ----------------------------------------------------------------------------------

static char root[PATH_MAX];

static int remove_entry(const char* path, const struct stat* s, int kind, struct FTW* f)
{
    (void)s;
    (void)kind;
    (void)f;
    return remove(path);
}

static void begin_machine(const char* name)
{
    snprintf(root, sizeof root, "%s/doctor_%s", TEST_BUILD_DIR, name);
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    check(mkdir(root, 0700) == 0);
}

static int end_machine(void** state)
{
    if (*root) { nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }
    *root = 0;
    return 0;
}

static const char* below(const char* path)
{
    static char full[2 * PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char* c = full + strlen(root) + 1; *c; c++) {
        if (*c != '/') { continue; }
        *c = 0;
        check(mkdir(full, 0700) == 0 || errno == EEXIST);
        *c = '/';
    }
    return full;
}

static void put_bytes(const char* path, const void* data, size_t size)
{
    FILE* f = fopen(below(path), "w");
    check(f != NULL);
    check_int(fwrite(data, 1, size, f), size);
    fclose(f);
}

static void put(const char* path, const char* text)
{
    put_bytes(path, text, strlen(text));
}

static void put_link(const char* path, const char* target)
{
    check(symlink(target, below(path)) == 0);
}

#define CPU "/sys/devices/system/cpu/"
#define NET "/sys/class/net/"

static void put_status(const char* uid, const char* caps, const char* cpus)
{
    char text[256];
    snprintf(text, sizeof text,
             "Name:\tcardan\nUid:\t%s\t%s\t%s\t%s\nCapEff:\t%s\n"
             "Cpus_allowed_list:\t%s\n",
             uid, uid, uid, uid, caps, cpus);
    put("/proc/self/status", text);
}

static void put_limits(const char* rtprio, const char* memlock)
{
    char text[512];
    snprintf(text, sizeof text,
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max locked memory         %-20s %-20s bytes     \n"
             "Max realtime priority     %-20s %-20s \n",
             memlock, memlock, rtprio, rtprio);
    put("/proc/self/limits", text);
}

static void put_cpu(int cpu, const char* governor, const char* state, const char* latency)
{
    char path[128];
    snprintf(path, sizeof path, CPU "cpu%d/cpufreq/scaling_governor", cpu);
    put(path, governor);
    snprintf(path, sizeof path, CPU "cpu%d/cpuidle/state0/name", cpu);
    put(path, "POLL\n");
    snprintf(path, sizeof path, CPU "cpu%d/cpuidle/state0/latency", cpu);
    put(path, "0\n");
    snprintf(path, sizeof path, CPU "cpu%d/cpuidle/state1/name", cpu);
    put(path, state);
    snprintf(path, sizeof path, CPU "cpu%d/cpuidle/state1/latency", cpu);
    put(path, latency);
    snprintf(path, sizeof path, CPU "cpu%d/thermal_throttle/core_throttle_count", cpu);
    put(path, "0\n");
}

// A stat line of a thread; policy 1 is SCHED_FIFO.
static void put_process(int pid, const char* comm, long flags, int priority, int policy)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    snprintf(text, sizeof text, "%s\n", comm);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
    snprintf(text, sizeof text,
             "%d (%s) S 1 1 1 0 -1 %ld 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
             "17 3 %d %d 0 0 0\n",
             pid, comm, flags, priority, policy);
    put(path, text);
}

static void put_kernel(const char* release, const char* version)
{
    put("/proc/sys/kernel/osrelease", release);
    put("/proc/sys/kernel/version", version);
    put("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc nonstop_tsc constant_tsc\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc hpet acpi_pm \n");
    put("/etc/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\n");
    put("/proc/1/comm", "systemd\n");
    put("/proc/1/cgroup", "0::/init.scope\n");
    put("/proc/self/cgroup", "0::/user.slice/session-1.scope\n");
    put("/proc/sys/user/max_user_namespaces", "100000\n");
    put("/proc/sys/kernel/seccomp/actions_avail", "kill allow\n");
    put("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024\n");
    put("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
    put("/sys/devices/system/node/node0/cpulist", "0-3\n");
    put(CPU "cpu3/node0/cpulist", "0-3\n");
    put(CPU "cpu0/node0/cpulist", "0-3\n");
    put(CPU "online", "0-3\n");
}

static void put_card(const char* name, const char* speed, const char* duplex)
{
    char path[128];
    const char* const files[][2] = {{"flags", "0x1003\n"},
                                    {"operstate", "up\n"},
                                    {"speed", speed},
                                    {"duplex", duplex},
                                    {"mtu", "1500\n"},
                                    {"device/numa_node", "0\n"},
                                    {"device/msi_irqs/24", "msix\n"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, NET "%s/%s", name, files[i][0]);
        put(path, files[i][1]);
    }
    snprintf(path, sizeof path, NET "%s/device/driver", name);
    put_link(path, "../../../bus/pci/drivers/igc");
    put("/proc/irq/24/smp_affinity_list", "0-1\n");
}

static void put_ideal_machine(void)
{
    begin_machine("ideal");
    put_kernel("6.12.9-rt-amd64\n", "#1 SMP PREEMPT_RT Debian 6.12.9-1\n");
    put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=managed_irq,domain,3 "
                         "nohz_full=3 rcu_nocbs=3 quiet\n");
    put("/proc/config.gz", "CONFIG_PREEMPT_RT=y\nCONFIG_HIGH_RES_TIMERS=y\n");
    put("/sys/class/dmi/id/sys_vendor", "Beckhoff\n");
    put_status("1000", "0000000000000000", "0-3");
    put_limits("95", "unlimited");
    put("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    put("/proc/sys/kernel/nmi_watchdog", "0\n");
    put(CPU "isolated", "3\n");
    put(CPU "nohz_full", "3\n");
    put(CPU "smt/active", "0\n");
    put(CPU "cpu3/topology/thread_siblings_list", "3\n");
    put(CPU "intel_pstate/no_turbo", "1\n");
    put_cpu(3, "performance\n", "C10\n", "890\n");
    put("/dev/cpu_dma_latency", "");
    put("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    put("/proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put_card("enp3s0", "1000\n", "full\n");
    put_process(400, "ptp4l", 0, 0, 0);
    put_process(401, "phc2sys", 0, 0, 0);
    put_process(16, "migration/3", 0x200000, 99, 1); // the kernel's own do not count
    put("/sys/class/ptp/ptp0/clock_name", "enp3s0\n");
    put("/proc/net/udp", "  sl  local_address rem_address   st\n");
}

static const crdi_wish nothing = {.cpu = -1, .priority = 80, .step = NAN, .duration = 3};

// What system calls would say on a good machine.
static void answer(crdi_facts* f)
{
    f->fifo_error = 0;
    f->resolution = 1;
    f->landlock = 4;
    f->worker = 1;
    f->synchronised = 1;
    f->clock_offset = 40;
    f->clock_error = 200;
    f->tai = 37;
    for (int i = 0; i < f->nic_count; i++) {
        crdi_nic* n = &f->nics[i];
        n->rx_usecs = n->adaptive_rx = n->lro = 0;
        n->rx_ring = n->rx_ring_max = 256;
        n->stamps_hardware = n->stamps_software = 1;
        n->phc = 0;
    }
}

// ---- results -----------------------------------------------------------------------------------

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    crdi_wish wish;
    crdi_facts facts;
    crdi_diagnoses results;
} fixture;

static int setup(void** state)
{
    static fixture f;
    f = (fixture){0};
    f.ctx = check_context(&f.memory);
    f.wish = nothing;
    *state = &f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    if (f->results.ctx) { crdi_diagnoses_clear(&f->results); }
    crd_context_destroy(f->ctx);
    check_int(f->memory.live, 0);
    return end_machine(state);
}

static void judge(fixture* f, crdi_profile p)
{
    if (f->results.ctx) { crdi_diagnoses_clear(&f->results); }
    f->wish.profile = p;
    crdi_diagnoses_init(&f->results, f->ctx, p);
    crdi_judge_machine(&f->facts, &f->wish, &f->results);
    check(!f->results.failed);
}

static const crdi_diagnosis* result_of(const fixture* f, const char* id)
{
    for (int i = 0; i < f->results.count; i++) {
        if (strcmp(f->results.items[i].check->id, id) == 0) { return &f->results.items[i]; }
    }
    fail_msg("no result for %s", id);
    return NULL;
}

#define check_result(f, id, want, text)                                                            \
    do {                                                                                           \
        const crdi_diagnosis* check_r = result_of(f, id);                                          \
        if (check_r->state != (want) || !strstr(check_r->found, text)) {                           \
            fail_msg("%s:%d: %s is %s, \"%s\", expected %s, \"%s\"", __FILE__, __LINE__, id,       \
                     crdi_state_names[check_r->state], check_r->found, crdi_state_names[want],     \
                     text);                                                                        \
        }                                                                                          \
    } while (0)

// Everything that is printed is printable and short enough, whatever the profile.
static void check_lines(fixture* f)
{
    for (int p = 0; p < CRDI_PROFILES; p++) {
        judge(f, (crdi_profile)p);
        for (int i = 0; i < f->results.count; i++) {
            const crdi_diagnosis* x = &f->results.items[i];
            check(*x->found && strlen(x->found) < CRDI_FOUND && strlen(x->fix) < CRDI_FIX - 1);
            check((x->state == CRDI_WARN || x->state == CRDI_FAIL) == (*x->fix != 0));
            for (const char* c = x->found; *c; c++) {
                check(*c >= ' ' && *c <= '~');
            }
            for (const char* line = x->fix; *line;) {
                const size_t n = strcspn(line, "\n");
                if (n > 92) { fail_msg("%s: '%.*s' is too long", x->check->id, (int)n, line); }
                line += n + (line[n] == '\n');
            }
        }
    }
}

// ---- tests: the table --------------------------------------------------------------------------

static void every_check_says_what_it_is_and_why_it_matters_in_few_words(void** state)
{
    for (int i = 0; i < crdi_check_count; i++) {
        const crdi_check* c = &crdi_checks[i];
        check(*c->id && *c->title && *c->why);
        check(strlen(c->title) <= 17 && strlen(c->why) <= 60);
        check(crdi_find_check(c->id) == c); // no id twice
        check(i == 0 || crdi_checks[i - 1].area <= c->area);
        for (int p = 1; p < CRDI_PROFILES; p++) {
            check(c->need[p] >= c->need[p - 1]); // hard wants nothing less than soft
        }
    }
    check(crdi_find_check("nothing of the kind") == NULL);
}

static void a_bad_finding_fails_only_where_it_is_needed(void** state)
{
    static const crdi_state want[4][3] = {{CRDI_OK, CRDI_OK, CRDI_OK},
                                          {CRDI_NA, CRDI_WARN, CRDI_WARN},
                                          {CRDI_NA, CRDI_WARN, CRDI_FAIL},
                                          {CRDI_NA, CRDI_NA, CRDI_NA}};
    for (int f = 0; f < 4; f++) {
        for (int n = 0; n < 3; n++) {
            check_int(crdi_state_of((crdi_finding)f, (crdi_need)n), want[f][n]);
        }
    }
}

// ---- tests: machines ---------------------------------------------------------------------------

static void an_ideal_machine_is_ok_in_every_profile(void** state)
{
    fixture* f = *state;
    put_ideal_machine();
    f->wish.cpu = 3;
    crdi_wish_usual_ports(&f->wish);
    crdi_doctor_look(root, &f->wish, &f->facts);
    answer(&f->facts);
    for (int p = 0; p < CRDI_PROFILES; p++) {
        judge(f, (crdi_profile)p);
        for (int i = 0; i < f->results.count; i++) {
            const crdi_diagnosis* x = &f->results.items[i];
            if (x->state == CRDI_WARN || x->state == CRDI_FAIL) {
                fail_msg("%s is %s: %s", x->check->id, crdi_state_names[x->state], x->found);
            }
            check_text(x->fix, "");
        }
    }
    check_result(f, "preemption", CRDI_OK, "rt");
    check_result(f, "hypervisor", CRDI_OK, "real, Beckhoff");
    check_result(f, "rt-priority", CRDI_OK, "95, wished 80");
    check_result(f, "isolated", CRDI_OK, "3, CPU 3 among them");
    check_result(f, "idle-states", CRDI_OK, "C10: 890 us, kept off during a run");
    check_result(f, "link", CRDI_OK, "1000 Mbit/s full, MTU 1500");
    check_result(f, "ring", CRDI_OK, "igc, receive ring 256 of 256");
    check_result(f, "irqs", CRDI_OK, "1 on CPUs 0-1");
    check_result(f, "time-daemon", CRDI_OK, "ptp4l");
    check_result(f, "clock-sync", CRDI_OK, "offset 40 ns");
    check_result(f, "firewall", CRDI_NA, "not known");
}

static void a_machine_is_judged_by_every_check_of_the_table(void** state)
{
    fixture* f = *state;
    put_ideal_machine();
    crdi_wish_usual_ports(&f->wish);
    crdi_doctor_look(root, &f->wish, &f->facts);
    judge(f, CRDI_HARD);
    for (int i = 0; i < crdi_check_count; i++) {
        if (crdi_checks[i].area < CRDI_AREA_MEASUREMENT) { result_of(f, crdi_checks[i].id); }
    }
}

static void put_laptop(void)
{
    begin_machine("laptop");
    put_kernel("6.1.0-18-amd64\n", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1\n");
    put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet splash\n");
    put("/boot/config-6.1.0-18-amd64",
        "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_HIGH_RES_TIMERS=y\n");
    put_status("1000", "0000000000000000", "0-3");
    put_limits("0", "8388608");
    put("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    put("/proc/sys/kernel/nmi_watchdog", "1\n");
    put(CPU "isolated", "\n");
    put(CPU "smt/active", "1\n");
    put(CPU "intel_pstate/no_turbo", "0\n");
    for (int i = 0; i < 4; i++) {
        put_cpu(i, i == 2 ? "powersave\n" : "performance\n", "C8\n", "200\n");
    }
    put(CPU "cpu1/thermal_throttle/core_throttle_count", "17\n");
    put("/dev/cpu_dma_latency", "");
    check(chmod(below("/dev/cpu_dma_latency"), 0400) == 0);
    put("/proc/swaps",
        "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p3  partition 8388604 0 -2\n");
    put("/proc/meminfo", "MemAvailable:   700000 kB\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    put_card("wlp2s0", "\n", "\n");
    put(NET "wlp2s0/wireless/empty", "");
    put(NET "lo/flags", "0x9\n");
    put(NET "docker0/flags", "0x1003\n"); // up, but no card
    put_process(500, "systemd-timesyn", 0, 0, 0);
    put_process(900, "pipe) (wire", 0, 88, 1);
    put("/proc/net/udp", "  sl  local_address rem_address   st\n"
                         "  12: 0100007F:1F90 00000000:0000 07 00000000:00000000\n");
    put("/proc/net/tcp", "  sl  local_address rem_address   st\n"
                         "   3: 0100007F:1F90 0100007F:D431 01 00000000:00000000\n"); // no listener
    put("/proc/net/tcp6",
        "  sl  local_address                         remote_address                        st\n"
        "   0: 00000000000000000000000000000000:20E5 00000000000000000000000000000000:0000 0A x\n");
}

static void a_laptop_will_do_for_soft_real_time_but_not_for_hard(void** state)
{
    fixture* f = *state;
    put_laptop();
    crdi_wish_usual_ports(&f->wish);
    crdi_doctor_look(root, &f->wish, &f->facts);
    f->facts.fifo_error = EPERM;
    f->facts.resolution = 1;
    if (geteuid() == 0) { f->facts.dma_latency = 0; } // root writes everywhere
    judge(f, CRDI_HARD);
    check_result(f, "preemption", CRDI_FAIL, "voluntary, chosen at boot by PREEMPT_DYNAMIC");
    check_contains(result_of(f, "preemption")->fix, "linux-image-rt-");
    check_result(f, "rt-priority", CRDI_FAIL, "0, wished 80");
    check_contains(result_of(f, "rt-priority")->fix, "@realtime - rtprio 95");
    check_result(f, "memlock", CRDI_FAIL, "up to 8192 KiB");
    check_contains(result_of(f, "memlock")->fix, "LimitMEMLOCK=infinity");
    check_result(f, "fifo", CRDI_FAIL, "Operation not permitted");
    check_result(f, "governor", CRDI_FAIL, "powersave on CPU 2");
    check_result(f, "idle-states", CRDI_FAIL, "C8: 200 us");
    check_result(f, "dma-latency", CRDI_WARN, "may not be written");
    check_result(f, "isolated", CRDI_WARN, "none");
    check_contains(result_of(f, "isolated")->fix, "nohz_full=3");
    check_result(f, "smt", CRDI_WARN, "in use");
    check_result(f, "rt-tasks", CRDI_WARN, "pipe) (wire (88, pid 900)");
    check_result(f, "rt-throttle", CRDI_WARN, "after 950 of 1000 ms");
    check_result(f, "turbo", CRDI_WARN, "on");
    check_result(f, "throttled", CRDI_WARN, "17 times");
    check_result(f, "memory", CRDI_WARN, "683 MiB");
    check_result(f, "swap", CRDI_WARN, "8191 MiB");
    check_result(f, "huge-pages", CRDI_WARN, "always");
    check_result(f, "link", CRDI_FAIL, "wireless");
    check_result(f, "time-daemon", CRDI_OK, "systemd-timesyncd");
    check_int(f->facts.nic_count, 1);
    check_lines(f);
    judge(f, CRDI_SOFT);
    check_int(crdi_diagnoses_count(&f->results, CRDI_FAIL), 0);
    check_result(f, "preemption", CRDI_WARN, "voluntary");
    check_contains(result_of(f, "preemption")->fix, "preempt=full");
    check_result(f, "isolated", CRDI_NA, "none");
    check_text(result_of(f, "isolated")->fix, "");
    judge(f, CRDI_DESK);
    check_int(crdi_diagnoses_count(&f->results, CRDI_FAIL), 0);
    check_result(f, "governor", CRDI_NA, "powersave");
}

static void ports_that_are_taken_say_where(void** state)
{
    fixture* f = *state;
    put_laptop();
    crdi_wish_usual_ports(&f->wish);
    check_ok(crdi_wish_port(f->ctx, &f->wish, "udp:8080"));
    check_ok(crdi_wish_port(f->ctx, &f->wish, "tcp:8080"));
    check_ok(crdi_wish_port(f->ctx, &f->wish, "443"));
    crdi_doctor_look(root, &f->wish, &f->facts);
    judge(f, CRDI_DESK);
    const crdi_diagnosis* x = result_of(f, "port");
    check_text(x[0].found, "DCP slave: taken at 127.0.0.1");
    check_int(x[0].state, CRDI_WARN);
    check_contains(x[0].fix, "sudo ss -lntup 'sport = :8080'");
    check_text(x[1].found, "live page: taken at ::");
    check_int(x[2].state, CRDI_OK); // PlotJuggler may listen or not
    check_text(x[3].subject, "udp 8080");
    check_int(x[3].state, CRDI_FAIL); // it was asked for
    check_int(x[4].state, CRDI_OK);
    check_text(x[5].found, "wanted: only for root");
    check_int(x[5].state, CRDI_FAIL);
    check_status(crdi_wish_port(f->ctx, &f->wish, "0"), CRD_E_RANGE);
    check_status(crdi_wish_port(f->ctx, &f->wish, "udp:65536"), CRD_E_RANGE);
    check_status(crdi_wish_port(f->ctx, &f->wish, "http"), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "'http': expected a number from 1 to 65535");
    for (int i = f->wish.port_count; i < CRDI_DOCTOR_PORTS; i++) {
        check_ok(crdi_wish_port(f->ctx, &f->wish, "5000"));
    }
    check_status(crdi_wish_port(f->ctx, &f->wish, "5000"), CRD_E_RANGE);
}

static void a_container_says_what_has_to_come_from_outside(void** state)
{
    fixture* f = *state;
    begin_machine("container");
    put_kernel("5.4.0\n", "#1 SMP\n");
    put("/.dockerenv", "");
    put("/proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
    put("/sys/fs/cgroup/system.slice/docker-1.scope/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"); // of a group above
    put("/sys/fs/cgroup/system.slice/docker-1.scope/memory.max", "134217728\n");
    put("/proc/meminfo", "MemAvailable: 9000000 kB\n");
    put_status("0", "00000000a80425fb", "2");
    put_limits("0", "65536");
    f->wish.cpu = 3;
    crdi_doctor_look(root, &f->wish, &f->facts);
    f->facts.fifo_error = EPERM;
    judge(f, CRDI_HARD);
    check_result(f, "container", CRDI_WARN, "docker");
    check_result(f, "kernel-version", CRDI_WARN, "5.4.0");
    check_result(f, "preemption", CRDI_FAIL, "voluntary");
    check_contains(result_of(f, "preemption")->fix, "host");
    check_result(f, "user", CRDI_WARN, "root");
    check_result(f, "rt-priority", CRDI_FAIL, "0, wished 80");
    check_contains(result_of(f, "rt-priority")->fix, "--cap-add SYS_NICE --ulimit rtprio=95");
    check_contains(result_of(f, "memlock")->fix, "--ulimit memlock=-1");
    check_result(f, "group-cpu", CRDI_FAIL, "1.5 CPUs");
    check_result(f, "memory", CRDI_FAIL, "128 MiB, the limit of the control group");
    check_result(f, "affinity", CRDI_FAIL, "3 is not one of 2");
    check_result(f, "cpus", CRDI_FAIL, "1 for this process");
    check_result(f, "governor", CRDI_NA, "no choice here");
    check_result(f, "link", CRDI_NA, "no network card is up");
    check_lines(f);
}

static void old_control_groups_are_understood(void** state)
{
    fixture* f = *state;
    begin_machine("groups");
    put("/proc/self/cgroup", "5:cpuset:/\n4:memory:/a/b\n3:cpu,cpuacct:/a/b\n1:name=systemd:/x\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us", "0\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"); // none
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.group_rt, 0);
    check_near(f->facts.group_cpus, 0.5, 1e-12);
    check_int(f->facts.group_kb, 1024);
    f->facts.fifo_error = EPERM;
    judge(f, CRDI_HARD);
    check_result(f, "group-rt", CRDI_FAIL, "0 us");
    check_contains(result_of(f, "fifo")->fix, "control group");
}

static void preemption_is_what_runs_and_not_what_was_built(void** state)
{
    fixture* f = *state;
    static const struct {
        const char *version, *cmdline, *config, *debug;
        crdi_preemption want;
    } rows[] = {
        {"#1 SMP PREEMPT_DYNAMIC", "quiet preempt=full", "CONFIG_PREEMPT_VOLUNTARY=y\n", "",
         CRDI_PREEMPT_FULL},
        {"#1 SMP PREEMPT_DYNAMIC", "preempt=full preempt=none", "CONFIG_PREEMPT=y\n",
         "none voluntary (lazy) full", CRDI_PREEMPT_LAZY},
        {"#1 SMP PREEMPT_DYNAMIC", "preemption=full", "CONFIG_PREEMPT_VOLUNTARY=y\n", "",
         CRDI_PREEMPT_VOLUNTARY},
        {"#1 SMP PREEMPT_DYNAMIC", "", "", "", CRDI_PREEMPT_UNKNOWN},
        {"#1 SMP PREEMPT", "", "", "", CRDI_PREEMPT_FULL},
        {"#1 SMP", "preempt=full", "CONFIG_PREEMPT_NONE=y\n", "", CRDI_PREEMPT_NONE},
        {"#1 SMP PREEMPT RT", "", "", "", CRDI_PREEMPT_RT},
        {"", "", "", "", CRDI_PREEMPT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_machine("preemption");
        put("/proc/sys/kernel/osrelease", "6.1.0");
        put("/proc/sys/kernel/version", rows[i].version);
        put("/proc/cmdline", rows[i].cmdline);
        put("/boot/config-6.1.0", rows[i].config);
        put("/sys/kernel/debug/sched/preempt", rows[i].debug);
        crdi_doctor_look(root, &f->wish, &f->facts);
        check_int(f->facts.preemption, rows[i].want);
    }
}

static void a_compressed_config_is_read(void** state)
{
    fixture* f = *state;
    begin_machine("config");
    gzFile z = gzopen(below("/proc/config.gz"), "wb");
    check(z != NULL);
    gzputs(z, "# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_NONE=y\n# CONFIG_HIGH_RES_TIMERS is "
              "not set\n");
    gzclose(z);
    put("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC");
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.preemption, CRDI_PREEMPT_NONE);
    check_int(f->facts.high_resolution, 0);
    judge(f, CRDI_SOFT);
    check_result(f, "timers", CRDI_FAIL, "coarse");
}

// ---- tests: hostile files ----------------------------------------------------------------------

static const char* const all_files[] = {
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/config.gz",
    "/proc/swaps",
    "/proc/meminfo",
    "/proc/self/status",
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/proc/1/cgroup",
    "/proc/77/comm",
    "/proc/77/task/77/stat",
    "/proc/77/task/77/status",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/net/udp",
    "/proc/net/tcp",
    "/proc/net/udp6",
    "/proc/net/tcp6",
    "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    "/proc/sys/net/ipv4/conf/eth0/rp_filter",
    "/proc/sys/user/max_user_namespaces",
    "/etc/os-release",
    "/run/systemd/container",
    "/sys/kernel/realtime",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    CPU "online",
    CPU "isolated",
    CPU "nohz_full",
    CPU "smt/active",
    CPU "intel_pstate/no_turbo",
    CPU "cpu0/cpufreq/scaling_governor",
    CPU "cpu0/cpuidle/state0/latency",
    CPU "cpu0/cpuidle/state0/name",
    CPU "cpu0/thermal_throttle/core_throttle_count",
    CPU "cpu0/topology/thread_siblings_list",
    NET "eth0/speed",
    NET "eth0/duplex",
    NET "eth0/mtu",
    NET "eth0/device/numa_node",
    NET "eth0/operstate",
    "/sys/class/ptp/ptp0/clock_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/memory.max"};
enum { ALL_FILES = sizeof all_files / sizeof *all_files };

static void check_hostile(fixture* f)
{
    f->wish.cpu = 0;
    f->wish.port_count = 0;
    crdi_wish_usual_ports(&f->wish);
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_lines(f);
    check(f->results.count > 30);
}

static void an_empty_root_leaves_everything_open(void** state)
{
    fixture* f = *state;
    begin_machine("empty");
    check_hostile(f);
    judge(f, CRDI_HARD);
    check_int(crdi_diagnoses_count(&f->results, CRDI_FAIL), 0);
    check_result(f, "preemption", CRDI_NA, "not known");
    check_result(f, "memlock", CRDI_NA, "not known");
    snprintf(root, sizeof root, "/does/not/exist");
    check_hostile(f);
    *root = 0;
}

static void junk_in_every_file_does_no_harm(void** state)
{
    fixture* f = *state;
    static const char* const words[] = {
        "",
        "\n",
        "-",
        "99999999999999999999999999",
        "-9223372036854775808",
        "0-99999999999",
        "((((",
        "[",
        ")",
        "Uid:",
        "CapEff:\tzzzz\nUid:\n",
        "0:::::\n",
        "1:cpu:/../../..\n",
        "Max realtime priority\nMax locked memory -5\n",
        "%s%n%s%n",
        "18446744073709551615 0",
        "x 1 2\ny partition 9223372036854775807\nz p 9223372036854775807\n",
        "0: 00000000:FFFF\n0: 0:0\n: :\n0: 0000000G:1F90 0 0A\n"};
    begin_machine("junk");
    put(NET "eth0/flags", "0x1003");
    put(NET "eth0/device/msi_irqs/24", "");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        put("/proc/irq/24/smp_affinity_list", words[k]);
        for (int i = 0; i < ALL_FILES; i++) {
            put(all_files[i], words[k]);
        }
        check_hostile(f);
    }
}

static void binary_bytes_in_every_file_do_no_harm(void** state)
{
    fixture* f = *state;
    static unsigned char data[20000]; // longer than a line may be
    uint32_t seed = 1;
    begin_machine("binary");
    put(NET "eth0/flags", "0x1003");
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < sizeof data; i++) {
            seed = seed * 1664525u + 1013904223u;
            data[i] = (unsigned char)(round == 3 ? '(' : seed >> 24);
        }
        if (round == 2) { memset(data, 0, sizeof data); }
        for (int i = 0; i < ALL_FILES; i++) {
            put_bytes(all_files[i], data, sizeof data);
        }
        check_hostile(f);
    }
}

static void pipes_folders_and_loops_in_the_place_of_files_do_not_hang(void** state)
{
    fixture* f = *state;
    begin_machine("odd");
    put(NET "eth0/flags", "0x1003");
    for (int i = 0; i < ALL_FILES; i++) {
        const char* path = below(all_files[i]);
        switch (i % 4) {
        case 0:
            check(mkfifo(path, 0600) == 0);
            break;
        case 1:
            check(mkdir(path, 0700) == 0);
            break;
        case 2:
            put_link(all_files[i], path); // to itself
            break;
        default:
            put(all_files[i], "1\n");
            check(chmod(path, 0) == 0); // for all but root
        }
    }
    check_hostile(f);
}

static void a_file_without_end_is_read_in_part(void** state)
{
    fixture* f = *state;
    begin_machine("huge");
    put("/proc/meminfo", "");
    check(truncate(below("/proc/meminfo"), (off_t)1 << 40) == 0); // sparse
    put("/proc/sys/kernel/osrelease", "");
    check(truncate(below("/proc/sys/kernel/osrelease"), (off_t)1 << 40) == 0);
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.available_kb, CRDI_UNKNOWN);
    check_text(f->facts.release, "");
}

static void everything_that_can_be_wrong_has_a_line_to_type(void** state)
{
    fixture* f = *state;
    put_laptop();
    put_card("eth0", "10\n", "half\n");
    put_process(700, "irqbalance", 0, 0, 0);
    put("/proc/cpuinfo", "flags : fpu hypervisor\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put(CPU "isolated", "2-3\n");
    put(CPU "cpu1/node0/cpulist", "0-3\n");
    put("/sys/devices/system/node/node1/cpulist", "4-7\n");
    put(NET "eth0/device/numa_node", "1\n");
    put("/proc/sys/net/ipv4/conf/all/rp_filter", "1\n");
    put("/proc/sys/user/max_user_namespaces", "0\n");
    f->wish.cpu = 1;
    crdi_wish_usual_ports(&f->wish);
    crdi_doctor_look(root, &f->wish, &f->facts);
    f->facts.fifo_error = EPERM;
    f->facts.synchronised = f->facts.landlock = f->facts.seccomp = f->facts.worker = 0;
    for (int i = 0; i < f->facts.nic_count; i++) {
        crdi_nic* n = &f->facts.nics[i];
        n->rx_usecs = 50;
        n->adaptive_rx = n->lro = 1;
        n->rx_ring = 32;
        n->rx_ring_max = 1024;
        n->stamps_hardware = 0;
    }
    check_lines(f);
    judge(f, CRDI_HARD);
    check_result(f, "clocksource", CRDI_FAIL, "hpet, read by a system call");
    check_result(f, "hypervisor", CRDI_FAIL, "a guest");
    check_result(f, "isolated", CRDI_WARN, "2-3, the chosen one is not among them");
    check_result(f, "numa", CRDI_WARN, "CPU 1 is at node 0, eth0 at 1");
    check_result(f, "link", CRDI_FAIL, "10 Mbit/s half");
    check_result(f, "coalescing", CRDI_WARN, "50 us, adaptive");
    check_contains(result_of(f, "coalescing")->fix, "ethtool -C eth0 adaptive-rx off rx-usecs 0");
    check_result(f, "irqs", CRDI_WARN, "1 on CPUs 0-1, moved about by irqbalance");
    check_contains(result_of(f, "irqs")->fix, "/proc/irq/24/smp_affinity_list");
    check_result(f, "rp-filter", CRDI_WARN, "strict");
    check_result(f, "clock-sync", CRDI_WARN, "not synchronised");
    check_result(f, "user-namespaces", CRDI_WARN, "not allowed");
    check_result(f, "landlock", CRDI_WARN, "none");
    check_result(f, "worker", CRDI_WARN, "not found");
}

static void a_named_card_that_is_not_there_is_told(void** state)
{
    fixture* f = *state;
    put_ideal_machine();
    const char* names[] = {"enp3s0", "eth9", "../../../etc"};
    const crdi_list list = {.items = names, .count = 3};
    f->wish.interfaces = &list;
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.nic_count, 3);
    check_text(f->facts.nics[0].name, "../../../etc");
    check(f->facts.nics[0].missing && !f->facts.nics[1].missing && f->facts.nics[2].missing);
}

static void a_rival_on_another_cpu_is_none(void** state)
{
    fixture* f = *state;
    put_ideal_machine();
    put_process(900, "other", 0, 90, 2);
    put("/proc/900/task/900/status", "Name:\tother\nCpus_allowed_list:\t0-2\n");
    put_process(901, "weak", 0, 79, 1);
    put_process(902, "deadline", 0, 0, 6);
    f->wish.cpu = 3;
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.task_all, 1);
    check_text(f->facts.tasks[0].name, "deadline");
    f->wish.cpu = 1;
    crdi_doctor_look(root, &f->wish, &f->facts);
    check_int(f->facts.task_all, 2);
}

static void lists_of_cpus_are_read_and_written(void** state)
{
    static const struct {
        const char *text, *want;
        int count;
    } rows[] = {{"0-3,8", "0-3,8", 5},     {"", "none", 0},     {"5", "5", 1},
                {"1023", "1023", 1},       {"1024", "none", 0}, {"3-1", "none", 0},
                {"0,2,4-5", "0,2,4-5", 4}, {"2,x", "2", 1},     {"0-4294967296", "0-1023", 1024},
                {"7-", "none", 0},         {"-1", "none", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        const crdi_cpus c = crdi_cpus_parse(rows[i].text);
        check_text(crdi_cpus_text(&c, text, sizeof text), rows[i].want);
        check_int(crdi_cpus_count(&c), rows[i].count);
    }
    const crdi_cpus c = crdi_cpus_parse("0,2,4,6,8,10");
    char tiny[6];
    crdi_cpus_text(&c, tiny, sizeof tiny);
    check(strlen(tiny) < sizeof tiny);
    check(!crdi_cpus_has(&c, -1) && !crdi_cpus_has(&c, 1 << 20));
}

// ---- tests: measurements -----------------------------------------------------------------------

static crdi_latency scripted(int64_t count, int64_t ns, int64_t tail_count, int64_t tail_ns)
{
    crdi_latency l = {.done = true, .period = 1000000, .rights = {.fifo = true}};
    for (int64_t i = 0; i < count; i++) {
        crd_histogram_add(&l.h, i < count - tail_count ? ns : tail_ns);
    }
    return l;
}

static void so_many_samples_tell_no_more_than_this_quantile(void** state)
{
    check_text(crdi_supported_quantile(10000).name, "p99.99");
    check_text(crdi_supported_quantile(9999).name, "p99.9");
    check_text(crdi_supported_quantile(999).name, "p99");
    check_text(crdi_supported_quantile(99).name, "p50");
    check_text(crdi_supported_quantile(1).name, "");
    check_text(crdi_supported_quantile(0).name, "");
}

static void a_step_leaves_half_of_itself_for_work(void** state)
{
    crdi_latency w = scripted(20000, 10000, 0, 0), t = scripted(20000, 20000, 0, 0);
    crdi_supported s = crdi_judge_latency(&w, &t, false);
    check_near(s.step, 2 * (10e-6 + 20e-6), 1e-12);
    check_text(s.sentence, "supports steps down to 60 us at p99.99 (wake-up 10 us + round trip 20 "
                           "us, half of the step left for work)");
    // Never below what was measured.
    w = scripted(20000, 11100, 0, 0);
    s = crdi_judge_latency(&w, &t, false);
    check_near(s.step, 63e-6, 1e-12); // 2 * (11.1 + 20) us
    // Five in 20 000 are late by more: 99.99 % are not without them.
    w = scripted(20000, 10000, 5, 300000);
    s = crdi_judge_latency(&w, &t, false);
    check(s.step >= 640e-6 && s.step < 700e-6);
    // Without the round trip.
    t = (crdi_latency){0};
    w = scripted(20000, 10000, 0, 0);
    s = crdi_judge_latency(&w, &t, false);
    check_contains(s.sentence, "20 us at p99.99 (wake-up 10 us, half");
}

static void short_measurements_and_hypervisors_are_not_believed(void** state)
{
    const crdi_latency w = scripted(3000, 10000, 0, 0), t = scripted(200, 20000, 0, 0);
    crdi_supported s = crdi_judge_latency(&w, &w, true);
    check_contains(s.sentence, "at p99.9 (");
    check_contains(s.sentence, "; too few samples for p99.99, and tails under a hypervisor change");
    s = crdi_judge_latency(&w, &t, false); // the shorter one decides
    check_contains(s.sentence, "at p99 (");
    const crdi_latency none = {0};
    s = crdi_judge_latency(&none, &t, false);
    check_text(s.sentence, "not measured");
    check(isnan(s.step));
}

static void judge_step(fixture* f, crdi_profile p, double step, const crdi_latency* w,
                       const crdi_latency* t)
{
    if (f->results.ctx) { crdi_diagnoses_clear(&f->results); }
    f->wish.profile = p;
    f->wish.step = step;
    crdi_diagnoses_init(&f->results, f->ctx, p);
    crdi_judge_measured(&f->facts, &f->wish, w, t, &f->results);
}

static void the_profile_decides_which_tail_counts(void** state)
{
    fixture* f = *state;
    // 0.05 % of the wake-ups take 2 ms.
    const crdi_latency w = scripted(20000, 20000, 10, 2000000), t = scripted(20000, 20000, 0, 0);
    judge_step(f, CRDI_DESK, NAN, &w, &t);
    check_int(crdi_wished_step(&f->wish) * 1e6, 10000);
    check_result(f, "step", CRDI_OK, "supports");
    judge_step(f, CRDI_SOFT, NAN, &w, &t);
    check_result(f, "wake-up", CRDI_WARN, "max 2 ms of 20000");
    check_result(f, "step", CRDI_OK, "supports steps down to");
    judge_step(f, CRDI_HARD, NAN, &w, &t);
    check_result(f, "wake-up", CRDI_FAIL, "p99.99");
    check_result(f, "step", CRDI_FAIL, "supports");
    check_contains(result_of(f, "step")->fix, "or more");
    judge_step(f, CRDI_HARD, 0.01, &w, &t);
    check_result(f, "step", CRDI_OK, "supports");
    check_text(result_of(f, "step")->subject, "10 ms");
}

static void with_hardware_at_stake_the_worst_counts_and_short_looks_do_not(void** state)
{
    fixture* f = *state;
    crdi_latency w = scripted(100000, 20000, 1, 3000000), t = scripted(100000, 20000, 0, 0);
    judge_step(f, CRDI_HARD, 0.001, &w, &t);
    check_result(f, "step", CRDI_FAIL, "supports steps down to 8");
    check_contains(result_of(f, "step")->fix, "the worst that was seen");
    w = t = scripted(2000, 20000, 0, 0);
    judge_step(f, CRDI_HARD, 0.001, &w, &t);
    check_result(f, "step", CRDI_WARN, "too few samples");
    check_contains(result_of(f, "step")->fix, "--duration 60s");
}

static void what_was_not_measured_is_not_judged(void** state)
{
    fixture* f = *state;
    const crdi_latency none = {0};
    crdi_latency broken = {.done = true, .problem = "no sockets"};
    judge_step(f, CRDI_HARD, NAN, &none, &broken);
    check_result(f, "wake-up", CRDI_NA, "not measured");
    check_result(f, "round-trip", CRDI_NA, "no sockets");
    check_result(f, "step", CRDI_NA, "not measured");
    crdi_latency lost = scripted(20000, 20000, 0, 0);
    lost.missed = 3;
    lost.rights.fifo = false;
    judge_step(f, CRDI_SOFT, NAN, &lost, &lost);
    check_result(f, "round-trip", CRDI_WARN, "without SCHED_FIFO; answers that did not come: 3");
}

// ---- tests: memory -----------------------------------------------------------------------------

static void running_out_of_memory_is_told_and_leaves_nothing(void** state)
{
    fixture* f = *state;
    put_laptop();
    crdi_doctor_look(root, &f->wish, &f->facts);
    for (int64_t at = 0;; at++) {
        check(at < 100);
        f->memory.allocations = 0;
        f->memory.fail_at = at;
        crdi_diagnoses r;
        crdi_diagnoses_init(&r, f->ctx, CRDI_HARD);
        crdi_judge_machine(&f->facts, &f->wish, &r);
        const bool failed = r.failed;
        f->memory.fail_at = -1;
        crdi_diagnoses_clear(&r);
        check_int(f->memory.live, 1); // the context
        if (!failed) { break; }
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_check_says_what_it_is_and_why_it_matters_in_few_words),
        T(a_bad_finding_fails_only_where_it_is_needed),
        T(an_ideal_machine_is_ok_in_every_profile),
        T(a_machine_is_judged_by_every_check_of_the_table),
        T(a_laptop_will_do_for_soft_real_time_but_not_for_hard),
        T(ports_that_are_taken_say_where),
        T(a_container_says_what_has_to_come_from_outside),
        T(old_control_groups_are_understood),
        T(preemption_is_what_runs_and_not_what_was_built),
        T(a_compressed_config_is_read),
        T(an_empty_root_leaves_everything_open),
        T(junk_in_every_file_does_no_harm),
        T(binary_bytes_in_every_file_do_no_harm),
        T(pipes_folders_and_loops_in_the_place_of_files_do_not_hang),
        T(a_file_without_end_is_read_in_part),
        T(everything_that_can_be_wrong_has_a_line_to_type),
        T(a_named_card_that_is_not_there_is_told),
        T(a_rival_on_another_cpu_is_none),
        T(lists_of_cpus_are_read_and_written),
        T(so_many_samples_tell_no_more_than_this_quantile),
        T(a_step_leaves_half_of_itself_for_work),
        T(short_measurements_and_hypervisors_are_not_believed),
        T(the_profile_decides_which_tail_counts),
        T(with_hardware_at_stake_the_worst_counts_and_short_looks_do_not),
        T(what_was_not_measured_is_not_judged),
        T(running_out_of_memory_is_told_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
