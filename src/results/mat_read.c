// MATLAB files, read as a whole by libmatio. What is understood:
//   a vector `time` (or `t`), and beside it vectors as long as it, matrices with as many rows,
//   cells
//     of as many texts, char matrices with as many rows; and as Cardan writes it `signals`, a
//     structure that gives them names, units and descriptions, beside which other texts are
//     attachments;
//   structures with fields `time` and `data`, as timeseries are saved, or `time` and `signals`, as
//     Simulink saves them: each is a group with its own times;
//   results of Modelica tools, see mat_modelica.c.
#include "results/mat_read.h"

#include "results/mat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 32 }; // cells in cells

// ---- values of libmatio ------------------------------------------------------------------------

static size_t mat_elements(const matvar_t* v)
{
    size_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        if (v->dims[i] && n > SIZE_MAX / 4 / v->dims[i]) { return SIZE_MAX / 4; }
        n *= v->dims[i];
    }
    return v->rank > 0 ? n : 0;
}

// Bytes of one value in memory; 0: no numbers.
static size_t value_size(const matvar_t* v)
{
    static const uint8_t sizes[] = {8, 4, 1, 1, 2, 2, 4, 4, 8, 8};
    return v->class_type >= MAT_C_DOUBLE && v->class_type <= MAT_C_UINT64
               ? sizes[v->class_type - MAT_C_DOUBLE]
               : 0;
}

bool crdi_mat_is_numeric(const matvar_t* v)
{
    const size_t n = v ? mat_elements(v) : 0, size = v ? value_size(v) : 0;
    return size && !v->isComplex && (n == 0 || (v->data && v->nbytes / size >= n));
}

static bool mat_read_is_wanted(const matvar_t* v)
{
    return v->name && v->name[0] && v->class_type >= MAT_C_CELL && v->class_type <= MAT_C_UINT64 &&
           v->class_type != MAT_C_SPARSE;
}

static bool is_vector(const matvar_t* v)
{
    int longer = 0;
    for (int i = 0; i < v->rank; i++) {
        longer += v->dims[i] != 1;
    }
    return crdi_mat_is_numeric(v) && longer <= 1;
}

double crdi_mat_value(const matvar_t* v, size_t i)
{
    switch (v->class_type) {
    case MAT_C_DOUBLE:
        return ((const double*)v->data)[i];
    case MAT_C_SINGLE:
        return (double)((const float*)v->data)[i];
    case MAT_C_INT8:
        return ((const int8_t*)v->data)[i];
    case MAT_C_UINT8:
        return ((const uint8_t*)v->data)[i];
    case MAT_C_INT16:
        return ((const int16_t*)v->data)[i];
    case MAT_C_UINT16:
        return ((const uint16_t*)v->data)[i];
    case MAT_C_INT32:
        return ((const int32_t*)v->data)[i];
    case MAT_C_UINT32:
        return ((const uint32_t*)v->data)[i];
    case MAT_C_INT64:
        return (double)((const int64_t*)v->data)[i];
    case MAT_C_UINT64:
        return (double)((const uint64_t*)v->data)[i];
    default:
        return (double)NAN;
    }
}

crd_type crdi_mat_type(const matvar_t* v)
{
    static const crd_type types[] = {CRD_FLOAT64, CRD_FLOAT32, CRD_INT8,   CRD_UINT8, CRD_INT16,
                                     CRD_UINT16,  CRD_INT32,   CRD_UINT32, CRD_INT64, CRD_UINT64};
    return v->isLogical ? CRD_BOOLEAN : types[v->class_type - MAT_C_DOUBLE];
}

