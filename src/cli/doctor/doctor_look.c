// What files tell about a machine: kernel, rights, scheduling, CPU, memory.
#include "cli/doctor/doctor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// ---- sets of CPUs ------------------------------------------------------------------------------

crdi_cpus crdi_cpus_parse(const char* text)
{
    crdi_cpus c = {.known = true};
    while (*text >= '0' && *text <= '9') {
        const int64_t a = crdi_leading_number(text);
        text += strspn(text, "0123456789");
        int64_t b = a;
        if (*text == '-') {
            b = crdi_leading_number(text + 1);
            text += 1 + strspn(text + 1, "0123456789");
        }
        if (a < 0 || b < a) { break; }
        for (int64_t i = a; i <= b && i < CRDI_CPUS; i++) {
            c.bits[i / 64] |= UINT64_C(1) << (i % 64);
        }
        if (*text != ',') { break; }
        text++;
    }
    return c;
}

bool crdi_cpus_has(const crdi_cpus* c, int cpu)
{
    return cpu >= 0 && cpu < CRDI_CPUS && (c->bits[cpu / 64] >> (cpu % 64) & 1);
}

int crdi_cpus_count(const crdi_cpus* c)
{
    int n = 0;
    for (int i = 0; i < CRDI_CPUS; i++) {
        n += crdi_cpus_has(c, i);
    }
    return n;
}

int crdi_cpus_first(const crdi_cpus* c)
{
    for (int i = 0; i < CRDI_CPUS; i++) {
        if (crdi_cpus_has(c, i)) { return i; }
    }
    return -1;
}

const char* crdi_cpus_text(const crdi_cpus* c, char* out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "none");
    for (int i = 0; i < CRDI_CPUS && used + 1 < size; i++) {
        if (!crdi_cpus_has(c, i)) { continue; }
        int last = i;
        while (crdi_cpus_has(c, last + 1)) {
            last++;
        }
        used += (size_t)snprintf(out + used, size - used, last > i ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", i, last);
        i = last;
    }
    return out;
}

static crdi_cpus cpus_of(const char* root, const char* path)
{
    char line[512];
    const bool got = crdi_root_line(root, line, sizeof line, "%s", path) == CRDI_GOT;
    return got ? crdi_cpus_parse(line) : (crdi_cpus){0};
}

// The word between two characters, as "[always] madvise" marks it; "" if there is none.
static void marked_word(const char* line, char open, char close, char* out, size_t size)
{
    const char* mark = strchr(line, open);
    const char end[2] = {close, 0};
    snprintf(out, size, "%.*s", mark ? (int)strcspn(mark + 1, end) : 0, mark ? mark + 1 : "");
}

// ---- the command line of the kernel ------------------------------------------------------------

// The value of "name=value", "" without one; false if the word is not there. The last one counts.
static bool boot_word(const char* cmdline, const char* name, char* value, size_t size)
{
    const size_t n = strlen(name);
    bool found = false;
    *value = 0;
    for (const char* at = cmdline; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, n) != 0 || !strchr("= ", at[n])) { continue; }
        found = true;
        const char* from = at[n] == '=' ? at + n + 1 : "";
        snprintf(value, size, "%.*s", (int)strcspn(from, " "), from);
    }
    return found;
}

// ---- kernel ------------------------------------------------------------------------------------

typedef struct config {
    bool seen, none, voluntary, full, lazy, rt, high_resolution;
} config;

static bool read_config(void* user, const char* line)
{
    config* c = user;
    const struct {
        const char* text;
        bool* flag;
    } rows[] = {
        {"CONFIG_PREEMPT_NONE=y", &c->none}, {"CONFIG_PREEMPT_VOLUNTARY=y", &c->voluntary},
        {"CONFIG_PREEMPT=y", &c->full},      {"CONFIG_PREEMPT_LAZY=y", &c->lazy},
        {"CONFIG_PREEMPT_RT=y", &c->rt},     {"CONFIG_HIGH_RES_TIMERS=y", &c->high_resolution}};
    c->seen = c->seen || strncmp(line, "CONFIG_", 7) == 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(line, rows[i].text) == 0) { *rows[i].flag = true; }
    }
    return true;
}

