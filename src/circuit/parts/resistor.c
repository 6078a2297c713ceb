// R, a resistor or a thermal resistance:     v = R i,     R in ohm or K/W
// and with an expression:                    v = r(x, t) i
//
// Reference form, a row of Phi (Rodriguez 2021, Eq. 3.6): v_a - v_b - r i = 0.
// Fast form: g = 1 / R in a branch. With an expression a device, linear about the last iterate:
//     i = g v + (dg/dr) v grad r . (x - x_k),   g = 1 / r,   dg/dr = -g^2
#include "circuit/dae.h"
#include "circuit/netlist.h"
#include "circuit/nodal.h"

static crd_status read_resistor(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_RESISTOR);
    crd_expression* e;
    crdi_factors f;
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    CRD_TRY(crdi_part_amount(r, "r", &part.value, &e));
    CRD_TRY(crdi_part_factors(r, false, !part.thermal, &f));
    if (e) {
        if (f.tc1 != 0 || f.tc2 != 0 || f.m != 1) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                                  "%s: tc1, tc2 and m belong into its expression",
                                  crdi_word_clip(r->name).text);
        }
        part.value = 0;
        CRD_TRY(crdi_expression_add(r, e, &part.index));
    } else {
        const double d = r->p->n->temperature - r->p->nominal; // R (1 + tc1 d + tc2 d^2) / m
        part.value *= (1 + d * (f.tc1 + d * f.tc2)) / f.m;
        CRD_TRY(crdi_part_positive(r, &part, part.thermal ? "K/W" : "Ohm", "is taken as 1 mOhm"));
        if (part.value == 0) { part.value = 1e-3; } // as in ngspice
    }
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

// ---- reference form ----------------------------------------------------------------------------

static void resistor_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    const crd_part* p = &d->c->n->parts[part];
    const crdi_dae_part* q = &d->part[part];
    double r = p->value;
    if (p->index >= 0) {
        r = crdi_dae_put_expression(d, q->row, d->c->n->expressions[p->index], at,
                                    at->x[q->current], 1);
    }
    crdi_dae_put_resistance(d, part, at, r);
}

static double resistor_slope(crdi_dae* d, int32_t part, const double* x, double t) // -i dr/dt
{
    const crd_expression* e = crdi_part_law(d->c->n, &d->c->n->parts[part]);
    return e ? -x[d->part[part].current] * crdi_dae_expression_slope(d, e, x, t) : 0;
}

// ---- fast form ---------------------------------------------------------------------------------

static double resistor_drop(double value, double w, double i) // v = R i
{
    (void)w;
    return value * i;
}

static int32_t resistor_stamp(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        if (!crdi_device_evaluate(d, e, t, tangent)) { return k; }
        const double v = (d->p0[e->a] + d->ua[e->ua]) - (d->p0[e->b] + d->ua[e->ub]);
        const double g = 1 / e->value;
        e->conductance = g;
        crdi_device_stamp(d, e, g, g * (d->p0[e->a] - d->p0[e->b]));
        crdi_device_pull(d, e, -v * g * g, 0);
    }
    return -1;
}

static const crdi_device_kind by_law = {
    .nonlinear = true, .stamp = resistor_stamp, .settle = crdi_device_settle_law};

const crdi_part_kind crdi_part_resistor = {
    .article = "a resistor",
    .plural = "resistors",
    .thermal = "thermal resistances",
    .unit = "Ohm",
    .thermal_unit = "K/W",
    .fixes_at_0 = CRDI_FIXES_VOLTAGE,
    .model = CRDI_MODEL_LAW,
    .linear = true,
    .has_value = true,
    .letter = 'r',
    .usage = "Rname n+ n- value | {expression} [tc1= tc2= m=]",
    .read = read_resistor,
    .word = "resistance",
    .read_thermal = read_resistor,
    .law = resistor_law,
    .slope = resistor_slope,
    .role = {CRDI_ROLE_BRANCH, CRDI_ROLE_BRANCH, CRDI_ROLE_BRANCH},
    .drop = resistor_drop,
    .device = &by_law,
};
