// Models that are made from a netlist, circuits and twins: the rows of their tables of variables,
// and what an instance does with its values. The functions are in src/circuit/table.c.
#pragma once
#include "cardan/model.h"
#include "shared/base.h"

enum { CRDI_MODEL_STRIDE = 1 + CRD_MODEL_MAX_ORDER }; // a value and its derivatives, in doubles

typedef struct crdi_model_table {
    crd_context* ctx;
    crd_arena* arena;
    const char* file; // for messages
    crd_model_variable* rows;
    int count;
    size_t used; // bytes of an instance
} crdi_model_table;

// Room for so many doubles in an instance: where.
size_t crdi_model_take(crdi_model_table* t, size_t doubles);
// A row; its name is the caller's, an empty unit is none.
void crdi_model_add(crdi_model_table* t, crd_model_variable row);
// A row of an input with its derivatives, which stand at `at`
crd_model_variable crdi_model_input(const char* name, const char* unit, double start, size_t at,
                                    const char* description);
// CRD_E_RANGE: two rows have one name, or one is called as the time; the ends of these sentences.
crd_status crdi_model_check_names(const crdi_model_table* t, const char* time, const char* twice);
// The units that rows have, into the model. `unknown`: also those without a dimension.
crd_status crdi_model_units(const crdi_model_table* t, bool unknown, crd_model* m);

static inline double* crdi_model_field(void* self, size_t offset)
{
    return (double*)(void*)((char*)self + offset);
}
// Input i of those that begin at `first`, tau behind the beginning of the step: a Taylor polynomial
static inline double crdi_model_input_at(void* self, size_t first, int i, double tau)
{
    const double* u = crdi_model_field(self, first) + (ptrdiff_t)i * CRDI_MODEL_STRIDE;
    return u[0] + tau * (u[1] + 0.5 * tau * u[2]);
}
// Says it to the host and returns the status.
crd_model_status crdi_model_refuse(const crd_model_host* host, crd_model_status status,
                                   const char* text);
// A sum over the bytes of a state (FNV-1a by words, shaken): what comes from a file may be torn.
uint64_t crdi_model_sum(uint64_t sum, const char* bytes, size_t size);
#define CRDI_MODEL_SUM 0xcbf29ce484222325u // to begin with
