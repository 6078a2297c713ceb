// A network whose links let samples come after a varying number of steps, or lose them: which
// samples of the source an element has is the state of a finite automaton, and the network is a
// linear system that is switched by it.
//
// As in a run: the sample that was taken at t_n is pushed where it arrives, the newest one counts,
// late ones are put in their place, and places that are empty lie on a line between their
// neighbours (element.c, detection none). Outputs are sampled before the update of the inputs.
#pragma once
#include "analysis/analysis.h"
#include "shared/base.h"

enum {
    CRDI_VARIED_TAPS = 32,
    CRDI_VARIED_STATES = 4000,
    CRDI_VARIED_TRANSITIONS = 200000,
    CRDI_VARIED_PENDING = 12,
    CRDI_VARIED_DRAWN = 40000, // steps
};

// Ages of the samples that an element has, as far as they can matter: newest first, up to the first
// one at or behind the element's last tap.
typedef struct crdi_ages {
    int count;
    int16_t age[CRDI_VARIED_TAPS + 1];
} crdi_ages;

typedef struct crdi_next {
    int to;
    double chance;
} crdi_next;

typedef struct crdi_varied_link {
    const crd_plant_link* link;
    const crd_loop_element* element;
    crd_variation v;
    int taps;
    int cap;     // older than that the newest sample is not told to be
    double* a;   // (cap + 1 x taps) weights by the age of the newest sample
    double* A;   // the same of the slope
    bool sloped; // A is not all 0
    int state_count;
    size_t state_capacity;
    crdi_ages* states;
    int* first; // (state_count + 1) into next
    int next_count;
    size_t next_capacity;
    crdi_next* next;
    int column; // of its registers in z
} crdi_varied_link;

// z = (x, of each output y_n .. y_{n-depth}, registers): registers are the samples that elements
// have, where they may be older than any buffer is long. The state of the whole is that of all
// links: sum of state_l * stride_l.
typedef struct crdi_varied {
    crd_context* ctx;
    crd_arena arena;
    const crd_plant* w;
    bool registers;
    bool shared; // all links that vary go through the same states together
    int link_count;
    crdi_varied_link* links;
    int size, states;
    int64_t transitions;
    int *buffer, *depth; // (outputs) first column, oldest age
    double* phi;         // exp([A B 0; 0 0 1; 0 0 0] dT)
    double *u0, *u1;     // (inputs x size) workspace of the map
    double* scale;       // (size) unit of each coordinate
    const char* stopped; // why there is no such system, else NULL
} crdi_varied;

// How the samples of all links may go: with `random` any number of them may be lost, with
// chances, else at most v.burst in a row. `loss` >= 0 instead of that of links that have any.
// If all links together can be in too many states, those that are alike are `shared`: a part of
// what can happen. What is too large even so leaves `stopped`.
crd_status crdi_varied_make(const crd_loop_model* m, bool random, double loss, crdi_varied* out);
void crdi_varied_clear(crdi_varied* s);
// The state of link l in state s of the whole.
int crdi_varied_part(const crdi_varied* s, int state, int l);
// z(n+1) = a z(n) where the step begins with the network's state going from `from` to `to`.
// Without registers `from` does not count. In scaled coordinates.
void crdi_varied_matrix(const crdi_varied* s, int from, int to, double* a);
// States that may follow, and their chances; `list` (crdi_varied_most). Returns how many.
int crdi_varied_next(const crdi_varied* s, int state, crdi_next* list);
int crdi_varied_most(const crdi_varied* s);
// The state in which link l always has samples of age `k` of it; -1: there is none.
int crdi_varied_constant(const crdi_varied* s, const int* k);
// What a deviation of 1 at the output of link l's element does to z in one step; with `slope` of
// its slope per step. `b` (size).
void crdi_varied_kick(const crdi_varied* s, int l, bool slope, double* b);
// Weights of the samples of state `state` of a link, for value and slope, (CRDI_VARIED_TAPS + 1).
void crdi_varied_weights(const crdi_varied_link* l, int state, double* value, double* slope);

// ---- joint spectral radius (radius.c) -----------------------------------------------------------

typedef struct crdi_radius {
    double low, high; // bounds per step
    int period;       // of the sequence that grows by `low` per step
    int* sequence;    // (period) states, from the arena
    bool stopped;     // for effort
} crdi_radius;

crd_status crdi_radius_bound(crdi_varied* s, double effort, crdi_radius* out);

// A norm x^T P x in which no map (count x n x n) grows by more than sqrt(ratio); P (n x n) is where
// it begins, positive definite. It stops when ratio is below 1. Too much effort leaves all as it
// is.
crd_status crdi_common_norm(crd_arena* arena, int n, int count, const double* maps, double* P,
                            double* effort, double* ratio, double* condition);

// ---- second moments (moments.c) -----------------------------------------------------------------

// Spectral radius of the map of second moments over a step. NaN: too much effort. What was made of
// it is taken from `effort`.
// `error` is the residual of its vector: where that is not far below the distance to 1, nothing is
// known.
crd_status crdi_moment_radius(const crdi_varied* s, double* effort, double* out, double* error);
// ln of the growth per step where every link of a random `s` goes its own way, by drawing
// CRDI_VARIED_DRAWN steps (the largest Lyapunov exponent), and its standard error. An estimate;
// NaN: too large. `s` is of links apart from then on.
crd_status crdi_varied_drawn(crdi_varied* s, double* growth, double* error);

// ---- small gain (small_gain.c)
// -------------------------------------------------------------------

typedef struct crdi_gain {
    bool known;     // the loop with hold at constant ages is stable, and sums converge
    double loop;    // < 1: stable for all sequences, with elements that adapt held
    double allowed; // of elements that adapt: deviation over the largest change; < 0: none
} crdi_gain;

crd_status crdi_small_gain(crdi_varied* s, crdi_gain* out);
