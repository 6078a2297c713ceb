// Sparse systems of fixed pattern over KLU, and least squares on top of them.
#pragma once
#include "cardan/base.h"

#if defined __has_include && __has_include(<suitesparse/klu.h>)
#include <suitesparse/klu.h> // Debian: sources in an FMU are compiled without options
#else
#include <klu.h>
#endif

typedef struct crdi_sparse {
    crd_context* ctx; // NULL: it was not made
    int32_t n;
    size_t count;     // of the entries it was made from
    int *first, *row; // compressed columns
    double* value;
    int32_t* slot; // (count) where an entry lies in value; entries at the same place are summed
    double growth; // of factors with old pivots: below it pivots are looked for anew; 1e-6
    klu_common common;
    klu_symbolic* symbolic;
    klu_numeric* numeric;
} crdi_sparse;

// Entries are given once by their places. Rows and columns are only read here. What is not KLU's
// lies in the arena.
crd_status crdi_sparse_init(crdi_sparse* s, crd_arena* a, int32_t n, size_t count,
                            const int32_t* rows, const int32_t* columns);
void crdi_sparse_clear(crdi_sparse* s);
// New values (count), and the factors: with the old pivots if they still serve (then nothing is
// allocated). CRD_E_CONVERGENCE: singular; s->common.singular_col says where.
crd_status crdi_sparse_factor(crdi_sparse* s, const double* values);
void crdi_sparse_solve(crdi_sparse* s, double* b);

// The shortest x that makes |A x - r| smallest, A (rows x columns) of any rank:
//     | I   A^T | | x      |   | 0 |
//     | A   -e  | | lambda | = | r |      repeated with what is left of r.
// This is Eq. (3.20) of Rodriguez 2021 with the penalty 1/e, without forming A^T A, and its
// repetition is Eq. (3.21). A square matrix that is regular is solved as such: what hangs on the
// leakage of a diode (1e-14 S) is small, not redundant.
typedef struct crdi_least {
    int32_t rows, columns;
    size_t count;
    const int32_t *row, *column; // (count)
    double* value;               // (count) as given, scaled by factor
    double* entries;             // of the matrix above
    double *row_scale, *column_scale;
    double *b, *left;           // (rows + columns), (rows)
    double penalty;             // 0: exact
    bool regular;               // the factors in use are those of `direct`
    crdi_sparse matrix, direct; // direct: only if rows = columns
} crdi_least;

// `row` and `column` are kept.
crd_status crdi_least_init(crdi_least* l, crd_arena* a, int32_t rows, int32_t columns, size_t count,
                           const int32_t* row, const int32_t* column);
void crdi_least_clear(crdi_least* l);
// `values` (count). `penalty` > 0: one pass with that factor, nothing scaled (Eq. 3.20).
crd_status crdi_least_factor(crdi_least* l, const double* values, double penalty);
// r (rows) stays, x (columns) is written.
void crdi_least_solve(crdi_least* l, const double* r, double* x);
