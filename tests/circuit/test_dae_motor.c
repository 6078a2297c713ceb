// The motor of Rodriguez 2021 (Tables 3.17, 3.18; Fig. 3.14): start of multistep methods, and the
// law of its air gap (appendix B).
#include "circuit/build.h"

static build b;
static reference ref;
static double rotor[5001], water[5001]; // every second

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static int per_second(const trial* t)
{
    return (int)lround(1 / t->step);
}

// Order 8 at 0.5 s: 2e-13 K and 2e-10 W from half of that.
static void fill_reference(crd_context* ctx)
{
    const trial t = {CRD_METHOD_GAUSS4, 0.5, CRD_START_TR, 0, 0};
    const int32_t part = build_find(&b, "Rwater");
    crd_circuit* c = run_begin(ctx, &b, &t);
    for (int i = 1; i <= 5000; i++) {
        for (int k = 0; k < per_second(&t); k++) {
            run_step(ctx, c);
        }
        rotor[i] = crd_circuit_voltage(c, 2);
        water[i] = crd_circuit_current(c, part);
    }
    crd_circuit_destroy(c);
}

static void check_motor(crd_context* ctx, const trial* t)
{
    const int32_t part = build_find(&b, "Rwater");
    crd_circuit* c = run_begin(ctx, &b, t);
    double y = 0, z = 0;
    for (int i = 1; i <= 5000; i++) {
        for (int k = 0; k < per_second(t); k++) {
            run_step(ctx, c);
        }
        const double dy = crd_circuit_voltage(c, 2) - rotor[i];
        const double dz = crd_circuit_current(c, part) - water[i];
        y += dy * dy;
        z += dz * dz;
    }
    crd_circuit_destroy(c);
    check_near(sqrt(y / 5000), t->y, 0.005 * t->y);
    check_near(sqrt(z / 5000), t->z, 0.005 * t->z);
}

static void motor_errors_are_those_of_tables_3_17_and_3_18(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_TR, 0.5, CRD_START_TR, 9.36259e-7, 0.612081},
        {CRD_METHOD_BDF2, 0.25, CRD_START_TR, 8.98114e-7, 0.523370},
        {CRD_METHOD_BDF3, 0.5, CRD_START_TR, 3.30906e-7, 0.388435},
        {CRD_METHOD_TR, 0.1, CRD_START_TR, 3.73909e-8, 0.0243330},
        {CRD_METHOD_BDF2, 0.1, CRD_START_TR, 1.47297e-7, 0.0921306},
        {CRD_METHOD_BDF3, 0.25, CRD_START_TR, 4.97660e-8, 0.0604074},
        {CRD_METHOD_BDF1, 0.025, CRD_START_TR, 1.49117e-4, 0.839165},
    };
    build_motor(&b);
    fill_reference(*state);
    for (size_t i = 0; i < LENGTH(t); i++) {
        check_motor(*state, &t[i]);
    }
}

static void the_start_of_a_multistep_method_shows_in_the_heat_flow(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_BDF2, 0.25, CRD_START_MINIMUM, 9.22214e-7, 0.580405},
        {CRD_METHOD_BDF3, 0.5, CRD_START_MINIMUM, 3.51336e-7, 0.351686},
        {CRD_METHOD_BDF2, 0.25, CRD_START_CONSTANT, 2.13764e-3, 11.6333},
        {CRD_METHOD_BDF3, 0.5, CRD_START_CONSTANT, 4.27542e-3, 24.6184},
        {CRD_METHOD_BDF3, 1, CRD_START_TR, 1.98614e-6, 2.24390},
        {CRD_METHOD_BDF3, 1, CRD_START_CONSTANT, 8.55130e-3, 50.5624},
    };
    build_motor(&b);
    fill_reference(*state);
    for (size_t i = 0; i < LENGTH(t); i++) {
        check_motor(*state, &t[i]);
    }
}

static void a_constant_history_keeps_the_yoke_cold(void** state)
{
    static const struct {
        int second;
        double error; // of T9, K
    } wanted[] = {{1, -0.38}, {2, -0.90}, {3, -1.13}, {4, -1.09}, {10, -0.43}, {20, -0.11}};
    build_motor(&b);
    crd_circuit* c = run_begin(*state, &b, &(trial){CRD_METHOD_BDF3, 1, CRD_START_CONSTANT, 0, 0});
    crd_circuit* good = run_begin(*state, &b, &(trial){CRD_METHOD_GAUSS4, 1, CRD_START_TR, 0, 0});
    size_t k = 0;
    for (int i = 1; i <= 20; i++) {
        run_step(*state, c);
        run_step(*state, good);
        if (i == wanted[k].second) {
            check_near(crd_circuit_voltage(c, 9) - crd_circuit_voltage(good, 9), wanted[k].error,
                       0.1 * fabs(wanted[k].error));
            k++;
        }
        if (i == 1) { // the housing
            check_near(crd_circuit_voltage(c, 10) - crd_circuit_voltage(good, 10), -2.4, 0.24);
        }
    }
    crd_circuit_destroy(c);
    crd_circuit_destroy(good);
}

