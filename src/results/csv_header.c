// The head of a CSV file: which separator, which column is time, names and units, in the forms that
// other programs and people give them.
#include "results/csv_read.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 1000000 }; // a column takes more memory than the comma that makes it

typedef struct name {
    char* whole; // as it stands in the header
    char* text;  // without its unit
    const char* unit;
} name;

// ---- units -------------------------------------------------------------------------------------

static bool is_unit(const char* text)
{
    crd_dimension d;
    return text[0] && crd_dimension_parse(text, &d);
}

// Seconds in one of it; 0: it is no unit of time.
static double time_unit(const char* text)
{
    static const struct {
        const char* word;
        double factor;
    } words[] = {{"sec", 1},      {"secs", 1},    {"second", 1},         {"seconds", 1},
                 {"msec", 1e-3},  {"usec", 1e-6}, {"millisecond", 1e-3}, {"milliseconds", 1e-3},
                 {"minutes", 60}, {"hours", 3600}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (crdi_csv_equals(text, strlen(text), words[i].word)) { return words[i].factor; }
    }
    crd_dimension d, s;
    crd_dimension_parse("s", &s);
    return is_unit(text) && crd_dimension_parse(text, &d) && crd_dimension_equal(&d, &s) ? d.factor
                                                                                         : 0;
}

// Numbers, commas, colons: x[1], x[1,2], x[1:3].
static bool is_index(const char* text)
{
    return text[strspn(text, "0123456789,:; ")] == 0;
}

// The unit at the end of a name is cut off: "x [m]", "x[m]", "x (m)", "x/(m)", "x / m". Only the
// first form, with its blank, takes units that are not known; the others may be part of a name.
// "x[1]" is an element, der(x) a name.
static void split_unit(name* n)
{
    char* text = n->text;
    const size_t length = strlen(text);
    n->unit = "";
    if (length < 3) { return; }
    const char last = text[length - 1];
    char* open = NULL;
    if (last == ']' || last == ')') {
        int depth = 0; // "v / (m/(s.s))"
        for (char* p = text + length - 1; p > text && !open; p--) {
            depth += *p == last ? 1 : *p == (last == ']' ? '[' : '(') ? -1 : 0;
            if (depth == 0) { open = p; }
        }
        if (!open) { return; }
        text[length - 1] = 0;
        const bool apart = open[-1] == ' ', slash = open[-1] == '/';
        const bool sure = last == ']' && apart;
        if (!sure &&
            (is_index(open + 1) || !is_unit(open + 1) || (last == ')' && !apart && !slash))) {
            text[length - 1] = last;
            return;
        }
        n->unit = open + 1;
    } else {
        open = strstr(text, " / ");
        if (!open || open == text || !is_unit(open + 3)) { return; }
        n->unit = open + 3;
    }
    char* end = open;
    while (end > text && (end[-1] == ' ' || end[-1] == '/')) {
        end--;
    }
    if (end == text) { // nothing but a unit is a name
        if (last == ']' || last == ')') { text[length - 1] = last; }
        n->unit = "";
        return;
    }
    *end = 0;
    if (strcmp(n->unit, "-") == 0) { n->unit = ""; }
}

// Times say their unit in still other ways: t/ms, time(ms), time_ms.
static const char* unit_of_time(const name* n)
{
    static char const* const endings[] = {"_ms", "_us", "_ns"};
    if (n->unit[0]) { return n->unit; }
    const size_t length = strlen(n->text);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (length > 3 && strcmp(n->text + length - 3, endings[i]) == 0) {
            return n->text + length - 2;
        }
    }
    char* open = strchr(n->text, '(');
    if (open && n->text[length - 1] == ')') {
        n->text[length - 1] = 0;
        if (time_unit(open + 1) > 0) { return open + 1; }
        n->text[length - 1] = ')';
    }
    const char* slash = strrchr(n->text, '/');
    return slash && time_unit(slash + 1) > 0 ? slash + 1 : "";
}

