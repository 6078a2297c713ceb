/// A circuit as one C file for controllers: the reference form (Rodriguez 2021, ch. 3) with a fixed
/// step, its tables and factors worked out, and how many operations a step takes at most.
#pragma once
#include "cardan/circuit.h"

typedef struct crdi_emit_cost { // of one step, at most
    int64_t sums;               // additions, subtractions, products, comparisons
    int64_t divisions;          // and roots
    int64_t functions;          // exp, sin, pow ...
} crdi_emit_cost;

typedef struct crdi_emit_report {
    crdi_emit_cost cost, once; // once: an iteration of Newton's method, or the solution
    int iterations;            // at most, of each solution
    size_t state, tables;      // bytes, alignment aside
    int outputs;
} crdi_emit_report;

typedef struct crdi_emit_options {
    const char* name;   // a name of C
    const char* origin; // for the comment at the top
    bool single;        // matrix, factors and solutions are float; what adds up stays double
} crdi_emit_options;

/// `c` is of the form CRD_FORM_DAE, has begun and has not stepped; it is as it was afterwards.
/// CRD_E_UNSUPPORTED: the method has stages, or carries derivatives.
crd_status crdi_circuit_emit(crd_circuit* c, const crdi_emit_options* opt, crd_text* source,
                             crd_text* header, crdi_emit_report* report);
