// The error of coupled linear units. Nothing here knows units; estimate.c does.
#include "master/verdict/estimate.h"

#include <math.h>
#include <string.h>

static size_t product(int a, int b)
{
    return (size_t)a * (size_t)b;
}

crd_status crdi_errors_init(crd_arena* arena, crdi_errors* s)
{
    const int n = s->states, m = s->inputs, p = s->outputs;
    const size_t closing = product(p, p + n + m), stepping = 5 * product(n, n);
    const size_t work = (closing > stepping ? closing : stepping) + 3 * (size_t)n + (size_t)p;
    struct {
        double** field;
        size_t size;
    } const fields[] = {
        {&s->A, product(n, n)},   {&s->B, product(n, m)},      {&s->C, product(p, n)},
        {&s->D, product(p, m)},   {&s->Ac, product(n, n)},     {&s->Cc, product(p, n)},
        {&s->Dc, product(p, m)},  {&s->F, product(n, m)},      {&s->phi, product(n, n)},
        {&s->psi, product(n, n)}, {&s->chi, product(n, n)},    {&s->work, work},
        {&s->e, (size_t)n},       {&s->s, (size_t)m},          {&s->y, (size_t)p},
        {&s->square, (size_t)p},  {&s->max, (size_t)p},        {&s->missed, (size_t)n},
        {&s->own, (size_t)n},     {&s->own_square, (size_t)p},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i].field = crdi_arena_new(arena, fields[i].size, sizeof(double));
        if (!*fields[i].field) { return CRD_E_MEMORY; }
    }
    for (int j = 0; s->degree && j < m; j++) {
        double** shape = s->degree[j] > 0 ? &s->shapes[s->degree[j] - 1] : NULL;
        if (!shape || *shape) { continue; }
        *shape = crdi_arena_new(arena, product(n, n), sizeof(double));
        if (!*shape) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

// ---- small linear algebra ----------------------------------------------------------------------

static void swap_rows(double* x, int columns, int i, int k)
{
    for (int j = 0; j < columns && i != k; j++) {
        const double keep = x[i * columns + j];
        x[i * columns + j] = x[k * columns + j];
        x[k * columns + j] = keep;
    }
}

// x = a^-1 x for n rows of so many columns, by Gauss and Jordan with row pivots; a is destroyed.
// false: it is singular, or not finite.
static bool divide(int n, int columns, double* a, double* x)
{
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c + 1; i < n; i++) {
            if (fabs(a[i * n + c]) > fabs(a[pivot * n + c])) { pivot = i; }
        }
        const double top = a[pivot * n + c];
        if (!(fabs(top) > 0) || !isfinite(top)) { return false; }
        swap_rows(a, n, c, pivot);
        swap_rows(x, columns, c, pivot);
        for (int i = 0; i < n; i++) {
            const double factor = i == c ? 0 : a[i * n + c] / top;
            if (factor == 0) { continue; }
            for (int j = c; j < n; j++) {
                a[i * n + j] -= factor * a[c * n + j];
            }
            for (int j = 0; j < columns; j++) {
                x[i * columns + j] -= factor * x[c * columns + j];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < columns; j++) {
            x[i * columns + j] /= a[i * n + i];
        }
    }
    return true;
}

// out += a x, a column by column; vectors of the run are often 0.
static void errors_add_product(int rows, int columns, const double* restrict a, const double* x,
                               double* restrict out)
{
    for (int j = 0; j < columns; j++, a += rows) {
        const double factor = x[j];
        if (factor == 0) { continue; }
        for (int i = 0; i < rows; i++) {
            out[i] += factor * a[i];
        }
    }
}

static void errors_multiply(int n, const double* a, const double* b, double* out)
{
    memset(out, 0, product(n, n) * sizeof *out);
    for (int j = 0; j < n; j++) {
        errors_add_product(n, n, a, b + j * n, out + j * n);
    }
}

// ---- the closed loop ---------------------------------------------------------------------------

