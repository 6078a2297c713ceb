// What moves in the reference form: slopes of sources, limits of diodes, switches.
#include "circuit/dae.h"
#include "circuit/devices.h"

#include <math.h>
#include <string.h>

static double sine_slope(const double* v, double t)
{
    const double offset_free = v[1], f = v[2], delay = v[3], damping = v[4];
    if (t < delay) { return 0; }
    const double w = 2 * M_PI * f, s = t - delay, phase = w * s + v[5] * M_PI / 180;
    return offset_free * exp(-damping * s) * (w * cos(phase) - damping * sin(phase));
}

static double exp_slope(const double* v, double t)
{
    const double low = v[0], high = v[1];
    double slope = 0;
    if (t >= v[2]) { slope += (high - low) / v[3] * exp(-(t - v[2]) / v[3]); }
    if (t >= v[4]) { slope += (low - high) / v[5] * exp(-(t - v[4]) / v[5]); }
    return slope;
}

// To the right of a corner.
double crdi_dae_slope(const crd_waveform* w, double t)
{
    switch (w->kind) {
    case CRD_WAVE_SIN:
        return sine_slope(w->v, t);
    case CRD_WAVE_EXP:
        return exp_slope(w->v, t);
    case CRD_WAVE_PULSE:
    case CRD_WAVE_PWL: { // straight between corners
        const double end = crd_waveform_next(w, t);
        const double step = isfinite(end) ? 0.5 * (end - t) : 1;
        if (!(step > 0)) { return 0; }
        const double from = t + 0.5 * step, to = t + 1.5 * step;
        return (crd_waveform_eval(w, to, NULL) - crd_waveform_eval(w, from, NULL)) / (to - from);
    }
    default:
        return 0;
    }
}

// By a difference: expressions have no derivative with respect to time.
static double expression_slope(crdi_dae* d, const crd_expression* e, const double* x, double t)
{
    const double step = 1e-3 * d->c->opt.step;
    const double to = crdi_dae_expression(d, e, x, t + step, NULL);
    return (to - crdi_dae_expression(d, e, x, t - step, NULL)) / (2 * step);
}

void crdi_dae_rates(crdi_dae* d, const double* x, double t, double* phi_t)
{
    const crd_netlist* n = d->c->n;
    memset(phi_t, 0, (size_t)d->m * sizeof *phi_t);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const int32_t row = d->part[i].row;
        if (p->kind == CRD_PART_VOLTAGE || p->kind == CRD_PART_CURRENT) {
            phi_t[row] = -crdi_dae_slope(&n->waves[p->index], t);
        } else if (p->kind >= CRD_PART_B_VOLTAGE) {
            phi_t[row] = -expression_slope(d, n->expressions[p->index], x, t);
        } else if (p->kind == CRD_PART_RESISTOR && p->index >= 0) {
            phi_t[row] =
                -x[d->part[i].current] * expression_slope(d, n->expressions[p->index], x, t);
        }
    }
}

// An exponential is followed upwards on its tangent's logarithm: from `old` to where the current
// is what the line at `old` would give at `v`.
static double limit_exponential(double v, double old, double nvt, double critical)
{
    if (v > critical && fabs(v - old) > 2 * nvt) {
        if (old > 0) {
            const double u = (v - old) / nvt;
            return u > 0 ? old + nvt * log1p(u) : critical;
        }
        return nvt * log(v / nvt);
    }
    return v;
}

bool crdi_dae_limit(const crdi_dae* d, const double* x, double* limit, int32_t* worst)
{
    const crd_netlist* n = d->c->n;
    bool limited = false;
    for (int32_t i = 0; i < n->part_count && d->diodes > 0; i++) {
        if (n->parts[i].kind != CRD_PART_DIODE) { continue; }
        const crdi_dae_part* q = &d->part[i];
        const crd_diode_model* m = &n->diodes[n->parts[i].index];
        const double nvt = m->n * m->vt, v = crdi_dae_junction(d, q, i, x);
        const double critical = nvt * log(nvt / (sqrt(2) * m->is));
        double to = limit_exponential(v, limit[q->device], nvt, critical);
        if (m->bv > 0 && v < -m->bv) { // the mirror image beyond the breakdown
            to = -m->bv - limit_exponential(-v - m->bv, -limit[q->device] - m->bv, nvt,
                                            fmax(critical, 2 * nvt));
        }
        if (fabs(to - v) > d->c->opt.tolerance * fmax(1, fabs(v))) {
            limited = true;
            *worst = q->junction;
        }
        limit[q->device] = to;
    }
    return limited;
}

// The tangent of an exponential is g dv^2 / (2 n vt) off after a change of dv.
bool crdi_dae_at_rounding(const crdi_dae* d, const double* x, const double* limit)
{
    const crd_netlist* n = d->c->n;
    double largest = 1, off = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const bool law =
            p->kind >= CRD_PART_B_VOLTAGE || (p->kind == CRD_PART_RESISTOR && p->index >= 0);
        if (law) { return false; }
        if (p->kind == CRD_PART_MUTUAL) { continue; }
        largest = fmax(largest, fabs(x[d->part[i].current]));
        if (p->kind != CRD_PART_DIODE) { continue; }
        const crd_diode_model* m = &n->diodes[p->index];
        const double at = limit[d->part[i].device],
                     dv = crdi_dae_junction(d, &d->part[i], i, x) - at;
        off = fmax(off,
                   crdi_diode_current(m, fmax(at, at + dv)).slope * dv * dv / (2 * m->n * m->vt));
    }
    return off <= 1e-12 * largest;
}

bool crdi_dae_switch(crdi_dae* d, const double* x)
{
    const crd_netlist* n = d->c->n;
    bool moved = false;
    for (int32_t i = 0; i < n->part_count && d->switches > 0; i++) {
        const crd_part* p = &n->parts[i];
        const bool by_voltage = p->kind == CRD_PART_SWITCH;
        if (!by_voltage && p->kind != CRD_PART_CURRENT_SWITCH) { continue; }
        const crd_switch_model* m = &n->switches[p->index];
        const double u =
            by_voltage ? x[p->nodes[2]] - x[p->nodes[3]] : x[d->part[p->refs[0]].current];
        const double was = d->closed[d->part[i].device], is = crdi_switch_moves(m, u, was);
        d->closed[d->part[i].device] = is;
        moved = moved || is != was;
    }
    return moved;
}
