/// The binary interface of FMI 3.0 as an FMU offers it: types, codes and functions, in our own
/// words. Names and layouts are the standard's, or nobody could call us.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FMI3_EXPORT __attribute__((visibility("default")))
#else
#define FMI3_EXPORT
#endif

typedef void* fmi3Instance;
typedef void* fmi3FMUState;
typedef uint32_t fmi3ValueReference;

typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum {
    fmi3Independent,
    fmi3Constant,
    fmi3Fixed,
    fmi3Tunable,
    fmi3Discrete,
    fmi3Dependent
} fmi3DependencyKind;
typedef enum {
    fmi3IntervalNotYetKnown,
    fmi3IntervalUnchanged,
    fmi3IntervalChanged
} fmi3IntervalQualifier;

typedef void (*fmi3LogMessageCallback)(void* environment, fmi3Status status, const char* category,
                                       const char* message);
typedef void (*fmi3IntermediateUpdateCallback)(void* environment, double intermediateUpdateTime,
                                               bool intermediateVariableSetRequested,
                                               bool intermediateVariableGetAllowed,
                                               bool intermediateStepFinished, bool canReturnEarly,
                                               bool* earlyReturnRequested, double* earlyReturnTime);
typedef void (*fmi3ClockUpdateCallback)(void* environment);
typedef void (*fmi3LockPreemptionCallback)(void);
typedef void (*fmi3UnlockPreemptionCallback)(void);

#define FMI3(name) FMI3_EXPORT fmi3Status name

FMI3_EXPORT const char* fmi3GetVersion(void);
FMI3(fmi3SetDebugLogging)
(fmi3Instance c, bool loggingOn, size_t nCategories, const char* const categories[]);
FMI3_EXPORT fmi3Instance fmi3InstantiateModelExchange(const char* instanceName,
                                                      const char* instantiationToken,
                                                      const char* resourcePath, bool visible,
                                                      bool loggingOn, void* environment,
                                                      fmi3LogMessageCallback logMessage);
FMI3_EXPORT fmi3Instance fmi3InstantiateCoSimulation(
    const char* instanceName, const char* instantiationToken, const char* resourcePath,
    bool visible, bool loggingOn, bool eventModeUsed, bool earlyReturnAllowed,
    const fmi3ValueReference requiredIntermediateVariables[], size_t nRequiredIntermediateVariables,
    void* environment, fmi3LogMessageCallback logMessage,
    fmi3IntermediateUpdateCallback intermediateUpdate);
FMI3_EXPORT fmi3Instance fmi3InstantiateScheduledExecution(
    const char* instanceName, const char* instantiationToken, const char* resourcePath,
    bool visible, bool loggingOn, void* environment, fmi3LogMessageCallback logMessage,
    fmi3ClockUpdateCallback clockUpdate, fmi3LockPreemptionCallback lockPreemption,
    fmi3UnlockPreemptionCallback unlockPreemption);
FMI3_EXPORT void fmi3FreeInstance(fmi3Instance c);

FMI3(fmi3EnterInitializationMode)
(fmi3Instance c, bool toleranceDefined, double tolerance, double startTime, bool stopTimeDefined,
 double stopTime);
FMI3(fmi3ExitInitializationMode)(fmi3Instance c);
FMI3(fmi3EnterEventMode)(fmi3Instance c);
FMI3(fmi3Terminate)(fmi3Instance c);
FMI3(fmi3Reset)(fmi3Instance c);
FMI3(fmi3EnterConfigurationMode)(fmi3Instance c);
FMI3(fmi3ExitConfigurationMode)(fmi3Instance c);

#define FMI3_ACCESS(type, ctype)                                                                   \
    FMI3(fmi3Get##type)                                                                            \
    (fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, ctype values[], size_t nValues);   \
    FMI3(fmi3Set##type)                                                                            \
    (fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const ctype values[],              \
     size_t nValues);
FMI3_ACCESS(Float32, float)
FMI3_ACCESS(Float64, double)
FMI3_ACCESS(Int8, int8_t)
FMI3_ACCESS(UInt8, uint8_t)
FMI3_ACCESS(Int16, int16_t)
FMI3_ACCESS(UInt16, uint16_t)
FMI3_ACCESS(Int32, int32_t)
FMI3_ACCESS(UInt32, uint32_t)
FMI3_ACCESS(Int64, int64_t)
FMI3_ACCESS(UInt64, uint64_t)
FMI3_ACCESS(Boolean, bool)
#undef FMI3_ACCESS
FMI3(fmi3GetString)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const char* values[], size_t nValues);
FMI3(fmi3SetString)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const char* const values[],
 size_t nValues);
