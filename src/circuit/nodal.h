// The fast form. A netlist becomes a network (network.h); a method replaces each branch by a
// conductance and a current that its history makes (companion model):
//     derivative at the end of the step: x' = w x1 + history,   i1 = g v1 + j,
//     1 / g = R + w L + S / w
// What remains is A u = r for the unknown potentials, factored once for each w. Unknowns that
// devices touch are `active` and come last: the others are eliminated once (Schur complement), and
// Newton's method runs in the active ones alone.
#pragma once
#include "circuit/law.h"
#include "circuit/network.h"
#include "circuit/sparse.h"

#include <math.h>

enum {
    CRDI_DENSE_MOST = 24,  // unknowns that are solved by an explicit inverse
    CRDI_ACTIVE_MOST = 48, // active unknowns that are solved densely
    CRDI_HISTORY = 3,
};

// ---- nodal_linear.c: A x = b, factored once ----------------------------------------------------

typedef enum crdi_linear_kind {
    CRDI_LINEAR_DENSE,     // inverse
    CRDI_LINEAR_PATHS,     // symmetric, mostly tridiagonal in some order
    CRDI_LINEAR_SYMMETRIC, // L D L^T
    CRDI_LINEAR_KLU,
} crdi_linear_kind;

typedef struct crdi_linear {
    crdi_linear_kind kind;
    int32_t n;
    size_t count;         // of entries
    int32_t* place;       // DENSE: (count) row * n + column
    double* inverse;      // DENSE: see crdi_dense_apply
    crdi_sparse sparse;   // pattern; KLU: factors
    int32_t *first, *row; // SYMMETRIC: L by columns, in the order of elimination
    int32_t *upper_first, *upper_row, *upper_slot, *parent, *order, *flag, *pattern, *length;
    double *value, *pivot;  // pivot: 1 / D
    struct crdi_slim* slim; // (n) columns with two entries at most, for solving
    double* work;
    struct crdi_paths* paths; // PATHS
} crdi_linear;

// Entries (count) are given by their places; those at the same place are summed. `symmetric`: it
// is, and positive definite. `chains`: look for them. Memory comes from `a`; clear is for the rest.
crd_status crdi_linear_init(crdi_linear* l, crd_arena* a, int32_t n, bool symmetric, bool chains,
                            size_t count, const int32_t* rows, const int32_t* columns);
void crdi_linear_clear(crdi_linear* l);
crd_status crdi_linear_factor(crdi_linear* l, const double* values); // CRD_E_CONVERGENCE: singular
void crdi_linear_solve(crdi_linear* l, double* b);
bool crdi_linear_regular(crdi_linear* l); // after factor: not singular but for rounding
int64_t crdi_linear_nonzeros(const crdi_linear* l);

// ---- nodal_paths.c: matrices with long paths ---------------------------------------------------

typedef struct crdi_paths crdi_paths;
// *out is NULL if most unknowns lie on none.
crd_status crdi_paths_create(crd_context* ctx, int32_t n, size_t count, const int32_t* rows,
                             const int32_t* columns, crdi_paths** out);
void crdi_paths_destroy(crdi_paths* p);
crd_status crdi_paths_factor(crdi_paths* p, const double* values); // CRD_E_CONVERGENCE: singular
void crdi_paths_solve(crdi_paths* p, double* b);
int64_t crdi_paths_inside(const crdi_paths* p); // unknowns
int64_t crdi_paths_nonzeros(const crdi_paths* p);

// out = m x. Matrices (rows x columns) lie column by column, columns a multiple of 4 apart; out has
// as much room, and x may not be part of it.
static inline int crdi_dense_stride(int rows)
{
    return (rows + 3) & ~3;
}
void crdi_dense_apply(int rows, int columns, const double* m, const double* x, double* out);
void crdi_dense_apply_to(int rows, int columns, const double* m, const double* x,
                         const double* start, double* out); // out = start + m x

// ---- nodal_matrix.c: the matrix of a network ---------------------------------------------------

typedef struct crdi_assembly {
    size_t entries;
    int32_t *row, *column;
    double* value;
    size_t driven;
    int32_t *driven_row, *driven_tie; // r[row] -= value * off[tie]; tie is a potential
    double* driven_value;
} crdi_assembly;

// Places, and values for w. The walk is the same every time.
crd_status crdi_assembly_init(crdi_assembly* a, crd_arena* memory, const crdi_network* net);

// What r is made of besides histories: sources. r has unknowns + 1 numbers, the last is nobody's.
void crdi_network_offsets(const crdi_network* net, const double* source, double* off);
void crdi_network_drive(const crdi_network* net, const crdi_assembly* a, const double* driven_value,
                        const double* source, const double* off, double* r);
