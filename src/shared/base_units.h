/// The table of units of measure. Not for users.
#pragma once
#include <stdbool.h>

/// Names of units that crd_dimension_parse knows, NULL behind the last; whether they take prefixes.
const char* crdi_unit_symbol(int i, bool* prefixed);
