#include "cardan/quality.h"
#include "check.h"

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

static void names_are_found_again(void** state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        crd_accel_method m = CRD_ACCEL_FIXED;
        check(crd_accel_find(crd_accel_name((crd_accel_method)i), &m));
        check_int(m, i);
    }
    crd_accel_method m;
    check(!crd_accel_find("newton", &m));
}

// g(x) = M x + b with eigenvalues of M around -1.5 ... 0.9: the fixed point is repelling.
enum { N = 4 };
static const double M[N][N] = {
    {-1.5, 0.2, 0, 0.1}, {0.1, 0.9, -0.3, 0}, {0, 0.4, -0.7, 0.2}, {0.3, 0, 0.1, 0.5}};
static const double b[N] = {1, -2, 0.5, 3};

static void sweep(const double* x, double* gx)
{
    for (int i = 0; i < N; i++) {
        gx[i] = b[i];
        for (int j = 0; j < N; j++) {
            gx[i] += M[i][j] * x[j];
        }
    }
}

static int iterate(crd_accel* a, double* x, int most)
{
    double gx[N];
    crd_accel_start(a);
    for (int k = 1; k <= most; k++) {
        sweep(x, gx);
        const double residual = crd_accel_step(a, x, gx);
        check_int(crd_accel_sweeps(a), k);
        if (residual <= 1) { return k; }
    }
    return most + 1;
}

static void iqn_ils_solves_a_linear_problem_in_n_plus_two_sweeps(void** state)
{
    const double tolerance[N] = {1e-9, 1e-9, 1e-9, 1e-9};
    crd_accel_options opt = crd_accel_defaults();
    opt.n = N;
    opt.tolerance = tolerance;
    crd_accel* a = NULL;
    check_ok(crd_accel_create(*state, &opt, &a));
    double x[N] = {0};
    check(iterate(a, x, 100) <= N + 2);
    double gx[N];
    sweep(x, gx);
    for (int i = 0; i < N; i++) {
        check_near(x[i], gx[i], 1e-8);
    }
    crd_accel_destroy(a);
    opt.method = CRD_ACCEL_FIXED; // which goes away from it
    check_ok(crd_accel_create(*state, &opt, &a));
    memset(x, 0, sizeof x);
    check_int(iterate(a, x, 100), 101);
    check(fabs(x[0]) > 1e6);
    crd_accel_destroy(a);
}

static void differences_of_earlier_steps_save_sweeps(void** state)
{
    const double tolerance[N] = {1e-9, 1e-9, 1e-9, 1e-9};
    int sweeps[2];
    for (int reuse = 0; reuse < 2; reuse++) {
        crd_accel_options opt = crd_accel_defaults();
        opt.n = N;
        opt.tolerance = tolerance;
        opt.reuse = reuse;
        crd_accel* a = NULL;
        check_ok(crd_accel_create(*state, &opt, &a));
        double x[N] = {0};
        iterate(a, x, 100);
        for (int i = 0; i < N; i++) {
            x[i] += 0.1 * (i + 1); // the next macro step begins elsewhere
        }
        sweeps[reuse] = iterate(a, x, 100);
        crd_accel_destroy(a);
    }
    check(sweeps[1] <= 3);
    check(sweeps[1] < sweeps[0]);
}

// For one signal Aitken is the secant method: exact at once on a line.
static void aitken_solves_a_scalar_line_in_three_sweeps(void** state)
{
    const double tolerance = 1e-12;
    crd_accel_options opt = crd_accel_defaults();
    opt.method = CRD_ACCEL_AITKEN;
    opt.n = 1;
    opt.omega = 0.5;
    opt.tolerance = &tolerance;
    crd_accel* a = NULL;
    check_ok(crd_accel_create(*state, &opt, &a));
    double x = 0;
    int k = 0;
    for (double residual = 2; residual > 1 && k < 10; k++) {
        const double gx = -3 * x + 8; // repelling, fixed point 2
        residual = crd_accel_step(a, &x, &gx);
    }
    check_int(k, 3);
    check_near(x, 2, 1e-11);
    crd_accel_destroy(a);
}

static void aitken_calms_a_vector_iteration(void** state)
{
    const double tolerance[N] = {1e-9, 1e-9, 1e-9, 1e-9};
    crd_accel_options opt = crd_accel_defaults();
    opt.method = CRD_ACCEL_AITKEN;
    opt.n = N;
    opt.omega = 0.5;
    opt.tolerance = tolerance;
    crd_accel* a = NULL;
    check_ok(crd_accel_create(*state, &opt, &a));
    double x[N] = {0}, gx[N];
    check(iterate(a, x, 200) <= 200);
    sweep(x, gx);
    for (int i = 0; i < N; i++) {
        check_near(x[i], gx[i], 1e-8);
    }
    crd_accel_destroy(a);
}

