/// What a run came to, as one sentence where it came to nothing good.
#pragma once
#include "cardan/master.h"

/// CRD_E_LIMIT with what the guard says of a run that diverged or passed a limit, or with what the
/// coupling has spoilt: `cardan run` ends with exit code 3, a study has no good run then.
crd_status crdi_check_guard(crd_context* ctx, const crd_master_report* r);
