// What netlists in the wild write: as ngspice reads it.
#include "build.h"

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, text, strlen(text), "wild.cir", NULL, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

static const crd_waveform* wave_of(const crd_netlist* n, const char* part)
{
    return &n->waves[n->parts[crd_netlist_part(n, part)].index];
}

static void values_of_sources_may_stand_in_brackets_or_behind_an_equals_sign(void** state)
{
    crd_netlist* n = parse(*state, "t\n"
                                   "V1 1 0 0.7v (PWL 0ns 3.0v 1ns 4v) (AC 1v)\n"
                                   "V2 2 0 dc=5 ac=1\n"
                                   "V3 3 0 (2.5)\n"
                                   "V4 4 0 SINE(0 2 50)\n"
                                   "R1 1 2 1\nR2 3 4 1\n.end\n");
    check_int((int)wave_of(n, "v1")->kind, (int)CRD_WAVE_PWL);
    check_int(wave_of(n, "v1")->count, 2);
    check_near(crd_waveform_eval(wave_of(n, "v1"), 0.5e-9, NULL), 3.5, 1e-12);
    check_near(crd_waveform_eval(wave_of(n, "v2"), 0, NULL), 5, 0);
    check_near(crd_waveform_eval(wave_of(n, "v3"), 0, NULL), 2.5, 0);
    check_int((int)wave_of(n, "v4")->kind, (int)CRD_WAVE_SIN);
    crd_netlist_destroy(n);
    crd_netlist* none = NULL;
    const char* open = "t\nV1 1 0 (PWL 0 1 1 2\nR1 1 0 1\n";
    check_status(crd_netlist_parse(*state, open, strlen(open), "wild.cir", NULL, &none),
                 CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "wild.cir:2: V1: a '(' without its ')'");
}

static void temperature_coefficients_may_be_a_pair(void** state)
{
    crd_netlist* n = parse(*state, "t\n.options temp=37 tnom=27\n"
                                   "R1 1 0 100 tc=1m,2u ac=5\nR2 1 0 100 TC = 1m 2u\n"
                                   "R3 1 0 100 tc=1m m=2\nV1 1 0 1\n.opt reltol=1e-4\n"
                                   ".csparam x={1}\n.end\n");
    check_near(n->parts[0].value, 100 * (1 + 10 * (1e-3 + 10 * 2e-6)), 1e-10);
    check_near(n->parts[1].value, n->parts[0].value, 0);
    check_near(n->parts[2].value, 50 * (1 + 10 * 1e-3), 1e-10);
    crd_netlist_destroy(n);
}

static void braces_within_an_expression_are_brackets(void** state)
{
    crd_netlist* n = parse(*state, "t\n.param a=3\nR1 1 0 '2*{a+1}'\nV1 1 0 1\n.end\n");
    check_near(n->parts[0].value, 8, 1e-12);
    crd_netlist_destroy(n);
}

static void a_subcircuit_may_name_ground_among_its_nodes(void** state)
{
    crd_netlist* n = parse(*state, "t\n.subckt s a gnd\nR1 a gnd 1\n.ends\nV1 x 0 1\nX1 x 0 s\n");
    check_int(n->parts[crd_netlist_part(n, "x1.r1")].nodes[1], 0);
    crd_netlist_destroy(n);
    crd_netlist* none = NULL;
    const char* other = "t\n.subckt s a gnd\nR1 a gnd 1\n.ends\nV1 x 0 1\nX1 0 x s\n";
    check_status(crd_netlist_parse(*state, other, strlen(other), "wild.cir", NULL, &none),
                 CRD_E_RANGE);
    check_contains(crd_error_text(*state), "wild.cir:6: X1 hands in the node x as gnd");
}

static void the_breakdown_of_a_diode_begins_where_ngspice_has_it(void** state)
{
    crd_netlist* n = parse(*state, "t\n.model dz d(is=1e-14 bv=5 ibv=1m)\n"
                                   ".model dl d(is=1p n=2 bv=7 ibv=0.1n)\n"
                                   "D1 0 1 dz\nD2 0 1 dl\nV1 1 0 1\n.end\n");
    check_near(n->diodes[0].ibv, 1e-3, 1e-9); // the leakage is nothing beside it
    check_near(n->diodes[1].ibv, 1e-12, 0);   // less than the leakage is bv/vt: is
    crd_netlist_destroy(n);
}

// Without uic .ic takes part in an operating point: what depends on the node follows.
static void a_node_of_ic_is_held_while_the_operating_point_is_sought(void** state)
{
    crd_netlist* n = parse(*state, "t\n.ic v(a)=2\nV1 in 0 10\nR1 in a 1k\nC1 a 0 1u\n"
                                   "E1 e 0 a 0 3\nR2 e b 1k\nC2 b 0 1u\nR3 b 0 2k\n.tran 1u 1m\n");
    for (int form = CRD_FORM_DAE; form <= CRD_FORM_NODAL; form++) {
        crd_circuit_options o = crd_circuit_defaults();
        o.form = (crd_circuit_form)form;
        o.step = 1e-6;
        crd_circuit* c = NULL;
        check_ok(crd_circuit_create(*state, n, &o, &c));
        check_ok(crd_circuit_begin(c, 0));
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "a")), 2, 1e-9);
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "b")), 4, 1e-9); // not 0
        check_near(crd_circuit_current(c, crd_netlist_part(n, "c1")), 8e-3, 1e-9);
        for (int i = 0; i < 1000; i++) {
            check_ok(crd_circuit_step(c));
        }
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "a")), 10 - 8 * exp(-1), 1e-5);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_sources_may_stand_in_brackets_or_behind_an_equals_sign),
        cmocka_unit_test(temperature_coefficients_may_be_a_pair),
        cmocka_unit_test(braces_within_an_expression_are_brackets),
        cmocka_unit_test(a_subcircuit_may_name_ground_among_its_nodes),
        cmocka_unit_test(the_breakdown_of_a_diode_begins_where_ngspice_has_it),
        cmocka_unit_test(a_node_of_ic_is_held_while_the_operating_point_is_sought)};
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
