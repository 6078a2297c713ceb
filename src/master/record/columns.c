// The record in memory: columns of numbers, besides a file or in its place. Room for rows is made
// between steps, never in one.
//
// A run that goes back to a saved state drops the rows behind it. A state of another branch may
// know rows that were written over since: `intact` says how many of its rows are still its own.
#include "master/master.h"

#include <math.h>
#include <string.h>

typedef struct column_raster {
    double* time;
    double** values; // (columns of the raster), NULL: a text
    int64_t count;
    size_t room;
    int64_t begun; // rows when this branch began
} column_raster;

struct crdi_columns {
    crd_table table;
    crd_table_column* columns; // like record.signals
    int* place;                // (signals) of the column among those of its raster
    column_raster* rasters;    // like record.rasters
    int64_t branch;            // counts what was restored
    crd_arena arena;           // not that of the run: the record does not go back with it
};

enum { SLICE = 1 << 16 }; // ticks that room is made for at once

crd_status crdi_columns_open(crd_master* m)
{
    if (!m->plan->opt.columns) { return CRD_OK; }
    const size_t n = (size_t)m->record.signal_count, rasters = (size_t)m->record.raster_count;
    crdi_columns* c = crdi_new(m->ctx, sizeof *c);
    m->record.columns = c;
    if (!c) { return CRD_E_MEMORY; }
    crd_arena_init(&c->arena, m->ctx);
    c->columns = crdi_arena_new(&c->arena, n, sizeof *c->columns);
    c->place = crdi_arena_new(&c->arena, n, sizeof *c->place);
    c->rasters = crdi_arena_new(&c->arena, rasters, sizeof *c->rasters);
    if (!c->columns || !c->place || !c->rasters) { return CRD_E_MEMORY; }
    c->table = (crd_table){.path = "", .column_count = (int)n, .columns = c->columns};
    for (size_t i = 0; i < rasters; i++) {
        const crdi_raster* r = &m->record.rasters[i];
        c->rasters[i].values =
            crdi_arena_new(&c->arena, (size_t)r->value_count, sizeof *c->rasters[i].values);
        if (!c->rasters[i].values) { return CRD_E_MEMORY; }
        for (int k = 0; k < r->value_count; k++) {
            const int signal = m->record.values[r->value_first + k].signal;
            const crdi_signal* s = &m->record.signals[signal];
            const crd_variable* v =
                s->offer ? NULL : &m->plan->members[s->member].unit->info.variables[s->variable];
            c->place[signal] = k;
            c->columns[signal] = (crd_table_column){.name = s->name,
                                                    .unit = v ? v->unit : s->offer->unit,
                                                    .type = v ? (crd_type)v->type : s->offer->type};
        }
    }
    return crdi_columns_reserve(m, 0);
}

crd_status crdi_columns_reserve(crd_master* m, int64_t ticks)
{
    crdi_columns* c = m->record.columns;
    for (int i = 0; c && i < m->record.raster_count; i++) {
        const crdi_raster* r = &m->record.rasters[i];
        column_raster* p = &c->rasters[i];
        const size_t need = (size_t)(p->count + ticks / r->ticks + 3);
        if (need <= p->room) { continue; }
        const size_t before = p->room;
        size_t room = 0;
        for (int k = -1; k < r->value_count; k++) {
            if (k >= 0 && m->record.values[r->value_first + k].kind == CRD_BYTES) { continue; }
            double** at = k < 0 ? &p->time : &p->values[k];
            room = before;
            double* grown = crdi_grow(m->ctx, *at, &room, need, sizeof **at);
            if (!grown) { return CRD_E_MEMORY; }
            *at = grown;
        }
        p->room = room;
    }
    return CRD_OK;
}

int64_t crdi_columns_slice(const crd_master* m, int64_t ticks)
{
    return m->record.columns && ticks > SLICE ? SLICE : ticks;
}

void crdi_columns_row(crd_master* m, int raster)
{
    const crdi_raster* r = &m->record.rasters[raster];
    column_raster* p = &m->record.columns->rasters[raster];
    const int64_t at = p->count++;
    p->time[at] = crd_master_time(m);
    for (int i = 0; i < r->value_count; i++) {
        const crdi_recorded* v = &m->record.values[r->value_first + i];
        if (v->kind == CRD_REAL) {
            p->values[i][at] = *(const double*)v->from;
        } else if (v->kind == CRD_INTEGER) {
            p->values[i][at] = (double)*(const int64_t*)v->from;
        }
    }
}

int64_t crdi_columns_rows(const crd_master* m)
{
    return m->record.columns ? m->record.columns->rasters[0].count : 0;
}

const crd_table* crd_master_table(crd_master* m)
{
    crdi_columns* c = m->record.columns;
    if (!c) { return NULL; }
    for (int i = 0; i < m->record.signal_count; i++) {
        const column_raster* p = &c->rasters[m->record.extras[m->record.signals[i].member].raster];
        c->columns[i].values = p->values[c->place[i]];
        c->columns[i].time = p->time;
        c->columns[i].rows = p->count;
    }
    c->table.time = c->rasters[0].time;
    c->table.rows = c->rasters[0].count;
    return &c->table;
}

// ---- going back --------------------------------------------------------------------------------

int crdi_columns_count(const crd_master* m)
{
    return m->record.columns ? m->record.raster_count : 0;
}

void crdi_columns_save(const crd_master* m, crdi_columns_mark* out)
{
    for (int i = 0; i < crdi_columns_count(m); i++) {
        const column_raster* p = &m->record.columns->rasters[i];
        out[i] = (crdi_columns_mark){p->count, p->count, m->record.columns->branch};
    }
}

void crdi_columns_branch(const crd_master* m, crdi_columns_mark* of)
{
    for (int i = 0; i < crdi_columns_count(m); i++) {
        const column_raster* p = &m->record.columns->rasters[i];
        if (of[i].branch != m->record.columns->branch && p->count > p->begun &&
            of[i].intact > p->begun) {
            of[i].intact = p->begun;
        }
    }
}

void crdi_columns_restore(crd_master* m, const crdi_columns_mark* to)
{
    for (int i = 0; i < crdi_columns_count(m); i++) {
        column_raster* p = &m->record.columns->rasters[i];
        p->count = p->begun = to ? to[i].intact : 0;
    }
    if (m->record.columns) { m->record.columns->branch++; }
}

void crdi_columns_free(crd_master* m)
{
    crdi_columns* c = m->record.columns;
    if (!c) { return; }
    for (int i = 0; c->rasters && i < m->record.raster_count; i++) {
        crd_free(m->ctx, c->rasters[i].time);
        for (int k = 0; c->rasters[i].values && k < m->record.rasters[i].value_count; k++) {
            crd_free(m->ctx, c->rasters[i].values[k]);
        }
    }
    crd_arena_clear(&c->arena);
    crd_free(m->ctx, c);
    m->record.columns = NULL;
}
