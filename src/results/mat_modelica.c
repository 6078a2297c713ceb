// Result files of Modelica tools (Dymola, OpenModelica, OMSimulator, PyFMI), in MATLAB files of any
// version. The matrices, as they stand with "binNormal"; with "binTrans" each one but Aclass is
// transposed:
//   Aclass       char (4, .)   "Atrajectory", version, a note, "binNormal" or "binTrans"
//   name         char (n, .)   names; the first is the time
//   description  char (n, .)   "text [unit|unit to display:#(type=Integer)]"
//   dataInfo     (n, 4)        which data_<k>, 0: time of all; its column, from 1, negative: with
//                              the sign changed; how to interpolate and extrapolate (not used)
//   data_<k>     (rows, m)     column 1 is the time; data_1: what is constant, at start and end
// Version 1.0 has `names` and `data` alone: column i of the data is name i.
#include "results/mat_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TABLES = 64 };

typedef struct modelica {
    crdi_mat* d;
    bool lying; // binTrans
    const matvar_t *name, *description, *info;
    size_t count;
    bool there[MOST_TABLES + 1]; // data_<k>
    const double* main_time;     // of the first table
    size_t main_rows;
} modelica;

// One data_<k>.
typedef struct data {
    const matvar_t* v;
    size_t k, rows, width, row_stride, column_stride;
    bool once;          // one row of constants, shown at start and end
    const size_t* kept; // (rows) those that count, NULL: all of `rows`
    const double* time;
    double** columns[2]; // (width) as they are, with the sign changed; NULL: nobody asked
} data;

static crd_status wrong(const modelica* m, const char* what, double is, const char* expected)
{
    return crdi_fail(m->d->ctx, CRD_E_FORMAT, "%s: Modelica result: %s = %.17g, expected %s",
                     m->d->path, what, is, expected);
}

// ---- descriptions ------------------------------------------------------------------------------

static bool is_whole(const double* values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != nearbyint(values[i])) { return false; } // NaN, too
    }
    return true;
}

// "Angle [rad|deg]" is the unit rad, "Switch [:#(type=Boolean)]" a type; "[0, 10]" is neither. What
// says more than `text` can is cut off it.
static void split_description(char* text, crdi_mat_column* c)
{
    const size_t length = strlen(text);
    char* open = length && text[length - 1] == ']' ? strrchr(text, '[') : NULL;
    if (!open) { return; }
    char* type = strstr(open, ":#(type=");
    const size_t n = type ? (size_t)(type - open - 1) : strlen(open) - 2;
    const size_t unit = strcspn(open + 1, "|:]");
    if (strcspn(open + 1, " ,;:=") < n) { return; } // a text in brackets
    if (type && is_whole(c->values, (size_t)c->rows)) {
        c->type = strncmp(type + 8, "Boolean)", 8) == 0 ? CRD_BOOLEAN
                  : strncmp(type + 8, "Real)", 5) == 0  ? c->type
                                                        : CRD_INT32;
    }
    char* to = text + length + 1; // the caller left room behind the text
    memcpy(to, open + 1, unit);
    to[unit] = 0;
    c->unit = to;
    while (open > text && open[-1] == ' ') {
        open--;
    }
    *open = 0;
}

static crd_status describe(modelica* m, size_t i, crdi_mat_column* c)
{
    // The recording outlives the table when that is taken out of it.
    crd_arena* arena = &m->d->m->base.arena;
    const char* text = crdi_mat_text(arena, m->description, i, m->lying);
    if (!text) { return CRD_E_MEMORY; }
    c->description = c->unit = "";
    if (!text[0]) { return CRD_OK; }
    char* room = crdi_arena_new(arena, 2 * strlen(text) + 2, 1);
    if (!room) { return CRD_E_MEMORY; }
    memcpy(room, text, strlen(text));
    split_description(room, c);
    c->description = room;
    c->unit = crdi_arena_text(&m->d->table->arena, c->unit, strlen(c->unit));
    return c->unit ? CRD_OK : CRD_E_MEMORY;
}

// ---- columns -----------------------------------------------------------------------------------

// Column `j` (from 0) of the data as doubles; names that mean the same share it.
static crd_status column_of(modelica* m, data* t, size_t j, bool negated, double** out)
{
    double** place = &t->columns[negated][j];
    if (!*place) {
        const size_t rows = t->once ? 2 : t->rows;
        const crd_status st = crdi_mat_room(m->d, rows, place);
        if (st < 0) { return st; }
        const double sign = negated ? -1 : 1;
        for (size_t i = 0; i < rows; i++) {
            const size_t row = t->once ? 0 : t->kept ? t->kept[i] : i;
            (*place)[i] = sign * crdi_mat_value(t->v, row * t->row_stride + j * t->column_stride);
        }
    }
    *out = *place;
    return CRD_OK;
}

