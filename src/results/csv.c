#include "results/csv.h"
#include "shared/base.h"

#include <string.h>

enum { BYTES = 8 * (CRD_RECORD_BYTES - 1) };

// Reading programs split at any of these, or drop blanks at the ends.
static bool needs_quotes(const char* text, size_t length)
{
    if (length && (text[0] == ' ' || text[length - 1] == ' ')) { return true; }
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case ',':
        case ';':
        case '\t':
        case '"':
        case '\n':
        case '\r':
            return true;
        default:
            break;
        }
    }
    return false;
}

char* crdi_csv_text(char* at, const char* text, size_t length)
{
    if (!needs_quotes(text, length)) {
        memcpy(at, text, length);
        return at + length;
    }
    *at++ = '"';
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') { *at++ = '"'; }
        *at++ = text[i];
    }
    *at++ = '"';
    return at;
}

size_t crdi_csv_room(crd_type type)
{
    switch (type) {
    case CRD_STRING:
        return CRDI_CSV_TEXT_ROOM(BYTES) + 1;
    case CRD_BINARY:
        return 2 * BYTES + 1;
    default:
        return 32; // 25 of a double, 20 of an integer, and the separator
    }
}

static char* put_unsigned(char* at, uint64_t n)
{
    char digits[20];
    int i = 20;
    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    memcpy(at, digits + i, (size_t)(20 - i));
    return at + 20 - i;
}

// What was cut ends with a whole UTF-8 character; a zero byte ends a text.
static size_t string_length(const crd_word* word)
{
    if (word->integer <= 0) { return 0; }
    const char* text = (const char*)(word + 1);
    size_t n = word->integer < BYTES ? (size_t)word->integer : BYTES;
    if (word->integer > BYTES) {
        size_t back = 0;
        while (back < 4 && back < n && ((unsigned char)text[n - 1 - back] & 0xC0) == 0x80) {
            back++;
        }
        const unsigned char lead = back < n ? (unsigned char)text[n - 1 - back] : 0;
        const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (length > back + 1) { n -= back + 1; }
    }
    const char* zero = memchr(text, 0, n);
    return zero ? (size_t)(zero - text) : n;
}

size_t crdi_csv_copy_string(char* at, const crd_word* word)
{
    const size_t n = string_length(word);
    memcpy(at, word + 1, n);
    return n;
}

size_t crdi_csv_copy_binary(char* at, const crd_word* word)
{
    if (word->integer <= 0) { return 0; }
    const unsigned char* bytes = (const unsigned char*)(word + 1);
    const size_t n = word->integer < BYTES ? (size_t)word->integer : BYTES;
    for (size_t i = 0; i < n; i++) {
        *at++ = "0123456789abcdef"[bytes[i] >> 4];
        *at++ = "0123456789abcdef"[bytes[i] & 15];
    }
    return 2 * n;
}

char* crdi_csv_value(char* at, crd_type type, const crd_word* word)
{
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return at + crdi_format_double(at, word->real);
    case CRD_STRING:
        return crdi_csv_text(at, (const char*)(word + 1), string_length(word));
    case CRD_BINARY:
        return at + crdi_csv_copy_binary(at, word);
    case CRD_UINT64:
        return put_unsigned(at, (uint64_t)word->integer);
    case CRD_BOOLEAN:
    case CRD_CLOCK:
        *at = word->integer ? '1' : '0';
        return at + 1;
    default:
        break;
    }
    uint64_t n = (uint64_t)word->integer;
    if (word->integer < 0) {
        *at++ = '-';
        n = 0 - n;
    }
    return put_unsigned(at, n);
}

size_t crdi_csv_whole_rows(const char* text, size_t length, int64_t* rows)
{
    size_t end = 0;
    bool quoted = false;
    *rows = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') { quoted = !quoted; }
        if (text[i] == '\n' && !quoted) {
            end = i + 1;
            (*rows)++;
        }
    }
    return end;
}
