// Exact steps of a reduced network whose inputs are linear between two instants (4.27).
//
// With A = Fc h and phi_j(A) = sum_i A^i / (i + j)!:
//     z1 = phi_0 z0 + h (phi_1 - phi_2) G1 v0 + h phi_2 G1 v1 + phi_1 G2 (v1 - v0)
// Derivatives with respect to parameters are carried along by the product rule.
#include "cardan/twin.h"
#include "twin/dense.h"

#include <math.h>
#include <string.h>

typedef struct phi { // of one matrix, or the derivative of that
    double *a, *p0, *p1, *p2;
} phi;

enum { PER_SET = 4, SPARE = 2 };

size_t crd_reduction_work_size(const crd_reduction* r, int groups)
{
    const crd_reduced* v = crd_reduction_get(r);
    const size_t p = (size_t)v->states, in = (size_t)v->inputs;
    return (PER_SET * ((size_t)groups + 1) + SPARE) * p * p + 2 * ((size_t)groups + 1) * p * in;
}

static phi set_of(double* work, int p, int i)
{
    const size_t size = (size_t)p * (size_t)p;
    double* at = work + (size_t)i * PER_SET * size;
    return (phi){at, at + size, at + 2 * size, at + 3 * size};
}

// The derivative of the product x y, given those of both: out = dx y + x dy
static void product_slope(int p, const double* x, const double* dx, const double* y,
                          const double* dy, double* out)
{
    crdi_dense_multiply(p, p, p, 1, dx, y, false, out);
    crdi_dense_multiply(p, p, p, 1, x, dy, true, out);
}

static double norm(int p, const double* a)
{
    double largest = 0;
    for (int i = 0; i < p; i++) {
        double sum = 0;
        for (int j = 0; j < p; j++) {
            sum += fabs(a[(ptrdiff_t)i * p + j]);
        }
        if (!(sum <= largest)) { largest = sum; }
    }
    return largest;
}

static void to_identity(int p, double* a, double f)
{
    memset(a, 0, (size_t)p * (size_t)p * sizeof *a);
    for (int i = 0; i < p; i++) {
        a[(ptrdiff_t)i * p + i] = f;
    }
}

static void add_identity(int p, double* a, double f)
{
    for (int i = 0; i < p; i++) {
        a[(ptrdiff_t)i * p + i] += f;
    }
}

static void discretise_scale(size_t count, double f, double* a)
{
    for (size_t i = 0; i < count; i++) {
        a[i] *= f;
    }
}

// phi_2 = 1/2 (I + A/3 (I + A/4 (...))), phi_1 = I + A phi_2, phi_0 = I + A phi_1; sets 1 .. groups
// are derivatives.
static void series(int p, int groups, double* work, double size, double* spare)
{
    const size_t all = (size_t)p * (size_t)p;
    const phi v = set_of(work, p, 0);
    int terms = 1;
    for (double rest = size / 3; rest > 1e-18 && terms < 30; rest *= size / (terms + 2)) {
        terms++;
    }
    to_identity(p, v.p2, 1);
    for (int g = 1; g <= groups; g++) {
        memset(set_of(work, p, g).p2, 0, all * sizeof(double));
    }
    for (int term = terms; term >= 1; term--) {
        for (int g = 1; g <= groups; g++) {
            const phi d = set_of(work, p, g);
            product_slope(p, v.a, d.a, v.p2, d.p2, spare);
            discretise_scale(all, 1.0 / (term + 2), spare);
            memcpy(d.p2, spare, all * sizeof *spare);
        }
        crdi_dense_multiply(p, p, p, 1.0 / (term + 2), v.a, v.p2, false, spare);
        memcpy(v.p2, spare, all * sizeof *spare);
        add_identity(p, v.p2, 1);
    }
    for (int g = 0; g <= groups; g++) {
        discretise_scale(all, 0.5, set_of(work, p, g).p2);
    }
    crdi_dense_multiply(p, p, p, 1, v.a, v.p2, false, v.p1);
    add_identity(p, v.p1, 1);
    crdi_dense_multiply(p, p, p, 1, v.a, v.p1, false, v.p0);
    add_identity(p, v.p0, 1);
    for (int g = 1; g <= groups; g++) {
        const phi d = set_of(work, p, g);
        product_slope(p, v.a, d.a, v.p2, d.p2, d.p1);
        product_slope(p, v.a, d.a, v.p1, d.p1, d.p0);
    }
}

