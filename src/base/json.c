// JSON as a tree that knows its lines.
#include "shared/base.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct parser {
    crd_arena* arena;
    crd_context* ctx;
    const char* file;
    const char *at, *end;
    int line; // 0: unknown
    int depth;
} parser;

// ---- messages ----------------------------------------------------------------------------------

crd_status crdi_json_fail(crd_context* ctx, const char* file, int line, crd_status st,
                          const char* format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (file && file[0] && line > 0) { return crdi_fail(ctx, st, "%s:%d: %s", file, line, text); }
    if (file && file[0]) { return crdi_fail(ctx, st, "%s: %s", file, text); }
    if (line > 0) { return crdi_fail(ctx, st, "line %d: %s", line, text); }
    return crdi_fail(ctx, st, "%s", text);
}

// What stands at `at`, for messages.
static crdi_quote found(const parser* p)
{
    crdi_quote q = {"the end"};
    if (p->at == p->end) { return q; }
    const unsigned char c = (unsigned char)*p->at;
    if (c < 0x20 || c >= 0x7f) {
        snprintf(q.text, sizeof q.text, "byte 0x%02x", c);
        return q;
    }
    size_t n = 1;
    while (p->at + n < p->end && n < 20 && strchr("+-.", p->at[n - 1]) == NULL &&
           (unsigned char)p->at[n] > 0x20 && (unsigned char)p->at[n] < 0x7f &&
           !strchr(",:[]{}\"", p->at[n])) {
        n++;
    }
    snprintf(q.text, sizeof q.text, "'%.*s'", (int)n, p->at);
    return q;
}

static crd_status unexpected(const parser* p, const char* expected)
{
    return crdi_json_fail(p->ctx, p->file, p->line, CRD_E_FORMAT, "not valid JSON: %s, expected %s",
                          found(p).text, expected);
}

// ---- texts -------------------------------------------------------------------------------------

static void skip_space(parser* p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '\n') {
            if (p->line > 0 && p->line < INT_MAX) { p->line++; }
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return;
        }
    }
}

static size_t put_utf8(uint32_t c, char* out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint32_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3F));
    }
    out[0] = (char)(lead[n] | c);
    return n;
}

// Four hex digits at s. false: they are not.
static bool hex4(const char* s, const char* end, uint32_t* out)
{
    if (end - s < 4) { return false; }
    uint32_t x = 0;
    for (int i = 0; i < 4; i++) {
        const char c = s[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0) { return false; }
        x = 16 * x + (uint32_t)d;
    }
    *out = x;
    return true;
}

static crd_status bad_escape(const parser* p)
{
    return crdi_json_fail(p->ctx, p->file, p->line, CRD_E_FORMAT,
                          "not valid JSON: an escape in a text that means nothing, expected \\n, "
                          "\\\", \\\\ or a character as \\u00e4");
}

// p->at is behind the backslash.
static crd_status read_escape(parser* p, char* out, size_t* n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char* known = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;
    if (known) {
        out[(*n)++] = to[known - from];
        p->at++;
        return CRD_OK;
    }
    uint32_t c = 0, low = 0;
    if (p->at == p->end || *p->at != 'u' || !hex4(p->at + 1, p->end, &c) || c == 0 ||
        (c >= 0xDC00 && c <= 0xDFFF)) {
        return bad_escape(p);
    }
    p->at += 5;
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (p->end - p->at < 6 || p->at[0] != '\\' || p->at[1] != 'u' ||
            !hex4(p->at + 2, p->end, &low) || low < 0xDC00 || low > 0xDFFF) {
            return bad_escape(p);
        }
        p->at += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *n += put_utf8(c, out + *n);
    return CRD_OK;
}

static crd_status read_text(parser* p, const char** out)
{
    const char* start = ++p->at; // behind the quote
    const char* close = start;
    while (close < p->end && *close != '"') {
        close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    }
    if (close >= p->end) {
        p->at = p->end;
        return unexpected(p, "'\"' at the end of a text");
    }
    char* text = crdi_arena_new(p->arena, (size_t)(close - start) + 1, 1);
    if (!text) { return CRD_E_MEMORY; }
    size_t n = 0;
    while (p->at < close) {
        if (*p->at == '\\') {
            p->at++;
            const crd_status st = read_escape(p, text, &n);
            if (st < 0) { return st; }
            continue;
        }
        const size_t length = crdi_utf8_length(p->at, (size_t)(close - p->at));
        if (length == 0 || (unsigned char)*p->at < 0x20) {
            return unexpected(p, length ? "control characters in a text as \\n or \\u0009"
                                        : "a text in UTF-8");
        }
        memcpy(text + n, p->at, length);
        n += length;
        p->at += length;
    }
    p->at = close + 1;
    text[n] = 0;
    *out = text;
    return CRD_OK;
}

