// Reading CSV: the text is cut into fields once, numbers go straight into their columns. Columns
// that turn out to hold texts get them in a second pass.
#include "results/csv_read.h"
#include "shared/base_path.h"
#include "shared/base_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

crd_status crdi_csv_fail(const crdi_csv* r, int64_t line, const char* what)
{
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: %s", r->name, (long long)line, what);
}

// ---- fields ------------------------------------------------------------------------------------

// The field ends at p: go to the next one.
static void leave_field(crdi_csv* r, crdi_csv_field* f, const char* p)
{
    while (r->separator == ' ' && p < r->end && (blank(*p) || *p == '\r')) {
        p++;
    }
    f->last = p == r->end || *p == '\n';
    r->line += f->last && p < r->end;
    r->at = p < r->end && (f->last || r->separator != ' ') ? p + 1 : p;
}

static crd_status quoted_field(crdi_csv* r, crdi_csv_field* f)
{
    const int64_t line = r->line;
    const char* p = ++r->at;
    *f = (crdi_csv_field){.text = p};
    for (;; p++) {
        if (p == r->end) {
            if (r->line != line) { return crdi_csv_fail(r, line, "a quote is never closed"); }
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
            return crdi_csv_fail(r, r->line, "text after a closing quote, expected a separator");
        }
        p++;
    }
    leave_field(r, f, p);
    return CRD_OK;
}

crd_status crdi_csv_next(crdi_csv* r, crdi_csv_field* f)
{
    const char *p = r->at, *const end = r->end;
    const char separator = r->separator;
    while (p < end && blank(*p) && (*p != separator || separator == ' ')) {
        p++;
    }
    if (p < end && *p == '"') {
        r->at = p;
        return quoted_field(r, f);
    }
    const char* first = p;
    const char other = separator == ' ' ? '\t' : separator;
    while (p < end && *p != separator && *p != other && *p != '\n') {
        p++;
    }
    const char* last = p;
    while (last > first && (blank(last[-1]) || last[-1] == '\r')) {
        last--;
    }
    *f = (crdi_csv_field){.text = first, .length = (size_t)(last - first)};
    leave_field(r, f, p);
    return CRD_OK;
}

void crdi_csv_skip(crdi_csv* r)
{
    for (;;) {
        const char* p = r->at;
        while (p < r->end && (*p == ' ' || *p == '\r')) {
            p++;
        }
        if (p < r->end && *p == '#') {
            const char* newline = memchr(p, '\n', (size_t)(r->end - p));
            p = newline ? newline : r->end;
        }
        if (p == r->end) { r->at = p; }
        if (p == r->end || *p != '\n') { return; }
        r->at = p + 1;
        r->line++;
    }
}

bool crdi_csv_equals(const char* text, size_t length, const char* word)
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
    if (crdi_csv_equals(text, length, "true")) { return 1; }
    return crdi_csv_equals(text, length, "false") ? 0 : (double)NAN;
}

bool crdi_csv_number(const crdi_csv* r, const char* text, size_t length, double* out)
{
    if (crdi_parse_double(text, length, out)) { return true; }
    if (length == 0) {
        *out = (double)NAN;
        return true;
    }
    if (crdi_csv_equals(text, length, "true") || crdi_csv_equals(text, length, "false")) {
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

char* crdi_csv_copy(const crdi_csv_field* f, char* to)
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

// ---- rows --------------------------------------------------------------------------------------

static crd_status wrong_count(const crdi_csv* r, int64_t line, int count)
{
    const bool comma = r->separator == ',' && count > r->fields;
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: %d field%s, expected %d as in the header%s",
                     r->name, (long long)line, count, count == 1 ? "" : "s", r->fields,
                     comma ? "; where numbers have a decimal comma, semicolons must separate them"
                           : "");
}

static crd_status check_time(const crdi_csv* r, int64_t line, size_t row, const crdi_csv_field* f,
                             bool read)
{
    const double* time = r->t->values;
    const int n = f->length > 40 ? 40 : (int)f->length;
    if (!read || !isfinite(time[row])) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s:%lld: time '%.*s' is not a finite number, expected seconds", r->name,
                         (long long)line, n, f->text);
    }
    if (row > 0 && time[row] < time[row - 1]) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s:%lld: time goes back from %.17g to %.*s, expected ascending times",
                         r->name, (long long)line, time[row - 1], n, f->text);
    }
    return CRD_OK;
}

