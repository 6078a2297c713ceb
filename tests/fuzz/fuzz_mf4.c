// modules: results base
// Any bytes as an MF4 file: opened, described, walked through, read into a table, compared with
// itself.
#define _GNU_SOURCE 1 // memfd_create
#include "fuzz_recording.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    const int fd = memfd_create("fuzz.mf4", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) { abort(); }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    crd_context* ctx = crd_context_create(NULL);
    crd_recording* r = NULL;
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
