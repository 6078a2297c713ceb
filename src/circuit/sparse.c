#include "circuit/sparse.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

// ---- compressed columns from entries -----------------------------------------------------------

// Sort by column, then by row, with two counting sorts; equal places share a slot.
static crd_status compress(crdi_sparse* s, const int32_t* rows, const int32_t* columns)
{
    const size_t n = (size_t)s->n;
    crd_arena room;
    crd_arena_init(&room, s->ctx);
    int32_t* order = crdi_arena_new(&room, 2 * s->count, sizeof *order);
    int32_t* start = crdi_arena_new(&room, n + 1, sizeof *start);
    if (room.failed) { goto fail; }
    int32_t* by_row = order + s->count;
    for (int pass = 0; pass < 2; pass++) {
        const int32_t* key = pass == 0 ? rows : columns;
        int32_t* to = pass == 0 ? by_row : order;
        memset(start, 0, (n + 1) * sizeof *start);
        for (size_t k = 0; k < s->count; k++) {
            start[key[k] + 1]++;
        }
        for (size_t i = 0; i < n; i++) {
            start[i + 1] += start[i];
        }
        for (size_t k = 0; k < s->count; k++) {
            const int32_t e = pass == 0 ? (int32_t)k : by_row[k];
            to[start[key[e]]++] = e;
        }
    }
    int32_t used = 0;
    for (size_t k = 0; k < s->count; k++) {
        const int32_t e = order[k], before = k > 0 ? order[k - 1] : -1;
        const bool same = k > 0 && rows[e] == rows[before] && columns[e] == columns[before];
        if (!same) {
            s->row[used] = rows[e];
            s->first[columns[e] + 1] = ++used;
        }
        s->slot[e] = used - 1;
    }
    for (size_t i = 0; i < n; i++) { // empty columns
        if (s->first[i + 1] < s->first[i]) { s->first[i + 1] = s->first[i]; }
    }
fail:;
    const crd_status st = crdi_arena_status(&room);
    crd_arena_clear(&room);
    return st;
}

crd_status crdi_sparse_init(crdi_sparse* s, crd_arena* a, int32_t n, size_t count,
                            const int32_t* rows, const int32_t* columns)
{
    *s = (crdi_sparse){.ctx = a->ctx, .n = n, .count = count, .growth = 1e-6};
    if (count > INT32_MAX / 2) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "circuit: too large for this form");
    }
    s->first = crdi_arena_new(a, (size_t)n + 1, sizeof *s->first);
    s->row = crdi_arena_new(a, count, sizeof *s->row);
    s->value = crdi_arena_new(a, count, sizeof *s->value);
    s->slot = crdi_arena_new(a, count, sizeof *s->slot);
    const crd_status st = a->failed ? CRD_E_MEMORY : compress(s, rows, columns);
    if (st < 0) { return st; }
    klu_defaults(&s->common);
    s->common.scale = 2;
    s->symbolic = klu_analyze(n, s->first, s->row, &s->common);
    return s->symbolic ? CRD_OK : crdi_fail(s->ctx, CRD_E_MEMORY, "out of memory");
}

void crdi_sparse_clear(crdi_sparse* s)
{
    if (!s->ctx) { return; }
    klu_free_numeric(&s->numeric, &s->common);
    klu_free_symbolic(&s->symbolic, &s->common);
    *s = (crdi_sparse){0};
}

crd_status crdi_sparse_factor(crdi_sparse* s, const double* values)
{
    memset(s->value, 0, (size_t)s->first[s->n] * sizeof *s->value);
    for (size_t k = 0; k < s->count; k++) {
        s->value[s->slot[k]] += values[k];
    }
    if (s->numeric) {
        // Old pivots may have become small: then the factors grow.
        if (klu_refactor(s->first, s->row, s->value, s->symbolic, s->numeric, &s->common) &&
            klu_rgrowth(s->first, s->row, s->value, s->symbolic, s->numeric, &s->common) &&
            s->common.rgrowth > s->growth) {
            return CRD_OK;
        }
        klu_free_numeric(&s->numeric, &s->common);
    }
    s->numeric = klu_factor(s->first, s->row, s->value, s->symbolic, &s->common);
    if (s->common.status == KLU_OUT_OF_MEMORY) {
        return crdi_fail(s->ctx, CRD_E_MEMORY, "out of memory");
    }
    return s->numeric && s->common.status == KLU_OK ? CRD_OK : CRD_E_CONVERGENCE;
}

void crdi_sparse_solve(crdi_sparse* s, double* b)
{
    klu_solve(s->symbolic, s->numeric, s->n, 1, b, &s->common);
}

// ---- least squares -----------------------------------------------------------------------------

// e; what is scaled has entries of about one. Passes of the solution converge as e / (sigma^2 + e)
// for a singular value sigma, and capacitors of nF beside resistors have some of 1e-5. Far smaller
// would blur what contradicts itself: there lambda is r / e and brings rounding of that size.
#define SMALL 1e-13

