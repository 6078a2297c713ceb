// The high precision rows of BDF1 in Rodriguez 2021: up to forty million steps.
#include "circuit/build.h"

static build b;
static reference ref;

static void bdf1_reaches_high_precision_on_rlc(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_BDF1, 0.0025e-3, CRD_START_MINIMUM, 0.0296417e-3, 0.0629663e-3},
        {CRD_METHOD_BDF1, 2.5e-7, CRD_START_MINIMUM, 2.964e-6, 6.296e-6},
    };
    build_rlc(&b);
    reference_load(&ref, "rlc_reference.csv", 1, 2);
    const watch w = {2, 0, build_find(&b, "L1")};
    run_trials(*state, &b, &ref, &w, t, 2, 0.005);
}

static void bdf1_reaches_high_precision_on_scalable_rlc(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_BDF1, 0.0025e-3, CRD_START_MINIMUM, 0.0147834e-3, 0.0649944e-3},
        {CRD_METHOD_BDF1, 2.5e-7, CRD_START_MINIMUM, 1.478e-6, 6.500e-6},
    };
    build_scalable(&b, 2);
    reference_load(&ref, "scrlc_N2_reference.csv", 1, 2);
    const watch w = {5, 0, build_find(&b, "L2")};
    run_trials(*state, &b, &ref, &w, t, 2, 0.005);
}

static void bdf1_reaches_high_precision_on_the_rectifier(void** state)
{
    static const trial t = {CRD_METHOD_BDF1, 1e-7, CRD_START_TR, 0.266e-6, 4.693e-6};
    build_rectifier(&b);
    reference_load(&ref, "rectifier_reference.csv", 1, 2);
    const watch w = {1, 2, build_find(&b, "L1")};
    run_trials(*state, &b, &ref, &w, &t, 1, 0.005);
}

static void bdf1_reaches_high_precision_on_the_motor(void** state)
{
    build_motor(&b);
    const int32_t part = build_find(&b, "Rwater");
    crd_circuit* c = run_begin(*state, &b, &(trial){CRD_METHOD_BDF1, 0.0025, CRD_START_TR, 0, 0});
    crd_circuit* good = run_begin(*state, &b, &(trial){CRD_METHOD_GAUSS4, 0.5, CRD_START_TR, 0, 0});
    double y = 0, z = 0;
    for (int i = 0; i < 5000; i++) {
        for (int k = 0; k < 400; k++) {
            run_step(*state, c);
        }
        for (int k = 0; k < 2; k++) {
            run_step(*state, good);
        }
        const double dy = crd_circuit_voltage(c, 2) - crd_circuit_voltage(good, 2);
        const double dz = crd_circuit_current(c, part) - crd_circuit_current(good, part);
        y += dy * dy;
        z += dz * dz;
    }
    check_near(sqrt(y / 5000), 1.49120e-5, 0.005 * 1.49120e-5);
    check_near(sqrt(z / 5000), 0.0848480, 0.005 * 0.0848480);
    crd_circuit_destroy(c);
    crd_circuit_destroy(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bdf1_reaches_high_precision_on_rlc),
        cmocka_unit_test(bdf1_reaches_high_precision_on_scalable_rlc),
        cmocka_unit_test(bdf1_reaches_high_precision_on_the_rectifier),
        cmocka_unit_test(bdf1_reaches_high_precision_on_the_motor),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