// One row into place `row`. `*complete` false: the file was cut inside of it.
static crd_status read_row(crdi_csv* r, size_t row, bool* complete)
{
    const int64_t line = r->line;
    int count = 0, used = 0; // fields, and up to the last one that is not empty
    bool odd = false;        // a text where the rows before had numbers
    crdi_csv_field f, time = {0};
    bool time_read = false;
    do {
        const crd_status st = crdi_csv_next(r, &f);
        if (st < 0) { return st; }
        if (count < r->fields) {
            const int slot = crdi_csv_slot(r, count);
            double* value = &r->t->values[(size_t)slot * r->capacity + row];
            const bool read = crdi_csv_number(r, f.text, f.length, value);
            if (slot == 0) {
                *value = *value * r->time_factor / r->time_divisor;
                time = f;
                time_read = read;
            } else if (!read && !r->is_text[slot]) {
                r->is_text[slot] = 1 + (row > 0); // 2: to be taken back if the row is dropped
                odd = true;
            }
        }
        count++;
        if (count <= r->fields || f.length) { used = count; }
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
    if (used != r->fields) { return wrong_count(r, line, used); }
    return check_time(r, line, row, &time, time_read);
}

static void show_bytes(const crdi_csv* r, const char* begin)
{
    char part[64];
    if (!crdi_progress_is_shown(r->ctx)) { return; }
    snprintf(part, sizeof part, "reading %.50s", r->name + crdi_folder_length(r->name));
    crdi_progress(r->ctx, part, (double)(r->at - begin), (double)(r->end - begin), "B");
}

static crd_status csv_read_rows(crdi_csv* r)
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
    const char* begin = r->at;
    size_t row = 0;
    for (;;) {
        if (row % 4096 == 0) { show_bytes(r, begin); }
        crdi_csv_skip(r);
        if (r->at == r->end) { break; }
        const int64_t line = r->line;
        bool complete = true;
        if (row == r->capacity) { // only a row that is too short gets here
            crdi_csv_field f;
            int count = 0;
            do {
                const crd_status st = crdi_csv_next(r, &f);
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
static crd_status csv_read_texts(crdi_csv* r)
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
        crdi_csv_skip(r);
        size_t column = 0;
        crdi_csv_field f;
        int i = 0;
        do {
            const crd_status st = crdi_csv_next(r, &f);
            if (st < 0) { return st; }
            if (i >= r->fields || !r->is_text[crdi_csv_slot(r, i++)]) { continue; }
            t->text_rows[column++ * rows + row] = to;
            to = crdi_csv_copy(&f, to);
        } while (!f.last);
    }
    size_t column = 0;
    for (int i = 1; i < r->fields; i++) {
        if (!r->is_text[i]) { continue; }
        t->columns[i - 1].texts = t->text_rows + column++ * rows;
        t->columns[i - 1].type = CRD_STRING;
    }
    return CRD_OK;
}

static crd_status refuse_other_texts(crdi_csv* r)
{
    const size_t length = (size_t)(r->end - r->at);
    if (length == 0) { return CRD_OK; }
    const char* zero = memchr(r->at, 0, length);
    if (zero) {
        int64_t line = 1;
        for (const char* p = r->at; p < zero; p++) {
            line += *p == '\n';
        }
        return crdi_csv_fail(r, line, "a zero byte, expected a text file in UTF-8");
    }
    if (memchr(r->at, '\r', length) && !memchr(r->at, '\n', length)) {
        return crdi_csv_fail(r, 1, "its lines end in CR alone, expected LF or CR LF");
    }
    return CRD_OK;
}

crd_status crd_table_parse(crd_context* ctx, const char* text, size_t length,
                           const char* name_in_messages, crd_table** out)
{
    crd_status st = CRD_OK;
    crdi_table* t = NULL;
    CRD_TRY(crdi_table_create(ctx, name_in_messages, 0, &t));
    crdi_csv r = {.ctx = ctx,
                  .t = t,
                  .name = name_in_messages,
                  .at = text,
                  .end = text + length,
                  .line = 1,
                  .time_factor = 1,
                  .time_divisor = 1};
    CRD_TRY(refuse_other_texts(&r));
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { r.at += 3; }
    CRD_TRY(crdi_csv_header(&r));
    const char* rows = r.at;
    const int64_t line = r.line;
    CRD_TRY(csv_read_rows(&r));
    r.at = rows;
    r.line = line;
    CRD_TRY(csv_read_texts(&r));
    *out = &t->view;
    return CRD_OK;
fail:
    if (t) { crd_table_destroy(&t->view); }
    return st;
}

// ---- files -------------------------------------------------------------------------------------

crd_status crdi_table_read_csv(crd_context* ctx, int fd, const char* path, crd_table** out)
{
    // Read, not mapped: a file that shrinks meanwhile must not kill the process.
    static const crdi_file_need need = {
        .what = "a CSV, MF4 or MAT file", .most = SIZE_MAX, .pipes = true, .text = true};
    struct stat info;
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = fstat(fd, &info) == 0 && S_ISREG(info.st_mode)
                        ? crdi_table_check_size(ctx, path, (double)info.st_size / sizeof(double))
                        : CRD_OK;
    if (st == CRD_OK) { st = crdi_file_read_from(ctx, fd, path, &need, &text); }
    if (st == CRD_OK && text.length > 8 &&
        (memcmp(text.data, "MDF     ", 8) == 0 || memcmp(text.data, "MATLAB 5", 8) == 0 ||
         memcmp(text.data, "\x89HDF", 4) == 0)) { // regular files were told apart before
        st = crdi_fail(ctx, CRD_E_UNSUPPORTED,
                       "%s: only CSV can be read from a pipe; MF4 and MAT need a file", path);
    }
    if (st == CRD_OK) { st = crd_table_parse(ctx, text.data, text.length, path, out); }
    crd_text_clear(&text);
    return st;
}
