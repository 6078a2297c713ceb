// A description changed as an editor would: the lines of one connection, and nothing else.
#include "shared/system_edit.h"
#include "system/read.h"

#include <stdio.h>
#include <string.h>

typedef struct edit {
    crd_context* ctx;
    crd_arena arena;
    const char* text;
    size_t length;
    const char* path;
    crdi_node* root;
    crd_text* out;
} edit;

static crd_status open_edit(edit* e)
{
    const crd_status st =
        crdi_yaml_parse(&e->arena, e->text, e->length, (crd_place){e->path, -1}, &e->root);
    if (st < 0) { return st; }
    if (e->root->kind == CRDI_MAPPING && crdi_node_get(e->root, "cardan")) { return CRD_OK; }
    return crdi_fail(e->ctx, CRD_E_FORMAT, "%s: not a system description, expected 'cardan: 1'",
                     e->path);
}

// ---- places in the text ------------------------------------------------------------------------

static size_t line_begin(const edit* e, int line)
{
    size_t at = 0;
    for (; line > 0 && at < e->length; line--) {
        const char* end = memchr(e->text + at, '\n', e->length - at);
        at = end ? (size_t)(end - e->text) + 1 : e->length;
    }
    return at;
}

static size_t line_length(const edit* e, size_t begin) // without its end
{
    const char* end = memchr(e->text + begin, '\n', e->length - begin);
    return end ? (size_t)(end - e->text) - begin : e->length - begin;
}

// Columns count characters.
static size_t place(const edit* e, int line, int column)
{
    size_t at = line_begin(e, line);
    if (line == 0 && e->length >= 3 && memcmp(e->text, "\xef\xbb\xbf", 3) == 0) { at += 3; }
    for (; column > 0 && at < e->length; column--) {
        do {
            at++;
        } while (at < e->length && ((unsigned char)e->text[at] & 0xC0) == 0x80);
    }
    return at;
}

static size_t begin_of(const edit* e, const crdi_node* n)
{
    return place(e, n->at.line, n->at.column);
}

static size_t end_of(const edit* e, const crdi_node* n)
{
    return place(e, n->at.end_line, n->at.end_column);
}

// The last line that something of a node stands in; block style ends where the next thing begins.
static int last_line(const crdi_node* n)
{
    if (n->kind == CRDI_SCALAR || n->flow || !n->last) {
        const bool at_margin = n->at.end_column == 0 && n->at.end_line > n->at.line;
        return n->at.end_line - at_margin; // behind a block scalar
    }
    return last_line(n->last);
}

// The line with the dash of an item, at or above its value.
static int dash_line(const edit* e, const crdi_node* item)
{
    for (int line = item->at.line; line > 0; line--) {
        const size_t at = line_begin(e, line);
        if (e->text[at + strspn(e->text + at, " ")] == '-') { return line; }
    }
    return item->at.line;
}

static void put(edit* e, size_t from, size_t to)
{
    crdi_text_put(e->out, e->text + from, to - from);
}

static void put_arrow(edit* e, const char* from, const char* to)
{
    crdi_yaml_connection(e->out, from, to);
}

