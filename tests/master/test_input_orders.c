// FMUs that say canInterpolateInputs and take fewer derivatives than they are given: the run goes
// on with those that they take, as if it had been planned with them.
#include "flows.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
#define PLATFORM "aarch64-linux"
#else
#define PLATFORM "linux64"
#endif

static const double H = 0.1;
enum { STEPS = 40 };

static const struct {
    const char* token;
    int takes, made; // instances
} kinds[] = {{"both", 2, 1},     {"single", 2, 1}, {"late", 2, 1},   {"warns", 1, 1},
             {"discards", 1, 1}, {"breaks", 1, 2}, {"refuses", 0, 2}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static char log_text[8192];

static void keep_line(void* user, crd_level level, const char* text)
{
    (void)user;
    (void)level;
    const size_t n = strlen(log_text);
    snprintf(log_text + n, sizeof log_text - n, "%s\n", text);
}

static crd_context* new_context(void)
{
    crd_context_options opt = crd_context_defaults();
    opt.log = keep_line;
    log_text[0] = 0;
    return crd_context_create(&opt);
}

static int times_said(const char* part)
{
    int n = 0;
    for (const char* p = log_text; (p = strstr(p, part)); p += strlen(part)) {
        n++;
    }
    return n;
}

static void make_folder(const char* path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) { fail_msg("cannot make %s", path); }
}

// A folder FMU around the library that behaves as the token says.
static const char* folder_of(const char* token)
{
    static char folder[400];
    char path[500];
    make_folder(TEST_BUILD_DIR "/interpolating");
    snprintf(folder, sizeof folder, TEST_BUILD_DIR "/interpolating/%s", token);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/binaries", folder);
    make_folder(path);
    snprintf(path, sizeof path, "%s/binaries/" PLATFORM, folder);
    make_folder(path);
    snprintf(path, sizeof path, "%s/binaries/" PLATFORM "/m.so", folder);
    unlink(path); // not a symbolic link: a worker sees the FMU's own folder only
    if (link(TEST_BUILD_DIR "/interpolating_library/interpolating.so", path) != 0) {
        fail_msg("cannot link %s", path);
    }
    snprintf(path, sizeof path, "%s/modelDescription.xml", folder);
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<fmiModelDescription fmiVersion=\"2.0\" modelName=\"m\" guid=\"%s\">\n"
            "<CoSimulation modelIdentifier=\"m\" canInterpolateInputs=\"true\"\n"
            " canGetAndSetFMUstate=\"%s\" canHandleVariableCommunicationStepSize=\"true\"/>\n"
            "<ModelVariables>\n"
            "<ScalarVariable name=\"u\" valueReference=\"0\" causality=\"input\"\n"
            " variability=\"continuous\"><Real start=\"0\"/></ScalarVariable>\n"
            "<ScalarVariable name=\"y\" valueReference=\"1\" causality=\"output\"\n"
            " variability=\"continuous\"><Real/></ScalarVariable>\n"
            "<ScalarVariable name=\"k\" valueReference=\"2\" causality=\"parameter\"\n"
            " variability=\"fixed\"><Real start=\"1\"/></ScalarVariable>\n"
            "<ScalarVariable name=\"n\" valueReference=\"0\" causality=\"input\"\n"
            " variability=\"discrete\"><Integer start=\"0\"/></ScalarVariable>\n"
            "</ModelVariables>\n<ModelStructure><Outputs>\n"
            "<Unknown index=\"2\" dependencies=\"4\"/></Outputs></ModelStructure>\n"
            "</fmiModelDescription>\n",
            token, strcmp(token, "halts") == 0 ? "true" : "false");
    check_int(fclose(f), 0);
    return folder;
}

static int add_fmu(crd_system* s, const char* name, const char* token)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.source = CRD_UNIT_FMU;
    u.path = crdi_arena_text(&s->arena, folder_of(token), strlen(folder_of(token)));
    int index = -1;
    check_ok(crd_system_add_unit(s, &u, &index));
    return index;
}

// What the FMU computes.
static crd_model_status weigh_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    listener* p = self;
    (void)host;
    p->x += h * (p->u + h * (0.75 * p->du[0] + h * 0.3 * p->du[1]));
    *reached = t + h;
    return CRD_MODEL_OK;
}

// Native units that can no more than the FMU.
static crd_status like_the_fmu(crd_unit* u)
{
    if (strcmp(u->name, "p") == 0) { u->info.flags = CRD_UNIT_CAN_VARY_STEP; }
    return CRD_OK;
}

