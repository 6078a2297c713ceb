// FMUs as units: those of the example models in both versions, next to the same models in this
// process, and a library of our own for what these do not have.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/fmi/fmi_unit.h"
#include "unit_test.h"

extern const crd_model crd_model_events, crd_model_rot_1, crd_model_rot_mono;

// An FMU that said Fatal is not called again, not even to free itself: that loss is meant.
CRD_API const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void)
{
    return "leak:faulty.so";
}

static crd_unit_spec fmu_spec(const char* path)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "f";
    spec.source = CRD_UNIT_FMU;
    spec.path = path;
    spec.place = (crd_place){"sys.yaml", 4};
    return spec;
}

static const char* example(const char* name, int version)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static const char library[] = TEST_BUILD_DIR "/unit_fmu3";

static crd_unit_spec native_spec(const crd_model* model)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "n";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = model;
    return spec;
}

// Runs one unit with a made-up input and keeps all outputs of all steps.
enum { STEPS = 200, WIDTH = 3 };
static void run(crd_unit* u, const char* input, const char* outputs, int order,
                double kept[STEPS][WIDTH])
{
    const double h = 0.01;
    start(u, 0, STEPS * h);
    bound in = bind_names(u, input), out = bind_names(u, outputs);
    for (int n = 0; n < STEPS; n++) {
        const double t = n * h;
        if (in.b->count) {
            in.v.real[0] = sin(3 * t);
            set(&in);
            const double d1 = 3 * cos(3 * t), d2 = -9 * sin(3 * t);
            const double* const d[] = {&d1, &d2};
            if (order) { check_ok(u->ops->derivatives->set(u, in.b, d, order)); }
        }
        step(u, t, h);
        get(&out);
        memcpy(kept[n], out.v.real, WIDTH * sizeof(double));
    }
    check_ok(u->ops->terminate(u));
    unbind(&in);
    unbind(&out);
}

static void an_fmu_and_its_model_in_this_process_give_the_same_bits(void** state)
{
    (void)state;
    const struct {
        const char* name;
        const crd_model* model;
        const char *input, *outputs;
        int order;
        double tolerance; // of FMI 3, which rebuilds derivatives from values inside of the step
    } cases[] = {
        {"rot_mono", &crd_model_rot_mono, "", "tau omega1 phi2", 0, 0},
        {"rot_1", &crd_model_rot_1, "omega2", "tau omega1 phi1", 0, 0},
        {"rot_1", &crd_model_rot_1, "omega2", "tau omega1 phi1", 1, 1e-13},
        {"rot_1", &crd_model_rot_1, "omega2", "tau omega1 phi1", 2, 1e-12},
        {"events", &crd_model_events, "", "height velocity g", 0, 0},
    };
    static double ours[STEPS][WIDTH], theirs[STEPS][WIDTH];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_context* ctx = crd_context_create(NULL);
        const crd_unit_spec native = native_spec(cases[i].model);
        crd_unit* u = make(ctx, &native);
        run(u, cases[i].input, cases[i].outputs, cases[i].order, ours);
        crd_unit_destroy(u);
        for (int version = 2; version <= 3; version++) {
            const crd_unit_spec spec = fmu_spec(example(cases[i].name, version));
            u = make(ctx, &spec);
            check_text(u->info.kind, version == 2 ? "FMU 2.0" : "FMU 3.0");
            run(u, cases[i].input, cases[i].outputs, cases[i].order, theirs);
            crd_unit_destroy(u);
            const double tolerance = version == 3 ? cases[i].tolerance : 0;
            for (int n = 0; n < STEPS; n++) {
                for (int k = 0; k < WIDTH; k++) {
                    check_near(theirs[n][k], ours[n][k], tolerance);
                }
            }
        }
        crd_context_destroy(ctx);
    }
}