FMI3(fmi3GetBinary)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, size_t valueSizes[],
 const uint8_t* values[], size_t nValues);
FMI3(fmi3SetBinary)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const size_t valueSizes[],
 const uint8_t* const values[], size_t nValues);
FMI3(fmi3GetClock)(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, bool values[]);
FMI3(fmi3SetClock)(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const bool values[]);

FMI3(fmi3GetNumberOfVariableDependencies)(fmi3Instance c, fmi3ValueReference vr, size_t* n);
FMI3(fmi3GetVariableDependencies)
(fmi3Instance c, fmi3ValueReference dependent, size_t elementIndicesOfDependent[],
 fmi3ValueReference independents[], size_t elementIndicesOfIndependents[],
 fmi3DependencyKind dependencyKinds[], size_t nDependencies);

FMI3(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState* state);
FMI3(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state);
FMI3(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState* state);
FMI3(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t* size);
FMI3(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, uint8_t bytes[], size_t size);
FMI3(fmi3DeserializeFMUState)
(fmi3Instance c, const uint8_t bytes[], size_t size, fmi3FMUState* state);

FMI3(fmi3GetDirectionalDerivative)
(fmi3Instance c, const fmi3ValueReference unknowns[], size_t nUnknowns,
 const fmi3ValueReference knowns[], size_t nKnowns, const double seed[], size_t nSeed,
 double sensitivity[], size_t nSensitivity);
FMI3(fmi3GetAdjointDerivative)
(fmi3Instance c, const fmi3ValueReference unknowns[], size_t nUnknowns,
 const fmi3ValueReference knowns[], size_t nKnowns, const double seed[], size_t nSeed,
 double sensitivity[], size_t nSensitivity);

FMI3(fmi3GetIntervalDecimal)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, double intervals[],
 fmi3IntervalQualifier qualifiers[]);
FMI3(fmi3GetIntervalFraction)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, uint64_t counters[],
 uint64_t resolutions[], fmi3IntervalQualifier qualifiers[]);
FMI3(fmi3GetShiftDecimal)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, double shifts[]);
FMI3(fmi3GetShiftFraction)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, uint64_t counters[],
 uint64_t resolutions[]);
FMI3(fmi3SetIntervalDecimal)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const double intervals[]);
FMI3(fmi3SetIntervalFraction)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const uint64_t counters[],
 const uint64_t resolutions[]);
FMI3(fmi3SetShiftDecimal)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const double shifts[]);
FMI3(fmi3SetShiftFraction)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const uint64_t counters[],
 const uint64_t resolutions[]);

FMI3(fmi3EvaluateDiscreteStates)(fmi3Instance c);
FMI3(fmi3UpdateDiscreteStates)
(fmi3Instance c, bool* discreteStatesNeedUpdate, bool* terminateSimulation,
 bool* nominalsOfContinuousStatesChanged, bool* valuesOfContinuousStatesChanged,
 bool* nextEventTimeDefined, double* nextEventTime);

FMI3(fmi3EnterStepMode)(fmi3Instance c);
FMI3(fmi3GetOutputDerivatives)
(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, const int32_t orders[], double values[],
 size_t nValues);
FMI3(fmi3DoStep)
(fmi3Instance c, double currentCommunicationPoint, double communicationStepSize,
 bool noSetFMUStatePriorToCurrentPoint, bool* eventHandlingNeeded, bool* terminateSimulation,
 bool* earlyReturn, double* lastSuccessfulTime);

FMI3(fmi3EnterContinuousTimeMode)(fmi3Instance c);
FMI3(fmi3CompletedIntegratorStep)
(fmi3Instance c, bool noSetFMUStatePriorToCurrentPoint, bool* enterEventMode,
 bool* terminateSimulation);
FMI3(fmi3SetTime)(fmi3Instance c, double time);
FMI3(fmi3SetContinuousStates)(fmi3Instance c, const double x[], size_t nx);
FMI3(fmi3GetContinuousStateDerivatives)(fmi3Instance c, double derivatives[], size_t nx);
FMI3(fmi3GetEventIndicators)(fmi3Instance c, double indicators[], size_t ni);
FMI3(fmi3GetContinuousStates)(fmi3Instance c, double x[], size_t nx);
FMI3(fmi3GetNominalsOfContinuousStates)(fmi3Instance c, double nominals[], size_t nx);
FMI3(fmi3GetNumberOfEventIndicators)(fmi3Instance c, size_t* n);
FMI3(fmi3GetNumberOfContinuousStates)(fmi3Instance c, size_t* n);
FMI3(fmi3ActivateModelPartition)
(fmi3Instance c, fmi3ValueReference clockReference, double activationTime);
