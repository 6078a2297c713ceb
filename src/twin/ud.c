#include "twin/ud.h"

#include <string.h>

void crdi_ud_diagonal(crdi_ud* s, const double* variance)
{
    const int n = s->n;
    memset(s->u, 0, (size_t)n * (size_t)n * sizeof *s->u);
    for (int i = 0; i < n; i++) {
        s->u[(ptrdiff_t)i * n + i] = 1;
        s->d[i] = variance[i];
    }
}

// Eight numbers, in registers: rows are padded to multiples of them.
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef struct eight {
    pair a, b, c, d;
} eight;

static inline eight ud_get(const double* x)
{
    return (eight){*(const pair*)x, *(const pair*)(x + 2), *(const pair*)(x + 4),
                   *(const pair*)(x + 6)};
}

static inline void ud_put(double* x, eight v)
{
    *(pair*)x = v.a;
    *(pair*)(x + 2) = v.b;
    *(pair*)(x + 4) = v.c;
    *(pair*)(x + 6) = v.d;
}

static inline eight times(eight x, eight y)
{
    return (eight){x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d};
}

static inline eight plus(eight x, double f, eight y)
{
    return (eight){x.a + f * y.a, x.b + f * y.b, x.c + f * y.c, x.d + f * y.d};
}

static inline double ud_dot(eight x, eight y)
{
    const pair s = (x.a * y.a + x.b * y.b) + (x.c * y.c + x.d * y.d);
    return s[0] + s[1];
}

size_t crdi_ud_room(int n)
{
    const size_t wide = (size_t)(3 * n + 1 + 7) / 8 * 8; // with the most noises that a twin has
    return ((size_t)n + 2) * wide;
}

// P = F (U D U^T) F^T + G diag(q) G^T = W diag(D, q) W^T, W = [F U | G], as U D U^T (Thornton
// 1976). Rows of W are made orthogonal with the weights D and q, the last one first (modified
// Gram-Schmidt): what is taken from row i along row j is U_ij. `wide`: of a padded row; a constant
// for the small ones, so that they stay in registers.
static inline __attribute__((always_inline)) void ud_predict(crdi_ud* s, const double* f, int w,
                                                             const double* g, const double* q,
                                                             double* room, int wide)
{
    const int n = s->n;
    double *rows = room, *weight = rows + (ptrdiff_t)n * wide;
    double* heavy = weight + wide; // weight times the row that is at hand
    memset(room, 0, (size_t)(n + 1) * (size_t)wide * sizeof *room);
    for (int c = 0; c < n; c++) {
        weight[c] = s->d[c];
    }
    for (int c = 0; c < w; c++) {
        weight[n + c] = q[c];
    }
    for (int i = 0; i < n; i++) {
        double* row = rows + (ptrdiff_t)i * wide;
        const double* a = f + (ptrdiff_t)i * n;
        int c = 0;
        for (; c + 1 < n; c += 2) { // two columns of U, which end below their diagonal
            const double* u = s->u + c;
            pair sum = {0, 0};
            for (int l = 0; l <= c + 1; l++) {
                sum += a[l] * *(const pair*)(u + (ptrdiff_t)l * n);
            }
            *(pair*)(row + c) = sum;
        }
        for (int l = 0; l < n && c < n; l++) {
            row[c] += a[l] * s->u[(ptrdiff_t)l * n + c];
        }
        for (c = 0; c < w; c++) {
            row[n + c] = g[(ptrdiff_t)i * w + c];
        }
    }
    for (int j = n - 1; j >= 0; j--) {
        const double* base = rows + (ptrdiff_t)j * wide;
        double sum = 0;
        for (int c = 0; c < wide; c += 8) {
            const eight weighed = times(ud_get(weight + c), ud_get(base + c));
            ud_put(heavy + c, weighed);
            sum += ud_dot(weighed, ud_get(base + c));
        }
        s->d[j] = sum;
        s->u[(ptrdiff_t)j * n + j] = 1;
        const double inverse = sum > 0 ? 1 / sum : 0;
        for (int i = 0; i < j; i++) {
            double* row = rows + (ptrdiff_t)i * wide;
            double along = 0;
            for (int c = 0; c < wide; c += 8) {
                along += ud_dot(ud_get(heavy + c), ud_get(row + c));
            }
            along *= inverse;
            s->u[(ptrdiff_t)i * n + j] = along;
            s->u[(ptrdiff_t)j * n + i] = 0;
            for (int c = 0; c < wide; c += 8) {
                ud_put(row + c, plus(ud_get(row + c), -along, ud_get(base + c)));
            }
        }
    }
}

void crdi_ud_predict(crdi_ud* s, const double* f, int w, const double* g, const double* q,
                     double* room)
{
    const int wide = (s->n + w + 7) / 8 * 8;
    if (wide == 8) {
        ud_predict(s, f, w, g, q, room, 8);
    } else if (wide == 16) {
        ud_predict(s, f, w, g, q, room, 16);
    } else {
        ud_predict(s, f, w, g, q, room, wide);
    }
}

// h^T P h = f^T D f, f = U^T h
double crdi_ud_variance(const crdi_ud* s, const double* h, double* v)
{
    const int n = s->n;
    double sum = 0;
    for (int j = 0; j < n; j++) {
        double f = 0;
        for (int i = 0; i <= j; i++) {
            f += s->u[(ptrdiff_t)i * n + j] * h[i];
        }
        v[j] = f;
        v[n + j] = s->d[j] * f;
        sum += f * v[n + j];
    }
    return sum;
}

// P <- P - K h^T P, K = P h / (h^T P h + r), column by column (Bierman 1977). With f = U^T h, b = D
// f:
//     alpha_j = alpha_{j-1} + f_j b_j,   alpha_{-1} = r
//     D_j <- D_j alpha_{j-1} / alpha_j
//     U_ij <- U_ij - f_j / alpha_{j-1} k_i,   k_i <- k_i + b_j U_ij (old)   for i < j,  k_j = b_j
// and K = k / alpha_{n-1}.
void crdi_ud_update(crdi_ud* s, double r, const double* v, double* gain)
{
    const int n = s->n;
    const double *f = v, *b = v + n;
    double alpha = r, inverse = 1 / r;
    for (int j = 0; j < n; j++) {
        const double before = alpha, lambda = -f[j] * inverse;
        alpha += f[j] * b[j];
        inverse = 1 / alpha;
        s->d[j] *= before * inverse;
        gain[j] = b[j];
        for (int i = 0; i < j; i++) {
            double* u = &s->u[(ptrdiff_t)i * n + j];
            const double old = *u;
            *u = old + gain[i] * lambda;
            gain[i] += b[j] * old;
        }
    }
    for (int j = 0; j < n; j++) {
        gain[j] *= inverse;
    }
}
