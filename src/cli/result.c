// Results of commands, and their two printers.
#include "cli/result.h"
#include "cli/cli.h"
#include "cli/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

// ---- making ------------------------------------------------------------------------------------

void crdi_result_init(crdi_root* r, crd_context* ctx, bool json)
{
    *r = (crdi_root){.json = json, .label_width = 14};
    r->result = (crdi_result){.value.kind = CRDI_VALUE_OBJECT, .root = r};
    r->aside = (crdi_result){.value.kind = CRDI_VALUE_OBJECT, .root = r, .aside = true};
    crd_arena_init(&r->arena, ctx);
}

void crdi_result_clear(crdi_root* r)
{
    crd_arena_clear(&r->arena);
}

void crdi_json_lines(crdi_result* out, bool live)
{
    out->root->line = true;
    out->root->live = live;
}

crd_context* crdi_result_context(const crdi_result* o)
{
    return o->root->arena.ctx;
}

crdi_value crdi_value_if(bool there, crdi_value v)
{
    return there ? v : NONE(v.key);
}

crdi_value crdi_value_as(crdi_value v, const char* shown)
{
    v.shown = shown;
    return v;
}

void crdi_result_spoil(crdi_result* o, crd_status st)
{
    crdi_root* r = o ? o->root : NULL;
    if (!r || r->failed < 0) { return; }
    r->failed = st;
    snprintf(r->why, sizeof r->why, "%s",
             st == CRD_E_MEMORY ? crd_status_text(st) : crd_error_text(r->arena.ctx));
}

static void* new_node(crdi_result* o, size_t size)
{
    void* p = o ? crdi_arena_new(&o->root->arena, 1, size) : NULL;
    if (!p) { crdi_result_spoil(o, CRD_E_MEMORY); }
    return p;
}

static void result_append(crdi_result* o, crdi_value* v)
{
    v->next = NULL;
    if (o->last) {
        o->last->next = v;
    } else {
        o->first = v;
    }
    o->last = v;
}

const char* crdi_result_copy(crdi_result* o, const char* text)
{
    const char* copy = o && text ? crdi_arena_text(&o->root->arena, text, strlen(text)) : NULL;
    if (text && !copy) { crdi_result_spoil(o, CRD_E_MEMORY); }
    return copy;
}

void crdi_put_values(crdi_result* o, const crdi_value* values)
{
    for (; o && values->kind != CRDI_VALUE_END; values++) {
        crdi_value* v = new_node(o, sizeof *v);
        if (!v) { return; }
        *v = *values;
        if (v->kind == CRDI_VALUE_TEXT) { v->text = crdi_result_copy(o, v->text); }
        v->shown = crdi_result_copy(o, v->shown);
        result_append(o, v);
    }
}

static crdi_result* put_node(crdi_result* o, crdi_value_kind kind, const char* key)
{
    crdi_result* n = new_node(o, sizeof *n);
    if (!n) { return NULL; }
    *n = (crdi_result){.value = {.kind = kind, .key = key}, .root = o->root, .aside = o->aside};
    result_append(o, &n->value);
    return n;
}

crdi_result* crdi_object(crdi_result* o, const char* key)
{
    return put_node(o, CRDI_VALUE_OBJECT, key);
}

crdi_result* crdi_object_if(crdi_result* o, const char* key, bool there)
{
    if (!there) { crdi_put(o, NONE(key)); }
    return there ? crdi_object(o, key) : NULL;
}

crdi_result* crdi_array(crdi_result* o, const char* key)
{
    crdi_result* n = put_node(o, CRDI_VALUE_ARRAY, key);
    if (n && !key && o->value.kind == CRDI_VALUE_OBJECT) { n->value.only_text = true; }
    return n;
}

crdi_result* crdi_row(crdi_result* array)
{
    return put_node(array, CRDI_VALUE_OBJECT, NULL);
}

crdi_result* crdi_whole_array(crdi_result* out)
{
    if (!out->root->json) { return crdi_array(out, NULL); }
    out->value.kind = CRDI_VALUE_ARRAY;
    return out;
}

