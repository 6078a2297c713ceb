// Numbers to text and back, without locale, correctly rounded, without allocation.
//
// Both ways multiply a 64-bit mantissa with a power of ten that is cut to 128 bits and keep the 128
// leading bits of the product: at most 2 units below the true value. To find the fewest digits that
// is enough for every double (tests/base/powers.py proves it); reading, texts that lie nearer to
// the middle between two doubles go to strtod (compare Lemire 2021).
#include "shared/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// 128 bits, on machines that have no such integer, too
typedef struct wide {
    uint64_t hi, lo;
} wide;

static inline wide product_of(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 u128;
    const u128 p = (u128)a * b;
    return (wide){(uint64_t)(p >> 64), (uint64_t)p};
#else
    const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t low = al * bl, mid = ah * bl + (low >> 32), top = al * bh + (uint32_t)mid;
    return (wide){ah * bh + (mid >> 32) + (top >> 32), top << 32 | (uint32_t)low};
#endif
}

static inline wide plus(wide a, wide b)
{
    const uint64_t lo = a.lo + b.lo;
    return (wide){a.hi + b.hi + (lo < b.lo), lo};
}

static inline wide minus(wide a, wide b)
{
    return (wide){a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo};
}

// 0 < n < 128
static inline wide shifted(wide a, int n)
{
    return n >= 64 ? (wide){0, a.hi >> (n - 64)} : (wide){a.hi >> n, a.hi << (64 - n) | a.lo >> n};
}

enum {
    FIRST = -342, // reading needs 10^-342 .. 10^308, writing 10^-292 .. 10^340
    LAST = 340,
    LIMBS = 32,       // of 32 bits: 5^340 has 790, and 2^1023 / 5^342 still 229
    CUT = 2,          // the true product is less than this above ours
    EXACT = 27,       // 10^0 .. 10^27 have no more than 64 bits after removal of their twos
    BEHIND = 6,       // bits behind the point when 17 digits stand before it, beside the lower word
    MOST_DIGITS = 800 // more than any middle between two doubles has
};

// floor(log2(10^q)) for all q of the table
static int log2_of_power(int q)
{
    return (q * 217706) >> 16;
}

// The 128 leading bits of a number, lowest limb first.
static wide leading(const uint32_t x[LIMBS])
{
    int top = LIMBS - 1;
    while (!x[top]) {
        top--;
    }
    uint64_t limbs[5]; // highest first, zeros behind the lowest
    for (int i = 0; i < 5; i++) {
        limbs[i] = top >= i ? x[top - i] : 0;
    }
    const int lz = __builtin_clz(x[top]);
    const uint64_t hi = limbs[0] << 32 | limbs[1], lo = limbs[2] << 32 | limbs[3];
    if (!lz) { return (wide){hi, lo}; }
    return (wide){hi << lz | lo >> (64 - lz), lo << lz | limbs[4] >> (32 - lz)};
}

// 5^q has the leading bits of 10^q. Up it is exact; down, floor(floor(n / 5) / 5) = floor(n / 25),
// so that cutting a long number each time is cutting once.
static void five_times(uint32_t up[LIMBS])
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)5 * up[i];
        up[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void a_fifth(uint32_t down[LIMBS])
{
    uint64_t rest = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        rest = rest << 32 | down[i];
        down[i] = (uint32_t)(rest / 5);
        rest %= 5;
    }
}

// 10^q = (hi * 2^64 + lo) * 2^(floor(log2(10^q)) - 127), cut
#ifdef CRDI_SMALL // each time anew: memory is dearer than time where numbers are read at the start
static const wide* power_of_ten(int q, wide* room)
{
    uint32_t x[LIMBS] = {[0] = q >= 0, [LIMBS - 1] = q < 0 ? (uint32_t)1 << 31 : 0};
    for (int i = 0; i != q; i += q > 0 ? 1 : -1) {
        (q > 0 ? five_times : a_fifth)(x);
    }
    *room = leading(x);
    return room;
}
#else
static wide powers[LAST - FIRST + 1];

