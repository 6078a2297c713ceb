// The fast form gives what the reference form gives: the same discrete solution, for every method.
#include "check.h"
#include "circuit/nodal.h"

#include <stdio.h>

static const crd_circuit_method methods[] = {CRD_METHOD_TR, CRD_METHOD_BDF1, CRD_METHOD_BDF2,
                                             CRD_METHOD_BDF3, CRD_METHOD_TRBDF2};
static const char* const names[] = {"TR", "BDF1", "BDF2", "BDF3", "TRBDF2"};

typedef struct pair {
    crd_circuit *fast, *slow;
    double volts, amperes; // largest so far
} pair;

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, text, strlen(text), "test.cir", NULL, &n) < 0) {
        fail_msg("%s\n%s", crd_error_text(ctx), text);
    }
    return n;
}

static crd_circuit* make(crd_context* ctx, const crd_netlist* n, const crd_circuit_options* o,
                         crd_circuit_form form)
{
    crd_circuit_options own = *o;
    own.form = form;
    crd_circuit* c = NULL;
    if (crd_circuit_create(ctx, n, &own, &c) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return c;
}

static pair make_pair(crd_context* ctx, const crd_netlist* n, const crd_circuit_options* o)
{
    return (pair){make(ctx, n, o, CRD_FORM_NODAL), make(ctx, n, o, CRD_FORM_DAE), 1e-6, 1e-3};
}

static void destroy_pair(pair* p)
{
    crd_circuit_destroy(p->fast);
    crd_circuit_destroy(p->slow);
}

static void compare(pair* p, const crd_netlist* n, const char* what, int step, double relative)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        p->volts = fmax(p->volts, fabs(crd_circuit_voltage(p->slow, i)));
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        p->amperes = fmax(p->amperes, fabs(crd_circuit_current(p->slow, i)));
    }
    for (int32_t i = 0; i < n->node_count; i++) {
        const double a = crd_circuit_voltage(p->fast, i), b = crd_circuit_voltage(p->slow, i);
        if (!(fabs(a - b) <= relative * p->volts)) {
            fail_msg("%s, step %d: v(%s) = %.15g, expected %.15g (largest %g)", what, step,
                     n->nodes[i], a, b, p->volts);
        }
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const double a = crd_circuit_current(p->fast, i), b = crd_circuit_current(p->slow, i);
        if (isnan(a) && isnan(b)) { continue; }
        if (!(fabs(a - b) <= relative * p->amperes)) {
            fail_msg("%s, step %d: i(%s) = %.15g, expected %.15g (largest %g)", what, step,
                     n->names + n->parts[i].name, a, b, p->amperes);
        }
    }
}

// false: the reference form gave up, which random circuits with switches may make it do
static bool check_same(crd_context* ctx, const crd_netlist* n, crd_circuit_options o, int steps,
                       double relative, const char* what)
{
    pair p = make_pair(ctx, n, &o);
    bool same = crd_circuit_begin(p.slow, 0) == CRD_OK;
    if (same) {
        if (crd_circuit_begin(p.fast, 0) < 0) { fail_msg("%s: %s", what, crd_error_text(ctx)); }
        // a beginning with devices is that of the reference form, which may be a compromise
        if (((const crdi_nodal*)p.fast->self)->net.devices == 0) {
            compare(&p, n, what, 0, relative);
        }
    }
    for (int k = 1; k <= steps && same; k++) {
        same = crd_circuit_step(p.slow) == CRD_OK;
        if (same && crd_circuit_step(p.fast) < 0) {
            fail_msg("%s, step %d: %s", what, k, crd_error_text(ctx));
        }
        if (same) { compare(&p, n, what, k, relative); }
    }
    destroy_pair(&p);
    return same;
}

