// References of the benchmark circuits from their state equations, worked out by hand.
#include "reproduce/circuits.h"
#include "shared/num.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

// ---- linear circuits ---------------------------------------------------------------------------

// x' = M x with x = (states, sin wt, cos wt); E = 100 sin wt is the next to last times 100.
static void rlc_matrix(double* m, double omega)
{
    const double L = 0.1, C = 0.6, R = 10;
    const double rows[4][4] = {{-1 / (R * C), -1 / C, 100 / (R * C), 0}, // voltage of both C
                               {1 / L, 0, 0, 0},                         // current of L
                               {0, 0, 0, omega},
                               {0, 0, -omega, 0}};
    memcpy(m, rows, sizeof rows);
}

// States: voltages of the capacitors, then currents of the inductors. A current that leaves the
// line at loop j lowers it at loop k by R min(j, k).
static void scalable_matrix(double* m, int loops, double omega)
{
    const double L = 0.1, C = 0.1, R = 10;
    const int size = 2 * loops + 2;
    for (int k = 0; k < loops; k++) {
        double* current = m + (loops + k) * size;
        m[k * size + loops + k] = 1 / C;
        current[k] = -1 / L;
        current[2 * loops] = 100 / L;
        for (int j = 0; j < loops; j++) {
            current[loops + j] = -R * (fmin(j, k) + 1) / L;
        }
    }
    m[2 * loops * size + 2 * loops + 1] = omega;
    m[(2 * loops + 1) * size + 2 * loops] = -omega;
}

static crd_status linear(const crdi_bench* b, crd_arena* arena, crdi_samples* out)
{
    const bool scalable = b->problem == CRDI_SCALABLE;
    const int size = scalable ? 2 * b->loops + 2 : 4;
    const int y = scalable ? b->watched - 1 : 0, z = scalable ? b->loops + y : 1;
    const size_t square = (size_t)size * (size_t)size;
    double* m = crdi_arena_new(arena, 3 * square + 2 * (size_t)size, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    double *work = m + square, *x = work + 2 * square, *next = x + size;
    if (scalable) {
        scalable_matrix(m, b->loops, 10 * pi);
    } else {
        rlc_matrix(m, 10 * pi);
    }
    for (size_t i = 0; i < square; i++) {
        m[i] *= b->until / b->samples;
    }
    const crd_status st = crdi_num_expm(size, m, work);
    if (st < 0) { return crdi_fail(b->ctx, st, "benchmark circuit: no matrix exponential"); }
    x[size - 1] = 1;
    for (int i = 0; i < b->samples; i++) {
        for (int r = 0; r < size; r++) {
            next[r] = 0;
            for (int c = 0; c < size; c++) {
                next[r] += m[r * size + c] * x[c];
            }
        }
        memcpy(x, next, (size_t)size * sizeof *x);
        out->y[i] = x[y];
        out->z[i] = x[z];
    }
    return CRD_OK;
}

// ---- rectifier ---------------------------------------------------------------------------------

// Two diodes carry the current, w = I_D + I_o each, with w1 of the pair that |E| drives:
//     v(w) = n Vt ln(w / I_o) + R_c (w - I_o),   w1 + w2 = s = i + 2 I_o,   v(w1) - v(w2) = |E|
//     L i' = |E| - 2 v(w1) - R i
// Solved for ln(s / 2 I_o), which no step can make impossible.
static const double Io = 1e-15, Rc = 1e-3, nVt = 1.5 * 1.380649e-23 * 300 / 1.602176634e-19;

static double source(double t)
{
    return 100 * sin(10 * pi * t);
}

// v(w1), and the sum of both diodes' conductances
static double drive_reference(double s, double E, double* conductance)
{
    double u = log(0.5 * s / Io), w1 = 0.5 * s, w2 = w1; // u: ln(w2 / Io)
    // The mismatch falls with u and bends down, so from |E| = 0 Newton comes down without a jump.
    for (int k = 0; k < 100; k++) {
        const double off = nVt * log(w1 / Io) + Rc * (w1 - w2) - nVt * u - E;
        const double slope = -w2 * (nVt / w1 + Rc) - nVt - Rc * w2;
        const double du = -off / slope;
        u += du;
        w2 = Io * exp(u);
        w1 = s - w2;
        if (fabs(du) <= 1e-15 * fmax(1, fabs(u))) { break; }
    }
    *conductance = w1 / (nVt + Rc * w1) + w2 / (nVt + Rc * w2);
    return nVt * log(w1 / Io) + Rc * (w1 - Io);
}

static double circuits_reference_rate(double t, double y, double* slope)
{
    const double L = 0.1, R = 10, s = 2 * Io * exp(y), E = fabs(source(t));
    double conductance;
    const double force = E - 2 * drive_reference(s, E, &conductance) - R * (s - 2 * Io);
    *slope = (-2 / conductance - R - force / s) / L;
    return force / (L * s);
}

// (I - h A diag(slopes)) x = b
static void solve3(const double a[3][3], double h, const double* slope, double* b)
{
    double m[3][4];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            m[i][j] = (i == j) - h * a[i][j] * slope[j];
        }
        m[i][3] = b[i];
    }
    for (int k = 0; k < 3; k++) {
        int top = k;
        for (int i = k + 1; i < 3; i++) {
            if (fabs(m[i][k]) > fabs(m[top][k])) { top = i; }
        }
        for (int j = k; j < 4; j++) {
            const double swap = m[k][j];
            m[k][j] = m[top][j];
            m[top][j] = swap;
        }
        for (int i = k + 1; i < 3; i++) {
            const double f = m[i][k] / m[k][k];
            for (int j = k; j < 4; j++) {
                m[i][j] -= f * m[k][j];
            }
        }
    }
    for (int i = 2; i >= 0; i--) {
        b[i] = m[i][3];
        for (int j = i + 1; j < 3; j++) {
            b[i] -= m[i][j] * b[j];
        }
        b[i] /= m[i][i];
    }
}