static void every_type_passes_through(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const char* const names[] = {
        "f64", "f32", "i8",  "u8",   "i16",  "u16", "i32", "u32",     "i64",     "u64",   "b",
        "e",   "s",   "bin", "f64s", "i32s", "bs",  "ss",  "f64s[2]", "i32s[3]", "bs[1]", "ss[2]"};
    const char* const texts[] = {"1.5",         "-0.5",       "-128",  "255",   "-32768", "65535",
                                 "-2147483648", "2147483647", "-9",    "9",     "0",      "blue",
                                 "text",        "0011ff",     "1 2 3", "4 5 6", "0 1 0",  "a b",
                                 "8",           "9",          "0",     "c"};
    for (int version = 2; version <= 3; version++) {
        const crd_unit_spec spec = fmu_spec(example("types", version));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        int passed = 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            char in[32], out[32];
            snprintf(in, sizeof in, "in_%s", names[i]);
            snprintf(out, sizeof out, "out_%s", names[i]);
            if (u->ops->find(u, in) < 0) { continue; } // a type or a spelling of the other version
            if (crd_unit_set_text(u, u->ops->find(u, in), texts[i], NO_PLACE) < 0) {
                fail_msg("FMI %d: %s", version, crd_error_text(u->ctx));
            }
            step(u, 0.01 * passed, 0.01);
            bound a = bind_names(u, in), b = bind_names(u, out);
            get(&a);
            get(&b);
            for (int32_t k = 0; k < a.b->real_count; k++) {
                check_near(b.v.real[k], a.v.real[k], 0);
            }
            for (int32_t k = 0; k < a.b->integer_count; k++) {
                check_int(b.v.integer[k], a.v.integer[k]);
            }
            for (int32_t k = 0; k < a.b->bytes_count; k++) {
                check_int(b.v.bytes[k].length, a.v.bytes[k].length);
                check(memcmp(b.v.bytes[k].data, a.v.bytes[k].data, a.v.bytes[k].length) == 0);
            }
            unbind(&a);
            unbind(&b);
            passed++;
        }
        check_int(passed, version == 3 ? 18 : 17);
        bound all = bind_names(u, "out_b out_f64 out_s out_i32 out_e out_f32");
        get(&all);
        check_near(all.v.real[0], 1.5, 0);
        check_near(all.v.real[1], -0.5, 0);
        check_text((const char*)all.v.bytes[0].data, "text");
        unbind(&all);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void settings_reach_the_fmu_in_its_units(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"J1", "20000000 g.m2", {"sys.yaml", 5}},
                                    {"solver", "euler", {"sys.yaml", 6}},
                                    {"phi1", "180 deg", {"sys.yaml", 7}},
                                    {"omega2", "0.25", {"sys.yaml", 8}}};
    for (int version = 2; version <= 3; version++) {
        crd_unit_spec spec = fmu_spec(example("rot_1", version));
        spec.parameters = settings;
        spec.parameter_count = 4;
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        check_near(get_one(u, "J1"), 20000, 1e-9);
        check_near(get_one(u, "phi1"), 3.14159265358979323846, 1e-15);
        check_near(get_one(u, "omega2"), 0.25, 0);
        bound x = bind_names(u, "solver");
        get(&x);
        check_int(x.v.integer[0], 2);
        unbind(&x);
        crd_unit_destroy(u);
        const struct {
            crd_setting setting;
            const char* part;
        } wrong[] = {
            {{"J2", "1", {"sys.yaml", 9}}, "'f' has no variable 'J2', did you mean 'J1'?"},
            {{"tau", "1", {"sys.yaml", 9}}, "'tau' is a calculated output and cannot be set"},
            {{"J1", "1 s", {"sys.yaml", 9}}, "'s' cannot be converted into its unit 'kg.m2'"},
            {{"solver", "best", {"sys.yaml", 9}}, "expected one of exact, euler"},
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            spec.parameters = &wrong[i].setting;
            spec.parameter_count = 1;
            u = NULL;
            check(crd_unit_create(ctx, &spec, &u) < 0 && !u);
            check_contains(crd_error_text(ctx), "sys.yaml:9: unit 'f': ");
            check_contains(crd_error_text(ctx), wrong[i].part);
        }
    }
    crd_context_destroy(ctx);
}

