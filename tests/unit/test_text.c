// Values as users write them.
#include <stdio.h>

#include "unit_test.h"

#include "sample_model.h"

static crd_unit* sample_unit(crd_context* ctx)
{
    static crd_unit_spec spec; // borrowed by the unit
    spec = crd_unit_spec_defaults();
    spec.name = "s";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = &sample_model;
    return make(ctx, &spec);
}

typedef struct row {
    const char *name, *text;
    double value;      // of the first element
    const char* error; // part of the message; NULL: it is accepted
} row;

static const row rows[] = {
    {"m", "2.5", 2.5, NULL},
    {"m", "  2.5\t", 2.5, NULL},
    {"m", "+2.5", 2.5, NULL},
    {"m", "100 g", 0.1, NULL},
    {"m", "100g", 0.1, NULL},
    {"m", "1e3 g", 1, NULL},
    {"m", "3 kg", 3, NULL},
    {"m", "0.1 kg", 0.1, NULL},
    {"m", "5 s", 0, "'s' cannot be converted into its unit 'kg'"},
    {"m", "5 bananas", 0, "unknown unit 'bananas'"},
    {"m", "abc", 0, "expected a number in kg"},
    {"m", "", 0, "expected a number in kg"},
    {"m", "nan", 0, "expected a number"},
    {"m", "1 2", 0, "'1 2'"},
    {"gain", "-7e-3", -7e-3, NULL},
    {"gain", "3 kg", 0, "it has no unit of measure"},
    {"temperature", "20 degC", 293.15, NULL},
    {"temperature", "0 K", 0, NULL},
    {"pressures", "4 5 6", 4, NULL},
    {"pressures", "4", 4, NULL},
    {"pressures", "4 bar", 4, NULL},
    {"pressures", "100000 Pa 2 bar 3 bar", 1, NULL},
    {"pressures", "\"100000 Pa\" \"2 bar\" \"3 bar\"", 1, NULL},
    {"pressures", "1 2", 0, "2 values were given, expected 3, or one for all"},
    {"pressures", "1 2 3 4", 0, "4 values were given, expected 3"},
    {"pressures", "1 2 3 bar", 0, "1 of 3 elements have a unit"},
    {"pressures", "1 x 3", 0, "2 values were given"},
    {"pressures", "1 x 2 x 3 x", 0, "unknown unit 'x'"},
    {"small", "-128", -128, NULL},
    {"small", "127", 127, NULL},
    {"small", "128", 0, "expected a whole number from -128 to 127 (Int8)"},
    {"small", "-129", 0, "-128 to 127"},
    {"small", "1.5", 0, "expected a whole number"},
    {"small", "", 0, "expected a whole number"},
    {"large", "7", 7, NULL},
    {"large", "-1", 0, "from 0 to 18446744073709551615"},
    {"flag", "true", 1, NULL},
    {"flag", "false", 0, NULL},
    {"flag", "1", 1, NULL},
    {"flag", "0", 0, NULL},
    {"flag", "maybe", 0, "expected true, false, 1 or 0"},
    {"colour", "blue", 3, NULL},
    {"colour", "1", 1, NULL},
    {"colour", "4", 0, "expected one of red, green, blue"},
    {"colour", "pink", 0, "expected one of red, green, blue"},
    {"u", "1.25", 1.25, NULL},
    {"x", "4", 4, NULL}, // an output whose start value is exact
    {"y", "4", 0, "'y' is a calculated output and cannot be set"},
};

