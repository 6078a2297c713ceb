/// The binary interface of FMI 3.0 as an FMU offers it: types and codes, in our own words; its
/// functions stand in fmi3.c and fmi_both.h. Names and layouts are the standard's, or nobody could
/// call us.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
