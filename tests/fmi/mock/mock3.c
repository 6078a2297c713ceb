// An FMI 3.0 library for tests. Functions are left out by renaming them on the command line.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

#define EXPORT __attribute__((visibility("default")))
#define PROTOTYPE(name, need, result, arguments) EXPORT result fmi3##name arguments;
CRDI_FMI3_LIST(PROTOTYPE)

EXPORT mock_block mock_control = {.version = "3.0", .reached = NAN};

static void mock_log(const mock_instance* m, const mock_block* k)
{
    m->logger(m->environment, k->log_status, k->category, k->format);
}

#define NAME_OF(x) fmi3##x
#define NAME(x) NAME_OF(x)
#define NUMBER_OF(x) CRDI_FMI3_##x
#define NUMBER(x) NUMBER_OF(x)
#define DERIVATIVES GetContinuousStateDerivatives
#define TRUTH bool
#include "mock_both.h"

const char* fmi3GetVersion(void)
{
    return mock_control.version;
}

void* fmi3InstantiateCoSimulation(const char* name, const char* token, const char* resources,
                                  bool visible, bool logging_on, bool event_mode, bool early_return,
                                  const crdi_fmi_ref* intermediate, size_t intermediate_count,
                                  void* environment, crdi_fmi3_logger* logger,
                                  crdi_fmi3_intermediate* intermediate_update)
{
    mock_block* k = &mock_control;
    mock_instance* m = calloc(1, sizeof *m);
    m->environment = environment;
    m->logger = logger;
    m->intermediate = intermediate_update;
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->token, sizeof k->token, "%s", token);
    snprintf(k->resources, sizeof k->resources, "%s", resources ? resources : "");
    k->has_resources = resources != NULL;
    k->visible = visible;
    k->logging_on = logging_on;
    k->event_mode = event_mode;
    k->early_return = early_return;
    k->has_intermediate = intermediate_update != NULL;
    k->intermediate_count = intermediate_count;
    for (size_t j = 0; j < intermediate_count && j < 4; j++) {
        k->intermediate[j] = intermediate[j];
    }
    enter(m, CRDI_FMI3_InstantiateCoSimulation);
    if (k->refuse) {
        free(m);
        return NULL;
    }
    k->live++;
    keep(NULL, m);
    return m;
}

void fmi3FreeInstance(void* c)
{
    enter(c, CRDI_FMI3_FreeInstance);
    mock_control.live--;
    keep(c, NULL);
    free(c);
}

crdi_fmi_status fmi3EnterInitializationMode(void* c, bool has_tolerance, double tolerance,
                                            double start, bool has_stop, double stop)
{
    mock_control.tolerance = has_tolerance ? tolerance : -1;
    mock_control.start = start;
    mock_control.stop = has_stop ? stop : -1;
    return enter(c, CRDI_FMI3_EnterInitializationMode);
}

