// Private folders for unpacked archives.
#include "shared/archive.h"
#include "shared/base_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The folder is called cardan-PID-START-SPACE-xxxxxx after the process that made it: its number,
// when it began (clock ticks since boot) and the pid namespace that the number belongs to. So a
// later process can tell which folders were left behind by processes that were killed, and never
// takes one away from a living process, be it in another container.
typedef struct owner {
    long pid;
    unsigned long long start, space;
} owner;

static owner this_process(void)
{
    struct stat space;
    const bool known = stat("/proc/self/ns/pid", &space) == 0;
    return (owner){.pid = (long)getpid(),
                   .start = crdi_process_start((long)getpid()),
                   .space = known ? (unsigned long long)space.st_ino : 0};
}

static bool is_dead(const owner* o, const owner* self)
{
    if (o->space != self->space || !o->space || !o->start || o->pid == self->pid) { return false; }
    return crdi_process_is_gone(o->pid, o->start);
}

// Where that cannot be done the rest says so.
static void open_rights(int folder, const char* name)
{
    if (fchmodat(folder, name, 0700, AT_SYMLINK_NOFOLLOW) != 0) { return; }
}

// Empties the folder `name` in `top`. Folders in it that are not empty come to `top` under a
// number: so trees of any depth need neither a stack nor paths. Links are removed, not followed.
// false: it is no folder, or something stays in it.
static bool flatten(int top, const char* name, unsigned* number)
{
    open_rights(top, name);
    const int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* dir = fd < 0 ? NULL : fdopendir(fd);
    bool empty = dir != NULL;
    for (struct dirent* e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        char to[32];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            unlinkat(fd, e->d_name, 0) == 0 || unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0) {
            continue;
        }
        open_rights(fd, e->d_name); // to be moved it is written
        do {
            snprintf(to, sizeof to, "%u", (*number)++);
        } while (faccessat(top, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
        empty = renameat(fd, e->d_name, top, to) == 0 && empty;
    }
    if (dir) {
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    return empty;
}

// As long as a round removes something of what is directly in the folder.
bool crdi_scratch_remove(const char* folder)
{
    unsigned number = 0;
    (void)chmod(folder, 0700);
    const int top = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* dir = top < 0 ? NULL : fdopendir(top);
    for (bool moves = dir != NULL; moves;) {
        moves = false;
        rewinddir(dir);
        for (struct dirent* e = readdir(dir); e; e = readdir(dir)) {
            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) { continue; }
            moves =
                unlinkat(top, e->d_name, 0) == 0 ||
                (flatten(top, e->d_name, &number) && unlinkat(top, e->d_name, AT_REMOVEDIR) == 0) ||
                moves;
        }
    }
    if (dir) { closedir(dir); }
    return rmdir(folder) == 0 || errno == ENOENT;
}

// Remove what killed processes of this user left below `base`.
static void sweep(const char* base, const owner* self)
{
    DIR* dir = opendir(base);
    for (struct dirent* e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        owner o = {0};
        int end = 0;
        if (strncmp(e->d_name, "cardan-", 7) != 0 ||
            sscanf(e->d_name, "cardan-%9ld-%20llu-%20llu-%n", &o.pid, &o.start, &o.space, &end) !=
                3 ||
            end == 0 || o.pid <= 0 || !is_dead(&o, self)) {
            continue;
        }
        char path[PATH_MAX];
        struct stat s;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", base, e->d_name) < sizeof path &&
            lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid()) {
            (void)crdi_scratch_remove(path);
        }
    }
    if (dir) { closedir(dir); }
}

void crdi_scratch_sweep(void)
{
    const char* tmp = getenv("TMPDIR");
    char base[PATH_MAX];
    const owner self = this_process();
    if (realpath(tmp && *tmp ? tmp : "/tmp", base)) { sweep(base, &self); }
}

static char prefix[PATH_MAX]; // of the folders that were made last
static pid_t prefix_owner;

void crdi_scratch_abandon(void)
{
    static const char* const command[] = {"sh", "-c", "rm -rf -- \"$1\"*", "sh", prefix, NULL};
    pid_t child = 0;
    char* const* arguments = (char* const*)(uintptr_t)command;
    // A fork has those of its parent until it makes some of its own.
    if (prefix_owner == getpid() &&
        posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    }
}

crd_status crdi_scratch_make(crd_arena* arena, crd_context* ctx, const char* where,
                             const char** out)
{
    const char* tmp = getenv("TMPDIR");
    if (!where) { where = tmp && *tmp ? tmp : "/tmp"; }
    char base[PATH_MAX];
    char* folder = NULL;
    if (realpath(where, base)) {
        const owner self = this_process();
        sweep(base, &self);
        folder = crdi_arena_format(arena, "%s/cardan-%ld-%llu-%llu-XXXXXX", base, self.pid,
                                   self.start, self.space);
        if (!folder) { return CRD_E_MEMORY; }
        prefix_owner = getpid();
        snprintf(prefix, sizeof prefix, "%.*s", (int)(strlen(folder) - strlen("XXXXXX")), folder);
    }
    if (!folder || !mkdtemp(folder)) { // mode 0700
        return crdi_fail(ctx, CRD_E_IO, "cannot make a folder to unpack into below '%s': %s", where,
                         strerror(errno));
    }
    *out = folder;
    return CRD_OK;
}
