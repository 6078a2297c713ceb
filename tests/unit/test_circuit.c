// Netlists as units.
#include <stdio.h>

#include "cardan/circuit.h"
#include "cardan/master.h"
#include "cardan/results.h"

#include "unit_test.h"

// A low-pass of second order with a source inside and one from outside; no operating point.
static const char filter[] = "filter\n"
                             ".param R=10 L=10m\n"
                             ".input drive source=Vin unit=V start=1\n"
                             "Vin 1 0 0\n"
                             "R1 1 2 {R}\n"
                             "L1 2 3 {L}\n"
                             "C1 3 0 100u\n"
                             "I1 0 3 sin(0 0.1 50)\n"
                             ".output out=v(3) unit=V\n"
                             ".output current=i(L1) unit=A\n"
                             ".tran 0.25m 0.1 uic\n"
                             ".end\n";

static const char* write_file(const char* name, const char* text)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", TEST_BUILD_DIR, name);
    FILE* f = fopen(path, "w");
    check(f != NULL);
    check(fwrite(text, 1, strlen(text), f) == strlen(text));
    check_int(fclose(f), 0);
    return path;
}

static crd_unit_spec circuit_spec(const char* path)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "c";
    spec.source = CRD_UNIT_CIRCUIT;
    spec.path = path;
    return spec;
}

// The circuit itself, with steps of h.
typedef struct direct {
    crd_netlist* n;
    crd_circuit* c;
} direct;

static direct make_direct(crd_context* ctx, const char* text, double h, double input)
{
    direct d = {0};
    crd_circuit_options opt = crd_circuit_defaults();
    const crd_netlist_options read = {.max_parts = 1000};
    opt.step = h;
    check_ok(crd_netlist_parse(ctx, text, strlen(text), "direct", &read, &d.n));
    check_ok(crd_circuit_create(ctx, d.n, &opt, &d.c));
    check_ok(crd_circuit_set_input(d.c, 0, input));
    check_ok(crd_circuit_begin(d.c, 0));
    return d;
}

static void clear_direct(direct* d)
{
    crd_circuit_destroy(d->c);
    crd_netlist_destroy(d->n);
}

static double curve(double t)
{
    return 1 + 20 * t + 300 * t * t;
}

static void a_unit_gives_the_very_values_of_its_circuit(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    crd_unit* u = make(ctx, &spec);
    direct d = make_direct(ctx, filter, 0.25e-3, 1);
    check_text(u->info.kind, "circuit");
    check_text(u->info.model, "filter");
    check_near(u->info.stop, 0.1, 0);
    check_near(u->info.step, 0.25e-3, 0);
    u->step = 1e-3;
    start(u, 0, 0.1);
    bound in = bind_names(u, "drive"), out = bind_names(u, "out current");
    for (int n = 0; n < 100; n++) {
        const double t = n * 1e-3;
        // As a polynomial over the step: the inner steps see it at their ends.
        const double d1 = 20 + 600 * t, d2 = 600;
        const double* const slopes[] = {&d1, &d2};
        in.v.real[0] = curve(t);
        set(&in);
        check_ok(u->ops->derivatives->set(u, in.b, slopes, 2));
        step(u, t, 1e-3);
        get(&out);
        for (int k = 1; k <= 4; k++) {
            const double tau = k * 0.25e-3;
            check_ok(crd_circuit_set_input(d.c, 0, curve(t) + tau * (d1 + 0.5 * tau * d2)));
            check_ok(crd_circuit_step(d.c));
        }
        check_near(out.v.real[0], crd_circuit_get_output(d.c, 0), 0);
        check_near(out.v.real[1], crd_circuit_get_output(d.c, 1), 0);
        check_near(get_one(u, "drive"), curve(t + 1e-3), 1e-12); // it has moved along
    }
    check(fabs(out.v.real[0]) > 0.1);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    clear_direct(&d);
    crd_context_destroy(ctx);
}

static void inner_steps_divide_the_communication_step(void** state)
{
    (void)state;
    static const struct {
        double asked, macro;
        int inner;
    } rows[] = {
        {0.3e-3, 1e-3, 4}, {1e-3, 1e-3, 1}, {5e-3, 1e-3, 1}, {0.1e-3, 1e-3, 10}, {NAN, 1e-3, 4}};
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        spec.netlist.step = rows[i].asked;
        crd_unit* u = make(ctx, &spec);
        direct d = make_direct(ctx, filter, rows[i].macro / rows[i].inner, 1);
        start(u, 0, 0.1); // the communication step is not known: the first step says it
        for (int n = 0; n < 10; n++) {
            step(u, n * rows[i].macro, rows[i].macro);
            for (int k = 0; k < rows[i].inner; k++) {
                check_ok(crd_circuit_step(d.c));
            }
            check_near(get_one(u, "out"), crd_circuit_get_output(d.c, 0), 1e-15);
        }
        crd_unit_destroy(u);
        clear_direct(&d);
    }
    crd_context_destroy(ctx);
}