#define PLAIN(name)                                                                                \
    crdi_fmi_status fmi3##name(void* c)                                                            \
    {                                                                                              \
        return enter(c, CRDI_FMI3_##name);                                                         \
    }
PLAIN(ExitInitializationMode)
PLAIN(EnterEventMode)
PLAIN(EnterStepMode)
PLAIN(EnterConfigurationMode)
PLAIN(ExitConfigurationMode)
PLAIN(Terminate)
PLAIN(Reset)

#define ACCESS(name, type, field)                                                                  \
    crdi_fmi_status fmi3Get##name(void* c, const crdi_fmi_ref* refs, size_t n, type* values,       \
                                  size_t nv)                                                       \
    {                                                                                              \
        mock_instance* m = c;                                                                      \
        for (size_t j = 0; j < nv; j++) {                                                          \
            values[j] = (type)m->field[(refs[0] + j) % MOCK_VALUES];                               \
        }                                                                                          \
        return n ? enter(c, CRDI_FMI3_Get##name) : CRDI_FMI_ERROR;                                 \
    }                                                                                              \
    crdi_fmi_status fmi3Set##name(void* c, const crdi_fmi_ref* refs, size_t n, const type* values, \
                                  size_t nv)                                                       \
    {                                                                                              \
        mock_instance* m = c;                                                                      \
        for (size_t j = 0; j < nv; j++) {                                                          \
            m->field[(refs[0] + j) % MOCK_VALUES] = (__typeof__(m->field[0]))values[j];            \
        }                                                                                          \
        return n ? enter(c, CRDI_FMI3_Set##name) : CRDI_FMI_ERROR;                                 \
    }
ACCESS(Float64, double, reals)
ACCESS(Float32, float, floats)
ACCESS(Int8, int8_t, integers)
ACCESS(UInt8, uint8_t, integers)
ACCESS(Int16, int16_t, integers)
ACCESS(UInt16, uint16_t, integers)
ACCESS(Int32, int32_t, integers)
ACCESS(UInt32, uint32_t, integers)
ACCESS(Int64, int64_t, integers)
ACCESS(UInt64, uint64_t, integers)
ACCESS(Boolean, bool, booleans)

crdi_fmi_status fmi3GetString(void* c, const crdi_fmi_ref* refs, size_t n, const char** values,
                              size_t nv)
{
    mock_instance* m = c;
    for (size_t j = 0; j < nv; j++) {
        values[j] = mock_control.null_strings ? NULL : m->strings[(refs[0] + j) % MOCK_VALUES];
    }
    return n ? enter(c, CRDI_FMI3_GetString) : CRDI_FMI_ERROR;
}

crdi_fmi_status fmi3SetString(void* c, const crdi_fmi_ref* refs, size_t n,
                              const char* const* values, size_t nv)
{
    mock_instance* m = c;
    for (size_t j = 0; j < nv; j++) {
        snprintf(m->strings[(refs[0] + j) % MOCK_VALUES], MOCK_BYTES, "%s", values[j]);
    }
    return n ? enter(c, CRDI_FMI3_SetString) : CRDI_FMI_ERROR;
}

crdi_fmi_status fmi3GetBinary(void* c, const crdi_fmi_ref* refs, size_t n, size_t* sizes,
                              const uint8_t** values, size_t nv)
{
    mock_instance* m = c;
    for (size_t j = 0; j < nv; j++) {
        sizes[j] = m->sizes[(refs[0] + j) % MOCK_VALUES];
        values[j] = m->binaries[(refs[0] + j) % MOCK_VALUES];
    }
    return n ? enter(c, CRDI_FMI3_GetBinary) : CRDI_FMI_ERROR;
}

crdi_fmi_status fmi3SetBinary(void* c, const crdi_fmi_ref* refs, size_t n, const size_t* sizes,
                              const uint8_t* const* values, size_t nv)
{
    mock_instance* m = c;
    for (size_t j = 0; j < nv; j++) {
        const size_t size = sizes[j] < MOCK_BYTES ? sizes[j] : MOCK_BYTES;
        m->sizes[(refs[0] + j) % MOCK_VALUES] = size;
        if (size) { memcpy(m->binaries[(refs[0] + j) % MOCK_VALUES], values[j], size); }
    }
    return n ? enter(c, CRDI_FMI3_SetBinary) : CRDI_FMI_ERROR;
}

crdi_fmi_status fmi3GetFMUState(void* c, void** state)
{
    if (!*state) { keep(NULL, *state = malloc(sizeof(mock_instance))); }
    memcpy(*state, c, sizeof(mock_instance));
    return enter(c, CRDI_FMI3_GetFMUState);
}

crdi_fmi_status fmi3SetFMUState(void* c, void* state)
{
    memcpy(c, state, sizeof(mock_instance));
    return enter(c, CRDI_FMI3_SetFMUState);
}

crdi_fmi_status fmi3FreeFMUState(void* c, void** state)
{
    keep(*state, NULL);
    free(*state);
    *state = NULL;
    return enter(c, CRDI_FMI3_FreeFMUState);
}

crdi_fmi_status fmi3SerializedFMUStateSize(void* c, void* state, size_t* size)
{
    (void)state;
    *size = sizeof(mock_instance);
    return enter(c, CRDI_FMI3_SerializedFMUStateSize);
}

crdi_fmi_status fmi3SerializeFMUState(void* c, void* state, uint8_t* bytes, size_t size)
{
    if (size != sizeof(mock_instance)) { return CRDI_FMI_ERROR; }
    memcpy(bytes, state, size);
    return enter(c, CRDI_FMI3_SerializeFMUState);
}

crdi_fmi_status fmi3DeserializeFMUState(void* c, const uint8_t* bytes, size_t size, void** state)
{
    if (size != sizeof(mock_instance) || *state) { return CRDI_FMI_ERROR; }
    *state = malloc(size);
    memcpy(*state, bytes, size);
    return enter(c, CRDI_FMI3_DeserializeFMUState);
}

crdi_fmi_status fmi3GetDirectionalDerivative(void* c, const crdi_fmi_ref* unknowns, size_t nu,
                                             const crdi_fmi_ref* knowns, size_t nk,
                                             const double* seed, size_t n_seed, double* sensitivity,
                                             size_t n_sensitivity)
{
    (void)unknowns;
    (void)knowns;
    if (n_seed != nk || n_sensitivity != nu) { return CRDI_FMI_ERROR; }
    for (size_t j = 0; j < nu; j++) {
        sensitivity[j] = 0;
        for (size_t l = 0; l < nk; l++) {
            sensitivity[j] += 3 * seed[l];
        }
    }
    return enter(c, CRDI_FMI3_GetDirectionalDerivative);
}

crdi_fmi_status fmi3GetOutputDerivatives(void* c, const crdi_fmi_ref* refs, size_t n,
                                         const int32_t* orders, double* values, size_t nv)
{
    for (size_t j = 0; j < nv; j++) {
        values[j] = 10 * orders[j] + refs[j];
    }
    return n == nv ? enter(c, CRDI_FMI3_GetOutputDerivatives) : CRDI_FMI_ERROR;
}

crdi_fmi_status fmi3UpdateDiscreteStates(void* c, bool* again, bool* terminate,
                                         bool* nominals_changed, bool* values_changed,
                                         bool* has_next_event, double* next_event)
{
    *again = true;
    *terminate = false;
    *nominals_changed = false;
    *values_changed = true;
    *has_next_event = true;
    *next_event = 4.5;
    return enter(c, CRDI_FMI3_UpdateDiscreteStates);
}

crdi_fmi_status fmi3DoStep(void* c, double t, double h, bool no_rollback, bool* event_needed,
                           bool* terminate, bool* early, double* reached)
{
    mock_instance* m = c;
    mock_block* k = &mock_control;
    const crdi_fmi_status status = enter(c, CRDI_FMI3_DoStep);
    if (k->update && m->intermediate) {
        m->intermediate(m->environment, t + h / 2, k->update_set, k->update_get, true,
                        k->update_can_return, &k->updated_early, &k->updated_time);
    }
    m->t = t + h;
    m->reals[1] += h * m->reals[0];
    k->no_rollback = no_rollback;
    *event_needed = k->event_needed;
    *terminate = k->terminate;
    *early = k->early;
    *reached = isnan(k->reached) ? t + h : k->reached;
    return status;
}

// ---- Model Exchange: x = 1, 2, ..., x' = t x, z = t - x
// --------------------------------------------

PLAIN(EnterContinuousTimeMode)

void* fmi3InstantiateModelExchange(const char* name, const char* token, const char* resources,
                                   bool visible, bool logging_on, void* environment,
                                   crdi_fmi3_logger* logger)
{
    mock_block* k = &mock_control;
    (void)token, (void)resources, (void)visible, (void)logging_on;
    mock_instance* m = calloc(1, sizeof *m);
    m->environment = environment;
    m->logger = logger;
    snprintf(k->name, sizeof k->name, "%s", name);
    k->exchange = true;
    enter(m, CRDI_FMI3_InstantiateModelExchange);
    k->live++;
    keep(NULL, m);
    return m;
}

crdi_fmi_status fmi3GetNumberOfContinuousStates(void* c, size_t* n)
{
    *n = 3;
    return enter(c, CRDI_FMI3_GetNumberOfContinuousStates);
}

crdi_fmi_status fmi3GetNumberOfEventIndicators(void* c, size_t* n)
{
    *n = 2;
    return enter(c, CRDI_FMI3_GetNumberOfEventIndicators);
}
