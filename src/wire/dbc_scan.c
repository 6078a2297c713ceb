// Words, numbers, texts and signs of a DBC file. Blanks and line ends separate and mean nothing
// else; // begins a comment; texts may go over lines and have \" inside.
#include "wire/dbc.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 128 };

void crdi_dbc_fail(crdi_dbc_scan* s, int line, const char* format, ...)
{
    if (s->status < 0) { return; }
    char sentence[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    s->status = crdi_json_fail(s->ctx, s->file, line, CRD_E_FORMAT, "%s", sentence);
    s->at = s->end;
    s->token = (crdi_dbc_token){.kind = CRDI_DBC_END, .at = s->end, .line = s->line};
}

void crdi_dbc_unexpected(crdi_dbc_scan* s, const char* expected)
{
    char found[64];
    const crdi_dbc_token* t = &s->token;
    snprintf(found, sizeof found, "%.*s", t->length < 40 ? (int)t->length : 40, t->at);
    crdi_dbc_fail(s, t->line, "expected %s, found %s%s%s", expected,
                  t->kind == CRDI_DBC_END ? "the end of the file" : "'",
                  t->kind == CRDI_DBC_END ? "" : crdi_clip(found).text,
                  t->kind == CRDI_DBC_END ? "" : "'");
}

// ---- tokens ------------------------------------------------------------------------------------

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(crdi_dbc_scan* s)
{
    while (s->at < s->end) {
        const char c = *s->at;
        if (c == '/' && s->end - s->at > 1 && s->at[1] == '/') {
            const char* line_end = memchr(s->at, '\n', (size_t)(s->end - s->at));
            s->at = line_end ? line_end : s->end;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
            s->line += c == '\n';
            s->at++;
        } else {
            return;
        }
    }
}

static const char* after_digits(const crdi_dbc_scan* s, const char* p)
{
    while (p < s->end && is_digit(*p)) {
        p++;
    }
    return p;
}

static const char* after_number(const crdi_dbc_scan* s)
{
    const char* p = after_digits(s, s->at);
    if (p < s->end && *p == '.') { p = after_digits(s, p + 1); }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        if (q < s->end && (*q == '+' || *q == '-')) { q++; }
        if (q < s->end && is_digit(*q)) { p = after_digits(s, q); }
    }
    return p;
}

// The quote that ends the text that begins at `p`, NULL.
static const char* text_end(crdi_dbc_scan* s, const char* p)
{
    for (; p < s->end && *p != '"'; p++) {
        if (*p == '\\' && s->end - p > 1 && p[1] == '"') { p++; }
        s->line += *p == '\n';
    }
    return p < s->end ? p : NULL;
}

void crdi_dbc_next(crdi_dbc_scan* s)
{
    skip_blanks(s);
    crdi_dbc_token* t = &s->token;
    *t = (crdi_dbc_token){.kind = CRDI_DBC_END, .at = s->at, .line = s->line};
    if (s->at >= s->end) { return; }
    const char c = *s->at;
    const char* p = s->at + 1;
    if (c == '"') {
        const char* end = text_end(s, p);
        if (!end) {
            crdi_dbc_fail(s, t->line, "the text that begins here has no closing quote");
            return;
        }
        *t = (crdi_dbc_token){CRDI_DBC_TEXT, p, (size_t)(end - p), t->line};
        s->at = end + 1;
        return;
    }
    if (is_letter(c)) {
        t->kind = CRDI_DBC_WORD;
        while (p < s->end && (is_letter(*p) || is_digit(*p))) {
            p++;
        }
    } else if (is_digit(c) || (c == '.' && p < s->end && is_digit(*p))) {
        t->kind = CRDI_DBC_NUMBER;
        p = after_number(s);
    } else {
        t->kind = CRDI_DBC_SIGN;
    }
    t->length = (size_t)(p - s->at);
    s->at = p;
}

bool crdi_dbc_is(const crdi_dbc_scan* s, const char* word)
{
    const crdi_dbc_token* t = &s->token;
    return t->kind == CRDI_DBC_WORD && strlen(word) == t->length &&
           memcmp(word, t->at, t->length) == 0;
}

