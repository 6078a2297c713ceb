// Residual power of a bond and the correction that takes its energy out again: Rodriguez Frade
// 2021, sections 5.5 and 5.6.
//
// With mean and difference over a step, dP = fbar dv - vbar df, and the sum of dP is
// [f v] - 2 sum vbar df: the first part only comes and goes, so that the secular part of the
// correction is the lead B = 2 mu df. mu is half the self delay of the coupling path in steps.
#include "cardan/quality.h"

#include <math.h>
#include <string.h>

static const char* const corrections[] = {"none", "power", "lead", "gated"};

const char* crd_correction_name(crd_correction c)
{
    return corrections[c];
}

bool crd_correction_find(const char* name, crd_correction* out)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, corrections[i]) == 0) {
            *out = (crd_correction)i;
            return true;
        }
    }
    return false;
}

crd_bond crd_bond_defaults(void)
{
    return (crd_bond){.mu = 0.5, .limiter = 0.02, .forget = 0.95};
}

crd_status crd_bond_check(crd_context* ctx, const crd_bond* bond)
{
    if (!(bond->mu >= 0 && isfinite(bond->mu))) {
        return crdi_fail(ctx, CRD_E_RANGE, "power bond: mu = %g, expected >= 0", bond->mu);
    }
    if (!(bond->ki >= 0 && bond->ki <= 2)) {
        return crdi_fail(ctx, CRD_E_RANGE, "power bond: ki = %g, expected 0 <= ki <= 2", bond->ki);
    }
    if (!(bond->limiter > 0 && isfinite(bond->limiter))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "power bond: limiter = %g, expected > 0 (without one the correction "
                         "diverges)",
                         bond->limiter);
    }
    if (!(bond->forget > 0 && bond->forget <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "power bond: forget = %g, expected 0 < forget <= 1",
                         bond->forget);
    }
    return CRD_OK;
}

double crd_bond_delay(double h_df, double h_ndf, int order)
{
    const double H = fmax(h_df, h_ndf), R = h_df / h_ndf;
    if (R >= 1) { return order > 0 ? H : H * (1.5 - 0.5 / R); } // (5.42)
    return order > 0 ? R * H : H;                               // (5.43)
}

double crd_bond_mu(double h_df, double h_ndf, int order)
{
    return 0.5 * crd_bond_delay(h_df, h_ndf, order) / fmax(h_df, h_ndf);
}

double crd_bond_residual(double f0, double v0, double f1, double v1)
{
    return f0 * v1 - f1 * v0;
}

void crd_bond_start(crd_bond_state* s, double f, double v)
{
    *s = (crd_bond_state){.f = f, .v = v};
}

double crd_bond_gate(const crd_bond_state* s)
{
    if (!(s->gate_xx > 0)) { return 0; }
    return fmin(fmax(s->gate_xy / s->gate_xx, -1), 1);
}

// (5.46) to (5.48) at point k+1. As printed they need v^(k+2); here what the correction of the last
// step has missed is known when its step is over.
static double correct_power(const crd_bond* bond, const crd_bond_state* s, double h_next)
{
    const double eps = bond->limiter * s->v_max;
    const double square = s->v * s->v + eps * eps; // regularised 1 / v = v / (v^2 + eps^2)
    if (!(square > 0)) { return square == 0 ? 0 : square; }
    return -(s->step_error + bond->ki * s->missed) / h_next * s->v / square;
}

double crd_bond_step(const crd_bond* bond, crd_bond_state* s, double h, double h_next, double f,
                     double v)
{
    const double dP = crd_bond_residual(s->f, s->v, f, v);
    const double df = f - s->f;
    const double work = s->B * v * h;
    s->missed += s->step_error + work;
    s->work += work;
    s->step_error = bond->mu * dP * h;
    s->power = dP;
    s->energy += dP * h;
    s->error += s->step_error;
    s->power_max = s->steps == 0 ? dP : crd_defect_larger(s->power_max, dP);
    s->power_min = s->steps == 0 ? dP : -crd_defect_larger(-s->power_min, -dP);
    s->scale += fabs(f * v) * h;
    s->gate_xy = bond->forget * s->gate_xy + df * s->df;
    s->gate_xx = bond->forget * s->gate_xx + s->df * s->df;
    s->df = df;
    s->f = f;
    s->v = v;
    s->v_max = crd_defect_larger(s->v_max, fabs(v));
    s->steps++;
    const double lead = 2 * bond->mu * df * (h_next / h);
    switch (bond->correction) {
    case CRD_CORRECT_NONE:
        s->B = 0;
        break;
    case CRD_CORRECT_POWER:
        s->B = correct_power(bond, s, h_next);
        break;
    case CRD_CORRECT_LEAD:
        s->B = lead;
        break;
    case CRD_CORRECT_GATED:
        s->B = crd_bond_gate(s) * lead;
        break;
    }
    return s->B;
}
