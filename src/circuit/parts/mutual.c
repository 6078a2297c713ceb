// K, two inductors on one core:     v_1 = L_1 i_1' + M i_2',   v_2 = M i_1' + L_2 i_2',   M = k
// sqrt(L_1 L_2)
//
// Reference form: M in the rows of both inductors in A (Rodriguez 2021, Eq. 3.7).
// Fast form: both inductors have rows of their own, with w M beside w L.
#include "circuit/dae.h"
#include "circuit/netlist.h"

static crd_status read_mutual(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_MUTUAL);
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[1]));
    if (part.refs[0] == part.refs[1]) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s couples an inductor with itself",
                              crdi_word_clip(r->name).text);
    }
    CRD_TRY(crdi_value(r, false, "a coupling", &part.value));
    if (!(fabs(part.value) <= 1)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s = %g, expected -1 to 1",
                              crdi_word_clip(r->name).text, part.value);
    }
    CRD_TRY(crdi_part_end(r));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static void mutual_mass(crdi_dae* d, int32_t part)
{
    const crd_part *parts = d->c->n->parts, *p = &parts[part];
    const crdi_dae_part *u = &d->part[p->refs[0]], *v = &d->part[p->refs[1]];
    const double m = crdi_part_mutual(p, parts[p->refs[0]].value, parts[p->refs[1]].value);
    crdi_dae_put(&d->a, u->row - d->m, v->current, m);
    crdi_dae_put(&d->a, v->row - d->m, u->current, m);
}

static const char* mutual_check(const crd_netlist* n, const crd_part* p)
{
    for (int k = 0; k < 2; k++) {
        const int32_t r = p->refs[k];
        if (r < 0 || r >= n->part_count || n->parts[r].kind != CRD_PART_INDUCTOR) {
            return "it has to couple two inductors";
        }
    }
    const bool wound = n->parts[p->refs[0]].value > 0 && n->parts[p->refs[1]].value > 0;
    return p->refs[0] == p->refs[1] ? "it couples an inductor with itself"
           : !wound                 ? "the inductors that it couples have to be > 0"
                                    : NULL;
}

const crdi_part_kind crdi_part_mutual_inductance = {
    .article = "a mutual inductance",
    .plural = "mutual inductances",
    .couples = true,
    .linear = true,
    .has_value = true,
    .letter = 'k',
    .usage = "Kname L1 L2 factor",
    .read = read_mutual,
    .check = mutual_check,
    .mass = mutual_mass,
    .role = {CRDI_ROLE_OPEN, CRDI_ROLE_OPEN, CRDI_ROLE_OPEN},
};
