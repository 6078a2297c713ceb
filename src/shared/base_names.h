/// Words of FMI for the numbers of cardan/model.h, and the base units of a dimension. Not for
/// users.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

extern const char* const crdi_type_names[CRD_TYPE_COUNT];
extern const char* const crdi_causality_names[CRD_CAUSALITY_COUNT];
extern const char* const crdi_variability_names[CRD_VARIABILITY_COUNT];
extern const char* const crdi_initial_names[CRD_INITIAL_COUNT];

enum { CRDI_BASE_UNITS = 8 };
extern const char* const crdi_base_units[CRDI_BASE_UNITS]; ///< "kg", "m", ...
int8_t* crdi_exponent(crd_dimension* d, int i);            ///< of the i-th of them
