// The papers: each adds its claims and figures.
#pragma once
#include "reproduce/reproduce.h"

crd_status crdi_reproduce_baumann2024(crdi_reproduction* r);
crd_status crdi_reproduce_baumann2020(crdi_reproduction* r);
crd_status crdi_reproduce_glumac2023(crdi_reproduction* r);
crd_status crdi_reproduce_rodriguez2021(crdi_reproduction* r); // chapter 5
crd_status crdi_reproduce_rodriguez2021_ch3(crdi_reproduction* r);
crd_status crdi_reproduce_rodriguez2021_ch4(crdi_reproduction* r);
crd_status crdi_reproduce_rodriguez2021_ch6(crdi_reproduction* r);
crd_status crdi_reproduce_rautenberg2023(crdi_reproduction* r);
