// What the error of coupled linear units cannot exceed: Theorem 1 of Glumac 2023, (8) and (10).
//
// In a norm |e| = |T^-1 e|, Euclidean, the error of e' = Ac e + B d + F s grows by no more than
//   |e|' <= L |e| + g,   g = sum of |B_j| |d_j| + |F_j| |s_j|
// where the theorem has the Lipschitz constant |Ac| for L. The logarithmic norm of Ac does it too,
// is never larger, and negative where everything decays: the largest eigenvalue of the symmetric
// part of T^-1 Ac T. g is that of each step; the theorem takes the largest of all for all of them.
// Both make the bound smaller than (8) is. Each T gives another bound, and each is one.
#include "master/verdict/estimate.h"

#include "shared/num.h"

#include <math.h>
#include <string.h>

typedef struct basis {
    int n;
    double *T, *inverse, *M, *room; // (n x n) each, column by column; room has n^2 + 2 n
    int32_t* pivots;
} basis;

// Rows and columns of each state, but for the diagonal, become one size (Osborne 1960).
static crd_status balance(const crdi_errors* e, basis* b)
{
    enum { SWEEPS = 50 };
    const int n = b->n;
    double* weight = b->room;
    for (int i = 0; i < n; i++) {
        weight[i] = 1;
    }
    int same = 0; // that follow each other: all of them are at their places
    for (int k = 0; k < SWEEPS * n && same < n; k++) {
        const int i = k % n;
        const double before = weight[i];
        double row = 0, column = 0;
        for (int j = 0; j < n; j++) {
            if (j == i) { continue; }
            row = hypot(row, e->Ac[j * n + i] * weight[j] / weight[i]);
            column = hypot(column, e->Ac[i * n + j] * weight[i] / weight[j]);
        }
        if (row > 0 && column > 0) { weight[i] *= sqrt(row / column); }
        same = weight[i] == before ? same + 1 : 0;
    }
    for (int i = 0; i < n; i++) {
        b->T[i * n + i] = weight[i];
    }
    return CRD_OK;
}

// Real and imaginary parts of the eigenvectors: each mode by itself decays and turns.
static crd_status find_modes(const crdi_errors* e, basis* b)
{
    const size_t n = (size_t)b->n;
    memcpy(b->room, e->Ac, n * n * sizeof *b->room);
    return crdi_num_eigenvectors(b->n, b->room, b->room + n * n, b->room + n * n + n, b->T);
}

// out = a b, all column by column
static void product_of(int rows, int inner, int columns, const double* a, const double* b,
                       double* out)
{
    memset(out, 0, (size_t)rows * (size_t)columns * sizeof *out);
    for (int j = 0; j < columns; j++) {
        for (int k = 0; k < inner; k++) {
            for (int i = 0; i < rows; i++) {
                out[j * rows + i] += a[k * rows + i] * b[j * inner + k];
            }
        }
    }
}

static crd_status invert(basis* b)
{
    const int n = b->n;
    for (int j = 0; j < n; j++) {
        double* x = b->inverse + j * n;
        for (int i = 0; i < n * n; i++) {
            b->room[i] = b->T[i % n * n + i / n]; // row by row
        }
        memset(x, 0, (size_t)n * sizeof *x);
        x[j] = 1;
        if (crdi_num_solve(n, b->room, x, b->pivots) < 0) { return CRD_E_CONVERGENCE; }
    }
    return CRD_OK;
}

static double find_growth(const crdi_errors* e, basis* b)
{
    const int n = b->n;
    double growth = -INFINITY, *re = b->room + n * n;
    product_of(n, n, n, e->Ac, b->T, b->room);
    product_of(n, n, n, b->inverse, b->room, b->M);
    for (int i = 0; i < n * n; i++) {
        b->room[i] = 0.5 * (b->M[i] + b->M[i % n * n + i / n]);
    }
    if (crdi_num_eigenvalues(n, b->room, re, re + n) < 0) { return (double)NAN; }
    for (int i = 0; i < n; i++) {
        growth = fmax(growth, re[i]);
    }
    return growth;
}

static double length(int n, const double* x)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum = hypot(sum, x[i]);
    }
    return sum;
}

static void fill(const crdi_errors* e, const basis* b, crdi_bound* out)
{
    const int n = b->n, p = e->outputs;
    for (int j = 0; j < e->inputs; j++) {
        product_of(n, n, 1, b->inverse, e->B + j * n, b->room);
        out->into[j] = length(n, b->room);
        product_of(n, n, 1, b->inverse, e->F + j * n, b->room);
        out->back[j] = length(n, b->room);
    }
    for (int k = 0; k < n; k++) {
        product_of(p, n, 1, e->Cc, b->T + k * n, out->square); // as room
        for (int i = 0; i < p; i++) {
            out->out[i] = hypot(out->out[i], out->square[i]);
        }
    }
    memset(out->square, 0, (size_t)p * sizeof *out->square);
}

crd_status crdi_bound_init(crd_arena* arena, const crdi_errors* e, crdi_norm norm, crdi_bound* b)
{
    const size_t n = (size_t)e->states, m = (size_t)e->inputs, p = (size_t)e->outputs;
    b->into = crdi_arena_new(arena, m, sizeof(double));
    b->back = crdi_arena_new(arena, m, sizeof(double));
    b->out = crdi_arena_new(arena, p, sizeof(double));
    b->square = crdi_arena_new(arena, p, sizeof(double));
    double* room = crdi_arena_new(arena, 4 * n * n + 2 * n, sizeof(double));
    int32_t* pivots = crdi_arena_new(arena, n, sizeof *pivots);
    if (!b->into || !b->back || !b->out || !b->square || !room || !pivots) { return CRD_E_MEMORY; }
    basis t = {(int)n, room, room + n * n, room + 2 * n * n, room + 3 * n * n, pivots};
    b->growth = n ? (double)NAN : 0;
    if (n == 0) { return CRD_OK; }
    const crd_status st = norm == CRDI_NORM_MODES ? find_modes(e, &t) : balance(e, &t);
    if (st < 0 || invert(&t) < 0) { return CRD_OK; }
    b->growth = find_growth(e, &t);
    fill(e, &t, b);
    return CRD_OK;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void crdi_bound_step(crdi_bound* b, const crdi_errors* e, double h, const crdi_drive* drive)
{
    const int p = e->outputs;
    double g = 0, *direct = e->work; // (outputs) what follows at once
    memset(direct, 0, (size_t)p * sizeof *direct);
    for (int j = 0; j < e->inputs; j++) {
        const double most = larger(fabs(e->s[j]), fabs(drive[j].end));
        g += b->into[j] * drive[j].most + b->back[j] * most;
        if (most == 0) { continue; }
        for (int i = 0; i < p; i++) {
            direct[i] += fabs(e->Dc[j * p + i]) * most;
        }
    }
    const double z = b->growth * h, gain = exp(z), past = b->size;
    b->size = gain * past + h * (fabs(z) > 1e-8 ? expm1(z) / z : 1) * g;
    const double most = larger(past, b->size); // between them it rises or falls
    for (int i = 0; i < p; i++) {
        const double y = b->out[i] * most + direct[i];
        b->square[i] += h * y * y;
    }
}
