// FMI 2.0 Co-Simulation: y tells how many instances its memory has seen, which is 1 in a process of
// its own. Where it remembers them is said when it is compiled: AT_STATIC, AT_HEAP (a
// constructor's), AT_THREAD, AT_SIBLING (a library beside it that it never closes), AT_DRAWS (the
// random numbers of the C library), AT_SEED (likewise, with the seed of a constructor), else
// nowhere. A parameter p of 1 lets it say Fatal in its second step, 2 crash when it is freed, 3
// crash in its second step.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct instance {
    double y, p;
} instance;

EXPORT int remembers_count(void);
#if defined(AT_STATIC)
static int count;
EXPORT int remembers_count(void)
{
    return ++count;
}
#elif defined(AT_HEAP)
static int* count;
__attribute__((constructor)) static void begin(void)
{
    count = calloc(1, sizeof *count);
}
EXPORT int remembers_count(void)
{
    return ++*count;
}
#elif defined(AT_THREAD)
static _Thread_local int count;
EXPORT int remembers_count(void)
{
    return ++count;
}
#elif defined(AT_SIBLING)
EXPORT int remembers_count(void)
{
    static const char here[] = "in this library";
    char path[4096];
    Dl_info info;
    if (!dladdr(here, &info)) { return -1; }
    const char* slash = strrchr(info.dli_fname, '/');
    snprintf(path, sizeof path, "%.*s/sibling.so", (int)(slash - info.dli_fname), info.dli_fname);
    void* sibling = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* symbol = sibling ? dlsym(sibling, "remembers_count") : NULL;
    int (*ask)(void) = NULL;
    memcpy(&ask, &symbol, sizeof symbol); // POSIX: through its bytes
    return ask ? ask() : -1;
}
#elif defined(AT_DRAWS) || defined(AT_SEED)
#if defined(AT_SEED)
__attribute__((constructor)) static void begin(void)
{
    srand(7);
    srand48(7);
}
#endif
EXPORT int remembers_count(void)
{
    return rand() % 1000000 + (int)(lrand48() % 1000000);
}
#else
EXPORT int remembers_count(void)
{
    return 1;
}
#endif

EXPORT const char* fmi2GetVersion(void);
EXPORT const char* fmi2GetTypesPlatform(void);
EXPORT void* fmi2Instantiate(const char*, int, const char*, const char*, const void*, int, int);
EXPORT void fmi2FreeInstance(void*);
EXPORT int fmi2SetupExperiment(void*, int, double, double, int, double);
EXPORT int fmi2EnterInitializationMode(void*);
EXPORT int fmi2ExitInitializationMode(void*);
EXPORT int fmi2Terminate(void*);
EXPORT int fmi2GetReal(void*, const unsigned*, size_t, double*);
EXPORT int fmi2SetReal(void*, const unsigned*, size_t, const double*);
EXPORT int fmi2DoStep(void*, double, double, int);

const char* fmi2GetVersion(void)
{
    return "2.0";
}
const char* fmi2GetTypesPlatform(void)
{
    return "default";
}
void* fmi2Instantiate(const char* name, int type, const char* guid, const char* where,
                      const void* callbacks, int visible, int logging)
{
    (void)name, (void)type, (void)guid, (void)where, (void)callbacks, (void)visible, (void)logging;
    instance* i = calloc(1, sizeof *i);
    if (i) { i->y = remembers_count(); }
    return i;
}
void fmi2FreeInstance(void* c)
{
    const instance* i = c;
    if (i->p == 2) { abort(); }
    free(c);
}
int fmi2SetupExperiment(void* c, int a, double b, double start, int d, double stop)
{
    (void)c, (void)a, (void)b, (void)start, (void)d, (void)stop;
    return 0;
}
int fmi2EnterInitializationMode(void* c)
{
    (void)c;
    return 0;
}
int fmi2ExitInitializationMode(void* c)
{
    (void)c;
    return 0;
}
int fmi2Terminate(void* c)
{
    (void)c;
    return 0;
}
int fmi2GetReal(void* c, const unsigned* refs, size_t n, double* values)
{
    const instance* i = c;
    for (size_t k = 0; k < n; k++) {
        values[k] = refs[k] ? i->p : i->y;
    }
    return 0;
}
int fmi2SetReal(void* c, const unsigned* refs, size_t n, const double* values)
{
    instance* i = c;
    for (size_t k = 0; k < n; k++) {
        if (refs[k]) { i->p = values[k]; }
    }
    return 0;
}
int fmi2DoStep(void* c, double t, double h, int no_rollback)
{
    const instance* i = c;
    (void)h, (void)no_rollback;
    if (t > 0 && i->p == 3) { abort(); }
    return t > 0 && i->p == 1 ? 4 : 0;
}
