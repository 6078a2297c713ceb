#include "twin/factor.h"

#include <float.h>
#include <math.h>
#include <string.h>

void crdi_qr_clear(crdi_qr* q)
{
    memset(q->r, 0, (size_t)q->m * (size_t)q->m * sizeof *q->r);
    memset(q->b, 0, (size_t)q->m * sizeof *q->b);
    q->rest = 0;
}

void crdi_qr_add(crdi_qr* q, double* row, double b)
{
    const int m = q->m;
    for (int i = 0; i < m; i++) {
        if (row[i] == 0) { continue; }
        double* top = q->r + (ptrdiff_t)i * m;
        const double length = hypot(top[i], row[i]), c = top[i] / length, s = row[i] / length;
        for (int j = i; j < m; j++) {
            const double a = top[j], d = row[j];
            top[j] = c * a + s * d;
            row[j] = c * d - s * a;
        }
        const double a = q->b[i];
        q->b[i] = c * a + s * b;
        b = c * b - s * a;
    }
    q->rest += b * b;
}

static bool back(const crdi_qr* q, double* x)
{
    const int m = q->m;
    double largest = 0;
    for (int i = 0; i < m; i++) {
        largest = fmax(largest, fabs(q->r[(ptrdiff_t)i * m + i]));
    }
    for (int i = m; i-- > 0;) {
        const double* row = q->r + (ptrdiff_t)i * m;
        if (!(fabs(row[i]) > m * DBL_EPSILON * largest)) { return false; }
        for (int j = i + 1; j < m; j++) {
            x[i] -= row[j] * x[j];
        }
        x[i] /= row[i];
    }
    return true;
}

bool crdi_qr_solve(const crdi_qr* q, double* x)
{
    memcpy(x, q->b, (size_t)q->m * sizeof *x);
    return back(q, x);
}

bool crdi_qr_covariance(const crdi_qr* q, double* out, double* room)
{
    const int m = q->m; // columns of R^-1 as rows of room
    for (int c = 0; c < m; c++) {
        double* x = room + (ptrdiff_t)c * m;
        memset(x, 0, (size_t)m * sizeof *x);
        x[c] = 1;
        if (!back(q, x)) { return false; }
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int c = 0; c < m; c++) {
                sum += room[(ptrdiff_t)c * m + i] * room[(ptrdiff_t)c * m + j];
            }
            out[(ptrdiff_t)i * m + j] = sum;
        }
    }
    return true;
}

static void factor_rotate(int m, double* a, int p, int q, double c, double s)
{
    for (int i = 0; i < m; i++) { // columns p and q
        double* row = a + (ptrdiff_t)i * m;
        const double x = row[p], y = row[q];
        row[p] = c * x - s * y;
        row[q] = s * x + c * y;
    }
}

// Makes columns p and q of a orthogonal; false: they were.
static bool orthogonalise(int m, double* a, double* v, int p, int q)
{
    double pp = 0, qq = 0, pq = 0;
    for (int i = 0; i < m; i++) {
        const double x = a[(ptrdiff_t)i * m + p], y = a[(ptrdiff_t)i * m + q];
        pp += x * x;
        qq += y * y;
        pq += x * y;
    }
    if (fabs(pq) <= DBL_EPSILON * sqrt(pp * qq)) { return false; }
    const double zeta = (qq - pp) / (2 * pq);
    const double t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    const double c = 1 / sqrt(1 + t * t);
    factor_rotate(m, a, p, q, c, c * t);
    factor_rotate(m, v, p, q, c, c * t);
    return true;
}

void crdi_svd(int m, double* a, double* sigma, double* v)
{
    memset(v, 0, (size_t)m * (size_t)m * sizeof *v);
    for (int i = 0; i < m; i++) {
        v[(ptrdiff_t)i * m + i] = 1;
    }
    bool any = true;
    for (int sweep = 0; sweep < 60 && any; sweep++) {
        any = false;
        for (int p = 0; p < m; p++) {
            for (int q = p + 1; q < m; q++) {
                any = orthogonalise(m, a, v, p, q) || any;
            }
        }
    }
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int i = 0; i < m; i++) {
            sum += a[(ptrdiff_t)i * m + j] * a[(ptrdiff_t)i * m + j];
        }
        sigma[j] = sqrt(sum);
    }
    for (int i = 0; i < m; i++) { // columns of v become rows, then the largest first
        for (int j = i + 1; j < m; j++) {
            const double keep = v[(ptrdiff_t)i * m + j];
            v[(ptrdiff_t)i * m + j] = v[(ptrdiff_t)j * m + i];
            v[(ptrdiff_t)j * m + i] = keep;
        }
    }
    for (int i = 0; i < m; i++) {
        int best = i;
        for (int j = i + 1; j < m; j++) {
            best = sigma[j] > sigma[best] ? j : best;
        }
        const double keep = sigma[i];
        sigma[i] = sigma[best];
        sigma[best] = keep;
        for (int c = 0; c < m && best != i; c++) {
            const double x = v[(ptrdiff_t)i * m + c];
            v[(ptrdiff_t)i * m + c] = v[(ptrdiff_t)best * m + c];
            v[(ptrdiff_t)best * m + c] = x;
        }
    }
}
