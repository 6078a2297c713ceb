// Numbers against the C library: what we write is what printf writes with the fewest digits that
// strtod reads back, what we read is what strtod reads.
#include "check.h"
#include "shared/base.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>

static uint64_t state64 = 0x9E3779B97F4A7C15u;
static uint64_t random64(void) // xorshift64*
{
    state64 ^= state64 >> 12;
    state64 ^= state64 << 25;
    state64 ^= state64 >> 27;
    return state64 * 0x2545F4914F6CDD1Du;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// How many digits a text has without zeros at either end.
static int count_digits(const char* text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0')) { continue; }
        n += 1 + (*text != '0') * zeros;
        zeros = *text == '0' ? zeros + 1 : 0;
        n -= *text == '0';
    }
    return n;
}

// The n digits of printf laid out as %.17g does.
static void lay_out(char* out, double x, int n)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", n - 1, x);
    char* e = strchr(text, 'e');
    const int k = atoi(e + 1), minus = text[0] == '-';
    if (k >= 17 || k < -4) {
        strcpy(out, text);
    } else if (k < n) {
        snprintf(out, 64, "%.*f", n - 1 - k, x);
    } else {
        *e = 0;
        char* point = strchr(text, '.');
        if (point) { memmove(point, point + 1, strlen(point)); }
        strcpy(out, text);
        memset(out + strlen(text), '0', (size_t)(k + 1 + minus) - strlen(text));
        out[k + 1 + minus] = 0;
    }
}

// One value: the digits of printf, no fewer would do, equal value back.
static void check_value(double x)
{
    char ours[32], theirs[64];
    memset(ours, '#', sizeof ours);
    const int n = crdi_format_double(ours, x);
    const int digits = count_digits(ours);
    if (isnan(x)) {
        strcpy(theirs, "nan");
    } else if (!isfinite(x) || x == 0) {
        snprintf(theirs, sizeof theirs, "%.17g", x);
    } else {
        snprintf(theirs, sizeof theirs, "%.*e", digits > 1 ? digits - 2 : 0, x);
        if (digits > 1 && strtod(theirs, NULL) == x) {
            fail_msg("%a is written %s, and %s would do", x, ours, theirs);
        }
        lay_out(theirs, x, digits);
        int exponent; // below a power of two the nearest may be too far, and one above it not
        if (frexp(fabs(x), &exponent) == 0.5 && strtod(theirs, NULL) != x) { strcpy(theirs, ours); }
    }
    if (strcmp(ours, theirs) != 0 || n != (int)strlen(theirs)) {
        fail_msg("%a is written %s, expected %s", x, ours, theirs);
    }
    check_int(ours[25], '#'); // at most 25 bytes
    double back = 0;
    if (!crdi_parse_double(ours, (size_t)n, &back)) { fail_msg("%s is not read", ours); }
    if (memcmp(&back, &x, sizeof x) != 0 && !isnan(x)) { fail_msg("%s is read as %a", ours, back); }
}

static void check_both(double x)
{
    check_value(x);
    check_value(-x);
}

// One text: the value of strtod.
static void check_read(const char* text)
{
    double ours = 0;
    if (!crdi_parse_double(text, strlen(text), &ours)) { fail_msg("%s is not read", text); }
    const double theirs = strtod(text, NULL);
    if (memcmp(&ours, &theirs, sizeof ours) != 0) {
        fail_msg("%s is read as %a, expected %a", text, ours, theirs);
    }
}

static void random_bit_patterns_are_written_with_the_fewest_digits(void** state)
{
#ifdef TEST_NUMBERS
    const int count = TEST_NUMBERS;
#else
    const int count = 1000000 / CHECK_SHARE;
#endif
    for (int i = 0; i < count; i++) {
        check_value(of_bits(random64()));
    }
    for (int i = 0; i < count / 4; i++) { // of the size that results have
        check_value((double)(int64_t)random64() * 0x1p-63);
        check_value(1000 * ((double)(random64() >> 11) * 0x1p-53));
    }
}

static void every_exponent_is_written_with_the_fewest_digits(void** state)
{
    for (uint64_t e = 0; e < 2048; e++) {
        check_both(of_bits(e << 52));
        check_both(of_bits(e << 52 | 1));
        check_both(of_bits(e << 52 | (((uint64_t)1 << 52) - 1)));
        for (int b = 0; b < 52; b++) {
            check_both(of_bits(e << 52 | (uint64_t)1 << b));
        }
    }
    for (int k = -324; k <= 308; k++) { // powers of ten and their neighbours
        char text[16];
        snprintf(text, sizeof text, "1e%d", k);
        const double x = strtod(text, NULL);
        check_both(x);
        check_both(nextafter(x, 0));
        check_both(nextafter(x, (double)INFINITY));
        check_read(text);
    }
}

