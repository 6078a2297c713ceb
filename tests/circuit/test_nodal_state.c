// What the fast form promises besides its solution: memory, states, refusals, counts.
#include "check.h"
#include "circuit/nodal.h"

#include <stdio.h>

static const crd_circuit_method methods[] = {CRD_METHOD_TR, CRD_METHOD_BDF1, CRD_METHOD_BDF2,
                                             CRD_METHOD_BDF3, CRD_METHOD_TRBDF2};
enum { METHODS = sizeof methods / sizeof *methods };

static const char all_kinds[] =
    "all kinds\n.model d d(is=1e-14 rs=0.1 cjo=10p tt=5n)\n.model s sw(vt=1 vh=0.2 ron=1 "
    "roff=1meg)\n"
    "V1 1 0 sin(0 10 100)\nR1 1 2 10\nL1 2 3 10m\nC1 3 0 10u\nC2 3 4 10u ic=1\nC3 4 0 5u\n"
    "D1 3 5 d\nR2 5 0 100\nS1 3 6 2 0 s\nR3 6 0 10\nB1 0 5 I={0.01*tanh(v(2))}\nR4 2 0 "
    "{100+v(3)^2}\n"
    "La 2 7 1m\nLb 8 0 4m\nK1 La Lb 0.5\nR5 7 0 10\nR6 8 0 50\nE1 9 0 3 2 2\nR7 9 10 10\nVs 10 0 "
    "dc 1\n"
    "F1 0 8 Vs 0.1\n.tran 10u 1m uic\n.end\n";
static const char linear[] =
    "linear\nV1 1 0 sin(0 10 100)\nR1 1 2 10\nL1 2 3 10m ic=0.1\nC1 3 0 10u\n"
    "C2 3 4 10u ic=1\nC3 4 0 5u\nR2 2 0 50\nI1 0 2 dc 0.1\n.end\n";
static const char coupled[] = "coupled\nV1 1 0 sin(0 10 100)\nR1 1 2 10\nL1 2 0 10m\nL2 3 0 10m\n"
                              "K1 L1 L2 0.8\nR2 3 0 5\n.tran 10u 1m uic\n.end\n";

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, text, strlen(text), "test.cir", NULL, &n) < 0) {
        fail_msg("%s\n%s", crd_error_text(ctx), text);
    }
    return n;
}

static crd_circuit_options options(crd_circuit_method method, double step, crd_circuit_form form)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = method;
    o.step = step;
    o.form = form;
    return o;
}

static crd_circuit* make(crd_context* ctx, const crd_netlist* n, crd_circuit_options o)
{
    crd_circuit* c = NULL;
    if (crd_circuit_create(ctx, n, &o, &c) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    if (crd_circuit_begin(c, 0) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return c;
}

static void go(crd_circuit* c, int steps)
{
    for (int k = 0; k < steps; k++) {
        check_ok(crd_circuit_step(c));
    }
}

static void check_near_all(const crd_circuit* a, const crd_circuit* b, const crd_netlist* n,
                           double tolerance)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        check_near(crd_circuit_voltage(a, i), crd_circuit_voltage(b, i), tolerance);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        if (n->parts[i].kind == CRD_PART_MUTUAL) { continue; }
        check_near(crd_circuit_current(a, i), crd_circuit_current(b, i), tolerance);
    }
}

// ---- memory ------------------------------------------------------------------------------------

static void every_allocation_may_fail(void** s)
{
    (void)s;
    const char* const texts[] = {all_kinds, linear, coupled};
    for (int which = 0; which < 3; which++) {
        crd_context* plain = crd_context_create(NULL);
        crd_netlist* n = parse(plain, texts[which]);
        check_allocator a = {.fail_at = -1};
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            a = (check_allocator){.fail_at = -1};
            crd_context* ctx = check_context(&a);
            a.fail_at = a.allocations + at;
            crd_circuit* c = NULL;
            const crd_circuit_options o = options(CRD_METHOD_BDF2, 1e-5, CRD_FORM_NODAL);
            crd_status st = crd_circuit_create(ctx, n, &o, &c);
            if (st == CRD_OK) { st = crd_circuit_begin(c, 0); }
            check(st == CRD_OK || st == CRD_E_MEMORY);
            done = st == CRD_OK;
            crd_circuit_destroy(c);
            a.fail_at = -1;
            crd_context_destroy(ctx);
            check_int(a.live, 0);
        }
        crd_netlist_destroy(n);
        crd_context_destroy(plain);
    }
}

