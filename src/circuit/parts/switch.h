// What moves between steps.
#pragma once
#include "circuit/circuit.h"

struct crdi_dae;

// How far the control of a switch is beyond its two thresholds.
void crdi_switch_excess(const crd_circuit* c, int32_t part, double excess[2]);
void crdi_dae_switches_begin(struct crdi_dae* d); // those that say where they stand
