#include "shared/base.h"
#include "shared/base_units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A unit text is parsed into a scale that stays exact as long as possible: num/den * 10^exp10 *
// pi^pi with whole num and den. So "36 km/h" is 36*1000/3600 = 10; and "0.3 ms" moves the exponent
// in the text and is the double nearest 0.0003, which a product of rounded factors would miss.
typedef struct scale {
    double num, den;
    int exp10, pi;
    double shift; // value_SI = (value + shift) * scale, plain temperatures only
    int dim[8];   // kg m s A K mol cd rad
} scale;

enum { KG, M, S, AMP, KELVIN, MOL, CD, RAD, DIMS };

typedef enum prefixes { NONE, ANY, LARGE } prefixes; // LARGE: k, M, G ("kt" but not "ft", "pt")

typedef struct symbol {
    const char* name;
    prefixes prefix;
    scale s;
} symbol;

#define UNIT(name, prefix, num, den, exp10, ...)                                                   \
    {                                                                                              \
        name, prefix,                                                                              \
        {                                                                                          \
            num, den, exp10, 0, 0, __VA_ARGS__                                                     \
        }                                                                                          \
    }
#define SI(name, ...) UNIT(name, ANY, 1, 1, 0, __VA_ARGS__)
#define ANGLE(name, num, den, ...)                                                                 \
    {                                                                                              \
        name, NONE,                                                                                \
        {                                                                                          \
            num, den, 0, 1, 0, __VA_ARGS__                                                         \
        }                                                                                          \
    }

