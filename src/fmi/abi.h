// The binary interface between an importer and the shared library of an FMU, FMI 1.0 to 3.0, as
// far as a C compiler must know it: numbers, argument types and order. Declared here from the
// standards; names of arguments are ours.
//
// Each function is one row of CRDI_FMI2_LIST or CRDI_FMI3_LIST:
//     X(name without prefix, need, result, arguments)
// `need` is what an importer cannot do without: for Co-Simulation (CS), Model Exchange (ME),
// REQUIRED for both, else OPTIONAL. The first three rows are the ones called in every step. They
// stand at the same place in both lists, so that one index serves both versions, and at the head of
// the table of pointers.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum crdi_fmi_status {
    CRDI_FMI_OK,
    CRDI_FMI_WARNING,
    CRDI_FMI_DISCARD,
    CRDI_FMI_ERROR,
    CRDI_FMI_FATAL,
    CRDI_FMI_PENDING, // FMI 1 and 2
} crdi_fmi_status;

typedef uint32_t crdi_fmi_ref; // value reference

// ---- FMI 2.0 -----------------------------------------------------------------------------------

typedef enum crdi_fmi2_kind { CRDI_FMI2_MODEL_EXCHANGE, CRDI_FMI2_CO_SIMULATION } crdi_fmi2_kind;

typedef enum crdi_fmi2_status_kind {
    CRDI_FMI2_DO_STEP_STATUS,
    CRDI_FMI2_PENDING_STATUS,
    CRDI_FMI2_LAST_SUCCESSFUL_TIME,
    CRDI_FMI2_TERMINATED,
} crdi_fmi2_status_kind;

typedef void crdi_fmi2_logger(void* environment, const char* instance_name, crdi_fmi_status status,
                              const char* category, const char* format, ...);

typedef struct crdi_fmi2_callbacks {
    crdi_fmi2_logger* logger;
    void* (*allocate)(size_t count, size_t size); // as calloc
    void (*release)(void* p);
    void (*step_finished)(void* environment, crdi_fmi_status status); // NULL: we ask
    void* environment;
} crdi_fmi2_callbacks;

typedef struct crdi_fmi2_event_info { // Model Exchange
    int new_discrete_states_needed;
    int terminate_simulation;
    int nominals_changed;
    int values_changed;
    int next_event_time_defined;
    double next_event_time;
} crdi_fmi2_event_info;

