// Recordings as units.
#include <stdio.h>

#include "unit_test.h"

#include "cardan/results.h"

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
            check_ok(u->ops->derivatives->get(u, out.b, 1, &d));
            check_near(d, hold ? 0 : rows[i].slope, 1e-13);
            check_ok(u->ops->derivatives->get(u, out.b, 2, &d));
            check_near(d, 0, 0);
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
    check_ok(u->ops->state->save(u, &saved));
    const double y = out.v.real[0];
    step(u, 0, 0.1);
    check_ok(u->ops->state->restore(u, saved));
    get(&out);
    check_near(out.v.real[0], y, 0);
    u->ops->state->free(u, &saved);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void cells_without_a_value_are_bridged_and_told(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    static const double filled[2][6] = {{2, 2, 4, 8, 8, 8}, {2, 2, 2, 8, 8, 8}};
    for (int hold = 0; hold < 2; hold++) {
        crd_unit_spec spec = replay_spec(
            write_recording("gaps", "time,y,z\n0,,1\n1,2,1\n2,,1\n4,8,1\n5,,1\n6,,1\n"));
        spec.interpolation = hold ? CRD_INTERPOLATE_HOLD : CRD_INTERPOLATE_LINEAR;
        crd_unit* u = make(ctx, &spec);
        check_contains(log.text, "1 column is without a value in some rows, first 'y' at 0");
        start(u, 0, 6);
        static const double times[] = {0, 1, 2, 4, 5, 6};
        for (int i = 0; i < 6; i++) {
            step(u, times[i] - 1, 1);
            check_near(get_one(u, "y"), filled[hold][i], 1e-15);
        }
        crd_unit_destroy(u);
    }
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

static void columns_may_differ_in_interpolation_and_unit(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const crd_column_spec columns[] = {
        {.name = "speed", .unit = "km/h"},
        {.name = "gear*", .interpolation = CRD_INTERPOLATE_HOLD, .has_interpolation = true},
        {.name = "*", .unit = "kg"}, // the first that fits counts
    };
    crd_unit_spec spec = replay_spec(write_recording(
        "differ", "time,speed,gear,gear2,load\n[s],[m/s],,,[g]\n0,0,1,1,0\n2,10,3,5,4\n"));
    spec.columns = columns;
    spec.column_count = 3;
    crd_unit* u = make(ctx, &spec);
    check_text(u->info.variables[u->ops->find(u, "speed")].unit, "km/h");
    check_text(u->info.variables[u->ops->find(u, "gear")].unit, "");
    check_text(u->info.variables[u->ops->find(u, "load")].unit, "kg");
    check_int(u->info.variables[u->ops->find(u, "gear")].variability, CRD_DISCRETE);
    check_int(u->info.variables[u->ops->find(u, "speed")].variability, CRD_CONTINUOUS);
    crd_dimension d;
    check(crdi_unit_dimension(u, u->ops->find(u, "speed"), &d));
    check_near(d.factor, 1 / 3.6, 1e-15);
    start(u, 0, 2);
    step(u, 0, 1);
    check_near(get_one(u, "speed"), 5, 1e-14);
    check_near(get_one(u, "gear"), 1, 0);
    check_near(get_one(u, "gear2"), 1, 0);
    check_near(get_one(u, "load"), 2, 1e-14);
    crd_unit_destroy(u);
    spec.interpolation = CRD_INTERPOLATE_HOLD; // and the other way round
    static const crd_column_spec smooth = {
        .name = "speed", .interpolation = CRD_INTERPOLATE_LINEAR, .has_interpolation = true};
    spec.columns = &smooth;
    spec.column_count = 1;
    u = make(ctx, &spec);
    check_int(u->info.max_output_order, 1);
    start(u, 0, 2);
    step(u, 0, 1);
    check_near(get_one(u, "speed"), 5, 1e-14);
    check_near(get_one(u, "load"), 0, 0);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_wrong_word_about_columns_is_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const struct {
        crd_column_spec column;
        double offset;
        crd_status status;
        const char* part;
    } rows[] = {
        {{.name = "notes"}, 0, CRD_E_NOT_FOUND, "has no column 'notes', did you mean 'note'?"},
        {{.name = "x*"}, 0, CRD_E_NOT_FOUND, "has no column 'x*'"},
        {{.name = "a", .unit = "kmh"}, 0, CRD_E_RANGE, "column 'a': unknown unit 'kmh'"},
        {{.name = "a"}, NAN, CRD_E_RANGE, "the time offset is nan, expected a number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_unit_spec spec = replay_spec(write_recording("wrong", recording));
        crd_unit* u = NULL;
        spec.columns = &rows[i].column;
        spec.column_count = 1;
        spec.time_offset = rows[i].offset;
        check_status(crd_unit_create(ctx, &spec, &u), rows[i].status);
        check_contains(crd_error_text(ctx), "sys.yaml:5: unit 'rec': ");
        check_contains(crd_error_text(ctx), rows[i].part);
    }
    crd_context_destroy(ctx);
}

static void an_offset_moves_the_recording_in_time(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    crd_unit_spec spec = replay_spec(write_recording("offset", recording));
    spec.time_offset = 10; // 11 to 14
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 12);
    check_contains(log.text, "begins at 11, after the run's start at 0");
    check(!strstr(log.text, "ends at"));
    step(u, 11, 0.5);
    check_near(get_one(u, "a"), 15, 1e-12);
    step(u, 11.5, 0.5);
    check_near(get_one(u, "a"), 50, 1e-12);
    crd_unit_destroy(u);
    spec.time_offset = -1; // 0 to 3
    log = (lines){0};
    u = make(ctx, &spec);
    start(u, 0, 3);
    check_text(log.text, "");
    check_near(get_one(u, "a"), 10, 1e-12);
    const crd_experiment e = {.start = 0, .has_stop = true, .stop = 4};
    check_ok(u->ops->enter_initialization(u, &e));
    check_contains(log.text, "ends at 3, before the run's end at 4");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// The last row and the first are the same moment, and there the first counts.
static void a_repeated_recording_starts_again_behind_its_last_row(void** state)
{
    (void)state;
    lines log;
    crd_context* ctx = context_with_log(&log);
    crd_unit_spec spec = replay_spec(write_recording("repeat", "time,y\n1,0\n2,10\n4,30\n"));
    spec.repeat = true;
    spec.time_offset = -1; // period 3: 0 at 0, 10 at 1, 30 just before 3
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1000);
    check_text(log.text, "");
    static const struct {
        double t, y, slope;
    } rows[] = {
        {0.5, 5, 10}, {1, 10, 10},    {2.9, 29, 10}, {3, 0, 10},  {3.5, 5, 10}, {5, 20, 10},
        {6, 0, 10},   {300.5, 5, 10}, {302, 20, 10}, {2, 20, 10}, {-1, 0, 0}}; // before the first
                                                                               // there is no
                                                                               // earlier one
    bound out = bind_names(u, "y");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        step(u, rows[i].t - 0.5, 0.5);
        get(&out);
        check_near(out.v.real[0], rows[i].y, 1e-10);
        double d = NAN;
        check_ok(u->ops->derivatives->get(u, out.b, 1, &d));
        check_near(d, rows[i].slope, 1e-12);
    }
    // The state is the time.
    void* saved = NULL;
    step(u, 7, 0.5);
    check_ok(u->ops->state->save(u, &saved));
    step(u, 7.5, 0.75);
    check_ok(u->ops->state->restore(u, saved));
    get(&out);
    check_near(out.v.real[0], 15, 1e-12);
    u->ops->state->free(u, &saved);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_repeated_recording_meets_its_rows_however_often(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    FILE* f = fopen(TEST_BUILD_DIR "/unit_replay_often.csv", "w");
    check(f != NULL);
    fprintf(f, "time,y\n");
    for (int k = 0; k <= 10; k++) {
        fprintf(f, "%.17g,%d\n", k * 0.1, k);
    }
    check_int(fclose(f), 0);
    crd_unit_spec spec = replay_spec(TEST_BUILD_DIR "/unit_replay_often.csv");
    spec.interpolation = CRD_INTERPOLATE_HOLD; // a row that is missed by a bit shows
    spec.repeat = true;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1e5);
    bound out = bind_names(u, "y");
    for (int k = 0; k < 100000; k++) {
        step(u, k * 0.1, 0.1);
        get(&out);
        check_near(out.v.real[0], (k + 1) % 10, 0);
    }
    unbind(&out);
    crd_unit_destroy(u);
    // One row has no period: it stays.
    spec = replay_spec(write_recording("single", "time,y\n1,7\n"));
    spec.repeat = true;
    u = make(ctx, &spec);
    start(u, 0, 10);
    step(u, 5, 1);
    check_near(get_one(u, "y"), 7, 0);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// Two rasters with a real number, an integer, a Boolean and an enumeration.
static const char* write_mf4(crd_context* ctx)
{
    static const char* const path = TEST_BUILD_DIR "/unit_replay.mf4";
    static const crd_label labels[] = {{1, "low"}, {2, "high"}};
    static const crd_column columns[] = {
        {.name = "speed", .unit = "km/h", .description = "", .type = CRD_FLOAT64, .raster = 0},
        {.name = "gear", .unit = "", .description = "", .type = CRD_INT8, .raster = 1},
        {.name = "brake", .unit = "", .description = "", .type = CRD_BOOLEAN, .raster = 1},
        {.name = "range",
         .unit = "",
         .description = "",
         .type = CRD_ENUMERATION,
         .raster = 1,
         .labels = labels,
         .label_count = 2},
        {.name = "count", .unit = "", .description = "", .type = CRD_UINT64, .raster = 1},
    };
    static const crd_raster rasters[] = {{"100 ms", 0.1}, {"1 s", 1}};
    const crd_recorder_options opt = {
        .path = path, .columns = columns, .column_count = 5, .rasters = rasters, .raster_count = 2};
    crd_recorder* r = NULL;
    if (crd_recorder_create(ctx, &opt, &r) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    for (int k = 0; k <= 50; k++) {
        crd_word* row = crd_recorder_begin_raster(r, 0);
        check(row != NULL);
        row[0].real = 0.1 * k;
        row[crd_recorder_word(r, 0)].real = 3.6 * k;
        crd_recorder_end_raster(r, 0);
        if (k % 10) { continue; }
        row = crd_recorder_begin_raster(r, 1);
        check(row != NULL);
        row[0].real = 0.1 * k;
        row[crd_recorder_word(r, 1)].integer = k / 10 - 1;
        row[crd_recorder_word(r, 2)].integer = k / 10 % 2;
        row[crd_recorder_word(r, 3)].integer = k < 25 ? 1 : 2;
        row[crd_recorder_word(r, 4)].integer = INT64_MIN + 4096 * k; // beyond what Int64 can be
        crd_recorder_end_raster(r, 1);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    return path;
}

static void a_measurement_with_several_rasters_is_a_source(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit_spec spec = replay_spec(write_mf4(ctx));
    crd_unit* u = make(ctx, &spec);
    check_int(u->info.variable_count, 5);
    start(u, 0, 5);
    bound out = bind_names(u, "gear speed brake"), counts = bind_names(u, "count");
    for (int k = 1; k < 100; k++) {
        step(u, 0.05 * (k - 1), 0.05);
        get(&out);
        const int second = k / 20;
        check_near(out.v.real[0], 3.6 * k / 2, 1e-11);
        check_int(out.v.integer[0], second - 1);
        check_int(out.v.integer[1], second % 2);
        get(&counts);
        check_int(counts.v.integer[0], INT64_MIN + 40960 * second);
    }
    unbind(&counts);
    unbind(&out);
    crd_unit_destroy(u);
    spec.repeat = true; // both rasters go from 0 to 5
    u = make(ctx, &spec);
    start(u, 0, 5);
    check_steps_do_not_allocate(&a, u, "", "speed gear brake range", 0.001);
    step(u, 11, 1.25);
    check_near(get_one(u, "speed"), 3.6 * 22.5, 1e-10);
    check_near(get_one(u, "gear"), 1, 0);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_is_survived_with_columns_of_their_own(void** state)
{
    (void)state;
    static const crd_column_spec columns[] = {
        {.name = "a", .interpolation = CRD_INTERPOLATE_HOLD, .has_interpolation = true},
        {.name = "b", .unit = "km/h"}};
    crd_unit_spec spec = replay_spec(write_recording("memory2", recording));
    spec.columns = columns;
    spec.column_count = 2;
    spec.repeat = true;
    check_survives_lack_of_memory(&spec);
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
        cmocka_unit_test(cells_without_a_value_are_bridged_and_told),
        cmocka_unit_test(a_recording_that_is_too_short_is_told),
        cmocka_unit_test(a_bad_recording_is_refused_with_place_and_reason),
        cmocka_unit_test(columns_may_differ_in_interpolation_and_unit),
        cmocka_unit_test(a_wrong_word_about_columns_is_refused),
        cmocka_unit_test(an_offset_moves_the_recording_in_time),
        cmocka_unit_test(a_repeated_recording_starts_again_behind_its_last_row),
        cmocka_unit_test(a_repeated_recording_meets_its_rows_however_often),
        cmocka_unit_test(a_measurement_with_several_rasters_is_a_source),
        cmocka_unit_test(lack_of_memory_is_survived_with_columns_of_their_own),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