// Radau IIA of order 5: y at t + h. false: Newton did not converge.
static bool radau(double t, double h, double* y)
{
    const double q = sqrt(6), c[3] = {(4 - q) / 10, (4 + q) / 10, 1};
    const double a[3][3] = {{(88 - 7 * q) / 360, (296 - 169 * q) / 1800, (-2 + 3 * q) / 225},
                            {(296 + 169 * q) / 1800, (88 + 7 * q) / 360, (-2 - 3 * q) / 225},
                            {(16 - q) / 36, (16 + q) / 36, 1. / 9}};
    double x[3] = {*y, *y, *y};
    for (int k = 0; k < 60; k++) {
        double f[3], slope[3], r[3], largest = 0;
        for (int i = 0; i < 3; i++) {
            f[i] = circuits_reference_rate(t + c[i] * h, x[i], &slope[i]);
        }
        for (int i = 0; i < 3; i++) {
            r[i] = *y - x[i] + h * (a[i][0] * f[0] + a[i][1] * f[1] + a[i][2] * f[2]);
        }
        solve3(a, h, slope, r);
        for (int i = 0; i < 3; i++) {
            x[i] += fmax(-2, fmin(2, r[i]));
            largest = fmax(largest, fabs(r[i]));
        }
        if (largest < 1e-14 * 40) { // y grows to 35
            *y = x[2];
            return true;
        }
    }
    return false;
}

static crd_status rectifier(const crdi_bench* b, crdi_samples* out)
{
    double y = 0, t = 0;
    for (int i = 0; i < b->samples; i++) {
        const double end = b->until * (i + 1) / b->samples;
        while (t < end) {
            // from the nearest time at which E changes its sign
            const double away = fabs(t - 0.1 * round(t / 0.1));
            const double want = fmax(0.5e-6, fmin(50e-6, away / 64)), left = end - t;
            const double parts = ceil(left / want - 1e-9), h = left / parts;
            if (!radau(t, h, &y)) {
                return crdi_fail(b->ctx, CRD_E_CONVERGENCE,
                                 "benchmark rectifier: no reference at t = %g s", t);
            }
            t = parts <= 1 ? end : t + h;
        }
        const double s = 2 * Io * exp(y), E = source(end);
        double conductance;
        const double v = drive_reference(s, fabs(E), &conductance);
        out->y[i] = E >= 0 ? v : v + E;
        out->z[i] = s - 2 * Io;
    }
    return CRD_OK;
}

// ---- motor -------------------------------------------------------------------------------------

enum { AXIS, ROTOR, COPPER, YOKE, HOUSING, PLATE, BEARING = PLATE + 2, STATES = BEARING + 2 };

