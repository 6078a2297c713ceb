/// More of the editor of descriptions (cardan/system.h): for the page that draws connections.
#pragma once
#include "cardan/system.h"

/// Another value of a key: "results" (of a mapping its `file`), "run.step" ... In its place, else
/// behind its siblings. CRD_E_UNSUPPORTED: it is not written as one value in one line.
crd_status crdi_system_text_set(crd_context* ctx, const char* text, size_t length, const char* path,
                                const char* key, const char* value, crd_text* out);
