// B, a source by expression:     v = e(x, t)   or   i = e(x, t)
// where x are voltages, currents and inputs.
//
// Reference form, a row of Phi (Rodriguez 2021, Eq. 3.6): v_a - v_b - e = 0 or i - e = 0.
// Fast form, linear about the last iterate x_k: e(x_k) + grad e . (x - x_k), in the row of the
// unknown current (V=) or in Kirchhoff's law of both ends (I=).
#include "circuit/dae.h"
#include "circuit/netlist.h"
#include "circuit/nodal.h"

static crd_status read_behaviour(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_B_VOLTAGE);
    crdi_word key;
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    if (!crdi_key(&r->s, &key)) { return crdi_part_expected(r, "V= or I="); }
    const bool voltage = crdi_word_is(key, "v");
    if (!voltage && !crdi_word_is(key, "i")) { return crdi_part_unknown_key(r, key); }
    CRD_TRY(crdi_part_behaviour(r, &part, voltage));
fail:
    return st;
}

// ---- reference form ----------------------------------------------------------------------------

static void behaviour_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    const crd_part* p = &d->c->n->parts[part];
    const int32_t row = d->part[part].row;
    const double left = p->kind == CRD_PART_B_VOLTAGE ? crdi_dae_put_voltage(d, part, at->x)
                                                      : crdi_dae_put_current(d, part, at->x);
    at->f[row] = left - crdi_dae_put_expression(d, row, d->c->n->expressions[p->index], at, 1, 0);
}

static double behaviour_slope(crdi_dae* d, int32_t part, const double* x, double t)
{
    const crd_netlist* n = d->c->n;
    return -crdi_dae_expression_slope(d, n->expressions[n->parts[part].index], x, t);
}

// ---- fast form ---------------------------------------------------------------------------------

static int32_t stamp_flow(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        if (!crdi_device_evaluate(d, e, t, tangent)) { return k; }
        crdi_device_pull(d, e, 1, e->value);
    }
    return -1;
}

static void make_voltage(crdi_nodal* d, crdi_device* e) // its equation is the row of its current
{
    e->ua = crdi_device_active(d, crdi_network_current_unknown(&d->net, e->part));
    e->ub = d->active;
}

static int32_t stamp_voltage(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        if (!crdi_device_evaluate(d, e, t, tangent)) { return k; }
        crdi_device_pull(d, e, -1, -e->value);
    }
    return -1;
}

static const crdi_device_kind flow = {
    .nonlinear = true, .stamp = stamp_flow, .settle = crdi_device_settle_law};
static const crdi_device_kind voltage = {
    .nonlinear = true, .make = make_voltage, .stamp = stamp_voltage};

const crdi_part_kind crdi_part_b_voltage = {
    .article = "a source with an expression",
    .plural = "voltages by expression",
    .thermal = "temperatures by expression",
    .fixes = CRDI_FIXES_VOLTAGE,
    .model = CRDI_MODEL_EXPRESSION,
    .letter = 'b',
    .usage = "Bname n+ n- V={expression} | I={expression}",
    .read = read_behaviour,
    .law = behaviour_law,
    .slope = behaviour_slope,
    .role = {CRDI_ROLE_ROW},
    .device = &voltage,
};

const crdi_part_kind crdi_part_b_current = {
    .article = "a source with an expression",
    .plural = "currents by expression",
    .thermal = "heat flows by expression",
    .fixes = CRDI_FIXES_CURRENT,
    .model = CRDI_MODEL_EXPRESSION,
    .law = behaviour_law,
    .slope = behaviour_slope,
    .role = {CRDI_ROLE_DEVICE},
    .device = &flow,
};
