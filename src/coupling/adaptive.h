// Predictors that learn the signal while it runs, and their mixture.
#pragma once
#include "coupling/history.h"

// Samples between two solutions of what learns, made at once or in parts.
enum { CRDI_REFRESH = 10, CRDI_REFRESH_SPREAD = 20 };

/// A result that is d away from a safe one, whose error is e, costs at most 2 |e| d + d^2 more than
/// that. Only what was gained before is put at stake, so that a run is not worse than the safe one,
/// whatever the signal does. In the beginning there is some credit, and a hundredth of the safe
/// one's own squared error at any time.
typedef struct crdi_account {
    crd_real gained; // by how much the squared errors are less
    crd_real usual;  // squared error of the safe one, outliers apart
    int64_t count;
} crdi_account;
void crdi_account_keep(crdi_account* x, crd_real safe, crd_real result); // errors of the two
/// How far a prediction over k steps may be away from the safe one, whose squared error may be e.
/// Lent: in usual squared errors.
crd_real crdi_account_affords(const crdi_account* x, crd_real e, crd_real lent, int k);

/// How the work of a solution is spread over steps that have other work, too. In halves it is there
/// a step later; in panels, which cost less, once there are samples enough.
typedef enum crdi_spread { CRDI_AT_ONCE, CRDI_IN_HALVES, CRDI_IN_PANELS } crdi_spread;

/// Least squares on differences with forgetting, for every latency from the same sums:
///     y_s - y_{s-k} = sum_i c_i d_{s-k-i},   d_s = y_s - y_{s-1},
/// pulled towards given weights. The normal equations for latency k are made of
///     R_l(s) = sum_u mu^(s-u) d_u d_{u-l}
/// at earlier s: their matrix is R_{j-i}(s-k-i), their right side sum_{l<k} R_{k+i-l}(s-l). So a
/// step costs one row of R, whatever k does. A predictor with fewer taps has the upper left corner
/// of the same matrix and comes with it.
typedef struct crdi_learner {
    int m, few, k_max;     // taps; of the short predictor, 0: none
    crd_real mu, ridge;    // forgetting per step, pull relative to the mean of the matrix' diagonal
    const crd_linear* to;  // (k_max + 1) what the weights are pulled towards
    int rows, lags, head;  // row (head + i) % rows is R(s - i)
    crd_real* R;           // (rows x lags)
    crd_real *a, *a_few;   // (k_max + 1 x m), (k_max + 1 x few) weights by latency
    int64_t* solved;       // (k_max + 1) count of samples when they were made
    int64_t solved_any;    // newest of them
    crd_real* d;           // (lags) differences, newest first, outliers cut
    crd_real limit;        // of the newest difference: above it, it was an outlier
    crd_real power, usual; // mean squares of d, and of the uncut differences over a longer time
    crd_real* tame;        // (m) history without outliers, workspace of a prediction
    crd_real *matrix, *c;  // workspace of a refresh
    int64_t count;
    crdi_spread spread;  // of solutions
    int panel, panel_of; // of the matrix that comes next, -1: none; for which latency
} crdi_learner;

crd_status crdi_learner_init(crdi_learner* r, crd_context* ctx, int m, int few, int k_max,
                             crd_real window, crd_real ridge, const crd_linear* to);
void crdi_learner_clear(crdi_learner* r, crd_context* ctx);
void crdi_learner_reset(crdi_learner* r);
/// y is the history after a new sample; two of it are read.
void crdi_learner_push(crdi_learner* r, const crd_real* y);
/// The history (m) as the weights are to be used on it: without outliers. Valid until the next
/// call.
const crd_real* crdi_learner_tame(crdi_learner* r, const crd_real* y);
/// Weights (m) for latency k, made anew if they are old; a_few, too.
const crd_real* crdi_learner_weights(crdi_learner* r, int k);
