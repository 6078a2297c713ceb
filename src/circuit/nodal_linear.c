// Solvers of the fast form's constant matrix: an explicit inverse where there are few unknowns,
// chains where it has long paths, L D L^T where it is symmetric, else KLU.
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

// ---- dense -------------------------------------------------------------------------------------

static crd_status init_dense(crdi_linear* l, crd_arena* a, const int32_t* rows,
                             const int32_t* columns)
{
    const size_t n = (size_t)l->n, stride = (size_t)crdi_dense_stride(l->n);
    l->place = crdi_arena_new(a, l->count, sizeof *l->place);
    l->inverse = crdi_arena_new(a, stride * n + 2 * n * n, sizeof *l->inverse);
    if (a->failed) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < l->count; k++) {
        l->place[k] = rows[k] * l->n + columns[k];
    }
    return CRD_OK;
}

// Gauss and Jordan with partial pivoting on [A | I].
static crd_status invert(int n, double* a, double* inverse)
{
    double largest[CRDI_DENSE_MOST] = {0}; // of a column
    for (int i = 0; i < n * n; i++) {
        largest[i % n] = fmax(largest[i % n], fabs(a[i]));
        inverse[i] = i % (n + 1) == 0;
    }
    for (int k = 0; k < n; k++) {
        int top = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[top * n + k])) { top = i; }
        }
        const double pivot = a[top * n + k];
        if (!(fabs(pivot) > 1e-15 * largest[k]) || !isfinite(pivot)) { return CRD_E_CONVERGENCE; }
        for (int j = 0; j < n; j++) {
            const double x = a[top * n + j], y = inverse[top * n + j];
            a[top * n + j] = a[k * n + j];
            inverse[top * n + j] = inverse[k * n + j];
            a[k * n + j] = x / pivot;
            inverse[k * n + j] = y / pivot;
        }
        for (int i = 0; i < n; i++) {
            const double factor = a[i * n + k];
            if (i == k || factor == 0) { continue; }
            for (int j = 0; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
                inverse[i * n + j] -= factor * inverse[k * n + j];
            }
        }
    }
    return CRD_OK;
}

