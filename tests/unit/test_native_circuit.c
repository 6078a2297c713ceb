// A model whose state is not all in its own bytes, as a unit: a circuit.
#include <stdio.h>

#include "shared/circuit_model.h"
#include "unit_test.h"

static const char netlist[] = "resonance\n.param r=1\n.input u start=1\nV1 a 0 input(u)\n"
                              "R1 a b {r}\nL1 b c 1 ic=0\nC1 c 0 1 ic=0\n.tran 0.01 1 uic\n"
                              ".output y=v(c)\n";

static void a_restored_circuit_repeats_the_bits(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crdi_circuit_model_options opt = crdi_circuit_model_defaults();
    const crd_model* model = NULL;
    check_ok(crdi_circuit_model_create(ctx, netlist, strlen(netlist), "n.cir", &opt, &model));
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "n";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = model;
    crd_unit* u = make(ctx, &spec);
    void *early = NULL, *middle = NULL;
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->state->save(u, &early)); // before there is a circuit
    start(u, 0, 10);
    double first[10];
    for (int n = 0; n < 20; n++) {
        if (n == 10) { check_ok(u->ops->state->save(u, &middle)); }
        step(u, 0.1 * n, 0.1);
        if (n >= 10) { first[n - 10] = get_one(u, "y"); }
    }
    check_ok(u->ops->state->restore(u, early));
    start(u, 0, 10);
    check_ok(u->ops->state->save(u, &early)); // larger than it was
    check_ok(u->ops->state->restore(u, middle));
    for (int n = 10; n < 20; n++) {
        step(u, 0.1 * n, 0.1);
        check_near(get_one(u, "y"), first[n - 10], 0);
    }
    check(first[9] != first[0]);
    u->ops->state->free(u, &early);
    u->ops->state->free(u, &middle);
    crd_unit_destroy(u);
    crdi_circuit_model_destroy(model);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_restored_circuit_repeats_the_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
