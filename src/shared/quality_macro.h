/// Linear units coupled as a master couples them: one macro step is a linear map of their states
/// and of what the master remembers, and its spectral radius says whether the coupling holds. The
/// exactly coupled system beside it tells growth by the coupling from that of the plant itself.
/// Pure numerics: no units, files or clocks. crdi_macro_init takes memory, eigenvalues do
/// (LAPACK), steps do not.
#pragma once
#include "cardan/quality.h"
#include "shared/base.h"

/// How outputs are evaluated again at the end of a step, with the newest inputs.
typedef enum crdi_macro_refresh {
    CRDI_MACRO_STALE, ///< not at all
    CRDI_MACRO_ASKED, ///< the unit is asked again: y, y', y'' with fresh inputs
    CRDI_MACRO_GAIN,  ///< y + D (u_fresh - u_used), with its derivatives
} crdi_macro_refresh;

/// x' = A x + B u, y = C x + D u; row-major, borrowed.
typedef struct crdi_macro_unit {
    int states, inputs, outputs;
    const double *A, *B, *C, *D;
    int ticks; ///< its macro step in ticks of the grid, >= 1
    int phase; ///< of the tick in which it advances, from 0; all 0: Jacobi
    int takes; ///< derivatives of inputs that it takes, 0...2
    int gives; ///< derivatives of outputs that it gives, 0...2
    crdi_macro_refresh refresh;
    /// Of a unit that makes inner steps: the longest, s, 0: it makes none; the part of one that the
    /// input of the one before decides; y' is that of the polynomial through so many of their ends.
    double longest, past;
    int points;
    int inner;           ///< by init: so few that this matters, 0; phi and gamma are of one of them
    double *phi, *gamma; ///< by init: exp(A h); (3) of integral exp(A (h - s)) B s^k ds
} crdi_macro_unit;

/// From an output to an input.
typedef struct crdi_macro_link {
    int from_unit, from, to_unit, to;
    double gain;
    int phase;  ///< in which the value moves
    bool early; ///< when the target's step begins (Jacobi), else just before it is computed
    crd_predictor predictor;
    bool textbook;      ///< hold takes the newest value; slopes are cut, not projected
    int tap_count;      ///< > 0: a coupling element with fixed weights instead of a predictor:
    const double* taps; ///< value at the step's beginning, of the samples from the newest on
    const double* rise; ///< (tap_count) likewise slope, 1/s; NULL: none
    int depth, kept;    ///< by init: samples that matter; numbers of each
} crdi_macro_link;

/// What a link remembers.
typedef struct crdi_macro_flow {
    crd_history past;
    double* taps;         // newest first
    crd_sample end, used; // output at the end of the step; input there
    crd_poly u;           // s = 0 at the beginning of the target's step
    crd_poly given;       // what the target makes of it
    int time;             // tick of the newest sample
    bool fresh;           // `end` is new
} crdi_macro_flow;

typedef struct crdi_macro_state {
    double* x; // (numbers) of all units in a row; then what those with inner steps remember
    crdi_macro_flow* flows;
} crdi_macro_state;

typedef struct crdi_macro {
    // by the caller
    double tick; ///< s
    int unit_count, link_count;
    crdi_macro_unit* units;
    crdi_macro_link* links;
    int* order; ///< (refresh_count) units that are refreshed, in order
    int refresh_count;
    bool strict; ///< nothing is refreshed, and known inputs are held at their newest value
    // by init
    int states, phases, period; // period: ticks of one step of the map
    int numbers;                // states, and behind them inputs and outputs of inner steps
    int* first;                 // (units) of its states
    int* first_kept;            // (units) of its inputs as they were, and points of each output
    int* stamp;                 // (units) run: tick of its outputs
    crd_sample* outputs;        // run: of all units in a row
    int* first_output;          // (units)
    double *v, *work;
    size_t work_size;
    crdi_macro_state own; // for the map
    crd_arena* arena;
} crdi_macro;

/// Room and discretised units. CRD_E_MEMORY; CRD_E_RANGE: a unit is not finite or far too fast.
crd_status crdi_macro_init(crd_arena* arena, crdi_macro* m);
/// For another tick, s; takes no memory. CRD_E_RANGE.
crd_status crdi_macro_set_tick(crdi_macro* m, double tick);
/// All links at one level: 0 strict hold, 1 first order, 2 second order; by derivatives where
/// there are some or the target takes slopes, else as Adams-Bashforth means. Links with taps stay.
void crdi_macro_set_level(crdi_macro* m, int level);
/// After predictors of links were changed.
void crdi_macro_size_links(crdi_macro* m);
/// A state, all zero.
crd_status crdi_macro_state_init(crd_arena* arena, const crdi_macro* m, crdi_macro_state* s);
/// One step of the map: `period` ticks. `delta` (one per link, may be NULL) is added to what is
/// predicted, s = 0 at the beginning of the target's step; without multi-rate.
void crdi_macro_step(crdi_macro* m, crdi_macro_state* s, const crd_poly* delta);
/// Numbers of a state that count.
int crdi_macro_size(const crdi_macro* m);
void crdi_macro_pack(const crdi_macro* m, const crdi_macro_state* s, double* z);
void crdi_macro_unpack(const crdi_macro* m, const double* z, crdi_macro_state* s);
/// ln of the spectral radius of the map per tick, -INFINITY: all 0. CRD_E_CONVERGENCE,
/// CRD_E_MEMORY.
crd_status crdi_macro_ln_rho(crdi_macro* m, double* out);
/// The largest real part of the exactly coupled system's eigenvalues, 1/s, and the largest
/// magnitude (may be NULL). Links with taps are taken as if they were not late.
/// CRD_E_CONVERGENCE: an algebraic loop without a unique solution.
crd_status crdi_macro_exact(const crdi_macro* m, double* growth, double* fastest);
/// How far motion at the map's eigenvalues drifts away from that of the exactly coupled system
/// before it has decayed (or over 1000 steps), of its size: the largest |mu - e^(lambda h)| / (1 -
/// |e^(lambda h)|) over its eigenvalues lambda, mu the map's nearest. As crdi_macro_exact.
crd_status crdi_macro_deviation(crdi_macro* m, double* out);
