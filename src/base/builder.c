#include "shared/base.h"

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

char* crdi_text_room(crd_text* t, size_t more)
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
    char* at = crdi_text_room(t, length);
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
        char* at = crdi_text_room(t, (size_t)n);
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

size_t crdi_utf8_length(const char* s, size_t length)
{
    // Overlong forms, halves of pairs and what is beyond U+10FFFF are known by the second byte.
    static const struct {
        unsigned char low, high;
    } bounds[] = {{0xA0, 0xBF}, {0x80, 0x9F}, {0x90, 0xBF}, {0x80, 0x8F}, {0x80, 0xBF}};
    const unsigned char* p = (const unsigned char*)s;
    if (length == 0) { return 0; }
    if (p[0] < 0x80) { return 1; }
    if (p[0] < 0xC2 || p[0] > 0xF4) { return 0; }
    const size_t n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    const int k = p[0] == 0xE0 ? 0 : p[0] == 0xED ? 1 : p[0] == 0xF0 ? 2 : p[0] == 0xF4 ? 3 : 4;
    if (length < n || p[1] < bounds[k].low || p[1] > bounds[k].high) { return 0; }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) { return 0; }
    }
    return n;
}

void crdi_text_base64(crd_text* t, const void* bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char* p = bytes;
    char* out = crdi_text_room(t, (length + 2) / 3 * 4);
    if (!out) { return; }
    for (size_t i = 0; i < length; i += 3) {
        const size_t left = length - i;
        const uint32_t x = (uint32_t)p[i] << 16 | (uint32_t)(left > 1 ? p[i + 1] : 0) << 8 |
                           (uint32_t)(left > 2 ? p[i + 2] : 0);
        *out++ = digits[x >> 18];
        *out++ = digits[x >> 12 & 63];
        *out++ = left > 1 ? digits[x >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[x & 63] : '=';
    }
    *out = 0;
    t->length += (length + 2) / 3 * 4;
}
