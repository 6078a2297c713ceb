// What the forms of a circuit share. A form is a table of functions: src/circuit/dae*.c has the
// reference form (Rodriguez 2021), src/circuit/nodal*.c the fast one.
#pragma once
#include "cardan/circuit.h"

typedef struct crdi_form crdi_form;

struct crd_circuit {
    crd_context* ctx;
    const crd_netlist* n;
    crd_circuit_options opt;
    const crdi_form* form;
    void* self;     // of the form
    double* inputs; // (input_count) as set from outside, .start before
    double* uses;   // room for the values that one expression uses
    double t0;      // of begin
    int64_t steps;  // since begin
    int iterations; // of the last step
    bool begun;
};

// Currents are positive from nodes[0] through the part to nodes[1], sources included (as in SPICE).
// The form reads c->n, c->opt, c->inputs, c->t0, c->steps; circuit.c keeps them.
struct crdi_form {
    const char* name;
    // Why it cannot do this netlist with these options (one sentence in the context, status
    // CRD_E_UNSUPPORTED), or what create returns. On failure create leaves nothing behind.
    crd_status (*create)(crd_circuit* c, void** self);
    void (*destroy)(crd_circuit* c, void* self);                         // self may be NULL
    void (*structure)(const crd_circuit* c, crd_circuit_structure* out); // zeroed before
    crd_status (*begin)(crd_circuit* c, double t);
    // From crdi_circuit_time(c, 0) to crdi_circuit_time(c, 1); sets c->iterations. On failure the
    // state is what it was.
    crd_status (*step)(crd_circuit* c);
    double (*voltage)(const crd_circuit* c, int32_t node);
    double (*current)(const crd_circuit* c, int32_t part);
    size_t (*state_size)(const crd_circuit* c); // bytes, multiple of 8
    void (*save)(const crd_circuit* c, void* state);
    void (*restore)(crd_circuit* c, const void* state);
};

extern const crdi_form crdi_form_dae;

// Time of the step after `ahead` more steps; from the count, a sum would drift.
static inline double crdi_circuit_time(const crd_circuit* c, int ahead)
{
    return c->t0 + (double)(c->steps + ahead) * c->opt.step;
}
static inline const char* crdi_part_name(const crd_netlist* n, int32_t part)
{
    return n->names + n->parts[part].name;
}
// Value and derivatives of an expression at the form's present voltages and currents.
// `gradient` may be NULL.
double crdi_circuit_expression(const crd_circuit* c, const crd_expression* e, double t,
                               double* gradient);

// topology.c: values, references, floating nodes, loops of voltage sources, cutsets of current
// sources.
crd_status crdi_circuit_check(crd_context* ctx, const crd_netlist* n);