// ---- values ------------------------------------------------------------------------------------

static bool is_digit(const parser* p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static bool skip_digits(parser* p)
{
    const char* start = p->at;
    while (is_digit(p)) {
        p->at++;
    }
    return p->at > start;
}

static crd_status read_json_number(parser* p, crdi_json* n)
{
    const char* start = p->at;
    const char* expected = "a number such as 0.5 or -1e-3";
    p->at += *p->at == '-';
    if (p->at < p->end && *p->at == '0') {
        p->at++;
        if (is_digit(p)) { return unexpected(p, "no digit behind a leading zero"); }
    } else if (!skip_digits(p)) {
        return unexpected(p, expected);
    }
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!skip_digits(p)) { return unexpected(p, expected); }
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        if (p->at < p->end && (*p->at == '+' || *p->at == '-')) { p->at++; }
        if (!skip_digits(p)) { return unexpected(p, expected); }
    }
    n->kind = CRDI_JSON_NUMBER;
    n->text = crdi_arena_text(p->arena, start, (size_t)(p->at - start));
    if (!n->text) { return CRD_E_MEMORY; }
    if (!crdi_parse_double(start, (size_t)(p->at - start), &n->number) || !isfinite(n->number)) {
        return crdi_json_fail(p->ctx, p->file, p->line, CRD_E_RANGE,
                              "%s is beyond the largest number, expected at most 1.8e308",
                              crdi_clip(n->text).text);
    }
    return CRD_OK;
}

static crd_status read_word(parser* p, crdi_json* n)
{
    static const struct {
        const char* word;
        crdi_json_kind kind;
        bool truth;
    } words[] = {{"true", CRDI_JSON_BOOL, true},
                 {"false", CRDI_JSON_BOOL, false},
                 {"null", CRDI_JSON_NULL, false}};
    for (int i = 0; i < 3; i++) {
        const size_t k = strlen(words[i].word);
        if ((size_t)(p->end - p->at) >= k && memcmp(p->at, words[i].word, k) == 0) {
            n->kind = words[i].kind;
            n->truth = words[i].truth;
            p->at += k;
            return CRD_OK;
        }
    }
    return unexpected(p, "a value: a text in quotes, a number, true, false, null, [ or {");
}

static crd_status read_json_value(parser* p, crdi_json* n);

static crdi_json* add_member(parser* p, crdi_json* parent, const char* key)
{
    crdi_json* n = crdi_arena_new(p->arena, 1, sizeof *n);
    if (!n) { return NULL; }
    *n = (crdi_json){.text = "", .key = key, .line = p->line};
    if (parent->last) {
        parent->last->next = n;
    } else {
        parent->first = n;
    }
    parent->last = n;
    parent->count++;
    return n;
}

// "key" :
static crd_status read_key(parser* p, const char** key)
{
    if (p->at == p->end || *p->at != '"') { return unexpected(p, "a key in quotes"); }
    const crd_status st = read_text(p, key);
    if (st < 0) { return st; }
    skip_space(p);
    if (p->at == p->end || *p->at != ':') { return unexpected(p, "':' behind a key"); }
    p->at++;
    skip_space(p);
    return CRD_OK;
}

static crd_status check_duplicates(parser* p, const crdi_json* object)
{
    crd_status st = CRD_OK;
    crd_map map;
    crdi_map_init(&map, p->ctx);
    CRD_TRY(crdi_map_reserve(&map, (size_t)object->count));
    for (const crdi_json* n = object->first; n; n = n->next) {
        bool fresh = false;
        CRD_TRY(crdi_map_add(&map, n->key, 0, &fresh));
        if (!fresh) {
            CRD_TRY(crdi_json_fail(p->ctx, p->file, n->line, CRD_E_FORMAT,
                                   "the key '%s' is given twice", crdi_clip(n->key).text));
        }
    }
fail:
    crdi_map_clear(&map);
    return st;
}

// A list or an object, with its brackets.
static crd_status read_members(parser* p, crdi_json* n)
{
    crd_status st = CRD_OK;
    const bool object = *p->at == '{';
    const char close = object ? '}' : ']';
    n->kind = object ? CRDI_JSON_OBJECT : CRDI_JSON_LIST;
    if (p->depth == CRDI_JSON_DEPTH) {
        return crdi_json_fail(p->ctx, p->file, p->line, CRD_E_FORMAT,
                              "nested deeper than %d levels", CRDI_JSON_DEPTH);
    }
    p->depth++;
    p->at++;
    skip_space(p);
    while (p->at < p->end && *p->at != close) {
        if (n->count) {
            if (*p->at != ',') { break; }
            p->at++;
            skip_space(p);
        }
        const char* key = NULL;
        const int line = p->line;
        if (object) { CRD_TRY(read_key(p, &key)); }
        crdi_json* member = add_member(p, n, key);
        if (!member) { return CRD_E_MEMORY; }
        if (object) { member->line = line; }
        CRD_TRY(read_json_value(p, member));
        skip_space(p);
    }
    if (p->at == p->end || *p->at != close) {
        return unexpected(p, object ? "',' or '}'" : "',' or ']'");
    }
    p->at++;
    p->depth--;
    if (object && n->count > 1) { st = check_duplicates(p, n); }
fail:
    return st;
}

