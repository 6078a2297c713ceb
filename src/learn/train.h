// What the files of training share: pairs of inputs and target, descent, least squares, the guard.
#pragma once
#include "cardan/learn.h"

/// Sums run over as many samples side by side, so that a compiler may vectorise them without
/// changing the result.
enum { CRDI_LANES = 8 };

/// What may be said of y_s from y_{s-k}, y_{s-k-1}, ...
typedef enum crdi_pair_kind {
    CRDI_PAIR_SMOOTH, ///< trained on
    CRDI_PAIR_JUMP,   ///< a jump lies between the inputs; trained on wherever it is: jumps are rare
    CRDI_PAIR_HELD,   ///< smooth, held out
    CRDI_PAIR_KINDS,
} crdi_pair_kind;

/// Pairs in blocks of CRDI_LANES: those that are trained on, then in new blocks those held out.
typedef struct crdi_pairs {
    int m;
    int64_t trained, held, dropped; // pairs
    int64_t trained_blocks, held_blocks;
    int64_t of_kind[CRDI_PAIR_KINDS];
    double* x;           // (blocks x m x lanes) inputs, newest first
    double* y;           // (blocks x lanes) targets
    double* on;          // (blocks x lanes) 1, or 0 where a block is not full
    unsigned char* kind; // (blocks x lanes)
    double largest;      // |sample|
} crdi_pairs;

crd_status crdi_pairs_make(crd_context* ctx, const crd_training* t, int m, const double* y,
                           int64_t n, crdi_pairs* out);
void crdi_pairs_clear(crd_context* ctx, crdi_pairs* p);
/// Sums of squared errors by kind.
void crdi_pairs_measure(const crdi_pairs* p, const crd_network* n, double sums[CRDI_PAIR_KINDS]);

/// Numbers of a network of that shape, b3 not among them.
int crdi_network_size(const crd_network* n);
/// A network of the same shape and with the same numbers that crd_network_clear frees.
crd_status crdi_network_like(crd_context* ctx, const crd_network* from, crd_network* out);
/// Lets `n`, which is of crdi_network_like, do what the weights (m) do.
/// CRD_E_UNSUPPORTED: a single leaky ReLU cannot.
crd_status crdi_network_write_linear(crd_context* ctx, crd_network* n, const double* a);

/// Adam from `n` on, in place, with the `loss` of the epochs that were done. `*epochs` falls short
/// of what was asked for if it diverged; then `n` is as it was.
crd_status crdi_adam(crd_context* ctx, const crd_training* t, const crdi_pairs* p, crd_network* n,
                     double* loss, int* epochs);

/// Weights (m) with the smallest squared error on the smooth pairs that are trained on, pulled
/// towards `to` (m) by `ridge` of the mean square of a difference; 1 in sum. If `positive`, no
/// difference between two samples gets a negative weight.
crd_status crdi_ridge(crd_context* ctx, const crdi_pairs* p, const double* to, double ridge,
                      bool positive, double* a);
/// The linear map (m) that `n` is, in the mean over the smooth pairs.
void crdi_mean_map(const crdi_pairs* p, const crd_network* n, double* a);

/// Lets `n`, which is of crdi_network_like, be least squares on the smooth part and safe at jumps.
/// `part`: with too few neurons for all, only the overshoot is prevented. `*done` is false if the
/// shape does not allow it or there are no jumps.
crd_status crdi_train_bounded(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                              bool part, crd_network* n, bool* done);
