// What files tell about a machine: network, other processes, ports, sandbox.
#include "cli/doctor/doctor.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- network -----------------------------------------------------------------------------------

typedef struct net_look {
    const char* root;
    const crdi_wish* wish;
    crdi_facts* facts;
    crdi_nic* nic;
} net_look;

#define NET "/sys/class/net/%s/"

static bool wanted(const crdi_wish* w, const char* name)
{
    for (int i = 0; w->interfaces && i < w->interfaces->count; i++) {
        if (strcmp(w->interfaces->items[i], name) == 0) { return true; }
    }
    return !w->interfaces || w->interfaces->count == 0;
}

static int64_t nic_number(const net_look* l, const char* name)
{
    return crdi_root_number(l->root, NET "%s", l->nic->name, name);
}

static bool nic_has(const net_look* l, const char* name)
{
    return crdi_root_exists(l->root, NET "%s", l->nic->name, name);
}

static bool look_at_irq(void* user, const char* name)
{
    net_look* l = user;
    crdi_nic* nic = l->nic;
    const long long number = crdi_leading_number(name);
    char line[512];
    if (number < 0 || number > 1000000) { return true; }
    crdi_root_line(l->root, line, sizeof line, "/proc/irq/%lld/effective_affinity_list", number);
    if (!*line) {
        crdi_root_line(l->root, line, sizeof line, "/proc/irq/%lld/smp_affinity_list", number);
    }
    if (!*line) { return true; }
    const crdi_cpus c = crdi_cpus_parse(line);
    for (size_t i = 0; i < sizeof c.bits / sizeof *c.bits; i++) {
        nic->irq_cpus.bits[i] |= c.bits[i];
    }
    nic->irq_cpus.known = true;
    if (nic->irq_near < 0 && crdi_cpus_has(&c, l->wish->cpu)) { nic->irq_near = (int)number; }
    return ++nic->irq_count < 512;
}

static int64_t filter_of(const char* root, const char* name)
{
    return crdi_root_number(root, "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
}

static void look_at_nic(net_look* l)
{
    crdi_nic* nic = l->nic;
    const char* name = nic->name;
    char text[32];
    crdi_root_line(l->root, text, sizeof text, NET "operstate", name);
    // Virtual ones often say "unknown" and work.
    nic->carrier = strcmp(text, "up") == 0 || strcmp(text, "unknown") == 0;
    nic->wireless = nic_has(l, "wireless") || nic_has(l, "phy80211");
    nic->speed = nic_number(l, "speed");
    if (nic->speed <= 0) { nic->speed = CRDI_UNKNOWN; }
    nic->mtu = nic_number(l, "mtu");
    nic->node = nic_number(l, "device/numa_node");
    crdi_root_line(l->root, nic->duplex, sizeof nic->duplex, NET "duplex", name);
    crdi_root_link(l->root, nic->driver, sizeof nic->driver, NET "device/driver", name);
    const int64_t all = filter_of(l->root, "all"), own = filter_of(l->root, name);
    nic->rp_filter = all > own ? all : own;
    if (crdi_root_folder(l->root, look_at_irq, l, NET "device/msi_irqs", name) != CRDI_GOT) {
        // virtio: they belong to the PCI device above
        crdi_root_folder(l->root, look_at_irq, l, NET "device/../msi_irqs", name);
    }
}

static void init_nic(crdi_nic* nic, const char* name)
{
    *nic = (crdi_nic){.irq_near = -1};
    snprintf(nic->name, sizeof nic->name, "%s", name);
    int64_t* const numbers[] = {&nic->speed,
                                &nic->mtu,
                                &nic->node,
                                &nic->rp_filter,
                                &nic->rx_usecs,
                                &nic->adaptive_rx,
                                &nic->rx_ring,
                                &nic->rx_ring_max,
                                &nic->lro,
                                &nic->phc,
                                &nic->stamps_hardware,
                                &nic->stamps_software};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = CRDI_UNKNOWN;
    }
}

