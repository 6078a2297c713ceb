#include "shared/num.h"

#include <lapacke.h>
#include <math.h>

crd_status crdi_num_cholesky(int n, double* a)
{
    for (int j = 0; j < n; j++) {
        for (int i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            if (i > j) {
                a[i * n + j] = sum / a[j * n + j];
                continue;
            }
            if (!(sum > 0 && isfinite(sum))) { return CRD_E_CONVERGENCE; }
            a[j * n + j] = sqrt(sum);
        }
        for (int k = j + 1; k < n; k++) {
            a[j * n + k] = 0;
        }
    }
    return CRD_OK;
}

// y = L^-1 b in place, `stride` numbers between those of b.
static void solve_lower(int n, const double* l, double* b, int stride)
{
    for (int i = 0; i < n; i++) {
        double sum = b[i * stride];
        for (int k = 0; k < i; k++) {
            sum -= l[i * n + k] * b[k * stride];
        }
        b[i * stride] = sum / l[i * n + i];
    }
}

void crdi_num_congruence(int n, const double* l, double* a)
{
    for (int j = 0; j < n; j++) {
        solve_lower(n, l, &a[j], n); // columns
    }
    for (int i = 0; i < n; i++) {
        solve_lower(n, l, &a[i * n], 1); // rows
    }
}

crd_status crdi_num_symmetric(int n, double* a, double* values, bool vectors)
{
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
        if (!isfinite(a[i])) { return CRD_E_CONVERGENCE; }
    }
    // Column by column what LAPACK sees is the same matrix; its columns are our rows.
    return LAPACKE_dsyev(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'U', n, a, n, values) == 0
               ? CRD_OK
               : CRD_E_CONVERGENCE;
}