static void derivatives_and_dependencies_come_from_the_fmu(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const crd_unit_spec spec = fmu_spec(example("rot_1", version));
        crd_unit* u = make(ctx, &spec);
        const int32_t tau = u->ops->find(u, "tau"), omega2 = u->ops->find(u, "omega2");
        const int32_t phi1 = u->ops->find(u, "phi1");
        check(crd_unit_depends(u, tau, omega2, false));
        check(crd_unit_depends(u, tau, omega2, true));
        check(!crd_unit_depends(u, phi1, omega2, false));
        check(!crd_unit_depends(u, phi1, omega2, true));
        check_int(u->info.max_input_order, 2);
        check_int(u->info.max_output_order, 2);
        check_near(u->info.stop, 50, 0);
        start(u, 0, 1);
        const double seed = 3;
        double result = 0;
        check_ok(u->ops->derivatives->directional(u, &tau, 1, &omega2, 1, &seed, &result));
        check_near(result, -2 * 3, 0);
        step(u, 0, 0.01);
        bound out = bind_names(u, "phi1 omega1");
        double d[2];
        get(&out);
        check_ok(u->ops->derivatives->get(u, out.b, 1, d));
        check_near(d[0], out.v.real[1], 1e-15); // phi1' = omega1
        const double slope = d[1];
        check_ok(u->ops->derivatives->get(u, out.b, 2, d));
        check_near(d[0], slope, 1e-15);
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_unit_offers_what_its_description_says_and_nothing_else(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const char* const names[] = {"types", "events", "feedthrough", "rot_1", "rot_mono"};
    int with[4] = {0}, without[4] = {0};
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names + 1; i++) {
        crd_unit_spec spec = fmu_spec(i ? example(names[(i - 1) / 2], i % 2 ? 2 : 3) : library);
        spec.isolate = "none"; // to look inside
        crd_unit* u = make(ctx, &spec);
        const crd_unit_info* info = &u->info;
        const bool says[] = {info->max_input_order > 0, info->max_output_order > 0,
                             (info->flags & CRD_UNIT_HAS_DIRECTIONAL) != 0,
                             (info->flags & CRD_UNIT_CAN_SAVE) != 0};
        const crdi_fmi_unit* f = (const crdi_fmi_unit*)u;
        const bool has[] = {f->d->version == CRD_FMI_2 ? f->d->can_interpolate_inputs
                                                       : f->intermediate_count > 0,
                            f->d->max_output_derivative > 0, f->d->provides_directional_derivatives,
                            f->d->can_get_set_state};
        for (int k = 0; k < 4; k++) {
            if (says[k] != has[k]) {
                fail_msg("%s: capability %d is %d, the unit has it: %d", spec.path, k, says[k],
                         has[k]);
            }
            with[k] += has[k];
            without[k] += !has[k];
        }
        crd_unit_destroy(u);
    }
    for (int k = 0; k < 3; k++) { // all of them can save
        check(with[k] > 0 && without[k] > 0);
    }
    crd_context_destroy(ctx);
}

