/// The binary interface of FMI 2.0 as an FMU offers it: types and codes, in our own words; its
/// functions stand in fmi2.c and fmi_both.h. Names and layouts are the standard's, or nobody could
/// call us.
#pragma once
#include <stddef.h>
#include <stdint.h>

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
