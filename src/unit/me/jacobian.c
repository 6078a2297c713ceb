// Where the Jacobian df/dx has entries, as ModelStructure says it, and columns in groups.
#include <math.h>
#include <string.h>

#include "unit/me/me_unit.h"

// From so many states on, and up to this part of entries, a sparse factorization is the faster one.
enum { SPARSE_STATES = 32, SPARSE_PART = 4 };
// More work than this is not spent on groups.
static const double MOST_WORK = 2e8;

bool crdi_me_is_sparse(const crdi_me_unit* u)
{
    const crdi_me_pattern* p = &u->pattern;
    return p->known && u->nx >= SPARSE_STATES &&
           (double)p->first[u->nx] * SPARSE_PART <= (double)u->nx * u->nx;
}

// Blocks of states: a scalar, or the elements of an array.
typedef struct blocks {
    int32_t count;
    const crd_dependencies* d;
    int32_t* at;   // (count + 1) first state of a block
    int32_t* of;   // (variables) block of a state's variable, -1
    int32_t* mark; // (count) block was met in this row
} blocks;

static crd_status number_blocks(crdi_me_unit* u, crd_arena* a, blocks* b)
{
    const crd_unit* unit = &u->base.base;
    const crd_fmu_model_exchange* x = &u->base.d->exchange;
    b->d = &x->derivatives;
    b->count = x->derivatives.count;
    b->at = crdi_arena_new(a, (size_t)b->count + 1, sizeof *b->at);
    b->of = crdi_arena_new(a, (size_t)unit->info.variable_count, sizeof *b->of);
    b->mark = crdi_arena_new(a, (size_t)b->count, sizeof *b->mark);
    if (!b->at || !b->of || !b->mark) { return CRD_E_MEMORY; }
    memset(b->of, 0xff, (size_t)unit->info.variable_count * sizeof *b->of);
    for (int32_t r = 0; r < b->count; r++) {
        b->at[r + 1] = b->at[r] + (int32_t)unit->info.variables[b->d->unknown[r]].size;
        b->of[crdi_unit_canonical(unit, x->states[r])] = r;
        b->mark[r] = -1;
    }
    return CRD_OK;
}

// Calls `put` for each block that block `row` depends on; itself is the first.
typedef void put_block(crdi_me_pattern* p, const blocks* b, int32_t row, int32_t column);

static void visit(const crd_unit* unit, crdi_me_pattern* p, blocks* b, int32_t row, put_block* put)
{
    b->mark[row] = row;
    put(p, b, row, row);
    if (b->d->on_all[row]) {
        for (int32_t c = 0; c < b->count; c++) {
            if (c != row) { put(p, b, row, c); }
        }
        return;
    }
    for (int32_t k = b->d->first[row]; k < b->d->first[row + 1]; k++) {
        const int32_t c = b->of[crdi_unit_canonical(unit, b->d->known[k])];
        if (c < 0 || b->mark[c] == row) { continue; } // inputs, and what came before
        b->mark[c] = row;
        put(p, b, row, c);
    }
}

// Entries of a column are counted one place to the right, so that sums become beginnings.
static void count_block(crdi_me_pattern* p, const blocks* b, int32_t row, int32_t column)
{
    for (int32_t j = b->at[column]; j < b->at[column + 1]; j++) {
        p->first[j + 1] += b->at[row + 1] - b->at[row];
    }
}

// Rows come in ascending order, hence stand so in each column. `columns` counts what is there.
static void fill_block(crdi_me_pattern* p, const blocks* b, int32_t row, int32_t column)
{
    for (int32_t j = b->at[column]; j < b->at[column + 1]; j++) {
        for (int32_t i = b->at[row]; i < b->at[row + 1]; i++) {
            p->rows[p->first[j] + p->columns[j]++] = i;
        }
    }
}

