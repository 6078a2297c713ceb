// Words of FMI for what cardan/model.h numbers, and the base units of a dimension.
#include "shared/base_names.h"

const char* const crdi_type_names[CRD_TYPE_COUNT] = {
    [CRD_FLOAT64] = "Float64", [CRD_FLOAT32] = "Float32", [CRD_INT8] = "Int8",
    [CRD_UINT8] = "UInt8",     [CRD_INT16] = "Int16",     [CRD_UINT16] = "UInt16",
    [CRD_INT32] = "Int32",     [CRD_UINT32] = "UInt32",   [CRD_INT64] = "Int64",
    [CRD_UINT64] = "UInt64",   [CRD_BOOLEAN] = "Boolean", [CRD_ENUMERATION] = "Enumeration",
    [CRD_STRING] = "String",   [CRD_BINARY] = "Binary",   [CRD_CLOCK] = "Clock",
};

const char* const crdi_causality_names[CRD_CAUSALITY_COUNT] = {
    [CRD_LOCAL] = "local",
    [CRD_INPUT] = "input",
    [CRD_OUTPUT] = "output",
    [CRD_PARAMETER] = "parameter",
    [CRD_CALCULATED_PARAMETER] = "calculatedParameter",
    [CRD_STRUCTURAL_PARAMETER] = "structuralParameter",
    [CRD_INDEPENDENT] = "independent",
};

const char* const crdi_variability_names[CRD_VARIABILITY_COUNT] = {
    [CRD_CONTINUOUS] = "continuous", [CRD_DISCRETE] = "discrete", [CRD_TUNABLE] = "tunable",
    [CRD_FIXED] = "fixed",           [CRD_CONSTANT] = "constant",
};

const char* const crdi_initial_names[CRD_INITIAL_COUNT] = {
    [CRD_EXACT] = "exact", [CRD_APPROX] = "approx", [CRD_CALCULATED] = "calculated"};

const char* const crdi_base_units[CRDI_BASE_UNITS] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};

int8_t* crdi_exponent(crd_dimension* d, int i)
{
    int8_t* const of[CRDI_BASE_UNITS] = {&d->kg, &d->m,   &d->s,  &d->A,
                                         &d->K,  &d->mol, &d->cd, &d->rad};
    return of[i];
}
