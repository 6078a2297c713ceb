// A slave of FMI 1.0 for Co-Simulation that knows its own solution: x' = -k x + u with the input
// along a parabola, integrated exactly. It refuses what the standard forbids.
//
// Reals: 0 x, 1 u, 2 k, 3 y = 2 u. Integers: 0 steps, 1 n, 2 m = 3 n. Booleans: 0 on, 1 above
// (x > 0.5). Strings: 0 word, 1 echo. Negated aliases have the same references.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define FUNCTION(result, name, ...)                                                                \
    EXPORT result slave_fmi##name(__VA_ARGS__);                                                    \
    result slave_fmi##name(__VA_ARGS__)
enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING };

typedef void logger(void* c, const char* name, int status, const char* category, const char* text,
                    ...);
typedef struct callbacks {
    logger* log;
    void* (*allocate)(size_t n, size_t size);
    void (*release)(void* p);
    void (*step_finished)(void* c, int status);
} callbacks;

typedef struct instance {
    callbacks f; // by value: ours
    int initialised, terminated;
    double t, stop, reached;
    double real[4], derivatives[2]; // of u
    int integer[3];
    char boolean[2];
    char string[2][32];
    char name[32];
} instance;

FUNCTION(const char*, GetTypesPlatform, void)
{
    return "standard32";
}

FUNCTION(const char*, GetVersion, void)
{
    return "1.0";
}

FUNCTION(int, SetDebugLogging, void* c, char on)
{
    (void)c, (void)on;
    return OK;
}

FUNCTION(void*, InstantiateSlave, const char* name, const char* guid, const char* location,
         const char* mime, double timeout, char visible, char interactive, callbacks f,
         char logging)
{
    (void)visible, (void)timeout, (void)logging;
    if (strcmp(guid, "{slave}") != 0) {
        f.log(NULL, name, ERROR, "logStatusError", "the GUID is %s, not {slave}", guid);
        return NULL;
    }
    if (strncmp(location, "file:///", 8) != 0 || interactive || f.step_finished ||
        strcmp(mime, "application/x-fmu-sharedlibrary") != 0) {
        f.log(NULL, name, ERROR, "logStatusError", "bad arguments: %s, %s", location, mime);
        return NULL;
    }
    instance* i = f.allocate(1, sizeof *i);
    i->f = f;
    i->real[0] = 1;
    i->real[2] = 2;
    strncpy(i->name, name, sizeof i->name - 1);
    f.log(NULL, name, WARNING, "logStatusWarning", "made from #r%d#", 1);
    return i;
}

FUNCTION(int, InitializeSlave, void* c, double start, char has_stop, double stop)
{
    instance* i = c;
    if (i->initialised) { return ERROR; }
    i->initialised = 1;
    i->t = start;
    i->stop = has_stop ? stop : INFINITY;
    return OK;
}

FUNCTION(int, TerminateSlave, void* c)
{
    instance* i = c;
    if (!i->initialised || i->terminated) { return ERROR; }
    i->terminated = 1;
    return OK;
}

FUNCTION(int, ResetSlave, void* c)
{
    (void)c;
    return ERROR;
}

FUNCTION(void, FreeSlaveInstance, void* c)
{
    instance* i = c;
    i->f.log(c, i->name, OK, "logAll", "free");
    i->f.release(c);
}

// p(s) = a + b s + d s^2 solves x' = -k x + u0 + u1 s + u2 s^2 / 2; what is left decays.
FUNCTION(int, DoStep, void* c, double t, double h, char new_step)
{
    instance* i = c;
    if (!i->initialised || i->terminated || new_step != 1 || fabs(t - i->t) > 1e-9 ||
        t + h > i->stop + 1e-9) {
        i->f.log(c, i->name, ERROR, "logStatusError", "step at %g of %g, new %d", t, h, new_step);
        return ERROR;
    }
    if (i->real[1] > 1e6) {
        i->reached = t + h / 4;
        return DISCARD;
    }
    const double k = i->real[2], u = i->real[1], *du = i->derivatives;
    const double d = du[1] / (2 * k), b = (du[0] - 2 * d) / k, a = (u - b) / k;
    i->real[0] = a + b * h + d * h * h + (i->real[0] - a) * exp(-k * h);
    i->real[1] = u + du[0] * h + du[1] * h * h / 2;
    i->derivatives[0] = du[0] + du[1] * h;
    i->integer[0]++;
    i->t = t + h;
    return OK;
}

