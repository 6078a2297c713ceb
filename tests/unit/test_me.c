// Units that integrate an FMU for Model Exchange, against closed forms and other solvers.
#include <math.h>
#include <pthread.h>

#include "me/me_test.h"
#include "unit/me/me_unit.h"

// Runs to `stop` in steps of h and gives y0.
static double run_to(crd_unit* u, double h, double stop)
{
    start(u, 0, stop);
    const int n = (int)floor(stop / h + 0.5);
    for (int k = 0; k < n; k++) {
        step(u, k * h, h);
    }
    return get_one(u, "y0");
}

static crd_unit* unit_of(crd_context* ctx, const me_fmu* m, const char* name, crd_unit_spec* spec)
{
    *spec = me_spec(me_folder(m, name));
    return make(ctx, spec);
}

// ---- what it is --------------------------------------------------------------------------------

static void a_unit_says_what_it_is(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"oscillator", version, 2, 0, all_flags(version)};
        crd_unit_spec spec;
        crd_unit* u = unit_of(ctx, &m, "info", &spec);
        static const char* const kinds[] = {"", "FMU 1.0 ME", "FMU 2.0 ME", "FMU 3.0 ME"};
        check_text(u->info.kind, kinds[version]);
        check_text(u->info.model, "oscillator");
        check_text(u->info.model_version, "7");
        check_text(u->info.tool, "a test");
        check_text(u->info.date, "2026-01-01T00:00:00Z");
        check_int(u->info.max_input_order, 2);
        check_int(u->info.max_output_order, 1);
        const unsigned rich = CRD_UNIT_CAN_SAVE | CRD_UNIT_HAS_DIRECTIONAL; // FMI 1 has neither
        check_int(u->info.flags & rich, version > 1 ? rich : 0);
        check(u->info.flags & CRD_UNIT_CAN_VARY_STEP);
        crd_unit_destroy(u);
        const me_fmu poor = {"oscillator", version, 2, 0, ""};
        u = unit_of(ctx, &poor, "poor", &spec);
        check(!(u->info.flags & (CRD_UNIT_CAN_SAVE | CRD_UNIT_HAS_DIRECTIONAL)));
        check(!(u->info.flags & CRD_UNIT_CAN_SAVE));
        crd_unit_destroy(u);
        spec.interface = CRD_INTERFACE_COSIMULATION;
        check_status(crd_unit_create(ctx, &spec, &u), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(ctx), "has no Co-Simulation interface, only Model Exchange");
    }
    crd_context_destroy(ctx);
}

// ---- accuracy ----------------------------------------------------------------------------------

