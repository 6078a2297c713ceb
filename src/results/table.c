// Tables in memory. Reading CSV: the text is cut into fields once, numbers go straight into their
// columns. Columns that turn out to hold texts get them in a second pass.
#include "results/table.h"

#include "results/recording.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
    crd_context* ctx;
    crdi_table* t;
    const char* name; // in messages
    const char *at, *end;
    int64_t line; // of `at`, from 1
    char separator;
    int fields;       // of a row, with time
    size_t capacity;  // rows
    uint8_t* is_text; // (fields)
} reader;

// One field: without the blanks around it and without its quotes.
typedef struct field {
    const char* text;
    size_t length;
    bool doubled; // has quotes that stand for one
    bool last;    // of its row
    bool cut;     // the text ends inside its quotes
} field;

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static crd_status fail_at(const reader* r, int64_t line, const char* what)
{
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: %s", r->name, (long long)line, what);
}

// ---- fields ------------------------------------------------------------------------------------

static crd_status quoted_field(reader* r, field* f)
{
    const int64_t line = r->line;
    const char* p = ++r->at;
    *f = (field){.text = p};
    for (;; p++) {
        if (p == r->end) {
            if (r->line != line) { return fail_at(r, line, "a quote is never closed"); }
            f->length = (size_t)(p - f->text);
            f->cut = f->last = true;
            r->at = p;
            return CRD_OK;
        }
        if (*p == '\n') { r->line++; }
        if (*p != '"') { continue; }
        if (p + 1 == r->end || p[1] != '"') { break; }
        f->doubled = true;
        p++;
    }
    f->length = (size_t)(p - f->text);
    p++;
    while (p < r->end && *p != r->separator && *p != '\n') {
        if (!blank(*p) && *p != '\r') {
            return fail_at(r, r->line, "text after a closing quote, expected a separator");
        }
        p++;
    }
    f->last = p == r->end || *p == '\n';
    r->at = p < r->end ? p + 1 : p;
    r->line += f->last && p < r->end;
    return CRD_OK;
}

static crd_status next_field(reader* r, field* f)
{
    const char *p = r->at, *const end = r->end;
    const char separator = r->separator;
    while (p < end && blank(*p) && *p != separator) {
        p++;
    }
    if (p < end && *p == '"') {
        r->at = p;
        return quoted_field(r, f);
    }
    const char* first = p;
    while (p < end && *p != separator && *p != '\n') {
        p++;
    }
    const char* last = p;
    while (last > first && (blank(last[-1]) || last[-1] == '\r')) {
        last--;
    }
    *f = (field){.text = first, .length = (size_t)(last - first)};
    f->last = p == end || *p == '\n';
    r->at = p < end ? p + 1 : p;
    r->line += f->last && p < end;
    return CRD_OK;
}

static void skip_empty_lines(reader* r)
{
    for (;;) {
        const char* p = r->at;
        while (p < r->end && (*p == ' ' || *p == '\r')) {
            p++;
        }
        if (p == r->end) { r->at = p; }
        if (p == r->end || *p != '\n') { return; }
        r->at = p + 1;
        r->line++;
    }
}

static bool equals(const char* text, size_t length, const char* word)
{
    for (size_t i = 0; i < length; i++) {
        const char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
        if (!word[i] || c != word[i]) { return false; }
    }
    return !word[length];
}

double crdi_text_value(const char* text, size_t length)
{
    double x = (double)NAN;
    if (crdi_parse_double(text, length, &x)) { return x; }
    return equals(text, length, "true") ? 1 : equals(text, length, "false") ? 0 : (double)NAN;
}

// A number, with a comma for the point where that cannot be the separator; or true, false. An empty
// field is no value: NaN.
static bool number(const reader* r, const char* text, size_t length, double* out)
{
    if (crdi_parse_double(text, length, out)) { return true; }
    if (length == 0) {
        *out = (double)NAN;
        return true;
    }
    if (equals(text, length, "true") || equals(text, length, "false")) {
        *out = length == 4;
        return true;
    }
    const char* comma = r->separator != ',' ? memchr(text, ',', length) : NULL;
    char copy[64];
    if (comma && length < sizeof copy) {
        memcpy(copy, text, length);
        copy[comma - text] = '.';
        if (crdi_parse_double(copy, length, out)) { return true; }
    }
    *out = (double)NAN;
    return false;
}

