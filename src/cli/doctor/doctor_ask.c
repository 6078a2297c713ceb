// What only system calls tell: may this process run in real time, what can its network cards do.
#include "cli/doctor/doctor.h"
#include "shared/unit.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/landlock.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

typedef struct attempt {
    int priority, error;
} attempt;

// On a thread of its own, which takes the priority with it when it ends.
static void* try_fifo(void* user)
{
    attempt* a = user;
    const struct sched_param p = {.sched_priority = a->priority};
    const int e = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    a->error = e;
    return NULL;
}

static int fifo_error(int priority)
{
    attempt a = {.priority = priority};
    pthread_t thread;
    if (pthread_create(&thread, NULL, try_fifo, &a) != 0) { return -1; }
    pthread_join(thread, NULL);
    return a.error;
}

static void ask_clock(crdi_facts* f)
{
    struct timespec t;
    struct timex x = {0};
    if (clock_getres(CLOCK_MONOTONIC, &t) == 0) {
        f->resolution = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
    if (adjtimex(&x) < 0) { return; }
    f->synchronised = !(x.status & STA_UNSYNC);
    f->clock_offset = (int64_t)x.offset * (x.status & STA_NANO ? 1 : 1000);
    f->clock_error = (int64_t)x.maxerror * 1000;
    f->tai = x.tai;
}

static bool ethtool(int fd, const crdi_nic* nic, void* command)
{
    struct ifreq r = {0};
    memcpy(r.ifr_name, nic->name, sizeof r.ifr_name);
    r.ifr_name[sizeof r.ifr_name - 1] = 0;
    r.ifr_data = command;
    return ioctl(fd, SIOCETHTOOL, &r) == 0;
}

static void ask_nic(int fd, crdi_nic* nic)
{
    struct ethtool_coalesce c = {.cmd = ETHTOOL_GCOALESCE};
    struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
    struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
    struct ethtool_ts_info stamps = {.cmd = ETHTOOL_GET_TS_INFO};
    if (ethtool(fd, nic, &c)) {
        nic->rx_usecs = c.rx_coalesce_usecs;
        nic->adaptive_rx = c.use_adaptive_rx_coalesce != 0;
    }
    if (ethtool(fd, nic, &ring)) {
        nic->rx_ring = ring.rx_pending;
        nic->rx_ring_max = ring.rx_max_pending;
    }
    if (ethtool(fd, nic, &flags)) { nic->lro = (flags.data & ETH_FLAG_LRO) != 0; }
    if (ethtool(fd, nic, &stamps)) {
        const uint32_t hardware = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_TX_HARDWARE;
        const uint32_t software = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
        nic->stamps_hardware = (stamps.so_timestamping & hardware) == hardware;
        nic->stamps_software = (stamps.so_timestamping & software) == software;
        nic->phc = stamps.phc_index;
    }
}

void crdi_doctor_ask(const crdi_wish* w, crdi_facts* f)
{
    f->fifo_error = fifo_error(w->priority);
    ask_clock(f);
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    f->landlock = abi > 0 ? abi : 0;
    crd_context* quiet = crd_context_create(NULL);
    char program[PATH_MAX];
    if (quiet) { f->worker = crdi_worker_find(quiet, program) >= 0; }
    crd_context_destroy(quiet);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int i = 0; fd >= 0 && i < f->nic_count; i++) {
        if (!f->nics[i].missing) { ask_nic(fd, &f->nics[i]); }
    }
    if (fd >= 0) { close(fd); }
}
