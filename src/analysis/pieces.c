// The linear pieces of a network with leaky ReLUs.
#include "analysis/analysis.h"
#include "shared/base.h"
#include "shared/coupling.h"
#include "shared/num.h"

#include <string.h>

// Leaky ReLUs of all layers.
static int count_bends(const crd_network* n)
{
    return n->n2 + (n->more > 0 ? n->n_more[0] : 0) + (n->more > 1 ? n->n_more[1] : 0);
}

// What the leaky ReLUs get as linear functions of the signal, rows (N x m) and constants (N), if
// those before them have this pattern; and a (m) with the constant behind it, what comes out.
static void fold(const crd_network* n, uint32_t pattern, double* rows, double* constants, double* a)
{
    const int m = n->m, columns = crdi_network_columns(n);
    int at = 0, from = 0, before = n->n2;
    for (; at < n->n2; at++) {
        double* row = rows + at * m;
        constants[at] = n->b2[at];
        memset(row, 0, (size_t)m * sizeof *row);
        for (int i = 0; i < columns; i++) {
            const double w = n->W2[at * columns + i];
            if (n->n1 == 0) {
                row[i] = w;
                continue;
            }
            constants[at] += w * n->b1[i];
            for (int t = 0; t < m; t++) {
                row[t] += w * n->W1[i * m + t];
            }
        }
    }
    for (int h = 0; h <= n->more; h++) { // the last one is the output
        const int count = h < n->more ? n->n_more[h] : 1;
        for (int j = 0; j < count; j++, at++) {
            double* row = h < n->more ? rows + at * m : a;
            double constant = h < n->more ? n->b_more[h][j] : n->b3;
            memset(row, 0, (size_t)m * sizeof *row);
            for (int i = 0; i < before; i++) {
                const double weight = h < n->more ? n->W_more[h][j * before + i] : n->W3[i];
                const double w = weight * (pattern >> (from + i) & 1 ? 1 : n->alpha);
                for (int t = 0; t < m; t++) {
                    row[t] += w * rows[(from + i) * m + t];
                }
                constant += w * constants[from + i];
            }
            *(h < n->more ? &constants[at] : &a[m]) = constant;
        }
        from += before;
        before = count;
    }
}

uint32_t crd_network_pattern(const crd_network* n, const double* y)
{
    double x[CRD_NETWORK_NEURONS], next[CRD_NETWORK_NEURONS];
    uint32_t pattern = 0;
    int at = 0, before = n->n2;
    for (int j = 0; j < n->n2; j++) {
        x[j] = n->b2[j];
        for (int i = 0; i < crdi_network_columns(n); i++) {
            double u = n->n1 > 0 ? n->b1[i] : y[i];
            for (int t = 0; t < n->m && n->n1 > 0; t++) {
                u += n->W1[i * n->m + t] * y[t];
            }
            x[j] += n->W2[j * crdi_network_columns(n) + i] * u;
        }
    }
    for (int h = 0;; h++) {
        for (int j = 0; j < before; j++, at++) {
            if (x[j] >= 0 && at < 32) { pattern |= 1u << at; }
            x[j] *= x[j] >= 0 ? 1 : n->alpha;
        }
        if (h == n->more) { return pattern; }
        for (int j = 0; j < n->n_more[h]; j++) {
            next[j] = n->b_more[h][j];
            for (int i = 0; i < before; i++) {
                next[j] += n->W_more[h][j * before + i] * x[i];
            }
        }
        before = n->n_more[h];
        memcpy(x, next, (size_t)before * sizeof *x);
    }
}

// Up to rounding
static bool pieces_same(const double* a, const double* b, int n)
{
    double size = 0, apart = 0;
    for (int i = 0; i < n; i++) {
        size = fmax(size, fabs(a[i]));
        apart = fmax(apart, fabs(a[i] - b[i]));
    }
    return apart <= 1e-12 * size;
}

// ---- patterns that a signal can have -----------------------------------------------------------