static crd_status done(edit* e, crd_status st)
{
    crd_arena_clear(&e->arena);
    return st < 0 ? st : e->out->failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- one more ----------------------------------------------------------------------------------

// "# - a.y -> b.u  # why": the connection as a comment. Where the # stands, or -1.
static bool is_proposed(const char* line, size_t length, const char* arrow, size_t* hash)
{
    size_t i = 0;
    while (i < length && line[i] == ' ') {
        i++;
    }
    *hash = i;
    if (i == length || line[i++] != '#') { return false; }
    while (i < length && line[i] == ' ') {
        i++;
    }
    const size_t n = strlen(arrow);
    if (length - i < n + 2 || memcmp(line + i, "- ", 2) != 0) { return false; }
    i += 2;
    if (memcmp(line + i, arrow, n) != 0) { return false; }
    return i + n == length || strchr(" \r", line[i + n]);
}

static bool uncomment(edit* e, const char* arrow, const crdi_node* list)
{
    if (list && (list->flow || (list->kind == CRDI_SCALAR && !crdi_node_empty(list)))) {
        return false;
    }
    size_t hash, at = list ? line_begin(e, list->line) : 0;
    while (at < e->length) {
        const size_t n = line_length(e, at);
        if (n > 0 && !strchr(" #-\r", e->text[at])) { break; } // the next key
        if (is_proposed(e->text + at, n, arrow, &hash)) {
            size_t rest = at + hash + 1;
            rest += strspn(e->text + rest, " ");
            put(e, 0, at);
            const bool items = list && list->kind == CRDI_LIST && list->first;
            const size_t indent =
                items ? strspn(e->text + line_begin(e, dash_line(e, list->first)), " ") : 2;
            crdi_text_add(e->out, "%*s", (int)indent, "");
            put(e, rest, e->length);
            return true;
        }
        at += n + 1;
    }
    return false;
}

// A line behind `line`, which may be the last one and have no end.
static void put_line_behind(edit* e, int line, int indent, const char* key, const char* from,
                            const char* to)
{
    const size_t begin = line_begin(e, line), end = begin + line_length(e, begin);
    const bool dos = end > begin && e->text[end - 1] == '\r';
    const char* eol = dos ? "\r\n" : "\n";
    put(e, 0, end);
    crdi_text_add(e->out, "%s", end < e->length || !dos ? "\n" : "");
    if (key) { crdi_text_add(e->out, "%s%s", key, eol); }
    crdi_text_add(e->out, "%*s- ", indent, "");
    put_arrow(e, from, to);
    if (dos) { crdi_text_add(e->out, "\r"); }
    if (end < e->length) {
        put(e, end, e->length);
    } else {
        crdi_text_add(e->out, "\n");
    }
}

static crd_status connect_in(edit* e, const char* from, const char* to)
{
    const crdi_node* list = crdi_node_get(e->root, "connections");
    const char* arrow = crdi_arena_format(&e->arena, "%s -> %s", from, to);
    if (!arrow) { return CRD_E_MEMORY; }
    if (e->root->flow) {
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s: a description in braces; put its keys on lines of their own",
                         e->path);
    }
    if (list && uncomment(e, arrow, list)) { return CRD_OK; }
    if (!list) {
        const crdi_node* units = crdi_node_get(e->root, "units");
        const crdi_node* before = units ? units : e->root->last;
        put_line_behind(e, last_line(before), 2, "connections:", from, to);
    } else if (list->kind == CRDI_LIST && list->flow) {
        const size_t end = end_of(e, list) - 1; // of the bracket
        size_t last = end;
        while (last > 0 && strchr(" \t\r\n", e->text[last - 1])) {
            last--;
        }
        put(e, 0, list->count ? end_of(e, list->last) : last);
        crdi_text_add(e->out, "%s", list->count ? ", " : " ");
        put_arrow(e, from, to);
        if (!list->count) { crdi_text_add(e->out, " "); }
        put(e, list->count ? end_of(e, list->last) : end, e->length);
    } else if (list->kind == CRDI_LIST) {
        const size_t dash = line_begin(e, dash_line(e, list->first));
        put_line_behind(e, last_line(list), (int)strspn(e->text + dash, " "), NULL, from, to);
    } else if (crdi_node_empty(list) && !list->text[0]) {
        put_line_behind(e, list->line - 1, 2, NULL, from, to);
    } else {
        return crdi_fail(e->ctx, CRD_E_FORMAT, "%s:%d: connections: expected a list", e->path,
                         list->line);
    }
    return CRD_OK;
}

crd_status crd_system_text_connect(crd_context* ctx, const char* text, size_t length,
                                   const char* path, const char* from, const char* to,
                                   crd_text* out)
{
    edit e = {.ctx = ctx, .text = text, .length = length, .path = path, .out = out};
    crd_arena_init(&e.arena, ctx);
    crd_status st = open_edit(&e);
    if (st >= 0) { st = connect_in(&e, from, to); }
    return done(&e, st);
}