// Potentials of ties, from those of unknowns
void crdi_network_spread(const crdi_network* net, const double* off, double* pot);

// Everything that depends on w.
typedef struct crdi_nodal_set {
    double w; // 0: not made
    int64_t used;
    double *g, *sw, *lw;     // (branches with state): 1 / (R + L w + S / w), S / w, L w
    double* driven_value;    // (driven)
    crdi_linear linear;      // of the unknowns that are not active
    double* base;            // matrix of the active ones without devices
    double *condense, *back; // few unknowns: [A_ll^-1; A_al A_ll^-1], A_ll^-1 A_la
    double* steady;          // (unknowns + 1) what constant sources make of r
    double *direct, *offset; // few: what z and rc are made of, by j and by constant sources
    double *la_value, *al_value;
} crdi_nodal_set;

// ---- nodal_devices.c ---------------------------------------------------------------------------

typedef struct crdi_device crdi_device;
typedef struct crdi_device_state crdi_device_state;
typedef struct crdi_nodal crdi_nodal;
struct crdi_dae;

// What is not linear, as rows of parts have it. Functions serve devices of one kind that follow
// each other: d->device[first] ..., whose state d->next[first] ... becomes that of the end of the
// step.
typedef struct crdi_device_kind {
    bool nonlinear; // false: a switch, linear where it stands
    // Constants, or a kind for a simpler law; its ends are known. NULL: none
    void (*make)(crdi_nodal* d, crdi_device* e);
    // i = j + g (v(a) - v(b)) at the last iterate, into d->matrix and d->ra; `tangent`: false, an
    // old one may serve. The first device without a value, -1: all have one.
    int32_t (*stamp)(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent);
    // Its own variable follows the solution, bounded: the largest change (0: settled), whose. NULL:
    // it has none, and is settled when the potentials are.
    double (*move)(crdi_nodal* d, int32_t first, int32_t count, double small, int* worst);
    double (*off)(const crdi_nodal* d,
                  int32_t device); // its current, by its curvature; NULL: unknown
    // Guess and history of a step. NULL: nothing
    void (*begin)(crdi_nodal* d, int32_t first, int32_t count, const double* weights,
                  bool trapezoid);
    void (*settle)(const crdi_nodal* d, int32_t first, int32_t count, double w); // after the step
    void (*take)(const struct crdi_dae* dae, const crdi_device* e, crdi_device_state* s); // begins
} crdi_device_kind;

typedef struct crdi_device_run { // devices of one kind
    const crdi_device_kind* kind;
    int32_t first, count;
} crdi_device_run;

typedef struct crdi_column { // what an expression uses, or half of a pair
    int32_t u;               // active unknown, or trash
    int32_t potential;
    int32_t slot[2]; // of the matrix, in the rows of both ends
    int32_t use;
    double sign;
} crdi_column;

struct crdi_device {
    const crdi_device_kind* kind;
    bool charged; // a diode with capacitance
    int32_t part;
    int32_t a, b;    // potentials
    int32_t ua, ub;  // active unknowns behind them (B voltage: ua is its row), or trash
    int32_t slot[4]; // (ua, ua), (ua, ub), (ub, ua), (ub, ub) of the matrix
    int32_t c, d;    // potentials that control a switch; d -1: c is an unknown current
    const crd_diode_model* diode;
    double nvt, inverse_nvt, is; // of a diode
    double critical;             // voltage from which on it is limited
    const crd_switch_model* model;
    const crd_expression* law;
    const crd_use* use;
    int uses, columns;
    crdi_column* column;
    double *gradient, *at; // (uses)
    crdi_law* table;       // NULL: it has none
    double* memory;        // of the table
    double value;          // of the law
    // i = j + conductance (v(a) - v(b)), for a law plus `slope` times its gradient times changes;
    // of a diode v(a) - v(b) - v. Of a diode: v is its voltage where it is linear, slope that of
    // its junction's voltage to v.
    double j, conductance, v, slope;
    double history; // of its charge
};

struct crdi_device_state {
    double v[4]; // of a junction, now and in the last steps
    double i;    // current
    double charging, q[3];
    double closed;
};

