// The unit interface over a native model: creation, bindings, names, dependencies.
#include <stdio.h>

#include "unit_test.h"

#include "sample_model.h"

static crd_unit_spec sample_spec(const crd_setting* settings, int count)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "s";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = &sample_model;
    spec.parameters = settings;
    spec.parameter_count = count;
    spec.place = (crd_place){"sys.yaml", 2};
    return spec;
}

static void a_binding_is_sorted_by_type_without_gaps(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = sample_spec(NULL, 0);
    crd_unit* u = make(ctx, &spec);
    bound x = bind_names(u, "text y flag pressures small u texts m y");
    const char* const order[] = {"y", "pressures", "u", "m", "y", "small", "flag", "text", "texts"};
    const int32_t offsets[] = {0, 1, 4, 5, 6, 0, 1, 0, 1};
    check_int(x.b->count, 9);
    for (int i = 0; i < 9; i++) {
        check_text(u->info.variables[x.b->variables[i]].name, order[i]);
        check_int(x.b->offsets[i], offsets[i]);
    }
    check_int(x.b->real_count, 7);
    check_int(x.b->integer_count, 2);
    check_int(x.b->bytes_count, 3);
    unbind(&x);
    bound empty = bind_variables(u, NULL, 0);
    get(&empty);
    set(&empty);
    unbind(&empty);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void bytes_grow_and_keep_their_final_zero(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_bytes b = {0};
    check_ok(crd_bytes_set(ctx, &b, "", 0));
    check_int(b.data[0], 0);
    check_ok(crd_bytes_set(ctx, &b, "0123456789", 10));
    check_text((const char*)b.data, "0123456789");
    check(b.capacity > 10);
    a.fail_at = 0;
    char longer[1000] = {0};
    check_status(crd_bytes_set(ctx, &b, longer, sizeof longer), CRD_E_MEMORY);
    check_text((const char*)b.data, "0123456789");
    check_ok(crd_bytes_set(ctx, &b, b.data + 4, 3)); // from itself
    check_text((const char*)b.data, "456");
    crd_free(ctx, b.data);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void names_and_elements_are_found_or_the_nearest_is_named(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = sample_spec(NULL, 0);
    crd_unit* u = make(ctx, &spec);
    int32_t v = -1, e = -1;
    check_ok(crd_unit_resolve(u, ctx, "gain", &v, &e));
    check_text(u->info.variables[v].name, "gain");
    check_int(e, -1);
    check_ok(crd_unit_resolve(u, ctx, "pressures[3]", &v, &e));
    check_text(u->info.variables[v].name, "pressures");
    check_int(e, 2);
    check_status(crd_unit_resolve(u, ctx, "gian", &v, &e), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "'s' has no variable 'gian', did you mean 'gain'?");
    check_status(crd_unit_resolve(u, ctx, "pressure[1]", &v, &e), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "'pressures'");
    check_status(crd_unit_resolve(u, ctx, "pressures[0]", &v, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "index 0, expected 1 to 3");
    check_status(crd_unit_resolve(u, ctx, "pressures[4]", &v, &e), CRD_E_RANGE);
    check_status(crd_unit_resolve(u, ctx, "pressures[1,2]", &v, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "2 indices");
    check_status(crd_unit_resolve(u, ctx, "pressures[]", &v, &e), CRD_E_RANGE);
    check_status(crd_unit_resolve(u, ctx, "pressures[a]", &v, &e), CRD_E_RANGE);
    check_status(crd_unit_resolve(u, ctx, "gain[1]", &v, &e), CRD_E_RANGE);
    check_status(crd_unit_resolve(u, ctx, "[1]", &v, &e), CRD_E_NOT_FOUND);
    check_status(crd_unit_resolve(u, ctx, "", &v, &e), CRD_E_NOT_FOUND);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void dependencies_follow_the_table(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = sample_spec(NULL, 0);
    crd_unit* u = make(ctx, &spec);
    const int32_t in = u->ops->find(u, "u"), y = u->ops->find(u, "y"), x = u->ops->find(u, "x");
    check(crd_unit_depends(u, y, in, false));
    check(crd_unit_depends(u, y, in, true));
    check(!crd_unit_depends(u, x, in, false));
    check(!crd_unit_depends(u, u->ops->find(u, "gain"), in, false));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void the_last_setting_wins_and_elements_keep_the_others(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {
        {"gain", "5", {"sys.yaml", 3}},           {"pressures[2]", "20", {"sys.yaml", 4}},
        {"colour", "blue", {"sys.yaml", 5}},      {"gain", "6", {"--set", 0}},
        {"pressures[3]", "1e6 Pa", {"--set", 0}},
    };
    const crd_unit_spec spec = sample_spec(settings, 5);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound x = bind_names(u, "pressures gain colour");
    get(&x);
    check_near(x.v.real[0], 1, 0);
    check_near(x.v.real[1], 20, 0);
    check_near(x.v.real[2], 10, 1e-14);
    check_near(x.v.real[3], 6, 0);
    check_int(x.v.integer[0], 3);
    unbind(&x);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void wrong_settings_are_refused_with_place_and_unit(void** state)
{
    (void)state;
    static const struct {
        crd_setting setting;
        crd_status status;
        const char *start, *part;
    } cases[] = {
        {{"gian", "1", {"sys.yaml", 9}}, CRD_E_NOT_FOUND, "sys.yaml:9: unit 's': ", "'gain'"},
        {{"gain", "x", {"sys.yaml", 9}}, CRD_E_RANGE, "sys.yaml:9: unit 's': ", "a number"},
        {{"y", "1", {"--set", 0}},
         CRD_E_RANGE,
         "--set: unit 's': ",
         "parameters and inputs are u, x, m, gain, pressures, temperature, ..."},
        {{"pressures[4]", "1", {"", 0}}, CRD_E_RANGE, "unit 's': ", "expected 1 to 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const crd_unit_spec spec = sample_spec(&cases[i].setting, 1);
        crd_unit* u = NULL;
        check_status(crd_unit_create(ctx, &spec, &u), cases[i].status);
        check(!u);
        check(strncmp(crd_error_text(ctx), cases[i].start, strlen(cases[i].start)) == 0);
        check_contains(crd_error_text(ctx), cases[i].part);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
}

static void a_setting_that_the_unit_refuses_is_named(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting setting = {"text", "longer than its room", {"sys.yaml", 4}};
    const crd_unit_spec spec = sample_spec(&setting, 1);
    crd_unit* u = make(ctx, &spec);
    check_status(crd_unit_instantiate(u), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "setting 'text' (sys.yaml:4): 'text' has room for 15");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// One setting with a way of its own: the value that the variable gets, or a part of the message.
typedef struct passage {
    const char *variable, *text;
    crd_transformation via;
    double value; // of the first element
    const char* error;
} passage;

static void check_passages(const passage* rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const passage* p = &rows[i];
        crd_context* ctx = crd_context_create(NULL);
        const crd_setting setting = {
            .variable = p->variable, .text = p->text, .place = {"set.ssv", 4}, .via = &p->via};
        const crd_unit_spec spec = sample_spec(&setting, 1);
        crd_unit* u = NULL;
        const crd_status st = crd_unit_create(ctx, &spec, &u);
        if (p->error) {
            check_status(st, CRD_E_RANGE);
            check_contains(crd_error_text(ctx), "set.ssv:4: unit 's': ");
            check_contains(crd_error_text(ctx), p->error);
        } else {
            if (st < 0) { fail_msg("row %zu: %s", i, crd_error_text(ctx)); }
            start(u, 0, 1);
            const int32_t v = u->ops->find(u, p->variable);
            bound x = bind_variables(u, &v, 1);
            get(&x);
            const double y = x.b->real_count ? x.v.real[0] : (double)x.v.integer[0];
            if (!(fabs(y - p->value) <= 1e-12 * fmax(1, fabs(y)))) {
                fail_msg("row %zu: '%s' = %.17g, expected %.17g", i, p->variable, y, p->value);
            }
            unbind(&x);
            crd_unit_destroy(u);
        }
        crd_context_destroy(ctx);
    }
}

static void a_setting_may_be_in_a_unit_of_its_own_and_transformed(void** state)
{
    (void)state;
    static const crd_dimension pound = {.kg = 1, .factor = 0.45359237};
    static const passage rows[] = {
        {"m", "2", {.unit = "lb", .dimension = &pound, .convert_units = true}, 0.90718474, NULL},
        {"m", "2500", {.unit = "g", .convert_units = true}, 2.5, NULL},
        {"m", "2.5", {.unit = "kg", .convert_units = true}, 2.5, NULL},
        {"m",
         "2500",
         {.unit = "g", .convert_units = true, .gain = 2, .offset = 1, .has_transformation = true},
         6,
         NULL},
        {"m", "3", {.unit = "g", .convert_units = false}, 3, NULL},
        {"m", "3", {.unit = "stones", .convert_units = true}, 3, NULL}, // nobody knows them
        {"m", "100 g", {.unit = "kg", .convert_units = true}, 0.1, NULL},
        {"m",
         "3",
         {.unit = "s", .convert_units = true},
         0,
         "'s' cannot be converted into its unit 'kg'"},
        {"gain", "3", {.unit = "s", .convert_units = true}, 3, NULL}, // it has no unit itself
        {"temperature", "20", {.unit = "degC", .convert_units = true}, 293.15, NULL},
        {"pressures", "1e5 2e5 3e5", {.unit = "Pa", .convert_units = true}, 1, NULL},
        {"small", "3", {.gain = 2, .offset = 1, .has_transformation = true}, 7, NULL},
        {"small", "1.5", {.gain = 2, .has_transformation = true}, 3, NULL},
        {"small",
         "100",
         {.gain = 2, .has_transformation = true},
         0,
         "becomes 200, expected a whole number from -128 to 127"},
        {"small",
         "1",
         {.gain = 0.5, .has_transformation = true},
         0,
         "becomes 0.5, expected a whole"},
        {"small", "x", {.gain = 2, .has_transformation = true}, 0, "expected a number"},
        {"large", "1e15", {.gain = 4, .has_transformation = true}, 4e15, NULL},
        {"flag",
         "true",
         {.gain = 2, .has_transformation = true},
         0,
         "gain and offset make no sense, it is Boolean"},
        {"text", "a", {.gain = 2, .has_transformation = true}, 0, "it is String"},
    };
    check_passages(rows, sizeof rows / sizeof *rows);
}

static void a_setting_may_pass_a_map(void** state)
{
    (void)state;
    static const crd_map_entry colours[] = {{"rot", "red"}, {"7", "blue"}};
    static const crd_map_entry invert[] = {{"true", "false"}, {"false", "true"}};
    static const crd_map_entry wrong[] = {{"rot", "pink"}};
    static const passage rows[] = {
        {"colour", "rot", {.map = colours, .map_count = 2}, 1, NULL},
        {"colour", "7", {.map = colours, .map_count = 2}, 3, NULL},
        {"colour", "green", {.map = colours, .map_count = 2}, 2, NULL}, // as it is
        {"colour", "gelb", {.map = colours, .map_count = 2}, 0, "expected one of red, green, blue"},
        {"colour", "rot", {.map = wrong, .map_count = 1}, 0, "'pink', expected one of red"},
        {"flag", "true", {.map = invert, .map_count = 2}, 0, NULL},
        {"flag", "0", {.map = invert, .map_count = 2}, 1, NULL},
        {"gain",
         "3",
         {.map = colours, .map_count = 2},
         0,
         "a map is for Booleans, integers and enumerations, and it is Float64"},
    };
    check_passages(rows, sizeof rows / sizeof *rows);
}

static void an_optional_setting_without_a_variable_is_noted_and_ignored(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    const crd_setting settings[] = {
        {.variable = "nobody", .text = "1", .place = {"set.ssv", 7}, .optional = true},
        {.variable = "gain", .text = "4", .place = {"set.ssv", 8}, .optional = true},
        {.variable = "n2", .text = "1", .place = {"set.ssv", 9}, .optional = true},
        {.variable = "n3[2]", .text = "1", .place = {"set.ssv", 10}, .optional = true},
        {.variable = "n4", .text = "1", .place = {"set.ssv", 11}, .optional = true},
        {.variable = "n5", .text = "1", .place = {"set.ssv", 12}, .optional = true},
    };
    const crd_unit_spec spec = sample_spec(settings, 6);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    check_near(get_one(u, "gain"), 4, 0);
    check_contains(log.text,
                   "set.ssv:7: parameter 'nobody' fits no variable of unit 's' and is ignored\n");
    check_contains(log.text, "set.ssv:10: parameter 'n3[2]' fits no variable");
    check(!strstr(log.text, "n4"));
    check_contains(log.text, "unit 's': 2 more parameters fit no variable and are ignored\n");
    crd_unit_destroy(u);
    // What fits has to be right.
    const crd_setting wrong = {
        .variable = "gain", .text = "x", .place = {"set.ssv", 8}, .optional = true};
    const crd_unit_spec bad = sample_spec(&wrong, 1);
    check_status(crd_unit_create(ctx, &bad, &u), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "set.ssv:8: unit 's': 'gain' = 'x', expected a number");
    crd_context_destroy(ctx);
}

static void settings_are_told_beside_the_start_values(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const struct {
        crd_setting setting;
        bool differs;
        const char *value, *start;
    } rows[] = {
        {{"gain", "5"}, true, "5", "3"},
        {{"m", "1000 g"}, false, "1", "1"},
        {{"m", "0.1"}, true, "0.1", "1"},
        {{"pressures[2]", "20"}, true, "1 20 3", "1 2 3"},
        {{"pressures", "1 2 3"}, false, "1 2 3", "1 2 3"},
        {{"flag", "false"}, true, "false", "true"},
        {{"flag", "1"}, false, "true", "true"},
        {{"colour", "blue"}, true, "blue", "green"},
        {{"colour", "2"}, false, "green", "green"},
        {{"small", "-6"}, true, "-6", "-5"},
        {{"large", "18446744073709551615"}, true, "18446744073709551615", "5"},
        {{"text", "bye"}, true, "bye", "hello"},
        {{"text", "hello"}, false, "hello", "hello"},
        {{"texts", "a \"b c\""}, true, "\"a\" \"b c\"", "\"a\" \"a\""},
        {{"blob", "00ff01"}, true, "00ff01", "00ff"},
        {{"blob", "00FF"}, false, "00ff", "00ff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crd_unit_spec spec = sample_spec(&rows[i].setting, 1);
        crd_unit* u = make(ctx, &spec);
        check_int(crd_unit_setting_count(u), 1);
        int32_t variable = -1;
        bool differs = false;
        crd_text value, first;
        crd_text_init(&value, ctx);
        crd_text_init(&first, ctx);
        check_ok(crd_unit_describe_setting(u, 0, &variable, &differs, &value, &first));
        check_text(value.data, rows[i].value);
        check(first.data != NULL);
        check_text(first.data, rows[i].start);
        check_int(differs, rows[i].differs);
        crd_text_clear(&value);
        crd_text_clear(&first);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void lack_of_memory_is_survived_with_all_kinds_of_settings(void** state)
{
    (void)state;
    static const crd_map_entry colours[] = {{"rot", "red"}};
    static const crd_transformation map = {.map = colours, .map_count = 1};
    static const crd_transformation gram = {.unit = "g", .convert_units = true};
    static const crd_setting settings[] = {
        {.variable = "m", .text = "500", .via = &gram},
        {.variable = "colour", .text = "rot", .via = &map},
        {.variable = "nobody", .text = "1", .optional = true},
        {.variable = "nobody[2]", .text = "1", .optional = true},
        {.variable = "pressures", .text = "1 2 3"},
    };
    const crd_unit_spec spec = sample_spec(settings, 5);
    check_survives_lack_of_memory(&spec);
}

static void destroying_nothing_is_fine(void** state)
{
    (void)state;
    crd_unit_destroy(NULL);
    crd_binding_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_binding_is_sorted_by_type_without_gaps),
        cmocka_unit_test(bytes_grow_and_keep_their_final_zero),
        cmocka_unit_test(names_and_elements_are_found_or_the_nearest_is_named),
        cmocka_unit_test(dependencies_follow_the_table),
        cmocka_unit_test(the_last_setting_wins_and_elements_keep_the_others),
        cmocka_unit_test(wrong_settings_are_refused_with_place_and_unit),
        cmocka_unit_test(a_setting_that_the_unit_refuses_is_named),
        cmocka_unit_test(a_setting_may_be_in_a_unit_of_its_own_and_transformed),
        cmocka_unit_test(a_setting_may_pass_a_map),
        cmocka_unit_test(an_optional_setting_without_a_variable_is_noted_and_ignored),
        cmocka_unit_test(settings_are_told_beside_the_start_values),
        cmocka_unit_test(lack_of_memory_is_survived_with_all_kinds_of_settings),
        cmocka_unit_test(destroying_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
