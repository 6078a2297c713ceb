// Units and quantities: exact numbers, every way of writing them, nonsense refused.
#include "check.h"

#include <stdio.h>

static void unit_is(const char* text, double factor, const int8_t dim[8])
{
    crd_dimension d;
    if (!crd_dimension_parse(text, &d)) { fail_msg("'%s' is not read", text); }
    const int8_t got[8] = {d.kg, d.m, d.s, d.A, d.K, d.mol, d.cd, d.rad};
    if (memcmp(got, dim, 8) != 0) {
        fail_msg("'%s' has kg%d m%d s%d A%d K%d mol%d cd%d rad%d", text, got[0], got[1], got[2],
                 got[3], got[4], got[5], got[6], got[7]);
    }
    if (d.factor != factor) { fail_msg("'%s' = %.17g, expected %.17g", text, d.factor, factor); }
}

static void units_have_their_exponents_and_exact_factors(void** state)
{
    static const struct {
        const char* text;
        double factor;
        int8_t dim[8]; // kg m s A K mol cd rad
    } rows[] = {
        {"", 1, {0}},
        {"1", 1, {0}},
        {"-", 1, {0}},
        {"%", 0.01, {0}},
        {"m", 1, {0, 1}},
        {"mm", 1e-3, {0, 1}},
        {"km", 1e3, {0, 1}},
        {"um", 1e-6, {0, 1}},
        {"\u00b5m", 1e-6, {0, 1}},
        {"\u03bcm", 1e-6, {0, 1}},
        {"dam", 10, {0, 1}},
        {"dm", 0.1, {0, 1}},
        {"ym", 1e-24, {0, 1}},
        {"Ym", 1e24, {0, 1}},
        {"kg", 1, {1}},
        {"g", 1e-3, {1}},
        {"mg", 1e-6, {1}},
        {"t", 1e3, {1}},
        {"kt", 1e6, {1}},
        {"lb", 0.45359237, {1}},
        {"s", 1, {0, 0, 1}},
        {"ms", 1e-3, {0, 0, 1}},
        {"min", 60, {0, 0, 1}},
        {"h", 3600, {0, 0, 1}},
        {"d", 86400, {0, 0, 1}},
        {"cd", 1, {0, 0, 0, 0, 0, 0, 1}},
        {"mol", 1, {0, 0, 0, 0, 0, 1}},
        {"mmol", 1e-3, {0, 0, 0, 0, 0, 1}},
        {"A", 1, {0, 0, 0, 1}},
        {"K", 1, {0, 0, 0, 0, 1}},
        {"N", 1, {1, 1, -2}},
        {"Pa", 1, {1, -1, -2}},
        {"hPa", 1e2, {1, -1, -2}},
        {"bar", 1e5, {1, -1, -2}},
        {"mbar", 1e2, {1, -1, -2}},
        {"atm", 101325, {1, -1, -2}},
        {"J", 1, {1, 2, -2}},
        {"kWh", 3.6e6, {1, 2, -2}},
        {"W", 1, {1, 2, -3}},
        {"PS", 735.49875, {1, 2, -3}},
        {"V", 1, {1, 2, -3, -1}},
        {"Ohm", 1, {1, 2, -3, -2}},
        {"kOhm", 1e3, {1, 2, -3, -2}},
        {"\u03a9", 1, {1, 2, -3, -2}},
        {"m\u2126", 1e-3, {1, 2, -3, -2}},
        {"S", 1, {-1, -2, 3, 2}},
        {"F", 1, {-1, -2, 4, 2}},
        {"uF", 1e-6, {-1, -2, 4, 2}},
        {"H", 1, {1, 2, -2, -2}},
        {"T", 1, {1, 0, -2, -1}},
        {"Wb", 1, {1, 2, -2, -1}},
        {"C", 1, {0, 0, 1, 1}},
        {"Ah", 3600, {0, 0, 1, 1}},
        {"mAh", 3.6, {0, 0, 1, 1}},
        {"Hz", 1, {0, 0, -1}},
        {"kHz", 1e3, {0, 0, -1}},
        {"l", 1e-3, {0, 3}},
        {"ml", 1e-6, {0, 3}},
        {"rad", 1, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"mrad", 1e-3, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"deg", M_PI / 180, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"\u00b0", M_PI / 180, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"rev", 2 * M_PI, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"rpm", M_PI / 30, {0, 0, -1, 0, 0, 0, 0, 1}},
        {"rev/min", M_PI / 30, {0, 0, -1, 0, 0, 0, 0, 1}},
        {"1/min", 1.0 / 60, {0, 0, -1}},
        {"min-1", 1.0 / 60, {0, 0, -1}},
        {"/s", 1, {0, 0, -1}},
        {"1/s", 1, {0, 0, -1}},
        {"s-1", 1, {0, 0, -1}},
        {"s^-1", 1, {0, 0, -1}},
        {"s^(-1)", 1, {0, 0, -1}},
        {"s\u207b\u00b9", 1, {0, 0, -1}},
        {"km/h", 1000.0 / 3600, {0, 1, -1}},
        {"kph", 1000.0 / 3600, {0, 1, -1}},
        {"mph", 0.44704, {0, 1, -1}},
        {"in", 0.0254, {0, 1}},
        {"ft", 0.3048, {0, 1}},
        {"m/s2", 1, {0, 1, -2}},
        {"m/s^2", 1, {0, 1, -2}},
        {"m/s\u00b2", 1, {0, 1, -2}},
        {"m/s/s", 1, {0, 1, -2}},
        {"m2", 1, {0, 2}},
        {"mm2", 1e-6, {0, 2}},
        {"cm3", 1e-6, {0, 3}},
        {"N.m", 1, {1, 2, -2}},
        {"N*m", 1, {1, 2, -2}},
        {"N\u00b7m", 1, {1, 2, -2}},
        {"N\u22c5m", 1, {1, 2, -2}},
        {"N m", 1, {1, 2, -2}},
        {"Nm", 1, {1, 2, -2}},
        {"kNm", 1e3, {1, 2, -2}},
        {"Nm/rad", 1, {1, 2, -2, 0, 0, 0, 0, -1}},
        {"Nms/rad", 1, {1, 2, -1, 0, 0, 0, 0, -1}},
        {"N.m.s/rad", 1, {1, 2, -1, 0, 0, 0, 0, -1}},
        {"J/(kg.K)", 1, {0, 2, -2, 0, -1}},
        {"J/kg/K", 1, {0, 2, -2, 0, -1}},
        {"kg.m2/s2", 1, {1, 2, -2}},
        {"kg/(m.s)2", 1, {1, -2, -2}},
        {"W/(m2.degC)", 1, {1, 0, -3, 0, -1}},
        {"deg/s", M_PI / 180, {0, 0, -1, 0, 0, 0, 0, 1}},
        {"deg/deg", 1, {0}},
        {"g/kWh", 1e-3 / 3.6e6, {0, -2, 2}},
        {"kg.m-3", 1, {1, -3}},
        {" m / s ", 1, {0, 1, -1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unit_is(rows[i].text, rows[i].factor, rows[i].dim);
    }
}

static void nonsense_units_are_refused(void** state)
{
    static const char* const rows[] = {
        "furlong", "m//s",   "m/",   "m.",   "(m",     "m)",  "m^",   "m^x",
        "m-",      "kkg",    "mmin", "N..m", "2m",     "1 1", "m^(2", "*m",
        "m^1000",  "m127m1", "s-",   "yd2x", "Hz!",    "()",  "--",   "\xff",
        "\u00b5",  "k",      "m2.5", "m 2",  "degC2x", "ct",  "hd",   "((((((((((m))))))))))",
        "m99.m99", "lbf99",  "1/",   "10",   "m/1 1",
    };
    crd_dimension d;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (crd_dimension_parse(rows[i], &d)) { fail_msg("'%s' is read", rows[i]); }
    }
}

static double quantity(const char* text)
{
    double x = NAN;
    crd_dimension d;
    bool bare = true;
    if (!crd_quantity_parse(text, &x, &d, &bare)) { fail_msg("'%s' is not read", text); }
    if (bare) { fail_msg("'%s' is taken for a bare number", text); }
    return x;
}

static void a_quantity_is_the_double_nearest_its_decimal_value(void** state)
{
    static const struct {
        const char* text;
        double si;
    } rows[] = {
        {"10 ms", 0.01},      {"10ms", 0.01},        {"0.3 ms", 0.0003},   {"1e-3 s", 0.001},
        {".5 min", 30},       {"0.5 min", 30},       {"36 km/h", 10},      {"+5 s", 5},
        {"-3.3 us", -3.3e-6}, {"1.1 um", 1.1e-6},    {"7 ns", 7e-9},       {"1E3 mm", 1},
        {"5. m", 5},          {"50 %", 0.5},         {"50%", 0.5},         {"10/s", 10},
        {"10 1/s", 10},       {"2 h", 7200},         {"100 mph", 44.704},  {"  4 s  ", 4},
        {"0.1 MN", 1e5},      {"1e-300 Ym", 1e-276}, {"60 kWh", 2.16e8},   {"9.81 m/s2", 9.81},
        {"1e2 kPa", 1e5},     {"2.54 cm", 0.0254},   {"33.33 g", 0.03333}, {"1 t", 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double x = quantity(rows[i].text);
        if (x != rows[i].si) {
            fail_msg("'%s' = %.17g, expected %.17g", rows[i].text, x, rows[i].si);
        }
    }
    check_near(quantity("180 deg"), M_PI, 1e-15);
    check_near(quantity("3000 rpm"), 100 * M_PI, 1e-13);
}

static void only_plain_temperatures_have_a_zero_point(void** state)
{
    check_near(quantity("20 degC"), 293.15, 1e-13);
    check_near(quantity("-40 \u00b0C"), quantity("-40 degF"), 1e-12);
    check_near(quantity("32 \u00b0F"), 273.15, 1e-12);
    check_near(quantity("-273.15 degC"), 0, 1e-13);
    check_near(quantity("20 degC/min"), 20.0 / 60, 1e-15);
    check_near(quantity("9 degF/s"), 5, 1e-15);
    check_near(quantity("3 degC2"), 3, 0);
    crd_dimension d;
    check(crd_dimension_parse("degC", &d));
    check_near(d.offset, 273.15, 0);
    check(crd_dimension_parse("degF", &d));
    check_near(d.factor, 5.0 / 9, 0);
    check_near(d.offset, 459.67 * 5 / 9, 1e-12);
    check(crd_dimension_parse("degC/s", &d));
    check_near(d.offset, 0, 0);
}

static void a_bare_number_says_so(void** state)
{
    static const struct {
        const char* text;
        double value;
    } rows[] = {{"3", 3}, {"1e-3", 1e-3}, {".5", 0.5}, {"-2.", -2}, {"+7", 7}, {" 8 ", 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x = 0;
        bool bare = false;
        crd_dimension d;
        check(crd_quantity_parse(rows[i].text, &x, &d, &bare));
        check(bare);
        check_near(x, rows[i].value, 0);
        check_near(d.factor, 1, 0);
    }
}

static void nonsense_quantities_are_refused(void** state)
{
    static const char* const rows[] = {
        "",  " ",  "ms",  "10 m s s)", "1 2 3", "1 1", "1 1 1",  "5 -",   "e3",    ".",
        "-", "1e", "++1", "1,5 s",     "0x10",  "1_0", "10 ms;", "12:30", "--1 s", "1e999999999 s"};
    double x;
    crd_dimension d;
    bool bare;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (crd_quantity_parse(rows[i], &x, &d, &bare)) { fail_msg("'%s' is read", rows[i]); }
    }
}

static uint64_t random_next(uint64_t* s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

// For random products of units: u/u has no dimension and factor 1, u and 1/(1/u) are the same, and
// the factor of a product is the product of the factors.
static void products_and_quotients_of_units_are_consistent(void** state)
{
    static const char* const names[] = {"m",   "kg",  "s",   "mA",  "K",   "mol", "cd", "rad", "N",
                                        "bar", "min", "kWh", "deg", "rpm", "km",  "uF", "lb",  "%"};
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 2000; round++) {
        const char* a = names[random_next(&seed) % 18];
        const char* b = names[random_next(&seed) % 18];
        const int n = (int)(random_next(&seed) % 3) + 1;
        char product[64], inverse[80], ratio[160];
        snprintf(product, sizeof product, "%s%d.%s", a, n, b);
        snprintf(inverse, sizeof inverse, "1/(1/(%s))", product);
        snprintf(ratio, sizeof ratio, "(%s)/(%s)", product, product);
        crd_dimension da, db, dp, di, dr, none = {0};
        check(crd_dimension_parse(a, &da));
        check(crd_dimension_parse(b, &db));
        check(crd_dimension_parse(product, &dp));
        check(crd_dimension_parse(ratio, &dr));
        check(crd_dimension_equal(&dr, &none));
        check_near(dr.factor, 1, 1e-15);
        check(crd_dimension_parse(inverse, &di));
        check(crd_dimension_equal(&di, &dp));
        check_near(dp.factor / (pow(da.factor, n) * db.factor), 1, 1e-14);
        check_int(dp.kg, n * da.kg + db.kg);
        check_int(dp.s, n * da.s + db.s);
        check_int(dp.rad, n * da.rad + db.rad);
    }
}

static void a_number_in_any_unit_is_number_times_factor(void** state)
{
    static const char* const units[] = {"ms",  "km/h",  "rpm",  "N.m",
                                        "kWh", "g/kWh", "mbar", "deg/s2"};
    uint64_t seed = 42;
    for (int round = 0; round < 4000; round++) {
        const char* unit = units[round % 8];
        const double value = ((double)(random_next(&seed) >> 11) / 9007199254740992.0 - 0.5) *
                             pow(10, (double)(random_next(&seed) % 12) - 6);
        char text[80];
        snprintf(text, sizeof text, "%.17g %s", value, unit);
        crd_dimension d;
        check(crd_dimension_parse(unit, &d));
        const double x = quantity(text);
        check_near(x, value * d.factor, 4e-16 * fabs(value * d.factor));
    }
}

static void random_bytes_are_read_or_refused_but_never_hurt(void** state)
{
    static const char alphabet[] = "mskgNAKr1 2-9./*^()%\xc2\xb5\xb7\xce\xa9\xe2\x81\xbbudegC";
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        const size_t n = (size_t)(random_next(&seed) % (sizeof text - 1));
        for (size_t i = 0; i < n; i++) {
            text[i] = alphabet[random_next(&seed) % (sizeof alphabet - 1)];
        }
        text[n] = 0;
        crd_dimension d;
        double x = 0;
        bool bare = false;
        if (crd_dimension_parse(text, &d)) { check(isfinite(d.factor) && d.factor > 0); }
        (void)crd_quantity_parse(text, &x, &d, &bare);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_have_their_exponents_and_exact_factors),
        cmocka_unit_test(nonsense_units_are_refused),
        cmocka_unit_test(a_quantity_is_the_double_nearest_its_decimal_value),
        cmocka_unit_test(only_plain_temperatures_have_a_zero_point),
        cmocka_unit_test(a_bare_number_says_so),
        cmocka_unit_test(nonsense_quantities_are_refused),
        cmocka_unit_test(products_and_quotients_of_units_are_consistent),
        cmocka_unit_test(a_number_in_any_unit_is_number_times_factor),
        cmocka_unit_test(random_bytes_are_read_or_refused_but_never_hurt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
