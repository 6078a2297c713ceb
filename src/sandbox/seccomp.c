// Which system calls can be made, by a filter that the kernel runs before each of them.
//
// It is a list of what is forbidden: FMUs come with run-time systems of every kind, and a list of
// what is allowed would be wrong for one of them. New calls, which no list knows, are not there
// (ENOSYS, as in an older kernel). What depends on numbers only is asked for once by the kernel and
// costs nothing afterwards; a filter sees arguments but not what they point at.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

#if defined(__x86_64__)
enum { MACHINE_KNOWN = 1 };
static const uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
enum { MACHINE_KNOWN = 1 };
static const uint32_t machine = AUDIT_ARCH_AARCH64;
#else
enum { MACHINE_KNOWN = 0 };
static const uint32_t machine = 0;
#endif

// Calls of later years, with the same number on every machine.
enum {
    NR_pidfd_send_signal = 424,
    NR_io_uring_setup = 425,
    NR_io_uring_enter = 426,
    NR_io_uring_register = 427,
    NR_open_tree = 428,
    NR_move_mount = 429,
    NR_fsopen = 430,
    NR_fsconfig = 431,
    NR_fsmount = 432,
    NR_fspick = 433,
    NR_pidfd_open = 434,
    NR_clone3 = 435,
    NR_pidfd_getfd = 438,
    NR_process_madvise = 440,
    NR_mount_setattr = 442,
    NR_quotactl_fd = 443,
    NR_memfd_secret = 447,
    NR_process_mrelease = 448,
    NR_fchmodat2 = 452,
    NR_setxattrat = 463,
    NR_removexattrat = 466,
    NR_open_tree_attr = 467,
    NR_file_setattr = 469,
    NR_LAST = 469, // the newest that was looked at
};

// Never, whatever the arguments.
static const int forbidden[] = {
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime,
    SYS_utimes, SYS_futimesat,
#endif
    // other processes: their memory, descriptors, time
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, NR_pidfd_open,
    NR_pidfd_getfd, NR_pidfd_send_signal, NR_process_madvise, NR_process_mrelease,
    SYS_migrate_pages, SYS_move_pages, SYS_tkill, SYS_setpriority, SYS_ioprio_set,
    // memory that others share, or that no limit counts
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semctl, SYS_msgget, SYS_msgctl, SYS_mq_open,
    SYS_mq_unlink, SYS_memfd_create, NR_memfd_secret,
    // ways around the other filters
    NR_io_uring_setup, NR_io_uring_enter, NR_io_uring_register, SYS_open_by_handle_at,
    SYS_userfaultfd, SYS_bpf, SYS_perf_event_open, SYS_fanotify_init,
    // the machine
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_open_tree,
    NR_open_tree_attr, NR_move_mount, NR_fsopen, NR_fsconfig, NR_fsmount, NR_fspick,
    NR_mount_setattr, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_syslog, SYS_acct,
    SYS_quotactl, NR_quotactl_fd, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
    SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_vhangup,
    // what files are besides their content, by path: Landlock does not look at it
    SYS_fchmodat, NR_fchmodat2, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_removexattr,
    SYS_lremovexattr, NR_setxattrat, NR_removexattrat, NR_file_setattr};

// Never without `programs`.
static const int of_programs[] = {
#ifdef __x86_64__
    SYS_fork, SYS_vfork,
#endif
    SYS_execve, SYS_execveat};

enum { ROOM = 512 };
typedef struct program {
    struct sock_filter code[ROOM];
    size_t length;
} program;

static void put(program* p, int code, uint32_t k, size_t if_true, size_t if_false)
{
    if (p->length < ROOM) {
        p->code[p->length] = (struct sock_filter){
            .code = (uint16_t)code, .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = k};
    }
    p->length++; // beyond the room: too long, which enter looks at
}

static void put_load(program* p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_equal(program* p, uint32_t value, size_t if_true, size_t if_false)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, value, if_true, if_false);
}

static void put_fail(program* p, int error)
{
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error, 0, 0);
}

