// Values as they are written: parsed for the type and the unit of measure of a variable.
#include "shared/base.h"
#include "shared/base_names.h"
#include "shared/unit.h"
#include "unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void crdi_unit_integer_range(crd_type t, int64_t* low, int64_t* high)
{
    static const struct {
        int64_t low, high;
    } ranges[CRD_TYPE_COUNT] = {
        [CRD_INT8] = {INT8_MIN, INT8_MAX},          [CRD_UINT8] = {0, UINT8_MAX},
        [CRD_INT16] = {INT16_MIN, INT16_MAX},       [CRD_UINT16] = {0, UINT16_MAX},
        [CRD_INT32] = {INT32_MIN, INT32_MAX},       [CRD_UINT32] = {0, UINT32_MAX},
        [CRD_INT64] = {INT64_MIN, INT64_MAX},       [CRD_BOOLEAN] = {0, 1},
        [CRD_ENUMERATION] = {INT64_MIN, INT64_MAX}, [CRD_CLOCK] = {0, 1},
    };
    *low = ranges[t].low;
    *high = ranges[t].high;
}

// A piece of the text, without blanks around it.
typedef struct word {
    const char* text;
    size_t length;
} word;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static word trim(word w)
{
    while (w.length && is_blank(w.text[0])) {
        w.text++;
        w.length--;
    }
    while (w.length && is_blank(w.text[w.length - 1])) {
        w.length--;
    }
    return w;
}

static bool equals(word w, const char* text)
{
    return strlen(text) == w.length && memcmp(w.text, text, w.length) == 0;
}

// Case does not matter: Python writes True, spreadsheets TRUE.
static bool equals_any(word w, const char* const* texts)
{
    for (; *texts; texts++) {
        if (strlen(*texts) == w.length && strncasecmp(w.text, *texts, w.length) == 0) {
            return true;
        }
    }
    return false;
}

static bool unit_text_is_number(word w)
{
    double x;
    return crdi_parse_double(w.text, w.length, &x);
}

// How much of the beginning is a number: "100" of "100 g", "1e3" of "1e3m".
static size_t number_length(word w)
{
    size_t n = w.length < 512 ? w.length : 512;
    while (n && !crdi_parse_double(w.text, n, &(double){0})) {
        n--;
    }
    return n;
}

// The end of a quoted element, behind its closing quote.
static size_t quoted_end(word rest)
{
    size_t end = 1;
    while (end < rest.length && rest.text[end] != '"') {
        end += rest.text[end] == '\\' && end + 1 < rest.length ? 2 : 1;
    }
    return end < rest.length ? end + 1 : end;
}

// The end of an element without quotes. Numbers may have a unit behind a blank: a word that does
// not begin like a number belongs to the one before.
static size_t plain_end(word rest, bool joins)
{
    size_t end = 0;
    for (;;) {
        while (end < rest.length && !is_blank(rest.text[end])) {
            end++;
        }
        size_t next = end;
        while (next < rest.length && is_blank(rest.text[next])) {
            next++;
        }
        const char* p = rest.text + next;
        if (!joins || next == rest.length || strchr("\"+-.0123456789", *p)) { return end; }
        size_t length = 0;
        while (next + length < rest.length && !is_blank(p[length])) {
            length++;
        }
        if (unit_text_is_number((word){p, length})) { return end; } // INF, NaN
        end = next;
    }
}

// Cuts off the next element of an array. One in quotes is given without them, its backslashes still
// in it.
static bool unit_text_next_word(word* rest, bool joins, word* out, bool* quoted)
{
    *rest = trim(*rest);
    if (!rest->length) { return false; }
    *quoted = rest->text[0] == '"';
    const size_t end = *quoted ? quoted_end(*rest) : plain_end(*rest, joins);
    *out = (word){rest->text, end};
    if (*quoted) {
        const bool closed = end > 1 && rest->text[end - 1] == '"';
        *out = (word){rest->text + 1, end - 1 - closed};
    }
    rest->text += end;
    rest->length -= end;
    return true;
}

// Into `buffer`, which is at least as long.
static word unescape(word w, char* buffer)
{
    size_t n = 0;
    for (size_t i = 0; i < w.length; i++) {
        if (w.text[i] == '\\' && i + 1 < w.length) { i++; }
        buffer[n++] = w.text[i];
    }
    return (word){buffer, n};
}