static void check_methods(const char* text, double step, int steps, double relative)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, text);
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        for (int start = 0; start < 3; start++) {
            crd_circuit_options o = crd_circuit_defaults();
            o.method = methods[m];
            o.start = (crd_circuit_start)start;
            o.step = step;
            check(check_same(ctx, n, o, steps, relative, names[m]));
        }
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void check_file(const char* file, double step, int steps, double relative)
{
    crd_context* ctx = crd_context_create(NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/circuit/data/%s", TEST_SOURCE_DIR, file);
    crd_netlist* n = NULL;
    if (crd_netlist_load(ctx, path, NULL, &n) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        crd_circuit_options o = crd_circuit_defaults();
        o.method = methods[m];
        o.step = step;
        char what[64];
        snprintf(what, sizeof what, "%s %s", file, names[m]);
        check(check_same(ctx, n, o, steps, relative, what));
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void benchmarks_have_the_solution_of_the_reference_form(void** s)
{
    (void)s;
    check_file("rlc.cir", 2.5e-3, 60, 1e-9);
    check_file("scrlc.cir", 2.5e-3, 60, 1e-9);
    check_file("rc_thermal.cir", 1e-3, 60, 1e-9);
    check_file("inverter.cir", 1e-3, 60, 1e-9);
    check_file("rectifier.cir", 0.5e-3, 420, 1e-9);
    check_file("pmsm.cir", 0.5, 60, 1e-9);
    check_file("pmsm_relative.cir", 0.5, 60, 1e-9);
    check_file("motor.cir", 0.5, 60, 1e-9);
}

static void trees_of_sources_series_parts_and_rings_are_reduced(void** s)
{
    (void)s;
    check_methods("sources and series\n"
                  "V1 1 0 sin(0 10 50)\nV2 2 1 dc 5\nV3 2 3 sin(0 1 100)\nV0 3 9 0\n"
                  "R1 9 4 10\nL1 4 5 10m\nC1 5 6 100u ic=1\nR2 6 0 5\nC2 6 7 50u\nC3 0 7 20u ic=2\n"
                  "Va a b dc 3\nR3 a 0 100\nR4 b 6 50\nL2 b c 1m\nR5 c a 10\n" // floating source
                  "L3 6 r1 1m ic=0.1\nC4 r1 r2 10u\nR6 r2 6 1\n"               // a ring on node 6
                  "R7 6 dead 10\nI1 0 6 dc 0.1\nI2 c a sin(0 0.1 200)\n.end\n",
                  1e-4, 60, 1e-9);
}

static void controlled_sources_and_coupled_inductors_have_rows(void** s)
{
    (void)s;
    check_methods(
        "controlled\n"
        "V1 1 0 sin(0 10 50)\nR1 1 2 10\nL1 2 0 10m\nL2 3 0 40m\nK1 L1 L2 0.9\nR2 3 0 100\n"
        "E1 4 0 2 3 2\nR3 4 5 10\nC1 5 0 10u\nG1 5 0 3 0 0.01\n"
        "Vs 5 6 dc 0\nR4 6 0 20\nF1 7 0 Vs 3\nR5 7 0 5\nH1 8 0 Vs 7\nR6 8 9 1\nC2 9 0 1u\n"
        "L3 9 10 1m\nR7 10 0 3\nVt 7 12 dc 1\nR8 12 0 1\nF2 0 9 Vt 0.5\n.end\n",
        1e-4, 60, 1e-9);
}

static void operating_points_are_found(void** s)
{
    (void)s;
    check_methods("rest\nV1 1 0 dc 10\nR1 1 2 10\nL1 2 3 10m\nR2 3 0 5\nC1 3 0 10u\nC2 2 0 1u\n"
                  "I1 0 3 sin(0.5 0.2 100)\nE1 4 0 3 0 2\nR3 4 0 1k\n.end\n",
                  1e-4, 40, 1e-9);
}

static void diodes_with_charge_and_breakdown_agree(void** s)
{
    (void)s;
    check_methods(
        "diodes\n.model d1 d(is=1e-14 rs=0.1 cjo=10p tt=5n)\n.model d2 d(is=1e-12 n=1.2)\n"
        ".model z d(is=1e-14 bv=5 ibv=1m rs=1)\n"
        "V1 1 0 sin(0 10 1k)\nD1 1 2 d1\nR1 2 0 1k\nC1 2 0 1u\nR2 1 3 100\nD2 3 4 d2\n"
        "L1 4 0 1m\nR3 2 5 100\nD3 0 5 z\nR4 5 6 10\nC2 6 0 0.1u\n.tran 1u 1m uic\n.end\n",
        1e-5, 150, 1e-8);
}

static void switches_move_alike(void** s)
{
    (void)s;
    check_methods(
        "switches\n.model s1 sw(vt=1 vh=0.2 ron=1 roff=1meg)\n"
        ".model w1 csw(it=0.05 ih=0.01 ron=0.5 roff=10k)\n"
        "V1 1 0 sin(0 5 100)\nR1 1 2 100\nC1 2 0 1u\nS1 1 3 2 0 s1\nR2 3 0 50\nL1 3 4 1m\n"
        "Vm 4 5 dc 0\nR3 5 0 10\nW1 1 6 Vm w1\nR4 6 0 20\n.end\n",
        1e-4, 200, 1e-9);
}

static void laws_agree(void** s)
{
    (void)s;
    check_methods(
        "laws\n"
        "V1 1 0 sin(0 5 100)\nR1 1 2 {10+v(2)*v(2)}\nC1 2 0 10u\nB1 0 3 I={0.1*tanh(v(2,1))}\n"
        "R2 3 0 10\nB2 4 0 V={v(3)*v(2)+0.1*i(Vs)}\nR3 4 5 10\nVs 5 6 dc 0\nL1 6 0 10m\n"
        "B3 7 0 V={2*v(4)+i(L1)}\nR4 7 8 10\nC2 8 0 1u\nB4 0 8 I={0.1*i(C2)+0.01*i(R4)}\n.end\n",
        1e-4, 100, 1e-8);
}

static void nothing_may_be_unknown(void** s)
{
    (void)s;
    check_methods(
        "known\nV1 1 0 sin(0 5 100)\nR1 1 0 10\nL1 1 0 1m\nC1 1 0 1u\nR2 1 2 5\nC2 2 0 1u\n"
        ".end\n",
        1e-5, 20, 1e-9);
    check_methods("known\n.model d d(is=1e-14)\nV1 1 0 sin(0 0.7 100)\nD1 1 0 d\nR1 1 0 10\n"
                  "R2 1 0 {10+v(1)^2}\nS1 1 0 1 0 s\n.model s sw(vt=0.3 ron=1 roff=1k)\n.end\n",
                  1e-4, 60, 1e-9);
    check_methods("known\nV1 1 0 pulse(0 1 1m 1u 1u 2m 5m)\nI1 0 2 exp(0 1 1m 1m 5m 1m)\nR1 2 0 1\n"
                  "C1 1 2 1m\nI2 1 3 pwl(0 0 1m 1 2m -1)\nR2 3 0 2\nL1 3 0 1m ic=0.5\n.end\n",
                  1e-4, 60, 1e-9);
}

// Between the pulses all diodes block and the load hangs on their leakage: 1e-13 of the conductance
// of its capacitor. What is between its ends does not feel that.
static void a_load_that_floats_behind_a_bridge_keeps_its_voltage(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n =
        parse(ctx, "bridge\n.model d d(is=1e-9 n=1.8 rs=30m)\nVac a 0 sin(0 325 50)\n"
                   "Rac a b 0.5\nD1 b plus d\nD2 0 plus d\nD3 minus b d\nD4 minus 0 d\n"
                   "C1 plus minus 470u\nRload plus minus 100\n.tran 20u 100m uic\n.end\n");
    const int32_t plus = crd_netlist_node(n, "plus"), minus = crd_netlist_node(n, "minus");
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        crd_circuit_options o = crd_circuit_defaults();
        o.method = methods[m];
        o.step = 2e-5;
        pair p = make_pair(ctx, n, &o);
        check_ok(crd_circuit_begin(p.fast, 0));
        check_ok(crd_circuit_begin(p.slow, 0));
        for (int k = 0; k < 700; k++) {
            check_ok(crd_circuit_step(p.fast));
            check_ok(crd_circuit_step(p.slow));
            const double a = crd_circuit_voltage(p.fast, plus),
                         b = crd_circuit_voltage(p.slow, plus);
            check_near(a - crd_circuit_voltage(p.fast, minus),
                       b - crd_circuit_voltage(p.slow, minus), 1e-9 * 325);
            check_near(a, b, 1e-4 * 325);
        }
        destroy_pair(&p);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

// ---- random circuits ---------------------------------------------------------------------------

static uint64_t lot;
static double draw(void)
{
    lot += 0x9E3779B97F4A7C15u;
    uint64_t z = lot;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

// A connected network of resistors, capacitors and inductors, with sources and a few devices.
static void random_circuit(char* text, size_t room, int nodes, bool devices, bool more)
{
    size_t at = (size_t)snprintf(text, room,
                                 "random\n.model d d(is=1e-12 rs=0.1)\n"
                                 ".model s sw(vt=0.5 vh=0.1 ron=1 roff=100k)\n"
                                 "V1 1 0 sin(0 10 50)\nR0 1 2 10\n");
    for (int i = 2; i <= nodes; i++) {
        const int a = 1 + (int)(draw() * (i - 1)), kind = (int)(draw() * 5);
        const double size = exp(4 * draw() - 2);
        const char* const how[] = {"R%d %d %d %g\n", "L%d %d %d %gm\n", "C%d %d %d %gm\n",
                                   "R%d %d %d %gk\n", "R%d %d %d %g\n"};
        at += (size_t)snprintf(text + at, room - at, how[kind], i, draw() < 0.5 ? a : i,
                               draw() < 0.5 ? i : a, size);
        // both ends may have been drawn alike: another one makes it connected
        at += (size_t)snprintf(text + at, room - at, "Rc%d %d %d %g\n", i, a, i, 100 * size);
    }
    for (int i = 0; i < nodes / 2; i++) {
        const int a = (int)(draw() * (nodes + 1)), b = (int)(draw() * (nodes + 1));
        if (a == b) { continue; }
        const char* const how[] = {"Rx%d %d %d %g\n", "Lx%d %d %d %gm\n", "Cx%d %d %d %gu\n",
                                   "Ix%d %d %d sin(0 %g 80)\n"};
        at += (size_t)snprintf(text + at, room - at, how[(int)(draw() * 4)], i, a, b,
                               exp(4 * draw() - 2));
    }
    for (int i = 0; i < 5 && devices; i++) {
        const int a = (int)(draw() * (nodes + 1)), b = (int)(draw() * (nodes + 1));
        if (a == b) { continue; }
        if (draw() < 0.7) {
            at += (size_t)snprintf(text + at, room - at, "D%d %d %d d\n", i, a, b);
        } else {
            at += (size_t)snprintf(text + at, room - at, "S%d %d %d %d 0 s\n", i, a, b, a);
        }
    }
    // controlled sources on nodes of their own, a floating source, a sensor, coupled inductors, a
    // law
    const int a = 1 + (int)(draw() * nodes), b = 1 + (int)(draw() * nodes), n = nodes;
    if (more) {
        at +=
            (size_t)snprintf(text + at, room - at,
                             "E1 %d 0 %d %d %g\nRe %d %d 7\nVf %d %d sin(1 2 60)\nRf %d %d 3\n"
                             "Vm %d %d 0\nRm %d 0 20\nF1 0 %d Vm 0.3\nG1 %d 0 %d 0 0.01\n"
                             "H1 %d 0 Vm 5\nRh %d %d 9\nLk1 %d 0 3m\nLk2 %d 0 5m\nK1 Lk1 Lk2 0.7\n"
                             "Rk %d %d 4\nB1 0 %d I={0.01*sin(v(%d)+i(Lk1))}\n",
                             n + 1, a, b, 2 * draw(), n + 1, b, n + 2, a, n + 2, b, a, n + 3, n + 3,
                             b, a, b, n + 4, n + 4, a, b, n + 5, n + 5, a, a, b);
    }
    snprintf(text + at, room - at, draw() < 0.5 ? ".tran 1m 1 uic\n.end\n" : ".end\n");
}

static void random_circuits_have_the_solution_of_the_reference_form(void** s)
{
    (void)s;
    static char text[20000];
    crd_context* ctx = crd_context_create(NULL);
    int whole = 0;
    for (int k = 0; k < 60; k++) {
        lot = (uint64_t)(1000 + k);
        random_circuit(text, sizeof text, k % 3 == 0 ? 40 : 12, k % 2 == 1, k % 4 > 1);
        crd_netlist* n = parse(ctx, text);
        crd_circuit_options o = crd_circuit_defaults();
        o.method = methods[k % 5];
        o.step = 2e-4;
        char what[64];
        snprintf(what, sizeof what, "random %d %s", k, names[k % 5]);
        whole += check_same(ctx, n, o, 40, 1e-8, what);
        crd_netlist_destroy(n);
    }
    check(whole >= 50);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(benchmarks_have_the_solution_of_the_reference_form),
        cmocka_unit_test(trees_of_sources_series_parts_and_rings_are_reduced),
        cmocka_unit_test(controlled_sources_and_coupled_inductors_have_rows),
        cmocka_unit_test(operating_points_are_found),
        cmocka_unit_test(diodes_with_charge_and_breakdown_agree),
        cmocka_unit_test(switches_move_alike),
        cmocka_unit_test(laws_agree),
        cmocka_unit_test(nothing_may_be_unknown),
        cmocka_unit_test(a_load_that_floats_behind_a_bridge_keeps_its_voltage),
        cmocka_unit_test(random_circuits_have_the_solution_of_the_reference_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
