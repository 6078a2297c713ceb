/// What learning a cycle needs of a master: docs/how-to/cycles.md.
#pragma once
#include "cardan/master.h"
#include "shared/learn_cycle.h"

/// What the cycle of this master is, as far as it is known before the first run: its grid, the late
/// signals of its power bonds, what it is driven by, and the lines by which a later run is
/// recognised. `out` is cleared (its arena) by the caller in any case.
/// CRD_E_NOT_FOUND: no power bond, or none of its signals has a coupling. CRD_E_UNSUPPORTED: steps
/// that vary. CRD_E_RANGE: signals with different steps.
crd_status crdi_repeat_describe(crd_master* m, crdi_repeat* out);