// ---- numbers -----------------------------------------------------------------------------------

#define SHOW(w) (int)((w).length < 80 ? (w).length : 80), (w).text

static crd_status wrong_unit(crd_unit* u, const crd_variable* v, word w, word given)
{
    if (!v->unit[0]) {
        return crdi_fail(
            u->ctx, CRD_E_RANGE,
            "'%s' = '%.*s': it has no unit of measure, expected a number without '%.*s'", v->name,
            SHOW(w), SHOW(given));
    }
    return crdi_fail(u->ctx, CRD_E_RANGE,
                     "'%s' = '%.*s': '%.*s' cannot be converted into its unit '%s'", v->name,
                     SHOW(w), SHOW(given), v->unit);
}

static crd_status parse_real(crd_unit* u, int32_t variable, word w, bool* has_unit, double* out)
{
    const crd_variable* v = &u->info.variables[variable];
    if (w.length > 1 && w.text[0] == '+' && w.text[1] != '-') {
        w = (word){w.text + 1, w.length - 1};
    }
    const size_t digits = number_length(w);
    double number = 0;
    if (!digits || !crdi_parse_double(w.text, digits, &number)) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s', expected a number%s%s", v->name,
                         SHOW(w), v->unit[0] ? " in " : "", v->unit);
    }
    if (isnan(number)) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s', expected a number that is one",
                         v->name, SHOW(w));
    }
    const char first = w.text[w.text[0] == '-' && w.length > 1];
    if (isinf(number) && (first == '.' || (first >= '0' && first <= '9'))) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s' is too large, expected at most %g",
                         v->name, SHOW(w), v->type == CRD_FLOAT32 ? FLT_MAX : DBL_MAX);
    }
    const word unit = trim((word){w.text + digits, w.length - digits});
    if (unit.length && v->rank == 0 && is_blank(w.text[digits]) &&
        strchr("+-.0123456789", unit.text[0])) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s': several values, expected one since it is not an array",
                         v->name, SHOW(w));
    }
    *has_unit = unit.length > 0;
    *out = number;
    if (!unit.length || equals(unit, v->unit)) { return CRD_OK; }
    crd_dimension to, from;
    char quantity[256];
    double si = 0;
    bool bare = false;
    if (w.length >= sizeof quantity || !isfinite(number) ||
        !crdi_unit_dimension(u, variable, &to)) {
        return wrong_unit(u, v, w, unit);
    }
    memcpy(quantity, w.text, w.length);
    quantity[w.length] = 0;
    if (!crd_quantity_parse(quantity, &si, &from, &bare)) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s': unknown unit '%.*s', expected '%s'",
                         v->name, SHOW(w), SHOW(unit), v->unit);
    }
    if (!crd_dimension_equal(&from, &to)) { return wrong_unit(u, v, w, unit); }
    if (from.factor == to.factor && from.offset == to.offset) { return CRD_OK; }
    if (v->relative_quantity) { // a difference has no zero point
        si -= from.offset;
        to.offset = 0;
    }
    *out = to.offset == 0 && to.factor == 1 ? si : (si - to.offset) / to.factor;
    return CRD_OK;
}

static crd_status parse_integer(crd_unit* u, const crd_variable* v, word w, int64_t* out)
{
    if (v->type == CRD_UINT64) {
        uint64_t x = 0;
        if (!crdi_parse_uint64(w.text, w.length, &x)) {
            return crdi_fail(u->ctx, CRD_E_RANGE,
                             "'%s' = '%.*s', expected a whole number from 0 to %llu", v->name,
                             SHOW(w), (unsigned long long)UINT64_MAX);
        }
        memcpy(out, &x, sizeof x);
        return CRD_OK;
    }
    int64_t low, high, x = 0;
    crdi_unit_integer_range(v->type, &low, &high);
    if (!crdi_parse_int64(w.text, w.length, &x) || x < low || x > high) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s', expected a whole number from %lld to %lld (%s)", v->name,
                         SHOW(w), (long long)low, (long long)high, crdi_type_names[v->type]);
    }
    *out = x;
    return CRD_OK;
}

