// cardan doctor: can this machine run in real time?
//
// Facts come first (doctor_look.c: files below a root; doctor_ask.c: what only system calls tell;
// doctor_measure.c: two measurements), judgements after. A check is a row of doctor_checks.c; its
// judge sees nothing but facts, so that a test makes up any machine.
#pragma once
#include "cli/cli.h"
#include "shared/pace.h"

typedef enum crdi_profile { CRDI_DESK, CRDI_SOFT, CRDI_HARD, CRDI_PROFILES } crdi_profile;
extern const char* const crdi_profile_names[]; // NULL-terminated

// ---- what is wanted ----------------------------------------------------------------------------

enum { CRDI_DOCTOR_PORTS = 32, CRDI_DOCTOR_NICS = 16, CRDI_DOCTOR_TASKS = 4 };

typedef struct crdi_port {
    bool udp, tcp;
    int number;
    const char* purpose; // "DCP slave", "--port"
    bool named;          // by --port: it has to be free
    bool served;         // by somebody else on purpose: taken is fine
} crdi_port;

typedef struct crdi_wish {
    crdi_profile profile;
    int cpu;                     // of the cycle thread, -1: any
    int priority;                // of SCHED_FIFO
    double step;                 // s; NaN: that of the profile
    double duration;             // s of each measurement
    const crdi_list* interfaces; // names; none: all that are up
    crdi_port ports[CRDI_DOCTOR_PORTS];
    int port_count;
} crdi_wish;

double crdi_wished_step(const crdi_wish* w); // s
// "8080" (UDP and TCP), "udp:8080", "tcp:8080". CRD_E_RANGE.
crd_status crdi_wish_port(crd_context* ctx, crdi_wish* w, const char* text);
void crdi_wish_usual_ports(crdi_wish* w); // those that Cardan uses unless told otherwise

// ---- facts -------------------------------------------------------------------------------------

// Numbers that could not be found out are CRDI_UNKNOWN, texts are "".
#define CRDI_UNKNOWN INT64_MIN

enum { CRDI_CPUS = 1024 };
typedef struct crdi_cpus {
    bool known;
    uint64_t bits[CRDI_CPUS / 64];
} crdi_cpus;
// "0-3,8"; what is not understood ends the list.
crdi_cpus crdi_cpus_parse(const char* text);
bool crdi_cpus_has(const crdi_cpus* c, int cpu);
int crdi_cpus_count(const crdi_cpus* c);
int crdi_cpus_first(const crdi_cpus* c);                                // -1
const char* crdi_cpus_text(const crdi_cpus* c, char* out, size_t size); // "0-3,8", "none"

typedef enum crdi_preemption {
    CRDI_PREEMPT_UNKNOWN,
    CRDI_PREEMPT_NONE,
    CRDI_PREEMPT_VOLUNTARY,
    CRDI_PREEMPT_LAZY,
    CRDI_PREEMPT_FULL,
    CRDI_PREEMPT_RT,
} crdi_preemption;

typedef struct crdi_nic {
    char name[16];
    bool missing; // it was named and is not there
    bool up, carrier, wireless, multicast;
    bool device;   // hardware or what a hypervisor offers as such, not a bridge or tunnel
    int64_t speed; // Mbit/s
    char duplex[16], driver[32];
    int64_t mtu, node, rp_filter;
    int irq_count;
    int irq_near;       // one that the cycle's CPU serves, -1
    crdi_cpus irq_cpus; // that serve its interrupts
    // by system calls
    int64_t rx_usecs, adaptive_rx; // coalescing
    int64_t rx_ring, rx_ring_max;
    int64_t lro;
    int64_t stamps_hardware, stamps_software; // 0, 1
    int64_t phc;                              // PTP clock, -1: none
} crdi_nic;

typedef struct crdi_task { // of somebody else, in real time
    char name[32];
    int64_t pid, priority, cpu;
} crdi_task;

