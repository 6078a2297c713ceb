#include <math.h>
#include <string.h>

#include "shared/num.h"

// Four at once, as a sum by itself waits for each of its additions.
static void multiply_square(int n, const double* a, const double* b, double* out)
{
    const size_t m = (size_t)n;
    for (size_t i = 0; i < m; i++) {
        const double* row = a + i * m;
        size_t j = 0;
        for (; j + 4 <= m; j += 4) {
            double sum[4] = {0};
            for (size_t l = 0; l < m; l++) {
                const double *x = row + l, *y = b + l * m + j;
                sum[0] += *x * y[0];
                sum[1] += *x * y[1];
                sum[2] += *x * y[2];
                sum[3] += *x * y[3];
            }
            memcpy(out + i * m + j, sum, sizeof sum);
        }
        for (; j < m; j++) {
            double sum = 0;
            for (size_t l = 0; l < m; l++) {
                sum += row[l] * b[l * m + j];
            }
            out[i * m + j] = sum;
        }
    }
}

// Largest sum of magnitudes in a row
static double norm(int n, const double* a)
{
    double largest = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) {
            sum += fabs(a[(size_t)i * (size_t)n + (size_t)j]);
        }
        if (!(sum <= largest)) { largest = sum; } // NaN wins
    }
    return largest;
}

crd_status crdi_num_expm(int n, double* a, double* work)
{
    // exp(a) = exp(a / 2^s)^(2^s); with a norm of at most 1/2 the Taylor remainder after 17 terms
    // is below 1e-21.
    const double size = norm(n, a);
    if (!(size < 0x1p30)) { return CRD_E_RANGE; }
    int s = 0;
    double scale = 1;
    while (size * scale > 0.5) {
        scale *= 0.5;
        s++;
    }
    const size_t m = (size_t)n, all = m * m;
    double *sum = work, *next = work + all;
    for (size_t i = 0; i < all; i++) {
        a[i] *= scale;
        sum[i] = i / m == i % m ? 1 : 0;
    }
    // Horner: I + a (I + a/2 (I + a/3 (...)))
    for (int term = 17; term >= 1; term--) {
        multiply_square(n, a, sum, next);
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < m; j++) {
                sum[i * m + j] = next[i * m + j] / term + (i == j ? 1 : 0);
            }
        }
    }
    for (; s > 0; s--) {
        multiply_square(n, sum, sum, next);
        double* swap = sum;
        sum = next;
        next = swap;
    }
    for (size_t i = 0; i < all; i++) {
        a[i] = sum[i];
    }
    return CRD_OK;
}
