// Least squares by rows, and singular values of small matrices. Normal equations are never formed:
// what is observable shows in the small singular values, which they would square away.
#pragma once
#include "cardan/base.h"

// R (m x m upper triangular) and Q^T b of all rows given so far
typedef struct crdi_qr {
    int m;
    double* r;   // (m x m)
    double* b;   // (m)
    double rest; // sum of squares that no x can take away
} crdi_qr;

void crdi_qr_clear(crdi_qr* q);
// One more equation row^T x = b; `row` is destroyed. Givens rotations.
void crdi_qr_add(crdi_qr* q, double* row, double b);
// x with R x = Q^T b; false: singular
bool crdi_qr_solve(const crdi_qr* q, double* x);
// (R^T R)^-1 (m x m); `room` m^2. False: singular.
bool crdi_qr_covariance(const crdi_qr* q, double* out, double* room);

// Singular values of a (m x m, destroyed) in descending order, rows of v (m x m) the right singular
// vectors. One-sided Jacobi: small ones are as accurate as large ones.
void crdi_svd(int m, double* a, double* sigma, double* v);
