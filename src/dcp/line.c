// Lines of text in given room.
#include "shared/dcp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void crdi_dcp_line_put(crdi_dcp_line* l, const char* text, size_t length)
{
    if (l->length < l->room) {
        const size_t left = l->room - 1 - l->length, n = length < left ? length : left;
        memcpy(l->out + l->length, text, n);
        l->out[l->length + n] = 0;
    }
    l->length += length;
}

void crdi_dcp_line_add(crdi_dcp_line* l, const char* format, ...)
{
    char text[64]; // of a number or a word
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crdi_dcp_line_put(l, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void crdi_dcp_line_hex(crdi_dcp_line* l, const uint8_t* bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        crdi_dcp_line_put(l, (const char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
    }
}
