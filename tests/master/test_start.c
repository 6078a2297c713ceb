// Connections: what is accepted and what is refused; consistent values at the start.
#include "models.h"

#include <stdio.h>

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

static crd_master* started(crd_context* ctx, crd_system* s)
{
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    return m;
}

static void values_pass_through_chains_of_feedthrough_before_the_first_step(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    int last = add_unit(s, "u0", &euler_model, 0);
    set(s, last, "x", "3");
    static const char* const names[] = {"u1", "u2", "u3", "u4"};
    for (int i = 0; i < 4; i++) {
        const int g = add_unit(s, names[i], &gain_model, 0);
        set(s, g, "a", "2");
        wire(s, last, "y", g, "u");
        last = g;
    }
    crd_master* m = started(*state, s);
    check_near(value(m, "u4.y"), 48, 0);
    check_int(crd_master_get_report(m)->loop_count, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// y1 = a1 y2 + b1, y2 = a2 y1 + b2
static void check_linear_loop(crd_context* ctx, const crd_model* model)
{
    crd_system* s = new_system(ctx, 0.1, 1);
    const int p = add_unit(s, "p", model, 0), q = add_unit(s, "q", model, 0);
    set(s, p, "a", "-3"); // a fixed point would diverge: |a1 a2| = 6
    set(s, p, "b", "1");
    set(s, q, "a", "2");
    set(s, q, "b", "5");
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = started(ctx, s);
    const double y1 = (1 - 3 * 5) / (1 + 6.0);
    check_near(value(m, "p.y"), y1, 1e-9);
    check_near(value(m, "q.y"), 2 * y1 + 5, 1e-9);
    const crd_loop_report* l = crd_master_get_report(m)->loops;
    check_int(crd_master_get_report(m)->loop_count, 1);
    check(l->converged && l->newton && l->iterations <= 3 && l->size == 2);
    check_contains(l->text, "p.y");
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_linear_loop_is_solved_with_and_without_derivatives(void** state)
{
    check_linear_loop(*state, &gain_model);
    check_linear_loop(*state, &plain_gain_model);
}

static void a_nonlinear_loop_is_solved(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int p = add_unit(s, "p", &plain_gain_model, 0), q = add_unit(s, "q", &gain_model, 0);
    set(s, p, "a", "0");
    set(s, p, "c", "1"); // y = cos(u)
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = started(*state, s);
    check_near(value(m, "p.y"), 0.73908513321516064, 1e-9); // x = cos x
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_loop_without_solution_is_reported(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int p = add_unit(s, "p", &gain_model, 0), q = add_unit(s, "q", &gain_model, 0);
    set(s, p, "b", "1"); // y = y + 1
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_status(crd_master_initialize(m), CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "did not converge");
    check_contains(crd_error_text(*state), "p.y");
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_long_ring_of_units_is_one_loop(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    enum { N = 60 };
    static char names[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "g%d", i);
        const int g = add_unit(s, names[i], &gain_model, 0);
        set(s, g, "a", i ? "1" : "0.5");
        set(s, g, "b", i ? "0" : "1");
    }
    for (int i = 0; i < N; i++) {
        wire(s, i, "y", (i + 1) % N, "u");
    }
    crd_master* m = started(*state, s);
    check_near(value(m, "g30.y"), 2, 1e-9); // y = y/2 + 1
    check_int(crd_master_get_report(m)->loops[0].size, N);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// ---- connections -------------------------------------------------------------------------------

static void check_connection(crd_context* ctx, const char* from, const char* to, const char* a,
                             const char* b)
{
    crd_system* s = new_system(ctx, 0.1, 1);
    const int p = add_unit(s, "p", &euler_model, 0), q = add_unit(s, "q", &euler_model, 0);
    crd_connection_spec* c = wire(s, p, from, q, to);
    c->place = (crd_place){"sys.yaml", 12};
    crd_master* m = NULL;
    const crd_status st = crd_master_create(ctx, s, NULL, &m);
    check(st == CRD_E_RANGE || st == CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "sys.yaml:12: ");
    check_contains(crd_error_text(ctx), a);
    check_contains(crd_error_text(ctx), b);
    crd_system_destroy(s);
}

static void wrong_connections_are_refused_with_their_place(void** state)
{
    check_connection(*state, "yy", "u", "yy", "'y'");
    check_connection(*state, "y", "v", "'v'", "q");
    check_connection(*state, "u", "u", "p.u", "expected an output");
    check_connection(*state, "y", "y", "q.y", "expected an input");
    check_connection(*state, "y", "u[2]", "u[2]", "u");
}

static void two_sources_for_one_input_are_refused_with_both(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int p = add_unit(s, "p", &euler_model, 0), q = add_unit(s, "q", &euler_model, 0);
    const int r = add_unit(s, "r", &euler_model, 0);
    wire(s, p, "y", q, "u")->place = (crd_place){"sys.yaml", 7};
    wire(s, r, "y", q, "u")->place = (crd_place){"sys.yaml", 8};
    crd_master* m = NULL;
    check_status(crd_master_create(*state, s, NULL, &m), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "sys.yaml:8: q.u has two sources");
    check_contains(crd_error_text(*state), "p.y (line 7)");
    crd_system_destroy(s);
}

// Types and units of measure.
typedef struct {
    double km, y;
    int32_t i;
    bool b;
    float f;
    double v[3];
    double w[3];
    char text[16], text_in[16];
} mixed;

static void mixed_outputs(void* self, double t)
{
    mixed* x = self;
    (void)t;
    x->y = x->km;
    for (int i = 0; i < 3; i++) {
        x->w[i] = 10 * (i + 1);
    }
}

static crd_model_status mixed_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    mixed_outputs(self, t);
    return CRD_MODEL_OK;
}

#define FIELD(field, t, cause, ...)                                                                \
    {                                                                                              \
        .name = #field, .type = t, .causality = cause,                                             \
        .variability = (t) == CRD_FLOAT64 || (t) == CRD_FLOAT32 ? CRD_CONTINUOUS : CRD_DISCRETE,   \
        .offset = offsetof(mixed, field), .depends = "", __VA_ARGS__                               \
    }
static const crd_model_variable mixed_variables[] = {
    FIELD(km, CRD_FLOAT64, CRD_INPUT, .unit = "km"),
    FIELD(y, CRD_FLOAT64, CRD_OUTPUT, .unit = "m"),
    FIELD(i, CRD_INT32, CRD_INPUT),
    FIELD(b, CRD_BOOLEAN, CRD_INPUT),
    FIELD(f, CRD_FLOAT32, CRD_INPUT),
    FIELD(v, CRD_FLOAT64, CRD_INPUT, .size = 3),
    FIELD(w, CRD_FLOAT64, CRD_OUTPUT, .size = 3),
    FIELD(text_in, CRD_STRING, CRD_INPUT, .capacity = 16, .start_text = "in"),
    {.name = "text",
     .type = CRD_STRING,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(mixed, text),
     .capacity = 16,
     .start_text = "out",
     .exact = true},
};
static const crd_model mixed_model = {.name = "mixed",
                                      .description = "every kind",
                                      .size = sizeof(mixed),
                                      .variables = mixed_variables,
                                      .variable_count = 9,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = mixed_initialize,
                                      .outputs = mixed_outputs,
                                      .step = gain_step};

static void values_are_converted_in_type_and_unit(void** state)
{
    crd_system* s = new_system(*state, 0.1, 0.3);
    const int src = add_unit(s, "src", &euler_model, 0), m1 = add_unit(s, "m1", &mixed_model, 0);
    const int m2 = add_unit(s, "m2", &mixed_model, 0);
    set(s, src, "x", "2.6");
    set(s, m1, "km", "4");
    wire(s, src, "y", m2, "i");
    wire(s, src, "y", m2, "b");
    crd_connection_spec* c = wire(s, src, "y", m2, "f");
    c->gain = 2;
    c->offset = 0.5;
    c->has_transformation = true;
    wire(s, m1, "y", m2, "km"); // 4 m (it copies the number) into km
    wire(s, m1, "w", m2, "v");
    wire(s, m1, "text", m2, "text_in");
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    check_near(value(m, "m2.i"), 3, 0);
    check_near(value(m, "m2.b"), 1, 0);
    check_near(value(m, "m2.f"), (double)5.7F, 0);
    check_near(value(m, "m2.km"), 0.004, 1e-18);
    check_near(value(m, "m2.v[1]"), 10, 0);
    check_near(value(m, "m2.v[3]"), 30, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void units_that_do_not_fit_are_refused_unless_told(void** state)
{
    static const crd_model_variable seconds[] = {
        {.name = "u",
         .type = CRD_FLOAT64,
         .causality = CRD_INPUT,
         .offset = offsetof(gain, u),
         .unit = "s"},
        {.name = "y", .type = CRD_FLOAT64, .causality = CRD_OUTPUT, .offset = offsetof(gain, y)},
    };
    crd_model model = gain_model;
    model.variables = seconds;
    model.variable_count = 2;
    for (int told = 0; told < 2; told++) {
        crd_system* s = new_system(*state, 0.1, 1);
        const int a = add_unit(s, "a", &mixed_model, 0), b = add_unit(s, "b", &model, 0);
        wire(s, a, "y", b, "u")->convert_units = !told;
        crd_master* m = NULL;
        const crd_status st = crd_master_create(*state, s, NULL, &m);
        check_int(st, told ? CRD_OK : CRD_E_RANGE);
        if (!told) {
            check_contains(crd_error_text(*state), "'m'");
            check_contains(crd_error_text(*state), "'s'");
            check_contains(crd_error_text(*state), "convert_units: false");
        }
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
}

static void texts_go_to_texts_only(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int a = add_unit(s, "a", &mixed_model, 0), b = add_unit(s, "b", &mixed_model, 0);
    wire(s, a, "text", b, "km");
    crd_master* m = NULL;
    check_status(crd_master_create(*state, s, NULL, &m), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "String");
    crd_system_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            values_pass_through_chains_of_feedthrough_before_the_first_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_linear_loop_is_solved_with_and_without_derivatives, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_nonlinear_loop_is_solved, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_without_solution_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_ring_of_units_is_one_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_connections_are_refused_with_their_place, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(two_sources_for_one_input_are_refused_with_both, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(values_are_converted_in_type_and_unit, setup, teardown),
        cmocka_unit_test_setup_teardown(units_that_do_not_fit_are_refused_unless_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(texts_go_to_texts_only, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