static crdi_preemption preemption_word(const char* word)
{
    static const struct {
        const char* text;
        crdi_preemption p;
    } rows[] = {{"none", CRDI_PREEMPT_NONE},
                {"voluntary", CRDI_PREEMPT_VOLUNTARY},
                {"lazy", CRDI_PREEMPT_LAZY},
                {"full", CRDI_PREEMPT_FULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(word, rows[i].text) == 0) { return rows[i].p; }
    }
    return CRDI_PREEMPT_UNKNOWN;
}

// What was built and what was chosen at boot differ: the kernel's own word first, then the choice,
// then the default that it was built with.
static crdi_preemption find_preemption(const crdi_looking* l, const config* c)
{
    const crdi_facts* f = l->f;
    char line[256], word[32];
    if (strstr(f->version, "PREEMPT_RT") || strstr(f->version, "PREEMPT RT") || c->rt ||
        crdi_root_number(l->root, "/sys/kernel/realtime") == 1) {
        return CRDI_PREEMPT_RT;
    }
    crdi_root_line(l->root, line, sizeof line, "/sys/kernel/debug/sched/preempt");
    marked_word(line, '(', ')', word, sizeof word);
    crdi_preemption p = preemption_word(word);
    if (p) { return p; }
    if (f->preempt_dynamic && boot_word(l->cmdline, "preempt", word, sizeof word)) {
        p = preemption_word(word);
        if (p) { return p; }
    }
    if (c->seen) {
        return c->lazy        ? CRDI_PREEMPT_LAZY
               : c->full      ? CRDI_PREEMPT_FULL
               : c->voluntary ? CRDI_PREEMPT_VOLUNTARY
               : c->none      ? CRDI_PREEMPT_NONE
                              : CRDI_PREEMPT_UNKNOWN;
    }
    if (f->preempt_dynamic || !*f->version) { return CRDI_PREEMPT_UNKNOWN; }
    return strstr(f->version, "PREEMPT_LAZY") ? CRDI_PREEMPT_LAZY
           : strstr(f->version, "PREEMPT")    ? CRDI_PREEMPT_FULL
                                              : CRDI_PREEMPT_VOLUNTARY;
}

static bool read_distribution(void* user, const char* line)
{
    crdi_facts* f = user;
    if (strncmp(line, "ID=", 3) != 0) { return true; }
    const char* from = line + 3 + (line[3] == '"');
    snprintf(f->distribution, sizeof f->distribution, "%.*s", (int)strcspn(from, "\""), from);
    return false;
}

static bool read_cpuinfo(void* user, const char* line)
{
    crdi_facts* f = user;
    if (strncmp(line, "flags", 5) != 0) { return true; }
    const char* at = strstr(line, " hypervisor");
    f->hypervisor = at && strchr(" ", at[11]) != NULL;
    return false;
}

static void look_at_machine(crdi_looking* l)
{
    crdi_facts* f = l->f;
    char vendor[48], product[48];
    crdi_root_lines(l->root, read_cpuinfo, f, "/proc/cpuinfo");
    if (crdi_root_exists(l->root, "/sys/hypervisor/type") ||
        crdi_root_exists(l->root, "/proc/device-tree/hypervisor")) {
        f->hypervisor = 1;
    }
    crdi_root_line(l->root, vendor, sizeof vendor, "/sys/class/dmi/id/sys_vendor");
    crdi_root_line(l->root, product, sizeof product, "/sys/class/dmi/id/product_name");
    snprintf(f->vendor, sizeof f->vendor, "%s%s%s", vendor, *vendor && *product ? " " : "",
             product);
}