// p.y after each step, and the defect of what goes into p.
typedef struct {
    double y[STEPS], defect;
} course;

// The library of our own, to see what it counts.
static int counter(const char* name)
{
    void* library = dlopen(TEST_BUILD_DIR "/interpolating_library/interpolating.so", RTLD_NOW);
    check(library != NULL);
    const int n = *(const int*)dlsym(library, name);
    dlclose(library);
    return n;
}

// A curve, or a unit that integrates p's output and so makes an oscillator of both.
static course run_with(crd_context* ctx, const char* token, int takes, bool loop,
                       const char* scheme, crd_prediction predict)
{
    course c;
    crd_model native = listener_models[takes];
    native.step = weigh_step;
    crd_system* s = new_system(ctx, H, STEPS * H);
    s->run.monitor |= CRD_MONITOR_DEFECT;
    const int a = add_unit(s, "s", loop ? &exact_model : &curve_models[2], 0);
    const int b = token ? add_fmu(s, "p", token) : add_unit(s, "p", &native, 0);
    if (loop) {
        set(s, a, "x", "1");
        crd_connection_spec* back = wire_as(s, b, a, predict);
        back->gain = -4;
        back->has_transformation = true;
    } else {
        set_kind(s, a, SINE);
    }
    wire_as(s, a, b, predict);
    check_ok(crd_system_set_scheme(s, scheme, (crd_place){"test", 1}));
    crd_master* m = open_run(ctx, s);
    for (int i = 0; i < STEPS; i++) {
        check_run(crd_master_advance(m, 1), ctx);
        c.y[i] = value(m, "p.y");
    }
    c.defect = NAN;

    const crd_master_report* r = crd_master_get_report(m);
    for (int i = 0; i < r->flow_count; i++) {
        if (strcmp(r->flows[i].to, "p.u") == 0) { c.defect = r->flows[i].rms; }
    }
    close_run(m, s);
    return c;
}

static void a_run_goes_on_with_the_derivatives_that_the_fmu_takes(void** state)
{
    (void)state;
    static const char* const schemes[] = {"jacobi", "gauss-seidel: [p, s]", "gauss-seidel: [s, p]"};
    static const crd_prediction predictions[] = {CRD_PREDICTION_AUTO, CRD_PREDICTION_QUADRATIC};
    altered = like_the_fmu;
    for (int i = 0; i < KINDS; i++) {
        for (int k = 0; k < 2 * 3 * 2; k++) {
            const bool loop = k & 1;
            const char* scheme = schemes[k / 2 % 3];
            crd_context* ctx = new_context();
            const course want =
                run_with(ctx, NULL, kinds[i].takes, loop, scheme, predictions[k / 6]);
            check_int(times_said("canInterpolateInputs"), 0);
            const course have = run_with(ctx, kinds[i].token, 0, loop, scheme, predictions[k / 6]);
            for (int n = 0; n < STEPS; n++) {
                if (!(fabs(have.y[n] - want.y[n]) <= 1e-12)) {
                    fail_msg("%s, %s, case %d: y is %.17g after step %d, expected %.17g",
                             kinds[i].token, scheme, k, have.y[n], n, want.y[n]);
                }
            }
            check_near(have.defect, want.defect, 1e-12);
            check(want.defect > 0);
            check_int(times_said("canInterpolateInputs"), kinds[i].takes < 2);
            crd_context_destroy(ctx);
        }
    }
}

// Otherwise the test above would compare equal things with each other.
static void orders_make_a_difference(void** state)
{
    (void)state;
    altered = like_the_fmu;
    crd_context* ctx = new_context();
    double last[3];
    for (int takes = 0; takes < 3; takes++) {
        const course c = run_with(ctx, NULL, takes, true, "jacobi", CRD_PREDICTION_AUTO);
        last[takes] = c.y[STEPS - 1];
    }
    check(fabs(last[0] - last[1]) > 1e-4 && fabs(last[1] - last[2]) > 1e-6);
    crd_context_destroy(ctx);
}