static void a_restored_state_repeats_the_bits(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const crd_unit_spec spec = fmu_spec(example("events", version));
        crd_unit* u = make(ctx, &spec);
        check(u->info.flags & CRD_UNIT_CAN_SAVE);
        start(u, 0, 3);
        bound out = bind_names(u, "height velocity bounces");
        for (int n = 0; n < 10; n++) {
            step(u, n * 0.1, 0.1);
        }
        void* saved = NULL;
        check_ok(u->ops->state->save(u, &saved));
        double first[2] = {0};
        for (int round = 0; round < 2; round++) {
            for (int n = 10; n < 20; n++) {
                step(u, n * 0.1, 0.1);
            }
            get(&out);
            check(out.v.integer[0] > 2);
            if (round == 0) { memcpy(first, out.v.real, sizeof first); }
            check(memcmp(first, out.v.real, sizeof first) == 0);
            check_ok(u->ops->state->restore(u, saved));
        }
        check_ok(u->ops->state->save(u, &saved));
        u->ops->state->free(u, &saved);
        check(!saved);
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void failures_and_wishes_of_an_fmu_reach_the_caller(void** state)
{
    (void)state;
    const struct {
        const char *mode, *part;
        bool stops;
    } cases[] = {
        {"0", NULL, false},
        {"1", NULL, false},
        {"2", "the step from 0.5 to 0.6 was discarded, it came to 0.5", false},
        {"3", "DoStep at t = 0.5 returned Error", false},
        {"4", "Fatal", false},
        {"6", NULL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 2; version <= 3; version++) {
            crd_context* ctx = crd_context_create(NULL);
            const crd_setting setting = {"mode", cases[i].mode, NO_PLACE};
            crd_unit_spec spec = fmu_spec(example("faulty", version));
            spec.isolate = "none"; // for the name of the last call
            spec.parameters = &setting;
            spec.parameter_count = 1;
            crd_unit* u = make(ctx, &spec);
            start(u, 0, 1);
            for (int n = 0; n < 5; n++) {
                step(u, n * 0.1, 0.1);
            }
            check(!u->wants_stop);
            const crd_status st = u->ops->step(u, 0.5, 0.1);
            check_status(st, cases[i].part ? CRD_E_UNIT : CRD_OK);
            if (cases[i].part) { check_contains(crd_error_text(u->ctx), cases[i].part); }
            check_int(u->wants_stop, cases[i].stops);
            check_contains(crdi_unit_last_call(u), version == 2 ? "fmi2" : "fmi3");
            (void)u->ops->terminate(u);
            crd_unit_destroy(u);
            crd_context_destroy(ctx);
        }
    }
}

static void an_fmu_that_refuses_event_mode_does_without(void** state)
{
    (void)state;
    lines said;
    crd_context* ctx = context_with_log(&said);
    crd_unit_spec spec = fmu_spec(library);
    spec.name = "eventless";
    crd_unit* u = make(ctx, &spec);
    for (int run = 0; run < 2; run++) {
        start(u, 0, 1);
        set_one(u, "u", 2);
        for (int n = 0; n < 5; n++) {
            step(u, n * 0.1, 0.1);
        }
        check_near(get_one(u, "x"), 1, 1e-12);
        const char* first = strstr(said.text, "it says hasEventMode");
        check(first != NULL && !strstr(first + 1, "it says hasEventMode")); // once
    }
    crd_unit_destroy(u);
    spec.name = "never"; // neither way: as it was refused first
    u = make(ctx, &spec);
    check_status(crd_unit_instantiate(u), CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "refused to be instantiated");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void an_abandoned_fmu_is_not_called_again(void** state)
{
    (void)state;
    // In a process of its own: what the FMU holds is lost, as it should be.
    const pid_t child = fork();
    if (child == 0) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_unit_spec spec = fmu_spec(example("events", 3));
        spec.isolate = "none";
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        step(u, 0, 0.1);
        crdi_unit_abandon(u);
        const bool named = strcmp(crdi_unit_last_call(u), "fmi3DoStep") == 0;
        const bool ended = u->ops->terminate(u) == CRD_OK;
        crdi_unit_abandon(u);
        crd_unit_destroy(u);
        crd_context_destroy(ctx);
        _exit(named && ended && a.live == 0 ? 0 : 1);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child);
    check_int(status, 0);
}

static void a_file_that_is_no_fmu_is_refused_with_its_place(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = fmu_spec(TEST_BUILD_DIR "/there_is_no_such.fmu");
    crd_unit* u = NULL;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "sys.yaml:4: unit 'f': ");
    check_contains(crd_error_text(ctx), "there_is_no_such.fmu");
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_unit_spec spec = fmu_spec(example("feedthrough", version));
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1e9);
        check_steps_do_not_allocate(&a, u, "u", "y", 0.01);
        crd_unit_destroy(u);
        spec = fmu_spec(example("types", version));
        u = make(ctx, &spec);
        start(u, 0, 1e9);
        check_steps_do_not_allocate(&a, u, "in_f64 in_i8 in_f32 in_b in_s",
                                    "out_f64 out_i8 out_f32 out_b out_s", 0.01);
        crd_unit_destroy(u);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = fmu_spec(library);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1e9);
    bound in = bind_names(u, "u k"), out = bind_names(u, "x events");
    const int64_t before = a.allocations;
    for (int n = 0; n < 10000; n++) { // curves and an event in each step
        const double d1 = n;
        const double* const d[] = {&d1};
        in.v.integer[0] = n % 7;
        set(&in);
        check_ok(u->ops->derivatives->set(u, in.b, d, 1));
        step(u, n * 0.01, 0.01);
        get(&out);
    }
    check_int(a.allocations, before);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void lack_of_memory_is_survived(void** state)
{
    (void)state;
    const crd_setting settings[] = {{"n", "3", NO_PLACE}, {"a", "1 2 3", NO_PLACE}};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = settings;
    spec.parameter_count = 2;
    check_survives_lack_of_memory(&spec);
    for (int version = 2; version <= 3; version++) {
        spec = fmu_spec(example("feedthrough", version));
        check_survives_lack_of_memory(&spec);
        spec = fmu_spec(example("rot_1", version)); // has curves
        check_survives_lack_of_memory(&spec);
    }
}

