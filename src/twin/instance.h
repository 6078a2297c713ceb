// A twin as a model, between its files: table.c makes the rows, instance.c is an instance.
#pragma once
#include "shared/circuit_table.h"
#include "shared/twin_model.h"

typedef struct crdi_twin_run crdi_twin_run; // the twin of an instance

// Head of the bytes of an instance; the values follow.
typedef struct crdi_twin_self {
    crdi_twin_run* run; // kept; NULL: not initialised
} crdi_twin_self;

typedef struct crdi_twin_model {
    crd_model base;
    crd_context* ctx;
    bool owns_context;
    crd_arena arena;
    crd_twin_description* d;
    const crd_netlist* netlist; // of d
    const crd_twin_spec* spec;  // of d
    size_t measured;            // value and derivatives of each sensor, one behind the other
    size_t inputs;              // likewise, those of the netlist
    size_t estimates;           // value and sd: outputs, sources, parameters
    size_t status;              // int32_t in the room of a double, per sensor
} crdi_twin_model;

// instance.c
crd_model_status crdi_twin_model_initialize(void* self, const crd_model_host* host, double t);
void crdi_twin_model_outputs(void* self, double t);
crd_model_status crdi_twin_model_step(void* self, const crd_model_host* host, double t, double h,
                                      double* reached);
void crdi_twin_model_clear(void* self);
size_t crdi_twin_model_outside(const void* self);
void crdi_twin_model_save(const void* self, void* state);
crd_model_status crdi_twin_model_restore(void* self, const crd_model_host* host, const void* state,
                                         size_t size);