static crd_status factor_dense(crdi_linear* l, const double* values)
{
    const int n = l->n;
    const int stride = crdi_dense_stride(n);
    double *a = l->inverse + (size_t)stride * (size_t)n, *inverse = a + (size_t)n * (size_t)n;
    memset(a, 0, (size_t)n * (size_t)n * sizeof *a);
    for (size_t k = 0; k < l->count; k++) {
        a[l->place[k]] += values[k];
    }
    const crd_status st = invert(n, a, inverse);
    for (int i = 0; i < n * n && st == CRD_OK; i++) {
        l->inverse[i % n * stride + i / n] = inverse[i];
    }
    return st;
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline void apply(int rows, int columns, const double* m, const double* x,
                         const double* start, double* out)
{
    const int stride = crdi_dense_stride(rows);
    for (int i = 0; i < rows; i += 4, m += 4) {
        pair a = start ? *(const pair*)(start + i) : (pair){0, 0};
        pair b = start ? *(const pair*)(start + i + 2) : (pair){0, 0};
        const double* at = m;
        for (int j = 0; j < columns; j++, at += stride) {
            const pair xj = {x[j], x[j]};
            a += *(const pair*)at * xj;
            b += *(const pair*)(at + 2) * xj;
        }
        *(pair*)(out + i) = a;
        *(pair*)(out + i + 2) = b;
    }
}

void crdi_dense_apply(int rows, int columns, const double* m, const double* x, double* out)
{
    apply(rows, columns, m, x, NULL, out);
}

void crdi_dense_apply_to(int rows, int columns, const double* m, const double* x,
                         const double* start, double* out)
{
    apply(rows, columns, m, x, start, out);
}

static void solve_dense(crdi_linear* l, double* b)
{
    double x[CRDI_DENSE_MOST + 4];
    crdi_dense_apply(l->n, l->n, l->inverse, b, x);
    for (int i = 0; i < l->n; i++) {
        b[i] = x[i];
    }
}

// ---- L D L^T, row by row -----------------------------------------------------------------------

// What solving reads of a column. row[0] = -1: it has more than two entries, in row and value.
struct crdi_slim {
    int32_t row[2]; // n: none, with value 0
    double value[2], pivot;
};

// The upper triangle in the order of elimination, by columns.
static void permute_upper(crdi_linear* l, int32_t* place)
{
    const crdi_sparse* s = &l->sparse;
    for (int32_t k = 0; k < l->n; k++) {
        place[l->order[k]] = k;
    }
    int32_t count = 0;
    for (int32_t k = 0; k < l->n; k++) {
        const int32_t column = l->order[k];
        for (int32_t p = s->first[column]; p < s->first[column + 1]; p++) {
            const int32_t i = place[s->row[p]];
            if (i > k) { continue; }
            l->upper_row[count] = i;
            l->upper_slot[count++] = p;
        }
        l->upper_first[k + 1] = count;
    }
}

// The tree of elimination and the length of each column of L.
static int64_t count_columns(crdi_linear* l)
{
    int64_t total = 0;
    for (int32_t k = 0; k < l->n; k++) {
        l->parent[k] = -1;
        l->flag[k] = k;
        l->length[k] = 0;
        for (int32_t p = l->upper_first[k]; p < l->upper_first[k + 1]; p++) {
            for (int32_t i = l->upper_row[p]; l->flag[i] != k; i = l->parent[i]) {
                if (l->parent[i] < 0) { l->parent[i] = k; }
                l->length[i]++;
                l->flag[i] = k;
                total++;
            }
        }
    }
    return total;
}

// Solving goes from column to column up the tree, each waiting for the one before. Long bare stems
// (paths of a circuit) are cut: every SPAN-th node of them comes last.
enum { SPAN = 32 };

// How far each column is from the leaves
static int32_t heights(const crdi_linear* l, int32_t* height)
{
    int32_t most = 0;
    memset(height, 0, (size_t)l->n * sizeof *height);
    for (int32_t k = 0; k < l->n; k++) {
        const int32_t p = l->parent[k];
        if (p >= 0 && height[p] <= height[k]) { height[p] = height[k] + 1; }
        if (height[k] > most) { most = height[k]; }
    }
    return most;
}

// The order by `key`, from 0 to most, otherwise as it was
static void sort_order(crdi_linear* l, const int32_t* key, int32_t most, int32_t* start,
                       int32_t* old)
{
    memset(start, 0, ((size_t)most + 2) * sizeof *start);
    memcpy(old, l->order, (size_t)l->n * sizeof *old);
    for (int32_t k = 0; k < l->n; k++) {
        start[key[k] + 1]++;
    }
    for (int32_t h = 0; h <= most; h++) {
        start[h + 1] += start[h];
    }
    for (int32_t k = 0; k < l->n; k++) {
        l->order[start[key[k]]++] = old[k];
    }
    permute_upper(l, l->pattern);
}

// `room`: 3 n + 2
static int64_t cut_stems(crdi_linear* l, int64_t total, int32_t* room)
{
    int32_t *key = room, *old = room + l->n, *start = room + 2 * (size_t)l->n;
    if (heights(l, key) < 4 * SPAN) { return total; }
    for (int32_t k = 0; k < l->n; k++) {
        key[k] = key[k] % SPAN == SPAN - 1 && l->length[k] <= 2;
    }
    sort_order(l, key, 1, start, old);
    const int64_t now = count_columns(l);
    if (now > 2 * (total + SPAN)) { // they were not that bare
        memcpy(l->order, old, (size_t)l->n * sizeof *old);
        permute_upper(l, l->pattern);
        return count_columns(l);
    }
    // columns of one height do not wait for each other
    sort_order(l, key, heights(l, key), start, old);
    return count_columns(l);
}

static crd_status init_symmetric(crdi_linear* l, crd_arena* a)
{
    crdi_sparse* s = &l->sparse;
    const size_t n = (size_t)l->n, all = (size_t)s->first[l->n];
    l->parent = crdi_arena_new(a, n, sizeof *l->parent);
    l->order = crdi_arena_new(a, n, sizeof *l->order);
    l->flag = crdi_arena_new(a, n, sizeof *l->flag);
    l->pattern = crdi_arena_new(a, n, sizeof *l->pattern);
    l->length = crdi_arena_new(a, n, sizeof *l->length);
    l->upper_first = crdi_arena_new(a, n + 1, sizeof *l->upper_first);
    l->upper_row = crdi_arena_new(a, all, sizeof *l->upper_row);
    l->upper_slot = crdi_arena_new(a, all, sizeof *l->upper_slot);
    l->first = crdi_arena_new(a, n + 1, sizeof *l->first);
    l->pivot = crdi_arena_new(a, n, sizeof *l->pivot);
    l->work = crdi_arena_new(a, n + 1, sizeof *l->work);
    l->slim = crdi_arena_new(a, n, sizeof *l->slim);
    if (a->failed) { return CRD_E_MEMORY; }
    klu_free_symbolic(&s->symbolic, &s->common);
    s->common.btf = 0; // one block: its order is that of AMD, the same for rows and columns
    s->symbolic = klu_analyze(l->n, s->first, s->row, &s->common);
    if (!s->symbolic) { return crdi_fail(a->ctx, CRD_E_MEMORY, "out of memory"); }
    for (size_t k = 0; k < n; k++) {
        l->order[k] = s->symbolic->Q[k];
    }
    permute_upper(l, l->pattern);
    int32_t* room = crdi_new_array(a->ctx, 3 * n + 2, sizeof *room);
    if (!room) { return CRD_E_MEMORY; }
    const int64_t total = cut_stems(l, count_columns(l), room);
    crd_free(a->ctx, room);
    if (total > INT32_MAX) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "circuit: too large for this form");
    }
    for (size_t k = 0; k < n; k++) {
        l->first[k + 1] = l->first[k] + l->length[k];
    }
    l->row = crdi_arena_new(a, (size_t)total, sizeof *l->row);
    l->value = crdi_arena_new(a, (size_t)total, sizeof *l->value);
    return crdi_arena_status(a);
}