static void relaxation_goes_its_part_of_the_way(void** state)
{
    crd_accel_options opt = crd_accel_defaults();
    opt.method = CRD_ACCEL_FIXED;
    opt.n = 2;
    opt.omega = 0.25;
    crd_accel* a = NULL;
    check_ok(crd_accel_create(*state, &opt, &a));
    double x[2] = {0, 10};
    const double gx[2] = {4, 2};
    check_near(crd_accel_step(a, x, gx), 8, 0);
    check_near(x[0], 1, 0);
    check_near(x[1], 8, 0);
    crd_accel_destroy(a);
}

static void a_residual_within_the_tolerances_ends_with_the_last_sweep(void** state)
{
    const double tolerance[2] = {0.1, 10};
    crd_accel_options opt = crd_accel_defaults();
    opt.n = 2;
    opt.tolerance = tolerance;
    crd_accel* a = NULL;
    check_ok(crd_accel_create(*state, &opt, &a));
    double x[2] = {1, 100};
    const double gx[2] = {1.05, 109};
    check_near(crd_accel_step(a, x, gx), 0.9, 1e-12);
    check_near(x[0], 1.05, 0);
    check_near(x[1], 109, 0);
    crd_accel_destroy(a);
}

static void what_is_broken_stays_broken(void** state)
{
    for (int m = 0; m < 3; m++) {
        crd_accel_options opt = crd_accel_defaults();
        opt.method = (crd_accel_method)m;
        opt.n = 2;
        crd_accel* a = NULL;
        check_ok(crd_accel_create(*state, &opt, &a));
        double x[2] = {0, 0};
        const double first[2] = {3, 5}, second[2] = {NAN, 9}, same[2] = {7, 9};
        crd_accel_step(a, x, first);
        check(isnan(crd_accel_step(a, x, second)));
        check(isnan(x[0]));
        crd_accel_start(a);
        x[0] = x[1] = 0;
        check_near(crd_accel_step(a, x, first), 5, 0); // a new step begins clean
        check_near(x[0], 3, 0);
        x[0] = x[1] = 0;
        crd_accel_step(a, x, first); // no difference to learn from
        check(isfinite(x[0]) && isfinite(x[1]));
        crd_accel_step(a, x, same);
        check(isfinite(x[0]) && isfinite(x[1]));
        crd_accel_destroy(a);
    }
}

static void bad_options_are_named(void** state)
{
    const double tolerance[2] = {1, 0};
    crd_accel* a = NULL;
    crd_accel_options opt = crd_accel_defaults();
    check_status(crd_accel_create(*state, &opt, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "n = 0");
    opt.n = 2;
    opt.tolerance = tolerance;
    check_status(crd_accel_create(*state, &opt, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "tolerance of signal 1 = 0");
    opt.tolerance = NULL;
    opt.omega = 2;
    check_status(crd_accel_create(*state, &opt, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "omega = 2");
    opt.omega = 1;
    opt.columns = 0;
    check_status(crd_accel_create(*state, &opt, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "columns = 0");
    opt.columns = 1;
    opt.drop = NAN;
    check_status(crd_accel_create(*state, &opt, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "drop");
    crd_accel_destroy(NULL);
}

static void creation_survives_every_failing_allocation(void** state)
{
    (void)state;
    check_allocator memory;
    crd_context* ctx = check_context(&memory);
    crd_accel_options opt = crd_accel_defaults();
    opt.n = N;
    const int64_t before = memory.allocations;
    const int64_t live = memory.live;
    int failures = 0;
    for (int64_t fail_at = 0;; fail_at++) {
        memory.fail_at = memory.allocations + fail_at;
        crd_accel* a = NULL;
        const crd_status st = crd_accel_create(ctx, &opt, &a);
        memory.fail_at = -1;
        if (st == CRD_OK) {
            const int64_t made = memory.allocations;
            double x[N] = {0};
            iterate(a, x, 20);
            check_int(memory.allocations, made); // steps do not allocate
            crd_accel_destroy(a);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(memory.live, live);
        failures++;
    }
    check(failures >= 9);
    check(memory.allocations > before);
    check_int(memory.live, live);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(iqn_ils_solves_a_linear_problem_in_n_plus_two_sweeps),
        cmocka_unit_test(differences_of_earlier_steps_save_sweeps),
        cmocka_unit_test(aitken_solves_a_scalar_line_in_three_sweeps),
        cmocka_unit_test(aitken_calms_a_vector_iteration),
        cmocka_unit_test(relaxation_goes_its_part_of_the_way),
        cmocka_unit_test(a_residual_within_the_tolerances_ends_with_the_last_sweep),
        cmocka_unit_test(what_is_broken_stays_broken),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(creation_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