bool crdi_makes_json(const crdi_result* o)
{
    return o && o->root->json;
}

void crdi_only_text(crdi_result* row)
{
    if (row) { row->value.only_text = true; }
}

void crdi_only_json(crdi_result* row)
{
    if (row) { row->value.only_json = true; }
}

void crdi_put_texts(crdi_result* o, const char* key, const char* const* items, int count)
{
    crdi_result* list = crdi_array(o, key);
    for (int i = 0; i < count; i++) {
        crdi_add(list, TEXT(NULL, items[i]));
    }
}

void crdi_put_numbers(crdi_result* o, const char* key, const double* x, int64_t count)
{
    crdi_result* list = crdi_array(o, key);
    for (int64_t i = 0; i < count; i++) {
        crdi_add(list, REAL(NULL, x[i]));
    }
}

static void put_tree(crdi_result* o, const char* key, const crdi_json* j)
{
    int64_t whole = 0;
    crdi_result* n = NULL;
    switch (j->kind) {
    case CRDI_JSON_NULL:
        crdi_put(o, NONE(key));
        return;
    case CRDI_JSON_BOOL:
        crdi_put(o, BOOL(key, j->truth));
        return;
    case CRDI_JSON_NUMBER:
        if (crdi_parse_int64(j->text, strlen(j->text), &whole)) {
            crdi_put(o, INT(key, whole));
        } else {
            crdi_put(o, REAL(key, j->number));
        }
        return;
    case CRDI_JSON_TEXT:
        crdi_put(o, TEXT(key, j->text));
        return;
    case CRDI_JSON_LIST:
        n = crdi_array(o, key);
        break;
    case CRDI_JSON_OBJECT:
        n = crdi_object(o, key);
        break;
    }
    for (const crdi_json* c = j->first; c; c = c->next) {
        put_tree(n, c->key, c);
    }
}

void crdi_put_json(crdi_result* o, const char* key, const char* text, size_t length)
{
    crdi_json* j = NULL;
    if (!crdi_makes_json(o)) { return; }
    const crd_status st = crdi_json_parse_most(&o->root->arena, text, length, CRDI_JSON_RUN_BYTES,
                                               (crdi_json_source){.file = key}, &j);
    if (st < 0) {
        crdi_result_spoil(o, st);
    } else {
        put_tree(o, key, j);
    }
}

// ---- text --------------------------------------------------------------------------------------

static bool is_shown(const crdi_result* o)
{
    return o && (!o->root->json || o->aside);
}

static const char* format_list(crdi_result* o, const char* format, va_list args)
{
    char small[512];
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(small, sizeof small, format, args);
    const char* out = NULL;
    if (n >= 0 && (size_t)n < sizeof small) {
        out = crdi_arena_text(&o->root->arena, small, (size_t)n);
    } else if (n >= 0) {
        char* room = crdi_arena_new(&o->root->arena, (size_t)n + 1, 1);
        if (room) { vsnprintf(room, (size_t)n + 1, format, again); }
        out = room;
    }
    va_end(again);
    if (!out) { crdi_result_spoil(o, CRD_E_MEMORY); }
    return out;
}

const char* crdi_worded(crdi_result* o, const char* format, ...)
{
    if (!o) { return ""; }
    va_list args;
    va_start(args, format);
    const char* text = format_list(o, format, args);
    va_end(args);
    return text ? text : "";
}

static void say_text(crdi_result* o, const char* text)
{
    crdi_value* v = text ? new_node(o, sizeof *v) : NULL;
    if (!v) { return; }
    *v = (crdi_value){.kind = CRDI_VALUE_SAID, .text = text};
    result_append(o, v);
}

void crdi_say(crdi_result* o, const char* format, ...)
{
    if (!is_shown(o)) { return; }
    va_list args;
    va_start(args, format);
    say_text(o, format_list(o, format, args));
    va_end(args);
}

