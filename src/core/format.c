// snprintf for controllers: %d %i %u %x %X %c %s %g %% with flags 0 and -, width, precision and
// lengths; %f and %e are written as %g, %.17g with the fewest digits that read back. Without heap
// and locale.
#include "core/small.h"
#include "shared/base.h"

#include <string.h>

typedef struct field {
    char *out, *end; // of the room, its last byte apart
    size_t length;
} field;

typedef struct spec {
    bool left, zeros, plus;
    int width, precision; // -1: not given
    int size;             // -2 hh, -1 h, 0, 1 l, 2 ll, 3 z
} spec;

static void put(field* f, const char* text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (f->out < f->end) { *f->out++ = text[i]; }
    }
    f->length += n;
}

static void fill(field* f, char c, int n)
{
    for (int i = 0; i < n; i++) {
        put(f, &c, 1);
    }
}

static void put_padded(field* f, const spec* s, const char* text, size_t n)
{
    const int pad = s->width - (int)n;
    const bool sign = s->zeros && !s->left && n && (text[0] == '-' || text[0] == '+');
    if (!s->left && !s->zeros) { fill(f, ' ', pad); }
    if (sign) { put(f, text, 1); }
    if (!s->left && s->zeros) { fill(f, '0', pad); }
    put(f, text + sign, n - sign);
    if (s->left) { fill(f, ' ', pad); }
}

static void put_integer(field* f, const spec* s, uint64_t x, bool negative, unsigned base, bool big)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (big ? "0123456789ABCDEF" : "0123456789abcdef")[x % base];
        x /= base;
    } while (x);
    if (negative) { text[--at] = '-'; }
    put_padded(f, s, text + at, sizeof text - at);
}

