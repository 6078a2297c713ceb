/// What the example models share: signals with derivatives, rows of tables, RK4, and the exact
/// propagation of small linear systems whose inputs are polynomials.
#pragma once
#include "cardan/model.h"

#include <math.h>
#include <string.h>

/// A value and its first two time derivatives: an input's at the beginning of the step, an output's
/// at its end.
typedef struct signal {
    double v;
    double d[CRD_MODEL_MAX_ORDER];
} signal;

static inline double signal_at(const signal* s, double tau)
{
    return s->v + tau * (s->d[0] + 0.5 * tau * s->d[1]);
}

static inline void signal_hold(signal* s)
{
    s->d[0] = s->d[1] = 0;
}

// ---- rows --------------------------------------------------------------------------------------

#define ROW_SIGNAL(type_, field, name_, cause, unit_)                                              \
    .name = name_, .type = CRD_FLOAT64, .causality = cause, .variability = CRD_CONTINUOUS,         \
    .offset = offsetof(type_, field.v), .derivatives = offsetof(type_, field.d), .unit = unit_
#define ROW_REAL(type_, field, name_, cause, unit_)                                                \
    .name = name_, .type = CRD_FLOAT64, .causality = cause, .variability = CRD_CONTINUOUS,         \
    .offset = offsetof(type_, field), .unit = unit_, .depends = ""
#define ROW_PARAMETER(type_, field, name_, start_, unit_)                                          \
    .name = name_, .type = CRD_FLOAT64, .causality = CRD_PARAMETER, .variability = CRD_FIXED,      \
    .offset = offsetof(type_, field), .start = start_, .unit = unit_
#define ROW_CHOICE(type_, field, name_, start_, items_)                                            \
    .name = name_, .type = CRD_ENUMERATION, .causality = CRD_PARAMETER, .variability = CRD_FIXED,  \
    .offset = offsetof(type_, field), .start = start_, .items = items_
#define ROW_COUNT(type_, field, name_, start_, min_, max_)                                         \
    .name = name_, .type = CRD_INT32, .causality = CRD_PARAMETER, .variability = CRD_FIXED,        \
    .offset = offsetof(type_, field), .start = start_, .min = min_, .max = max_

/// der(state) of a model that is a differential equation; says .depends itself.
#define ROW_DERIVATIVE(type_, field, state_, unit_)                                                \
    .name = "der(" state_ ")", .type = CRD_FLOAT64, .causality = CRD_LOCAL,                        \
    .variability = CRD_CONTINUOUS, .offset = offsetof(type_, field), .unit = unit_,                \
    .derivative_of = state_

/// Number of rows of a table.
#define ROWS(table) .variables = table, .variable_count = (int)(sizeof(table) / sizeof *(table))

// ---- Runge-Kutta 4 -----------------------------------------------------------------------------

#define ODE_MAX 8

/// dx = f(t + tau, x), tau counted from the beginning of the macro step, where the inputs start.
typedef void ode_rhs(const void* self, double t, double tau, const double* x, double* dx);

static inline void rk4(ode_rhs* f, const void* self, double t, double h, int substeps, double* x,
                       int n)
{
    double k1[ODE_MAX], k2[ODE_MAX], k3[ODE_MAX], k4[ODE_MAX], y[ODE_MAX];
    const int count = substeps > 0 ? substeps : 1;
    const double dt = h / count;
    for (int s = 0; s < count; s++) {
        const double tau = s * dt;
        f(self, t, tau, x, k1);
        for (int i = 0; i < n; i++) {
            y[i] = x[i] + 0.5 * dt * k1[i];
        }
        f(self, t, tau + 0.5 * dt, y, k2);
        for (int i = 0; i < n; i++) {
            y[i] = x[i] + 0.5 * dt * k2[i];
        }
        f(self, t, tau + 0.5 * dt, y, k3);
        for (int i = 0; i < n; i++) {
            y[i] = x[i] + dt * k3[i];
        }
        f(self, t, tau + dt, y, k4);
        for (int i = 0; i < n; i++) {
            x[i] += dt / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
        }
    }
}

// ---- exact propagation -------------------------------------------------------------------------

#define LINEAR_N 4 // states
#define LINEAR_M 2 // inputs
#define EXPM_N (LINEAR_N + 3 * LINEAR_M)

/// x' = A x + B u over a step h: x+ = phi x + gamma[0] u + gamma[1] u' + gamma[2] u''.
/// Kept in the model's state, as it is worked out again only when h changes.
typedef struct propagator {
    double h; // 0: not worked out
    double phi[LINEAR_N][LINEAR_N];
    double gamma[3][LINEAR_N][LINEAR_M];
} propagator;

static inline void expm_multiply(int n, double a[EXPM_N][EXPM_N], double b[EXPM_N][EXPM_N],
                                 double out[EXPM_N][EXPM_N])
{
    double c[EXPM_N][EXPM_N] = {{0}};
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) {
                sum += a[i][k] * b[k][j];
            }
            c[i][j] = sum;
        }
    }
    memcpy(out, c, sizeof c);
}

/// e = exp(a): Taylor polynomial of a / 2^s with norm below 1/2, then squared s times.
static inline void expm(int n, double a[EXPM_N][EXPM_N], double e[EXPM_N][EXPM_N])
{
    double norm = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) {
            sum += fabs(a[i][j]);
        }
        norm = fmax(norm, sum);
    }
    int squarings = 0;
    for (; norm > 0.5 && squarings < 60; squarings++) {
        norm *= 0.5;
    }
    double term[EXPM_N][EXPM_N] = {{0}}, b[EXPM_N][EXPM_N] = {{0}};
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            b[i][j] = ldexp(a[i][j], -squarings);
            term[i][j] = e[i][j] = i == j;
        }
    }
    for (int k = 1; k <= 16; k++) {
        expm_multiply(n, term, b, term);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                term[i][j] /= k;
                e[i][j] += term[i][j];
            }
        }
    }
    for (; squarings > 0; squarings--) {
        expm_multiply(n, e, e, e);
    }
}

/// Of the augmented system with the states (x, u, u', u'').
static inline void propagator_make(propagator* p, int n, int m, double A[][LINEAR_N],
                                   double B[][LINEAR_M], double h)
{
    double z[EXPM_N][EXPM_N] = {{0}}, e[EXPM_N][EXPM_N] = {{0}};
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            z[i][j] = A[i][j] * h;
        }
        for (int j = 0; j < m; j++) {
            z[i][n + j] = B[i][j] * h;
        }
    }
    for (int j = 0; j < 2 * m; j++) {
        z[n + j][n + m + j] = h;
    }
    expm(n + 3 * m, z, e);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            p->phi[i][j] = e[i][j];
        }
        for (int o = 0; o < 3; o++) {
            for (int j = 0; j < m; j++) {
                p->gamma[o][i][j] = e[i][n + o * m + j];
            }
        }
    }
    p->h = h;
}

static inline void propagator_apply(const propagator* p, int n, int m, double* x,
                                    const signal* const* u)
{
    double y[LINEAR_N];
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) {
            sum += p->phi[i][j] * x[j];
        }
        for (int j = 0; j < m; j++) {
            sum += p->gamma[0][i][j] * u[j]->v + p->gamma[1][i][j] * u[j]->d[0] +
                   p->gamma[2][i][j] * u[j]->d[1];
        }
        y[i] = sum;
    }
    memcpy(x, y, (size_t)n * sizeof *x);
}
