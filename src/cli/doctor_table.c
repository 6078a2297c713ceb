// The checks: what each is about, why it matters, and who needs it.
#include "cli/doctor.h"

#include <string.h>

const char* const crdi_profile_names[] = {"desk", "soft", "hard", NULL};
const char* const crdi_area_names[CRDI_AREAS] = {"kernel",  "rights",      "scheduling", "CPU",
                                                 "memory",  "network",     "time",       "ports",
                                                 "sandbox", "measurement", "models"};
const char* const crdi_need_names[] = {"none", "wished", "needed"};
const char* const crdi_state_names[] = {"ok", "warn", "fail", "n.a."};

#define NO CRDI_NONE
#define WISH CRDI_WISHED
#define NEED CRDI_NEEDED

#define CHECK(id, area, title, desk, soft, hard, why)                                              \
    {                                                                                              \
        id, CRDI_AREA_##area, title, why,                                                          \
        {                                                                                          \
            desk, soft, hard                                                                       \
        }                                                                                          \
    }

// In the order of the output, area by area: what desk, soft and hard make of it, and why.
const crdi_check crdi_checks[] = {
    CHECK("kernel-version", KERNEL, "version", NO, WISH, WISH,
          "newer kernels delay a due thread less"),
    CHECK("preemption", KERNEL, "preemption", NO, WISH, NEED,
          "decides how long the kernel lets a due cycle wait"),
    CHECK("timers", KERNEL, "timers", WISH, NEED, NEED,
          "deadlines need finer timers than the kernel's tick"),
    CHECK("clocksource", KERNEL, "clock source", WISH, WISH, NEED,
          "every cycle reads the clock several times"),
    CHECK("hypervisor", KERNEL, "machine", NO, WISH, NEED,
          "a host may stop its guests for milliseconds"),

    CHECK("user", RIGHTS, "user", WISH, WISH, WISH,
          "an FMU is foreign code with the rights of its user"),
    CHECK("rt-priority", RIGHTS, "priority limit", NO, WISH, NEED,
          "the cycle thread asks for SCHED_FIFO"),
    CHECK("memlock", RIGHTS, "locked memory", NO, WISH, NEED,
          "a page that has to be fetched stops a cycle"),
    CHECK("group-rt", RIGHTS, "group, real time", NO, WISH, NEED,
          "a group without such time refuses SCHED_FIFO"),
    CHECK("group-cpu", RIGHTS, "group, CPU", NO, WISH, NEED,
          "at the end of the quota threads stand still"),
    CHECK("container", RIGHTS, "container", NO, NO, WISH,
          "rights and CPUs have to be handed in from outside"),

    CHECK("fifo", SCHEDULING, "SCHED_FIFO", NO, WISH, NEED,
          "lets nothing ordinary go before a due cycle"),
    CHECK("affinity", SCHEDULING, "CPU of the cycle", WISH, NEED, NEED,
          "the thread has to be allowed there"),
    CHECK("isolated", SCHEDULING, "isolated CPUs", NO, NO, WISH,
          "keeps other threads away from the cycle"),
    CHECK("smt", SCHEDULING, "hyper-threads", NO, NO, WISH,
          "a busy sibling takes half of the core"),
    CHECK("rt-tasks", SCHEDULING, "rivals", NO, WISH, WISH, "equal or higher priorities go first"),
    CHECK("rt-throttle", SCHEDULING, "throttling", NO, NO, WISH,
          "who spins is stopped for the rest of a second"),

    CHECK("cpus", CPU, "CPUs", NO, WISH, NEED,
          "recording and the page need one beside the cycle's"),
    CHECK("governor", CPU, "governor", NO, WISH, NEED,
          "a CPU that slows down when idle wakes up slowly"),
    CHECK("idle-states", CPU, "idle states", NO, WISH, NEED,
          "this is what waking up from the deepest takes"),
    CHECK("dma-latency", CPU, "cpu_dma_latency", NO, WISH, WISH,
          "Cardan keeps CPUs out of deep idle states with it"),
    CHECK("turbo", CPU, "turbo", NO, NO, WISH, "step times vary with heat and neighbours"),
    CHECK("throttled", CPU, "heat", NO, WISH, WISH, "a hot CPU slows down in the middle of a run"),
    CHECK("nmi-watchdog", CPU, "NMI watchdog", NO, NO, WISH, "interrupts even an isolated CPU"),

    CHECK("memory", MEMORY, "free memory", WISH, NEED, NEED, "the whole run is locked into it"),
    CHECK("swap", MEMORY, "swap", NO, WISH, WISH,
          "what is not locked may have to come from a disk"),
    CHECK("huge-pages", MEMORY, "huge pages", NO, WISH, WISH,
          "with 'always' the kernel stops threads to merge pages"),
    CHECK("numa", MEMORY, "NUMA nodes", NO, NO, WISH, "data cross between sockets in every step"),

    CHECK("link", NETWORK, "link", NO, WISH, NEED, "the datagrams of every cycle pass here"),
    CHECK("ring", NETWORK, "driver", NO, WISH, WISH, "a full receive ring drops datagrams"),
    CHECK("coalescing", NETWORK, "coalescing", NO, WISH, WISH,
          "the card holds datagrams back to save interrupts"),
    CHECK("offloads", NETWORK, "receive offload", NO, NO, WISH,
          "the card waits for more data to join"),
    CHECK("timestamping", NETWORK, "time stamps", NO, NO, WISH,
          "one-way delays to the microsecond need them"),
    CHECK("irqs", NETWORK, "interrupts", NO, NO, WISH, "on the cycle's CPU they delay it"),
    CHECK("rp-filter", NETWORK, "return path", NO, WISH, WISH,
          "a strict filter drops what comes by another card"),

    CHECK("clock-sync", TIME, "wall clock", NO, WISH, WISH,
          "ages of data from other machines are as good as it"),
    CHECK("time-daemon", TIME, "daemons", NO, WISH, WISH, "somebody has to keep the clock right"),
    CHECK("ptp", TIME, "PTP clock", NO, NO, WISH, "keeps benches together below a microsecond"),

    CHECK("port", PORTS, "port", WISH, WISH, WISH, "only one program can listen there"),
    CHECK("firewall", PORTS, "firewall", NO, WISH, WISH,
          "a rule that drops looks like a bad network"),

    CHECK("user-namespaces", SANDBOX, "user namespaces", WISH, WISH, WISH,
          "shut a foreign FMU in without root"),
    CHECK("landlock", SANDBOX, "Landlock", WISH, WISH, WISH, "takes files away from foreign code"),
    CHECK("seccomp", SANDBOX, "seccomp", WISH, WISH, WISH, "takes system calls away from it"),
    CHECK("bubblewrap", SANDBOX, "bubblewrap", NO, NO, NO, "starts Cardan inside of all that"),

    CHECK("wake-up", MEASUREMENT, "wake-up", WISH, NEED, NEED, "so late a cycle begins"),
    CHECK("round-trip", MEASUREMENT, "round trip", WISH, WISH, NEED,
          "adds to it for a unit behind a local socket"),
    CHECK("step", MEASUREMENT, "step", WISH, NEED, NEED, "what is left of it is for the models"),

    CHECK("fmu-binary", MODELS, "binary", NEED, NEED, NEED, "an FMU runs where it was built for"),
    CHECK("fmu-tool", MODELS, "tool", WISH, WISH, NEED,
          "another program keeps time by its own rules"),
    CHECK("dry-run", MODELS, "dry run", NEED, NEED, NEED, "what fails there fails in real time"),
    CHECK("step-time", MODELS, "longest step", WISH, NEED, NEED,
          "has to be done within its period"),
};
const int crdi_check_count = sizeof crdi_checks / sizeof *crdi_checks;