void crdi_look_at_kernel(crdi_looking* l)
{
    static const char clocks[] = "/sys/devices/system/clocksource/clocksource0";
    const char* root = l->root;
    crdi_facts* f = l->f;
    char value[32];
    config c = {0};
    crdi_root_line(root, f->release, sizeof f->release, "/proc/sys/kernel/osrelease");
    crdi_root_line(root, f->version, sizeof f->version, "/proc/sys/kernel/version");
    const char* dot = strchr(f->release, '.');
    const int64_t major = crdi_leading_number(f->release);
    const int64_t minor = dot ? crdi_leading_number(dot + 1) : CRDI_UNKNOWN;
    if (major > 0 && major < 1000 && minor >= 0 && minor < 1000) {
        f->major = (int)major;
        f->minor = (int)minor;
    }
    if (crdi_root_lines(root, read_config, &c, "/proc/config.gz") != CRDI_GOT && *f->release &&
        !strchr(f->release, '/')) {
        crdi_root_lines(root, read_config, &c, "/boot/config-%s", f->release);
    }
    f->preempt_dynamic = strstr(f->version, "PREEMPT_DYNAMIC") != NULL;
    f->preemption = find_preemption(l, &c);
    if (boot_word(l->cmdline, "highres", value, sizeof value) && strcmp(value, "off") == 0) {
        f->high_resolution = 0;
    } else if (c.seen) {
        f->high_resolution = c.high_resolution;
    }
    crdi_root_line(root, f->clocksource, sizeof f->clocksource, "%s/current_clocksource", clocks);
    crdi_root_line(root, f->clocksources, sizeof f->clocksources, "%s/available_clocksource",
                   clocks);
    crdi_root_lines(root, read_distribution, f, "/etc/os-release");
    look_at_machine(l);
}

// ---- rights ------------------------------------------------------------------------------------

static const char* behind(const char* line, const char* label)
{
    const size_t n = strlen(label);
    return strncmp(line, label, n) == 0 ? line + n + strspn(line + n, " ") : NULL;
}

static bool read_status(void* user, const char* line)
{
    crdi_facts* f = user;
    const char* text = behind(line, "Uid:");
    if (text) {
        const char* effective = text + strspn(text, "0123456789");
        f->uid = crdi_leading_number(effective + strspn(effective, " "));
    }
    text = behind(line, "CapEff:");
    if (text) {
        uint64_t bits = 0;
        const size_t n = strspn(text, "0123456789abcdefABCDEF");
        for (size_t i = 0; i < n && n <= 16; i++) {
            const char c = text[i];
            bits = bits << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        }
        if (n > 0 && n <= 16) { f->capabilities = (int64_t)(bits & INT64_MAX); }
    }
    text = behind(line, "Cpus_allowed_list:");
    if (text) { f->allowed = crdi_cpus_parse(text); }
    return true;
}

static bool read_limits(void* user, const char* line)
{
    crdi_facts* f = user;
    const char* text = behind(line, "Max realtime priority");
    if (text) { f->rtprio = strncmp(text, "unlimited", 9) == 0 ? 99 : crdi_leading_number(text); }
    text = behind(line, "Max locked memory");
    if (text) {
        f->memlock = strncmp(text, "unlimited", 9) == 0 ? INT64_MAX : crdi_leading_number(text);
    }
    return true;
}

// ---- control groups ----------------------------------------------------------------------------

typedef struct groups {
    char unified[512], cpu[512], memory[512]; // paths, "": none
    char cpu_base[128];
} groups;

static bool has_word(const char* list, size_t length, const char* word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= length; i++) {
        if ((i == 0 || list[i - 1] == ',') && strncmp(list + i, word, n) == 0 &&
            (i + n == length || list[i + n] == ',')) {
            return true;
        }
    }
    return false;
}