static void units_that_share_an_fmu_keep_their_own_state(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    for (int version = 2; version <= 3; version++) {
        crd_unit_store* store = NULL;
        check_ok(crd_unit_store_create(ctx, &store));
        const crd_setting fast = {"g", "20", NO_PLACE};
        crd_unit_spec spec = fmu_spec(example("events", version));
        crd_unit *one = NULL, *two = NULL;
        check_ok(crd_unit_create_shared(ctx, store, &spec, &one));
        const int64_t before = a.allocations;
        crd_unit_spec other = spec;
        other.parameters = &fast;
        other.parameter_count = 1;
        char path[600]; // another way to write the same
        snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/../fmus/fmi%d/./events.fmu", version);
        other.path = path;
        check_ok(crd_unit_create_shared(ctx, store, &other, &two));
        check(a.allocations - before < 20); // nothing was opened again
        start(one, 0, 1);
        start(two, 0, 1);
        step(one, 0, 0.1);
        step(two, 0, 0.1);
        step(two, 0.1, 0.1);
        check_near(get_one(one, "height"), 1 - 9.81 / 2 * 0.01, 1e-14);
        check_near(get_one(two, "height"), 1 - 20.0 / 2 * 0.04, 1e-14);
        crd_unit_destroy(one);
        step(two, 0.2, 0.05);
        check_near(get_one(two, "height"), 1 - 20.0 / 2 * 0.0625, 1e-14);
        crd_unit_destroy(two);
        crd_unit_store_destroy(store);
    }
    crd_unit_store_destroy(NULL);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_in_a_store_is_survived(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t idle = a.live;
    const crd_unit_spec spec = fmu_spec(library);
    for (int64_t n = 0;; n++) {
        crd_unit_store* store = NULL;
        crd_unit* u = NULL;
        a.allocations = 0;
        a.fail_at = n;
        crd_status st = crd_unit_store_create(ctx, &store);
        if (st == CRD_OK) { st = crd_unit_create_shared(ctx, store, &spec, &u); }
        a.fail_at = -1;
        crd_unit_destroy(u);
        crd_unit_store_destroy(store);
        check_int(a.live, idle);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
    }
    crd_context_destroy(ctx);
}

// ---- what only our own library has -------------------------------------------------------------

static void structural_parameters_set_the_sizes_of_arrays(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"m", "1", NO_PLACE},
                                    {"a", "10 20 30 40", NO_PLACE},
                                    {"m[4,2]", "100", NO_PLACE},
                                    {"n", "4", NO_PLACE}};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = settings;
    spec.parameter_count = 4;
    crd_unit* u = make(ctx, &spec);
    const int32_t a = u->ops->find(u, "a"), m = u->ops->find(u, "m");
    check_int(u->info.variables[a].size, 4);
    check_int(u->info.variables[m].size, 12);
    int32_t v = -1, e = -1;
    check_ok(crd_unit_resolve(u, ctx, "m[4,2]", &v, &e));
    check_int(v, m);
    check_int(e, 10);
    check_status(crd_unit_resolve(u, ctx, "m[5,1]", &v, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "index 5, expected 1 to 4");
    check_status(crd_unit_resolve(u, ctx, "m[1,4]", &v, &e), CRD_E_RANGE);
    check_status(crd_unit_resolve(u, ctx, "m[1]", &v, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "'m' has 2 dimensions");
    start(u, 0, 1);
    // sum over m of value times position (1 to 12), element 11 being 100 instead of 1
    check_near(get_one(u, "sum"), 100 + 78 + 99 * 11, 1e-12);
    check(crd_unit_depends(u, u->ops->find(u, "sum"), a, false));
    check(!crd_unit_depends(u, u->ops->find(u, "sum"), u->ops->find(u, "u"), false));
    crd_unit_destroy(u);

    const crd_setting huge[] = {{"n", "18446744073709551615", {"sys.yaml", 8}}};
    spec.parameters = huge;
    spec.parameter_count = 1;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "sys.yaml:8: unit 'f': array 'a' would have more than");
    const crd_setting few[] = {{"n", "3", {"sys.yaml", 8}}, {"a", "1 2", {"sys.yaml", 9}}};
    spec.parameters = few;
    spec.parameter_count = 2;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_RANGE);
    check_contains(crd_error_text(ctx),
                   "sys.yaml:9: unit 'f': 'a': 2 values were given, expected 3");
    crd_context_destroy(ctx);
}