typedef struct crdi_open_port {
    bool taken;
    char address[64]; // that it is bound to
    bool forbidden;   // a low port and no right to it
} crdi_open_port;

typedef struct crdi_facts {
    // kernel
    char release[96], version[192], distribution[32];
    int major, minor;
    crdi_preemption preemption;
    bool preempt_dynamic;    // can be chosen at boot
    int64_t high_resolution; // 0, 1: as built and booted
    char clocksource[32], clocksources[128];
    int64_t hypervisor; // 0, 1
    char vendor[96];    // of the machine
    // rights
    int64_t uid, capabilities; // effective ones
    int64_t rtprio, memlock;   // limits, soft; memlock INT64_MAX: none
    int64_t group_rt;          // us per period that the control group may run in real time
    double group_cpus;         // CPUs that the control group may use, NaN: no limit
    char container[32];
    int64_t low_port; // the first one that everybody may use
    // scheduling
    int64_t rt_runtime, rt_period; // us
    int64_t fair_server;           // ns of the CPU's deadline server
    crdi_cpus online, allowed, isolated, nohz_full, rcu_nocbs;
    int64_t smt_active;
    crdi_cpus siblings;                 // of the chosen CPU
    crdi_task tasks[CRDI_DOCTOR_TASKS]; // with a priority not below ours
    int task_count, task_all;
    // CPU: the chosen one, else the worst
    char governor[32];
    int governor_cpu;
    int64_t turbo; // 0, 1
    char idle_name[32];
    int64_t idle_latency; // us, of the deepest state in use
    int64_t dma_latency;  // 0, 1: can be written
    int64_t throttled;    // times
    int64_t nmi_watchdog;
    // memory
    int64_t swap_kb, available_kb, group_kb; // group: limit of the control group
    char huge_pages[32];
    int64_t nodes, cpu_node;
    // network
    crdi_nic nics[CRDI_DOCTOR_NICS];
    int nic_count, nics_up;
    // time
    char time_daemons[96];
    bool ptp4l, irqbalance;
    int ptp_clocks;
    char ptp_name[64];
    // ports
    crdi_open_port ports[CRDI_DOCTOR_PORTS]; // of the wish
    int64_t netfilter;                       // 1: it is loaded
    // sandbox
    int64_t user_namespaces, seccomp, bubblewrap;
    // by system calls
    int fifo_error;                    // errno of trying SCHED_FIFO, 0: works, -1: not tried
    int64_t resolution;                // ns of the clock
    int64_t landlock;                  // ABI; 0: none
    int64_t worker;                    // 1: cardan-worker is there
    int64_t synchronised;              // 0, 1
    int64_t clock_offset, clock_error; // ns
    int64_t tai;                       // s
} crdi_facts;

void crdi_facts_init(crdi_facts* f); // nothing is known
// Everything that files say. `root` is put before every path: "" for this machine.
void crdi_doctor_look(const char* root, const crdi_wish* w, crdi_facts* f);
// What only system calls say, about this process on this machine.
void crdi_doctor_ask(const crdi_wish* w, crdi_facts* f);

// doctor_files.c: reading below a root without trusting what is there. Paths are formats.
typedef enum crdi_got { CRDI_GOT, CRDI_MISSING, CRDI_DENIED } crdi_got;
// The first line of a file as printable ASCII without blanks at its ends; "" unless got.
crdi_got crdi_root_line(const char* root, char* out, size_t size, const char* path, ...)
    CRD_PRINTF(4, 5);
int64_t crdi_root_number(const char* root, const char* path, ...) CRD_PRINTF(2, 3); // CRDI_UNKNOWN
// Line by line (cut at 8 KiB; printable), plain or gzip, until `line` returns false; at most 16
// MiB.
typedef bool crdi_on_line(void* user, const char* line);
crdi_got crdi_root_lines(const char* root, crdi_on_line* line, void* user, const char* path, ...)
    CRD_PRINTF(4, 5);
