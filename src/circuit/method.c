// Formulas of the methods that both forms use.
#include "circuit/circuit.h"

#include <math.h>

const double crdi_bdf_lead[4] = {0, 1, 3. / 2, 11. / 6};

// BDF of order k: the slope at the end of the polynomial through the new point and the k before, at
// their times: x1' = sum w_j x_j (Rodriguez 2021, 3.3; for unequal steps the derivative of
// Lagrange's polynomials at t1, w_j = -1/a_j prod a_i / (a_i - a_j), a_j = t1 - t_j, and w_0 = sum
// 1/a_j).
void crdi_bdf_weights(int order, double h, const double age[2], double w[4])
{
    static const double table[4][4] = {
        {0}, {1, -1}, {3. / 2, -2, 1. / 2}, {11. / 6, -3, 3. / 2, -1. / 3}};
    double ago[4] = {0, h};
    bool equal = true;
    for (int k = 2; k <= order; k++) {
        ago[k] = h + age[k - 2];
        equal = equal && fabs(ago[k] - k * h) <= 1e-9 * h;
    }
    for (int k = 0; k <= order; k++) {
        w[k] = table[order][k] / h;
    }
    if (equal) { return; }
    w[0] = 0;
    for (int k = 1; k <= order; k++) {
        w[0] += 1 / ago[k];
        w[k] = -1 / ago[k];
        for (int j = 1; j <= order; j++) {
            if (j != k) { w[k] *= ago[j] / (ago[j] - ago[k]); }
        }
    }
}

int crdi_start_steps(const crd_circuit_options* o, int order)
{
    return o->start == CRD_START_TR ? order : o->start == CRD_START_MINIMUM ? order - 1 : 0;
}

// g = 2 - sqrt(2): then TR over g h and BDF2 over the rest have the same matrix (Bank et al. 1985).
//     TR:   x_g' = w (x_g - x0) - x0',   w = 2 / (g h)
//     BDF2: x1' = w x1 - w / (g (2 - g)) x_g + w (1 - g)^2 / (g (2 - g)) x0
crdi_trbdf2 crdi_trbdf2_of(double h)
{
    const double g = 2 - sqrt(2), w = 2 / (g * h);
    return (crdi_trbdf2){g, w, -w / (g * (2 - g)), w * (1 - g) * (1 - g) / (g * (2 - g))};
}