static crd_status parse_boolean(crd_unit* u, const crd_variable* v, word w, int64_t* out)
{
    static const char* const yes[] = {"true", "1", "yes", "on", NULL};
    static const char* const no[] = {"false", "0", "no", "off", NULL};
    *out = equals_any(w, yes);
    if (*out || equals_any(w, no)) { return CRD_OK; }
    return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s', expected true, false, 1 or 0", v->name,
                     SHOW(w));
}

static crd_status parse_item(crd_unit* u, int32_t variable, word w, int64_t* out)
{
    const crd_variable* v = &u->info.variables[variable];
    char text[512];
    if (w.length < sizeof text) {
        memcpy(text, w.text, w.length);
        text[w.length] = 0;
        if (crdi_unit_item(u, variable, text, out)) { return CRD_OK; }
    }
    int64_t x = 0, value = 0;
    const bool number = crdi_parse_int64(w.text, w.length, &x);
    const char* name = NULL;
    size_t used = 0;
    int32_t k = 0;
    text[0] = 0;
    while ((name = crdi_unit_item_at(u, variable, k, &value)) != NULL) {
        if (number && x == value) {
            *out = x;
            return CRD_OK;
        }
        const int n =
            used < 300 ? snprintf(text + used, sizeof text - used, "%s%s", k ? ", " : "", name) : 0;
        used += n > 0 && used + (size_t)n < sizeof text ? (size_t)n : 0;
        text[used] = 0;
        k++;
    }
    if (k == 0 && number) { // an enumeration without known items
        *out = x;
        return CRD_OK;
    }
    return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s', expected one of %s%s", v->name, SHOW(w),
                     text, used >= 300 ? ", ..." : "");
}

static int hex_digit(char c)
{
    const char* digits = "0123456789abcdef";
    const char* p = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return p ? (int)(p - digits) : -1;
}

static crd_status parse_binary(crd_unit* u, const crd_variable* v, word w, crd_bytes* out)
{
    crd_status st = crd_bytes_set(u->ctx, out, w.text, w.length); // room, overwritten below
    if (st < 0) { return st; }
    bool good = w.length % 2 == 0;
    for (size_t i = 0; good && i < w.length / 2; i++) {
        const int high = hex_digit(w.text[2 * i]), low = hex_digit(w.text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        if (good) { out->data[i] = (uint8_t)(high << 4 | low); }
    }
    if (!good) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s', expected pairs of hexadecimal digits as in 0aff", v->name,
                         SHOW(w));
    }
    out->length = w.length / 2;
    out->data[out->length] = 0;
    return CRD_OK;
}

// ---- one element -------------------------------------------------------------------------------

static crd_status parse_plain(crd_unit* u, int32_t variable, word w, uint32_t at, bool* has_unit,
                              crd_values* v)
{
    const crd_variable* x = &u->info.variables[variable];
    switch ((crd_type)x->type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return parse_real(u, variable, w, has_unit, &v->real[at]);
    case CRD_BOOLEAN:
        return parse_boolean(u, x, w, &v->integer[at]);
    case CRD_ENUMERATION:
        return parse_item(u, variable, w, &v->integer[at]);
    case CRD_STRING:
        return crd_bytes_set(u->ctx, &v->bytes[at], w.text, w.length);
    case CRD_BINARY:
        return parse_binary(u, x, w, &v->bytes[at]);
    default:
        return parse_integer(u, x, w, &v->integer[at]);
    }
}

// Whether an entry of a map means the value that was written.
static bool unit_text_same_value(word w, const char* text)
{
    static const char* const words[2][3] = {{"false", "0", NULL}, {"true", "1", NULL}};
    const word other = {text, strlen(text)};
    int64_t a = 0, b = 0;
    if (equals(w, text)) { return true; }
    if (crdi_parse_int64(w.text, w.length, &a) && crdi_parse_int64(text, other.length, &b)) {
        return a == b;
    }
    return (equals_any(w, words[0]) && equals_any(other, words[0])) ||
           (equals_any(w, words[1]) && equals_any(other, words[1]));
}

