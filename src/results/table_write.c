// A table as a result file: its rows through a recorder, column by column of the same times.
#include "results/table.h"

#include <string.h>

typedef struct written {
    const double* values;
    int word;
    bool real;
} written;

typedef struct rasters {
    crd_raster* list;
    const double** time; // of each
    int64_t* rows;
    int count;
} rasters;

static int find_raster(rasters* r, const crd_table_column* c)
{
    for (int i = 0; i < r->count; i++) {
        if (r->time[i] == c->time && r->rows[i] == c->rows) { return i; }
    }
    r->time[r->count] = c->time;
    r->rows[r->count] = c->rows;
    r->list[r->count] = (crd_raster){.name = ""};
    return r->count++;
}

// Rows of one raster; false: writing has failed, which finish tells.
static bool write_raster(crd_recorder* r, const rasters* of, int raster, const written* columns,
                         int count)
{
    for (int64_t i = 0; i < of->rows[raster]; i++) {
        crd_word* row = crd_recorder_begin_raster(r, raster);
        if (!row) { return false; }
        row[0].real = of->time[raster][i];
        for (int k = 0; k < count; k++) {
            crd_word* at = &row[columns[k].word];
            if (columns[k].real) {
                at->real = columns[k].values[i];
            } else {
                at->integer = (int64_t)columns[k].values[i];
            }
        }
        crd_recorder_end_raster(r, raster);
    }
    return true;
}

crd_status crd_table_write(crd_context* ctx, const crd_table* t, const char* path,
                           const crd_attachment* attachments, int attachment_count)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)t->column_count;
    crd_recorder* recorder = NULL;
    crd_arena room;
    crd_arena_init(&room, ctx);
    crd_column* columns = crdi_arena_new(&room, n + 1, sizeof *columns);
    written* of = crdi_arena_new(&room, n + 1, sizeof *of);
    rasters r = {.list = crdi_arena_new(&room, n + 1, sizeof *r.list),
                 .time = crdi_arena_new(&room, n + 1, sizeof *r.time),
                 .rows = crdi_arena_new(&room, n + 1, sizeof *r.rows)};
    if (room.failed) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    (void)find_raster(&r, &(crd_table_column){.time = t->time, .rows = t->rows});
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        const crd_table_column* c = &t->columns[i];
        if (c->texts || (!c->values && c->rows)) { continue; } // texts
        const crd_kind kind = crd_type_kind(c->type);
        columns[count] = (crd_column){.name = c->name,
                                      .unit = c->unit,
                                      .description = "",
                                      .type = kind == CRD_BYTES ? CRD_FLOAT64 : c->type,
                                      .raster = find_raster(&r, c)};
        of[count++] = (written){.values = c->values, .real = kind != CRD_INTEGER};
    }
    CRD_TRY(crd_recorder_create(ctx,
                                &(crd_recorder_options){.path = path,
                                                        .columns = columns,
                                                        .column_count = count,
                                                        .rasters = r.list,
                                                        .raster_count = r.count,
                                                        .attachments = attachments,
                                                        .attachment_count = attachment_count},
                                &recorder));
    written* some = crdi_arena_new(&room, n + 1, sizeof *some);
    if (!some) { st = CRD_E_MEMORY; }
    for (int k = 0; st >= 0 && k < r.count; k++) {
        int some_count = 0;
        for (int i = 0; i < count; i++) {
            if (columns[i].raster != k) { continue; }
            some[some_count] = of[i];
            some[some_count++].word = crd_recorder_word(recorder, i);
        }
        if (!write_raster(recorder, &r, k, some, some_count)) { break; }
    }
    if (st >= 0) { st = crd_recorder_finish(recorder); }
fail:
    crd_recorder_destroy(recorder);
    crd_arena_clear(&room);
    return st;
}
