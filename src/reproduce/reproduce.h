// What the papers' files share: rows and figures are added to a reproduction.
#pragma once
#include "cardan/reproduce.h"

/// `c->ok` is worked out here. Texts are copied.
crd_status crdi_claim_add(crd_reproduction* r, const crd_claim* c);
/// Names and values are copied.
crd_status crdi_figure_add(crd_reproduction* r, const crd_figure* f);
