// An FMI 2.0 library for tests. Functions are left out by renaming them on the command line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

#define EXPORT __attribute__((visibility("default")))
#define PROTOTYPE(name, need, result, arguments) EXPORT result fmi2##name arguments;
CRDI_FMI2_LIST(PROTOTYPE)

EXPORT mock_block mock_control = {.types = "default", .version = "2.0"};

static void mock_log(const mock_instance* m, const mock_block* k)
{
    m->callbacks->logger(m->environment, k->name, k->log_status, k->category, k->format, 7,
                         "seven");
}

#define NAME_OF(x) fmi2##x
#define NAME(x) NAME_OF(x)
#define NUMBER_OF(x) CRDI_FMI2_##x
#define NUMBER(x) NUMBER_OF(x)
#define DERIVATIVES GetDerivatives
#define TRUTH int
#include "mock_both.h"

const char* fmi2GetTypesPlatform(void)
{
    return mock_control.types;
}

const char* fmi2GetVersion(void)
{
    return mock_control.version;
}

void* fmi2Instantiate(const char* name, crdi_fmi2_kind kind, const char* guid,
                      const char* resources, const crdi_fmi2_callbacks* callbacks, int visible,
                      int logging_on)
{
    mock_block* k = &mock_control;
    mock_instance* m = calloc(1, sizeof *m);
    m->callbacks = callbacks;
    m->environment = callbacks->environment;
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->token, sizeof k->token, "%s", guid);
    snprintf(k->resources, sizeof k->resources, "%s", resources ? resources : "");
    k->has_resources = resources != NULL;
    k->visible = visible;
    k->logging_on = logging_on;
    enter(m, CRDI_FMI2_Instantiate);
    k->exchange = kind == CRDI_FMI2_MODEL_EXCHANGE;
    if (k->refuse || callbacks->step_finished) {
        free(m);
        return NULL;
    }
    unsigned char* p = callbacks->allocate(4, 16);
    k->allocated = 0;
    for (int n = 0; n < 64; n++) {
        k->allocated += p[n] == 0;
    }
    callbacks->release(p);
    k->live++;
    keep(NULL, m);
    return m;
}

void fmi2FreeInstance(void* c)
{
    enter(c, CRDI_FMI2_FreeInstance);
    mock_control.live--;
    keep(c, NULL);
    free(c);
}

crdi_fmi_status fmi2SetupExperiment(void* c, int has_tolerance, double tolerance, double start,
                                    int has_stop, double stop)
{
    mock_control.tolerance = has_tolerance ? tolerance : -1;
    mock_control.start = start;
    mock_control.stop = has_stop ? stop : -1;
    return enter(c, CRDI_FMI2_SetupExperiment);
}

