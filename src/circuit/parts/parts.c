// The table of parts, and what begins: CRD_PARTS of cardan/circuit.h is the list.
#include "shared/circuit_part.h"

#define ROW(constant, name) [CRD_PART_##constant] = &crdi_part_##name,
const crdi_part_kind* const crdi_part_kinds[CRDI_PART_KINDS] = {CRD_PARTS(ROW)};
#undef ROW

bool crdi_netlist_is_given(const crd_netlist* n)
{
    bool given = n->uic;
    for (int32_t i = 0; i < n->part_count && !given; i++) {
        const crd_part* p = &n->parts[i]; // of a switch it says where it stands
        given = p->has_ic && crdi_part_kind_of(p)->stores;
    }
    return given;
}

double crdi_netlist_capacitor_ic(const crd_netlist* n, const crd_part* p)
{
    if (p->has_ic) { return p->ic; }
    if (!n->node_ic) { return 0; }
    const double a = p->nodes[0] == 0 ? 0 : n->node_ic[p->nodes[0]];
    const double b = p->nodes[1] == 0 ? 0 : n->node_ic[p->nodes[1]];
    return isnan(a - b) ? 0 : a - b;
}
