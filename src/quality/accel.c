// Fixed-point iterations over a macro step, made faster. Aitken's relaxation for vectors; interface
// quasi-Newton with the inverse Jacobian from a least-squares problem (Degroote, Bathe and
// Vierendeels 2009).
#include "cardan/quality.h"
#include "shared/base.h"
#include "shared/num.h"

#include <math.h>
#include <string.h>

static const char* const names[] = {"fixed", "aitken", "iqn-ils"};

const char* crd_accel_name(crd_accel_method m)
{
    return names[m];
}

bool crd_accel_find(const char* name, crd_accel_method* out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (crd_accel_method)i;
            return true;
        }
    }
    return false;
}

struct crd_accel {
    crd_context* ctx;
    crd_accel_options opt; // columns at most n
    double* tolerance;     // (n)
    double* r;             // residual in units of its tolerance, this sweep (n)
    double* r_last;        // ... and the last (n)
    double* g_last;        // result of the last sweep (n)
    double* dr;            // differences of r, newest first (columns x n)
    double* dg;            // differences of g (columns x n)
    double* a;             // workspace of the least squares (columns x n)
    double* c;             // its solution (columns)
    double* triangle;      // workspace (columns x columns)
    double omega;
    int used;   // differences there are
    int sweeps; // since start
};

crd_accel_options crd_accel_defaults(void)
{
    return (crd_accel_options){
        .method = CRD_ACCEL_IQN_ILS, .columns = 8, .omega = 1, .omega_max = 10, .drop = 1e-8};
}

static crd_status check_accel_options(crd_context* ctx, const crd_accel_options* opt)
{
    if (opt->n < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "acceleration: n = %d signals, expected >= 1", opt->n);
    }
    if (opt->columns < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "acceleration: columns = %d, expected >= 1",
                         opt->columns);
    }
    if (!(opt->omega > 0 && opt->omega < 2)) {
        return crdi_fail(ctx, CRD_E_RANGE, "acceleration: omega = %g, expected 0 < omega < 2",
                         opt->omega);
    }
    if (!(opt->omega_max > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "acceleration: omega_max = %g, expected > 0",
                         opt->omega_max);
    }
    if (!(opt->drop >= 0 && opt->drop < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "acceleration: drop = %g, expected 0 <= drop < 1",
                         opt->drop);
    }
    for (int i = 0; opt->tolerance && i < opt->n; i++) {
        if (!(opt->tolerance[i] > 0)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "acceleration: tolerance of signal %d = %g, expected > 0", i,
                             opt->tolerance[i]);
        }
    }
    return CRD_OK;
}

crd_status crd_accel_create(crd_context* ctx, const crd_accel_options* opt, crd_accel** out)
{
    crd_status st = check_accel_options(ctx, opt);
    if (st < 0) { return st; }
    crd_accel* a = crdi_new(ctx, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    a->ctx = ctx;
    a->opt = *opt;
    if (a->opt.columns > opt->n) { a->opt.columns = opt->n; }
    const size_t n = (size_t)opt->n;
    const size_t m = opt->method == CRD_ACCEL_IQN_ILS ? (size_t)a->opt.columns : 0;
    struct {
        double** where;
        size_t rows, columns;
    } const parts[] = {{&a->tolerance, 1, n}, {&a->r, 1, n},  {&a->r_last, 1, n},
                       {&a->g_last, 1, n},    {&a->dr, m, n}, {&a->dg, m, n},
                       {&a->a, m, n},         {&a->c, 1, m},  {&a->triangle, m, m}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].where = crdi_new_array(ctx, parts[i].columns, parts[i].rows * sizeof(double));
        if (!*parts[i].where) {
            st = CRD_E_MEMORY;
            goto fail;
        }
    }
    for (int i = 0; i < opt->n; i++) {
        a->tolerance[i] = opt->tolerance ? opt->tolerance[i] : 1;
    }
    a->opt.tolerance = a->tolerance;
    crd_accel_start(a);
    *out = a;
    return CRD_OK;
fail:
    crd_accel_destroy(a);
    return st;
}

void crd_accel_destroy(crd_accel* a)
{
    if (!a) { return; }
    double* const parts[] = {a->tolerance, a->r, a->r_last, a->g_last,  a->dr,
                             a->dg,        a->a, a->c,      a->triangle};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        crd_free(a->ctx, parts[i]);
    }
    crd_free(a->ctx, a);
}

void crd_accel_start(crd_accel* a)
{
    a->sweeps = 0;
    a->omega = a->opt.omega;
    if (!a->opt.reuse) { a->used = 0; }
}

int crd_accel_sweeps(const crd_accel* a)
{
    return a->sweeps;
}

static void relax(const crd_accel* a, double omega, double* x)
{
    for (int i = 0; i < a->opt.n; i++) {
        x[i] += omega * a->r[i] * a->tolerance[i];
    }
}

// omega = -omega r_last . (r - r_last) / |r - r_last|^2
static void aitken(crd_accel* a, double* x)
{
    if (a->sweeps > 1) {
        double dot = 0, square = 0;
        for (int i = 0; i < a->opt.n; i++) {
            const double d = a->r[i] - a->r_last[i];
            dot += a->r_last[i] * d;
            square += d * d;
        }
        if (square > 0) {
            const double max = a->opt.omega_max;
            a->omega = fmin(fmax(-a->omega * dot / square, -max), max);
        }
        if (a->omega == 0) { a->omega = a->opt.omega; } // zero would stay
    }
    relax(a, a->omega, x);
}

static void keep_difference(crd_accel* a, const double* gx)
{
    const size_t n = (size_t)a->opt.n, last = (size_t)a->opt.columns - 1;
    memmove(a->dr + n, a->dr, last * n * sizeof(double));
    memmove(a->dg + n, a->dg, last * n * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        a->dr[i] = a->r[i] - a->r_last[i];
        a->dg[i] = gx[i] - a->g_last[i];
    }
    if (a->used < a->opt.columns) { a->used++; }
}

// x = g + dG c, where dR c comes nearest to -r.
static void iqn_ils(crd_accel* a, double* x, const double* gx)
{
    const size_t n = (size_t)a->opt.n;
    if (a->sweeps > 1) { keep_difference(a, gx); }
    memcpy(a->a, a->dr, (size_t)a->used * n * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        a->r_last[i] = -a->r[i]; // free until the end of the step
    }
    const int rank =
        crdi_num_least_squares(a->opt.n, a->used, a->a, a->r_last, a->opt.drop, a->c, a->triangle);
    if (rank == 0) {
        relax(a, a->opt.omega, x);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = gx[i];
        for (size_t k = 0; k < (size_t)a->used; k++) {
            x[i] += a->c[k] * a->dg[k * n + i];
        }
    }
}

double crd_accel_step(crd_accel* a, double* x, const double* gx)
{
    const size_t n = (size_t)a->opt.n;
    double residual = 0;
    for (size_t i = 0; i < n; i++) {
        a->r[i] = (gx[i] - x[i]) / a->tolerance[i];
        residual = crd_defect_larger(residual, fabs(a->r[i]));
    }
    a->sweeps++;
    if (residual <= 1) {
        memcpy(x, gx, n * sizeof(double));
    } else if (a->opt.method == CRD_ACCEL_IQN_ILS) {
        iqn_ils(a, x, gx);
    } else if (a->opt.method == CRD_ACCEL_AITKEN) {
        aitken(a, x);
    } else {
        relax(a, a->opt.omega, x);
    }
    memcpy(a->r_last, a->r, n * sizeof(double));
    memcpy(a->g_last, gx, n * sizeof(double));
    return residual;
}
