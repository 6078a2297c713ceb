#include "shared/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void crd_text_init(crd_text* t, crd_context* ctx)
{
    *t = (crd_text){.ctx = ctx};
}

void crd_text_clear(crd_text* t)
{
    crd_free(t->ctx, t->data);
    *t = (crd_text){.ctx = t->ctx};
}

// Room for `more` bytes and a zero. NULL: out of memory.
static char* room(crd_text* t, size_t more)
{
    if (t->failed) { return NULL; }
    char* grown = more < SIZE_MAX - t->length
                      ? crdi_grow(t->ctx, t->data, &t->capacity, t->length + more + 1, 1)
                      : NULL;
    if (!grown) {
        t->failed = true;
        return NULL;
    }
    t->data = grown;
    return grown + t->length;
}

void crdi_text_put(crd_text* t, const void* bytes, size_t length)
{
    char* at = room(t, length);
    if (!at) { return; }
    if (length) { memcpy(at, bytes, length); }
    at[length] = 0;
    t->length += length;
}

void crdi_text_add(crd_text* t, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    char small[256];
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(small, sizeof small, format, args);
    if (n < 0) {
        t->failed = true;
    } else if ((size_t)n < sizeof small) {
        crdi_text_put(t, small, (size_t)n);
    } else {
        char* at = room(t, (size_t)n);
        if (at) {
            vsnprintf(at, (size_t)n + 1, format, again);
            t->length += (size_t)n;
        }
    }
    va_end(again);
    va_end(args);
}

void crdi_text_xml(crd_text* t, const char* text)
{
    for (const char* p = text; *p;) {
        size_t plain = strcspn(p, "&<>\"'");
        for (size_t i = 0; i < plain; i++) { // rare: stop in front of what has to be replaced
            const unsigned char c = (unsigned char)p[i];
            if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') { plain = i; }
        }
        crdi_text_put(t, p, plain);
        p += plain;
        if (!*p) { break; }
        const char* entity = *p == '&'    ? "&amp;"
                             : *p == '<'  ? "&lt;"
                             : *p == '>'  ? "&gt;"
                             : *p == '"'  ? "&quot;"
                             : *p == '\'' ? "&apos;"
                                          : "?";
        crdi_text_put(t, entity, strlen(entity));
        p++;
    }
}

// Bytes of the UTF-8 character at p, 0: it is none.
static size_t utf8_length(const unsigned char* p)
{
    static const struct {
        unsigned char low, high; // of the second byte
    } bounds[] = {{0xA0, 0xBF}, {0x80, 0x9F}, {0x90, 0xBF}, {0x80, 0x8F}, {0x80, 0xBF}};
    if (p[0] < 0x80) { return 1; }
    if (p[0] < 0xC2 || p[0] > 0xF4) { return 0; }
    const size_t n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    const int k = p[0] == 0xE0 ? 0 : p[0] == 0xED ? 1 : p[0] == 0xF0 ? 2 : p[0] == 0xF4 ? 3 : 4;
    if (p[1] < bounds[k].low || p[1] > bounds[k].high) { return 0; }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) { return 0; }
    }
    return n;
}

void crdi_text_json(crd_text* t, const char* text)
{
    crdi_text_put(t, "\"", 1);
    const unsigned char* p = (const unsigned char*)text;
    while (*p) {
        const size_t n = utf8_length(p);
        if (n == 0) {
            crdi_text_put(t, "\xEF\xBF\xBD", 3);
            p++;
        } else if (*p == '"' || *p == '\\') {
            crdi_text_add(t, "\\%c", *p++);
        } else if (*p < 0x20 || *p == '<' || *p == 0x7f) { // "</script>" must not end a page's data
            crdi_text_add(t, "\\u%04x", *p++);
        } else {
            crdi_text_put(t, p, n);
            p += n;
        }
    }
    crdi_text_put(t, "\"", 1);
}

void crdi_text_json_number(crd_text* t, double x)
{
    if (!isfinite(x)) {
        crdi_text_put(t, "null", 4);
        return;
    }
    char text[32];
    double back = NAN;
    for (int digits = 15; digits <= 17 && back != x; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        char* comma = strchr(text, ','); // the locale's
        if (comma) { *comma = '.'; }
        crdi_parse_double(text, strlen(text), &back);
    }
    crdi_text_put(t, text, strlen(text));
}
