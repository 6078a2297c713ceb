// FMI 2.0 Co-Simulation: x grows by k times the integral of 3 (s/h)^2 u(s) over a step, with the
// derivatives of u that were set; y = x + n. (The plain integral is the same for the polynomials of
// all degrees that are nearest to a curve.) What it does with fmi2SetRealInputDerivatives is said
// by the token:
//   both     takes orders 1 and 2
//   single   takes both, but no more values in a call than it has inputs: more are a Warning, and
//            ignored
//   warns    Warning at order 2, and ignores it       discards   Discard at order 2
//   breaks   Error at order 2                         refuses    Error at every order
//   late     Warning before step mode, then both      fatal      Fatal at order 2
//   halts    both; a step over 0.25 s comes to there and is discarded, from 1 s on those of more
//            than 30 ms are, and from 2 s on all. Then it has to go back
// After an Error every call but fmi2FreeInstance is an Error.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR, FATAL };
enum { INSTANTIATED, INITIALIZATION, STEP, FAILED, BROKEN };

// For the test: instances that live, and that were made.
EXPORT int interpolating_live, interpolating_made;
int interpolating_live, interpolating_made;

typedef struct {
    char token[16];
    int mode;
    double u, d[2], x, k;
    double t; // that it has come to
    int n;
} instance;

EXPORT const char* fmi2GetVersion(void);
EXPORT const char* fmi2GetVersion(void)
{
    return "2.0";
}

EXPORT const char* fmi2GetTypesPlatform(void);
EXPORT const char* fmi2GetTypesPlatform(void)
{
    return "default";
}

EXPORT void* fmi2Instantiate(const char* name, int type, const char* token, const char* resources,
                             const void* callbacks, int visible, int logging);
EXPORT void* fmi2Instantiate(const char* name, int type, const char* token, const char* resources,
                             const void* callbacks, int visible, int logging)
{
    (void)name, (void)resources, (void)callbacks, (void)visible, (void)logging;
    enum { MOST = 64 };
    static instance room[MOST]; // not on the heap: after Fatal nobody frees an instance
    if (type != 1 || interpolating_live == MOST) { return NULL; }
    instance* i = &room[interpolating_made % MOST];
    *i = (instance){0};
    strncpy(i->token, token, sizeof i->token - 1);
    i->k = 1;
    interpolating_live++;
    interpolating_made++;
    return i;
}

EXPORT void fmi2FreeInstance(void* self);
EXPORT void fmi2FreeInstance(void* self)
{
    (void)self;
    interpolating_live--;
}

static bool is(const instance* i, const char* token)
{
    return strcmp(i->token, token) == 0;
}

