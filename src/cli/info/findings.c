#include "cli/info/findings.h"
#include "cli/printable.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct finding {
    const char* text; // the whole sentence
    bool error;
    size_t place;         // bytes of "file:line: "
    size_t file;          // bytes of the file's name, if it is another one than asked for
    int line, order;      // from 1, 0: none
    const char* quoted;   // the line itself, NULL: not known
    size_t length;        // of it
    size_t from, to;      // the part that the sentence is about, the whole line unless known
    size_t column, width; // from 0, bytes; width 0: none
} finding;

static void keep_warning(void* user, crd_level level, const char* text)
{
    crdi_remarks* t = user;
    if (level > CRD_LOG_WARNING) {
        crdi_log_on(t->cli->ctx, level, text);
        return;
    }
    crdi_findings* list = level == CRD_LOG_ERROR ? &t->findings : &t->warnings;
    const char** grown = crdi_grow(list->arena.ctx, list->texts, &list->capacity,
                                   (size_t)list->count + 1, sizeof *grown);
    const char* copy = grown ? crdi_arena_text(&list->arena, text, strlen(text)) : NULL;
    if (grown) { list->texts = grown; }
    if (!copy) { return; }
    if (!list->count) { list->first = CRD_E_FORMAT; } // an SSP logs all errors but the first
    list->texts[list->count++] = copy;
}

crd_status crdi_remarks_begin(crdi_remarks* t, crdi_cli* cli)
{
    *t = (crdi_remarks){.cli = cli};
    crd_arena_init(&t->findings.arena, cli->ctx);
    crd_arena_init(&t->warnings.arena, cli->ctx);
    t->ctx = crdi_context_tap(cli->ctx, keep_warning, t);
    if (!t->ctx) { return CRD_E_MEMORY; }
    crdi_findings_collect(t->ctx, &t->findings);
    return CRD_OK;
}

void crdi_remarks_end(crdi_remarks* t)
{
    crdi_findings_clear(&t->findings);
    crdi_findings_clear(&t->warnings);
    crd_context_destroy(t->ctx);
}

// ---- places ------------------------------------------------------------------------------------

// "car.ssp/SystemStructure.ssd:12: " at the beginning: another file than the one that is quoted.
static void find_other(finding* f)
{
    const char* colon = strstr(f->text, ": ");
    const char* line = colon;
    while (line && line > f->text && isdigit((unsigned char)line[-1])) {
        line--;
    }
    if (!colon || line == colon || line - 1 <= f->text || line[-1] != ':') { return; }
    f->file = (size_t)(line - 1 - f->text);
    f->line = atoi(line);
    f->place = (size_t)(colon + 2 - f->text);
}

// "path:12: " at the beginning.
static void find_line(finding* f, const char* path, const crd_text* file)
{
    const size_t n = strlen(path);
    if (strncmp(f->text, path, n) != 0 || f->text[n] != ':') {
        find_other(f);
        return;
    }
    char* end;
    const long line = strtol(f->text + n + 1, &end, 10);
    if (line <= 0 || line > 100000000 || strncmp(end, ": ", 2) != 0) { return; }
    f->line = (int)line;
    f->place = (size_t)(end + 2 - f->text);
    size_t at = 0;
    for (long i = 1; i < line && at < file->length; i++) {
        const char* next = memchr(file->data + at, '\n', file->length - at);
        at = next ? (size_t)(next - file->data) + 1 : file->length;
    }
    if (at >= file->length) { return; }
    f->quoted = file->data + at;
    const char* next = memchr(f->quoted, '\n', file->length - at);
    f->length = next ? (size_t)(next - f->quoted) : file->length - at;
    if (f->length && f->quoted[f->length - 1] == '\r') { f->length--; }
}

