// Circuits that everybody draws, in both forms: they have to run, and to agree.
#include "cardan/circuit.h"
#include "check.h"

typedef struct end {
    double value, sum; // of the first output: last value, sum over all steps
    int worst;         // iterations
} end;

static end run(crd_context* ctx, const char* text, crd_circuit_form form, crd_circuit_method method,
               double step, int steps)
{
    crd_netlist* n = NULL;
    crd_circuit* c = NULL;
    crd_circuit_options o = crd_circuit_defaults();
    o.form = form;
    o.method = method;
    o.step = step;
    end out = {0, 0, 0};
    if (crd_netlist_parse(ctx, text, strlen(text), "test.cir", NULL, &n) < 0 ||
        crd_circuit_create(ctx, n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    for (int i = 0; i < steps; i++) {
        if (crd_circuit_step(c) < 0) { fail_msg("%s", crd_error_text(ctx)); }
        out.value = crd_circuit_get_output(c, 0);
        out.sum += out.value;
        out.worst = crd_circuit_iterations(c) > out.worst ? crd_circuit_iterations(c) : out.worst;
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    return out;
}

static const crd_circuit_method methods[] = {CRD_METHOD_BDF1, CRD_METHOD_BDF2, CRD_METHOD_BDF3,
                                             CRD_METHOD_TR, CRD_METHOD_TRBDF2};

static void check_both(crd_context* ctx, const char* text, double step, int steps, double tolerance)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const end a = run(ctx, text, CRD_FORM_DAE, methods[i], step, steps);
        const end b = run(ctx, text, CRD_FORM_NODAL, methods[i], step, steps);
        check_near(a.value, b.value, tolerance);
        check_near(a.sum / steps, b.sum / steps, tolerance);
    }
}

static void a_rectifier_whose_output_hangs_on_nothing_runs(void** state)
{
    // While all diodes block, nothing but their leakage says where the output lies against ground.
    static const char text[] =
        "bridge\n.model b d(is=1e-9 n=1.8 rs=30m)\nVac a 0 sin(0 325 50)\nRac a b 0.5\n"
        "D1 b plus b\nD2 0 plus b\nD3 minus b b\nD4 minus 0 b\nC1 plus minus 470u ic=0\n"
        "Rload plus minus 100\n.output v(plus,minus)\n.tran 20u 30m uic\n.end\n";
    check_both(*state, text, 20e-6, 1500, 1e-6);
}

static void a_rectifier_runs_with_steps_in_which_diodes_change_places(void** state)
{
    static const char text[] =
        "thesis\n.options temp=26.85 tnom=26.85\n.model dm d(is=1e-15 n=1.5 rs=1m)\n"
        "V1 2 0 sin(0 100 5)\nD1 2 3 dm\nD2 0 3 dm\nD3 5 2 dm\nD4 5 0 dm\nR1 3 4 10\n"
        "L1 4 5 100m ic=0\n.output i(L1)\n.tran 1m 1 uic\n.end\n";
    check_both(*state, text, 1e-3, 1000, 1e-8);
    check_both(*state, text, 5e-3, 200, 1e-8);
}

static void leakage_is_what_gmin_says(void** state)
{
    // 10 V in reverse: saturation current and gmin
    static const char text[] = "reverse\n.options gmin=1e-9\n.model d d(is=1e-12)\nV1 1 0 -10\n"
                               "D1 1 2 d\nR1 2 0 1\n.output i(R1)\n.end\n";
    const end a = run(*state, text, CRD_FORM_DAE, CRD_METHOD_TR, 1e-3, 3);
    const end b = run(*state, text, CRD_FORM_NODAL, CRD_METHOD_TR, 1e-3, 3);
    check_near(a.value, -1e-8 - 1e-12, 1e-14);
    check_near(b.value, -1e-8 - 1e-12, 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rectifier_whose_output_hangs_on_nothing_runs),
        cmocka_unit_test(a_rectifier_runs_with_steps_in_which_diodes_change_places),
        cmocka_unit_test(leakage_is_what_gmin_says),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