static void an_oscillator_follows_its_closed_form_within_the_tolerance(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const struct {
        crd_solver method;
        double tolerance, most;
    } cases[] = {
        {CRD_SOLVER_BDF, 1e-4, 2e-2},   {CRD_SOLVER_BDF, 1e-6, 5e-4},
        {CRD_SOLVER_BDF, 1e-9, 2e-6},   {CRD_SOLVER_ADAMS, 1e-4, 2e-2},
        {CRD_SOLVER_ADAMS, 1e-6, 2e-4}, {CRD_SOLVER_ADAMS, 1e-9, 1e-6},
    };
    for (int version = 1; version <= 3; version++) {
        for (int rich = 0; rich <= 1; rich++) {
            const me_fmu m = {"oscillator", version, 2, 0,
                              rich ? all_flags(version) : few_flags(version)};
            double before = 1;
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                crd_unit_spec spec = me_spec(me_folder(&m, rich ? "rich" : "lean"));
                spec.solver.method = cases[i].method;
                spec.solver.relative = cases[i].tolerance;
                crd_unit* u = make(ctx, &spec);
                const double error = fabs(run_to(u, 0.1, 10) - cos(10.0));
                check_near(error, 0, cases[i].most);
                if (i % 3) { check(error < before); } // smaller tolerance, smaller error
                before = error;
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

static double fixed_error(crd_context* ctx, int version, crd_solver method, double inner)
{
    const me_fmu m = {"oscillator", version, 2, 0, few_flags(version)};
    crd_unit_spec spec = me_spec(me_folder(&m, "fixed"));
    spec.solver.method = method;
    spec.solver.step = inner;
    crd_unit* u = make(ctx, &spec);
    const double error = fabs(run_to(u, 0.1, 2) - cos(2.0));
    crd_unit_destroy(u);
    return error;
}

static void fixed_steps_converge_with_the_order_of_their_method(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const double e1 = fixed_error(ctx, version, CRD_SOLVER_EULER, 0.001);
        const double e2 = fixed_error(ctx, version, CRD_SOLVER_EULER, 0.0005);
        check_near(log2(e1 / e2), 1, 0.05);
        const double r1 = fixed_error(ctx, version, CRD_SOLVER_RK4, 0.05);
        const double r2 = fixed_error(ctx, version, CRD_SOLVER_RK4, 0.025);
        check_near(log2(r1 / r2), 4, 0.2);
        // a step that does not divide the communication step is made to: 0.1 / 3
        check_near(fixed_error(ctx, version, CRD_SOLVER_RK4, 0.04),
                   fixed_error(ctx, version, CRD_SOLVER_RK4, 0.1 / 3), 0);
    }
    crd_context_destroy(ctx);
}

// Independent reference: SciPy 1.17, Radau with analytic Jacobian, rtol = 2.3e-14,
// atol = 2.3e-17, from (2, 0), mu = 1000; its result with 1e-12 differs by 3e-14 at t = 2000.
static void a_stiff_van_der_pol_oscillator_agrees_with_an_independent_solver(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double times[] = {500, 800, 1000, 2000};
    const double want[] = {1.5967689510526575, 1.083923364642521, -1.8636462548081199,
                           1.706167732170434};
    const double tolerances[] = {1e-4, 1e-6, 1e-9}, most[] = {3e-2, 5e-4, 5e-7};
    for (int version = 1; version <= 3; version++) {
        for (int i = 0; i < 3; i++) {
            const me_fmu m = {"vdp", version, 2, 0, version == 2 ? all_flags(2) : few_flags(3)};
            crd_unit_spec spec;
            crd_unit* u = unit_of(ctx, &m, "stiff", &spec);
            spec.solver.relative = tolerances[i];
            spec.solver.absolute = tolerances[i] * 1e-3;
            start(u, 0, 2000);
            int at = 0;
            for (int k = 0; k < 20; k++) {
                step(u, 100 * k, 100);
                if (100 * (k + 1) != (int)times[at]) { continue; }
                check_near(get_one(u, "y0"), want[at], most[i]);
                at++;
            }
            check_int(at, 4);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

// ---- events ------------------------------------------------------------------------------------

// Impacts of a ball from height 1: the first after sqrt(2/g), the flights between them e^n times
// twice that. Their end is the sum of a geometric series.
static double impact(int n)
{
    const double fall = sqrt(2 / 9.81), e = 0.7;
    return fall * (1 + 2 * (e - pow(e, n)) / (1 - e));
}

static void impacts_of_a_ball_are_located_at_every_tolerance(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const struct {
        crd_solver method;
        double tolerance, most;
    } cases[] = {
        {CRD_SOLVER_BDF, 1e-4, 1e-4},   {CRD_SOLVER_BDF, 1e-6, 2e-6},
        {CRD_SOLVER_BDF, 1e-9, 5e-9},   {CRD_SOLVER_ADAMS, 1e-4, 1e-4},
        {CRD_SOLVER_ADAMS, 1e-9, 5e-9}, {CRD_SOLVER_RK4, 1e-6, 1e-8}, // exact for a parabola
    };
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const me_fmu m = {"ball", version, 2, 1, few_flags(version)};
            crd_unit_spec spec;
            crd_unit* u = unit_of(ctx, &m, "bounce", &spec);
            spec.solver.method = cases[i].method;
            spec.solver.relative = cases[i].tolerance;
            crd_unit_destroy(u);
            u = make(ctx, &spec);
            start(u, 0, 4);
            int seen = 0;
            for (int k = 0; k < 400; k++) {
                step(u, k * 0.01, 0.01);
                const int events = (int)get_one(u, "events");
                if (events == seen) { continue; }
                check(events <= seen + 2); // several in one step are possible
                seen = events;
                check_near(get_one(u, "y2"), impact(seen), cases[i].most * seen);
            }
            // v0 e^n < 0.05 after 13 impacts: 4.43 * 0.7^13 = 0.043
            check_int(seen, 13);
            check_near(get_one(u, "y0"), 0, 0);
            check_near(get_one(u, "y1"), 0, 0);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void many_events_fit_into_one_communication_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_solver methods[] = {CRD_SOLVER_BDF, CRD_SOLVER_ADAMS, CRD_SOLVER_EULER,
                                  CRD_SOLVER_RK4};
    for (int version = 1; version <= 3; version++) {
        for (int i = 0; i < 4; i++) {
            const me_fmu m = {"relay", version, 1, 2, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "many"));
            spec.solver.method = methods[i];
            spec.solver.step = 0.01;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 4);
            step(u, 0, 2.05);
            // up to 0.1, then 0.2 s from side to side: events at 0.1, 0.3, ... 1.9
            check_int((int)get_one(u, "events"), 10);
            check_near(get_one(u, "y0"), 0.05, 1e-8);
            step(u, 2.05, 1.95);
            check_int((int)get_one(u, "events"), 20);
            check_near(get_one(u, "y0"), 0, 1e-8);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void time_events_are_hit_exactly(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double steps[] = {0.01, 0.1, 0.3, 0.07, 1.0 / 3, 5};
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                const me_fmu m = {"timer", version, 0, 0, few_flags(version)};
                crd_unit_spec spec = me_spec(me_folder(&m, "timer"));
                spec.solver.method = (crd_solver)method;
                crd_unit* u = make(ctx, &spec);
                start(u, 0, 5);
                const int n = (int)floor(5 / steps[i] + 1e-9);
                for (int k = 0; k < n; k++) {
                    step(u, k * steps[i], steps[i]);
                }
                check_near(get_one(u, "y0"), 0, 0);
                check_int((int)get_one(u, "events"), (int)floor(n * steps[i] / 0.1 + 1e-6));
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

static void an_indicator_that_stays_at_zero_fires_once(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            const me_fmu m = {"stay", version, 1, 1, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "stay"));
            spec.solver.method = (crd_solver)method;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 3);
            for (int k = 0; k < 30; k++) {
                step(u, k * 0.1, 0.1);
            }
            check_int((int)get_one(u, "events"), 2); // the initialisation, and the arrival
            check_near(get_one(u, "y0"), 1, 0);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void indicators_may_be_infinite_or_not_a_number(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting nan_setting = {.variable = "p0", .text = "1", .place = {"sys.yaml", 5}};
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            for (int nan = 0; nan <= 1; nan++) {
                const me_fmu m = {"wild", version, 1, 1, few_flags(version)};
                crd_unit_spec spec = me_spec(me_folder(&m, "wild"));
                spec.solver.method = (crd_solver)method;
                spec.parameters = &nan_setting;
                spec.parameter_count = nan;
                crd_unit* u = make(ctx, &spec);
                start(u, 0, 1);
                for (int k = 0; k < 10; k++) {
                    step(u, 0.1 * k, 0.1);
                    const bool over = k >= (nan ? 6 : 3); // nothing is no side of zero
                    check_int((int)get_one(u, "events"), over);
                }
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

static void an_indicator_that_comes_back_within_a_step_is_seen(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const me_fmu m = {"top", version, 2, 1, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "top"));
            spec.solver.method = (crd_solver)method;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            set_one(u, "u0", 1); // a jump: one long step is tried
            step(u, 0, 0.04);
            check_int((int)get_one(u, "events"), 2); // in and out
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void a_short_step_may_follow_an_event_behind_a_long_one(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"timer", version, 0, 0, few_flags(version)};
        const crd_setting period = {
            .variable = "p0", .text = "0.10000000005", .place = {"sys.yaml", 5}};
        crd_unit_spec spec = me_spec(me_folder(&m, "behind"));
        spec.parameters = &period;
        spec.parameter_count = 1;
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        step(u, 0, 0.1);
        check_near(get_one(u, "events"), 1, 0);
        step(u, 0.1, 0.001);
        check_near(get_one(u, "events"), 1, 0);
        check_status(u->ops->step(u, 0.102, 0.001), CRD_E_STATE); // that is not where it stands
        check_contains(crd_error_text(u->ctx), "but the unit is at 0.101");
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void time_events_change_sides_and_slopes(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting turn = {.variable = "p0", .text = "1", .place = {"sys.yaml", 5}};
    for (int version = 1; version <= 3; version++) {
        for (int turns = 0; turns <= 1; turns++) {
            const me_fmu m = {"flip", version, 1, 1, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "flip"));
            spec.parameters = &turn;
            spec.parameter_count = turns;
            crd_unit* u = make(ctx, &spec);
            check_near(run_to(u, 0.25, 1), turns ? 0 : 1, 1e-10);
            check_int((int)get_one(u, "events"), 1);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

// Evaluations from 1 to 10; from 0.5 on the nominal value is another one.
static double work_with_nominal(crd_context* ctx, int version, const char* nominal, double h)
{
    const me_fmu m = {"swing", version, 1, 0, few_flags(version)};
    const crd_setting p0 = {.variable = "p0", .text = nominal, .place = {"sys.yaml", 5}};
    crd_unit_spec spec = me_spec(me_folder(&m, "work"));
    spec.parameters = &p0;
    spec.parameter_count = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 10);
    double before = 0;
    for (int k = 0; k * h < 10; k++) {
        if (h < 0.5) { set_one(u, "u0", k); } // a jump that does nothing
        step(u, k * h, h);
        if ((k + 1) * h == 1) { before = get_one(u, "y1"); }
    }
    const double work = get_one(u, "y1") - before;
    check_near(get_one(u, "y0"), exp(sin(10.0)), 1e-2);
    crd_unit_destroy(u);
    return work;
}

static void the_nominal_value_scales_the_tolerance(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        // the solver's steps, and one step from jump to jump
        for (int jumps = 0; jumps <= 1; jumps++) {
            const double h = jumps ? 0.25 : 0.5;
            const double fine = work_with_nominal(ctx, version, "1", h);
            const double coarse = work_with_nominal(ctx, version, "1e4", h);
            check(coarse < (jumps ? 0.4 : 0.8) * fine);
        }
    }
    crd_context_destroy(ctx);
}

static void step_events_change_states_and_nominal_values(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"hop", version, 1, 0, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "hop"));
        spec.isolate = "none"; // to look inside
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        for (int k = 0; k < 10; k++) {
            step(u, k * 0.1, 0.1);
        }
        check_int((int)get_one(u, "events"), 1);
        // it hopped to 10 at the end of the step after 0.5, at 0.6 at the latest
        const double x = get_one(u, "y0");
        check(x >= 10.4 - 1e-9 && x <= 10.5 + 1e-9);
        check_near(((crdi_me_unit*)u)->nominal[0], 100, 0);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_model_may_end_the_run(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"ending", version, 1, 1, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "ending"));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        step(u, 0, 1);
        check(u->wants_stop);
        check_near(get_one(u, "y0"), 0.25, 1e-8);
        check_ok(u->ops->terminate(u));
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// ---- inputs ------------------------------------------------------------------------------------

static void inputs_are_held_or_follow_their_curves(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            if (method == CRD_SOLVER_EULER) { continue; }
            for (int order = 0; order <= 2; order++) {
                const me_fmu m = {"driven", version, 1, 1, few_flags(version)};
                crd_unit_spec spec = me_spec(me_folder(&m, "curves"));
                spec.solver.method = (crd_solver)method;
                spec.solver.relative = 1e-8;
                crd_unit* u = make(ctx, &spec);
                start(u, 0, 1);
                bound in = bind_names(u, "u0");
                double sum = 0;
                for (int k = 0; k < 10; k++) {
                    const double t = 0.1 * k, d1 = 2 * t, d2 = 2; // u = t^2 - 1
                    const double* const d[] = {&d1, &d2};
                    in.v.real[0] = t * t - 1;
                    set(&in);
                    if (order) { check_ok(u->ops->derivatives->set(u, in.b, d, order)); }
                    step(u, t, 0.1);
                    sum += 0.1 * (t * t - 1) + (order > 0 ? d1 * 0.005 : 0) +
                           (order > 1 ? 0.001 / 3 : 0);
                    check_near(get_one(u, "y0"), sum, 1e-6);
                }
                unbind(&in);
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

// Over a step with u held, (x - u / w^2, x' / w) turns by w h.
static double worst_on_a_staircase(crd_context* ctx, int version, crd_solver method,
                                   const char* w_text, double h, int steps, double tolerance)
{
    const me_fmu m = {"oscillator", version, 2, 0, few_flags(version)};
    const crd_setting frequency = {.variable = "p0", .text = w_text, .place = {"sys.yaml", 5}};
    crd_unit_spec spec = me_spec(me_folder(&m, "stairs"));
    spec.parameters = &frequency;
    spec.parameter_count = 1;
    spec.solver.method = method;
    spec.solver.relative = tolerance;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, steps * h);
    const double w = atof(w_text);
    double x = 1, v = 0, worst = 0;
    for (int k = 0; k < steps; k++) {
        const double input = w * w * sin(0.01 * k), c = cos(w * h), s = sin(w * h);
        const double a = x - input / (w * w), b = v / w;
        x = input / (w * w) + a * c + b * s;
        v = w * (b * c - a * s);
        set_one(u, "u0", input);
        step(u, k * h, h);
        worst = fmax(worst, fabs(get_one(u, "y0") - x));
    }
    crd_unit_destroy(u);
    return worst;
}

static void held_inputs_do_not_cost_accuracy(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const crd_solver m = (crd_solver)method;
            // short steps: two thousand jumps, and still below the tolerance
            check_near(worst_on_a_staircase(ctx, version, m, "1", 0.01, 2000, 1e-6), 0, 1e-6);
            // long ones are the solver's: five periods in each
            check_near(worst_on_a_staircase(ctx, version, m, "3000", 0.01, 5, 1e-8), 0, 1e-3);
        }
    }
    crd_context_destroy(ctx);
}

static void a_jump_of_an_input_is_a_state_event(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"driven", version, 1, 1, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "jump"));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        for (int k = 0; k < 6; k++) {
            set_one(u, "u0", k % 2 ? 3 : -1);
            step(u, 0.1 * k, 0.1);
            check_int((int)get_one(u, "events"), k); // one per side
        }
        check_near(get_one(u, "y0"), 0.6, 1e-7);
        check_near(get_one(u, "y1"), 2 * 3 + 0.6, 1e-7); // with feedthrough
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_jump_of_an_input_makes_the_solver_begin_anew(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const me_fmu m = {"driven", version, 1, 1, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "anew"));
            spec.solver.method = (crd_solver)method;
            spec.solver.step = 0.05; // not in one step
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            for (int k = 0; k < 6; k++) {
                set_one(u, "u0", k % 2 ? -0.5 : 0.75);
                step(u, 0.1 * k, 0.1);
                check_near(get_one(u, "y0"), 0.025 * (k / 2) + (k % 2 ? 0.025 : 0.075), 1e-10);
            }
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void the_longest_step_is_kept(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const me_fmu m = {"driven", version, 1, 1, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "longest"));
            spec.solver.method = (crd_solver)method;
            spec.solver.step = 0.001;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            for (int k = 0; k < 2; k++) { // with a jump of the input and without
                const double before = get_one(u, "y2");
                set_one(u, "u0", 0.5);
                step(u, 0.1 * k, 0.1);
                check(get_one(u, "y2") - before >= 100);
            }
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void one_long_step_is_not_tried_for_ever(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const me_fmu m = {"vdp", 2, 2, 0, few_flags(2)};
    crd_unit_spec spec = me_spec(me_folder(&m, "stiff"));
    spec.isolate = "none"; // to look inside
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 100);
    for (int k = 0; k < 40; k++) {
        set_one(u, "u0", k);
        step(u, k, 1);
    }
    // tried at the jumps 0, 2, 5, 10, 19 and 36
    check_int(((crdi_me_unit*)u)->skipped, 32);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void discrete_inputs_are_taken_in_event_mode(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"driven", version, 1, 1, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "discrete"));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        bound k = bind_names(u, "k");
        k.v.integer[0] = 5;
        set(&k);
        step(u, 0, 0.5);
        k.v.integer[0] = -5;
        set(&k);
        step(u, 0.5, 0.5);
        check_near(get_one(u, "y0"), 0, 1e-9);
        unbind(&k);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void outputs_have_their_first_derivative(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"oscillator", version, 2, 0, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "slope"));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1); // no time beyond it
        bound out = bind_names(u, "y0 y1 y2");
        for (int k = 0; k < 100; k++) {
            step(u, 0.01 * k, 0.01);
            double d[3];
            get(&out);
            check_ok(u->ops->derivatives->get(u, out.b, 1, d));
            const double t = 0.01 * (k + 1);
            check_near(d[0], out.v.real[1], 1e-6);
            check_near(d[1], -out.v.real[0], 1e-6);
            if (k < 99) { check_near(d[2], 3 * t * t, 1e-6); } // explicit in time
            const double before = out.v.real[0];
            get(&out);
            check_near(out.v.real[0], before, 0); // it stands where it stood
        }
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// ---- structure ---------------------------------------------------------------------------------

static void sparse_and_dense_give_the_same(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    double first = NAN;
    for (int version = 2; version <= 3; version++) {
        for (int kind = 0; kind < 4; kind++) {
            const bool band = kind & 1, rich = kind & 2;
            const me_fmu m = {.model = "chain",
                              .version = version,
                              .n = 64,
                              .flags = rich ? all_flags(version) : few_flags(version),
                              .structure = band ? BAND : UNKNOWN};
            const char* const names[] = {"dense", "sparse", "dense_rich", "sparse_rich"};
            crd_unit_spec spec = me_spec(me_folder(&m, names[kind]));
            spec.isolate = "none"; // to look inside
            spec.solver.relative = 1e-8;
            crd_unit* u = make(ctx, &spec);
            const double y = run_to(u, 0.5, 10);
            const crdi_me_unit* me = (const crdi_me_unit*)u;
            check_int(crdi_me_is_sparse(me), band);
            check_int(me->pattern.group_count, band ? 3 : 64); // a band of three needs three
            if (isnan(first)) { first = y; }
            check_near(y, first, 1e-7);
            check(y > 0.01); // something came through
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void states_may_be_an_array_of_any_length(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const me_fmu scalars = {.model = "chain", .version = 3, .n = 64, .flags = all_flags(3)};
    const me_fmu array = {
        .model = "chain", .version = 3, .n = 64, .flags = all_flags(3), .array = true};
    crd_unit_spec spec = me_spec(me_folder(&scalars, "scalars"));
    spec.isolate = "none"; // to look inside
    crd_unit* u = make(ctx, &spec);
    const double want = run_to(u, 0.5, 5);
    crd_unit_destroy(u);
    char folder[256];
    strcpy(folder, me_folder(&array, "array"));
    spec = me_spec(folder);
    u = make(ctx, &spec);
    check_near(run_to(u, 0.5, 5), want, 1e-12);
    crd_unit_destroy(u);
    const crd_setting shorter = {.variable = "n", .text = "5", .place = {"sys.yaml", 5}};
    spec.parameters = &shorter;
    spec.parameter_count = 1;
    spec.isolate = "none"; // to look inside
    u = make(ctx, &spec);
    run_to(u, 0.5, 5);
    check_int(((crdi_me_unit*)u)->nx, 5);
    bound x = bind_names(u, "x");
    check_int(x.b->real_count, 5);
    get(&x);
    for (int k = 1; k < 5; k++) {
        check(x.v.real[k] < x.v.real[k - 1] && x.v.real[k] > 0); // colder with every element
    }
    unbind(&x);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- failures ----------------------------------------------------------------------------------

static const char* failure(crd_context* ctx, const me_fmu* m, crd_solver method, double h, int n,
                           crd_status want)
{
    static char text[1024];
    crd_unit_spec spec = me_spec(me_folder(m, "failure"));
    spec.solver.method = method;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, n * h);
    crd_status st = CRD_OK;
    for (int k = 0; k < n && st == CRD_OK; k++) {
        st = u->ops->step(u, k * h, h);
    }
    check_status(st, want);
    snprintf(text, sizeof text, "%s", crd_error_text(u->ctx));
    crd_unit_destroy(u);
    return text;
}

static void solvers_say_when_and_why_they_failed(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const char* name = version == 1 ? "state '1'" : "state 'x0'"; // FMI 1 does not name states
        const me_fmu escape = {"escape", version, 1, 0, few_flags(version)};
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const char* text = failure(ctx, &escape, (crd_solver)method, 0.1, 20, CRD_E_UNIT);
            const char* begin = method == CRD_SOLVER_BDF ? "the solver (BDF) failed at t = "
                                                         : "the solver (Adams) failed at t = ";
            check_contains(text, begin);
            check_near(atof(strstr(text, "t = ") + 4), 1, 1e-3);
            check(strstr(text, "however short") || strstr(text, "so short that time stands still"));
            check_contains(text, name);
        }
        const char* text = failure(ctx, &escape, CRD_SOLVER_EULER, 0.1, 100, CRD_E_UNIT);
        check_contains(text, "the derivative of the state ");
        check_contains(text, name);
        check_contains(text, "a shorter step of the solver may help");
        const me_fmu sink = {"sink", version, 1, 0, few_flags(version)};
        text = failure(ctx, &sink, CRD_SOLVER_BDF, 0.1, 10, CRD_E_UNIT);
        check_contains(text, "the solver (BDF) failed at t = 0.");
        check_near(atof(strstr(text, "t = ") + 4), 0.5, 1e-3);
        check_contains(text, "(Discard)");
        check_contains(failure(ctx, &sink, CRD_SOLVER_RK4, 0.1, 10, CRD_E_UNIT), "Discard");
        const me_fmu broken = {"fail", version, 1, 0, few_flags(version)};
        text = failure(ctx, &broken, CRD_SOLVER_BDF, 0.1, 10, CRD_E_UNIT);
        check_contains(text, "in the solver (BDF) at t = 0.5");
        check_contains(text, "returned Error");
    }
    crd_context_destroy(ctx);
}

static void discarded_points_shorten_the_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_ADAMS; method++) {
            const me_fmu m = {"tether", version, 1, 0, few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, "tether"));
            spec.solver.method = (crd_solver)method;
            crd_unit* u = make(ctx, &spec);
            check_near(run_to(u, 0.5, 1), 1, 1e-6);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void completed_steps_are_told_if_the_model_needs_it(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const me_fmu m = {"tether", version, 1, 0,
                          version == 2 ? "completedIntegratorStepNotNeeded=\"true\""
                                       : "needsCompletedIntegratorStep=\"false\""};
        check_contains(failure(ctx, &m, CRD_SOLVER_BDF, 0.1, 2, CRD_E_UNIT), "(Discard)");
    }
    crd_context_destroy(ctx);
}