static bool doctor_look_read_group(void* user, const char* line)
{
    groups* g = user;
    const char* names = strchr(line, ':');
    const char* path = names ? strchr(names + 1, ':') : NULL;
    if (!path) { return true; }
    names++;
    const size_t length = (size_t)(path++ - names);
    if (*path != '/' || strlen(path) >= sizeof g->cpu || strstr(path, "..")) { path = "/"; }
    if (length == 0) { snprintf(g->unified, sizeof g->unified, "%s", path); }
    if (has_word(names, length, "cpu")) {
        snprintf(g->cpu, sizeof g->cpu, "%s", path);
        snprintf(g->cpu_base, sizeof g->cpu_base, "/sys/fs/cgroup/%.*s",
                 (int)(length < 100 ? length : 100), names);
    }
    if (has_word(names, length, "memory")) { snprintf(g->memory, sizeof g->memory, "%s", path); }
    return true;
}

// A limit of any group above counts, too: calls `use` for the group's folder and all above it.
static void upward(const char* root, const char* base, const char* path,
                   void (*use)(const char* root, const char* folder, crdi_facts* f), crdi_facts* f)
{
    char folder[768];
    snprintf(folder, sizeof folder, "%s%s", base, path);
    const size_t least = strlen(base);
    for (;;) {
        size_t n = strlen(folder);
        while (n > least && folder[n - 1] == '/') {
            folder[--n] = 0;
        }
        use(root, folder, f);
        char* slash = strrchr(folder, '/');
        if (n <= least || !slash || (size_t)(slash - folder) < least) { return; }
        *slash = 0;
    }
}

static void use_quota(double quota, double period, crdi_facts* f)
{
    if (quota > 0 && period > 0 && !(f->group_cpus <= quota / period)) {
        f->group_cpus = quota / period;
    }
}

static void use_bytes(int64_t most, crdi_facts* f)
{
    if (most >= 0 && (f->group_kb < 0 || most / 1024 < f->group_kb)) { f->group_kb = most / 1024; }
}

static void use_unified(const char* root, const char* folder, crdi_facts* f)
{
    char line[64];
    if (crdi_root_line(root, line, sizeof line, "%s/cpu.max", folder) == CRDI_GOT) {
        const char* blank = strchr(line, ' ');
        use_quota((double)crdi_leading_number(line),
                  blank ? (double)crdi_leading_number(blank + 1) : 100000, f);
    }
    use_bytes(crdi_root_number(root, "%s/memory.max", folder), f);
}

static void use_cpu(const char* root, const char* folder, crdi_facts* f)
{
    use_quota((double)crdi_root_number(root, "%s/cpu.cfs_quota_us", folder),
              (double)crdi_root_number(root, "%s/cpu.cfs_period_us", folder), f);
}

static void use_memory(const char* root, const char* folder, crdi_facts* f)
{
    const int64_t most = crdi_root_number(root, "%s/memory.limit_in_bytes", folder);
    if (most < INT64_C(1) << 60) { use_bytes(most, f); } // else there is no limit
}

static bool read_first_group(void* user, const char* line)
{
    static const char* const names[][2] = {{"docker", "docker"}, {"kubepods", "kubernetes"},
                                           {"libpod", "podman"}, {"containerd", "containerd"},
                                           {"/lxc", "lxc"},      {"machine.slice", "nspawn"}};
    crdi_facts* f = user;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*f->container; i++) {
        if (strstr(line, names[i][0])) {
            snprintf(f->container, sizeof f->container, "%s", names[i][1]);
        }
    }
    return !*f->container;
}

static void find_container(crdi_looking* l)
{
    char* name = l->f->container;
    const size_t size = sizeof l->f->container;
    if (crdi_root_exists(l->root, "/.dockerenv")) {
        snprintf(name, size, "docker");
    } else if (crdi_root_exists(l->root, "/run/.containerenv")) {
        snprintf(name, size, "podman");
    } else {
        crdi_root_line(l->root, name, size, "/run/systemd/container");
        if (!*name) { crdi_root_lines(l->root, read_first_group, l->f, "/proc/1/cgroup"); }
    }
}

