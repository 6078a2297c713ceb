// Power bonds: the energy that the exchange adds or takes, and what is done about it.
#pragma once
#include "master/plan/plan.h"

/// One end of a component: a unit, what it gives, and what it acts with. SI at the unit that gives
/// v.
typedef struct crdi_port {
    int index; // of the member
    const crdi_member* member;
    const crdi_connection* of;    // of what it gives
    const crdi_connection* in[2]; // the partner's signal; the displacement beside a flow, NULL
    const double *out, *rate;     // what it gives; its derivative, NULL: not known
    double out_gain, out_offset, in_gain[2], in_offset[2];
    bool refreshed;   // outputs are evaluated again with fresh inputs
    bool probed;      // run: D is that of the bond's probes
    bool declared;    // its unit says what it follows
    bool through[2];  // what it gives follows the input at once ...
    bool known[2];    // run: ... and D says how much
    double D[2];      // run
    bool moving;      // run: D changes
    double time;      // run: of the last end of a step
    double rate_last; // run: derivative of what moves by itself then, NaN: not known
    double o;         // run: what it gave then
    double end[2], shown[2], held[2]; // run: inputs at the end, at which o was evaluated, and as
                                      // sampled then
    double work[2];                   // run: J, along the partner's signal; along the displacement
    struct crdi_far* far;             // NULL: neither unit of the bond is far away
    double age;                       // run: s, of what comes from there, with the way to it
    double corrected[2], correction;  // run: what corrections have in it; that of the displacement
} crdi_port;

/// One component of a power bond: f and v of one direction.
typedef struct crdi_axis {
    crdi_connection *action, *flow; // of f to v's unit, and of v to f's unit
    const double *f, *v;            // in the outputs of their units
    double gain, offset;            // to SI, f as it arrives: gain * *f + offset
    double v_gain, v_offset;        // to SI, v as its unit gives it
    double back_gain;               // v as it arrives / v as its unit gives it
    double in_unit, back_in_unit;   // 1 in SI, in the unit of f's and of v's input
    crdi_connection* target;        // gets the correction, NULL: none does
    crdi_prediction* corrected;     // of it, NULL: it has a coupling
    crdi_connection* motion;        // the displacement beside the velocity, NULL: none is connected
    bool moves;                     // that is corrected with it
    double x_seen, lasting;         // run: displacement at the last exchange; correction that stays
    struct crdi_spring* spring;     // f and v are displacements with it between them; NULL: no
    bool flipped;                   // written the other way round: f is a velocity, v a force
    crdi_port ports[2];             // of the unit that gives f, of the one that gives v
    const double* x;                // displacement beside v, NULL: none is connected
    double x_gain, x_last;          // to SI; run: at the last end of a step
    double moved, missed;           // run: squares of its way, and of what is not the flow's
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
    crd_bond_state state;       // run
    crdi_probing* probing;      // NULL: nothing is probed
    int64_t every;              // ticks between two balances
    double time;                // run: of the last one
    double created;             // run: J, balance of what acted at both ends; > 0: put in
    double prompt_mu;           // mu without what is late
    bool late[2];               // action, flow: may be late beyond the step
    double late_sum, late_time; // run: of that, s s; s
    double power;               // run: W, of the last exchange
    double worked;              // run: J of it by corrections
    double largest;             // run: largest magnitude of it so far
    crdi_offer* signals;        // for the record
    int signal_count;
} crdi_bond;

typedef struct crdi_energy {
    crdi_bond* bonds;
    int bond_count;
    const crdi_bond**
        paired; // bonds with a pair, which are none of those: they have their own account
    int paired_count;
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
/// What a bond has done so far, for those who watch the run.
typedef struct crdi_bond_balance {
    double created; ///< J that came out of the bond and did not go in; < 0: it took them
    double largest; ///< largest magnitude of it so far, J
    double passed;  ///< sum of |f v| H, J: inflated by an explosion
    double power;   ///< W created over the last exchange
} crdi_bond_balance;
crdi_bond_balance crdi_bond_get_balance(const crdi_bond* p);
void crdi_bond_report(const crdi_bond* p, crd_bond_report* r);
// delays.c
void crdi_bond_find_mu(crdi_plan* plan, crdi_bond* p);
/// mu with what is measured of channels and benches; h: since the last exchange.
void crdi_bond_follow_delay(crd_master* m, crdi_bond* p, double h);
bool crdi_member_is_far(const crd_unit* u);        ///< its data may be old
double crdi_member_age(crd_master* m, int member); ///< s, there and back; 0: not known
// balance.c: what a bond creates, from the signals that acted
/// The connection beside a velocity that carries its integral, as far as units say; NULL: none.
crdi_connection* crdi_balance_displacement(const crdi_plan* plan, const crdi_connection* v);
void crdi_balance_bind(const crdi_plan* plan, crdi_axis* x);
crd_status crdi_balance_make_room(crdi_plan* plan, crdi_axis* x); ///< behind bind
void crdi_balance_start(crd_master* m, crdi_axis* x);
void crdi_balance_probe(crdi_axis* x, const crdi_probing* q);
void crdi_balance_step(crd_master* m, crdi_axis* x);    ///< at the end of each tick
double crdi_balance_of(const crdi_axis* x);             ///< J created so far
double crdi_balance_of_corrections(const crdi_axis* x); ///< of them by corrections, as they acted
/// f works along the displacement that is given, not along the flow.
bool crdi_balance_by_motion(const crdi_axis* x);
// spring.c: bonds of two displacements
/// `name` of the bond, for messages. Both velocities are looked for if there is a damping.
crd_status crdi_spring_plan(crdi_plan* plan, const crd_bond_spec* spec, const char* name,
                            crdi_axis* x);
crd_status crdi_spring_bind(const crdi_plan* plan, const crdi_bond* p, crdi_axis* x);
void crdi_spring_start(const crd_master* m, crdi_axis* x);
void crdi_spring_step(const crd_master* m, crdi_axis* x, double h);
double crdi_spring_created(const crdi_axis* x);
double crdi_spring_speed(const crdi_axis* x); ///< of the second displacement, over the last step
/// What a connection given its unit over the step of length h that has just ended, in its own unit.
crd_poly crdi_given_over(const crd_master* m, const crdi_connection* k, double h, double held);
// probing.c: power bonds whose feedthrough is found by probing
crd_status crdi_probing_plan(crdi_plan* plan, const crdi_energy* energy, crdi_bond* p,
                             crdi_connection* action, crdi_connection* flow);
/// The connection carries a displacement that may belong to the flow: between the same units, the
/// flow times a time. Radians do not count.
/// What an output is in, or its input where it says nothing; factor to SI of the output's numbers.
bool crdi_connection_dimension(const crdi_plan* plan, const crdi_connection* k, crd_dimension* out);
bool crdi_is_displacement(const crdi_plan* plan, const crdi_connection* k,
                          const crdi_connection* flow);
crd_status crdi_probing_bind(crdi_plan* plan, crdi_bond* p);
void crdi_probing_start(crd_master* m, crdi_bond* p);
void crdi_bonds_probe(crd_master* m, double t); ///< at the end of a step: gains, fresh outputs
void crdi_probing_apply(crdi_probing* q);       ///< what is held over the next one