// When the program is loaded, in some 20 us.
__attribute__((constructor)) static void make_powers(void)
{
    uint32_t up[LIMBS] = {1}, down[LIMBS] = {[LIMBS - 1] = (uint32_t)1 << 31};
    for (int q = 0; q <= -FIRST; q++) {
        if (q <= LAST) { powers[q - FIRST] = leading(up); }
        if (q > 0) { powers[-q - FIRST] = leading(down); }
        five_times(up);
        a_fifth(down);
    }
}

static const wide* power_of_ten(int q, wide* room)
{
    (void)room;
    return &powers[q - FIRST];
}
#endif

static wide times_power(uint64_t w, int q)
{
    wide room;
    const wide* p = power_of_ten(q, &room);
    return plus(product_of(w, p->hi), (wide){0, product_of(w, p->lo).hi});
}

// ---- to text -----------------------------------------------------------------------------------

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static inline void put_pair(char* out, uint32_t n)
{
    memcpy(out, pairs + 2 * n, 2);
}

// Two halves of four digits, four pairs, eight digits, side by side in one word: n / 100 is
// n * 10486 >> 20 for n < 10^4, n / 10 is n * 103 >> 10 for n < 100.
static inline void put_eight(char* out, uint32_t n)
{
    const uint64_t halves = n / 10000 | (uint64_t)(n % 10000) << 32;
    const uint64_t upper = (halves * 10486 >> 20) & 0x0000007F0000007FU;
    const uint64_t two = upper | (halves - 100 * upper) << 16;
    const uint64_t tens = (two * 103 >> 10) & 0x000F000F000F000FU;
    uint64_t digits = (tens | (two - 10 * tens) << 8) | 0x3030303030303030U;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(out, &digits, 8);
}

// The 17 digits of D, 10^16 <= D < 10^17
static inline void put_digits(char* out, uint64_t d)
{
    const uint64_t top = d / 100000000;
    out[0] = (char)('0' + top / 100000000);
    put_eight(out + 1, (uint32_t)(top % 100000000));
    put_eight(out + 9, (uint32_t)(d % 100000000));
}

static int put_integer(char* out, uint64_t n)
{
    char text[20];
    int at = 20;
    while (n >= 100) {
        at -= 2;
        put_pair(text + at, (uint32_t)(n % 100));
        n /= 100;
    }
    if (n >= 10) {
        at -= 2;
        put_pair(text + at, (uint32_t)n);
    } else {
        text[--at] = (char)('0' + n);
    }
    memcpy(out, text + at, (size_t)(20 - at));
    return 20 - at;
}

static uint64_t before_point(wide x)
{
    return x.hi >> BEHIND;
}

// After what a cut product may lack has been added.
static bool is_integer(wide x)
{
    return !(x.hi << (64 - BEHIND)) && x.lo < 4;
}

// Of the integers from `low` to `high` around x = at, or a little more if not `exact`, the nearest
// to x of those with the most zeros at the end, ties to even; 0 if none ends in a zero. Of a normal
// number x +- 11.2 is all there is: at most one is a multiple of 100.
static inline uint64_t fewest_digits(uint64_t low, uint64_t at, bool exact, uint64_t high,
                                     bool normal)
{
    uint64_t ten = 10;
    if (normal) {
        const uint64_t hundreds = high / 100 * 100;
        if (hundreds >= low) { return hundreds; }
    } else {
        while (high / (10 * ten) * (10 * ten) >= low) {
            ten *= 10;
        }
    }
    uint64_t d = (at + ten / 2) / ten;
    if (exact && ten * d - at == 5) { d -= d & 1; }
    d *= ten;
    if (d < low) { d += ten; } // below a power of two it reaches half as far
    return d <= high ? d : 0;
}