void crdi_look_at_rights(crdi_looking* l)
{
    const char* root = l->root;
    crdi_facts* f = l->f;
    groups g = {0};
    crdi_root_lines(root, read_status, f, "/proc/self/status");
    crdi_root_lines(root, read_limits, f, "/proc/self/limits");
    find_container(l);
    if (crdi_root_lines(root, doctor_look_read_group, &g, "/proc/self/cgroup") != CRDI_GOT) {
        return;
    }
    if (*g.unified) { upward(root, "/sys/fs/cgroup", g.unified, use_unified, f); }
    if (*g.cpu) {
        upward(root, g.cpu_base, g.cpu, use_cpu, f);
        f->group_rt = crdi_root_number(root, "%s%s/cpu.rt_runtime_us", g.cpu_base, g.cpu);
    }
    if (*g.memory) { upward(root, "/sys/fs/cgroup/memory", g.memory, use_memory, f); }
}

// ---- scheduling and CPU ------------------------------------------------------------------------

#define CPU "/sys/devices/system/cpu"

static void look_at_idle(const char* root, int cpu, crdi_facts* f)
{
    static const char state[] = CPU "/cpu%d/cpuidle/state%d/%s";
    for (int k = 0; k < 16; k++) {
        const int64_t latency = crdi_root_number(root, state, cpu, k, "latency");
        if (latency == CRDI_UNKNOWN) { return; }
        if (crdi_root_number(root, state, cpu, k, "disable") == 1 || latency < f->idle_latency) {
            continue;
        }
        f->idle_latency = latency;
        crdi_root_line(root, f->idle_name, sizeof f->idle_name, state, cpu, k, "name");
    }
}

static void look_at_cpu(const char* root, int cpu, crdi_facts* f)
{
    char governor[32];
    crdi_root_line(root, governor, sizeof governor, CPU "/cpu%d/cpufreq/scaling_governor", cpu);
    if (*governor && (!*f->governor || strcmp(f->governor, "performance") == 0)) {
        memcpy(f->governor, governor, sizeof governor);
        f->governor_cpu = cpu;
    }
    look_at_idle(root, cpu, f);
    const int64_t times =
        crdi_root_number(root, CPU "/cpu%d/thermal_throttle/core_throttle_count", cpu);
    if (times >= 0) {
        const int64_t before = f->throttled > 0 ? f->throttled : 0;
        f->throttled = times < INT64_MAX / 2 - before ? before + times : INT64_MAX / 2;
    }
}

static bool find_node(void* user, const char* name)
{
    int64_t* node = user;
    if (strncmp(name, "node", 4) != 0) { return true; }
    *node = crdi_leading_number(name + 4);
    return *node == CRDI_UNKNOWN;
}

static bool count_node(void* user, const char* name)
{
    int64_t* nodes = user;
    *nodes += strncmp(name, "node", 4) == 0 && crdi_leading_number(name + 4) >= 0;
    return true;
}

static void look_at_chosen(const char* root, int cpu, crdi_facts* f)
{
    char path[128];
    snprintf(path, sizeof path, CPU "/cpu%d/topology/thread_siblings_list", cpu);
    f->siblings = cpus_of(root, path);
    crdi_root_folder(root, find_node, &f->cpu_node, CPU "/cpu%d", cpu);
    f->fair_server =
        crdi_root_number(root, "/sys/kernel/debug/sched/fair_server/cpu%d/runtime", cpu);
}