// A whole name wins over prefix and name: "min" is a minute, "cd" no centiday, "Pa" no petayear.
// The customary units (in, ft, yd, lb, PS ...) are here because their names would otherwise be read
// as something absurd or not at all.
static const symbol symbols[] = {
    // clang-format off
    //               kg  m  s  A  K mol cd rad
    SI("m",        { 0,  1, 0, 0, 0, 0, 0, 0}),
    SI("s",        { 0,  0, 1, 0, 0, 0, 0, 0}),
    SI("A",        { 0,  0, 0, 1, 0, 0, 0, 0}),
    SI("K",        { 0,  0, 0, 0, 1, 0, 0, 0}),
    SI("mol",      { 0,  0, 0, 0, 0, 1, 0, 0}),
    SI("cd",       { 0,  0, 0, 0, 0, 0, 1, 0}),
    SI("rad",      { 0,  0, 0, 0, 0, 0, 0, 1}),
    SI("sr",       { 0,  0, 0, 0, 0, 0, 0, 2}),
    SI("N",        { 1,  1,-2, 0, 0, 0, 0, 0}),
    SI("Pa",       { 1, -1,-2, 0, 0, 0, 0, 0}),
    SI("J",        { 1,  2,-2, 0, 0, 0, 0, 0}),
    SI("W",        { 1,  2,-3, 0, 0, 0, 0, 0}),
    SI("V",        { 1,  2,-3,-1, 0, 0, 0, 0}),
    SI("VA",       { 1,  2,-3, 0, 0, 0, 0, 0}),
    SI("Ohm",      { 1,  2,-3,-2, 0, 0, 0, 0}),
    SI("ohm",      { 1,  2,-3,-2, 0, 0, 0, 0}),
    SI("\u03a9",   { 1,  2,-3,-2, 0, 0, 0, 0}), // Greek letter Omega
    SI("\u2126",   { 1,  2,-3,-2, 0, 0, 0, 0}), // ohm sign
    SI("S",        {-1, -2, 3, 2, 0, 0, 0, 0}),
    SI("C",        { 0,  0, 1, 1, 0, 0, 0, 0}),
    SI("F",        {-1, -2, 4, 2, 0, 0, 0, 0}),
    SI("H",        { 1,  2,-2,-2, 0, 0, 0, 0}),
    SI("T",        { 1,  0,-2,-1, 0, 0, 0, 0}),
    SI("Wb",       { 1,  2,-2,-1, 0, 0, 0, 0}),
    SI("Hz",       { 0,  0,-1, 0, 0, 0, 0, 0}),
    SI("Bq",       { 0,  0,-1, 0, 0, 0, 0, 0}),
    SI("lm",       { 0,  0, 0, 0, 0, 0, 1, 2}),
    SI("lx",       { 0, -2, 0, 0, 0, 0, 1, 2}),
    SI("Gy",       { 0,  2,-2, 0, 0, 0, 0, 0}),
    SI("Sv",       { 0,  2,-2, 0, 0, 0, 0, 0}),
    SI("kat",      { 0,  0,-1, 0, 0, 1, 0, 0}),
    // written together by habit
    SI("Nm",       { 1,  2,-2, 0, 0, 0, 0, 0}),
    SI("Nms",      { 1,  2,-1, 0, 0, 0, 0, 0}),
    SI("Ns",       { 1,  1,-1, 0, 0, 0, 0, 0}),
    SI("Ws",       { 1,  2,-2, 0, 0, 0, 0, 0}),
    SI("Js",       { 1,  2,-1, 0, 0, 0, 0, 0}),
    SI("As",       { 0,  0, 1, 1, 0, 0, 0, 0}),
    SI("Vs",       { 1,  2,-2,-1, 0, 0, 0, 0}),
    UNIT("Wh",  ANY,  3600, 1, 0,     { 1, 2,-2, 0, 0, 0, 0, 0}),
    UNIT("Ah",  ANY,  3600, 1, 0,     { 0, 0, 1, 1, 0, 0, 0, 0}),
    UNIT("g",   ANY,  1, 1, -3,       { 1, 0, 0, 0, 0, 0, 0, 0}),
    UNIT("t",   LARGE, 1, 1, 3,       { 1, 0, 0, 0, 0, 0, 0, 0}),
    UNIT("l",   ANY,  1, 1, -3,       { 0, 3, 0, 0, 0, 0, 0, 0}),
    UNIT("L",   ANY,  1, 1, -3,       { 0, 3, 0, 0, 0, 0, 0, 0}),
    UNIT("bar", ANY,  1, 1, 5,        { 1,-1,-2, 0, 0, 0, 0, 0}),
    UNIT("atm", NONE, 101325, 1, 0,   { 1,-1,-2, 0, 0, 0, 0, 0}),
    UNIT("min", NONE, 60, 1, 0,       { 0, 0, 1, 0, 0, 0, 0, 0}),
    UNIT("h",   NONE, 3600, 1, 0,     { 0, 0, 1, 0, 0, 0, 0, 0}),
    UNIT("d",   NONE, 86400, 1, 0,    { 0, 0, 1, 0, 0, 0, 0, 0}),
    UNIT("kph", NONE, 1, 3600, 3,     { 0, 1,-1, 0, 0, 0, 0, 0}),
    UNIT("mph", NONE, 1609344, 3600, -3, { 0, 1,-1, 0, 0, 0, 0, 0}),
    UNIT("in",  NONE, 254, 1, -4,     { 0, 1, 0, 0, 0, 0, 0, 0}),
    UNIT("ft",  NONE, 3048, 1, -4,    { 0, 1, 0, 0, 0, 0, 0, 0}),
    UNIT("yd",  NONE, 9144, 1, -4,    { 0, 1, 0, 0, 0, 0, 0, 0}),
    UNIT("mi",  NONE, 1609344, 1, -3, { 0, 1, 0, 0, 0, 0, 0, 0}),
    UNIT("lb",  NONE, 45359237, 1, -8, { 1, 0, 0, 0, 0, 0, 0, 0}),
    UNIT("lbf", NONE, 44482216152605, 1, -13, { 1, 1,-2, 0, 0, 0, 0, 0}),
    UNIT("PS",  NONE, 73549875, 1, -5, { 1, 2,-3, 0, 0, 0, 0, 0}),
    UNIT("%",   NONE, 1, 1, -2,       { 0}),
    UNIT("ppm", NONE, 1, 1, -6,       { 0}),
    ANGLE("deg", 1, 180,              { 0, 0, 0, 0, 0, 0, 0, 1}),
    ANGLE("\u00b0", 1, 180,           { 0, 0, 0, 0, 0, 0, 0, 1}), // degree sign
    ANGLE("rev", 2, 1,                { 0, 0, 0, 0, 0, 0, 0, 1}),
    ANGLE("rpm", 1, 30,               { 0, 0,-1, 0, 0, 0, 0, 1}),
    {"degC",     NONE, {1, 1, 0, 0, 273.15, { 0, 0, 0, 0, 1, 0, 0, 0}}},
    {"\u00b0C",  NONE, {1, 1, 0, 0, 273.15, { 0, 0, 0, 0, 1, 0, 0, 0}}},
    {"degF",     NONE, {5, 9, 0, 0, 459.67, { 0, 0, 0, 0, 1, 0, 0, 0}}},
    {"\u00b0F",  NONE, {5, 9, 0, 0, 459.67, { 0, 0, 0, 0, 1, 0, 0, 0}}},
    // clang-format on
};