struct crdi_nodal {
    crd_circuit* c;
    crd_arena arena; // of all below but what begins and ladders have
    crdi_network net;
    int32_t linear, active; // unknowns: 0 .. linear-1, linear .. linear+active-1
    bool whole;             // all are active, by KLU in each iteration
    bool nonlinear;         // devices other than switches
    bool laws;              // devices that are settled when the potentials are
    bool limited;           // devices with a variable of their own that moves only so far: diodes
    bool switches;          // devices that are linear
    bool symmetric;
    bool few; // laws between few unknowns, nothing else that varies: steps have a shorter way
    crdi_assembly all;
    size_t ll_count, la_count, al_count, aa_count;
    int32_t *ll, *la, *al, *aa; // numbers of entries
    double* ll_value;
    crdi_sparse sparse; // whole: pattern with devices, factors
    size_t base_count;
    crdi_nodal_set set[2];
    int sets;
    crdi_nodal_set* now;
    int64_t clock;

    int32_t *row_from, *row_to; // (branches with state) rows in r
    const crd_waveform** wave;  // (sources) NULL: 0
    int32_t* varying;           // (varying_count) sources that are not constant
    int32_t varying_count;
    // What sources drive, constant ones first: numbers of driven entries, flows, rows.
    int32_t *drive_order, *flow_order, *row_order;
    int32_t drive_constant, flow_constant, row_constant, row_count;

    crdi_device* device;
    crdi_device_run* run; // (runs)
    int32_t runs;
    double* room; // of all devices
    crdi_column* columns;

    // state; i, vc and vl are those of branches and rows with state
    double* pot;                  // (potentials)
    double* source;               // (sources) at the present time
    double* i[CRDI_HISTORY + 1];  // newest first; the last one is spare
    double* vc[CRDI_HISTORY + 1]; // voltages of capacitances
    double* vl;                   // voltages of inductances
    double age[2];                // how long ago i[1] and i[2] were
    double* shift;                // (parts) of capacitors in series, NULL: there are none
    crdi_device_state* state;     // (devices)
    double* before;               // (unknowns) a step ago, for the guess
    // work
    double *r, *j, *ec, *off; // r: unknowns + 1; j, ec: states; off: potentials
    double* z;                // (unknowns + 4)
    // With diodes a step is solved for changes: currents that are small differences of large
    // products (a capacitor between two nodes that nothing else holds) would drown the leakage.
    const double* p0; // (potentials) what `ua` is added to: p_before, or without diodes `off`
    double *p_before, *delta;      // those expected, with the sources of now; the changes found
    const double* latest;          // potentials that belong to i[0] and vc[0]
    double *matrix, *rc, *ra, *ua; // active ones, one more each; rc: r condensed
    uint8_t* is_current;           // (active)
    double *pot_saved, *source_saved, *vl_saved, *before_saved, *room_saved;
    double theta_saved;
    crdi_device_state* state_saved;
    crdi_device_state* next;
    double* tie_current; // (ties)
    bool ties_known;
    int worst;    // device that did not settle
    double theta; // by how much the first iteration of a step left its error too large; saved
    size_t room_count;

    struct crdi_nodal_ladder* ladder; // NULL: it is none

    // beginnings
    crd_arena begin_arena;
    crdi_network begin_net[2]; // given, rest
    crdi_assembly begin_all[2];
    crdi_linear begin_matrix[2];
    double *begin_v, *begin_i, *begin_work; // (nodes), (parts)
    crd_circuit* reference;                 // DAE form, where a beginning is not plain
};

// Current of a part by its place; branches with state from `i` (NULL: none have).
double crdi_network_current(const crdi_network* net, const double* pot, const double* source,
                            const double* i, const crdi_device_state* state,
                            const double* tie_current, int32_t part);
void crdi_network_tie_currents(const crdi_network* net, const double* pot, const double* source,
                               const double* i, const crdi_device_state* state,
                               double* tie_current);

crd_status crdi_nodal_split(crdi_nodal* d);    // constant and varying sources
crd_status crdi_nodal_matrices(crdi_nodal* d); // places, after devices
// What sources add to r: the constant ones or the others.
void crdi_nodal_drive(const crdi_nodal* d, const crdi_nodal_set* s, bool constant, double* r);
// Sets d->now for this w. May allocate the first time.
crd_status crdi_nodal_choose(crdi_nodal* d, double w);

crd_status crdi_nodal_partition(crdi_nodal* d); // active unknowns last
crd_status crdi_nodal_devices(crdi_nodal* d);   // devices, after the partition
// History of charges: weights (4), or trapezoid: -w q - charging
void crdi_nodal_charges(crdi_nodal* d, const double* weights, bool trapezoid);
// d->ra becomes d->ua, d->next. d->ua is the guess.
crd_status crdi_nodal_newton(crdi_nodal* d, double t);
void crdi_nodal_guess_again(crdi_nodal* d);                      // without looking ahead
void crdi_nodal_settle(crdi_nodal* d, double w);                 // d->next becomes the state
bool crdi_nodal_switch(crdi_nodal* d, crdi_device_state* state); // at the present potentials

