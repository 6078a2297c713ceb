// What was compiled before: one file for each hash of everything that goes into it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fmi/build/build.h"
#include "shared/base_system.h"

enum { LARGEST_SOURCE = 256 << 20, DEEPEST = 16 };

// ---- the key -----------------------------------------------------------------------------------

typedef struct hash {
    crd_context* ctx;
    crypto_hash_sha256_state state;
    crd_status st;
} hash;

// With its length, so that no two lists give the same bytes.
static void hash_bytes(hash* h, const void* bytes, size_t length)
{
    const uint64_t n = length;
    crypto_hash_sha256_update(&h->state, (const unsigned char*)&n, sizeof n);
    crypto_hash_sha256_update(&h->state, bytes, length);
}

static void hash_text(hash* h, const char* text)
{
    hash_bytes(h, text ? text : "", text ? strlen(text) : 0);
}

static void hash_list(hash* h, const char* const* list)
{
    for (; list && *list; list++) {
        hash_text(h, *list);
    }
    hash_text(h, NULL);
}

static int no_dots(const struct dirent* e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static void hash_file(hash* h, const char* path)
{
    crd_text text;
    crd_text_init(&text, h->ctx);
    const crdi_file_need need = {.what = "a source file", .most = LARGEST_SOURCE};
    h->st = crdi_file_read(h->ctx, path, &need, &text);
    if (h->st == CRD_OK) { hash_bytes(h, text.data, text.length); }
    crd_text_clear(&text);
}

// Names and content of all that a compiler may read, in one order.
static void hash_folder(hash* h, const char* folder, int depth)
{
    struct dirent** list = NULL;
    const int n = scandir(folder, &list, no_dots, crdi_by_entry);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct stat s;
        const bool fits =
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name) < sizeof path;
        if (h->st == CRD_OK && fits && stat(path, &s) == 0) {
            hash_text(h, list[i]->d_name);
            if (S_ISDIR(s.st_mode) && depth < DEEPEST) {
                hash_folder(h, path, depth + 1);
            } else if (S_ISREG(s.st_mode)) {
                hash_file(h, path);
            }
        }
        free(list[i]);
    }
    free(list);
    hash_text(h, NULL);
}

// A compiler that was replaced is another one.
static void hash_compiler(hash* h, const crdi_compiler* c)
{
    struct stat s = {0};
    hash_list(h, c->words);
    hash_text(h, c->real);
    if (c->real && stat(c->real, &s) == 0) {
        const int64_t marks[] = {(int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec,
                                 (int64_t)s.st_mtim.tv_nsec};
        hash_bytes(h, marks, sizeof marks);
    }
}

crd_status crdi_store_key(crd_context* ctx, const crdi_compile* c, char key[65])
{
    hash h = {.ctx = ctx};
    struct utsname machine = {0};
    char path[PATH_MAX];
    unsigned char digest[crypto_hash_sha256_BYTES];
    if (sodium_init() < 0) { return crdi_fail(ctx, CRD_E_IO, "libsodium does not start"); }
    (void)uname(&machine);
    crypto_hash_sha256_init(&h.state);
    hash_text(&h, "cardan " CRD_VERSION);
    hash_text(&h, machine.machine);
    hash_compiler(&h, &c->c);
    hash_compiler(&h, &c->cpp);
    hash_list(&h, crdi_compile_flags);
    for (size_t i = 0; i < c->recipe->count; i++) {
        hash_text(&h, c->recipe->sources[i].file);
        hash_list(&h, c->recipe->sources[i].options);
    }
    for (size_t i = 0; i < c->recipe->library_count; i++) {
        hash_text(&h, c->recipe->libraries[i]);
    }
    snprintf(path, sizeof path, "%s/sources", c->folder);
    hash_folder(&h, path, 0);
    if (c->binaries) { hash_folder(&h, c->binaries, 0); }
    crypto_hash_sha256_final(&h.state, digest);
    sodium_bin2hex(key, 65, digest, sizeof digest);
    return h.st;
}

// ---- the folder --------------------------------------------------------------------------------

static void make_folders(char* path)
{
    for (char* p = path + 1; *p; p++) {
        if (*p != '/') { continue; }
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
    (void)mkdir(path, 0700);
}

bool crdi_cache_folder(const char* name, bool make, char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = cache && cache[0] == '/';
    if (!own && (!home || home[0] != '/')) { return false; }
    const int n =
        snprintf(path, PATH_MAX, "%s%s/cardan/%s", own ? cache : home, own ? "" : "/.cache", name);
    if (n <= 0 || n >= PATH_MAX - 80) { return false; }
    if (make) { make_folders(path); }
    return true;
}

// What others could have written is not run.
static bool is_ours(const char* path)
{
    struct stat s;
    return lstat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
           (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

const char* crdi_store_find(crd_arena* arena, const char* key)
{
    char folder[PATH_MAX];
    const char* path = crdi_cache_folder("fmus", false, folder)
                           ? crdi_arena_format(arena, "%s/%s.so", folder, key)
                           : NULL;
    return path && is_ours(path) ? path : NULL;
}

const char* crdi_store_add(crd_context* ctx, crd_arena* arena, const char* key,
                           const crd_text* bytes)
{
    char folder[PATH_MAX];
    if (!crdi_cache_folder("fmus", true, folder)) { return NULL; }
    const char* path = crdi_arena_format(arena, "%s/%s.so", folder, key);
    const bool written = path && crdi_file_write(ctx, path, bytes) == CRD_OK;
    return written && chmod(path, 0600) == 0 && is_ours(path) ? path : NULL;
}

crd_status crdi_fmu_forget_builds(crd_context* ctx, int64_t* files, int64_t* bytes)
{
    char folder[PATH_MAX], path[PATH_MAX];
    *files = *bytes = 0;
    DIR* dir = crdi_cache_folder("fmus", false, folder) ? opendir(folder) : NULL;
    crd_status st = CRD_OK;
    for (struct dirent* e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat s;
        if (!no_dots(e) ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= sizeof path ||
            lstat(path, &s) != 0 || !S_ISREG(s.st_mode)) {
            continue;
        }
        if (unlink(path) != 0) {
            st = crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
        } else {
            ++*files;
            *bytes += (int64_t)s.st_size;
        }
    }
    if (dir) { closedir(dir); }
    return st;
}
