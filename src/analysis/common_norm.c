// One quadratic norm for all maps: the P > 0 with A_i^T P A_i <= gamma^2 P for all i and the
// smallest gamma that is found. For given gamma the analytic centre of these inequalities,
//     min over P of  - sum_i log det S_i - log det P + tr P,   S_i = gamma^2 P - A_i^T P A_i,
// is found by Newton's method; gamma then goes down to little more than what P shows (method of
// centres, Boyd and El Ghaoui 1993). With K = S^-1, V = K A^T and Z = A K A^T the Hessian is a sum
// of products of their elements.
#include "analysis/varied.h"

#include "shared/num.h"

#include <string.h>

typedef struct centring {
    int n, count, unknowns;
    size_t square;
    const double* maps;
    int* active; // (active_count) maps that count so far: few of them matter
    int active_count;
    double* ratios; // (count) of all maps
    double gamma2;
    double *P, *K, *V, *Z, *work; // (n x n) each
    double *H, *g;                // (unknowns^2), (unknowns)
    double* values;               // (n)
} centring;

// out = a^T p a
static void pull(const centring* c, const double* a, const double* p, double* out)
{
    const int n = c->n;
    double* t = c->Z;
    memset(t, 0, c->square * sizeof *t);
    memset(out, 0, c->square * sizeof *out);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            const double x = a[k * n + i];
            for (int j = 0; j < n && x != 0; j++) {
                t[i * n + j] += x * p[k * n + j]; // a^T p
            }
        }
    }
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < n; j++) {
            const double x = a[k * n + j];
            for (int i = 0; i < n && x != 0; i++) {
                out[i * n + j] += t[i * n + k] * x;
            }
        }
    }
}

// K becomes the inverse of the positive definite s.
static bool invert(const centring* c, const double* s, double* K)
{
    const int n = c->n;
    double* l = c->work;
    memcpy(l, s, c->square * sizeof *l);
    if (crdi_num_cholesky(n, l) < 0) { return false; }
    for (int i = 0; i < n; i++) { // column i: solve L y = e_i, L^T x = y
        double* x = c->values;
        for (int k = 0; k < n; k++) {
            double sum = k == i ? 1 : 0;
            for (int j = 0; j < k; j++) {
                sum -= l[k * n + j] * x[j];
            }
            x[k] = sum / l[k * n + k];
        }
        for (int k = n - 1; k >= 0; k--) {
            double sum = x[k];
            for (int j = k + 1; j < n; j++) {
                sum -= l[j * n + k] * x[j];
            }
            x[k] = sum / l[k * n + k];
        }
        for (int k = 0; k < n; k++) {
            K[k * n + i] = x[k];
        }
    }
    return true;
}

// S_i of the present P and gamma
static void slack(const centring* c, const double* a, double* s)
{
    pull(c, a, c->P, s);
    for (size_t k = 0; k < c->square; k++) {
        s[k] = c->gamma2 * c->P[k] - s[k];
    }
    for (int i = 0; i < c->n; i++) {
        for (int j = 0; j < i; j++) {
            s[i * c->n + j] = s[j * c->n + i] = (s[i * c->n + j] + s[j * c->n + i]) / 2;
        }
    }
}

// x_k m y_l n + x_k n y_l m, summed over both orders of (k, l) where they differ
static double pair(const double* x, int n, int k, int l, int m, int q)
{
    return x[k * n + m] * x[l * n + q] + x[k * n + q] * x[l * n + m];
}

// Adds K_S (x) K_S in the coordinates of P: for basis matrices E_kl and E_mq it is
// tr(K L(E_kl) K L(E_mq)) with L(X) = gamma^2 X - A^T X A. Without V and Z, L(X) = X.
static void add_hessian(const centring* c, bool maps, double g2)
{
    const int n = c->n, D = c->unknowns;
    int row = 0;
    for (int k = 0; k < n; k++) {
        for (int l = k; l < n; l++, row++) {
            int column = 0;
            for (int m = 0; m <= k; m++) {
                for (int q = m; q < n && column <= row; q++, column++) {
                    double sum = g2 * g2 * pair(c->K, n, k, l, m, q);
                    if (maps) {
                        sum -= g2 * (pair(c->V, n, k, l, m, q) + pair(c->V, n, m, q, k, l));
                        sum += pair(c->Z, n, k, l, m, q);
                    }
                    if (k == l) { sum /= 2; }
                    if (m == q) { sum /= 2; }
                    c->H[(size_t)row * (size_t)D + (size_t)column] += 2 * sum;
                }
            }
        }
    }
}

