// Instructions in the place of time, for instructions.py. Built for this machine it is a plugin of
// qemu-user, which adds up the instructions of all blocks that the emulated program runs, in a file
// that both have mapped; built for the emulated machine it is preloaded and tells the count when
// the program asks for its CPU time, one instruction as one nanosecond.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t* counter(void)
{
    static uint64_t* shared;
    if (!shared) {
        const int file = open(getenv("CARDAN_COUNT"), O_RDWR);
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file < 0 || shared == MAP_FAILED) { abort(); }
    }
    return shared;
}

#ifdef COUNT_PLUGIN
// Of qemu's interface to plugins, version 1, what is called here
struct qemu_plugin_tb;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*translated)(uint64_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int add, void* to,
                                              uint64_t value);

int qemu_plugin_version = 1;

static void translated(uint64_t id, struct qemu_plugin_tb* block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, counter(), qemu_plugin_tb_n_insns(block));
}

int qemu_plugin_install(uint64_t id, const void* info, int argc, char** argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
#else
int clock_gettime(clockid_t clock, struct timespec* t)
{
    if (clock != CLOCK_PROCESS_CPUTIME_ID) { return (int)syscall(SYS_clock_gettime, clock, t); }
    const uint64_t count = *(volatile uint64_t*)counter();
    *t = (struct timespec){.tv_sec = (time_t)(count / 1000000000),
                           .tv_nsec = (long)(count % 1000000000)};
    return 0;
}
#endif
