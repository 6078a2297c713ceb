// The example models as FMUs: Model Exchange next to Co-Simulation of the same model and to closed
// forms, and whole runs of FMUs that have nothing but Model Exchange.
#include <stdio.h>
#include <unistd.h>

#include "cardan/master.h"
#include "unit_test.h"

// An FMU that crashed is not called again, not even to free itself: that loss is meant.
CRD_API const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void)
{
    return "leak:faulty_me.so";
}

static const char* example(const char* name, int version)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static crd_unit_spec spec_of(const char* name, int version, crd_interface interface,
                             crd_solver method, double tolerance)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "f";
    spec.source = CRD_UNIT_FMU;
    spec.path = example(name, version);
    spec.place = (crd_place){"sys.yaml", 4};
    spec.interface = interface;
    spec.solver.method = method;
    spec.solver.relative = tolerance;
    return spec;
}

static void both_interfaces_of_a_model_agree(void** state)
{
    (void)state;
    const struct {
        const char *model, *outputs;
        double h, most;
        int steps;
    } cases[] = {
        {"bouncing_ball", "height velocity", 0.01, 5e-6, 300},
        {"van_der_pol", "x0 x1", 0.05, 1e-5, 400},
        {"pwm_lag", "y u", 0.001, 1e-6, 1000},
        {"thermostat", "T", 5, 1e-4, 720},
        {"driven_oscillator", "x v a", 0.01, 5e-5, 500},
        {"heat_rod", "middle", 0.0005, 1e-6, 200},
        {"heat_array", "middle", 0.0005, 1e-6, 200},
    };
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const crd_unit_spec cs = spec_of(cases[i].model, version, CRD_INTERFACE_AUTO, 0, NAN);
            crd_unit* a = make(ctx, &cs);
            check_text(a->info.kind, version == 2 ? "FMU 2.0" : "FMU 3.0");
            const crd_unit_spec me = spec_of(cases[i].model, version, CRD_INTERFACE_MODEL_EXCHANGE,
                                             CRD_SOLVER_BDF, 1e-8);
            crd_unit* b = make(ctx, &me);
            check_text(b->info.kind, version == 2 ? "FMU 2.0 ME" : "FMU 3.0 ME");
            start(a, 0, cases[i].steps * cases[i].h);
            start(b, 0, cases[i].steps * cases[i].h);
            bound x = bind_names(a, cases[i].outputs), y = bind_names(b, cases[i].outputs);
            for (int k = 0; k < cases[i].steps; k++) {
                step(a, k * cases[i].h, cases[i].h);
                step(b, k * cases[i].h, cases[i].h);
                get(&x);
                get(&y);
                for (int32_t j = 0; j < x.b->real_count; j++) {
                    check_near(y.v.real[j], x.v.real[j], cases[i].most);
                }
            }
            unbind(&x);
            unbind(&y);
            crd_unit_destroy(a);
            crd_unit_destroy(b);
        }
    }
    crd_context_destroy(ctx);
}

// The slowest mode of the rod is an eigenvector: each cell decays as exp(-4 D sin^2(pi / 202) t).
static void a_rod_cools_as_its_eigenvalue_says(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double rate = 4 * 1000 * pow(sin(acos(-1.0) / 202), 2);
    const char* const models[] = {"heat_rod", "heat_array"}; // sparse, and a full Jacobian
    for (int version = 2; version <= 3; version++) {
        for (int m = 0; m < 2; m++) {
            for (int method = CRD_SOLVER_BDF; method <= CRD_SOLVER_RK4; method++) {
                crd_unit_spec spec = spec_of(models[m], version, CRD_INTERFACE_MODEL_EXCHANGE,
                                             (crd_solver)method, 1e-7);
                spec.solver.step = method >= CRD_SOLVER_EULER ? 2.5e-4 : NAN; // stable below 5e-4
                crd_unit* u = make(ctx, &spec);
                start(u, 0, 1);
                const double before = get_one(u, "middle");
                for (int k = 0; k < 10; k++) {
                    step(u, 0.1 * k, 0.1);
                }
                const double most = method == CRD_SOLVER_EULER ? 1e-3 : 5e-6;
                check_near(get_one(u, "middle") / before, exp(-rate), most);
                crd_unit_destroy(u);
            }
        }
    }
    crd_context_destroy(ctx);
}