// What dataInfo says of name i: data_<k>, 0: time; column from 0.
static crd_status look_up(const modelica* m, size_t i, size_t* k, size_t* column, bool* negated)
{
    *k = i ? 2 : 0, *column = i, *negated = false;
    if (!m->info) { return CRD_OK; }
    const size_t first = m->lying ? 4 * i : i, stride = m->lying ? 1 : m->count;
    const double table = crdi_mat_value(m->info, first);
    const double place = crdi_mat_value(m->info, first + stride);
    if (!(table >= 0 && table <= MOST_TABLES) || table != nearbyint(table)) {
        return wrong(m, "an entry of dataInfo(:,1)", table, "the number of a data matrix, 0 to 64");
    }
    if (!(fabs(place) >= 1 && fabs(place) < 1e9) || place != nearbyint(place)) {
        return wrong(m, "an entry of dataInfo(:,2)", place, "a column from 1, or its negative");
    }
    if (i && !m->there[(size_t)table]) {
        return wrong(m, "an entry of dataInfo(:,1)", table,
                     "the number of a data matrix that is there");
    }
    *k = i ? (size_t)table : 0; // the first name is the time, wherever it stands
    *column = (size_t)fabs(place) - 1;
    *negated = place < 0;
    return CRD_OK;
}

// Tools that go back at an event leave the rows there that they took back, and write on from an
// earlier time. What was written last counts: a row with a later time than one behind it is left
// out.
static crd_status drop_taken_back(modelica* m, data* t)
{
    size_t *kept = NULL, n = 0, place = t->rows;
    double least = (double)INFINITY;
    for (size_t i = t->rows; i-- > 0;) {
        const double time = crdi_mat_value(t->v, i * t->row_stride);
        if (!(time > least)) { n++; } // NaN is told later
        if (time < least) { least = time; }
    }
    if (n == t->rows) { return CRD_OK; }
    kept = crdi_arena_new(&m->d->table->arena, n, sizeof *kept);
    if (!kept) { return CRD_E_MEMORY; }
    least = (double)INFINITY;
    for (size_t i = t->rows, k = n; i-- > 0;) {
        const double time = crdi_mat_value(t->v, i * t->row_stride);
        if (time > least) {
            place = i;
            continue;
        }
        kept[--k] = i;
        if (time < least) { least = time; }
    }
    crdi_log(
        m->d->ctx, CRD_LOG_WARNING,
        "%s: the times of %s go back: %zu rows that were taken back are left out, the first is "
        "row %zu",
        m->d->path, t->v->name, t->rows - n, place + 1);
    t->kept = kept;
    t->rows = n;
    return CRD_OK;
}

static crd_status open_data(modelica* m, size_t k, data* t)
{
    crd_status st = CRD_OK;
    char name[16];
    snprintf(name, sizeof name, "data_%zu", k);
    *t = (data){.v = crdi_mat_find(m->d, m->info ? name : "data"), .k = k};
    if (!t->v) { return CRD_OK; }
    if (!crdi_mat_is_numeric(t->v) || t->v->rank != 2) {
        return crdi_fail(m->d->ctx, CRD_E_FORMAT,
                         "%s: Modelica result: '%s' is no matrix of real numbers", m->d->path,
                         t->v->name);
    }
    t->rows = t->v->dims[m->lying], t->width = t->v->dims[!m->lying];
    t->row_stride = m->lying ? t->width : 1, t->column_stride = m->lying ? 1 : t->rows;
    if (t->rows == 0 || t->width == 0) { return CRD_OK; }
    crd_arena* arena = &m->d->table->arena;
    t->columns[0] = crdi_arena_new(arena, t->width, sizeof *t->columns[0]);
    t->columns[1] = crdi_arena_new(arena, t->width, sizeof *t->columns[1]);
    if (!t->columns[0] || !t->columns[1]) { return CRD_E_MEMORY; }
    t->once = t->rows == 1 && m->main_rows;
    if (t->once) {
        double* ends = NULL;
        CRD_TRY(crdi_mat_room(m->d, 2, &ends));
        ends[0] = m->main_time[0], ends[1] = m->main_time[m->main_rows - 1];
        t->time = ends;
    } else {
        CRD_TRY(drop_taken_back(m, t));
        CRD_TRY(crdi_mat_copy_time(m->d, t->v, t->kept, t->row_stride, t->rows, &t->time));
    }
fail:
    return st;
}

