// Small systems of equations: coefficients of methods. Without LAPACK, because this module goes
// into FMUs that need no library.
#pragma once
#include "cardan/base.h"

#include <math.h>

// A x = b by elimination with partial pivoting. A (n x n, row-major) is overwritten, b becomes x.
static inline crd_status crdi_small_solve(int n, double* a, double* b)
{
    for (int k = 0; k < n; k++) {
        int top = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[top * n + k])) { top = i; }
        }
        if (!(fabs(a[top * n + k]) > 0)) { return CRD_E_CONVERGENCE; }
        for (int j = 0; j < n && top != k; j++) {
            const double swapped = a[k * n + j];
            a[k * n + j] = a[top * n + j];
            a[top * n + j] = swapped;
        }
        const double right = b[top];
        b[top] = b[k];
        b[k] = right;
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
            b[i] -= factor * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) {
            b[k] -= a[k * n + j] * b[j];
        }
        b[k] /= a[k * n + k];
    }
    return CRD_OK;
}
