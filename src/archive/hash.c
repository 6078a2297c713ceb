// SHA-256 of a file.
#include "shared/archive.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

bool crdi_file_hash(const char* path, char hex[65])
{
    crypto_hash_sha256_state state;
    unsigned char digest[crypto_hash_sha256_BYTES], block[16 * 1024];
    struct stat info;
    // A pipe or a terminal would wait for somebody who does not come.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    hex[0] = 0;
    if (fd < 0) { return false; }
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && sodium_init() >= 0;
    crypto_hash_sha256_init(&state);
    for (ssize_t n = good ? 1 : 0; n > 0;) {
        n = read(fd, block, sizeof block);
        if (n > 0) { crypto_hash_sha256_update(&state, block, (unsigned long long)n); }
        good = n >= 0;
    }
    close(fd);
    crypto_hash_sha256_final(&state, digest);
    if (good) { sodium_bin2hex(hex, 65, digest, sizeof digest); }
    return good;
}
