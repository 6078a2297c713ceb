// What an operating system lends to contexts: its heap and its clock. On controllers a port does
// (src/core).
#include "shared/base.h"

#include <stdlib.h>
#include <time.h>

static void* libc_realloc(void* user, void* p, size_t size)
{
    (void)user;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, size);
}

crd_context_options crd_context_defaults(void)
{
    return (crd_context_options){.realloc = libc_realloc, .level = CRD_LOG_WARNING};
}

crd_context* crd_context_create(const crd_context_options* opt)
{
    crd_context_options o = opt ? *opt : crd_context_defaults();
    if (!o.realloc) { o.realloc = libc_realloc; }
    return crdi_context_make(&o);
}

int64_t crdi_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