static crd_status parse_mapped(crd_unit* u, int32_t variable, const crd_transformation* via, word w,
                               uint32_t at, bool* has_unit, crd_values* v)
{
    const crd_variable* x = &u->info.variables[variable];
    if (crd_type_kind(x->type) != CRD_INTEGER) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s': a map is for Booleans, integers and enumerations, and it "
                         "is %s",
                         x->name, SHOW(w), crdi_type_names[x->type]);
    }
    for (int i = 0; i < via->map_count; i++) {
        if (unit_text_same_value(w, via->map[i].from)) {
            const word to = {via->map[i].to, strlen(via->map[i].to)};
            return parse_plain(u, variable, trim(to), at, has_unit, v);
        }
    }
    return parse_plain(u, variable, w, at, has_unit, v);
}

// From the unit of the text into that of the variable, if both are known. A unit behind the number
// itself counts more: then the number is in the variable's unit already.
static crd_status convert_text(crd_unit* u, int32_t variable, const crd_transformation* via, word w,
                               double* number)
{
    const crd_variable* x = &u->info.variables[variable];
    crd_dimension from, to;
    const char* name = via->unit ? via->unit : "";
    if (via->dimension) {
        from = *via->dimension;
    } else if (!name[0] || strcmp(name, x->unit) == 0 || !crd_dimension_parse(name, &from)) {
        return CRD_OK;
    }
    if (!via->convert_units || !crdi_unit_dimension(u, variable, &to)) { return CRD_OK; }
    if (!crd_dimension_equal(&from, &to)) {
        return wrong_unit(u, x, w, (word){name, strlen(name)});
    }
    const double shift = x->relative_quantity ? 0 : (from.offset - to.offset) / to.factor;
    *number =
        from.factor == to.factor ? *number + shift : *number * (from.factor / to.factor) + shift;
    return CRD_OK;
}

static crd_status scale_integer(crd_unit* u, const crd_variable* x, const crd_transformation* via,
                                word w, int64_t* out)
{
    double number = 0;
    int64_t low = 0, high = INT64_MAX;
    if (x->type == CRD_BOOLEAN || x->type == CRD_ENUMERATION ||
        crd_type_kind(x->type) == CRD_BYTES) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s': gain and offset make no sense, it is %s", x->name, SHOW(w),
                         crdi_type_names[x->type]);
    }
    if (!crdi_parse_double(w.text, w.length, &number)) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' = '%.*s', expected a number", x->name, SHOW(w));
    }
    if (x->type != CRD_UINT64) { crdi_unit_integer_range(x->type, &low, &high); }
    const double y = via->gain * number + via->offset, nearest = nearbyint(y);
    // 2^63 itself does not fit, and as a double it is what INT64_MAX becomes
    if (!(fabs(y - nearest) <= 1e-9 * fmax(1, fabs(y))) || nearest < (double)low ||
        nearest > (double)high || nearest >= 9223372036854775808.0) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s' = '%.*s' becomes %.10g, expected a whole number from %lld to %lld "
                         "(%s)",
                         x->name, SHOW(w), y, (long long)low, (long long)high,
                         crdi_type_names[x->type]);
    }
    *out = (int64_t)nearest;
    return CRD_OK;
}

static crd_status parse_element(crd_unit* u, int32_t variable, const crd_transformation* via,
                                word w, uint32_t at, bool* has_unit, crd_values* v)
{
    const crd_variable* x = &u->info.variables[variable];
    const bool real = crd_type_kind(x->type) == CRD_REAL;
    crd_status st = CRD_OK;
    if (via && via->map_count > 0) { return parse_mapped(u, variable, via, w, at, has_unit, v); }
    if (via && via->has_transformation && !real) {
        return scale_integer(u, x, via, w, v->integer ? &v->integer[at] : NULL);
    }
    CRD_TRY(parse_plain(u, variable, w, at, has_unit, v));
    if (via && real) {
        if (!*has_unit) { CRD_TRY(convert_text(u, variable, via, w, &v->real[at])); }
        if (via->has_transformation) { v->real[at] = via->gain * v->real[at] + via->offset; }
    }
fail:
    return st;
}

// ---- whole values ------------------------------------------------------------------------------

static crd_status copy_element(crd_unit* u, crd_kind kind, crd_values* v, uint32_t from,
                               uint32_t to)
{
    switch (kind) {
    case CRD_REAL:
        v->real[to] = v->real[from];
        break;
    case CRD_INTEGER:
        v->integer[to] = v->integer[from];
        break;
    case CRD_BYTES:
        return crd_bytes_set(u->ctx, &v->bytes[to], v->bytes[from].data, v->bytes[from].length);
    }
    return CRD_OK;
}

