// FMUs of plain real values take the short way through a step. It must give the same bits and the
// same messages as the long way.
#include "models.h"

#include <stdio.h>

// An FMU that crashed is not called again, not even to free itself: that loss is meant.
CRD_API const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void)
{
    return "leak:faulty.so\nleak:crd_fmi_instantiate";
}

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

static int add_fmu(crd_system* s, const char* name, int version, const char* model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fmus/fmi%d/%s.fmu", TEST_BUILD_DIR, version, model);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.path = path;
    int index = -1;
    check_ok(crd_system_add_unit(s, &u, &index));
    return index;
}

// A chain that starts from a clock and mixes both FMI versions and a native unit.
static void run_chain(crd_context* ctx, bool short_way, const char* scheme, double out[6])
{
    static const char* const names[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    crd_system* s = new_system(ctx, 0.01, 5);
    const int source = add_unit(s, "source", &clock_model, 0);
    int last = source;
    for (int i = 0; i < 6; i++) {
        const int u = i == 3 ? add_unit(s, names[i], &gain_model, 0)
                             : add_fmu(s, names[i], 2 + i % 2, "chain");
        wire(s, last, "y", u, "u");
        last = u;
    }
    wire(s, last, "y", add_fmu(s, "end", 3, "chain"), "u");
    check_ok(crd_system_set_scheme(s, scheme, (crd_place){"", 0}));
    crd_master_options opt = crd_master_defaults();
    opt.no_statistics = short_way; // measured steps go the long way
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    while (crd_master_ended(m) == CRD_END_NONE) {
        check_run(crd_master_advance(m, short_way ? 1000 : 1), ctx);
    }
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s.y", names[i]);
        out[i] = value(m, name);
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void the_short_way_gives_the_bits_of_the_long_way(void** state)
{
    static const char* const schemes[] = {"jacobi", "gauss-seidel"};
    for (int k = 0; k < 2; k++) {
        double a[6], b[6];
        run_chain(*state, true, schemes[k], a);
        run_chain(*state, false, schemes[k], b);
        check(memcmp(a, b, sizeof a) == 0);
        check(a[5] > 1 && a[5] < 5); // something came through
    }
}

static void check_fault(crd_context* ctx, int version, const char* mode, crd_status want,
                        const char* fragment, double time)
{
    crd_system* s = new_system(ctx, 0.1, 10);
    const int f = add_fmu(s, "f", version, "faulty"), c = add_fmu(s, "c", version, "chain");
    wire(s, f, "y", c, "u");
    set(s, f, "mode", mode);
    set(s, f, "when", "5");
    crd_master_options opt = crd_master_defaults();
    opt.no_statistics = true;
    opt.guard_crashes = true;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    check_status(crd_master_run(m), want);
    if (want < 0) {
        check_contains(crd_error_text(ctx), "unit 'f' at t = ");
        check_contains(crd_error_text(ctx), fragment);
        check_int(crd_master_ended(m), CRD_END_FAILED);
    } else {
        check_int(crd_master_ended(m), CRD_END_UNIT);
        check_text(crd_master_get_report(m)->end_unit, "f");
    }
    check_near(crd_master_time(m), time, 0.11); // some find out at the end of the step
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void faults_on_the_short_way_are_told_like_any_other(void** state)
{
    for (int version = 2; version <= 3; version++) {
        check_fault(*state, version, "2", CRD_E_UNIT, "discarded", 5);
        check_fault(*state, version, "3", CRD_E_UNIT, "Error", 5);
        check_fault(*state, version, "5", CRD_E_UNIT, "not a number", 5);
        check_fault(*state, version, "6", CRD_OK, "", 5);
        check_fault(*state, version, "7", CRD_E_CRASH, "DoStep", 5);
        check_fault(*state, version, "12", CRD_E_CRASH, "exit()", 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_short_way_gives_the_bits_of_the_long_way, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(faults_on_the_short_way_are_told_like_any_other, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
