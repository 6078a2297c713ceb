// Sums, and A = U^T U by rows of U. Blocks have constant lengths and nothing is summed across a
// block, so that compilers use vector instructions without being allowed to change the order of
// sums.
#include "coupling/coupling.h"

#include <math.h>

enum { PANEL = CRDI_CHOLESKY_PANEL, BLOCK = 4 };

// y -= u[0] x[0] + ... + u[3] x[3], where x[q] is row q of a panel with that stride.
static void subtract_panel(int n, const crd_real u[PANEL], const crd_real* restrict x, int stride,
                           crd_real* restrict y)
{
    const crd_real *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    int j = 0;
    for (; j + BLOCK <= n; j += BLOCK) {
        for (int c = j; c < j + BLOCK; c++) {
            y[c] -= (u[0] * x[c] + u[1] * x1[c]) + (u[2] * x2[c] + u[3] * x3[c]);
        }
    }
    for (; j < n; j++) {
        y[j] -= (u[0] * x[j] + u[1] * x1[j]) + (u[2] * x2[j] + u[3] * x3[j]);
    }
}

static void subtract_row(int n, crd_real u, const crd_real* restrict x, crd_real* restrict y)
{
    int j = 0;
    for (; j + BLOCK <= n; j += BLOCK) {
        for (int c = j; c < j + BLOCK; c++) {
            y[c] -= u * x[c];
        }
    }
    for (; j < n; j++) {
        y[j] -= u * x[j];
    }
}

bool crdi_cholesky_panel(int n, crd_real* a, int p)
{
    const int end = p + PANEL < n ? p + PANEL : n;
    for (int q = p; q < end; q++) {
        crd_real* row = &a[q * n];
        for (int r = p; r < q; r++) {
            subtract_row(n - q, a[r * n + q], &a[r * n + q], &row[q]);
        }
        if (!(row[q] > 0)) { return false; }
        const crd_real scale = 1 / sqrt(row[q]);
        for (int j = q; j < n; j++) {
            row[j] *= scale;
        }
    }
    for (int i = end; i < n; i++) { // there are rows left only if the panel is full
        const crd_real* x = &a[p * n + i];
        const crd_real u[PANEL] = {x[0], x[n], x[2 * n], x[3 * n]};
        subtract_panel(n - i, u, x, n, &a[i * n + i]);
    }
    return true;
}

bool crdi_cholesky(int n, crd_real* a)
{
    for (int p = 0; p < n; p += PANEL) {
        if (!crdi_cholesky_panel(n, a, p)) { return false; }
    }
    return true;
}

void crdi_cholesky_forward(int n, const crd_real* u, crd_real* x)
{
    for (int i = 0; i < n; i++) {
        const crd_real* row = &u[i * n];
        x[i] /= row[i];
        subtract_row(n - i - 1, x[i], &row[i + 1], &x[i + 1]);
    }
}

void crdi_cholesky_back(int n, int stride, const crd_real* u, crd_real* x)
{
    for (int i = n - 1; i >= 0; i--) {
        const crd_real* row = &u[i * stride];
        x[i] = (x[i] - crdi_dot(n - i - 1, &row[i + 1], &x[i + 1])) / row[i];
    }
}

void crdi_cholesky_solve(int n, const crd_real* u, crd_real* x)
{
    crdi_cholesky_forward(n, u, x);
    crdi_cholesky_back(n, n, u, x);
}

crd_real crdi_dot_tail(int n, const crd_real* a, const crd_real* y)
{
    crd_real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int i = 0; i < n; i += 4) {
        s0 += a[i] * y[i];
        s1 += a[i + 1] * y[i + 1];
        s2 += a[i + 2] * y[i + 2];
        s3 += a[i + 3] * y[i + 3];
    }
    return (s0 + s1) + (s2 + s3);
}
