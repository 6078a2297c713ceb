#include "quality/poly.h"

#include <assert.h>
#include <math.h>

double crd_poly_eval(const crd_poly* p, double s)
{
    double sum = p->c[p->degree];
    for (int i = p->degree - 1; i >= 0; i--) {
        sum = sum * s + p->c[i];
    }
    return sum;
}

static crd_poly derive(const crd_poly* p)
{
    crd_poly d = {.degree = p->degree > 0 ? p->degree - 1 : 0};
    for (int i = 1; i <= p->degree; i++) {
        d.c[i - 1] = i * p->c[i];
    }
    return d;
}

double crd_poly_derivative(const crd_poly* p, int order, double s)
{
    double sum = 0;
    for (int i = p->degree; i >= order; i--) {
        double c = p->c[i]; // times i (i - 1) ... (i - order + 1)
        for (int k = 0; k < order; k++) {
            c *= i - k;
        }
        sum = sum * s + c;
    }
    return sum;
}

// Gauss and Legendre, 6 points on [-1, 1]: exact up to degree 11, so for squares as well.
static const double gauss_x[3] = {0.23861918608319690863, 0.66120938646626451366,
                                  0.93246951420315202781};
static const double gauss_w[3] = {0.46791393457269104739, 0.36076157304813860757,
                                  0.17132449237917034504};

double crd_poly_mean(const crd_poly* p, double from, double to)
{
    // The integral of s^i over [from, to] by its length, without the difference of powers:
    // sum of from^j to^(i-j), j = 0...i, over i + 1.
    static const double part[CRD_POLY_SIZE] = {1, 1 / 2.0, 1 / 3.0, 1 / 4.0, 1 / 5.0, 1 / 6.0};
    double mean = p->c[0];
    double sum = 1, power = 1; // of the two variables; to^i
    for (int i = 1; i <= p->degree; i++) {
        power *= to;
        sum = sum * from + power;
        mean += p->c[i] * sum * part[i];
    }
    return mean;
}

typedef double pair __attribute__((vector_size(16)));

double crd_poly_mean_square(const crd_poly* p, double from, double to)
{
    const double middle = 0.5 * (from + to), half = 0.5 * (to - from);
    pair x[3], y[3];
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        x[i] = middle + half * (pair){-gauss_x[i], gauss_x[i]};
        y[i] = (pair){p->c[p->degree], p->c[p->degree]};
    }
    for (int k = p->degree - 1; k >= 0; k--) { // Horner at all points side by side
        y[0] = y[0] * x[0] + p->c[k];
        y[1] = y[1] * x[1] + p->c[k];
        y[2] = y[2] * x[2] + p->c[k];
    }
    for (int i = 0; i < 3; i++) {
        const pair square = y[i] * y[i];
        sum += gauss_w[i] * (square[0] + square[1]);
    }
    return 0.5 * sum;
}

// Where p changes its sign in [from, to], in rising order: between two neighbours among the ends
// and the zeros of p' it is monotonic, so that halving finds what is there.
static int zeros(const crd_poly* p, double from, double to, double* out)
{
    if (p->degree < 1) { return 0; }
    double edge[CRD_POLY_SIZE + 1];
    const crd_poly d = derive(p);
    edge[0] = from;
    const int inner = zeros(&d, from, to, edge + 1);
    edge[inner + 1] = to;
    int count = 0;
    for (int i = 0; i <= inner; i++) {
        double a = edge[i], b = edge[i + 1], pa = crd_poly_eval(p, a), pb = crd_poly_eval(p, b);
        if ((pa > 0) == (pb > 0)) { continue; }
        for (int k = 0; k < 10; k++) {
            const double m = 0.5 * (a + b), pm = crd_poly_eval(p, m);
            if ((pm > 0) == (pa > 0)) {
                a = m;
                pa = pm;
            } else {
                b = m;
                pb = pm;
            }
        }
        // A chord squares what is left, and an extremum is flat: its value is good to 1e-13.
        out[count++] = a - pa * (b - a) / (pb - pa);
    }
    return count;
}

// Whether p has no turning point in (0, h) that its coefficients could hide: behind those of p'
// that are 0 (of a prediction that agrees with the signal at s = 0), one outweighs the rest.
static bool is_monotonic(const crd_poly* p, double h)
{
    int i = 1;
    while (i <= p->degree && p->c[i] == 0) {
        i++;
    }
    double rest = 0;
    for (int k = p->degree; k > i; k--) {
        rest = (rest + k * fabs(p->c[k])) * h;
    }
    return i > p->degree || rest < i * fabs(p->c[i]);
}

double crd_poly_max(const crd_poly* p, double from, double to)
{
    if (from == 0 && to > 0 && is_monotonic(p, to)) {
        return crd_defect_larger(fabs(p->c[0]), fabs(crd_poly_eval(p, to)));
    }
    double at[CRD_POLY_SIZE];
    const crd_poly d = derive(p);
    const int n = zeros(&d, from, to, at);
    double max = crd_defect_larger(fabs(crd_poly_eval(p, from)), fabs(crd_poly_eval(p, to)));
    for (int i = 0; i < n; i++) {
        max = crd_defect_larger(max, fabs(crd_poly_eval(p, at[i])));
    }
    return max;
}

crd_poly crd_poly_minus(const crd_poly* a, const crd_poly* b)
{
    crd_poly d = {.degree = a->degree > b->degree ? a->degree : b->degree};
    for (int i = 0; i < CRD_POLY_SIZE; i++) { // those above the degree are 0
        d.c[i] = a->c[i] - b->c[i];
    }
    return d;
}

