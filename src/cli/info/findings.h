// What check tells: all errors and warnings of a description, in the order of its lines.
#pragma once
#include "cli/info/info.h"
#include "shared/base_findings.h"

typedef struct crdi_remarks {
    crdi_cli* cli;
    crd_context* ctx; // failures are noted, warnings kept
    crdi_findings findings, warnings;
} crdi_remarks;

crd_status crdi_remarks_begin(crdi_remarks* t, crdi_cli* cli);
// On standard error, and as `findings` of the result. `path`: the file whose order counts.
void crdi_remarks_show(crdi_remarks* t, crd_status st, const char* path, crdi_result* out);
void crdi_remarks_end(crdi_remarks* t);
