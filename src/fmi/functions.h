// The functions of an FMU's library: their numbers, their names, and pointers to them.
#pragma once
#include "cardan/fmi.h"
#include "fmi/abi.h"

#define CRDI_FMI2_ID(name, need, result, arguments) CRDI_FMI2_##name,
typedef enum crdi_fmi2_function { CRDI_FMI2_LIST(CRDI_FMI2_ID) CRDI_FMI2_COUNT } crdi_fmi2_function;
#undef CRDI_FMI2_ID

#define CRDI_FMI3_ID(name, need, result, arguments) CRDI_FMI3_##name,
typedef enum crdi_fmi3_function { CRDI_FMI3_LIST(CRDI_FMI3_ID) CRDI_FMI3_COUNT } crdi_fmi3_function;
#undef CRDI_FMI3_ID

// What both versions call in every step has one number.
enum {
    CRDI_FMI_DO_STEP = 0,
    CRDI_FMI_SET_REAL = 1,
    CRDI_FMI_GET_REAL = 2,
    CRDI_FMI_NO_FUNCTION = 255,
    CRDI_FMI_LOADING = 253, // its constructors run
    CRDI_FMI_UNLOADING = 254,
};
#define CRDI_FMI_SAME(two, three, id)                                                              \
    _Static_assert((int)CRDI_FMI2_##two == (int)(id) && (int)CRDI_FMI3_##three == (int)(id),       \
                   #two " must stand at the same place in both lists")
CRDI_FMI_SAME(DoStep, DoStep, CRDI_FMI_DO_STEP);
CRDI_FMI_SAME(SetReal, SetFloat64, CRDI_FMI_SET_REAL);
CRDI_FMI_SAME(GetReal, GetFloat64, CRDI_FMI_GET_REAL);
#undef CRDI_FMI_SAME

// A set of functions, one bit each.
enum { CRDI_FMI_WORDS = 2 };
_Static_assert(CRDI_FMI2_COUNT <= 64 * CRDI_FMI_WORDS && CRDI_FMI3_COUNT <= 64 * CRDI_FMI_WORDS,
               "the set is too small");

#define CRDI_FMI_POINTER(name, need, result, arguments) result(*name) arguments;
typedef struct crdi_fmi2_functions {
    CRDI_FMI2_LIST(CRDI_FMI_POINTER)
} crdi_fmi2_functions;
typedef struct crdi_fmi3_functions {
    CRDI_FMI3_LIST(CRDI_FMI_POINTER)
} crdi_fmi3_functions;
#undef CRDI_FMI_POINTER

// NULL pointers are functions that the library does not have.
typedef union crdi_fmi_functions {
    crdi_fmi2_functions two; // of FMI 1, too
    crdi_fmi3_functions three;
} crdi_fmi_functions;

int crdi_fmi_function_count(crd_fmi_version version);
// "fmi2DoStep"; names of FMI 1 differ between Co-Simulation and Model Exchange (`exchange`)
const char* crdi_fmi_function_name(crd_fmi_version version, bool exchange, int function);

// Looks all functions up; those of FMI 1 carry the model identifier. `present` gets the set of
// those there are. CRD_E_FORMAT: one is missing that an importer for Co-Simulation, or for Model
// Exchange, must have; the text names it and `path`.
crd_status crdi_fmi_functions_load(crd_context* ctx, void* library, const char* path,
                                   const char* identifier, crd_fmi_version version, bool exchange,
                                   crdi_fmi_functions* out, uint64_t present[CRDI_FMI_WORDS]);