// Appendix B at 1570 rad/s, t in K, K/W
static double air_gap(double t)
{
    const double e = 1e-3, ra = 60e-3, area = 0.0367, omega = 1570;
    const double mu = 1.458e-6 * pow(t, 1.5) / (t + 110.4), rho = 101325 / (287.05 * t);
    const double kappa = 2.64638e-3 * pow(t, 1.5) / (t + 245.4 * pow(10, -12 / t));
    const double half = 1 - e / (2 * ra), x = 1 - 0.652 * (e / ra) / half;
    const double p = 0.0571 * x + 0.00056 / x;
    const double geometry = pow(pi, 4) / (1697 * p * half * half);
    const double taylor = omega * omega * ra * e * e * e * (rho / mu) * (rho / mu) / geometry;
    const double nusselt = taylor < 1700  ? 2
                           : taylor < 1e4 ? 0.128 * pow(taylor, 0.367)
                                          : 0.409 * pow(taylor, 0.241);
    return 2 * e / (nusselt * kappa * area);
}

// From rotor to tooth. `*gap` is the resistance of the air gap, guess and result: it depends on the
// temperatures beside it so weakly that two rounds do.
static double through_gap(double rotor, double yoke, double* gap)
{
    double q = 0;
    for (int k = 0; k < 3; k++) {
        q = (rotor - yoke - 0.02 * 200) / (0.015 + *gap + 0.025 + 0.02);
        const double surface = rotor - 0.015 * q, bore = yoke + 0.02 * (q + 200) + 0.025 * q;
        *gap = air_gap(300 + 0.5 * (surface + bore));
    }
    return q;
}

static void heat_flow(const double* T, double* gap, double* rates)
{
    const double q = through_gap(T[ROTOR], T[YOKE], gap), inner = (T[AXIS] - T[ROTOR]) / 0.025;
    const double wire = (T[COPPER] - T[YOKE]) / 0.051, yoke = (T[YOKE] - T[HOUSING]) / 0.0025;
    double axis = -inner, housing = yoke - (T[HOUSING] - 20) / 0.001;
    for (int k = 0; k < 2; k++) {
        const double to_plate = (T[HOUSING] - T[PLATE + k]) / 0.25;
        const double shaft = (T[BEARING + k] - T[PLATE + k]) / 1;
        const double bearing = (T[AXIS] - T[BEARING + k]) / 3;
        rates[PLATE + k] = (to_plate + shaft - T[PLATE + k] / 0.5) / 300;
        rates[BEARING + k] = (50 + bearing - shaft) / 500;
        axis -= bearing;
        housing -= to_plate;
    }
    rates[AXIS] = axis / 2000;
    rates[ROTOR] = (150 + inner - q) / 5000;
    rates[COPPER] = (2000 - wire) / 2000;
    rates[YOKE] = (wire + q + 200 - yoke) / 1500;
    rates[HOUSING] = housing / 3000;
}

static void runge_kutta(double* T, double* gap, double h)
{
    static const double at[4] = {0, 0.5, 0.5, 1}, weight[4] = {1. / 6, 1. / 3, 1. / 3, 1. / 6};
    double k[STATES] = {0}, x[STATES], sum[STATES] = {0};
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < STATES; i++) {
            x[i] = T[i] + at[stage] * h * k[i];
        }
        heat_flow(x, gap, k);
        for (int i = 0; i < STATES; i++) {
            sum[i] += weight[stage] * k[i];
        }
    }
    for (int i = 0; i < STATES; i++) {
        T[i] += h * sum[i];
    }
}

static void motor(const crdi_bench* b, crdi_samples* out)
{
    double T[STATES] = {0}, gap = 0.2066;
    for (int i = 0; i < b->samples; i++) {
        // The fast part of the answer (about 1 s) has died away after a minute.
        const int parts = i < 64 ? 512 : i < 512 ? 64 : 16;
        for (int k = 0; k < parts; k++) {
            runge_kutta(T, &gap, 1. / parts);
        }
        out->x[i] = T[YOKE];
        out->y[i] = T[ROTOR];
        out->z[i] = (T[HOUSING] - 20) / 0.001;
    }
}

crd_status crdi_bench_reference(const crdi_bench* b, crd_arena* arena, crdi_samples* out)
{
    const crd_status st = crdi_samples_init(b, arena, out);
    if (st < 0) { return st; }
    switch (b->problem) {
    case CRDI_RECTIFIER:
        return rectifier(b, out);
    case CRDI_MOTOR:
        motor(b, out);
        return CRD_OK;
    default:
        return linear(b, arena, out);
    }
}
