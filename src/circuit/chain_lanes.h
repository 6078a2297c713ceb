// A chain in eight lanes.
//
//   node 0 | block 0: lane 0 .. s, lane 1 .. s, ... lane 7 .. s | block 1: ... | tail (1 to 8
//   nodes)
//
// A lane is a stretch of `rows` nodes of which the last one, s, is a separator; row r of all eight
// lanes of a block lies together, so that one vector holds it. Without node 0, the separators and
// the tail (the "kept" nodes) the lanes fall apart. Elimination of a lane's rows from left to
// right,
//     p_r = x_r + f_r + c_r,   l_{r+1} = c_r / p_r,   x_{r+1} = s_{r+1} + l_{r+1} x_r,
// with x the conductance to ground that is left of a row, c that to the right neighbour and f that
// to the separator on the left (f_{r+1} = l_{r+1} f_r), is a sum of positive numbers: nothing
// cancels, however weakly the chain hangs on ground. The right-hand side needs
//     y_r = b_r + l_r y_{r-1},      v_r = y_r / p_r + l_{r+1} v_{r+1} + (f_r / p_r) v_left
// and, for the equation of the separator on the left, the sum of w_r b_r, where w is what 1 V there
// makes of the lane. The chain of the kept nodes is again tridiagonal. Both f and w fall off
// geometrically; `reach` is the row from which on they are below rounding. Where they do not fall
// off within a lane, reach is all of it: the result is exact either way (Polizzi and Sameh 2006 for
// the idea of splitting and spikes).
//
// If no separator feels its neighbours (`apart`), block b can be finished as soon as block b + 1
// was swept forward, while both lie in the cache. Otherwise two passes are needed.
#pragma once
#include "cardan/base.h"

#define CRDI_LANES 8
#define CRDI_KEPT_HEAD 7 // place of node 0 among the kept: then the separators are aligned

typedef enum crdi_lane_mode { // of the factors of a block
    CRDI_LANES_EQUAL,         // one number per row, and one branch for all nodes
    CRDI_LANES_OWN,           // eight numbers per row
    CRDI_LANES_DRIVEN,        // and currents and potentials from outside
    CRDI_LANE_MODES,
} crdi_lane_mode;

typedef struct crdi_lane_block {
    int32_t rows;  // with that of the separators
    int32_t reach; // at most rows - 1
    uint8_t mode;
    int32_t first;     // row among those of all blocks
    const double* lp;  // l, 1/p of a row, ...
    const double* fw;  // f/p, w of a row, ...
    const double* gab; // g, alpha, beta of a row, ...; EQUAL: one such triple
    const double* glb; // g, beta of the link on the left of a row, ...; EQUAL: one such pair
    double* drive;     // current, potential of a row, ...
    double* x;         // state, so many vectors per row
} crdi_lane_block;

typedef struct crdi_lane_past { // what a multistep method takes from which level
    int fresh;                  // pair of vectors that the step writes
    int old[3];                 // newest first
    double c[3], cg[3];         // weights; divided by that of the new value
} crdi_lane_past;

// Memory whose start is aligned to a vector.
typedef struct crdi_lane_memory {
    void* raw;
    double* data;
} crdi_lane_memory;
crd_status crdi_lane_new(crd_context* ctx, size_t doubles, crdi_lane_memory* out); // frees the old
void crdi_lane_free(crd_context* ctx, crdi_lane_memory* m);

typedef struct crdi_lanes {
    crd_context* ctx;
    int32_t n, rows, tail; // rows: of all blocks together
    int32_t blocks, kept;  // kept: with the unused places before the head
    bool apart;
    crdi_lane_block* block;
    double *pl, *pp;       // (kept + 1) l and 1/p of the chain of kept nodes
    double *excess, *link; // (kept) of them
    double* b;             // (kept) right-hand sides, then voltages
    crdi_lane_memory kept_memory, lp, fw, gab, glb, drive;
    double* room; // (4 * longest lane) while a lane is factored
    int32_t longest;
    const struct crdi_lane_kernels* kernels;
} crdi_lanes;

// Factor: conductances to ground `s` (n), between neighbours `c` (n - 1), and what the branches
// are: g, alpha, beta (n), NULL for a bare matrix.
typedef struct crdi_lane_matrix {
    const double *s, *c;
    const double *g, *alpha, *beta;
    const double* link_beta; // (n + 1) of the link on the left; NULL: they are resistors
    const int32_t* driven;   // nodes, ascending
    int32_t driven_count;
    double least; // what a pivot must have of its diagonal
} crdi_lane_matrix;

typedef struct crdi_lane_place { // of a node
    int32_t kept;                // >= 0: not in a block: its place among the kept
    int32_t block, row, lane;
} crdi_lane_place;

crd_status crdi_lanes_init(crdi_lanes* p, crd_context* ctx, int32_t n);
void crdi_lanes_clear(crdi_lanes* p);
// CRD_E_RANGE, without a sentence: node *bad has no positive pivot.
crd_status crdi_lanes_factor(crdi_lanes* p, const crdi_lane_matrix* m, int32_t* bad);
crdi_lane_place crdi_lanes_place(const crdi_lanes* p, int32_t node);
int32_t crdi_lanes_node(const crdi_lanes* p, const crdi_lane_block* b, int32_t row, int32_t lane);
// The whole elimination: `forward` and `backward` sweep one block, in an order that keeps it in the
// cache if it can. The right-hand sides of node 0 and the tail are in b; those of the separators
// come from the sweeps, and voltages of all kept nodes are there afterwards.
void crdi_lanes_solve(crdi_lanes* p, void (*forward)(void* self, int32_t block),
                      void (*backward)(void* self, int32_t block), void* self);
// Where the right-hand sides (voltages) of the separators at the right of the lanes of a block are;
// those at the left are one place before.
static inline double* crdi_lanes_right(const crdi_lanes* p, int32_t block)
{
    return p->b + CRDI_KEPT_HEAD + 1 + CRDI_LANES * (size_t)block;
}

// Right-hand sides of the eight separators on the left are added to, those on the right are set.
typedef void crdi_lane_forward(const crdi_lane_block* b, const crdi_lane_past* past, double* left,
                               double* right);
typedef void crdi_lane_backward(const crdi_lane_block* b, const crdi_lane_past* past,
                                const double* left, const double* right);

typedef struct crdi_lane_kernels {
    crdi_lane_forward* forward[4][2][CRDI_LANE_MODES]; // of a ladder, by method, linked
    crdi_lane_backward* backward[4][2][CRDI_LANE_MODES];
    crdi_lane_forward* chain_forward[2]; // of a matrix
    crdi_lane_backward* chain_backward[2];
    // eight stretches of `rows` numbers <-> rows of eight
    void (*pack)(const double* from, int32_t rows, double* to);
    void (*unpack)(const double* from, int32_t rows, double* to);
} crdi_lane_kernels;

extern const crdi_lane_kernels crdi_lane_kernels_base;
#if defined(__x86_64__)
extern const crdi_lane_kernels crdi_lane_kernels_avx2;
extern const crdi_lane_kernels crdi_lane_kernels_avx512;
#endif
// The best that this processor has; `wanted` < 0. Otherwise 0 base, 1 AVX2, 2 AVX-512, or less.
const crdi_lane_kernels* crdi_lane_choose(int wanted);
