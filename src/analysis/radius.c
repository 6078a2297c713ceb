// Bounds of the joint spectral radius over all sequences of states that a varied network can take:
// the largest growth per step that a sequence can force (Rota and Strang 1960).
//
// From below: the spectral radius of the product around a closed walk, to the power of one over its
// length (Berger and Wang 1992). Short walks are searched as Gripenberg (1996) does, those of the
// largest norm first; long ones along a trajectory that always takes the step that grows most.
// From above: a quadratic norm x^T P_v x for each state v with A_w^T P_w A_w <= gamma^2 P_v
// wherever w may follow v (Ahmadi, Jungers, Parrilo and Roozbehani 2014). It is the fixed point of
//     P_v = I + join over w of A_w^T P_w A_w,
// join being a least upper bound of matrices (Gaubert and Stott 2020): no semidefinite program is
// needed. Where joins give away too much, one norm for all states is looked for (common_norm.c).
// What norms alone leave open, a tree of products may decide (Gripenberg 1996): if
// every long enough walk begins with a product of norm below 1, all of them decay.
#include "analysis/varied.h"

#include "shared/num.h"

#include <stdlib.h>
#include <string.h>

enum { WALKS = 64, SHORT = 24, LONG = 600, TRAJECTORY = 3000, TREE_DEPTH = 40 };

typedef struct bounding {
    crdi_varied* s;
    crdi_radius* out;
    int N, norms; // norms: states, or 1 for all
    size_t square;
    double effort;             // operations that are left
    double full_effort;        // of each part
    double *map, *P, *next;    // (states x N x N), (norms x N x N) twice
    double* best;              // (norms x N x N) norms of the smallest bound
    double best_ratio;         // of it, squared
    double *L, *image, *spare; // (N x N) each
    double* values;            // (N) and as many for imaginary parts
    crdi_next* follow;
} bounding;

static double* map_of(const bounding* b, int state)
{
    return b->map + (size_t)state * b->square;
}

static double* norm_of(const bounding* b, double* of, int state)
{
    return of + (b->norms > 1 ? (size_t)state * b->square : 0);
}

static void multiply(int n, const double* a, const double* b, double* out)
{
    memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            const double x = a[i * n + k];
            if (x == 0) { continue; }
            for (int j = 0; j < n; j++) {
                out[i * n + j] += x * b[k * n + j];
            }
        }
    }
}

// out = a^T p a
static void pull_back(const bounding* b, const double* a, const double* p, double* out)
{
    const int n = b->N;
    multiply(n, p, a, b->spare);
    memset(out, 0, b->square * sizeof *out);
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < n; i++) {
            const double x = a[k * n + i];
            if (x == 0) { continue; }
            for (int j = 0; j < n; j++) {
                out[i * n + j] += x * b->spare[k * n + j];
            }
        }
    }
    for (int i = 0; i < n; i++) { // rounding shall not make it unsymmetric
        for (int j = 0; j < i; j++) {
            out[i * n + j] = out[j * n + i] = (out[i * n + j] + out[j * n + i]) / 2;
        }
    }
}

// ---- from above
// ----------------------------------------------------------------------------------

static bool covers(const bounding* b, const double* p, const double* g)
{
    for (size_t i = 0; i < b->square; i++) {
        b->spare[i] = p[i] - g[i];
    }
    return crdi_num_cholesky(b->N, b->spare) >= 0;
}

