// V, a voltage or a temperature:     v = e(t)
// I, a current or a heat flow:       i = j(t)
// where e and j are waveforms, or inputs from outside.
//
// Reference form, a row of Phi (Rodriguez 2021, Eq. 3.6): v_a - v_b - e(t) = 0 or i - j(t) = 0,
// with dPhi/dt = -e'(t) or -j'(t), which consistent derivatives need (3.25). Fast form: V ties a
// node to another at a known distance, I is a known current into the rows of both.
#include "circuit/dae.h"
#include "circuit/netlist.h"

static crd_status read_source(crdi_reading* r, crd_part_kind kind)
{
    crd_part part = crdi_part_start(r, kind);
    const crd_status st = crdi_part_nodes(r, &part, 2);
    return st < 0 ? st : crdi_part_wave(r, &part, false);
}

static crd_status read_voltage(crdi_reading* r)
{
    return read_source(r, CRD_PART_VOLTAGE);
}

static crd_status read_current(crdi_reading* r)
{
    return read_source(r, CRD_PART_CURRENT);
}

static crd_status read_temperature(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_VOLTAGE);
    CRD_TRY(crdi_part_nodes(r, &part, 1));
    part.nodes[1] = 0;
    CRD_TRY(crdi_part_wave(r, &part, true));
    CRD_TRY(crdi_part_check_kelvin(r, part.value));
fail:
    return st;
}

static crd_status read_heat(crdi_reading* r)
{
    crd_part part = crdi_part_start(r, CRD_PART_CURRENT);
    const crd_status st = crdi_part_nodes(r, &part, 1);
    part.nodes[1] = part.nodes[0]; // a current flows from its first node to its second
    part.nodes[0] = 0;
    return st < 0 ? st : crdi_part_wave(r, &part, true);
}

static double source_value_at(const crdi_dae* d, int32_t part, double t)
{
    const crd_netlist* n = d->c->n;
    return crd_waveform_eval(&n->waves[n->parts[part].index], t, d->c->inputs);
}

static void voltage_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    at->f[d->part[part].row] =
        crdi_dae_put_voltage(d, part, at->x) - source_value_at(d, part, at->t);
}

static void current_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    at->f[d->part[part].row] =
        crdi_dae_put_current(d, part, at->x) - source_value_at(d, part, at->t);
}

static double source_slope(crdi_dae* d, int32_t part, const double* x, double t)
{
    (void)x;
    const crd_netlist* n = d->c->n;
    return -crdi_waveform_slope(&n->waves[n->parts[part].index], t);
}

const crdi_part_kind crdi_part_voltage = {
    .article = "a voltage source",
    .plural = "voltage sources",
    .thermal = "temperature sources",
    .unit = "V",
    .thermal_unit = "K",
    .fixes = CRDI_FIXES_VOLTAGE,
    .model = CRDI_MODEL_WAVE,
    .linear = true,
    .letter = 'v',
    .usage = "Vname n+ n- value | waveform | input(name)",
    .read = read_voltage,
    .word = "temperature",
    .read_thermal = read_temperature,
    .law = voltage_law,
    .slope = source_slope,
    .role = {CRDI_ROLE_TIE, CRDI_ROLE_TIE, CRDI_ROLE_TIE},
};

const crdi_part_kind crdi_part_current = {
    .article = "a current source",
    .plural = "current sources",
    .thermal = "heat sources",
    .unit = "A",
    .thermal_unit = "W",
    .fixes = CRDI_FIXES_CURRENT,
    .model = CRDI_MODEL_WAVE,
    .linear = true,
    .letter = 'i',
    .usage = "Iname n+ n- value | waveform | input(name)",
    .read = read_current,
    .word = "heat",
    .read_thermal = read_heat,
    .law = current_law,
    .slope = source_slope,
    .role = {CRDI_ROLE_FLOW, CRDI_ROLE_FLOW, CRDI_ROLE_FLOW},
};
