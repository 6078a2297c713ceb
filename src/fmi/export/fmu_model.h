/// Which model an FMU is: one generated file says it, the runtime asks.
#pragma once
#include "cardan/model.h"

#if defined(__GNUC__)
#define FMU_HIDDEN __attribute__((visibility("hidden"))) // two FMUs in a process are not mixed up
#else
#define FMU_HIDDEN
#endif

extern FMU_HIDDEN const crd_model* const fmu_model;

/// What the FMU offers. FMU_AUTO: Co-Simulation, and Model Exchange if the model has derivatives.
enum { FMU_AUTO, FMU_COSIMULATION, FMU_EXCHANGE, FMU_BOTH };
extern FMU_HIDDEN const int fmu_interfaces;

#define fmu_offers(which)                                                                          \
    (fmu_interfaces ? (fmu_interfaces & (which)) != 0                                              \
                    : (which) == FMU_COSIMULATION || fmu_model->derivatives)
