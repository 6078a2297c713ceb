// Predictors that learn the signal while it runs, and their mixture.
#pragma once
#include "coupling/history.h"

/// Least squares on differences with forgetting, for every latency from the same sums:
///     y_s - y_{s-k} = sum_i c_i d_{s-k-i},   d_s = y_s - y_{s-1},
/// pulled towards given weights. The normal equations for latency k are made of
///     R_l(s) = sum_u mu^(s-u) d_u d_{u-l}
/// at earlier s: their matrix is R_{j-i}(s-k-i), their right side sum_{l<k} R_{k+i-l}(s-l). So a
/// step costs one row of R, whatever k does.
typedef struct crdi_learner {
    int m, k_max;         // taps
    double mu, ridge;     // forgetting per step, pull relative to the mean of the matrix' diagonal
    const crd_linear* to; // (k_max + 1) what the weights are pulled towards
    int rows, lags, head; // row (head + i) % rows is R(s - i)
    double* R;            // (rows x lags)
    double* a;            // (k_max + 1 x m) weights by latency
    int64_t* solved;      // (k_max + 1) count of samples when they were made
    double* d;            // (lags) differences, newest first, outliers cut
    double power;         // mean of their squares
    double *matrix, *c;   // workspace of a refresh
    int64_t count;
} crdi_learner;

crd_status crdi_learner_init(crdi_learner* r, crd_context* ctx, int m, int k_max, double window,
                             double ridge, const crd_linear* to);
void crdi_learner_clear(crdi_learner* r, crd_context* ctx);
void crdi_learner_reset(crdi_learner* r);
int crdi_learner_reach(const crdi_learner* r); // samples of history that it looks at
/// y is the history after a new sample.
void crdi_learner_push(crdi_learner* r, const double* y);
/// Weights (m) for latency k, made anew if they are `refresh` samples old.
const double* crdi_learner_weights(crdi_learner* r, int k, int refresh);

enum { CRDI_EXPERTS = 5 };

/// Experts whose predictions are weighted by how well they did lately.
typedef struct crdi_mixture {
    int k_max, rows;
    crd_linear *short_wiener, *long_wiener; // (k_max + 1)
    crdi_learner fast, slow;
    double* said;                // (rows x CRDI_EXPERTS) predictions by the sample they were for
    int64_t* said_for;           // (rows) that sample
    double loss[CRDI_EXPERTS];   // sum of squared errors with forgetting
    double record[CRDI_EXPERTS]; // the same over a longer time
    int64_t newest;              // count of samples
} crdi_mixture;

crd_status crdi_mixture_init(crdi_mixture* x, crd_context* ctx, int k_max);
void crdi_mixture_clear(crdi_mixture* x, crd_context* ctx);
void crdi_mixture_reset(crdi_mixture* x);
int crdi_mixture_reach(const crdi_mixture* x);
/// `lift` is what a re-based jump has added to all older samples.
void crdi_mixture_push(crdi_mixture* x, const double* y, double lift);
double crdi_mixture_predict(crdi_mixture* x, const double* y, int k);
