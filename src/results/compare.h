// Which signals of several recordings belong together.
#pragma once
#include "cardan/results.h"

/// Whether a name matches one of the patterns; no patterns: true.
bool crdi_signal_wanted(const char* const* patterns, int count, const char* name);
/// Whether a pattern matches a column.
bool crdi_pattern_fits(const char* pattern, const crd_table* t);
/// The column of `other` that belongs to column i of t, -1: none. It has the same name, and where a
/// name occurs in several rasters, the second of them meets the second.
int crdi_signal_partner(const crd_table* t, int i, const crd_table* other);