// p becomes an upper bound of p and g: with p = L L^T and L^-1 g L^-T = V diag(lambda) V^T it is
// L V diag(max(1, lambda)) V^T L^T.
static bool join(const bounding* b, double* p, const double* g)
{
    const int n = b->N;
    if (covers(b, p, g)) { return true; }
    double *M = b->spare, *X = b->L + b->square;
    memcpy(b->L, p, b->square * sizeof *p);
    memcpy(M, g, b->square * sizeof *g);
    if (crdi_num_cholesky(n, b->L) < 0) { return false; }
    crdi_num_congruence(n, b->L, M);
    if (crdi_num_symmetric(n, M, b->values, true) < 0) { return false; }
    for (int i = 0; i < n; i++) { // row i of X: sqrt(max(1, lambda_i)) (L v_i)^T
        const double root = sqrt(fmax(1, b->values[i] * (1 + 1e-12)));
        for (int k = 0; k < n; k++) {
            double sum = 0;
            for (int j = 0; j <= k; j++) {
                sum += b->L[k * n + j] * M[i * n + j];
            }
            X[i * n + k] = root * sum;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) {
                sum += X[k * n + i] * X[k * n + j];
            }
            p[i * n + j] = p[j * n + i] = sum;
        }
    }
    return true;
}

// The largest lambda of det(g - lambda p) = 0, and of p itself.
static bool largest_ratio(const bounding* b, const double* p, const double* g, double* ratio,
                          double* size)
{
    memcpy(b->L, p, b->square * sizeof *p);
    if (crdi_num_symmetric(b->N, b->L, b->values, false) < 0) { return false; }
    *size = fmax(*size, b->values[b->N - 1]);
    memcpy(b->L, p, b->square * sizeof *p);
    memcpy(b->spare, g, b->square * sizeof *g);
    if (crdi_num_cholesky(b->N, b->L) < 0) { return false; }
    crdi_num_congruence(b->N, b->L, b->spare);
    if (crdi_num_symmetric(b->N, b->spare, b->values, false) < 0) { return false; }
    *ratio = fmax(*ratio, b->values[b->N - 1]);
    return true;
}

static void set_identity(const bounding* b, double* p, double by)
{
    memset(p, 0, b->square * sizeof *p);
    for (int i = 0; i < b->N; i++) {
        p[i * b->N + i] = by;
    }
}

// One step of the fixed point: `next` = join of all images. Images for common norms are all
// states'.
static bool join_images(bounding* b)
{
    for (int v = 0; v < b->norms; v++) {
        set_identity(b, norm_of(b, b->next, v), 1e-2);
    }
    for (int w = 0; w < b->s->states && b->norms == 1; w++) {
        pull_back(b, map_of(b, w), b->P, b->image);
        if (!join(b, b->next, b->image)) { return false; }
    }
    if (b->norms == 1) { return true; }
    double* images = b->next + (size_t)b->norms * b->square;
    for (int w = 0; w < b->norms; w++) {
        pull_back(b, map_of(b, w), norm_of(b, b->P, w), images + (size_t)w * b->square);
    }
    for (int v = 0; v < b->norms; v++) {
        const int count = crdi_varied_next(b->s, v, b->follow);
        for (int i = 0; i < count; i++) {
            const double* g = images + (size_t)b->follow[i].to * b->square;
            if (!join(b, norm_of(b, b->next, v), g)) { return false; }
        }
    }
    return true;
}

// sum over i of (A^T)^i A^i for the sequence without change, by doubling: where the norms begin.
static bool start_norms(bounding* b)
{
    double *p = b->P, *a = b->image, *squared = b->L;
    set_identity(b, p, 1);
    memcpy(a, map_of(b, 0), b->square * sizeof *a);
    for (int i = 0; i < 50; i++) {
        double size = 0;
        pull_back(b, a, p, squared);
        for (size_t k = 0; k < b->square; k++) {
            p[k] += squared[k];
            size = fmax(size, fabs(p[k]));
        }
        if (!(size < 1e12)) { return false; }
        multiply(b->N, a, a, squared);
        memcpy(a, squared, b->square * sizeof *a);
    }
    for (int v = 1; v < b->norms; v++) {
        memcpy(norm_of(b, b->P, v), p, b->square * sizeof *p);
    }
    return true;
}

// Rounding may not decide: eigenvalues are right to some N eps of the norm's condition.
static bool is_below_one(const bounding* b, double ratio, double size)
{
    return 1 - ratio > 100 * b->N * 2.2e-16 * size;
}