FUNCTION(int, GetRealStatus, void* c, int kind, double* value)
{
    if (kind != 2) { return DISCARD; }
    *value = ((instance*)c)->reached;
    return OK;
}

FUNCTION(int, GetStatus, void* c, int kind, int* value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD; // it never steps in the background
}

FUNCTION(int, GetIntegerStatus, void* c, int kind, int* value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

FUNCTION(int, GetBooleanStatus, void* c, int kind, char* value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

FUNCTION(int, GetStringStatus, void* c, int kind, const char** value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

FUNCTION(int, CancelStep, void* c)
{
    (void)c;
    return ERROR;
}

FUNCTION(int, SetRealInputDerivatives, void* c, const unsigned* refs, size_t n, const int* orders,
         const double* values)
{
    for (size_t k = 0; k < n; k++) {
        if (refs[k] != 1 || orders[k] < 1 || orders[k] > 2) { return ERROR; }
        ((instance*)c)->derivatives[orders[k] - 1] = values[k];
    }
    return OK;
}

FUNCTION(int, GetRealOutputDerivatives, void* c, const unsigned* refs, size_t n, const int* orders,
         double* values)
{
    const instance* i = c;
    for (size_t k = 0; k < n; k++) {
        if (orders[k] != 1) { return ERROR; }
        values[k] = refs[k] == 0 ? -i->real[2] * i->real[0] + i->real[1] : 2 * i->derivatives[0];
    }
    return OK;
}

static int may_get(const instance* i, int refs_ok)
{
    if (!i->initialised) {
        i->f.log((void*)i, i->name, ERROR, "logStatusError", "read before it was initialised");
    }
    return i->initialised && refs_ok;
}

FUNCTION(int, GetReal, void* c, const unsigned* refs, size_t n, double* values)
{
    instance* i = c;
    i->real[3] = 2 * i->real[1];
    for (size_t k = 0; k < n; k++) {
        if (!may_get(i, refs[k] < 4)) { return ERROR; }
        values[k] = i->real[refs[k]];
    }
    return OK;
}

FUNCTION(int, SetReal, void* c, const unsigned* refs, size_t n, const double* values)
{
    instance* i = c;
    for (size_t k = 0; k < n; k++) {
        const int input = refs[k] == 1;
        if (!input && (i->initialised || refs[k] == 3)) { return ERROR; } // start values
        i->real[refs[k]] = values[k];
    }
    return OK;
}

FUNCTION(int, GetInteger, void* c, const unsigned* refs, size_t n, int* values)
{
    instance* i = c;
    i->integer[2] = 3 * i->integer[1];
    for (size_t k = 0; k < n; k++) {
        if (!may_get(i, refs[k] < 3)) { return ERROR; }
        values[k] = i->integer[refs[k]];
    }
    return OK;
}

FUNCTION(int, SetInteger, void* c, const unsigned* refs, size_t n, const int* values)
{
    for (size_t k = 0; k < n; k++) {
        if (refs[k] != 1) { return ERROR; }
        ((instance*)c)->integer[1] = values[k];
    }
    return OK;
}

// true is any byte but 0
FUNCTION(int, GetBoolean, void* c, const unsigned* refs, size_t n, char* values)
{
    instance* i = c;
    i->boolean[1] = i->real[0] > 0.5 ? -1 : 0;
    for (size_t k = 0; k < n; k++) {
        if (!may_get(i, refs[k] < 2)) { return ERROR; }
        values[k] = i->boolean[refs[k]];
    }
    return OK;
}

FUNCTION(int, SetBoolean, void* c, const unsigned* refs, size_t n, const char* values)
{
    for (size_t k = 0; k < n; k++) {
        if (refs[k] != 0 || (values[k] != 0 && values[k] != 1)) { return ERROR; }
        ((instance*)c)->boolean[0] = values[k];
    }
    return OK;
}

FUNCTION(int, GetString, void* c, const unsigned* refs, size_t n, const char** values)
{
    instance* i = c;
    strcpy(i->string[1], i->string[0]);
    for (size_t k = 0; k < n; k++) {
        if (!may_get(i, refs[k] < 2)) { return ERROR; }
        values[k] = i->string[refs[k]];
    }
    return OK;
}

FUNCTION(int, SetString, void* c, const unsigned* refs, size_t n, const char* const* values)
{
    for (size_t k = 0; k < n; k++) {
        if (refs[k] != 0) { return ERROR; }
        strncpy(((instance*)c)->string[0], values[k], sizeof((instance*)c)->string[0] - 1);
    }
    return OK;
}
