// Models in C as units.
#include <stdio.h>

#include "unit_test.h"

#include "sample_model.h"

extern const crd_model crd_model_events, crd_model_types, crd_model_rot_mono;
extern const crd_model crd_model_pwm_lag, crd_model_driven_oscillator, crd_model_faulty_me;

static crd_unit_spec native_spec(const crd_model* model)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "n";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = model;
    return spec;
}

static void polynomial_inputs_are_integrated_exactly(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = native_spec(&sample_model);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound in = bind_names(u, "u"), out = bind_names(u, "y x");
    // u = 1 + 2 t + 3 t^2, so that x = 2 + t + t^2 + t^3
    double t = 0;
    const double h = 0.25;
    for (int n = 0; n < 4; n++, t = n * h) {
        in.v.real[0] = 1 + 2 * t + 3 * t * t;
        const double d1 = 2 + 6 * t, d2 = 6;
        const double* const d[] = {&d1, &d2};
        set(&in);
        check_ok(u->ops->derivatives->set(u, in.b, d, 2));
        step(u, t, h);
        get(&out);
        const double e = t + h;
        check_near(out.v.real[1], 2 + e + e * e + e * e * e, 1e-14);
        // the input has moved along its polynomial
        check_near(out.v.real[0], 3 * out.v.real[1] + 1 + 2 * e + 3 * e * e, 1e-13);
    }
    double d = 0;
    bound y = bind_names(u, "y");
    check_ok(u->ops->derivatives->get(u, y.b, 1, &d));
    check_near(d, 3 * 6 + 8, 1e-13);
    check_ok(u->ops->derivatives->get(u, y.b, 2, &d));
    check_near(d, 3 * 8 + 6, 1e-13);
    unbind(&y);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void outputs_follow_inputs_between_steps_and_during_initialisation(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = native_spec(&sample_model);
    crd_unit* u = make(ctx, &spec);
    check_ok(crd_unit_instantiate(u));
    const crd_experiment e = {.start = 0};
    check_ok(u->ops->enter_initialization(u, &e));
    set_one(u, "u", 4);
    check_near(get_one(u, "y"), 10, 0);
    set_one(u, "u", 5);
    check_near(get_one(u, "y"), 11, 0);
    check_ok(u->ops->exit_initialization(u));
    set_one(u, "u", 6);
    check_near(get_one(u, "y"), 12, 0);
    const int32_t unknown = 1, knowns[] = {0, 4};
    const double seed[] = {10, 1};
    double result = 0;
    check_ok(u->ops->derivatives->directional(u, &unknown, 1, knowns, 2, seed, &result));
    check_near(result, 12, 0); // 1 * 10 + x * 1
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void failures_and_wishes_of_a_model_reach_the_caller(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"stop_at", "0.2", NO_PLACE}, {"fail_at", "0.35", NO_PLACE}};
    crd_unit_spec spec = native_spec(&sample_model);
    spec.parameters = settings;
    spec.parameter_count = 2;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.1);
    check(!u->wants_stop);
    step(u, 0.1, 0.1);
    check(u->wants_stop);
    step(u, 0.2, 0.1);
    check_status(u->ops->step(u, 0.3, 0.1), CRD_E_UNIT);
    check_text(crd_error_text(u->ctx), "step at 0.3 failed: it was asked to fail");
    check_text(crdi_unit_last_call(u), "step");
    crd_unit_destroy(u);
    const crd_setting bad = {"m", "-1", NO_PLACE};
    spec.parameters = &bad;
    spec.parameter_count = 1;
    u = make(ctx, &spec);
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &(crd_experiment){0}));
    check_status(u->ops->exit_initialization(u), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "initialize at 0 failed");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static crd_model_status said; // by the model below

static crd_model_status say(void* self, const crd_model_host* host, double t)
{
    (void)self, (void)host, (void)t;
    return said;
}