// ---- one less ----------------------------------------------------------------------------------

crd_status crd_system_arrow(crd_arena* arena, const char* text, const char** from, const char** to)
{
    static const char blanks[] = " \t\r\n";
    const char* arrow = strstr(text, "->");
    if (arrow && !strstr(arrow + 2, "->")) {
        const char *a = text + strspn(text, blanks), *b = arrow + 2 + strspn(arrow + 2, blanks);
        size_t n = (size_t)(arrow - text) > (size_t)(a - text) ? (size_t)(arrow - a) : 0;
        size_t m = strlen(b);
        while (n > 0 && strchr(blanks, a[n - 1])) {
            n--;
        }
        while (m > 0 && strchr(blanks, b[m - 1])) {
            m--;
        }
        *from = crdi_arena_text(arena, a, n);
        *to = crdi_arena_text(arena, b, m);
        if (!*from || !*to) { return CRD_E_MEMORY; }
        if (n > 0 && m > 0) { return CRD_OK; }
    }
    return crdi_fail(arena->ctx, CRD_E_FORMAT, "'%s', expected unit.output -> unit.input",
                     crdi_clip(text).text);
}

static bool is_item(edit* e, const crdi_node* item, const char* from, const char* to)
{
    const char *a = NULL, *b = NULL;
    if (item->kind == CRDI_SCALAR) {
        if (crd_system_arrow(&e->arena, item->text, &a, &b) < 0) { return false; }
    } else if (item->kind == CRDI_MAPPING) {
        const crdi_node *x = crdi_node_get(item, "from"), *y = crdi_node_get(item, "to");
        a = x ? x->text : "";
        b = y ? y->text : "";
    }
    return a && b && strcmp(b, to) == 0 && (!from || strcmp(a, from) == 0);
}

static void take_out(edit* e, const crdi_node* list, const crdi_node* before, const crdi_node* item)
{
    if (list->flow) {
        put(e, 0, before ? end_of(e, before) : begin_of(e, item));
        put(e, item->next && !before ? begin_of(e, item->next) : end_of(e, item), e->length);
        return;
    }
    const size_t end = line_begin(e, last_line(item) + 1);
    if (list->count > 1) {
        put(e, 0, line_begin(e, dash_line(e, item)));
        put(e, end, e->length);
        return;
    }
    const size_t key = line_begin(e, list->line - 1); // the key stays, with nothing behind it
    const size_t dash = line_begin(e, dash_line(e, item));
    put(e, 0, dash > key ? dash : key);
    put(e, end, e->length);
}

crd_status crd_system_text_disconnect(crd_context* ctx, const char* text, size_t length,
                                      const char* path, const char* from, const char* to,
                                      crd_text* out)
{
    edit e = {.ctx = ctx, .text = text, .length = length, .path = path, .out = out};
    crd_arena_init(&e.arena, ctx);
    crd_status st = open_edit(&e);
    const crdi_node* list = st < 0 ? NULL : crdi_node_get(e.root, "connections");
    const crdi_node *before = NULL, *item = list && list->kind == CRDI_LIST ? list->first : NULL;
    while (item && !is_item(&e, item, from, to)) {
        before = item;
        item = item->next;
    }
    if (item) {
        take_out(&e, list, before, item);
    } else if (st >= 0) {
        st = crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: there is no connection %s%s%s", path,
                       from ? from : "to ", from ? " -> " : "", to);
    }
    return done(&e, st);
}

// ---- another value -----------------------------------------------------------------------------

static size_t indent_of(const edit* e, const crdi_node* mapping)
{
    return strspn(e->text + line_begin(e, mapping->first->line - 1), " ");
}

