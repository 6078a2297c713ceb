// A circuit as a model, between its files: model.c makes the rows, model_settings.c has the file
// that goes along with the netlist, model_run.c is an instance.
#pragma once
#include "shared/base.h"
#include "shared/circuit_model.h"
#include "shared/circuit_table.h"

typedef struct crdi_circuit_run crdi_circuit_run; // netlist and circuit of an instance

// Head of the bytes of an instance; the values follow.
typedef struct crdi_circuit_self {
    crdi_circuit_run* run; // kept; NULL: not initialised
    double step;
} crdi_circuit_self;

typedef struct crdi_circuit_model {
    crd_model base;
    crd_context* ctx;
    bool owns_context;
    crd_arena arena;
    crd_circuit_method method;
    const char *text, *file; // the netlist
    size_t length;
    crd_netlist* netlist; // with the start values of the parameters
    const char** names;   // of the parameters that can be set (parameter_count)
    double* starts;       // (parameter_count)
    int parameter_count;
    size_t parameters; // where their values stand in an instance, one behind the other
    size_t inputs;     // value and derivatives of each input
    size_t outputs;    // likewise
} crdi_circuit_model;

// model_settings.c; texts go into the arena
crd_status crdi_circuit_settings(crd_context* ctx, const char* text, size_t length,
                                 const char* file, crd_arena* arena,
                                 crdi_circuit_model_options* out);

// model_run.c
crd_model_status crdi_circuit_model_initialize(void* self, const crd_model_host* host, double t);
void crdi_circuit_model_outputs(void* self, double t);
crd_model_status crdi_circuit_model_step(void* self, const crd_model_host* host, double t, double h,
                                         double* reached);
void crdi_circuit_model_clear(void* self);
size_t crdi_circuit_model_outside(const void* self);
void crdi_circuit_model_save(const void* self, void* state);
crd_model_status crdi_circuit_model_restore(void* self, const crd_model_host* host,
                                            const void* state, size_t size);
