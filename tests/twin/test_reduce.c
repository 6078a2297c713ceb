// Networks in minimal variables: against closed forms, against the simulator, against differences.
#include "cardan/twin.h"
#include "check.h"

static crd_netlist* netlist(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    const crd_status st = crd_netlist_parse(ctx, text, strlen(text), "test.cir", NULL, &n);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return n;
}

static crd_reduction* reduce(crd_context* ctx, const crd_netlist* n)
{
    crd_reduction* r = NULL;
    if (crd_reduction_create(ctx, n, &r) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return r;
}

static const char rc_thermal[] = "two capacities\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\n"
                                 "resistance r2 2 3 2\nresistance r3 3 0 3\n"
                                 "capacity c1 2 0.1 start=-1\ncapacity c2 3 0.2 start=1\n"
                                 ".endthermal\n.tran 1m 5 uic\n.end\n";

static void two_capacities_have_the_matrices_that_one_writes_down_by_hand(void** state)
{
    crd_netlist* n = netlist(*state, rc_thermal);
    crd_reduction* r = reduce(*state, n);
    const crd_reduced* v = crd_reduction_get(r);
    check_int(v->states, 2);
    check_int(v->inputs, 1);
    const double fc[] = {-0.5 / 0.1, 0.5 / 0.1, 0.5 / 0.2, -(0.5 + 1.0 / 3) / 0.2};
    for (int i = 0; i < 4; i++) {
        check_near(v->fc[i], fc[i], 1e-13);
    }
    check_near(v->g1[0], 1 / 0.1, 1e-13);
    check_near(v->g1[1], 0, 1e-13);
    check_near(v->g2[0], 0, 0);
    const int32_t top = crd_netlist_node(n, "1"); // T1 = T2 + R1 q0
    check_near(v->t[top * 2], 1, 1e-14);
    check_near(v->t[top * 2 + 1], 0, 1e-14);
    check_near(v->b[top], 1, 1e-14);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
}

// ---- against the simulator ---------------------------------------------------------------------

// Ten steps by exact discretisation, sources as lines in between, against a fine Gauss solution
// whose sources are pwl with the same corners.
static void follow(crd_context* ctx, const char* text, bool loops, double h, double tolerance)
{
    crd_netlist* n = netlist(ctx, text);
    crd_reduction* r = reduce(ctx, n);
    const crd_reduced* v = crd_reduction_get(r);
    crd_circuit_options o = crd_circuit_defaults();
    const int inner = loops ? 1000 : 8;
    o.method = loops ? CRD_METHOD_BDF3 : CRD_METHOD_GAUSS4; // Gauss takes no loops of C and V
    o.step = h / inner;
    o.form = CRD_FORM_DAE;
    crd_circuit* c = NULL;
    check_ok(crd_circuit_create(ctx, n, &o, &c));
    check_ok(crd_circuit_begin(c, 0));
    const int p = v->states, in = v->inputs;
    double z[8], next[8], f[64], d0[64], d1[64], before[8], after[8];
    check(p <= 8 && in <= 8);
    double* work = malloc(crd_reduction_work_size(r, 0) * sizeof *work);
    check_ok(crd_reduction_discretise(r, h, NULL, 0, f, d0, d1, NULL, NULL, NULL, work));
    for (int i = 0; i < p; i++) {
        const crd_part* part = &n->parts[v->state_part[i]];
        z[i] = part->kind == CRD_PART_CAPACITOR
                   ? crd_circuit_voltage(c, part->nodes[0]) - crd_circuit_voltage(c, part->nodes[1])
                   : crd_circuit_current(c, v->state_part[i]);
    }
    for (int step = 1; step <= 10; step++) {
        for (int i = 0; i < in; i++) {
            const crd_waveform* w = &n->waves[n->parts[v->input_part[i]].index];
            before[i] = crd_waveform_eval(w, (step - 1) * h, NULL);
            after[i] = crd_waveform_eval(w, step * h, NULL);
        }
        for (int i = 0; i < p; i++) {
            next[i] = 0;
            for (int j = 0; j < p; j++) {
                next[i] += f[i * p + j] * z[j];
            }
            for (int j = 0; j < in; j++) {
                next[i] += d0[i * in + j] * before[j] + d1[i * in + j] * after[j];
            }
        }
        memcpy(z, next, sizeof z);
        for (int i = 0; i < inner; i++) {
            check_ok(crd_circuit_step(c));
        }
        for (int32_t x = 0; x < v->variables; x++) { // every voltage and every current
            double ours = 0;
            for (int j = 0; j < p; j++) {
                ours += v->t[x * p + j] * z[j];
            }
            for (int j = 0; j < in; j++) {
                ours +=
                    v->b[x * in + j] * after[j] + v->b2[x * in + j] * (after[j] - before[j]) / h;
            }
            if (x >= n->node_count && n->parts[x - n->node_count].kind == CRD_PART_MUTUAL) {
                continue;
            }
            const double theirs = x < n->node_count ? crd_circuit_voltage(c, x)
                                                    : crd_circuit_current(c, x - n->node_count);
            check_near(ours, theirs, tolerance);
        }
    }
    free(work);
    crd_circuit_destroy(c);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
}

static void steps_are_those_of_the_simulator(void** state)
{
    follow(*state, rc_thermal, false, 0.1, 1e-9);
    follow(*state,
           "ladder\nV1 1 0 pwl(0 0 0.1 1 0.2 0 10 0)\nR1 1 2 1\nL1 2 3 0.1 ic=0\nC1 3 0 0.2\n"
           "R2 3 4 2\nL2 4 5 0.3\nC2 5 0 0.1\nI1 0 5 0.5\n.tran 1m 1 uic\n.end\n",
           false, 0.1, 1e-8);
    follow(*state,
           "transformer\nV1 1 0 pwl(0 0 1 3)\nR1 1 2 1\nL1 2 0 1 ic=0\nL2 3 0 4\nK1 L1 L2 0.9\n"
           "R2 3 0 5\n.tran 1m 1 uic\n.end\n",
           false, 0.1, 1e-8);
    follow(*state,
           "controlled\nV1 1 0 pwl(0 1 1 2)\nR1 1 2 1\nC1 2 0 1 ic=0\nE1 3 0 2 0 2\nR2 3 4 1\n"
           "C2 4 0 0.5\nG1 4 0 2 0 0.3\nF1 0 5 V1 0.5\nR3 5 0 2\nH1 6 0 V1 3\nR4 6 5 1\n"
           ".tran 1m 1 uic\n.end\n",
           false, 0.1, 1e-8);
}

static void capacitors_in_loops_and_inductors_in_cutsets_are_no_states(void** state)
{
    // C2 beside C1; C3 across the source: its current is the derivative of the source
    const char* loops = "loops\nV1 1 0 pwl(0 0 1 3)\nC3 1 0 0.4\nR1 1 2 1\nC1 2 0 0.2 ic=0\n"
                        "C2 2 0 0.3\nC4 1 2 0.1\n.tran 1m 1 uic\n.end\n";
    follow(*state, loops, true, 0.1, 1e-6);
    crd_netlist* n = netlist(*state, loops);
    crd_reduction* r = reduce(*state, n);
    check_int(crd_reduction_get(r)->states, 1);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
    const char* cut = "cutset\nI1 0 1 pwl(0 0 1 2)\nL1 1 2 0.5\nR1 2 0 3\nL2 2 3 0.2\nR2 3 0 1\n"
                      ".tran 1m 1 uic\n.end\n";
    n = netlist(*state, cut);
    r = reduce(*state, n);
    const crd_reduced* v = crd_reduction_get(r);
    check_int(v->states, 1);
    // V(1) = L1 I' + V(2): the derivative of the source enters
    check_near(v->b2[crd_netlist_node(n, "1")], 0.5, 1e-12);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
}

// ---- derivatives -------------------------------------------------------------------------------

static double moved(crd_reduction* r, int32_t part, double base, double log_change, double h,
                    int which, int at, double* room, double* work)
{
    const double value = base * exp(log_change);
    check_ok(crd_reduction_set(r, &part, &value, 1));
    const crd_reduced* v = crd_reduction_get(r);
    const size_t p = (size_t)v->states, in = (size_t)v->inputs;
    double *f = room, *d0 = f + p * p, *d1 = d0 + p * in;
    check_ok(crd_reduction_discretise(r, h, NULL, 0, f, d0, d1, NULL, NULL, NULL, work));
    const double* all[] = {v->fc, v->g1, v->g2, v->t, v->b, v->b2, f, d0, d1};
    return all[which][at];
}

static void check_slopes(crd_context* ctx, const char* text, double tolerance)
{
    crd_netlist* n = netlist(ctx, text);
    crd_reduction* r = reduce(ctx, n);
    const crd_reduced v = *crd_reduction_get(r);
    const int p = v.states, in = v.inputs;
    const double h = 0.3, change = 1e-4;
    double *work = malloc(crd_reduction_work_size(r, 1) * sizeof *work), room[400], slope[400];
    for (int32_t part = 0; part < n->part_count; part++) {
        const int kind = n->parts[part].kind;
        if (kind != CRD_PART_RESISTOR && kind != CRD_PART_CAPACITOR && kind != CRD_PART_INDUCTOR) {
            continue;
        }
        const double base = crd_reduction_value(r, part);
        const crd_twin_group g = {.name = "x", .parts = &part, .count = 1};
        double *f = room, *d0 = f + p * p, *d1 = d0 + p * in;
        double *df = d1 + p * in, *dd0 = df + p * p, *dd1 = dd0 + p * in;
        check_ok(crd_reduction_discretise(r, h, &g, 1, f, d0, d1, df, dd0, dd1, work));
        const int sizes[] = {p * p,           p * in,           p * in,
                             v.variables * p, v.variables * in, v.variables * in,
                             p * p,           p * in,           p * in};
        for (int which = 0; which < 9; which++) {
            for (int at = 0; at < sizes[which]; at++) {
                const crd_reduced s = crd_reduction_sensitivity(r, &g);
                const double* all[] = {s.fc, s.g1, s.g2, s.t, s.b, s.b2, df, dd0, dd1};
                memcpy(slope, &all[which][at], sizeof *slope);
                double other[400];
                const double up = moved(r, part, base, change, h, which, at, other, work);
                const double down = moved(r, part, base, -change, h, which, at, other, work);
                check_ok(crd_reduction_set(r, &part, &base, 1));
                check_near(slope[0], (up - down) / (2 * change), tolerance * (1 + fabs(up)));
            }
        }
    }
    free(work);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
}

static void derivatives_are_those_of_differences(void** state)
{
    check_slopes(*state, rc_thermal, 1e-6);
    check_slopes(*state,
                 "all\nV1 1 0 1\nC3 1 0 0.4\nR1 1 2 1\nC1 2 0 0.2\nC2 2 0 0.3\nC4 1 2 0.1\n"
                 "L1 2 3 0.5\nL2 3 0 0.4\nK1 L1 L2 0.5\nR2 3 0 2\nF1 0 4 V1 0.5\nR3 4 0 2\n.end\n",
                 1e-5);
}

// ---- the rest ----------------------------------------------------------------------------------

static void what_is_not_linear_is_refused_by_name(void** state)
{
    crd_netlist* n = netlist(*state, "x\nV1 1 0 1\nD1 1 2 dm\nR1 2 0 1\n.model dm d\n.end\n");
    crd_reduction* r = NULL;
    check_status(crd_reduction_create(*state, n, &r), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "test.cir:3: d1 is a diode");
    crd_netlist_destroy(n);
    n = netlist(*state, rc_thermal);
    r = reduce(*state, n);
    const int32_t part = crd_netlist_part(n, "r1"), source = crd_netlist_part(n, "q0");
    double bad = -1;
    check_status(crd_reduction_set(r, &part, &bad, 1), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "r1 = -1");
    bad = 1;
    check_status(crd_reduction_set(r, &source, &bad, 1), CRD_E_RANGE);
    check_near(crd_reduction_value(r, part), 1, 0); // as before
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
}

static void a_new_value_allocates_nothing(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_netlist* n = netlist(ctx, rc_thermal);
    crd_reduction* r = reduce(ctx, n);
    const int64_t before = a.allocations;
    const int32_t part = crd_netlist_part(n, "r2");
    const crd_twin_group g = {.name = "r2", .parts = &part, .count = 1};
    for (int i = 1; i < 10; i++) {
        const double value = i;
        check_ok(crd_reduction_set(r, &part, &value, 1));
        crd_reduction_sensitivity(r, &g);
    }
    check_int(a.allocations, before);
    crd_reduction_destroy(r);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t at = 0;; at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_netlist* n = netlist(ctx, rc_thermal);
        a.fail_at = a.allocations + at;
        crd_reduction* r = NULL;
        const crd_status st = crd_reduction_create(ctx, n, &r);
        a.fail_at = -1;
        if (st == CRD_OK) { crd_reduction_destroy(r); }
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_capacities_have_the_matrices_that_one_writes_down_by_hand),
        cmocka_unit_test(steps_are_those_of_the_simulator),
        cmocka_unit_test(capacitors_in_loops_and_inductors_in_cutsets_are_no_states),
        cmocka_unit_test(derivatives_are_those_of_differences),
        cmocka_unit_test(what_is_not_linear_is_refused_by_name),
        cmocka_unit_test(a_new_value_allocates_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
