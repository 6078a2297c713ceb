// A digital twin as a unit: its variables, its life, and the memory that it takes.
#include "cardan/unit.h"
#include "check.h"

#include <stdio.h>

static const char netlist[] =
    "rc\n.input q unit=W start=10\n.thermal\nheat q0 1 input(q)\n"
    "resistance r1 1 2 1\nresistance r2 2 0 2\ncapacity c1 2 0.1 start=1\n"
    ".endthermal\n.output T1=t(1) T2=t(2)\n.tran 1m 1 uic\n";
static const char description[] = "circuit: rc.cir\nstep: 1 ms\nsensors: { T2: { sd: 0.1 } }\n"
                                  "parameters: { r2: { start: 3, sd: 0.5 } }\n";

static void write_file(const char* path, const char* text)
{
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs(text, f);
    fclose(f);
}

static int set_up(void** state)
{
    *state = NULL;
    write_file(TEST_BUILD_DIR "/rc.cir", netlist);
    write_file(TEST_BUILD_DIR "/twin.yaml", description);
    return 0;
}

static crd_unit_spec spec_of(const char* path)
{
    crd_unit_spec s = crd_unit_spec_defaults();
    s.name = "twin";
    s.source = CRD_UNIT_TWIN;
    s.path = path;
    return s;
}

static double get(crd_unit* u, const char* name)
{
    double x = 0;
    int32_t variable = u->ops->find(u, name), offset = 0;
    check(variable >= 0);
    const crd_binding b = {.variables = &variable, .offsets = &offset, .count = 1};
    crd_values v = {.real = &x};
    check_ok(u->ops->get(u, &b, &v));
    return x;
}

static void set(crd_unit* u, const char* name, double x)
{
    int32_t variable = u->ops->find(u, name), offset = 0;
    check(variable >= 0);
    const crd_binding b = {.variables = &variable, .offsets = &offset, .count = 1};
    const crd_values v = {.real = &x};
    check_ok(u->ops->set(u, &b, &v));
}

static void begin(crd_unit* u)
{
    const crd_experiment e = {.start = 0};
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &e));
    check_ok(u->ops->exit_initialization(u));
}

static void step(crd_unit* u, int n)
{
    set(u, "T2.measured", 2 + 0.01 * n);
    set(u, "q", 10);
    check_ok(u->ops->step(u, n * 1e-3, 1e-3));
}

static void a_twin_is_a_unit_that_can_be_reset_saved_and_restored(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = spec_of(TEST_BUILD_DIR "/twin.yaml");
    crd_unit* u = NULL;
    if (crd_unit_create(ctx, &spec, &u) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    check_text(u->info.kind, "twin");
    check_near(u->info.step_unit, 1e-3, 0);
    check(u->info.flags & CRD_UNIT_CAN_SAVE);
    check(!(u->info.flags & CRD_UNIT_CAN_VARY_STEP));
    begin(u);
    check_near(get(u, "T2"), 1, 1e-12);
    check_near(get(u, "r2"), 3, 1e-12);
    double first[3];
    void* saved = NULL;
    for (int n = 0; n < 100; n++) {
        if (n == 50) { check_ok(u->ops->state->save(u, &saved)); }
        const int64_t before = a.allocations;
        step(u, n);
        check_int(a.allocations, before);
    }
    const char* const names[] = {"T1", "T1.sd", "r2"};
    for (int i = 0; i < 3; i++) {
        first[i] = get(u, names[i]);
    }
    check(first[2] < 3); // the sensor says that it is cooler
    check_ok(u->ops->state->restore(u, saved));
    for (int n = 50; n < 100; n++) {
        step(u, n);
    }
    for (int i = 0; i < 3; i++) {
        check_near(get(u, names[i]), first[i], 0);
    }
    begin(u); // once more from the start
    for (int n = 0; n < 100; n++) {
        step(u, n);
    }
    for (int i = 0; i < 3; i++) {
        check_near(get(u, names[i]), first[i], 0);
    }
    check(u->ops->step(u, 0.1, 0.4e-3) < 0);
    check_contains(crd_error_text(u->ctx), "expected a multiple of the twin's step of 0.001 s");
    u->ops->state->free(u, &saved);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    const crd_unit_spec spec = spec_of(TEST_BUILD_DIR "/twin.yaml");
    crd_status st = CRD_E_MEMORY;
    for (int fail_at = 0; st != CRD_OK; fail_at++) {
        check(fail_at < 3000);
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t before = a.live;
        a.allocations = 0;
        a.fail_at = fail_at;
        crd_unit* u = NULL;
        st = crd_unit_create(ctx, &spec, &u);
        check(st == CRD_OK || st == CRD_E_MEMORY);
        crd_unit_destroy(u);
        check_int(a.live, before);
        crd_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_twin_is_a_unit_that_can_be_reset_saved_and_restored, set_up),
        cmocka_unit_test_setup(every_allocation_may_fail, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