static crd_status parse_elements(crd_unit* u, int32_t variable, const crd_transformation* via,
                                 word rest, uint32_t count, char* buffer, crd_values* v)
{
    crd_status st = CRD_OK;
    const crd_variable* x = &u->info.variables[variable];
    const crd_kind kind = crd_type_kind(x->type);
    uint32_t n = 0, with_unit = 0;
    bool quoted = false;
    word w, ahead = rest;
    while (unit_text_next_word(&ahead, kind == CRD_REAL, &w, &quoted)) {
        n++;
    }
    if (n != count && n != 1) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s': %u values were given, expected %u, or one for all elements",
                         x->name, n, count);
    }
    for (uint32_t i = 0; i < count && unit_text_next_word(&rest, kind == CRD_REAL, &w, &quoted);
         i++) {
        bool has_unit = false;
        CRD_TRY(parse_element(u, variable, via, quoted ? unescape(w, buffer) : w, i, &has_unit, v));
        with_unit += has_unit;
    }
    if (with_unit && with_unit != n) {
        return crdi_fail(u->ctx, CRD_E_RANGE,
                         "'%s': %u of %u elements have a unit, expected one for each or none",
                         x->name, with_unit, n);
    }
    for (uint32_t i = n; i < count; i++) {
        CRD_TRY(copy_element(u, kind, v, 0, i));
    }
fail:
    return st;
}

// "[1, 2]" and "{1, 2}" as "1 2", in `buffer`. Numbers have no quotes, so nobody else needs it.
static word unbracket(word whole, char* buffer)
{
    const word w = trim(whole);
    if (w.length < 2 || !((w.text[0] == '[' && w.text[w.length - 1] == ']') ||
                          (w.text[0] == '{' && w.text[w.length - 1] == '}'))) {
        return whole;
    }
    for (size_t i = 1; i + 1 < w.length; i++) {
        buffer[i - 1] = w.text[i] == ',' || w.text[i] == ';' ? ' ' : w.text[i];
    }
    return (word){buffer, w.length - 2};
}

crd_status crdi_unit_parse(crd_unit* u, int32_t variable, const char* text, uint32_t first,
                           uint32_t count, crd_values* v)
{
    return crdi_unit_parse_via(u, variable, text, NULL, first, count, v);
}

crd_status crdi_unit_parse_one(crd_unit* u, int32_t variable, const char* text, double* real,
                               int64_t* integer)
{
    bool has_unit = false;
    crd_values v = {.real = real, .integer = integer};
    return parse_plain(u, variable, trim((word){text, strlen(text)}), 0, &has_unit, &v);
}

crd_status crdi_unit_parse_via(crd_unit* u, int32_t variable, const char* text,
                               const crd_transformation* via, uint32_t first, uint32_t count,
                               crd_values* v)
{
    const crd_variable* x = &u->info.variables[variable];
    const word whole = {text, strlen(text)};
    if (x->rank > 0 && first == 0 && count == x->size) {
        char* buffer = crdi_new(u->ctx, whole.length + 1);
        if (!buffer) { return CRD_E_MEMORY; }
        const word list = crd_type_kind(x->type) == CRD_BYTES ? whole : unbracket(whole, buffer);
        const crd_status st = parse_elements(u, variable, via, list, count, buffer, v);
        crd_free(u->ctx, buffer);
        return st;
    }
    bool has_unit = false;
    return parse_element(u, variable, via, x->type == CRD_STRING ? whole : trim(whole), first,
                         &has_unit, v);
}

void crdi_unit_check_limits(crd_unit* u, int32_t variable, const crd_values* v, uint32_t count,
                            crd_place place)
{
    const crd_variable* x = &u->info.variables[variable];
    const crd_kind kind = crd_type_kind(x->type);
    for (uint32_t i = 0; kind != CRD_BYTES && i < count; i++) {
        const double value = kind == CRD_REAL        ? v->real[i]
                             : x->type == CRD_UINT64 ? (double)(uint64_t)v->integer[i]
                                                     : (double)v->integer[i];
        if (value < x->min || value > x->max) {
            char at[400];
            crdi_log(u->ctx, CRD_LOG_WARNING,
                     "%sunit '%s': '%s' = %g is outside of its limits %g to %g",
                     crdi_unit_place_text(place, at, sizeof at), u->name, x->name, value, x->min,
                     x->max);
            return;
        }
    }
}