const char* crdi_mat_text(crd_arena* arena, const matvar_t* v, size_t row, bool lying)
{
    if (!v || v->class_type != MAT_C_CHAR || !v->data || v->rank != 2 || row >= v->dims[lying]) {
        return "";
    }
    const size_t rows = v->dims[lying];
    size_t n = v->dims[!lying];
    const size_t first = lying ? row * n : row, stride = lying ? 1 : rows;
    const bool wide = v->data_type == MAT_T_UINT16 || v->data_type == MAT_T_UTF16;
    if (v->nbytes / (wide ? 2 : 1) / rows < n) {
        return "";
    } // UTF-8 has fewer or more than it says
    const uint16_t* units = wide ? v->data : NULL;
    const uint8_t* bytes = v->data;
#define UNIT(i) (wide ? units[first + (i)*stride] : bytes[first + (i)*stride])
    while (n && (UNIT(n - 1) == 0 || (rows > 1 && UNIT(n - 1) == ' '))) {
        n--;
    }
    char* text = crdi_arena_new(arena, 3 * n + 1, 1);
    char* to = text;
    for (size_t i = 0; text && i < n; i++) {
        uint32_t c = UNIT(i);
        if (c == 0) { break; }
        if (!wide) {
            *to++ = (char)c;
            continue;
        }
        if (c >= 0xD800 && c < 0xDC00 && i + 1 < n && UNIT(i + 1) >= 0xDC00 &&
            UNIT(i + 1) < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (UNIT(i + 1) - 0xDC00U);
            i++;
            *to++ = (char)(0xF0 | c >> 18); // four bytes for two units: there is room
            *to++ = (char)(0x80 | (c >> 12 & 63));
        } else if (c >= 0x800) {
            *to++ = (char)(0xE0 | c >> 12);
        }
        if (c >= 0x800) {
            *to++ = (char)(0x80 | (c >> 6 & 63));
        } else if (c >= 0x80) {
            *to++ = (char)(0xC0 | c >> 6);
        }
        *to++ = (char)(c < 0x80 ? c : 0x80 | (c & 63));
    }
#undef UNIT
    return text && !wide ? crdi_table_utf8(arena, text) : text;
}

static const char* text_row(crd_arena* arena, const matvar_t* v, size_t row)
{
    return crdi_mat_text(arena, v, row, false);
}

static matvar_t* field(const matvar_t* v, const char* name, size_t index)
{
    return v && v->class_type == MAT_C_STRUCT && v->data && index < mat_elements(v)
               ? Mat_VarGetStructFieldByName((matvar_t*)v, name, index)
               : NULL;
}

static matvar_t* field_of(const matvar_t* v, const char* const* names)
{
    matvar_t* found = NULL;
    for (; *names && !found; names++) {
        found = field(v, *names, 0);
    }
    return found;
}

// ---- columns -----------------------------------------------------------------------------------

static crd_status left_out(const crdi_mat* d, const char* name, const char* why)
{
    crdi_log(d->ctx, CRD_LOG_WARNING, "%s: variable '%s' is left out: %s", d->path, name, why);
    return CRD_OK;
}

crd_status crdi_mat_room(crdi_mat* d, size_t n, double** out)
{
    d->values += (double)n;
    const crd_status st = crdi_table_check_size(d->ctx, d->path, d->values);
    if (st < 0) { return st; }
    *out = crdi_arena_new(&d->table->arena, n, sizeof **out);
    return *out ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_mat_add_column(crdi_mat* d, const crdi_mat_column* column)
{
    void* grown =
        crdi_grow(d->ctx, d->columns, &d->column_capacity, d->column_count + 1, sizeof *d->columns);
    if (!grown) { return CRD_E_MEMORY; }
    d->columns = grown;
    d->columns[d->column_count++] = *column;
    return CRD_OK;
}

// The next column, with room for its values.
static crd_status new_column(crdi_mat* d, const char* name, const char* unit, crd_type type,
                             const double* time, size_t rows, crdi_mat_column** out)
{
    crd_status st = CRD_OK;
    crd_arena* arena = &d->table->arena;
    crdi_mat_column c = {.name = crdi_arena_text(arena, name, strlen(name)),
                         .unit = crdi_arena_text(arena, unit, strlen(unit)),
                         .description = "",
                         .type = type,
                         .time = time,
                         .rows = (int64_t)rows};
    CRD_TRY(crdi_mat_room(d, rows, &c.values));
    if (type == CRD_STRING) { c.texts = crdi_arena_new(arena, rows, sizeof *c.texts); }
    if (!c.name || !c.unit || (type == CRD_STRING && !c.texts)) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_mat_add_column(d, &c));
    *out = &d->columns[d->column_count - 1];
fail:
    return st;
}