static void bound_above(bounding* b)
{
    const double n3 = (double)b->N * b->N * b->N;
    const double joins = b->norms > 1 ? (double)b->s->transitions : b->s->states;
    const double cost =
        joins * (n3 + 2e3) + b->norms * (12 * n3 + 3e4); // small ones, too, take time
    if (!start_norms(b)) {
        for (int v = 0; v < b->norms; v++) {
            set_identity(b, norm_of(b, b->P, v), 1);
        }
    }
    while (b->effort > 0) {
        double ratio = 0, size = 1;
        b->effort -= cost;
        if (!join_images(b)) { return; }
        for (int v = 0; v < b->norms; v++) {
            double *p = norm_of(b, b->P, v), *g = norm_of(b, b->next, v);
            if (!largest_ratio(b, p, g, &ratio, &size)) { return; }
            for (int i = 0; i < b->N; i++) {
                g[i * b->N + i] += 1;
            }
        }
        if (ratio < b->best_ratio && size < 1e9) {
            b->best_ratio = ratio;
            memcpy(b->best, b->P, (size_t)b->norms * b->square * sizeof *b->P);
        }
        const bool sure = ratio >= 1 || is_below_one(b, ratio, size);
        if (sure) { b->out->high = fmin(b->out->high, sqrt(ratio)); }
        if (b->out->high < 1 || !(size < 1e8)) { return; } // beyond it rounding decides
        memcpy(b->P, b->next, (size_t)b->norms * b->square * sizeof *b->P);
    }
    b->out->stopped = true;
}

// One norm for all states, which need not follow one another in any order.
static crd_status bound_by_one_norm(bounding* b)
{
    double ratio = INFINITY, condition = 1, effort = b->full_effort;
    double* p = b->P;
    if (!start_norms(b)) { set_identity(b, p, 1); }
    const crd_status st =
        crdi_common_norm(&b->s->arena, b->N, b->s->states, b->map, p, &effort, &ratio, &condition);
    if (st < 0 || !isfinite(ratio)) { return st; }
    if (ratio >= 1 || is_below_one(b, ratio, condition)) {
        b->out->high = fmin(b->out->high, sqrt(ratio));
    }
    if (ratio < b->best_ratio && condition < 1e9) {
        b->best_ratio = ratio;
        for (int v = 0; v < b->norms; v++) {
            memcpy(norm_of(b, b->best, v), p, b->square * sizeof *p);
        }
    }
    return CRD_OK;
}

// ---- from below
// ----------------------------------------------------------------------------------

typedef struct walk {
    int length;
    int16_t at[SHORT + 1]; // the first is where it begins
    double score;
    double* product;
} walk;

static double spectral_radius(const bounding* b, const double* a)
{
    double largest = 0;
    memcpy(b->spare, a, b->square * sizeof *a);
    if (crdi_num_eigenvalues(b->N, b->spare, b->values, b->values + b->N) < 0) { return 0; }
    for (int i = 0; i < b->N; i++) {
        largest = fmax(largest, hypot(b->values[i], b->values[b->N + i]));
    }
    return largest;
}

static crd_status note_cycle(bounding* b, double growth, const int* states, int period)
{
    if (!(growth > b->out->low)) { return CRD_OK; }
    int* sequence = crdi_arena_new(&b->s->arena, (size_t)period, sizeof *sequence);
    if (!sequence) { return CRD_E_MEMORY; }
    memcpy(sequence, states, (size_t)period * sizeof *sequence);
    b->out->low = growth;
    b->out->period = period;
    b->out->sequence = sequence;
    return CRD_OK;
}