// A pattern wants s_j (r_j y + c_j) > 0 of every neuron: a point (y, 1) on the positive side of all
// v_j = s_j (r_j, c_j), and of e, the unit vector of the 1. By Gordan's theorem there is one unless
// a mean of these vectors, with weights >= 0, is 0. The shortest such mean is found from their
// products by the active-set method of Lawson and Hanson (1974):
//     minimise |V w|^2 + (1 - sum w)^2, w >= 0;   0 at the minimum: no such point.
enum { VECTORS = CRD_PIECE_NEURONS_MAX + 1 };

// Q w = 1 for the weights that are free
static bool solve_free(int n, double Q[VECTORS][VECTORS], const bool* is_free, double* w)
{
    double a[VECTORS * VECTORS], b[VECTORS];
    int32_t index[VECTORS], pivots[VECTORS];
    int count = 0;
    for (int i = 0; i < n; i++) {
        w[i] = 0;
        if (is_free[i]) { index[count++] = i; }
    }
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            a[i * count + j] = Q[index[i]][index[j]] + (i == j ? 1e-14 : 0);
        }
        b[i] = 1;
    }
    if (crdi_num_solve(count, a, b, pivots) < 0) { return false; }
    for (int i = 0; i < count; i++) {
        w[index[i]] = b[i];
    }
    return true;
}

// From w towards `to`, as far as all weights stay >= 0; what becomes 0 is no longer free.
static bool pieces_move(int n, const double* to, bool* is_free, double* w)
{
    double part = 1;
    for (int i = 0; i < n; i++) {
        if (is_free[i] && to[i] <= 0) { part = fmin(part, w[i] / (w[i] - to[i])); }
    }
    for (int i = 0; i < n; i++) {
        w[i] += part * (to[i] - w[i]);
        if (is_free[i] && part < 1 && w[i] <= 1e-15) {
            w[i] = 0;
            is_free[i] = false;
        }
    }
    return part == 1;
}

// |V w|^2 at the minimum, over its value at best, from the products of unit vectors
static double shortest_mean(int n, double products[VECTORS][VECTORS])
{
    double Q[VECTORS][VECTORS], w[VECTORS] = {0}, to[VECTORS];
    bool is_free[VECTORS] = {false};
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            Q[i][j] = products[i][j] + 1;
        }
    }
    for (int round = 0; round < 10 * VECTORS; round++) {
        int best = -1;
        double steepest = 1e-12;
        for (int i = 0; i < n; i++) {
            double slope = 1;
            for (int j = 0; j < n; j++) {
                slope -= Q[i][j] * w[j];
            }
            if (!is_free[i] && slope > steepest) {
                steepest = slope;
                best = i;
            }
        }
        if (best < 0) { break; }
        is_free[best] = true;
        for (int i = 0; i < VECTORS; i++) {
            if (!solve_free(n, Q, is_free, to) || pieces_move(n, to, is_free, w)) { break; }
        }
    }
    double length = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        sum += w[i];
        for (int j = 0; j < n; j++) {
            length += w[i] * w[j] * products[i][j];
        }
    }
    return length / (sum * sum);
}

// Can a signal have this pattern? `v` (N x (m + 1)): r_j and c_j, of length 1, or 0.
static bool possible(const crd_network* n, const double* v, uint32_t pattern)
{
    double products[VECTORS][VECTORS];
    int32_t index[VECTORS];
    int count = 0;
    const int size = n->m + 1;
    for (int j = 0; j < count_bends(n); j++) {
        double length = 0;
        for (int i = 0; i < size; i++) {
            length += v[j * size + i] * v[j * size + i];
        }
        if (length > 0) {
            index[count++] = j;
        } else if (!(pattern >> j & 1)) {
            return false; // always 0, which counts as above
        }
    }
    for (int a = 0; a <= count; a++) {
        for (int b = 0; b <= a; b++) {
            double sum = 0;
            for (int i = 0; i < size; i++) {
                const double unit = i == n->m ? 1 : 0;
                sum += (a < count ? v[index[a] * size + i] : unit) *
                       (b < count ? v[index[b] * size + i] : unit);
            }
            if (a < count && !(pattern >> index[a] & 1)) { sum = -sum; }
            if (b < count && !(pattern >> index[b] & 1)) { sum = -sum; }
            products[a][b] = products[b][a] = sum;
        }
    }
    return shortest_mean(count + 1, products) > 1e-13; // a square, of numbers with 16 digits
}