static crd_status add_name(modelica* m, data* t, size_t i, size_t column, bool negated)
{
    crd_status st = CRD_OK;
    if (column >= t->width || t->rows == 0) {
        return crdi_fail(
            m->d->ctx, CRD_E_FORMAT,
            "%s: Modelica result: '%s' is column %zu of data_%zu, which has %zu columns "
            "and %zu rows",
            m->d->path, crdi_mat_text(&m->d->table->arena, m->name, i, m->lying), column + 1, t->k,
            t->width, t->rows);
    }
    crdi_mat_column c = {.time = t->time, .type = crdi_mat_type(t->v)};
    c.rows = (int64_t)(t->once ? 2 : t->rows);
    c.name = crdi_mat_text(&m->d->table->arena, m->name, i, m->lying);
    if (!c.name) { return CRD_E_MEMORY; }
    CRD_TRY(column_of(m, t, column, negated, &c.values));
    CRD_TRY(describe(m, i, &c));
    CRD_TRY(crdi_mat_add_column(m->d, &c));
fail:
    return st;
}

// Names of data_<k>. The first table that has any gives the recording its times.
static crd_status add_table(modelica* m, size_t k)
{
    crd_status st = CRD_OK;
    data t;
    CRD_TRY(open_data(m, k, &t));
    if (t.rows && !m->main_time) {
        m->main_time = m->d->table->view.time = t.time;
        m->main_rows = t.rows;
        m->d->table->view.rows = (int64_t)t.rows;
    }
    for (size_t i = 0; i < m->count; i++) {
        size_t of = 0, column = 0;
        bool negated = false;
        CRD_TRY(look_up(m, i, &of, &column, &negated));
        if (of == k) { CRD_TRY(add_name(m, &t, i, column, negated)); }
    }
fail:
    return st;
}

// ---- file --------------------------------------------------------------------------------------

static crd_status check_layout(modelica* m)
{
    crdi_mat* d = m->d;
    m->name = crdi_mat_find(d, "name");
    m->description = crdi_mat_find(d, "description");
    m->info = crdi_mat_find(d, "dataInfo");
    if (!m->name && !m->info) { m->name = crdi_mat_find(d, "names"); } // version 1.0
    if (!m->name || m->name->class_type != MAT_C_CHAR || m->name->rank != 2) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: Modelica result without names, expected a char matrix 'name'",
                         d->path);
    }
    m->count = m->name->dims[m->lying];
    if (m->info && (!crdi_mat_is_numeric(m->info) || m->info->rank != 2 ||
                    m->info->dims[m->lying] != m->count || m->info->dims[!m->lying] < 4)) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: Modelica result: dataInfo does not fit %zu names, expected 4 numbers "
                         "for each",
                         d->path, m->count);
    }
    if (m->info && m->lying && m->info->dims[0] != 4) {
        return wrong(m, "rows of dataInfo", (double)m->info->dims[0], "4");
    }
    return CRD_OK;
}

crd_status crdi_mat_read_modelica(crdi_mat* d, bool* found)
{
    static const char* const formats[] = {"MAT 5, Modelica result", "MAT 7.3, Modelica result",
                                          "MAT 4, Modelica result"};
    crd_status st = CRD_OK;
    crd_arena* arena = &d->table->arena;
    const matvar_t* class = crdi_mat_find(d, "Aclass");
    const char* kind = crdi_mat_text(arena, class, 0, false);
    const char* layout = crdi_mat_text(arena, class, 3, false);
    if (!kind || !layout) { return CRD_E_MEMORY; }
    *found = strncmp(kind, "Atrajectory", 11) == 0;
    if (!*found && kind[0] == 'A') {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: a Modelica file with '%s', expected a result ('Atrajectory')",
                         d->path, kind);
    }
    if (!*found) { return CRD_OK; }
    modelica m = {.d = d, .lying = strncmp(layout, "binTrans", 8) == 0};
    CRD_TRY(check_layout(&m));
    m.there[0] = true;
    for (size_t k = 1; k <= MOST_TABLES; k++) {
        char name[16];
        snprintf(name, sizeof name, "data_%zu", k);
        m.there[k] = crdi_mat_find(d, name);
    }
    for (size_t k = 2; k <= MOST_TABLES; k++) {
        if (m.there[k] || k == 2) { CRD_TRY(add_table(&m, k)); }
    }
    if (m.info) { CRD_TRY(add_table(&m, 1)); }
    if (!m.main_time) { return wrong(&m, "rows of data_2", 0, "some"); }
    d->m->base.info.format = formats[d->version == MAT_FT_MAT73  ? 1
                                     : d->version == MAT_FT_MAT4 ? 2
                                                                 : 0];
fail:
    return st;
}
