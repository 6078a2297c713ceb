#include "coupling_test.h"

static void a_morphed_network_is_the_linear_algorithm(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {6.5103, -1.5509, -9.9296, 5.9702}; // Baumann 2020, eq. 20
    const crd_linear l = {4, 3, a, NULL};
    uint32_t seed = 1;
    for (double alpha = 0; alpha <= 1; alpha += 0.25) {
        crd_network n;
        check_ok(crd_network_morph(ctx, &l, alpha, &n));
        check_int(n.n1, 4);
        check_int(n.n2, 2);
        for (int i = 0; i < 100; i++) {
            double y[4];
            for (int j = 0; j < 4; j++) {
                y[j] = next_normal(&seed);
            }
            check_near(crd_network_eval(&n, y), crd_linear_eval(&l, y, 0), 1e-13);
        }
        crd_network_clear(ctx, &n);
    }
}

static void an_element_with_a_network_is_one_with_its_weights(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {6.5, -1.5, -10, 6};
    const crd_linear l = {4, 3, a, NULL};
    crd_network n;
    check_ok(crd_network_morph(ctx, &l, 0.01, &n));
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 0.001;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    o.network = &n;
    crd_coupling *with_network = NULL, *with_weights = NULL;
    check_ok(crd_coupling_create(ctx, &o, &with_network));
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = &l;
    o.given_count = 1;
    check_ok(crd_coupling_create(ctx, &o, &with_weights));
    crd_network_clear(ctx, &n); // the element has its own
    for (int i = 0; i < 200; i++) {
        const double y = sin(0.1 * i) + (i > 90);
        crd_coupling_push(with_network, y, i * o.step, i);
        crd_coupling_push(with_weights, y, i * o.step, i);
        const double t = (i + 3) * o.step;
        check_near(crd_coupling_eval(with_network, t), crd_coupling_eval(with_weights, t), 1e-12);
    }
    crd_coupling_destroy(with_network);
    crd_coupling_destroy(with_weights);
}

static void networks_that_make_no_sense_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    const double w[2] = {1, NAN}, zero = 0, one = 1;
    const crd_linear l = {2, 0, w, NULL}, fine = {1, 0, &one, NULL};
    crd_network n = {0};
    check_status(crd_network_morph(ctx, &l, 0.01, &n), CRD_E_RANGE);
    check_status(crd_network_morph(ctx, &fine, -1, &n), CRD_E_RANGE);
    crd_coupling_options o = crd_coupling_defaults();
    crd_coupling* c = NULL;
    o.step = 1;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    n = (crd_network){1, 1, 1, 0.01, &w[1], &zero, &one, &zero, &one, 0};
    o.network = &n;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "W1[0]");
    n.n1 = 100000;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "1-100000-1-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(a_morphed_network_is_the_linear_algorithm),
        coupling_unit_test(an_element_with_a_network_is_one_with_its_weights),
        coupling_unit_test(networks_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
