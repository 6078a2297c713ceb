// L, an inductor:     v = L i',     L in H
//
// Reference form, a row of A x' + b = 0 (Rodriguez 2021, Eq. 3.7): L i' - (v_a - v_b) = 0.
// Fast form, a method that says i' = w i + history: v = w L i + L history.
#include "circuit/dae.h"
#include "circuit/netlist.h"

static crd_status read_inductor(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_INDUCTOR);
    double m = 1;
    CRD_TRY(crdi_part_storage(r, &part, "l", &m));
    part.value /= m; // so many in parallel
    CRD_TRY(crdi_part_positive(r, &part, "H", "is taken as a wire"));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static void inductor_law(crdi_dae* d, int32_t part, const crdi_dae_point* at) // b = v_b - v_a
{
    const crd_part* p = &d->c->n->parts[part];
    const int32_t row = d->part[part].row;
    at->f[row] = at->x[p->nodes[1]] - at->x[p->nodes[0]];
    crdi_dae_put(&d->j, row, p->nodes[0], -1);
    crdi_dae_put(&d->j, row, p->nodes[1], 1);
}

static void inductor_mass(crdi_dae* d, int32_t part) // L i'
{
    const crdi_dae_part* q = &d->part[part];
    crdi_dae_put(&d->a, q->row - d->m, q->current, d->c->n->parts[part].value);
}

static double inductor_drop(double value, double w, double i) // v = w L i
{
    return w * value * i;
}

const crdi_part_kind crdi_part_inductor = {
    .article = "an inductor",
    .plural = "inductors",
    .unit = "H",
    .fixes_at_0 = CRDI_FIXES_VOLTAGE,
    .stores = CRDI_STORES_CURRENT,
    .linear = true,
    .has_value = true,
    .letter = 'l',
    .usage = "Lname n+ n- value [ic=amperes] [m=]",
    .read = read_inductor,
    .law = inductor_law,
    .mass = inductor_mass,
    .role = {CRDI_ROLE_BRANCH, CRDI_ROLE_FLOW, CRDI_ROLE_TIE},
    .drop = inductor_drop,
};
