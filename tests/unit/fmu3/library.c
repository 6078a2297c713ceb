// An FMI 3.0 library for the tests of the FMU adapter: structural parameters, discrete inputs that
// are taken in event mode only, events that need two updates, time events, early return, inputs
// inside of a step. It refuses what the standard forbids. References as in modelDescription.xml.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK, DISCARD = 2, ERROR = 3 };
enum { MOST = 16 };
enum { INSTANTIATED, CONFIGURATION, INITIALIZATION, STEP, EVENT, INTERMEDIATE, TERMINATED };

typedef void intermediate_update(void* environment, double t, bool set, bool get, bool finished,
                                 bool can_return, bool* early, double* early_time);

typedef struct instance {
    int mode;
    void* environment;
    intermediate_update* update;
    bool event_mode, early_return;
    size_t intermediate_count;
    double t;
    double u, x;        // 10 input, 11 output: x' = u
    double gap;         // 12 parameter: time between time events, 0: none
    double stop_at;     // 13 parameter: an event from then on wants the end
    double discard_at;  // 14 parameter
    double longest;     // 15 parameter: longer steps are discarded
    double a[MOST];     // 20 input (n)
    double m[MOST * 3]; // 21 parameter (n, 3)
    double sum;         // 22 output: of all of m and a
    uint64_t n;         // 1 structural parameter
    int32_t k;          // 30 discrete input
    int32_t events;     // 31 discrete output: how often event mode was entered
    int32_t updates;    // 32 discrete output
    bool flag;          // 33 discrete input
    char word[32];      // 34 discrete input
    char echo[40];      // 35 discrete output
    double next;
    int left; // updates that this event still needs
} instance;

EXPORT const char* fmi3GetVersion(void);
const char* fmi3GetVersion(void)
{
    return "3.0";
}

EXPORT void* fmi3InstantiateCoSimulation(const char*, const char*, const char*, bool, bool, bool,
                                         bool, const uint32_t*, size_t, void*, void*,
                                         intermediate_update*);
void* fmi3InstantiateCoSimulation(const char* name, const char* token, const char* resources,
                                  bool visible, bool logging, bool event_mode, bool early_return,
                                  const uint32_t* intermediate, size_t count, void* environment,
                                  void* log, intermediate_update* update)
{
    (void)resources, (void)visible, (void)logging, (void)log;
    if (event_mode && strcmp(name, "eventless") == 0) { return NULL; }
    if (strcmp(name, "never") == 0) { return NULL; }
    if (strcmp(token, "unit-test") != 0 || (count && intermediate[0] != 10)) { return NULL; }
    instance* i = calloc(1, sizeof *i);
    *i = (instance){.environment = environment,
                    .update = update,
                    .event_mode = event_mode,
                    .early_return = early_return,
                    .intermediate_count = count,
                    .n = 2,
                    .stop_at = 1e9,
                    .discard_at = 1e9,
                    .longest = 1e9,
                    .next = INFINITY};
    return i;
}

EXPORT void fmi3FreeInstance(void*);
void fmi3FreeInstance(void* c)
{
    free(c);
}

#define MODE(name, from, to, ...)                                                                  \
    EXPORT int fmi3##name(void*);                                                                  \
    int fmi3##name(void* c)                                                                        \
    {                                                                                              \
        instance* i = c;                                                                           \
        if (i->mode != (from)) { return ERROR; }                                                   \
        i->mode = (to);                                                                            \
        __VA_ARGS__;                                                                               \
        return OK;                                                                                 \
    }
MODE(EnterConfigurationMode, INSTANTIATED, CONFIGURATION, (void)0)
MODE(ExitConfigurationMode, CONFIGURATION, INSTANTIATED, (void)0)
MODE(ExitInitializationMode, INITIALIZATION, i->event_mode ? EVENT : STEP, i->left = 1)
MODE(EnterEventMode, STEP, EVENT, (i->events++, i->left = 1))
MODE(EnterStepMode, EVENT, STEP, (void)0)
MODE(Terminate, STEP, TERMINATED, (void)0)