// The field's text with single quotes; at most length + 1 bytes. Returns the end.
static char* copy_field(const field* f, char* to)
{
    if (!f->doubled) {
        memcpy(to, f->text, f->length);
        to += f->length;
    } else {
        for (size_t i = 0; i < f->length; i++) {
            *to++ = f->text[i];
            if (f->text[i] == '"') { i++; }
        }
    }
    *to = 0;
    return to + 1;
}

// ---- header ------------------------------------------------------------------------------------

// The first of the three that stands outside of quotes in the first line
static char find_separator(const reader* r)
{
    bool quoted = false;
    for (const char* p = r->at; p < r->end && (quoted || *p != '\n'); p++) {
        if (*p == '"') { quoted = !quoted; }
        if (!quoted && (*p == ',' || *p == ';' || *p == '\t')) { return *p; }
    }
    return ',';
}

static crd_status count_fields(reader* r)
{
    const reader start = *r;
    field f;
    do {
        const crd_status st = next_field(r, &f);
        if (st < 0) { return st; }
        if (f.cut) { return fail_at(r, start.line, "a quote is never closed"); }
        if (++r->fields == INT32_MAX) { return fail_at(r, start.line, "too many columns"); }
    } while (!f.last);
    const int fields = r->fields;
    *r = start;
    r->fields = fields;
    return CRD_OK;
}

// "x [m]" -> x, m. Brackets without a blank before them are an index: x[1].
static const char* split_unit(char* name)
{
    const size_t n = strlen(name);
    if (n < 3 || name[n - 1] != ']') { return ""; }
    char* open = strrchr(name, '[');
    if (!open || open == name || open[-1] != ' ') { return ""; }
    name[n - 1] = 0;
    char* end = open;
    while (end > name && end[-1] == ' ') {
        end--;
    }
    if (end == name) {
        name[n - 1] = ']';
        return "";
    }
    *end = 0;
    return open + 1;
}

static crd_status add_column(reader* r, int i, char* name, int64_t line)
{
    crdi_table* t = r->t;
    crd_table_column* c = &t->columns[i - 1];
    c->unit = split_unit(name);
    c->name = name;
    if (!name[0]) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: column %d has no name", r->name,
                         (long long)line, i + 1);
    }
    bool fresh = false;
    const crd_status st = crdi_map_add(&t->names, name, i - 1, &fresh);
    if (st < 0) { return st; }
    if (!fresh) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: column '%s' occurs twice", r->name,
                         (long long)line, name);
    }
    return CRD_OK;
}

static crd_status read_header(reader* r)
{
    crd_status st = CRD_OK;
    crdi_table* t = r->t;
    skip_empty_lines(r);
    if (r->at == r->end) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:1: empty, expected a line of column names",
                         r->name);
    }
    r->separator = find_separator(r);
    CRD_TRY(count_fields(r));
    t->view.column_count = r->fields - 1;
    t->columns = crdi_arena_new(&t->arena, (size_t)r->fields, sizeof *t->columns);
    r->is_text = crdi_arena_new(&t->arena, (size_t)r->fields, 1);
    if (!t->columns || !r->is_text) { return CRD_E_MEMORY; }
    t->view.columns = t->columns;
    const int64_t line = r->line;
    for (int i = 0; i < r->fields; i++) {
        field f;
        CRD_TRY(next_field(r, &f));
        double x;
        if (i == 0 && f.length && number(r, f.text, f.length, &x)) {
            return crdi_fail(r->ctx, CRD_E_FORMAT,
                             "%s:%lld: the first line begins with the number %.*s, expected "
                             "column names",
                             r->name, (long long)line, f.length > 40 ? 40 : (int)f.length, f.text);
        }
        char* name = crdi_arena_text(&t->arena, f.text, f.length);
        if (!name) { return CRD_E_MEMORY; }
        copy_field(&f, name);
        if (i > 0) { CRD_TRY(add_column(r, i, name, line)); }
    }
    return CRD_OK;
