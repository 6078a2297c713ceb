// Predictors that learn the signal while it runs, and their mixture.
#pragma once
#include "coupling/history.h"

/// Least squares on differences with forgetting, for every latency from the same sums:
///     y_s - y_{s-k} = sum_i c_i d_{s-k-i},   d_s = y_s - y_{s-1},
/// pulled towards given weights. The normal equations for latency k are made of
///     R_l(s) = sum_u mu^(s-u) d_u d_{u-l}
/// at earlier s: their matrix is R_{j-i}(s-k-i), their right side sum_{l<k} R_{k+i-l}(s-l). So a
/// step costs one row of R, whatever k does. A predictor with fewer taps has the upper left corner
/// of the same matrix and comes with it.
typedef struct crdi_learner {
    int m, few, k_max;    // taps; of the short predictor, 0: none
    double mu, ridge;     // forgetting per step, pull relative to the mean of the matrix' diagonal
    const crd_linear* to; // (k_max + 1) what the weights are pulled towards
    int rows, lags, head; // row (head + i) % rows is R(s - i)
    double* R;            // (rows x lags)
    double *a, *a_few;    // (k_max + 1 x m), (k_max + 1 x few) weights by latency
    int64_t* solved;      // (k_max + 1) count of samples when they were made
    int64_t solved_any;   // newest of them
    double* d;            // (lags) differences, newest first, outliers cut
    double limit;         // of the newest difference: above it, it was an outlier
    double power, usual;  // mean squares of d, and of the uncut differences over a longer time
    double* tame;         // (m) history without outliers, workspace of a prediction
    double *matrix, *c;   // workspace of a refresh
    int64_t count;
} crdi_learner;

crd_status crdi_learner_init(crdi_learner* r, crd_context* ctx, int m, int few, int k_max,
                             double window, double ridge, const crd_linear* to);
void crdi_learner_clear(crdi_learner* r, crd_context* ctx);
void crdi_learner_reset(crdi_learner* r);
/// y is the history after a new sample; two of it are read.
void crdi_learner_push(crdi_learner* r, const double* y);
/// The history (m) as the weights are to be used on it: without outliers. Valid until the next
/// call.
const double* crdi_learner_tame(crdi_learner* r, const double* y);
/// Weights (m) for latency k, made anew if they are `refresh` samples old; a_few, too.
const double* crdi_learner_weights(crdi_learner* r, int k, int refresh);
double crdi_learner_predict(crdi_learner* r, const double* y, int k, int refresh);

/// Recursive least squares over the samples themselves, as usually published:
///     y_s = sum_i a_i y_{s-k-i}
/// with exponential forgetting, one filter for each latency that is in use.
typedef struct crdi_rls {
    int m, k_max;
    double forget, ridge; // ridge: weight of the start, the hold, in mean squares of the signal
    double *a, *P;        // (k_max + 1 x m), (k_max + 1 x m x m) by latency
    int64_t* learned;     // (k_max + 1) samples that the filter has learned from, -1: none
    int64_t* used;        // (k_max + 1) count of samples when the filter was last asked
    double* g;            // (m) gain, workspace of an update
    double power;         // mean square of the first samples
    int64_t count;
} crdi_rls;

crd_status crdi_rls_init(crdi_rls* r, crd_context* ctx, int m, int k_max, double window,
                         double ridge);
void crdi_rls_clear(crdi_rls* r, crd_context* ctx);
void crdi_rls_reset(crdi_rls* r);
/// y is the history after a new sample; m + k_max of it are read.
void crdi_rls_push(crdi_rls* r, const double* y);
double crdi_rls_predict(crdi_rls* r, const double* y, int k);

enum { CRDI_EXPERTS = 5 };

/// Experts whose predictions are weighted by how well they did lately, and a judge who compares
/// what they say together with the hold.
typedef struct crdi_mixture {
    int k_max, rows;
    crd_linear *short_wiener, *long_wiener; // (k_max + 1)
    crdi_learner learner;
    double* swing;               // (k_max + 1) largest recent change over so many steps
    double* said;                // (rows x CRDI_EXPERTS) predictions by the sample they were for
    double* told;                // (rows x 2) the hold, and what the experts said together
    int64_t* said_for;           // (rows) that sample
    double loss[CRDI_EXPERTS];   // sum of squared errors with forgetting
    double record[CRDI_EXPERTS]; // the same over a longer time
    double products[6];          // sums of products of signal, hold and experts, for the judge
    double share;                // of the experts in the result, the rest is the hold's
    int64_t newest, judged;      // count of samples; of those that were predicted
} crdi_mixture;

crd_status crdi_mixture_init(crdi_mixture* x, crd_context* ctx, int k_max);
void crdi_mixture_clear(crdi_mixture* x, crd_context* ctx);
void crdi_mixture_reset(crdi_mixture* x);
int crdi_mixture_reach(const crdi_mixture* x); // samples of history that it looks at
/// `lift` is what a re-based jump has added to all older samples.
void crdi_mixture_push(crdi_mixture* x, const double* y, double lift);
double crdi_mixture_predict(crdi_mixture* x, const double* y, int k);