EXPORT int fmi3EnterInitializationMode(void*, bool, double, double, bool, double);
int fmi3EnterInitializationMode(void* c, bool has_tolerance, double tolerance, double start,
                                bool has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    instance* i = c;
    if (i->mode != INSTANTIATED) { return ERROR; }
    i->mode = INITIALIZATION;
    i->t = start;
    return OK;
}

EXPORT int fmi3UpdateDiscreteStates(void*, bool*, bool*, bool*, bool*, bool*, double*);
int fmi3UpdateDiscreteStates(void* c, bool* again, bool* terminate, bool* nominals, bool* values,
                             bool* has_next, double* next)
{
    instance* i = c;
    if (i->mode != EVENT) { return ERROR; }
    i->updates++;
    *again = i->left-- > 0;
    *terminate = i->t >= i->stop_at;
    *nominals = *values = false;
    i->next = i->gap > 0 ? (floor(i->t / i->gap + 1e-9) + 1) * i->gap : INFINITY;
    *has_next = i->gap > 0;
    *next = i->next;
    strcpy(i->echo, i->word);
    strcat(i->echo, i->flag ? "!" : "");
    return OK;
}

static double input_at(instance* i, double t)
{
    bool early = false;
    double early_time = 0;
    if (!i->intermediate_count) { return i->u; }
    i->mode = INTERMEDIATE;
    i->update(i->environment, t, true, false, false, false, &early, &early_time);
    i->mode = STEP;
    return i->u;
}

EXPORT int fmi3DoStep(void*, double, double, bool, bool*, bool*, bool*, double*);
int fmi3DoStep(void* c, double t, double h, bool no_rollback, bool* event, bool* terminate,
               bool* early, double* reached)
{
    (void)no_rollback;
    instance* i = c;
    if (i->mode != STEP || fabs(t - i->t) > 1e-9) { return ERROR; }
    if (t >= i->discard_at || h > i->longest) { return DISCARD; }
    const bool stops = i->event_mode && i->early_return && i->next < t + h - 1e-9;
    const double end = stops ? i->next : t + h;
    const double first = input_at(i, t), middle = input_at(i, (t + end) / 2);
    i->x += (end - t) / 6 * (first + 4 * middle + input_at(i, end)); // Simpson
    i->t = *reached = end;
    *early = stops;
    *event = stops;
    *terminate = false;
    return OK;
}

// Where a variable is kept, how many elements it has, and when it may be set.
static double* real_of(instance* i, uint32_t ref, size_t* count, bool set)
{
    const bool inner = i->mode == STEP || i->mode == EVENT || i->mode == INTERMEDIATE;
    *count = 1;
    switch (ref) {
    case 10:
        return &i->u;
    case 11:
        return set ? NULL : &i->x;
    case 12:
        return set && inner ? NULL : &i->gap;
    case 13:
        return set && inner ? NULL : &i->stop_at;
    case 14:
        return set && inner ? NULL : &i->discard_at;
    case 15:
        return set && inner ? NULL : &i->longest;
    case 20:
        *count = i->n;
        return i->a;
    case 21:
        *count = 3 * i->n;
        return set && inner ? NULL : i->m;
    case 22:
        i->sum = 0;
        for (size_t k = 0; k < i->n; k++) {
            i->sum += i->a[k];
        }
        for (size_t k = 0; k < 3 * i->n; k++) {
            i->sum += i->m[k] * (double)(k + 1);
        }
        return set ? NULL : &i->sum;
    default:
        return NULL;
    }
}

EXPORT int fmi3GetFloat64(void*, const uint32_t*, size_t, double*, size_t);
int fmi3GetFloat64(void* c, const uint32_t* refs, size_t n, double* values, size_t nv)
{
    size_t at = 0, count = 0;
    for (size_t j = 0; j < n; j++, at += count) {
        const double* p = real_of(c, refs[j], &count, false);
        if (!p || at + count > nv) { return ERROR; }
        memcpy(values + at, p, count * sizeof *p);
    }
    return at == nv ? OK : ERROR;
}