static void set_time_unit(crdi_csv* r, const char* unit, int64_t line)
{
    crd_dimension d;
    const double factor = time_unit(unit);
    if (factor > 0) {
        // Division by a whole number keeps 3 ms the double nearest 0.003.
        const double divisor = factor < 1 ? nearbyint(1 / factor) : 1;
        r->time_divisor = divisor;
        r->time_factor = factor < 1 ? 1 : factor;
    } else if (unit[0] && !(crd_dimension_parse(unit, &d) &&
                            crd_dimension_equal(&d, &(crd_dimension){.factor = 1}))) {
        crdi_log(r->ctx, CRD_LOG_WARNING,
                 "%s:%lld: the column of times is in '%s', which is no unit of time; its numbers "
                 "are taken for seconds",
                 r->name, (long long)line, unit);
    }
}

// ---- texts -------------------------------------------------------------------------------------

// The text of a field.
static char* csv_header_keep_text(crdi_csv* r, const crdi_csv_field* f)
{
    char* text = crdi_arena_text(&r->t->arena, f->text, f->length);
    if (!text) { return NULL; }
    crdi_csv_copy(f, text);
    return crdi_table_utf8(&r->t->arena, text);
}

// ---- separator ---------------------------------------------------------------------------------

static const char* line_end(const crdi_csv* r, const char* p)
{
    const char* newline = p < r->end ? memchr(p, '\n', (size_t)(r->end - p)) : NULL;
    return newline ? newline : r->end;
}

static bool begins_with_number(crdi_csv r, char separator)
{
    crdi_csv_field f;
    double x;
    r.separator = separator;
    return crdi_csv_next(&r, &f) == CRD_OK && f.length && crdi_csv_number(&r, f.text, f.length, &x);
}

// The first of the three that stands outside of quotes in the line. Without one, blanks if the rows
// have them, too.
static char find_separator(const crdi_csv* r)
{
    bool quoted = false;
    const char* p = r->at;
    for (; p < r->end && (quoted || *p != '\n'); p++) {
        if (*p == '"') { quoted = !quoted; }
        if (!quoted && (*p == ',' || *p == ';' || *p == '\t')) { return *p; }
    }
    crdi_csv next = *r;
    next.at = p < r->end ? p + 1 : p;
    crdi_csv_skip(&next);
    if (next.at == r->end || !begins_with_number(next, ' ')) { return ','; }
    const char* first = next.at;
    while (*first == ' ') {
        first++;
    }
    const char* end = line_end(r, first);
    const char* gap = memchr(first, ' ', (size_t)(end - first));
    while (gap && gap < end && (*gap == ' ' || *gap == '\r')) {
        gap++;
    }
    return gap && gap < end ? ' ' : ',';
}

static crd_status count_fields(const crdi_csv* start, int* count, int* named)
{
    crdi_csv r = *start;
    crdi_csv_field f;
    *count = *named = 0;
    do {
        const crd_status st = crdi_csv_next(&r, &f);
        if (st < 0) { return st; }
        if (f.cut) { return crdi_csv_fail(&r, start->line, "a quote is never closed"); }
        if (++*count == INT32_MAX) { return crdi_csv_fail(&r, start->line, "too many columns"); }
        if (f.length) { *named = *count; }
    } while (!f.last);
    return CRD_OK;
}

// Excel's first line "sep=;"
static bool take_separator_line(crdi_csv* r)
{
    const char* end = line_end(r, r->at);
    size_t length = (size_t)(end - r->at);
    if (length && end[-1] == '\r') { length--; }
    if (length != 5 || memcmp(r->at, "sep=", 4) != 0 || !strchr(",;\t", r->at[4])) { return false; }
    r->separator = r->at[4];
    r->at = end < r->end ? end + 1 : end;
    r->line++;
    return true;
}

// To the line of names. It may be the last comment, if rows follow that have as many fields: so
// numpy.savetxt writes it.
static crd_status find_header(crdi_csv* r)
{
    crdi_csv comment = *r;
    comment.at = NULL;
    bool given = false;
    for (;;) {
        while (r->at < r->end && strchr(" \r\n", *r->at)) {
            r->line += *r->at++ == '\n';
        }
        if (r->at < r->end && *r->at == '#') {
            comment = *r;
            const char* end = line_end(r, r->at);
            while (comment.at < end && (*comment.at == '#' || *comment.at == ' ')) {
                comment.at++;
            }
            r->at = end < r->end ? end + 1 : end;
            r->line += end < r->end;
        } else if (!given && take_separator_line(r)) {
            given = true;
        } else {
            break;
        }
    }
    if (r->at == r->end) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:1: empty, expected a line of column names",
                         r->name);
    }
    if (!given) { r->separator = find_separator(r); }
    if (!comment.at || !begins_with_number(*r, r->separator)) { return CRD_OK; }
    comment.separator = given ? r->separator : find_separator(&comment);
    crdi_csv row = *r;
    row.separator = comment.separator;
    int names = 0, values = 0, named = 0;
    crd_status st = count_fields(&comment, &names, &named);
    if (st == CRD_OK) { st = count_fields(&row, &values, &named); }
    // Some other remark: then it is the row that is told to be no header.
    if (names == values && !begins_with_number(comment, comment.separator)) { *r = comment; }
    return st;
}