static void steps_allocate_nothing(void** s)
{
    (void)s;
    for (int m = 0; m < METHODS; m++) {
        check_allocator a = {.fail_at = -1};
        crd_context* ctx = check_context(&a);
        crd_netlist* n = parse(ctx, all_kinds);
        crd_circuit* c = make(ctx, n, options(methods[m], 1e-5, CRD_FORM_NODAL));
        const int64_t before = a.allocations;
        go(c, 50);
        check_ok(crd_circuit_begin(c, 0));
        go(c, 5);
        check_int(a.allocations, before);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
    }
}

// ---- states ------------------------------------------------------------------------------------

static void a_restored_run_repeats_to_the_last_bit(void** s)
{
    (void)s;
    const char* const texts[] = {all_kinds, linear, coupled};
    crd_context* ctx = crd_context_create(NULL);
    for (int k = 0; k < 3 * METHODS; k++) {
        crd_netlist* n = parse(ctx, texts[k % 3]);
        crd_circuit* c = make(ctx, n, options(methods[k / 3], 2e-5, CRD_FORM_NODAL));
        const size_t size = crd_circuit_state_size(c);
        check_int(size % 8, 0);
        void *at = malloc(size), *first = malloc(size), *second = malloc(size);
        go(c, k % 5); // inside and after the start of the method
        crd_circuit_save(c, at);
        go(c, 30);
        crd_circuit_save(c, first);
        crd_circuit_restore(c, at);
        go(c, 30);
        crd_circuit_save(c, second);
        check(memcmp(first, second, size) == 0);
        free(at);
        free(first);
        free(second);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
    }
    crd_context_destroy(ctx);
}

