// Recordings as units.
#include <stdio.h>

#include "unit_test.h"

static crd_unit_spec replay_spec(const char* path)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "rec";
    spec.source = CRD_UNIT_REPLAY;
    spec.path = path;
    spec.place = (crd_place){"sys.yaml", 5};
    return spec;
}

static const char* write_recording(const char* name, const char* text)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/unit_replay_%s.csv", name);
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs(text, f);
    check_int(fclose(f), 0);
    return path;
}

static const char recording[] = "time,a,b,note\n"
                                "1,10,0,one\n"
                                "2,20,1,two\n"
                                "2,50,5,three\n"
                                "4,60,7,four\n";

static void columns_are_outputs_with_interpolation(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const struct {
        double t, linear, hold, slope;
        const char* note;
    } rows[] = {
        {0, 10, 10, 0, "one"},   {1, 10, 10, 10, "one"},      {1.5, 15, 10, 10, "one"},
        {2, 50, 50, 5, "three"}, {3, 55, 50, 5, "three"},     {4, 60, 60, 0, "four"},
        {9, 60, 60, 0, "four"},  {1.25, 12.5, 10, 10, "one"}, // and back
    };
    for (int hold = 0; hold < 2; hold++) {
        crd_unit_spec spec = replay_spec(write_recording("columns", recording));
        spec.interpolation = hold ? CRD_INTERPOLATE_HOLD : CRD_INTERPOLATE_LINEAR;
        crd_unit* u = make(ctx, &spec);
        check_int(u->info.variable_count, 3);
        check_int(u->info.max_output_order, hold ? 0 : 1);
        start(u, 0, 10);
        bound out = bind_names(u, "a note");
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            step(u, rows[i].t - 0.5, 0.5);
            get(&out);
            check_near(out.v.real[0], hold ? rows[i].hold : rows[i].linear, 1e-13);
            check_text((const char*)out.v.bytes[0].data, rows[i].note);
            double d = NAN;
            check_ok(u->ops->get_derivatives(u, out.b, 1, &d));
            check_near(d, hold ? 0 : rows[i].slope, 1e-13);
        }
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_long_recording_comes_back_sample_by_sample(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    FILE* f = fopen(TEST_BUILD_DIR "/unit_replay_long.csv", "w");
    check(f != NULL);
    fprintf(f, "time,y\n");
    for (int k = 0; k <= 5000; k++) {
        fprintf(f, "%.17g,%.17g\n", k * 0.1, sin(k * 0.1));
    }
    check_int(fclose(f), 0);
    const crd_unit_spec spec = replay_spec(TEST_BUILD_DIR "/unit_replay_long.csv");
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 500);
    bound out = bind_names(u, "y");
    for (int k = 0; k < 5000; k++) {
        step(u, k * 0.1, 0.1); // t + h may miss the row by rounding
        get(&out);
        check_near(out.v.real[0], sin((k + 1) * 0.1), 1e-12);
    }
    for (int k = 0; k < 5000; k += 613) { // large steps, forth and back
        step(u, ((k * 7) % 5000) * 0.1 - 0.1, 0.1);
        get(&out);
        check_near(out.v.real[0], sin(((k * 7) % 5000) * 0.1), 1e-12);
    }
    void* saved = NULL;
    check_ok(u->ops->save(u, &saved));
    const double y = out.v.real[0];
    step(u, 0, 0.1);
    check_ok(u->ops->restore(u, saved));
    get(&out);
    check_near(out.v.real[0], y, 0);
    u->ops->free_state(u, &saved);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_recording_that_is_too_short_is_told(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    const crd_unit_spec spec = replay_spec(write_recording("short", recording));
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 10);
    check_contains(log.text, "begins at 1, after the run's start at 0");
    check_contains(log.text, "ends at 4, before the run's end at 10");
    log.text[0] = 0;
    log.used = 0;
    const crd_experiment e = {.start = 1, .has_stop = true, .stop = 4};
    check_ok(u->ops->enter_initialization(u, &e));
    check_text(log.text, "");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_bad_recording_is_refused_with_place_and_reason(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit* u = NULL;
    crd_unit_spec spec = replay_spec(TEST_BUILD_DIR "/there_is_no_such.csv");
    check(crd_unit_create(ctx, &spec, &u) < 0);
    check_contains(crd_error_text(ctx), "sys.yaml:5: unit 'rec': ");
    check_contains(crd_error_text(ctx), "there_is_no_such.csv");
    spec = replay_spec(write_recording("empty", "time,a\n"));
    check(crd_unit_create(ctx, &spec, &u) < 0);
    check_contains(crd_error_text(ctx), "sys.yaml:5: unit 'rec': ");
    const crd_setting setting = {"a", "1", {"sys.yaml", 6}};
    spec = replay_spec(write_recording("set", recording));
    spec.parameters = &setting;
    spec.parameter_count = 1;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "'a' is a calculated output and cannot be set");
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = replay_spec(write_recording("allocate", recording));
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 10);
    check_steps_do_not_allocate(&a, u, "", "a b note", 0.0005);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_is_survived(void** state)
{
    (void)state;
    const crd_unit_spec spec = replay_spec(write_recording("memory", recording));
    check_survives_lack_of_memory(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_outputs_with_interpolation),
        cmocka_unit_test(a_long_recording_comes_back_sample_by_sample),
        cmocka_unit_test(a_recording_that_is_too_short_is_told),
        cmocka_unit_test(a_bad_recording_is_refused_with_place_and_reason),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