// Reals are double, integers and booleans are int, a byte is a char.
#define CRDI_FMI2_LIST(X)                                                                          \
    X(DoStep, CS, crdi_fmi_status, (void* c, double t, double h, int no_rollback))                 \
    X(SetReal, REQUIRED, crdi_fmi_status,                                                          \
      (void* c, const crdi_fmi_ref* refs, size_t n, const double* values))                         \
    X(GetReal, REQUIRED, crdi_fmi_status,                                                          \
      (void* c, const crdi_fmi_ref* refs, size_t n, double* values))                               \
    X(GetTypesPlatform, OPTIONAL, const char*, (void))                                             \
    X(GetVersion, OPTIONAL, const char*, (void))                                                   \
    X(SetDebugLogging, OPTIONAL, crdi_fmi_status,                                                  \
      (void* c, int on, size_t n, const char* const* categories))                                  \
    X(Instantiate, REQUIRED, void*,                                                                \
      (const char* name, crdi_fmi2_kind kind, const char* guid, const char* resources,             \
       const crdi_fmi2_callbacks* callbacks, int visible, int logging_on))                         \
    X(FreeInstance, REQUIRED, void, (void* c))                                                     \
    X(SetupExperiment, REQUIRED, crdi_fmi_status,                                                  \
      (void* c, int has_tolerance, double tolerance, double start, int has_stop, double stop))     \
    X(EnterInitializationMode, REQUIRED, crdi_fmi_status, (void* c))                               \
    X(ExitInitializationMode, REQUIRED, crdi_fmi_status, (void* c))                                \
    X(Terminate, REQUIRED, crdi_fmi_status, (void* c))                                             \
    X(Reset, OPTIONAL, crdi_fmi_status, (void* c))                                                 \
    X(GetInteger, OPTIONAL, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, int* values))                                  \
    X(GetBoolean, OPTIONAL, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, int* values))                                  \
    X(GetString, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const char** values))                          \
    X(SetInteger, OPTIONAL, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, const int* values))                            \
    X(SetBoolean, OPTIONAL, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, const int* values))                            \
    X(SetString, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const char* const* values))                    \
    X(GetFMUstate, OPTIONAL, crdi_fmi_status, (void* c, void** state))                             \
    X(SetFMUstate, OPTIONAL, crdi_fmi_status, (void* c, void* state))                              \
    X(FreeFMUstate, OPTIONAL, crdi_fmi_status, (void* c, void** state))                            \
    X(SerializedFMUstateSize, OPTIONAL, crdi_fmi_status, (void* c, void* state, size_t* size))     \
    X(SerializeFMUstate, OPTIONAL, crdi_fmi_status,                                                \
      (void* c, void* state, char* bytes, size_t size))                                            \
    X(DeSerializeFMUstate, OPTIONAL, crdi_fmi_status,                                              \
      (void* c, const char* bytes, size_t size, void** state))                                     \
    X(GetDirectionalDerivative, OPTIONAL, crdi_fmi_status,                                         \
      (void* c, const crdi_fmi_ref* unknowns, size_t nu, const crdi_fmi_ref* knowns, size_t nk,    \
       const double* seed, double* sensitivity))                                                   \
    X(SetRealInputDerivatives, OPTIONAL, crdi_fmi_status,                                          \
      (void* c, const crdi_fmi_ref* refs, size_t n, const int* orders, const double* values))      \
    X(GetRealOutputDerivatives, OPTIONAL, crdi_fmi_status,                                         \
      (void* c, const crdi_fmi_ref* refs, size_t n, const int* orders, double* values))            \
    X(CancelStep, OPTIONAL, crdi_fmi_status, (void* c))                                            \
    X(GetStatus, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, crdi_fmi2_status_kind kind, crdi_fmi_status* value))                               \
    X(GetRealStatus, OPTIONAL, crdi_fmi_status,                                                    \
      (void* c, crdi_fmi2_status_kind kind, double* value))                                        \
    X(GetIntegerStatus, OPTIONAL, crdi_fmi_status,                                                 \
      (void* c, crdi_fmi2_status_kind kind, int* value))                                           \
    X(GetBooleanStatus, OPTIONAL, crdi_fmi_status,                                                 \
      (void* c, crdi_fmi2_status_kind kind, int* value))                                           \
    X(GetStringStatus, OPTIONAL, crdi_fmi_status,                                                  \
      (void* c, crdi_fmi2_status_kind kind, const char** value))                                   \
    X(EnterEventMode, ME, crdi_fmi_status, (void* c))                                              \
    X(NewDiscreteStates, ME, crdi_fmi_status, (void* c, crdi_fmi2_event_info* info))               \
    X(EnterContinuousTimeMode, ME, crdi_fmi_status, (void* c))                                     \
    X(CompletedIntegratorStep, OPTIONAL, crdi_fmi_status,                                          \
      (void* c, int no_rollback, int* enter_event_mode, int* terminate))                           \
    X(SetTime, ME, crdi_fmi_status, (void* c, double t))                                           \
    X(SetContinuousStates, ME, crdi_fmi_status, (void* c, const double* x, size_t nx))             \
    X(GetDerivatives, ME, crdi_fmi_status, (void* c, double* dx, size_t nx))                       \
    X(GetEventIndicators, OPTIONAL, crdi_fmi_status, (void* c, double* z, size_t nz))              \
    X(GetContinuousStates, ME, crdi_fmi_status, (void* c, double* x, size_t nx))                   \
    X(GetNominalsOfContinuousStates, OPTIONAL, crdi_fmi_status, (void* c, double* x, size_t nx))

// ---- FMI 1.0 -----------------------------------------------------------------------------------