static void a_model_starts_unless_it_discards_or_fails(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_model model = sample_model;
    model.initialize = say;
    const crd_unit_spec spec = native_spec(&model);
    for (said = CRD_MODEL_OK; said <= CRD_MODEL_FATAL; said++) {
        crd_unit* u = make(ctx, &spec);
        check_ok(crd_unit_instantiate(u));
        check_ok(u->ops->enter_initialization(u, &(crd_experiment){0}));
        check_status(u->ops->exit_initialization(u),
                     said < CRD_MODEL_DISCARD ? CRD_OK : CRD_E_UNIT);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static crd_model_status say_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    (void)h, (void)reached;
    return say(self, host, t);
}

// Models are what programs give, too: a binding that leaves a status unset, say.
static void what_is_no_status_of_a_step_is_a_failure(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_model model = sample_model;
    model.step = say_step;
    model.has_events = false;
    model.event = NULL;
    const crd_unit_spec spec = native_spec(&model);
    const int answers[] = {CRD_MODEL_EVENT, 77, -1};
    for (int i = 0; i < 3; i++) {
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        memcpy(&said, &answers[i], sizeof said);
        check_status(u->ops->step(u, 0, 0.1), CRD_E_UNIT);
        check_contains(crd_error_text(u->ctx), i ? "no status" : "of which the model has none");
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_bouncing_ball_goes_through_its_events(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = native_spec(&crd_model_events);
    crd_unit* u = make(ctx, &spec);
    check(u->info.flags & CRD_UNIT_HAS_EVENTS);
    start(u, 0, 3);
    // dropped from 1 m: impact at sqrt(2/g); the k-th flight lasts 2 e^k sqrt(2/g)
    const double g = 9.81, e = 0.7, fall = sqrt(2 / g), h = 0.1;
    for (int n = 0; n < 20; n++) {
        step(u, n * h, h);
        const double t = n * h + h;
        double left = t - fall, flight = 2 * e * fall, v = e * g * fall;
        int bounces = left > 0;
        double height = 1 - g / 2 * t * t;
        if (left > 0) {
            while (left > flight) {
                left -= flight;
                flight *= e;
                v *= e;
                bounces++;
            }
            height = left * (v - g / 2 * left);
        }
        check_near(get_one(u, "height"), height, 1e-12);
        check_int(get_one(u, "bounces"), bounces);
    }
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void every_type_passes_through(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = native_spec(&crd_model_types);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    const char* const names[] = {"f64", "f32", "i8", "u8", "i16", "u16",  "i32",  "u32", "i64",
                                 "u64", "b",   "e",  "s",  "bin", "f64s", "i32s", "bs",  "ss"};
    const char* const texts[] = {"1.5",
                                 "-0.5",
                                 "-128",
                                 "255",
                                 "-32768",
                                 "65535",
                                 "-2147483648",
                                 "4294967295",
                                 "-9223372036854775808",
                                 "18446744073709551615",
                                 "0",
                                 "blue",
                                 "text",
                                 "0011ff",
                                 "1 2 3",
                                 "4 5 6",
                                 "0 1 0",
                                 "a b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char in[32], out[32];
        snprintf(in, sizeof in, "in_%s", names[i]);
        snprintf(out, sizeof out, "out_%s", names[i]);
        check_ok(crd_unit_set_text(u, u->ops->find(u, in), texts[i], NO_PLACE));
        bound a = bind_names(u, in), b = bind_names(u, out);
        get(&a);
        get(&b);
        for (int32_t k = 0; k < a.b->real_count; k++) {
            check_near(b.v.real[k], a.v.real[k], 0);
        }
        for (int32_t k = 0; k < a.b->integer_count; k++) {
            check_int(b.v.integer[k], a.v.integer[k]);
        }
        for (int32_t k = 0; k < a.b->bytes_count; k++) {
            check_int(b.v.bytes[k].length, a.v.bytes[k].length);
            check(memcmp(b.v.bytes[k].data, a.v.bytes[k].data, a.v.bytes[k].length) == 0);
        }
        unbind(&a);
        unbind(&b);
    }
    // what does not fit is refused
    bound x = bind_names(u, "in_i8");
    x.v.integer[0] = 128;
    check_status(u->ops->set(u, x.b, &x.v), CRD_E_RANGE);
    unbind(&x);
    x = bind_names(u, "in_e");
    x.v.integer[0] = 4;
    check_status(u->ops->set(u, x.b, &x.v), CRD_E_RANGE);
    unbind(&x);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_restored_state_repeats_the_bits(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = native_spec(&crd_model_rot_mono);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 50);
    bound out = bind_names(u, "tau omega1 phi2");
    for (int n = 0; n < 10; n++) {
        step(u, n * 0.1, 0.1);
    }
    void* saved = NULL;
    check_ok(u->ops->state->save(u, &saved));
    double first[3];
    for (int round = 0; round < 2; round++) {
        for (int n = 10; n < 20; n++) {
            step(u, n * 0.1, 0.1);
        }
        get(&out);
        if (round == 0) { memcpy(first, out.v.real, sizeof first); }
        check(memcmp(first, out.v.real, sizeof first) == 0);
        check_ok(u->ops->state->restore(u, saved));
    }
    check_ok(u->ops->state->save(u, &saved)); // used again
    u->ops->state->free(u, &saved);
    check(!saved);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = native_spec(&crd_model_types);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1e9);
    bound in = bind_names(u, "in_e");
    unbind(&in);
    check_steps_do_not_allocate(&a, u, "in_f64 in_i8 in_f32 in_s in_bin",
                                "out_f64 out_i8 out_f32 out_s out_bin", 0.01);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_is_survived(void** state)
{
    (void)state;
    const crd_setting settings[] = {{"pressures[2]", "20", NO_PLACE}, {"text", "abc", NO_PLACE}};
    crd_unit_spec spec = native_spec(&sample_model);
    spec.parameters = settings;
    spec.parameter_count = 2;
    check_survives_lack_of_memory(&spec);
}

static void a_fixed_step_is_the_only_one(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_model model = sample_model;
    model.fixed_step = true;
    const crd_unit_spec spec = native_spec(&model);
    crd_unit* u = make(ctx, &spec);
    check_near(u->info.fixed_step, 0.1, 0);
    check(!(u->info.flags & CRD_UNIT_CAN_VARY_STEP));
    start(u, 0, 1);
    step(u, 0, 0.1);
    check_status(u->ops->step(u, 0.1, 0.05), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "only 0.1 is possible");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static double pulses(double t) // y of pwm_lag: period 0.1, duty 0.3, T 0.05
{
    double y = 0, from = 0, u = 1;
    for (int edge = 1;; edge++) {
        const double next = edge / 2 * 0.1 + (edge % 2 ? 0.03 : 0);
        y = u + (y - u) * exp(-(fmin(next, t) - from) / 0.05);
        if (next >= t - 1e-9) { return y; }
        from = next;
        u = edge % 2 ? 0 : 1;
    }
}

static void an_equation_without_a_step_is_solved_through_its_time_events(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = native_spec(&crd_model_pwm_lag);
    crd_unit* u = make(ctx, &spec);
    void* saved = NULL;
    start(u, 0, 1);
    for (int pass = 0; pass < 2; pass++) { // the next event is part of the state
        for (int n = pass ? 3 : 0; n < 10; n++) {
            step(u, n * 0.07, 0.07);
            check_near(get_one(u, "y"), pulses((n + 1) * 0.07), 1e-9);
            if (!pass && n == 2) { check_ok(u->ops->state->save(u, &saved)); }
        }
        check_ok(u->ops->state->restore(u, saved));
    }
    u->ops->state->free(u, &saved);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void an_equation_allocates_at_its_creation_alone(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit_spec spec = native_spec(&crd_model_driven_oscillator);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1e9);
    check_steps_do_not_allocate(&a, u, "u", "x v a", 0.01);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
    check_survives_lack_of_memory(&spec);
}

static void an_event_iteration_without_end_is_reported(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"mode", "5", NO_PLACE}};
    crd_unit_spec spec = native_spec(&crd_model_faulty_me);
    spec.parameters = settings;
    spec.parameter_count = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.4);
    check_status(u->ops->step(u, 0.4, 0.2), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "the event iteration at 0.5 does not end");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polynomial_inputs_are_integrated_exactly),
        cmocka_unit_test(outputs_follow_inputs_between_steps_and_during_initialisation),
        cmocka_unit_test(failures_and_wishes_of_a_model_reach_the_caller),
        cmocka_unit_test(what_is_no_status_of_a_step_is_a_failure),
        cmocka_unit_test(a_model_starts_unless_it_discards_or_fails),
        cmocka_unit_test(a_bouncing_ball_goes_through_its_events),
        cmocka_unit_test(every_type_passes_through),
        cmocka_unit_test(a_restored_state_repeats_the_bits),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
        cmocka_unit_test(a_fixed_step_is_the_only_one),
        cmocka_unit_test(an_equation_without_a_step_is_solved_through_its_time_events),
        cmocka_unit_test(an_equation_allocates_at_its_creation_alone),
        cmocka_unit_test(an_event_iteration_without_end_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