// Largest error of a low-pass of 1 ms behind a parabola, over 10 ms in inner steps of h: of its
// voltage, and of its current in mA, which follows the input at once.
static double parabola_error(crd_context* ctx, crd_netlist_method method, double h)
{
    static const char text[] = "t\n.input u start=1\nV1 1 0 input(u)\nR1 1 2 1k\nC1 2 0 1u ic=0\n"
                               ".output y=v(2) i=i(R1)\n.tran 1m 1 uic\n";
    const double tau = 1e-3, b = 20 - 600 * tau, a = 1 - b * tau;
    crd_unit_spec spec = circuit_spec(write_file("unit_parabola.cir", text));
    spec.netlist.method = method;
    spec.netlist.step = h;
    crd_unit* u = make(ctx, &spec);
    bound in = bind_names(u, "u");
    double worst = 0;
    start(u, 0, 1);
    for (int n = 0; n < 10; n++) {
        const double t = n * 1e-3, e = t + 1e-3, d1 = 20 + 600 * t, d2 = 600;
        const double* const slopes[] = {&d1, &d2};
        in.v.real[0] = curve(t);
        set(&in);
        check_ok(u->ops->derivatives->set(u, in.b, slopes, 2));
        step(u, t, 1e-3);
        const double want = a + b * e + 300 * e * e - a * exp(-e / tau);
        worst = fmax(worst, fabs(get_one(u, "y") - want));
        worst = fmax(worst, fabs(1e3 * get_one(u, "i") - (curve(e) - want)));
    }
    unbind(&in);
    crd_unit_destroy(u);
    return worst;
}

static void moving_inputs_keep_the_order_of_the_method(void** state)
{
    (void)state;
    static const struct {
        crd_netlist_method method;
        double order;
    } rows[] = {{CRD_NETLIST_BDF1, 1}, {CRD_NETLIST_BDF2, 2},   {CRD_NETLIST_BDF3, 2.5},
                {CRD_NETLIST_TR, 2},   {CRD_NETLIST_GAUSS2, 2}, {CRD_NETLIST_TRBDF2, 2}};
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double coarse = parabola_error(ctx, rows[i].method, 1e-3 / 16);
        const double fine = parabola_error(ctx, rows[i].method, 1e-3 / 32);
        if (!(coarse < 0.05 && log2(coarse / fine) > rows[i].order - 0.2)) {
            fail_msg("method %d: errors of %g and %g", (int)rows[i].method, coarse, fine);
        }
    }
    crd_context_destroy(ctx);
}

// Steps of any length: the solution stays that of the circuit, to the error of its method.
static void steps_may_vary(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    static const crd_netlist_method methods[] = {CRD_NETLIST_TR, CRD_NETLIST_BDF2};
    for (size_t i = 0; i < 2; i++) {
        spec.netlist.method = methods[i];
        spec.netlist.step = 10e-6;
        crd_unit* u = make(ctx, &spec);
        direct d = make_direct(ctx, filter, 5e-6, 1);
        start(u, 0, 0.1);
        double t = 0;
        for (int n = 0; n < 20; n++) {
            const double h = 1e-3 * (1 + 0.5 * (n % 3)); // 1, 1.5, 2 ms
            step(u, t, h);
            t += h;
            for (int k = 0; k < (int)lround(h / 5e-6); k++) {
                check_ok(crd_circuit_step(d.c));
            }
            check_near(get_one(u, "out"), crd_circuit_get_output(d.c, 0), 1e-4);
        }
        check_near(crd_circuit_time(d.c), t, 1e-12);
        crd_unit_destroy(u);
        clear_direct(&d);
    }
    crd_context_destroy(ctx);
}