const crdi_check* crdi_find_check(const char* id)
{
    for (int i = 0; i < crdi_check_count; i++) {
        if (strcmp(crdi_checks[i].id, id) == 0) { return &crdi_checks[i]; }
    }
    return NULL;
}

crdi_state crdi_state_of(crdi_finding f, crdi_need n)
{
    if (f == CRDI_GOOD) { return CRDI_OK; }
    if (f == CRDI_OPEN || n == CRDI_NONE) { return CRDI_NA; }
    return f == CRDI_BAD && n == CRDI_NEEDED ? CRDI_FAIL : CRDI_WARN;
}

// ---- results -----------------------------------------------------------------------------------

void crdi_diagnoses_init(crdi_diagnoses* r, crd_context* ctx, crdi_profile profile)
{
    *r = (crdi_diagnoses){.ctx = ctx, .profile = profile};
}

void crdi_diagnoses_clear(crdi_diagnoses* r)
{
    crd_free(r->ctx, r->items);
    *r = (crdi_diagnoses){.ctx = r->ctx};
}

crdi_diagnosis* crdi_diagnose(crdi_diagnoses* r, const char* id, const char* subject,
                              crdi_finding f, const char* found, ...)
{
    const crdi_check* check = crdi_find_check(id);
    crdi_diagnosis* items =
        check ? crdi_grow(r->ctx, r->items, &r->capacity, (size_t)r->count + 1, sizeof *items)
              : NULL;
    if (!items) {
        r->failed = true;
        return NULL;
    }
    r->items = items;
    crdi_diagnosis* x = &items[r->count++];
    *x = (crdi_diagnosis){.check = check, .need = check->need[r->profile], .finding = f};
    x->state = crdi_state_of(f, x->need);
    snprintf(x->subject, sizeof x->subject, "%s", subject);
    va_list args;
    va_start(args, found);
    vsnprintf(x->found, sizeof x->found, found, args);
    va_end(args);
    return x;
}

void crdi_diagnosis_need(crdi_diagnosis* x, crdi_need need)
{
    if (!x) { return; }
    x->need = need;
    x->state = crdi_state_of(x->finding, need);
}

void crdi_diagnosis_fix(crdi_diagnosis* x, const char* format, ...)
{
    if (!x || (x->state != CRDI_WARN && x->state != CRDI_FAIL)) { return; }
    const size_t used = strlen(x->fix);
    va_list args;
    va_start(args, format);
    if (used && used + 2 < sizeof x->fix) { strcat(x->fix, "\n"); }
    vsnprintf(x->fix + strlen(x->fix), sizeof x->fix - strlen(x->fix), format, args);
    va_end(args);
}

int crdi_diagnoses_count(const crdi_diagnoses* r, crdi_state s)
{
    int n = 0;
    for (int i = 0; i < r->count; i++) {
        n += r->items[i].state == s;
    }
    return n;
}