static crd_status close_walk(bounding* b, const walk* w)
{
    int states[SHORT];
    if (w->at[w->length] != w->at[0]) { return CRD_OK; }
    for (int i = 0; i < w->length; i++) {
        states[i] = w->at[i + 1];
    }
    b->effort -= 25.0 * b->N * b->N * b->N;
    return note_cycle(b, pow(spectral_radius(b, w->product), 1.0 / w->length), states, w->length);
}

// The best WALKS stay, the worst of them first in line to go.
static void keep_walk(bounding* b, walk* list, int* count, const walk* from, int to)
{
    multiply(b->N, map_of(b, to), from->product, b->image);
    b->effort -= 2.0 * b->N * b->N * b->N;
    double score = 0;
    for (size_t i = 0; i < b->square; i++) {
        score += b->image[i] * b->image[i];
    }
    int place = *count;
    if (*count == WALKS) {
        place = 0;
        for (int i = 1; i < WALKS; i++) {
            if (list[i].score < list[place].score) { place = i; }
        }
        if (!(score > list[place].score)) { return; }
    } else {
        (*count)++;
    }
    double* product = list[place].product;
    memcpy(product, b->image, b->square * sizeof *product);
    list[place] = *from;
    list[place].product = product;
    list[place].score = score;
    list[place].at[++list[place].length] = (int16_t)to;
}

static crd_status search_short(bounding* b)
{
    crd_status st = CRD_OK;
    walk* lists[2];
    for (int i = 0; i < 2; i++) {
        lists[i] = crdi_arena_new(&b->s->arena, WALKS, sizeof **lists);
        double* room = crdi_arena_new(&b->s->arena, WALKS * b->square, sizeof *room);
        if (!lists[i] || !room) { return CRD_E_MEMORY; }
        for (int k = 0; k < WALKS; k++) {
            lists[i][k].product = room + (size_t)k * b->square;
        }
    }
    int count = 0;
    for (int v = 0; v < b->s->states; v++) { // constant states first, whatever their number
        walk one = {.length = 1, .at = {(int16_t)v, (int16_t)v}, .product = map_of(b, v)};
        const int n = crdi_varied_next(b->s, v, b->follow);
        for (int i = 0; i < n; i++) {
            if (b->follow[i].to == v) { CRD_TRY(close_walk(b, &one)); }
        }
        one.length = 0;
        if (count < WALKS) {
            walk* w = &lists[0][count++];
            set_identity(b, w->product, 1);
            w->at[0] = (int16_t)v;
            w->length = 0;
        }
    }
    const double until = b->effort / 2;
    for (int length = 1; length <= SHORT && b->effort > until; length++) {
        walk *from = lists[(length - 1) % 2], *to = lists[length % 2];
        int kept = 0;
        for (int i = 0; i < count; i++) {
            const int n = crdi_varied_next(b->s, from[i].at[from[i].length], b->follow);
            for (int k = 0; k < n; k++) {
                keep_walk(b, to, &kept, &from[i], b->follow[k].to);
            }
        }
        count = kept;
        for (int i = 0; i < count; i++) {
            CRD_TRY(close_walk(b, &to[i]));
        }
    }
fail:
    return st;
}

static void apply(const bounding* b, const double* a, const double* z, double* out)
{
    for (int i = 0; i < b->N; i++) {
        double sum = 0;
        for (int k = 0; k < b->N; k++) {
            sum += a[i * b->N + k] * z[k];
        }
        out[i] = sum;
    }
}

static double length_in(const bounding* b, const double* p, const double* z)
{
    double sum = 0;
    for (int i = 0; i < b->N; i++) {
        for (int k = 0; k < b->N; k++) {
            sum += z[i] * p[i * b->N + k] * z[k];
        }
    }
    return sum;
}