// A vector of `rows` values, or a matrix whose first or last dimension is `rows`: then its other
// elements are columns name[1], name[2] ...
static crd_status add_numbers(crdi_mat* d, const matvar_t* v, const char* name, const char* unit,
                              const double* time, size_t rows)
{
    const size_t all = mat_elements(v);
    const size_t width = rows ? all / rows : 0;
    const bool upright = v->rank > 0 && v->dims[0] == rows;
    const bool lying = v->rank > 0 && v->dims[v->rank - 1] == rows;
    if (!v->rank || (!upright && !lying) || width == 0 || width * rows != all) {
        char why[160];
        snprintf(why, sizeof why, "it has %zu values, expected one for each of the %zu times", all,
                 rows);
        return left_out(d, name, why);
    }
    for (size_t j = 0; j < width; j++) {
        crdi_mat_column* c = NULL;
        char indexed[512];
        snprintf(indexed, sizeof indexed, "%s[%zu]", name, j + 1);
        const crd_status st =
            new_column(d, width > 1 ? indexed : name, unit, crdi_mat_type(v), time, rows, &c);
        if (st < 0) { return st; }
        for (size_t i = 0; i < rows; i++) {
            c->values[i] = crdi_mat_value(v, upright ? i + rows * j : j + width * i);
        }
    }
    return CRD_OK;
}

// Cells with a text each, or the rows of a char matrix.
static crd_status add_texts(crdi_mat* d, const matvar_t* v, const char* name, const double* time,
                            size_t rows)
{
    crdi_mat_column* c = NULL;
    const bool cells = v->class_type == MAT_C_CELL;
    if (cells ? mat_elements(v) != rows || !v->data : v->rank != 2 || v->dims[0] != rows) {
        return left_out(d, name, "its number of texts is not that of the times");
    }
    const crd_status st = new_column(d, name, "", CRD_STRING, time, rows, &c);
    if (st < 0) { return st; }
    for (size_t i = 0; i < rows; i++) {
        c->texts[i] = cells ? text_row(&d->table->arena, ((matvar_t* const*)v->data)[i], 0)
                            : text_row(&d->table->arena, v, i);
        if (!c->texts[i]) { return CRD_E_MEMORY; }
        c->values[i] = crdi_text_value(c->texts[i], strlen(c->texts[i]));
    }
    return CRD_OK;
}

crd_status crdi_mat_copy_time(crdi_mat* d, const matvar_t* v, const size_t* rows, size_t stride,
                              size_t n, const double** time)
{
    double* t = NULL;
    const crd_status st = crdi_mat_room(d, n, &t);
    if (st < 0) { return st; }
    for (size_t i = 0; i < n; i++) {
        t[i] = crdi_mat_value(v, (rows ? rows[i] : i) * stride);
        if (!isfinite(t[i]) || (i > 0 && t[i] < t[i - 1])) {
            return crdi_fail(d->ctx, CRD_E_FORMAT,
                             "%s: %s(%zu) = %.17g, expected finite and ascending times", d->path,
                             v->name, i + 1, t[i]);
        }
    }
    *time = t;
    return CRD_OK;
}

// ---- layouts -----------------------------------------------------------------------------------

static const char* const time_fields[] = {"time", "Time", NULL};
static const char* const data_fields[] = {"data", "Data", "values", NULL};

const matvar_t* crdi_mat_find(const crdi_mat* d, const char* name)
{
    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->variables[i]->name, name) == 0) { return d->variables[i]; }
    }
    return NULL;
}

