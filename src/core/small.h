// In front of every file of the core when it is built for a controller (-include core/small.h):
// texts are formatted by format.c, since that of C libraries takes memory from a heap for numbers.
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

int crdi_snprintf(char* out, size_t room, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
int crdi_vsnprintf(char* out, size_t room, const char* format, va_list args)
    __attribute__((format(printf, 3, 0)));
#undef snprintf
#undef vsnprintf
#define snprintf crdi_snprintf
#define vsnprintf crdi_vsnprintf
