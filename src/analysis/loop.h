// A loop prepared for evaluation at many s.
#pragma once
#include "analysis/analysis.h"
#include "shared/base.h"

typedef struct crdi_evaluator {
    const crd_loop* loop;
    double blend; // G -> 1 + blend (G - 1), to walk from the ideal loop to the real one
    // network: workspace
    crdi_complex *resolvent, *solved, *units, *units_by_s, *links, *links_by_s, *matrix, *by_s;
    int32_t* pivots;
} crdi_evaluator;

typedef struct crdi_value {
    crdi_complex L, slope; // L(s) and dL/ds
} crdi_value;

// Checks the loop and takes workspace from the arena.
crd_status crdi_evaluator_init(crd_context* ctx, crd_arena* arena, const crd_loop* loop,
                               crdi_evaluator* e);
// false at a pole of the open loop
bool crdi_evaluate(const crdi_evaluator* e, crdi_complex s, crdi_value* out);

// Poles of the open loop and of the closed one with ideal elements; arrays from the arena.
crd_status crdi_open_poles(crd_context* ctx, crd_arena* arena, const crd_loop* loop, int* count,
                           crdi_complex** out);
crd_status crdi_ideal_poles(crd_context* ctx, crd_arena* arena, const crd_loop* loop, int* count,
                            crdi_complex** out);

// Do all loops of a network pass through one link? Then det(I - links units) - 1 is the gain
// around.
crd_status crdi_one_loop(crd_arena* arena, const crd_plant* w, bool* out);