fail:
    return st;
}

// A second line of "[m]" and empty fields. What has no brackets anywhere is no line of units.
static crd_status read_units(reader* r)
{
    crd_status st = CRD_OK;
    crdi_table* t = r->t;
    skip_empty_lines(r);
    const reader start = *r;
    int count = 0, units = 0;
    field f;
    do {
        if (r->at == r->end && count == 0) { return CRD_OK; }
        CRD_TRY(next_field(r, &f));
        const bool bracketed = f.length >= 2 && f.text[0] == '[' && f.text[f.length - 1] == ']';
        if (f.length && !bracketed) {
            *r = start;
            return CRD_OK;
        }
        units += bracketed;
        count++;
    } while (!f.last);
    const reader behind = *r;
    *r = start;
    if (units == 0 || count != r->fields || f.cut) { return CRD_OK; }
    for (int i = 0; i < r->fields; i++) {
        CRD_TRY(next_field(r, &f));
        if (i == 0 || f.length < 2) { continue; }
        char* unit = crdi_arena_text(&t->arena, f.text + 1, f.length - 2);
        if (!unit) { return CRD_E_MEMORY; }
        f.text++;
        f.length -= 2;
        copy_field(&f, unit);
        t->columns[i - 1].unit = unit;
    }
    *r = behind;
    return CRD_OK;
fail:
    return st;
}

// ---- rows --------------------------------------------------------------------------------------

static crd_status wrong_count(const reader* r, int64_t line, int count)
{
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: %d field%s, expected %d as in the header",
                     r->name, (long long)line, count, count == 1 ? "" : "s", r->fields);
}

static crd_status check_time(const reader* r, int64_t line, size_t row, const field* f, bool read)
{
    const double* time = r->t->values;
    const int n = f->length > 40 ? 40 : (int)f->length;
    if (!read || !isfinite(time[row])) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: time '%.*s' is not a finite number",
                         r->name, (long long)line, n, f->text);
    }
    if (row > 0 && time[row] < time[row - 1]) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s:%lld: time goes back from %.17g to %.*s, expected ascending times",
                         r->name, (long long)line, time[row - 1], n, f->text);
    }
    return CRD_OK;
}

// One row into place `row`. `*complete` false: the file was cut inside of it.
static crd_status read_row(reader* r, size_t row, bool* complete)
{
    const int64_t line = r->line;
    int count = 0;
    bool odd = false; // a text where the rows before had numbers
    field f, time = {0};
    bool time_read = false;
    do {
        const crd_status st = next_field(r, &f);
        if (st < 0) { return st; }
        if (count < r->fields) {
            double* value = &r->t->values[(size_t)count * r->capacity + row];
            const bool read = number(r, f.text, f.length, value);
            if (count == 0) {
                time = f;
                time_read = read;
            } else if (!read && !r->is_text[count]) {
                r->is_text[count] = 1 + (row > 0); // 2: to be taken back if the row is dropped
                odd = true;
            }
        }
        count++;
    } while (!f.last && count < INT32_MAX);
    const bool ended = r->end[-1] == '\n' || r->at < r->end;
    if (!ended && (f.cut || count < r->fields || (odd && row > 0) || !time_read)) {
        for (int i = 0; i < r->fields; i++) {
            if (r->is_text[i] == 2) { r->is_text[i] = 0; }
        }
        *complete = false;
        return CRD_OK;
    }
    if (odd) {
        for (int i = 0; i < r->fields; i++) {
            r->is_text[i] = r->is_text[i] != 0;
        }
    }
    if (count != r->fields) { return wrong_count(r, line, count); }
    return check_time(r, line, row, &time, time_read);
}

