// Units near a point: matrices of the example oscillators in closed form, by directional
// derivatives and by differences.
#include "me/me_test.h"

#include "cardan/model.h"

extern const crd_model crd_model_lo_fd1;

static const char* example(const char* name, int version)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static crd_unit_spec spec_of(const char* path, crd_interface interface)
{
    crd_unit_spec spec = me_spec(path);
    spec.interface = interface;
    return spec;
}

// Names separated by blanks
static int ports(const crd_unit* u, const char* names, crd_unit_port* out)
{
    char copy[256];
    int n = 0;
    strcpy(copy, names);
    for (char* p = strtok(copy, " "); p; p = strtok(NULL, " "), n++) {
        out[n] = (crd_unit_port){.variable = u->ops->find(u, p)};
        if (out[n].variable < 0) { fail_msg("there is no variable '%s'", p); }
    }
    return n;
}

static crd_status linearise(crd_unit* u, const char* inputs, const char* outputs, crd_linearised* l)
{
    crd_unit_port in[8], out[8];
    const int ni = ports(u, inputs, in), no = ports(u, outputs, out);
    return crd_unit_linearise(u, in, ni, out, no, l);
}

static void check_matrix(const char* what, const double* found, const double* expected, int n,
                         double tolerance)
{
    for (int i = 0; i < n; i++) {
        if (!(fabs(found[i] - expected[i]) <= tolerance)) {
            fail_msg("%s[%d] = %.15g, expected %.15g", what, i, found[i], expected[i]);
        }
    }
}

// A mass of 1 kg between two springs of 10 N/m, the neighbour's motion comes in
static const crd_setting settings[] = {{.variable = "k1", .text = "10"},
                                       {.variable = "c1", .text = "0.01"},
                                       {.variable = "kc", .text = "10"},
                                       {.variable = "cc", .text = "0.01"}};

static void check_spring(crd_unit* u, double tolerance, bool exact)
{
    const double A[] = {0, 1, -20, -0.02}, B[] = {0, 0, 10, 0.01};
    const double C[] = {10, 0.01, 1, 0}, D[] = {-10, -0.01, 0, 0};
    crd_linearised l;
    const crd_status st = linearise(u, "x2 v2", "f x1", &l);
    if (st < 0) { fail_msg("linearise: %s", crd_error_text(u->ctx)); }
    check_int(l.states, 2);
    check_int(l.exact, exact);
    check_matrix("A", l.A, A, 4, tolerance);
    check_matrix("B", l.B, B, 4, tolerance);
    check_matrix("C", l.C, C, 4, tolerance);
    check_matrix("D", l.D, D, 4, tolerance);
    crd_linearised_clear(&l);
    check_ok(linearise(u, "", "energy", &l)); // k1 x1 and v1: it depends on the point
    check_near(l.C[0], 10 * get_one(u, "x1"), 1e-9);
    check_near(l.C[1], get_one(u, "v1"), 1e-9);
    crd_linearised_clear(&l);
}