static void a_discarded_jacobian_shortens_the_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const me_fmu m = {"shy", version, 1, 0, all_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "shy"));
        crd_unit* u = make(ctx, &spec);
        check_near(run_to(u, 0.1, 1), cos(1.0) + 1e-3 * sin(1.0), 1e-5);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_wrong_number_of_states_is_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const me_fmu m = {"oscillator", 3, 3, 0, few_flags(3)};
    crd_unit_spec spec = me_spec(me_folder(&m, "three"));
    crd_unit* u = make(ctx, &spec);
    check_status(crd_unit_instantiate(u), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "2 continuous states, its modelDescription has 3");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void an_event_that_never_ends_is_given_up(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            const me_fmu m = {"endless", version, 1, 1, few_flags(version)};
            const char* text = failure(ctx, &m, (crd_solver)method, 0.2, 5, CRD_E_UNIT);
            check_contains(text, "the event at t = 0.5");
            check_contains(text, "does not end: its discrete states still change after 1000");
        }
    }
    crd_context_destroy(ctx);
}

static void events_that_get_closer_and_closer_are_given_up(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"zeno", version, 0, 0, few_flags(version)};
        const char* text = failure(ctx, &m, CRD_SOLVER_BDF, 0.2, 6, CRD_E_UNIT);
        check_contains(text, "events between t = 0.8");
        check_contains(text, "and t = 1");
        check_contains(text, "time does not go on");
        check_contains(text, "a state of rest");
    }
    crd_context_destroy(ctx);
}

