// Tables in memory: made, filled from recordings, looked into. CSV is read next door.
#include "results/table.h"

#include "results/recording.h"
#include "shared/base_path.h"
#include "shared/base_progress.h"
#include "shared/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

crd_status crdi_table_check_size(crd_context* ctx, const char* path, double values)
{
    const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (have > 0 && values * sizeof(double) > have) {
        return crdi_fail(ctx, CRD_E_MEMORY,
                         "%s: needs %.3g GB in memory, and this machine has %.3g GB", path,
                         1e-9 * values * sizeof(double), 1e-9 * have);
    }
    return CRD_OK;
}

// ---- from a recording --------------------------------------------------------------------------

// Room for the columns of a group, its times first.
static crd_status results_table_make_columns(crdi_table* t, const crd_recording_info* info,
                                             int group, const char* const* names, double** time)
{
    const crd_group_info* g = &info->groups[group];
    const size_t rows = (size_t)g->rows;
    *time = crdi_arena_new(&t->arena, rows, sizeof **time);
    if (!*time) { return CRD_E_MEMORY; }
    if (group == 0) {
        t->view.time = *time;
        t->view.rows = g->rows;
    }
    for (int i = 0; i < g->signal_count; i++) {
        const crd_signal_info* s = &info->signals[g->first_signal + i];
        crd_table_column c = {.name = crdi_arena_text(&t->arena, names[g->first_signal + i],
                                                      strlen(names[g->first_signal + i])),
                              .unit = crdi_arena_text(&t->arena, s->unit, strlen(s->unit)),
                              .values = crdi_arena_new(&t->arena, rows, sizeof(double)),
                              .time = *time,
                              .rows = g->rows,
                              .type = s->type};
        if (s->type == CRD_STRING) { c.texts = crdi_arena_new(&t->arena, rows, sizeof(char*)); }
        if (!c.name || !c.unit || !c.values || (s->type == CRD_STRING && !c.texts)) {
            return CRD_E_MEMORY;
        }
        const crd_status st = crdi_table_add(t, &c);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status copy_block(crdi_table* t, const crd_block* b, int first, int count, double* time)
{
    const size_t rows = (size_t)b->rows;
    memcpy(time + b->first, b->time, rows * sizeof *time);
    for (int i = 0; i < count; i++) {
        const crd_table_column* c = &t->columns[first + i];
        memcpy((double*)c->values + b->first, b->values[i], rows * sizeof(double));
        if (!c->texts) { continue; }
        const char** texts = (const char**)c->texts + b->first;
        for (size_t k = 0; k < rows; k++) {
            const char* text = b->texts[i][k];
            const char* before = k ? texts[k - 1] : NULL; // texts stay for long
            if (before && strcmp(before, text) == 0) {
                texts[k] = before;
                continue;
            }
            // Few bytes of a file can stand for very many texts.
            const size_t length = strlen(text);
            const double words = (double)(t->arena.used + length) / sizeof(double);
            if (length > 64 && crdi_table_check_size(t->ctx, t->view.path, words) < 0) {
                return CRD_E_MEMORY;
            }
            texts[k] = crdi_arena_text(&t->arena, text, length);
            if (!texts[k]) { return CRD_E_MEMORY; }
        }
    }
    return CRD_OK;
}

static crd_status results_table_read_group(crdi_table* t, crd_recording* r, int group,
                                           const char* const* names)
{
    crd_status st = CRD_OK;
    const crd_recording_info* info = crd_recording_describe(r);
    const crd_group_info* g = &info->groups[group];
    double* time = NULL;
    char part[64];
    crd_cursor* cursor = NULL;
    int* signals = crdi_new_array(t->ctx, (size_t)g->signal_count, sizeof *signals);
    if (!signals) { return CRD_E_MEMORY; }
    for (int i = 0; i < g->signal_count; i++) {
        signals[i] = g->first_signal + i;
    }
    CRD_TRY(results_table_make_columns(t, info, group, names, &time));
    CRD_TRY(crd_cursor_open(r, group, signals, g->signal_count, &cursor));
    int64_t rows = 0;
    snprintf(part, sizeof part, "reading %.50s", info->path + crdi_folder_length(info->path));
    for (;;) {
        crd_block b;
        CRD_TRY(crd_cursor_next(cursor, &b));
        if (b.rows == 0) { break; }
        CRD_TRY(copy_block(t, &b, g->first_signal, g->signal_count, time));
        rows += b.rows;
        crdi_progress(t->ctx, part, (double)rows, (double)g->rows, "rows");
    }
    if (group == 0) { t->view.rows = rows; } // fewer where an unfinished file ends in nothing
    for (int i = 0; i < g->signal_count; i++) {
        t->columns[g->first_signal + i].rows = rows;
    }
fail:
    crd_cursor_close(cursor);
    crd_free(t->ctx, signals);
    return st;
}

static crd_status read_recording(crd_context* ctx, crd_recording* r, crd_table** out)
{
    crd_status st = CRD_OK;
    const crd_recording_info* info = crd_recording_describe(r);
    crdi_table* t = NULL;
    double values = 0;
    for (int i = 0; i < info->group_count; i++) {
        values += (double)info->groups[i].rows * (1.0 + info->groups[i].signal_count);
    }
    CRD_TRY(crdi_table_check_size(ctx, info->path, values));
    CRD_TRY(crdi_table_create(ctx, info->path, info->signal_count, &t));
    const char** names = crdi_arena_new(&t->arena, (size_t)info->signal_count + 1, sizeof *names);
    CRD_TRY(names ? crdi_signal_names(&t->arena, info, names) : CRD_E_MEMORY);
    for (int i = 0; i < info->group_count; i++) {
        CRD_TRY(results_table_read_group(t, r, i, names));
    }
    *out = &t->view;
    return CRD_OK;
fail:
    if (t) { crd_table_destroy(&t->view); }
    return st;
}

crd_status crd_table_read(crd_context* ctx, const char* path, crd_table** out)
{
    int fd = -1;
    crdi_file_kind kind = CRDI_FILE_CSV;
    crd_status st = crdi_recording_sniff(ctx, path, &fd, &kind);
    if (st < 0) { return st; }
    crd_recording* r = NULL;
    if (kind == CRDI_FILE_CSV) {
        st = crdi_table_read_csv(ctx, fd, path, out);
        close(fd);
        return st;
    }
    if (kind == CRDI_FILE_MDF) {
        st = crdi_mdf_open(ctx, path, fd, &r);
        if (st == CRD_OK) { st = read_recording(ctx, r, out); }
    } else {
        close(fd);
        st = crdi_mat_open(ctx, path, &r);
        if (st == CRD_OK) { // it is a table already
            *out = ((crdi_memory_recording*)r)->table;
            ((crdi_memory_recording*)r)->table = NULL;
        }
    }
    crd_recording_close(r);
    return st;
}

// ---- making ------------------------------------------------------------------------------------

crd_status crdi_table_create(crd_context* ctx, const char* path, int columns, crdi_table** out)
{
    crdi_table* t = crdi_new(ctx, sizeof *t);
    if (!t) { return CRD_E_MEMORY; }
    t->ctx = ctx;
    crd_arena_init(&t->arena, ctx);
    crdi_map_init(&t->names, ctx);
    t->view.names = &t->names;
    t->view.path = crdi_arena_text(&t->arena, path, strlen(path));
    if (t->view.path && columns) {
        t->columns = crdi_arena_new(&t->arena, (size_t)columns, sizeof *t->columns);
        t->view.columns = t->columns;
    }
    if (!t->view.path || (columns && !t->columns)) {
        crd_table_destroy(&t->view);
        return CRD_E_MEMORY;
    }
    *out = t;
    return CRD_OK;
}

crd_status crdi_table_add(crdi_table* t, const crd_table_column* column)
{
    t->columns[t->view.column_count] = *column;
    return crdi_map_add(&t->names, column->name, t->view.column_count++, NULL);
}

void crd_table_destroy(crd_table* view)
{
    crdi_table* t = (crdi_table*)view;
    if (!t) { return; }
    crd_free(t->ctx, t->values);
    crd_free(t->ctx, t->texts);
    crd_free(t->ctx, t->text_rows);
    crdi_map_clear(&t->names);
    crd_arena_clear(&t->arena);
    crd_free(t->ctx, t);
}

char* crdi_table_utf8(crd_arena* arena, char* text)
{
    size_t left = strlen(text), n = 0;
    for (const char* p = text; left > 0 && (n = crdi_utf8_length(p, left)) > 0; left -= n) {
        p += n;
    }
    if (left == 0) { return text; }
    char* wide = crdi_arena_new(arena, 2 * strlen(text) + 1, 1);
    char* to = wide;
    for (const unsigned char* p = (const unsigned char*)text; wide && *p; p++) {
        if (*p >= 0x80) { *to++ = (char)(0xC0 | *p >> 6); }
        *to++ = (char)(*p < 0x80 ? *p : 0x80 | (*p & 0x3F));
    }
    return wide;
}

// ---- access ------------------------------------------------------------------------------------

int crd_table_find(const crd_table* view, const char* name)
{
    if (view->names) { return crdi_map_find(view->names, name); }
    int i = 0;
    while (i < view->column_count && strcmp(view->columns[i].name, name) != 0) {
        i++;
    }
    return i < view->column_count ? i : -1;
}

// Last row at or before `time`, -1 if there is none
static int64_t row_at(const crd_table_column* c, double time, int64_t hint)
{
    int64_t low = -1, high = c->rows; // time[low] <= time < time[high]
    if (hint >= 0 && hint < c->rows && c->time[hint] <= time) {
        low = hint;
        for (int i = 0; i < 4; i++) {
            if (low + 1 == c->rows || c->time[low + 1] > time) { return low; }
            low++;
        }
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (c->time[middle] <= time) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

double crd_table_value(const crd_table* t, int column, double time, bool linear, int64_t* hint)
{
    const crd_table_column* c = &t->columns[column];
    if (c->rows == 0) { return (double)NAN; }
    const double* v = c->values;
    const int64_t i = row_at(c, time, *hint);
    if (i < 0) { return v[0]; }
    *hint = i;
    if (!linear || i + 1 == c->rows || c->time[i] == time || v[i] == v[i + 1]) { return v[i]; }
    const double part = (time - c->time[i]) / (c->time[i + 1] - c->time[i]);
    return v[i] + part * (v[i + 1] - v[i]);
}