// From z, always the step after which the norm is largest.
static void run_greedily(bounding* b, double* z, int* states)
{
    double *try = z + b->N, *best = z + 2 * b->N;
    int at = 0;
    for (int t = 0; t < TRAJECTORY && b->effort > 0; t++) {
        const int n = crdi_varied_next(b->s, at, b->follow);
        double largest = -1;
        for (int i = 0; i < n; i++) {
            const int to = b->follow[i].to;
            apply(b, map_of(b, to), z, try);
            const double length = length_in(b, norm_of(b, b->P, to), try);
            if (length > largest) {
                largest = length;
                states[t] = to;
                memcpy(best, try, (size_t)b->N * sizeof *best);
            }
        }
        b->effort -= 4.0 * n * b->N * b->N;
        at = states[t];
        const double by = largest > 0 ? 1 / sqrt(largest) : 1;
        for (int i = 0; i < b->N; i++) {
            z[i] = best[i] * by;
        }
    }
}

// Closed pieces at the end of a trajectory.
static crd_status search_long(bounding* b)
{
    crd_status st = CRD_OK;
    int* states = crdi_arena_new(&b->s->arena, TRAJECTORY, sizeof *states);
    double* z = crdi_arena_new(&b->s->arena, 3 * (size_t)b->N, sizeof *z);
    double* product = crdi_arena_new(&b->s->arena, b->square, sizeof *product);
    if (!states || !z || !product) { return CRD_E_MEMORY; }
    for (int i = 0; i < b->N; i++) {
        z[i] = 1 + 0.3 * (i % 5);
    }
    run_greedily(b, z, states);
    const int first = TRAJECTORY - LONG - 1;
    double scale = 0; // log of what was taken out of the product
    set_identity(b, product, 1);
    for (int t = first + 1, tried = 0; t < TRAJECTORY && tried < 60 && b->effort > 0; t++) {
        multiply(b->N, map_of(b, states[t]), product, b->image);
        memcpy(product, b->image, b->square * sizeof *product);
        b->effort -= 2.0 * b->N * b->N * b->N;
        double largest = 1e-300;
        for (size_t i = 0; i < b->square; i++) {
            largest = fmax(largest, fabs(product[i]));
        }
        for (size_t i = 0; i < b->square; i++) {
            product[i] /= largest;
        }
        scale += log(largest);
        if (states[t] != states[first]) { continue; }
        tried++;
        const double radius = spectral_radius(b, product);
        b->effort -= 25.0 * b->N * b->N * b->N;
        const double growth = radius > 0 ? exp((log(radius) + scale) / (t - first)) : 0;
        CRD_TRY(note_cycle(b, growth, &states[first + 1], t - first));
    }
fail:
    return st;
}

// ---- the tree
// ------------------------------------------------------------------------------------

static const double leaf = 1e-3; // a product that shortens the square of all lengths by this part

typedef struct tree {
    bounding* b;
    int start, depth, deepest;
    crdi_next* follow; // (TREE_DEPTH x most)
    double* product;   // (TREE_DEPTH + 1 x N x N)
} tree;

static bool is_leaf(const tree* t, int at, const double* product)
{
    const bounding* b = t->b;
    pull_back(b, product, norm_of(b, b->best, at), b->image);
    const double* p = norm_of(b, b->best, t->start);
    for (size_t i = 0; i < b->square; i++) {
        b->spare[i] = (1 - leaf) * p[i] - b->image[i];
    }
    return crdi_num_cholesky(b->N, b->spare) >= 0;
}

// Every way on from `at` comes to a leaf.
static bool close_branches(tree* t, int at)
{
    bounding* b = t->b;
    if (t->depth == TREE_DEPTH || b->effort < 0) { return false; }
    crdi_next* follow = t->follow + (size_t)t->depth * (size_t)crdi_varied_most(b->s);
    const int n = crdi_varied_next(b->s, at, follow);
    const double* from = t->product + (size_t)t->depth * b->square;
    double* to = t->product + (size_t)(t->depth + 1) * b->square;
    t->depth++;
    t->deepest = t->depth > t->deepest ? t->depth : t->deepest;
    for (int i = 0; i < n; i++) {
        multiply(b->N, map_of(b, follow[i].to), from, to);
        b->effort -= 6.0 * b->N * b->N * b->N;
        if (!is_leaf(t, follow[i].to, to) && !close_branches(t, follow[i].to)) { return false; }
    }
    t->depth--;
    return true;
}

