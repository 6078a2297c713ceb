// An FMI 2.0 library that does what the environment variable CARDAN_TEST_MISDEED says: "kind:call",
// or "kind:call:instance", with a kind of below and the name of a function without fmi2, or
// "constructor"; steps misbehave from the fourth on in the second form. y' = u, and a
// counter of steps, which is a text too.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
typedef void logger(void* environment, const char* name, int status, const char* category,
                    const char* text, ...);
typedef struct callbacks {
    logger* log;
    void* (*allocate)(size_t, size_t);
    void (*release)(void*);
    void (*finished)(void*, int);
    void* environment;
} callbacks;

typedef struct instance {
    const callbacks* c;
    char name[64];
    double u, y;
    int steps;
    char text[32], note[64];
} instance;

static void* crash_elsewhere(void* nothing)
{
    raise(SIGSEGV);
    return nothing;
}

static void hog(void)
{
    for (;;) {
        const size_t bytes = (size_t)64 << 20;
        char* p = malloc(bytes);
        if (!p) { abort(); }
        memset(p, 1, bytes);
    }
}

static void misbehave(const instance* i, const char* kind)
{
    volatile int* volatile nowhere = NULL;
    pthread_t thread;
    if (strcmp(kind, "segv") == 0) { *nowhere = 1; }
    if (strcmp(kind, "abort") == 0) { abort(); }
    if (strcmp(kind, "fpe") == 0) { raise(SIGFPE); }
    if (strcmp(kind, "trap") == 0) { raise(SIGTRAP); }
    if (strcmp(kind, "exit") == 0) { exit(3); }
    if (strcmp(kind, "_exit") == 0) { _exit(4); }
    if (strcmp(kind, "kill") == 0) { raise(SIGKILL); }
    if (strcmp(kind, "stop") == 0) { raise(SIGSTOP); }
    if (strcmp(kind, "hang") == 0) {
        for (;;) {
            pause();
        }
    }
    if (strcmp(kind, "spin") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        for (volatile int k = 0;; k++) {}
    }
    if (strcmp(kind, "leave") == 0) { pthread_exit(NULL); }
    if (strcmp(kind, "thread") == 0) {
        pthread_create(&thread, NULL, crash_elsewhere, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(kind, "hog") == 0) { hog(); }
    if (strcmp(kind, "fork") == 0) {
        for (int k = 0; k < 100; k++) {
            if (fork() >= 0) { _exit(98); }
        }
        _exit(97);
    }
    if (strcmp(kind, "read") == 0 || strcmp(kind, "write") == 0) {
        const char* path = getenv("CARDAN_TEST_FILE");
        _exit(open(path, kind[0] == 'r' ? O_RDONLY : O_WRONLY) < 0 ? 97 : 98);
    }
    if (strcmp(kind, "shrink") == 0) {
        for (int fd = 3; fd < 20; fd++) {
            if (ftruncate(fd, 0) == 0) { _exit(99); }
        }
    }
    if (strcmp(kind, "scribble") == 0) { // all that it shares with the master
        FILE* maps = fopen("/proc/self/maps", "r");
        char line[512];
        while (maps && fgets(line, sizeof line, maps)) {
            unsigned long from, to;
            if (strstr(line, "memfd:cardan") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
                memset((char*)from + 4096, 0xff, (size_t)1 << 20);
            }
        }
        raise(SIGKILL);
    }
    if (strcmp(kind, "log") == 0) {
        for (int k = 0; k < 20000; k++) {
            i->c->log(i->c->environment, i->name, 1, "many", "line %d of many", k);
        }
    }
    if (strcmp(kind, "close") == 0) {
        for (int fd = 3; fd < 100; fd++) {
            close(fd);
        }
    }
}

static void at(const instance* i, const char* call)
{
    const char* deed = getenv("CARDAN_TEST_MISDEED");
    const char* colon = deed ? strchr(deed, ':') : NULL;
    char kind[32];
    if (!colon || strncmp(colon + 1, call, strlen(call)) != 0) { return; }
    const char* rest = colon + 1 + strlen(call);
    if (*rest && (*rest != ':' || !i || strcmp(rest + 1, i->name) != 0 || i->steps < 3)) { return; }
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - deed), deed);
    misbehave(i, kind);
}