// ---- names -------------------------------------------------------------------------------------

static bool sounds_like_time(const char* text)
{
    return crdi_csv_equals(text, strlen(text) < 4 ? strlen(text) : 4, "time") ||
           crdi_csv_equals(text, strlen(text), "t") || crdi_csv_equals(text, strlen(text), "zeit");
}

// "SimTime", "abs_time", "Zeitpunkt": whoever called a column so meant it.
static bool tells_time(const char* text)
{
    for (const char* p = text; *p; p++) {
        if (crdi_csv_equals(p, strlen(p) < 4 ? strlen(p) : 4, "time") ||
            crdi_csv_equals(p, strlen(p) < 4 ? strlen(p) : 4, "zeit")) {
            return true;
        }
    }
    return sounds_like_time(text);
}

// A recording without time would be a signal over another one, without a word. One without a name
// is an index that pandas wrote.
static void doubt_time(const crdi_csv* r, const name* n, const char* unit, int64_t line)
{
    if (!n->text[0] || unit[0] || tells_time(n->text)) { return; }
    crdi_log(r->ctx, CRD_LOG_WARNING,
             "%s:%lld: no column is called time; the first one, '%s', is taken for it, in seconds",
             r->name, (long long)line, n->text);
}

// The first column, unless another one is called time and this one is not: pandas writes an index
// without a name before it.
static int find_time(const crdi_csv* r, const name* names)
{
    if (sounds_like_time(names[0].text)) { return 0; }
    for (int i = 1; i < r->fields; i++) {
        const size_t length = strlen(names[i].text);
        if (crdi_csv_equals(names[i].text, length, "time")) { return i; }
    }
    return 0;
}

static crd_status csv_header_add_column(crdi_csv* r, int field, name* n, int64_t line)
{
    crdi_table* t = r->t;
    const int i = crdi_csv_slot(r, field) - 1;
    crd_table_column* c = &t->columns[i];
    if (!n->whole[0] && field == 0) { n->text = n->whole = (char*)"index"; }
    if (!n->text[0]) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: column %d has no name", r->name,
                         (long long)line, field + 1);
    }
    // "v [km/h]" beside "v [m/s]": the second keeps its whole name.
    const int same = crdi_map_find(&t->names, n->text);
    if (same >= 0 && strcmp(t->columns[same].unit, n->unit) != 0) { n->text = n->whole; }
    c->name = n->text;
    c->unit = n->unit;
    bool fresh = false;
    const crd_status st = crdi_map_add(&t->names, c->name, i, &fresh);
    if (st < 0) { return st; }
    if (!fresh) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: column '%s' occurs twice", r->name,
                         (long long)line, c->name);
    }
    return CRD_OK;
}

static crd_status csv_header_read_names(crdi_csv* r, name* names)
{
    crd_status st = CRD_OK;
    const int64_t line = r->line;
    crdi_csv_field f;
    for (int i = 0; i == 0 || !f.last; i++) {
        CRD_TRY(crdi_csv_next(r, &f));
        double x;
        if (i == 0 && f.length && crdi_csv_number(r, f.text, f.length, &x)) {
            return crdi_fail(r->ctx, CRD_E_FORMAT,
                             "%s:%lld: the first line begins with the number %.*s, expected "
                             "column names",
                             r->name, (long long)line, f.length > 40 ? 40 : (int)f.length, f.text);
        }
        if (i >= r->fields) { continue; } // empty, behind the last name
        names[i].whole = csv_header_keep_text(r, &f);
        if (!names[i].whole) { return CRD_E_MEMORY; }
        names[i].text = crdi_arena_text(&r->t->arena, names[i].whole, strlen(names[i].whole));
        if (!names[i].text) { return CRD_E_MEMORY; }
        split_unit(&names[i]);
    }
    r->time_field = find_time(r, names);
    for (int i = 0; i < r->fields; i++) {
        if (i != r->time_field) { CRD_TRY(csv_header_add_column(r, i, &names[i], line)); }
    }
fail:
    return st;
}

