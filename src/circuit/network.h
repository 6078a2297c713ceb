// A netlist reduced to what the fast form solves.
//
// Potentials. `at` numbers potentials: 0 .. unknowns-1 are unknown (voltages of nodes, and a few
// currents), `unknowns` is ground (always 0), and after it come `ties`: nodes that hang on another
// potential by a voltage source, a known distance away. A tie's potential is that of its parent
// plus or minus the source; parents come first. Where the tree of sources reaches ground all is
// known; elsewhere one node of it, the root, is unknown and takes Kirchhoff's law of the whole
// tree.
//
// Branches. What is left between potentials are branches: resistor, capacitor and inductor in
// series, with v = R i + L i' + vC, vC' = S i (S: sum of 1/C). A node that joins two such parts and
// nothing else has vanished inside a branch; `members` lists its parts from `from` to `to`.
// Branches come in three groups:
//     0 .. resistive-1                 R only, no state
//     resistive .. capacitive-1        S > 0, no L         (C, RC)
//     capacitive .. branches-1         L > 0               (L, RL, LC, RLC)
// inside a group in the order of their first parts. State arrays are indexed by branch - resistive.
//
// Everything else has an unknown current and a row of its own (`rows`): controlled voltages,
// sources and branches whose current something else needs, coupled inductors; or it is a controlled
// current
// (`gains`) or a `device`: what is not linear.
#pragma once
#include "circuit/circuit.h"
#include "shared/circuit_part.h"

typedef enum crdi_home { // where a part went
    CRDI_HOME_NONE,
    CRDI_HOME_BRANCH, // index: branch
    CRDI_HOME_ROW,    // index: row
    CRDI_HOME_TIE,    // index: tie; its current by Kirchhoff's law
    CRDI_HOME_FLOW,   // index: source
    CRDI_HOME_GAIN,   // index: gain
    CRDI_HOME_DEVICE, // index: device
} crdi_home;

typedef struct crdi_tie { // potential unknowns + 1 + number
    int32_t parent;       // potential
    int32_t source;
    int32_t sign; // potential = parent's + sign * source
    int32_t node;
} crdi_tie;

typedef struct crdi_flow { // a current source: rows of Kirchhoff's law, `unknowns` is nobody's
    int32_t from, to, source;
} crdi_flow;

// A part whose current is an unknown, and its equation:
//     BRANCH          v - drop(i) = history      R, L or C by the drop of its kind
//     TIE             v = source
//     FLOW, OPEN      i = source
//     ROW             v = value * control, or what its device says
typedef struct crdi_row {
    uint8_t role;          // crdi_role that it would have if nothing needed its current
    int32_t part, unknown; // the unknown is its current, and the number of its row
    int32_t from, to;      // potentials
    int32_t c, d;          // control: potentials, or c is an unknown current and d -1; -1: none
    int32_t source;        // TIE, FLOW, OPEN; -1
    int32_t state;         // index into state arrays; -1
    bool capacitor;        // of those with state
    double value;
    double (*drop)(double value, double w, double i); // BRANCH
} crdi_row;

typedef struct crdi_coupling { // of the rows of two inductors
    int32_t a, b;              // rows
    double value;              // H
} crdi_coupling;

typedef struct crdi_gain { // current from -> to is value * (v(c) - v(d)), or value * unknown c
    int32_t from, to, c, d;
    double value;
    bool by_current;
} crdi_gain;

typedef struct crdi_network {
    const crd_netlist* n; // NULL: it was not made
    crdi_network_for purpose;
    int32_t unknowns, ties, sources, branches, resistive, capacitive, rows, couplings, gains, flows;
    int32_t devices;
    int32_t states;     // branches with state, then rows with state
    crdi_tie* tie;      // (ties)
    int32_t* source;    // (sources) part; its value is the caller's
    int32_t *from, *to; // (branches) potentials
    double *r, *l, *s;  // (branches)
    int32_t* first;     // (branches + 1) into member
    int32_t* member;    // part, or ~part if it lies the other way round
    crdi_row* row;      // (rows)
    crdi_coupling* coupling;
    crdi_gain* gain;
    crdi_flow* flow;
    int32_t* device;  // (devices) part: diode, switch, law; a B voltage has a row too
    int32_t* node_at; // (node_count) potential; -1 - branch: vanished inside it
    int32_t* root;    // (unknowns + 1 + ties) unknown whose row is Kirchhoff's law there; -1: known
    uint8_t* home;    // (part_count) crdi_home
    int32_t* home_index; // (part_count)
    // Parts at the node of a tie: members touch[touch_first[k]] .. as part (current leaves the node
    // by it) or ~part (enters). The part that ties it to its parent is not among them.
    int32_t *touch_first, *touch;
} crdi_network;

// In the memory of `a`. CRD_E_UNSUPPORTED with a sentence: what this reduction has no place for.
crd_status crdi_network_init(crdi_network* w, crd_arena* a, const crd_netlist* n,
                             crdi_network_for purpose);
// Unknown i becomes unknown to[i].
void crdi_network_renumber(crdi_network* w, const int32_t* to);

// The unknown that is the current of a part with a row
static inline int32_t crdi_network_current_unknown(const crdi_network* w, int32_t part)
{
    return w->row[w->home_index[part]].unknown;
}
static inline int32_t crdi_network_ground(const crdi_network* w)
{
    return w->unknowns;
}
static inline int32_t crdi_network_potentials(const crdi_network* w)
{
    return w->unknowns + 1 + w->ties;
}
