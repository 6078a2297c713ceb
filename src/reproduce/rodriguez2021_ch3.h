// What the two files of Rodriguez (2021), chapter 3, share: rows, and the times.
#pragma once
#include "reproduce/circuits.h"
#include "reproduce/reproduce.h"

/// The form for speed can do this circuit with these options.
bool crdi_ch3_has_nodal(const crdi_bench* b, const crd_circuit_options* opt);

/// Tables 3.9, 3.12, 3.13, 3.16, 3.19 and Figs. 3.11 and 3.13, measured here and now.
crd_status crdi_ch3_times(crdi_reproduction* r);