static const matvar_t* find_time(const crdi_mat* d)
{
    static const char* const names[] = {"time", "Time", "TIME", "t"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        for (size_t i = 0; i < d->count; i++) {
            const matvar_t* v = d->variables[i];
            if (strcmp(v->name, names[k]) == 0 && is_vector(v)) { return v; }
        }
    }
    return NULL;
}

static bool is_timed(const matvar_t* v)
{
    const matvar_t* time = field_of(v, time_fields);
    return time && is_vector(time) &&
           (crdi_mat_is_numeric(field_of(v, data_fields)) || field(v, "signals", 0));
}

// A structure with its own times.
static crd_status add_structure(crdi_mat* d, const matvar_t* v)
{
    crd_status st = CRD_OK;
    const matvar_t* t = field_of(v, time_fields);
    const size_t rows = mat_elements(t);
    const double* time = NULL;
    CRD_TRY(crdi_mat_copy_time(d, t, NULL, 1, rows, &time));
    const matvar_t* data = field_of(v, data_fields);
    if (crdi_mat_is_numeric(data)) { return add_numbers(d, data, v->name, "", time, rows); }
    const matvar_t* signals = field(v, "signals", 0);
    const size_t n = signals && signals->class_type == MAT_C_STRUCT ? mat_elements(signals) : 0;
    for (size_t i = 0; i < n; i++) {
        const matvar_t* values = field(signals, "values", i);
        const char* label = text_row(&d->table->arena, field(signals, "label", i), 0);
        if (!label) { return CRD_E_MEMORY; }
        char name[512];
        snprintf(name, sizeof name, n > 1 ? "%s[%zu]" : "%s", v->name, i + 1);
        if (label[0]) { snprintf(name, sizeof name, "%s", label); }
        if (crdi_mat_is_numeric(values)) { CRD_TRY(add_numbers(d, values, name, "", time, rows)); }
    }
fail:
    return st;
}

// ---- as Cardan writes it -----------------------------------------------------------------------

static crd_status find_signals(crdi_mat* d)
{
    for (size_t i = 0; i < d->count && !d->signals; i++) {
        const matvar_t* v = d->variables[i];
        if (strcmp(v->name, "signals") != 0 || !field(v, "variable", 0)) { continue; }
        d->signals = v;
        d->in_order = crdi_arena_new(&d->table->arena, mat_elements(v), sizeof *d->in_order);
        if (!d->in_order) { return CRD_E_MEMORY; }
        for (size_t k = 0; k < mat_elements(v) && k < INT32_MAX; k++) {
            d->in_order[k] = -1;
            const char* variable = text_row(&d->table->arena, field(v, "variable", k), 0);
            const crd_status st = variable
                                      ? crdi_map_add(&d->signal_index, variable, (int32_t)k, NULL)
                                      : CRD_E_MEMORY;
            if (st < 0) { return st; }
        }
    }
    for (size_t i = 0; d->signals && i < d->count; i++) {
        const int32_t k = crdi_map_find(&d->signal_index, d->variables[i]->name);
        if (k >= 0) { d->in_order[k] = (int32_t)i; }
    }
    return CRD_OK;
}

// "0 = off; 1 = on"
static crd_status read_labels(crdi_mat* d, const char* text, crdi_mat_column* c)
{
    size_t most = 1;
    for (const char* p = text; (p = strstr(p, "; ")); p += 2) {
        most++;
    }
    crd_label* labels = crdi_arena_new(&d->m->base.arena, most, sizeof *labels);
    if (!labels) { return CRD_E_MEMORY; }
    while (*text && (size_t)c->label_count < most) {
        const char* equals = strstr(text, " = ");
        int64_t x;
        if (!equals || !crdi_parse_int64(text, (size_t)(equals - text), &x)) { break; }
        const char* end = strstr(equals, "; ");
        if (!end) { end = text + strlen(text); }
        crd_label* l = &labels[c->label_count++];
        *l = (crd_label){
            x, crdi_arena_text(&d->m->base.arena, equals + 3, (size_t)(end - equals - 3))};
        if (!l->text) { return CRD_E_MEMORY; }
        text = *end ? end + 2 : end;
    }
    c->labels = labels;
    return CRD_OK;
}

