// A kind of circuit part is one row: what it is called, which law it has, and what each form of a
// circuit makes of it. Rows stand in src/circuit/parts/, a file for each law; CRD_PARTS of
// cardan/circuit.h lists them. Whoever walks over the parts of a netlist asks the row.
#pragma once
#include "cardan/circuit.h"

#include <math.h>

struct crdi_reading;     // a line of a netlist (circuit/netlist.h)
struct crdi_dae;         // the reference form (circuit/dae.h)
struct crdi_dae_point;   // where its equations are evaluated
struct crdi_device_kind; // what is not linear in the fast form (circuit/nodal.h)

typedef enum crdi_part_fixes { // what its law says about its own voltage and current
    CRDI_FIXES_NOTHING,        // they follow each other
    CRDI_FIXES_VOLTAGE,        // its voltage does not depend on its current
    CRDI_FIXES_CURRENT,        // its current does not depend on its voltage
} crdi_part_fixes;

typedef enum crdi_part_control {
    CRDI_CONTROL_NONE,
    CRDI_CONTROL_VOLTAGE, // nodes[2] - nodes[3]
    CRDI_CONTROL_CURRENT, // that of refs[0]
} crdi_part_control;

typedef enum crdi_part_store { // what it remembers
    CRDI_STORES_NOTHING,
    CRDI_STORES_VOLTAGE, // a capacitor
    CRDI_STORES_CURRENT, // an inductor
} crdi_part_store;

typedef enum crdi_part_model { // what its index counts
    CRDI_MODEL_NONE,
    CRDI_MODEL_WAVE,
    CRDI_MODEL_EXPRESSION,
    CRDI_MODEL_LAW, // an expression, or -1 and a value
    CRDI_MODEL_DIODE,
    CRDI_MODEL_SWITCH,
} crdi_part_model;

// What the network of the fast form makes of it (circuit/network.h).
typedef enum crdi_role {
    CRDI_ROLE_NONE,   // there is no place for it: the reference form takes the netlist
    CRDI_ROLE_OPEN,   // i = 0
    CRDI_ROLE_BRANCH, // R, L and C in series
    CRDI_ROLE_TIE,    // v = source
    CRDI_ROLE_FLOW,   // i = source
    CRDI_ROLE_ROW,    // its current is an unknown: v = factor * control, or what its device says
    CRDI_ROLE_GAIN,   // i = factor * control
    CRDI_ROLE_DEVICE, // i = i(v, ...), not linear
} crdi_role;

typedef enum crdi_network_for {
    CRDI_NETWORK_STEPS,
    CRDI_NETWORK_GIVEN, // a beginning: capacitors are voltage sources, inductors current sources
    CRDI_NETWORK_REST,  // an operating point: capacitors are open, inductors voltage sources of 0
    CRDI_NETWORKS,
} crdi_network_for;

enum { CRDI_INSIDE_NODE = 1, CRDI_INSIDE_CHARGE = 2 }; // variables of a part beside its current

typedef struct crdi_part_kind {
    // words
    const char* article;             // "a diode"
    const char *plural, *thermal;    // as lists of parts have it; NULL: never inside .thermal
    const char *unit, *thermal_unit; // of its value; NULL: none
    // what it is
    crdi_part_fixes fixes, fixes_at_0; // at_0: where its value is 0, and that makes a difference
    crdi_part_control control;
    crdi_part_store stores;
    crdi_part_model model;
    bool couples;   // it has no nodes and no current: it couples two inductors
    bool linear;    // superposition holds
    bool switches;  // it has two positions, and moves between steps only
    bool has_value; // which is finite
    // netlist
    char letter;       // 0: none, another row reads it
    const char* usage; // the line, for who adds one and for the documentation
    crd_status (*read)(struct crdi_reading* r);
    const char* word; // inside .thermal; NULL: none
    crd_status (*read_thermal)(struct crdi_reading* r);
    const char* model_type; // of .model; NULL: none
    crd_status (*read_model)(struct crdi_reading* r, int32_t* index);
    const char* (*check)(const crd_netlist* n, const crd_part* p); // what is wrong; NULL: nothing
    // reference form: Phi(x, t) = 0 and A x' + b(x) = 0 (Rodriguez 2021, Eqs. 3.6 and 3.7)
    unsigned (*inside)(const crd_netlist* n, const crd_part* p);                    // NULL: nothing
    void (*law)(struct crdi_dae* d, int32_t part, const struct crdi_dae_point* at); // Phi or b
    void (*mass)(struct crdi_dae* d, int32_t part); // A; NULL: it has no derivative
    double (*slope)(struct crdi_dae* d, int32_t part, const double* x, double t); // dPhi/dt
    // The voltage about which the next iteration is linear, into limit. true: it is not what x
    // says.
    bool (*limit)(const struct crdi_dae* d, int32_t part, const double* x, double* limit);
    // By how much its current is off at x, being linear about limit
    double (*off)(const struct crdi_dae* d, int32_t part, const double* x, const double* limit);
    // fast form
    crdi_role role[CRDI_NETWORKS];
    double (*drop)(double value, double w, double i); // of a branch: v(i) if x' = w x + history
    const struct crdi_device_kind* device;
    // variable steps: its charge as volts or amperes, *volts says which
    double (*charge)(const crd_circuit* c, int32_t part, bool* volts);
} crdi_part_kind;