crd_poly crd_poly_shift(const crd_poly* p, double by)
{
    crd_poly q = *p;
    for (int i = 0; by != 0 && i < q.degree; i++) { // Horner's scheme, once per coefficient
        for (int k = q.degree - 1; k >= i; k--) {
            q.c[k] += by * q.c[k + 1];
        }
    }
    return q;
}

double crd_poly_moment(const crd_poly* p, int k, double h)
{
    // Shifted Legendre polynomials, whose squares have the mean 1 / (2k + 1)
    static const double legendre[4][4] = {{1}, {-1, 2}, {1, -6, 6}, {-1, 12, -30, 20}};
    double sum = 0, power = 1;
    for (int i = 0; i <= p->degree; i++, power *= h) {
        double mean = 0; // of x^i times that polynomial
        for (int j = 0; j <= k; j++) {
            mean += legendre[k][j] / (i + j + 1);
        }
        sum += p->c[i] * power * mean;
    }
    return (2 * k + 1) * sum;
}

// By Legendre polynomials on x = s / h in [0, 1]: 1, 2x - 1, 6x^2 - 6x + 1 with the squares 1, 1/3,
// 1/5.
crd_poly crd_poly_nearest(const crd_poly* p, int degree, double h)
{
    if (p->degree <= degree) { return *p; }
    double l[3] = {0}, power = 1;
    for (int i = 0; i <= p->degree; i++, power *= h) {
        const double a = p->c[i] * power, m0 = 1.0 / (i + 1), m1 = 1.0 / (i + 2);
        l[0] += a * m0;
        l[1] += 3 * a * (2 * m1 - m0);
        l[2] += 5 * a * (6.0 / (i + 3) - 6 * m1 + m0);
    }
    for (int i = degree + 1; i < 3; i++) {
        l[i] = 0;
    }
    return (crd_poly){.degree = degree,
                      .c = {l[0] - l[1] + l[2], (2 * l[1] - 6 * l[2]) / h, 6 * l[2] / (h * h)}};
}

crd_poly crd_poly_taylor(const crd_sample* at, int degree)
{
    crd_poly p = {.degree = degree < at->order ? degree : at->order};
    double factorial = 1;
    for (int i = 0; i <= p.degree; i++) {
        p.c[i] = at->y[i] / factorial;
        factorial *= i + 1;
    }
    return p;
}

crd_poly crd_poly_output(const crd_sample* end, int degree, double h)
{
    const crd_poly p = crd_poly_taylor(end, degree);
    return crd_poly_shift(&p, -h);
}

crd_poly crdi_poly_through(int n, const crdi_node* nodes)
{
    // Newton's divided differences with repeated places: over a run of equal places the difference
    // of order j is y^(j) / j!.
    double z[CRD_POLY_SIZE], d[CRD_POLY_SIZE]; // d: differences that begin at i, of the order done
    double a[CRD_POLY_SIZE];                   // Newton's coefficients
    int owner[CRD_POLY_SIZE];
    int count = 0;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < nodes[k].count; i++) {
            assert(count < CRD_POLY_SIZE);
            z[count] = nodes[k].s;
            owner[count] = k;
            d[count++] = nodes[k].y[0];
        }
    }
    crd_poly p = {0};
    if (count == 0) { return p; }
    a[0] = d[0];
    double factorial = 1;
    for (int j = 1; j < count; j++) {
        factorial *= j;
        for (int i = 0; i + j < count; i++) {
            d[i] = owner[i] == owner[i + j] ? nodes[owner[i]].y[j] / factorial
                                            : (d[i + 1] - d[i]) / (z[i + j] - z[i]);
        }
        a[j] = d[0];
    }
    p.degree = count - 1;
    p.c[0] = a[count - 1];
    for (int j = count - 2; j >= 0; j--) { // p = p (s - z_j) + a_j
        for (int i = count - 1 - j; i > 0; i--) {
            p.c[i] = p.c[i - 1] - z[j] * p.c[i];
        }
        p.c[0] = a[j] - z[j] * p.c[0];
    }
    return p;
}

// The usual cases in closed form, y, v, a at both ends and D = (y1 - y0) / h:
//   cubic    c2 = (3 D - 2 v0 - v1) / h, c3 = (v0 + v1 - 2 D) / h^2
//   quintic  c3 = (20 D - 12 v0 - 8 v1 + (a1 - 3 a0) h) / (2 h^2),
//            c4 = (-30 D + 16 v0 + 14 v1 + (3 a0 - 2 a1) h) / (2 h^3),
//            c5 = (12 D - 6 v0 - 6 v1 + (a1 - a0) h) / (2 h^4)
crd_poly crd_poly_hermite(const crd_sample* at0, int n0, const crd_sample* at_h, int n1, double h)
{
    const double *y0 = at0->y, *y1 = at_h->y, r = 1 / h, D = (y1[0] - y0[0]) * r;
    if (n0 == 2 && n1 == 2) {
        return (crd_poly){
            .degree = 3,
            .c = {y0[0], y0[1], (3 * D - 2 * y0[1] - y1[1]) * r, (y0[1] + y1[1] - 2 * D) * r * r}};
    }
    if (n0 == 3 && n1 == 3) {
        const double e = 0.5 * r * r, v0 = y0[1], v1 = y1[1], a0 = y0[2] * h, a1 = y1[2] * h;
        return (crd_poly){.degree = 5,
                          .c = {y0[0], v0, 0.5 * y0[2],
                                (20 * D - 12 * v0 - 8 * v1 + a1 - 3 * a0) * e,
                                (-30 * D + 16 * v0 + 14 * v1 + 3 * a0 - 2 * a1) * e * r,
                                (12 * D - 6 * v0 - 6 * v1 + a1 - a0) * e * r * r}};
    }
    const crdi_node nodes[2] = {{0, at0->y, n0}, {h, at_h->y, n1}};
    return crdi_poly_through(2, nodes);
}
