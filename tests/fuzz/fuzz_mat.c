// modules: results base
// Any bytes as a MATLAB file of version 4 or 5: opened, described, walked through, read into a
// table, compared with itself. What cells and structures may hold is judged before libmatio sees
// them.
#include "fuzz_recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    char
        path[64]; // a file: libmatio opens it by its name, and version 4 has no mark but the ending
    snprintf(path, sizeof path, "/dev/shm/fuzz-%ld.mat", (long)getpid());
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) { abort(); }
    close(fd);
    crd_context* ctx = crd_context_create(NULL);
    crd_recording* r = NULL;
    if (crd_recording_open(ctx, path, &r) == CRD_OK) {
        look_inside(ctx, r, path);
        crd_recording_close(r);
    } else if (!crd_error_text(ctx)[0]) {
        abort(); // refused without a word
    }
    crd_context_destroy(ctx);
    unlink(path);
    return 0;
}