static void discrete_inputs_go_through_event_mode_when_they_change(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(library);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1); // the event at the start has two updates as well
    bound in = bind_names(u, "word k u flag"), out = bind_names(u, "events updates k echo");
    const struct {
        int k;
        bool flag;
        const char* word;
        int events;
        const char* echo;
    } steps[] = {{0, false, "", 1, ""},      {0, false, "", 1, ""},     {5, false, "", 2, ""},
                 {5, true, "", 3, "!"},      {5, true, "on", 4, "on!"}, {5, true, "on", 4, "on!"},
                 {6, false, "off", 5, "off"}};
    for (size_t n = 0; n < sizeof steps / sizeof *steps; n++) {
        in.v.integer[0] = steps[n].k;
        in.v.integer[1] = steps[n].flag;
        check_ok(crd_bytes_set(u->ctx, &in.v.bytes[0], steps[n].word, strlen(steps[n].word)));
        set(&in);
        step(u, (double)n * 0.1, 0.1);
        get(&out);
        check_int(out.v.integer[0], steps[n].events); // the first set tells the FMU all of them
        check_int(out.v.integer[1], 2 * steps[n].events + 2);
        check_int(out.v.integer[2], steps[n].k);
        check_text((const char*)out.v.bytes[0].data, steps[n].echo);
    }
    // after a restored state the FMU is told again, unless it was told nothing since the save
    void* saved = NULL;
    check_ok(u->ops->state->save(u, &saved));
    check_ok(u->ops->state->restore(u, saved));
    set(&in);
    get(&out);
    check_int(out.v.integer[0], 5);
    for (int again = 0; again < 2; again++) {
        in.v.integer[0] = 7;
        set(&in);
        get(&out);
        check_int(out.v.integer[0], 6);
        check_int(out.v.integer[2], 7);
        check_ok(u->ops->state->restore(u, saved));
    }
    u->ops->state->free(u, &saved);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void time_events_split_a_step_and_the_rest_is_done(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"gap", "0.03", NO_PLACE}, {"stop_at", "0.25", NO_PLACE}};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = settings;
    spec.parameter_count = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound in = bind_names(u, "u");
    in.v.real[0] = 2;
    set(&in);
    unbind(&in);
    step(u, 0, 0.1); // 0.03, 0.06, 0.09
    check_int(get_one(u, "events"), 3);
    check_near(get_one(u, "x"), 0.2, 1e-15);
    step(u, 0.1, 0.02); // 0.12: at the end
    check_int(get_one(u, "events"), 4);
    step(u, 0.12, 0.01);
    check_int(get_one(u, "events"), 4);
    check_near(get_one(u, "x"), 0.26, 1e-15);
    crd_unit_destroy(u);

    spec.parameter_count = 2; // the event at 0.27 asks for the end
    u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.1);
    step(u, 0.1, 0.1);
    check(!u->wants_stop);
    step(u, 0.2, 0.1);
    check(u->wants_stop);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_restored_state_has_its_time_events_and_its_wish_to_stop_again(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"gap", "0.03", NO_PLACE}, {"stop_at", "0.14", NO_PLACE}};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = settings;
    spec.parameter_count = 2;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.1);
    void* saved = NULL;
    check_ok(u->ops->state->save(u, &saved)); // the next event is at 0.12
    for (int turn = 0; turn < 2; turn++) {
        check(!u->wants_stop);
        check_int(get_one(u, "events"), 3);
        step(u, 0.1, 0.02);
        check_int(get_one(u, "events"), 4);
        step(u, 0.12, 0.03);
        check_int(get_one(u, "events"), 5);
        check(u->wants_stop);
        check_ok(u->ops->state->restore(u, saved));
    }
    u->ops->state->free(u, &saved);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void inputs_are_moved_inside_of_a_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting gap = {"gap", "0.07", NO_PLACE};
    for (int events = 0; events < 2; events++) {
        crd_unit_spec spec = fmu_spec(library);
        spec.parameters = &gap;
        spec.parameter_count = events;
        crd_unit* u = make(ctx, &spec);
        check_int(u->info.max_input_order, 2);
        start(u, 0, 1);
        // u = 1 + 2 t + 3 t^2, so that x = t + t^2 + t^3; Simpson's rule is exact. "same" is an
        // alias of u.
        bound in = bind_names(u, "same");
        const double h = 0.1;
        for (int n = 0; n < 10; n++) {
            const double t = n * h, e = t + h;
            in.v.real[0] = 1 + 2 * t + 3 * t * t;
            const double d1 = 2 + 6 * t, d2 = 6;
            const double* const d[] = {&d1, &d2};
            set(&in);
            check_ok(u->ops->derivatives->set(u, in.b, d, 2));
            step(u, t, h);
            check_near(get_one(u, "x"), e + e * e + e * e * e, 1e-14);
        }
        // without derivatives the value holds again
        const double x = get_one(u, "x");
        in.v.real[0] = 5;
        set(&in);
        step(u, 1, 0.1);
        check_near(get_one(u, "x"), x + 0.5, 1e-14);
        unbind(&in);
        set_one(u, "u", 7); // no binding with curves is left
        step(u, 1.1, 0.1);
        check_near(get_one(u, "x"), x + 1.2, 1e-14);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void inputs_stay_as_they_are_when_no_derivatives_are_wanted(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(library);
    crd_unit* u = make(ctx, &spec);
    check_int(u->input_order, 2);
    bound in = bind_names(u, "u");
    u->input_order = 0; // after the binding was made
    start(u, 0, 1);
    in.v.real[0] = 3;
    set(&in);
    step(u, 0, 0.5);
    check_near(get_one(u, "x"), 1.5, 1e-15);
    unbind(&in);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_discarded_step_fails_with_a_sentence(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting setting = {"discard_at", "0.1", NO_PLACE};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = &setting;
    spec.parameter_count = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.1);
    check_status(u->ops->step(u, 0.1, 0.1), CRD_E_UNIT);
    check_text(crd_error_text(u->ctx),
               "the step from 0.1 to 0.2 was discarded, it came to 0.1; and "
               "so were shorter ones");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// Of FMI 3 the FMU is as it was: parts follow each other, with inputs along their curve, and a time
// event in one of them.
static void a_discarded_step_is_made_in_shorter_ones(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting settings[] = {{"longest", "0.03", NO_PLACE}, {"gap", "0.17", NO_PLACE}};
    crd_unit_spec spec = fmu_spec(library);
    spec.parameters = settings;
    spec.parameter_count = 2;
    crd_unit* u = make(ctx, &spec);
    bound in = bind_names(u, "u");
    start(u, 0, 1);
    double x = 0;
    for (int n = 0; n < 3; n++) {
        const double t = n * 0.1, slope = 3 - n, curvature = 8;
        const double* const d[] = {&slope, &curvature};
        in.v.real[0] = 1 + n;
        set(&in);
        check_ok(u->ops->derivatives->set(u, in.b, d, 2));
        step(u, t, 0.1);
        x += 0.1 * (1 + n) + slope * 0.1 * 0.1 / 2 + curvature * 0.1 * 0.1 * 0.1 / 6;
        check_near(get_one(u, "x"), x, 1e-15);
    }
    check_int((int)get_one(u, "events"), 1); // at 0.17
    unbind(&in);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_fmu_and_its_model_in_this_process_give_the_same_bits),
        cmocka_unit_test(every_type_passes_through),
        cmocka_unit_test(settings_reach_the_fmu_in_its_units),
        cmocka_unit_test(derivatives_and_dependencies_come_from_the_fmu),
        cmocka_unit_test(a_unit_offers_what_its_description_says_and_nothing_else),
        cmocka_unit_test(a_restored_state_repeats_the_bits),
        cmocka_unit_test(failures_and_wishes_of_an_fmu_reach_the_caller),
        cmocka_unit_test(an_abandoned_fmu_is_not_called_again),
        cmocka_unit_test(an_fmu_that_refuses_event_mode_does_without),
        cmocka_unit_test(a_file_that_is_no_fmu_is_refused_with_its_place),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
        cmocka_unit_test(units_that_share_an_fmu_keep_their_own_state),
        cmocka_unit_test(lack_of_memory_in_a_store_is_survived),
        cmocka_unit_test(structural_parameters_set_the_sizes_of_arrays),
        cmocka_unit_test(discrete_inputs_go_through_event_mode_when_they_change),
        cmocka_unit_test(time_events_split_a_step_and_the_rest_is_done),
        cmocka_unit_test(a_restored_state_has_its_time_events_and_its_wish_to_stop_again),
        cmocka_unit_test(inputs_are_moved_inside_of_a_step),
        cmocka_unit_test(inputs_stay_as_they_are_when_no_derivatives_are_wanted),
        cmocka_unit_test(a_discarded_step_fails_with_a_sentence),
        cmocka_unit_test(a_discarded_step_is_made_in_shorter_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
