// Symmetric matrices with long paths in their graph. The inside of a path, unknowns that only have
// their two neighbours, is eliminated as a chain (chain.h); what paths join, and everything else,
// is `rest`:
//     | C    P | | x |   | b |
//     | P^T  R | | y | = | c |     (R - P^T C^-1 P) y = c - P^T C^-1 b,   x = C^-1 b - (C^-1 P) y
// P has one entry for each end of a path, so that the matrix of the rest gets four entries of each.
#include "circuit/chain.h"
#include "circuit/nodal.h"

#include <math.h>
#include <string.h>

enum { SHORTEST = 24 }; // path: a shorter one that joins something is left to the rest

typedef struct path {
    int32_t first, last; // places
    int32_t end[2];      // numbers in the rest, -1: none
    int32_t reach[2];    // unknowns that feel it, from there
} path;

struct crdi_paths {
    crd_arena arena; // of all, itself too
    int32_t n, inside, rest;
    bool natural;   // all are inside, in the order of the unknowns
    int32_t* order; // (n) unknowns inside, by place, then those of the rest
    path* path;
    int32_t paths;
    size_t count, rest_count; // entries: given; of the rest, the last `paths` times 4 from paths
    int32_t* slot;            // (count) in value; ~slot: in rest_value
    double* value;            // diagonal and off-diagonal (inside), 1 that nobody reads, 2 per path
    double* rest_value;
    double* spike[2]; // (inside) C^-1 P
    double *x, *y;    // (inside), (rest)
    crdi_chain* chain;
    crdi_linear matrix; // of the rest
};

// ---- finding -----------------------------------------------------------------------------------

// The neighbours of an unknown, two at most: the others do not matter
static void meet(int32_t* two, uint8_t* many, int32_t other)
{
    if (two[0] == other || two[1] == other) { return; }
    if (two[0] < 0) {
        two[0] = other;
    } else if (two[1] < 0) {
        two[1] = other;
    } else {
        *many = 1;
    }
}

typedef struct search {
    int32_t* near; // (2 n)
    uint8_t* rest; // (n) 1: more than two neighbours, or not worth it; 2: inside
} search;

static bool is_joined(const search* s, int32_t i)
{
    for (int k = 0; k < 2; k++) {
        const int32_t other = s->near[2 * i + k];
        if (other >= 0 && s->rest[other] == 1) { return true; }
    }
    return false;
}

// From an end of a path to the other one; they are taken into the order
static void nodal_paths_follow(crdi_paths* p, search* s, int32_t from)
{
    const int32_t first = p->inside;
    int32_t before = -1, at = from;
    while (at >= 0) {
        p->order[p->inside++] = at;
        s->rest[at] = 2;
        int32_t next = -1;
        for (int k = 0; k < 2; k++) {
            const int32_t other = s->near[2 * at + k];
            if (other >= 0 && other != before && s->rest[other] == 0) { next = other; }
        }
        before = at;
        at = next;
    }
    const bool joins = is_joined(s, from) || is_joined(s, p->order[p->inside - 1]);
    if (joins && p->inside - first < SHORTEST) {
        for (int32_t k = first; k < p->inside; k++) {
            s->rest[p->order[k]] = 1;
        }
        p->inside = first;
        return;
    }
    path* q = &p->path[p->paths++];
    *q = (path){.first = first, .last = p->inside - 1, .end = {-1, -1}};
}

// An end has at most one neighbour that may be inside. Rings have none: they are opened.
static void find_paths(crdi_paths* p, search* s)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < p->n; i++) {
            if (s->rest[i] != 0) { continue; }
            int free = 0;
            for (int k = 0; k < 2; k++) {
                const int32_t other = s->near[2 * i + k];
                free += other >= 0 && s->rest[other] == 0;
            }
            if (free < 2) {
                nodal_paths_follow(p, s, i);
            } else if (pass == 1) {
                s->rest[i] = 1;
                nodal_paths_follow(p, s, s->near[2 * i]);
            }
        }
    }
}

static crd_status search_paths(crdi_paths* p, search* s, crd_arena* room, const int32_t* rows,
                               const int32_t* columns)
{
    s->near = crdi_arena_new(room, 2 * (size_t)p->n, sizeof *s->near);
    s->rest = crdi_arena_new(room, (size_t)p->n, sizeof *s->rest);
    if (room->failed) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < 2 * (size_t)p->n; k++) {
        s->near[k] = -1;
    }
    for (size_t k = 0; k < p->count; k++) {
        if (rows[k] != columns[k]) { meet(s->near + 2 * rows[k], &s->rest[rows[k]], columns[k]); }
    }
    find_paths(p, s);
    p->rest = 0;
    for (int32_t i = 0; i < p->n; i++) {
        if (s->rest[i] == 1) { p->order[p->inside + p->rest++] = i; }
    }
    return CRD_OK;
}