// The shortest D and k with D * 10^(k - 16) = |x| after reading, of those the nearest to |x|; x
// finite, not 0. What reads back as |x| lies within half a unit of its last place, which is a shift
// of the power of ten, and at the ends if the mantissa is even:
//   |x| * 10^(16 - k) = product + [0, 2),  half = floor(...) + [0, 1)
// No end is so near to an integer that this matters unless it is one (tests/base/powers.py), so
// 3 more above and 2 below make floors right.
// `normal` is a constant where it is called.
__attribute__((always_inline)) static inline uint64_t decimal_of(uint64_t bits, bool normal,
                                                                 int* k10)
{
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    const uint64_t m = fraction | (uint64_t)normal << 52;
    const int e = normal ? (int)(bits >> 52) : 1, lz = normal ? 11 : __builtin_clzll(m);
    const uint64_t w = m << lz;        // |x| = w * 2^(e2 - 63)
    const int e2 = e - 1075 + 63 - lz; // floor(log2(|x|))
    int k = (e2 * 78913) >> 18;        // floor(log10(|x|)), or one less
    wide room;
    const wide* next = power_of_ten(k + 1, &room);
    const int e_next = log2_of_power(k + 1);
    if (e2 > e_next || (e2 == e_next && (w > next->hi || (w == next->hi && !next->lo)))) { k++; }

    // 10^16 .. 10^17 has 54 to 57 bits: the product is made so small that 64 + BEHIND are left
    const int less = 126 - 64 - BEHIND - e2 - log2_of_power(16 - k); // 0 .. 3
    const wide product = times_power(w >> less, 16 - k);
    const wide half = shifted(*power_of_ten(16 - k, &room), 65 + less - lz);
    const wide x = plus(product, (wide){0, 2}), high = plus(plus(x, half), (wide){0, 1}),
               low = minus(x, fraction || e == 1 ? half : shifted(half, 1));
    const bool odd = m & 1; // then the ends do not count
    const uint64_t last = before_point(high) - (odd & is_integer(high));
    const uint64_t first = before_point(low) + (odd | !is_integer(low));
    uint64_t d = fewest_digits(first, before_point(x), is_integer(x), last, normal);
    if (!d) { // 17 digits, rounded to nearest, ties to even: equal only where the product is exact
        const uint64_t middle = (uint64_t)1 << (BEHIND - 1);
        d = (product.hi + middle) >> BEHIND;
        d -= (d & 1) & ((product.hi & (2 * middle - 1)) == middle && !product.lo);
    }
    if (d == 100000000000000000U) {
        d /= 10;
        k++;
    }
    *k10 = k;
    return d;
}

// The first of 17 digits is none.
static int zeros_at_end(const char* digits)
{
    int n = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (const char* at = digits + 9; n < 16; at -= 8, n += 8) {
        uint64_t v;
        memcpy(&v, at, 8);
        v ^= 0x3030303030303030U;
        if (v) { return n + __builtin_clzll(v) / 8; }
    }
#else
    while (digits[16 - n] == '0') {
        n++;
    }
#endif
    return n;
}

// d.ddde-xx or ddd.ddd or 0.000ddd, whichever %g takes; zeros at the end left out. Digits go in
// all at once, also those that are cut off again, but never beyond the 24 bytes.
static int layout(char* out, uint64_t d, int k)
{
    char digits[17];
    put_digits(digits, d);
    const int n = 17 - zeros_at_end(digits);
    char* at = out;
    if (k >= 0 && k < 17) {
        memcpy(at, digits, 17); // those behind n are zeros, as they should be
        if (n <= k + 1) { return k + 1; }
        if (k <= 8) { // 16 - k digits, 8 from either end
            memcpy(at + k + 2, digits + k + 1, 8);
            memcpy(at + 10, digits + 9, 8);
        } else {
            memmove(at + k + 2, digits + k + 1, (size_t)(16 - k));
        }
        at[k + 1] = '.';
        return n + 1;
    }
    if (k < 0 && k >= -4) {
        memcpy(at, "0.000", 5);
        memcpy(at + 1 - k, digits, 17);
        return n + 1 - k;
    }
    *at++ = digits[0];
    if (n > 1) {
        *at++ = '.';
        memcpy(at, digits + 1, 16);
        at += n - 1;
    }
    *at++ = 'e';
    *at++ = k < 0 ? '-' : '+';
    uint32_t e = (uint32_t)abs(k);
    if (e >= 100) {
        *at++ = (char)('0' + e / 100);
        e %= 100;
    }
    put_pair(at, e);
    return (int)(at + 2 - out);
}

