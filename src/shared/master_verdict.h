/// What a run came to, without advice, and as one sentence where it came to nothing good.
#pragma once
#include "cardan/master.h"

/// crd_master_get_report without its advice, which takes longer than many steps.
const crd_master_report* crdi_master_get_numbers(crd_master* m);
/// By the report that was asked for last: CRD_E_LIMIT with what the guard says of a run that
/// diverged or passed a limit, or with what its coupling or its units' solvers have spoilt: `cardan
/// run` ends with exit code 3, a study has no good run then.
crd_status crdi_check_guard(crd_context* ctx, const crd_master* m);
