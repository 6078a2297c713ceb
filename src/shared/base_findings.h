/// Failures that are noted so that reading can go on: what `cardan check` tells. Not for users.
#pragma once
#include "cardan/base.h"

typedef struct crdi_findings {
    crd_arena arena;
    const char** texts; ///< in the order in which they were found
    crd_status first;   ///< status of the first
    int count;
    size_t capacity;
} crdi_findings;

/// From now on `ctx` and the contexts made from it note. NULL: no more.
void crdi_findings_collect(crd_context* ctx, crdi_findings* f);
bool crdi_findings_wanted(const crd_context* ctx);
/// Where one thing can be wrong and the next still be read. A failure (not CRD_E_MEMORY) is noted
/// and CRD_OK comes back, if the context notes; else `st`. What was noted already is not noted
/// again.
crd_status crdi_go_on(crd_context* ctx, crd_status st);
/// The first one's status, with its sentence in the context; CRD_OK: none, or nobody notes.
crd_status crdi_findings_status(crd_context* ctx);
void crdi_findings_clear(crdi_findings* f);

/// The path of a unit whose description is wrong: it has a name, and nothing else is said of it.
extern const char crdi_unread_unit[];