// For the stamps of parts:
static inline void crdi_device_stamp(crdi_nodal* d, const crdi_device* e, double g, double j)
{
    double *m = d->matrix, *r = d->ra;
    m[e->slot[0]] += g;
    m[e->slot[1]] -= g;
    m[e->slot[2]] -= g;
    m[e->slot[3]] += g;
    r[e->ua] -= j;
    r[e->ub] += j;
}
static inline double crdi_device_across(const crdi_nodal* d, const crdi_device* e) // v(a) - v(b)
{
    return d->p0[e->a] - d->p0[e->b] + (d->ua[e->ua] - d->ua[e->ub]);
}
static inline int32_t crdi_device_active(const crdi_nodal* d, int32_t potential) // or trash
{
    const int32_t root = d->net.root[potential];
    return root >= 0 ? root - d->linear : d->active;
}
// Of a law: value at d->ua, and gradient unless the old one is to serve. false: it has none.
static inline bool crdi_device_evaluate(crdi_nodal* d, crdi_device* e, double t, bool tangent)
{
    for (int k = 0; k < e->uses; k++) {
        if (e->use[k].kind == CRD_USE_INPUT) { e->at[k] = d->c->inputs[e->use[k].a]; }
    }
    for (int k = 0; k < e->columns; k++) {
        const crdi_column* c = &e->column[k];
        const double x = d->p0[c->potential] + d->ua[c->u]; // what is known does not change
        e->at[c->use] = c->sign > 0 ? x : e->at[c->use] - x;
    }
    double* gradient = tangent ? e->gradient : NULL;
    e->value = e->table ? crdi_law_eval(e->table, e->at, gradient, e->memory)
                        : crd_expression_eval(e->law, e->at, t, gradient);
    bool known = isfinite(e->value);
    for (int k = 0; k < e->columns && tangent; k++) {
        known = known && isfinite(e->gradient[e->column[k].use]);
    }
    return known;
}
// What it uses pulls with `factor` times the gradient in the rows of both ends; j is what the
// current (or voltage) is when all unknowns are 0.
static inline void crdi_device_pull(crdi_nodal* d, crdi_device* e, double factor, double j)
{
    double *m = d->matrix, *r = d->ra;
    for (int k = 0; k < e->columns; k++) {
        const crdi_column* c = &e->column[k];
        const double g = factor * c->sign * e->gradient[c->use];
        m[c->slot[0]] += g;
        m[c->slot[1]] -= g;
        j -= g * d->ua[c->u];
    }
    e->j = j;
    e->slope = factor;
    r[e->ua] -= j;
    r[e->ub] += j;
}
void crdi_device_settle_law(const crdi_nodal* d, int32_t first, int32_t count, double w);

// ---- nodal_ladder.c: the fused steps of a network that is a ladder -----------------------------

crd_status crdi_nodal_ladder_init(crdi_nodal* d); // d->ladder, if it is one
void crdi_nodal_ladder_clear(crdi_nodal* d);
bool crdi_nodal_ladder_can(const crdi_nodal* d); // the step that comes, after the method's start
crd_status crdi_nodal_ladder_step(crdi_nodal* d, double t);
void crdi_nodal_ladder_sync(crdi_nodal* d);   // the arrays get what the ladder knows
void crdi_nodal_ladder_leave(crdi_nodal* d);  // and the ladder forgets it: the arrays will change
void crdi_nodal_ladder_forget(crdi_nodal* d); // the arrays have changed
// The same for what somebody looks at: a potential, a branch with its ends, the current of a part.
void crdi_nodal_ladder_look(crdi_nodal* d, int32_t potential);
void crdi_nodal_ladder_look_branch(crdi_nodal* d, int32_t branch);
void crdi_nodal_ladder_look_part(crdi_nodal* d, int32_t part);
size_t crdi_nodal_ladder_numbers(const crdi_nodal* d); // of a saved state
void crdi_nodal_ladder_save(const crdi_nodal* d, double* to);
void crdi_nodal_ladder_restore(crdi_nodal* d, const double* from);
// Instructions for the steps of a ladder (crdi_chain_use). false: this circuit is none.
bool crdi_circuit_use(crd_circuit* c, int set);

crd_status crdi_nodal_step(crd_circuit* c);
void crdi_nodal_flatten(crdi_nodal* d);
void crdi_nodal_sources(crdi_nodal* d, double t, bool all);

crd_status crdi_nodal_begin_init(crdi_nodal* d);
void crdi_nodal_begin_clear(crdi_nodal* d);
crd_status crdi_nodal_begin(crd_circuit* c, double t);