// Gradient -L*(K) = -(gamma^2 K - A K A^T) of - log det S, in the same coordinates
static void add_gradient(const centring* c, bool maps, double g2)
{
    const int n = c->n;
    for (int k = 0, row = 0; k < n; k++) {
        for (int l = k; l < n; l++, row++) {
            const double x = g2 * c->K[k * n + l] - (maps ? c->Z[k * n + l] : 0);
            c->g[row] -= k == l ? x : 2 * x;
        }
    }
}

static bool add_map(const centring* c, const double* a, double* s)
{
    const int n = c->n;
    slack(c, a, s);
    if (!invert(c, s, c->K)) { return false; }
    memset(c->V, 0, c->square * sizeof *c->V);
    memset(c->Z, 0, c->square * sizeof *c->Z);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) {
                sum += c->K[i * n + k] * a[j * n + k];
            }
            c->V[i * n + j] = sum;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            const double x = a[i * n + k];
            for (int j = 0; j < n && x != 0; j++) {
                c->Z[i * n + j] += x * c->V[k * n + j];
            }
        }
    }
    add_hessian(c, true, c->gamma2);
    add_gradient(c, true, c->gamma2);
    return true;
}

// The decrement of Newton's step, which is made, damped while it is long; < 0: something failed.
static double step_newton(const centring* c, double* s)
{
    const int n = c->n, D = c->unknowns;
    memset(c->H, 0, (size_t)D * (size_t)D * sizeof *c->H);
    memset(c->g, 0, (size_t)D * sizeof *c->g);
    for (int i = 0; i < c->active_count; i++) {
        if (!add_map(c, c->maps + (size_t)c->active[i] * c->square, s)) { return -1; }
    }
    if (!invert(c, c->P, c->K)) { return -1; }
    add_hessian(c, false, 1);
    add_gradient(c, false, 1);
    for (int k = 0, row = 0; k < n; k++) {
        c->g[row] += 1; // of tr P
        row += n - k;
    }
    if (crdi_num_cholesky(D, c->H) < 0) { return -1; } // reads the lower half
    double* x = c->g;
    double decrement = 0;
    for (int i = 0; i < D; i++) {
        for (int k = 0; k < i; k++) {
            x[i] -= c->H[(size_t)i * (size_t)D + (size_t)k] * x[k];
        }
        x[i] /= c->H[(size_t)i * (size_t)D + (size_t)i];
        decrement += x[i] * x[i];
    }
    for (int i = D - 1; i >= 0; i--) {
        for (int k = i + 1; k < D; k++) {
            x[i] -= c->H[(size_t)k * (size_t)D + (size_t)i] * x[k];
        }
        x[i] /= c->H[(size_t)i * (size_t)D + (size_t)i];
    }
    decrement = sqrt(decrement);
    const double by = decrement > 0.25 ? 1 / (1 + decrement) : 1;
    for (int k = 0, row = 0; k < n; k++) {
        for (int l = k; l < n; l++, row++) {
            c->P[k * n + l] -= by * x[row];
            c->P[l * n + k] = c->P[k * n + l];
        }
    }
    return decrement;
}

// The largest of the eigenvalues of A_i^T P A_i over P, and the condition of P.
static bool show_ratio(const centring* c, double* s, double* ratio, double* condition)
{
    const int n = c->n;
    double* l = c->K;
    *ratio = 0;
    memcpy(c->work, c->P, c->square * sizeof *l);
    if (crdi_num_symmetric(n, c->work, c->values, false) < 0 || !(c->values[0] > 0)) {
        return false;
    }
    *condition = c->values[n - 1] / c->values[0];
    memcpy(l, c->P, c->square * sizeof *l);
    if (crdi_num_cholesky(n, l) < 0) { return false; }
    for (int i = 0; i < c->count; i++) {
        pull(c, c->maps + (size_t)i * c->square, c->P, s);
        crdi_num_congruence(n, l, s);
        if (crdi_num_symmetric(n, s, c->values, false) < 0) { return false; }
        c->ratios[i] = c->values[n - 1];
        *ratio = fmax(*ratio, c->ratios[i]);
    }
    return true;
}