// "0x1003"
static unsigned flags_of(const net_look* l)
{
    char text[32];
    unsigned flags = 0;
    crdi_root_line(l->root, text, sizeof text, NET "flags", l->nic->name);
    for (const char* c = strncmp(text, "0x", 2) == 0 ? text + 2 : ""; *c; c++) {
        const char* digits = "0123456789abcdef";
        const char* at = strchr(digits, *c);
        if (!at) { break; }
        flags = flags << 4 | (unsigned)(at - digits);
    }
    return flags;
}

static bool on_nic(void* user, const char* name)
{
    net_look* l = user;
    crdi_facts* f = l->facts;
    if (f->nic_count == CRDI_DOCTOR_NICS) { return false; }
    crdi_nic* nic = &f->nics[f->nic_count];
    if (strlen(name) >= sizeof nic->name) { return true; }
    init_nic(nic, name);
    l->nic = nic;
    const unsigned flags = flags_of(l);
    nic->up = flags & IFF_UP;
    nic->multicast = flags & IFF_MULTICAST;
    nic->device = nic_has(l, "device");
    if (flags & IFF_LOOPBACK) { return true; }
    f->nics_up += nic->up && nic->device;
    if (!wanted(l->wish, name)) { return true; }
    const bool named = l->wish->interfaces && l->wish->interfaces->count > 0;
    if (!named && !(nic->up && nic->device)) { return true; }
    look_at_nic(l);
    f->nic_count++;
    return true;
}

static int doctor_look_net_by_name(const void* a, const void* b)
{
    return strcmp(((const crdi_nic*)a)->name, ((const crdi_nic*)b)->name);
}

void crdi_look_at_network(crdi_looking* looking)
{
    const crdi_wish* w = looking->w;
    crdi_facts* f = looking->f;
    net_look l = {.root = looking->root, .wish = w, .facts = f};
    crdi_root_folder(l.root, on_nic, &l, "/sys/class/net");
    for (int i = 0; w->interfaces && i < w->interfaces->count; i++) {
        bool there = false;
        for (int k = 0; k < f->nic_count; k++) {
            there = there || strcmp(f->nics[k].name, w->interfaces->items[i]) == 0;
        }
        if (there || f->nic_count == CRDI_DOCTOR_NICS) { continue; }
        init_nic(&f->nics[f->nic_count], w->interfaces->items[i]);
        f->nics[f->nic_count++].missing = true;
    }
    qsort(f->nics, (size_t)f->nic_count, sizeof *f->nics, doctor_look_net_by_name);
}

// ---- processes ---------------------------------------------------------------------------------

typedef struct process_look {
    const char* root;
    const crdi_wish* wish;
    crdi_facts* facts;
    const char* pid; // of the process whose threads are looked at
    int threads;     // so far, of all
} process_look;

enum { MOST_THREADS = 50000, KERNEL_THREAD = 0x200000, FIFO = 1, ROUND_ROBIN = 2, DEADLINE = 6 };

// Field `number` of /proc/PID/stat, counted from 1; those before 3 have the name in them.
static int64_t stat_field(const char* line, int number)
{
    const char* at = strrchr(line, ')'); // a name may hold blanks and brackets
    if (!at) { return CRDI_UNKNOWN; }
    at++;
    for (int i = 3; i <= number; i++) {
        at += strspn(at, " ");
        if (i == number) { return crdi_leading_number(at); }
        at += strcspn(at, " ");
    }
    return CRDI_UNKNOWN;
}

static bool read_affinity(void* user, const char* line)
{
    static const char label[] = "Cpus_allowed_list:";
    if (strncmp(line, label, sizeof label - 1) != 0) { return true; }
    const char* text = line + sizeof label - 1;
    *(crdi_cpus*)user = crdi_cpus_parse(text + strspn(text, " "));
    return false;
}