static crd_status describe_column(crdi_mat* d, size_t k, crdi_mat_column* c)
{
    crd_arena* arena = &d->table->arena;
    const char* name = text_row(arena, field(d->signals, "name", k), 0);
    c->unit = text_row(arena, field(d->signals, "unit", k), 0);
    const char* description = text_row(arena, field(d->signals, "description", k), 0);
    const char* labels = text_row(arena, field(d->signals, "labels", k), 0);
    if (!name || !c->unit || !description || !labels) { return CRD_E_MEMORY; }
    if (name[0]) { c->name = name; }
    // The recording outlives the table when that is taken out of it.
    c->description = crdi_arena_text(&d->m->base.arena, description, strlen(description));
    if (!c->description) { return CRD_E_MEMORY; }
    if (!labels[0]) { return CRD_OK; }
    if (c->type == CRD_INT64) { c->type = CRD_ENUMERATION; }
    return read_labels(d, labels, c);
}

static crd_status add_attachment(crdi_mat* d, const matvar_t* v)
{
    crdi_memory_recording* m = d->m;
    crd_arena* arena = &m->base.arena;
    const char* text = text_row(arena, v, 0);
    const size_t n = (size_t)m->base.info.attachment_count;
    crd_attachment* all = crdi_arena_new(arena, n + 1, sizeof *all);
    crd_attachment_info* infos = crdi_arena_new(arena, n + 1, sizeof *infos);
    const char* name = strcmp(v->name, "cardan_run") == 0       ? CRD_ATTACHMENT_RUN
                       : strcmp(v->name, "cardan_verdict") == 0 ? CRD_ATTACHMENT_VERDICT
                                                                : v->name;
    name = crdi_arena_text(arena, name, strlen(name));
    if (!text || !all || !infos || !name) { return CRD_E_MEMORY; }
    if (n) {
        memcpy(all, m->attachments, n * sizeof *all);
        memcpy(infos, m->base.info.attachments, n * sizeof *infos);
    }
    const char* mime = text[0] == '{' ? "application/json" : "text/plain";
    all[n] = (crd_attachment){name, mime, text, strlen(text)};
    infos[n] = (crd_attachment_info){name, mime, strlen(text)};
    m->attachments = all;
    m->base.info.attachments = infos;
    m->base.info.attachment_count++;
    return CRD_OK;
}

// ---- variables ---------------------------------------------------------------------------------

static crd_status mat_read_add_variable(crdi_mat* d, const matvar_t* v, const double* time,
                                        size_t rows)
{
    crd_status st = CRD_OK;
    const int32_t k = crdi_map_find(&d->signal_index, v->name);
    const size_t first = d->column_count;
    if (d->signals && k < 0 && v->class_type == MAT_C_CHAR) { return add_attachment(d, v); }
    if (crdi_mat_is_numeric(v)) {
        CRD_TRY(add_numbers(d, v, v->name, "", time, rows));
    } else if (v->class_type == MAT_C_CELL || v->class_type == MAT_C_CHAR) {
        CRD_TRY(add_texts(d, v, v->name, time, rows));
    } else if (v != d->signals) {
        CRD_TRY(left_out(d, v->name, "it is neither numbers nor texts"));
    }
    if (k >= 0 && d->column_count == first + 1) {
        CRD_TRY(describe_column(d, (size_t)k, &d->columns[first]));
    }
fail:
    return st;
}

