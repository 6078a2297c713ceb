// Which files can be reached, by Landlock. Its numbers are written down here: headers of a
// distribution are often older than its kernel.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; // the same on all machines
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_VERSION_1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     // 2: rename and link between folders; before, never
    FS_TRUNCATE = 1 << 14,  // 3; before, the filter forbids truncate()
    FS_IOCTL_DEV = 1 << 15, // 5
    FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
};
enum { NET_BIND_TCP = 1, NET_CONNECT_TCP = 2 };            // 4
enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1, SCOPE_SIGNAL = 2 }; // 6

typedef struct ruleset {
    uint64_t handled_fs, handled_net, scoped;
} ruleset;

typedef struct __attribute__((packed)) path_beneath {
    uint64_t allowed;
    int32_t parent;
} path_beneath;

// What programs of all kinds read: libraries, time zones, locales, names of users, processors.
static const char* const system_paths[] = {"/usr",
                                           "/lib",
                                           "/lib32",
                                           "/lib64",
                                           "/bin",
                                           "/sbin",
                                           "/nix/store",
                                           "/gnu/store",
                                           "/etc/ld.so.cache",
                                           "/etc/ld.so.preload",
                                           "/etc/localtime",
                                           "/etc/timezone",
                                           "/etc/nsswitch.conf",
                                           "/etc/passwd",
                                           "/etc/group",
                                           "/etc/ssl/openssl.cnf",
                                           "/etc/ssl/certs",
                                           "/etc/pki/tls",
                                           "/proc/cpuinfo",
                                           "/proc/meminfo",
                                           "/proc/stat",
                                           "/proc/version",
                                           "/proc/filesystems",
                                           "/proc/loadavg",
                                           "/proc/uptime",
                                           "/proc/sys",
                                           "/sys/devices/system",
                                           "/sys/kernel/mm/transparent_hugepage",
                                           "/dev/urandom",
                                           "/dev/random",
                                           NULL};
static const char* const network_paths[] = {
    "/etc/resolv.conf", "/etc/hosts",     "/etc/host.conf",       "/etc/gai.conf",
    "/etc/services",    "/etc/protocols", "/run/systemd/resolve", NULL};
static const char* const devices[] = {"/dev/null", "/dev/zero", "/dev/full", NULL};

int crdi_landlock_version(void)
{
    const long version = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

static uint64_t rights_of(int version)
{
    return (uint64_t)FS_VERSION_1 | (version >= 2 ? FS_REFER : 0) |
           (version >= 3 ? FS_TRUNCATE : 0) | (version >= 5 ? FS_IOCTL_DEV : 0);
}

// 0, or errno. Rights that only folders have are left out for files.
static int allow_open(int rules, int fd, uint64_t rights)
{
    struct stat info;
    if (fstat(fd, &info) != 0) { return errno; }
    const path_beneath rule = {
        .allowed = S_ISDIR(info.st_mode) ? rights : rights & (uint64_t)FS_OF_FILES, .parent = fd};
    return syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
}

static int allow_path(int rules, const char* path, uint64_t rights)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) { return errno; }
    const int error = allow_open(rules, fd, rights);
    close(fd);
    return error;
}

// Where system paths are missing, there is nothing to be read.
static int allow_those_there(int rules, const char* const* paths, uint64_t rights)
{
    for (; *paths; paths++) {
        const int error = allow_path(rules, *paths, rights);
        if (error && error != ENOENT && error != EACCES && error != ENOTDIR) { return error; }
    }
    return 0;
}

// Folders that the user names for what processes load: libraries, and whatever else is needed.
static int allow_environment(int rules, uint64_t rights)
{
    static const char* const variables[] = {"LD_LIBRARY_PATH", "CARDAN_READABLE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char* list = getenv(variables[i]);
        for (const char* p = list ? list : ""; *p;) {
            const size_t n = strcspn(p, ":");
            char path[PATH_MAX];
            if (p[0] == '/' && n < sizeof path) {
                memcpy(path, p, n);
                path[n] = 0;
                const char* const one[] = {path, NULL};
                const int error = allow_those_there(rules, one, rights);
                if (error) { return error; }
            }
            p += n + (p[n] == ':');
        }
    }
    return 0;
}

// The folder of this process among those of all processes. It stays open: the rule belongs to an
// inode that procfs might otherwise make anew.
static int allow_own_process(int rules, uint64_t rights)
{
    const int fd = open("/proc/self", O_PATH | O_CLOEXEC);
    return fd < 0 ? 0 : allow_open(rules, fd, rights);
}

static crd_status allow_all(crd_context* ctx, const crdi_sandbox* s, int rules, uint64_t all)
{
    const uint64_t run = s->programs ? FS_EXECUTE : 0;
    const uint64_t read = (uint64_t)(FS_READ_FILE | FS_READ_DIR) | run;
    const uint64_t write = all & ~(uint64_t)(FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_BLOCK);
    int error = allow_those_there(rules, system_paths, read);
    if (!error && s->network) { error = allow_those_there(rules, network_paths, read); }
    if (!error) {
        error =
            allow_those_there(rules, devices, (FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE) & all);
    }
    if (!error) { error = allow_environment(rules, read); }
    if (!error) { error = allow_own_process(rules, read & ~(uint64_t)FS_EXECUTE); }
    if (error) {
        return crdi_fail(ctx, CRD_E_IO, "sandbox: files of the system: %s", strerror(error));
    }
    for (size_t i = 0; i < s->readable_count; i++) {
        error = allow_path(rules, s->readable[i], read);
        if (error) {
            return crdi_fail(ctx, CRD_E_IO, "sandbox: '%s', which is to be readable: %s",
                             s->readable[i], strerror(error));
        }
    }
    for (size_t i = 0; i < s->writable_count; i++) {
        error = allow_path(rules, s->writable[i], write);
        if (error && error != ENOENT) {
            return crdi_fail(ctx, CRD_E_IO, "sandbox: '%s', which is to be writable: %s",
                             s->writable[i], strerror(error));
        }
    }
    error = s->scratch ? allow_path(rules, s->scratch, write) : 0;
    return error ? crdi_fail(ctx, CRD_E_IO, "sandbox: the scratch folder '%s': %s", s->scratch,
                             strerror(error))
                 : CRD_OK;
}

crd_status crdi_landlock_enter(crd_context* ctx, const crdi_sandbox* s, int version)
{
    const ruleset wanted = {
        .handled_fs = rights_of(version),
        .handled_net = version >= 4 && !s->network ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = version >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
    };
    const int rules = (int)syscall(CREATE_RULESET, &wanted, sizeof wanted, 0);
    if (rules < 0) { return crdi_fail(ctx, CRD_E_IO, "sandbox: Landlock: %s", strerror(errno)); }
    crd_status st = allow_all(ctx, s, rules, wanted.handled_fs);
    if (st == CRD_OK && syscall(RESTRICT_SELF, rules, 0) != 0) {
        st = crdi_fail(ctx, CRD_E_IO, "sandbox: Landlock: %s", strerror(errno));
    }
    close(rules);
    return st;
}