static void note_task(process_look* l, const char* thread, const char* stat, int64_t priority)
{
    crdi_facts* f = l->facts;
    crdi_cpus allowed = {0};
    crdi_root_lines(l->root, read_affinity, &allowed, "/proc/%.20s/task/%.20s/status", l->pid,
                    thread);
    if (l->wish->cpu >= 0 && allowed.known && !crdi_cpus_has(&allowed, l->wish->cpu)) { return; }
    f->task_all++;
    if (f->task_count == CRDI_DOCTOR_TASKS) { return; }
    crdi_task* t = &f->tasks[f->task_count++];
    const char *open = strchr(stat, '('), *close = strrchr(stat, ')');
    const int length = open && close && close > open ? (int)(close - open - 1) : 0;
    snprintf(t->name, sizeof t->name, "%.*s", length < 31 ? length : 31, length ? open + 1 : "");
    t->pid = crdi_leading_number(l->pid);
    t->priority = priority;
    t->cpu = stat_field(stat, 39);
}

static bool on_thread(void* user, const char* name)
{
    process_look* l = user;
    char stat[1024];
    if (crdi_leading_number(name) < 0) { return true; }
    if (++l->threads > MOST_THREADS) { return false; }
    if (crdi_root_line(l->root, stat, sizeof stat, "/proc/%.20s/task/%.20s/stat", l->pid, name) !=
        CRDI_GOT) {
        return true;
    }
    const int64_t flags = stat_field(stat, 9);
    if (flags != CRDI_UNKNOWN && flags & KERNEL_THREAD) { return false; }
    const int64_t priority = stat_field(stat, 40), policy = stat_field(stat, 41);
    if (((policy == FIFO || policy == ROUND_ROBIN) && priority >= l->wish->priority) ||
        policy == DEADLINE) {
        note_task(l, name, stat, priority);
    }
    return true;
}

static void note_daemon(crdi_facts* f, const char* comm)
{
    static const char* const daemons[][2] = {{"chronyd", "chronyd"},
                                             {"ntpd", "ntpd"},
                                             {"ptp4l", "ptp4l"},
                                             {"phc2sys", "phc2sys"},
                                             {"systemd-timesyn", "systemd-timesyncd"}};
    if (strcmp(comm, "irqbalance") == 0) { f->irqbalance = true; }
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++) {
        if (strcmp(comm, daemons[i][0]) != 0 || strstr(f->time_daemons, daemons[i][1])) {
            continue;
        }
        const size_t used = strlen(f->time_daemons);
        snprintf(f->time_daemons + used, sizeof f->time_daemons - used, "%s%s", used ? ", " : "",
                 daemons[i][1]);
        if (strcmp(comm, "ptp4l") == 0) { f->ptp4l = true; }
    }
}

static bool on_process(void* user, const char* name)
{
    process_look* l = user;
    char comm[64];
    const int64_t pid = crdi_leading_number(name);
    if (pid < 0 || strlen(name) > 20 || name[strspn(name, "0123456789")] ||
        (!*l->root && pid == getpid())) {
        return true;
    }
    crdi_root_line(l->root, comm, sizeof comm, "/proc/%.20s/comm", name);
    note_daemon(l->facts, comm);
    l->pid = name;
    crdi_root_folder(l->root, on_thread, l, "/proc/%.20s/task", name);
    return true;
}

static bool on_clock(void* user, const char* name)
{
    process_look* l = user;
    if (l->facts->ptp_clocks++ == 0) {
        crdi_root_line(l->root, l->facts->ptp_name, sizeof l->facts->ptp_name,
                       "/sys/class/ptp/%.60s/clock_name", name);
    }
    return l->facts->ptp_clocks < 64;
}

void crdi_look_at_processes(crdi_looking* looking)
{
    process_look l = {.root = looking->root, .wish = looking->w, .facts = looking->f};
    crdi_root_folder(l.root, on_process, &l, "/proc");
    crdi_root_folder(l.root, on_clock, &l, "/sys/class/ptp");
}

// ---- ports -------------------------------------------------------------------------------------

typedef struct port_look {
    const crdi_wish* wish;
    crdi_facts* facts;
    bool tcp, six;
} port_look;