static void every_row_of_the_table_is_read_or_refused_with_a_reason(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row* r = &rows[i];
        crd_unit* u = sample_unit(ctx);
        const int32_t v = u->ops->find(u, r->name);
        const crd_status st = crd_unit_set_text(u, v, r->text, (crd_place){"sys.yaml", 7});
        if (r->error) {
            if (st != CRD_E_RANGE) { fail_msg("%s = '%s' was accepted", r->name, r->text); }
            check_contains(crd_error_text(u->ctx), "sys.yaml:7: unit 's': ");
            check_contains(crd_error_text(u->ctx), r->error);
        } else {
            if (st != CRD_OK) { fail_msg("'%s': %s", r->text, crd_error_text(u->ctx)); }
            const double got = get_one(u, r->name);
            if (got != r->value) {
                fail_msg("%s = '%s' is %.17g, expected %.17g", r->name, r->text, got, r->value);
            }
        }
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void the_largest_unsigned_number_passes_by_its_bits(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit* u = sample_unit(ctx);
    check_ok(crd_unit_set_text(u, u->ops->find(u, "large"), "18446744073709551615", NO_PLACE));
    bound x = bind_names(u, "large");
    get(&x);
    check_int(x.v.integer[0], -1);
    unbind(&x);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void texts_stay_as_they_are_and_binaries_are_hexadecimal(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit* u = sample_unit(ctx);
    bound x = bind_names(u, "text texts blob");
    get(&x);
    check_text((const char*)x.v.bytes[0].data, "hello");
    check_int(x.v.bytes[3].length, 2);
    check_ok(crd_unit_set_text(u, u->ops->find(u, "text"), " a \"b\" ", NO_PLACE));
    check_ok(crd_unit_set_text(u, u->ops->find(u, "texts"), "one \"two \\\"words\\\"\"", NO_PLACE));
    check_ok(crd_unit_set_text(u, u->ops->find(u, "blob"), "00fFa1", NO_PLACE));
    get(&x);
    check_text((const char*)x.v.bytes[0].data, " a \"b\" ");
    check_text((const char*)x.v.bytes[1].data, "one");
    check_text((const char*)x.v.bytes[2].data, "two \"words\"");
    check_int(x.v.bytes[3].length, 3);
    check(memcmp(x.v.bytes[3].data, "\x00\xff\xa1", 4) == 0); // and the final zero
    const int32_t blob = u->ops->find(u, "blob"), text = u->ops->find(u, "text");
    check_status(crd_unit_set_text(u, blob, "0", NO_PLACE), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "pairs of hexadecimal digits");
    check_status(crd_unit_set_text(u, blob, "0g", NO_PLACE), CRD_E_RANGE);
    check_status(crd_unit_set_text(u, blob, "000102030405060708", NO_PLACE), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "room for 8 bytes, not for 9");
    check_status(crd_unit_set_text(u, text, "0123456789abcdef", NO_PLACE), CRD_E_RANGE);
    check_ok(crd_unit_set_text(u, blob, "", NO_PLACE));
    get(&x);
    check_int(x.v.bytes[3].length, 0);
    unbind(&x);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_value_outside_of_the_limits_is_set_with_a_warning(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    crd_unit* u = sample_unit(ctx);
    check_ok(crd_unit_set_text(u, u->ops->find(u, "m"), "11", (crd_place){"sys.yaml", 3}));
    check_text(log.text, "sys.yaml:3: unit 's': 'm' = 11 is outside of its limits 0 to 10\n");
    check_near(get_one(u, "m"), 11, 0);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void hostile_texts_end_in_a_message(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit* u = sample_unit(ctx);
    const size_t n = 200000;
    char* text = malloc(n + 1);
    const char* const fillings[] = {"1", "e", "\"", "\\", " ", "1 ", "g", "-", "%s"};
    for (size_t f = 0; f < sizeof fillings / sizeof *fillings; f++) {
        for (size_t i = 0; i < n; i++) {
            text[i] = fillings[f][i % strlen(fillings[f])];
        }
        text[n] = 0;
        for (int32_t v = 0; v < u->info.variable_count; v++) {
            (void)crd_unit_set_text(u, v, text, NO_PLACE);
        }
    }
    free(text);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_is_read_or_refused_with_a_reason),
        cmocka_unit_test(the_largest_unsigned_number_passes_by_its_bits),
        cmocka_unit_test(texts_stay_as_they_are_and_binaries_are_hexadecimal),
        cmocka_unit_test(a_value_outside_of_the_limits_is_set_with_a_warning),
        cmocka_unit_test(hostile_texts_end_in_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
