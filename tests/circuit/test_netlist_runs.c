// From the file to the waveform: the benchmark circuits of Rodriguez 2021 ch. 3, read as netlists,
// have the errors that their method is known to have (trapezoidal rule, tables 3.7, 3.10, 3.14).
#include "cardan/circuit.h"
#include "check.h"

#include <stdio.h>

#define DATA TEST_SOURCE_DIR "/circuit/data/"

static double next_number(char** p)
{
    char* end;
    const double x = strtod(*p, &end);
    *p = *end == ',' ? end + 1 : end;
    return x;
}

typedef struct benchmark {
    const char *netlist, *reference;
    double step, error[2]; // of its first two outputs
    int n, m, p;
} benchmark;

static void run(crd_context* ctx, const benchmark* b)
{
    crd_netlist* n = NULL;
    crd_circuit* c = NULL;
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = b->step;
    opt.method = CRD_METHOD_TR;
    opt.form = CRD_FORM_DAE;
    check_ok(crd_netlist_load(ctx, b->netlist, NULL, &n));
    check_ok(crd_circuit_create(ctx, n, &opt, &c));
    const crd_circuit_structure s = crd_circuit_get_structure(c);
    check_int(s.variables, b->n);
    check_int(s.constraints, b->m);
    check_int(s.differential, b->p);
    check_ok(crd_circuit_begin(c, 0));
    FILE* in = fopen(b->reference, "r");
    char line[400];
    double sum[2] = {0};
    int count = 0;
    long done = 0;
    check(in && fgets(line, sizeof line, in));
    while (fgets(line, sizeof line, in)) {
        char* p = line;
        const double t = next_number(&p);
        if (t == 0) { continue; }
        for (; done < lround(t / b->step); done++) {
            check_ok(crd_circuit_step(c));
        }
        for (int k = 0; k < 2; k++) {
            sum[k] += pow(crd_circuit_get_output(c, k) - next_number(&p), 2);
        }
        count++;
    }
    fclose(in);
    for (int k = 0; k < 2; k++) {
        check_near(sqrt(sum[k] / count), b->error[k], 0.005 * b->error[k]);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void netlists_have_the_errors_of_their_method(void** state)
{
    static const benchmark list[] = {
        {DATA "rlc.cir", DATA "rlc_reference.csv", 2.5e-3, {0.25029e-3, 0.37814e-3}, 8, 5, 3},
        {DATA "scrlc.cir",
         DATA "scrlc_N2_reference.csv",
         2.5e-3,
         {0.40802e-3, 0.94185e-3},
         13,
         9,
         4},
        {DATA "rectifier.cir",
         DATA "rectifier_reference.csv",
         0.5e-3,
         {0.28654e-3, 0.17004e-3},
         20,
         19,
         1},
    };
    check_allocator memory;
    crd_context* ctx = check_context(&memory);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        run(ctx, &list[i]);
    }
    crd_context_destroy(ctx);
    check_int(memory.live, 0);
}

static void a_machine_is_as_warm_in_kelvins_as_above_its_environment(void** state)
{
    static const char* const files[] = {DATA "pmsm.cir", DATA "pmsm_relative.cir"};
    check_allocator memory;
    crd_context* ctx = check_context(&memory);
    double t[2], q[2];
    for (int i = 0; i < 2; i++) {
        crd_netlist* n = NULL;
        crd_circuit* c = NULL;
        crd_circuit_options opt = crd_circuit_defaults();
        opt.step = 0.5;
        opt.form = CRD_FORM_DAE;
        check_ok(crd_netlist_load(ctx, files[i], NULL, &n));
        check_ok(crd_circuit_create(ctx, n, &opt, &c));
        check_int(crd_circuit_get_structure(c).variables, i ? 49 : 51);
        check_int(crd_circuit_get_structure(c).differential, 9);
        check_ok(crd_circuit_begin(c, 0));
        for (int k = 0; k < 102; k++) {
            check_ok(crd_circuit_step(c));
        }
        t[i] = crd_circuit_get_output(c, 0);
        q[i] = crd_circuit_get_output(c, 1);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
    }
    crd_context_destroy(ctx);
    check_near(t[0], t[1], 1e-9);
    check_near(q[0], q[1], 1e-6);
    check_near(t[0], 302.014294261192, 1e-4); // at 51 s, by another integrator
    check_near(q[0], 385.06396628668, 0.1);
    check_int(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(netlists_have_the_errors_of_their_method),
        cmocka_unit_test(a_machine_is_as_warm_in_kelvins_as_above_its_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