static size_t characters(const char* text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return n;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

// "connections[3]" of a list that stands in the line: the third item of it.
static void find_item(finding* f)
{
    const char* text = f->text + f->place;
    const size_t n = strcspn(text, "[ :.");
    const int wanted = text[n] == '[' ? atoi(text + n + 1) : 0;
    f->from = 0;
    f->to = f->length;
    const char* key = wanted > 0 ? memmem(f->quoted, f->length, text, n) : NULL;
    if (!key) { return; }
    size_t i = (size_t)(key - f->quoted) + n;
    while (i < f->length && strchr(": ", f->quoted[i])) {
        i++;
    }
    if (i == f->length || f->quoted[i] != '[') { return; }
    int depth = 0, item = 1;
    char quote = 0;
    size_t begin = i + 1;
    for (; i < f->length; i++) {
        const char c = f->quoted[i];
        if (quote || c == '"' || c == '\'') {
            quote = !quote ? c : c == quote ? 0 : quote;
            continue;
        }
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        if (depth > 1 || (depth == 1 && c != ',')) { continue; }
        if (item == wanted) { break; }
        if (depth == 0) { return; }
        item++;
        begin = i + 1;
    }
    f->from = begin;
    f->to = i;
}

// A word of the message in the line, whole.
static bool find_word(finding* f, const char* word, size_t n)
{
    for (size_t i = f->from; n > 0 && i + n <= f->to; i++) {
        if (memcmp(f->quoted + i, word, n) != 0 || (i > 0 && is_letter(f->quoted[i - 1])) ||
            (i + n < f->length && is_letter(f->quoted[i + n]))) {
            continue;
        }
        f->column = i;
        f->width = n;
        return true;
    }
    return false;
}

// The last part of the path that ends at `end`.
static bool find_base(finding* f, const char* from, const char* end)
{
    const char* base = end;
    while (base > from && base[-1] != '/' && base[-1] != ' ') {
        base--;
    }
    return find_word(f, base, (size_t)(end - base));
}

// "'motor' has no variable 'torqe'": the second part of motor.torqe, which the line may have.
static bool find_dotted(finding* f, const char* text)
{
    char unit[200], name[200], both[401];
    if (sscanf(text, "'%199[^']' has no variable '%199[^']'", unit, name) != 2) { return false; }
    const int n = snprintf(both, sizeof both, "%s.%s", unit, name);
    if (!find_word(f, both, (size_t)n)) { return false; }
    f->column += strlen(unit) + 1;
    f->width = strlen(name);
    return true;
}

// "connection to motor.torque: ...": what stands behind an arrow, or behind to:
static bool find_target(finding* f, const char* text)
{
    static const char before[] = "connection to ";
    if (strncmp(text, before, sizeof before - 1) != 0) { return false; }
    const char* name = text + sizeof before - 1;
    const size_t n = strcspn(name, ":"), whole = f->from;
    while (find_word(f, name, n)) {
        size_t i = f->column;
        while (i > 0 && strchr(" '\"", f->quoted[i - 1])) {
            i--;
        }
        if (i > 0 && strchr(">:", f->quoted[i - 1])) { break; }
        f->from = f->column + n;
        f->width = 0;
    }
    f->from = whole;
    return f->width > 0;
}

// What the sentence is about: its first word if it has a dot (a.y is in ...), then what stands in
// quotes, then the key at the end of the path, else the whole line.
static void find_column(finding* f)
{
    const char* text = f->text + f->place;
    const size_t first = strcspn(text, " :");
    if (!f->quoted) { return; }
    find_item(f);
    if (memchr(text, '.', first) && text[first] == ' ' && find_word(f, text, first)) { return; }
    if (find_dotted(f, text) || find_target(f, text)) { return; }
    const char* missing = strstr(text, "has no variable '");
    if (!missing) { missing = strstr(text, "has no connector '"); }
    const char* about = missing                           ? missing
                        : strncmp(text, "unit '", 6) == 0 ? strstr(text, "': ")
                                                          : NULL;
    about = missing || !about ? about : about + 2;
    const char* hint = strstr(text, "did you mean '"); // not what stands there
    for (const char* q = strchr(about ? about : text, '\''); q && (!hint || q < hint);
         q = strchr(q + 1, '\'')) {
        const char* end = strchr(q + 1, '\'');
        if (!end) { break; }
        if (find_word(f, q + 1, (size_t)(end - q) - 1)) { return; }
        q = end;
    }
    const char* named = about && !missing ? strstr(about + 1, ": ") : NULL; // of a unit: a file
    if (named && find_base(f, about, named)) { return; }
    const char* colon = strstr(text, ": ");
    const char* key = colon;
    while (key && key > text && key[-1] != '.' && key[-1] != ' ') {
        key--;
    }
    if (key && find_word(f, key, (size_t)(colon - key))) { return; }
    size_t from = f->from, to = f->to;
    while (from < to && strchr(" \t", f->quoted[from])) {
        from++;
    }
    const char* comment = to > from ? memchr(f->quoted + from, '#', to - from) : NULL;
    if (comment && comment > f->quoted + from && comment[-1] == ' ') {
        to = (size_t)(comment - f->quoted);
    }
    while (to > from && strchr(" \t", f->quoted[to - 1])) {
        to--;
    }
    f->column = from;
    f->width = to - from;
}

// A sentence about a file that the description names ("run.xls: results are ...").
static void find_named(finding* f, const char* path, const crd_text* file, crd_arena* a)
{
    const char* colon = strstr(f->text, ": ");
    const char* base = colon;
    while (base && base > f->text && base[-1] != '/') {
        base--;
    }
    const size_t n = base ? (size_t)(colon - base) : 0;
    const char* at = n && file->length ? memmem(file->data, file->length, base, n) : NULL;
    int line = 1;
    for (const char* c = file->data; at && c < at; c++) {
        line += *c == '\n';
    }
    const char* placed = at ? crdi_arena_format(a, "%s:%d: %s", path, line, f->text) : NULL;
    if (!placed) { return; }
    f->text = placed;
    find_line(f, path, file);
    find_column(f); // and of the line, the file's name
    if (f->quoted) { find_word(f, base, n); }
}

static int by_place(const void* a, const void* b)
{
    const finding *x = a, *y = b;
    if ((x->line == 0) != (y->line == 0)) { return x->line == 0 ? 1 : -1; }
    if (x->line != y->line) { return x->line < y->line ? -1 : 1; }
    if (x->column != y->column) { return x->column < y->column ? -1 : 1; }
    return x->order - y->order;
}

// ---- shown -------------------------------------------------------------------------------------

static void put_caret(const finding* f)
{
    enum { LONGEST = 200 };
    if (!f->width || f->length > LONGEST) { return; }
    char line[4 * LONGEST];
    const size_t before = characters(f->quoted, f->column);
    const size_t wide = characters(f->quoted + f->column, f->width);
    int n = snprintf(line, sizeof line, "%6d | %.*s", f->line, (int)f->length, f->quoted);
    n = (int)crdi_printable(line, (size_t)n); // tabs would move the mark
    n += snprintf(line + n, sizeof line - (size_t)n, "\n       | %*s^", (int)before, "");
    for (size_t i = 1; i < wide && n + 2 < (int)sizeof line; i++) {
        line[n++] = '~';
    }
    line[n++] = '\n';
    crdi_write_all(STDERR_FILENO, line, (size_t)n);
}

static void put_finding(crdi_remarks* t, const finding* f, const char* path, crdi_result* list)
{
    crdi_message(t->cli, f->error ? CRD_LOG_ERROR : CRD_LOG_WARNING, f->text);
    put_caret(f);
    const bool known = f->width > 0;
    const int column = known ? (int)characters(f->quoted, f->column) + 1 : 0;
    const int end = known ? column + (int)characters(f->quoted + f->column, f->width) : 0;
    crdi_put(crdi_row(list), TEXT("severity", f->error ? "error" : "warning"),
             TEXT("file", f->file   ? crdi_worded(list, "%.*s", (int)f->file, f->text)
                          : f->line ? path
                                    : NULL),
             INT("line", f->line), INT("column", column), INT("end_line", f->line),
             INT("end_column", end), TEXT("text", crdi_result_copy(list, f->text + f->place)));
}

void crdi_remarks_show(crdi_remarks* t, crd_status st, const char* path, crdi_result* out)
{
    static const crdi_file_need need = {.what = "a description", .most = 256 << 20};
    crd_context* ctx = t->cli->ctx;
    const int count = t->findings.count + t->warnings.count;
    finding* all = crdi_new_array(ctx, (size_t)count + 1, sizeof *all);
    if (!all) { return; }
    crd_text file;
    crd_text_init(&file, ctx);
    if (count && crdi_file_read(ctx, path, &need, &file) < 0) { file.length = 0; }
    for (int i = 0; i < count; i++) {
        const bool error = i < t->findings.count;
        all[i] = (finding){.text = error ? t->findings.texts[i]
                                         : t->warnings.texts[i - t->findings.count],
                           .error = error,
                           .order = i};
        find_line(&all[i], path, &file);
        find_column(&all[i]);
        if (!all[i].line) { find_named(&all[i], path, &file, &t->findings.arena); }
    }
    qsort(all, (size_t)count, sizeof *all, by_place);
    const char* first = NULL;
    for (int i = count - 1; i >= 0; i--) {
        if (all[i].error) { first = all[i].text; }
    }
    crdi_put(out, BOOL("ok", st == CRD_OK), TEXT("status", crd_status_name(st)),
             INT("exit_code", crd_status_exit_code(st)),
             TEXT("error", first ? crdi_result_copy(out, first) : NULL));
    crdi_put_texts(out, "warnings", t->warnings.texts, t->warnings.count);
    crdi_result* list = crdi_array(out, "findings");
    for (int i = 0; i < count; i++) {
        if (all[i].error || !t->cli->silent) { put_finding(t, &all[i], path, list); }
    }
    if (t->findings.count > 1) {
        char sum[300];
        snprintf(sum, sizeof sum, "%.200s: %d errors, %d warning%s", path, t->findings.count,
                 t->warnings.count, crdi_plural(t->warnings.count));
        crdi_message(t->cli, CRD_LOG_ERROR, sum);
    }
    t->cli->said = t->findings.count > 0;
    (void)crdi_fail(ctx, st, "%s", first ? first : crd_error_text(t->ctx));
    crd_text_clear(&file);
    crd_free(ctx, all);
}