void crdi_fact(crdi_result* o, const char* label, const char* format, ...)
{
    if (!is_shown(o)) { return; }
    va_list args;
    va_start(args, format);
    const char* text = format_list(o, format, args);
    va_end(args);
    if (text) { crdi_say(o, "%-*s%s\n", o->root->label_width, label, text); }
}

void crdi_fact_if(crdi_result* o, const char* label, const char* text)
{
    if (!is_shown(o) || !text || !*text) { return; }
    char* line = crdi_arena_text(&o->root->arena, text, strlen(text)); // of a foreign file
    if (!line) { return; }
    line[crdi_printable(line, strlen(line))] = 0;
    crdi_fact(o, label, "%s", line);
}

void crdi_say_wrapped(crdi_result* o, const char* label, const char* format, ...)
{
    enum { INDENT = 9, LINE_WIDTH = 100 };
    if (!is_shown(o)) { return; }
    va_list args;
    va_start(args, format);
    const char* text = format_list(o, format, args);
    va_end(args);
    crdi_say(o, "%-*s", INDENT, label);
    int at = (int)strlen(label) > INDENT ? (int)strlen(label) : INDENT;
    while (text && *text) {
        const int n = (int)strcspn(text, " ");
        const bool full = at > INDENT && at + 1 + n > LINE_WIDTH;
        if (full) { at = INDENT; }
        crdi_say(o, "%s%*s%s%.*s", full ? "\n" : "", full ? INDENT : 0, "", at > INDENT ? " " : "",
                 n, text);
        at += n + (at > INDENT);
        text += n + (text[n] == ' ');
    }
    crdi_say(o, "\n");
}

void crdi_show_table(crdi_result* o, const crdi_result* array, const crdi_column* columns,
                     const char* indent)
{
    if (!is_shown(o) || !array) { return; }
    crdi_result* n = put_node(o, CRDI_VALUE_VIEW, NULL);
    if (!n) { return; }
    n->list = array;
    n->columns = columns;
    n->indent = indent;
}

crdi_result* crdi_aside(crdi_result* o)
{
    return &o->root->aside;
}

void crdi_label_width(crdi_result* o, int columns)
{
    o->root->label_width = columns;
}

// ---- tables ------------------------------------------------------------------------------------

static void show_real(crdi_grid* g, double x, const char* format)
{
    char text[32];
    if (isnan(x) || (isinf(x) && strcmp(format, "s") == 0)) {
        crdi_grid_add(g, "-");
    } else if (strcmp(format, "s") == 0) {
        crdi_grid_add(g, "%s", crdi_format_seconds(text, x));
    } else if (strncmp(format, "100*", 4) == 0) {
        crdi_grid_add(g, format + 4, 100 * x);
    } else {
        crdi_grid_add(g, format, x);
    }
}

static void show_cell(crdi_grid* g, const crdi_result* row, const crdi_column* c)
{
    const crdi_value* v = row->first;
    while (v && (!v->key || strcmp(v->key, c->key) != 0)) {
        v = v->next;
    }
    if (!v) {
        crdi_grid_add(g, "%s", "");
    } else if (v->shown) {
        crdi_grid_add(g, "%s", v->shown);
    } else if (v->kind == CRDI_VALUE_REAL) {
        show_real(g, v->real, c->format);
    } else if (v->kind == CRDI_VALUE_INT) {
        crdi_grid_add(g, "%" PRId64, v->integer);
    } else if (v->kind == CRDI_VALUE_BOOL) {
        crdi_grid_add(g, "%s", v->truth ? "yes" : "no");
    } else {
        crdi_grid_add(g, "%s", v->kind == CRDI_VALUE_TEXT && v->text ? v->text : "");
    }
}

