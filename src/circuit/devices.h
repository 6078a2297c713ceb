// Laws of semiconductor devices, the same for every form.
#pragma once
#include "cardan/circuit.h"

#include <math.h>

typedef struct crdi_value_slope {
    double value, slope;
} crdi_value_slope;

// Beyond this exponent the exponential goes on as a straight line: no iterate overflows.
static inline crdi_value_slope crdi_bounded_exp(double u)
{
    const double most = 200;
    const double e = exp(fmin(u, most));
    return (crdi_value_slope){u > most ? e * (1 + u - most) : e, e};
}

static inline crdi_value_slope crdi_diode_current(const crd_diode_model* m, double v)
{
    const double nvt = m->n * m->vt;
    const crdi_value_slope e = crdi_bounded_exp(v / nvt);
    crdi_value_slope i = {m->is * (e.value - 1) + m->gmin * v, m->is * e.slope / nvt + m->gmin};
    if (m->bv > 0) {
        const double ibv = m->ibv > 0 ? m->ibv : m->is;
        const crdi_value_slope r = crdi_bounded_exp(-(v + m->bv) / nvt);
        i.value -= ibv * r.value;
        i.slope += ibv * r.slope / nvt;
    }
    return i;
}

static inline bool crdi_diode_has_charge(const crd_diode_model* m)
{
    return m->cjo > 0 || m->tt > 0;
}

// Depletion charge with the usual straight line above half of vj, and tt times the current `i`.
static inline crdi_value_slope crdi_diode_charge(const crd_diode_model* m, double v,
                                                 crdi_value_slope i)
{
    crdi_value_slope q = {0, 0};
    if (m->cjo > 0) {
        const double fc = 0.5, edge = fc * m->vj, e = 1 - m->m;
        if (v < edge) {
            const double u = 1 - v / m->vj;
            q = (crdi_value_slope){-m->cjo * m->vj / e * expm1(e * log1p(-v / m->vj)),
                                   m->cjo * pow(u, -m->m)};
        } else {
            const double c = m->cjo * pow(1 - fc, -m->m), rise = c * m->m / (m->vj * (1 - fc));
            const double q0 = m->cjo * m->vj / e * (1 - pow(1 - fc, e));
            q = (crdi_value_slope){q0 + c * (v - edge) + 0.5 * rise * (v - edge) * (v - edge),
                                   c + rise * (v - edge)};
        }
    }
    return (crdi_value_slope){q.value + m->tt * i.value, q.slope + m->tt * i.slope};
}

// Where a switch stands after it saw `u`.
static inline double crdi_switch_moves(const crd_switch_model* m, double u, double was)
{
    const double reach = fabs(m->hysteresis);
    return u > m->threshold + reach ? 1 : u < m->threshold - reach ? 0 : was;
}