static crd_status mat_read_add_variables(crdi_mat* d, const matvar_t* time_variable)
{
    crd_status st = CRD_OK;
    const double* time = NULL;
    const size_t rows = time_variable ? mat_elements(time_variable) : 0;
    if (time_variable) {
        CRD_TRY(crdi_mat_copy_time(d, time_variable, NULL, 1, rows, &time));
        d->table->view.time = time;
        d->table->view.rows = (int64_t)rows;
    }
    // Files of version 7.3 have their variables in alphabetical order, the signals have their own.
    for (size_t k = 0; time && d->signals && k < mat_elements(d->signals); k++) {
        const int32_t i = d->in_order[k];
        if (i >= 0) { CRD_TRY(mat_read_add_variable(d, d->variables[i], time, rows)); }
    }
    for (size_t i = 0; time && i < d->count; i++) {
        const matvar_t* v = d->variables[i];
        if (v == time_variable || is_timed(v) || !mat_read_is_wanted(v)) { continue; }
        if (crdi_map_find(&d->signal_index, v->name) >= 0) { continue; }
        CRD_TRY(mat_read_add_variable(d, v, time, rows));
    }
    for (size_t i = 0; i < d->count; i++) { // groups of their own come behind
        if (is_timed(d->variables[i])) { CRD_TRY(add_structure(d, d->variables[i])); }
    }
fail:
    return st;
}

// ---- file --------------------------------------------------------------------------------------

// libmatio takes dimensions as they stand there. No more values than the file has room for: as they
// are in version 4, and in version 5 without compression, else as deflate packs them at best.
static crd_status check_room(crdi_mat* d, const matvar_t* v, int depth)
{
    if (!v) { return CRD_OK; }
    const bool as_is = d->version == MAT_FT_MAT4 ||
                       (d->version == MAT_FT_MAT5 && v->compression == MAT_COMPRESSION_NONE);
    const double bytes = (double)mat_elements(v) * (v->class_type >= MAT_C_CHAR ? 1.0 : 0.125);
    if (depth > MOST_DEPTH || bytes > (as_is ? 1.0 : 1032.0) * d->size) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: variable '%s' has %zu values, more than fit into %.0f bytes", d->path,
                         v->name ? v->name : "", mat_elements(v), d->size);
    }
    const size_t size = v->class_type == MAT_C_CELL ? 128 : value_size(v); // about
    d->bytes += (double)mat_elements(v) * (double)(size ? size : 2);
    if (d->bytes > crdi_mat_budget(d)) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: variable '%s' brings the values to %.3g MB, expected at most %.3g MB "
                         "in a file of %.0f bytes",
                         d->path, v->name ? v->name : "", 1e-6 * d->bytes,
                         1e-6 * crdi_mat_budget(d), d->size);
    }
    size_t inner = v->class_type == MAT_C_CELL ? mat_elements(v) : 0;
    if (v->class_type == MAT_C_STRUCT) {
        inner = mat_elements(v) * Mat_VarGetNumberOfFields((matvar_t*)v);
    }
    matvar_t* const* cells = v->data;
    for (size_t i = 0; cells && i < inner; i++) {
        const crd_status st = check_room(d, cells[i], depth + 1);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status read_variables(crdi_mat* d)
{
    for (;;) {
        matvar_t* v = Mat_VarReadNextInfo(d->file);
        if (!v) { return CRD_OK; }
        if (!v->name) {
            Mat_VarFree(v);
            continue;
        }
        void* grown =
            crdi_grow(d->ctx, d->variables, &d->capacity, d->count + 1, sizeof *d->variables);
        if (!grown) {
            Mat_VarFree(v);
            return CRD_E_MEMORY;
        }
        d->variables = grown;
        d->variables[d->count++] = v;
        const crd_status st = check_room(d, v, 0);
        if (st < 0) { return st; }
        if (mat_read_is_wanted(v)) {
            if (mat_elements(v) && Mat_VarReadDataAll(d->file, v) != 0) {
                return crdi_fail(d->ctx, CRD_E_FORMAT,
                                 "%s: variable '%s': its data cannot be read, is the file whole?",
                                 d->path, v->name);
            }
        } else if (v->name[0]) {
            left_out(d, v->name,
                     "sparse arrays, objects, functions and what has no class are not read");
        }
    }
}

static crd_status finish_table(crdi_mat* d)
{
    crd_status st = CRD_OK;
    crdi_table* t = d->table;
    const size_t n = d->column_count;
    if (n > INT32_MAX - 1) { return crdi_fail(d->ctx, CRD_E_FORMAT, "too many columns"); }
    t->columns = crdi_arena_new(&t->arena, n, sizeof *t->columns);
    if (!t->columns) { return CRD_E_MEMORY; }
    t->view.columns = t->columns;
    for (size_t i = 0; i < n; i++) {
        const crdi_mat_column* c = &d->columns[i];
        const crd_table_column as = {.name = c->name,
                                     .unit = c->unit,
                                     .values = c->values,
                                     .texts = c->texts,
                                     .time = c->time,
                                     .rows = c->rows,
                                     .type = c->type};
        CRD_TRY(crdi_table_add(t, &as));
    }
    if (!t->view.time && n) {
        t->view.time = d->columns[0].time;
        t->view.rows = d->columns[0].rows;
    }
    d->m->table = &t->view;
    d->table = NULL;
    CRD_TRY(crdi_memory_recording_describe(d->m));
    crd_signal_info* signals = (crd_signal_info*)d->m->base.info.signals;
    for (size_t i = 0; i < n; i++) {
        signals[i].description = d->columns[i].description;
        signals[i].labels = d->columns[i].labels;
        signals[i].label_count = d->columns[i].label_count;
    }
fail:
    return st;
}

static crd_status mat_read_file(crdi_mat* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(read_variables(d));
    if (d->count == 0) {
        return crdi_fail(d->ctx, CRD_E_FORMAT, "%s: no variable can be read, is the file whole?",
                         d->path);
    }
    bool modelica = false;
    CRD_TRY(crdi_mat_read_modelica(d, &modelica));
    if (modelica) { return finish_table(d); }
    CRD_TRY(find_signals(d));
    const matvar_t* time = find_time(d);
    CRD_TRY(mat_read_add_variables(d, time));
    if (!time && d->column_count == 0) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s: no times, expected a vector called 'time' or 't', structures with "
                         "fields 'time' and 'data', or the result of a Modelica tool",
                         d->path);
    }
    CRD_TRY(finish_table(d));
