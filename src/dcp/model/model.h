// A remote slave as a model, between its files: model_pack.c has the table of bytes, model.c makes
// the rows of the model, model_run.c is an instance.
#pragma once
#include "shared/base.h"
#include "shared/dcp.h"
#include "shared/dcp_model.h"

/// What the table says beside the description.
typedef struct crdi_dcp_model_setup {
    const char *name, *address;
    uint8_t mode; // crd_dcp_op_mode
    uint32_t numerator, denominator;
    double step; // of the default experiment
} crdi_dcp_model_setup;

typedef struct crdi_dcp_session crdi_dcp_session;

/// Head of the bytes of an instance; the values follow.
typedef struct crdi_dcp_model_self {
    crdi_dcp_session* session; // kept; NULL: none is up
    int64_t mode;              // of dcp.mode, from 1
    char address[CRDI_DCP_MODEL_ADDRESS];
} crdi_dcp_model_self;

typedef struct crdi_dcp_model {
    crd_model base;
    crd_context* ctx;
    bool owns_context;
    crd_arena arena;
    crd_dcp_description* d;
    crdi_dcp_model_setup setup;
    crd_dcp_op_mode modes[2]; // of the items of dcp.mode
    int* rows;                // of the variables (variable_count), -1: a structural parameter
    size_t mirror;            // where the values of parameters stand that the slave has, behind all
} crdi_dcp_model;

/// The table, written and read by the same walk. `*d` belongs to the caller.
crd_status crdi_dcp_table_write(const crd_dcp_description* d, const crdi_dcp_model_setup* s,
                                crd_text* out);
crd_status crdi_dcp_table_read(crd_context* ctx, const void* bytes, size_t length, const char* file,
                               crd_arena* arena, crdi_dcp_model_setup* s, crd_dcp_description** d);

crd_model_status crdi_dcp_model_initialize(void* self, const crd_model_host* host, double t);
void crdi_dcp_model_outputs(void* self, double t);
crd_model_status crdi_dcp_model_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached);
crd_model_status crdi_dcp_model_terminate(void* self, const crd_model_host* host);
void crdi_dcp_model_clear(void* self);
