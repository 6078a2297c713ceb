// JSON as it comes, into a text that grows.
#include "shared/base.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- texts and numbers -------------------------------------------------------------------------

// Bytes of the character at p, which is not the end; 0: it is none.
static size_t character_length(const unsigned char* p)
{
    return p[0] < 0x80 ? 1 : crdi_utf8_length((const char*)p, strnlen((const char*)p, 4));
}

static void put_escape(crd_text* t, unsigned char c, bool page)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char* known = strchr(from, c);
    if (known && (!page || known - from < 2)) {
        crdi_text_add(t, "\\%c", to[known - from]);
    } else {
        crdi_text_add(t, page ? "\\u%04x" : "\\u%04X", c);
    }
}

// In quotes. `page`: it may stand in a page, where "</script>" must not end it.
static void put_quoted(crd_text* t, const char* text, bool page)
{
    crdi_text_put(t, "\"", 1);
    const unsigned char *p = (const unsigned char*)text, *plain = p;
    while (*p) {
        const size_t n = character_length(p);
        const bool escaped =
            *p < 0x20 || *p == '"' || *p == '\\' || (page && (*p == '<' || *p == 0x7f));
        if (n > 0 && !escaped) {
            p += n;
            continue;
        }
        crdi_text_put(t, plain, (size_t)(p - plain));
        if (n == 0) {
            crdi_text_put(t, "\xEF\xBF\xBD", 3);
        } else {
            put_escape(t, *p, page);
        }
        plain = ++p;
    }
    crdi_text_put(t, plain, (size_t)(p - plain));
    crdi_text_put(t, "\"", 1);
}

void crdi_text_json(crd_text* t, const char* text)
{
    put_quoted(t, text, true);
}

void crdi_text_json_number(crd_text* t, double x)
{
    if (!isfinite(x)) {
        crdi_text_put(t, "null", 4);
        return;
    }
    char text[32];
    crdi_text_put(t, text, (size_t)crdi_format_double(text, x));
}

// A real is seen to be one: 1.0, 1e20, 1e-5.
static void put_real(crd_text* t, double x)
{
    char text[32];
    int length = crdi_format_double(text, x);
    char* e = memchr(text, 'e', (size_t)length);
    if (!e && !memchr(text, '.', (size_t)length)) {
        memcpy(text + length, ".0", 2);
        length += 2;
    }
    if (e) {
        char* to = e + 1 + (e[1] == '-');
        const char* digits = e + 2;
        digits += strspn(digits, "0");
        const size_t n = (size_t)(text + length - digits);
        memmove(to, digits, n);
        length = (int)(to - text) + (int)n;
    }
    crdi_text_put(t, text, (size_t)length);
}

// ---- the writer --------------------------------------------------------------------------------

void crdi_json_writer_init(crdi_json_writer* w, crd_text* out, crdi_json_style style)
{
    *w = (crdi_json_writer){.out = out, .style = style};
}

static bool is_dense(const crdi_json_writer* w)
{
    return w->style == CRDI_JSON_COMPACT || w->style == CRDI_JSON_LINE;
}

static bool for_pages(const crdi_json_writer* w)
{
    return w->style == CRDI_JSON_COMPACT || w->style == CRDI_JSON_ROWS;
}

static bool in_list(const crdi_json_writer* w)
{
    return w->depth > 0 && (w->lists >> (w->depth - 1) & 1);
}

static void break_line(crdi_json_writer* w, int depth)
{
    crdi_text_add(w->out, "\n%*s", 2 * depth, "");
}

// What stands between a value and the one before it, and its key.
static void begin_value(crdi_json_writer* w, const char* key, bool row)
{
    assert(w->depth == 0 || in_list(w) == !key);
    const bool more = w->depth > 0 && w->filled;
    if (more) { crdi_text_put(w->out, ",", 1); }
    if (w->depth > 0 && w->style == CRDI_JSON_INDENTED) {
        break_line(w, w->depth);
    } else if (row) {
        break_line(w, 1);
    } else if (more && !is_dense(w)) {
        crdi_text_put(w->out, " ", 1);
    }
    if (key) {
        put_quoted(w->out, key, for_pages(w));
        crdi_text_put(w->out, ": ", is_dense(w) ? 1 : 2);
    }
    w->filled = true;
}

static void begin_members(crdi_json_writer* w, const char* key, bool list)
{
    const bool row = !list && w->style == CRDI_JSON_ROWS && w->depth == 2 && in_list(w);
    begin_value(w, key, row);
    crdi_text_put(w->out, list ? "[" : "{", 1);
    assert(w->depth < CRDI_JSON_DEPTH);
    w->lists &= ~(1U << w->depth);
    w->lists |= (uint32_t)list << w->depth;
    w->depth++;
    w->filled = false;
}

void crdi_json_begin_object(crdi_json_writer* w, const char* key)
{
    begin_members(w, key, false);
}

void crdi_json_begin_list(crdi_json_writer* w, const char* key)
{
    begin_members(w, key, true);
}

void crdi_json_end(crdi_json_writer* w)
{
    assert(w->depth > 0);
    const char* bracket = in_list(w) ? "]" : "}";
    w->depth--;
    if (w->filled && w->style == CRDI_JSON_INDENTED) { break_line(w, w->depth); }
    crdi_text_put(w->out, bracket, 1);
    w->filled = true;
}

void crdi_json_put_raw(crdi_json_writer* w, const char* key, const char* json)
{
    begin_value(w, key, false);
    crdi_text_put(w->out, json, strlen(json));
}

void crdi_json_put_text(crdi_json_writer* w, const char* key, const char* text)
{
    begin_value(w, key, false);
    put_quoted(w->out, text ? text : "", for_pages(w));
}

void crdi_json_put_text_or_null(crdi_json_writer* w, const char* key, const char* text)
{
    if (text && *text) {
        crdi_json_put_text(w, key, text);
    } else {
        crdi_json_put_null(w, key);
    }
}

void crdi_json_put_number(crdi_json_writer* w, const char* key, double x)
{
    begin_value(w, key, false);
    if (for_pages(w) || !isfinite(x)) {
        crdi_text_json_number(w->out, x);
    } else {
        put_real(w->out, x);
    }
}

void crdi_json_put_integer(crdi_json_writer* w, const char* key, int64_t x)
{
    begin_value(w, key, false);
    crdi_text_add(w->out, "%lld", (long long)x);
}

void crdi_json_put_bool(crdi_json_writer* w, const char* key, bool truth)
{
    crdi_json_put_raw(w, key, truth ? "true" : "false");
}

void crdi_json_put_null(crdi_json_writer* w, const char* key)
{
    crdi_json_put_raw(w, key, "null");
}

void crdi_json_put_tree(crdi_json_writer* w, const char* key, const crdi_json* tree)
{
    switch (tree->kind) {
    case CRDI_JSON_NULL:
        crdi_json_put_null(w, key);
        return;
    case CRDI_JSON_BOOL:
        crdi_json_put_bool(w, key, tree->truth);
        return;
    case CRDI_JSON_NUMBER:
        crdi_json_put_raw(w, key, tree->text); // as it was written: integers stay exact
        return;
    case CRDI_JSON_TEXT:
        crdi_json_put_text(w, key, tree->text);
        return;
    case CRDI_JSON_LIST:
        crdi_json_begin_list(w, key);
        break;
    case CRDI_JSON_OBJECT:
        crdi_json_begin_object(w, key);
        break;
    }
    for (const crdi_json* n = tree->first; n; n = n->next) {
        crdi_json_put_tree(w, n->key, n);
    }
    crdi_json_end(w);
}
