/// What modules share of the coupling elements beside cardan/coupling.h.
#pragma once
#include "cardan/coupling.h"
#include "shared/base.h"

/// An element that stands within a larger description; `root` outlives it.
crd_status crdi_element_read(crd_context* ctx, const crdi_json* root, const char* file,
                             crd_element** out);