static crd_status read_rows(reader* r)
{
    crdi_table* t = r->t;
    // A row has a line, and every field of it a byte behind it: so many rows at most.
    size_t lines = 1;
    for (const char* p = r->at; p < r->end && (p = memchr(p, '\n', (size_t)(r->end - p))); p++) {
        lines++;
    }
    const size_t most = (size_t)(r->end - r->at) / (size_t)r->fields + 1;
    r->capacity = lines < most ? lines : most;
    t->values = crdi_new_array(r->ctx, r->capacity, (size_t)r->fields * sizeof *t->values);
    if (!t->values) { return CRD_E_MEMORY; }
    size_t row = 0;
    for (;;) {
        skip_empty_lines(r);
        if (r->at == r->end) { break; }
        const int64_t line = r->line;
        bool complete = true;
        if (row == r->capacity) { // only a row that is too short gets here
            field f;
            int count = 0;
            do {
                const crd_status st = next_field(r, &f);
                if (st < 0) { return st; }
                count++;
            } while (!f.last);
            if (r->end[-1] == '\n' || r->at < r->end) { return wrong_count(r, line, count); }
            complete = false;
        } else {
            const crd_status st = read_row(r, row, &complete);
            if (st < 0) { return st; }
        }
        if (!complete) {
            crdi_log(r->ctx, CRD_LOG_WARNING,
                     "%s:%lld: the last line is incomplete and left out; was the run killed?",
                     r->name, (long long)line);
            break;
        }
        row++;
    }
    t->view.rows = (int64_t)row;
    t->view.time = t->values;
    for (int i = 0; i < t->view.column_count; i++) {
        crd_table_column* c = &t->columns[i];
        c->values = t->values + (size_t)(i + 1) * r->capacity;
        c->time = t->view.time;
        c->rows = t->view.rows;
    }
    return CRD_OK;
}

// Second pass, from the first row again: r->at stands there.
static crd_status read_texts(reader* r)
{
    crdi_table* t = r->t;
    const size_t rows = (size_t)t->view.rows;
    size_t columns = 0;
    for (int i = 1; i < r->fields; i++) {
        columns += r->is_text[i] != 0;
    }
    if (columns == 0) { return CRD_OK; }
    t->texts = crdi_new_array(r->ctx, (size_t)(r->end - r->at) + 2, 1);
    t->text_rows = crdi_new_array(r->ctx, rows * columns, sizeof *t->text_rows);
    if (!t->texts || !t->text_rows) { return CRD_E_MEMORY; }
    char* to = t->texts;
    for (size_t row = 0; row < rows; row++) {
        skip_empty_lines(r);
        size_t column = 0;
        for (int i = 0; i < r->fields; i++) {
            field f;
            const crd_status st = next_field(r, &f);
            if (st < 0) { return st; }
            if (!r->is_text[i]) { continue; }
            t->text_rows[column++ * rows + row] = to;
            to = copy_field(&f, to);
        }
    }
    size_t column = 0;
    for (int i = 1; i < r->fields; i++) {
        if (!r->is_text[i]) { continue; }
        t->columns[i - 1].texts = t->text_rows + column++ * rows;
        t->columns[i - 1].type = CRD_STRING;
    }
    return CRD_OK;
}

static crd_status refuse_zero_bytes(reader* r)
{
    const size_t length = (size_t)(r->end - r->at);
    const char* zero = length ? memchr(r->at, 0, length) : NULL;
    if (!zero) { return CRD_OK; }
    int64_t line = 1;
    for (const char* p = r->at; p < zero; p++) {
        line += *p == '\n';
    }
    return fail_at(r, line, "a zero byte, expected a text file in UTF-8");
}

crd_status crd_table_parse(crd_context* ctx, const char* text, size_t length,
                           const char* name_in_messages, crd_table** out)
{
    crd_status st = CRD_OK;
    crdi_table* t = NULL;
    CRD_TRY(crdi_table_create(ctx, name_in_messages, 0, &t));
    reader r = {
        .ctx = ctx, .t = t, .name = name_in_messages, .at = text, .end = text + length, .line = 1};
    CRD_TRY(refuse_zero_bytes(&r));
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { r.at += 3; }
    CRD_TRY(read_header(&r));
    CRD_TRY(read_units(&r));
    const char* rows = r.at;
    const int64_t line = r.line;
    CRD_TRY(read_rows(&r));
    r.at = rows;
    r.line = line;
    CRD_TRY(read_texts(&r));
    *out = &t->view;
    return CRD_OK;
fail:
    if (t) { crd_table_destroy(&t->view); }
    return st;
}

