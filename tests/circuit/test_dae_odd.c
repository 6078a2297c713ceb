// Odd circuits: what has no solution is refused by its reason, what has one is found, and what
// fails on the way says where, when and why.
#include "circuit/build.h"
#include "circuit/dae.h"

static build b;

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    const crd_netlist_options o = {.max_parts = 1000};
    if (crd_netlist_parse(ctx, text, strlen(text), "odd.cir", &o, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

static crd_status create(crd_context* ctx, const crd_netlist* n, crd_circuit_method method,
                         crd_circuit** out)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = method;
    o.step = 1e-4;
    o.form = CRD_FORM_DAE;
    return crd_circuit_create(ctx, n, &o, out);
}

static crd_circuit* begin(crd_context* ctx, const crd_netlist* n, crd_circuit_method method)
{
    crd_circuit* c = NULL;
    if (create(ctx, n, method, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return c;
}

// ---- singular circuits -------------------------------------------------------------------------

static void check_refused(crd_context* ctx, const char* text, crd_circuit_method method,
                          crd_status want, const char* first, const char* second)
{
    crd_netlist* n = parse(ctx, text);
    crd_circuit* c = NULL;
    const crd_status st = create(ctx, n, method, &c);
    if (st != want || !strstr(crd_error_text(ctx), first) || !strstr(crd_error_text(ctx), second)) {
        fail_msg("%s\n%s: %s", text, crd_status_name(st), crd_error_text(ctx));
    }
    crd_netlist_destroy(n);
}

static void nodes_that_only_currents_reach_are_refused(void** state)
{
    const crd_circuit_method tr = CRD_METHOD_TR;
    // controlled by a current, by a voltage elsewhere, by an expression
    check_refused(*state, "f\nV1 1 0 1\nR1 1 0 1\nF1 0 2 V1 2\nC1 2 3 1u\n.end\n", tr, CRD_E_RANGE,
                  "odd.cir:4: a cutset of current sources", "f1");
    check_refused(*state, "g\nV1 1 0 1\nR1 1 0 1\nG1 0 2 1 0 2\nR2 2 3 1\n.end\n", tr, CRD_E_RANGE,
                  "cutset of current sources", "g1");
    check_refused(*state, "b\nV1 1 0 1\nR1 1 0 1\nB1 0 2 I=v(1)\nR2 2 3 1\n.end\n", tr, CRD_E_RANGE,
                  "cutset of current sources", "b1");
    check_refused(*state, "g\nV1 1 0 1\nR1 1 0 1\nG1 2 3 2 3 1\nR2 2 3 1\n.end\n", tr, CRD_E_RANGE,
                  "floats", "node 2");
}

static void currents_that_depend_on_their_own_voltage_are_resistors(void** state)
{
    crd_netlist* n = parse(*state, "g\nI1 0 1 1m\nG1 1 0 1 0 1m\nI2 0 2 1m\n"
                                   "B1 2 0 I=1m*v(2)\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR);
    check_ok(crd_circuit_step(c));
    check_near(crd_circuit_voltage(c, crd_netlist_node(n, "1")), 1, 1e-9);
    check_near(crd_circuit_voltage(c, crd_netlist_node(n, "2")), 1, 1e-9);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void what_nothing_determines_is_refused(void** state)
{
    // a current leads to node 3, and E1 looks at it: nothing holds it
    check_refused(*state, "same\nI1 0 3 1\nE1 2 0 3 0 0.5\nR1 2 0 1k\n.end\n", CRD_METHOD_TR,
                  CRD_E_RANGE, "nothing determines", "controlled source");
}

static void a_conductance_that_is_taken_back_is_named_at_its_time(void** state)
{
    crd_netlist* n = parse(*state, "zero\nV1 1 0 1\nR1 1 0 1\nI1 0 2 1m\nR2 2 0 1k\n"
                                   "G1 2 0 2 0 -1m\n.tran 1u 1 uic\n.end\n");
    crd_circuit* c = NULL;
    check_ok(create(*state, n, CRD_METHOD_TR, &c));
    crd_status st = crd_circuit_begin(c, 0);
    if (st == CRD_OK) { st = crd_circuit_step(c); }
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "singular");
    check_contains(crd_error_text(*state), "take it back");
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// ---- Gauss methods -----------------------------------------------------------------------------

static void gauss_methods_refuse_what_they_cannot_follow(void** state)
{
    const crd_circuit_method g = CRD_METHOD_GAUSS2;
    check_refused(*state, "d\nV1 1 0 SIN(0 1 50)\nR1 1 2 1\nD1 2 0 dm\n.model dm d(cjo=1n)\n.end\n",
                  g, CRD_E_UNSUPPORTED, "odd.cir:4: d1", "TRBDF2");
    check_refused(*state,
                  "loop\nV1 1 0 PULSE(0 1 1m 1u 1u 1m 5m)\nC1 1 2 1u\nC2 2 0 1u\n"
                  "R1 2 0 1k\n.end\n",
                  g, CRD_E_UNSUPPORTED, "v1", "capacitors");
    check_refused(*state, "cut\nI1 0 1 PWL(0 0 1m 1 2m 0)\nL1 1 0 1m\n.end\n", g, CRD_E_UNSUPPORTED,
                  "i1", "inductors");
    // the same corners elsewhere, and the same loop without corners
    crd_netlist* n = parse(*state, "fine\nV1 1 0 PULSE(0 1 1m 1u 1u 1m 5m)\nR1 1 2 1k\nC1 2 0 1u\n"
                                   "V2 3 0 SIN(0 1 50)\nC2 3 0 1u\nC3 3 0 1u\n.end\n");
    crd_circuit_destroy(begin(*state, n, g));
    crd_netlist_destroy(n);
}

// ---- beginnings --------------------------------------------------------------------------------

static void sizes_far_apart_have_a_beginning(void** state)
{
    // 1 MF across a source, beside a diode that sees nothing
    build_init(&b);
    b.diodes[0] =
        (crd_diode_model){.is = 1e-14, .n = 1, .vt = 0.0259, .cjo = 1e-9, .vj = 0.8, .m = 0.5};
    b.n.diode_count = 1;
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    build_part(&b, CRD_PART_RESISTOR, "R1", 2, 0, 1e6);
    build_part(&b, CRD_PART_DIODE, "D1", 2, 0, 0)->index = 0;
    build_part(&b, CRD_PART_CAPACITOR, "C1", 1, 0, 1e6);
    crd_circuit* c = begin(*state, &b.n, CRD_METHOD_BDF2);
    check_near(crd_circuit_current(c, 3) / (1e6 * 100 * 10 * M_PI), 1, 1e-4);
    check_near(crd_circuit_voltage(c, 2), 0, 1e-9);
    for (int i = 0; i < 10; i++) {
        run_step(*state, c);
    }
    crd_circuit_destroy(c);
}

static void many_diodes_in_a_row_have_an_operating_point(void** state)
{
    char text[4000] = "row\nV1 n0 0 40\n.model dm d(is=1e-15)\n";
    for (int i = 0; i < 40; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "D%d n%d n%d dm\n", i, i, i + 1);
    }
    strcat(text, "R1 n40 0 1k\n.end\n");
    crd_netlist* n = parse(*state, text);
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR);
    const double i = crd_circuit_current(c, crd_netlist_part(n, "r1"));
    const double vt = n->diodes[0].vt;
    check_near(40 * vt * log1p(i / 1e-15) + 1e3 * i, 40, 1e-6);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void switches_begin_where_they_are_told(void** state)
{
    const char* const text = "hysteresis\nV1 1 0 1\nVc g 0 0\nS1 1 2 g 0 sm %s\nR1 2 0 1k\n"
                             ".model sm sw(vt=0 vh=1 ron=1 roff=1g)\n.end\n";
    for (int on = 0; on < 2; on++) {
        char line[400];
        snprintf(line, sizeof line, text, on ? "on" : "off");
        crd_netlist* n = parse(*state, line);
        crd_circuit* c = begin(*state, n, CRD_METHOD_TR);
        run_step(*state, c);
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "2")), on, 2e-3);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
    }
}

typedef struct lines {
    char text[2000];
    int count;
} lines;

static void take_line(void* user, crd_level level, const char* text)
{
    lines* l = user;
    if (level > CRD_LOG_WARNING) { return; }
    snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s\n", text);
    l->count++;
}

static lines warnings_of(const char* text)
{
    lines l = {.count = 0};
    crd_context_options o = crd_context_defaults();
    o.log = take_line;
    o.log_user = &l;
    crd_context* ctx = crd_context_create(&o);
    crd_netlist* n = parse(ctx, text);
    crd_circuit_destroy(begin(ctx, n, CRD_METHOD_TR));
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return l;
}

static void initial_values_that_contradict_are_named(void** state)
{
    lines l = warnings_of("two\nV1 1 0 5\nR1 1 2 1k\nC1 2 0 1u ic=1\nC2 2 0 1u ic=3\nR2 2 0 1k\n"
                          "C3 3 0 1u ic=2\nR3 3 0 1k\n.end\n");
    check_int(l.count, 2);
    check_contains(l.text, "odd.cir:4: c1 begins with 2, not with ic = 1");
    check_contains(l.text, "odd.cir:5: c2 begins with 2, not with ic = 3");
    l = warnings_of("source\nV1 1 0 5\nC1 1 0 1u ic=4\nR1 1 0 1k\n.end\n");
    check_int(l.count, 1);
    check_contains(l.text, "c1 begins with 5");
    l = warnings_of("node\nV1 1 0 5\nR1 1 2 1k\nR2 2 0 1k\nC3 3 0 1u\nR3 3 0 1\n.ic v(2)=1 v(3)=2\n"
                    ".end\n");
    check_int(l.count, 1);
    check_contains(l.text, "node 2 begins with 2.5");
    l = warnings_of("none\nV1 1 0 5\nR1 1 2 1k\nC1 2 0 1u ic=1\n.end\n");
    check_int(l.count, 0);
}

// ---- values ------------------------------------------------------------------------------------

static void values_of_zero_are_what_ngspice_takes_them_for(void** state)
{
    const lines l = warnings_of("zero\nV1 1 0 1\nR1 1 2 0\nC1 2 0 0\nL1 2 3 0\nR3 3 0 1\n.end\n");
    check_int(l.count, 3);
    check_contains(l.text, "odd.cir:3: R1 = 0 Ohm is taken as 1 mOhm");
    check_contains(l.text, "C1 = 0 F is taken as if it were not there");
    check_contains(l.text, "L1 = 0 H is taken as a wire");
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, "zero\nV1 1 0 1\nR1 1 2 0\nC1 2 0 0\nL1 2 3 0\nR3 3 0 1\n.end\n");
    for (crd_circuit_method m = CRD_METHOD_BDF1; m <= CRD_METHOD_GAUSS4; m++) {
        crd_circuit* c = begin(ctx, n, m);
        for (int i = 0; i < 5; i++) {
            run_step(ctx, c);
        }
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "3")), 1 / 1.001, 1e-9);
        check_near(crd_circuit_current(c, crd_netlist_part(n, "c1")), 0, 1e-12);
        check_near(crd_circuit_current(c, crd_netlist_part(n, "l1")), 1 / 1.001, 1e-9);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void negative_values_of_equivalent_networks_work(void** state)
{
    // a tee of 3 mH, -1 mH, 2 mH, and 3 uF beside -1 uF
    crd_netlist* n =
        parse(*state, "tee\nV1 1 0 SIN(0 1 50)\nL1 1 2 3m\nL2 2 3 -1m\nR1 3 0 1\n"
                      "C1 3 0 3u\nC2 3 0 -1u\nV2 4 0 SIN(0 1 50)\nL4 4 5 2m\nR5 5 0 1\n"
                      "C5 5 0 2u\n.tran 1u 1 uic\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR);
    for (int i = 0; i < 200; i++) {
        run_step(*state, c);
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "3")),
                   crd_circuit_voltage(c, crd_netlist_node(n, "5")), 1e-10);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    const lines l = warnings_of("neg\nV1 1 0 1\nR1 1 2 1k\nC1 2 0 2u\nC2 2 0 -1u\n.end\n");
    check_int(l.count, 1);
    check_contains(l.text, "C2 = -1e-06 F is negative");
}