// ---- the law of the air gap --------------------------------------------------------------------

static void load_motor(crd_context* ctx, const char* speed, crd_netlist** out)
{
    const crd_netlist_options o = {.defines = &speed, .define_count = 1, .max_parts = 10000};
    if (crd_netlist_load(ctx, TEST_SOURCE_DIR "/circuit/data/motor.cir", &o, out) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
}

static crd_circuit* begin_motor(crd_context* ctx, const crd_netlist* n, crd_circuit_method method,
                                double step)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = method;
    o.step = step;
    o.form = CRD_FORM_DAE;
    crd_circuit* c = NULL;
    if (crd_circuit_create(ctx, n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return c;
}

static double air_gap(const crd_circuit* c, const crd_netlist* n)
{
    return (crd_circuit_voltage(c, crd_netlist_node(n, "3")) -
            crd_circuit_voltage(c, crd_netlist_node(n, "4"))) /
           crd_circuit_current(c, crd_netlist_part(n, "airgap"));
}

static double mean_gap(const crd_circuit* c, const crd_netlist* n)
{
    return 0.5 * (crd_circuit_voltage(c, crd_netlist_node(n, "3")) +
                  crd_circuit_voltage(c, crd_netlist_node(n, "4")));
}

// The reference is RK4 at 1/512 s with the same law: 2e-11 K, 1.2e-8 W.
static void the_motor_with_its_air_gap_follows_the_reference(void** state)
{
    crd_netlist* n = NULL;
    load_motor(*state, "omega=1570", &n);
    reference_load(&ref, "pmsm_reference.csv", 2, 10);
    crd_circuit* c = begin_motor(*state, n, CRD_METHOD_GAUSS4, 1);
    const int32_t two = crd_netlist_node(n, "2"), part = crd_netlist_part(n, "rwater");
    check_int(crd_circuit_get_structure(c).differential, 9);
    long k = 0;
    for (int i = 0; i < ref.count; i++) {
        for (; k < lround(ref.t[i]); k++) {
            run_step(*state, c);
        }
        check_near(crd_circuit_voltage(c, two), ref.y[i], 1e-8);
        check_near(crd_circuit_current(c, part), ref.z[i], i == 0 ? 1e-5 : 1e-6);
        if (i == 0) { check_near(air_gap(c, n), 0.206584862148, 1e-10); }
    }
    check_near(air_gap(c, n), 0.205665741886, 1e-10);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// 0.694 K/W at 300 K, 0.748 at 360 K, nearly straight between
static void a_slower_motor_has_a_gap_that_warms_up(void** state)
{
    crd_netlist* n = NULL;
    load_motor(*state, "omega=150", &n);
    crd_circuit* c = begin_motor(*state, n, CRD_METHOD_TR, 5);
    check_near(air_gap(c, n), 0.694 + (0.748 - 0.694) * (mean_gap(c, n) - 300) / 60, 1e-3);
    int most = 0;
    for (int i = 0; i < 1000; i++) {
        run_step(*state, c);
        most = crd_circuit_iterations(c) > most ? crd_circuit_iterations(c) : most;
    }
    check_near(air_gap(c, n), 0.694 + (0.748 - 0.694) * (mean_gap(c, n) - 300) / 60, 1e-3);
    check(most <= 5);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void two_branches_of_the_law_do_not_stop_newton(void** state)
{
    crd_netlist* n = NULL;
    load_motor(*state, "omega=240", &n); // Ta_m passes 1e4 while it warms up
    crd_circuit* c = begin_motor(*state, n, CRD_METHOD_TR, 1);
    for (int i = 0; i < 3000; i++) {
        run_step(*state, c);
    }
    check(crd_circuit_voltage(c, crd_netlist_node(n, "2")) > 350);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(motor_errors_are_those_of_tables_3_17_and_3_18),
        cmocka_unit_test(the_start_of_a_multistep_method_shows_in_the_heat_flow),
        cmocka_unit_test(a_constant_history_keeps_the_yoke_cold),
        cmocka_unit_test(the_motor_with_its_air_gap_follows_the_reference),
        cmocka_unit_test(a_slower_motor_has_a_gap_that_warms_up),
        cmocka_unit_test(two_branches_of_the_law_do_not_stop_newton),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