// ---- files -------------------------------------------------------------------------------------

// Read, not mapped: a file that shrinks meanwhile must not kill the process.
static crd_status read_all(crd_context* ctx, int fd, const char* path, char** text, size_t* length)
{
    struct stat info;
    if (fstat(fd, &info) < 0) { info.st_size = 0; }
    size_t capacity = 0;
    const size_t guess = info.st_size > 0 ? (size_t)info.st_size + 1 : 65536;
    *length = 0;
    for (;;) {
        const size_t need = *length < guess ? guess : *length + 65536;
        char* p = crdi_grow(ctx, *text, &capacity, need, 1);
        if (!p) { return CRD_E_MEMORY; }
        *text = p;
        const ssize_t n = read(fd, p + *length, capacity - *length);
        if (n == 0) { return CRD_OK; }
        // A zero byte is refused later, with its line; without this /dev/zero would never end.
        if (n > 0 && memchr(p + *length, 0, (size_t)n)) {
            *length += (size_t)n;
            return CRD_OK;
        }
        if (n < 0 && errno == EISDIR) {
            return crdi_fail(ctx, CRD_E_FORMAT, "%s: a folder, expected a CSV file", path);
        }
        if (n < 0 && errno != EINTR) {
            return crdi_fail(ctx, CRD_E_IO, "%s: cannot read it: %s", path, strerror(errno));
        }
        if (n > 0) { *length += (size_t)n; }
    }
}

crd_status crdi_table_read_csv(crd_context* ctx, int fd, const char* path, crd_table** out)
{
    char* text = NULL;
    size_t length = 0;
    crd_status st = read_all(ctx, fd, path, &text, &length);
    if (st == CRD_OK) { st = crd_table_parse(ctx, text, length, path, out); }
    crdi_free(ctx, text);
    return st;
}

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
static crd_status make_columns(crdi_table* t, const crd_recording_info* info, int group,
                               double** time)
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
        crd_table_column c = {.name = crdi_arena_text(&t->arena, s->name, strlen(s->name)),
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

static crd_status read_group(crdi_table* t, crd_recording* r, int group)
{
    crd_status st = CRD_OK;
    const crd_recording_info* info = crd_recording_describe(r);
    const crd_group_info* g = &info->groups[group];
    double* time = NULL;
    crd_cursor* cursor = NULL;
    int* signals = crdi_new_array(t->ctx, (size_t)g->signal_count, sizeof *signals);
    if (!signals) { return CRD_E_MEMORY; }
    for (int i = 0; i < g->signal_count; i++) {
        signals[i] = g->first_signal + i;
    }
    CRD_TRY(make_columns(t, info, group, &time));
    CRD_TRY(crd_cursor_open(r, group, signals, g->signal_count, &cursor));
    int64_t rows = 0;
    for (;;) {
        crd_block b;
        CRD_TRY(crd_cursor_next(cursor, &b));
        if (b.rows == 0) { break; }
        CRD_TRY(copy_block(t, &b, g->first_signal, g->signal_count, time));
        rows += b.rows;
    }
    if (group == 0) { t->view.rows = rows; } // fewer where an unfinished file ends in nothing
    for (int i = 0; i < g->signal_count; i++) {
        t->columns[g->first_signal + i].rows = rows;
    }
fail:
    crd_cursor_close(cursor);
    crdi_free(t->ctx, signals);
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
    for (int i = 0; i < info->group_count; i++) {
        CRD_TRY(read_group(t, r, i));
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
    crdi_arena_init(&t->arena, ctx);
    crdi_map_init(&t->names, ctx);
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
    crdi_free(t->ctx, t->values);
    crdi_free(t->ctx, t->texts);
    crdi_free(t->ctx, t->text_rows);
    crdi_map_clear(&t->names);
    crdi_arena_clear(&t->arena);
    crdi_free(t->ctx, t);
}

// ---- access ------------------------------------------------------------------------------------

int crd_table_find(const crd_table* view, const char* name)
{
    return crdi_map_find(&((const crdi_table*)view)->names, name);
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
