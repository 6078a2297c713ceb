// Baumann 2020: two masses with springs and dampers, cut in the middle and coupled by samples that
// come late. Each half is propagated exactly over a macro step, so what differs from the uncut
// oscillator is the coupling's doing.
//
//     m1 x1'' = -c1 x1 - d1 v1 + F,   F = cc (x2 - x1) + dc (v2 - v1)
//     m2 x2'' = -c2 x2 - d2 v2 - F
//
// Half 1 (mass 1) sends x1 and v1. Half 2 (mass 2) works out F from them and sends F. A stop may
// keep mass 1 from going below a position: it bounces back with e times its speed.
//
// Usage: fill the options (crdi_oscillator_defaults has the paper's numbers), crdi_cut_init, then
// crdi_cut_step once per macro step, each giving a row; or crdi_whole_init and crdi_whole_step for
// the uncut oscillator, whose rows have the same columns. Nothing allocates; 500 000 steps take a
// fraction of a second. src/reproduce/stop.h runs the paper's example with all its results.
#pragma once
#include "cardan/coupling.h"

/// SI units.
typedef struct crdi_oscillator {
    double m1, m2, c1, c2, cc, d1, d2, dc;
    double x1, v1, x2, v2; ///< at t = 0
    double step;           ///< macro step
    bool stop;             ///< there is a stop for mass 1
    double stop_at, e;     ///< its position, and what is left of the speed
} crdi_oscillator;

/// m 100 and 1, all c 10, all d 0.01, x1 = x2 = 1, step 1 ms; the stop, unless `stop` is false, at
/// -0.1 with e = 0.7.
crdi_oscillator crdi_oscillator_defaults(bool stop);

/// What continues one coupling signal. One of the three is set, borrowed.
typedef struct crdi_continuation {
    const crd_linear* linear;   ///< a, and A between the macro steps if it has one
    const crd_network* network; ///< held between the macro steps
    crd_coupling* element;      ///< any; is fed and asked by the simulation
} crdi_continuation;

/// F depends on the inputs of half 2 at once. At a macro step it is sampled before they are
/// renewed, or after.
typedef enum crdi_sampling {
    CRDI_SAMPLE_AFTER /* "plus" */,
    CRDI_SAMPLE_BEFORE /* "minus" */
} crdi_sampling;

/// An impact on the stop.
typedef struct crdi_impact {
    double t, before, after; ///< time and speeds
} crdi_impact;

/// The state at a macro step, as figures want it.
typedef struct crdi_row {
    int64_t n;
    double t, x1, v1, x2, v2;
    double F;                     ///< as sampled; of the uncut oscillator the true one
    double energy;                ///< kinetic, and of the three springs
    double x1_hat, v1_hat, F_hat; ///< what the halves were told for this time; uncut: the truth
    bool hit;                     ///< `impact` is of the macro step before this row
    crdi_impact impact;
} crdi_row;

enum { CRDI_CUT_HISTORY = CRD_TAPS_MAX + CRD_LATENCY_MAX + 1, CRDI_CUT_SIGNALS = 3 };

/// The cut oscillator. Read `row` after init and after each step; the rest is private. The
/// continuations may be replaced between two steps.
typedef struct crdi_cut {
    crdi_oscillator o;
    int k; ///< latency of every signal in macro steps
    crdi_sampling sampling;
    crdi_continuation x1, v1, F;
    crdi_row row;
    double input[CRDI_CUT_SIGNALS][2]; // value at the macro step, and per theta
    double history[CRDI_CUT_SIGNALS][2 * CRDI_CUT_HISTORY]; // each sample twice, from `head` on
    int head;
} crdi_cut;

/// The state at t = 0: all histories before it are the initial values. `k` is 0 ..
/// CRD_LATENCY_MAX.
void crdi_cut_init(crdi_cut* s, const crdi_oscillator* o, int k, crdi_sampling sampling,
                   crdi_continuation x1, crdi_continuation v1, crdi_continuation F);
/// To the next macro step.
void crdi_cut_step(crdi_cut* s);

/// The uncut oscillator, exactly, seen every `step`.
typedef struct crdi_whole {
    crdi_oscillator o;
    crdi_row row;
    double matrix[16]; // x' = matrix x with x = x1, v1, x2, v2
    double step[16];   // exp(matrix step)
} crdi_whole;

/// CRD_E_RANGE: numbers that are not finite.
crd_status crdi_whole_init(crdi_whole* s, const crdi_oscillator* o);
void crdi_whole_step(crdi_whole* s);
