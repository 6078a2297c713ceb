// What an operating system lends to contexts: its heap, its clocks, and orders for its qsort. On
// controllers a port does (src/core).
#include "shared/base.h"
#include "shared/base_system.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
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

int64_t crdi_clock_ns(int clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t crdi_now_ns(void)
{
    return crdi_clock_ns(CLOCK_MONOTONIC);
}

const char* crdi_utc(int64_t seconds, char out[24])
{
    const time_t time = (time_t)seconds;
    struct tm utc;
    const bool good = gmtime_r(&time, &utc) && strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!good) { out[0] = 0; }
    return out;
}

int crdi_by_value(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

int crdi_by_text(const void* a, const void* b)
{
    return strcmp(*(const char* const*)a, *(const char* const*)b);
}

int crdi_by_entry(const struct dirent** a, const struct dirent** b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}
