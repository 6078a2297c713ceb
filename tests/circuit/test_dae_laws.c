// The reference form with expressions: behavioural sources, laws of resistors, outputs.
#include "cardan/circuit.h"
#include "check.h"

static crd_circuit* begin(crd_context* ctx, const char* text, crd_circuit_options o,
                          crd_netlist** n)
{
    const crd_netlist_options options = {.max_parts = 1000};
    crd_circuit* c = NULL;
    o.form = CRD_FORM_DAE;
    if (crd_netlist_parse(ctx, text, strlen(text), "test.cir", &options, n) < 0 ||
        crd_circuit_create(ctx, *n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return c;
}

static crd_circuit_options with(crd_circuit_method method, double step)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = method;
    o.step = step;
    return o;
}

static void end(crd_circuit* c, crd_netlist* n)
{
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static double voltage(const crd_circuit* c, const crd_netlist* n, const char* node)
{
    return crd_circuit_voltage(c, crd_netlist_node(n, node));
}

static void run(crd_context* ctx, crd_circuit* c, int steps)
{
    for (int i = 0; i < steps; i++) {
        if (crd_circuit_step(c) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    }
}

// C v' = -k v^2 has the solution v = v0 / (1 + k v0 t / C).
static void a_quadratic_load_discharges_as_it_should(void** state)
{
    static const crd_circuit_method methods[] = {CRD_METHOD_BDF3, CRD_METHOD_TR, CRD_METHOD_TRBDF2,
                                                 CRD_METHOD_GAUSS2, CRD_METHOD_GAUSS4};
    static const double tolerance[] = {1e-5, 1e-4, 1e-4, 1e-8, 1e-12};
    for (int i = 0; i < 5; i++) {
        crd_netlist* n = NULL;
        crd_circuit* c = begin(*state, "quadratic\nc1 a 0 1m ic=2\nb1 a 0 i=1m*v(a)*v(a)\n.end\n",
                               with(methods[i], 0.01), &n);
        run(*state, c, 100);
        check_near(voltage(c, n, "a"), 2. / 3, tolerance[i]);
        end(c, n);
    }
}

static void two_methods_agree_on_a_van_der_pol_oscillator(void** state)
{
    static const char text[] = "oscillator\nc1 a 0 1 ic=1\nl1 a 0 1 ic=0\n"
                               "b1 a 0 i=v(a)*v(a)*v(a)/3-v(a)\n.end\n";
    crd_netlist *n = NULL, *m = NULL;
    crd_circuit* c = begin(*state, text, with(CRD_METHOD_GAUSS4, 0.05), &n);
    crd_circuit* d = begin(*state, text, with(CRD_METHOD_BDF3, 0.001), &m);
    run(*state, c, 200);
    run(*state, d, 10000);
    check_near(voltage(c, n, "a"), voltage(d, m, "a"), 1e-6);
    end(c, n);
    end(d, m);
}

static void a_behavioural_voltage_may_use_time_currents_and_pairs(void** state)
{
    crd_netlist* n = NULL;
    crd_circuit* c = begin(*state,
                           "uses\nv1 a 0 2\nr1 a b 4\nr2 b 0 4\n"
                           "b1 c 0 v=10*i(r1)+v(a,b)*time\nr3 c 0 1\n.end\n",
                           with(CRD_METHOD_TR, 0.5), &n);
    check_near(voltage(c, n, "c"), 2.5, 1e-12);
    run(*state, c, 4);
    check_near(voltage(c, n, "c"), 2.5 + 2, 1e-12);
    end(c, n);
}

static void outputs_and_inputs_are_served(void** state)
{
    crd_netlist* n = NULL;
    crd_circuit* c = begin(*state,
                           "io\nv1 a 0 0\nr1 a b 1k\nr2 b 0 1k\n.input v1 start=3\n"
                           ".output half={2*v(b)}\n.end\n",
                           with(CRD_METHOD_TR, 0.1), &n);
    check_int(n->input_count, 1);
    check_int(n->output_count, 1);
    check_near(crd_circuit_get_output(c, 0), 3, 1e-12);
    check_ok(crd_circuit_set_input(c, 0, 8));
    run(*state, c, 1);
    check_near(crd_circuit_get_output(c, 0), 8, 1e-12);
    check(isnan(crd_circuit_get_output(c, 1)));
    end(c, n);
}

static void a_division_by_zero_names_its_part_and_keeps_the_state(void** state)
{
    crd_netlist* n = NULL;
    crd_circuit* c = begin(*state,
                           "pole\nc1 a 0 1 ic=1\nb1 a 0 i=1/(time-0.375)\n"
                           ".end\n",
                           with(CRD_METHOD_BDF1, 0.125), &n);
    run(*state, c, 2);
    const double before = voltage(c, n, "a");
    check_status(crd_circuit_step(c), CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "b1");
    check(voltage(c, n, "a") == before);
    check(crd_circuit_time(c) == 0.25);
    end(c, n);
}

static void a_rectifier_in_words_is_the_one_made_by_hand(void** state)
{
    static const char text[] =
        "rectifier\nV1 2 0 sin(0 100 5)\nD1 2 3 dm\nD2 0 3 dm\nD3 5 2 dm\nD4 5 0 dm\nR1 3 4 10\n"
        "L1 4 5 100m ic=0\n.model dm d(is=1e-15 n=1.5 rs=1m)\n.options temp=26.85 tnom=26.85\n"
        ".end\n";
    crd_netlist* n = NULL;
    crd_circuit* c = begin(*state, text, with(CRD_METHOD_TR, 0.5e-3), &n);
    const crd_circuit_structure s = crd_circuit_get_structure(c);
    check_int(s.variables, 20);
    check_int(s.constraints, 19);
    check_int(s.differential, 1);
    run(*state, c, 2000);
    check_near(voltage(c, n, "2") - voltage(c, n, "3"), 1.3504928020761811, 1e-4);
    check_near(crd_circuit_current(c, crd_netlist_part(n, "l1")), 2.5789458930241729, 2e-4);
    end(c, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quadratic_load_discharges_as_it_should),
        cmocka_unit_test(two_methods_agree_on_a_van_der_pol_oscillator),
        cmocka_unit_test(a_behavioural_voltage_may_use_time_currents_and_pairs),
        cmocka_unit_test(outputs_and_inputs_are_served),
        cmocka_unit_test(a_division_by_zero_names_its_part_and_keeps_the_state),
        cmocka_unit_test(a_rectifier_in_words_is_the_one_made_by_hand),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