// Functions of FMI 1.0 are those of FMI 2.0 under other names, behind the model identifier
// ("ball_fmiDoStep"). They stand in FMI 2's table of pointers and have its numbers:
//     X(function of FMI 2, need, name for Co-Simulation, name for Model Exchange)
// MODE is a mode that FMI 1.0 does not know: we keep it, and nothing is called. Initialising is one
// call, at the end of what FMI 2 calls initialization mode. fmiGetStateValueReferences is not used.
// Booleans are char. So is the last argument of fmiDoStep, in the same register as FMI 2's int;
// what differs otherwise has a type below.
#define CRDI_FMI1_BOTH(X, name, need) X(name, need, "fmi" #name, "fmi" #name)
#define CRDI_FMI1_CS(X, name, need) X(name, need, "fmi" #name, "")
#define CRDI_FMI1_ME(X, name, need) X(name, need, "", "fmi" #name)
#define CRDI_FMI1_LIST(X)                                                                          \
    CRDI_FMI1_CS(X, DoStep, CS)                                                                    \
    CRDI_FMI1_BOTH(X, SetReal, REQUIRED)                                                           \
    CRDI_FMI1_BOTH(X, GetReal, REQUIRED)                                                           \
    X(GetTypesPlatform, OPTIONAL, "fmiGetTypesPlatform", "fmiGetModelTypesPlatform")               \
    CRDI_FMI1_BOTH(X, GetVersion, OPTIONAL)                                                        \
    CRDI_FMI1_BOTH(X, SetDebugLogging, OPTIONAL)                                                   \
    X(Instantiate, REQUIRED, "fmiInstantiateSlave", "fmiInstantiateModel")                         \
    X(FreeInstance, REQUIRED, "fmiFreeSlaveInstance", "fmiFreeModelInstance")                      \
    X(EnterInitializationMode, MODE, "setting up the initialization",                              \
      "setting up the initialization")                                                             \
    X(ExitInitializationMode, REQUIRED, "fmiInitializeSlave", "fmiInitialize")                     \
    X(Terminate, OPTIONAL, "fmiTerminateSlave", "fmiTerminate")                                    \
    X(Reset, OPTIONAL, "fmiResetSlave", "")                                                        \
    CRDI_FMI1_BOTH(X, GetInteger, OPTIONAL)                                                        \
    CRDI_FMI1_BOTH(X, GetBoolean, OPTIONAL)                                                        \
    CRDI_FMI1_BOTH(X, GetString, OPTIONAL)                                                         \
    CRDI_FMI1_BOTH(X, SetInteger, OPTIONAL)                                                        \
    CRDI_FMI1_BOTH(X, SetBoolean, OPTIONAL)                                                        \
    CRDI_FMI1_BOTH(X, SetString, OPTIONAL)                                                         \
    CRDI_FMI1_CS(X, SetRealInputDerivatives, OPTIONAL)                                             \
    CRDI_FMI1_CS(X, GetRealOutputDerivatives, OPTIONAL)                                            \
    CRDI_FMI1_CS(X, CancelStep, OPTIONAL)                                                          \
    CRDI_FMI1_CS(X, GetStatus, OPTIONAL)                                                           \
    CRDI_FMI1_CS(X, GetRealStatus, OPTIONAL)                                                       \
    CRDI_FMI1_CS(X, GetIntegerStatus, OPTIONAL)                                                    \
    CRDI_FMI1_CS(X, GetBooleanStatus, OPTIONAL)                                                    \
    CRDI_FMI1_CS(X, GetStringStatus, OPTIONAL)                                                     \
    X(EnterEventMode, MODE, "", "handling an event")                                               \
    X(NewDiscreteStates, ME, "", "fmiEventUpdate")                                                 \
    X(EnterContinuousTimeMode, MODE, "", "going on in continuous time")                            \
    CRDI_FMI1_ME(X, CompletedIntegratorStep, ME)                                                   \
    CRDI_FMI1_ME(X, SetTime, ME)                                                                   \
    CRDI_FMI1_ME(X, SetContinuousStates, ME)                                                       \
    CRDI_FMI1_ME(X, GetDerivatives, ME)                                                            \
    CRDI_FMI1_ME(X, GetEventIndicators, OPTIONAL)                                                  \
    CRDI_FMI1_ME(X, GetContinuousStates, ME)                                                       \
    X(GetNominalsOfContinuousStates, OPTIONAL, "", "fmiGetNominalContinuousStates")

typedef void crdi_fmi1_logger(void* component, const char* instance_name, crdi_fmi_status status,
                              const char* category, const char* format, ...);

typedef struct crdi_fmi1_callbacks { // handed over by value
    crdi_fmi1_logger* logger;
    void* (*allocate)(size_t count, size_t size); // as calloc
    void (*release)(void* p);
} crdi_fmi1_callbacks;