crd_status crdi_errors_close(crdi_errors* s)
{
    const int n = s->states, m = s->inputs, p = s->outputs;
    double *loop = s->work, *x = loop + p * p; // I - D G, and [C D], row by row
    memset(loop, 0, product(p, p) * sizeof *loop);
    for (int i = 0; i < p; i++) {
        loop[i * p + i] = 1;
        for (int j = 0; j < m; j++) {
            if (s->source[j] >= 0) { loop[i * p + s->source[j]] -= s->D[j * p + i] * s->gain[j]; }
        }
        for (int j = 0; j < n + m; j++) {
            x[i * (n + m) + j] = j < n ? s->C[j * p + i] : s->D[(j - n) * p + i];
        }
    }
    if (!divide(p, n + m, loop, x)) { return CRD_E_CONVERGENCE; }
    for (int i = 0; i < p; i++) {
        for (int j = 0; j < n + m; j++) {
            *(j < n ? &s->Cc[j * p + i] : &s->Dc[(j - n) * p + i]) = x[i * (n + m) + j];
        }
    }
    memcpy(s->Ac, s->A, product(n, n) * sizeof *x);
    memset(s->F, 0, product(n, m) * sizeof *x);
    for (int j = 0; j < m; j++) {
        const int from = s->source[j];
        for (int k = 0; from >= 0 && k < n + m; k++) {
            const double g = s->gain[j] * (k < n ? s->Cc[k * p + from] : s->Dc[(k - n) * p + from]);
            errors_add_product(n, 1, s->B + j * n, &g, k < n ? s->Ac + k * n : s->F + (k - n) * n);
        }
    }
    s->h = 0;
    return CRD_OK;
}

// ---- one step ----------------------------------------------------------------------------------

void crdi_errors_forget_own(crdi_errors* s)
{
    for (int i = 0; i < s->states; i++) {
        s->e[i] -= s->own[i];
        s->own[i] = 0;
    }
}

// With forcing b constant over the step, and z = h Ac: e(h) = exp(z) e + h phi1(z) b. The
// exponential is its Pade approximant (2, 3), which is of order 5 and forgets what decays fast,
// however stiff.
//   q(z) = 1 - 3/5 z + 3/20 z^2 - 1/60 z^3
//   exp(z) ~ (1 + 2/5 z + 1/20 z^2) / q,   phi1(z) ~ (1 - 1/10 z + 1/60 z^2) / q
// It costs a few matrix products and no scaling, so that every step may have another length.
static bool discretise_loop(crdi_errors* s, double h)
{
    const int n = s->states;
    double *z2 = s->work, *z3 = z2 + n * n, *q = z3 + n * n, *x = q + n * n; // x = [phi, psi]
    errors_multiply(n, s->Ac, s->Ac, z2);
    errors_multiply(n, s->Ac, z2, z3);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const int k = j * n + i;
            const double one = i == j, z = h * s->Ac[k], zz = h * h * z2[k];
            q[i * n + j] = one - 0.6 * z + 0.15 * zz - h * h * h * z3[k] / 60;
            x[i * 2 * n + j] = one + 0.4 * z + 0.05 * zz;
            x[i * 2 * n + n + j] = h * (one - 0.1 * z + zz / 60);
        }
    }
    if (!divide(n, 2 * n, q, x)) { return false; }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            s->phi[j * n + i] = x[i * 2 * n + j];
            s->psi[j * n + i] = x[i * 2 * n + n + j];
        }
    }
    return true;
}

// A forcing without mean makes states swing within the step, of which the others, for whom y goes
// on from sample to sample, see nothing but the end: the loop is open here. With x = t / h, w = 1 -
// x and z = h A the end is h times the integral of exp(z w) over the forcing,
//   x - 1/2:            -z/12    (1 + z/2 + ...)   a line
//   P2 = 6 x^2 - 6 x + 1: z^2/60 (1 + z/2 + z^2/7 + ...)
//   P3:                 -z^3/840 (1 + z/2 + 5 z^2/36 + ...)
// as quotients that have these terms and, however stiff, what is left then: the value at x = 1.
static bool discretise_shape(crdi_errors* s, double h, int degree, double* out)
{
    static const double tops[] = {-1.0 / 12, 1.0 / 60, -1.0 / 840};
    static const double below[3][5] = {{1, -0.5, 1.0 / 6},
                                       {1, -0.5, 3.0 / 28, -1.0 / 60},
                                       {1, -0.5, 1.0 / 9, -1.0 / 72, 1.0 / 840}};
    const int n = s->states;
    double *power = s->work, *next = power + n * n, *q = next + n * n, *x = q + n * n;
    memset(s->work, 0, 4 * product(n, n) * sizeof *x);
    for (int i = 0; i < n; i++) {
        power[i * n + i] = 1;
    }
    for (int k = 0; k <= degree + 1; k++) { // power = z^k
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                q[i * n + j] += below[degree - 1][k] * power[j * n + i];
                if (k == degree) { x[i * n + j] = h * tops[degree - 1] * power[j * n + i]; }
            }
        }
        errors_multiply(n, s->A, power, next);
        for (int i = 0; i < n * n; i++) {
            power[i] = h * next[i];
        }
    }
    if (!divide(n, n, q, x)) { return false; }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            out[j * n + i] = x[i * n + j];
        }
    }
    return true;
}