EXPORT int fmi3SetFloat64(void*, const uint32_t*, size_t, const double*, size_t);
int fmi3SetFloat64(void* c, const uint32_t* refs, size_t n, const double* values, size_t nv)
{
    size_t at = 0, count = 0;
    for (size_t j = 0; j < n; j++, at += count) {
        double* p = real_of(c, refs[j], &count, true);
        if (!p || at + count > nv) { return ERROR; }
        memcpy(p, values + at, count * sizeof *p);
    }
    return at == nv ? OK : ERROR;
}

static bool discrete_now(const instance* i)
{
    return i->mode == INSTANTIATED || i->mode == INITIALIZATION || i->mode == EVENT;
}

EXPORT int fmi3SetInt32(void*, const uint32_t*, size_t, const int32_t*, size_t);
int fmi3SetInt32(void* c, const uint32_t* refs, size_t n, const int32_t* values, size_t nv)
{
    instance* i = c;
    if (n != 1 || nv != 1 || refs[0] != 30 || !discrete_now(i)) { return ERROR; }
    i->k = values[0];
    return OK;
}

EXPORT int fmi3GetInt32(void*, const uint32_t*, size_t, int32_t*, size_t);
int fmi3GetInt32(void* c, const uint32_t* refs, size_t n, int32_t* values, size_t nv)
{
    const instance* i = c;
    for (size_t j = 0; j < n; j++) {
        values[j] = refs[j] == 30 ? i->k : refs[j] == 31 ? i->events : i->updates;
    }
    return n == nv ? OK : ERROR;
}

EXPORT int fmi3SetBoolean(void*, const uint32_t*, size_t, const bool*, size_t);
int fmi3SetBoolean(void* c, const uint32_t* refs, size_t n, const bool* values, size_t nv)
{
    instance* i = c;
    if (n != 1 || nv != 1 || refs[0] != 33 || !discrete_now(i)) { return ERROR; }
    i->flag = values[0];
    return OK;
}

EXPORT int fmi3SetUInt64(void*, const uint32_t*, size_t, const uint64_t*, size_t);
int fmi3SetUInt64(void* c, const uint32_t* refs, size_t n, const uint64_t* values, size_t nv)
{
    instance* i = c;
    const bool fits = n == 1 && nv == 1 && refs[0] == 1 && values[0] <= MOST;
    if (!fits || i->mode != CONFIGURATION) { return ERROR; }
    i->n = values[0];
    return OK;
}

EXPORT int fmi3SetString(void*, const uint32_t*, size_t, const char* const*, size_t);
int fmi3SetString(void* c, const uint32_t* refs, size_t n, const char* const* values, size_t nv)
{
    instance* i = c;
    if (n != 1 || nv != 1 || refs[0] != 34 || !discrete_now(i)) { return ERROR; }
    strncpy(i->word, values[0], sizeof i->word - 1);
    return OK;
}

EXPORT int fmi3GetString(void*, const uint32_t*, size_t, const char**, size_t);
int fmi3GetString(void* c, const uint32_t* refs, size_t n, const char** values, size_t nv)
{
    const instance* i = c;
    if (n != 1 || nv != 1) { return ERROR; }
    values[0] = refs[0] == 34 ? i->word : i->echo;
    return OK;
}

EXPORT int fmi3GetFMUState(void*, void**);
int fmi3GetFMUState(void* c, void** state)
{
    if (!*state) { *state = malloc(sizeof(instance)); }
    memcpy(*state, c, sizeof(instance));
    return OK;
}

EXPORT int fmi3SetFMUState(void*, void*);
int fmi3SetFMUState(void* c, void* state)
{
    memcpy(c, state, sizeof(instance));
    return OK;
}

EXPORT int fmi3FreeFMUState(void*, void**);
int fmi3FreeFMUState(void* c, void** state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return OK;
}