crd_status crdi_least_init(crdi_least* l, crd_arena* a, int32_t rows, int32_t columns, size_t count,
                           const int32_t* row, const int32_t* column)
{
    *l = (crdi_least){
        .rows = rows, .columns = columns, .count = count, .row = row, .column = column};
    const size_t size = (size_t)rows + (size_t)columns, all = size + 2 * count;
    l->value = crdi_arena_new(a, count, sizeof *l->value);
    l->entries = crdi_arena_new(a, all, sizeof *l->entries);
    l->row_scale = crdi_arena_new(a, (size_t)rows, sizeof *l->row_scale);
    l->column_scale = crdi_arena_new(a, (size_t)columns, sizeof *l->column_scale);
    l->b = crdi_arena_new(a, 2 * size, sizeof *l->b);
    l->left = crdi_arena_new(a, (size_t)rows, sizeof *l->left);
    if (a->failed) { return CRD_E_MEMORY; }
    int32_t* place = crdi_new_array(a->ctx, 2 * all, sizeof *place);
    if (!place) { return CRD_E_MEMORY; }
    int32_t *r = place, *c = place + all;
    for (size_t i = 0; i < size; i++) {
        r[i] = c[i] = (int32_t)i;
    }
    for (size_t k = 0; k < count; k++) {
        r[size + k] = columns + row[k];
        c[size + k] = column[k];
        r[size + count + k] = column[k];
        c[size + count + k] = columns + row[k];
    }
    crd_status st = crdi_sparse_init(&l->matrix, a, rows + columns, all, r, c);
    if (st == CRD_OK && rows == columns) {
        st = crdi_sparse_init(&l->direct, a, rows, count, row, column);
    }
    crd_free(a->ctx, place);
    return st;
}

void crdi_least_clear(crdi_least* l)
{
    crdi_sparse_clear(&l->matrix);
    crdi_sparse_clear(&l->direct);
}

// Divide rows and columns by the root of their largest entry, a few times over.
static void equilibrate(crdi_least* l)
{
    for (int32_t i = 0; i < l->rows; i++) {
        l->row_scale[i] = 1;
    }
    for (int32_t i = 0; i < l->columns; i++) {
        l->column_scale[i] = 1;
    }
    double* top = l->b; // rows, then columns
    for (int sweep = 0; sweep < 20; sweep++) {
        memset(top, 0, (size_t)(l->rows + l->columns) * sizeof *top);
        for (size_t k = 0; k < l->count; k++) {
            const int32_t i = l->row[k], j = l->column[k];
            const double v = fabs(l->value[k]) * l->row_scale[i] * l->column_scale[j];
            top[i] = fmax(top[i], v);
            top[l->rows + j] = fmax(top[l->rows + j], v);
        }
        for (int32_t i = 0; i < l->rows; i++) {
            if (top[i] > 0) { l->row_scale[i] /= sqrt(top[i]); }
        }
        for (int32_t i = 0; i < l->columns; i++) {
            if (top[l->rows + i] > 0) { l->column_scale[i] /= sqrt(top[l->rows + i]); }
        }
    }
}

static bool is_regular(crdi_least* l)
{
    crdi_sparse* s = &l->direct;
    return crdi_sparse_factor(s, l->value) == CRD_OK &&
           klu_rcond(s->symbolic, s->numeric, &s->common) && s->common.rcond > 1e-15;
}

crd_status crdi_least_factor(crdi_least* l, const double* values, double penalty)
{
    const size_t size = (size_t)l->rows + (size_t)l->columns;
    l->penalty = penalty;
    memcpy(l->value, values, l->count * sizeof *values);
    if (penalty > 0) {
        for (int32_t i = 0; i < l->rows; i++) {
            l->row_scale[i] = 1;
        }
        for (int32_t i = 0; i < l->columns; i++) {
            l->column_scale[i] = 1;
        }
    } else {
        equilibrate(l);
    }
    for (size_t k = 0; k < l->count; k++) {
        l->value[k] *= l->row_scale[l->row[k]] * l->column_scale[l->column[k]];
        l->entries[size + k] = l->value[k];
        l->entries[size + l->count + k] = l->value[k];
    }
    l->regular = penalty == 0 && l->direct.ctx && is_regular(l);
    if (l->regular) { return CRD_OK; }
    for (int32_t i = 0; i < l->columns; i++) {
        l->entries[i] = 1;
    }
    for (int32_t i = 0; i < l->rows; i++) {
        l->entries[l->columns + i] = penalty > 0 ? -1 / penalty : -SMALL;
    }
    return crdi_sparse_factor(&l->matrix, l->entries);
}

void crdi_least_solve(crdi_least* l, const double* r, double* x)
{
    const size_t columns = (size_t)l->columns, rows = (size_t)l->rows;
    double *b = l->b, *sum = l->b + rows + columns;
    memset(sum, 0, columns * sizeof *sum);
    for (size_t i = 0; i < rows; i++) {
        l->left[i] = r[i] * l->row_scale[i];
    }
    for (int pass = 0; pass < 30; pass++) {
        if (l->regular) {
            memcpy(sum, l->left, columns * sizeof *sum);
            crdi_sparse_solve(&l->direct, sum);
            break;
        }
        memset(b, 0, columns * sizeof *b);
        memcpy(b + columns, l->left, rows * sizeof *b);
        crdi_sparse_solve(&l->matrix, b);
        double large = 0, change = 0;
        for (size_t i = 0; i < columns; i++) {
            sum[i] += b[i];
            large = fmax(large, fabs(sum[i]));
            change = fmax(change, fabs(b[i]));
        }
        if (l->penalty > 0 || !(change > 1e-15 * large)) { break; }
        for (size_t k = 0; k < l->count; k++) {
            l->left[l->row[k]] -= l->value[k] * b[l->column[k]];
        }
    }
    for (size_t i = 0; i < columns; i++) {
        x[i] = sum[i] * l->column_scale[i];
    }
}