// ---- a row of units ----------------------------------------------------------------------------

// "[m]", "(m)", "m" -> m; "-" is none. The field's own text, bounded by `*length`.
static const char* bare_unit(const crdi_csv_field* f, size_t* length, bool* bracketed)
{
    const char* text = f->text;
    *length = f->length;
    *bracketed = f->length >= 2 && ((text[0] == '[' && text[f->length - 1] == ']') ||
                                    (text[0] == '(' && text[f->length - 1] == ')'));
    if (*bracketed) {
        text++;
        *length -= 2;
    }
    if (*length == 1 && *text == '-') { *length = 0; }
    return text;
}

// The second line is one of units if all that it has stands in brackets, or if its time is a unit
// of time and nothing in it is a number (but 1, of what has no dimension).
static crd_status is_unit_row(crdi_csv r, bool* yes)
{
    int count = 0, used = 0, units = 0, bare = 0, numbers = 0;
    bool time = false;
    crdi_csv_field f;
    do {
        const crd_status st = crdi_csv_next(&r, &f);
        if (st < 0) { return st; }
        size_t length;
        bool bracketed;
        double x;
        const char* text = bare_unit(&f, &length, &bracketed);
        units += bracketed;
        bare += f.length && !bracketed;
        numbers += f.length && length && crdi_csv_number(&r, text, length, &x) &&
                   !(length == 1 && *text == '1');
        if (count == r.time_field && length && length < 32) {
            char copy[32];
            memcpy(copy, text, length);
            copy[length] = 0;
            time = time_unit(copy) > 0;
        }
        count++;
        if (count <= r.fields || f.length) { used = count; }
    } while (!f.last);
    *yes = used == r.fields && !f.cut && ((units && !bare) || (time && !numbers));
    return CRD_OK;
}

static crd_status read_units(crdi_csv* r, name* time)
{
    crd_status st = CRD_OK;
    crdi_table* t = r->t;
    crdi_csv_skip(r);
    bool yes = false;
    if (r->at < r->end) { CRD_TRY(is_unit_row(*r, &yes)); }
    if (!yes) { return CRD_OK; }
    crdi_csv_field f;
    int i = 0;
    do {
        CRD_TRY(crdi_csv_next(r, &f));
        if (f.length == 0 || i >= r->fields) {
            i++;
            continue;
        }
        bool bracketed;
        f.text = bare_unit(&f, &f.length, &bracketed);
        const char* unit = csv_header_keep_text(r, &f);
        if (!unit) { return CRD_E_MEMORY; }
        const int slot = crdi_csv_slot(r, i++);
        if (slot == 0) {
            time->unit = unit;
        } else {
            t->columns[slot - 1].unit = unit;
        }
    } while (!f.last);
fail:
    return st;
}

crd_status crdi_csv_header(crdi_csv* r)
{
    crd_status st = CRD_OK;
    crdi_table* t = r->t;
    int count = 0;
    CRD_TRY(find_header(r));
    const int64_t line = r->line;
    CRD_TRY(count_fields(r, &count, &r->fields));
    if (r->fields == 0) { r->fields = 1; }
    if (r->fields > MOST_COLUMNS) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%lld: %d columns, expected at most %d", r->name,
                         (long long)r->line, r->fields, MOST_COLUMNS);
    }
    t->view.column_count = r->fields - 1;
    t->columns = crdi_arena_new(&t->arena, (size_t)r->fields, sizeof *t->columns);
    r->is_text = crdi_arena_new(&t->arena, (size_t)r->fields, 1);
    name* names = crdi_arena_new(&t->arena, (size_t)r->fields, sizeof *names);
    if (!t->columns || !r->is_text || !names) { return CRD_E_MEMORY; }
    t->view.columns = t->columns;
    CRD_TRY(csv_header_read_names(r, names));
    CRD_TRY(read_units(r, &names[r->time_field]));
    const char* unit = unit_of_time(&names[r->time_field]);
    set_time_unit(r, unit, line);
    doubt_time(r, &names[r->time_field], unit, line);
fail:
    return st;
}