// The columns that row k of L has, last in l->pattern, each before those that depend on it.
static int32_t nodal_linear_reach(crdi_linear* l, int32_t k, double* y)
{
    int32_t top = l->n;
    l->flag[k] = k;
    for (int32_t p = l->upper_first[k]; p < l->upper_first[k + 1]; p++) {
        int32_t i = l->upper_row[p], length = 0;
        y[i] += l->sparse.value[l->upper_slot[p]];
        for (; l->flag[i] != k; i = l->parent[i]) {
            l->pattern[length++] = i;
            l->flag[i] = k;
        }
        while (length > 0) {
            l->pattern[--top] = l->pattern[--length];
        }
    }
    return top;
}

static void make_slim(crdi_linear* l)
{
    for (int32_t k = 0; k < l->n; k++) {
        const int32_t p = l->first[k], count = l->first[k + 1] - p;
        l->slim[k] = (struct crdi_slim){.row = {l->n, l->n}, .pivot = l->pivot[k]};
        if (count > 2) { l->slim[k].row[0] = -1; }
        for (int32_t j = 0; j < count && count <= 2; j++) {
            l->slim[k].row[j] = l->row[p + j];
            l->slim[k].value[j] = l->value[p + j];
        }
    }
}

static crd_status factor_symmetric(crdi_linear* l, const double* values)
{
    crdi_sparse* s = &l->sparse;
    double* y = l->work;
    memset(s->value, 0, (size_t)s->first[s->n] * sizeof *s->value);
    for (size_t k = 0; k < l->count; k++) {
        s->value[s->slot[k]] += values[k];
    }
    memset(y, 0, (size_t)l->n * sizeof *y);
    memset(l->length, 0, (size_t)l->n * sizeof *l->length);
    for (int32_t k = 0; k < l->n; k++) {
        l->flag[k] = -1;
    }
    for (int32_t k = 0; k < l->n; k++) {
        int32_t top = nodal_linear_reach(l, k, y);
        double d = y[k];
        y[k] = 0;
        const double whole = d;
        for (; top < l->n; top++) {
            const int32_t i = l->pattern[top], end = l->first[i] + l->length[i];
            const double yi = y[i], x = yi * l->pivot[i];
            y[i] = 0;
            for (int32_t p = l->first[i]; p < end; p++) {
                y[l->row[p]] -= l->value[p] * yi;
            }
            d -= x * yi;
            l->row[end] = k;
            l->value[end] = x;
            l->length[i]++;
        }
        if (!(d > 1e-14 * whole) || !isfinite(d)) { return CRD_E_CONVERGENCE; }
        l->pivot[k] = 1 / d;
    }
    make_slim(l);
    return CRD_OK;
}

