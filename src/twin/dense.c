#include "twin/dense.h"

#include <float.h>
#include <math.h>

void crdi_dense_multiply(int n, int m, int k, double s, const double* a, const double* b, bool add,
                         double* c)
{
    for (int i = 0; i < n; i++) {
        double* row = c + (ptrdiff_t)i * k;
        if (!add) {
            for (int j = 0; j < k; j++) {
                row[j] = 0;
            }
        }
        for (int l = 0; l < m; l++) {
            const double f = s * a[(ptrdiff_t)i * m + l];
            if (f == 0) { continue; } // networks are sparse
            const double* from = b + (ptrdiff_t)l * k;
            for (int j = 0; j < k; j++) {
                row[j] += f * from[j];
            }
        }
    }
}

static void swap_rows(int n, double* a, int i, int j)
{
    for (int c = 0; c < n && i != j; c++) {
        const double keep = a[(ptrdiff_t)i * n + c];
        a[(ptrdiff_t)i * n + c] = a[(ptrdiff_t)j * n + c];
        a[(ptrdiff_t)j * n + c] = keep;
    }
}

bool crdi_dense_factor(int n, double* a, int32_t* pivots, int* pivot)
{
    for (int c = 0; c < n; c++) {
        int best = c;
        double before = 0; // the column as it was given, for what "zero" means
        for (int i = 0; i < n; i++) {
            before = fmax(before, fabs(a[(ptrdiff_t)i * n + c]));
            if (i > c && fabs(a[(ptrdiff_t)i * n + c]) > fabs(a[(ptrdiff_t)best * n + c])) {
                best = i;
            }
        }
        const double top = a[(ptrdiff_t)best * n + c];
        *pivot = c;
        if (!(fabs(top) > 16 * DBL_EPSILON * before) || !isfinite(top)) { return false; }
        pivots[c] = best;
        swap_rows(n, a, c, best);
        for (int i = c + 1; i < n; i++) {
            double* row = a + (ptrdiff_t)i * n;
            if (row[c] == 0) { continue; }
            row[c] /= top;
            for (int j = c + 1; j < n; j++) {
                row[j] -= row[c] * a[(ptrdiff_t)c * n + j];
            }
        }
    }
    return true;
}

void crdi_dense_solve(int n, const double* lu, const int32_t* pivots, int k, double* b)
{
    for (int c = 0; c < n; c++) {
        swap_rows(k, b, c, pivots[c]);
    }
    for (int i = 1; i < n; i++) {
        for (int c = 0; c < i; c++) {
            const double f = lu[(ptrdiff_t)i * n + c];
            for (int j = 0; j < k && f != 0; j++) {
                b[(ptrdiff_t)i * k + j] -= f * b[(ptrdiff_t)c * k + j];
            }
        }
    }
    for (int i = n; i-- > 0;) {
        double* row = b + (ptrdiff_t)i * k;
        for (int c = i + 1; c < n; c++) {
            const double f = lu[(ptrdiff_t)i * n + c];
            for (int j = 0; j < k && f != 0; j++) {
                row[j] -= f * b[(ptrdiff_t)c * k + j];
            }
        }
        const double d = 1 / lu[(ptrdiff_t)i * n + i];
        for (int j = 0; j < k; j++) {
            row[j] *= d;
        }
    }
}
