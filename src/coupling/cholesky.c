#include "coupling/coupling.h"

#include <math.h>

bool crdi_cholesky(int n, double* a)
{
    for (int j = 0; j < n; j++) {
        double* row_j = &a[(size_t)j * (size_t)n];
        const double d = row_j[j] - crdi_dot(j, row_j, row_j);
        if (!(d > 0)) { return false; }
        row_j[j] = sqrt(d);
        for (int i = j + 1; i < n; i++) {
            double* row_i = &a[(size_t)i * (size_t)n];
            row_i[j] = (row_i[j] - crdi_dot(j, row_i, row_j)) / row_j[j];
        }
    }
    return true;
}

void crdi_cholesky_solve(int n, const double* l, double* x)
{
    for (int i = 0; i < n; i++) {
        const double* row = &l[(size_t)i * (size_t)n];
        x[i] = (x[i] - crdi_dot(i, row, x)) / row[i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) {
            x[i] -= l[(size_t)j * (size_t)n + (size_t)i] * x[j];
        }
        x[i] /= l[(size_t)i * (size_t)n + (size_t)i];
    }
}