static void solve_symmetric(crdi_linear* l, double* b)
{
    const int32_t n = l->n, *first = l->first, *row = l->row, *order = l->order;
    const double* value = l->value;
    const struct crdi_slim* slim = l->slim;
    double* x = l->work;
    for (int32_t k = 0; k < n; k++) {
        x[k] = b[order[k]];
    }
    for (int32_t k = 0; k < n; k++) {
        const struct crdi_slim* s = &slim[k];
        const double xk = x[k];
        if (s->row[0] >= 0) {
            x[s->row[0]] -= s->value[0] * xk;
            x[s->row[1]] -= s->value[1] * xk;
            continue;
        }
        for (int32_t p = first[k]; p < first[k + 1]; p++) {
            x[row[p]] -= value[p] * xk;
        }
    }
    x[n] = 0;
    for (int32_t k = n - 1; k >= 0; k--) {
        const struct crdi_slim* s = &slim[k];
        double xk = x[k] * s->pivot;
        if (s->row[0] >= 0) {
            xk -= s->value[0] * x[s->row[0]];
            xk -= s->value[1] * x[s->row[1]];
        } else {
            for (int32_t p = first[k]; p < first[k + 1]; p++) {
                xk -= value[p] * x[row[p]];
            }
        }
        x[k] = xk;
        b[order[k]] = xk;
    }
}

// ---- all of them -------------------------------------------------------------------------------

crd_status crdi_linear_init(crdi_linear* l, crd_arena* a, int32_t n, bool symmetric, bool chains,
                            size_t count, const int32_t* rows, const int32_t* columns)
{
    *l = (crdi_linear){.n = n, .count = count};
    l->kind = n <= CRDI_DENSE_MOST ? CRDI_LINEAR_DENSE
              : symmetric          ? CRDI_LINEAR_SYMMETRIC
                                   : CRDI_LINEAR_KLU;
    if (l->kind == CRDI_LINEAR_DENSE) { return init_dense(l, a, rows, columns); }
    crd_status st = CRD_OK;
    if (chains && symmetric) { st = crdi_paths_create(a->ctx, n, count, rows, columns, &l->paths); }
    if (st < 0) { return st; }
    if (l->paths) {
        l->kind = CRDI_LINEAR_PATHS;
        return CRD_OK;
    }
    st = crdi_sparse_init(&l->sparse, a, n, count, rows, columns);
    return st < 0 || l->kind == CRDI_LINEAR_KLU ? st : init_symmetric(l, a);
}

void crdi_linear_clear(crdi_linear* l)
{
    crdi_sparse_clear(&l->sparse);
    crdi_paths_destroy(l->paths);
    *l = (crdi_linear){0};
}

crd_status crdi_linear_factor(crdi_linear* l, const double* values)
{
    switch (l->kind) {
    case CRDI_LINEAR_DENSE:
        return factor_dense(l, values);
    case CRDI_LINEAR_PATHS:
        return crdi_paths_factor(l->paths, values);
    case CRDI_LINEAR_SYMMETRIC:
        return factor_symmetric(l, values);
    default:
        return crdi_sparse_factor(&l->sparse, values);
    }
}

void crdi_linear_solve(crdi_linear* l, double* b)
{
    switch (l->kind) {
    case CRDI_LINEAR_DENSE:
        solve_dense(l, b);
        break;
    case CRDI_LINEAR_PATHS:
        crdi_paths_solve(l->paths, b);
        break;
    case CRDI_LINEAR_SYMMETRIC:
        solve_symmetric(l, b);
        break;
    default:
        crdi_sparse_solve(&l->sparse, b);
        break;
    }
}

bool crdi_linear_regular(crdi_linear* l)
{
    crdi_sparse* s = &l->sparse;
    return l->kind != CRDI_LINEAR_KLU ||
           (klu_rcond(s->symbolic, s->numeric, &s->common) && s->common.rcond > 1e-15);
}

int64_t crdi_linear_nonzeros(const crdi_linear* l)
{
    switch (l->kind) {
    case CRDI_LINEAR_DENSE:
        return (int64_t)l->n * l->n;
    case CRDI_LINEAR_PATHS:
        return crdi_paths_nonzeros(l->paths);
    case CRDI_LINEAR_SYMMETRIC:
        return l->n > 0 ? 2 * (int64_t)l->first[l->n] + l->n : 0;
    default: {
        const klu_numeric* k = l->sparse.numeric;
        return k ? (int64_t)k->lnz + k->unz : 0;
    }
    }
}
