// Expressions that are evaluated in every step, through a table where one is safe.
//
// Often all unknowns that an expression uses meet in one number, the neck: a mean temperature, a
// voltage between two nodes. What comes after it is a function of that number alone as long as the
// inputs stay, and is tabulated, cell by cell (32 cells per octave), as the polynomial through
// Chebyshev nodes. A cell is served by its polynomial only if interval arithmetic shows that no
// branch changes and nothing singular lies in it, and if the polynomial is as exact as the
// expression itself but for a few roundings; else by the expression. A cell depends on the inputs
// and on where it lies, not on the way that led there: a state that is restored goes on as before.
#pragma once
#include "circuit/expression.h"

typedef struct crdi_law crdi_law;

// In the memory of `a`. *out is NULL: there is no neck, or behind it not enough to save.
crd_status crdi_law_create(crd_arena* a, const crd_expression* e, crdi_law** out);

// How many numbers remember for how long the inputs have stayed; all 0: not at all.
size_t crdi_law_numbers(const crdi_law* l);

// As crd_expression_eval; `memory`: those numbers.
double crdi_law_eval(crdi_law* l, const double* x, double* gradient, double* memory);