static void put_allow(program* p)
{
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

// The half of an argument that holds an int; both machines are little endian.
static size_t low_half(int argument)
{
    return offsetof(struct seccomp_data, args) + 8 * (size_t)argument;
}

static void forbid(program* p, int call, int error)
{
    put_equal(p, (uint32_t)call, 0, 1);
    put_fail(p, error);
}

// Allowed if the argument is one of the values (`listed`), or if it is none of them. From here to
// its end this is about one call: the number need not be loaded again behind it.
static void decide(program* p, int call, int argument, bool listed, const uint32_t* values,
                   size_t count)
{
    put_equal(p, (uint32_t)call, 0, count + 3);
    put_load(p, low_half(argument));
    for (size_t i = 0; i < count; i++) {
        put_equal(p, values[i], count - i, 0);
    }
    for (int found = 0; found < 2; found++) {
        if ((found == 1) == listed) {
            put_allow(p);
        } else {
            put_fail(p, EPERM);
        }
    }
}

// Allowed if argument & mask == value.
static void decide_bits(program* p, int call, int argument, uint32_t mask, uint32_t value)
{
    put_equal(p, (uint32_t)call, 0, 5);
    put_load(p, low_half(argument));
    put(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    put_equal(p, value, 1, 0);
    put_fail(p, EPERM);
    put_allow(p);
}

// futimens() gives no path: then the file is open already.
static void put_times(program* p)
{
    put_equal(p, SYS_utimensat, 0, 6);
    put_load(p, low_half(1));
    put_equal(p, 0, 0, 2);
    put_load(p, low_half(1) + 4);
    put_equal(p, 0, 1, 0);
    put_fail(p, EPERM);
    put_allow(p);
}

// Threads but no processes, and in no case new namespaces or a child of the parent. What clone3
// wants stands in memory, where no filter can look: libc then takes clone.
static void put_clone(program* p, bool programs)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    forbid(p, NR_clone3, ENOSYS);
    if (programs) {
        decide_bits(p, SYS_clone, 0, namespaces | CLONE_PARENT, 0);
    } else {
        decide_bits(p, SYS_clone, 0, namespaces | CLONE_THREAD, CLONE_THREAD);
    }
}

// Calls that name a process or a thread: this one. Threads other than the first are not known here,
// so their scheduling cannot be changed.
static void put_processes(program* p, bool signals_scoped)
{
    const uint32_t self[] = {(uint32_t)getpid(), 0};
    if (!signals_scoped) {                     // else Landlock knows the children, too
        decide(p, SYS_kill, 0, true, self, 1); // 0 would be the group, and the parent is in it
        decide(p, SYS_tgkill, 0, true, self, 1);
        decide(p, SYS_rt_sigqueueinfo, 0, true, self, 1);
        decide(p, SYS_rt_tgsigqueueinfo, 0, true, self, 1);
    }
    static const int of_threads[] = {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setscheduler,
                                     SYS_sched_setparam, SYS_sched_setattr};
    for (size_t i = 0; i < sizeof of_threads / sizeof *of_threads; i++) {
        decide(p, of_threads[i], 0, true, self, 2);
    }
}

// No AF_UNIX: a socket in the file system may lead to a service that starts programs for its user.
// socketpair() works. Terminals take no input from here, and nobody else is made to be signalled.
static void put_devices(program* p, bool network)
{
    static const uint32_t families[] = {AF_INET, AF_INET6, AF_NETLINK};
    static const uint32_t controls[] = {TIOCSTI,   0x541C /* TIOCLINUX */, TIOCSETD, TIOCSCTTY,
                                        TIOCSPGRP, 0x8901 /* FIOSETOWN */, 0x8902 /* SIOCSPGRP */};
    static const uint32_t owners[] = {F_SETOWN, 15 /* F_SETOWN_EX */};
    decide(p, SYS_socket, 0, true, families, network ? sizeof families / sizeof *families : 0);
    decide(p, SYS_ioctl, 1, false, controls, sizeof controls / sizeof *controls);
    decide(p, SYS_fcntl, 1, false, owners, sizeof owners / sizeof *owners);
}

static void put_all(program* p, const crdi_sandbox* s, int landlock)
{
    put_load(p, offsetof(struct seccomp_data, arch));
    put_equal(p, machine, 1, 0); // 32-bit calls have other numbers
    put_fail(p, EPERM);
    put_load(p, offsetof(struct seccomp_data, nr));
    put(p, BPF_JMP | BPF_JGT | BPF_K, NR_LAST, 0, 1); // also the x32 calls
    put_fail(p, ENOSYS);
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        forbid(p, forbidden[i], EPERM);
    }
    for (size_t i = 0; !s->programs && i < sizeof of_programs / sizeof *of_programs; i++) {
        forbid(p, of_programs[i], EPERM);
    }
    if (landlock < 3) { forbid(p, SYS_truncate, EPERM); }
    put_clone(p, s->programs);
    put_times(p);
    put_processes(p, s->programs && landlock >= 6);
    put_devices(p, s->network);
    put_allow(p);
}

bool crdi_seccomp_there(void)
{
    return MACHINE_KNOWN && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

crd_status crdi_seccomp_enter(crd_context* ctx, const crdi_sandbox* s, int landlock)
{
    program p = {.length = 0};
    put_all(&p, s, landlock);
    if (p.length > ROOM) {
        return crdi_fail(ctx, CRD_E_RANGE, "sandbox: the filter has %zu instructions", p.length);
    }
    const struct sock_fprog filter = {.len = (unsigned short)p.length, .filter = p.code};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: seccomp: %s", strerror(errno));
    }
    return CRD_OK;
}