// Hexadecimal digits in the order of the machine's words, as /proc/net writes them.
static bool hex_words(const char* text, int words, uint32_t* out)
{
    for (int i = 0; i < words; i++) {
        out[i] = 0;
        for (int k = 0; k < 8; k++) {
            const char c = text[8 * i + k];
            const char* digits = "0123456789ABCDEF";
            const char* at = c ? strchr(digits, c) : NULL;
            if (!at) { return false; }
            out[i] = out[i] << 4 | (uint32_t)(at - digits);
        }
    }
    return true;
}

// "  12: 0100007F:1F90 00000000:0000 0A ..."
static bool read_socket(void* user, const char* line)
{
    port_look* l = user;
    const char* address = strchr(line, ':');
    if (!address) { return true; }
    address += 1 + strspn(address + 1, " ");
    const char* colon = strchr(address, ':');
    uint32_t words[4], low = 0;
    const int count = l->six ? 4 : 1;
    if (!colon || colon - address != 8 * count || !hex_words(address, count, words)) {
        return true;
    }
    char digits[9] = "0000";
    snprintf(digits + 4, 5, "%.4s", colon + 1);
    if (!hex_words(digits, 1, &low)) { return true; }
    const char* state = colon + 1 + strcspn(colon + 1, " "); // then the other side
    state += strspn(state, " ");
    state += strcspn(state, " ");
    state += strspn(state, " ");
    if (l->tcp && strncmp(state, "0A", 2) != 0) { return true; } // not listening
    for (int i = 0; i < l->wish->port_count; i++) {
        const crdi_port* p = &l->wish->ports[i];
        crdi_open_port* o = &l->facts->ports[i];
        if (p->number != (int)low || !(l->tcp ? p->tcp : p->udp) || o->taken) { continue; }
        o->taken = true;
        inet_ntop(l->six ? AF_INET6 : AF_INET, words, o->address, sizeof o->address);
    }
    return true;
}

void crdi_look_at_ports(crdi_looking* looking)
{
    const char* root = looking->root;
    const crdi_wish* w = looking->w;
    crdi_facts* f = looking->f;
    static const struct {
        const char* path;
        bool tcp, six;
    } tables[] = {{"/proc/net/udp", false, false},
                  {"/proc/net/tcp", true, false},
                  {"/proc/net/udp6", false, true},
                  {"/proc/net/tcp6", true, true}};
    enum { BIND_SERVICE = 10 };
    f->low_port = crdi_root_number(root, "/proc/sys/net/ipv4/ip_unprivileged_port_start");
    const bool any = f->capabilities >= 0 && f->capabilities >> BIND_SERVICE & 1;
    for (int i = 0; i < w->port_count; i++) {
        f->ports[i].forbidden = !any && f->low_port > w->ports[i].number;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        port_look l = {.wish = w, .facts = f, .tcp = tables[i].tcp, .six = tables[i].six};
        crdi_root_lines(root, read_socket, &l, "%s", tables[i].path);
    }
    if (crdi_root_exists(root, "/sys/module/nf_tables") ||
        crdi_root_exists(root, "/sys/module/ip_tables")) {
        f->netfilter = 1;
    }
}

// ---- sandbox -----------------------------------------------------------------------------------

void crdi_look_at_sandbox(crdi_looking* l)
{
    const char* root = l->root;
    crdi_facts* f = l->f;
    const int64_t most = crdi_root_number(root, "/proc/sys/user/max_user_namespaces");
    if (most != CRDI_UNKNOWN) {
        f->user_namespaces =
            most > 0 && crdi_root_number(root, "/proc/sys/kernel/unprivileged_userns_clone") != 0 &&
            crdi_root_number(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns") != 1;
    }
    if (crdi_root_exists(root, "/proc/sys/kernel")) {
        f->seccomp = crdi_root_exists(root, "/proc/sys/kernel/seccomp/actions_avail");
    }
    f->bubblewrap =
        crdi_root_exists(root, "/usr/bin/bwrap") || crdi_root_exists(root, "/usr/local/bin/bwrap");
}