static void a_restored_state_goes_on_as_it_would_have(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    static const crd_netlist_method methods[] = {CRD_NETLIST_TR, CRD_NETLIST_BDF3,
                                                 CRD_NETLIST_TRBDF2, CRD_NETLIST_GAUSS2};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        spec.netlist.method = methods[m];
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 0.1);
        for (int n = 0; n < 5; n++) {
            step(u, n * 1e-3, 1e-3);
        }
        void* saved = NULL;
        check_ok(u->ops->state->save(u, &saved));
        const double before = get_one(u, "out");
        double want[2][5];
        for (int pass = 0; pass < 3; pass++) {
            for (int n = 0; n < 5; n++) {
                set_one(u, "drive", 3 - n);
                step(u, (5 + n) * 1e-3, 1e-3);
                const double y[2] = {get_one(u, "out"), get_one(u, "current")};
                for (int k = 0; k < 2; k++) {
                    if (pass == 0) { want[k][n] = y[k]; }
                    check_near(y[k], want[k][n], 0);
                }
            }
            if (pass == 1) { step(u, 10e-3, 0.7e-3); } // other inner steps meanwhile
            check_ok(u->ops->state->restore(u, saved));
            check_near(get_one(u, "out"), before, 0);
        }
        // the same room again, without an allocation
        const int64_t allocations = a.allocations;
        check_ok(u->ops->state->save(u, &saved));
        check_ok(u->ops->state->restore(u, saved));
        check_int(a.allocations, allocations);
        u->ops->state->free(u, &saved);
        check(!saved);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void outputs_have_derivatives(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    spec.netlist.step = 20e-6;
    crd_unit* u = make(ctx, &spec);
    check_int(u->info.max_output_order, 1);
    start(u, 0, 0.1);
    bound out = bind_names(u, "out current"), both = bind_names(u, "drive out");
    double d[2] = {1, 1};
    check_ok(u->ops->derivatives->get(u, out.b, 1, d)); // from here on they are kept
    for (int n = 0; n < 20; n++) {
        step(u, n * 1e-3, 1e-3);
        get(&out);
        check_ok(u->ops->derivatives->get(u, out.b, 1, d));
        // C v' = i_L + i_s
        const double t = (n + 1) * 1e-3, source = 0.1 * sin(2 * M_PI * 50 * t);
        const double want = (out.v.real[1] + source) / 100e-6;
        check_near(d[0], want, 2e-3 * 300);
    }
    const double slope = 7;
    const double* const slopes[] = {&slope, &slope};
    check_ok(u->ops->derivatives->set(u, both.b, slopes, 1));
    check_ok(u->ops->derivatives->get(u, both.b, 1, d));
    check_near(d[0], 7, 0); // an input: what was set
    unbind(&out);
    unbind(&both);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- parameters --------------------------------------------------------------------------------

static void parameters_are_those_of_the_netlist(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const char text[] = "divider\n"
                               ".param a=1k b={2*a}\n"
                               ".input u unit=V start=3\n"
                               "Vin 1 0 input(u)\n"
                               "R1 1 2 {a}\n"
                               "R2 2 0 {b}\n"
                               "C1 2 0 1u\n"
                               ".output y=v(2)\n"
                               ".end\n";
    crd_unit_spec spec = circuit_spec(write_file("unit_divider.cir", text));
    crd_unit* u = make(ctx, &spec);
    check_int(u->info.variable_count, 4);
    check_text(u->info.variables[0].name, "a");
    check_text(u->info.variables[1].start, "2000");
    check_text(u->info.variables[2].start, "3");
    check_int(u->ops->find(u, "B"), 1); // names have no case
    start(u, 0, 1);
    check_near(get_one(u, "y"), 2, 1e-9);
    crd_unit_destroy(u);
    const crd_setting settings[] = {{"A", "500", NO_PLACE}, {"u", "9", NO_PLACE}};
    spec.parameters = settings;
    spec.parameter_count = 2;
    u = make(ctx, &spec);
    for (int life = 0; life < 2; life++) { // and again after a reset
        start(u, 0, 1);
        check_near(get_one(u, "a"), 500, 0);
        check_near(get_one(u, "u"), 9, 0);
        check_near(get_one(u, "y"), 6, 1e-9); // b follows a... unless it is given itself
        bound b = bind_names(u, "b");
        b.v.real[0] = 1;
        check_status(u->ops->set(u, b.b, &b.v), CRD_E_STATE);
        check_contains(crd_error_text(u->ctx), "'b'");
        unbind(&b);
    }
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &(crd_experiment){0}));
    set_one(u, "b", 500);
    check_near(get_one(u, "y"), 4.5, 1e-9);
    set_one(u, "b", 1000);
    set_one(u, "u", 3);
    check_near(get_one(u, "y"), 2, 1e-9);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void mistakes_are_told_when_the_unit_is_made(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    static const struct {
        const char *text, *parameter, *value;
        double step;
        crd_status status;
        const char *part, *second;
    } rows[] = {
        {NULL, NULL, NULL, NAN, CRD_E_NOT_FOUND, "unit_none.cir", "unit 'c'"},
        {"t\nR1 1 0 1\nV1 1 0 bad\n.end\n", NULL, NULL, NAN, CRD_E_FORMAT, "unit_bad.cir:3", "bad"},
        {"t\n.param gain=1\nV1 1 0 1\nR1 1 0 {gain}\n.output v(1)\n.end\n", "gian", "2", NAN,
         CRD_E_NOT_FOUND, "no variable 'gian'", "did you mean 'gain'?"},
        {"t\n.param gain=1\nV1 1 0 1\nR1 1 0 {gain}\n.output y=v(1)\n.end\n", "gain", "hot", NAN,
         CRD_E_RANGE, "'hot'", "gain"},
        {"t\n.param gain=1\nV1 1 0 1\nR1 1 0 {gain}\n.output y=v(1)\n.end\n", "y", "1", NAN,
         CRD_E_RANGE, "'y'", "output"},
        {"t\nV1 1 0 1\nV2 1 0 2\n.end\n", NULL, NULL, NAN, CRD_E_RANGE, "v2", "unit 'c'"},
        {"t\n.param R=1\nV1 1 0 1\nR1 1 0 {1/R}\n.output v(1)\n.end\n", "r", "0", NAN, CRD_E_RANGE,
         "unit_bad.cir:4", "unit 'c'"},
        {"t\nV1 1 0 1\nR1 1 0 1\n.end\n", NULL, NULL, -1, CRD_E_RANGE, "solver.step = -1", "> 0"},
        {"t\n.input y\nV1 1 0 input(y)\nR1 1 0 1\n.output y=v(1)\n.end\n", NULL, NULL, NAN,
         CRD_E_RANGE, "'y' is the name of two things", "unit_bad.cir"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crd_setting setting = {rows[i].parameter, rows[i].value, {"s.yaml", 7}};
        crd_unit_spec spec = circuit_spec(rows[i].text ? write_file("unit_bad.cir", rows[i].text)
                                                       : TEST_BUILD_DIR "/unit_none.cir");
        spec.netlist.step = rows[i].step;
        spec.parameters = &setting;
        spec.parameter_count = rows[i].parameter ? 1 : 0;
        crd_unit* u = NULL;
        const crd_status st = crd_unit_create(ctx, &spec, &u);
        if (st != rows[i].status || !strstr(crd_error_text(ctx), rows[i].part) ||
            !strstr(crd_error_text(ctx), rows[i].second)) {
            fail_msg("row %zu: %s: %s", i, crd_status_name(st), crd_error_text(ctx));
        }
    }
    check_int(log.used, 0);
    const crd_unit_spec spec =
        circuit_spec(write_file("unit_bad.cir", "t\nV1 1 0 1\nR1 1 0 1\n.end\n"));
    crd_unit_destroy(make(ctx, &spec));
    check_contains(log.text, "neither .input nor .output");
    crd_context_destroy(ctx);
}

// A source that Newton's method cannot follow: the current of the law turns faster than it.
static void a_step_that_fails_names_the_part_and_the_time(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const char text[] = "runaway\n"
                               ".input u\n"
                               "Vin 1 0 input(u)\n"
                               "R1 1 2 1\n"
                               "C1 2 0 1 ic=0\n"
                               "Bbad 2 0 i={sqrt(1-v(1))}\n"
                               ".output y=v(2)\n"
                               ".tran 1m 1 uic\n"
                               ".end\n";
    const crd_unit_spec spec = circuit_spec(write_file("unit_runaway.cir", text));
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.01);
    set_one(u, "u", 2);
    const crd_status st = u->ops->step(u, 0.01, 0.01);
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(u->ctx), "at t = 0.011 s");
    check_contains(crd_error_text(u->ctx), "bbad");
    bound in = bind_names(u, "u");
    in.v.real[0] = NAN;
    set(&in);
    check_status(u->ops->step(u, 0.01, 0.01), CRD_E_RANGE);
    check_contains(crd_error_text(u->ctx), "input u = nan");
    check_status(u->ops->step(u, 0.01, 0), CRD_E_RANGE);
    unbind(&in);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- memory ------------------------------------------------------------------------------------