static void example_oscillators_give_their_matrices(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        for (crd_interface i = CRD_INTERFACE_COSIMULATION; i <= CRD_INTERFACE_MODEL_EXCHANGE; i++) {
            crd_unit_spec spec = spec_of(example("lo_fd1", version), i);
            spec.parameters = settings;
            spec.parameter_count = 4;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            check_spring(u, 1e-12, true);
            step(u, 0, 0.1); // it stays able to go on
            check_spring(u, 1e-12, true);
            crd_unit_destroy(u);
            spec = spec_of(example("driven_oscillator", version), i);
            u = make(ctx, &spec);
            start(u, 0, 1);
            const double w = 6.283185307179586, A[] = {0, 1, -w * w, -0.2 * w}, B[] = {0, w * w};
            crd_linearised l;
            check_ok(linearise(u, "u", "a", &l));
            check_matrix("A", l.A, A, 4, 1e-9);
            check_matrix("B", l.B, B, 2, 1e-9);
            check_matrix("C", l.C, A + 2, 2, 1e-9); // the output is x''
            check_matrix("D", l.D, B + 1, 1, 1e-9);
            crd_linearised_clear(&l);
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void models_in_this_process_do_the_same(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "m";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = &crd_model_lo_fd1;
    spec.parameters = settings;
    spec.parameter_count = 4;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    check_spring(u, 1e-12, true);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void differences_serve_where_directions_are_not_offered(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 1; version <= 3; version++) {
        for (int rich = 0; rich <= 1; rich++) {
            const me_fmu m = {"oscillator", version, 2, 0,
                              rich ? all_flags(version) : few_flags(version)};
            crd_unit_spec spec = me_spec(me_folder(&m, rich ? "lin_rich" : "lin_lean"));
            const crd_setting w = {.variable = "p0", .text = "3"};
            spec.parameters = &w;
            spec.parameter_count = 1;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            set_one(u, "u0", 0.25);
            step(u, 0, 0.5);
            const double x = get_one(u, "y0");
            crd_linearised l;
            const double A[] = {0, 1, -9, 0}, B[] = {0, 1}, C[] = {1, 0, 0, 1}, D[] = {0, 0};
            if (!rich) { // this library has no directional derivatives of inputs and outputs
                check_ok(linearise(u, "u0", "y0 y1", &l));
                check(!l.exact);
                check_matrix("A", l.A, A, 4, 1e-9);
                check_matrix("B", l.B, B, 2, 1e-9);
                check_matrix("C", l.C, C, 4, 1e-9);
                check_matrix("D", l.D, D, 2, 1e-9);
                crd_linearised_clear(&l);
                if (version == 1) { // a negated alias on either side
                    const double minus_B[] = {0, -1}, minus_C[] = {-1, 0};
                    check_ok(linearise(u, "minus_u0", "minus_y0", &l));
                    check_matrix("A", l.A, A, 4, 1e-9);
                    check_matrix("B", l.B, minus_B, 2, 1e-9);
                    check_matrix("C", l.C, minus_C, 2, 1e-9);
                    crd_linearised_clear(&l);
                }
                check_near(get_one(u, "y0"), x, 0);
                check_near(get_one(u, "u0"), 0.25, 0);
                step(u, 0.5, 0.5);
            }
            crd_unit_destroy(u);
        }
    }
    crd_context_destroy(ctx);
}

static void arrays_are_states_element_by_element(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const char* const names[] = {"heat_rod", "heat_array"};
    double first[100 * 100];
    for (int i = 0; i < 2; i++) {
        crd_unit_spec spec = spec_of(example(names[i], 3), CRD_INTERFACE_MODEL_EXCHANGE);
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        crd_linearised l;
        check_ok(linearise(u, "u", "middle", &l));
        check_int(l.states, 100);
        check_near(l.B[99], -0.5 * l.A[0], 1e-6 * fabs(l.A[0])); // the input heats the last cell
        check_near(l.A[1], l.B[99], 1e-6 * fabs(l.A[0]));
        check_near(l.C[50], 1, 1e-9);
        check_near(l.A[5], 0, 1e-6);
        if (i == 0) { memcpy(first, l.A, sizeof first); }
        check_matrix("A", l.A, first, 100 * 100, 1e-5);
        crd_linearised_clear(&l);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_nonlinear_unit_is_linearised_where_it_is(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = spec_of(example("van_der_pol", 2), CRD_INTERFACE_MODEL_EXCHANGE);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 10);
    for (int i = 0; i < 3; i++) {
        const double x0 = get_one(u, "x0"), x1 = get_one(u, "x1"), mu = get_one(u, "mu");
        const double A[] = {0, 1, -2 * mu * x0 * x1 - 1, mu * (1 - x0 * x0)};
        crd_linearised l;
        check_ok(linearise(u, "", "x0", &l));
        check_matrix("A", l.A, A, 4, 1e-6);
        crd_linearised_clear(&l);
        step(u, 0.4 * i, 0.4);
    }
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void what_cannot_be_linearised_says_what_is_missing(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_linearised l;
    crd_unit_spec spec = spec_of(example("nlo_fd1", 2), CRD_INTERFACE_AUTO);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    check_status(linearise(u, "x2 v2", "f", &l), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(u->ctx), "hides its states");
    check_contains(crd_error_text(u->ctx), "an FMU needs Model Exchange");
    crd_unit_destroy(u);
    spec.path = example("nlo_fd2", 3);
    u = make(ctx, &spec);
    start(u, 0, 1);
    check_status(linearise(u, "f", "x2", &l), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(u->ctx), "offers no directional derivatives");
    crd_unit_destroy(u);
    spec.path = example("types", 3);
    u = make(ctx, &spec);
    start(u, 0, 1);
    crd_unit_port p = {.variable = u->ops->find(u, "in_i32")};
    check(p.variable >= 0);
    check_status(crd_unit_linearise(u, &p, 1, NULL, 0, &l), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(u->ctx), "'in_i32' is not a continuous Float64");
    crd_unit_destroy(u);
    spec = spec_of(example("feedthrough", 2), CRD_INTERFACE_AUTO); // y = a u + b, without states
    u = make(ctx, &spec);
    start(u, 0, 1);
    check_ok(linearise(u, "u", "y", &l));
    check_int(l.states, 0);
    check_near(l.D[0], get_one(u, "a"), 1e-12);
    crd_linearised_clear(&l);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    const me_fmu m = {"oscillator", 2, 2, 0, ""};
    const char* paths[2] = {strdup(me_folder(&m, "lin_memory")), strdup(example("lo_fd2", 2))};
    for (int i = 0; i < 2; i++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_unit_spec spec = spec_of(paths[i], CRD_INTERFACE_MODEL_EXCHANGE);
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        int failures = 0;
        for (;; failures++) {
            crd_linearised l;
            const int64_t live = a.live;
            a.fail_at = a.allocations + failures;
            const crd_status st = i ? linearise(u, "f", "x2 v2", &l) : linearise(u, "u0", "y0", &l);
            a.fail_at = -1;
            if (st == CRD_OK) {
                crd_linearised_clear(&l);
                break;
            }
            check_status(st, CRD_E_MEMORY);
            check(a.live <= live + 1); // the unit keeps its list of references
        }
        check(failures >= 4);
        crd_unit_destroy(u);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        free((char*)paths[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_oscillators_give_their_matrices),
        cmocka_unit_test(models_in_this_process_do_the_same),
        cmocka_unit_test(differences_serve_where_directions_are_not_offered),
        cmocka_unit_test(arrays_are_states_element_by_element),
        cmocka_unit_test(a_nonlinear_unit_is_linearised_where_it_is),
        cmocka_unit_test(what_cannot_be_linearised_says_what_is_missing),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
