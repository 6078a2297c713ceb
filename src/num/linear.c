#include "cardan/num.h"

#include <lapacke.h>

_Static_assert(sizeof(lapack_int) == sizeof(int32_t), "pivots are 32-bit");

crd_status crd_num_solve(int n, double* a, double* b, int32_t* pivots)
{
    // Row-major A is the transpose of what LAPACK sees, so factor it as such and solve with A^T.
    if (LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, a, n, pivots) != 0) {
        return CRD_E_CONVERGENCE;
    }
    return LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, 'T', n, 1, a, n, pivots, b, n) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}