int crdi_format_double(char* out, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    char* at = out;
    const int e = (int)(bits >> 52) & 2047;
    const double a = fabs(x);
    int k;
    if (bits >> 63 && !(isnan(x))) { *at++ = '-'; }
    bits &= ~((uint64_t)1 << 63);
    if (e == 2047) {
        memcpy(at, isnan(x) ? "nan" : "inf", 3);
        at += 3;
    } else if (a < 9007199254740992.0 && a == (double)(int64_t)a) {
        at += put_integer(at, (uint64_t)a);
    } else if (e > 0) {
        const uint64_t d = decimal_of(bits, true, &k);
        at += layout(at, d, k);
    } else {
        const uint64_t d = decimal_of(bits, false, &k);
        at += layout(at, d, k);
    }
    *at = 0;
    return (int)(at - out);
}

// ---- from text ---------------------------------------------------------------------------------

// w * 10^q, w not 0; false where the answer is not certain or not a normal number
static bool number_scale(uint64_t w, int64_t q, double* out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (w <= (uint64_t)1 << 53 && q >= -22 && q <= 22) { // both exact, one rounding (Clinger 1990)
        *out = q < 0 ? (double)w / tens[-q] : (double)w * tens[q];
        return true;
    }
    if (q < FIRST || q > 308) { return false; }
    const int lz = __builtin_clzll(w);
    const wide product = times_power(w << lz, (int)q);
    const int lead = 126 + (int)(product.hi >> 63);
    const int shift = lead - 52 - 64; // of the upper word: 10 or 11
    uint64_t m = product.hi >> shift;
    const uint64_t rest = product.hi & (((uint64_t)1 << shift) - 1),
                   half = (uint64_t)1 << (shift - 1);
    const bool above = rest > half || (rest == half && product.lo);
    if (q >= 0 && q <= EXACT) {
        m += above | ((rest == half) & (m & 1)); // if it is above, it rounds up anyhow
    } else {
        const bool just_below = rest == half - 1 && product.lo > UINT64_MAX - CUT + 1;
        if (!above && (rest == half || just_below)) { return false; }
        m += above;
    }
    int e = lead + log2_of_power((int)q) - 63 - lz;
    if (m >> 53) {
        m >>= 1;
        e++;
    }
    if (e < -1022 || e > 1023) { return false; }
    const uint64_t bits = (uint64_t)(e + 1023) << 52 | (m & (((uint64_t)1 << 52) - 1));
    memcpy(out, &bits, sizeof bits);
    return true;
}

#ifdef CRDI_SMALL // some units in the last place off, for texts that nobody writes
static double slowly(const char* p, const char* end, int64_t exponent)
{
    double x = 0;
    bool behind = false;
    for (; p < end; p++) {
        behind |= *p == '.';
        if (*p == '.') { continue; }
        x = 10 * x + (*p - '0');
        exponent -= behind;
    }
    for (; exponent < 0 && x != 0; exponent++) {
        x /= 10;
    }
    for (; exponent > 0 && x != 0 && isfinite(x); exponent--) {
        x *= 10;
    }
    return x;
}
#else
// The digits of [p, end) without point, as many as can matter, then strtod. There is no point in
// the text that it gets, so the locale does not matter.
static double slowly(const char* p, const char* end, int64_t exponent)
{
    char text[MOST_DIGITS + 32];
    int n = 0;
    bool behind = false, more = false;
    for (; p < end; p++) {
        if (*p == '.') {
            behind = true;
            continue;
        }
        if (n == 0 && *p == '0') {
            exponent -= behind;
            continue;
        }
        if (n < MOST_DIGITS) {
            text[n++] = *p;
            exponent -= behind;
        } else {
            more |= *p != '0';
            exponent += !behind;
        }
    }
    if (n == 0) { return 0; }
    if (more) { // a middle is no middle any more when something follows
        text[n++] = '1';
        exponent--;
    }
    text[n++] = 'e';
    if (exponent < 0) {
        text[n++] = '-';
        exponent = -exponent;
    }
    n += put_integer(text + n, exponent > 99999 ? 99999 : (uint64_t)exponent);
    text[n] = 0;
    return strtod(text, NULL);
}
#endif