static crd_status read_json_value(parser* p, crdi_json* n)
{
    const char c = p->at < p->end ? *p->at : 0;
    if (c == '{' || c == '[') { return read_members(p, n); }
    if (c == '"') {
        n->kind = CRDI_JSON_TEXT;
        return read_text(p, &n->text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) { return read_json_number(p, n); }
    return read_word(p, n);
}

crd_status crdi_json_parse_most(crd_arena* arena, const char* text, size_t length, size_t most,
                                crdi_json_source source, crdi_json** out)
{
    parser p = {.arena = arena,
                .ctx = arena->ctx,
                .file = source.file,
                .at = text,
                .end = text + length,
                .line = source.first_line};
    if (length > most) {
        return crdi_json_fail(p.ctx, p.file, 0, CRD_E_FORMAT, "%zu bytes, expected at most %zu",
                              length, most);
    }
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { p.at += 3; } // byte order mark
    crdi_json root = {0};
    skip_space(&p);
    crdi_json* n = add_member(&p, &root, NULL);
    if (!n) { return CRD_E_MEMORY; }
    const crd_status st = read_json_value(&p, n);
    if (st < 0) { return st; }
    skip_space(&p);
    if (p.at < p.end) { return unexpected(&p, "nothing behind the value"); }
    *out = n;
    return CRD_OK;
}

crd_status crdi_json_parse(crd_arena* arena, const char* text, size_t length,
                           crdi_json_source source, crdi_json** out)
{
    return crdi_json_parse_most(arena, text, length, CRDI_JSON_BYTES, source, out);
}

// ---- looking at it -----------------------------------------------------------------------------

const crdi_json* crdi_json_member(const crdi_json* object, const char* key)
{
    if (!object || object->kind != CRDI_JSON_OBJECT) { return NULL; }
    const crdi_json* n = object->first;
    while (n && strcmp(n->key, key) != 0) {
        n = n->next;
    }
    return n;
}

static const crdi_json* member_of_kind(const crdi_json* object, const char* key,
                                       crdi_json_kind kind)
{
    const crdi_json* n = crdi_json_member(object, key);
    return n && n->kind == kind ? n : NULL;
}

const crdi_json* crdi_json_get_list(const crdi_json* object, const char* key)
{
    return member_of_kind(object, key, CRDI_JSON_LIST);
}

const crdi_json* crdi_json_get_object(const crdi_json* object, const char* key)
{
    return member_of_kind(object, key, CRDI_JSON_OBJECT);
}

const char* crdi_json_get_text(const crdi_json* object, const char* key)
{
    const crdi_json* n = member_of_kind(object, key, CRDI_JSON_TEXT);
    return n ? n->text : "";
}

double crdi_json_get_number(const crdi_json* object, const char* key)
{
    return crdi_json_value(crdi_json_member(object, key));
}

bool crdi_json_get_bool(const crdi_json* object, const char* key, bool otherwise)
{
    const crdi_json* n = member_of_kind(object, key, CRDI_JSON_BOOL);
    return n ? n->truth : otherwise;
}

double crdi_json_value(const crdi_json* number)
{
    return number && number->kind == CRDI_JSON_NUMBER ? number->number : (double)NAN;
}

int crdi_json_count(const crdi_json* list)
{
    return list ? list->count : 0;
}

const crdi_json* crdi_json_first(const crdi_json* list)
{
    return list ? list->first : NULL;
}

const crdi_json* crdi_json_item(const crdi_json* list, int i)
{
    const crdi_json* n = crdi_json_first(list);
    for (; n && i > 0; i--) {
        n = n->next;
    }
    return n;
}

bool crdi_json_equal(const crdi_json* a, const crdi_json* b)
{
    if (!a || !b || a->kind != b->kind || a->count != b->count) { return a == b; }
    if (a->kind == CRDI_JSON_TEXT) { return strcmp(a->text, b->text) == 0; }
    if (a->kind == CRDI_JSON_NUMBER) { return a->number == b->number; }
    if (a->kind == CRDI_JSON_BOOL) { return a->truth == b->truth; }
    const crdi_json* other = b->first;
    for (const crdi_json* n = a->first; n; n = n->next) {
        const bool list = a->kind == CRDI_JSON_LIST;
        if (!crdi_json_equal(n, list ? other : crdi_json_member(b, n->key))) { return false; }
        other = other->next;
    }
    return true;
}