// The digits of the shortest text, rounded to `precision` of them, and where the point stands.
static int digits_of(const char* text, int precision, char* digits, int* exponent)
{
    int n = 0, point = -1, seen = 0, e = 0;
    const char* p = text;
    for (; *p && *p != 'e'; p++) {
        if (*p == '.') {
            point = seen;
            continue;
        }
        seen++;
        digits[n++] = *p;
    }
    if (*p == 'e') {
        const bool minus = p[1] == '-';
        for (p += 1 + (p[1] == '-' || p[1] == '+'); *p; p++) {
            e = 10 * e + (*p - '0');
        }
        if (minus) { e = -e; }
    }
    int zeros = 0;
    while (zeros < n - 1 && digits[zeros] == '0') {
        zeros++;
    }
    memmove(digits, digits + zeros, (size_t)(n - zeros));
    n -= zeros;
    e += (point < 0 ? seen : point) - 1 - zeros;
    if (n > precision) {
        const bool up = digits[precision] >= '5';
        n = precision;
        for (int i = n - 1; up; i--) {
            if (i < 0) {
                digits[0] = '1';
                n = 1;
                e++;
                break;
            }
            if (digits[i] < '9') {
                digits[i]++;
                break;
            }
            digits[i] = '0';
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    *exponent = e;
    return n;
}

static void put_real(field* f, const spec* s, double x)
{
    char shortest[32], digits[40], text[64];
    int e = 0, at = 0;
    crdi_format_double(shortest, x);
    const char* from = shortest;
    if (*from == '-') { text[at++] = *from++; }
    if (s->plus && at == 0) { text[at++] = '+'; }
    if (*from < '0' || *from > '9') { // inf, nan
        memcpy(text + at, from, strlen(from) + 1);
        put_padded(f, &(spec){.left = s->left, .width = s->width}, text, strlen(text));
        return;
    }
    const int most = s->precision < 0 ? 6 : s->precision < 1 ? 1 : s->precision;
    const int precision = most > 17 ? 17 : most;
    const int n = digits_of(from, precision, digits, &e);
    const bool fixed = x == 0 || (e >= -4 && e < precision);
    int point = x == 0 ? 1 : fixed ? e + 1 : 1;
    if (fixed && e < 0 && x != 0) { // 0.00ddd
        text[at++] = '0';
        text[at++] = '.';
        for (int i = -1; i > e; i--) {
            text[at++] = '0';
        }
        point = -1;
    }
    for (int i = 0; i < n || (fixed && i < point); i++) {
        if (i == point) { text[at++] = '.'; }
        text[at++] = i < n ? digits[i] : '0';
    }
    if (!fixed) {
        text[at++] = 'e';
        text[at++] = e < 0 ? '-' : '+';
        e = e < 0 ? -e : e;
        if (e >= 100) { text[at++] = (char)('0' + e / 100); }
        text[at++] = (char)('0' + e / 10 % 10);
        text[at++] = (char)('0' + e % 10);
    }
    put_padded(f, s, text, (size_t)at);
}

static int number_at(const char** p, va_list* args)
{
    int n = 0;
    if (**p == '*') {
        (*p)++;
        return va_arg(*args, int);
    }
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        n = 10 * n + (**p - '0');
    }
    return n;
}

static spec read_spec(const char** p, va_list* args)
{
    spec s = {.precision = -1};
    for (;; (*p)++) {
        if (**p == '-') {
            s.left = true;
        } else if (**p == '0') {
            s.zeros = true;
        } else if (**p == '+') {
            s.plus = true;
        } else {
            break;
        }
    }
    s.width = number_at(p, args);
    if (s.width < 0) {
        s.left = true;
        s.width = -s.width;
    }
    if (**p == '.') {
        (*p)++;
        s.precision = number_at(p, args);
    }
    for (;; (*p)++) {
        if (**p == 'l') {
            s.size++;
        } else if (**p == 'h') {
            s.size--;
        } else if (**p == 'z') {
            s.size = 3;
        } else {
            return s;
        }
    }
}

static int64_t signed_of(const spec* s, va_list* args)
{
    return s->size == 3   ? (int64_t)va_arg(*args, ptrdiff_t)
           : s->size == 2 ? (int64_t)va_arg(*args, long long)
           : s->size == 1 ? (int64_t)va_arg(*args, long)
                          : (int64_t)va_arg(*args, int);
}

static uint64_t unsigned_of(const spec* s, va_list* args)
{
    return s->size == 3   ? (uint64_t)va_arg(*args, size_t)
           : s->size == 2 ? (uint64_t)va_arg(*args, unsigned long long)
           : s->size == 1 ? (uint64_t)va_arg(*args, unsigned long)
                          : (uint64_t)va_arg(*args, unsigned);
}

static void put_text(field* f, const spec* s, const char* text)
{
    size_t n = 0;
    while ((s->precision < 0 || n < (size_t)s->precision) && text[n]) {
        n++;
    }
    put_padded(f, &(spec){.left = s->left, .width = s->width}, text, n);
}

static void put_one(field* f, char c, const spec* s, va_list* args)
{
    if (c == 'd' || c == 'i') {
        const int64_t x = signed_of(s, args);
        put_integer(f, s, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, x < 0, 10, false);
    } else if (c == 'u' || c == 'x' || c == 'X') {
        put_integer(f, s, unsigned_of(s, args), false, c == 'u' ? 10 : 16, c == 'X');
    } else if (c == 'g' || c == 'f' || c == 'e') {
        put_real(f, s, va_arg(*args, double));
    } else if (c == 's') {
        put_text(f, s, va_arg(*args, const char*));
    } else if (c == 'c') {
        const char one = (char)va_arg(*args, int);
        put_padded(f, s, &one, 1);
    } else {
        put(f, &c, 1); // %%
    }
}

int crdi_vsnprintf(char* out, size_t room, const char* format, va_list args)
{
    field f = {.out = out, .end = room ? out + room - 1 : out};
    va_list rest;
    va_copy(rest, args);
    for (const char* p = format; *p; p++) {
        if (*p != '%') {
            put(&f, p, 1);
            continue;
        }
        p++;
        const spec s = read_spec(&p, &rest);
        if (!*p) { break; }
        put_one(&f, *p, &s, &rest);
    }
    va_end(rest);
    if (room) { *f.out = 0; }
    return (int)f.length;
}

int crdi_snprintf(char* out, size_t room, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = crdi_vsnprintf(out, room, format, args);
    va_end(args);
    return n;
}