void crdi_look_at_cpus(crdi_looking* l)
{
    const char* root = l->root;
    const int cpu = l->w->cpu;
    crdi_facts* f = l->f;
    char value[512];
    f->rt_runtime = crdi_root_number(root, "/proc/sys/kernel/sched_rt_runtime_us");
    f->rt_period = crdi_root_number(root, "/proc/sys/kernel/sched_rt_period_us");
    f->online = cpus_of(root, CPU "/online");
    f->isolated = cpus_of(root, CPU "/isolated");
    f->nohz_full = cpus_of(root, CPU "/nohz_full");
    if (boot_word(l->cmdline, "rcu_nocbs", value, sizeof value)) {
        f->rcu_nocbs = crdi_cpus_parse(value);
    }
    f->smt_active = crdi_root_number(root, CPU "/smt/active");
    for (int i = 0; i < CRDI_CPUS; i++) {
        if (cpu < 0 ? crdi_cpus_has(&f->online, i) : i == cpu) { look_at_cpu(root, i, f); }
    }
    look_at_chosen(root, cpu < 0 ? 0 : cpu, f);
    if (cpu < 0) { f->siblings = (crdi_cpus){0}; }
    if (boot_word(l->cmdline, "idle", value, sizeof value) && strcmp(value, "poll") == 0) {
        f->idle_latency = 0;
        snprintf(f->idle_name, sizeof f->idle_name, "idle=poll");
    }
    const int64_t no_turbo = crdi_root_number(root, CPU "/intel_pstate/no_turbo");
    f->turbo = no_turbo >= 0 ? no_turbo == 0 : crdi_root_number(root, CPU "/cpufreq/boost");
    if (crdi_root_exists(root, "/dev/cpu_dma_latency")) {
        f->dma_latency = crdi_root_writable(root, "/dev/cpu_dma_latency");
    }
    f->nmi_watchdog = crdi_root_number(root, "/proc/sys/kernel/nmi_watchdog");
}

// ---- memory ------------------------------------------------------------------------------------

static bool read_swap(void* user, const char* line)
{
    crdi_facts* f = user;
    if (strncmp(line, "Filename", 8) == 0) {
        f->swap_kb = f->swap_kb > 0 ? f->swap_kb : 0;
        return true;
    }
    const char* at = line;
    for (int i = 0; i < 2; i++) { // name and type
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    const int64_t size = crdi_leading_number(at);
    if (f->swap_kb >= 0 && size > 0 && size < INT64_MAX / 2 - f->swap_kb) { f->swap_kb += size; }
    return true;
}

static bool read_memory(void* user, const char* line)
{
    crdi_facts* f = user;
    const char* text = behind(line, "MemAvailable:");
    if (text) { f->available_kb = crdi_leading_number(text); }
    return !text;
}

void crdi_look_at_memory(crdi_looking* l)
{
    crdi_facts* f = l->f;
    char line[128];
    int64_t nodes = 0;
    crdi_root_lines(l->root, read_swap, f, "/proc/swaps");
    crdi_root_lines(l->root, read_memory, f, "/proc/meminfo");
    crdi_root_line(l->root, line, sizeof line, "/sys/kernel/mm/transparent_hugepage/enabled");
    marked_word(line, '[', ']', f->huge_pages, sizeof f->huge_pages);
    if (crdi_root_folder(l->root, count_node, &nodes, "/sys/devices/system/node") == CRDI_GOT) {
        f->nodes = nodes;
    }
}

// ------------------------------------------------------------------------------------------------

void crdi_facts_init(crdi_facts* f)
{
    memset(f, 0, sizeof *f);
    int64_t* const numbers[] = {
        &f->high_resolution, &f->hypervisor,   &f->uid,       &f->capabilities,    &f->rtprio,
        &f->memlock,         &f->group_rt,     &f->low_port,  &f->rt_runtime,      &f->rt_period,
        &f->fair_server,     &f->smt_active,   &f->turbo,     &f->idle_latency,    &f->dma_latency,
        &f->throttled,       &f->nmi_watchdog, &f->swap_kb,   &f->available_kb,    &f->group_kb,
        &f->nodes,           &f->cpu_node,     &f->netfilter, &f->user_namespaces, &f->seccomp,
        &f->bubblewrap,      &f->resolution,   &f->landlock,  &f->synchronised,    &f->clock_offset,
        &f->clock_error,     &f->tai};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = CRDI_UNKNOWN;
    }
    f->group_cpus = NAN;
    f->governor_cpu = -1;
    f->fifo_error = -1;
}