static void special_values_have_the_names_of_the_c_library(void** state)
{
    char text[32];
    check_int(crdi_format_double(text, (double)INFINITY), 3);
    check_text(text, "inf");
    check_int(crdi_format_double(text, -(double)INFINITY), 4);
    check_text(text, "-inf");
    check_int(crdi_format_double(text, of_bits(0xFFF8000000000000u)), 3);
    check_text(text, "nan");
    check_int(crdi_format_double(text, -0.0), 2);
    check_text(text, "-0");
    check_both(DBL_MAX);
    check_both(DBL_MIN);
    check_both(of_bits(1));
    check_both(0);
}

static void exact_ties_go_to_the_even_digit(void** state)
{
    // n + 1/2^j with 18 digits, the last a 5: the text of 17 digits is a tie
    for (int j = 1; j <= 24; j++) {
        for (int i = 0; i < 4000 / CHECK_SHARE; i++) {
            const uint64_t m = random64() >> (11 + random64() % 50);
            check_both(ldexp((double)(2 * m + 1), -j));
        }
    }
    check_value(1125899906842624.125); // 18 digits, down to ...12
    check_value(1125899906842624.375); // up to ...38
    check_value(4503599627370497.5);   // 17 digits
    check_value(0.5 + 0x1p-17);
}

static void integers_and_short_decimals_are_written_short(void** state)
{
    for (int i = 0; i < 200000 / CHECK_SHARE; i++) {
        const uint64_t n = random64() >> (random64() % 64);
        check_both((double)n);
        check_value((double)(n % 100000) / 1000);
        check_value((double)i * 1e-3);
    }
    for (int b = 0; b < 64; b++) {
        check_both(ldexp(1, b));
        check_both(ldexp(1, b) - 1);
        check_both(ldexp(1, b) + 1);
    }
    char text[32];
    crdi_format_double(text, 0.25);
    check_text(text, "0.25");
    crdi_format_double(text, 0.1);
    check_text(text, "0.1");
    crdi_format_double(text, 5e-324);
    check_text(text, "5e-324");
    crdi_format_double(text, 9007199254740993.0); // 2^53, and all of its digits
    check_text(text, "9007199254740992");
}

static void texts_are_read_like_strtod(void** state)
{
    static const char* const texts[] = {
        "0",
        "-0",
        "+0",
        "1",
        "-1",
        "+1.5",
        "1.",
        ".5",
        "1e5",
        "1E5",
        "1e+05",
        "00001.5000",
        "0.000000000000000000000000000000000001",
        "123456789012345678901234567890",
        "9007199254740993",
        "9007199254740992.99999999999999999999",
        "9007199254740993.0000000001",
        "4503599627370496.5",
        "4503599627370497.5",
        "45035996273704965e-1",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "2.2250738585072012e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "0.00000000000000000000000000000000000000000e5",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "1234567890123456789e-300",
        "1e23",
        "8.5e22",
        "6.02214076e23",
        "3.14159265358979323846264338327950288",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_read(texts[i]);
    }
    char text[64];
    for (int i = 0; i < 300000 / CHECK_SHARE; i++) {
        const int exponent = (int)(random64() % 700) - 360;
        const uint64_t digits = random64() >> (random64() % 64);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        check_read(text);
        snprintf(text, sizeof text, "%llu.%llu", (unsigned long long)(digits % 1000),
                 (unsigned long long)random64());
        check_read(text);
    }
}

// The middle between two doubles has up to 767 digits; one digit more decides.
static void middles_between_doubles_are_read_right(void** state)
{
    char text[2000];
    for (int i = 0; i < 3000 / CHECK_SHARE; i++) {
        const uint64_t bits = random64() & 0x7FFFFFFFFFFFFFFFu;
        const uint64_t e = bits >> 52;
        if (e < 2 || e > 2040) { continue; }
        const double x = of_bits(bits);
        // long double has 64 bits: the middle is exact
        const long double middle = (long double)x + ldexpl(1, (int)e - 1075 - 1);
        const int n = snprintf(text, sizeof text - 3, "%.800Le", middle);
        check_read(text);
        char* mark = strchr(text, 'e');
        char tail[16];
        strcpy(tail, mark);
        snprintf(mark, sizeof text - (size_t)n, "0000000001%s", tail);
        check_read(text);
    }
    memset(text, '0', sizeof text); // zeros do not count
    memcpy(text + 1900, "1.5", 4);
    check_read(text);
    text[0] = '.';
    memcpy(text + 1900, "15e1901", 8);
    check_read(text);
}

