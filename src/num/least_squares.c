#include "shared/num.h"

#include <math.h>

double crdi_num_dot(int n, const double* a, const double* b)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

// Gram and Schmidt, modified and done twice, which makes the columns orthogonal to rounding; b goes
// along as one more column.
int crdi_num_least_squares(int rows, int columns, double* a, double* b, double drop, double* x,
                           double* work)
{
    int rank = 0;
    for (int k = 0; k < columns; k++) {
        double* q = a + (size_t)k * (size_t)rows;
        double* r = work + (size_t)k * (size_t)columns; // column k of the triangle
        const double length = sqrt(crdi_num_dot(rows, q, q));
        for (int i = 0; i < k; i++) {
            r[i] = 0;
        }
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < k; i++) {
                if (work[(size_t)i * (size_t)columns + (size_t)i] == 0) { continue; } // left out
                const double* p = a + (size_t)i * (size_t)rows;
                const double along = crdi_num_dot(rows, p, q);
                r[i] += along;
                for (int j = 0; j < rows; j++) {
                    q[j] -= along * p[j];
                }
            }
        }
        const double rest = sqrt(crdi_num_dot(rows, q, q));
        r[k] = isfinite(rest) && rest > drop * length ? rest : 0;
        x[k] = 0;
        if (r[k] == 0) { continue; }
        rank++;
        for (int j = 0; j < rows; j++) {
            q[j] /= rest;
        }
        x[k] = crdi_num_dot(rows, q, b);
        for (int j = 0; j < rows; j++) {
            b[j] -= x[k] * q[j];
        }
    }
    for (int k = columns - 1; k >= 0; k--) { // back substitution; what was left out stays 0
        const double* r = work + (size_t)k * (size_t)columns;
        if (r[k] == 0) { continue; }
        x[k] /= r[k];
        for (int i = 0; i < k; i++) {
            if (work[(size_t)i * (size_t)columns + (size_t)i] != 0) { x[i] -= r[i] * x[k]; }
        }
    }
    return rank;
}
