// The shapes of the signal generators: functions of time, without memory that matters.
#pragma once
#include "cardan/system.h"

typedef struct crdi_shape {
    const crd_signal_spec* spec; // borrowed
    double* phases;              // multisine (order)
    // Caches only: the value at a time never depends on what was asked before.
    uint64_t bit; // prbs: index of the bit that `reg` belongs to
    uint32_t reg; // prbs
    int row;      // table
    struct {
        int from, to; // behind row `from`, `to` is the first that breaks; their count: none does
    } ahead[2];       // table: without and with kinks
} crdi_shape;

// Checks the numbers of the spec; the message has no place.
crd_status crdi_shape_init(crd_context* ctx, const crd_signal_spec* spec, crdi_shape* out);
void crdi_shape_clear(crd_context* ctx, crdi_shape* s);

// Value (order 0) or time derivative from the right (order 1, 2) of the output at time t.
double crdi_shape_eval(crdi_shape* s, double t, int order);

// The first time after t at which value or slope jump, INFINITY: none. The value there is the one
// behind the jump. Points of a piecewise linear table count only if `kinks`: a dense one has them
// everywhere.
double crdi_shape_next(crdi_shape* s, double t, bool kinks);

// Galois register of length n: the state after `steps` steps from `state`, which is not 0.
// A step multiplies by x modulo a primitive polynomial, so that any number of steps is a power.
uint32_t crdi_prbs_jump(int n, uint32_t state, uint64_t steps);
