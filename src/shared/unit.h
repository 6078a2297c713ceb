/// What modules share of unit. Not for users.
#pragma once
#include "cardan/unit.h"
#include "shared/base.h"

/// One element of a variable as a setting would write it, into the result of its kind. Not for
/// texts and binaries. The sentence about a failure is in the unit's context.
crd_status crdi_unit_parse_one(crd_unit* u, int32_t variable, const char* text, double* real,
                               int64_t* integer);

/// The unit wants the end of the run; for adapters.
void crdi_unit_wish_stop(crd_unit* u);
