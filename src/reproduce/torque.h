// A synthetic shaft torque of an acceleration with a gear shift at 3.2 s, in the manner of the one
// that Baumann 2024 measured: its sizes were chosen so that hold, FOH and EROS err as they do
// there. 12 s at macro steps of 10 ms.
#pragma once
#include <stdbool.h>

enum { CRDI_TORQUE_SAMPLES = 1200, CRDI_TORQUE_K = 6 };
#define CRDI_TORQUE_STEP 0.01

/// y (CRDI_TORQUE_SAMPLES) in Nm; `hard`: the shift is a jump, else it is filtered; `noise`: with
/// 0.3 Nm of it, always the same.
void crdi_torque(double* y, bool hard, bool noise);