// Names in a folder, without those that begin with a dot, until `name` returns false.
typedef bool crdi_on_name(void* user, const char* name);
crdi_got crdi_root_folder(const char* root, crdi_on_name* name, void* user, const char* path, ...)
    CRD_PRINTF(4, 5);
// The last part of what a link says.
crdi_got crdi_root_link(const char* root, char* out, size_t size, const char* path, ...)
    CRD_PRINTF(4, 5);
bool crdi_root_exists(const char* root, const char* path, ...) CRD_PRINTF(2, 3);
bool crdi_root_writable(const char* root, const char* path, ...) CRD_PRINTF(2, 3);
// Decimal at the beginning of a text; CRDI_UNKNOWN.
int64_t crdi_leading_number(const char* text);

// Readers of files, each run once, in the order of the checks that name them: doctor_look.c and
// doctor_look_net.c.
typedef struct crdi_looking {
    const char* root;
    const crdi_wish* w;
    crdi_facts* f;
    char cmdline[4096]; // of the kernel
} crdi_looking;
void crdi_look_at_kernel(crdi_looking* l);
void crdi_look_at_rights(crdi_looking* l);
void crdi_look_at_cpus(crdi_looking* l);
void crdi_look_at_memory(crdi_looking* l);
void crdi_look_at_network(crdi_looking* l);
void crdi_look_at_processes(crdi_looking* l); // real-time tasks, daemons, clocks
void crdi_look_at_ports(crdi_looking* l);
void crdi_look_at_sandbox(crdi_looking* l);

// ---- measurements ------------------------------------------------------------------------------

typedef struct crdi_latency {
    bool done; // it was tried
    crd_histogram h;
    int64_t missed; // wake-up: grid points slept over; round trip: answers that did not come
    int64_t period; // ns
    crd_pace_report rights; // what the thread got
    char problem[160];      // why there is nothing, ""
} crdi_latency;

// Sleeps on an absolute grid of `period` ns for `duration` ns and counts how late it wakes. `stop`
// (may be NULL) ends it earlier.
void crdi_measure_wakeup(crd_clock clock, int64_t period, int64_t duration,
                         const volatile bool* stop, crdi_latency* out);
// Both measurements on threads like the cycle thread, with a line of progress. Each result is whole
// also if `stop` ended it.
void crdi_measure(crdi_cli* cli, const crdi_wish* w, const volatile bool* stop,
                  crdi_latency* wakeup, crdi_latency* round_trip);

typedef struct crdi_quantile {
    double q;
    const char* name; // "p99.9"; "": there are no samples
} crdi_quantile;
crdi_quantile crdi_supported_quantile(int64_t samples); // that so many can tell

// How short a step may be: the quantile of wake-up and round trip takes half of it.
typedef struct crdi_supported {
    crdi_quantile quantile;
    int64_t wakeup, round_trip; // ns
    double step;                // s, rounded up to two digits; NaN: not measured
    char sentence[240];
} crdi_supported;
crdi_supported crdi_judge_latency(const crdi_latency* wakeup, const crdi_latency* round_trip,
                                  bool hypervisor);

// ---- judgements --------------------------------------------------------------------------------

typedef enum crdi_area {
    CRDI_AREA_KERNEL,
    CRDI_AREA_RIGHTS,
    CRDI_AREA_SCHEDULING,
    CRDI_AREA_CPU,
    CRDI_AREA_MEMORY,
    CRDI_AREA_NETWORK,
    CRDI_AREA_TIME,
    CRDI_AREA_PORTS,
    CRDI_AREA_SANDBOX,
    CRDI_AREA_MEASUREMENT,
    CRDI_AREA_MODELS,
    CRDI_AREAS
} crdi_area;
extern const char* const crdi_area_names[CRDI_AREAS];

typedef enum crdi_need { CRDI_NONE, CRDI_WISHED, CRDI_NEEDED } crdi_need;
extern const char* const crdi_need_names[];