static bool discretise_units(crdi_errors* s, double h)
{
    bool good = discretise_shape(s, h, 1, s->chi);
    for (int i = 0; i < 2 && good; i++) {
        if (s->shapes[i]) { good = discretise_shape(s, h, i + 2, s->shapes[i]); }
    }
    return good;
}

// next += what the forcings b of the inputs with shapes of this degree leave behind
static void add_shapes(const crdi_errors* s, const crdi_drive* drive, int degree, double* b,
                       double* next)
{
    const int n = s->states;
    memset(b, 0, (size_t)n * sizeof *b);
    for (int j = 0; j < s->inputs; j++) {
        if (s->degree[j] + 1 != degree) { continue; }
        errors_add_product(n, 1, s->B + j * n, &drive[j].shape, b);
    }
    errors_add_product(n, n, s->shapes[degree - 2], b, next);
}

// What solvers miss comes little by little, and the others see it come: what they have been told by
// the end of the step is r + h/2 (Ac - A) r, to second order.
static void add_missed(crdi_errors* s)
{
    const int n = s->states;
    double *own = s->work, *closed = own + n, *open = closed + n;
    memset(own, 0, 3 * (size_t)n * sizeof *own);
    errors_add_product(n, n, s->phi, s->own, own);
    errors_add_product(n, n, s->Ac, s->missed, closed);
    errors_add_product(n, n, s->A, s->missed, open);
    for (int i = 0; i < n; i++) {
        const double r = s->missed[i] + 0.5 * s->h * (closed[i] - open[i]);
        s->e[i] += r;
        s->own[i] = own[i] + r;
    }
}

static void advance_states(crdi_errors* s, const crdi_drive* drive)
{
    const int n = s->states, m = s->inputs;
    double *b = s->work, *c = b + n, *next = c + n;
    memset(b, 0, 3 * (size_t)n * sizeof *b);
    for (int j = 0; j < m; j++) {
        const double middle = 0.5 * (s->s[j] + drive[j].end);
        errors_add_product(n, 1, s->B + j * n, &drive[j].mean, b);
        errors_add_product(n, 1, s->F + j * n, &middle, b);
        errors_add_product(n, 1, s->B + j * n, &drive[j].change, c);
        s->s[j] = drive[j].end;
    }
    errors_add_product(n, n, s->phi, s->e, next);
    errors_add_product(n, n, s->psi, b, next);
    errors_add_product(n, n, s->chi, c, next);
    for (int i = 0; i < 2; i++) {
        if (s->shapes[i]) { add_shapes(s, drive, i + 2, b, next); }
    }
    memcpy(s->e, next, (size_t)n * sizeof *next);
    add_missed(s);
}

crd_status crdi_errors_step(crdi_errors* s, double h, const crdi_drive* drive)
{
    const int p = s->outputs;
    if (h != s->h) {
        if (!discretise_loop(s, h) || !discretise_units(s, h)) { return CRD_E_RANGE; }
        s->h = h;
    }
    advance_states(s, drive);
    double *y = s->work, sum = 0; // sum: finite as long as everything is
    memset(y, 0, (size_t)p * sizeof *y);
    errors_add_product(p, s->states, s->Cc, s->e, y);
    errors_add_product(p, s->inputs, s->Dc, s->s, y);
    for (int i = 0; i < p; i++) {
        const double a = s->y[i], b = y[i];
        s->y[i] = b;
        s->square[i] += h * (a * a + a * b + b * b) / 3; // of a line
        s->max[i] = fabs(b) > s->max[i] ? fabs(b) : s->max[i];
        sum += s->square[i];
    }
    memset(y, 0, (size_t)p * sizeof *y);
    errors_add_product(p, s->states, s->Cc, s->own, y);
    for (int i = 0; i < p; i++) {
        s->own_square[i] += h * y[i] * y[i];
    }
    s->time += h;
    return isfinite(sum) ? CRD_OK : CRD_E_RANGE;
}
