// modules: results base
// Any bytes as an MF4 file: opened, described, walked through, read into a table, compared with
// itself. One of ours that is unfinished is finished, or stays as it is.
#define _GNU_SOURCE 1 // memfd_create
#include "fuzz_recording.h"
#include "shared/results.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void finish(crd_context* ctx, const char* path, int fd, const uint8_t* data, size_t size)
{
    char* now = malloc(size + 2);
    if (!now) { abort(); }
    if (crdi_mdf_finish(ctx, path) < 0) {
        if (pread(fd, now, size + 1, 0) != (ssize_t)size || memcmp(now, data, size) != 0) {
            abort();
        }
    } else if (pread(fd, now, 4, 0) != 4 || memcmp(now, "MDF ", 4) != 0) {
        abort();
    }
    free(now);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    const int fd = memfd_create("fuzz.mf4", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) { abort(); }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    crd_context* ctx = crd_context_create(NULL);
    crd_recording* r = NULL;
    if (size >= 24 && memcmp(data + 16, "Cardan  ", 8) == 0) { finish(ctx, path, fd, data, size); }
    // Files that do not begin like one are CSV, which has a target of its own.
    const bool mdf =
        size >= 8 && (memcmp(data, "MDF ", 4) == 0 || memcmp(data, "UnFinMF ", 8) == 0);
    if (mdf && crd_recording_open(ctx, path, &r) == CRD_OK) {
        look_inside(ctx, r, path);
        crd_recording_close(r);
    } else if (mdf && !crd_error_text(ctx)[0]) {
        abort(); // refused without a word
    }
    crd_context_destroy(ctx);
    close(fd);
    return 0;
}