static void bad_tolerances_are_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const me_fmu m = {"oscillator", 2, 2, 0, ""};
    crd_unit_spec spec = me_spec(me_folder(&m, "tolerance"));
    crd_unit* u = make(ctx, &spec);
    const double bad[][2] = {{-1, 1}, {2, 1}, {1e-6, 0}, {1e-6, -1}};
    for (int i = 0; i < 4; i++) {
        spec.solver.relative = bad[i][0];
        spec.solver.absolute = bad[i][1];
        check_ok(crd_unit_instantiate(u));
        check_status(u->ops->enter_initialization(u, &(crd_experiment){0}), CRD_E_RANGE);
        check_contains(crd_error_text(u->ctx), "the solver's tolerances are");
    }
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- saved states ------------------------------------------------------------------------------

static const char* saving(int version)
{
    return version == 2 ? "canGetAndSetFMUstate=\"true\""
                        : "canGetAndSetFMUState=\"true\" needsCompletedIntegratorStep=\"true\"";
}

static void a_restored_unit_gives_the_same_bits(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const struct {
        const char* model;
        int n, nz, structure;
        double h;
        bool rich;
    } cases[] = {{"ball", 2, 1, UNKNOWN, 0.03, false},
                 {"oscillator", 2, 0, UNKNOWN, 0.1, true},
                 {"chain", 64, 0, BAND, 0.1, true},
                 {"chain", 64, 0, BAND, 0.01, false},
                 {"relay", 1, 2, UNKNOWN, 0.17, false}};
    for (int version = 2; version <= 3; version++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
                const me_fmu m = {.model = cases[i].model,
                                  .version = version,
                                  .n = cases[i].n,
                                  .nz = cases[i].nz,
                                  .structure = cases[i].structure,
                                  .flags = cases[i].rich ? all_flags(version) : saving(version)};
                crd_unit_spec spec = me_spec(me_folder(&m, "saved"));
                spec.solver.method = (crd_solver)method;
                if (method >= CRD_SOLVER_EULER) { spec.solver.step = 0.001; }
                crd_unit* u = make(ctx, &spec);
                const double h = cases[i].h;
                start(u, 0, 100 * h);
                bound in = bind_names(u, "u0");
                for (int k = 0; k < 20; k++) {
                    in.v.real[0] = sin(0.3 * k);
                    set(&in);
                    step(u, k * h, h);
                }
                void* saved = NULL;
                check_ok(u->ops->state->save(u, &saved));
                double first[10];
                for (int round = 0; round < 3; round++) {
                    for (int k = 0; k < 10; k++) {
                        in.v.real[0] = k < 5 ? sin(k) : 1; // jumps, then rests
                        set(&in);
                        step(u, (20 + k) * h, h);
                        const double y = get_one(u, "y0");
                        if (round == 0) { first[k] = y; }
                        check_near(y, first[k], 0);
                    }
                    check_ok(u->ops->state->restore(u, saved));
                }
                unbind(&in);
                u->ops->state->free(u, &saved);
                check(!saved);
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

static void nominal_values_are_saved_with_the_state(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const me_fmu m = {"swing", version, 1, 0, saving(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "nominal"));
        spec.isolate = "none"; // to look inside
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 2);
        step(u, 0, 0.25);
        void* saved = NULL;
        check_ok(u->ops->state->save(u, &saved));
        double first[4] = {0};
        for (int round = 0; round < 2; round++) {
            for (int k = 0; k < 4; k++) {
                step(u, 0.25 * (k + 1), 0.25);
                const double y = get_one(u, "y0");
                if (round == 0) { first[k] = y; }
                check_near(y, first[k], 0);
            }
            check_near(((crdi_me_unit*)u)->nominal[0], 1e4, 0);
            check_ok(u->ops->state->restore(u, saved));
            check_near(((crdi_me_unit*)u)->nominal[0], 1, 0);
        }
        u->ops->state->free(u, &saved);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void sides_and_ends_are_saved_with_the_state(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            // "wild" has an event at 0.35, "ending" its end at 0.25
            for (int ends = 0; ends <= 1; ends++) {
                const me_fmu m = {ends ? "ending" : "wild", version, 1, 1, saving(version)};
                crd_unit_spec spec = me_spec(me_folder(&m, "sides"));
                spec.solver.method = (crd_solver)method;
                crd_unit* u = make(ctx, &spec);
                start(u, 0, 1);
                step(u, 0, 0.125);
                void* saved = NULL;
                check_ok(u->ops->state->save(u, &saved));
                for (int round = 0; round < 2; round++) {
                    step(u, 0.125, 0.5);
                    check_int(u->wants_stop, ends);
                    check_near(get_one(u, "y0"), ends ? 0.25 : 0.625, 1e-7);
                    check_int((int)get_one(u, "events"), !ends);
                    check_ok(u->ops->state->restore(u, saved));
                    check(!u->wants_stop);
                }
                u->ops->state->free(u, &saved);
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

static void derivatives_of_outputs_are_those_before_the_save(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const me_fmu m = {"oscillator", version, 2, 0, saving(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "slopes"));
        crd_unit* u = make(ctx, &spec);
        bound out = bind_names(u, "y0 y1 y2");
        start(u, 0, 1);
        step(u, 0, 0.25);
        void* saved = NULL;
        double before[3], after[3];
        check_ok(u->ops->state->save(u, &saved));
        check_ok(u->ops->derivatives->get(u, out.b, 1, before));
        step(u, 0.25, 0.001);
        check_ok(u->ops->state->restore(u, saved));
        check_ok(u->ops->derivatives->get(u, out.b, 1, after));
        for (int k = 0; k < 3; k++) {
            check_near(after[k], before[k], 0);
        }
        u->ops->state->free(u, &saved);
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// ---- memory and threads ------------------------------------------------------------------------

static void lack_of_memory_leaves_nothing_behind(void** state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {.model = "chain",
                          .version = version,
                          .n = 64,
                          .flags = all_flags(version),
                          .structure = BAND};
        crd_unit_spec spec = me_spec(me_folder(&m, "memory"));
        spec.isolate = "none"; // to look inside
        check_survives_lack_of_memory(&spec);
        // instantiating allocates the solver
        for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
            spec.solver.method = (crd_solver)method;
            check_allocator a;
            crd_context* ctx = check_context(&a);
            crd_unit* u = make(ctx, &spec);
            int64_t n = 0;
            for (;; n++) {
                a.allocations = 0;
                a.fail_at = n;
                const crd_status st = crd_unit_instantiate(u);
                a.fail_at = -1;
                if (st == CRD_OK) { break; }
                check_status(st, CRD_E_MEMORY);
            }
            check(n > 2);
            crd_unit_destroy(u);
            crd_context_destroy(ctx);
            check_int(a.live, 0);
        }
    }
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const me_fmu m = {"driven", 3, 1, 1, few_flags(3)};
        crd_unit_spec spec = me_spec(me_folder(&m, "steps"));
        spec.solver.method = (crd_solver)method;
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1000);
        check_steps_do_not_allocate(&a, u, "u0 k", "y0 y1 events", 0.01);
        crd_unit_destroy(u);
        crd_context_destroy(ctx);
    }
}

static void* run_one(void* unit)
{
    crd_unit* u = unit;
    crd_status st = CRD_OK;
    for (int k = 0; k < 30 && st == CRD_OK; k++) {
        st = u->ops->step(u, k * 0.1, 0.1);
    }
    return st == CRD_OK ? u : NULL;
}

// Units are made and end on one thread: ThreadSanitizer does not see the locks of the loader.
static void units_on_several_threads_do_not_know_each_other(void** state)
{
    (void)state;
    enum { UNITS = 4 };
    const me_fmu m = {.model = "chain", .version = 2, .n = 64, .flags = "", .structure = BAND};
    const crd_unit_spec spec = me_spec(me_folder(&m, "threads"));
    crd_context* ctx[UNITS];
    crd_unit* units[UNITS];
    pthread_t threads[UNITS];
    for (int k = 0; k < UNITS; k++) {
        ctx[k] = crd_context_create(NULL);
        units[k] = make(ctx[k], &spec);
        start(units[k], 0, 3);
    }
    for (int k = 0; k < UNITS; k++) {
        check_int(pthread_create(&threads[k], NULL, run_one, units[k]), 0);
    }
    for (int k = 0; k < UNITS; k++) {
        void* done = NULL;
        pthread_join(threads[k], &done);
        check(done == units[k]);
        check_near(get_one(units[k], "y0"), get_one(units[0], "y0"), 0);
    }
    check(get_one(units[0], "y1") > 0.5);
    for (int k = 0; k < UNITS; k++) {
        crd_unit_destroy(units[k]);
        crd_context_destroy(ctx[k]);
    }
}

static void the_last_call_is_known(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        const me_fmu m = {"oscillator", version, 2, 0, few_flags(version)};
        crd_unit_spec spec = me_spec(me_folder(&m, "call"));
        spec.isolate = "none"; // a worker has it
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        step(u, 0, 0.1);
        check_text(crdi_unit_last_call(u), version == 1   ? "fmiCompletedIntegratorStep"
                                           : version == 2 ? "fmi2CompletedIntegratorStep"
                                                          : "fmi3CompletedIntegratorStep");
        check_ok(u->ops->terminate(u));
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_says_what_it_is),
        cmocka_unit_test(an_oscillator_follows_its_closed_form_within_the_tolerance),
        cmocka_unit_test(fixed_steps_converge_with_the_order_of_their_method),
        cmocka_unit_test(a_stiff_van_der_pol_oscillator_agrees_with_an_independent_solver),
        cmocka_unit_test(impacts_of_a_ball_are_located_at_every_tolerance),
        cmocka_unit_test(many_events_fit_into_one_communication_step),
        cmocka_unit_test(time_events_are_hit_exactly),
        cmocka_unit_test(an_indicator_that_stays_at_zero_fires_once),
        cmocka_unit_test(indicators_may_be_infinite_or_not_a_number),
        cmocka_unit_test(an_indicator_that_comes_back_within_a_step_is_seen),
        cmocka_unit_test(a_short_step_may_follow_an_event_behind_a_long_one),
        cmocka_unit_test(time_events_change_sides_and_slopes),
        cmocka_unit_test(the_nominal_value_scales_the_tolerance),
        cmocka_unit_test(step_events_change_states_and_nominal_values),
        cmocka_unit_test(a_model_may_end_the_run),
        cmocka_unit_test(inputs_are_held_or_follow_their_curves),
        cmocka_unit_test(held_inputs_do_not_cost_accuracy),
        cmocka_unit_test(a_jump_of_an_input_is_a_state_event),
        cmocka_unit_test(a_jump_of_an_input_makes_the_solver_begin_anew),
        cmocka_unit_test(the_longest_step_is_kept),
        cmocka_unit_test(one_long_step_is_not_tried_for_ever),
        cmocka_unit_test(discrete_inputs_are_taken_in_event_mode),
        cmocka_unit_test(outputs_have_their_first_derivative),
        cmocka_unit_test(sparse_and_dense_give_the_same),
        cmocka_unit_test(states_may_be_an_array_of_any_length),
        cmocka_unit_test(solvers_say_when_and_why_they_failed),
        cmocka_unit_test(discarded_points_shorten_the_step),
        cmocka_unit_test(completed_steps_are_told_if_the_model_needs_it),
        cmocka_unit_test(a_discarded_jacobian_shortens_the_step),
        cmocka_unit_test(a_wrong_number_of_states_is_refused),
        cmocka_unit_test(an_event_that_never_ends_is_given_up),
        cmocka_unit_test(events_that_get_closer_and_closer_are_given_up),
        cmocka_unit_test(bad_tolerances_are_refused),
        cmocka_unit_test(a_restored_unit_gives_the_same_bits),
        cmocka_unit_test(nominal_values_are_saved_with_the_state),
        cmocka_unit_test(sides_and_ends_are_saved_with_the_state),
        cmocka_unit_test(derivatives_of_outputs_are_those_before_the_save),
        cmocka_unit_test(lack_of_memory_leaves_nothing_behind),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(units_on_several_threads_do_not_know_each_other),
        cmocka_unit_test(the_last_call_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
