/// Numerics shared by the engines: small dense linear algebra over LAPACK, the matrix exponential,
/// a Fourier transform. Matrices are row-major; complex numbers lie as pairs re, im.
/// Nothing here allocates except the eigenvalues, where LAPACK does.
#pragma once
#include "cardan/base.h"

double crdi_num_dot(int n, const double* a, const double* b); ///< summed from the first on

/// Solve A x = b by LU with partial pivoting. A (n x n, row-major) and b are overwritten, b with x;
/// `pivots` is workspace (n). CRD_E_CONVERGENCE: A is singular.
crd_status crdi_num_solve(int n, double* a, double* b, int32_t* pivots);

/// The x (columns) that makes |A x - b| smallest. A (rows x columns) lies column by column here; it
/// is overwritten, as is b (rows), with what remains of it. A column whose part orthogonal to those
/// before it is not longer than `drop` (>= 0) times the column is left out: its x is 0. `work` has
/// columns^2 numbers. Returns the number of columns used; 0: x is all 0.
int crdi_num_least_squares(int rows, int columns, double* a, double* b, double drop, double* x,
                           double* work);

/// LU factors of a complex matrix (n x n, overwritten) and, unless NULL, its determinant.
/// CRD_E_CONVERGENCE: singular; then the determinant is 0 and the factors are of no use.
crd_status crdi_num_complex_factor(int n, double* a, int32_t* pivots, double det[2]);
/// Solve A X = B with these factors. `columns` right-hand sides, each n numbers in a row, are
/// overwritten with the solutions.
crd_status crdi_num_complex_solve(int n, int columns, const double* factors, const int32_t* pivots,
                                  double* b);

/// Eigenvalues of a real matrix (n x n, destroyed), in no particular order.
/// CRD_E_CONVERGENCE: the QR iteration gave up, or the matrix is not finite.
crd_status crdi_num_eigenvalues(int n, double* a, double* re, double* im);
/// And right eigenvectors v (n x n) of length 1. Here a and v lie column by column; of a pair re +-
/// j im the real part is where the first of them stands, the imaginary part where the second does.
crd_status crdi_num_eigenvectors(int n, double* a, double* re, double* im, double* v);

/// a = L L^T of a symmetric positive definite a (n x n) becomes L, its upper half 0.
/// CRD_E_CONVERGENCE: it is not positive definite.
crd_status crdi_num_cholesky(int n, double* a);
/// a (n x n) becomes L^-1 a L^-T.
void crdi_num_congruence(int n, const double* l, double* a);
/// Eigenvalues of a symmetric matrix (n x n, destroyed), ascending; with `vectors` row i of a
/// becomes the eigenvector of the i-th. CRD_E_CONVERGENCE: it is not finite, or QR gave up.
crd_status crdi_num_symmetric(int n, double* a, double* values, bool vectors);

/// a becomes exp(a); `work` has 2 n^2 numbers. CRD_E_RANGE: not finite, or too large to scale.
crd_status crdi_num_expm(int n, double* a, double* work);

/// Fourier transform X_q = sum_i x_i exp(-2 pi j i q / n) of n = 2^p complex numbers, in place.
void crdi_num_fft(int n, double* x);

/// Probability that a chi-square variable with `freedom` > 0 degrees of freedom is below x, and the
/// x below which it is with a probability in (0, 1).
double crdi_num_chi2(double x, double freedom);
double crdi_num_chi2_quantile(double probability, double freedom);
