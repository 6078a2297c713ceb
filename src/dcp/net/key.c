// Keys of secured networks, in files.
#include "shared/base.h"
#include "shared/dcp.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY = 32, HEX = 64, BASE64 = 43, MOST = 4096 };

crd_status crd_dcp_key_make(crd_context* ctx, crd_dcp_key* out)
{
    if (sodium_init() < 0) {
        return crdi_fail(ctx, CRD_E_IO, "key: the system gives no random numbers");
    }
    randombytes_buf(out->bytes, KEY);
    return CRD_OK;
}

void crd_dcp_key_clear(crd_dcp_key* key)
{
    sodium_memzero(key, sizeof *key);
}

// Reads up to `room` bytes; -1: the system's error.
static ssize_t read_key_file(int fd, char* out, size_t room)
{
    size_t length = 0;
    while (length < room) {
        const ssize_t k = read(fd, out + length, room - length);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0) { return -1; }
        if (k == 0) { break; }
        length += (size_t)k;
    }
    return (ssize_t)length;
}

static crd_status decode_key(crd_context* ctx, const char* path, const char* text, size_t length,
                             crd_dcp_key* out)
{
    static const char blank[] = " \t\r\n";
    size_t done = 0;
    while (length > 0 && strchr(blank, text[length - 1]) && text[length - 1]) {
        length--;
    }
    while (length > 0 && *text && strchr(blank, *text)) {
        text++;
        length--;
    }
    const bool good = length == HEX
                          ? sodium_hex2bin(out->bytes, KEY, text, length, NULL, &done, NULL) == 0
                          : (length == BASE64 &&
                             sodium_base642bin(out->bytes, KEY, text, length, NULL, &done, NULL,
                                               sodium_base64_VARIANT_ORIGINAL_NO_PADDING) == 0) ||
                                (length == BASE64 + 1 &&
                                 sodium_base642bin(out->bytes, KEY, text, length, NULL, &done, NULL,
                                                   sodium_base64_VARIANT_ORIGINAL) == 0);
    if (!good || done != KEY) {
        crd_dcp_key_clear(out);
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: not a key: %zu characters, expected 64 hex digits or 44 of base64 "
                         "(32 bytes); cardan dcp key makes one",
                         path, length);
    }
    size_t equal = 1;
    while (equal < KEY && out->bytes[equal] == out->bytes[0]) {
        equal++;
    }
    if (equal == KEY) {
        crd_dcp_key_clear(out);
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: a key of equal bytes is none, expected 32 random bytes", path);
    }
    return CRD_OK;
}

crd_status crd_dcp_key_load(crd_context* ctx, const char* path, crd_dcp_key* out)
{
    char text[MOST];
    struct stat s;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read_key_file(fd, text, sizeof text);
    const int code = errno;
    const bool open_to_others = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
                                (s.st_mode & (S_IRWXG | S_IRWXO)) != 0;
    if (fd >= 0) { close(fd); }
    if (length < 0) {
        return crdi_fail(ctx, code == ENOENT ? CRD_E_NOT_FOUND : CRD_E_IO,
                         "%s: the key cannot be read: %s", path, strerror(code));
    }
    if (open_to_others) {
        crdi_log(ctx, CRD_LOG_WARNING,
                 "%s: others may read or change this key (mode %03o), expected 600: chmod 600 %s",
                 path, (unsigned)(s.st_mode & 0777), path);
    }
    const crd_status st = decode_key(ctx, path, text, (size_t)length, out);
    sodium_memzero(text, sizeof text);
    return st;
}

crd_status crd_dcp_key_write(crd_context* ctx, const char* path, const crd_dcp_key* key)
{
    char text[HEX + 1];
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        const int code = errno;
        return crdi_fail(ctx, CRD_E_IO, "%s: the key cannot be written: %s", path,
                         code == EEXIST ? "there is such a file already" : strerror(code));
    }
    sodium_bin2hex(text, sizeof text, key->bytes, KEY);
    text[HEX] = '\n';
    bool good = true;
    for (size_t done = 0; good && done < sizeof text;) {
        const ssize_t k = write(fd, text + done, sizeof text - done);
        good = k >= 0 || errno == EINTR;
        done += k > 0 ? (size_t)k : 0;
    }
    const int code = errno;
    sodium_memzero(text, sizeof text);
    if (close(fd) != 0 || !good) {
        const int why = good ? errno : code;
        (void)unlink(path);
        return crdi_fail(ctx, CRD_E_IO, "%s: the key cannot be written: %s", path, strerror(why));
    }
    return CRD_OK;
}

crd_status crdi_dcp_net_secure_file(crd_context* ctx, const char* path,
                                    const crd_dcp_secure_options* opt, crd_dcp_net** net)
{
    crd_dcp_key key;
    crd_status st = crd_dcp_key_load(ctx, path, &key);
    if (st >= 0) { st = crd_dcp_net_secure(ctx, *net, &key, opt, net); }
    crd_dcp_key_clear(&key);
    return st;
}

crd_status crdi_dcp_check_plain(crd_context* ctx, const crd_dcp_address* a, const char* key,
                                bool plain, const char* words)
{
    return crdi_check_plain(ctx, crdi_dcp_address_text_of(a).text, a->ip >> 24 == 127, key != NULL,
                            plain, words);
}
