// Recordings of any format: which one it is, and those that are in memory as a whole.
#include "results/recording.h"

#include "results/table.h"
#include "shared/results.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- which format ------------------------------------------------------------------------------

static crdi_file_kind file_kind_of(const char* path, const char* head, size_t length)
{
    static const char hdf[] = "\x89HDF\r\n\x1a\n";
    if (length >= 8 && (memcmp(head, "MDF ", 4) == 0 || memcmp(head, "UnFinMF ", 8) == 0)) {
        return CRDI_FILE_MDF;
    }
    if (length >= 8 && (memcmp(head, "MATLAB ", 7) == 0 || memcmp(head, hdf, 8) == 0)) {
        return CRDI_FILE_MAT;
    }
    if (crdi_ends_with(path, ".mat")) { return CRDI_FILE_MAT; } // level 4 has no mark of its own
    // A file of this name with other content: the reader says what it expected.
    return crdi_ends_with(path, ".mf4") || crdi_ends_with(path, ".mdf") ? CRDI_FILE_MDF
                                                                        : CRDI_FILE_CSV;
}

crd_status crdi_recording_sniff(crd_context* ctx, const char* path, int* fd, crdi_file_kind* kind)
{
    const crd_status st =
        crdi_file_open(ctx, path, &(crdi_file_need){.what = "a recording", .pipes = true}, fd);
    if (st < 0) { return st; }
    struct stat info;
    char head[16];
    *kind = CRDI_FILE_CSV;
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode)) { // a pipe cannot be looked at twice
        const ssize_t n = pread(*fd, head, sizeof head, 0);
        *kind = file_kind_of(path, head, n > 0 ? (size_t)n : 0);
    }
    return CRD_OK;
}

// ---- in memory ---------------------------------------------------------------------------------

typedef struct memory_cursor {
    crd_cursor base;
    const double* time;
    int64_t rows, row; // all, the next
    int count;
    const double** values;
    const char* const** texts;
    const double** shown; // from the next row on
    const char* const** shown_texts;
} memory_cursor;

static crd_status memory_attachment(crd_recording* r, int i, char** data, size_t* length)
{
    const crd_attachment* a = &((crdi_memory_recording*)r)->attachments[i];
    char* copy = crdi_new(r->ctx, a->length + 1);
    if (!copy) { return CRD_E_MEMORY; }
    if (a->length) { memcpy(copy, a->data, a->length); }
    *data = copy;
    *length = a->length;
    return CRD_OK;
}

static void memory_cursor_close(crd_cursor* cursor)
{
    memory_cursor* c = (memory_cursor*)cursor;
    crd_free(cursor->recording->ctx, c->values);
    crd_free(cursor->recording->ctx, c->texts);
    crd_free(cursor->recording->ctx, c->shown);
    crd_free(cursor->recording->ctx, c->shown_texts);
    crd_free(cursor->recording->ctx, c);
}

