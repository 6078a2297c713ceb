// Frames as text, as candump of can-utils writes and shows them.
#include "shared/wire_can.h"

#include <stdio.h>
#include <string.h>

enum { STANDARD_DIGITS = 3, EXTENDED_DIGITS = 8 };
static const uint32_t standard_most = 0x7FF, extended_most = 0x1FFFFFFF, error_flag = 0x20000000;

static int hex(char c)
{
    if (c >= '0' && c <= '9') { return c - '0'; }
    if (c >= 'a' && c <= 'f') { return c - 'a' + 10; }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Three hexadecimal digits, or eight of a long identifier or an error frame
static bool parse_id(const char* p, size_t n, crdi_can_frame* f)
{
    uint32_t id = 0;
    if (n != STANDARD_DIGITS && n != EXTENDED_DIGITS) { return false; }
    for (size_t i = 0; i < n; i++) {
        if (hex(p[i]) < 0) { return false; }
        id = id << 4 | (uint32_t)hex(p[i]);
    }
    f->error = n == EXTENDED_DIGITS && id & error_flag;
    f->extended = n == EXTENDED_DIGITS && !f->error;
    f->id = f->error ? id & ~error_flag : id;
    return f->id <= (n == STANDARD_DIGITS ? standard_most : extended_most);
}

// Pairs of digits, with dots or blanks between them
static bool parse_data(const char* p, size_t n, crdi_can_frame* f)
{
    size_t i = 0, count = 0;
    while (i < n) {
        if (count && (p[i] == '.' || p[i] == ' ')) {
            i++;
            continue;
        }
        if (n - i < 2 || hex(p[i]) < 0 || hex(p[i + 1]) < 0 || count == CRDI_CAN_LONGEST) {
            return false;
        }
        f->data[count++] = (uint8_t)(hex(p[i]) << 4 | hex(p[i + 1]));
        i += 2;
    }
    f->length = (uint8_t)count;
    return f->fd ? crdi_can_round_length((int)count) == (int)count : count <= 8;
}

bool crdi_can_parse_frame(const char* text, size_t size, crdi_can_frame* out, const char** why)
{
    crdi_can_frame f = {0};
    const char* mark = memchr(text, '#', size);
    *why = "a frame as 123#DEADBEEF, 12345678#AB, 123#R or of CAN FD 123##1AB: 3 or 8 hexadecimal "
           "digits, then data";
    if (!mark || !parse_id(text, (size_t)(mark - text), &f)) { return false; }
    const char *p = mark + 1, *end = text + size;
    *why = "up to 8 bytes as pairs of hexadecimal digits; of CAN FD (##, flags) up to 8, 12, 16, "
           "20, 24, 32, 48 or 64";
    if (p < end && *p == '#') {
        if (end - p < 2 || hex(p[1]) < 0) { return false; }
        f.fd = true;
        f.flags = (uint8_t)hex(p[1]) & 3;
        p += 2;
    } else if (p < end && (*p == 'R' || *p == 'r')) {
        f.remote = true;
        if (end - p > 2 || (end - p == 2 && (p[1] < '0' || p[1] > '8'))) { return false; }
        f.length = end - p == 2 ? (uint8_t)(p[1] - '0') : 0;
        p = end;
    }
    if (!f.remote && !parse_data(p, (size_t)(end - p), &f)) { return false; }
    *out = f;
    return true;
}

// ---- lines -------------------------------------------------------------------------------------

static size_t next_word(const char** p, const char* end)
{
    while (*p < end && (**p == ' ' || **p == '\t')) {
        (*p)++;
    }
    const char* from = *p;
    while (*p < end && **p != ' ' && **p != '\t') {
        (*p)++;
    }
    return (size_t)(*p - from);
}

// "(1436509052.249713)" in ns, exactly: a double has not so many digits
static bool parse_time(const char* p, size_t n, int64_t* ns)
{
    if (n < 3 || p[0] != '(' || p[n - 1] != ')') { return false; }
    const char* point = memchr(p, '.', n);
    const size_t whole = point ? (size_t)(point - p) - 1 : n - 2;
    const size_t digits = point ? n - 3 - whole : 0;
    int64_t seconds = 0, part = 0;
    if (!crdi_parse_int64(p + 1, whole, &seconds) || seconds < 0 || seconds > 9000000000 ||
        digits > 9 || (point && digits && !crdi_parse_int64(point + 1, digits, &part)) ||
        part < 0) {
        return false;
    }
    for (size_t i = digits; i < 9; i++) {
        part *= 10;
    }
    *ns = seconds * 1000000000 + part;
    return true;
}

// As candump shows it: `123   [4]  DE AD BE EF`; two digits of length are those of CAN FD.
static bool parse_shown(const char* id, size_t id_length, const char* p, const char* end,
                        crdi_can_frame* out, const char** why)
{
    static const char remote[] = "remote request";
    crdi_can_frame f = {0};
    int64_t length = 0;
    *why = "a line of candump: interface, identifier, [length] and as many bytes";
    const size_t n = next_word(&p, end);
    const char* word = p - n;
    if (!parse_id(id, id_length, &f) || n < 3 || word[0] != '[' || word[n - 1] != ']' ||
        !crdi_parse_int64(word + 1, n - 2, &length) || length < 0) {
        return false;
    }
    f.fd = n == 4;
    while (p < end && *p == ' ') {
        p++;
    }
    // A text behind the bytes, in quotes or of an error frame, says the same again.
    const char* quote = memchr(p, '\'', (size_t)(end - p));
    if (quote) { end = quote; }
    if (f.error && end - p > 23) { end = p + 23; }
    while (end > p && end[-1] == ' ') {
        end--;
    }
    if ((size_t)(end - p) >= sizeof remote - 1 && memcmp(p, remote, sizeof remote - 1) == 0) {
        f.remote = true;
        f.length = (uint8_t)length;
    } else if (!parse_data(p, (size_t)(end - p), &f) || f.length != length) {
        return false;
    }
    if (f.length > (f.fd ? CRDI_CAN_LONGEST : 8)) { return false; }
    *out = f;
    return true;
}

bool crdi_can_parse_line(const char* line, size_t size, crdi_can_frame* out, const char** interface,
                         size_t* length, const char** why)
{
    const char *p = line, *end = line + size;
    while (end > p && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ')) {
        end--;
    }
    int64_t time = 0;
    size_t n = next_word(&p, end);
    if (n && p[-(ptrdiff_t)n] == '(') {
        *why = "a time as (1436509052.249713)";
        if (!parse_time(p - n, n, &time)) { return false; }
        n = next_word(&p, end);
    }
    *interface = p - n;
    *length = n;
    if (n && !memchr(p - n, '#', n)) {
        n = next_word(&p, end);
    } else {
        *length = 0; // a frame alone
    }
    const char* word = p - n;
    const bool good = n && memchr(word, '#', n) ? crdi_can_parse_frame(word, n, out, why)
                                                : parse_shown(word, n, p, end, out, why);
    if (good) { out->time = time; }
    return good;
}

int crdi_can_print_frame(const crdi_can_frame* f, char out[CRDI_CAN_TEXT])
{
    const bool wide = f->extended || f->error;
    int n = snprintf(out, CRDI_CAN_TEXT, "%0*X#", wide ? EXTENDED_DIGITS : STANDARD_DIGITS,
                     f->id | (f->error ? error_flag : 0));
    if (f->fd) { n += snprintf(out + n, CRDI_CAN_TEXT - (size_t)n, "#%X", f->flags & 0xFU); }
    if (f->remote) {
        out[n++] = 'R';
        if (f->length) { out[n++] = (char)('0' + f->length); }
    }
    for (int i = 0; i < f->length && !f->remote; i++) {
        n += snprintf(out + n, CRDI_CAN_TEXT - (size_t)n, "%02X", f->data[i]);
    }
    out[n] = 0;
    return n;
}