static void a_step_that_fails_leaves_the_state(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, all_kinds);
    for (int m = 0; m < METHODS; m++) {
        crd_circuit_options o = options(methods[m], 1e-3, CRD_FORM_NODAL);
        o.max_iterations = 3;
        crd_circuit* c = make(ctx, n, o);
        const size_t size = crd_circuit_state_size(c);
        void *before = malloc(size), *after = malloc(size);
        crd_status st = CRD_OK;
        int steps = 0;
        while (st == CRD_OK && steps++ < 100) {
            crd_circuit_save(c, before);
            st = crd_circuit_step(c);
        }
        check_status(st, CRD_E_CONVERGENCE);
        check_contains(crd_error_text(ctx), "part");
        crd_circuit_save(c, after);
        check(memcmp(before, after, size) == 0);
        free(before);
        free(after);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void other_steps_and_restarts_are_those_of_the_reference_form(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    const char* const texts[] = {linear, coupled, all_kinds};
    for (int k = 0; k < 3 * METHODS; k++) {
        crd_netlist* n = parse(ctx, texts[k % 3]);
        crd_circuit* a = make(ctx, n, options(methods[k / 3], 1e-5, CRD_FORM_NODAL));
        crd_circuit* b = make(ctx, n, options(methods[k / 3], 1e-5, CRD_FORM_DAE));
        const double steps[] = {1e-5, 1.7e-5, 0.6e-5, 1e-5};
        for (int i = 0; i < 4; i++) {
            check_ok(crd_circuit_set_step(a, steps[i]));
            check_ok(crd_circuit_set_step(b, steps[i]));
            go(a, 7);
            go(b, 7);
            check_near_all(a, b, n, 1e-7);
            if (i == 2) {
                crdi_circuit_restart(a);
                crdi_circuit_restart(b);
            }
        }
        double x[16], y[16];
        a->form->states(a, x);
        b->form->states(b, y);
        int32_t count = 0;
        for (int32_t i = 0; i < n->part_count; i++) {
            const uint8_t kind = n->parts[i].kind;
            count += kind == CRD_PART_CAPACITOR || kind == CRD_PART_INDUCTOR;
        }
        for (int32_t i = 0; i < count; i++) {
            check_near(x[i], y[i], 1e-7);
        }
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
        crd_netlist_destroy(n);
    }
    crd_context_destroy(ctx);
}

static void variable_steps_end_where_those_of_the_reference_form_end(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, linear);
    for (int m = 0; m < METHODS; m++) {
        crd_circuit* a = make(ctx, n, options(methods[m], 1e-5, CRD_FORM_NODAL));
        crd_circuit* b = make(ctx, n, options(methods[m], 1e-5, CRD_FORM_DAE));
        crd_circuit_control control = crd_circuit_control_defaults();
        while (crd_circuit_time(a) < 1e-3) {
            check_ok(crd_circuit_advance(a, 1e-3, &control));
        }
        while (crd_circuit_time(b) < 1e-3) {
            check_ok(crd_circuit_advance(b, 1e-3, &control));
        }
        check_int(crd_circuit_get_counts(a).steps, crd_circuit_get_counts(b).steps);
        check_near_all(a, b, n, 1e-6);
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

// ---- counts and refusals -----------------------------------------------------------------------

static void counts_are_those_of_the_thesis(void** s)
{
    (void)s;
    static const char* const files[] = {"rlc.cir",        "scrlc.cir",        "rectifier.cir",
                                        "pmsm.cir",       "motor.cir",        "inverter.cir",
                                        "rc_thermal.cir", "pmsm_relative.cir"};
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/circuit/data/%s", TEST_SOURCE_DIR, files[i]);
        crd_netlist* n = NULL;
        check_ok(crd_netlist_load(ctx, path, NULL, &n));
        crd_circuit* a = make(ctx, n, options(CRD_METHOD_TR, 1e-3, CRD_FORM_NODAL));
        crd_circuit* b = make(ctx, n, options(CRD_METHOD_TR, 1e-3, CRD_FORM_DAE));
        const crd_circuit_structure x = crd_circuit_get_structure(a);
        const crd_circuit_structure y = crd_circuit_get_structure(b);
        check_int(x.variables, y.variables);
        check_int(x.constraints, y.constraints);
        check_int(x.differential, y.differential);
        check(x.nodal > 0 && x.nodal < x.variables / 2);
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
        crd_netlist_destroy(n);
    }
    crd_context_destroy(ctx);
}

static char* ladder(int loops) // to be freed
{
    const size_t room = (size_t)loops * 120 + 200;
    char* text = malloc(room);
    size_t at = (size_t)snprintf(text, room, "ladder\nV1 2 0 sin(0 100 5)\n");
    for (int i = 1; i <= loops; i++) {
        at += (size_t)snprintf(
            text + at, room - at, "R%d %d %d 10\nL%d %d %d 100m ic=0\nC%d %d 0 100m ic=0\n", i,
            i == 1 ? 2 : 2 * i - 1, 2 * i + 1, i, 2 * i + 1, 2 * i + 2, i, 2 * i + 2);
    }
    snprintf(text + at, room - at, ".end\n");
    return text;
}

static void a_ladder_of_n_loops_has_n_unknowns(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    for (int loops = 2; loops <= 300; loops += 149) {
        char* text = ladder(loops);
        crd_netlist* n = parse(ctx, text);
        crd_circuit_options o = options(CRD_METHOD_TR, 2.5e-3, CRD_FORM_NODAL);
        o.no_chains = true;
        crd_circuit* a = make(ctx, n, o);
        crd_circuit* b = make(ctx, n, options(CRD_METHOD_TR, 2.5e-3, CRD_FORM_DAE));
        const crd_circuit_structure x = crd_circuit_get_structure(a);
        check_int(x.variables, 3 + 5 * loops);
        check_int(x.nodal, loops);
        go(a, 40);
        go(b, 40);
        check_near_all(a, b, n, 1e-9);
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
        crd_netlist_destroy(n);
        free(text);
    }
    crd_context_destroy(ctx);
}

static void many_devices_use_the_whole_matrix(void** s)
{
    (void)s;
    static char text[20000];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "many\n.model d d(is=1e-12 rs=0.1)\n"
                                 "V1 1 0 sin(0 20 50)\n");
    for (int i = 1; i <= 60; i++) {
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "R%d %d %d 1\nD%d %d 0 d\nC%d %d 0 1m\n",
                             i, i, i + 1, i, i + 1, i, i + 1);
    }
    snprintf(text + at, sizeof text - at, ".tran 1m 1 uic\n.end\n");
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, text);
    for (int m = 0; m < METHODS; m++) {
        crd_circuit* a = make(ctx, n, options(methods[m], 1e-4, CRD_FORM_NODAL));
        crd_circuit* b = make(ctx, n, options(methods[m], 1e-4, CRD_FORM_DAE));
        check_int(crd_circuit_get_structure(a).ports, 60);
        for (int k = 0; k < 10; k++) {
            go(a, 4);
            go(b, 4);
            check_near_all(a, b, n, 1e-8);
        }
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void what_it_cannot_do_is_refused_and_auto_takes_the_reference_form(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, linear);
    const crd_circuit_method others[] = {CRD_METHOD_TR_CARRIED, CRD_METHOD_GAUSS2,
                                         CRD_METHOD_GAUSS4};
    for (int i = 0; i < 3; i++) {
        crd_circuit* c = NULL;
        crd_circuit_options o = options(others[i], 1e-5, CRD_FORM_NODAL);
        check_status(crd_circuit_create(ctx, n, &o, &c), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(ctx), "DAE");
        o.form = CRD_FORM_AUTO;
        check_ok(crd_circuit_create(ctx, n, &o, &c));
        check_text(c->form->name, "dae");
        crd_circuit_destroy(c);
    }
    crd_circuit* c = make(ctx, n, options(CRD_METHOD_TR, 1e-5, CRD_FORM_AUTO));
    check_text(c->form->name, "nodal");
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    // an expression that uses the current of a diode
    n = parse(ctx, "odd\n.model d d(is=1e-14)\nV1 1 0 dc 1\nR1 1 2 10\nD1 2 0 d\n"
                   "B1 0 3 I={2*i(D1)}\nR2 3 0 1\n.end\n");
    crd_circuit_options o = options(CRD_METHOD_TR, 1e-5, CRD_FORM_NODAL);
    check_status(crd_circuit_create(ctx, n, &o, &c), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(ctx), "d1");
    c = make(ctx, n, options(CRD_METHOD_TR, 1e-5, CRD_FORM_AUTO));
    check_text(c->form->name, "dae");
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

static void fixed_iterations_are_exactly_as_many(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, all_kinds);
    crd_circuit_options o = options(CRD_METHOD_TR, 1e-5, CRD_FORM_NODAL);
    o.fixed_iterations = true;
    o.max_iterations = 6;
    crd_circuit* c = make(ctx, n, o);
    for (int k = 0; k < 20; k++) {
        go(c, 1);
        check_int(crd_circuit_iterations(c) % 6, 0);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(a_restored_run_repeats_to_the_last_bit),
        cmocka_unit_test(a_step_that_fails_leaves_the_state),
        cmocka_unit_test(other_steps_and_restarts_are_those_of_the_reference_form),
        cmocka_unit_test(variable_steps_end_where_those_of_the_reference_form_end),
        cmocka_unit_test(counts_are_those_of_the_thesis),
        cmocka_unit_test(a_ladder_of_n_loops_has_n_unknowns),
        cmocka_unit_test(many_devices_use_the_whole_matrix),
        cmocka_unit_test(what_it_cannot_do_is_refused_and_auto_takes_the_reference_form),
        cmocka_unit_test(fixed_iterations_are_exactly_as_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
