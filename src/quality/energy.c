// Residual power of a bond and the correction that takes its energy out again: Rodriguez Frade
// 2021, sections 5.5 and 5.6.
//
// With mean and difference over a step, dP = fbar dv - vbar df, and the sum of dP is
// [f v] - 2 sum vbar df: the first part only comes and goes, so that the secular part of the
// correction is the lead B = 2 mu df. mu is half the self delay of the coupling path in steps.
#include "cardan/quality.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

static const char* const corrections[] = {"none", "power", "lead", "gated", "probe", "balance"};

const char* crd_correction_name(crd_correction c)
{
    return corrections[c];
}

bool crd_correction_find(const char* name, crd_correction* out)
{
    for (int i = 0; i <= CRD_CORRECT_BALANCE; i++) {
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

void crd_bond_start_axes(crd_bond_state* s, int n, crd_bond_axis* axes)
{
    for (int i = 0; i < n; i++) {
        axes[i] = (crd_bond_axis){.f_last = axes[i].f, .v_last = axes[i].v};
    }
    crd_bond_start(s, axes[0].f_last, axes[0].v_last);
}

double crd_bond_gate(const crd_bond_state* s)
{
    if (!(s->gate_xx > 0)) { return 0; }
    return fmin(fmax(s->gate_xy / s->gate_xx, -1), 1);
}

// ---- what closes the balance -------------------------------------------------------------------
//
// The balance E of a bond, J created so far, is known. A damper at the port takes d |v|^2 out of
// it, which has the same sign at all frequencies. With the mean power P that is created without it,
// E comes to rest with a time constant of some periods T:
//
//   d = (P + E / T) / mean |v|^2
//
// Negative d gives back what was lost. It is never more than the signal itself, |d v| <= |f|. Where
// f is a velocity whose integral counts, a damper's dual would be a displacement that stays. There
// it is more lead, B = a f', which adds a mean(f' v); that has no effect where f' and v are not
// correlated, and is then left alone (r: 0.1):
//
//   a = -(P + E / T) c / (c^2 + r^2 mean f'^2 mean v^2), c = mean(f' v)

static const double PERIODS = 3; // of the motion, that means and E take

// Returns |v|^2 now.
static double follow_motion(crd_bond_state* s, double h, int n, const crd_bond_axis* axes)
{
    double vv = 0, aa = 0, ff = 0, gg = 0, gv = 0, added = 0;
    for (int i = 0; i < n; i++) {
        const crd_bond_axis* a = &axes[i];
        const double rate = (a->v - a->v_last) / h, v = 0.5 * (a->v_last + a->v);
        const double change = (a->f - a->f_last) / h;
        vv += a->v * a->v;
        aa += rate * rate;
        ff += a->f * a->f;
        gg += change * change;
        gv += change * v;
        added += (s->ahead * a->df / h - s->damper * a->v_last) * v; // df: of the step before
    }
    s->time += h;
    const double window = s->period > 0 ? PERIODS * s->period : s->time;
    const double part = fmax(fmin(h / window, 0.2), h / s->time);
    s->vv += part * (vv - s->vv);
    s->aa += part * (aa - s->aa);
    s->ff += part * (ff - s->ff);
    s->gg += part * (gg - s->gg);
    s->gv += part * (gv - s->gv);
    s->loss += part * ((s->balance - s->closed) / h - added - s->loss);
    s->closed = s->balance;
    s->period = s->aa > 0 ? 6.283185307179586 * sqrt(s->vv / s->aa) : 0;
    return vv;
}

static double within(double x, double most)
{
    return fmax(-most, fmin(x, most));
}

// A sine has twice its mean square at its peaks; more is a motion that begins, which must not be
// braked by what was found in the little that came before.
static void close_balance(const crd_bond* bond, crd_bond_state* s, double now)
{
    const double vv = fmax(s->vv, 0.5 * now);
    const double T = PERIODS * s->period;
    s->damper = s->ahead = 0;
    if (!(s->time > s->period && s->vv > 0 && T > 0)) { return; } // not known yet, or no more
    const double power = s->loss + s->balance / T;
    if (bond->moves && s->gg > 0) {
        const double noise = 0.01 * s->gg * s->vv;
        s->ahead = within(-power * s->gv / (s->gv * s->gv + noise), 0.5 * sqrt(s->ff / s->gg));
    }
    s->damper = within((power + s->ahead * s->gv) / vv, sqrt(s->ff / vv));
}

// What all components give together.
typedef struct sums {
    double residual, power; // dP; f v
    double work;            // of the corrections that acted
    double speed;           // |v|
} sums;

static sums add_up(const crd_bond* bond, crd_bond_state* s, double h, int n, crd_bond_axis* axes)
{
    sums all = {0};
    s->gate_xy *= bond->forget;
    s->gate_xx *= bond->forget;
    for (int i = 0; i < n; i++) {
        crd_bond_axis* a = &axes[i];
        const double df = a->f - a->f_last;
        all.residual += crd_bond_residual(a->f_last, a->v_last, a->f, a->v);
        all.power += a->f * a->v;
        all.work += a->B * a->v * h;
        all.speed = hypot(all.speed, a->v);
        s->gate_xy += df * a->df;
        s->gate_xx += a->df * a->df;
        a->df = df;
        a->f_last = a->f;
        a->v_last = a->v;
    }
    return all;
}

static void keep_books(const crd_bond* bond, crd_bond_state* s, double h, const sums* all)
{
    const double dP = all->residual;
    s->missed += s->step_error + all->work;
    s->work += all->work;
    s->step_error = bond->mu * dP * h;
    s->power = dP;
    s->energy += dP * h;
    s->error += s->step_error;
    s->power_max = s->steps == 0 ? dP : crd_defect_larger(s->power_max, dP);
    s->power_min = s->steps == 0 ? dP : -crd_defect_larger(-s->power_min, -dP);
    s->scale += fabs(all->power) * h;
    s->v_max = crd_defect_larger(s->v_max, all->speed);
    s->steps++;
}

// (5.46) to (5.48) at point k+1: B / v. As printed they need v^(k+2); here what the correction of
// the last step has missed is known when its step is over.
static double correct_power(const crd_bond* bond, const crd_bond_state* s, double h_next,
                            double speed, double v)
{
    const double eps = bond->limiter * s->v_max;
    const double square = speed * speed + eps * eps; // regularised 1 / v = v / (v^2 + eps^2)
    if (!(square > 0)) { return square == 0 ? 0 : square; }
    return -(s->step_error + bond->ki * s->missed) / h_next * v / square;
}

double crd_bond_lead(const crd_bond* bond, const crd_bond_state* s, double h)
{
    switch (bond->correction) {
    case CRD_CORRECT_LEAD:
        return 2 * bond->mu;
    case CRD_CORRECT_BALANCE:
        return 2 * bond->mu + s->ahead / h;
    case CRD_CORRECT_GATED:
        return crd_bond_gate(s) * 2 * bond->mu;
    default:
        return 0;
    }
}

void crd_bond_step_axes(const crd_bond* bond, crd_bond_state* s, double h, double h_next, int n,
                        crd_bond_axis* axes)
{
    if (bond->correction != CRD_CORRECT_NONE) {
        const double now = follow_motion(s, h, n, axes);
        if (bond->correction == CRD_CORRECT_BALANCE) { close_balance(bond, s, now); }
    }
    const sums all = add_up(bond, s, h, n, axes);
    keep_books(bond, s, h, &all);
    const double lead = crd_bond_lead(bond, s, h);
    for (int i = 0; i < n; i++) {
        crd_bond_axis* a = &axes[i];
        a->B = 0; // of a probed bond the caller puts it in
        if (bond->correction == CRD_CORRECT_POWER) {
            a->B = correct_power(bond, s, h_next, all.speed, a->v);
        } else if (lead != 0) {
            a->B = lead * a->df * (h_next / h);
        }
        if (bond->correction == CRD_CORRECT_BALANCE) { a->B -= s->damper * a->v; }
    }
    s->f = axes[0].f;
    s->v = axes[0].v;
    s->df = axes[0].df;
    s->B = axes[0].B;
}

double crd_bond_step(const crd_bond* bond, crd_bond_state* s, double h, double h_next, double f,
                     double v)
{
    crd_bond_axis a = {.f = f, .v = v, .f_last = s->f, .v_last = s->v, .df = s->df, .B = s->B};
    crd_bond_step_axes(bond, s, h, h_next, 1, &a);
    return a.B;
}
