// Schemes, grids, prediction, ends: against loops written out by hand.
#include "models.h"

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

// Two oscillating integrators: a' = b, b' = -a.
static crd_system* circle(crd_context* ctx, double step_a, double step_b, double step, double stop)
{
    crd_system* s = new_system(ctx, step, stop);
    const int a = add_unit(s, "a", &euler_model, step_a);
    const int b = add_unit(s, "b", &euler_model, step_b);
    set(s, a, "x", "1");
    set(s, b, "a", "-1");
    wire(s, b, "y", a, "u");
    wire(s, a, "y", b, "u");
    return s;
}

static void jacobi_gives_the_bits_of_the_loop_written_out(void** state)
{
    crd_system* s = circle(*state, 0, 0, 0.01, 5);
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    double a = 1, b = 0;
    for (int n = 0; n < 500; n++) {
        const double ua = b, ub = a;
        a += 0.01 * (1.0 * ua + 0.0 * a);
        b += 0.01 * (-1.0 * ub + 0.0 * b);
    }
    check(value(m, "a.y") == a);
    check(value(m, "b.y") == b);
    check_int(crd_master_ended(m), CRD_END_STOP_TIME);
    check_near(crd_master_time(m), 5, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void gauss_seidel_uses_what_is_fresh(void** state)
{
    crd_system* s = circle(*state, 0, 0, 0.01, 5);
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [b, a]", (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    double a = 1, b = 0;
    for (int n = 0; n < 500; n++) {
        b += 0.01 * (-1.0 * a + 0.0 * b);
        a += 0.01 * (1.0 * b + 0.0 * a);
    }
    check(value(m, "a.y") == a);
    check(value(m, "b.y") == b);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// Gauss-Seidel of p and a Jacobi pair (a, b), with r behind: p sees old values of a and b, a and b
// see the new p but the old value of each other, r sees everything new.
static void nested_groups_follow_their_tree(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int a = add_unit(s, "a", &euler_model, 0), b = add_unit(s, "b", &euler_model, 0);
    const int p = add_unit(s, "p", &euler_model, 0), r = add_unit(s, "r", &euler_model, 0);
    set(s, a, "x", "1");
    set(s, b, "x", "2");
    set(s, p, "x", "3");
    wire(s, a, "y", p, "u");
    wire(s, p, "y", a, "u");
    wire(s, a, "y", b, "u");
    wire(s, b, "y", r, "u");
    check_ok(
        crd_system_set_scheme(s, "gauss-seidel: [p, {jacobi: [a, b]}, r]", (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    double xa = 1, xb = 2, xp = 3, xr = 0;
    for (int n = 0; n < 10; n++) {
        xp += 0.1 * (1.0 * xa + 0.0 * xp);
        const double ub = xa;
        xa += 0.1 * (1.0 * xp + 0.0 * xa);
        xb += 0.1 * (1.0 * ub + 0.0 * xb);
        xr += 0.1 * (1.0 * xb + 0.0 * xr);
    }
    check(value(m, "a.y") == xa);
    check(value(m, "b.y") == xb);
    check(value(m, "p.y") == xp);
    check(value(m, "r.y") == xr);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// Jacobi of two Gauss-Seidel chains: the chains do not see each other's new values.
static void groups_inside_jacobi_see_the_old_values_of_each_other(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int a = add_unit(s, "a", &euler_model, 0), b = add_unit(s, "b", &euler_model, 0);
    const int c = add_unit(s, "c", &euler_model, 0), d = add_unit(s, "d", &euler_model, 0);
    set(s, a, "x", "1");
    set(s, c, "x", "2");
    wire(s, a, "y", b, "u");
    wire(s, b, "y", c, "u");
    wire(s, c, "y", d, "u");
    wire(s, d, "y", a, "u");
    check_ok(crd_system_set_scheme(s, "jacobi: [{gauss-seidel: [a, b]}, {gauss-seidel: [c, d]}]",
                                   (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    double xa = 1, xb = 0, xc = 2, xd = 0;
    for (int n = 0; n < 10; n++) {
        const double ua = xd, uc = xb;
        xa += 0.1 * (1.0 * ua + 0.0 * xa);
        xb += 0.1 * (1.0 * xa + 0.0 * xb);
        xc += 0.1 * (1.0 * uc + 0.0 * xc);
        xd += 0.1 * (1.0 * xc + 0.0 * xd);
    }
    check(value(m, "a.y") == xa);
    check(value(m, "b.y") == xb);
    check(value(m, "c.y") == xc);
    check(value(m, "d.y") == xd);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// a takes ten micro steps while b takes one; linear: the inputs of a follow the line through b's
// last two samples, the first macro step holds (Rodriguez 2021, sec. 5.2.4).
static void check_multirate(crd_context* ctx, crd_prediction predict)
{
    crd_system* s = circle(ctx, 0.01, 0, 0.1, 3);
    s->connections[0].predict = predict;
    s->connections[1].predict = predict;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    double a = 1, b = 0, before = 0;
    for (int n = 0; n < 30; n++) {
        const double ub = a;
        for (int j = 0; j < 10; j++) {
            const bool line = predict == CRD_PREDICTION_LINEAR && n > 0;
            const double u = line ? b + (b - before) * j / 10 : b;
            a += 0.01 * u;
        }
        before = b;
        b += 0.1 * -ub;
    }
    check_near(value(m, "a.y"), a, 1e-13);
    check_near(value(m, "b.y"), b, 1e-13);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void multirate_exchanges_when_a_unit_is_ready(void** state)
{
    check_multirate(*state, CRD_PREDICTION_HOLD);
    check_multirate(*state, CRD_PREDICTION_LINEAR);
}

// Chain of exact integrators behind sin-like states: the order of the coupling error in the macro
// step is 1, 2, 3 for hold, linear, quadratic.
static double circle_error(crd_context* ctx, double h, crd_prediction predict)
{
    crd_system* s = new_system(ctx, h, 1);
    const int a = add_unit(s, "a", &exact_model, 0), b = add_unit(s, "b", &exact_model, 0);
    set(s, a, "x", "1");
    wire(s, b, "y", a, "u")->predict = predict;
    crd_connection_spec* c = wire(s, a, "y", b, "u");
    c->predict = predict;
    c->gain = -1;
    c->has_transformation = true;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const double e = hypot(value(m, "a.y") - cos(1), value(m, "b.y") + sin(1));
    crd_master_destroy(m);
    crd_system_destroy(s);
    return e;
}

static void the_coupling_error_has_the_order_of_the_prediction_plus_one(void** state)
{
    for (int order = 0; order < 3; order++) {
        const crd_prediction predict = (crd_prediction)(CRD_PREDICTION_HOLD + order);
        const double coarse = circle_error(*state, 1.0 / 64, predict);
        const double fine = circle_error(*state, 1.0 / 128, predict);
        check_near(log2(coarse / fine), order + 1, 0.1);
    }
}

static void the_last_step_is_shorter_when_the_stop_is_off_the_grid(void** state)
{
    crd_system* s = new_system(*state, 0.3, 1);
    const int a = add_unit(s, "a", &euler_model, 0);
    set(s, a, "u", "1");
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_near(value(m, "a.y"), 1, 1e-15); // x' = 1 over 1 s
    check_int(crd_master_get_report(m)->steps, 4);
    check(crd_master_time(m) == 1.0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void ten_steps_of_a_tenth_are_ten(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    add_unit(s, "a", &euler_model, 0);
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_int(crd_master_get_report(m)->steps, 10);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void steps_on_one_grid_find_their_tick(void** state)
{
    crd_system* s = new_system(*state, 0.01, 0.06);
    add_unit(s, "a", &euler_model, 0.002);
    add_unit(s, "b", &euler_model, 0.003);
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_near(crd_master_get_report(m)->step, 0.001, 1e-15);
    check_int(crd_master_get_report(m)->units[0].steps, 30);
    check_int(crd_master_get_report(m)->units[1].steps, 20);
    crd_master_destroy(m);
    crd_system_destroy(s);

    s = new_system(*state, 0.01, 0.06);
    add_unit(s, "a", &euler_model, 0.01);
    add_unit(s, "b", &euler_model, 0.01 * 1.4142135623730951);
    check_status(crd_master_create(*state, s, NULL, &m), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "grid");
    crd_system_destroy(s);
}

static void check_refused(crd_context* ctx, double start, double stop, double step,
                          const char* fragment)
{
    crd_system* s = new_system(ctx, step, stop);
    s->run.start = start;
    add_unit(s, "a", &euler_model, 0);
    crd_master* m = NULL;
    check_status(crd_master_create(ctx, s, NULL, &m), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), fragment);
    crd_system_destroy(s);
}

static void times_that_make_no_sense_are_refused(void** state)
{
    check_refused(*state, 0, 1, 0, "step is 0");
    check_refused(*state, 0, 1, -0.1, "step is -0.1");
    check_refused(*state, 0, 1, INFINITY, "step is inf");
    check_refused(*state, 2, 1, 0.1, "stop must come after");
    check_refused(*state, 1, 1, 0.1, "stop must come after");
    check_refused(*state, INFINITY, 1, 0.1, "start time is inf");
}

// ---- ends --------------------------------------------------------------------------------------

static crd_master* with_clock(crd_context* ctx, const char* what, crd_system** out)
{
    crd_system* s = new_system(ctx, 0.1, 10);
    const int c = add_unit(s, "c", &clock_model, 0);
    const int a = add_unit(s, "a", &euler_model, 0);
    wire(s, c, "y", a, "u");
    set(s, c, "when", "0.45");
    set(s, c, "what", what);
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    *out = s;
    return m;
}

static void a_unit_may_end_the_run(void** state)
{
    crd_system* s = NULL;
    crd_master* m = with_clock(*state, "1", &s);
    check_run(crd_master_run(m), *state);
    check_int(crd_master_ended(m), CRD_END_UNIT);
    check_text(crd_master_get_report(m)->end_unit, "c");
    check_near(crd_master_time(m), 0.5, 1e-12);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_failing_unit_is_named_with_its_time(void** state)
{
    crd_system* s = NULL;
    crd_master* m = with_clock(*state, "2", &s);
    check_status(crd_master_run(m), CRD_E_UNIT);
    check_contains(crd_error_text(*state), "unit 'c'");
    check_contains(crd_error_text(*state), "0.4");
    check_int(crd_master_ended(m), CRD_END_FAILED);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void nan_on_a_connection_ends_the_run_at_its_source(void** state)
{
    crd_system* s = NULL;
    crd_master* m = with_clock(*state, "3", &s);
    check_status(crd_master_run(m), CRD_E_UNIT);
    check_contains(crd_error_text(*state), "unit 'c'");
    check_contains(crd_error_text(*state), "'y' is not a number");
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static crd_model_status picky_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)host;
    *reached = t + h;
    return isnan(((gain*)self)->u) ? CRD_MODEL_ERROR : CRD_MODEL_OK;
}

static void blip_outputs(void* self, double t)
{
    clock_unit* c = self;
    (void)t;
    c->y = c->t > 0.45 && c->t < 0.65 ? NAN : c->t;
}

static void nan_passes_where_it_is_allowed_and_no_longer_than_it_lasts(void** state)
{
    crd_model blip = clock_model;
    blip.outputs = blip_outputs;
    crd_system* s = new_system(*state, 0.1, 1);
    const int a = add_unit(s, "a", &blip, 0);
    const int b = add_unit(s, "b", &gain_model, 0);
    wire(s, a, "y", b, "u")->predict = CRD_PREDICTION_QUADRATIC; // would go on for two steps more
    s->units[a].allow_nan = s->units[b].allow_nan = true;
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_initialize(m), *state);
    for (int n = 1; n <= 10; n++) {
        check_run(crd_master_advance(m, 1), *state);
        check_int(isnan(value(m, "a.y")), n == 5 || n == 6);
        check_int(isnan(value(m, "b.y")), n == 6 || n == 7); // held: what was given a step before
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void infinite_outputs(void* self, double t)
{
    clock_unit* c = self;
    (void)t;
    c->y = c->t > 0.75 ? NAN : c->t > 0.45 ? -INFINITY : c->t;
}

static void count_infinite(void* user, crd_level level, const char* text)
{
    if (level == CRD_LOG_WARNING && strstr(text, "unit 'a': output 'y' is infinite at 0.5 s")) {
        ++*(int*)user;
    }
}

// It may be a limit that there is none; what is no number still ends the run where it comes from.
static void an_infinite_output_passes_and_is_told(void** state)
{
    (void)state;
    crd_model endless = clock_model;
    endless.outputs = infinite_outputs;
    for (int wired = 0; wired < 2; wired++) {
        int told = 0;
        crd_context* ctx = crd_context_create(&(crd_context_options){
            .log = count_infinite, .log_user = &told, .level = CRD_LOG_WARNING});
        crd_system* s = new_system(ctx, 0.1, 1);
        const int a = add_unit(s, "a", &endless, 0);
        const int b = add_unit(s, "b", &gain_model, 0);
        if (wired) { wire(s, a, "y", b, "u"); }
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, &(crd_master_options){.columns = !wired}, &m), ctx);
        check_run(crd_master_initialize(m), ctx);
        for (int n = 1; n <= 7; n++) {
            check_run(crd_master_advance(m, 1), ctx);
            check_int(told, n >= 5);
        }
        check_status(crd_master_advance(m, 1), CRD_E_UNIT);
        check_contains(crd_error_text(ctx), "not a number");
        check_contains(crd_error_text(ctx), "unit 'a'");
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
    }
}

static void nan_is_blamed_on_its_source_even_if_the_target_fails_for_it(void** state)
{
    crd_model picky = gain_model;
    picky.step = picky_step;
    crd_system* s = new_system(*state, 0.1, 10);
    const int p = add_unit(s, "p", &picky, 0), c = add_unit(s, "c", &clock_model, 0);
    wire(s, c, "y", p, "u");
    set(s, c, "what", "3");
    set(s, c, "when", "0.45");
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [c, p]", (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_status(crd_master_run(m), CRD_E_UNIT);
    check_contains(crd_error_text(*state), "unit 'c'");
    check_contains(crd_error_text(*state), "not a number");
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_crashing_unit_ends_the_run_not_the_process(void** state)
{
    for (int k = 0; k < 4; k++) { // a fault and an abort, on one thread and on two
        crd_system* s = NULL;
        crd_master* m = with_clock(*state, k % 2 ? "5" : "4", &s);
        crd_master_destroy(m);
        s->run.threads = 1 + k / 2;
        crd_master_options opt = crd_master_defaults();
        opt.guard_crashes = true;
        check_run(crd_master_create(*state, s, &opt, &m), *state);
        check_status(crd_master_run(m), CRD_E_CRASH);
        check_contains(crd_error_text(*state), "unit 'c'");
        check_contains(crd_error_text(*state), "crashed");
        check_contains(crd_error_text(*state), k % 2 ? "Abort" : "Segmentation");
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
}

static void the_stop_flag_ends_the_run_cleanly(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1e6);
    add_unit(s, "a", &euler_model, 0);
    volatile bool stop = false;
    crd_master_options opt = crd_master_defaults();
    opt.stop = &stop;
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, &opt, &m), *state);
    check_run(crd_master_initialize(m), *state);
    for (int i = 0; i < 5; i++) {
        check_run(crd_master_advance(m, 1), *state);
    }
    stop = true;
    check_run(crd_master_advance(m, 1), *state);
    check_int(crd_master_ended(m), CRD_END_INTERRUPTED);
    check_run(crd_master_advance(m, 1), *state); // nothing more happens
    check_int(crd_master_get_report(m)->steps, 6);
    check_run(crd_master_finish(m), *state);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// ---- the order from the graph ------------------------------------------------------------------

static void gauss_seidel_orders_units_along_the_signal(void** state)
{
    // Written backwards: sink, gain, source. Each step the signal passes all three.
    crd_system* s = new_system(*state, 0.1, 1);
    const int sink = add_unit(s, "sink", &gain_model, 0), g = add_unit(s, "g", &gain_model, 0);
    const int source = add_unit(s, "source", &clock_model, 0);
    wire(s, g, "y", sink, "u");
    wire(s, source, "y", g, "u");
    check_ok(crd_system_set_scheme(s, "gauss-seidel", (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_near(value(m, "sink.y"), 1, 1e-15);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void in_a_circle_units_with_feedthrough_come_last(void** state)
{
    // f (feedthrough) and a (state) feed each other; f must see the new a, so a steps first.
    crd_system* s = new_system(*state, 0.1, 0.1);
    const int f = add_unit(s, "f", &gain_model, 0), a = add_unit(s, "a", &euler_model, 0);
    set(s, a, "x", "1");
    wire(s, a, "y", f, "u");
    wire(s, f, "y", a, "u");
    check_ok(crd_system_set_scheme(s, "gauss-seidel", (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_near(value(m, "a.y"), 1.1, 1e-15);
    check_near(value(m, "f.y"), 1.1, 1e-15); // 1.0 if f had gone first
    crd_master_destroy(m);
    crd_system_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jacobi_gives_the_bits_of_the_loop_written_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(gauss_seidel_uses_what_is_fresh, setup, teardown),
        cmocka_unit_test_setup_teardown(nested_groups_follow_their_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_inside_jacobi_see_the_old_values_of_each_other,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(multirate_exchanges_when_a_unit_is_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(the_coupling_error_has_the_order_of_the_prediction_plus_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_step_is_shorter_when_the_stop_is_off_the_grid,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(ten_steps_of_a_tenth_are_ten, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_on_one_grid_find_their_tick, setup, teardown),
        cmocka_unit_test_setup_teardown(times_that_make_no_sense_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_unit_may_end_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failing_unit_is_named_with_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(nan_on_a_connection_ends_the_run_at_its_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nan_passes_where_it_is_allowed_and_no_longer_than_it_lasts,
                                        setup, teardown),
        cmocka_unit_test(an_infinite_output_passes_and_is_told),
        cmocka_unit_test_setup_teardown(nan_is_blamed_on_its_source_even_if_the_target_fails_for_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_crashing_unit_ends_the_run_not_the_process, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_stop_flag_ends_the_run_cleanly, setup, teardown),
        cmocka_unit_test_setup_teardown(gauss_seidel_orders_units_along_the_signal, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(in_a_circle_units_with_feedthrough_come_last, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
