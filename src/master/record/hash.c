// What ran, to the last bit: SHA-256 of the files that take part.
#include "master/master.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 64 * 1024 };

// false: it cannot be read to its end.
static bool hash_file(const char* path, unsigned char* block, char hex[65])
{
    crypto_hash_sha256_state state;
    unsigned char digest[crypto_hash_sha256_BYTES];
    struct stat info;
    // A pipe or a terminal would wait for somebody who does not come.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) { return false; }
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    crypto_hash_sha256_init(&state);
    for (ssize_t n = good ? 1 : 0; n > 0;) {
        n = read(fd, block, BLOCK);
        if (n > 0) { crypto_hash_sha256_update(&state, block, (unsigned long long)n); }
        good = n >= 0;
    }
    close(fd);
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
    return good;
}

crd_status crdi_record_hash(crd_master* m, const char* path, const char** out)
{
    char hex[65] = "";
    *out = "";
    const int32_t known = crdi_map_find(&m->record.hashes, path);
    if (known >= 0) {
        *out = m->record.hash_texts[known];
        return CRD_OK;
    }
    const size_t count = m->record.hashes.count;
    const char** texts = crdi_grow(m->ctx, (void*)m->record.hash_texts, &m->record.hash_capacity,
                                   count + 1, sizeof *texts);
    if (!texts) { return CRD_E_MEMORY; }
    m->record.hash_texts = texts;
    unsigned char* block = crdi_new(m->ctx, BLOCK);
    if (!block) { return CRD_E_MEMORY; }
    if (sodium_init() < 0 || !hash_file(path, block, hex)) { hex[0] = 0; }
    crd_free(m->ctx, block);
    texts[count] = crdi_arena_format(&m->arena, "%s", hex);
    const char* key = crdi_arena_format(&m->arena, "%s", path);
    if (!texts[count] || !key) { return CRD_E_MEMORY; }
    const crd_status st = crdi_map_add(&m->record.hashes, key, (int32_t)count, NULL);
    if (st == CRD_OK) { *out = texts[count]; }
    return st;
}