static bool equals(const char* text, const char* end, const char* word)
{
    for (; text < end && *word; text++, word++) {
        const char c = *text >= 'A' && *text <= 'Z' ? (char)(*text + ('a' - 'A')) : *text;
        if (c != *word) { return false; }
    }
    return text == end && !*word;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

// Appends the digits at p to *w and returns where they end. Eight at a time first: neighbours are
// joined to pairs, pairs to fours, fours to eight.
static const char* digits_of(const char* p, const char* end, uint64_t* w)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        const uint64_t high = 0xF0F0F0F0F0F0F0F0U;
        if ((v & high) != 0x3030303030303030U ||
            ((v + 0x0606060606060606U) & high) != 0x3030303030303030U) {
            break;
        }
        v = (v & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8;
        v = (v & 0x00FF00FF00FF00FFU) * 6553601 >> 16;
        *w = *w * 100000000 + ((v & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32);
        p += 8;
    }
#endif
    for (; p < end && digit(*p); p++) {
        *w = 10 * *w + (uint64_t)(*p - '0');
    }
    return p;
}

// "e-5" or nothing
static bool exponent_of(const char* p, const char* end, int64_t* out)
{
    *out = 0;
    if (p == end) { return true; }
    if (*p != 'e' && *p != 'E') { return false; }
    p++;
    const bool minus = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) { p++; }
    if (p == end) { return false; }
    int64_t e = 0;
    for (; p < end; p++) {
        if (!digit(*p)) { return false; }
        if (e < INT64_MAX / 100) { e = 10 * e + (*p - '0'); }
    }
    *out = minus ? -e : e;
    return true;
}

bool crdi_parse_double(const char* text, size_t length, double* out)
{
    const char *p = text, *end = text + length;
    if (p == end) { return false; }
    const bool minus = *p == '-';
    if (*p == '-' || *p == '+') { p++; }
    const char* first = p;
    uint64_t w = 0; // overflows for more than 19 digits, and is not used then
    p = digits_of(p, end, &w);
    ptrdiff_t digits = p - first;
    int64_t q = 0;
    if (p < end && *p == '.') {
        const char* point = p++;
        p = digits_of(p, end, &w);
        q = point + 1 - p;
        digits += p - point - 1;
    }
    double value;
    if (!digits) {
        if (p != first) { return false; }
        if (equals(p, end, "inf") || equals(p, end, "infinity")) {
            value = (double)INFINITY;
        } else if (equals(p, end, "nan")) {
            value = (double)NAN;
        } else {
            return false;
        }
    } else {
        int64_t e;
        if (!exponent_of(p, end, &e)) { return false; }
        for (const char* z = first; digits > 19 && z < p && (*z == '0' || *z == '.'); z++) {
            digits -= *z == '0';
        }
        if (digits <= 19 && w == 0) {
            value = 0;
        } else if (digits > 19 || !number_scale(w, q + e, &value)) {
            value = slowly(first, p, e);
        }
    }
    *out = minus ? -value : value;
    return true;
}

bool crdi_parse_uint64(const char* text, size_t length, uint64_t* out)
{
    const char *p = text, *end = text + length;
    if (p < end && *p == '+') { p++; }
    if (p == end) { return false; }
    uint64_t n = 0;
    for (; p < end; p++) {
        if (!digit(*p)) { return false; }
        const uint64_t d = (uint64_t)(*p - '0');
        if (n > (UINT64_MAX - d) / 10) { return false; }
        n = 10 * n + d;
    }
    *out = n;
    return true;
}

bool crdi_parse_int64(const char* text, size_t length, int64_t* out)
{
    const bool minus = length > 0 && *text == '-';
    uint64_t n;
    if (minus && (length < 2 || !digit(text[1]))) { return false; } // no "-+1"
    if (!crdi_parse_uint64(text + minus, length - minus, &n)) { return false; }
    if (n > (uint64_t)INT64_MAX + minus) { return false; }
    *out = minus ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}