// ---- whole runs --------------------------------------------------------------------------------

static crd_status run(crd_context* ctx, const char* model, int version, const crd_setting* settings,
                      int count, const char* results, crd_master_report* report)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    check_ok(crd_system_of_fmu(ctx, example(model, version), &s));
    s->units[0].parameters = settings;
    s->units[0].parameter_count = count;
    s->results.path = results;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    check_ok(crd_master_create(ctx, s, &opt, &m));
    const crd_status st = crd_master_run(m);
    *report = *crd_master_get_report(m);
    crd_master_destroy(m);
    crd_system_destroy(s);
    return st;
}

static int rows_of(const char* path)
{
    FILE* f = fopen(path, "r");
    check(f != NULL);
    int n = 0;
    for (int c = getc(f); c != EOF; c = getc(f)) {
        n += c == '\n';
    }
    fclose(f);
    return n - 1; // the head
}

static void an_fmu_without_cosimulation_runs_on_its_own(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const char* path = TEST_BUILD_DIR "/me_run.csv";
    for (int version = 2; version <= 3; version++) {
        crd_master_report report;
        if (run(ctx, "bouncing_ball_me", version, NULL, 0, path, &report) < 0) {
            fail_msg("%s", crd_error_text(ctx));
        }
        check_int(report.end, CRD_END_STOP_TIME);
        check_int(rows_of(path), 301);
    }
    remove(path);
    crd_context_destroy(ctx);
}

// x' = 1 until 0.5, then what the mode says.
static void what_goes_wrong_is_told_and_the_results_stay(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    const struct {
        const char *mode, *part;
        int rows; // of 101
        crd_status status;
    } cases[] = {
        {"0", "", 101, CRD_OK},
        {"1", "the solver (BDF) failed at t = 0.5", 51, CRD_E_UNIT},
        {"2", "returned Error; its last message: the evaluation at", 51, CRD_E_UNIT},
        {"3", "whose derivative is not finite", 51, CRD_E_UNIT},
        {"5", "the event at t = 0.5 does not end", 50, CRD_E_UNIT},
        {"6", "and time does not go on", 50, CRD_E_UNIT},
        {"7", "and time does not go on", 50, CRD_E_UNIT},
        {"8", "and time does not go on", 51, CRD_E_UNIT},
        {"9", "", 101, CRD_OK}, // step events that change nothing
        {"11", "its last message: this event fails, as asked for", 50, CRD_E_UNIT},
        {"12", "crashed in fmi", 51, CRD_E_CRASH},
    };
    const char* path = TEST_BUILD_DIR "/me_faulty.csv";
    for (int version = 2; version <= 3; version++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const crd_setting mode = {.variable = "mode", .text = cases[i].mode};
            crd_master_report report;
            log.used = 0;
            const crd_status st = run(ctx, "faulty_me", version, &mode, 1, path, &report);
            if (st != cases[i].status) {
                fail_msg("mode %s: %s, %s", cases[i].mode, crd_status_name(st),
                         crd_error_text(ctx));
            }
            if (st < 0) { check_contains(crd_error_text(ctx), cases[i].part); }
            check_int(rows_of(path), cases[i].rows);
        }
        for (int k = 0; k < 2; k++) {
            const crd_setting mode = {.variable = "mode", .text = k ? "13" : "10"};
            crd_master_report report;
            check_ok(run(ctx, "faulty_me", version, &mode, 1, path, &report));
            check_int(report.end, CRD_END_UNIT); // at the event, or at the step after it
            check(rows_of(path) >= 51 && rows_of(path) <= 52);
        }
    }
    remove(path);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_interfaces_of_a_model_agree),
        cmocka_unit_test(a_rod_cools_as_its_eigenvalue_says),
        cmocka_unit_test(an_fmu_without_cosimulation_runs_on_its_own),
        cmocka_unit_test(what_goes_wrong_is_told_and_the_results_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
