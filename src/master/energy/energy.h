// Power bonds: the energy that the exchange adds or takes, and what is done about it.
#pragma once
#include "master/plan/plan.h"

/// One component of a power bond: f and v of one direction.
typedef struct crdi_axis {
    crdi_connection *action, *flow; // of f to v's unit, and of v to f's unit
    const double *f, *v;            // in the outputs of their units
    double gain, offset;            // to SI, f as it arrives: gain * *f + offset
    double v_gain, v_offset;        // to SI, v as its unit gives it
    double back_gain;               // v as it arrives / v as its unit gives it
    double in_unit, back_in_unit;   // 1 in SI, in the unit of f's and of v's input
    crdi_prediction* corrected;     // gets the correction, NULL: none does
} crdi_axis;

/// What a bond probes, and what it finds out.
typedef struct crdi_probing {
    crd_probe probe;
    int member, other;                                  // with the feedthrough; its partner
    crdi_connection* taken[CRD_PROBE_INPUTS + 1];       // inputs as in `probe`; the action
    crdi_prediction *inputs[CRD_PROBE_INPUTS], *action; // the same
    double* f;                                          // the action, in the outputs of its unit
    int64_t events;                                     // run: of both units, those that are known
    double held, lead;     // run: what the action is held at; and beyond f, in its input's unit
    crd_probe_state state; // run
} crdi_probing;

/// A power bond in the run.
typedef struct crdi_bond {
    const crd_bond_spec* spec; // of the first axis
    const char *name, *action_name, *flow_name;
    int action_member, flow_member; // that give f and v
    bool feeds;                     // one of the outputs has feedthrough from the other unit ...
    bool swapped;                   // ... and that is v
    bool corrects_flow; // v is corrected, on its way to the unit that gives f, and is the action
    crdi_axis* axes;
    crd_bond_axis* parts; // run: like axes
    int axis_count;
    crd_bond bond;
    crd_bond_state state;  // run
    crdi_probing* probing; // NULL: nothing is probed
    int64_t every;         // ticks between two balances
    double time;           // run: of the last one
    crdi_offer* signals;   // for the record
    int signal_count;
} crdi_bond;

typedef struct crdi_energy {
    crdi_bond* bonds;
    int bond_count;
} crdi_energy;

// bonds.c
crd_status crdi_bonds_plan(crdi_plan* plan, crdi_energy* energy); ///< marks connections
crd_status crdi_bonds_bind(crdi_plan* plan, crdi_energy* energy); ///< once values have places
void crdi_bonds_start(crd_master* m);                             ///< at the start of the run
void crdi_bonds_balance(crd_master* m);                           ///< at each communication point
/// This bond corrects the connection, if that can be done.
crd_status crdi_bond_mark(crdi_plan* plan, const crdi_bond* p, crdi_connection* k);
/// Whatever the angles: N.m times rad/s is a power.
bool crdi_bond_is_power(const crd_dimension* f, const crd_dimension* v);
void crdi_bond_report(const crdi_bond* p, crd_bond_report* r);
// probing.c: power bonds whose feedthrough is found by probing
crd_status crdi_probing_plan(crdi_plan* plan, const crdi_energy* energy, crdi_bond* p,
                             crdi_connection* action, crdi_connection* flow);
crd_status crdi_probing_bind(crdi_plan* plan, crdi_bond* p);
void crdi_probing_start(crd_master* m, crdi_bond* p);
void crdi_bonds_probe(crd_master* m, double t); ///< at the end of a step: gains, fresh outputs
void crdi_probing_apply(crdi_probing* q);       ///< what is held over the next one
