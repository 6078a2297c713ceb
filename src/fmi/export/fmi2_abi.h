/// The binary interface of FMI 2.0 as an FMU offers it: types, codes and functions, in our own
/// words. Names and layouts are the standard's, or nobody could call us.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FMI2_EXPORT __attribute__((visibility("default")))
#else
#define FMI2_EXPORT
#endif

typedef void* fmi2Component;
typedef void* fmi2FMUstate;
typedef int fmi2Boolean;

typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum {
    fmi2DoStepStatus,
    fmi2PendingStatus,
    fmi2LastSuccessfulTime,
    fmi2Terminated
} fmi2StatusKind;

typedef void (*fmi2CallbackLogger)(void* environment, const char* instanceName, fmi2Status status,
                                   const char* category, const char* message, ...);

typedef struct {
    fmi2CallbackLogger logger;
    void* (*allocateMemory)(size_t count, size_t size);
    void (*freeMemory)(void* p);
    void (*stepFinished)(void* environment, fmi2Status status);
    void* componentEnvironment;
} fmi2CallbackFunctions;

typedef struct {
    fmi2Boolean newDiscreteStatesNeeded;
    fmi2Boolean terminateSimulation;
    fmi2Boolean nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged;
    fmi2Boolean nextEventTimeDefined;
    double nextEventTime;
} fmi2EventInfo;

#define FMI2(name) FMI2_EXPORT fmi2Status name

FMI2_EXPORT const char* fmi2GetTypesPlatform(void);
FMI2_EXPORT const char* fmi2GetVersion(void);
FMI2_EXPORT fmi2Component fmi2Instantiate(const char* instanceName, fmi2Type fmuType,
                                          const char* fmuGUID, const char* fmuResourceLocation,
                                          const fmi2CallbackFunctions* functions,
                                          fmi2Boolean visible, fmi2Boolean loggingOn);
FMI2_EXPORT void fmi2FreeInstance(fmi2Component c);
FMI2(fmi2SetDebugLogging)
(fmi2Component c, fmi2Boolean loggingOn, size_t nCategories, const char* const categories[]);

FMI2(fmi2SetupExperiment)
(fmi2Component c, fmi2Boolean toleranceDefined, double tolerance, double startTime,
 fmi2Boolean stopTimeDefined, double stopTime);
FMI2(fmi2EnterInitializationMode)(fmi2Component c);
FMI2(fmi2ExitInitializationMode)(fmi2Component c);
FMI2(fmi2Terminate)(fmi2Component c);
FMI2(fmi2Reset)(fmi2Component c);

FMI2(fmi2GetReal)(fmi2Component c, const uint32_t vr[], size_t nvr, double value[]);
FMI2(fmi2GetInteger)(fmi2Component c, const uint32_t vr[], size_t nvr, int value[]);
FMI2(fmi2GetBoolean)(fmi2Component c, const uint32_t vr[], size_t nvr, fmi2Boolean value[]);
FMI2(fmi2GetString)(fmi2Component c, const uint32_t vr[], size_t nvr, const char* value[]);
FMI2(fmi2SetReal)(fmi2Component c, const uint32_t vr[], size_t nvr, const double value[]);
FMI2(fmi2SetInteger)(fmi2Component c, const uint32_t vr[], size_t nvr, const int value[]);
FMI2(fmi2SetBoolean)(fmi2Component c, const uint32_t vr[], size_t nvr, const fmi2Boolean value[]);
FMI2(fmi2SetString)(fmi2Component c, const uint32_t vr[], size_t nvr, const char* const value[]);

FMI2(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate* state);
FMI2(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state);
FMI2(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate* state);
FMI2(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t* size);
FMI2(fmi2SerializeFMUstate)(fmi2Component c, fmi2FMUstate state, char bytes[], size_t size);
FMI2(fmi2DeSerializeFMUstate)
(fmi2Component c, const char bytes[], size_t size, fmi2FMUstate* state);
FMI2(fmi2GetDirectionalDerivative)
(fmi2Component c, const uint32_t vUnknown_ref[], size_t nUnknown, const uint32_t vKnown_ref[],
 size_t nKnown, const double dvKnown[], double dvUnknown[]);

FMI2(fmi2SetRealInputDerivatives)
(fmi2Component c, const uint32_t vr[], size_t nvr, const int order[], const double value[]);
FMI2(fmi2GetRealOutputDerivatives)
(fmi2Component c, const uint32_t vr[], size_t nvr, const int order[], double value[]);
FMI2(fmi2DoStep)
(fmi2Component c, double currentCommunicationPoint, double communicationStepSize,
 fmi2Boolean noSetFMUStatePriorToCurrentPoint);
FMI2(fmi2CancelStep)(fmi2Component c);
FMI2(fmi2GetStatus)(fmi2Component c, fmi2StatusKind s, fmi2Status* value);
FMI2(fmi2GetRealStatus)(fmi2Component c, fmi2StatusKind s, double* value);
FMI2(fmi2GetIntegerStatus)(fmi2Component c, fmi2StatusKind s, int* value);
FMI2(fmi2GetBooleanStatus)(fmi2Component c, fmi2StatusKind s, fmi2Boolean* value);
FMI2(fmi2GetStringStatus)(fmi2Component c, fmi2StatusKind s, const char** value);

FMI2(fmi2EnterEventMode)(fmi2Component c);
FMI2(fmi2NewDiscreteStates)(fmi2Component c, fmi2EventInfo* info);
FMI2(fmi2EnterContinuousTimeMode)(fmi2Component c);
FMI2(fmi2CompletedIntegratorStep)
(fmi2Component c, fmi2Boolean noSetFMUStatePriorToCurrentPoint, fmi2Boolean* enterEventMode,
 fmi2Boolean* terminateSimulation);
FMI2(fmi2SetTime)(fmi2Component c, double time);
FMI2(fmi2SetContinuousStates)(fmi2Component c, const double x[], size_t nx);
FMI2(fmi2GetDerivatives)(fmi2Component c, double derivatives[], size_t nx);
FMI2(fmi2GetEventIndicators)(fmi2Component c, double indicators[], size_t ni);
FMI2(fmi2GetContinuousStates)(fmi2Component c, double x[], size_t nx);
FMI2(fmi2GetNominalsOfContinuousStates)(fmi2Component c, double nominals[], size_t nx);