static void __attribute__((constructor)) loaded(void)
{
    at(NULL, "constructor");
}

#define FUNCTION(type, name, ...)                                                                  \
    EXPORT type fmi2##name(__VA_ARGS__);                                                           \
    type fmi2##name(__VA_ARGS__)

FUNCTION(const char*, GetVersion, void)
{
    return "2.0";
}

FUNCTION(const char*, GetTypesPlatform, void)
{
    return "default";
}

FUNCTION(void*, Instantiate, const char* name, int type, const char* guid, const char* resources,
         const callbacks* c, int visible, int logging)
{
    (void)type, (void)guid, (void)resources, (void)visible, (void)logging;
    instance* i = calloc(1, sizeof *i);
    i->c = c;
    snprintf(i->name, sizeof i->name, "%s", name);
    at(i, "Instantiate");
    return i;
}

FUNCTION(void, FreeInstance, void* c)
{
    at(c, "FreeInstance");
    free(c);
}

FUNCTION(int, SetupExperiment, void* c, int a, double b, double d, int e, double f)
{
    (void)a, (void)b, (void)d, (void)e, (void)f;
    at(c, "SetupExperiment");
    return 0;
}

FUNCTION(int, EnterInitializationMode, void* c)
{
    at(c, "EnterInitializationMode");
    return 0;
}

FUNCTION(int, ExitInitializationMode, void* c)
{
    at(c, "ExitInitializationMode");
    return 0;
}

FUNCTION(int, Terminate, void* c)
{
    at(c, "Terminate");
    return 0;
}

FUNCTION(int, Reset, void* c)
{
    (void)c;
    return 0;
}

FUNCTION(int, SetDebugLogging, void* c, int on, size_t n, const char* const* names)
{
    (void)c, (void)on, (void)n, (void)names;
    return 0;
}

FUNCTION(int, GetReal, void* c, const unsigned* refs, size_t n, double* values)
{
    instance* i = c;
    at(i, "GetReal");
    for (size_t k = 0; k < n; k++) {
        values[k] = refs[k] == 0 ? i->u : i->y;
    }
    return 0;
}

FUNCTION(int, SetReal, void* c, const unsigned* refs, size_t n, const double* values)
{
    instance* i = c;
    at(i, "SetReal");
    (void)refs;
    for (size_t k = 0; k < n; k++) {
        if (values[k] == 666) {
            i->c->log(i->c->environment, i->name, 3, "logStatusError", "not this number");
            return 3;
        }
        i->u = values[k];
    }
    return 0;
}

FUNCTION(int, GetInteger, void* c, const unsigned* refs, size_t n, int* values)
{
    (void)refs;
    for (size_t k = 0; k < n; k++) {
        values[k] = ((instance*)c)->steps;
    }
    return 0;
}

FUNCTION(int, GetString, void* c, const unsigned* refs, size_t n, const char** values)
{
    instance* i = c;
    snprintf(i->text, sizeof i->text, "%d steps", i->steps);
    for (size_t k = 0; k < n; k++) {
        values[k] = refs[k] == 3 ? i->text : i->note;
    }
    return 0;
}

FUNCTION(int, SetString, void* c, const unsigned* refs, size_t n, const char* const* values)
{
    instance* i = c;
    (void)refs;
    for (size_t k = 0; k < n; k++) {
        snprintf(i->note, sizeof i->note, "%s", values[k]);
    }
    return 0;
}

FUNCTION(int, DoStep, void* c, double t, double h, int no_set)
{
    instance* i = c;
    (void)t, (void)no_set;
    at(i, "DoStep");
    i->y += h * i->u;
    i->steps++;
    return 0;
}