// ---- entries -----------------------------------------------------------------------------------

static int32_t path_of(const crdi_paths* p, int32_t place)
{
    int32_t low = 0, high = p->paths - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (p->path[middle].first <= place) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

// Where an entry between places goes; `rest` counts those of the rest, whose places are told.
static int32_t nodal_paths_slot_of(crdi_paths* p, int32_t i, int32_t j, int32_t* rest, int32_t* row,
                                   int32_t* column)
{
    const int32_t n = p->inside;
    if (i >= n && j >= n) {
        row[*rest] = i - n;
        column[*rest] = j - n;
        return ~(*rest)++;
    }
    if (i >= n || (j < n && i < j)) { return 2 * n; } // the other triangle
    if (j < n) { return i == j ? i : n + j; }
    path* q = &p->path[path_of(p, i)];
    const int32_t number = (int32_t)(q - p->path);
    const int side = i == q->last && !(i == q->first && q->end[0] < 0);
    q->end[side] = j - n;
    return 2 * n + 1 + 2 * number + side;
}

static crd_status place_entries(crdi_paths* p, crd_arena* room, const int32_t* rows,
                                const int32_t* columns)
{
    const size_t most = p->rest > 0 ? p->count + 4 * (size_t)p->paths : 0;
    int32_t* at = crdi_arena_new(room, (size_t)p->n + 2 * most, sizeof *at);
    p->slot = crdi_arena_new(&p->arena, p->count, sizeof *p->slot);
    if (!at || !p->slot) { return CRD_E_MEMORY; }
    int32_t *row = at + p->n, *column = row + most, rest = 0;
    p->natural = p->rest == 0;
    for (int32_t k = 0; k < p->n; k++) {
        at[p->order[k]] = k;
        p->natural = p->natural && p->order[k] == k;
    }
    for (size_t k = 0; k < p->count; k++) {
        p->slot[k] = nodal_paths_slot_of(p, at[rows[k]], at[columns[k]], &rest, row, column);
    }
    for (int32_t k = 0; k < p->paths && p->rest > 0; k++) {
        for (int e = 0; e < 4; e++) { // ends that are not there: an entry of 0 somewhere
            const int32_t i = p->path[k].end[e & 1], j = p->path[k].end[e >> 1];
            row[rest] = i < 0 || j < 0 ? 0 : i;
            column[rest++] = i < 0 || j < 0 ? 0 : j;
        }
    }
    p->rest_count = (size_t)rest;
    p->rest_value = crdi_arena_new(&p->arena, p->rest_count, sizeof *p->rest_value);
    if (p->rest == 0 || !p->rest_value) { return crdi_arena_status(&p->arena); }
    return crdi_linear_init(&p->matrix, &p->arena, p->rest, true, false, p->rest_count, row,
                            column);
}

static crd_status nodal_paths_make_room(crdi_paths* p)
{
    crd_arena* a = &p->arena;
    const size_t n = (size_t)p->inside;
    p->value = crdi_arena_new(a, 2 * n + 1 + 2 * (size_t)p->paths, sizeof *p->value);
    p->x = crdi_arena_new(a, n, sizeof *p->x);
    p->y = crdi_arena_new(a, (size_t)p->rest, sizeof *p->y);
    for (int side = 0; side < 2 && p->rest > 0; side++) {
        p->spike[side] = crdi_arena_new(a, n, sizeof *p->spike[side]);
    }
    return a->failed ? CRD_E_MEMORY : crdi_chain_create(a->ctx, p->inside, &p->chain);
}

crd_status crdi_paths_create(crd_context* ctx, int32_t n, size_t count, const int32_t* rows,
                             const int32_t* columns, crdi_paths** out)
{
    crd_status st = CRD_OK;
    search s = {0};
    crd_arena arena, room;
    crd_arena_init(&arena, ctx);
    crd_arena_init(&room, ctx);
    *out = NULL;
    crdi_paths* p = crdi_arena_new(&arena, 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    *p = (crdi_paths){.arena = arena, .n = n, .count = count};
    p->order = crdi_arena_new(&p->arena, (size_t)n, sizeof *p->order);
    p->path = crdi_arena_new(&p->arena, (size_t)n, sizeof *p->path);
    CRD_TRY(crdi_arena_status(&p->arena));
    CRD_TRY(search_paths(p, &s, &room, rows, columns));
    if (p->inside < n - n / 4) { goto fail; } // not worth it
    CRD_TRY(place_entries(p, &room, rows, columns));
    CRD_TRY(nodal_paths_make_room(p));
    *out = p;
    p = NULL;
fail:
    crd_arena_clear(&room);
    crdi_paths_destroy(p);
    return st;
}

void crdi_paths_destroy(crdi_paths* p)
{
    if (!p) { return; }
    crdi_linear_clear(&p->matrix);
    crdi_chain_destroy(p->chain);
    crd_arena arena = p->arena;
    crd_arena_clear(&arena);
}

// ---- factors and solutions ---------------------------------------------------------------------

// C^-1 P, as far as one feels it; what it takes from the rest.
static void make_spikes(crdi_paths* p)
{
    const double* link = p->value + 2 * (size_t)p->inside + 1;
    double* to = p->rest_value + p->rest_count - 4 * (size_t)p->paths;
    for (int side = 0; side < 2; side++) {
        double* x = p->spike[side];
        memset(x, 0, (size_t)p->inside * sizeof *x);
        for (int32_t k = 0; k < p->paths; k++) {
            x[side == 0 ? p->path[k].first : p->path[k].last] = link[2 * k + side];
        }
        crdi_chain_solve(p->chain, x);
        for (int32_t k = 0; k < p->paths; k++) {
            path* q = &p->path[k];
            int32_t reach = q->last - q->first + 1;
            const int32_t begin = side == 0 ? q->first : q->last, step = side == 0 ? 1 : -1;
            while (reach > 0 && fabs(x[begin + step * (reach - 1)]) < 1e-19) {
                reach--;
            }
            q->reach[side] = reach;
        }
    }
    for (int32_t k = 0; k < p->paths; k++) {
        const path* q = &p->path[k];
        for (int e = 0; e < 4; e++) {
            const int i = e & 1, j = e >> 1;
            const bool there = q->end[i] >= 0 && q->end[j] >= 0;
            const double x = p->spike[j][i == 0 ? q->first : q->last];
            to[4 * k + e] = there ? -link[2 * k + i] * x : 0;
        }
    }
}

crd_status crdi_paths_factor(crdi_paths* p, const double* values)
{
    const size_t n = (size_t)p->inside;
    memset(p->value, 0, (2 * n + 1 + 2 * (size_t)p->paths) * sizeof *p->value);
    memset(p->rest_value, 0, p->rest_count * sizeof *p->rest_value);
    for (size_t k = 0; k < p->count; k++) {
        const int32_t slot = p->slot[k];
        if (slot >= 0) {
            p->value[slot] += values[k];
        } else {
            p->rest_value[~slot] += values[k];
        }
    }
    const crd_status st = crdi_chain_factor(p->chain, p->value, p->value + n);
    if (st < 0) { return st == CRD_E_RANGE ? CRD_E_CONVERGENCE : st; }
    if (p->rest == 0) { return CRD_OK; }
    make_spikes(p);
    return crdi_linear_factor(&p->matrix, p->rest_value);
}

static void solve_rest(crdi_paths* p, const double* b)
{
    const double* link = p->value + 2 * (size_t)p->inside + 1;
    double *x = p->x, *y = p->y;
    for (int32_t k = 0; k < p->rest; k++) {
        y[k] = b[p->order[p->inside + k]];
    }
    for (int32_t k = 0; k < p->paths; k++) {
        const path* q = &p->path[k];
        if (q->end[0] >= 0) { y[q->end[0]] -= link[2 * k] * x[q->first]; }
        if (q->end[1] >= 0) { y[q->end[1]] -= link[2 * k + 1] * x[q->last]; }
    }
    crdi_linear_solve(&p->matrix, y);
    for (int32_t k = 0; k < p->paths; k++) {
        const path* q = &p->path[k];
        if (q->end[0] >= 0) {
            const double v = y[q->end[0]], *spike = p->spike[0];
            for (int32_t j = q->first; j < q->first + q->reach[0]; j++) {
                x[j] -= spike[j] * v;
            }
        }
        if (q->end[1] >= 0) {
            const double v = y[q->end[1]], *spike = p->spike[1];
            for (int32_t j = q->last + 1 - q->reach[1]; j <= q->last; j++) {
                x[j] -= spike[j] * v;
            }
        }
    }
}

void crdi_paths_solve(crdi_paths* p, double* b)
{
    if (p->natural) {
        crdi_chain_solve(p->chain, b);
        return;
    }
    for (int32_t k = 0; k < p->inside; k++) {
        p->x[k] = b[p->order[k]];
    }
    crdi_chain_solve(p->chain, p->x);
    if (p->rest > 0) { solve_rest(p, b); }
    for (int32_t k = 0; k < p->inside; k++) {
        b[p->order[k]] = p->x[k];
    }
    for (int32_t k = 0; k < p->rest; k++) {
        b[p->order[p->inside + k]] = p->y[k];
    }
}

int64_t crdi_paths_inside(const crdi_paths* p)
{
    return p->inside;
}

int64_t crdi_paths_nonzeros(const crdi_paths* p)
{
    return 3 * (int64_t)p->inside - 2 + (p->rest > 0 ? crdi_linear_nonzeros(&p->matrix) : 0);
}
