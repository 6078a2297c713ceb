/// Which model an FMU is: one generated file says it, the runtime asks.
#pragma once
#include "cardan/model.h"

#if defined(__GNUC__)
#define FMU_HIDDEN __attribute__((visibility("hidden"))) // two FMUs in a process are not mixed up
#else
#define FMU_HIDDEN
#endif

extern FMU_HIDDEN const crd_model* const fmu_model;
