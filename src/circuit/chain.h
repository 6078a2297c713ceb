// Chains: nodes in a row, each linked to its two neighbours. Their matrices are tridiagonal, and a
// long one is cut into lanes that one vector instruction serves together (chain_lanes.h).
//
// Results do not depend on the instruction set: every processor adds and multiplies the same
// numbers in the same order.
#pragma once
#include "cardan/base.h"

// The order in which a symmetric matrix with entries at these places is tridiagonal: order[k] (n)
// is what comes k-th. *is: there is one.
crd_status crdi_chain_order(crd_context* ctx, int32_t n, size_t count, const int32_t* rows,
                            const int32_t* columns, int32_t* order, bool* is);

// ---- a symmetric tridiagonal matrix ------------------------------------------------------------

typedef struct crdi_chain crdi_chain;

crd_status crdi_chain_create(crd_context* ctx, int32_t n, crdi_chain** out); // n >= 1
void crdi_chain_destroy(crdi_chain* c);
// A[k][k] = d[k] (n), A[k][k+1] = A[k+1][k] = e[k] (n - 1), positive definite. May allocate.
// CRD_E_RANGE: it is not but for rounding, or not finite; the sentence names the row.
crd_status crdi_chain_factor(crdi_chain* c, const double* d, const double* e);
void crdi_chain_solve(crdi_chain* c, double* b); // b becomes x
// Instructions to use, for tests and benchmarks: 0 what every processor has, 1 AVX2, 2 AVX-512; at
// most what is there.
void crdi_chain_use(crdi_chain* c, int set);
int crdi_chain_best(void);                // set that this processor has
const char* crdi_chain_set_name(int set); // "AVX2"

// ---- a ladder ----------------------------------------------------------------------------------
// Between each node k and a known potential E(k) lies at most one branch, R, L and C in series:
// v - E = R i + L i' + vC, vC' = S i (S = 1/C; 0: no capacitor). Links join neighbours: resistors,
// or resistors and inductors in series; and there are conductances to known potentials. A step
// solves for the voltages and moves the branches in one pass over memory.

typedef enum crdi_ladder_method {
    CRDI_LADDER_TR,
    CRDI_LADDER_BDF1,
    CRDI_LADDER_BDF2,
    CRDI_LADDER_BDF3,
} crdi_ladder_method;

typedef struct crdi_ladder_parts {
    const double* link; // (n + 1) S: [k] between nodes k - 1 and k; [0] and [n] to known potentials
    const double* shunt;     // (n) S: other conductances to known potentials
    const double *r, *l, *s; // (n) of the branches
    const bool* branch;      // (n) there is one
    // (n + 1) links with inductors, where link_l > 0: then link is not looked at. NULL: there are
    // none.
    const double *link_r, *link_l;
} crdi_ladder_parts;

typedef struct crdi_ladder crdi_ladder;

// `driven` (ascending) are the nodes that currents from known potentials enter, or whose E is not
// 0. The first and the last one cost nothing; others make their stretch of the chain a little
// slower.
crd_status crdi_ladder_create(crd_context* ctx, int32_t n, const int32_t* driven,
                              int32_t driven_count, crdi_ladder** out);
void crdi_ladder_destroy(crdi_ladder* l);
// For steps of this method and size; the state is void then. May allocate. CRD_E_RANGE names a node
// that hangs on nothing, or a branch of R = L = S = 0.
crd_status crdi_ladder_factor(crdi_ladder* l, const crdi_ladder_parts* parts,
                              crdi_ladder_method method, double step);
int crdi_ladder_levels(const crdi_ladder* l); // past steps that the method needs: 1 .. 3
// Currents and capacitor voltages of the branches (n), the newest level first; `v` are the voltages
// of the nodes with the newest. `link` are the currents of the links (n + 1), from node k - 1 to k;
// NULL without inductors. Potentials are those of crdi_ladder_drive and crdi_ladder_outer.
void crdi_ladder_load(crdi_ladder* l, const double* const* i, const double* const* vc,
                      const double* v, const double* const* link);
// What counts at the end of the next step: current into the node driven[which] from known
// potentials (G E + I), and E of its branch.
void crdi_ladder_drive(crdi_ladder* l, int32_t which, double current, double potential);
// Potentials that the links 0 and n lead to; it only matters if there are inductors in them (what
// their conductances bring is part of the current above, as with any other).
void crdi_ladder_outer(crdi_ladder* l, double left, double right);
void crdi_ladder_step(crdi_ladder* l);
// After the first step since load:
double crdi_ladder_voltage(const crdi_ladder* l, int32_t node);
double crdi_ladder_current(const crdi_ladder* l, int32_t node); // of its branch; 0 without one
double crdi_ladder_capacitor(const crdi_ladder* l, int32_t node);
double crdi_ladder_link(const crdi_ladder* l, int32_t link); // current, with inductors only
// The inverse of load. After it, load brings back what was there to rounding.
void crdi_ladder_store(const crdi_ladder* l, double* const* i, double* const* vc, double* v,
                       double* const* link);
// A state belongs to the method and step that it was saved under.
size_t crdi_ladder_state_size(const crdi_ladder* l); // bytes, multiple of 8; after factor
void crdi_ladder_save(const crdi_ladder* l, void* state);
void crdi_ladder_restore(crdi_ladder* l, const void* state);
void crdi_ladder_use(crdi_ladder* l, int set); // as crdi_chain_use