// phi_2(2A) = (phi_1^2 + 2 phi_2) / 4, phi_1(2A) = (phi_0 phi_1 + phi_1) / 2, phi_0(2A) = phi_0^2
static void twice(int p, int groups, double* work, double* spare)
{
    const size_t all = (size_t)p * (size_t)p;
    const phi v = set_of(work, p, 0);
    for (int g = groups; g >= 0; g--) { // the values last: derivatives need the old ones
        const phi d = set_of(work, p, g);
        if (g) {
            product_slope(p, v.p1, d.p1, v.p1, d.p1, spare);
        } else {
            crdi_dense_multiply(p, p, p, 1, v.p1, v.p1, false, spare);
        }
        for (size_t i = 0; i < all; i++) {
            d.p2[i] = (spare[i] + 2 * d.p2[i]) / 4;
        }
        if (g) {
            product_slope(p, v.p0, d.p0, v.p1, d.p1, spare);
        } else {
            crdi_dense_multiply(p, p, p, 1, v.p0, v.p1, false, spare);
        }
        for (size_t i = 0; i < all; i++) {
            d.p1[i] = (spare[i] + d.p1[i]) / 2;
        }
        if (g) {
            product_slope(p, v.p0, d.p0, v.p0, d.p0, spare);
        } else {
            crdi_dense_multiply(p, p, p, 1, v.p0, v.p0, false, spare);
        }
        memcpy(d.p0, spare, all * sizeof *spare);
    }
}

// d1 = h phi_2 G1 + phi_1 G2, d0 = h phi_1 G1 - d1
static void inputs(int p, int r, double h, phi v, const crd_reduced* m, double* d0, double* d1)
{
    crdi_dense_multiply(p, p, r, h, v.p2, m->g1, false, d1);
    crdi_dense_multiply(p, p, r, 1, v.p1, m->g2, true, d1);
    crdi_dense_multiply(p, p, r, h, v.p1, m->g1, false, d0);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)p * r; i++) {
        d0[i] -= d1[i];
    }
}

// A is halved s times until the series converges at once (|A| <= 1/2), and doubled again after it:
//     z1 = f z0 + d0 v0 + d1 v1,   and df, dd0, dd1 by the groups of parameters:
//     d(d1) = h dphi_2 G1 + dphi_1 G2  +  h phi_2 dG1 + phi_1 dG2,   d(d0) likewise
crd_status crd_reduction_discretise(crd_reduction* r, double h, const crd_twin_group* g, int groups,
                                    double* f, double* d0, double* d1, double* df, double* dd0,
                                    double* dd1, double* work)
{
    const crd_reduced m = *crd_reduction_get(r);
    const int p = m.states, in = m.inputs;
    const size_t all = (size_t)p * (size_t)p, wide = (size_t)p * (size_t)in;
    double* spare = work + PER_SET * ((size_t)groups + 1) * all;
    double *slopes = spare + SPARE * all, *sums = slopes + 2 * (size_t)groups * wide;
    const phi v = set_of(work, p, 0);
    double size = 0;
    for (size_t i = 0; i < all; i++) {
        v.a[i] = m.fc[i] * h;
    }
    size = norm(p, v.a);
    if (!(size < 0x1p40)) { return CRD_E_RANGE; }
    int s = 0;
    double factor = 1;
    for (; size * factor > 0.5; s++) {
        factor *= 0.5;
    }
    discretise_scale(all, factor, v.a);
    for (int i = 0; i < groups; i++) {
        const crd_reduced d = crd_reduction_sensitivity(r, &g[i]);
        const phi to = set_of(work, p, i + 1);
        for (size_t j = 0; j < all; j++) {
            to.a[j] = d.fc[j] * h * factor;
        }
        memcpy(slopes + 2 * (size_t)i * wide, d.g1, wide * sizeof *slopes);
        memcpy(slopes + (2 * (size_t)i + 1) * wide, d.g2, wide * sizeof *slopes);
    }
    series(p, groups, work, size * factor, spare);
    for (; s > 0; s--) {
        twice(p, groups, work, spare);
    }
    memcpy(f, v.p0, all * sizeof *f);
    inputs(p, in, h, v, &m, d0, d1);
    for (int i = 0; i < groups; i++) {
        const phi d = set_of(work, p, i + 1);
        crd_reduced moved = m;
        moved.g1 = slopes + 2 * (size_t)i * wide;
        moved.g2 = moved.g1 + wide;
        double *to0 = dd0 + (size_t)i * wide, *to1 = dd1 + (size_t)i * wide;
        memcpy(df + (size_t)i * all, d.p0, all * sizeof *df);
        inputs(p, in, h, d, &m, to0, to1);
        inputs(p, in, h, v, &moved, sums, sums + wide);
        for (size_t j = 0; j < wide; j++) {
            to0[j] += sums[j];
            to1[j] += sums[wide + j];
        }
    }
    return CRD_OK;
}
