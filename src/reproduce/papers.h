// The papers: each adds its claims and figures.
#pragma once
#include "reproduce/reproduce.h"

crd_status crdi_reproduce_baumann2024(crd_reproduction* r);
crd_status crdi_reproduce_baumann2020(crd_reproduction* r);
crd_status crdi_reproduce_glumac2023(crd_reproduction* r);
crd_status crdi_reproduce_rodriguez2021(crd_reproduction* r); // chapter 5
crd_status crdi_reproduce_rodriguez2021_ch3(crd_reproduction* r);
crd_status crdi_reproduce_rodriguez2021_ch4(crd_reproduction* r);