// Greedy colouring: a column gets the first group that none of its rows has met.
static crd_status group_columns(crdi_me_unit* u, crd_arena* a)
{
    crdi_me_pattern* p = &u->pattern;
    const size_t n = (size_t)u->nx;
    const size_t entries = (size_t)p->first[n];
    int32_t* row_first = crdi_arena_new(a, n + 1, sizeof *row_first);
    int32_t* row_columns = crdi_arena_new(a, entries, sizeof *row_columns);
    int32_t* filled = crdi_arena_new(a, n, sizeof *filled);
    int32_t* group = crdi_arena_new(a, n, sizeof *group);
    int32_t* taken = crdi_arena_new(a, n + 1, sizeof *taken); // by which column, + 1
    if (!row_first || !row_columns || !filled || !group || !taken) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < entries; k++) {
        row_first[p->rows[k] + 1]++;
    }
    double work = 0;
    for (size_t i = 0; i < n; i++) {
        work += (double)row_first[i + 1] * row_first[i + 1];
        row_first[i + 1] += row_first[i];
    }
    for (int32_t j = 0; j < u->nx; j++) {
        for (int32_t k = p->first[j]; k < p->first[j + 1]; k++) {
            const int32_t i = p->rows[k];
            row_columns[row_first[i] + filled[i]++] = j;
        }
    }
    for (int32_t j = 0; j < u->nx; j++) {
        group[j] = j;
        if (work > MOST_WORK) { continue; }
        for (int32_t k = p->first[j]; k < p->first[j + 1]; k++) {
            const int32_t i = p->rows[k];
            for (int32_t c = row_first[i]; c < row_first[i + 1] && row_columns[c] < j; c++) {
                taken[group[row_columns[c]]] = j + 1;
            }
        }
        for (group[j] = 0; taken[group[j]] == j + 1; group[j]++) {}
    }
    for (int32_t j = 0; j < u->nx; j++) {
        p->group_count = group[j] >= p->group_count ? group[j] + 1 : p->group_count;
        p->group_first[group[j] + 1]++;
    }
    memset(filled, 0, n * sizeof *filled);
    for (int32_t g = 0; g < p->group_count; g++) {
        p->group_first[g + 1] += p->group_first[g];
    }
    for (int32_t j = 0; j < u->nx; j++) {
        p->columns[p->group_first[group[j]] + filled[group[j]]++] = j;
    }
    return CRD_OK;
}

// Every entry, each column for itself.
static void all_of_it(crdi_me_unit* u)
{
    crdi_me_pattern* p = &u->pattern;
    p->known = false;
    p->group_count = u->nx;
    for (int32_t j = 0; j < u->nx; j++) {
        p->group_first[j] = p->columns[j] = j;
    }
    p->group_first[u->nx] = u->nx;
}

static bool all_states_said(const crd_fmu_model_exchange* x)
{
    if (!x->derivatives.count && x->state_count) { return false; } // FMI 1
    for (int32_t r = 0; r < x->derivatives.count; r++) {
        if (x->states[r] < 0) { return false; }
    }
    return true;
}

// Beginnings of the columns. False if they would be all but full, or too many entries to list: then
// the structure does not help.
static bool measure_columns(const crdi_me_unit* u, crdi_me_pattern* p, blocks* b)
{
    const double n = u->nx, most = fmin(0.9 * n * n, 1e8);
    double entries = 0;
    for (int32_t r = 0; r < b->count; r++) {
        if (b->d->on_all[r]) { entries += n * (b->at[r + 1] - b->at[r]); }
    }
    if (entries > most) { return false; }
    for (int32_t r = 0; r < b->count; r++) {
        visit(&u->base.base, p, b, r, count_block);
    }
    entries = 0;
    for (int32_t j = 0; j < u->nx; j++) {
        entries += p->first[j + 1]; // lengths until they are summed up
    }
    if (entries > most) { return false; }
    for (int32_t j = 0; j < u->nx; j++) {
        p->first[j + 1] += p->first[j];
    }
    return true;
}

static crd_status list_rows(crdi_me_unit* u, blocks* b)
{
    crdi_me_pattern* p = &u->pattern;
    const size_t n = (size_t)u->nx;
    p->rows = crdi_arena_new(&u->memory, (size_t)p->first[n], sizeof *p->rows);
    if (!p->rows) { return CRD_E_MEMORY; }
    memset(b->mark, 0xff, (size_t)b->count * sizeof *b->mark);
    for (int32_t r = 0; r < b->count; r++) {
        visit(&u->base.base, p, b, r, fill_block);
    }
    memset(p->columns, 0, n * sizeof *p->columns);
    return CRD_OK;
}

crd_status crdi_me_find_pattern(crdi_me_unit* u)
{
    crd_status st = CRD_OK;
    crdi_me_pattern* p = &u->pattern;
    const size_t n = (size_t)u->nx;
    blocks b = {0};
    crd_arena scratch;
    crd_arena_init(&scratch, u->base.base.ctx);
    *p = (crdi_me_pattern){.known = all_states_said(&u->base.d->exchange)};
    p->first = crdi_arena_new(&u->memory, n + 1, sizeof *p->first);
    p->columns = crdi_arena_new(&u->memory, n, sizeof *p->columns);
    p->group_first = crdi_arena_new(&u->memory, n + 1, sizeof *p->group_first);
    if (!p->first || !p->columns || !p->group_first) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    if (p->known) {
        CRD_TRY(number_blocks(u, &scratch, &b));
        p->known = measure_columns(u, p, &b);
    }
    if (p->known) {
        CRD_TRY(list_rows(u, &b));
        CRD_TRY(group_columns(u, &scratch));
    } else {
        all_of_it(u);
    }
fail:
    crd_arena_clear(&scratch);
    return st;
}
