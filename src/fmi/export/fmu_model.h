/// Which model an FMU is: one generated file says it, the runtime asks.
#pragma once
#include "cardan/model.h"

#if defined(__GNUC__)
#define FMU_HIDDEN __attribute__((visibility("hidden"))) // two FMUs in a process are not mixed up
#else
#define FMU_HIDDEN
#endif

#ifdef FMU_OPENS_MODELS
/// The model is made from the FMU's resources, for each instance. NULL with a sentence in `message`
/// (room bytes) if they are not what they should be.
FMU_HIDDEN const crd_model* fmu_model_open(const char* resources, char* message, size_t room);
FMU_HIDDEN void fmu_model_close(const crd_model* model);
#else
extern FMU_HIDDEN const crd_model* const fmu_model;
#define fmu_model_open(resources, message, room) (fmu_model)
#define fmu_model_close(model) ((void)(model))
#endif

/// What the FMU offers. FMU_AUTO: Co-Simulation, and Model Exchange if the model has derivatives.
enum { FMU_AUTO, FMU_COSIMULATION, FMU_EXCHANGE, FMU_BOTH };
extern FMU_HIDDEN const int fmu_interfaces;

static inline bool fmu_model_offers(const crd_model* model, int interfaces, int which)
{
    return interfaces ? (interfaces & which) != 0
                      : which == FMU_COSIMULATION || model->derivatives != NULL;
}

#define fmu_offers(model, which) fmu_model_offers(model, fmu_interfaces, which)
