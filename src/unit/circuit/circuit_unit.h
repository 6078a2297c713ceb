// The inside of the circuit adapter: a netlist as a unit.
#pragma once
#include "cardan/circuit.h"
#include "shared/base.h"
#include "unit/unit.h"

enum { CRDI_CIRCUIT_INSTANTIATED, CRDI_CIRCUIT_INITIALIZATION, CRDI_CIRCUIT_STEP };
enum { CRDI_CIRCUIT_ORDER = 2 }; // derivatives of inputs that are taken

// An input as a polynomial: u + d[0] tau + d[1] tau^2 / 2 from the beginning of the next step.
typedef struct crdi_circuit_curve {
    double u, d[CRDI_CIRCUIT_ORDER];
} crdi_circuit_curve;

typedef struct crdi_circuit_unit {
    crd_unit base;
    crd_netlist* netlist;
    crd_circuit* circuit;
    crd_circuit_options opt;
    double longest; // inner step, s; 0: the communication step
    double past;    // the part of one that the input of the one before decides
    int points;     // how many of their ends make the derivative of an output
    double macro;   // the communication step for which `inner` was worked out
    int64_t inner;  // steps in it
    double time;
    uint8_t phase;
    bool dirty; // something was set since the beginning was worked out
    const char* call;
    // The description: variables are parameters, inputs, outputs in this order
    crd_arena arena;
    crd_map names;
    int parameters, inputs, outputs;
    double *values, *loaded;    // of parameters: as they are wanted, and of u->netlist
    crdi_circuit_curve* curves; // of inputs
    crd_dependencies direct, initial;
} crdi_circuit_unit;

// describe.c: variables and dependencies, from u->netlist
crd_status crdi_circuit_describe(crdi_circuit_unit* u);

// feedthrough.c: which inputs act on which outputs without delay; rows are outputs, columns inputs.
// `direct` (outputs x inputs) gets true where it may be so.
crd_status crdi_circuit_feedthrough(crd_context* ctx, const crd_netlist* n, bool* direct);

// linearise.c: fills in what crd_unit_linearise gives; inputs and outputs are counted in `l`, and
// the caller clears it after a failure too.
crd_status crdi_circuit_linearise(crd_unit* unit, const crd_unit_port* inputs,
                                  const crd_unit_port* outputs, crd_linearised* l);