static void normalise(const centring* c)
{
    double trace = 0;
    for (int i = 0; i < c->n; i++) {
        trace += c->P[i * c->n + i];
    }
    for (size_t i = 0; i < c->square; i++) {
        c->P[i] *= c->n * (c->active_count + 1.0) / trace;
    }
}

static bool is_active(const centring* c, int map)
{
    for (int i = 0; i < c->active_count; i++) {
        if (c->active[i] == map) { return true; }
    }
    return false;
}

// The map that grows most, unless it counts already; then gamma for those that count.
static void choose_active(centring* c)
{
    int worst = -1;
    double largest = 0;
    for (int i = 0; i < c->count; i++) {
        if (!is_active(c, i) && (worst < 0 || c->ratios[i] > c->ratios[worst])) { worst = i; }
    }
    for (int i = 0; i < c->active_count; i++) {
        largest = fmax(largest, c->ratios[c->active[i]]);
    }
    if (worst >= 0 && c->ratios[worst] > fmax(largest, 1 - 1e-4)) {
        largest = c->ratios[worst];
        c->active[c->active_count++] = worst;
    }
    c->gamma2 = largest < c->gamma2 ? largest + 0.1 * (c->gamma2 - largest) + 1e-9 : 1.1 * largest;
}

static crd_status common_norm_make(centring* c, crd_arena* arena)
{
    c->square = (size_t)c->n * (size_t)c->n;
    double* room = crdi_arena_new(arena, 4 * c->square + (size_t)c->n, sizeof *room);
    c->H = crdi_arena_new(arena, (size_t)c->unknowns * (size_t)c->unknowns, sizeof *c->H);
    c->g = crdi_arena_new(arena, (size_t)c->unknowns, sizeof *c->g);
    c->active = crdi_arena_new(arena, (size_t)c->count, sizeof *c->active);
    c->ratios = crdi_arena_new(arena, (size_t)c->count, sizeof *c->ratios);
    if (!room || !c->H || !c->g || !c->active || !c->ratios) { return CRD_E_MEMORY; }
    c->K = room;
    c->V = c->K + c->square;
    c->Z = c->V + c->square;
    c->work = c->Z + c->square;
    c->values = c->work + c->square;
    c->active_count = 1;
    return CRD_OK;
}

crd_status crdi_common_norm(crd_arena* arena, int n, int count, const double* maps, double* P,
                            double* effort, double* ratio, double* condition)
{
    centring c = {.n = n, .count = count, .unknowns = n * (n + 1) / 2, .maps = maps};
    const double D = c.unknowns, each = 8 * D * D, fixed = D * D * D / 3;
    const double show = 13.0 * n * n * n * count;
    if (D > 1000 || 60 * (4 * each + fixed) > *effort) { return CRD_OK; }
    crd_status st = common_norm_make(&c, arena);
    if (st < 0) { return st; }
    double* s = crdi_arena_new(arena, 2 * c.square, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    c.P = s + c.square; // `P` keeps the best so far
    memcpy(c.P, P, c.square * sizeof *P);
    normalise(&c);
    double now = INFINITY, kind = 1;
    if (!show_ratio(&c, s, &now, &kind)) { return CRD_OK; }
    c.gamma2 = 1.5 * c.ratios[0];
    *ratio = INFINITY;
    for (int round = 0; round < 400 && *effort > 0; round++) {
        double decrement = 1;
        if (now < *ratio) {
            *ratio = now;
            *condition = kind;
            memcpy(P, c.P, c.square * sizeof *P);
        }
        if (now < 1 - 1e-6) { break; }
        choose_active(&c);
        for (int i = 0; i < 12 && decrement > 0.3 && *effort > 0; i++) {
            decrement = step_newton(&c, s);
            *effort -= each * (c.active_count + 1) + fixed;
        }
        *effort -= show;
        if (decrement < 0 || !show_ratio(&c, s, &now, &kind)) { break; }
    }
    return CRD_OK;
}