// Behind the last member of a mapping, as that one is written.
static void add_member(edit* e, const crdi_node* mapping, const char* name, const char* value)
{
    if (mapping->flow) {
        const size_t end = end_of(e, mapping->last);
        put(e, 0, end);
        crdi_text_add(e->out, ", %s: %s", name, value);
        put(e, end, e->length);
        return;
    }
    const size_t begin = line_begin(e, last_line(mapping->last));
    const size_t end = begin + line_length(e, begin);
    const bool dos = end > begin && e->text[end - 1] == '\r';
    put(e, 0, end);
    crdi_text_add(e->out, "\n%*s%s: %s%s", (int)indent_of(e, mapping), "", name, value,
                  dos ? "\r" : "");
    put(e, end, e->length);
    if (end == e->length) { crdi_text_add(e->out, "\n"); }
}

// At the end of the text: `key: value`, or `run: { step: value }`.
static void add_line(edit* e, const char* head, const char* name, const char* value)
{
    const bool dos = memchr(e->text, '\r', e->length) != NULL;
    const char* eol = dos ? "\r\n" : "\n";
    put(e, 0, e->length);
    crdi_text_add(e->out, "%s", e->length && e->text[e->length - 1] != '\n' ? eol : "");
    crdi_text_add(e->out, head ? "%s: { %s: %s }%s" : "%s%s: %s%s", head ? head : "", name, value,
                  eol);
}

// "2 ms" is plain to everybody: what begins with a digit and has letters, digits and blanks.
static bool is_quantity(const char* text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t number = strspn(text, "0123456789.+-eE");
    const char* unit = text + number + (text[number] == ' ');
    return text[0] >= '0' && text[0] <= '9' && unit[0] && unit[strspn(unit, letters)] == 0;
}

static crd_status set_in(edit* e, const char* key, const char* value)
{
    const char* dot = strchr(key, '.');
    const char* name = dot ? dot + 1 : key;
    const char* head = dot ? crdi_arena_text(&e->arena, key, (size_t)(dot - key)) : NULL;
    crd_text scalar;
    crd_text_init(&scalar, e->ctx);
    if (is_quantity(value)) {
        crdi_text_add(&scalar, "%s", value);
    } else {
        crdi_yaml_text(&scalar, value);
    }
    const char* written =
        scalar.failed ? NULL : crdi_arena_text(&e->arena, scalar.data, scalar.length);
    crd_text_clear(&scalar);
    if (!written || (dot && !head)) { return CRD_E_MEMORY; }
    if (e->root->flow) {
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s: a description in braces; put its keys on lines of their own",
                         e->path);
    }
    const crdi_node* section = head ? crdi_node_get(e->root, head) : e->root;
    if (!section) {
        add_line(e, head, name, written);
        return CRD_OK;
    }
    const crdi_node* n = section->kind == CRDI_MAPPING ? crdi_node_get(section, name) : NULL;
    if (n && n->kind == CRDI_MAPPING && crdi_node_get(n, "file")) { n = crdi_node_get(n, "file"); }
    const bool fits =
        n ? n->kind == CRDI_SCALAR && n->at.line == n->at.end_line && (n->quoted || n->text[0])
          : section->kind == CRDI_MAPPING && section->first;
    if (!fits) {
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s:%d: %s is written in a way that has to be changed in an editor",
                         e->path, (n ? n : section)->line, key);
    }
    if (n) {
        put(e, 0, begin_of(e, n));
        crdi_text_add(e->out, "%s", written);
        put(e, end_of(e, n), e->length);
    } else if (head) {
        add_member(e, section, name, written);
    } else {
        add_line(e, NULL, name, written);
    }
    return CRD_OK;
}

crd_status crdi_system_text_set(crd_context* ctx, const char* text, size_t length, const char* path,
                                const char* key, const char* value, crd_text* out)
{
    edit e = {.ctx = ctx, .text = text, .length = length, .path = path, .out = out};
    crd_arena_init(&e.arena, ctx);
    crd_status st = open_edit(&e);
    if (st >= 0) { st = set_in(&e, key, value); }
    return done(&e, st);
}
