// Files below a root, whatever they are: /proc and /sys of this machine, or of a test's.
#include "cli/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    LINE_BYTES = 8192,     // the flags of a CPU take 2 KiB
    MOST_BYTES = 16 << 20, // of one file
    MOST_NAMES = 1 << 17,  // of one folder
};

// "root" and what the format makes; "" if it is too long.
static void doctor_files_join(char out[PATH_MAX], const char* root, const char* path, va_list args)
{
    const size_t n = (size_t)snprintf(out, PATH_MAX, "%s", root);
    const int m = n < PATH_MAX ? vsnprintf(out + n, PATH_MAX - n, path, args) : -1;
    if (m < 0 || n + (size_t)m >= PATH_MAX) { *out = 0; }
}
// The path of a function whose last argument is the format.
#define JOIN(full, root, path)                                                                     \
    char full[PATH_MAX];                                                                           \
    va_list args;                                                                                  \
    va_start(args, path);                                                                          \
    doctor_files_join(full, root, path, args);                                                     \
    va_end(args)

// A pipe or a device in the place of a file must not make us wait.
static crdi_got open_file(const char* full, int* fd)
{
    struct stat info;
    *fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) { return errno == ENOENT || errno == ENOTDIR ? CRDI_MISSING : CRDI_DENIED; }
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode)) { return CRDI_GOT; }
    close(*fd);
    return CRDI_DENIED;
}

static char printable(char c)
{
    return c >= ' ' && c <= '~' ? c : c == '\t' ? ' ' : '?';
}

static void strip(char* text)
{
    size_t begin = strspn(text, " "), length = strlen(text);
    while (length > begin && text[length - 1] == ' ') {
        length--;
    }
    memmove(text, text + begin, length - begin);
    text[length - begin] = 0;
}

static crdi_got read_line(const char* full, char* out, size_t size)
{
    int fd = -1;
    *out = 0;
    const crdi_got got = open_file(full, &fd);
    if (got != CRDI_GOT) { return got; }
    ssize_t n = 0;
    do {
        n = read(fd, out, size - 1);
    } while (n < 0 && errno == EINTR);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    out[strcspn(out, "\n")] = 0;
    for (char* c = out; *c; c++) {
        *c = printable(*c);
    }
    strip(out);
    return n < 0 ? CRDI_DENIED : CRDI_GOT;
}

crdi_got crdi_root_line(const char* root, char* out, size_t size, const char* path, ...)
{
    JOIN(full, root, path);
    return read_line(full, out, size);
}

int64_t crdi_leading_number(const char* text)
{
    const size_t sign = *text == '-';
    const size_t n = sign + strspn(text + sign, "0123456789");
    int64_t x = 0;
    return n > sign && crdi_parse_int64(text, n, &x) ? x : CRDI_UNKNOWN;
}

int64_t crdi_root_number(const char* root, const char* path, ...)
{
    char line[64];
    JOIN(full, root, path);
    return read_line(full, line, sizeof line) == CRDI_GOT ? crdi_leading_number(line)
                                                          : CRDI_UNKNOWN;
}

crdi_got crdi_root_lines(const char* root, crdi_on_line* line, void* user, const char* path, ...)
{
    int fd = -1;
    JOIN(full, root, path);
    const crdi_got got = open_file(full, &fd);
    if (got != CRDI_GOT) { return got; }
    gzFile f = gzdopen(fd, "rb"); // reads plain files, too
    if (!f) {
        close(fd);
        return CRDI_DENIED;
    }
    char buffer[4096], text[LINE_BYTES];
    size_t length = 0;
    bool more = true;
    int64_t all = 0;
    int n = 0;
    while (more && all < MOST_BYTES && (n = gzread(f, buffer, sizeof buffer)) > 0) {
        all += n;
        for (int i = 0; i < n && more; i++) {
            if (buffer[i] != '\n') {
                if (length + 1 < sizeof text) { text[length++] = printable(buffer[i]); }
                continue;
            }
            text[length] = 0;
            length = 0;
            more = line(user, text);
        }
    }
    if (more && length) {
        text[length] = 0;
        line(user, text);
    }
    gzclose(f);
    return all == 0 && n < 0 ? CRDI_DENIED : CRDI_GOT;
}

crdi_got crdi_root_folder(const char* root, crdi_on_name* name, void* user, const char* path, ...)
{
    JOIN(full, root, path);
    DIR* d = opendir(full);
    if (!d) { return errno == ENOENT || errno == ENOTDIR ? CRDI_MISSING : CRDI_DENIED; }
    struct dirent* e = NULL;
    bool more = true;
    for (int i = 0; more && i < MOST_NAMES && (e = readdir(d)); i++) {
        if (e->d_name[0] != '.') { more = name(user, e->d_name); }
    }
    closedir(d);
    return CRDI_GOT;
}

crdi_got crdi_root_link(const char* root, char* out, size_t size, const char* path, ...)
{
    char target[PATH_MAX];
    JOIN(full, root, path);
    *out = 0;
    const ssize_t n = readlink(full, target, sizeof target - 1);
    if (n <= 0) { return errno == EACCES ? CRDI_DENIED : CRDI_MISSING; }
    target[n] = 0;
    const char* slash = strrchr(target, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : target);
    for (char* c = out; *c; c++) {
        *c = printable(*c);
    }
    return CRDI_GOT;
}

bool crdi_root_exists(const char* root, const char* path, ...)
{
    JOIN(full, root, path);
    return access(full, F_OK) == 0;
}

bool crdi_root_writable(const char* root, const char* path, ...)
{
    JOIN(full, root, path);
    return access(full, W_OK) == 0;
}