#define PLAIN(name)                                                                                \
    crdi_fmi_status fmi2##name(void* c)                                                            \
    {                                                                                              \
        return enter(c, CRDI_FMI2_##name);                                                         \
    }
PLAIN(EnterInitializationMode)
PLAIN(ExitInitializationMode)
PLAIN(Terminate)
PLAIN(Reset)

#define ACCESS(name, type, field, back)                                                            \
    crdi_fmi_status fmi2Get##name(void* c, const crdi_fmi_ref* refs, size_t n, type* values)       \
    {                                                                                              \
        mock_instance* m = c;                                                                      \
        for (size_t j = 0; j < n; j++) {                                                           \
            values[j] = (type)(m->field[refs[j] % MOCK_VALUES] * (back));                          \
        }                                                                                          \
        return enter(c, CRDI_FMI2_Get##name);                                                      \
    }                                                                                              \
    crdi_fmi_status fmi2Set##name(void* c, const crdi_fmi_ref* refs, size_t n, const type* values) \
    {                                                                                              \
        mock_instance* m = c;                                                                      \
        for (size_t j = 0; j < n; j++) {                                                           \
            m->field[refs[j] % MOCK_VALUES] = values[j];                                           \
        }                                                                                          \
        return enter(c, CRDI_FMI2_Set##name);                                                      \
    }
ACCESS(Real, double, reals, 1)
ACCESS(Integer, int, integers, 1)
ACCESS(Boolean, int, booleans, -1) // true is -1, as with some tools

crdi_fmi_status fmi2GetString(void* c, const crdi_fmi_ref* refs, size_t n, const char** values)
{
    mock_instance* m = c;
    for (size_t j = 0; j < n; j++) {
        values[j] = mock_control.null_strings ? NULL : m->strings[refs[j] % MOCK_VALUES];
    }
    return enter(c, CRDI_FMI2_GetString);
}

crdi_fmi_status fmi2SetString(void* c, const crdi_fmi_ref* refs, size_t n,
                              const char* const* values)
{
    mock_instance* m = c;
    for (size_t j = 0; j < n; j++) {
        snprintf(m->strings[refs[j] % MOCK_VALUES], MOCK_BYTES, "%s", values[j]);
    }
    return enter(c, CRDI_FMI2_SetString);
}

crdi_fmi_status fmi2GetFMUstate(void* c, void** state)
{
    if (!*state) { keep(NULL, *state = malloc(sizeof(mock_instance))); }
    memcpy(*state, c, sizeof(mock_instance));
    return enter(c, CRDI_FMI2_GetFMUstate);
}

crdi_fmi_status fmi2SetFMUstate(void* c, void* state)
{
    memcpy(c, state, sizeof(mock_instance));
    return enter(c, CRDI_FMI2_SetFMUstate);
}

crdi_fmi_status fmi2FreeFMUstate(void* c, void** state)
{
    keep(*state, NULL);
    free(*state);
    *state = NULL;
    return enter(c, CRDI_FMI2_FreeFMUstate);
}

crdi_fmi_status fmi2SerializedFMUstateSize(void* c, void* state, size_t* size)
{
    (void)state;
    *size = sizeof(mock_instance);
    return enter(c, CRDI_FMI2_SerializedFMUstateSize);
}

crdi_fmi_status fmi2SerializeFMUstate(void* c, void* state, char* bytes, size_t size)
{
    if (size != sizeof(mock_instance)) { return CRDI_FMI_ERROR; }
    memcpy(bytes, state, size);
    return enter(c, CRDI_FMI2_SerializeFMUstate);
}

crdi_fmi_status fmi2DeSerializeFMUstate(void* c, const char* bytes, size_t size, void** state)
{
    if (size != sizeof(mock_instance) || *state) { return CRDI_FMI_ERROR; }
    *state = malloc(size);
    memcpy(*state, bytes, size);
    return enter(c, CRDI_FMI2_DeSerializeFMUstate);
}

// y = 3 u for every pair
crdi_fmi_status fmi2GetDirectionalDerivative(void* c, const crdi_fmi_ref* unknowns, size_t nu,
                                             const crdi_fmi_ref* knowns, size_t nk,
                                             const double* seed, double* sensitivity)
{
    (void)unknowns;
    (void)knowns;
    for (size_t j = 0; j < nu; j++) {
        sensitivity[j] = 0;
        for (size_t l = 0; l < nk; l++) {
            sensitivity[j] += 3 * seed[l];
        }
    }
    return enter(c, CRDI_FMI2_GetDirectionalDerivative);
}

crdi_fmi_status fmi2SetRealInputDerivatives(void* c, const crdi_fmi_ref* refs, size_t n,
                                            const int* orders, const double* values)
{
    mock_instance* m = c;
    for (size_t j = 0; j < n; j++) {
        m->derivatives[refs[j] % MOCK_VALUES] = orders[j] * values[j];
    }
    return enter(c, CRDI_FMI2_SetRealInputDerivatives);
}

crdi_fmi_status fmi2GetRealOutputDerivatives(void* c, const crdi_fmi_ref* refs, size_t n,
                                             const int* orders, double* values)
{
    mock_instance* m = c;
    for (size_t j = 0; j < n; j++) {
        values[j] = orders[j] * m->derivatives[refs[j] % MOCK_VALUES];
    }
    return enter(c, CRDI_FMI2_GetRealOutputDerivatives);
}

crdi_fmi_status fmi2DoStep(void* c, double t, double h, int no_rollback)
{
    mock_instance* m = c;
    m->t = t + h;
    m->reals[1] += h * m->reals[0];
    mock_control.no_rollback = no_rollback;
    return enter(c, CRDI_FMI2_DoStep);
}

PLAIN(CancelStep)

crdi_fmi_status fmi2GetStatus(void* c, crdi_fmi2_status_kind kind, crdi_fmi_status* value)
{
    if (kind != CRDI_FMI2_DO_STEP_STATUS) { return CRDI_FMI_DISCARD; }
    *value = mock_control.pending_polls-- > 0 ? CRDI_FMI_PENDING
                                              : (crdi_fmi_status)mock_control.pending_end;
    return enter(c, CRDI_FMI2_GetStatus);
}

crdi_fmi_status fmi2GetRealStatus(void* c, crdi_fmi2_status_kind kind, double* value)
{
    if (kind != CRDI_FMI2_LAST_SUCCESSFUL_TIME) { return CRDI_FMI_DISCARD; }
    *value = mock_control.last_successful;
    return enter(c, CRDI_FMI2_GetRealStatus);
}

crdi_fmi_status fmi2GetIntegerStatus(void* c, crdi_fmi2_status_kind kind, int* value)
{
    (void)kind;
    *value = 0;
    return enter(c, CRDI_FMI2_GetIntegerStatus);
}

crdi_fmi_status fmi2GetBooleanStatus(void* c, crdi_fmi2_status_kind kind, int* value)
{
    if (kind != CRDI_FMI2_TERMINATED) { return CRDI_FMI_DISCARD; }
    *value = mock_control.terminated;
    return enter(c, CRDI_FMI2_GetBooleanStatus);
}

crdi_fmi_status fmi2GetStringStatus(void* c, crdi_fmi2_status_kind kind, const char** value)
{
    (void)kind;
    *value = "";
    return enter(c, CRDI_FMI2_GetStringStatus);
}

// ---- Model Exchange -----------------------------------------------------------------------------

PLAIN(EnterEventMode)
PLAIN(EnterContinuousTimeMode)

crdi_fmi_status fmi2NewDiscreteStates(void* c, crdi_fmi2_event_info* info)
{
    const mock_block* k = &mock_control;
    *info = (crdi_fmi2_event_info){k->again,          k->terminate,      k->nominals_changed,
                                   k->values_changed, k->has_next_event, k->next_event};
    return enter(c, CRDI_FMI2_NewDiscreteStates);
}
