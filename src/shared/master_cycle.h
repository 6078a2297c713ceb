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

/// What a run has of a cycle that was learned (run.learned).
typedef struct crdi_learned_use {
    const char* path;
    int signals;        ///< that are corrected
    double error;       ///< coupling error of this run, as it is learned; NaN: no sample has come
    double first, best; ///< of the file: without corrections, and the best
    int64_t limited;    ///< samples whose correction a limit has cut
    double until;       ///< s, when it was found not to be valid any more; NaN: it was not
} crdi_learned_use;
bool crdi_learning_use(const crd_master* m, crdi_learned_use* out); ///< false: it has none