typedef struct crdi_fmi1_slave_callbacks { // Co-Simulation, likewise
    crdi_fmi1_logger* logger;
    void* (*allocate)(size_t count, size_t size);
    void (*release)(void* p);
    void (*step_finished)(void* component, crdi_fmi_status status); // NULL: we ask
} crdi_fmi1_slave_callbacks;

typedef struct crdi_fmi1_event_info {
    char converged, references_changed, values_changed, terminate, has_next_event;
    double next_event;
} crdi_fmi1_event_info;

typedef void* crdi_fmi1_instantiate_slave(const char* name, const char* guid, const char* location,
                                          const char* mime_type, double timeout, char visible,
                                          char interactive, crdi_fmi1_slave_callbacks callbacks,
                                          char logging_on);
typedef void* crdi_fmi1_instantiate_model(const char* name, const char* guid,
                                          crdi_fmi1_callbacks callbacks, char logging_on);
typedef crdi_fmi_status crdi_fmi1_initialize_slave(void* c, double start, char has_stop,
                                                   double stop);
typedef crdi_fmi_status crdi_fmi1_initialize_model(void* c, char has_tolerance, double tolerance,
                                                   crdi_fmi1_event_info* info);
typedef crdi_fmi_status crdi_fmi1_event_update(void* c, char intermediate_results,
                                               crdi_fmi1_event_info* info);
typedef crdi_fmi_status crdi_fmi1_completed_step(void* c, char* event);
typedef crdi_fmi_status crdi_fmi1_get_boolean(void* c, const crdi_fmi_ref* refs, size_t n,
                                              char* values);
typedef crdi_fmi_status crdi_fmi1_set_boolean(void* c, const crdi_fmi_ref* refs, size_t n,
                                              const char* values);

// ---- FMI 3.0 -----------------------------------------------------------------------------------

typedef enum crdi_fmi3_dependency {
    CRDI_FMI3_INDEPENDENT,
    CRDI_FMI3_CONSTANT,
    CRDI_FMI3_FIXED,
    CRDI_FMI3_TUNABLE,
    CRDI_FMI3_DISCRETE,
    CRDI_FMI3_DEPENDENT,
} crdi_fmi3_dependency;

typedef enum crdi_fmi3_interval {
    CRDI_FMI3_INTERVAL_NOT_YET_KNOWN,
    CRDI_FMI3_INTERVAL_UNCHANGED,
    CRDI_FMI3_INTERVAL_CHANGED,
} crdi_fmi3_interval;

typedef void crdi_fmi3_logger(void* environment, crdi_fmi_status status, const char* category,
                              const char* text);
typedef void crdi_fmi3_intermediate(void* environment, double t, bool set_requested,
                                    bool get_allowed, bool step_finished, bool can_return_early,
                                    bool* return_early, double* return_time);
typedef void crdi_fmi3_clock_update(void* environment);
typedef void crdi_fmi3_preemption(void);

