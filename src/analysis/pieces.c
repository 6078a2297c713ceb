// The linear pieces of a network with leaky ReLUs.
#include "analysis/analysis.h"
#include "shared/base.h"

#include "shared/num.h"

static double second_layer(const crd_network* n, const double* y, int j)
{
    double sum = n->b2[j];
    for (int i = 0; i < n->n1; i++) {
        double first = n->b1[i];
        for (int t = 0; t < n->m; t++) {
            first += n->W1[i * n->m + t] * y[t];
        }
        sum += n->W2[j * n->n1 + i] * first;
    }
    return sum;
}

uint32_t crd_network_pattern(const crd_network* n, const double* y)
{
    uint32_t pattern = 0;
    for (int j = 0; j < n->n2 && j < 32; j++) {
        if (second_layer(n, y, j) >= 0) { pattern |= 1u << j; }
    }
    return pattern;
}

// The two linear layers as one: rows (n2 x m) and constants (n2)
static void fold(const crd_network* n, double* rows, double* constants)
{
    for (int j = 0; j < n->n2; j++) {
        constants[j] = n->b2[j];
        for (int i = 0; i < n->n1; i++) {
            const double w = n->W2[j * n->n1 + i];
            constants[j] += w * n->b1[i];
            for (int t = 0; t < n->m; t++) {
                rows[j * n->m + t] += w * n->W1[i * n->m + t];
            }
        }
    }
}

// a (m) and the constant behind it for one pattern
static void put_together(const crd_network* n, const double* rows, const double* constants,
                         uint32_t pattern, double* a)
{
    for (int t = 0; t < n->m; t++) {
        a[t] = 0;
    }
    a[n->m] = n->b3;
    for (int j = 0; j < n->n2; j++) {
        const double w = n->W3[j] * (pattern >> j & 1 ? 1 : n->alpha);
        for (int t = 0; t < n->m; t++) {
            a[t] += w * rows[j * n->m + t];
        }
        a[n->m] += w * constants[j];
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

// Can a signal have this pattern? `v` (n2 x (m + 1)): r_j and c_j, of length 1, or 0.
static bool possible(const crd_network* n, const double* v, uint32_t pattern)
{
    double products[VECTORS][VECTORS];
    int32_t index[VECTORS];
    int count = 0;
    const int size = n->m + 1;
    for (int j = 0; j < n->n2; j++) {
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
    for (int j = 0; j < n->n2; j++) {
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

crd_status crd_network_pieces(crd_context* ctx, crd_arena* arena, const crd_network* n, int k,
                              crd_pieces* out)
{
    if (n->n2 < 1 || n->n2 > CRD_PIECE_NEURONS_MAX) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "the network has %d neurons with a bend, which makes 2^%d linear pieces; "
                         "up to %d can be analysed",
                         n->n2, n->n2, CRD_PIECE_NEURONS_MAX);
    }
    const size_t all = (size_t)1 << n->n2, m = (size_t)n->m;
    crd_pieces p = {.linear = crdi_arena_new(arena, all, sizeof *p.linear),
                    .bias = crdi_arena_new(arena, all, sizeof *p.bias),
                    .patterns = crdi_arena_new(arena, all, sizeof *p.patterns),
                    .of_pattern = crdi_arena_new(arena, all, sizeof *p.of_pattern)};
    double* rows = crdi_arena_new(arena, (size_t)n->n2 * m, sizeof *rows);
    double* constants = crdi_arena_new(arena, (size_t)n->n2, sizeof *constants);
    double* v = crdi_arena_new(arena, (size_t)n->n2 * (m + 1), sizeof *v);
    double* a = crdi_arena_new(arena, m + 1, sizeof *a);
    if (!v || !p.linear || !p.bias || !p.patterns || !p.of_pattern || !rows || !constants || !a) {
        return CRD_E_MEMORY;
    }
    fold(n, rows, constants);
    for (int i = 0; i < n->n2; i++) {
        const crd_linear row = {.m = n->m, .k = k, .a = rows + i * n->m};
        const crd_status st = crd_analysis_check(ctx, &row);
        if (st < 0 || !isfinite(constants[i]) || !isfinite(n->W3[i])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "the network has a weight that is not a number, more than 1000 taps "
                             "or a latency of %d",
                             k);
        }
    }
    make_vectors(n, rows, constants, v);
    for (size_t pattern = 0; pattern < all; pattern++) {
        p.of_pattern[pattern] = -1;
        if (!possible(n, v, (uint32_t)pattern)) { continue; }
        put_together(n, rows, constants, (uint32_t)pattern, a);
        int found = 0;
        while (found < p.count &&
               !pieces_same(a, p.linear[found].a, n->m + 1)) { // with its constant
            found++;
        }
        if (found == p.count) {
            p.linear[p.count] = (crd_linear){.m = n->m, .k = k, .a = a};
            p.bias[p.count++] = a[n->m];
            a = crdi_arena_new(arena, m + 1, sizeof *a);
            if (!a) { return CRD_E_MEMORY; }
        }
        p.patterns[found]++;
        p.of_pattern[pattern] = found;
    }
    *out = p;
    return CRD_OK;
}