static void print_table(crd_text* out, const crdi_result* view)
{
    int columns = 0;
    uint32_t right = 0;
    bool titles = false;
    for (; view->columns[columns].key; columns++) {
        const char* title = view->columns[columns].title;
        right |= (uint32_t)(title[0] == '>') << columns;
        titles = titles || title[title[0] == '>'];
    }
    crdi_grid g;
    crdi_grid_init(&g, out->ctx, columns, right);
    for (int i = 0; i < columns && titles; i++) {
        crdi_grid_add(&g, "%s", view->columns[i].title + (view->columns[i].title[0] == '>'));
    }
    const size_t before = g.count;
    for (const crdi_value* v = view->list->first; v; v = v->next) {
        if (v->kind != CRDI_VALUE_OBJECT || v->only_json) { continue; }
        for (int i = 0; i < columns; i++) {
            show_cell(&g, (const crdi_result*)v, &view->columns[i]);
        }
    }
    if (g.count > before) { crdi_grid_write(&g, out, view->indent); }
    crdi_grid_clear(&g);
}

static void put_said(crd_text* out, const crdi_result* o)
{
    for (const crdi_value* v = o->first; v; v = v->next) {
        if (v->kind == CRDI_VALUE_SAID) {
            crdi_text_put(out, v->text, strlen(v->text));
        } else if (v->kind == CRDI_VALUE_VIEW) {
            print_table(out, (const crdi_result*)v);
        } else if (v->kind == CRDI_VALUE_OBJECT || v->kind == CRDI_VALUE_ARRAY) {
            put_said(out, (const crdi_result*)v);
        }
    }
}

// ---- JSON --------------------------------------------------------------------------------------

static void write_value(crdi_json_writer* w, const crdi_value* v)
{
    switch (v->kind) {
    case CRDI_VALUE_OBJECT:
    case CRDI_VALUE_ARRAY:
        if (v->kind == CRDI_VALUE_OBJECT) {
            crdi_json_begin_object(w, v->key);
        } else {
            crdi_json_begin_list(w, v->key);
        }
        for (const crdi_value* m = ((const crdi_result*)v)->first; m; m = m->next) {
            if (!m->only_text) { write_value(w, m); }
        }
        crdi_json_end(w);
        break;
    case CRDI_VALUE_NULL:
    case CRDI_VALUE_BOOL:
    case CRDI_VALUE_INT:
    case CRDI_VALUE_REAL:
    case CRDI_VALUE_TEXT:
        crdi_json_put(w, v->kind == CRDI_VALUE_TEXT && !v->text ? NONE(v->key) : *v);
        break;
    case CRDI_VALUE_SAID:
    case CRDI_VALUE_VIEW:
    case CRDI_VALUE_END:
        break;
    }
}

// ---- printing ----------------------------------------------------------------------------------

crd_status crdi_result_write(const crdi_root* r, crd_text* out)
{
    if (r->failed < 0) { return crdi_fail(r->arena.ctx, r->failed, "%s", r->why); }
    if (r->json && r->result.first) {
        crdi_json_writer w;
        crdi_json_writer_init(&w, out, r->line ? CRDI_JSON_LINE : CRDI_JSON_INDENTED);
        write_value(&w, &r->result.value);
        crdi_text_add(out, "\n");
    } else {
        put_said(out, &r->result);
    }
    return out->failed ? crdi_fail(r->arena.ctx, CRD_E_MEMORY, "out of memory") : CRD_OK;
}

crd_status crdi_result_print(crdi_root* r)
{
    crd_context* ctx = r->arena.ctx;
    crd_text out;
    crd_text_init(&out, ctx);
    put_said(&out, &r->aside);
    if (out.length && !out.failed) { crdi_write_all(STDERR_FILENO, out.data, out.length); }
    out.length = 0;
    crd_status st = crdi_result_write(r, &out);
    if (st >= 0 && out.length) { fwrite(out.data, 1, out.length, r->beside ? stderr : stdout); }
    if (st >= 0 && (!r->line || r->live)) { st = crdi_stdout_done(ctx); }
    crd_text_clear(&out);
    r->printed = r->printed || r->result.first;
    r->result.first = r->result.last = r->aside.first = r->aside.last = NULL;
    crd_arena_clear(&r->arena);
    crd_arena_init(&r->arena, ctx);
    return st;
}
