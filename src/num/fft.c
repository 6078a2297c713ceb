#include <assert.h>
#include <math.h>

#include "shared/num.h"

static void swap(double* a, double* b)
{
    for (int i = 0; i < 2; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

// Radix 2, decimation in time: bit-reversed order first, then butterflies of growing width.
void crdi_num_fft(int n, double* x)
{
    assert(n > 0 && (n & (n - 1)) == 0);
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) { swap(&x[2 * (size_t)i], &x[2 * (size_t)j]); }
    }
    for (int half = 1; half < n; half *= 2) {
        for (int q = 0; q < half; q++) {
            const double angle = -M_PI * q / half, c = cos(angle), s = sin(angle);
            for (int i = q; i < n; i += 2 * half) {
                double *u = &x[2 * (size_t)i], *v = &x[2 * (size_t)(i + half)];
                const double re = c * v[0] - s * v[1], im = c * v[1] + s * v[0];
                v[0] = u[0] - re;
                v[1] = u[1] - im;
                u[0] += re;
                u[1] += im;
            }
        }
    }
}
