// FMUs of FMI 1.0 as units: a slave that knows its own solution. Model Exchange has the tests of
// the other versions (test_me.c).
#include <math.h>
#include <stdio.h>

#include "unit/unit_test.h"

static crd_unit_spec slave_spec(void)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "s";
    spec.source = CRD_UNIT_FMU;
    spec.path = TEST_BUILD_DIR "/unit_fmu1/slave";
    spec.place = (crd_place){"sys.yaml", 4};
    return spec;
}

static crd_unit* slave(crd_context* ctx, crd_unit_spec* spec)
{
    *spec = slave_spec();
    return make(ctx, spec);
}

static int64_t integer_of(crd_unit* u, const char* name)
{
    bound x = bind_names(u, name);
    get(&x);
    const int64_t y = x.v.integer[0];
    unbind(&x);
    return y;
}

static void set_integer_of(crd_unit* u, const char* name, int64_t value)
{
    bound x = bind_names(u, name);
    x.v.integer[0] = value;
    set(&x);
    unbind(&x);
}

static void a_unit_says_what_it_is(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec;
    crd_unit* u = slave(ctx, &spec);
    check_text(u->info.kind, "FMU 1.0");
    check_int(u->info.max_input_order, 2);
    check_int(u->info.max_output_order, 1);
    check_int(u->info.flags, CRD_UNIT_CAN_VARY_STEP);
    const int32_t x = u->ops->find(u, "x"), in = u->ops->find(u, "u"), y = u->ops->find(u, "y");
    check(!crd_unit_depends(u, x, in, true));
    check(crd_unit_depends(u, y, in, true));
    check(!crd_unit_depends(u, y, u->ops->find(u, "n"), true));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// x' = -2 x + 3 from x = 1: x = 1.5 - 0.5 exp(-2 t)
static void a_held_input_gives_the_closed_form(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int sign = -1; sign <= 1; sign += 2) {
        crd_unit_spec spec;
        crd_unit* u = slave(ctx, &spec);
        start(u, 0, 2);
        set_one(u, sign > 0 ? "u" : "minus_u", sign * 3.0);
        for (int n = 0; n < 20; n++) {
            step(u, 0.1 * n, 0.1);
            const double x = 1.5 - 0.5 * exp(-0.2 * (n + 1));
            check_near(get_one(u, "x"), x, 1e-13);
            check_near(get_one(u, "minus_x"), -x, 1e-13);
            check_near(get_one(u, "state"), x, 1e-13);
            check_near(get_one(u, "y"), 6, 1e-13);
            check_int(integer_of(u, "steps"), n + 1);
            check_int(integer_of(u, "minus_steps"), -n - 1);
        }
        check_ok(u->ops->terminate(u));
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// With u = t^2 the solution is x = 0.25 - t / 2 + t^2 / 2 + 0.75 exp(-2 t).
static void derivatives_of_inputs_and_outputs_are_exact(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int sign = -1; sign <= 1; sign += 2) {
        crd_unit_spec spec = slave_spec();
        crd_unit* u = make(ctx, &spec);
        u->input_order = 2;
        bound in = bind_names(u, sign > 0 ? "u" : "minus_u");
        bound out = bind_names(u, sign > 0 ? "x" : "minus_x");
        start(u, 0, 2);
        for (int n = 0; n < 10; n++) {
            const double t = 0.2 * n, e = t + 0.2;
            const double slope = sign * 2 * t, bend = sign * 2;
            in.v.real[0] = sign * t * t;
            set(&in);
            check_ok(u->ops->derivatives->set(u, in.b, (const double*[]){&slope, &bend}, 2));
            step(u, t, 0.2);
            get(&out);
            const double x = 0.25 - e / 2 + e * e / 2 + 0.75 * exp(-2 * e);
            check_near(out.v.real[0], sign * x, 1e-13);
            double d = 0;
            check_ok(u->ops->derivatives->get(u, out.b, 1, &d));
            check_near(d, sign * (-2 * x + e * e), 1e-12);
        }
        unbind(&in);
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void every_type_passes_and_negated_aliases_are_opposites(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec;
    crd_unit* u = slave(ctx, &spec);
    start(u, 0, 2);
    check_int(integer_of(u, "above"), 1); // its byte is -1
    check_int(integer_of(u, "below"), 0);
    check_int(integer_of(u, "on"), 0);
    check_int(integer_of(u, "off"), 1);
    set_integer_of(u, "off", 0);
    check_int(integer_of(u, "on"), 1);
    set_integer_of(u, "on", 0);
    check_int(integer_of(u, "off"), 1);
    set_integer_of(u, "n", -7);
    check_int(integer_of(u, "m"), -21);
    check_ok(crd_unit_set_text(u, u->ops->find(u, "word"), "hello", NO_PLACE));
    bound all = bind_names(u, "above x echo below minus_x m steps minus_steps y");
    get(&all);
    check_near(all.v.real[0], 1, 0);
    check_near(all.v.real[1], -1, 0);
    check_text((const char*)all.v.bytes[0].data, "hello");
    unbind(&all);
    for (int n = 0; n < 10; n++) { // u = 0: x decays below 0.5
        step(u, 0.1 * n, 0.1);
    }
    check_int(integer_of(u, "above"), 0);
    check_int(integer_of(u, "below"), 1);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// FMI 1.0 cannot be read before it is initialised, and the slave says so. A master reads inputs,
// sets inputs and reads outputs in any order.
static void the_first_value_that_is_read_initialises(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = slave_spec();
    spec.parameters =
        (crd_setting[]){{.variable = "u", .text = "0.5"}, {.variable = "state", .text = "4"}};
    spec.parameter_count = 2;
    crd_unit* u = make(ctx, &spec);
    const crd_experiment e = {.start = 1, .has_stop = true, .stop = 2};
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &e));
    bound in = bind_names(u, "u on n word minus_u");
    get(&in);
    check_near(in.v.real[0], 0.5, 0); // what was set
    check_near(in.v.real[1], 0, 0);
    check_int(in.v.integer[0], 5); // the start value
    check_int(in.v.integer[1], 0);
    check_text((const char*)in.v.bytes[0].data, "");
    unbind(&in);
    set_one(u, "u", 2);
    check_near(get_one(u, "y"), 4, 0);
    set_one(u, "u", 3);
    check_near(get_one(u, "y"), 6, 0);
    check_near(get_one(u, "u"), 3, 0);
    check_ok(u->ops->exit_initialization(u));
    step(u, 1, 0.5);
    check_near(get_one(u, "x"), 1.5 + 2.5 * exp(-1), 1e-13);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void messages_find_their_instance(void** state)
{
    (void)state;
    lines seen;
    crd_context* ctx = context_with_log(&seen);
    crd_unit* units[3];
    crd_unit_spec specs[3];
    static const char* const names[] = {"a", "b", "c"};
    for (int k = 0; k < 3; k++) {
        specs[k] = slave_spec();
        specs[k].name = names[k];
        specs[k].isolate = "none"; // for the name of the last call
        units[k] = make(ctx, &specs[k]);
        seen.used = 0;
        start(units[k], 0, 1);
        char want[64];
        snprintf(want, sizeof want, "%s: logStatusWarning: made from u", names[k]);
        check_contains(seen.text, want);
    }
    seen.used = 0;
    check_status(units[1]->ops->step(units[1], 0.5, 0.1), CRD_E_UNIT);
    check_contains(crd_error_text(units[1]->ctx),
                   "b: fmiDoStep at t = 0.5 returned Error; its last message: "
                   "step at 0.5 of 0.1, new 1");
    check_contains(seen.text, "b: logStatusError: step at 0.5");
    check_text(crdi_unit_last_call(units[1]), "fmiDoStep");
    for (int k = 0; k < 3; k++) {
        crd_unit_destroy(units[k]);
    }
    crd_context_destroy(ctx);
}

static void a_discarded_step_says_how_far_it_came(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec;
    crd_unit* u = slave(ctx, &spec);
    start(u, 0, 1);
    set_one(u, "u", 2e6);
    check_status(u->ops->step(u, 0, 0.4), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "from 0 to 0.4 was discarded, it came to 0.1");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void lack_of_memory_leaves_nothing_behind(void** state)
{
    (void)state;
    const crd_unit_spec spec = slave_spec();
    check_survives_lack_of_memory(&spec);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit_spec spec;
    crd_unit* u = slave(ctx, &spec);
    bound all = bind_names(u, "x minus_x steps above echo minus_u n on word");
    start(u, 0, 1e6);
    check_steps_do_not_allocate(&a, u, "minus_u on n", "x minus_x steps minus_steps above below",
                                0.01);
    unbind(&all);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_says_what_it_is),
        cmocka_unit_test(a_held_input_gives_the_closed_form),
        cmocka_unit_test(derivatives_of_inputs_and_outputs_are_exact),
        cmocka_unit_test(every_type_passes_and_negated_aliases_are_opposites),
        cmocka_unit_test(the_first_value_that_is_read_initialises),
        cmocka_unit_test(messages_find_their_instance),
        cmocka_unit_test(a_discarded_step_says_how_far_it_came),
        cmocka_unit_test(lack_of_memory_leaves_nothing_behind),
        cmocka_unit_test(steps_do_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
