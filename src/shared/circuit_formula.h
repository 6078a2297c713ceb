/// The expressions of netlists for others: arithmetic over named numbers.
#pragma once
#include "shared/base.h"

typedef struct crdi_formula crdi_formula; ///< opaque
/// `names` (count) are what it may use, borrowed for the call. Messages start with `file`:`line`.
crd_status crdi_formula_create(crd_context* ctx, const char* text, const char* file, int line,
                               const char* const* names, int count, crdi_formula** out);
/// Of the names' numbers, in their order; one thread at a time.
double crdi_formula_value(crdi_formula* f, const double* numbers);
void crdi_formula_destroy(crdi_formula* f);
