// What the papers' files share: rows and figures are added to a reproduction.
#pragma once
#include "shared/reproduce.h"

/// `c->ok` is worked out here. Texts are copied.
crd_status crdi_claim_add(crdi_reproduction* r, const crdi_claim* c);
/// Names and values are copied.
crd_status crdi_figure_add(crdi_reproduction* r, const crdi_figure* f);
