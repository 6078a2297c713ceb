#include "shared/num.h"

#include <lapacke.h>
#include <math.h>

_Static_assert(sizeof(lapack_int) == sizeof(int32_t), "pivots are 32-bit");

crd_status crdi_num_solve(int n, double* a, double* b, int32_t* pivots)
{
    // Row-major A is the transpose of what LAPACK sees, so factor it as such and solve with A^T.
    if (LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, a, n, pivots) != 0) {
        return CRD_E_CONVERGENCE;
    }
    return LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, 'T', n, 1, a, n, pivots, b, n) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}

crd_status crdi_num_complex_factor(int n, double* a, int32_t* pivots, double det[2])
{
    // The transpose is factored, as above; its determinant is the same.
    lapack_complex_double* z = (lapack_complex_double*)a;
    const bool regular = LAPACKE_zgetrf_work(LAPACK_COL_MAJOR, n, n, z, n, pivots) == 0;
    if (det) {
        double re = 1, im = 0;
        for (int i = 0; i < n; i++) {
            const double sign = pivots[i] == i + 1 ? 1 : -1;
            const double* d = &a[2 * ((size_t)i * (size_t)n + (size_t)i)];
            const double next = sign * (re * d[0] - im * d[1]);
            im = sign * (re * d[1] + im * d[0]);
            re = next;
        }
        det[0] = regular ? re : 0;
        det[1] = regular ? im : 0;
    }
    return regular ? CRD_OK : CRD_E_CONVERGENCE;
}

crd_status crdi_num_complex_solve(int n, int columns, const double* factors, const int32_t* pivots,
                                  double* b)
{
    return LAPACKE_zgetrs_work(LAPACK_COL_MAJOR, 'T', n, columns,
                               (const lapack_complex_double*)factors, n, pivots,
                               (lapack_complex_double*)b, n) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}

crd_status crdi_num_eigenvalues(int n, double* a, double* re, double* im)
{
    if (n == 0) { return CRD_OK; }
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
        if (!isfinite(a[i])) { return CRD_E_CONVERGENCE; }
    }
    return LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', 'N', n, a, n, re, im, NULL, 1, NULL, 1) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}

crd_status crdi_num_eigenvectors(int n, double* a, double* re, double* im, double* v)
{
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
        if (!isfinite(a[i])) { return CRD_E_CONVERGENCE; }
    }
    return LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', 'V', n, a, n, re, im, NULL, 1, v, n) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}