#define CRDI_ROW(constant, name) extern const crdi_part_kind crdi_part_##name;
CRD_PARTS(CRDI_ROW)
#undef CRDI_ROW
#define CRDI_COUNT(constant, name) +1
enum { CRDI_PART_KINDS = 0 CRD_PARTS(CRDI_COUNT) };
#undef CRDI_COUNT
extern const crdi_part_kind* const crdi_part_kinds[CRDI_PART_KINDS]; // by crd_part_kind

static inline const crdi_part_kind* crdi_part_kind_of(const crd_part* p)
{
    return crdi_part_kinds[p->kind];
}

static inline const crd_expression* crdi_part_law(const crd_netlist* n, const crd_part* p)
{
    const crdi_part_model m = crdi_part_kind_of(p)->model;
    const bool law = m == CRDI_MODEL_EXPRESSION || (m == CRDI_MODEL_LAW && p->index >= 0);
    return law ? n->expressions[p->index] : NULL;
}

static inline bool crdi_part_is_linear(const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->linear && !(k->model == CRDI_MODEL_LAW && p->index >= 0);
}

static inline bool crdi_part_is_source(const crd_part* p) // V, I: a waveform, an input
{
    return crdi_part_kind_of(p)->model == CRDI_MODEL_WAVE;
}

static inline bool crdi_part_has_charge(const crd_netlist* n, const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->inside && (k->inside(n, p) & CRDI_INSIDE_CHARGE) != 0;
}

static inline crdi_part_fixes crdi_part_fixes_what(const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const bool law = k->model == CRDI_MODEL_LAW && p->index >= 0;
    return k->fixes_at_0 && p->value == 0 && !law ? k->fixes_at_0 : k->fixes;
}

// The root of the tree that `a` hangs in (union-find, paths halved on the way)
static inline int32_t crdi_tree_root(int32_t* tree, int32_t a)
{
    while (tree[a] != a) {
        tree[a] = tree[tree[a]];
        a = tree[a];
    }
    return a;
}

static inline bool crdi_tree_join(int32_t* tree, int32_t a, int32_t b) // false: it was so already
{
    const int32_t x = crdi_tree_root(tree, a), y = crdi_tree_root(tree, b);
    tree[x > y ? x : y] = x > y ? y : x; // ground, 0, stays on top
    return x != y;
}

// How many numbers of the table of its expression a step needs to be there; 0: it looks up nothing
int crdi_step_points(const crd_expression_step* s);

// M = k sqrt(L1 L2) of a part that couples
static inline double crdi_part_mutual(const crd_part* p, double l1, double l2)
{
    return p->value * sqrt(l1 * l2);
}

// Everything begins with its ic or 0, not at an operating point.
bool crdi_netlist_is_given(const crd_netlist* n);
// The voltage that a capacitor begins with: its ic, that of its nodes, 0.
double crdi_netlist_capacitor_ic(const crd_netlist* n, const crd_part* p);

/// How many of its last values the derivative of an output is made of.
int crdi_past_points(crd_circuit_method method);
/// The input over the next step alone: from one value evenly to another, which stays.
crd_status crdi_circuit_set_ramp(crd_circuit* c, int input, double from, double to);
