// Whole files: read from anywhere and of any size that is allowed, written completely or not at
// all.
#include "base/context.h"
#include "shared/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 }; // bytes to ask for where nobody knows how many there are

static const char* shown_name(const char* path, const crdi_file_need* need)
{
    return need->shown ? need->shown : path;
}

crd_status crdi_file_fail(crd_context* ctx, const char* name, int why)
{
    return why == ENOENT || why == ENOTDIR
               ? crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: no such file", name)
               : crdi_fail(ctx, CRD_E_IO, "%s: cannot be read: %s", name, strerror(why));
}

static crd_status fail_size(crd_context* ctx, const char* name, const crdi_file_need* need)
{
    const bool whole = need->most >> 20 << 20 == need->most;
    return crdi_fail(ctx, CRD_E_FORMAT, "%s: larger than %zu %s, expected %s", name,
                     whole ? need->most >> 20 : need->most, whole ? "MiB" : "bytes", need->what);
}

// What is there before anything is read. `*size`: how many bytes are likely to come, 0: nobody
// knows.
static crd_status look_at_file(crd_context* ctx, int fd, const char* name,
                               const crdi_file_need* need, size_t* size)
{
    struct stat info;
    *size = 0;
    if (fstat(fd, &info) != 0) { return crdi_file_fail(ctx, name, errno); }
    if (S_ISDIR(info.st_mode)) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: a folder, expected %s", name, need->what);
    }
    if (!S_ISREG(info.st_mode)) {
        return need->pipes ? CRD_OK
                           : crdi_fail(ctx, CRD_E_FORMAT, "%s: not a regular file, expected %s",
                                       name, need->what);
    }
    if (info.st_size > 0) { *size = (size_t)info.st_size; }
    return *size > need->most ? fail_size(ctx, name, need) : CRD_OK;
}

crd_status crdi_file_read_from(crd_context* ctx, int fd, const char* path,
                               const crdi_file_need* need, crd_text* out)
{
    const char* name = shown_name(path, need);
    const size_t before = out->length;
    size_t size = 0;
    const crd_status st = look_at_file(ctx, fd, name, need, &size);
    if (st < 0) { return st; }
    crdi_text_put(out, "", 0); // an empty file is a text, too
    for (;;) {
        const size_t got = out->length - before;
        const size_t room = got <= size && size > 0 ? size - got + 1 : BLOCK;
        char* to = crdi_text_room(out, room);
        if (!to) { return CRD_E_MEMORY; }
        const ssize_t n = read(fd, to, room);
        if (n < 0 && errno == EINTR) { continue; }
        if (n < 0) { return crdi_file_fail(ctx, name, errno); }
        to[n] = 0;
        out->length += (size_t)n;
        if (out->length - before > need->most) { return fail_size(ctx, name, need); }
        if (n == 0 || (need->text && memchr(to, 0, (size_t)n))) { return CRD_OK; }
    }
}

crd_status crdi_file_open(crd_context* ctx, const char* path, const crdi_file_need* need, int* fd)
{
    // Opening a pipe waits until somebody writes into it.
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (need->pipes ? 0 : O_NONBLOCK));
    return *fd >= 0 ? CRD_OK : crdi_file_fail(ctx, shown_name(path, need), errno);
}

void crdi_file_note_reads(crd_context* ctx, crd_text* names)
{
    ctx->reads = names;
}

crd_status crdi_file_read(crd_context* ctx, const char* path, const crdi_file_need* need,
                          crd_text* out)
{
    int fd = -1;
    crd_status st = crdi_file_open(ctx, path, need, &fd);
    if (st < 0) { return st; }
    if (ctx->reads) { crdi_text_put(ctx->reads, path, strlen(path) + 1); }
    st = crdi_file_read_from(ctx, fd, path, need, out);
    close(fd);
    return st;
}

size_t crdi_file_head(const char* path, char* head, size_t room)
{
    struct stat info;
    ssize_t n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) { n = read(fd, head, room - 1); }
    if (fd >= 0) { close(fd); }
    const size_t length = n > 0 ? (size_t)n : 0;
    head[length] = 0;
    return length;
}

// ---- writing -----------------------------------------------------------------------------------

static bool write_and_close(int fd, const crd_text* text)
{
    bool good = fd >= 0;
    for (size_t done = 0; good && done < text->length;) {
        const ssize_t n = write(fd, text->data + done, text->length - done);
        good = n > 0 || (n < 0 && errno == EINTR);
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) { good = close(fd) == 0 && good; }
    return good;
}

static crd_status fail_write(crd_context* ctx, const char* path)
{
    return crdi_fail(ctx, CRD_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

crd_status crdi_file_write(crd_context* ctx, const char* path, const crd_text* text)
{
    if (text->failed) { return CRD_E_MEMORY; }
    if (strcmp(path, "-") == 0) { // behind what was printed
        const int out = fflush(stdout) == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : -1;
        return write_and_close(out, text) ? CRD_OK : fail_write(ctx, "standard output");
    }
    struct stat info;
    // Links are followed, devices and pipes written: only a file may be replaced by another one.
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        return write_and_close(fd, text) ? CRD_OK : fail_write(ctx, path);
    }
    char* part = crdi_format(ctx, "%s.%ld.part", path, (long)getpid());
    if (!part) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (!write_and_close(fd, text) || rename(part, path) != 0) {
        st = fail_write(ctx, path);
        if (fd >= 0) { unlink(part); }
    }
    crd_free(ctx, part);
    return st;
}