static void make_vectors(const crd_network* n, const double* rows, const double* constants,
                         double* v)
{
    const int size = n->m + 1;
    memset(v, 0, (size_t)(count_bends(n) * size) * sizeof *v);
    for (int j = 0; j < count_bends(n); j++) {
        double length = fabs(constants[j]);
        for (int t = 0; t < n->m; t++) {
            length = hypot(length, rows[j * n->m + t]);
        }
        for (int t = 0; t < size && length > 0; t++) {
            v[j * size + t] = (t < n->m ? rows[j * n->m + t] : constants[j]) / length;
        }
    }
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status pieces_check(crd_context* ctx, const crd_network* n, int k)
{
    const int bends = count_bends(n);
    if (bends < 1 || bends > CRD_PIECE_NEURONS_MAX) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "the network has %d neurons with a bend, which makes 2^%d linear pieces; "
                         "up to %d can be analysed",
                         bends, bends, CRD_PIECE_NEURONS_MAX);
    }
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    bool fine = n->m <= 1000 && k >= 0 && k <= 10000;
    for (int p = 0; p < count; p++) {
        for (int i = 0; i < parts[p].count; i++) {
            fine = fine && isfinite(parts[p].w[i]);
        }
    }
    return fine ? CRD_OK
                : crdi_fail(ctx, CRD_E_RANGE,
                            "the network has a weight that is not a number, more than 1000 taps "
                            "or a latency of %d",
                            k);
}

crd_status crd_network_pieces(crd_context* ctx, crd_arena* arena, const crd_network* n, int k,
                              crd_pieces* out)
{
    const crd_status st = pieces_check(ctx, n, k);
    if (st < 0) { return st; }
    const size_t bends = (size_t)count_bends(n), all = (size_t)1 << bends, m = (size_t)n->m;
    crd_pieces p = {.linear = crdi_arena_new(arena, all, sizeof *p.linear),
                    .patterns = crdi_arena_new(arena, all, sizeof *p.patterns),
                    .of_pattern = crdi_arena_new(arena, all, sizeof *p.of_pattern)};
    double* rows = crdi_arena_new(arena, bends * m, sizeof *rows);
    double* constants = crdi_arena_new(arena, bends, sizeof *constants);
    double* v = crdi_arena_new(arena, bends * (m + 1), sizeof *v);
    double* a = crdi_arena_new(arena, m + 1, sizeof *a);
    if (!v || !p.linear || !p.patterns || !p.of_pattern || !rows || !constants || !a) {
        return CRD_E_MEMORY;
    }
    for (size_t pattern = 0; pattern < all; pattern++) {
        p.of_pattern[pattern] = -1;
        fold(n, (uint32_t)pattern, rows, constants, a);
        make_vectors(n, rows, constants, v);
        if (!possible(n, v, (uint32_t)pattern)) { continue; }
        int found = 0;
        while (found < p.count &&
               !pieces_same(a, p.linear[found].a, n->m + 1)) { // with its constant
            found++;
        }
        if (found == p.count) {
            p.linear[p.count++] = (crd_linear){.m = n->m, .k = k, .a = a, .b = a[n->m]};
            a = crdi_arena_new(arena, m + 1, sizeof *a);
            if (!a) { return CRD_E_MEMORY; }
        }
        p.patterns[found]++;
        p.of_pattern[pattern] = found;
    }
    *out = p;
    return CRD_OK;
}
