#include "circuit/scan.h"

#include <stdio.h>
#include <string.h>

static char scan_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static bool letter(char c)
{
    return scan_lower(c) >= 'a' && scan_lower(c) <= 'z';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static void to_line_end(crdi_scan* s)
{
    const char* q = memchr(s->p, '\n', (size_t)(s->end - s->p));
    s->p = q ? q : s->end;
}

// '$' and "//" begin a comment only behind a space: names and paths have them too.
static bool comment(const crdi_scan* s)
{
    const char c = *s->p;
    if (c == ';') { return true; }
    const bool second = c == '/' && s->p + 1 < s->end && s->p[1] == '/';
    return (c == '$' || second) && (s->p == s->begin || blank(s->p[-1]) || s->p[-1] == '\n');
}

// Behind a newline inside a card there are blank lines and comments, then a '+'.
static void next_line(crdi_scan* s)
{
    while (s->p < s->end) {
        s->p++; // the newline
        s->line++;
        while (s->p < s->end && blank(*s->p)) {
            s->p++;
        }
        if (s->p < s->end && *s->p == '+') {
            s->p++;
            return;
        }
        to_line_end(s);
    }
}

void crdi_scan_space(crdi_scan* s)
{
    while (s->p < s->end) {
        if (blank(*s->p)) {
            s->p++;
        } else if (*s->p == '\n') {
            next_line(s);
        } else if (comment(s)) {
            to_line_end(s);
        } else {
            return;
        }
    }
}

bool crdi_scan_end(crdi_scan* s)
{
    crdi_scan_space(s);
    return s->p >= s->end;
}

char crdi_scan_peek(crdi_scan* s)
{
    return crdi_scan_end(s) ? 0 : *s->p;
}

bool crdi_scan_take(crdi_scan* s, char c)
{
    if (crdi_scan_peek(s) != c) { return false; }
    s->p++;
    return true;
}

static bool ends_word(char c)
{
    return blank(c) || c == '\n' || c == ',' || c == '(' || c == ')' || c == '=' || c == '{' ||
           c == '}' || c == '\'' || c == '"' || c == ';';
}

crdi_word crdi_scan_word(crdi_scan* s)
{
    crdi_scan_space(s);
    crdi_word w = {s->p, 0};
    while (s->p < s->end && !ends_word(*s->p)) {
        s->p++;
    }
    w.n = (size_t)(s->p - w.p);
    return w;
}

bool crdi_scan_delimited(const crdi_scan* s)
{
    return s->p >= s->end || ends_word(*s->p);
}

crdi_word crdi_scan_look(const crdi_scan* s)
{
    crdi_scan ahead = *s;
    crdi_word w = crdi_scan_word(&ahead);
    if (!w.n && w.p < s->end) { w.n = 1; }
    return w.n ? w : (crdi_word){"the end of the line", 19};
}

// The factor of a suffix, times / over, and its length; 1 and 0 without. Letters behind it are a
// unit and mean nothing: 10kOhm. Both are exact, so that 10u is the same number as 1e-5.
static double suffix(const char* p, const char* end, size_t* length, double* over)
{
    static const struct {
        const char* text;
        double times, over;
    } list[] = {
        {"meg", 1e6, 1},      {"mil", 254, 1e7},    {"t", 1e12, 1}, {"g", 1e9, 1},  {"k", 1e3, 1},
        {"m", 1, 1e3},        {"u", 1, 1e6},        {"n", 1, 1e9},  {"p", 1, 1e12}, {"f", 1, 1e15},
        {"a", 1, 1e18},       {"\xc2\xb5", 1, 1e6}, // micro sign, Greek mu, and the sign in Latin-1
        {"\xce\xbc", 1, 1e6}, {"\xb5", 1, 1e6}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const size_t n = strlen(list[i].text);
        size_t k = 0;
        while (k < n && p + k < end && scan_lower(p[k]) == list[i].text[k]) {
            k++;
        }
        if (k == n) {
            *length = n;
            *over = list[i].over;
            return list[i].times;
        }
    }
    *length = 0;
    *over = 1;
    return 1;
}

static const char* digits(const char* p, const char* end)
{
    while (p < end && digit(*p)) {
        p++;
    }
    return p;
}

crd_status crdi_scan_number(crdi_scan* s, double* out, bool* found)
{
    crdi_scan_space(s);
    const char *p = s->p, *end = s->end;
    *found = false;
    if (p < end && (*p == '+' || *p == '-')) { p++; }
    const char* first = p;
    p = digits(p, end);
    size_t count = (size_t)(p - first);
    if (p < end && *p == '.') {
        const char* point = p++;
        p = digits(p, end);
        count += (size_t)(p - point - 1);
    }
    if (!count) { return CRD_OK; }
    const char* e = p;
    if (e < end && scan_lower(*e) == 'e') {
        e++;
        if (e < end && (*e == '+' || *e == '-')) { e++; }
        const char* tail = digits(e, end);
        if (tail > e) { p = tail; }
    }
    double value;
    const bool read = crdi_parse_double(s->p, (size_t)(p - s->p), &value);
    size_t n = 0;
    double over;
    value *= suffix(p, end, &n, &over);
    value /= over;
    p += n;
    while (p < end && letter(*p)) {
        p++;
    }
    const bool odd = p < end && (digit(*p) || *p == '_' || *p == '.' || *p == '#' || *p & 0x80);
    if (!read || odd || !(value - value == 0)) {
        return crdi_scan_fail(s, CRD_E_FORMAT, "\"%s\" is not a number",
                              crdi_word_clip(crdi_scan_look(s)).text);
    }
    s->p = p;
    *out = value;
    *found = true;
    return CRD_OK;
}

crd_status crdi_scan_fail(const crdi_scan* s, crd_status st, const char* format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(s->ctx, st, "%s:%d: %s", s->file, s->line, text);
}

bool crdi_word_is(crdi_word w, const char* text)
{
    for (size_t i = 0; i < w.n; i++) {
        if (!text[i] || scan_lower(w.p[i]) != text[i]) { return false; }
    }
    return !text[w.n];
}

crdi_quote crdi_word_clip(crdi_word w)
{
    char text[100];
    const size_t n = w.n < sizeof text - 1 ? w.n : sizeof text - 1;
    memcpy(text, w.p, n);
    text[n] = 0;
    return crdi_clip(text);
}

bool crdi_word_fold(crdi_word w, char out[CRDI_NAME_MOST + 1])
{
    if (w.n > CRDI_NAME_MOST) { return false; }
    for (size_t i = 0; i < w.n; i++) {
        out[i] = scan_lower(w.p[i]);
    }
    out[w.n] = 0;
    return true;
}