bool crdi_dbc_accept(crdi_dbc_scan* s, char sign)
{
    const bool there = s->token.kind == CRDI_DBC_SIGN && *s->token.at == sign;
    if (there) { crdi_dbc_next(s); }
    return there;
}

void crdi_dbc_expect(crdi_dbc_scan* s, char sign)
{
    const char expected[] = {'\'', sign, '\'', 0};
    if (!crdi_dbc_accept(s, sign)) { crdi_dbc_unexpected(s, expected); }
}

// ---- values ------------------------------------------------------------------------------------

const char* crdi_dbc_word(crdi_dbc_scan* s, crd_arena* a, const char* expected)
{
    if (s->token.kind != CRDI_DBC_WORD) {
        crdi_dbc_unexpected(s, expected);
        return "";
    }
    if (s->token.length > LONGEST_WORD) {
        crdi_dbc_fail(s, s->token.line, "a name of %zu characters, expected at most %d",
                      s->token.length, LONGEST_WORD);
        return "";
    }
    const char* word = crdi_arena_text(a, s->token.at, s->token.length);
    crdi_dbc_next(s);
    return word ? word : "";
}

static bool is_utf8(const char* p, size_t length)
{
    for (size_t n = 0; length; p += n, length -= n) {
        n = crdi_utf8_length(p, length);
        if (n == 0) { return false; }
    }
    return true;
}

// Most files are in Latin-1, whose characters are the first 256 of Unicode.
const char* crdi_dbc_text(crdi_dbc_scan* s, crd_arena* a)
{
    const crdi_dbc_token t = s->token;
    if (t.kind != CRDI_DBC_TEXT) {
        crdi_dbc_unexpected(s, "a text in quotes");
        return "";
    }
    crdi_dbc_next(s);
    char* out = crdi_arena_new(a, 2 * t.length + 1, 1);
    if (!out) { return ""; }
    const bool latin = !is_utf8(t.at, t.length);
    size_t n = 0;
    for (size_t i = 0; i < t.length; i++) {
        const unsigned char c = (unsigned char)t.at[i];
        if (c == '\\' && i + 1 < t.length && t.at[i + 1] == '"') { continue; }
        if (c == '\r' || c == 0) { continue; }
        if (latin && c >= 0x80) {
            out[n++] = (char)(0xC0 | c >> 6);
            out[n++] = (char)(0x80 | (c & 0x3F));
        } else {
            out[n++] = (char)c;
        }
    }
    return out;
}

double crdi_dbc_real(crdi_dbc_scan* s, const char* expected)
{
    const bool minus = crdi_dbc_accept(s, '-');
    if (!minus) { (void)crdi_dbc_accept(s, '+'); }
    double x = 0;
    if (s->token.kind != CRDI_DBC_NUMBER || !crdi_parse_double(s->token.at, s->token.length, &x) ||
        !isfinite(x)) {
        crdi_dbc_unexpected(s, expected);
        return 0;
    }
    crdi_dbc_next(s);
    return minus ? -x : x;
}

int64_t crdi_dbc_integer(crdi_dbc_scan* s, int64_t first, int64_t last, const char* expected)
{
    const bool minus = crdi_dbc_accept(s, '-');
    if (!minus) { (void)crdi_dbc_accept(s, '+'); }
    const bool any = last == INT64_MAX; // the 64 bits of an unsigned value will do, too
    uint64_t x = 0;
    const bool good = s->token.kind == CRDI_DBC_NUMBER &&
                      crdi_parse_uint64(s->token.at, s->token.length, &x) &&
                      (x <= INT64_MAX || (any && !minus));
    const int64_t value = !good ? 0 : minus ? -(int64_t)x : (int64_t)x;
    if (!good || (!any && (value < first || value > last))) {
        crdi_dbc_unexpected(s, expected);
        return 0;
    }
    crdi_dbc_next(s);
    return value;
}
