// Small dense matrices, row-major. libc and libm only: twins go into FMUs.
#pragma once
#include "cardan/base.h"

// c (n x k) = or += s * a (n x m) b (m x k)
void crdi_dense_multiply(int n, int m, int k, double s, const double* a, const double* b, bool add,
                         double* c);
// LU with partial pivoting in place; false: singular to rounding (`pivot` says at which column).
bool crdi_dense_factor(int n, double* a, int32_t* pivots, int* pivot);
// b (n x k) becomes A^-1 b.
void crdi_dense_solve(int n, const double* lu, const int32_t* pivots, int k, double* b);
