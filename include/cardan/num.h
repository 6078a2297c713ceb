/// Numerics shared by the engines: small dense linear algebra over LAPACK.
#pragma once
#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Solve A x = b by LU with partial pivoting. A (n x n, row-major) and b are overwritten, b with x;
/// `pivots` is workspace (n). CRD_E_CONVERGENCE: A is singular.
CRD_API crd_status crd_num_solve(int n, double* a, double* b, int32_t* pivots);

#ifdef __cplusplus
}
#endif