#define TO(name, parameters, from, to)                                                             \
    EXPORT int fmi2##name parameters;                                                              \
    EXPORT int fmi2##name parameters                                                               \
    {                                                                                              \
        instance* i = self;                                                                        \
        if (i->mode != (from)) { return ERROR; }                                                   \
        i->mode = (to);                                                                            \
        return OK;                                                                                 \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
TO(SetupExperiment, (void* self, int a, double b, double c, int d, double e), INSTANTIATED,
   INSTANTIATED)
TO(EnterInitializationMode, (void* self), INSTANTIATED, INITIALIZATION)
TO(ExitInitializationMode, (void* self), INITIALIZATION, STEP)
TO(Terminate, (void* self), STEP, STEP)
#pragma GCC diagnostic pop

EXPORT int fmi2SetReal(void* self, const unsigned* refs, size_t n, const double* values);
EXPORT int fmi2SetReal(void* self, const unsigned* refs, size_t n, const double* values)
{
    instance* i = self;
    if (i->mode == BROKEN) { return ERROR; }
    for (size_t j = 0; j < n; j++) {
        *(refs[j] == 0 ? &i->u : &i->k) = values[j];
    }
    return OK;
}

EXPORT int fmi2GetReal(void* self, const unsigned* refs, size_t n, double* values);
EXPORT int fmi2GetReal(void* self, const unsigned* refs, size_t n, double* values)
{
    const instance* i = self;
    for (size_t j = 0; j < n; j++) {
        values[j] = refs[j] == 0 ? i->u : refs[j] == 1 ? i->x + i->n : i->k;
    }
    return i->mode == BROKEN ? ERROR : OK;
}

EXPORT int fmi2SetInteger(void* self, const unsigned* refs, size_t n, const int* values);
EXPORT int fmi2SetInteger(void* self, const unsigned* refs, size_t n, const int* values)
{
    instance* i = self;
    (void)refs;
    if (n) { i->n = values[0]; }
    return i->mode == BROKEN ? ERROR : OK;
}

EXPORT int fmi2GetInteger(void* self, const unsigned* refs, size_t n, int* values);
EXPORT int fmi2GetInteger(void* self, const unsigned* refs, size_t n, int* values)
{
    const instance* i = self;
    (void)refs;
    if (n) { values[0] = i->n; }
    return i->mode == BROKEN ? ERROR : OK;
}

// What it says to one derivative.
static int answer(instance* i, int order)
{
    if (is(i, "refuses") || (is(i, "breaks") && order == 2)) {
        i->mode = BROKEN;
        return ERROR;
    }
    if (order == 2 && is(i, "fatal")) { return FATAL; }
    if (order == 2 && is(i, "warns")) { return WARNING; }
    if (order == 2 && is(i, "discards")) { return DISCARD; }
    return is(i, "late") && i->mode != STEP ? WARNING : OK;
}

EXPORT int fmi2SetRealInputDerivatives(void* self, const unsigned* refs, size_t n,
                                       const int* orders, const double* values);
EXPORT int fmi2SetRealInputDerivatives(void* self, const unsigned* refs, size_t n,
                                       const int* orders, const double* values)
{
    instance* i = self;
    if (i->mode == BROKEN) { return ERROR; }
    if (n > 1 && is(i, "single")) { return WARNING; }
    for (size_t j = 0; j < n; j++) {
        if (refs[j] != 0 || orders[j] < 1 || orders[j] > 2) { return ERROR; }
        const int status = answer(i, orders[j]);
        if (status != OK) { return status; }
        i->d[orders[j] - 1] = values[j];
    }
    return OK;
}

EXPORT int fmi2DoStep(void* self, double t, double h, int final);
EXPORT int fmi2DoStep(void* self, double t, double h, int final)
{
    instance* i = self;
    (void) final;
    if (i->mode != STEP) { return ERROR; }
    if (is(i, "halts")) {
        i->t = t < 0.249 && t + h > 0.251 ? 0.25 : t >= (h > 0.03 ? 0.999 : 1.999) ? t : t + h;
        if (i->t < t + h) { i->mode = FAILED; }
        h = i->t - t;
    }
    i->x += i->k * h * (i->u + h * (0.75 * i->d[0] + h * 0.3 * i->d[1]));
    return i->mode == FAILED ? DISCARD : OK;
}

EXPORT int fmi2GetRealStatus(void* self, int kind, double* value);
EXPORT int fmi2GetRealStatus(void* self, int kind, double* value)
{
    const instance* i = self;
    *value = i->t;
    return kind == 2 ? OK : DISCARD;
}

EXPORT int fmi2GetFMUstate(void* self, void** state);
EXPORT int fmi2GetFMUstate(void* self, void** state)
{
    if (!*state) { *state = malloc(sizeof(instance)); }
    memcpy(*state, self, sizeof(instance));
    return OK;
}

EXPORT int fmi2SetFMUstate(void* self, void* state);
EXPORT int fmi2SetFMUstate(void* self, void* state)
{
    memcpy(self, state, sizeof(instance));
    return OK;
}

EXPORT int fmi2FreeFMUstate(void* self, void** state);
EXPORT int fmi2FreeFMUstate(void* self, void** state)
{
    (void)self;
    free(*state);
    *state = NULL;
    return OK;
}
