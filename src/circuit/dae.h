// The reference form (Rodriguez 2021, 3.2.5 and 3.3): variables x are the voltages of all nodes,
// ground too, and one current per part;
//     Phi(x, t) = 0       m rows: ground, Kirchhoff's current law, laws of parts      (3.6)
//     A x' + b(x) = 0     p rows: capacitors, inductors, charges of junctions         (3.7)
// with n = m + p. A is constant. A diode with a series resistance has a node inside and a second
// current; one with a capacitance has its charge as a variable and the current that loads it.
#pragma once
#include "circuit/circuit.h"
#include "circuit/sparse.h"
#include "shared/circuit_part.h"

#define CRDI_STAGES 4 // of a step at most

typedef struct crdi_dae_part {
    int32_t current; // column of its (total) current, -1: none
    int32_t row;     // of its law
    int32_t device;  // number among those that are limited (diodes), or among switches; -1
    // of those with something inside (diodes): a node, from which a second current flows
    int32_t inner;                    // column of that node, or of nodes[0] if there is none
    int32_t inner_current;            // column of that current, or `current`; -1: neither
    int32_t series_row;               // of what lies before the node inside, -1
    int32_t charge, charging;         // columns of q and q', -1: none
    int32_t charge_row, charging_row; // q = Q(v), q' = i
} crdi_dae_part;

typedef struct crdi_entries { // of a matrix, in the order in which the equations are walked
    int32_t *row, *column;
    double* value; // NULL: they are counted
    size_t count;
    bool placed; // row and column stay as they are
} crdi_entries;

// A matrix made of entries of Phi_x and b_x (source >= 0) and of A (-1 - number).
typedef struct crdi_stack {
    crdi_least least;
    size_t count;
    int32_t* source;
    double* value;
} crdi_stack;

typedef struct crdi_dae_point { // where equations are evaluated
    const double* x;
    double t;
    const double* limit; // voltages about which diodes are linear; NULL: those of x
    double* f;           // (n) gets [Phi; b]
} crdi_dae_point;

typedef struct crdi_dae {
    crd_circuit* c;
    crd_arena arena; // of all below
    int32_t n, m, p;
    int32_t nodes; // columns of voltages
    crdi_dae_part* part;
    int32_t* row_part;    // (n) whose law; -1 - node: Kirchhoff
    int32_t* column_part; // (n) the same for columns
    uint8_t* column_kind; // (n) 0 voltage, 1 current, 2 charge
    int diodes, switches, stages;
    bool whole;     // everything begins with its ic or 0: no operating point
    double leak;    // S across junctions, while a beginning is looked for; else 0
    bool undefined; // while it is looked for: a law had no value and counted as 1 Ohm, 0 V, 0 A
    bool linear;    // given the positions of the switches
    crdi_entries j; // of Phi_x and b_x: Phi_x in rows 0..m-1, b_x in m..n-1
    crdi_entries a; // of A, rows 0..p-1
    double *gradient, *values;

    crdi_sparse newton; // of stages * n
    double* newton_values;
    double weights[CRDI_STAGES][CRDI_STAGES]; // W in sum_j W_ij A x_j + s_i + b(x_i) = 0
    bool factored;
    double gauss_c[CRDI_STAGES], gauss_b[CRDI_STAGES], gauss_w[CRDI_STAGES][CRDI_STAGES];
    double gauss_end[CRDI_STAGES]; // weights of the stages' polynomial at the end of the step

    crdi_stack rest;      // [Phi_x; b_x]: operating point
    crdi_stack given;     // [Phi_x; A]: states given
    crdi_stack algebraic; // Phi_x
    crdi_stack joint;     // x and x' together
    crdi_stack tangent;   // [Phi_x; A] for derivatives
    bool projected;       // tangent is factored and constant

    // The state, one block: x of three times, x', how long ago x[1] and x[2] were, voltages at
    // which diodes were linear, switches.
    double* state;
    size_t state_count;
    double *x[3], *rate, *age, *limit, *closed;
    double* saved; // the state before a step
    // work
    double *next, *delta, *residual, *limits; // (stages * n), the last one (stages * diodes)
    double *history, *product;                // s (stages * p), A x (stages * p)
    double* target;                           // A x as it is wanted (p)
    double* middle;                           // x inside a step (n)
    int32_t worst;                            // column that did not settle
    double changes[3];                        // of volts, amperes, coulombs, see crdi_dae_change
} crdi_dae;

