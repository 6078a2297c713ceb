// Baumann 2020, nonlinear example: the cut oscillator with the stop, its impacts, and the network
// for v1 that is trained while it runs.
//
// crdi_stop_run does it all: one simulation with given continuations, optionally with training, and
// every number that the paper or its figures show. `see` gets each row for figures 9 to 12 (columns
// t, x1, v1, v1_hat, energy).
#pragma once
#include "cardan/learn.h"
#include "reproduce/oscillator.h"

enum { CRDI_STOP_IMPACTS = 64 };

typedef struct crdi_stop_run_options {
    crdi_oscillator oscillator; ///< default crdi_oscillator_defaults(true)
    double until;               ///< s; default 500
    int k;                      ///< default 3
    crdi_sampling sampling;     ///< default after
    bool whole;                 ///< the uncut oscillator: no coupling, no training
    /// For x1, v1 and F; of `linear` only a is used, unless `own`.
    const crd_linear* linear;
    bool own; ///< A, too
    /// For v1 instead of `linear`, NULL: none. Trained if `train`.
    const crd_network* network;
    /// NULL: no training. k is that of the options. All samples of v1 since t = 0 are trained on at
    /// `train_at`, and the network takes over at `swap_at`, the time that training takes in another
    /// process.
    const crd_training* train;
    double train_at, swap_at; ///< default 5 and 8 s
    double smooth_from,
        smooth_to;    ///< after and until when the smooth part is measured; default 8, 50 s
    double late_from; ///< where late impacts and amplitudes are; default 450 s
    void (*see)(void* user, const crdi_row* row); ///< NULL, or called for every macro step
    void* user;
} crdi_stop_run_options;

crdi_stop_run_options crdi_stop_run_defaults(void);

/// An impact and what v1's continuation made of the jump, as parts of the jump: 1 is right.
typedef struct crdi_jump {
    crdi_impact impact;
    double over, under; ///< largest and smallest (v1_hat - v-) / (v+ - v-) within 14 macro steps;
                        ///< `under` only after the jump has reached the continuation
} crdi_jump;

typedef struct crdi_stop_result {
    crdi_jump jumps[CRDI_STOP_IMPACTS]; ///< the first ones
    int jump_count;                     ///< of all, may be larger than CRDI_STOP_IMPACTS
    int late_impacts;                   ///< after late_from
    double late_max, late_min;          ///< of x1 after late_from
    double energy;                      ///< at the end
    double
        smooth_rms; ///< error of v1_hat from smooth_from to smooth_to, without the steps at jumps
    double smooth_worst;
    crd_training_report report; ///< of the training
} crdi_stop_result;

/// CRD_E_RANGE: neither weights nor `whole`, or times that make no sense; also what training says.
crd_status crdi_stop_run(crd_context* ctx, const crdi_stop_run_options* opt, crdi_stop_result* out);
