// The papers: each adds its claims and figures.
#pragma once
#include "reproduce/reproduce.h"

crd_status crdi_reproduce_baumann2024(crd_reproduction* r);
crd_status crdi_reproduce_baumann2020(crd_reproduction* r);