static void what_is_not_a_number_is_refused(void** state)
{
    static const char* const texts[] = {
        "",       " ",    "1 ",    " 1",   "+",         "-",    ".",   "e5",  ".e5",   "1e", "1e+",
        "1e5.",   "1..2", "1.2.3", "0x10", "0x1p3",     "--1",  "+-1", "1,5", "infi",  "in", "na",
        "nan(1)", "1d5",  "1f",    "i",    "infinityx", "1e5 ", "1\n", "٣",   "1_000",
    };
    double x = 42;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (crdi_parse_double(texts[i], strlen(texts[i]), &x)) {
            fail_msg("\"%s\" is read", texts[i]);
        }
    }
    check_int(x, 42);
    check(!crdi_parse_double("1\0002", 3, &x)); // the whole range, not up to a zero
    check(crdi_parse_double("12345", 2, &x));
    check_near(x, 12, 0);
}

static void infinities_and_nan_are_read_in_both_spellings(void** state)
{
    static const char* const infinite[] = {"INF",  "+INF",     "-INF",     "inf",
                                           "-inf", "Infinity", "infinity", "-INFINITY"};
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++) {
        double x = 0;
        check(crdi_parse_double(infinite[i], strlen(infinite[i]), &x));
        check(isinf(x) && (x < 0) == (infinite[i][0] == '-'));
    }
    double x = 0;
    check(crdi_parse_double("NaN", 3, &x) && isnan(x));
    x = 0;
    check(crdi_parse_double("nan", 3, &x) && isnan(x));
}

static void integers_are_read_to_the_last_and_not_beyond(void** state)
{
    int64_t i = 0;
    uint64_t u = 0;
    check(crdi_parse_int64("9223372036854775807", 19, &i) && i == INT64_MAX);
    check(crdi_parse_int64("-9223372036854775808", 20, &i) && i == INT64_MIN);
    check(!crdi_parse_int64("9223372036854775808", 19, &i));
    check(!crdi_parse_int64("-9223372036854775809", 20, &i));
    check(crdi_parse_uint64("18446744073709551615", 20, &u) && u == UINT64_MAX);
    check(!crdi_parse_uint64("18446744073709551616", 20, &u));
    check(!crdi_parse_uint64("99999999999999999999", 20, &u));
    check(!crdi_parse_uint64("-1", 2, &u));
    check(crdi_parse_int64("+007", 4, &i) && i == 7);
    check(crdi_parse_int64("-0", 2, &i) && i == 0);
    static const char* const texts[] = {"",    "-",   "+",  "-+1", "+-1",
                                        "1.0", "1e3", " 1", "1 ",  "0x1"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        check(!crdi_parse_int64(texts[k], strlen(texts[k]), &i));
        check(!crdi_parse_uint64(texts[k], strlen(texts[k]), &u));
    }
}

// Switches to a locale with a decimal comma: an installed one, or one made on the spot.
static bool use_a_decimal_comma(void)
{
    static const char* const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_AT.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_NUMERIC, names[i])) { return true; }
    }
    const char* dir = TEST_BUILD_DIR "/locales";
    if (system("mkdir -p '" TEST_BUILD_DIR "/locales' && localedef -i de_DE -f UTF-8 "
               "'" TEST_BUILD_DIR "/locales/de_DE.UTF-8' > /dev/null 2>&1") != 0) {
        return false;
    }
    return setenv("LOCPATH", dir, 1) == 0 && setlocale(LC_NUMERIC, names[0]);
}

static void the_locale_does_not_matter(void** state)
{
    if (!use_a_decimal_comma()) { skip(); } // none is installed, and none can be made
    check_text(localeconv()->decimal_point, ",");
    char text[32];
    crdi_format_double(text, 1.5);
    double x = 0, y = 0;
    const bool read = crdi_parse_double("4503599627370497.5", 18, &x);
    const bool comma = crdi_parse_double("1,5", 3, &y);
    setlocale(LC_NUMERIC, "C");
    check_text(text, "1.5");
    check(read && !comma);
    check_near(x, 4503599627370497.5, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bit_patterns_are_written_with_the_fewest_digits),
        cmocka_unit_test(every_exponent_is_written_with_the_fewest_digits),
        cmocka_unit_test(special_values_have_the_names_of_the_c_library),
        cmocka_unit_test(exact_ties_go_to_the_even_digit),
        cmocka_unit_test(integers_and_short_decimals_are_written_short),
        cmocka_unit_test(texts_are_read_like_strtod),
        cmocka_unit_test(middles_between_doubles_are_read_right),
        cmocka_unit_test(what_is_not_a_number_is_refused),
        cmocka_unit_test(infinities_and_nan_are_read_in_both_spellings),
        cmocka_unit_test(integers_are_read_to_the_last_and_not_beyond),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
