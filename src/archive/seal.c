// Files that only who has the key can have written: HMAC-SHA-512-256 behind the bytes. The key is
// the user's, 32 random bytes in a file of mode 0600 that is made when it is first needed.
#include "shared/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY = crypto_auth_KEYBYTES, SEAL = crypto_auth_BYTES };

static char* seal_key_path(crd_context* ctx)
{
    const char *given = getenv("CARDAN_STATE_KEY"), *base = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    if (given && *given) { return crdi_strdup(ctx, given); }
    if (base && *base) { return crdi_format(ctx, "%s/cardan/state.key", base); }
    return crdi_format(ctx, "%s/.config/cardan/state.key", home && *home ? home : ".");
}

static void make_folders(char* path)
{
    for (char* p = path + 1; *p; p++) {
        if (*p != '/') { continue; }
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
}

// Beside its place first: two who begin at once get one key.
static bool seal_make_key(crd_context* ctx, char* path)
{
    unsigned char key[KEY];
    char* fresh = crdi_format(ctx, "%s.%ld", path, (long)getpid());
    if (!fresh) { return false; }
    make_folders(path);
    randombytes_buf(key, sizeof key);
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, key, sizeof key) == (ssize_t)sizeof key;
    if (fd >= 0) { good = close(fd) == 0 && good; }
    good = good && (link(fresh, path) == 0 || errno == EEXIST);
    const int why = errno;
    if (fd >= 0) { (void)unlink(fresh); }
    errno = why;
    crd_free(ctx, fresh);
    return good;
}

static crd_status seal_key(crd_context* ctx, bool make, unsigned char key[KEY])
{
    crd_status st = CRD_OK;
    char* path = seal_key_path(ctx);
    if (!path) { return CRD_E_MEMORY; }
    int fd = sodium_init() >= 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 && errno == ENOENT && make && seal_make_key(ctx, path)) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    struct stat info;
    if (fd < 0) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: %s; states of runs are sealed with the key in there",
                       path, strerror(errno));
    } else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != KEY ||
               read(fd, key, KEY) != KEY) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s is no key, expected a file of %d random bytes", path,
                       (int)KEY);
    }
    if (fd >= 0) { close(fd); }
    crd_free(ctx, path);
    return st;
}

crd_status crdi_seal(crd_text* t)
{
    unsigned char key[KEY], seal[SEAL];
    const crd_status st = seal_key(t->ctx, true, key);
    if (st < 0 || t->failed) { return st < 0 ? st : CRD_E_MEMORY; }
    crypto_auth(seal, (const unsigned char*)t->data, t->length, key);
    sodium_memzero(key, sizeof key);
    crdi_text_put(t, seal, sizeof seal);
    return t->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status crdi_seal_open(crd_context* ctx, const char* name, const char* data, size_t* size)
{
    unsigned char key[KEY];
    if (*size < SEAL) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s is cut off: it has %zu bytes", name, *size);
    }
    const crd_status st = seal_key(ctx, false, key);
    if (st < 0) { return st; }
    *size -= SEAL;
    const bool good = crypto_auth_verify((const unsigned char*)data + *size,
                                         (const unsigned char*)data, *size, key) == 0;
    sodium_memzero(key, sizeof key);
    if (good) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_FORMAT,
                     "%s was changed since it was written, is cut off, or is not yours: expected a "
                     "file sealed with the key in ~/.config/cardan/state.key (CARDAN_STATE_KEY "
                     "names another one)",
                     name);
}