static void creating_survives_lack_of_memory(void** state)
{
    (void)state;
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    check_survives_lack_of_memory(&spec);
    const crd_setting setting = {"r", "20", NO_PLACE}; // the netlist is read twice
    spec.parameters = &setting;
    spec.parameter_count = 1;
    check_survives_lack_of_memory(&spec);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    for (int form = CRD_NETLIST_AUTO; form <= CRD_NETLIST_DAE; form++) {
        spec.netlist.form = (crd_netlist_form)form;
        crd_unit* u = make(ctx, &spec);
        u->step = 1e-3;
        start(u, 0, 100);
        check_steps_do_not_allocate(&a, u, "drive", "out current", 1e-3);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// ---- feedthrough -------------------------------------------------------------------------------

static void feedthrough_is_told_from_states(void** state)
{
    (void)state;
    static const struct {
        const char* parts;
        const char *output, *inputs; // of u (voltage) and j (current): which act on it at once
    } rows[] = {
        // behind an inductor or on a capacitor nothing is at once
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "v(2)", ""},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "v(1)", "u"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "v(1,2)", "u"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "i(R1)", "u"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "i(Vin)", "u"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "i(C1)", "uj"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nC1 2 0 1\nI1 0 2 input(j)\n", "2*v(2)+j", "j"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nL1 2 3 1\nC1 3 0 1\nI1 0 3 input(j)\n", "i(L1)", ""},
        // an ammeter in series with an inductor
        {"Vin 1 0 input(u)\nVa 1 2 0\nL1 2 3 1\nR1 3 0 1\nI1 0 3 input(j)\n", "i(Va)", ""},
        {"Vin 1 0 input(u)\nVa 1 2 0\nL1 2 3 1\nR1 3 0 1\nI1 0 3 input(j)\n", "v(3)", "j"},
        // dividers of resistors see what is beside them only
        {"Vin 1 0 input(u)\nR1 1 2 1\nR2 2 3 1\nC1 3 0 1\nR3 3 4 1\nR4 4 0 1\nI1 0 4 input(j)\n",
         "v(2)", "u"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nR2 2 3 1\nC1 3 0 1\nR3 3 4 1\nR4 4 0 1\nI1 0 4 input(j)\n",
         "v(4)", "j"},
        {"Vin 1 0 input(u)\nR1 1 2 1\nR2 2 3 1\nC1 3 0 1\nR3 3 4 1\nR4 4 0 1\nI1 0 4 input(j)\n",
         "v(2,4)", "uj"},
        // a capacitor that a source holds, and a divider of capacitors
        {"Vin 1 0 input(u)\nC1 1 0 1\nR1 1 0 1\nI1 0 2 input(j)\nC2 2 0 1\n", "v(1)", "u"},
        {"Vin 1 0 input(u)\nC1 1 2 1\nC2 2 0 1\nI1 0 2 input(j)\nR1 2 0 1\n", "v(2)", "u"},
        {"Vin 1 0 input(u)\nR0 1 2 1\nC1 2 3 1\nC2 3 0 1\nI1 0 3 input(j)\nR1 3 0 1\n", "v(3)", ""},
        // an inductor that a source drives: its current is no state
        {"Vin 1 0 input(u)\nR1 1 0 1\nI1 0 2 input(j)\nL1 2 0 1\n", "i(L1)", "uj"},
        // controlled sources carry it along
        {"Vin 1 0 input(u)\nR1 1 0 1\nE1 2 0 1 0 5\nR2 2 3 1\nC1 3 0 1\nI1 0 3 input(j)\n", "v(2)",
         "u"},
        {"Vin 1 0 input(u)\nR1 1 0 1\nG1 0 2 1 0 5\nR2 2 0 1\nI1 0 3 input(j)\nC1 3 0 1\n", "v(2)",
         "u"},
        {"Vin 1 0 input(u)\nR1 1 0 1\nB1 2 0 v={j*2}\nR2 2 3 1\nR3 3 0 1\nI1 0 4 input(j)\n"
         "C1 4 0 1\n",
         "v(3)", "j"},
        {"Vin 1 0 input(u)\nR1 1 0 1\nF1 0 2 Vin 2\nR2 2 0 1\nI1 0 3 input(j)\nC1 3 0 1\n", "v(2)",
         "uj"}, // not seen through, so: everything
    };
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1000];
        snprintf(text, sizeof text, "t\n.input u\n.input j\n%s.output y=%s\n.tran 1m 1 uic\n.end\n",
                 rows[i].parts, rows[i].output);
        const crd_unit_spec spec = circuit_spec(write_file("unit_feed.cir", text));
        crd_unit* u = make(ctx, &spec);
        char got[3] = "";
        for (int k = 0; k < 2; k++) {
            if (crd_unit_depends(u, 2, k, false)) { strcat(got, k ? "j" : "u"); }
            check_int(crd_unit_depends(u, 2, k, true), crd_unit_depends(u, 2, k, false));
        }
        if (strcmp(got, rows[i].inputs) != 0) {
            fail_msg("row %zu: %s depends on '%s', expected '%s'", i, rows[i].output, got,
                     rows[i].inputs);
        }
        crd_unit_destroy(u);
    }
    // An operating point depends on every input.
    const crd_unit_spec spec = circuit_spec(write_file(
        "unit_feed.cir", "t\n.input u\nV 1 0 input(u)\nR 1 2 1\nC 2 0 1\n.output y=v(2)\n"));
    crd_unit* u = make(ctx, &spec);
    check(crd_unit_depends(u, 1, 0, true));
    check(!crd_unit_depends(u, 1, 0, false));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// One input and one output of a unit that has made some steps.