// "da" before "d": the first that leaves a known name wins.
static const struct {
    const char* name;
    int exp10;
} prefix_table[] = {
    {"da", 1}, {"y", -24},     {"z", -21},     {"a", -18}, {"f", -15}, {"p", -12},
    {"n", -9}, {"\u00b5", -6}, {"\u03bc", -6}, {"u", -6},  {"m", -3},  {"c", -2},
    {"d", -1}, {"h", 2},       {"k", 3},       {"M", 6},   {"G", 9},   {"T", 12},
    {"P", 15}, {"E", 18},      {"Z", 21},      {"Y", 24},
};

enum { SYMBOLS = sizeof symbols / sizeof *symbols };
enum { PREFIXES = sizeof prefix_table / sizeof *prefix_table };
enum { DEEPEST = 8, LARGEST_EXPONENT = 99 };

static const symbol* find_symbol(const char* name, size_t length)
{
    for (size_t i = 0; i < SYMBOLS; i++) {
        if (strlen(symbols[i].name) == length && memcmp(symbols[i].name, name, length) == 0) {
            return &symbols[i];
        }
    }
    return NULL;
}

static bool quantity_look_up(const char* name, size_t length, scale* out)
{
    const symbol* u = find_symbol(name, length);
    if (u) {
        *out = u->s;
        return true;
    }
    for (size_t i = 0; i < PREFIXES; i++) {
        const size_t n = strlen(prefix_table[i].name);
        if (n >= length || memcmp(name, prefix_table[i].name, n) != 0) { continue; }
        u = find_symbol(name + n, length - n);
        const int e = prefix_table[i].exp10;
        if (u && (u->prefix == ANY || (u->prefix == LARGE && e >= 3 && e <= 9))) {
            *out = u->s;
            out->exp10 += e;
            return true;
        }
    }
    return false;
}

// ---- scanner: ASCII by character, the few others by their UTF-8 bytes ------------------------