// ---- what may be set ---------------------------------------------------------------------------

static bool settable(const crd_variable* v)
{
    if (v->type == CRD_CLOCK || v->variability == CRD_CONSTANT) { return false; }
    switch ((crd_causality)v->causality) {
    case CRD_INPUT:
    case CRD_PARAMETER:
    case CRD_STRUCTURAL_PARAMETER:
        return true;
    case CRD_LOCAL:
    case CRD_OUTPUT:
    case CRD_CALCULATED_PARAMETER:
        return v->initial != CRD_CALCULATED;
    default:
        return false;
    }
}

static const char* what_it_is(const crd_variable* v)
{
    static const char* const causalities[CRD_CAUSALITY_COUNT] = {
        [CRD_LOCAL] = "a calculated local variable",
        [CRD_INPUT] = "an input",
        [CRD_OUTPUT] = "a calculated output",
        [CRD_PARAMETER] = "a parameter",
        [CRD_CALCULATED_PARAMETER] = "a calculated parameter",
        [CRD_STRUCTURAL_PARAMETER] = "a structural parameter",
        [CRD_INDEPENDENT] = "the independent variable",
    };
    if (v->type == CRD_CLOCK) { return "a clock"; }
    return v->variability == CRD_CONSTANT ? "a constant" : causalities[v->causality];
}

typedef struct candidates {
    const crd_unit_info* info;
    int32_t next;
} candidates;

static const char* next_settable(void* user)
{
    candidates* c = user;
    while (c->next < c->info->variable_count) {
        const crd_variable* v = &c->info->variables[c->next++];
        if (settable(v)) { return v->name; }
    }
    return NULL;
}

crd_status crdi_unit_check_settable(crd_unit* u, int32_t variable)
{
    const crd_variable* v = &u->info.variables[variable];
    if (settable(v) || settable(&u->info.variables[crdi_unit_canonical(u, variable)])) {
        return CRD_OK;
    }
    enum { SHOWN = 6 };
    char list[400] = "";
    size_t used = 0;
    int shown = 0;
    candidates all = {.info = &u->info};
    const char* name = next_settable(&all);
    for (; name && shown < SHOWN && used + strlen(name) + 8 < sizeof list; shown++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", shown ? ", " : "", name);
        name = next_settable(&all);
    }
    const char* near = crdi_nearest(v->name, next_settable, &(candidates){.info = &u->info});
    if (!shown) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' is %s and cannot be set, nor can anything else",
                         v->name, what_it_is(v));
    }
    return crdi_fail(u->ctx, CRD_E_RANGE,
                     "'%s' is %s and cannot be set%s%s%s; parameters and inputs are %s%s", v->name,
                     what_it_is(v), near ? ", did you mean '" : "", near ? near : "",
                     near ? "'?" : "", list, name ? ", ..." : "");
}

crd_status crd_unit_set_text(crd_unit* u, int32_t variable, const char* text, crd_place place)
{
    crd_status st = CRD_OK;
    const int32_t v = crdi_unit_canonical(u, variable);
    const crd_variable* x = &u->info.variables[v];
    crd_values values = {0};
    crd_binding* b = NULL;
    CRD_TRY(crdi_unit_check_settable(u, variable));
    CRD_TRY(crdi_unit_values_init(u->ctx, &values, crd_type_kind(x->type), x->size));
    CRD_TRY(crdi_unit_parse(u, variable, text, 0, x->size, &values));
    crdi_unit_check_limits(u, variable, &values, x->size, place);
    CRD_TRY(crd_binding_create(u, &v, 1, &b));
    CRD_TRY(u->ops->set(u, b, &values));
fail:
    crd_binding_destroy(b);
    crdi_unit_values_clear(u->ctx, &values, x->size);
    return st < 0 ? crdi_unit_fail_at(u->ctx, st, place, u->name) : CRD_OK;
}