static crd_status memory_cursor_open(crd_recording* r, int group, const int* signals, int count,
                                     crd_cursor** out)
{
    const crd_table* t = ((crdi_memory_recording*)r)->table;
    const crd_group_info* g = &r->info.groups[group];
    memory_cursor* c = crdi_new(r->ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->base.recording = r;
    c->time = g->signal_count ? t->columns[g->first_signal].time : t->time;
    c->rows = g->rows;
    c->values = crdi_new_array(r->ctx, (size_t)count, sizeof *c->values);
    c->texts = crdi_new_array(r->ctx, (size_t)count, sizeof *c->texts);
    c->shown = crdi_new_array(r->ctx, (size_t)count, sizeof *c->shown);
    c->shown_texts = crdi_new_array(r->ctx, (size_t)count, sizeof *c->shown_texts);
    c->count = count;
    if (!c->values || !c->texts || !c->shown || !c->shown_texts) {
        memory_cursor_close(&c->base);
        return CRD_E_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        c->values[i] = t->columns[signals[i]].values;
        c->texts[i] = t->columns[signals[i]].texts;
    }
    *out = &c->base;
    return CRD_OK;
}

static crd_status memory_cursor_next(crd_cursor* cursor, crd_block* out)
{
    enum { MOST = 65536 };
    memory_cursor* c = (memory_cursor*)cursor;
    const int64_t rest = c->rows - c->row, n = rest < MOST ? rest : MOST;
    for (int i = 0; i < c->count; i++) {
        c->shown[i] = c->values[i] ? c->values[i] + c->row : NULL;
        c->shown_texts[i] = c->texts[i] ? c->texts[i] + c->row : NULL;
    }
    *out = (crd_block){.first = c->row,
                       .rows = n,
                       .time = c->time ? c->time + c->row : NULL,
                       .values = c->shown,
                       .texts = c->shown_texts};
    c->row += n;
    return CRD_OK;
}

static crd_status memory_cursor_seek(crd_cursor* cursor, int64_t row)
{
    ((memory_cursor*)cursor)->row = row;
    return CRD_OK;
}

static void memory_close(crd_recording* r)
{
    crdi_memory_recording* m = (crdi_memory_recording*)r;
    crd_table_destroy(m->table);
    crd_arena_clear(&r->arena);
    crd_free(r->ctx, m);
}

static const crdi_recording_ops memory_ops = {
    .attachment = memory_attachment,
    .cursor_open = memory_cursor_open,
    .cursor_next = memory_cursor_next,
    .cursor_seek = memory_cursor_seek,
    .cursor_close = memory_cursor_close,
    .close = memory_close,
};

crd_status crdi_memory_recording_create(crd_context* ctx, const char* path, const char* format,
                                        crdi_memory_recording** out)
{
    crdi_memory_recording* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    m->base.ops = &memory_ops;
    m->base.ctx = ctx;
    crd_arena_init(&m->base.arena, ctx);
    m->base.info = (crd_recording_info){.format = format, .program = "", .comment = ""};
    m->base.info.path = crdi_arena_text(&m->base.arena, path, strlen(path));
    if (!m->base.info.path) {
        memory_close(&m->base);
        return CRD_E_MEMORY;
    }
    *out = m;
    return CRD_OK;
}

crd_status crdi_memory_recording_describe(crdi_memory_recording* m)
{
    const crd_table* t = m->table;
    crd_arena* arena = &m->base.arena;
    crd_recording_info* info = &m->base.info;
    const size_t n = (size_t)t->column_count;
    crd_signal_info* signals = crdi_arena_new(arena, n, sizeof *signals);
    crd_group_info* groups = crdi_arena_new(arena, n + 1, sizeof *groups);
    if (!signals || !groups) { return CRD_E_MEMORY; }
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        if (i == 0 || c->time != t->columns[i - 1].time) {
            groups[info->group_count++] =
                (crd_group_info){.name = "", .rows = c->rows, .first_signal = i};
        }
        groups[info->group_count - 1].signal_count++;
        signals[i] = (crd_signal_info){.name = c->name,
                                       .unit = c->unit,
                                       .description = "",
                                       .type = c->type,
                                       .group = info->group_count - 1};
    }
    if (t->column_count == 0) {
        groups[info->group_count++] = (crd_group_info){.name = "", .rows = t->rows};
    }
    info->groups = groups;
    info->signals = signals;
    info->signal_count = t->column_count;
    return CRD_OK;
}

static crd_status open_csv(crd_context* ctx, const char* path, int fd, crd_recording** out)
{
    crd_status st = CRD_OK;
    crdi_memory_recording* m = NULL;
    CRD_TRY(crdi_memory_recording_create(ctx, path, "CSV", &m));
    CRD_TRY(crdi_table_read_csv(ctx, fd, path, &m->table));
    CRD_TRY(crdi_memory_recording_describe(m));
    close(fd);
    *out = &m->base;
    return CRD_OK;
fail:
    close(fd);
    if (m) { memory_close(&m->base); }
    return st;
}

// ---- any recording -----------------------------------------------------------------------------

crd_status crd_recording_open(crd_context* ctx, const char* path, crd_recording** out)
{
    int fd = -1;
    crdi_file_kind kind = CRDI_FILE_CSV;
    const crd_status st = crdi_recording_sniff(ctx, path, &fd, &kind);
    if (st < 0) { return st; }
    if (kind == CRDI_FILE_MDF) { return crdi_mdf_open(ctx, path, fd, out); }
    if (kind == CRDI_FILE_CSV) { return open_csv(ctx, path, fd, out); }
    close(fd); // libmatio opens files itself
    return crdi_mat_open(ctx, path, out);
}

void crd_recording_close(crd_recording* r)
{
    if (r) { r->ops->close(r); }
}

const crd_recording_info* crd_recording_describe(const crd_recording* r)
{
    return &r->info;
}

static crd_status name_with_group(crd_arena* arena, const crd_recording_info* info, int i,
                                  const char** out)
{
    const char* group = info->groups[info->signals[i].group].name;
    if (!*group) { return CRD_OK; }
    out[i] = crdi_arena_format(arena, "%s (%s)", info->signals[i].name, group);
    return out[i] ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_signal_names(crd_arena* arena, const crd_recording_info* info, const char** out)
{
    crd_map seen;
    crd_status st = CRD_OK;
    crdi_map_init(&seen, arena->ctx);
    for (int i = 0; i < info->signal_count; i++) {
        bool fresh = false;
        out[i] = info->signals[i].name;
        CRD_TRY(crdi_map_add(&seen, out[i], i, &fresh));
        if (fresh) { continue; }
        const int first = crdi_map_find(&seen, out[i]);
        if (out[first] == info->signals[first].name) {
            CRD_TRY(name_with_group(arena, info, first, out));
        }
        CRD_TRY(name_with_group(arena, info, i, out));
    }
fail:
    crdi_map_clear(&seen);
    return st;
}

crd_status crd_recording_attachment(crd_recording* r, int i, char** data, size_t* length)
{
    assert(i >= 0 && i < r->info.attachment_count);
    return r->ops->attachment(r, i, data, length);
}