static bool starts(const char* p, const char* with, size_t* length)
{
    const size_t n = strlen(with);
    if (strncmp(p, with, n) != 0) { return false; }
    *length = n;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(const char** p)
{
    while (is_blank(**p)) {
        (*p)++;
    }
}

static const char* const superscripts[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                           "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};

// -1 when there is none
static int superscript(const char* p, size_t* length)
{
    for (int i = 0; i < 10; i++) {
        if (starts(p, superscripts[i], length)) { return i; }
    }
    return -1;
}

static bool is_times(const char* p, size_t* length)
{
    return starts(p, "*", length) || starts(p, ".", length) || starts(p, "\u00b7", length) ||
           starts(p, "\u22c5", length);
}

static size_t name_length(const char* p)
{
    size_t n = 0, unused;
    while (p[n]) {
        const unsigned char c = (unsigned char)p[n];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '%';
        const bool other = c >= 0x80 && superscript(p + n, &unused) < 0 &&
                           !is_times(p + n, &unused) && !starts(p + n, "\u207b", &unused);
        if (!letter && !other) { break; }
        n++;
    }
    return n;
}

// "2", "-1", "^2", "^-1", "^(-1)", superscripts; 1 when there is none. false: malformed or too
// large
static bool read_exponent(const char** p, int* exponent)
{
    const char* s = *p;
    const bool caret = *s == '^';
    if (caret) { s++; }
    const bool bracket = caret && *s == '(';
    if (bracket) { s++; }
    size_t n = 0;
    int sign = 1;
    if (starts(s, "-", &n) || starts(s, "\u207b", &n)) {
        sign = -1;
    } else if (starts(s, "+", &n)) {
        sign = 1;
    }
    const bool has_sign = n > 0;
    s += n;
    int value = 0, digits = 0;
    for (;; digits++) {
        int d = superscript(s, &n);
        if (d < 0 && !is_digit(*s)) { break; }
        if (d < 0) {
            d = *s - '0';
            n = 1;
        }
        value = 10 * value + d;
        if (value > LARGEST_EXPONENT) { return false; }
        s += n;
    }
    if (digits == 0) {
        *exponent = 1;
        return !caret && !has_sign;
    }
    if (bracket && *s++ != ')') { return false; }
    *exponent = sign * value;
    *p = s;
    return true;
}

// a *= b^exponent. false when an exponent leaves its type or the factor its range.
static bool quantity_multiply(scale* a, const scale* b, int exponent)
{
    const int n = exponent < 0 ? -exponent : exponent;
    const double num = exponent < 0 ? b->den : b->num, den = exponent < 0 ? b->num : b->den;
    for (int i = 0; i < n; i++) {
        a->num *= num;
        a->den *= den;
    }
    a->exp10 += exponent * b->exp10;
    a->pi += exponent * b->pi;
    for (int i = 0; i < DIMS; i++) {
        a->dim[i] += exponent * b->dim[i];
        if (a->dim[i] > INT8_MAX || a->dim[i] < INT8_MIN) { return false; }
    }
    return a->num < 1e150 && a->den < 1e150 && a->exp10 <= 300 && a->exp10 >= -300 &&
           a->pi <= 100 && a->pi >= -100;
}

static bool read_product(const char** p, int depth, scale* out);

// name, "1" or a bracket, each with an exponent
static bool read_factor(const char** p, int depth, scale* out)
{
    scale one = {.num = 1, .den = 1};
    int exponent = 1;
    const size_t n = name_length(*p);
    if (n > 0) {
        if (!quantity_look_up(*p, n, &one)) { return false; }
        *p += n;
    } else if (**p == '1') { // "1/s"; nothing else, so that "1 1 1" stays a list of numbers
        const char* next = *p + 1;
        skip_blanks(&next);
        (*p)++;
        return *next == '/' || *next == 0;
    } else if (**p == '(' && depth < DEEPEST) {
        (*p)++;
        skip_blanks(p);
        if (!read_product(p, depth + 1, &one) || **p != ')') { return false; }
        (*p)++;
    } else {
        return false;
    }
    if (!read_exponent(p, &exponent)) { return false; }
    *out = (scale){.num = 1, .den = 1};
    if (!quantity_multiply(out, &one, exponent)) { return false; }
    if (exponent == 1) { out->shift = one.shift; }
    return true;
}

// Factors from left to right: "J/kg.K" is (J/kg)*K, "J/kg/K" and "J/(kg.K)" are what they look
// like.
static bool read_product(const char** p, int depth, scale* out)
{
    *out = (scale){.num = 1, .den = 1};
    int sign = 1, count = 0;
    double shift = 0;
    if (**p == '/') { // "/s" as in "10/s"
        sign = -1;
        (*p)++;
        skip_blanks(p);
        count = 1;
    }
    for (;;) {
        scale factor = {.num = 1, .den = 1};
        if (!read_factor(p, depth, &factor) || !quantity_multiply(out, &factor, sign)) {
            return false;
        }
        shift = factor.shift;
        count++;
        const bool blank = is_blank(**p);
        skip_blanks(p);
        size_t n = 0;
        if (**p == 0 || **p == ')') { break; }
        if (**p == '/') {
            sign = -1;
            n = 1;
        } else if (is_times(*p, &n) || blank) { // "N m" is a product too
            sign = 1;
        } else {
            return false;
        }
        *p += n;
        skip_blanks(p);
    }
    // 20 degC are 293.15 K, but 20 degC/min are 20 K/min: the zero point counts for a plain
    // temperature only.
    out->shift = count == 1 ? shift : 0;
    return true;
}

static double power_of_ten(int n)
{
    char text[8];
    double x = 1;
    const int length = snprintf(text, sizeof text, "1e%d", n);
    (void)crdi_parse_double(text, (size_t)length, &x);
    return x;
}

// Whole powers of ten up to 22 are exact doubles, so num/den * 10^exp10 is rounded only once.
static double scaled(const scale* s, double x)
{
    enum { EXACT = 22 };
    double num = s->num, den = s->den;
    if (s->exp10 < 0 && s->exp10 >= -EXACT) {
        den *= power_of_ten(-s->exp10);
    } else {
        num *= power_of_ten(s->exp10);
    }
    x = x * num / den;
    for (int i = 0; i < s->pi; i++) {
        x *= M_PI;
    }
    for (int i = 0; i > s->pi; i--) {
        x /= M_PI;
    }
    return x;
}

static bool parse_scale(const char* text, scale* out)
{
    const char* p = text;
    skip_blanks(&p);
    *out = (scale){.num = 1, .den = 1};
    if (*p == 0) { return true; }
    if (*p == '-') { // "-", as many tools write it for "no unit"
        p++;
        skip_blanks(&p);
        return *p == 0;
    }
    return read_product(&p, 0, out) && *p == 0;
}

static bool to_dimension(const scale* s, crd_dimension* out)
{
    const double factor = scaled(s, 1.0);
    if (!isfinite(factor) || !(factor > 0)) { return false; }
    *out = (crd_dimension){.kg = (int8_t)s->dim[KG],
                           .m = (int8_t)s->dim[M],
                           .s = (int8_t)s->dim[S],
                           .A = (int8_t)s->dim[AMP],
                           .K = (int8_t)s->dim[KELVIN],
                           .mol = (int8_t)s->dim[MOL],
                           .cd = (int8_t)s->dim[CD],
                           .rad = (int8_t)s->dim[RAD],
                           .factor = factor,
                           .offset = scaled(s, s->shift)};
    return true;
}

bool crd_dimension_parse(const char* text, crd_dimension* out)
{
    scale s;
    return parse_scale(text, &s) && to_dimension(&s, out);
}

bool crdi_unit_convert(const char* from, const char* to, double* factor, double* offset)
{
    crd_dimension a, b;
    *factor = 1;
    *offset = 0;
    if (!*from || !*to || strcmp(from, to) == 0) { return true; }
    if (!crd_dimension_parse(from, &a) || !crd_dimension_parse(to, &b) ||
        !crd_dimension_equal(&a, &b)) {
        return false;
    }
    *factor = a.factor / b.factor;
    *offset = (a.offset - b.offset) / b.factor;
    return true;
}

const char* crdi_unit_symbol(int i, bool* prefixed)
{
    if (i < 0 || i >= (int)SYMBOLS) { return NULL; }
    *prefixed = symbols[i].prefix == ANY;
    return symbols[i].name;
}

bool crd_dimension_equal(const crd_dimension* a, const crd_dimension* b)
{
    return a->kg == b->kg && a->m == b->m && a->s == b->s && a->A == b->A && a->K == b->K &&
           a->mol == b->mol && a->cd == b->cd && a->rad == b->rad;
}

size_t crdi_number_prefix(const char* text)
{
    size_t n = text[0] == '+' || text[0] == '-';
    size_t digits = 0;
    for (; is_digit(text[n]); n++) {
        digits++;
    }
    if (text[n] == '.') {
        n++;
        for (; is_digit(text[n]); n++) {
            digits++;
        }
    }
    if (digits == 0) { return 0; }
    if (text[n] == 'e' || text[n] == 'E') {
        const size_t sign = text[n + 1] == '+' || text[n + 1] == '-';
        size_t end = n + 1 + sign;
        if (is_digit(text[end])) {
            while (is_digit(text[end])) {
                end++;
            }
            n = end;
        }
    }
    return n;
}

// The number [text, text + length) times ten to the `shift`, rounded once: the exponent is moved in
// the text.
static bool shifted_number(const char* text, size_t length, int shift, double* out)
{
    char buffer[512];
    if (length && text[0] == '+') {
        text++;
        length--;
    }
    size_t mantissa = 0;
    while (mantissa < length && text[mantissa] != 'e' && text[mantissa] != 'E') {
        mantissa++;
    }
    int64_t exponent = 0;
    if (mantissa < length) {
        const size_t plus = text[mantissa + 1] == '+';
        const char* digits = text + mantissa + 1 + plus;
        if (!crdi_parse_int64(digits, length - mantissa - 1 - plus, &exponent)) { return false; }
        if (exponent > 100000 || exponent < -100000) { return false; }
    }
    if (mantissa + 16 > sizeof buffer) { return false; }
    const int n = snprintf(buffer, sizeof buffer, "%.*se%lld", (int)mantissa, text,
                           (long long)exponent + shift);
    return n > 0 && crdi_parse_double(buffer, (size_t)n, out);
}

bool crd_quantity_parse(const char* text, double* si, crd_dimension* dim, bool* bare)
{
    skip_blanks(&text);
    size_t length = strlen(text);
    while (length && is_blank(text[length - 1])) {
        length--;
    }
    const size_t digits = crdi_number_prefix(text);
    double x = 0;
    scale s = {.num = 1, .den = 1};
    if (digits == length || digits == 0) { // also INF and NaN
        const size_t plus = digits && text[0] == '+';
        if (!crdi_parse_double(text + plus, length - plus, &x)) { return false; }
    } else {
        const char* unit = text + digits;
        skip_blanks(&unit);
        if (*unit == '-' || (*unit == '1' && !strchr(unit, '/'))) { return false; }
        if (!parse_scale(unit, &s)) { return false; }
        const bool decimal = s.num == 1 && s.den == 1 && s.pi == 0 && s.shift == 0;
        if (!shifted_number(text, digits, decimal ? s.exp10 : 0, &x)) { return false; }
        if (!decimal) { x = scaled(&s, x + s.shift); }
    }
    if (!to_dimension(&s, dim)) { return false; }
    *si = x;
    *bare = digits == length || digits == 0;
    return true;
}
