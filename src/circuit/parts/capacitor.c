// C, a capacitor or a heat capacity:     i = C v',     C in F or J/K
//
// Reference form, a row of A x' + b = 0 (Rodriguez 2021, Eq. 3.7): C (v_a' - v_b') - i = 0.
// Fast form, a method that says v' = w v + history: i = C w v + C history, so that in a branch
//     v = i / (C w) + what it had;   the branch has S = 1 / C.
#include "circuit/dae.h"
#include "circuit/netlist.h"

static crd_status read_capacitor(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_CAPACITOR);
    double m = 1;
    CRD_TRY(crdi_part_storage(r, &part, "c", &m));
    part.value *= m; // so many in parallel
    CRD_TRY(crdi_part_positive(r, &part, "F", "is taken as if it were not there"));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static crd_status read_capacity(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_CAPACITOR);
    crd_expression* e;
    CRD_TRY(crdi_part_nodes(r, &part, 1));
    part.nodes[1] = 0;
    CRD_TRY(crdi_value_or_law(r, false, false, &part.value, &e));
    CRD_TRY(crdi_part_constant(r, e));
    CRD_TRY(crdi_part_positive(r, &part, "J/K", ""));
    CRD_TRY(crdi_part_start_temperature(r, &part.ic));
    CRD_TRY(crdi_part_end(r));
    part.has_ic = !isnan(part.ic);
    if (!part.has_ic) { part.ic = 0; }
    CRD_TRY(crdi_part_check_kelvin(r, part.ic));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static void capacitor_law(crdi_dae* d, int32_t part, const crdi_dae_point* at) // b = -i
{
    const crdi_dae_part* q = &d->part[part];
    at->f[q->row] = -at->x[q->current];
    crdi_dae_put(&d->j, q->row, q->current, -1);
}

static void capacitor_mass(crdi_dae* d, int32_t part) // C (v_a' - v_b')
{
    const crd_part* p = &d->c->n->parts[part];
    const int32_t row = d->part[part].row - d->m;
    crdi_dae_put(&d->a, row, p->nodes[0], p->value);
    crdi_dae_put(&d->a, row, p->nodes[1], -p->value);
}

static double capacitor_drop(double value, double w, double i) // v = i / (C w)
{
    return i / (value * w);
}

const crdi_part_kind crdi_part_capacitor = {
    .article = "a capacitor",
    .plural = "capacitors",
    .thermal = "heat capacities",
    .unit = "F",
    .thermal_unit = "J/K",
    .fixes_at_0 = CRDI_FIXES_CURRENT,
    .stores = CRDI_STORES_VOLTAGE,
    .linear = true,
    .has_value = true,
    .letter = 'c',
    .usage = "Cname n+ n- value [ic=volts] [m=]",
    .read = read_capacitor,
    .word = "capacity",
    .read_thermal = read_capacity,
    .law = capacitor_law,
    .mass = capacitor_mass,
    .role = {CRDI_ROLE_BRANCH, CRDI_ROLE_TIE, CRDI_ROLE_OPEN},
    .drop = capacitor_drop,
};