static void what_was_set_is_set_again_where_an_instance_has_to_be_made_anew(void** state)
{
    (void)state;
    altered = NULL;
    void* library = dlopen(TEST_BUILD_DIR "/interpolating_library/interpolating.so", RTLD_NOW);
    for (int k = 0; k < 2 * KINDS; k++) {
        const int i = k / 2;
        const bool apart = k % 2; // in a worker process
        crd_context* ctx = new_context();
        const int made = counter("interpolating_made"), live = counter("interpolating_live");
        crd_system* s = new_system(ctx, H, 1);
        const int a = add_unit(s, "s", &curve_models[2], 0);
        const int b = add_fmu(s, "p", kinds[i].token);
        s->units[b].isolate = apart ? "process" : "none";
        set(s, b, "k", "3");
        set(s, b, "n", "5");
        set_kind(s, a, LINE); // 2 t, with its slope: known from the start
        wire_as(s, a, b, CRD_PREDICTION_AUTO);
        crd_master* m = open_run(ctx, s);
        check_int(counter("interpolating_made") - made, apart ? 0 : kinds[i].made);
        check_int(times_said("canInterpolateInputs"), kinds[i].takes < 2);
        check_int(m->plan->members[b].slope_order, kinds[i].takes);
        run_all(ctx, m);
        // u = 2 (t + s): of each step 2 t H + 1.5 H^2, or with its mean 2 t H + H^2
        const double sum = 2 * H * H * 45 + (kinds[i].takes ? 1.5 : 1) * H * H * 10;
        check_near(value(m, "p.y"), 3 * sum + 5, 1e-12);
        close_run(m, s);
        check_int(counter("interpolating_live"), live);
        crd_context_destroy(ctx);
    }
    dlclose(library);
}

static void a_fatal_answer_ends_the_run(void** state)
{
    (void)state;
    altered = NULL;
    crd_context* ctx = new_context();
    crd_system* s = new_system(ctx, H, 1);
    const int a = add_unit(s, "s", &curve_models[2], 0);
    wire_as(s, a, add_fmu(s, "p", "fatal"), CRD_PREDICTION_AUTO);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_status(crd_master_initialize(m), CRD_E_UNIT);
    check_contains(crd_error_text(ctx), "fmi2SetRealInputDerivatives returned Fatal");
    close_run(m, s);
    crd_context_destroy(ctx);
}

static void an_fmu_that_gets_values_only_is_not_asked(void** state)
{
    (void)state;
    altered = NULL;
    crd_context* ctx = new_context();
    crd_system* s = new_system(ctx, H, 1);
    const int a = add_unit(s, "s", &curve_models[2], 0);
    wire_as(s, a, add_fmu(s, "p", "refuses"), CRD_PREDICTION_AB2);
    crd_master* m = open_run(ctx, s);
    run_all(ctx, m);
    close_run(m, s);
    check_int(times_said("canInterpolateInputs"), 0);
    crd_context_destroy(ctx);
}

// One step comes to a half only, some have to be divided, and one cannot be done at all. An FMU
// that goes on without going back has done the half twice.
static void a_step_that_is_discarded_is_made_in_shorter_ones(void** state)
{
    (void)state;
    static const char* const isolate[] = {"none", "process"};
    for (int i = 0; i < 4; i++) {
        crd_context* ctx = new_context();
        crd_system* s = new_system(ctx, 0.1, 3);
        const int f = add_fmu(s, "f", "halts");
        crd_unit_spec* spec = &s->units[f];
        spec->isolate = isolate[i % 2];
        spec->retry = i < 2;
        altered = NULL;
        set(s, f, "u", "2");
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, NULL, &m), ctx);
        check_status(crd_master_run(m), CRD_E_UNIT);
        const double end = spec->retry ? 2 : 0.2;
        check_near(crd_master_time(m), end, 1e-12);
        check_near(value(m, "f.y"), spec->retry ? 4 : 0.5, 1e-12); // it has done the half
        check_contains(crd_error_text(ctx),
                       spec->retry ? "unit 'f' at t = 2: the step from 2 to 2.1 was discarded, it "
                                     "came to 2; and so were shorter ones"
                                   : "unit 'f' at t = 0.2: the step from 0.2 to 0.3 was discarded, "
                                     "it came to 0.25; with 'retry: true' the unit goes back");
        check_int(times_said("was discarded: shorter ones, first to 0.25"), spec->retry);
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_is_discarded_is_made_in_shorter_ones),
        cmocka_unit_test(a_run_goes_on_with_the_derivatives_that_the_fmu_takes),
        cmocka_unit_test(orders_make_a_difference),
        cmocka_unit_test(what_was_set_is_set_again_where_an_instance_has_to_be_made_anew),
        cmocka_unit_test(an_fmu_that_gets_values_only_is_not_asked),
        cmocka_unit_test(a_fatal_answer_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