fail:
    return st;
}

crd_status crdi_mat_open(crd_context* ctx, const char* path, crd_recording** out)
{
    crd_status st = CRD_OK;
    crdi_mat d = {.ctx = ctx, .path = path};
    crdi_map_init(&d.signal_index, ctx);
    crdi_matio_begin();
    CRD_TRY(crdi_memory_recording_create(ctx, path, "MAT 5", &d.m));
    CRD_TRY(crdi_table_create(ctx, path, 0, &d.table));
    struct stat info;
    d.size = stat(path, &info) == 0 ? (double)info.st_size : 0;
    if (d.size == 0) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s: the file is empty, expected a MATLAB file", path);
        goto fail;
    }
    CRD_TRY(crdi_mat_check(&d));
    d.file = Mat_Open(path, MAT_ACC_RDONLY);
    if (!d.file) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s: not a MATLAB file of version 4, 5 or 7.3", path);
        goto fail;
    }
    d.version = Mat_GetVersion(d.file);
    if (d.version == MAT_FT_MAT73) { d.m->base.info.format = "MAT 7.3"; }
    if (d.version == MAT_FT_MAT4) { d.m->base.info.format = "MAT 4"; }
    CRD_TRY(mat_read_file(&d));
    *out = &d.m->base;
    d.m = NULL;
fail:
    for (size_t i = 0; i < d.count; i++) {
        Mat_VarFree(d.variables[i]);
    }
    crd_free(ctx, d.variables);
    crd_free(ctx, d.columns);
    if (d.file) { Mat_Close(d.file); }
    crdi_matio_end();
    crdi_map_clear(&d.signal_index);
    if (d.table) { crd_table_destroy(&d.table->view); }
    if (d.m) { crd_recording_close(&d.m->base); }
    return st;
}