static crd_status linearise(crd_context* ctx, const char* text, const char* in, const char* out,
                            crd_linearised* l, crd_unit** unit)
{
    const crd_unit_spec spec = circuit_spec(write_file("unit_linear.cir", text));
    static crd_unit_spec kept;
    kept = spec;
    crd_unit* u = *unit = make(ctx, &kept);
    start(u, 0, 1);
    for (int n = 0; n < 5; n++) {
        step(u, n * 1e-3, 1e-3);
    }
    const double before = get_one(u, out);
    const crd_unit_port input = {u->ops->find(u, in), 0}, output = {u->ops->find(u, out), 0};
    const crd_status st = crd_unit_linearise(u, &input, 1, &output, 1, l);
    check_near(get_one(u, out), before, 0); // it stays where it was
    return st;
}

static void circuits_are_linearised(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_linearised l;
    crd_unit* u = NULL;
    if (linearise(ctx, filter, "drive", "out", &l, &u) < 0) {
        fail_msg("%s", crd_error_text(u->ctx));
    }
    check_int(l.states, 2);
    check(l.exact && !l.guessed);
    const double want_a[] = {0, 1 / 100e-6, -1 / 10e-3, -10 / 10e-3};
    const double want_b[] = {0, 1 / 10e-3}, want_c[] = {1, 0};
    for (int i = 0; i < 4; i++) {
        check_near(l.A[i], want_a[i], 1e-9 * 1e4);
        check_near((i < 2 ? l.B : l.C)[i % 2], (i < 2 ? want_b : want_c)[i % 2], 1e-9 * 100);
    }
    check_near(l.D[0], 0, 1e-12);
    crd_linearised_clear(&l);
    crd_unit_destroy(u);
    // a diode: its conductance at the point, and a source that acts at once
    static const char diode[] = "t\n.input u start=0.8\nV1 1 0 input(u)\nR1 1 2 100\n"
                                "D1 2 0 d\nC1 2 0 1u ic=0.6\n.model d d(is=1e-12)\n"
                                ".output y=v(2)+3*u\n.output v2=v(2)\n.tran 10u 1 uic\n";
    if (linearise(ctx, diode, "u", "y", &l, &u) < 0) { fail_msg("%s", crd_error_text(u->ctx)); }
    check_int(l.states, 1);
    check(!l.exact);
    const double vt = 1.380649e-23 * 300.15 / 1.602176634e-19;
    const double g = 1e-12 / vt * exp(get_one(u, "v2") / vt);
    check(g > 1e-4);
    check_near(l.A[0], -(1 / 100. + g) / 1e-6, 1e-3 * (1 / 100. + g) / 1e-6);
    check_near(l.B[0], 1 / 100. / 1e-6, 1e-4 * 1e4);
    check_near(l.C[0], 1, 1e-6);
    check_near(l.D[0], 3, 1e-6);
    crd_linearised_clear(&l);
    crd_unit_destroy(u);
    // coupled inductors: L i' = v
    static const char coupled[] = "t\n.input u\nV1 1 0 input(u)\nR1 1 2 1\nL1 2 0 4\nL2 3 0 1\n"
                                  "K1 L1 L2 0.5\nR2 3 0 1\n.output y=i(L2)\n.tran 1m 1 uic\n";
    if (linearise(ctx, coupled, "u", "y", &l, &u) < 0) { fail_msg("%s", crd_error_text(u->ctx)); }
    // [4 1; 1 1]^-1 = [1 -1; -1 4] / 3, v = [u - i1; -i2]
    const double want[] = {-1 / 3., 1 / 3., 1 / 3., -4 / 3.};
    for (int i = 0; i < 4; i++) {
        check_near(l.A[i], want[i], 1e-9);
    }
    check_near(l.B[0], 1 / 3., 1e-9);
    check_near(l.B[1], -1 / 3., 1e-9);
    crd_linearised_clear(&l);
    crd_unit_destroy(u);
    static const struct {
        const char *parts, *part;
    } rows[] = {{"C1 1 0 1\nR1 1 2 1\nC2 2 0 1\n", "is in a loop of capacitors"},
                {"R1 1 2 1\nD1 2 0 d\nC1 2 0 1\n.model d d(cjo=1p)\n", "has a charge"}};
    for (size_t i = 0; i < 2; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "t\n.input u\nV1 1 0 input(u)\n%s.output y=v(2)\n.tran 1m 1 uic\n", rows[i].parts);
        check_status(linearise(ctx, text, "u", "y", &l, &u), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(u->ctx), rows[i].part);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void linearising_survives_lack_of_memory(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = circuit_spec(write_file("unit_filter.cir", filter));
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    const crd_unit_port in = {u->ops->find(u, "drive"), 0}, out = {u->ops->find(u, "out"), 0};
    const int64_t live = a.live;
    crd_linearised l;
    int64_t n = 0;
    for (;; n++) {
        a.allocations = 0;
        a.fail_at = n;
        const crd_status st = crd_unit_linearise(u, &in, 1, &out, 1, &l);
        const bool overlooked = st == CRD_OK && a.fail_at < 0;
        a.fail_at = -1;
        check(!overlooked);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(n > 10);
    crd_linearised_clear(&l);
    check_int(a.live, live);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// ---- systems -----------------------------------------------------------------------------------

static const char whole[] = "both halves\n"
                            "Vs 1 0 sin(0 10 20)\n"
                            "R1 1 2 5\n"
                            "L1 2 3 20m\n"
                            "C1 3 0 200u\n"
                            "R2 3 0 50\n"
                            ".output v=v(3)\n"
                            ".tran 10u 0.1 uic\n"
                            ".end\n";
static const char source_half[] = "source half\n"
                                  ".input v source=Vload unit=V\n"
                                  "Vs 1 0 sin(0 10 20)\n"
                                  "R1 1 2 5\n"
                                  "L1 2 3 20m\n"
                                  "Vload 3 0 0\n"
                                  ".output i=i(L1) unit=A\n"
                                  ".tran 10u 0.1 uic\n"
                                  ".end\n";
static const char load_half[] = "load half\n"
                                ".input i source=Isource unit=A\n"
                                "Isource 0 3 0\n"
                                "C1 3 0 200u\n"
                                "R2 3 0 50\n"
                                ".output v=v(3) unit=V\n"
                                ".tran 10u 0.1 uic\n"
                                ".end\n";

// Largest difference of the load's voltage from that of the whole circuit, at the rows of a run.
static double run_halves(crd_context* ctx, double h, const char* load_keys, const char* run_keys)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    crd_table* table = NULL;
    char text[1000];
    (void)write_file("unit_source_half.cir", source_half);
    (void)write_file("unit_load_half.cir", load_half);
    snprintf(text, sizeof text,
             "cardan: 1\n"
             "units:\n"
             "  source: { circuit: unit_source_half.cir }\n"
             "  load: { circuit: unit_load_half.cir%s }\n"
             "connections: [ source.i -> load.i, load.v -> source.v ]\n"
             "bonds: [ [source.i, load.v] ]\n"
             "run: { step: %.10g, stop: 0.1 s%s }\n"
             "results: { file: unit_halves.csv, interval: 4 ms }\n",
             load_keys, h, run_keys);
    if (crd_system_parse(ctx, text, strlen(text), TEST_BUILD_DIR "/halves.yaml", &s) < 0 ||
        crd_master_create(ctx, s, NULL, &m) < 0 || crd_master_run(m) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
    check_ok(crd_table_read(ctx, TEST_BUILD_DIR "/unit_halves.csv", &table));
    const crd_netlist_options read = {.max_parts = 1000};
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 10e-6;
    crd_netlist* n = NULL;
    crd_circuit* c = NULL;
    check_ok(crd_netlist_parse(ctx, whole, strlen(whole), "whole", &read, &n));
    check_ok(crd_circuit_create(ctx, n, &opt, &c));
    check_ok(crd_circuit_begin(c, 0));
    const crd_table_column* column = NULL;
    for (int i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, "load.v") == 0) { column = &table->columns[i]; }
    }
    check(column != NULL);
    check_int(column->rows, 26);
    double worst = 0;
    for (int64_t row = 0; row < column->rows; row++) {
        while (crd_circuit_time(c) < column->time[row] - 1e-9) {
            check_ok(crd_circuit_step(c));
        }
        worst = fmax(worst, fabs(column->values[row] - crd_circuit_get_output(c, 0)));
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_table_destroy(table);
    return worst;
}

static void two_halves_make_the_whole_circuit(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    // Of volts up to 9. The error falls as the order of the inputs' polynomials says.
    static const struct {
        const char* keys;
        double most, order;
    } rows[] = {{", predict: hold", 0.6, 1},
                {", predict: linear", 0.07, 2},
                {", predict: taylor1", 0.035, 2},
                {", predict: quadratic", 0.02, 3},
                {", scheme: gauss-seidel", 0.01, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double coarse = run_halves(ctx, 0.5e-3, "", rows[i].keys);
        const double fine = run_halves(ctx, 0.25e-3, "", rows[i].keys);
        if (!(coarse < rows[i].most && fine < coarse * pow(2, 0.4 - rows[i].order))) {
            fail_msg("%s: errors of %g V and %g V", rows[i].keys, coarse, fine);
        }
    }
    check(run_halves(ctx, 0.5e-3, "", "") < 0.07);
    // The load steps more often than the source, whose polynomial it follows all the same. `auto`
    // judges by samples, of which there are others then: it is better than hold, not the same.
    static const char* const predicted = ", predict: taylor1";
    check_near(run_halves(ctx, 0.5e-3, ", step: 0.25 ms", predicted),
               run_halves(ctx, 0.5e-3, "", predicted), 1e-9);
    check(run_halves(ctx, 0.5e-3, ", step: 0.25 ms", "") <
          run_halves(ctx, 0.5e-3, ", step: 0.25 ms", ", predict: hold"));
    // Steps that are rejected, and steps that are repeated until inputs and outputs fit
    check(run_halves(ctx, 0.5e-3, "", ", control: { tolerance: 1e-4, reject: 4 }") < 0.002);
    check(run_halves(ctx, 0.5e-3, "", ", iterate: { tolerance: 1e-8 }") < 2e-5);
    crd_context_destroy(ctx);
}

// Each operating point depends on the other: 10 V over 5 and 50 Ohm.
static void operating_points_are_found_together(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    crd_master* m = NULL;
    crd_table* table = NULL;
    (void)write_file("unit_rest_source.cir", "t\n.input v source=V2 unit=V\nV1 1 0 10\nR1 1 2 5\n"
                                             "L1 2 3 20m\nV2 3 0 0\n.output i=i(L1) unit=A\n");
    (void)write_file("unit_rest_load.cir", "t\n.input i source=I1 unit=A\nI1 0 3 0\nC1 3 0 200u\n"
                                           "R2 3 0 50\n.output v=v(3) unit=V\n");
    static const char text[] = "cardan: 1\n"
                               "units:\n"
                               "  source: { circuit: unit_rest_source.cir }\n"
                               "  load: { circuit: unit_rest_load.cir }\n"
                               "connections: [ source.i -> load.i, load.v -> source.v ]\n"
                               "run: { step: 1 ms, stop: 20 ms }\n"
                               "results: unit_rest.csv\n";
    check_ok(crd_system_parse(ctx, text, strlen(text), TEST_BUILD_DIR "/rest.yaml", &s));
    check_ok(crd_master_create(ctx, s, NULL, &m));
    check_ok(crd_master_run(m));
    const crd_master_report* report = crd_master_get_report(m);
    check_int(report->loop_count, 1);
    check(report->loops[0].converged);
    crd_master_destroy(m);
    crd_system_destroy(s);
    check_ok(crd_table_read(ctx, TEST_BUILD_DIR "/unit_rest.csv", &table));
    for (int64_t row = 0; row < table->columns[0].rows; row++) {
        check_near(table->columns[0].values[row], 10 / 55., 1e-9);
        check_near(table->columns[1].values[row], 500 / 55., 1e-8);
    }
    crd_table_destroy(table);
    crd_context_destroy(ctx);
}

static void a_netlist_alone_is_a_system(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    crd_master* m = NULL;
    crd_table* table = NULL;
    check_ok(crd_system_of_circuit(ctx, write_file("unit_filter.cir", filter), &s));
    check(s->single);
    check_text(s->units[0].name, "unit_filter");
    s->results.path = TEST_BUILD_DIR "/unit_alone.csv";
    check_ok(crd_master_create(ctx, s, NULL, &m));
    check_ok(crd_master_run(m));
    crd_master_destroy(m);
    crd_system_destroy(s);
    check_ok(crd_table_read(ctx, TEST_BUILD_DIR "/unit_alone.csv", &table));
    check_int(table->column_count, 2);
    check_text(table->columns[0].name, "out");
    check_int(table->columns[0].rows, 401); // .tran 0.25m 0.1
    direct d = make_direct(ctx, filter, 0.25e-3, 1);
    for (int n = 0; n <= 400; n++) {
        check_near(table->columns[0].values[n], crd_circuit_get_output(d.c, 0), 0);
        check_ok(crd_circuit_step(d.c));
    }
    clear_direct(&d);
    crd_table_destroy(table);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_gives_the_very_values_of_its_circuit),
        cmocka_unit_test(inner_steps_divide_the_communication_step),
        cmocka_unit_test(moving_inputs_keep_the_order_of_the_method),
        cmocka_unit_test(steps_may_vary),
        cmocka_unit_test(a_restored_state_goes_on_as_it_would_have),
        cmocka_unit_test(outputs_have_derivatives),
        cmocka_unit_test(parameters_are_those_of_the_netlist),
        cmocka_unit_test(mistakes_are_told_when_the_unit_is_made),
        cmocka_unit_test(a_step_that_fails_names_the_part_and_the_time),
        cmocka_unit_test(creating_survives_lack_of_memory),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(feedthrough_is_told_from_states),
        cmocka_unit_test(circuits_are_linearised),
        cmocka_unit_test(linearising_survives_lack_of_memory),
        cmocka_unit_test(two_halves_make_the_whole_circuit),
        cmocka_unit_test(operating_points_are_found_together),
        cmocka_unit_test(a_netlist_alone_is_a_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