// Booleans and clocks are one-byte bool, a byte is uint8_t; `nv` counts elements, `n` variables.
#define CRDI_FMI3_GET_SET(X, name, type)                                                           \
    X(Get##name, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, type* values, size_t nv))                      \
    X(Set##name, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const type* values, size_t nv))

#define CRDI_FMI3_LIST(X)                                                                          \
    X(DoStep, CS, crdi_fmi_status,                                                                 \
      (void* c, double t, double h, bool no_rollback, bool* event_needed, bool* terminate,         \
       bool* early, double* reached))                                                              \
    X(SetFloat64, REQUIRED, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, const double* values, size_t nv))              \
    X(GetFloat64, REQUIRED, crdi_fmi_status,                                                       \
      (void* c, const crdi_fmi_ref* refs, size_t n, double* values, size_t nv))                    \
    X(GetVersion, OPTIONAL, const char*, (void))                                                   \
    X(SetDebugLogging, OPTIONAL, crdi_fmi_status,                                                  \
      (void* c, bool on, size_t n, const char* const* categories))                                 \
    X(InstantiateModelExchange, ME, void*,                                                         \
      (const char* name, const char* token, const char* resources, bool visible, bool logging_on,  \
       void* environment, crdi_fmi3_logger* logger))                                               \
    X(InstantiateCoSimulation, CS, void*,                                                          \
      (const char* name, const char* token, const char* resources, bool visible, bool logging_on,  \
       bool event_mode, bool early_return, const crdi_fmi_ref* intermediate,                       \
       size_t intermediate_count, void* environment, crdi_fmi3_logger* logger,                     \
       crdi_fmi3_intermediate* intermediate_update))                                               \
    X(InstantiateScheduledExecution, OPTIONAL, void*,                                              \
      (const char* name, const char* token, const char* resources, bool visible, bool logging_on,  \
       void* environment, crdi_fmi3_logger* logger, crdi_fmi3_clock_update* clock_update,          \
       crdi_fmi3_preemption* lock, crdi_fmi3_preemption* unlock))                                  \
    X(FreeInstance, REQUIRED, void, (void* c))                                                     \
    X(EnterInitializationMode, REQUIRED, crdi_fmi_status,                                          \
      (void* c, bool has_tolerance, double tolerance, double start, bool has_stop, double stop))   \
    X(ExitInitializationMode, REQUIRED, crdi_fmi_status, (void* c))                                \
    X(EnterEventMode, ME, crdi_fmi_status, (void* c))                                              \
    X(Terminate, REQUIRED, crdi_fmi_status, (void* c))                                             \
    X(Reset, OPTIONAL, crdi_fmi_status, (void* c))                                                 \
    CRDI_FMI3_GET_SET(X, Float32, float)                                                           \
    CRDI_FMI3_GET_SET(X, Int8, int8_t)                                                             \
    CRDI_FMI3_GET_SET(X, UInt8, uint8_t)                                                           \
    CRDI_FMI3_GET_SET(X, Int16, int16_t)                                                           \
    CRDI_FMI3_GET_SET(X, UInt16, uint16_t)                                                         \
    CRDI_FMI3_GET_SET(X, Int32, int32_t)                                                           \
    CRDI_FMI3_GET_SET(X, UInt32, uint32_t)                                                         \
    CRDI_FMI3_GET_SET(X, Int64, int64_t)                                                           \
    CRDI_FMI3_GET_SET(X, UInt64, uint64_t)                                                         \
    CRDI_FMI3_GET_SET(X, Boolean, bool)                                                            \
    X(GetString, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const char** values, size_t nv))               \
    X(SetString, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const char* const* values, size_t nv))         \
    X(GetBinary, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, size_t* sizes, const uint8_t** values,         \
       size_t nv))                                                                                 \
    X(SetBinary, OPTIONAL, crdi_fmi_status,                                                        \
      (void* c, const crdi_fmi_ref* refs, size_t n, const size_t* sizes,                           \
       const uint8_t* const* values, size_t nv))                                                   \
    X(GetClock, OPTIONAL, crdi_fmi_status,                                                         \
      (void* c, const crdi_fmi_ref* refs, size_t n, bool* values))                                 \
    X(SetClock, OPTIONAL, crdi_fmi_status,                                                         \
      (void* c, const crdi_fmi_ref* refs, size_t n, const bool* values))                           \
    X(GetNumberOfVariableDependencies, OPTIONAL, crdi_fmi_status,                                  \
      (void* c, crdi_fmi_ref ref, size_t* n))                                                      \
    X(GetVariableDependencies, OPTIONAL, crdi_fmi_status,                                          \
      (void* c, crdi_fmi_ref dependent, size_t* dependent_elements, crdi_fmi_ref* independents,    \
       size_t* independent_elements, crdi_fmi3_dependency* kinds, size_t n))                       \
    X(GetFMUState, OPTIONAL, crdi_fmi_status, (void* c, void** state))                             \
    X(SetFMUState, OPTIONAL, crdi_fmi_status, (void* c, void* state))                              \
    X(FreeFMUState, OPTIONAL, crdi_fmi_status, (void* c, void** state))                            \
    X(SerializedFMUStateSize, OPTIONAL, crdi_fmi_status, (void* c, void* state, size_t* size))     \
    X(SerializeFMUState, OPTIONAL, crdi_fmi_status,                                                \
      (void* c, void* state, uint8_t* bytes, size_t size))                                         \
    X(DeserializeFMUState, OPTIONAL, crdi_fmi_status,                                              \
      (void* c, const uint8_t* bytes, size_t size, void** state))                                  \
    X(GetDirectionalDerivative, OPTIONAL, crdi_fmi_status,                                         \
      (void* c, const crdi_fmi_ref* unknowns, size_t nu, const crdi_fmi_ref* knowns, size_t nk,    \
       const double* seed, size_t n_seed, double* sensitivity, size_t n_sensitivity))              \
    X(GetAdjointDerivative, OPTIONAL, crdi_fmi_status,                                             \
      (void* c, const crdi_fmi_ref* unknowns, size_t nu, const crdi_fmi_ref* knowns, size_t nk,    \
       const double* seed, size_t n_seed, double* sensitivity, size_t n_sensitivity))              \
    X(EnterConfigurationMode, OPTIONAL, crdi_fmi_status, (void* c))                                \
    X(ExitConfigurationMode, OPTIONAL, crdi_fmi_status, (void* c))                                 \
    X(GetIntervalDecimal, OPTIONAL, crdi_fmi_status,                                               \
      (void* c, const crdi_fmi_ref* refs, size_t n, double* intervals,                             \
       crdi_fmi3_interval* qualifiers))                                                            \
    X(GetIntervalFraction, OPTIONAL, crdi_fmi_status,                                              \
      (void* c, const crdi_fmi_ref* refs, size_t n, uint64_t* counters, uint64_t* resolutions,     \
       crdi_fmi3_interval* qualifiers))                                                            \
    X(GetShiftDecimal, OPTIONAL, crdi_fmi_status,                                                  \
      (void* c, const crdi_fmi_ref* refs, size_t n, double* shifts))                               \
    X(GetShiftFraction, OPTIONAL, crdi_fmi_status,                                                 \
      (void* c, const crdi_fmi_ref* refs, size_t n, uint64_t* counters, uint64_t* resolutions))    \
    X(SetIntervalDecimal, OPTIONAL, crdi_fmi_status,                                               \
      (void* c, const crdi_fmi_ref* refs, size_t n, const double* intervals))                      \
    X(SetIntervalFraction, OPTIONAL, crdi_fmi_status,                                              \
      (void* c, const crdi_fmi_ref* refs, size_t n, const uint64_t* counters,                      \
       const uint64_t* resolutions))                                                               \
    X(SetShiftDecimal, OPTIONAL, crdi_fmi_status,                                                  \
      (void* c, const crdi_fmi_ref* refs, size_t n, const double* shifts))                         \
    X(SetShiftFraction, OPTIONAL, crdi_fmi_status,                                                 \
      (void* c, const crdi_fmi_ref* refs, size_t n, const uint64_t* counters,                      \
       const uint64_t* resolutions))                                                               \
    X(EvaluateDiscreteStates, OPTIONAL, crdi_fmi_status, (void* c))                                \
    X(UpdateDiscreteStates, ME, crdi_fmi_status,                                                   \
      (void* c, bool* again, bool* terminate, bool* nominals_changed, bool* values_changed,        \
       bool* has_next_event, double* next_event))                                                  \
    X(EnterStepMode, OPTIONAL, crdi_fmi_status, (void* c))                                         \
    X(GetOutputDerivatives, OPTIONAL, crdi_fmi_status,                                             \
      (void* c, const crdi_fmi_ref* refs, size_t n, const int32_t* orders, double* values,         \
       size_t nv))                                                                                 \
    X(EnterContinuousTimeMode, ME, crdi_fmi_status, (void* c))                                     \
    X(CompletedIntegratorStep, OPTIONAL, crdi_fmi_status,                                          \
      (void* c, bool no_rollback, bool* enter_event_mode, bool* terminate))                        \
    X(SetTime, ME, crdi_fmi_status, (void* c, double t))                                           \
    X(SetContinuousStates, ME, crdi_fmi_status, (void* c, const double* x, size_t nx))             \
    X(GetContinuousStateDerivatives, ME, crdi_fmi_status, (void* c, double* dx, size_t nx))        \
    X(GetEventIndicators, OPTIONAL, crdi_fmi_status, (void* c, double* z, size_t nz))              \
    X(GetContinuousStates, ME, crdi_fmi_status, (void* c, double* x, size_t nx))                   \
    X(GetNominalsOfContinuousStates, OPTIONAL, crdi_fmi_status, (void* c, double* x, size_t nx))   \
    X(GetNumberOfEventIndicators, OPTIONAL, crdi_fmi_status, (void* c, size_t* nz))                \
    X(GetNumberOfContinuousStates, OPTIONAL, crdi_fmi_status, (void* c, size_t* nx))               \
    X(ActivateModelPartition, OPTIONAL, crdi_fmi_status, (void* c, crdi_fmi_ref clock, double t))