static crd_status grow_tree(bounding* b)
{
    tree t = {.b = b};
    const size_t most = (size_t)crdi_varied_most(b->s);
    if (!isfinite(b->best_ratio)) { return CRD_OK; }
    t.follow = crdi_arena_new(&b->s->arena, TREE_DEPTH * most, sizeof *t.follow);
    t.product = crdi_arena_new(&b->s->arena, (TREE_DEPTH + 1) * b->square, sizeof *t.product);
    if (!t.follow || !t.product) { return CRD_E_MEMORY; }
    set_identity(b, t.product, 1);
    for (t.start = 0; t.start < b->s->states; t.start++) {
        t.depth = 0;
        if (!close_branches(&t, t.start)) {
            b->out->stopped = true;
            return CRD_OK;
        }
    }
    b->out->high = fmin(b->out->high, pow(1 - leaf, 0.5 / t.deepest));
    return CRD_OK;
}

// ---- both
// ----------------------------------------------------------------------------------------

static crd_status make_bounding(bounding* b)
{
    crd_arena* arena = &b->s->arena;
    const size_t states = (size_t)b->s->states, norms = (size_t)b->norms;
    b->map = crdi_arena_new(arena, states * b->square, sizeof *b->map);
    b->P = crdi_arena_new(arena, norms * b->square, sizeof *b->P);
    b->best = crdi_arena_new(arena, norms * b->square, sizeof *b->best);
    b->next = crdi_arena_new(arena, 2 * norms * b->square, sizeof *b->next); // and images
    b->L = crdi_arena_new(arena, 2 * b->square, sizeof *b->L);
    b->image = crdi_arena_new(arena, b->square, sizeof *b->image);
    b->spare = crdi_arena_new(arena, b->square, sizeof *b->spare);
    b->values = crdi_arena_new(arena, 2 * (size_t)b->N, sizeof *b->values);
    b->follow = crdi_arena_new(arena, (size_t)crdi_varied_most(b->s), sizeof *b->follow);
    if (!b->map || !b->P || !b->best || !b->next || !b->L || !b->image || !b->spare || !b->values ||
        !b->follow) {
        return CRD_E_MEMORY;
    }
    for (int v = 0; v < b->s->states; v++) {
        crdi_varied_matrix(b->s, v, v, map_of(b, v));
    }
    return CRD_OK;
}

crd_status crdi_radius_bound(crdi_varied* s, double effort, crdi_radius* out)
{
    crd_status st = CRD_OK;
    const double n3 = (double)s->size * s->size * s->size;
    bounding b = {.s = s,
                  .out = out,
                  .N = s->size,
                  .norms = s->states,
                  .effort = effort,
                  .full_effort = effort,
                  .best_ratio = INFINITY};
    b.square = (size_t)s->size * (size_t)s->size;
    *out = (crdi_radius){.high = INFINITY};
    if ((double)s->states * (double)b.square > 2e7) {
        out->stopped = true;
        return CRD_OK;
    }
    if ((double)s->transitions * n3 * 40 > effort / 40) { b.norms = 1; } // one norm for all
    CRD_TRY(make_bounding(&b));
    bound_above(&b);
    if (!(out->high < 1)) { CRD_TRY(bound_by_one_norm(&b)); }
    if (out->high < 1) { // below 1 there is nothing to find but the size of the gap
        b.effort = fmin(fmax(b.effort, 0), 0.1 * effort);
    } else {
        b.effort = effort;
    }
    CRD_TRY(search_short(&b));
    CRD_TRY(search_long(&b));
    if (out->high < 1 || out->low > 1) { return CRD_OK; }
    b.effort = effort;
    CRD_TRY(grow_tree(&b));
fail:
    return st;
}
