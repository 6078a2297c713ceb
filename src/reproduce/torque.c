#include "reproduce/torque.h"

#include <math.h>
#include <stdint.h>

static double next_uniform(uint32_t* x)
{
    *x = 1664525u * *x + 1013904223u;
    return *x / 4294967296.0;
}

// Nearly Gaussian, sigma = 1.
static double next_normal(uint32_t* x)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += next_uniform(x);
    }
    return sum;
}

void crdi_torque(double* y, bool hard, bool noise)
{
    uint32_t seed = 12345;
    for (int n = 0; n < CRDI_TORQUE_SAMPLES; n++) {
        const double t = 0.01 * n, bump = (t - 6) / 1.2;
        const double filtered = (tanh((t - 3.2) / 0.04) - tanh((t - 3.6) / 0.04)) / 2;
        const double shift = hard ? n >= 320 && n < 360 : filtered;
        const double slow = 100 * (1 - exp(-t / 0.7)) + 8 * sin(1.3 * t) + 6 * sin(3.1 * t + 0.5) +
                            12 * sin(6.7 * t + 1.1) + 20 * sin(9.7 * t + 2);
        const double driveline =
            4 * sin(34 * t + 0.3) + 2.5 * sin(45 * t + 1.7) + 1.5 * sin(53 * t + 0.9);
        y[n] = slow + 1.6 * (0.35 + exp(-bump * bump)) * driveline - 110 * shift;
        if (noise) { y[n] += 0.3 * next_normal(&seed); }
    }
}