// What a judgement says before anybody asks whether it matters.
typedef enum crdi_finding {
    CRDI_GOOD,
    CRDI_POOR, // never worse than a warning
    CRDI_BAD,  // fails where it is needed
    CRDI_OPEN, // cannot be known here
} crdi_finding;

typedef enum crdi_state { CRDI_OK, CRDI_WARN, CRDI_FAIL, CRDI_NA } crdi_state;
extern const char* const crdi_state_names[];
crdi_state crdi_state_of(crdi_finding f, crdi_need n);

enum { CRDI_FOUND = 256, CRDI_FIX = 512 };
typedef struct crdi_diagnosis crdi_diagnosis;

// What a judge sees: the machine, and of a check that is made per card or port which one.
typedef struct crdi_case {
    const crdi_facts* f;
    const crdi_wish* w;
    const crdi_nic* nic;   // NULL: none is up
    const crdi_port* port; // of the wish
} crdi_case;

typedef enum crdi_per {
    CRDI_PER_MACHINE,
    CRDI_PER_NIC,
    CRDI_PER_PORT,
    CRDI_PER_OTHER, // not judged from facts: measurements, models
} crdi_per;

typedef struct crdi_check {
    const char* id;
    crdi_area area;
    const char* title;
    crdi_need need[CRDI_PROFILES];
    const char* why;
    crdi_per per;
    void (*read)(crdi_looking* l); // NULL: others read what it needs
    void (*judge)(const crdi_case* c, crdi_diagnosis* x);
    // Instead of a judge: an int64_t at `fact` (of the card, else of the facts) that is 0 or 1.
    bool flag;
    bool good; // which one is
    size_t fact;
    const char *yes, *no;
    const char* fix; // lines to type unless the judge knows better; @ is the subject
} crdi_check;
const crdi_check* crdi_find_check(const char* id); // NULL
extern const crdi_check crdi_checks[];             // in the order of the output
extern const int crdi_check_count;

struct crdi_diagnosis {
    const crdi_check* check;
    char subject[96]; // "eth0", "udp 8080", a unit; ""
    crdi_need need;
    crdi_finding finding;
    crdi_state state;
    char found[CRDI_FOUND];
    char fix[CRDI_FIX]; // lines to type; "" unless warn or fail
};

typedef struct crdi_diagnoses {
    crd_context* ctx;
    crdi_profile profile;
    crdi_diagnosis* items;
    int count;
    size_t capacity;
    bool failed; // out of memory
} crdi_diagnoses;

void crdi_diagnoses_init(crdi_diagnoses* r, crd_context* ctx, crdi_profile profile);
void crdi_diagnoses_clear(crdi_diagnoses* r);
// A new diagnosis, NULL when out of memory.
crdi_diagnosis* crdi_diagnose(crdi_diagnoses* r, const char* id, const char* subject,
                              crdi_finding f, const char* format, ...) CRD_PRINTF(5, 6);
// What a judge has found: sets the state, too.
void crdi_diagnosis_found(crdi_diagnosis* x, crdi_finding f, const char* format, ...)
    CRD_PRINTF(3, 4);
// A line to type; kept only if the state is warn or fail.
void crdi_diagnosis_fix(crdi_diagnosis* x, const char* format, ...) CRD_PRINTF(2, 3);
int crdi_diagnoses_count(const crdi_diagnoses* r, crdi_state s);

// All checks of a machine.
void crdi_judge_machine(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r);
// The measurements against the wished step.
void crdi_judge_measured(const crdi_facts* f, const crdi_wish* w, const crdi_latency* wakeup,
                         const crdi_latency* round_trip, crdi_diagnoses* r);

// ---- models ------------------------------------------------------------------------------------

struct crd_system;
// Every FMU of the system, and a dry run of all units in another process. Sets w->step if the
// command line has not.
crd_status crdi_doctor_models(crdi_cli* cli, const char* path, crdi_wish* w,
                              const volatile bool* stop, crdi_diagnoses* r);
