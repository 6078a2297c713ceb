// The inside of the native adapter.
#pragma once
#include "shared/base.h"
#include "unit/unit.h"

enum { CRDI_NATIVE_INSTANTIATED, CRDI_NATIVE_INITIALIZATION, CRDI_NATIVE_STEP };

typedef struct crdi_native {
    crd_unit base;
    const crd_model* model;
    void (*release)(const crd_model* model); // at the end, if the model is its own; NULL
    char* self;                              // the model's bytes
    crd_model_ode ode;
    double time;
    double next_event; // the time event that the model asked for last
    uint8_t phase;
    bool dirty;     // something was set since the outputs were worked out
    bool moving;    // an input has a derivative that is not zero
    bool abandoned; // after a crash: nothing of the model is called again
    const char* call;
    crd_model_host host;
    crd_arena arena; // the description
    crd_map names;
    crd_dependencies outputs;
    char text[512]; // ": what the model said last about a failure"
} crdi_native;

// A unit of `kind`. On CRD_OK the model is the unit's own if there is `release`.
crd_status crdi_native_create(crd_context* ctx, const crd_unit_spec* spec, const crd_model* model,
                              const char* kind, void (*release)(const crd_model* model),
                              crd_unit** out);

// describe.c: the table as a unit's description
crd_status crdi_native_describe(crdi_native* u);
// values.c
crd_status crdi_native_set(crd_unit* u, const crd_binding* b, const crd_values* v);
crd_status crdi_native_get(crd_unit* u, const crd_binding* b, crd_values* v);

// Makes outputs belong to the inputs as they are now.
crd_status crdi_native_refresh(crdi_native* u);
