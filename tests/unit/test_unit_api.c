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
    crdi_free(ctx, b.data);
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
        cmocka_unit_test(destroying_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
