// Covariances as P = U D U^T, U unit upper triangular: they stay positive whatever rounding does.
#pragma once
#include "cardan/base.h"

typedef struct crdi_ud {
    int n;
    double* u; // (n x n) row-major, 1 on the diagonal
    double* d; // (n)
} crdi_ud;

// P = diag(variance)
void crdi_ud_diagonal(crdi_ud* s, const double* variance);
// P = F P F^T + G diag(q) G^T (Thornton); F (n x n), G (n x w), w <= 2 n + 1; room for
// crdi_ud_room(n) numbers.
size_t crdi_ud_room(int n);
void crdi_ud_predict(crdi_ud* s, const double* f, int w, const double* g, const double* q,
                     double* room);
// Variance of h^T x: h^T P h. `v` (2 n) gets U^T h and D U^T h, which update takes.
double crdi_ud_variance(const crdi_ud* s, const double* h, double* v);
// The measurement h^T x with variance r > 0 (Bierman). `v` from crdi_ud_variance of the same h;
// `gain` (n) gets what the innovation is multiplied by.
void crdi_ud_update(crdi_ud* s, double r, const double* v, double* gain);
