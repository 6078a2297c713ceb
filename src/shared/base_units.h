/// The table of units of measure. Not for users.
#pragma once
#include <stdbool.h>

/// Names of units that crd_dimension_parse knows, NULL behind the last; whether they take prefixes.
const char* crdi_unit_symbol(int i, bool* prefixed);

/// value in `to` = factor * value in `from` + offset; a unit that is not said ("") is any. false:
/// they do not go together, or one of two different ones is not known.
bool crdi_unit_convert(const char* from, const char* to, double* factor, double* offset);