// dae_equations.c
crd_status crdi_dae_layout(crdi_dae* d);
// F (n) = [Phi; b] and the entries of its derivative; diodes are linear about `limit`.
void crdi_dae_eval(crdi_dae* d, const double* x, double t, const double* limit, double* f);
double crdi_dae_expression(crdi_dae* d, const crd_expression* e, const double* x, double t,
                           double* gradient);                               // gradient may be NULL
void crdi_dae_rates(crdi_dae* d, const double* x, double t, double* phi_t); // (m) dPhi/dt
void crdi_dae_multiply(const crdi_dae* d, const double* x, double* ax);     // A x (p)

// For the laws of parts: entries of the derivative, in the order in which they come every time.
static inline void crdi_dae_put(crdi_entries* e, int32_t row, int32_t column, double value)
{
    const size_t k = e->count++;
    if (!e->value) { return; }
    e->value[k] = value;
    if (e->placed) { return; }
    e->row[k] = row;
    e->column[k] = column;
}
// v_a - v_b, in the part's row
static inline double crdi_dae_put_voltage(crdi_dae* d, int32_t part, const double* x)
{
    const crd_part* p = &d->c->n->parts[part];
    crdi_dae_put(&d->j, d->part[part].row, p->nodes[0], 1);
    crdi_dae_put(&d->j, d->part[part].row, p->nodes[1], -1);
    return x[p->nodes[0]] - x[p->nodes[1]];
}
// i, in the part's row
static inline double crdi_dae_put_current(crdi_dae* d, int32_t part, const double* x)
{
    const crdi_dae_part* q = &d->part[part];
    crdi_dae_put(&d->j, q->row, q->current, 1);
    return x[q->current];
}
// v_a - v_b - r i = 0
static inline void crdi_dae_put_resistance(crdi_dae* d, int32_t part, const crdi_dae_point* at,
                                           double r)
{
    const crdi_dae_part* q = &d->part[part];
    at->f[q->row] = crdi_dae_put_voltage(d, part, at->x) - r * at->x[q->current];
    crdi_dae_put(&d->j, q->row, q->current, -r);
}
// left - factor * e(x, t) = 0: returns e and puts its derivatives. `instead`: what counts where a
// law has no value while the beginning is looked for.
double crdi_dae_put_expression(crdi_dae* d, int32_t row, const crd_expression* e,
                               const crdi_dae_point* at, double factor, double instead);
double crdi_dae_expression_slope(crdi_dae* d, const crd_expression* e, const double* x, double t);
// The voltage about which the next iteration is linear. true: it is not what x says.
// Whether all that still moves is rounding: what hangs on blocking diodes alone (1e-12 S) follows
// the last digits of currents elsewhere. `limit` is where the diodes were linearised.
bool crdi_dae_at_rounding(const crdi_dae* d, const double* x, const double* limit);
bool crdi_dae_limit(const crdi_dae* d, const double* x, double* limit, int32_t* worst);
// Moves switches to where x wants them. true: one moved.
bool crdi_dae_switch(crdi_dae* d, const double* x);

// dae_begin.c
crd_status crdi_dae_stacks(crdi_dae* d);
crd_status crdi_dae_begin(crd_circuit* c, double t);
void crdi_dae_stacks_clear(crdi_dae* d);
// Moves x as little as possible to Phi(x, t) = 0 and A x = d->target.
crd_status crdi_dae_pull(crdi_dae* d, double* x, double t);
// x' as near as possible to d->rate with Phi' = 0 and A x' + b = 0 (3.19 .. 3.21).
crd_status crdi_dae_project(crdi_dae* d, const double* x, double t);

// dae_step.c
crd_status crdi_dae_methods(crdi_dae* d);
crd_status crdi_dae_step(crd_circuit* c);
void crdi_dae_flatten(crdi_dae* d); // a constant history
// Two short steps of BDF1 from x[0]; they ask for nothing but A x.
crd_status crdi_dae_settle(crdi_dae* d, double t);
// CRD_E_RANGE: no values of the parts could make the matrix of a step regular.
crd_status crdi_dae_solvable(crdi_dae* d);
crd_status crdi_dae_stuck(const crdi_dae* d, double t, const char* how);
crd_status crdi_dae_undefined(crdi_dae* d, const double* x, double t); // a law without a value
// A change of x (count variables, n of them per stage) relative to the largest of its kind.
double crdi_dae_change(crdi_dae* d, const double* x, const double* delta, int32_t count);

// Whether a residual (count rows, n per stage) is finite; if not, worst says whose it is.
bool crdi_dae_finite(crdi_dae* d, const double* f, int32_t count);

// For tests: x' of a node or of a part's current, and |Phi_x x' + Phi_t|.
double crdi_dae_node_rate(const crd_circuit* c, int32_t node);
double crdi_dae_drift(crd_circuit* c);