// ---- what fails on the way ---------------------------------------------------------------------

static void an_expression_without_a_value_is_named_with_line_time_and_value(void** state)
{
    crd_netlist* n = parse(*state, "divide\nV1 1 0 PWL(0 1 1m 0 2m 0)\nR1 1 0 1k\n"
                                   "B1 2 0 V=1/v(1)\nR2 2 0 1k\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR);
    crd_status st = CRD_OK;
    for (int i = 0; i < 30 && st == CRD_OK; i++) {
        st = crd_circuit_step(c);
    }
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "odd.cir:4: at t = 0.00");
    check_contains(crd_error_text(*state), "the expression of b1 is inf where it uses ");
    check_contains(crd_error_text(*state), "v(1) = 0");
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void newton_that_does_not_converge_names_device_time_and_remedies(void** state)
{
    crd_netlist* n = parse(*state, "hard\nV1 1 0 PULSE(-50 50 1m 1n 1n 1 2)\nD1 1 2 dm\nR1 2 0 1\n"
                                   ".model dm d(is=1e-15)\n.end\n");
    crd_circuit_options o = crd_circuit_defaults();
    o.step = 1e-4;
    o.max_iterations = 3;
    o.form = CRD_FORM_DAE;
    crd_circuit* c = NULL;
    check_ok(crd_circuit_create(*state, n, &o, &c));
    check_ok(crd_circuit_begin(c, 0));
    crd_status st = CRD_OK;
    for (int i = 0; i < 30 && st == CRD_OK; i++) {
        st = crd_circuit_step(c);
    }
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "odd.cir:3: at t = 0.001");
    check_contains(crd_error_text(*state), "did not converge in 3 iterations");
    check_contains(crd_error_text(*state), "d1");
    check_contains(crd_error_text(*state), "shorter step");
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// Rounding of 1 F, 6 V in steps of 4 ms is 1e-13 A, much against what still flows.
static void what_has_come_to_rest_goes_on(void** state)
{
    crd_netlist* n = parse(*state, "settles\nC1 a 0 1 ic=0\nB1 0 a i=5.4*(6-v(a))\nC2 b 0 1 ic=0\n"
                                   "B2 0 b i=4.1*(v(a)-v(b))\n.end\n");
    const crd_circuit_method methods[] = {CRD_METHOD_TR, CRD_METHOD_BDF2, CRD_METHOD_TRBDF2,
                                          CRD_METHOD_GAUSS4};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        crd_circuit_options o = crd_circuit_defaults();
        o.method = methods[i];
        o.step = 4e-3;
        o.form = CRD_FORM_DAE;
        crd_circuit* c = NULL;
        check_ok(crd_circuit_create(*state, n, &o, &c));
        check_ok(crd_circuit_begin(c, 0));
        for (int k = 0; k < 5000; k++) {
            if (crd_circuit_step(c) < 0) { fail_msg("%s", crd_error_text(*state)); }
        }
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "b")), 6, 1e-12);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_only_currents_reach_are_refused),
        cmocka_unit_test(currents_that_depend_on_their_own_voltage_are_resistors),
        cmocka_unit_test(what_nothing_determines_is_refused),
        cmocka_unit_test(a_conductance_that_is_taken_back_is_named_at_its_time),
        cmocka_unit_test(gauss_methods_refuse_what_they_cannot_follow),
        cmocka_unit_test(sizes_far_apart_have_a_beginning),
        cmocka_unit_test(many_diodes_in_a_row_have_an_operating_point),
        cmocka_unit_test(switches_begin_where_they_are_told),
        cmocka_unit_test(initial_values_that_contradict_are_named),
        cmocka_unit_test(values_of_zero_are_what_ngspice_takes_them_for),
        cmocka_unit_test(negative_values_of_equivalent_networks_work),
        cmocka_unit_test(an_expression_without_a_value_is_named_with_line_time_and_value),
        cmocka_unit_test(newton_that_does_not_converge_names_device_time_and_remedies),
        cmocka_unit_test(what_has_come_to_rest_goes_on),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
