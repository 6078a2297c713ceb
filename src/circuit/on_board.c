// What the twins of controllers need to know of parts and names: without the parser, and without
// the laws of the simulator, which the rows in parts/ have beside it (the test
// test_circuit_on_board compares).
#include "shared/circuit_part.h"

#include <string.h>
#include <strings.h>

static const crdi_part_kind resistor = {
    .article = "a resistor", .unit = "Ohm", .model = CRDI_MODEL_LAW, .linear = true};
static const crdi_part_kind capacitor = {
    .article = "a capacitor", .unit = "F", .stores = CRDI_STORES_VOLTAGE, .linear = true};
static const crdi_part_kind inductor = {
    .article = "an inductor", .unit = "H", .stores = CRDI_STORES_CURRENT, .linear = true};
static const crdi_part_kind mutual = {
    .article = "a mutual inductance", .couples = true, .linear = true};
static const crdi_part_kind voltage = {.article = "a voltage source",
                                       .unit = "V",
                                       .fixes = CRDI_FIXES_VOLTAGE,
                                       .model = CRDI_MODEL_WAVE,
                                       .linear = true};
static const crdi_part_kind current = {.article = "a current source",
                                       .unit = "A",
                                       .fixes = CRDI_FIXES_CURRENT,
                                       .model = CRDI_MODEL_WAVE,
                                       .linear = true};
static const crdi_part_kind vcvs = {.article = "a controlled source",
                                    .fixes = CRDI_FIXES_VOLTAGE,
                                    .control = CRDI_CONTROL_VOLTAGE,
                                    .linear = true};
static const crdi_part_kind cccs = {.article = "a controlled source",
                                    .fixes = CRDI_FIXES_CURRENT,
                                    .control = CRDI_CONTROL_CURRENT,
                                    .linear = true};
static const crdi_part_kind vccs = {.article = "a controlled source",
                                    .fixes = CRDI_FIXES_CURRENT,
                                    .control = CRDI_CONTROL_VOLTAGE,
                                    .linear = true};
static const crdi_part_kind ccvs = {.article = "a controlled source",
                                    .fixes = CRDI_FIXES_VOLTAGE,
                                    .control = CRDI_CONTROL_CURRENT,
                                    .linear = true};
static const crdi_part_kind other = {.article = "a part that no twin has"};

const crdi_part_kind* const crdi_part_kinds[CRDI_PART_KINDS] = {
    [CRD_PART_RESISTOR] = &resistor,
    [CRD_PART_CAPACITOR] = &capacitor,
    [CRD_PART_INDUCTOR] = &inductor,
    [CRD_PART_MUTUAL] = &mutual,
    [CRD_PART_VOLTAGE] = &voltage,
    [CRD_PART_CURRENT] = &current,
    [CRD_PART_DIODE] = &other,
    [CRD_PART_SWITCH] = &other,
    [CRD_PART_CURRENT_SWITCH] = &other,
    [CRD_PART_VCVS] = &vcvs,
    [CRD_PART_CCCS] = &cccs,
    [CRD_PART_VCCS] = &vccs,
    [CRD_PART_CCVS] = &ccvs,
    [CRD_PART_B_VOLTAGE] = &other,
    [CRD_PART_B_CURRENT] = &other,
};

int32_t crd_netlist_node(const crd_netlist* n, const char* name)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        if (strcasecmp(n->nodes[i], name) == 0) { return i; }
    }
    return strcasecmp(name, "gnd") == 0 ? 0 : -1;
}

int32_t crd_netlist_part(const crd_netlist* n, const char* name)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        if (strcasecmp(n->names + n->parts[i].name, name) == 0) { return i; }
    }
    return -1;
}
